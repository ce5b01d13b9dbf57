/** Columns that were searched, or are declared to be indexed, have indexes before the first search after a start. */
import { expect, test, vi } from 'vitest';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { inlineWorker } from '../../src/log/threads/workers.ts';
import { TestClock, TestRandom, TestStore } from '../harness.ts';

const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;

class World {
  readonly disk = new MemoryDisk();
  readonly clock = new TestClock('2024-01-01');
  store!: TestStore;
  #starts = 0;

  async start(): Promise<void> {
    const settings = { SERVICE_PURPOSES: 'test', SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data' };
    this.store = await TestStore.open('2024-01-01', settings, {
      disk: this.disk,
      clock: this.clock,
      derived: { machineBytes: 1 << 30, segmentRows: 50 },
      random: new TestRandom(++this.#starts * 41),
      startKept: inlineWorker,
    });
    await this.store.service.settle();
  }

  put(first: number, count: number): Promise<unknown> {
    const row = (i: number): Record<string, unknown> => ({
      id: `d${i}`,
      title: `title ${i}`,
      body: `body ${i}`,
      more: `more ${i}`,
      n: i,
    });
    return this.store.put(
      'Doc',
      Array.from({ length: count }, (_, i) => row(first + i)),
    );
  }

  /** Of how many sealed segments each column has a whole index, once all of them are made. */
  async expectMade(expected: Readonly<Record<string, number>>): Promise<void> {
    const { rows } = this.store.service.store.projections;
    await vi.waitFor(
      () => {
        const counts: Record<string, number> = {};
        for (const segment of rows.table(null, 'Doc')?.segments ?? []) {
          for (const column of rows.indexes.searchedColumns(segment)) {
            if (segment.sealed && rows.indexes.whole(segment, column)) counts[column] = (counts[column] ?? 0) + 1;
          }
        }
        expect(counts).toEqual(expected);
      },
      { timeout: 20_000, interval: 5 },
    );
  }
}

test('a column has indexes from its first search on, or from its first row, and so it has after a start', async () => {
  const world = new World();
  await world.start();
  // What is no text is not searched.
  const n = { ...plain, type: 'integer', indexed: true } as const;
  const body = { ...plain, type: 'string', indexed: true } as const;
  await world.store.register('Doc', { id: 'string', title: 'string', body, more: 'string', n }, 'id');
  await world.put(0, 120);
  await world.expectMade({ body: 2 });
  const found = "SELECT id FROM Doc AS OF CURRENT WHERE MATCH(title, '7')";
  expect(await world.store.rows(found)).toHaveLength(1);
  await world.expectMade({ body: 2, title: 2 });
  await world.put(120, 60);
  await world.expectMade({ body: 3, title: 3 });
  await world.store.close();
  await world.start();
  await world.expectMade({ body: 3, title: 3 });
  const { rows } = world.store.service.store.projections;
  const [segment] = rows.table(null, 'Doc')!.segments;
  expect(rows.indexes.coveredRows(segment!, 'title')).toBe(50);
  expect(await world.store.rows(found)).toHaveLength(1);
  // Nothing is written between the first search of a column and the end.
  await world.store.rows("SELECT id FROM Doc AS OF CURRENT WHERE MATCH(more, '7')");
  await world.expectMade({ body: 3, title: 3, more: 3 });
  await world.store.close();
  await world.start();
  await world.expectMade({ body: 3, title: 3, more: 3 });
  await world.store.close();
});
