/**
 * Keys at rest: the key-encryption key (KEK) comes from outside and wraps everything else in one small file,
 * `<data>/keys/data-keys.json`, which is the one thing beside the chain that is ever replaced.
 *
 * - The file opens with the right KEK, whole, or not at all: one AES-256-GCM seal covers its whole content.
 * - A wrong KEK is told from a damaged file by a fingerprint, and neither changes a byte.
 * - A log without its keys is an error, never a reason to make new ones: they would open nothing.
 * - Data keys are numbered from 1 and never reused; old ones stay for as long as bytes are sealed under them.
 */
import * as crypto from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { Random } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import { type NoteSigner, noteSigner } from './checkpoint-note.ts';
import type { Disk } from './disk.ts';
import { hexOf } from './sha256.ts';
import { SubjectKeyFiles, type SubjectKeys } from './subject-keys.ts';
import type { DataKeys } from './subject-shard.ts';

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
  /** Keys of who may be erased. */
  readonly subjects: SubjectKeys;
  /** Lets go of the files, once nothing more is asked of the keys. */
  close(): Promise<void>;
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

const FORMAT = 1;
const KEY_BYTES = 32;
const TAG_BYTES = 16;

/** Opens the key file, or makes it where there is no log yet. */
export async function openKeyring(options: KeyringOptions): Promise<Keyring> {
  const { disk, random, directory, kek, signingSeed } = options;
  requireKey(kek, 'the key-encryption key');
  if (signingSeed) requireKey(signingSeed, 'the log signing seed');
  const path = keyFilePath(directory);
  const stored = await disk.readFile(path);
  // A process that died before its last step may have left a name that a power cut would take back.
  if (stored) await disk.syncDirectory(`${directory}/keys`);
  const secrets = stored ? openFile(stored, kek, path) : await firstSecrets(options);
  const seed = signingSeed ?? secrets.signingSeed ?? random.fill(new Uint8Array(KEY_BYTES));
  const signer = noteSigner(seed);
  const current = hexOf(signer.publicKey);
  const next: Secrets = {
    ...secrets,
    signingSeed: signingSeed ? secrets.signingSeed : seed,
    publicKeys: [current, ...secrets.publicKeys.filter((key) => key !== current)],
  };
  if (!stored || next.publicKeys[0] !== secrets.publicKeys[0]) {
    await disk.makeDirectory(`${directory}/keys`);
    await disk.replaceFile(path, sealFile(next, kek, random), 0o600);
  }
  const dataKeys = new OpenDataKeys(next);
  const subjects = await SubjectKeyFiles.open({ disk, random, directory: `${directory}/keys`, dataKeys, hmacKey: next.hmacKey });
  return new OpenKeyring(next, signer, dataKeys, subjects);
}

export function keyFilePath(directory: string): string {
  return `${directory}/keys/data-keys.json`;
}

class OpenDataKeys implements DataKeys {
  readonly activeDataKey: number;
  readonly #keys: ReadonlyMap<number, KeyObject>;

  constructor({ active, dataKeys }: Secrets) {
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
}

class OpenKeyring implements Keyring {
  readonly signer: NoteSigner;
  readonly publicKeys: readonly Uint8Array[];
  readonly hmacKey: Uint8Array;
  readonly subjects: SubjectKeyFiles;
  readonly #dataKeys: OpenDataKeys;

  constructor(secrets: Secrets, signer: NoteSigner, dataKeys: OpenDataKeys, subjects: SubjectKeyFiles) {
    this.signer = signer;
    this.publicKeys = secrets.publicKeys.map((key) => new Uint8Array(Buffer.from(key, 'hex')));
    this.hmacKey = secrets.hmacKey;
    this.subjects = subjects;
    this.#dataKeys = dataKeys;
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

  close(): Promise<void> {
    return this.subjects.close();
  }
}

interface Secrets {
  readonly active: number;
  readonly dataKeys: ReadonlyMap<number, Uint8Array>;
  readonly signingSeed: Uint8Array | null;
  readonly publicKeys: readonly string[];
  readonly hmacKey: Uint8Array;
}

async function firstSecrets({ disk, random, directory }: KeyringOptions): Promise<Secrets> {
  const names = await disk.list(`${directory}/log`);
  if (names.length > 0) {
    throw new ServiceError('REL_STORAGE', `${keyFilePath(directory)} is missing, and the log beside it can't be read without it`);
  }
  return {
    active: 1,
    dataKeys: new Map([[1, random.fill(new Uint8Array(KEY_BYTES))]]),
    signingSeed: null,
    publicKeys: [],
    hmacKey: random.fill(new Uint8Array(KEY_BYTES)),
  };
}

/** Says which KEK sealed a file without helping to guess it: the KEK has 256 bits of its own. */
function fingerprint(kek: Uint8Array): string {
  return crypto.createHmac('sha256', kek).update('annals key file').digest('hex').slice(0, 16);
}

function sealFile(secrets: Secrets, kek: Uint8Array, random: Random): Uint8Array {
  const plain = JSON.stringify({
    active: secrets.active,
    dataKeys: Object.fromEntries([...secrets.dataKeys].map(([id, key]) => [id, hexOf(key)])),
    signingSeed: secrets.signingSeed && hexOf(secrets.signingSeed),
    publicKeys: secrets.publicKeys,
    hmacKey: hexOf(secrets.hmacKey),
  });
  const head = `${FORMAT} ${fingerprint(kek)}`;
  const nonce = random.fill(new Uint8Array(12));
  const cipher = crypto.createCipheriv('aes-256-gcm', kek, nonce);
  cipher.setAAD(Buffer.from(head));
  const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  const file = { format: FORMAT, kek: fingerprint(kek), nonce: hexOf(nonce), sealed: hexOf(sealed) };
  return Buffer.from(`${JSON.stringify(file, null, 2)}\n`);
}

function openFile(bytes: Uint8Array, kek: Uint8Array, path: string): Secrets {
  const file = parseJson(bytes, path);
  const { format, kek: print, nonce, sealed } = file;
  if (typeof print !== 'string' || typeof nonce !== 'string' || typeof sealed !== 'string') throw damaged(path);
  if (format !== FORMAT)
    throw new ServiceError('REL_STORAGE', `${path} has format ${String(format)}; this version reads ${FORMAT}`);
  if (print !== fingerprint(kek)) {
    throw new ServiceError('REL_STORAGE', `the key-encryption key given is not the one that ${path} was sealed with`);
  }
  const box = Buffer.from(sealed, 'hex');
  const iv = Buffer.from(nonce, 'hex');
  if (box.length < TAG_BYTES || iv.length !== 12) throw damaged(path);
  const decipher = crypto.createDecipheriv('aes-256-gcm', kek, iv, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(`${FORMAT} ${print}`));
  decipher.setAuthTag(box.subarray(-TAG_BYTES));
  let plain: Buffer;
  try {
    plain = Buffer.concat([decipher.update(box.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch (cause) {
    throw damaged(path, cause);
  }
  return readSecrets(JSON.parse(plain.toString('utf8')) as StoredSecrets);
}

interface StoredSecrets {
  readonly active: number;
  readonly dataKeys: Readonly<Record<string, string>>;
  readonly signingSeed: string | null;
  readonly publicKeys: readonly string[];
  readonly hmacKey: string;
}

function readSecrets(stored: StoredSecrets): Secrets {
  const bytes = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'));
  return {
    active: stored.active,
    dataKeys: new Map(Object.entries(stored.dataKeys).map(([id, key]) => [Number(id), bytes(key)])),
    signingSeed: stored.signingSeed === null ? null : bytes(stored.signingSeed),
    publicKeys: stored.publicKeys,
    hmacKey: bytes(stored.hmacKey),
  };
}

function parseJson(bytes: Uint8Array, path: string): Record<string, unknown> {
  let file: unknown;
  try {
    file = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (cause) {
    throw damaged(path, cause);
  }
  if (typeof file !== 'object' || file === null) throw damaged(path);
  return file as Record<string, unknown>;
}

function damaged(path: string, cause?: unknown): ServiceError {
  return new ServiceError('REL_STORAGE', `${path} is damaged: restore it from a copy`, { cause });
}

function requireKey(key: Uint8Array, what: string): void {
  if (key.length !== KEY_BYTES) throw new ServiceError('REL_INVALID', `${what} must have ${KEY_BYTES} bytes, not ${key.length}`);
}
