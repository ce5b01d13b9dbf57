/**
 * Numbers as INCRBYFLOAT adds them: with the 64 bits of mantissa that Redis has on x86, written with at most 17 digits behind the
 * point. Exact: bits and digits come out of whole numbers. Pure.
 */
import { withoutTrailing } from '../../log/values/trim-end.ts';

/** A whole number of at most 64 bits, times a power of two; null: infinite. */
export type LongDouble = { readonly mantissa: bigint; readonly exponent: number } | number;

const mantissaBits = 64;
const exponentRange = { least: -16_445, most: 16_320 } as const;
const longDoubleDigitsMax = 5_119;
const longDoubleFraction = 17;

const decimalForm = /^([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d+))?$/;
const hexadecimalForm = /^([+-]?)0[xX](?:([\da-fA-F]+)(?:\.([\da-fA-F]*))?|\.([\da-fA-F]+))(?:[pP]([+-]?\d+))?$/;

const bitLengthOf = (bitsValue: bigint): number => bitsValue.toString(2).length;

/** Rounds a quotient to a long double, to even on a tie. Magnitudes are not negative. */
function roundQuotient(numerator: bigint, denominator: bigint, isNegative: boolean): LongDouble {
  if (numerator === 0n) return { mantissa: 0n, exponent: 0 };
  let binaryExponent = Math.max(bitLengthOf(numerator) - bitLengthOf(denominator) - mantissaBits, exponentRange.least);
  const divideAtExponent = (): readonly [bigint, bigint, bigint] => {
    const [shiftedNumerator, shiftedDenominator] =
      binaryExponent >= 0
        ? [numerator, denominator << BigInt(binaryExponent)]
        : [numerator << BigInt(-binaryExponent), denominator];
    return [shiftedNumerator / shiftedDenominator, shiftedNumerator % shiftedDenominator, shiftedDenominator];
  };
  let [quotient, remainder, divisor] = divideAtExponent();
  if (bitLengthOf(quotient) > mantissaBits) {
    binaryExponent++;
    [quotient, remainder, divisor] = divideAtExponent();
  }
  if (remainder * 2n > divisor || (remainder * 2n === divisor && quotient % 2n === 1n)) quotient++;
  if (bitLengthOf(quotient) > mantissaBits) {
    quotient >>= 1n;
    binaryExponent++;
  }
  if (binaryExponent > exponentRange.most) return isNegative ? -Infinity : Infinity;
  return { mantissa: isNegative ? -quotient : quotient, exponent: binaryExponent };
}

/** Parses a number as Redis does; null: it is none. */
export function longDoubleOf(longDoubleText: string): LongDouble | null {
  if (longDoubleText.length > longDoubleDigitsMax) return null;
  const infinityMatch = /^([+-]?)inf(?:inity)?$/i.exec(longDoubleText);
  if (infinityMatch !== null) return infinityMatch[1] === '-' ? -Infinity : Infinity;
  const hexMatch = hexadecimalForm.exec(longDoubleText);
  const numberMatch = hexMatch ?? decimalForm.exec(longDoubleText);
  if (numberMatch === null) return null;
  const [, numberSign, wholeDigits = '', fractionText = '', bareFraction = '', exponentText = '0'] = numberMatch;
  const fractionLength = fractionText.length + bareFraction.length;
  const magnitude = BigInt(`${hexMatch === null ? '' : '0x'}${wholeDigits}${fractionText}${bareFraction}`);
  if (magnitude === 0n) return { mantissa: 0n, exponent: 0 };
  // Beyond these exponents the number is infinite, or 0; the bounded one gives the same result.
  const boundedPower = Math.max(-40_000, Math.min(40_000, Number(exponentText)));
  const [powerBase, powerExponent] =
    hexMatch === null ? [10n, boundedPower - fractionLength] : [2n, boundedPower - 4 * fractionLength];
  const [numerator, denominator] =
    powerExponent >= 0 ? [magnitude * powerBase ** BigInt(powerExponent), 1n] : [magnitude, powerBase ** BigInt(-powerExponent)];
  const longDouble = roundQuotient(numerator, denominator, numberSign === '-');
  // Out of range, as strtold tells it.
  return typeof longDouble === 'number' || longDouble.mantissa === 0n ? null : longDouble;
}

/** Infinite, or none, where the sum is no finite number. */
export function sumOf(a: LongDouble, b: LongDouble): LongDouble {
  if (typeof a === 'number' || typeof b === 'number') return (typeof a === 'number' ? a : 0) + (typeof b === 'number' ? b : 0);
  const [largerAddend, smallerAddend] = a.exponent >= b.exponent ? [a, b] : [b, a];
  const mantissaSum = (largerAddend.mantissa << BigInt(largerAddend.exponent - smallerAddend.exponent)) + smallerAddend.mantissa;
  const magnitude = mantissaSum < 0n ? -mantissaSum : mantissaSum;
  const { exponent } = smallerAddend;
  return exponent >= 0
    ? roundQuotient(magnitude << BigInt(exponent), 1n, mantissaSum < 0n)
    : roundQuotient(magnitude, 1n << BigInt(-exponent), mantissaSum < 0n);
}

/** The number without an exponent or trailing zeros. */
export function plainText({ mantissa, exponent }: Exclude<LongDouble, number>): string {
  const magnitude = mantissa < 0n ? -mantissa : mantissa;
  const decimalScale = 10n ** BigInt(longDoubleFraction);
  const scaledDigits =
    exponent >= 0
      ? (magnitude << BigInt(exponent)) * decimalScale
      : divideToEven(magnitude * decimalScale, 1n << BigInt(-exponent));
  const decimalDigits = scaledDigits.toString().padStart(longDoubleFraction + 1, '0');
  const decimalFraction = withoutTrailing(decimalDigits.slice(-longDoubleFraction), '0');
  const decimalText = `${decimalDigits.slice(0, -longDoubleFraction)}${decimalFraction === '' ? '' : `.${decimalFraction}`}`;
  return mantissa < 0n && decimalText !== '0' ? `-${decimalText}` : decimalText;
}

/** Rounded, half to even. */
function divideToEven(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  const doubledRemainder = (numerator % denominator) * 2n;
  return doubledRemainder > denominator || (doubledRemainder === denominator && quotient % 2n === 1n) ? quotient + 1n : quotient;
}
