/** Transactions whose clients met a conflict: they wait for each other, and for nobody who does not end. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { QueueTicket, ConflictQueue } from '../../../src/governance/transactions/conflict-queue.ts';
import { TestStore } from '../../harness.ts';
import { ManualClock } from '../../log/world.ts';
import { ann, bob, refused, Teller } from './world.ts';

const someTurns = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** Whether it has come to an end by now. */
async function isDone(doing: Promise<unknown>): Promise<boolean> {
  let done = false;
  doing.then(
    () => (done = true),
    () => (done = true),
  );
  await someTurns();
  return done;
}

describe('a client that met a conflict', () => {
  let store: TestStore;
  const carl = { ...ann, principal: 'carl' };
  beforeAll(async () => {
    store = await TestStore.open('2024-01-01');
    await store.register('Account', { id: 'string', balance: 'integer' }, 'id');
  });
  beforeEach(async () => {
    await store.execute('DELETE FROM Account', [], ann);
    await store.execute("INSERT INTO Account (id, balance) VALUES ('a', 10), ('b', 10)", [], ann);
  });
  afterAll(() => store.close());

  const add = (teller: Teller, id: string) => teller.run('UPDATE Account SET balance = balance + 1 WHERE id = $1', id);
  const balance = async (id: string) =>
    (await store.rows(`SELECT balance FROM Account AS OF CURRENT WHERE id = '${id}'`, ann))[0]!.balance;

  /** One of each caller, which has met a conflict about the row. */
  async function refusedAbout(id: string, ...callers: readonly (typeof ann)[]): Promise<Teller[]> {
    const tellers = callers.map((caller) => new Teller(store, caller));
    for (const teller of tellers) await add(teller, id);
    await store.execute('UPDATE Account SET balance = balance + 0 WHERE id = $1', [id], ann);
    for (const teller of tellers) expect(await refused(teller.commit())).toBe('REL_CONFLICT stale');
    return tellers;
  }

  test('waits before its next transaction for those who write the same rows, and reads what they wrote', async () => {
    const [one, other, third] = (await refusedAbout('a', ann, bob, carl)).map((teller) => teller.next());
    await add(one!, 'a');
    const waiting = add(other!, 'a');
    const behind = add(third!, 'a');
    expect(await isDone(waiting)).toBe(false);
    await one!.commit();
    await waiting;
    expect(await isDone(behind)).toBe(false);
    await other!.commit();
    await behind;
    await third!.commit();
    expect(await balance('a')).toBe(13n);
  });

  test('waits again while others come, and no longer once it was alone', async () => {
    let [one, other] = (await refusedAbout('a', ann, bob)).map((teller) => teller.next()) as [Teller, Teller];
    for (let i = 0; i < 3; i++) {
      await add(one, 'a');
      const waiting = add(other, 'a');
      expect(await isDone(waiting)).toBe(false);
      await one.commit();
      await waiting;
      [one, other] = [other, one.next()];
    }
    other.transaction.end();
    await one.commit();
    const alone = one.next();
    await add(alone, 'a');
    await alone.commit();
    const [first, second] = [alone.next(), other.next()];
    await add(first, 'a');
    await add(second, 'a');
    await first.commit();
    expect(await refused(second.commit())).toBe('REL_CONFLICT stale');
  });

  test('waits for nobody who writes other rows, who never met one, or who gave up', async () => {
    const [one] = (await refusedAbout('a', ann)).map((teller) => teller.next());
    const [other] = (await refusedAbout('b', bob)).map((teller) => teller.next());
    const stranger = new Teller(store, carl);
    await add(one!, 'a');
    await add(other!, 'b');
    await add(stranger, 'a');
    one!.transaction.end();
    await other!.commit();
    await stranger.commit();
    const [left, next] = (await refusedAbout('a', ann, bob)).map((teller) => teller.next());
    await add(left!, 'a');
    const waiting = add(next!, 'a');
    left!.transaction.end();
    await waiting;
    await next!.commit();
  });

  test('names the transaction that did by its id, and no other caller does', async () => {
    const [first, second] = await refusedAbout('a', ann, bob);
    const [one, other] = [first!, second!].map(({ caller, transaction: { id } }) => new Teller(store, caller, id));
    const stranger = new Teller(store, carl, second!.transaction.id);
    await add(one!, 'a');
    await add(stranger, 'b');
    const waiting = add(other!, 'a');
    expect(await isDone(waiting)).toBe(false);
    await one!.commit();
    await waiting;
    await other!.commit();
    stranger.transaction.end();
  });
});

describe('a place in the line', () => {
  const keys = new Set(['a']);
  const patient = { gone: undefined, untilMs: 10_000 };

  test('whose holder does not come back is waited for one second, and who waits gives up after its time', async () => {
    const clock = new ManualClock();
    const line = new ConflictQueue(clock);
    const take = (waiter = patient): Promise<void> | null => new QueueTicket(line, 'acme', keys).enter(waiter);
    expect(take()).toBeNull();
    const second = take()!;
    const third = take()!;
    await clock.advance(999);
    expect(await isDone(second)).toBe(false);
    await clock.advance(1);
    await second;
    expect(await isDone(third)).toBe(false);
    await clock.advance(1_000);
    await third;
    const [hasty, ...crowd] = [2_500, ...Array.from({ length: 12 }, () => 10_000)].map(
      (untilMs) => take({ ...patient, untilMs })!,
    );
    await clock.advance(500);
    await hasty;
    for (let i = 0; i < 10; i++) {
      await clock.advance(1_000);
      await someTurns();
    }
    await Promise.all(crowd);
  });

  test('of one tenant is waited for by nobody else, nor is one whose caller is gone kept waiting', async () => {
    const line = new ConflictQueue(new ManualClock());
    expect(new QueueTicket(line, 'acme', keys).enter(patient)).toBeNull();
    expect(new QueueTicket(line, 'other', keys).enter(patient)).toBeNull();
    const gone = new AbortController();
    const waiting = new QueueTicket(line, 'acme', keys).enter({ ...patient, gone: gone.signal })!;
    expect(await isDone(waiting)).toBe(false);
    gone.abort();
    await waiting;
  });
});
