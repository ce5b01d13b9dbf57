/** The gRPC door, as clients made of its .proto, of reflection and of the health protocol see it. */
import { credentials, makeGenericClientConstructor, status } from '@grpc/grpc-js';
import { tableFromIPC } from 'apache-arrow';
import { service as healthService } from 'grpc-health-check';
import { GrpcReflection } from 'grpc-js-reflection-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';
import { GrpcClient, grpcSecret, refusalOf } from './grpc-client.ts';

let world: StoreWorld;
let client: GrpcClient;
const scoped = { 'x-organization-id': 'acme/eu' };

beforeAll(async () => {
  world = await StoreWorld.open({
    SERVICE_BEARER_TOKEN: grpcSecret,
    SERVICE_BODY_LIMIT_MB: '8',
    SERVICE_MAX_INFLIGHT_QUERIES: '1',
  });
  client = new GrpcClient(world);
  const properties = {
    id: 'string',
    big: 'integer',
    ratio: 'number',
    flag: 'boolean',
    at: 'timestamp',
    doc: 'json',
    place: { type: 'vector', dims: 2 },
  };
  const definition = JSON.stringify({ name: 'Reading', primary_key: 'id', properties });
  expect(await client.call('RegisterType', { definition })).toEqual({ type: 'Reading', changed: true });
});

afterAll(async () => {
  client?.close();
  await world?.close();
});

const lines = [
  {
    id: 'a',
    big: '9223372036854775807',
    ratio: 0.1,
    flag: true,
    at: '1714557600123456789',
    doc: { x: [1, 'y'] },
    place: [0.5, -1],
  },
  { id: 'b', big: '-9223372036854775808', ratio: -1.5e300, flag: false, at: '-1', doc: null, place: null },
]
  .map((row) => JSON.stringify(row).replaceAll(/"(-?\d+)"/g, '$1'))
  .join('\n');

describe('rows', () => {
  test('that are ingested come back as they were, extremes of 64 bits and all nine digits', async () => {
    const cut = Math.floor(lines.length / 2);
    const reply = await client.ingest({ type: 'Reading' }, [lines.slice(0, cut), lines.slice(cut)]);
    expect(reply).toMatchObject({ type: 'Reading', accepted: '2', rejected: '0', durability: 'synced' });
    expect(await client.rows('SELECT id, big, ratio, flag, at, doc, place FROM Reading AS OF CURRENT ORDER BY id')).toEqual([
      {
        id: 'a',
        big: '9223372036854775807',
        ratio: 0.1,
        flag: true,
        at: '1714557600123456789',
        doc: '{"x":[1,"y"]}',
        place: { values: [0.5, -1] },
      },
      { id: 'b', big: '-9223372036854775808', ratio: -1.5e300, flag: false, at: '-1', doc: null, place: null },
    ]);
  });

  test('are asked for with values by name and by position', async () => {
    const sql = 'SELECT id FROM Reading AS OF CURRENT WHERE big = $n AND at = $t';
    const named = { n: { integer: '9223372036854775807' }, t: { timestamp: '1714557600123456789' } };
    expect(await client.rows(sql, { named })).toEqual([{ id: 'a' }]);
    const positional = [{ text: 'b' }];
    expect(await client.rows('SELECT id FROM Reading AS OF CURRENT WHERE id = $1', { positional })).toEqual([{ id: 'b' }]);
  });

  test('come as Arrow, between the columns and the totals', async () => {
    const messages = await client.all('Query', { sql: 'SELECT id, big FROM Reading AS OF CURRENT ORDER BY id', format: 'ARROW' });
    expect(messages[0]!['header'].columns).toEqual([
      { name: 'id', type: 'string' },
      { name: 'big', type: 'integer' },
    ]);
    const bytes = Buffer.concat(messages.flatMap(({ arrow }) => (arrow === undefined ? [] : [arrow as Buffer])));
    expect([...tableFromIPC(bytes).getChild('big')!]).toEqual([9_223_372_036_854_775_807n, -9_223_372_036_854_775_808n]);
    expect(messages.at(-1)!['totals']).toMatchObject({ row_count: '2' });
  });

  test('are looked up by key, current by metadata and every version without', async () => {
    await client.call('Write', { steps: [{ put: { type: 'Reading', rows: Buffer.from('{"id":"a","ratio":2}') } }] });
    const every = await client.all('Lookup', { type: 'Reading', keys: ['a'], columns: ['ratio'] });
    expect(every.at(-1)!['totals'].row_count).toBe('2');
    const current = new GrpcClient(world, { 'x-service-as-of': String(BigInt(Date.now()) * 1_000_000n) });
    const one = await current.all('Lookup', { type: 'Reading', keys: ['a', 'nothing'], columns: ['ratio'] });
    expect(one.at(-1)!['totals'].row_count).toBe('1');
    current.close();
  });

  test('stay where they are when the client cancels, and when the deadline passes', async () => {
    const join = Array.from({ length: 18 }, (_, i) => `Reading r${i}`).join(', ');
    const late = client.all('Query', { sql: `SELECT COUNT(*) FROM ${join}` }, { deadline: Date.now() + 60 });
    expect((await refusalOf(late)).code).toBe(status.DEADLINE_EXCEEDED);
    // One question is let in at a time: the server has given up the one before as well.
    const answers = (): Promise<string> =>
      client.rows('SELECT 1 AS one').then(
        ([row]) => String(row!['one']),
        (error: Error) => error.message,
      );
    await expect.poll(answers, { timeout: 120_000 }).toBe('1');
    const stream = client.stream('Query', { sql: `SELECT COUNT(*) FROM ${join}` });
    setTimeout(() => stream.cancel(), 30);
    const read = (async () => {
      for await (const message of stream) void message;
    })();
    expect((await refusalOf(read)).code).toBe(status.CANCELLED);
    await expect.poll(answers, { timeout: 120_000 }).toBe('1');
  });
});

describe('writes', () => {
  test('of several types are all or none', async () => {
    const put = (type: string, row: object) => ({ put: { type, rows: Buffer.from(JSON.stringify(row)), create_type: true } });
    const reply = await client.call('Write', { steps: [put('LeftSide', { id: 'l' }), put('RightSide', { id: 'r' })] });
    expect(reply).toMatchObject({ accepted: '2' });
    const half = client.call('Write', { steps: [put('LeftSide', { id: 'l2' }), put('Reading', { id: 'x', big: 'many' })] });
    expect(await refusalOf(half)).toMatchObject({ code: status.INVALID_ARGUMENT, reason: 'REL_TYPE_MISMATCH' });
    expect(await client.rows("SELECT id FROM LeftSide WHERE id = 'l2'")).toEqual([]);
    expect(await client.call('Delete', { type: 'LeftSide', keys: ['l'] })).toMatchObject({ accepted: '1' });
    expect(await client.rows('SELECT id FROM LeftSide AS OF CURRENT')).toEqual([]);
  });

  test('of an unknown type are refused, unless it is to be made', async () => {
    const head = { type: 'Fresh' };
    expect(await refusalOf(client.ingest(head, ['{"id":"f","n":1}']))).toMatchObject({ code: status.NOT_FOUND });
    expect(await client.ingest({ ...head, create_type: true }, ['{"id":"f","n":1}'])).toMatchObject({ accepted: '1' });
  });

  test('wrong rows are named by their index', async () => {
    const reply = await client.ingest({ type: 'Reading' }, ['{"id":"g","big":1}\n{"id":"h","big":"many"}\n']);
    expect(reply).toMatchObject({ accepted: '1', rejected: '1', errors: [{ index: '1', code: 'REL_TYPE_MISMATCH' }] });
  });
});

describe('types and branches', () => {
  test('are listed, registered and forked', async () => {
    const { types } = await client.call('ListTypes', {});
    expect((types as string[]).map((each) => (JSON.parse(each) as { name: string }).name)).toContain('Reading');
    const wrong = client.call('RegisterType', { definition: '{"name":"T","propertees":{}}' });
    expect(await refusalOf(wrong)).toMatchObject({ code: status.INVALID_ARGUMENT, reason: 'REL_INVALID' });
    expect(await client.call('Fork', { name: 'side' })).toMatchObject({ name: 'side' });
    const { branches } = await client.call('ListBranches', {});
    expect((branches as { name: string }[]).map(({ name }) => name)).toEqual(['main', 'side']);
    const aside = new GrpcClient(world, { 'x-service-branch': 'side' });
    await aside.ingest({ type: 'Reading' }, ['{"id":"aside"}']);
    expect(await aside.rows("SELECT id FROM Reading WHERE id = 'aside'")).toEqual([{ id: 'aside' }]);
    expect(await client.rows("SELECT id FROM Reading WHERE id = 'aside'")).toEqual([]);
    aside.close();
  });
});

describe('a standing query', () => {
  test('tells what changes, and goes on behind an id', async () => {
    const purposeful = new GrpcClient(world, { ...scoped, 'x-service-purpose': 'test' });
    await purposeful.ingest({ type: 'Tick', create_type: true }, ['{"id":"t1"}']);
    const events: Record<string, string>[] = [];
    const until = async (resume: string, count: number): Promise<void> => {
      const stream = purposeful.stream('Watch', { sql: 'SELECT id FROM Tick', resume_after: resume });
      try {
        for await (const event of stream) {
          if (event['event'] === 'heartbeat') continue;
          events.push(event);
          if (events.length === 1 && count > 1) await purposeful.ingest({ type: 'Tick' }, ['{"id":"t2"}']);
          if (events.length >= count) break;
        }
      } finally {
        stream.cancel();
      }
    };
    await until('0', 2);
    expect(events.map(({ event, data }) => [event, (JSON.parse(data!) as { row: { id: string } }).row.id])).toEqual([
      ['insert', 't1'],
      ['insert', 't2'],
    ]);
    await purposeful.ingest({ type: 'Tick' }, ['{"id":"t3"}']);
    const last = events.at(-1)!['id']!;
    events.length = 0;
    await until(last, 1);
    expect(events[0]!['data']).toContain('"t3"');
    purposeful.close();
  });
});

describe('who calls', () => {
  test.each([
    ['nobody', null, {}, status.UNAUTHENTICATED],
    ['a wrong secret', 'wrong', {}, status.UNAUTHENTICATED],
    ['a branch that there is not', grpcSecret, { 'x-service-branch': 'nowhere' }, status.NOT_FOUND],
    ['metadata that there is not', grpcSecret, { 'x-service-as-off': '2024-05-01' }, status.NOT_FOUND],
    ['an instant that is none', grpcSecret, { 'x-service-as-of': 'yesterday' }, status.INVALID_ARGUMENT],
  ])('%s', async (_, key, metadata, code) => {
    const other = new GrpcClient(world, metadata as Record<string, string>, key);
    const told = await refusalOf(other.all('Query', { sql: 'SELECT id FROM Reading' }));
    expect(told.code).toBe(code);
    expect(told.reason).toMatch(/^REL_/);
    expect(told.correlationId).toMatch(/^[0-9a-f-]{36}$/);
    other.close();
  });

  test('a stranger is refused before its message is read', async () => {
    const stranger = new GrpcClient(world, {}, 'wrong');
    const rows = Buffer.alloc(15 << 20, 0x20);
    expect(await refusalOf(stranger.call('Write', { steps: [{ put: { type: 'Reading', rows } }] }))).toMatchObject({
      code: status.UNAUTHENTICATED,
      reason: 'REL_UNAUTHENTICATED',
    });
    stranger.close();
  });

  test('the shared secret speaks for the organisation that it names', async () => {
    const eu = new GrpcClient(world, scoped);
    await eu.ingest({ type: 'Reading' }, ['{"id":"eu"}']);
    expect(await eu.rows("SELECT id FROM Reading WHERE id = 'eu'")).toEqual([{ id: 'eu' }]);
    const us = new GrpcClient(world, { 'x-organization-id': 'acme/us' });
    expect(await us.rows("SELECT id FROM Reading WHERE id = 'eu'")).toEqual([]);
    eu.close();
    us.close();
  });
});

describe('what tools ask', () => {
  const address = (): string => `127.0.0.1:${world.others.find(({ name }) => name === 'grpc')!.port}`;

  test('the health protocol says that it serves, and that it does not while it closes', async () => {
    const closing = await StoreWorld.open({ SERVICE_BEARER_TOKEN: grpcSecret });
    const door = closing.others.find(({ name }) => name === 'grpc')!;
    const Health = makeGenericClientConstructor(healthService as never, 'Health');
    const health = new Health(`127.0.0.1:${door.port}`, credentials.createInsecure());
    const states: string[] = [];
    const watched = health['Watch']!({ service: 'annals.v1.Annals' });
    const over = new Promise<void>((resolve) => {
      watched.on('data', ({ status: state }: { status: string }) => {
        states.push(state);
        if (state === 'SERVING') door.drain();
        else resolve();
      });
      watched.on('error', () => resolve());
    });
    await over;
    watched.cancel();
    expect(states).toEqual(['SERVING', 'NOT_SERVING']);
    const other = new GrpcClient(closing);
    expect(await refusalOf(other.all('Query', { sql: 'SELECT 1' }))).toMatchObject({ code: status.UNAVAILABLE, retries: true });
    other.close();
    health.close();
    await closing.close();
  });

  test('reflection lists the service and its methods', async () => {
    const reflection = new GrpcReflection(address(), credentials.createInsecure());
    expect(await reflection.listServices()).toContain('annals.v1.Annals');
    const methods = await reflection.listMethods('annals.v1.Annals');
    expect(methods.map(({ name }) => name)).toContain('Query');
  });
});
