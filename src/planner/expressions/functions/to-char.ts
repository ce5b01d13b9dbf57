/** TO_CHAR of instants and intervals, by a template. Source: PostgreSQL, "Data Type Formatting Functions". */
import { ServiceError } from '../../../errors.ts';
import { fieldsOf, type Interval } from './intervals.ts';
import { checkLength, invalid } from './scalar-function.ts';

interface Fields {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly microsecond: number;
  /** Null of an interval, which is on no day of a calendar. */
  readonly date: Calendar | null;
}

interface Calendar {
  /** 0 on a Sunday. */
  readonly weekday: number;
  readonly ofYear: number;
  readonly julian: number;
  readonly isoYear: number;
  readonly isoWeek: number;
}

export const monthNames = 'January February March April May June July August September October November December'.split(' ');
export const dayNames = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');
export const romanMonths = 'I II III IV V VI VII VIII IX X XI XII'.split(' ');

const dayMs = 86_400_000;

function calendarOf(date: Date): Calendar {
  const year = date.getUTCFullYear();
  const startOf = (of: number): number => {
    const first = new Date(0);
    first.setUTCFullYear(of, 0, 1);
    return first.getTime();
  };
  const days = Math.floor(date.getTime() / dayMs);
  const weekday = date.getUTCDay();
  const thursday = new Date((days + 4 - (weekday || 7)) * dayMs);
  const isoYear = thursday.getUTCFullYear();
  return {
    weekday,
    ofYear: days - startOf(year) / dayMs + 1,
    julian: days + 2_440_588,
    isoYear,
    isoWeek: Math.floor((thursday.getTime() - startOf(isoYear)) / dayMs / 7) + 1,
  };
}

function instantFields(instant: bigint): Fields {
  const microseconds = instant / 1_000n - (instant % 1_000n < 0n ? 1n : 0n);
  const ofSecond = ((microseconds % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const at = new Date(Number((microseconds - ofSecond) / 1_000n));
  return {
    year: at.getUTCFullYear(),
    month: at.getUTCMonth() + 1,
    day: at.getUTCDate(),
    hour: at.getUTCHours(),
    minute: at.getUTCMinutes(),
    second: at.getUTCSeconds(),
    microsecond: Number(ofSecond),
    date: calendarOf(at),
  };
}

function intervalFields(interval: Interval): Fields {
  const { microseconds, ...fields } = fieldsOf(interval);
  return { ...fields, second: Math.trunc(microseconds / 1e6), microsecond: microseconds % 1e6, date: null };
}

type Show = (fields: Fields, fill: boolean) => string | number;

/** A number with zeros before it, its sign not counted. */
const padNumber = (value: number, width: number, fill: boolean): string =>
  fill ? `${value < 0 ? '-' : ''}${String(Math.abs(value)).padStart(width, '0')}` : String(value);
const inCase = (name: string, like: string): string =>
  like === like.toUpperCase() ? name.toUpperCase() : like === like.toLowerCase() ? name.toLowerCase() : name;

function calendar({ date }: Fields): Calendar {
  if (date === null) throw invalid('the template names what no interval has, such as a day of the week', 'instant-form');
  return date;
}

/** Years before Christ count from 1. */
const eraYear = ({ year, date }: Fields): number => (date === null || year > 0 ? year : 1 - year);
const isoEraYear = (fields: Fields): number => {
  const { isoYear } = calendar(fields);
  return isoYear > 0 ? isoYear : 1 - isoYear;
};
const clock12 = ({ hour }: Fields): number => (hour % 12 === 0 ? 12 : hour % 12);
const withComma = (year: number): string => `${Math.trunc(year / 1_000)},${String(Math.abs(year % 1_000)).padStart(3, '0')}`;
const name = (like: string, width: number, of: (fields: Fields) => string): [string, Show] => [
  like,
  (fields, fill) => {
    const fieldText = inCase(of(fields), like);
    return fill ? fieldText.padEnd(width) : fieldText;
  },
];
const monthName = (fields: Fields): string => {
  if (fields.date === null && fields.month === 0) return '';
  return monthNames[fields.month - 1]!;
};
const dayName = (fields: Fields): string => dayNames[calendar(fields).weekday]!;
const noon = (like: string, [before, behind]: readonly [string, string]): [string, Show] => [
  like,
  ({ hour }) => (hour % 24 >= 12 ? behind : before),
];
const era = (like: string, [before, since]: readonly [string, string]): [string, Show] => [
  like,
  ({ year, date }) => (date !== null && year <= 0 ? before : since),
];
const number = (like: string, width: number, of: (fields: Fields) => number): [string, Show] => [
  like,
  (fields, fill) => padNumber(of(fields), width, fill),
];
const fraction = (digits: number): ((fields: Fields) => string) => {
  // As wide as the digits are, with a sign or without.
  return ({ microsecond }) => {
    const shown = Math.trunc(microsecond / 10 ** (6 - digits));
    return shown < 0 ? `-${String(-shown).padStart(digits - 1, '0')}` : String(shown).padStart(digits, '0');
  };
};
const roman = ({ month }: Fields): string => (month === 0 ? '' : romanMonths[(month + 11) % 12]!);
const century = (fields: Fields): number => {
  const year = fields.year;
  if (fields.date === null) return Math.trunc(year / 100);
  return year > 0 ? Math.floor((year - 1) / 100) + 1 : Math.trunc(year / 100) - 1;
};

/** Where two begin alike, the longest is meant; words stand in each way in which their letters may be written. */
const patterns: ReadonlyMap<string, Show> = new Map<string, Show>([
  number('HH24', 2, ({ hour }) => hour),
  number('HH12', 2, clock12),
  number('HH', 2, clock12),
  number('MI', 2, ({ minute }) => minute),
  number('SSSSS', 0, ({ hour, minute, second }) => hour * 3_600 + minute * 60 + second),
  number('SSSS', 0, ({ hour, minute, second }) => hour * 3_600 + minute * 60 + second),
  number('SS', 2, ({ second }) => second),
  ['MS', fraction(3)],
  ['US', fraction(6)],
  ...[1, 2, 3, 4, 5, 6].map((digits): [string, Show] => [`FF${digits}`, fraction(digits)]),
  noon('AM', ['AM', 'PM']),
  noon('PM', ['AM', 'PM']),
  noon('am', ['am', 'pm']),
  noon('pm', ['am', 'pm']),
  noon('A.M.', ['A.M.', 'P.M.']),
  noon('P.M.', ['A.M.', 'P.M.']),
  noon('a.m.', ['a.m.', 'p.m.']),
  noon('p.m.', ['a.m.', 'p.m.']),
  era('BC', ['BC', 'AD']),
  era('AD', ['BC', 'AD']),
  era('bc', ['bc', 'ad']),
  era('ad', ['bc', 'ad']),
  era('B.C.', ['B.C.', 'A.D.']),
  era('A.D.', ['B.C.', 'A.D.']),
  era('b.c.', ['b.c.', 'a.d.']),
  era('a.d.', ['b.c.', 'a.d.']),
  ['Y,YYY', (fields) => withComma(eraYear(fields))],
  number('YYYY', 4, eraYear),
  number('YYY', 3, (fields) => eraYear(fields) % 1_000),
  number('YY', 2, (fields) => eraYear(fields) % 100),
  number('Y', 1, (fields) => eraYear(fields) % 10),
  number('IYYY', 4, isoEraYear),
  number('IYY', 3, (fields) => isoEraYear(fields) % 1_000),
  number('IY', 2, (fields) => isoEraYear(fields) % 100),
  number('I', 1, (fields) => isoEraYear(fields) % 10),
  name('MONTH', 9, monthName),
  name('Month', 9, monthName),
  name('month', 9, monthName),
  name('MON', 0, (fields) => monthName(fields).slice(0, 3)),
  name('Mon', 0, (fields) => monthName(fields).slice(0, 3)),
  name('mon', 0, (fields) => monthName(fields).slice(0, 3)),
  number('MM', 2, ({ month }) => month),
  name('DAY', 9, dayName),
  name('Day', 9, dayName),
  name('day', 9, dayName),
  name('DY', 0, (fields) => dayName(fields).slice(0, 3)),
  name('Dy', 0, (fields) => dayName(fields).slice(0, 3)),
  name('dy', 0, (fields) => dayName(fields).slice(0, 3)),
  number('DDD', 3, (fields) => calendar(fields).ofYear),
  number('IDDD', 3, (fields) => {
    const { isoWeek, weekday } = calendar(fields);
    return (isoWeek - 1) * 7 + (weekday || 7);
  }),
  ['DD', ({ day }, fill) => padNumber(day, day < 0 ? 1 : 2, fill)],
  number('D', 0, (fields) => calendar(fields).weekday + 1),
  number('ID', 0, (fields) => calendar(fields).weekday || 7),
  number('W', 0, ({ day }) => Math.floor((day - 1) / 7) + 1),
  number('WW', 2, (fields) => Math.floor((calendar(fields).ofYear - 1) / 7) + 1),
  number('IW', 2, (fields) => calendar(fields).isoWeek),
  number('CC', 2, century),
  number('J', 0, (fields) => calendar(fields).julian),
  ['Q', ({ month }) => (month === 0 ? '' : Math.trunc((month - 1) / 3) + 1)],
  ['RM', (fields, fill) => (fill ? roman(fields).padEnd(4) : roman(fields))],
  ['rm', (fields, fill) => (fill ? roman(fields).toLowerCase().padEnd(4) : roman(fields).toLowerCase())],
  ['TZH', () => '+00'],
  ['TZM', () => '00'],
  ['TZ', () => 'UTC'],
  ['tz', () => 'utc'],
  ['OF', () => '+00'],
]);
const names = [...patterns.keys()].sort((a, b) => b.length - a.length);
/** Names that have a way of their own to be written in small letters. */
const ofCase = new Set([...patterns.keys()].filter((each) => each !== each.toUpperCase()).map((each) => each.toUpperCase()));

type Part = { readonly show: Show; readonly fill: boolean; readonly suffix: 'TH' | 'th' | null } | string;

const templateMax = 1_000;
const templateCache = new Map<string, readonly Part[]>();
const keptMax = 100;

function partsOf(template: string): readonly Part[] {
  const known = templateCache.get(template);
  if (known !== undefined) return known;
  if (template.length > templateMax)
    throw new ServiceError('REL_TOO_LARGE', `a template of TO_CHAR has at most ${templateMax} characters`);
  const parts: Part[] = [];
  for (let at = 0; at < template.length; ) {
    const quoted = /^"((?:[^"\\]|\\[^])*)"?/.exec(template.slice(at));
    if (quoted) {
      parts.push(quoted[1]!.replaceAll(/\\([^])/g, '$1'));
      at += quoted[0].length;
      continue;
    }
    const prefix = /^(?:FM|TM|FX)+/i.exec(template.slice(at, at + 20))?.[0] ?? '';
    const from = at + prefix.length;
    const monthName =
      names.find((each) => {
        const piece = template.slice(from, from + each.length);
        // A mixed name is meant by its first letters: `MOnth` is as `MONTH`.
        return piece === each || (piece.toUpperCase() === each && !ofCase.has(each));
      }) ?? names.find((each) => each === each.toUpperCase() && template.slice(from, from + each.length).toUpperCase() === each);
    if (monthName === undefined) {
      const isEscape = template[at] === '\\' && template[at + 1] === '"';
      parts.push(isEscape ? '"' : template[at]!);
      at += isEscape ? 2 : 1;
      continue;
    }
    at = from + monthName.length;
    const suffix = /^th/i.exec(template.slice(at, at + 2))?.[0];
    if (suffix !== undefined) at += 2;
    parts.push({
      show: patterns.get(monthName)!,
      fill: !/FM|TM/i.test(prefix),
      suffix: suffix === undefined ? null : suffix === 'TH' ? 'TH' : 'th',
    });
  }
  if (templateCache.size === keptMax) templateCache.clear();
  templateCache.set(template, parts);
  return parts;
}

/** `th`, or what comes behind a number that ends in 1, 2 or 3. */
export function ordinal(digits: string): string {
  const last = digits.at(-1);
  if (digits.at(-2) === '1') return 'th';
  return last === '1' ? 'st' : last === '2' ? 'nd' : last === '3' ? 'rd' : 'th';
}

/** An instant, in nanoseconds and UTC, or an interval. */
export function shownByTemplate(value: bigint | Interval, template: string): string {
  const fields = typeof value === 'bigint' ? instantFields(value) : intervalFields(value);
  let text = '';
  for (const part of partsOf(template)) {
    if (typeof part === 'string') text += part;
    else {
      const shown = String(part.show(fields, part.fill));
      const suffix = part.suffix !== null && /\d$/.test(shown) ? ordinal(shown) : '';
      text += shown + (part.suffix === 'TH' ? suffix.toUpperCase() : suffix);
    }
  }
  return checkLength(text);
}
