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

const reading = { access: 'admin', action: 'inspect' } as const;
const changing = { access: 'admin', action: 'administer' } as const;
const tags = ['policies'];

const policyShape = z
  .object({ id: z.string(), policy: z.string().describe('Cedar'), installed_at: z.string() })
  .meta({ id: 'Policy' });

const setShape = {
  digest: z.string().describe('SHA-256 of the RFC 8785 JSON of {id: policy}; empty while no policy is installed'),
  epoch: z.int().describe('rises with every change'),
};

const warnings = z.array(z.string()).describe('what was installed though it can hardly be meant');
const changed = policyShape.extend({ ...setShape, warnings }).meta({ id: 'ChangedPolicy' });

const statementsMax = 10;
const principalsMax = 10;

const rowsOrRefusal = z.union([z.int(), z.string()]).describe('rows, or the error that refuses it');
const rehearsed = z
  .object({
    id: z.string(),
    warnings,
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
        before: rowsOrRefusal,
        after: rowsOrRefusal,
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
    ...reading,
    summary: 'Installed policies',
    tags,
    replies: { 200: z.object({ policies: z.array(policyShape), ...setShape }) },
    run: async (invocation) => {
      const desk = invocation.policies();
      const policies = desk.policies().map(describePolicy);
      invocation.describe({ rowCount: policies.length });
      return reply(200, { policies, ...setOf(desk) }, etagOf(desk));
    },
  }),

  route({
    method: 'GET',
    path: '/admin/policies/:id',
    ...reading,
    summary: 'A policy',
    tags,
    params: idParams,
    replies: { 200: policyShape },
    example: { params: { id: 'a policy' } },
    run: async (invocation, { params }) => {
      const desk = invocation.policies();
      return reply(200, describePolicy(desk.policy(params.id)), etagOf(desk));
    },
  }),

  route({
    method: 'PUT',
    path: '/admin/policies/:id',
    ...changing,
    summary: 'Install a policy, or replace it',
    tags,
    params: idParams,
    body: z.strictObject({ policy: z.string().describe('Cedar: one policy or several') }),
    replies: { 200: changed, 201: changed.describe('there was none of this id') },
    example: { params: { id: 'p1' }, body: { policy: 'permit(principal, action, resource);' } },
    run: async (invocation, { params: { id }, body: { policy: text }, request }) => {
      const before = invocation.policies();
      checkMatch(request, before);
      const given = before.checkText(id, text);
      const existed = before.policies().some((policy) => policy.id === id);
      await submitNamed(invocation, { kind: 'put-policy', id, text });
      const desk = invocation.policies();
      const reported: z.infer<typeof changed> = { ...describePolicy(desk.policy(id)), ...setOf(desk), warnings: [...given] };
      return reply(existed ? 200 : 201, reported, etagOf(desk));
    },
  }),

  route({
    method: 'POST',
    path: '/admin/policies/:id/rehearsal',
    ...changing,
    summary: 'What a policy would change, with nothing installed',
    description:
      'Each statement is answered for each principal as the policies stand and as they would with this text, and both answers are compared. The trials stand in the audit as rehearsals, under the correlation id of this request, and cost the principals nothing.',
    tags,
    params: idParams,
    body: z.strictObject({
      policy: z.string().nullable().describe('Cedar; null: as if the policy of this id were deleted'),
      statements: z.array(z.string().min(1)).max(statementsMax).default([]),
      tokens: z
        .array(z.string())
        .max(principalsMax)
        .optional()
        .describe('ids of registry tokens; absent: of the principals whose reads were recorded last'),
      reason: z.string().trim().min(3).max(500).describe('stands in the audit'),
    }),
    replies: { 200: rehearsed },
    example: {
      params: { id: 'p1' },
      body: { policy: 'permit(principal, action, resource);', tokens: [], reason: 'an example' },
    },
    run: async (invocation, { params: { id }, body, context }) => {
      const { policy: text, statements, reason } = body;
      const desk = invocation.policies();
      const warned = text === null ? [] : desk.checkText(id, text);
      if (text === null) desk.policy(id);
      invocation.describe({ template: `rehearse ${id}`, breakGlass: reason });
      const reads = await latestReads(invocation.audit(), context.clock.now());
      const tokens = tokensOf(invocation.tokens(), body.tokens, reads);
      const asItWouldBe = context.gate.rehearsal({ id, text });
      const rehearsing = { context, asItWouldBe, correlationId: invocation.correlationId, policy: id };
      const differences: Difference[] = [];
      const touched: TouchedRead[] = [];
      for (const token of tokens) {
        const caller = callerOf(context, token);
        touched.push(...(await touchedReads(rehearsing, caller, reads)));
        for (const sql of statements) differences.push(await compareAnswers(rehearsing, caller, sql));
      }
      return { id, warnings: [...warned], principals: tokens.map(({ principal }) => principal), touched, differences };
    },
  }),

  route({
    method: 'DELETE',
    path: '/admin/policies/:id',
    ...changing,
    summary: 'Delete a policy',
    tags,
    params: idParams,
    replies: { 200: z.object({ id: z.string(), deleted: z.literal(true), ...setShape }) },
    example: { params: { id: 'a policy' } },
    run: async (invocation, { params: { id }, request }) => {
      checkMatch(request, invocation.policies());
      await submitNamed(invocation, { kind: 'delete-policy', id });
      const desk = invocation.policies();
      return reply(200, { id, deleted: true, ...setOf(desk) }, etagOf(desk));
    },
  }),
];

/** Those that are named; else the newest token of each principal whose reads were recorded last. */
function tokensOf(
  all: readonly TokenView[],
  ids: readonly string[] | undefined,
  reads: readonly AuditEntry[],
): readonly TokenView[] {
  if (ids !== undefined)
    return ids.map((id) => {
      const token = all.find((each) => each.id === id);
      if (token === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such token');
      return token;
    });
  const tokensByPrincipal = new Map<string, TokenView>();
  for (const { principal, tenant } of [...reads].reverse()) {
    const token = all.findLast((each) => each.principal === principal && each.tenant === tenant);
    if (token !== undefined) tokensByPrincipal.set(token.id, token);
    if (tokensByPrincipal.size === principalsMax) break;
  }
  return [...tokensByPrincipal.values()];
}

function setOf({ digest, epoch }: PolicyDeskContract): { digest: string; epoch: number } {
  return { digest, epoch };
}

function describePolicy({ id, text, time }: PolicyView): z.infer<typeof policyShape> {
  return { id, policy: text, installed_at: formatInstant(time) };
}

/** An entity tag is never empty. */
const etagOf = ({ digest }: PolicyDeskContract): { etag: string } => ({ etag: `"${digest || 'none'}"` });

function checkMatch(request: FastifyRequest, desk: PolicyDeskContract): void {
  const header = headerText(request, 'if-match');
  if (header === null) return;
  const digests = header.split(',').map((tag) => /^ *"([0-9a-f]{64}|none)" *$/.exec(tag)?.[1]);
  if (digests.includes(undefined)) throw new ServiceError('REL_INVALID', 'If-Match holds entity tags as ETag has shown them');
  desk.checkUnchanged(digests.map((digest) => (digest === 'none' ? '' : digest!)));
}
