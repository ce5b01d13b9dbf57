/** Rules as callers write and read them, on routes and as tools. */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import { checkDefinition, type RuleDefinition, type RuleRecord, severities } from '../../projections/rules/rule.ts';
import { checkCondition } from '../../planner/continuous/rules/rule-condition.ts';
import type { PlannerContract } from '../../planner/planner-contract.ts';

export const ruleInput = {
  name: z.string().describe('unique within the organisation path'),
  kind: z.enum(['detection', 'enrich']).default('detection'),
  condition_sql: z.string().optional().describe('a SELECT, each row of which is a match, or a condition on rows of object_type'),
  object_type: z.string().optional(),
  severity: z.enum(severities).default('medium'),
  enabled: z.boolean().default(true),
  dedupe_by: z.array(z.string()).max(16).default([]).describe('columns: matches with the same values count up one alert'),
  window_secs: z.int().min(1).max(31_536_000).default(3_600).describe('how long they do'),
  interval_secs: z
    .int()
    .min(1)
    .max(31_536_000)
    .default(60)
    .describe('how often a condition is judged that no single row decides'),
  field: z.string().optional().describe('enrich: the column whose value is chosen where rows are fused'),
  keep: z.string().optional().describe('enrich: newest, longest, most_frequent or source:<x>'),
};

export type RuleInput = z.output<z.ZodObject<typeof ruleInput>>;

export const ruleView = z
  .object({
    id: z.string(),
    version: z.int(),
    name: z.string(),
    kind: z.enum(['detection', 'enrich']),
    object_type: z.string().nullable(),
    language: z.enum(['sql', 'sigma']).nullable(),
    condition_sql: z.string().nullable(),
    severity: z.string().nullable(),
    enabled: z.boolean(),
    dedupe_by: z.array(z.string()),
    window_secs: z.int().nullable(),
    interval_secs: z.int().nullable(),
    purpose: z.string().nullable(),
    field: z.string().nullable(),
    keep: z.string().nullable(),
    principal: z.string().describe('who made this version: it is judged by the grants that they have now'),
    organization: z.string().nullable(),
  })
  .meta({ id: 'Rule' });

export function describeRule({
  id: ruleId,
  version: ruleVersion,
  definition: ruleDefinition,
  author: ruleAuthor,
  owner: ruleOwner,
}: RuleRecord): z.output<typeof ruleView> {
  const detectionRule = ruleDefinition.kind === 'detection' ? ruleDefinition : null;
  const enrichRule = ruleDefinition.kind === 'enrich' ? ruleDefinition : null;
  return {
    id: ruleId,
    version: ruleVersion,
    name: ruleDefinition.name,
    kind: ruleDefinition.kind,
    object_type: ruleDefinition.object_type,
    language: detectionRule?.language ?? null,
    condition_sql: detectionRule?.condition ?? null,
    severity: detectionRule?.severity ?? null,
    enabled: detectionRule?.enabled ?? true,
    dedupe_by: [...(detectionRule?.dedupe_by ?? [])],
    window_secs: detectionRule?.window_secs ?? null,
    interval_secs: detectionRule?.interval_secs ?? null,
    purpose: detectionRule?.purpose ?? null,
    field: enrichRule?.field ?? null,
    keep: enrichRule?.keep ?? null,
    principal: ruleAuthor.principal,
    organization: ruleOwner,
  };
}

/** The rule as it stands after the request, and whether that changed anything. `changedRuleId`: the rule that gets a version. */
export async function putRule(
  ruleInvocation: Invocation,
  { planner: rulePlanner, ids: ruleIds }: { readonly planner: PlannerContract; readonly ids: { next(): string } },
  ruleFields: RuleInput,
  changedRuleId?: string,
): Promise<{ readonly rule: RuleRecord; readonly changed: boolean }> {
  const ruleSnapshot = ruleInvocation.snapshot();
  const ruleDefinition = ruleDefinitionOf(ruleFields, ruleSnapshot.purpose);
  ruleInvocation.describe({ template: 'rule ?', literals: [ruleDefinition.name], ...ruleObjectType(ruleDefinition) });
  // A condition that is too long is not parsed.
  checkDefinition(ruleDefinition);
  if (ruleDefinition.kind === 'detection') await checkCondition(rulePlanner, ruleSnapshot, ruleDefinition);
  const ruleOutcome = await ruleInvocation.submit(
    {
      kind: 'put-rule',
      id: ruleIds.next(),
      definition: ruleDefinition,
      author: { credential: 'none', token: null },
      ...(changedRuleId !== undefined && { changes: changedRuleId }),
    },
    { sync: true },
  );
  return { rule: requireRule(ruleInvocation, ruleOutcome.ids[0]!), changed: ruleOutcome.changed };
}

export function requireRule(ruleInvocation: Invocation, ruleId: string): RuleRecord {
  const requiredRule = ruleInvocation
    .snapshot()
    .rules()
    .find((ruleRecord) => ruleRecord.id === ruleId);
  if (requiredRule === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such rule');
  return requiredRule;
}

const ruleObjectType = ({ object_type: judgedType }: RuleDefinition): { readonly objectType?: string } =>
  judgedType === null ? {} : { objectType: judgedType };

function ruleDefinitionOf(ruleFields: RuleInput, rulePurpose: string | null): RuleDefinition {
  const {
    name: ruleName,
    kind: ruleKind,
    object_type: judgedType,
    condition_sql: conditionSql,
    field: fusedField,
    keep: keptValue,
  } = ruleFields;
  const needMember = <T>(memberValue: T | undefined, ruleMember: string): T => {
    if (memberValue === undefined)
      throw new ServiceError('REL_INVALID', `${ruleMember} is missing: a rule of the kind ${ruleKind} has one`);
    return memberValue;
  };
  if (ruleKind === 'enrich') {
    return {
      kind: ruleKind,
      name: ruleName,
      object_type: needMember(judgedType, 'object_type'),
      field: needMember(fusedField, 'field'),
      keep: needMember(keptValue, 'keep'),
    };
  }
  return {
    kind: ruleKind,
    name: ruleName,
    language: 'sql',
    condition: needMember(conditionSql, 'condition_sql'),
    object_type: judgedType ?? null,
    severity: ruleFields.severity,
    enabled: ruleFields.enabled,
    dedupe_by: ruleFields.dedupe_by,
    window_secs: ruleFields.window_secs,
    interval_secs: ruleFields.interval_secs,
    purpose: rulePurpose,
  };
}
