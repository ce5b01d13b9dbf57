/** Reads correlations: rules over the matches of other rules. Source: Sigma correlation rules specification 2.0. */
import { Refusal } from './rule-refusal.ts';
import { type Bound, type CorrelationType, correlationTypes, type SigmaCorrelation, type SigmaHead } from './sigma-rule.ts';

const boundNames: readonly string[] = ['gt', 'gte', 'lt', 'lte', 'eq', 'neq'] satisfies readonly Bound[];
const timespanUnits: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 };
const timespanSecsMax = 366 * 86_400;
const correlatedRulesMax = 100;
const correlationGroupMax = 16;
/** Matches that one group may hold: a larger count could never be reached. */
export const countMax = 4_096;

export function parseCorrelation(correlationHead: SigmaHead, fields: ReadonlyMap<string, unknown>): SigmaCorrelation {
  const correlationType = fields.get('type');
  if (typeof correlationType !== 'string' || !isCorrelationType(correlationType))
    throw correlationRefusal('type', `type is one of ${correlationTypes.join(', ')}`);
  const correlatedRules = correlationTexts(fields, 'rules');
  if (correlatedRules.length === 0 || correlatedRules.length > correlatedRulesMax)
    throw correlationRefusal('rules', `a correlation refers to 1 to ${correlatedRulesMax} rules`);
  const groupBy = correlationTexts(fields, 'group-by');
  if (groupBy.length > correlationGroupMax)
    throw correlationRefusal('group-by', `group-by has at most ${correlationGroupMax} fields`);
  const isTemporalCorrelation = correlationType === 'temporal' || correlationType === 'temporal_ordered';
  const countCondition = fields.get('condition') ?? null;
  if (typeof countCondition === 'string')
    throw correlationRefusal('condition', 'conditions of Sigma 2.1 that are expressions are not implemented');
  if (countCondition === null && !isTemporalCorrelation)
    throw correlationRefusal('condition', `${correlationType} has a condition`);
  const { bounds, field } =
    countCondition === null ? { bounds: [], field: null } : readCountCondition(correlationMap(countCondition, 'condition'));
  if (correlationType === 'value_count' && field === null)
    throw correlationRefusal('condition.field', 'value_count names the field whose values it counts');
  if (!isTemporalCorrelation && bounds.length === 0)
    throw correlationRefusal('condition', `a condition has one of ${boundNames.join(', ')}`);
  const generate = fields.get('generate') ?? false;
  if (typeof generate !== 'boolean') throw correlationRefusal('generate', 'generate is true or false');
  return {
    kind: 'correlation',
    id: correlationHead.id,
    name: correlationHead.name,
    title: correlationHead.title,
    level: correlationHead.level,
    type: correlationType,
    rules: correlatedRules,
    groupBy,
    aliases: readCorrelationAliases(fields.get('aliases')),
    timespanNs: readCorrelationSpan(fields.get('timespan') ?? fields.get('timeframe')),
    bounds,
    field: correlationType === 'value_count' ? field : null,
    generate,
  };
}

const isCorrelationType = (text: string): text is CorrelationType => (correlationTypes as readonly string[]).includes(text);
const isCorrelationBound = (text: string): text is Bound => boundNames.includes(text);

function readCountCondition(fields: ReadonlyMap<string, unknown>): Pick<SigmaCorrelation, 'bounds' | 'field'> {
  const bounds: { bound: Bound; value: number }[] = [];
  let field: string | null = null;
  for (const [key, boundText] of fields) {
    if (key === 'field') {
      if (typeof boundText !== 'string' || boundText === '')
        throw correlationRefusal('condition.field', 'field is the name of a field');
      field = boundText;
      continue;
    }
    if (!isCorrelationBound(key))
      throw correlationRefusal(`condition.${key}`, `a condition has field and ${boundNames.join(', ')}`);
    const countBound = typeof boundText === 'bigint' ? Number(boundText) : boundText;
    if (typeof countBound !== 'number' || !Number.isInteger(countBound) || countBound < 0 || countBound > countMax) {
      throw correlationRefusal(`condition.${key}`, `a count is an integer of 0 to ${countMax}`);
    }
    bounds.push({ bound: key, value: countBound });
  }
  return { bounds: bounds, field };
}

function readCorrelationSpan(timespanText: unknown): bigint {
  const timespanMatch = typeof timespanText === 'string' ? /^(\d{1,9})([smhdw])$/.exec(timespanText.trim()) : null;
  if (timespanMatch === null) throw correlationRefusal('timespan', 'timespan is a number and s, m, h, d or w: 15m');
  const timespanSecs = Number(timespanMatch[1]) * timespanUnits[timespanMatch[2]!]!;
  if (timespanSecs < 1 || timespanSecs > timespanSecsMax)
    throw correlationRefusal('timespan', 'timespan is 1 second to 366 days');
  return BigInt(timespanSecs) * 1_000_000_000n;
}

function readCorrelationAliases(aliasText: unknown): SigmaCorrelation['aliases'] {
  if (aliasText === undefined || aliasText === null) return new Map();
  return new Map(
    [...correlationMap(aliasText, 'aliases')].map(([alias, aliasedFields]) => {
      const aliasPath = `aliases.${alias}`;
      const aliasFields = [...correlationMap(aliasedFields, aliasPath)].map(([rule, field]) => {
        if (typeof field !== 'string' || field === '')
          throw correlationRefusal(`${aliasPath}.${rule}`, 'an alias names a field of each rule');
        return [rule, field] as const;
      });
      return [alias, new Map(aliasFields)] as const;
    }),
  );
}

function correlationTexts(fields: ReadonlyMap<string, unknown>, correlationKey: string): readonly string[] {
  const givenTexts = fields.get(correlationKey) ?? [];
  const correlationList: readonly unknown[] = Array.isArray(givenTexts) ? givenTexts : [givenTexts];
  return correlationList.map((correlationText) => {
    if (typeof correlationText !== 'string' || correlationText.trim() === '')
      throw correlationRefusal(correlationKey, `${correlationKey} is a list of texts`);
    return correlationText.trim();
  });
}

function correlationMap(correlationValue: unknown, path: string): ReadonlyMap<string, unknown> {
  if (!(correlationValue instanceof Map)) throw correlationRefusal(path, `${path} is a map`);
  return new Map(
    [...(correlationValue as Map<unknown, unknown>)].map(([entryKey, entryValue]) => [String(entryKey), entryValue]),
  );
}

const correlationRefusal = (path: string, detail: string): Refusal => new Refusal(`correlation.${path}`, detail);
