/** TO_CHAR of instants and intervals, by a template. Source: PostgreSQL, "Data Type Formatting Functions". */
import { ServiceError } from '../../../errors.ts';
import { fieldsOf, type Interval } from './intervals.ts';
import { checkLength, invalid } from './scalar-function.ts';

interface TemplateFields {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly microsecond: number;
  /** Null of an interval, which is on no day of a calendar. */
  readonly date: CalendarDay | null;
}

interface CalendarDay {
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

function calendarDay(date: Date): CalendarDay {
  const year = date.getUTCFullYear();
  const yearStartMs = (startYear: number): number => {
    const newYearsDay = new Date(0);
    newYearsDay.setUTCFullYear(startYear, 0, 1);
    return newYearsDay.getTime();
  };
  const epochDays = Math.floor(date.getTime() / dayMs);
  const weekday = date.getUTCDay();
  const isoThursday = new Date((epochDays + 4 - (weekday || 7)) * dayMs);
  const isoYear = isoThursday.getUTCFullYear();
  return {
    weekday,
    ofYear: epochDays - yearStartMs(year) / dayMs + 1,
    julian: epochDays + 2_440_588,
    isoYear,
    isoWeek: Math.floor((isoThursday.getTime() - yearStartMs(isoYear)) / dayMs / 7) + 1,
  };
}

function instantFields(instant: bigint): TemplateFields {
  const microseconds = instant / 1_000n - (instant % 1_000n < 0n ? 1n : 0n);
  const microsecondOfSecond = ((microseconds % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const instantDate = new Date(Number((microseconds - microsecondOfSecond) / 1_000n));
  return {
    year: instantDate.getUTCFullYear(),
    month: instantDate.getUTCMonth() + 1,
    day: instantDate.getUTCDate(),
    hour: instantDate.getUTCHours(),
    minute: instantDate.getUTCMinutes(),
    second: instantDate.getUTCSeconds(),
    microsecond: Number(microsecondOfSecond),
    date: calendarDay(instantDate),
  };
}

function intervalFields(interval: Interval): TemplateFields {
  const { microseconds, ...wholeFields } = fieldsOf(interval);
  return { ...wholeFields, second: Math.trunc(microseconds / 1e6), microsecond: microseconds % 1e6, date: null };
}

type ShowField = (fields: TemplateFields, fill: boolean) => string | number;

/** A number with zeros before it, its sign not counted. */
const padNumber = (fieldNumber: number, width: number, padsZeros: boolean): string =>
  padsZeros ? `${fieldNumber < 0 ? '-' : ''}${String(Math.abs(fieldNumber)).padStart(width, '0')}` : String(fieldNumber);
const matchCase = (name: string, casePattern: string): string =>
  casePattern === casePattern.toUpperCase()
    ? name.toUpperCase()
    : casePattern === casePattern.toLowerCase()
      ? name.toLowerCase()
      : name;

function requireCalendar({ date }: TemplateFields): CalendarDay {
  if (date === null) throw invalid('the template names what no interval has, such as a day of the week', 'instant-form');
  return date;
}

/** Years before Christ count from 1. */
const eraYear = ({ year, date }: TemplateFields): number => (date === null || year > 0 ? year : 1 - year);
const isoEraYear = (fields: TemplateFields): number => {
  const { isoYear } = requireCalendar(fields);
  return isoYear > 0 ? isoYear : 1 - isoYear;
};
const clock12 = ({ hour }: TemplateFields): number => (hour % 12 === 0 ? 12 : hour % 12);
const yearWithComma = (year: number): string => `${Math.trunc(year / 1_000)},${String(Math.abs(year % 1_000)).padStart(3, '0')}`;
const nameTemplate = (
  templateCode: string,
  width: number,
  fieldName: (fields: TemplateFields) => string,
): [string, ShowField] => [
  templateCode,
  (fields, padsName) => {
    const fieldText = matchCase(fieldName(fields), templateCode);
    return padsName ? fieldText.padEnd(width) : fieldText;
  },
];
const monthName = (fields: TemplateFields): string => {
  if (fields.date === null && fields.month === 0) return '';
  return monthNames[fields.month - 1]!;
};
const dayName = (fields: TemplateFields): string => dayNames[requireCalendar(fields).weekday]!;
const noonTemplate = (templateCode: string, [beforeNoon, afterNoon]: readonly [string, string]): [string, ShowField] => [
  templateCode,
  ({ hour }) => (hour % 24 >= 12 ? afterNoon : beforeNoon),
];
const eraTemplate = (templateCode: string, [beforeChrist, afterChrist]: readonly [string, string]): [string, ShowField] => [
  templateCode,
  ({ year, date }) => (date !== null && year <= 0 ? beforeChrist : afterChrist),
];
const numberTemplate = (
  templateCode: string,
  width: number,
  fieldNumber: (fields: TemplateFields) => number,
): [string, ShowField] => [templateCode, (fields, padsZeros) => padNumber(fieldNumber(fields), width, padsZeros)];
const fractionTemplate = (fractionDigits: number): ((fields: TemplateFields) => string) => {
  // As wide as the digits are, with a sign or without.
  return ({ microsecond }) => {
    const shownFraction = Math.trunc(microsecond / 10 ** (6 - fractionDigits));
    return shownFraction < 0
      ? `-${String(-shownFraction).padStart(fractionDigits - 1, '0')}`
      : String(shownFraction).padStart(fractionDigits, '0');
  };
};
const romanMonth = ({ month }: TemplateFields): string => (month === 0 ? '' : romanMonths[(month + 11) % 12]!);
const centuryNumber = (fields: TemplateFields): number => {
  const fullYear = fields.year;
  if (fields.date === null) return Math.trunc(fullYear / 100);
  return fullYear > 0 ? Math.floor((fullYear - 1) / 100) + 1 : Math.trunc(fullYear / 100) - 1;
};

/** Where two begin alike, the longest is meant; words stand in each way in which their letters may be written. */
const templatePatterns: ReadonlyMap<string, ShowField> = new Map<string, ShowField>([
  numberTemplate('HH24', 2, ({ hour }) => hour),
  numberTemplate('HH12', 2, clock12),
  numberTemplate('HH', 2, clock12),
  numberTemplate('MI', 2, ({ minute }) => minute),
  numberTemplate('SSSSS', 0, ({ hour, minute, second }) => hour * 3_600 + minute * 60 + second),
  numberTemplate('SSSS', 0, ({ hour, minute, second }) => hour * 3_600 + minute * 60 + second),
  numberTemplate('SS', 2, ({ second }) => second),
  ['MS', fractionTemplate(3)],
  ['US', fractionTemplate(6)],
  ...[1, 2, 3, 4, 5, 6].map((digits): [string, ShowField] => [`FF${digits}`, fractionTemplate(digits)]),
  noonTemplate('AM', ['AM', 'PM']),
  noonTemplate('PM', ['AM', 'PM']),
  noonTemplate('am', ['am', 'pm']),
  noonTemplate('pm', ['am', 'pm']),
  noonTemplate('A.M.', ['A.M.', 'P.M.']),
  noonTemplate('P.M.', ['A.M.', 'P.M.']),
  noonTemplate('a.m.', ['a.m.', 'p.m.']),
  noonTemplate('p.m.', ['a.m.', 'p.m.']),
  eraTemplate('BC', ['BC', 'AD']),
  eraTemplate('AD', ['BC', 'AD']),
  eraTemplate('bc', ['bc', 'ad']),
  eraTemplate('ad', ['bc', 'ad']),
  eraTemplate('B.C.', ['B.C.', 'A.D.']),
  eraTemplate('A.D.', ['B.C.', 'A.D.']),
  eraTemplate('b.c.', ['b.c.', 'a.d.']),
  eraTemplate('a.d.', ['b.c.', 'a.d.']),
  ['Y,YYY', (fields) => yearWithComma(eraYear(fields))],
  numberTemplate('YYYY', 4, eraYear),
  numberTemplate('YYY', 3, (fields) => eraYear(fields) % 1_000),
  numberTemplate('YY', 2, (fields) => eraYear(fields) % 100),
  numberTemplate('Y', 1, (fields) => eraYear(fields) % 10),
  numberTemplate('IYYY', 4, isoEraYear),
  numberTemplate('IYY', 3, (fields) => isoEraYear(fields) % 1_000),
  numberTemplate('IY', 2, (fields) => isoEraYear(fields) % 100),
  numberTemplate('I', 1, (fields) => isoEraYear(fields) % 10),
  nameTemplate('MONTH', 9, monthName),
  nameTemplate('Month', 9, monthName),
  nameTemplate('month', 9, monthName),
  nameTemplate('MON', 0, (fields) => monthName(fields).slice(0, 3)),
  nameTemplate('Mon', 0, (fields) => monthName(fields).slice(0, 3)),
  nameTemplate('mon', 0, (fields) => monthName(fields).slice(0, 3)),
  numberTemplate('MM', 2, ({ month }) => month),
  nameTemplate('DAY', 9, dayName),
  nameTemplate('Day', 9, dayName),
  nameTemplate('day', 9, dayName),
  nameTemplate('DY', 0, (fields) => dayName(fields).slice(0, 3)),
  nameTemplate('Dy', 0, (fields) => dayName(fields).slice(0, 3)),
  nameTemplate('dy', 0, (fields) => dayName(fields).slice(0, 3)),
  numberTemplate('DDD', 3, (fields) => requireCalendar(fields).ofYear),
  numberTemplate('IDDD', 3, (fields) => {
    const { isoWeek, weekday } = requireCalendar(fields);
    return (isoWeek - 1) * 7 + (weekday || 7);
  }),
  ['DD', ({ day }, fill) => padNumber(day, day < 0 ? 1 : 2, fill)],
  numberTemplate('D', 0, (fields) => requireCalendar(fields).weekday + 1),
  numberTemplate('ID', 0, (fields) => requireCalendar(fields).weekday || 7),
  numberTemplate('W', 0, ({ day }) => Math.floor((day - 1) / 7) + 1),
  numberTemplate('WW', 2, (fields) => Math.floor((requireCalendar(fields).ofYear - 1) / 7) + 1),
  numberTemplate('IW', 2, (fields) => requireCalendar(fields).isoWeek),
  numberTemplate('CC', 2, centuryNumber),
  numberTemplate('J', 0, (fields) => requireCalendar(fields).julian),
  ['Q', ({ month }) => (month === 0 ? '' : Math.trunc((month - 1) / 3) + 1)],
  ['RM', (fields, fill) => (fill ? romanMonth(fields).padEnd(4) : romanMonth(fields))],
  ['rm', (fields, fill) => (fill ? romanMonth(fields).toLowerCase().padEnd(4) : romanMonth(fields).toLowerCase())],
  ['TZH', () => '+00'],
  ['TZM', () => '00'],
  ['TZ', () => 'UTC'],
  ['tz', () => 'utc'],
  ['OF', () => '+00'],
]);
const templateCodes = [...templatePatterns.keys()].sort((a, b) => b.length - a.length);
/** Names that have a way of their own to be written in small letters. */
const caseSensitiveCodes = new Set(
  [...templatePatterns.keys()].filter((each) => each !== each.toUpperCase()).map((each) => each.toUpperCase()),
);

type TemplatePart = { readonly show: ShowField; readonly fill: boolean; readonly suffix: 'TH' | 'th' | null } | string;

const templateLengthMax = 1_000;
const templateCache = new Map<string, readonly TemplatePart[]>();
const parsedTemplatesMax = 100;

function templateParts(template: string): readonly TemplatePart[] {
  const parsedTemplate = templateCache.get(template);
  if (parsedTemplate !== undefined) return parsedTemplate;
  if (template.length > templateLengthMax)
    throw new ServiceError('REL_TOO_LARGE', `a template of TO_CHAR has at most ${templateLengthMax} characters`);
  const parsedParts: TemplatePart[] = [];
  for (let templateOffset = 0; templateOffset < template.length; ) {
    const quotedText = /^"((?:[^"\\]|\\[^])*)"?/.exec(template.slice(templateOffset));
    if (quotedText) {
      parsedParts.push(quotedText[1]!.replaceAll(/\\([^])/g, '$1'));
      templateOffset += quotedText[0].length;
      continue;
    }
    const modifierPrefix = /^(?:FM|TM|FX)+/i.exec(template.slice(templateOffset, templateOffset + 20))?.[0] ?? '';
    const codeOffset = templateOffset + modifierPrefix.length;
    const monthName =
      templateCodes.find((knownCode) => {
        const templatePiece = template.slice(codeOffset, codeOffset + knownCode.length);
        // A mixed name is meant by its first letters: `MOnth` is as `MONTH`.
        return templatePiece === knownCode || (templatePiece.toUpperCase() === knownCode && !caseSensitiveCodes.has(knownCode));
      }) ??
      templateCodes.find(
        (knownCode) =>
          knownCode === knownCode.toUpperCase() &&
          template.slice(codeOffset, codeOffset + knownCode.length).toUpperCase() === knownCode,
      );
    if (monthName === undefined) {
      const isQuoteEscape = template[templateOffset] === '\\' && template[templateOffset + 1] === '"';
      parsedParts.push(isQuoteEscape ? '"' : template[templateOffset]!);
      templateOffset += isQuoteEscape ? 2 : 1;
      continue;
    }
    templateOffset = codeOffset + monthName.length;
    const ordinalSuffix = /^th/i.exec(template.slice(templateOffset, templateOffset + 2))?.[0];
    if (ordinalSuffix !== undefined) templateOffset += 2;
    parsedParts.push({
      show: templatePatterns.get(monthName)!,
      fill: !/FM|TM/i.test(modifierPrefix),
      suffix: ordinalSuffix === undefined ? null : ordinalSuffix === 'TH' ? 'TH' : 'th',
    });
  }
  if (templateCache.size === parsedTemplatesMax) templateCache.clear();
  templateCache.set(template, parsedParts);
  return parsedParts;
}

/** `th`, or what comes behind a number that ends in 1, 2 or 3. */
export function ordinal(digits: string): string {
  const lastDigit = digits.at(-1);
  if (digits.at(-2) === '1') return 'th';
  return lastDigit === '1' ? 'st' : lastDigit === '2' ? 'nd' : lastDigit === '3' ? 'rd' : 'th';
}

/** An instant, in nanoseconds and UTC, or an interval. */
export function shownByTemplate(value: bigint | Interval, template: string): string {
  const shownFields = typeof value === 'bigint' ? instantFields(value) : intervalFields(value);
  let shownText = '';
  for (const templatePart of templateParts(template)) {
    if (typeof templatePart === 'string') shownText += templatePart;
    else {
      const shownField = String(templatePart.show(shownFields, templatePart.fill));
      const ordinalSuffix = templatePart.suffix !== null && /\d$/.test(shownField) ? ordinal(shownField) : '';
      shownText += shownField + (templatePart.suffix === 'TH' ? ordinalSuffix.toUpperCase() : ordinalSuffix);
    }
  }
  return checkLength(shownText);
}
