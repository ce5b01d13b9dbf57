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
const firstScoredRows = 512;
/** So few rows are worked out without asking which of them may be among the best: room to ask in would cost more. */
const fewScoredRows = 64;
/** Rows for which candidates are found at once: the bound of the best rises in between. */
const scoredRowsAtOnce = 8_192;

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
  readonly #vectorSlots: readonly Slot[];
  #highestEstimates = new Float32Array(0);
  #slotEstimates = new Float32Array(0);
  #candidateIndexes = new Int32Array(0);

  constructor(vectorSlots: readonly Slot[]) {
    this.#vectorSlots = vectorSlots;
  }

  *score(scoredBatch: Batch, similarityRanking: Ranking): Generator<undefined, void> {
    for (let firstScored = 0; firstScored < scoredBatch.count; ) {
      const leastCosine =
        similarityRanking.threshold > Number.NEGATIVE_INFINITY ? similarityRanking.threshold : similarityRanking.best.floor;
      const scoredPiece = pieceOf(
        scoredBatch,
        firstScored,
        leastCosine === Number.NEGATIVE_INFINITY ? firstScoredRows : scoredRowsAtOnce,
      );
      firstScored += scoredPiece.count;
      const candidateBatch = this.#rowsOfCandidates(scoredPiece, leastCosine, similarityRanking);
      if (candidateBatch.count > 0) yield* this.#scoreEachRow(candidateBatch, similarityRanking);
      else yield;
    }
  }

  close(): void {
    for (const { directions } of this.#vectorSlots) {
      for (const { estimates, candidates } of directions) {
        estimates.close();
        candidates?.close();
      }
    }
  }

  /** The rows that may reach this score; hits among the others are counted. */
  #rowsOfCandidates(scoredBatch: Batch, leastCosine: number, { threshold, seeds, execution: { counters } }: Ranking): Batch {
    if (scoredBatch.count <= fewScoredRows || leastCosine === Number.NEGATIVE_INFINITY || hasSeedRow(scoredBatch, seeds))
      return scoredBatch;
    const candidateRows = this.#candidatePlacesOf(scoredBatch, leastCosine);
    if (candidateRows === null) return scoredBatch;
    const candidateBatch = {
      ...scoredBatch,
      selection: candidateRows.map((k) => rowAt(scoredBatch, k)),
      first: 0,
      count: candidateRows.length,
    };
    // With a threshold, a row that can't reach it is no hit.
    if (threshold === Number.NEGATIVE_INFINITY)
      counters.hits += this.#comparedRowCount(scoredBatch) - this.#comparedRowCount(candidateBatch);
    return candidateBatch;
  }

  /** Places in the batch, ascending; null where bytes can't tell. */
  #candidatePlacesOf(scoredBatch: Batch, leastCosine: number): Int32Array | null {
    if (this.#candidateIndexes.length < scoredBatch.count) this.#candidateIndexes = new Int32Array(scoredBatch.count);
    let candidates: Int32Array | null = null;
    for (const { column, directions } of this.#vectorSlots) {
      const vectorColumn = scoredBatch.columns[column]!;
      if (vectorColumn.kind !== 'vec') continue;
      const coarseCells = vectorColumn.coarse?.cells() ?? null;
      if (coarseCells === null) return null;
      for (const comparedDirection of directions) {
        if (comparedDirection.direction.dims !== vectorColumn.dims) continue;
        comparedDirection.candidates ??= new Candidates(comparedDirection.direction, coarseCells.width);
        const candidateCount = comparedDirection.candidates.find(coarseCells, scoredBatch, leastCosine, this.#candidateIndexes);
        if (candidateCount === null) return null;
        const candidateRows = this.#candidateIndexes.slice(0, candidateCount);
        candidates = candidates === null ? candidateRows : unionPlaces(candidates, candidateRows);
      }
    }
    return candidates;
  }

  /** How many rows have a vector that is compared. */
  #comparedRowCount(comparedBatch: Batch): number {
    const { columns, count } = comparedBatch;
    const vectorNulls: Uint8Array[] = [];
    let hasComparedVector = false;
    for (const { column, directions } of this.#vectorSlots) {
      const vectorColumn = columns[column]!;
      if (vectorColumn.kind !== 'vec' || directions.every(({ direction }) => direction.dims !== vectorColumn.dims)) continue;
      if (vectorColumn.nulls === null) return count;
      hasComparedVector = true;
      vectorNulls.push(vectorColumn.nulls);
    }
    if (!hasComparedVector) return 0;
    let comparedCount = 0;
    for (let k = 0; k < count; k++) {
      const comparedRow = rowAt(comparedBatch, k);
      if (vectorNulls.some((slotNulls) => slotNulls[comparedRow] !== 1)) comparedCount++;
    }
    return comparedCount;
  }

  *#scoreEachRow(scoredBatch: Batch, similarityRanking: Ranking): Generator<undefined, void> {
    const { count } = scoredBatch;
    if (this.#highestEstimates.length < count) {
      this.#highestEstimates = new Float32Array(count);
      this.#slotEstimates = new Float32Array(count);
    }
    const highestEstimates = this.#highestEstimates.subarray(0, count).fill(Number.NEGATIVE_INFINITY);
    let cosineError = 0;
    for (const { column, directions } of this.#vectorSlots) {
      const vectorColumn = scoredBatch.columns[column]!;
      if (vectorColumn.kind !== 'vec') continue;
      for (const { direction, estimates } of directions) {
        if (direction.dims !== vectorColumn.dims) continue;
        cosineError = Math.max(cosineError, estimateError(vectorColumn.dims));
        if (count > fewScoredRows) estimates.estimate(vectorColumn, scoredBatch, this.#slotEstimates);
        else this.#slotEstimates.fill(Number.NaN, 0, count);
        mergeEstimates(highestEstimates, this.#slotEstimates, vectorColumn.nulls, scoredBatch);
        yield;
      }
    }
    const { best, threshold, seeds, execution } = similarityRanking;
    const { counters } = execution;
    const [leastEstimate, sureEstimate] = [threshold - cosineError, threshold + cosineError];
    let bestFloor = best.floor - cosineError;
    for (let k = 0; k < count; k++) {
      const rowEstimate = highestEstimates[k]!;
      // Estimates of 32 bits that can't decide, NaN among them, are computed exactly.
      if (rowEstimate === Number.NEGATIVE_INFINITY || rowEstimate < leastEstimate) continue;
      if (rowEstimate >= sureEstimate && rowEstimate < bestFloor && seeds.size === 0) {
        counters.hits++;
        continue;
      }
      const scoredRow = rowAt(scoredBatch, k);
      if (seeds.size > 0 && seeds.has(timeAt(scoredBatch.columns[0]!, scoredRow))) continue;
      if (rowEstimate >= sureEstimate && rowEstimate < bestFloor) {
        counters.hits++;
        continue;
      }
      const cosineScore = this.#highestCosine(scoredBatch, scoredRow);
      if (cosineScore < threshold) continue;
      hitRow(scoredBatch, scoredRow, cosineScore, similarityRanking);
      bestFloor = best.floor - cosineError;
    }
  }

  #highestCosine({ columns }: Batch, scoredRow: number): number {
    let highestCosine = Number.NEGATIVE_INFINITY;
    for (const { column, directions } of this.#vectorSlots) {
      const vectorColumn = columns[column]!;
      if (vectorColumn.kind !== 'vec' || vectorColumn.nulls?.[scoredRow] === 1) continue;
      for (const { direction } of directions) {
        if (direction.dims === vectorColumn.dims)
          highestCosine = Math.max(highestCosine, direction.cosine(vectorColumn.values, scoredRow * vectorColumn.dims));
      }
    }
    return highestCosine;
  }
}

export function pieceOf(wholeBatch: Batch, pieceStart: number, pieceRowsMax: number): Batch {
  const { columns, selection, first } = wholeBatch;
  const pieceCount = Math.min(wholeBatch.count - pieceStart, pieceRowsMax);
  if (pieceCount === wholeBatch.count) return wholeBatch;
  if (selection === null) return { columns, selection, first: first + pieceStart, count: pieceCount };
  return { columns, selection: selection.subarray(pieceStart, pieceStart + pieceCount), first: 0, count: pieceCount };
}

/** Whether a row may be one of the excluded seeds. Rows come in the order of system_from. */
function hasSeedRow(batch: Batch, seedTimes: ReadonlySet<bigint>): boolean {
  if (seedTimes.size === 0) return false;
  const systemTimes = batch.columns[0]!;
  const [leastSystemTime, greatestSystemTime] = [
    timeAt(systemTimes, rowAt(batch, 0)),
    timeAt(systemTimes, rowAt(batch, batch.count - 1)),
  ];
  for (const seedTime of seedTimes) if (seedTime >= leastSystemTime && seedTime <= greatestSystemTime) return true;
  return false;
}

function unionPlaces(onePlaces: Int32Array, otherPlaces: Int32Array): Int32Array {
  return Int32Array.from(new Set([...onePlaces, ...otherPlaces])).sort();
}

/** The higher of two estimates of each row that has a vector; NaN where either is. */
function mergeEstimates(
  highestEstimates: Float32Array,
  slotEstimates: Float32Array,
  vectorNulls: Uint8Array | null,
  batch: Batch,
): void {
  for (let k = 0; k < highestEstimates.length; k++) {
    if (vectorNulls !== null && vectorNulls[rowAt(batch, k)] === 1) continue;
    highestEstimates[k] = Math.max(highestEstimates[k]!, slotEstimates[k]!);
  }
}
