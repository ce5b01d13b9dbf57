/** What a write may ask for beside its rows: to be done once, later, compressed, and with lineage. Over the whole stack. */
import { deflateSync, gzipSync } from 'node:zlib';
import { tableFromArrays, tableToIPC } from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
const acme: Record<string, string> = { 'x-organization-id': 'acme' };

beforeAll(async () => {
  world = await StoreWorld.open();
  await world.call('POST', '/types', {
    name: 'Ware',
    properties: { key: 'string', n: { type: 'integer', required: true } },
    primary_key: 'key',
  });
});

afterAll(() => world.close());

let made = 0;
const freshType = async (): Promise<string> => {
  const name = `T${made++}`;
  await world.call('POST', '/types', { name, properties: { key: 'string', n: 'integer' }, primary_key: 'key' });
  return name;
};
const freshKey = (): string => `key-${made++}`;
const lines = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, i) => JSON.stringify({ key: `k${from + i}`, n: from + i })).join('\n');
const post = (type: string, body: unknown, headers: Record<string, string> = {}, query = '', route = '/ingest'): Promise<Reply> =>
  world.call('POST', `${route}?object_type=${type}${query}`, body, headers);
const versions = async (type: string, headers = {}): Promise<number> =>
  (await world.rows(`SELECT COUNT(*) AS c FROM ${type}`, headers))[0]!['c'] as number;
const codeOf = (reply: Reply): [number, string] => [reply.status, String(reply.json['type']).split('/').at(-1)!];

describe('Idempotency-Key', () => {
  test('the same request again gets the same reply and has no further effect', async () => {
    const type = await freshType();
    const once = { 'idempotency-key': freshKey() };
    const first = await post(type, lines(0, 10), once);
    expect(first.json).toMatchObject({ accepted: 10, rejected: 0 });
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    const again = await post(type, lines(0, 10), once);
    expect(again.headers['idempotency-replayed']).toBe('true');
    expect(again.text).toBe(first.text);
    expect(await versions(type)).toBe(10);
    // Without a key, the same body is an update.
    await post(type, lines(0, 10));
    expect(await versions(type)).toBe(20);
  });

  test('a stream of Arrow, of several batches in one message', async () => {
    const type = await freshType();
    const once = { 'idempotency-key': freshKey(), 'content-type': 'application/vnd.apache.arrow.stream' };
    const columns = {
      key: Int32Array.from({ length: 9_000 }, (_, i) => i),
      n: Float64Array.from({ length: 9_000 }, (_, i) => i),
    };
    columns.n[8_000] = Number.NaN;
    const body = tableToIPC(tableFromArrays({ ...columns, key: Array.from(columns.key, (i) => `k${i}`) }), 'stream');
    const first = await post(type, body, once);
    expect(first.json).toMatchObject({ accepted: 8_999, rejected: 1, errors: [{ index: 8_000, code: 'REL_TYPE_MISMATCH' }] });
    const again = await post(type, body, once);
    expect([again.headers['idempotency-replayed'], again.text]).toEqual(['true', first.text]);
    expect(await versions(type)).toBe(8_999);
    const [row] = await world.rows(`SELECT n FROM ${type} WHERE key = 'k8999'`);
    expect(row).toEqual({ n: 8_999 });
  });

  test('a body of many batches, and its rejections', async () => {
    const type = await freshType();
    const once = { 'idempotency-key': freshKey() };
    const body = `${lines(0, 9_000)}\n{"key":"bad","n":"x"}\n{broken\n${lines(9_000, 12_000)}`;
    const first = await post(type, body, once);
    expect(first.json).toMatchObject({ accepted: 12_000, rejected: 2, truncated: true });
    expect((first.json['errors'] as { index: number }[]).map(({ index }) => index)).toEqual([9_000, 9_001]);
    const before = await versions(type);
    const again = await post(type, body, once);
    expect(again.text).toBe(first.text);
    expect(await versions(type)).toBe(before);
    // What is a valid row by now was none then: the reply stays.
    const wider = await world.call('POST', `/types/${type}/schema`, { properties: { n: 'json' } });
    expect(wider.status, wider.text).toBe(200);
    expect((await post(type, body, once)).text).toBe(first.text);
  });

  test('a request that was cut off half-way goes on where it stopped', async () => {
    const type = await freshType();
    const once = { 'idempotency-key': freshKey() };
    // Broken after the second batch of 4,096: both are written, and the reply says so.
    const whole = `[${lines(0, 9_000).replaceAll('\n', ',')}]`;
    const cut = whole.slice(0, whole.indexOf('{"key":"k8500"'));
    const broken = await post(type, cut, once);
    expect(codeOf(broken)).toEqual([400, 'REL_PARSE']);
    const written = await versions(type);
    expect(written).toBeGreaterThan(8_000);
    expect(broken.json['accepted']).toBe(written);
    const again = await post(type, cut, once);
    expect(codeOf(again)).toEqual([400, 'REL_PARSE']);
    expect(await versions(type)).toBe(written);
  });

  test('one key is one request: another body, type or route is refused', async () => {
    const type = await freshType();
    const other = await freshType();
    const once = { 'idempotency-key': freshKey() };
    expect((await post(type, lines(0, 3), once)).status).toBe(200);
    const others: Promise<Reply>[] = [
      post(type, lines(0, 4), once),
      post(type, lines(0, 2), once),
      post(type, `${lines(0, 3)}\n`, once),
      post(type, '', once),
      post(other, lines(0, 3), once),
      post(type, lines(0, 3), once, '&atomic=true'),
      post(type, lines(0, 3), once, '&source=elsewhere'),
      post(type, lines(0, 3), once, '', '/ingest/bulk'),
    ];
    for (const reply of await Promise.all(others)) expect(codeOf(reply)).toEqual([422, 'REL_UNPROCESSABLE']);
    expect(await versions(type)).toBe(3);
    expect(await versions(other)).toBe(0);
  });

  test('a key is one caller’s: another organisation or principal has its own', async () => {
    const type = await freshType();
    const once = { 'idempotency-key': freshKey() };
    await post(type, lines(0, 3), once);
    const elsewhere = await post(type, lines(0, 2), { ...once, ...acme });
    expect(elsewhere.json).toMatchObject({ accepted: 2 });
    const somebody = await world.tokenFor({ principal: 'somebody else' });
    expect((await post(type, lines(5, 6), { ...once, ...somebody })).json).toMatchObject({ accepted: 1 });
    expect(await versions(type)).toBe(4);
    expect(await versions(type, acme)).toBe(2);
  });

  test('a branch whose name was deleted and taken again is another one', async () => {
    const type = await freshType();
    const once = { 'idempotency-key': freshKey() };
    const fork = (): Promise<Reply> => world.call('POST', '/v1/namespaces/again/branch', { branch_from: 'main' });
    await fork();
    expect((await post(type, lines(0, 3), once, '&branch=again')).json).toMatchObject({ accepted: 3 });
    expect((await post(type, lines(0, 3), once, '&branch=again')).headers['idempotency-replayed']).toBe('true');
    await world.call('DELETE', '/schema/branches/again');
    await fork();
    expect(codeOf(await post(type, lines(0, 3), once, '&branch=again'))).toEqual([422, 'REL_UNPROCESSABLE']);
    expect(await versions(type, { 'x-service-branch': 'again' })).toBe(0);
  });

  test('twins at the same time write once and both get the reply', { repeats: 5 }, async () => {
    const type = await freshType();
    const once = { 'idempotency-key': freshKey() };
    const body = lines(0, 9_500);
    const replies = await Promise.all(Array.from({ length: 4 }, () => post(type, body, once)));
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
    expect(replies[0]!.json).toMatchObject({ accepted: 9_500 });
    expect(await versions(type)).toBe(9_500);
  });

  test('atomic bodies, bodies without rows, types that are made', async () => {
    const type = await freshType();
    const once = { 'idempotency-key': freshKey() };
    const bad = `${lines(0, 3)}\n{"key":"x","n":"no"}`;
    // Refused whole, it leaves nothing behind: the mended request may use the key.
    expect((await post(type, bad, once, '&atomic=true')).status).toBe(400);
    const mended = await post(type, lines(0, 3), once, '&atomic=true');
    expect(mended.json).toMatchObject({ accepted: 3 });
    expect((await post(type, lines(0, 3), once, '&atomic=true')).text).toBe(mended.text);
    expect(await versions(type)).toBe(3);

    const empty = { 'idempotency-key': freshKey() };
    const nothing = await post(type, '', empty);
    expect(nothing.json).toMatchObject({ accepted: 0, rejected: 0 });
    expect((await post(type, '', empty)).headers['idempotency-replayed']).toBe('true');
    expect(codeOf(await post(type, lines(0, 1), empty))).toEqual([422, 'REL_UNPROCESSABLE']);

    const auto = { 'idempotency-key': freshKey() };
    const name = `Auto${made++}`;
    const first = await post(name, '{"id":"a","x":1}', auto, '', '/ingest/auto');
    expect((await post(name, '{"id":"a","x":1}', auto, '', '/ingest/auto')).text).toBe(first.text);
    expect(await versions(name)).toBe(1);
  });

  test.each(['', ' ', 'a b', 'é', 'x'.repeat(256)])('%j is no key', async (key) => {
    const reply = await world.call('POST', '/ingest?object_type=Ware', lines(0, 1), { 'idempotency-key': key || '\t' });
    expect(codeOf(reply)).toEqual([400, 'REL_INVALID']);
  });
});

describe('what a body is', () => {
  test.each(['application/json', 'application/x-ndjson', 'text/csv', 'application/x-www-form-urlencoded', ''])(
    'is told by its first byte under %j',
    async (label) => {
      const type = await freshType();
      const bodies = [
        'key,n\na,1\n',
        '{"key":"b","n":2}\n{"key":"c","n":3}',
        '[{"key":"d","n":4}]',
        '{"rows":[{"key":"e","n":5}]}',
      ];
      for (const body of bodies) {
        const reply = await post(type, body, { 'content-type': label });
        expect([reply.status, reply.json['rejected']], reply.text).toEqual([200, 0]);
      }
      expect(await versions(type)).toBe(5);
    },
  );

  test('says of a text for an open type’s number what it says of any other', async () => {
    const auto = (body: string) => post(`Open${made}`, body, {}, '', '/ingest/auto');
    await auto('{"phone":5,"ok":true,"name":"x"}');
    const { json } = await auto('{"phone":"+49 30"}\n{"phone":1.5}\n{"ok":"no"}\n{"name":7}\n{"phone":[1]}');
    expect(json).toMatchObject({ accepted: 1, rejected: 4 });
    expect((json['errors'] as { detail: string }[]).map(({ detail }) => detail)).toEqual([
      'phone is an integer; "+49 30" is a string',
      'ok is a boolean; "no" is a string',
      'name is a string; "7" is an integer',
      'phone is a number; "[1]" is an object or array',
    ]);
    expect((await auto('phone\n"6"\n+49\n')).json).toMatchObject({ accepted: 1, rejected: 1 });
  });
});

describe('compressed bodies', () => {
  test.each<[string, (text: string) => Buffer]>([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
  ])('%s', async (encoding, pack) => {
    const type = await freshType();
    const reply = await post(type, pack(lines(0, 5_000)), { 'content-encoding': encoding });
    expect(reply.json).toMatchObject({ accepted: 5_000 });
    expect(await versions(type)).toBe(5_000);
  });

  test('broken, cut, unknown and far too large ones are refused', async () => {
    const type = await freshType();
    const packed = gzipSync(lines(0, 2_000));
    const gzip = { 'content-encoding': 'gzip' };
    expect(codeOf(await post(type, lines(0, 3), gzip))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await post(type, packed.subarray(0, packed.length - 20), gzip, '&atomic=true'))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await post(type, lines(0, 3), { 'content-encoding': 'br' }))).toEqual([501, 'REL_NOT_IMPLEMENTED']);
    const bomb = gzipSync(Buffer.concat([Buffer.from('{"key":"a","n":"x"}'), Buffer.alloc(64 << 20, 0x0a)]));
    expect(codeOf(await post(type, bomb, gzip))).toEqual([413, 'REL_TOO_LARGE']);
    expect(codeOf(await post(type, gzipSync(lines(0, 100_000)), gzip, '&atomic=true'))).toEqual([413, 'REL_TOO_LARGE']);
    // Nor is what can be refused at once promised.
    expect(codeOf(await post(type, bomb, gzip, '&async=true'))).toEqual([413, 'REL_TOO_LARGE']);
    expect(codeOf(await post(type, lines(0, 3), gzip, '&async=true'))).toEqual([400, 'REL_INVALID']);
    expect(await versions(type)).toBe(0);
  });

  test.each([
    ['POST', '/query', { sql: 'SELECT 1 AS one' }],
    ['POST', '/query/stream', { sql: 'SELECT 1 AS one' }],
    ['POST', '/graphql', { query: '{ __typename }' }],
    ['POST', '/mcp/tools/call', { name: 'server_health', arguments: { purpose: 'test' } }],
    ['POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }],
    ['POST', '/types', { name: 'Packed' }],
  ])('are read by %s %s as well, within what that route takes', async (method, path, body) => {
    const accept = { accept: 'application/json, text/event-stream, application/x-ndjson', 'content-type': 'application/json' };
    const send = (bytes: Buffer, encoding: string) =>
      world.call(method, path, bytes, { ...accept, 'content-encoding': encoding });
    const text = JSON.stringify(body);
    const plain = await world.call(method, path, text, accept);
    const codes = async (bytes: Buffer, encoding: string): Promise<number> => (await send(bytes, encoding)).status;
    expect([200, 201]).toContain(plain.status);
    expect([200, 201, 409]).toContain(await codes(gzipSync(text), 'gzip'));
    expect(await codes(gzipSync(text).subarray(0, 12), 'gzip')).toBe(400);
    expect(await codes(Buffer.from(text), 'br')).toBe(501);
    expect(await codes(gzipSync(Buffer.alloc(9 << 20, 0x20)), 'gzip')).toBe(413);
  });
});

describe('tasks', () => {
  const ended = async (url: string, headers = {}): Promise<Record<string, unknown>> => {
    for (let i = 0; i < 400; i++) {
      const { json } = await world.call('GET', url, undefined, headers);
      if (json['state'] === 'done' || json['state'] === 'failed') return json;
      await new Promise((resolve) => setImmediate(resolve));
    }
    throw new Error('the task does not end');
  };

  test('a body is accepted, and what became of it can be asked', async () => {
    const type = await freshType();
    const reply = await post(type, `${lines(0, 5_000)}\n{"n":1}`, acme, '&async=true');
    expect(reply.status, reply.text).toBe(202);
    const { task_id: id, status_url: url } = reply.json as { task_id: string; status_url: string };
    expect(url).toBe(`/ingest/tasks/${id}`);
    expect(reply.headers.location).toBe(url);
    const task = await ended(url, acme);
    expect(task).toMatchObject({ task_id: id, state: 'done', accepted: 5_000, rejected: 1 });
    expect(task['reply']).toMatchObject({ type, accepted: 5_000, rejected: 1 });
    expect(await versions(type, acme)).toBe(5_000);
    // Nobody else knows of it.
    for (const scope of [{}, { 'x-organization-id': 'acme/eu' }, { 'x-organization-id': 'globex' }]) {
      expect((await world.call('GET', url, undefined, scope)).status).toBe(404);
    }
    expect((await world.call('GET', '/ingest/tasks/no-such', undefined, acme)).status).toBe(404);
  });

  test('one that fails says why; what can be refused at once is', async () => {
    const type = await freshType();
    const { json } = await post(type, '[{"key":"a","n":1},{"key"', {}, '&async=true');
    const task = await ended(json['status_url'] as string);
    expect(task).toMatchObject({ state: 'failed' });
    expect(task['problem']).toMatchObject({ status: 400, type: expect.stringContaining('REL_PARSE') as string });
    expect(codeOf(await post('NoSuchType', lines(0, 1), {}, '&async=true'))).toEqual([404, 'REL_UNKNOWN_TYPE']);
    expect(codeOf(await post(type, lines(0, 100_000), {}, '&async=true'))).toEqual([413, 'REL_TOO_LARGE']);
  });

  test('the queue has an end, a stop waits for what was promised, and each leaves its records', async () => {
    const own = await StoreWorld.open();
    await own.call('POST', '/types', { name: 'Ware', properties: { key: 'string', n: 'integer' }, primary_key: 'key' });
    const replies = await Promise.all(
      Array.from({ length: 120 }, (_, i) =>
        own.call('POST', '/ingest?object_type=Ware&async=true', lines(i * 2_000, (i + 1) * 2_000)),
      ),
    );
    const accepted = replies.filter(({ status }) => status === 202).length;
    const full = replies.filter(({ status }) => status === 429);
    expect(accepted + full.length).toBe(120);
    expect(accepted).toBeGreaterThanOrEqual(64);
    for (const reply of full) expect(codeOf(reply)).toEqual([429, 'REL_QUEUE_FULL']);
    const stopped = own.door.stop();
    expect(await own.service.close()).toBe(true);
    await stopped;
    expect(own.service.store.projections.rows.table(null, 'Ware')!.counts.get(0)!.versions).toBe(accepted * 2_000);
  });

  test('an idempotent task is done once', async () => {
    const type = await freshType();
    const once = { 'idempotency-key': freshKey() };
    const urls = [];
    for (let i = 0; i < 3; i++) urls.push((await post(type, lines(0, 100), once, '&async=true')).json['status_url'] as string);
    const replies = [];
    for (const url of urls) replies.push((await ended(url))['reply']);
    expect(replies[1]).toEqual(replies[0]);
    expect(replies[2]).toEqual(replies[0]);
    expect(await versions(type)).toBe(100);
  });
});

describe('lineage', () => {
  const provenance = async (sql: string): Promise<Record<string, unknown>[]> => {
    const { json, text } = await world.query(`${sql} WITH PROVENANCE`);
    expect(json['provenance'], text).toBeDefined();
    return (json['provenance'] as Record<string, unknown>[]).map(({ recorded_at: _at, ...entry }) => entry);
  };

  test('of the request, and of each row where it says its own', async () => {
    const type = await freshType();
    const reference = '00000000000000ff';
    const rows = [
      { key: 'a', n: 1 },
      { key: 'b', n: 2, _provenance: { source: 'sensor 7', confidence: 0.25 } },
      { key: 'c', n: 3, _provenance: { source: 'sensor 7', confidence: 0.25 } },
      { key: 'd', n: 4, _provenance: { method: 'guess', derived_from: reference } },
      { key: 'e', n: 5, _provenance: null },
      { key: 'f', n: 6, _provenance: { derived_from: null } },
    ];
    const reply = await post(type, rows, {}, `&source=file+9&method=import&confidence=0.5&derived_from=${'ab'.repeat(32)}`);
    expect(reply.json).toMatchObject({ accepted: 6, rejected: 0, ids: ['a', 'b', 'c', 'd', 'e', 'f'] });
    const base = { source: 'file 9', method: 'import', confidence: 0.5, derived_from: 'ab'.repeat(32) };
    expect(await provenance(`SELECT key FROM ${type}`)).toEqual([
      base,
      { ...base, source: 'sensor 7', confidence: 0.25 },
      { ...base, source: 'sensor 7', confidence: 0.25 },
      { ...base, method: 'guess', derived_from: reference },
      base,
      { ...base, derived_from: null },
    ]);
    // In the order of the body, one nanosecond after the other, whatever their lineage.
    const stored = await world.query(`SELECT key, system_from FROM ${type}`);
    const times = [...stored.text.matchAll(/"system_from":(\d+)/g)].map(([, time]) => BigInt(time!));
    expect(times.map((time) => time - times[0]!)).toEqual([0n, 1n, 2n, 3n, 4n, 5n]);
    expect((await world.rows(`SELECT * FROM ${type}`)).some((row) => '_provenance' in row)).toBe(false);
  });

  test('lineage that changes with every row has a bound', async () => {
    const type = await freshType();
    const rows = Array.from({ length: 4_100 }, (_, i) => ({ key: `k${i}`, n: i, _provenance: { source: `s${i % 2}` } }));
    expect(codeOf(await post(type, rows, {}, '&atomic=true'))).toEqual([422, 'REL_UNPROCESSABLE']);
    expect(await versions(type)).toBe(0);
    expect((await post(type, rows)).json).toMatchObject({ accepted: 4_100 });
    const [last] = await provenance(`SELECT key FROM ${type} WHERE key = 'k4099'`);
    expect(last).toMatchObject({ source: 's1' });
  });

  test('updates close across entries of one body, with bounds too', async () => {
    const type = await freshType();
    const rows = [
      { key: 'a', n: 1 },
      { key: 'a', n: 2, _provenance: { source: 'x' } },
      { key: 'a', n: 3, valid_from: '2020-01-01', valid_to: '2021-01-01', _provenance: { source: 'y' } },
      { key: 'b', n: 4, _provenance: { source: 'z' } },
    ];
    expect((await post(type, rows)).json).toMatchObject({ accepted: 4 });
    const live = `SELECT key, n FROM ${type} WHERE system_to = 9223372036854775807`;
    expect(await world.rows(live)).toEqual([
      { key: 'a', n: 2 },
      { key: 'a', n: 3 },
      { key: 'b', n: 4 },
    ]);
    expect((await provenance(live)).map(({ source }) => source)).toEqual(['x', 'y', 'z']);
  });

  test.each<[unknown, string]>([
    ['text', 'an object'],
    [[], 'an object'],
    [{ confidence: 1.5 }, 'confidence'],
    [{ confidence: -0.1 }, 'confidence'],
    [{ confidence: '1' }, 'confidence'],
    [{ source: '' }, 'source'],
    [{ source: 7 }, 'source'],
    [{ derived_from: 'xyz' }, 'derived_from'],
    [{ derived_from: 'ab' }, 'derived_from'],
    [{ sauce: 'x' }, 'no field'],
  ])('a row with the provenance %j is rejected alone', async (given, why) => {
    const type = await freshType();
    const reply = await post(type, [
      { key: 'a', n: 1 },
      { key: 'b', n: 2, _provenance: given },
      { key: 'c', n: 3 },
    ]);
    expect(reply.json).toMatchObject({ accepted: 2, rejected: 1, ids: ['a', 'c'] });
    expect(reply.json['errors']).toMatchObject([
      { index: 1, code: 'REL_INVALID', detail: expect.stringContaining(why) as string },
    ]);
  });

  test.each(['confidence=2', 'confidence=NaN', 'confidence=', 'derived_from=x', 'source='])(
    'a request with %s is refused',
    async (query) => {
      const type = await freshType();
      expect(codeOf(await post(type, lines(0, 2), {}, `&${query}`))).toEqual([400, 'REL_INVALID']);
      expect(await versions(type)).toBe(0);
    },
  );
});
