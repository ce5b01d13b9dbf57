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
  constructor(derivedName: string, derivedFault: string, errorOptions?: ErrorOptions) {
    super(`${derivedName}: ${derivedFault}`, errorOptions);
    this.name = 'DerivedFileError';
  }
}

/** A disk that can't give a derived file back is one more way in which that file can be wrong. */
function unreadableFile(derivedName: string, error: unknown): never {
  const systemErrorCode = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (error instanceof DerivedFileError || !/^E[A-Z0-9]+$/.test(systemErrorCode)) throw error;
  throw new DerivedFileError(derivedName, `it can not be read (${systemErrorCode})`, { cause: error });
}

/** How a piece is packed; `dense` is slower to write and shorter. */
export type Packing = 'fast' | 'dense';

interface DerivedHeader {
  readonly format: number;
  readonly logId: string;
  readonly name: string;
  readonly dataKey: number;
  readonly nonce: string;
  readonly wrapped: string;
}

/** `[offset, stored, plain, packing]` */
type DerivedPiece = readonly [number, number, number, number];

interface DerivedChunk {
  readonly length: number;
  readonly first: number;
  readonly pieces: readonly DerivedPiece[];
}

type ChunkDirectory = Readonly<Record<string, DerivedChunk>>;

const DERIVED_FORMAT = 1;
const DERIVED_MAGIC = Buffer.from('ANNALSD1');
const DERIVED_END_MAGIC = Buffer.from('ANNALSDE');
const TAG_BYTES = 16;
const TRAILER_BYTES = 24;
const PIECE_BYTES = 256 * 1024;
const DERIVED_HEADER_MAX = 64 * 1024;
const CHUNK_DIRECTORY_MAX = 256 * 1024 * 1024;
const DIRECTORY_PIECE = 0xffff_ffff;
const PACKED_BYTES_MIN = 128;
const packings = { none: 0, lz4: 1, deflate: 2 } as const;

/** Writes one file from front to back. A caller that fails half-way calls `abandon`. */
export class DerivedFileWriter {
  readonly #derivedHome: DerivedHome;
  readonly #derivedName: string;
  readonly #derivedFile: DiskFile;
  readonly #pieceSeal: PieceSeal;
  /** One sealed piece at a time: the next is made when the one before is written. */
  readonly #sealedPiece = Buffer.allocUnsafeSlow(PIECE_BYTES + TAG_BYTES);
  readonly #writtenChunks: Record<string, DerivedChunk> = Object.create(null) as Record<string, DerivedChunk>;
  #pieceOffset: number;
  #pieceNumber = 0;

  private constructor(
    derivedHome: DerivedHome,
    derivedName: string,
    derivedFile: DiskFile,
    pieceSeal: PieceSeal,
    pieceOffset: number,
  ) {
    this.#derivedHome = derivedHome;
    this.#derivedName = derivedName;
    this.#derivedFile = derivedFile;
    this.#pieceSeal = pieceSeal;
    this.#pieceOffset = pieceOffset;
  }

  /** Makes a file that is not there yet; `temporaryName` is where it waits until it is renamed to its name. */
  static async create(derivedHome: DerivedHome, derivedName: string, temporaryName = derivedName): Promise<DerivedFileWriter> {
    const { random, keyring, logId } = derivedHome;
    const derivedKey = random.fill(new Uint8Array(32));
    const keyNonce = random.fill(new Uint8Array(12));
    const keyCipher = crypto.createCipheriv('aes-256-gcm', keyring.open(keyring.activeDataKey), keyNonce);
    keyCipher.setAAD(derivedKeyBinding(logId, derivedName));
    const wrappedKey = Buffer.concat([keyCipher.update(derivedKey), keyCipher.final(), keyCipher.getAuthTag()]);
    const derivedHeader: DerivedHeader = {
      format: DERIVED_FORMAT,
      logId,
      name: derivedName,
      dataKey: keyring.activeDataKey,
      nonce: hexOf(keyNonce),
      wrapped: hexOf(wrappedKey),
    };
    const headerJson = Buffer.from(JSON.stringify(derivedHeader));
    const derivedHead = Buffer.concat([DERIVED_MAGIC, u32(headerJson.length), headerJson]);
    const derivedFile = await derivedHome.disk.open(`${derivedHome.directory}/${temporaryName}`, 'create');
    await writeFully(derivedFile, derivedHead, 0);
    return new DerivedFileWriter(
      derivedHome,
      derivedName,
      derivedFile,
      new PieceSeal(crypto.createSecretKey(derivedKey), derivedHead),
      derivedHead.length,
    );
  }

  /** Bytes written so far. */
  get size(): number {
    return this.#pieceOffset;
  }

  /** One chunk: the parts one after the other. They must not change until this resolves. */
  async chunk(chunkName: string, chunkParts: readonly ArrayBufferView[], packing: Packing = 'fast'): Promise<void> {
    assert(!(chunkName in this.#writtenChunks), 'a chunk is written once');
    const firstPiece = this.#pieceNumber;
    const chunkPieces: DerivedPiece[] = [];
    let chunkLength = 0;
    for (const plainPiece of cutIntoPieces(chunkParts)) {
      const packedPiece = packPiece(plainPiece, packing);
      const storedPiece = this.#pieceSeal.close(
        this.#pieceNumber++,
        plainPiece.length,
        packedPiece.how,
        packedPiece.bytes,
        this.#sealedPiece,
      );
      await writeFully(this.#derivedFile, storedPiece, this.#pieceOffset);
      chunkPieces.push([this.#pieceOffset, storedPiece.length, plainPiece.length, packedPiece.how]);
      this.#pieceOffset += storedPiece.length;
      chunkLength += plainPiece.length;
      await this.#derivedHome.yieldTurn();
    }
    this.#writtenChunks[chunkName] = { length: chunkLength, first: firstPiece, pieces: chunkPieces };
  }

  /** Directory, trailer, fsync. The file stays open for reading; its name is durable once the directory is synced. */
  async finish(): Promise<DerivedFile> {
    const directoryJson = Buffer.from(JSON.stringify(this.#writtenChunks));
    const { how: packingNumber, bytes: packedDirectory } = packPiece(directoryJson, 'fast');
    const sealedDirectory = this.#pieceSeal.close(DIRECTORY_PIECE, directoryJson.length, packingNumber, packedDirectory);
    const derivedTrailer = Buffer.alloc(TRAILER_BYTES);
    derivedTrailer.writeBigUInt64LE(BigInt(this.#pieceOffset), 0);
    derivedTrailer.writeUInt32LE(sealedDirectory.length, 8);
    // The packing rides in the top bits: a directory is far below a gigabyte.
    derivedTrailer.writeUInt32LE((directoryJson.length | (packingNumber << 30)) >>> 0, 12);
    DERIVED_END_MAGIC.copy(derivedTrailer, 16);
    await writeFully(this.#derivedFile, Buffer.concat([sealedDirectory, derivedTrailer]), this.#pieceOffset);
    await this.#derivedFile.sync();
    return new DerivedFile(
      this.#derivedName,
      this.#derivedHome.logId,
      this.#derivedFile,
      this.#pieceSeal,
      this.#writtenChunks,
      this.#pieceOffset + sealedDirectory.length + TRAILER_BYTES,
    );
  }

  /** Closes and removes what was begun. */
  async abandon(): Promise<void> {
    await this.#derivedFile.close().catch(() => undefined);
    await this.#derivedHome.disk.unlink(this.#derivedFile.path).catch(() => undefined);
  }
}

/** An open derived file. Every read throws a DerivedFileError for what its seals do not vouch for. */
export class DerivedFile {
  readonly name: string;
  readonly logId: string;
  readonly size: number;
  readonly #derivedFile: DiskFile;
  readonly #pieceSeal: PieceSeal;
  readonly #chunkDirectory: ChunkDirectory;

  constructor(
    derivedName: string,
    logId: string,
    derivedFile: DiskFile,
    pieceSeal: PieceSeal,
    chunkDirectory: ChunkDirectory,
    derivedSize: number,
  ) {
    this.name = derivedName;
    this.logId = logId;
    this.size = derivedSize;
    this.#derivedFile = derivedFile;
    this.#pieceSeal = pieceSeal;
    this.#chunkDirectory = chunkDirectory;
  }

  /** Checks header, trailer and directory; chunks are checked as they are read. Undefined when there is no such file. */
  static async open(derivedReader: DerivedReader, derivedName: string): Promise<DerivedFile | undefined> {
    const derivedPath = `${derivedReader.directory}/${derivedName}`;
    if ((await derivedReader.disk.size(derivedPath)) === undefined) return undefined;
    const derivedFile = await derivedReader.disk
      .open(derivedPath, 'read')
      .catch((error: unknown) => unreadableFile(derivedName, error));
    try {
      return await openDerivedFile(derivedReader, derivedName, derivedFile);
    } catch (error) {
      await derivedFile.close();
      return unreadableFile(derivedName, error);
    }
  }

  has(chunkName: string): boolean {
    return Object.hasOwn(this.#chunkDirectory, chunkName);
  }

  chunks(): readonly string[] {
    return Object.keys(this.#chunkDirectory);
  }

  /** A chunk within the turn, in what `makeChunkBytes` gives for so many bytes; its buffer is its own unless that says otherwise. */
  readNow(chunkName: string, makeChunkBytes = newChunkBytes): Uint8Array<ArrayBuffer> {
    const { length: chunkLength, pieces: chunkPieces, first: firstPiece } = this.#findChunk(chunkName);
    const chunkBytes = makeChunkBytes(chunkLength);
    let chunkOffset = 0;
    for (let i = 0; i < chunkPieces.length; i++) {
      const [pieceOffset, storedLength, plainLength] = chunkPieces[i]!;
      const storedPiece = Buffer.allocUnsafe(storedLength);
      for (let readPieceBytes = 0; readPieceBytes < storedLength; ) {
        const readCount = this.#readPieceNow(storedPiece.subarray(readPieceBytes), pieceOffset + readPieceBytes);
        if (readCount === 0) throw new DerivedFileError(this.name, 'it ends early');
        readPieceBytes += readCount;
      }
      chunkBytes.set(this.#openPiece(firstPiece + i, chunkPieces[i]!, storedPiece), chunkOffset);
      chunkOffset += plainLength;
    }
    return chunkBytes;
  }

  #readPieceNow(chunkBytes: Uint8Array, pieceOffset: number): number {
    try {
      return this.#derivedFile.readNow(chunkBytes, pieceOffset);
    } catch (error) {
      return unreadableFile(this.name, error);
    }
  }

  async read(chunkName: string): Promise<Uint8Array<ArrayBuffer>> {
    return await this.#readChunkInto(chunkName, newChunkBytes);
  }

  /** The same in memory that threads share. */
  async readShared(chunkName: string): Promise<Uint8Array<SharedArrayBuffer>> {
    return await this.#readChunkInto(chunkName, (length) => new Uint8Array(new SharedArrayBuffer(length)));
  }

  async #readChunkInto<Target extends Uint8Array>(
    chunkName: string,
    makeChunkBytes: (chunkLength: number) => Target,
  ): Promise<Target> {
    const { length: chunkLength, pieces: chunkPieces, first: firstPiece } = this.#findChunk(chunkName);
    const chunkBytes = makeChunkBytes(chunkLength);
    let chunkOffset = 0;
    for (let i = 0; i < chunkPieces.length; i++) {
      const [pieceOffset, storedLength, plainLength] = chunkPieces[i]!;
      chunkBytes.set(
        this.#openPiece(
          firstPiece + i,
          chunkPieces[i]!,
          await readDerivedBytes(this.#derivedFile, this.name, pieceOffset, storedLength),
        ),
        chunkOffset,
      );
      chunkOffset += plainLength;
    }
    return chunkBytes;
  }

  async close(): Promise<void> {
    await this.#derivedFile.close();
  }

  #findChunk(chunkName: string): DerivedChunk {
    if (!this.has(chunkName)) throw new DerivedFileError(this.name, `there is no ${chunkName} in it`);
    return this.#chunkDirectory[chunkName]!;
  }

  #openPiece(pieceNumber: number, [, , plainLength, packingNumber]: DerivedPiece, storedPiece: Buffer): Uint8Array {
    return unpackPiece(
      this.name,
      this.#pieceSeal.open(this.name, pieceNumber, plainLength, packingNumber, storedPiece),
      plainLength,
      packingNumber,
    );
  }
}

function newChunkBytes(length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(length);
}

async function openDerivedFile(
  { keyring, logId }: DerivedReader,
  derivedName: string,
  derivedFile: DiskFile,
): Promise<DerivedFile> {
  const derivedFileSize = await derivedFile.size();
  const refuseDerivedFile = (why: string, options?: ErrorOptions): never => {
    throw new DerivedFileError(derivedName, why, options);
  };
  if (derivedFileSize < DERIVED_MAGIC.length + 4 + TRAILER_BYTES) return refuseDerivedFile('it ends early');
  const magicAndLength = await readDerivedBytes(derivedFile, derivedName, 0, DERIVED_MAGIC.length + 4);
  if (!magicAndLength.subarray(0, DERIVED_MAGIC.length).equals(DERIVED_MAGIC))
    return refuseDerivedFile('it is not a derived file');
  const headLength = magicAndLength.readUInt32LE(DERIVED_MAGIC.length);
  if (headLength > DERIVED_HEADER_MAX || derivedFileSize < magicAndLength.length + headLength + TRAILER_BYTES)
    return refuseDerivedFile('it ends early');
  const headerJson = await readDerivedBytes(derivedFile, derivedName, magicAndLength.length, headLength);
  const derivedHeader = parseHeaderJson(headerJson) as DerivedHeader;
  if (derivedHeader.format !== DERIVED_FORMAT) return refuseDerivedFile('it has another format');
  if (logId !== null && derivedHeader.logId !== logId) return refuseDerivedFile('it belongs to another log');
  if (derivedHeader.name !== derivedName) return refuseDerivedFile('it was written under another name');
  const pieceSeal = new PieceSeal(unwrapDerivedKey(keyring, derivedHeader), Buffer.concat([magicAndLength, headerJson]));
  const derivedTrailer = await readDerivedBytes(derivedFile, derivedName, derivedFileSize - TRAILER_BYTES, TRAILER_BYTES);
  if (!derivedTrailer.subarray(16).equals(DERIVED_END_MAGIC)) return refuseDerivedFile('it was not finished');
  const directoryOffset = Number(derivedTrailer.readBigUInt64LE(0));
  const directoryLength = derivedTrailer.readUInt32LE(8);
  const packingWord = derivedTrailer.readUInt32LE(12);
  const [plainLength, packingNumber] = [packingWord & 0x3fff_ffff, packingWord >>> 30];
  if (plainLength > CHUNK_DIRECTORY_MAX || directoryOffset + directoryLength + TRAILER_BYTES !== derivedFileSize)
    return refuseDerivedFile('its directory is not where it says');
  const sealedDirectory = await readDerivedBytes(derivedFile, derivedName, directoryOffset, directoryLength);
  const chunkDirectory = parseHeaderJson(
    unpackPiece(
      derivedName,
      pieceSeal.open(derivedName, DIRECTORY_PIECE, plainLength, packingNumber, sealedDirectory),
      plainLength,
      packingNumber,
    ),
  ) as ChunkDirectory;
  return new DerivedFile(derivedName, derivedHeader.logId, derivedFile, pieceSeal, chunkDirectory, derivedFileSize);

  function parseHeaderJson(jsonBytes: Uint8Array): unknown {
    try {
      return JSON.parse(Buffer.from(jsonBytes.buffer, jsonBytes.byteOffset, jsonBytes.length).toString());
    } catch (cause) {
      return refuseDerivedFile('its header is not JSON', { cause });
    }
  }
}

function unwrapDerivedKey(
  keyring: DerivedReader['keyring'],
  { logId, name, dataKey, nonce, wrapped }: DerivedHeader,
): crypto.KeyObject {
  try {
    const wrappedKeyBytes = Buffer.from(wrapped, 'hex');
    const keyDecipher = crypto.createDecipheriv('aes-256-gcm', keyring.open(dataKey), Buffer.from(nonce, 'hex'), {
      authTagLength: TAG_BYTES,
    });
    keyDecipher.setAAD(derivedKeyBinding(logId, name));
    keyDecipher.setAuthTag(wrappedKeyBytes.subarray(-TAG_BYTES));
    return crypto.createSecretKey(
      Buffer.concat([keyDecipher.update(wrappedKeyBytes.subarray(0, -TAG_BYTES)), keyDecipher.final()]),
    );
  } catch (cause) {
    throw new DerivedFileError(name, `its key does not open under data key ${dataKey}`, { cause });
  }
}

function derivedKeyBinding(logId: string, derivedName: string): Buffer {
  return Buffer.from(`annals derived file key\0${logId}\0${derivedName}`);
}

/** Pieces of one file under its key. */
class PieceSeal {
  readonly #derivedKey: crypto.KeyObject;
  readonly #pieceNonce = Buffer.alloc(12);
  /** Header hash · number · plain length · packing. */
  readonly #pieceBinding: Buffer;

  constructor(derivedKey: crypto.KeyObject, derivedHead: Uint8Array) {
    this.#derivedKey = derivedKey;
    this.#pieceBinding = Buffer.concat([crypto.createHash('sha256').update(derivedHead).digest(), Buffer.alloc(9)]);
  }

  /** Into the start of `sealedPiece`, or memory of its own. */
  close(
    pieceNumber: number,
    plainLength: number,
    packingNumber: number,
    packedBytes: Uint8Array,
    sealedPiece = Buffer.allocUnsafe(packedBytes.length + TAG_BYTES),
  ): Buffer {
    this.#bindPiece(pieceNumber, plainLength, packingNumber);
    const pieceCipher = crypto.createCipheriv('aes-256-gcm', this.#derivedKey, this.#pieceNonce);
    pieceCipher.setAAD(this.#pieceBinding);
    sealedPiece.set(pieceCipher.update(packedBytes));
    pieceCipher.final();
    sealedPiece.set(pieceCipher.getAuthTag(), packedBytes.length);
    return sealedPiece.subarray(0, packedBytes.length + TAG_BYTES);
  }

  open(derivedName: string, pieceNumber: number, plainLength: number, packingNumber: number, sealedPiece: Buffer): Uint8Array {
    this.#bindPiece(pieceNumber, plainLength, packingNumber);
    try {
      const pieceDecipher = crypto.createDecipheriv('aes-256-gcm', this.#derivedKey, this.#pieceNonce, {
        authTagLength: TAG_BYTES,
      });
      pieceDecipher.setAAD(this.#pieceBinding);
      pieceDecipher.setAuthTag(sealedPiece.subarray(-TAG_BYTES));
      const packedBytes = pieceDecipher.update(sealedPiece.subarray(0, -TAG_BYTES));
      pieceDecipher.final();
      return packedBytes;
    } catch (cause) {
      throw new DerivedFileError(derivedName, 'a seal in it is broken', { cause });
    }
  }

  #bindPiece(pieceNumber: number, plainLength: number, packingNumber: number): void {
    this.#pieceNonce.writeUInt32LE(pieceNumber, 0);
    this.#pieceBinding.writeUInt32LE(pieceNumber, 32);
    this.#pieceBinding.writeUInt32LE(plainLength, 36);
    this.#pieceBinding[40] = packingNumber;
  }
}

function packPiece(plainPiece: Uint8Array, packing: Packing): { readonly bytes: Uint8Array; readonly how: number } {
  if (plainPiece.length < PACKED_BYTES_MIN) return { bytes: plainPiece, how: packings.none };
  const packedBytes =
    packing === 'dense'
      ? deflateRawSync(plainPiece, { level: 9 })
      : lz4.compressSync(Buffer.from(plainPiece.buffer, plainPiece.byteOffset, plainPiece.length));
  // Packing that saves less than a sixteenth is not worth unpacking at every read.
  if (packedBytes.length > plainPiece.length - (plainPiece.length >>> 4)) return { bytes: plainPiece, how: packings.none };
  return { bytes: packedBytes, how: packing === 'dense' ? packings.deflate : packings.lz4 };
}

function unpackPiece(derivedName: string, packedBytes: Uint8Array, plainLength: number, packingNumber: number): Uint8Array {
  if (packingNumber === packings.none) return packedBytes;
  const plainPiece =
    packingNumber === packings.deflate
      ? inflateRawSync(packedBytes)
      : lz4.uncompressSync(Buffer.from(packedBytes.buffer, packedBytes.byteOffset, packedBytes.length));
  if (plainPiece.length !== plainLength) throw new DerivedFileError(derivedName, 'a piece has another length');
  return plainPiece;
}

/** Holds the piece that was yielded last, whichever file it is for: fresh memory for each would keep the collector busy. */
const pieceBuffer = new Uint8Array(PIECE_BYTES);

/**
 * The parts as one row of bytes, cut into pieces. A piece is good until its taker next yields: nothing is kept in it from one
 * to the next, so writers of several files may take turns. A copy in any case, as codecs do not take views over shared memory.
 */
function* cutIntoPieces(chunkParts: readonly ArrayBufferView[]): Generator<Uint8Array> {
  let usedPieceBytes = 0;
  for (const chunkPart of chunkParts) {
    const partBytes = new Uint8Array(chunkPart.buffer, chunkPart.byteOffset, chunkPart.byteLength);
    for (let partOffset = 0; partOffset < partBytes.length; ) {
      const copiedCount = Math.min(PIECE_BYTES - usedPieceBytes, partBytes.length - partOffset);
      pieceBuffer.set(partBytes.subarray(partOffset, partOffset + copiedCount), usedPieceBytes);
      usedPieceBytes += copiedCount;
      partOffset += copiedCount;
      if (usedPieceBytes === PIECE_BYTES) {
        yield pieceBuffer;
        usedPieceBytes = 0;
      }
    }
  }
  if (usedPieceBytes > 0) yield pieceBuffer.subarray(0, usedPieceBytes);
}

async function readDerivedBytes(
  derivedFile: DiskFile,
  derivedName: string,
  readOffset: number,
  readLength: number,
): Promise<Buffer> {
  const derivedBytes = Buffer.allocUnsafe(readLength);
  let readByteCount = 0;
  while (readByteCount < readLength) {
    const chunkReadCount = await derivedFile
      .read(derivedBytes.subarray(readByteCount), readOffset + readByteCount)
      .catch((error: unknown) => unreadableFile(derivedName, error));
    if (chunkReadCount === 0) throw new DerivedFileError(derivedName, 'it ends early');
    readByteCount += chunkReadCount;
  }
  return derivedBytes;
}

function u32(value: number): Buffer {
  const u32Bytes = Buffer.alloc(4);
  u32Bytes.writeUInt32LE(value);
  return u32Bytes;
}
