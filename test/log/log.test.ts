import { expect, test } from 'vitest';
import { MemoryDisk } from '../../src/log/memory-disk.ts';
import { accessDraft, all, openLog, plain, rowsDraft, worldOn } from './world.ts';

test('what was acknowledged is replayed after a close, in order and byte for byte', async () => {
  const world = worldOn(new MemoryDisk());
  const first = await openLog(world);
  expect(first.replayed.map(({ body }) => body.kind)).toEqual(['genesis']);
  const a = first.log.append([rowsDraft(['a', 'b', 'c'])]);
  const b = first.log.append([accessDraft('ada', 'bob'), rowsDraft(['d'])]);
  expect(await a.acknowledged).toBe('synced');
  expect(await b.acknowledged).toBe('synced');
  const read = await all(first.log.read(0));
  await first.log.close();
  const second = await openLog(world);
  expect(second.replayed.map(({ body }) => body.kind)).toEqual(['genesis', 'rows', 'access', 'rows', 'seal']);
  expect(second.replayed.map(({ position }) => position)).toEqual([0, 1, 4, 4, 5]);
  expect(plain(second.replayed.slice(0, 4))).toEqual(plain(read));
  expect(plain(second.replayed.slice(1, 4))).toEqual(plain([...a.entries, ...b.entries]));
  expect(second.log.status().recovery).toEqual({ cutBytes: 0, cutFrom: null, replayedLeaves: 5 });
  await second.log.close();
});
