import { expect, test } from 'vitest';
import type { DiskFile } from '../../src/log/disk.ts';
import { RecordingDisk } from './recording-disk.ts';
import { all, openLog, rowsDraft, worldOn } from './world.ts';

/** A log of `count` entries of some 20 KiB, and every offset that is read from now on. */
async function readable(count: number) {
  const disk = new RecordingDisk();
  const world = worldOn(disk);
  const { log } = await openLog(world, { limits: { fileBytesMax: 400_000 } });
  const keys = Array.from({ length: 400 }, (_, i) => `key ${i} ${(i * 2_654_435_761) % 4_294_967_291}`);
  for (let i = 0; i < count; i++) await log.append([rowsDraft(keys, i)]).acknowledged;
  const read: { file: string; offset: number }[] = [];
  const open = disk.open.bind(disk);
  disk.open = async (path, mode) => {
    const file = await open(path, mode);
    const spied: Partial<DiskFile> = {
      read: (target, offset) => (read.push({ file: path, offset }), file.read(target, offset)),
    };
    return new Proxy(file, {
      get: (target, name) => {
        const value: unknown = Reflect.get(spied, name) ?? Reflect.get(target, name, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  };
  return { log, world, read };
}

test('one entry of many is read from where the index knows it to be, not from the front of its file', async () => {
  const { log, read } = await readable(60);
  expect(log.status().files).toBeGreaterThan(1);
  const whole = await all(log.read(0));
  const leaves = log.head().size;
  for (const leaf of [1, 17, leaves - 2, leaves - 1]) {
    read.length = 0;
    const first = await log.read(leaf)[Symbol.asyncIterator]().next();
    expect(first.value).toEqual(whole[leaf]);
    if (leaf > 16) expect(read.every(({ offset }) => offset > 64)).toBe(true);
  }
  read.length = 0;
  expect(await all(log.read(leaves))).toEqual([]);
  await log.close();
});

test('reading gives way to other work', async () => {
  const { log, world } = await readable(30);
  world.clock.monotonicMs = () => (world.clock.milliseconds += 1);
  let turns = 0;
  let reading = true;
  const tick = (): void => {
    turns++;
    if (reading) setImmediate(tick);
  };
  setImmediate(tick);
  await all(log.read(0));
  reading = false;
  expect(turns).toBeGreaterThan(10);
  await log.close();
});
