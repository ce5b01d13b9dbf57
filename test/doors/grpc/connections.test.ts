/** Connections of a gRPC door by which no good credential came. */
import { Metadata, type ServerInterceptor } from '@grpc/grpc-js';
import { once } from 'node:events';
import { connect, type ClientHttp2Session } from 'node:http2';
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import type { RpcDependencies } from '../../../src/doors/grpc/call.ts';
import { credentialsFirst, RpcConnections } from '../../../src/doors/grpc/connections.ts';
import { StoreWorld } from '../http/store-world.ts';
import { GrpcClient, grpcSecret } from './grpc-client.ts';

let world: StoreWorld;
let port: number;
beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: grpcSecret });
  ({ port } = world.others.find(({ name }) => name === 'grpc')!);
});
afterAll(() => world.close());

/** The status of a call, or null where the connection ended first. */
async function statusOf(session: ClientHttp2Session, secret: string): Promise<string | null> {
  if (session.destroyed || session.closed) return null;
  const stream = session.request({
    ':method': 'POST',
    ':path': '/annals.v1.Annals/ListTypes',
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${secret}`,
  });
  stream.end(Buffer.alloc(5));
  let status: string | null = null;
  const note = (headers: Record<string, unknown>): void => void (status = (headers['grpc-status'] as string) ?? status);
  stream
    .on('response', note)
    .on('trailers', note)
    .on('error', () => undefined)
    .resume();
  await once(stream, 'close').catch(() => undefined);
  return status;
}

test('a connection whose credentials are refused again and again ends, and one with a good credential goes on', async () => {
  const session = connect(`http://127.0.0.1:${port}`).on('error', () => undefined);
  const statuses: (string | null)[] = [];
  for (let i = 0; i < 7; i++) statuses.push(await statusOf(session, 'wrong'));
  expect(statuses).toEqual(['16', '16', '16', '16', '16', null, null]);
  const good = connect(`http://127.0.0.1:${port}`);
  for (let i = 0; i < 7; i++) expect(await statusOf(good, grpcSecret)).toBe('0');
  good.close();
});

/** What a call tells of its client. */
interface Listener {
  onReceiveMetadata(metadata: Metadata): void;
  onCancel(): void;
}

test('a connection that takes back call after call before it begins ends, and others go on', async () => {
  // By a clock on which every call takes a second: how many begin before they are taken back is then the same on any machine.
  let nowMs = 0;
  const connections = new RpcConnections({ ...systemClock, monotonicMs: () => (nowMs += 1_000) });
  const listener = createServer((socket) => connections.admit(socket)).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const joinDoor = async (): Promise<{ socket: Socket; peer: string }> => {
    const socket = connectSocket((listener.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
    await Promise.all([once(socket, 'connect'), once(listener, 'connection')]);
    return { socket, peer: `127.0.0.1:${socket.localPort}` };
  };
  const taker = await joinDoor();
  const other = await joinDoor();
  const method = { path: '/grpc.health.v1.Health/Check' } as unknown as Parameters<ServerInterceptor>[0];
  const admitted = credentialsFirst(world.service as unknown as RpcDependencies, connections, 'grpc', '/annals.v1.');
  const takeBack = (peer: string, calls: number): void => {
    const listeners: Listener[] = [];
    const call = { getPeer: () => peer, start: (heard: Listener) => void listeners.push(heard) };
    for (let i = 0; i < calls; i++)
      admitted(method, call as unknown as Parameters<ServerInterceptor>[1]).start({
        onReceiveMetadata: () => undefined,
        onCancel: () => undefined,
      } as never);
    for (const heard of listeners) heard.onReceiveMetadata(new Metadata());
    for (const heard of listeners) heard.onCancel();
  };
  const ended = once(taker.socket, 'close');
  taker.socket.resume();
  takeBack(other.peer, 100);
  takeBack(taker.peer, 150);
  await ended;
  expect(other.socket.destroyed).toBe(false);
  other.socket.destroy();
  listener.close();
});

test('of a thousand and one silent connections the first is cut off, and whoever has logged in stays', async () => {
  const client = new GrpcClient(world);
  await client.call('ListTypes', {});
  const sockets: Socket[] = [];
  for (let i = 0; i < 1_001; i++) {
    const socket = connectSocket(port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    await once(socket, 'connect');
    sockets.push(socket);
  }
  await once(sockets[0]!, 'close');
  expect(sockets.filter(({ closed }) => closed)).toHaveLength(1);
  await client.call('ListTypes', {});
  client.close();
  for (const socket of sockets) socket.destroy();
});
