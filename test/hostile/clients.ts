/**
 * Clients that were written to hurt: they ask and don't read, send heads without end, or bodies that don't arrive. What each
 * of their connections makes the server hold is measured, and bounded.
 */
import { connect, type Socket } from 'node:net';
import { send } from '../doors/http/door-world.ts';
import type { Polled } from './poller.ts';
import type { Siege } from './siege.ts';

export interface HostileClient {
  readonly name: string;
  /** What a connection sends at once; it never reads. */
  readonly sends: (siege: Siege) => string | Buffer;
  /** Not in a short run: another one meets the same bound. */
  readonly long?: true;
}

export interface Endured {
  readonly name: string;
  readonly connections: number;
  /** JavaScript heap and buffers that the server holds for one of them, beside what it held before. */
  readonly heldKb: number;
  readonly rssMb: number;
  /** Connections that the server has ended. */
  readonly ended: number;
  readonly health: Polled;
  /** Longest turn of the server's event loop in CPU time. */
  readonly holdMs: number;
}

/** No connection may hold more: a thousand parsed requests take most of it, an answer in pieces half a megabyte. */
export const heldMaxKb = 8_192;

const rows = 1_300;
const large = `SELECT * FROM Held LIMIT ${rows}`;

const head = (siege: Siege, target: string, lines: string): string =>
  `${target} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${siege.token}\r\n${lines}\r\n`;

const question = (siege: Siege, target: string, sql: string): string => {
  const body = JSON.stringify({ sql });
  return head(siege, `POST ${target}`, `content-length: ${body.length}\r\n`) + body;
};

const started = (siege: Siege, lines: string, body: string | Buffer): Buffer =>
  Buffer.concat([Buffer.from(head(siege, 'POST /ingest?object_type=Held', lines)), Buffer.from(body)]);

export const hostileClients: readonly HostileClient[] = [
  { name: 'large answers, the plain lane', sends: (siege) => question(siege, '/query', large).repeat(400) },
  { name: 'large answers, the framework', sends: (siege) => question(siege, '/query?x=1', large).repeat(400) },
  {
    name: 'answers in pieces, the plain lane',
    sends: (siege) => question(siege, '/query', 'SELECT * FROM Held').repeat(400),
    long: true,
  },
  {
    name: 'server-sent events',
    sends: (siege) => question(siege, '/query/stream', 'SELECT * FROM Held').repeat(400),
    long: true,
  },
  { name: 'exports', sends: (siege) => head(siege, 'GET /export?sql=SELECT%20*%20FROM%20Held', '').repeat(400), long: true },
  { name: 'descriptions', sends: (siege) => head(siege, 'GET /openapi.json', '').repeat(900) },
  {
    name: 'many requests behind a large answer',
    sends: (siege) => question(siege, '/query?x=1', large).repeat(30) + 'GET /a HTTP/1.1\r\nhost:\r\n\r\n'.repeat(20_000),
    long: true,
  },
  { name: 'a head without an end', sends: () => `POST /query HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(60_000)}`, long: true },
  { name: 'a head of empty headers', sends: (siege) => head(siege, 'POST /query', 'a:\r\n'.repeat(15_000)) },
  {
    name: 'a body that stops',
    sends: (siege) => started(siege, 'content-length: 1000000\r\n', '{"s":"'.padEnd(60_000, 'x')),
    long: true,
  },
  {
    name: 'a body in chunks that stops',
    sends: (siege) => started(siege, 'transfer-encoding: chunked\r\n', `10000\r\n${'{"n":1}\n'.repeat(8_000)}`),
  },
];

export async function supplyHeld(siege: Siege): Promise<void> {
  const lines = Array.from({ length: rows * 3 }, (_, i) => `${i},${'x'.repeat(100)}`);
  const reply = await send(siege.port, 'POST', '/ingest/auto?object_type=Held', ['n,s', ...lines].join('\n'), {
    authorization: `Bearer ${siege.token}`,
  });
  if (reply.status !== 200) throw new Error(reply.text);
}

export async function endure(siege: Siege, client: HostileClient, connections: number): Promise<Endured> {
  const before = (await siege.measure()).heldMb;
  await siege.health();
  let ended = 0;
  const bytes = client.sends(siege);
  const sockets: Socket[] = Array.from({ length: connections }, () => {
    const socket = connect(siege.port, '127.0.0.1').pause();
    socket.on('error', () => undefined).on('close', () => ended++);
    socket.write(bytes);
    return socket;
  });
  // Until nothing is done for them any more: what is held is what a client that stays could go on holding.
  let rssMb = 0;
  let holdMs = 0;
  for (let idle = 0; idle < 3; ) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const now = await siege.look();
    idle = now.busy > 0.2 ? 0 : idle + 1;
    rssMb = Math.max(rssMb, now.rssMb);
    holdMs = Math.max(holdMs, now.holdMs);
  }
  const health = await siege.health();
  const held = (await siege.measure()).heldMb;
  const closed = sockets.map((socket) => new Promise((resolve) => (socket.closed ? resolve(0) : socket.once('close', resolve))));
  const endedByServer = ended;
  for (const socket of sockets) socket.destroy();
  await Promise.all(closed);
  const heldKb = Math.max(0, ((held - before) * 1024) / connections);
  return { name: client.name, connections, heldKb, rssMb, ended: endedByServer, health, holdMs };
}
