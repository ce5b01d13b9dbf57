/** Rules as tools. Source: specification, "Tools". */
import { z } from 'zod';
import { describeRule, putRule, ruleInput, ruleView } from './rule-views.ts';
import { importSigma, sigmaInput, sigmaReply, sigmaType } from './sigma-import.ts';
import { verb } from './verb.ts';

export const createRule = verb({
  name: 'create_rule',
  description:
    'Register a rule that raises an Alert for each row that matches its condition, or by which rows are fused (kind enrich). It runs by your grants as they are then.',
  input: z.object(ruleInput),
  output: z.object({ id: z.string(), version: z.int(), changed: z.boolean() }),
  action: 'schema',
  units: 1,
  purpose: 'required',
  bucket: 'write',
  tool: { title: 'Create a rule', readOnly: false, idempotent: true },
  contents: ['condition_sql'],
  example: { name: 'a new rule', condition_sql: 'SELECT * FROM MemoryItem' },
  run: async ({ invocation: ruleInvocation, parts: verbDependencies }, createRuleInput) => {
    const { rule: createdRule, changed: isRuleChanged } = await putRule(ruleInvocation, verbDependencies, createRuleInput);
    return { id: createdRule.id, version: createdRule.version, changed: isRuleChanged };
  },
});

export const listRules = verb({
  name: 'list_rules',
  description: 'Rules of your organisation path and below it, in the order of registration.',
  input: z.object({ limit: z.int().min(1).max(1_000).default(100) }),
  output: z.object({ rules: z.array(ruleView), total: z.int() }),
  action: 'inspect',
  units: 0,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Rules', readOnly: true },
  example: {},
  run: async ({ invocation: ruleInvocation }, { limit: ruleLimit }) => {
    const storedRules = ruleInvocation.snapshot().rules();
    return { rules: storedRules.slice(0, ruleLimit).map(describeRule), total: storedRules.length };
  },
});

export const importSigmaRules = verb({
  name: 'import_sigma',
  description:
    'Import Sigma rules: each accepted one raises an Alert for rows of object_type that match it; a refused one is listed with the place and the reason. Importing the same rules again changes nothing.',
  input: z.object({ ...sigmaInput, object_type: sigmaType }),
  output: sigmaReply,
  action: 'schema',
  units: 1,
  purpose: 'required',
  bucket: 'write',
  tool: { title: 'Import Sigma rules', readOnly: false, idempotent: true },
  contents: ['rules'],
  example: { rules: 'title: a Sigma rule\nlogsource: {}\ndetection: {s: {user: root}, condition: s}' },
  run: async ({ invocation: ruleInvocation, parts: verbDependencies }, { rules: storedRules, object_type: sigmaObjectType }) =>
    importSigma(ruleInvocation, verbDependencies.planner, { rules: storedRules, objectType: sigmaObjectType }),
});
