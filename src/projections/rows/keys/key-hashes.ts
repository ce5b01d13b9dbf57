/**
 * Hashes of the keys of a batch. The decision which versions a batch closes and the entering of its rows need the same ones, one
 * right after the other: those of the latest batch are kept in between. A vector never changes its content, so its identity finds
 * them.
 */
import type { Vector } from '../../../log/values/columns.ts';
import { hashBytes } from '../cells/byte-hash.ts';
import type { Segment } from '../segments/segment.ts';

type TextVector = Extract<Vector, { kind: 'text' }>;

interface HashedKeys {
  readonly keys: TextVector;
  readonly path: number;
  readonly hashes: Int32Array;
}

let latestHashedKeys: HashedKeys | null = null;

export function hashKeys(keys: TextVector, length: number, path: number): Int32Array {
  const { heap, offsets } = keys;
  const keyHashes = new Int32Array(length);
  for (let row = 0; row < length; row++) keyHashes[row] = hashBytes(heap, offsets[row]!, offsets[row + 1]!, path);
  latestHashedKeys = { keys, path, hashes: keyHashes };
  return keyHashes;
}

/** Null where those computed last were of other keys. */
export function takeHashes(keys: TextVector, length: number, path: number): Int32Array | null {
  const latestHashed = latestHashedKeys;
  latestHashedKeys = null;
  return latestHashed !== null &&
    latestHashed.keys === keys &&
    latestHashed.path === path &&
    latestHashed.hashes.length === length
    ? latestHashed.hashes
    : null;
}

/** Hashes of the keys of a segment. */
export function hashesOf({ keys: { heap, offsets }, paths, length }: Segment): Int32Array {
  const keyHashes = new Int32Array(length);
  for (let row = 0; row < length; row++) keyHashes[row] = hashBytes(heap, offsets[row]!, offsets[row + 1]!, paths.codeAt(row));
  return keyHashes;
}
