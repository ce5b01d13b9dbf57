/**
 * Texts to terms, the same for what is stored and for what is asked. A text is brought into NFKC; letters, with their marks, and
 * digits make words; words end where letters meet digits, where a small letter meets a capital (camelCase), and before the last of
 * several capitals that a small one follows (HTTPServer); terms are words in small letters. Chinese, Japanese and Korean, which
 * write no spaces, become pairs of neighbouring characters. A term's ordinal is its number in the text. A run of letters that capitals
 * part (YouTube) is a term as well: at the ordinal of its first part, as wide as it has parts.
 */
export const charClass = { separator: 0, lower: 1, upper: 2, digit: 3, ideograph: 4, mark: 5 } as const;

/** UTF-16 units of a term: the rest of a longer word is ignored. */
export const TERM_MAX = 64;

/** Classes of bytes below 0x80. */
export const asciiClasses = Uint8Array.from({ length: 128 }, (_, code) =>
  code >= 0x61 && code <= 0x7a
    ? charClass.lower
    : code >= 0x41 && code <= 0x5a
      ? charClass.upper
      : code >= 0x30 && code <= 0x39
        ? charClass.digit
        : charClass.separator,
);

const ideographs = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}々〆ー]/u;
const capitals = /[\p{Lu}\p{Lt}]/u;
const letters = /\p{L}/u;
const marks = /\p{M}/u;
const digits = /\p{N}/u;

/** By code point plus one of the Basic Multilingual Plane, as far as they were met; 0 = not yet. */
const known = new Uint8Array(0x10000);

function classOf(code: number): number {
  if (code < 128) return asciiClasses[code]!;
  const knownClass = code < 0x10000 ? known[code]! : 0;
  if (knownClass > 0) return knownClass - 1;
  const char = String.fromCodePoint(code);
  const own = ideographs.test(char)
    ? charClass.ideograph
    : letters.test(char)
      ? capitals.test(char)
        ? charClass.upper
        : charClass.lower
      : digits.test(char)
        ? charClass.digit
        : marks.test(char)
          ? charClass.mark
          : charClass.separator;
  if (code < 0x10000) known[code] = own + 1;
  return own;
}

/** Whether a word ends between two characters, by their classes. */
export function parts(before: number, now: number): boolean {
  if (before === now) return false;
  return !(before === charClass.upper && now === charClass.lower);
}

const plain = /^[\0-\x7f]*$/;

/** Terms of a text in order. */
export function tokensOf(raw: string): string[] {
  const text = compose(raw);
  const terms: string[] = [];
  eachRun(text, (start, end, ideographic) => {
    if (ideographic) pairs(text.slice(start, end), terms);
    else terms.push(termOf(text, start, end));
  });
  return terms;
}

/** A term and where it stands: in UTF-16 units of the composed text, and among the terms. */
export interface TokenSpan {
  readonly term: string;
  readonly start: number;
  readonly end: number;
  readonly ordinal: number;
  /** How many ordinals it takes. */
  readonly width: number;
}

/** The same terms, and whole words that capitals part before their parts, with their ordinals in the text as it was composed for them. */
export function tokenSpans(raw: string): { readonly text: string; readonly spans: readonly TokenSpan[] } {
  const text = compose(raw);
  const spans: TokenSpan[] = [];
  /** Number of the first part of a word, and how many there are so far. */
  let [first, parted, ordinal] = [0, 0, 0];
  const endWord = (): void => {
    if (parted > 1) {
      const [start, end] = [spans[first]!.start, spans.at(-1)!.end];
      const own = { term: termOf(text, start, end), start, end, ordinal: ordinal - parted, width: parted };
      if (end - start <= TERM_MAX) spans.splice(first, 0, own);
    }
    parted = 0;
  };
  eachRun(text, (start, end, ideographic) => {
    const isWord = !ideographic && classOf(text.codePointAt(start)!) !== charClass.digit;
    if (!isWord || spans.at(-1)?.end !== start) endWord();
    if (!ideographic) {
      if (isWord && parted++ === 0) first = spans.length;
      return void spans.push({ term: termOf(text, start, end), start, end, ordinal: ordinal++, width: 1 });
    }
    const terms: string[] = [];
    pairs(text.slice(start, end), terms);
    let at = start;
    for (const term of terms) {
      spans.push({ term, start: at, end: at + term.length, ordinal: ordinal++, width: 1 });
      at += text.codePointAt(at)! > 0xffff ? 2 : 1;
    }
  });
  endWord();
  return { text, spans };
}

function compose(raw: string): string {
  return plain.test(raw) ? raw : raw.normalize('NFKC');
}

function termOf(text: string, start: number, end: number): string {
  return text.slice(start, Math.min(end, start + TERM_MAX)).toLowerCase();
}

/** Words, and runs of characters that write no spaces. */
function eachRun(text: string, visit: (start: number, end: number, ideographic: boolean) => void): void {
  let start = -1;
  let last = 0;
  let before = 0;
  let ideographic = false;
  const end = (at: number): void => {
    if (start >= 0 && at > start) visit(start, at, ideographic);
    start = -1;
  };
  for (let i = 0; i < text.length; ) {
    const code = text.codePointAt(i)!;
    const own = classOf(code);
    if (own === charClass.separator || (own === charClass.mark && start < 0)) end(i);
    else if (own !== charClass.mark) {
      if (start >= 0 && parts(before, own)) end(i);
      // The last of several capitals begins the word that goes on in small letters.
      else if (start >= 0 && before === charClass.upper && own === charClass.lower && last > start) {
        end(last);
        start = last;
      }
      if (start < 0) {
        start = i;
        ideographic = own === charClass.ideograph;
      }
      before = own;
      last = i;
    }
    i += code > 0xffff ? 2 : 1;
  }
  end(text.length);
}

function pairs(run: string, into: string[]): void {
  const chars = Array.from(run);
  if (chars.length === 1) into.push(run);
  for (let i = 1; i < chars.length; i++) into.push(chars[i - 1]! + chars[i]!);
}
