/**
 * Registry tokens: minted and administered on the admin listener, looked after by their owners on the data listener.
 * A secret is in one reply, the one that made it. Source: specification, "Authentication" 2 and 12.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { draftRotation, draftToken } from '../../../governance/authentication/bearer-tokens.ts';
import type { Invocation, TokenView } from '../../../governance/gate-contract.ts';
import { FOREVER, formatInstant } from '../../../log/values/timestamp.ts';
import { record } from '../../checked.ts';
import type { App, FastifyRequest, HttpContext } from '../context.ts';
import { callerOf, invoke } from '../invoke.ts';
import { problems } from '../schemas.ts';
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

/** POST, GET /admin/tokens; DELETE /admin/tokens/:id; POST /admin/tokens/:id/rotate; GET /admin/tokens/audit. */
export function registerAdminTokens(app: App, context: HttpContext): void {
  const config = { access: 'admin', action: 'administer' } as const;

  app.route({
    method: 'POST',
    url: '/admin/tokens',
    config,
    schema: { summary: 'Mint a token', tags: ['tokens'], body: mintBody, response: { 201: mintedReply, ...problems } },
    handler: async (request, reply) => {
      const body = request.body;
      const minted = await invoke(context, request, 'administer', undefined, async (invocation) => {
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
        return { ...shown(drafted.record), token: drafted.token };
      });
      return reply.code(201).send(minted);
    },
  });

  app.route({
    method: 'GET',
    url: '/admin/tokens',
    config,
    schema: { summary: 'List tokens', tags: ['tokens'], response: { 200: listReply, ...problems } },
    handler: (request) => list(context, request),
  });

  app.route({
    method: 'DELETE',
    url: '/admin/tokens/:id',
    config,
    schema: { summary: 'Revoke a token', tags: ['tokens'], params: idParams, response: { 200: revoked, ...problems } },
    handler: (request) => revoke(context, request, request.params.id),
  });

  app.route({
    method: 'POST',
    url: '/admin/tokens/:id/rotate',
    config,
    schema: { summary: 'Rotate a token', tags: ['tokens'], params: idParams, response: { 200: mintedReply, ...problems } },
    handler: (request) => rotate(context, request, request.params.id),
  });

  app.route({
    method: 'GET',
    url: '/admin/tokens/audit',
    config,
    schema: {
      summary: 'Audit of all tokens',
      tags: ['tokens'],
      querystring: auditQuery,
      response: { 200: auditPage, ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'audit', undefined, async (invocation) =>
        auditShown(await invocation.audit().entries(toAuditQuery(request.query)), invocation.proofs()),
      ),
  });
}

/** The same for one's own: /tokens/self, /tokens/self/rotate, /tokens/self/audit, DELETE /tokens/self/:id. */
export function registerOwnTokens(app: App, context: HttpContext): void {
  const config = { access: 'token', action: 'inspect', bucket: 'read' } as const;
  const writing = { access: 'token', action: 'administer', bucket: 'write' } as const;

  app.route({
    method: 'GET',
    url: '/tokens/self',
    config,
    schema: { summary: 'Tokens of my tenant', tags: ['tokens'], response: { 200: listReply, ...problems } },
    handler: (request) => list(context, request),
  });

  app.route({
    method: 'POST',
    url: '/tokens/self/rotate',
    config: writing,
    schema: {
      summary: 'Rotate my token: the old one ends at once',
      tags: ['tokens'],
      response: { 200: mintedReply, ...problems },
    },
    handler: (request) => rotate(context, request, ownId(request)),
  });

  app.route({
    method: 'GET',
    url: '/tokens/self/audit',
    config,
    schema: {
      summary: 'What my principal did',
      tags: ['tokens'],
      querystring: auditQuery,
      response: { 200: auditPage, ...problems },
    },
    handler: (request) =>
      invoke(
        context,
        request,
        'audit',
        undefined,
        async (invocation) => {
          const query = { ...toAuditQuery(request.query), principal: callerOf(request).principal };
          return auditShown(await invocation.audit().entries(query), invocation.proofs());
        },
        { whileSuspended: true },
      ),
  });

  app.route({
    method: 'DELETE',
    url: '/tokens/self/:id',
    config: writing,
    schema: { summary: 'Revoke a token of mine', tags: ['tokens'], params: idParams, response: { 200: revoked, ...problems } },
    handler: (request) => revoke(context, request, request.params.id),
  });
}

function list(context: HttpContext, request: FastifyRequest): Promise<z.infer<typeof listReply>> {
  const listed = async (invocation: Invocation): Promise<z.infer<typeof listReply>> => {
    const tokens = invocation.tokens().map(shown);
    invocation.describe({ rowCount: tokens.length });
    return { tokens };
  };
  return invoke(context, request, 'inspect', undefined, listed, { whileSuspended: true });
}

function revoke(context: HttpContext, request: FastifyRequest, id: string): Promise<z.infer<typeof revoked>> {
  return invoke(context, request, 'administer', undefined, async (invocation) => {
    known(invocation, id);
    await invocation.submit({ kind: 'revoke-token', id }, { sync: true });
    return { id, revoked: true as const };
  });
}

function rotate(context: HttpContext, request: FastifyRequest, id: string): Promise<z.infer<typeof mintedReply>> {
  return invoke(context, request, 'administer', undefined, async (invocation) => {
    const drafted = draftRotation({ ...known(invocation, id), secretHash: '' }, context.ids, context.random);
    await invocation.submit({ kind: 'rotate-token', id, token: drafted.record }, { sync: true });
    return { ...shown(drafted.record), token: drafted.token };
  });
}

/** A token that the caller may not know of and none at all look the same. */
function known(invocation: Invocation, id: string): TokenView {
  const token = invocation.tokens().find((view) => view.id === id);
  if (token === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such token');
  return token;
}

function ownId(request: FastifyRequest): string {
  const { tokenId } = callerOf(request);
  if (tokenId === null) throw new ServiceError('REL_NOT_FOUND', 'the caller did not come with a registered token');
  return tokenId;
}

function shown(token: TokenView): z.infer<typeof tokenReply> {
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
