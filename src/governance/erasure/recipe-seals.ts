/**
 * Recipes and notes of an exhibit are sealed under a key of their own, beside those of subjects: an erasure destroys it where the
 * text names the subject, and the link's own seal, which is over the text's hash, stays as it was. Earlier versions wrote the
 * recipe itself: no recipe has a member `annals_sealed`, and none is empty; an erasure empties those.
 *
 * The record that a removal for good keeps of a subject's row, for an erasure alone, is sealed under the subject's key.
 */
import type { Random } from '../../clock.ts';
import { isSealedText, openText, sealText } from '../../log/keys/sealed-text.ts';
import type { SubjectKeys } from '../../log/keys/subject-keys.ts';
import type { RemovalSeals } from '../../projections/decision.ts';

export interface RecipeSealsDependencies {
  readonly keys: Pick<SubjectKeys, 'sealing' | 'opening' | 'idsOf'>;
  readonly ids: { next(): string };
  readonly random: Random;
}

/** No tenant has this name: paths have no empty segments. */
const scope = '';

export class RecipeSeals implements RemovalSeals {
  readonly #parts: RecipeSealsDependencies;

  constructor(parts: RecipeSealsDependencies) {
    this.#parts = parts;
  }

  seal(recipe: string): string {
    const { keys, ids, random } = this.#parts;
    return sealText(recipe, keys.sealing(scope, ids.next()), 1, random);
  }

  sealFor(tenant: string | null, subject: string, text: string): string {
    const { keys, random } = this.#parts;
    return sealText(text, keys.sealing(tenant, subject), 2, random);
  }

  hasKey(tenant: string | null, subject: string): boolean {
    return this.#parts.keys.idsOf(tenant, subject).length > 0;
  }

  /** Null: erased. */
  open(stored: string): string | null {
    if (stored === '') return null;
    return isSealedText(stored) ? openText(stored, this.#parts.keys) : stored;
  }
}
