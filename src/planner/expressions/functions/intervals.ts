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
const dayNumber = Number(day);
const nsPerMicrosecond = 1_000n;

const units: Readonly<Record<string, readonly ['months' | 'days' | 'microseconds', number]>> = Object.fromEntries(
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
class Sum {
  #months = 0;
  #days = 0;
  #microseconds = 0n;

  add(count: number, of: 'months' | 'days' | 'microseconds', size: number): void {
    const whole = Math.trunc(count);
    const part = count - whole;
    if (of === 'microseconds') {
      this.#microseconds += BigInt(whole) * BigInt(size) + BigInt(Math.round(part * size));
      return;
    }
    if (of === 'days') {
      this.#days += whole * size;
      return this.#partOfDays(part * size);
    }
    this.#months += whole * size;
    // Parts of a year are whole months; parts of a month are days of 30.
    if (size > 1) this.#months += roundEven(part * size);
    else this.#partOfDays(part * 30);
  }

  /** `[-]h:m[:s]`; of two numbers with a fraction the first is minutes. */
  time(sign: string, parts: readonly string[]): void {
    const isShort = parts.length === 2 && parts[1]!.includes('.');
    const [h, m, s] = isShort ? ['0', ...parts] : parts;
    const microseconds = BigInt(h!) * hour + BigInt(m!) * minute + BigInt(Math.round(Number(s ?? 0) * 1e6));
    if (Number(m) > 59 || Number(s ?? 0) >= 61) throw beyond();
    this.#microseconds += sign === '-' ? -microseconds : microseconds;
  }

  get total(): Interval {
    return checkInterval({ months: this.#months, days: this.#days, microseconds: this.#microseconds });
  }

  #partOfDays(days: number): void {
    const whole = Math.trunc(days);
    this.#days += whole;
    this.#microseconds += BigInt(Math.round((days - whole) * dayNumber));
  }
}

/** Reads what PostgreSQL reads; a number without a unit is one of `unit`, seconds by default. */
export function parseInterval(given: string, unit = 'second'): Interval {
  const text = given.trim().toLowerCase();
  if (text.length > 200) throw malformedError();
  const sum = new Sum();
  if (/^-?p(?=[\dt+-])/.test(text)) return isoInterval(text, sum);
  const part =
    /\s*(?:@\s*)?(?:([+-]?)(\d{1,9}(?::\d{1,2}(?:\.\d*)?){1,2}(?:\.\d*)?)|([+-]?)(\d{1,6})-(\d{1,2})(?![\d.])|([+-]?(?:\d{1,15}(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,2})?)\s*([a-z]+)?)(?=\s|$|[+-@])/y;
  let count = 0;
  let ago = false;
  for (; part.lastIndex < text.length; count++) {
    const at = part.lastIndex;
    if (count > 0 && /^\s*ago\s*$/.test(text.slice(at))) {
      ago = true;
      break;
    }
    const match = part.exec(text);
    if (match === null) throw malformedError();
    const [, timeSign, time, yearSign, years, months, number, name] = match;
    if (time !== undefined) sum.time(timeSign!, time.split(':'));
    else if (years !== undefined) {
      const sign = yearSign === '-' ? -1 : 1;
      if (Number(months) > 11) throw beyond();
      sum.add(sign * (Number(years) * 12 + Number(months)), 'months', 1);
    } else {
      const isDays = name === undefined && /^\s*[+-]?\d+:/.test(text.slice(part.lastIndex));
      const isAgo = name === 'ago';
      const word = isDays ? 'day' : name === undefined || isAgo ? unit : name;
      if (!Object.hasOwn(units, word)) throw malformedError();
      sum.add(Number(number), ...units[word]!);
      if (isAgo) {
        ago = true;
        break;
      }
    }
  }
  if (count === 0 && !ago) throw malformedError();
  return ago ? negateInterval(sum.total) : sum.total;
}

const cutting = new Set(['year', 'month', 'day', 'hour', 'minute']);

/** INTERVAL 'n' UNIT, of which nothing smaller than the unit stays; without a unit, an empty text, all of it does. */
export function intervalOf(given: string, unit: string): Interval {
  const whole = parseInterval(given, unit === '' ? 'second' : unit);
  return cutting.has(unit) ? truncateInterval(unit, whole) : whole;
}

/** `P1Y2M3W4DT5H6M7.8S`. */
function isoInterval(text: string, sum: Sum): Interval {
  const match = /^(-?)p((?:[+-]?\d+(?:\.\d*)?[ymwd])*)(?:t((?:[+-]?\d+(?:\.\d*)?[hms])+))?$/.exec(text);
  if (match === null) throw malformedError();
  const [, minus, days = '', times = ''] = match;
  for (const [, number, letter] of days.matchAll(/([+-]?(?<![\d.])[\d.]+)([a-z])/g))
    sum.add(Number(number), ...units[letter === 'm' ? 'mon' : letter!]!);
  for (const [, number, letter] of times.matchAll(/([+-]?(?<![\d.])[\d.]+)([a-z])/g)) sum.add(Number(number), ...units[letter!]!);
  return minus === '-' ? negateInterval(sum.total) : sum.total;
}

export function formatInterval({ months, days, microseconds }: Interval): string {
  const parts: string[] = [];
  let before = false;
  const add = (count: number, name: string): void => {
    if (count === 0) return;
    parts.push(`${before && count > 0 ? '+' : ''}${count} ${name}${count === 1 ? '' : 's'}`);
    before = count < 0;
  };
  add(Math.trunc(months / 12), 'year');
  add(months % 12, 'mon');
  add(days, 'day');
  if (microseconds !== 0n || parts.length === 0) {
    const minus = microseconds < 0n;
    const all = minus ? -microseconds : microseconds;
    const two = (n: bigint): string => String(n).padStart(2, '0');
    const fraction = withoutTrailing(String(all % second).padStart(6, '0'), '0');
    const sign = minus ? '-' : before ? '+' : '';
    const clock = `${two(all / hour)}:${two((all / minute) % 60n)}:${two((all / second) % 60n)}`;
    parts.push(`${sign}${clock}${fraction === '' ? '' : `.${fraction}`}`);
  }
  return parts.join(' ');
}

export function checkInterval({ months, days, microseconds }: Interval): Interval {
  const fits = (n: number): boolean => n >= -2_147_483_648 && n <= 2_147_483_647;
  if (!fits(months) || !fits(days) || microseconds > I64_MAX || microseconds < I64_MIN) throw beyond();
  // Neither has a minus zero.
  return { months: months + 0, days: days + 0, microseconds };
}

export function sumOf(a: Interval, b: Interval): Interval {
  return checkInterval({ months: a.months + b.months, days: a.days + b.days, microseconds: a.microseconds + b.microseconds });
}

export function negateInterval({ months, days, microseconds }: Interval): Interval {
  return checkInterval({ months: -months, days: -days, microseconds: -microseconds });
}

/** Parts of a month go on to days of 24 hours, 30 a month, and parts of a day to its microseconds. */
export function scaleInterval({ months, days, microseconds }: Interval, scale: (n: number) => number): Interval {
  const [allMonths, allDays] = [scale(months), scale(days)];
  const wholeMonths = Math.trunc(allMonths);
  let wholeDays = Math.trunc(allDays);
  const ofMonths = toMicroseconds((allMonths - wholeMonths) * 30);
  let seconds = toMicroseconds((allDays - wholeDays + ofMonths - Math.trunc(ofMonths)) * 86_400);
  if (Math.abs(seconds) >= 86_400) {
    const more = Math.trunc(seconds / 86_400);
    wholeDays += more;
    seconds -= more * 86_400;
  }
  const all = roundEven(scale(Number(microseconds)) + seconds * 1e6);
  if (!Number.isFinite(all) || Math.abs(all) >= 2 ** 63) throw beyond();
  return checkInterval({ months: wholeMonths, days: wholeDays + Math.trunc(ofMonths), microseconds: BigInt(all) });
}

const toMicroseconds = (n: number): number => roundEven(n * 1e6) / 1e6;

/** Halves go to the even neighbour. */
function roundEven(n: number): number {
  const low = Math.floor(n);
  const rest = n - low;
  return rest < 0.5 || (rest === 0.5 && low % 2 === 0) ? low : low + 1;
}

/** How long it is, in microseconds, by months of 30 days of 24 hours: what comparisons and orders go by. */
export function lengthOf({ months, days, microseconds }: Interval): bigint {
  const length = (BigInt(months) * 30n + BigInt(days)) * day + microseconds;
  return length > I64_MAX ? I64_MAX : length < I64_MIN ? I64_MIN : length;
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
  let whole = days + Number(microseconds / day);
  let rest = microseconds % day;
  if (whole > 0 && rest < 0n) {
    rest += day;
    whole--;
  } else if (whole < 0 && rest > 0n) {
    rest -= day;
    whole++;
  }
  return checkInterval({ months, days: whole, microseconds: rest });
}

/** 30 days become a month. */
export function justifyDays({ months, days, microseconds }: Interval): Interval {
  let whole = months + Math.trunc(days / 30);
  let rest = days % 30;
  if (whole > 0 && rest < 0) {
    rest += 30;
    whole--;
  } else if (whole < 0 && rest > 0) {
    rest -= 30;
    whole++;
  }
  return checkInterval({ months: whole, days: rest, microseconds });
}

/** Both, and one sign for all. */
export function justify({ months, days, microseconds }: Interval): Interval {
  let wholeDays = days + Number(microseconds / day);
  let rest = microseconds % day;
  let whole = months + Math.trunc(wholeDays / 30);
  wholeDays %= 30;
  if (whole > 0 && (wholeDays < 0 || (wholeDays === 0 && rest < 0n))) {
    wholeDays += 30;
    whole--;
  } else if (whole < 0 && (wholeDays > 0 || (wholeDays === 0 && rest > 0n))) {
    wholeDays -= 30;
    whole++;
  }
  if (wholeDays > 0 && rest < 0n) {
    rest += day;
    wholeDays--;
  } else if (wholeDays < 0 && rest > 0n) {
    rest -= day;
    wholeDays++;
  }
  return checkInterval({ months: whole, days: wholeDays, microseconds: rest });
}

/** From one instant to another, in days and hours. */
export function between(from: bigint, to: bigint): Interval {
  return justifyHours({ months: 0, days: 0, microseconds: (to - from) / nsPerMicrosecond });
}

/** The instant that comes an interval after another: by its months first, then by its days. */
export function later(instant: bigint, { months, days, microseconds }: Interval): bigint {
  const moved = months === 0 ? instant : monthsLater(instant, BigInt(months));
  return moved + (BigInt(days) * day + microseconds) * nsPerMicrosecond;
}

export function earlier(instant: bigint, interval: Interval): bigint {
  return later(instant, negateInterval(interval));
}

interface Clock {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  /** Counted within the day. */
  readonly microseconds: bigint;
}

function clockOf(instant: bigint): Clock {
  const all = floorTo(instant, nsPerMicrosecond) / nsPerMicrosecond;
  const days = floorTo(all, day);
  const date = new Date(Number(days / 1_000n));
  return { year: date.getUTCFullYear(), month: date.getUTCMonth(), day: date.getUTCDate(), microseconds: all - days };
}

function floorTo(value: bigint, step: bigint): bigint {
  const rest = value % step;
  return value - (rest < 0n ? rest + step : rest);
}

/** From one instant to another in years, months and days of the calendar. */
export function age(to: bigint, from: bigint): Interval {
  const [a, b] = [clockOf(to), clockOf(from)];
  const isBackward = to < from;
  const sign = isBackward ? -1 : 1;
  let microseconds = (a.microseconds - b.microseconds) * BigInt(sign);
  let days = (a.day - b.day) * sign;
  let months = ((a.year - b.year) * 12 + a.month - b.month) * sign;
  if (microseconds < 0n) {
    microseconds += day;
    days--;
  }
  while (days < 0) {
    const { year, month } = isBackward ? a : b;
    days += new Date(Date.UTC(2000 + (year % 400), month + 1, 0)).getUTCDate();
    months--;
  }
  return checkInterval({ months: months * sign, days: days * sign, microseconds: microseconds * BigInt(sign) });
}

/** The start of the bin that holds an instant: bins have an interval's length and are counted from an origin. */
export function binOf(stride: Interval, instant: bigint, origin: bigint): bigint {
  if (stride.months !== 0)
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'DATE_BIN takes no interval with months or years: they differ in length');
  const step = (BigInt(stride.days) * day + stride.microseconds) * nsPerMicrosecond;
  if (step <= 0n) throw outOfRange('the stride of DATE_BIN is above zero');
  return origin + floorTo(instant - origin, step);
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

const parts: Readonly<Record<string, (fields: IntervalFields, of: Interval) => number>> = {
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
export function fieldOf(name: string, interval: Interval): number {
  const part = Object.hasOwn(parts, name) ? parts[name] : undefined;
  if (part === undefined) throw invalid(`an interval has ${Object.keys(parts).join(', ')}`);
  return part(fieldsOf(interval), interval) + 0;
}

const sizes: Readonly<Record<string, number>> = {
  millennium: 12_000,
  century: 1_200,
  decade: 120,
  year: 12,
  quarter: 3,
  month: 1,
};
const times: Readonly<Record<string, bigint>> = { hour, minute, second, milliseconds: 1_000n, microseconds: 1n };

/** The interval without what is smaller than a unit. */
export function truncateInterval(unit: string, { months, days, microseconds }: Interval): Interval {
  const size = Object.hasOwn(sizes, unit) ? sizes[unit] : undefined;
  if (size !== undefined) return checkInterval({ months: months - (months % size), days: 0, microseconds: 0n });
  if (unit === 'day') return { months, days, microseconds: 0n };
  const step = Object.hasOwn(times, unit) ? times[unit] : undefined;
  if (step === undefined)
    throw invalid(`an interval is cut to ${[...Object.keys(sizes), 'day', ...Object.keys(times)].join(', ')}`);
  return { months, days, microseconds: microseconds - (microseconds % step) };
}

function malformedError(): Error {
  return invalid("the text is no interval such as '1 day 02:30' or '3 months'", 'instant-form');
}

function beyond(): Error {
  return outOfRange('interval out of range');
}
