import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../src/errors.ts';
import type { EvolveType, RegisterType } from '../../src/projections/command.ts';
import { property } from './histories.ts';
import { Store } from './store.ts';

const secret: RegisterType = {
  kind: 'register-type',
  name: 'Secret',
  properties: { name: property('string', { masked: true }), of: property('string', { references: 'Person' }) },
  primaryKey: null,
  graphTriggers: [],
  guard: { protected: true, accessScope: false },
};

function refused(code: ErrorCode): unknown {
  return expect.objectContaining({ code });
}

const evolve = (store: Store, more: Partial<EvolveType>): unknown =>
  store.run({ kind: 'evolve-type', name: 'Secret', properties: {}, ...more });
const definition = (store: Store): unknown => store.projections.catalog.catalogOn(0, null).type('Secret');

function registered(more: Partial<RegisterType> = {}): Store {
  const store = new Store();
  store.run({ ...secret, ...more });
  return store;
}

describe('the guard of a type', () => {
  test('is what it was registered with, and none where it asks for nothing', () => {
    expect(definition(registered())).toMatchObject({ guard: { protected: true, accessScope: false } });
    expect(definition(registered({ guard: { protected: false, accessScope: false } }))).not.toHaveProperty('guard');
    const { guard: _, ...plain } = secret;
    const store = new Store();
    store.run(plain);
    expect(definition(store)).not.toHaveProperty('guard');
    expect(store.run({ ...plain, guard: { protected: false, accessScope: false } })).toMatchObject({ changed: false });
  });

  test('is part of the declaration', () => {
    const store = registered();
    expect(store.run(secret)).toMatchObject({ changed: false });
    for (const guard of [
      { protected: true, accessScope: true },
      { protected: false, accessScope: false },
    ]) {
      expect(() => store.run({ ...secret, guard })).toThrow(refused('REL_CONFLICT'));
    }
  });

  test('is raised by evolving, and taken back by administrators alone', () => {
    const store = registered();
    expect(evolve(store, { guard: { protected: true } })).toMatchObject({ changed: false });
    expect(evolve(store, { guard: {} })).toMatchObject({ changed: false });
    for (const mayTakeBack of [undefined, false]) {
      const more = mayTakeBack === undefined ? {} : { mayTakeBack };
      expect(() => evolve(store, { guard: { protected: false }, ...more })).toThrow(refused('REL_ACL'));
      expect(() => evolve(store, { guard: { protected: false, accessScope: true }, ...more })).toThrow(refused('REL_ACL'));
    }
    expect(evolve(store, { guard: { accessScope: true } })).toMatchObject({ changed: true });
    expect(definition(store)).toMatchObject({ guard: { protected: true, accessScope: true }, ontologyVersion: 2 });
    expect(() => evolve(store, { guard: { accessScope: false } })).toThrow('taken back by an administrator');
    expect(evolve(store, { guard: { protected: false }, mayTakeBack: true })).toMatchObject({ changed: true });
    expect(definition(store)).toMatchObject({ guard: { protected: false, accessScope: true } });
    expect(evolve(store, { guard: { accessScope: false }, mayTakeBack: true })).toMatchObject({ changed: true });
    expect(definition(store)).not.toHaveProperty('guard');
  });

  test('stays when columns are added, by hand, by a migration or by writing', () => {
    const store = registered({ properties: null });
    evolve(store, { properties: { a: property('integer') } });
    store.run({ kind: 'migrate-types', steps: [{ kind: 'evolve-type', name: 'Secret', properties: { b: property('string') } }] });
    store.put('Secret', { id: 'string', c: 'number' }, [{ id: 'x', c: 1 }]);
    expect(Object.keys(store.projections.catalog.catalogOn(0, null).type('Secret')!.properties)).toEqual(['a', 'b', 'c']);
    expect(definition(store)).toMatchObject({ guard: { protected: true, accessScope: false } });
  });
});

describe('what a property references', () => {
  test('is part of the declaration', () => {
    const store = registered();
    const properties = { ...secret.properties, of: property('string') };
    expect(() => store.run({ ...secret, properties })).toThrow(refused('REL_CONFLICT'));
  });

  test('may be said later, is kept when it is not said again, and can’t become another', () => {
    const store = registered();
    evolve(store, { properties: { more: property('string'), of: property('json') } });
    evolve(store, { properties: { more: property('string', { references: 'Event' }) } });
    expect(definition(store)).toMatchObject({
      properties: { of: { type: 'json', references: 'Person' }, more: { references: 'Event' } },
    });
    for (const references of ['Person', 'X']) {
      const change = (): unknown => evolve(store, { properties: { more: property('string', { references }) } });
      expect(change).toThrow(refused('REL_CONFLICT'));
    }
    expect(evolve(store, { properties: { more: property('string') } })).toMatchObject({ changed: false });
  });

  test.each([
    ['nothing', '', 'REL_INVALID'],
    ['a control character', 'a\n', 'REL_INVALID'],
    ['a classified type', 'SigintIntercept', 'REL_HUMINT'],
  ] as const)('is not %s', (_, references, code) => {
    expect(() => registered({ properties: { of: property('string', { references }) } })).toThrow(refused(code));
  });
});

test('a masked property stays masked, unless an administrator takes the mask back', () => {
  const store = registered();
  expect(() => evolve(store, { properties: { name: property('string') } })).toThrow(refused('REL_ACL'));
  expect(evolve(store, { properties: { name: property('json', { masked: true }) } })).toMatchObject({ changed: true });
  expect([...store.projections.catalog.protection(0, null, 'Secret').masked]).toEqual(['name']);
  expect(evolve(store, { properties: { name: property('json') }, mayTakeBack: true })).toMatchObject({ changed: true });
  expect([...store.projections.catalog.protection(0, null, 'Secret').masked]).toEqual([]);
  // What a property references, and its type, are no guards: nobody takes them back.
  const of = property('string');
  expect(evolve(store, { properties: { of }, mayTakeBack: true })).toMatchObject({ changed: false });
  expect(() => evolve(store, { properties: { name: property('string') }, mayTakeBack: true })).toThrow(refused('REL_CONFLICT'));
});

describe('what guards a type on a branch', () => {
  const of = (store: Store, branch: string): unknown => {
    const { branches, catalog } = store.projections;
    const { masked, references, ...guard } = catalog.protection(branches.idOf(branch, null)!, null, 'T');
    return { ...guard, masked: [...masked], references: [...references].map(([name, types]) => [name, [...types]]) };
  };
  const nothing = { protected: false, accessScope: false, masked: [], references: [] };

  function forked(): Store {
    const store = new Store();
    store.append({ kind: 'genesis', logId: 'l', origin: 'o', engineVersion: 'e' });
    store.run({ ...secret, name: 'T', properties: { a: property('string') }, guard: { protected: false, accessScope: false } });
    for (const [name, source] of [
      ['dev', 'main'],
      ['trial', 'dev'],
    ] as const) {
      store.run({ kind: 'fork-branch', name, source, shares: 'everything' });
    }
    return store;
  }
  const raise = (store: Store, branch: string, more: Partial<EvolveType>): unknown =>
    store.run({ kind: 'evolve-type', name: 'T', properties: {}, ...more }, null, branch);

  test('is what its source asks for, raised before the fork or after it', () => {
    const store = forked();
    for (const branch of ['main', 'dev', 'trial']) expect(of(store, branch)).toEqual(nothing);
    raise(store, 'main', { guard: { protected: true } });
    raise(store, 'dev', { properties: { a: property('string', { masked: true, references: 'Person' }) } });
    expect(of(store, 'main')).toEqual({ ...nothing, protected: true });
    for (const branch of ['dev', 'trial']) {
      expect(of(store, branch)).toEqual({ protected: true, accessScope: false, masked: ['a'], references: [['a', ['Person']]] });
    }
  });

  test('is what main asks for where no rows are shared, and of a type that only the branch has', () => {
    const store = forked();
    store.run({ kind: 'fork-branch', name: 'types', source: 'dev', shares: 'ontology' });
    raise(store, 'main', { guard: { accessScope: true } });
    raise(store, 'dev', { guard: { protected: true } });
    expect(of(store, 'types')).toEqual({ ...nothing, accessScope: true });
    store.run({ ...secret, name: 'Own' }, null, 'types');
    const { branches, catalog } = store.projections;
    expect(catalog.protection(branches.idOf('types', null)!, null, 'Own')).toMatchObject({ protected: true });
    expect(catalog.protection(0, null, 'Own')).toMatchObject({ protected: false });
  });

  test('stays what main asks for when the branch between is deleted', () => {
    const store = forked();
    raise(store, 'main', { guard: { protected: true } });
    store.run({ kind: 'delete-branch', name: 'dev' });
    expect(of(store, 'trial')).toEqual({ ...nothing, protected: true });
  });
});
