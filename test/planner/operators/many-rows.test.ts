/** What operators do otherwise where there are many rows: sorting by digits, finding rows by the numbers of their keys. */
import { expect, test } from 'vitest';
import type { Vector } from '../../../src/log/values/columns.ts';
import type { SortKey } from '../../../src/planner/logical-plan.ts';
import { NumberedRows } from '../../../src/planner/operators/composite-key-index.ts';
import { sortedRows } from '../../../src/planner/operators/row-sort.ts';
import { seedBase } from '../../runner/seed.ts';
import { Choices } from '../generator/random.ts';

function finished<T>(work: Generator<undefined, T, void>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

type Column = Exclude<Vector, { kind: 'null' | 'text' | 'dict' | 'vec' }>;

function column(choices: Choices, rows: number, kinds: readonly ('i32' | 'i64' | 'f64' | 'bool' | 'rising')[]): Column {
  const spread = choices.of([2, 10, 10_000, 2 ** 31]);
  const integer = (): number => choices.below(spread) - (spread >>> 1);
  const nulls = choices.chance(25) ? Uint8Array.from({ length: rows }, () => (choices.chance(10) ? 1 : 0)) : null;
  const length = rows;
  const scale = choices.of([1n, 2n ** 31n]);
  switch (choices.of(kinds)) {
    case 'i32':
      return { kind: 'i32', values: Int32Array.from({ length }, integer), nulls };
    case 'i64':
      return { kind: 'i64', values: BigInt64Array.from({ length }, () => BigInt(integer()) * scale + 5n), nulls };
    case 'f64': {
      const halves = choices.chance(50) ? 2 : 1;
      return { kind: 'f64', values: Float64Array.from({ length }, () => (choices.chance(10) ? -0 : integer() / halves)), nulls };
    }
    case 'bool':
      return { kind: 'bool', values: Uint8Array.from({ length }, () => choices.below(2)), nulls };
    case 'rising':
      return { kind: 'i64', values: BigInt64Array.from({ length }, (_, row) => BigInt(row) * 1_000_000_000n), nulls };
  }
}

test('rows sorted by digits stand where comparing puts them, ties in their order', () => {
  for (let round = 0; round < 60; round++) {
    const choices = new Choices(seedBase, round);
    const rows = choices.between(2_048, 5_000);
    const vectors = Array.from({ length: choices.between(1, 4) }, () =>
      column(choices, rows, ['i32', 'i64', 'f64', 'bool', 'rising']),
    );
    const keys = vectors.map(
      (_, at): SortKey => ({ column: at, descending: choices.chance(50), collate: 'codepoint', nullsFirst: choices.chance(30) }),
    );
    const compare = (a: number, b: number): number => {
      for (const [k, { values, nulls }] of vectors.entries()) {
        const { descending, nullsFirst } = keys[k]!;
        const [x, y] = [nulls?.[a] ?? 0, nulls?.[b] ?? 0];
        if (x !== y) return nullsFirst ? y - x : x - y;
        if (x === 1 || values[a] === values[b]) continue;
        return values[a]! < values[b]! === descending ? 1 : -1;
      }
      return a - b;
    };
    const expected = Int32Array.from({ length: rows }, (_, row) => row).sort(compare);
    expect(finished(sortedRows(vectors, keys, rows)), `round ${round}`).toEqual(expected);
  }
});

/** Equal cells of all layouts have one key; null where nothing equals the cell. */
function keyOf({ values, nulls }: Column, row: number): number | null {
  if (nulls?.[row] === 1) return null;
  const value = values[row]!;
  const double = Number(value) + 0;
  return typeof value === 'bigint' && BigInt(double) !== value ? null : double;
}

test('rows are found by one number or several, in any layout, as comparing them finds them', () => {
  const met = { found: 0, shared: 0, unique: 0 };
  for (let round = 0; round < 100; round++) {
    const choices = new Choices(seedBase, 1_000 + round);
    const [rows, asked, width] = [choices.between(0, 3_000), 2_000, choices.between(0, 3)];
    const held = Array.from({ length: width }, () => column(choices, rows, ['i32', 'f64', 'i64', 'rising']));
    // Another layout of rows that are there, or others.
    const known = rows > 0 && choices.chance(70) ? Int32Array.from({ length: asked }, () => choices.below(rows)) : null;
    const probes = held.map((own): Column => {
      if (known === null) return column(choices, asked, ['i32', 'f64', 'i64']);
      const values = Float64Array.from(known, (row) => (choices.chance(10) ? choices.below(9) / 2 : Number(own.values[row]!)));
      return { kind: 'f64', values, nulls: null };
    });
    const types = held.map(() => 'number' as const);
    const index = finished(NumberedRows.build(types, held, rows));
    const lists = new Map<string, number[]>();
    const nameOf = (columns: readonly Column[], row: number): string | null => {
      const keys = columns.map((each) => keyOf(each, row));
      return keys.includes(null) ? null : keys.join(' ');
    };
    for (let row = 0; row < rows; row++) {
      const name = nameOf(held, row);
      if (name === null) continue;
      const list = lists.get(name);
      if (list) list.push(row + 1);
      else lists.set(name, [row + 1]);
    }
    const found = new Int32Array(asked);
    index.find(probes, { columns: probes, selection: null, first: 0, count: asked }, found);
    for (let j = 0; j < asked; j++) {
      const name = nameOf(probes, j);
      const expected = name === null ? undefined : lists.get(name);
      let at = 0;
      // Without keys each row asks for all the others: the first few will do.
      for (let row = found[j]!; row !== 0 && at <= 20; row = index.following[row - 1]!, at++)
        if (row !== expected?.[at]) expect(row, `round ${round}, row ${j}`).toBe(expected?.[at]);
      if (at <= 20 && at !== (expected?.length ?? 0)) expect(at, `round ${round}, row ${j}`).toBe(expected?.length ?? 0);
      if (at > 0) met.found++;
    }
    const isShared = [...lists.values()].some((list) => list.length > 1);
    expect(index.unique, `round ${round}`).toBe(!isShared);
    met[isShared ? 'shared' : 'unique']++;
  }
  for (const count of Object.values(met)) expect(count).toBeGreaterThan(5);
});

test('as many rows as the range of an integer key has numbers are found in any order', () => {
  const rowsFound = (values: readonly number[]): readonly number[] => {
    const key: Column = { kind: 'i32', values: Int32Array.from(values), nulls: null };
    const index = finished(NumberedRows.build(['integer'], [key], values.length));
    const found = new Int32Array(3);
    const asked: Column = { kind: 'i32', values: Int32Array.of(5, 6, 7), nulls: null };
    index.find([asked], { columns: [asked], selection: null, first: 0, count: 3 }, found);
    return [...found];
  };
  expect(rowsFound([7, 5, 6])).toEqual([2, 3, 1]);
  expect(rowsFound([5, 5, 7])).toEqual([1, 0, 3]);
});
