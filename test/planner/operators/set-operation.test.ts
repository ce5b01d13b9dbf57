/** Set operations against lists of rows: any columns, layouts and block sizes. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Cell, ColumnType } from '../../../src/log/values/value.ts';
import type { SetOperationNode } from '../../../src/planner/logical-plan.ts';
import { SetOperationOperator } from '../../../src/planner/operators/set-operation.ts';
import type { Operator } from '../../../src/planner/operators/operator.ts';
import { ArraySource, arrayExecution, type CellRow, drain, type Layout } from '../execution/array-source.ts';

const cells = {
  integer: fc.constantFrom<Cell>(0n, 1n, 2n ** 53n, 2n ** 53n + 1n, -(2n ** 63n), null),
  number: fc.constantFrom<Cell>(0, -0, 1.5, null),
  string: fc.constantFrom<Cell>('', 'a', 'ä', null),
  boolean: fc.constantFrom<Cell>(true, false, null),
} as const;
const layout: fc.Arbitrary<Layout> = fc.record({
  blockRows: fc.integer({ min: 1, max: 7 }),
  sparse: fc.boolean(),
  text: fc.constantFrom('shared', 'per block', 'plain'),
  wide: fc.boolean(),
});

const text = (row: CellRow): string => row.map((cell) => `${typeof cell} ${String(cell === 0 ? 0 : cell)}`).join('|');

function expected(op: SetOperationNode['op'], left: readonly CellRow[], right: readonly CellRow[]): CellRow[] {
  if (op === 'union all') return [...left, ...right];
  const inRight = new Set(right.map(text));
  const from = op === 'union' ? [...left, ...right] : left.filter((row) => inRight.has(text(row)) === (op === 'intersect'));
  const seen = new Set<string>();
  return from.filter((row) => !seen.has(text(row)) && seen.add(text(row)));
}

const operations: readonly SetOperationNode['op'][] = ['union', 'union all', 'intersect', 'except'];

describe.each(operations)('%s', (op) => {
  test('is what lists of rows say, in order of first appearance, NULLs being the same', () => {
    const types = fc.array(fc.constantFrom('integer', 'number', 'string', 'boolean'), { minLength: 1, maxLength: 3 });
    const subject = (types as fc.Arbitrary<(keyof typeof cells)[]>).chain((own) => {
      const side = fc.array(fc.tuple(...own.map((type) => cells[type])), { maxLength: 16 });
      return fc.tuple(fc.constant(own as readonly ColumnType[]), side, side, layout, layout);
    });
    fc.assert(
      fc.property(subject, ([own, left, right, leftLayout, rightLayout]) => {
        const columns = own.map((type, i) => ({ name: `c${i}`, type }));
        const node = { kind: 'set-operation', op, columns } as unknown as SetOperationNode;
        const sources = [new ArraySource(own, left, leftLayout), new ArraySource(own, right, rightLayout)] as const;
        const { rows } = drain(new SetOperationOperator(...sources, node, arrayExecution()), own);
        expect(rows.map(text)).toEqual(expected(op, left, right).map(text));
        expect(sources.map(({ closed }) => closed)).toEqual([1, 1]);
      }),
      { numRuns: 500 },
    );
  });

  test('holds what it remembers of rows under the meter', () => {
    const rows: CellRow[] = Array.from({ length: 20_000 }, (_, i) => [BigInt(i) * 1_000_003n]);
    const node = { kind: 'set-operation', op, columns: [{ name: 'n', type: 'integer' }] } as unknown as SetOperationNode;
    const run = () =>
      drain(
        new SetOperationOperator(
          new ArraySource(['integer'], rows),
          new ArraySource(['integer'], rows),
          node,
          arrayExecution({ bytesMax: 400_000 }),
        ),
        ['integer'],
      );
    if (op === 'union all') expect(run().rows.length).toBe(40_000);
    else expect(run).toThrow('bytes of memory');
  });
});

test('a block goes up by one of many such operations in a call', () => {
  const node = { kind: 'set-operation', op: 'union', columns: [{ name: 'n', type: 'integer' }] } as unknown as SetOperationNode;
  const rows: CellRow[] = [[1n], [2n]];
  let top: Operator = new ArraySource(['integer'], rows);
  for (let i = 0; i < 50; i++) top = new SetOperationOperator(top, new ArraySource(['integer'], rows), node, arrayExecution());
  let calls = 1;
  for (; top.next()?.count === 0; calls++);
  expect(calls).toBe(50);
});

test('a value is one value however many came between', () => {
  const types = ['integer', 'string'] as const;
  const wide: CellRow[] = [70_000n, 3_000n, 2n ** 40n, -1n].map((n) => [n, 'x']);
  const between: CellRow[] = Array.from({ length: 30_000 }, (_, i) => [BigInt((i * 7) % 30_000), `t${i % 700}`]);
  const columns = types.map((type, i) => ({ name: `c${i}`, type }));
  for (const width of [1, 2]) {
    const own = types.slice(0, width);
    const cut = (rows: readonly CellRow[]): CellRow[] => rows.map((row) => row.slice(0, width));
    const node = { kind: 'set-operation', op: 'union', columns: columns.slice(0, width) } as unknown as SetOperationNode;
    const sources = [cut([...wide, ...between]), cut([...between, ...wide])].map((rows) => new ArraySource(own, rows));
    const { rows } = drain(new SetOperationOperator(sources[0]!, sources[1]!, node, arrayExecution()), own);
    const seen = new Set<string>();
    const wanted = cut([...wide, ...between]).filter((row) => !seen.has(text(row)) && seen.add(text(row)));
    expect(rows.map(text)).toEqual(wanted.map(text));
  }
});
