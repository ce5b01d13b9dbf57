/**
 * The words of what is erased: sentences long enough to be nobody else's. A row that says who it is not about, and repeats one of
 * them in a type of made rows, is a copy that no column leads to. Pure.
 */
import { Names, type NameTest } from '../../projections/names.ts';

const lettersMin = 24;
const wordsMin = 4;
const sentencesMax = 16_384;

export class ErasedWords {
  readonly #sentences = new Set<string>();

  add(text: string): void {
    if (text.length < lettersMin) return;
    for (const sentence of text.split(/(?<=[.!?])\s+|[\r\n]+/)) {
      const words = sentence.trim();
      if (words.length < lettersMin || words.split(/\s+/).length < wordsMin) continue;
      if (this.#sentences.size === sentencesMax) return;
      this.#sentences.add(words);
    }
  }

  /** Null where there is nothing to look for. */
  test(): NameTest | null {
    return this.#sentences.size === 0 ? null : new Names([...this.#sentences]);
  }
}
