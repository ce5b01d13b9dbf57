/**
 * Scores by the highest cosine over columns and directions. Bytes say which rows may be among the best, where there are any;
 * estimates in 32 bits say it more closely; and only of those rows is the cosine worked out.
 */
import type { Batch } from '../operators/operator.ts';
import { Candidates } from './coarse-candidates.ts';
import { type Direction, estimateError } from '../expressions/cosine.ts';
import { Estimates } from './cosine-estimates.ts';
import { hitRow, type Ranking, rowAt, type Scorer, timeAt } from './similarity-scorer.ts';

/** Rows that are looked at before the least of the best is known. */
const firstRows = 512;
/** So few rows are worked out without asking which of them may be among the best: room to ask in would cost more. */
const fewRows = 64;
/** Rows for which candidates are found at once: the bound of the best rises in between. */
const rowsAtOnce = 8_192;

/** One column and the directions that its vectors are compared with. */
export class Slot {
  /** Its index in the batch. */
  readonly column: number;
  readonly directions: readonly ComparedDirection[];

  constructor(column: number, directions: readonly Direction[]) {
    this.column = column;
    this.directions = directions.map((direction) => ({
      direction,
      estimates: new Estimates(direction.unit()),
      candidates: null,
    }));
  }
}

interface ComparedDirection {
  readonly direction: Direction;
  readonly estimates: Estimates;
  /** Created on first use. */
  candidates: Candidates | null;
}

export class CosineScorer implements Scorer {
  readonly #slots: readonly Slot[];
  #highest = new Float32Array(0);
  #one = new Float32Array(0);
  #candidateIndexes = new Int32Array(0);

  constructor(slots: readonly Slot[]) {
    this.#slots = slots;
  }

  *score(batch: Batch, ranking: Ranking): Generator<undefined, void> {
    for (let from = 0; from < batch.count; ) {
      const least = ranking.threshold > Number.NEGATIVE_INFINITY ? ranking.threshold : ranking.best.floor;
      const piece = pieceOf(batch, from, least === Number.NEGATIVE_INFINITY ? firstRows : rowsAtOnce);
      from += piece.count;
      const left = this.#candidateRows(piece, least, ranking);
      if (left.count > 0) yield* this.#scoreEach(left, ranking);
      else yield;
    }
  }

  close(): void {
    for (const { directions } of this.#slots) {
      for (const { estimates, candidates } of directions) {
        estimates.close();
        candidates?.close();
      }
    }
  }

  /** The rows that may reach this score; hits among the others are counted. */
  #candidateRows(batch: Batch, least: number, { threshold, seeds, execution: { counters } }: Ranking): Batch {
    if (batch.count <= fewRows || least === Number.NEGATIVE_INFINITY || hasSeed(batch, seeds)) return batch;
    const candidateRows = this.#candidates(batch, least);
    if (candidateRows === null) return batch;
    const left = { ...batch, selection: candidateRows.map((k) => rowAt(batch, k)), first: 0, count: candidateRows.length };
    // With a threshold, a row that can't reach it is no hit.
    if (threshold === Number.NEGATIVE_INFINITY) counters.hits += this.#comparedRows(batch) - this.#comparedRows(left);
    return left;
  }

  /** Places in the batch, ascending; null where bytes can't tell. */
  #candidates(batch: Batch, least: number): Int32Array | null {
    if (this.#candidateIndexes.length < batch.count) this.#candidateIndexes = new Int32Array(batch.count);
    let candidates: Int32Array | null = null;
    for (const { column, directions } of this.#slots) {
      const vector = batch.columns[column]!;
      if (vector.kind !== 'vec') continue;
      const coarse = vector.coarse?.cells() ?? null;
      if (coarse === null) return null;
      for (const compared of directions) {
        if (compared.direction.dims !== vector.dims) continue;
        compared.candidates ??= new Candidates(compared.direction, coarse.width);
        const count = compared.candidates.find(coarse, batch, least, this.#candidateIndexes);
        if (count === null) return null;
        const candidateRows = this.#candidateIndexes.slice(0, count);
        candidates = candidates === null ? candidateRows : union(candidates, candidateRows);
      }
    }
    return candidates;
  }

  /** How many rows have a vector that is compared. */
  #comparedRows(batch: Batch): number {
    const { columns, count } = batch;
    const nulls: Uint8Array[] = [];
    let compares = false;
    for (const { column, directions } of this.#slots) {
      const vector = columns[column]!;
      if (vector.kind !== 'vec' || directions.every(({ direction }) => direction.dims !== vector.dims)) continue;
      if (vector.nulls === null) return count;
      compares = true;
      nulls.push(vector.nulls);
    }
    if (!compares) return 0;
    let compared = 0;
    for (let k = 0; k < count; k++) {
      const row = rowAt(batch, k);
      if (nulls.some((each) => each[row] !== 1)) compared++;
    }
    return compared;
  }

  *#scoreEach(batch: Batch, ranking: Ranking): Generator<undefined, void> {
    const { count } = batch;
    if (this.#highest.length < count) {
      this.#highest = new Float32Array(count);
      this.#one = new Float32Array(count);
    }
    const highest = this.#highest.subarray(0, count).fill(Number.NEGATIVE_INFINITY);
    let error = 0;
    for (const { column, directions } of this.#slots) {
      const vector = batch.columns[column]!;
      if (vector.kind !== 'vec') continue;
      for (const { direction, estimates } of directions) {
        if (direction.dims !== vector.dims) continue;
        error = Math.max(error, estimateError(vector.dims));
        if (count > fewRows) estimates.estimate(vector, batch, this.#one);
        else this.#one.fill(Number.NaN, 0, count);
        merge(highest, this.#one, vector.nulls, batch);
        yield;
      }
    }
    const { best, threshold, seeds, execution } = ranking;
    const { counters } = execution;
    const [least, surely] = [threshold - error, threshold + error];
    let floor = best.floor - error;
    for (let k = 0; k < count; k++) {
      const estimate = highest[k]!;
      // Estimates of 32 bits that can't decide, NaN among them, are computed exactly.
      if (estimate === Number.NEGATIVE_INFINITY || estimate < least) continue;
      if (estimate >= surely && estimate < floor && seeds.size === 0) {
        counters.hits++;
        continue;
      }
      const row = rowAt(batch, k);
      if (seeds.size > 0 && seeds.has(timeAt(batch.columns[0]!, row))) continue;
      if (estimate >= surely && estimate < floor) {
        counters.hits++;
        continue;
      }
      const score = this.#cosine(batch, row);
      if (score < threshold) continue;
      hitRow(batch, row, score, ranking);
      floor = best.floor - error;
    }
  }

  #cosine({ columns }: Batch, row: number): number {
    let highest = Number.NEGATIVE_INFINITY;
    for (const { column, directions } of this.#slots) {
      const vector = columns[column]!;
      if (vector.kind !== 'vec' || vector.nulls?.[row] === 1) continue;
      for (const { direction } of directions) {
        if (direction.dims === vector.dims) highest = Math.max(highest, direction.cosine(vector.values, row * vector.dims));
      }
    }
    return highest;
  }
}

export function pieceOf(batch: Batch, from: number, most: number): Batch {
  const { columns, selection, first } = batch;
  const count = Math.min(batch.count - from, most);
  if (count === batch.count) return batch;
  if (selection === null) return { columns, selection, first: first + from, count };
  return { columns, selection: selection.subarray(from, from + count), first: 0, count };
}

/** Whether a row may be one of the excluded seeds. Rows come in the order of system_from. */
function hasSeed(batch: Batch, seeds: ReadonlySet<bigint>): boolean {
  if (seeds.size === 0) return false;
  const times = batch.columns[0]!;
  const [least, most] = [timeAt(times, rowAt(batch, 0)), timeAt(times, rowAt(batch, batch.count - 1))];
  for (const seed of seeds) if (seed >= least && seed <= most) return true;
  return false;
}

function union(a: Int32Array, b: Int32Array): Int32Array {
  return Int32Array.from(new Set([...a, ...b])).sort();
}

/** The higher of two estimates of each row that has a vector; NaN where either is. */
function merge(highest: Float32Array, estimates: Float32Array, nulls: Uint8Array | null, batch: Batch): void {
  for (let k = 0; k < highest.length; k++) {
    if (nulls !== null && nulls[rowAt(batch, k)] === 1) continue;
    highest[k] = Math.max(highest[k]!, estimates[k]!);
  }
}
