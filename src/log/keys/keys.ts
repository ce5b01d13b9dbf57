/**
 * Keys at rest: the key-encryption key (KEK) comes from outside and wraps everything else in one small file,
 * `<data>/keys/data-keys.json`, which is the one thing beside the chain that is ever replaced.
 *
 * - The file opens with the right KEK, whole, or not at all: one AES-256-GCM seal covers its whole content.
 * - A fingerprint distinguishes a wrong KEK from a damaged file, and neither changes a byte.
 * - A log without its keys is an error, never a reason to make new ones: they would open nothing.
 * - Data keys are numbered from 1 and never reused; old ones stay for as long as bytes are sealed under them.
 */
import * as crypto from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { type NoteSigner, noteSigner } from '../tree/checkpoint-note.ts';
import type { Disk } from '../disk/disk.ts';
import { isSealedFor, type KeySecrets, openKeyFile, sealKeyFile } from './key-file.ts';
import { hexOf } from '../bytes/sha256.ts';
import { SubjectKeyFiles, type SubjectKeys } from './subject-keys.ts';
import { type DataKeys, shardNumber, type Tombstone } from './subject-shard.ts';

export interface Keyring {
  /** Number of the data key that new payloads are sealed under. */
  readonly activeDataKey: number;
  /** Numbers of all that are there, rising. */
  readonly dataKeyIds: readonly number[];
  /** Throws REL_STORAGE for a key that is not, or no longer, there. */
  open(id: number): KeyObject;
  /** Ed25519 key of the log: signs tree heads. */
  readonly signer: NoteSigner;
  /** Public keys that this log has signed with, the present one first. */
  readonly publicKeys: readonly Uint8Array[];
  /** For keyed digests of literals: HMAC-SHA-256. */
  readonly hmacKey: Uint8Array;
  /** Keys of subjects, which an erasure destroys. */
  readonly subjects: SubjectKeys;
  /** Lets go of the files, once nothing more is asked of the keys. */
  close(): Promise<void>;
}

/** Everything needed to open a data directory: the content of an escrow. */
export interface KeyContents {
  readonly secrets: KeySecrets;
  /** Records of the subject keys that are in force (`subject-shard.ts`). */
  readonly records: Iterable<Uint8Array>;
  readonly tombstones: readonly Tombstone[];
}

export interface Rotation {
  readonly active: number;
  readonly previous: number;
}

/** A keyring whose files are at hand. */
export interface KeyStore extends Keyring {
  /**
   * A new data key for all that is sealed from now on, durable before anything is; what was sealed before goes on under its
   * own. Resolves with the number of the one in use and of the one before.
   */
  rotate(): Promise<Rotation>;
  contents(): KeyContents;
}

export interface KeyringOptions {
  readonly disk: Disk;
  readonly random: Random;
  /** The data directory. */
  readonly directory: string;
  /** 32 bytes. */
  readonly kek: Uint8Array;
  /** 32 bytes from outside; without it a seed is made once and kept in the file. */
  readonly signingSeed?: Uint8Array;
}

const KEY_BYTES = 32;

/** Opens the key file, or makes it where there is no log yet. */
export async function openKeyring(options: KeyringOptions): Promise<KeyStore> {
  const { disk, random, directory, kek, signingSeed } = options;
  requireKey(kek, 'the key-encryption key');
  if (signingSeed) requireKey(signingSeed, 'the log signing seed');
  const path = keyFilePath(directory);
  const stored = await disk.readFile(path);
  // A process that died before its last step may have left a name that a power cut would take back.
  if (stored) await disk.syncDirectory(`${directory}/keys`);
  const secrets = stored ? openKeyFile(stored, kek, path) : await firstSecrets(options);
  const seed = signingSeed ?? secrets.signingSeed ?? random.fill(new Uint8Array(KEY_BYTES));
  const signer = noteSigner(seed);
  const current = hexOf(signer.publicKey);
  const next: KeySecrets = {
    ...secrets,
    signingSeed: signingSeed ? secrets.signingSeed : seed,
    publicKeys: [current, ...secrets.publicKeys.filter((key) => key !== current)],
  };
  if (!stored || next.publicKeys[0] !== secrets.publicKeys[0]) {
    await disk.makeDirectory(`${directory}/keys`);
    await disk.replaceFile(path, sealKeyFile(next, kek, random), 0o600);
  }
  const dataKeys = new OpenDataKeys(next);
  const subjects = await SubjectKeyFiles.open({ disk, random, directory: `${directory}/keys`, dataKeys, hmacKey: next.hmacKey });
  return new OpenKeyring(options, next, { signer, dataKeys, subjects });
}

export function keyFilePath(directory: string): string {
  return `${directory}/keys/data-keys.json`;
}

/** Under another key-encryption key, atomically; where that was done already, nothing changes. */
export async function rewrapKeys(options: {
  readonly disk: Disk;
  readonly random: Random;
  readonly directory: string;
  readonly kek: Uint8Array;
  readonly next: Uint8Array;
}): Promise<void> {
  const { disk, random, directory, kek, next } = options;
  requireKey(kek, 'the key-encryption key');
  requireKey(next, 'the new key-encryption key');
  const path = keyFilePath(directory);
  const stored = await disk.readFile(path);
  if (!stored) throw new ServiceError('REL_STORAGE', `${path} is missing`);
  if (isSealedFor(stored, next)) {
    openKeyFile(stored, next, path);
    return await disk.syncDirectory(`${directory}/keys`);
  }
  await disk.replaceFile(path, sealKeyFile(openKeyFile(stored, kek, path), next, random), 0o600);
}

class OpenDataKeys implements DataKeys {
  activeDataKey: number;
  readonly #keys: Map<number, KeyObject>;

  constructor({ active, dataKeys }: KeySecrets) {
    this.activeDataKey = active;
    this.#keys = new Map([...dataKeys].map(([id, key]) => [id, crypto.createSecretKey(key)]));
  }

  get ids(): readonly number[] {
    return [...this.#keys.keys()].sort((a, b) => a - b);
  }

  open(id: number): KeyObject {
    const key = this.#keys.get(id);
    if (!key) throw new ServiceError('REL_STORAGE', `data key ${id} is not in the key file`);
    return key;
  }

  /** From this turn on everything is sealed under it. */
  use(id: number, key: Uint8Array): void {
    this.#keys.set(id, crypto.createSecretKey(key));
    this.activeDataKey = id;
  }
}

class OpenKeyring implements KeyStore {
  readonly signer: NoteSigner;
  readonly publicKeys: readonly Uint8Array[];
  readonly hmacKey: Uint8Array;
  readonly subjects: SubjectKeyFiles;
  readonly #options: KeyringOptions;
  readonly #dataKeys: OpenDataKeys;
  #secrets: KeySecrets;
  /** The highest number that a data key was ever made under. */
  #lastNumber: number;
  #rotating: Promise<unknown> = Promise.resolve();

  constructor(
    options: KeyringOptions,
    secrets: KeySecrets,
    opened: { readonly signer: NoteSigner; readonly dataKeys: OpenDataKeys; readonly subjects: SubjectKeyFiles },
  ) {
    this.signer = opened.signer;
    this.publicKeys = secrets.publicKeys.map((key) => new Uint8Array(Buffer.from(key, 'hex')));
    this.hmacKey = secrets.hmacKey;
    this.subjects = opened.subjects;
    this.#options = options;
    this.#dataKeys = opened.dataKeys;
    this.#secrets = secrets;
    this.#lastNumber = Math.max(...secrets.dataKeys.keys());
  }

  get activeDataKey(): number {
    return this.#dataKeys.activeDataKey;
  }

  get dataKeyIds(): readonly number[] {
    return this.#dataKeys.ids;
  }

  open(id: number): KeyObject {
    return this.#dataKeys.open(id);
  }

  rotate(): Promise<Rotation> {
    const rotating = this.#rotating.then(() => this.#rotate());
    this.#rotating = rotating.catch(() => undefined);
    return rotating;
  }

  contents(): KeyContents {
    return { secrets: this.#secrets, records: this.subjects.usedRecords(), tombstones: this.subjects.tombstones() };
  }

  async close(): Promise<void> {
    await this.#rotating;
    await this.subjects.close();
  }

  async #rotate(): Promise<Rotation> {
    const { disk, random, directory, kek } = this.#options;
    // The file of an attempt that failed may be there after all, so its number is not tried again.
    const number = ++this.#lastNumber;
    const key = random.fill(new Uint8Array(KEY_BYTES));
    const next = { ...this.#secrets, active: number, dataKeys: new Map([...this.#secrets.dataKeys, [number, key]]) };
    const previous = this.activeDataKey;
    try {
      await disk.replaceFile(keyFilePath(directory), sealKeyFile(next, kek, random), 0o600);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new ServiceError('REL_STORAGE', `data key ${previous} stays in use, the new one could not be stored: ${why}`, {
        cause,
      });
    }
    this.#secrets = next;
    this.#dataKeys.use(number, key);
    return { active: number, previous };
  }
}

/** Throws where something lies that only a key file which is gone could open: no key is made in its place. */
export async function refuseLostKeys(disk: Disk, directory: string): Promise<void> {
  if ((await disk.size(keyFilePath(directory))) !== undefined) return;
  const names = await disk.list(`${directory}/log`);
  const keys = await disk.list(`${directory}/keys`);
  if (keys.some((name) => shardNumber(name) !== undefined)) {
    throw new ServiceError(
      'REL_STORAGE',
      `${keyFilePath(directory)} is missing, and keys of subjects beside it can't be read without it`,
    );
  }
  if (names.length > 0) {
    throw new ServiceError('REL_STORAGE', `${keyFilePath(directory)} is missing, and the log beside it can't be read without it`);
  }
}

async function firstSecrets({ disk, random, directory }: KeyringOptions): Promise<KeySecrets> {
  await refuseLostKeys(disk, directory);
  return {
    active: 1,
    dataKeys: new Map([[1, random.fill(new Uint8Array(KEY_BYTES))]]),
    signingSeed: null,
    publicKeys: [],
    hmacKey: random.fill(new Uint8Array(KEY_BYTES)),
  };
}

function requireKey(key: Uint8Array, what: string): void {
  if (key.length !== KEY_BYTES) throw new ServiceError('REL_INVALID', `${what} must have ${KEY_BYTES} bytes, not ${key.length}`);
}
