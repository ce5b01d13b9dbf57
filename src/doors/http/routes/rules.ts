/** /rules: rules that raise alerts, and rules by which rows are fused. Source: specification, "Other HTTP routes". */
import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { testPast } from '../../../planner/continuous/rules/backtest.ts';
import { splitDocuments } from '../../../planner/continuous/sigma/parse-rules.ts';
import { describeRule, putRule, requireRule, ruleInput, ruleView } from '../../schemas/rule-views.ts';
import { documentsMax, importSigma, sigmaInput, sigmaReply, sigmaType, tooManyDocuments } from '../../schemas/sigma-import.ts';
import type { FastifyRequest } from '../context.ts';
import { parseJsonBody } from '../json-body.ts';
import { reply, route, type Route } from '../route.ts';
import { signalOf, submitNamed } from '../invoke.ts';
import { nanoseconds } from '../schemas.ts';

const body = z.strictObject({ ...ruleInput, purpose: z.string().optional().describe('stated by every run of the rule') });
/** The import as JSON, or the documents of a YAML one: each is a text of its own, since to make one of all takes long. */
async function readSigmaBody(given: Buffer, { headers }: FastifyRequest, yieldTurn: () => Promise<void>): Promise<unknown> {
  // To put a large body together, to look at its bytes and to look for its first document take a turn each.
  await yieldTurn();
  if (!isUtf8(given)) throw new ServiceError('REL_INVALID', 'the body is not UTF-8');
  await yieldTurn();
  const type = (headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
  const isJson = type === 'application/json' || /^\s*\{\s*"rules"/.test(given.toString('latin1', 0, 64));
  if (isJson) return parseJsonBody(given);
  const rules: string[] = [];
  for (const document of splitDocuments(given)) {
    if (rules.push(document) > documentsMax) throw tooManyDocuments();
    await yieldTurn();
  }
  return { rules };
}

const params = z.object({ id: z.string() });
const pastReply = z.object({
  matches: z.int(),
  alerts: z.int(),
  first: z.array(
    z.object({
      id: z.string(),
      matched_type: z.string().nullable(),
      matched_pk: z.string().nullable(),
      matched_system_from: nanoseconds.nullable(),
      count: z.int(),
    }),
  ),
});
const tags = ['rules'];
/** Thousands of rules in one import. */
const sigmaBytesMax = 16 << 20;
const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const changing = { access: 'token', action: 'schema', bucket: 'write' } as const;
const example = { name: 'a new rule', condition_sql: 'a statement' };

export const ruleRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/rules',
    ...changing,
    summary: 'Register a rule',
    description: 'It is parsed and bound under your grant. The same rule again is a no-op; another one of the name is 409.',
    tags,
    body,
    purposeIn: 'body',
    replies: { 200: ruleView.describe('it stood so already'), 201: ruleView },
    example: { body: example },
    run: async (invocation, { body: given, context }) => {
      const { rule, changed } = await putRule(invocation, context, given);
      return reply(changed ? 201 : 200, describeRule(rule));
    },
  }),

  route({
    method: 'POST',
    path: '/rules/sigma',
    ...changing,
    summary: 'Import Sigma rules',
    description: 'YAML, of several documents too, or `{"rules": […]}`. Good ones stay; a refused one says where and why.',
    tags,
    query: z.object({ object_type: sigmaType }),
    body: z.strictObject({ ...sigmaInput, purpose: z.string().optional().describe('stated by every run of the rules') }),
    reads: readSigmaBody,
    bodyBytesMax: sigmaBytesMax,
    consumes: ['application/json', 'application/yaml'],
    purposeIn: 'body',
    replies: { 200: sigmaReply },
    example: {
      body: 'title: a Sigma rule\nlogsource: {}\ndetection: {s: {user: root}, condition: s}',
      headers: { 'content-type': 'application/yaml' },
    },
    run: async (invocation, { query, body: given, context }) =>
      importSigma(invocation, context.planner, { rules: given.rules, objectType: query.object_type }),
  }),

  route({
    method: 'GET',
    path: '/rules',
    ...reading,
    summary: 'Rules of your organisation path and below it, in the order of registration',
    tags,
    replies: { 200: z.object({ rules: z.array(ruleView), total: z.int() }) },
    run: async (invocation) => {
      const rules = invocation.snapshot().rules().map(describeRule);
      invocation.describe({ rowCount: rules.length });
      return { rules, total: rules.length };
    },
  }),

  route({
    method: 'GET',
    path: '/rules/:id',
    ...reading,
    summary: 'A rule, as its newest version has it',
    tags,
    params,
    replies: { 200: ruleView },
    example: { params: { id: 'a rule' } },
    run: async (invocation, { params: { id } }) => describeRule(requireRule(invocation, id)),
  }),

  route({
    method: 'PUT',
    path: '/rules/:id',
    ...changing,
    summary: 'Give a rule a new version, which is yours from then on',
    tags,
    params,
    body,
    purposeIn: 'body',
    replies: { 200: ruleView },
    example: { params: { id: 'a rule' }, body: { ...example, name: 'a changed rule' } },
    run: async (invocation, { params: { id }, body: given, context }) => {
      const { rule } = await putRule(invocation, context, given, id);
      return describeRule(rule);
    },
  }),

  route({
    method: 'POST',
    path: '/rules/:id/test',
    access: 'token',
    action: 'query',
    bucket: 'read',
    summary: 'Judge the past by a detection rule: what it would have raised; nothing is written',
    tags,
    params,
    body: z.strictObject({
      from: z.bigint().or(z.int()).describe('nanoseconds: rows that came after it'),
      to: z.bigint().or(z.int()).describe('nanoseconds: up to and with it'),
      limit: z.int().min(0).max(1_000).default(100).describe('alerts listed, at most'),
      purpose: z.string().optional(),
    }),
    purposeIn: 'body',
    replies: { 200: pastReply },
    example: { params: { id: 'a rule' }, body: { from: 0, to: 1 } },
    run: async (invocation, { params: { id }, body: { from, to, limit }, context: { planner, lookups, yieldTurn }, request }) => {
      const snapshot = invocation.snapshot();
      const rule = requireRule(invocation, id);
      if (rule.definition.kind !== 'detection')
        throw new ServiceError('REL_UNPROCESSABLE', 'the past is judged by detection rules');
      invocation.describe({ template: 'test rule ?', literals: [id] });
      const { caller } = invocation;
      const sigma = { placeholders: (table: string) => lookups.keys(caller.path, table), turn: yieldTurn };
      const past = await testPast({ planner, caller, snapshot, sigma, signal: signalOf(request.raw.socket) }, rule, {
        from: BigInt(from),
        to: BigInt(to),
      });
      invocation.describe({ rowCount: past.matches });
      return {
        matches: past.matches,
        alerts: past.alerts.length,
        first: past.alerts.slice(0, limit).map((alert) => ({
          id: alert.id,
          matched_type: alert.match.type,
          matched_pk: alert.match.key,
          matched_system_from: alert.match.systemFrom,
          count: alert.count,
        })),
      };
    },
  }),

  route({
    method: 'DELETE',
    path: '/rules/:id',
    ...changing,
    summary: 'End a rule: its alerts stay',
    tags,
    params,
    replies: { 200: z.object({ id: z.string(), ended: z.literal(true) }) },
    example: { params: { id: 'a rule' } },
    run: async (invocation, { params: { id } }) => {
      await submitNamed(invocation, { kind: 'end-rule', id });
      return { id, ended: true };
    },
  }),
];
