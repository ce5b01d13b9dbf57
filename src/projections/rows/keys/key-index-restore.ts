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
const KEYS_IN_GROUP = 2_097_152;
const KEY_PARTITIONS = 4096;
/** Keys that are counted, sorted or entered between two yields: a millisecond or two each. */
const KEYS_COUNTED_A_STEP = 524_288;
const KEYS_SORTED_A_STEP = 65_536;
const KEYS_ENTERED_A_STEP = 8_192;
/** Words of new memory that are touched between two yields: the first touch of a page costs microseconds. */
const KEYS_TOUCHED_A_STEP = 131_072;
/** Removed rows that give up their places between two yields. */
const KEYS_LEFT_A_STEP = 1_024;

/** The keys of one restored table on their way into its index. No row may come before the last step; rows may be removed. */
export class KeyIndexRestore {
  readonly #restoreSteps: Iterator<undefined, void>;
  readonly #segmentKeyHashes: readonly Int32Array[];
  /** Keys of rows that were removed since the first step. */
  readonly #leftKeyHashes: KeyHashes = new Map();

  /** `segmentHashes` are those of the rows of each segment; `passKeysOn` hands the places of removed rows to older versions of their keys. */
  constructor(
    keyIndex: PrimaryKeyIndex,
    segments: readonly Segment[],
    segmentHashes: readonly Int32Array[],
    passKeysOn: (rows: readonly number[], hashes: KeyHashes) => void,
  ) {
    this.#segmentKeyHashes = segmentHashes;
    this.#restoreSteps = this.#enterAllKeys(keyIndex, segments, passKeysOn);
  }

  /** False once every key is there. */
  step(): boolean {
    return this.#restoreSteps.next().done !== true;
  }

  /** Rows are being removed: their places are passed on in the end. */
  leave(leftRows: readonly number[]): void {
    for (const leftRow of leftRows) this.#leftKeyHashes.set(leftRow, this.#segmentKeyHashes[leftRow >>> 16]![leftRow & 0xffff]!);
  }

  *#enterAllKeys(
    keyIndex: PrimaryKeyIndex,
    segments: readonly Segment[],
    passKeysOn: (leftRows: readonly number[], hashes: KeyHashes) => void,
  ): Generator<undefined, void> {
    yield* enterSegmentKeys(keyIndex, segments, this.#segmentKeyHashes);
    while (this.#leftKeyHashes.size > 0) {
      const leftRows = [...this.#leftKeyHashes.keys()].slice(0, KEYS_LEFT_A_STEP);
      passKeysOn(leftRows, this.#leftKeyHashes);
      for (const leftRow of leftRows) this.#leftKeyHashes.delete(leftRow);
      yield;
    }
  }
}

function* enterSegmentKeys(
  keyIndex: PrimaryKeyIndex,
  segments: readonly Segment[],
  hashes: readonly Int32Array[],
): Generator<undefined, void> {
  const passedRows = yield* rowsPassedOver(segments);
  const keyCount = segments.reduce((sum, { length }) => sum + length, 0);
  yield* keyIndex.expect(keyCount);
  const keyEntry = new KeyGroupEntry(keyIndex, keyCount);
  yield* keyEntry.prepare();
  for (const [segmentNumber, segment] of segments.entries()) {
    const { length, firstRow } = segment;
    const segmentHashes = hashes[segmentNumber]!;
    const passedBits = passedRows.get(segmentNumber);
    if (keyEntry.room < length) yield* keyEntry.flush();
    for (let row = 0; row < length; row++) {
      if (passedBits && (passedBits[row >>> 5]! & (1 << (row & 31))) !== 0) continue;
      keyEntry.add(segmentHashes[row]!, firstRow + row);
    }
    yield;
  }
  yield* keyEntry.flush();
}

/**
 * Bits of rows that have no place in the index, by segment: removed ones, and those that another version of their key came after.
 * A segment a step: of a row that is removed meanwhile it does not matter what was found, since its place is passed on in the end,
 * where it has one.
 */
function* rowsPassedOver(segments: readonly Segment[]): Generator<undefined, Map<number, Int32Array>> {
  const passedRows = new Map<number, Int32Array>();
  const isRowRemoved = (row: number): boolean => segments[row >>> 16]!.isRemoved(row & 0xffff);
  const passRow = (row: number): void => {
    let passedBits = passedRows.get(row >>> 16);
    if (!passedBits) passedRows.set(row >>> 16, (passedBits = new Int32Array(SEGMENT_ROWS >>> 5)));
    passedBits[(row & 0xffff) >>> 5]! |= 1 << (row & 31);
  };
  for (const [segmentNumber, segment] of segments.entries()) {
    // One step handles a whole segment.
    yield;
    const { previous, length, removedCount } = segment;
    if (removedCount > 0)
      for (let rowInSegment = 0; rowInSegment < length; rowInSegment++)
        if (segment.isRemoved(rowInSegment)) passRow(segmentNumber * SEGMENT_ROWS + rowInSegment);
    if (previous.constant === NO_ROW) continue;
    for (let at = 0; at < length; at++) {
      // A removed row supersedes none any more, but the versions before it are still reached through it.
      let earlierRow = segment.isRemoved(at) ? NO_ROW : previous.codeAt(at);
      for (
        ;
        earlierRow !== NO_ROW && isRowRemoved(earlierRow);
        earlierRow = segments[earlierRow >>> 16]!.previous.codeAt(earlierRow & 0xffff)
      )
        passRow(earlierRow);
      if (earlierRow !== NO_ROW) passRow(earlierRow);
    }
  }
  return passedRows;
}

class KeyGroupEntry {
  readonly #keyIndex: PrimaryKeyIndex;
  readonly #groupKeyHashes: Int32Array;
  readonly #groupKeyRows: Int32Array;
  /** Hash and row of each in the order of partitions. */
  readonly #sortedKeys: Int32Array;
  #groupKeyCount = 0;

  /** `keysMax` keys at most are going to be entered. */
  constructor(index: PrimaryKeyIndex, keysMax: number) {
    this.#keyIndex = index;
    const keyGroupSize = Math.min(keysMax, KEYS_IN_GROUP);
    this.#groupKeyHashes = new Int32Array(keyGroupSize);
    this.#groupKeyRows = new Int32Array(keyGroupSize);
    this.#sortedKeys = new Int32Array(keyGroupSize * 2);
  }

  /** Before the first flush: sorting goes to and fro in memory that was never touched. */
  *prepare(): Generator<undefined, void> {
    for (let touchedFrom = 0; touchedFrom < this.#sortedKeys.length; touchedFrom += KEYS_TOUCHED_A_STEP) {
      this.#sortedKeys.fill(0, touchedFrom, touchedFrom + KEYS_TOUCHED_A_STEP);
      yield;
    }
  }

  /** Keys that may be added before the next flush. */
  get room(): number {
    return this.#groupKeyHashes.length - this.#groupKeyCount;
  }

  /** A key that was not added before. */
  add(keyHash: number, keyRow: number): void {
    this.#groupKeyHashes[this.#groupKeyCount] = keyHash;
    this.#groupKeyRows[this.#groupKeyCount++] = keyRow;
  }

  *flush(): Generator<undefined, void> {
    const keyCount = this.#groupKeyCount;
    const keyHashes = this.#groupKeyHashes;
    const keyRows = this.#groupKeyRows;
    this.#groupKeyCount = 0;
    if (keyCount < KEY_PARTITIONS) {
      // So few lie together anyway, and to count partitions takes longer than to enter them.
      for (let i = 0; i < keyCount; i++) this.#keyIndex.enter(keyHashes[i]!, keyRows[i]!);
      return;
    }
    const partitionEnds = new Int32Array(KEY_PARTITIONS + 1);
    for (let flushedFrom = 0; flushedFrom < keyCount; flushedFrom += KEYS_COUNTED_A_STEP) {
      for (let i = flushedFrom; i < Math.min(keyCount, flushedFrom + KEYS_COUNTED_A_STEP); i++)
        partitionEnds[keyPartitionOf(keyHashes[i]!) + 1]!++;
      yield;
    }
    for (let keyPartition = 0; keyPartition < KEY_PARTITIONS; keyPartition++)
      partitionEnds[keyPartition + 1]! += partitionEnds[keyPartition]!;
    const sortedKeys = this.#sortedKeys;
    for (let from = 0; from < keyCount; from += KEYS_SORTED_A_STEP) {
      for (let i = from; i < Math.min(keyCount, from + KEYS_SORTED_A_STEP); i++) {
        const sortedAt = partitionEnds[keyPartitionOf(keyHashes[i]!)]!++;
        sortedKeys[sortedAt * 2] = keyHashes[i]!;
        sortedKeys[sortedAt * 2 + 1] = keyRows[i]!;
      }
      yield;
    }
    for (let from = 0; from < keyCount; from += KEYS_ENTERED_A_STEP) {
      for (let i = from; i < Math.min(keyCount, from + KEYS_ENTERED_A_STEP); i++)
        this.#keyIndex.enter(sortedKeys[i * 2]!, sortedKeys[i * 2 + 1]!);
      yield;
    }
  }
}

/** Keys of one range of the index: its part by the top bits, the slot in the part by the low ones. */
function keyPartitionOf(keyHash: number): number {
  return ((keyHash >>> 24) << 4) | ((keyHash & 0xffff) >>> 12);
}
