import { describe, expect, test } from 'vitest';
import { mainBranch, type PropertyDefinition, type RowsBody } from '../../../../src/log/entries/entry.ts';
import type { RegisterType } from '../../../../src/projections/command.ts';
import { plain, property, registerPatients } from '../../histories.ts';
import type { ErrorCode } from '../../../../src/errors.ts';
import { batchOf, Store, texts } from '../../store.ts';

const refused = (code: ErrorCode): unknown => expect.objectContaining({ code });

const subject = (type: 'string' | 'integer' = 'string'): PropertyDefinition => property(type, { subject: true });

function typed(properties: RegisterType['properties'], more: Partial<RegisterType> = {}): Store {
  const store = new Store();
  store.run({ kind: 'register-type', name: 'T', properties, primaryKey: null, graphTriggers: [], ...more });
  return store;
}

/** Whose the rows of the latest `rows` entries are, one list an entry. */
function whose(store: Store, entries = 1): (readonly (string | null)[] | null)[] {
  const bodies = store.entries.flatMap(({ body }) => (body.kind === 'rows' ? [body] : [])).slice(-entries);
  return bodies.map(({ subjects, ops }) => (subjects ? texts(subjects, ops.length) : null));
}

describe('the property that says whose rows are', () => {
  test('is declared at registration, and the same declaration again changes nothing', () => {
    const store = typed({ who: subject(), age: property('integer') });
    const again = { kind: 'register-type', name: 'T', primaryKey: null, graphTriggers: [] } as const;
    expect(store.run({ ...again, properties: { who: subject(), age: property('integer') } }).changed).toBe(false);
    expect(() => store.run({ ...again, properties: { who: plain, age: property('integer') } })).toThrow(refused('REL_CONFLICT'));
  });

  test('comes by evolution while nothing was ever written, and stays', () => {
    const store = typed({ who: plain });
    expect(store.run({ kind: 'evolve-type', name: 'T', properties: { who: subject() } }).changed).toBe(true);
    const evolve = (properties: Readonly<Record<string, PropertyDefinition>>) => () =>
      store.run({ kind: 'evolve-type', name: 'T', properties });
    expect(evolve({ who: plain })).toThrow(refused('REL_ACL'));
    expect(evolve({ who: plain })).toThrow('can only be taken back by an administrator');
    expect(evolve({ other: subject() })).toThrow(refused('REL_INVALID'));
    expect(evolve({ who: property('json', { subject: true }) })).toThrow(refused('REL_INVALID'));
    const numbered = typed({ who: subject('integer') });
    const asNumber = { who: property('number', { subject: true }) };
    expect(() => numbered.run({ kind: 'evolve-type', name: 'T', properties: asNumber })).toThrow(refused('REL_INVALID'));
    const asJson = { who: property('json') };
    expect(() => numbered.run({ kind: 'evolve-type', name: 'T', properties: asJson })).toThrow('keeps its type');
  });

  test('can not come once there are rows, be they removed for good or inherited', () => {
    const store = typed({ who: plain });
    store.append({ kind: 'genesis', logId: 'l', origin: 'o', engineVersion: 'e' });
    store.put('T', { id: 'string', who: 'string' }, [{ id: 'a', who: 'ann' }]);
    store.run({ kind: 'fork-branch', name: 'dev', source: mainBranch, shares: 'everything' });
    store.run({ kind: 'fork-branch', name: 'types', source: mainBranch, shares: 'ontology' });
    store.run({ kind: 'remove-rows', type: 'T', keys: ['a'] });
    const evolve = (branch: string) => () =>
      store.run({ kind: 'evolve-type', name: 'T', properties: { who: subject() } }, null, branch);
    for (const branch of [mainBranch, 'dev']) expect(evolve(branch)).toThrow(refused('REL_CONFLICT'));
    expect(evolve('dev')).toThrow('not sealed for anybody');
    expect(evolve('types')().changed).toBe(true);
  });

  test('of an open type keeps its type when a fraction arrives', () => {
    const store = typed(null);
    store.run({ kind: 'evolve-type', name: 'T', properties: { who: subject('integer'), n: property('integer') } });
    const outcome = store.put('T', { id: 'string', who: 'number', n: 'number' }, [{ id: 'a', who: 1.5, n: 1.5 }]);
    expect(outcome.rejected).toBe(1);
    expect(store.projections.catalog.on(0, null).type('T')!.properties['who']!.type).toBe('integer');
  });
});

describe('rows of subjects', () => {
  test('are told by their cells; a text column is taken as it is', () => {
    const store = typed({ who: subject() });
    const rows = batchOf({ id: 'string', who: 'string' }, [{ id: 'a', who: 'ann' }, { id: 'b' }, { id: 'c', who: 'bob' }]);
    const provenance = { source: 's', method: 'm', confidence: 1, derivedFrom: null };
    const decided = store.decide({ kind: 'put-rows', type: 'T', rows, atomic: false, createType: false, provenance });
    const body = decided.drafts[0]!.body as RowsBody;
    expect(body.subjects).toBe(rows.columns[1]!.vector);
    store.commit(decided.drafts);
    expect(whose(store)).toEqual([['ann', null, 'bob']]);
  });

  test('of a type without such a property, or with none named, are nobody’s', () => {
    const store = typed({ who: plain });
    store.put('T', { id: 'string', who: 'string' }, [{ id: 'a', who: 'ann' }]);
    expect(whose(store)).toEqual([null]);
    const other = typed({ who: subject(), age: property('integer') });
    other.put('T', { id: 'string', age: 'integer' }, [{ id: 'a', age: 1n }]);
    expect(whose(other)).toEqual([null]);
  });

  test('go by the text of an integer', () => {
    const store = typed({ who: subject('integer') });
    store.put('T', { id: 'string', who: 'integer' }, [{ id: 'a', who: 7n }, { id: 'b', who: -(2n ** 60n) }, { id: 'c' }]);
    expect(whose(store)).toEqual([['7', String(-(2n ** 60n)), null]]);
  });

  test('are those of the version that an end or a remainder continues', () => {
    const store = typed({ who: subject() });
    const columns = { id: 'string', who: 'string', valid_from: 'timestamp', valid_to: 'timestamp' } as const;
    store.put('T', columns, [
      { id: 'a', who: 'ann', valid_from: 0n, valid_to: 30n },
      { id: 'b', who: 'bob' },
    ]);
    // Bob's version cuts Ann's in two: both ends are hers.
    store.put('T', columns, [{ id: 'a', who: 'bob', valid_from: 10n, valid_to: 20n }, { id: 'c' }]);
    expect(whose(store)).toEqual([['bob', 'ann', 'ann', null]]);
    store.run({ kind: 'delete-rows', type: 'T', keys: ['b', 'c', 'a'] });
    expect(whose(store)[0]!.toSorted((a, b) => String(a).localeCompare(String(b)))).toEqual(['ann', 'ann', 'bob', 'bob', null]);
  });

  test('with provenances of their own keep whose they are', () => {
    const store = typed({ who: subject() });
    const columns = { id: 'string', who: 'string', _provenance: 'json' } as const;
    const said = '{"source":"other"}';
    store.put('T', columns, [
      { id: 'a', who: 'ann' },
      { id: 'b', who: 'bob', _provenance: said },
      { id: 'c', who: 'cy' },
    ]);
    expect(whose(store, 3)).toEqual([['ann'], ['bob'], ['cy']]);
  });

  test('leave no key in the entry that removes them; those of nobody’s rows do', () => {
    const store = Store.of('acme');
    store.run(registerPatients);
    const columns = { id: 'string', who: 'string' } as const;
    store.put('Patient', columns, [{ id: 'a', who: 'ann' }, { id: 'b' }, { id: 'c' }], { path: 'acme' });
    store.put('Patient', columns, [{ id: 'c', who: 'ann' }], { path: 'acme' });
    const outcome = store.run({ kind: 'remove-rows', type: 'Patient', keys: ['a', 'b', 'c'] }, 'acme');
    expect(outcome.ids).toEqual(['a', 'b', 'c']);
    expect(store.entries.at(-1)!.body).toMatchObject({ kind: 'removal', keys: ['b'], positions: Float64Array.of(1, 2, 3, 4) });
    expect(store.read('Patient', ['_pk'])).toEqual([]);
    const told = store.snapshot().removals.removedAfter('Patient', 0n);
    expect(told).toMatchObject([{ path: 'acme', keys: ['b'] }]);
  });
});
