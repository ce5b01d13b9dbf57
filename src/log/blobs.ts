/**
 * Large bodies by content hash: `<data>/blobs/<first two hex digits>/<hash>`, sealed, written once and whole.
 *
 *   +------------+----------------+------------+--------+----------+
 *   | "ABLB" u32 | data key u32   | nonce [12] | sealed | tag [16] |   the hash is of the content before sealing
 *   +------------+----------------+------------+--------+----------+
 */
import * as crypto from 'node:crypto';
import type { Random } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import type { Disk } from './disk.ts';
import type { Keyring } from './keys.ts';
import { sha256Hex } from './sha256.ts';

const magic = Buffer.from('ABLB', 'latin1');
const HEAD_BYTES = 20;
const TAG_BYTES = 16;

export interface BlobsOptions {
  readonly disk: Disk;
  readonly random: Random;
  /** The data directory. */
  readonly directory: string;
  readonly keyring: Pick<Keyring, 'open' | 'activeDataKey'>;
}

export class Blobs {
  readonly #options: BlobsOptions;
  readonly #root: string;

  constructor(options: BlobsOptions) {
    this.#options = options;
    this.#root = `${options.directory}/blobs`;
  }

  /** Lower-case hex SHA-256 of the content. Durable when it resolves; content that is there already is not written again. */
  async put(content: Uint8Array): Promise<string> {
    const { disk, random, keyring } = this.#options;
    const hash = sha256Hex(content);
    if ((await disk.size(this.#path(hash))) !== undefined) return hash;
    const head = Buffer.alloc(HEAD_BYTES);
    head.set(magic);
    head.writeUInt32LE(keyring.activeDataKey, 4);
    random.fill(head.subarray(8));
    const cipher = crypto.createCipheriv('aes-256-gcm', keyring.open(keyring.activeDataKey), head.subarray(8));
    cipher.setAAD(Buffer.from(hash, 'hex'));
    const sealed = Buffer.concat([head, cipher.update(content), cipher.final(), cipher.getAuthTag()]);
    await disk.makeDirectory(`${this.#root}/${hash.slice(0, 2)}`);
    await disk.replaceFile(this.#path(hash), sealed);
    return hash;
  }

  /** Undefined when there is none. Throws REL_STORAGE when what is there is not what was put. */
  async get(hash: string): Promise<Uint8Array | undefined> {
    const bytes = await this.#options.disk.readFile(this.#path(hash));
    return bytes && this.#open(hash, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  }

  /** Hashes of everything stored, sorted. */
  async list(): Promise<string[]> {
    const { disk } = this.#options;
    const hashes: string[] = [];
    for (const prefix of await disk.list(this.#root)) {
      for (const name of await disk.list(`${this.#root}/${prefix}`)) if (/^[0-9a-f]{64}$/.test(name)) hashes.push(name);
    }
    return hashes;
  }

  /** Hashes of blobs that do not open, or are not what their name says. */
  async verify(): Promise<string[]> {
    const damaged: string[] = [];
    for (const hash of await this.list()) {
      const whole = await this.get(hash).then(
        () => true,
        () => false,
      );
      if (!whole) damaged.push(hash);
    }
    return damaged;
  }

  #open(hash: string, bytes: Buffer): Uint8Array {
    const damaged = (cause?: unknown): ServiceError => new ServiceError('REL_STORAGE', `blob ${hash} is damaged`, { cause });
    if (bytes.length < HEAD_BYTES + TAG_BYTES || !bytes.subarray(0, 4).equals(magic)) throw damaged();
    const key = this.#options.keyring.open(bytes.readUInt32LE(4));
    const decipher = crypto.createDecipheriv('aes-256-gcm', key, bytes.subarray(8, HEAD_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(hash, 'hex'));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    let content: Buffer;
    try {
      content = Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES, -TAG_BYTES)), decipher.final()]);
    } catch (cause) {
      throw damaged(cause);
    }
    if (sha256Hex(content) !== hash) throw damaged();
    return content;
  }

  #path(hash: string): string {
    if (!/^[0-9a-f]{64}$/.test(hash)) throw new ServiceError('REL_INVALID', 'a blob is named by 64 hex digits');
    return `${this.#root}/${hash.slice(0, 2)}/${hash}`;
  }
}
