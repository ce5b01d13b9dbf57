/** Specification, "Common request headers": who asks, for which organisation, why, and how durable. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DoorWorld, goodToken, openType, sendRaw } from './door-world.ts';

let world: DoorWorld;
beforeAll(async () => {
  world = await new DoorWorld().open();
  world.types.set('T', openType('T'));
});
afterAll(() => world.close());
beforeEach(() => {
  world.records.length = 0;
  world.commands.length = 0;
});

const ask = (headers: Record<string, string | string[]>, body: object = { sql: 'SELECT 1' }) =>
  world.call('POST', '/query', body, headers);

describe('Authorization', () => {
  test('without a credential, or with a wrong one, the answer is 401 and says which scheme', async () => {
    for (const authorization of ['', 'Bearer wrong', 'Basic Zm9vOmJhcg==', goodToken]) {
      const reply = await ask({ authorization });
      expect(reply.status).toBe(401);
      expect(reply.headers['www-authenticate']).toMatch(/^Bearer/);
      expect(reply.json['type']).toBe('urn:test:errors/REL_UNAUTHENTICATED');
    }
  });

  test('sent twice it is refused, whichever of the two is good', async () => {
    const good = `Authorization: Bearer ${goodToken}\r\n`;
    const bad = 'authorization: Bearer wrong\r\n';
    for (const pair of [good + bad, bad + good, good + good]) {
      const text = await sendRaw(world.door.port, `GET /status HTTP/1.1\r\nhost: x\r\n${pair}connection: close\r\n\r\n`);
      expect(text).toMatch(/^HTTP\/1\.1 400 /);
      expect(text).toContain('authorization was sent more than once');
    }
  });

  test('a body is not read before the credential is known to be good', async () => {
    const reply = await ask({ authorization: '' }, { broken: true });
    expect(reply.status).toBe(401);
  });
});

describe('X-Organization-Id', () => {
  test('reaches the authenticator as UTF-8 text', async () => {
    const path = 'größe/東京';
    await ask({ 'x-organization-id': Buffer.from(path, 'utf8').toString('latin1') });
    expect(world.records[0]?.caller.path).toBe(path);
  });

  test('bytes that are not UTF-8 are refused', async () => {
    const reply = await ask({ 'x-organization-id': 'gr\xf6sse' });
    expect([reply.status, reply.json['detail']]).toEqual([400, 'the header x-organization-id is not UTF-8']);
  });

  test('sent twice it is refused', async () => {
    const reply = await ask({ 'x-organization-id': ['acme', 'globex'] });
    expect(reply.status).toBe(400);
    expect(reply.json['detail']).toContain('x-organization-id was sent more than once');
  });
});

describe('purpose', () => {
  test('comes from the body, else from x-service-purpose, else there is none', async () => {
    await ask({}, { sql: 'SELECT 1', purpose: 'analytics' });
    await ask({ 'x-service-purpose': 'test' });
    await ask({});
    expect(world.records.map((record) => record.request.purpose)).toEqual(['analytics', 'test', null]);
  });

  test('two that differ are refused', async () => {
    const reply = await ask({ 'x-service-purpose': 'test' }, { sql: 'SELECT 1', purpose: 'analytics' });
    expect(reply.status).toBe(400);
    const same = await ask({ 'x-service-purpose': 'test' }, { sql: 'SELECT 1', purpose: 'test' });
    expect(same.status).toBe(200);
  });

  test('one without a letter is malformed, not one that is not registered', async () => {
    for (const [path, body] of [
      ['/query', '{"sql":"SELECT 1"}'],
      ['/query', '{"sql":"SELECT 1","purpose":"analytics"}'],
      ['/ingest?object_type=T', '{"a":1}'],
    ] as const) {
      const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${goodToken}\r\nx-service-purpose:\r\nconnection: close\r\n`;
      const text = await sendRaw(world.door.port, `${head}content-length: ${body.length}\r\n\r\n${body}`);
      expect([path, text.slice(0, 13), text]).toEqual([
        path,
        'HTTP/1.1 400 ',
        expect.stringContaining('x-service-purpose is empty'),
      ]);
    }
  });

  test('of an ingest comes from its query string', async () => {
    await world.call('POST', '/ingest?object_type=T&purpose=analytics', '{"a":1}');
    expect(world.records[0]?.request).toMatchObject({ action: 'ingest', purpose: 'analytics' });
  });
});

describe('X-Service-Durability', () => {
  test('sync asks for this write’s own fsync', async () => {
    for (const value of ['sync', 'SYNC'])
      await world.call('POST', '/ingest?object_type=T', '{"a":1}', { 'x-service-durability': value });
    await world.call('POST', '/ingest?object_type=T', '{"a":1}');
    expect(world.commands.map((command) => command.sync)).toEqual([true, true, false]);
  });

  test('anything else is refused before a row is written', async () => {
    const reply = await world.call('POST', '/ingest?object_type=T', '{"a":1}', { 'x-service-durability': 'soon' });
    expect([reply.status, world.commands.length]).toEqual([400, 0]);
  });

  test('holds for deletes and types as well', async () => {
    await world.call('DELETE', '/types/T/a', undefined, { 'x-service-durability': 'sync' });
    await world.call('POST', '/types', { name: 'T' }, { 'x-service-durability': 'sync' });
    expect(world.commands.map((command) => command.sync)).toEqual([true, true]);
  });
});

test('an Idempotency-Key becomes a receipt that names the caller and the body', async () => {
  const post = (body: string, headers: Record<string, string> = {}) =>
    world.call('POST', '/ingest?object_type=T', body, { 'idempotency-key': 'k', ...headers });
  await post('{"a":1}');
  await post('{"a":1}');
  await post('{"a":2}');
  await post('{"a":1}', { 'x-organization-id': 'acme' });
  const receipts = world.commands.map(({ command }) => (command.kind === 'put-rows' ? command.receipt! : null)!);
  expect(receipts.map(({ batch, last, firstIndex }) => [batch, last, firstIndex])).toEqual(Array(4).fill([0, true, 0]));
  const [first, again, body, scope] = receipts;
  expect(again).toEqual(first);
  expect([body!.key === first!.key, body!.request === first!.request]).toEqual([true, false]);
  expect([scope!.key === first!.key, scope!.request === first!.request]).toEqual([false, true]);
});

test('a body compressed in a way that is not read is refused, not taken for CSV', async () => {
  const reply = await world.call('POST', '/ingest?object_type=T', '\x1f\x8b', { 'content-encoding': 'br' });
  expect([reply.status, world.commands.length]).toEqual([501, 0]);
});
