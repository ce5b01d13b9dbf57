/** `@aws-sdk/client-s3` connected to the object door of a world. */
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import type { StoreWorld } from '../http/store-world.ts';

export const objectToken = 'bearer-for-tests';
export const objectSecret = 'secret-of-signed-requests';

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
