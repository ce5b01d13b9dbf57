/** `@aws-sdk/client-s3` connected to the object door of a world. */
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { GetObjectCommand, PutObjectCommand, S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import type { Disk } from '../../../src/log/disk/disk.ts';
import { StoreWorld } from '../http/store-world.ts';

export const objectToken = 'bearer-for-tests';
export const objectSecret = 'secret-of-signed-requests';

/** A store that checks signatures, on a disk, be it one of memory: else there are no backups. */
export function objectWorld(disk: Disk): Promise<StoreWorld> {
  const settings = {
    SERVICE_BEARER_TOKEN: objectToken,
    SERVICE_FLIGHT_ENABLE: 'true',
    SERVICE_OBJECT_SECRET_KEY: objectSecret,
    SERVICE_OBJECT_BLOB_THRESHOLD_MB: '1',
    SERVICE_IN_MEMORY: 'false',
    SERVICE_DATA_DIR: '/data',
  };
  return StoreWorld.open(settings, { disk });
}

export const putInto = (client: S3Client, Key: string, Body: string | Uint8Array, more: object = {}) =>
  client.send(new PutObjectCommand({ Bucket: 'docs', Key, Body, ...more }));

export async function textOf(client: S3Client, Key: string, more: object = {}): Promise<string> {
  const { Body } = await client.send(new GetObjectCommand({ Bucket: 'docs', Key, ...more }));
  return Body!.transformToString();
}

export function objectPort(world: StoreWorld): number {
  return world.others.find(({ name }) => name === 'object')!.port;
}

export function clientOf(world: StoreWorld, more: S3ClientConfig = {}, headers: Readonly<Record<string, string>> = {}): S3Client {
  const client = new S3Client({
    endpoint: `http://127.0.0.1:${objectPort(world)}`,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: objectToken, secretAccessKey: objectSecret },
    maxAttempts: 1,
    ...more,
  });
  client.middlewareStack.add(
    (next) => (args) => {
      Object.assign((args.request as { headers: Record<string, string> }).headers, headers);
      return next(args);
    },
    { step: 'build', name: 'more headers' },
  );
  return client;
}

export const forPath = (world: StoreWorld, path: string | null, more: S3ClientConfig = {}): S3Client =>
  clientOf(world, more, path === null ? {} : { 'x-organization-id': path });

/** Code and status that a promise is refused with. */
export async function codeOf(asked: Promise<unknown>): Promise<string> {
  return asked.then(
    () => 'answered',
    (error: { name: string; $metadata?: { httpStatusCode?: number }; message: string }) =>
      `${error.name} ${error.$metadata?.httpStatusCode ?? error.message}`,
  );
}

/** How a client comes that signs nothing. */
export const bearer = { authorization: `Bearer ${objectToken}` };
export const origin = (of: StoreWorld): string => `http://127.0.0.1:${objectPort(of)}`;

export const sha256 = (text: string | Uint8Array): string => createHash('sha256').update(text).digest('hex');

export function megabytes(count: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(count << 20);
  for (let i = 0; i < bytes.length; i++) bytes[i] = i * 31 + seed + (i >> 12);
  return bytes;
}

/** What a connection hears that sends a request so many times before it listens, until it has as many answers or is over. */
export async function sentAhead(port: number, request: string, count: number): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let heard = '';
  socket.on('data', (bytes: Buffer) => {
    heard += bytes.toString();
    if (heard.split('HTTP/1.1 200').length > count) socket.end();
  });
  socket.on('error', () => undefined);
  socket.write(request.repeat(count));
  await new Promise((resolve) => socket.once('close', resolve));
  return heard;
}
