/**
 * The words of erased rows: sentences long enough to be theirs alone. A row that names another subject, and repeats one of them,
 * is a copy that no column leads to: always where rows are made from others, elsewhere where it came after the erased row, since
 * an earlier one may be a form that many fill in. Pure.
 */
import { hasWord, spellingsOf } from '../../projections/subject-names.ts';

const lettersMin = 24;
const wordsMin = 4;
const sentencesMax = 16_384;
/** Letters of all sentences together: they rest in one entry of the log. */
const lettersMax = 2 ** 20;

export class ErasedWords {
  /** Sentences, with the position of the first erased version that says each. */
  readonly #since: Map<string, number>;
  #letters = 0;

  constructor(known: Iterable<readonly [string, number]> = []) {
    this.#since = new Map(known);
  }

  /** Restores the words from the result of `savedState`. */
  static fromSaved(saved: string): ErasedWords {
    return new ErasedWords(JSON.parse(saved) as [string, number][]);
  }

  get isEmpty(): boolean {
    return this.#since.size === 0;
  }

  savedState(): string {
    return JSON.stringify([...this.#since]);
  }

  add(text: string, position: number): void {
    if (text.length < lettersMin) return;
    for (const sentence of text.split(/(?<=[.!?])\s+|[\r\n]+/)) {
      const words = sentence.trim();
      if (words.length < lettersMin || words.split(/\s+/).length < wordsMin) continue;
      const since = this.#since.get(words);
      if (since === undefined) {
        if (this.#since.size === sentencesMax || this.#letters + words.length > lettersMax) return;
        this.#letters += words.length;
      }
      if (since === undefined || position < since) this.#since.set(words, position);
    }
  }

  /** Null where there is nothing to look for. */
  search(): WordSearch | null {
    return this.isEmpty ? null : new WordSearch(this.#since);
  }
}

interface Spelling {
  readonly text: string;
  readonly bytes: Uint8Array;
  readonly since: number;
}

const beginningBits = 18;
const decoder = new TextDecoder();

/** Looks through bytes of texts, each byte once however many sentences there are. */
export class WordSearch {
  /** Bytes of the longest spelling. */
  readonly longest: number;
  /** 1 where some sentence begins with 4 bytes of that slot. */
  readonly #maybe = new Uint8Array(1 << beginningBits);
  readonly #byBeginning = new Map<number, Spelling[]>();

  constructor(sentences: Iterable<readonly [string, number]>) {
    let longest = 0;
    for (const [sentence, since] of sentences) {
      for (const text of new Set(spellingsOf(sentence))) {
        const bytes = Buffer.from(text, 'utf8');
        longest = Math.max(longest, bytes.length);
        const beginning = bytes.readInt32BE(0);
        this.#maybe[slotOf(beginning)] = 1;
        const known = this.#byBeginning.get(beginning);
        if (known === undefined) this.#byBeginning.set(beginning, [{ text, bytes, since }]);
        else known.push({ text, bytes, since });
      }
    }
    this.longest = longest;
  }

  /** The earliest position of a sentence that UTF-8 text in bytes from `from` to `to` repeats; Infinity: of none. */
  sinceIn(heap: Uint8Array, from = 0, to = heap.length): number {
    let since = Infinity;
    let word = 0;
    let decoded: string | null = null;
    for (let at = from; at < to; at++) {
      word = (word << 8) | heap[at]!;
      if (at < from + 3 || this.#maybe[slotOf(word)] === 0) continue;
      for (const spelling of this.#byBeginning.get(word) ?? []) {
        if (spelling.since >= since || !standsAt(heap, at - 3, to, spelling.bytes)) continue;
        decoded ??= decoder.decode(heap.subarray(from, to));
        if (hasWord(decoded, spelling.text)) since = spelling.since;
      }
    }
    return since;
  }

  /** The same for bytes that may be text of any encoding: a blank separates words, which in UTF-16 has a zero beside it. */
  sinceInBytes(bytes: Buffer): number {
    const since = this.sinceIn(bytes);
    if (!bytes.includes(0)) return since;
    const readings = [0, 1].flatMap((from) => {
      const aligned = Buffer.from(bytes.subarray(from, bytes.length - ((bytes.length - from) % 2)));
      return [aligned.toString('utf16le'), aligned.swap16().toString('utf16le')];
    });
    return Math.min(since, ...readings.map((text) => this.sinceInText(text)));
  }

  sinceInText(text: string): number {
    return this.sinceIn(Buffer.from(text, 'utf8'));
  }
}

function slotOf(word: number): number {
  return Math.imul(word, 0x9e3779b1) >>> (32 - beginningBits);
}

function standsAt(heap: Uint8Array, at: number, to: number, bytes: Uint8Array): boolean {
  if (at + bytes.length > to) return false;
  for (let i = 4; i < bytes.length; i++) if (heap[at + i] !== bytes[i]) return false;
  return true;
}
