/** Ruling on updates and deletes: what is stored, what is closed, what is left over, and where a version came from. */
import { describe, expect, test } from 'vitest';
import { FOREVER } from '../../../../src/log/values/timestamp.ts';
import { SavedState } from '../../saved-state.ts';
import { freshProjections, START, Store } from '../../store.ts';

const columns = { id: 'string', n: 'integer', valid_from: 'timestamp', valid_to: 'timestamp' } as const;
const shown = ['n', 'valid_from', 'valid_to', 'system_from', 'system_to'];

function at(store: Store): bigint {
  return store.time;
}

describe('an update without bounds', () => {
  test('writes one version and closes the live one: two stored versions', () => {
    const store = new Store();
    store.put('T', columns, [{ id: 'a', n: 1n }]);
    const first = START + 1n;
    const second = at(store);
    store.put('T', columns, [{ id: 'a', n: 2n }]);
    expect(store.read('T', shown)).toEqual([
      { n: 1n, valid_from: first, valid_to: FOREVER, system_from: first, system_to: second },
      { n: 2n, valid_from: second, valid_to: FOREVER, system_from: second, system_to: FOREVER },
    ]);
    expect(store.read('T', ['n'], { time: { system: second - 1n, valid: 'all' } })).toEqual([{ n: 1n }]);
    expect(store.read('T', ['n'], { time: { system: second, valid: 'all' } })).toEqual([{ n: 2n }]);
  });

  test('twice in one batch: each closes the one before, at its own nanosecond', () => {
    const store = new Store();
    store.put('T', columns, [
      { id: 'a', n: 1n },
      { id: 'b', n: 2n },
      { id: 'a', n: 3n },
      { id: 'a', n: 4n },
    ]);
    const base = START + 1n;
    expect(store.read('T', ['n', 'system_to'])).toEqual([
      { n: 1n, system_to: base + 2n },
      { n: 2n, system_to: FOREVER },
      { n: 3n, system_to: base + 3n },
      { n: 4n, system_to: FOREVER },
    ]);
    // A time inside the entry is exact.
    expect(store.read('T', ['n'], { time: { system: base + 2n, valid: 'all' } })).toEqual([{ n: 2n }, { n: 3n }]);
  });

  test('closes every live version of its key', () => {
    const store = new Store();
    store.put('T', columns, [
      { id: 'a', n: 1n, valid_from: 0n, valid_to: 10n },
      { id: 'a', n: 2n, valid_from: 10n, valid_to: 20n },
    ]);
    store.put('T', columns, [{ id: 'a', n: 3n }]);
    expect(store.read('T', ['n'], { time: { system: store.time, valid: 'all' } })).toEqual([{ n: 3n }]);
  });
});

describe('an update with bounds', () => {
  test('closes what it overlaps and asserts again what it leaves uncovered', () => {
    const store = new Store();
    store.put('T', columns, [{ id: 'a', n: 1n, valid_from: 0n, valid_to: 100n }]);
    const then = at(store);
    store.put('T', columns, [{ id: 'a', n: 2n, valid_from: 40n, valid_to: 60n }]);
    expect(store.read('T', shown, { time: { system: store.time, valid: 'all' } })).toEqual([
      { n: 2n, valid_from: 40n, valid_to: 60n, system_from: then, system_to: FOREVER },
      { n: 1n, valid_from: 0n, valid_to: 40n, system_from: then + 1n, system_to: FOREVER },
      { n: 1n, valid_from: 60n, valid_to: 100n, system_from: then + 2n, system_to: FOREVER },
    ]);
    for (const [instant, n] of [
      [0n, 1n],
      [39n, 1n],
      [40n, 2n],
      [59n, 2n],
      [60n, 1n],
      [99n, 1n],
    ] as const) {
      expect(store.read('T', ['n'], { time: { system: store.time, valid: instant } })).toEqual([{ n }]);
    }
    expect(store.read('T', ['n'], { time: { system: store.time, valid: 100n } })).toEqual([]);
  });

  test('leaves live versions alone that it only touches', () => {
    const store = new Store();
    store.put('T', columns, [{ id: 'a', n: 1n, valid_from: 0n, valid_to: 10n }]);
    store.put('T', columns, [{ id: 'a', n: 2n, valid_from: 10n, valid_to: 20n }]);
    expect(store.read('T', ['n', 'system_to'])).toEqual([
      { n: 1n, system_to: FOREVER },
      { n: 2n, system_to: FOREVER },
    ]);
  });

  test('with one end only: the other is the default', () => {
    const store = new Store();
    store.put('T', columns, [
      { id: 'a', n: 1n, valid_from: 5n },
      { id: 'b', n: 2n, valid_to: FOREVER - 1n },
    ]);
    expect(store.read('T', ['valid_from', 'valid_to', 'system_from'])).toEqual([
      { valid_from: 5n, valid_to: FOREVER, system_from: START + 1n },
      { valid_from: START + 2n, valid_to: FOREVER - 1n, system_from: START + 2n },
    ]);
  });

  test('whose end is not after its begin is refused, to the nanosecond', () => {
    const store = new Store();
    store.put('T', columns, [{ id: 'first' }]);
    const now = at(store);
    const outcome = store.put('T', columns, [
      { id: 'a', valid_from: 5n, valid_to: 5n },
      { id: 'b', valid_from: 6n, valid_to: 5n },
      { id: 'c', valid_to: now },
      { id: 'd', valid_from: FOREVER },
      { id: 'e', valid_to: now + 1n },
    ]);
    expect(outcome.errors.map(({ index, code }) => [index, code])).toEqual([0, 1, 2, 3].map((index) => [index, 'REL_INVALID']));
    expect(outcome.ids).toEqual(['e']);
  });

  test('brings the columns of what is left over that the update did not have', () => {
    const store = new Store();
    store.put('T', { id: 'string', n: 'integer', name: 'string' }, [{ id: 'a', n: 1n, name: 'x' }]);
    store.put('T', { id: 'string', n: 'number', valid_from: 'timestamp' }, [{ id: 'a', n: 2.5, valid_from: START * 2n }]);
    expect(store.read('T', ['n', 'name'], { time: { system: store.time, valid: 'all' } })).toEqual([
      { n: 2.5, name: null },
      { n: 1, name: 'x' },
    ]);
  });

  test('counts what was asked for, not what was left over', () => {
    const store = new Store();
    store.put('T', columns, [{ id: 'a', n: 1n, valid_from: 0n, valid_to: 100n }]);
    const outcome = store.put('T', columns, [{ id: 'a', n: 2n, valid_from: 40n, valid_to: 60n }]);
    expect(outcome).toMatchObject({ accepted: 1, ids: ['a'], systemFromLast: outcome.systemFrom + 2n });
  });
});

test('what is true is true from its begin until just before its end', () => {
  const store = new Store();
  store.put('T', columns, [
    { id: 'a', n: 1n, valid_from: 0n, valid_to: 10n },
    { id: 'b', n: 2n, valid_from: 5n, valid_to: 20n },
  ]);
  const trueAt = (valid: bigint): unknown[] => store.read('T', ['n'], { time: { system: 'all', valid } }).map(({ n }) => n);
  expect([-1n, 0n, 4n, 5n, 9n, 10n, 19n, 20n].map(trueAt)).toEqual([[], [1n], [1n], [1n, 2n], [1n, 2n], [2n], [2n], []]);
});

describe('a soft delete', () => {
  test('ends the row now and leaves earlier beliefs as they were', () => {
    const store = new Store();
    store.put('T', columns, [{ id: 'a', n: 1n }]);
    const then = at(store);
    expect(store.run({ kind: 'delete-rows', type: 'T', keys: ['a'] })).toMatchObject({
      accepted: 1,
      rejected: 0,
      ids: ['a'],
      systemFrom: then,
    });
    expect(store.read('T', shown)).toEqual([
      { n: 1n, valid_from: START + 1n, valid_to: FOREVER, system_from: START + 1n, system_to: then },
      { n: 1n, valid_from: START + 1n, valid_to: then, system_from: then, system_to: FOREVER },
    ]);
    const current = { system: store.time, valid: store.time };
    expect(store.read('T', ['n'], { time: current })).toEqual([]);
    expect(store.read('T', ['n'], { time: { system: then - 1n, valid: store.time } })).toEqual([{ n: 1n }]);
    expect(store.read('T', ['n'], { time: { system: store.time, valid: then - 1n } })).toEqual([{ n: 1n }]);
  });

  test('never ends a row before it began, nor later than it ends anyway', () => {
    const store = new Store();
    store.put('T', columns, [
      { id: 'future', n: 1n, valid_from: FOREVER - 5n },
      { id: 'past', n: 2n, valid_from: 0n, valid_to: 10n },
    ]);
    store.run({ kind: 'delete-rows', type: 'T', keys: ['future', 'past'] });
    expect(store.read('T', ['n', 'valid_from', 'valid_to'], { time: { system: store.time, valid: 'all' } })).toEqual([
      { n: 1n, valid_from: FOREVER - 5n, valid_to: FOREVER - 5n },
      { n: 2n, valid_from: 0n, valid_to: 10n },
    ]);
  });

  test("of what is not there, or deleted already, or another path's, is told apart by index", () => {
    const store = new Store();
    store.put('T', columns, [{ id: 'a' }, { id: 'gone' }], { path: 'acme' });
    for (const path of ['acme/eu', 'globex', null]) store.put('T', columns, [{ id: `of ${path}` }], { path });
    store.run({ kind: 'delete-rows', type: 'T', keys: ['gone'] }, 'acme');
    const keys = ['nobody', 'a', 'gone', 'of acme/eu', 'of globex', 'of null', 'a'];
    const outcome = store.run({ kind: 'delete-rows', type: 'T', keys }, 'acme');
    expect(outcome).toMatchObject({ accepted: 1, rejected: 5, ids: ['a'] });
    const missing = [0, 2, 3, 4, 5].map((index) => [index, 'REL_NOT_FOUND']);
    expect(outcome.errors.map(({ index, code }) => [index, code])).toEqual(missing);
  });

  test("by half a character is nobody's, not the replacement character's", () => {
    const store = new Store();
    store.put('T', columns, [{ id: '\ufffd' }]);
    expect(store.run({ kind: 'delete-rows', type: 'T', keys: ['\ud800'] })).toMatchObject({ accepted: 0, rejected: 1 });
    expect(store.read('T', ['_pk'], { keys: ['\ud800', '\ufffd'] })).toEqual([{ _pk: '\ufffd' }]);
  });

  test('then a put brings the row back', () => {
    const store = new Store();
    store.put('T', columns, [{ id: 'a', n: 1n }]);
    store.run({ kind: 'delete-rows', type: 'T', keys: ['a'] });
    store.put('T', columns, [{ id: 'a', n: 2n }]);
    expect(store.read('T', ['n'], { time: { system: store.time, valid: store.time } })).toEqual([{ n: 2n }]);
  });
});

describe('a hard delete', () => {
  test('takes every version away at every basis, and frees the key', () => {
    const store = new Store();
    store.put('T', columns, [
      { id: 'a', n: 1n },
      { id: 'b', n: 9n },
    ]);
    store.put('T', columns, [{ id: 'a', n: 2n }]);
    const basis = store.position;
    expect(store.run({ kind: 'remove-rows', type: 'T', keys: ['a', 'nobody'] })).toMatchObject({
      accepted: 1,
      rejected: 1,
      ids: ['a'],
    });
    for (const seen of [basis, store.position]) {
      expect(store.read('T', ['n'], {}, seen)).toEqual([{ n: 9n }]);
      expect(store.read('T', ['n'], { keys: ['a'] }, seen)).toEqual([]);
      expect(store.read('T', ['n'], { time: { system: START + 1n, valid: 'all' } }, seen)).toEqual([]);
    }
    store.put('T', columns, [{ id: 'a', n: 3n }]);
    expect(store.read('T', ['n'], { keys: ['a'] })).toEqual([{ n: 3n }]);
  });

  test('leaves no string of its own in dictionaries, and those of other rows whole', async () => {
    const store = new Store();
    const rows = [
      { id: 'a', word: 'canary' },
      { id: 'b', word: 'shared' },
      { id: 'c', word: 'shared' },
      { id: 'd', word: 'lonely' },
    ];
    store.put('T', { id: 'string', word: 'string' }, rows);
    store.run({ kind: 'remove-rows', type: 'T', keys: ['a', 'b', 'd'] });
    const saved = await SavedState.make();
    await saved.save(store.projections.projector);
    const plain = await saved.plain();
    for (const gone of ['canary', 'lonely']) expect(plain).not.toContain(gone);
    expect(plain).toContain('shared');

    const restored = new Store(freshProjections());
    await saved.restore(restored.projections.projector);
    for (const each of [store, restored]) {
      each.projections.rows.apply({
        ...store.entries.find(({ body }) => body.kind === 'rows')!,
        position: store.position,
        leaf: 99,
      });
      expect(each.read('T', ['_pk', 'word'], {}, store.position + 4)).toEqual([
        { _pk: 'c', word: 'shared' },
        ...rows.map(({ id, word }) => ({ _pk: id, word })),
      ]);
    }
  });

  test('leaves no byte of keys and texts of its own in the columns', () => {
    const store = new Store();
    store.put('T', { id: 'string', note: 'json' }, [
      { id: 'canary-key', note: '"canary-note"' },
      { id: 'b', note: '1' },
    ]);
    store.run({ kind: 'remove-rows', type: 'T', keys: ['canary-key'] });
    const [segment] = store.projections.rows.table(null, 'T')!.segments;
    const bytes = [segment!.keys.heap, segment!.column('note')!.heap].map((heap) => Buffer.from(heap).toString('latin1')).join();
    expect(bytes).not.toContain('canary');
    expect(bytes).toContain('b');
  });

  test('leaves no trace in the digest of the rows, however wide what it removed made a column', () => {
    const digestWith = (n: bigint): string => {
      const store = new Store();
      store.put('T', columns, [
        { id: 'a', n: 1n },
        { id: 'wide', n },
      ]);
      store.run({ kind: 'remove-rows', type: 'T', keys: ['wide'] });
      return store.projections.digests()['rows']!;
    };
    expect(digestWith(2n ** 60n)).toBe(digestWith(2n));
  });

  test('of nothing changes nothing', () => {
    const store = new Store();
    store.put('T', columns, [{ id: 'a' }]);
    expect(store.run({ kind: 'remove-rows', type: 'T', keys: ['x'] })).toMatchObject({
      accepted: 0,
      rejected: 1,
      changed: false,
    });
  });
});

describe('provenance', () => {
  const hex = (instant: bigint): string => instant.toString(16).padStart(16, '0');

  function provenance(store: Store, systemFrom: bigint, paths?: readonly number[]): unknown {
    const snapshot = store.snapshot();
    return snapshot.rows.provenanceOf('T', systemFrom, paths);
  }

  test("of a first version is the writer's, and derived from nothing", () => {
    const store = new Store();
    const { systemFrom } = store.put('T', columns, [{ id: 'a' }]);
    expect(provenance(store, systemFrom)).toEqual({
      source: 'test',
      method: 'ingest',
      confidence: 0.5,
      recordedAt: systemFrom,
      derivedFrom: null,
    });
  });

  test('of an update, of an end and of what is left over names the version before', () => {
    const store = new Store();
    const first = store.put('T', columns, [
      { id: 'a', valid_from: 0n, valid_to: 50n },
      { id: 'a', valid_from: 50n, valid_to: 100n },
    ]);
    const [one, two] = [first.systemFrom, first.systemFromLast];
    const put = store.put('T', columns, [{ id: 'a', valid_from: 10n, valid_to: 90n }]);
    expect(provenance(store, put.systemFrom)).toMatchObject({ derivedFrom: hex(two) });
    const left = store.read('T', ['valid_from', 'system_from'], { after: put.systemFrom });
    for (const { valid_from: from, system_from: at } of left) {
      expect(provenance(store, at as bigint)).toMatchObject({ derivedFrom: hex(from === 0n ? one : two) });
    }
    expect(left).toHaveLength(2);
    const end = store.run({ kind: 'delete-rows', type: 'T', keys: ['a'] });
    expect(provenance(store, end.systemFrom)).toMatchObject({
      source: 'annals',
      method: 'delete',
      derivedFrom: hex(put.systemFromLast),
    });
  });

  test('is that of visible versions in the paths asked for only', () => {
    const store = Store.of('acme');
    const other = store.put('T', columns, [{ id: 'b' }], { path: 'acme/eu' });
    const theirs = store.put('T', columns, [{ id: 'a' }], { path: 'globex' });
    const { systemFrom } = store.put('T', columns, [{ id: 'a' }], { path: 'acme' });
    const [code, eu] = ['acme', 'acme/eu'].map((path) => store.projections.rows.scopes.codeOf(path));
    expect(provenance(store, systemFrom, [code!])).toBeDefined();
    expect(provenance(store, systemFrom, [eu!])).toBeUndefined();
    expect(provenance(store, other.systemFrom, [eu!])).toBeDefined();
    expect(provenance(store, theirs.systemFrom)).toBeUndefined();
    expect(provenance(store, systemFrom + 1n)).toBeUndefined();
    const early = store.snapshot(4);
    expect(early.rows.provenanceOf('T', systemFrom)).toBeUndefined();
    store.run({ kind: 'remove-rows', type: 'T', keys: ['a'] }, 'acme');
    expect(provenance(store, systemFrom)).toBeUndefined();
  });
});
