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

const scratch = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

export function hashChildren(left: Uint8Array, right: Uint8Array): Uint8Array {
  scratch.set(left, 1);
  scratch.set(right, 1 + HASH_BYTES);
  return sha256(scratch);
}

/** The complete subtrees of a growing list, largest first: all that appending and the root need. */
export class Frontier {
  readonly #nodes: Uint8Array[];
  readonly #sink: NodeSink | null;
  #size: number;

  constructor(size = 0, nodes: readonly Uint8Array[] = [], sink: NodeSink | null = null) {
    this.#size = size;
    this.#nodes = [...nodes];
    this.#sink = sink;
  }

  get size(): number {
    return this.#size;
  }

  append(leafHash: Uint8Array): void {
    const sink = this.#sink;
    let node = leafHash;
    let level = 0;
    let index = this.#size;
    sink?.keep(level, index, node);
    // A subtree merges with its left neighbour for every trailing one bit of the size before.
    for (; index % 2 === 1; index = (index - 1) / 2) {
      node = hashChildren(this.#nodes.pop()!, node);
      sink?.keep(++level, (index - 1) / 2, node);
    }
    this.#nodes.push(node);
    this.#size++;
  }

  root(): Uint8Array {
    if (this.#size === 0) return sha256(new Uint8Array(0));
    let root = this.#nodes[this.#nodes.length - 1]!;
    for (let i = this.#nodes.length - 2; i >= 0; i--) root = hashChildren(this.#nodes[i]!, root);
    return root;
  }

  /** An independent copy: hashes appended to it reach no sink. */
  copy(): Frontier {
    return new Frontier(this.#size, this.#nodes);
  }
}

/** All complete nodes of a list of leaf hashes, for proofs over logs that fit in memory: level 0 first. */
export function completeNodes(leafHashes: readonly Uint8Array[]): NodeHash {
  const levels: Uint8Array[][] = [[...leafHashes]];
  for (let level = levels[0]!; level.length > 1; levels.push(level)) {
    const parents: Uint8Array[] = [];
    for (let i = 0; i + 1 < level.length; i += 2) parents.push(hashChildren(level[i]!, level[i + 1]!));
    level = parents;
  }
  return (level, index) => {
    const node = levels[level]?.[index];
    if (!node) throw new RangeError(`no complete node ${level}/${index}`);
    return node;
  };
}

/** Root of the first `size` leaves. */
export function rootOf(size: number, nodes: NodeHash): Uint8Array {
  return size === 0 ? sha256(new Uint8Array(0)) : rangeHash(0, size, nodes);
}

/** RFC 9162 section 2.1.3.1: siblings from the leaf up. */
export function inclusionProof(leaf: number, size: number, nodes: NodeHash): Uint8Array[] {
  if (!(leaf >= 0 && leaf < size)) throw new RangeError('the leaf lies outside the tree');
  const path: Uint8Array[] = [];
  let first = 0;
  let end = size;
  const siblings: [number, number][] = [];
  while (end - first > 1) {
    const split = first + splitOf(end - first);
    if (leaf < split) {
      siblings.push([split, end]);
      end = split;
    } else {
      siblings.push([first, split]);
      first = split;
    }
  }
  for (let i = siblings.length - 1; i >= 0; i--) path.push(rangeHash(...siblings[i]!, nodes));
  return path;
}

/** RFC 9162 section 2.1.4.1: nodes that turn the root of `first` leaves into that of `second`. */
export function consistencyProof(first: number, second: number, nodes: NodeHash): Uint8Array[] {
  if (!(first >= 1 && first <= second)) throw new RangeError('sizes of a consistency proof rise from 1');
  const proof: Uint8Array[] = [];
  let start = 0;
  let end = second;
  let known = true;
  while (first < end) {
    const split = start + splitOf(end - start);
    if (first <= split) {
      proof.push(rangeHash(split, end, nodes));
      end = split;
    } else {
      proof.push(rangeHash(start, split, nodes));
      start = split;
      known = false;
    }
  }
  if (!known) proof.push(rangeHash(start, end, nodes));
  return proof.reverse();
}

/** RFC 9162 section 2.1.3.2. False for anything that does not prove it, malformed input included. */
export function verifyInclusion(
  leafHash: Uint8Array,
  leaf: number,
  size: number,
  path: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  if (!isSize(leaf) || !isSize(size) || leaf >= size || !wellFormed(path)) return false;
  let node = leaf;
  let last = size - 1;
  let hash = leafHash;
  for (const sibling of path) {
    if (last === 0) return false;
    if (node % 2 === 1 || node === last) {
      hash = hashChildren(sibling, hash);
      while (node % 2 === 0 && node !== 0) {
        node /= 2;
        last = Math.floor(last / 2);
      }
    } else {
      hash = hashChildren(hash, sibling);
    }
    node = Math.floor(node / 2);
    last = Math.floor(last / 2);
  }
  return last === 0 && equalBytes(hash, root);
}

/** RFC 9162 section 2.1.4.2. An empty log is a prefix of every log. */
export function verifyConsistency(
  first: number,
  second: number,
  firstRoot: Uint8Array,
  secondRoot: Uint8Array,
  proof: readonly Uint8Array[],
): boolean {
  if (!isSize(first) || !isSize(second) || first > second || !wellFormed(proof)) return false;
  if (first === second) return proof.length === 0 && equalBytes(firstRoot, secondRoot);
  if (first === 0) return proof.length === 0 && equalBytes(firstRoot, sha256(new Uint8Array(0)));
  const path = isPowerOfTwo(first) ? [firstRoot, ...proof] : proof;
  if (path.length === 0) return false;
  let node = first - 1;
  let last = second - 1;
  while (node % 2 === 1) {
    node = Math.floor(node / 2);
    last = Math.floor(last / 2);
  }
  let oldHash = path[0]!;
  let newHash = path[0]!;
  for (const sibling of path.slice(1)) {
    if (last === 0) return false;
    if (node % 2 === 1 || node === last) {
      oldHash = hashChildren(sibling, oldHash);
      newHash = hashChildren(sibling, newHash);
      while (node % 2 === 0 && node !== 0) {
        node /= 2;
        last = Math.floor(last / 2);
      }
    } else {
      newHash = hashChildren(newHash, sibling);
    }
    node = Math.floor(node / 2);
    last = Math.floor(last / 2);
  }
  return last === 0 && equalBytes(oldHash, firstRoot) && equalBytes(newHash, secondRoot);
}

/** Hash of leaves [first, end): `first` is a multiple of the power of two that the range splits at. */
function rangeHash(first: number, end: number, nodes: NodeHash): Uint8Array {
  const count = end - first;
  if (isPowerOfTwo(count)) {
    const level = Math.log2(count);
    return nodes(level, first / count);
  }
  const split = first + splitOf(count);
  return hashChildren(rangeHash(first, split, nodes), rangeHash(split, end, nodes));
}

/** Largest power of two below `count`. */
function splitOf(count: number): number {
  return 2 ** Math.ceil(Math.log2(count) - 1);
}

function isPowerOfTwo(count: number): boolean {
  return Number.isInteger(Math.log2(count));
}

function isSize(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** No tree that fits in 64 bits has a longer path. */
function wellFormed(path: readonly Uint8Array[]): boolean {
  return path.length <= 64 && path.every((hash) => hash.length === HASH_BYTES);
}
