/**
 * Crowds before a door: clients that connect and say nothing, and as many that send a message of the door's protocol byte by byte.
 * Nobody else is to notice them.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Polled } from './poller.ts';
import { doorSecret, type Siege } from './siege.ts';

export interface Crowd {
  readonly door: string;
  /** Sent by every other one as it comes, and what it sends byte by byte from then on: a message that does not come to its end. */
  readonly first: string;
  readonly drips: Buffer;
}

export interface Stood {
  readonly door: string;
  readonly sockets: number;
  /** Connections that the server has ended. */
  readonly ended: number;
  /** JavaScript heap and buffers that the server holds for one of them, beside what it held before. */
  readonly heldKb: number;
  readonly grownMb: number;
  readonly health: Polled;
  /** Longest turn of the server's event loop in CPU time. */
  readonly holdMs: number;
}

/** 100 MiB for two thousand. */
export const socketMaxKb = 51;
/** Less than anybody may take to say who it is. */
const standMs = 5_000;
const dripMs = 250;
const stepMs = 5;
export const cameAtOnce = 50;

const length = (bytes: number, big: boolean): Buffer => {
  const head = Buffer.alloc(4);
  return head[big ? 'writeInt32BE' : 'writeInt32LE'](bytes), head;
};

export const crowds: readonly Crowd[] = [
  {
    door: 'relational',
    first: '',
    drips: Buffer.concat([length(9_000, true), length(196_608, true), Buffer.from(`user\0${'x'.repeat(9_000)}`)]),
  },
  {
    door: 'kv',
    first: `AUTH ${doorSecret}\r\n`,
    drips: Buffer.from(`*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9000\r\n${'x'.repeat(9_000)}`),
  },
  {
    door: 'document',
    first: '',
    drips: Buffer.concat([length(9_000, false), length(1, false), length(0, false), length(2013, false), Buffer.alloc(9_000)]),
  },
  {
    door: 'object',
    first: `PUT /docs/slow HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${doorSecret}\r\nx-amz-meta-x: `,
    drips: Buffer.alloc(9_000, 'x'),
  },
];

/** So many that say nothing, and as many that are slow. */
export async function stand(siege: Siege, crowd: Crowd, each: number, ms = standMs): Promise<Stood> {
  const before = await siege.measure();
  await siege.health();
  let ended = 0;
  const opened = async (_: unknown, i: number): Promise<Socket> => {
    const socket = connect(siege.ports[crowd.door]!, '127.0.0.1');
    socket.on('error', () => undefined).on('close', () => ended++);
    socket.resume();
    await once(socket, 'connect');
    if (i % 2 === 0) socket.write(crowd.first);
    return socket;
  };
  const sockets: Socket[] = [];
  while (sockets.length < 2 * each) sockets.push(...(await Promise.all(Array.from({ length: cameAtOnce }, opened))));
  const slow = sockets.filter((_, i) => i % 2 === 0);
  // One after the other, as if each came by itself.
  const step = Math.max(1, Math.floor((slow.length * stepMs) / dripMs));
  const started = performance.now();
  for (let at = 0; performance.now() - started < ms; at++) {
    for (let from = 0; from < slow.length; from += step) {
      for (const socket of slow.slice(from, from + step)) socket.write(crowd.drips.subarray(at, at + 1));
      await pause(stepMs);
    }
  }
  const health = await siege.health();
  const now = await siege.measure();
  const endedByServer = ended;
  const closed = sockets.flatMap((socket) => (socket.closed ? [] : [once(socket, 'close')]));
  for (const socket of sockets) socket.destroy();
  await Promise.all(closed);
  const heldKb = Math.max(0, ((now.heldMb - before.heldMb) * 1024) / sockets.length);
  const grownMb = now.rssMb - before.rssMb;
  return { door: crowd.door, sockets: sockets.length, ended: endedByServer, heldKb, grownMb, health, holdMs: now.holdMs };
}
