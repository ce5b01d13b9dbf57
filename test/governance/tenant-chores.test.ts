/** What becomes of tenants and agreements by the clock: agreements are put on record as expired, cut-off purges go on. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { tenantlessCaller } from '../../src/governance/caller.ts';
import { TenantChores } from '../../src/governance/tenancy/tenant-chores.ts';
import { parseInstant } from '../../src/log/values/timestamp.ts';
import type { Command } from '../../src/projections/command.ts';
import { analyst, TestStore } from '../harness.ts';
import { termsOf } from '../projections/histories.ts';

let store: TestStore;
let chores: TenantChores;
beforeEach(async () => {
  store = await TestStore.open('2024-01-01', { SERVICE_PROFILE: 'cluster', SERVICE_PURPOSES: 'test' });
  const { gate, clock, ids } = store.service;
  const { projections } = store.service.store;
  chores = new TenantChores({ gate, tenants: projections.tenants, clock, ids, yieldTurn: () => Promise.resolve() });
});
afterEach(() => store.close());

const act = (command: Command) =>
  store.service.gate.invoke(
    tenantlessCaller('admin', 'admin', 'test'),
    { action: 'administer', purpose: null, correlationId: 'c' },
    (invocation) => invocation.submit(command),
  );

const eventsOf = (id: string) =>
  store.service.store.projections.tenants.agreement(id)!.events.map(({ change, principal }) => [change, principal]);

test('an agreement whose time is over is put on record as expired, once, and no other', async () => {
  const until = (instant: string) => ({ validFrom: 0n, validTo: parseInstant(instant) });
  await act({ kind: 'propose-agreement', id: 'short', terms: termsOf('acme', 'globex', until('2024-02-01')) });
  await act({ kind: 'propose-agreement', id: 'long', terms: termsOf('acme', 'globex', until('2025-02-01')) });
  await act({ kind: 'propose-agreement', id: 'gone', terms: termsOf('acme', 'globex', until('2024-02-01')) });
  await act({ kind: 'move-agreement', id: 'gone', to: 'revoked', side: 'administrator' });
  await chores.round();
  expect(eventsOf('short')).toEqual([['proposed', 'admin']]);

  store.clock.set('2024-02-01');
  await chores.round();
  await chores.round();
  expect(eventsOf('short')).toEqual([
    ['proposed', 'admin'],
    ['expired', 'annals'],
  ]);
  expect(eventsOf('long')).toEqual([['proposed', 'admin']]);
  expect(eventsOf('gone').map(([change]) => change)).toEqual(['proposed', 'revoked']);
});

test('a purge that was cut off is driven to its end', async () => {
  await act({ kind: 'create-tenant', id: 'acme', name: '', tier: 't', quota: {}, search: {}, members: [], tenantsMax: 0 });
  await store.put('T', [{ id: 'a' }, { id: 'b' }, { id: 'c' }], { ...analyst, path: 'acme' });
  await act({ kind: 'delete-tenant', id: 'acme', manner: 'purge' });
  await act({ kind: 'purge-tenant', id: 'acme', cursor: null, keysMax: 1 });
  expect(store.service.store.projections.tenants.purging()).toEqual(['acme']);
  await chores.round();
  expect(store.service.store.projections.tenants.purging()).toEqual([]);
  expect(store.service.store.projections.rows.table('acme', 'T')).toBe(undefined);
});

test('rounds follow each other until the store closes, and a drain ends none of them badly', async () => {
  const stop = new AbortController();
  let rounds = 0;
  const { now, monotonicMs } = store.clock;
  const clock = { now, monotonicMs, sleep: async () => void (++rounds === 3 && stop.abort()) };
  const { gate, ids } = store.service;
  const { projections } = store.service.store;
  await act({
    kind: 'propose-agreement',
    id: 'short',
    terms: termsOf('acme', 'globex', { validFrom: 0n, validTo: parseInstant('2024-02-01') }),
  });
  store.clock.set('2024-03-01');
  void gate.drain();
  const running = new TenantChores({ gate, tenants: projections.tenants, clock, ids, yieldTurn: () => Promise.resolve() });
  await running.run(stop.signal);
  expect(rounds).toBe(3);
  expect(eventsOf('short')).toHaveLength(1);
});
