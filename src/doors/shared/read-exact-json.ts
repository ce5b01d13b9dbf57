/** The one reader of JSON from callers: integers that a JavaScript number would change come out as bigint, all else as usual. */
import { createHash } from 'node:crypto';

/** An integer of so many digits or more may not fit a double. */
export const longDigits = 16;
/** A number of up to so many digits is finite. */
export const hugeDigits = 308;
/** Digits and sign of the longest integer that a double comes near. */
const doubleDigits = 310;
const backslash = 0x5c;

export interface NumbersIn {
  /** There may be an integer of `longDigits` or more. */
  readonly areLong: boolean;
  /** There may be one of an exponent, or of more than `hugeDigits`. */
  readonly areHuge: boolean;
}

/** Throws a SyntaxError for text that is not JSON, a RangeError for a number too large for a double. */
export function parseExactJson(text: string, numbers = numbersIn(text)): unknown {
  const value = numbers.areLong ? parsedLong(text) : (JSON.parse(text) as unknown);
  if (numbers.areHuge) refuseInfinite(value);
  return value;
}

function numbersIn(text: string): NumbersIn {
  return { areLong: /\d{16}/.test(text), areHuge: /[eE]\+?\d{3}|(?<!\d)\d{309}/.test(text) };
}

function refuseInfinite(value: unknown): void {
  if (value === Infinity || value === -Infinity) throw new RangeError('a number is too large');
  if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) refuseInfinite(item);
}

function parsedLong(text: string): unknown {
  // Long integers travel through JSON.parse as marked texts. No text holds its own hash, however it spells its characters.
  const mark = `${createHash('sha256').update(text).digest('base64')}:`;
  const marked = withMarks(text, mark);
  return marked === text ? JSON.parse(text) : unmark(JSON.parse(marked), mark);
}

/** The text with integers that are not safe written as marked texts. */
function withMarks(text: string, mark: string): string {
  const number = /(?<![\d.])-?\d{16,}/g;
  let quotedNumbers = '';
  let copied = 0;
  let at = 0;
  let begun = text.indexOf('"');
  for (;;) {
    number.lastIndex = at;
    const numberMatch = number.exec(text);
    if (numberMatch === null) return quotedNumbers + text.slice(copied);
    // Strings before it are passed over one by one; it may stand inside one of them.
    while (begun >= 0 && begun < numberMatch.index) {
      at = stringEnd(text, begun);
      if (at > numberMatch.index) break;
      begun = text.indexOf('"', at);
    }
    if (at > numberMatch.index) continue;
    const [digits] = numberMatch;
    at = numberMatch.index + digits.length;
    // A number too large for a double is refused at any length: a bigint of millions of digits would take seconds to read.
    if (digits.length > doubleDigits || !isInteger(text, numberMatch.index, at) || Number.isSafeInteger(Number(digits))) continue;
    quotedNumbers += `${text.slice(copied, numberMatch.index)}"${mark}${digits}"`;
    copied = at;
  }
}

/** Whether these digits are a whole number by themselves, and a value. Text that is no JSON stays invalid. */
function isInteger(text: string, from: number, to: number): boolean {
  if (/[\d.eE+]/.test(text.charAt(from - 1)) || /[.eE]/.test(text.charAt(to))) return false;
  const first = text.charAt(from) === '-' ? from + 1 : from;
  if (text.charAt(first) === '0') return false;
  let next = to;
  while (/\s/.test(text.charAt(next))) next++;
  return text.charAt(next) !== ':';
}

/** The offset behind the closing quote of the string that begins there, or behind the text. */
function stringEnd(text: string, begun: number): number {
  for (let end = text.indexOf('"', begun + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === backslash) escapes++;
    if (escapes % 2 === 0) return end + 1;
  }
  return text.length;
}

function unmark(value: unknown, mark: string): unknown {
  if (typeof value === 'string') return value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i];
      if (typeof item === 'string' || typeof item === 'object') value[i] = unmark(item, mark);
    }
  } else if (typeof value === 'object' && value !== null) {
    const members = value as Record<string, unknown>;
    for (const name in members) {
      const item = members[name];
      // A member __proto__ that is no object can't be set like others; bodies that have one are refused.
      if (typeof item === 'string' || typeof item === 'object') {
        if (name === '__proto__') continue;
        members[name] = unmark(item, mark);
      }
    }
  }
  return value;
}
