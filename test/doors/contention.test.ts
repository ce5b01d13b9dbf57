/** Clients that change one value at once, by every door that has such a command: nothing is lost, and nobody sees an error. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Contender, ConflictRetry } from '../../src/governance/transactions/conflict-retry.ts';
import { SlotsTaken } from '../../src/governance/admission/quota.ts';
import { ServiceError } from '../../src/errors.ts';
import { ConflictQueue } from '../../src/governance/transactions/conflict-queue.ts';
import { documentsConnected } from './document/document-client.ts';
import { StoreWorld } from './http/store-world.ts';
import { kvConnected, kvSecret } from './kv/kv-client.ts';
import { ManualClock, settle } from '../log/world.ts';
import { connected } from './relational/relational-client.ts';

let world: StoreWorld;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: kvSecret });
});

afterAll(() => world.close());

const clients = 50;
const each = 4;

/** Each client as often, one after the other; all of them at once. */
async function atOnce(count: number, run: (client: number) => Promise<unknown>): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, async (_, client) => {
      for (let i = 0; i < each; i++) await run(client);
    }),
  );
}

test('INCR and its kind by fifty clients', async () => {
  const redis = Array.from({ length: clients }, () => kvConnected(world));
  await atOnce(clients, (client) => redis[client]!.incr('counter'));
  expect(await redis[0]!.get('counter')).toBe(String(clients * each));
  await atOnce(clients, (client) => redis[client]!.append('text', 'x'));
  expect(await redis[0]!.strlen('text')).toBe(clients * each);
  const won = await Promise.all(redis.map((client, i) => client.setnx('lock', String(i))));
  expect(won.filter((each) => each === 1)).toHaveLength(1);
  const taken = await Promise.all(redis.map((client) => client.getdel('lock')));
  expect(taken.filter((each) => each !== null)).toHaveLength(1);
  for (const client of redis) client.disconnect();
});

test('$inc and findAndModify by fifty clients, by _id and by a filter', async () => {
  const client = await documentsConnected(world, { maxPoolSize: clients });
  const counters = client.db('shop').collection<{ _id: string; n: number; by?: string }>('counters');
  await atOnce(clients, () => counters.updateOne({ _id: 'c' }, { $inc: { n: 1 } }, { upsert: true }));
  expect(await counters.findOne({ _id: 'c' })).toEqual({ _id: 'c', n: clients * each });
  const seen: number[] = [];
  await atOnce(clients, async () => {
    const found = await counters.findOneAndUpdate({ n: { $gt: 0 } }, { $inc: { n: 1 } }, { returnDocument: 'after' });
    seen.push(found!.n);
  });
  expect(new Set(seen).size).toBe(clients * each);
  await client.close();
});

test('UPDATE of one row by sixteen clients without a transaction', async () => {
  await world.call('POST', '/types', { name: 'Counter', properties: { k: 'string', n: 'integer' }, primary_key: 'k' });
  await world.call('POST', '/ingest?object_type=Counter', { k: 'c', n: 0 });
  const pg = await Promise.all(Array.from({ length: 16 }, () => connected(world)));
  await atOnce(16, (client) => pg[client]!.query("UPDATE Counter SET n = n + 1 WHERE k = 'c'"));
  await atOnce(16, (client) => pg[client]!.query('UPDATE Counter SET n = n + $1 WHERE k = $2 RETURNING n', [1, 'c']));
  await atOnce(16, (client) =>
    pg[client]!.query("INSERT INTO Counter (k, n) VALUES ('c', 1) ON CONFLICT (k) DO UPDATE SET n = Counter.n + 1"),
  );
  expect((await pg[0]!.query("SELECT n FROM Counter WHERE k = 'c'")).rows).toEqual([{ n: String(48 * each) }]);
  // What a transaction has read stays as it was read: it is told of the conflict.
  await pg[0]!.query('BEGIN');
  await pg[0]!.query("UPDATE Counter SET n = n + 1 WHERE k = 'c'");
  await pg[1]!.query("UPDATE Counter SET n = n + 1 WHERE k = 'c'");
  await expect(pg[0]!.query('COMMIT')).rejects.toMatchObject({ code: '40001' });
  for (const client of pg) await client.end();
});

/** Waits for nobody, and holds no slot. */
const contender: Contender = {
  tenant: 'acme',
  about: 'x',
  gone: undefined,
  untilMs: Infinity,
  pause: () => undefined,
  resume: async () => undefined,
  whenEnded: () => undefined,
};

test('who conflicts without end is told so, and the line goes on', async () => {
  let now = 0;
  let waits = 0;
  const line = new ConflictQueue({ monotonicMs: () => now, sleep: async () => undefined });
  const contention = new ConflictRetry(line, async () => {
    waits++;
    now += 1;
  });
  const stale = new ServiceError('REL_CONFLICT', 'written since', { stale: true });
  let tries = 0;
  const never = async (): Promise<never> => {
    tries++;
    throw stale;
  };
  const first = contention.retryConflicts(contender, never);
  const second = contention.retryConflicts(contender, () => (tries < 17 ? Promise.reject(stale) : Promise.resolve('decided')));
  await expect(first).rejects.toBe(stale);
  expect(await second).toBe('decided');
  expect(tries).toBe(17);
  expect(waits).toBe(15);
  // Its time is over: it is not decided again.
  await expect(contention.retryConflicts({ ...contender, untilMs: now }, never)).rejects.toBe(stale);
  expect(tries).toBe(18);
  const other = new ServiceError('REL_CONFLICT', 'it is there');
  await expect(contention.retryConflicts(contender, () => Promise.reject(other))).rejects.toBe(other);
});

test('who has decided counts until it holds no slot any more: a newcomer about the same waits for the slot, another is refused', async () => {
  const contention = new ConflictRetry(new ConflictQueue(new ManualClock()), async () => undefined);
  let endFirst = (): void => undefined;
  const about = { ...contender, untilMs: 60_000 };
  await contention.retryConflicts({ ...about, whenEnded: (run) => (endFirst = run) }, async () => undefined);
  const refuseOnce = (): (() => Promise<string>) => {
    let tries = 0;
    return async () => {
      if (tries++ === 0) throw new SlotsTaken(1, 'a setting');
      return 'decided';
    };
  };
  const newcomer = { ...about, whenEnded: (run: () => void) => run() };
  expect(await contention.retryConflicts({ ...newcomer, whenEnded: () => undefined }, refuseOnce())).toBe('decided');
  await expect(contention.retryConflicts({ ...newcomer, about: 'y' }, refuseOnce())).rejects.toBeInstanceOf(SlotsTaken);
  endFirst();
});

test('who decides for too long loses its place, and stands at the end of the line again', async () => {
  const clock = new ManualClock();
  const line = new ConflictQueue(clock);
  const contention = new ConflictRetry(line, async () => undefined);
  const stale = new ServiceError('REL_CONFLICT', 'written since', { stale: true });
  const about = { ...contender, untilMs: 60_000 };
  const order: string[] = [];
  let tries = 0;
  const slow = contention.retryConflicts(about, async () => {
    if (++tries === 2) await clock.sleep(1_500);
    if (tries < 3) throw stale;
    order.push('slow');
  });
  await settle();
  const quick = contention.retryConflicts(about, async () => void order.push('quick'));
  const hasty = contention.retryConflicts({ ...about, untilMs: 500 }, async () => void order.push('hasty'));
  await clock.advance(500);
  await hasty;
  await clock.advance(500);
  await quick;
  await clock.advance(500);
  await slow;
  expect(order).toEqual(['hasty', 'quick', 'slow']);
});
