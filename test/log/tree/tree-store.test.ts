import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { ByteReader, ByteWriter } from '../../../src/log/bytes/byte-stream.ts';
import { FrameIndex } from '../../../src/log/files/frame-index.ts';
import { completeNodes, Frontier, rootOf } from '../../../src/log/tree/merkle-tree.ts';
import { GROUP_LEAVES, TreeStore } from '../../../src/log/tree/tree-store.ts';
import { verifierPath } from '../../proofs/judges.ts';

interface TreeMaths {
  rootFromPath(leaf: Buffer, index: number, size: number, path: Buffer[]): Uint8Array | null;
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
      if (root === null || !roots[size]!.equals(root)) wrong++;
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
    expect(root).toEqual(tree.root());
  }
});

test('an entry costs little more than its hash', () => {
  const { store: large } = storeOf(Array.from({ length: 100_000 }, () => leaves[0]!));
  expect(large.bytes / 100_000).toBeLessThan(40);
});

test('saved and restored, a tree gives the same nodes, reads no more than is asked for, and grows on', () => {
  const count = GROUP_LEAVES * 10 + 1000;
  const grown = new TreeStore();
  const tree = new Frontier(0, [], grown);
  const leafOf = (i: number): Uint8Array => leaves[(i * 7 + (i >> 8)) % 300]!;
  for (let i = 0; i < count; i++) tree.append(leafOf(i));
  const saved = new ByteWriter();
  // Of a tree that has gone on since.
  const size = count - 700;
  grown.save(size, saved);
  expect(saved.length).toBeLessThan(300 * 34 + 10 * 40);
  const blobs = new Map(grown.blobs(size).map(({ name, bytes }) => [name, bytes]));
  expect(blobs.size).toBe(10);
  let read = 0;
  const restored = TreeStore.restore(new ByteReader(saved.take()), size, (name) => {
    read++;
    return blobs.get(name)!();
  });
  expect(restored.size).toBe(size);
  expect(Buffer.from(restored.root(size)).equals(grown.root(size))).toBe(true);
  expect(read).toBe(0);
  const again = restored.frontier();
  for (let i = size; i < count; i++) again.append(leafOf(i));
  expect(Buffer.from(again.root()).equals(tree.root())).toBe(true);
  for (const level of [0, 1, 4, 7, 8, 12, 15, 16, 17]) {
    for (let at = 0; at < Math.floor(count / 2 ** level); at += 1 + Math.floor(count / 2 ** level / 37)) {
      expect(Buffer.from(restored.node(level, at)).equals(grown.node(level, at)), `${level}/${at}`).toBe(true);
    }
  }
  expect(read).toBeGreaterThan(10);
  // Eight groups of what was read back stay; what they are given as anew is what they were.
  expect(restored.bytes).toBeLessThan(8 * 2_300_000 + 500_000);
  expect(restored.blobs(count).map(({ name }) => name)).toEqual([...blobs.keys()]);
  for (const { name, bytes } of restored.blobs(count)) expect(Buffer.from(bytes()).equals(blobs.get(name)!())).toBe(true);
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
  expect(frames.frameBefore(0)).toBeUndefined();
  frames.note({ file: 0, offset: 64, firstLeaf: 0, firstPosition: 0 });
  frames.note({ file: 0, offset: 100, firstLeaf: 1, firstPosition: 5 });
  frames.note({ file: 0, offset: 70_000, firstLeaf: 9, firstPosition: 9 });
  frames.note({ file: 0, offset: 140_000, firstLeaf: 12, firstPosition: 9 });
  frames.note({ file: 1, offset: 64, firstLeaf: 13, firstPosition: 11 });
  const saved = new ByteWriter();
  frames.save(frames.count, saved);
  const restored = FrameIndex.restore(new ByteReader(saved.take()));
  expect([0, 8, 13].map((leaf) => restored.frameBefore(leaf))).toEqual([0, 8, 13].map((leaf) => frames.frameBefore(leaf)));
  restored.note({ file: 1, offset: 900_000, firstLeaf: 20, firstPosition: 30 });
  expect(restored.frameBefore(21)).toEqual({ file: 1, offset: 900_000, firstLeaf: 20, firstPosition: 30 });
  expect([0, 8, 9, 11, 12, 13, 99].map((leaf) => frames.frameBefore(leaf)!.firstLeaf)).toEqual([0, 0, 9, 9, 12, 13, 13]);
  // The later of two that begin at one position: the earlier holds access records only.
  expect([0, 8, 9, 10, 11].map((position) => frames.beforePosition(position)!.firstLeaf)).toEqual([0, 0, 12, 12, 13]);
});
