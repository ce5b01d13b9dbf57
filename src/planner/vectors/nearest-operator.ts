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
const firstNearestRows = 128;
const nearestRowsAtOnce = 8_192;
/** Most that rounding can make of a cosine on its way to a distance and back, counted generously. */
const cosineRounding = 2 ** -24;

export class NearestOperator extends PiecesOperator {
  readonly #nearestRows: Operator;
  readonly #nearestClause: Nearest;
  readonly #nearestExecution: Execution;
  #nearestBounds: NearestBounds | null = null;

  constructor(nearestRows: Operator, nearestClause: Nearest, nearestExecution: Execution) {
    super();
    this.#nearestRows = nearestRows;
    this.#nearestClause = nearestClause;
    this.#nearestExecution = nearestExecution;
    const [wantedRows, nearestRowsMax] = [
      firstRows(nearestClause.limit, nearestClause.offset, nearestExecution),
      nearestExecution.limits.vectorRowsMax,
    ];
    if (wantedRows > nearestRowsMax)
      throw new ServiceError(
        'REL_VECTOR_BUDGET',
        `the nearest vectors are at most ${nearestRowsMax}: LIMIT asks for ${wantedRows}`,
      );
  }

  close(): void {
    this.#nearestRows.close();
    this.#nearestBounds?.close();
  }

  protected *pieces(): Pieces {
    const { column, counted, limit, offset } = this.#nearestClause;
    const { counters } = this.#nearestExecution;
    const nearestDistances = new NearestDistances(firstRows(limit, offset, this.#nearestExecution));
    for (let nearestBatch = this.#nearestRows.next(); nearestBatch !== null; nearestBatch = this.#nearestRows.next()) {
      const vectorColumn = nearestBatch.columns[column];
      // Vectors of another length are an error, which the distance itself says best.
      if (nearestBatch.count === 0 || vectorColumn?.kind !== 'vec' || !this.#comparesVectors(vectorColumn)) {
        yield nearestBatch;
        continue;
      }
      for (const batchPart of piecesOf({ ...nearestBatch, columns: [vectorColumn] })) {
        for (let firstOfPiece = 0; firstOfPiece < batchPart.count; ) {
          const nearestPiece = pieceOf(
            batchPart,
            firstOfPiece,
            nearestDistances.farthest === Number.POSITIVE_INFINITY ? firstNearestRows : nearestRowsAtOnce,
          );
          firstOfPiece += nearestPiece.count;
          const nearRows = this.#keepNearest(nearestPiece, vectorColumn, nearestDistances);
          if (counted) counters.hits += nearestPiece.count - nearRows.length;
          yield nearRows.length === 0
            ? emptyBatch
            : { columns: nearestBatch.columns, selection: nearRows, first: 0, count: nearRows.length };
        }
      }
    }
  }

  /** Whether there is a vector to compare with, of the length of the column's. */
  #comparesVectors({ dims: vectorDims }: VectorColumn): boolean {
    if (this.#nearestBounds === null) {
      const nearestVector = vectorIn(this.#nearestExecution.kernels.constant(this.#nearestClause.to));
      if (nearestVector === null || nearestVector.length !== vectorDims) return false;
      this.#nearestBounds = new NearestBounds(nearestVector, this.#nearestClause.distance.name);
    }
    return this.#nearestBounds.vector.length === vectorDims;
  }

  #keepNearest(nearestPiece: Batch, vectorColumn: VectorColumn, nearestDistances: NearestDistances): Int32Array {
    const { vector } = this.#nearestBounds!;
    const { function: distanceSignature } = this.#nearestClause.distance;
    const { values, dims, nulls } = vectorColumn;
    const nearestBounds = this.#nearestBounds!;
    const undecidedRows = nearestBounds.notRuledOut(nearestPiece, vectorColumn, nearestDistances.farthest);
    const keptRows = new Int32Array(undecidedRows.count);
    let nearCount = 0;
    let leastCosine = nearestBounds.least(nearestDistances.farthest);
    for (let k = 0; k < undecidedRows.count; k++) {
      if (nearestBounds.rulesOut(k, leastCosine)) continue;
      const nearestRow = rowAt(undecidedRows, k);
      const rowDistance =
        nulls?.[nearestRow] === 1
          ? null
          : distanceSignature.evaluate(values.subarray(nearestRow * dims, (nearestRow + 1) * dims), vector);
      assert(rowDistance === null || typeof rowDistance === 'number', 'a distance is a number');
      if (!nearestDistances.take(rowDistance)) continue;
      keptRows[nearCount++] = nearestRow;
      leastCosine = nearestBounds.least(nearestDistances.farthest);
    }
    return keptRows.subarray(0, nearCount);
  }
}

/** Rules out rows farther than the farthest of the nearest so far, without computing their distance. */
class NearestBounds {
  readonly vector: Float32Array;
  /** Null: the cosine rules nothing out. */
  readonly #boundDirection: Direction | null;
  readonly #isCosineDistance: boolean;
  readonly #cosineEstimates: Estimates | null;
  #coarseCandidates: Candidates | null = null;
  #nearRows = new Int32Array(0);
  #estimatedCosines = new Float32Array(0);
  #estimateError = 0;

  constructor(vector: Float32Array, distance: string) {
    this.vector = vector;
    this.#isCosineDistance = distance === '<=>';
    const boundDirection = new Direction(vector);
    // The inner product grows with the length of a row's vector, at every angle.
    const canRuleOut = distance !== '<#>' && boundDirection.length > 0 && Number.isFinite(boundDirection.length);
    this.#boundDirection = canRuleOut ? boundDirection : null;
    this.#cosineEstimates = canRuleOut ? new Estimates(boundDirection.unit()) : null;
  }

  close(): void {
    this.#cosineEstimates?.close();
    this.#coarseCandidates?.close();
  }

  /**
   * The cosine below which a row is farther than this. For the Euclidean distance it holds for vectors of every length: the
   * closest point to q at an angle is
   * q
   * sin away.
   */
  least(farthestDistance: number): number {
    if (farthestDistance === Number.NEGATIVE_INFINITY) return Number.POSITIVE_INFINITY;
    if (this.#boundDirection === null || farthestDistance === Number.POSITIVE_INFINITY) return Number.NEGATIVE_INFINITY;
    if (this.#isCosineDistance) return 1 - farthestDistance - cosineRounding;
    const distanceShare = farthestDistance / this.#boundDirection.length;
    return distanceShare >= 1 ? Number.NEGATIVE_INFINITY : Math.sqrt(1 - distanceShare * distanceShare) - cosineRounding;
  }

  /** The rows of a piece that the bytes don't rule out; `rulesOut` then takes places in these. */
  notRuledOut(boundPiece: Batch, vectorColumn: VectorColumn, farthestDistance: number): Batch {
    if (this.#cosineEstimates === null) return boundPiece;
    const leastCosine = this.least(farthestDistance);
    const candidateRows =
      leastCosine === Number.NEGATIVE_INFINITY ? boundPiece : this.#candidatesByBytes(boundPiece, vectorColumn, leastCosine);
    if (this.#estimatedCosines.length < candidateRows.count) this.#estimatedCosines = new Float32Array(nearestRowsAtOnce);
    this.#cosineEstimates.estimate(vectorColumn, candidateRows, this.#estimatedCosines);
    this.#estimateError = estimateError(vectorColumn.dims);
    return candidateRows;
  }

  /** Estimates of 32 bits that can't decide, NaN among them, rule nothing out. */
  rulesOut(k: number, leastCosine: number): boolean {
    return this.#cosineEstimates !== null && this.#estimatedCosines[k]! < leastCosine - this.#estimateError;
  }

  #candidatesByBytes(boundPiece: Batch, vectorColumn: VectorColumn, leastCosine: number): Batch {
    const coarseCells = vectorColumn.coarse?.cells() ?? null;
    if (coarseCells === null) return boundPiece;
    this.#coarseCandidates ??= new Candidates(this.#boundDirection!, coarseCells.width);
    if (this.#nearRows.length < boundPiece.count) this.#nearRows = new Int32Array(nearestRowsAtOnce);
    const candidateCount = this.#coarseCandidates.find(
      coarseCells,
      { ...boundPiece, columns: [vectorColumn] },
      leastCosine,
      this.#nearRows,
    );
    if (candidateCount === null) return boundPiece;
    const candidateRows = this.#nearRows.slice(0, candidateCount).map((k) => rowAt(boundPiece, k));
    return { ...boundPiece, selection: candidateRows, first: 0, count: candidateCount };
  }
}

/** The smallest of the distances that were taken: a heap whose root is the greatest. NULL comes after all of them. */
class NearestDistances {
  readonly #distancesMax: number;
  readonly #distanceHeap: number[] = [];

  constructor(distancesMax: number) {
    this.#distancesMax = distancesMax;
  }

  /** Rows farther than this are not among the first; infinite until there are that many. */
  get farthest(): number {
    if (this.#distancesMax === 0) return Number.NEGATIVE_INFINITY;
    return this.#distanceHeap.length < this.#distancesMax ? Number.POSITIVE_INFINITY : this.#distanceHeap[0]!;
  }

  /** Whether a row this far may be among the first. One as far as the last of them may: other keys tell them apart. */
  take(takenDistance: number | null): boolean {
    const { farthest: farthestDistance } = this;
    if (takenDistance === null) return farthestDistance === Number.POSITIVE_INFINITY;
    if (takenDistance > farthestDistance) return false;
    if (this.#distanceHeap.length < this.#distancesMax) this.#riseDistance(takenDistance);
    else if (takenDistance < farthestDistance) this.#sinkDistance(takenDistance);
    return true;
  }

  #riseDistance(risenDistance: number): void {
    const distanceHeap = this.#distanceHeap;
    let heapSlot = distanceHeap.length;
    distanceHeap.push(risenDistance);
    for (
      let parentSlot = (heapSlot - 1) >> 1;
      heapSlot > 0 && distanceHeap[parentSlot]! < risenDistance;
      heapSlot = parentSlot, parentSlot = (heapSlot - 1) >> 1
    )
      distanceHeap[heapSlot] = distanceHeap[parentSlot]!;
    distanceHeap[heapSlot] = risenDistance;
  }

  #sinkDistance(sunkDistance: number): void {
    const distanceHeap = this.#distanceHeap;
    let heapSlot = 0;
    for (;;) {
      let childSlot = 2 * heapSlot + 1;
      if (childSlot + 1 < distanceHeap.length && distanceHeap[childSlot + 1]! > distanceHeap[childSlot]!) childSlot++;
      if (childSlot >= distanceHeap.length || distanceHeap[childSlot]! <= sunkDistance) break;
      distanceHeap[heapSlot] = distanceHeap[childSlot]!;
      heapSlot = childSlot;
    }
    distanceHeap[heapSlot] = sunkDistance;
  }
}
