/**
 * HYBRID_SEARCH at work: one look at all visible rows, each with its BM25 score, which the search below it gives, and with the
 * cosine of its vector to the text's. The best of either ranking are fused, by place or by score.
 *
 * Without a model words alone rank, and only rows that have one are read; where likeness alone is asked for, the vector of a row is
 * hashed from its text columns, as the text's is, so that nothing but the row decides. With a model the vectors that rows came with are compared where they have as many dimensions, else those that the model gave for them by the
 * instant that is asked about; rows without either are ranked by words, and the answer says how many there are.
 */
import { assert, ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import { type ColumnType, holdsTexts } from '../../log/values/value.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { EmbeddingReader } from '../../projections/access-paths.ts';
import { jsonTexts } from '../../projections/rows/indexes/text/json-texts.ts';
import { addHashed, cosineOf, hashedDims } from '../embedding/hashing.ts';
import type { Opening } from '../calls/table-function.ts';
import type { FunctionNode, PlanColumn } from '../logical-plan.ts';
import { BestRows, compareRanked, type RankedRow } from '../operators/best-rows.ts';
import { type Batch, emptyBatch, type Operator, type Pieces, PiecesOperator } from '../operators/operator.ts';
import { checkFetched, checkRanked, fetchVersion, mostRanked, rankedRows, scoreColumn } from '../operators/ranked-rows.ts';
import { errorAt } from '../syntax/error-location.ts';
import { Direction } from '../expressions/cosine.ts';
import type { Way } from '../vectors/nearest-rows.ts';
import { hasText, storedVectors } from '../vectors/stored-vectors.ts';

/** Rows of each ranking that are fused. */
const hybridRankedMost = 1_000;
/** Source: specification, "Search", shape C: the rank constant of reciprocal-rank fusion. */
const reciprocalRankConstant = 60;
/** The best rows whose median score counts as a half. */
const medianOfRanked = 50;
/** The function's own column where a reranker orders the rows. */
export const rerankedColumn = '_rerank_score';
/** Rows that a reranker is shown, where no more are asked for. */
const rerankedRowsMax = 100;
/** UTF-16 units of a row that it is shown. */
const rerankedLettersMax = 8_192;
/** Texts that are hashed between two looks at the clock. */
const hybridTextsAtOnce = 256;

interface HybridCandidate extends RankedRow {
  /** BM25; 0 where no word is there. */
  readonly words: number;
  /** Cosine, 0 where it is not above. */
  readonly likeness: number;
}

/** The text as a model sees it. */
interface SoughtMeaning {
  readonly direction: Direction;
  /** Embeddings of rows whose type has no vector column; null where none count. */
  readonly stored: EmbeddingReader | null;
  /** Name of the model that made the query's vector; null where the caller sent the vector. */
  readonly model: string | null;
}

/**
 * Null: words alone rank, as without a model and where it does not answer, which the answer says. Likeness by hashing counts where it
 * is asked for by name: beside words it is worth nothing that can be relied on (`npm run quality -- fusion`).
 */
export async function prepareHybrid(
  { node, values, execution }: Omit<Opening, 'input' | 'edges' | 'prepared'>,
  signal: AbortSignal | undefined,
): Promise<SoughtMeaning | 'hashed' | null> {
  const { consistency, kernels, notices, snapshot } = execution;
  const { embedder, embeddings, reranker } = execution.services;
  if (isHybridReranked(node)) {
    if (reranker === null)
      throw errorAt('REL_INVALID', 'RERANK needs a reranker, which SERVICE_RERANK_URL names', values.locationOf('QUERY'));
    if (consistency === 'exact')
      throw errorAt('REL_INVALID', 'the order of a reranker cannot be derived again', values.locationOf('QUERY'));
  }
  const knownVector = values.vector('VECTOR', kernels);
  // Zeros say that the model was asked before, and did not answer.
  if (knownVector !== undefined)
    return knownVector.some((vectorComponent) => vectorComponent !== 0)
      ? { direction: new Direction(knownVector), stored: null, model: null }
      : null;
  if (embedder === null) return isLikenessAlone(node) ? 'hashed' : null;
  try {
    const soughtDirection = new Direction(await embedder.embed(values.text('QUERY', kernels)!, signal));
    const hybridType = node.type!;
    const embeddedColumns = hybridColumnsRead(node, (each) => each === 'string');
    embeddings?.want(snapshot.tenant, hybridType);
    return {
      direction: soughtDirection,
      stored: storedVectors(
        hybridType,
        embeddedColumns.map(({ name }) => name),
        execution,
      ),
      model: embedder.name,
    };
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'REL_UNAVAILABLE') throw error;
    notices.push(`${error.message}: rows are ranked by words alone`);
    return null;
  }
}

/** How likeness is found, and why so; null: no vector is compared. */
export function wayToMeaning({ node, values, execution }: Pick<Opening, 'node' | 'values' | 'execution'>): Way | null {
  const knownVector = values.vector('VECTOR', execution.kernels);
  if (knownVector?.every((component) => component === 0)) return null;
  const isLikenessOnly = isLikenessAlone(node);
  if (knownVector === undefined && execution.services.embedder === null && !isLikenessOnly) return null;
  if (knownVector === undefined && execution.services.embedder === null)
    return { graphs: null, why: 'there is no model, and vectors are hashed from the texts that are shown' };
  const wayReason = isLikenessOnly
    ? 'the text is compared with all vectors of a row'
    : 'both rankings come of one look at the rows';
  return { graphs: null, why: wayReason };
}

export class HybridOperator extends PiecesOperator {
  readonly #hybridOpening: Opening;
  readonly #hybridRows: Operator;

  constructor(hybridOpening: Opening) {
    super();
    assert(hybridOpening.input !== null, 'HYBRID_SEARCH ranks the rows of a type');
    this.#hybridOpening = hybridOpening;
    this.#hybridRows = hybridOpening.input;
  }

  close(): void {
    this.#hybridRows.close();
  }

  protected *pieces(): Pieces {
    const { node, values, execution } = this.#hybridOpening;
    checkFetched(node, execution);
    const hybridRowsMax = mostRanked(node, execution);
    const hybridColumns = node.reads.slice(2).map((column) => node.input!.columns[column]!);
    const columnOrdinalsOf = (type: string): readonly number[] =>
      hybridColumns.flatMap((column, i) => (column.type === type ? [i + 2] : []));
    const [vectorOrdinals, [wordScoreOrdinal]] = [columnOrdinalsOf('vector'), columnOrdinalsOf('number')];
    const textColumns = hybridColumns.flatMap(({ type }, i) => (holdsTexts(type) ? [{ at: i + 2, type }] : []));
    const soughtMeaning = this.#hybridOpening.prepared as SoughtMeaning | 'hashed' | null;
    const unseenRows = { count: 0 };
    const rowMeaning = rowMeaningOf(
      soughtMeaning,
      values.text('QUERY', execution.kernels)!,
      { texts: textColumns, vectors: vectorOrdinals },
      unseenRows,
    );
    const [isLinearFusion, isLikenessOnly] = [node.words.slice(1).includes('linear'), isLikenessAlone(node)];
    const bestByWords = new BestRows<HybridCandidate>(hybridRankedMost);
    const bestByLikeness = new BestRows<HybridCandidate>(isLikenessOnly ? hybridRowsMax : hybridRankedMost);
    for (let hybridBatch = this.#hybridRows.next(); hybridBatch !== null; hybridBatch = this.#hybridRows.next()) {
      const readVectors = node.reads.map((column) => hybridBatch.columns[column]!);
      for (let k = 0; k < hybridBatch.count; k++) {
        const hybridRow = hybridBatch.selection === null ? hybridBatch.first + k : hybridBatch.selection[k]!;
        const wordScore = wordScoreOrdinal === undefined ? 0 : wordScoreAt(readVectors[wordScoreOrdinal]!, hybridRow);
        const rowLikeness = Math.max(0, rowMeaning(readVectors, hybridRow));
        if (wordScore > 0 || rowLikeness > 0) {
          execution.counters.hits++;
          const rankedRow = {
            key: String(cellAt(readVectors[1]!, 'string', hybridRow) ?? ''),
            systemFrom: systemTimeOf(readVectors, hybridRow),
            words: wordScore,
            likeness: rowLikeness,
          };
          if (wordScore > 0 && wordScore >= bestByWords.floor) bestByWords.offer({ ...rankedRow, score: wordScore });
          if (rowLikeness > 0 && rowLikeness >= bestByLikeness.floor) bestByLikeness.offer({ ...rankedRow, score: rowLikeness });
        }
        if (k % hybridTextsAtOnce === hybridTextsAtOnce - 1) yield emptyBatch;
      }
      yield emptyBatch;
    }
    if (unseenRows.count > 0 && soughtMeaning !== null && soughtMeaning !== 'hashed')
      execution.notices.push(unseenRowsNotice(unseenRows.count, soughtMeaning));
    if (isLikenessOnly) {
      const bestCandidates = bestByLikeness.list();
      checkRanked(node, bestCandidates.length, execution);
      return yield* rankedRows(node, execution, bestCandidates, scoreColumn);
    }
    const rankingCount = (wordScoreOrdinal === undefined ? 0 : 1) + (this.#hybridOpening.prepared === null ? 0 : 1);
    const fusedCandidates = fuseRankings(
      bestByWords.list(),
      bestByLikeness.list(),
      isLinearFusion ? Math.max(1, rankingCount) : null,
    );
    const bestFused = (
      isHybridReranked(node)
        ? yield* this.#rerankRows(fusedCandidates.slice(0, Math.max(hybridRowsMax, rerankedRowsMax)))
        : fusedCandidates
    ).slice(0, hybridRowsMax);
    checkRanked(node, bestFused.length, execution);
    yield* rankedRows(node, execution, bestFused, scoreColumn);
  }

  /** The rows in the order of a reranker, by their visible text columns; in their own order where it does not answer. */
  *#rerankRows(rerankedCandidates: readonly HybridCandidate[]): Generator<Batch, readonly HybridCandidate[]> {
    const { node, values, execution } = this.#hybridOpening;
    const { kernels, memory, notices } = execution;
    const { reranker } = execution.services;
    assert(reranker !== null && node.type !== null, 'a reranker is there by now');
    const textColumns = hybridColumnsRead(node, holdsTexts);
    const shownTexts: string[] = [];
    let heldBytes = 0;
    for (const { systemFrom } of rerankedCandidates) {
      const version = fetchVersion(execution, node.type, [...textColumns.map(({ name }) => name), 'system_from'], systemFrom);
      const candidateTexts = version
        ? textColumns.flatMap(({ type }, i) => hybridTextsAt(version.columns[i]!, type, version.row))
        : [];
      const shownText = candidateTexts.join('\n').slice(0, rerankedLettersMax);
      shownTexts.push(shownText);
      heldBytes = memory.change(heldBytes, heldBytes + shownText.length * 2);
      yield emptyBatch;
    }
    let rerankScores: readonly number[] | null = null;
    const reranking = reranker.rerank(values.text('QUERY', kernels)!, shownTexts, undefined);
    execution.wait.until = reranking.then(
      (givenScores) => void (rerankScores = givenScores),
      (error: unknown) => void notices.push(`${rerankerMessage(error)}: rows stand in the order of both rankings`),
    );
    while (execution.wait.until !== null) yield emptyBatch;
    memory.change(heldBytes, 0);
    const given = rerankScores as readonly number[] | null;
    return given === null
      ? rerankedCandidates
      : rerankedCandidates.map((rerankedCandidate, i) => ({ ...rerankedCandidate, score: given[i]! })).sort(compareRanked);
  }
}

function rerankerMessage(error: unknown): string {
  return error instanceof ServiceError ? error.message : 'the reranker does not answer';
}

function isLikenessAlone({ words }: FunctionNode): boolean {
  // The first word is the type.
  return words.slice(1).includes('likeness');
}

function isHybridReranked({ columns }: FunctionNode): boolean {
  return columns.some(({ name }) => name === rerankedColumn);
}

/** A column of texts, and its index among those read. */
interface HybridTextColumn {
  readonly at: number;
  readonly type: ColumnType;
}

type RowMeaning = (columns: readonly Vector[], row: number) => number;

/** How alike a row is to the text; `unseenRows` counts the rows with texts that no vector of the model is there for. */
function rowMeaningOf(
  preparedMeaning: SoughtMeaning | 'hashed' | null,
  queryText: string,
  {
    texts: textColumns,
    vectors: vectorOrdinals,
  }: { readonly texts: readonly HybridTextColumn[]; readonly vectors: readonly number[] },
  unseenRows: { count: number },
): RowMeaning {
  if (preparedMeaning === null) return () => 0;
  if (preparedMeaning !== 'hashed') {
    const { direction, stored, model } = preparedMeaning;
    return (columns, row) => {
      let highestCosine: number | null = null;
      for (const column of vectorOrdinals) {
        const meaningVector = columns[column]!;
        if (meaningVector.kind !== 'vec' || meaningVector.dims !== direction.dims || meaningVector.nulls?.[row] === 1) continue;
        highestCosine = Math.max(highestCosine ?? 0, direction.cosine(meaningVector.values, row * meaningVector.dims));
      }
      if (highestCosine !== null || model === null) return highestCosine ?? 0;
      const storedVector = stored?.vectorAt(systemTimeOf(columns, row)) ?? null;
      if (storedVector !== null && storedVector.dims === direction.dims)
        return direction.cosine(storedVector.values, storedVector.at);
      if (textColumns.some(({ at: column, type }) => type === 'string' && hasText(cellAt(columns[column]!, type, row))))
        unseenRows.count++;
      return 0;
    };
  }
  const soughtHashed = new Float64Array(hashedDims);
  addHashed(queryText, soughtHashed);
  const rowHashed = new Float64Array(hashedDims);
  return (columns, row) => {
    rowHashed.fill(0);
    for (const { at: column, type } of textColumns)
      for (const rowText of hybridTextsAt(columns[column]!, type, row)) addHashed(rowText, rowHashed);
    return cosineOf(soughtHashed, rowHashed);
  };
}

function systemTimeOf(columns: readonly Vector[], row: number): bigint {
  const systemTimes = columns[0]!;
  assert(systemTimes.kind === 'i64', 'system times are i64');
  return systemTimes.values[row]!;
}

function unseenRowsNotice(unseenCount: number, { model, stored }: SoughtMeaning): string {
  const unseenSubject = `${unseenCount} ${unseenCount === 1 ? 'row is' : 'rows are'} ranked by words alone`;
  if (stored === null) return `${unseenSubject}: of rows that others share no vector is compared`;
  return `${unseenSubject}: for ${unseenCount === 1 ? 'it' : 'them'} there is no vector of the model ${model} at this instant`;
}

/** Columns that are read, of types that are texts. */
function hybridColumnsRead({ input, reads }: FunctionNode, areTextColumns: (type: ColumnType) => boolean): readonly PlanColumn[] {
  return reads.slice(2).flatMap((column) => {
    const readColumn = input!.columns[column]!;
    return areTextColumns(readColumn.type) ? [readColumn] : [];
  });
}

/** The text of a cell, or those of its JSON. */
function hybridTextsAt(vector: Vector, type: ColumnType, row: number): readonly string[] {
  const textCell = cellAt(vector, type, row);
  if (typeof textCell !== 'string') return [];
  return type === 'json' ? jsonTexts(textCell) : [textCell];
}

function wordScoreAt(vector: Vector, row: number): number {
  return vector.kind === 'f64' && vector.nulls?.[row] !== 1 ? vector.values[row]! : 0;
}

/** One score for each row of either ranking, best first: a mean of scores, or, for null, by ranks. */
function fuseRankings(
  byWords: readonly HybridCandidate[],
  byLikeness: readonly HybridCandidate[],
  linearArms: number | null,
): readonly HybridCandidate[] {
  const fusedScores = new Map<bigint, number>();
  const fusedRows = new Map<bigint, HybridCandidate>();
  // Source: docs/search.md; a score of the median counts as a half of all that words can say.
  const halfWordScore = byWords[Math.floor((Math.min(byWords.length, medianOfRanked) - 1) / 2)]?.score ?? 1;
  for (const hybridRanking of [byWords, byLikeness]) {
    for (const [i, rankedCandidate] of hybridRanking.entries()) {
      fusedRows.set(rankedCandidate.systemFrom, rankedCandidate);
      const fusedScore =
        linearArms !== null
          ? (rankedCandidate.words / (rankedCandidate.words + halfWordScore) + rankedCandidate.likeness) / linearArms
          : (fusedScores.get(rankedCandidate.systemFrom) ?? 0) + 1 / (reciprocalRankConstant + i + 1);
      fusedScores.set(rankedCandidate.systemFrom, fusedScore);
    }
  }
  return [...fusedRows.values()]
    .map((rankedCandidate) => ({ ...rankedCandidate, score: fusedScores.get(rankedCandidate.systemFrom)! }))
    .sort(compareRanked);
}
