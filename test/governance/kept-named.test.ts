/** Schedules and holds go by ids: who ends one is asked for the path, the branch and the policies of its row, whatever the door asked. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import { type Caller, tenantlessCaller } from '../../src/governance/caller.ts';
import type { Command, Outcome } from '../../src/projections/command.ts';
import { analyst, TestStore } from '../harness.ts';

const acme: Caller = { ...analyst, principal: 'ann', tenant: 'acme', path: 'acme', roles: ['clerk'] };
const elsewhere: Readonly<Record<string, Caller>> = {
  'another tenant': { ...analyst, tenant: 'globex', path: 'globex' },
  'a tenant whose name begins alike': { ...analyst, tenant: 'acme-evil', path: 'acme-evil' },
  'a path below': { ...acme, path: 'acme/eu' },
  'no path at all': { ...analyst, tenant: null, path: null },
  'the path, on a branch that has the row as well': { ...acme, branch: 'dev' },
};
const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const operator = tenantlessCaller('annals', 'operator', 'internal');

let store: TestStore;
beforeEach(async () => {
  store = await TestStore.open();
  await store.register('Person', { region: 'string' });
  await store.put('Person', [{ _pk: 'a', region: 'EU' }], acme);
  await submit(acme, { kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
  await submit(acme, { kind: 'hold-row', id: 'h', type: 'Person', key: 'a' });
  await submit(acme, { kind: 'schedule-retention', id: 's', type: 'Person', key: 'a', until: store.clock.wallNs });
});
afterEach(() => store.close());

function submit(caller: Caller, command: Command): Promise<Outcome> {
  const request = { action: 'inspect', purpose: 'test', correlationId: 'c' } as const;
  return store.service.gate.invoke(caller, request, (invocation) => invocation.submit(command));
}

const release = (caller: Caller, id: string): Promise<Outcome> => submit(caller, { kind: 'release-retention', id });
const expire = (caller: Caller, id: string): Promise<Outcome> => submit(caller, { kind: 'expire-retention', id });

async function refusalOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => null,
    (failure: unknown) => failure,
  );
  return error instanceof ServiceError ? `${error.code}: ${error.message}` : String(error);
}

const inForce = (): string[] => ['h', 's'].filter((id) => store.service.store.projections.retention.find(id) !== undefined);

describe('releasing', () => {
  test.each(Object.keys(elsewhere))('%s: as an id that was never given', async (who) => {
    const caller = elsewhere[who]!;
    const never = await refusalOf(release(caller, 'never given'));
    expect(never).toMatch(/^REL_NOT_FOUND: /);
    for (const id of ['h', 's']) expect(await refusalOf(release(caller, id))).toBe(never);
    expect(inForce()).toEqual(['h', 's']);
  });

  test('the row’s own path and branch', async () => {
    for (const id of ['h', 's']) expect((await release(acme, id)).changed).toBe(true);
    expect(inForce()).toEqual([]);
  });

  test('policies are asked about the type of the row, and about the row', async () => {
    const install = (id: string, text: string): Promise<Outcome> => submit(admin, { kind: 'put-policy', id, text });
    await install('other', 'permit(principal, action == Action::"share", resource);');
    expect(await refusalOf(release(acme, 'h'))).toMatch(/^REL_ACL: remove is denied/);
    await install('us', 'permit(principal, action == Action::"erase", resource is Person) when { resource.region == "US" };');
    expect(await refusalOf(release(acme, 'h'))).toBe(await refusalOf(release(acme, 'never given')));
    expect(inForce()).toEqual(['h', 's']);
    await install('eu', 'permit(principal, action == Action::"erase", resource is Person) when { resource.region == "EU" };');
    await release(acme, 'h');
    expect(inForce()).toEqual(['s']);
  });
});

describe('removing what is due', () => {
  beforeEach(() => release(acme, 'h'));

  test('is for who runs the store: no caller of a tenant, the row’s own included', async () => {
    for (const caller of [acme, ...Object.values(elsewhere)]) expect(await refusalOf(expire(caller, 's'))).toMatch(/^REL_ACL: /);
    expect(inForce()).toEqual(['s']);
  });

  test('who runs the store under a path does it in that path', async () => {
    expect(await refusalOf(expire({ ...admin, path: 'globex' }, 's'))).toMatch(/^REL_NOT_FOUND: /);
    expect((await expire({ ...admin, path: 'acme' }, 's')).changed).toBe(true);
    expect(inForce()).toEqual([]);
  });

  test('and under none, wherever the row lies', async () => {
    expect((await expire(operator, 's')).changed).toBe(true);
    expect(inForce()).toEqual([]);
    expect(await store.rows('SELECT _pk FROM Person', acme)).toEqual([]);
  });
});
