/** Specification, "Limits": what a buffered body may be, and how slowly a body may come. */
import { PassThrough, Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../../src/clock.ts';
import { RequestBodies } from '../../../src/doors/shared/http-request-bodies.ts';
import { parseJsonBody } from '../../../src/doors/http/json-body.ts';
import { ServiceError } from '../../../src/errors.ts';
import { DoorWorld, goodToken, openType, sendRaw } from '../http/door-world.ts';

let world: DoorWorld;
beforeAll(async () => {
  world = await new DoorWorld().open();
});
afterAll(() => world.close());
beforeEach(() => {
  world.questions.length = 0;
});

const largeBodies = {
  SERVICE_PROFILE: 'free',
  SERVICE_HTTP_BIND: '127.0.0.1',
  SERVICE_PORT: 0,
  SERVICE_ADMIN_BIND: '127.0.0.1:0',
  SERVICE_ERRORS_BASE: 'urn:test:errors',
  SERVICE_DRAIN_TIMEOUT_SECS: 5,
  SERVICE_PINNED_NAMESPACES: [],
  SERVICE_MAX_RESULT_ROWS: 1_000,
  SERVICE_WORKBENCH_ENABLE: false,
} as const;

const post = (body: string | Uint8Array, headers: Record<string, string> = {}) => world.call('POST', '/query', body, headers);

describe('a buffered body', () => {
  test('is JSON whatever its Content-Type says', async () => {
    for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded', '']) {
      expect((await post('{"sql":"SELECT 1"}', { 'content-type': type })).status).toBe(200);
    }
    expect(world.questions.length).toBe(4);
  });

  test('over the limit is 413, and the connection lives on', async () => {
    const body = JSON.stringify({ sql: 'x'.repeat(1024 * 1024) });
    const reply = await post(body);
    expect([reply.status, reply.json['type']]).toEqual([413, 'urn:test:errors/REL_TOO_LARGE']);
    expect(world.questions).toEqual([]);
  });

  test('over the limit is 413 without a Content-Length as well', async () => {
    const chunk = 'x'.repeat(65_536);
    const chunks = Array.from({ length: 17 }, () => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
    const head = `POST /query HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${goodToken}\r\ntransfer-encoding: chunked\r\n\r\n`;
    const text = await sendRaw(world.door.port, `${head}${chunks}0\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
  });

  test('has at most 4 MiB whatever the body limit is, a question 8, and rows stream by', async () => {
    const settings = { ...largeBodies, SERVICE_BODY_LIMIT_MB: 64 };
    const large = await new DoorWorld().open({ settings });
    try {
      const answers = async (path: string, body: string): Promise<number> => (await large.call('POST', path, body)).status;
      large.types.set('T', openType('T'));
      const name = 'x'.repeat(4 * 1024 * 1024);
      expect(await answers('/types', JSON.stringify({ name, properties: {} }))).toBe(413);
      expect(await answers('/types', JSON.stringify({ name: name.slice(100), properties: {} }))).not.toBe(413);
      expect(await answers('/query', JSON.stringify({ sql: `SELECT '${name}'` }))).not.toBe(413);
      expect(await answers('/query', JSON.stringify({ sql: `SELECT '${name}${name}'` }))).toBe(413);
      expect(await answers('/ingest?object_type=T', `{"a":"${name}"}\n{"a":"${name}"}\n`)).toBe(200);
    } finally {
      await large.close();
    }
  });

  test.each([
    ['nothing', '', /expected object/],
    ['half a value', '{"sql":', /not JSON/],
    ['two values', '{"sql":"a"}{"sql":"b"}', /not JSON/],
    ['a list', '[]', /expected object/],
    ['NaN', '{"sql":NaN}', /not JSON/],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), /not UTF-8/],
    ['a lone surrogate', '{"sql":"\\ud800"}', /lone surrogate/],
    ['a field __proto__', '{"sql":"SELECT 1","__proto__":{"purpose":"x"}}', /__proto__/],
    ['a field __proto__ in disguise', '{"sql":"SELECT 1","\\u005f_proto__":{}}', /__proto__/],
    ['65 levels', `{"sql":"SELECT 1","typo_tolerance":${'['.repeat(64)}${']'.repeat(64)}}`, /deeper than 64/],
    ['6,000 levels', '['.repeat(6000), /deeper than 64/],
  ])('of %s is 400', async (_name, body, detail) => {
    const reply = await post(body);
    expect([reply.status, reply.json['type']]).toEqual([400, 'urn:test:errors/REL_INVALID']);
    expect(reply.json['detail']).toMatch(detail);
    expect(world.questions).toEqual([]);
  });

  test('of 64 levels passes, and brackets in text don’t count', () => {
    const nested = `${'['.repeat(64)}${']'.repeat(64)}`;
    expect(() => parseJsonBody(Buffer.from(nested))).not.toThrow();
    expect(parseJsonBody(Buffer.from(JSON.stringify({ a: '[{"\\'.repeat(100) })))).toEqual({ a: '[{"\\'.repeat(100) });
  });

  test('may mention proto where it is not a field name', () => {
    expect(parseJsonBody(Buffer.from('{"sql":"__proto__","x":"\\u0041"}'))).toEqual({ sql: '__proto__', x: 'A' });
  });
});

describe('bytes that are not HTTP', () => {
  test.each([
    ['noise', '\x00\x01\x02garbage\r\n\r\n', 400],
    [
      'length and chunks at once',
      'POST /query HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    ['two lengths', 'POST /query HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello', 400],
    ['endless headers', `GET /health HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`, 413],
  ])('%s get one problem record and the connection ends', async (_name, bytes, status) => {
    const text = await sendRaw(world.door.port, bytes, 5_000);
    expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(text).toContain('application/problem+json');
    expect(text).toContain('connection: close');
    expect(text.match(/^HTTP\/1\.1 \d/gm)?.length).toBe(1);
  });

  test('a request after one that was refused with its body unread is read from its own first byte', async () => {
    const body = 'x'.repeat(100_000);
    const first = `POST /cluster/rebalance HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${goodToken}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const text = await sendRaw(world.door.port, `${first}GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`, 5_000);
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 501', 'HTTP/1.1 200']);
  });
});

test('a body that nobody asked for is read over, and the connection serves on', async () => {
  const body = 'x'.repeat(50_000);
  const first = `GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const text = await sendRaw(world.door.port, `${first}GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`, 5_000);
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200']);
});

const nobodyWaits = (): Promise<void> => Promise.resolve();

describe('the pace of a body', () => {
  class ManualClock implements Clock {
    ms = 0;
    readonly #wakers: (() => void)[] = [];
    now = (): bigint => BigInt(this.ms) * 1_000_000n;
    monotonicMs = (): number => this.ms;
    sleep = (_ms: number, signal?: AbortSignal): Promise<void> =>
      new Promise((resolve) => {
        this.#wakers.push(resolve);
        if (signal) signal.onabort = () => resolve();
      });
    async advance(ms: number): Promise<void> {
      this.ms += ms;
      for (const wake of this.#wakers.splice(0)) wake();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  const collected = (bodies: RequestBodies, source: PassThrough): Promise<number | string> =>
    new Promise((resolve) => {
      bodies.collect(source, undefined, (error, body) => resolve(error instanceof ServiceError ? error.code : body!.length));
    });

  test('a sender that falls 30 s behind 2 KiB a second is cut off; one that keeps up is not', async () => {
    const clock = new ManualClock();
    const bodies = new RequestBodies(clock, 1e9, nobodyWaits);
    void bodies.sweep();
    const slow = new PassThrough();
    const steady = new PassThrough();
    const slowEnd = collected(bodies, slow);
    const steadyEnd = collected(bodies, steady);
    for (let second = 0; second < 40; second++) {
      if (!slow.destroyed) slow.write('x');
      steady.write(Buffer.alloc(4096));
      await clock.advance(1000);
    }
    expect(slow.destroyed).toBe(true);
    expect(await slowEnd).toBe('REL_TIMEOUT');
    steady.end();
    expect(await steadyEnd).toBe(40 * 4096);
    bodies.close();
  });

  test('what came fast buys no stall later', async () => {
    const clock = new ManualClock();
    const bodies = new RequestBodies(clock, 1e9, nobodyWaits);
    void bodies.sweep();
    const source = new PassThrough();
    const end = collected(bodies, source);
    source.write(Buffer.alloc(8 * 1024 * 1024));
    await clock.advance(1_000);
    for (let second = 0; second < 31; second++) await clock.advance(1_000);
    expect(source.destroyed).toBe(true);
    expect(await end).toBe('REL_TIMEOUT');
    bodies.close();
  });

  test('time that we take ourselves does not count', async () => {
    const clock = new ManualClock();
    const bodies = new RequestBodies(clock, 1e9, nobodyWaits);
    void bodies.sweep();
    const source = new PassThrough();
    source.write('first');
    const chunks = bodies.stream(source);
    await chunks.next();
    for (let minute = 0; minute < 10; minute++) await clock.advance(60_000);
    expect(source.destroyed).toBe(false);
    const waiting = chunks.next().then(
      () => 'a chunk',
      (error: ServiceError) => error.code,
    );
    await clock.advance(0);
    await clock.advance(29_000);
    expect(source.destroyed).toBe(false);
    await clock.advance(2_000);
    expect(await waiting).toBe('REL_TIMEOUT');
    bodies.close();
  });

  test('work on what is here already gives others their turn', async () => {
    const clock = new ManualClock();
    let turns = 0;
    const bodies = new RequestBodies(clock, 1e9, async () => void turns++);
    const seen: number[] = [];
    for await (const _ of bodies.stream(Readable.from(Array.from({ length: 6 }, () => Buffer.alloc(10))))) {
      seen.push(turns);
      clock.ms += 1.5;
    }
    expect(seen).toEqual([0, 0, 1, 1, 2, 2]);
  });

  test('so does work on a body that was collected before, which comes in pieces', async () => {
    const clock = new ManualClock();
    let turns = 0;
    const bodies = new RequestBodies(clock, 1e9, async () => void turns++);
    const body = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251));
    const seen: number[] = [];
    const pieces: Uint8Array[] = [];
    for await (const piece of bodies.pieces(body)) {
      seen.push(turns);
      pieces.push(piece);
      clock.ms += 1.5;
    }
    expect(seen).toEqual([0, 0, 1, 1, 2]);
    expect(Buffer.concat(pieces).equals(body)).toBe(true);
  });

  test('a sender that goes away is an error, not an end', async () => {
    const bodies = new RequestBodies(new ManualClock(), 1e9, nobodyWaits);
    const source = new PassThrough();
    const end = collected(bodies, source);
    source.write('half of it');
    source.destroy();
    expect(await end).toBe('REL_CANCELLED');
  });
});
