import { describe, expect, test } from 'vitest';
import { intervalNanoseconds } from '../../../src/planner/expressions/interval-literal.ts';

describe('rule 6: intervals', () => {
  const day = 86_400_000_000_000n;

  test.each([
    ['1 days', day],
    ['1 day', day],
    ['36 hours', (day * 3n) / 2n],
    ['90 minutes', day / 16n],
    ['2 weeks', 14n * day],
    ['1 months', 30n * day],
    ['1 YEARS', 365n * day],
    [' 10  seconds ', 10_000_000_000n],
    ['0 days', 0n],
  ])('%j', (text, expected) => expect(intervalNanoseconds(text)).toBe(expected));

  test.each(['3 fortnights', '-3 days', '1.5 days', 'days', '3', '', '3 dayss', '9999999999999999999 days', '293 years'])(
    'refused: %j',
    (text) => expect(() => intervalNanoseconds(text)).toThrow(/interval/),
  );
});
