/** TO_TIMESTAMP and TO_DATE by a template such as `YYYY-MM-DD HH24:MI`. Source: PostgreSQL, "Data Type Formatting Functions". */
import { ServiceError } from '../../../errors.ts';
import { dayNames, monthNames as names, romanMonths } from './to-char.ts';

interface Field {
  /** Matches the field's text at the current offset. */
  readonly form: RegExp;
  readonly of:
    | 'year'
    | 'month'
    | 'day'
    | 'hour'
    | 'minute'
    | 'second'
    | 'fraction'
    | 'noon'
    | 'zoneHours'
    | 'zoneMinutes'
    | 'dayOfYear'
    | 'julian'
    | 'secondOfDay'
    | 'era'
    | 'passed over';
  readonly value: (text: string) => number;
}

const monthNames = names.map((name) => name.toLowerCase());
const monthOf = (text: string): number => monthNames.findIndex((name) => name.startsWith(text.toLowerCase().slice(0, 3))) + 1;
const month = (names: readonly string[]): Field => ({ form: new RegExp(names.join('|'), 'iy'), of: 'month', value: monthOf });
const digits = (of: Field['of'], form = /\d{1,2}/y): Field => ({ form, of, value: Number });
const fraction = (form: RegExp): Field => ({ form, of: 'fraction', value: (text) => Number(text.padEnd(9, '0')) });
const era: Field = { form: /[ab]\.?[dc]\.?/iy, of: 'era', value: (text) => (/^b/i.test(text) ? -1 : 1) };
/** Read, and without any effect. */
const passOver = (form: RegExp): Field => ({ form, of: 'passed over', value: () => 0 });
/** A year of fewer digits is the nearest one to 2020. */
const shortYear = (digits: number, size: number): Field => ({
  form: new RegExp(`\\d{1,${digits}}`, 'y'),
  of: 'year',
  value: (text) => {
    const year = Number(text);
    if (text.length > size) return year;
    return year < 70 ? year + 2_000 : year < 100 ? year + 1_900 : year < 520 ? year + 2_000 : year < 1_000 ? year + 1_000 : year;
  },
});
const romanForm = new RegExp([...romanMonths].sort((a, b) => b.length - a.length).join('|'), 'iy');
const roman: Field = { form: romanForm, of: 'month', value: (text) => romanMonths.indexOf(text.toUpperCase()) + 1 };
const noon: Field = { form: /[ap]\.?m\.?/iy, of: 'noon', value: (text) => (/^p/i.test(text) ? 12 : 0) };

/** The longest come first: of two that begin alike that is meant. */
const fields: readonly (readonly [string, Field])[] = [
  ['SSSSS', digits('secondOfDay', /\d{1,5}/y)],
  ['MONTH', month(monthNames)],
  ['Y,YYY', { form: /\d{1,3},\d{3}/y, of: 'year', value: (text) => Number(text.replace(',', '')) }],
  ['HH24', digits('hour')],
  ['HH12', digits('hour')],
  ['YYYY', digits('year', /\d{1,4}/y)],
  ['SSSS', digits('secondOfDay', /\d{1,5}/y)],
  ['A.M.', noon],
  ['P.M.', noon],
  ['A.D.', era],
  ['B.C.', era],
  ['DDD', digits('dayOfYear', /\d{1,3}/y)],
  ['DAY', passOver(new RegExp(dayNames.join('|'), 'iy'))],
  ['YYY', shortYear(3, 3)],
  ['MON', month(monthNames.map((name) => name.slice(0, 3)))],
  ['TZH', digits('zoneHours', /[+-]?\d{1,2}/y)],
  ['TZM', digits('zoneMinutes')],
  ...[1, 2, 3, 4, 5, 6].map((n): readonly [string, Field] => [`FF${n}`, fraction(new RegExp(`\\d{1,${n}}`, 'y'))]),
  ['HH', digits('hour')],
  ['MI', digits('minute')],
  ['SS', digits('second')],
  ['MS', fraction(/\d{1,3}/y)],
  ['US', fraction(/\d{1,6}/y)],
  ['AM', noon],
  ['PM', noon],
  ['MM', digits('month')],
  ['DD', digits('day')],
  ['DY', passOver(new RegExp(dayNames.map((name) => name.slice(0, 3)).join('|'), 'iy'))],
  ['YY', shortYear(2, 2)],
  ['WW', passOver(/\d{1,2}/y)],
  ['RM', roman],
  ['BC', era],
  ['AD', era],
  ['J', digits('julian', /\d{1,9}/y)],
  ['Q', passOver(/\d/y)],
  ['W', passOver(/\d/y)],
  ['D', passOver(/\d/y)],
  ['Y', shortYear(1, 1)],
];

/** A part of a template: a field; a number of characters of any kind; or null, a character between fields. */
type Part = Field | number | null;

const templateLengthMax = 100;
const templateCache = new Map<string, readonly Part[]>();
const keptMax = 100;

function partsOf(template: string): readonly Part[] {
  const known = templateCache.get(template);
  if (known !== undefined) return known;
  if (template.length > templateLengthMax)
    throw new ServiceError('REL_TOO_LARGE', `a template of TO_TIMESTAMP has at most ${templateLengthMax} characters`);
  const parts: Part[] = [];
  for (let at = 0; at < template.length; ) {
    const rest = template.slice(at);
    const prefix = /^(?:FM|TM|FX)/i.exec(rest);
    if (prefix || (/^TH/i.test(rest) && !/^TZ/i.test(rest) && typeof parts.at(-1) === 'object' && parts.at(-1) !== null)) {
      if (prefix === null) parts.push(passOver(/(?:st|nd|rd|th)?/iy));
      at += 2;
      continue;
    }
    const [name, field] = fields.find(([each]) => rest.toUpperCase().startsWith(each)) ?? [];
    const quoted = /^"([^"]*)"/.exec(rest);
    if (field !== undefined) {
      const { of } = field;
      if (of !== 'passed over' && parts.some((part) => part !== null && typeof part === 'object' && part.of === of))
        throw new ServiceError('REL_INVALID', `the template says the ${field.of} twice`);
      parts.push(field);
    } else if (quoted === null && /^[A-Za-z]/.test(rest))
      throw new ServiceError('REL_NOT_IMPLEMENTED', `TO_TIMESTAMP with ${/^[A-Za-z]+/.exec(rest)![0]} is not implemented`);
    else parts.push(quoted === null ? null : quoted[1]!.length);
    at += name?.length ?? quoted?.[0].length ?? 1;
  }
  if (templateCache.size === keptMax) templateCache.clear();
  templateCache.set(template, parts);
  return parts;
}

const between = /[^\p{L}\p{N}+-]/u;

/** Reads the fields from left to right, each once; null where one does not match. */
function readFields(parts: readonly Part[], text: string): Partial<Record<Field['of'], number>> | null {
  const read: Partial<Record<Field['of'], number>> = {};
  let at = 0;
  for (const [i, part] of parts.entries()) {
    if (typeof part === 'number') {
      at += part;
      continue;
    }
    while (at < text.length && text[at]!.trim() === '') at++;
    if (part === null) {
      const next = parts[i + 1];
      const isSign = next !== null && typeof next === 'object' && next.of === 'zoneHours';
      if (at < text.length && (between.test(text[at]!) || (text[at] === '-' && !isSign))) at++;
      continue;
    }
    part.form.lastIndex = at;
    const match = part.form.exec(text);
    if (match === null) return null;
    read[part.of] = part.value(match[0]);
    at = part.form.lastIndex;
  }
  return read;
}

/** Nanoseconds since 1970; in UTC where the text says no offset. REL_INVALID where the text does not fit the template. */
export function instantBy(template: string, text: string): bigint {
  const read = readFields(partsOf(template), text);
  if (read === null)
    throw new ServiceError('REL_INVALID', `${JSON.stringify(text.slice(0, 100))} does not fit ${JSON.stringify(template)}`, {
      reason: 'instant-form',
    });
  const {
    era: sign = 1,
    dayOfYear,
    julian,
    secondOfDay = 0,
    month: ofYear = 1,
    day = 1,
    minute = 0,
    second = 0,
    fraction: part = 0,
    noon: half,
    zoneHours = 0,
    zoneMinutes = 0,
  } = read;
  const hour = half === undefined ? (read.hour ?? 0) : ((read.hour ?? 12) % 12) + half;
  // The year 0 is read as the first before Christ.
  const year = sign < 0 ? 1 - (read.year ?? 1) : (read.year ?? (dayOfYear === undefined ? 1 : 0));
  const date = new Date(0);
  if (julian !== undefined) date.setUTCDate(julian - 2_440_588 + 1);
  else if (dayOfYear === undefined) date.setUTCFullYear(year, ofYear - 1, day);
  else date.setUTCFullYear(year, 0, dayOfYear);
  const isByMonth = julian === undefined && dayOfYear === undefined;
  const isDay = !isByMonth || (ofYear >= 1 && ofYear <= 12 && date.getUTCMonth() === ofYear - 1 && date.getUTCDate() === day);
  if (!isDay || hour > 24 || minute > 59 || second > 59 || zoneMinutes > 59)
    throw new ServiceError('REL_INVALID', `${JSON.stringify(text.slice(0, 100))} is no such instant`, {
      reason: 'no-such-instant',
    });
  const isWest = zoneHours < 0 || Object.is(zoneHours, -0);
  const minutes = hour * 60 + minute - (zoneHours * 60 + (isWest ? -zoneMinutes : zoneMinutes));
  return (BigInt(date.getTime()) / 1_000n + BigInt(minutes) * 60n + BigInt(second + secondOfDay)) * 1_000_000_000n + BigInt(part);
}
