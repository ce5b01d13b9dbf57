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

type SealedTextVersion = 1 | 2;

interface StoredSealedText {
  readonly annals_sealed: SealedTextVersion;
  readonly key: string;
  readonly nonce: string;
  readonly text: string;
}

const textNonceBytes = 12;
const textTagBytes = 16;
const sealedTextStart = '{"annals_sealed":';

export function sealText(
  text: string,
  { id, key }: Pick<SubjectKey, 'id' | 'key'>,
  version: SealedTextVersion,
  random: Random,
): string {
  const textNonce = random.fill(new Uint8Array(textNonceBytes));
  const textCipher = createCipheriv('aes-256-gcm', textKeyOf(key, version), textNonce);
  textCipher.setAAD(Buffer.from(id));
  const sealedText = Buffer.concat([textCipher.update(text, 'utf8'), textCipher.final(), textCipher.getAuthTag()]);
  return canonicalJson({
    annals_sealed: version,
    key: id,
    nonce: Buffer.from(textNonce).toString('base64'),
    text: sealedText.toString('base64'),
  });
}

/** Null: its key is destroyed. Throws REL_STORAGE where it does not open under its key. */
export function openText(storedText: string, keys: Pick<SubjectKeys, 'opening'>): string | null {
  const { annals_sealed: version, key: id, nonce, text } = JSON.parse(storedText) as StoredSealedText;
  const subjectKey = keys.opening(id);
  if (subjectKey === null) return null;
  try {
    const sealedTextBytes = Buffer.from(text, 'base64');
    const textDecipher = createDecipheriv('aes-256-gcm', textKeyOf(subjectKey, version), Buffer.from(nonce, 'base64'), {
      authTagLength: textTagBytes,
    });
    textDecipher.setAAD(Buffer.from(id));
    textDecipher.setAuthTag(sealedTextBytes.subarray(-textTagBytes));
    return Buffer.concat([textDecipher.update(sealedTextBytes.subarray(0, -textTagBytes)), textDecipher.final()]).toString(
      'utf8',
    );
  } catch (cause) {
    throw new ServiceError('REL_STORAGE', 'a sealed text does not open under its key', { cause });
  }
}

export function isSealedText(storedText: string): boolean {
  return storedText.startsWith(sealedTextStart);
}

/** Id of the key that a text is sealed under; none where it is not sealed. */
export function sealedKeyOf(storedText: string): readonly string[] {
  return isSealedText(storedText) ? [(JSON.parse(storedText) as StoredSealedText).key] : [];
}

function textKeyOf(key: KeyObject, version: SealedTextVersion): KeyObject | Buffer {
  return version === 1 ? key : createHmac('sha256', key).update('annals text').digest();
}
