import { expect, test } from 'vitest';
import type { Vector } from '../../../src/log/values/columns.ts';
import { GroupTable } from '../../../src/planner/operators/group-table.ts';

test('tables of many columns grow at different rows', () => {
  const columns = 60;
  const count = 128;
  const groups = new GroupTable(Array.from({ length: columns }, () => 'number' as const));
  let most = 0;
  for (let row = 0; row < 40_000; row += count) {
    const before = groups.bytes;
    const vectorOf = (c: number): Vector => ({
      kind: 'f64',
      values: Float64Array.from({ length: count }, (_, j) => (row + j) * (c + 1) + 0.123),
      nulls: null,
    });
    groups.assign({ columns: Array.from({ length: columns }, (_, c) => vectorOf(c)), selection: null, first: 0, count });
    if (row > 8_192) most = Math.max(most, (groups.bytes - before) / groups.bytes);
  }
  expect(groups.size).toBeGreaterThanOrEqual(40_000);
  // One column's are a sixtieth of all, and a few of them may meet.
  expect(most).toBeLessThan(0.06);
});
