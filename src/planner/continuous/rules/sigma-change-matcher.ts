/**
 * Sigma rules of one type, judged together on each change set. The rows come from one statement under the caller's grant, so that
 * a masked cell is what the caller would see, and a hidden row is none.
 *
 * Correlations count matches of earlier commits, too. Their state is in memory, and is found again in the rows wherever it does not
 * end at the change set: after a restart, and after a round that raised nothing in the end.
 */
import { ServiceError } from '../../../errors.ts';
import type { Caller } from '../../../governance/caller.ts';
import type { GovernedSnapshot } from '../../../governance/gate-contract.ts';
import type { NamedColumn } from '../../../log/values/columns.ts';
import { formatInstant } from '../../../log/values/timestamp.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import type { DetectionDefinition, RuleVersion } from '../../../projections/rules/rule.ts';
import type { Answer, PlannerContract } from '../../planner-contract.ts';
import { Correlator, linkCorrelations, type MatchEvent } from '../sigma/correlations.ts';
import { SigmaMatcher } from '../sigma/sigma-matcher.ts';
import type { Placeholders } from '../sigma/field-modifiers.ts';
import { parseSigma } from '../sigma/parse-rules.ts';
import { ColumnTexts, type FieldReader, fieldReader } from '../sigma/row-texts.ts';
import type { SigmaDocument, SigmaRule } from '../sigma/sigma-rule.ts';
import { snapshotInvocation } from '../watch/snapshot-invocation.ts';
import type { Match } from './alerts.ts';
import { learnColumns, quoteName } from './rule-condition.ts';
import { inTurns } from '../../expressions/resumable-steps.ts';
import { isInForce, type RowMatcher, type RuleMatches } from './rule-matcher.ts';

export interface SigmaMatcherRequest {
  readonly planner: PlannerContract;
  readonly placeholders: Placeholders;
  /** One that can't be judged is passed over, and `onError` hears why. */
  readonly onError: (rule: RuleVersion, error: unknown) => void;
  readonly turn: () => Promise<void>;
}

export interface SigmaRules extends RowMatcher {
  /** Matches among the versions that came after `from`, up to and with `to`: nanoseconds. Correlations count from there on. */
  past(over: GovernedSnapshot, from: bigint, to: bigint): Promise<readonly RuleMatches[]>;
}

/** A match beside what correlations ask of its row. */
interface SigmaMatches extends MatchEvent {
  readonly systemFrom: bigint;
  readonly key: string;
}

const ownColumns = 3;

export async function sigmaMatcher(
  { planner, placeholders, onError, turn }: SigmaMatcherRequest,
  caller: Caller,
  snapshot: GovernedSnapshot,
  type: string,
  versions: readonly RuleVersion[],
): Promise<SigmaRules> {
  const documents: (SigmaDocument | null)[] = [];
  for (const version of versions) {
    const parsed = parseSigma((version.record.definition as DetectionDefinition).condition, placeholders);
    if (parsed.document === null)
      onError(version, new ServiceError('REL_INVALID', `${parsed.error.path}: ${parsed.error.detail}`));
    documents.push(parsed.document);
    await turn();
  }
  const linked = linkCorrelations(documents);
  for (const [ordinal, refusal] of linked.refused) {
    onError(versions[ordinal]!, new ServiceError('REL_INVALID', `${refusal.path}: ${refusal.message}`));
  }
  // By ordinal of the compiled rule: that of its version.
  const compiled: number[] = [];
  const rules: SigmaRule[] = [];
  for (const [ordinal, document] of documents.entries()) {
    if (document?.kind !== 'rule') continue;
    compiled.push(ordinal);
    rules.push(document);
  }
  const matcher = await inTurns(SigmaMatcher.compile(rules), turn);
  const select = selectOf(type, columnsOf(snapshot, type, matcher, documents));
  const columns = await learnColumns(planner, caller, snapshot, select);
  let correlator = new Correlator(documents, linked);
  let observedUpTo: bigint | null = null;

  const ask = (over: GovernedSnapshot, sql: string): Promise<Answer> =>
    planner.query(snapshotInvocation(caller, over), { sql, queriesOnly: true, time: 'all' });

  /** Matches of the rows, in the order in which they came. */
  async function findMatches(answer: Answer): Promise<readonly SigmaMatches[]> {
    const sigmaMatches: SigmaMatches[] = [];
    for (const batch of answer.batches) {
      const named = answer.columns.map(({ name, type: of }, i): NamedColumn => ({ name, type: of, vector: batch.columns[i]! }));
      const [systemFroms, keys, validFroms] = named;
      const fields = named.slice(ownColumns);
      const { selection, first, count } = batch;
      const matches = await inTurns(matcher.judge({ columns: fields, selection, first, count }), turn);
      const readers = new Readers(fields);
      for (const [rule, rows] of matches) {
        for (const row of rows) {
          sigmaMatches.push({
            document: compiled[rule]!,
            row,
            systemFrom: cellAt(systemFroms!.vector, 'timestamp', row) as bigint,
            instant: cellAt(validFroms!.vector, 'timestamp', row) as bigint,
            key: String(cellAt(keys!.vector, 'string', row)),
            valueOf: (field) => readers.read(field, row),
          });
        }
      }
    }
    return sigmaMatches.sort((a, b) =>
      a.systemFrom === b.systemFrom ? a.document - b.document : a.systemFrom < b.systemFrom ? -1 : 1,
    );
  }

  const between = (from: bigint, to: bigint): string =>
    `${select} WHERE system_from > '${formatInstant(from)}' AND system_from <= '${formatInstant(to)}'`;

  async function rebuild(over: GovernedSnapshot, upTo: bigint): Promise<void> {
    correlator = new Correlator(documents, linked);
    for (const each of await findMatches(await ask(over, between(upTo - correlator.reachNs, upTo)))) {
      if (isInForce(versions[each.document]!, each.systemFrom)) correlator.observe(each);
    }
  }

  const judge: RowMatcher['judge'] = async (changes, _type, over) => {
    if (changes.versions.length === 0) {
      if (observedUpTo === changes.from) observedUpTo = changes.end;
      return [];
    }
    if (linked.order.length > 0 && observedUpTo !== changes.from) await rebuild(over, changes.from);
    // Unless all of it was observed, the next change set finds the state again.
    observedUpTo = null;
    const correlationMatches = await raiseAll(await ask(changes.snapshot, select), changes.from);
    observedUpTo = changes.end;
    return correlationMatches;
  };

  const past: SigmaRules['past'] = async (over, from, to) => {
    correlator = new Correlator(documents, linked);
    observedUpTo = null;
    return raiseAll(await ask(over, between(from, to)), from);
  };

  async function raiseAll(answer: Answer, from: bigint): Promise<readonly RuleMatches[]> {
    const matchesByRule = new Map<number, Match[]>();
    const raise = (ordinal: number, { key, systemFrom }: SigmaMatches): void => {
      if (linked.silent.has(ordinal)) return;
      const match: Match = { type, key, systemFrom, values: [] };
      const before = matchesByRule.get(ordinal);
      if (before === undefined) matchesByRule.set(ordinal, [match]);
      else before.push(match);
    };
    for (const each of await findMatches(answer)) {
      if (each.systemFrom <= from || !isInForce(versions[each.document]!, each.systemFrom)) continue;
      raise(each.document, each);
      for (const { document } of correlator.observe(each)) {
        if (isInForce(versions[document]!, each.systemFrom)) raise(document, each);
      }
      await turn();
    }
    return [...matchesByRule].map(([ordinal, matches]): RuleMatches => ({ rule: versions[ordinal]!, matches }));
  }
  return { columns, judge, past };
}

const selectOf = (type: string, columns: readonly string[]): string =>
  `SELECT ${['system_from', '_pk', 'valid_from'].map((name) => `${name} AS "#${name}"`).join()}${columns.map((name) => `, ${quoteName(name)}`).join('')} FROM ${quoteName(type)}`;

/** Columns of the type that the rules may read: a name with dots may begin with the name of a JSON column. */
function columnsOf(
  snapshot: GovernedSnapshot,
  type: string,
  matcher: SigmaMatcher,
  documents: readonly (SigmaDocument | null)[],
): readonly string[] {
  const properties = Object.entries(snapshot.catalog.type(type)?.properties ?? {});
  const readable = properties.filter(([, property]) => property.type !== 'vector').map(([name]) => name);
  if (matcher.readsAll) return readable;
  const names = new Set([...matcher.fields, 'product', 'category', 'service']);
  for (const document of documents) {
    if (document?.kind !== 'correlation') continue;
    for (const name of document.groupBy) names.add(name);
    for (const fields of document.aliases.values()) for (const field of fields.values()) names.add(field);
    if (document.field !== null) names.add(document.field);
  }
  for (const name of names) {
    for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) names.add(name.slice(0, dot));
  }
  return readable.filter((name) => names.has(name));
}

/** Fields of the rows of one batch, by name. */
class Readers {
  readonly #columns: ReadonlyMap<string, ColumnTexts>;
  readonly #readers = new Map<string, FieldReader | null>();

  constructor(columns: readonly NamedColumn[]) {
    this.#columns = new Map(columns.map((column) => [column.name, new ColumnTexts(column)]));
  }

  read(field: string, row: number): string | null {
    let reader = this.#readers.get(field);
    if (reader === undefined) this.#readers.set(field, (reader = fieldReader(this.#columns, field)));
    return reader?.(row)[0] ?? null;
  }
}
