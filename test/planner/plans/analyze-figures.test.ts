/** EXPLAIN ANALYZE: figures of every operator, counted by hand, and the same however the rows are laid out. */
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import type { OperatorFigures } from '../../../src/planner/planner-contract.ts';
import { Planner } from '../../../src/planner/planner.ts';
import { FakeStore, type FakeType, type Row } from '../fake-snapshot.ts';

const people = Array.from(
  { length: 900 },
  (_, i): Row => ({
    id: `p${i}`,
    city: ['Oslo', 'Rome', null][i % 3]!,
    age: BigInt(i % 90),
    boss: i === 0 ? null : `p${i >> 1}`,
  }),
);
const deals = Array.from({ length: 300 }, (_, i): Row => ({ who: `p${i * 2}`, amount: BigInt(i) }));

const layouts: readonly Partial<FakeType>[] = [
  {},
  { blockRows: 7 },
  { segmentRows: 100, blockRows: 33, dictionaries: { city: 'per segment' } },
  { segmentRows: 64, dictionaries: { city: 'shared', id: 'shared', who: 'per segment' } },
];
const stores = layouts.map((layout) => {
  const person = { id: 'string', city: 'string', age: 'integer', boss: 'string' } as const;
  const deal = { who: 'string', amount: 'integer' } as const;
  const inLayout = ({ dictionaries, ...more }: Partial<FakeType>, of: object): Partial<FakeType> => ({
    ...more,
    dictionaries: Object.fromEntries(Object.entries(dictionaries ?? {}).filter(([name]) => name in of)),
  });
  return new FakeStore([
    { name: 'Person', properties: person, primaryKey: 'id', rows: people, ...inLayout(layout, person) },
    { name: 'Deal', properties: deal, rows: deals, ...inLayout(layout, deal) },
  ]);
});
const planner = new Planner({ clock: systemClock });

const analyzed = (sql: string, store = stores[0]!) =>
  planner.query(store.invocation(), { sql: `EXPLAIN ANALYZE ${sql}`, dialect: 'wide' });

/** By the first word of their lines, inputs behind what reads them; all but projections, which change no figure. */
async function figures(sql: string): Promise<readonly (readonly [string, Partial<OperatorFigures>])[]> {
  const { operators } = await analyzed(sql);
  const telling = operators!.filter(({ operator }) => operator !== 'project');
  return telling.map(({ operator, state, rowsIn, rowsOut, memoryBytes, index }) => [
    operator,
    { ...(state !== 'read' && { state }), rowsIn, rowsOut, memoryBytes, index },
  ]);
}

const none = { rowsIn: null, rowsOut: null, memoryBytes: null, index: null };
const within = { ...none, state: 'within the line above' };
const stopped = { ...none, state: 'stopped early' };

describe('rows in and out, bytes held, indexes', () => {
  test.each<[string, ...(readonly [string, object])[]]>([
    [
      "SELECT city, COUNT(*) AS n FROM Person WHERE city = 'Oslo' GROUP BY city ORDER BY n",
      ['sort', { ...none, rowsIn: 1, rowsOut: 1, memoryBytes: 12 }],
      ['aggregate', { ...none, rowsIn: 300, rowsOut: 1, memoryBytes: 12 }],
      ['filter', { ...none, rowsOut: 300 }],
      ['scan', within],
    ],
    [
      'SELECT MEDIAN(age) FROM Person',
      ['aggregate', { ...none, rowsIn: 900, rowsOut: 1, memoryBytes: 8 + 900 * 8 }],
      ['scan', { ...none, rowsOut: 900 }],
    ],
    [
      "SELECT age FROM Person WHERE id = 'p7'",
      ['filter', { ...none, rowsOut: 1 }],
      ['scan', { ...within, index: 'primary key' }],
    ],
    [
      'SELECT d.amount FROM Person p JOIN Deal d ON d.who = p.id',
      ['join', { ...none, rowsIn: 1_200, rowsOut: 300, memoryBytes: textBytes(deals, 'who') + 300 * 8 }],
      ['scan', { ...none, rowsOut: 900 }],
      ['scan', { ...none, rowsOut: 300 }],
    ],
    [
      'SELECT id FROM Person WHERE age % 2 = 1 LIMIT 5',
      ['limit', { ...none, rowsIn: 5, rowsOut: 5 }],
      ['filter', { ...stopped, rowsOut: 5 }],
      ['scan', stopped],
    ],
    [
      'SELECT id FROM Person WHERE age % 2 = 1 LIMIT 1000',
      ['limit', { ...none, rowsIn: 450, rowsOut: 450 }],
      ['filter', { ...none, rowsIn: 900, rowsOut: 450 }],
      ['scan', { ...none, rowsOut: 900 }],
    ],
    [
      'SELECT amount FROM Deal WHERE EXISTS (SELECT 1 FROM Person)',
      ['filter', { ...none, rowsIn: 300, rowsOut: 300 }],
      ['scan', { ...none, rowsOut: 300 }],
      ['scan', { ...stopped, rowsOut: 1 }],
    ],
    [
      "SELECT p.id FROM Person p JOIN Deal d ON d.who = p.id WHERE d.who = 'nobody'",
      ['join', { ...none, rowsIn: 0, rowsOut: 0, memoryBytes: 0 }],
      ['scan', { ...none, state: 'not read', rowsOut: 0 }],
      ['filter', { ...none, rowsOut: 0 }],
      ['scan', within],
    ],
  ])('%s', async (sql, ...expected) => {
    expect(await figures(sql)).toEqual(expected);
  });
});

function textBytes(rows: readonly Row[], column: string): number {
  return rows.reduce((sum, row) => sum + String(row[column]).length, 0);
}

test('figures are of rows, not of the blocks that they come in', async () => {
  for (const sql of [
    "SELECT id, age FROM Person WHERE age > 40 AND city = 'Rome'",
    'SELECT id FROM Person WHERE age > 40 LIMIT 3',
    'SELECT id FROM Person LIMIT 900',
    'SELECT DISTINCT age FROM Person LIMIT 4',
    'SELECT DISTINCT city, age FROM Person',
    "SELECT city, COUNT(DISTINCT age) AS n, STRING_AGG(id, ',') AS ids FROM Person GROUP BY city",
    'SELECT p.id, d.amount FROM Person p LEFT JOIN Deal d ON d.who = p.id WHERE p.age > 20 LIMIT 10',
    'SELECT p.id FROM Person p JOIN Deal d ON d.who = p.boss ORDER BY d.amount DESC LIMIT 3',
    'SELECT id FROM Person p WHERE NOT EXISTS (SELECT 1 FROM Deal d WHERE d.who = p.id) LIMIT 6',
    'SELECT amount FROM Deal WHERE amount > (SELECT AVG(age) FROM Person) AND EXISTS (SELECT 1 FROM Person WHERE age > 88)',
    "SELECT id FROM Person WHERE id IN (SELECT who FROM Deal WHERE amount < 50) AND city = 'Oslo'",
    'SELECT id FROM Person UNION SELECT who FROM Deal LIMIT 7',
    'SELECT id FROM Person INTERSECT SELECT who FROM Deal',
    'SELECT id FROM Person EXCEPT SELECT who FROM Deal LIMIT 5',
    'SELECT id FROM Person UNION ALL SELECT who FROM Deal LIMIT 905',
    'SELECT id, SUM(age) OVER (PARTITION BY city ORDER BY id) AS s FROM Person',
    'SELECT id, SUM(age) OVER (PARTITION BY city ORDER BY id) AS s FROM Person LIMIT 2',
    "WITH RECURSIVE up(id, boss) AS (SELECT id, boss FROM Person WHERE id = 'p800' UNION ALL SELECT p.id, p.boss FROM up u JOIN Person p ON p.id = u.boss) SELECT * FROM up",
    'SELECT age FROM Person WHERE age < 50 LIMIT 3 FACETS city',
    'SELECT id FROM Person ORDER BY age, id LIMIT 10 OFFSET 5',
    'SELECT t.age FROM (SELECT age FROM Person LIMIT 20) t WHERE t.age > 5 LIMIT 3',
  ]) {
    const told = await Promise.all(
      stores.map(async (store) => {
        const { operators, actualRows, plan } = await analyzed(sql, store);
        expect(plan!.split('\n').filter((line) => line.includes('['))).toHaveLength(operators!.length);
        return [actualRows, operators!.map(({ timeMs, ...others }) => ({ ...others, ran: timeMs !== null }))];
      }),
    );
    for (const other of told) expect(other, sql).toEqual(told[0]);
  }
});

test('lines tell it in words, and what is not asked is not measured', async () => {
  const { plan, operators, processingTimeMs } = await analyzed('SELECT city, COUNT(*) AS n FROM Person GROUP BY city');
  expect(plan!.replaceAll(/\d+\.\d{3} ms/g, 'T')).toBe(
    'project city, count AS n [in 3, out 3, expected 225; T]\n' +
      '  aggregate count(*) by city; kernel [in 900, out 3, expected 225; T; holds 32 bytes]\n' +
      '    project city [in 900, out 900, expected 900; T]\n' +
      '      scan Person (by all versions; columns city) [out 900, expected 900; T]',
  );
  const times = operators!.reduce((sum, { timeMs }) => sum + timeMs!, 0);
  expect(times).toBeGreaterThan(0);
  expect(times).toBeLessThanOrEqual(processingTimeMs);
  const plain = await planner.query(stores[0]!.invocation(), { sql: 'EXPLAIN SELECT city FROM Person' });
  expect([plain.actualRows, plain.operators]).toEqual([null, undefined]);
});
