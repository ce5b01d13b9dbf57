/** Functions of instants. All of time is UTC; a day begins at midnight, a week on Monday. */
import { FOREVER, INSTANT_MIN } from '../../../log/values/timestamp.ts';
import { exact } from './numbers.ts';
import { integer, invalid, quick, type ScalarFunction, text } from './scalar-function.ts';
import { startOfDay } from './casts.ts';

const nsPerMs = 1_000_000n;
export const dayNs = 86_400_000_000_000n;
const dayUnitNs = dayNs;

/** The calendar's view of an instant, without its fraction of a second. */
function utcDateOf(instant: bigint): Date {
  const epochSeconds = instant / 1_000_000_000n;
  return new Date(Number(instant % 1_000_000_000n < 0n ? epochSeconds - 1n : epochSeconds) * 1000);
}

/** A field of an instant that is given in two halves of 32 bits, exact in a double. */
type InstantField = (high: number, low: number) => number;

const dayNsNumber = 86_400_000_000_000;
/** The nanoseconds within the day that the last `epochDayOf` found. */
let nsOfDay = 0;

/** Days since 1970. A day is 2 ** 16 times a number of 31 bits, so that no product or difference here is rounded. */
function epochDayOf(high: number, low: number): number {
  const highNs = high * 4_294_967_296;
  const lowNs = low >>> 0;
  let epochDays = Math.floor((highNs + lowNs) / dayNsNumber);
  let nsLeftOfDay = highNs - epochDays * dayNsNumber + lowNs;
  if (nsLeftOfDay < 0) {
    epochDays--;
    nsLeftOfDay += dayNsNumber;
  } else if (nsLeftOfDay >= dayNsNumber) {
    epochDays++;
    nsLeftOfDay -= dayNsNumber;
  }
  nsOfDay = nsLeftOfDay;
  return epochDays;
}

/** Further results of the last `monthOf` and `yearOf`. */
let dateOfMonth = 0;
let yearOfMonth = 0;

/** 1 to 12. Years begin in March here, so that a leap day is the last of its year. */
function monthOf(days: number): number {
  const daysSinceMarch = days + 719_468;
  const calendarEra = Math.floor(daysSinceMarch / 146_097);
  const dayOfEra = daysSinceMarch - calendarEra * 146_097;
  const year = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfMarchYear = dayOfEra - (365 * year + Math.floor(year / 4) - Math.floor(year / 100));
  const month = Math.floor((5 * dayOfMarchYear + 2) / 153);
  dateOfMonth = dayOfMarchYear - Math.floor((153 * month + 2) / 5) + 1;
  yearOfMonth = year + calendarEra * 400 + (month < 10 ? 0 : 1);
  return month < 10 ? month + 3 : month - 9;
}

/** Years of the days from 1970 on that were asked for: most instants are of few days. */
const yearsByEpochDay = new Int16Array(65_536);

function yearOf(epochDays: number): number {
  const cachedYear = epochDays >= 0 && epochDays < yearsByEpochDay.length ? yearsByEpochDay[epochDays]! : 0;
  if (cachedYear !== 0) return cachedYear;
  monthOf(epochDays);
  if (epochDays >= 0 && epochDays < yearsByEpochDay.length) yearsByEpochDay[epochDays] = yearOfMonth;
  return yearOfMonth;
}

/** Days since 1970 of the first day of a year. */
function firstDayOfYear(year: number): number {
  const precedingYear = year - 1;
  return (
    365 * (year - 1_970) + Math.floor(precedingYear / 4) - Math.floor(precedingYear / 100) + Math.floor(precedingYear / 400) - 477
  );
}

/** 1 on a Monday to 7. */
function weekdayOf(epochDays: number): number {
  return ((((epochDays + 3) % 7) + 7) % 7) + 1;
}

/** An ISO week is of the year of its Thursday. */
function thursdayOf(days: number): number {
  return days + 4 - weekdayOf(days);
}

function weekOf(epochDays: number): number {
  const weekThursday = thursdayOf(epochDays);
  return Math.floor((weekThursday - firstDayOfYear(yearOf(weekThursday))) / 7) + 1;
}

const wholeInstantFields: Readonly<Record<string, InstantField>> = {
  year: (high, low) => yearOf(epochDayOf(high, low)),
  quarter: (high, low) => Math.floor((monthOf(epochDayOf(high, low)) - 1) / 3) + 1,
  month: (high, low) => monthOf(epochDayOf(high, low)),
  week: (high, low) => weekOf(epochDayOf(high, low)),
  isoyear: (high, low) => yearOf(thursdayOf(epochDayOf(high, low))),
  day: (high, low) => {
    monthOf(epochDayOf(high, low));
    return dateOfMonth;
  },
  dow: (high, low) => weekdayOf(epochDayOf(high, low)) % 7,
  isodow: (high, low) => weekdayOf(epochDayOf(high, low)),
  doy: (high, low) => {
    const days = epochDayOf(high, low);
    return days - firstDayOfYear(yearOf(days)) + 1;
  },
  hour: (high, low) => {
    epochDayOf(high, low);
    return Math.floor(nsOfDay / 3_600_000_000_000);
  },
  minute: (high, low) => {
    epochDayOf(high, low);
    return Math.floor(nsOfDay / 60_000_000_000) % 60;
  },
  decade: (high, low) => Math.floor(yearOf(epochDayOf(high, low)) / 10),
  century: (high, low) => yearPeriod(yearOf(epochDayOf(high, low)), 100),
  millennium: (high, low) => yearPeriod(yearOf(epochDayOf(high, low)), 1_000),
  microseconds: (high, low) => {
    epochDayOf(high, low);
    return Math.floor((nsOfDay % 60e9) / 1e3);
  },
  timezone: () => 0,
  timezone_hour: () => 0,
  timezone_minute: () => 0,
};

/** The ordinal of the period of `years` years that a year is in: the first begins with the year 1; there is no period 0. */
function yearPeriod(year: number, size: number): number {
  return year > 0 ? Math.floor((year + size - 1) / size) : -Math.floor((size - year) / size);
}

const fractionInstantFields: Readonly<Record<string, InstantField>> = {
  second: (high, low) => {
    epochDayOf(high, low);
    return (Math.floor(nsOfDay / 1e9) % 60) + (nsOfDay % 1e9) / 1e9;
  },
  milliseconds: (high, low) => {
    epochDayOf(high, low);
    return (nsOfDay % 60e9) / 1e6;
  },
  julian: (high, low) => epochDayOf(high, low) + 2_440_588 + nsOfDay / dayNsNumber,
  epoch: (high, low) => {
    const epochSeconds = epochDayOf(high, low) * 86_400 + Math.floor(nsOfDay / 1e9);
    const fractionNs = nsOfDay % 1e9;
    // Before 1970 the fraction counts from the second after: a sum with another sign would be rounded twice.
    return epochSeconds < 0 && fractionNs > 0 ? epochSeconds + 1 - (1e9 - fractionNs) / 1e9 : epochSeconds + fractionNs / 1e9;
  },
};

export const extractFields: readonly string[] = [...Object.keys(wholeInstantFields), ...Object.keys(fractionInstantFields)];

/** The function that EXTRACT(field FROM x) calls, by field in lower case. */
export const extractions: ReadonlyMap<string, ScalarFunction> = new Map([
  ...Object.entries(wholeInstantFields).map(([field, of]): [string, ScalarFunction] => [
    field,
    extractFunction(field, {
      yields: 'integer',
      evaluate: (instantCell) => BigInt(fieldOfHalves(of, integer(instantCell))),
      small: true,
      ofHalves: of,
    }),
  ]),
  ...Object.entries(fractionInstantFields).map(([field, of]): [string, ScalarFunction] => [
    field,
    extractFunction(field, {
      yields: 'number',
      evaluate: (instantCell) => fieldOfHalves(of, integer(instantCell)),
      ofHalves: of,
    }),
  ]),
]);

/** A field of an instant as a number, by its name. */
export function fieldOf(name: string, instant: bigint): number {
  const fieldUnit = unitNamed(name);
  const instantField = Object.hasOwn(wholeInstantFields, fieldUnit)
    ? wholeInstantFields[fieldUnit]
    : Object.hasOwn(fractionInstantFields, fieldUnit)
      ? fractionInstantFields[fieldUnit]
      : undefined;
  if (instantField === undefined) throw invalid(`an instant has the fields ${extractFields.join(', ')}`);
  return fieldOfHalves(instantField, instant);
}

const unitSynonyms: Readonly<Record<string, string>> = Object.fromEntries(
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
  const unitName = unitText.trim().toLowerCase();
  return Object.hasOwn(unitSynonyms, unitName) ? unitSynonyms[unitName]! : unitName;
}

function fieldOfHalves(instantField: InstantField, instant: bigint): number {
  return instantField(Number(instant >> 32n), Number(BigInt.asIntN(32, instant)));
}

function extractFunction(field: string, more: Omit<ScalarFunction['signatures'][number], 'takes' | 'cost'>): ScalarFunction {
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
  const utcDate = new Date(0);
  utcDate.setUTCFullYear(year, month, date);
  return inRange(BigInt(utcDate.getTime()) * nsPerMs);
}

export function inRange(instant: bigint): bigint {
  if (instant > FOREVER || instant < INSTANT_MIN) throw invalid('instant out of range', 'no-such-instant');
  return instant;
}

const fixedUnitsNs: Readonly<Record<string, bigint>> = {
  microseconds: 1_000n,
  milliseconds: 1_000_000n,
  second: 1_000_000_000n,
  minute: 60_000_000_000n,
  hour: 3_600_000_000_000n,
  day: dayUnitNs,
};
/** The first period of years begins with the year 1; decades begin with a year that ends in 0. */
const yearUnits: Readonly<Record<string, readonly [size: number, first: number]>> = {
  decade: [10, 0],
  century: [100, 1],
  millennium: [1_000, 1],
};

/** Where the unit begins that an instant is in. */
export function truncateTo(unitText: string, instant: bigint): bigint {
  const truncationUnit = unitNamed(unitText);
  const unitNs = Object.hasOwn(fixedUnitsNs, truncationUnit) ? fixedUnitsNs[truncationUnit] : undefined;
  if (unitNs !== undefined) {
    const nsPastUnit = instant % unitNs;
    return exact(instant - (nsPastUnit < 0n ? nsPastUnit + unitNs : nsPastUnit));
  }
  const utcDate = utcDateOf(instant);
  const utcYear = utcDate.getUTCFullYear();
  switch (truncationUnit) {
    case 'week':
      return inRange(startOfDay(instant) - BigInt((utcDate.getUTCDay() || 7) - 1) * dayUnitNs);
    case 'month':
      return instantAt(utcYear, utcDate.getUTCMonth(), 1);
    case 'quarter':
      return instantAt(utcYear, utcDate.getUTCMonth() - (utcDate.getUTCMonth() % 3), 1);
    case 'year':
      return instantAt(utcYear, 0, 1);
    default: {
      const yearUnit = Object.hasOwn(yearUnits, truncationUnit) ? yearUnits[truncationUnit] : undefined;
      if (yearUnit === undefined)
        throw invalid(
          `DATE_TRUNC takes ${[...Object.keys(fixedUnitsNs), ...Object.keys(yearUnits)].join(', ')}, week, month, quarter or year`,
        );
      const [unitYears, firstUnitYear] = yearUnit;
      return instantAt(Math.floor((utcYear - firstUnitYear) / unitYears) * unitYears + firstUnitYear, 0, 1);
    }
  }
}

/** Adds months, keeping the day, or the last day of a shorter month. */
export function monthsLater(instant: bigint, addedMonths: bigint): bigint {
  if (addedMonths > 12_000n || addedMonths < -12_000n) throw invalid('instant out of range', 'no-such-instant');
  const startDate = utcDateOf(instant);
  const nsOfTheDay = instant - startOfDay(instant);
  const targetMonth = startDate.getUTCMonth() + Number(addedMonths);
  const lastDayOfMonth = new Date(0);
  lastDayOfMonth.setUTCFullYear(startDate.getUTCFullYear(), targetMonth + 1, 0);
  return inRange(
    instantAt(startDate.getUTCFullYear(), targetMonth, Math.min(startDate.getUTCDate(), lastDayOfMonth.getUTCDate())) +
      nsOfTheDay,
  );
}

function intervalAmount(amountText: string): bigint {
  if (!/^\s*[+-]?\d{1,9}\s*$/.test(amountText)) throw invalid("INTERVAL 'n' UNIT takes a whole number in quotes");
  return BigInt(amountText.trim().replace(/^\+/, ''));
}

const intervalUnitsNs: Readonly<Record<string, bigint>> = {
  second: 1_000_000_000n,
  minute: 60_000_000_000n,
  hour: 3_600_000_000_000n,
  day: dayUnitNs,
  week: 7n * dayUnitNs,
};
const monthsByUnit: Readonly<Record<string, bigint>> = { month: 1n, quarter: 3n, year: 12n };

/** Units that may stand behind INTERVAL 'n', in lower case. */
export const intervalUnits: ReadonlySet<string> = new Set([...Object.keys(intervalUnitsNs), ...Object.keys(monthsByUnit)]);

export function isCalendarUnit(unit: string): boolean {
  return Object.hasOwn(monthsByUnit, unit);
}

/** INTERVAL 'n' SECOND … WEEK: nanoseconds. */
export const fixedIntervals: ReadonlyMap<string, ScalarFunction> = new Map(
  Object.entries(intervalUnitsNs).map(([unit, ns]) => [
    unit,
    {
      name: `INTERVAL ${unit.toUpperCase()}`,
      group: 'time',
      usage: '',
      summary: '',
      examples: [],
      signatures: [
        {
          takes: ['string'],
          cost: quick,
          yields: 'interval',
          evaluate: (intervalCount) => exact(intervalAmount(text(intervalCount)) * ns),
          raises: true,
        },
      ],
    },
  ]),
);

/** Steps by the calendar, such as x + INTERVAL 'n' MONTH; `-` subtracts. */
export const calendarSteps: ReadonlyMap<string, ScalarFunction> = new Map(
  Object.entries(monthsByUnit).flatMap(([unit, months]) =>
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
            evaluate: (instantCell, intervalCount) =>
              monthsLater(integer(instantCell), intervalAmount(text(intervalCount)) * months * (sign === '+' ? 1n : -1n)),
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
        evaluate: (unitCell, instantCell) => truncateTo(text(unitCell), integer(instantCell)),
        raises: true,
      },
    ],
  },
];
