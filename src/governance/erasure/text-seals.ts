/**
 * Texts that may name a subject without being a row of theirs: recipes and notes of exhibits, and definitions (`sealed-definitions.ts`).
 * Each rests under a key of its own, beside those of subjects, and an erasure that finds the subject in it destroys that key. A link's own
 * seal, which is over the hash of its recipe, stays as it was. Earlier versions wrote the texts themselves: none of them is JSON with a
 * member `annals_sealed`, and none is empty; an erasure empties those.
 *
 * The record that a removal for good keeps of a subject's row, for an erasure alone, is sealed under the subject's key.
 */
import type { Random } from '../../clock.ts';
import { isSealedText, openText, sealText } from '../../log/keys/sealed-text.ts';
import type { SubjectKeys } from '../../log/keys/subject-keys.ts';
import type { TextSeals } from '../../projections/decision.ts';

export interface KeyedTextSealsDependencies {
  readonly keys: Pick<SubjectKeys, 'sealing' | 'opening' | 'idsOf'>;
  readonly ids: { next(): string };
  readonly random: Random;
}

/** No tenant has this name: paths have no empty segments. */
const textSealScope = '';

export class KeyedTextSeals implements TextSeals {
  readonly #textSealParts: KeyedTextSealsDependencies;

  constructor(parts: KeyedTextSealsDependencies) {
    this.#textSealParts = parts;
  }

  seal(text: string): string {
    const { keys, ids, random } = this.#textSealParts;
    return sealText(text, keys.sealing(textSealScope, ids.next()), 1, random);
  }

  sealFor(tenant: string | null, subject: string, text: string): string {
    const { keys, random } = this.#textSealParts;
    return sealText(text, keys.sealing(tenant, subject), 2, random);
  }

  hasKey(tenant: string | null, subject: string): boolean {
    return this.#textSealParts.keys.idsOf(tenant, subject).length > 0;
  }

  /** Null: erased. */
  open(sealedText: string): string | null {
    if (sealedText === '') return null;
    return isSealedText(sealedText) ? openText(sealedText, this.#textSealParts.keys) : sealedText;
  }
}
