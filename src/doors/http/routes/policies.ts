/**
 * Access policies, /admin/policies: Cedar texts by id. Without any, a known caller works inside its own tenant; with
 * the first, everything that no policy permits is denied; without the last, it is as before. A set that was read is changed only
 * as it was read with `If-Match`.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { PolicyDeskContract, PolicyView } from '../../../governance/desk-contract.ts';
import type { TokenView } from '../../../governance/gate-contract.ts';
import type { AuditEntry } from '../../../projections/access-paths.ts';
import { formatInstant } from '../../../log/values/timestamp.ts';
import type { FastifyRequest } from '../context.ts';
import { headerText } from '../request-headers.ts';
import { submitNamed } from '../invoke.ts';
import {
  callerOf,
  compareAnswers,
  type Difference,
  latestReads,
  rowsCompared,
  type TouchedRead,
  touchedReads,
} from '../policy-rehearsal.ts';
import { reply, route, type Route } from '../route.ts';
import { idParams } from '../tenant-schemas.ts';

const policyReading = { access: 'admin', action: 'inspect' } as const;
const policyChanging = { access: 'admin', action: 'administer' } as const;
const policyTags = ['policies'];

const policyShape = z
  .object({ id: z.string(), policy: z.string().describe('Cedar'), installed_at: z.string() })
  .meta({ id: 'Policy' });

const policySetShape = {
  digest: z.string().describe('SHA-256 of the RFC 8785 JSON of {id: policy}; empty while no policy is installed'),
  epoch: z.int().describe('rises with every change'),
};

const policyWarnings = z.array(z.string()).describe('what was installed though it can hardly be meant');
const changedPolicy = policyShape.extend({ ...policySetShape, warnings: policyWarnings }).meta({ id: 'ChangedPolicy' });

const rehearsalStatementsMax = 10;
const rehearsalPrincipalsMax = 10;

const rehearsedOutcome = z.union([z.int(), z.string()]).describe('rows, or the error that refuses it');
const rehearsalReply = z
  .object({
    id: z.string(),
    warnings: policyWarnings,
    principals: z.array(z.string()),
    touched: z
      .array(
        z.object({
          principal: z.string(),
          object_type: z.string(),
          reads: z.int().describe('of the last 1,000 recorded'),
          before: z.string(),
          after: z.string(),
          columns: z.array(z.string()).describe('that those reads name and that would be masked otherwise'),
        }),
      )
      .describe('recorded reads that would be decided otherwise'),
    differences: z.array(
      z.object({
        principal: z.string(),
        statement: z.string(),
        before: rehearsedOutcome,
        after: rehearsedOutcome,
        appear: z.array(z.string()).describe('rows by their key, the first 100'),
        vanish: z.array(z.string()),
        changed: z.array(z.object({ row: z.string(), columns: z.array(z.string()) })).describe('masked otherwise'),
        counts: z.object({ appear: z.int(), vanish: z.int(), changed: z.int() }),
        cut: z.boolean().describe(`only the first ${rowsCompared} rows of an answer are compared`),
      }),
    ),
  })
  .meta({ id: 'Rehearsal' });

export const policyRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/admin/policies',
    ...policyReading,
    summary: 'Installed policies',
    tags: policyTags,
    replies: { 200: z.object({ policies: z.array(policyShape), ...policySetShape }) },
    run: async (policyInvocation) => {
      const policyDesk = policyInvocation.policies();
      const policyViews = policyDesk.policies().map(describePolicy);
      policyInvocation.describe({ rowCount: policyViews.length });
      return reply(200, { policies: policyViews, ...policySet(policyDesk) }, policySetTag(policyDesk));
    },
  }),

  route({
    method: 'GET',
    path: '/admin/policies/:id',
    ...policyReading,
    summary: 'A policy',
    tags: policyTags,
    params: idParams,
    replies: { 200: policyShape },
    example: { params: { id: 'a policy' } },
    run: async (policyInvocation, { params: policyParams }) => {
      const policyDesk = policyInvocation.policies();
      return reply(200, describePolicy(policyDesk.policy(policyParams.id)), policySetTag(policyDesk));
    },
  }),

  route({
    method: 'PUT',
    path: '/admin/policies/:id',
    ...policyChanging,
    summary: 'Install a policy, or replace it',
    tags: policyTags,
    params: idParams,
    body: z.strictObject({ policy: z.string().describe('Cedar: one policy or several') }),
    replies: { 200: changedPolicy, 201: changedPolicy.describe('there was none of this id') },
    example: { params: { id: 'p1' }, body: { policy: 'permit(principal, action, resource);' } },
    run: async (policyInvocation, { params: { id: policyId }, body: { policy: policyText }, request: policyRequest }) => {
      const deskBefore = policyInvocation.policies();
      checkPolicyMatch(policyRequest, deskBefore);
      const textWarnings = deskBefore.checkText(policyId, policyText);
      const hasReplaced = deskBefore.policies().some((installedPolicy) => installedPolicy.id === policyId);
      await submitNamed(policyInvocation, { kind: 'put-policy', id: policyId, text: policyText });
      const policyDesk = policyInvocation.policies();
      const changedReply: z.infer<typeof changedPolicy> = {
        ...describePolicy(policyDesk.policy(policyId)),
        ...policySet(policyDesk),
        warnings: [...textWarnings],
      };
      return reply(hasReplaced ? 200 : 201, changedReply, policySetTag(policyDesk));
    },
  }),

  route({
    method: 'POST',
    path: '/admin/policies/:id/rehearsal',
    ...policyChanging,
    summary: 'What a policy would change, with nothing installed',
    description:
      'Each statement is answered for each principal as the policies stand and as they would with this text, and both answers are compared. The trials stand in the audit as rehearsals, under the correlation id of this request, and cost the principals nothing.',
    tags: policyTags,
    params: idParams,
    body: z.strictObject({
      policy: z.string().nullable().describe('Cedar; null: as if the policy of this id were deleted'),
      statements: z.array(z.string().min(1)).max(rehearsalStatementsMax).default([]),
      tokens: z
        .array(z.string())
        .max(rehearsalPrincipalsMax)
        .optional()
        .describe('ids of registry tokens; absent: of the principals whose reads were recorded last'),
      reason: z.string().trim().min(3).max(500).describe('stands in the audit'),
    }),
    replies: { 200: rehearsalReply },
    example: {
      params: { id: 'p1' },
      body: { policy: 'permit(principal, action, resource);', tokens: [], reason: 'an example' },
    },
    run: async (policyInvocation, { params: { id: policyId }, body: rehearsalBody, context: httpContext }) => {
      const { policy: policyText, statements: rehearsedStatements, reason: rehearsalReason } = rehearsalBody;
      const policyDesk = policyInvocation.policies();
      const rehearsalWarnings = policyText === null ? [] : policyDesk.checkText(policyId, policyText);
      if (policyText === null) policyDesk.policy(policyId);
      policyInvocation.describe({ template: `rehearse ${policyId}`, breakGlass: rehearsalReason });
      const recordedReads = await latestReads(policyInvocation.audit(), httpContext.clock.now());
      const tokensToRehearse = rehearsalTokens(policyInvocation.tokens(), rehearsalBody.tokens, recordedReads);
      const rehearsalGate = httpContext.gate.rehearsal({ id: policyId, text: policyText });
      const policyRehearsal = {
        context: httpContext,
        asItWouldBe: rehearsalGate,
        correlationId: policyInvocation.correlationId,
        policy: policyId,
      };
      const answerDifferences: Difference[] = [];
      const touchedByPolicy: TouchedRead[] = [];
      for (const rehearsedToken of tokensToRehearse) {
        const rehearsedCaller = callerOf(httpContext, rehearsedToken);
        touchedByPolicy.push(...(await touchedReads(policyRehearsal, rehearsedCaller, recordedReads)));
        for (const rehearsedSql of rehearsedStatements)
          answerDifferences.push(await compareAnswers(policyRehearsal, rehearsedCaller, rehearsedSql));
      }
      return {
        id: policyId,
        warnings: [...rehearsalWarnings],
        principals: tokensToRehearse.map(({ principal: rehearsedPrincipal }) => rehearsedPrincipal),
        touched: touchedByPolicy,
        differences: answerDifferences,
      };
    },
  }),

  route({
    method: 'DELETE',
    path: '/admin/policies/:id',
    ...policyChanging,
    summary: 'Delete a policy',
    tags: policyTags,
    params: idParams,
    replies: { 200: z.object({ id: z.string(), deleted: z.literal(true), ...policySetShape }) },
    example: { params: { id: 'a policy' } },
    run: async (policyInvocation, { params: { id: policyId }, request: policyRequest }) => {
      checkPolicyMatch(policyRequest, policyInvocation.policies());
      await submitNamed(policyInvocation, { kind: 'delete-policy', id: policyId });
      const policyDesk = policyInvocation.policies();
      return reply(200, { id: policyId, deleted: true, ...policySet(policyDesk) }, policySetTag(policyDesk));
    },
  }),
];

/** Those that are named; else the newest token of each principal whose reads were recorded last. */
function rehearsalTokens(
  registryTokens: readonly TokenView[],
  tokenIds: readonly string[] | undefined,
  recordedReads: readonly AuditEntry[],
): readonly TokenView[] {
  if (tokenIds !== undefined)
    return tokenIds.map((tokenId) => {
      const registryToken = registryTokens.find((tokenView) => tokenView.id === tokenId);
      if (registryToken === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such token');
      return registryToken;
    });
  const tokensByPrincipal = new Map<string, TokenView>();
  for (const { principal: readPrincipal, tenant: readTenant } of [...recordedReads].reverse()) {
    const registryToken = registryTokens.findLast(
      (tokenView) => tokenView.principal === readPrincipal && tokenView.tenant === readTenant,
    );
    if (registryToken !== undefined) tokensByPrincipal.set(registryToken.id, registryToken);
    if (tokensByPrincipal.size === rehearsalPrincipalsMax) break;
  }
  return [...tokensByPrincipal.values()];
}

function policySet({ digest: setDigest, epoch: setEpoch }: PolicyDeskContract): { digest: string; epoch: number } {
  return { digest: setDigest, epoch: setEpoch };
}

function describePolicy({ id: policyId, text: policyText, time: installedAt }: PolicyView): z.infer<typeof policyShape> {
  return { id: policyId, policy: policyText, installed_at: formatInstant(installedAt) };
}

/** An entity tag is never empty. */
const policySetTag = ({ digest: setDigest }: PolicyDeskContract): { etag: string } => ({ etag: `"${setDigest || 'none'}"` });

function checkPolicyMatch(policyRequest: FastifyRequest, policyDesk: PolicyDeskContract): void {
  const ifMatch = headerText(policyRequest, 'if-match');
  if (ifMatch === null) return;
  const matchedDigests = ifMatch.split(',').map((digestTag) => /^ *"([0-9a-f]{64}|none)" *$/.exec(digestTag)?.[1]);
  if (matchedDigests.includes(undefined))
    throw new ServiceError('REL_INVALID', 'If-Match holds entity tags as ETag has shown them');
  policyDesk.checkUnchanged(matchedDigests.map((matchedDigest) => (matchedDigest === 'none' ? '' : matchedDigest!)));
}
