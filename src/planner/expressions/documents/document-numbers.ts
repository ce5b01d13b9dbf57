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
const digitsMax = 34;
const exponents = { least: -6_176, most: 6_111 } as const;

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
    const word = /^([+-]?)(nan|inf(?:inity)?)$/i.exec(text);
    if (word !== null) {
      const isNaN = word[2]!.toLowerCase() === 'nan';
      return new Decimal(isNaN ? Number.NaN : word[1] === '-' ? -Infinity : Infinity, 0n, 0, false);
    }
    const match = decimalForm.exec(text);
    if (match === null) return null;
    const [, sign, whole = '', fraction = '', only = '', power = '0'] = match;
    const digits = `${whole}${fraction}${only}`;
    if (digits.length > 8_192) return null;
    const coefficient = BigInt(digits) * (sign === '-' ? -1n : 1n);
    const decimal = Decimal.round(coefficient, Number(power) - fraction.length - only.length, sign === '-');
    return decimal.special === null && compareDecimals(coefficient, Number(power) - fraction.length - only.length, decimal) === 0
      ? decimal
      : null;
  }

  static special(value: number): Decimal {
    return new Decimal(value, 0n, 0, false);
  }

  /** Rounds to the nearest decimal, and to even on a tie. */
  static round(coefficient: bigint, exponent: number, isNegative = coefficient < 0n): Decimal {
    let [c, e] = cut(coefficient, exponent, Math.max(digitsOf(coefficient) - digitsMax, exponents.least - exponent, 0));
    // Rounding up may have added a digit.
    if (digitsOf(c) > digitsMax) [c, e] = cut(c, e, 1);
    if (c === 0n) return new Decimal(null, 0n, Math.min(Math.max(e, exponents.least), exponents.most), isNegative);
    if (e > exponents.most) {
      const more = e - exponents.most;
      if (digitsOf(c) + more > digitsMax) return new Decimal(c < 0n ? -Infinity : Infinity, 0n, 0, false);
      return new Decimal(null, c * 10n ** BigInt(more), exponents.most, isNegative);
    }
    return new Decimal(null, c, e, isNegative);
  }
}

export type Numeric = number | bigint | Double | Decimal;

const absolute = (value: bigint): bigint => (value < 0n ? -value : value);
const digitsOf = (value: bigint): number => (value === 0n ? 1 : absolute(value).toString().length);

/** Drops the last digits, rounding half to even. */
function cut(coefficient: bigint, exponent: number, digits: number): [bigint, number] {
  if (digits <= 0) return [coefficient, exponent];
  if (digits > digitsOf(coefficient) + 1) return [0n, exponent + digits];
  const unit = 10n ** BigInt(digits);
  const quotient = coefficient / unit;
  const twice = absolute(coefficient % unit) * 2n;
  const up = twice > unit || (twice === unit && quotient % 2n !== 0n);
  return [up ? quotient + (coefficient < 0n ? -1n : 1n) : quotient, exponent + digits];
}

function decimalText(coefficient: bigint, exponent: number, isNegative: boolean): string {
  const digits = absolute(coefficient).toString();
  const sign = isNegative ? '-' : '';
  const adjusted = exponent + digits.length - 1;
  if (exponent > 0 || adjusted < -6) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : '';
    return `${sign}${digits[0]}${fraction}E${adjusted < 0 ? '' : '+'}${adjusted}`;
  }
  if (exponent === 0) return `${sign}${digits}`;
  const padded = digits.padStart(1 - exponent, '0');
  return `${sign}${padded.slice(0, exponent)}.${padded.slice(exponent)}`;
}

export const isInt32 = (value: number): boolean => Object.is(value, value | 0);

export function doubleValue(value: number): number | Double {
  return isInt32(value) ? new Double(value) : value;
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
    return -exponent > digitsMax ? 0n : coefficient / 10n ** BigInt(-exponent);
  }
  const number = toNumber(value);
  return Number.isFinite(number) ? BigInt(Math.trunc(number)) : null;
}

const sign = (a: number | bigint, b: number | bigint): number => (a < b ? -1 : a > b ? 1 : 0);

/** NaN comes before every other number. */
export function compareNumbers(a: Numeric, b: Numeric): number {
  if (a instanceof Decimal || b instanceof Decimal) return compareWithDecimal(a, b);
  const one = a instanceof Double ? a.value : a;
  const two = b instanceof Double ? b.value : b;
  if (Number.isNaN(one)) return Number.isNaN(two) ? 0 : -1;
  if (Number.isNaN(two)) return 1;
  return sign(one, two);
}

const finite = (value: Numeric): boolean =>
  typeof value === 'bigint' || (value instanceof Decimal ? value.special === null : Number.isFinite(toNumber(value)));

function compareWithDecimal(a: Numeric, b: Numeric): number {
  if (!finite(a) || !finite(b)) {
    const value = (each: Numeric): number => (finite(each) ? 0 : toNumber(each));
    return compareNumbers(value(a), value(b));
  }
  const [one, two] = [exactly(a), exactly(b)];
  return compareDecimals(one.coefficient, one.exponent, two);
}

interface Exact {
  readonly coefficient: bigint;
  readonly exponent: number;
}

/** Every finite double is a decimal of some hundred digits at most. */
function exactly(value: Numeric): Exact {
  if (value instanceof Decimal) return value;
  if (typeof value === 'bigint') return { coefficient: value, exponent: 0 };
  const number = toNumber(value);
  if (Number.isInteger(number)) return { coefficient: BigInt(number), exponent: 0 };
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, number);
  const all = bits.getBigUint64(0);
  const power = Number((all >> 52n) & 0x7ffn);
  const mantissa = (all & 0xf_ffff_ffff_ffffn) | (power === 0 ? 0n : 1n << 52n);
  const shift = 1_075 - Math.max(power, 1);
  return { coefficient: (number < 0 ? -mantissa : mantissa) * 5n ** BigInt(shift), exponent: -shift };
}

function compareDecimals(c: bigint, e: number, other: Exact): number {
  const signs = sign(sign(c, 0n), sign(other.coefficient, 0n));
  if (signs !== 0 || c === 0n) return signs;
  const magnitudes = sign(digitsOf(c) + e, digitsOf(other.coefficient) + other.exponent);
  if (magnitudes !== 0) return c < 0n ? -magnitudes : magnitudes;
  const apart = e - other.exponent;
  if (apart >= 0) return sign(c * 10n ** BigInt(apart), other.coefficient);
  return sign(c, other.coefficient * 10n ** BigInt(-apart));
}

/**
 * Equal numbers have one text across types: digits where the value is whole, else the text of the double where one is exactly
 * equal.
 */
export function numberIdentity(value: Numeric): string {
  const whole = toWhole(value);
  if (whole !== null) return String(whole);
  const nearest = toNumber(value);
  if (!(value instanceof Decimal) || compareNumbers(nearest, value) === 0) return String(nearest);
  let { coefficient, exponent } = value;
  while (coefficient % 10n === 0n) {
    coefficient /= 10n;
    exponent++;
  }
  return `${coefficient}E${exponent}`;
}

/** The number as a decimal with this many digits. */
function toDecimal(value: Numeric, digits: 15 | 34): Decimal {
  if (value instanceof Decimal) return value;
  if (typeof value !== 'bigint') {
    const number = toNumber(value);
    if (!Number.isFinite(number)) return Decimal.special(number);
    if (numberType(value) === 'double' && digits === 15) return Decimal.parse(number.toPrecision(15))!;
  }
  const { coefficient, exponent } = exactly(value);
  return Decimal.round(coefficient, exponent);
}

export function addDecimals(a: Decimal, b: Decimal): Decimal {
  if (a.special !== null || b.special !== null) return Decimal.special((a.special ?? 0) + (b.special ?? 0));
  const [high, low] = a.exponent >= b.exponent ? [a, b] : [b, a];
  const apart = high.exponent - low.exponent;
  // An operand this far below can only decide the rounding of the other: its sign suffices.
  if (apart > 2 * digitsMax + 4) {
    if (high.coefficient === 0n) return low;
    const scaled = high.coefficient * 10n ** BigInt(digitsMax + 2);
    return Decimal.round(scaled + BigInt(sign(low.coefficient, 0n)), high.exponent - digitsMax - 2);
  }
  return Decimal.round(high.coefficient * 10n ** BigInt(apart) + low.coefficient, low.exponent);
}

function multiplyDecimals(a: Decimal, b: Decimal): Decimal {
  if (a.special !== null || b.special !== null) {
    const value = (each: Decimal): number => each.special ?? sign(each.coefficient, 0n);
    return Decimal.special(value(a) * value(b));
  }
  return Decimal.round(a.coefficient * b.coefficient, a.exponent + b.exponent);
}

function divideDecimal(a: Decimal, by: number): Decimal {
  if (a.special !== null) return a;
  const scale = digitsMax + 4 + String(by).length;
  const scaled = a.coefficient * 10n ** BigInt(scale);
  const divisor = BigInt(by);
  let coefficient = scaled / divisor;
  let exponent = a.exponent - scale;
  // A rest makes it no tie, and no exact quotient.
  if (scaled % divisor !== 0n) return Decimal.round(coefficient * 10n + (coefficient < 0n ? -1n : 1n), exponent - 1);
  while (exponent < a.exponent && coefficient % 10n === 0n) {
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
  const types = [numberType(a), numberType(b)];
  if (types.includes('decimal')) return decimal(toDecimal(a, 15), toDecimal(b, 15));
  if (types.includes('double')) return doubleValue(double(toNumber(a), toNumber(b)));
  const result = whole(BigInt(a as number | bigint), BigInt(b as number | bigint));
  if (result !== BigInt.asIntN(64, result)) return null;
  return types.includes('long') || result !== BigInt.asIntN(32, result) ? result : Number(result);
}

/** A sum that loses nothing on the way: whole numbers exactly, doubles with what each addition rounds off. */
export class Sum {
  #whole = 0n;
  #double = 0;
  #rest = 0;
  #special = 0;
  #decimal: Decimal | null = null;
  #widest: NumberType = 'int';
  #count = 0;

  add(value: Numeric): void {
    const type = numberType(value);
    this.#count++;
    if (rankOf[type] > rankOf[this.#widest]) this.#widest = type;
    if (value instanceof Decimal) this.#decimal = this.#decimal === null ? value : addDecimals(this.#decimal, value);
    else if (type === 'double') this.#addDouble(toNumber(value));
    else this.#whole += BigInt(value as number | bigint);
  }

  #addDouble(value: number): void {
    this.#special += value;
    const sum = this.#double + value;
    const back = sum - this.#double;
    this.#rest += this.#double - (sum - back) + (value - back);
    this.#double = sum;
  }

  #asDouble(): number {
    if (!Number.isFinite(this.#double)) return this.#special;
    const whole = Number(this.#whole);
    this.#whole -= BigInt(whole);
    this.#addDouble(whole);
    this.#addDouble(Number(this.#whole));
    this.#whole = 0n;
    return this.#double + this.#rest;
  }

  #asDecimal(): Decimal {
    const parts: readonly Numeric[] = Number.isFinite(this.#double)
      ? [this.#whole, doubleValue(this.#double), doubleValue(this.#rest)]
      : [doubleValue(this.#special)];
    return parts.reduce<Decimal>((sum, part) => (part === 0n ? sum : nonZero(part, sum)), this.#decimal!);
  }

  total(): Numeric {
    if (this.#widest === 'decimal') return this.#asDecimal();
    if (this.#widest === 'double') return doubleValue(this.#asDouble());
    const whole = this.#whole;
    if (whole !== BigInt.asIntN(64, whole)) return doubleValue(Number(whole));
    return this.#widest === 'long' || whole !== BigInt.asIntN(32, whole) ? whole : Number(whole);
  }

  /** Null without values. */
  mean(): Numeric | null {
    if (this.#count === 0) return null;
    if (this.#widest === 'decimal') return divideDecimal(this.#asDecimal(), this.#count);
    return doubleValue(this.#asDouble() / this.#count);
  }
}

const nonZero = (part: Numeric, sum: Decimal): Decimal =>
  compareNumbers(part, 0) === 0 ? sum : addDecimals(sum, toDecimal(part, 34));
const rankOf: Readonly<Record<NumberType, number>> = { int: 0, long: 1, double: 2, decimal: 3 };
