/** Functions of numbers. Halves are rounded away from zero, as decimals are in PostgreSQL. */
import { type Cell, I64_MAX, I64_MIN } from '../../../log/values/value.ts';
import { finite, integer, invalid, number, outOfRange, quick, type ScalarFunction, type Signature } from './scalar-function.ts';

export function exact(value: bigint): bigint {
  if (value > I64_MAX || value < I64_MIN) throw outOfRange('integer overflow: a result does not fit 64 bits');
  return value;
}

/** To `decimalDigits` behind the point, by how the number is written: 1.005 is 1.01. */
export function roundedTo(value: number, decimalDigits: number, roundWhole: (value: number) => number = halfAway): number {
  if (value === 0 || decimalDigits > 340) return value;
  if (decimalDigits < -308) return 0;
  const shiftedNumber = shiftDecimalPoint(value, decimalDigits);
  // A number beyond 2^53 has no fraction to round.
  if (!Number.isFinite(shiftedNumber)) return value;
  return finite(shiftDecimalPoint(roundWhole(shiftedNumber), -decimalDigits));
}

export function halfAway(value: number): number {
  return value < 0 ? -Math.round(-value) : Math.round(value);
}

function shiftDecimalPoint(value: number, decimalShift: number): number {
  const [mantissa, exponent = '0'] = String(value).split('e');
  return Number(`${mantissa}e${Number(exponent) + decimalShift}`);
}

/** An integer to a power of ten above its last digits. */
function roundInteger(value: bigint, decimalDigits: bigint, towardsZero: boolean): bigint {
  if (decimalDigits >= 0n) return value;
  if (decimalDigits < -19n) return 0n;
  const roundingUnit = 10n ** -decimalDigits;
  const wholeUnits = value / roundingUnit;
  const unitRemainder = value % roundingUnit;
  const awayFromZero =
    !towardsZero && (unitRemainder < 0n ? -unitRemainder : unitRemainder) * 2n >= roundingUnit ? (value < 0n ? -1n : 1n) : 0n;
  return exact((wholeUnits + awayFromZero) * roundingUnit);
}

function numberSignature(computeNumber: (value: number) => number, raises = false): Signature {
  return { takes: ['number'], cost: quick, yields: 'number', evaluate: (value) => finite(computeNumber(number(value))), raises };
}

const unchangedInteger: Signature = { takes: ['integer'], cost: quick, yields: 'integer', evaluate: (value) => value! };

function modulo(value: Cell, divisor: Cell): Cell {
  if (typeof value === 'bigint' && typeof divisor === 'bigint') return divisor === 0n ? null : value % divisor;
  return number(divisor) === 0 ? null : finite(number(value) % number(divisor));
}

function raiseToPower(base: number, exponent: number): number {
  if (base === 0 && exponent < 0) throw invalid('zero has no negative power', 'power');
  if (base < 0 && !Number.isInteger(exponent)) throw invalid('a negative number has whole powers only', 'power');
  return base ** exponent;
}

function logarithm(value: number, takeLogarithm: (value: number) => number): number {
  if (value <= 0) throw invalid(`there is no logarithm of ${value === 0 ? 'zero' : 'a negative number'}`, 'logarithm');
  return takeLogarithm(value);
}

function logarithmTo(logarithmBase: number, value: number): number {
  const baseLogarithm = logarithm(logarithmBase, Math.log2);
  if (baseLogarithm === 0) throw invalid('there is no logarithm to the base of 1', 'logarithm');
  return finite(logarithm(value, Math.log2) / baseLogarithm);
}

function commonDivisor(x: bigint, y: bigint): bigint {
  let [dividend, divisor] = [x < 0n ? -x : x, y < 0n ? -y : y];
  while (divisor !== 0n) [dividend, divisor] = [divisor, dividend % divisor];
  return dividend;
}

function commonMultiple(x: bigint, y: bigint): bigint {
  if (x === 0n || y === 0n) return 0n;
  const multipleProduct = (x / commonDivisor(x, y)) * y;
  return multipleProduct < 0n ? -multipleProduct : multipleProduct;
}

function factorial(n: bigint): bigint {
  if (n < 0n) throw outOfRange('a negative number has no factorial');
  if (n > 20n) throw outOfRange('integer overflow: a factorial does not fit 64 bits');
  let factorialProduct = 1n;
  for (let factor = 2n; factor <= n; factor++) factorialProduct *= factor;
  return factorialProduct;
}

function widthBucket(value: number, lowerBound: number, upperBound: number, bucketCount: number): number {
  if (bucketCount <= 0 || bucketCount > 2_147_483_646) throw invalid('WIDTH_BUCKET takes a number of parts above zero', 'bucket');
  if (lowerBound === upperBound) throw invalid('the bounds of WIDTH_BUCKET differ', 'bucket');
  const [bucketsFrom, bucketsTo, bucketedValue] =
    lowerBound < upperBound ? [lowerBound, upperBound, value] : [-lowerBound, -upperBound, -value];
  if (bucketedValue < bucketsFrom) return 0;
  if (bucketedValue >= bucketsTo) return bucketCount + 1;
  return Math.min(bucketCount, Math.floor(((bucketedValue - bucketsFrom) / (bucketsTo - bucketsFrom)) * bucketCount) + 1);
}

export const numberFunctions: readonly ScalarFunction[] = [
  {
    name: 'ABS',
    also: ['@'],
    group: 'numbers',
    usage: 'ABS(x) or @ x',
    summary: 'The number without its sign.',
    examples: [
      ['ABS(-7)', '7'],
      ['ABS(-2.5)', '2.5'],
    ],
    signatures: [
      {
        takes: ['integer'],
        cost: quick,
        yields: 'integer',
        evaluate: (x) => exact(integer(x) < 0n ? -integer(x) : integer(x)),
        raises: true,
      },
      numberSignature(Math.abs),
    ],
  },
  {
    name: 'ROUND',
    group: 'numbers',
    usage: 'ROUND(x[, digits])',
    summary: 'The nearest number with so many digits behind the point, none by default; halves go away from zero.',
    examples: [
      ['ROUND(2.5)', '3'],
      ['ROUND(-1.25, 1)', '-1.3'],
      ['ROUND(1250, -2)', '1300'],
    ],
    signatures: [
      unchangedInteger,
      {
        takes: ['integer', 'integer'],
        cost: quick,
        yields: 'integer',
        evaluate: (x, digits) => roundInteger(integer(x), integer(digits), false),
        raises: true,
      },
      numberSignature(halfAway),
      {
        takes: ['number', 'integer'],
        cost: quick,
        yields: 'number',
        evaluate: (x, digits) => roundedTo(number(x), number(digits)),
        raises: true,
      },
    ],
  },
  {
    name: 'TRUNC',
    group: 'numbers',
    usage: 'TRUNC(x[, digits])',
    summary: 'The number without what is behind so many digits.',
    examples: [
      ['TRUNC(-2.7)', '-2'],
      ['TRUNC(2.789, 2)', '2.78'],
    ],
    signatures: [
      unchangedInteger,
      {
        takes: ['integer', 'integer'],
        cost: quick,
        yields: 'integer',
        evaluate: (x, digits) => roundInteger(integer(x), integer(digits), true),
      },
      numberSignature(Math.trunc),
      {
        takes: ['number', 'integer'],
        cost: quick,
        yields: 'number',
        evaluate: (x, digits) => roundedTo(number(x), number(digits), Math.trunc),
        raises: true,
      },
    ],
  },
  {
    name: 'FLOOR',
    group: 'numbers',
    usage: 'FLOOR(x)',
    summary: 'The largest whole number that is not above x.',
    examples: [['FLOOR(-2.5)', '-3']],
    signatures: [unchangedInteger, numberSignature(Math.floor)],
  },
  {
    name: 'CEIL',
    also: ['CEILING'],
    group: 'numbers',
    usage: 'CEIL(x)',
    summary: 'The smallest whole number that is not below x.',
    examples: [['CEIL(2.1)', '3']],
    signatures: [unchangedInteger, numberSignature(Math.ceil)],
  },
  {
    name: 'MOD',
    group: 'numbers',
    usage: 'MOD(x, y)',
    summary: 'What is left of x divided by y, with the sign of x; NULL where y is 0, as with %.',
    examples: [
      ['MOD(-7, 3)', '-1'],
      ['MOD(7, 0)', 'NULL'],
    ],
    signatures: [
      { takes: ['integer', 'integer'], cost: quick, yields: 'integer', evaluate: modulo },
      { takes: ['number', 'number'], cost: quick, yields: 'number', evaluate: modulo },
    ],
  },
  {
    name: 'POWER',
    also: ['POW', '^'],
    group: 'numbers',
    usage: 'POWER(x, y) or x ^ y',
    summary: 'x to the power of y, a number.',
    examples: [
      ['POWER(2, 10)', '1024'],
      ['-2 ^ 2', '4'],
    ],
    signatures: [
      {
        takes: ['number', 'number'],
        cost: quick,
        yields: 'number',
        evaluate: (x, y) => finite(raiseToPower(number(x), number(y))),
        raises: true,
      },
    ],
  },
  {
    name: 'SQRT',
    also: ['|/'],
    group: 'numbers',
    usage: 'SQRT(x) or |/ x',
    summary: 'The square root; of a negative number an error.',
    examples: [['SQRT(16)', '4']],
    signatures: [
      numberSignature((x) => {
        if (x < 0) throw invalid('there is no square root of a negative number', 'power');
        return Math.sqrt(x);
      }, true),
    ],
  },
  {
    name: 'CBRT',
    also: ['||/'],
    group: 'numbers',
    usage: 'CBRT(x) or ||/ x',
    summary: 'The cube root.',
    examples: [['CBRT(-27)', '-3']],
    signatures: [numberSignature(Math.cbrt)],
  },
  {
    name: 'LN',
    group: 'numbers',
    usage: 'LN(x)',
    summary: 'The natural logarithm; of zero and below an error.',
    examples: [['LN(1)', '0']],
    signatures: [numberSignature((x) => logarithm(x, Math.log), true)],
  },
  {
    name: 'LOG',
    also: ['LOG10'],
    group: 'numbers',
    usage: 'LOG([base, ]x)',
    summary: 'The logarithm to a base, 10 by default; of zero and below an error.',
    examples: [
      ['LOG(1000)', '3'],
      ['LOG(2, 64)', '6'],
    ],
    signatures: [
      numberSignature((x) => logarithm(x, Math.log10), true),
      {
        takes: ['number', 'number'],
        cost: quick,
        yields: 'number',
        evaluate: (base, x) => logarithmTo(number(base), number(x)),
        raises: true,
      },
    ],
  },
  {
    name: 'EXP',
    group: 'numbers',
    usage: 'EXP(x)',
    summary: 'e to the power of x.',
    examples: [['EXP(0)', '1']],
    signatures: [numberSignature(Math.exp, true)],
  },
  {
    name: 'SIGN',
    group: 'numbers',
    usage: 'SIGN(x)',
    summary: '-1, 0 or 1.',
    examples: [['SIGN(-3.5)', '-1']],
    signatures: [
      {
        takes: ['integer'],
        cost: quick,
        yields: 'integer',
        evaluate: (x) => (integer(x) < 0n ? -1n : integer(x) > 0n ? 1n : 0n),
        small: true,
      },
      numberSignature(Math.sign),
    ],
  },
  {
    name: 'DIV',
    group: 'numbers',
    usage: 'DIV(x, y)',
    summary: 'How often y goes into x, cut towards zero; NULL where y is 0, as with /.',
    examples: [['DIV(-9, 4)', '-2']],
    signatures: [
      {
        takes: ['integer', 'integer'],
        cost: quick,
        yields: 'integer',
        evaluate: (x, y) => (integer(y) === 0n ? null : exact(integer(x) / integer(y))),
        raises: true,
      },
      {
        takes: ['number', 'number'],
        cost: quick,
        yields: 'number',
        evaluate: (x, y) => (number(y) === 0 ? null : finite(Math.trunc(number(x) / number(y)))),
        raises: true,
      },
    ],
  },
  {
    name: 'GCD',
    group: 'numbers',
    usage: 'GCD(x, y)',
    summary: 'The greatest integer that divides both.',
    examples: [['GCD(1071, 462)', '21']],
    signatures: [
      {
        takes: ['integer', 'integer'],
        cost: { call: 2_000, character: 0 },
        yields: 'integer',
        evaluate: (x, y) => exact(commonDivisor(integer(x), integer(y))),
        raises: true,
      },
    ],
  },
  {
    name: 'LCM',
    group: 'numbers',
    usage: 'LCM(x, y)',
    summary: 'The least integer above 0 that both divide; 0 where one of them is 0.',
    examples: [['LCM(1071, 462)', '23562']],
    signatures: [
      {
        takes: ['integer', 'integer'],
        cost: { call: 2_000, character: 0 },
        yields: 'integer',
        evaluate: (x, y) => exact(commonMultiple(integer(x), integer(y))),
        raises: true,
      },
    ],
  },
  {
    name: 'FACTORIAL',
    group: 'numbers',
    usage: 'FACTORIAL(n)',
    summary: 'The product of the integers from 1 to n, at most 20.',
    examples: [['FACTORIAL(5)', '120']],
    signatures: [
      {
        takes: ['integer'],
        cost: { call: 1_000, character: 0 },
        yields: 'integer',
        evaluate: (n) => factorial(integer(n)),
        raises: true,
      },
    ],
  },
  {
    name: 'WIDTH_BUCKET',
    group: 'numbers',
    usage: 'WIDTH_BUCKET(x, low, high, count)',
    summary: 'Which of so many equal parts of low to high holds x, from 1; 0 below them, count + 1 above. High may be below low.',
    examples: [['WIDTH_BUCKET(5.35, 0.024, 10.06, 5)', '3']],
    signatures: [
      {
        takes: ['number', 'number', 'number', 'integer'],
        cost: quick,
        yields: 'integer',
        evaluate: (x, low, high, count) => BigInt(widthBucket(number(x), number(low), number(high), number(count))),
        raises: true,
        small: true,
      },
    ],
  },
];
