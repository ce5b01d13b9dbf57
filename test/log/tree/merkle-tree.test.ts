import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  completeNodes,
  consistencyProof,
  Frontier,
  inclusionProof,
  rootOf,
  verifyConsistency,
  verifyInclusion,
} from '../../../src/log/tree/merkle-tree.ts';

const sha = (...parts: Uint8Array[]): Uint8Array => Uint8Array.from(createHash('sha256').update(Buffer.concat(parts)).digest());
const leafOf = (data: Uint8Array): Uint8Array => sha(Uint8Array.of(0), data);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** RFC 9162 section 2.1.1, word for word. */
function mth(leaves: readonly Uint8Array[]): Uint8Array {
  const n = leaves.length;
  if (n === 0) return sha();
  if (n === 1) return leaves[0]!;
  let k = 1;
  while (k * 2 < n) k *= 2;
  return sha(Uint8Array.of(1), mth(leaves.slice(0, k)), mth(leaves.slice(k)));
}

const inputs = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
const rfcLeaves = inputs.map((input) => leafOf(Buffer.from(input, 'hex')));

// Published with the reference implementations of certificate transparency, for the inputs above.
const roots = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];

test.each(roots.map((root, size) => ({ size, root })))('the root of the known tree of $size leaves', ({ size, root }) => {
  const leaves = rfcLeaves.slice(0, size);
  const frontier = new Frontier();
  for (const leaf of leaves) frontier.append(leaf);
  expect(hex(frontier.root())).toBe(root);
  expect(hex(rootOf(size, completeNodes(leaves)))).toBe(root);
});

test('known inclusion and consistency paths of the tree of 8', () => {
  const nodes = completeNodes(rfcLeaves);
  expect(inclusionProof(0, 8, nodes).map(hex)).toEqual([
    '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
    '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
    '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
  ]);
  expect(consistencyProof(6, 8, nodes).map(hex)).toEqual([
    '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
    'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  ]);
});

const leaves300 = Array.from({ length: 300 }, (_, i) => leafOf(Buffer.from(`leaf ${i}`)));
const nodes300 = completeNodes(leaves300);

test('every leaf of every size is proven, against the root that the definition gives', () => {
  for (let size = 1; size <= 40; size++) {
    const root = mth(leaves300.slice(0, size));
    for (let leaf = 0; leaf < size; leaf++) {
      expect(verifyInclusion(leaves300[leaf]!, leaf, size, inclusionProof(leaf, size, nodes300), root)).toBe(true);
    }
  }
});

test('every earlier tree is proven to be a prefix', () => {
  for (let second = 1; second <= 40; second++) {
    for (let first = 1; first <= second; first++) {
      const proof = consistencyProof(first, second, nodes300);
      expect(verifyConsistency(first, second, mth(leaves300.slice(0, first)), mth(leaves300.slice(0, second)), proof)).toBe(true);
    }
  }
});

const place = fc
  .integer({ min: 1, max: 300 })
  .chain((size) => fc.record({ size: fc.constant(size), leaf: fc.nat(size - 1), first: fc.integer({ min: 1, max: size }) }));

test('a frontier restored from its nodes goes on as the one it came from', () => {
  fc.assert(
    fc.property(place, ({ size, first }) => {
      const frontier = new Frontier();
      leaves300.slice(0, first).forEach((leaf) => frontier.append(leaf));
      const copy = frontier.copy();
      leaves300.slice(first, size).forEach((leaf) => copy.append(leaf));
      expect(copy.size).toBe(size);
      expect(hex(copy.root())).toBe(hex(mth(leaves300.slice(0, size))));
      expect(hex(frontier.root())).toBe(hex(mth(leaves300.slice(0, first))));
    }),
    { numRuns: 50 },
  );
});

test('no changed bit, length, index or order of an inclusion path is accepted', () => {
  fc.assert(
    fc.property(place, fc.nat(255), fc.nat(8), ({ size, leaf }, bit, at) => {
      const root = rootOf(size, nodes300);
      const path = inclusionProof(leaf, size, nodes300);
      const hash = leaves300[leaf]!;
      const accepts = (changed: readonly Uint8Array[], index = leaf, total = size): boolean =>
        verifyInclusion(hash, index, total, changed, root);
      expect(accepts(path)).toBe(true);
      if (path.length > 0) {
        const changed = path.map((node) => node.slice());
        changed[at % path.length]![bit >> 3]! ^= 1 << (bit & 7);
        expect(accepts(changed)).toBe(false);
        expect(accepts(path.slice(1))).toBe(false);
        expect(accepts([...path].reverse())).toBe(path.length === 1);
        expect(accepts(path.map((node) => node.subarray(1)))).toBe(false);
      }
      expect(accepts([...path, hash])).toBe(false);
      expect(accepts(path, leaf + 1)).toBe(false);
      expect(accepts(path, leaf, leaf)).toBe(false);
      expect(accepts(path, -1)).toBe(false);
      expect(accepts(path, 0.5)).toBe(false);
    }),
    { numRuns: 300 },
  );
});

test('no changed bit, length or size of a consistency proof is accepted', () => {
  fc.assert(
    fc.property(place, fc.nat(255), fc.nat(8), ({ size, first }, bit, at) => {
      const [oldRoot, newRoot] = [rootOf(first, nodes300), rootOf(size, nodes300)];
      const proof = consistencyProof(first, size, nodes300);
      expect(verifyConsistency(first, size, oldRoot, newRoot, proof)).toBe(true);
      if (first < size) {
        const changed = proof.map((node) => node.slice());
        changed[at % proof.length]![bit >> 3]! ^= 1 << (bit & 7);
        expect(verifyConsistency(first, size, oldRoot, newRoot, changed)).toBe(false);
        expect(verifyConsistency(first, size, oldRoot, newRoot, proof.slice(1))).toBe(false);
        expect(verifyConsistency(first, size, newRoot, oldRoot, proof)).toBe(false);
        expect(verifyConsistency(size, first, oldRoot, newRoot, proof)).toBe(false);
      }
      expect(verifyConsistency(first, size, oldRoot, newRoot, [...proof, newRoot])).toBe(false);
    }),
    { numRuns: 300 },
  );
});

test('paths of more than 64 nodes are refused, and the empty tree is a prefix of all', () => {
  const root = rootOf(300, nodes300);
  const endless = Array.from({ length: 65 }, () => root);
  expect(verifyInclusion(root, 0, Number.MAX_SAFE_INTEGER, endless, root)).toBe(false);
  expect(verifyConsistency(0, 300, rootOf(0, nodes300), root, [])).toBe(true);
  expect(verifyConsistency(0, 300, root, root, [])).toBe(false);
  expect(() => inclusionProof(300, 300, nodes300)).toThrow(RangeError);
});
