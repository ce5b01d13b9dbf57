/**
 * Numbers as INCRBYFLOAT adds them: with the 64 bits of mantissa that Redis has on x86, written with at most 17 digits behind the
 * point. Exact: bits and digits come out of whole numbers. Pure.
 */
import { withoutTrailing } from '../../log/values/trim-end.ts';

/** A whole number of at most 64 bits, times a power of two; null: infinite. */
export type LongDouble = { readonly mantissa: bigint; readonly exponent: number } | number;

const bits = 64;
const exponents = { least: -16_445, most: 16_320 } as const;
const digitsMax = 5_119;
const fractionDigits = 17;

const form = /^([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d+))?$/;
const hexForm = /^([+-]?)0[xX](?:([\da-fA-F]+)(?:\.([\da-fA-F]*))?|\.([\da-fA-F]+))(?:[pP]([+-]?\d+))?$/;

const lengthOf = (value: bigint): number => value.toString(2).length;

/** Rounds a quotient to a long double, to even on a tie. Magnitudes are not negative. */
function roundQuotient(numerator: bigint, denominator: bigint, isNegative: boolean): LongDouble {
  if (numerator === 0n) return { mantissa: 0n, exponent: 0 };
  let exponent = Math.max(lengthOf(numerator) - lengthOf(denominator) - bits, exponents.least);
  const parts = (): readonly [bigint, bigint, bigint] => {
    const [n, d] = exponent >= 0 ? [numerator, denominator << BigInt(exponent)] : [numerator << BigInt(-exponent), denominator];
    return [n / d, n % d, d];
  };
  let [quotient, rest, divisor] = parts();
  if (lengthOf(quotient) > bits) {
    exponent++;
    [quotient, rest, divisor] = parts();
  }
  if (rest * 2n > divisor || (rest * 2n === divisor && quotient % 2n === 1n)) quotient++;
  if (lengthOf(quotient) > bits) {
    quotient >>= 1n;
    exponent++;
  }
  if (exponent > exponents.most) return isNegative ? -Infinity : Infinity;
  return { mantissa: isNegative ? -quotient : quotient, exponent };
}

/** Parses a number as Redis does; null: it is none. */
export function longDoubleOf(text: string): LongDouble | null {
  if (text.length > digitsMax) return null;
  const infinite = /^([+-]?)inf(?:inity)?$/i.exec(text);
  if (infinite !== null) return infinite[1] === '-' ? -Infinity : Infinity;
  const hex = hexForm.exec(text);
  const match = hex ?? form.exec(text);
  if (match === null) return null;
  const [, sign, whole = '', fraction = '', only = '', power = '0'] = match;
  const behind = fraction.length + only.length;
  const magnitude = BigInt(`${hex === null ? '' : '0x'}${whole}${fraction}${only}`);
  if (magnitude === 0n) return { mantissa: 0n, exponent: 0 };
  // Beyond these exponents the number is infinite, or 0; the bounded one gives the same result.
  const given = Math.max(-40_000, Math.min(40_000, Number(power)));
  const [base, by] = hex === null ? [10n, given - behind] : [2n, given - 4 * behind];
  const [numerator, denominator] = by >= 0 ? [magnitude * base ** BigInt(by), 1n] : [magnitude, base ** BigInt(-by)];
  const value = roundQuotient(numerator, denominator, sign === '-');
  // Out of range, as strtold tells it.
  return typeof value === 'number' || value.mantissa === 0n ? null : value;
}

/** Infinite, or none, where the sum is no finite number. */
export function sumOf(a: LongDouble, b: LongDouble): LongDouble {
  if (typeof a === 'number' || typeof b === 'number') return (typeof a === 'number' ? a : 0) + (typeof b === 'number' ? b : 0);
  const [high, low] = a.exponent >= b.exponent ? [a, b] : [b, a];
  const sum = (high.mantissa << BigInt(high.exponent - low.exponent)) + low.mantissa;
  const magnitude = sum < 0n ? -sum : sum;
  const { exponent } = low;
  return exponent >= 0
    ? roundQuotient(magnitude << BigInt(exponent), 1n, sum < 0n)
    : roundQuotient(magnitude, 1n << BigInt(-exponent), sum < 0n);
}

/** The number without an exponent or trailing zeros. */
export function plainText({ mantissa, exponent }: Exclude<LongDouble, number>): string {
  const magnitude = mantissa < 0n ? -mantissa : mantissa;
  const scale = 10n ** BigInt(fractionDigits);
  const scaled =
    exponent >= 0 ? (magnitude << BigInt(exponent)) * scale : divideToEven(magnitude * scale, 1n << BigInt(-exponent));
  const digits = scaled.toString().padStart(fractionDigits + 1, '0');
  const fraction = withoutTrailing(digits.slice(-fractionDigits), '0');
  const text = `${digits.slice(0, -fractionDigits)}${fraction === '' ? '' : `.${fraction}`}`;
  return mantissa < 0n && text !== '0' ? `-${text}` : text;
}

/** Rounded, half to even. */
function divideToEven(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  const twice = (numerator % denominator) * 2n;
  return twice > denominator || (twice === denominator && quotient % 2n === 1n) ? quotient + 1n : quotient;
}
