/**
 * The tree kept for proofs: every fourth level of complete nodes, in memory, fed with each leaf as it is hashed. What lies
 * between is hashed again when it is asked for, at most seven hashes a node, so that an entry costs 34 bytes and a proof
 * over millions of entries, at any earlier size, reads nothing and takes some dozens of hashes.
 *
 * Levels 0, 8, 16 … are what C2SP tlog-tiles (c2sp.org/tlog-tiles) serves: 256 hashes a tile.
 */
import { assert } from '../errors.ts';
import { consistencyProof, hashChildren, inclusionProof, type NodeSink, rootOf } from './merkle-tree.ts';
import { HASH_BYTES } from './sha256.ts';

const LEVEL_STEP = 4;
const CHUNK_HASHES = 4096;
export const TILE_HASHES = 256;
const TILE_LEVELS = 8;

/** Nodes of one level, 32 bytes each, in chunks: growing copies nothing. */
interface Level {
  readonly chunks: Uint8Array[];
  count: number;
}

export class TreeStore implements NodeSink {
  readonly #levels: Level[] = [];

  /** Nodes of a level come in order, each once: what a growing tree completes. */
  keep(level: number, index: number, hash: Uint8Array): void {
    if (level % LEVEL_STEP !== 0) return;
    const kept = (this.#levels[level / LEVEL_STEP] ??= { chunks: [], count: 0 });
    assert(index === kept.count, 'nodes of a level are kept in order');
    const at = index % CHUNK_HASHES;
    if (at === 0) kept.chunks.push(new Uint8Array(CHUNK_HASHES * HASH_BYTES));
    kept.chunks[kept.chunks.length - 1]!.set(hash, at * HASH_BYTES);
    kept.count++;
  }

  /** Leaves so far. */
  get size(): number {
    return this.#levels[0]?.count ?? 0;
  }

  get bytes(): number {
    return this.#levels.reduce((sum, { chunks }) => sum + chunks.length * CHUNK_HASHES * HASH_BYTES, 0);
  }

  /** A complete node, as a view of what is kept or hashed from it. Throws RangeError where there is none yet. */
  node(level: number, index: number): Uint8Array {
    if (level % LEVEL_STEP !== 0) return hashChildren(this.node(level - 1, index * 2), this.node(level - 1, index * 2 + 1));
    const kept = this.#levels[level / LEVEL_STEP];
    if (!kept || index < 0 || index >= kept.count) throw new RangeError(`no complete node ${level}/${index}`);
    const at = (index % CHUNK_HASHES) * HASH_BYTES;
    return kept.chunks[Math.floor(index / CHUNK_HASHES)]!.subarray(at, at + HASH_BYTES);
  }

  root(size: number): Uint8Array {
    return rootOf(size, (level, index) => this.node(level, index));
  }

  inclusion(leaf: number, size: number): Uint8Array[] {
    return inclusionProof(leaf, size, (level, index) => this.node(level, index));
  }

  consistency(first: number, second: number): Uint8Array[] {
    return consistencyProof(first, second, (level, index) => this.node(level, index));
  }

  /** `width` hashes of tile (level, index), one after the other; null unless a tree of `size` leaves has them all. */
  tile(level: number, index: number, width: number, size: number): Uint8Array | null {
    const complete = Math.floor(size / TILE_HASHES ** level);
    const first = index * TILE_HASHES;
    if (first + width > complete || size > this.size) return null;
    const tile = new Uint8Array(width * HASH_BYTES);
    for (let i = 0; i < width; i++) tile.set(this.node(level * TILE_LEVELS, first + i), i * HASH_BYTES);
    return tile;
  }
}

assert(TILE_LEVELS % LEVEL_STEP === 0 && 2 ** TILE_LEVELS === TILE_HASHES, 'tiles are made of kept nodes');
