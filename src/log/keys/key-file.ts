/**
 * The bytes of `<data>/keys/data-keys.json`: all secrets of a data directory but the keys of subjects, under one seal of
 * AES-256-GCM. It opens with the right key-encryption key, whole, or not at all. Changing it needs a new format and a fixture.
 */
import * as crypto from 'node:crypto';
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { hexOf } from '../bytes/sha256.ts';

const KEY_FILE_FORMAT = 1;
const KEY_FILE_TAG_BYTES = 16;

export interface KeySecrets {
  /** Number of the data key that is in use. */
  readonly active: number;
  readonly dataKeys: ReadonlyMap<number, Uint8Array>;
  readonly signingSeed: Uint8Array | null;
  readonly publicKeys: readonly string[];
  readonly hmacKey: Uint8Array;
}

/** Says which KEK sealed a file without helping to guess it: the KEK has 256 bits of its own. */
function kekFingerprint(kek: Uint8Array): string {
  return crypto.createHmac('sha256', kek).update('annals key file').digest('hex').slice(0, 16);
}

export function sealKeyFile(keySecrets: KeySecrets, kek: Uint8Array, random: Random): Uint8Array {
  const plainSecrets = formatSecrets(keySecrets);
  const keyFileHead = `${KEY_FILE_FORMAT} ${kekFingerprint(kek)}`;
  const keyFileNonce = random.fill(new Uint8Array(12));
  const keyFileCipher = crypto.createCipheriv('aes-256-gcm', kek, keyFileNonce);
  keyFileCipher.setAAD(Buffer.from(keyFileHead));
  const sealedSecrets = Buffer.concat([
    keyFileCipher.update(plainSecrets, 'utf8'),
    keyFileCipher.final(),
    keyFileCipher.getAuthTag(),
  ]);
  const keyFileJson = {
    format: KEY_FILE_FORMAT,
    kek: kekFingerprint(kek),
    nonce: hexOf(keyFileNonce),
    sealed: hexOf(sealedSecrets),
  };
  return Buffer.from(`${JSON.stringify(keyFileJson, null, 2)}\n`);
}

export function openKeyFile(keyFileBytes: Uint8Array, kek: Uint8Array, keyFileLocation: string): KeySecrets {
  const keyFileJson = parseKeyFileJson(keyFileBytes, keyFileLocation);
  const { format, kek: storedFingerprint, nonce: nonceHex, sealed } = keyFileJson;
  if (typeof storedFingerprint !== 'string' || typeof nonceHex !== 'string' || typeof sealed !== 'string')
    throw damagedKeyFileError(keyFileLocation);
  if (format !== KEY_FILE_FORMAT)
    throw new ServiceError(
      'REL_STORAGE',
      `${keyFileLocation} has format ${String(format)}; this version reads ${KEY_FILE_FORMAT}`,
    );
  if (storedFingerprint !== kekFingerprint(kek)) {
    throw new ServiceError('REL_STORAGE', `the key-encryption key given is not the one that ${keyFileLocation} was sealed with`);
  }
  const sealedSecrets = Buffer.from(sealed, 'hex');
  const keyFileNonce = Buffer.from(nonceHex, 'hex');
  if (sealedSecrets.length < KEY_FILE_TAG_BYTES || keyFileNonce.length !== 12) throw damagedKeyFileError(keyFileLocation);
  const keyFileDecipher = crypto.createDecipheriv('aes-256-gcm', kek, keyFileNonce, { authTagLength: KEY_FILE_TAG_BYTES });
  keyFileDecipher.setAAD(Buffer.from(`${KEY_FILE_FORMAT} ${storedFingerprint}`));
  keyFileDecipher.setAuthTag(sealedSecrets.subarray(-KEY_FILE_TAG_BYTES));
  let plainSecrets: Buffer;
  try {
    plainSecrets = Buffer.concat([
      keyFileDecipher.update(sealedSecrets.subarray(0, -KEY_FILE_TAG_BYTES)),
      keyFileDecipher.final(),
    ]);
  } catch (cause) {
    throw damagedKeyFileError(keyFileLocation, cause);
  }
  return parseSecrets(plainSecrets.toString('utf8'));
}

/** Whether the file names this key-encryption key: its content may be damaged all the same. */
export function isSealedFor(keyFileBytes: Uint8Array, kek: Uint8Array): boolean {
  try {
    return (JSON.parse(Buffer.from(keyFileBytes).toString('utf8')) as { kek?: unknown } | null)?.kek === kekFingerprint(kek);
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
export function formatSecrets(keySecrets: KeySecrets): string {
  const storedSecrets: StoredSecrets = {
    active: keySecrets.active,
    dataKeys: Object.fromEntries([...keySecrets.dataKeys].map(([id, key]) => [id, hexOf(key)])),
    signingSeed: keySecrets.signingSeed && hexOf(keySecrets.signingSeed),
    publicKeys: keySecrets.publicKeys,
    hmacKey: hexOf(keySecrets.hmacKey),
  };
  return JSON.stringify(storedSecrets);
}

export function parseSecrets(secretsText: string): KeySecrets {
  const storedSecrets = JSON.parse(secretsText) as StoredSecrets;
  const keyBytesOfHex = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'));
  return {
    active: storedSecrets.active,
    dataKeys: new Map(Object.entries(storedSecrets.dataKeys).map(([id, key]) => [Number(id), keyBytesOfHex(key)])),
    signingSeed: storedSecrets.signingSeed === null ? null : keyBytesOfHex(storedSecrets.signingSeed),
    publicKeys: storedSecrets.publicKeys,
    hmacKey: keyBytesOfHex(storedSecrets.hmacKey),
  };
}

function parseKeyFileJson(keyFileBytes: Uint8Array, path: string): Record<string, unknown> {
  let keyFileJson: unknown;
  try {
    keyFileJson = JSON.parse(Buffer.from(keyFileBytes).toString('utf8'));
  } catch (cause) {
    throw damagedKeyFileError(path, cause);
  }
  if (typeof keyFileJson !== 'object' || keyFileJson === null) throw damagedKeyFileError(path);
  return keyFileJson as Record<string, unknown>;
}

function damagedKeyFileError(damagedPath: string, cause?: unknown): ServiceError {
  return new ServiceError('REL_STORAGE', `${damagedPath} is damaged: restore it from a copy`, { cause });
}
