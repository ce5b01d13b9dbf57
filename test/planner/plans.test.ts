/** Golden plans: `plans/*.sql` holds a statement and, below it, the plan that EXPLAIN shows. `npm test -- --update` rewrites them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { Planner } from '../../src/planner/planner.ts';
import { FakeStore, type Row, rowsOf } from './fake-snapshot.ts';

const directory = join(import.meta.dirname, 'plans');

const rows: Row[] = Array.from({ length: 100 }, (_, i) => ({
  code: `p${i}`,
  city: ['Oslo', 'Rome', null][i % 3]!,
  age: BigInt(20 + (i % 50)),
  score: i / 4,
  joined: BigInt(i) * 86_400_000_000_000n,
}));

const store = new FakeStore(
  [
    {
      name: 'Person',
      properties: { code: 'string', city: 'string', age: 'integer', score: 'number', joined: 'timestamp' },
      primaryKey: 'code',
      rows,
      segmentRows: 40,
    },
    {
      name: 'City',
      properties: { name: 'string', country: 'string', founded: 'integer' },
      primaryKey: 'name',
      rows: ['Oslo', 'Rome', 'Lima'].map((name, i) => ({ name, country: 'NIP'[i]!, founded: BigInt(i) })),
    },
  ],
  1_704_067_200_000_000_000n,
);
const planner = new Planner({ clock: systemClock });

describe('plans', () => {
  const files = readdirSync(directory).filter((name) => name.endsWith('.sql'));
  test('are there', () => expect(files.length).toBeGreaterThan(8));

  test.each(files)('%s', async (name) => {
    const path = join(directory, name);
    const sql = readFileSync(path, 'utf8').split('\n\n')[0]!.trim();
    const { plan } = await planner.query(store.invocation(), { sql: `EXPLAIN ${sql}` });
    const shown = plan!.split('\n').map((line) => `-- ${line}`);
    await expect(`${sql}\n\n${shown.join('\n')}\n`).toMatchFileSnapshot(path);
  });
});

test('EXPLAIN reads nothing, EXPLAIN ANALYZE runs and says how many rows there were', async () => {
  store.scans.length = 0;
  const sql = "SELECT code FROM Person WHERE city = 'Oslo'";
  const plan = await planner.query(store.invocation(), { sql: `EXPLAIN ${sql}` });
  expect(store.scans).toEqual([]);
  expect(plan).toMatchObject({
    actualRows: null,
    plan: rowsOf(plan)
      .map(({ plan: line }) => line)
      .join('\n'),
  });
  const analyzed = await planner.query(store.invocation(), { sql: `EXPLAIN ANALYZE ${sql}` });
  expect(store.scans).toHaveLength(1);
  expect(analyzed.actualRows).toBe(34);
  const words = (text: string | null): string[] => text!.split('\n').map((line) => line.trim().split(' ')[0]!);
  expect(words(analyzed.plan)).toEqual(words(plan.plan));
});

test('EXPLAIN POLICY gives the decision that reading would meet', async () => {
  const { plan } = await planner.query(store.invocation(), { sql: 'EXPLAIN POLICY SELECT code FROM Person' });
  expect(plan).toBe('decision allow\nbecause everybody may read Person\nscope all rows');
  const joined = await planner.query(store.invocation(), {
    sql: 'EXPLAIN POLICY SELECT code FROM Person JOIN City ON city = City.name',
  });
  expect(joined.plan!.split('\n').filter((line) => line.startsWith('type') || line.startsWith('because'))).toEqual([
    'type Person',
    'because everybody may read Person',
    'type City',
    'because everybody may read City',
  ]);
});
