/** Functions of instants. All of time is UTC; a day begins at midnight, a week on Monday. */
import { FOREVER, INSTANT_MIN } from '../../../log/values/timestamp.ts';
import { exact } from './numbers.ts';
import { integer, invalid, quick, type ScalarFunction, text } from './scalar-function.ts';
import { startOfDay } from './casts.ts';

const nsPerMs = 1_000_000n;
export const dayNs = 86_400_000_000_000n;
const day = dayNs;

/** The calendar's view of an instant, without its fraction of a second. */
function dateOf(instant: bigint): Date {
  const seconds = instant / 1_000_000_000n;
  return new Date(Number(instant % 1_000_000_000n < 0n ? seconds - 1n : seconds) * 1000);
}

/** A field of an instant that is given in two halves of 32 bits, exact in a double. */
type Field = (high: number, low: number) => number;

const dayNsNumber = 86_400_000_000_000;
/** The nanoseconds within the day that the last `dayOf` found. */
let nsOfDay = 0;

/** Days since 1970. A day is 2 ** 16 times a number of 31 bits, so that no product or difference here is rounded. */
function dayOf(high: number, low: number): number {
  const above = high * 4_294_967_296;
  const below = low >>> 0;
  let days = Math.floor((above + below) / dayNsNumber);
  let left = above - days * dayNsNumber + below;
  if (left < 0) {
    days--;
    left += dayNsNumber;
  } else if (left >= dayNsNumber) {
    days++;
    left -= dayNsNumber;
  }
  nsOfDay = left;
  return days;
}

/** Further results of the last `monthOf` and `yearOf`. */
let dateOfMonth = 0;
let yearOfMonth = 0;

/** 1 to 12. Years begin in March here, so that a leap day is the last of its year. */
function monthOf(days: number): number {
  const sinceMarch = days + 719_468;
  const era = Math.floor(sinceMarch / 146_097);
  const ofEra = sinceMarch - era * 146_097;
  const year = Math.floor((ofEra - Math.floor(ofEra / 1_460) + Math.floor(ofEra / 36_524) - Math.floor(ofEra / 146_096)) / 365);
  const ofYear = ofEra - (365 * year + Math.floor(year / 4) - Math.floor(year / 100));
  const month = Math.floor((5 * ofYear + 2) / 153);
  dateOfMonth = ofYear - Math.floor((153 * month + 2) / 5) + 1;
  yearOfMonth = year + era * 400 + (month < 10 ? 0 : 1);
  return month < 10 ? month + 3 : month - 9;
}

/** Years of the days from 1970 on that were asked for: most instants are of few days. */
const yearsKnown = new Int16Array(65_536);

function yearOf(days: number): number {
  const known = days >= 0 && days < yearsKnown.length ? yearsKnown[days]! : 0;
  if (known !== 0) return known;
  monthOf(days);
  if (days >= 0 && days < yearsKnown.length) yearsKnown[days] = yearOfMonth;
  return yearOfMonth;
}

/** Days since 1970 of the first day of a year. */
function firstOf(year: number): number {
  const before = year - 1;
  return 365 * (year - 1_970) + Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400) - 477;
}

/** 1 on a Monday to 7. */
function weekdayOf(days: number): number {
  return ((((days + 3) % 7) + 7) % 7) + 1;
}

/** An ISO week is of the year of its Thursday. */
function thursdayOf(days: number): number {
  return days + 4 - weekdayOf(days);
}

function weekOf(days: number): number {
  const thursday = thursdayOf(days);
  return Math.floor((thursday - firstOf(yearOf(thursday))) / 7) + 1;
}

const fields: Readonly<Record<string, Field>> = {
  year: (high, low) => yearOf(dayOf(high, low)),
  quarter: (high, low) => Math.floor((monthOf(dayOf(high, low)) - 1) / 3) + 1,
  month: (high, low) => monthOf(dayOf(high, low)),
  week: (high, low) => weekOf(dayOf(high, low)),
  isoyear: (high, low) => yearOf(thursdayOf(dayOf(high, low))),
  day: (high, low) => {
    monthOf(dayOf(high, low));
    return dateOfMonth;
  },
  dow: (high, low) => weekdayOf(dayOf(high, low)) % 7,
  isodow: (high, low) => weekdayOf(dayOf(high, low)),
  doy: (high, low) => {
    const days = dayOf(high, low);
    return days - firstOf(yearOf(days)) + 1;
  },
  hour: (high, low) => {
    dayOf(high, low);
    return Math.floor(nsOfDay / 3_600_000_000_000);
  },
  minute: (high, low) => {
    dayOf(high, low);
    return Math.floor(nsOfDay / 60_000_000_000) % 60;
  },
  decade: (high, low) => Math.floor(yearOf(dayOf(high, low)) / 10),
  century: (high, low) => yearsOf(yearOf(dayOf(high, low)), 100),
  millennium: (high, low) => yearsOf(yearOf(dayOf(high, low)), 1_000),
  microseconds: (high, low) => {
    dayOf(high, low);
    return Math.floor((nsOfDay % 60e9) / 1e3);
  },
  timezone: () => 0,
  timezone_hour: () => 0,
  timezone_minute: () => 0,
};

/** The ordinal of the period of `years` years that a year is in: the first begins with the year 1; there is no period 0. */
function yearsOf(year: number, size: number): number {
  return year > 0 ? Math.floor((year + size - 1) / size) : -Math.floor((size - year) / size);
}

const fractions: Readonly<Record<string, Field>> = {
  second: (high, low) => {
    dayOf(high, low);
    return (Math.floor(nsOfDay / 1e9) % 60) + (nsOfDay % 1e9) / 1e9;
  },
  milliseconds: (high, low) => {
    dayOf(high, low);
    return (nsOfDay % 60e9) / 1e6;
  },
  julian: (high, low) => dayOf(high, low) + 2_440_588 + nsOfDay / dayNsNumber,
  epoch: (high, low) => {
    const seconds = dayOf(high, low) * 86_400 + Math.floor(nsOfDay / 1e9);
    const ns = nsOfDay % 1e9;
    // Before 1970 the fraction counts from the second after: a sum with another sign would be rounded twice.
    return seconds < 0 && ns > 0 ? seconds + 1 - (1e9 - ns) / 1e9 : seconds + ns / 1e9;
  },
};

export const extractFields: readonly string[] = [...Object.keys(fields), ...Object.keys(fractions)];

/** The function that EXTRACT(field FROM x) calls, by field in lower case. */
export const extractions: ReadonlyMap<string, ScalarFunction> = new Map([
  ...Object.entries(fields).map(([field, of]): [string, ScalarFunction] => [
    field,
    extraction(field, { yields: 'integer', evaluate: (x) => BigInt(ofHalves(of, integer(x))), small: true, ofHalves: of }),
  ]),
  ...Object.entries(fractions).map(([field, of]): [string, ScalarFunction] => [
    field,
    extraction(field, { yields: 'number', evaluate: (x) => ofHalves(of, integer(x)), ofHalves: of }),
  ]),
]);

/** A field of an instant as a number, by its name. */
export function fieldOf(name: string, instant: bigint): number {
  const unit = unitNamed(name);
  const field = Object.hasOwn(fields, unit) ? fields[unit] : Object.hasOwn(fractions, unit) ? fractions[unit] : undefined;
  if (field === undefined) throw invalid(`an instant has the fields ${extractFields.join(', ')}`);
  return ofHalves(field, instant);
}

const otherNames: Readonly<Record<string, string>> = Object.fromEntries(
  [
    'microseconds microsecond us usec usecs usecond useconds',
    'milliseconds millisecond ms msec msecs msecond mseconds',
    'second seconds s sec secs',
    'minute minutes m min mins',
    'hour hours h hr hrs',
    'day days d',
    'week weeks w',
    'month months mon mons',
    'quarter quarters qtr',
    'year years y yr yrs',
    'decade decades dec decs',
    'century centuries c cent',
    'millennium millennia mil mils',
    'julian j',
  ].flatMap((names) => {
    const [first, ...others] = names.split(' ');
    return others.map((name) => [name, first!]);
  }),
);

/** The name of a unit or a field by which it is known here. */
export function unitNamed(unitText: string): string {
  const name = unitText.trim().toLowerCase();
  return Object.hasOwn(otherNames, name) ? otherNames[name]! : name;
}

function ofHalves(of: Field, instant: bigint): number {
  return of(Number(instant >> 32n), Number(BigInt.asIntN(32, instant)));
}

function extraction(field: string, more: Omit<ScalarFunction['signatures'][number], 'takes' | 'cost'>): ScalarFunction {
  const name = `EXTRACT ${field.toUpperCase()}`;
  return {
    name,
    group: 'time',
    usage: '',
    summary: '',
    examples: [],
    signatures: [{ takes: ['timestamp'], cost: quick, ...more }],
  };
}

export function instantAt(year: number, month: number, date: number): bigint {
  const at = new Date(0);
  at.setUTCFullYear(year, month, date);
  return inRange(BigInt(at.getTime()) * nsPerMs);
}

export function inRange(instant: bigint): bigint {
  if (instant > FOREVER || instant < INSTANT_MIN) throw invalid('instant out of range', 'no-such-instant');
  return instant;
}

const units: Readonly<Record<string, bigint>> = {
  microseconds: 1_000n,
  milliseconds: 1_000_000n,
  second: 1_000_000_000n,
  minute: 60_000_000_000n,
  hour: 3_600_000_000_000n,
  day,
};
/** The first period of years begins with the year 1; decades begin with a year that ends in 0. */
const longUnits: Readonly<Record<string, readonly [size: number, first: number]>> = {
  decade: [10, 0],
  century: [100, 1],
  millennium: [1_000, 1],
};

/** Where the unit begins that an instant is in. */
export function truncateTo(unitText: string, instant: bigint): bigint {
  const unit = unitNamed(unitText);
  const step = Object.hasOwn(units, unit) ? units[unit] : undefined;
  if (step !== undefined) {
    const rest = instant % step;
    return exact(instant - (rest < 0n ? rest + step : rest));
  }
  const date = dateOf(instant);
  const year = date.getUTCFullYear();
  switch (unit) {
    case 'week':
      return inRange(startOfDay(instant) - BigInt((date.getUTCDay() || 7) - 1) * day);
    case 'month':
      return instantAt(year, date.getUTCMonth(), 1);
    case 'quarter':
      return instantAt(year, date.getUTCMonth() - (date.getUTCMonth() % 3), 1);
    case 'year':
      return instantAt(year, 0, 1);
    default: {
      const long = Object.hasOwn(longUnits, unit) ? longUnits[unit] : undefined;
      if (long === undefined)
        throw invalid(
          `DATE_TRUNC takes ${[...Object.keys(units), ...Object.keys(longUnits)].join(', ')}, week, month, quarter or year`,
        );
      const [size, first] = long;
      return instantAt(Math.floor((year - first) / size) * size + first, 0, 1);
    }
  }
}

/** Adds months, keeping the day, or the last day of a shorter month. */
export function monthsLater(instant: bigint, months: bigint): bigint {
  if (months > 12_000n || months < -12_000n) throw invalid('instant out of range', 'no-such-instant');
  const date = dateOf(instant);
  const ofDay = instant - startOfDay(instant);
  const month = date.getUTCMonth() + Number(months);
  const lastDay = new Date(0);
  lastDay.setUTCFullYear(date.getUTCFullYear(), month + 1, 0);
  return inRange(instantAt(date.getUTCFullYear(), month, Math.min(date.getUTCDate(), lastDay.getUTCDate())) + ofDay);
}

function amount(given: string): bigint {
  if (!/^\s*[+-]?\d{1,9}\s*$/.test(given)) throw invalid("INTERVAL 'n' UNIT takes a whole number in quotes");
  return BigInt(given.trim().replace(/^\+/, ''));
}

const fixedUnits: Readonly<Record<string, bigint>> = {
  second: 1_000_000_000n,
  minute: 60_000_000_000n,
  hour: 3_600_000_000_000n,
  day,
  week: 7n * day,
};
const calendarUnits: Readonly<Record<string, bigint>> = { month: 1n, quarter: 3n, year: 12n };

/** Units that may stand behind INTERVAL 'n', in lower case. */
export const intervalUnits: ReadonlySet<string> = new Set([...Object.keys(fixedUnits), ...Object.keys(calendarUnits)]);

export function isCalendarUnit(unit: string): boolean {
  return Object.hasOwn(calendarUnits, unit);
}

/** INTERVAL 'n' SECOND … WEEK: nanoseconds. */
export const fixedIntervals: ReadonlyMap<string, ScalarFunction> = new Map(
  Object.entries(fixedUnits).map(([unit, ns]) => [
    unit,
    {
      name: `INTERVAL ${unit.toUpperCase()}`,
      group: 'time',
      usage: '',
      summary: '',
      examples: [],
      signatures: [
        { takes: ['string'], cost: quick, yields: 'interval', evaluate: (n) => exact(amount(text(n)) * ns), raises: true },
      ],
    },
  ]),
);

/** Steps by the calendar, such as x + INTERVAL 'n' MONTH; `-` subtracts. */
export const calendarSteps: ReadonlyMap<string, ScalarFunction> = new Map(
  Object.entries(calendarUnits).flatMap(([unit, months]) =>
    (['+', '-'] as const).map((sign): [string, ScalarFunction] => [
      `${sign}${unit}`,
      {
        name: `${sign} INTERVAL ${unit.toUpperCase()}`,
        group: 'time',
        usage: '',
        summary: '',
        examples: [],
        signatures: [
          {
            takes: ['timestamp', 'string'],
            cost: quick,
            yields: 'timestamp',
            evaluate: (x, n) => monthsLater(integer(x), amount(text(n)) * months * (sign === '+' ? 1n : -1n)),
            raises: true,
          },
        ],
      },
    ]),
  ),
);

export const instantFunctions: readonly ScalarFunction[] = [
  {
    name: 'DATE_TRUNC',
    group: 'time',
    usage: "DATE_TRUNC('unit', x)",
    summary:
      'Where the microsecond, millisecond, second, minute, hour, day, week, month, quarter, year, decade, century or millennium of an instant begins.',
    examples: [["DATE_TRUNC('month', TIMESTAMP '2024-05-17T10:00:00')", '2024-05-01T00:00:00Z']],
    signatures: [
      {
        takes: ['string', 'timestamp'],
        cost: quick,
        yields: 'timestamp',
        evaluate: (unit, x) => truncateTo(text(unit), integer(x)),
        raises: true,
      },
    ],
  },
];
