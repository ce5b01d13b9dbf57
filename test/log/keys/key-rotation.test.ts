import { expect, test } from 'vitest';
import { type BlobName, Blobs } from '../../../src/log/blobs/blobs.ts';
import { DerivedFile, DerivedFileWriter } from '../../../src/log/blobs/derived-file.ts';
import { type KeyStore, openKeyring } from '../../../src/log/keys/keys.ts';
import type { Disk } from '../../../src/log/disk/disk.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { verifyDirectory } from '../../../src/log/proofs/verify.ts';
import { crashImage, sameImage } from '../../simulation/crash-image.ts';
import { type DiskState, FaultyDisk, type Image } from '../../simulation/faulty-disk.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { all, directory, kek, openLog, rowsDraft, SeededRandom, worldOn } from '../world.ts';

const open = (disk: Disk, seed = 'keys'): Promise<KeyStore> =>
  openKeyring({ disk, random: new SeededRandom(seed), directory, kek });

test('a new data key is used from the turn on in which it is durable, and the old ones stay', async () => {
  const disk = new MemoryDisk();
  await disk.makeDirectory(directory);
  const keyring = await open(disk);
  const first = keyring.open(1);
  const rotating = keyring.rotate();
  expect(keyring.activeDataKey).toBe(1);
  expect(await rotating).toEqual({ active: 2, previous: 1 });
  expect(keyring.activeDataKey).toBe(2);
  expect(keyring.open(1)).toBe(first);
  expect(keyring.open(2).equals(first)).toBe(false);
  const again = await open(disk, 'again');
  expect(again.activeDataKey).toBe(2);
  expect(again.open(2).equals(keyring.open(2))).toBe(true);
  expect(await Promise.all([again.rotate(), again.rotate()])).toEqual([
    { active: 3, previous: 2 },
    { active: 4, previous: 3 },
  ]);
  expect((await open(disk)).dataKeyIds).toEqual([1, 2, 3, 4]);
});

test('a log whose key is rotated while it is written opens under all of them', async () => {
  const disk = new MemoryDisk();
  const world = worldOn(disk);
  await disk.makeDirectory(directory);
  const keyring = await open(disk);
  const { log } = await openLog(world, { keyring });
  const appends: Promise<unknown>[] = [];
  for (let i = 0; i < 12; i++) {
    appends.push(log.append([rowsDraft([`k${i}`])]).acknowledged);
    if (i % 4 === 1) appends.push(keyring.rotate());
    if (i % 2 === 1) await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(appends);
  keyring.subjects.sealing('t', 'ada');
  await keyring.subjects.durable();
  await log.close();
  expect(keyring.activeDataKey).toBe(4);
  const used = new Set<number>();
  const spy = {
    ...spread(keyring),
    open: (id: number) => {
      used.add(id);
      return keyring.open(id);
    },
  };
  expect(await verifyDirectory({ disk, directory, keyring: spy })).toMatchObject({ ok: true, findings: [] });
  expect(used.size).toBeGreaterThan(2);
  const { log: next, replayed } = await openLog(worldOn(disk, 'next'));
  expect(replayed.filter(({ body }) => body.kind === 'rows')).toHaveLength(12);
  expect((await all(next.read(0))).length).toBeGreaterThan(12);
});

function spread(keyring: KeyStore): Omit<KeyStore, 'open' | 'rotate' | 'contents'> {
  const { activeDataKey, dataKeyIds, signer, publicKeys, hmacKey, subjects } = keyring;
  return { activeDataKey, dataKeyIds, signer, publicKeys, hmacKey, subjects, close: () => keyring.close() };
}

test('a crash at any disk call of a rotation under load leaves the old key or the new one, and everything opens', async () => {
  const points: { state: DiskState; acknowledged: number; rotated: number }[] = [];
  let acknowledged = 0;
  let rotated = 1;
  let watching = false;
  const disk: FaultyDisk = new FaultyDisk({
    beforeStep: () => {
      if (watching) points.push({ state: disk.state(), acknowledged, rotated });
      return undefined;
    },
  });
  await disk.makeDirectory(directory);
  const keyring = await open(disk);
  const { log } = await openLog(worldOn(disk), { keyring });
  watching = true;
  const append = async (name: string): Promise<void> => {
    await log.append([rowsDraft([name])]).acknowledged;
    acknowledged++;
  };
  for (let i = 0; i < 3; i++) {
    const before = append(`before ${i}`);
    const rotating = keyring.rotate().then(({ active }) => (rotated = active));
    await Promise.all([before, append(`beside ${i}`), rotating, append(`beside too ${i}`)]);
    await append(`after ${i}`);
  }
  points.push({ state: disk.state(), acknowledged, rotated });
  expect(points.length).toBeGreaterThan(20);
  const actives = new Set<number>();
  for (const [step, { state, acknowledged: promised, rotated: least }] of points.entries()) {
    const seen: Image[] = [];
    for (const survivors of ['none', 'all', new Seeded(step), new Seeded(step + 1000)] as const) {
      const image = crashImage(state, survivors);
      if (seen.some((other) => sameImage(other, image))) continue;
      seen.push(image);
      const crashed = new FaultyDisk({}, image);
      const keys = await open(crashed, `crash ${step}`);
      actives.add(keys.activeDataKey);
      expect(keys.activeDataKey === least || keys.activeDataKey === least + 1).toBe(true);
      const { replayed, log: again } = await openLog(worldOn(crashed, `crash ${step}`), { keyring: keys });
      expect(replayed.filter(({ body }) => body.kind === 'rows').length).toBeGreaterThanOrEqual(promised);
      expect((await keys.rotate()).active).toBe(keys.activeDataKey);
      await again.append([rowsDraft(['more'])]).acknowledged;
    }
  }
  expect(actives).toEqual(new Set([1, 2, 3, 4]));
});

test('a rotation that fails changes nothing, and its number is not used again', async () => {
  let failing = false;
  const disk = new FaultyDisk({
    beforeStep: ({ kind }) => (failing && kind === 'syncDirectory' ? { kind: 'error', code: 'EIO', bytes: 0 } : undefined),
  });
  await disk.makeDirectory(directory);
  const keyring = await open(disk);
  failing = true;
  await expect(keyring.rotate()).rejects.toMatchObject({
    code: 'REL_STORAGE',
    message: expect.stringContaining('data key 1 stays in use'),
  });
  failing = false;
  expect(keyring.activeDataKey).toBe(1);
  expect(keyring.dataKeyIds).toEqual([1]);
  expect(await keyring.rotate()).toEqual({ active: 3, previous: 1 });
  expect((await open(disk)).dataKeyIds).toEqual([1, 3]);
});

test('blobs, derived files and keys of subjects from before a rotation open after it, and new ones are under the new key', async () => {
  const disk = new MemoryDisk();
  await disk.makeDirectory('/derived');
  await disk.makeDirectory(directory);
  const random = new SeededRandom('derived');
  const text = (name: string): Buffer => Buffer.from(`content of ${name}`);
  const made: { blob: BlobName; subject: string; name: string }[] = [];
  let keyring = await open(disk);
  const parts = { disk, random, directory: '/derived', logId: 'log', yieldTurn: () => Promise.resolve() };
  for (const name of ['first', 'second', 'third']) {
    const writing = await new Blobs({ disk, random, directory, keyring }).begin(name);
    await writing.write(text(name));
    const blob = await writing.finish();
    const writer = await DerivedFileWriter.create({ ...parts, keyring }, name);
    await writer.chunk('c', [text(name)]);
    const file = await writer.finish();
    await file.close();
    const { id } = keyring.subjects.sealing('t', name);
    await keyring.subjects.durable();
    made.push({ blob, subject: id, name });
    await keyring.rotate();
    await keyring.close();
    keyring = await open(disk, name);
    for (const each of made) {
      const blobs = new Blobs({ disk, random, directory, keyring });
      const read = (await blobs.open(each.blob))!;
      const pieces: Uint8Array[] = [];
      for await (const piece of read.read(0, read.size)) pieces.push(Buffer.from(piece));
      expect(Buffer.concat(pieces)).toEqual(text(each.name));
      await read.close();
      const opened = (await DerivedFile.open({ ...parts, keyring }, each.name))!;
      expect(Buffer.from(await opened.read('c'))).toEqual(text(each.name));
      await opened.close();
      expect(keyring.subjects.opening(each.subject)).not.toBeNull();
      const header = Buffer.from((await disk.readFile(`/derived/${each.name}`))!).toString('latin1');
      expect(header).toContain(`"dataKey":${made.indexOf(each) + 1},`);
    }
  }
  // A file of keys is under the data key of when it was last written as a whole.
  const shard = async (): Promise<number> =>
    Buffer.from((await disk.readFile(`${directory}/keys/subjects-00`))!).readUInt32LE(16);
  expect(await shard()).toBe(1);
  await keyring.subjects.destroy([made[0]!.subject], 'r');
  expect(await shard()).toBe(4);
});
