/**
 * The keys of a restored table into its index, by hash alone and in the order of their hashes: places that lie together are
 * filled together, which costs a fraction of what keys in the order of rows do.
 *
 * Most of a start from saved state is this work, and reads of whole columns don't need it: a large index is filled a slice at a
 * time while the store answers already, and at once by the first look-up of a key or write of rows.
 */
import type { PrimaryKeyIndex } from './primary-key-index.ts';
import type { KeyHashes } from './key-removal.ts';
import { NO_ROW, type Segment } from '../segments/segment.ts';
import { SEGMENT_ROWS } from '../segments/segment-column.ts';

/** Keys that are sorted at a time: a few MiB. */
const GROUP = 2_097_152;
const PARTITIONS = 4096;
/** Keys that are counted, sorted or entered between two yields: a millisecond or two each. */
const COUNTED = 524_288;
const SORTED = 65_536;
const ENTERED = 8_192;
/** Words of new memory that are touched between two yields: the first touch of a page costs microseconds. */
const TOUCHED = 131_072;
/** Removed rows that give up their places between two yields. */
const LEFT = 1_024;

/** The keys of one restored table on their way into its index. No row may come before the last step; rows may be removed. */
export class KeyIndexRestore {
  readonly #steps: Iterator<undefined, void>;
  readonly #hashes: readonly Int32Array[];
  /** Keys of rows that were removed since the first step. */
  readonly #left: KeyHashes = new Map();

  /** `hashes` are those of the rows of each segment; `passOn` hands the places of removed rows to older versions of their keys. */
  constructor(
    index: PrimaryKeyIndex,
    segments: readonly Segment[],
    hashes: readonly Int32Array[],
    passOn: (rows: readonly number[], hashes: KeyHashes) => void,
  ) {
    this.#hashes = hashes;
    this.#steps = this.#enter(index, segments, passOn);
  }

  /** False once every key is there. */
  step(): boolean {
    return this.#steps.next().done !== true;
  }

  /** Rows are being removed: their places are passed on in the end. */
  leave(rows: readonly number[]): void {
    for (const row of rows) this.#left.set(row, this.#hashes[row >>> 16]![row & 0xffff]!);
  }

  *#enter(
    index: PrimaryKeyIndex,
    segments: readonly Segment[],
    passOn: (rows: readonly number[], hashes: KeyHashes) => void,
  ): Generator<undefined, void> {
    yield* enterKeys(index, segments, this.#hashes);
    while (this.#left.size > 0) {
      const rows = [...this.#left.keys()].slice(0, LEFT);
      passOn(rows, this.#left);
      for (const row of rows) this.#left.delete(row);
      yield;
    }
  }
}

function* enterKeys(
  index: PrimaryKeyIndex,
  segments: readonly Segment[],
  hashes: readonly Int32Array[],
): Generator<undefined, void> {
  const passed = yield* rowsToPass(segments);
  const count = segments.reduce((sum, { length }) => sum + length, 0);
  yield* index.expect(count);
  const keys = new KeyEntry(index, count);
  yield* keys.prepare();
  for (const [number, segment] of segments.entries()) {
    const { length, firstRow } = segment;
    const own = hashes[number]!;
    const without = passed.get(number);
    if (keys.room < length) yield* keys.flush();
    for (let row = 0; row < length; row++) {
      if (without && (without[row >>> 5]! & (1 << (row & 31))) !== 0) continue;
      keys.add(own[row]!, firstRow + row);
    }
    yield;
  }
  yield* keys.flush();
}

/**
 * Bits of rows that have no place in the index, by segment: removed ones, and those that another version of their key came after.
 * A segment a step: of a row that is removed meanwhile it does not matter what was found, since its place is passed on in the end,
 * where it has one.
 */
function* rowsToPass(segments: readonly Segment[]): Generator<undefined, Map<number, Int32Array>> {
  const passed = new Map<number, Int32Array>();
  const isRemoved = (row: number): boolean => segments[row >>> 16]!.isRemoved(row & 0xffff);
  const pass = (row: number): void => {
    let bits = passed.get(row >>> 16);
    if (!bits) passed.set(row >>> 16, (bits = new Int32Array(SEGMENT_ROWS >>> 5)));
    bits[(row & 0xffff) >>> 5]! |= 1 << (row & 31);
  };
  for (const [number, segment] of segments.entries()) {
    // One step handles a whole segment.
    yield;
    const { previous, length, removedCount } = segment;
    if (removedCount > 0) for (let at = 0; at < length; at++) if (segment.isRemoved(at)) pass(number * SEGMENT_ROWS + at);
    if (previous.constant === NO_ROW) continue;
    for (let at = 0; at < length; at++) {
      // A removed row supersedes none any more, but the versions before it are still reached through it.
      let row = segment.isRemoved(at) ? NO_ROW : previous.codeAt(at);
      for (; row !== NO_ROW && isRemoved(row); row = segments[row >>> 16]!.previous.codeAt(row & 0xffff)) pass(row);
      if (row !== NO_ROW) pass(row);
    }
  }
  return passed;
}

class KeyEntry {
  readonly #index: PrimaryKeyIndex;
  readonly #hashes: Int32Array;
  readonly #rows: Int32Array;
  /** Hash and row of each in the order of partitions. */
  readonly #sorted: Int32Array;
  #count = 0;

  /** `most` keys at most are going to be entered. */
  constructor(index: PrimaryKeyIndex, most: number) {
    this.#index = index;
    const size = Math.min(most, GROUP);
    this.#hashes = new Int32Array(size);
    this.#rows = new Int32Array(size);
    this.#sorted = new Int32Array(size * 2);
  }

  /** Before the first flush: sorting goes to and fro in memory that was never touched. */
  *prepare(): Generator<undefined, void> {
    for (let from = 0; from < this.#sorted.length; from += TOUCHED) {
      this.#sorted.fill(0, from, from + TOUCHED);
      yield;
    }
  }

  /** Keys that may be added before the next flush. */
  get room(): number {
    return this.#hashes.length - this.#count;
  }

  /** A key that was not added before. */
  add(hash: number, row: number): void {
    this.#hashes[this.#count] = hash;
    this.#rows[this.#count++] = row;
  }

  *flush(): Generator<undefined, void> {
    const count = this.#count;
    const hashes = this.#hashes;
    const rows = this.#rows;
    this.#count = 0;
    if (count < PARTITIONS) {
      // So few lie together anyway, and to count partitions takes longer than to enter them.
      for (let i = 0; i < count; i++) this.#index.enter(hashes[i]!, rows[i]!);
      return;
    }
    const ends = new Int32Array(PARTITIONS + 1);
    for (let from = 0; from < count; from += COUNTED) {
      for (let i = from; i < Math.min(count, from + COUNTED); i++) ends[partitionOf(hashes[i]!) + 1]!++;
      yield;
    }
    for (let part = 0; part < PARTITIONS; part++) ends[part + 1]! += ends[part]!;
    const sorted = this.#sorted;
    for (let from = 0; from < count; from += SORTED) {
      for (let i = from; i < Math.min(count, from + SORTED); i++) {
        const at = ends[partitionOf(hashes[i]!)]!++;
        sorted[at * 2] = hashes[i]!;
        sorted[at * 2 + 1] = rows[i]!;
      }
      yield;
    }
    for (let from = 0; from < count; from += ENTERED) {
      for (let i = from; i < Math.min(count, from + ENTERED); i++) this.#index.enter(sorted[i * 2]!, sorted[i * 2 + 1]!);
      yield;
    }
  }
}

/** Keys of one range of the index: its part by the top bits, the slot in the part by the low ones. */
function partitionOf(hash: number): number {
  return ((hash >>> 24) << 4) | ((hash & 0xffff) >>> 12);
}
