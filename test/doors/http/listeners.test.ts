/** Life of the listeners: TLS, slow and stuck clients, draining. Source: specification, "Authentication" 7 and "Limits". */
import { readFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Answer } from '../../../src/planner/planner-contract.ts';
import { DoorWorld, emptyAnswer, goodToken, openType, send, sendRaw } from './door-world.ts';

const fixture = (name: string): string => readFileSync(new URL(`../../../fixtures/keys/${name}`, import.meta.url), 'utf8');
const cert = fixture('localhost.cert.pem');
const tls = { cert, key: fixture('localhost.key.pem') };

describe('TLS', () => {
  let world: DoorWorld;
  beforeAll(async () => {
    world = await new DoorWorld().open({ tls });
  });
  afterAll(() => world.close());

  test('is served when a certificate is given', async () => {
    const status = await new Promise((resolve, reject) => {
      const request = httpsRequest({ port: world.door.port, host: 'localhost', path: '/health', ca: cert }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      request.on('error', reject);
      request.end();
    });
    expect(status).toBe(200);
    expect(world.door.dataUrl).toMatch(/^https:/);
  });

  test('needs version 1.2 at least', async () => {
    const speak = (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'): Promise<string> =>
      new Promise((resolve) => {
        const ciphers = 'ALL:@SECLEVEL=0';
        const socket = tlsConnect({
          port: world.door.port,
          host: 'localhost',
          ca: cert,
          minVersion: version,
          maxVersion: version,
          ciphers,
        });
        socket.on('secureConnect', () => {
          resolve(socket.getProtocol() ?? 'none');
          socket.destroy();
        });
        socket.on('error', () => resolve('refused'));
      });
    expect([await speak('TLSv1.1'), await speak('TLSv1.2'), await speak('TLSv1.3')]).toEqual(['refused', 'TLSv1.2', 'TLSv1.3']);
  });

  test('plaintext on its port gets no answer', async () => {
    const text = await sendRaw(world.door.port, 'GET /health HTTP/1.1\r\nhost: x\r\n\r\n').catch(() => '');
    expect(text).not.toContain('200');
  });

  test('does not hold for the admin listener, which is on loopback only', async () => {
    expect((await world.admin('GET', '/admin/tokens')).status).toBe(200);
  });
});

describe('slow clients', () => {
  test('headers that take longer than 10 s end in 408, and healthy requests don’t notice', async () => {
    const world = await new DoorWorld().open();
    const started = performance.now();
    const slow = new Promise<{ text: string; ms: number }>((resolve) => {
      const socket = connect(world.door.port, '127.0.0.1', () => socket.write('GET /health HTTP/1.1\r\nx: '));
      const drip = setInterval(() => socket.write('y'), 200);
      let text = '';
      socket.on('data', (chunk) => (text += chunk.toString('latin1')));
      socket.on('error', () => undefined);
      socket.on('close', () => {
        clearInterval(drip);
        resolve({ text, ms: performance.now() - started });
      });
    });
    for (let i = 0; i < 20; i++) expect((await send(world.door.port, 'GET', '/health')).status).toBe(200);
    const { text, ms } = await slow;
    expect(text).toMatch(/^HTTP\/1\.1 408 /);
    expect(ms).toBeGreaterThan(9_000);
    await world.close();
  });
});

describe('draining', () => {
  const settings = {
    SERVICE_PROFILE: 'free',
    SERVICE_HTTP_BIND: '127.0.0.1',
    SERVICE_PORT: 0,
    SERVICE_ADMIN_BIND: '127.0.0.1:0',
    SERVICE_ERRORS_BASE: 'urn:test:errors',
    SERVICE_BODY_LIMIT_MB: 1,
    SERVICE_PINNED_NAMESPACES: [],
    SERVICE_MAX_RESULT_ROWS: 1_000,
    SERVICE_WORKBENCH_ENABLE: false,
  } as const;

  test('work in hand is answered, new connections are not taken', async () => {
    const world = await new DoorWorld().open();
    let release!: (answer: Answer) => void;
    world.answer = () => new Promise((resolve) => (release = resolve));
    const asked = world.call('POST', '/query', { sql: 'SELECT 1' });
    await expect.poll(() => world.questions.length).toBe(1);
    const { port } = world.door;
    const stopping = world.close();
    await expect(send(port, 'GET', '/health')).rejects.toThrow();
    release(emptyAnswer);
    expect((await asked).status).toBe(200);
    await stopping;
  });

  test('listeners stay open until the running work has ended: whoever asks is told, and how the server is can be asked', async () => {
    const world = await new DoorWorld().open();
    let release!: (answer: Answer) => void;
    world.answer = () => new Promise((resolve) => (release = resolve));
    const asked = world.call('POST', '/query', { sql: 'SELECT 1' });
    await expect.poll(() => world.questions.length).toBe(1);
    world.door.drain();
    for (const [method, path] of [
      ['POST', '/query'],
      ['POST', '/query?x=1'],
      ['GET', '/status'],
    ] as const) {
      const { status, headers, json } = await world.call(method, path, method === 'POST' ? { sql: 'SELECT 1' } : undefined);
      expect([status, headers['retry-after'], headers['connection'], json['detail']]).toEqual([
        503,
        '1',
        'close',
        expect.stringMatching(/shutting down/),
      ]);
    }
    const ready = await send(world.door.port, 'GET', '/health/ready');
    expect([ready.status, ready.headers['connection'], ready.json['detail']]).toEqual([
      503,
      'close',
      expect.stringMatching(/drain/),
    ]);
    expect((await send(world.door.port, 'GET', '/health')).status).toBe(200);
    release(emptyAnswer);
    expect((await asked).status).toBe(200);
    await world.close();
    await expect(send(world.door.port, 'GET', '/health')).rejects.toThrow();
  });

  test('idle connections don’t hold it up', async () => {
    const world = await new DoorWorld().open({ settings: { ...settings, SERVICE_DRAIN_TIMEOUT_SECS: 60 } });
    await Promise.all(Array.from({ length: 10 }, () => world.call('GET', '/status')));
    await world.close();
  });

  test('a client that never finishes its body is cut off when the drain time is over', async () => {
    const world = await new DoorWorld().open({ settings: { ...settings, SERVICE_DRAIN_TIMEOUT_SECS: 1 } });
    world.types.set('T', openType('T'));
    const stuck = connect(world.door.port, '127.0.0.1');
    const closed = new Promise((resolve) => stuck.on('close', resolve));
    stuck.on('error', () => undefined);
    stuck.write(
      `POST /ingest?object_type=T HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${goodToken}\r\ncontent-length: 100000\r\nexpect: 100-continue\r\n\r\n`,
    );
    // The request has come to its handler, which waits for the rest of the body.
    await new Promise((resolve) => stuck.once('data', resolve));
    stuck.write('{"a":1}');
    const started = performance.now();
    await world.close();
    await closed;
    expect(performance.now() - started).toBeGreaterThan(900);
  });

  test('stopping twice is stopping once', async () => {
    const world = await new DoorWorld().open();
    await Promise.all([world.close(), world.close()]);
    await world.close();
  });
});

test('a port that is taken fails the start and leaves nothing open', async () => {
  const first = await new DoorWorld().open();
  const second = new DoorWorld();
  const taken = {
    SERVICE_PROFILE: 'free',
    SERVICE_HTTP_BIND: '127.0.0.1',
    SERVICE_PORT: first.door.port,
    SERVICE_ADMIN_BIND: '127.0.0.1:0',
    SERVICE_ERRORS_BASE: 'urn:test:errors',
    SERVICE_BODY_LIMIT_MB: 1,
    SERVICE_DRAIN_TIMEOUT_SECS: 1,
    SERVICE_PINNED_NAMESPACES: [],
    SERVICE_MAX_RESULT_ROWS: 1_000,
    SERVICE_WORKBENCH_ENABLE: false,
  } as const;
  await expect(second.open({ settings: taken })).rejects.toThrow(/SERVICE_PORT: \S+ is in use/);
  await first.close();
});
