import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { FrameIndex } from '../../src/log/frame-index.ts';
import { completeNodes, Frontier, rootOf } from '../../src/log/merkle-tree.ts';
import { TreeStore } from '../../src/log/tree-store.ts';
import { verifierPath } from '../proofs/judges.ts';

interface TreeMaths {
  rootFromPath(leaf: Buffer, index: number, size: number, path: Buffer[]): Buffer | null;
  isPrefix(first: number, firstRoot: Buffer, second: number, secondRoot: Buffer, path: Buffer[]): boolean;
}

const verifier = (await import(verifierPath)) as TreeMaths;
const sha = (text: string): Uint8Array => Uint8Array.from(createHash('sha256').update(text).digest());
const buffers = (hashes: readonly Uint8Array[]): Buffer[] => hashes.map((hash) => Buffer.from(hash));

function storeOf(leaves: readonly Uint8Array[]): { store: TreeStore; tree: Frontier } {
  const store = new TreeStore();
  const tree = new Frontier(0, [], store);
  for (const leaf of leaves) tree.append(leaf);
  return { store, tree };
}

const leaves = Array.from({ length: 300 }, (_, i) => sha(`leaf ${i}`));
const { store } = storeOf(leaves);

test('every path of every size up to 300 convinces the verifier, from the store of the whole tree', () => {
  const roots = Array.from({ length: 301 }, (_, size) => Buffer.from(store.root(size)));
  expect(roots[300]!.equals(rootOf(300, completeNodes(leaves)))).toBe(true);
  let wrong = 0;
  for (let size = 1; size <= 300; size++) {
    // All places of small trees; of larger ones those beside every power of two, and the edges.
    for (let at = 0; at < size; at++) {
      if (size > 70 && at > 3 && at < size - 3 && !Number.isInteger(Math.log2(at)) && !Number.isInteger(Math.log2(at + 1)))
        continue;
      const root = verifier.rootFromPath(Buffer.from(leaves[at]!), at, size, buffers(store.inclusion(at, size)));
      if (!root?.equals(roots[size]!)) wrong++;
      if (!verifier.isPrefix(at + 1, roots[at + 1]!, size, roots[size]!, buffers(store.consistency(at + 1, size)))) wrong++;
    }
  }
  expect(wrong).toBe(0);
});

test('beyond three kept levels, at the edges of chunks', () => {
  const many = Array.from({ length: 9000 }, (_, i) => sha(`many ${i}`));
  const { store: large, tree } = storeOf(many);
  expect(large.size).toBe(9000);
  expect(Buffer.from(large.root(9000)).equals(tree.root())).toBe(true);
  for (const leaf of [0, 255, 256, 4095, 4096, 8191, 8192, 8999]) {
    const root = verifier.rootFromPath(Buffer.from(many[leaf]!), leaf, 9000, buffers(large.inclusion(leaf, 9000)));
    expect(root?.equals(tree.root())).toBe(true);
  }
});

test('an entry costs little more than its hash', () => {
  const { store: large } = storeOf(Array.from({ length: 100_000 }, () => leaves[0]!));
  expect(large.bytes / 100_000).toBeLessThan(40);
});

test('what is not complete is not there', () => {
  expect(() => store.node(0, 300)).toThrow(RangeError);
  expect(() => store.node(8, 1)).toThrow(RangeError);
  expect(() => store.node(0, -1)).toThrow(RangeError);
  expect(() => store.inclusion(5, 5)).toThrow(RangeError);
});

test('tiles are those of c2sp.org/tlog-tiles: leaves at level 0, roots of full tiles above', () => {
  const full = store.tile(0, 0, 256, 300)!;
  expect(full.length).toBe(8192);
  expect(Buffer.from(full.subarray(32 * 255)).equals(leaves[255]!)).toBe(true);
  expect(Buffer.from(store.tile(1, 0, 1, 300)!).equals(rootOf(256, completeNodes(leaves)))).toBe(true);
  expect(store.tile(0, 1, 44, 300)!.length).toBe(44 * 32);
  expect(store.tile(0, 1, 45, 300)).toBeNull();
  expect(store.tile(0, 1, 44, 299)).toBeNull();
  expect(store.tile(1, 0, 2, 300)).toBeNull();
  expect(store.tile(63, 0, 1, 300)).toBeNull();
  expect(store.tile(0, 0, 256, 301)).toBeNull();
});

test('a frame is found by what it holds, from notes that are far apart', () => {
  const frames = new FrameIndex();
  expect(frames.before(0)).toBeUndefined();
  frames.note({ file: 0, offset: 64, firstLeaf: 0, firstPosition: 0 });
  frames.note({ file: 0, offset: 100, firstLeaf: 1, firstPosition: 5 });
  frames.note({ file: 0, offset: 70_000, firstLeaf: 9, firstPosition: 9 });
  frames.note({ file: 0, offset: 140_000, firstLeaf: 12, firstPosition: 9 });
  frames.note({ file: 1, offset: 64, firstLeaf: 13, firstPosition: 11 });
  expect([0, 8, 9, 11, 12, 13, 99].map((leaf) => frames.before(leaf)!.firstLeaf)).toEqual([0, 0, 9, 9, 12, 13, 13]);
  // The later of two that begin at one position: the earlier holds access records only.
  expect([0, 8, 9, 10, 11].map((position) => frames.beforePosition(position)!.firstLeaf)).toEqual([0, 0, 12, 12, 13]);
});
