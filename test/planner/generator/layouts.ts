/**
 * One history in stores that keep it differently: all rows in one growing segment; in many small sealed ones; on files, under
 * a budget that holds a few columns; packed; and as a crash left them, restored from a checkpoint with a tail of log behind
 * it. Whatever memory is given back is overwritten, so that a view that outlives its turn reads nonsense.
 */
import { ColumnMemory } from '../../../src/log/values/column-memory.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { TestStore } from '../../harness.ts';
import { crashImage } from '../../simulation/crash-image.ts';
import { FaultyDisk } from '../../simulation/faulty-disk.ts';
import { loadWorld, type World } from './world.ts';

export const layoutNames = ['one segment', 'sealed', 'evicting', 'packed', 'restored'] as const;
export type LayoutName = (typeof layoutNames)[number];

export interface Layout {
  readonly name: LayoutName;
  readonly store: TestStore;
}

export interface LayoutSize {
  readonly segmentRows: number;
  readonly budgetBytes: number;
}

/** Segments have fewer rows than a statement reads, and the budget is less than what two of its columns take. */
export const smallSegments: LayoutSize = { segmentRows: 5, budgetBytes: 1_500 };
/** Enough rows for kernels to be worth their while. */
export const largeSegments: LayoutSize = { segmentRows: 600, budgetBytes: 30_000 };

export async function openLayout(name: LayoutName, world: World, size: LayoutSize): Promise<Layout> {
  return { name, store: await openStore(name, world, size) };
}

async function openStore(name: LayoutName, world: World, size: LayoutSize): Promise<TestStore> {
  switch (name) {
    case 'one segment':
      return loaded(await TestStore.open('2024-01-01', sketched), world);
    case 'sealed':
      return settled(await loaded(await derived(new MemoryDisk(), { ...size, budgetBytes: 1 << 30 }), world));
    case 'evicting':
      return settled(await loaded(await derived(new MemoryDisk(), size), world));
    case 'packed': {
      const store = await settled(await loaded(await derived(new MemoryDisk(), size), world));
      await store.service.store.columns!.compact();
      return store;
    }
    case 'restored': {
      const disk = new FaultyDisk();
      const half = Math.ceil(world.batches.length / 2);
      const first = await derived(disk, size);
      await loadWorld({ ...world, batches: world.batches.slice(0, half) }, first);
      // The history goes on where it stood.
      first.clock.wallNs = world.batches[half - 1]?.at ?? first.clock.wallNs;
      if (!(await first.service.store.checkpoints!.take())) throw new Error('no checkpoint was written');
      await loadWorld({ ...world, tables: [], batches: world.batches.slice(half) }, first);
      const left = new FaultyDisk({}, crashImage(disk.state(), 'none'));
      const store = await derived(left, size, first);
      if (store.service.store.checkpoints!.leaves === 0) throw new Error('it was not restored from its checkpoint');
      await first.close();
      return store;
    }
  }
}

/** Sketched in every layout: what EXPLAIN tells must not say where rows rest. */
const sketched = { SERVICE_SKETCH_COLUMNS: 'j,k,n,s,x' };

/** Opened anew, the clock goes on where the one before stood. */
async function derived(disk: MemoryDisk | FaultyDisk, size: LayoutSize, before?: TestStore): Promise<TestStore> {
  const store = await TestStore.open(
    '2024-01-01',
    {
      ...sketched,
      SERVICE_IN_MEMORY: 'false',
      SERVICE_DATA_DIR: '/data',
      SERVICE_WAL_SYNC: 'always',
      SERVICE_KEK: '07'.repeat(32),
    },
    {
      disk,
      derived: {
        machineBytes: 1 << 30,
        checkpointBytes: 1 << 30,
        ...size,
        // With room for the workspaces of kernels.
        memory: new ColumnMemory({ memoryBytes: 64 << 20, poison: true }),
      },
    },
  );
  if (before) store.clock.wallNs = before.clock.wallNs;
  return store;
}

async function loaded(store: TestStore, world: World): Promise<TestStore> {
  await loadWorld(world, store);
  return store;
}

/** Every sealed segment has its file. */
async function settled(store: TestStore): Promise<TestStore> {
  await store.service.store.columns!.whenIdle();
  store.service.store.columns!.trim();
  return store;
}
