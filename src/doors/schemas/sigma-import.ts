/** Imports Sigma rules, on a route and as a tool: good ones stay, whatever is wrong with the others. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { PlannerDoor } from '../../planner/planner-contract.ts';
import { record } from './schema-check.ts';
import { splitDocuments } from '../../planner/continuous/sigma/parse-rules.ts';
import { exactJson } from '../shared/write-exact-json.ts';

import type { DetectionDefinition, RuleRecord } from '../../projections/rules/rule.ts';

/** Documents of one import. */
export const documentsMax = 10_000;

export function tooManyDocuments(): ServiceError {
  return new ServiceError('REL_INVALID', `an import has at most ${documentsMax} rules`);
}

const defaultType = 'Event';

export const sigmaInput = {
  rules: z
    .union([z.string(), z.array(z.union([z.string(), record(z.unknown())])).max(documentsMax)])
    .describe('YAML, of several documents too, or a list of rules as YAML or as objects'),
};

export const sigmaType = z.string().default(defaultType).describe('the type whose rows are judged');

export const sigmaReply = z.object({
  imported: z.int(),
  updated: z.int(),
  unchanged: z.int(),
  rejected: z.int(),
  results: z.array(
    z.object({
      id: z.string().nullable().describe('of the Sigma rule, as it states it'),
      title: z.string().nullable(),
      status: z.enum(['imported', 'updated', 'unchanged', 'rejected']),
      rule_id: z.string().nullable().describe('by which /rules knows it'),
      error: z.object({ code: z.string(), path: z.string(), detail: z.string() }).optional(),
    }),
  ),
});

type Reply = z.output<typeof sigmaReply>;
type Result = Reply['results'][number];

export interface SigmaImport {
  readonly rules: string | readonly (string | Readonly<Record<string, unknown>>)[];
  readonly objectType: string;
  readonly signal?: AbortSignal | undefined;
}

export async function importSigma(
  invocation: Invocation,
  planner: Pick<PlannerDoor, 'readSigma' | 'turns'>,
  given: SigmaImport,
): Promise<Reply> {
  const texts = typeof given.rules === 'string' ? [given.rules] : given.rules;
  const turn = planner.turns(given.signal);
  const documents: string[] = [];
  for (const text of texts)
    for (const document of typeof text === 'string' ? splitDocuments(text) : [exactJson(text)]) {
      if (documents.length === documentsMax) throw tooManyDocuments();
      documents.push(document);
      await turn();
    }
  const { objectType } = given;
  invocation.describe({ template: 'sigma rules ?', literals: [String(documents.length)], objectType });
  const snapshot = invocation.snapshot();
  const own = snapshot.rules().filter(({ owner }) => owner === snapshot.caller.path);
  const parsed = await planner.readSigma(snapshot, documents, given.signal);
  const names = new Map(own.map((rule) => [rule.definition.name, rule.id]));
  const existingRules = new Map(own.map((rule) => [rule.id, rule]));
  const results: Result[] = [];
  for (const [i, each] of parsed.entries()) {
    if (each.document === null) {
      results.push({ id: each.id, title: each.title, status: 'rejected', rule_id: null, error: each.error });
      continue;
    }
    const id = ruleId(snapshot.caller.path, each.document.id ?? each.document.title);
    const definition: DetectionDefinition = {
      kind: 'detection',
      name: freeName(each.document.title, id, names),
      language: 'sigma',
      condition: documents[i]!,
      object_type: objectType,
      severity: each.document.level ?? 'medium',
      enabled: true,
      dedupe_by: [],
      window_secs: 3_600,
      interval_secs: 60,
      purpose: snapshot.purpose,
    };
    names.set(definition.name, id);
    const status = await put(invocation, id, definition, existingRules.get(id));
    results.push({ id: each.document.id, title: each.document.title, status, rule_id: id });
  }
  const count = (status: Result['status']): number => results.filter((result) => result.status === status).length;
  invocation.describe({ rowCount: results.length - count('rejected') });
  return {
    imported: count('imported'),
    updated: count('updated'),
    unchanged: count('unchanged'),
    rejected: count('rejected'),
    results,
  };
}

async function put(
  invocation: Invocation,
  id: string,
  definition: DetectionDefinition,
  before: RuleRecord | undefined,
): Promise<'imported' | 'updated' | 'unchanged'> {
  const { changed } = await invocation.submit(
    {
      kind: 'put-rule',
      id,
      definition,
      author: { credential: 'none', token: null },
      ...(before !== undefined && { changes: id }),
    },
    { sync: true },
  );
  return !changed ? 'unchanged' : before === undefined ? 'imported' : 'updated';
}

/** The same rule has the same id whenever it is imported, and another one under every other organisation path. */
function ruleId(path: string | null, sigmaId: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify(['sigma', path, sigmaId.toLowerCase()]))
    .digest('hex');
  return `sigma-${hash.slice(0, 32)}`;
}

/** Rules have different names; Sigma rules may have one title. */
function freeName(title: string, id: string, names: ReadonlyMap<string, string>): string {
  // oxlint-disable-next-line no-control-regex
  const plain = title.toWellFormed().replaceAll(/[\x00-\x1f]/g, ' ');
  const name = plain.slice(0, 128).toWellFormed();
  const holder = names.get(name);
  return holder === undefined || holder === id ? name : `${plain.slice(0, 84).toWellFormed()} (${id})`;
}
