/**
 * Compressed blocks of the native columnar door: as they come, and under the checksum that fits, so that what stands behind it is
 * read too. What must hold: no frame holds more than it says, nothing but a ServiceError is thrown, and what is framed is read as it was.
 */
import { hashOf } from '../../../src/doors/columnar/city-hash.ts';
import { toCompressedBlocks, compressedBlockOf, decompressBlock } from '../../../src/doors/columnar/compressed-blocks.ts';
import { assert, ServiceError } from '../../../src/errors.ts';
import { recordedFrames } from '../../doors/columnar/recorded-frames.ts';

export const name = 'compressed-frames';

const longest = 64 << 10;

export function run(bytes: Uint8Array): void {
  const given = Buffer.from(bytes);
  look(given);
  if (given.length > 16) {
    const end = given.length >= 21 ? Math.min(given.length, Math.max(21, 16 + given.readUInt32LE(17))) : given.length;
    given.set(hashOf(given.subarray(16, end)), 0);
    look(given);
  }
  const raw = given.subarray(0, longest);
  if (raw.length === 0) return;
  const [frame] = [...toCompressedBlocks([raw.subarray(0, 7), raw.subarray(7)])].filter(({ length }) => length > 0) as [Buffer];
  assert(frame.equals(compressedBlockOf(raw)), 'pieces are framed together');
  const read = decompressBlock(frame, 0);
  assert('raw' in read && read.raw.equals(raw) && read.end === frame.length, 'what is framed is read as it was');
}

function look(bytes: Buffer): void {
  try {
    const read = decompressBlock(bytes, 0);
    if ('needs' in read)
      assert(read.needs > bytes.length && read.needs <= 25 + longest, 'it needs more than there is, and no more than is taken');
    else assert(read.raw.length <= longest && read.end <= bytes.length, 'it holds no more than it says');
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
}

export function seeds(): Uint8Array[] {
  return recordedFrames.map((hex) => Buffer.from(hex, 'hex'));
}
