/** The valid axis of a segment: where its versions were given bounds, and the extremes of these. */
import { assert } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';
import type { Timeline } from '../../../log/values/timeline.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import type { RowArrays } from './row-arrays.ts';

/** Extremes of the valid axis over a segment's given bounds. */
export interface ValidZone {
  readonly fromLeast: bigint;
  readonly fromMost: bigint;
  readonly toLeast: bigint;
  readonly toMost: bigint;
}

/** Extremes of the first `length` rows. */
interface BoundExtremes {
  readonly length: number;
  readonly least: bigint;
  readonly most: bigint;
}

const noExtremes: BoundExtremes = { length: 0, least: FOREVER, most: FOREVER };

/** Rows of a vector that bounds are given by: `count` from `source` on, for the segment's rows from `first` on. */
export interface GivenRows {
  readonly source: number;
  readonly first: number;
  readonly count: number;
}

/** Writes the system_from of rows first .. first+count-1 into the elements of those rows. */
export type WriteTimes = (target: BigInt64Array, first: number, count: number) => void;

export class ValidBounds {
  readonly #boundArrays: RowArrays;
  /** Null while every version is valid from its own system_from. */
  from: BigInt64Array | null = null;
  /** Null while every version is valid for ever. */
  to: BigInt64Array | null = null;
  #validFromExtremes: BoundExtremes = noExtremes;
  #validToExtremes: BoundExtremes = noExtremes;

  constructor(rowArrays: RowArrays) {
    this.#boundArrays = rowArrays;
  }

  zone(length: number): ValidZone {
    const fromExtremes = this.from ? widenBoundExtremes(this.#validFromExtremes, this.from, length) : noExtremes;
    const toExtremes = this.to ? widenBoundExtremes(this.#validToExtremes, this.to, length) : noExtremes;
    this.#validFromExtremes = fromExtremes;
    this.#validToExtremes = toExtremes;
    return { fromLeast: fromExtremes.least, fromMost: fromExtremes.most, toLeast: toExtremes.least, toMost: toExtremes.most };
  }

  /** Bounds of rows that just came; null vectors and null cells mean own system_from and FOREVER. */
  set(
    from: Vector,
    to: Vector,
    { source: givenStart, first: firstBoundRow, count: boundRowCount }: GivenRows,
    writeTimes: WriteTimes,
  ): void {
    assert((from.kind === 'i64' || from.kind === 'null') && (to.kind === 'i64' || to.kind === 'null'), 'bounds are 64 bits wide');
    const givenFrom = from.kind === 'i64' ? from : null;
    const givenTo = to.kind === 'i64' ? to : null;
    if (this.from || givenFrom) {
      const boundTimes = (this.from ??= this.#writableFromTimes(firstBoundRow, writeTimes));
      writeTimes(boundTimes, firstBoundRow, boundRowCount);
      if (givenFrom && !givenFrom.nulls)
        boundTimes.set(givenFrom.values.subarray(givenStart, givenStart + boundRowCount), firstBoundRow);
      else if (givenFrom)
        for (let i = 0; i < boundRowCount; i++)
          if (givenFrom.nulls![givenStart + i] !== 1) boundTimes[firstBoundRow + i] = givenFrom.values[givenStart + i]!;
    }
    if (this.to || givenTo) {
      const boundTimes = (this.to ??= this.#boundArrays.allocate(BigInt64Array).fill(FOREVER, 0, firstBoundRow));
      boundTimes.fill(FOREVER, firstBoundRow, firstBoundRow + boundRowCount);
      if (givenTo && !givenTo.nulls)
        boundTimes.set(givenTo.values.subarray(givenStart, givenStart + boundRowCount), firstBoundRow);
      else if (givenTo)
        for (let i = 0; i < boundRowCount; i++)
          if (givenTo.nulls![givenStart + i] !== 1) boundTimes[firstBoundRow + i] = givenTo.values[givenStart + i]!;
    }
  }

  /** A version that was removed has the bounds of one that was given none. */
  clear(row: number, position: number, timeline: Timeline): void {
    if (this.from) this.from[row] = timeline.timeOf(position);
    if (this.to) this.to[row] = FOREVER;
  }

  /** Cells that are part of the extremes have changed. */
  forgetZone(): void {
    this.#validFromExtremes = noExtremes;
    this.#validToExtremes = noExtremes;
  }

  grow(): void {
    if (this.from) this.from = this.#boundArrays.grow(BigInt64Array, this.from);
    if (this.to) this.to = this.#boundArrays.grow(BigInt64Array, this.to);
  }

  seal(length: number): void {
    const { extents } = this.#boundArrays;
    if (this.from) this.from = extents.settle(this.from, length);
    if (this.to) this.to = extents.settle(this.to, length);
  }

  get bytes(): number {
    return (this.from?.byteLength ?? 0) + (this.to?.byteLength ?? 0);
  }

  #writableFromTimes(count: number, writeTimes: WriteTimes): BigInt64Array {
    const systemTimes = this.#boundArrays.allocate(BigInt64Array);
    writeTimes(systemTimes, 0, count);
    return systemTimes;
  }
}

/** Takes in the rows that came since; all of them where the bounds came later than the segment's first row. */
function widenBoundExtremes(extremesBefore: BoundExtremes, boundTimes: BigInt64Array, length: number): BoundExtremes {
  if (extremesBefore.length === length) return extremesBefore;
  let { least: leastBound, most: mostBound } = extremesBefore;
  if (extremesBefore === noExtremes) leastBound = mostBound = boundTimes[0]!;
  for (let row = extremesBefore.length; row < length; row++) {
    const boundTime = boundTimes[row]!;
    if (boundTime < leastBound) leastBound = boundTime;
    if (boundTime > mostBound) mostBound = boundTime;
  }
  return { length, least: leastBound, most: mostBound };
}
