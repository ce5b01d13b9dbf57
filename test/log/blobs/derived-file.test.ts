/** Sealed derived files: what is written is read, by chunk and within the turn, and nothing else is ever believed. */
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { DerivedFile, DerivedFileError, DerivedFileWriter, type DerivedHome } from '../../../src/log/blobs/derived-file.ts';
import { openKeyring } from '../../../src/log/keys/keys.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { SeededRandom } from '../world.ts';

const PIECE = 256 * 1024;

async function newHome(logId = 'log-1'): Promise<DerivedHome & { disk: MemoryDisk }> {
  const disk = new MemoryDisk();
  const random = new SeededRandom('1');
  await disk.makeDirectory('/d/p');
  const keyring = await openKeyring({ disk, random, directory: '/d', kek: new Uint8Array(32).fill(7) });
  return { disk, random, keyring, directory: '/d/p', logId, yieldTurn: () => Promise.resolve() };
}

async function write(
  home: DerivedHome,
  name: string,
  chunks: Readonly<Record<string, readonly ArrayBufferView[]>>,
): Promise<void> {
  const writer = await DerivedFileWriter.create(home, name);
  for (const [chunk, parts] of Object.entries(chunks)) await writer.chunk(chunk, parts);
  await (await writer.finish()).close();
}

function bytesOf(parts: readonly ArrayBufferView[]): Buffer {
  return Buffer.concat(parts.map((part) => new Uint8Array(part.buffer, part.byteOffset, part.byteLength)));
}

describe('a derived file', () => {
  let home: Awaited<ReturnType<typeof newHome>>;
  beforeEach(async () => {
    home = await newHome();
  });

  test('gives back its chunks, whatever their parts and sizes, in the turn and out of it', async () => {
    let number = 0;
    const part = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc
        .integer({ min: 0, max: 2 * PIECE + 10 })
        .map((length) => new Uint8Array(length).map((_, i) => (i * 2_654_435_761) >>> 7)),
      fc.int32Array({ maxLength: 40 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(part, { maxLength: 4 }), { maxLength: 4 }), fc.boolean(), async (chunks, dense) => {
        const writer = await DerivedFileWriter.create(home, `f${number}`);
        for (const [i, parts] of chunks.entries()) await writer.chunk(`c${i}`, parts, dense ? 'dense' : 'fast');
        const written = await writer.finish();
        const read = (await DerivedFile.open(home, `f${number++}`))!;
        expect(read.size).toBe(written.size);
        expect(read.chunks()).toEqual(chunks.map((_, i) => `c${i}`));
        for (const [i, parts] of chunks.entries()) {
          for (const file of [written, read]) {
            expect(Buffer.compare(Buffer.from(file.readNow(`c${i}`)), bytesOf(parts))).toBe(0);
            expect(Buffer.compare(Buffer.from(await file.read(`c${i}`)), bytesOf(parts))).toBe(0);
          }
        }
      }),
      { numRuns: 40 },
    );
  });

  test('shows nothing of what it holds', async () => {
    await write(home, 'f', { secret: [Buffer.from('the quick brown fox jumps over the lazy dog '.repeat(10))] });
    const bytes = Buffer.from((await home.disk.readFile('/d/p/f'))!);
    expect(bytes.includes('quick')).toBe(false);
    expect(bytes.includes('secret')).toBe(false);
  });

  test('packs what packs, and reads views over shared memory', async () => {
    const shared = new Int32Array(new SharedArrayBuffer(4 * 100_000));
    shared.forEach((_, i) => (shared[i] = i % 7));
    await write(home, 'f', { c: [shared] });
    expect((await home.disk.size('/d/p/f'))!).toBeLessThan(shared.byteLength / 4);
    const file = (await DerivedFile.open(home, 'f'))!;
    expect([...new Int32Array(file.readNow('c').buffer)].every((value, i) => value === i % 7)).toBe(true);
  });

  test('that is not there is no file; one that was not finished, or belongs elsewhere, is refused', async () => {
    expect(await DerivedFile.open(home, 'none')).toBeUndefined();
    const writer = await DerivedFileWriter.create(home, 'begun');
    await writer.chunk('c', [new Uint8Array(1000)]);
    await expect(DerivedFile.open(home, 'begun')).rejects.toThrow('it was not finished');
    await writer.abandon();
    expect(await home.disk.list('/d/p')).toEqual([]);

    await write(home, 'f', { c: [new Uint8Array(10)] });
    await expect(DerivedFile.open({ ...home, logId: 'log-2' }, 'f')).rejects.toThrow('it belongs to another log');
    expect((await DerivedFile.open({ ...home, logId: null }, 'f'))!.logId).toBe('log-1');
    await home.disk.rename('/d/p/f', '/d/p/g');
    await expect(DerivedFile.open(home, 'g')).rejects.toThrow('it was written under another name');
    const other = await newHome();
    const stranger = await openKeyring({
      ...other,
      disk: new MemoryDisk(),
      random: new SeededRandom('2'),
      kek: new Uint8Array(32).fill(7),
      directory: '/d',
    });
    await home.disk.rename('/d/p/g', '/d/p/f');
    await expect(DerivedFile.open({ ...home, keyring: stranger }, 'f')).rejects.toThrow('its key does not open');
  });

  test('is refused with any bit flipped and at any length but its own', async () => {
    await write(home, 'f', { a: [new Uint8Array(300).map((_, i) => i)], b: [Buffer.from('b'.repeat(500))] });
    const good = (await home.disk.readFile('/d/p/f'))!;
    const readAll = async (): Promise<void> => {
      const file = (await DerivedFile.open(home, 'f'))!;
      for (const chunk of file.chunks()) file.readNow(chunk);
    };
    await readAll();
    for (let at = 0; at < good.length; at++) {
      const flipped = good.slice();
      flipped[at]! ^= 1 << (at % 8);
      await home.disk.replaceFile('/d/p/f', flipped);
      await expect(readAll(), `byte ${at}`).rejects.toThrow(DerivedFileError);
    }
    for (let length = 0; length < good.length; length += 7) {
      await home.disk.replaceFile('/d/p/f', good.slice(0, length));
      await expect(readAll(), `cut at ${length}`).rejects.toThrow(DerivedFileError);
    }
  });

  test('believes no piece in the place of another', async () => {
    const one = new SeededRandom('piece').fill(new Uint8Array(PIECE));
    const other = one.map((byte) => byte ^ 255);
    await write(home, 'f', { c: [one, other] });
    const good = (await home.disk.readFile('/d/p/f'))!;
    const first = good.length - 1;
    expect(first).toBeGreaterThan(2 * PIECE);
    const head = 12 + Buffer.from(good).readUInt32LE(8);
    const stored = PIECE + 16;
    const swapped = good.slice();
    swapped.set(good.subarray(head + stored, head + 2 * stored), head);
    swapped.set(good.subarray(head, head + stored), head + stored);
    await home.disk.replaceFile('/d/p/f', swapped);
    const file = (await DerivedFile.open(home, 'f'))!;
    expect(() => file.readNow('c')).toThrow('a seal in it is broken');
  });
});
