/** What tools ask when they start and when they list what is there, in their own words: each is answered as PostgreSQL 15 does. */
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';
import { recordedSessions } from './recorded-sessions.ts';
import { connected, relationalSecret, stateOf } from './relational-client.ts';

let world: StoreWorld;
let client: pg.Client;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret });
  client = await connected(world);
  await client.query('CREATE TABLE parent (id int PRIMARY KEY)');
  await client.query('CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent (id), "Note" text)');
});

afterAll(async () => {
  await client.end();
  await world.close();
});

const searchPath = `SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
  FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
    array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
  string_to_array(current_setting('search_path'), ',') s`;

test.each([
  [
    'Grafana: tables',
    `SELECT table_name FROM information_schema.tables WHERE table_schema IN (${searchPath}) AND table_name IN ('child', 'parent') ORDER BY 1`,
    'child|parent',
  ],
  [
    'Grafana: columns',
    `SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns WHERE CASE
      WHEN array_length(parse_ident('public.child'), 1) = 2 THEN quote_ident(table_schema) = (parse_ident('public.child'))[1]
        AND quote_ident(table_name) = (parse_ident('public.child'))[2]
      ELSE quote_ident(table_name) = 'child' AND quote_ident(table_schema) IN (${searchPath}) END AND column_name IN ('p', 'Note') ORDER BY 1`,
    '"Note" text|p bigint',
  ],
  [
    'pgAdmin: bytea',
    "SELECT set_config('bytea_output', 'hex', false) FROM pg_show_all_settings() WHERE name = 'bytea_output'",
    'hex',
  ],
  [
    'pgAdmin: GSSAPI',
    'SELECT gss_authenticated, encrypted FROM pg_catalog.pg_stat_gssapi WHERE pid = pg_backend_pid()',
    'false false',
  ],
  [
    'pgAdmin: roles',
    `SELECT CASE WHEN 'pg_signal_backend' = ANY(ARRAY(WITH RECURSIVE cte AS (SELECT pg_roles.oid, pg_roles.rolname FROM pg_roles
      WHERE pg_roles.oid = roles.oid UNION ALL SELECT m.roleid, pgr.rolname FROM cte cte_1 JOIN pg_auth_members m ON m.member = cte_1.oid
      JOIN pg_roles pgr ON pgr.oid = m.roleid) SELECT rolname FROM cte)) THEN True ELSE False END AS can_signal
      FROM pg_catalog.pg_roles AS roles WHERE rolname = current_user`,
    'false',
  ],
  [
    'pgAdmin: schemas',
    `SELECT nsp.nspname AS name, has_schema_privilege(nsp.oid, 'USAGE') FROM pg_catalog.pg_namespace nsp WHERE nspname NOT LIKE E'pg\\\\_%'
      AND NOT (nsp.nspname = 'information_schema' AND EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'tables'
      AND relnamespace = nsp.oid LIMIT 1)) ORDER BY nspname`,
    'public true',
  ],
  [
    'pgAdmin: sessions, of which others are not told',
    `SELECT (SELECT count(*) FROM pg_catalog.pg_stat_activity) AS "Total",
      (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'active' AND pid = pg_backend_pid()) AS "Active"`,
    '1 1',
  ],
  ['DBeaver: families of operators', "SELECT opfname FROM pg_catalog.pg_opfamily WHERE opfname LIKE 'text%'", 'text_ops'],
  [
    'Power BI: columns',
    `select COLUMN_NAME, IS_NULLABLE, case when (data_type like '%unsigned%') then DATA_TYPE || ' unsigned' else DATA_TYPE end as DATA_TYPE
      from INFORMATION_SCHEMA.columns where TABLE_SCHEMA = 'public' and TABLE_NAME = 'child' and COLUMN_NAME in ('id', 'p') order by ORDINAL_POSITION`,
    'id NO bigint|p YES bigint',
  ],
  [
    'Power BI: keys to others',
    `select pkcol.COLUMN_NAME, fkcol.TABLE_NAME AS FK_TABLE_NAME, fkcol.COLUMN_NAME from (select distinct constraint_catalog, constraint_schema,
      unique_constraint_schema, constraint_name, unique_constraint_name from INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS) fkcon
      inner join INFORMATION_SCHEMA.KEY_COLUMN_USAGE fkcol on fkcon.CONSTRAINT_SCHEMA = fkcol.CONSTRAINT_SCHEMA and fkcon.CONSTRAINT_NAME = fkcol.CONSTRAINT_NAME
      inner join INFORMATION_SCHEMA.KEY_COLUMN_USAGE pkcol on fkcon.UNIQUE_CONSTRAINT_SCHEMA = pkcol.CONSTRAINT_SCHEMA
      and fkcon.UNIQUE_CONSTRAINT_NAME = pkcol.CONSTRAINT_NAME where pkcol.TABLE_NAME = 'parent' and pkcol.ORDINAL_POSITION = fkcol.ORDINAL_POSITION`,
    'id child p',
  ],
  ['Power BI: character sets', 'select character_set_name from INFORMATION_SCHEMA.character_sets', 'UTF8'],
  [
    'psql: \\dC, \\do, \\dl',
    'SELECT (SELECT count(*) FROM pg_cast), (SELECT count(*) FROM pg_operator), count(*) FROM pg_largeobject_metadata',
    '0 0 0',
  ],
  [
    'psql: \\dd, \\dL, \\dc+, \\dC+, \\dD+: the number of the relation that a row is in',
    `SELECT c.tableoid::regclass::text, (SELECT count(*) FROM pg_constraint pgc WHERE pgc.tableoid <> 2606),
      (SELECT count(*) FROM pg_catalog.pg_language l LEFT JOIN pg_catalog.pg_description d ON d.classoid = l.tableoid AND d.objoid = l.oid),
      (SELECT count(tableoid) > 0 FROM pg_type) FROM pg_class c WHERE relname = 'pg_cast'`,
    'pg_class 0 1 true',
  ],
  [
    'psql: \\dP+, \\dAo, \\dfn',
    `SELECT count(*), 'pg_catalog.trigger'::pg_catalog.regtype::text,
      (SELECT sum(pg_catalog.pg_table_size(ppt.relid)) FROM pg_catalog.pg_partition_tree(1259) ppt WHERE ppt.isleaf),
      (SELECT count(o.amopopr::pg_catalog.regoperator) FROM pg_amop o) FROM pg_parameter_acl`,
    '0 trigger null 0',
  ],
  ['psql: \\dconfig', "SELECT current_setting(s.name) FROM pg_settings s WHERE name = 'max_index_keys'", '32'],
  [
    'psql: \\df+',
    "SELECT COALESCE(pg_get_function_sqlbody(p.oid), 'none') FROM pg_proc p WHERE proname = 'date_trunc' LIMIT 1",
    'none',
  ],
  ['a function is a table of one row', "SELECT u, x.y FROM upper('a') u, length('abc') x(y)", 'A 3'],
  [
    'names in a text',
    `SELECT parse_ident('"A b".c_1. "d""e"')::text, array_length(parse_ident('x y', false), 1)`,
    '{"A b",c_1,"d\\"e"} 1',
  ],
  ['an instant by a template', "SELECT to_timestamp('2024-05-01 10:11', 'YYYY-MM-DD HH24:MI')::text", '2024-05-01 10:11:00+00'],
  [
    'instants with offsets, names of months and texts between',
    `SELECT to_timestamp('2024-05-01 10:00 -05', 'YYYY-MM-DD HH24:MI TZH')::text,
      to_timestamp('1 dec 2023 12.30 am -00:30', 'DD Mon YYYY HH12.MI AM TZH:TZM')::text,
      to_timestamp('at 20240501T1011', '"at "YYYYMMDD"T"HH24MI')::text`,
    '2024-05-01 15:00:00+00 2023-12-01 01:00:00+00 2024-05-01 10:11:00+00',
  ],
  [
    'texts in parts',
    "SELECT string_to_array('a,,c', ',', '')::text, string_to_array('ab', NULL)::text, string_to_array('', ',')::text",
    '{a,NULL,c} {a,b} {}',
  ],
])('%s', async (_, sql, expected) => {
  const { rows } = await client.query<unknown[]>({ text: sql, rowMode: 'array' });
  expect(rows.map((row) => row.map(String).join(' ')).join('|')).toBe(expected);
});

test('USER is who asks, or a column of that name', async () => {
  expect((await client.query('SELECT user = current_user AS same')).rows).toEqual([{ same: true }]);
  expect((await client.query('SELECT user FROM (SELECT 7 AS user) q')).rows).toEqual([{ user: '7' }]);
});

test('set_config() sets what SET sets, and refuses what SET refuses', async () => {
  expect((await client.query("SELECT set_config('application_name', 'tool', false) AS v")).rows).toEqual([{ v: 'tool' }]);
  expect((await client.query('SHOW application_name')).rows).toEqual([{ application_name: 'tool' }]);
  await client.query("SET application_name = 'another'");
  await client.query("SELECT set_config('application_name', 'tool', false) AS v");
  expect((await client.query('SHOW application_name')).rows).toEqual([{ application_name: 'tool' }]);
  expect(await stateOf(client.query("SELECT set_config('no.such', 'x', false)"))).toBe('42704');
});

test.each([
  ["to_timestamp(LPAD('x', 1000000, ' '), 'YYYY')", '22007'],
  [`to_timestamp('${'1'.repeat(49)}', '${'DD'.repeat(50)}')`, '22023'],
  ["to_timestamp('2024-13-01', 'YYYY-MM-DD')", '22008'],
  ["to_timestamp('x', 'IYYY')", '0A000'],
])('%s is refused by %s, however much would have to be tried', async (call, state) => {
  expect(await stateOf(client.query(`SELECT ${call}`))).toBe(state);
});

test('EXPLAIN (FORMAT JSON) is one text of nested nodes', async () => {
  const { rows } = await client.query<{ plan: string }>(
    'EXPLAIN (ANALYZE, VERBOSE off, FORMAT JSON) SELECT id FROM child ORDER BY p',
  );
  expect(rows).toHaveLength(1);
  const [{ Plan: root }] = JSON.parse(rows[0]!.plan) as [{ Plan: { 'Node Type': string; Plans?: object[] } }];
  expect(root['Node Type']).toContain('project');
  expect(root.Plans).toHaveLength(1);
  expect(await stateOf(client.query('EXPLAIN (FORMAT YAML) SELECT 1'))).toBe('0A000');
  expect(await stateOf(client.query('EXPLAIN (NONSENSE) SELECT 1'))).toBe('42601');
});

test('a query within ON runs for the rows that the other conditions leave, not for the product of its tables', async () => {
  for (let n = 0; n < 120; n++) await client.query(`CREATE TABLE other${n} (id int PRIMARY KEY)`);
  const sql = recordedSessions.find(({ client: whose, what }) => `${whose} ${what}` === 'drizzle-kit checks')!.sql;
  const { rows } = await client.query<Record<string, string>>(`EXPLAIN ANALYZE ${sql}`);
  const yielded = rows.flatMap((row) =>
    [
      ...Object.values(row)
        .join(' ')
        .matchAll(/out (\d+)/g),
    ].map(([, count]) => Number(count)),
  );
  expect(yielded.length).toBeGreaterThan(20);
  expect(Math.max(...yielded)).toBeLessThan(1_000);
});
