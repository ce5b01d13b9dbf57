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

const ideographPattern = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}々〆ー]/u;
const capitalPattern = /[\p{Lu}\p{Lt}]/u;
const letterPattern = /\p{L}/u;
const markPattern = /\p{M}/u;
const digitPattern = /\p{N}/u;

/** By code point plus one of the Basic Multilingual Plane, as far as they were met; 0 = not yet. */
const knownCharClasses = new Uint8Array(0x10000);

function charClassOf(codePoint: number): number {
  if (codePoint < 128) return asciiClasses[codePoint]!;
  const knownClass = codePoint < 0x10000 ? knownCharClasses[codePoint]! : 0;
  if (knownClass > 0) return knownClass - 1;
  const character = String.fromCodePoint(codePoint);
  const characterClass = ideographPattern.test(character)
    ? charClass.ideograph
    : letterPattern.test(character)
      ? capitalPattern.test(character)
        ? charClass.upper
        : charClass.lower
      : digitPattern.test(character)
        ? charClass.digit
        : markPattern.test(character)
          ? charClass.mark
          : charClass.separator;
  if (codePoint < 0x10000) knownCharClasses[codePoint] = characterClass + 1;
  return characterClass;
}

/** Whether a word ends between two characters, by their classes. */
export function parts(classBefore: number, classNow: number): boolean {
  if (classBefore === classNow) return false;
  return !(classBefore === charClass.upper && classNow === charClass.lower);
}

const asciiTextPattern = /^[\0-\x7f]*$/;

/** Terms of a text in order. */
export function tokensOf(rawText: string): string[] {
  const composedText = composeText(rawText);
  const textTerms: string[] = [];
  eachTokenRun(composedText, (start, end, ideographic) => {
    if (ideographic) pairIdeographs(composedText.slice(start, end), textTerms);
    else textTerms.push(termOf(composedText, start, end));
  });
  return textTerms;
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
export function tokenSpans(rawText: string): { readonly text: string; readonly spans: readonly TokenSpan[] } {
  const composedText = composeText(rawText);
  const tokenSpanList: TokenSpan[] = [];
  /** Number of the first part of a word, and how many there are so far. */
  let [firstOfWord, wordParts, ordinal] = [0, 0, 0];
  const endWholeWord = (): void => {
    if (wordParts > 1) {
      const [start, end] = [tokenSpanList[firstOfWord]!.start, tokenSpanList.at(-1)!.end];
      const wholeWordSpan = {
        term: termOf(composedText, start, end),
        start,
        end,
        ordinal: ordinal - wordParts,
        width: wordParts,
      };
      if (end - start <= TERM_MAX) tokenSpanList.splice(firstOfWord, 0, wholeWordSpan);
    }
    wordParts = 0;
  };
  eachTokenRun(composedText, (start, end, ideographic) => {
    const isWordRun = !ideographic && charClassOf(composedText.codePointAt(start)!) !== charClass.digit;
    if (!isWordRun || tokenSpanList.at(-1)?.end !== start) endWholeWord();
    if (!ideographic) {
      if (isWordRun && wordParts++ === 0) firstOfWord = tokenSpanList.length;
      return void tokenSpanList.push({ term: termOf(composedText, start, end), start, end, ordinal: ordinal++, width: 1 });
    }
    const ideographTerms: string[] = [];
    pairIdeographs(composedText.slice(start, end), ideographTerms);
    let termStart = start;
    for (const term of ideographTerms) {
      tokenSpanList.push({ term, start: termStart, end: termStart + term.length, ordinal: ordinal++, width: 1 });
      termStart += composedText.codePointAt(termStart)! > 0xffff ? 2 : 1;
    }
  });
  endWholeWord();
  return { text: composedText, spans: tokenSpanList };
}

function composeText(rawText: string): string {
  return asciiTextPattern.test(rawText) ? rawText : rawText.normalize('NFKC');
}

function termOf(composedText: string, start: number, end: number): string {
  return composedText.slice(start, Math.min(end, start + TERM_MAX)).toLowerCase();
}

/** Words, and runs of characters that write no spaces. */
function eachTokenRun(text: string, visitRun: (runStart: number, endRun: number, isIdeographic: boolean) => void): void {
  let runStart = -1;
  let lastCharacter = 0;
  let classBefore = 0;
  let isIdeographic = false;
  const endRun = (runEnd: number): void => {
    if (runStart >= 0 && runEnd > runStart) visitRun(runStart, runEnd, isIdeographic);
    runStart = -1;
  };
  for (let i = 0; i < text.length; ) {
    const codePoint = text.codePointAt(i)!;
    const characterClass = charClassOf(codePoint);
    if (characterClass === charClass.separator || (characterClass === charClass.mark && runStart < 0)) endRun(i);
    else if (characterClass !== charClass.mark) {
      if (runStart >= 0 && parts(classBefore, characterClass)) endRun(i);
      // The last of several capitals begins the word that goes on in small letters.
      else if (
        runStart >= 0 &&
        classBefore === charClass.upper &&
        characterClass === charClass.lower &&
        lastCharacter > runStart
      ) {
        endRun(lastCharacter);
        runStart = lastCharacter;
      }
      if (runStart < 0) {
        runStart = i;
        isIdeographic = characterClass === charClass.ideograph;
      }
      classBefore = characterClass;
      lastCharacter = i;
    }
    i += codePoint > 0xffff ? 2 : 1;
  }
  endRun(text.length);
}

function pairIdeographs(ideographRun: string, pairTerms: string[]): void {
  const chars = Array.from(ideographRun);
  if (chars.length === 1) pairTerms.push(ideographRun);
  for (let i = 1; i < chars.length; i++) pairTerms.push(chars[i - 1]! + chars[i]!);
}
