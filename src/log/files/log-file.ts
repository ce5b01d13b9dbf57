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

const CHECKSUM_AT = 48;
const CHUNK_BYTES = 1 << 20;
const zeros = Buffer.alloc(1 << 16);
const fileMagic = Buffer.from('ANNALLOG', 'latin1');
const frameMagic = Buffer.from('ANLF', 'latin1');

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

export function encodeFileHeader(header: FileHeader): Uint8Array {
  const target = new ByteWriter(FILE_HEADER_BYTES);
  target.raw(fileMagic);
  target.u32(FILE_FORMAT);
  target.u32(header.file);
  target.u64(header.firstLeaf);
  target.u64(header.firstPosition);
  target.raw(Buffer.from(header.logId, 'hex'));
  target.u64(0);
  const sum = h64Raw(target.view(), 0n);
  target.i64(BigInt.asIntN(64, sum));
  assert(target.length === FILE_HEADER_BYTES, 'the file header is 64 bytes');
  return target.take();
}

export function decodeFileHeader(bytes: Uint8Array): FileHeader {
  if (bytes.length < FILE_HEADER_BYTES) throw malformedError('a file shorter than its header');
  const source = new ByteReader(bytes.subarray(0, FILE_HEADER_BYTES));
  if (!fileMagic.equals(source.raw(8))) throw malformedError('not a log file');
  const format = source.u32();
  if (format !== FILE_FORMAT) throw malformedError(`log file format ${format}; this version reads ${FILE_FORMAT}`);
  const file = source.u32();
  const firstLeaf = source.u64();
  const firstPosition = source.u64();
  const logId = Buffer.from(source.raw(16)).toString('hex');
  if (source.u64() !== 0) throw malformedError('a file header with unknown fields');
  if (BigInt.asUintN(64, source.i64()) !== h64Raw(bytes.subarray(0, 56), 0n))
    throw malformedError('a file header that fails its checksum');
  return { file, firstLeaf, firstPosition, logId };
}

/** Bytes that a frame of these entries takes. */
export function frameBytes(entries: readonly Pick<EncodedEntry, 'leaf' | 'payload'>[]): number {
  let bytes = FRAME_HEADER_BYTES;
  for (const { leaf, payload } of entries) bytes += ENTRY_HEADER_BYTES + leaf.length + payload.length;
  return bytes;
}

/** One frame of `entries`, followed by `zeros` bytes of zeros; in the memory that `room` gives for so many bytes. */
export function encodeFrame(
  frame: Pick<FrameHeader, 'file' | 'offset' | 'durableThrough'>,
  entries: readonly EncodedEntry[],
  zeros: number,
  room: (bytes: number) => Buffer = Buffer.allocUnsafe,
): Uint8Array {
  return encodeStored({ ...frame, firstLeaf: entries[0]!.entry.leaf }, entries, zeros, room);
}

/** Encodes a frame of entries that were stored before. */
export function encodeStored(
  header: Pick<FrameHeader, 'file' | 'offset' | 'durableThrough' | 'firstLeaf'>,
  entries: readonly (Pick<FrameEntry, 'leaf' | 'payload'> & Partial<FrameEntry>)[],
  zeros = 0,
  room: (bytes: number) => Buffer = Buffer.allocUnsafe,
): Uint8Array {
  const bytes = frameBytes(entries);
  const frame = room(bytes + zeros);
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  frame.set(frameMagic, 0);
  view.setUint32(4, FILE_FORMAT, true);
  view.setUint32(8, bytes - FRAME_HEADER_BYTES, true);
  view.setUint32(12, entries.length, true);
  view.setUint32(16, header.file, true);
  view.setUint32(20, 0, true);
  view.setBigUint64(24, BigInt(header.offset), true);
  view.setBigUint64(32, BigInt(header.firstLeaf), true);
  view.setBigUint64(40, BigInt(header.durableThrough), true);
  let at = FRAME_HEADER_BYTES;
  for (const { leaf, payload, redacted } of entries) {
    view.setUint32(at, leaf.length, true);
    view.setUint32(at + 4, payload.length, true);
    view.setUint32(at + 8, redacted === true ? 1 : 0, true);
    frame.set(leaf, at + ENTRY_HEADER_BYTES);
    frame.set(payload, at + ENTRY_HEADER_BYTES + leaf.length);
    at += ENTRY_HEADER_BYTES + leaf.length + payload.length;
  }
  frame.fill(0, at);
  view.setBigUint64(CHECKSUM_AT, checksum(frame.subarray(0, bytes)), true);
  return frame;
}

/** The header at the start of `bytes` if one is there, for this place; it says nothing yet about the checksum. */
export function decodeFrameHeader(bytes: Uint8Array, file: number, offset: number): FrameHeader | undefined {
  if (bytes.length < FRAME_HEADER_BYTES || !frameMagic.equals(bytes.subarray(0, 4))) return undefined;
  const source = new ByteReader(bytes.subarray(4, FRAME_HEADER_BYTES));
  try {
    const format = source.u32();
    const size = source.u32();
    const entries = source.u32();
    const here = source.u32() === file && source.u32() === 0 && source.u64() === offset;
    const header = { file, offset, size, entries, firstLeaf: source.u64(), durableThrough: source.u64() };
    const fits = size <= FRAME_BYTES_MAX && entries > 0 && entries * ENTRY_HEADER_BYTES <= size;
    return format === FILE_FORMAT && here && fits ? header : undefined;
  } catch {
    return undefined;
  }
}

/** `frame` starts at its header and ends with its last entry. */
export function frameIsWhole(frame: Uint8Array): boolean {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  return view.getBigUint64(CHECKSUM_AT, true) === checksum(frame);
}

/** Entries of a frame that is whole. Throws REL_STORAGE where their sizes don't add up. */
export function frameEntries(frame: Uint8Array, header: Pick<FrameHeader, 'entries'>): FrameEntry[] {
  const source = new ByteReader(frame.subarray(FRAME_HEADER_BYTES));
  const entries: FrameEntry[] = [];
  for (let left = header.entries; left > 0; left--) {
    const leafSize = source.u32();
    const payloadSize = source.u32();
    const redacted = source.flag();
    if (source.u8() !== 0 || source.u16() !== 0) throw malformedError('an entry with unknown flags');
    entries.push({ leaf: source.raw(leafSize), payload: source.raw(payloadSize), redacted });
  }
  source.end();
  return entries;
}

function checksum(frame: Uint8Array): bigint {
  // Seeded with the sum of the header, so that the field itself needs no blanking.
  return h64Raw(frame.subarray(FRAME_HEADER_BYTES), h64Raw(frame.subarray(0, CHECKSUM_AT), 0n));
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
  readonly #disk: DiskFile;
  readonly #file: number;
  readonly #length: number;
  readonly #chunkBytes: number;
  readonly #shared: boolean;
  #buffer: Uint8Array = new Uint8Array(0);
  #bufferAt = 0;
  readonly #free: ArrayBufferLike[] = [];
  /** Where the next frame is expected. */
  offset: number;

  /** `chunkBytes` is how much is read ahead; `shared`: into memory that other threads can read. */
  constructor(
    disk: DiskFile,
    file: number,
    length: number,
    offset = FILE_HEADER_BYTES,
    { chunkBytes = CHUNK_BYTES, shared = false }: { readonly chunkBytes?: number; readonly shared?: boolean } = {},
  ) {
    this.#disk = disk;
    this.#file = file;
    this.#length = length;
    this.#chunkBytes = chunkBytes;
    this.#shared = shared;
    this.offset = offset;
  }

  /** The frame at `offset`, which moves past it; `end` and `bad` leave it where it is. `check`: its checksum is held against it. */
  async next(check = true): Promise<Scanned> {
    const left = this.#length - this.offset;
    if (left <= 0) return { result: 'end' };
    const head = await this.#read(this.offset, Math.min(left, FRAME_HEADER_BYTES));
    const header = decodeFrameHeader(head, this.#file, this.offset);
    if (!header) return (await this.#zerosFrom(this.offset)) ? { result: 'end' } : { result: 'bad', reason: 'no frame header' };
    const size = FRAME_HEADER_BYTES + header.size;
    if (size > left) return { result: 'bad', reason: 'a frame longer than the file' };
    const bytes = await this.#read(this.offset, size);
    if (check && !frameIsWhole(bytes)) return { result: 'bad', reason: failsChecksum };
    this.offset += size;
    return { result: 'frame', header, bytes };
  }

  /** Frames anywhere after `offset`, at any byte: evidence about a bad frame. */
  async *later(): AsyncGenerator<FrameHeader> {
    let at = this.offset + 1;
    while (at + FRAME_HEADER_BYTES <= this.#length) {
      const window = await this.#read(at, Math.min(CHUNK_BYTES, this.#length - at));
      const hit = Buffer.from(window.buffer, window.byteOffset, window.length).indexOf(frameMagic);
      if (hit < 0) {
        at += Math.max(1, window.length - frameMagic.length + 1);
        continue;
      }
      at += hit;
      const header = await this.#wholeFrameAt(at);
      if (header) yield header;
      at += header ? FRAME_HEADER_BYTES + header.size : 1;
    }
  }

  /** Offset just after the last byte that is not zero; `offset` when all are. */
  async dataEnd(): Promise<number> {
    let end = this.offset;
    for (let at = this.offset; at < this.#length; ) {
      const window = await this.#read(at, Math.min(CHUNK_BYTES, this.#length - at));
      for (let i = window.length - 1; i >= 0; i--) {
        if (window[i] !== 0) {
          end = at + i + 1;
          break;
        }
      }
      at += window.length;
    }
    return end;
  }

  async #wholeFrameAt(at: number): Promise<FrameHeader | undefined> {
    if (this.#length - at < FRAME_HEADER_BYTES) return undefined;
    const header = decodeFrameHeader(await this.#read(at, FRAME_HEADER_BYTES), this.#file, at);
    if (!header || FRAME_HEADER_BYTES + header.size > this.#length - at) return undefined;
    const bytes = await this.#read(at, FRAME_HEADER_BYTES + header.size);
    return frameIsWhole(bytes) ? header : undefined;
  }

  async #zerosFrom(offset: number): Promise<boolean> {
    for (let at = offset; at < this.#length; ) {
      const window = await this.#read(at, Math.min(zeros.length, this.#length - at));
      if (!zeros.subarray(0, window.length).equals(window)) return false;
      at += window.length;
    }
    return true;
  }

  /** Returns memory whose frames are not in use: later reads may fill it. False while the scanner itself uses it. */
  release(memory: ArrayBufferLike): boolean {
    if (memory === this.#buffer.buffer) return false;
    this.#free.push(memory);
    return true;
  }

  /** To touch fresh memory for the first time takes longer than to read into it. */
  #memory(bytes: number): Uint8Array {
    const used = this.#free.pop();
    if (used && used.byteLength >= bytes) return new Uint8Array(used, 0, bytes);
    return new Uint8Array(this.#shared ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes));
  }

  /** A view of `size` bytes at `offset`, from the buffer where it has them. Valid until the next read. */
  async #read(offset: number, size: number): Promise<Uint8Array> {
    const skip = offset - this.#bufferAt;
    if (skip >= 0 && skip + size <= this.#buffer.length) return this.#buffer.subarray(skip, skip + size);
    const want = Math.min(Math.max(size, this.#chunkBytes), this.#length - offset);
    const buffer = this.#memory(want);
    await readFully(this.#disk, buffer, offset);
    this.#buffer = buffer;
    this.#bufferAt = offset;
    return buffer.subarray(0, size);
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
  const what = bad ?? 'the file ends';
  const corrupt = (reason: string): TailVerdict => ({ tail: 'corrupt', reason: `${what}, and ${reason}` });
  if (checkpointSize > leaves) return corrupt(`the signed checkpoint covers ${checkpointSize} leaves`);
  if (nextFileLeaf !== null && nextFileLeaf > leaves) return corrupt(`the next file begins at leaf ${nextFileLeaf}`);
  if (bad === null) return { tail: 'clean' };
  if (sealed) return corrupt('the file is sealed');
  if (laterClaim !== null && laterClaim > leaves) return corrupt(`a later frame says that ${laterClaim} leaves were durable`);
  return { tail: 'torn' };
}

/** Fills `target`; throws when the file is shorter than it said. */
export async function readFully(file: DiskFile, target: Uint8Array, offset: number): Promise<void> {
  for (let at = 0; at < target.length; ) {
    const read = await file.read(at === 0 ? target : target.subarray(at), offset + at);
    if (read === 0) throw malformedError(`${file.path} ended early`);
    at += read;
  }
}
