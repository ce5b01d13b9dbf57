/** TO_TIMESTAMP by a template such as `YYYY-MM-DD HH24:MI`. Source: PostgreSQL, "Data Type Formatting Functions". */
import { ServiceError } from '../../../errors.ts';

interface Field {
  /** What it reads. */
  readonly form: string;
  readonly of: 'year' | 'month' | 'day' | 'hour' | 'minute' | 'second' | 'fraction' | 'noon' | 'zoneHours' | 'zoneMinutes';
  readonly value: (text: string) => number;
}

const monthNames = 'january february march april may june july august september october november december'.split(' ');
const monthOf = (text: string): number => monthNames.findIndex((name) => name.startsWith(text.toLowerCase().slice(0, 3))) + 1;
const digits = (of: Field['of'], form: string): Field => ({ form, of, value: Number });
const fraction = (width: number): Field => ({
  form: `\\d{1,${width}}`,
  of: 'fraction',
  value: (text) => Number(text.padEnd(9, '0')),
});
const noon: Field = { form: '[ap]\\.?m\\.?', of: 'noon', value: (text) => (/^p/i.test(text) ? 12 : 0) };

/** The longest come first: of two that begin alike that is meant. */
const fields: readonly (readonly [string, Field])[] = [
  ['MONTH', { form: monthNames.join('|'), of: 'month', value: monthOf }],
  ['HH24', digits('hour', '\\d{1,2}')],
  ['HH12', digits('hour', '\\d{1,2}')],
  ['YYYY', digits('year', '\\d{1,4}')],
  ['A.M.', noon],
  ['P.M.', noon],
  ['MON', { form: monthNames.map((name) => name.slice(0, 3)).join('|'), of: 'month', value: monthOf }],
  ['TZH', digits('zoneHours', '[+-]?\\d{1,2}')],
  ['TZM', digits('zoneMinutes', '\\d{1,2}')],
  ['HH', digits('hour', '\\d{1,2}')],
  ['MI', digits('minute', '\\d{1,2}')],
  ['SS', digits('second', '\\d{1,2}')],
  ['MS', fraction(3)],
  ['US', fraction(6)],
  ['AM', noon],
  ['PM', noon],
  ['MM', digits('month', '\\d{1,2}')],
  ['DD', digits('day', '\\d{1,2}')],
];

interface Template {
  readonly pattern: RegExp;
  readonly fields: readonly Field[];
}

const templateLengthMax = 100;
const kept = new Map<string, Template>();
const keptMax = 100;

function templateOf(text: string): Template {
  const known = kept.get(text);
  if (known !== undefined) return known;
  if (text.length > templateLengthMax)
    throw new ServiceError('REL_TOO_LARGE', `a template of TO_TIMESTAMP has at most ${templateLengthMax} characters`);
  const found: Field[] = [];
  let pattern = '^\\s*';
  for (let at = 0; at < text.length; ) {
    const rest = text.slice(at);
    const field = fields.find(([name]) => rest.toUpperCase().startsWith(name));
    const quoted = /^"([^"]*)"/.exec(rest);
    if (field !== undefined) {
      found.push(field[1]);
      pattern += `\\s*(${field[1].form})`;
      at += field[0].length;
    } else if (quoted !== null) {
      pattern += `[^]{${Array.from(quoted[1]!).length}}`;
      at += quoted[0].length;
    } else if (/^[A-Za-z]/.test(rest)) {
      throw new ServiceError('REL_NOT_IMPLEMENTED', `TO_TIMESTAMP with ${/^[A-Za-z]+/.exec(rest)![0]} is not implemented`);
    } else {
      pattern += '[^\\p{L}\\d+-]?-?';
      at++;
    }
  }
  const made = { pattern: new RegExp(pattern, 'iu'), fields: found };
  if (kept.size === keptMax) kept.clear();
  kept.set(text, made);
  return made;
}

/** Nanoseconds since 1970; in UTC where the text says no offset. REL_INVALID where the text does not fit the template. */
export function instantBy(template: string, text: string): bigint {
  const { pattern, fields: of } = templateOf(template);
  const found = pattern.exec(text);
  if (found === null)
    throw new ServiceError('REL_INVALID', `${JSON.stringify(text.slice(0, 100))} does not fit ${JSON.stringify(template)}`, {
      reason: 'instant-form',
    });
  const read: Partial<Record<Field['of'], number>> = {};
  for (const [i, field] of of.entries()) read[field.of] = field.value(found[i + 1]!);
  const {
    year = 1,
    month = 1,
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
  date.setUTCFullYear(year, month - 1, day);
  const isDay = month >= 1 && month <= 12 && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  if (!isDay || hour > 24 || minute > 59 || second > 59 || zoneMinutes > 59)
    throw new ServiceError('REL_INVALID', `${JSON.stringify(text.slice(0, 100))} is no such instant`, {
      reason: 'no-such-instant',
    });
  const minutes = BigInt(hour * 60 + minute) - BigInt(zoneHours * 60 + Math.sign(zoneHours || 1) * zoneMinutes);
  return (BigInt(date.getTime()) / 1_000n + minutes * 60n + BigInt(second)) * 1_000_000_000n + BigInt(part);
}
