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

const ownSigmaColumns = 3;

export async function sigmaMatcher(
  { planner, placeholders, onError, turn }: SigmaMatcherRequest,
  caller: Caller,
  snapshot: GovernedSnapshot,
  type: string,
  versions: readonly RuleVersion[],
): Promise<SigmaRules> {
  const sigmaDocuments: (SigmaDocument | null)[] = [];
  for (const version of versions) {
    const parsedSigma = parseSigma((version.record.definition as DetectionDefinition).condition, placeholders);
    if (parsedSigma.document === null)
      onError(version, new ServiceError('REL_INVALID', `${parsedSigma.error.path}: ${parsedSigma.error.detail}`));
    sigmaDocuments.push(parsedSigma.document);
    await turn();
  }
  const linkedCorrelations = linkCorrelations(sigmaDocuments);
  for (const [sigmaOrdinal, refusal] of linkedCorrelations.refused) {
    onError(versions[sigmaOrdinal]!, new ServiceError('REL_INVALID', `${refusal.path}: ${refusal.message}`));
  }
  // By ordinal of the compiled rule: that of its version.
  const compiledOrdinals: number[] = [];
  const sigmaRules: SigmaRule[] = [];
  for (const [ordinal, document] of sigmaDocuments.entries()) {
    if (document?.kind !== 'rule') continue;
    compiledOrdinals.push(ordinal);
    sigmaRules.push(document);
  }
  const compiledMatcher = await inTurns(SigmaMatcher.compile(sigmaRules), turn);
  const changedRowsSelect = sigmaSelect(type, sigmaColumns(snapshot, type, compiledMatcher, sigmaDocuments));
  const selectedColumns = await learnColumns(planner, caller, snapshot, changedRowsSelect);
  let correlator = new Correlator(sigmaDocuments, linkedCorrelations);
  let observedUpTo: bigint | null = null;

  const askSigmaRows = (over: GovernedSnapshot, sql: string): Promise<Answer> =>
    planner.query(snapshotInvocation(caller, over), { sql, queriesOnly: true, time: 'all' });

  /** Matches of the rows, in the order in which they came. */
  async function findMatches(answer: Answer): Promise<readonly SigmaMatches[]> {
    const sigmaMatches: SigmaMatches[] = [];
    for (const batch of answer.batches) {
      const namedSigmaColumns = answer.columns.map(
        ({ name, type: of }, i): NamedColumn => ({ name, type: of, vector: batch.columns[i]! }),
      );
      const [systemFroms, keys, validFroms] = namedSigmaColumns;
      const sigmaFields = namedSigmaColumns.slice(ownSigmaColumns);
      const { selection, first, count } = batch;
      const matchedRows = await inTurns(compiledMatcher.judge({ columns: sigmaFields, selection, first, count }), turn);
      const fieldReaders = new SigmaFieldReaders(sigmaFields);
      for (const [rule, rows] of matchedRows) {
        for (const row of rows) {
          sigmaMatches.push({
            document: compiledOrdinals[rule]!,
            row,
            systemFrom: cellAt(systemFroms!.vector, 'timestamp', row) as bigint,
            instant: cellAt(validFroms!.vector, 'timestamp', row) as bigint,
            key: String(cellAt(keys!.vector, 'string', row)),
            valueOf: (field) => fieldReaders.read(field, row),
          });
        }
      }
    }
    return sigmaMatches.sort((a, b) =>
      a.systemFrom === b.systemFrom ? a.document - b.document : a.systemFrom < b.systemFrom ? -1 : 1,
    );
  }

  const selectBetween = (from: bigint, to: bigint): string =>
    `${changedRowsSelect} WHERE system_from > '${formatInstant(from)}' AND system_from <= '${formatInstant(to)}'`;

  async function rebuildCorrelator(over: GovernedSnapshot, upTo: bigint): Promise<void> {
    correlator = new Correlator(sigmaDocuments, linkedCorrelations);
    for (const each of await findMatches(await askSigmaRows(over, selectBetween(upTo - correlator.reachNs, upTo)))) {
      if (isInForce(versions[each.document]!, each.systemFrom)) correlator.observe(each);
    }
  }

  const judge: RowMatcher['judge'] = async (changes, _type, wholeSnapshot) => {
    if (changes.versions.length === 0) {
      if (observedUpTo === changes.from) observedUpTo = changes.end;
      return [];
    }
    if (linkedCorrelations.order.length > 0 && observedUpTo !== changes.from)
      await rebuildCorrelator(wholeSnapshot, changes.from);
    // Unless all of it was observed, the next change set finds the state again.
    observedUpTo = null;
    const correlationMatches = await raiseAll(await askSigmaRows(changes.snapshot, changedRowsSelect), changes.from);
    observedUpTo = changes.end;
    return correlationMatches;
  };

  const judgePast: SigmaRules['past'] = async (pastSnapshot, from, to) => {
    correlator = new Correlator(sigmaDocuments, linkedCorrelations);
    observedUpTo = null;
    return raiseAll(await askSigmaRows(pastSnapshot, selectBetween(from, to)), from);
  };

  async function raiseAll(answer: Answer, from: bigint): Promise<readonly RuleMatches[]> {
    const matchesByRule = new Map<number, Match[]>();
    const raiseMatch = (ordinal: number, { key, systemFrom }: SigmaMatches): void => {
      if (linkedCorrelations.silent.has(ordinal)) return;
      const raisedMatch: Match = { type, key, systemFrom, values: [] };
      const earlierMatches = matchesByRule.get(ordinal);
      if (earlierMatches === undefined) matchesByRule.set(ordinal, [raisedMatch]);
      else earlierMatches.push(raisedMatch);
    };
    for (const sigmaMatch of await findMatches(answer)) {
      if (sigmaMatch.systemFrom <= from || !isInForce(versions[sigmaMatch.document]!, sigmaMatch.systemFrom)) continue;
      raiseMatch(sigmaMatch.document, sigmaMatch);
      for (const { document } of correlator.observe(sigmaMatch)) {
        if (isInForce(versions[document]!, sigmaMatch.systemFrom)) raiseMatch(document, sigmaMatch);
      }
      await turn();
    }
    return [...matchesByRule].map(([ordinal, matches]): RuleMatches => ({ rule: versions[ordinal]!, matches }));
  }
  return { columns: selectedColumns, judge, past: judgePast };
}

const sigmaSelect = (type: string, columns: readonly string[]): string =>
  `SELECT ${['system_from', '_pk', 'valid_from'].map((name) => `${name} AS "#${name}"`).join()}${columns.map((name) => `, ${quoteName(name)}`).join('')} FROM ${quoteName(type)}`;

/** Columns of the type that the rules may read: a name with dots may begin with the name of a JSON column. */
function sigmaColumns(
  snapshot: GovernedSnapshot,
  type: string,
  matcher: SigmaMatcher,
  documents: readonly (SigmaDocument | null)[],
): readonly string[] {
  const properties = Object.entries(snapshot.catalog.type(type)?.properties ?? {});
  const readableColumns = properties.filter(([, property]) => property.type !== 'vector').map(([name]) => name);
  if (matcher.readsAll) return readableColumns;
  const sigmaFieldNames = new Set([...matcher.fields, 'product', 'category', 'service']);
  for (const document of documents) {
    if (document?.kind !== 'correlation') continue;
    for (const name of document.groupBy) sigmaFieldNames.add(name);
    for (const fields of document.aliases.values()) for (const field of fields.values()) sigmaFieldNames.add(field);
    if (document.field !== null) sigmaFieldNames.add(document.field);
  }
  for (const name of sigmaFieldNames) {
    for (let fieldDot = name.indexOf('.'); fieldDot !== -1; fieldDot = name.indexOf('.', fieldDot + 1))
      sigmaFieldNames.add(name.slice(0, fieldDot));
  }
  return readableColumns.filter((name) => sigmaFieldNames.has(name));
}

/** Fields of the rows of one batch, by name. */
class SigmaFieldReaders {
  readonly #columnTexts: ReadonlyMap<string, ColumnTexts>;
  readonly #sigmaReaders = new Map<string, FieldReader | null>();

  constructor(columns: readonly NamedColumn[]) {
    this.#columnTexts = new Map(columns.map((column) => [column.name, new ColumnTexts(column)]));
  }

  read(field: string, row: number): string | null {
    let fieldTextReader = this.#sigmaReaders.get(field);
    if (fieldTextReader === undefined) this.#sigmaReaders.set(field, (fieldTextReader = fieldReader(this.#columnTexts, field)));
    return fieldTextReader?.(row)[0] ?? null;
  }
}
