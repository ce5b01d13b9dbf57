/** TO_TIMESTAMP by a template such as `YYYY-MM-DD HH24:MI`. Source: PostgreSQL, "Data Type Formatting Functions". */
import { ServiceError } from '../../../errors.ts';

interface Field {
  /** Matches the field's text at the current offset. */
  readonly form: RegExp;
  readonly of: 'year' | 'month' | 'day' | 'hour' | 'minute' | 'second' | 'fraction' | 'noon' | 'zoneHours' | 'zoneMinutes';
  readonly value: (text: string) => number;
}

const monthNames = 'january february march april may june july august september october november december'.split(' ');
const monthOf = (text: string): number => monthNames.findIndex((name) => name.startsWith(text.toLowerCase().slice(0, 3))) + 1;
const month = (names: readonly string[]): Field => ({ form: new RegExp(names.join('|'), 'iy'), of: 'month', value: monthOf });
const digits = (of: Field['of'], form = /\d{1,2}/y): Field => ({ form, of, value: Number });
const fraction = (form: RegExp): Field => ({ form, of: 'fraction', value: (text) => Number(text.padEnd(9, '0')) });
const noon: Field = { form: /[ap]\.?m\.?/iy, of: 'noon', value: (text) => (/^p/i.test(text) ? 12 : 0) };

/** The longest come first: of two that begin alike that is meant. */
const fields: readonly (readonly [string, Field])[] = [
  ['MONTH', month(monthNames)],
  ['HH24', digits('hour')],
  ['HH12', digits('hour')],
  ['YYYY', digits('year', /\d{1,4}/y)],
  ['A.M.', noon],
  ['P.M.', noon],
  ['MON', month(monthNames.map((name) => name.slice(0, 3)))],
  ['TZH', digits('zoneHours', /[+-]?\d{1,2}/y)],
  ['TZM', digits('zoneMinutes')],
  ['HH', digits('hour')],
  ['MI', digits('minute')],
  ['SS', digits('second')],
  ['MS', fraction(/\d{1,3}/y)],
  ['US', fraction(/\d{1,6}/y)],
  ['AM', noon],
  ['PM', noon],
  ['MM', digits('month')],
  ['DD', digits('day')],
];

/** A part of a template: a field; a number of characters of any kind; or null, a character between fields. */
type Part = Field | number | null;

const templateLengthMax = 100;
const kept = new Map<string, readonly Part[]>();
const keptMax = 100;

function partsOf(template: string): readonly Part[] {
  const known = kept.get(template);
  if (known !== undefined) return known;
  if (template.length > templateLengthMax)
    throw new ServiceError('REL_TOO_LARGE', `a template of TO_TIMESTAMP has at most ${templateLengthMax} characters`);
  const parts: Part[] = [];
  for (let at = 0; at < template.length; ) {
    const rest = template.slice(at);
    const [name, field] = fields.find(([each]) => rest.toUpperCase().startsWith(each)) ?? [];
    const quoted = /^"([^"]*)"/.exec(rest);
    if (field !== undefined) {
      if (parts.some((part) => part !== null && typeof part === 'object' && part.of === field.of))
        throw new ServiceError('REL_INVALID', `the template says the ${field.of} twice`);
      parts.push(field);
    } else if (quoted === null && /^[A-Za-z]/.test(rest))
      throw new ServiceError('REL_NOT_IMPLEMENTED', `TO_TIMESTAMP with ${/^[A-Za-z]+/.exec(rest)![0]} is not implemented`);
    else parts.push(quoted === null ? null : quoted[1]!.length);
    at += name?.length ?? quoted?.[0].length ?? 1;
  }
  if (kept.size === keptMax) kept.clear();
  kept.set(template, parts);
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
    const found = part.form.exec(text);
    if (found === null) return null;
    read[part.of] = part.value(found[0]);
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
    year = 1,
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
  const date = new Date(0);
  date.setUTCFullYear(year, ofYear - 1, day);
  const isDay = ofYear >= 1 && ofYear <= 12 && date.getUTCMonth() === ofYear - 1 && date.getUTCDate() === day;
  if (!isDay || hour > 24 || minute > 59 || second > 59 || zoneMinutes > 59)
    throw new ServiceError('REL_INVALID', `${JSON.stringify(text.slice(0, 100))} is no such instant`, {
      reason: 'no-such-instant',
    });
  const isWest = zoneHours < 0 || Object.is(zoneHours, -0);
  const minutes = hour * 60 + minute - (zoneHours * 60 + (isWest ? -zoneMinutes : zoneMinutes));
  return (BigInt(date.getTime()) / 1_000n + BigInt(minutes) * 60n + BigInt(second)) * 1_000_000_000n + BigInt(part);
}
