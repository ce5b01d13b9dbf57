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
const allOpenClosings = new Int32Array(SEGMENT_ROWS).fill(OPEN);

export class Closings {
  readonly #closingsBase: number;
  readonly #closingArrays: RowArrays;
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

  constructor(closingsBase: number, rowArrays: RowArrays) {
    this.#closingsBase = closingsBase;
    this.#closingArrays = rowArrays;
  }

  /** Position that superseded the version; Infinity while none did. */
  closingOf(row: number): number {
    const { values: closingValues } = this;
    if (closingValues === null) return Infinity;
    const closingDelta = closingValues[row]!;
    return closingDelta === OPEN && closingValues instanceof Int32Array ? Infinity : this.#closingsBase + closingDelta;
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
  extend(firstRow: number, length: number): void {
    if (this.values) this.values.fill(this.values instanceof Int32Array ? OPEN : Infinity, firstRow, length);
    if (this.live) for (let row = firstRow; row < length; row++) this.live[row >>> 5]! |= 1 << (row & 31);
    this.liveCount += length - firstRow;
  }

  /** `length` is how many rows there are. */
  close(row: number, closedAt: number, length: number): void {
    assert(this.isOpen(row), 'a version is closed once');
    const closingDelta = closedAt - this.#closingsBase;
    this.#writableClosings(length);
    if (closingDelta > DELTA_MAX && this.values instanceof Int32Array) this.#widenClosings(length);
    this.values![row] = closingDelta;
    this.least = Math.min(this.least, closedAt);
    this.most = Math.max(this.most, closedAt);
    this.#writableLiveBits(length)[row >>> 5]! &= ~(1 << (row & 31));
    this.liveCount--;
  }

  remove(row: number, length: number): void {
    assert(!this.isRemoved(row), 'a version is removed once');
    if (this.isOpen(row)) {
      this.#writableLiveBits(length)[row >>> 5]! &= ~(1 << (row & 31));
      this.liveCount--;
    }
    this.#writableClosings(length)[row] = REMOVED;
    this.removedCount++;
    this.removals++;
  }

  /** Makes room, so that the first closing costs no more than the next. */
  expect(length: number): void {
    this.#writableClosings(length);
    this.#writableLiveBits(length);
  }

  grow(): void {
    if (this.values instanceof Int32Array) this.values = this.#closingArrays.grow(Int32Array, this.values);
    else if (this.values) this.values = this.#closingArrays.grow(Float64Array, this.values);
  }

  seal(length: number): void {
    const { extents } = this.#closingArrays;
    if (this.values) this.values = extents.settle<Int32Array | Float64Array>(this.values, length);
    if (this.live) this.live = extents.settle(this.live, this.live.length);
  }

  get bytes(): number {
    return (this.values?.byteLength ?? 0) + (this.live?.byteLength ?? 0);
  }

  /** Takes the closings of `length` rows as they were saved; everything else follows from them. */
  restore(savedClosings: Int32Array | Float64Array | null, length: number): void {
    this.values = savedClosings;
    this.liveCount = length;
    if (!savedClosings) return;
    for (let row = 0; row < length; row++) {
      if (this.isOpen(row)) continue;
      this.#writableLiveBits(length)[row >>> 5]! &= ~(1 << (row & 31));
      this.liveCount--;
      if (this.isRemoved(row)) {
        this.removedCount++;
        continue;
      }
      const closedAt = this.closingOf(row);
      this.least = Math.min(this.least, closedAt);
      this.most = Math.max(this.most, closedAt);
    }
  }

  #writableLiveBits(length: number): Int32Array {
    if (!this.live) {
      this.live = this.#closingArrays.allocate(Int32Array, SEGMENT_ROWS >>> 5).fill(0);
      const wholeLiveWords = length >>> 5;
      this.live.fill(-1, 0, wholeLiveWords);
      if ((length & 31) !== 0) this.live[wholeLiveWords] = (1 << (length & 31)) - 1;
    }
    return this.live;
  }

  #writableClosings(length: number): Int32Array | Float64Array {
    if (!this.values) {
      this.values = this.#closingArrays.allocate(Int32Array);
      this.values.set(allOpenClosings.subarray(0, length));
    }
    return this.values;
  }

  #widenClosings(length: number): void {
    const narrowClosings = this.values!;
    const wideClosings = this.#closingArrays.allocate(Float64Array, narrowClosings.length);
    for (let row = 0; row < length; row++) wideClosings[row] = narrowClosings[row] === OPEN ? Infinity : narrowClosings[row]!;
    this.values = wideClosings;
    this.#closingArrays.extents.giveBack(narrowClosings);
  }
}
