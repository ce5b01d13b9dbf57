/** Columns of sealed segments that come and go: what is loaded ahead, what is widened on the way, what is waited for. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ColumnStore } from '../../../../src/projections/rows/store/column-store.ts';
import { SegmentFile } from '../../../../src/projections/rows/store/segment-file.ts';
import { Table } from '../../../../src/projections/rows/tables/table.ts';
import { SavedState } from '../../saved-state.ts';
import { freshProjections, Store } from '../../store.ts';

let saved: SavedState;
let rows: ReturnType<SavedState['resting']>;
let store: Store;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function put(from: number, count: number): void {
  const made = Array.from({ length: count }, (_, i) => ({ id: `k${from + i}`, n: BigInt(from + i), word: `word ${i % 2}` }));
  store.put('T', { id: 'string', n: 'integer', word: 'string' }, made);
}

const table = (): Table => store.projections.rows.table(null, 'T')!;
const absent = (name: string | null): boolean[] =>
  table()
    .segments.slice(0, -1)
    .map(({ cells }) => cells.isAbsent(name));

beforeEach(async () => {
  saved = await SavedState.make();
  rows = saved.resting(1e9, 4);
  store = new Store(freshProjections(undefined, rows));
  put(0, 18);
  await rows.store.whenIdle();
});

afterEach(() => rows.store.close());

/** Stretches of quiet that end when the test says so. */
class Lulls {
  readonly #waiting: (() => void)[] = [];
  begun = 0;

  readonly wait = (signal: AbortSignal): Promise<void> => {
    this.begun++;
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      signal.addEventListener('abort', () => resolve());
    });
  };

  async end(): Promise<void> {
    for (const resolve of this.#waiting.splice(0)) resolve();
    for (let i = 0; i < 20; i++) await turn();
  }
}

describe('segments that were just sealed', () => {
  const gathering = (budgetBytes: number): { lulls: Lulls; of: Store; columns: ColumnStore } => {
    const lulls = new Lulls();
    const columns = saved.columns(budgetBytes, undefined, lulls.wait);
    return { lulls, columns, of: new Store(freshProjections(undefined, { store: columns, settings: { segmentRows: 4 } })) };
  };
  const add = (of: Store, from: number, count: number): void => {
    const rowsOf = Array.from({ length: count }, (_, i) => ({ id: `k${from + i}` }));
    of.put('T', { id: 'string' }, rowsOf);
  };

  test('wait while more come, and are written once none did', async () => {
    const { lulls, of, columns } = gathering(1e9);
    add(of, 0, 5);
    await lulls.end();
    expect(columns.counts.written).toBe(1);
    add(of, 5, 4);
    add(of, 9, 4);
    await turn();
    const before = lulls.begun;
    add(of, 13, 4);
    await lulls.end();
    expect([columns.counts.written, columns.unsaved, lulls.begun]).toEqual([1, 3, before + 1]);
    expect(columns.room()).toBeUndefined();
    await lulls.end();
    expect([columns.counts.written, columns.unsaved]).toEqual([4, 0]);
    await columns.close();
  });

  test('are written for who needs them, at the end of their number or share of the budget, and not after the end', async () => {
    const asked = gathering(1e9);
    add(asked.of, 0, 9);
    await asked.columns.whenIdle();
    expect(asked.columns.counts.written).toBe(2);
    await asked.columns.close();

    const many = gathering(1e9);
    add(many.of, 0, 31 * 4 + 1);
    for (let i = 0; i < 20; i++) await turn();
    expect(many.columns.counts.written).toBe(0);
    add(many.of, 31 * 4 + 1, 4);
    for (let i = 0; i < 5_000 && many.columns.unsaved > 0; i++) await turn();
    expect(many.columns.unsaved).toBe(0);
    await many.columns.close();

    const small = gathering(100);
    add(small.of, 0, 5);
    for (let i = 0; i < 20; i++) await turn();
    expect(small.columns.counts.written).toBe(1);
    await small.columns.close();

    const closed = gathering(1e9);
    add(closed.of, 0, 9);
    await closed.columns.close();
    expect(closed.columns.counts.written).toBe(0);
  });
});

describe('a column store', () => {
  test('takes out what may leave, gives back what is asked for, and counts both', () => {
    const digest = store.projections.digests()['rows'];
    expect(absent('n')).toEqual([false, false, false, false]);
    rows.store.trim(0);
    expect([absent(null), absent('n')]).toEqual([Array(4).fill(true), Array(4).fill(true)]);
    expect(rows.store.residentBytes).toBe(0);
    expect(store.read('T', ['n'], { keys: ['k6'] })).toEqual([{ n: 6n }]);
    expect(absent('n')).toEqual([true, false, true, true]);
    expect(rows.store.counts).toMatchObject({ written: 4, evicted: 12, hydrated: 2 });
    expect(store.projections.digests()['rows']).toBe(digest);
  });

  test('keeps what was asked for since the hand last passed', () => {
    rows.store.trim(0);
    store.read('T', ['n', 'word']);
    rows.store.trim(rows.store.residentBytes - 1);
    const held = absent('n').filter((out) => !out).length;
    expect(held).toBeGreaterThan(0);
    // All were asked for, so all lost their bit; whoever is asked for now stays.
    expect(table().segments[2]!.column('n')).toBeDefined();
    rows.store.trim(rows.store.residentBytes >>> 1);
    expect(table().segments[2]!.cells.isAbsent('n')).toBe(false);
  });

  test('reads ahead beside the turn, and what was read meanwhile is not read twice', async () => {
    rows.store.trim(0);
    table().ahead(0, ['n']);
    expect(absent('n')).toEqual([true, true, true, true]);
    table().segments[1]!.column('n');
    for (let i = 0; i < 20; i++) await turn();
    expect(absent('n')).toEqual([true, false, false, true]);
    expect(rows.store.counts.hydrated).toBe(2);
    expect(store.read('T', ['n']).map(({ n }) => n)).toEqual(Array.from({ length: 18 }, (_, i) => BigInt(i)));
  });

  test('widens on the way in what was widened while it was out, without a new file', async () => {
    rows.store.trim(0);
    const property = { type: 'number', required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;
    store.run({ kind: 'evolve-type', name: 'T', properties: { n: property } });
    await rows.store.whenIdle();
    expect(rows.store.counts.written).toBe(4);
    // Whoever decided it looked whether the integers fit, so they are in memory and were widened there.
    for (let round = 0; round < 2; round++) {
      expect(store.read('T', ['n']).map(({ n }) => n)).toEqual(Array.from({ length: 18 }, (_, i) => i));
      rows.store.trim(0);
      expect(absent('n')).toEqual(Array(4).fill(true));
    }
    store.run({ kind: 'evolve-type', name: 'T', properties: { n: { ...property, type: 'json' } } });
    rows.store.trim(0);
    expect(store.read('T', ['n'], { keys: ['k3'] })).toEqual([{ n: '3' }]);
    expect(rows.store.counts.written).toBe(4);
    await saved.save(store.projections.projector, rows.store);
    const again = freshProjections(undefined, saved.resting());
    await saved.restore(again.projector);
    expect(again.digests()).toEqual(store.projections.digests());
    // Codes mean what their dictionary says, which goes with the type.
    store.run({ kind: 'evolve-type', name: 'T', properties: { word: { ...property, type: 'json' } } });
    await rows.store.whenIdle();
    expect(rows.store.counts.written).toBe(8);
    expect(store.read('T', ['word'], { keys: ['k3'] })).toEqual([{ word: '"word 1"' }]);
  });

  test('widens in memory, once, what a branch reads as it was, and reads it so from its file', async () => {
    const property = { type: 'number', required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;
    store.run({ kind: 'evolve-type', name: 'T', properties: { n: property } });
    await rows.store.whenIdle();
    store.run({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
    store.run({ kind: 'evolve-type', name: 'T', properties: { n: { ...property, type: 'json' } } });
    await rows.store.whenIdle();
    for (let round = 0; round < 2; round++) {
      rows.store.trim(0);
      expect(store.read('T', ['n']).map(({ n }) => n)).toEqual(Array.from({ length: 18 }, (_, i) => `${i}`));
    }
  });

  test('keeps what a hard delete changed until its segment is written again', async () => {
    store.run({ kind: 'remove-rows', type: 'T', keys: ['k1'] });
    rows.store.trim(0);
    expect(absent('n')).toEqual([false, true, true, true]);
    expect(await saved.plain()).toContain('k1k2');
    await saved.save(store.projections.projector, rows.store);
    rows.store.trim(0);
    expect(absent('n')).toEqual([true, true, true, true]);
    const segments = (await saved.disk.list('/d/p')).filter((name) => name.startsWith('segment-'));
    expect(segments.length).toBe(4);
    expect(await saved.plain()).not.toContain('k1k2');
    expect(store.read('T', ['_pk'], { keys: ['k0', 'k1', 'k2'] })).toEqual([{ _pk: 'k0' }, { _pk: 'k2' }]);
  });

  test('gives a checkpoint the chains of the turn that it is of', async () => {
    const year = (from: number, to: number, n: number): void => {
      store.put('T', { id: 'string', n: 'integer', valid_from: 'timestamp', valid_to: 'timestamp' }, [
        { id: 'long', n: BigInt(n), valid_from: BigInt(from), valid_to: BigInt(to) },
      ]);
    };
    for (let i = 0; i < 3; i++) {
      year(i * 10, i * 10 + 10, i);
      put(200 + i * 4, 4);
    }
    const open = (projections = store.projections): unknown[] => {
      const versions = projections.rows.table(null, 'T')!;
      return versions.openVersions(versions.newestOf(0, 'long')).map((row) => versions.cellOf(row, 'n'));
    };
    const before = open();
    expect(before).toEqual([2n, 1n, 0n]);
    await saved.save(store.projections.projector, rows.store, () => year(10, 20, 7));
    expect(open()).toEqual([7n, 2n, 0n]);
    const again = freshProjections(undefined, saved.resting());
    await saved.restore(again.projector);
    expect(open(again)).toEqual(before);
  });

  test('gives a checkpoint the closings of the turn that it is of', async () => {
    // One of the segment is closed before, so that what the next one changes is there already.
    put(0, 1);
    const before = store.projections.digests();
    await saved.save(store.projections.projector, rows.store, () => put(1, 1));
    expect(store.projections.digests()).not.toEqual(before);
    const again = freshProjections(undefined, saved.resting());
    await saved.restore(again.projector);
    expect(again.digests()).toEqual(before);
    const segment = again.rows.table(null, 'T')!.segments[0]!;
    expect([0, 1, 2].map((row) => segment.isOpen(row))).toEqual([false, true, true]);
  });

  test('makes who brings rows faster than they are written wait', async () => {
    expect(rows.store.room()).toBeUndefined();
    put(100, 60);
    expect(rows.store.unsaved).toBeGreaterThan(10);
    await rows.store.room();
    expect(rows.store.unsaved).toBeLessThan(4);
    expect(rows.store.room()).toBeUndefined();
  });

  test('lets go of a branch that is deleted, while who reads it reads on', async () => {
    store.run({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
    store.put(
      'T',
      { id: 'string', n: 'integer', word: 'string' },
      Array.from({ length: 9 }, (_, i) => ({ id: `d${i}`, n: 1n, word: 'dev' })),
      {
        branch: 'dev',
      },
    );
    await rows.store.whenIdle();
    const reader = store.snapshot(store.position, 'dev').rows;
    const files = rows.store.storedSegments;
    rows.store.trim(0);
    store.run({ kind: 'delete-branch', name: 'dev' });
    await saved.save(store.projections.projector, rows.store);
    expect(rows.store.storedSegments).toBe(files - 2);
    let count = 0;
    const scan = reader.scan({ type: 'T', columns: ['n'], time: { system: 'all', valid: 'all' } });
    for (let block = scan.next(); !block.done; block = scan.next()) count += block.value.count;
    expect(count).toBe(27);
  });
});

test('a checkpoint whose segment is gone leaves nothing behind', async () => {
  await saved.save(store.projections.projector, rows.store);
  const name = (await saved.disk.list('/d/p')).find((each) => each.startsWith('segment-'))!;
  await saved.disk.unlink(`/d/p/${name}`);
  const target = freshProjections(undefined, saved.resting());
  const empty = target.digests();
  await expect(saved.restore(target.projector)).rejects.toThrow('it is missing');
  expect(target.digests()).toEqual(empty);
  expect(target.projector.watermark).toBe(0);
});

test('a segment file says what it holds', async () => {
  const [first] = table().segments;
  const file = await SegmentFile.open(saved.home, rows.store.fileOf(first!)!);
  expect(file.names).toEqual(['n', 'word']);
  expect([file.typeOf('n'), file.typeOf('none'), file.isCoded('word'), file.isCoded('n')]).toEqual([
    'integer',
    null,
    true,
    false,
  ]);
  expect(file.hashes().length).toBe(4);
  expect(file.keys().kind).toBe('text');
  await file.file.close();
});
