/** TO_CHAR of numbers and TO_NUMBER, by a template. Source: PostgreSQL, "Template Patterns for Numeric Formatting". */
import { ServiceError } from '../../../errors.ts';
import type { Cell } from '../../../log/values/value.ts';
import { checkLength, finite, invalid } from './scalar-function.ts';
import { ordinal } from './to-char.ts';

type Key = '9' | '0' | ',' | '.' | 'G' | 'L' | 'MI' | 'PL' | 'SG' | 'RN' | 'rn' | 'TH' | 'th' | 'none';
type Part = { readonly key: Key } | string;

interface Template {
  readonly parts: readonly Part[];
  /** Digits before and behind the point. */
  readonly before: number;
  readonly behind: number;
  /** Place of the first 0 before the point; null without one. */
  readonly zeros: number | null;
  /** Place behind the last 0. */
  readonly zerosEnd: number;
  readonly fill: boolean;
  readonly point: boolean;
  readonly brackets: boolean;
  /** Where S stands. */
  readonly sign: 'before' | 'behind' | null;
  readonly plus: boolean;
  readonly minus: boolean;
  readonly roman: boolean;
  readonly scientific: boolean;
  /** V: the number is shown times ten to the power of it. */
  readonly power: number;
}

const words = ['EEEE', 'FM', 'MI', 'PL', 'PR', 'RN', 'SG', 'TH', '9', '0', ',', '.', 'B', 'D', 'G', 'L', 'S', 'V'];
const templateMax = 1_000;
const templateCache = new Map<string, Template>();
const keptMax = 100;

function templateOf(text: string): Template {
  const known = templateCache.get(text);
  if (known !== undefined) return known;
  if (text.length > templateMax)
    throw new ServiceError('REL_TOO_LARGE', `a template of TO_CHAR or TO_NUMBER has at most ${templateMax} characters`);
  const template = readTemplate(text);
  if (templateCache.size === keptMax) templateCache.clear();
  templateCache.set(text, template);
  return template;
}

function readTemplate(text: string): Template {
  const parts: Part[] = [];
  const digitCounts = {
    before: 0,
    behind: 0,
    zeros: null as number | null,
    zerosEnd: 0,
    fill: true,
    point: false,
    brackets: false,
    sign: null as 'before' | 'behind' | null,
    plus: false,
    minus: false,
    roman: false,
    scientific: false,
    power: 0,
  };
  let signAt = -1;
  let multiplies = false;
  for (let at = 0; at < text.length; ) {
    const quoted = /^"((?:[^"\\]|\\[^])*)"?/.exec(text.slice(at));
    if (quoted) {
      parts.push(quoted[1]!.replaceAll(/\\([^])/g, '$1'));
      at += quoted[0].length;
      continue;
    }
    const word = words.find((each) => text.slice(at, at + each.length).toUpperCase() === each);
    if (word === undefined) {
      parts.push(text[at++]!);
      continue;
    }
    const literalText = text.slice(at, at + word.length);
    at += word.length;
    if (digitCounts.scientific) throw wrong('nothing comes behind EEEE');
    if (digitCounts.brackets && word !== 'FM' && word !== 'TH') throw wrong('PR is the last');
    switch (word) {
      case '9':
        if (multiplies) digitCounts.power++;
        else if (digitCounts.point) digitCounts.behind++;
        else digitCounts.before++;
        parts.push({ key: '9' });
        break;
      case '0':
        if (!digitCounts.point) digitCounts.zeros ??= digitCounts.before;
        if (digitCounts.point) digitCounts.behind++;
        else digitCounts.before++;
        digitCounts.zerosEnd = digitCounts.before + digitCounts.behind;
        parts.push({ key: '0' });
        break;
      case '.':
      case 'D':
        if (digitCounts.point || multiplies) throw wrong('a number has one point, and none beside V');
        digitCounts.point = true;
        parts.push({ key: '.' });
        break;
      case 'FM':
        digitCounts.fill = false;
        break;
      case 'S':
        if (digitCounts.sign !== null || digitCounts.plus || digitCounts.minus) throw wrong('a number has one sign');
        digitCounts.sign = digitCounts.point ? 'behind' : 'before';
        if (!digitCounts.point) signAt = digitCounts.before;
        break;
      case 'MI':
      case 'PL':
      case 'SG':
        if (digitCounts.sign !== null) throw wrong('a number has one sign');
        digitCounts.minus ||= word !== 'PL';
        digitCounts.plus ||= word !== 'MI';
        parts.push({ key: word });
        break;
      case 'PR':
        if (digitCounts.sign !== null || digitCounts.plus || digitCounts.minus) throw wrong('a number has one sign');
        digitCounts.brackets = true;
        break;
      case 'RN':
        digitCounts.roman = true;
        parts.push({ key: literalText === 'rn' ? 'rn' : 'RN' });
        break;
      case 'TH':
        parts.push({ key: literalText === 'TH' ? 'TH' : 'th' });
        break;
      case 'V':
        if (digitCounts.point) throw wrong('V excludes a point');
        multiplies = true;
        break;
      case 'EEEE':
        if (
          !digitCounts.fill ||
          digitCounts.zerosEnd > 0 ||
          digitCounts.sign !== null ||
          digitCounts.plus ||
          digitCounts.minus ||
          digitCounts.roman ||
          multiplies
        )
          throw wrong('EEEE stands beside digits and a point alone');
        digitCounts.scientific = true;
        break;
      case 'B':
        break;
      default:
        parts.push({ key: word as Key });
    }
  }
  if (digitCounts.sign === 'before' && digitCounts.before === signAt) digitCounts.sign = 'behind';
  return { ...digitCounts, parts };
}

function wrong(detail: string): Error {
  return invalid(`the template of a number is wrong: ${detail}`, 'syntax');
}

/** The digits of a number, rounded to this many behind the point, halves away from zero in decimal; no sign. */
function digitsOf(value: Cell, behind: number, power: number): { readonly negative: boolean; readonly text: string } {
  const decimalText = String(value);
  const negative = decimalText.startsWith('-');
  const [mantissa, exponent = '0'] = decimalText.replace('-', '').toLowerCase().split('e');
  const [whole, part = ''] = mantissa!.split('.');
  /** The number is these digits times ten to the power of minus `scale`. */
  let scale = part.length - Number(exponent) - power;
  let all = BigInt(whole! + part);
  if (scale > behind) {
    const cut = scale - behind;
    if (cut > 400) all = 0n;
    else {
      const step = 10n ** BigInt(cut);
      all = (all + step / 2n) / step;
    }
    scale = behind;
  }
  const padded = String(all * 10n ** BigInt(behind - scale)).padStart(behind + 1, '0');
  const point = padded.length - behind;
  const text = behind === 0 ? padded : `${padded.slice(0, point)}.${padded.slice(point)}`;
  return { negative, text };
}

const romans: readonly (readonly [number, string])[] = [
  [1000, 'M'],
  [900, 'CM'],
  [500, 'D'],
  [400, 'CD'],
  [100, 'C'],
  [90, 'XC'],
  [50, 'L'],
  [40, 'XL'],
  [10, 'X'],
  [9, 'IX'],
  [5, 'V'],
  [4, 'IV'],
  [1, 'I'],
];

function romanOf(value: number): string {
  let left = Math.round(value);
  if (left < 1 || left > 3_999) return '#'.repeat(15);
  let text = '';
  for (const [size, letters] of romans)
    while (left >= size) {
      text += letters;
      left -= size;
    }
  return text;
}

function scientific(value: number, behind: number): string {
  const [mantissa, exponent] = value.toExponential(behind).split('e');
  const size = exponent!.replace(/[+-]/, '').padStart(2, '0');
  return `${value < 0 ? '' : ' '}${mantissa}e${exponent!.startsWith('-') ? '-' : '+'}${size}`;
}

/** A number by a template. Where its digits don't fit, `#` stands for each. */
export function showNumber(value: Cell, text: string): string {
  const template = templateOf(text);
  if (template.scientific) return scientific(Number(value), Math.min(template.behind, 100));
  return checkLength(new Shown(template, value).text());
}

/** One walk over the template: each place for a digit is written as a blank, a digit or a sign before it. */
class Shown {
  readonly #template: Template;
  readonly #number: string;
  readonly #value: Cell;
  readonly #negative: boolean;
  readonly #blanks: number;
  /** Where the last digit behind the point that counts stands; null where all do. */
  readonly #last: number | null;
  readonly #brackets: boolean;
  #at = 0;
  #inputOffset = 0;
  #isSigned: boolean;
  #inNumber = false;
  #text = '';

  constructor(template: Template, value: Cell) {
    this.#template = template;
    this.#value = value;
    const before = template.before + template.power;
    const { negative, text } = digitsOf(value, template.behind, template.power);
    const whole = text.split('.')[0]!.length;
    this.#negative = negative && (/[1-9]/.test(text) || typeof value !== 'number');
    this.#blanks = Math.max(0, before - whole);
    this.#number =
      whole > before
        ? '#'.repeat(before) + (template.behind > 0 || template.point ? `.${'#'.repeat(template.behind)}` : '')
        : text;
    this.#brackets = template.brackets && (this.#negative || template.fill);
    const { plus, minus, sign, fill } = template;
    this.#isSigned = plus || minus ? !plus || minus : !this.#negative && !fill && sign === null;
    this.#last = !fill && template.point ? this.#lastDigit() : null;
  }

  #lastDigit(): number | null {
    const point = this.#number.indexOf('.');
    if (point < 0) return null;
    let last = point;
    for (let i = point + 1; i < this.#number.length; i++) if (this.#number[i] !== '0') last = i;
    const { zerosEnd } = this.#template;
    if (zerosEnd > this.#blanks) last = Math.max(last, Math.min(this.#number.length - 1, zerosEnd - this.#blanks));
    return last;
  }

  text(): string {
    const { parts, fill, roman, point } = this.#template;
    for (const part of parts) {
      if (typeof part === 'string') {
        this.#text += part;
        continue;
      }
      switch (part.key) {
        case '9':
        case '0':
        case '.':
          if (!roman && !this.#digit(part.key)) return this.#text;
          break;
        case ',':
        case 'G':
          if (this.#inNumber) this.#text += ',';
          else if (fill) this.#text += ' ';
          break;
        case 'L':
          this.#text += ' ';
          break;
        case 'MI':
          if (this.#negative) this.#text += '-';
          else if (fill) this.#text += ' ';
          break;
        case 'PL':
          if (!this.#negative) this.#text += '+';
          else if (fill) this.#text += ' ';
          break;
        case 'SG':
          this.#text += this.#negative ? '-' : '+';
          break;
        case 'RN':
        case 'rn': {
          const letters = romanOf(Number(this.#value));
          const shown = part.key === 'rn' ? letters.toLowerCase() : letters;
          this.#text += fill ? shown.padStart(15) : shown;
          break;
        }
        case 'TH':
        case 'th': {
          if (roman || point || this.#negative || this.#number.startsWith('#')) break;
          const suffix = ordinal(this.#number);
          this.#text += part.key === 'TH' ? suffix.toUpperCase() : suffix;
          break;
        }
        case 'none':
          break;
      }
    }
    return this.#text;
  }

  /** False: there is no digit left for it, which ends the text. */
  #digit(key: '9' | '0' | '.'): boolean {
    const { zeros, fill, sign, behind, before, power, point } = this.#template;
    this.#inNumber = false;
    const blanks = this.#blanks;
    const inputOffset = this.#inputOffset;
    const last = this.#last;
    const isLastPoint = last !== null && this.#number[last] === '.';
    // Nothing stands before the point of a number below 1.
    const isOpen = (): boolean => zeros === null && this.#at === 0 && this.#number.startsWith('0') && behind !== 0;
    if (!this.#isSigned && (inputOffset >= blanks || zeros === inputOffset) && (!isOpen() || isLastPoint)) {
      if (sign !== null) {
        if (sign === 'before') this.#text += this.#negative ? '-' : '+';
      } else if (this.#brackets) this.#text += this.#negative ? '<' : ' ';
      else if (this.#negative) this.#text += '-';
      else if (fill) this.#text += ' ';
      this.#isSigned = true;
    }
    if (inputOffset < blanks && (zeros === null || zeros > inputOffset)) {
      if (fill) this.#text += ' ';
    } else if (inputOffset < blanks) {
      this.#text += '0';
      this.#inNumber = true;
    } else {
      const digit = this.#number[this.#at];
      if (digit === '.') {
        if (!isLastPoint || !fill) this.#text += '.';
      } else if (last !== null && this.#at > last && key !== '0') {
        // Zeros behind the last digit that counts stay away.
      } else if (isOpen()) {
        if (fill) this.#text += ' ';
        else if (isLastPoint) this.#text += '0';
      } else {
        if (digit === undefined) return false;
        this.#text += digit;
        this.#inNumber = true;
      }
      if (this.#at < this.#number.length) this.#at++;
    }
    const startsSigned =
      this.#template.plus || this.#template.minus
        ? !this.#template.plus || this.#template.minus
        : !this.#negative && !fill && sign === null;
    const count = behind + before + power - 1 + (!startsSigned && blanks === 0 ? 1 : 0);
    let end = count + (blanks > 0 ? 1 : 0) + (point ? 1 : 0);
    if (last !== null && last === this.#at) end = inputOffset;
    if (inputOffset + 1 === end) {
      if (this.#isSigned && this.#brackets) this.#text += this.#negative ? '>' : ' ';
      else if (sign === 'behind') this.#text += this.#negative ? '-' : '+';
    }
    this.#inputOffset++;
    return true;
  }
}

/** The number that a text says by a template. */
export function readNumber(given: string, text: string): number {
  const template = templateOf(text);
  if (template.scientific || template.roman)
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'TO_NUMBER with EEEE or RN is not implemented');
  const match = /^[^\d.+<-]*([-+<])?[^\d.]*([\d,\s]*)(?:\.([\d,\s]*))?([-+>])?/.exec(given)!;
  const [, sign, digits = '', part = '', behind] = match;
  const whole = firstDigits(digits, template.before + template.power);
  const rest = template.point ? firstDigits(part, template.behind) : '';
  if (whole === '' && rest === '') throw invalid('the text is not a number', 'text-form');
  const value = Number(`${whole || '0'}.${rest || '0'}`) / 10 ** template.power;
  const negative = sign === '-' || behind === '-' || (sign === '<' && behind === '>');
  return finite(negative ? -value : value);
}

/** The first digits of a text of digits, commas and spaces, which may be a million characters where a template names few. */
function firstDigits(text: string, most: number): string {
  let digits = '';
  for (let i = 0; i < text.length && digits.length < most; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0x30 && code <= 0x39) digits += text[i]!;
  }
  return digits;
}
