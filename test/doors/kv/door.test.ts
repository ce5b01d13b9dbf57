/** The key-value door by the clients that most people use: one server, everything asked through `ioredis` and `redis`. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ByteDictionary } from '../../../src/projections/rows/cells/byte-dictionary.ts';
import { StoreWorld } from '../http/store-world.ts';
import { kvConnected, kvSecret, refusalOf } from './kv-client.ts';

let world: StoreWorld;
let redis: Redis;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: kvSecret });
  redis = kvConnected(world);
});

afterAll(async () => {
  redis.disconnect();
  await world.close();
});

const port = (): number => world.others.find(({ name }) => name === 'kv')!.port;

describe('values', () => {
  test('what is set is read, by SQL too', async () => {
    expect(await redis.set('a', 'één')).toBe('OK');
    expect(await redis.get('a')).toBe('één');
    expect(await redis.get('never')).toBeNull();
    expect(await world.rows("SELECT value FROM KvEntry WHERE _pk = 'a'")).toEqual([{ value: 'één' }]);
  });

  test('bytes that are no text come back as they were', async () => {
    const bytes = Buffer.from([0, 255, 254, 10, 13, 128]);
    await redis.set('bytes', bytes);
    expect(await redis.getBuffer('bytes')).toEqual(bytes);
    expect(await redis.strlen('bytes')).toBe(6);
  });

  test('a long value that is read or appended to is never made a string', async () => {
    const read = vi.spyOn(ByteDictionary.prototype, 'text');
    const decoded = vi.spyOn(TextDecoder.prototype, 'decode');
    const value = 'é'.repeat(100_000);
    await redis.set('long', value);
    expect(await redis.get('long')).toBe(value);
    expect(await redis.append('long', 'x')).toBe(200_001);
    expect(await redis.strlen('long')).toBe(200_001);
    const lengths = [...read.mock.results, ...decoded.mock.results].map((result) => String(result.value).length);
    expect(Math.max(...lengths)).toBeLessThan(4_096);
    read.mockRestore();
    decoded.mockRestore();
  });

  test('what has ended in the past is told once, and gone', async () => {
    await redis.set('past', 'v');
    expect(await redis.call('GETEX', 'past', 'EXAT', '1')).toBe('v');
    expect(await redis.exists('past')).toBe(0);
    expect(await redis.call('GETEX', 'past', 'EXAT', '0')).toBeNull();
    await redis.set('past', 'v');
    expect(await refusalOf(redis.call('GETEX', 'past', 'EXAT', '0'))).toBe("ERR invalid expire time in 'getex' command");
    expect(await redis.call('SET', 'past', 'w', 'GET', 'PXAT', '1')).toBe('v');
    expect(await redis.exists('past')).toBe(0);
    await redis.set('past', 'v', 'EX', 1_000);
    expect(await redis.call('EXPIRE', 'past', '10', 'XX', 'LT')).toBe(1);
    expect(await redis.call('EXPIRE', 'past', '5', 'XX', 'GT')).toBe(0);
    expect(await refusalOf(redis.call('EXPIRE', 'past', '5', 'NX', 'GT'))).toBe(
      'ERR NX and XX, GT or LT options at the same time are not compatible',
    );
    expect(await refusalOf(redis.call('EXPIRE', 'past', '5', 'GT', 'LT'))).toBe(
      'ERR GT and LT options at the same time are not compatible',
    );
    expect(await refusalOf(redis.call('EXPIRE', 'past', '5', 'SOON'))).toBe('ERR Unsupported option SOON');
    expect(await redis.call('PEXPIREAT', 'past', '1000000000000000')).toBe(1);
    expect(await redis.call('EXPIREAT', 'past', '9223372036854775')).toBe(1);
    expect(await redis.get('past')).toBe('v');
    expect(await redis.call('EXPIRETIME', 'past')).toBe(9_223_372_036);
    expect(await redis.call('PEXPIREAT', 'past', '-5', 'LT')).toBe(1);
    expect(await redis.exists('past')).toBe(0);
  });

  test('options of SET', async () => {
    expect(await redis.set('o', '1', 'NX')).toBe('OK');
    expect(await redis.set('o', '2', 'NX')).toBeNull();
    expect(await redis.set('o', '2', 'XX', 'GET')).toBe('1');
    expect(await redis.set('never', '2', 'XX')).toBeNull();
    expect(await redis.set('o', '3', 'EX', 100)).toBe('OK');
    expect(await redis.set('o', '4', 'KEEPTTL')).toBe('OK');
    expect(await redis.ttl('o')).toBe(100);
    expect(await redis.set('o', '5')).toBe('OK');
    expect(await redis.ttl('o')).toBe(-1);
    expect(await refusalOf(redis.call('SET', 'o', '1', 'EX', '0'))).toBe("ERR invalid expire time in 'set' command");
    expect(await refusalOf(redis.call('SET', 'o', '1', 'NX', 'XX'))).toBe('ERR syntax error');
    expect(await redis.get('o')).toBe('5');
  });

  test('a value that expires leaves nothing of an earlier one behind it', async () => {
    await redis.set('e', 'old');
    await redis.set('e', 'new', 'PX', 150);
    expect(await redis.get('e')).toBe('new');
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await redis.get('e')).toBeNull();
    expect(await redis.del('e')).toBe(0);
    expect(await redis.set('e', 'again', 'NX')).toBe('OK');
  });

  test('counting', async () => {
    expect(await redis.incr('n')).toBe(1);
    expect(await redis.incrby('n', 41)).toBe(42);
    expect(await redis.decr('n')).toBe(41);
    expect(await redis.incrbyfloat('f', 10.5)).toBe('10.5');
    expect(await redis.incrbyfloat('f', 0.1)).toBe('10.6');
    await redis.set('tenth', '0.1');
    expect(await redis.incrbyfloat('tenth', 0.2)).toBe('0.3');
    await redis.del('ten');
    for (let i = 0; i < 10; i++) await redis.incrbyfloat('ten', 0.1);
    expect(await redis.get('ten')).toBe('1');
    await redis.set('hundred', '100');
    expect(await redis.incrbyfloat('hundred', -99.9)).toBe('0.1');
    expect(await redis.incrbyfloat('hundred', '1.5e-7')).toBe('0.10000015');
    expect(await refusalOf(redis.incrbyfloat('hundred', 'inf'))).toBe('ERR increment would produce NaN or Infinity');
    expect(await refusalOf(redis.incrbyfloat('hundred', '1e5000'))).toBe('ERR value is not a valid float');
    await redis.set('text', 'x');
    expect(await refusalOf(redis.incr('text'))).toBe('ERR value is not an integer or out of range');
    const sums = await Promise.all(Array.from({ length: 20 }, () => redis.incr('together')));
    expect(new Set(sums).size).toBe(20);
    expect(await redis.append('text', 'yz')).toBe(3);
    expect(await redis.get('text')).toBe('xyz');
  });

  test('several at once', async () => {
    expect(await redis.mset({ m1: '1', m2: '2' })).toBe('OK');
    expect(await redis.mget('m1', 'none', 'm2', 'm1')).toEqual(['1', null, '2', '1']);
    expect(await redis.msetnx({ m3: '3', m1: '9' })).toBe(0);
    expect(await redis.exists('m1', 'm1', 'm3')).toBe(2);
    expect(await redis.del('m1', 'm2', 'm3')).toBe(2);
    expect(await redis.getdel('a')).toBe('één');
    expect(await redis.get('a')).toBeNull();
  });
});

describe('many keys', () => {
  const keys = Array.from({ length: 20_000 }, (_, i) => `many:${i}`);

  test('a command writes 4,096 of them at most, all or none; it reads and deletes as many as there are', async () => {
    const pairs = keys.slice(0, 4_097).flatMap((key, i) => [key, String(i)]);
    expect(await refusalOf(redis.call('MSET', ...pairs))).toMatch(/^\S+ a command writes at most 4096 keys, all of them or none/);
    expect(await redis.exists('many:0')).toBe(0);
    expect(await redis.call('MSET', ...pairs.slice(2))).toBe('OK');
    const values = await redis.mget(...keys);
    expect([values.length, values[0], values[1], values[4_096], values[4_097]]).toEqual([20_000, null, '1', '4096', null]);
    expect((await redis.keys('many:*')).length).toBe(4_096);
    expect(await redis.del(...keys)).toBe(4_096);
    expect(await redis.exists(...keys)).toBe(0);
  });

  test.each(['EXISTS', 'MGET', 'DEL'])('others have their turn while %s works', async (name) => {
    const other = kvConnected(world);
    await other.ping();
    const ended: string[] = [];
    await Promise.all([
      redis.call(name, ...keys).then(() => ended.push(name)),
      // The command is on its way by then, and long before its end.
      new Promise((resolve) => setImmediate(resolve)).then(() => other.ping()).then(() => ended.push('PING')),
    ]);
    expect(ended).toEqual(['PING', name]);
    other.disconnect();
  });
});

describe('keys', () => {
  test('expiry', async () => {
    await redis.set('x', '1');
    expect(await redis.expire('x', 100)).toBe(1);
    expect(await redis.expire('x', 50, 'GT')).toBe(0);
    expect(await redis.pttl('x')).toBeGreaterThan(99_000);
    expect(await redis.persist('x')).toBe(1);
    expect(await redis.persist('x')).toBe(0);
    expect(await redis.ttl('x')).toBe(-1);
    expect(await redis.getex('x', 'EX', 10)).toBe('1');
    expect(await redis.ttl('x')).toBe(10);
    expect(await redis.expire('x', -1)).toBe(1);
    expect(await redis.ttl('x')).toBe(-2);
    expect(await redis.expire('x', 10)).toBe(0);
    expect(await redis.type('x')).toBe('none');
  });

  test('listing, and a cursor that stays with what was there', async () => {
    for (let i = 0; i < 25; i++) await redis.set(`page:${String(i).padStart(2, '0')}`, '1');
    expect((await redis.keys('page:0?')).sort()).toEqual(Array.from({ length: 10 }, (_, i) => `page:0${i}`));
    const [cursor, first] = await redis.scan(0, 'COUNT', 10);
    await redis.set('page:late', '1');
    await redis.del('page:24');
    const rest: string[] = [...first];
    let next = cursor;
    while (next !== '0') {
      const [after, more] = await redis.scan(next, 'COUNT', 10);
      rest.push(...more);
      next = after;
    }
    const pages = rest.filter((key) => key.startsWith('page:'));
    expect(pages.sort()).toEqual(Array.from({ length: 25 }, (_, i) => `page:${String(i).padStart(2, '0')}`));
    expect(await redis.dbsize()).toBe((await redis.keys('*')).length);
    expect(await refusalOf(redis.scan(99_999))).toBe('ERR invalid cursor');
  });
});

describe('time', () => {
  test('as of then, by what was true and by what was known, and all that there was', async () => {
    await redis.set('t', 'one');
    const then = String(world.service.clock.now());
    await redis.set('t', 'two');
    expect(await redis.call('ANNALS.AT', then, 'SYSTEM', 'GET', 't')).toBe('one');
    expect(await redis.call('ANNALS.AT', then, 'SYSTEM', 'MGET', 't', 'z')).toEqual(['one', null]);
    expect(await redis.call('ANNALS.AT', '2100-01-01', 'GET', 't')).toBe('two');
    expect(await redis.call('ANNALS.AT', '2020-01-01', 'GET', 't')).toBeNull();
    const history = (await redis.call('ANNALS.HISTORY', 't')) as string[];
    expect(history.map((line) => (JSON.parse(line) as { value: string }).value)).toEqual(['one', 'two']);
    expect(await refusalOf(redis.call('ANNALS.AT', then, 'SET', 't', '3'))).toMatch(/^ERR ANNALS.AT takes a command that reads/);
  });

  test('rows of any type, and what a session states', async () => {
    await world.call('POST', '/types', { name: 'Item', properties: { sku: 'string', n: 'integer' }, primary_key: 'sku' });
    await world.call('POST', '/ingest?object_type=Item', { sku: 's1', n: 7 });
    expect(JSON.parse((await redis.call('ANNALS.ROW', 'Item', 's1')) as string)).toMatchObject({ sku: 's1', n: 7 });
    expect(await redis.call('ANNALS.ROW', 'Item', 's2')).toBeNull();
    expect(await refusalOf(redis.call('ANNALS.ROW', 'SigintIntercept', 's2'))).toMatch(/^NOPERM /);
    const own = kvConnected(world);
    expect(await own.call('ANNALS.SET', 'purpose', 'nobody knows')).toBe('OK');
    expect(await refusalOf(own.get('t'))).toMatch(/^NOPERM .*REL_PURPOSE_UNKNOWN/);
    expect(await own.call('ANNALS.SET', 'purpose', 'test')).toBe('OK');
    expect(await own.get('t')).toBe('two');
    expect(await refusalOf(own.call('ANNALS.SET', 'branch', 'nowhere'))).toMatch(/^ERR there is no branch/);
    own.disconnect();
  });
});

describe('messages', () => {
  test('are heard, by name and by pattern, and heard again', async () => {
    const since = String(world.service.clock.now());
    const [plain, pattern] = [kvConnected(world), kvConnected(world)];
    const heard: string[] = [];
    plain.on('message', (channel, message) => heard.push(`${channel} ${message}`));
    pattern.on('pmessage', (glob, channel, message) => heard.push(`${glob} ${channel} ${message}`));
    await plain.subscribe('news', 'other');
    await pattern.psubscribe('n*');
    expect(await redis.publish('news', 'first')).toBe(2);
    expect(await redis.publish('nobody', 'x')).toBe(1);
    await until(() => heard.length === 3);
    expect(heard.sort()).toEqual(['n* news first', 'n* nobody x', 'news first']);
    expect(await world.rows("SELECT message FROM PubSubMessage WHERE channel = 'news'")).toEqual([{ message: 'first' }]);

    const late = kvConnected(world);
    const replayed: string[] = [];
    late.on('message', (channel, message) => replayed.push(`${channel} ${message}`));
    await late.subscribe(`news@${since}`);
    await until(() => replayed.length === 1);
    await redis.publish('news', 'second');
    await until(() => replayed.length === 2);
    expect(replayed).toEqual([`news@${since} first`, `news@${since} second`]);
    for (const each of [plain, pattern, late]) each.disconnect();
  });
});

test('redis, the client that speaks RESP3', async () => {
  const client = createClient({ url: `redis://someone:${kvSecret}@127.0.0.1:${port()}`, RESP: 3 });
  client.on('error', () => undefined);
  await client.connect();
  await client.set('three', 'x', { expiration: { type: 'EX', value: 60 } });
  expect(await client.get('three')).toBe('x');
  expect(await client.ttl('three')).toBe(60);
  expect(await client.hello()).toMatchObject({ proto: 3, server: 'redis' });
  const listener = client.duplicate();
  await listener.connect();
  const heard = new Promise<string>((resolve) => void listener.subscribe('c3', (message) => resolve(message)));
  await until(async () => (await client.publish('c3', 'hi')) > 0);
  expect(await heard).toBe('hi');
  listener.destroy();
  await client.close();
});

describe('refusals', () => {
  test.each([
    [['GET'], "ERR wrong number of arguments for 'get' command"],
    [['LPUSH', 'k', 'v'], "ERR unknown command 'LPUSH', with args beginning with: 'k' 'v'"],
    [['MULTI'], "ERR unknown command 'MULTI', with args beginning with:"],
    [['EVAL', 'return 1', '0'], "ERR unknown command 'EVAL', with args beginning with: 'return 1' '0'"],
    [['SELECT', '1'], 'ERR DB index is out of range'],
    [['CONFIG', 'SET', 'save', 'x'], "ERR unknown subcommand 'SET'. Try CONFIG HELP."],
    [['GETEX', 'k', 'EX'], 'ERR syntax error'],
    [['HELLO', '9'], 'NOPROTO unsupported protocol version'],
  ])('%j', async ([name, ...words], text) => {
    expect(await refusalOf(redis.call(name!, ...words!))).toBe(text);
    expect(await redis.ping()).toBe('PONG');
  });

  test('who has no password, or a wrong one, is told what Redis tells', async () => {
    const socket = connect(port(), '127.0.0.1');
    const said = async (line: string): Promise<string> => {
      socket.write(`${line}\r\n`);
      const [bytes] = (await once(socket, 'data')) as [Buffer];
      return bytes.toString();
    };
    expect(await said('GET t')).toBe('-NOAUTH Authentication required.\r\n');
    expect(await said('AUTH x wrong')).toMatch(/^-WRONGPASS /);
    expect(await said(`AUTH "x" '${kvSecret}'`)).toBe('+OK\r\n');
    expect(await said('GET "\\x74"')).toBe('$3\r\ntwo\r\n');
    expect(await said('*1\r\n$xyz')).toBe('-ERR Protocol error: invalid bulk length\r\n');
    await once(socket, 'close');
  });

  test('a registry token as password is its principal, within its organisation', async () => {
    const { authorization } = await world.tokenFor({ principal: 'ann', tenant_id: 'acme' });
    const ann = kvConnected(world, { password: authorization.slice('Bearer '.length), username: 'ann@acme/eu' });
    await ann.set('hers', '1');
    const { json } = await world.call('GET', '/audit/entries?limit=100', undefined, { 'x-organization-id': 'acme/eu' });
    const entries = (json['entries'] as { door: string; principal: string }[]).filter(({ door }) => door === 'kv');
    expect(entries).toHaveLength(1);
    expect(entries[0]).toMatchObject({ principal: 'ann' });
    expect(await redis.get('hers')).toBeNull();
    ann.disconnect();
  });
});

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error('it never held');
}
