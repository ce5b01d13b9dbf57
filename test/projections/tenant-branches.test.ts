/** Branches that have their names within a tenant: two tenants and the store may have one of the same name. */
import { beforeEach, describe, expect, test } from 'vitest';
import { BranchTree } from '../../src/log/entries/branches.ts';
import type { BranchBody, CommittedEntry } from '../../src/log/entries/entry.ts';
import { code } from './branch-world.ts';
import { SavedState } from './saved-state.ts';
import { contextOf, freshProjections, Store } from './store.ts';

let store: Store;

beforeEach(() => {
  store = new Store();
  store.append({ kind: 'genesis', logId: 'log-1', origin: 'test/log', engineVersion: 'test' });
  for (const path of ['acme', 'globex', null]) put(path, 'main', 'main');
});

const fork = (path: string | null, name: string, source = 'main'): unknown =>
  store.run({ kind: 'fork-branch', name, source, shares: 'everything' }, path);
const drop = (path: string | null, name: string): unknown => store.run({ kind: 'delete-branch', name }, path);
const put = (path: string | null, branch: string, id: string, type = 'T'): unknown =>
  store.put(type, { id: 'string' }, [{ id }], { path, branch });
const idOf = (path: string | null, name: string): number | undefined =>
  store.projections.branches.idOf(name, path?.split('/')[0] ?? null);
const names = (tenant: string | null): string[] =>
  store.projections.branches.listFor(tenant).map((branch) => `${branch.name}@${branch.tenant ?? ''}`);
const keys = (tenant: string | null, branch: string): unknown[] =>
  store.read('T', ['_pk'], { tenant }, store.position, branch).map((row) => row['_pk']);
const message = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return (error as Error).message;
  }
};

describe('a name of a branch', () => {
  test('is its tenant’s: another tenant and the store may take it, and each means its own', () => {
    fork('acme', 'dev');
    fork('globex', 'dev');
    fork(null, 'dev');
    const ids = ['acme', 'acme/eu', 'globex', 'initech', null].map((path) => idOf(path, 'dev'));
    expect(new Set(ids).size).toBe(3);
    expect(ids[0]).toBe(ids[1]);
    expect(ids[3]).toBe(ids[4]);
    put('acme/eu', 'dev', 'a');
    put('globex', 'dev', 'g');
    put(null, 'dev', 's');
    expect([keys('acme', 'dev'), keys('globex', 'dev'), keys(null, 'dev')]).toEqual([
      ['main', 'a'],
      ['main', 'g'],
      ['main', 's'],
    ]);
    expect([names('acme'), names('globex'), names('initech'), names(null)]).toEqual([
      ['dev@acme'],
      ['dev@globex'],
      ['dev@'],
      ['dev@'],
    ]);
  });

  test('that another tenant has is answered as one that nobody has', () => {
    fork('acme', 'dev');
    const attempts = (name: string): unknown[] =>
      [
        () => put('globex', name, 'x'),
        () => drop('globex', name),
        () => fork('globex', 'child', name),
        () => store.snapshot(store.position, name, 'globex'),
        () => store.projections.snapshotOf(store.time, name, 'globex'),
      ].map((attempt) => [code(attempt), String(message(attempt)).replace(JSON.stringify(name), '…')]);
    expect(attempts('dev')).toEqual(attempts('nobody’s'));
    expect(store.projections.retentionRulesOf('dev', 'T', 'globex', 'main')).toBeUndefined();
  });

  test('that the store has is seen by every tenant, and taken', () => {
    fork(null, 'dev');
    expect(code(() => fork('acme', 'dev'))).toBe('REL_CONFLICT');
    put('acme', 'dev', 'a');
    expect(keys('acme', 'dev')).toEqual(['main', 'a']);
    fork('acme', 'child', 'dev');
    expect(keys('acme', 'child')).toEqual(['main', 'a']);
    expect(code(() => store.snapshot(store.position, 'child'))).toBe('REL_NOT_FOUND');
  });

  test('means the store’s again once the tenant’s own is deleted, and the source that it was forked from', () => {
    fork('acme', 'dev');
    put('acme', 'dev', 'own');
    fork('acme', 'child', 'dev');
    fork(null, 'dev');
    drop('acme', 'dev');
    expect(idOf('acme', 'dev')).toBe(idOf(null, 'dev'));
    expect([keys('acme', 'dev'), keys('acme', 'child')]).toEqual([['main'], ['main', 'own']]);
    drop('acme', 'dev');
    expect(idOf(null, 'dev')).toBeUndefined();
  });

  test('keeps types, views and removals of each apart, then as now', () => {
    for (const path of ['acme', 'globex']) {
      fork(path, 'dev');
      put(path, 'dev', 'x', `Of${path}`);
      store.run({ kind: 'create-view', name: `v${path}`, sql: 'SELECT id FROM T', refreshSecs: 60 }, path, 'dev');
    }
    const instant = store.time - 1n;
    put('acme', 'dev', 'x', 'Later');
    store.run({ kind: 'remove-rows', type: 'T', keys: ['main'] }, 'acme', 'dev');
    for (const [path, other] of [['acme', 'globex'] as const, ['globex', 'acme'] as const]) {
      const now = store.snapshot(store.position, 'dev', path);
      const then = store.projections.snapshotOf(instant, 'dev', path);
      for (const paths of [now, then]) {
        expect(paths.catalog.type(`Of${path}`)).toBeDefined();
        expect(paths.catalog.type(`Of${other}`)).toBeUndefined();
        expect(paths.views.map(({ name }) => name)).toEqual([`v${path}`]);
      }
      expect(now.removals.removedAfter('T', instant)).toHaveLength(path === 'acme' ? 1 : 0);
      expect(then.catalog.type('Later')).toBeUndefined();
    }
  });

  test('is kept in a saved state, and in what is replayed', async () => {
    fork('acme', 'dev');
    fork(null, 'dev');
    fork('acme', 'child', 'dev');
    put('acme', 'dev', 'a');
    const saved = await SavedState.make();
    await saved.save(store.projections.projector);
    const restored = new Store(freshProjections());
    await saved.restore(restored.projections.projector);
    const replayed = new Store();
    replayed.replay(store.entries);
    restored.goOn(store);
    replayed.goOn(store);
    for (const other of [restored, replayed]) {
      expect(other.projections.digests()).toEqual(store.projections.digests());
      expect(other.projections.branches.list()).toEqual(store.projections.branches.list());
      expect(other.read('T', ['_pk'], { tenant: 'acme' }, other.position, 'dev').map((row) => row['_pk'])).toEqual(['main', 'a']);
      expect(other.read('T', ['_pk'], {}, other.position, 'dev').map((row) => row['_pk'])).toEqual(['main']);
    }
  });
});

test('a hold of a tenant on its own branch is released, expires and ends there', () => {
  for (const path of ['acme', 'globex']) fork(path, 'dev');
  fork(null, 'dev');
  const hold = (id: string): unknown => store.run({ kind: 'hold-row', id, type: 'T', key: 'main' }, 'acme', 'dev');
  hold('h1');
  expect(code(() => drop('acme', 'dev'))).toBe('REL_CONFLICT');
  drop('globex', 'dev');
  drop(null, 'dev');
  expect(store.projections.retention.find('h1')).toBeDefined();
  store.run({ kind: 'release-retention', id: 'h1' }, 'acme', 'dev');
  store.run({ kind: 'schedule-retention', id: 's1', type: 'T', key: 'main', until: store.time }, 'acme', 'dev');
  store.run({ kind: 'expire-retention', id: 's1' });
  expect([keys('acme', 'dev'), keys('acme', 'main')]).toEqual([[], ['main']]);
});

describe('in a log of an earlier release', () => {
  const entryOf = (position: number, body: Omit<BranchBody, 'kind'>, path: string | null): CommittedEntry => ({
    leaf: position,
    position,
    positions: 1,
    time: 1n,
    context: contextOf(path, body.name),
    body: { kind: 'branch', ...body },
  });
  const forked = { change: 'forked', name: 'dev', source: 'main', shares: 'everything' } as const;

  test('a branch that a tenant made is the store’s', () => {
    const projections = freshProjections();
    projections.apply({ ...entryOf(0, forked, 'acme') });
    expect(projections.branches.list()).toMatchObject([{ name: 'dev', tenant: null, owner: 'acme' }]);
    expect(projections.branches.idOf('dev', 'globex')).toBe(0);
  });

  test('a saved tree names no tenants', () => {
    const tree = BranchTree.fromSaved({
      branches: [{ id: 5, name: 'dev', source: 0, shares: 'everything', standing: true }],
    });
    expect([tree.get('dev', 'acme')?.id, tree.get('dev', null)?.id]).toEqual([5, 5]);
    const own: CommittedEntry = entryOf(9, { ...forked, name: 'own', source: 'dev', own: true }, 'acme');
    tree.apply(own, own.body as BranchBody);
    const again = BranchTree.fromSaved(structuredClone(tree.savedState()));
    expect(again.get('own', 'acme')).toMatchObject({ id: 9, tenant: 'acme', source: { id: 5 } });
    expect(again.get('own', null)).toBeUndefined();
  });
});
