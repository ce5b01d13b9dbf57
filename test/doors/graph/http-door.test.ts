/** The graph door over HTTP: discovery, the transactional interface, the query interface. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';
import { graphRequest, graphSecret, graphUrl } from './graph-http-client.ts';

let world: StoreWorld;
const ask = (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
  graphRequest(world, method, path, body, headers);
const query = (statement: string, parameters: object = {}, headers: Readonly<Record<string, string>> = {}) =>
  ask('POST', '/db/neo4j/query/v2', { statement, parameters }, headers);
const commit = (...statements: readonly (readonly [string, object?])[]) =>
  ask('POST', '/db/neo4j/tx/commit', {
    statements: statements.map(([statement, parameters = {}]) => ({ statement, parameters })),
  });

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: graphSecret });
  await world.call('POST', '/types', {
    name: 'Person',
    primary_key: 'id',
    properties: { id: 'string', age: 'integer', seen: 'timestamp', note: 'json' },
  });
  await world.call('POST', '/types', {
    name: 'Knows',
    primary_key: 'id',
    properties: { id: 'string', src: 'string', dst: 'string' },
    edge: { from: 'src', to: 'dst' },
  });
  const rows =
    '{"id":"ada","age":9223372036854775807,"seen":1714557600123456789,"note":{"big":9007199254740993}}\n{"id":"bob","age":2}';
  await world.call('POST', '/ingest?object_type=Person', rows, { 'content-type': 'application/x-ndjson' });
  await world.call('POST', '/ingest?object_type=Knows', { id: 'k', src: 'ada', dst: 'bob' });
});

afterAll(() => world?.close());

test('what there is, and where drivers connect', async () => {
  const { status, json } = await ask('GET', '/', undefined, { key: '' });
  expect([status, json['transaction'], json['query']]).toEqual([
    200,
    `${graphUrl(world)}/db/{databaseName}/tx`,
    `${graphUrl(world)}/db/{databaseName}/query/v2`,
  ]);
  expect(json['bolt_direct']).toMatch(/^bolt:\/\//);
});

describe('the query interface', () => {
  test('answers with fields and values, integers and digits exact', async () => {
    const { status, text } = await query("SELECT id, age, seen, note FROM Person WHERE id = 'ada'");
    expect(status).toBe(202);
    expect(text).toContain(
      '{"data":{"fields":["id","age","seen","note"],"values":[["ada",9223372036854775807,"2024-05-01T10:00:00.123456789Z",{"big":9007199254740993}]]}',
    );
  });

  test('takes parameters, exact ones too', async () => {
    const body = '{"statement":"MATCH (p:Person) WHERE p.age = $age RETURN p.id AS id","parameters":{"age":9223372036854775807}}';
    expect((await ask('POST', '/db/neo4j/query/v2', body)).json['data']).toEqual({ fields: ['id'], values: [['ada']] });
  });

  test('walks relationships', async () => {
    const { json } = await query('MATCH (a:Person)-[:Knows]->(b:Person) RETURN a.id AS a, b.id AS b');
    expect(json['data'].values).toEqual([['ada', 'bob']]);
  });

  test('shows nodes, relationships and paths as objects', async () => {
    const { json } = await query('MATCH p = (a:Person)-[r:Knows]->(b:Person) RETURN a, r, p, [b] AS others, {who: b} AS it');
    const [[a, r, p, others, it]] = json['data'].values;
    expect(a).toMatchObject({
      elementId: 'Person/ada',
      labels: ['Person'],
      properties: { seen: '2024-05-01T10:00:00.123456789Z' },
    });
    expect(r).toMatchObject({ type: 'Knows', startNodeElementId: 'Person/ada', endNodeElementId: 'Person/bob' });
    expect(p).toEqual([a, r, others[0]]);
    expect(it).toEqual({ who: others[0] });
  });

  test('writes by MERGE, and not where it only reads', async () => {
    const body = { statement: "MERGE (p:Person {id: 'cid', age: 3})", includeCounters: true };
    expect((await ask('POST', '/db/neo4j/query/v2', body)).json['counters']).toMatchObject({
      containsUpdates: true,
      relationshipsDeleted: 0,
    });
    const refused = await ask('POST', '/db/neo4j/query/v2', {
      ...body,
      statement: "MERGE (p:Person {id: 'dan'})",
      accessMode: 'READ',
    });
    expect([refused.status, refused.json['errors'][0].code]).toEqual([400, 'Neo.ClientError.Statement.AccessMode']);
    expect((await query("SELECT id FROM Person WHERE id IN ('cid', 'dan')")).json['data'].values).toEqual([['cid']]);
  });

  test('writes nothing of what was, and a session that reads asks questions alone', async () => {
    const then = { 'x-service-as-of': '2024-05-01' };
    const refused = await query("MERGE (p:Person {id: 'then'})", {}, then);
    expect([refused.status, refused.json['errors'][0].code]).toEqual([400, 'Neo.ClientError.Statement.AccessMode']);
    expect((await query("SELECT id FROM Person WHERE id = 'then'")).json['data'].values).toEqual([]);
    const statement = "ERASE SUBJECT 'nobody' REASON 'asked to' CERTIFY";
    const erased = await ask('POST', '/db/neo4j/query/v2', { statement, accessMode: 'READ' });
    expect([erased.status, erased.json['errors'][0].code]).toEqual([
      400,
      expect.stringMatching(/^Neo\.ClientError\.Statement\./),
    ]);
  });

  test.each([
    ['MATCH (n:Nowhere) RETURN n', 404, 'Neo.ClientError.Statement.EntityNotFound'],
    ['MATCH (n:Person RETURN n', 400, 'Neo.ClientError.Statement.SyntaxError'],
    ['MATCH (n:Person) SET n.age = 1', 400, /^Neo\.ClientError\.Statement\./],
    ['MATCH (n:Person) DETACH DELETE n', 400, /^Neo\.ClientError\.Statement\./],
  ])('%s is refused', async (statement, status, code) => {
    const { status: told, json } = await query(statement);
    expect(told).toBe(status);
    expect(json['errors'][0].code).toMatch(code);
  });

  test('a branch is a database', async () => {
    await world.call('POST', '/v1/namespaces/side/branch', { branch_from: 'main' });
    const merge = await ask('POST', '/db/side/query/v2', { statement: "MERGE (p:Person {id: 'aside'})" });
    expect(merge.status).toBe(202);
    const statement = "SELECT id FROM Person WHERE id = 'aside'";
    expect((await ask('POST', '/db/side/query/v2', { statement })).json['data'].values).toEqual([['aside']]);
    expect((await query(statement)).json['data'].values).toEqual([]);
    const nowhere = await ask('POST', '/db/nowhere/query/v2', { statement: 'SELECT id FROM Person' });
    expect([nowhere.status, nowhere.json['errors'][0].code]).toEqual([404, 'Neo.ClientError.Database.DatabaseNotFound']);
  });

  test('what was believed then, by a header', async () => {
    const [first] = (await query("SELECT system_from FROM Person WHERE id = 'bob'")).text.match(/\d{16,}/)!;
    await query("MERGE (p:Person {id: 'bob', age: 5})");
    const then = await query("SELECT age FROM Person WHERE id = 'bob'", {}, { 'x-service-as-of-system': first! });
    expect([then.json['data'].values, (await query("SELECT age FROM Person WHERE id = 'bob'")).json['data'].values]).toEqual([
      [[2]],
      [[5]],
    ]);
  });
});

describe('the transactional interface', () => {
  test('shows entities as rows with what they are beside them, and as a graph', async () => {
    const statement = 'MATCH p = (a:Person)-[:Knows]->(b:Person) RETURN a, p, 1 AS one';
    const body = { statements: [{ statement, resultDataContents: ['row', 'graph'] }] };
    const { json, text } = await ask('POST', '/db/neo4j/tx/commit', body);
    const [{ row, meta, graph }] = json['results'][0].data;
    expect(row[0]).toMatchObject({ id: 'ada' });
    expect(row[1].map(({ id }: { id: string }) => id)).toEqual(['ada', row[1][1].id, 'bob']);
    expect(meta[0]).toMatchObject({ elementId: 'Person/ada', type: 'node', deleted: false });
    expect(meta[1].map(({ type }: { type: string }) => type)).toEqual(['node', 'relationship', 'node']);
    expect(meta[2]).toBe(null);
    expect(graph.nodes.map(({ labels }: { labels: string[] }) => labels)).toEqual([['Person'], ['Person']]);
    expect(graph.relationships[0].startNode).toBe(graph.nodes[0].id);
    expect(text).toContain('"age":9223372036854775807');
  });

  test('runs statements in one transaction and commits it', async () => {
    const { status, json } = await commit(
      ['CREATE (p:Person {id: $id, age: 1})', { id: 'eve' }],
      ["MATCH (p:Person) WHERE p.id = 'eve' RETURN p.id AS id, p.age AS age"],
    );
    expect([status, json['errors']]).toEqual([200, []]);
    expect(json['results'][1]).toEqual({ columns: ['id', 'age'], data: [{ row: ['eve', 1], meta: [null, null] }] });
    expect((await query("SELECT id FROM Person WHERE id = 'eve'")).json['data'].values).toEqual([['eve']]);
  });

  test('writes nothing where one of them is refused', async () => {
    const { status, json } = await commit(["CREATE (p:Person {id: 'fay'})"], ['MATCH (n:Nowhere) RETURN n']);
    expect([status, json['errors'][0].code]).toEqual([200, 'Neo.ClientError.Statement.EntityNotFound']);
    expect((await query("SELECT id FROM Person WHERE id = 'fay'")).json['data'].values).toEqual([]);
  });

  test('is open until it is committed or rolled back, and reads what it wrote', async () => {
    const opened = await ask('POST', '/db/neo4j/tx', { statements: [{ statement: "CREATE (p:Person {id: 'gus'})" }] });
    expect([opened.status, opened.headers.get('location')]).toEqual([201, expect.stringContaining('/db/neo4j/tx/')]);
    const location = opened.headers.get('location')!;
    const statement = "SELECT id FROM Person WHERE id = 'gus'";
    const inside = await ask('POST', location, { statements: [{ statement }] });
    expect(inside.json['results'][0].data).toEqual([{ row: ['gus'], meta: [null] }]);
    expect((await query(statement)).json['data'].values).toEqual([]);
    const committed = await ask('POST', opened.json['commit'] as string, { statements: [] });
    expect(committed.json['errors']).toEqual([]);
    expect((await query(statement)).json['data'].values).toEqual([['gus']]);
    const dropped = await ask('POST', '/db/neo4j/tx', { statements: [{ statement: "CREATE (p:Person {id: 'hal'})" }] });
    expect((await ask('DELETE', dropped.headers.get('location')!)).status).toBe(200);
    expect((await query("SELECT id FROM Person WHERE id = 'hal'")).json['data'].values).toEqual([]);
    expect((await ask('POST', dropped.headers.get('location')!, {})).status).toBe(404);
  });

  test('fails at its commit where another has written the same row, so that it may be run again', async () => {
    const statement = "MATCH (p:Person) WHERE p.id = 'ada' RETURN p.age";
    const opened = await ask('POST', '/db/neo4j/tx', {
      statements: [{ statement }, { statement: "MERGE (p:Person {id: 'ada', age: 7})" }],
    });
    await query("MERGE (p:Person {id: 'ada', age: 8})");
    const { json } = await ask('POST', opened.json['commit'] as string, {});
    expect(json['errors'][0].code).toBe('Neo.TransientError.Transaction.Outdated');
    expect((await query("SELECT age FROM Person WHERE id = 'ada'")).json['data'].values).toEqual([[8]]);
  });
});

describe('who asks', () => {
  test.each([
    ['nobody', '', 401],
    ['a wrong secret', 'wrong', 401],
  ])('%s', async (_, key, status) => {
    const reply = await query('SELECT 1', {}, { key });
    expect([reply.status, reply.json['errors'][0].code]).toEqual([status, 'Neo.ClientError.Security.Unauthorized']);
    expect(reply.headers.get('www-authenticate')).toContain('Basic');
  });

  test('members that say nothing here are refused by name', async () => {
    const { status, json } = await ask('POST', '/db/neo4j/query/v2', { statement: 'SELECT 1', impersonatedUser: 'x' });
    expect([status, json['errors'][0].message]).toEqual([400, expect.stringContaining('impersonatedUser')]);
  });
});
