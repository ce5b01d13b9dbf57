/** TO_CHAR of numbers and TO_NUMBER, by a template. Source: PostgreSQL, "Template Patterns for Numeric Formatting". */
import { ServiceError } from '../../../errors.ts';
import type { Cell } from '../../../log/values/value.ts';
import { checkLength, finite, invalid } from './scalar-function.ts';
import { ordinal } from './to-char.ts';

type TemplateKey = '9' | '0' | ',' | '.' | 'G' | 'L' | 'MI' | 'PL' | 'SG' | 'RN' | 'rn' | 'TH' | 'th' | 'none';
type TemplatePart = { readonly key: TemplateKey } | string;

interface NumberTemplate {
  readonly parts: readonly TemplatePart[];
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

const templateWords = ['EEEE', 'FM', 'MI', 'PL', 'PR', 'RN', 'SG', 'TH', '9', '0', ',', '.', 'B', 'D', 'G', 'L', 'S', 'V'];
const templateLengthMax = 1_000;
const templateCache = new Map<string, NumberTemplate>();
const parsedTemplatesMax = 100;

function numberTemplate(templateText: string): NumberTemplate {
  const parsedTemplate = templateCache.get(templateText);
  if (parsedTemplate !== undefined) return parsedTemplate;
  if (templateText.length > templateLengthMax)
    throw new ServiceError('REL_TOO_LARGE', `a template of TO_CHAR or TO_NUMBER has at most ${templateLengthMax} characters`);
  const template = readTemplate(templateText);
  if (templateCache.size === parsedTemplatesMax) templateCache.clear();
  templateCache.set(templateText, template);
  return template;
}

function readTemplate(templateText: string): NumberTemplate {
  const templateParts: TemplatePart[] = [];
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
  let signDigitIndex = -1;
  let hasMultiplier = false;
  for (let templateOffset = 0; templateOffset < templateText.length; ) {
    const quotedText = /^"((?:[^"\\]|\\[^])*)"?/.exec(templateText.slice(templateOffset));
    if (quotedText) {
      templateParts.push(quotedText[1]!.replaceAll(/\\([^])/g, '$1'));
      templateOffset += quotedText[0].length;
      continue;
    }
    const templateWord = templateWords.find(
      (knownWord) => templateText.slice(templateOffset, templateOffset + knownWord.length).toUpperCase() === knownWord,
    );
    if (templateWord === undefined) {
      templateParts.push(templateText[templateOffset++]!);
      continue;
    }
    const literalText = templateText.slice(templateOffset, templateOffset + templateWord.length);
    templateOffset += templateWord.length;
    if (digitCounts.scientific) throw wrongTemplate('nothing comes behind EEEE');
    if (digitCounts.brackets && templateWord !== 'FM' && templateWord !== 'TH') throw wrongTemplate('PR is the last');
    switch (templateWord) {
      case '9':
        if (hasMultiplier) digitCounts.power++;
        else if (digitCounts.point) digitCounts.behind++;
        else digitCounts.before++;
        templateParts.push({ key: '9' });
        break;
      case '0':
        if (!digitCounts.point) digitCounts.zeros ??= digitCounts.before;
        if (digitCounts.point) digitCounts.behind++;
        else digitCounts.before++;
        digitCounts.zerosEnd = digitCounts.before + digitCounts.behind;
        templateParts.push({ key: '0' });
        break;
      case '.':
      case 'D':
        if (digitCounts.point || hasMultiplier) throw wrongTemplate('a number has one point, and none beside V');
        digitCounts.point = true;
        templateParts.push({ key: '.' });
        break;
      case 'FM':
        digitCounts.fill = false;
        break;
      case 'S':
        if (digitCounts.sign !== null || digitCounts.plus || digitCounts.minus) throw wrongTemplate('a number has one sign');
        digitCounts.sign = digitCounts.point ? 'behind' : 'before';
        if (!digitCounts.point) signDigitIndex = digitCounts.before;
        break;
      case 'MI':
      case 'PL':
      case 'SG':
        if (digitCounts.sign !== null) throw wrongTemplate('a number has one sign');
        digitCounts.minus ||= templateWord !== 'PL';
        digitCounts.plus ||= templateWord !== 'MI';
        templateParts.push({ key: templateWord });
        break;
      case 'PR':
        if (digitCounts.sign !== null || digitCounts.plus || digitCounts.minus) throw wrongTemplate('a number has one sign');
        digitCounts.brackets = true;
        break;
      case 'RN':
        digitCounts.roman = true;
        templateParts.push({ key: literalText === 'rn' ? 'rn' : 'RN' });
        break;
      case 'TH':
        templateParts.push({ key: literalText === 'TH' ? 'TH' : 'th' });
        break;
      case 'V':
        if (digitCounts.point) throw wrongTemplate('V excludes a point');
        hasMultiplier = true;
        break;
      case 'EEEE':
        if (
          !digitCounts.fill ||
          digitCounts.zerosEnd > 0 ||
          digitCounts.sign !== null ||
          digitCounts.plus ||
          digitCounts.minus ||
          digitCounts.roman ||
          hasMultiplier
        )
          throw wrongTemplate('EEEE stands beside digits and a point alone');
        digitCounts.scientific = true;
        break;
      case 'B':
        break;
      default:
        templateParts.push({ key: templateWord as TemplateKey });
    }
  }
  if (digitCounts.sign === 'before' && digitCounts.before === signDigitIndex) digitCounts.sign = 'behind';
  return { ...digitCounts, parts: templateParts };
}

function wrongTemplate(detail: string): Error {
  return invalid(`the template of a number is wrong: ${detail}`, 'syntax');
}

/** The digits of a number, rounded to this many behind the point, halves away from zero in decimal; no sign. */
function roundedDigits(
  value: Cell,
  fractionPlaces: number,
  multiplierPower: number,
): { readonly negative: boolean; readonly text: string } {
  const decimalText = String(value);
  const isNegative = decimalText.startsWith('-');
  const [mantissa, exponent = '0'] = decimalText.replace('-', '').toLowerCase().split('e');
  const [wholeDigits, fractionDigits = ''] = mantissa!.split('.');
  /** The number is these digits times ten to the power of minus `decimalScale`. */
  let decimalScale = fractionDigits.length - Number(exponent) - multiplierPower;
  let scaledDigits = BigInt(wholeDigits! + fractionDigits);
  if (decimalScale > fractionPlaces) {
    const droppedDigits = decimalScale - fractionPlaces;
    if (droppedDigits > 400) scaledDigits = 0n;
    else {
      const roundingUnit = 10n ** BigInt(droppedDigits);
      scaledDigits = (scaledDigits + roundingUnit / 2n) / roundingUnit;
    }
    decimalScale = fractionPlaces;
  }
  const paddedDigits = String(scaledDigits * 10n ** BigInt(fractionPlaces - decimalScale)).padStart(fractionPlaces + 1, '0');
  const pointIndex = paddedDigits.length - fractionPlaces;
  const roundedText =
    fractionPlaces === 0 ? paddedDigits : `${paddedDigits.slice(0, pointIndex)}.${paddedDigits.slice(pointIndex)}`;
  return { negative: isNegative, text: roundedText };
}

const romanNumerals: readonly (readonly [number, string])[] = [
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

function romanNumeral(value: number): string {
  let romanRemainder = Math.round(value);
  if (romanRemainder < 1 || romanRemainder > 3_999) return '#'.repeat(15);
  let romanText = '';
  for (const [numeralValue, numeralLetters] of romanNumerals)
    while (romanRemainder >= numeralValue) {
      romanText += numeralLetters;
      romanRemainder -= numeralValue;
    }
  return romanText;
}

function scientificText(value: number, fractionPlaces: number): string {
  const [mantissa, exponent] = value.toExponential(fractionPlaces).split('e');
  const exponentDigits = exponent!.replace(/[+-]/, '').padStart(2, '0');
  return `${value < 0 ? '' : ' '}${mantissa}e${exponent!.startsWith('-') ? '-' : '+'}${exponentDigits}`;
}

/** A number by a template. Where its digits don't fit, `#` stands for each. */
export function showNumber(value: Cell, templateText: string): string {
  const parsedTemplate = numberTemplate(templateText);
  if (parsedTemplate.scientific) return scientificText(Number(value), Math.min(parsedTemplate.behind, 100));
  return checkLength(new TemplatedNumber(parsedTemplate, value).text());
}

/** One walk over the template: each place for a digit is written as a blank, a digit or a sign before it. */
class TemplatedNumber {
  readonly #numberTemplate: NumberTemplate;
  readonly #digits: string;
  readonly #shownNumber: Cell;
  readonly #isNegative: boolean;
  readonly #leadingBlanks: number;
  /** Where the last digit behind the point that counts stands; null where all do. */
  readonly #lastDigitIndex: number | null;
  readonly #hasBrackets: boolean;
  #digitIndex = 0;
  #inputOffset = 0;
  #isSigned: boolean;
  #isInNumber = false;
  #shownText = '';

  constructor(template: NumberTemplate, value: Cell) {
    this.#numberTemplate = template;
    this.#shownNumber = value;
    const wholePlaces = template.before + template.power;
    const { negative, text: roundedText } = roundedDigits(value, template.behind, template.power);
    const wholeDigitCount = roundedText.split('.')[0]!.length;
    this.#isNegative = negative && (/[1-9]/.test(roundedText) || typeof value !== 'number');
    this.#leadingBlanks = Math.max(0, wholePlaces - wholeDigitCount);
    this.#digits =
      wholeDigitCount > wholePlaces
        ? '#'.repeat(wholePlaces) + (template.behind > 0 || template.point ? `.${'#'.repeat(template.behind)}` : '')
        : roundedText;
    this.#hasBrackets = template.brackets && (this.#isNegative || template.fill);
    const { plus, minus, sign, fill } = template;
    this.#isSigned = plus || minus ? !plus || minus : !this.#isNegative && !fill && sign === null;
    this.#lastDigitIndex = !fill && template.point ? this.#findLastDigit() : null;
  }

  #findLastDigit(): number | null {
    const pointIndex = this.#digits.indexOf('.');
    if (pointIndex < 0) return null;
    let lastDigitIndex = pointIndex;
    for (let i = pointIndex + 1; i < this.#digits.length; i++) if (this.#digits[i] !== '0') lastDigitIndex = i;
    const { zerosEnd } = this.#numberTemplate;
    if (zerosEnd > this.#leadingBlanks)
      lastDigitIndex = Math.max(lastDigitIndex, Math.min(this.#digits.length - 1, zerosEnd - this.#leadingBlanks));
    return lastDigitIndex;
  }

  text(): string {
    const { parts, fill, roman, point } = this.#numberTemplate;
    for (const templatePart of parts) {
      if (typeof templatePart === 'string') {
        this.#shownText += templatePart;
        continue;
      }
      switch (templatePart.key) {
        case '9':
        case '0':
        case '.':
          if (!roman && !this.#showDigit(templatePart.key)) return this.#shownText;
          break;
        case ',':
        case 'G':
          if (this.#isInNumber) this.#shownText += ',';
          else if (fill) this.#shownText += ' ';
          break;
        case 'L':
          this.#shownText += ' ';
          break;
        case 'MI':
          if (this.#isNegative) this.#shownText += '-';
          else if (fill) this.#shownText += ' ';
          break;
        case 'PL':
          if (!this.#isNegative) this.#shownText += '+';
          else if (fill) this.#shownText += ' ';
          break;
        case 'SG':
          this.#shownText += this.#isNegative ? '-' : '+';
          break;
        case 'RN':
        case 'rn': {
          const romanLetters = romanNumeral(Number(this.#shownNumber));
          const romanText = templatePart.key === 'rn' ? romanLetters.toLowerCase() : romanLetters;
          this.#shownText += fill ? romanText.padStart(15) : romanText;
          break;
        }
        case 'TH':
        case 'th': {
          if (roman || point || this.#isNegative || this.#digits.startsWith('#')) break;
          const ordinalSuffix = ordinal(this.#digits);
          this.#shownText += templatePart.key === 'TH' ? ordinalSuffix.toUpperCase() : ordinalSuffix;
          break;
        }
        case 'none':
          break;
      }
    }
    return this.#shownText;
  }

  /** False: there is no digit left for it, which ends the text. */
  #showDigit(templateKey: '9' | '0' | '.'): boolean {
    const { zeros, fill, sign, behind, before, power, point } = this.#numberTemplate;
    this.#isInNumber = false;
    const leadingBlanks = this.#leadingBlanks;
    const inputOffset = this.#inputOffset;
    const lastDigitIndex = this.#lastDigitIndex;
    const isLastPoint = lastDigitIndex !== null && this.#digits[lastDigitIndex] === '.';
    // Nothing stands before the point of a number below 1.
    const isLeadingZero = (): boolean => zeros === null && this.#digitIndex === 0 && this.#digits.startsWith('0') && behind !== 0;
    if (!this.#isSigned && (inputOffset >= leadingBlanks || zeros === inputOffset) && (!isLeadingZero() || isLastPoint)) {
      if (sign !== null) {
        if (sign === 'before') this.#shownText += this.#isNegative ? '-' : '+';
      } else if (this.#hasBrackets) this.#shownText += this.#isNegative ? '<' : ' ';
      else if (this.#isNegative) this.#shownText += '-';
      else if (fill) this.#shownText += ' ';
      this.#isSigned = true;
    }
    if (inputOffset < leadingBlanks && (zeros === null || zeros > inputOffset)) {
      if (fill) this.#shownText += ' ';
    } else if (inputOffset < leadingBlanks) {
      this.#shownText += '0';
      this.#isInNumber = true;
    } else {
      const shownDigit = this.#digits[this.#digitIndex];
      if (shownDigit === '.') {
        if (!isLastPoint || !fill) this.#shownText += '.';
      } else if (lastDigitIndex !== null && this.#digitIndex > lastDigitIndex && templateKey !== '0') {
        // Zeros behind the last digit that counts stay away.
      } else if (isLeadingZero()) {
        if (fill) this.#shownText += ' ';
        else if (isLastPoint) this.#shownText += '0';
      } else {
        if (shownDigit === undefined) return false;
        this.#shownText += shownDigit;
        this.#isInNumber = true;
      }
      if (this.#digitIndex < this.#digits.length) this.#digitIndex++;
    }
    const startsSigned =
      this.#numberTemplate.plus || this.#numberTemplate.minus
        ? !this.#numberTemplate.plus || this.#numberTemplate.minus
        : !this.#isNegative && !fill && sign === null;
    const digitPlaceCount = behind + before + power - 1 + (!startsSigned && leadingBlanks === 0 ? 1 : 0);
    let lastDigitPlace = digitPlaceCount + (leadingBlanks > 0 ? 1 : 0) + (point ? 1 : 0);
    if (lastDigitIndex !== null && lastDigitIndex === this.#digitIndex) lastDigitPlace = inputOffset;
    if (inputOffset + 1 === lastDigitPlace) {
      if (this.#isSigned && this.#hasBrackets) this.#shownText += this.#isNegative ? '>' : ' ';
      else if (sign === 'behind') this.#shownText += this.#isNegative ? '-' : '+';
    }
    this.#inputOffset++;
    return true;
  }
}

/** The number that a text says by a template. */
export function readNumber(numberText: string, templateText: string): number {
  const parsedTemplate = numberTemplate(templateText);
  if (parsedTemplate.scientific || parsedTemplate.roman)
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'TO_NUMBER with EEEE or RN is not implemented');
  const match = /^[^\d.+<-]*([-+<])?[^\d.]*([\d,\s]*)(?:\.([\d,\s]*))?([-+>])?/.exec(numberText)!;
  const [, leadingSign, wholeText = '', fractionText = '', trailingSign] = match;
  const wholeDigits = firstDigits(wholeText, parsedTemplate.before + parsedTemplate.power);
  const fractionDigits = parsedTemplate.point ? firstDigits(fractionText, parsedTemplate.behind) : '';
  if (wholeDigits === '' && fractionDigits === '') throw invalid('the text is not a number', 'text-form');
  const unsignedNumber = Number(`${wholeDigits || '0'}.${fractionDigits || '0'}`) / 10 ** parsedTemplate.power;
  const isNegative = leadingSign === '-' || trailingSign === '-' || (leadingSign === '<' && trailingSign === '>');
  return finite(isNegative ? -unsignedNumber : unsignedNumber);
}

/** The first digits of a text of digits, commas and spaces, which may be a million characters where a template names few. */
function firstDigits(digitText: string, digitsMax: number): string {
  let digits = '';
  for (let i = 0; i < digitText.length && digits.length < digitsMax; i++) {
    const digitCode = digitText.charCodeAt(i);
    if (digitCode >= 0x30 && digitCode <= 0x39) digits += digitText[i]!;
  }
  return digits;
}
