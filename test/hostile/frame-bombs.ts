/** What was written to hurt the columnar, graph, gRPC and Flight doors: floods of frames, bodies that unfold, and clients that ask and don't read. */
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { helloBytes as boltHello, handshakeBytes, map, messageBytes } from '../doors/graph/bolt-client.ts';
import { blockBytes, helloBytes, queryBytes } from '../doors/columnar/native-client.ts';
import { bytesField, protobufMessage } from '../../src/doors/grpc/protobuf.ts';
import { commandDescriptor, FlightClient } from '../doors/grpc/flight-client.ts';
import { GrpcClient } from '../doors/grpc/grpc-client.ts';
import type { DoorBomb } from './door-bombs.ts';
import { callBegun, frame, messageSent, preface, queryMessage } from './frames.ts';
import { doorSecret, type Siege } from './siege.ts';

/** What those who hold connections and calls open may make the server grow by. */
const grownMaxMb = 100;
const large = 'SELECT a.body, b.body FROM Text a, Text b';

export const othersOf = ({ ports }: Siege) => ({
  others: Object.entries(ports).map(([name, port]) => ({ name, port })) as unknown as ConstructorParameters<
    typeof GrpcClient
  >[0]['others'],
});

export async function grpcAnswers(siege: Siege, secret = doorSecret): Promise<void> {
  const client = new GrpcClient(othersOf(siege), {}, secret);
  try {
    await client.call('ListTypes', {}, { deadline: Date.now() + 20_000 });
  } finally {
    client.close();
  }
}

export async function flightAnswers(siege: Siege, secret = doorSecret): Promise<void> {
  const client = new FlightClient(othersOf(siege), {}, secret);
  try {
    await client.rows('SELECT 1 AS one');
  } finally {
    client.close();
  }
}

/** Bytes of the call that asks for all rows of a question. */
async function asked(siege: Siege, door: RpcDoor, sql: string): Promise<Buffer> {
  if (door === 'grpc') return queryMessage(sql);
  const client = new FlightClient(othersOf(siege), {}, doorSecret);
  try {
    return protobufMessage(bytesField(1, (await client.info(commandDescriptor(Buffer.from(sql)))).ticket));
  } finally {
    client.close();
  }
}

async function opened(port: number, count: number): Promise<Socket[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      await once(socket, 'connect');
      return socket;
    }),
  );
}

/** Each of so many connections sends all of it, as fast as it is taken, or until it is ended. */
async function flood(port: number, count: number, pieces: () => Iterable<Buffer>): Promise<void> {
  const sockets = await opened(port, count);
  await Promise.all(
    sockets.map(async (socket) => {
      socket.resume();
      const closed = new Promise((resolve) => socket.once('close', resolve));
      for (const piece of pieces()) {
        if (socket.destroyed) break;
        if (!socket.write(piece)) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed]);
      }
    }),
  );
  await pause(500);
  for (const socket of sockets) socket.destroy();
}

function* each(count: number, of: (stream: number) => Buffer): Generator<Buffer> {
  for (let i = 0; i < count; i += 100)
    yield Buffer.concat(Array.from({ length: Math.min(100, count - i) }, (_, k) => of(2 * (i + k) + 1)));
}

/** Connections that ask and don't read, for as long as `ms`; `answered` where the server has grown by no more than it may. */
async function unread(siege: Siege, port: number, count: number, bytes: Buffer, ms = 3_000): Promise<string> {
  const before = siege.residentMb();
  const sockets = await opened(port, count);
  for (const socket of sockets) socket.pause().write(bytes);
  await pause(ms);
  const grown = siege.residentMb() - before;
  for (const socket of sockets) socket.destroy();
  return grown <= grownMaxMb ? 'answered' : `grew by ${grown.toFixed(0)} MiB`;
}

/** Both doors that speak gRPC: what asks, and what takes rows, of each. */
const rpcDoors = {
  grpc: { asks: 'annals.v1.Annals/Query', takes: 'annals.v1.Annals/Ingest', answers: grpcAnswers },
  flight: {
    asks: 'arrow.flight.protocol.FlightService/DoGet',
    takes: 'arrow.flight.protocol.FlightService/DoPut',
    answers: flightAnswers,
  },
} as const;
type RpcDoor = keyof typeof rpcDoors;

const rpc = (door: RpcDoor, name: string, run: (siege: Siege, port: number) => Promise<unknown>): DoorBomb => ({
  name: `${door}: ${name}`,
  ends: /^answered/,
  async run(siege) {
    const end = await run(siege, siege.ports[door]!);
    await rpcDoors[door].answers(siege);
    return typeof end === 'string' ? end : 'answered';
  },
});

let unfolding: Buffer<ArrayBuffer> | null = null;
const bomb = (): Buffer<ArrayBuffer> => (unfolding ??= gzipSync(Buffer.alloc(1 << 30, ' ')) as Buffer<ArrayBuffer>);

const posted = (name: string, door: string, path: string, headers: Record<string, string>): DoorBomb => ({
  name: `${door}: ${name}`,
  ends: /^4\d\d/,
  async run({ ports }) {
    const sent = { method: 'POST', headers: { 'content-encoding': 'gzip', ...headers }, body: bomb() };
    const reply = await fetch(`http://127.0.0.1:${ports[door]}${path}`, sent);
    return `${reply.status} ${(await reply.text()).slice(0, 200)}`;
  },
});

const reset = Buffer.from([0, 0, 0, 8]);
const basic = `Basic ${Buffer.from(`me:${doorSecret}`).toString('base64')}`;

const rpcBombs = (door: RpcDoor): readonly DoorBomb[] => {
  const { asks, takes } = rpcDoors[door];
  return [
    rpc(door, 'calls that are begun and reset, fifty thousand', (_, port) =>
      flood(port, 10, function* () {
        yield preface;
        yield* each(5_000, (stream) => Buffer.concat([callBegun(stream, asks, doorSecret), frame('reset', 0, stream, reset)]));
      }),
    ),
    rpc(door, 'calls of strangers that are begun and reset, fifty thousand', (_, port) =>
      flood(port, 10, function* () {
        yield preface;
        yield* each(5_000, (stream) => Buffer.concat([callBegun(stream, asks, 'wrong'), frame('reset', 0, stream, reset)]));
      }),
    ),
    rpc(door, 'headers that go on without an end', (_, port) =>
      flood(port, 20, function* () {
        yield preface;
        yield callBegun(1, asks, doorSecret, false);
        for (let i = 0; i < 2_000; i++) yield frame('continuation', 0, 1, Buffer.alloc(16_384, 0));
      }),
    ),
    rpc(door, 'pings that are answered to nobody, a million', (_, port) =>
      flood(port, 10, function* () {
        yield preface;
        for (let i = 0; i < 1_000; i++)
          yield Buffer.concat(Array.from({ length: 100 }, () => frame('ping', 0, 0, Buffer.alloc(8))));
      }),
    ),
    rpc(door, 'a thousand calls at once on one connection', async (siege, port) => {
      const before = siege.residentMb();
      await flood(port, 1, function* () {
        yield preface;
        yield* each(1_000, (stream) => callBegun(stream, takes, doorSecret));
      });
      return siege.residentMb() - before <= grownMaxMb ? 'answered' : 'grew';
    }),
    {
      name: `${door}: a message that unfolds to a gigabyte`,
      ends: /^(8|12|13)$/,
      async run({ ports }) {
        const session = connectHttp2(`http://127.0.0.1:${ports[door]}`).on('error', () => undefined);
        const stream = session.request({
          ':method': 'POST',
          ':path': `/${asks}`,
          'content-type': 'application/grpc',
          te: 'trailers',
          'grpc-encoding': 'gzip',
          authorization: `Bearer ${doorSecret}`,
        });
        let status = 'none';
        const note = (headers: Record<string, unknown>): void => {
          const told = headers['grpc-status'];
          if (typeof told === 'string') status = told;
        };
        stream
          .on('response', note)
          .on('trailers', note)
          .on('error', () => undefined)
          .resume();
        const closed = new Promise((resolve) => stream.once('close', resolve));
        const packed = bomb();
        const head = Buffer.from([1, 0, 0, 0, 0]);
        head.writeUInt32BE(packed.length, 1);
        stream.end(Buffer.concat([head, packed]));
        await Promise.race([closed, pause(20_000)]);
        session.destroy();
        return status;
      },
    },
    rpc(door, 'answers that nobody reads, a hundred on each of ten connections', async (siege, port) => {
      const question = await asked(siege, door, large);
      const calls = Array.from({ length: 100 }, (_, i) =>
        Buffer.concat([callBegun(2 * i + 1, asks, doorSecret), messageSent(2 * i + 1, question, false)]),
      );
      return unread(siege, port, 10, Buffer.concat([preface, ...calls]));
    }),
    rpc(door, 'senders of rows that fall silent, a hundred on each of ten connections', (siege, port) =>
      unread(
        siege,
        port,
        10,
        Buffer.concat([preface, ...Array.from({ length: 100 }, (_, i) => callBegun(2 * i + 1, takes, doorSecret))]),
      ),
    ),
  ];
};

export const frameBombs: readonly DoorBomb[] = [
  ...rpcBombs('grpc'),
  ...rpcBombs('flight'),
  posted('a compressed body that unfolds to a gigabyte', 'columnar-http', '/?query=INSERT+INTO+Small+FORMAT+JSONEachRow', {
    'x-columnar-key': doorSecret,
  }),
  posted('a compressed body that unfolds to a gigabyte', 'graph-http', '/db/neo4j/query/v2', {
    authorization: basic,
    'content-type': 'application/json',
  }),
  {
    name: 'columnar-http: answers that nobody reads, on fifty connections',
    ends: /^answered/,
    run: (siege) =>
      unread(
        siege,
        siege.ports['columnar-http']!,
        50,
        Buffer.from(
          `GET /?query=${encodeURIComponent(`${large} FORMAT JSONEachRow`)} HTTP/1.1\r\nhost: a\r\nx-columnar-key: ${doorSecret}\r\n\r\n`.repeat(
            20,
          ),
        ),
      ),
  },
  {
    name: 'columnar-native: answers that nobody reads, on fifty connections',
    ends: /^answered/,
    run: (siege) =>
      unread(
        siege,
        siege.ports['columnar-native']!,
        50,
        Buffer.concat([helloBytes({ password: doorSecret }), queryBytes(large), blockBytes(false)]),
      ),
  },
  {
    name: 'graph-binary: records that nobody reads, on fifty connections',
    ends: /^answered/,
    run: (siege) =>
      unread(
        siege,
        siege.ports['graph-binary']!,
        50,
        Buffer.concat([
          handshakeBytes(4, 4, 5),
          boltHello(doorSecret),
          messageBytes(0x6a, map({ scheme: 'basic', principal: 'neo4j', credentials: doorSecret })),
          messageBytes(0x10, large, map(), map()),
          messageBytes(0x3f, map({ n: -1n })),
        ]),
      ),
  },
  {
    name: 'graph-http: answers that nobody reads, on fifty connections',
    ends: /^answered/,
    run: (siege) => {
      const body = JSON.stringify({ statement: large });
      const head = `POST /db/neo4j/query/v2 HTTP/1.1\r\nhost: a\r\nauthorization: ${basic}\r\ncontent-type: application/json\r\n`;
      const bytes = Buffer.from(`${head}content-length: ${body.length}\r\n\r\n${body}`.repeat(20));
      return unread(siege, siege.ports['graph-http']!, 50, bytes);
    },
  },
];
