/**
 * Parts of removing versions of a table for good, which is one turn however many they are: the preparation, and the versions that
 * keys fall back to.
 */
import { hashBytes } from '../cells/byte-hash.ts';
import type { PrimaryKeyIndex } from './primary-key-index.ts';
import { NO_ROW, type Segment } from '../segments/segment.ts';

/** The table, as far as it is needed here. */
interface KeyedVersions {
  segmentOf(row: number): Segment;
  /** The version of the same key before this one, or -1. */
  previousOf(row: number): number;
  /** Row of the version at a position that stands, or -1. */
  versionAt(position: number): number;
}

/** Hashes of keys by row. */
export type KeyHashes = Map<number, number>;

/**
 * Room for closings in all segments that versions at these positions, ascending, lie in, and hashes of their keys as far as those
 * are in memory, a segment a step. `keyIndex`: null while keys are entered into it.
 */
export function* expectRemovals(
  positions: readonly number[],
  table: KeyedVersions,
  keyIndex: PrimaryKeyIndex | null,
  keyHashes: KeyHashes,
): Generator<undefined, void> {
  let lastSegment: Segment | null = null;
  for (const position of positions) {
    const removedRow = table.versionAt(position);
    if (removedRow === NO_ROW) continue;
    const removalSegment = table.segmentOf(removedRow);
    if (removalSegment !== lastSegment) {
      if (lastSegment) yield;
      lastSegment = removalSegment;
      removalSegment.expectClosings();
    }
    if (!removalSegment.cells.isAbsent(null)) keyHashes.set(removedRow, keyHashOf(removalSegment, removedRow));
  }
  keyIndex?.touch(Int32Array.from(keyHashes.values()), keyHashes.size);
}

/** The places of these rows in the index go to the newest versions before them that stay. `keyHashes`: those that are known. */
export function passOn(rows: readonly number[], table: KeyedVersions, keyIndex: PrimaryKeyIndex, keyHashes: KeyHashes): void {
  const removedRows = new Set(rows);
  for (const removedRow of rows) {
    let heirRow = table.previousOf(removedRow);
    while (heirRow !== NO_ROW && removedRows.has(heirRow)) heirRow = table.previousOf(heirRow);
    const segment = table.segmentOf(removedRow);
    const knownKeyHash = keyHashes.get(removedRow);
    // A key that is out of memory is not read for this: its slot in the index will match no key.
    if (knownKeyHash === undefined && heirRow === NO_ROW && segment.cells.isAbsent(null)) continue;
    keyIndex.pass(knownKeyHash ?? keyHashOf(segment, removedRow), removedRow, heirRow);
  }
}

function keyHashOf({ keys, paths }: Segment, row: number): number {
  const rowInSegment = row & 0xffff;
  return hashBytes(keys.heap, keys.offsets[rowInSegment]!, keys.offsets[rowInSegment + 1]!, paths.codeAt(rowInSegment));
}
