/** The module that hashes four rows at a time gives the hashes that one by one give, for bodies of every shape. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
// @ts-expect-error a script has no types
import { compiledModule } from '../../../scripts/kernels.mjs';
import type { RowBatch } from '../../../src/log/values/columns.ts';
import type { RowsBody } from '../../../src/log/entries/entry.ts';
import { completeNodes, rootOf } from '../../../src/log/tree/merkle-tree.ts';
import { rowLeafHashes, rowsRoot, rowsRootInSlices } from '../../../src/log/entries/row-leaf.ts';
import { HASH_BYTES } from '../../../src/log/bytes/sha256.ts';
import { rowsBodyOf } from '../arbitrary.ts';
import { rowsDraft, SeededRandom } from '../world.ts';

/** The root over hashes that were made one by one. */
function oneByOne(body: RowsBody, path: string | null, salts: Uint8Array): string {
  const hashes = rowLeafHashes(body, path, salts);
  const leaves = Array.from({ length: body.ops.length }, (_, row) => hashes.slice(row * HASH_BYTES, (row + 1) * HASH_BYTES));
  return hex(rootOf(leaves.length, completeNodes(leaves)));
}

function inSlices(body: RowsBody, path: string | null, salts: Uint8Array): string {
  const slices = rowsRootInSlices(body, path, salts);
  let step = slices.next();
  while (!step.done) step = slices.next();
  return hex(step.value);
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const saltsFor = (rows: number, seed = ''): Uint8Array => new SeededRandom(seed).fill(new Uint8Array(rows * 16));

function draftOf(rows: number, textBytes = 0): RowsBody {
  const { body } = rowsDraft(Array.from({ length: rows }, (_, i) => `k${i}${'x'.repeat((i * 31) % (textBytes + 1))}`));
  return body as RowsBody;
}

test('any body of rows', () => {
  const bodies = fc.integer({ min: 32, max: 75 }).chain(rowsBodyOf);
  fc.assert(
    fc.property(bodies, fc.option(fc.string()), (body, path) => {
      const salts = saltsFor(body.ops.length, body.type);
      const expected = oneByOne(body, path, salts);
      expect(hex(rowsRoot(body, path, salts))).toBe(expected);
      expect(inSlices(body, path, salts)).toBe(expected);
    }),
    { numRuns: 150 },
  );
});

test.each([1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 127, 1023, 1024, 1025, 4096, 5001])('%i rows', (rows) => {
  const body = draftOf(rows);
  const salts = saltsFor(rows);
  const expected = oneByOne(body, 'a/b', salts);
  expect([hex(rowsRoot(body, 'a/b', salts)), inSlices(body, 'a/b', salts)]).toEqual([expected, expected]);
});

test('rows of every length across the edges of blocks, four of them unlike each other', () => {
  const body = draftOf(200, 199);
  const salts = saltsFor(200);
  expect(hex(rowsRoot(body, null, salts))).toBe(oneByOne(body, null, salts));
});

test.each([700, 1400, 2000, 9000])('rows of up to %i bytes, which the module hashes or only lays out', (bytes) => {
  const body = draftOf(64, bytes);
  const salts = saltsFor(64);
  const expected = oneByOne(body, null, salts);
  expect([hex(rowsRoot(body, null, salts)), inSlices(body, null, salts)]).toEqual([expected, expected]);
});

test('text columns that are a part of longer arrays', () => {
  const body = draftOf(64);
  const cut = (batch: RowBatch): RowBatch => ({
    length: 40,
    columns: batch.columns.map((column) => {
      const { vector } = column;
      if (vector.kind !== 'text') return column;
      return { ...column, vector: { ...vector, offsets: vector.offsets.subarray(7, 7 + 41) } };
    }),
  });
  const part: RowsBody = { ...body, ops: body.ops.subarray(0, 40), keys: cut(body.keys), cells: cut(body.cells) };
  const salts = saltsFor(40);
  expect(hex(rowsRoot(part, null, salts))).toBe(oneByOne(part, null, salts));
});

/** One row has a text that the module has no room for. */
function tooLarge(rows: number): RowsBody {
  const heap = new Uint8Array(2 << 20).fill(97);
  const offsets = Uint32Array.from({ length: rows + 1 }, (_, i) => (i === 0 ? 0 : heap.length));
  const vector = { kind: 'text' as const, offsets, heap, nulls: null };
  return { ...draftOf(rows, 39), cells: { length: rows, columns: [{ name: 'long', type: 'string', vector }] } };
}

test('bodies that are too large for the module are hashed one by one', () => {
  const large = tooLarge(40);
  const salts = saltsFor(40);
  const expected = oneByOne(large, null, salts);
  expect([hex(rowsRoot(large, null, salts)), inSlices(large, null, salts)]).toEqual([expected, expected]);
});

test('slices of such bodies, in turn, are of what the rows of each share', () => {
  const bodies = [tooLarge(1_100), tooLarge(1_200)];
  const paths = ['acme', 'globex/lab'];
  const salts = saltsFor(1_200);
  const roots: (string | null)[] = [null, null];
  const slices = bodies.map((body, i) => rowsRootInSlices(body, paths[i]!, salts));
  while (roots.includes(null)) {
    for (const [i, each] of slices.entries()) {
      const step = each.next();
      if (step.done && roots[i] === null) roots[i] = hex(step.value);
    }
  }
  expect(roots).toEqual(bodies.map((body, i) => oneByOne(body, paths[i]!, salts)));
});

test('slices of two bodies at once share no memory', () => {
  // The last one's rows are only laid out by the module.
  const bodies = [draftOf(3000), draftOf(2500, 50), draftOf(2200, 2000)];
  const salts = saltsFor(3000);
  const slices = bodies.map((body) => rowsRootInSlices(body, null, salts));
  const roots: string[] = [];
  while (roots.filter(Boolean).length < bodies.length) {
    slices.forEach((each, i) => {
      if (roots[i]) return;
      const step = each.next();
      if (step.done) roots[i] = hex(step.value);
    });
    rowsRoot(draftOf(100), 'another', salts);
  }
  expect(roots).toEqual(bodies.map((body) => oneByOne(body, null, salts)));
});

test('the module is what its source compiles to', async () => {
  expect(readFileSync(new URL('../../../src/log/entries/row-hashes-code.ts', import.meta.url), 'utf8')).toBe(
    await (compiledModule as (name: string) => Promise<string>)('row-hashes'),
  );
});
