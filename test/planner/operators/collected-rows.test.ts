/** Rows that were collected in pieces are the rows of one copy, and are put together in steps that keep nobody waiting. */
import { expect, test, vi } from 'vitest';
import type { Vector } from '../../../src/log/values/columns.ts';
import type { Cell, ColumnType } from '../../../src/log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../src/log/values/vector-builder.ts';
import { CollectedRows } from '../../../src/planner/operators/collected-rows.ts';
import { piecesReader } from '../../../src/planner/operators/working-table.ts';

const columns: Readonly<Record<string, { type: ColumnType; cell(i: number): Cell }>> = {
  growing: {
    type: 'integer',
    cell: (i) => (i < 90_000 ? BigInt(i) : i < 120_000 ? 2n ** 40n + BigInt(i) : 2n ** 60n + BigInt(i)),
  },
  sparse: { type: 'number', cell: (i) => (i > 70_000 && i % 3 === 0 ? i / 2 : null) },
  late: { type: 'boolean', cell: (i) => (i < 100_000 ? null : i % 2 === 0) },
  text: { type: 'string', cell: (i) => (i % 11 === 0 ? null : `text ${i} ${'x'.repeat(i % 40)}`) },
  word: { type: 'string', cell: (i) => `word ${i % 50}` },
};

function vectorOf(name: string, from: number, count: number): Vector {
  const { type, cell } = columns[name]!;
  const builder = new VectorBuilder(type);
  for (let i = from; i < from + count; i++) builder.append(cell(i));
  return builder.build();
}

const names = Object.keys(columns);
const types = names.map((name) => columns[name]!.type);

test.each([1_000, 65_536, 150_000])('%i rows, whatever their columns rest in', (rows) => {
  const collected = new CollectedRows(types);
  for (let from = 0; from < rows; from += 5_000) {
    const count = Math.min(5_000, rows - from);
    collected.append({ columns: names.map((name) => vectorOf(name, from, count)), selection: null, first: 0, count });
  }
  expect(collected.length).toBe(rows);
  const bytes = collected.bytes;
  expect(bytes).toBeGreaterThan(rows * 8);
  const joining = collected.vectors();
  let steps = 0;
  let step = joining.next();
  for (; !step.done; step = joining.next()) steps++;
  expect(steps).toBeGreaterThanOrEqual(rows > 65_536 ? (names.length * rows) / 8_192 : 0);
  expect(collected.length).toBe(rows);
  expect(collected.bytes).toBeGreaterThan(rows * 8);
  for (const [c, name] of names.entries()) {
    const { type, cell } = columns[name]!;
    for (let i = 0; i < rows; i += 7) {
      if (cellAt(step.value[c]!, type, i) !== cell(i)) throw new Error(`${name} of row ${i}: ${cellAt(step.value[c]!, type, i)}`);
    }
  }
});

test('rows that are read again as they were collected are not moved, however many there are', () => {
  const collected = new CollectedRows(['integer']);
  const values = Int32Array.from({ length: 8_192 }, (_, i) => i);
  const typed = Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array;
  let most = 0;
  // oxlint-disable-next-line typescript/unbound-method
  const { set } = typed;
  const moved = vi.spyOn(typed, 'set').mockImplementation(function (this: Uint8Array, from, at) {
    most = Math.max(most, from.length);
    return set.call(this, from, at);
  });
  for (let i = 0; i < 40; i++)
    collected.append({ columns: [{ kind: 'i32', values, nulls: null }], selection: null, first: 0, count: 8_192 });
  const reader = piecesReader(collected.pieces(), 10_000);
  let rows = 0;
  for (let batch = reader.next(); batch !== null; batch = reader.next()) rows += batch.count;
  moved.mockRestore();
  expect([rows, most <= 65_536]).toEqual([40 * 8_192, true]);
});
