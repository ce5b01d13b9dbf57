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

export function describeRule({ id, version, definition, author, owner }: RuleRecord): z.output<typeof ruleView> {
  const detection = definition.kind === 'detection' ? definition : null;
  const enrich = definition.kind === 'enrich' ? definition : null;
  return {
    id,
    version,
    name: definition.name,
    kind: definition.kind,
    object_type: definition.object_type,
    language: detection?.language ?? null,
    condition_sql: detection?.condition ?? null,
    severity: detection?.severity ?? null,
    enabled: detection?.enabled ?? true,
    dedupe_by: [...(detection?.dedupe_by ?? [])],
    window_secs: detection?.window_secs ?? null,
    interval_secs: detection?.interval_secs ?? null,
    purpose: detection?.purpose ?? null,
    field: enrich?.field ?? null,
    keep: enrich?.keep ?? null,
    principal: author.principal,
    organization: owner,
  };
}

/** The rule as it stands after the request, and whether that changed anything. `changes`: the rule that gets a version. */
export async function putRule(
  invocation: Invocation,
  { planner, ids }: { readonly planner: PlannerContract; readonly ids: { next(): string } },
  input: RuleInput,
  changes?: string,
): Promise<{ readonly rule: RuleRecord; readonly changed: boolean }> {
  const snapshot = invocation.snapshot();
  const definition = definitionOf(input, snapshot.purpose);
  invocation.describe({ template: 'rule ?', literals: [definition.name], ...describedType(definition) });
  // A condition that is too long is not parsed.
  checkDefinition(definition);
  if (definition.kind === 'detection') await checkCondition(planner, snapshot, definition);
  const outcome = await invocation.submit(
    {
      kind: 'put-rule',
      id: ids.next(),
      definition,
      author: { credential: 'none', token: null },
      ...(changes !== undefined && { changes }),
    },
    { sync: true },
  );
  return { rule: requireRule(invocation, outcome.ids[0]!), changed: outcome.changed };
}

export function requireRule(invocation: Invocation, id: string): RuleRecord {
  const rule = invocation
    .snapshot()
    .rules()
    .find((each) => each.id === id);
  if (rule === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such rule');
  return rule;
}

const describedType = ({ object_type: type }: RuleDefinition): { readonly objectType?: string } =>
  type === null ? {} : { objectType: type };

function definitionOf(input: RuleInput, purpose: string | null): RuleDefinition {
  const { name, kind, object_type: type, condition_sql: condition, field, keep } = input;
  const need = <T>(value: T | undefined, member: string): T => {
    if (value === undefined) throw new ServiceError('REL_INVALID', `${member} is missing: a rule of the kind ${kind} has one`);
    return value;
  };
  if (kind === 'enrich') {
    return {
      kind,
      name,
      object_type: need(type, 'object_type'),
      field: need(field, 'field'),
      keep: need(keep, 'keep'),
    };
  }
  return {
    kind,
    name,
    language: 'sql',
    condition: need(condition, 'condition_sql'),
    object_type: type ?? null,
    severity: input.severity,
    enabled: input.enabled,
    dedupe_by: input.dedupe_by,
    window_secs: input.window_secs,
    interval_secs: input.interval_secs,
    purpose,
  };
}
