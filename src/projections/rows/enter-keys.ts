/**
 * The keys of a restored table into its index, by hash alone and in the order of their hashes: places that lie together are
 * filled together, which costs a fraction of what keys in the order of rows do.
 */
import type { PrimaryKeyIndex } from './primary-key-index.ts';

/** Some of the keys at once: what is sorted at a time takes a few MiB. */
const GROUP = 2_097_152;
const PARTITIONS = 4096;

export class KeyEntry {
  readonly #index: PrimaryKeyIndex;
  readonly #hashes: Int32Array;
  readonly #rows: Int32Array;
  #count = 0;

  /** `most` keys at most are going to be entered. */
  constructor(index: PrimaryKeyIndex, most: number) {
    this.#index = index;
    index.expect(most);
    const size = Math.min(most, GROUP);
    this.#hashes = new Int32Array(size);
    this.#rows = new Int32Array(size);
  }

  /** A key that was not added before. */
  add(hash: number, row: number): void {
    if (this.#count === this.#hashes.length) this.flush();
    this.#hashes[this.#count] = hash;
    this.#rows[this.#count++] = row;
  }

  flush(): void {
    const count = this.#count;
    const hashes = this.#hashes;
    const rows = this.#rows;
    const ends = new Int32Array(PARTITIONS + 1);
    for (let i = 0; i < count; i++) ends[partitionOf(hashes[i]!) + 1]!++;
    for (let part = 0; part < PARTITIONS; part++) ends[part + 1]! += ends[part]!;
    const sorted = new Int32Array(count * 2);
    for (let i = 0; i < count; i++) {
      const at = ends[partitionOf(hashes[i]!)]!++;
      sorted[at * 2] = hashes[i]!;
      sorted[at * 2 + 1] = rows[i]!;
    }
    for (let i = 0; i < count; i++) this.#index.enter(sorted[i * 2]!, sorted[i * 2 + 1]!);
    this.#count = 0;
  }
}

/** Keys of one stretch of the index: its part by the top bits, the place in the part by the low ones. */
function partitionOf(hash: number): number {
  return ((hash >>> 24) << 4) | ((hash & 0xffff) >>> 12);
}
