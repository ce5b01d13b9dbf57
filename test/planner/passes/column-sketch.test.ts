/** A sketch against the cells that it was made of: near the truth, and the same however they came. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Vector } from '../../../src/log/values/columns.ts';
import { type Cell, type ColumnType, compareText } from '../../../src/log/values/value.ts';
import { VectorBuilder } from '../../../src/log/values/vector-builder.ts';
import { ColumnSketch } from '../../../src/planner/passes/column-sketch.ts';
import { TextInterner } from '../../../src/planner/expressions/text-interner.ts';

const ROWS = 30_000;
const columns: Readonly<Record<string, { type: ColumnType; cell(i: number): Cell }>> = {
  city: { type: 'string', cell: (i) => (i % 10 === 0 ? null : `city ${(i * i) % 17}`) },
  key: { type: 'string', cell: (i) => `${((i * 7919) % ROWS).toString().padStart(6, '0')}` },
  few: { type: 'integer', cell: (i) => BigInt(i % 4 === 0 ? i % 1000 : 5) },
  wide: { type: 'integer', cell: (i) => 2n ** 62n - BigInt(i) },
  price: { type: 'number', cell: (i) => (i % 2 === 0 ? -0 : Math.sqrt(i)) },
  at: { type: 'timestamp', cell: (i) => 1_700_000_000_000_000_000n + BigInt(i) * 1_000_000n },
  flag: { type: 'boolean', cell: (i) => i % 5 === 0 },
};

const cellsOf = (name: string): Cell[] => Array.from({ length: ROWS }, (_, i) => columns[name]!.cell(i));

function built(type: ColumnType, cells: readonly Cell[]): Vector {
  const builder = new VectorBuilder(type);
  for (const cell of cells) builder.append(cell);
  return builder.build();
}

function sketched(type: ColumnType, cells: readonly Cell[], sizes: readonly number[] = [cells.length]): ColumnSketch {
  let sketch = new ColumnSketch();
  for (let from = 0, turn = 0; from < cells.length; turn++) {
    const part = cells.slice(from, from + sizes[turn % sizes.length]!);
    sketch.add(built(type, part), { selection: null, first: 0, count: part.length });
    from += part.length;
    // Goes on from what was finished before.
    if (turn % 3 === 0) sketch = new ColumnSketch(sketch.finish());
  }
  return sketch.finish();
}

/** All that a sketch can be asked. */
function told(sketch: ColumnSketch, cells: readonly Cell[]): unknown {
  const asked = cells.filter((cell, i) => cell !== null && i % 997 === 0);
  return [
    [sketch.rows, sketch.distinct, sketch.absentShare, sketch.equalShare()],
    asked.map((cell) => [sketch.equalShare(cell), sketch.rangeShare('<', cell), sketch.rangeShare('>=', cell)]),
  ];
}

const order = (a: Cell, b: Cell): number =>
  typeof a === 'string'
    ? compareText(a, b as string)
    : Number((a as bigint) > (b as bigint)) - Number((a as bigint) < (b as bigint));

describe.each(Object.keys(columns))('of %s', (name) => {
  const { type } = columns[name]!;
  const cells = cellsOf(name);
  const sketch = sketched(type, cells);
  const values = cells.filter((cell) => cell !== null);

  test('shares are near those of the rows', () => {
    expect(sketch.rows).toBe(ROWS);
    expect(sketch.absentShare).toBe((ROWS - values.length) / ROWS);
    const distinct = new Set(values.map((cell) => (typeof cell === 'bigint' ? Number(cell) : cell))).size;
    expect(Math.abs(sketch.distinct - distinct)).toBeLessThanOrEqual(distinct * 0.08);
    for (let i = 1; i < ROWS; i += 3001) {
      const cell = cells[i]!;
      if (cell === null) continue;
      const shares = (holds: (other: Cell) => boolean): number => values.filter(holds).length / ROWS;
      expect(Math.abs(sketch.equalShare(cell) - shares((other) => order(other, cell) === 0))).toBeLessThan(0.06);
      for (const op of ['<', '<=', '>', '>='] as const) {
        const truth = shares((other) => {
          const sign = order(other, cell);
          return op === '<' ? sign < 0 : op === '<=' ? sign <= 0 : op === '>' ? sign > 0 : sign >= 0;
        });
        // Cities begin alike: which comes first is not known, only how many there are.
        const off = name === 'city' ? 0.55 : name === 'wide' ? 0.12 : 0.06;
        expect(Math.abs(sketch.rangeShare(op, cell) - truth), `${op} ${String(cell)}`).toBeLessThan(off);
      }
    }
    expect(sketch.equalShare(null)).toBe(0);
  });

  test('rows that come in parts make the same one', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 1, maxLength: 6 }), (sizes) => {
        expect(told(sketched(type, cells, sizes), cells)).toEqual(told(sketch, cells));
      }),
      { numRuns: 8 },
    );
  });
});

test('codes, texts, widths and selections make no difference', () => {
  const texts = cellsOf('city');
  const dictionary = new TextInterner();
  const other = new TextInterner();
  // Another order of codes.
  for (let i = 16; i >= 0; i--) other.ofText(`city ${i}`);
  const coded = (texts: readonly Cell[], into: TextInterner): Vector => ({
    kind: 'dict',
    values: Int32Array.from(texts, (text) => (text === null ? 0 : into.ofText(text as string))),
    dictionary: into,
    nulls: Uint8Array.from(texts, (text) => Number(text === null)),
  });
  const spelled = told(sketched('string', texts), texts);
  for (const each of [dictionary, other]) {
    const sketch = new ColumnSketch();
    sketch.add(coded(texts, each), { selection: null, first: 0, count: ROWS });
    expect(told(sketch, texts)).toEqual(spelled);
  }
  const integers = cellsOf('few');
  const narrow = Int32Array.from(integers, Number);
  for (const vector of [
    { kind: 'i32', values: narrow, nulls: null },
    { kind: 'f64', values: Float64Array.from(narrow), nulls: null },
    { kind: 'i64', values: BigInt64Array.from(integers as bigint[]), nulls: null },
  ] satisfies Vector[]) {
    const sketch = new ColumnSketch();
    sketch.add(vector, { selection: null, first: 0, count: 1000 });
    sketch.add(vector, {
      selection: Int32Array.from({ length: ROWS - 1000 }, (_, i) => i + 1000),
      first: 1000,
      count: ROWS - 1000,
    });
    expect(told(sketch, integers)).toEqual(told(sketched('integer', integers), integers));
  }
});

test('a value that no row of few has is in none of them; nothing is in no rows at all', () => {
  const few = sketched('string', ['a', 'b', null, 'a']);
  expect([few.equalShare('a'), few.equalShare('c'), few.rangeShare('<', 'b'), few.distinct]).toEqual([0.5, 0, 0.5, 2]);
  const none = new ColumnSketch();
  expect([none.equalShare('a'), none.equalShare(), none.rangeShare('<', 1), none.absentShare]).toEqual([0, 0, 0, 0]);
});
