/** Branches at the gate: which branch an invocation is on, who may know of one, and who may delete it. */
import { expect, test } from 'vitest';
import type { BranchBody } from '../../src/log/entries/entry.ts';
import type { Caller } from '../../src/governance/caller.ts';
import type { Invocation } from '../../src/governance/gate-contract.ts';
import { caller, putRows, refusalOf, World } from './world.ts';

const read = async (invocation: Invocation): Promise<string> => {
  invocation.snapshot();
  return 'answer';
};

const write = (invocation: Invocation) => invocation.submit(putRows());

/** `tenant`: whose name it is; null: the store's, as in logs of earlier releases, whoever made it. */
function applied(
  world: World,
  change: BranchBody['change'],
  name: string,
  position: number,
  path: string | null,
  tenant: string | null = null,
): void {
  world.state.branches.apply({
    leaf: position,
    position,
    positions: 1,
    time: BigInt(position),
    context: {
      branch: name,
      tenant,
      path,
      principal: 'maker',
      door: 'test',
      purpose: null,
      correlationId: '',
      policyDigest: '',
    },
    body: { kind: 'branch', change, name, source: 'main', shares: 'everything', ...(tenant !== null && { own: true }) },
  });
}

const fork = (world: World, name: string, position: number, owner: string | null = null): void =>
  applied(world, 'forked', name, position, owner);
const drop = (world: World, name: string): void => applied(world, 'deleted', name, 99, null);

test('a branch that nobody forked is not found, by any verb', async () => {
  const world = new World();
  const lost = caller({ branch: 'dev' });
  expect((await refusalOf(world.invoke(lost, 'query', read))).code).toBe('REL_NOT_FOUND');
  expect((await refusalOf(world.invoke(lost, 'ingest', write))).code).toBe('REL_NOT_FOUND');
  expect((await refusalOf(world.invoke(lost, 'audit', async (invocation) => invocation.audit()))).code).toBe('REL_NOT_FOUND');
  expect((await refusalOf(world.invoke(lost, 'fork', async (invocation) => invocation.branches()))).code).toBe('REL_NOT_FOUND');
});

test('a branch that is forked anew under its name is another one to an invocation that has begun', async () => {
  const world = new World();
  fork(world, 'dev', 3);
  const answer = world.invoke(caller({ branch: 'dev' }), 'ingest', async (invocation) => {
    expect(invocation.snapshot().branch).toBe('dev');
    drop(world, 'dev');
    expect(() => invocation.snapshot()).toThrow('no branch');
    fork(world, 'dev', 4);
    return invocation.submit(putRows());
  });
  expect((await refusalOf(answer)).code).toBe('REL_NOT_FOUND');
});

test('a branch has a grant key of its own, which its successor of that name has not', async () => {
  const world = new World();
  const keyOf = (branch: string): Promise<string> =>
    world.invoke(caller({ branch }), 'query', async (invocation) => invocation.snapshot().grantKey);
  fork(world, 'dev', 3);
  const [own, mains] = [await keyOf('dev'), await keyOf('main')];
  drop(world, 'dev');
  fork(world, 'dev', 4);
  expect(new Set([own, mains, await keyOf('dev')]).size).toBe(3);
});

test('a branch is listed without its maker’s organisation, and says whether the caller may delete it', async () => {
  const world = new World();
  fork(world, 'dev', 3, 'acme/eu');
  const seen = (path: string | null): Promise<unknown> =>
    world.invoke(caller({ path }), 'inspect', async (invocation) => invocation.branches());
  const dev = { name: 'dev', tenant: null, source: 'main', fork: 3, leaf: 3, instant: 3n, shares: 'everything' };
  expect(await seen('acme')).toEqual([{ ...dev, own: true }]);
  expect(await seen('acme/eu')).toEqual([{ ...dev, own: true }]);
  for (const path of ['acme/eu/berlin', 'acme/eu-west', 'globex', null])
    expect(await seen(path)).toEqual([{ ...dev, own: false }]);
});

test('a tenant is shown its own branches and the store’s, whoever runs the store all of them', async () => {
  const world = new World();
  fork(world, 'dev', 3);
  for (const [i, tenant] of ['acme', 'globex'].entries()) {
    applied(world, 'forked', 'dev', 4 + i, tenant, tenant);
    applied(world, 'forked', `of ${tenant}`, 6 + i, tenant, tenant);
  }
  const seen = (who: Partial<Caller>): Promise<string[]> =>
    world.invoke(caller(who), 'inspect', async (invocation) =>
      invocation.branches().map(({ name, tenant, fork: at }) => `${name} ${String(tenant)} ${at}`),
    );
  expect(await seen({ path: 'acme/eu' })).toEqual(['dev acme 4', 'of acme acme 6']);
  expect(await seen({ path: 'initech' })).toEqual(['dev null 3']);
  expect(await seen({ path: null })).toEqual(['dev null 3']);
  const all = ['dev null 3', 'dev acme 4', 'dev globex 5', 'of acme acme 6', 'of globex globex 7'];
  for (const credential of ['admin', 'operator'] as const) expect(await seen({ credential, path: null })).toEqual(all);
  expect(await seen({ credential: 'operator', path: 'globex' })).toEqual(['dev globex 5', 'of globex globex 7']);
  const denied = await refusalOf(
    world.invoke(caller({ path: 'globex/eu' }), 'fork', (invocation) =>
      invocation.submit({ kind: 'delete-branch', name: 'dev' }),
    ),
  );
  expect(denied.code).toBe('REL_ACL');
});

test('a branch is deleted by its maker’s organisation, by what lies above it and by the administrator', async () => {
  const attempt = async (owner: string | null, who: Partial<Caller>): Promise<string> => {
    const world = new World();
    fork(world, 'dev', 3, owner);
    const submitted = world.invoke(caller(who), 'fork', (invocation) =>
      invocation.submit({ kind: 'delete-branch', name: 'dev' }),
    );
    return submitted.then(
      () => 'deleted',
      (error: unknown) => (error as { code: string }).code,
    );
  };
  for (const [owner, path, expected] of [
    ['acme/eu', 'acme/eu', 'deleted'],
    ['acme/eu', 'acme', 'deleted'],
    ['acme/eu', 'acme/eu/berlin', 'REL_ACL'],
    ['acme/eu', 'acme-evil', 'REL_ACL'],
    ['acme/eu', null, 'REL_ACL'],
    [null, null, 'deleted'],
    [null, 'acme', 'REL_ACL'],
  ] as const) {
    expect([owner, path, await attempt(owner, { path })]).toEqual([owner, path, expected]);
  }
  for (const credential of ['admin', 'operator', 'none'] as const) {
    expect(await attempt('acme/eu', { credential, path: null })).toBe('deleted');
  }
});
