/**
 * The tree over leaf hashes: RFC 9162 section 2.1. `MTH({}) = SHA-256()`, an inner node is SHA-256(0x01 | left | right),
 * and a list of n > 1 splits at the largest power of two below n.
 *
 * A complete subtree of 2^level leaves is node (level, index); it never changes once its leaves exist. Every proof is
 * made of such nodes and of nodes computed from them, so proofs need only a lookup of complete nodes.
 */
import { equalBytes, HASH_BYTES, sha256 } from '../bytes/sha256.ts';

export type NodeHash = (level: number, index: number) => Uint8Array;

/** A commitment to the first `size` leaves. */
export interface TreeHead {
  readonly size: number;
  /** Root over the leaves, 32 bytes. */
  readonly root: Uint8Array;
}

/** Gets every complete node of a growing list, in order within its level, in the turn in which it is hashed. */
export interface NodeSink {
  keep(level: number, index: number, hash: Uint8Array): void;
}

const childrenBuffer = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

export function hashChildren(leftHash: Uint8Array, rightHash: Uint8Array): Uint8Array {
  childrenBuffer.set(leftHash, 1);
  childrenBuffer.set(rightHash, 1 + HASH_BYTES);
  return sha256(childrenBuffer);
}

/** The complete subtrees of a growing list, largest first: all that appending and the root need. */
export class Frontier {
  readonly #frontierNodes: Uint8Array[];
  readonly #nodeSink: NodeSink | null;
  #treeSize: number;

  constructor(treeSize = 0, frontierNodes: readonly Uint8Array[] = [], nodeSink: NodeSink | null = null) {
    this.#treeSize = treeSize;
    this.#frontierNodes = [...frontierNodes];
    this.#nodeSink = nodeSink;
  }

  get size(): number {
    return this.#treeSize;
  }

  append(leafHash: Uint8Array): void {
    const nodeSink = this.#nodeSink;
    let nodeHash = leafHash;
    let nodeLevel = 0;
    let nodeIndex = this.#treeSize;
    nodeSink?.keep(nodeLevel, nodeIndex, nodeHash);
    // A subtree merges with its left neighbour for every trailing one bit of the size before.
    for (; nodeIndex % 2 === 1; nodeIndex = (nodeIndex - 1) / 2) {
      nodeHash = hashChildren(this.#frontierNodes.pop()!, nodeHash);
      nodeSink?.keep(++nodeLevel, (nodeIndex - 1) / 2, nodeHash);
    }
    this.#frontierNodes.push(nodeHash);
    this.#treeSize++;
  }

  root(): Uint8Array {
    if (this.#treeSize === 0) return sha256(new Uint8Array(0));
    let rootHash = this.#frontierNodes[this.#frontierNodes.length - 1]!;
    for (let i = this.#frontierNodes.length - 2; i >= 0; i--) rootHash = hashChildren(this.#frontierNodes[i]!, rootHash);
    return rootHash;
  }

  /** An independent copy: hashes appended to it reach no sink. */
  copy(): Frontier {
    return new Frontier(this.#treeSize, this.#frontierNodes);
  }
}

/** All complete nodes of a list of leaf hashes, for proofs over logs that fit in memory: level 0 first. */
export function completeNodes(leafHashes: readonly Uint8Array[]): NodeHash {
  const treeLevels: Uint8Array[][] = [[...leafHashes]];
  for (let treeLevel = treeLevels[0]!; treeLevel.length > 1; treeLevels.push(treeLevel)) {
    const parentHashes: Uint8Array[] = [];
    for (let i = 0; i + 1 < treeLevel.length; i += 2) parentHashes.push(hashChildren(treeLevel[i]!, treeLevel[i + 1]!));
    treeLevel = parentHashes;
  }
  return (level, index) => {
    const node = treeLevels[level]?.[index];
    if (!node) throw new RangeError(`no complete node ${level}/${index}`);
    return node;
  };
}

/** Root of the first `treeSize` leaves. */
export function rootOf(treeSize: number, nodeHashes: NodeHash): Uint8Array {
  return treeSize === 0 ? sha256(new Uint8Array(0)) : rangeRootHash(0, treeSize, nodeHashes);
}

/** RFC 9162 section 2.1.3.1: siblings from the leaf up. */
export function inclusionProof(leafIndex: number, treeSize: number, nodeHashes: NodeHash): Uint8Array[] {
  if (!(leafIndex >= 0 && leafIndex < treeSize)) throw new RangeError('the leaf lies outside the tree');
  const proofPath: Uint8Array[] = [];
  let rangeStart = 0;
  let rangeEnd = treeSize;
  const siblingRanges: [number, number][] = [];
  while (rangeEnd - rangeStart > 1) {
    const rangeSplit = rangeStart + subtreeSplit(rangeEnd - rangeStart);
    if (leafIndex < rangeSplit) {
      siblingRanges.push([rangeSplit, rangeEnd]);
      rangeEnd = rangeSplit;
    } else {
      siblingRanges.push([rangeStart, rangeSplit]);
      rangeStart = rangeSplit;
    }
  }
  for (let i = siblingRanges.length - 1; i >= 0; i--) proofPath.push(rangeRootHash(...siblingRanges[i]!, nodeHashes));
  return proofPath;
}

/** RFC 9162 section 2.1.4.1: nodes that turn the root of `firstTreeSize` leaves into that of `secondTreeSize`. */
export function consistencyProof(firstTreeSize: number, secondTreeSize: number, nodeHashes: NodeHash): Uint8Array[] {
  if (!(firstTreeSize >= 1 && firstTreeSize <= secondTreeSize)) throw new RangeError('sizes of a consistency proof rise from 1');
  const proofHashes: Uint8Array[] = [];
  let rangeStart = 0;
  let rangeEnd = secondTreeSize;
  let isOldRootKnown = true;
  while (firstTreeSize < rangeEnd) {
    const rangeSplit = rangeStart + subtreeSplit(rangeEnd - rangeStart);
    if (firstTreeSize <= rangeSplit) {
      proofHashes.push(rangeRootHash(rangeSplit, rangeEnd, nodeHashes));
      rangeEnd = rangeSplit;
    } else {
      proofHashes.push(rangeRootHash(rangeStart, rangeSplit, nodeHashes));
      rangeStart = rangeSplit;
      isOldRootKnown = false;
    }
  }
  if (!isOldRootKnown) proofHashes.push(rangeRootHash(rangeStart, rangeEnd, nodeHashes));
  return proofHashes.reverse();
}

/** RFC 9162 section 2.1.3.2. False for anything that does not prove it, malformed input included. */
export function verifyInclusion(
  leafHash: Uint8Array,
  leafIndex: number,
  treeSize: number,
  proofPath: readonly Uint8Array[],
  treeRoot: Uint8Array,
): boolean {
  if (!isTreeSize(leafIndex) || !isTreeSize(treeSize) || leafIndex >= treeSize || !isProofPath(proofPath)) return false;
  let nodeIndex = leafIndex;
  let lastNodeIndex = treeSize - 1;
  let pathHash = leafHash;
  for (const siblingHash of proofPath) {
    if (lastNodeIndex === 0) return false;
    if (nodeIndex % 2 === 1 || nodeIndex === lastNodeIndex) {
      pathHash = hashChildren(siblingHash, pathHash);
      while (nodeIndex % 2 === 0 && nodeIndex !== 0) {
        nodeIndex /= 2;
        lastNodeIndex = Math.floor(lastNodeIndex / 2);
      }
    } else {
      pathHash = hashChildren(pathHash, siblingHash);
    }
    nodeIndex = Math.floor(nodeIndex / 2);
    lastNodeIndex = Math.floor(lastNodeIndex / 2);
  }
  return lastNodeIndex === 0 && equalBytes(pathHash, treeRoot);
}

/** RFC 9162 section 2.1.4.2. An empty log is a prefix of every log. */
export function verifyConsistency(
  firstTreeSize: number,
  secondTreeSize: number,
  firstRoot: Uint8Array,
  secondRoot: Uint8Array,
  proofHashes: readonly Uint8Array[],
): boolean {
  if (!isTreeSize(firstTreeSize) || !isTreeSize(secondTreeSize) || firstTreeSize > secondTreeSize || !isProofPath(proofHashes))
    return false;
  if (firstTreeSize === secondTreeSize) return proofHashes.length === 0 && equalBytes(firstRoot, secondRoot);
  if (firstTreeSize === 0) return proofHashes.length === 0 && equalBytes(firstRoot, sha256(new Uint8Array(0)));
  const proofPath = isPowerOfTwo(firstTreeSize) ? [firstRoot, ...proofHashes] : proofHashes;
  if (proofPath.length === 0) return false;
  let nodeIndex = firstTreeSize - 1;
  let lastNodeIndex = secondTreeSize - 1;
  while (nodeIndex % 2 === 1) {
    nodeIndex = Math.floor(nodeIndex / 2);
    lastNodeIndex = Math.floor(lastNodeIndex / 2);
  }
  let oldHash = proofPath[0]!;
  let newHash = proofPath[0]!;
  for (const siblingHash of proofPath.slice(1)) {
    if (lastNodeIndex === 0) return false;
    if (nodeIndex % 2 === 1 || nodeIndex === lastNodeIndex) {
      oldHash = hashChildren(siblingHash, oldHash);
      newHash = hashChildren(siblingHash, newHash);
      while (nodeIndex % 2 === 0 && nodeIndex !== 0) {
        nodeIndex /= 2;
        lastNodeIndex = Math.floor(lastNodeIndex / 2);
      }
    } else {
      newHash = hashChildren(newHash, siblingHash);
    }
    nodeIndex = Math.floor(nodeIndex / 2);
    lastNodeIndex = Math.floor(lastNodeIndex / 2);
  }
  return lastNodeIndex === 0 && equalBytes(oldHash, firstRoot) && equalBytes(newHash, secondRoot);
}

/** Hash of leaves [first, end): `firstLeaf` is a multiple of the power of two that the range splits at. */
function rangeRootHash(firstLeaf: number, endLeaf: number, nodeHashes: NodeHash): Uint8Array {
  const rangeLeaves = endLeaf - firstLeaf;
  if (isPowerOfTwo(rangeLeaves)) {
    const subtreeLevel = Math.log2(rangeLeaves);
    return nodeHashes(subtreeLevel, firstLeaf / rangeLeaves);
  }
  const rangeSplit = firstLeaf + subtreeSplit(rangeLeaves);
  return hashChildren(rangeRootHash(firstLeaf, rangeSplit, nodeHashes), rangeRootHash(rangeSplit, endLeaf, nodeHashes));
}

/** Largest power of two below `leafCount`. */
function subtreeSplit(leafCount: number): number {
  return 2 ** Math.ceil(Math.log2(leafCount) - 1);
}

function isPowerOfTwo(leafCount: number): boolean {
  return Number.isInteger(Math.log2(leafCount));
}

function isTreeSize(treeSize: number): boolean {
  return Number.isSafeInteger(treeSize) && treeSize >= 0;
}

/** No tree that fits in 64 bits has a longer path. */
function isProofPath(proofPath: readonly Uint8Array[]): boolean {
  return proofPath.length <= 64 && proofPath.every((proofHash) => proofHash.length === HASH_BYTES);
}
