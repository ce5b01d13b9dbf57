/** `ioredis` connected to the key-value door of a world. */
import { Redis, type RedisOptions } from 'ioredis';
import type { StoreWorld } from '../http/store-world.ts';

export const kvSecret = 'bearer-for-tests';

export function kvConnected(world: StoreWorld, more: RedisOptions = {}): Redis {
  const { port } = world.others.find(({ name }) => name === 'kv')!;
  const client = new Redis(port, '127.0.0.1', {
    username: 'tester',
    password: kvSecret,
    retryStrategy: () => undefined,
    ...more,
    replyMapping: 'legacy',
  });
  // A connection that the server ends is not what a test fails by.
  client.on('error', () => undefined);
  return client;
}

/** Runs with a client of its own, as a user of this organisation path; null: of none. */
export async function asKv<T>(world: StoreWorld, path: string | null, run: (client: Redis) => Promise<T>): Promise<T> {
  const client = kvConnected(world, { username: path === null ? 'tester' : `tester@${path}` });
  try {
    return await run(client);
  } finally {
    client.disconnect();
  }
}

/** What a command is refused with. */
export async function refusalOf(asked: Promise<unknown>): Promise<string> {
  return asked.then(
    (answer) => `answered ${JSON.stringify(answer)}`,
    (error: Error) => error.message,
  );
}
