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
  readonly bytes: Uint8Array;
  readonly since: number;
}

const beginningBits = 18;
const sentenceDecoder = new TextDecoder();

/** Looks through bytes of texts, each byte once however many sentences there are. */
export class WordSearch {
  /** Bytes of the longest spelling. */
  readonly longest: number;
  /** 1 where some sentence begins with 4 bytes of that slot. */
  readonly #beginningBits = new Uint8Array(1 << beginningBits);
  readonly #spellingsByBeginning = new Map<number, SentenceSpelling[]>();

  constructor(sentences: Iterable<readonly [string, number]>) {
    let longestSpelling = 0;
    for (const [sentence, erasedSince] of sentences) {
      for (const spelledSentence of new Set(spellingsOf(sentence))) {
        const spellingBytes = Buffer.from(spelledSentence, 'utf8');
        longestSpelling = Math.max(longestSpelling, spellingBytes.length);
        const spellingBeginning = spellingBytes.readInt32BE(0);
        this.#beginningBits[beginningSlot(spellingBeginning)] = 1;
        const sameBeginning = this.#spellingsByBeginning.get(spellingBeginning);
        if (sameBeginning === undefined)
          this.#spellingsByBeginning.set(spellingBeginning, [
            { text: spelledSentence, bytes: spellingBytes, since: erasedSince },
          ]);
        else sameBeginning.push({ text: spelledSentence, bytes: spellingBytes, since: erasedSince });
      }
    }
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
      for (const spelling of this.#spellingsByBeginning.get(fourByteWindow) ?? []) {
        if (spelling.since >= erasedSince || !isSpellingAt(heap, byteIndex - 3, textEnd, spelling.bytes)) continue;
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

function isSpellingAt(heap: Uint8Array, spellingStart: number, textEnd: number, bytes: Uint8Array): boolean {
  if (spellingStart + bytes.length > textEnd) return false;
  for (let i = 4; i < bytes.length; i++) if (heap[spellingStart + i] !== bytes[i]) return false;
  return true;
}
