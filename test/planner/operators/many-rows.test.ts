/** What operators do otherwise where there are many rows: sorting by digits, looking up several integers as one number. */
import { expect, test } from 'vitest';
import type { Vector } from '../../../src/log/values/columns.ts';
import type { SortKey } from '../../../src/planner/logical-plan.ts';
import { CombinedIntegers } from '../../../src/planner/operators/combined-integers.ts';
import { NumberedRows } from '../../../src/planner/operators/numbered-rows.ts';
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

test('integers that are one number find the rows that they find one by one', () => {
  let combined = 0;
  // About one round in eight has columns that fit into one number.
  for (let round = 0; combined < 8 && round < 2_000; round++) {
    const choices = new Choices(seedBase, 1_000 + round);
    const [rows, asked, width] = [choices.between(0, 3_000), 2_000, choices.between(2, 3)];
    const held = Array.from({ length: width }, () => column(choices, rows, ['i32', 'f64', 'i64']));
    // Another layout of the same values, or others.
    const probes = held.map((own) =>
      rows > 0 && choices.chance(70)
        ? {
            kind: 'f64' as const,
            values: Float64Array.from({ length: asked }, () => Number(own.values[choices.below(rows)]!)),
            nulls: null,
          }
        : column(choices, asked, ['i32', 'f64', 'i64']),
    );
    const index = finished(CombinedIntegers.build(held, rows));
    if (!index) continue;
    combined++;
    const other = finished(
      NumberedRows.build(
        Array.from({ length: width }, () => 'number' as const),
        held,
        rows,
      ),
    );
    const batch = { columns: probes, selection: null, first: 0, count: asked };
    const [found, expected] = [new Int32Array(asked), new Int32Array(asked)];
    index.find(probes, batch, found);
    other.find(probes, batch, expected);
    expect(found, `round ${round}`).toEqual(expected);
    expect([...index.following].filter((next) => next !== 0).length > 0).toBe(!index.unique);
    for (const head of new Set(found)) {
      for (let one = head, two = head; one !== 0; one = index.following[one - 1]!, two = other.following[two - 1]!)
        expect(one).toBe(two);
    }
  }
  expect(combined).toBe(8);
});
