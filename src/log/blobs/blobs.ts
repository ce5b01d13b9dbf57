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

const magic = Buffer.from('ABL2', 'latin1');
const HEAD_BYTES = 16;
const WRAPPED_BYTES = 48;
const MAC_BYTES = 32;
const FOOT_BYTES = WRAPPED_BYTES + 8 + MAC_BYTES;
/** A file takes a block of the disk, however little it holds. */
const fileBytesMin = 4_096;

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
  readonly #options: BlobsOptions;
  readonly #root: string;
  #uploads = 0;
  #bytes = 0;
  /** By address: bytes of each blob, and its scope where that is known. */
  readonly #sizes = new Map<string, number>();
  readonly #owners = new Map<string, string>();
  readonly #bytesOf = new Map<string, number>();
  /** By address: the number of holders who count on it, though no row names it yet. */
  readonly #held = new Map<string, number>();
  #touched: Set<string> | null = null;
  /** Stored by this process, and no row is known to name them: the last holder who releases one removes it. */
  readonly #unnamed = new Set<string>();
  /** By address: the last change of its file that is under way. It never rejects. */
  readonly #changing = new Map<string, Promise<void>>();

  /** Drops the unfinished files of an earlier process, and counts the blobs. */
  static async open(options: BlobsOptions): Promise<Blobs> {
    const blobs = new Blobs(options);
    await blobs.#start();
    return blobs;
  }

  constructor(options: BlobsOptions) {
    this.#options = options;
    this.#root = `${options.directory}/blobs`;
  }

  /** A body that is about to come. */
  async begin(scope: string): Promise<BlobWriter> {
    const { random, keyring } = this.#options;
    const seal = { key: random.fill(new Uint8Array(32)), prefix: random.fill(new Uint8Array(8)) };
    const head = Buffer.alloc(HEAD_BYTES);
    head.set(magic);
    const dataKey = keyring.activeDataKey;
    head.writeUInt32LE(dataKey, 4);
    head.set(seal.prefix, 8);
    const file = await this.#newFile();
    const mac = createHmac('sha256', macKey(keyring.open(dataKey))).update(head);
    await writeFully(file, head, 0);
    const counted = this.#counter();
    const writer = new SealedWriter(file, seal, HEAD_BYTES, (bytes) => {
      mac.update(bytes);
      counted.add(bytes.length);
    });
    const hash = createHash('sha256');
    return {
      write: (piece) => {
        hash.update(piece);
        return writer.write(piece);
      },
      finish: async () => {
        await writer.flush();
        const name = { scope, sha256: hash.digest('hex') };
        const foot = Buffer.alloc(FOOT_BYTES);
        foot.set(wrap(this.#wrapKey(dataKey, name), seal));
        foot.writeBigUInt64LE(BigInt(writer.size), WRAPPED_BYTES);
        const address = this.address(name);
        mac.update(foot.subarray(0, -MAC_BYTES)).update(Buffer.from(address, 'hex'));
        foot.set(mac.digest(), WRAPPED_BYTES + 8);
        await writeFully(file, foot, writer.end);
        await file.sync();
        await file.close();
        this.hold(address);
        counted.clear();
        await this.#inTurn(address, () => this.#settle(file.path, address, scope));
        return { ...name, size: writer.size };
      },
      abandon: () => {
        counted.clear();
        return this.#drop(file);
      },
    };
  }

  /** A body that is kept for as long as the process: one of the parts of another. */
  async part(): Promise<PartWriter> {
    const { random } = this.#options;
    const seal: StreamSeal = { key: random.fill(new Uint8Array(32)), prefix: random.fill(new Uint8Array(8)) };
    const file = await this.#newFile();
    const counted = this.#counter();
    counted.add(fileBytesMin);
    const writer = new SealedWriter(file, seal, 0, (bytes) => counted.add(bytes.length));
    const abandon = (): Promise<void> => {
      counted.clear();
      return this.#drop(file);
    };
    return {
      write: (piece) => writer.write(piece),
      finish: async () => {
        await writer.flush();
        const { size } = writer;
        return {
          size,
          read: () => readSealed(file, seal, { offset: 0, size, from: 0, to: size }),
          count: (is) => counted.count(is),
          drop: abandon,
        };
      },
      abandon,
    };
  }

  /** Bytes of one file that is being written, as part of `bytes`. */
  #counter(): { add(bytes: number): void; clear(): void; count(is: boolean): void } {
    let bytes = 0;
    let isCounted = true;
    const count = (is: boolean): void => {
      if (is !== isCounted) this.#bytes += is ? bytes : -bytes;
      isCounted = is;
    };
    const add = (more: number): void => {
      bytes += more;
      if (isCounted) this.#bytes += more;
    };
    const clear = (): void => {
      count(false);
      bytes = 0;
    };
    return { add, clear, count };
  }

  /** Undefined when there is none. Throws REL_STORAGE when the stored bytes are not the ones that were put. */
  async open(name: BlobName): Promise<BlobReader | undefined> {
    const { disk } = this.#options;
    const path = this.#path(this.address(name));
    if ((await disk.size(path)) === undefined) return undefined;
    const file = await disk.open(path, 'read');
    try {
      const { dataKey, prefix, foot, size } = await frameOf(file);
      const key = unwrap(this.#wrapKey(dataKey, name), prefix, foot.subarray(0, WRAPPED_BYTES));
      const seal = { key, prefix };
      return {
        size,
        read: (from, to) => readSealed(file, seal, { offset: HEAD_BYTES, size, from, to }),
        close: () => file.close(),
      };
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Addresses of everything stored, sorted. */
  list(): Promise<string[]> {
    return listBlobs(this.#options.disk, this.#options.directory);
  }

  /** Bytes on the disk: blobs, parts, and unfinished files. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes of blobs of a scope: those that were stored since the start, and those that were claimed. */
  bytesOf(scope: string): number {
    return this.#bytesOf.get(scope) ?? 0;
  }

  /** A row of the scope names it: an address does not tell whose it is. */
  claim(address: string, scope: string): void {
    const size = this.#sizes.get(address);
    if (size === undefined || this.#owners.has(address)) return;
    this.#owners.set(address, scope);
    this.#bytesOf.set(scope, this.bytesOf(scope) + size);
  }

  #store(address: string, size: number): void {
    this.#bytes += size;
    this.#sizes.set(address, size);
  }

  #forget(address: string, size: number): void {
    this.#bytes -= size;
    this.#sizes.delete(address);
    const owner = this.#owners.get(address);
    this.#owners.delete(address);
    if (owner !== undefined) this.#bytesOf.set(owner, this.bytesOf(owner) - size);
  }

  /** It is not removed until it was released as often. */
  hold(address: string): void {
    this.#held.set(address, (this.#held.get(address) ?? 0) + 1);
    this.#touched?.add(address);
  }

  /** Addresses that are held from now on, until `unwatch`, be it for a while only. */
  watch(): ReadonlySet<string> {
    return (this.#touched = new Set(this.#held.keys()));
  }

  unwatch(): void {
    this.#touched = null;
  }

  /** A row names it, or may: only a sweep removes it from now on. */
  name(address: string): void {
    this.#unnamed.delete(address);
  }

  /** Removes an unnamed blob once it has no holder; null where there is nothing to remove. */
  release(address: string): Promise<void> | null {
    const count = this.#held.get(address) ?? 0;
    if (count > 1) this.#held.set(address, count - 1);
    else this.#held.delete(address);
    return count === 1 && this.#unnamed.has(address) ? this.#remove(address) : null;
  }

  /** For good; false: it is held, and stays. */
  async remove(address: string): Promise<boolean> {
    if (this.#held.has(address) || this.#touched?.has(address) === true) return false;
    await this.#remove(address);
    return true;
  }

  #remove(address: string): Promise<void> {
    this.#unnamed.delete(address);
    return this.#inTurn(address, () => this.#unlink(address));
  }

  /**
   * One change after the other: a blob that is put during its removal stays, and of two writers of one blob the second finds it.
   */
  #inTurn(address: string, change: () => Promise<void>): Promise<void> {
    const turn = (this.#changing.get(address) ?? Promise.resolve()).then(change);
    const endTurn = (): void => {
      if (this.#changing.get(address) === last) this.#changing.delete(address);
    };
    const last: Promise<void> = turn.then(endTurn, endTurn);
    this.#changing.set(address, last);
    return turn;
  }

  async #unlink(address: string): Promise<void> {
    const { disk } = this.#options;
    const path = this.#path(address);
    const size = await disk.size(path);
    if (size === undefined) return;
    await disk.unlink(path);
    this.#forget(address, size);
    await disk.syncDirectory(`${this.#root}/${address.slice(0, 2)}`);
  }

  async #start(): Promise<void> {
    const { disk, directory } = this.#options;
    for (const name of await disk.list(this.#incoming)) await disk.unlink(`${this.#incoming}/${name}`);
    this.#bytes = 0;
    for (const address of await listBlobs(disk, directory)) this.#store(address, (await disk.size(this.#path(address))) ?? 0);
  }

  address({ scope, sha256 }: BlobName): string {
    if (!/^[0-9a-f]{64}$/.test(sha256)) throw new ServiceError('REL_INVALID', 'the name of a body must be 64 hex digits');
    return createHmac('sha256', this.#options.keyring.hmacKey).update(`blob\0${scope}\0${sha256}`).digest('hex');
  }

  async #newFile(): Promise<DiskFile> {
    const { disk } = this.#options;
    await disk.makeDirectory(this.#incoming);
    return disk.open(`${this.#incoming}/${++this.#uploads}`, 'create');
  }

  /** The first of those with the same content stays. */
  async #settle(from: string, address: string, scope: string): Promise<void> {
    const { disk } = this.#options;
    const home = `${this.#root}/${address.slice(0, 2)}`;
    if ((await disk.size(this.#path(address))) !== undefined) return disk.unlink(from);
    await disk.makeDirectory(home);
    await disk.rename(from, this.#path(address));
    this.#unnamed.add(address);
    this.#store(address, (await disk.size(this.#path(address))) ?? 0);
    this.claim(address, scope);
    await disk.syncDirectory(home);
  }

  async #drop(file: DiskFile): Promise<void> {
    try {
      await file.close();
    } finally {
      await this.#options.disk.unlink(file.path);
    }
  }

  #wrapKey(dataKey: number, { scope, sha256 }: BlobName): Buffer {
    return createHmac('sha256', this.#options.keyring.open(dataKey)).update(`blob key\0${scope}\0${sha256}`).digest();
  }

  get #incoming(): string {
    return `${this.#root}/incoming`;
  }

  #path(address: string): string {
    return pathOf(this.#options.directory, address);
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
function wrap(wrapKey: Uint8Array, { key, prefix }: StreamSeal): Buffer {
  const cipher = createCipheriv('aes-256-gcm', wrapKey, wrapNonce(prefix));
  return Buffer.concat([cipher.update(key), cipher.final(), cipher.getAuthTag()]);
}

function unwrap(wrapKey: Uint8Array, prefix: Uint8Array, bytes: Uint8Array): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', wrapKey, wrapNonce(prefix), { authTagLength: 16 });
  decipher.setAuthTag(bytes.subarray(32));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(0, 32)), decipher.final()]);
  } catch (cause) {
    throw new ServiceError('REL_STORAGE', 'a blob is damaged: its key does not open', { cause });
  }
}

const wrapNonce = (prefix: Uint8Array): Buffer => Buffer.concat([prefix, Buffer.alloc(4, 0xff)]);

export async function listBlobs(disk: Disk, directory: string): Promise<string[]> {
  const addresses: string[] = [];
  for (const prefix of await disk.list(`${directory}/blobs`)) {
    if (!/^[0-9a-f]{2}$/.test(prefix)) continue;
    for (const name of await disk.list(`${directory}/blobs/${prefix}`)) if (/^[0-9a-f]{64}$/.test(name)) addresses.push(name);
  }
  return addresses;
}

/** Throws REL_STORAGE where what is there is not as it was written; false: there is none. */
export async function checkBlob(
  { disk, directory, keyring }: Pick<BlobsOptions, 'disk' | 'directory'> & { readonly keyring: Pick<Keyring, 'open'> },
  address: string,
): Promise<boolean> {
  const path = pathOf(directory, address);
  if ((await disk.size(path)) === undefined) return false;
  const file = await disk.open(path, 'read');
  try {
    if (await beginsWith(file, firstBlobMagic)) {
      const bytes = Buffer.alloc(await file.size());
      await readFully(file, bytes, 0);
      if (!isFirstBlob(bytes, address, (id) => keyring.open(id))) throw damagedError(file);
      return true;
    }
    const { dataKey, foot, length } = await frameOf(file);
    const mac = createHmac('sha256', macKey(keyring.open(dataKey)));
    const piece = Buffer.allocUnsafe(1 << 20);
    for (let at = 0; at < length - MAC_BYTES; ) {
      const part = piece.subarray(0, Math.min(piece.length, length - MAC_BYTES - at));
      await readFully(file, part, at);
      mac.update(part);
      at += part.length;
    }
    mac.update(Buffer.from(address, 'hex'));
    if (!timingSafeEqual(mac.digest(), foot.subarray(-MAC_BYTES))) throw damagedError(file);
    return true;
  } finally {
    await file.close();
  }
}

async function beginsWith(file: DiskFile, magicBytes: Buffer): Promise<boolean> {
  const begins = Buffer.alloc(magicBytes.length);
  return (await file.read(begins, 0)) === begins.length && begins.equals(magicBytes);
}

interface Frame {
  readonly dataKey: number;
  readonly prefix: Buffer;
  readonly foot: Buffer;
  readonly size: number;
  readonly length: number;
}

async function frameOf(file: DiskFile): Promise<Frame> {
  const length = await file.size();
  if (length < HEAD_BYTES + FOOT_BYTES) throw damagedError(file);
  const head = Buffer.alloc(HEAD_BYTES);
  const foot = Buffer.alloc(FOOT_BYTES);
  await readFully(file, head, 0);
  await readFully(file, foot, length - FOOT_BYTES);
  const size = Number(foot.readBigUInt64LE(WRAPPED_BYTES));
  if (!head.subarray(0, 4).equals(magic) || HEAD_BYTES + sealedBytes(size) + FOOT_BYTES !== length) throw damagedError(file);
  return { dataKey: head.readUInt32LE(4), prefix: head.subarray(8), foot, size, length };
}

function pathOf(directory: string, address: string): string {
  if (!/^[0-9a-f]{64}$/.test(address)) throw new ServiceError('REL_INVALID', 'the name of a blob must be 64 hex digits');
  return `${directory}/blobs/${address.slice(0, 2)}/${address}`;
}

const macKey = (dataKey: KeyObject): Buffer => createHmac('sha256', dataKey).update('blob mac').digest();
const damagedError = (file: DiskFile): ServiceError => new ServiceError('REL_STORAGE', `${file.path} is damaged`);
