/** /rules: rules that raise alerts, and rules by which rows are fused. Source: specification, "Other HTTP routes". */
import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { testPast } from '../../../planner/continuous/rules/backtest.ts';
import { splitDocuments } from '../../../planner/continuous/sigma/parse-rules.ts';
import { describeRule, putRule, requireRule, ruleInput, ruleView } from '../../verbs/rule-views.ts';
import { documentsMax, importSigma, sigmaInput, sigmaReply, sigmaType, tooManyDocuments } from '../../verbs/sigma-import.ts';
import type { FastifyRequest } from '../context.ts';
import { parseJsonBody } from '../json-body.ts';
import { reply, route, type Route } from '../route.ts';
import { signalOf, submitNamed } from '../invoke.ts';
import { nanoseconds } from '../schemas.ts';

const ruleBody = z.strictObject({ ...ruleInput, purpose: z.string().optional().describe('stated by every run of the rule') });
/** The import as JSON, or the documents of a YAML one: each is a text of its own, since to make one of all takes long. */
async function readSigmaBody(
  sigmaBytes: Buffer,
  { headers: sigmaHeaders }: FastifyRequest,
  yieldTurn: () => Promise<void>,
): Promise<unknown> {
  // To put a large body together, to look at its bytes and to look for its first document take a turn each.
  await yieldTurn();
  if (!isUtf8(sigmaBytes)) throw new ServiceError('REL_INVALID', 'the body is not UTF-8');
  await yieldTurn();
  const sigmaContentType = (sigmaHeaders['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
  const isSigmaJson = sigmaContentType === 'application/json' || /^\s*\{\s*"rules"/.test(sigmaBytes.toString('latin1', 0, 64));
  if (isSigmaJson) return parseJsonBody(sigmaBytes);
  const sigmaRules: string[] = [];
  for (const sigmaDocument of splitDocuments(sigmaBytes)) {
    if (sigmaRules.push(sigmaDocument) > documentsMax) throw tooManyDocuments();
    await yieldTurn();
  }
  return { rules: sigmaRules };
}

const ruleParams = z.object({ id: z.string() });
const pastAlertsReply = z.object({
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
const ruleTags = ['rules'];
/** Thousands of rules in one import. */
const sigmaBytesMax = 16 << 20;
const ruleReading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const ruleChanging = { access: 'token', action: 'schema', bucket: 'write' } as const;
const ruleExample = { name: 'a new rule', condition_sql: 'a statement' };

export const ruleRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/rules',
    ...ruleChanging,
    summary: 'Register a rule',
    description: 'It is parsed and bound under your grant. The same rule again is a no-op; another one of the name is 409.',
    tags: ruleTags,
    body: ruleBody,
    purposeIn: 'body',
    replies: { 200: ruleView.describe('it stood so already'), 201: ruleView },
    example: { body: ruleExample },
    run: async (ruleInvocation, { body: ruleFields, context: httpContext }) => {
      const { rule: storedRule, changed: isRuleChanged } = await putRule(ruleInvocation, httpContext, ruleFields);
      return reply(isRuleChanged ? 201 : 200, describeRule(storedRule));
    },
  }),

  route({
    method: 'POST',
    path: '/rules/sigma',
    ...ruleChanging,
    summary: 'Import Sigma rules',
    description: 'YAML, of several documents too, or `{"rules": […]}`. Good ones stay; a refused one says where and why.',
    tags: ruleTags,
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
    run: async (ruleInvocation, { query: sigmaQuery, body: ruleFields, context: httpContext }) =>
      importSigma(ruleInvocation, httpContext.planner, { rules: ruleFields.rules, objectType: sigmaQuery.object_type }),
  }),

  route({
    method: 'GET',
    path: '/rules',
    ...ruleReading,
    summary: 'Rules of your organisation path and below it, in the order of registration',
    tags: ruleTags,
    replies: { 200: z.object({ rules: z.array(ruleView), total: z.int() }) },
    run: async (ruleInvocation) => {
      const ruleViews = ruleInvocation.snapshot().rules().map(describeRule);
      ruleInvocation.describe({ rowCount: ruleViews.length });
      return { rules: ruleViews, total: ruleViews.length };
    },
  }),

  route({
    method: 'GET',
    path: '/rules/:id',
    ...ruleReading,
    summary: 'A rule, as its newest version has it',
    tags: ruleTags,
    params: ruleParams,
    replies: { 200: ruleView },
    example: { params: { id: 'a rule' } },
    run: async (ruleInvocation, { params: { id: ruleId } }) => describeRule(requireRule(ruleInvocation, ruleId)),
  }),

  route({
    method: 'PUT',
    path: '/rules/:id',
    ...ruleChanging,
    summary: 'Give a rule a new version, which is yours from then on',
    tags: ruleTags,
    params: ruleParams,
    body: ruleBody,
    purposeIn: 'body',
    replies: { 200: ruleView },
    example: { params: { id: 'a rule' }, body: { ...ruleExample, name: 'a changed rule' } },
    run: async (ruleInvocation, { params: { id: ruleId }, body: ruleFields, context: httpContext }) => {
      const { rule: storedRule } = await putRule(ruleInvocation, httpContext, ruleFields, ruleId);
      return describeRule(storedRule);
    },
  }),

  route({
    method: 'POST',
    path: '/rules/:id/test',
    access: 'token',
    action: 'query',
    bucket: 'read',
    summary: 'Judge the past by a detection rule: what it would have raised; nothing is written',
    tags: ruleTags,
    params: ruleParams,
    body: z.strictObject({
      from: z.bigint().or(z.int()).describe('nanoseconds: rows that came after it'),
      to: z.bigint().or(z.int()).describe('nanoseconds: up to and with it'),
      limit: z.int().min(0).max(1_000).default(100).describe('alerts listed, at most'),
      purpose: z.string().optional(),
    }),
    purposeIn: 'body',
    replies: { 200: pastAlertsReply },
    example: { params: { id: 'a rule' }, body: { from: 0, to: 1 } },
    run: async (
      ruleInvocation,
      {
        params: { id: ruleId },
        body: { from: pastFrom, to: pastTo, limit: alertLimit },
        context: { planner: rulePlanner, lookups: lookupTables, yieldTurn },
        request: ruleRequest,
      },
    ) => {
      const ruleSnapshot = ruleInvocation.snapshot();
      const storedRule = requireRule(ruleInvocation, ruleId);
      if (storedRule.definition.kind !== 'detection')
        throw new ServiceError('REL_UNPROCESSABLE', 'the past is judged by detection rules');
      ruleInvocation.describe({ template: 'test rule ?', literals: [ruleId] });
      const { caller: ruleCaller } = ruleInvocation;
      const sigmaOptions = {
        placeholders: (lookupTable: string) => lookupTables.keys(ruleCaller.path, lookupTable),
        turn: yieldTurn,
      };
      const pastAlerts = await testPast(
        {
          planner: rulePlanner,
          caller: ruleCaller,
          snapshot: ruleSnapshot,
          sigma: sigmaOptions,
          signal: signalOf(ruleRequest.raw.socket),
        },
        storedRule,
        {
          from: BigInt(pastFrom),
          to: BigInt(pastTo),
        },
      );
      ruleInvocation.describe({ rowCount: pastAlerts.matches });
      return {
        matches: pastAlerts.matches,
        alerts: pastAlerts.alerts.length,
        first: pastAlerts.alerts.slice(0, alertLimit).map((pastAlert) => ({
          id: pastAlert.id,
          matched_type: pastAlert.match.type,
          matched_pk: pastAlert.match.key,
          matched_system_from: pastAlert.match.systemFrom,
          count: pastAlert.count,
        })),
      };
    },
  }),

  route({
    method: 'DELETE',
    path: '/rules/:id',
    ...ruleChanging,
    summary: 'End a rule: its alerts stay',
    tags: ruleTags,
    params: ruleParams,
    replies: { 200: z.object({ id: z.string(), ended: z.literal(true) }) },
    example: { params: { id: 'a rule' } },
    run: async (ruleInvocation, { params: { id: ruleId } }) => {
      await submitNamed(ruleInvocation, { kind: 'end-rule', id: ruleId });
      return { id: ruleId, ended: true };
    },
  }),
];
