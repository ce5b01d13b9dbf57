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

const KEYRING_KEY_BYTES = 32;

/** Opens the key file, or makes it where there is no log yet. */
export async function openKeyring(keyringOptions: KeyringOptions): Promise<KeyStore> {
  const { disk, random, directory, kek, signingSeed } = keyringOptions;
  requireKeyBytes(kek, 'the key-encryption key');
  if (signingSeed) requireKeyBytes(signingSeed, 'the log signing seed');
  const keyFile = keyFilePath(directory);
  const storedKeyFile = await disk.readFile(keyFile);
  // A process that died before its last step may have left a name that a power cut would take back.
  if (storedKeyFile) await disk.syncDirectory(`${directory}/keys`);
  const keySecrets = storedKeyFile ? openKeyFile(storedKeyFile, kek, keyFile) : await drawFirstSecrets(keyringOptions);
  const logSigningSeed = signingSeed ?? keySecrets.signingSeed ?? random.fill(new Uint8Array(KEYRING_KEY_BYTES));
  const logSigner = noteSigner(logSigningSeed);
  const currentPublicKey = hexOf(logSigner.publicKey);
  const nextSecrets: KeySecrets = {
    ...keySecrets,
    signingSeed: signingSeed ? keySecrets.signingSeed : logSigningSeed,
    publicKeys: [currentPublicKey, ...keySecrets.publicKeys.filter((publicKey) => publicKey !== currentPublicKey)],
  };
  if (!storedKeyFile || nextSecrets.publicKeys[0] !== keySecrets.publicKeys[0]) {
    await disk.makeDirectory(`${directory}/keys`);
    await disk.replaceFile(keyFile, sealKeyFile(nextSecrets, kek, random), 0o600);
  }
  const dataKeys = new OpenDataKeys(nextSecrets);
  const subjectKeys = await SubjectKeyFiles.open({
    disk,
    random,
    directory: `${directory}/keys`,
    dataKeys,
    hmacKey: nextSecrets.hmacKey,
  });
  return new OpenKeyring(keyringOptions, nextSecrets, { signer: logSigner, dataKeys, subjects: subjectKeys });
}

export function keyFilePath(directory: string): string {
  return `${directory}/keys/data-keys.json`;
}

/** Under another key-encryption key, atomically; where that was done already, nothing changes. */
export async function rewrapKeys(rewrapOptions: {
  readonly disk: Disk;
  readonly random: Random;
  readonly directory: string;
  readonly kek: Uint8Array;
  readonly next: Uint8Array;
}): Promise<void> {
  const { disk, random, directory, kek, next: nextKek } = rewrapOptions;
  requireKeyBytes(kek, 'the key-encryption key');
  requireKeyBytes(nextKek, 'the new key-encryption key');
  const keyFile = keyFilePath(directory);
  const storedKeyFile = await disk.readFile(keyFile);
  if (!storedKeyFile) throw new ServiceError('REL_STORAGE', `${keyFile} is missing`);
  if (isSealedFor(storedKeyFile, nextKek)) {
    openKeyFile(storedKeyFile, nextKek, keyFile);
    return await disk.syncDirectory(`${directory}/keys`);
  }
  await disk.replaceFile(keyFile, sealKeyFile(openKeyFile(storedKeyFile, kek, keyFile), nextKek, random), 0o600);
}

class OpenDataKeys implements DataKeys {
  activeDataKey: number;
  readonly #dataKeysById: Map<number, KeyObject>;

  constructor({ active, dataKeys }: KeySecrets) {
    this.activeDataKey = active;
    this.#dataKeysById = new Map([...dataKeys].map(([id, key]) => [id, crypto.createSecretKey(key)]));
  }

  get ids(): readonly number[] {
    return [...this.#dataKeysById.keys()].sort((a, b) => a - b);
  }

  open(dataKeyId: number): KeyObject {
    const dataKey = this.#dataKeysById.get(dataKeyId);
    if (!dataKey) throw new ServiceError('REL_STORAGE', `data key ${dataKeyId} is not in the key file`);
    return dataKey;
  }

  /** From this turn on everything is sealed under it. */
  use(dataKeyId: number, newDataKey: Uint8Array): void {
    this.#dataKeysById.set(dataKeyId, crypto.createSecretKey(newDataKey));
    this.activeDataKey = dataKeyId;
  }
}

class OpenKeyring implements KeyStore {
  readonly signer: NoteSigner;
  readonly publicKeys: readonly Uint8Array[];
  readonly hmacKey: Uint8Array;
  readonly subjects: SubjectKeyFiles;
  readonly #keyringOptions: KeyringOptions;
  readonly #openDataKeys: OpenDataKeys;
  #keySecrets: KeySecrets;
  /** The highest number that a data key was ever made under. */
  #lastDataKeyId: number;
  #keyRotation: Promise<unknown> = Promise.resolve();

  constructor(
    keyringOptions: KeyringOptions,
    keySecrets: KeySecrets,
    openedKeys: { readonly signer: NoteSigner; readonly dataKeys: OpenDataKeys; readonly subjects: SubjectKeyFiles },
  ) {
    this.signer = openedKeys.signer;
    this.publicKeys = keySecrets.publicKeys.map((publicKey) => new Uint8Array(Buffer.from(publicKey, 'hex')));
    this.hmacKey = keySecrets.hmacKey;
    this.subjects = openedKeys.subjects;
    this.#keyringOptions = keyringOptions;
    this.#openDataKeys = openedKeys.dataKeys;
    this.#keySecrets = keySecrets;
    this.#lastDataKeyId = Math.max(...keySecrets.dataKeys.keys());
  }

  get activeDataKey(): number {
    return this.#openDataKeys.activeDataKey;
  }

  get dataKeyIds(): readonly number[] {
    return this.#openDataKeys.ids;
  }

  open(dataKeyId: number): KeyObject {
    return this.#openDataKeys.open(dataKeyId);
  }

  rotate(): Promise<Rotation> {
    const keyRotation = this.#keyRotation.then(() => this.#rotateDataKey());
    this.#keyRotation = keyRotation.catch(() => undefined);
    return keyRotation;
  }

  contents(): KeyContents {
    return { secrets: this.#keySecrets, records: this.subjects.usedRecords(), tombstones: this.subjects.tombstones() };
  }

  async close(): Promise<void> {
    await this.#keyRotation;
    await this.subjects.close();
  }

  async #rotateDataKey(): Promise<Rotation> {
    const { disk, random, directory, kek } = this.#keyringOptions;
    // The file of an attempt that failed may be there after all, so its number is not tried again.
    const dataKeyId = ++this.#lastDataKeyId;
    const newDataKey = random.fill(new Uint8Array(KEYRING_KEY_BYTES));
    const nextSecrets = {
      ...this.#keySecrets,
      active: dataKeyId,
      dataKeys: new Map([...this.#keySecrets.dataKeys, [dataKeyId, newDataKey]]),
    };
    const previousDataKey = this.activeDataKey;
    try {
      await disk.replaceFile(keyFilePath(directory), sealKeyFile(nextSecrets, kek, random), 0o600);
    } catch (cause) {
      const causeText = cause instanceof Error ? cause.message : String(cause);
      throw new ServiceError(
        'REL_STORAGE',
        `data key ${previousDataKey} stays in use, the new one could not be stored: ${causeText}`,
        {
          cause,
        },
      );
    }
    this.#keySecrets = nextSecrets;
    this.#openDataKeys.use(dataKeyId, newDataKey);
    return { active: dataKeyId, previous: previousDataKey };
  }
}

/** Throws where something lies that only a key file which is gone could open: no key is made in its place. */
export async function refuseLostKeys(disk: Disk, directory: string): Promise<void> {
  if ((await disk.size(keyFilePath(directory))) !== undefined) return;
  const logFileNames = await disk.list(`${directory}/log`);
  const keyFileNames = await disk.list(`${directory}/keys`);
  if (keyFileNames.some((name) => shardNumber(name) !== undefined)) {
    throw new ServiceError(
      'REL_STORAGE',
      `${keyFilePath(directory)} is missing, and keys of subjects beside it can't be read without it`,
    );
  }
  if (logFileNames.length > 0) {
    throw new ServiceError('REL_STORAGE', `${keyFilePath(directory)} is missing, and the log beside it can't be read without it`);
  }
}

async function drawFirstSecrets({ disk, random, directory }: KeyringOptions): Promise<KeySecrets> {
  await refuseLostKeys(disk, directory);
  return {
    active: 1,
    dataKeys: new Map([[1, random.fill(new Uint8Array(KEYRING_KEY_BYTES))]]),
    signingSeed: null,
    publicKeys: [],
    hmacKey: random.fill(new Uint8Array(KEYRING_KEY_BYTES)),
  };
}

function requireKeyBytes(keyBytes: Uint8Array, keyTitle: string): void {
  if (keyBytes.length !== KEYRING_KEY_BYTES)
    throw new ServiceError('REL_INVALID', `${keyTitle} must have ${KEYRING_KEY_BYTES} bytes, not ${keyBytes.length}`);
}
