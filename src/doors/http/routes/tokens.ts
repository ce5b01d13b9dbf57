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
import { record } from '../../shared/schema-check.ts';
import type { HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';
import { reply, route, type Route } from '../route.ts';
import { auditPage, auditQuery, auditShown, toAuditQuery } from './audit.ts';

const mintTokenBody = z
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
const mintedTokenReply = z.object({ ...tokenShape, token: z.string().describe('shown once') }).meta({ id: 'MintedToken' });
const tokenListReply = z.object({ tokens: z.array(tokenReply) });
const tokenIdParams = z.object({ id: z.string() });
const revokedTokenReply = z.object({ id: z.string(), revoked: z.literal(true) });

const tokenAdministering = { access: 'admin', action: 'administer' } as const;

export const adminTokenRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/tokens',
    ...tokenAdministering,
    summary: 'Mint a token',
    tags: ['tokens'],
    body: mintTokenBody,
    replies: { 201: mintedTokenReply },
    example: { body: { principal: 'a text' } },
    run: async (tokenInvocation, { body: mintFields, context: httpContext }) => {
      const tokenDraft = draftToken(
        {
          principal: mintFields.principal,
          tenant: mintFields.tenant_id,
          organization: mintFields.organization,
          roles: mintFields.roles,
          attributes: mintFields.attributes,
          purposes: mintFields.purposes,
          expiresInSecs: mintFields.expires_in_secs,
        },
        httpContext.ids,
        httpContext.random,
        httpContext.clock.now(),
      );
      await tokenInvocation.submit({ kind: 'mint-token', token: tokenDraft.record }, { sync: true });
      return reply(201, { ...describeToken(tokenDraft.record), token: tokenDraft.token });
    },
  }),

  route({
    method: 'GET',
    path: '/admin/tokens',
    ...tokenAdministering,
    summary: 'List tokens',
    tags: ['tokens'],
    replies: { 200: tokenListReply },
    handle: ({ request: tokenRequest, context: httpContext }) =>
      invoke(httpContext, tokenRequest, 'inspect', undefined, listTokens, { whileSuspended: true }),
  }),

  route({
    method: 'DELETE',
    path: '/admin/tokens/:id',
    ...tokenAdministering,
    summary: 'Revoke a token',
    tags: ['tokens'],
    params: tokenIdParams,
    replies: { 200: revokedTokenReply },
    example: { params: { id: 'a token' } },
    run: (tokenInvocation, { params: tokenParams }) => revokeToken(tokenInvocation, tokenParams.id),
  }),

  route({
    method: 'POST',
    path: '/admin/tokens/:id/rotate',
    ...tokenAdministering,
    summary: 'Rotate a token',
    tags: ['tokens'],
    params: tokenIdParams,
    replies: { 200: mintedTokenReply },
    example: { params: { id: 'another token' } },
    run: (tokenInvocation, { params: tokenParams, context: httpContext }) =>
      rotateToken(tokenInvocation, httpContext, tokenParams.id),
  }),

  route({
    method: 'GET',
    path: '/admin/tokens/audit',
    ...tokenAdministering,
    summary: 'Audit of all tokens',
    tags: ['tokens'],
    query: auditQuery,
    replies: { 200: auditPage },
    handle: ({ query: tokenAuditQuery, request: tokenRequest, context: httpContext }) =>
      invoke(httpContext, tokenRequest, 'audit', undefined, async (tokenInvocation) =>
        auditShown(await tokenInvocation.audit().entries(toAuditQuery(tokenAuditQuery)), tokenInvocation.proofs()),
      ),
  }),
];

const tokenReading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const tokenChanging = { access: 'token', action: 'administer', bucket: 'write' } as const;

/** Routes for the caller's own tokens. */
export const ownTokenRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/tokens/self',
    ...tokenReading,
    summary: 'Tokens of my tenant',
    tags: ['tokens'],
    replies: { 200: tokenListReply },
    whileSuspended: true,
    run: listTokens,
  }),

  route({
    method: 'POST',
    path: '/tokens/self/rotate',
    ...tokenChanging,
    summary: 'Rotate my token: the old one ends at once',
    tags: ['tokens'],
    replies: { 200: mintedTokenReply },
    run: async (tokenInvocation, { context: httpContext }) =>
      rotateToken(tokenInvocation, httpContext, ownTokenId(tokenInvocation.caller)),
  }),

  route({
    method: 'GET',
    path: '/tokens/self/audit',
    ...tokenReading,
    summary: 'What my principal did',
    tags: ['tokens'],
    query: auditQuery,
    replies: { 200: auditPage },
    handle: ({ query: tokenAuditQuery, request: tokenRequest, context: httpContext }) =>
      invoke(
        httpContext,
        tokenRequest,
        'audit',
        undefined,
        async (tokenInvocation) => {
          const ownAuditQuery = { ...toAuditQuery(tokenAuditQuery), principal: tokenInvocation.caller.principal };
          return auditShown(await tokenInvocation.audit().entries(ownAuditQuery), tokenInvocation.proofs());
        },
        { whileSuspended: true },
      ),
  }),

  route({
    method: 'DELETE',
    path: '/tokens/self/:id',
    ...tokenChanging,
    summary: 'Revoke a token of mine',
    tags: ['tokens'],
    params: tokenIdParams,
    replies: { 200: revokedTokenReply },
    example: { params: { id: 'a token of mine' } },
    run: (tokenInvocation, { params: tokenParams }) => revokeToken(tokenInvocation, tokenParams.id),
  }),
];

async function listTokens(tokenInvocation: Invocation): Promise<z.infer<typeof tokenListReply>> {
  const tokenViews = tokenInvocation.tokens().map(describeToken);
  tokenInvocation.describe({ rowCount: tokenViews.length });
  return { tokens: tokenViews };
}

async function revokeToken(tokenInvocation: Invocation, tokenId: string): Promise<z.infer<typeof revokedTokenReply>> {
  requireToken(tokenInvocation, tokenId);
  await tokenInvocation.submit({ kind: 'revoke-token', id: tokenId }, { sync: true });
  return { id: tokenId, revoked: true };
}

async function rotateToken(
  tokenInvocation: Invocation,
  { ids: tokenIds, random: tokenRandom }: HttpContext,
  tokenId: string,
): Promise<z.infer<typeof mintedTokenReply>> {
  const rotationDraft = draftRotation({ ...requireToken(tokenInvocation, tokenId), secretHash: '' }, tokenIds, tokenRandom);
  await tokenInvocation.submit({ kind: 'rotate-token', id: tokenId, token: rotationDraft.record }, { sync: true });
  return { ...describeToken(rotationDraft.record), token: rotationDraft.token };
}

/** A token that the caller may not see is reported like one that does not exist. */
function requireToken(tokenInvocation: Invocation, tokenId: string): TokenView {
  const registryToken = tokenInvocation.tokens().find((tokenView) => tokenView.id === tokenId);
  if (registryToken === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such token');
  return registryToken;
}

function ownTokenId({ tokenId: callerTokenId }: Caller): string {
  if (callerTokenId === null) throw new ServiceError('REL_NOT_FOUND', 'the caller has no registered token');
  return callerTokenId;
}

function describeToken(tokenView: TokenView): z.infer<typeof tokenReply> {
  return {
    id: tokenView.id,
    tenant_id: tokenView.tenant,
    organization: tokenView.organization,
    principal: tokenView.principal,
    roles: [...tokenView.roles],
    purposes: [...tokenView.purposes],
    expires_at: tokenView.expiresAt === FOREVER ? null : formatInstant(tokenView.expiresAt),
  };
}
