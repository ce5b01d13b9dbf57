/** What `npm test` says of files that take more than test/durations.json allows them. */
import { describe, expect, test } from 'vitest';
import { paceFiles, paceOf, slowest, tooSlow, updated, withoutRow } from '../../scripts/durations.mjs';
import durations from '../durations.json' with { type: 'json' };

const rows = { 'a.test.ts': 1, 'b.test.ts': 40 };

describe('a file that takes more than its row', () => {
  test.each([
    ['twice and five seconds more', { 'a.test.ts': 6.1 }, ['a.test.ts']],
    ['not yet five seconds more', { 'a.test.ts': 5.9 }, []],
    ['five seconds more and not twice', { 'b.test.ts': 79 }, []],
    ['both', { 'b.test.ts': 81 }, ['b.test.ts']],
    ['nothing, for it was skipped', { 'b.test.ts': null }, []],
  ])('%s', (_, measured, expected) => {
    expect(tooSlow(rows, measured, 1).map(({ file }) => file)).toEqual(expected);
  });

  test.each([
    ['a slow machine', 2.5, { 'b.test.ts': 199 }, []],
    ['a slow machine, and a mistake', 2.5, { 'b.test.ts': 201 }, ['b.test.ts']],
    ['a slow machine, and a mistake in a small file', 2.5, { 'a.test.ts': 7.6 }, ['a.test.ts']],
    ['a fast machine, and a mistake', 0.5, { 'b.test.ts': 41 }, ['b.test.ts']],
  ])('%s', (_, pace, measured, expected) => {
    expect(tooSlow(rows, measured, pace).map(({ file }) => file)).toEqual(expected);
  });

  test('says how to take the new figure', () => {
    expect(tooSlow(rows, { 'b.test.ts': 99.96 }, 1.2)[0]!.line).toBe(
      'b.test.ts takes 100.0 CPU seconds; test/durations.json says 40, 48.0 at the pace of this run. ' +
        'Make it cheaper, or take the new figure: npm test -- --update-durations b.test.ts',
    );
  });
});

describe('the pace of a run', () => {
  test('is what its files take, by what their rows say', () => {
    expect(paceOf(rows, { 'a.test.ts': 2, 'b.test.ts': 80 })).toBe(2);
    expect(paceOf(rows, { 'a.test.ts': 3, 'b.test.ts': null, 'new.test.ts': 50 })).toBe(3);
  });

  test('is not told by the files that are asked about', () => {
    expect(paceOf(rows, { 'a.test.ts': 3, 'b.test.ts': 400 }, ['b.test.ts'])).toBe(3);
    expect(paceOf(rows, { 'b.test.ts': 400 }, ['b.test.ts'])).toBe(1);
  });

  test('is told by files that the table knows', () => {
    expect(paceFiles.filter((file) => (durations as Record<string, number>)[file] === undefined)).toEqual([]);
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
    expect(updated(rows, measured, false, 1)).toEqual({ 'a.test.ts': 1, 'c.test.ts': 0.3, 'skipped.test.ts': 0 });
    expect(updated(rows, measured, true, 1)).toEqual({ 'a.test.ts': 1, 'b.test.ts': 40, 'c.test.ts': 0.3, 'skipped.test.ts': 0 });
    expect(updated(rows, { 'a.test.ts': 2.1, 'b.test.ts': 51 }, true, 1)).toEqual({ 'a.test.ts': 2.1, 'b.test.ts': 51 });
  });

  test('holds what a run of another pace would take', () => {
    expect(updated(rows, { 'a.test.ts': 3, 'b.test.ts': 160, 'c.test.ts': 6 }, false, 2)).toEqual({
      'a.test.ts': 1,
      'b.test.ts': 80,
      'c.test.ts': 3,
    });
  });
});

test('the slowest come first', () => {
  expect(slowest({ 'a.test.ts': 1, 'b.test.ts': 40, 'c.test.ts': null }, 1)).toEqual(['   40.0  b.test.ts']);
});
