/** Groups and distinct rows of very many columns: the same rows as ever, in bounded memory and bounded shares. */
import { describe, expect, test } from 'vitest';
import type { Cell, ColumnType } from '../../../src/log/values/value.ts';
import type { AggregateNode, DistinctNode } from '../../../src/planner/logical-plan.ts';
import { AggregateOperator } from '../../../src/planner/operators/aggregate.ts';
import { DistinctOperator } from '../../../src/planner/operators/distinct.ts';
import { ArraySource, arrayExecution, type CellRow, drain, type Layout, plainLayout } from '../execution/array-source.ts';

const layouts: Readonly<Record<string, Layout>> = {
  'codes that lie side by side': { ...plainLayout, text: 'shared' },
  'texts among rows of others': { ...plainLayout, sparse: true, wide: true },
};

/** Every row comes twice; a seventh of its cells are NULL, in some column also those of the first row. */
function rowsOf(types: readonly ColumnType[], count: number): CellRow[] {
  return Array.from({ length: 2 * count }, (_, row) => {
    const i = row % count;
    return types.map((type, c): Cell => {
      const value = (i * (c + 7)) % 997;
      if ((i + c) % 7 === 0) return null;
      return type === 'string' ? `text ${value}` : BigInt(value);
    });
  });
}

const alternating = (count: number): ColumnType[] =>
  Array.from({ length: count }, (_, c): ColumnType => (c % 2 === 0 ? 'string' : 'integer'));
const columnsOf = (types: readonly ColumnType[]) => types.map((type, c) => ({ name: `c${c}`, type }));

describe.each(Object.entries(layouts))('many columns: %s', (_, layout) => {
  const types = alternating(41);
  const rows = rowsOf(types, 1_500);

  test('distinct rows', () => {
    const node = { kind: 'distinct', columns: columnsOf(types) } as unknown as DistinctNode;
    const { rows: out, largest } = drain(
      new DistinctOperator(new ArraySource(types, rows, layout), node, arrayExecution()),
      types,
    );
    expect(out).toEqual(rows.slice(0, 1_500));
    expect(largest).toBeLessThan(250);
  });

  test('groups', () => {
    const node = {
      kind: 'aggregate',
      input: { columns: columnsOf(types) },
      groups: types.length,
      calls: [{ function: 'count', column: null, distinct: false }],
    } as unknown as AggregateNode;
    const operator = new AggregateOperator(new ArraySource(types, rows, layout), node, arrayExecution());
    const { rows: out, calls } = drain(operator, [...types, 'integer']);
    expect(out).toEqual(rows.slice(0, 1_500).map((row) => [...row, 2n]));
    expect(calls).toBeGreaterThan(rows.length / 250);
  });
});

test('three hundred keys over a thousand rows take megabytes, not gigabytes', () => {
  const types: ColumnType[] = Array.from({ length: 300 }, () => 'integer');
  const rows = rowsOf(types, 500);
  const node = { kind: 'distinct', columns: columnsOf(types) } as unknown as DistinctNode;
  const execution = arrayExecution({ bytesMax: 64e6 });
  expect(drain(new DistinctOperator(new ArraySource(types, rows), node, execution), types).rows).toEqual(rows.slice(0, 500));
});
