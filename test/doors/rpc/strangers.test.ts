/** Connections of a gRPC door by which no good credential came. */
import { once } from 'node:events';
import { connect, type ClientHttp2Session } from 'node:http2';
import { connect as connectSocket, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callBegun, frame, preface } from '../../hostile/frames.ts';
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

test('a connection that takes back call after call before it begins ends, and others go on', async () => {
  const socket = connectSocket(port, '127.0.0.1');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => undefined).resume();
  const reset = Buffer.from([0, 0, 0, 8]);
  const calls = Array.from({ length: 150 }, (_, i) =>
    Buffer.concat([callBegun(2 * i + 1, 'annals.v1.Annals/ListTypes', grpcSecret), frame('reset', 0, 2 * i + 1, reset)]),
  );
  socket.write(Buffer.concat([preface, ...calls]));
  await closed;
  const client = new GrpcClient(world);
  await client.call('ListTypes', {});
  client.close();
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
