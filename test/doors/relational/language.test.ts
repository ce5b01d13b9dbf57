/** Words of Postgres that questions about types may have at this door, each with what Postgres 15 answers to the same. */
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';
import { connected, relationalSecret, stateOf } from './relational-client.ts';

let world: StoreWorld;
let client: pg.Client;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret });
  client = await connected(world);
  await client.query('CREATE TABLE A (id int PRIMARY KEY, n int, s text)');
  await client.query(
    "INSERT INTO A (id, n, s) VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 1, 'c'), (4, 2, NULL), (5, NULL, 'a'), (6, NULL, 'b')",
  );
  await client.query('CREATE TABLE B (id int PRIMARY KEY, n int)');
  await client.query('INSERT INTO B (id, n) VALUES (1, 1), (2, 1), (3, 3), (4, NULL)');
});

afterAll(async () => {
  await client.end();
  await world.close();
});

test.each([
  ['SELECT DISTINCT ON (n) n, id FROM A WHERE n IS NOT NULL ORDER BY n, id DESC', '1 3 2 4'],
  ['SELECT DISTINCT ON (1) n, id AS v FROM A WHERE n IS NOT NULL ORDER BY 1 DESC, v DESC', '2 4 1 3'],
  ['SELECT DISTINCT ON (n, s) s FROM A WHERE n = 1 ORDER BY s DESC', 'c b a'],
  // Names that the statement gives, and those of the catalogue, are the same in letters of either case.
  ['SELECT result.MY_ID FROM (SELECT id AS My_Id, n FROM A) Result WHERE N = 2', '4'],
  ['SELECT C.OID::int * 0 FROM pg_class c WHERE c.RELNAME = $$A$$', '0'],
  [
    'SELECT b.v FROM (SELECT id AS V, (SELECT MAX(B.id) FROM B WHERE B.n = q.W) AS v FROM (SELECT id, n AS w FROM A) q) b ORDER BY "V" LIMIT 1',
    '2',
  ],
  ['SELECT n FROM A EXCEPT ALL SELECT n FROM B ORDER BY n', '1 2 null'],
  ['SELECT n FROM A INTERSECT ALL SELECT n FROM B ORDER BY n', '1 1 null'],
  ['SELECT n FROM B INTERSECT ALL SELECT n FROM A ORDER BY n', '1 1 null'],
  ['SELECT n FROM A EXCEPT DISTINCT SELECT n FROM B ORDER BY n', '2'],
  ['SELECT n FROM A UNION DISTINCT SELECT n FROM B ORDER BY n', '1 2 3 null'],
  ['SELECT n FROM A WHERE n > 1 UNION ALL (SELECT n FROM A EXCEPT ALL SELECT n FROM A WHERE n = 1) ORDER BY n', '2 2 null null'],
  ['SELECT id FROM A WHERE n IN (SELECT n FROM A EXCEPT ALL SELECT n FROM B) ORDER BY id', '1 2 3 4'],
  ['SELECT id FROM A ORDER BY id FETCH FIRST 2 ROWS ONLY', '1 2'],
  ['SELECT id FROM A ORDER BY id OFFSET 1 ROW FETCH NEXT 1 ROW ONLY', '2'],
  ['SELECT id FROM A ORDER BY id OFFSET 4 ROWS', '5 6'],
  ['WITH w AS MATERIALIZED (SELECT id FROM A WHERE n = 1) SELECT id FROM w ORDER BY id', '1 2 3'],
  ['WITH w AS NOT MATERIALIZED (SELECT id FROM A WHERE n = 2), v (k) AS (SELECT id FROM w) SELECT k FROM v', '4'],
  ['SELECT pg_catalog.upper(s) FROM A WHERE pg_catalog.length(s) = 1 AND id < 3 ORDER BY pg_catalog.lower(s)', 'A B'],
  ["SELECT id FROM A WHERE id = '3'::oid", '3'],
  ['SELECT 1 UNION (WITH q AS (SELECT 2 AS x) SELECT x FROM q) ORDER BY 1', '1 2'],
  ['(SELECT id FROM A ORDER BY id DESC LIMIT 1) UNION ALL (SELECT id FROM A ORDER BY id LIMIT 1)', '6 1'],
  ["SELECT 'a%b' LIKE 'a!%b' ESCAPE '!', 'axb' LIKE 'a!%b' ESCAPE '!', 'a\\b' LIKE 'a\\b' ESCAPE ''", 'true false true'],
  ["SELECT 'AB' ILIKE 'a!_' ESCAPE '!', 'A_' NOT ILIKE 'a!_' ESCAPE '!', 'A%' ILIKE 'a\\%'", 'false false true'],
  [
    "SELECT 'abc' SIMILAR TO '(a|b)%', 'abc' SIMILAR TO 'a', 'abc' NOT SIMILAR TO 'a_c', '%' SIMILAR TO '!%' ESCAPE '!'",
    'true false false true',
  ],
  [
    "SELECT ROW(1,'a') = ROW(1,'a'), (1,2) < (1,3), ROW(1,NULL) = ROW(2,2), (1,2) BETWEEN (1,1) AND (1,3)",
    'true true false true',
  ],
  ['SELECT (NULL,NULL) IS NULL, (1,NULL) IS NOT NULL, (1,NULL) IS DISTINCT FROM (1,NULL)', 'true false false'],
  ['SELECT id FROM A WHERE (n, s) = (SELECT n, s FROM A WHERE id = 2)', '2'],
  [
    'SELECT (1,2) = (SELECT 1,2 WHERE false), (1,2) < ANY (SELECT 1,3), (1,2) <> ALL (SELECT n, id FROM A WHERE n = 1)',
    'null true false',
  ],
  ['SELECT id FROM A ORDER BY id LIMIT (1+1) OFFSET 1+1', '3 4'],
  // Rows of tables as values.
  ["SELECT t FROM A t WHERE id = 4 OR s = 'c' ORDER BY id", '(3,1,c) (4,2,)'],
  ['SELECT (t).n, (t).s FROM A t WHERE (t).id = 2', '1 b'],
  ['SELECT t IS NULL, t IS NOT NULL FROM A t WHERE id IN (3, 4) ORDER BY id', 'false true false false'],
  ['SELECT B, B IS NULL FROM A LEFT JOIN B ON A.id = B.id WHERE A.id IN (3, 5) ORDER BY A.id', '(3,3) false null true'],
  ['SELECT array_agg(t), count(DISTINCT t) FROM B t WHERE id < 3', '(1,1),(2,1) 2'],
  ["SELECT row_to_json(ROW(1,'a',NULL))::text, to_jsonb(ROW(1,'a'))::text", '{"f1":1,"f2":"a","f3":null} {"f1": 1, "f2": "a"}'],
  ['SELECT row_to_json((SELECT e FROM (SELECT t.id, t.s) e))::text FROM A t WHERE id = 4', '{"id":4,"s":null}'],
  ['SELECT x.t FROM (SELECT t FROM B t WHERE id = 1) x', '(1,1)'],
  ["SELECT (ARRAY[1,2,3])[2:3], ('{a,b,c}'::text[])[:2], (ARRAY[1,2,3])[2:], (ARRAY[1,2])[:]", '2,3 a,b 2,3 1,2'],
  ['SELECT (ARRAY[1,2,3])[0:1], (ARRAY[1,2,3])[3:9], (ARRAY[1,2,3])[3:2], (ARRAY[1,2])[NULL:2]', '1 3  null'],
  ["SELECT (string_to_array(s || ',x', ','))[id:id + 1] FROM A WHERE id < 3 ORDER BY id", 'a,x x'],
  ['SELECT id FROM A ORDER BY id OFFSET (SELECT COUNT(*) FROM B) LIMIT NULL', '5 6'],
  ['SELECT id FROM A ORDER BY id LIMIT 1.5', '1 2'],
  ['SELECT id FROM A ORDER BY id FETCH FIRST ROW ONLY', '1'],
  ['SELECT n, COUNT(*), GROUPING(n) FROM A GROUP BY ROLLUP (n) ORDER BY 3, 1', '1 3 0 2 1 0 null 2 0 null 6 1'],
  ['SELECT GROUPING(n, s), SUM(id) FROM A WHERE id < 3 GROUP BY CUBE (n, s) ORDER BY 1, 2', '0 1 0 2 1 3 2 1 2 2 3 3'],
  ['SELECT n, SUM(id) FROM A WHERE id > 9 GROUP BY GROUPING SETS ((n), (), ())', 'null null null null'],
  ['SELECT n, COUNT(*) FROM A GROUP BY DISTINCT n, ROLLUP (n) HAVING COUNT(*) > 1 ORDER BY n', '1 3 null 2'],
  ['SELECT b.id, x.id FROM B b, LATERAL (SELECT id FROM A WHERE A.n = b.n ORDER BY id DESC LIMIT 2) x', '1 3 1 2 2 3 2 2'],
  [
    'SELECT b.id, x.id, x.k FROM B b LEFT JOIN LATERAL (SELECT id, b.id * 10 AS k FROM A WHERE A.n = b.n) x ON x.id > 1 ORDER BY 1, 2',
    '1 2 10 1 3 10 2 2 20 2 3 20 3 null null 4 null null',
  ],
  [
    'SELECT x.c, x.d FROM B b, LATERAL (SELECT COUNT(*) AS c, MAX(id) AS d FROM A WHERE A.n = b.n) x ORDER BY b.id',
    '3 3 3 3 0 null 0 null',
  ],
  [
    'SELECT x.c FROM B b LEFT JOIN LATERAL (SELECT COUNT(*) AS c FROM A WHERE A.n = b.n) x ON x.c > 0 ORDER BY b.id',
    '3 3 null null',
  ],
  [
    'SELECT a.id, x.z FROM A a, B b LEFT JOIN LATERAL (SELECT c.id AS z FROM B c WHERE c.id = a.id AND c.id = b.id) x ON true WHERE a.id = 2 AND b.id < 3 ORDER BY b.id',
    '2 null 2 2',
  ],
  [
    'SELECT a.id, y.q FROM A a, LATERAL (SELECT b.n + 1 AS p FROM B b WHERE b.n = a.n) x, LATERAL (SELECT COUNT(*) AS q FROM B WHERE B.n < x.p) y WHERE a.id = 1',
    '1 2 1 2',
  ],
  [
    'SELECT x.r, x.i FROM A a, LATERAL (SELECT ROW_NUMBER() OVER (ORDER BY b.id DESC) AS r, b.id AS i FROM B b WHERE b.n = a.n) x WHERE a.id = 1 ORDER BY 1',
    '1 2 2 1',
  ],
  [
    'SELECT a.id, g FROM A a LEFT JOIN LATERAL generate_series(1, a.n) g ON g > 1 WHERE a.id > 2 ORDER BY 1',
    '3 null 4 2 5 null 6 null',
  ],
  ['SELECT id, b.c FROM A a JOIN LATERAL (SELECT COUNT(*) AS c, 2 AS id FROM B WHERE n = a.n) b USING (id)', '2 2'],
  [
    'SELECT (SELECT SUM(x.k) FROM B b, LATERAL (SELECT b.id * A.id AS k FROM A c WHERE c.n = b.n AND c.id <= A.id) x) FROM A ORDER BY id',
    '3 12 27 36 45 54',
  ],
  [
    'SELECT id, RANK() OVER w, COALESCE(SUM(id) OVER v, 0) FROM A WHERE n = 1 WINDOW w AS (ORDER BY id DESC), v AS (PARTITION BY n ORDER BY id) ORDER BY RANK() OVER w',
    '3 1 6 2 2 3 1 3 1',
  ],
  ["SELECT e FROM jsonb_array_elements('[1, 2]') e WHERE e.value > '1'", '2'],
  ["SELECT A.id, e FROM A, jsonb_array_elements(CASE WHEN n = 2 THEN '[7]' ELSE '[]' END::jsonb) e", '4 7'],
  ["SELECT ('[]'::jsonb #- '{b,c}')::text, jsonb_set('[]', '{b}', '1', FALSE)::text", '[] []'],
  ['SELECT jsonb_object_agg(id, n)::text FROM B', '{"1": 1, "2": 1, "3": 3, "4": null}'],
  ['SELECT row_to_json(B)::text FROM B WHERE id > 2 ORDER BY id', '{"id":3,"n":3} {"id":4,"n":null}'],
  ['SELECT row_to_json(q)::text FROM (SELECT s AS "A b", n + 1 AS m FROM A WHERE id = 4) q', '{"A b":null,"m":3}'],
  ['SELECT to_jsonb(A)::text FROM A WHERE id = 1', '{"n": 1, "s": "a", "id": 1}'],
  [
    'SELECT B.id, row_to_json(A)::text FROM B LEFT JOIN A ON A.id = B.n AND B.n > 1 ORDER BY 1',
    '1 null 2 null 3 {"id":3,"n":1,"s":"c"} 4 null',
  ],
  ['SELECT COUNT(A), json_agg(B ORDER BY B.id DESC)::jsonb -> 0 ->> $$id$$ FROM B LEFT JOIN A ON A.id = B.n', '3 4'],
])('%s', async (text, values) => {
  const { rows } = await client.query({ text, rowMode: 'array' });
  expect(rows.flat().map(String).join(' ')).toBe(values);
});

test('only a table of the query is a value', async () => {
  for (const [text, state] of [
    ['SELECT nope FROM A', '42703'],
    ['SELECT row_to_json(nope) FROM A', '42703'],
    ['SELECT row_to_json(5)', '42883'],
    ['SELECT row_to_json(q) FROM A LEFT JOIN (SELECT n FROM B) q ON q.n = A.n', '0A000'],
  ] as const)
    expect(await stateOf(client.query(text)), text).toBe(state);
});

test('stored instants are moved, cut, shown and told apart by intervals as in Postgres', async () => {
  await client.query('CREATE TABLE Ev (id int PRIMARY KEY, at timestamptz)');
  await client.query("INSERT INTO Ev VALUES (1, '2024-05-17 10:30:15.25+00'), (2, NULL), (3, '1969-12-31 23:59:59.5+00')");
  const rowsOf = async (text: string): Promise<string> =>
    (await client.query({ text, rowMode: 'array', types: { getTypeParser: () => String } })).rows.flat().join(' | ');
  expect(
    await rowsOf(
      "SELECT at + interval '1 month', at - interval '1 day 2 hours', at AT TIME ZONE 'Europe/Berlin' FROM Ev WHERE id = 1",
    ),
  ).toBe('2024-06-17 10:30:15.25+00 | 2024-05-16 08:30:15.25+00 | 2024-05-17 12:30:15.25');
  expect(
    await rowsOf(
      "SELECT age(timestamptz '2024-06-01', at), at - timestamptz '2024-01-01', date_bin('5 minutes', at, timestamptz '2000-01-01') FROM Ev ORDER BY 2",
    ),
  ).toBe(
    '54 years 5 mons 00:00:00.5 | -19723 days -00:00:00.5 | 1969-12-31 23:55:00+00 | 14 days 13:29:44.75 | 137 days 10:30:15.25 | 2024-05-17 10:30:00+00 |  |  | ',
  );
  expect(await rowsOf('SELECT max(at) - min(at) FROM Ev')).toBe('19860 days 10:30:15.75');
  expect(
    await rowsOf(
      "UPDATE Ev SET at = at + interval '36 hours' WHERE at - interval '1 day' > timestamp '2024-05-16' RETURNING at::date::text, at::text",
    ),
  ).toBe('2024-05-18 | 2024-05-18 22:30:15.25+00');
  for (const [text, state] of [
    ["SELECT interval '1 nope'", '22007'],
    ['SELECT id FROM Ev WHERE now() - at < 3600', '42883'],
    ["SELECT interval '1 hour' = 3600.0", '42883'],
    ["SELECT interval '1 hour' < true", '42883'],
    ["SELECT date_bin('1 month', now(), now())", '0A000'],
    ['SELECT make_date(2023, 2, 29)', '22008'],
  ] as const)
    expect(await stateOf(client.query(text)), text).toBe(state);
});

test('a table is made of a query and filled, and rows go from table to table by their own columns', async () => {
  const rowsOf = async (text: string): Promise<string> => {
    const { rows } = await client.query({ text, rowMode: 'array' });
    return rows.flat().map(String).join(' ');
  };
  expect(await client.query('CREATE TABLE Made AS SELECT n, count(*), min(s) AS least FROM A GROUP BY n')).toMatchObject({
    command: 'SELECT',
    rowCount: 3,
  });
  expect(await rowsOf('SELECT n, count, least FROM Made ORDER BY n NULLS LAST')).toBe('1 3 a 2 1 null null 2 a');
  // What the store gives to each row stays behind; what is named comes along.
  await client.query('CREATE TABLE AllOfA AS SELECT * FROM A');
  await client.query('CREATE TABLE A2 (id int PRIMARY KEY, n int, s text)');
  expect((await client.query('INSERT INTO A2 SELECT * FROM A WHERE n = 1')).rowCount).toBe(3);
  expect(
    (await client.query('INSERT INTO A2 SELECT x.* FROM A x WHERE n = 2 UNION ALL SELECT * FROM A WHERE id = 5')).rowCount,
  ).toBe(2);
  for (const [table, ids] of [
    ['AllOfA', '1 2 3 4 5 6'],
    ['A2', '1 2 3 4 5'],
  ])
    expect(await rowsOf(`SELECT t.id FROM ${table} t JOIN A ON A.id = t.id AND A.n IS NOT DISTINCT FROM t.n ORDER BY 1`)).toBe(
      ids,
    );
  expect((await client.query('CREATE TABLE IF NOT EXISTS Made AS SELECT 1 AS x')).command).toBe('CREATE');
  for (const [text, state] of [
    ['CREATE TABLE Made AS SELECT 1 AS x', '42P07'],
    ['CREATE TABLE NotMade AS SELECT nope FROM A', '42703'],
    ['SELECT * FROM NotMade', '42P01'],
    ['CREATE TABLE NotMade AS SELECT n, n FROM A', '42701'],
  ] as const)
    expect(await stateOf(client.query(text)), text).toBe(state);
  await expect(client.query('CREATE TABLE NotMade AS SELECT nope FROM A')).rejects.toMatchObject({ position: '32' });
});

test('a column id without PRIMARY KEY acts as key, and DOUBLE is a type of columns', async () => {
  await client.query('CREATE TABLE Keyless (id int, x DOUBLE, y double precision)');
  await client.query('INSERT INTO Keyless VALUES (1, 0.5, 2)');
  expect(await stateOf(client.query('INSERT INTO Keyless VALUES (1, 7, 7)'))).toBe('23505');
  const upsert = 'INSERT INTO Keyless VALUES (1, 1.5, 3) ON CONFLICT (id) DO UPDATE SET x = EXCLUDED.x';
  expect(await client.query(upsert)).toMatchObject({ rowCount: 1 });
  expect((await client.query('SELECT id, x, y FROM Keyless')).rows).toEqual([{ id: '1', x: 1.5, y: 2 }]);
});

test('a view is asked each time, replaced and dropped; catalogues tell it from a materialized one', async () => {
  const sums = async (): Promise<unknown> => (await client.query('SELECT n, k FROM PerN ORDER BY n NULLS LAST')).rows;
  expect((await client.query('CREATE VIEW PerN AS SELECT n, count(*)::int AS k FROM B GROUP BY n')).command).toBe('CREATE');
  expect(await sums()).toMatchObject([{ k: '2' }, { k: '1' }, { k: '1' }]);
  await client.query('INSERT INTO B (id, n) VALUES (9, 3)');
  expect(await sums()).toMatchObject([{ k: '2' }, { k: '2' }, { k: '1' }]);
  expect(await stateOf(client.query('CREATE VIEW PerN AS SELECT 1 AS n'))).toBe('42P07');
  await client.query("CREATE OR REPLACE VIEW PerN AS SELECT n, max(id)::text || '!' AS k FROM B GROUP BY n");
  expect(await sums()).toMatchObject([{ k: '2!' }, { k: '9!' }, { k: '4!' }]);
  await client.query('CREATE MATERIALIZED VIEW MatN AS SELECT n FROM B');
  const kinds = await client.query("SELECT relname, relkind FROM pg_class WHERE relname IN ('PerN', 'MatN') ORDER BY 1");
  expect(kinds.rows).toEqual([
    { relname: 'MatN', relkind: 'm' },
    { relname: 'PerN', relkind: 'v' },
  ]);
  const listed = await client.query(
    "SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = 'public'",
  );
  expect(listed.rows).toEqual([{ table_name: 'PerN', view_definition: expect.stringContaining("|| '!' AS k") }]);
  for (const [text, state] of [
    ['DROP TABLE PerN', '42809'],
    ['DROP MATERIALIZED VIEW PerN', '42809'],
    ['DROP VIEW MatN', '42809'],
    ['CREATE OR REPLACE VIEW MatN AS SELECT 1 AS n', '42P07'],
    ['CREATE VIEW Other (p, q) AS SELECT 1', '42P10'],
  ] as const)
    expect(await stateOf(client.query(text)), text).toBe(state);
  await client.query('CREATE OR REPLACE VIEW PerN (which, "How many") AS SELECT n, count(*)::int FROM B GROUP BY n');
  expect((await client.query('SELECT "How many" AS k FROM PerN WHERE which = 3')).rows).toEqual([{ k: '2' }]);
  expect((await client.query('DROP VIEW PerN')).command).toBe('DROP');
  await client.query('DROP MATERIALIZED VIEW IF EXISTS MatN, NoView');
  expect(await stateOf(client.query('SELECT * FROM PerN'))).toBe('42P01');
  expect(await stateOf(client.query('DROP VIEW PerN'))).toBe('42P01');
  await client.query('DELETE FROM B WHERE id = 9');
});

test.each([
  ['SELECT corr(DISTINCT id, n) FROM A', '0A000'],
  ['SELECT id FROM A LIMIT 1 FETCH FIRST 2 ROWS ONLY', '42601'],
  ['SELECT id FROM A ORDER BY id FETCH FIRST 2 ROWS WITH TIES', '0A000'],
  ['SELECT id FROM A LIMIT (1-2)', '2201W'],
  ['SELECT id FROM A OFFSET (1-2)', '2201X'],
  ['SELECT (1, 2) = (SELECT n, id FROM A)', '21000'],
  ["SELECT 'a' SIMILAR TO 'a' ESCAPE 'xx'", '22025'],
  ['SELECT pg_catalog.nothing_of_it(s) FROM A', '42883'],
  ['SELECT DISTINCT ON (n) n, id FROM A ORDER BY id', '42P10'],
  ["SELECT 'x'::interval", '22007'],
])('%s is %s', async (text, state) => {
  expect(await stateOf(client.query(text))).toBe(state);
});

test.each([
  ['n = ANY($1)', [], ''],
  ['n <> ALL($1)', [], '1 2 3 4 5 6'],
  ['NOT n = ANY($1)', [], '1 2 3 4 5 6'],
  ['n = ANY($1::int8[])', [], ''],
  ['n = ANY($1)', null, ''],
  ['NOT n = ANY($1)', null, ''],
  ['n <> ALL($1)', null, ''],
  ['n <> ALL($1::int8[])', null, ''],
  ['n <> ALL($1)', [null, 2], ''],
  ['n = ANY($1)', [null, 2], '4'],
])('%s is of rows that a list of any length leaves, and of none where the list is unknown: %j', async (condition, list, ids) => {
  const { rows } = await client.query<{ id: number }>(`SELECT id FROM A WHERE ${condition} ORDER BY id`, [list]);
  expect(rows.map(({ id }) => id).join(' ')).toBe(ids);
});

// What is bound, folded or written twice at each level would be so a billion times over: such a statement never ends.
test.each([
  ["(x || 'b')", `a${'b'.repeat(30)}`],
  ["('b' || x)", `${'b'.repeat(30)}a`],
  ['CAST(x AS text)', 'a'],
  ['x::varchar', 'a'],
  ['x::name', 'a'],
  ["COALESCE(x, 'b')", 'a'],
  ["COALESCE(NULL, x, 'b')", 'a'],
  ["NULLIF(x, 'b')", 'a'],
  ["GREATEST(x, '')", 'a'],
  ["CASE WHEN true THEN x ELSE 'b' END", 'a'],
  ["CASE x WHEN 'b' THEN 'b' ELSE 'a' END", 'a'],
  ['lower(x)', 'a'],
  ["split_part(x, ',', 1)", 'a'],
  ["replace(x, 'b', 'c')", 'a'],
  ["array_to_string(ARRAY[x], ',')", 'a'],
  ['(ARRAY[x])[1]', 'a'],
  ["(ARRAY['b', x] || ARRAY['c'])[2]", 'a'],
  ['(SELECT x)', 'a'],
  ["(CASE WHEN x IN ('b') THEN 'b' ELSE 'a' END)", 'a'],
  ["(CASE WHEN x = ANY(ARRAY['a']) THEN 'a' END)", 'a'],
  ["(CASE WHEN x BETWEEN 'a' AND 'b' THEN 'a' END)", 'a'],
  ["(CASE WHEN x LIKE 'a%' THEN 'a' END)", 'a'],
  ["(CASE WHEN x ~ 'a' THEN 'a' END)", 'a'],
  ["(CASE WHEN NOT (x IS NULL) THEN 'a' END)", 'a'],
  ["(CASE WHEN (x, 1) = ('a', 1) THEN 'a' END)", 'a'],
  ['MAX(s) FILTER (WHERE s = x)', null],
])('%s may stand thirty deep in itself', async (shape, expected) => {
  let nested = 's';
  const depth = shape.includes('SELECT') ? 12 : 30;
  for (let i = 0; i < depth; i++) nested = shape.replace('x', () => nested);
  const sql = `SELECT ${nested} AS v FROM A WHERE id = 1`;
  if (expected === null) expect(await stateOf(client.query(sql))).toBe('42803');
  else expect((await client.query<{ v: string }>(sql)).rows[0]?.v).toBe(expected);
});

test('random() is drawn for each row, and again for each statement', async () => {
  const drawn = await client.query<{ r: number }>('SELECT random() AS r FROM generate_series(1, 1000)');
  const numbers = drawn.rows.map(({ r }) => r);
  expect(new Set(numbers).size).toBe(1000);
  expect(numbers.every((each) => each >= 0 && each < 1)).toBe(true);
  expect(numbers.filter((each) => each < 0.5).length).toBeGreaterThan(300);
  const [again] = (await client.query<{ r: number }>('SELECT random() AS r')).rows;
  expect(numbers).not.toContain(again!.r);
});

test('what a name stands for is drawn once, wherever the name is read', async () => {
  const { rows } = await client.query(
    'SELECT x.r = x.r AS own, x.r < 0.5 AS low FROM (SELECT random() AS r FROM generate_series(1, 1000)) x WHERE x.r < 0.5',
  );
  expect(rows.length).toBeLessThan(700);
  expect(rows.every(({ own, low }) => own && low)).toBe(true);
  const texts = await client.query("SELECT DISTINCT s || random() FROM A a, generate_series(1, 50) WHERE s = 'a'");
  expect(texts.rows).toHaveLength(100);
});

test('a seed gives the same numbers again, in this session', async () => {
  const six = async (): Promise<unknown[]> => {
    await client.query('SELECT setseed(0.25)');
    return (await client.query('SELECT id, random() AS r FROM A ORDER BY random(), id')).rows;
  };
  expect(await six()).toEqual(await six());
  expect(await stateOf(client.query('SELECT setseed(1.5)'))).toBe('22023');
});

test('a random uuid is one of version 4, and may be the key of a row', async () => {
  await client.query('CREATE TABLE Drawn (id text PRIMARY KEY, n int)');
  await client.query('INSERT INTO Drawn (id, n) VALUES (gen_random_uuid(), 1), (gen_random_uuid(), 2)');
  const { rows } = await client.query<{ id: string }>('SELECT id FROM Drawn');
  expect(new Set(rows.map(({ id }) => id)).size).toBe(2);
  for (const { id } of rows) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});
