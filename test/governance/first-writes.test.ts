/** Writes to a store that was only just opened: they wait for the keys of their type, and everybody else goes on. */
import { expect, test } from 'vitest';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { analyst, TestRandom, TestStore } from '../harness.ts';

const settings = { SERVICE_PURPOSES: 'test', SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data' };
const count = 1_000;

async function opened(disk: MemoryDisk, seed: number): Promise<TestStore> {
  const derived = { machineBytes: 1 << 30, segmentRows: 64 };
  return TestStore.open('2024-01-01', settings, { disk, derived, random: new TestRandom(seed) });
}

async function justOpened(): Promise<TestStore> {
  const disk = new MemoryDisk();
  const before = await opened(disk, 7);
  await before.register('Visit', { id: 'string', n: 'integer' }, 'id');
  await before.put(
    'Visit',
    Array.from({ length: count }, (_, i) => ({ id: `v${i}`, n: i })),
  );
  await before.rows('BRANCH side FROM main');
  await before.close();
  return opened(disk, 77);
}

/** Rounds of the event loop until it settles. */
async function rounds(work: Promise<unknown>): Promise<number> {
  let settled = false;
  const ended = work.finally(() => (settled = true));
  let passed = 0;
  for (; !settled; passed++) await new Promise((resolve) => setImmediate(resolve));
  await ended;
  return passed;
}

test('the first write gives others turns until every key can be found, the next one needs none', async () => {
  const store = await justOpened();
  const isEntering = (): boolean => store.service.store.projections.rows.table(null, 'Visit')!.isEntering;
  expect(isEntering()).toBe(true);
  const first = await rounds(store.put('Visit', [{ id: 'v1', n: -1 }]));
  expect(isEntering()).toBe(false);
  const second = await rounds(store.put('Visit', [{ id: 'v2', n: -2 }]));
  expect(first).toBeGreaterThan(second + 10);
  expect(await store.column("SELECT n FROM Visit AS OF CURRENT WHERE id IN ('v1', 'v2', 'v3') ORDER BY n")).toEqual([
    -2n,
    -1n,
    3n,
  ]);
  expect(await store.column('SELECT COUNT(*) AS n FROM Visit AS OF CURRENT')).toEqual([BigInt(count)]);
});

test('those that wait go on in the order in which they came, once for all of them', async () => {
  const store = await justOpened();
  const alone = await rounds((await justOpened()).put('Visit', [{ id: 'v1', n: -1 }]));
  const order: number[] = [];
  const puts = Array.from({ length: 40 }, async (_, i) => {
    const { accepted } = await store.put('Visit', [{ id: 'v1', n: -i }]);
    order.push(i);
    return accepted;
  });
  const taken = await rounds(Promise.all(puts));
  expect(taken).toBeLessThan(alone + 40);
  expect(taken).toBeGreaterThan(alone / 2);
  expect(order).toEqual(Array.from({ length: 40 }, (_, i) => i));
  expect(await store.column("SELECT n FROM Visit AS OF CURRENT WHERE id = 'v1'")).toEqual([-39n]);
  const history = await store.column("SELECT n FROM Visit WHERE id = 'v1'");
  expect(history).toEqual([1n, ...Array.from({ length: 40 }, (_, i) => BigInt(-i))]);
});

test('a write on a branch waits for what it inherits, and one of another type does not', async () => {
  const store = await justOpened();
  const isEntering = (): boolean => store.service.store.projections.rows.table(null, 'Visit')!.isEntering;
  await store.register('Note', { id: 'string' }, 'id');
  await store.put('Note', [{ id: 'n1' }]);
  expect(isEntering()).toBe(true);
  const side = { ...analyst, branch: 'side' };
  await store.put('Visit', [{ id: 'v5', n: -5 }], side);
  expect(isEntering()).toBe(false);
  expect(await store.column("SELECT n FROM Visit AS OF CURRENT WHERE id = 'v5'", side)).toEqual([-5n]);
  expect(await store.column("SELECT n FROM Visit AS OF CURRENT WHERE id = 'v5'")).toEqual([5n]);
});
