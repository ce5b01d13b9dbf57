/**
 * Passes change how a question is answered, never the answer: with any of them left out, the rows are the same. Each
 * generated question is asked with none, with all, without each, with each alone, and with some other sets of them;
 * `npm run equal -- --passes` asks it with every set.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import type { Pass } from '../../../src/planner/passes/pass.ts';
import { passes, Planner } from '../../../src/planner/planner.ts';
import { columns, condition, integer, Overflow, randomRows, type Random } from '../execution/random-expressions.ts';
import { tell } from '../../runner/tell.ts';
import { whole } from '../../runner/turn.ts';
import { FakeStore, type Row, tuplesOf } from '../fake-snapshot.ts';

const numRuns = Number(process.env['ANNALS_RUNS'] ?? (whole ? 300 : 14));
const [simplify, ...others] = passes;
const subsets = Array.from({ length: 2 ** others.length }, (_, bits) => [simplify!, ...others.filter((_, i) => bits & (1 << i))]);
const always = subsets.filter(({ length }) => length <= 2 || length >= passes.length - 1);
const rest = subsets.filter((subset) => !always.includes(subset));
const drawn = process.env['PASS_SUBSETS'] === 'all' ? rest.length : Math.min(4, rest.length);
tell(
  `${always.length + drawn} of ${subsets.length} sets of passes for each question, ${drawn} of them drawn (npm run equal -- --passes)`,
);

const someOfTheRest = fc.shuffledSubarray(rest, { minLength: drawn, maxLength: drawn });

function storeOf(rows: readonly Row[]): FakeStore {
  return new FakeStore([{ name: 'T', properties: columns, rows, segmentRows: 4, dictionaries: { color: 'shared' } }]);
}

const planners = new Map<readonly Pass[], Planner>();

function plannerOf(chosen: readonly Pass[]): Planner {
  let planner = planners.get(chosen);
  if (!planner) planners.set(chosen, (planner = new Planner({ clock: systemClock, passes: chosen })));
  return planner;
}

function fails(rows: readonly Row[], expressions: readonly Random[]): boolean {
  try {
    for (const row of rows) for (const { of } of expressions) of(row);
    return false;
  } catch (error) {
    if (error instanceof Overflow) return true;
    throw error;
  }
}

/** The table once more, its columns under other names. */
function other(condition: string): string {
  const columnsOf = 'small AS s2, color AS c2, label AS l2, ratio AS r2, mixed AS m2, flag AS f2, seen AS t2';
  return `(SELECT ${columnsOf} FROM T WHERE ${condition}) u`;
}

describe('every set of passes gives the same rows', () => {
  const shapes: [string, (p: string, q: string, e: string) => string][] = [
    ['filter and projection', (p, q, e) => `SELECT ${e} AS x, color FROM T WHERE ${p} AND ${q}`],
    [
      'groups',
      (p, q) =>
        `SELECT color, small, COUNT(*), MAX(label) FROM T WHERE ${p} GROUP BY color, small HAVING color > 'a' AND NOT small = 3 AND COUNT(*) > 0 OR ${q.length} = 0`,
    ],
    ['order', (_, q, e) => `SELECT label FROM T WHERE ${q} ORDER BY ${e}, ratio DESC LIMIT 6`],
    ['distinct', (p) => `SELECT DISTINCT color, flag FROM T WHERE ${p} ORDER BY flag, color`],
    ['keys', (p, q) => `SELECT small, _pk FROM T WHERE _pk IN ('k1', 'k3', 'k5') AND (${p} OR ${q})`],
    [
      'inner join',
      (p, q) =>
        `SELECT small, s2, label FROM T JOIN ${other(q)} ON color = c2 AND s2 != 3 AND (${p}) WHERE flag = f2 AND (small = 1 OR c2 = 'a' OR ratio > 0)`,
    ],
    [
      'join of unlike numbers',
      (p) => `SELECT large, r2, l2 FROM T JOIN ${other(p)} ON mixed = r2 OR large = m2 WHERE large = m2 AND s2 < 4`,
    ],
    [
      'join on exact numbers',
      (p, q) => `SELECT COUNT(*), MAX(m2) FROM T FULL JOIN ${other(q)} ON large = r2 WHERE ${p} OR r2 IS NULL`,
    ],
    [
      'left join',
      (p, q) =>
        `SELECT small, s2 FROM T LEFT JOIN ${other(q)} ON label = l2 AND color = shade AND s2 > 0 AND small > 0 WHERE (${p}) AND (f2 IS NULL OR f2 = flag)`,
    ],
    [
      'right join',
      (p, q) => `SELECT small, s2 FROM T RIGHT JOIN ${other(p)} ON seen = t2 AND (${q}) WHERE c2 > 'a' OR small IS NULL`,
    ],
    [
      'full join',
      (p, q) =>
        `SELECT small, s2, c2 FROM T FULL JOIN ${other(q)} ON color = c2 AND (${p}) WHERE s2 IS NULL OR small IS NULL OR s2 < small`,
    ],
    [
      'three tables',
      (p, q) =>
        `SELECT label, c2, a.color FROM T JOIN ${other(q)} ON shade = c2 LEFT JOIN (SELECT color, small AS n FROM T) a ON a.color = T.shade AND a.n = s2 WHERE NOT (${p.replace(/\b(color|small)\b/g, 'T.$1')}) AND s2 < 9 LIMIT 7`,
    ],
    [
      'full join, conditions on one side',
      (_, q) => `SELECT small, s2 FROM T FULL JOIN ${other(q)} ON color = c2 WHERE small IS NULL AND s2 > 0`,
    ],
    [
      'right join, condition on the left',
      (_, q) => `SELECT small, s2 FROM T RIGHT JOIN ${other(q)} ON color = c2 WHERE small IS NULL`,
    ],
    [
      'left join, condition on the right',
      (_, q) => `SELECT small, s2 FROM T LEFT JOIN ${other(q)} ON color = c2 WHERE s2 IS NULL`,
    ],
    ['cross join', (p, q) => `SELECT small, s2 FROM T JOIN ${other(q)} ON 1 = 1 WHERE (${p}) AND s2 + small > 3`],
    ['subquery', (p, q) => `SELECT small + 1, color FROM (SELECT * FROM T WHERE ${p} ORDER BY label LIMIT 9) WHERE ${q}`],
    [
      'computed columns',
      (p, _, e) => `SELECT x, color FROM (SELECT ${e} AS x, color, flag FROM T WHERE ${p}) WHERE x > 0 OR color = 'a'`,
    ],
    [
      'groups below',
      (p) => `SELECT c FROM (SELECT color AS c, COUNT(*) AS n FROM T WHERE ${p} GROUP BY color) WHERE c > 'a' AND n > 1`,
    ],
    ['distinct below', (p) => `SELECT c FROM (SELECT DISTINCT color AS c, flag FROM T WHERE ${p}) WHERE c > 'a' AND flag = true`],
    [
      'union',
      (p, q) =>
        `SELECT c FROM (SELECT color AS c, small AS n FROM T WHERE ${p} UNION SELECT shade, ratio FROM T WHERE ${q}) WHERE n > 0`,
    ],
    [
      'union all',
      (p, q) =>
        `SELECT n FROM (SELECT color AS c, small AS n FROM T WHERE ${p} UNION ALL SELECT shade, mixed FROM T WHERE ${q}) WHERE c > 'a'`,
    ],
    [
      'except',
      (p, q) =>
        `SELECT c FROM (SELECT color AS c FROM T WHERE ${p} EXCEPT SELECT shade FROM T WHERE ${q}) WHERE c != 'b' OR c IS NULL`,
    ],
    ['intersect', (p, q) => `SELECT color FROM T WHERE ${p} INTERSECT SELECT shade FROM T WHERE ${q} ORDER BY color`],
    [
      'IN',
      (p, q) =>
        `SELECT label FROM T WHERE color IN (SELECT shade FROM T WHERE ${p}) OR NOT ratio IN (SELECT large FROM T WHERE ${q})`,
    ],
    [
      'recursion',
      (p, q) =>
        `WITH RECURSIVE r(c, n) AS (SELECT color, 0 FROM T WHERE ${p} UNION SELECT shade, n + 1 FROM r JOIN T ON color = c AND n < 3 WHERE ${q}) SELECT c FROM r WHERE n > 0 AND c > 'a'`,
    ],
    ['pages', (p) => `SELECT small FROM T WHERE ${p} LIMIT 3 AFTER '1001'`],
  ];

  test.each(shapes)('%s', async (_, shape) => {
    await fc.assert(
      fc.asyncProperty(randomRows, condition, condition, integer, someOfTheRest, async (rows, p, q, e, more) => {
        if (fails(rows, [p, q, e])) return;
        const sql = shape(p.sql, q.sql, /^-?\d+$/.test(e.sql.replace(/[()]/g, '')) ? 'small' : e.sql);
        const store = storeOf(rows);
        const ask = async (chosen: readonly Pass[]): Promise<unknown> =>
          tuplesOf(await plannerOf(chosen).query(store.invocation(), { sql }));
        const [first, ...answers] = await Promise.all([...always, ...more].map(ask));
        for (const each of answers) expect(each).toEqual(first);
      }),
      { numRuns: Math.ceil(numRuns / 12) },
    );
  });
});

test('a scan reads only the columns that something above it uses', async () => {
  const store = storeOf([{ small: 1n }]);
  const planner = new Planner({ clock: systemClock });
  const read = async (sql: string): Promise<readonly string[]> => {
    await planner.query(store.invocation(), { sql });
    return store.scans[store.scans.length - 1]!.columns;
  };
  expect(await read('SELECT COUNT(*) FROM T')).toEqual([]);
  expect(await read('SELECT small + 1 FROM T WHERE label IS NULL')).toEqual(['small', 'label']);
  expect(await read('SELECT color FROM T ORDER BY ratio')).toEqual(['_pk', 'ratio', 'color']);
});

test('equality with the key is a lookup, and only with the key', async () => {
  const store = new FakeStore([
    { name: 'K', properties: { code: 'integer', name: 'string' }, primaryKey: 'code', rows: [{ code: 7n, name: 'x' }] },
  ]);
  const planner = new Planner({ clock: systemClock });
  const keys = async (where: string): Promise<readonly string[] | undefined> => {
    store.scans.length = 0;
    await planner.query(store.invocation(), { sql: `SELECT name FROM K WHERE ${where}` });
    return store.scans.length === 0 ? [] : store.scans[0]!.keys;
  };
  expect(await keys('code = 7')).toEqual(['7']);
  expect(await keys("_pk = '7' AND name = 'x'")).toEqual(['7']);
  expect(await keys("'7' = _pk")).toEqual(['7']);
  expect(await keys("_pk IN ('7', '8', '7', NULL)")).toBeUndefined();
  expect(await keys("_pk IN ('7', '8', '7')")).toEqual(['7', '8']);
  // A double beside an integer key is compared as a number, which no key text is.
  expect(await keys('code = 7.0')).toBeUndefined();
  expect(await keys("_pk = '7' OR name = 'x'")).toBeUndefined();
  expect(await keys("NOT _pk = '7'")).toBeUndefined();
  expect(await keys("id = '7'")).toBeUndefined();
  expect(await keys("_pk != '7'")).toBeUndefined();
});
