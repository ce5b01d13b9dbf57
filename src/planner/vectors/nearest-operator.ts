/**
 * Yields rows that may be among the nearest to a vector: a superset of these, in the order of the input, which the sort above
 * orders exactly as it would order all rows. A row that neither bytes nor an estimate of the cosine rule out has its distance
 * computed by the very function that the sort uses.
 */
import { assert, ServiceError } from '../../errors.ts';
import type { Nearest } from '../logical-plan.ts';
import {
  type Batch,
  emptyBatch,
  type Execution,
  firstRows,
  type Operator,
  type Pieces,
  PiecesOperator,
} from '../operators/operator.ts';
import { vectorIn } from '../expressions/functions/vectors.ts';
import { Candidates } from './coarse-candidates.ts';
import { pieceOf } from './cosine-scorer.ts';
import { Direction, estimateError } from '../expressions/cosine.ts';
import { Estimates } from './cosine-estimates.ts';
import { rowAt } from './similarity-scorer.ts';
import { piecesOf } from './similar-operator.ts';
import type { VectorColumn } from './vector-column.ts';

/** Rows that are looked at before the farthest of the nearest is known, and from then on. */
const firstAtOnce = 128;
const rowsAtOnce = 8_192;
/** Most that rounding can make of a cosine on its way to a distance and back, counted generously. */
const rounding = 2 ** -24;

export class NearestOperator extends PiecesOperator {
  readonly #input: Operator;
  readonly #nearest: Nearest;
  readonly #execution: Execution;
  #bounds: Bounds | null = null;

  constructor(input: Operator, nearest: Nearest, execution: Execution) {
    super();
    this.#input = input;
    this.#nearest = nearest;
    this.#execution = execution;
    const [wanted, most] = [firstRows(nearest.limit, nearest.offset, execution), execution.limits.vectorRowsMax];
    if (wanted > most)
      throw new ServiceError('REL_VECTOR_BUDGET', `the nearest vectors are at most ${most}: LIMIT asks for ${wanted}`);
  }

  close(): void {
    this.#input.close();
    this.#bounds?.close();
  }

  protected *pieces(): Pieces {
    const { column, counted, limit, offset } = this.#nearest;
    const { counters } = this.#execution;
    const first = new Distances(firstRows(limit, offset, this.#execution));
    for (let batch = this.#input.next(); batch !== null; batch = this.#input.next()) {
      const vectors = batch.columns[column];
      // Vectors of another length are an error, which the distance itself says best.
      if (batch.count === 0 || vectors?.kind !== 'vec' || !this.#compares(vectors)) {
        yield batch;
        continue;
      }
      for (const part of piecesOf({ ...batch, columns: [vectors] })) {
        for (let from = 0; from < part.count; ) {
          const piece = pieceOf(part, from, first.farthest === Number.POSITIVE_INFINITY ? firstAtOnce : rowsAtOnce);
          from += piece.count;
          const nearRows = this.#keep(piece, vectors, first);
          if (counted) counters.hits += piece.count - nearRows.length;
          yield nearRows.length === 0
            ? emptyBatch
            : { columns: batch.columns, selection: nearRows, first: 0, count: nearRows.length };
        }
      }
    }
  }

  /** Whether there is a vector to compare with, of the length of the column's. */
  #compares({ dims }: VectorColumn): boolean {
    if (this.#bounds === null) {
      const vector = vectorIn(this.#execution.kernels.constant(this.#nearest.to));
      if (vector === null || vector.length !== dims) return false;
      this.#bounds = new Bounds(vector, this.#nearest.distance.name);
    }
    return this.#bounds.vector.length === dims;
  }

  #keep(piece: Batch, vectors: VectorColumn, first: Distances): Int32Array {
    const { vector } = this.#bounds!;
    const { function: signature } = this.#nearest.distance;
    const { values, dims, nulls } = vectors;
    const bounds = this.#bounds!;
    const left = bounds.notRuledOut(piece, vectors, first.farthest);
    const rows = new Int32Array(left.count);
    let nearCount = 0;
    let least = bounds.least(first.farthest);
    for (let k = 0; k < left.count; k++) {
      if (bounds.rulesOut(k, least)) continue;
      const row = rowAt(left, k);
      const far = nulls?.[row] === 1 ? null : signature.evaluate(values.subarray(row * dims, (row + 1) * dims), vector);
      assert(far === null || typeof far === 'number', 'a distance is a number');
      if (!first.take(far)) continue;
      rows[nearCount++] = row;
      least = bounds.least(first.farthest);
    }
    return rows.subarray(0, nearCount);
  }
}

/** Rules out rows farther than the farthest of the nearest so far, without computing their distance. */
class Bounds {
  readonly vector: Float32Array;
  /** Null: the cosine rules nothing out. */
  readonly #direction: Direction | null;
  readonly #isCosine: boolean;
  readonly #estimates: Estimates | null;
  #candidates: Candidates | null = null;
  #nearRows = new Int32Array(0);
  #cosines = new Float32Array(0);
  #error = 0;

  constructor(vector: Float32Array, distance: string) {
    this.vector = vector;
    this.#isCosine = distance === '<=>';
    const direction = new Direction(vector);
    // The inner product grows with the length of a row's vector, at every angle.
    const rules = distance !== '<#>' && direction.length > 0 && Number.isFinite(direction.length);
    this.#direction = rules ? direction : null;
    this.#estimates = rules ? new Estimates(direction.unit()) : null;
  }

  close(): void {
    this.#estimates?.close();
    this.#candidates?.close();
  }

  /**
   * The cosine below which a row is farther than this. For the Euclidean distance it holds for vectors of every length: the
   * closest point to q at an angle is
   * q
   * sin away.
   */
  least(farthest: number): number {
    if (farthest === Number.NEGATIVE_INFINITY) return Number.POSITIVE_INFINITY;
    if (this.#direction === null || farthest === Number.POSITIVE_INFINITY) return Number.NEGATIVE_INFINITY;
    if (this.#isCosine) return 1 - farthest - rounding;
    const share = farthest / this.#direction.length;
    return share >= 1 ? Number.NEGATIVE_INFINITY : Math.sqrt(1 - share * share) - rounding;
  }

  /** The rows of a piece that the bytes don't rule out; `rulesOut` then takes places in these. */
  notRuledOut(piece: Batch, vectors: VectorColumn, farthest: number): Batch {
    if (this.#estimates === null) return piece;
    const least = this.least(farthest);
    const left = least === Number.NEGATIVE_INFINITY ? piece : this.#byBytes(piece, vectors, least);
    if (this.#cosines.length < left.count) this.#cosines = new Float32Array(rowsAtOnce);
    this.#estimates.estimate(vectors, left, this.#cosines);
    this.#error = estimateError(vectors.dims);
    return left;
  }

  /** Estimates of 32 bits that can't decide, NaN among them, rule nothing out. */
  rulesOut(k: number, least: number): boolean {
    return this.#estimates !== null && this.#cosines[k]! < least - this.#error;
  }

  #byBytes(piece: Batch, vectors: VectorColumn, least: number): Batch {
    const coarse = vectors.coarse?.cells() ?? null;
    if (coarse === null) return piece;
    this.#candidates ??= new Candidates(this.#direction!, coarse.width);
    if (this.#nearRows.length < piece.count) this.#nearRows = new Int32Array(rowsAtOnce);
    const count = this.#candidates.find(coarse, { ...piece, columns: [vectors] }, least, this.#nearRows);
    if (count === null) return piece;
    const selection = this.#nearRows.slice(0, count).map((k) => rowAt(piece, k));
    return { ...piece, selection, first: 0, count };
  }
}

/** The smallest of the distances that were taken: a heap whose root is the greatest. NULL comes after all of them. */
class Distances {
  readonly #most: number;
  readonly #heap: number[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  /** Rows farther than this are not among the first; infinite until there are that many. */
  get farthest(): number {
    if (this.#most === 0) return Number.NEGATIVE_INFINITY;
    return this.#heap.length < this.#most ? Number.POSITIVE_INFINITY : this.#heap[0]!;
  }

  /** Whether a row this far may be among the first. One as far as the last of them may: other keys tell them apart. */
  take(far: number | null): boolean {
    const { farthest } = this;
    if (far === null) return farthest === Number.POSITIVE_INFINITY;
    if (far > farthest) return false;
    if (this.#heap.length < this.#most) this.#rise(far);
    else if (far < farthest) this.#sink(far);
    return true;
  }

  #rise(far: number): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(far);
    for (let above = (at - 1) >> 1; at > 0 && heap[above]! < far; at = above, above = (at - 1) >> 1) heap[at] = heap[above]!;
    heap[at] = far;
  }

  #sink(far: number): void {
    const heap = this.#heap;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below + 1 < heap.length && heap[below + 1]! > heap[below]!) below++;
      if (below >= heap.length || heap[below]! <= far) break;
      heap[at] = heap[below]!;
      at = below;
    }
    heap[at] = far;
  }
}
