/** Nanosecond instants as bigint, ISO-8601 text, half-open intervals. Source: specification, "SQL dialect" rule 2. */
import { type ErrorReason, ServiceError } from '../../errors.ts';
import { withoutTrailing } from './trim-end.ts';

/** i64 max: still true, or still believed. There is no null. */
export const FOREVER = 9_223_372_036_854_775_807n;
export const INSTANT_MIN = -9_223_372_036_854_775_808n;

const isoInstantPattern = /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:?\d{2})?)?$/;

/** Z, or +00:00, which says the same. */
function isUtcZone(zone: string): boolean {
  return zone === 'Z' || /^[+-]00:?00$/.test(zone);
}

/**
 * Nanoseconds of a UTC ISO-8601 text: `2024-05-01`, `2024-05-01T10:00:00`, `2024-05-01T10:00:00.123Z` (1 to 9
 * fraction digits). Throws REL_INVALID on anything else, on an offset other than Z, and on a date that does not exist.
 */
export function parseInstant(instantText: string): bigint {
  const isoMatch = isoInstantPattern.exec(instantText);
  if (!isoMatch) {
    const givenText = JSON.stringify(instantText.slice(0, 64));
    throw new ServiceError('REL_INVALID', `not a UTC ISO-8601 timestamp: ${givenText}; write one like 2024-05-01T10:00:00Z`);
  }
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', zone = 'Z'] = isoMatch;
  if (!isUtcZone(zone)) throw new ServiceError('REL_INVALID', `timestamps are UTC; the offset ${zone} is not accepted`);
  const epochMs = Date.UTC(+year!, +month! - 1, +day!, +hour, +minute, +second);
  const calendarDate = new Date(epochMs);
  // Date.UTC rolls 31 February over and maps years 0-99 to 1900-1999; either would change what was said.
  const isSameDate =
    calendarDate.getUTCFullYear() === +year! &&
    calendarDate.getUTCMonth() === +month! - 1 &&
    calendarDate.getUTCDate() === +day! &&
    calendarDate.getUTCHours() === +hour &&
    calendarDate.getUTCMinutes() === +minute &&
    calendarDate.getUTCSeconds() === +second;
  if (!isSameDate) throw new ServiceError('REL_INVALID', `no such instant: ${instantText}`);
  const instantNs = BigInt(epochMs) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
  if (instantNs > FOREVER || instantNs < INSTANT_MIN)
    throw new ServiceError('REL_INVALID', `instant out of range: ${instantText}`);
  return instantNs;
}

/** Numbers between are seconds, milliseconds or microseconds since 1973: read as nanoseconds they would be of early 1970. */
const [coarseInstantMin, coarseInstantMax] = [100_000_000n, 10_000_000_000_000_000n];

/** An instant that was sent as a number. Throws REL_INVALID out of range, and for what can only be of another unit. */
export function nanosecondsOf(instantNumber: bigint): bigint {
  if (instantNumber > FOREVER || instantNumber < INSTANT_MIN)
    throw new ServiceError('REL_INVALID', `an instant is at most ${FOREVER} nanoseconds`);
  if (isCoarse(instantNumber)) throw new ServiceError('REL_INVALID', `an instant is a number of ${coarseHint}`);
  return instantNumber;
}

/** Columns of an instant that is never a measured one: numbers there are checked. */
export function isBound(columnName: string): boolean {
  return columnName === 'valid_from' || columnName === 'valid_to';
}

export function isCoarse(instantNumber: bigint): boolean {
  const absoluteNumber = instantNumber < 0n ? -instantNumber : instantNumber;
  return absoluteNumber >= coarseInstantMin && absoluteNumber < coarseInstantMax;
}

export const coarseHint = 'nanoseconds; did you mean milliseconds? Append the zeros, or write ISO-8601';

const zonedInstantPattern =
  /^(\d{4})(?:([-/]?)(\d{2})\2(\d{2})|-(\d{1,2})-(\d{1,2}))(?:(?:[Tt]| +)(\d{2})(?::?(\d{2})(?::?(\d{2})(?:[.,](\d+))?)?)?)? ?(Z|UTC|GMT|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?)?$/i;

/**
 * Nanoseconds of a text as clients of Postgres write instants, on every wire protocol and wherever a text becomes one there: a day
 * and a time of ISO 8601, basic or extended, with an offset of any size, which is UTC where it says none. 16 digits and more are the
 * nanoseconds of a cursor. Throws REL_INVALID, whose reason tells a malformed text from an instant that there is not.
 */
export function parseZonedInstant(zonedText: string): bigint {
  return parseZonedText(zonedText).instant;
}

/** The day that such a text names, whatever the offset behind it makes of its instant: where it begins in UTC. */
export function parseZonedDay(zonedText: string): bigint {
  return parseZonedText(zonedText).day;
}

function parseZonedText(zonedText: string): { readonly instant: bigint; readonly day: bigint } {
  const instantText = zonedText.trim();
  const instantOnly = (instant: bigint): { readonly instant: bigint; readonly day: bigint } => {
    const nsOfDay = instant % dayNs;
    return {
      instant,
      day: instant === FOREVER || instant === INSTANT_MIN ? instant : instant - (nsOfDay < 0n ? nsOfDay + dayNs : nsOfDay),
    };
  };
  if (/^[+-]?infinity$/i.test(instantText)) return instantOnly(instantText.startsWith('-') ? INSTANT_MIN : FOREVER);
  if (/^epoch$/i.test(instantText)) return instantOnly(0n);
  if (/^-?\d{16,19}$/.test(instantText)) return instantOnly(checkInstantRange(BigInt(instantText)));
  const zonedMatch = zonedInstantPattern.exec(instantText);
  if (!zonedMatch) {
    const givenText = JSON.stringify(zonedText.slice(0, 64));
    throw instantRefusal('instant-form', `no timestamp: ${givenText}; write one like 2024-05-01 10:00:00+00`);
  }
  const [
    ,
    year,
    ,
    month = zonedMatch[5]!,
    day = zonedMatch[6]!,
    ,
    ,
    hour = '0',
    minute = '0',
    second = '0',
    fraction = '',
    zone = 'Z',
  ] = zonedMatch;
  const calendarDate = new Date(0);
  calendarDate.setUTCFullYear(+year!, +month - 1, +day);
  const isDay =
    calendarDate.getUTCFullYear() === +year! && calendarDate.getUTCMonth() === +month - 1 && calendarDate.getUTCDate() === +day;
  // 24:00:00 is the end of the day, and second 60 the beginning of the next minute.
  const secondsOfDay = +hour * 3_600 + +minute * 60 + +second;
  const isTime =
    +minute < 60 &&
    +second <= 60 &&
    (secondsOfDay < 86_400 || (+hour === 24 && secondsOfDay === 86_400 && !/[1-9]/.test(fraction)));
  const zoneOffset = zoneOffsetSecs(zone);
  if (!isDay || !(isTime || secondsOfDay === 86_400) || zoneOffset === null)
    throw instantRefusal('no-such-instant', `no such instant: ${instantText}`);
  const epochSeconds = BigInt(calendarDate.getTime() / 1_000 + secondsOfDay - zoneOffset);
  const instant = checkInstantRange(epochSeconds * 1_000_000_000n + BigInt(fraction.slice(0, 9).padEnd(9, '0')));
  return { instant, day: checkInstantRange(BigInt(calendarDate.getTime()) * 1_000_000n) };
}

const dayNs = 86_400_000_000_000n;

/** Seconds east of Greenwich; null: there is no such offset. */
function zoneOffsetSecs(zone: string): number | null {
  if (!/^[+-]/.test(zone)) return 0;
  const [hours, minutes, seconds] = zone.slice(1).match(/\d{2}/g)!.map(Number);
  if (hours! > 15 || (minutes ?? 0) > 59 || (seconds ?? 0) > 59) return null;
  const offsetSeconds = hours! * 3_600 + (minutes ?? 0) * 60 + (seconds ?? 0);
  return zone.startsWith('-') ? -offsetSeconds : offsetSeconds;
}

function checkInstantRange(instantNs: bigint): bigint {
  if (instantNs > FOREVER || instantNs < INSTANT_MIN)
    throw instantRefusal('no-such-instant', 'instants lie in the years 1677 to 2262');
  return instantNs;
}

function instantRefusal(instantReason: ErrorReason, refusalText: string): ServiceError {
  return new ServiceError('REL_INVALID', refusalText, { reason: instantReason });
}

/** ISO-8601 text with as many fraction digits (0, 3, 6 or 9) as the instant needs; `forever` for i64 max. */
export function formatInstant(instantNs: bigint): string {
  if (instantNs === FOREVER) return 'forever';
  let epochSeconds = instantNs / 1_000_000_000n;
  let fractionNs = instantNs % 1_000_000_000n;
  if (fractionNs < 0n) {
    epochSeconds -= 1n;
    fractionNs += 1_000_000_000n;
  }
  const secondsText = new Date(Number(epochSeconds) * 1000).toISOString().slice(0, -5);
  const fractionDigits = fractionNs.toString().padStart(9, '0');
  const fraction =
    fractionNs === 0n
      ? ''
      : fractionDigits.endsWith('000000')
        ? `.${fractionDigits.slice(0, 3)}`
        : fractionDigits.endsWith('000')
          ? `.${fractionDigits.slice(0, 6)}`
          : `.${fractionDigits}`;
  return `${secondsText}${fraction}Z`;
}

/** As Postgres writes an instant, `2024-05-01 10:00:00.123456+00`: with the digits of a fraction that it needs, so many at most. */
export function formatZonedInstant(instantNs: bigint, digits: number): string {
  if (instantNs === FOREVER) return 'infinity';
  const fractionNs = ((instantNs % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  const secondsText = new Date(Number((instantNs - fractionNs) / 1_000_000n)).toISOString().slice(0, 19).replace('T', ' ');
  const fractionText = withoutTrailing(fractionNs.toString().padStart(9, '0').slice(0, digits), '0');
  return `${secondsText}${fractionText === '' ? '' : `.${fractionText}`}+00`;
}

/** The day of an instant, `2024-05-01`. */
export function formatDay(instantNs: bigint): string {
  return instantNs === FOREVER ? 'infinity' : formatZonedInstant(instantNs, 0).slice(0, 10);
}
