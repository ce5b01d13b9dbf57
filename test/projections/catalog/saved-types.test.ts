/** Types come back from a checkpoint as they were declared. */
import { expect, test } from 'vitest';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { analyst, TestClock, TestRandom, TestStore } from '../../harness.ts';

test('columns of a type after a restart', async () => {
  const disk = new MemoryDisk();
  const clock = new TestClock('2024-01-01');
  const settings = { SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data' };
  const columns = async (store: TestStore): Promise<string[]> =>
    (await store.answer('SELECT * FROM Doc')).columns.map(({ name, type }) => `${name} ${type}`);
  const before = await TestStore.open('2024-01-01', settings, { disk, clock, random: new TestRandom(1) });
  await before.register('Doc', { id: 'string', n: 'integer' }, 'id');
  await before.put('Doc', [{ id: 'a', n: 1 }], analyst);
  const declared = await columns(before);
  await before.close();
  const after = await TestStore.open('2024-01-01', settings, { disk, clock, random: new TestRandom(2) });
  expect(await columns(after)).toEqual(declared);
  await after.close();
});
