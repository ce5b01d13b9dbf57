/** Names of types belong to tenants: what one of them defines, and the rows of it, are nobody else's. */
import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../../src/errors.ts';
import type { PropertyDefinition, TypeDefinition } from '../../../src/log/entries/entry.ts';
import type { Command, EvolveType, RegisterType } from '../../../src/projections/command.ts';
import { drained, plain, property } from '../histories.ts';
import { SavedState } from '../saved-state.ts';
import { freshProjections, type PlainRow, Store } from '../store.ts';

type Properties = Readonly<Record<string, PropertyDefinition>>;

const refused = (code: ErrorCode): unknown => expect.objectContaining({ code });
const register = (name: string, properties: Properties | null, more: Partial<RegisterType> = {}): RegisterType => ({
  kind: 'register-type',
  name,
  properties,
  primaryKey: null,
  graphTriggers: [],
  ...more,
});
const evolve = (name: string, properties: Properties, more: Partial<EvolveType> = {}): EvolveType => ({
  kind: 'evolve-type',
  name,
  properties,
  ...more,
});
const fork = (name: string, source = 'main', shares: 'everything' | 'ontology' = 'everything'): Command => ({
  kind: 'fork-branch',
  name,
  source,
  shares,
});

function started(): Store {
  const store = new Store();
  store.append({ kind: 'genesis', logId: 'log-1', origin: 'test/log', engineVersion: 'test' });
  return store;
}

/** Name and type of each property, as the tenant means the type; null: it knows no such type. */
function columnsOf(store: Store, tenant: string | null, type = 'Parcel', branch = 'main'): string[] | null {
  const definition = store.types(tenant, branch).type(type);
  return definition ? Object.entries(definition.properties).map(([name, each]) => `${name} ${each.type}`) : null;
}

const read = (store: Store, tenant: string | null, columns: readonly string[], type = 'Parcel'): PlainRow[] =>
  store.read(type, columns, { tenant });

/** Versions of a subject, as `type positions`. */
const found = (store: Store, tenant: string | null, subject: string): string[] =>
  drained(store.projections.rows.versionsOf(tenant, subject)).versions.map(
    ({ type, positions }) => `${type} ${positions.join(' ')}`,
  );

describe('a name that two tenants define', () => {
  function both(): Store {
    const store = started();
    store.run(register('Parcel', { ref: property('string'), weight: property('integer') }, { primaryKey: 'ref' }), 'acme/eu');
    store.run(register('Parcel', { weight: property('json'), fragile: property('boolean') }), 'globex');
    return store;
  }

  test('is a type of each of them, and none of anybody else', () => {
    const store = both();
    expect(columnsOf(store, 'acme')).toEqual(['ref string', 'weight integer']);
    expect(columnsOf(store, 'globex')).toEqual(['weight json', 'fragile boolean']);
    expect([columnsOf(store, null), columnsOf(store, 'initech')]).toEqual([null, null]);
    expect(store.types('acme').types()).not.toContainEqual(store.types('globex').type('Parcel'));
    expect([store.types('acme').isOwn('Parcel'), store.types('initech').isOwn('Parcel')]).toEqual([true, false]);
    expect(() => store.run({ kind: 'delete-rows', type: 'Parcel', keys: ['a'] }, 'initech')).toThrow(refused('REL_UNKNOWN_TYPE'));
    expect(() => store.run(register('Parcel', { other: plain }), 'acme')).toThrow(refused('REL_CONFLICT'));
    expect(store.run(register('Parcel', { weight: property('json'), fragile: property('boolean') }), 'globex/us')).toMatchObject({
      changed: false,
    });
    const bodies = store.entries.flatMap(({ body, context }) => (body.kind === 'type' ? [[context.path, body.own]] : []));
    expect(bodies).toEqual([
      ['acme/eu', true],
      ['globex', true],
    ]);
  });

  test('holds rows of its own under the same keys, for each of them', () => {
    const store = both();
    store.put('Parcel', { ref: 'string', weight: 'integer' }, [{ ref: 'a', weight: 1n }], { path: 'acme' });
    store.put('Parcel', { id: 'string', weight: 'json' }, [{ id: 'a', weight: '[2]' }], { path: 'globex' });
    const refusal = store.put('Parcel', { ref: 'string', fragile: 'boolean' }, [{ ref: 'b', fragile: true }], { path: 'acme' });
    expect(refusal.errors).toMatchObject([{ code: 'REL_UNKNOWN_COLUMN' }]);
    expect(read(store, 'acme', ['_pk', 'weight'])).toEqual([{ _pk: 'a', weight: 1n }]);
    expect(read(store, 'globex', ['_pk', 'weight'])).toEqual([{ _pk: 'a', weight: '[2]' }]);
    expect([read(store, null, ['_pk']), read(store, 'initech', ['_pk'])]).toEqual([[], []]);
    const { rows } = store.projections;
    expect([rows.table('acme', 'Parcel')!.counts.size, rows.table(null, 'Parcel')]).toEqual([1, undefined]);
    store.run({ kind: 'delete-rows', type: 'Parcel', keys: ['a'] }, 'acme');
    store.run({ kind: 'remove-rows', type: 'Parcel', keys: ['a'] }, 'acme');
    expect([read(store, 'acme', ['_pk']), read(store, 'globex', ['_pk'])]).toEqual([[], [{ _pk: 'a' }]]);
    expect(store.snapshot().pathsOf('globex').rows.estimate({ type: 'Parcel', columns: [], time: allTime }).rows).toBe(1);
  });
});

const allTime = { system: 'all', valid: 'all' } as const;

describe('a type that everybody inherits', () => {
  /** Open, of the store's own scope. */
  function inherited(): Store {
    const store = started();
    store.run(register('Parcel', null));
    store.run(evolve('Parcel', { weight: property('integer') }));
    return store;
  }
  const copies: readonly [string, (store: Store, path: string) => unknown][] = [
    ['evolving', (store, path) => store.run(evolve('Parcel', { colour: plain }), path)],
    ['a migration', (store, path) => store.run({ kind: 'migrate-types', steps: [evolve('Parcel', { colour: plain })] }, path)],
    [
      'writing a new column',
      (store, path) => store.put('Parcel', { id: 'string', colour: 'string' }, [{ id: 'a', colour: 'c' }], { path }),
    ],
  ];

  test.each(copies)('is copied by %s: the change is seen by its tenant alone', (_, change) => {
    const store = inherited();
    const before = store.entries.length;
    change(store, 'acme/eu');
    expect(columnsOf(store, 'acme')).toEqual(['weight integer', 'colour string']);
    for (const tenant of [null, 'globex']) expect(columnsOf(store, tenant)).toEqual(['weight integer']);
    expect(['acme', 'globex', null].map((tenant) => store.types(tenant).isOwn('Parcel'))).toEqual([true, false, true]);
    expect(store.entries[before]).toMatchObject({ context: { path: 'acme/eu' }, body: { kind: 'type', own: true } });
    // From then on the definition of the store does not reach it; those that did not copy go on with it.
    store.run(evolve('Parcel', { height: property('number') }));
    expect(columnsOf(store, 'acme')).toEqual(['weight integer', 'colour string']);
    for (const tenant of [null, 'globex']) expect(columnsOf(store, tenant)).toEqual(['weight integer', 'height number']);
  });

  test('is nobody’s copy by rows that fit it', () => {
    const store = inherited();
    for (const path of ['acme', 'globex'])
      store.put('Parcel', { id: 'string', weight: 'integer' }, [{ id: 'a', weight: 1n }], { path });
    expect(['acme', 'globex'].map((tenant) => store.types(tenant).isOwn('Parcel'))).toEqual([false, false]);
    expect(store.entries.slice(-2).map(({ body }) => body.kind)).toEqual(['rows', 'rows']);
    // Types that are built in are inherited alike.
    store.put('KvEntry', { id: 'string', note: 'string' }, [{ id: 'a', note: 'n' }], { path: 'acme' });
    expect([columnsOf(store, 'acme', 'KvEntry'), columnsOf(store, 'globex', 'KvEntry')]).toEqual([
      ['value string', 'value_base64 string', 'note string'],
      ['value string', 'value_base64 string'],
    ]);
  });

  test('is defined anew by a tenant that has no rows of it', () => {
    const store = inherited();
    const own = register('Parcel', { ref: plain }, { primaryKey: 'ref' });
    expect(store.run(own, 'acme')).toMatchObject({ accepted: 1, changed: true });
    expect(store.run(own, 'acme').changed).toBe(false);
    expect([columnsOf(store, 'acme'), columnsOf(store, 'globex')]).toEqual([['ref string'], ['weight integer']]);
    const listed = store.types('acme').types();
    expect(listed.filter(({ name }) => name === 'Parcel')).toEqual([store.types('acme').type('Parcel')]);
    // The same as what is inherited is no definition of one's own.
    expect(store.run(register('Parcel', null), 'globex').changed).toBe(false);
    store.run(fork('empty', 'main', 'ontology'));
    store.put('Parcel', { id: 'string' }, [{ id: 'a' }], { path: 'globex/us' });
    store.run(fork('dev'));
    store.run({ kind: 'remove-rows', type: 'Parcel', keys: ['a'] }, 'globex/us');
    for (const branch of ['main', 'dev']) {
      expect(() => store.run(own, 'globex', branch)).toThrow('has rows already, under the definition that everybody inherits');
    }
    expect(store.run(own, 'globex', 'empty').changed).toBe(true);
    expect(store.run(own, 'initech').changed).toBe(true);
    expect(() => store.run(own)).toThrow('is registered with another definition');
    expect(() => store.run(register('KvEntry', { ref: plain }), 'initech')).toThrow('is built in');
    // A migration decides each step on what those before it made.
    const steps = [evolve('Parcel', { colour: plain }), register('Parcel', { ref: plain })];
    expect(() => store.run({ kind: 'migrate-types', steps }, 'umbrella')).toThrow('is registered with another definition');
    expect(store.types('umbrella').isOwn('Parcel')).toBe(false);
  });

  test('is guarded, masked and refused to each tenant by its own definition', () => {
    const store = inherited();
    const { catalog } = store.projections;
    const asks = (tenant: string | null): unknown => {
      const { protected: isProtected, masked, references } = catalog.protection(0, tenant, 'Parcel');
      return [isProtected, ...masked, ...references.keys()];
    };
    const guarded = { weight: property('integer', { masked: true, references: 'Scale' }) };
    store.run(evolve('Parcel', guarded, { guard: { protected: true } }), 'acme');
    expect(asks('acme')).toEqual([true, 'weight', 'weight']);
    for (const tenant of [null, 'globex']) expect(asks(tenant)).toEqual([false]);
    // What acme may no longer do, globex may.
    const bare = evolve('Parcel', { weight: property('number') });
    expect(() => store.run(bare, 'acme')).toThrow(refused('REL_ACL'));
    expect(store.run(bare, 'globex').changed).toBe(true);
    store.run(evolve('Parcel', {}, { guard: { protected: true } }));
    expect([asks(null), asks('globex'), asks('initech')]).toEqual([[true], [false], [true]]);
  });

  test('may be guarded anew for one tenant without a word to another', () => {
    const store = inherited();
    const epochs = (): number[] => [null, 'acme', 'globex'].map((tenant) => store.projections.catalog.protectionEpoch(tenant));
    const raised = (command: Command, path: string | null): number[] => {
      const before = epochs();
      store.run(command, path);
      return epochs().map((epoch, i) => epoch - before[i]!);
    };
    const guard = { accessScope: true };
    expect(raised(evolve('Parcel', {}, { guard }), 'acme')).toEqual([0, 1, 0]);
    expect(raised(evolve('Parcel', { colour: plain }), 'acme')).toEqual([0, 0, 0]);
    expect(raised(evolve('Parcel', { weight: property('integer', { masked: true }) }), 'globex')).toEqual([0, 0, 1]);
    expect(raised(evolve('Parcel', {}, { guard }), null)).toEqual([1, 1, 1]);
    expect(raised(evolve('Parcel', {}, { guard: { accessScope: false }, mayTakeBack: true }), 'acme')).toEqual([0, 1, 0]);
    // A tenant's own catalog is what its reads are bound to: no protection of then is left over.
    expect(store.projections.catalog.protection(0, 'acme', 'Parcel').accessScope).toBe(false);
    expect(store.projections.catalog.protection(0, 'globex', 'Parcel').accessScope).toBe(false);
    expect(store.projections.catalog.protection(0, 'initech', 'Parcel').accessScope).toBe(true);
  });

  test('widens only where every tenant that inherits it can follow', () => {
    const store = inherited();
    const weigh = (path: string, weight: bigint, branch = 'main'): unknown =>
      store.put('Parcel', { id: 'string', weight: 'integer' }, [{ id: 'a', weight }], { path, branch });
    weigh('acme', 2n ** 53n + 1n);
    weigh('globex', 7n);
    store.run(fork('dev'));
    weigh('initech', 2n ** 60n, 'dev');
    const toNumber = evolve('Parcel', { weight: property('number') });
    for (const branch of ['main', 'dev']) expect(() => store.run(toNumber, null, branch)).toThrow('no exact number');
    store.run(evolve('Parcel', { colour: plain }), 'acme');
    store.run(evolve('Parcel', { colour: plain }), 'acme', 'dev');
    expect(store.run(toNumber).changed).toBe(true);
    expect(() => store.run(toNumber, null, 'dev')).toThrow('no exact number');
    expect(read(store, 'acme', ['weight'])).toEqual([{ weight: 2n ** 53n + 1n }]);
    expect(read(store, 'globex', ['weight'])).toEqual([{ weight: 7 }]);
    expect(store.read('Parcel', ['weight'], { tenant: 'globex' }, undefined, 'dev')).toEqual([{ weight: 7n }]);
    store.put('Parcel', { id: 'string', weight: 'number' }, [{ id: 'b', weight: 0.5 }], { path: 'globex' });
    expect(read(store, 'globex', ['weight'])).toEqual([{ weight: 7 }, { weight: 0.5 }]);
    expect(store.put('Parcel', { id: 'string', weight: 'number' }, [{ id: 'b', weight: 0.5 }], { path: 'acme' }).rejected).toBe(
      1,
    );
  });

  test('comes to say whose rows are only while nobody who inherits it has rows', () => {
    const store = inherited();
    store.run(evolve('Parcel', { whose: plain }));
    store.put('Parcel', { id: 'string', whose: 'string' }, [{ id: 'a', whose: 'ann' }], { path: 'acme' });
    const sealed = evolve('Parcel', { whose: property('string', { subject: true }) });
    expect(() => store.run(sealed)).toThrow('stored rows are not sealed');
    expect(store.run(sealed, 'globex').changed).toBe(true);
    store.run(evolve('Parcel', { colour: plain }), 'acme');
    expect(store.run(sealed).changed).toBe(true);
    store.put('Parcel', { id: 'string', whose: 'string' }, [{ id: 'a', whose: 'ann' }], { path: 'initech' });
    const rows = store.entries.flatMap(({ body }) => (body.kind === 'rows' ? [body.subjects !== undefined] : []));
    expect(rows).toEqual([false, true]);
  });

  test('has its declared id where no row of a tenant has one', () => {
    const store = started();
    store.run(register('Parcel', { id: property('integer'), ref: plain }, { primaryKey: 'ref' }));
    for (const path of ['acme', null]) store.put('Parcel', { ref: 'string' }, [{ ref: 'a' }], { path });
    for (const tenant of ['acme', null]) expect(read(store, tenant, ['_pk', 'id'])).toEqual([{ _pk: 'a', id: null }]);
  });
});

describe('the version of an ontology', () => {
  test('rises with what a tenant sees, and is told the same of every instant', () => {
    const store = started();
    const tenants = [null, 'acme', 'globex'];
    const versions = (): number[] => tenants.map((tenant) => store.types(tenant).ontologyVersion);
    const seen: number[][] = [versions()];
    const at = [store.position];
    for (const [name, path] of [
      ['Parcel', 'acme'],
      ['Crate', 'acme/eu'],
      ['Parcel', 'globex'],
      ['Parcel', null],
      ['Shelf', 'acme'],
    ] as const) {
      store.run(register(name, null), path);
      seen.push(versions());
      at.push(store.position);
    }
    expect(seen).toEqual([
      [0, 0, 0],
      [0, 1, 0],
      [0, 2, 0],
      [0, 2, 1],
      [1, 3, 2],
      [1, 4, 2],
    ]);
    expect(store.types('acme').type('Shelf')!.ontologyVersion).toBe(4);
    expect(store.types('globex').type('Parcel')!.ontologyVersion).toBe(1);
    store.run(fork('dev'));
    store.run(register('Shelf', null), 'globex', 'dev');
    const dev = store.projections.branches.idOf('dev', null)!;
    at.forEach((position, i) => {
      const then = tenants.map((tenant) => store.projections.catalogHistory.catalogAt(0, position, tenant)!);
      expect(then.map(({ ontologyVersion }) => ontologyVersion)).toEqual(seen[i]);
    });
    const onBranch = store.projections.catalogHistory.catalogAt(dev, store.position, 'globex')!;
    expect([onBranch.ontologyVersion, onBranch.isOwn('Parcel'), onBranch.isOwn('Shelf')]).toEqual([3, true, true]);
    expect(store.projections.catalogHistory.catalogAt(dev, store.position, 'acme')!.type('Shelf')).toEqual(
      store.types('acme', 'dev').type('Shelf'),
    );
  });

  test('goes on from where it was for a tenant that takes the id of one that was purged, which left no type', () => {
    const store = started();
    const create: Command = {
      kind: 'create-tenant',
      id: 'acme',
      name: 'A',
      tier: 't',
      quota: {},
      search: {},
      members: [],
      tenantsMax: 0,
    };
    store.run(create);
    store.run(register('Parcel', { weight: property('integer') }), 'acme');
    store.put('Parcel', { id: 'string', weight: 'integer' }, [{ id: 'a', weight: 1n }], { path: 'acme' });
    store.run(fork('dev'));
    store.run({ kind: 'delete-tenant', id: 'acme', manner: 'purge' });
    while (store.run({ kind: 'purge-tenant', id: 'acme', cursor: null, keysMax: 10 }).purge !== undefined);
    store.run(create);
    for (const branch of ['main', 'dev']) {
      expect(columnsOf(store, 'acme', 'Parcel', branch)).toBeNull();
      const before = store.types('acme', branch).ontologyVersion;
      store.put('Parcel', { id: 'string', weight: 'string' }, [{ id: 'a', weight: 'heavy' }], { path: 'acme', branch });
      expect(store.read('Parcel', ['weight'], { tenant: 'acme' }, undefined, branch)).toEqual([{ weight: 'heavy' }]);
      const { ontologyVersion } = store.types('acme', branch);
      expect(ontologyVersion).toBe(before + 1);
      expect(
        store.projections.catalogHistory.catalogAt(store.projections.branches.idOf(branch, 'acme')!, store.position, 'acme')!
          .ontologyVersion,
      ).toBe(ontologyVersion);
    }
    const replayed = new Store();
    replayed.replay(store.entries);
    expect(replayed.projections.digests()).toEqual(store.projections.digests());
  });
});

describe('whose the rows of a type are', () => {
  const subject = property('string', { subject: true });
  const visit = (store: Store, path: string, row: PlainRow): void => {
    const columns = Object.fromEntries(Object.keys(row).map((name) => [name, 'string'] as const));
    store.put('Visit', columns, [row], { path });
  };

  /** The store says it of `who`, acme goes on with a copy of that, globex says it of `patient`, initech of nothing. */
  function visits(): Store {
    const store = started();
    store.run(register('Visit', { who: subject, patient: plain }));
    store.run(register('Visit', { who: plain, patient: subject }), 'globex');
    store.run(register('Visit', { who: plain, note: plain }), 'initech');
    visit(store, 'acme', { id: 'before', who: 'bob', patient: 'ann' });
    store.run(evolve('Visit', { note: plain }), 'acme');
    for (const path of ['acme/eu', 'globex', 'initech', 'umbrella']) visit(store, path, { id: 'a', who: 'bob' });
    for (const path of ['acme', 'globex', 'umbrella']) visit(store, path, { id: 'b', who: 'cy', patient: 'bob' });
    return store;
  }
  const rowAt = (store: Store, path: string, id: string): number => {
    const rows = store.entries.filter(({ body, context }) => body.kind === 'rows' && context.path === path);
    return rows[['a', 'before'].includes(id) ? 0 : rows.length - 1]!.position;
  };

  test('is said by the tenant’s definition, own or inherited, and by no other', async () => {
    const store = visits();
    const saved = await SavedState.make();
    await saved.save(store.projections.projector);
    const restored = new Store(freshProjections());
    await saved.restore(restored.projections.projector);
    for (const each of [store, restored]) {
      expect(found(each, 'acme', 'bob')).toEqual([`Visit ${rowAt(store, 'acme', 'before')} ${rowAt(store, 'acme/eu', 'a')}`]);
      expect(found(each, 'globex', 'bob')).toEqual([`Visit ${rowAt(store, 'globex', 'b')}`]);
      expect(found(each, 'umbrella', 'bob')).toEqual([`Visit ${rowAt(store, 'umbrella', 'a')}`]);
      expect([found(each, 'initech', 'bob'), found(each, null, 'bob')]).toEqual([[], []]);
    }
  });

  test('is still said of rows that are there when an administrator takes it back, here or in what was inherited', () => {
    const store = visits();
    const lowered = evolve('Visit', { who: plain });
    expect(() => store.run(lowered, 'acme')).toThrow(refused('REL_ACL'));
    const before = found(store, 'acme', 'bob');
    store.run({ ...lowered, mayTakeBack: true }, 'acme');
    expect(found(store, 'acme', 'bob')).toEqual(before);
    store.run(evolve('Visit', { note: plain }), 'umbrella');
    store.run({ ...lowered, mayTakeBack: true });
    // Nobody who inherits it has rows: the store says it of another property.
    store.run(evolve('Visit', { patient: subject }));
    expect(found(store, 'acme', 'bob')).toEqual(before);
    expect(found(store, 'umbrella', 'bob')).toEqual([`Visit ${rowAt(store, 'umbrella', 'a')}`]);
    visit(store, 'hooli', { id: 'a', who: 'bob', patient: 'ann' });
    expect([found(store, 'hooli', 'bob'), found(store, 'hooli', 'ann').length]).toEqual([[], 1]);
  });

  test('keeps an erasure within its tenant’s rows', () => {
    const store = visits();
    const { versions } = drained(store.projections.rows.versionsOf('globex', 'bob'));
    const ids = (tenant: string): unknown[] => read(store, tenant, ['_pk'], 'Visit').map((row) => row['_pk']);
    store.run(
      {
        kind: 'intend-erasure',
        id: 'e',
        commitment: '0'.repeat(64),
        reason: 'r',
        keys: [],
        versions,
        mentions: [],
        statement: '',
      },
      'globex',
    );
    expect([ids('globex'), ids('acme'), ids('umbrella')]).toEqual([['a'], ['before', 'a', 'b'], ['a', 'b']]);
    expect(found(store, 'globex', 'bob')).toEqual([]);
  });
});

describe('a branch', () => {
  test('starts with what everybody and each tenant defined, and both go their own way', () => {
    const store = started();
    store.run(register('Parcel', { a: plain }));
    store.run(register('Crate', { a: plain }), 'acme');
    store.run(fork('dev'));
    store.run(evolve('Parcel', { b: plain }));
    store.run(evolve('Parcel', { c: plain }), 'acme', 'dev');
    store.run(evolve('Crate', { d: plain }), 'acme');
    store.run(register('Crate', { e: plain }), 'globex', 'dev');
    store.run(fork('trial', 'dev', 'ontology'));
    store.run(evolve('Crate', { f: plain }), 'globex', 'dev');
    const names = (tenant: string | null, branch: string): string[] =>
      ['Parcel', 'Crate'].map((type) => (columnsOf(store, tenant, type, branch) ?? ['-']).map((column) => column[0]).join(''));
    expect(['main', 'dev', 'trial'].map((branch) => names('acme', branch))).toEqual([
      ['ab', 'ad'],
      ['ac', 'a'],
      ['ac', 'a'],
    ]);
    expect(['main', 'dev', 'trial'].map((branch) => names('globex', branch))).toEqual([
      ['ab', '-'],
      ['a', 'ef'],
      ['a', 'e'],
    ]);
    expect(['main', 'dev', 'trial'].map((branch) => names(null, branch))).toEqual([
      ['ab', '-'],
      ['a', '-'],
      ['a', '-'],
    ]);
  });

  test('guards what its source or main guards, of the same tenant', () => {
    const store = started();
    store.run(register('Parcel', { a: plain }));
    store.run(fork('dev'));
    const idOf = store.projections.branches.idOf('dev', null)!;
    const isGuarded = (branch: number, tenant: string | null): boolean =>
      store.projections.catalog.protection(branch, tenant, 'Parcel').protected;
    store.run(evolve('Parcel', {}, { guard: { protected: true } }), 'acme');
    expect([isGuarded(idOf, 'acme'), isGuarded(idOf, 'globex'), isGuarded(idOf, null)]).toEqual([true, false, false]);
    store.run(evolve('Parcel', {}, { guard: { protected: true } }), 'globex', 'dev');
    expect([isGuarded(idOf, 'globex'), isGuarded(0, 'globex')]).toEqual([true, false]);
  });
});

test('a definition of a log of before belongs to everybody, whoever made it', () => {
  const store = started();
  const definition: TypeDefinition = {
    name: 'Parcel',
    properties: { weight: property('integer') },
    open: true,
    primaryKey: null,
    graphTriggers: [],
    ontologyVersion: 1,
  };
  store.append({ kind: 'type', definition }, 'acme/eu');
  store.put('Parcel', { id: 'string', weight: 'integer' }, [{ id: 'a', weight: 1n }], { path: 'acme' });
  store.put('Parcel', { id: 'string', weight: 'integer' }, [{ id: 'a', weight: 2n }], { path: 'globex' });
  expect(['acme', 'globex', null].map((tenant) => columnsOf(store, tenant))).toEqual(Array(3).fill(['weight integer']));
  expect(['acme', 'globex', null].map((tenant) => store.types(tenant).isOwn('Parcel'))).toEqual([false, false, true]);
  const widened = { ...definition, properties: { weight: property('number') }, ontologyVersion: 2 };
  store.append({ kind: 'type', definition: widened }, 'globex');
  expect(read(store, 'acme', ['weight'])).toEqual([{ weight: 1 }]);
  store.run(evolve('Parcel', { weight: property('json') }), 'acme');
  expect(read(store, 'acme', ['weight'])).toEqual([{ weight: '1' }]);
  expect(read(store, 'globex', ['weight'])).toEqual([{ weight: 2 }]);
  expect(store.projections.catalogHistory.catalogAt(0, store.position, 'globex')!.type('Parcel')).toMatchObject(widened);
});

test('a type and a view of one tenant have two names; those of two tenants may have one', () => {
  const store = started();
  const view: Command = { kind: 'create-view', name: 'Parcel', sql: 'SELECT id FROM KvEntry', refreshSecs: 60 };
  store.run(view, 'acme/eu');
  const attempts: readonly (() => unknown)[] = [
    () => store.run(register('Parcel', null), 'acme'),
    () => store.run({ kind: 'migrate-types', steps: [register('Parcel', null)] }, 'acme/us'),
    () => store.put('Parcel', { id: 'string' }, [{ id: 'a' }], { path: 'acme' }),
  ];
  for (const attempt of attempts) {
    expect(attempt).toThrow(refused('REL_CONFLICT'));
    expect(attempt).toThrow('"Parcel" is a view');
  }
  expect(store.run(register('Parcel', null), 'globex').changed).toBe(true);
  expect(() => store.run(view, 'globex/eu')).toThrow('is a type');
  expect(store.run({ ...view, name: 'Crate' }, 'globex').changed).toBe(true);
  expect(store.run(register('Crate', null), 'acme').changed).toBe(true);
});

test('retention and holds are of a tenant’s rows', () => {
  const store = started();
  store.run(register('Parcel', null));
  for (const path of ['acme', 'globex']) store.put('Parcel', { id: 'string' }, [{ id: 'a' }, { id: 'b' }], { path });
  store.run({ kind: 'hold-row', id: 'h', type: 'Parcel', key: 'a' }, 'globex');
  store.run({ kind: 'schedule-retention', id: 's', type: 'Parcel', key: 'a', until: store.time }, 'acme');
  store.run(evolve('Parcel', { colour: plain }), 'acme');
  const kept = (path: string): string[] =>
    (store.projections.retentionRulesOf('main', 'Parcel', path, 'a') ?? []).map(({ id }) => id);
  expect([kept('acme'), kept('globex')]).toEqual([['s'], ['h']]);
  store.run({ kind: 'expire-retention', id: 's' });
  expect(store.entries.at(-1)).toMatchObject({ context: { path: 'acme' }, body: { kind: 'removal', keys: ['a'] } });
  expect([read(store, 'acme', ['_pk']), read(store, 'globex', ['_pk'])]).toEqual([[{ _pk: 'b' }], [{ _pk: 'a' }, { _pk: 'b' }]]);
  expect(store.run({ kind: 'remove-rows', type: 'Parcel', keys: ['a'] }, 'globex').errors).toMatchObject([
    { code: 'REL_CONFLICT' },
  ]);
});

test('a saved state and a replay have the definitions and rows of every tenant', async () => {
  const store = started();
  store.run(register('Parcel', null));
  const put = (path: string | null, more: PlainRow, branch = 'main'): void => {
    const columns = Object.fromEntries(Object.keys(more).map((name) => [name, 'string'] as const));
    store.put('Parcel', { id: 'string', ...columns }, [{ id: 'a', ...more }, { id: 'b' }], { path, branch });
  };
  put('globex', {});
  put('acme', { colour: 'red' });
  store.run(fork('dev'));
  put('acme/eu', { colour: 'blue', size: 's' }, 'dev');
  put('globex', { shade: 'dark' }, 'dev');
  store.run({ kind: 'remove-rows', type: 'Parcel', keys: ['b'] }, 'acme', 'dev');
  store.run({ kind: 'delete-rows', type: 'Parcel', keys: ['a'] }, 'globex', 'dev');
  const saved = await SavedState.make();
  await saved.save(store.projections.projector);
  const restored = new Store(freshProjections());
  await saved.restore(restored.projections.projector);
  restored.goOn(store);
  const replayed = new Store();
  replayed.replay(store.entries);
  const later = (each: Store): void => {
    each.run(evolve('Parcel', { weight: property('integer') }));
    each.run(evolve('Parcel', { shade: property('json') }), 'globex', 'dev');
  };
  for (const each of [store, restored, replayed]) {
    expect(each.projections.digests()).toEqual(store.projections.digests());
  }
  for (const each of [store, restored, replayed]) later(each);
  const told = (each: Store): unknown =>
    ['main', 'dev'].flatMap((branch) =>
      [null, 'acme', 'globex', 'initech'].map((tenant) => {
        const columns = columnsOf(each, tenant, 'Parcel', branch)!;
        const names = ['_pk', 'namespace_path', 'system_to', ...columns.map((column) => column.split(' ')[0]!)];
        return { columns, rows: each.read('Parcel', names, { tenant }, each.position, branch) };
      }),
    );
  for (const each of [restored, replayed]) {
    expect(each.projections.digests()).toEqual(store.projections.digests());
    expect(told(each)).toEqual(told(store));
  }
  expect(['acme', 'globex'].map((tenant) => columnsOf(restored, tenant, 'Parcel', 'dev'))).toEqual([
    ['colour string', 'size string'],
    ['shade json'],
  ]);
});
