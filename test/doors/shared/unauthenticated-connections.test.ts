/** What a client without a login, or one that holds much, takes of the doors over plain sockets. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/clock.ts';
import { ReceivedBytes, pause } from '../../../src/doors/shared/received-bytes.ts';
import { RequestTurns } from '../../../src/doors/shared/request-turns.ts';
import { HttpConnections } from '../../../src/doors/shared/http-connections.ts';
import { UnauthenticatedConnections } from '../../../src/doors/shared/unauthenticated-connections.ts';
import { WireMemory } from '../../../src/doors/shared/wire-memory.ts';
import { respCodec } from '../../../src/doors/kv/codec.ts';
import { handshakeBytes, helloBytes as boltHello, map, messageBytes } from '../graph/bolt-client.ts';
import { helloBytes } from '../columnar/native-client.ts';
import { send } from '../http/door-world.ts';
import { StoreWorld } from '../http/store-world.ts';
import { kvSecret } from '../kv/kv-client.ts';
import { startup } from '../relational/frames.ts';

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: kvSecret, SERVICE_WIRE_MESSAGE_MB: '1' });
});
afterAll(() => world.close());

/** All that a door says until it ends the connection. */
async function saidTo(door: string, ...sent: (string | Buffer)[]): Promise<string> {
  const socket = await connected(door);
  const said: Buffer[] = [];
  socket.on('data', (piece) => void said.push(piece as Buffer));
  for (const piece of sent) socket.write(piece);
  await once(socket, 'close');
  return Buffer.concat(said).toString('latin1');
}

async function connected(door: string): Promise<Socket> {
  const { port } = [world.door, ...world.others].find(({ name }) => name === door)!;
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

const tooLong = /a message has at most 16384 bytes here/;

describe('before authentication', () => {
  test('a key-value command has ten words and 16 KiB', async () => {
    expect(await saidTo('kv', '*11\r\n', '$1\r\na\r\n'.repeat(11))).toBe(
      '-ERR Protocol error: unauthenticated multibulk length\r\n',
    );
    expect(await saidTo('kv', '*2\r\n$4\r\nAUTH\r\n$20000\r\n')).toMatch(tooLong);
    // Refused by its head: no more of it is waited for.
    expect(await saidTo('kv', '*100000\r\n')).toMatch(tooLong);
    expect(await saidTo('kv', 'x'.repeat(17_000))).toMatch(tooLong);
  });

  test('a native columnar client begins with Hello, of texts that are short', async () => {
    expect(await saidTo('columnar-native', Buffer.from([4]))).toContain('it begins with Hello');
    expect(await saidTo('columnar-native', Buffer.from([0, 0xff, 0xff, 0x7f]))).toContain('a text has at most 4096 bytes here');
    expect(await saidTo('columnar-native', helloBytes({ password: 'wrong' }))).toContain('missing or invalid credential');
  });

  test('a client of Bolt begins with its preamble, and asks nothing before it has logged on', async () => {
    expect(await saidTo('graph-binary', Buffer.from('GET / HTTP/1.1\r\n\r\n'))).toBe('');
    const shaken = handshakeBytes(0, 4, 4);
    expect(await saidTo('graph-binary', shaken, boltHello('wrong'))).toContain('Neo.ClientError.Security.Unauthorized');
    expect(await saidTo('graph-binary', shaken, messageBytes(0x10, 'SELECT 1', map(), map()))).toContain('log on first');
    expect(await saidTo('graph-binary', handshakeBytes(0, 0, 3))).toBe('\0\0\0\0');
    expect(await saidTo('graph-binary', shaken, messageBytes(0x01, 'x'.repeat(17_000)))).toMatch(tooLong);
  });

  test('a message of the document door ends the connection by its head, and none of it is read', async () => {
    const head = Buffer.alloc(16);
    head.writeInt32LE(15 << 20, 0);
    head.writeInt32LE(2013, 12);
    expect(await saidTo('document', head)).toBe('');
  });

  test('a start-up packet, a proof and a 65th message of the relational door', async () => {
    expect(await saidTo('relational', Buffer.from([0, 0, 0x40, 0, 0, 3, 0, 0]))).toMatch(/startup message/);
    const proof = Buffer.from([0x70, 0, 1, 0, 0]);
    expect(await saidTo('relational', startup({ user: 'x', database: 'annals' }), proof)).toMatch(tooLong);
    expect(await saidTo('relational', Buffer.from([0, 0, 0, 8, 4, 0xd2, 0x16, 0x30]), ...requests(64))).toMatch(
      /^N{64}E.*log in/s,
    );
  });

  test('a client that ends before it began is told nothing', async () => {
    expect(await saidTo('relational', Buffer.from([0x58, 0, 0, 0, 4]))).toBe('');
    const said = await saidTo('relational', startup({ user: 'x', database: 'annals' }), Buffer.from([0x58, 0, 0, 0, 4]));
    expect(said).toMatch(/^R.{8}SCRAM-SHA-256\0\0$/s);
  });

  test('the fifth wrong password ends the connection, however many more were sent', async () => {
    const said = await saidTo('kv', 'AUTH x wrong\r\n'.repeat(50));
    expect(said.match(/-WRONGPASS/g)).toHaveLength(5);
  });

  test.each(['http', 'object'])(
    'the fifth refused credential of the %s door ends the connection with its answer',
    async (door) => {
      const said = await saidTo(door, 'GET /status HTTP/1.1\r\nhost: a\r\nauthorization: Bearer wrong\r\n\r\n'.repeat(20));
      expect(said.match(/HTTP\/1.1 40[13] /g)).toHaveLength(5);
      expect(said.match(/connection: close/gi)).toHaveLength(1);
    },
  );

  test('requests that were sent at once are begun some in a turn, and those of a known client for some milliseconds', async () => {
    let renew = (): void => undefined;
    const strangers = new HttpConnections(
      { monotonicMs: () => nowMs } as Clock,
      () => new Promise((resolve) => (renew = resolve)),
    );
    let requests = 0;
    let bodyBytes = 0;
    let knows = false;
    /** Each request of a known client takes a millisecond. */
    let nowMs = 0;
    const server = createServer((request, response) => {
      requests++;
      if (knows) {
        strangers.know(request.socket);
        nowMs++;
      }
      request.on('data', (piece: Buffer) => (bodyBytes += piece.length)).on('end', () => response.end());
    });
    strangers.watch(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const request = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';
    const perTurn = (16_384 + 2_048) / request.length;
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.resume().write(request.repeat(2_000));
    for (let before = 0; requests < 2_000; before = requests) {
      for (let turns = 0; turns < 3 && requests === before; turns++) await new Promise(setImmediate);
      expect(requests - before).toBeLessThanOrEqual(perTurn);
      renew();
    }
    knows = true;
    const body = 'x'.repeat(1 << 20);
    const known = connect(port, '127.0.0.1').on('error', () => undefined);
    known.resume().write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}${request.repeat(2_000)}`);
    for (let before = requests; requests < 4_001; before = requests) {
      for (let turns = 0; turns < 3 && requests === before; turns++) await new Promise(setImmediate);
      // A portion of 16 is begun within the 4 ms of a turn, and what is left of it is the last.
      expect(requests - before).toBeLessThanOrEqual(32);
      renew();
    }
    expect(bodyBytes).toBe(body.length);
    socket.destroy();
    known.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  test('a body that is read by a server does not pile up before its parser', async () => {
    let renew = (): void => undefined;
    const strangers = new HttpConnections(systemClock, () => new Promise((resolve) => (renew = resolve)));
    let bodyBytes = 0;
    let reading: Socket | null = null;
    const server = createServer((request) => {
      reading = request.socket;
      request.on('data', (piece: Buffer) => (bodyBytes += piece.length));
    });
    strangers.watch(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    const body = 'x'.repeat(8 << 20);
    socket.resume().write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    while (bodyBytes < 1 << 20) {
      await new Promise(setImmediate);
      renew();
      // What one read brings waits in its line, what another brings in the socket's buffer.
      expect(((reading as Socket | null)?.bytesRead ?? 0) - bodyBytes).toBeLessThan(8 * 65_536);
    }
    socket.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  test('the one that was silent for longest makes room for the next', () => {
    const strangers = new UnauthenticatedConnections(2);
    const ended: string[] = [];
    const [a, b, c] = ['a', 'b', 'c'].map((name) => ({ destroy: () => void ended.push(name) }));
    strangers.admit(a!);
    strangers.admit(b!);
    strangers.noteMessage(a!);
    strangers.admit(c!);
    expect([ended, strangers.count]).toEqual([['b'], 2]);
    strangers.leave(a!);
    expect(strangers.count).toBe(1);
  });
});

const requests = (count: number): Buffer[] => Array.from({ length: count }, () => Buffer.from([0, 0, 0, 8, 4, 0xd2, 0x16, 0x30]));

describe('after it', () => {
  test('a message that is too long is read to its end, so that the client finds why it was refused', async () => {
    const login = `AUTH x ${kvSecret}\r\n`;
    const value = 'x'.repeat(17 << 20);
    expect(await saidTo('kv', login, `*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$${value.length}\r\n`, value, '\r\n')).toMatch(
      /^\+OK\r\n-ERR .*a message has at most 1048576 bytes here/,
    );
  });

  test('a command that comes byte by byte is read on where it stopped', () => {
    const command = Buffer.from(`*20000\r\n${'$3\r\nabc\r\n'.repeat(20_000)}`);
    let begun = 0;
    const received = new ReceivedBytes({
      ...respCodec,
      decode: (state, bytes) => {
        if (state === respCodec.start) begun++;
        return respCodec.decode(state, bytes);
      },
    });
    let pauses = 0;
    let words = 0;
    for (const byte of command) {
      received.push(Buffer.from([byte]));
      for (let next = received.next(); next !== null; next = received.next()) {
        if (next === pause) pauses++;
        else words = next.length;
      }
    }
    // The head has eight bytes; from there on nothing is looked at again.
    expect(begun).toBeLessThanOrEqual(8);
    expect([words, pauses]).toEqual([20_000, expect.any(Number)]);
    expect(pauses).toBeGreaterThan(1);
    expect([received.waiting, received.size]).toEqual([0, 0]);
  });

  test('where all connections hold too much, those that hold most are cut off, and the others go on', async () => {
    const memory = new WireMemory(1_000_000, systemClock);
    const ended: string[] = [];
    const hold = (name: string, bytes: number): void => {
      const holding = memory.hold(() => {
        ended.push(name);
        holding.set(0);
      });
      holding.set(bytes);
    };
    hold('small', 16_384);
    hold('middle', 400_000);
    expect(memory.isFull).toBe(false);
    hold('large', 900_000);
    expect(memory.isFull).toBe(true);
    await memory.room(new AbortController().signal);
    expect([ended, memory.isFull]).toEqual([['large'], false]);
  });
});

test('while the server drains, whoever connects is told so in the words of the protocol', async () => {
  for (const door of world.others) door.drain();
  const start = startup({ user: 'x', database: 'annals' });
  expect(await saidTo('relational', start)).toMatch(/^E.*57P03.*shutting down/s);
  const kv = await connected('kv');
  kv.write(`AUTH x ${kvSecret}\r\n`);
  expect(String((await once(kv, 'data'))[0])).toMatch(/^-LOADING .*shutting down/);
  kv.destroy();
  const { port } = world.others.find(({ name }) => name === 'document')!;
  const client = new MongoClient(`mongodb://127.0.0.1:${port}`, { serverSelectionTimeoutMS: 200 });
  await expect(client.db('x').command({ ping: 1 })).rejects.toThrow(/shutting down/);
  await client.close();
  const objects = await send(world.others.find(({ name }) => name === 'object')!.port, 'GET', '/');
  expect([objects.status, objects.headers['retry-after'], objects.headers['connection'], objects.text]).toEqual([
    503,
    '1',
    'close',
    expect.stringContaining('<Code>ServiceUnavailable</Code>'),
  ]);
});

test('short work waits for one round, however much long work stands before it, and long work for no more', async () => {
  const clock = { ...systemClock, monotonicMs: () => 0 };
  let endRound = (): void => undefined;
  const turns = new RequestTurns(clock, () => new Promise((resolve) => (endRound = resolve)), 100);
  const begun: string[] = [];
  const work = (name: string, isShort: boolean): void =>
    turns.next({
      isShort,
      work() {
        begun.push(name);
        return 100;
      },
    });
  for (let i = 0; i < 50; i++) work(`long ${i}`, false);
  for (let i = 0; i < 3; i++) work(`short ${i}`, true);
  for (let i = 0; i < 6; i++) {
    endRound();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(begun.slice(1)).toEqual(['short 0', 'long 1', 'short 1', 'long 2', 'short 2', 'long 3']);
  expect(begun).toHaveLength(7);
});
