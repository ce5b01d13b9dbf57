/**
 * Numbers of documents: 32 and 64 bits, doubles and decimals of 34 digits. They compare exactly by value across types; a sum or a
 * product has the wider of its operands' types. Pure.
 */

/** A double that would be taken for a whole number of 32 bits if it stood bare. */
export class Double {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

const decimalForm = /^([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:e([+-]?\d{1,9}))?$/i;
const decimalDigitsMax = 34;
const decimalExponents = { least: -6_176, most: 6_111 } as const;

/** Decimal128: a whole number of at most 34 digits, times a power of ten; or none. */
export class Decimal {
  /** NaN, ±Infinity; null: it is finite. */
  readonly special: number | null;
  readonly coefficient: bigint;
  readonly exponent: number;
  readonly text: string;

  private constructor(special: number | null, coefficient: bigint, exponent: number, isNegative: boolean) {
    this.special = special;
    this.coefficient = coefficient;
    this.exponent = exponent;
    this.text = special === null ? decimalText(coefficient, exponent, isNegative) : String(special);
  }

  /** Null where the text is no decimal, or has more digits than the 34 that fit exactly. */
  static parse(text: string): Decimal | null {
    const specialWord = /^([+-]?)(nan|inf(?:inity)?)$/i.exec(text);
    if (specialWord !== null) {
      const isNaN = specialWord[2]!.toLowerCase() === 'nan';
      return new Decimal(isNaN ? Number.NaN : specialWord[1] === '-' ? -Infinity : Infinity, 0n, 0, false);
    }
    const decimalMatch = decimalForm.exec(text);
    if (decimalMatch === null) return null;
    const [, sign, wholeDigits = '', fractionDigits = '', onlyFraction = '', writtenExponent = '0'] = decimalMatch;
    const decimalDigits = `${wholeDigits}${fractionDigits}${onlyFraction}`;
    if (decimalDigits.length > 8_192) return null;
    const coefficient = BigInt(decimalDigits) * (sign === '-' ? -1n : 1n);
    const decimal = Decimal.round(
      coefficient,
      Number(writtenExponent) - fractionDigits.length - onlyFraction.length,
      sign === '-',
    );
    return decimal.special === null &&
      compareDecimals(coefficient, Number(writtenExponent) - fractionDigits.length - onlyFraction.length, decimal) === 0
      ? decimal
      : null;
  }

  static special(value: number): Decimal {
    return new Decimal(value, 0n, 0, false);
  }

  /** Rounds to the nearest decimal, and to even on a tie. */
  static round(coefficient: bigint, exponent: number, isNegative = coefficient < 0n): Decimal {
    let [cutCoefficient, cutExponent] = roundDigitsOff(
      coefficient,
      exponent,
      Math.max(digitCount(coefficient) - decimalDigitsMax, decimalExponents.least - exponent, 0),
    );
    // Rounding up may have added a digit.
    if (digitCount(cutCoefficient) > decimalDigitsMax)
      [cutCoefficient, cutExponent] = roundDigitsOff(cutCoefficient, cutExponent, 1);
    if (cutCoefficient === 0n)
      return new Decimal(null, 0n, Math.min(Math.max(cutExponent, decimalExponents.least), decimalExponents.most), isNegative);
    if (cutExponent > decimalExponents.most) {
      const excessExponent = cutExponent - decimalExponents.most;
      if (digitCount(cutCoefficient) + excessExponent > decimalDigitsMax)
        return new Decimal(cutCoefficient < 0n ? -Infinity : Infinity, 0n, 0, false);
      return new Decimal(null, cutCoefficient * 10n ** BigInt(excessExponent), decimalExponents.most, isNegative);
    }
    return new Decimal(null, cutCoefficient, cutExponent, isNegative);
  }
}

export type Numeric = number | bigint | Double | Decimal;

const absoluteValue = (value: bigint): bigint => (value < 0n ? -value : value);
const digitCount = (value: bigint): number => (value === 0n ? 1 : absoluteValue(value).toString().length);

/** Drops the last digits, rounding half to even. */
function roundDigitsOff(coefficient: bigint, exponent: number, digits: number): [bigint, number] {
  if (digits <= 0) return [coefficient, exponent];
  if (digits > digitCount(coefficient) + 1) return [0n, exponent + digits];
  const digitUnit = 10n ** BigInt(digits);
  const quotient = coefficient / digitUnit;
  const twiceRemainder = absoluteValue(coefficient % digitUnit) * 2n;
  const roundsUp = twiceRemainder > digitUnit || (twiceRemainder === digitUnit && quotient % 2n !== 0n);
  return [roundsUp ? quotient + (coefficient < 0n ? -1n : 1n) : quotient, exponent + digits];
}

function decimalText(coefficient: bigint, exponent: number, isNegative: boolean): string {
  const coefficientDigits = absoluteValue(coefficient).toString();
  const sign = isNegative ? '-' : '';
  const adjustedExponent = exponent + coefficientDigits.length - 1;
  if (exponent > 0 || adjustedExponent < -6) {
    const fractionText = coefficientDigits.length > 1 ? `.${coefficientDigits.slice(1)}` : '';
    return `${sign}${coefficientDigits[0]}${fractionText}E${adjustedExponent < 0 ? '' : '+'}${adjustedExponent}`;
  }
  if (exponent === 0) return `${sign}${coefficientDigits}`;
  const paddedDigits = coefficientDigits.padStart(1 - exponent, '0');
  return `${sign}${paddedDigits.slice(0, exponent)}.${paddedDigits.slice(exponent)}`;
}

export const isInt32 = (value: number): boolean => Object.is(value, value | 0);

export function doubleValue(doubleOrInt: number): number | Double {
  return isInt32(doubleOrInt) ? new Double(doubleOrInt) : doubleOrInt;
}

export function isNumeric(value: unknown): value is Numeric {
  return typeof value === 'number' || typeof value === 'bigint' || value instanceof Double || value instanceof Decimal;
}

export type NumberType = 'int' | 'long' | 'double' | 'decimal';

export function numberType(value: Numeric): NumberType {
  if (typeof value === 'number') return isInt32(value) ? 'int' : 'double';
  if (typeof value === 'bigint') return 'long';
  return value instanceof Double ? 'double' : 'decimal';
}

/** The nearest double. */
export function toNumber(value: Numeric): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number(value);
  return value instanceof Double ? value.value : (value.special ?? Number(value.text));
}

/** The value as a whole number; null where it has a fraction or is not finite. */
export function toWhole(value: Numeric): bigint | null {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : null;
  const truncated = toTruncated(value);
  return truncated !== null && compareNumbers(value, truncated) === 0 ? truncated : null;
}

/** The number without its fraction; null: it is not finite, or a decimal of more than 400 digits. */
export function toTruncated(value: Numeric): bigint | null {
  if (typeof value === 'bigint') return value;
  if (value instanceof Decimal) {
    const { special, coefficient, exponent } = value;
    if (special !== null || exponent > 400) return null;
    if (exponent >= 0) return coefficient * 10n ** BigInt(exponent);
    return -exponent > decimalDigitsMax ? 0n : coefficient / 10n ** BigInt(-exponent);
  }
  const doubleNumber = toNumber(value);
  return Number.isFinite(doubleNumber) ? BigInt(Math.trunc(doubleNumber)) : null;
}

const numberSign = (a: number | bigint, b: number | bigint): number => (a < b ? -1 : a > b ? 1 : 0);

/** NaN comes before every other number. */
export function compareNumbers(leftNumeric: Numeric, rightNumeric: Numeric): number {
  if (leftNumeric instanceof Decimal || rightNumeric instanceof Decimal) return compareWithDecimal(leftNumeric, rightNumeric);
  const leftNumber = leftNumeric instanceof Double ? leftNumeric.value : leftNumeric;
  const rightNumber = rightNumeric instanceof Double ? rightNumeric.value : rightNumeric;
  if (Number.isNaN(leftNumber)) return Number.isNaN(rightNumber) ? 0 : -1;
  if (Number.isNaN(rightNumber)) return 1;
  return numberSign(leftNumber, rightNumber);
}

const isFiniteNumber = (value: Numeric): boolean =>
  typeof value === 'bigint' || (value instanceof Decimal ? value.special === null : Number.isFinite(toNumber(value)));

function compareWithDecimal(leftNumeric: Numeric, rightNumeric: Numeric): number {
  if (!isFiniteNumber(leftNumeric) || !isFiniteNumber(rightNumeric)) {
    const specialOrZero = (numericSide: Numeric): number => (isFiniteNumber(numericSide) ? 0 : toNumber(numericSide));
    return compareNumbers(specialOrZero(leftNumeric), specialOrZero(rightNumeric));
  }
  const [leftExact, rightExact] = [exactNumber(leftNumeric), exactNumber(rightNumeric)];
  return compareDecimals(leftExact.coefficient, leftExact.exponent, rightExact);
}

interface ExactNumber {
  readonly coefficient: bigint;
  readonly exponent: number;
}

/** Every finite double is a decimal of some hundred digits at most. */
function exactNumber(value: Numeric): ExactNumber {
  if (value instanceof Decimal) return value;
  if (typeof value === 'bigint') return { coefficient: value, exponent: 0 };
  const doubleNumber = toNumber(value);
  if (Number.isInteger(doubleNumber)) return { coefficient: BigInt(doubleNumber), exponent: 0 };
  const doubleBits = new DataView(new ArrayBuffer(8));
  doubleBits.setFloat64(0, doubleNumber);
  const rawDoubleBits = doubleBits.getBigUint64(0);
  const biasedExponent = Number((rawDoubleBits >> 52n) & 0x7ffn);
  const mantissa = (rawDoubleBits & 0xf_ffff_ffff_ffffn) | (biasedExponent === 0 ? 0n : 1n << 52n);
  const binaryShift = 1_075 - Math.max(biasedExponent, 1);
  return { coefficient: (doubleNumber < 0 ? -mantissa : mantissa) * 5n ** BigInt(binaryShift), exponent: -binaryShift };
}

function compareDecimals(leftCoefficient: bigint, leftExponent: number, rightDecimal: ExactNumber): number {
  const signOrder = numberSign(numberSign(leftCoefficient, 0n), numberSign(rightDecimal.coefficient, 0n));
  if (signOrder !== 0 || leftCoefficient === 0n) return signOrder;
  const magnitudeOrder = numberSign(
    digitCount(leftCoefficient) + leftExponent,
    digitCount(rightDecimal.coefficient) + rightDecimal.exponent,
  );
  if (magnitudeOrder !== 0) return leftCoefficient < 0n ? -magnitudeOrder : magnitudeOrder;
  const exponentGap = leftExponent - rightDecimal.exponent;
  if (exponentGap >= 0) return numberSign(leftCoefficient * 10n ** BigInt(exponentGap), rightDecimal.coefficient);
  return numberSign(leftCoefficient, rightDecimal.coefficient * 10n ** BigInt(-exponentGap));
}

/**
 * Equal numbers have one text across types: digits where the value is whole, else the text of the double where one is exactly
 * equal.
 */
export function numberIdentity(value: Numeric): string {
  const wholeNumber = toWhole(value);
  if (wholeNumber !== null) return String(wholeNumber);
  const nearestDouble = toNumber(value);
  if (!(value instanceof Decimal) || compareNumbers(nearestDouble, value) === 0) return String(nearestDouble);
  let { coefficient, exponent } = value;
  while (coefficient % 10n === 0n) {
    coefficient /= 10n;
    exponent++;
  }
  return `${coefficient}E${exponent}`;
}

/** The number as a decimal with this many digits. */
function toDecimal(value: Numeric, decimalDigits: 15 | 34): Decimal {
  if (value instanceof Decimal) return value;
  if (typeof value !== 'bigint') {
    const doubleNumber = toNumber(value);
    if (!Number.isFinite(doubleNumber)) return Decimal.special(doubleNumber);
    if (numberType(value) === 'double' && decimalDigits === 15) return Decimal.parse(doubleNumber.toPrecision(15))!;
  }
  const { coefficient, exponent } = exactNumber(value);
  return Decimal.round(coefficient, exponent);
}

export function addDecimals(leftDecimal: Decimal, rightDecimal: Decimal): Decimal {
  if (leftDecimal.special !== null || rightDecimal.special !== null)
    return Decimal.special((leftDecimal.special ?? 0) + (rightDecimal.special ?? 0));
  const [higherDecimal, lowerDecimal] =
    leftDecimal.exponent >= rightDecimal.exponent ? [leftDecimal, rightDecimal] : [rightDecimal, leftDecimal];
  const exponentGap = higherDecimal.exponent - lowerDecimal.exponent;
  // An operand this far below can only decide the rounding of the other: its sign suffices.
  if (exponentGap > 2 * decimalDigitsMax + 4) {
    if (higherDecimal.coefficient === 0n) return lowerDecimal;
    const scaledCoefficient = higherDecimal.coefficient * 10n ** BigInt(decimalDigitsMax + 2);
    return Decimal.round(
      scaledCoefficient + BigInt(numberSign(lowerDecimal.coefficient, 0n)),
      higherDecimal.exponent - decimalDigitsMax - 2,
    );
  }
  return Decimal.round(higherDecimal.coefficient * 10n ** BigInt(exponentGap) + lowerDecimal.coefficient, lowerDecimal.exponent);
}

function multiplyDecimals(leftFactor: Decimal, rightFactor: Decimal): Decimal {
  if (leftFactor.special !== null || rightFactor.special !== null) {
    const specialOrSign = (each: Decimal): number => each.special ?? numberSign(each.coefficient, 0n);
    return Decimal.special(specialOrSign(leftFactor) * specialOrSign(rightFactor));
  }
  return Decimal.round(leftFactor.coefficient * rightFactor.coefficient, leftFactor.exponent + rightFactor.exponent);
}

function divideDecimal(dividendDecimal: Decimal, countDivisor: number): Decimal {
  if (dividendDecimal.special !== null) return dividendDecimal;
  const divisionScale = decimalDigitsMax + 4 + String(countDivisor).length;
  const scaledDividend = dividendDecimal.coefficient * 10n ** BigInt(divisionScale);
  const divisor = BigInt(countDivisor);
  let coefficient = scaledDividend / divisor;
  let exponent = dividendDecimal.exponent - divisionScale;
  // A rest makes it no tie, and no exact quotient.
  if (scaledDividend % divisor !== 0n) return Decimal.round(coefficient * 10n + (coefficient < 0n ? -1n : 1n), exponent - 1);
  while (exponent < dividendDecimal.exponent && coefficient % 10n === 0n) {
    coefficient /= 10n;
    exponent++;
  }
  return Decimal.round(coefficient, exponent);
}

export const operations = {
  add: { whole: (a: bigint, b: bigint) => a + b, double: (a: number, b: number) => a + b, decimal: addDecimals },
  multiply: { whole: (a: bigint, b: bigint) => a * b, double: (a: number, b: number) => a * b, decimal: multiplyDecimals },
} as const;

/** Null: the result is whole, and does not fit 64 bits. */
export function combine(operation: keyof typeof operations, a: Numeric, b: Numeric): Numeric | null {
  const { whole, double, decimal } = operations[operation];
  const operandTypes = [numberType(a), numberType(b)];
  if (operandTypes.includes('decimal')) return decimal(toDecimal(a, 15), toDecimal(b, 15));
  if (operandTypes.includes('double')) return doubleValue(double(toNumber(a), toNumber(b)));
  const combinedWhole = whole(BigInt(a as number | bigint), BigInt(b as number | bigint));
  if (combinedWhole !== BigInt.asIntN(64, combinedWhole)) return null;
  return operandTypes.includes('long') || combinedWhole !== BigInt.asIntN(32, combinedWhole)
    ? combinedWhole
    : Number(combinedWhole);
}

/** A sum that loses nothing on the way: whole numbers exactly, doubles with what each addition rounds off. */
export class Sum {
  #wholeSum = 0n;
  #doubleSum = 0;
  #doubleRemainder = 0;
  #specialSum = 0;
  #decimalSum: Decimal | null = null;
  #widestNumberType: NumberType = 'int';
  #addendCount = 0;

  add(value: Numeric): void {
    const type = numberType(value);
    this.#addendCount++;
    if (numberTypeRank[type] > numberTypeRank[this.#widestNumberType]) this.#widestNumberType = type;
    if (value instanceof Decimal) this.#decimalSum = this.#decimalSum === null ? value : addDecimals(this.#decimalSum, value);
    else if (type === 'double') this.#addDouble(toNumber(value));
    else this.#wholeSum += BigInt(value as number | bigint);
  }

  #addDouble(doubleAddend: number): void {
    this.#specialSum += doubleAddend;
    const newDoubleSum = this.#doubleSum + doubleAddend;
    const addedPart = newDoubleSum - this.#doubleSum;
    this.#doubleRemainder += this.#doubleSum - (newDoubleSum - addedPart) + (doubleAddend - addedPart);
    this.#doubleSum = newDoubleSum;
  }

  #asDouble(): number {
    if (!Number.isFinite(this.#doubleSum)) return this.#specialSum;
    const wholeAsDouble = Number(this.#wholeSum);
    this.#wholeSum -= BigInt(wholeAsDouble);
    this.#addDouble(wholeAsDouble);
    this.#addDouble(Number(this.#wholeSum));
    this.#wholeSum = 0n;
    return this.#doubleSum + this.#doubleRemainder;
  }

  #asDecimal(): Decimal {
    const sumParts: readonly Numeric[] = Number.isFinite(this.#doubleSum)
      ? [this.#wholeSum, doubleValue(this.#doubleSum), doubleValue(this.#doubleRemainder)]
      : [doubleValue(this.#specialSum)];
    return sumParts.reduce<Decimal>(
      (decimalTotal, sumPart) => (sumPart === 0n ? decimalTotal : addNonZero(sumPart, decimalTotal)),
      this.#decimalSum!,
    );
  }

  total(): Numeric {
    if (this.#widestNumberType === 'decimal') return this.#asDecimal();
    if (this.#widestNumberType === 'double') return doubleValue(this.#asDouble());
    const wholeTotal = this.#wholeSum;
    if (wholeTotal !== BigInt.asIntN(64, wholeTotal)) return doubleValue(Number(wholeTotal));
    return this.#widestNumberType === 'long' || wholeTotal !== BigInt.asIntN(32, wholeTotal) ? wholeTotal : Number(wholeTotal);
  }

  /** Null without values. */
  mean(): Numeric | null {
    if (this.#addendCount === 0) return null;
    if (this.#widestNumberType === 'decimal') return divideDecimal(this.#asDecimal(), this.#addendCount);
    return doubleValue(this.#asDouble() / this.#addendCount);
  }
}

const addNonZero = (decimalAddend: Numeric, decimalTotal: Decimal): Decimal =>
  compareNumbers(decimalAddend, 0) === 0 ? decimalTotal : addDecimals(decimalTotal, toDecimal(decimalAddend, 34));
const numberTypeRank: Readonly<Record<NumberType, number>> = { int: 0, long: 1, double: 2, decimal: 3 };
