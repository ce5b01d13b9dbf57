/** Keys of one side of a join told to the other: the rows that they leave are those that have one, in every layout of either side. */
import { expect, test } from 'vitest';
import type { Vector } from '../../../src/log/values/columns.ts';
import { VectorBuilder } from '../../../src/log/values/vector-builder.ts';
import { KeyFilter, NarrowedOperator } from '../../../src/planner/operators/key-filter.ts';
import type { Batch } from '../../../src/planner/operators/operator.ts';
import { seedBase } from '../../runner/seed.ts';
import { Choices } from '../generator/random.ts';

type Kind = 'i32' | 'i64' | 'f64';

function vectorOf(kind: Kind, cells: readonly (number | null)[]): Vector {
  const nulls = cells.includes(null) ? Uint8Array.from(cells, (cell) => (cell === null ? 1 : 0)) : null;
  const numbers = cells.map((cell) => cell ?? 7);
  if (kind === 'i32') return { kind, values: Int32Array.from(numbers), nulls };
  if (kind === 'f64') return { kind, values: Float64Array.from(numbers), nulls };
  return { kind, values: BigInt64Array.from(numbers, (number) => BigInt(Math.trunc(number))), nulls };
}

test('leaves the rows whose key is among those told', () => {
  let left = 0;
  for (let round = 0; round < 400; round++) {
    const choices = new Choices(seedBase, 0x6e_11, round);
    const kindOf = (): Kind => choices.of(['i32', 'i64', 'f64'] as const);
    const [told, asked] = [kindOf(), kindOf()];
    const far = choices.chance(10) && told !== 'i32' && asked !== 'i32' ? 2 ** 40 : 1;
    const base = far > 1 ? 0 : choices.of([0, -50, 2 ** 31 - 60, -(2 ** 31)]);
    const range = choices.of([5, 40, 59]);
    const cell = (kind: Kind): number | null => {
      if (choices.chance(10)) return null;
      const whole = (base + choices.below(range)) * far;
      return kind === 'f64' && choices.chance(15) ? whole + 0.5 : whole;
    };
    const keys = Array.from({ length: choices.below(30) }, () => cell(told === 'f64' && choices.chance(70) ? 'i64' : told));
    const cells = Array.from({ length: choices.between(1, 200) }, () => cell(asked));
    const filter = new KeyFilter();
    Array.from(filter.take(vectorOf(told, keys), keys.length));
    const first = choices.below(cells.length);
    const rows = Array.from({ length: cells.length - first }, (_, i) => first + i);
    const selected = choices.chance(50) ? rows.filter(() => choices.chance(60)) : null;
    const batch: Batch = {
      columns: [vectorOf(asked, cells)],
      selection: selected && Int32Array.from(selected),
      first,
      count: (selected ?? rows).length,
    };
    const input = { next: () => batch, close: () => undefined };
    const found = new NarrowedOperator(input, [{ column: 0, filter }]).next()!;
    const kept = Array.from({ length: found.count }, (_, i) => (found.selection ? found.selection[i]! : found.first + i));
    const has = (row: number): boolean => {
      const value = cells[row]!;
      return value !== null && keys.includes(asked === 'i64' ? Math.trunc(value) : value);
    };
    const wanted = (selected ?? rows).filter(has);
    // All that belong are there, in their order; what is there besides lies between the keys.
    expect(kept.filter(has)).toEqual(wanted);
    const isTold = filter.isSet;
    expect(isTold).toBe(keys.every((key) => key === null || Number.isInteger(key)));
    if (isTold) for (const row of kept) expect(cells[row]).not.toBeNull();
    left += (selected ?? rows).length - kept.length;
  }
  expect(left).toBeGreaterThan(5_000);
});

test('tells nothing of texts, and nothing to them', () => {
  const filter = new KeyFilter();
  Array.from(filter.take({ kind: 'text', offsets: new Uint32Array([0, 1]), heap: new Uint8Array([65]), nulls: null }, 1));
  expect(filter.isSet).toBe(false);
  Array.from(filter.take(vectorOf('i32', [1, 2]), 2));
  expect(filter.judges({ kind: 'text', offsets: new Uint32Array([0, 1]), heap: new Uint8Array([65]), nulls: null })).toBe(false);
  expect(filter.judges(vectorOf('f64', [1]))).toBe(true);
});

test('few keys are told as texts for a look-up each, once; many, or of many rows, are not', () => {
  const asked = (vector: Vector, count: number): readonly string[] | null => {
    const filter = new KeyFilter();
    expect(filter.lookUps()).toBeNull();
    Array.from(filter.take(vector, count));
    const told = filter.lookUps();
    expect(filter.lookUps()).toBeNull();
    return told;
  };
  const texts = (cells: readonly string[]): Vector => {
    const builder = new VectorBuilder('string', cells.length);
    for (const cell of cells) builder.append(cell);
    return builder.build();
  };
  const own = { size: 3, text: (code: number) => ['a', 'ä', ''][code]!, codeOf: () => -1 };
  const dict: Vector = {
    kind: 'dict',
    dictionary: own,
    values: Int32Array.from([1, 2, 1, 0, 1]),
    nulls: Uint8Array.of(0, 0, 0, 1, 0),
  };
  expect(asked(dict, 5)).toEqual(['ä', '']);
  expect(asked(texts(['b', 'räksmörgås', 'b']), 3)).toEqual(['b', 'räksmörgås']);
  expect(asked(vectorOf('i32', [3, null, -7, 3]), 4)).toEqual(['3', '-7']);
  expect(asked(vectorOf('i64', [2 ** 53]), 1)).toEqual(['9007199254740992']);
  expect(asked(vectorOf('f64', [1]), 1)).toBeNull();
  expect(asked({ kind: 'null' }, 9)).toEqual([]);
  const numbers = Array.from({ length: 1_025 }, (_, i) => String(i));
  expect(asked(texts(numbers.slice(1)), 1_024)).toHaveLength(1_024);
  expect(asked(texts(numbers), 1_025)).toBeNull();
  expect(asked(texts(Array.from({ length: 8_193 }, () => 'x')), 8_193)).toBeNull();
});
