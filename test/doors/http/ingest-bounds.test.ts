/** Updates with and without bounds, and batches that are all or nothing, as HTTP shows them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;

beforeAll(async () => {
  world = await StoreWorld.open();
});

afterAll(() => world.close());

let made = 0;
const freshType = async (): Promise<string> => {
  const name = `T${made++}`;
  const properties = { key: 'string', n: { type: 'integer', required: true } };
  await world.call('POST', '/types', { name, properties, primary_key: 'key' });
  return name;
};
const post = (type: string, rows: readonly object[] | string, query = ''): Promise<Reply> =>
  world.call('POST', `/ingest?object_type=${type}${query}`, rows);

const forever = 9_223_372_036_854_775_807n;
const day = (text: string): bigint => BigInt(Date.parse(text)) * 1_000_000n;

interface Version {
  readonly n: bigint;
  readonly from: bigint;
  readonly to: bigint;
  readonly systemFrom: bigint;
  readonly systemTo: bigint;
}

/** All stored versions in the order in which they were stored, exact. */
const stored = async (type: string, where = ''): Promise<Version[]> => {
  const columns = 'n, valid_from, valid_to, system_from, system_to';
  const { text } = await world.query(`SELECT ${columns} FROM ${type}${where}`);
  const rows = text.matchAll(/"n":(-?\d+),"valid_from":(-?\d+),"valid_to":(-?\d+),"system_from":(\d+),"system_to":(\d+)/g);
  return [...rows].map(([, ...fields]) => {
    const [n, from, to, systemFrom, systemTo] = fields.map(BigInt) as [bigint, bigint, bigint, bigint, bigint];
    return { n, from, to, systemFrom, systemTo };
  });
};
const believed = async (type: string): Promise<[bigint, bigint, bigint][]> => {
  const live = (await stored(type)).filter(({ systemTo }) => systemTo === forever);
  return live.map(({ n, from, to }): [bigint, bigint, bigint] => [n, from, to]).sort((a, b) => (a[1] < b[1] ? -1 : 1));
};

describe('updates', () => {
  test('without bounds: one new version, and the live one is closed where it begins', async () => {
    const type = await freshType();
    await post(type, [{ key: 'a', n: 1 }]);
    const reply = await post(type, [{ key: 'a', n: 2 }]);
    expect(reply.json).toMatchObject({ accepted: 1 });
    const [old, fresh, ...more] = await stored(type);
    expect(more).toEqual([]);
    expect([old!.n, fresh!.n]).toEqual([1n, 2n]);
    expect(old!.systemTo).toBe(fresh!.systemFrom);
    expect(fresh!.systemTo).toBe(forever);
    // True from when it was first known, unless somebody says otherwise.
    expect([old!.from, fresh!.from]).toEqual([old!.systemFrom, fresh!.systemFrom]);
    expect([old!.to, fresh!.to]).toEqual([forever, forever]);
  });

  const [y2020, y2021, y2022, y2023] = ['2020-01-01', '2021-01-01', '2022-01-01', '2023-01-01'].map(day) as [
    bigint,
    bigint,
    bigint,
    bigint,
  ];
  const base = { key: 'a', n: 1, valid_from: '2020-01-01', valid_to: '2023-01-01' };

  test.each<[string, object, [bigint, bigint, bigint][]]>([
    [
      'in the middle leaves both ends',
      { valid_from: '2021-01-01', valid_to: '2022-01-01' },
      [
        [1n, y2020, y2021],
        [2n, y2021, y2022],
        [1n, y2022, y2023],
      ],
    ],
    [
      'over the start leaves the end',
      { valid_from: '2019-01-01', valid_to: '2021-01-01' },
      [
        [2n, day('2019-01-01'), y2021],
        [1n, y2021, y2023],
      ],
    ],
    [
      'over the end leaves the start',
      { valid_from: '2022-01-01', valid_to: '2024-01-01' },
      [
        [1n, y2020, y2022],
        [2n, y2022, day('2024-01-01')],
      ],
    ],
    [
      'over all of it leaves nothing',
      { valid_from: '2019-01-01', valid_to: '2024-01-01' },
      [[2n, day('2019-01-01'), day('2024-01-01')]],
    ],
    [
      'beside it closes nothing',
      { valid_from: '2023-01-01', valid_to: '2024-01-01' },
      [
        [1n, y2020, y2023],
        [2n, y2023, day('2024-01-01')],
      ],
    ],
    [
      'with no end holds for ever',
      { valid_from: '2021-01-01' },
      [
        [1n, y2020, y2021],
        [2n, y2021, forever],
      ],
    ],
  ])('with bounds: one %s', async (_, bounds, expected) => {
    const type = await freshType();
    await post(type, [base]);
    const before = await stored(type);
    const reply = await post(type, [{ key: 'a', n: 2, ...bounds }]);
    // What is asserted again is the store's doing: one row was sent, one is counted.
    expect(reply.json).toMatchObject({ accepted: 1, rejected: 0, ids: ['a'] });
    expect(await believed(type)).toEqual(expected);
    // What was believed before is still readable as of then.
    const then = await world.query(`SELECT n FROM ${type} AS OF SYSTEM TIME '${instant(before[0]!.systemFrom)}'`);
    expect(then.json['rows']).toEqual([{ n: 1 }]);
  });

  test('an update without bounds closes everything that is open of its key', async () => {
    const type = await freshType();
    await post(type, [base, { key: 'a', n: 2, valid_from: '2021-01-01', valid_to: '2022-01-01' }]);
    expect(await believed(type)).toHaveLength(3);
    await post(type, [{ key: 'a', n: 3 }]);
    expect((await believed(type)).map(([n]) => n)).toEqual([3n]);
  });

  test('bounds that hold nothing are refused, row by row', async () => {
    const type = await freshType();
    const reply = await post(type, [
      { key: 'a', n: 1, valid_from: '2021-01-01', valid_to: '2021-01-01' },
      { key: 'b', n: 1, valid_from: '2022-01-01', valid_to: '2021-01-01' },
      { key: 'c', n: 1, valid_to: '1999-01-01' },
      { key: 'd', n: 1, valid_from: 'never' },
      { key: 'e', n: 1, valid_from: '2021-01-01' },
    ]);
    expect(reply.json).toMatchObject({ accepted: 1, rejected: 4, ids: ['e'] });
    expect((reply.json['errors'] as { index: number }[]).map(({ index }) => index)).toEqual([0, 1, 2, 3]);
  });

  test('a delete ends what is true, and an earlier belief stays', async () => {
    const type = await freshType();
    await post(type, [{ key: 'a', n: 1, valid_from: '2020-01-01' }]);
    const [before] = await stored(type);
    expect((await world.call('DELETE', `/types/${type}/a`)).status).toBe(200);
    const [old, end] = await stored(type);
    expect(old!.systemTo).toBe(end!.systemFrom);
    expect(end!.from).toBe(y2020);
    expect(end!.to).toBe(end!.systemFrom);
    expect((await world.query(`SELECT n FROM ${type} AS OF CURRENT`)).json['rows']).toEqual([]);
    const then = await world.query(`SELECT n FROM ${type} AS OF SYSTEM TIME '${instant(before!.systemFrom)}'`);
    expect(then.json['rows']).toEqual([{ n: 1 }]);
  });
});

describe('atomic=true', () => {
  const rows = [{ key: 'a', n: 1 }, { key: 'b' }, { key: 'c', n: 3 }];

  test('without it, the valid rows of a partly bad batch are written', async () => {
    const type = await freshType();
    expect((await post(type, rows)).json).toMatchObject({ accepted: 2, rejected: 1, ids: ['a', 'c'] });
    expect(await stored(type)).toHaveLength(2);
  });

  test.each<[string, unknown]>([
    ['a row that lacks a required property', rows],
    [
      'a value of another type',
      [
        { key: 'a', n: 1 },
        { key: 'b', n: 'x' },
      ],
    ],
    [
      'a column that the type does not have',
      [
        { key: 'a', n: 1 },
        { key: 'b', n: 2, other: 1 },
      ],
    ],
    [
      'bounds that hold nothing',
      [
        { key: 'a', n: 1 },
        { key: 'b', n: 2, valid_from: '2021-01-01', valid_to: '2020-01-01' },
      ],
    ],
    ['a line that is no JSON', '{"key":"a","n":1}\n{"key"\n'],
    ['an array that ends early', '[{"key":"a","n":1},{"key":"b","n":2}'],
  ])('%s refuses the whole body', async (_, body) => {
    const type = await freshType();
    const reply = await post(type, body as string, '&atomic=true');
    expect(reply.status).toBe(400);
    expect(reply.json).not.toHaveProperty('accepted');
    expect(await stored(type)).toEqual([]);
  });

  test('a type is not made, and not grown, by a body that is refused', async () => {
    const auto = `/ingest/auto?object_type=Unmade${made}&atomic=true`;
    expect((await world.call('POST', auto, '[{"id":"a","x":1},{"id":""}]')).status).toBe(400);
    expect((await world.call('GET', `/types/Unmade${made++}`)).status).toBe(404);
  });

  test('more rows than one batch holds are one append all the same', async () => {
    const type = await freshType();
    const many = Array.from({ length: 10_000 }, (_, i) => ({ key: `k${i}`, n: i }));
    const reply = await post(type, many, '&atomic=true');
    expect(reply.json).toMatchObject({ accepted: 10_000, truncated: true });
    const [, first, last] = /"system_from":(\d+),"system_from_last":(\d+)/.exec(reply.text)!;
    expect(BigInt(last!) - BigInt(first!)).toBe(9_999n);
    const bad = [...many.slice(0, 9_000), { key: 'x' }];
    expect((await post(type, bad, '&atomic=true')).status).toBe(400);
    expect(await world.rows(`SELECT COUNT(*) AS c FROM ${type}`)).toEqual([{ c: 10_000 }]);
  });
});

function instant(ns: bigint): string {
  const seconds = ns / 1_000_000_000n;
  const iso = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
  return `${iso}.${(ns % 1_000_000_000n).toString().padStart(9, '0')}Z`;
}
