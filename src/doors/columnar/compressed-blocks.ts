/**
 * Compressed blocks of ClickHouse's protocol, one frame after the other:
 *
 *   CityHash128 of all that follows [16] · method [1] · length from the method on [4] · length once it is read [4] · bytes
 *
 * Methods are 0x82, LZ4 without the length that the library puts before it, and 0x02, bytes as they are.
 */
import { compressSync, uncompressSync } from 'lz4-napi';
import { ServiceError } from '../../errors.ts';
import { HASH_BYTES, hashOf, putHash } from './city-hash.ts';

const frameHeadBytes = 9;
const compressionMethods = { lz4: 0x82, none: 0x02, zstd: 0x90 } as const;
/** The most bytes of a sent frame before compression: some half a millisecond of work. */
const sentFrameBytes = 256 << 10;
/** Clients send frames of empty blocks: a few bytes. A longer frame is refused before room is made for it. */
const takenFrameBytesMax = 64 << 10;
/** No LZ4 is longer by more than this once it is read. */
const lz4ExpansionMax = 255;

const frameRefusal = (frameProblem: string): ServiceError => new ServiceError('REL_INVALID', frameProblem);

/** The same bytes in frames; empty pieces, where others may have a turn, stay where they are. */
export function* toCompressedBlocks(pieces: Iterable<Uint8Array>): Generator<Uint8Array, void> {
  const raw = Buffer.allocUnsafe(sentFrameBytes);
  let length = 0;
  for (const piece of pieces) {
    if (piece.length === 0) yield piece;
    for (let at = 0; at < piece.length; ) {
      const part = piece.subarray(at, at + sentFrameBytes - length);
      raw.set(part, length);
      length += part.length;
      at += part.length;
      if (length < sentFrameBytes) continue;
      yield compressedBlockOf(raw);
      length = 0;
    }
  }
  if (length > 0) yield compressedBlockOf(raw.subarray(0, length));
}

export function compressedBlockOf(raw: Buffer): Buffer {
  // The library's own length stands where the frame's does.
  const packed = compressSync(raw);
  const frame = Buffer.allocUnsafe(HASH_BYTES + frameHeadBytes - 4 + packed.length);
  frame[HASH_BYTES] = compressionMethods.lz4;
  frame.writeUInt32LE(frame.length - HASH_BYTES, HASH_BYTES + 1);
  frame.set(packed, HASH_BYTES + 5);
  putHash(frame, 0, frame.length);
  return frame;
}

export type DecompressedBlock = { readonly raw: Buffer; readonly end: number } | { readonly needs: number };

/**
 * The content of the frame at `at` and its end; or the number of bytes that must be there first. REL_INVALID where no frame
 * begins.
 */
export function decompressBlock(bytes: Buffer, at: number): DecompressedBlock {
  const head = at + HASH_BYTES;
  const from = head + frameHeadBytes;
  if (bytes.length < from) return { needs: from };
  const method = bytes[head]!;
  const packed = bytes.readUInt32LE(head + 1) - frameHeadBytes;
  const length = bytes.readUInt32LE(head + 5);
  if (method === compressionMethods.zstd)
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'blocks are compressed by LZ4: choose it in place of ZSTD');
  if (method !== compressionMethods.lz4 && method !== compressionMethods.none)
    throw frameRefusal(`a block is compressed by the unknown method ${method}`);
  if (packed <= 0 || packed > takenFrameBytesMax || length > takenFrameBytesMax || length > packed * lz4ExpansionMax)
    throw frameRefusal('a compressed block states more bytes than clients may send here');
  const end = from + packed;
  if (bytes.length < end) return { needs: end };
  if (!bytes.subarray(at, head).equals(hashOf(bytes.subarray(head, end))))
    throw frameRefusal('a compressed block does not match its checksum');
  if (method === compressionMethods.none && packed !== length) throw frameRefusal('a block is not as long as it states');
  return {
    raw: method === compressionMethods.none ? bytes.subarray(from, end) : unpackLz4(bytes.subarray(head + 5, end), length),
    end,
  };
}

/** `packedBlock` begins with the length, as the library wants it. */
function unpackLz4(packedBlock: Buffer, rawLength: number): Buffer {
  try {
    const rawBlock = uncompressSync(packedBlock);
    if (rawBlock.length === rawLength) return rawBlock;
  } catch {
    // The library's words say nothing to a client.
  }
  throw frameRefusal('a compressed block is not valid LZ4');
}
