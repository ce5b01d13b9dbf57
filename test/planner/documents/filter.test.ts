/** Long lists in filters are looked up, and hold of the documents that their members hold of one by one. */
import { expect, test, vi } from 'vitest';
import { compileFilter, filterOf } from '../../../src/planner/documents/filter.ts';
import type { Stored } from '../../../src/planner/documents/values.ts';

const values: readonly Stored[] = [
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
const documents: readonly Stored[] = [{}, ...values.map((n) => ({ n })), ...values.map((n) => ({ n: { m: n } }))];

test.each(['n', 'n.m'])('$in and $or over %s hold where one of their values does', (name) => {
  for (const [i, first] of values.entries())
    for (const second of values.slice(i)) {
      const wanted = [first, second];
      const single = wanted.map((value) => compileFilter({ [name]: { $in: [value] } }));
      const plain = wanted.map((value) => compileFilter({ $and: [{ [name]: value }] }));
      const lists = [{ [name]: { $in: wanted } }, { $or: wanted.map((value) => ({ [name]: value })) }].map(compileFilter);
      const none = compileFilter({ [name]: { $nin: wanted } });
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
  const parsed = vi.spyOn(JSON, 'parse');
  const text = JSON.stringify({ n: { $in: Array.from({ length: 5_000 }, (_, i) => `v${i}`) } });
  const found = Array.from({ length: 50 }, (_, i) => filterOf(text)({ n: `v${i * 200}` }));
  const { length } = parsed.mock.calls;
  parsed.mockRestore();
  expect(length).toBe(1);
  expect(found.filter(Boolean)).toHaveLength(25);
});
