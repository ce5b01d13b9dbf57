/**
 * Intervals as PostgreSQL has them: months, days and microseconds apart, for a month has no fixed number of days, and a day none of
 * hours. A cell holds the text that PostgreSQL writes for it, such as `1 mon 2 days 03:04:05`.
 */
import { ServiceError } from '../../../errors.ts';
import { I64_MAX, I64_MIN } from '../../../log/values/value.ts';
import { monthsLater } from './instants.ts';
import { invalid, outOfRange, type Signature, text } from './scalar-function.ts';
import { withoutTrailing } from '../../../log/values/trim-end.ts';

export interface Interval {
  readonly months: number;
  readonly days: number;
  readonly microseconds: bigint;
}

export const second = 1_000_000n;
export const minute = 60n * second;
export const hour = 60n * minute;
export const day = 24n * hour;
const dayMicroseconds = Number(day);
const nsPerMicrosecond = 1_000n;

const intervalUnits: Readonly<Record<string, readonly ['months' | 'days' | 'microseconds', number]>> = Object.fromEntries(
  (
    [
      ['microseconds', 1, 'microsecond microseconds us usec usecs usecond useconds'],
      ['microseconds', 1_000, 'millisecond milliseconds ms msec msecs msecond mseconds'],
      ['microseconds', 1e6, 'second seconds s sec secs'],
      ['microseconds', 60e6, 'minute minutes m min mins'],
      ['microseconds', 3_600e6, 'hour hours h hr hrs'],
      ['days', 1, 'day days d'],
      ['days', 7, 'week weeks w'],
      ['months', 1, 'month months mon mons'],
      ['months', 3, 'quarter'],
      ['months', 12, 'year years y yr yrs'],
      ['months', 120, 'decade decades dec decs'],
      ['months', 1_200, 'century centuries c cent'],
      ['months', 12_000, 'millennium millennia mil mils'],
    ] as const
  ).flatMap(([of, size, names]) => names.split(' ').map((name) => [name, [of, size]] as const)),
);

/** Adds up what the parts of a text say; fractions go on to the smaller units. */
class IntervalSum {
  #monthSum = 0;
  #daySum = 0;
  #microsecondSum = 0n;

  add(count: number, intervalField: 'months' | 'days' | 'microseconds', unitSize: number): void {
    const wholeCount = Math.trunc(count);
    const fractionCount = count - wholeCount;
    if (intervalField === 'microseconds') {
      this.#microsecondSum += BigInt(wholeCount) * BigInt(unitSize) + BigInt(Math.round(fractionCount * unitSize));
      return;
    }
    if (intervalField === 'days') {
      this.#daySum += wholeCount * unitSize;
      return this.#addPartOfDays(fractionCount * unitSize);
    }
    this.#monthSum += wholeCount * unitSize;
    // Parts of a year are whole months; parts of a month are days of 30.
    if (unitSize > 1) this.#monthSum += roundHalfEven(fractionCount * unitSize);
    else this.#addPartOfDays(fractionCount * 30);
  }

  /** `[-]h:m[:s]`; of two numbers with a fraction the first is minutes. */
  time(clockSign: string, clockParts: readonly string[]): void {
    const isMinuteSecond = clockParts.length === 2 && clockParts[1]!.includes('.');
    const [clockHours, clockMinutes, clockSeconds] = isMinuteSecond ? ['0', ...clockParts] : clockParts;
    const clockMicroseconds =
      BigInt(clockHours!) * hour + BigInt(clockMinutes!) * minute + BigInt(Math.round(Number(clockSeconds ?? 0) * 1e6));
    if (Number(clockMinutes) > 59 || Number(clockSeconds ?? 0) >= 61) throw intervalOutOfRange();
    this.#microsecondSum += clockSign === '-' ? -clockMicroseconds : clockMicroseconds;
  }

  get total(): Interval {
    return checkInterval({ months: this.#monthSum, days: this.#daySum, microseconds: this.#microsecondSum });
  }

  #addPartOfDays(days: number): void {
    const wholeDays = Math.trunc(days);
    this.#daySum += wholeDays;
    this.#microsecondSum += BigInt(Math.round((days - wholeDays) * dayMicroseconds));
  }
}

/** Reads what PostgreSQL reads; a number without a unit is one of `unit`, seconds by default. */
export function parseInterval(intervalText: string, unit = 'second'): Interval {
  const normalizedInterval = intervalText.trim().toLowerCase();
  if (normalizedInterval.length > 200) throw malformedError();
  const intervalSum = new IntervalSum();
  if (/^-?p(?=[\dt+-])/.test(normalizedInterval)) return parseIsoInterval(normalizedInterval, intervalSum);
  const intervalPart =
    /\s*(?:@\s*)?(?:([+-]?)(\d{1,9}(?::\d{1,2}(?:\.\d*)?){1,2}(?:\.\d*)?)|([+-]?)(\d{1,6})-(\d{1,2})(?![\d.])|([+-]?(?:\d{1,15}(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,2})?)\s*([a-z]+)?)(?=\s|$|[+-@])/y;
  let intervalPartCount = 0;
  let isBackwards = false;
  for (; intervalPart.lastIndex < normalizedInterval.length; intervalPartCount++) {
    const partOffset = intervalPart.lastIndex;
    if (intervalPartCount > 0 && /^\s*ago\s*$/.test(normalizedInterval.slice(partOffset))) {
      isBackwards = true;
      break;
    }
    const match = intervalPart.exec(normalizedInterval);
    if (match === null) throw malformedError();
    const [, timeSign, clockText, yearSign, years, months, unitCount, unitName] = match;
    if (clockText !== undefined) intervalSum.time(timeSign!, clockText.split(':'));
    else if (years !== undefined) {
      const yearMonthSign = yearSign === '-' ? -1 : 1;
      if (Number(months) > 11) throw intervalOutOfRange();
      intervalSum.add(yearMonthSign * (Number(years) * 12 + Number(months)), 'months', 1);
    } else {
      const isDays = unitName === undefined && /^\s*[+-]?\d+:/.test(normalizedInterval.slice(intervalPart.lastIndex));
      const isAgo = unitName === 'ago';
      const unitWord = isDays ? 'day' : unitName === undefined || isAgo ? unit : unitName;
      if (!Object.hasOwn(intervalUnits, unitWord)) throw malformedError();
      intervalSum.add(Number(unitCount), ...intervalUnits[unitWord]!);
      if (isAgo) {
        isBackwards = true;
        break;
      }
    }
  }
  if (intervalPartCount === 0 && !isBackwards) throw malformedError();
  return isBackwards ? negateInterval(intervalSum.total) : intervalSum.total;
}

const truncatingUnits = new Set(['year', 'month', 'day', 'hour', 'minute']);

/** INTERVAL 'n' UNIT, of which nothing smaller than the unit stays; without a unit, an empty text, all of it does. */
export function intervalOf(intervalText: string, unit: string): Interval {
  const wholeInterval = parseInterval(intervalText, unit === '' ? 'second' : unit);
  return truncatingUnits.has(unit) ? truncateInterval(unit, wholeInterval) : wholeInterval;
}

/** `P1Y2M3W4DT5H6M7.8S`. */
function parseIsoInterval(isoText: string, isoSum: IntervalSum): Interval {
  const match = /^(-?)p((?:[+-]?\d+(?:\.\d*)?[ymwd])*)(?:t((?:[+-]?\d+(?:\.\d*)?[hms])+))?$/.exec(isoText);
  if (match === null) throw malformedError();
  const [, isoMinus, isoDays = '', isoTimes = ''] = match;
  for (const [, isoNumber, isoUnitLetter] of isoDays.matchAll(/([+-]?(?<![\d.])[\d.]+)([a-z])/g))
    isoSum.add(Number(isoNumber), ...intervalUnits[isoUnitLetter === 'm' ? 'mon' : isoUnitLetter!]!);
  for (const [, number, letter] of isoTimes.matchAll(/([+-]?(?<![\d.])[\d.]+)([a-z])/g))
    isoSum.add(Number(number), ...intervalUnits[letter!]!);
  return isoMinus === '-' ? negateInterval(isoSum.total) : isoSum.total;
}

export function formatInterval({ months, days, microseconds }: Interval): string {
  const intervalTexts: string[] = [];
  let followsNegative = false;
  const addIntervalField = (fieldCount: number, fieldName: string): void => {
    if (fieldCount === 0) return;
    intervalTexts.push(`${followsNegative && fieldCount > 0 ? '+' : ''}${fieldCount} ${fieldName}${fieldCount === 1 ? '' : 's'}`);
    followsNegative = fieldCount < 0;
  };
  addIntervalField(Math.trunc(months / 12), 'year');
  addIntervalField(months % 12, 'mon');
  addIntervalField(days, 'day');
  if (microseconds !== 0n || intervalTexts.length === 0) {
    const isNegative = microseconds < 0n;
    const absoluteMicroseconds = isNegative ? -microseconds : microseconds;
    const twoDigits = (n: bigint): string => String(n).padStart(2, '0');
    const fractionDigits = withoutTrailing(String(absoluteMicroseconds % second).padStart(6, '0'), '0');
    const clockSign = isNegative ? '-' : followsNegative ? '+' : '';
    const clockText = `${twoDigits(absoluteMicroseconds / hour)}:${twoDigits((absoluteMicroseconds / minute) % 60n)}:${twoDigits((absoluteMicroseconds / second) % 60n)}`;
    intervalTexts.push(`${clockSign}${clockText}${fractionDigits === '' ? '' : `.${fractionDigits}`}`);
  }
  return intervalTexts.join(' ');
}

export function checkInterval({ months, days, microseconds }: Interval): Interval {
  const fitsInt32 = (n: number): boolean => n >= -2_147_483_648 && n <= 2_147_483_647;
  if (!fitsInt32(months) || !fitsInt32(days) || microseconds > I64_MAX || microseconds < I64_MIN) throw intervalOutOfRange();
  // Neither has a minus zero.
  return { months: months + 0, days: days + 0, microseconds };
}

export function sumOf(leftInterval: Interval, rightInterval: Interval): Interval {
  return checkInterval({
    months: leftInterval.months + rightInterval.months,
    days: leftInterval.days + rightInterval.days,
    microseconds: leftInterval.microseconds + rightInterval.microseconds,
  });
}

export function negateInterval({ months, days, microseconds }: Interval): Interval {
  return checkInterval({ months: -months, days: -days, microseconds: -microseconds });
}

/** Parts of a month go on to days of 24 hours, 30 a month, and parts of a day to its microseconds. */
export function scaleInterval({ months, days, microseconds }: Interval, scaleField: (n: number) => number): Interval {
  const [allMonths, allDays] = [scaleField(months), scaleField(days)];
  const wholeMonths = Math.trunc(allMonths);
  let wholeDays = Math.trunc(allDays);
  const daysOfMonths = toMicroseconds((allMonths - wholeMonths) * 30);
  let secondsOfDays = toMicroseconds((allDays - wholeDays + daysOfMonths - Math.trunc(daysOfMonths)) * 86_400);
  if (Math.abs(secondsOfDays) >= 86_400) {
    const carriedDays = Math.trunc(secondsOfDays / 86_400);
    wholeDays += carriedDays;
    secondsOfDays -= carriedDays * 86_400;
  }
  const allMicroseconds = roundHalfEven(scaleField(Number(microseconds)) + secondsOfDays * 1e6);
  if (!Number.isFinite(allMicroseconds) || Math.abs(allMicroseconds) >= 2 ** 63) throw intervalOutOfRange();
  return checkInterval({
    months: wholeMonths,
    days: wholeDays + Math.trunc(daysOfMonths),
    microseconds: BigInt(allMicroseconds),
  });
}

const toMicroseconds = (n: number): number => roundHalfEven(n * 1e6) / 1e6;

/** Halves go to the even neighbour. */
function roundHalfEven(n: number): number {
  const floorValue = Math.floor(n);
  const fractionRest = n - floorValue;
  return fractionRest < 0.5 || (fractionRest === 0.5 && floorValue % 2 === 0) ? floorValue : floorValue + 1;
}

/** How long it is, in microseconds, by months of 30 days of 24 hours: what comparisons and orders go by. */
export function lengthOf({ months, days, microseconds }: Interval): bigint {
  const intervalMicroseconds = (BigInt(months) * 30n + BigInt(days)) * day + microseconds;
  return intervalMicroseconds > I64_MAX ? I64_MAX : intervalMicroseconds < I64_MIN ? I64_MIN : intervalMicroseconds;
}

/** The same of a cell. */
export const intervalLength: Signature = {
  takes: ['string'],
  cost: { call: 2_000, character: 10 },
  yields: 'integer',
  evaluate: (cell) => lengthOf(parseInterval(text(cell))),
  raises: true,
};

/** 24 hours become a day. */
export function justifyHours({ months, days, microseconds }: Interval): Interval {
  let justifiedDays = days + Number(microseconds / day);
  let restMicroseconds = microseconds % day;
  if (justifiedDays > 0 && restMicroseconds < 0n) {
    restMicroseconds += day;
    justifiedDays--;
  } else if (justifiedDays < 0 && restMicroseconds > 0n) {
    restMicroseconds -= day;
    justifiedDays++;
  }
  return checkInterval({ months, days: justifiedDays, microseconds: restMicroseconds });
}

/** 30 days become a month. */
export function justifyDays({ months, days, microseconds }: Interval): Interval {
  let justifiedMonths = months + Math.trunc(days / 30);
  let restDays = days % 30;
  if (justifiedMonths > 0 && restDays < 0) {
    restDays += 30;
    justifiedMonths--;
  } else if (justifiedMonths < 0 && restDays > 0) {
    restDays -= 30;
    justifiedMonths++;
  }
  return checkInterval({ months: justifiedMonths, days: restDays, microseconds });
}

/** Both, and one sign for all. */
export function justify({ months, days, microseconds }: Interval): Interval {
  let justifiedDays = days + Number(microseconds / day);
  let restMicroseconds = microseconds % day;
  let justifiedMonths = months + Math.trunc(justifiedDays / 30);
  justifiedDays %= 30;
  if (justifiedMonths > 0 && (justifiedDays < 0 || (justifiedDays === 0 && restMicroseconds < 0n))) {
    justifiedDays += 30;
    justifiedMonths--;
  } else if (justifiedMonths < 0 && (justifiedDays > 0 || (justifiedDays === 0 && restMicroseconds > 0n))) {
    justifiedDays -= 30;
    justifiedMonths++;
  }
  if (justifiedDays > 0 && restMicroseconds < 0n) {
    restMicroseconds += day;
    justifiedDays--;
  } else if (justifiedDays < 0 && restMicroseconds > 0n) {
    restMicroseconds -= day;
    justifiedDays++;
  }
  return checkInterval({ months: justifiedMonths, days: justifiedDays, microseconds: restMicroseconds });
}

/** From one instant to another, in days and hours. */
export function between(fromInstant: bigint, toInstant: bigint): Interval {
  return justifyHours({ months: 0, days: 0, microseconds: (toInstant - fromInstant) / nsPerMicrosecond });
}

/** The instant that comes an interval after another: by its months first, then by its days. */
export function later(instant: bigint, { months, days, microseconds }: Interval): bigint {
  const monthsMoved = months === 0 ? instant : monthsLater(instant, BigInt(months));
  return monthsMoved + (BigInt(days) * day + microseconds) * nsPerMicrosecond;
}

export function earlier(instant: bigint, interval: Interval): bigint {
  return later(instant, negateInterval(interval));
}

interface CalendarClock {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  /** Counted within the day. */
  readonly microseconds: bigint;
}

function calendarClock(instant: bigint): CalendarClock {
  const epochMicroseconds = floorToStep(instant, nsPerMicrosecond) / nsPerMicrosecond;
  const daysMicroseconds = floorToStep(epochMicroseconds, day);
  const clockDate = new Date(Number(daysMicroseconds / 1_000n));
  return {
    year: clockDate.getUTCFullYear(),
    month: clockDate.getUTCMonth(),
    day: clockDate.getUTCDate(),
    microseconds: epochMicroseconds - daysMicroseconds,
  };
}

function floorToStep(value: bigint, step: bigint): bigint {
  const stepRemainder = value % step;
  return value - (stepRemainder < 0n ? stepRemainder + step : stepRemainder);
}

/** From one instant to another in years, months and days of the calendar. */
export function age(ageEnd: bigint, ageStart: bigint): Interval {
  const [laterClock, earlierClock] = [calendarClock(ageEnd), calendarClock(ageStart)];
  const isBackward = ageEnd < ageStart;
  const ageSign = isBackward ? -1 : 1;
  let microseconds = (laterClock.microseconds - earlierClock.microseconds) * BigInt(ageSign);
  let days = (laterClock.day - earlierClock.day) * ageSign;
  let months = ((laterClock.year - earlierClock.year) * 12 + laterClock.month - earlierClock.month) * ageSign;
  if (microseconds < 0n) {
    microseconds += day;
    days--;
  }
  while (days < 0) {
    const { year, month } = isBackward ? laterClock : earlierClock;
    days += new Date(Date.UTC(2000 + (year % 400), month + 1, 0)).getUTCDate();
    months--;
  }
  return checkInterval({ months: months * ageSign, days: days * ageSign, microseconds: microseconds * BigInt(ageSign) });
}

/** The start of the bin that holds an instant: bins have an interval's length and are counted from an origin. */
export function binOf(stride: Interval, instant: bigint, origin: bigint): bigint {
  if (stride.months !== 0)
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'DATE_BIN takes no interval with months or years: they differ in length');
  const strideNs = (BigInt(stride.days) * day + stride.microseconds) * nsPerMicrosecond;
  if (strideNs <= 0n) throw outOfRange('the stride of DATE_BIN is above zero');
  return origin + floorToStep(instant - origin, strideNs);
}

export interface IntervalFields {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  /** Microseconds of the minute. */
  readonly microseconds: number;
}

export function fieldsOf({ months, days, microseconds }: Interval): IntervalFields {
  return {
    year: Math.trunc(months / 12),
    month: months % 12,
    day: days,
    hour: Number(microseconds / hour),
    minute: Number((microseconds / minute) % 60n),
    microseconds: Number(microseconds % minute),
  };
}

const intervalFieldReaders: Readonly<Record<string, (fields: IntervalFields, of: Interval) => number>> = {
  microseconds: ({ microseconds }) => microseconds,
  milliseconds: ({ microseconds }) => microseconds / 1e3,
  second: ({ microseconds }) => microseconds / 1e6,
  minute: ({ minute: of }) => of,
  hour: ({ hour: of }) => of,
  day: ({ day: of }) => of,
  month: ({ month: of }) => of,
  quarter: ({ month: of }) => Math.trunc(of / 3) + 1,
  year: ({ year }) => year,
  decade: ({ year }) => Math.trunc(year / 10),
  century: ({ year }) => Math.trunc(year / 100),
  millennium: ({ year }) => Math.trunc(year / 1_000),
  epoch: ({ year, month }, { days, microseconds }) =>
    year * 31_557_600 + month * 2_592_000 + days * 86_400 + Number(microseconds) / 1e6,
};

/** A field of an interval, by its name in the singular. */
export function fieldOf(intervalFieldName: string, interval: Interval): number {
  const readIntervalField = Object.hasOwn(intervalFieldReaders, intervalFieldName)
    ? intervalFieldReaders[intervalFieldName]
    : undefined;
  if (readIntervalField === undefined) throw invalid(`an interval has ${Object.keys(intervalFieldReaders).join(', ')}`);
  return readIntervalField(fieldsOf(interval), interval) + 0;
}

const monthsByUnit: Readonly<Record<string, number>> = {
  millennium: 12_000,
  century: 1_200,
  decade: 120,
  year: 12,
  quarter: 3,
  month: 1,
};
const microsecondsByUnit: Readonly<Record<string, bigint>> = { hour, minute, second, milliseconds: 1_000n, microseconds: 1n };

/** The interval without what is smaller than a unit. */
export function truncateInterval(truncationUnit: string, { months, days, microseconds }: Interval): Interval {
  const unitMonths = Object.hasOwn(monthsByUnit, truncationUnit) ? monthsByUnit[truncationUnit] : undefined;
  if (unitMonths !== undefined) return checkInterval({ months: months - (months % unitMonths), days: 0, microseconds: 0n });
  if (truncationUnit === 'day') return { months, days, microseconds: 0n };
  const unitMicroseconds = Object.hasOwn(microsecondsByUnit, truncationUnit) ? microsecondsByUnit[truncationUnit] : undefined;
  if (unitMicroseconds === undefined)
    throw invalid(
      `an interval is cut to ${[...Object.keys(monthsByUnit), 'day', ...Object.keys(microsecondsByUnit)].join(', ')}`,
    );
  return { months, days, microseconds: microseconds - (microseconds % unitMicroseconds) };
}

function malformedError(): Error {
  return invalid("the text is no interval such as '1 day 02:30' or '3 months'", 'instant-form');
}

function intervalOutOfRange(): Error {
  return outOfRange('interval out of range');
}
