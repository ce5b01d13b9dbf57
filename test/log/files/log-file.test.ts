import { expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { type DiskFile, writeFully } from '../../../src/log/disk/disk.ts';
import { EntrySealer, noPreviousHash } from '../../../src/log/entries/entry-codec.ts';
import {
  decodeFileHeader,
  decodeFrameHeader,
  encodeFileHeader,
  encodeFrame,
  FILE_HEADER_BYTES,
  FRAME_HEADER_BYTES,
  FrameScanner,
  frameBytes,
  frameEntries,
  frameIsWhole,
  readFully,
} from '../../../src/log/files/log-file.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { all, keyringOf, rowsDraft, SeededRandom, worldOn } from '../world.ts';

const keyring = await keyringOf(worldOn(new MemoryDisk()));
const sealer = new EntrySealer(keyring, new SeededRandom());
const entries = ['a', 'b', 'c'].map((key, leaf) =>
  sealer.encode(rowsDraft([key]), { leaf, position: leaf, time: BigInt(leaf) }, noPreviousHash),
);
const place = { file: 3, offset: 64, durableThrough: 0 };
const frame = encodeFrame(place, entries, 0);

async function fileOf(...parts: readonly Uint8Array[]): Promise<DiskFile> {
  const disk = new MemoryDisk();
  const file = await disk.open('/f', 'create');
  await writeFully(file, Buffer.concat(parts), 0);
  return file;
}

test('a file header reads back, and every changed bit of it is found', () => {
  const header = { file: 7, firstLeaf: 2 ** 40, firstPosition: 2 ** 41 + 1, logId: 'ab'.repeat(16) };
  const bytes = encodeFileHeader(header);
  expect(bytes.length).toBe(FILE_HEADER_BYTES);
  expect(decodeFileHeader(bytes)).toEqual(header);
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = bytes.slice();
    changed[bit >> 3]! ^= 1 << (bit & 7);
    expect(() => decodeFileHeader(changed), `bit ${bit}`).toThrow(ServiceError);
  }
  expect(() => decodeFileHeader(bytes.subarray(0, 63))).toThrow(ServiceError);
});

test('a frame reads back entry for entry, with zeros after it that are no part of it', () => {
  const padded = encodeFrame(place, entries, 100);
  expect(Buffer.from(padded.subarray(0, frame.length)).equals(frame)).toBe(true);
  expect(padded.subarray(frame.length).every((byte) => byte === 0)).toBe(true);
  const header = decodeFrameHeader(frame, 3, 64)!;
  expect(header).toEqual({
    file: 3,
    offset: 64,
    size: frameBytes(entries) - FRAME_HEADER_BYTES,
    entries: 3,
    firstLeaf: 0,
    durableThrough: 0,
  });
  expect(frameIsWhole(frame)).toBe(true);
  expect(frameEntries(frame, header).map(({ leaf, payload }) => [Buffer.from(leaf), Buffer.from(payload)])).toEqual(
    entries.map(({ leaf, payload }) => [Buffer.from(leaf), Buffer.from(payload)]),
  );
});

test('every changed bit of a frame is found by its header or its checksum', () => {
  for (let bit = 0; bit < frame.length * 8; bit++) {
    const changed = Buffer.from(frame);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    const header = decodeFrameHeader(changed, 3, 64);
    const accepted = header && header.size === frame.length - FRAME_HEADER_BYTES && frameIsWhole(changed);
    expect(accepted ?? false, `bit ${bit}`).toBe(false);
  }
});

test('a frame is one only in its own file and at its own offset', () => {
  expect(decodeFrameHeader(frame, 3, 64)).toBeDefined();
  expect(decodeFrameHeader(frame, 4, 64)).toBeUndefined();
  expect(decodeFrameHeader(frame, 3, 65)).toBeUndefined();
  expect(decodeFrameHeader(new Uint8Array(FRAME_HEADER_BYTES), 3, 64)).toBeUndefined();
});

test('a scan tells the end of the data from bytes that are no frame', async () => {
  const head = encodeFileHeader({ file: 3, firstLeaf: 0, firstPosition: 0, logId: '0'.repeat(32) });
  const found = async (...parts: readonly Uint8Array[]): Promise<string[]> => {
    const file = await fileOf(head, ...parts);
    const scanner = new FrameScanner(file, 3, await file.size());
    const seen: string[] = [];
    for (;;) {
      const scanned = await scanner.next();
      seen.push(scanned.result);
      if (scanned.result !== 'frame') return seen;
    }
  };
  expect(await found()).toEqual(['end']);
  expect(await found(frame)).toEqual(['frame', 'end']);
  expect(await found(frame, Buffer.alloc(100_000))).toEqual(['frame', 'end']);
  expect(await found(frame, Buffer.alloc(100_000), Buffer.of(1))).toEqual(['frame', 'bad']);
  expect(await found(frame.subarray(0, -1))).toEqual(['bad']);
  expect(await found(frame, Buffer.from('ANLF'))).toEqual(['frame', 'bad']);
  const lie = Buffer.from(frame);
  lie.writeUInt32LE(0x7fffffff, 8);
  expect(await found(lie)).toEqual(['bad']);
});

test('whole frames after bad bytes are found at any offset, however far', async () => {
  const gap = 3 << 20;
  const far = encodeFrame({ file: 3, offset: 64 + gap, durableThrough: 2 }, entries, 0);
  const near = encodeFrame({ file: 3, offset: 64 + 17, durableThrough: 1 }, entries, 0);
  const bytes = Buffer.alloc(64 + gap, 0xee);
  bytes.set(near, 64 + 17);
  bytes.write('ANLF', (1 << 20) - 2, 'latin1');
  const file = await fileOf(bytes, far);
  const scanner = new FrameScanner(file, 3, await file.size());
  expect((await all(scanner.later())).map(({ offset, durableThrough }) => [offset, durableThrough])).toEqual([
    [81, 1],
    [64 + gap, 2],
  ]);
  expect(await scanner.dataEnd()).toBe(64 + gap + far.length);
});

test('a scanner reads into memory that was released, and never into memory that it shows', async () => {
  const head = encodeFileHeader({ file: 3, firstLeaf: 0, firstPosition: 0, logId: '0'.repeat(32) });
  const many = Array.from({ length: 40 }, (_, i) => encodeFrame({ ...place, offset: 64 + i * frame.length }, entries, 0));
  const file = await fileOf(head, ...many);
  const scanner = new FrameScanner(file, 3, await file.size(), undefined, { chunkBytes: frame.length * 3 });
  const memories = new Set<ArrayBufferLike>();
  let last: Uint8Array | null = null;
  let frames = 0;
  for (;;) {
    const scanned = await scanner.next();
    if (scanned.result !== 'frame') break;
    const { bytes } = scanned;
    memories.add(bytes.buffer);
    if (last && last.buffer !== bytes.buffer && scanner.release(last.buffer)) new Uint8Array(last.buffer).fill(0xdd);
    last = bytes;
    expect(scanner.release(bytes.buffer)).toBe(false);
    frames++;
  }
  expect(frames).toBe(40);
  expect(memories.size).toBe(2);
});

test('short reads and writes are continued; a file shorter than it said is an error', async () => {
  const inner = await fileOf();
  const stingy: DiskFile = {
    path: '/f',
    size: () => inner.size(),
    read: (target, offset) => inner.read(target.subarray(0, 3), offset),
    readNow: (target, offset) => inner.readNow(target.subarray(0, 3), offset),
    write: (source, offset) => inner.write(source.subarray(0, 2), offset),
    sync: () => inner.sync(),
    truncate: (length) => inner.truncate(length),
    close: () => inner.close(),
  };
  await writeFully(stingy, frame, 5);
  const back = new Uint8Array(frame.length);
  await readFully(stingy, back, 5);
  expect(Buffer.from(back).equals(frame)).toBe(true);
  await expect(readFully(stingy, new Uint8Array(10), frame.length)).rejects.toMatchObject({ code: 'REL_STORAGE' });
});

test('entries whose sizes do not add up are refused', () => {
  const header = decodeFrameHeader(frame, 3, 64)!;
  for (const [at, value] of [
    [FRAME_HEADER_BYTES, 0xffffffff],
    [FRAME_HEADER_BYTES, 0],
    [FRAME_HEADER_BYTES + 4, 0x7fffffff],
    [FRAME_HEADER_BYTES + 8, 2],
    [FRAME_HEADER_BYTES + 8, 0x100],
  ] as const) {
    const changed = Buffer.from(frame);
    changed.writeUInt32LE(value, at);
    expect(() => frameEntries(changed, header)).toThrow(ServiceError);
  }
  expect(() => frameEntries(frame, { ...header, entries: 2 })).toThrow(ServiceError);
  expect(() => frameEntries(frame, { ...header, entries: 4 })).toThrow(ServiceError);
});
