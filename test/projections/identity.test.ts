/** Judgements whether rows are one thing: by branch, by instant, by path, and gone with the rows that they are about. */
import { describe, expect, test } from 'vitest';
import type { Command } from '../../src/projections/command.ts';
import { SavedState } from './saved-state.ts';
import { drained, registerPatients } from './histories.ts';
import { freshProjections, Store } from './store.ts';

const judge = (a: string, b: string, judgement: 'positive' | 'negative' = 'positive', type = 'Person'): Command => ({
  kind: 'judge-identities',
  a: { type, key: a },
  b: { type, key: b },
  judgement,
  reason: null,
});

const fork = (name: string, shares: 'everything' | 'ontology' = 'everything') =>
  ({ kind: 'fork-branch', name, source: 'main', shares }) as const;

function started(path: string | null = null): Store {
  const store = new Store();
  store.append({ kind: 'genesis', logId: 'log-1', origin: 'test/log', engineVersion: 'test' });
  store.put('Person', { id: 'string' }, [{ id: 'a' }, { id: 'b' }, { id: 'c' }], { path });
  return store;
}

const listed = (store: Store, branch = 'main', position = store.position, instant = store.time): string[] =>
  store.projections
    .snapshot({ position, instant }, branch, null)
    .judgements(instant)
    .map(({ a, b, judgement, owner }) => `${a.key}${judgement === 'positive' ? '=' : '≠'}${b.key}${owner ? `@${owner}` : ''}`);

test('the same judgement again is none, rows that were judged to be two are not made one, and there have to be rows', () => {
  const store = started();
  expect(store.run(judge('a', 'b')).changed).toBe(true);
  expect(store.run(judge('b', 'a')).changed).toBe(false);
  expect(store.run(judge('a', 'b', 'negative')).changed).toBe(true);
  expect(() => store.run(judge('b', 'a'))).toThrow('were judged to be two');
  expect(() => store.run(judge('a', 'none'))).toThrow('no row "none"');
  expect(() => store.run(judge('a', 'a'))).toThrow('one row');
  expect(listed(store)).toEqual(['a=b', 'a≠b']);
});

test('a path judges rows of its own and of the paths below, and hears nothing of judgements above', () => {
  const store = started('acme/eu');
  store.run(judge('a', 'b', 'negative'), 'acme');
  expect(() => store.run(judge('a', 'b'), 'acme')).toThrow('two');
  expect(store.run(judge('a', 'b'), 'acme/eu').changed).toBe(true);
  for (const path of ['acme/us', 'globex', null]) expect(() => store.run(judge('a', 'b'), path)).toThrow('no row');
});

test('a branch starts with its source’s and goes its own way; an instant knows those before it', () => {
  const store = started();
  store.run(judge('a', 'b'));
  const [position, time] = [store.position, store.time];
  store.run(fork('dev'));
  store.run(fork('types', 'ontology'));
  store.run(judge('a', 'b', 'negative'), null, 'dev');
  store.run(judge('b', 'c'));
  expect(['main', 'dev', 'types'].map((branch) => listed(store, branch))).toEqual([['a=b', 'b=c'], ['a=b', 'a≠b'], []]);
  expect([listed(store, 'main', position), listed(store, 'main', store.position, time - 1n)]).toEqual([['a=b'], ['a=b']]);
});

describe('a judgement goes with its rows', () => {
  test.each([
    ['main', [[], []]],
    ['dev', [['a=b'], []]],
  ] as const)('that are removed on %s', (branch, left) => {
    const store = started();
    store.run(judge('a', 'b'));
    store.run(fork('dev'));
    store.run({ kind: 'remove-rows', type: 'Person', keys: ['b'] }, null, branch);
    expect([listed(store), listed(store, 'dev')]).toEqual(left);
  });

  test('that are erased, however short their keys, on every branch and at every instant', () => {
    const store = started('acme');
    store.run(registerPatients);
    store.put(
      'Patient',
      { id: 'string', who: 'string' },
      [
        { id: 'x', who: 'ann' },
        { id: 'y', who: 'bob' },
      ],
      { path: 'acme' },
    );
    store.run(judge('x', 'y', 'positive', 'Patient'), 'acme');
    store.run(judge('a', 'b'), 'acme');
    store.run(fork('dev'), 'acme');
    const { rows, judgements } = store.projections;
    const { versions } = drained(rows.versionsOf('acme', 'ann'));
    const gone = new Set(versions.flatMap(({ positions }) => positions));
    const mentions = judgements.about(gone, 'acme');
    expect([mentions.length, judgements.about(gone, 'globex')]).toEqual([1, []]);
    const intent = { id: 'e1', commitment: '0'.repeat(64), reason: 'ann', keys: [], statement: '{}' } as const;
    store.run({ kind: 'intend-erasure', ...intent, versions, mentions }, 'acme');
    for (const branch of [0, ...[...store.projections.branches.list()].map(({ fork: id }) => id)])
      expect(judgements.judgementsOn(branch).map(({ a }) => a.key)).toEqual(['a']);
  });
});

test('contents that were dropped, and those of another version, say nothing; a saved state says the same', async () => {
  const store = started();
  for (const content of ['{"v":2}', '[]', '{"of":["a","b"],"same":true}', new Uint8Array(0)])
    store.append({ kind: 'judgement', content });
  expect(listed(store)).toEqual([]);
  store.run(judge('a', 'b'));
  const saved = await SavedState.make();
  await saved.save(store.projections.projector);
  const after = freshProjections();
  await saved.restore(after.projector);
  expect(after.digests()['judgements']).toBe(store.projections.digests()['judgements']);
  expect(after.judgements.judgementsOn(0)).toEqual(store.projections.judgements.judgementsOn(0));
});
