/** What views and removed keys are to a reader: by branch, by basis, by path. */
import { describe, expect, test } from 'vitest';
import { Store } from './store.ts';

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
    expect(store.run(create('v'), 'acme').changed).toBe(true);
    expect(store.run(create('v'), 'acme').changed).toBe(false);
    expect(() => store.run(create('v', 'SELECT 1 FROM Person'), 'acme')).toThrow('another definition');
    expect(store.run(create('v', 'SELECT id FROM Person WHERE id = id'), 'globex').changed).toBe(true);
    expect(names(store)).toEqual(['v@acme', 'v@globex']);
    for (const refreshSecs of [0, 1.5, 31_536_001])
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
