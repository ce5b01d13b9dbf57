/**
 * Registry tokens: minted and administered on the admin listener, looked after by their owners on the data listener.
 * A secret is in one reply, the one that made it. Source: specification, "Authentication" 2 and 12.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { draftRotation, draftToken } from '../../../governance/authentication/bearer-tokens.ts';
import type { Caller } from '../../../governance/caller.ts';
import type { Invocation, TokenView } from '../../../governance/gate-contract.ts';
import { FOREVER, formatInstant } from '../../../log/values/timestamp.ts';
import { record } from '../../schemas/schema-check.ts';
import type { HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';
import { reply, route, type Route } from '../route.ts';
import { auditPage, auditQuery, auditShown, toAuditQuery } from './audit.ts';

const mintBody = z
  .strictObject({
    tenant_id: z.string().optional().describe('binds the token to a tenant'),
    organization: z
      .string()
      .optional()
      .describe(
        'path in force when no organisation header is sent: a default, which the header overrides; tenant_id is what confines a token',
      ),
    principal: z.string().optional(),
    roles: z.array(z.string()).max(256).optional(),
    attributes: record(
      z.union([z.string(), z.number(), z.boolean()], 'a text, a yes or no, or a number up to 2^53: write a longer one as text'),
    ).optional(),
    purposes: z.array(z.string()).max(256).optional().describe('empty or absent: any registered purpose'),
    expires_in_secs: z.int().min(1).optional(),
  })
  .meta({ id: 'MintToken' });

const tokenShape = {
  id: z.string(),
  tenant_id: z.string().nullable(),
  organization: z.string().nullable(),
  principal: z.string(),
  roles: z.array(z.string()),
  purposes: z.array(z.string()),
  expires_at: z.string().nullable().describe('ISO-8601; null: never'),
};

const tokenReply = z.object(tokenShape).meta({ id: 'Token' });
const mintedReply = z.object({ ...tokenShape, token: z.string().describe('shown once') }).meta({ id: 'MintedToken' });
const listReply = z.object({ tokens: z.array(tokenReply) });
const idParams = z.object({ id: z.string() });
const revoked = z.object({ id: z.string(), revoked: z.literal(true) });

const administering = { access: 'admin', action: 'administer' } as const;

export const adminTokenRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/tokens',
    ...administering,
    summary: 'Mint a token',
    tags: ['tokens'],
    body: mintBody,
    replies: { 201: mintedReply },
    example: { body: { principal: 'a text' } },
    run: async (invocation, { body, context }) => {
      const drafted = draftToken(
        {
          principal: body.principal,
          tenant: body.tenant_id,
          organization: body.organization,
          roles: body.roles,
          attributes: body.attributes,
          purposes: body.purposes,
          expiresInSecs: body.expires_in_secs,
        },
        context.ids,
        context.random,
        context.clock.now(),
      );
      await invocation.submit({ kind: 'mint-token', token: drafted.record }, { sync: true });
      return reply(201, { ...describeToken(drafted.record), token: drafted.token });
    },
  }),

  route({
    method: 'GET',
    path: '/admin/tokens',
    ...administering,
    summary: 'List tokens',
    tags: ['tokens'],
    replies: { 200: listReply },
    handle: ({ request, context }) => invoke(context, request, 'inspect', undefined, list, { whileSuspended: true }),
  }),

  route({
    method: 'DELETE',
    path: '/admin/tokens/:id',
    ...administering,
    summary: 'Revoke a token',
    tags: ['tokens'],
    params: idParams,
    replies: { 200: revoked },
    example: { params: { id: 'a token' } },
    run: (invocation, { params }) => revoke(invocation, params.id),
  }),

  route({
    method: 'POST',
    path: '/admin/tokens/:id/rotate',
    ...administering,
    summary: 'Rotate a token',
    tags: ['tokens'],
    params: idParams,
    replies: { 200: mintedReply },
    example: { params: { id: 'another token' } },
    run: (invocation, { params, context }) => rotate(invocation, context, params.id),
  }),

  route({
    method: 'GET',
    path: '/admin/tokens/audit',
    ...administering,
    summary: 'Audit of all tokens',
    tags: ['tokens'],
    query: auditQuery,
    replies: { 200: auditPage },
    handle: ({ query, request, context }) =>
      invoke(context, request, 'audit', undefined, async (invocation) =>
        auditShown(await invocation.audit().entries(toAuditQuery(query)), invocation.proofs()),
      ),
  }),
];

const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const changing = { access: 'token', action: 'administer', bucket: 'write' } as const;

/** Routes for the caller's own tokens. */
export const ownTokenRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/tokens/self',
    ...reading,
    summary: 'Tokens of my tenant',
    tags: ['tokens'],
    replies: { 200: listReply },
    whileSuspended: true,
    run: list,
  }),

  route({
    method: 'POST',
    path: '/tokens/self/rotate',
    ...changing,
    summary: 'Rotate my token: the old one ends at once',
    tags: ['tokens'],
    replies: { 200: mintedReply },
    run: async (invocation, { context }) => rotate(invocation, context, ownId(invocation.caller)),
  }),

  route({
    method: 'GET',
    path: '/tokens/self/audit',
    ...reading,
    summary: 'What my principal did',
    tags: ['tokens'],
    query: auditQuery,
    replies: { 200: auditPage },
    handle: ({ query, request, context }) =>
      invoke(
        context,
        request,
        'audit',
        undefined,
        async (invocation) => {
          const own = { ...toAuditQuery(query), principal: invocation.caller.principal };
          return auditShown(await invocation.audit().entries(own), invocation.proofs());
        },
        { whileSuspended: true },
      ),
  }),

  route({
    method: 'DELETE',
    path: '/tokens/self/:id',
    ...changing,
    summary: 'Revoke a token of mine',
    tags: ['tokens'],
    params: idParams,
    replies: { 200: revoked },
    example: { params: { id: 'a token of mine' } },
    run: (invocation, { params }) => revoke(invocation, params.id),
  }),
];

async function list(invocation: Invocation): Promise<z.infer<typeof listReply>> {
  const tokens = invocation.tokens().map(describeToken);
  invocation.describe({ rowCount: tokens.length });
  return { tokens };
}

async function revoke(invocation: Invocation, id: string): Promise<z.infer<typeof revoked>> {
  requireToken(invocation, id);
  await invocation.submit({ kind: 'revoke-token', id }, { sync: true });
  return { id, revoked: true };
}

async function rotate(invocation: Invocation, { ids, random }: HttpContext, id: string): Promise<z.infer<typeof mintedReply>> {
  const drafted = draftRotation({ ...requireToken(invocation, id), secretHash: '' }, ids, random);
  await invocation.submit({ kind: 'rotate-token', id, token: drafted.record }, { sync: true });
  return { ...describeToken(drafted.record), token: drafted.token };
}

/** A token that the caller may not see is reported like one that does not exist. */
function requireToken(invocation: Invocation, id: string): TokenView {
  const token = invocation.tokens().find((view) => view.id === id);
  if (token === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such token');
  return token;
}

function ownId({ tokenId }: Caller): string {
  if (tokenId === null) throw new ServiceError('REL_NOT_FOUND', 'the caller has no registered token');
  return tokenId;
}

function describeToken(token: TokenView): z.infer<typeof tokenReply> {
  return {
    id: token.id,
    tenant_id: token.tenant,
    organization: token.organization,
    principal: token.principal,
    roles: [...token.roles],
    purposes: [...token.purposes],
    expires_at: token.expiresAt === FOREVER ? null : formatInstant(token.expiresAt),
  };
}
