/** Nanosecond instants as bigint, ISO-8601 text, half-open intervals. Source: specification, "SQL dialect" rule 2. */
import { type ErrorReason, ServiceError } from '../../errors.ts';
import { withoutTrailing } from './trim-end.ts';

/** i64 max: still true, or still believed. There is no null. */
export const FOREVER = 9_223_372_036_854_775_807n;
export const INSTANT_MIN = -9_223_372_036_854_775_808n;

const iso = /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:?\d{2})?)?$/;

/** Z, or +00:00, which says the same. */
function isUtc(zone: string): boolean {
  return zone === 'Z' || /^[+-]00:?00$/.test(zone);
}

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
  if (!isUtc(zone)) throw new ServiceError('REL_INVALID', `timestamps are UTC; the offset ${zone} is not accepted`);
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

const written =
  /^(\d{4})(?:([-/]?)(\d{2})\2(\d{2})|-(\d{1,2})-(\d{1,2}))(?:(?:[Tt]| +)(\d{2})(?::?(\d{2})(?::?(\d{2})(?:[.,](\d+))?)?)?)? ?(Z|UTC|GMT|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?)?$/i;

/**
 * Nanoseconds of a text as clients of Postgres write instants, on every wire protocol and wherever a text becomes one there: a day
 * and a time of ISO 8601, basic or extended, with an offset of any size, which is UTC where it says none. 16 digits and more are the
 * nanoseconds of a cursor. Throws REL_INVALID, whose reason tells a malformed text from an instant that there is not.
 */
export function parseZonedInstant(text: string): bigint {
  return parseText(text).instant;
}

/** The day that such a text names, whatever the offset behind it makes of its instant: where it begins in UTC. */
export function parseZonedDay(text: string): bigint {
  return parseText(text).day;
}

function parseText(text: string): { readonly instant: bigint; readonly day: bigint } {
  const trimmed = text.trim();
  const instantOnly = (instant: bigint): { readonly instant: bigint; readonly day: bigint } => {
    const rest = instant % dayNs;
    return {
      instant,
      day: instant === FOREVER || instant === INSTANT_MIN ? instant : instant - (rest < 0n ? rest + dayNs : rest),
    };
  };
  if (/^[+-]?infinity$/i.test(trimmed)) return instantOnly(trimmed.startsWith('-') ? INSTANT_MIN : FOREVER);
  if (/^epoch$/i.test(trimmed)) return instantOnly(0n);
  if (/^-?\d{16,19}$/.test(trimmed)) return instantOnly(inRange(BigInt(trimmed)));
  const match = written.exec(trimmed);
  if (!match) {
    const given = JSON.stringify(text.slice(0, 64));
    throw refusal('instant-form', `no timestamp: ${given}; write one like 2024-05-01 10:00:00+00`);
  }
  const [, year, , month = match[5]!, day = match[6]!, , , hour = '0', minute = '0', second = '0', fraction = '', zone = 'Z'] =
    match;
  const date = new Date(0);
  date.setUTCFullYear(+year!, +month - 1, +day);
  const isDay = date.getUTCFullYear() === +year! && date.getUTCMonth() === +month - 1 && date.getUTCDate() === +day;
  // 24:00:00 is the end of the day, and second 60 the beginning of the next minute.
  const ofDay = +hour * 3_600 + +minute * 60 + +second;
  const isTime =
    +minute < 60 && +second <= 60 && (ofDay < 86_400 || (+hour === 24 && ofDay === 86_400 && !/[1-9]/.test(fraction)));
  const offset = offsetOf(zone);
  if (!isDay || !(isTime || ofDay === 86_400) || offset === null) throw refusal('no-such-instant', `no such instant: ${trimmed}`);
  const seconds = BigInt(date.getTime() / 1_000 + ofDay - offset);
  const instant = inRange(seconds * 1_000_000_000n + BigInt(fraction.slice(0, 9).padEnd(9, '0')));
  return { instant, day: inRange(BigInt(date.getTime()) * 1_000_000n) };
}

const dayNs = 86_400_000_000_000n;

/** Seconds east of Greenwich; null: there is no such offset. */
function offsetOf(zone: string): number | null {
  if (!/^[+-]/.test(zone)) return 0;
  const [hours, minutes, seconds] = zone.slice(1).match(/\d{2}/g)!.map(Number);
  if (hours! > 15 || (minutes ?? 0) > 59 || (seconds ?? 0) > 59) return null;
  const total = hours! * 3_600 + (minutes ?? 0) * 60 + (seconds ?? 0);
  return zone.startsWith('-') ? -total : total;
}

function inRange(ns: bigint): bigint {
  if (ns > FOREVER || ns < INSTANT_MIN) throw refusal('no-such-instant', 'instants lie in the years 1677 to 2262');
  return ns;
}

function refusal(reason: ErrorReason, detail: string): ServiceError {
  return new ServiceError('REL_INVALID', detail, { reason });
}

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

/** As Postgres writes an instant, `2024-05-01 10:00:00.123456+00`: with the digits of a fraction that it needs, so many at most. */
export function formatZonedInstant(ns: bigint, digits: number): string {
  if (ns === FOREVER) return 'infinity';
  const fraction = ((ns % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  const head = new Date(Number((ns - fraction) / 1_000_000n)).toISOString().slice(0, 19).replace('T', ' ');
  const shown = withoutTrailing(fraction.toString().padStart(9, '0').slice(0, digits), '0');
  return `${head}${shown === '' ? '' : `.${shown}`}+00`;
}

/** The day of an instant, `2024-05-01`. */
export function formatDay(ns: bigint): string {
  return ns === FOREVER ? 'infinity' : formatZonedInstant(ns, 0).slice(0, 10);
}
