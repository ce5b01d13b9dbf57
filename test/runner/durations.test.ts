/** What `npm test` says of files that take more than test/durations.json allows them. */
import { describe, expect, test } from 'vitest';
import { slowest, tooSlow, updated, withoutRow } from '../../scripts/durations.mjs';

const rows = { 'a.test.ts': 1, 'b.test.ts': 40 };

describe('a file that takes more than its row', () => {
  test.each([
    ['twice and five seconds more', { 'a.test.ts': 6.1 }, ['a.test.ts']],
    ['not yet five seconds more', { 'a.test.ts': 5.9 }, []],
    ['five seconds more and not twice', { 'b.test.ts': 79 }, []],
    ['both', { 'b.test.ts': 81 }, ['b.test.ts']],
    ['nothing, for it was skipped', { 'b.test.ts': null }, []],
  ])('%s', (_, measured, expected) => {
    expect(tooSlow(rows, measured).map(({ file }) => file)).toEqual(expected);
  });

  test('says how to take the new figure', () => {
    expect(tooSlow(rows, { 'b.test.ts': 99.96 })[0]!.line).toBe(
      'b.test.ts takes 100.0 CPU seconds; test/durations.json says 40. ' +
        'Make it cheaper, or take the new figure: npm test -- --update-durations b.test.ts',
    );
  });
});

describe('a table that is not of these files', () => {
  test('lacks a row', () => {
    expect(withoutRow(rows, ['a.test.ts', 'b.test.ts', 'c.test.ts'])).toEqual([
      'c.test.ts has no row in test/durations.json. Add it: npm test -- --update-durations c.test.ts',
    ]);
  });

  test('has one too many', () => {
    expect(withoutRow(rows, ['a.test.ts'])).toEqual([
      'test/durations.json has a row of b.test.ts, which is gone: remove the row',
    ]);
  });

  test('is brought up to date, and rows that are about right stay', () => {
    const measured = { 'c.test.ts': 0.26, 'a.test.ts': 1.9, 'skipped.test.ts': null };
    expect(updated(rows, measured, false)).toEqual({ 'a.test.ts': 1, 'c.test.ts': 0.3, 'skipped.test.ts': 0 });
    expect(updated(rows, measured, true)).toEqual({ 'a.test.ts': 1, 'b.test.ts': 40, 'c.test.ts': 0.3, 'skipped.test.ts': 0 });
    expect(updated(rows, { 'a.test.ts': 2.1, 'b.test.ts': 51 }, true)).toEqual({ 'a.test.ts': 2.1, 'b.test.ts': 51 });
  });
});

test('the slowest come first', () => {
  expect(slowest({ 'a.test.ts': 1, 'b.test.ts': 40, 'c.test.ts': null }, 1)).toEqual(['   40.0  b.test.ts']);
});
