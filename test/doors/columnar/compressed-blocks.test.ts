/** Compressed blocks: the hash and the framing against what ClickHouse itself has sent. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { cityHashCode } from '../../../src/doors/columnar/city-hash-code.ts';
import { hashOf } from '../../../src/doors/columnar/city-hash.ts';
import { toCompressedBlocks, compressedBlockOf, decompressBlock } from '../../../src/doors/columnar/compressed-blocks.ts';
import { ServiceError } from '../../../src/errors.ts';
// @ts-expect-error: a script without types
import { compiledModule } from '../../../scripts/kernels.mjs';
import { recordedFrames } from './recorded-frames.ts';

const frames = recordedFrames.map((hex) => Buffer.from(hex, 'hex'));

function rawOf(bytes: Buffer): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const frame = decompressBlock(bytes, at);
    if ('needs' in frame) throw new Error(`a frame needs ${frame.needs} bytes`);
    pieces.push(frame.raw);
    at = frame.end;
  }
  return Buffer.concat(pieces);
}

test('The module is what its source compiles to', async () => {
  const file = await (compiledModule as (name: string) => Promise<string>)('city-hash');
  expect(file).toContain(cityHashCode.slice(0, 100));
  const lines = [...file.matchAll(/^ {2}'(.*)',$/gm)].map(([, line]) => line);
  expect(lines.join('')).toBe(cityHashCode);
});

test.each(frames.map((frame) => [frame.length - 16, frame] as const))(
  '%i bytes are hashed as ClickHouse does',
  (_length, frame) => {
    expect(Buffer.from(hashOf(frame.subarray(16))).toString('hex')).toBe(frame.toString('hex', 0, 16));
  },
);

test('Every length is: clickhouse-server 18.16.1 has taken each of these as the checksum of a statement', () => {
  const all = createHash('sha256');
  for (let length = 8; length < 700; length++) all.update(hashOf(statementFrame(length)));
  expect(all.digest('hex')).toBe('b924af1b8622ad676dcbfbce94ef08685334b6973b62377f68691cfd2729f4ad');
});

/** Behind the checksum: a statement of so many bytes, not compressed. */
function statementFrame(length: number): Buffer {
  const letters = Array.from({ length: Math.max(0, length - 12) }, (_, i) => String.fromCharCode(97 + ((i * 7 + length) % 26)));
  const frame = Buffer.alloc(9 + length, ' ');
  frame[0] = 2;
  frame.writeUInt32LE(9 + length, 1);
  frame.writeUInt32LE(length, 5);
  frame.write('SELECT 1', 9);
  if (length >= 20) frame.write(`/*${letters.join('')}*/`, 17);
  return frame;
}

test('Every frame that it sent is read, and one byte off is none', () => {
  for (const frame of frames) {
    const whole = decompressBlock(frame, 0);
    expect(whole).toMatchObject({ end: frame.length });
    for (let cut = 0; cut < frame.length; cut++) {
      const needs = decompressBlock(frame.subarray(0, cut), 0);
      expect('needs' in needs && needs.needs > cut).toBe(true);
    }
    for (let at = 0; at < frame.length; at++) {
      const spoilt = Buffer.from(frame);
      spoilt[at]! ^= 0x10;
      const read = (): unknown => {
        const answer = decompressBlock(spoilt, 0);
        if ('needs' in answer) throw new ServiceError('REL_INVALID', 'it waits for more, and is cut off');
        return answer;
      };
      expect(read).toThrow(ServiceError);
    }
  }
});

test('What is framed is read as it was, whatever pieces it came in', () => {
  const bytes = Buffer.alloc(40_000, 'abcdefg hij');
  const pieces = [bytes.subarray(0, 1), Buffer.alloc(0), bytes.subarray(1, 30_000), bytes.subarray(30_000)];
  expect(rawOf(Buffer.concat([...toCompressedBlocks(pieces)]))).toEqual(bytes);
});

test('Long pieces leave in frames of 256 KiB', () => {
  const lengths = [...toCompressedBlocks([Buffer.alloc(600_000, 'x')])].map((frame) => Buffer.from(frame).readUInt32LE(16 + 5));
  expect(lengths).toEqual([262_144, 262_144, 600_000 - 2 * 262_144]);
});

/** A frame that says so of itself, under the checksum that fits. */
function lying(edit: (frame: Buffer) => void): Buffer {
  const frame = compressedBlockOf(Buffer.from('0123456789'));
  edit(frame);
  frame.set(hashOf(frame.subarray(16)), 0);
  return frame;
}

test.each([
  ['a length beyond what clients send', (frame: Buffer) => frame.writeUInt32LE(0xffff_ffff, 17)],
  ['a length that is none', (frame: Buffer) => frame.writeUInt32LE(9, 17)],
  ['more once it is read than LZ4 can hold', (frame: Buffer) => frame.writeUInt32LE(60_000, 21)],
  ['gigabytes once it is read', (frame: Buffer) => frame.writeUInt32LE(0x7fff_ffff, 21)],
  ['less once it is read than there is', (frame: Buffer) => frame.writeUInt32LE(3, 21)],
  ['another method', (frame: Buffer) => frame.writeUInt8(0x91, 16)],
  ['ZSTD', (frame: Buffer) => frame.writeUInt8(0x90, 16)],
])('A frame that says %s is refused', (_what, edit) => {
  expect(() => decompressBlock(lying(edit), 0)).toThrow(ServiceError);
});
