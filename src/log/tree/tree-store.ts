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

const STORED_LEVEL_STEP = 4;
export const TILE_HASHES = 256;
const TILE_LEVELS = 8;
/** Level of a group's root. */
const NODE_GROUP_LEVEL = 16;
export const GROUP_LEAVES = 2 ** NODE_GROUP_LEVEL;
/** Levels that a group holds: 0, 4, 8 and 12. */
const NODE_GROUP_LEVELS = NODE_GROUP_LEVEL / STORED_LEVEL_STEP;
const NODE_CHUNK_HASHES_MAX = 4096;
/** Groups that were read back and are kept, at 2.2 MB each. */
const NODE_GROUPS_READ_MAX = 8;

/** Nodes of one level, 32 bytes each, in chunks: growing copies nothing. A chunk lies in one group. */
interface StoredLevel {
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
  readonly #storedLevels: StoredLevel[] = [];
  #readNodeBlob: ReadBlob | null = null;
  /** Groups that were read back, the one used last at the end. */
  #groupsReadBack: number[] = [];

  /** The nodes over the first `treeLeaves` that `save` wrote. Throws REL_STORAGE when they are not that. */
  static restore(treeReader: ByteReader, treeLeaves: number, readBlob: ReadBlob): TreeStore {
    const treeStore = new TreeStore();
    treeStore.#readNodeBlob = readBlob;
    const groupCount = Math.floor(treeLeaves / GROUP_LEAVES);
    for (let i = 0, levelNodes = treeLeaves; levelNodes > 0; i++, levelNodes = Math.floor(levelNodes / 2 ** STORED_LEVEL_STEP)) {
      const storedLevel = treeStore.#storedLevel(i);
      const nodesInGroups = i < NODE_GROUP_LEVELS ? groupCount * hashesInNodeGroup(i) : 0;
      for (let chunkStart = 0; chunkStart < nodesInGroups; chunkStart += storedLevel.chunkHashes) storedLevel.chunks.push(null);
      storedLevel.count = nodesInGroups;
      for (
        const looseHashes = treeReader.raw((levelNodes - nodesInGroups) * HASH_BYTES), at = { byte: 0 };
        at.byte < looseHashes.length;
      ) {
        treeStore.keep(i * STORED_LEVEL_STEP, storedLevel.count, looseHashes.subarray(at.byte, (at.byte += HASH_BYTES)));
      }
    }
    return treeStore;
  }

  /** Writes the nodes that `restore` needs beside the blobs, for the tree of the first `treeLeaves`. */
  save(treeLeaves: number, treeWriter: ByteWriter): void {
    assert(treeLeaves <= this.size, 'only nodes that are there can be saved');
    const groupCount = Math.floor(treeLeaves / GROUP_LEAVES);
    for (let i = 0, levelNodes = treeLeaves; levelNodes > 0; i++, levelNodes = Math.floor(levelNodes / 2 ** STORED_LEVEL_STEP)) {
      const { chunks, chunkHashes } = this.#storedLevels[i]!;
      for (
        let chunkStart = i < NODE_GROUP_LEVELS ? groupCount * hashesInNodeGroup(i) : 0;
        chunkStart < levelNodes;
        chunkStart += chunkHashes
      ) {
        const nodeChunk = chunks[chunkStart / chunkHashes];
        assert(nodeChunk, 'what is no whole group is in memory');
        treeWriter.raw(nodeChunk.subarray(0, Math.min(chunkHashes, levelNodes - chunkStart) * HASH_BYTES));
      }
    }
  }

  /** The whole groups of the first `treeLeaves`. */
  blobs(treeLeaves: number): SavedBlob[] {
    const groupCount = Math.floor(treeLeaves / GROUP_LEAVES);
    return Array.from({ length: groupCount }, (_, nodeGroup) => ({
      name: this.#groupBlobName(nodeGroup),
      bytes: () => this.#bytesOfGroup(nodeGroup),
    }));
  }

  /** Adds complete nodes of a growing tree: those of a level in order, each once. */
  keep(nodeLevel: number, nodeIndex: number, nodeHash: Uint8Array): void {
    if (nodeLevel % STORED_LEVEL_STEP !== 0) return;
    const storedLevel = this.#storedLevel(nodeLevel / STORED_LEVEL_STEP);
    assert(nodeIndex === storedLevel.count, 'nodes of a level are kept in order');
    const indexInChunk = nodeIndex % storedLevel.chunkHashes;
    if (indexInChunk === 0) storedLevel.chunks.push(new Uint8Array(storedLevel.chunkHashes * HASH_BYTES));
    storedLevel.chunks[storedLevel.chunks.length - 1]!.set(nodeHash, indexInChunk * HASH_BYTES);
    storedLevel.count++;
  }

  /** Leaves so far. */
  get size(): number {
    return this.#storedLevels[0]?.count ?? 0;
  }

  /** In memory. */
  get bytes(): number {
    return this.#storedLevels.reduce((sum, { chunks }) => sum + chunks.reduce((all, chunk) => all + (chunk?.length ?? 0), 0), 0);
  }

  /** A complete node, as a view of what is kept or hashed from it. Throws RangeError where there is none yet. */
  node(nodeLevel: number, nodeIndex: number): Uint8Array {
    if (nodeLevel % STORED_LEVEL_STEP !== 0)
      return hashChildren(this.node(nodeLevel - 1, nodeIndex * 2), this.node(nodeLevel - 1, nodeIndex * 2 + 1));
    const storedLevel = this.#storedLevels[nodeLevel / STORED_LEVEL_STEP];
    if (!storedLevel || nodeIndex < 0 || nodeIndex >= storedLevel.count)
      throw new RangeError(`no complete node ${nodeLevel}/${nodeIndex}`);
    const hashOffset = (nodeIndex % storedLevel.chunkHashes) * HASH_BYTES;
    const chunkNumber = Math.floor(nodeIndex / storedLevel.chunkHashes);
    const nodeChunk =
      storedLevel.chunks[chunkNumber] ??
      this.#readGroupChunk(Math.floor((nodeIndex * 2 ** nodeLevel) / GROUP_LEAVES), storedLevel, chunkNumber);
    return nodeChunk.subarray(hashOffset, hashOffset + HASH_BYTES);
  }

  root(treeSize: number): Uint8Array {
    return rootOf(treeSize, (nodeLevel, nodeIndex) => this.node(nodeLevel, nodeIndex));
  }

  /** The tree over all leaves, which keeps its nodes here as it grows. */
  frontier(): Frontier {
    const { size } = this;
    const frontierNodes: Uint8Array[] = [];
    for (let subtreeLevel = 52; subtreeLevel >= 0; subtreeLevel--) {
      const subtreeLeaves = 2 ** subtreeLevel;
      if (Math.floor(size / subtreeLeaves) % 2 === 1)
        frontierNodes.push(this.node(subtreeLevel, Math.floor(size / subtreeLeaves) - 1).slice());
    }
    return new Frontier(size, frontierNodes, this);
  }

  inclusion(leafIndex: number, treeSize: number): Uint8Array[] {
    return inclusionProof(leafIndex, treeSize, (nodeLevel, nodeIndex) => this.node(nodeLevel, nodeIndex));
  }

  consistency(firstTreeSize: number, secondTreeSize: number): Uint8Array[] {
    return consistencyProof(firstTreeSize, secondTreeSize, (nodeLevel, nodeIndex) => this.node(nodeLevel, nodeIndex));
  }

  /** `tileWidth` hashes of tile (level, index), one after the other; null unless a tree of `treeSize` leaves has them all. */
  tile(tileLevel: number, tileIndex: number, tileWidth: number, treeSize: number): Uint8Array | null {
    const completeNodeCount = Math.floor(treeSize / TILE_HASHES ** tileLevel);
    const firstNodeIndex = tileIndex * TILE_HASHES;
    if (firstNodeIndex + tileWidth > completeNodeCount || treeSize > this.size) return null;
    const tileHashes = new Uint8Array(tileWidth * HASH_BYTES);
    for (let i = 0; i < tileWidth; i++) tileHashes.set(this.node(tileLevel * TILE_LEVELS, firstNodeIndex + i), i * HASH_BYTES);
    return tileHashes;
  }

  #storedLevel(i: number): StoredLevel {
    const levelHashesInGroup = i < NODE_GROUP_LEVELS ? hashesInNodeGroup(i) : NODE_CHUNK_HASHES_MAX;
    return (this.#storedLevels[i] ??= { chunkHashes: Math.min(levelHashesInGroup, NODE_CHUNK_HASHES_MAX), chunks: [], count: 0 });
  }

  /** The root of a group tells it from a group of the same leaves in a log that went another way. */
  #groupBlobName(nodeGroup: number): string {
    return `tree-${nodeGroup}-${hexOf(this.node(NODE_GROUP_LEVEL, nodeGroup).subarray(0, 8))}`;
  }

  /** Level after level. */
  #bytesOfGroup(nodeGroup: number): Uint8Array {
    const groupNodeBytes = new Uint8Array(nodeGroupBytes);
    let groupOffset = 0;
    for (let i = 0; i < NODE_GROUP_LEVELS; i++) {
      const storedLevel = this.#storedLevels[i]!;
      const chunksPerGroup = hashesInNodeGroup(i) / storedLevel.chunkHashes;
      for (let chunkNumber = nodeGroup * chunksPerGroup; chunkNumber < (nodeGroup + 1) * chunksPerGroup; chunkNumber++) {
        const nodeChunk = storedLevel.chunks[chunkNumber] ?? this.#readGroupChunk(nodeGroup, storedLevel, chunkNumber);
        groupNodeBytes.set(nodeChunk, groupOffset);
        groupOffset += nodeChunk.length;
      }
    }
    return groupNodeBytes;
  }

  /** Reads a group back, and lets the one go that was read back longest ago. */
  #readGroupChunk(nodeGroup: number, storedLevel: StoredLevel, chunkNumber: number): Uint8Array {
    assert(this.#readNodeBlob, 'a tree that was not restored is in memory');
    const blobName = this.#groupBlobName(nodeGroup);
    const groupNodeBytes = this.#readNodeBlob(blobName);
    if (groupNodeBytes.length !== nodeGroupBytes)
      throw malformedError(`${blobName} has ${groupNodeBytes.length} bytes and not ${nodeGroupBytes}`);
    this.#groupsReadBack.push(nodeGroup);
    if (this.#groupsReadBack.length > NODE_GROUPS_READ_MAX) this.#fillGroupChunks(this.#groupsReadBack.shift()!, null);
    this.#fillGroupChunks(nodeGroup, groupNodeBytes);
    return storedLevel.chunks[chunkNumber]!;
  }

  #fillGroupChunks(nodeGroup: number, groupNodeBytes: Uint8Array | null): void {
    let groupOffset = 0;
    for (let i = 0; i < NODE_GROUP_LEVELS; i++) {
      const { chunks, chunkHashes } = this.#storedLevels[i]!;
      const chunksPerGroup = hashesInNodeGroup(i) / chunkHashes;
      for (let chunkNumber = nodeGroup * chunksPerGroup; chunkNumber < (nodeGroup + 1) * chunksPerGroup; chunkNumber++) {
        chunks[chunkNumber] = groupNodeBytes && groupNodeBytes.subarray(groupOffset, (groupOffset += chunkHashes * HASH_BYTES));
      }
    }
  }
}

/** Nodes of the kept level `i` that lie in one group. */
function hashesInNodeGroup(i: number): number {
  return GROUP_LEAVES / 2 ** (i * STORED_LEVEL_STEP);
}

const nodeGroupBytes = Array.from({ length: NODE_GROUP_LEVELS }, (_, i) => hashesInNodeGroup(i) * HASH_BYTES).reduce(
  (sum, bytes) => sum + bytes,
);

assert(TILE_LEVELS % STORED_LEVEL_STEP === 0 && 2 ** TILE_LEVELS === TILE_HASHES, 'tiles are made of kept nodes');
