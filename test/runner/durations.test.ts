/** What `npm run durations` says of files that take more than their rows of test/durations.json. */
import { expect, test } from 'vitest';
import { grown, paceOf, slowest, updated } from '../../scripts/durations.mjs';

const rows = { 'a.test.ts': 1, 'b.test.ts': 40 };

test('the pace of a run is what its files take, divided by their rows', () => {
  expect(paceOf(rows, { 'a.test.ts': 2, 'b.test.ts': 80 })).toBe(2);
  expect(paceOf(rows, { 'a.test.ts': 3, 'b.test.ts': null, 'new.test.ts': 50 })).toBe(3);
  expect(paceOf(rows, {})).toBe(1);
});

test('files that grew most come first, measured at the pace of the run; others are left out', () => {
  const even = { 'a.test.ts': 2, 'b.test.ts': 80 };
  expect(grown(rows, even, 10)).toEqual([]);
  expect(grown(rows, { ...even, 'a.test.ts': 12, 'new.test.ts': 50 }, 10)).toEqual([
    '   50.0  new.test.ts, a new file',
    '   12.0  a.test.ts, 2.2 by its row',
  ]);
});

test('the table is brought up to date at the pace of the run, and rows that are about right stay', () => {
  expect(updated(rows, { 'c.test.ts': 0.3, 'a.test.ts': 11, 'b.test.ts': 30, 'skipped.test.ts': null })).toEqual({
    'a.test.ts': 11,
    'b.test.ts': 40,
    'c.test.ts': 0.3,
    'skipped.test.ts': 0,
  });
});

test('the slowest come first', () => {
  expect(slowest({ 'a.test.ts': 1, 'b.test.ts': 40, 'c.test.ts': null }, 1)).toEqual(['   40.0  b.test.ts']);
});
