/** Commands about policies, tenants and agreements through the gate of a whole store: whose they are, and a purge driven to its end. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Caller } from '../../src/governance/caller.ts';
import type { Action } from '../../src/governance/gate-contract.ts';
import type { Command, Outcome, PurgeCursor } from '../../src/projections/command.ts';
import { Projections } from '../../src/projections/projections.ts';
import { analyst, TestStore } from '../harness.ts';
import { termsOf } from '../projections/histories.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const of = (path: string): Caller => ({ ...analyst, tenant: path.split('/')[0]!, path });

const commands: readonly Command[] = [
  { kind: 'put-policy', id: 'p', text: 'permit(principal, action, resource);' },
  { kind: 'delete-policy', id: 'p' },
  { kind: 'create-tenant', id: 'acme', name: '', tier: 't', quota: {}, search: {}, members: [], tenantsMax: 0 },
  { kind: 'change-tenant', id: 'acme', tier: 'u' },
  { kind: 'suspend-tenant', id: 'acme' },
  { kind: 'reactivate-tenant', id: 'acme' },
  { kind: 'propose-agreement', id: 'g', terms: termsOf('acme', 'globex', { validTo: 2n ** 62n }) },
  { kind: 'change-agreement', id: 'g', terms: termsOf('acme', 'globex', { validTo: 2n ** 62n, types: ['Event'] }) },
  { kind: 'move-agreement', id: 'g', to: 'accepted', side: 'assignee' },
  { kind: 'delete-tenant', id: 'acme', manner: 'purge' },
  { kind: 'purge-tenant', id: 'acme', cursor: null, keysMax: 100 },
];

let store: TestStore;
beforeEach(async () => {
  store = await TestStore.open();
});
afterEach(() => store.close());

const act = (who: Caller, action: Action, command: Command): Promise<Outcome> =>
  store.service.gate.invoke(who, { action, purpose: 'test', correlationId: 'c' }, (invocation) => invocation.submit(command));

const submit = (who: Caller, command: Command): Promise<Outcome> => act(who, 'administer', command);

describe('what only the administrator may command', () => {
  test.each([
    ['nobody’s tenant', analyst],
    ['the tenant’s own', of('acme')],
    ['another tenant’s', of('globex/eu')],
  ])('is refused to a token of %s, and nothing is written', async (_, who) => {
    const before = store.service.store.log.next().position;
    for (const command of commands) await expect(submit(who, command), command.kind).rejects.toMatchObject({ code: 'REL_ACL' });
    expect(store.service.store.log.next().position).toBe(before);
  });

  test('is done for the administrator, one after the other', async () => {
    for (const command of commands) expect(await submit(admin, command)).toMatchObject({ kind: command.kind, changed: true });
  });
});

test('a purge comes to its end through the gate, and a replay of the log comes to the same', async () => {
  await submit(admin, commands[2]!);
  const put = (path: string, keys: number, branch = 'main'): Promise<Outcome> =>
    store.put(
      'T',
      Array.from({ length: keys }, (_, i) => ({ id: `k${i}` })),
      { ...of(path), branch },
    );
  for (const path of ['acme', 'acme/eu', 'globex']) await put(path, 7);
  const none = { ...of('acme'), tenant: null, path: null };
  await act(none, 'fork', { kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
  await put('acme', 9, 'dev');

  await submit(admin, { kind: 'delete-tenant', id: 'acme', manner: 'purge' });
  let cursor: PurgeCursor | null = null;
  let removed = 0;
  do {
    const outcome: Outcome = await submit(admin, { kind: 'purge-tenant', id: 'acme', cursor, keysMax: 5 });
    cursor = outcome.purge ?? null;
    if (cursor !== null) removed += outcome.accepted;
  } while (cursor !== null);
  // What the branch wrote is its own: a removal on main does not reach it.
  expect(removed).toBe(7 + 7 + 9);
  const { projections, log } = store.service.store;
  expect(projections.tenants.purging()).toEqual([]);
  for (const branch of ['main', 'dev']) {
    const rowsOf = (tenant: string): number =>
      projections
        .snapshot(log.basis(), branch, tenant)
        .rows.estimate({ type: 'T', columns: [], time: { system: 'all', valid: 'all' } }).rows;
    expect([rowsOf('acme'), rowsOf('globex')]).toEqual([0, 7]);
  }
  const replayed = new Projections({ newKey: () => 'unused', tokensMax: 9 });
  for await (const entry of log.read(0)) replayed.apply(entry);
  const live = projections.digests();
  for (const [name, digest] of Object.entries(replayed.digests())) expect([name, live[name]]).toEqual([name, digest]);
});
