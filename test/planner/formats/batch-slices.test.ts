/** Slices of an answer's batches stay near their limits, however the bytes are spread over rows and columns. */
import { expect, test } from 'vitest';
import type { Vector } from '../../../src/log/values/columns.ts';
import { VectorBuilder } from '../../../src/log/values/vector-builder.ts';
import { slicesOf } from '../../../src/planner/formats/batch-slices.ts';
import type { OutputBatch } from '../../../src/planner/planner-contract.ts';

const none = Number.POSITIVE_INFINITY;

function texts(lengths: readonly number[]): Vector {
  const builder = new VectorBuilder('string', lengths.length);
  for (const [i, length] of lengths.entries()) builder.appendString(`${i}`.padEnd(length, 'x'));
  return builder.build();
}

const numbers = (count: number): Vector => ({ kind: 'f64', values: new Float64Array(count), nulls: null });

function batchOf(columns: readonly Vector[], count: number, selection: Uint32Array | null = null): OutputBatch {
  return { columns, selection, first: 0, count } as unknown as OutputBatch;
}

/** Rows of the batch, in the order of its slices. */
function rowsOf(slices: readonly OutputBatch[]): number[] {
  return slices.flatMap(({ selection, first, count }) =>
    Array.from({ length: count }, (_, i) => (selection === null ? first + i : selection[i]!)),
  );
}

test.each([
  ['as they stand', null],
  ['in another order', Uint32Array.from({ length: 4_000 }, (_, i) => 3_999 - i)],
])('long texts side by side share no slice with all others: rows %s', (_, selection) => {
  const lengths = Array.from({ length: 4_000 }, (__, i) => (i >= 1_000 && i < 1_100 ? 50_000 : 10));
  const slices = [...slicesOf([batchOf([texts(lengths)], 4_000, selection as never)], { textBytes: 100_000, floats: none })];
  const sizes = slices.map((slice) => rowsOf([slice]).reduce((sum, row) => sum + lengths[row]!, 0));
  expect(Math.max(...sizes)).toBeLessThanOrEqual(200_000);
  expect(slices.length).toBeLessThan(200);
  expect(rowsOf(slices)).toEqual(selection === null ? Array.from({ length: 4_000 }, (__, i) => i) : [...selection]);
});

test('a limit of all columns counts each of them', () => {
  const columns = [numbers(1_000), numbers(1_000), texts(Array.from({ length: 1_000 }, () => 84))];
  const counts = [...slicesOf([batchOf(columns, 1_000)], { textBytes: none, floats: none, bytes: 10_000 })].map((s) => s.count);
  expect(counts).toEqual(Array.from({ length: 10 }, () => 100));
});

test('a cell that is longer than the limit has a slice of its own', () => {
  const slices = [...slicesOf([batchOf([texts([5_000, 1, 5_000, 1])], 4)], { textBytes: 1_000, floats: none })];
  expect(slices.map(({ count }) => count)).toEqual([1, 1, 1, 1]);
});
