/** Statements that write more rows one by one than a turn holds: decided in turns, written at once. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { TestStore } from '../../harness.ts';

const count = 4_000n;

let store: TestStore;
beforeAll(async () => {
  store = await TestStore.open('2024-01-01', {}, { clock: systemClock });
  await store.register('Account', { id: 'string', balance: 'integer' }, 'id');
  await store.register('Entry', { id: 'string' }, 'id');
});
afterAll(() => store.close());

beforeEach(async () => {
  await store.execute('DELETE FROM Account');
  const values = Array.from({ length: Number(count) }, (_, i) => `('n${i}', 1)`).join();
  await store.execute(`INSERT INTO Account (id, balance) VALUES ${values}`);
});

const sum = async (): Promise<unknown> =>
  (await store.rows('SELECT SUM(balance) AS s, COUNT(*) AS n FROM Account AS OF CURRENT'))[0];

/** Runs a statement, and something else in each turn of the event loop meanwhile. */
async function beside<T>(sql: string, act: (turn: number) => Promise<T>): Promise<T[]> {
  const seen: T[] = [];
  let isOver = false;
  const others = async (): Promise<void> => {
    while (!isOver) {
      seen.push(await act(seen.length));
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const running = others();
  await store.execute(sql).finally(() => (isOver = true));
  await running;
  return seen;
}

const of = (s: bigint | null, n = count) => ({ s, n });

test.each([
  ['an update', 'UPDATE Account SET balance = balance + 1', of(2n * count)],
  ['a delete', 'DELETE FROM Account', of(null, 0n)],
])('who reads beside %s sees none of it or all', async (_, sql, after) => {
  const before = of(count);
  const seen = await beside(sql, sum);
  expect(seen.length).toBeGreaterThan(3);
  expect(
    seen.filter((each) => ![JSON.stringify(plain(before)), JSON.stringify(plain(after))].includes(JSON.stringify(plain(each)))),
  ).toEqual([]);
  expect(await sum()).toEqual(after);
});

test('it comes to an end while others write other rows in each of its turns', async () => {
  const seen = await beside('UPDATE Account SET balance = balance + 1', (turn) =>
    store.execute('INSERT INTO Entry (id) VALUES ($1)', [`e${turn}`]),
  );
  expect(seen.length).toBeGreaterThan(3);
  expect(await sum()).toEqual(of(2n * count));
});

test('nothing of what others write to its rows meanwhile is lost', async () => {
  let added = 0n;
  await beside('UPDATE Account SET balance = balance + 1', async (turn) => {
    if (turn % 3 !== 0 || turn > 15) return;
    added += 10n;
    await store.execute("UPDATE Account SET balance = balance + 10 WHERE id = 'n7'");
  });
  expect(added).toBeGreaterThan(0n);
  expect(await sum()).toEqual(of(2n * count + added));
});

/** JSON has no bigints. */
function plain(row: unknown): unknown {
  return Object.fromEntries(Object.entries(row as object).map(([name, value]) => [name, String(value)]));
}
