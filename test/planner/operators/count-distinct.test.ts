/** COUNT and SUM of DISTINCT beside a plain count: of all rows, and of groups that come after one had met its values alone. */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { Planner } from '../../../src/planner/planner.ts';
import { FakeStore, type Row, tuplesOf } from '../fake-snapshot.ts';

const rows: Row[] = Array.from({ length: 6_000 }, (_, i) => ({
  // The group of NULL is alone for a while.
  k: i < 2_500 || i % 5 === 0 ? null : `k${i % 3}`,
  n: i % 7 === 0 ? null : BigInt((i * i) % 700),
  x: ((i * 37) % 1_100) / 8,
  s: `s${(i * 31) % 900}`,
}));
const store = new FakeStore([
  { name: 'T', properties: { k: 'string', n: 'integer', x: 'number', s: 'string' }, rows, blockRows: 500 },
]);
const planner = new Planner({ clock: systemClock, limits: { blockRows: 500 } });

function expected(group: readonly Row[]): unknown[] {
  const distinct = (name: string): unknown[] => [...new Set(group.map((row) => row[name]).filter((cell) => cell !== null))];
  const sum = (distinct('n') as bigint[]).reduce((total, value) => total + value, 0n);
  return [distinct('n').length, distinct('x').length, distinct('s').length, Number(sum)];
}

const calls = 'COUNT(DISTINCT n) AS a, COUNT(DISTINCT x) AS b, COUNT(DISTINCT s) AS c, SUM(DISTINCT n) AS d';
const answer = async (sql: string): Promise<unknown[][]> =>
  tuplesOf(await planner.query(store.invocation(), { sql })).map((row) =>
    row.map((cell) => (typeof cell === 'bigint' ? Number(cell) : cell)),
  );

test('of all rows', async () => {
  expect(await answer(`SELECT ${calls} FROM T`)).toEqual([expected(rows)]);
});

test('by a key that is NULL for long', async () => {
  const keys = [...new Set(rows.map(({ k }) => k))];
  const wanted = keys.map((key) => [key, ...expected(rows.filter(({ k }) => k === key))]);
  expect(await answer(`SELECT k, ${calls} FROM T GROUP BY k`)).toEqual(wanted);
});
