import { expect, test } from 'vitest';
import type { DiskFile } from '../../../src/log/disk/disk.ts';
import { RecordingDisk } from '../recording-disk.ts';
import { all, directory, openLog, rowsDraft, worldOn } from '../world.ts';

/** A log of `count` entries of some 20 KiB, and every offset that is read from now on. */
async function readable(count: number) {
  const disk = new RecordingDisk();
  const world = worldOn(disk);
  const { log } = await openLog(world, { limits: { fileBytesMax: 400_000 } });
  const keys = Array.from({ length: 400 }, (_, i) => `key ${i} ${(i * 2_654_435_761) % 4_294_967_291}`);
  for (let i = 0; i < count; i++) await log.append([rowsDraft(keys, i)]).acknowledged;
  const read: { file: string; offset: number; length: number }[] = [];
  const open = disk.open.bind(disk);
  disk.open = async (path, mode) => {
    const file = await open(path, mode);
    const spied: Partial<DiskFile> = {
      read: (target, offset) => (read.push({ file: path, offset, length: target.length }), file.read(target, offset)),
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
    // Of the front only the file's header.
    if (leaf > 16) expect(read.every(({ offset, length }) => offset > 64 || length === 64)).toBe(true);
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

test('a file whose header has rotted since the log was opened is not read', async () => {
  const { log, world } = await readable(60);
  const file = await world.disk.open(`${directory}/log/00000000.log`, 'write');
  const byte = new Uint8Array(1);
  await file.read(byte, 20);
  await file.write(Uint8Array.of(byte[0]! ^ 1), 20);
  await expect(all(log.read(0))).rejects.toMatchObject({ code: 'REL_STORAGE' });
  await log.close();
});

test('a file that holds zeros where frames were is not at its end there', async () => {
  const { log, world } = await readable(60);
  const file = await world.disk.open(`${directory}/log/00000000.log`, 'write');
  const length = await file.size();
  // All of it behind the header: a part of a frame would be found damaged.
  await file.write(new Uint8Array(length - 64), 64);
  await file.close();
  const gone = { code: 'REL_STORAGE', message: expect.stringContaining(`frames up to ${length} are gone`) as string };
  await expect(all(log.read(0))).rejects.toMatchObject(gone);
  await expect(log.proofs.entry({ leaf: 1 })).rejects.toMatchObject(gone);
  await log.close();
});
