/**
 * The tree kept for proofs: every fourth level of complete nodes, fed with each leaf as it is hashed. Nodes between are hashed
 * again on demand, at most seven hashes a node, so that an entry costs 34 bytes and a proof over millions of entries, at any
 * earlier size, reads no entry and takes some dozens of hashes.
 *
 * Levels 0, 8, 16 … are what C2SP tlog-tiles (c2sp.org/tlog-tiles) serves: 256 hashes a tile.
 *
 * Saved, the levels below 16 fall into groups of 65,536 leaves. A whole group never changes: it is a blob under the name of its
 * own root, written once, read back when a proof needs a node in it, and let go again. Nodes outside whole groups, and levels 16
 * and up (32 bytes a group), go with every saved state.
 */
import { assert } from '../../errors.ts';
import { type ByteReader, type ByteWriter, malformedError } from '../bytes/byte-stream.ts';
import { consistencyProof, Frontier, hashChildren, inclusionProof, type NodeSink, rootOf } from './merkle-tree.ts';
import { HASH_BYTES, hexOf } from '../bytes/sha256.ts';

const LEVEL_STEP = 4;
export const TILE_HASHES = 256;
const TILE_LEVELS = 8;
/** Level of a group's root. */
const GROUP_LEVEL = 16;
export const GROUP_LEAVES = 2 ** GROUP_LEVEL;
/** Levels that a group holds: 0, 4, 8 and 12. */
const GROUP_LEVELS = GROUP_LEVEL / LEVEL_STEP;
const CHUNK_HASHES_MAX = 4096;
/** Groups that were read back and are kept, at 2.2 MB each. */
const GROUPS_KEPT = 8;

/** Nodes of one level, 32 bytes each, in chunks: growing copies nothing. A chunk lies in one group. */
interface Level {
  readonly chunkHashes: number;
  /** Null: in a blob. */
  readonly chunks: (Uint8Array | null)[];
  count: number;
}

/** An immutable part of a saved state. The same name stands for the same bytes for ever. */
export interface SavedBlob {
  readonly name: string;
  bytes(): Uint8Array;
}

/** Reads a blob back within the turn; throws when it can't. */
export type ReadBlob = (name: string) => Uint8Array;

export class TreeStore implements NodeSink {
  readonly #levels: Level[] = [];
  #readBlob: ReadBlob | null = null;
  /** Groups that were read back, the one used last at the end. */
  #readBack: number[] = [];

  /** The nodes over the first `leaves` that `save` wrote. Throws REL_STORAGE when they are not that. */
  static restore(source: ByteReader, leaves: number, readBlob: ReadBlob): TreeStore {
    const store = new TreeStore();
    store.#readBlob = readBlob;
    const groups = Math.floor(leaves / GROUP_LEAVES);
    for (let i = 0, count = leaves; count > 0; i++, count = Math.floor(count / 2 ** LEVEL_STEP)) {
      const level = store.#level(i);
      const inGroups = i < GROUP_LEVELS ? groups * hashesInGroup(i) : 0;
      for (let at = 0; at < inGroups; at += level.chunkHashes) level.chunks.push(null);
      level.count = inGroups;
      for (const hashes = source.raw((count - inGroups) * HASH_BYTES), at = { byte: 0 }; at.byte < hashes.length; ) {
        store.keep(i * LEVEL_STEP, level.count, hashes.subarray(at.byte, (at.byte += HASH_BYTES)));
      }
    }
    return store;
  }

  /** Writes the nodes that `restore` needs beside the blobs, for the tree of the first `leaves`. */
  save(leaves: number, target: ByteWriter): void {
    assert(leaves <= this.size, 'only nodes that are there can be saved');
    const groups = Math.floor(leaves / GROUP_LEAVES);
    for (let i = 0, count = leaves; count > 0; i++, count = Math.floor(count / 2 ** LEVEL_STEP)) {
      const { chunks, chunkHashes } = this.#levels[i]!;
      for (let at = i < GROUP_LEVELS ? groups * hashesInGroup(i) : 0; at < count; at += chunkHashes) {
        const chunk = chunks[at / chunkHashes];
        assert(chunk, 'what is no whole group is in memory');
        target.raw(chunk.subarray(0, Math.min(chunkHashes, count - at) * HASH_BYTES));
      }
    }
  }

  /** The whole groups of the first `leaves`. */
  blobs(leaves: number): SavedBlob[] {
    const groups = Math.floor(leaves / GROUP_LEAVES);
    return Array.from({ length: groups }, (_, group) => ({ name: this.#blobName(group), bytes: () => this.#groupBytes(group) }));
  }

  /** Adds complete nodes of a growing tree: those of a level in order, each once. */
  keep(level: number, index: number, hash: Uint8Array): void {
    if (level % LEVEL_STEP !== 0) return;
    const storedLevel = this.#level(level / LEVEL_STEP);
    assert(index === storedLevel.count, 'nodes of a level are kept in order');
    const at = index % storedLevel.chunkHashes;
    if (at === 0) storedLevel.chunks.push(new Uint8Array(storedLevel.chunkHashes * HASH_BYTES));
    storedLevel.chunks[storedLevel.chunks.length - 1]!.set(hash, at * HASH_BYTES);
    storedLevel.count++;
  }

  /** Leaves so far. */
  get size(): number {
    return this.#levels[0]?.count ?? 0;
  }

  /** In memory. */
  get bytes(): number {
    return this.#levels.reduce((sum, { chunks }) => sum + chunks.reduce((all, chunk) => all + (chunk?.length ?? 0), 0), 0);
  }

  /** A complete node, as a view of what is kept or hashed from it. Throws RangeError where there is none yet. */
  node(level: number, index: number): Uint8Array {
    if (level % LEVEL_STEP !== 0) return hashChildren(this.node(level - 1, index * 2), this.node(level - 1, index * 2 + 1));
    const storedLevel = this.#levels[level / LEVEL_STEP];
    if (!storedLevel || index < 0 || index >= storedLevel.count) throw new RangeError(`no complete node ${level}/${index}`);
    const at = (index % storedLevel.chunkHashes) * HASH_BYTES;
    const number = Math.floor(index / storedLevel.chunkHashes);
    const chunk = storedLevel.chunks[number] ?? this.#read(Math.floor((index * 2 ** level) / GROUP_LEAVES), storedLevel, number);
    return chunk.subarray(at, at + HASH_BYTES);
  }

  root(size: number): Uint8Array {
    return rootOf(size, (level, index) => this.node(level, index));
  }

  /** The tree over all leaves, which keeps its nodes here as it grows. */
  frontier(): Frontier {
    const { size } = this;
    const nodes: Uint8Array[] = [];
    for (let level = 52; level >= 0; level--) {
      const width = 2 ** level;
      if (Math.floor(size / width) % 2 === 1) nodes.push(this.node(level, Math.floor(size / width) - 1).slice());
    }
    return new Frontier(size, nodes, this);
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

  #level(i: number): Level {
    const inGroup = i < GROUP_LEVELS ? hashesInGroup(i) : CHUNK_HASHES_MAX;
    return (this.#levels[i] ??= { chunkHashes: Math.min(inGroup, CHUNK_HASHES_MAX), chunks: [], count: 0 });
  }

  /** The root of a group tells it from a group of the same leaves in a log that went another way. */
  #blobName(group: number): string {
    return `tree-${group}-${hexOf(this.node(GROUP_LEVEL, group).subarray(0, 8))}`;
  }

  /** Level after level. */
  #groupBytes(group: number): Uint8Array {
    const bytes = new Uint8Array(groupBytes);
    let at = 0;
    for (let i = 0; i < GROUP_LEVELS; i++) {
      const level = this.#levels[i]!;
      const perGroup = hashesInGroup(i) / level.chunkHashes;
      for (let number = group * perGroup; number < (group + 1) * perGroup; number++) {
        const chunk = level.chunks[number] ?? this.#read(group, level, number);
        bytes.set(chunk, at);
        at += chunk.length;
      }
    }
    return bytes;
  }

  /** Reads a group back, and lets the one go that was read back longest ago. */
  #read(group: number, level: Level, chunk: number): Uint8Array {
    assert(this.#readBlob, 'a tree that was not restored is in memory');
    const name = this.#blobName(group);
    const bytes = this.#readBlob(name);
    if (bytes.length !== groupBytes) throw malformedError(`${name} has ${bytes.length} bytes and not ${groupBytes}`);
    this.#readBack.push(group);
    if (this.#readBack.length > GROUPS_KEPT) this.#fill(this.#readBack.shift()!, null);
    this.#fill(group, bytes);
    return level.chunks[chunk]!;
  }

  #fill(group: number, bytes: Uint8Array | null): void {
    let at = 0;
    for (let i = 0; i < GROUP_LEVELS; i++) {
      const { chunks, chunkHashes } = this.#levels[i]!;
      const perGroup = hashesInGroup(i) / chunkHashes;
      for (let number = group * perGroup; number < (group + 1) * perGroup; number++) {
        chunks[number] = bytes && bytes.subarray(at, (at += chunkHashes * HASH_BYTES));
      }
    }
  }
}

/** Nodes of the kept level `i` that lie in one group. */
function hashesInGroup(i: number): number {
  return GROUP_LEAVES / 2 ** (i * LEVEL_STEP);
}

const groupBytes = Array.from({ length: GROUP_LEVELS }, (_, i) => hashesInGroup(i) * HASH_BYTES).reduce(
  (sum, bytes) => sum + bytes,
);

assert(TILE_LEVELS % LEVEL_STEP === 0 && 2 ** TILE_LEVELS === TILE_HASHES, 'tiles are made of kept nodes');
