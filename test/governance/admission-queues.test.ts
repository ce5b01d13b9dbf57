/** Queries that wait for a place to run, and rows that wait for the disk: who goes next, who is refused, who leaves. */
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import { ServiceError } from '../../src/errors.ts';
import { bytesOfRows, IngestBacklog } from '../../src/governance/admission/ingest-backlog.ts';
import { priorities, type Priority, priorityOf, QuerySlots } from '../../src/governance/admission/query-slots.ts';
import type { Caller } from '../../src/governance/caller.ts';
import type { Invocation, InvocationRequest } from '../../src/governance/gate-contract.ts';
import type { RowBatch } from '../../src/log/values/columns.ts';
import { caller, ManualClock, putRows, refusalOf, World } from './world.ts';

// What waits for ever, where it must not, is told soon.
vi.setConfig({ testTimeout: 10_000 });

/** Sleepers wake when the test says so. */
class Sleepers implements Pick<Clock, 'sleep'> {
  readonly #wakes: (() => void)[] = [];

  readonly sleep = (_ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      this.#wakes.push(resolve);
      signal?.addEventListener('abort', () => resolve(), { once: true });
    });

  wake(): void {
    for (const wake of this.#wakes.splice(0)) wake();
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('places for running queries', () => {
  const limits = { runningMax: 2, waitingMax: 2, waitMsMax: 1000 };

  test('are taken at once while there are any, and no further', () => {
    const places = new QuerySlots(limits, new Sleepers());
    expect([places.take(), places.take(), places.take(), places.running]).toEqual([true, true, false, 2]);
    places.leave();
    expect([places.running, places.take(), places.take()]).toEqual([1, true, false]);
  });

  test('that come free go to who waits, in order, and to nobody who comes later', async () => {
    const places = new QuerySlots(limits, new Sleepers());
    places.take();
    places.take();
    const order: string[] = [];
    for (const name of ['a', 'b']) void places.wait('interactive').then(() => order.push(name));
    places.leave();
    expect([places.take(), places.running]).toEqual([false, 2]);
    await turn();
    expect(order).toEqual(['a']);
    places.leave();
    await turn();
    expect([order, places.waiting.interactive, places.running]).toEqual([['a', 'b'], 0, 2]);
    places.leave();
    places.leave();
    expect(places.running).toBe(0);
  });

  test('a full line passes newcomers on to the next lower one, the last refuses', async () => {
    const places = new QuerySlots(limits, new Sleepers());
    places.take();
    places.take();
    for (let i = 0; i < 3; i++) void places.wait('interactive').catch(() => undefined);
    expect(places.waiting).toEqual({ interactive: 2, background: 1, low: 0 });
    for (let i = 0; i < 3; i++) void places.wait('background').catch(() => undefined);
    expect(places.waiting).toEqual({ interactive: 2, background: 2, low: 2 });
    for (const priority of priorities) {
      const refusal = await refusalOf(places.wait(priority));
      expect([refusal.code, refusal.status, refusal.facts.retryAfterSecs]).toEqual(['REL_QUEUE_FULL', 429, 1]);
    }
  });

  test('low never takes the room of a higher line', async () => {
    const places = new QuerySlots({ ...limits, waitingMax: 1 }, new Sleepers());
    places.take();
    places.take();
    void places.wait('low').catch(() => undefined);
    expect((await refusalOf(places.wait('low'))).code).toBe('REL_QUEUE_FULL');
    expect(places.waiting).toEqual({ interactive: 0, background: 0, low: 1 });
  });

  test('of sixteen, twelve are claimed by interactive, three by background and one by low', async () => {
    const places = new QuerySlots({ runningMax: 1, waitingMax: 100, waitMsMax: 1000 }, new Sleepers());
    places.take();
    const counts: Record<Priority, number> = { interactive: 0, background: 0, low: 0 };
    for (const priority of priorities) for (let i = 0; i < 40; i++) void places.wait(priority).then(() => counts[priority]++);
    for (let i = 0; i < 32; i++) places.leave();
    await turn();
    expect(counts).toEqual({ interactive: 24, background: 6, low: 2 });
  });

  test('who goes away leaves the line, and its place goes to the next', async () => {
    const places = new QuerySlots({ ...limits, runningMax: 1 }, new Sleepers());
    places.take();
    const gone = new AbortController();
    const left = refusalOf(places.wait('interactive', gone.signal));
    let admitted = false;
    void places.wait('interactive').then(() => (admitted = true));
    gone.abort();
    expect((await left).code).toBe('REL_CANCELLED');
    expect(places.waiting.interactive).toBe(1);
    places.leave();
    await turn();
    expect([admitted, places.running]).toEqual([true, 1]);
  });

  test('who has gone before does not wait', async () => {
    const places = new QuerySlots({ ...limits, runningMax: 1 }, new Sleepers());
    places.take();
    expect((await refusalOf(places.wait('low', AbortSignal.abort()))).code).toBe('REL_CANCELLED');
    expect(places.waiting.low).toBe(0);
  });

  test('who was let in is not put out again by going away or by time', async () => {
    const clock = new Sleepers();
    const places = new QuerySlots({ ...limits, runningMax: 1 }, clock);
    places.take();
    const gone = new AbortController();
    const place = places.wait('interactive', gone.signal);
    places.leave();
    gone.abort();
    clock.wake();
    await place;
    expect(places.running).toBe(1);
  });

  test('waiting has an end', async () => {
    const clock = new Sleepers();
    const places = new QuerySlots({ ...limits, runningMax: 1 }, clock);
    places.take();
    const waiting = refusalOf(places.wait('background'));
    clock.wake();
    expect((await waiting).code).toBe('REL_TIMEOUT');
    expect([places.waiting.background, places.running]).toEqual([0, 1]);
  });

  test('a drain wakes all who wait, and nobody waits after it', async () => {
    const places = new QuerySlots({ ...limits, runningMax: 1 }, new Sleepers());
    places.take();
    const waiting = priorities.map((priority) => refusalOf(places.wait(priority)));
    places.close();
    for (const refusal of await Promise.all(waiting)) expect([refusal.code, refusal.status]).toEqual(['REL_UNAVAILABLE', 503]);
    expect((await refusalOf(places.wait('interactive'))).code).toBe('REL_UNAVAILABLE');
    places.leave();
    expect(places.running).toBe(0);
  });

  test('whatever happens, no more run than may, nobody waits beside a free place, and all of them end', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('ask' as const), priority: fc.constantFrom(...priorities) }),
      fc.record({ do: fc.constantFrom('end' as const, 'go' as const), which: fc.nat(20) }),
    );
    const bounds = { runningMax: fc.integer({ min: 1, max: 4 }), waitingMax: fc.integer({ min: 1, max: 3 }) };
    await fc.assert(
      fc.asyncProperty(fc.record(bounds), fc.array(step, { maxLength: 60 }), async (given, steps) => {
        const places = new QuerySlots({ ...given, waitMsMax: 1000 }, new Sleepers());
        let running = 0;
        const waiting = new Set<AbortController>();
        for (const each of steps) {
          if (each.do === 'ask') {
            if (places.take()) running++;
            else {
              const gone = new AbortController();
              waiting.add(gone);
              void places.wait(each.priority, gone.signal).then(
                () => (waiting.delete(gone), running++),
                () => waiting.delete(gone),
              );
            }
          } else if (each.do === 'end' && running > 0) {
            running--;
            places.leave();
          } else if (each.do === 'go') [...waiting][each.which]?.abort();
          await turn();
          expect(running).toBeLessThanOrEqual(given.runningMax);
          expect(places.running).toBe(running);
          const { interactive, background, low } = places.waiting;
          expect(interactive + background + low).toBe(waiting.size);
          if (waiting.size > 0) expect(running).toBe(given.runningMax);
        }
        for (; running > 0; running--) {
          places.leave();
          await turn();
        }
        expect([places.running, waiting.size]).toEqual([0, 0]);
      }),
      { numRuns: 60 },
    );
  });
});

describe('which line one waits in', () => {
  const token = (attributes: Caller['attributes'] = {}) => caller({ attributes });

  test.each<[Parameters<typeof priorityOf>, Priority]>([
    [['query', false, token()], 'interactive'],
    [['audit', false, token()], 'interactive'],
    [['watch', false, token()], 'interactive'],
    [['watch', true, token()], 'background'],
    [['query', true, token()], 'background'],
    [['export', false, token()], 'background'],
    [['query', false, token({ priority: 'background' })], 'background'],
    [['query', false, token({ priority: 'low' })], 'low'],
    [['export', false, token({ priority: 'low' })], 'low'],
    [['export', false, token({ priority: 'interactive' })], 'background'],
    [['query', false, token({ priority: 'highest' })], 'interactive'],
    [['query', false, token({ priority: 2 })], 'interactive'],
  ])('%#', (given, expected) => {
    expect(priorityOf(...given)).toBe(expected);
  });
});

describe('rows on their way to the disk', () => {
  test('are taken up to the bound, and given back', () => {
    const backlog = new IngestBacklog(100);
    expect([backlog.take(60), backlog.take(40), backlog.take(1)]).toEqual([true, true, false]);
    backlog.leave(40);
    expect([backlog.take(41), backlog.take(40), backlog.bytes]).toEqual([false, true, 100]);
  });

  test('one batch over the bound is taken when nothing else is under way', () => {
    const backlog = new IngestBacklog(100);
    expect(backlog.take(500)).toBe(true);
    expect(backlog.take(1)).toBe(false);
    backlog.leave(500);
    expect(backlog.take(1)).toBe(true);
    expect(backlog.take(500)).toBe(false);
  });

  test('keep the order in which they came: a small one does not pass a large one that waits', async () => {
    const backlog = new IngestBacklog(100);
    backlog.take(50);
    const order: string[] = [];
    void backlog.wait(80).then(() => order.push('large'));
    void backlog.wait(10).then(() => order.push('small'));
    expect(backlog.take(1)).toBe(false);
    await turn();
    expect(order).toEqual([]);
    backlog.leave(50);
    await turn();
    expect([order, backlog.bytes]).toEqual([['large', 'small'], 90]);
    backlog.leave(80);
    backlog.leave(10);
    expect([backlog.bytes, backlog.take(100)]).toEqual([0, true]);
  });

  test('are as large as their cells, whatever arrays they lie in', () => {
    const heap = new Uint8Array(1000);
    const batch: RowBatch = {
      length: 2,
      columns: [
        { name: 'a', type: 'integer', vector: { kind: 'i32', values: new Int32Array(50), nulls: null } },
        { name: 'b', type: 'number', vector: { kind: 'f64', values: new Float64Array(50), nulls: null } },
        { name: 'c', type: 'timestamp', vector: { kind: 'i64', values: new BigInt64Array(50), nulls: null } },
        { name: 'd', type: 'boolean', vector: { kind: 'bool', values: new Uint8Array(50), nulls: null } },
        { name: 'e', type: 'string', vector: { kind: 'text', offsets: Uint32Array.of(10, 15, 110, 900), heap, nulls: null } },
        { name: 'f', type: 'vector', vector: { kind: 'vec', values: new Float32Array(60), dims: 3, nulls: null } },
        { name: 'g', type: 'string', vector: { kind: 'null' } },
      ],
    };
    expect(bytesOfRows(batch)).toBe(2 * 64 + 8 + 16 + 16 + 2 + (8 + 100) + 24);
    expect(bytesOfRows({ length: 0, columns: [] })).toBe(0);
  });
});

describe('the gate', () => {
  const places = { SERVICE_MAX_RUNNING_QUERIES: 2, SERVICE_QUERY_QUEUE_MAX: 1 };

  interface Held {
    readonly end: () => void;
    readonly ended: Promise<unknown>;
    readonly started: boolean;
  }

  /** An invocation that has its snapshot and stays until it is told to end. */
  function hold(world: World, who: Caller, request: Partial<InvocationRequest> = {}): Held {
    let end!: () => void;
    const over = new Promise<void>((resolve) => (end = resolve));
    const asked = { action: 'query', purpose: null, correlationId: 'c', ...request } as const;
    let started = false;
    const ended = world.gate.invoke(who, asked, async (invocation) => {
      started = true;
      invocation.snapshot();
      await over;
    });
    ended.catch(() => undefined);
    return {
      end,
      ended,
      get started() {
        return started;
      },
    };
  }

  /** Nobody waits too long in it. */
  const open = (over: ConstructorParameters<typeof World>[0]): World => {
    const clock = Object.assign(new ManualClock(), { sleep: new Sleepers().sleep });
    return new World(over, { clock });
  };

  const of = (tenant: string): Caller => caller({ tenant, path: tenant });

  test('starts a query in the turn in which it comes while there is room', async () => {
    const world = open(places);
    const held = [hold(world, of('a')), hold(world, of('b'))];
    expect(held.map(({ started }) => started)).toEqual([true, true]);
    for (const { end, ended } of held) {
      end();
      await ended;
    }
  });

  test('beyond that lets queries wait for their turn, then refuses, and records each once', async () => {
    const world = open(places);
    const held = Array.from({ length: 5 }, (_, i) => hold(world, of(`t${i}`), { correlationId: `c${i}` }));
    const refusal = await refusalOf(world.gate.invoke(of('t5'), { action: 'query', purpose: null, correlationId: 'c5' }, read));
    expect([refusal.code, refusal.facts.retryAfterSecs]).toEqual(['REL_QUEUE_FULL', 1]);
    await turn();
    expect(held.map(({ started }) => started)).toEqual([true, true, false, false, false]);
    for (const one of held) {
      one.end();
      await one.ended;
    }
    expect(Object.fromEntries(world.records.map(({ correlationId, code }) => [correlationId, code]))).toEqual({
      c0: null,
      c1: null,
      c2: null,
      c3: null,
      c4: null,
      c5: 'REL_QUEUE_FULL',
    });
    expect(world.records.length).toBe(6);
  });

  test('lets nothing wait that takes no units: a write and a look at one’s own tokens go ahead', async () => {
    const world = open(places);
    const held = [hold(world, of('a')), hold(world, of('b'))];
    await world.invoke(of('c'), 'ingest', (invocation) => invocation.submit(putRows()));
    await world.invoke(of('c'), 'inspect', async (invocation) => invocation.tokens());
    // Nor what was refused before it came here, and only leaves its record.
    const asked = { action: 'query', purpose: null, correlationId: 'r', recordOnly: true } as const;
    const refused = world.gate.invoke(of('c'), asked, () => Promise.reject(new ServiceError('REL_PARSE', 'as written')));
    expect((await refusalOf(refused)).code).toBe('REL_PARSE');
    for (const one of held) one.end();
    await Promise.all(held.map(({ ended }) => ended));
  });

  test('counts what waits among the running queries of its tenant', async () => {
    const world = open({ ...places, SERVICE_QUERY_QUEUE_MAX: 50, SERVICE_MAX_INFLIGHT_QUERIES: 2 });
    const running = [hold(world, of('a')), hold(world, of('b'))];
    const waiting = [hold(world, of('c')), hold(world, of('c'))];
    const refused = hold(world, of('c'));
    expect((await refusalOf(refused.ended)).code).toBe('REL_QUOTA');
    for (const one of [...running, ...waiting]) {
      one.end();
      await one.ended;
    }
    // All slots were given back, those of who waited too.
    const again = [hold(world, of('c')), hold(world, of('c'))];
    for (const one of again) {
      one.end();
      await one.ended;
    }
  });

  test('gives the place and the slot of one who left the line to others', async () => {
    const world = open({ ...places, SERVICE_MAX_INFLIGHT_QUERIES: 1 });
    const running = [hold(world, of('a')), hold(world, of('b'))];
    const gone = new AbortController();
    const left = hold(world, of('c'), { gone: gone.signal, correlationId: 'left' });
    gone.abort();
    expect((await refusalOf(left.ended)).code).toBe('REL_CANCELLED');
    expect([left.started, world.records.map(({ correlationId, code }) => [correlationId, code])]).toEqual([
      false,
      [['left', 'REL_CANCELLED']],
    ]);
    const next = hold(world, of('c'));
    for (const one of [...running, next]) {
      one.end();
      await one.ended;
    }
  });

  test('a drain refuses who waits and waits for who runs', async () => {
    const world = open(places);
    const running = [hold(world, of('a')), hold(world, of('b'))];
    const waiting = hold(world, of('c'));
    let drained = false;
    const draining = world.gate.drain().then(() => (drained = true));
    expect((await refusalOf(waiting.ended)).code).toBe('REL_UNAVAILABLE');
    expect([waiting.started, drained]).toEqual([false, false]);
    for (const one of running) one.end();
    await draining;
    expect(world.records.map(({ code }) => code)).toEqual(['REL_UNAVAILABLE', null, null]);
  });

  test('a tenant’s in-flight quota is that of who asks, whatever organisation the question names', async () => {
    const world = open({ SERVICE_MAX_INFLIGHT_QUERIES: 1 });
    const first = hold(world, caller({ tenant: 'acme', path: 'acme/eu' }));
    expect((await refusalOf(hold(world, caller({ tenant: 'acme', path: 'acme/us' })).ended)).code).toBe('REL_QUOTA');
    first.end();
    await first.ended;
  });

  test('rows beyond the bound are refused, or wait where their sender can', async () => {
    const world = open({ SERVICE_INGEST_QUEUE_MB: 0 });
    let release!: () => void;
    world.log.hold = new Promise((resolve) => (release = resolve));
    const first = world.invoke(of('a'), 'ingest', (invocation) => invocation.submit(putRows()));
    const refusal = await refusalOf(world.invoke(of('b'), 'ingest', (invocation) => invocation.submit(putRows())));
    expect([refusal.code, refusal.status, refusal.facts.retryAfterSecs]).toEqual(['REL_QUEUE_FULL', 429, 1]);
    const waits = world.invoke(of('c'), 'ingest', (invocation) => invocation.submit(putRows(), { waits: true }));
    await turn();
    const decided = () => world.steps.filter((step) => step === 'decide put-rows').length;
    expect(decided()).toBe(1);
    // What brings no rows passes.
    const passes = world.invoke(of('d'), 'delete', (invocation) =>
      invocation.submit({ kind: 'delete-rows', type: 'T', keys: ['k'] }),
    );
    expect(world.steps).toContain('decide delete-rows');
    release();
    await Promise.all([first, waits, passes]);
    expect(decided()).toBe(2);
    await world.invoke(of('b'), 'ingest', (invocation) => invocation.submit(putRows()));
  });

  test('a write that is refused gives its room back', async () => {
    const world = open({ SERVICE_INGEST_QUEUE_MB: 0 });
    const misplaced = caller({ tenant: 'acme', path: 'globex' });
    for (let i = 0; i < 3; i++) {
      const refusal = await refusalOf(world.invoke(misplaced, 'ingest', (invocation) => invocation.submit(putRows())));
      expect(refusal.kind).toBe('forbidden');
    }
    await world.invoke(of('a'), 'ingest', (invocation) => invocation.submit(putRows()));
  });
});

const read = async (invocation: Invocation): Promise<bigint> => invocation.snapshot().instant;
