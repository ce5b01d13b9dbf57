/** Long lists in filters are looked up, and hold of the documents that their members hold of one by one. */
import { expect, test } from 'vitest';
import { compileFilter, filterOf } from '../../../../src/planner/expressions/documents/document-filter.ts';
import { readText } from '../../../../src/planner/expressions/documents/document-json.ts';
import { difference } from '../../../doors/document/differential.ts';
import { seedBase } from '../../../runner/seed.ts';
import { tell } from '../../../runner/tell.ts';
import type { Stored } from '../../../../src/planner/expressions/documents/document-values.ts';

/** Values of other types by their Extended JSON. */
const stored = (literal: unknown): Stored => readText(JSON.stringify(literal));

const values: readonly unknown[] = [
  null,
  0,
  1,
  1.5,
  true,
  'a',
  '1',
  '',
  { $numberLong: '1' },
  { $numberDouble: '1.5' },
  { $symbol: 'a' },
  { $oid: '0123456789abcdef01234567' },
  { $date: { $numberLong: '1' } },
  { $regularExpression: { pattern: '^a', options: '' } },
  { x: 1 },
  {},
  [],
  [1, 'a'],
  [[1]],
];
const documents = [{}, ...values.map((n) => ({ n })), ...values.map((n) => ({ n: { m: n } }))].map(stored);
const compiled = (filter: unknown): ((document: Stored) => boolean) => compileFilter(stored(filter));

test.each(['n', 'n.m'])('$in and $or over %s hold where one of their values does', (name) => {
  for (const [i, first] of values.entries())
    for (const second of values.slice(i)) {
      const wanted = [first, second];
      const single = wanted.map((value) => compiled({ [name]: { $in: [value] } }));
      const plain = wanted.map((value) => compiled({ $and: [{ [name]: value }] }));
      const lists = [{ [name]: { $in: wanted } }, { $or: wanted.map((value) => ({ [name]: value })) }].map(compiled);
      const none = compiled({ [name]: { $nin: wanted } });
      for (const document of documents) {
        const holds = single.some((filter) => filter(document));
        const told = JSON.stringify([wanted, document]);
        expect([lists[0]!(document), none(document), lists[1]!(document)], told).toEqual([
          holds,
          !holds,
          plain.some((filter) => filter(document)),
        ]);
      }
    }
});

test('a long filter is read once for all documents', () => {
  const text = JSON.stringify({ n: { $in: Array.from({ length: 5_000 }, (_, i) => `v${i}`) } });
  const filters = Array.from({ length: 50 }, () => filterOf(text));
  expect(new Set(filters).size).toBe(1);
  expect(filters.filter((filter, i) => filter(stored({ n: `v${i * 200}` })))).toHaveLength(25);
});

test('a filter has at most a thousand conditions, wherever they stand, and a document bounded work', () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => ({ [`f${i}`]: i }));
  expect(compiled({ $nor: many(1_000) })(stored({}))).toBe(true);
  const tooMany = [
    { $nor: many(1_001) },
    { $and: [{ $or: many(600) }, { $or: many(600) }] },
    { a: { $elemMatch: { $nor: many(1_001) } } },
    { $and: Array.from({ length: 1_001 }, () => ({ a: { $gt: 1 } })) },
    { a: { $all: many(1_001) } },
    { a: { $in: Array.from({ length: 1_001 }, (_, i) => ({ $regularExpression: { pattern: `x${i}`, options: '' } })) } },
  ];
  for (const filter of tooMany) expect(() => compiled(filter)).toThrow('at most 1000 conditions');
  // Plain values are looked up, however many they are.
  expect(compiled({ a: { $in: Array.from({ length: 5_000 }, (_, i) => i) } })(stored({ a: 4_999 }))).toBe(true);
  const long = stored({ a: Array.from({ length: 100_000 }, (_, i) => i) });
  const each = compiled({ $nor: Array.from({ length: 500 }, (_, i) => ({ a: { $gt: 1e6 + i } })) });
  expect(() => each(long)).toThrow('too much work for one row');
  expect(each(stored({ a: [1, 2] }))).toBe(true);
});

const cases = 400;
tell(`${cases} cases of documents beside the rules, seed ${seedBase} (npm run documents:diff -- --n 1e5)`);

test('filters, updates, sorts and projections come to what the documented rules say', async () => {
  for (let i = 0; i < cases; i++) expect(await difference(seedBase + i)).toBeNull();
});

test('what the regular expressions of a filter take to be made is bounded, one by one and together', () => {
  const filterWith = (pattern: string, count: number) =>
    stored({ $or: Array.from({ length: count }, (_, i) => ({ [`f${i}`]: { $regex: pattern } })) });
  for (const pattern of ['(x{1,500}){2}'.repeat(70), '((a{100}){100}){100}', '(?i)[\\x{0}-\\x{10ffff}]'])
    expect(() => compileFilter(filterWith(pattern, 1)), pattern).toThrow('too large');
  expect(() => compileFilter(filterWith('a{1,1000}', 100))).toThrow('too much work');
  expect(compileFilter(filterWith('^[a-z0-9._%+-]+@x$', 900))(stored({ f7: 'me@x' }))).toBe(true);
});
