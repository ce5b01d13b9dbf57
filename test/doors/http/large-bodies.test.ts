/**
 * Bodies of a few megabytes that are all members, numbers or mistakes: each is refused, or read, in a turn that others can wait for.
 * What is counted here is what is looked at, never time.
 */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { boundlessIn, check, record } from '../../../src/doors/shared/schema-check.ts';
import { jsonMax, parseJsonBody, parseJsonSteps } from '../../../src/doors/http/json-body.ts';
import { severalBody, typedBody } from '../../../src/doors/http/search-body.ts';
import { verbs } from '../../../src/doors/verbs/all.ts';

const many = <T>(count: number, of: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => of(i));
const list = (count: number, of: (i: number) => string): Buffer => Buffer.from(`[${many(count, of).join(',')}]`);
const object = (count: number): string => `{${many(count, (i) => `"k${i}":1`).join(',')}}`;

test.each([
  ['lists', list(jsonMax.members, () => '[]'), /members$/],
  ['objects', list(jsonMax.members, () => '{}'), /members$/],
  ['members', list(9, () => object(4_000)), /members$/],
  ['members in one object', Buffer.from(object(jsonMax.ofOneObject + 1)), /members in one object$/],
  ['numbers', list(jsonMax.values + 2, () => '1'), /values$/],
  ['texts', list(jsonMax.values + 2, () => '"a,b"'), /values$/],
  ['long integers', list(jsonMax.longIntegers + 1, () => '12345678901234567'), /integers of 16 digits and more$/],
  ['digits in one number', Buffer.from('1'.repeat(jsonMax.digits + 1)), /digits in one number$/],
])('a body of too many %s is refused before it is parsed', (_name, body, why) => {
  const read = (): unknown => parseJsonBody(body);
  expect(read).toThrow(expect.objectContaining({ code: 'REL_TOO_LARGE' }));
  expect(read).toThrow(why);
});

test('what stands in a text is none of these, and many floats are read as they are', () => {
  const text = '[{,:1234567890123456"\\'.repeat(10_000);
  expect(parseJsonBody(Buffer.from(JSON.stringify({ text })))).toEqual({ text });
  const floats = many(100_000, (i) => i + 0.1234567890123456);
  expect(parseJsonBody(Buffer.from(JSON.stringify(floats)))).toEqual(floats);
});

test('each of many long integers comes out exact, between texts that look like them', () => {
  const integers = many(8_000, (i) => 9_007_199_254_740_993n + BigInt(i) * 2n);
  const body = list(8_000, (i) => `"${integers[i]}",${integers[i]},0.${integers[i]}`);
  const expected = integers.flatMap((integer) => [`${integer}`, integer, Number(`0.${integer}`)]);
  expect(parseJsonBody(body)).toEqual(expected);
});

test('a long body is bytes, then a text, then values, each in a turn of its own', () => {
  const steps = parseJsonSteps(Buffer.from('{"a":1}'));
  expect([steps.next(), steps.next(), steps.next()]).toEqual([
    { done: false, value: undefined },
    { done: false, value: undefined },
    { done: true, value: { a: 1 } },
  ]);
});

test('a check ends at the first member that is wrong', () => {
  let looked = 0;
  const member = z.strictObject({
    a: z.custom(() => {
      looked++;
      return looked <= 3;
    }),
  });
  expect(
    check(
      z.array(member).max(10_000),
      many(10_000, () => ({ a: 1 })),
    ).success,
  ).toBe(false);
  expect(looked).toBe(4);
});

test('a list or a record of too many members is refused before one of them is looked at', () => {
  let looked = 0;
  const member = z.custom(() => ++looked > 0);
  for (const [schema, given] of [
    [z.array(member).max(10), many(11, String)],
    [record(member, 10), Object.fromEntries(many(11, (i) => [`k${i}`, i]))],
  ] as const)
    expect(check<unknown>(schema, given).success).toBe(false);
  expect(looked).toBe(0);
  expect(check(record(member, 10), { a: 1 })).toEqual({ success: true, data: { a: 1 } });
});

test('unknown members are told in a message of a bounded length', () => {
  const read = check(typedBody, { from: 'T', ...Object.fromEntries(many(4_000, (i) => [`unknown${i}`, i])) });
  expect(read.success).toBe(false);
  expect(JSON.stringify(read).length).toBeLessThan(2_000);
});

test('sixty thousand malformed filters are one mistake', () => {
  const wrong = check(typedBody, { from: 'T', filters: many(60_000, () => ({ field: 1 })) });
  expect(wrong.success ? [] : wrong.issues.length).toBe(1);
});

// The server refuses to start with such a route: `boundlessIn` is asked there of every one.
test('a schema that takes lists or records of any size is found wherever it does', () => {
  const item = z.array(z.string());
  expect(boundlessIn(z.object({ a: z.object({ b: item.optional() }) }))).toBe('.a.b');
  expect(boundlessIn(z.union([z.string(), z.tuple([z.lazy(() => item)])]))).toBe('');
  expect(boundlessIn(z.object({ a: record(item) }))).toBe('.a{}');
  expect(boundlessIn(z.object({ a: z.record(z.string(), z.string()) }))).toBe('.a');
  expect(boundlessIn(z.object({ a: item.min(1) }).refine(() => true))).toBe('.a');
  expect(boundlessIn(z.object({ a: item.max(3).nullish(), b: record(z.unknown()) }).strict())).toBeNull();
  expect(boundlessIn(severalBody)).toBeNull();
});

test.each(verbs.map((verb) => [verb.name, verb.input] as const))('%s says how much it takes', (_name, input) => {
  expect(boundlessIn(input)).toBeNull();
});

test.each([63, 64, 65, 1_000])(
  'what stands in a text is not counted, behind %d characters and any number of backslashes',
  (before) => {
    for (let slashes = 0; slashes < 6; slashes++) {
      const text = `${'x'.repeat(before)}${'\\'.repeat(slashes)}"${'{,:'.repeat(40_000)}`;
      const value = { text, after: [1] };
      expect(parseJsonBody(Buffer.from(JSON.stringify(value)))).toEqual(value);
      const many = `{"text":${JSON.stringify(text)},"after":[${'1,'.repeat(200_000)}1]}`;
      expect(() => parseJsonBody(Buffer.from(many))).toThrow(/more than \d+ values/);
    }
  },
);
