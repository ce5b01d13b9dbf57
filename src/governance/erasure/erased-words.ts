/**
 * The words of erased rows: sentences long enough to be theirs alone. A row that names another subject, and repeats one of them,
 * is a copy that no column leads to: always where rows are made from others, elsewhere where it came after the erased row, since
 * an earlier one may be a form that many fill in. Pure.
 */
import { hasWord, spellingsOf } from '../../projections/subject-names.ts';

const sentenceLettersMin = 24;
const sentenceWordsMin = 4;
const erasedSentencesMax = 16_384;
/** Letters of all sentences together: they rest in one entry of the log. */
const erasedLettersMax = 2 ** 20;

export class ErasedWords {
  /** Sentences, with the position of the first erased version that says each. */
  readonly #sentencePositions: Map<string, number>;
  #sentenceLetters = 0;

  constructor(knownSentences: Iterable<readonly [string, number]> = []) {
    this.#sentencePositions = new Map(knownSentences);
  }

  /** Restores the words from the result of `savedState`. */
  static fromSaved(savedSentences: string): ErasedWords {
    return new ErasedWords(JSON.parse(savedSentences) as [string, number][]);
  }

  get isEmpty(): boolean {
    return this.#sentencePositions.size === 0;
  }

  savedState(): string {
    return JSON.stringify([...this.#sentencePositions]);
  }

  add(text: string, position: number): void {
    if (text.length < sentenceLettersMin) return;
    for (const sentence of text.split(/(?<=[.!?])\s+|[\r\n]+/)) {
      const sentenceWords = sentence.trim();
      if (sentenceWords.length < sentenceLettersMin || sentenceWords.split(/\s+/).length < sentenceWordsMin) continue;
      const erasedSince = this.#sentencePositions.get(sentenceWords);
      if (erasedSince === undefined) {
        if (
          this.#sentencePositions.size === erasedSentencesMax ||
          this.#sentenceLetters + sentenceWords.length > erasedLettersMax
        )
          return;
        this.#sentenceLetters += sentenceWords.length;
      }
      if (erasedSince === undefined || position < erasedSince) this.#sentencePositions.set(sentenceWords, position);
    }
  }

  /** Null where there is nothing to look for. */
  search(): WordSearch | null {
    return this.isEmpty ? null : new WordSearch(this.#sentencePositions);
  }
}

interface SentenceSpelling {
  readonly text: string;
  readonly bytes: Buffer;
  readonly since: number;
  /** The longest other spelling that this one begins with. */
  readonly prefix: SentenceSpelling | null;
}

const beginningBits = 18;
const sentenceDecoder = new TextDecoder();

/** Looks through bytes of texts, each byte once however many sentences there are. */
export class WordSearch {
  /** Bytes of the longest spelling. */
  readonly longest: number;
  /** 1 where some sentence begins with 4 bytes of that slot. */
  readonly #beginningBits = new Uint8Array(1 << beginningBits);
  /** Spellings by their first 4 bytes, in the order of their bytes: rows of one form begin alike, ten thousand of them. */
  readonly #spellingsByBeginning = new Map<number, readonly SentenceSpelling[]>();

  constructor(sentences: Iterable<readonly [string, number]>) {
    let longestSpelling = 0;
    const unsortedSpellings = new Map<number, Omit<SentenceSpelling, 'prefix'>[]>();
    for (const [sentence, erasedSince] of sentences) {
      for (const spelledSentence of new Set(spellingsOf(sentence))) {
        const spellingBytes = Buffer.from(spelledSentence, 'utf8');
        longestSpelling = Math.max(longestSpelling, spellingBytes.length);
        const spellingBeginning = spellingBytes.readInt32BE(0);
        this.#beginningBits[beginningSlot(spellingBeginning)] = 1;
        const spelling = { text: spelledSentence, bytes: spellingBytes, since: erasedSince };
        const sameBeginning = unsortedSpellings.get(spellingBeginning);
        if (sameBeginning === undefined) unsortedSpellings.set(spellingBeginning, [spelling]);
        else sameBeginning.push(spelling);
      }
    }
    for (const [spellingBeginning, spellings] of unsortedSpellings)
      this.#spellingsByBeginning.set(spellingBeginning, sortSpellings(spellings));
    this.longest = longestSpelling;
  }

  /** The earliest position of a sentence that UTF-8 text in bytes from `textStart` to `textEnd` repeats; Infinity: of none. */
  sinceIn(heap: Uint8Array, textStart = 0, textEnd = heap.length): number {
    let erasedSince = Infinity;
    let fourByteWindow = 0;
    let decodedText: string | null = null;
    for (let byteIndex = textStart; byteIndex < textEnd; byteIndex++) {
      fourByteWindow = (fourByteWindow << 8) | heap[byteIndex]!;
      if (byteIndex < textStart + 3 || this.#beginningBits[beginningSlot(fourByteWindow)] === 0) continue;
      const spellings = this.#spellingsByBeginning.get(fourByteWindow);
      if (spellings === undefined) continue;
      for (let spelling = spellingAt(spellings, heap, byteIndex - 3, textEnd); spelling !== null; spelling = spelling.prefix) {
        if (spelling.since >= erasedSince) continue;
        decodedText ??= sentenceDecoder.decode(heap.subarray(textStart, textEnd));
        if (hasWord(decodedText, spelling.text)) erasedSince = spelling.since;
      }
    }
    return erasedSince;
  }

  /** The same for bytes that may be text of any encoding: a blank separates words, which in UTF-16 has a zero beside it. */
  sinceInBytes(bytes: Buffer): number {
    const erasedSince = this.sinceIn(bytes);
    if (!bytes.includes(0)) return erasedSince;
    const utf16Readings = [0, 1].flatMap((oddOrEvenStart) => {
      const alignedUtf16 = Buffer.from(bytes.subarray(oddOrEvenStart, bytes.length - ((bytes.length - oddOrEvenStart) % 2)));
      return [alignedUtf16.toString('utf16le'), alignedUtf16.swap16().toString('utf16le')];
    });
    return Math.min(erasedSince, ...utf16Readings.map((text) => this.sinceInText(text)));
  }

  sinceInText(text: string): number {
    return this.sinceIn(Buffer.from(text, 'utf8'));
  }
}

function beginningSlot(word: number): number {
  return Math.imul(word, 0x9e3779b1) >>> (32 - beginningBits);
}

function sortSpellings(spellings: Omit<SentenceSpelling, 'prefix'>[]): readonly SentenceSpelling[] {
  const sortedSpellings: SentenceSpelling[] = [];
  for (const spelling of spellings.sort((a, b) => Buffer.compare(a.bytes, b.bytes))) {
    let prefix = sortedSpellings.at(-1) ?? null;
    while (prefix !== null && !startsWith(spelling.bytes, prefix.bytes)) prefix = prefix.prefix;
    sortedSpellings.push({ ...spelling, prefix });
  }
  return sortedSpellings;
}

function startsWith(bytes: Uint8Array, beginning: Uint8Array): boolean {
  return spellingOrder(beginning, bytes, 0, bytes.length) === 0;
}

/**
 * The longest spelling with which the text begins there; the others are its prefixes. A spelling with which the text begins sorts
 * before it, and the last spelling that sorts before the text begins with every such spelling.
 */
function spellingAt(
  spellings: readonly SentenceSpelling[],
  heap: Uint8Array,
  spellingStart: number,
  textEnd: number,
): SentenceSpelling | null {
  let low = 0;
  for (let high = spellings.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if (spellingOrder(spellings[middle]!.bytes, heap, spellingStart, textEnd) <= 0) low = middle + 1;
    else high = middle;
  }
  let spelling = low === 0 ? null : spellings[low - 1]!;
  while (spelling !== null && spellingOrder(spelling.bytes, heap, spellingStart, textEnd) !== 0) spelling = spelling.prefix;
  return spelling;
}

/** Below 0 where the spelling stands before the text, 0 where the text begins with it. */
function spellingOrder(spelling: Uint8Array, heap: Uint8Array, textStart: number, textEnd: number): number {
  const sharedLength = Math.min(spelling.length, textEnd - textStart);
  for (let i = 0; i < sharedLength; i++) {
    const byteDifference = spelling[i]! - heap[textStart + i]!;
    if (byteDifference !== 0) return byteDifference;
  }
  return spelling.length - sharedLength;
}
