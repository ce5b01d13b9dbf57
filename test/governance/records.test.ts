/**
 * The record is the same on every door: one table of acts and the doors that they come by, through one server, each record
 * held against what `/query` or `/ingest` leaves of the same act.
 */
import {
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import type { Redis } from 'ioredis';
import type { MongoClient } from 'mongodb';
import type pg from 'pg';
import { tableFromArrays } from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { request } from '../doors/columnar/columnar-client.ts';
import { graphRequest } from '../doors/graph/graph-http-client.ts';
import { commandDescriptor, FlightClient, typeDescriptor } from '../doors/grpc/flight-client.ts';
import { GrpcClient } from '../doors/grpc/grpc-client.ts';
import { boltDriver } from '../doors/graph/bolt-client.ts';
import { NativeClient, nativePort } from '../doors/columnar/native-client.ts';
import { documentsConnected } from '../doors/document/document-client.ts';
import { adminSecret, type StoreWorld } from '../doors/http/store-world.ts';
import { send } from '../doors/http/door-world.ts';
import { EventStream } from '../doors/http/event-stream.ts';
import { kvConnected } from '../doors/kv/kv-client.ts';
import { clientOf, objectWorld, putInto, textOf } from '../doors/object/object-client.ts';
import { framed } from '../doors/relational/frames.ts';
import { RawClient, simple } from '../doors/relational/raw-client.ts';
import { connected, relationalSecret } from '../doors/relational/relational-client.ts';

let world: StoreWorld;
let sql: pg.Client;
let redis: Redis;
let mongo: MongoClient;
let s3: S3Client;
/** What is published comes by a connection of its own. */
let listener: Redis;
let raw: RawClient;
let native: NativeClient;
let grpc: GrpcClient;
let flight: FlightClient;
let flightTicket: Uint8Array;
let bolt: ReturnType<typeof boltDriver>;
const purposeTest = { settings: { annals_purpose: 'test' } };

beforeAll(async () => {
  world = await objectWorld(new MemoryDisk());
  [sql, mongo] = await Promise.all([connected(world), documentsConnected(world)]);
  redis = kvConnected(world);
  listener = kvConnected(world);
  await listener.call('ANNALS.SET', 'purpose', 'test');
  grpc = new GrpcClient(world, { 'x-service-purpose': 'test' }, relationalSecret);
  flight = new FlightClient(world, { 'x-service-purpose': 'test' }, relationalSecret);
  native = await NativeClient.connect(nativePort(world), { password: relationalSecret });
  bolt = boltDriver(world, relationalSecret);
  raw = await RawClient.ready(world.others.find(({ name }) => name === 'relational')!.port, relationalSecret);
  await raw.ask(simple("SET annals.purpose = 'test'"));
  s3 = clientOf(world, {}, { 'x-service-purpose': 'test' });
  await sql.query("SET annals.purpose = 'test'");
  await redis.call('ANNALS.SET', 'purpose', 'test');
  await world.call('POST', '/types', {
    name: 'Secret',
    properties: { id: 'string', code: 'string', n: 'integer' },
    primary_key: 'id',
  });
  await http('POST', '/ingest?object_type=Secret', [
    { id: 's1', code: 'alpha word', n: 1 },
    { id: 's2', code: 'beta word', n: 2 },
  ]);
  await world.call('POST', '/types', {
    name: 'Person',
    properties: { id: { type: 'string', subject: true }, name: 'string' },
    primary_key: 'id',
  });
  await http(
    'POST',
    '/ingest?object_type=Person',
    ['p1', 'p2', 'p3'].map((id) => ({ id, name: `name of ${id}` })),
  );
  const opened = await world.call('POST', '/exhibits', { title: 'a case' }, { 'x-service-purpose': 'test' });
  exhibit = opened.json['exhibit_id'] as string;
  await http('POST', '/memory/remember', { content: 'Ada plays chess' });
  await s3.send(new CreateBucketCommand({ Bucket: 'docs' }));
  await putInto(s3, 'kept', 'text');
  await redis.set('kept', '1');
  await documents().insertOne({ _id: 'kept', n: 1 }, stated);
});
afterAll(async () => {
  redis.disconnect();
  listener.disconnect();
  raw.close();
  native.end();
  grpc.close();
  flight.close();
  await bolt.close();
  s3.destroy();
  await Promise.all([sql.end(), mongo.close()]);
  await world.close();
});

const byBolt = async (text: string): Promise<unknown> => {
  const session = bolt.session();
  try {
    return await session.run(text, {}, { metadata: { purpose: 'test' } });
  } finally {
    await session.close();
  }
};

const graphHttp = async (statement: string): Promise<void> => {
  const headers = { key: relationalSecret, 'x-service-purpose': 'test' };
  const { status, text } = await graphRequest(world, 'POST', '/db/neo4j/query/v2', { statement }, headers);
  if (status !== 202) throw new Error(text);
};
const columnar = async (text: string): Promise<void> => {
  const { status, text: told } = await request(world, relationalSecret, purposeTest.settings, { method: 'POST', body: text });
  if (status !== 200) throw new Error(told);
};
const http = async (method: string, path: string, body?: unknown): Promise<void> => {
  const { status, text } = await world.call(method, path, body, { 'x-service-purpose': 'test' });
  expect([path, status, status < 300 ? '' : text]).toEqual([path, status, '']);
};
const tool = (name: string, given: object): Promise<void> => http('POST', '/mcp/tools/call', { name, arguments: given });
const rpc = async (name: string, given: object): Promise<void> => {
  const headers = {
    'x-service-purpose': 'test',
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
  };
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } };
  const { status, text } = await world.call('POST', '/mcp', body, headers);
  expect([status, text]).toEqual([200, expect.not.stringContaining('"isError":true')]);
};
const documents = () => mongo.db('shop').collection<{ _id: string; n: number }>('things');
const stated = { comment: { annals: { purpose: 'test' } } } as object;

/** As /audit/entries shows it. */
type Entry = Readonly<Record<string, unknown>>;
const entriesOf = async (filter = ''): Promise<Entry[]> => {
  const entries: Entry[] = [];
  for (let after = ''; ; ) {
    const { json } = await send(world.door.adminPort, 'GET', `/admin/audit/entries?limit=1000${filter}${after}`, undefined, {
      authorization: `Bearer ${adminSecret}`,
    });
    entries.push(...(json['entries'] as Entry[]));
    if (json['next'] === null) return entries;
    after = `&after=${json['next'] as string}`;
  }
};
const isOfCall = ({ action, object_type: type }: Entry): boolean => action === 'ingest' && type === 'ToolCall';

/** What a run leaves in the record, beside the readings of the record itself. */
async function leftBy(run: () => Promise<unknown>): Promise<Entry[]> {
  const before = (await entriesOf()).length;
  await run();
  return (await entriesOf()).slice(before).filter(({ action }) => action !== 'audit');
}

interface More {
  /** Its template; any by default. */
  readonly template?: string;
  /** It is a call of a tool or verb, which is told beside it. */
  readonly call?: string;
}

/** What is done, by which door, as which action, on rows of which type, how many of them (negative: any), and how. */
type Act = readonly [string, string, string, string, number, () => Promise<unknown>, More?];

const star = 'SELECT * FROM Secret AS OF CURRENT';
const flightStar = commandDescriptor(Buffer.from(star));
const byKey = "SELECT code FROM Secret AS OF CURRENT WHERE id = 's1'";
const byKeyTemplate = 'SELECT code FROM Secret AS OF CURRENT WHERE id = ?s';
const graph = '{ Secret(limit: 10) { id code } }';
const made = { properties: { id: 'string' }, primary_key: 'id' };
const inTypes = (Key: string) =>
  s3.send(new GetObjectCommand({ Bucket: 'types', Key })).then(({ Body }) => Body!.transformToString());
const things = 'shop.things';
const erase = (subject: string): string => `ERASE SUBJECT '${subject}' REASON 'asked to' CERTIFY`;
const removed = [{ Key: 'o' }];

let exhibit = '';

const questions: readonly Act[] = [
  ['query', 'http', 'query', 'Secret', 2, () => http('POST', '/query', { sql: star }), { template: star }],
  ['query', 'relational', 'query', 'Secret', 2, () => sql.query(star), { template: star }],
  ['query', 'graph-http', 'query', 'Secret', 2, () => graphHttp(star), { template: star }],
  ['query', 'grpc', 'query', 'Secret', 2, () => grpc.rows(star), { template: star }],
  [
    'GetFlightInfo',
    'flight',
    'query',
    'Secret',
    0,
    async () => (flightTicket = (await flight.info(flightStar)).ticket),
    { template: star },
  ],
  ['DoGet', 'flight', 'query', 'Secret', 2, () => flight.get(flightTicket), { template: star }],
  ['Lookup', 'grpc', 'query', 'Secret', 1, () => grpc.all('Lookup', { type: 'Secret', keys: ['s1'] })],
  ['query', 'columnar-http', 'query', 'Secret', 2, () => columnar(star), { template: star }],
  ['EXPLAIN', 'columnar-http', 'query', 'Secret', 0, () => columnar(`EXPLAIN ${star}`)],
  ['query', 'columnar-native', 'query', 'Secret', 2, () => native.query(star, purposeTest), { template: star }],
  ['query', 'graph-binary', 'query', 'Secret', 2, () => byBolt(star), { template: star }],
  ['EXPLAIN', 'columnar-native', 'query', 'Secret', 0, () => native.query(`EXPLAIN ${star}`, purposeTest)],
  ['a stream', 'http', 'query', 'Secret', 2, () => http('POST', '/query/stream', { sql: star }), { template: star }],
  ['Arrow', 'http', 'query', 'Secret', 2, () => http('POST', '/query/arrow', { sql: star }), { template: star }],
  ['tool query', 'http', 'query', 'Secret', 2, () => tool('query', { sql: star }), { template: star, call: 'query ?' }],
  [
    'query_knowledge',
    'http',
    'query',
    'Secret',
    2,
    () => tool('query_knowledge', { sql: star }),
    { template: star, call: 'query_knowledge ?' },
  ],
  ['JSON-RPC', 'http', 'query', 'Secret', 2, () => rpc('query', { sql: star }), { template: star, call: 'query ?' }],
  ['by key', 'http', 'query', 'Secret', 1, () => http('POST', '/query', { sql: byKey }), { template: byKeyTemplate }],
  ['by key', 'relational', 'query', 'Secret', 1, () => sql.query('SELECT code FROM Secret WHERE id = $1', ['s1'])],
  ['by key in types', 'object', 'query', 'Secret', 1, () => inTypes('Secret/s1.json')],
  [
    'get_entities',
    'http',
    'query',
    'Secret',
    2,
    () => tool('get_entities', { entity_type: 'Secret', limit: 1 }),
    { call: 'get_entities ?' },
  ],
  ['GraphQL', 'http', 'query', 'Secret', 2, () => http('POST', '/graphql', { query: graph })],
  ['EXPLAIN', 'http', 'query', 'Secret', 0, () => http('POST', '/query', { sql: `EXPLAIN ${star}` })],
  ['EXPLAIN', 'relational', 'query', 'Secret', 0, () => sql.query(`EXPLAIN ${star}`)],
  [
    'SPARQL',
    'http',
    'query',
    'KnowledgeTriple',
    0,
    () => http('GET', `/sparql?query=${encodeURIComponent('SELECT ?s { ?s ?p ?o }')}`),
  ],
  ['COPY TO', 'relational', 'query', 'Secret', 2, () => sql.query(`COPY (${star}) TO STDOUT`)],
  ['COPY table TO', 'relational', 'query', 'Secret', 2, () => sql.query('COPY Secret TO STDOUT')],
  ['MATCH', 'http', 'query', 'Secret', 2, () => http('POST', '/query', { sql: 'MATCH (s:Secret) RETURN s.id' })],
  ['a link of an exhibit', 'http', 'replay', 'Secret', 2, () => http('POST', `/exhibits/${exhibit}/links`, { sql: star })],
  ['search', 'http', 'search', 'Secret', 2, () => http('POST', '/search', { query: 'word', type: 'Secret' })],
  [
    'search_entities',
    'http',
    'search',
    'Secret',
    2,
    () => tool('search_entities', { query: 'word', entity_type: 'Secret' }),
    { call: 'search_entities ?' },
  ],
  [
    'hybrid_search',
    'http',
    'search',
    'Secret',
    2,
    () => tool('hybrid_search', { query: 'word', entity_type: 'Secret' }),
    { call: 'hybrid_search ?' },
  ],
  ['export', 'http', 'export', 'Secret', 2, () => http('GET', `/export?sql=${encodeURIComponent(star)}`), { template: star }],
  ['WATCH', 'http', 'watch', 'Secret', 0, () => http('POST', '/query', { sql: 'WATCH SELECT id FROM Secret' })],
  [
    'SUBSCRIBE',
    'kv',
    'watch',
    'PubSubMessage',
    0,
    () => listener.subscribe('news').then(() => listener.unsubscribe('news')),
    { template: 'SUBSCRIBE ?' },
  ],
  [
    'PSUBSCRIBE',
    'kv',
    'watch',
    'PubSubMessage',
    0,
    () => listener.psubscribe('n*').then(() => listener.punsubscribe('n*')),
    { template: 'SUBSCRIBE ?' },
  ],
  ['CREATE INDEX', 'relational', 'inspect', 'Secret', 0, () => sql.query('CREATE INDEX i ON Secret (code)')],
  ['DROP INDEX', 'relational', 'inspect', 'i', 0, () => sql.query('DROP INDEX IF EXISTS i'), { template: 'DROP INDEX' }],
  ['DROP TABLE', 'relational', 'inspect', 'None', 0, () => sql.query('DROP TABLE IF EXISTS None'), { template: 'DROP TABLE' }],
  ['GET', 'kv', 'query', 'KvEntry', 1, () => redis.get('kept')],
  ['SCAN', 'kv', 'query', 'KvEntry', 1, () => redis.scan(0)],
  ['findOne', 'document', 'query', 'DocumentEntry', 1, () => documents().findOne({ _id: 'kept' }, stated)],
  ['find', 'document', 'query', 'DocumentEntry', 1, () => documents().find({ n: 1 }, stated).toArray()],
  [
    'aggregate',
    'document',
    'query',
    'DocumentEntry',
    1,
    () =>
      documents()
        .aggregate([{ $match: { n: 1 } }], stated)
        .toArray(),
  ],
  ['GetObject', 'object', 'query', 'ObjectStoreObject', 1, () => textOf(s3, 'kept'), { template: 'GetObject ?' }],
  ['recall', 'http', 'search', 'MemoryItem', -1, () => http('POST', '/memory/recall', { query: 'chess' }), { call: 'recall ?' }],
  ['recall', 'http', 'search', 'MemoryItem', -1, () => rpc('recall', { query: 'chess' }), { call: 'recall ?' }],
];

async function copyIn(): Promise<void> {
  raw.socket.write(simple('COPY Secret (id, n) FROM STDIN'));
  await raw.until('G');
  await raw.ask(framed('d', Buffer.from('c1\t1\nc2\t2\n')), framed('c'));
}

const writes: readonly Act[] = [
  ['ingest', 'http', 'ingest', 'Secret', 1, () => http('POST', '/ingest?object_type=Secret', { id: 's3', code: 'c', n: 3 })],
  ['INSERT', 'relational', 'ingest', 'Secret', 1, () => sql.query("INSERT INTO Secret (id, code) VALUES ('s4', 'd')")],
  ['MERGE', 'graph-http', 'ingest', 'Secret', 1, () => graphHttp("MERGE (n:Secret {id: 's10', code: 'f'})")],
  ['Ingest', 'grpc', 'ingest', 'Secret', 1, () => grpc.ingest({ type: 'Secret' }, ['{"id":"s9","code":"e"}'])],
  [
    'DoPut',
    'flight',
    'ingest',
    'Secret',
    1,
    () => flight.put(typeDescriptor('Secret'), tableFromArrays({ id: ['s11'], code: ['g'] })),
  ],
  ['INSERT', 'columnar-http', 'ingest', 'Secret', 1, () => columnar("INSERT INTO Secret (id, code) VALUES ('s8', 'd')")],
  ['COPY FROM', 'relational', 'ingest', 'Secret', 2, copyIn, { template: 'COPY ? FROM STDIN' }],
  [
    'CreateMultipartUpload',
    'object',
    'ingest',
    'ObjectStoreObject',
    -1,
    () => s3.send(new CreateMultipartUploadCommand({ Bucket: 'docs', Key: 'm' })),
    { template: 'CreateMultipartUpload ?' },
  ],
  ['PATCH', 'http', 'ingest', 'Secret', 1, () => http('PATCH', '/types/Secret/s3', { n: 4 })],
  ['UPDATE', 'relational', 'ingest', 'Secret', 2, () => sql.query("UPDATE Secret SET n = 9 WHERE id IN ('s3', 's4')")],
  ['DELETE', 'http', 'delete', 'Secret', 1, () => http('DELETE', '/types/Secret/s3')],
  ['DELETE', 'relational', 'delete', 'Secret', 1, () => sql.query("DELETE FROM Secret WHERE id = 's4'")],
  ['SET', 'kv', 'ingest', 'KvEntry', 1, () => redis.set('a', '1'), { template: 'SET ?' }],
  ['INCR', 'kv', 'ingest', 'KvEntry', 1, () => redis.incr('a'), { template: 'INCR ?' }],
  ['MSET', 'kv', 'ingest', 'KvEntry', 2, () => redis.mset({ b: '1', c: '2' }), { template: 'MSET ?' }],
  ['DEL', 'kv', 'delete', 'KvEntry', 2, () => redis.del('b', 'c', 'never'), { template: 'DEL ?' }],
  ['GETDEL', 'kv', 'delete', 'KvEntry', 1, () => redis.getdel('a'), { template: 'GETDEL ?' }],
  ['DEL of nothing', 'kv', 'delete', 'KvEntry', 0, () => redis.del('never'), { template: 'DEL ?' }],
  ['PUBLISH', 'kv', 'ingest', 'PubSubMessage', 1, () => redis.publish('news', 'x'), { template: 'PUBLISH ?' }],
  [
    'insert',
    'document',
    'ingest',
    'DocumentEntry',
    2,
    () =>
      documents().insertMany(
        [
          { _id: 'd1', n: 3 },
          { _id: 'd2', n: 2 },
        ],
        stated,
      ),
    { template: `insert ${things}` },
  ],
  [
    'update',
    'document',
    'ingest',
    'DocumentEntry',
    1,
    () => documents().updateOne({ n: 3 }, { $set: { n: 5 } }, stated),
    { template: `update ${things}` },
  ],
  [
    'findAndModify',
    'document',
    'ingest',
    'DocumentEntry',
    1,
    () => documents().findOneAndUpdate({ _id: 'd1' }, { $inc: { n: 1 } }, stated),
    { template: `findAndModify ${things}` },
  ],
  [
    'findAndModify that removes',
    'document',
    'delete',
    'DocumentEntry',
    1,
    () => documents().findOneAndDelete({ _id: 'd1' }, stated),
    { template: `findAndModify ${things}` },
  ],
  [
    'delete',
    'document',
    'delete',
    'DocumentEntry',
    1,
    () => documents().deleteMany({ n: 2 }, stated),
    { template: `delete ${things}` },
  ],
  ['PutObject', 'object', 'ingest', 'ObjectStoreObject', 1, () => putInto(s3, 'o', 'text'), { template: 'PutObject ?' }],
  [
    'DeleteObject',
    'object',
    'delete',
    'ObjectStoreObject',
    1,
    () => s3.send(new DeleteObjectCommand({ Bucket: 'docs', Key: 'o' })),
    { template: 'DeleteObject ?' },
  ],
  [
    'DeleteObjects of nothing',
    'object',
    'delete',
    'ObjectStoreObject',
    0,
    () => s3.send(new DeleteObjectsCommand({ Bucket: 'docs', Delete: { Objects: removed } })),
  ],
  [
    'remember',
    'http',
    'ingest',
    'MemoryItem',
    1,
    () => http('POST', '/memory/remember', { content: 'Ada prefers tea' }),
    { call: 'remember ?' },
  ],
  [
    'remember as a tool',
    'http',
    'ingest',
    'MemoryItem',
    1,
    () => tool('remember', { content: 'Ada lives in Oslo' }),
    { call: 'remember ?' },
  ],
  [
    'remember by JSON-RPC',
    'http',
    'ingest',
    'MemoryItem',
    1,
    () => rpc('remember', { content: 'Ada rows' }),
    { call: 'remember ?' },
  ],
  [
    'remember_batch',
    'http',
    'ingest',
    'MemoryItem',
    2,
    () => tool('remember_batch', { items: [{ content: 'x' }, { content: 'y' }] }),
    { call: 'remember_batch ?' },
  ],
  ['types', 'http', 'schema', 'Made', 1, () => http('POST', '/types', { name: 'Made', ...made })],
  ['CREATE TABLE', 'relational', 'schema', 'Table1', 1, () => sql.query('CREATE TABLE Table1 (id text PRIMARY KEY)')],
  [
    'a view',
    'http',
    'schema',
    'Shown',
    1,
    () => http('POST', '/query', { sql: 'CREATE MATERIALIZED VIEW Shown AS SELECT * FROM Secret' }),
  ],
  [
    'SPLIT_IDENTITIES',
    'http',
    'ingest',
    'Person',
    1,
    () => http('POST', '/query', { sql: "SPLIT_IDENTITIES('Person:p1', 'Person:p2', 'two birth dates')" }),
    { template: 'SPLIT_IDENTITIES(?s, ?s, ?s)' },
  ],
  ['ERASE', 'http', 'erase', 'Person', 1, () => http('POST', '/query', { sql: erase('p1') })],
  ['ERASE', 'relational', 'erase', 'Person', 1, () => sql.query(erase('p2'))],
  [
    'erase_subject',
    'http',
    'erase',
    'Person',
    1,
    () => tool('erase_subject', { subject: 'p3', reason: 'asked to' }),
    { call: 'erase_subject ?' },
  ],
];

async function check([, door, action, type, rows, run, { template, call } = {}]: Act): Promise<void> {
  const entries = await leftBy(run);
  const [own, ...others] = entries.filter((entry) => !isOfCall(entry) && entry['door'] !== 'internal');
  expect(others).toEqual([]);
  expect(own).toMatchObject({
    door,
    action,
    decision: 'allow',
    code: null,
    purpose: 'test',
    ...(rows >= 0 && { row_count: rows }),
  });
  const named = (own!['object_type'] as string | null)?.split(',');
  expect(named).toContain(type);
  expect(named).not.toContain('ToolCall');
  expect(own!['template']).toEqual(template ?? expect.stringMatching(/./));
  const calls = entries.filter(isOfCall);
  expect(
    calls.map((each) => [each['template'], each['decision'], each['row_count'], each['door'], each['correlation_id']]),
  ).toEqual(call === undefined ? [] : [[call, 'allow', 1, door, own!['correlation_id']]]);
  expect((await entriesOf(`&object_type=${type}`)).at(-1)).toEqual(own);
}

describe('an act leaves the same record by whichever door it came', () => {
  test.each(questions)('%s by %s', (...act: unknown[]) => check(act as unknown as Act));
  test.each(writes)('%s by %s', (...act: unknown[]) => check(act as unknown as Act));

  test('a transaction leaves the record of each statement, and that of its end', async () => {
    const insert = "INSERT INTO Secret (id, code) VALUES ('s5', 'e')";
    const entries = await leftBy(async () => {
      for (const each of ['BEGIN', insert, 'COMMIT']) await sql.query(each);
    });
    const of = { door: 'relational', action: 'ingest', object_type: 'Secret', row_count: 1, decision: 'allow', purpose: 'test' };
    expect(entries).toMatchObject([
      // Nothing of it is written before the end.
      { ...of, row_count: 0, template: expect.stringMatching(/^INSERT INTO Secret/) },
      { ...of, template: 'COMMIT' },
    ]);
  });

  test('TRUNCATE is a transaction by itself: it leaves that of each DELETE, and that of its end', async () => {
    await sql.query('CREATE TABLE Table2 (id text PRIMARY KEY)');
    await sql.query("INSERT INTO Table2 VALUES ('a')");
    const of = { door: 'relational', object_type: 'Table2', decision: 'allow', purpose: 'test' };
    expect(await leftBy(() => sql.query('TRUNCATE Table2'))).toMatchObject([
      { ...of, action: 'delete', template: 'DELETE FROM "Table2"' },
      { ...of, row_count: 1, template: 'COMMIT' },
    ]);
  });

  test('each page leaves one, by whatever cursor it is asked for', async () => {
    const page = 'SELECT id FROM Secret AS OF CURRENT LIMIT 1';
    const of = { object_type: 'Secret', action: 'query', row_count: 1, decision: 'allow', purpose: 'test', door: 'http' };
    const pages = await leftBy(async () => {
      const { json } = await world.call('POST', '/query', { sql: page }, { 'x-service-purpose': 'test' });
      await http('POST', '/query', { sql: `${page} AFTER '${String(json['cursor'])}'` });
    });
    expect(pages).toMatchObject([of, { ...of, template: expect.stringContaining('AFTER ?') }]);
    await documents().insertMany(
      [
        { _id: 'e1', n: 0 },
        { _id: 'e2', n: 0 },
      ],
      stated,
    );
    const more = await leftBy(() =>
      documents()
        .find({ n: 0 }, { ...stated, batchSize: 1 })
        .toArray(),
    );
    const ofDocuments = { ...of, row_count: 2, door: 'document', object_type: 'DocumentEntry' };
    expect(more[0]).toMatchObject(ofDocuments);
    expect(more.slice(1).length).toBeGreaterThan(0);
    for (const each of more.slice(1))
      expect(each).toMatchObject({ door: 'document', action: 'query', template: `getMore ${things}` });
  });

  test('what is delivered to who follows leaves one of its rows each time', async () => {
    await listener.subscribe('news');
    const published = await leftBy(async () => {
      const heard = new Promise((resolve) => listener.once('message', resolve));
      await redis.publish('news', 'x');
      await heard;
    });
    const of = { action: 'watch', row_count: 1, decision: 'allow', purpose: 'test' };
    const delivered = (entries: readonly Entry[]): Entry[] =>
      entries.filter(({ action, row_count: rows }) => action === 'watch' && rows !== 0);
    expect(delivered(published)).toMatchObject([{ ...of, door: 'kv', object_type: 'PubSubMessage' }]);
    const path = `/watch/stream?sql=${encodeURIComponent('SELECT id FROM Secret')}`;
    const stream = await new EventStream(world.door.port, path, {
      authorization: `Bearer ${world.token}`,
      'x-service-purpose': 'test',
    }).opened();
    const says = (text: string) => (events: readonly { readonly data: string }[]) =>
      events.some(({ data }) => data.includes(text));
    await stream.until(says('s1'));
    const told = await leftBy(async () => {
      await http('POST', '/ingest?object_type=Secret', { id: 'w1', code: 'c', n: 3 });
      await stream.until(says('w1'));
    });
    await stream.close();
    expect(delivered(told)).toMatchObject([{ ...of, door: 'http', object_type: 'Secret', template: 'SELECT id FROM Secret' }]);
  });

  test('policies leave one of each act, by the door of administrators', async () => {
    const admin = (method: string, path: string, body?: unknown) =>
      send(world.door.adminPort, method, path, body, { authorization: `Bearer ${adminSecret}` });
    const entries = await leftBy(async () => {
      const installed = await admin('PUT', '/admin/policies/p1', { policy: 'permit(principal, action, resource);' });
      expect(installed.status).toBe(201);
      for (const [method, path] of [
        ['GET', '/admin/policies'],
        ['GET', '/admin/policies/p1'],
        ['DELETE', '/admin/policies/p1'],
      ] as const)
        expect((await admin(method, path)).status).toBe(200);
    });
    const of = { door: 'http-admin', decision: 'allow', object_type: null };
    expect(entries).toMatchObject([
      { ...of, action: 'administer', template: 'put-policy ?', row_count: 1 },
      { ...of, action: 'inspect', template: 'GET /admin/policies', row_count: 1 },
      { ...of, action: 'inspect', template: 'GET /admin/policies/:id' },
      { ...of, action: 'administer', template: 'delete-policy ?', row_count: 1 },
    ]);
  });

  test('an advisory lock leaves one of its function, refused or not', async () => {
    const entries = await leftBy(async () => {
      for (const each of ['pg_try_advisory_lock(7)', 'pg_advisory_unlock_all()']) await sql.query(`SELECT ${each}`);
    });
    const of = { door: 'relational', action: 'inspect', object_type: null, decision: 'allow', purpose: 'test' };
    expect(entries).toMatchObject([
      { ...of, template: 'SELECT pg_try_advisory_lock' },
      { ...of, template: 'SELECT pg_advisory_unlock_all' },
    ]);
  });

  test('a transaction over HTTP leaves those of the relational door, and one of its beginning', async () => {
    const ended = ['commit', 'rollback'].map(
      async (end) => [end, (await world.call('POST', '/tx')).json['id'] as string] as const,
    );
    const begun = await Promise.all(ended);
    const entries = await leftBy(async () => {
      for (const [end, id] of begun) {
        const within = { 'x-service-transaction': id, 'x-service-purpose': 'test' };
        await world.call('POST', '/ingest?object_type=Secret', { id: 's6', code: end }, within);
        await world.call('POST', `/tx/${id}/${end}`, undefined, { 'x-service-purpose': 'test' });
      }
    });
    const of = { door: 'http', action: 'ingest', object_type: 'Secret', decision: 'allow', purpose: 'test' };
    expect(entries).toMatchObject([
      { ...of, row_count: 0 },
      { ...of, row_count: 1, template: 'COMMIT', statements: [{ template: 'POST /ingest', object_type: 'Secret' }] },
      { ...of, row_count: 0 },
      { ...of, action: 'inspect', object_type: null, row_count: 0, template: 'ROLLBACK' },
    ]);
    const { json } = await world.call('GET', '/audit/entries?action=inspect&limit=1000');
    const templates = (json['entries'] as { template: string }[]).map(({ template }) => template);
    expect(templates.filter((each) => each === 'BEGIN' || each === 'ROLLBACK')).toEqual(['BEGIN', 'BEGIN', 'ROLLBACK']);
  });

  test('what is refused is recorded as what it would have been', async () => {
    const nonsense = { 'x-service-purpose': 'nonsense' };
    const failing = (run: Promise<unknown>): Promise<void> =>
      run.then(
        () => undefined,
        () => undefined,
      );
    const because = { comment: { annals: { purpose: 'nonsense' } } } as object;
    const s3Of = clientOf(world, {}, nonsense);
    const call = (name: string, given: object) => () =>
      world.call('POST', '/mcp/tools/call', { name, arguments: given }, nonsense);
    await sql.query("SET annals.purpose = 'nonsense'");
    await redis.call('ANNALS.SET', 'purpose', 'nonsense');
    const refused: readonly [string, string, () => Promise<unknown>, string?][] = [
      ['http', 'query', () => world.query(star, nonsense)],
      ['http', 'query', call('query', { sql: star })],
      ['http', 'ingest', () => world.call('POST', '/ingest?object_type=Secret', { id: 'x' }, nonsense)],
      ['http', 'ingest', call('remember', { content: 'x' })],
      ['relational', 'query', () => sql.query(star), 'Secret'],
      ['relational', 'query', () => sql.query('COPY Secret TO STDOUT'), 'Secret'],
      ['relational', 'query', () => sql.query(`COPY (${star}) TO STDOUT`), 'Secret'],
      ['relational', 'inspect', () => sql.query('CREATE INDEX i ON Secret (code)'), 'Secret'],
      ['relational', 'inspect', () => sql.query('DROP TABLE IF EXISTS Secret'), 'Secret'],
      ['relational', 'ingest', () => sql.query("INSERT INTO Secret (id) VALUES ('x')")],
      ['relational', 'ingest', () => sql.query('UPDATE Secret SET n = 1')],
      ['relational', 'delete', () => sql.query('DELETE FROM Secret')],
      ['kv', 'ingest', () => redis.set('x', '1')],
      ['kv', 'ingest', () => redis.incr('x')],
      ['kv', 'delete', () => redis.del('x')],
      ['document', 'ingest', () => documents().insertOne({ _id: 'x', n: 1 }, because)],
      ['document', 'ingest', () => documents().updateOne({ _id: 'x' }, { $set: { n: 2 } }, because)],
      ['document', 'delete', () => documents().deleteOne({ _id: 'x' }, because)],
      ['object', 'ingest', () => putInto(s3Of, 'x', 'x'), 'ObjectStoreObject'],
      ['object', 'ingest', () => s3Of.send(new CreateMultipartUploadCommand({ Bucket: 'docs', Key: 'x' })), 'ObjectStoreObject'],
      ['object', 'delete', () => s3Of.send(new DeleteObjectCommand({ Bucket: 'docs', Key: 'x' }))],
    ];
    for (const [door, action, run, type] of refused) {
      const [own, ...others] = await leftBy(() => failing(run()));
      expect([door, action, own]).toMatchObject([
        door,
        action,
        { door, action, decision: 'deny', code: expect.stringMatching(/^REL_PURPOSE/) },
      ]);
      if (type !== undefined) expect([door, own!['template'], own!['object_type']]).toEqual([door, own!['template'], type]);
      expect(own!['template']).toEqual(expect.stringMatching(/./));
      expect(others.every((each) => isOfCall(each) && each['decision'] === 'deny')).toBe(true);
    }
    await sql.query("SET annals.purpose = 'test'");
    await redis.call('ANNALS.SET', 'purpose', 'test');
    s3Of.destroy();
  });

  test.each([
    ['object_typ=Secret', 'object_type'],
    ['principle=x', 'principal'],
    ['objectType=Secret', 'object_type'],
  ])('an unknown filter of the record is refused with the nearest name: %s', async (filter, nearest) => {
    for (const path of ['/audit/entries', '/audit/count', '/tokens/self/audit']) {
      const { status, json } = await world.call('GET', `${path}?${filter}`);
      expect([path, status, json['detail']]).toEqual([path, 400, expect.stringContaining(`did you mean ${nearest}?`)]);
    }
  });
});
