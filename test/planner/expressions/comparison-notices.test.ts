import { expect, test } from 'vitest';
import { caveatsOf } from '../../../src/planner/expressions/comparison-notices.ts';

test('a hundred caveats are told, and no place is looked for beyond them', () => {
  let looks = 0;
  const placeOf = (slot: number) => ({ line: ++looks, column: slot });
  const caveats = Array.from({ length: 50_000 }, (_, slot) => ({ kind: 'null', slot }) as const);
  expect(caveatsOf(caveats, [], placeOf)).toHaveLength(100);
  expect(looks).toBe(100);
});
