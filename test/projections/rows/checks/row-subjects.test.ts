import { describe, expect, test } from 'vitest';
import { ownSubject } from '../../../../src/log/keys/joint-subject.ts';
import { mainBranch, type PropertyDefinition, type RowsBody } from '../../../../src/log/entries/entry.ts';
import type { PutRows, RegisterType } from '../../../../src/projections/command.ts';
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
    expect(evolve('dev')).toThrow('stored rows are not sealed for one');
    expect(evolve('types')().changed).toBe(true);
  });

  test('of an open type keeps its type when a fraction arrives', () => {
    const store = typed(null);
    store.run({ kind: 'evolve-type', name: 'T', properties: { who: subject('integer'), n: property('integer') } });
    const outcome = store.put('T', { id: 'string', who: 'number', n: 'number' }, [{ id: 'a', who: 1.5, n: 1.5 }]);
    expect(outcome.rejected).toBe(1);
    expect(store.projections.catalog.catalogOn(0, null).type('T')!.properties['who']!.type).toBe('integer');
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

describe('rows that are made from others', () => {
  const made = (key: string): string => ownSubject('Note', 'acme', key);
  const notes = { id: 'string', text: 'string', derived_from: 'json' } as const;

  function filed(of: 'string' | 'integer' = 'string'): Store {
    const store = Store.of('acme');
    store.append({ kind: 'genesis', logId: 'l', origin: 'o', engineVersion: 'e' });
    const properties = { who: subject(of), name: plain };
    store.run({ kind: 'register-type', name: 'Person', properties, primaryKey: null, graphTriggers: [] });
    const who = of === 'string' ? 'ann' : 7n;
    store.put('Person', { id: 'string', who: of }, [{ id: 'p-ann', who }, { id: 'p-nobody' }], { path: 'acme' });
    store.run({
      kind: 'register-type',
      name: 'Note',
      properties: { text: plain, derived_from: property('json') },
      primaryKey: null,
      graphTriggers: [],
    });
    return store;
  }
  const note = (store: Store, rows: Parameters<Store['put']>[2], options: Parameters<Store['put']>[3] = {}) =>
    store.put('Note', notes, rows, { path: 'acme', ...options });
  const patched = (store: Store, row: Parameters<Store['put']>[2][number], sent: readonly string[], branch = 'main') => {
    const rows = batchOf(Object.fromEntries(['id', ...sent].map((name) => [name, notes[name as 'id']])), [row]);
    const patch = new Map(sent.map((name) => [name, Uint8Array.of(1)]));
    const provenance = { source: 's', method: 'm', confidence: 1, derivedFrom: null };
    return store.run(
      { kind: 'put-rows', type: 'Note', rows, atomic: true, createType: false, provenance, patch },
      'acme',
      branch,
    );
  };

  test('are sealed by themselves, where any of their sources is somebody’s, however many steps lie between', () => {
    const store = filed();
    note(store, [{ id: 'n1', derived_from: '["p-ann","x"]' }, { id: 'n2', derived_from: '["p-nobody"]' }, { id: 'n3' }]);
    expect(whose(store)).toEqual([[made('n1'), null, null]]);
    note(store, [
      { id: 'n4', derived_from: '["n2"]' },
      { id: 'n5', derived_from: '["n1"]' },
    ]);
    expect(whose(store)).toEqual([[null, made('n5')]]);
  });

  test('of one body may name each other, in any order', () => {
    const store = filed();
    note(store, [
      { id: 'n3', derived_from: '["n2"]' },
      { id: 'n2', derived_from: '["n1"]' },
      { id: 'n1', derived_from: '["p-ann"]' },
      { id: 'n4', derived_from: '["n5"]' },
    ]);
    expect(whose(store)).toEqual([[made('n3'), made('n2'), made('n1'), null]]);
  });

  test('stay sealed whatever ends, patches or replaces them, also where the new version names no source', () => {
    const store = filed();
    note(store, [{ id: 'n1', text: 'words', derived_from: '["p-ann"]' }]);
    const latest = (): unknown => [...new Set(whose(store)[0] ?? [null])];
    patched(store, { id: 'n1', text: 'others' }, ['text']);
    expect(latest()).toEqual([made('n1')]);
    patched(store, { id: 'n1', derived_from: null }, ['derived_from']);
    expect(latest()).toEqual([made('n1')]);
    store.run({ kind: 'fork-branch', name: 'dev', source: mainBranch, shares: 'everything' });
    patched(store, { id: 'n1', text: 'elsewhere' }, ['text'], 'dev');
    expect(latest()).toEqual([made('n1')]);
    note(store, [{ id: 'n1', text: 'again' }]);
    expect(latest()).toEqual([made('n1')]);
    note(store, [{ id: 'n2', text: 'of nobody' }]);
    expect(latest()).toEqual([null]);
    store.run({ kind: 'delete-rows', type: 'Note', keys: ['n1', 'n2'] }, 'acme');
    expect(latest()).toEqual([made('n1'), null]);
  });

  test('of steps of one batch rest on what steps before them write', () => {
    const store = filed();
    const provenance = { source: 's', method: 'm', confidence: 1, derivedFrom: null };
    const put = (type: string, rows: PutRows['rows']): PutRows => ({
      kind: 'put-rows',
      type,
      rows,
      atomic: true,
      createType: false,
      provenance,
    });
    const steps = [
      put('Person', batchOf({ id: 'string', who: 'string' }, [{ id: 'p-bob', who: 'bob' }])),
      put('Note', batchOf(notes, [{ id: 'n1', derived_from: '["p-bob"]' }])),
    ];
    store.run({ kind: 'batch', steps }, 'acme');
    expect(whose(store, 2)).toEqual([['bob'], [made('n1')]]);
  });

  test('know whose a row is that says so by a number, and sources that are named by one', () => {
    const store = filed('integer');
    note(store, [{ id: 'n1', derived_from: '["p-ann"]' }]);
    expect(whose(store)).toEqual([[made('n1')]]);
    store.put('Person', { id: 'string', who: 'integer' }, [{ id: '12', who: 8n }], { path: 'acme' });
    store.put(
      'Part',
      { id: 'string', source_id: 'integer' },
      [
        { id: 'a', source_id: 12n },
        { id: 'b', source_id: 13n },
      ],
      {
        path: 'acme',
      },
    );
    expect(whose(store)).toEqual([[ownSubject('Part', 'acme', 'a'), null]]);
  });

  test('have edges that are sealed as they are', () => {
    const store = filed();
    store.run({
      kind: 'register-type',
      name: 'Tie',
      properties: { derived_from: plain, to: plain, at: plain },
      primaryKey: null,
      graphTriggers: [{ linkType: 'Tied', sourceField: 'to', targetField: 'at' }],
    });
    const columns = { id: 'string', derived_from: 'string', to: 'string', at: 'string' } as const;
    store.put(
      'Tie',
      columns,
      [
        { id: 't1', derived_from: 'p-ann', to: 'x', at: 'y' },
        { id: 't2', to: 'x', at: 'z' },
      ],
      {
        path: 'acme',
      },
    );
    const [rows, edges] = whose(store, 2);
    expect(rows).toEqual([ownSubject('Tie', 'acme', 't1'), null]);
    expect(edges).toEqual([expect.stringMatching(/^\["made","Tied","acme",/), null]);
    store.run({ kind: 'delete-rows', type: 'Tie', keys: ['t1'] }, 'acme');
    expect(whose(store, 2)).toEqual([[rows![0]], [edges![0]]]);
  });

  test('say nothing of rows of another tenant', () => {
    const store = filed();
    store.put('Note', notes, [{ id: 'n1', derived_from: '["p-ann"]' }], { path: 'globex' });
    expect(whose(store)).toEqual([null]);
  });

  test('are nobody’s while no row is anybody’s', () => {
    const store = typed({ derived_from: plain });
    store.put('T', { id: 'string', derived_from: 'string' }, [{ id: 'a', derived_from: 'b' }, { id: 'b' }]);
    expect(whose(store)).toEqual([null]);
  });

  test('are all sealed where more is named than is looked for', () => {
    const store = filed();
    const rows = Array.from({ length: 20_000 }, (_, i) => ({ id: `n${i}`, derived_from: `["x${i}"]` }));
    note(store, rows);
    const [of] = whose(store);
    expect([of!.at(0), of!.at(-1)]).toEqual([null, made('n19999')]);
  });
});
