/** Relations of the catalogue in the planner's questions: joined with types, in recursions, and only of what the caller sees. */
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';
import { as, connected, relationalSecret, stateOf } from './relational-client.ts';

let world: StoreWorld;
let client: pg.Client;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret });
  await world.call('POST', '/types', { name: 'Owner', properties: { kind: 'string', who: 'string' }, primary_key: 'kind' });
  await world.call('POST', '/types', { name: 'Item', properties: { sku: 'string', n: 'integer' }, primary_key: 'sku' });
  await world.call('POST', '/query', { sql: 'CREATE MATERIALIZED VIEW cheap AS SELECT sku, n FROM Item' });
  client = await connected(world);
  await client.query("INSERT INTO Owner (kind, who) VALUES ('Item', 'ada'), ('Nothing', 'bob')");
});

afterAll(async () => {
  await client.end();
  await world.close();
});

const rowsOf = async (text: string, values: unknown[] = [], of = client): Promise<unknown[][]> =>
  (await of.query({ text, values, rowMode: 'array' })).rows as unknown[][];

test('types are joined with the relations that tell of them', async () => {
  expect(
    await rowsOf(
      'SELECT o.who, c.relname, c.relkind, c.relhasindex FROM Owner o JOIN pg_catalog.pg_class c ON c.relname = o.kind',
    ),
  ).toEqual([['ada', 'Item', 'r', true]]);
  expect(
    await rowsOf(`SELECT o.kind, count(k.column_name) FROM Owner o LEFT JOIN information_schema.columns k
      ON k.table_name = o.kind AND k.table_schema = 'public' GROUP BY o.kind ORDER BY o.kind`),
  ).toEqual([
    ['Item', '10'],
    ['Nothing', '0'],
  ]);
  expect(await rowsOf('SELECT who FROM Owner WHERE kind IN (SELECT relname FROM pg_class WHERE relnatts > $1)', [9])).toEqual([
    ['ada'],
  ]);
  expect(
    await rowsOf(`SELECT a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
      WHERE c.relname = 'cheap' AND EXISTS (SELECT 1 FROM Owner) ORDER BY a.attnum`),
  ).toEqual([['sku'], ['n']]);
});

test('columns keep the types that the catalogue tells of them', async () => {
  const { fields } = await client.query(
    'SELECT c.oid, c.relname, c.relkind, c.relnatts, max(c.relpages) FROM pg_class c, Owner GROUP BY 1, 2, 3, 4',
  );
  expect(fields.map(({ dataTypeID }) => dataTypeID)).toEqual([26, 19, 18, 21, 23]);
});

test('a recursion goes over them', async () => {
  expect(
    await rowsOf(`WITH RECURSIVE up(oid, elem, depth) AS (
      SELECT oid, typelem, 0 FROM pg_type WHERE typname = '_int4'
      UNION ALL SELECT t.oid, t.typelem, up.depth + 1 FROM pg_type t JOIN up ON t.oid = up.elem)
      SELECT t.typname, up.depth FROM up JOIN pg_catalog.pg_type t ON t.oid = up.oid
      WHERE EXISTS (SELECT 1 FROM Owner) ORDER BY depth`),
  ).toEqual([
    ['_int4', '0'],
    ['int4', '1'],
  ]);
});

test('users, settings and databases are those of the session', async () => {
  expect(await rowsOf("SELECT s.setting FROM pg_settings s, Owner WHERE lower(s.name) = 'timezone' LIMIT 1")).toEqual([['UTC']]);
  expect(await rowsOf('SELECT datname FROM pg_database, Owner GROUP BY datname')).toEqual([['annals']]);
});

test('only relations that the caller may know of are there, joined or not', async () => {
  const admin = { authorization: `Bearer ${world.token}` };
  for (const tenant of ['acme', 'initech'])
    await world.call(
      'POST',
      '/types',
      { name: `Of_${tenant}`, properties: { x: 'string' } },
      { ...admin, 'x-organization-id': tenant },
    );
  for (const tenant of ['acme', 'initech'])
    await as(world, tenant, async (own) => {
      await own.query(`INSERT INTO Of_${tenant} (x) VALUES ('a')`);
      expect(
        await rowsOf(`SELECT c.relname FROM pg_class c, Of_${tenant} WHERE c.relname LIKE 'Of%' AND c.relkind = 'r'`, [], own),
      ).toEqual([[`Of_${tenant}`]]);
    });
});

test('who may not look at the catalogue is told nothing of it beside rows either', async () => {
  const put = (id: string, resource: string): Promise<unknown> =>
    world.admin('PUT', `/admin/policies/${id}`, { policy: `permit(principal, action == Action::"read", resource ${resource});` });
  const joined = 'SELECT c.relname FROM pg_class c, Owner';
  await put('state', '== Store::"state"');
  await put('rows', 'is Owner');
  expect(await stateOf(client.query(joined))).toBe('answered');
  await world.admin('DELETE', '/admin/policies/state');
  expect(await stateOf(client.query('SELECT kind FROM Owner'))).toBe('answered');
  expect(await stateOf(client.query(joined))).toBe('42501');
  await world.admin('DELETE', '/admin/policies/rows');
});

test('drivers find what reads and writes values of a type', async () => {
  expect(
    await rowsOf(`SELECT t.typname, t.typinput, t.typoutput, t.typreceive, t.typsend FROM pg_type t
      WHERE t.typname IN ('int8', 'timestamptz', '_text', 'aclitem') ORDER BY 1`),
  ).toEqual([
    ['_text', 'array_in', 'array_out', 'array_recv', 'array_send'],
    ['aclitem', 'aclitemin', 'aclitemout', '-', '-'],
    ['int8', 'int8in', 'int8out', 'int8recv', 'int8send'],
    ['timestamptz', 'timestamptz_in', 'timestamptz_out', 'timestamptz_recv', 'timestamptz_send'],
  ]);
  expect(
    await rowsOf(
      "SELECT t.typname FROM pg_type t JOIN pg_proc p ON p.oid = t.typreceive WHERE p.proname = 'array_recv' AND t.typname = '_int8'",
    ),
  ).toEqual([['_int8']]);
});

test('a table is looked up by its number and its name, wherever they come from', async () => {
  const inItem = `SELECT a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid, Owner o
    WHERE c.relname = 'Item' AND a.attnum > 6 AND o.kind = 'Item' ORDER BY a.attnum`;
  const names = await rowsOf(inItem);
  expect(names.slice(-2)).toEqual([['sku'], ['n']]);
  const [{ oid }] = (await client.query("SELECT c.oid FROM pg_class c, Owner WHERE relname = 'Item' LIMIT 1")).rows as {
    oid: number;
  }[];
  expect(
    await rowsOf('SELECT c.relname FROM pg_class c, Owner o WHERE c.oid IN ($1, $2) AND o.who = $3', [oid, 1259, 'ada']),
  ).toEqual([['Item'], ['pg_class']]);
  expect(
    await rowsOf("SELECT o.who, i.indexrelid FROM Owner o JOIN pg_index i ON i.indrelid = $1 WHERE o.who = 'bob'", [oid]),
  ).toEqual([['bob', oid + 1]]);
});
