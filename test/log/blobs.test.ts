import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { Blobs } from '../../src/log/blobs.ts';
import { MemoryDisk } from '../../src/log/memory-disk.ts';
import { directory, keyringOf, worldOn } from './world.ts';

async function blobsOn(disk: MemoryDisk): Promise<Blobs> {
  const world = worldOn(disk);
  return new Blobs({ ...world, directory, keyring: await keyringOf(world) });
}

const content = Buffer.from('a body too large for the log, as far as this test is concerned');
const hash = createHash('sha256').update(content).digest('hex');
const path = `${directory}/blobs/${hash.slice(0, 2)}/${hash}`;

test('a blob is named by the hash of its content and sealed at rest', async () => {
  const disk = new MemoryDisk();
  const blobs = await blobsOn(disk);
  expect(await blobs.put(content)).toBe(hash);
  expect(Buffer.from((await blobs.get(hash))!)).toEqual(content);
  expect(await blobs.list()).toEqual([hash]);
  expect(Buffer.from((await disk.readFile(path))!).includes('too large')).toBe(false);
  expect(await blobs.get('0'.repeat(64))).toBeUndefined();
});

test('the same content is stored once', async () => {
  const disk = new MemoryDisk();
  const blobs = await blobsOn(disk);
  await blobs.put(content);
  const before = await disk.readFile(path);
  await blobs.put(content);
  expect(await disk.readFile(path)).toEqual(before);
});

test('every changed bit of a blob is found, and verify names it', async () => {
  const disk = new MemoryDisk();
  const blobs = await blobsOn(disk);
  await blobs.put(content);
  const other = await blobs.put(Buffer.from('another'));
  expect(await blobs.verify()).toEqual([]);
  const bytes = Buffer.from((await disk.readFile(path))!);
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    await disk.replaceFile(path, changed);
    await expect(blobs.get(hash)).rejects.toMatchObject({ code: 'REL_STORAGE' });
  }
  expect(await blobs.verify()).toEqual([hash]);
  expect(await blobs.list()).toEqual([hash, other].sort());
});

test('a name that is no hash never becomes a path', async () => {
  const blobs = await blobsOn(new MemoryDisk());
  await expect(blobs.get('../../keys/data-keys.json')).rejects.toMatchObject({ code: 'REL_INVALID' });
});
