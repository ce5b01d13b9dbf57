/** Instants that are made of their parts, and shown and read by a template. */
import { startOfDay } from './casts.ts';
import { instantBy } from './instant-templates.ts';
import { fieldOf, inRange, instantAt } from './instants.ts';
import { readNumber, showNumber } from './number-templates.ts';
import { integer, invalid, linear, number, quick, type ScalarFunction, text } from './scalar-function.ts';
import { shownByTemplate } from './to-char.ts';
import { instantIn } from './zones.ts';
import type { Cost } from '../expression-cost.ts';
import type { Cell } from '../../../log/values/value.ts';

/** Parts of a template are looked for and written one by one. */
const templateCost: Cost = { call: 2_000, character: 20 };
/** A zone's clock is asked for three times at most. */
const zonedInstantCost: Cost = { call: 30_000, character: 10 };

/** The first instant of a day; of years before Christ the first is -1. */
function dayAt(year: Cell | undefined, month: Cell | undefined, date: Cell | undefined): bigint {
  const [calendarYear, calendarMonth, calendarDate] = [Number(year), Number(month), Number(date)];
  const dayStart =
    calendarMonth >= 1 &&
    calendarMonth <= 12 &&
    calendarDate >= 1 &&
    calendarDate <= 31 &&
    calendarYear !== 0 &&
    Math.abs(calendarYear) < 300_000
      ? instantAt(calendarYear < 0 ? calendarYear + 1 : calendarYear, calendarMonth - 1, calendarDate)
      : null;
  if (dayStart === null || new Date(Number(dayStart / 1_000_000n)).getUTCDate() !== calendarDate)
    throw invalid('there is no such day', 'no-such-instant');
  return dayStart;
}

function timeOfDayNs(hour: Cell | undefined, minute: Cell | undefined, second: Cell | undefined): bigint {
  const [clockHour, clockMinute, clockSecond] = [Number(hour), Number(minute), number(second)];
  const isTimeOfDay =
    clockHour >= 0 &&
    clockHour <= 24 &&
    clockMinute >= 0 &&
    clockMinute <= 59 &&
    clockSecond >= 0 &&
    clockSecond <= 60 &&
    (clockHour < 24 || (clockMinute === 0 && clockSecond === 0));
  if (!isTimeOfDay) throw invalid('there is no such time of day', 'no-such-instant');
  return BigInt(clockHour * 3_600 + clockMinute * 60) * 1_000_000_000n + BigInt(Math.round(clockSecond * 1e6)) * 1_000n;
}

const instantPartTypes = ['integer', 'integer', 'integer', 'integer', 'integer', 'number'] as const;

export const calendarFunctions: readonly ScalarFunction[] = [
  {
    name: 'DATE_PART',
    group: 'time',
    usage: "DATE_PART('field', x)",
    summary: 'The field of an instant that EXTRACT(field FROM x) takes, as a number.',
    examples: [["DATE_PART('hour', TIMESTAMP '2024-05-17T10:30:00')", '10']],
    signatures: [
      {
        takes: ['string', 'timestamp'],
        cost: linear,
        yields: 'number',
        evaluate: (name, x) => fieldOf(text(name), integer(x)),
        raises: true,
      },
    ],
  },
  {
    name: 'MAKE_DATE',
    group: 'time',
    usage: 'MAKE_DATE(year, month, day)',
    summary: 'The day by its numbers.',
    examples: [['MAKE_DATE(2024, 2, 29)', '2024-02-29T00:00:00Z']],
    signatures: [{ takes: ['integer', 'integer', 'integer'], cost: quick, yields: 'timestamp', evaluate: dayAt, raises: true }],
  },
  {
    name: 'MAKE_TIMESTAMP',
    group: 'time',
    usage: 'MAKE_TIMESTAMP(year, month, day, hour, minute, seconds)',
    summary: 'The instant by its numbers.',
    examples: [['MAKE_TIMESTAMP(2024, 5, 17, 10, 30, 1.5)', '2024-05-17T10:30:01.500Z']],
    signatures: [
      {
        takes: instantPartTypes,
        cost: quick,
        yields: 'timestamp',
        evaluate: (y, m, d, hour, minute, s) => inRange(dayAt(y, m, d) + timeOfDayNs(hour, minute, s)),
        raises: true,
      },
    ],
  },
  {
    name: 'MAKE_TIMESTAMPTZ',
    group: 'time',
    usage: "MAKE_TIMESTAMPTZ(year, month, day, hour, minute, seconds[, 'zone'])",
    summary: 'The instant at which the clock of a zone, UTC by default, shows these numbers.',
    examples: [["MAKE_TIMESTAMPTZ(2024, 5, 17, 10, 30, 0, 'Europe/Berlin')", '2024-05-17T08:30:00Z']],
    signatures: [
      {
        takes: [...instantPartTypes, 'string'],
        optional: 1,
        cost: zonedInstantCost,
        yields: 'timestamp',
        evaluate: (y, m, d, hour, minute, s, zone) => {
          const localClock = dayAt(y, m, d) + timeOfDayNs(hour, minute, s);
          return inRange(zone === undefined ? localClock : instantIn(text(zone), localClock));
        },
        raises: true,
      },
    ],
  },
  {
    name: 'TO_CHAR',
    group: 'time',
    usage: "TO_CHAR(x, 'YYYY-MM-DD HH24:MI') or TO_CHAR(n, 'FM999,990.00')",
    summary: 'An instant or a number as text, by a template.',
    examples: [
      ["TO_CHAR(TIMESTAMP '2024-05-17T15:04:05', 'FMDay, DDth Mon YYYY HH12:MI PM')", 'Friday, 17th May 2024 03:04 PM'],
      ["TO_CHAR(-1234.5, '9,999.99')", '-1,234.50'],
    ],
    signatures: [
      {
        takes: ['timestamp', 'string'],
        cost: templateCost,
        yields: 'string',
        evaluate: (x, template) => shownByTemplate(integer(x), text(template)),
        raises: true,
      },
      {
        takes: ['integer', 'string'],
        cost: templateCost,
        yields: 'string',
        evaluate: (n, template) => showNumber(n!, text(template)),
        raises: true,
      },
      {
        takes: ['number', 'string'],
        cost: templateCost,
        yields: 'string',
        evaluate: (n, template) => showNumber(n!, text(template)),
        raises: true,
      },
    ],
  },
  {
    name: 'TO_TIMESTAMP',
    group: 'time',
    usage: "TO_TIMESTAMP(text, 'YYYY-MM-DD HH24:MI') or TO_TIMESTAMP(seconds)",
    summary: 'The instant that a text tells by a template, or that is so many seconds after 1970.',
    examples: [
      ["TO_TIMESTAMP('17 May 2024, 3 pm', 'DD Mon YYYY, HH12 PM')", '2024-05-17T15:00:00Z'],
      ['TO_TIMESTAMP(1.5)', '1970-01-01T00:00:01.500Z'],
    ],
    signatures: [
      {
        takes: ['string', 'string'],
        cost: templateCost,
        yields: 'timestamp',
        evaluate: (value, template) => inRange(instantBy(text(template), text(value))),
        raises: true,
      },
      {
        takes: ['number'],
        cost: quick,
        yields: 'timestamp',
        evaluate: (seconds) => {
          if (!Number.isFinite(Number(seconds))) throw invalid('TO_TIMESTAMP takes a finite number of seconds');
          return inRange(BigInt(Math.round(Number(seconds) * 1e6)) * 1_000n);
        },
        raises: true,
      },
    ],
  },
  {
    name: 'TO_DATE',
    group: 'time',
    usage: "TO_DATE(text, 'YYYY-MM-DD')",
    summary: 'The day that a text tells by a template.',
    examples: [["TO_DATE('17 May 2024', 'DD Mon YYYY')", '2024-05-17T00:00:00Z']],
    signatures: [
      {
        takes: ['string', 'string'],
        cost: templateCost,
        yields: 'timestamp',
        evaluate: (value, template) => startOfDay(inRange(instantBy(text(template), text(value)))),
        raises: true,
      },
    ],
  },
  {
    name: 'TO_NUMBER',
    group: 'numbers',
    usage: "TO_NUMBER(text, '99G999D9S')",
    summary: 'The number that a text tells by a template.',
    examples: [["TO_NUMBER('12,454.8-', '99G999D9S')", '-12454.8']],
    signatures: [
      {
        takes: ['string', 'string'],
        cost: templateCost,
        yields: 'number',
        evaluate: (value, template) => readNumber(text(value), text(template)),
        raises: true,
      },
    ],
  },
];
