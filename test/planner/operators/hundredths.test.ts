/** Numbers of doubles are given in order of first appearance, whether a value is found by its place or by its hash. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { valueNumbers } from '../../../src/planner/operators/value-numbers.ts';

const doubles = fc.oneof(
  fc.integer({ min: -300, max: 30_000 }).map((n) => n / 100),
  // Near a hundredth, and none.
  fc.integer({ min: 1, max: 3_000 }).map((n) => (n / 100) * (1 + Number.EPSILON)),
  fc.integer({ min: 0, max: 20_000_000 }).map((n) => n / 100),
  fc.integer({ min: 0, max: 3_000 }).map((n) => n / 1000),
  fc.constantFrom(-0, 0, 0.005, 1e300, -1e-300, 5e-324, 2 ** 53, 655.36, 167_772.15, 167_772.16),
);

test('doubles have the numbers that a plain map gives them', () => {
  fc.assert(
    fc.property(fc.array(fc.array(doubles, { minLength: 1, maxLength: 400 }), { minLength: 1, maxLength: 12 }), (blocks) => {
      const numbers = valueNumbers('number');
      const known = new Map<number, number>();
      for (const block of blocks) {
        const values = Float64Array.from(block);
        const vector = { kind: 'f64', values, nulls: null } as const;
        const batch = { columns: [vector], selection: null, first: 0, count: block.length };
        const found = new Int32Array(block.length);
        numbers.find(vector, batch, found);
        expect([...found]).toEqual(block.map((value) => known.get(value) ?? 0));
        numbers.assign(vector, batch, found);
        for (const value of block) if (!known.has(value)) known.set(value, known.size + 1);
        expect([...found]).toEqual(block.map((value) => known.get(value)));
        numbers.find(vector, batch, found);
        expect([...found]).toEqual(block.map((value) => known.get(value)));
      }
      expect(numbers.size).toBe(known.size);
    }),
    { numRuns: 150 },
  );
});

test('many amounts: the table grows, and those that came before it reached them stay what they were', () => {
  const values = Float64Array.from({ length: 300_000 }, (_, i) => ((i * 104_729) % 150_000) / 100);
  const numbers = valueNumbers('number');
  const out = new Int32Array(8_192);
  for (let first = 0; first < values.length; first += 8_192) {
    const count = Math.min(8_192, values.length - first);
    const vector = { kind: 'f64', values, nulls: null } as const;
    numbers.assign(vector, { columns: [vector], selection: null, first, count }, out);
    for (let j = 0; j < count; j += 61) expect(out[j]).toBe(((first + j) % 150_000) + 1);
  }
  expect(numbers.size).toBe(150_000);
});
