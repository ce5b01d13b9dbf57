/** Nanosecond instants as bigint, ISO-8601 text, half-open intervals. Source: specification, "SQL dialect" rule 2. */
import { ServiceError } from '../errors.ts';

/** i64 max: still true, or still believed. There is no null. */
export const FOREVER = 9_223_372_036_854_775_807n;
export const INSTANT_MIN = -9_223_372_036_854_775_808n;

const iso = /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:?\d{2})?)?$/;

/**
 * Nanoseconds of a UTC ISO-8601 text: `2024-05-01`, `2024-05-01T10:00:00`, `2024-05-01T10:00:00.123Z` (1 to 9
 * fraction digits). Throws REL_INVALID on anything else, on an offset other than Z, and on a date that does not exist.
 */
export function parseInstant(text: string): bigint {
  const match = iso.exec(text);
  if (!match) {
    const given = JSON.stringify(text.slice(0, 64));
    throw new ServiceError('REL_INVALID', `not a UTC ISO-8601 timestamp: ${given}; write one like 2024-05-01T10:00:00Z`);
  }
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', zone = 'Z'] = match;
  if (zone !== 'Z') throw new ServiceError('REL_INVALID', `timestamps are UTC; the offset ${zone} is not accepted`);
  const ms = Date.UTC(+year!, +month! - 1, +day!, +hour, +minute, +second);
  const date = new Date(ms);
  // Date.UTC rolls 31 February over and maps years 0-99 to 1900-1999; either would change what was said.
  const same =
    date.getUTCFullYear() === +year! &&
    date.getUTCMonth() === +month! - 1 &&
    date.getUTCDate() === +day! &&
    date.getUTCHours() === +hour &&
    date.getUTCMinutes() === +minute &&
    date.getUTCSeconds() === +second;
  if (!same) throw new ServiceError('REL_INVALID', `no such instant: ${text}`);
  const ns = BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
  if (ns > FOREVER || ns < INSTANT_MIN) throw new ServiceError('REL_INVALID', `instant out of range: ${text}`);
  return ns;
}

/** Numbers between are seconds, milliseconds or microseconds since 1973: read as nanoseconds they would be of early 1970. */
const [coarseMin, coarseMax] = [100_000_000n, 10_000_000_000_000_000n];

/** An instant that was sent as a number. Throws REL_INVALID out of range, and for what can only be of another unit. */
export function nanosecondsOf(number: bigint): bigint {
  if (number > FOREVER || number < INSTANT_MIN)
    throw new ServiceError('REL_INVALID', `an instant is at most ${FOREVER} nanoseconds`);
  if (isCoarse(number)) throw new ServiceError('REL_INVALID', `an instant is a number of ${coarseHint}`);
  return number;
}

/** Columns of an instant that is never a measured one: numbers there are checked. */
export function isBound(column: string): boolean {
  return column === 'valid_from' || column === 'valid_to';
}

export function isCoarse(number: bigint): boolean {
  const size = number < 0n ? -number : number;
  return size >= coarseMin && size < coarseMax;
}

export const coarseHint = 'nanoseconds; did you mean milliseconds? Append the zeros, or write ISO-8601';

/** ISO-8601 text with as many fraction digits (0, 3, 6 or 9) as the instant needs; `forever` for i64 max. */
export function formatInstant(ns: bigint): string {
  if (ns === FOREVER) return 'forever';
  let seconds = ns / 1_000_000_000n;
  let rest = ns % 1_000_000_000n;
  if (rest < 0n) {
    seconds -= 1n;
    rest += 1_000_000_000n;
  }
  const head = new Date(Number(seconds) * 1000).toISOString().slice(0, -5);
  const digits = rest.toString().padStart(9, '0');
  const fraction =
    rest === 0n
      ? ''
      : digits.endsWith('000000')
        ? `.${digits.slice(0, 3)}`
        : digits.endsWith('000')
          ? `.${digits.slice(0, 6)}`
          : `.${digits}`;
  return `${head}${fraction}Z`;
}
