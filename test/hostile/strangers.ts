/**
 * Clients without a login, before every door: thousands that say nothing, first messages of many megabytes, messages that come byte by
 * byte, wrong passwords. What must hold: `/health` answers as ever, memory stays within a stated bound, and who has a login gets in.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import neo4j from 'neo4j-driver';
import { MongoClient } from 'mongodb';
import { Client } from 'pg';
import { send } from '../doors/http/door-world.ts';
import { startup } from '../doors/relational/frames.ts';
import { chunk } from '../../src/doors/graph/bolt-codec.ts';
import { request as columnarRequest } from '../doors/columnar/columnar-client.ts';
import { NativeClient, varint } from '../doors/columnar/native-client.ts';
import { handshakeBytes } from '../doors/graph/bolt-client.ts';
import { graphRequest } from '../doors/graph/graph-http-client.ts';
import type { DoorBomb } from './door-bombs.ts';
import { flightAnswers, grpcAnswers, othersOf } from './frame-bombs.ts';
import { callBegun, frame, preface } from './frames.ts';
import { doorSecret, type Siege } from './siege.ts';

/** What all strangers together may make the server grow by: a thousand of them hold what one read brings, and its collector is slow. */
export const strangersMaxMb = 200;

interface Attacked {
  readonly door: string;
  /** What a client sends first, of so many bytes and more to come, and what it sends of it again and again. */
  readonly large: Buffer;
  readonly drip: Buffer;
  /** A login that fails, in one piece; empty: one takes several messages, as `logIn` sends them. */
  readonly wrong: string;
  readonly logIn: (siege: Siege, secret?: string) => Promise<void>;
}

const head = (length: number): Buffer => {
  const bytes = Buffer.alloc(16);
  bytes.writeInt32LE(length, 0);
  bytes.writeInt32LE(2013, 12);
  return bytes;
};
const filling = Buffer.alloc(15 << 20, 'x');

/** A door that speaks gRPC. */
const rpc = (door: string, takes: string, logIn: Attacked['logIn']): Attacked => ({
  door,
  large: Buffer.concat([preface, callBegun(1, takes, 'wrong'), frame('data', 0, 1, Buffer.alloc(16_384)), filling]),
  drip: Buffer.concat([preface, callBegun(1, takes, 'wrong', false), frame('continuation', 0, 1, Buffer.alloc(4_000))]),
  wrong: '',
  logIn,
});

const attacked: readonly Attacked[] = [
  {
    door: 'kv',
    large: Buffer.concat([Buffer.from(`*2\r\n$4\r\nAUTH\r\n$${filling.length}\r\n`), filling]),
    drip: Buffer.from(`*1000000\r\n${'$1\r\na\r\n'.repeat(2_000)}`),
    wrong: 'AUTH x wrong\r\n',
    async logIn({ ports }, secret = doorSecret) {
      const options = { username: 'x', password: secret, retryStrategy: () => undefined };
      const client = new Redis(ports['kv']!, '127.0.0.1', { ...options, replyMapping: 'legacy' });
      await client.ping().finally(() => client.disconnect());
    },
  },
  {
    door: 'document',
    large: Buffer.concat([head(filling.length + 16), filling]),
    drip: Buffer.concat([head(16_000), Buffer.alloc(15_000)]),
    wrong: '',
    async logIn({ ports }, secret = doorSecret) {
      const auth = { username: 'x', password: secret };
      const client = new MongoClient(`mongodb://127.0.0.1:${ports['document']}/?directConnection=true`, { auth });
      try {
        await client.db('h').command({ ping: 1 });
      } finally {
        // One that is left open goes on asking for the server, and is a stranger each time.
        await client.close();
      }
    },
  },
  {
    door: 'relational',
    large: Buffer.concat([startup({ user: 'x', database: 'annals' }), Buffer.from([0x70, 0, 0xe0, 0, 0]), filling]),
    drip: startup({ user: 'x'.repeat(9_000), database: 'annals' }),
    wrong: '',
    async logIn({ ports }, secret = doorSecret) {
      const client = new Client({
        host: '127.0.0.1',
        port: ports['relational']!,
        user: 'x',
        password: secret,
        database: 'annals',
      });
      try {
        await client.connect();
      } finally {
        await client.end();
      }
    },
  },
  {
    door: 'object',
    large: Buffer.concat([Buffer.from('PUT /docs/x HTTP/1.1\r\nhost: a\r\nx: '), filling]),
    drip: Buffer.from(`PUT /docs/x HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(15_000)}`),
    wrong: 'GET / HTTP/1.1\r\nhost: a\r\nauthorization: Bearer wrong\r\n\r\n',
    async logIn({ ports }, secret = doorSecret) {
      const headers = { authorization: `Bearer ${secret}` };
      const reply = await fetch(`http://127.0.0.1:${ports['object']}/`, { headers });
      if (reply.status !== 200) throw new Error(await reply.text());
    },
  },
  {
    door: 'columnar-http',
    large: Buffer.concat([Buffer.from(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${filling.length}\r\n\r\n`), filling]),
    drip: Buffer.from(`POST / HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(7_000)}`),
    wrong: 'GET /?query=SELECT+1 HTTP/1.1\r\nhost: a\r\nx-columnar-key: wrong\r\n\r\n',
    async logIn(siege, secret = doorSecret) {
      const reply = await columnarRequest(othersOf(siege), secret, { query: 'SELECT 1' });
      if (reply.status !== 200) throw new Error(reply.text);
    },
  },
  {
    door: 'columnar-native',
    large: Buffer.concat([varint(0), varint(filling.length), filling]),
    drip: Buffer.concat([varint(0), varint(15_000), Buffer.alloc(15_000, 'x')]),
    wrong: '',
    async logIn({ ports }, secret = doorSecret) {
      const client = await NativeClient.connect(ports['columnar-native']!, { password: secret });
      await client.ping().finally(() => client.end());
    },
  },
  {
    door: 'graph-binary',
    large: Buffer.concat([handshakeBytes(4, 4, 5), chunk(filling)]),
    drip: Buffer.concat([handshakeBytes(4, 4, 5), chunk(Buffer.alloc(15_000, 'x'))]),
    wrong: '',
    async logIn({ ports }, secret = doorSecret) {
      const driver = neo4j.driver(`bolt://127.0.0.1:${ports['graph-binary']}`, neo4j.auth.basic('neo4j', secret));
      try {
        await driver.getServerInfo();
      } finally {
        await driver.close();
      }
    },
  },
  {
    door: 'graph-http',
    large: Buffer.concat([
      Buffer.from(`POST /db/neo4j/query/v2 HTTP/1.1\r\nhost: a\r\ncontent-length: ${filling.length}\r\n\r\n`),
      filling,
    ]),
    drip: Buffer.from(`POST /db/neo4j/query/v2 HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(7_000)}`),
    wrong: 'POST /db/neo4j/query/v2 HTTP/1.1\r\nhost: a\r\nauthorization: Basic d3Jvbmc6d3Jvbmc=\r\ncontent-length: 0\r\n\r\n',
    async logIn(siege, secret = doorSecret) {
      const reply = await graphRequest(
        othersOf(siege),
        'POST',
        '/db/neo4j/query/v2',
        { statement: 'SELECT 1 AS n' },
        { key: secret },
      );
      if (reply.status >= 300) throw new Error(reply.text);
    },
  },
  rpc('grpc', 'annals.v1.Annals/Ingest', grpcAnswers),
  rpc('flight', 'arrow.flight.protocol.FlightService/DoPut', flightAnswers),
  {
    door: 'http',
    large: Buffer.concat([Buffer.from(`POST /query HTTP/1.1\r\nhost: a\r\ncontent-length: ${filling.length}\r\n\r\n`), filling]),
    drip: Buffer.from(`POST /query HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(7_000)}`),
    wrong: 'GET /status HTTP/1.1\r\nhost: a\r\nauthorization: Bearer wrong\r\n\r\n',
    async logIn({ port, token }, secret = token) {
      const reply = await send(port, 'GET', '/status', undefined, { authorization: `Bearer ${secret}` });
      if (reply.status !== 200) throw new Error(reply.text);
    },
  },
];

const portOf = ({ port, ports }: Siege, door: string): number => (door === 'http' ? port : ports[door]!);

async function sockets(siege: Siege, door: string, count: number): Promise<Socket[]> {
  const open = (): Promise<Socket> =>
    new Promise((resolve) => {
      const socket = connect(portOf(siege, door), '127.0.0.1', () => resolve(socket));
      socket.on('error', () => resolve(socket)).resume();
    });
  const all: Socket[] = [];
  while (all.length < count) all.push(...(await Promise.all(Array.from({ length: Math.min(100, count - all.length) }, open))));
  return all;
}

async function close(all: readonly Socket[]): Promise<void> {
  const closed = all.flatMap((socket) => (socket.closed ? [] : [once(socket, 'close')]));
  for (const socket of all) socket.destroy();
  await Promise.all(closed);
}

/** `answered` where a client with a login got in beside them. */
async function beside(siege: Siege, { logIn }: Attacked, all: readonly Socket[]): Promise<string> {
  await logIn(siege);
  await close(all);
  await logIn(siege);
  return 'answered';
}

export const strangers: readonly DoorBomb[] = attacked.flatMap((one) => {
  const { door, large, drip, wrong } = one;
  const stranger = (name: string, run: DoorBomb['run']): DoorBomb => ({
    name: `stranger at ${door}: ${name}`,
    ends: /^answered/,
    run,
  });
  return [
    stranger('ten thousand that say nothing', async (siege) => {
      // The limit of one address' ports and of this process' files is not far.
      const all = await sockets(siege, door, 9_000);
      await pause(1_000);
      return beside(siege, one, all);
    }),
    stranger('a hundred large first messages', async (siege) => {
      const all = await sockets(siege, door, 100);
      for (const socket of all) socket.write(large);
      await pause(2_000);
      return beside(siege, one, all);
    }),
    stranger('two hundred that drip', async (siege) => {
      const all = await sockets(siege, door, 200);
      for (const socket of all) socket.write(drip.subarray(0, Math.min(drip.length, 4_096)));
      for (let at = 4_096; at < 4_496 && at < drip.length; at++) {
        for (const socket of all) if (socket.writable) socket.write(drip.subarray(at, at + 1));
        await pause(5);
      }
      return beside(siege, one, all);
    }),
    ...(wrong === ''
      ? [
          stranger('wrong passwords, two hundred', async (siege) => {
            let entered = 0;
            const enter = (): Promise<void> =>
              one.logIn(siege, 'wrong').then(
                () => void entered++,
                () => undefined,
              );
            for (let sent = 0; sent < 200; sent += 20) await Promise.all(Array.from({ length: 20 }, enter));
            return entered > 0 ? `${entered} got in` : beside(siege, one, []);
          }),
        ]
      : [
          stranger('wrong passwords, fifty thousand', async (siege) => {
            const all = await sockets(siege, door, 50);
            for (const socket of all) socket.write(wrong.repeat(1_000));
            await pause(3_000);
            return beside(siege, one, all);
          }),
        ]),
  ];
});
