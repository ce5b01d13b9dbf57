/** Transactions of many rows. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { vectorOf } from '../../../src/planner/writes/rows-read.ts';
import type { PutRows } from '../../../src/projections/command.ts';
import { TestStore } from '../../harness.ts';
import { ann, bob, refused, Teller } from './world.ts';

let store: TestStore;
beforeAll(async () => {
  store = await TestStore.open('2024-01-01', {}, { clock: systemClock });
  await store.register('Account', { id: 'string', balance: 'integer' }, 'id');
  await store.register('Entry', { id: 'string', account: 'string', amount: 'integer' }, 'id');
});
afterAll(() => store.close());

const rows = (from: number, length: number): PutRows => {
  const ids = Array.from({ length }, (_, i) => `n${from + i}`);
  const columns = [
    { name: 'id', type: 'string', vector: vectorOf(ids, 'string') },
    {
      name: 'balance',
      type: 'integer',
      vector: vectorOf(
        ids.map(() => 1n),
        'integer',
      ),
    },
  ] as const;
  const provenance = { source: 'test', method: 'put', confidence: 1, derivedFrom: null };
  return {
    kind: 'put-rows',
    type: 'Account',
    rows: { length, columns },
    atomic: true,
    createType: false,
    when: 'absent',
    provenance,
  };
};

test.each<[string, (turn: number) => Promise<unknown>]>([
  ['others read', () => store.rows('SELECT COUNT(*) AS n FROM Entry AS OF CURRENT', bob)],
  ['others write other rows', (turn) => store.execute('INSERT INTO Entry (id, amount) VALUES ($1, 1)', [`e${turn}`], bob)],
])('is written by one commit, while %s in each of its turns', async (what, act) => {
  const teller = new Teller(store);
  const key = what.length * 100_000;
  for (let i = 0; i < 3; i++) await teller.invoke('ingest', (invocation) => invocation.submit(rows(key + i * 2_000, 2_000)));
  let turns = 0;
  let isOver = false;
  const others = async (): Promise<void> => {
    for (; !isOver; turns++) {
      await act(turns);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const before = await store.rows('SELECT COUNT(*) AS n FROM Account AS OF CURRENT', ann);
  const running = others();
  const committed = await teller.commit().finally(() => (isOver = true));
  await running;
  expect(committed?.accepted).toBe(6_000);
  expect(turns).toBeGreaterThan(1);
  expect(await store.rows('SELECT COUNT(*) AS n FROM Account AS OF CURRENT', ann)).toEqual([
    { n: (before[0]!.n as bigint) + 6_000n },
  ]);
});

test('more than its bounds is refused, and what was written before stays', async () => {
  const teller = new Teller(store);
  const wide = 'x'.repeat(2 ** 20);
  const put = (i: number) => teller.run('INSERT INTO Entry (id, account) VALUES ($1, $2)', `wide${i}`, wide);
  for (let i = 0; i < 63; i++) await put(i);
  expect(await refused(put(63))).toBe('REL_TOO_LARGE');
  expect((await teller.commit())?.accepted).toBe(63);
});
