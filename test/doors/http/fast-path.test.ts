/** Plain requests take a shorter way, and nobody outside can tell: the same verdicts, records and bodies, however they arrive. */
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { readPlainHead } from '../../../src/doors/http/fast-path-head.ts';
import { ServiceError } from '../../../src/errors.ts';
import { RateLimiter } from '../../../src/governance/admission/rate-limit.ts';
import { DoorWorld, emptyAnswer, goodToken, openType, sendRaw } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

interface Asked {
  readonly target?: string;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

function bytesOf({ target = '/query', body = '{"sql":"SELECT 1"}', headers = {} }: Asked): Buffer {
  const given = {
    host: 'localhost',
    authorization: `Bearer ${goodToken}`,
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
  };
  const lines = Object.entries(given).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${target} HTTP/1.1\r\n${lines.join('')}\r\n`), Buffer.from(body)]);
}

/** A header without meaning here that is enough to be the framework's. */
const frameworks = { 'proxy-connection': 'keep-alive' };

interface Got {
  readonly status: number;
  readonly plain: boolean;
  readonly type: string;
  readonly body: string;
}

/** Replies with a length, in the order in which they came. */
function wholeReplies(text: string): number {
  let count = 0;
  for (let at = 0; ; count++) {
    const end = text.indexOf('\r\n\r\n', at);
    if (end < 0) return count;
    at = end + 4 + Number(/content-length: (\d+)/i.exec(text.slice(at, end))?.[1] ?? 0);
    if (at > text.length) return count;
  }
}

function repliesOf(text: string): Got[] {
  const replies: Got[] = [];
  for (let rest = text; rest !== ''; ) {
    const end = rest.indexOf('\r\n\r\n');
    const head = rest.slice(0, end);
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    replies.push({
      status: Number(head.slice(9, 12)),
      // The framework's own headers are capitalised.
      plain: head.includes('\r\ndate: '),
      type: /content-type: ([^\r]*)/i.exec(head)?.[1] ?? '',
      body: rest.slice(end + 4, end + 4 + length).replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<id>'),
    });
    rest = rest.slice(end + 4 + length);
  }
  return replies;
}

let world: DoorWorld;
beforeEach(async () => {
  world = await new DoorWorld().open();
  world.types.set('Note', openType('Note'));
});
afterEach(() => world.close());

/** Replies to so many requests, and whatever came with the last of them. */
const raw = async (bytes: Buffer, requests = 1): Promise<Got[]> =>
  repliesOf(await sendRaw(world.door.port, bytes, 5_000, (text) => wholeReplies(text) >= requests));

describe('a plain head', () => {
  const pieces = fc.constantFrom(
    'POST ',
    'GET ',
    '/query',
    ' HTTP/1.1',
    ' HTTP/1.0',
    '\r\n',
    '\n',
    '\r',
    ' ',
    '\t',
    ':',
    ': ',
    'host: a\r\n',
    'Host: b\r\n',
    'content-length: 3\r\n',
    'Content-Length: 0\r\n',
    'content-length: +3\r\n',
    'content-length: 03\r\n',
    'content-length : 3\r\n',
    'transfer-encoding: chunked\r\n',
    'Transfer-Encoding : chunked\r\n',
    'connection: close\r\n',
    'connection: keep-alive\r\n',
    'x-a: b\r\n',
    'x-a:b\r\n',
    'x-a: b \r\n',
    ' folded\r\n',
    'x: \u0080\r\n',
    '\0',
    'expect: 100-continue\r\n',
    '__proto__: x\r\n',
  );
  const whole = fc.constant('POST /query HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nx-b: c d\r\n');
  const heads = fc
    .tuple(
      fc.oneof(whole, fc.constant('POST /query?a=b&c HTTP/1.1\r\nhost: a\r\n')),
      fc.array(pieces, { maxLength: 4 }),
      fc.nat(),
    )
    .map(([head, extra, at]) => {
      // At a place between two lines or, now and then, anywhere.
      const cut = at % 3 === 0 ? at % head.length : head.length;
      return `${head.slice(0, cut)}${extra.join('')}${head.slice(cut)}`.replace(/\r\n$/, '');
    })
    .filter((head) => !head.includes('\r\n\r\n'));

  test('is read as Node reads it', { timeout: 30_000 }, async () => {
    let seen: IncomingMessage | null = null;
    const server = createServer((request, response) => {
      seen = request;
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    let read = 0;
    try {
      await fc.assert(
        fc.asyncProperty(heads, async (head) => {
          const plain = readPlainHead(head);
          if (plain === null) return;
          read++;
          seen = null;
          const body = 'x'.repeat(plain.contentLength);
          const reply = await new Promise<string>((resolve) => {
            const socket = connect(port, '127.0.0.1', () => socket.write(`${head}\r\n\r\n${body}`, 'latin1'));
            socket.once('data', (bytes) => {
              socket.destroy();
              resolve(bytes.toString('latin1'));
            });
            socket.once('close', () => resolve(''));
          });
          expect(reply).toContain('200');
          expect(seen!.url).toBe(plain.target);
          expect({ ...seen!.headers }).toEqual({ ...plain.headers });
        }),
        { numRuns: 600 },
      );
    } finally {
      server.close();
    }
    expect(read).toBeGreaterThan(20);
  });

  test.each([
    ['two lengths', 'content-length: 3\r\ncontent-length: 3'],
    ['a length in chunks too', 'content-length: 3\r\ntransfer-encoding: chunked'],
    ['no length', 'x-a: b'],
    ['a length with a sign', 'content-length: +3'],
    ['a length in other digits', 'content-length: 0x3'],
    ['a bare line feed', 'content-length: 3\nx-a: b'],
    ['space before a colon', 'content-length: 3\r\nx-a : b'],
    ['a folded line', 'content-length: 3\r\nx-a: b\r\n c'],
    ['an empty value', 'content-length: 3\r\nx-a:'],
    ['bytes beyond ASCII', 'content-length: 3\r\nx-a: \u00e9'],
    ['the end of the connection asked for', 'content-length: 3\r\nconnection: close'],
    ['an upgrade', 'content-length: 3\r\nupgrade: h2c'],
    ['an answer before the body', 'content-length: 3\r\nexpect: 100-continue'],
    ['a packed body', 'content-length: 3\r\ncontent-encoding: gzip'],
  ])('is not one with %s', (_, lines) => {
    expect(readPlainHead('POST /query HTTP/1.1\r\nhost: a\r\ncontent-length: 3')).not.toBeNull();
    expect(readPlainHead(`POST /query HTTP/1.1\r\nhost: a\r\n${lines}`)).toBeNull();
  });
});

describe('a plain request', () => {
  test('is answered the same however it is cut', async () => {
    const bytes = bytesOf({});
    for (let cut = 0; cut <= bytes.length; cut += 3) {
      const text = await new Promise<string>((resolve) => {
        const socket = connect(world.door.port, '127.0.0.1', () => {
          socket.setNoDelay(true);
          socket.write(bytes.subarray(0, cut), () => setImmediate(() => socket.write(bytes.subarray(cut))));
        });
        socket.once('data', (reply) => {
          socket.destroy();
          resolve(reply.toString('latin1'));
        });
      });
      const [reply] = repliesOf(text);
      expect([reply!.status, reply!.body.slice(0, 10)]).toEqual([200, '{"rows":[]']);
    }
    expect(new Set(world.questions.map(({ sql }) => sql))).toEqual(new Set(['SELECT 1']));
  });

  test('waits for those before it on its connection, and others may come in between', async () => {
    let running = 0;
    world.answer = async ({ sql }) => {
      expect(++running).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
      return { ...emptyAnswer, plan: sql ?? null };
    };
    const plain = (n: number): Buffer => bytesOf({ body: `{"sql":"S${n}${' '.repeat(n)}"}` });
    const health = Buffer.from('GET /health HTTP/1.1\r\nhost: a\r\n\r\n');
    const replies = await raw(Buffer.concat([plain(1), plain(2), plain(3), health, plain(4)]), 5);
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(replies.map(({ plain: shorter }) => shorter)).toEqual([true, true, true, false, false]);
    expect(replies.map(({ body }) => /"plan":\["(S.)/.exec(body)?.[1] ?? '')).toEqual(['S1', 'S2', 'S3', '', 'S4']);
  });

  const questions: readonly (readonly [string, Asked])[] = [
    ['a question', {}],
    ['a question with a purpose', { body: '{"sql":"S","purpose":"analytics"}' }],
    ['two purposes', { body: '{"sql":"S","purpose":"a"}', headers: { 'x-service-purpose': 'b' } }],
    ['two branches', { body: '{"sql":"S","branch":"a"}', headers: { 'x-service-branch': 'b' } }],
    ['an organisation', { headers: { 'x-organization-id': 'acme/eu' } }],
    ['no JSON', { body: '{"sql":' }],
    ['bytes that are no text', { body: Buffer.from([0x7b, 0xff, 0x7d]) }],
    ['a prototype', { body: '{"sql":"S","__proto__":"x"}' }],
    ['a member of another type', { body: '{"sql":1}' }],
    ['another member', { body: '{"sql":"S","typo_tolerance":{}}' }],
    ['nothing', { body: '' }],
    ['an unknown token', { headers: { authorization: 'Bearer other' } }],
    ['text that a statement can not hold', { body: '{"sql":"\\u0000"}' }],
    ['a statement that fails', { body: '{"sql":"FAIL"}' }],
    ['a statement that breaks us', { body: '{"sql":"BREAK"}' }],
    ['text beyond ASCII', { body: '{"sql":"\u00e9\u4e2d"}' }],
    ['a row', { target: '/ingest?object_type=Note', body: '{"a":1}\n' }],
    ['rows of which one is none', { target: '/ingest?object_type=Note', body: '{"a":1}\n[]\n' }],
    ['a row of no type', { target: '/ingest?object_type=Other', body: '{"a":1}\n' }],
    ['no rows', { target: '/ingest?object_type=Note', body: '' }],
    ['a durable row', { target: '/ingest?object_type=Note', body: '{"a":1}\n', headers: { 'x-service-durability': 'sync' } }],
    [
      'a wish for another durability',
      { target: '/ingest?object_type=Note', body: '{"a":1}\n', headers: { 'x-service-durability': 'x' } },
    ],
  ];

  test.each(questions)('gets what the framework gives: %s', async (_, asked) => {
    world.answer = async ({ sql }) => {
      if (sql === 'FAIL') throw new ServiceError('REL_SCAN_CAP', 'too much');
      if (sql === 'BREAK') throw new TypeError('secret');
      return { ...emptyAnswer, plan: sql ?? null };
    };
    const [plain] = await raw(bytesOf(asked));
    const [records, commands] = [world.records.splice(0), world.commands.splice(0)];
    const [slow] = await raw(bytesOf({ ...asked, headers: { ...asked.headers, ...frameworks } }));
    expect(slow!.plain).toBe(false);
    expect({ ...plain, plain: false }).toEqual(slow);
    const told = (all: typeof records): unknown =>
      all.map(({ caller, facts, code, request }) => ({ caller, facts, code, action: request.action, purpose: request.purpose }));
    expect(told(records)).toEqual(told(world.records));
    expect(commands).toEqual(world.commands);
  });

  test('is one where it should be', async () => {
    const [question] = await raw(bytesOf({}));
    const [row] = await raw(bytesOf({ target: '/ingest?object_type=Note', body: '{"a":1}\n' }));
    const [failed] = await raw(bytesOf({ target: '/ingest?object_type=Other', body: '{"a":1}\n' }));
    expect([question!.plain, row!.plain, failed!.plain, failed!.status]).toEqual([true, true, true, 404]);
    const [large] = await raw(bytesOf({ body: `{"sql":"${'x'.repeat(70_000)}"}` }));
    expect([large!.plain, large!.status]).toEqual([false, 200]);
  });

  test('over its rate is refused once, and costs its sender no token', async () => {
    await world.close();
    world = await new DoorWorld().open({ readLimit: new RateLimiter(2) });
    const statuses = (await raw(Buffer.concat([bytesOf({}), bytesOf({}), bytesOf({}), bytesOf({})]), 4)).map(
      ({ status }) => status,
    );
    expect(statuses).toEqual([200, 200, 429, 429]);
    expect(world.records.length).toBe(4);
  });
});

describe('a connection of plain requests', () => {
  test('ends with the answer that it waits for when the door closes, or at once when it waits for none', async () => {
    let answered = (): void => undefined;
    const asked = new Promise<void>((resolve) => {
      world.answer = async () => {
        resolve();
        await new Promise<void>((go) => (answered = go));
        return emptyAnswer;
      };
    });
    const idle = connect(world.door.port, '127.0.0.1');
    const idleEnded = new Promise((resolve) => idle.once('close', resolve));
    const busy = sendRaw(world.door.port, bytesOf({}), 5_000);
    await asked;
    const stopped = world.close();
    await idleEnded;
    answered();
    const text = await busy;
    expect(text).toContain('HTTP/1.1 200');
    expect(text).toContain('connection: close');
    await stopped;
  });

  test('authenticates its caller once for credentials that stay the same, however long its bodies are', async () => {
    const organizations: unknown[] = [];
    const { dataCaller, ...others } = world.authenticator;
    world.authenticator = {
      ...others,
      dataCaller: (given) => {
        organizations.push(given.organization);
        return dataCaller(given);
      },
    };
    const long = { body: '{"sql":"SELECT 1 AS one"}' };
    const headers = { 'x-organization-id': 'acme' };
    const asked = [{}, long, { headers }, { ...long, headers }, long, { ...long, headers: { authorization: 'Bearer other' } }];
    const got = await raw(Buffer.concat(asked.map(bytesOf)), asked.length);
    expect(got.slice(0, 5).map(({ plain, status }) => [plain, status])).toEqual(Array(5).fill([true, 200]));
    expect(got[5]).toMatchObject({ plain: false, status: 401 });
    expect(organizations.slice(0, 3)).toEqual([undefined, 'acme', undefined]);
    // By the lane, which has no caller for another token, and by the framework, which refuses it.
    expect(organizations.length).toBe(5);
  });

  test('knows its caller by its credentials, and no longer than the token is valid', async () => {
    const store = await StoreWorld.open();
    const { json } = await store.admin('POST', '/admin/tokens', { principal: 'short-lived' });
    const sockets = [0, 1].map(() => connect(store.door.port, '127.0.0.1'));
    const asked = async (which: number, token = json['token'] as string, sql = 'SELECT 1'): Promise<Got> => {
      const replied = new Promise<Buffer>((resolve) => sockets[which]!.once('data', resolve));
      sockets[which]!.write(bytesOf({ body: `{"sql":"${sql}"}`, headers: { authorization: `Bearer ${token}` } }));
      return repliesOf((await replied).toString('latin1'))[0]!;
    };
    for (const which of [0, 1]) {
      const first = await asked(which);
      expect([first.plain, first.status]).toEqual([true, (await asked(which)).status]);
      expect(first.status).not.toBe(401);
    }
    expect((await asked(1, `${json['token'] as string}x`)).status).toBe(401);
    expect((await store.admin('DELETE', `/admin/tokens/${json['id'] as string}`)).status).toBe(200);
    expect((await asked(0, undefined, 'SELECT 1 AS one')).status).toBe(401);
    for (const socket of sockets) socket.destroy();
    await store.close();
  });

  test('is the framework’s when its request takes long to arrive', { timeout: 15_000 }, async () => {
    await world.close();
    let skewMs = 0;
    world = await new DoorWorld().open({ clock: { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + skewMs } });
    const bytes = bytesOf({});
    const text = await new Promise<string>((resolve) => {
      const socket = connect(world.door.port, '127.0.0.1', () => socket.write(bytes.subarray(0, 40)));
      setTimeout(() => (skewMs = 3_000), 200);
      // The lane has looked at its connections by then.
      setTimeout(() => socket.write(bytes.subarray(40)), 1_500);
      socket.once('data', (reply) => {
        socket.destroy();
        resolve(reply.toString('latin1'));
      });
    });
    expect(repliesOf(text).map(({ status, plain }) => [status, plain])).toEqual([[200, false]]);
  });
});
