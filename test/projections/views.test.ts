/** What views and removed keys are to a reader: by branch, by basis, by path. */
import { describe, expect, test } from 'vitest';
import type { Command } from '../../src/projections/command.ts';
import { SubjectNames } from '../../src/projections/subject-names.ts';
import { SavedState } from './saved-state.ts';
import { freshProjections, Store } from './store.ts';

const create = (name: string, sql = 'SELECT id FROM Person', refreshSecs = 60) =>
  ({ kind: 'create-view', name, sql, refreshSecs }) as const;

const fork = (name: string, source = 'main') => ({ kind: 'fork-branch', name, source, shares: 'everything' }) as const;

function started(): Store {
  const store = new Store();
  store.append({ kind: 'genesis', logId: 'log-1', origin: 'test/log', engineVersion: 'test' });
  return store;
}

describe('views', () => {
  const names = (store: Store, branch = 'main', position = store.position): string[] =>
    store.projections
      .snapshot({ position, instant: store.time }, branch, null)
      .views.map(({ name, owner }) => `${name}@${owner ?? ''}`);

  test('a name is taken by a type and by the same path’s view, not by another path’s', () => {
    const store = started();
    store.put('Person', { id: 'string' }, [{ id: 'a' }]);
    expect(() => store.run(create('Person'))).toThrow('is a type');
    // A type of the store's, which every tenant inherits.
    expect(() => store.run(create('Person'), 'acme')).toThrow('is a type');
    expect(store.run(create('v'), 'acme').changed).toBe(true);
    expect(store.run(create('v'), 'acme').changed).toBe(false);
    expect(() => store.run(create('v', 'SELECT 1 FROM Person'), 'acme')).toThrow('another definition');
    expect(store.run(create('v', 'SELECT id FROM Person WHERE id = id'), 'globex').changed).toBe(true);
    expect(names(store)).toEqual(['v@acme', 'v@globex']);
    for (const refreshSecs of [-1, 1.5, 31_536_001])
      expect(() => store.run(create('w', 'SELECT 1', refreshSecs))).toThrow('seconds');
  });

  test('a branch starts with its source’s and goes its own way; a basis knows those before it', () => {
    const store = started();
    store.run(create('before'));
    const position = store.position;
    store.run(fork('dev'));
    store.run(create('here'), null, 'dev');
    store.run(create('there'));
    expect([names(store), names(store, 'dev'), names(store, 'main', position)]).toEqual([
      ['before@', 'there@'],
      ['before@', 'here@'],
      ['before@'],
    ]);
  });
});

describe('a view that is dropped', () => {
  const drop = (name: string) => ({ kind: 'drop-view', name }) as const;
  const views = (store: Store, branch = 'main', position = store.position): string[] =>
    store.snapshot(position, branch).views.map(({ name, sql }) => `${name} ${sql.slice(0, 8)}`);

  test('is gone for its path, and its name is free; another path’s, above or below, is as none', () => {
    const store = started();
    for (const path of ['acme', 'acme/eu']) store.run(create('v'), path);
    const refused = (name: string, path: string | null): string => {
      try {
        store.run(drop(name), path);
      } catch (error) {
        return (error as Error).message.replace(JSON.stringify(name), '…');
      }
      return 'dropped';
    };
    const of = store.entries.length;
    for (const path of ['acme/eu/berlin', 'acme-evil', 'globex', null]) expect(refused('v', path)).toBe(refused('none', path));
    expect(store.entries.length).toBe(of);
    expect(refused('v', 'acme/eu')).toBe('dropped');
    expect(refused('v', 'acme/eu')).toBe(refused('none', 'acme'));
    expect(store.snapshot().views.map(({ owner }) => owner)).toEqual(['acme']);
    expect(store.entries.at(-1)).toMatchObject({
      positions: 1,
      body: { kind: 'view', name: 'v', sql: '', refreshSecs: 0, dropped: true },
    });
    store.run(create('v', 'SELECT COUNT(*) FROM Person'), 'acme/eu');
  });

  test('stands on at earlier instants, on branches that were forked before, and in a saved state', async () => {
    const store = started();
    store.run(create('v', 'SELECT 1'));
    store.run(create('w', 'SELECT 2'));
    store.run(fork('dev'));
    const before = store.position;
    store.run(drop('v'));
    store.run(fork('late'));
    store.run(drop('w'), null, 'dev');
    store.run(create('v', 'SELECT 3'));
    const told = (of: Store): unknown => [
      views(of),
      views(of, 'main', before + 1),
      views(of, 'main', before),
      views(of, 'dev'),
      views(of, 'dev', before),
      views(of, 'late'),
    ];
    expect(told(store)).toEqual([
      ['w SELECT 2', 'v SELECT 3'],
      ['w SELECT 2'],
      ['v SELECT 1', 'w SELECT 2'],
      ['v SELECT 1'],
      ['v SELECT 1', 'w SELECT 2'],
      ['w SELECT 2'],
    ]);
    const saved = await SavedState.make();
    await saved.save(store.projections.projector);
    const restored = new Store(freshProjections());
    await saved.restore(restored.projections.projector);
    restored.goOn(store);
    expect(told(restored)).toEqual(told(store));
    expect(restored.projections.digests()).toEqual(store.projections.digests());
  });

  test('and says a subject is found of its erasure still, and gone from every instant then', () => {
    const store = started();
    store.run(create('v', "SELECT id FROM Person WHERE id = 'ann'"), 'acme');
    const before = store.position;
    store.run(drop('v'), 'acme');
    const found = store.projections.views.mentioning(new SubjectNames(['ann']), (path) => path === 'acme');
    expect(found).toEqual([before - 1]);
    store.run(
      {
        kind: 'intend-erasure',
        id: 'e',
        commitment: '0'.repeat(64),
        reason: 'ann',
        keys: ['k'],
        versions: [],
        mentions: found,
        statement: '',
      },
      'acme',
    );
    expect(views(store, 'main', before)).toEqual([]);
    expect(store.projections.views.mentioning(new SubjectNames(['ann']), () => true)).toEqual([]);
  });

  test('of an earlier tenant is nobody’s, and does not take its name', () => {
    const store = started();
    const register = {
      kind: 'create-tenant',
      id: 'acme',
      name: '',
      tier: 't',
      quota: {},
      search: {},
      members: [],
      tenantsMax: 0,
    };
    store.run(register as Command);
    store.run(create('v'), 'acme');
    store.run({ kind: 'delete-tenant', id: 'acme', manner: 'purge' });
    store.run({ kind: 'purge-tenant', id: 'acme', cursor: null, keysMax: 9 });
    store.run(register as Command);
    expect(() => store.run(drop('v'), 'acme')).toThrow('no view');
    expect(store.run(create('v'), 'acme').changed).toBe(true);
    expect(store.snapshot().views).toMatchObject([{ name: 'v', position: store.position - 1 }]);
  });
});

describe('removed keys', () => {
  test('are told from an instant on, on their branch and what was forked from it', () => {
    const store = started();
    store.put('Person', { id: 'string' }, [{ id: 'a' }, { id: 'b' }], { path: 'acme' });
    store.run(fork('dev'));
    const remove = (key: string, branch: string): bigint => {
      const at = store.time;
      store.run({ kind: 'remove-rows', type: 'Person', keys: [key] }, 'acme', branch);
      return at;
    };
    const first = remove('a', 'main');
    const onBranch = remove('b', 'dev');
    const second = remove('b', 'main');
    const known = (after: bigint, branch = 'main', position = store.position): unknown[] =>
      store.projections
        .snapshot({ position, instant: store.time }, branch, null)
        .removals.removedAfter('Person', after)
        .map(({ instant, path, keys }) => [instant, path, ...keys]);
    expect(known(0n)).toEqual([
      [first, 'acme', 'a'],
      [second, 'acme', 'b'],
    ]);
    expect(known(first)).toEqual([[second, 'acme', 'b']]);
    // What was forked from main is reached by what is removed there, where it inherited any of it.
    expect(known(0n, 'dev')).toEqual([
      [first, 'acme', 'a'],
      [onBranch, 'acme', 'b'],
      [second, 'acme', 'b'],
    ]);
    store.put('Person', { id: 'string' }, [{ id: 'later' }], { path: 'acme' });
    const third = remove('later', 'main');
    expect(known(second)).toEqual([[third, 'acme', 'later']]);
    expect(known(second, 'dev')).toEqual([]);
    expect(known(0n, 'main', store.position - 2).length).toBe(2);
    expect(known(third)).toEqual([]);
  });
});
