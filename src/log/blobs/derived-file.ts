/**
 * A sealed file of derived data: named chunks under a key of their own, read whole or by chunk. Deleting one loses
 * nothing, and none is believed further than its seals reach.
 *
 *   +---------+--------+---------------------+-----------+-----------+------------+
 *   | magic 8 | u32 LE | header JSON         | piece ... | directory | trailer 24 |
 *   |         | length | (log, name, key)    |           | (sealed)  |            |
 *   +---------+--------+---------------------+-----------+-----------+------------+
 *   piece    ciphertext · tag 16      of at most 256 KiB of a chunk, LZ4 or deflated where that is shorter
 *   trailer  u64 LE directory offset · u32 LE stored length · u32 LE plain length · magic 8
 *
 * - The file key is drawn for the file and wrapped by the keyring's active data key, bound to log and name.
 * - A piece is AES-256-GCM under the file key; its nonce is its number, its additional data the header's hash, number,
 *   plain length and packing. The directory is the piece with the last number of all.
 * - A file counts once `finish` has returned: before that it has no trailer and is refused.
 */
import * as crypto from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import * as lz4 from 'lz4-napi';
import type { Random } from '../../clock.ts';
import { assert } from '../../errors.ts';
import { type Disk, type DiskFile, writeFully } from '../disk/disk.ts';
import type { Keyring } from '../keys/keys.ts';
import { hexOf } from '../bytes/sha256.ts';

/** The directory of derived files, and the log that they must belong to. */
export interface DerivedReader {
  readonly disk: Disk;
  /** Data keys. */
  readonly keyring: Pick<Keyring, 'open'>;
  readonly directory: string;
  /** Null: a file of any log is opened; the caller compares. */
  readonly logId: string | null;
}

export interface DerivedHome extends DerivedReader {
  readonly keyring: Pick<Keyring, 'open' | 'activeDataKey'>;
  readonly logId: string;
  readonly random: Random;
  /** Between two pieces that are written: other work goes first. */
  readonly yieldTurn: () => Promise<void>;
}

/** Why a derived file is not believed. */
export class DerivedFileError extends Error {
  constructor(name: string, why: string, options?: ErrorOptions) {
    super(`${name}: ${why}`, options);
    this.name = 'DerivedFileError';
  }
}

/** A disk that can't give a derived file back is one more way in which that file can be wrong. */
function unreadable(name: string, error: unknown): never {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (error instanceof DerivedFileError || !/^E[A-Z0-9]+$/.test(code)) throw error;
  throw new DerivedFileError(name, `it can not be read (${code})`, { cause: error });
}

/** How a piece is packed; `dense` is slower to write and shorter. */
export type Packing = 'fast' | 'dense';

interface Header {
  readonly format: number;
  readonly logId: string;
  readonly name: string;
  readonly dataKey: number;
  readonly nonce: string;
  readonly wrapped: string;
}

/** `[offset, stored, plain, packing]` */
type Piece = readonly [number, number, number, number];

interface Chunk {
  readonly length: number;
  readonly first: number;
  readonly pieces: readonly Piece[];
}

type Directory = Readonly<Record<string, Chunk>>;

const FORMAT = 1;
const MAGIC = Buffer.from('ANNALSD1');
const END_MAGIC = Buffer.from('ANNALSDE');
const TAG_BYTES = 16;
const TRAILER_BYTES = 24;
const PIECE_BYTES = 256 * 1024;
const HEADER_MAX = 64 * 1024;
const DIRECTORY_MAX = 256 * 1024 * 1024;
const DIRECTORY_NUMBER = 0xffff_ffff;
const PACKED_FROM_BYTES = 128;
const packings = { none: 0, lz4: 1, deflate: 2 } as const;

/** Writes one file from front to back. A caller that fails half-way calls `abandon`. */
export class DerivedFileWriter {
  readonly #home: DerivedHome;
  readonly #name: string;
  readonly #file: DiskFile;
  readonly #seal: Seal;
  /** One sealed piece at a time: the next is made when the one before is written. */
  readonly #stored = Buffer.allocUnsafeSlow(PIECE_BYTES + TAG_BYTES);
  readonly #chunks: Record<string, Chunk> = Object.create(null) as Record<string, Chunk>;
  #offset: number;
  #number = 0;

  private constructor(home: DerivedHome, name: string, file: DiskFile, seal: Seal, offset: number) {
    this.#home = home;
    this.#name = name;
    this.#file = file;
    this.#seal = seal;
    this.#offset = offset;
  }

  /** Makes a file that is not there yet; `at` is where it waits until it is renamed to its name. */
  static async create(home: DerivedHome, name: string, at = name): Promise<DerivedFileWriter> {
    const { random, keyring, logId } = home;
    const key = random.fill(new Uint8Array(32));
    const nonce = random.fill(new Uint8Array(12));
    const cipher = crypto.createCipheriv('aes-256-gcm', keyring.open(keyring.activeDataKey), nonce);
    cipher.setAAD(wrapBinding(logId, name));
    const wrapped = Buffer.concat([cipher.update(key), cipher.final(), cipher.getAuthTag()]);
    const header: Header = {
      format: FORMAT,
      logId,
      name,
      dataKey: keyring.activeDataKey,
      nonce: hexOf(nonce),
      wrapped: hexOf(wrapped),
    };
    const json = Buffer.from(JSON.stringify(header));
    const head = Buffer.concat([MAGIC, u32(json.length), json]);
    const file = await home.disk.open(`${home.directory}/${at}`, 'create');
    await writeFully(file, head, 0);
    return new DerivedFileWriter(home, name, file, new Seal(crypto.createSecretKey(key), head), head.length);
  }

  /** Bytes written so far. */
  get size(): number {
    return this.#offset;
  }

  /** One chunk: the parts one after the other. They must not change until this resolves. */
  async chunk(name: string, parts: readonly ArrayBufferView[], packing: Packing = 'fast'): Promise<void> {
    assert(!(name in this.#chunks), 'a chunk is written once');
    const first = this.#number;
    const pieces: Piece[] = [];
    let length = 0;
    for (const plain of piecesOf(parts)) {
      const packed = pack(plain, packing);
      const stored = this.#seal.close(this.#number++, plain.length, packed.how, packed.bytes, this.#stored);
      await writeFully(this.#file, stored, this.#offset);
      pieces.push([this.#offset, stored.length, plain.length, packed.how]);
      this.#offset += stored.length;
      length += plain.length;
      await this.#home.yieldTurn();
    }
    this.#chunks[name] = { length, first, pieces };
  }

  /** Directory, trailer, fsync. The file stays open for reading; its name is durable once the directory is synced. */
  async finish(): Promise<DerivedFile> {
    const plain = Buffer.from(JSON.stringify(this.#chunks));
    const { how, bytes } = pack(plain, 'fast');
    const stored = this.#seal.close(DIRECTORY_NUMBER, plain.length, how, bytes);
    const trailer = Buffer.alloc(TRAILER_BYTES);
    trailer.writeBigUInt64LE(BigInt(this.#offset), 0);
    trailer.writeUInt32LE(stored.length, 8);
    // The packing rides in the top bits: a directory is far below a gigabyte.
    trailer.writeUInt32LE((plain.length | (how << 30)) >>> 0, 12);
    END_MAGIC.copy(trailer, 16);
    await writeFully(this.#file, Buffer.concat([stored, trailer]), this.#offset);
    await this.#file.sync();
    return new DerivedFile(
      this.#name,
      this.#home.logId,
      this.#file,
      this.#seal,
      this.#chunks,
      this.#offset + stored.length + TRAILER_BYTES,
    );
  }

  /** Closes and removes what was begun. */
  async abandon(): Promise<void> {
    await this.#file.close().catch(() => undefined);
    await this.#home.disk.unlink(this.#file.path).catch(() => undefined);
  }
}

/** An open derived file. Every read throws a DerivedFileError for what its seals do not vouch for. */
export class DerivedFile {
  readonly name: string;
  readonly logId: string;
  readonly size: number;
  readonly #file: DiskFile;
  readonly #seal: Seal;
  readonly #chunks: Directory;

  constructor(name: string, logId: string, file: DiskFile, seal: Seal, chunks: Directory, size: number) {
    this.name = name;
    this.logId = logId;
    this.size = size;
    this.#file = file;
    this.#seal = seal;
    this.#chunks = chunks;
  }

  /** Checks header, trailer and directory; chunks are checked as they are read. Undefined when there is no such file. */
  static async open(home: DerivedReader, name: string): Promise<DerivedFile | undefined> {
    const path = `${home.directory}/${name}`;
    if ((await home.disk.size(path)) === undefined) return undefined;
    const file = await home.disk.open(path, 'read').catch((error: unknown) => unreadable(name, error));
    try {
      return await openFile(home, name, file);
    } catch (error) {
      await file.close();
      return unreadable(name, error);
    }
  }

  has(chunk: string): boolean {
    return Object.hasOwn(this.#chunks, chunk);
  }

  chunks(): readonly string[] {
    return Object.keys(this.#chunks);
  }

  /** A chunk within the turn, in what `makeTarget` gives for so many bytes; its buffer is its own unless that says otherwise. */
  readNow(chunk: string, makeTarget = newBytes): Uint8Array<ArrayBuffer> {
    const { length, pieces, first } = this.#find(chunk);
    const target = makeTarget(length);
    let at = 0;
    for (let i = 0; i < pieces.length; i++) {
      const [offset, stored, plain] = pieces[i]!;
      const bytes = Buffer.allocUnsafe(stored);
      for (let read = 0; read < stored; ) {
        const count = this.#readNow(bytes.subarray(read), offset + read);
        if (count === 0) throw new DerivedFileError(this.name, 'it ends early');
        read += count;
      }
      target.set(this.#openPiece(first + i, pieces[i]!, bytes), at);
      at += plain;
    }
    return target;
  }

  #readNow(target: Uint8Array, offset: number): number {
    try {
      return this.#file.readNow(target, offset);
    } catch (error) {
      return unreadable(this.name, error);
    }
  }

  async read(chunk: string): Promise<Uint8Array<ArrayBuffer>> {
    return await this.#readInto(chunk, newBytes);
  }

  /** The same in memory that threads share. */
  async readShared(chunk: string): Promise<Uint8Array<SharedArrayBuffer>> {
    return await this.#readInto(chunk, (length) => new Uint8Array(new SharedArrayBuffer(length)));
  }

  async #readInto<Target extends Uint8Array>(chunk: string, makeTarget: (length: number) => Target): Promise<Target> {
    const { length, pieces, first } = this.#find(chunk);
    const target = makeTarget(length);
    let at = 0;
    for (let i = 0; i < pieces.length; i++) {
      const [offset, stored, plain] = pieces[i]!;
      target.set(this.#openPiece(first + i, pieces[i]!, await readAll(this.#file, this.name, offset, stored)), at);
      at += plain;
    }
    return target;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  #find(chunk: string): Chunk {
    if (!this.has(chunk)) throw new DerivedFileError(this.name, `there is no ${chunk} in it`);
    return this.#chunks[chunk]!;
  }

  #openPiece(number: number, [, , plain, how]: Piece, bytes: Buffer): Uint8Array {
    return unpack(this.name, this.#seal.open(this.name, number, plain, how, bytes), plain, how);
  }
}

function newBytes(length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(length);
}

async function openFile({ keyring, logId }: DerivedReader, name: string, file: DiskFile): Promise<DerivedFile> {
  const size = await file.size();
  const refuse = (why: string, options?: ErrorOptions): never => {
    throw new DerivedFileError(name, why, options);
  };
  if (size < MAGIC.length + 4 + TRAILER_BYTES) return refuse('it ends early');
  const start = await readAll(file, name, 0, MAGIC.length + 4);
  if (!start.subarray(0, MAGIC.length).equals(MAGIC)) return refuse('it is not a derived file');
  const headLength = start.readUInt32LE(MAGIC.length);
  if (headLength > HEADER_MAX || size < start.length + headLength + TRAILER_BYTES) return refuse('it ends early');
  const json = await readAll(file, name, start.length, headLength);
  const header = parse(json) as Header;
  if (header.format !== FORMAT) return refuse('it has another format');
  if (logId !== null && header.logId !== logId) return refuse('it belongs to another log');
  if (header.name !== name) return refuse('it was written under another name');
  const seal = new Seal(unwrap(keyring, header), Buffer.concat([start, json]));
  const trailer = await readAll(file, name, size - TRAILER_BYTES, TRAILER_BYTES);
  if (!trailer.subarray(16).equals(END_MAGIC)) return refuse('it was not finished');
  const offset = Number(trailer.readBigUInt64LE(0));
  const stored = trailer.readUInt32LE(8);
  const word = trailer.readUInt32LE(12);
  const [plain, how] = [word & 0x3fff_ffff, word >>> 30];
  if (plain > DIRECTORY_MAX || offset + stored + TRAILER_BYTES !== size) return refuse('its directory is not where it says');
  const sealed = await readAll(file, name, offset, stored);
  const directory = parse(unpack(name, seal.open(name, DIRECTORY_NUMBER, plain, how, sealed), plain, how)) as Directory;
  return new DerivedFile(name, header.logId, file, seal, directory, size);

  function parse(bytes: Uint8Array): unknown {
    try {
      return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString());
    } catch (cause) {
      return refuse('its header is not JSON', { cause });
    }
  }
}

function unwrap(keyring: DerivedReader['keyring'], { logId, name, dataKey, nonce, wrapped }: Header): crypto.KeyObject {
  try {
    const box = Buffer.from(wrapped, 'hex');
    const decipher = crypto.createDecipheriv('aes-256-gcm', keyring.open(dataKey), Buffer.from(nonce, 'hex'), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(wrapBinding(logId, name));
    decipher.setAuthTag(box.subarray(-TAG_BYTES));
    return crypto.createSecretKey(Buffer.concat([decipher.update(box.subarray(0, -TAG_BYTES)), decipher.final()]));
  } catch (cause) {
    throw new DerivedFileError(name, `its key does not open under data key ${dataKey}`, { cause });
  }
}

function wrapBinding(logId: string, name: string): Buffer {
  return Buffer.from(`annals derived file key\0${logId}\0${name}`);
}

/** Pieces of one file under its key. */
class Seal {
  readonly #key: crypto.KeyObject;
  readonly #nonce = Buffer.alloc(12);
  /** Header hash · number · plain length · packing. */
  readonly #binding: Buffer;

  constructor(key: crypto.KeyObject, head: Uint8Array) {
    this.#key = key;
    this.#binding = Buffer.concat([crypto.createHash('sha256').update(head).digest(), Buffer.alloc(9)]);
  }

  /** Into the start of `target`, or memory of its own. */
  close(
    number: number,
    plain: number,
    how: number,
    bytes: Uint8Array,
    target = Buffer.allocUnsafe(bytes.length + TAG_BYTES),
  ): Buffer {
    this.#bind(number, plain, how);
    const cipher = crypto.createCipheriv('aes-256-gcm', this.#key, this.#nonce);
    cipher.setAAD(this.#binding);
    target.set(cipher.update(bytes));
    cipher.final();
    target.set(cipher.getAuthTag(), bytes.length);
    return target.subarray(0, bytes.length + TAG_BYTES);
  }

  open(name: string, number: number, plain: number, how: number, stored: Buffer): Uint8Array {
    this.#bind(number, plain, how);
    try {
      const decipher = crypto.createDecipheriv('aes-256-gcm', this.#key, this.#nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(this.#binding);
      decipher.setAuthTag(stored.subarray(-TAG_BYTES));
      const bytes = decipher.update(stored.subarray(0, -TAG_BYTES));
      decipher.final();
      return bytes;
    } catch (cause) {
      throw new DerivedFileError(name, 'a seal in it is broken', { cause });
    }
  }

  #bind(number: number, plain: number, how: number): void {
    this.#nonce.writeUInt32LE(number, 0);
    this.#binding.writeUInt32LE(number, 32);
    this.#binding.writeUInt32LE(plain, 36);
    this.#binding[40] = how;
  }
}

function pack(plain: Uint8Array, packing: Packing): { readonly bytes: Uint8Array; readonly how: number } {
  if (plain.length < PACKED_FROM_BYTES) return { bytes: plain, how: packings.none };
  const packed =
    packing === 'dense'
      ? deflateRawSync(plain, { level: 9 })
      : lz4.compressSync(Buffer.from(plain.buffer, plain.byteOffset, plain.length));
  // Packing that saves less than a sixteenth is not worth unpacking at every read.
  if (packed.length > plain.length - (plain.length >>> 4)) return { bytes: plain, how: packings.none };
  return { bytes: packed, how: packing === 'dense' ? packings.deflate : packings.lz4 };
}

function unpack(name: string, bytes: Uint8Array, length: number, how: number): Uint8Array {
  if (how === packings.none) return bytes;
  const plain =
    how === packings.deflate
      ? inflateRawSync(bytes)
      : lz4.uncompressSync(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  if (plain.length !== length) throw new DerivedFileError(name, 'a piece has another length');
  return plain;
}

/** Holds the piece that was yielded last, whichever file it is for: fresh memory for each would keep the collector busy. */
const piece = new Uint8Array(PIECE_BYTES);

/**
 * The parts as one row of bytes, cut into pieces. A piece is good until its taker next yields: nothing is kept in it from one
 * to the next, so writers of several files may take turns. A copy in any case, as codecs do not take views over shared memory.
 */
function* piecesOf(parts: readonly ArrayBufferView[]): Generator<Uint8Array> {
  let used = 0;
  for (const part of parts) {
    const bytes = new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
    for (let at = 0; at < bytes.length; ) {
      const count = Math.min(PIECE_BYTES - used, bytes.length - at);
      piece.set(bytes.subarray(at, at + count), used);
      used += count;
      at += count;
      if (used === PIECE_BYTES) {
        yield piece;
        used = 0;
      }
    }
  }
  if (used > 0) yield piece.subarray(0, used);
}

async function readAll(file: DiskFile, name: string, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  let read = 0;
  while (read < length) {
    const count = await file.read(bytes.subarray(read), offset + read).catch((error: unknown) => unreadable(name, error));
    if (count === 0) throw new DerivedFileError(name, 'it ends early');
    read += count;
  }
  return bytes;
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
