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
interface Extremes {
  readonly length: number;
  readonly least: bigint;
  readonly most: bigint;
}

const never: Extremes = { length: 0, least: FOREVER, most: FOREVER };

/** Rows of a vector that bounds are given by: `count` from `source` on, for the segment's rows from `first` on. */
export interface GivenRows {
  readonly source: number;
  readonly first: number;
  readonly count: number;
}

/** Writes the system_from of rows first .. first+count-1 into the elements of those rows. */
export type WriteTimes = (target: BigInt64Array, first: number, count: number) => void;

export class ValidBounds {
  readonly #arrays: RowArrays;
  /** Null while every version is valid from its own system_from. */
  from: BigInt64Array | null = null;
  /** Null while every version is valid for ever. */
  to: BigInt64Array | null = null;
  #fromZone: Extremes = never;
  #toZone: Extremes = never;

  constructor(arrays: RowArrays) {
    this.#arrays = arrays;
  }

  zone(length: number): ValidZone {
    const from = this.from ? widenExtremes(this.#fromZone, this.from, length) : never;
    const to = this.to ? widenExtremes(this.#toZone, this.to, length) : never;
    this.#fromZone = from;
    this.#toZone = to;
    return { fromLeast: from.least, fromMost: from.most, toLeast: to.least, toMost: to.most };
  }

  /** Bounds of rows that just came; null vectors and null cells mean own system_from and FOREVER. */
  set(from: Vector, to: Vector, { source, first, count }: GivenRows, writeTimes: WriteTimes): void {
    assert((from.kind === 'i64' || from.kind === 'null') && (to.kind === 'i64' || to.kind === 'null'), 'bounds are 64 bits wide');
    const given = from.kind === 'i64' ? from : null;
    const ends = to.kind === 'i64' ? to : null;
    if (this.from || given) {
      const target = (this.from ??= this.#ownTimes(first, writeTimes));
      writeTimes(target, first, count);
      if (given && !given.nulls) target.set(given.values.subarray(source, source + count), first);
      else if (given)
        for (let i = 0; i < count; i++) if (given.nulls![source + i] !== 1) target[first + i] = given.values[source + i]!;
    }
    if (this.to || ends) {
      const target = (this.to ??= this.#arrays.allocate(BigInt64Array).fill(FOREVER, 0, first));
      target.fill(FOREVER, first, first + count);
      if (ends && !ends.nulls) target.set(ends.values.subarray(source, source + count), first);
      else if (ends)
        for (let i = 0; i < count; i++) if (ends.nulls![source + i] !== 1) target[first + i] = ends.values[source + i]!;
    }
  }

  /** A version that was removed has the bounds of one that was given none. */
  clear(row: number, position: number, timeline: Timeline): void {
    if (this.from) this.from[row] = timeline.timeOf(position);
    if (this.to) this.to[row] = FOREVER;
  }

  /** Cells that are part of the extremes have changed. */
  forgetZone(): void {
    this.#fromZone = never;
    this.#toZone = never;
  }

  grow(): void {
    if (this.from) this.from = this.#arrays.grow(BigInt64Array, this.from);
    if (this.to) this.to = this.#arrays.grow(BigInt64Array, this.to);
  }

  seal(length: number): void {
    const { extents } = this.#arrays;
    if (this.from) this.from = extents.settle(this.from, length);
    if (this.to) this.to = extents.settle(this.to, length);
  }

  get bytes(): number {
    return (this.from?.byteLength ?? 0) + (this.to?.byteLength ?? 0);
  }

  #ownTimes(count: number, writeTimes: WriteTimes): BigInt64Array {
    const times = this.#arrays.allocate(BigInt64Array);
    writeTimes(times, 0, count);
    return times;
  }
}

/** Takes in the rows that came since; all of them where the bounds came later than the segment's first row. */
function widenExtremes(before: Extremes, values: BigInt64Array, length: number): Extremes {
  if (before.length === length) return before;
  let { least, most } = before;
  if (before === never) least = most = values[0]!;
  for (let row = before.length; row < length; row++) {
    const value = values[row]!;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return { length, least, most };
}
