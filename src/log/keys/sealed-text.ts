/**
 * A text that rests sealed under a key of subjects or under one of its own: destroying the key makes it unreadable wherever it was
 * copied to.
 *
 *   stored = RFC 8785 JSON of { "annals_sealed": 1 | 2, "key": id, "nonce": base64, "text": base64 of ciphertext · tag }
 *
 * AES-256-GCM, bound to the key's id. 1: the key seals this one text. 2: the key is a subject's, which seals rows as well: the text's
 * follows from it, HMAC-SHA-256(key, "annals text").
 */
import { createCipheriv, createDecipheriv, createHmac, type KeyObject } from 'node:crypto';
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { canonicalJson } from '../values/canonical-json.ts';
import type { SubjectKey } from './recent-subject-keys.ts';
import type { SubjectKeys } from './subject-keys.ts';

type Version = 1 | 2;

interface Stored {
  readonly annals_sealed: Version;
  readonly key: string;
  readonly nonce: string;
  readonly text: string;
}

const nonceBytes = 12;
const tagBytes = 16;
const begins = '{"annals_sealed":';

export function sealText(text: string, { id, key }: Pick<SubjectKey, 'id' | 'key'>, version: Version, random: Random): string {
  const nonce = random.fill(new Uint8Array(nonceBytes));
  const cipher = createCipheriv('aes-256-gcm', textKey(key, version), nonce);
  cipher.setAAD(Buffer.from(id));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return canonicalJson({
    annals_sealed: version,
    key: id,
    nonce: Buffer.from(nonce).toString('base64'),
    text: sealed.toString('base64'),
  });
}

/** Null: its key is destroyed. Throws REL_STORAGE where it does not open under its key. */
export function openText(stored: string, keys: Pick<SubjectKeys, 'opening'>): string | null {
  const { annals_sealed: version, key: id, nonce, text } = JSON.parse(stored) as Stored;
  const key = keys.opening(id);
  if (key === null) return null;
  try {
    const sealed = Buffer.from(text, 'base64');
    const decipher = createDecipheriv('aes-256-gcm', textKey(key, version), Buffer.from(nonce, 'base64'), {
      authTagLength: tagBytes,
    });
    decipher.setAAD(Buffer.from(id));
    decipher.setAuthTag(sealed.subarray(-tagBytes));
    return Buffer.concat([decipher.update(sealed.subarray(0, -tagBytes)), decipher.final()]).toString('utf8');
  } catch (cause) {
    throw new ServiceError('REL_STORAGE', 'a sealed text does not open under its key', { cause });
  }
}

export function isSealedText(stored: string): boolean {
  return stored.startsWith(begins);
}

/** Id of the key that a text is sealed under; none where it is not sealed. */
export function sealedKeyOf(stored: string): readonly string[] {
  return isSealedText(stored) ? [(JSON.parse(stored) as Stored).key] : [];
}

function textKey(key: KeyObject, version: Version): KeyObject | Buffer {
  return version === 1 ? key : createHmac('sha256', key).update('annals text').digest();
}
