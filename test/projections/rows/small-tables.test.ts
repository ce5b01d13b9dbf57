/** Stores of thousands of small tables: what one takes beside its rows, and what they share. */
import { describe, expect, test } from 'vitest';
import type { PropertyDefinition } from '../../../src/log/entries/entry.ts';
import { Timeline } from '../../../src/log/values/timeline.ts';
import { ownDefinition } from '../../../src/projections/catalog/own-definition.ts';
import { ByteDictionary } from '../../../src/projections/rows/cells/byte-dictionary.ts';
import { ScopedNames } from '../../../src/projections/rows/tables/branch-layer.ts';
import { Provenances } from '../../../src/projections/rows/cells/row-provenance.ts';
import { rowStorage } from '../../../src/projections/rows/tables/row-storage.ts';
import { Table } from '../../../src/projections/rows/tables/table.ts';
import { property } from '../histories.ts';
import { SavedState } from '../saved-state.ts';
import { freshProjections, Store, texts } from '../store.ts';

const encoder = new TextEncoder();
const columns = { id: 'string', word: 'string', n: 'integer', x: 'number' } as const;
const rows = Array.from({ length: 40 }, (_, i) => ({ id: `k${i}`, word: `w${i % 3}`, n: BigInt(i), x: i / 2 }));

async function restoredStore(): Promise<Store> {
  const store = new Store();
  store.put('T', columns, rows);
  const saved = await SavedState.make();
  await saved.save(store.projections.projector);
  const again = new Store(freshProjections());
  await saved.restore(again.projections.projector);
  again.replay(store.entries);
  again.goOn(store);
  return again;
}

describe('a small table', () => {
  test('begins with an index and nothing else', () => {
    const storage = rowStorage(new Timeline());
    const before = process.memoryUsage().arrayBuffers;
    const tables = Array.from({ length: 400 }, (_, i) => new Table('acme', `T${i}`, storage));
    const each = (process.memoryUsage().arrayBuffers - before) / tables.length;
    expect(tables[0]!.bytes).toBeLessThanOrEqual(1024);
    expect(each).toBeLessThanOrEqual(1100);
  });

  test('holds nothing of the checkpoint that it came from but its cells', async () => {
    const { projections } = await restoredStore();
    const table = projections.rows.table(null, 'T')!;
    const [segment] = table.segments;
    const { heap, offsets } = segment!.keys;
    const vectors = segment!.columnNames().map((name) => segment!.column(name)!.vector(segment!.length));
    const arrays = [heap, offsets, ...vectors.flatMap((vector) => ('values' in vector ? [vector.values] : []))];
    expect(arrays.length).toBeGreaterThanOrEqual(4);
    for (const array of arrays) expect(array.buffer.byteLength).toBe(array.byteLength);
    expect(table.bytes).toBeLessThan(4_000);
  });

  test('takes more rows after a start, and codes old and new words as before', async () => {
    const store = await restoredStore();
    store.put('T', columns, [
      { id: 'k40', word: 'w1', n: 40n, x: 1 },
      { id: 'k41', word: 'new', n: 41n, x: 1 },
    ]);
    const table = store.projections.rows.table(null, 'T')!;
    const vector = table.segments[0]!.column('word')!.vector(42);
    expect(texts(vector, 42)).toEqual([...rows.map(({ word }) => word), 'w1', 'new']);
    expect(table.dictionaryOf('word')!.size).toBe(4);
  });
});

test('a dictionary that was saved gives the same codes, also where a string was wiped', () => {
  const before = new ByteDictionary();
  const code = (dictionary: ByteDictionary, text: string): number => {
    const bytes = encoder.encode(text);
    const found = dictionary.encode(bytes, 0, bytes.length);
    dictionary.count(found);
    return found;
  };
  const words = Array.from({ length: 100 }, (_, i) => `word ${i}`);
  for (const word of words) code(before, word);
  before.release(7);
  const after = ByteDictionary.fromSaved(before.savedState());
  expect(after.size).toBe(100);
  expect(after.codeOf('word 7')).toBe(-1);
  expect(words.map((word) => after.codeOf(word))).toEqual(words.map((_, i) => (i === 7 ? -1 : i)));
  expect(code(after, 'word 7')).toBe(100);
  for (let i = 0; i < 300; i++) expect(code(after, `more ${i}`)).toBe(101 + i);
  expect(after.text(400)).toBe('more 299');
  const none = ByteDictionary.fromSaved(new ByteDictionary().savedState());
  expect([none.codeOf('a'), code(none, ''), code(none, 'a'), none.codeOf('a')]).toEqual([-1, 0, 1, 1]);
});

test('long strings are one where all of their bytes are', () => {
  const dictionary = new ByteDictionary();
  const long = 'x'.repeat(1_000);
  const given = [long, `${long}y`, `y${long}`, `${long}z`, long, `y${long}`];
  const bytes = encoder.encode(`--${given.join('')}`);
  let at = 2;
  const codes = given.map((text) => dictionary.encode(bytes, at, (at += text.length)));
  expect(codes).toEqual([0, 1, 2, 3, 0, 2]);
  expect(codes.map((code) => dictionary.text(code))).toEqual(given);
  expect(given.map((text) => dictionary.codeOf(text))).toEqual(codes);
});

test('provenances have one code each, in the order in which they came', () => {
  const provenance = (source: string, derivedFrom: string | null = null) => ({
    source,
    method: 'm',
    confidence: 1,
    derivedFrom,
  });
  const codes = new Provenances();
  const given = [provenance('a'), provenance('a'), provenance('b'), provenance('a'), provenance('a', 'r1'), provenance('b')];
  expect(given.map((each) => codes.codeOf(each))).toEqual([0, 0, 1, 0, 2, 1]);
  expect(codes.all).toEqual([provenance('a'), provenance('b'), provenance('a', 'r1')]);
});

test('names of a branch are shared with its source until either of the two defines one', () => {
  const names = new ScopedNames();
  names.define('acme', 'T', { subject: 'who' });
  const fork = names.copy();
  fork.define('acme', 'U', { subject: null });
  names.define('acme', 'T', { subject: 'whom' });
  expect([names.isOwn('acme', 'U'), fork.isOwn('acme', 'U')]).toEqual([false, true]);
  expect([names.subjectOf('acme', 'T'), fork.subjectOf('acme', 'T')]).toEqual(['whom', 'who']);
  const third = fork.copy();
  third.forget('acme');
  expect([fork.isOwn('acme', 'T'), third.isOwn('acme', 'T')]).toEqual([true, false]);
});

test('definitions share what their properties say, but no name of another type', () => {
  const plain: PropertyDefinition = {
    type: 'integer',
    required: false,
    masked: false,
    indexed: false,
    subject: false,
    dims: 0,
  };
  const rest = { name: 'T', open: false, primaryKey: null, graphTriggers: [], ontologyVersion: 1 };
  const [a, b] = [1, 2].map(() =>
    ownDefinition(rest, [
      ['n', { ...plain }],
      ['constructor', { ...plain, masked: true }],
      ['of', { ...plain, references: 'Secret' }],
    ]),
  );
  expect(a).toEqual(b);
  expect(a!.properties['n']).toBe(b!.properties['n']);
  expect(a!.properties['constructor']).toEqual({ ...plain, masked: true });
  expect(a!.properties['of']).toEqual({ ...plain, references: 'Secret' });
  expect(a!.properties['of']).not.toBe(b!.properties['of']);
  expect('toString' in a!.properties).toBe(false);
  expect(Object.hasOwn(a!, 'guard')).toBe(false);
});

describe('a checkpoint of small tables', () => {
  const changes: Record<string, (store: Store) => void> = {
    'rows that are added': (store) => store.put('T', columns, [{ id: 'new', word: 'new', n: 1n, x: 1 }]),
    'a row that is superseded': (store) => store.put('T', columns, [{ id: 'k1', word: 'other', n: 1n, x: 1 }]),
    'a row that is deleted': (store) => store.run({ kind: 'delete-rows', type: 'T', keys: ['k2'] }),
    'rows that are removed for good': (store) => store.run({ kind: 'remove-rows', type: 'T', keys: ['k3', 'k0'] }),
    'a column that becomes text': (store) => store.run({ kind: 'evolve-type', name: 'T', properties: { n: property('string') } }),
  };

  test.each([
    ...Object.entries(changes),
    ['all of it', (store: Store) => Object.values(changes).forEach((each) => each(store))] as const,
  ])('holds them as they stood before %s, though it is written afterwards', async (_, change) => {
    const store = new Store();
    store.put('T', columns, rows);
    const { rows: projection } = store.projections;
    const [before, entries] = [projection.digest(), store.entries.length];
    const saved = await SavedState.make();
    await saved.save(store.projections.projector, null, () => change(store));
    expect(projection.digest()).not.toBe(before);
    const again = new Store(freshProjections());
    await saved.restore(again.projections.projector);
    expect(again.projections.rows.digest()).toBe(before);
    again.replay(store.entries.slice(entries));
    expect(again.projections.rows.digest()).toBe(projection.digest());
  });

  test('copies nothing in the turn that it is of, and each table once', async () => {
    const store = new Store();
    store.put('T', columns, rows);
    store.put('U', columns, rows);
    const table = store.projections.rows.table(null, 'T')!;
    let copies = 0;
    const { savedState: save } = table.segments[0]!;
    table.segments[0]!.savedState = function (this: (typeof table.segments)[0]) {
      copies++;
      return save.call(this);
    };
    const saved = await SavedState.make();
    await saved.save(store.projections.projector, null, () => {
      expect(copies).toBe(0);
      store.put('T', columns, [{ id: 'new', word: 'new', n: 1n, x: 1 }]);
      store.put('T', columns, [{ id: 'newer', word: 'new', n: 1n, x: 1 }]);
      expect(copies).toBe(1);
    });
    expect(copies).toBe(1);
  });
});
