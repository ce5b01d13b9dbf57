/** Values to numbers in order of first appearance, while the table grows a few values at a time. */
import { expect, test } from 'vitest';
import { valueNumbers } from '../../../src/planner/operators/value-numbers.ts';
import { Seeded } from '../../simulation/seeded.ts';

const batch = 1_000;

test('every value keeps the number that it got first, at every size of the table', () => {
  const numbers = valueNumbers('integer');
  const known = new Map<bigint, number>();
  const random = new Seeded(11);
  const met: bigint[] = [];
  const out = new Int32Array(batch);
  for (let round = 0; round < 400; round++) {
    const values = BigInt64Array.from({ length: batch }, () =>
      met.length > 0 && random.below(4) === 0 ? met[random.below(met.length)]! : -BigInt(random.below(2 ** 30)) * 1_000_003n - 1n,
    );
    const rows = { columns: [], selection: null, first: 0, count: batch };
    numbers.assign({ kind: 'i64', values, nulls: null }, rows, out);
    for (const [j, value] of values.entries()) {
      if (!known.has(value)) {
        known.set(value, known.size + 1);
        met.push(value);
      }
      if (out[j] !== known.get(value)) expect(value).toBe('numbered as before');
    }
  }
  expect(numbers.size).toBe(known.size);
  expect(known.size).toBeGreaterThan(250_000);
  const every = BigInt64Array.from(met);
  const found = new Int32Array(met.length);
  numbers.assign(
    { kind: 'i64', values: every, nulls: null },
    { columns: [], selection: null, first: 0, count: met.length },
    found,
  );
  expect(found.every((number, i) => number === i + 1)).toBe(true);
});
