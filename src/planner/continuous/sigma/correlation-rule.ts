/** Reads correlations: rules over the matches of other rules. Source: Sigma correlation rules specification 2.0. */
import { Refusal } from './rule-refusal.ts';
import { type Bound, type CorrelationType, correlationTypes, type SigmaCorrelation, type SigmaHead } from './sigma-rule.ts';

const boundNames: readonly string[] = ['gt', 'gte', 'lt', 'lte', 'eq', 'neq'] satisfies readonly Bound[];
const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 };
const timespanSecsMax = 366 * 86_400;
const rulesMax = 100;
const groupByMax = 16;
/** Matches that one group may hold: a larger count could never be reached. */
export const countMax = 4_096;

export function parseCorrelation(head: SigmaHead, fields: ReadonlyMap<string, unknown>): SigmaCorrelation {
  const type = fields.get('type');
  if (typeof type !== 'string' || !isType(type)) throw refuse('type', `type is one of ${correlationTypes.join(', ')}`);
  const rules = texts(fields, 'rules');
  if (rules.length === 0 || rules.length > rulesMax) throw refuse('rules', `a correlation refers to 1 to ${rulesMax} rules`);
  const groupBy = texts(fields, 'group-by');
  if (groupBy.length > groupByMax) throw refuse('group-by', `group-by has at most ${groupByMax} fields`);
  const isTemporal = type === 'temporal' || type === 'temporal_ordered';
  const condition = fields.get('condition') ?? null;
  if (typeof condition === 'string')
    throw refuse('condition', 'conditions of Sigma 2.1 that are expressions are not implemented');
  if (condition === null && !isTemporal) throw refuse('condition', `${type} has a condition`);
  const { bounds, field } = condition === null ? { bounds: [], field: null } : readCondition(asMap(condition, 'condition'));
  if (type === 'value_count' && field === null)
    throw refuse('condition.field', 'value_count names the field whose values it counts');
  if (!isTemporal && bounds.length === 0) throw refuse('condition', `a condition has one of ${boundNames.join(', ')}`);
  const generate = fields.get('generate') ?? false;
  if (typeof generate !== 'boolean') throw refuse('generate', 'generate is true or false');
  return {
    kind: 'correlation',
    id: head.id,
    name: head.name,
    title: head.title,
    level: head.level,
    type,
    rules,
    groupBy,
    aliases: readAliases(fields.get('aliases')),
    timespanNs: readTimespan(fields.get('timespan') ?? fields.get('timeframe')),
    bounds,
    field: type === 'value_count' ? field : null,
    generate,
  };
}

const isType = (text: string): text is CorrelationType => (correlationTypes as readonly string[]).includes(text);
const isBound = (text: string): text is Bound => boundNames.includes(text);

function readCondition(fields: ReadonlyMap<string, unknown>): Pick<SigmaCorrelation, 'bounds' | 'field'> {
  const bounds: { bound: Bound; value: number }[] = [];
  let field: string | null = null;
  for (const [key, given] of fields) {
    if (key === 'field') {
      if (typeof given !== 'string' || given === '') throw refuse('condition.field', 'field is the name of a field');
      field = given;
      continue;
    }
    if (!isBound(key)) throw refuse(`condition.${key}`, `a condition has field and ${boundNames.join(', ')}`);
    const value = typeof given === 'bigint' ? Number(given) : given;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > countMax) {
      throw refuse(`condition.${key}`, `a count is an integer of 0 to ${countMax}`);
    }
    bounds.push({ bound: key, value });
  }
  return { bounds: bounds, field };
}

function readTimespan(given: unknown): bigint {
  const match = typeof given === 'string' ? /^(\d{1,9})([smhdw])$/.exec(given.trim()) : null;
  if (match === null) throw refuse('timespan', 'timespan is a number and s, m, h, d or w: 15m');
  const seconds = Number(match[1]) * units[match[2]!]!;
  if (seconds < 1 || seconds > timespanSecsMax) throw refuse('timespan', 'timespan is 1 second to 366 days');
  return BigInt(seconds) * 1_000_000_000n;
}

function readAliases(given: unknown): SigmaCorrelation['aliases'] {
  if (given === undefined || given === null) return new Map();
  return new Map(
    [...asMap(given, 'aliases')].map(([alias, of]) => {
      const path = `aliases.${alias}`;
      const fields = [...asMap(of, path)].map(([rule, field]) => {
        if (typeof field !== 'string' || field === '') throw refuse(`${path}.${rule}`, 'an alias names a field of each rule');
        return [rule, field] as const;
      });
      return [alias, new Map(fields)] as const;
    }),
  );
}

function texts(fields: ReadonlyMap<string, unknown>, key: string): readonly string[] {
  const given = fields.get(key) ?? [];
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  return list.map((each) => {
    if (typeof each !== 'string' || each.trim() === '') throw refuse(key, `${key} is a list of texts`);
    return each.trim();
  });
}

function asMap(value: unknown, path: string): ReadonlyMap<string, unknown> {
  if (!(value instanceof Map)) throw refuse(path, `${path} is a map`);
  return new Map([...(value as Map<unknown, unknown>)].map(([key, each]) => [String(key), each]));
}

const refuse = (path: string, detail: string): Refusal => new Refusal(`correlation.${path}`, detail);
