/** Functions of instants. All of time is UTC; a day begins at midnight, a week on Monday. */
import { FOREVER, INSTANT_MIN } from '../../../log/timestamp.ts';
import { exact } from './numbers.ts';
import { integer, invalid, type ScalarFunction, text } from './scalar-function.ts';
import { startOfDay } from './casts.ts';

const nsPerMs = 1_000_000n;
const day = 86_400_000_000_000n;

/** The calendar's view of an instant, and the nanoseconds since its last whole second. */
interface Parts {
  readonly date: Date;
  readonly rest: number;
}

function partsOf(instant: bigint): Parts {
  let seconds = instant / 1_000_000_000n;
  let rest = instant % 1_000_000_000n;
  if (rest < 0n) {
    seconds -= 1n;
    rest += 1_000_000_000n;
  }
  return { date: new Date(Number(seconds) * 1000), rest: Number(rest) };
}

function dayOfYear(date: Date): number {
  return Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / 86_400_000) + 1;
}

/** Year and number of the ISO week: that of its Thursday. */
function isoWeek(date: Date): { year: number; week: number } {
  const thursday = new Date(date.getTime());
  thursday.setUTCDate(date.getUTCDate() + 4 - (date.getUTCDay() || 7));
  return { year: thursday.getUTCFullYear(), week: Math.ceil(dayOfYear(thursday) / 7) };
}

const fields: Readonly<Record<string, (parts: Parts) => number>> = {
  year: ({ date }) => date.getUTCFullYear(),
  quarter: ({ date }) => Math.floor(date.getUTCMonth() / 3) + 1,
  month: ({ date }) => date.getUTCMonth() + 1,
  week: ({ date }) => isoWeek(date).week,
  isoyear: ({ date }) => isoWeek(date).year,
  day: ({ date }) => date.getUTCDate(),
  dow: ({ date }) => date.getUTCDay(),
  isodow: ({ date }) => date.getUTCDay() || 7,
  doy: ({ date }) => dayOfYear(date),
  hour: ({ date }) => date.getUTCHours(),
  minute: ({ date }) => date.getUTCMinutes(),
};

const fractions: Readonly<Record<string, (parts: Parts) => number>> = {
  second: ({ date, rest }) => date.getUTCSeconds() + rest / 1e9,
  epoch: ({ date, rest }) => date.getTime() / 1000 + rest / 1e9,
};

export const extractFields: readonly string[] = [...Object.keys(fields), ...Object.keys(fractions)];

/** What EXTRACT(field FROM x) calls, by field in lower case. */
export const extractions: ReadonlyMap<string, ScalarFunction> = new Map([
  ...Object.entries(fields).map(([field, of]): [string, ScalarFunction] => [
    field,
    extraction(field, { takes: ['timestamp'], yields: 'integer', evaluate: (x) => BigInt(of(partsOf(integer(x)))), small: true }),
  ]),
  ...Object.entries(fractions).map(([field, of]): [string, ScalarFunction] => [
    field,
    extraction(field, { takes: ['timestamp'], yields: 'number', evaluate: (x) => of(partsOf(integer(x))) }),
  ]),
]);

function extraction(field: string, signature: ScalarFunction['signatures'][number]): ScalarFunction {
  const name = `EXTRACT ${field.toUpperCase()}`;
  return { name, group: 'time', usage: '', summary: '', examples: [], signatures: [signature] };
}

function instantAt(year: number, month: number, date: number): bigint {
  const at = new Date(0);
  at.setUTCFullYear(year, month, date);
  return inRange(BigInt(at.getTime()) * nsPerMs);
}

function inRange(instant: bigint): bigint {
  if (instant > FOREVER || instant < INSTANT_MIN) throw invalid('instant out of range');
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

function truncated(unit: string, instant: bigint): bigint {
  const step = Object.hasOwn(units, unit) ? units[unit] : undefined;
  if (step !== undefined) {
    const rest = instant % step;
    return exact(instant - (rest < 0n ? rest + step : rest));
  }
  const { date } = partsOf(instant);
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
    default:
      throw invalid('DATE_TRUNC takes microseconds, milliseconds, second, minute, hour, day, week, month, quarter or year');
  }
}

/** So many months later, on the same day, or the last of a month that has no such day. */
export function monthsLater(instant: bigint, months: bigint): bigint {
  if (months > 12_000n || months < -12_000n) throw invalid('instant out of range');
  const { date } = partsOf(instant);
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
      signatures: [{ takes: ['string'], yields: 'interval', evaluate: (n) => exact(amount(text(n)) * ns), raises: true }],
    },
  ]),
);

/** x + INTERVAL 'n' MONTH and what else goes by the calendar; `-` takes away. */
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
    summary: 'Where the microsecond, millisecond, second, minute, hour, day, week, month, quarter or year of an instant begins.',
    examples: [["DATE_TRUNC('month', TIMESTAMP '2024-05-17T10:00:00')", '2024-05-01T00:00:00Z']],
    signatures: [
      {
        takes: ['string', 'timestamp'],
        yields: 'timestamp',
        evaluate: (unit, x) => truncated(text(unit).trim().toLowerCase(), integer(x)),
        raises: true,
      },
    ],
  },
];
