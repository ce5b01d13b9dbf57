import { expect, test } from 'vitest';
import { parseExactJson } from '../src/doors/shared/read-exact-json.ts';
import { Progress, type ProgressTarget } from '../src/cli/progress.ts';
import { renderTable } from '../src/cli/text-table.ts';

test('integers beyond a double come out exact, digits inside strings stay text', () => {
  const text =
    '{"a":9223372036854775807,"b":-9223372036854775808,"c":1.5,"d":"x \\"9223372036854775807","e":1234567890123456e5,"f":[1],"g":0.2876820724517809}';
  expect(parseExactJson(text)).toEqual({
    a: 9_223_372_036_854_775_807n,
    b: -9_223_372_036_854_775_808n,
    c: 1.5,
    d: 'x "9223372036854775807',
    e: 123_456_789_012_345_600_000,
    f: [1],
    g: 0.287_682_072_451_780_9,
  });
});

test('a table shows instants as text, forever as a word, null as nothing, long text cut', () => {
  const text = renderTable(
    ['name', 'valid_from', 'valid_to'],
    [{ name: 'x'.repeat(60), valid_from: 1_000_000_000n, valid_to: 9_223_372_036_854_775_807n }, { name: null }],
  );
  expect(text).toBe(
    [
      `name${' '.repeat(44)}  valid_from            valid_to`,
      `${'-'.repeat(48)}  --------------------  --------`,
      `${'x'.repeat(47)}…  1970-01-01T00:00:01Z  forever`,
      '',
      '',
    ].join('\n'),
  );
});

test('progress is silent for a second, draws on a terminal, and leaves one line', () => {
  let ms = 0;
  const written: string[] = [];
  const target: ProgressTarget = { isTTY: true, columns: 80, write: (text) => written.push(text) };
  const clock = { now: () => 0n, monotonicMs: () => ms, sleep: () => Promise.resolve() };
  const progress = new Progress('replay', clock, target);
  progress.update(10, 100, 'entries');
  expect(written).toEqual([]);
  ms = 2000;
  progress.update(50, 100, 'entries');
  expect(written.join('')).toContain('replay [############............] 50 % 50 entries, 25/s, 2 s left');
  progress.finish(100, 'entries');
  expect(written.at(-1)).toBe('replay: 100 entries in 2.0 s\n');
});
