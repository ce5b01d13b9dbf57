/**
 * The bytes of `<data>/keys/data-keys.json`: all secrets of a data directory but the keys of subjects, under one seal of
 * AES-256-GCM. It opens with the right key-encryption key, whole, or not at all. Changing it needs a new format and a fixture.
 */
import * as crypto from 'node:crypto';
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { hexOf } from '../bytes/sha256.ts';

const FORMAT = 1;
const TAG_BYTES = 16;

export interface KeySecrets {
  /** Number of the data key that is in use. */
  readonly active: number;
  readonly dataKeys: ReadonlyMap<number, Uint8Array>;
  readonly signingSeed: Uint8Array | null;
  readonly publicKeys: readonly string[];
  readonly hmacKey: Uint8Array;
}

/** Says which KEK sealed a file without helping to guess it: the KEK has 256 bits of its own. */
function fingerprint(kek: Uint8Array): string {
  return crypto.createHmac('sha256', kek).update('annals key file').digest('hex').slice(0, 16);
}

export function sealKeyFile(secrets: KeySecrets, kek: Uint8Array, random: Random): Uint8Array {
  const plain = formatSecrets(secrets);
  const head = `${FORMAT} ${fingerprint(kek)}`;
  const nonce = random.fill(new Uint8Array(12));
  const cipher = crypto.createCipheriv('aes-256-gcm', kek, nonce);
  cipher.setAAD(Buffer.from(head));
  const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  const file = { format: FORMAT, kek: fingerprint(kek), nonce: hexOf(nonce), sealed: hexOf(sealed) };
  return Buffer.from(`${JSON.stringify(file, null, 2)}\n`);
}

export function openKeyFile(bytes: Uint8Array, kek: Uint8Array, path: string): KeySecrets {
  const file = parseJson(bytes, path);
  const { format, kek: print, nonce, sealed } = file;
  if (typeof print !== 'string' || typeof nonce !== 'string' || typeof sealed !== 'string') throw damagedError(path);
  if (format !== FORMAT)
    throw new ServiceError('REL_STORAGE', `${path} has format ${String(format)}; this version reads ${FORMAT}`);
  if (print !== fingerprint(kek)) {
    throw new ServiceError('REL_STORAGE', `the key-encryption key given is not the one that ${path} was sealed with`);
  }
  const box = Buffer.from(sealed, 'hex');
  const iv = Buffer.from(nonce, 'hex');
  if (box.length < TAG_BYTES || iv.length !== 12) throw damagedError(path);
  const decipher = crypto.createDecipheriv('aes-256-gcm', kek, iv, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(`${FORMAT} ${print}`));
  decipher.setAuthTag(box.subarray(-TAG_BYTES));
  let plain: Buffer;
  try {
    plain = Buffer.concat([decipher.update(box.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch (cause) {
    throw damagedError(path, cause);
  }
  return parseSecrets(plain.toString('utf8'));
}

/** Whether the file names this key-encryption key: its content may be damaged all the same. */
export function isSealedFor(bytes: Uint8Array, kek: Uint8Array): boolean {
  try {
    return (JSON.parse(Buffer.from(bytes).toString('utf8')) as { kek?: unknown } | null)?.kek === fingerprint(kek);
  } catch {
    return false;
  }
}

interface StoredSecrets {
  readonly active: number;
  readonly dataKeys: Readonly<Record<string, string>>;
  readonly signingSeed: string | null;
  readonly publicKeys: readonly string[];
  readonly hmacKey: string;
}

/** In the clear: only ever to be sealed. */
export function formatSecrets(secrets: KeySecrets): string {
  const stored: StoredSecrets = {
    active: secrets.active,
    dataKeys: Object.fromEntries([...secrets.dataKeys].map(([id, key]) => [id, hexOf(key)])),
    signingSeed: secrets.signingSeed && hexOf(secrets.signingSeed),
    publicKeys: secrets.publicKeys,
    hmacKey: hexOf(secrets.hmacKey),
  };
  return JSON.stringify(stored);
}

export function parseSecrets(text: string): KeySecrets {
  const stored = JSON.parse(text) as StoredSecrets;
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
    throw damagedError(path, cause);
  }
  if (typeof file !== 'object' || file === null) throw damagedError(path);
  return file as Record<string, unknown>;
}

function damagedError(path: string, cause?: unknown): ServiceError {
  return new ServiceError('REL_STORAGE', `${path} is damaged: restore it from a copy`, { cause });
}
