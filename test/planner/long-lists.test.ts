/** Behind its thousandth value a list of IN is one token, one node and no parameter: it must still say what shorter ones say. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rowsOf, TestStore } from '../harness.ts';

const day = 86_400_000;
const rows = Array.from({ length: 4_000 }, (_, i) => ({
  id: `k${i}`,
  n: i % 3 === 0 ? i : 9_000_000_000_000_000_000n - BigInt(i),
  x: i / 4,
  s: i % 7 === 0 ? null : `t${i}`,
  at: new Date(Date.UTC(2020, 0, 1) + i * day).toISOString().slice(0, 10),
  j: { n: i },
}));
let store: TestStore;

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  const types = { id: 'string', n: 'integer', x: 'number', s: 'string', at: 'timestamp', j: 'json' } as const;
  await store.register('T', types, 'id');
  await store.put('T', rows);
});
afterAll(() => store.close());

/** Every second value that the rows have, some that no row has, and a form of its own at each end. */
const lists: Readonly<Record<string, readonly string[]>> = {
  n: rows.filter((_, i) => i % 2 === 0).map(({ n }) => String(n)),
  'n ': rows.filter((_, i) => i % 2 === 0).map(({ n }, i) => (i % 900 === 0 ? `${n}.0` : String(n))),
  x: rows.filter((_, i) => i % 2 === 0).map(({ x }) => String(x)),
  s: rows.filter((_, i) => i % 2 === 0).map(({ id }) => `'t${id.slice(1)}'`),
  id: rows.filter((_, i) => i % 2 === 0).map(({ id }) => `'${id}'`),
  at: rows.filter((_, i) => i % 2 === 0).map(({ at }) => `'${at}'`),
  'x * 2': rows.filter((_, i) => i % 2 === 0).map(({ x }) => String(x * 2)),
  'UPPER(s)': rows.filter((_, i) => i % 2 === 0).map(({ id }) => `'T${id.slice(1)}'`),
};

async function keys(where: string): Promise<string[]> {
  return rowsOf(await store.answer(`SELECT id FROM T WHERE ${where} ORDER BY id`)).map(({ id }) => String(id));
}

function inShort(column: string, items: readonly string[]): string {
  const parts: string[] = [];
  for (let at = 0; at < items.length; at += 500) parts.push(`${column} IN (${items.slice(at, at + 500).join(', ')})`);
  return `(${parts.join(' OR ')})`;
}

describe.each(['spec', 'wide'] as const)('a list of two thousand values says what four of five hundred say (%s)', (dialect) => {
  test.each(Object.keys(lists))('%s', async (column) => {
    store.dialect = dialect;
    const items = lists[column]!;
    const found = await keys(inShort(column, items));
    expect(found.length).toBeGreaterThan(400);
    const long = (more: readonly string[]): string => `${column} IN (${more.join(', ')})`;
    expect(await keys(long(items))).toEqual(found);
    expect(await keys(`NOT ${long(items)}`)).toEqual(await keys(`NOT ${inShort(column, items)}`));
    expect(await keys(long([...items, 'NULL', ...items]))).toEqual(found);
    expect(await keys(`NOT ${long([...items, 'NULL'])}`)).toEqual([]);
    const value = items[1_500]!;
    const odd = column === 'at' ? 'NULL' : `CASE WHEN ${value} IS NULL THEN NULL ELSE ${value} END`;
    expect(await keys(long([...items.slice(0, 1_500), odd, ...items.slice(1_500)]))).toEqual(found);
  });
});

test('a hundred thousand NULLs are one, and are told once', async () => {
  store.dialect = 'wide';
  for (const list of ['NULL,'.repeat(100_000), `'t1',${'NULL,'.repeat(50_000)}'t3',NULL,`]) {
    const { notices } = await store.answer(`SELECT id FROM T WHERE s IN (${list}'t2')`);
    expect(notices).toHaveLength(1);
    expect(await keys(`s NOT IN (${list}'t2')`)).toEqual([]);
    expect(await keys(`s IN (${list}'t2')`)).toEqual(list.includes('t1') ? ['k1', 'k2', 'k3'] : ['k2']);
  }
});

test('one plan serves lists of one length', async () => {
  store.dialect = 'wide';
  const [first, second] = [lists['s']!.slice(0, 1_800), lists['s']!.slice(200)];
  expect(await keys(`s IN (${first.join(',')})`)).toEqual(await keys(inShort('s', first)));
  expect(await keys(`s IN (${second.join(',')})`)).toEqual(await keys(inShort('s', second)));
});

test('a value that is no instant is told with its place in the list', async () => {
  store.dialect = 'wide';
  const list = lists['at']!.with(1_900, "'never'");
  await expect(keys(`at IN (${list.join(', ')})`)).rejects.toThrow(/^1:\d+: .*never/);
});
