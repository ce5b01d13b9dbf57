/** `pg` connected to the relational door of a world. */
import pg from 'pg';
import type { StoreWorld } from '../http/store-world.ts';

export const relationalSecret = 'bearer-for-tests';

export async function connected(world: StoreWorld, more: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port: world.others.find(({ name }) => name === 'relational')!.port,
    user: 'tester',
    password: relationalSecret,
    database: 'annals',
    ...more,
  });
  // A connection that the server ends is not what a test fails by.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** Runs with a client of its own, as a user of this organisation path; null: of none. */
export async function as<T>(world: StoreWorld, path: string | null, run: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connected(world, { user: path === null ? 'tester' : `tester@${path}` });
  try {
    return await run(client);
  } finally {
    await client.end();
  }
}

/** SQLSTATE that a promise is refused with. */
export async function stateOf(asked: Promise<unknown>): Promise<string> {
  return asked.then(
    () => 'answered',
    (error: { code?: string; message: string }) => error.code ?? error.message,
  );
}
