/** Standing queries under a clock that the test moves: rounds, heartbeats, patience. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ServiceError } from '../../../../src/errors.ts';
import type { GateContract } from '../../../../src/governance/gate-contract.ts';
import { eventText } from '../../../../src/doors/http/server-sent-events.ts';
import type { Caller } from '../../../../src/governance/caller.ts';
import type { Subscription, WatchClient } from '../../../../src/planner/continuous/watch/subscription.ts';
import { StandingQueries } from '../../../../src/planner/continuous/watch/watch.ts';
import type { WatchEvent } from '../../../../src/planner/continuous/watch/watch-events.ts';
import { analyst, TestStore } from '../../../harness.ts';
import { settled, SteppingClock } from '../stepping-clock.ts';

class Client implements WatchClient {
  text = '';
  ended: string | null | undefined;
  takes = true;
  fails: ServiceError | null = null;
  readonly #gone = new AbortController();
  readonly gone = this.#gone.signal;

  renew(): Caller {
    if (this.fails) throw this.fails;
    return analyst;
  }

  async write(events: readonly WatchEvent[]): Promise<boolean> {
    this.text += events.map(eventText).join('');
    return this.takes;
  }

  end(last: WatchEvent | null): void {
    this.ended ??= last && eventText(last);
  }

  leave(): void {
    this.#gone.abort();
  }

  /** Names of the events so far. */
  get told(): string[] {
    return [...this.text.matchAll(/^event: (.*)$/gm)].map((match) => match[1]!);
  }
}

let store: TestStore;
let clock: SteppingClock;
let hub: StandingQueries;
let recordFailure: ServiceError | null = null;
beforeEach(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Fact', { key: 'string', n: 'integer' }, 'key');
  clock = new SteppingClock();
  recordFailure = null;
  const { planner, ids } = store.service;
  const yieldTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  hub = new StandingQueries({ gate: failing(store.service.gate), planner, clock, ids, subscriptionsMax: 2, yieldTurn });
});
afterEach(async () => {
  hub.close();
  await store.close();
});

/** A gate that can't record what it ran, while `recordFailure` is set. */
function failing(gate: GateContract): GateContract {
  return {
    invoke: async (caller, request, run) => {
      const answer = await gate.invoke(caller, request, run);
      if (recordFailure !== null) throw recordFailure;
      return answer;
    },
    rehearsal: (draft) => gate.rehearsal(draft),
    begin: (caller) => gate.begin(caller),
    transaction: (id, caller) => gate.transaction(id, caller),
    transactions: (caller) => gate.transactions(caller),
    checkStanding: (caller) => gate.checkStanding(caller),
    onVisible: (scope, listener) => gate.onVisible(scope, listener),
  };
}

const registered = (sql = 'SELECT key, n FROM Fact'): Promise<Subscription> =>
  store.service.gate.invoke(analyst, { action: 'watch', purpose: 'test', correlationId: 'c' }, (invocation) =>
    hub.register(invocation, sql, 'test'),
  );

async function followed(keep = false): Promise<{ client: Client; done: Promise<void>; subscription: Subscription }> {
  const client = new Client();
  const subscription = hub.claim(await registered());
  const done = hub.follow(subscription, client, { resumeAfter: null, keep });
  await settled();
  return { client, done, subscription };
}

const watchRecords = (): Promise<number> =>
  store.invoke(analyst, 'audit', async (invocation) => (await invocation.audit().count({ action: 'watch' })).count);

let instant = 0;
async function put(count = 1): Promise<void> {
  for (let i = 0; i < count; i++) {
    store.clock.wallNs += 1_000n;
    await store.put('Fact', [{ key: `k${instant % 3}`, n: instant++ }]);
  }
  await settled();
}

describe('a stream', () => {
  test('begins with where it stands, and beats while nothing happens', async () => {
    const { client, done } = await followed();
    expect(client.text.startsWith('id: ')).toBe(true);
    await clock.pass(14_999);
    expect(client.told).toEqual(['heartbeat']);
    await clock.pass(401);
    expect(client.told).toEqual(['heartbeat', 'heartbeat']);
    client.leave();
    await done;
    expect(client.ended).toBeNull();
  });

  test('is told at once, then in rounds: many commits are one delivery and one record', async () => {
    const { client } = await followed();
    const before = await watchRecords();
    await put();
    expect(client.told).toEqual(['heartbeat', 'insert']);
    await put(20);
    expect(client.told.length).toBe(2);
    await clock.pass(1_000);
    expect(client.told.length).toBe(22);
    expect((await watchRecords()) - before).toBe(2);
  });

  test('ends for a client that does not take what it is sent, and for one whose credential ended', async () => {
    const slow = await followed();
    slow.client.takes = false;
    await put();
    await slow.done;
    const revoked = await followed();
    revoked.client.fails = new ServiceError('REL_UNAUTHENTICATED', 'missing or invalid credential');
    await clock.pass(400);
    await revoked.done;
    expect(revoked.client.ended).toContain('event: error\ndata: {"code":"REL_UNAUTHENTICATED"');
    // Both are gone from the count.
    await registered();
    await registered();
  });

  test('whose credential ended is sent nothing more, however soon something happens', async () => {
    const { client, done } = await followed();
    client.fails = new ServiceError('REL_UNAUTHENTICATED', 'missing or invalid credential');
    const { text } = client;
    await put();
    await done;
    expect(client.text).toBe(text);
  });
});

test('nothing leaves that could not be recorded', async () => {
  const { client, done } = await followed();
  const { text } = client;
  recordFailure = new ServiceError('REL_UNAVAILABLE', 'the invocation could not be recorded, so its answer is withheld');
  await put();
  await done;
  expect(client.text).toBe(text);
  expect(client.ended).toContain('REL_UNAVAILABLE');
});

describe('a registration', () => {
  test('that nobody follows ends after a minute', async () => {
    const { id } = await registered();
    await registered();
    await expect(registered()).rejects.toMatchObject({ code: 'REL_WATCH_LIMIT' });
    await clock.pass(59_000);
    expect(hub.requireSubscription(id, analyst).id).toBe(id);
    await clock.pass(1_001);
    expect(() => hub.requireSubscription(id, analyst)).toThrow('no such subscription');
    await registered();
  });

  test('waits another minute for a client that left, where it is kept; a stream of its own ends', async () => {
    for (const keep of [true, false]) {
      const { client, done, subscription } = await followed(keep);
      client.leave();
      await done;
      await clock.pass(59_000);
      if (keep) expect(hub.requireSubscription(subscription.id, analyst)).toBe(subscription);
      else expect(() => hub.requireSubscription(subscription.id, analyst)).toThrow('no such subscription');
      await clock.pass(1_001);
      expect(() => hub.requireSubscription(subscription.id, analyst)).toThrow('no such subscription');
    }
  });

  test('is followed by one at a time', async () => {
    const subscription = hub.claim(await registered());
    expect(() => hub.claim(subscription)).toThrow('followed already');
    hub.release(subscription);
    expect(hub.claim(subscription)).toBe(subscription);
  });
});

test('a hundred queries of one scope look into storage once a round', async () => {
  const { gate, planner, ids } = store.service;
  const yieldTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const many = new StandingQueries({ gate, planner, clock, ids, subscriptionsMax: 100, yieldTurn });
  const clients: Client[] = [];
  for (let i = 0; i < 100; i++) {
    const subscription = await gate.invoke(analyst, { action: 'watch', purpose: 'test', correlationId: 'c' }, (invocation) =>
      many.register(invocation, `SELECT key FROM Fact WHERE n % 100 = ${i}`, 'test'),
    );
    const client = new Client();
    clients.push(client);
    void many.follow(many.claim(subscription), client, { resumeAfter: null, keep: false });
  }
  for (let i = 0; i < 20; i++) await settled();
  instant = 0;
  const before = await watchRecords();
  await put();
  for (let i = 0; i < 5; i++) await settled();
  expect(clients.map(({ told }) => told.length)).toEqual(clients.map((_, i) => (i === 0 ? 2 : 1)));
  // One read for all, and one delivery; both may be one invocation.
  expect((await watchRecords()) - before).toBeLessThanOrEqual(2);
  many.close();
});
