/**
 * Memories that may answer a query: the best by words, and the best by meaning. Invariant: only the rows, the query and its
 * vector decide, so that a replay finds the same candidates.
 *
 *   words     BM25 of the stems of the content; b / (b + the median of the best 50)
 *   meaning   the cosine of the model's vectors
 *   rel       the mean of both; of words alone where there is no model, or it did not answer: `npm run quality -- fusion` tells what
 *             likeness by hashing would be worth beside them. What shares neither a word nor a meaning is no candidate.
 */
import { ServiceError } from '../../../errors.ts';
import type { GovernedSnapshot } from '../../../governance/gate-contract.ts';
import type { TypeDefinition } from '../../../log/entries/entry.ts';
import { cosineOf } from '../../../planner/embedding/hashing.ts';
import { vectorColumns, wordColumns } from '../../../governance/embedding/embedded-columns.ts';
import type { DefaultTime, Literal } from '../../../planner/syntax/statement.ts';
import { tokensOf } from '../../../projections/rows/indexes/text/tokens.ts';
import { quote, type VerbRow } from '../verb-rows.ts';

export type Ask = (sql: string, parameters: readonly Literal[], time: DefaultTime) => Promise<VerbRow[]>;

export interface CandidateInput {
  readonly snapshot: GovernedSnapshot;
  readonly ask: Ask;
  /** The query as the model sees it; one zero: it did not answer; null: there is none. */
  readonly vector: readonly number[] | null;
}

export interface CandidateRequest {
  readonly type: string;
  readonly query: string | undefined;
  readonly class_filter?: string | readonly string[] | undefined;
  readonly session_id?: string | undefined;
  readonly min_confidence?: number | undefined;
  readonly top_k: number;
}

export interface Candidate {
  readonly row: VerbRow;
  /** The match, from 0 to 1; 1 without a query. */
  readonly rel: number;
}

/** Best of either ranking that are looked at. Source: docs/agents.md. */
const recallCandidatesMin = 200;
const recallCandidatesMax = 1_000;
/** Different words of a query that are sought. */
const recallWordsMax = 200;
/** The median score of so many best rows counts as a half. */
const medianScoreRows = 50;

export async function candidates(
  candidateRequest: CandidateRequest,
  recallInstant: bigint,
  candidateInput: CandidateInput,
): Promise<readonly Candidate[]> {
  const { type: recalledType, query: recallQuery } = candidateRequest;
  const { snapshot: recallSnapshot, ask: askRecall, vector: queryVector } = candidateInput;
  const recalledDefinition = recallSnapshot.catalog.type(recalledType);
  if (recalledDefinition === undefined)
    throw new ServiceError('REL_INVALID', `the type ${JSON.stringify(recalledType)} is not registered`);
  const recallTime = { valid: recallInstant, system: recallInstant };
  const quarantined = await quarantinedKeys(askRecall, recalledType, recallTime);
  const candidateLimit = Math.min(recallCandidatesMax, Math.max(recallCandidatesMin, candidateRequest.top_k) + quarantined.size);
  const rowsFrom = (rowSource: string, firstValues: readonly Literal[], orderClause: string): Promise<VerbRow[]> => {
    const { where: recallWhere, values: recallValues } = recallConditions(candidateRequest, firstValues);
    return askRecall(`SELECT * FROM ${rowSource}${recallWhere}${orderClause}`, recallValues, recallTime);
  };
  const isRowShown = (shownRow: VerbRow): boolean => !quarantined.has(keyOf(shownRow['namespace_path'], shownRow['_pk']));
  if (recallQuery === undefined) {
    const newestRows = await rowsFrom(quote(recalledType), [], ` ORDER BY valid_from DESC, _pk LIMIT ${candidateLimit}`);
    return newestRows.filter(isRowShown).map((candidateRow) => ({ row: candidateRow, rel: 1 }));
  }
  const textColumns = recallTextColumns(recalledDefinition);
  const queryWords = [...new Set(tokensOf(recallQuery))].slice(0, recallWordsMax);
  const wordMatches: VerbRow[] = [];
  if (textColumns.length > 0 && queryWords.length > 0) {
    const { where: wordWhere, values: wordValues } = recallConditions(
      candidateRequest,
      [queryWords.join(' ')],
      [`MATCH(${textColumns.map(quote).join(', ')}, $1, STEMMED)`],
    );
    wordMatches.push(
      ...(await askRecall(
        `SELECT *, _score FROM ${quote(recalledType)}${wordWhere} ORDER BY _score DESC LIMIT ${candidateLimit}`,
        wordValues,
        recallTime,
      )),
    );
  }
  const similarRows: VerbRow[] = [];
  if (queryVector !== null) {
    for (const vectorColumn of recallVectorColumns(recalledDefinition, queryVector)) {
      const similarCall = `SIMILAR($1, COLUMN => ${quote(vectorColumn)}, VECTOR => $2)`;
      similarRows.push(...(await rowsFrom(similarCall, [recalledType, JSON.stringify(queryVector)], ` LIMIT ${candidateLimit}`)));
    }
  }
  const scoreMeaning = queryVector === null ? null : meaningScore(recalledDefinition, queryVector);
  const scoringArms = scoreMeaning === null ? 1 : 2;
  const medianScore = wordScore(wordMatches[Math.floor((Math.min(wordMatches.length, medianScoreRows) - 1) / 2)]) || 1;
  const candidatesByKey = new Map<string, Candidate>();
  const takeCandidate = (candidateRow: VerbRow, rowWordScore: number): void => {
    const candidateKey = keyOf(candidateRow['namespace_path'], candidateRow['_pk']);
    if (candidatesByKey.has(candidateKey) || !isRowShown(candidateRow)) return;
    const relevance = (rowWordScore / (rowWordScore + medianScore) + (scoreMeaning?.(candidateRow) ?? 0)) / scoringArms;
    if (relevance > 0) candidatesByKey.set(candidateKey, { row: candidateRow, rel: relevance });
  };
  for (const row of wordMatches) takeCandidate(row, wordScore(row));
  // A row that is not among the best by words gets no score for words.
  for (const row of similarRows) takeCandidate(row, 0);
  return [...candidatesByKey.values()];
}

function recallConditions(
  { session_id: agentSession, class_filter: memoryClasses, min_confidence: confidenceFloor }: CandidateRequest,
  firstValues: readonly Literal[],
  firstConditions: readonly string[] = [],
): { readonly where: string; readonly values: readonly Literal[] } {
  const conditionValues: Literal[] = [...firstValues];
  const markValue = (conditionValue: Literal): string => `$${conditionValues.push(conditionValue)}`;
  const recallWhereParts = [...firstConditions];
  if (agentSession !== undefined) recallWhereParts.push(`session_id = ${markValue(agentSession)}`);
  if (memoryClasses !== undefined) recallWhereParts.push(`memory_class IN (${[memoryClasses].flat().map(markValue).join(', ')})`);
  if (confidenceFloor !== undefined) recallWhereParts.push(`confidence >= ${markValue(confidenceFloor)}`);
  return { where: recallWhereParts.length === 0 ? '' : ` WHERE ${recallWhereParts.join(' AND ')}`, values: conditionValues };
}

/** `content` where the type has it, else all of its text columns. */
function recallTextColumns(recalledDefinition: TypeDefinition): readonly string[] {
  return recalledDefinition.properties['content']?.type === 'string' ? ['content'] : wordColumns(recalledDefinition);
}

function recallVectorColumns(recalledDefinition: TypeDefinition, { length: vectorLength }: readonly number[]): readonly string[] {
  return vectorColumns(recalledDefinition).filter(
    (vectorColumn) => recalledDefinition.properties[vectorColumn]!.dims === vectorLength,
  );
}

/** How alike a row is to the query, from 0 to 1; null: nothing tells. */
function meaningScore(
  recalledDefinition: TypeDefinition,
  queryVector: readonly number[],
): ((candidateRow: VerbRow) => number) | null {
  const soughtVector = Float64Array.from(queryVector);
  if (soughtVector.every((vectorComponent) => vectorComponent === 0)) return null;
  const vectorColumnsOfType = recallVectorColumns(recalledDefinition, queryVector);
  return (candidateRow) =>
    vectorColumnsOfType.reduce((highestCosine, vectorColumn) => {
      const vectorCell = candidateRow[vectorColumn];
      return vectorCell instanceof Float32Array
        ? Math.max(highestCosine, cosineOf(soughtVector, Float64Array.from(vectorCell)))
        : highestCosine;
    }, 0);
}

function wordScore(matchRow: VerbRow | undefined): number {
  const matchScore = matchRow?.['_score'];
  return typeof matchScore === 'number' ? matchScore : 0;
}

/** Rows of a type that were in quarantine at an instant, by path and key. */
export async function quarantinedKeys(
  askRecall: Ask,
  quarantinedType: string,
  quarantineTime: DefaultTime,
): Promise<ReadonlySet<string>> {
  const quarantineRows = await askRecall(
    'SELECT item_id, namespace_path FROM Quarantine WHERE item_type = $1',
    [quarantinedType],
    quarantineTime,
  );
  return new Set(quarantineRows.map((quarantineRow) => keyOf(quarantineRow['namespace_path'], quarantineRow['item_id'])));
}

/** Only a row of the item's own path hides it: quarantine rows of other paths don't count. */
export function keyOf(namespacePath: unknown, memoryKey: unknown): string {
  return JSON.stringify([namespacePath, memoryKey]);
}
