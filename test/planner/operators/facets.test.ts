/** Facets against a plain count of the rows. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Cell, type ColumnType, compareText } from '../../../src/log/values/value.ts';
import { FacetCounter, facetRowsMax } from '../../../src/planner/operators/facets.ts';
import { MemoryMeter } from '../../../src/planner/operators/operator.ts';
import type { Facets } from '../../../src/planner/planner-contract.ts';
import { ArraySource, type CellRow, type Layout, plainLayout } from '../execution/array-source.ts';

function facetsOf(types: readonly ColumnType[], rows: readonly CellRow[], layout: Layout = plainLayout, bytesMax = 1e9): Facets {
  const counter = new FacetCounter(
    types.map((type, i) => ({ name: `c${i}`, type })),
    new MemoryMeter(bytesMax),
  );
  const source = new ArraySource(types, rows, layout);
  for (let batch = source.next(); batch !== null; batch = source.next()) if (!counter.add(batch)) break;
  const work = counter.finish();
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

const cells = {
  integer: fc.constantFrom<Cell>(0n, 7n, -7n, 70_000n, 2n ** 53n + 1n, 2n ** 63n - 1n, null),
  number: fc.constantFrom<Cell>(0, 1.5, 0.1, -1e21, null),
  string: fc.constantFrom<Cell>('', 'a', '\u{1F600}', '\uffee', 'true', null),
  boolean: fc.constantFrom<Cell>(true, false, null),
  timestamp: fc.constantFrom<Cell>(1_700_000_000_000_000_001n, null),
} as const;
const layout: fc.Arbitrary<Layout> = fc.record({
  blockRows: fc.integer({ min: 1, max: 7 }),
  sparse: fc.boolean(),
  text: fc.constantFrom('shared', 'per block', 'plain'),
  wide: fc.boolean(),
});

describe('FACETS', () => {
  test.each(Object.keys(cells) as (keyof typeof cells)[])(
    'counts %s values, the most frequent first, then by codepoint',
    (type) => {
      fc.assert(
        fc.property(fc.array(fc.tuple(cells[type]), { maxLength: 40 }), layout, (rows, how) => {
          const present = rows.flatMap(([cell]) => (cell === null ? [] : [cell]));
          const wanted = new Map<string, number>();
          for (const cell of present) wanted.set(String(cell), (wanted.get(String(cell)) ?? 0) + 1);
          const sorted = [...wanted].sort(([a, n], [b, m]) => m - n || compareText(a, b));
          const { counts, stats } = facetsOf([type], rows, how);
          expect([...counts.get('c0')!]).toEqual(sorted);
          if ((type !== 'integer' && type !== 'number') || present.length === 0) {
            expect(stats.size).toBe(0);
            return;
          }
          const ordered = [...(present as number[])].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
          const sum = (present as number[]).reduce((total, each) => total + each, (type === 'integer' ? 0n : 0) as number);
          expect(stats.get('c0')).toEqual({
            min: ordered[0],
            max: ordered.at(-1),
            sum,
            avg: Number(sum) / present.length,
            count: present.length,
          });
        }),
        { numRuns: 200 },
      );
    },
  );

  test('counts the first hundred thousand rows, every one of them', () => {
    const rows: CellRow[] = Array.from({ length: facetRowsMax + 5_000 }, (_, i) => [BigInt(i)]);
    const { counts, stats } = facetsOf(['integer'], rows, { ...plainLayout, blockRows: 7_000 });
    expect(counts.get('c0')!.size).toBe(facetRowsMax);
    expect(stats.get('c0')).toMatchObject({ max: BigInt(facetRowsMax - 1), count: facetRowsMax });
  });

  test('meters its values, and refuses sums that no double holds', () => {
    const rows: CellRow[] = Array.from({ length: 20_000 }, (_, i) => [`value ${i}`]);
    expect(() => facetsOf(['string'], rows, plainLayout, 300_000)).toThrow('bytes of memory');
    expect(() => facetsOf(['number'], [[1e308], [1e308]])).toThrow('number overflow');
  });
});
