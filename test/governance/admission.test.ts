/** How much, how often, how large: buckets, quotas and the storage cap, with time as an argument. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Quota } from '../../src/governance/admission/quota.ts';
import { RateLimiter } from '../../src/governance/admission/rate-limit.ts';
import { TenantStorage } from '../../src/governance/admission/tenant-storage.ts';
import { licenceOf, StorageCap } from '../../src/governance/tenancy/licence.ts';
import { refusalOf } from './world.ts';

describe('the bucket of an address', () => {
  test('holds one second’s worth, then tells when the next request would pass', () => {
    const limiter = new RateLimiter(2);
    expect(limiter.take('a', 0)).toEqual({ allowed: true, limit: 2, remaining: 1, retryAfterSecs: 0, nextInMs: 0 });
    expect(limiter.take('a', 0)).toEqual({ allowed: true, limit: 2, remaining: 0, retryAfterSecs: 0, nextInMs: 500 });
    expect(limiter.take('a', 0)).toEqual({ allowed: false, limit: 2, remaining: 0, retryAfterSecs: 1, nextInMs: 500 });
    expect(limiter.take('a', 499).allowed).toBe(false);
    expect(limiter.take('a', 500).allowed).toBe(true);
  });

  test('is its own: one address empties no other’s', () => {
    const limiter = new RateLimiter(1);
    limiter.take('c', 0);
    limiter.giveBack('c', 0.99);
    expect(limiter.take('c', 0, 0.5)).toMatchObject({ allowed: true });
    expect(limiter.take('c', 0, 0.5)).toMatchObject({ allowed: false });
    limiter.giveBack('c', 7);
    expect([limiter.take('c', 0).allowed, limiter.take('c', 0).allowed]).toEqual([true, false]);
    limiter.giveBack('unknown', 7);
    expect([limiter.take('unknown', 0).allowed, limiter.take('unknown', 0).allowed]).toEqual([true, false]);
    expect([limiter.take('a', 0), limiter.take('a', 0), limiter.take('b', 0)].map((v) => v.allowed)).toEqual([true, false, true]);
  });

  test('never lets more pass in a stretch than its rate allows, and lets the rate pass', () => {
    const step = fc.record({ address: fc.constantFrom('a', 'b', 'c'), afterMs: fc.integer({ min: 0, max: 1500 }) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(step, { maxLength: 200 }), (rate, steps) => {
        const limiter = new RateLimiter(rate);
        const passed = new Map<string, number[]>();
        let nowMs = 0;
        for (const { address, afterMs } of steps) {
          nowMs += afterMs % 7 === 0 ? afterMs : 0;
          if (!limiter.take(address, nowMs).allowed) continue;
          const times = passed.get(address) ?? [];
          times.push(nowMs);
          passed.set(address, times);
        }
        for (const times of passed.values()) {
          times.forEach((start, i) => {
            const end = times.at(-1)!;
            expect(times.length - i).toBeLessThanOrEqual(rate + ((end - start) / 1000) * rate + 1e-6);
          });
        }
      }),
    );
  });

  test('an address that waits its turn is never refused', () => {
    const limiter = new RateLimiter(10);
    for (let i = 0; i < 500; i++) expect(limiter.take('a', i * 100).allowed).toBe(true);
  });

  test('addresses not seen for two seconds are forgotten', () => {
    const limiter = new RateLimiter(5);
    for (let i = 0; i < 1000; i++) limiter.take(`address ${i}`, i);
    limiter.take('last', 3500);
    expect(limiter.size).toBe(1);
  });
});

describe('the quota', () => {
  const limits = { unitsMax: 3, periodMs: 60_000, inFlightMax: 2 };
  const account = (principal: string, tenant = '') => ({ principal, tenant });
  const ada = account('ada');

  test('of a principal is used up, says when it renews, and renews', async () => {
    const quota = new Quota(limits);
    for (let i = 0; i < 3; i++) quota.spend(ada, 1, 1000);
    const refusal = await refusalOf(() => quota.spend(ada, 1, 31_500));
    expect([refusal.code, refusal.status, refusal.facts.retryAfterSecs]).toEqual(['REL_QUOTA', 429, 30]);
    quota.spend(account('bob'), 1, 31_500);
    quota.spend(ada, 1, 61_000);
  });

  test('counts what a query turned out to cost, without refusing it after the fact', async () => {
    const quota = new Quota(limits);
    quota.spend(ada, 1, 0);
    quota.settle(ada, 100, 0);
    quota.settle(account('bob'), 0, 0);
    // And what it turned out to cost less: a key that is looked up is a hundredth.
    for (let i = 0; i < 100; i++) {
      quota.spend(account('eve'), 1, 0);
      quota.settle(account('eve'), -0.99, 0);
    }
    expect((await refusalOf(() => quota.spend(ada, 1, 0))).code).toBe('REL_QUOTA');
    quota.spend(account('bob'), 1, 0);
  });

  test('of running queries is per tenant and is given back', async () => {
    const quota = new Quota(limits);
    quota.enter('acme');
    quota.enter('acme');
    expect((await refusalOf(() => quota.enter('acme'))).code).toBe('REL_QUOTA');
    quota.enter('globex');
    quota.leave('acme');
    quota.enter('acme');
  });

  test('of one name in two tenants is two quotas', () => {
    const quota = new Quota(limits);
    for (const tenant of ['', 'acme', 'globex']) for (let i = 0; i < 3; i++) quota.spend(account('ada', tenant), 1, 0);
  });

  const agreed = { queryUnits: 5, inFlight: 3, requestsPerSecond: null };

  test('that was agreed with a tenant holds instead of the settings, for it alone', async () => {
    const quota = new Quota(limits, (tenant) => (tenant === 'acme' ? agreed : undefined));
    for (let i = 0; i < 5; i++) quota.spend(account('ada', 'acme'), 1, 0);
    const refusal = await refusalOf(() => quota.spend(account('ada', 'acme'), 1, 0));
    expect(refusal.message).toBe('all 5 cost units of this period (query_units of the tenant) are used up');
    for (let i = 0; i < 3; i++) quota.spend(account('ada', 'globex'), 1, 0);
    expect((await refusalOf(() => quota.spend(account('ada', 'globex'), 1, 0))).code).toBe('REL_QUOTA');
    for (let i = 0; i < 3; i++) quota.enter('acme');
    expect((await refusalOf(() => quota.enter('acme'))).message).toBe(
      '3 queries of this tenant are running (in_flight of the tenant)',
    );
    for (let i = 0; i < 2; i++) quota.enter('globex');
    expect((await refusalOf(() => quota.enter('globex'))).code).toBe('REL_QUOTA');
  });

  test('that is lowered holds from the next question on, and null is what the settings say', async () => {
    let queryUnits: number | null = null;
    const quota = new Quota(limits, () => ({ queryUnits, inFlight: null, requestsPerSecond: null }));
    quota.spend(account('ada', 'acme'), 1, 0);
    queryUnits = 1;
    expect((await refusalOf(() => quota.spend(account('ada', 'acme'), 1, 0))).code).toBe('REL_QUOTA');
    queryUnits = 0;
    expect((await refusalOf(() => quota.spend(account('bob', 'acme'), 1, 0))).code).toBe('REL_QUOTA');
    queryUnits = null;
    quota.spend(account('ada', 'acme'), 2, 0);
    expect((await refusalOf(() => quota.spend(account('ada', 'acme'), 1, 0))).message).toContain('all 3 cost units');
  });

  test('of a pace is shared by a tenant’s principals and says when the next may ask', async () => {
    const quota = new Quota({ ...limits, unitsMax: 1000 }, (tenant) =>
      tenant === 'acme' ? { queryUnits: null, inFlight: null, requestsPerSecond: 2 } : undefined,
    );
    quota.spend(account('ada', 'acme'), 1, 0);
    quota.spend(account('bob', 'acme'), 1, 0);
    const refusal = await refusalOf(() => quota.spend(account('cyd', 'acme'), 1, 0));
    expect([refusal.code, refusal.facts.retryAfterSecs]).toEqual(['REL_QUOTA', 1]);
    quota.spend(account('ada', 'globex'), 1, 0);
    quota.spend(account('cyd', 'acme'), 1, 500);
  });

  test('of no pace at all lets nobody ask, and still names a second', async () => {
    const quota = new Quota(limits, () => ({ queryUnits: null, inFlight: null, requestsPerSecond: 0 }));
    expect((await refusalOf(() => quota.spend(account('ada', 'acme'), 1, 0))).facts.retryAfterSecs).toBe(1);
  });
});

describe('the storage cap', () => {
  test('is ten gigabytes on free and none elsewhere', () => {
    expect(licenceOf('free').storageBytesMax).toBe(10_000_000_000);
    expect([licenceOf('server'), licenceOf('cluster')].map((licence) => licence.storageBytesMax)).toEqual([0, 0]);
  });

  test('warns once on each rise over nine tenths and refuses from the cap on', async () => {
    const lines: string[] = [];
    let stored = 0;
    const cap = new StorageCap(
      { tier: 'free', storageBytesMax: 1000 },
      () => stored,
      (line) => lines.push(line),
    );
    const at = (bytes: number): void => {
      stored = bytes;
      cap.admitWrite();
    };
    at(899);
    expect(lines.length).toBe(0);
    at(900);
    at(999);
    expect(lines).toEqual(['storage is at 90 % of its cap of 1000 bytes']);
    at(100);
    at(950);
    expect(lines.length).toBe(2);
    for (const bytes of [1000, 5000]) {
      const refusal = await refusalOf(() => at(bytes));
      expect([refusal.code, refusal.status]).toEqual(['REL_STORAGE_CAP', 402]);
    }
  });

  test('of nothing never refuses', () => {
    new StorageCap(
      { tier: 'server', storageBytesMax: 0 },
      () => 1e15,
      () => undefined,
    ).admitWrite();
  });
});

describe('what one tenant may store', () => {
  const world = (max: number | null, stored: number) => {
    const state = { max, stored, measured: 0, lines: [] as string[] };
    const storage = new TenantStorage({
      bytesMaxOf: (tenant) => (tenant === 'acme' ? state.max : undefined),
      measure: () => {
        state.measured++;
        return state.stored;
      },
      warn: (line) => state.lines.push(line),
    });
    return { state, storage };
  };

  test('is bounded where it was agreed, and for nobody else', async () => {
    const { state, storage } = world(1000, 999);
    storage.admitWrite('acme', 5000, 0);
    const refusal = await refusalOf(() => storage.admitWrite('acme', 1, 0));
    expect([refusal.code, refusal.status]).toEqual(['REL_STORAGE_CAP', 402]);
    storage.admitWrite('globex', 5000, 0);
    state.max = null;
    storage.admitWrite('acme', 5000, 0);
  });

  test('is measured once, counted on, and measured again before anybody is refused', async () => {
    const { state, storage } = world(1000, 0);
    for (let i = 0; i < 10; i++) storage.admitWrite('acme', 100, 0);
    expect(state.measured).toBe(1);
    // What was written is measured as less than it was counted as.
    state.stored = 500;
    storage.admitWrite('acme', 100, 1000);
    expect(state.measured).toBe(2);
  });

  test('what was removed makes room, within a second', async () => {
    const { state, storage } = world(1000, 1000);
    for (const nowMs of [0, 10, 999]) {
      expect((await refusalOf(() => storage.admitWrite('acme', 1, nowMs))).code).toBe('REL_STORAGE_CAP');
    }
    expect(state.measured).toBe(1);
    state.stored = 0;
    storage.admitWrite('acme', 1, 1000);
  });

  test('nine tenths of it are told once on each rise', () => {
    const { state, storage } = world(1000, 0);
    for (const bytes of [899, 1, 50, 10]) storage.admitWrite('acme', bytes, 0);
    expect(state.lines).toEqual(['the tenant acme is at 90 % of the 1000 bytes that it may store']);
  });

  test('a limit of nothing lets nothing in', async () => {
    const { storage } = world(0, 0);
    expect((await refusalOf(() => storage.admitWrite('acme', 1, 0))).code).toBe('REL_STORAGE_CAP');
  });
});
