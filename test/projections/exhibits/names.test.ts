/** Ids of exhibits are a tenant's: nobody learns from one which another tenant uses. */
import { expect, test } from 'vitest';
import { textHash } from '../../../src/projections/exhibits/link-seal.ts';
import { SavedState } from '../saved-state.ts';
import { contextOf, freshProjections, Store } from '../store.ts';

const link = (store: Store, path: string | null, open: boolean): unknown =>
  store.run({ kind: 'link-exhibit', exhibit: 'e', open, act: 'note', recipe: '{}', resultHash: textHash('1') }, path);
const linksOf = ({ projections }: Store, tenant: string | null): number | undefined =>
  projections.exhibits.exhibit('e', tenant)?.links.length;
const tenants = ['acme', 'globex', null];

test('two tenants and the store have exhibits of one id, each with links of its own', async () => {
  const store = new Store();
  link(store, 'acme/eu', true);
  for (const path of ['globex', null]) expect(() => link(store, path, false)).toThrow('no such exhibit');
  link(store, null, true);
  expect(() => link(store, 'globex', false)).toThrow('no such exhibit');
  link(store, 'globex', true);
  for (const path of ['acme', 'globex/us', null]) expect(() => link(store, path, true)).toThrow('exists');
  link(store, 'acme', false);
  link(store, 'acme/eu', false);
  link(store, 'globex', false);
  expect(tenants.map((tenant) => linksOf(store, tenant))).toEqual([3, 2, 1]);
  expect([...store.projections.exhibits.all()].map(({ id, path }) => `${id} ${String(path)}`)).toEqual([
    'e acme/eu',
    'e null',
    'e globex',
  ]);

  const saved = await SavedState.make();
  await saved.save(store.projections.projector);
  const restored = new Store(freshProjections());
  await saved.restore(restored.projections.projector);
  restored.goOn(store);
  const replayed = new Store();
  replayed.replay(store.entries);
  for (const other of [restored, replayed]) {
    expect(other.projections.digests()).toEqual(store.projections.digests());
    link(other, 'globex', false);
    expect(tenants.map((tenant) => linksOf(other, tenant))).toEqual([3, 3, 1]);
  }
});

test('a later tenant of the same id opens an exhibit as if there had been none', () => {
  const store = new Store();
  const register = (): unknown =>
    store.run({
      kind: 'create-tenant',
      id: 'acme',
      name: '',
      tier: 't',
      quota: {},
      search: {},
      members: [],
      tenantsMax: 0,
    });
  register();
  link(store, 'acme', true);
  link(store, 'acme', false);
  store.run({ kind: 'delete-tenant', id: 'acme', manner: 'purge' });
  store.run({ kind: 'purge-tenant', id: 'acme', cursor: null, keysMax: 9 });
  register();
  expect(() => link(store, 'acme', false)).toThrow('no such exhibit');
  link(store, 'acme', true);
  expect(linksOf(store, 'acme')).toBe(1);
  // What the earlier one noted is there still, for an erasure to find.
  expect([...store.projections.exhibits.all()].map(({ links }) => links.length)).toEqual([2, 1]);
  const replayed = new Store();
  replayed.replay(store.entries);
  expect(replayed.projections.digests()).toEqual(store.projections.digests());
});

test('a link of an earlier release belongs to the exhibit that had the id, whoever put it there', () => {
  const store = new Store();
  link(store, 'acme', true);
  const { body } = store.entries[0]!;
  if (body.kind !== 'exhibit') throw new Error('not a link');
  store.commit([{ context: contextOf('globex'), body: { ...body, link: 1 } }]);
  expect(tenants.map((tenant) => linksOf(store, tenant))).toEqual([2, undefined, undefined]);
});
