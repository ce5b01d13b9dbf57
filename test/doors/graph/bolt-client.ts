/** Neo4j's driver, and bytes of a client of Bolt, against a server of tests. */
import neo4j, { type Driver, type Session } from 'neo4j-driver';
import { chunk } from '../../../src/doors/graph/bolt-codec.ts';
import { type PackStreamValue, PackStreamWriter, PackStreamStructure } from '../../../src/doors/graph/packstream.ts';
import type { StoreWorld } from '../http/store-world.ts';

export const boltPort = (world: StoreWorld): number => world.others.find(({ name }) => name === 'graph-binary')!.port;

interface DriverOptions {
  readonly scheme?: 'bolt' | 'neo4j';
  readonly user?: string;
}

export function boltDriver(world: StoreWorld, secret: string, { scheme = 'bolt', user = 'neo4j' }: DriverOptions = {}): Driver {
  return neo4j.driver(`${scheme}://127.0.0.1:${boltPort(world)}`, neo4j.auth.basic(user, secret), {
    maxTransactionRetryTime: 10_000,
  });
}

/** What somebody of this organisation is answered; null: he names none. */
export async function asBolt<T>(
  world: StoreWorld,
  path: string | null,
  secret: string,
  run: (session: Session) => Promise<T>,
): Promise<T> {
  const driver = boltDriver(world, secret, path === null ? {} : { user: `neo4j@${path}` });
  try {
    return await run(driver.session());
  } finally {
    await driver.close();
  }
}

/** The column `_pk` of an answer. */
export const keysByBolt = (world: StoreWorld, path: string | null, secret: string, text: string): Promise<string[]> =>
  asBolt(world, path, secret, async (session) => (await session.run(text)).records.map((record) => record.get('_pk') as string));

/** The preamble, and one offer: so many minor versions below, minor, major. */
export const handshakeBytes = (below: number, minor: number, major: number): Buffer =>
  Buffer.concat([Buffer.from([0x60, 0x60, 0xb0, 0x17, 0, below, minor, major]), Buffer.alloc(12)]);

export function messageBytes(tag: number, ...fields: readonly PackStreamValue[]): Buffer {
  const packer = new PackStreamWriter();
  packer.value(new PackStreamStructure(tag, fields));
  return chunk(packer.bytes);
}

export const map = (members: Readonly<Record<string, PackStreamValue>> = {}): PackStreamValue => new Map(Object.entries(members));

export const helloBytes = (secret: string): Buffer =>
  messageBytes(0x01, map({ user_agent: 'test/1', scheme: 'basic', principal: 'neo4j', credentials: secret }));
