/**
 * Which versions of a segment were superseded or removed, and by which position. Invariants:
 *
 * - `values[row]` is the position that superseded the version, less the segment's base; `OPEN` while nothing did, `REMOVED` once it
 *   was removed for good, or where it came without its cells;
 * - the live bitmap shows open versions as of the last applied entry; like `values` it exists only once a version was closed.
 */
import { assert } from '../../../errors.ts';
import type { RowArrays } from './row-arrays.ts';
import { SEGMENT_ROWS } from './segment-column.ts';

/** Closing of an open version, in the narrow layout. */
export const OPEN = 2_147_483_647;
export const REMOVED = -1;
/** Positions that the narrow layout holds, counted from the base. */
export const DELTA_MAX = 2_147_483_646;

/** Shared memory is filled word by word, but copied in one go. */
const allOpen = new Int32Array(SEGMENT_ROWS).fill(OPEN);

export class Closings {
  readonly #base: number;
  readonly #arrays: RowArrays;
  /** Null while nothing was closed; widened to doubles (open = Infinity) when something is closed 2^31 positions after the base. */
  values: Int32Array | Float64Array | null = null;
  /** One bit a row, 1 = open; null while every row is. */
  live: Int32Array | null = null;
  liveCount = 0;
  removedCount = 0;
  /** Rises when cells were wiped: earlier summaries may be looser than need be. */
  removals = 0;
  /** Least and greatest closing position of versions that something superseded. */
  least = Infinity;
  most = -Infinity;

  constructor(base: number, arrays: RowArrays) {
    this.#base = base;
    this.#arrays = arrays;
  }

  /** Position that superseded the version; Infinity while none did. */
  closingOf(row: number): number {
    const { values } = this;
    if (values === null) return Infinity;
    const closing = values[row]!;
    return closing === OPEN && values instanceof Int32Array ? Infinity : this.#base + closing;
  }

  isOpen(row: number): boolean {
    return !this.values || this.values[row] === (this.values instanceof Int32Array ? OPEN : Infinity);
  }

  isRemoved(row: number): boolean {
    return this.values !== null && this.values[row] === REMOVED;
  }

  /** The first row from there on that is removed; -1 where none is. */
  removedFrom(row: number): number {
    return this.removedCount === 0 ? -1 : this.values!.indexOf(REMOVED, row);
  }

  /** Rows first .. length-1 came, open. */
  extend(first: number, length: number): void {
    if (this.values) this.values.fill(this.values instanceof Int32Array ? OPEN : Infinity, first, length);
    if (this.live) for (let row = first; row < length; row++) this.live[row >>> 5]! |= 1 << (row & 31);
    this.liveCount += length - first;
  }

  /** `length` is how many rows there are. */
  close(row: number, position: number, length: number): void {
    assert(this.isOpen(row), 'a version is closed once');
    const delta = position - this.#base;
    this.#ownValues(length);
    if (delta > DELTA_MAX && this.values instanceof Int32Array) this.#widen(length);
    this.values![row] = delta;
    this.least = Math.min(this.least, position);
    this.most = Math.max(this.most, position);
    this.#ownLive(length)[row >>> 5]! &= ~(1 << (row & 31));
    this.liveCount--;
  }

  remove(row: number, length: number): void {
    assert(!this.isRemoved(row), 'a version is removed once');
    if (this.isOpen(row)) {
      this.#ownLive(length)[row >>> 5]! &= ~(1 << (row & 31));
      this.liveCount--;
    }
    this.#ownValues(length)[row] = REMOVED;
    this.removedCount++;
    this.removals++;
  }

  /** Makes room, so that the first closing costs no more than the next. */
  expect(length: number): void {
    this.#ownValues(length);
    this.#ownLive(length);
  }

  grow(): void {
    if (this.values instanceof Int32Array) this.values = this.#arrays.grow(Int32Array, this.values);
    else if (this.values) this.values = this.#arrays.grow(Float64Array, this.values);
  }

  seal(length: number): void {
    const { extents } = this.#arrays;
    if (this.values) this.values = extents.settle<Int32Array | Float64Array>(this.values, length);
    if (this.live) this.live = extents.settle(this.live, this.live.length);
  }

  get bytes(): number {
    return (this.values?.byteLength ?? 0) + (this.live?.byteLength ?? 0);
  }

  /** Takes the closings of `length` rows as they were saved; everything else follows from them. */
  restore(values: Int32Array | Float64Array | null, length: number): void {
    this.values = values;
    this.liveCount = length;
    if (!values) return;
    for (let row = 0; row < length; row++) {
      if (this.isOpen(row)) continue;
      this.#ownLive(length)[row >>> 5]! &= ~(1 << (row & 31));
      this.liveCount--;
      if (this.isRemoved(row)) {
        this.removedCount++;
        continue;
      }
      const position = this.closingOf(row);
      this.least = Math.min(this.least, position);
      this.most = Math.max(this.most, position);
    }
  }

  #ownLive(length: number): Int32Array {
    if (!this.live) {
      this.live = this.#arrays.allocate(Int32Array, SEGMENT_ROWS >>> 5).fill(0);
      const whole = length >>> 5;
      this.live.fill(-1, 0, whole);
      if ((length & 31) !== 0) this.live[whole] = (1 << (length & 31)) - 1;
    }
    return this.live;
  }

  #ownValues(length: number): Int32Array | Float64Array {
    if (!this.values) {
      this.values = this.#arrays.allocate(Int32Array);
      this.values.set(allOpen.subarray(0, length));
    }
    return this.values;
  }

  #widen(length: number): void {
    const narrow = this.values!;
    const wide = this.#arrays.allocate(Float64Array, narrow.length);
    for (let row = 0; row < length; row++) wide[row] = narrow[row] === OPEN ? Infinity : narrow[row]!;
    this.values = wide;
    this.#arrays.extents.giveBack(narrow);
  }
}
