/**
 * Masked columns: NULL wherever something is made of them, refused where they would tell rows apart, shown as their mask has
 * them where they leave as they are.
 */
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { ServiceError } from '../../src/errors.ts';
import type { GovernedSnapshot, Invocation } from '../../src/governance/gate-contract.ts';
import type { Cell } from '../../src/log/values/value.ts';
import type { ContinuousServices } from '../../src/planner/control/control-request.ts';
import { Planner } from '../../src/planner/planner.ts';
import { FakeStore, type FakeType, type Row, rowsOf, tuplesOf } from './fake-snapshot.ts';

const properties = {
  code: 'string',
  name: 'string',
  ssn: 'string',
  age: 'integer',
  score: 'number',
  born: 'timestamp',
  alive: 'boolean',
  place: 'vector',
  boss: 'string',
} as const;

const people: Row[] = [
  { code: 'a', name: 'Ann', ssn: '111', age: 30n, score: 1.5, born: 10n, alive: true, boss: 'b' },
  { code: 'b', name: 'Bob', ssn: '222', age: 40n, score: 2.5, born: 20n, alive: false, boss: null },
  { code: 'c', name: 'Cid', ssn: '333', age: 50n, score: 3.5, born: 30n, alive: true, boss: 'b' },
];

const hidden = { ssn: 'redact', age: 'bucket', score: 'null', born: 'year', alive: 'null', place: 'null' } as const;

const person: FakeType = { name: 'Person', properties, primaryKey: 'code', rows: people, segmentRows: 2 };
const clear = new FakeStore([person]);
const masked = new FakeStore([{ ...person, masked: hidden }]);
/** The same rows without the cells. */
const empty = new FakeStore([
  { ...person, rows: people.map((row) => ({ ...row, ...Object.fromEntries(Object.keys(hidden).map((name) => [name, null])) })) },
]);

const planner = new Planner({ clock: systemClock });

async function ask(store: FakeStore, sql: string): Promise<Cell[][]> {
  return tuplesOf(await planner.query(store.invocation([], { path: store === masked ? 'masked' : 'free' }), { sql }));
}

async function refusal(sql: string): Promise<string> {
  try {
    await ask(masked, sql);
  } catch (error) {
    if (error instanceof ServiceError) return `${error.code} ${error.message}`;
    throw error;
  }
  return 'answered';
}

describe('a masked column is refused', () => {
  test.each([
    ['SELECT SUM(age) FROM Person', '1:12', 'age', 'SUM'],
    ['SELECT AVG(score) FROM Person', '1:12', 'score', 'AVG'],
    ['SELECT MIN(ssn) FROM Person', '1:12', 'ssn', 'MIN'],
    ['SELECT MAX(born) FROM Person', '1:12', 'born', 'MAX'],
    ['SELECT COUNT(ssn) FROM Person', '1:14', 'ssn', 'COUNT'],
    ['SELECT COUNT(DISTINCT ssn) FROM Person', '1:23', 'ssn', 'COUNT'],
    ['SELECT name, SUM(age + 1) FROM Person GROUP BY name', null, 'age', 'SUM'],
    ['SELECT COUNT(*) FROM Person HAVING MAX(age) > 3', '1:40', 'age', 'MAX'],
    ['SELECT COUNT(*) FROM Person ORDER BY MAX(age)', '1:42', 'age', 'MAX'],
    ['SELECT name FROM Person ORDER BY ssn', '1:34', 'ssn', 'ORDER BY'],
    ['SELECT name FROM Person\nORDER BY name, age DESC LIMIT 2', '2:16', 'age', 'ORDER BY'],
    ['SELECT name, ssn AS x FROM Person ORDER BY x', '1:44', 'ssn', 'ORDER BY'],
    ['SELECT name, age + 1 AS x FROM Person ORDER BY x', '1:48', 'age', 'ORDER BY'],
    ['SELECT name FROM Person ORDER BY CASE WHEN alive THEN 1 ELSE 2 END', '1:34', 'alive', 'ORDER BY'],
    ['SELECT ssn, COUNT(*) FROM Person GROUP BY ssn', '1:43', 'ssn', 'GROUP BY'],
    ['SELECT ssn AS x, COUNT(*) FROM Person GROUP BY x', '1:48', 'ssn', 'GROUP BY'],
    ['SELECT COUNT(*) FROM Person GROUP BY age % 10', null, 'age', 'GROUP BY'],
    ['SELECT DISTINCT ssn FROM Person', '1:17', 'ssn', 'DISTINCT'],
    ['SELECT DISTINCT name, age * 2 FROM Person', '1:23', 'age', 'DISTINCT'],
    ["SELECT COUNT(*) FROM Person GROUP BY TUMBLE(born, INTERVAL '1 day')", '1:45', 'born', 'TUMBLE'],
    ["SELECT COUNT(*) FROM Person GROUP BY name, SESSION(born, INTERVAL '1 day')", '1:52', 'born', 'SESSION'],
    ["SELECT COUNT(*) FROM Person GROUP BY ssn, SESSION(system_from, INTERVAL '1 day')", '1:38', 'ssn', 'GROUP BY'],
    ['SELECT name FROM Person FACETS ssn', '1:32', 'ssn', 'FACETS'],
    ['SELECT name FROM Person FACETS name, age', '1:38', 'age', 'FACETS'],
    ['SELECT name FROM Person RANK BY CUSTOM(age, 2)', '1:33', 'age', 'RANK BY'],
    ["SELECT name FROM Person RANK BY EXACT(ssn, 2, '111')", '1:33', 'ssn', 'RANK BY'],
    ['SELECT name FROM Person RANK BY RECENCY(born, 10)', '1:33', 'born', 'RANK BY'],
    ['SELECT name FROM Person COMPUTE x AS SUM(age, 1)', '1:38', 'age', 'COMPUTE'],
    // Under another name.
    ['SELECT SUM(x) FROM (SELECT age AS x FROM Person) p', '1:12', 'x', 'SUM'],
    ['SELECT SUM(x) FROM (SELECT age + 1 AS x FROM Person) p', '1:12', 'x', 'SUM'],
    ['SELECT SUM(p.x) FROM (SELECT * FROM (SELECT age AS x, name FROM Person) q) p', '1:12', 'x', 'SUM'],
    [
      'SELECT (SELECT MIN(x) FROM (VALUES ((SELECT age FROM Person q WHERE q.code = p.code LIMIT 1))) v (x)) FROM Person p',
      '1:20',
      'x',
      'MIN',
    ],
    ['WITH p AS (SELECT age AS x FROM Person) SELECT SUM(x) FROM p', '1:52', 'x', 'SUM'],
    ['WITH p (x) AS (SELECT age FROM Person) SELECT x FROM p ORDER BY x', '1:65', 'x', 'ORDER BY'],
    ['SELECT x FROM (SELECT name AS x FROM Person UNION ALL SELECT ssn FROM Person) p GROUP BY x', '1:90', 'x', 'GROUP BY'],
    ['SELECT x FROM (SELECT name AS x FROM Person UNION SELECT ssn FROM Person) p ORDER BY x', '1:86', 'x', 'ORDER BY'],
    ['SELECT ssn AS x FROM Person UNION ALL SELECT name FROM Person ORDER BY x', '1:72', 'x', 'ORDER BY'],
    ['SELECT name AS x FROM Person UNION SELECT ssn FROM Person ORDER BY x', '1:68', 'x', 'ORDER BY'],
    ['SELECT COUNT(DISTINCT b.ssn) FROM Person a JOIN Person b ON a.boss = b.code', '1:23', 'ssn', 'COUNT'],
    [
      'WITH RECURSIVE r (x, n) AS (SELECT name, 1 FROM Person UNION ALL SELECT p.ssn, n + 1 FROM r JOIN Person p ON p.code = x WHERE n < 3) SELECT MAX(x) FROM r',
      '1:145',
      'x',
      'MAX',
    ],
  ])('%s', async (sql, place, column, use) => {
    const said = await refusal(sql);
    expect(said).toContain('REL_MASKED_COLUMN');
    expect(said).toContain(`column "${column}" is masked: ${use} can't take it`);
    if (place !== null) expect(said).toContain(` ${place}: `);
    // It is the mask that it is refused for.
    expect((await ask(clear, sql)).length).toBeGreaterThanOrEqual(0);
  });

  test('through a view, where its name is used', async () => {
    const views = [{ name: 'Seen', sql: 'SELECT name, ssn AS number FROM Person', refreshSecs: 60, owner: null, position: 1 }];
    const through = (sql: string) => planner.query(over(masked, { views, grantKey: 'views' }), { sql });
    await expect(through('SELECT number FROM Seen GROUP BY number')).rejects.toMatchObject({ code: 'REL_MASKED_COLUMN' });
    expect(tuplesOf(await through("SELECT number FROM Seen WHERE name = 'Ann'"))).toEqual([['redact!']]);
    expect(tuplesOf(await through('SELECT name FROM Seen WHERE number IS NULL'))).toHaveLength(3);
  });
});

describe('a masked column that leaves as it is', () => {
  test.each([
    ['SELECT ssn FROM Person', [['redact!'], ['redact!'], ['redact!']]],
    ["SELECT ssn AS x, name FROM Person WHERE name = 'Ann'", [['redact!', 'Ann']]],
    ['SELECT name, ssn FROM Person ORDER BY name DESC LIMIT 1', [['Cid', 'redact!']]],
    ['SELECT x FROM (SELECT ssn AS x, name FROM Person) p LIMIT 1', [['redact!']]],
    ['SELECT * FROM (SELECT ssn, name FROM Person LIMIT 1) p', [['redact!', 'Ann']]],
    ['WITH p (x) AS (SELECT ssn FROM Person LIMIT 1) SELECT q.x FROM p q', [['redact!']]],
    ["SELECT ssn FROM Person WHERE code = 'a' UNION ALL SELECT name FROM Person WHERE code = 'b'", [['redact!'], ['Bob']]],
    [
      "SELECT x FROM (SELECT name AS x, code FROM Person UNION ALL SELECT ssn, code FROM Person) p WHERE code = 'a'",
      [['Ann'], ['redact!']],
    ],
    [
      "SELECT a.name, b.ssn, b.name FROM Person a JOIN Person b ON a.boss = b.code WHERE a.code != 'b'",
      [
        ['Ann', 'redact!', 'Bob'],
        ['Cid', 'redact!', 'Bob'],
      ],
    ],
    [
      "SELECT a.ssn, b.ssn FROM Person a LEFT JOIN Person b ON a.boss = b.code WHERE a.code IN ('a', 'b')",
      [
        ['redact!', 'redact!'],
        ['redact!', null],
      ],
    ],
    // Rows are compared as they are seen, so nothing is left to show.
    ["SELECT ssn FROM Person UNION SELECT name FROM Person WHERE code = 'a'", [[null], ['Ann']]],
    ['SELECT ssn FROM Person INTERSECT SELECT ssn FROM Person', [[null]]],
    ['SELECT ssn FROM Person EXCEPT SELECT ssn FROM Person', []],
    [
      "WITH RECURSIVE r (x, n) AS (SELECT ssn, 1 FROM Person WHERE code = 'a' UNION ALL SELECT x, n + 1 FROM r WHERE n < 2) SELECT x, n FROM r",
      [
        [null, 1n],
        [null, 2n],
      ],
    ],
  ])('%s', async (sql, rows) => expect(await ask(masked, sql)).toEqual(rows));

  test('is shown by *, under its own name and type', async () => {
    const answer = await planner.query(masked.invocation(), { sql: "SELECT * FROM Person WHERE code = 'a'" });
    expect(rowsOf(answer)[0]).toMatchObject({ code: 'a', name: 'Ann', ssn: 'redact!', age: null, score: null });
    expect(answer.columns.map(({ name }) => name)).toEqual(
      (await planner.query(clear.invocation(), { sql: 'SELECT * FROM Person' })).columns.map(({ name }) => name),
    );
  });

  test('with pages, provenance and cursors', async () => {
    const sql = 'SELECT ssn, name FROM Person LIMIT 2';
    const page = await planner.query(masked.invocation(), { sql: `${sql} WITH PROVENANCE` });
    expect(rowsOf(page)).toEqual([
      { ssn: 'redact!', name: 'Ann' },
      { ssn: 'redact!', name: 'Bob' },
    ]);
    expect(page.provenance).toHaveLength(2);
    const next = await planner.query(masked.invocation(), { sql: `${sql} AFTER '${page.nextCursor}'` });
    expect(rowsOf(next)).toEqual([{ ssn: 'redact!', name: 'Cid' }]);
  });

  test('has no name that a statement reaches it by', async () => {
    for (const sql of [
      'SELECT "ssn#shown" FROM Person',
      'SELECT name FROM Person ORDER BY "ssn#shown"',
      'SELECT "ssn#shown" FROM (SELECT ssn FROM Person) p',
      'SELECT "x#shown" FROM (SELECT ssn AS x FROM Person UNION ALL SELECT ssn FROM Person) p',
    ])
      await expect(ask(masked, sql)).rejects.toMatchObject({ code: 'REL_UNKNOWN_COLUMN' });
  });
});

/** Every form of expression, with the masked columns in each of its places. */
const expressions = [
  ...['=', '!=', '<', '<=', '>', '>='].flatMap((op) => [`ssn ${op} '111'`, `'111' ${op} ssn`, `age ${op} 30`, `score ${op} age`]),
  ...['=', '!='].map((op) => `alive ${op} true`),
  ...['+', '-', '*', '/', '%'].flatMap((op) => [`age ${op} 2`, `2 ${op} age`, `score ${op} age`]),
  "born + INTERVAL '1 day'",
  'born - born',
  'born > now()',
  '-age',
  '-score',
  'ssn IS NULL',
  'ssn IS NOT NULL',
  'alive',
  'NOT alive',
  'alive AND true',
  'alive OR true',
  'alive AND false',
  "ssn LIKE '1%'",
  "NOT ssn LIKE '1%'",
  "ssn IN ('111', '222')",
  "ssn NOT IN ('111', '222')",
  "name IN ('Ann', ssn)",
  'age BETWEEN 20 AND 40',
  'age NOT BETWEEN 20 AND 40',
  '35 BETWEEN age AND 60',
  '35 BETWEEN 20 AND age',
  "CASE ssn WHEN '111' THEN 1 ELSE 2 END",
  "CASE WHEN ssn = '111' THEN 1 ELSE 2 END",
  "CASE WHEN name = 'Ann' THEN age ELSE 2 END",
  "CASE WHEN name = 'Ann' THEN 2 ELSE age END",
  'CASE name WHEN ssn THEN 1 ELSE 2 END',
  "SOUNDEX(ssn) = 'A500'",
  "METAPHONE(ssn) != 'AN'",
  "COLOGNE(ssn) = '06'",
  'ssn IN (SELECT name FROM Person)',
  'ssn IN (SELECT ssn FROM Person)',
  'name IN (SELECT ssn FROM Person)',
  'name NOT IN (SELECT ssn FROM Person)',
  "'redact!' IN (SELECT ssn FROM Person)",
  "ssn = 'redact!'",
];

describe('what is made of a masked column is what NULL makes of it', () => {
  test.each(expressions)('%s', async (expression) => {
    for (const sql of [
      `SELECT code, ${expression} AS x FROM Person`,
      `SELECT x FROM (SELECT ${expression} AS x FROM Person) p`,
      `SELECT code FROM Person WHERE (${expression}) IS NULL`,
      `SELECT a.code, b.code FROM Person a JOIN Person b ON a.boss = b.code AND a.code IN (SELECT code FROM Person WHERE (${expression}) IS NOT NULL)`,
    ])
      expect(await ask(masked, sql), sql).toEqual(await ask(empty, sql));
    const isCondition = await ask(clear, `SELECT code FROM Person WHERE ${expression}`).then(
      () => true,
      () => false,
    );
    if (!isCondition) return;
    const sql = `SELECT code FROM Person WHERE ${expression}`;
    expect(await ask(masked, sql), sql).toEqual(await ask(empty, sql));
  });

  test.each([
    'SELECT a.code, b.code FROM Person a JOIN Person b ON a.ssn = b.ssn',
    "SELECT a.code, b.code FROM Person a JOIN Person b ON a.name = b.ssn OR b.ssn = 'redact!'",
    'SELECT a.code, b.code FROM Person a LEFT JOIN Person b ON a.age < b.age',
    'SELECT a.code, b.code FROM Person a FULL JOIN (SELECT ssn AS x, code FROM Person) b ON a.ssn = b.x',
  ])('%s', async (sql) => expect(await ask(masked, sql)).toEqual(await ask(empty, sql)));
});

test('a masked key of a lookup is NULL, and so is what it finds', async () => {
  const value = (_: string, key: Cell): Cell => (key === null ? null : `of ${String(key)}`);
  const table = { fields: [], fieldType: () => 'string', value } as const;
  const lookups = { epoch: 0, table: () => table };
  const looking = new Planner({
    clock: systemClock,
    continuous: { lookups, views: { serve: () => null } } as unknown as ContinuousServices,
  });
  const sql = 'SELECT LOOKUP cards(ssn) -> owner AS a, LOOKUP cards(name) -> owner AS b FROM Person LIMIT 1';
  expect(tuplesOf(await looking.query(masked.invocation(), { sql }))).toEqual([[null, 'of Ann']]);
  expect(tuplesOf(await looking.query(clear.invocation([], { path: 'free' }), { sql }))).toEqual([['of 111', 'of Ann']]);
});

describe('nothing of a masked column says which rows are read', () => {
  test.each([
    "SELECT code FROM Person WHERE ssn = '111'",
    'SELECT code FROM Person WHERE age BETWEEN 3 AND 40 AND score > 1',
    "SELECT x FROM (SELECT ssn AS x FROM Person) p WHERE x >= '2'",
  ])('%s', async (sql) => {
    masked.scans.length = 0;
    await ask(masked, sql);
    expect(masked.scans.length).toBeGreaterThan(0);
    for (const { zones, keys } of masked.scans) expect([zones, keys]).toEqual([undefined, undefined]);
  });

  test('a masked key is no way to a row, nor does it order', async () => {
    const store = new FakeStore([{ ...person, masked: { _pk: 'redact', id: 'redact', code: 'redact' } }]);
    expect(await ask(store, "SELECT name FROM Person WHERE code = 'a' OR _pk = 'a'")).toEqual([]);
    expect(await ask(store, "SELECT name FROM Person WHERE _pk IN ('a', 'b')")).toEqual([]);
    expect(store.scans.map(({ keys }) => keys)).toEqual([undefined, undefined]);
    expect(await ask(store, 'SELECT name, _pk FROM Person ORDER BY name')).toEqual([
      ['Ann', 'redact!'],
      ['Bob', 'redact!'],
      ['Cid', 'redact!'],
    ]);
  });

  test('nor is what repeats it: rows whose key is masked can not be found by keys', async () => {
    const store = new FakeStore([{ ...person, masked: { _pk: 'redact', id: 'redact' } }]);
    expect(await ask(store, "SELECT name FROM Person WHERE code = 'a'")).toEqual([['Ann']]);
    expect(store.scans.map(({ keys, zones }) => [keys, zones?.map(({ column }) => column)])).toEqual([[undefined, ['code']]]);
  });

  test('an unmasked key still is one', async () => {
    masked.scans.length = 0;
    expect(await ask(masked, "SELECT ssn FROM Person WHERE code = 'a' AND ssn IS NULL AND name >= 'A'")).toEqual([['redact!']]);
    expect(masked.scans).toMatchObject([{ keys: ['a'], zones: [{ column: '_pk' }, { column: 'name' }] }]);
  });

  test('nor does a sketch', async () => {
    const sketched = new Planner({ clock: systemClock, sketchColumns: ['ssn', 'ssn#shown', 'name'] });
    masked.scans.length = 0;
    await sketched.query(masked.invocation(), { sql: "EXPLAIN SELECT name, ssn FROM Person WHERE ssn = '111' AND name = 'Ann'" });
    expect(masked.scans.map(({ columns }) => columns)).toEqual([['name']]);
  });
});

test('EXPLAIN names what is masked and how', async () => {
  const answer = await planner.query(masked.invocation(), { sql: 'EXPLAIN SELECT name, ssn FROM Person WHERE age = 30' });
  expect(answer.plan).toBe(
    [
      'project name, masked(ssn) AS ssn',
      '  filter (age = 30); kernel',
      '    scan Person (by all versions; about 3 rows in 2 segments; columns name, age, masked(ssn); masked ssn (redact), age (bucket))',
    ].join('\n'),
  );
});

test('whoever has another grant has another plan', async () => {
  const sql = "SELECT ssn FROM Person WHERE code = 'a'";
  const asked = async (store: FakeStore, path: string) => tuplesOf(await planner.query(store.invocation([], { path }), { sql }));
  expect(await asked(clear, 'one')).toEqual([['111']]);
  expect(await asked(masked, 'two')).toEqual([['redact!']]);
  expect(await asked(clear, 'one')).toEqual([['111']]);
});

function over(store: FakeStore, other: Partial<GovernedSnapshot>): Invocation {
  const invocation = store.invocation();
  return { ...invocation, snapshot: () => ({ ...invocation.snapshot(), ...other }) };
}
