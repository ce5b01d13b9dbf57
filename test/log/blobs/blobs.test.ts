import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { type BlobName, Blobs, checkBlob } from '../../../src/log/blobs/blobs.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { directory, keyringOf, worldOn } from '../world.ts';

async function opened(disk = new MemoryDisk()) {
  const world = worldOn(disk);
  const options = { ...world, directory, keyring: await keyringOf(world) };
  return { disk, options, blobs: new Blobs(options) };
}

async function put(blobs: Blobs, scope: string, pieces: readonly Uint8Array[]): Promise<BlobName> {
  const writer = await blobs.begin(scope);
  for (const piece of pieces) await writer.write(piece);
  return writer.finish();
}

async function get(blobs: Blobs, name: BlobName, from = 0, to?: number): Promise<Buffer | undefined> {
  const reader = await blobs.open(name);
  if (!reader) return undefined;
  const pieces: Uint8Array[] = [];
  for await (const piece of reader.read(from, to ?? reader.size)) pieces.push(Buffer.from(piece));
  await reader.close();
  return Buffer.concat(pieces);
}

const content = Buffer.from('a body too large for the log, as far as this test is concerned');
const sha256 = createHash('sha256').update(content).digest('hex');
const pathOf = (address: string): string => `${directory}/blobs/${address.slice(0, 2)}/${address}`;

test('a blob is named by its scope and the hash of its content, and sealed at rest', async () => {
  const { disk, blobs } = await opened();
  const name = await put(blobs, 'acme', [content.subarray(0, 7), content.subarray(7)]);
  expect(name).toEqual({ scope: 'acme', sha256, size: content.length });
  expect(await get(blobs, name)).toEqual(content);
  expect(await get(blobs, name, 5, 9)).toEqual(content.subarray(5, 9));
  expect(await blobs.list()).toEqual([blobs.address(name)]);
  expect(blobs.address(name)).not.toBe(sha256);
  expect(Buffer.from((await disk.readFile(pathOf(blobs.address(name))))!).includes('too large')).toBe(false);
  expect(await get(blobs, { scope: 'acme', sha256: '0'.repeat(64) })).toBeUndefined();
  expect(await get(blobs, { scope: 'globex', sha256 })).toBeUndefined();
});

test('frames of a large one are read apart, however it came', async () => {
  const { blobs } = await opened();
  const large = Buffer.alloc((2 << 20) + 12_345, 1).map((_, i) => i * 31);
  const pieces = [large.subarray(0, 3), large.subarray(3, 1_500_000), large.subarray(1_500_000)];
  const name = await put(blobs, '', pieces);
  for (const [from, to] of [
    [0, large.length],
    [(1 << 20) - 1, (1 << 20) + 1],
    [2 << 20, large.length],
    [large.length - 1, large.length],
    [7, 7],
  ] as const)
    expect((await get(blobs, name, from, to))!.equals(large.subarray(from, to))).toBe(true);
  const part = await blobs.part();
  for (const piece of pieces) await part.write(piece);
  const kept = await part.finish();
  const read: Buffer[] = [];
  for await (const piece of kept.read()) read.push(Buffer.from(piece));
  expect(Buffer.concat(read).equals(large)).toBe(true);
  await kept.drop();
});

test('the same content is stored once in a scope, and what was given up leaves nothing', async () => {
  const { disk, options, blobs } = await opened();
  const name = await put(blobs, 'acme', [content]);
  const before = await disk.readFile(pathOf(blobs.address(name)));
  await put(blobs, 'acme', [content]);
  await put(blobs, 'globex', [content]);
  const writer = await blobs.begin('acme');
  await writer.write(content);
  await writer.abandon();
  expect(await disk.readFile(pathOf(blobs.address(name)))).toEqual(before);
  expect(await blobs.list()).toHaveLength(2);
  expect(await disk.list(`${directory}/blobs/incoming`)).toEqual([]);
  await blobs.begin('acme');
  await Blobs.open(options);
  expect(await disk.list(`${directory}/blobs/incoming`)).toEqual([]);
  // Both writers count on it.
  for (const removed of [false, false, true]) {
    expect(await blobs.remove(blobs.address(name))).toBe(removed);
    await blobs.release(blobs.address(name));
  }
  expect(await get(blobs, name)).toBeUndefined();
});

test('what is stored is counted while it comes, once, by scope, and no more when it is gone', async () => {
  const { disk, options, blobs } = await opened();
  const large = Buffer.alloc(3 << 20, 7);
  const writer = await blobs.begin('acme');
  await writer.write(large.subarray(0, 2 << 20));
  expect(blobs.bytes).toBeGreaterThan(2 << 20);
  await writer.abandon();
  expect(blobs.bytes).toBe(0);
  // Two that come with the same at once leave one file, and one count.
  const [name] = await Promise.all([put(blobs, 'acme', [large]), put(blobs, 'acme', [large])]);
  const size = (await disk.size(pathOf(blobs.address(name))))!;
  expect([blobs.bytes, blobs.bytesOf('acme'), blobs.bytesOf('globex')]).toEqual([size, size, 0]);
  const part = await blobs.part();
  await part.write(Buffer.from('x'));
  const short = await part.finish();
  expect(blobs.bytes).toBeGreaterThanOrEqual(size + 4_096);
  for (const is of [false, false, true]) short.count(is);
  expect(blobs.bytes).toBeGreaterThanOrEqual(size + 4_096);
  short.count(false);
  await short.drop();
  expect(blobs.bytes).toBe(size);

  const later = await Blobs.open(options);
  expect([later.bytes, later.bytesOf('acme')]).toEqual([size, 0]);
  for (let i = 0; i < 2; i++) later.claim(later.address(name), 'acme');
  expect(later.bytesOf('acme')).toBe(size);
  await later.remove(later.address(name));
  expect([later.bytes, later.bytesOf('acme')]).toEqual([0, 0]);
});

test('the last who holds what no row names removes it, and what a row names stays', async () => {
  const { blobs } = await opened();
  const [name] = [await put(blobs, 'acme', [content]), await put(blobs, 'acme', [content])];
  const address = blobs.address(name);
  expect(blobs.release(address)).toBeNull();
  // Who comes while it is removed finds it stored anew.
  const removal = blobs.release(address);
  await Promise.all([removal, put(blobs, 'acme', [content])]);
  expect(await get(blobs, name)).toEqual(content);
  blobs.name(address);
  expect(blobs.release(address)).toBeNull();
  expect(await blobs.list()).toEqual([address]);
  await put(blobs, 'acme', [content]);
  expect(blobs.release(address)).toBeNull();
  expect(await get(blobs, name)).toEqual(content);
});

test('every changed bit of a blob is found by a check, and by a reader where it matters to one', async () => {
  const { disk, options, blobs } = await opened();
  const name = await put(blobs, 'acme', [content]);
  const address = blobs.address(name);
  expect(await checkBlob(options, address)).toBe(true);
  expect(await checkBlob(options, '0'.repeat(64))).toBe(false);
  const bytes = Buffer.from((await disk.readFile(pathOf(address)))!);
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    await disk.replaceFile(pathOf(address), changed);
    await expect(checkBlob(options, address)).rejects.toMatchObject({ code: 'REL_STORAGE' });
    if (bit < (bytes.length - 32) * 8) await expect(get(blobs, name)).rejects.toMatchObject({ code: 'REL_STORAGE' });
  }
  await disk.replaceFile(pathOf(address), bytes.subarray(0, -1));
  await expect(checkBlob(options, address)).rejects.toMatchObject({ code: 'REL_STORAGE' });
});

test('a name that is no hash never becomes a path', async () => {
  const { blobs } = await opened();
  await expect(blobs.open({ scope: '', sha256: '../../keys/data-keys.json' })).rejects.toMatchObject({ code: 'REL_INVALID' });
  await expect(blobs.remove('../../keys/data-keys.json')).rejects.toMatchObject({ code: 'REL_INVALID' });
});
