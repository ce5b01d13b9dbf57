/** What a row must be to be written, what is stored of it, and what the reply says. */
import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../../../src/errors.ts';
import type { PropertyDefinition } from '../../../../src/log/entries/entry.ts';
import { FOREVER } from '../../../../src/log/values/timestamp.ts';
import type { ColumnType } from '../../../../src/log/values/value.ts';
import { property } from '../../histories.ts';
import { batchOf, type Columns, type PlainRow, START, Store } from '../../store.ts';

const refused = (code: ErrorCode): unknown => expect.objectContaining({ code });

function closed(properties: Readonly<Record<string, PropertyDefinition>>, primaryKey: string | null = null): Store {
  const store = new Store();
  store.run({ kind: 'register-type', name: 'T', properties, primaryKey, graphTriggers: [] });
  return store;
}

function errorsOf(store: Store, columns: Columns, rows: readonly PlainRow[]): string[] {
  return store.put('T', columns, rows).errors.map(({ index, code }) => `${index} ${code}`);
}

describe('the key of a row', () => {
  test('is the declared primary key, as text', () => {
    const store = closed({ ref: property('integer') }, 'ref');
    expect(store.put('T', { ref: 'integer' }, [{ ref: 42n }, { ref: -(2n ** 63n) }]).ids).toEqual(['42', '-9223372036854775808']);
    expect(store.read('T', ['_pk', 'id', 'ref'])[0]).toEqual({ _pk: '42', id: '42', ref: 42n });
  });

  test('is required where declared, and a sent _pk must agree with it', () => {
    const store = closed({ ref: property('string') }, 'ref');
    expect(
      errorsOf(store, { ref: 'string', _pk: 'string' }, [
        { ref: 'a' },
        { _pk: 'b' },
        { ref: 'c', _pk: 'd' },
        { ref: 'e', _pk: 'e' },
      ]),
    ).toEqual(['1 REL_REQUIRED', '2 REL_INVALID']);
    expect(store.read('T', ['_pk'])).toEqual([{ _pk: 'a' }, { _pk: 'e' }]);
  });

  test('is else the sent _pk, else id, else one that is made; a sent id stays readable beside a sent _pk', () => {
    const store = new Store();
    const rows = [{ _pk: 'p', id: 'i' }, { id: 'only' }, {}];
    expect(store.put('T', { _pk: 'string', id: 'string' }, rows).ids).toEqual(['p', 'only', 'made-0']);
    expect(store.read('T', ['_pk', 'id'])).toEqual([
      { _pk: 'p', id: 'i' },
      { _pk: 'only', id: 'only' },
      { _pk: 'made-0', id: 'made-0' },
    ]);
  });

  test('of an id that is a number is its text', () => {
    const store = new Store();
    expect(store.put('T', { id: 'integer' }, [{ id: 7n }]).ids).toEqual(['7']);
    expect(store.read('T', ['id'])).toEqual([{ id: '7' }]);
  });

  test.each(['integer', 'string'] as const)('does not stand in for a declared id (%s)', (type) => {
    const store = closed({ id: property(type), ref: property('string') }, 'ref');
    store.put('T', { ref: 'string' }, [{ ref: 'a' }]);
    expect(store.read('T', ['_pk', 'id'])).toEqual([{ _pk: 'a', id: null }]);
    expect(store.blocks({ type: 'T', columns: ['id'], time: { system: 'all', valid: 'all' } })[0]!.columns[0]!.kind).toBe('null');
  });

  test('has 1 to 1024 bytes', () => {
    const rows = [{ id: '' }, { id: 'k'.repeat(1024) }, { id: 'k'.repeat(1025) }, { id: 'é'.repeat(513) }];
    expect(errorsOf(closed({}), { id: 'string' }, rows)).toEqual(['0 REL_INVALID', '2 REL_INVALID', '3 REL_INVALID']);
  });

  test("can't be json or a vector", () => {
    expect(errorsOf(closed({}), { id: 'json' }, [{ id: '{}' }])).toEqual(['0 REL_TYPE_MISMATCH']);
    expect(errorsOf(closed({}), { id: 'vector' }, [{ id: Float32Array.of(1) }])).toEqual(['0 REL_TYPE_MISMATCH']);
  });

  test('is one row for each organisation path', () => {
    const store = new Store();
    store.put('T', { id: 'string', n: 'integer' }, [{ id: 'a', n: 1n }], { path: 'acme' });
    store.put('T', { id: 'string', n: 'integer' }, [{ id: 'a', n: 2n }], { path: 'acme/eu' });
    store.put('T', { id: 'string', n: 'integer' }, [{ id: 'a', n: 3n }]);
    const shown = ['n', 'tenant_id', 'namespace_path', 'system_to'];
    expect(store.read('T', shown, { tenant: 'acme' })).toEqual([
      { n: 1n, tenant_id: 'acme', namespace_path: 'acme', system_to: FOREVER },
      { n: 2n, tenant_id: 'acme', namespace_path: 'acme/eu', system_to: FOREVER },
    ]);
    expect(store.read('T', shown)).toEqual([{ n: 3n, tenant_id: null, namespace_path: null, system_to: FOREVER }]);
  });
});

describe('the contract of a type', () => {
  test('rejects rows one by one, in their order, and writes the others', () => {
    const store = closed({ n: property('integer', { required: true }) });
    const outcome = store.put('T', { id: 'string', n: 'integer', other: 'string' }, [
      { id: 'a', n: 1n },
      { id: 'b' },
      { id: 'c', n: 3n, other: 'x' },
      { id: 'd', n: 4n },
    ]);
    expect(outcome).toMatchObject({ accepted: 2, rejected: 2, ids: ['a', 'd'], idsTruncated: false, changed: true });
    expect(outcome.errors.map(({ index, code }) => [index, code])).toEqual([
      [1, 'REL_REQUIRED'],
      [2, 'REL_UNKNOWN_COLUMN'],
    ]);
    expect(store.read('T', ['id', 'n', 'system_from'])).toEqual([
      { id: 'a', n: 1n, system_from: outcome.systemFrom },
      { id: 'd', n: 4n, system_from: outcome.systemFromLast },
    ]);
  });

  test('a required property that no row of the batch has is missing in each of them', () => {
    const store = closed({ n: property('integer', { required: true }) });
    expect(errorsOf(store, { id: 'string' }, [{ id: 'a' }, { id: 'b' }])).toEqual(['0 REL_REQUIRED', '1 REL_REQUIRED']);
  });

  test('refuses a whole atomic batch at its first bad row', () => {
    const store = closed({ n: property('integer') });
    const rows = [{ id: 'a', n: 1n }, { id: '' }, { id: 'k'.repeat(2000) }];
    expect(() => store.put('T', { id: 'string', n: 'integer' }, rows, { atomic: true })).toThrow(refused('REL_INVALID'));
    expect(() => store.put('T', { id: 'string', n: 'integer' }, rows, { atomic: true })).toThrow(/^row 1:/);
    expect(store.entries).toHaveLength(1);
  });

  test('a column that came with a refused batch is new again when it comes once more', () => {
    const store = new Store();
    store.put('T', { id: 'string', n: 'integer' }, [{ id: 'a', n: 1n }]);
    const late = { id: 'string', n: 'integer', late: 'integer' } as const;
    expect(() => store.put('T', late, [{ id: '', late: 1n }], { atomic: true })).toThrow(refused('REL_INVALID'));
    expect(store.put('T', late, [{ id: 'b', late: 2n }]).accepted).toBe(1);
    expect(store.entries.map(({ body }) => body.kind)).toEqual(['type', 'rows', 'type', 'rows']);
    expect(Object.keys(store.projections.catalog.catalogOn(0, null).type('T')!.properties)).toEqual(['n', 'late']);
  });

  test('a row by itself ends what is open of its key, and is refused bounds that hold nothing', () => {
    const store = new Store();
    const bounds = { id: 'string', n: 'integer', valid_from: 'timestamp', valid_to: 'timestamp' } as const;
    store.put('T', { id: 'string', n: 'integer' }, [{ id: 'a', n: 1n }]);
    store.put('T', { id: 'string', n: 'integer' }, [{ id: 'a', n: 2n }]);
    store.put('T', { id: 'string', n: 'integer' }, [{ id: 'b', n: 3n }]);
    const empty = [{ id: 'c', n: 4n, valid_from: 5n, valid_to: 5n }];
    expect(() => store.put('T', bounds, empty, { atomic: true })).toThrow(refused('REL_INVALID'));
    expect(store.put('T', bounds, [{ id: 'c', n: 5n, valid_from: 5n, valid_to: 6n }]).accepted).toBe(1);
    const bodies = store.entries.flatMap(({ body }) =>
      body.kind === 'rows' ? [[...body.closes.subarray(0, body.closeOffsets[1])]] : [],
    );
    // The type has position 0.
    expect(bodies).toEqual([[], [1], [], []]);
  });

  test('a batch without a good row writes nothing, not even a type', () => {
    const store = new Store();
    expect(store.put('T', { id: 'string', a: 'integer' }, [{ id: '', a: 1n }])).toMatchObject({
      accepted: 0,
      rejected: 1,
      changed: false,
    });
    expect(store.entries).toEqual([]);
  });

  test('lists 1000 errors and 1000 ids at most, and counts them all', () => {
    const store = closed({ n: property('integer') });
    const rows = Array.from({ length: 2400 }, (_, i) => (i % 2 === 0 ? { id: `k${i}` } : { id: '' }));
    const outcome = store.put('T', { id: 'string' }, rows);
    expect(outcome).toMatchObject({ accepted: 1200, rejected: 1200, idsTruncated: true });
    expect(outcome.errors).toHaveLength(1000);
    expect(outcome.errors.at(-1)?.index).toBe(1999);
    expect(outcome.ids).toHaveLength(1000);
  });

  test('lists as many keys as are asked for, and says when there are more', () => {
    const store = new Store();
    const rows = [{ id: 'a' }, { id: 'b' }, { id: 'c' }];
    const put = (idsMax: number): unknown => store.put('T', { id: 'string' }, rows, { idsMax });
    expect(put(2)).toMatchObject({ accepted: 3, ids: ['a', 'b'], idsTruncated: true });
    expect(put(3)).toMatchObject({ accepted: 3, ids: ['a', 'b', 'c'], idsTruncated: false });
    expect(put(0)).toMatchObject({ accepted: 3, ids: [], idsTruncated: true });
  });

  test.each(['tenant_id', 'namespace_path', 'system_from', 'system_to', '_own', '_score', '__proto__', '#path'])(
    'keeps %s for the store, in open types too',
    (name) => {
      const store = new Store();
      expect(errorsOf(store, { id: 'string', [name]: 'string' }, [{ id: 'a', [name]: 'x' }, { id: 'b' }])).toEqual([
        '0 REL_UNKNOWN_COLUMN',
      ]);
    },
  );

  test('a property that only the prototype of objects has is unknown to a closed type, and takes values in an open one', () => {
    expect(errorsOf(closed({}), { id: 'string', constructor: 'string' as const }, [{ id: 'a', constructor: 'x' }])).toEqual([
      '0 REL_UNKNOWN_COLUMN',
    ]);
    const open = new Store();
    open.put('T', { id: 'string', constructor: 'string' as const }, [{ id: 'a', constructor: 'x' }]);
    expect(open.read('T', ['constructor'])).toEqual([{ constructor: 'x' }]);
  });

  test('an unregistered type is REL_UNKNOWN_TYPE unless it may be made, a classified one is refused either way', () => {
    const put = (type: string, createType: boolean) => () =>
      new Store().run({
        kind: 'put-rows',
        type,
        rows: batchOf({ id: 'string' }, [{ id: 'a' }]),
        atomic: false,
        createType,
        provenance: { source: 's', method: 'm', confidence: 1, derivedFrom: null },
      });
    expect(put('T', false)).toThrow(refused('REL_UNKNOWN_TYPE'));
    expect(put('T', true)).not.toThrow();
    expect(put('T'.repeat(129), true)).toThrow(refused('REL_INVALID'));
    expect(put('LawfulInterceptRecord', true)).toThrow(refused('REL_HUMINT'));
  });
});

describe('what fits a property', () => {
  const fits: [ColumnType, PlainRow[string], ColumnType, PlainRow[string] | undefined][] = [
    ['integer', 5n, 'number', 5],
    ['integer', 2n ** 53n, 'number', 2 ** 53],
    ['integer', 2n ** 53n + 1n, 'number', undefined],
    ['number', 5, 'integer', 5n],
    ['number', 5.5, 'integer', undefined],
    ['number', 2 ** 53, 'integer', undefined],
    ['number', Number.NaN, 'number', undefined],
    ['number', Number.POSITIVE_INFINITY, 'number', undefined],
    ['string', '5', 'integer', undefined],
    ['integer', 5n, 'string', undefined],
    ['boolean', true, 'integer', undefined],
    ['string', '2024-05-01T10:00:00.123Z', 'timestamp', 1_714_557_600_123_000_000n],
    ['string', '2024-05-01', 'timestamp', 1_714_521_600_000_000_000n],
    ['string', '2024-02-31', 'timestamp', undefined],
    ['string', '2024-05-01T10:00:00+01:00', 'timestamp', undefined],
    ['integer', -1n, 'timestamp', -1n],
    ['timestamp', FOREVER, 'timestamp', FOREVER],
    ['timestamp', 1n, 'integer', undefined],
    ['string', 'a"b', 'json', '"a\\"b"'],
    ['integer', 2n ** 63n - 1n, 'json', '9223372036854775807'],
    ['json', '9223372036854775807', 'integer', 9_223_372_036_854_775_807n],
    ['json', '9223372036854775808', 'integer', undefined],
    ['json', '5.0', 'integer', 5n],
    ['json', '1e400', 'number', undefined],
    ['json', '9007199254740993', 'number', undefined],
    ['json', '0.1', 'number', 0.1],
    ['json', '"text"', 'string', 'text'],
    ['json', '7', 'string', undefined],
    ['json', 'true', 'boolean', true],
    ['json', '"2024-05-01"', 'timestamp', 1_714_521_600_000_000_000n],
    ['json', '{', 'string', undefined],
    ['json', '[1, 2]', 'vector', Float32Array.of(1, 2)],
    ['json', '[1, "2"]', 'vector', undefined],
    ['json', '[1, 1e39]', 'vector', undefined],
    ['json', '[1, 2, 3]', 'vector', undefined],
    ['vector', Float32Array.of(1, 2), 'vector', Float32Array.of(1, 2)],
    ['vector', Float32Array.of(1, 2, 3), 'vector', undefined],
    ['vector', Float32Array.of(1, Number.NaN), 'vector', undefined],
    ['vector', Float32Array.of(1, 2), 'json', '[1,2]'],
  ];
  test.each(fits)('%s %s into %s gives %s', (from, cell, to, expected) => {
    const store = closed({ c: property(to, to === 'vector' ? { dims: 2 } : {}) });
    const errors = errorsOf(store, { id: 'string', c: from }, [{ id: 'a', c: cell }, { id: 'b' }]);
    expect(errors).toEqual(expected === undefined ? ['0 REL_TYPE_MISMATCH'] : []);
    const good = expected === undefined ? [] : [{ id: 'a', c: expected }];
    expect(store.read('T', ['id', 'c'])).toEqual([...good, { id: 'b', c: null }]);
  });

  test('a refusal names the column and both types, never the value', () => {
    const { errors } = closed({ c: property('integer') }).put('T', { id: 'string', c: 'string' }, [{ id: 'a', c: 'sekret' }]);
    expect(errors[0]!.detail).toBe('column "c": string given, integer expected');
  });
});

describe('open types', () => {
  test('infer columns on first sight, in one append with the rows, the type first', () => {
    const store = new Store();
    const outcome = store.put('T', { id: 'string', n: 'integer', t: 'timestamp', empty: 'string' }, [{ id: 'a', n: 1n, t: 5n }]);
    expect(store.entries.map(({ body, time }) => [body.kind, time])).toEqual([
      ['type', START],
      ['rows', START + 1n],
    ]);
    expect(outcome.systemFrom).toBe(START + 1n);
    expect(store.projections.catalog.catalogOn(0, null).type('T')).toMatchObject({
      open: true,
      properties: { n: { type: 'integer' }, t: { type: 'timestamp' } },
    });
    // A column without a value says nothing about its type.
    expect(Object.keys(store.projections.catalog.catalogOn(0, null).type('T')!.properties)).toEqual(['n', 't']);
    store.put('T', { id: 'string', n: 'integer' }, [{ id: 'b', n: 2n }]);
    expect(store.entries.map(({ body }) => body.kind)).toEqual(['type', 'rows', 'rows']);
  });

  test('integers become numbers when a fraction arrives, unless a stored one would change', () => {
    const store = new Store();
    store.put('T', { id: 'string', n: 'integer' }, [{ id: 'a', n: 1n }]);
    expect(errorsOf(store, { id: 'string', n: 'number' }, [{ id: 'b', n: 1.5 }])).toEqual([]);
    expect(store.projections.catalog.catalogOn(0, null).type('T')!.properties['n']!.type).toBe('number');
    expect(store.read('T', ['n'])).toEqual([{ n: 1 }, { n: 1.5 }]);

    const exact = new Store();
    exact.put('T', { id: 'string', n: 'integer' }, [{ id: 'a', n: 2n ** 53n + 1n }]);
    expect(
      errorsOf(exact, { id: 'string', n: 'number' }, [
        { id: 'b', n: 1.5 },
        { id: 'c', n: 2 },
      ]),
    ).toEqual(['0 REL_TYPE_MISMATCH']);
    expect(exact.read('T', ['n'])).toEqual([{ n: 2n ** 53n + 1n }, { n: 2n }]);
  });

  test('numbers without fraction leave an integer column one', () => {
    const store = new Store();
    store.put('T', { id: 'string', n: 'integer' }, [{ id: 'a', n: 1n }]);
    store.put('T', { id: 'string', n: 'number' }, [{ id: 'b', n: 2 }]);
    expect(store.read('T', ['n'])).toEqual([{ n: 1n }, { n: 2n }]);
  });

  test('a declared primary key is inferred like any column', () => {
    const store = new Store();
    store.run({ kind: 'register-type', name: 'T', properties: null, primaryKey: 'id', graphTriggers: [] });
    store.put('T', { id: 'integer' }, [{ id: 7n }]);
    expect(store.read('T', ['_pk', 'id'])).toEqual([{ _pk: '7', id: 7n }]);
  });
});

describe('embeddings', () => {
  test('are accepted in every type, and fix their dims on first sight', () => {
    const store = closed({});
    expect(errorsOf(store, { id: 'string', _emb_text: 'vector' }, [{ id: 'a', _emb_text: Float32Array.of(1, 2) }])).toEqual([]);
    expect(errorsOf(store, { id: 'string', _emb_text: 'json' }, [{ id: 'b', _emb_text: '[3,4]' }])).toEqual([]);
    expect(errorsOf(store, { id: 'string', _emb_text: 'json' }, [{ id: 'c', _emb_text: '[3]' }])).toEqual([
      '0 REL_TYPE_MISMATCH',
    ]);
    expect(store.read('T', ['id', '_emb_text'])).toEqual([
      { id: 'a', _emb_text: Float32Array.of(1, 2) },
      { id: 'b', _emb_text: Float32Array.of(3, 4) },
    ]);
    expect(store.projections.catalog.catalogOn(0, null).type('T')).toMatchObject({
      open: false,
      properties: { _emb_text: { type: 'vector', dims: 2 } },
    });
  });

  test('that are no vectors, or too long, are refused', () => {
    const store = closed({});
    expect(errorsOf(store, { id: 'string', _emb_x: 'string' }, [{ id: 'a', _emb_x: 'x' }])).toEqual(['0 REL_UNKNOWN_COLUMN']);
    expect(errorsOf(store, { id: 'string', _emb_x: 'vector' }, [{ id: 'a', _emb_x: new Float32Array(4097) }])).toEqual([
      '0 REL_UNKNOWN_COLUMN',
    ]);
  });
});
