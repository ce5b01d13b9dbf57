/** Instants in rows on their way in: the common ISO-8601 forms read from bytes, everything else through `parseInstant`. */
import { parseInstant } from '../../log/values/timestamp.ts';
import { latin1 } from './json-tokens.ts';

/** Nanoseconds of the UTC ISO-8601 text bytes[start..end). Throws REL_INVALID where `parseInstant` does. */
export function instantAt(bytes: Uint8Array, start: number, end: number): bigint {
  const instantTextSize = end - start;
  const isDateOnly = instantTextSize === 10;
  const hasTime = instantTextSize >= 20 && instantTextSize <= 30 && bytes[end - 1] === 0x5a && bytes[start + 10] === 0x54;
  if ((isDateOnly || hasTime) && bytes[start + 4] === 0x2d && bytes[start + 7] === 0x2d) {
    const year = instantDigitsAt(bytes, start, 4);
    const month = instantDigitsAt(bytes, start + 5, 2);
    const day = instantDigitsAt(bytes, start + 8, 2);
    let seconds = 0;
    let nanoseconds = 0;
    if (hasTime) {
      if (bytes[start + 13] !== 0x3a || bytes[start + 16] !== 0x3a) return parseInstantSlowly(bytes, start, end);
      const hour = instantDigitsAt(bytes, start + 11, 2);
      const minute = instantDigitsAt(bytes, start + 14, 2);
      const second = instantDigitsAt(bytes, start + 17, 2);
      if (!(hour < 24 && minute < 60 && second < 60)) return parseInstantSlowly(bytes, start, end);
      seconds = hour * 3600 + minute * 60 + second;
      if (instantTextSize > 20) {
        const fractionDigits = instantTextSize - 21;
        const fraction = instantDigitsAt(bytes, start + 20, fractionDigits);
        if (bytes[start + 19] !== 0x2e || fractionDigits === 0 || Number.isNaN(fraction))
          return parseInstantSlowly(bytes, start, end);
        nanoseconds = fraction * 10 ** (9 - fractionDigits);
      }
    }
    // Years and days that every calendar has; leap days and odd years take the careful way.
    if (year >= 1700 && year <= 2200 && month >= 1 && month <= 12 && day >= 1 && day <= 28) {
      return BigInt(instantDaysFromEpoch(year, month, day) * 86_400 + seconds) * 1_000_000_000n + BigInt(nanoseconds);
    }
  }
  return parseInstantSlowly(bytes, start, end);
}

function parseInstantSlowly(bytes: Uint8Array, start: number, end: number): bigint {
  return parseInstant(latin1(bytes, start, Math.min(end, start + 128)));
}

/** NaN when one of them is not a digit. */
function instantDigitsAt(bytes: Uint8Array, digitsStart: number, digitCount: number): number {
  let digitsValue = 0;
  for (let i = digitsStart; i < digitsStart + digitCount; i++) {
    const instantDigit = bytes[i]! - 0x30;
    if (instantDigit < 0 || instantDigit > 9) return Number.NaN;
    digitsValue = digitsValue * 10 + instantDigit;
  }
  return digitsValue;
}

/** Days since 1970-01-01 in the proleptic Gregorian calendar: years counted from March, in eras of 400. */
function instantDaysFromEpoch(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year;
  const eraOfYear = Math.floor(marchYear / 400);
  const yearOfEra = marchYear - eraOfYear * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return eraOfYear * 146_097 + dayOfEra - 719_468;
}
