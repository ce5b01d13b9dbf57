/** A purge that is cut off, by a drain or a crash, is driven to its end after the next start, and an agreement ends on record. */
import { expect, test } from 'vitest';
import { tenantlessCaller } from '../../src/governance/caller.ts';
import { TenantChores } from '../../src/governance/tenancy/tenant-chores.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { parseInstant } from '../../src/log/values/timestamp.ts';
import type { Command, Outcome } from '../../src/projections/command.ts';
import { termsOf } from '../projections/histories.ts';
import { analyst, TestClock, TestStore } from '../harness.ts';

/** Sleeps last until the test lets time pass. */
class SteppedClock extends TestClock {
  #sleepers: { readonly until: number; readonly wake: () => void }[] = [];

  override sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      this.#sleepers.push({ until: this.steadyMs + ms, wake: resolve });
      if (signal?.aborted) resolve();
      else signal?.addEventListener('abort', () => resolve(), { once: true });
    });

  pass(ms: number): void {
    this.steadyMs += ms;
    this.wallNs += BigInt(ms) * 1_000_000n;
    const due = this.#sleepers.filter(({ until }) => until <= this.steadyMs);
    this.#sleepers = this.#sleepers.filter(({ until }) => until > this.steadyMs);
    for (const { wake } of due) wake();
  }
}

const settings = { SERVICE_PROFILE: 'cluster', SERVICE_PURPOSES: 'test', SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data' };
const secrets = {
  SERVICE_BEARER_TOKEN: 'b',
  SERVICE_ERASURE_SIGNING_KEY: 'ab'.repeat(32),
  SERVICE_KEK: 'cd'.repeat(32),
};
const admin = tenantlessCaller('root', 'admin', 'test');

const act = (store: TestStore, command: Command): Promise<Outcome> =>
  store.service.gate.invoke(admin, { action: 'administer', purpose: null, correlationId: 'c' }, (invocation) =>
    invocation.submit(command),
  );

const open = (disk: MemoryDisk, clock: TestClock): Promise<TestStore> =>
  TestStore.open('2024-01-01', { ...settings, ...secrets }, { disk, clock });

/** Rows of acme that are left on any branch. */
function left({ service }: TestStore): number {
  const { rows } = service.store.projections.snapshot(service.store.log.basis(), 'main', 'acme');
  const codes = ['acme', 'acme/eu'].map((path) => rows.pathCodes().codeOf(path)).filter((code) => code >= 0);
  return rows.estimate({ type: 'T', columns: [], time: { system: 'all', valid: 'all' }, paths: codes.sort((a, b) => a - b) })
    .rows;
}

const settled = async (done: () => boolean): Promise<void> => {
  for (let turn = 0; turn < 2_000 && !done(); turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(done()).toBe(true);
};

test('a purge stops between two steps of a drain, and the next start ends it, whatever was left', async () => {
  const disk = new MemoryDisk();
  const clock = new SteppedClock('2024-01-01');
  const first = await open(disk, clock);
  await act(first, { kind: 'create-tenant', id: 'acme', name: '', tier: 't', quota: {}, search: {}, members: [], tenantsMax: 0 });
  const rows = Array.from({ length: 2_500 }, (_, i) => ({ id: `k${i}` }));
  await first.put('T', rows, { ...analyst, path: 'acme' });
  await first.put('T', rows.slice(0, 10), { ...analyst, path: 'acme/eu' });
  await first.put('T', rows.slice(0, 10), { ...analyst, path: 'globex' });
  await act(first, { kind: 'delete-tenant', id: 'acme', manner: 'purge' });
  const closing = new AbortController();
  const { gate, ids } = first.service;
  const { projections } = first.service.store;
  const yieldTurn = async (): Promise<void> => closing.abort();
  const chores = new TenantChores({ gate, tenants: projections.tenants, clock, ids, yieldTurn });
  await expect(chores.round(closing.signal)).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
  const after = left(first);
  expect(after).toBeGreaterThan(0);
  expect(after).toBeLessThan(2_510);
  await first.close();

  const second = await open(disk, clock);
  expect([left(second), second.service.store.projections.tenants.purging()]).toEqual([after, ['acme']]);
  second.service.tend();
  await settled(() => second.service.store.projections.tenants.purging().length === 0);
  expect(left(second)).toBe(0);
  expect((await second.rows('SELECT COUNT(*) AS n FROM T', { ...analyst, path: 'globex' }))[0]).toEqual({ n: 10n });
  await second.close();
});

test('an agreement is put on record as expired once its time is over, by the clock, also after a start', async () => {
  const disk = new MemoryDisk();
  const clock = new SteppedClock('2024-01-01');
  const first = await open(disk, clock);
  const terms = (until: string) => termsOf('globex', 'acme', { validFrom: 0n, validTo: parseInstant(until) });
  await act(first, { kind: 'propose-agreement', id: 'soon', terms: terms('2024-01-01T00:10:00Z') });
  await act(first, { kind: 'propose-agreement', id: 'later', terms: terms('2024-01-02') });
  first.service.tend();
  const state = ({ service }: TestStore, id: string) => service.store.projections.tenants.agreement(id)!.record.state;
  await settled(() => true);
  clock.pass(9 * 60_000);
  await new Promise((resolve) => setImmediate(resolve));
  expect(state(first, 'soon')).toBe('proposed');
  clock.pass(60_000);
  await settled(() => state(first, 'soon') === 'expired');
  expect(state(first, 'later')).toBe('proposed');
  await first.close();

  clock.pass(24 * 3_600_000);
  const second = await open(disk, clock);
  expect(state(second, 'later')).toBe('proposed');
  second.service.tend();
  await settled(() => state(second, 'later') === 'expired');
  await second.close();
});
