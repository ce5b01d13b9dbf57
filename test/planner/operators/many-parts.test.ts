/** Conditions of very many parts: they mean what few of them mean, and others have their turn meanwhile. */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { Planner } from '../../../src/planner/planner.ts';
import { FakeStore, tuplesOf } from '../fake-snapshot.ts';

const planner = new Planner({ clock: systemClock });
const rows = Array.from({ length: 3_000 }, (_, i) => ({
  n: BigInt(i),
  a: i % 11 === 0 ? null : BigInt(i % 37),
  s: i % 13 === 0 ? null : `s${i % 700}`,
}));
const store = new FakeStore([{ name: 'T', properties: { n: 'integer', a: 'integer', s: 'string' }, rows }]);
const ask = async (sql: string): Promise<unknown> => tuplesOf(await planner.query(store.invocation(), { sql, dialect: 'wide' }));
const list = (count: number, of: (i: number) => string, between: string): string =>
  Array.from({ length: count }, (_, i) => of(i)).join(between);

test.each([
  ['of integers', '(a, n)', (i: number): [string, string] => [String(i % 37), String(i * 7)]],
  ['with NULL', '(a, n)', (i: number): [string, string] => [i % 5 === 0 ? 'NULL' : String(i % 37), String(i * 7)]],
  ['of texts', '(s, a)', (i: number): [string, string] => [`'s${i}'`, String(i % 37)]],
  ['of an expression', '(n, a)', (i: number): [string, string] => [String(i), i % 2 === 0 ? 'a' : String(i % 37)]],
])('a long list of rows %s is what its comparisons are', async (_, row, pair) => {
  const [first, second] = row.slice(1, -1).split(', ');
  for (const count of [10, 17, 60]) {
    const among = `${row} IN (${list(count, (i) => `(${pair(i).join(', ')})`, ', ')})`;
    const compared = list(count, (i) => `(${first} = ${pair(i)[0]} AND ${second} = ${pair(i)[1]})`, ' OR ');
    const shown = (condition: string): string =>
      `SELECT n, CASE WHEN ${condition} THEN 1 WHEN NOT (${condition}) THEN 0 END AS x FROM T ORDER BY n`;
    expect(await ask(shown(among))).toEqual(await ask(shown(compared)));
    const kept = (condition: string): string => `SELECT n FROM T WHERE ${condition} ORDER BY n`;
    expect(await ask(kept(among))).toEqual(await ask(kept(compared)));
    expect(await ask(kept(`NOT ${among}`))).toEqual(await ask(kept(`NOT (${compared})`)));
  }
});

test('a list of more rows than are compared one by one is refused, saying what else there is', async () => {
  const sql = `SELECT n FROM T WHERE (n, a) IN (${list(2_049, (i) => `(${i}, 1)`, ', ')})`;
  await expect(ask(sql)).rejects.toThrow('lists of rows have at most 4096 values in one statement: join with VALUES');
});

test('CASE of 1,500 branches of two conditions', async () => {
  const sql = `SELECT SUM(CASE ${list(1_500, (i) => `WHEN n = ${i} AND s = 's${i % 700}' THEN ${i}`, ' ')} ELSE 0 END) AS x FROM T`;
  const expected = rows.reduce((sum, { n, s }) => sum + (n < 1_500n && s !== null ? n : 0n), 0n);
  expect(await ask(sql)).toEqual([[expected]]);
});

test.each([
  ['comparisons', list(2_000, (i) => `(n = ${i} AND a = ${i % 37})`, ' OR ')],
  ['pairs', `(n, a) IN (${list(1_000, (i) => `(${i}, ${i % 37})`, ', ')})`],
  ['patterns', list(300, (i) => `s LIKE '%q${i}_'`, ' OR ')],
  ['excluded patterns', list(300, (i) => `s NOT LIKE '%q${i}_'`, ' AND ')],
  ['branches', `CASE ${list(1_000, (i) => `WHEN n = ${i} AND a = ${i % 37} THEN ${i}`, ' ')} END > 5`],
])('others have their turn between parts: %s', async (_, condition) => {
  let turns = 0;
  const yieldTurn = (): Promise<void> => {
    turns++;
    return Promise.resolve();
  };
  // Each look at the clock is a turn's time: whatever comes back to look lets others go ahead.
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => (nowMs += 10) };
  const few = new Planner({ clock, yieldTurn });
  const turnsOf = async (where: string): Promise<number> => {
    turns = 0;
    await few.query(store.invocation(), { sql: `SELECT COUNT(*) AS c FROM T WHERE ${where}`, dialect: 'wide' });
    return turns;
  };
  await turnsOf(condition);
  // A second time, when all is compiled.
  expect(await turnsOf(condition)).toBeGreaterThan(10 + (await turnsOf('n = 1')));
});
