/**
 * What was asked or noted on an exhibit rests sealed under a key of its own, beside those of subjects: an erasure destroys it
 * where the text names who is erased, and the link's own seal, which is over the text's hash, stays as it was.
 *
 *   recipe in the log = RFC 8785 JSON of { "annals_sealed": 1, "key": id, "nonce": base64, "text": base64 of ciphertext · tag }
 *
 * AES-256-GCM, bound to the key's id. A key seals one text. What an earlier version wrote is the recipe itself: no recipe has a
 * member `annals_sealed`, and none is empty; an erasure leaves an empty text of those.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { canonicalJson } from '../../log/values/canonical-json.ts';
import type { SubjectKeys } from '../../log/keys/subject-keys.ts';

export interface RecipeSealsParts {
  readonly keys: Pick<SubjectKeys, 'sealing' | 'opening'>;
  readonly ids: { next(): string };
  readonly random: Random;
}

/** No tenant has this name: paths have no empty segments. */
const scope = '';
const nonceBytes = 12;
const tagBytes = 16;
const begins = '{"annals_sealed":1,';

export class RecipeSeals {
  readonly #parts: RecipeSealsParts;

  constructor(parts: RecipeSealsParts) {
    this.#parts = parts;
  }

  seal(recipe: string): string {
    const { keys, ids, random } = this.#parts;
    const { id, key } = keys.sealing(scope, ids.next());
    const nonce = random.fill(new Uint8Array(nonceBytes));
    const cipher = createCipheriv('aes-256-gcm', key, nonce);
    cipher.setAAD(Buffer.from(id));
    const text = Buffer.concat([cipher.update(recipe, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return canonicalJson({
      annals_sealed: 1,
      key: id,
      nonce: Buffer.from(nonce).toString('base64'),
      text: text.toString('base64'),
    });
  }

  /** Null: erased. */
  open(stored: string): string | null {
    if (stored === '') return null;
    if (!stored.startsWith(begins)) return stored;
    const {
      key: id,
      nonce,
      text,
    } = JSON.parse(stored) as { readonly key: string; readonly nonce: string; readonly text: string };
    const key = this.#parts.keys.opening(id);
    if (key === null) return null;
    try {
      const sealed = Buffer.from(text, 'base64');
      const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64'), { authTagLength: tagBytes });
      decipher.setAAD(Buffer.from(id));
      decipher.setAuthTag(sealed.subarray(-tagBytes));
      return Buffer.concat([decipher.update(sealed.subarray(0, -tagBytes)), decipher.final()]).toString('utf8');
    } catch (cause) {
      throw new ServiceError('REL_STORAGE', 'what was sealed on an exhibit does not open', { cause });
    }
  }
}

/** Id of the key that a recipe is sealed under; none where it is not sealed. */
export function sealedKeyOf(stored: string): readonly string[] {
  return stored.startsWith(begins) ? [(JSON.parse(stored) as { readonly key: string }).key] : [];
}
