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
const rankedMost = 1_000;
/** Source: specification, "Search", shape C: the rank constant of reciprocal-rank fusion. */
const rankConstant = 60;
/** The best rows whose median score counts as a half. */
const medianOf = 50;
/** The function's own column where a reranker orders the rows. */
export const rerankedColumn = '_rerank_score';
/** Rows that a reranker is shown, where no more are asked for. */
const rerankedMost = 100;
/** UTF-16 units of a row that it is shown. */
const shownMost = 8_192;
/** Texts that are hashed between two looks at the clock. */
const textsAtOnce = 256;

interface Candidate extends RankedRow {
  /** BM25; 0 where no word is there. */
  readonly words: number;
  /** Cosine, 0 where it is not above. */
  readonly likeness: number;
}

/** The text as a model sees it. */
interface Sought {
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
): Promise<Sought | 'hashed' | null> {
  const { consistency, kernels, notices, snapshot } = execution;
  const { embedder, embeddings, reranker } = execution.services;
  if (isReranked(node)) {
    if (reranker === null)
      throw errorAt('REL_INVALID', 'RERANK needs a reranker, which SERVICE_RERANK_URL names', values.locationOf('QUERY'));
    if (consistency === 'exact')
      throw errorAt('REL_INVALID', 'the order of a reranker cannot be derived again', values.locationOf('QUERY'));
  }
  const known = values.vector('VECTOR', kernels);
  // Zeros say that the model was asked before, and did not answer.
  if (known !== undefined)
    return known.some((component) => component !== 0) ? { direction: new Direction(known), stored: null, model: null } : null;
  if (embedder === null) return isAlikeAlone(node) ? 'hashed' : null;
  try {
    const direction = new Direction(await embedder.embed(values.text('QUERY', kernels)!, signal));
    const type = node.type!;
    const embedded = textsRead(node, (each) => each === 'string');
    embeddings?.want(snapshot.tenant, type);
    return {
      direction,
      stored: storedVectors(
        type,
        embedded.map(({ name }) => name),
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
  const known = values.vector('VECTOR', execution.kernels);
  if (known?.every((component) => component === 0)) return null;
  const isAlike = isAlikeAlone(node);
  if (known === undefined && execution.services.embedder === null && !isAlike) return null;
  if (known === undefined && execution.services.embedder === null)
    return { graphs: null, why: 'there is no model, and vectors are hashed from the texts that are shown' };
  const why = isAlike ? 'the text is compared with all vectors of a row' : 'both rankings come of one look at the rows';
  return { graphs: null, why };
}

export class HybridOperator extends PiecesOperator {
  readonly #opening: Opening;
  readonly #input: Operator;

  constructor(opening: Opening) {
    super();
    assert(opening.input !== null, 'HYBRID_SEARCH ranks the rows of a type');
    this.#opening = opening;
    this.#input = opening.input;
  }

  close(): void {
    this.#input.close();
  }

  protected *pieces(): Pieces {
    const { node, values, execution } = this.#opening;
    checkFetched(node, execution);
    const most = mostRanked(node, execution);
    const columns = node.reads.slice(2).map((column) => node.input!.columns[column]!);
    const numbersOf = (type: string): readonly number[] => columns.flatMap((column, i) => (column.type === type ? [i + 2] : []));
    const [vectors, [score]] = [numbersOf('vector'), numbersOf('number')];
    const texts = columns.flatMap(({ type }, i) => (holdsTexts(type) ? [{ at: i + 2, type }] : []));
    const sought = this.#opening.prepared as Sought | 'hashed' | null;
    const unseen = { count: 0 };
    const meaning = meaningOf(sought, values.text('QUERY', execution.kernels)!, { texts, vectors }, unseen);
    const [isLinear, isAlike] = [node.words.slice(1).includes('linear'), isAlikeAlone(node)];
    const byWords = new BestRows<Candidate>(rankedMost);
    const byLikeness = new BestRows<Candidate>(isAlike ? most : rankedMost);
    for (let batch = this.#input.next(); batch !== null; batch = this.#input.next()) {
      const read = node.reads.map((column) => batch.columns[column]!);
      for (let k = 0; k < batch.count; k++) {
        const row = batch.selection === null ? batch.first + k : batch.selection[k]!;
        const words = score === undefined ? 0 : numberAt(read[score]!, row);
        const likeness = Math.max(0, meaning(read, row));
        if (words > 0 || likeness > 0) {
          execution.counters.hits++;
          const rankedRow = {
            key: String(cellAt(read[1]!, 'string', row) ?? ''),
            systemFrom: timeOf(read, row),
            words,
            likeness,
          };
          if (words > 0 && words >= byWords.floor) byWords.offer({ ...rankedRow, score: words });
          if (likeness > 0 && likeness >= byLikeness.floor) byLikeness.offer({ ...rankedRow, score: likeness });
        }
        if (k % textsAtOnce === textsAtOnce - 1) yield emptyBatch;
      }
      yield emptyBatch;
    }
    if (unseen.count > 0 && sought !== null && sought !== 'hashed') execution.notices.push(unseenNotice(unseen.count, sought));
    if (isAlike) {
      const best = byLikeness.list();
      checkRanked(node, best.length, execution);
      return yield* rankedRows(node, execution, best, scoreColumn);
    }
    const arms = (score === undefined ? 0 : 1) + (this.#opening.prepared === null ? 0 : 1);
    const all = fuse(byWords.list(), byLikeness.list(), isLinear ? Math.max(1, arms) : null);
    const fused = (isReranked(node) ? yield* this.#rerank(all.slice(0, Math.max(most, rerankedMost))) : all).slice(0, most);
    checkRanked(node, fused.length, execution);
    yield* rankedRows(node, execution, fused, scoreColumn);
  }

  /** The rows in the order of a reranker, by their visible text columns; in their own order where it does not answer. */
  *#rerank(rows: readonly Candidate[]): Generator<Batch, readonly Candidate[]> {
    const { node, values, execution } = this.#opening;
    const { kernels, memory, notices } = execution;
    const { reranker } = execution.services;
    assert(reranker !== null && node.type !== null, 'a reranker is there by now');
    const texts = textsRead(node, holdsTexts);
    const shown: string[] = [];
    let heldBytes = 0;
    for (const { systemFrom } of rows) {
      const version = fetchVersion(execution, node.type, [...texts.map(({ name }) => name), 'system_from'], systemFrom);
      const cells = version ? texts.flatMap(({ type }, i) => textsAt(version.columns[i]!, type, version.row)) : [];
      const text = cells.join('\n').slice(0, shownMost);
      shown.push(text);
      heldBytes = memory.change(heldBytes, heldBytes + text.length * 2);
      yield emptyBatch;
    }
    let scores: readonly number[] | null = null;
    const reranking = reranker.rerank(values.text('QUERY', kernels)!, shown, undefined);
    execution.wait.until = reranking.then(
      (given) => void (scores = given),
      (error: unknown) => void notices.push(`${messageOf(error)}: rows stand in the order of both rankings`),
    );
    while (execution.wait.until !== null) yield emptyBatch;
    memory.change(heldBytes, 0);
    const given = scores as readonly number[] | null;
    return given === null ? rows : rows.map((row, i) => ({ ...row, score: given[i]! })).sort(compareRanked);
  }
}

function messageOf(error: unknown): string {
  return error instanceof ServiceError ? error.message : 'the reranker does not answer';
}

function isAlikeAlone({ words }: FunctionNode): boolean {
  // The first word is the type.
  return words.slice(1).includes('likeness');
}

function isReranked({ columns }: FunctionNode): boolean {
  return columns.some(({ name }) => name === rerankedColumn);
}

/** A column of texts, and its index among those read. */
interface TextColumn {
  readonly at: number;
  readonly type: ColumnType;
}

type Meaning = (columns: readonly Vector[], row: number) => number;

/** How alike a row is to the text; `unseen` counts the rows with texts that no vector of the model is there for. */
function meaningOf(
  prepared: Sought | 'hashed' | null,
  text: string,
  { texts, vectors }: { readonly texts: readonly TextColumn[]; readonly vectors: readonly number[] },
  unseen: { count: number },
): Meaning {
  if (prepared === null) return () => 0;
  if (prepared !== 'hashed') {
    const { direction, stored, model } = prepared;
    return (columns, row) => {
      let highest: number | null = null;
      for (const column of vectors) {
        const vector = columns[column]!;
        if (vector.kind !== 'vec' || vector.dims !== direction.dims || vector.nulls?.[row] === 1) continue;
        highest = Math.max(highest ?? 0, direction.cosine(vector.values, row * vector.dims));
      }
      if (highest !== null || model === null) return highest ?? 0;
      const found = stored?.vectorAt(timeOf(columns, row)) ?? null;
      if (found !== null && found.dims === direction.dims) return direction.cosine(found.values, found.at);
      if (texts.some(({ at: column, type }) => type === 'string' && hasText(cellAt(columns[column]!, type, row)))) unseen.count++;
      return 0;
    };
  }
  const sought = new Float64Array(hashedDims);
  addHashed(text, sought);
  const own = new Float64Array(hashedDims);
  return (columns, row) => {
    own.fill(0);
    for (const { at: column, type } of texts) for (const each of textsAt(columns[column]!, type, row)) addHashed(each, own);
    return cosineOf(sought, own);
  };
}

function timeOf(columns: readonly Vector[], row: number): bigint {
  const times = columns[0]!;
  assert(times.kind === 'i64', 'system times are i64');
  return times.values[row]!;
}

function unseenNotice(count: number, { model, stored }: Sought): string {
  const rows = `${count} ${count === 1 ? 'row is' : 'rows are'} ranked by words alone`;
  if (stored === null) return `${rows}: of rows that others share no vector is compared`;
  return `${rows}: for ${count === 1 ? 'it' : 'them'} there is no vector of the model ${model} at this instant`;
}

/** Columns that are read, of types that are texts. */
function textsRead({ input, reads }: FunctionNode, areTexts: (type: ColumnType) => boolean): readonly PlanColumn[] {
  return reads.slice(2).flatMap((column) => {
    const read = input!.columns[column]!;
    return areTexts(read.type) ? [read] : [];
  });
}

/** The text of a cell, or those of its JSON. */
function textsAt(vector: Vector, type: ColumnType, row: number): readonly string[] {
  const cell = cellAt(vector, type, row);
  if (typeof cell !== 'string') return [];
  return type === 'json' ? jsonTexts(cell) : [cell];
}

function numberAt(vector: Vector, row: number): number {
  return vector.kind === 'f64' && vector.nulls?.[row] !== 1 ? vector.values[row]! : 0;
}

/** One score for each row of either ranking, best first: a mean of scores, or, for null, by ranks. */
function fuse(byWords: readonly Candidate[], byLikeness: readonly Candidate[], mean: number | null): readonly Candidate[] {
  const scores = new Map<bigint, number>();
  const rows = new Map<bigint, Candidate>();
  // Source: docs/search.md; a score of the median counts as a half of all that words can say.
  const half = byWords[Math.floor((Math.min(byWords.length, medianOf) - 1) / 2)]?.score ?? 1;
  for (const ranking of [byWords, byLikeness]) {
    for (const [i, row] of ranking.entries()) {
      rows.set(row.systemFrom, row);
      const score =
        mean !== null
          ? (row.words / (row.words + half) + row.likeness) / mean
          : (scores.get(row.systemFrom) ?? 0) + 1 / (rankConstant + i + 1);
      scores.set(row.systemFrom, score);
    }
  }
  return [...rows.values()].map((row) => ({ ...row, score: scores.get(row.systemFrom)! })).sort(compareRanked);
}
