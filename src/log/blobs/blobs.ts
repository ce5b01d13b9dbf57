/**
 * Large bodies by what they hold: `<data>/blobs/<first two hex digits>/<address>`, sealed, written once and whole, read in parts.
 *
 *   +------------+----------------+-----------+----------+------------------+----------+----------+
 *   | "ABL2" u32 | data key u32   | prefix[8] | frames … | wrapped key [48] | size u64 | mac [32] |
 *   +------------+----------------+-----------+----------+------------------+----------+----------+
 *
 * The address is a keyed hash of the scope, a tenant, and of the content: it reveals to no caller which tenants hold the same
 * content. The key of a blob is its own, and wrapped under a key derived from the content's hash: when the last row that knew the
 * hash goes, in a section sealed for its subject, the blob can no longer be opened, in any copy of it. The mac is over everything
 * before it and the address, so that a blob is checked without being opened.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { type Disk, type DiskFile, writeFully } from '../disk/disk.ts';
import { firstBlobMagic, isFirstBlob } from './first-blob-format.ts';
import type { Keyring } from '../keys/keys.ts';
import { readFully, readSealed, sealedBytes, SealedWriter, type StreamSeal } from '../disk/sealed-stream.ts';

const blobMagic = Buffer.from('ABL2', 'latin1');
const BLOB_HEAD_BYTES = 16;
const WRAPPED_KEY_BYTES = 48;
const BLOB_MAC_BYTES = 32;
const BLOB_FOOT_BYTES = WRAPPED_KEY_BYTES + 8 + BLOB_MAC_BYTES;
/** A file takes a block of the disk, however little it holds. */
const blobFileBytesMin = 4_096;

export interface BlobsOptions {
  readonly disk: Disk;
  readonly random: Random;
  /** The data directory. */
  readonly directory: string;
  readonly keyring: Pick<Keyring, 'open' | 'activeDataKey' | 'hmacKey'>;
}

/** The name of a blob: a caller who knows it may read the blob. */
export interface BlobName {
  /** The owner: the same content of another scope is another blob. */
  readonly scope: string;
  /** Lower-case hex SHA-256 of the content. */
  readonly sha256: string;
}

export class Blobs {
  readonly #blobOptions: BlobsOptions;
  readonly #blobRoot: string;
  #uploadCount = 0;
  #blobBytes = 0;
  /** By address: bytes of each blob, and its scope where that is known. */
  readonly #blobSizes = new Map<string, number>();
  readonly #blobOwners = new Map<string, string>();
  readonly #bytesByScope = new Map<string, number>();
  /** By address: the number of holders who count on it, though no row names it yet. */
  readonly #heldBlobs = new Map<string, number>();
  #touchedBlobs: Set<string> | null = null;
  /** Stored by this process, and no row is known to name them: the last holder who releases one removes it. */
  readonly #unnamedBlobs = new Set<string>();
  /** By address: the last change of its file that is under way. It never rejects. */
  readonly #blobChanges = new Map<string, Promise<void>>();

  /** Drops the unfinished files of an earlier process, and counts the blobs. */
  static async open(blobOptions: BlobsOptions): Promise<Blobs> {
    const openedBlobs = new Blobs(blobOptions);
    await openedBlobs.#loadBlobs();
    return openedBlobs;
  }

  constructor(blobOptions: BlobsOptions) {
    this.#blobOptions = blobOptions;
    this.#blobRoot = `${blobOptions.directory}/blobs`;
  }

  /** A body that is about to come. */
  async begin(blobScope: string): Promise<BlobWriter> {
    const { random, keyring } = this.#blobOptions;
    const blobSeal = { key: random.fill(new Uint8Array(32)), prefix: random.fill(new Uint8Array(8)) };
    const blobHead = Buffer.alloc(BLOB_HEAD_BYTES);
    blobHead.set(blobMagic);
    const dataKey = keyring.activeDataKey;
    blobHead.writeUInt32LE(dataKey, 4);
    blobHead.set(blobSeal.prefix, 8);
    const uploadFile = await this.#newUploadFile();
    const blobMac = createHmac('sha256', blobMacKey(keyring.open(dataKey))).update(blobHead);
    await writeFully(uploadFile, blobHead, 0);
    const uploadBytes = this.#byteCounter();
    const sealedWriter = new SealedWriter(uploadFile, blobSeal, BLOB_HEAD_BYTES, (bytes) => {
      blobMac.update(bytes);
      uploadBytes.add(bytes.length);
    });
    const blobHash = createHash('sha256');
    return {
      write: (piece) => {
        blobHash.update(piece);
        return sealedWriter.write(piece);
      },
      finish: async () => {
        await sealedWriter.flush();
        const name = { scope: blobScope, sha256: blobHash.digest('hex') };
        const foot = Buffer.alloc(BLOB_FOOT_BYTES);
        foot.set(wrapBlobKey(this.#wrapKey(dataKey, name), blobSeal));
        foot.writeBigUInt64LE(BigInt(sealedWriter.size), WRAPPED_KEY_BYTES);
        const address = this.address(name);
        blobMac.update(foot.subarray(0, -BLOB_MAC_BYTES)).update(Buffer.from(address, 'hex'));
        foot.set(blobMac.digest(), WRAPPED_KEY_BYTES + 8);
        await writeFully(uploadFile, foot, sealedWriter.end);
        await uploadFile.sync();
        await uploadFile.close();
        this.hold(address);
        uploadBytes.clear();
        await this.#changeInTurn(address, () => this.#settleUpload(uploadFile.path, address, blobScope));
        return { ...name, size: sealedWriter.size };
      },
      abandon: () => {
        uploadBytes.clear();
        return this.#dropUpload(uploadFile);
      },
    };
  }

  /** A body that is kept for as long as the process: one of the parts of another. */
  async part(): Promise<PartWriter> {
    const { random } = this.#blobOptions;
    const partSeal: StreamSeal = { key: random.fill(new Uint8Array(32)), prefix: random.fill(new Uint8Array(8)) };
    const partFile = await this.#newUploadFile();
    const partBytes = this.#byteCounter();
    partBytes.add(blobFileBytesMin);
    const partSealer = new SealedWriter(partFile, partSeal, 0, (bytes) => partBytes.add(bytes.length));
    const abandon = (): Promise<void> => {
      partBytes.clear();
      return this.#dropUpload(partFile);
    };
    return {
      write: (piece) => partSealer.write(piece),
      finish: async () => {
        await partSealer.flush();
        const { size } = partSealer;
        return {
          size,
          read: () => readSealed(partFile, partSeal, { offset: 0, size, from: 0, to: size }),
          count: (is) => partBytes.count(is),
          drop: abandon,
        };
      },
      abandon,
    };
  }

  /** Bytes of one file that is being written, as part of `countedBytes`. */
  #byteCounter(): { add(countedBytes: number): void; clear(): void; count(is: boolean): void } {
    let countedBytes = 0;
    let isCounted = true;
    const setCounted = (is: boolean): void => {
      if (is !== isCounted) this.#blobBytes += is ? countedBytes : -countedBytes;
      isCounted = is;
    };
    const add = (addedBytes: number): void => {
      countedBytes += addedBytes;
      if (isCounted) this.#blobBytes += addedBytes;
    };
    const clearCount = (): void => {
      setCounted(false);
      countedBytes = 0;
    };
    return { add, clear: clearCount, count: setCounted };
  }

  /** Undefined when there is none. Throws REL_STORAGE when the stored bytes are not the ones that were put. */
  async open(blobName: BlobName): Promise<BlobReader | undefined> {
    const { disk } = this.#blobOptions;
    const blobFilePath = this.#pathOfBlob(this.address(blobName));
    if ((await disk.size(blobFilePath)) === undefined) return undefined;
    const blobFile = await disk.open(blobFilePath, 'read');
    try {
      const { dataKey, prefix, foot, size } = await readBlobFrame(blobFile);
      const blobKey = unwrapBlobKey(this.#wrapKey(dataKey, blobName), prefix, foot.subarray(0, WRAPPED_KEY_BYTES));
      const blobSeal = { key: blobKey, prefix };
      return {
        size,
        read: (from, to) => readSealed(blobFile, blobSeal, { offset: BLOB_HEAD_BYTES, size, from, to }),
        close: () => blobFile.close(),
      };
    } catch (error) {
      await blobFile.close();
      throw error;
    }
  }

  /** Addresses of everything stored, sorted. */
  list(): Promise<string[]> {
    return listBlobs(this.#blobOptions.disk, this.#blobOptions.directory);
  }

  /** Bytes on the disk: blobs, parts, and unfinished files. */
  get bytes(): number {
    return this.#blobBytes;
  }

  /** Bytes of blobs of a scope: those that were stored since the start, and those that were claimed. */
  bytesOf(blobScope: string): number {
    return this.#bytesByScope.get(blobScope) ?? 0;
  }

  /** A row of the scope names it: an address does not tell whose it is. */
  claim(blobAddress: string, blobScope: string): void {
    const blobSize = this.#blobSizes.get(blobAddress);
    if (blobSize === undefined || this.#blobOwners.has(blobAddress)) return;
    this.#blobOwners.set(blobAddress, blobScope);
    this.#bytesByScope.set(blobScope, this.bytesOf(blobScope) + blobSize);
  }

  #addStoredBlob(blobAddress: string, blobSize: number): void {
    this.#blobBytes += blobSize;
    this.#blobSizes.set(blobAddress, blobSize);
  }

  #forgetBlob(blobAddress: string, blobSize: number): void {
    this.#blobBytes -= blobSize;
    this.#blobSizes.delete(blobAddress);
    const blobOwner = this.#blobOwners.get(blobAddress);
    this.#blobOwners.delete(blobAddress);
    if (blobOwner !== undefined) this.#bytesByScope.set(blobOwner, this.bytesOf(blobOwner) - blobSize);
  }

  /** It is not removed until it was released as often. */
  hold(blobAddress: string): void {
    this.#heldBlobs.set(blobAddress, (this.#heldBlobs.get(blobAddress) ?? 0) + 1);
    this.#touchedBlobs?.add(blobAddress);
  }

  /** Addresses that are held from now on, until `unwatch`, be it for a while only. */
  watch(): ReadonlySet<string> {
    return (this.#touchedBlobs = new Set(this.#heldBlobs.keys()));
  }

  unwatch(): void {
    this.#touchedBlobs = null;
  }

  /** A row names it, or may: only a sweep removes it from now on. */
  name(blobAddress: string): void {
    this.#unnamedBlobs.delete(blobAddress);
  }

  /** Removes an unnamed blob once it has no holder; null where there is nothing to remove. */
  release(blobAddress: string): Promise<void> | null {
    const holderCount = this.#heldBlobs.get(blobAddress) ?? 0;
    if (holderCount > 1) this.#heldBlobs.set(blobAddress, holderCount - 1);
    else this.#heldBlobs.delete(blobAddress);
    return holderCount === 1 && this.#unnamedBlobs.has(blobAddress) ? this.#removeBlob(blobAddress) : null;
  }

  /** For good; false: it is held, and stays. */
  async remove(blobAddress: string): Promise<boolean> {
    if (this.#heldBlobs.has(blobAddress) || this.#touchedBlobs?.has(blobAddress) === true) return false;
    await this.#removeBlob(blobAddress);
    return true;
  }

  #removeBlob(blobAddress: string): Promise<void> {
    this.#unnamedBlobs.delete(blobAddress);
    return this.#changeInTurn(blobAddress, () => this.#unlinkBlob(blobAddress));
  }

  /**
   * One change after the other: a blob that is put during its removal stays, and of two writers of one blob the second finds it.
   */
  #changeInTurn(blobAddress: string, blobChangeWork: () => Promise<void>): Promise<void> {
    const blobChange = (this.#blobChanges.get(blobAddress) ?? Promise.resolve()).then(blobChangeWork);
    const endTurn = (): void => {
      if (this.#blobChanges.get(blobAddress) === lastChange) this.#blobChanges.delete(blobAddress);
    };
    const lastChange: Promise<void> = blobChange.then(endTurn, endTurn);
    this.#blobChanges.set(blobAddress, lastChange);
    return blobChange;
  }

  async #unlinkBlob(blobAddress: string): Promise<void> {
    const { disk } = this.#blobOptions;
    const blobFilePath = this.#pathOfBlob(blobAddress);
    const blobSize = await disk.size(blobFilePath);
    if (blobSize === undefined) return;
    await disk.unlink(blobFilePath);
    this.#forgetBlob(blobAddress, blobSize);
    await disk.syncDirectory(`${this.#blobRoot}/${blobAddress.slice(0, 2)}`);
  }

  async #loadBlobs(): Promise<void> {
    const { disk, directory } = this.#blobOptions;
    for (const staleUpload of await disk.list(this.#uploadDirectory))
      await disk.unlink(`${this.#uploadDirectory}/${staleUpload}`);
    this.#blobBytes = 0;
    for (const address of await listBlobs(disk, directory))
      this.#addStoredBlob(address, (await disk.size(this.#pathOfBlob(address))) ?? 0);
  }

  address({ scope: blobScope, sha256 }: BlobName): string {
    if (!/^[0-9a-f]{64}$/.test(sha256)) throw new ServiceError('REL_INVALID', 'the name of a body must be 64 hex digits');
    return createHmac('sha256', this.#blobOptions.keyring.hmacKey).update(`blob\0${blobScope}\0${sha256}`).digest('hex');
  }

  async #newUploadFile(): Promise<DiskFile> {
    const { disk } = this.#blobOptions;
    await disk.makeDirectory(this.#uploadDirectory);
    return disk.open(`${this.#uploadDirectory}/${++this.#uploadCount}`, 'create');
  }

  /** The first of those with the same content stays. */
  async #settleUpload(uploadPath: string, blobAddress: string, blobScope: string): Promise<void> {
    const { disk } = this.#blobOptions;
    const blobDirectory = `${this.#blobRoot}/${blobAddress.slice(0, 2)}`;
    if ((await disk.size(this.#pathOfBlob(blobAddress))) !== undefined) return disk.unlink(uploadPath);
    await disk.makeDirectory(blobDirectory);
    await disk.rename(uploadPath, this.#pathOfBlob(blobAddress));
    this.#unnamedBlobs.add(blobAddress);
    this.#addStoredBlob(blobAddress, (await disk.size(this.#pathOfBlob(blobAddress))) ?? 0);
    this.claim(blobAddress, blobScope);
    await disk.syncDirectory(blobDirectory);
  }

  async #dropUpload(uploadFile: DiskFile): Promise<void> {
    try {
      await uploadFile.close();
    } finally {
      await this.#blobOptions.disk.unlink(uploadFile.path);
    }
  }

  #wrapKey(dataKey: number, { scope, sha256 }: BlobName): Buffer {
    return createHmac('sha256', this.#blobOptions.keyring.open(dataKey)).update(`blob key\0${scope}\0${sha256}`).digest();
  }

  get #uploadDirectory(): string {
    return `${this.#blobRoot}/incoming`;
  }

  #pathOfBlob(blobAddress: string): string {
    return blobPath(this.#blobOptions.directory, blobAddress);
  }
}

export interface BlobWriter {
  write(piece: Uint8Array): Promise<void>;
  /** Durable and held when it resolves; content that is there already is not kept twice. */
  finish(): Promise<BlobName & { readonly size: number }>;
  abandon(): Promise<void>;
}

export interface BlobReader {
  readonly size: number;
  /** Content from here to before there. */
  read(from: number, to: number): AsyncGenerator<Uint8Array, void>;
  close(): Promise<void>;
}

export interface PartWriter {
  write(piece: Uint8Array): Promise<void>;
  finish(): Promise<Part>;
  abandon(): Promise<void>;
}

export interface Part {
  readonly size: number;
  /** Whether its bytes are among `Blobs.bytes`: not, while a body that is made of it is. */
  count(is: boolean): void;
  read(): AsyncGenerator<Uint8Array, void>;
  drop(): Promise<void>;
}

/** The wrapping key belongs to one content alone, so a nonce of the blob's own keeps wrapped keys apart. */
function wrapBlobKey(wrapKey: Uint8Array, { key, prefix }: StreamSeal): Buffer {
  const keyCipher = createCipheriv('aes-256-gcm', wrapKey, blobWrapNonce(prefix));
  return Buffer.concat([keyCipher.update(key), keyCipher.final(), keyCipher.getAuthTag()]);
}

function unwrapBlobKey(wrapKey: Uint8Array, prefix: Uint8Array, wrappedKey: Uint8Array): Buffer {
  const keyDecipher = createDecipheriv('aes-256-gcm', wrapKey, blobWrapNonce(prefix), { authTagLength: 16 });
  keyDecipher.setAuthTag(wrappedKey.subarray(32));
  try {
    return Buffer.concat([keyDecipher.update(wrappedKey.subarray(0, 32)), keyDecipher.final()]);
  } catch (cause) {
    throw new ServiceError('REL_STORAGE', 'a blob is damaged: its key does not open', { cause });
  }
}

const blobWrapNonce = (prefix: Uint8Array): Buffer => Buffer.concat([prefix, Buffer.alloc(4, 0xff)]);

export async function listBlobs(disk: Disk, directory: string): Promise<string[]> {
  const blobAddresses: string[] = [];
  for (const addressPrefix of await disk.list(`${directory}/blobs`)) {
    if (!/^[0-9a-f]{2}$/.test(addressPrefix)) continue;
    for (const blobAddress of await disk.list(`${directory}/blobs/${addressPrefix}`))
      if (/^[0-9a-f]{64}$/.test(blobAddress)) blobAddresses.push(blobAddress);
  }
  return blobAddresses;
}

/** Throws REL_STORAGE where what is there is not as it was written; false: there is none. */
export async function checkBlob(
  { disk, directory, keyring }: Pick<BlobsOptions, 'disk' | 'directory'> & { readonly keyring: Pick<Keyring, 'open'> },
  blobAddress: string,
): Promise<boolean> {
  const checkedBlobPath = blobPath(directory, blobAddress);
  if ((await disk.size(checkedBlobPath)) === undefined) return false;
  const blobFile = await disk.open(checkedBlobPath, 'read');
  try {
    if (await beginsWithMagic(blobFile, firstBlobMagic)) {
      const blobBytes = Buffer.alloc(await blobFile.size());
      await readFully(blobFile, blobBytes, 0);
      if (!isFirstBlob(blobBytes, blobAddress, (id) => keyring.open(id))) throw damagedBlobError(blobFile);
      return true;
    }
    const { dataKey, foot, length } = await readBlobFrame(blobFile);
    const blobMac = createHmac('sha256', blobMacKey(keyring.open(dataKey)));
    const blobPiece = Buffer.allocUnsafe(1 << 20);
    for (let blobOffset = 0; blobOffset < length - BLOB_MAC_BYTES; ) {
      const readPiece = blobPiece.subarray(0, Math.min(blobPiece.length, length - BLOB_MAC_BYTES - blobOffset));
      await readFully(blobFile, readPiece, blobOffset);
      blobMac.update(readPiece);
      blobOffset += readPiece.length;
    }
    blobMac.update(Buffer.from(blobAddress, 'hex'));
    if (!timingSafeEqual(blobMac.digest(), foot.subarray(-BLOB_MAC_BYTES))) throw damagedBlobError(blobFile);
    return true;
  } finally {
    await blobFile.close();
  }
}

async function beginsWithMagic(blobFile: DiskFile, magicBytes: Buffer): Promise<boolean> {
  const firstBytes = Buffer.alloc(magicBytes.length);
  return (await blobFile.read(firstBytes, 0)) === firstBytes.length && firstBytes.equals(magicBytes);
}

interface BlobFrame {
  readonly dataKey: number;
  readonly prefix: Buffer;
  readonly foot: Buffer;
  readonly size: number;
  readonly length: number;
}

async function readBlobFrame(blobFile: DiskFile): Promise<BlobFrame> {
  const blobLength = await blobFile.size();
  if (blobLength < BLOB_HEAD_BYTES + BLOB_FOOT_BYTES) throw damagedBlobError(blobFile);
  const blobHead = Buffer.alloc(BLOB_HEAD_BYTES);
  const blobFoot = Buffer.alloc(BLOB_FOOT_BYTES);
  await readFully(blobFile, blobHead, 0);
  await readFully(blobFile, blobFoot, blobLength - BLOB_FOOT_BYTES);
  const contentSize = Number(blobFoot.readBigUInt64LE(WRAPPED_KEY_BYTES));
  if (!blobHead.subarray(0, 4).equals(blobMagic) || BLOB_HEAD_BYTES + sealedBytes(contentSize) + BLOB_FOOT_BYTES !== blobLength)
    throw damagedBlobError(blobFile);
  return {
    dataKey: blobHead.readUInt32LE(4),
    prefix: blobHead.subarray(8),
    foot: blobFoot,
    size: contentSize,
    length: blobLength,
  };
}

function blobPath(dataDirectory: string, blobAddress: string): string {
  if (!/^[0-9a-f]{64}$/.test(blobAddress)) throw new ServiceError('REL_INVALID', 'the name of a blob must be 64 hex digits');
  return `${dataDirectory}/blobs/${blobAddress.slice(0, 2)}/${blobAddress}`;
}

const blobMacKey = (dataKey: KeyObject): Buffer => createHmac('sha256', dataKey).update('blob mac').digest();
const damagedBlobError = (file: DiskFile): ServiceError => new ServiceError('REL_STORAGE', `${file.path} is damaged`);
