/** The one reader of JSON from callers: integers that a JavaScript number would change come out as bigint, all else as usual. */
import { createHash } from 'node:crypto';

/** An integer of so many digits or more may not fit a double. */
export const longDigits = 16;
/** A number of up to so many digits is finite. */
export const hugeDigits = 308;
/** Digits and sign of the longest integer that a double comes near. */
const doubleDigitsMax = 310;
const backslashCode = 0x5c;

export interface NumbersIn {
  /** There may be an integer of `longDigits` or more. */
  readonly areLong: boolean;
  /** There may be one of an exponent, or of more than `hugeDigits`. */
  readonly areHuge: boolean;
}

/** Throws a SyntaxError for text that is not JSON, a RangeError for a number too large for a double. */
export function parseExactJson(jsonText: string, jsonNumbers = jsonNumbersIn(jsonText)): unknown {
  const jsonValue = jsonNumbers.areLong ? parseLongNumbers(jsonText) : (JSON.parse(jsonText) as unknown);
  if (jsonNumbers.areHuge) refuseInfiniteNumbers(jsonValue);
  return jsonValue;
}

function jsonNumbersIn(jsonText: string): NumbersIn {
  return { areLong: /\d{16}/.test(jsonText), areHuge: /[eE]\+?\d{3}|(?<!\d)\d{309}/.test(jsonText) };
}

function refuseInfiniteNumbers(jsonValue: unknown): void {
  if (jsonValue === Infinity || jsonValue === -Infinity) throw new RangeError('a number is too large');
  if (typeof jsonValue === 'object' && jsonValue !== null)
    for (const jsonItem of Object.values(jsonValue)) refuseInfiniteNumbers(jsonItem);
}

function parseLongNumbers(jsonText: string): unknown {
  // Long integers travel through JSON.parse as marked texts. No text holds its own hash, however it spells its characters.
  const numberMark = `${createHash('sha256').update(jsonText).digest('base64')}:`;
  const markedJson = markLongNumbers(jsonText, numberMark);
  return markedJson === jsonText ? JSON.parse(jsonText) : unmarkNumbers(JSON.parse(markedJson), numberMark);
}

/** The text with integers that are not safe written as marked texts. */
function markLongNumbers(jsonText: string, numberMark: string): string {
  const longNumber = /(?<![\d.])-?\d{16,}/g;
  let quotedNumbers = '';
  let copiedOffset = 0;
  let jsonOffset = 0;
  let stringStart = jsonText.indexOf('"');
  for (;;) {
    longNumber.lastIndex = jsonOffset;
    const numberMatch = longNumber.exec(jsonText);
    if (numberMatch === null) return quotedNumbers + jsonText.slice(copiedOffset);
    // Strings before it are passed over one by one; it may stand inside one of them.
    while (stringStart >= 0 && stringStart < numberMatch.index) {
      jsonOffset = jsonStringEnd(jsonText, stringStart);
      if (jsonOffset > numberMatch.index) break;
      stringStart = jsonText.indexOf('"', jsonOffset);
    }
    if (jsonOffset > numberMatch.index) continue;
    const [longDigitsText] = numberMatch;
    jsonOffset = numberMatch.index + longDigitsText.length;
    // A number too large for a double is refused at any length: a bigint of millions of digits would take seconds to read.
    if (
      longDigitsText.length > doubleDigitsMax ||
      !isJsonInteger(jsonText, numberMatch.index, jsonOffset) ||
      Number.isSafeInteger(Number(longDigitsText))
    )
      continue;
    quotedNumbers += `${jsonText.slice(copiedOffset, numberMatch.index)}"${numberMark}${longDigitsText}"`;
    copiedOffset = jsonOffset;
  }
}

/** Whether these digits are a whole number by themselves, and a value. Text that is no JSON stays invalid. */
function isJsonInteger(jsonText: string, numberStart: number, numberEnd: number): boolean {
  if (/[\d.eE+]/.test(jsonText.charAt(numberStart - 1)) || /[.eE]/.test(jsonText.charAt(numberEnd))) return false;
  const firstDigit = jsonText.charAt(numberStart) === '-' ? numberStart + 1 : numberStart;
  if (jsonText.charAt(firstDigit) === '0') return false;
  let nextLetter = numberEnd;
  while (/\s/.test(jsonText.charAt(nextLetter))) nextLetter++;
  return jsonText.charAt(nextLetter) !== ':';
}

/** The offset behind the closing quote of the string that begins there, or behind the text. */
function jsonStringEnd(jsonText: string, stringStart: number): number {
  for (
    let closingQuote = jsonText.indexOf('"', stringStart + 1);
    closingQuote >= 0;
    closingQuote = jsonText.indexOf('"', closingQuote + 1)
  ) {
    let escapeCount = 0;
    while (jsonText.charCodeAt(closingQuote - 1 - escapeCount) === backslashCode) escapeCount++;
    if (escapeCount % 2 === 0) return closingQuote + 1;
  }
  return jsonText.length;
}

function unmarkNumbers(jsonValue: unknown, numberMark: string): unknown {
  if (typeof jsonValue === 'string')
    return jsonValue.startsWith(numberMark) ? BigInt(jsonValue.slice(numberMark.length)) : jsonValue;
  if (Array.isArray(jsonValue)) {
    for (let i = 0; i < jsonValue.length; i++) {
      const jsonItem: unknown = jsonValue[i];
      if (typeof jsonItem === 'string' || typeof jsonItem === 'object') jsonValue[i] = unmarkNumbers(jsonItem, numberMark);
    }
  } else if (typeof jsonValue === 'object' && jsonValue !== null) {
    const jsonMembers = jsonValue as Record<string, unknown>;
    for (const memberName in jsonMembers) {
      const jsonItem = jsonMembers[memberName];
      // A member __proto__ that is no object can't be set like others; bodies that have one are refused.
      if (typeof jsonItem === 'string' || typeof jsonItem === 'object') {
        if (memberName === '__proto__') continue;
        jsonMembers[memberName] = unmarkNumbers(jsonItem, numberMark);
      }
    }
  }
  return jsonValue;
}
