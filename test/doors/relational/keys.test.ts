/** A statement that looks one key up runs without operators: what is sent is what operators would have sent, byte by byte. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { seedBase } from '../../runner/seed.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { documentsConnected } from '../document/document-client.ts';
import { StoreWorld } from '../http/store-world.ts';
import { kvConnected } from '../kv/kv-client.ts';
import { execute, bind, describe as describeMessage, parse, RawClient, simple, sync } from './raw-client.ts';
import { connected, relationalSecret } from './relational-client.ts';

let world: StoreWorld;
let client: RawClient;
const columns = ['n', 'price', 'good', 'at', 'more', 'emb', 'secret', 'note', '_pk', 'system_from', 'system_to', 'valid_from'];
const keys = { Item: ['a', 'b', 'ä', "it''s", 'gone', 'absent'], Counted: ['1', '2', '-7', '9007199254740993', '404'] };

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret });
  const properties = {
    n: 'integer',
    price: 'number',
    good: 'boolean',
    at: 'timestamp',
    more: 'json',
    emb: { type: 'vector', dims: 3 },
    secret: { type: 'string', masked: true },
    note: 'string',
  };
  for (const [name, sku] of Object.entries({ Item: 'string', Counted: 'integer' })) {
    const { status, text } = await world.call('POST', '/types', { name, properties: { sku, ...properties }, primary_key: 'sku' });
    expect([status, text]).toEqual([201, text]);
  }
  client = await RawClient.ready(world.others.find(({ name }) => name === 'relational')!.port, relationalSecret);
  for (const [type, written] of Object.entries(keys)) {
    for (const [i, key] of written.slice(0, -1).entries()) {
      const quoted = type === 'Item' ? `'${key}'` : key;
      for (let version = 0; version <= i; version++) {
        const cells = [
          `(sku, n, price, good, at, more, emb, secret, note) VALUES (${quoted}, ${(i + 1) * 10 ** (version * 4)}, ${version / 7}, true, '2024-05-0${version + 1}', '{"x": [1]}', '[1,2,${version}]', 's', 'räksmörgås ${version}')`,
          `(sku, n, note) VALUES (${quoted}, -1, NULL)`,
        ][version % 2]!;
        const [told] = await client.ask(simple(`INSERT INTO ${type} ${cells} ON CONFLICT (sku) DO UPDATE SET n = EXCLUDED.n`));
        expect(told!.body.toString()).toContain('INSERT');
      }
    }
  }
  await client.ask(simple("DELETE FROM Item WHERE sku = 'gone'"));
});

afterAll(async () => {
  client.close();
  await world.close();
});

test('random statements of keys, by both protocols, in text and in binary', async () => {
  const dice = new Seeded(seedBase);
  const random = (): number => dice.below(1_000_000) / 1_000_000;
  const of = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const times = ['', '', ' AS OF CURRENT', ' AS OF SYSTEM TIME ALL', ' AS OF VALID TIME ALL', " AS OF VALID TIME '2024-05-02'"];
  let rows = 0;
  for (let i = 0; i < 300; i++) {
    const type = of(['Item', 'Counted'] as const);
    const key = of(keys[type]);
    const name = of(['sku', '_pk']);
    const value = name === '_pk' || type === 'Item' ? `'${key}'` : key;
    const some = columns.filter(() => random() < 0.4);
    const shown = random() < 0.2 ? '*' : some.length === 0 ? 'n' : `${some.join(', ')}${random() < 0.3 ? ', n AS again' : ''}`;
    const select = `SELECT ${shown} FROM ${type}${of(times)}`;
    const format = random() < 0.5 ? 1 : 0;
    const asked = (text: string): Promise<{ type: string; body: Buffer }[]> =>
      i % 3 === 0 ? client.ask(simple(text)) : client.ask(parse(text), bind(format), describeMessage('P'), execute(), sync);
    const where = random() < 0.5 ? `${name} = ${value}` : `${value} = ${name}`;
    const plain = await asked(`${select} WHERE ${where}`);
    // Two keys, if the same ones, are read by operators.
    const long = await asked(`${select} WHERE ${name} IN (${value}, ${value})`);
    expect({ select, where, replies: plain }).toEqual({ select, where, replies: long });
    rows += plain.filter((reply) => reply.type === 'D').length;
  }
  expect(rows).toBeGreaterThan(25);
});

test('the access record tells the statement, whichever way it went', async () => {
  await client.ask(simple("SELECT n, note FROM Item WHERE sku = 'b'"));
  const { json } = await world.admin('GET', '/admin/audit/entries?action=query&limit=1000');
  const template = 'SELECT n, note FROM Item WHERE sku = ?s';
  const told = (json['entries'] as { template: string }[]).filter((entry) => entry.template === template);
  expect(told).toMatchObject([{ door: 'relational', object_type: 'Item', row_count: 1, cost_units: 0.01, decision: 'allow' }]);
});

test('a text of many comments is read in one pass, and SET of a quoted name is no fault of the server', async () => {
  await client.ask(simple(`w${'/*'.repeat(4_000)}`));
  await client.ask(simple(`${'/*/*/'.repeat(40)}w`));
  expect((await client.ask(simple('SET"nothing" TO 1')))[0]!.body.toString()).not.toContain('XX000');
});

test('reads by key shut nobody out by the quota or by the limit of the address, whichever door they come by', async () => {
  const reads = 40;
  // One unit a read, as for a question, would be used up by the first door.
  let stopped: number | null = null;
  const counted = await StoreWorld.open(
    { SERVICE_BEARER_TOKEN: relationalSecret, SERVICE_QUERY_QUOTA: '30', SERVICE_READ_RATE_LIMIT_RPS: '12' },
    { clock: { ...systemClock, monotonicMs: () => stopped ?? systemClock.monotonicMs() } },
  );
  const purpose = { 'x-service-purpose': 'test' };
  await counted.call('POST', '/types', { name: 'Item', properties: { id: 'string', n: 'integer' }, primary_key: 'id' }, purpose);
  expect((await counted.call('POST', '/ingest?object_type=Item', { id: 'k', n: 1 }, purpose)).status).toBe(200);
  const [sql, redis, mongo, s3] = [
    await connected(counted),
    kvConnected(counted),
    await documentsConnected(counted),
    { authorization: `Bearer ${relationalSecret}`, ...purpose },
  ];
  await sql.query("SET annals.purpose = 'test'");
  await redis.call('ANNALS.SET', 'purpose', 'test');
  await redis.set('k', '1');
  const stated = { comment: { annals: { purpose: 'test' } } } as object;
  const documents = mongo.db('shop').collection<{ _id: string }>('things');
  await documents.insertOne({ _id: 'k' }, stated);
  const origin = `http://127.0.0.1:${counted.others.find(({ name }) => name === 'object')!.port}`;
  for (const path of ['/docs', '/docs/k'])
    expect(
      (await fetch(`${origin}${path}`, { method: 'PUT', headers: s3, ...(path === '/docs/k' && { body: 'x' }) })).status,
    ).toBe(200);
  const doors: Readonly<Record<string, () => Promise<unknown>>> = {
    relational: async () => (await sql.query('SELECT n FROM Item WHERE id = $1', ['k'])).rows.length,
    kv: async () => Number(await redis.get('k')),
    document: async () => ((await documents.findOne({ _id: 'k' }, stated)) === null ? 0 : 1),
    object: async () => (await (await fetch(`${origin}/docs/k`, { headers: s3 })).text()).length,
    http: async () => (await counted.rows("SELECT n FROM Item WHERE id = 'k'", purpose)).length,
  };
  for (const [door, read] of Object.entries(doors)) {
    const answers = new Set<unknown>();
    for (let i = 0; i < reads; i++) answers.add(await read());
    expect([door, ...answers]).toEqual([door, 1]);
  }
  // All of them within one second, however long they take.
  stopped = systemClock.monotonicMs();
  const questions = Array.from({ length: 40 }, () => counted.call('POST', '/query', { sql: 'SELECT n FROM Item' }, purpose));
  const refused = (await Promise.all(questions)).find(({ status }) => status === 429);
  expect(refused?.text).toContain('SERVICE_READ_RATE_LIMIT_RPS');
  redis.disconnect();
  await Promise.all([sql.end(), mongo.close()]);
  await counted.close();
});
