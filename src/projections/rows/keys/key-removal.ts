/**
 * Parts of removing versions of a table for good, which is one turn however many they are: the preparation, and the versions that
 * keys fall back to.
 */
import { hashBytes } from '../cells/byte-hash.ts';
import type { PrimaryKeyIndex } from './primary-key-index.ts';
import { NO_ROW, type Segment } from '../segments/segment.ts';

/** The table, as far as it is needed here. */
interface Versions {
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
 * are in memory, a segment a step. `index`: null while keys are entered into it.
 */
export function* expectRemovals(
  positions: readonly number[],
  table: Versions,
  index: PrimaryKeyIndex | null,
  hashes: KeyHashes,
): Generator<undefined, void> {
  let last: Segment | null = null;
  for (const position of positions) {
    const row = table.versionAt(position);
    if (row === NO_ROW) continue;
    const segment = table.segmentOf(row);
    if (segment !== last) {
      if (last) yield;
      last = segment;
      segment.expectClosings();
    }
    if (!segment.cells.isAbsent(null)) hashes.set(row, hashOf(segment, row));
  }
  index?.touch(Int32Array.from(hashes.values()), hashes.size);
}

/** The places of these rows in the index go to the newest versions before them that stay. `hashes`: those that are known. */
export function passOn(rows: readonly number[], table: Versions, index: PrimaryKeyIndex, hashes: KeyHashes): void {
  const going = new Set(rows);
  for (const row of rows) {
    let heir = table.previousOf(row);
    while (heir !== NO_ROW && going.has(heir)) heir = table.previousOf(heir);
    const segment = table.segmentOf(row);
    const known = hashes.get(row);
    // A key that is out of memory is not read for this: its slot in the index will match no key.
    if (known === undefined && heir === NO_ROW && segment.cells.isAbsent(null)) continue;
    index.pass(known ?? hashOf(segment, row), row, heir);
  }
}

function hashOf({ keys, paths }: Segment, row: number): number {
  const at = row & 0xffff;
  return hashBytes(keys.heap, keys.offsets[at]!, keys.offsets[at + 1]!, paths.codeAt(at));
}
