/** Keys of restored rows: in the index a slice at a time, or all of them as soon as somebody needs one. */
import { rowsOf } from '../../../../src/projections/rows/projection.ts';
import { expect, test } from 'vitest';
import type { Command } from '../../../../src/projections/command.ts';
import type { Table } from '../../../../src/projections/rows/tables/table.ts';
import { batchOf, freshProjections, Store } from '../../store.ts';
import { SavedState } from '../../saved-state.ts';

const columns = { id: 'string', n: 'integer' } as const;
const keys = Array.from({ length: 50 }, (_, i) => `k${i}`);

interface Restored {
  readonly store: Store;
  /** What it was restored from. */
  readonly before: Store;
  readonly table: Table;
  readonly found: () => number[];
}

/** Fifty keys in many segments; every third has a newer version, one has several, and one is removed for good. */
async function restored(later: (() => void)[]): Promise<Restored> {
  const saved = await SavedState.make();
  const rows = saved.resting(1e6, 7);
  const before = new Store(freshProjections(undefined, rows));
  before.put(
    'T',
    columns,
    keys.map((id, i) => ({ id, n: BigInt(i) })),
  );
  before.put(
    'T',
    columns,
    keys.filter((_, i) => i % 3 === 0).map((id) => ({ id, n: -1n })),
  );
  for (let n = -2n; n > -7n; n--) before.put('T', columns, [{ id: 'k45', n }]);
  before.run({ kind: 'remove-rows', type: 'T', keys: ['k33'] });
  await rows.store.whenIdle();
  await saved.save(before.projections.projector, rows.store);
  await rows.store.close();
  const defer = (task: () => void): void => void later.push(task);
  const after = freshProjections(undefined, { ...saved.resting(1e6, 7), defer });
  await saved.restore(after.projector);
  const store = new Store(after);
  store.goOn(before);
  const table = after.rows.table(null, 'T')!;
  const newest = before.projections.rows.table(null, 'T')!;
  expect(keys.map((key) => newest.newestOf(0, key))).toContain(-1);
  return { store, before, table, found: () => keys.map((key) => table.newestOf(0, key) - newest.newestOf(0, key)) };
}

const same = keys.map(() => 0);

test('whoever looks for a key first has all of them', async () => {
  const { table, found } = await restored([]);
  expect(found()).toEqual(same);
  expect(table.index.size).toBe(49);
});

test('a slice a turn, and whoever comes in between finds every key', async () => {
  for (const turns of [0, 1, 2, 5, 1000]) {
    const later: (() => void)[] = [];
    const { store, table, found } = await restored(later);
    const filled = store.projections.rows.enterKeys(() => new Promise((resolve) => void later.push(resolve)));
    const pass = (): Promise<void> => {
      later.shift()!();
      return new Promise((resolve) => setImmediate(resolve));
    };
    for (let turn = 0; turn < turns && later.length > 0; turn++) await pass();
    if (turns === 1000) expect(later.length).toBe(0);
    expect(found()).toEqual(same);
    while (later.length > 0) await pass();
    await filled;
    expect(table.index.size).toBe(49);
    // The next version of a key supersedes the one that was restored.
    store.put('T', columns, [{ id: 'k4', n: 7n }, { id: 'new' }]);
    expect(store.read('T', ['n'], { keys: ['k4'] }).map(({ n }) => n)).toEqual([4n, 7n]);
    expect(table.index.size).toBe(50);
  }
});

test('rows of a log that goes on fill it first', async () => {
  const { store, before, table } = await restored([]);
  const command: Command = {
    kind: 'put-rows',
    type: 'T',
    rows: batchOf(columns, [{ id: 'k4', n: 7n }, { id: 'new' }]),
    atomic: false,
    createType: false,
    provenance: { source: 'test', method: 'ingest', confidence: 0.5, derivedFrom: null },
  };
  store.commit(before.decide(command).drafts);
  expect(table.index.size).toBe(50);
  expect(store.read('T', ['n'], { keys: ['k4'] }).map(({ n }) => n)).toEqual([4n, 7n]);
});

test('versions that are erased meanwhile give their places to older ones of their keys, whichever slice they come in', async () => {
  for (const turns of [...Array.from({ length: 30 }, (_, i) => i), 1000]) {
    const later: (() => void)[] = [];
    const { store, before, table, found } = await restored(later);
    const filled = store.projections.rows.enterKeys(() => new Promise((resolve) => void later.push(resolve)));
    const pass = (): Promise<void> => {
      later.shift()!();
      return new Promise((resolve) => setImmediate(resolve));
    };
    for (let turn = 0; turn < turns && later.length > 0; turn++) await pass();
    const newest = before.projections.rows.table(null, 'T')!;
    // Both of k0, the newer of k3, the older of k6, one of k45 whose next one lies in the next segment, and the only one of k1.
    const rows = ['k0', 'k3'].map((key) => newest.newestOf(0, key));
    const olderOf = (key: string): number => newest.previousOf(newest.newestOf(0, key));
    const gone = [
      ...rows,
      newest.previousOf(rows[0]!),
      olderOf('k6'),
      newest.previousOf(olderOf('k45')),
      newest.newestOf(0, 'k1'),
    ];
    const positions = gone.map((row) => newest.positionOf(row));
    const erasure: Command = {
      kind: 'intend-erasure',
      id: 'e1',
      commitment: '0'.repeat(64),
      reason: 'asked for',
      keys: [],
      versions: [{ type: 'T', paths: [null], positions }],
      mentions: [],
      statement: '',
    };
    const { drafts } = before.decide(erasure);
    const entering = table.isEntering;
    store.commit(drafts);
    expect(table.isEntering).toBe(entering);
    before.commit(drafts);
    expect(found()).toEqual(same);
    expect(['k0', 'k1'].map((key) => table.newestOf(0, key))).toEqual([-1, -1]);
    expect(table.newestOf(0, 'k3')).toBe(3);
    while (later.length > 0) await pass();
    await filled;
    if (entering) expect(table.index.size).toBe(47);
  }
});

test('a question by key gives others a turn between the slices', async () => {
  const { store, table } = await restored([]);
  const reader = store.projections.rows.reader(rowsOf(store.projections.catalog, 0, null), store.position);
  const request = { type: 'T', columns: ['n'], time: { system: store.time, valid: 'all' }, keys: ['k4'] } as const;
  expect(reader.estimate(request).rows).toBe(1);
  expect(table.isEntering).toBe(true);
  const blocks = [];
  const scan = reader.scan(request);
  for (let step = scan.next(); step.done !== true; step = scan.next()) blocks.push(step.value.count);
  expect(blocks.length).toBeGreaterThan(3);
  expect(blocks.filter((count) => count > 0)).toEqual([1]);
  expect(table.isEntering).toBe(false);
});

test('whoever writes waits for the indexes of his tenant’s tables alone', async () => {
  const { store, found } = await restored([]);
  const { rows } = store.projections;
  let turns = 0;
  const turn = async (): Promise<void> => void turns++;
  expect(rows.keysWithin('acme', 'T', turn)).toBeNull();
  store.put('T', columns, [{ id: 'k1', n: 1n }], { path: 'acme' });
  expect(rows.keysWithin('acme', 'T', turn)).toBeNull();
  const filled = rows.keysWithin(null, 'T', turn);
  expect(rows.keysWithin(null, 'T', turn)).toBe(filled);
  expect(filled).not.toBeNull();
  await filled;
  expect(turns).toBeGreaterThan(0);
  expect(rows.keysWithin(null, 'T', turn)).toBeNull();
  expect(found()).toEqual(same);
});
