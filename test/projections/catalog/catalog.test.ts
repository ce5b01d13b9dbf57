import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../../src/errors.ts';
import type { PropertyDefinition } from '../../../src/log/entries/entry.ts';
import { columnTypes, limits } from '../../../src/log/values/value.ts';
import { builtinTypes, classifiedTypes } from '../../../src/projections/catalog/builtin-types.ts';
import { columnTypeOf, readableColumns } from '../../../src/projections/catalog/projection.ts';
import type { RegisterType } from '../../../src/projections/command.ts';
import { property } from '../histories.ts';
import { Store } from '../store.ts';

const person: RegisterType = {
  kind: 'register-type',
  name: 'Person',
  properties: { ref: property('string', { required: true }), age: property('integer') },
  primaryKey: 'ref',
  graphTriggers: [],
};

function refused(code: ErrorCode): unknown {
  return expect.objectContaining({ code });
}

function register(more: Partial<RegisterType>): () => unknown {
  return () => new Store().run({ ...person, ...more });
}

function evolve(store: Store, properties: Readonly<Record<string, PropertyDefinition>>): () => unknown {
  return () => store.run({ kind: 'evolve-type', name: 'Person', properties });
}

describe('registering a type', () => {
  test('makes it readable, in order of declaration, one ontology version later', () => {
    const store = new Store();
    const outcome = store.run(person);
    expect(outcome).toMatchObject({ accepted: 1, changed: true, ids: ['Person'] });
    const { catalog } = store.projections;
    expect(catalog.catalogOn(0, null).ontologyVersion).toBe(1);
    expect(catalog.catalogOn(0, null).type('Person')).toMatchObject({ open: false, primaryKey: 'ref', ontologyVersion: 1 });
    expect(Object.keys(catalog.catalogOn(0, null).type('Person')!.properties)).toEqual(['ref', 'age']);
  });

  test('again with the same definition changes nothing and takes no entry', () => {
    const store = new Store();
    store.run(person);
    expect(store.run(person)).toMatchObject({ changed: false, accepted: 0 });
    expect(store.entries).toHaveLength(1);
  });

  test.each([
    ['another property', { properties: { ref: property('string', { required: true }), size: property('integer') } }],
    ['fewer properties', { properties: { ref: property('string', { required: true }) } }],
    ['another type of a property', { properties: { ref: property('string', { required: true }), age: property('number') } }],
    ['another flag of a property', { properties: { ref: property('string'), age: property('integer') } }],
    ['another primary key', { primaryKey: 'age' }],
    ['no properties', { properties: null, primaryKey: null }],
    ['a graph trigger', { graphTriggers: [{ linkType: 'knows', sourceField: 'ref', targetField: 'age' }] }],
  ] satisfies [string, Partial<RegisterType>][])('again with %s is a conflict', (_, more) => {
    const store = new Store();
    store.run(person);
    expect(() => store.run({ ...person, ...more })).toThrow(refused('REL_CONFLICT'));
  });

  test('an open type again is a no-op even after columns were inferred', () => {
    const store = new Store();
    const open: RegisterType = { ...person, properties: null, primaryKey: null };
    store.run(open);
    store.put('Person', { id: 'string', seen: 'integer' }, [{ id: 'a', seen: 1n }]);
    expect(store.run(open).changed).toBe(false);
  });

  test.each([
    ['an empty name', { name: '' }, 'REL_INVALID'],
    ['a name of 129 characters', { name: 'x'.repeat(129) }, 'REL_INVALID'],
    ['a name with a control character', { name: 'a\u0000b' }, 'REL_INVALID'],
    ['a name with a lone surrogate', { name: '\ud800' }, 'REL_INVALID'],
    ['a classified name', { name: 'SigintIntercept' }, 'REL_HUMINT'],
    ['a built-in name', { name: 'KvEntry' }, 'REL_CONFLICT'],
    ['a system column as property', { properties: { system_from: property('timestamp') }, primaryKey: null }, 'REL_INVALID'],
    ['a property with a leading underscore', { properties: { _own: property('string') }, primaryKey: null }, 'REL_INVALID'],
    [
      'a prototype name as property',
      { properties: Object.fromEntries([['__proto__', property('string')]]), primaryKey: null },
      'REL_INVALID',
    ],
    ['an embedding that is no vector', { properties: { _emb_text: property('string') }, primaryKey: null }, 'REL_INVALID'],
    ['a vector without dims', { properties: { v: property('vector') }, primaryKey: null }, 'REL_INVALID'],
    ['a vector of 4097 dims', { properties: { v: property('vector', { dims: 4097 }) }, primaryKey: null }, 'REL_INVALID'],
    ['dims on a string', { properties: { s: property('string', { dims: 3 }) }, primaryKey: null }, 'REL_INVALID'],
    [
      'a subject of another type than text or integer',
      { properties: { s: property('timestamp', { subject: true }) }, primaryKey: null },
      'REL_INVALID',
    ],
    [
      'two subjects',
      { properties: { s: property('string', { subject: true }), t: property('string', { subject: true }) }, primaryKey: null },
      'REL_INVALID',
    ],
    ['a json id', { properties: { id: property('json') }, primaryKey: null }, 'REL_INVALID'],
    ['a primary key that is not declared', { primaryKey: 'nope' }, 'REL_INVALID'],
    ['a primary key that only a prototype has', { primaryKey: 'constructor' }, 'REL_INVALID'],
    ['a json primary key', { properties: { j: property('json') }, primaryKey: 'j' }, 'REL_INVALID'],
    [
      'a trigger over an unknown field',
      { graphTriggers: [{ linkType: 'l', sourceField: 'ref', targetField: 'nope' }] },
      'REL_UNKNOWN_COLUMN',
    ],
  ] satisfies [string, Partial<RegisterType>, ErrorCode][])('refuses %s', (_, more, code) => {
    expect(register(more)).toThrow(refused(code));
  });

  test('takes vectors of 1 and of 4096 dims, an id of any scalar type, and 1024 properties but not 1025', () => {
    expect(
      register({ properties: { v: property('vector', { dims: 1 }), w: property('vector', { dims: 4096 }) }, primaryKey: null }),
    ).not.toThrow();
    for (const type of columnTypes) {
      if (type !== 'json' && type !== 'vector')
        expect(register({ properties: { id: property(type) }, primaryKey: null })).not.toThrow();
    }
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, property('string')]));
    expect(register({ properties: many(limits.columnsPerType), primaryKey: null })).not.toThrow();
    expect(register({ properties: many(limits.columnsPerType + 1), primaryKey: null })).toThrow(refused('REL_INVALID'));
  });
});

describe('evolving a type', () => {
  function store(): Store {
    const made = new Store();
    made.run(person);
    made.put('Person', { ref: 'string', age: 'integer' }, [{ ref: 'a', age: 7n }]);
    return made;
  }

  test('adds columns after those that were there; earlier rows read NULL in them', () => {
    const made = store();
    evolve(made, { city: property('string') })();
    expect(Object.keys(made.projections.catalog.catalogOn(0, null).type('Person')!.properties)).toEqual(['ref', 'age', 'city']);
    expect(made.read('Person', ['ref', 'city'])).toEqual([{ ref: 'a', city: null }]);
  });

  test('widens integer to number and anything to json, stored cells included', () => {
    const made = store();
    evolve(made, { age: property('number') })();
    expect(made.read('Person', ['age'])).toEqual([{ age: 7 }]);
    made.put('Person', { ref: 'string', age: 'number' }, [{ ref: 'b', age: 7.5 }]);
    expect(made.read('Person', ['age'])).toEqual([{ age: 7 }, { age: 7.5 }]);
    evolve(made, { age: property('json') })();
    expect(made.read('Person', ['age'])).toEqual([{ age: '7' }, { age: '7.5' }]);
  });

  test('strings become JSON strings', () => {
    const made = new Store();
    made.put('Person', { id: 'string', name: 'string' }, [{ id: 'a', name: 'say "hi"' }, { id: 'b' }]);
    evolve(made, { name: property('json') })();
    expect(made.read('Person', ['name'])).toEqual([{ name: '"say \\"hi\\""' }, { name: null }]);
  });

  test.each([
    ['narrowing', { age: property('boolean') }],
    ['making a property required', { age: property('integer', { required: true }) }],
    ['another type of the primary key', { ref: property('json', { required: true }) }],
  ])('refuses %s as a conflict', (_, properties) => {
    expect(evolve(store(), properties)).toThrow(refused('REL_CONFLICT'));
  });

  test('refuses integer to number while an integer above 2^53 is stored, ended versions included', () => {
    const made = store();
    made.put('Person', { ref: 'string', age: 'integer' }, [{ ref: 'a', age: 2n ** 53n + 1n }]);
    made.put('Person', { ref: 'string', age: 'integer' }, [{ ref: 'a', age: 1n }]);
    expect(evolve(made, { age: property('number') })).toThrow(refused('REL_CONFLICT'));
  });

  test('takes integer to number while the greatest stored integer is 2^53', () => {
    const made = store();
    made.put('Person', { ref: 'string', age: 'integer' }, [{ ref: 'a', age: 2n ** 53n }]);
    evolve(made, { age: property('number') })();
    expect(made.read('Person', ['age'])).toEqual([{ age: 7 }, { age: 2 ** 53 }]);
  });

  test('refuses other dims', () => {
    const made = new Store();
    made.run({ ...person, properties: { v: property('vector', { dims: 2 }) }, primaryKey: null });
    expect(evolve(made, { v: property('vector', { dims: 3 }) })).toThrow(refused('REL_CONFLICT'));
  });

  test('with what is there already changes nothing', () => {
    expect(store().run({ kind: 'evolve-type', name: 'Person', properties: { age: property('integer') } }).changed).toBe(false);
  });

  test('of an unknown type is REL_UNKNOWN_TYPE', () => {
    expect(evolve(new Store(), { a: property('string') })).toThrow(refused('REL_UNKNOWN_TYPE'));
  });
});

describe('what there is to read', () => {
  test('built-in types exist and are empty; classified ones are not among them', () => {
    const store = new Store();
    for (const { name } of builtinTypes) {
      expect(store.projections.catalog.catalogOn(0, null).type(name)).toBeDefined();
      expect(store.read(name, ['_pk'])).toEqual([]);
    }
    for (const name of classifiedTypes) expect(store.projections.catalog.catalogOn(0, null).type(name)).toBeUndefined();
  });

  test('types come in codepoint order', () => {
    const store = new Store();
    for (const name of ['\u{1f600}', '\uffee', 'a', 'Z']) store.run({ ...person, name });
    const names = store.projections.catalog
      .catalogOn(0, null)
      .types()
      .map(({ name }) => name);
    expect(names.filter((name) => !builtinTypes.some((builtin) => builtin.name === name))).toEqual([
      'Z',
      'a',
      '\uffee',
      '\u{1f600}',
    ]);
  });

  test('columns are the system ones first, with the declared type of id, then the properties', () => {
    const store = new Store();
    store.run({
      ...person,
      properties: { b: property('number'), id: property('integer'), a: property('json') },
      primaryKey: 'id',
    });
    const columns = readableColumns(store.projections.catalog.catalogOn(0, null).type('Person')!);
    expect(columns.map(({ name }) => name)).toEqual([
      '_pk',
      'id',
      'tenant_id',
      'namespace_path',
      'valid_from',
      'valid_to',
      'system_from',
      'system_to',
      'b',
      'a',
    ]);
    expect(columns[1]).toEqual({ name: 'id', type: 'integer', system: true });
    expect(columnTypeOf(store.projections.catalog.catalogOn(0, null).type('Person')!, 'constructor')).toBeUndefined();
  });
});

describe('a migration', () => {
  const evolution = (name: string, properties: Readonly<Record<string, PropertyDefinition>>) =>
    ({ kind: 'evolve-type', name, properties }) as const;

  test('decides each step on what those before it made, in one append', () => {
    const store = new Store();
    const { drafts, outcome } = store.decide({
      kind: 'migrate-types',
      steps: [person, evolution('Person', { age: property('number') }), evolution('Person', { age: property('number') })],
    });
    expect(drafts.map(({ body }) => body.kind)).toEqual(['type', 'type']);
    expect(outcome).toMatchObject({ accepted: 2, ids: ['Person'], changed: true });
    store.commit(drafts);
    const { catalog } = store.projections;
    expect([
      catalog.catalogOn(0, null).type('Person')!.properties['age']!.type,
      catalog.catalogOn(0, null).ontologyVersion,
    ]).toEqual(['number', 2]);
    expect(store.decide({ kind: 'migrate-types', steps: [] }).outcome.changed).toBe(false);
  });

  test('that is refused anywhere changes nothing', () => {
    const store = new Store();
    const steps = [person, evolution('Person', { age: property('json') }), evolution('Person', { age: property('integer') })];
    expect(() => store.run({ kind: 'migrate-types', steps })).toThrow(refused('REL_CONFLICT'));
    expect(store.projections.catalog.catalogOn(0, null).type('Person')).toBeUndefined();
  });
});

test('an id that nobody declared stays the text that it is', () => {
  const store = new Store();
  store.put('T', { _pk: 'string', id: 'string' }, [{ _pk: 'a', id: 'x' }]);
  const declare = (type: 'integer' | 'string') => (): unknown =>
    store.run({ kind: 'evolve-type', name: 'T', properties: { id: property(type) } });
  expect(declare('integer')).toThrow(refused('REL_CONFLICT'));
  expect(declare('string')).not.toThrow();
  expect(store.read('T', ['_pk', 'id'])).toEqual([{ _pk: 'a', id: 'x' }]);
});
