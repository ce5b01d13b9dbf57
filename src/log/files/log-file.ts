/**
 * One append-only file of frames, and the judgement of its tail. A frame is what one write and one fsync carry.
 *
 *   file header   +---------------+-------------+----------+----------------+--------------------+
 *   (64 bytes)    | "ANNALLOG"    | format u32  | file u32 | first leaf u64 | first position u64 |
 *                 +---------------+-------------+----------+----------------+--------------------+
 *                 | log id [16]   | zero u64    | xxh64 of the 56 bytes before                    |
 *                 +---------------+-------------+-------------------------------------------------+
 *   frame header  +---------------+-------------+----------+----------------+--------------------+
 *   (56 bytes)    | "ANLF"        | format u32  | size u32 | entries u32    | file u32, zero u32 |
 *                 +---------------+-------------+----------+----------------+--------------------+
 *                 | offset u64    | first leaf u64         | durable through u64                 |
 *                 +---------------+------------------------+-------------------------------------+
 *                 | xxh64 of the 48 bytes before and all entries                                 |
 *                 +------------------------------------------------------------------------------+
 *   entry         | leaf size u32 | payload size u32 | redacted u8, zero [3] | leaf | payload     |
 *
 * `size` counts the bytes of the entries. `durable through` is how many leaves were known fsynced when the frame was
 * written: a later frame's word that what comes before it was on disk. A frame knows its own file and offset, so one
 * that landed elsewhere, or was left by another file, is not a frame. The checksum finds torn and rotten bytes; what
 * proves is the hash chain inside. Zeros never parse as a frame: files may grow by zeros ahead of the data.
 * Changing this needs a new format and a fixture.
 */
import xxhash from 'xxhash-wasm';
import { assert } from '../../errors.ts';
import { ByteReader, ByteWriter, malformedError } from '../bytes/byte-stream.ts';
import type { DiskFile } from '../disk/disk.ts';
import type { EncodedEntry } from '../entries/entry-codec.ts';

export const FILE_FORMAT = 1;
export const FILE_HEADER_BYTES = 64;
export const FRAME_HEADER_BYTES = 56;
export const ENTRY_HEADER_BYTES = 12;
export const FRAME_BYTES_MAX = 2 ** 31;

const FRAME_CHECKSUM_AT = 48;
const SCAN_CHUNK_BYTES = 1 << 20;
const zeroFilling = Buffer.alloc(1 << 16);
const logFileMagic = Buffer.from('ANNALLOG', 'latin1');
const logFrameMagic = Buffer.from('ANLF', 'latin1');

const { h64Raw } = await xxhash();

export interface FileHeader {
  readonly file: number;
  readonly firstLeaf: number;
  readonly firstPosition: number;
  /** 32 hex digits. */
  readonly logId: string;
}

export interface FrameHeader {
  readonly file: number;
  readonly offset: number;
  readonly size: number;
  readonly entries: number;
  readonly firstLeaf: number;
  readonly durableThrough: number;
}

/** An entry inside a frame, as views. */
export interface FrameEntry {
  readonly leaf: Uint8Array;
  readonly payload: Uint8Array;
  readonly redacted: boolean;
}

export function encodeFileHeader(fileHeader: FileHeader): Uint8Array {
  const fileHeaderWriter = new ByteWriter(FILE_HEADER_BYTES);
  fileHeaderWriter.raw(logFileMagic);
  fileHeaderWriter.u32(FILE_FORMAT);
  fileHeaderWriter.u32(fileHeader.file);
  fileHeaderWriter.u64(fileHeader.firstLeaf);
  fileHeaderWriter.u64(fileHeader.firstPosition);
  fileHeaderWriter.raw(Buffer.from(fileHeader.logId, 'hex'));
  fileHeaderWriter.u64(0);
  const headerChecksum = h64Raw(fileHeaderWriter.view(), 0n);
  fileHeaderWriter.i64(BigInt.asIntN(64, headerChecksum));
  assert(fileHeaderWriter.length === FILE_HEADER_BYTES, 'the file header is 64 bytes');
  return fileHeaderWriter.take();
}

export function decodeFileHeader(fileHeaderBytes: Uint8Array): FileHeader {
  if (fileHeaderBytes.length < FILE_HEADER_BYTES) throw malformedError('a file shorter than its header');
  const fileHeaderReader = new ByteReader(fileHeaderBytes.subarray(0, FILE_HEADER_BYTES));
  if (!logFileMagic.equals(fileHeaderReader.raw(8))) throw malformedError('not a log file');
  const fileFormat = fileHeaderReader.u32();
  if (fileFormat !== FILE_FORMAT) throw malformedError(`log file format ${fileFormat}; this version reads ${FILE_FORMAT}`);
  const file = fileHeaderReader.u32();
  const firstLeaf = fileHeaderReader.u64();
  const firstPosition = fileHeaderReader.u64();
  const logId = Buffer.from(fileHeaderReader.raw(16)).toString('hex');
  if (fileHeaderReader.u64() !== 0) throw malformedError('a file header with unknown fields');
  if (BigInt.asUintN(64, fileHeaderReader.i64()) !== h64Raw(fileHeaderBytes.subarray(0, 56), 0n))
    throw malformedError('a file header that fails its checksum');
  return { file, firstLeaf, firstPosition, logId };
}

/** Bytes that a frame of these entries takes. */
export function frameBytes(encodedEntries: readonly Pick<EncodedEntry, 'leaf' | 'payload'>[]): number {
  let frameSize = FRAME_HEADER_BYTES;
  for (const { leaf, payload } of encodedEntries) frameSize += ENTRY_HEADER_BYTES + leaf.length + payload.length;
  return frameSize;
}

/** One frame of `entries`, followed by `zeroBytes` bytes of zeros; in the memory that `allocateFrame` gives for so many bytes. */
export function encodeFrame(
  frame: Pick<FrameHeader, 'file' | 'offset' | 'durableThrough'>,
  entries: readonly EncodedEntry[],
  zeroBytes: number,
  allocateFrame: (bytes: number) => Buffer = Buffer.allocUnsafe,
): Uint8Array {
  return encodeStored({ ...frame, firstLeaf: entries[0]!.entry.leaf }, entries, zeroBytes, allocateFrame);
}

/** Encodes a frame of entries that were stored before. */
export function encodeStored(
  header: Pick<FrameHeader, 'file' | 'offset' | 'durableThrough' | 'firstLeaf'>,
  entries: readonly (Pick<FrameEntry, 'leaf' | 'payload'> & Partial<FrameEntry>)[],
  zeroBytes = 0,
  allocateFrame: (frameSize: number) => Buffer = Buffer.allocUnsafe,
): Uint8Array {
  const frameSize = frameBytes(entries);
  const frame = allocateFrame(frameSize + zeroBytes);
  const frameView = new DataView(frame.buffer, frame.byteOffset, frame.length);
  frame.set(logFrameMagic, 0);
  frameView.setUint32(4, FILE_FORMAT, true);
  frameView.setUint32(8, frameSize - FRAME_HEADER_BYTES, true);
  frameView.setUint32(12, entries.length, true);
  frameView.setUint32(16, header.file, true);
  frameView.setUint32(20, 0, true);
  frameView.setBigUint64(24, BigInt(header.offset), true);
  frameView.setBigUint64(32, BigInt(header.firstLeaf), true);
  frameView.setBigUint64(40, BigInt(header.durableThrough), true);
  let entryOffset = FRAME_HEADER_BYTES;
  for (const { leaf, payload, redacted } of entries) {
    frameView.setUint32(entryOffset, leaf.length, true);
    frameView.setUint32(entryOffset + 4, payload.length, true);
    frameView.setUint32(entryOffset + 8, redacted === true ? 1 : 0, true);
    frame.set(leaf, entryOffset + ENTRY_HEADER_BYTES);
    frame.set(payload, entryOffset + ENTRY_HEADER_BYTES + leaf.length);
    entryOffset += ENTRY_HEADER_BYTES + leaf.length + payload.length;
  }
  frame.fill(0, entryOffset);
  frameView.setBigUint64(FRAME_CHECKSUM_AT, frameChecksum(frame.subarray(0, frameSize)), true);
  return frame;
}

/** The header at the start of `frameHeaderBytes` if one is there, for this place; it says nothing yet about the checksum. */
export function decodeFrameHeader(
  frameHeaderBytes: Uint8Array,
  fileNumber: number,
  frameOffset: number,
): FrameHeader | undefined {
  if (frameHeaderBytes.length < FRAME_HEADER_BYTES || !logFrameMagic.equals(frameHeaderBytes.subarray(0, 4))) return undefined;
  const frameHeaderReader = new ByteReader(frameHeaderBytes.subarray(4, FRAME_HEADER_BYTES));
  try {
    const frameFormat = frameHeaderReader.u32();
    const frameBodySize = frameHeaderReader.u32();
    const entryCount = frameHeaderReader.u32();
    const isInPlace =
      frameHeaderReader.u32() === fileNumber && frameHeaderReader.u32() === 0 && frameHeaderReader.u64() === frameOffset;
    const frameHeader = {
      file: fileNumber,
      offset: frameOffset,
      size: frameBodySize,
      entries: entryCount,
      firstLeaf: frameHeaderReader.u64(),
      durableThrough: frameHeaderReader.u64(),
    };
    const isPlausible = frameBodySize <= FRAME_BYTES_MAX && entryCount > 0 && entryCount * ENTRY_HEADER_BYTES <= frameBodySize;
    return frameFormat === FILE_FORMAT && isInPlace && isPlausible ? frameHeader : undefined;
  } catch {
    return undefined;
  }
}

/** `frameBytesRead` starts at its header and ends with its last entry. */
export function frameIsWhole(frameBytesRead: Uint8Array): boolean {
  const frameView = new DataView(frameBytesRead.buffer, frameBytesRead.byteOffset, frameBytesRead.length);
  return frameView.getBigUint64(FRAME_CHECKSUM_AT, true) === frameChecksum(frameBytesRead);
}

/** Entries of a frame that is whole. Throws REL_STORAGE where their sizes don't add up. */
export function frameEntries(frame: Uint8Array, header: Pick<FrameHeader, 'entries'>): FrameEntry[] {
  const frameReader = new ByteReader(frame.subarray(FRAME_HEADER_BYTES));
  const storedEntries: FrameEntry[] = [];
  for (let entriesLeft = header.entries; entriesLeft > 0; entriesLeft--) {
    const leafSize = frameReader.u32();
    const payloadSize = frameReader.u32();
    const redacted = frameReader.flag();
    if (frameReader.u8() !== 0 || frameReader.u16() !== 0) throw malformedError('an entry with unknown flags');
    storedEntries.push({ leaf: frameReader.raw(leafSize), payload: frameReader.raw(payloadSize), redacted });
  }
  frameReader.end();
  return storedEntries;
}

function frameChecksum(frameBytesRead: Uint8Array): bigint {
  // Seeded with the sum of the header, so that the field itself needs no blanking.
  return h64Raw(frameBytesRead.subarray(FRAME_HEADER_BYTES), h64Raw(frameBytesRead.subarray(0, FRAME_CHECKSUM_AT), 0n));
}

export const failsChecksum = 'a frame that fails its checksum';

export type Scanned =
  | { readonly result: 'frame'; readonly header: FrameHeader; readonly bytes: Uint8Array }
  /** Nothing but zeros from here to the end, or the end itself. */
  | { readonly result: 'end' }
  /** Bytes that are no frame. */
  | { readonly result: 'bad'; readonly reason: string };

/** Reads a log file from front to back through one buffer. Never reads or allocates past the end of the file. */
export class FrameScanner {
  readonly #scannedFile: DiskFile;
  readonly #fileNumber: number;
  readonly #scannedLength: number;
  readonly #scanChunkBytes: number;
  readonly #sharesMemory: boolean;
  #scanBuffer: Uint8Array = new Uint8Array(0);
  #scanBufferOffset = 0;
  readonly #freeMemories: ArrayBufferLike[] = [];
  /** Where the next frame is expected. */
  offset: number;

  /** `chunkBytes` is how much is read ahead; `sharesMemory`: into memory that other threads can read. */
  constructor(
    scannedFile: DiskFile,
    fileNumber: number,
    scannedLength: number,
    offset = FILE_HEADER_BYTES,
    {
      chunkBytes = SCAN_CHUNK_BYTES,
      shared: sharesMemory = false,
    }: { readonly chunkBytes?: number; readonly shared?: boolean } = {},
  ) {
    this.#scannedFile = scannedFile;
    this.#fileNumber = fileNumber;
    this.#scannedLength = scannedLength;
    this.#scanChunkBytes = chunkBytes;
    this.#sharesMemory = sharesMemory;
    this.offset = offset;
  }

  /** The frame at `offset`, which moves past it; `end` and `bad` leave it where it is. `checksFrame`: its checksum is held against it. */
  async next(checksFrame = true): Promise<Scanned> {
    const bytesLeft = this.#scannedLength - this.offset;
    if (bytesLeft <= 0) return { result: 'end' };
    const frameHead = await this.#readScanned(this.offset, Math.min(bytesLeft, FRAME_HEADER_BYTES));
    const frameHeader = decodeFrameHeader(frameHead, this.#fileNumber, this.offset);
    if (!frameHeader)
      return (await this.#hasOnlyZerosFrom(this.offset)) ? { result: 'end' } : { result: 'bad', reason: 'no frame header' };
    const frameSize = FRAME_HEADER_BYTES + frameHeader.size;
    if (frameSize > bytesLeft) return { result: 'bad', reason: 'a frame longer than the file' };
    const wholeFrame = await this.#readScanned(this.offset, frameSize);
    if (checksFrame && !frameIsWhole(wholeFrame)) return { result: 'bad', reason: failsChecksum };
    this.offset += frameSize;
    return { result: 'frame', header: frameHeader, bytes: wholeFrame };
  }

  /** Frames anywhere after `offset`, at any byte: evidence about a bad frame. */
  async *later(): AsyncGenerator<FrameHeader> {
    let searchOffset = this.offset + 1;
    while (searchOffset + FRAME_HEADER_BYTES <= this.#scannedLength) {
      const searchWindow = await this.#readScanned(searchOffset, Math.min(SCAN_CHUNK_BYTES, this.#scannedLength - searchOffset));
      const magicIndex = Buffer.from(searchWindow.buffer, searchWindow.byteOffset, searchWindow.length).indexOf(logFrameMagic);
      if (magicIndex < 0) {
        searchOffset += Math.max(1, searchWindow.length - logFrameMagic.length + 1);
        continue;
      }
      searchOffset += magicIndex;
      const laterFrame = await this.#findWholeFrame(searchOffset);
      if (laterFrame) yield laterFrame;
      searchOffset += laterFrame ? FRAME_HEADER_BYTES + laterFrame.size : 1;
    }
  }

  /** Offset just after the last byte that is not zero; `offset` when all are. */
  async dataEnd(): Promise<number> {
    let lastDataEnd = this.offset;
    for (let searchOffset = this.offset; searchOffset < this.#scannedLength; ) {
      const searchWindow = await this.#readScanned(searchOffset, Math.min(SCAN_CHUNK_BYTES, this.#scannedLength - searchOffset));
      for (let i = searchWindow.length - 1; i >= 0; i--) {
        if (searchWindow[i] !== 0) {
          lastDataEnd = searchOffset + i + 1;
          break;
        }
      }
      searchOffset += searchWindow.length;
    }
    return lastDataEnd;
  }

  async #findWholeFrame(frameOffset: number): Promise<FrameHeader | undefined> {
    if (this.#scannedLength - frameOffset < FRAME_HEADER_BYTES) return undefined;
    const frameHeader = decodeFrameHeader(
      await this.#readScanned(frameOffset, FRAME_HEADER_BYTES),
      this.#fileNumber,
      frameOffset,
    );
    if (!frameHeader || FRAME_HEADER_BYTES + frameHeader.size > this.#scannedLength - frameOffset) return undefined;
    const wholeFrame = await this.#readScanned(frameOffset, FRAME_HEADER_BYTES + frameHeader.size);
    return frameIsWhole(wholeFrame) ? frameHeader : undefined;
  }

  async #hasOnlyZerosFrom(offset: number): Promise<boolean> {
    for (let zeroOffset = offset; zeroOffset < this.#scannedLength; ) {
      const zeroWindow = await this.#readScanned(zeroOffset, Math.min(zeroFilling.length, this.#scannedLength - zeroOffset));
      if (!zeroFilling.subarray(0, zeroWindow.length).equals(zeroWindow)) return false;
      zeroOffset += zeroWindow.length;
    }
    return true;
  }

  /** Returns memory whose frames are not in use: later reads may fill it. False while the scanner itself uses it. */
  release(freedMemory: ArrayBufferLike): boolean {
    if (freedMemory === this.#scanBuffer.buffer) return false;
    this.#freeMemories.push(freedMemory);
    return true;
  }

  /** To touch fresh memory for the first time takes longer than to read into it. */
  #takeMemory(memoryBytes: number): Uint8Array {
    const freedMemory = this.#freeMemories.pop();
    if (freedMemory && freedMemory.byteLength >= memoryBytes) return new Uint8Array(freedMemory, 0, memoryBytes);
    return new Uint8Array(this.#sharesMemory ? new SharedArrayBuffer(memoryBytes) : new ArrayBuffer(memoryBytes));
  }

  /** A view of `readSize` bytes at `offset`, from the buffer where it has them. Valid until the next read. */
  async #readScanned(offset: number, readSize: number): Promise<Uint8Array> {
    const bufferOffset = offset - this.#scanBufferOffset;
    if (bufferOffset >= 0 && bufferOffset + readSize <= this.#scanBuffer.length)
      return this.#scanBuffer.subarray(bufferOffset, bufferOffset + readSize);
    const chunkLength = Math.min(Math.max(readSize, this.#scanChunkBytes), this.#scannedLength - offset);
    const chunkBuffer = this.#takeMemory(chunkLength);
    await readFully(this.#scannedFile, chunkBuffer, offset);
    this.#scanBuffer = chunkBuffer;
    this.#scanBufferOffset = offset;
    return chunkBuffer.subarray(0, readSize);
  }
}

export type TailVerdict =
  /** The file ends where its last frame ends, save for zeros ahead of the data. */
  | { readonly tail: 'clean' }
  /** Bytes that nothing claims as durable: they may be cut. */
  | { readonly tail: 'torn' }
  | { readonly tail: 'corrupt'; readonly reason: string };

export interface TailEvidence {
  /** Leaves read whole before the tail. */
  readonly leaves: number;
  /** Why the first bytes behind the last frame are no frame; null where the file just ends. */
  readonly bad: string | null;
  /** The manifest says that the file is final. */
  readonly sealed: boolean;
  /** Most leaves that any whole frame after the tail says were durable; null without such a frame. */
  readonly laterClaim: number | null;
  /** Leaves before a next file that was begun, which happens only after this one was fsynced; null without one. */
  readonly nextFileLeaf: number | null;
  /** Leaves that the signed checkpoint says were durable. */
  readonly checkpointSize: number;
}

/** Only a tail that no seal, no later frame or file and no signed head claims as durable may be cut. Pure. */
export function judgeTail(evidence: TailEvidence): TailVerdict {
  const { leaves, bad, sealed, laterClaim, nextFileLeaf, checkpointSize } = evidence;
  const tailFault = bad ?? 'the file ends';
  const corruptTail = (reason: string): TailVerdict => ({ tail: 'corrupt', reason: `${tailFault}, and ${reason}` });
  if (checkpointSize > leaves) return corruptTail(`the signed checkpoint covers ${checkpointSize} leaves`);
  if (nextFileLeaf !== null && nextFileLeaf > leaves) return corruptTail(`the next file begins at leaf ${nextFileLeaf}`);
  if (bad === null) return { tail: 'clean' };
  if (sealed) return corruptTail('the file is sealed');
  if (laterClaim !== null && laterClaim > leaves) return corruptTail(`a later frame says that ${laterClaim} leaves were durable`);
  return { tail: 'torn' };
}

/** Fills `readBuffer`; throws when the file is shorter than it said. */
export async function readFully(file: DiskFile, readBuffer: Uint8Array, offset: number): Promise<void> {
  for (let filledBytes = 0; filledBytes < readBuffer.length; ) {
    const readCount = await file.read(filledBytes === 0 ? readBuffer : readBuffer.subarray(filledBytes), offset + filledBytes);
    if (readCount === 0) throw malformedError(`${file.path} ended early`);
    filledBytes += readCount;
  }
}
