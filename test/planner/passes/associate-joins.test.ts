/** A small filtered table joins what it is about before the rest does; rows and their order are as they were. */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { associateJoins } from '../../../src/planner/passes/associate-joins.ts';
import { reorderJoins } from '../../../src/planner/passes/reorder-joins.ts';
import { passes, Planner } from '../../../src/planner/planner.ts';
import { FakeStore, type Row, tuplesOf } from '../fake-snapshot.ts';

const rows = (count: number, row: (i: number) => Row): Row[] => Array.from({ length: count }, (_, i) => row(i));
const store = new FakeStore([
  {
    name: 'Customer',
    properties: { c: 'integer', nation: 'integer' },
    rows: rows(40, (i) => ({ c: BigInt(i), nation: BigInt(i % 4) })),
  },
  {
    name: 'Line',
    properties: { customer: 'integer', s: 'integer', n: 'integer' },
    rows: rows(900, (i) => ({ customer: i % 11 === 0 ? null : BigInt((i * 7) % 45), s: BigInt((i * 13) % 20), n: BigInt(i) })),
  },
  {
    name: 'Supplier',
    properties: { s: 'integer', nation: 'integer' },
    rows: rows(22, (i) => ({ s: BigInt(i % 18), nation: BigInt(i % 4) })),
  },
  {
    name: 'Nation',
    properties: { nation: 'integer', region: 'string' },
    rows: rows(4, (i) => ({ nation: BigInt(i), region: 'EW'[i % 2]! })),
  },
]);

/** Joins in the order written. */
const written = passes.filter((pass) => pass !== reorderJoins);

const planners = {
  with: new Planner({ clock: systemClock, passes: written }),
  without: new Planner({ clock: systemClock, passes: written.filter((pass) => pass !== associateJoins) }),
};

const joins = `Customer c JOIN Line l ON c.c = l.customer JOIN Supplier s ON l.s = s.s AND c.nation = s.nation`;
const turning = `SELECT l.n AS n, s.nation AS nation, s.s AS s, c.c AS c FROM ${joins} WHERE s.nation = 2`;

const operators = async (planner: Planner, sql: string): Promise<string[]> =>
  ((await planner.query(store.invocation(), { sql: `EXPLAIN ${sql}` })).plan ?? '')
    .split('\n')
    .filter((line) => /join|scan/.test(line));

test.each([
  turning,
  `SELECT l.n AS n, t.region AS region, c.c AS c FROM ${joins} JOIN Nation t ON s.nation = t.nation WHERE t.region = 'E'`,
  `SELECT c.c AS c, l.n AS n, s.nation AS nation FROM Customer c JOIN Line l ON c.c = l.customer LEFT JOIN Supplier s ON l.s = s.s AND s.nation = 2`,
  `SELECT c.c AS c, l.n AS n FROM ${joins} AND c.c < s.s WHERE s.nation = 1`,
])('%s', async (sql) => {
  const [ours, theirs] = await Promise.all(
    [planners.with, planners.without].map((each) => each.query(store.invocation(), { sql })),
  );
  expect(tuplesOf(ours!).length).toBeGreaterThan(3);
  expect(tuplesOf(ours!)).toEqual(tuplesOf(theirs!));
});

test('the filtered table is joined below, an outer or unfiltered one is left where it stands', async () => {
  expect(await operators(planners.with, turning)).not.toEqual(await operators(planners.without, turning));
  expect((await operators(planners.with, turning)).map((line) => /join|scan \w+/.exec(line)![0])).toEqual([
    'join',
    'scan Customer',
    'join',
    'scan Line',
    'scan Supplier',
  ]);
  for (const sql of [turning.replace('WHERE s.nation = 2', ''), turning.replace('JOIN Supplier', 'LEFT JOIN Supplier')])
    expect(await operators(planners.with, sql)).toEqual(await operators(planners.without, sql));
});
