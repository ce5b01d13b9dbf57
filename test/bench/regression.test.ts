/** The bench's own check: what fell is named, what got better is not, and what is committed can be checked at all. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { type Aim, aimNames, aims, isMet } from '../../bench/goals.ts';
import { accept, fallen, ratiosFile, readAccepted } from '../../bench/regression.ts';
import { geometricMean, quotient, summary } from '../../bench/report.ts';

const directory = mkdtempSync(join(tmpdir(), 'annals-ratios-'));
const file = join(directory, 'ratios.json');
afterEach(() => rmSync(file, { force: true }));
afterAll(() => rmSync(directory, { recursive: true }));

const accepted = {
  'bulk-ingest.copy': { accepted: 2, tolerance: 0.25 },
  'as-of-head.share': { accepted: 1, tolerance: 0.2 },
};

test('a ratio falls when it is worse than accepted by more than its tolerance, in the direction in which worse lies', () => {
  const ran = ['bulk-ingest', 'as-of-head'];
  const lines = (copy: number, head: number): string[] =>
    fallen(new Map([['bulk-ingest.copy', copy] as const, ['as-of-head.share', head] as const]), accepted, ran);
  expect(lines(2, 1)).toEqual([]);
  expect(lines(1.51, 1.19)).toEqual([]);
  expect(lines(9, 0.1)).toEqual([]);
  expect(lines(1.49, 1)).toEqual([expect.stringMatching(/^bulk-ingest\.copy: 1\.490 is below 1\.500/)]);
  expect(lines(2, 1.21)).toEqual([expect.stringMatching(/^as-of-head\.share: 1\.210 is above 1\.200/)]);
  expect(lines(0.1, 9)).toHaveLength(2);
  // What is not a number is no success.
  expect(lines(Number.NaN, 1)).toHaveLength(1);
});

test('a ratio that was not found though its measure ran fell too; one whose measure did not run is left alone', () => {
  expect(fallen(new Map([['bulk-ingest.copy', 2]]), accepted, ['bulk-ingest', 'as-of-head'])).toEqual([
    'as-of-head.share: was not found in this run',
  ]);
  expect(fallen(new Map([['bulk-ingest.copy', 2]]), accepted, ['bulk-ingest'])).toEqual([]);
});

test('a ratio that nobody accepted fails until somebody does', () => {
  const found = new Map([['history.scan-random', 1.1]] as const);
  expect(fallen(found, {}, ['history'])).toHaveLength(1);
  writeFileSync(file, '{"quick":{},"full":{"bulk-ingest.copy":{"accepted":2,"tolerance":0.1}}}');
  accept(found, 'full', file);
  expect(fallen(found, readAccepted(file).full, ['history'])).toEqual([]);
  expect(readAccepted(file).full['bulk-ingest.copy']).toEqual({ accepted: 2, tolerance: 0.1 });
  expect(readAccepted(file).quick).toEqual({});
  accept(new Map([['bulk-ingest.copy', 3.14159]]), 'full', file);
  expect(readAccepted(file).full['bulk-ingest.copy']).toEqual({ accepted: 3.14, tolerance: 0.1 });
});

test('what is committed names ratios of this bench, with tolerances that something can exceed', () => {
  const names = new Set<string>(aimNames);
  for (const [size, ratios] of Object.entries(readAccepted(ratiosFile))) {
    for (const [name, { accepted: value, tolerance }] of Object.entries(ratios)) {
      expect(names.has(name), `${size} ${name}`).toBe(true);
      const aim: Aim = aims[name as keyof typeof aims];
      expect(aim.unit, name).toBe('x');
      expect(value, name).toBeGreaterThan(0);
      expect(tolerance, name).toBeGreaterThan(0);
      if (aim.better === 'larger') expect(tolerance, `${name} could fall to nothing`).toBeLessThan(0.9);
    }
  }
});

test('a goal is met on its own side, and a spread of ratios is that of the least lucky pairs', () => {
  expect(isMet(aims['bulk-ingest.copy'], 1.5)).toBe(true);
  expect(isMet(aims['bulk-ingest.copy'], 1.49)).toBe(false);
  expect(isMet(aims['start.saved'], 2.1)).toBe(false);
  expect(isMet(aims['start.share'], 9)).toBeNull();
  expect(summary([3, 1, 2, 10])).toEqual({ median: 2.5, min: 1, max: 10 });
  expect(quotient([2, 4, 6], [1, 2, 4])).toEqual({ median: 2, min: 0.5, max: 6 });
  expect(geometricMean([quotient([1], [2]), quotient([8], [1])]).median).toBeCloseTo(2, 12);
});
