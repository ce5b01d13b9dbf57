import { expect, test } from 'vitest';
import { listSteps } from '../../../src/doors/document/bson.ts';
import { projectionOf, stageOf } from '../../../src/doors/document/pipeline-stages.ts';
import { nameSteps, seedOf, updateOf } from '../../../src/doors/document/update-operators.ts';
import { compileFilter } from '../../../src/planner/expressions/documents/document-filter.ts';
import { allAtOnce, type Steps } from '../../../src/planner/expressions/resumable-steps.ts';
import { readText, textOf, textSteps } from '../../../src/planner/expressions/documents/document-json.ts';
import { sortedInTurns } from '../../../src/planner/expressions/documents/filter-turns.ts';
import { type Stored, type StoredObject, valuesAt } from '../../../src/planner/expressions/documents/document-values.ts';
import { work } from '../../../src/planner/expressions/expression-cost.ts';

const stored = (value: unknown): Stored => readText(JSON.stringify(value));
const fields = (count: number, value: unknown) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, value]));

async function turnsOf(stage: object, documents: readonly StoredObject[]) {
  let turns = 0;
  const made = await allAtOnce(stageOf(stored(stage)))(documents, () => {
    turns++;
    return Promise.resolve();
  });
  return { turns, made: made.map((each) => textOf(each)) };
}

const thousand = Array.from({ length: 1_000 }, (_, n) => stored({ _id: n, n: (n * 7) % 1_000, of: n % 2 }) as StoredObject);

test.each([
  ['$match', { $match: { $nor: Array.from({ length: 1_000 }, (_, i) => ({ [`f${i}`]: 1 })) } }, 20],
  ['$sort', { $sort: { ...fields(31, 1), n: 1 } }, 5],
  ['$group', { $group: { _id: '$of', ...fields(1_000, { $sum: '$n' }) } }, 20],
])('%s lets others have their turns, by the work it does', async (_name, stage, least) => {
  expect((await turnsOf(stage, thousand)).turns).toBeGreaterThanOrEqual(least);
});

test('what is grouped in turns is what one turn would group', async () => {
  const of = { $group: { _id: '$of', n: { $sum: 1 }, first: { $first: '$n' }, last: { $last: '$n' }, least: { $min: '$n' } } };
  const { made } = await turnsOf(of, thousand);
  expect(made).toEqual(['{"_id":0,"n":500,"first":0,"last":986,"least":0}', '{"_id":1,"n":500,"first":7,"last":993,"least":1}']);
});

test('a sort in turns keeps equals in their order', async () => {
  const given = Array.from({ length: 777 }, (_, i) => ({ i, key: (i * i) % 31 }));
  const order = (a: { key: number }, b: { key: number }) => a.key - b.key;
  expect(await sortedInTurns(given, order, () => Promise.resolve())).toEqual(given.toSorted(order));
});

test('lists of a group hold so much together', async () => {
  const lists = { $group: { _id: null, ...fields(5_000, { $push: '$n' }) } };
  await expect(turnsOf(lists, thousand)).rejects.toThrow('hold at most 4000000 values');
});

test('a path with too many ways through lists within lists is refused', () => {
  let ways: unknown = 1;
  for (let i = 0; i < 30; i++) ways = [{ 0: ways }];
  work.done = 0;
  expect(() => valuesAt(stored({ a: ways }), ['a', ...Array.from({ length: 30 }, () => '0')])).toThrow('too much work');
  expect(compileFilter(stored({ 'a.0': [] }))(stored({ a: [[]] }) as StoredObject)).toBe(true);
});

test('an update of many fields copies what it writes into once, and changes nothing of what was', () => {
  const before = stored({ _id: 1, in: { a: 1 }, list: [0] }) as StoredObject;
  const text = textOf(before);
  const $set = { ...fields(15_000, 1), 'in.b': 2, 'in.c.d': 3, 'list.2': 4, 'list.3': 5 };
  const after = allAtOnce(allAtOnce(updateOf(stored({ $set })))(before, false));
  expect(after.size).toBe(15_003);
  expect(textOf(after.get('in')!)).toBe('{"a":1,"b":2,"c":{"d":3}}');
  expect(textOf(after.get('list')!)).toBe('[0,null,4,5]');
  expect(textOf(before)).toBe(text);
});

test.each([
  ['fields', fields(20_001, 1), /at most 20000 fields/],
  ['levels', { [`a${'.a'.repeat(64)}`]: 1 }, /at most 64 levels/],
  ['a field and one in it', { 'a.b': 1, a: 2 }, /conflict/],
  ['one in a field and it', { a: 2, 'a.b.c': 1 }, /conflict/],
])('an update is refused for its %s', (_name, $set, why) => {
  expect(() => allAtOnce(updateOf(stored({ $set })))).toThrow(why);
});

const yields = <T>(steps: Steps<T>): number => {
  let count = 0;
  while (steps.next().done !== true) count++;
  return count;
};

test.each([
  ['a projection', () => projectionOf(stored(fields(100_000, 1))), 40],
  [
    'a projection of a long list',
    () => {
      const list = Array.from({ length: 50_000 }, () => ({ a: 1, b: 2 }));
      return allAtOnce(projectionOf(stored({ 'list.a': 0 })))(stored({ list }) as StoredObject);
    },
    20,
  ],
  ['an update that is read', () => updateOf(stored({ $set: fields(20_000, 1) })), 15],
  ['an update that is done', () => allAtOnce(updateOf(stored({ $set: fields(20_000, 1) })))(new Map(), true), 4],
  ['what an upsert begins with', () => seedOf(stored(fields(20_000, 1))), 8],
  ['names that are looked at', () => nameSteps(stored(Array.from({ length: 50_000 }, () => ({ a: 1 })))), 20],
  ['a long text that is written', () => textSteps('x'.repeat(15 << 20)), 14],
  ['a list of what is distinct', () => listSteps(Array.from({ length: 50_000 }, String)), 10],
] as const)('%s lets others have their turns', (_name, steps, least) => {
  expect(yields(steps() as Steps<unknown>)).toBeGreaterThanOrEqual(least);
});

test('a long text is written as a short one is, with no character cut in two', () => {
  const text = `${'a'.repeat((1 << 20) - 49_152 - 1)}😀"\\\n\ud800`.repeat(3);
  const long = `${text}${'😀'.repeat(600_000)}x${'😀'.repeat(600_000)}`;
  expect(textOf(long) === JSON.stringify(long)).toBe(true);
});

test('a projection of _id alone, before or behind others, collides with a field in it where both are kept', () => {
  const project = (given: object, document: object) =>
    textOf(allAtOnce(allAtOnce(projectionOf(stored(given)))(stored(document) as StoredObject)));
  const document = { _id: { a: 1 }, b: 2, c: 3 };
  expect(project({ _id: 1 }, document)).toBe('{"_id":{"a":1}}');
  expect(project({ _id: 0 }, document)).toBe('{"b":2,"c":3}');
  expect(project({ _id: 0, b: 1 }, document)).toBe('{"b":2}');
  expect(project({ b: 0, _id: 1 }, document)).toBe('{"_id":{"a":1},"c":3}');
  for (const given of [
    { _id: 1, '_id.a': 1 },
    { '_id.a': 1, _id: 1 },
  ])
    expect(() => project(given, document)).toThrow('collision');
  expect(() => project({ b: 1, c: 0 }, document)).toThrow('exclusion');
});
