/** `mongodb` connected to the document door of a world. */
import { MongoClient, type MongoClientOptions } from 'mongodb';
import type { StoreWorld } from '../http/store-world.ts';

export const documentSecret = 'bearer-for-tests';

export async function documentsConnected(
  world: StoreWorld,
  { user = 'tester', ...more }: MongoClientOptions & { readonly user?: string } = {},
): Promise<MongoClient> {
  const { port } = world.others.find(({ name }) => name === 'document')!;
  const client = new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`, {
    auth: { username: user, password: documentSecret },
    authMechanism: 'SCRAM-SHA-256',
    serverSelectionTimeoutMS: 3_000,
    ...more,
  });
  return client.connect();
}

/** Runs with a client of its own, as a user of this organisation path; null: of none. */
export async function asDocuments<T>(
  world: StoreWorld,
  path: string | null,
  run: (client: MongoClient) => Promise<T>,
): Promise<T> {
  const client = await documentsConnected(world, { user: path === null ? 'tester' : `tester@${path}` });
  try {
    return await run(client);
  } finally {
    await client.close();
  }
}

/** Number and name of the error that a promise is refused with. */
export async function errorOf(asked: Promise<unknown>): Promise<string> {
  return asked.then(
    () => 'answered',
    (error: { code?: number; codeName?: string; message: string }) =>
      error.code === undefined ? error.message : `${error.code} ${error.codeName ?? ''}`.trim(),
  );
}
