/** TO_TIMESTAMP and TO_DATE by a template such as `YYYY-MM-DD HH24:MI`. Source: PostgreSQL, "Data Type Formatting Functions". */
import { ServiceError } from '../../../errors.ts';
import { dayNames, monthNames as names, romanMonths } from './to-char.ts';

interface TemplateField {
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
const monthField = (names: readonly string[]): TemplateField => ({
  form: new RegExp(names.join('|'), 'iy'),
  of: 'month',
  value: monthOf,
});
const digitsField = (of: TemplateField['of'], form = /\d{1,2}/y): TemplateField => ({ form, of, value: Number });
const fractionField = (form: RegExp): TemplateField => ({ form, of: 'fraction', value: (text) => Number(text.padEnd(9, '0')) });
const eraField: TemplateField = { form: /[ab]\.?[dc]\.?/iy, of: 'era', value: (text) => (/^b/i.test(text) ? -1 : 1) };
/** Read, and without any effect. */
const ignoredField = (form: RegExp): TemplateField => ({ form, of: 'passed over', value: () => 0 });
/** A year of fewer digits is the nearest one to 2020. */
const shortYearField = (digits: number, size: number): TemplateField => ({
  form: new RegExp(`\\d{1,${digits}}`, 'y'),
  of: 'year',
  value: (text) => {
    const year = Number(text);
    if (text.length > size) return year;
    return year < 70 ? year + 2_000 : year < 100 ? year + 1_900 : year < 520 ? year + 2_000 : year < 1_000 ? year + 1_000 : year;
  },
});
const romanMonthForm = new RegExp([...romanMonths].sort((a, b) => b.length - a.length).join('|'), 'iy');
const romanMonthField: TemplateField = {
  form: romanMonthForm,
  of: 'month',
  value: (text) => romanMonths.indexOf(text.toUpperCase()) + 1,
};
const noonField: TemplateField = { form: /[ap]\.?m\.?/iy, of: 'noon', value: (text) => (/^p/i.test(text) ? 12 : 0) };

/** The longest come first: of two that begin alike that is meant. */
const templateFields: readonly (readonly [string, TemplateField])[] = [
  ['SSSSS', digitsField('secondOfDay', /\d{1,5}/y)],
  ['MONTH', monthField(monthNames)],
  ['Y,YYY', { form: /\d{1,3},\d{3}/y, of: 'year', value: (text) => Number(text.replace(',', '')) }],
  ['HH24', digitsField('hour')],
  ['HH12', digitsField('hour')],
  ['YYYY', digitsField('year', /\d{1,4}/y)],
  ['SSSS', digitsField('secondOfDay', /\d{1,5}/y)],
  ['A.M.', noonField],
  ['P.M.', noonField],
  ['A.D.', eraField],
  ['B.C.', eraField],
  ['DDD', digitsField('dayOfYear', /\d{1,3}/y)],
  ['DAY', ignoredField(new RegExp(dayNames.join('|'), 'iy'))],
  ['YYY', shortYearField(3, 3)],
  ['MON', monthField(monthNames.map((name) => name.slice(0, 3)))],
  ['TZH', digitsField('zoneHours', /[+-]?\d{1,2}/y)],
  ['TZM', digitsField('zoneMinutes')],
  ...[1, 2, 3, 4, 5, 6].map((n): readonly [string, TemplateField] => [`FF${n}`, fractionField(new RegExp(`\\d{1,${n}}`, 'y'))]),
  ['HH', digitsField('hour')],
  ['MI', digitsField('minute')],
  ['SS', digitsField('second')],
  ['MS', fractionField(/\d{1,3}/y)],
  ['US', fractionField(/\d{1,6}/y)],
  ['AM', noonField],
  ['PM', noonField],
  ['MM', digitsField('month')],
  ['DD', digitsField('day')],
  ['DY', ignoredField(new RegExp(dayNames.map((name) => name.slice(0, 3)).join('|'), 'iy'))],
  ['YY', shortYearField(2, 2)],
  ['WW', ignoredField(/\d{1,2}/y)],
  ['RM', romanMonthField],
  ['BC', eraField],
  ['AD', eraField],
  ['J', digitsField('julian', /\d{1,9}/y)],
  ['Q', ignoredField(/\d/y)],
  ['W', ignoredField(/\d/y)],
  ['D', ignoredField(/\d/y)],
  ['Y', shortYearField(1, 1)],
];

/** A part of a template: a field; a number of characters of any kind; or null, a character between fields. */
type TemplatePart = TemplateField | number | null;

const templateLengthMax = 100;
const templateCache = new Map<string, readonly TemplatePart[]>();
const parsedTemplatesMax = 100;

function templateParts(template: string): readonly TemplatePart[] {
  const parsedTemplate = templateCache.get(template);
  if (parsedTemplate !== undefined) return parsedTemplate;
  if (template.length > templateLengthMax)
    throw new ServiceError('REL_TOO_LARGE', `a template of TO_TIMESTAMP has at most ${templateLengthMax} characters`);
  const parsedParts: TemplatePart[] = [];
  for (let templateOffset = 0; templateOffset < template.length; ) {
    const templateRest = template.slice(templateOffset);
    const templatePrefix = /^(?:FM|TM|FX)/i.exec(templateRest);
    if (
      templatePrefix ||
      (/^TH/i.test(templateRest) &&
        !/^TZ/i.test(templateRest) &&
        typeof parsedParts.at(-1) === 'object' &&
        parsedParts.at(-1) !== null)
    ) {
      if (templatePrefix === null) parsedParts.push(ignoredField(/(?:st|nd|rd|th)?/iy));
      templateOffset += 2;
      continue;
    }
    const [fieldName, templateField] =
      templateFields.find(([fieldCode]) => templateRest.toUpperCase().startsWith(fieldCode)) ?? [];
    const quotedText = /^"([^"]*)"/.exec(templateRest);
    if (templateField !== undefined) {
      const { of } = templateField;
      if (
        of !== 'passed over' &&
        parsedParts.some((earlierPart) => earlierPart !== null && typeof earlierPart === 'object' && earlierPart.of === of)
      )
        throw new ServiceError('REL_INVALID', `the template says the ${templateField.of} twice`);
      parsedParts.push(templateField);
    } else if (quotedText === null && /^[A-Za-z]/.test(templateRest))
      throw new ServiceError(
        'REL_NOT_IMPLEMENTED',
        `TO_TIMESTAMP with ${/^[A-Za-z]+/.exec(templateRest)![0]} is not implemented`,
      );
    else parsedParts.push(quotedText === null ? null : quotedText[1]!.length);
    templateOffset += fieldName?.length ?? quotedText?.[0].length ?? 1;
  }
  if (templateCache.size === parsedTemplatesMax) templateCache.clear();
  templateCache.set(template, parsedParts);
  return parsedParts;
}

const templateSeparator = /[^\p{L}\p{N}+-]/u;

/** Reads the fields from left to right, each once; null where one does not match. */
function readTemplateFields(
  parsedTemplate: readonly TemplatePart[],
  instantText: string,
): Partial<Record<TemplateField['of'], number>> | null {
  const readFieldValues: Partial<Record<TemplateField['of'], number>> = {};
  let textOffset = 0;
  for (const [i, templatePart] of parsedTemplate.entries()) {
    if (typeof templatePart === 'number') {
      textOffset += templatePart;
      continue;
    }
    while (textOffset < instantText.length && instantText[textOffset]!.trim() === '') textOffset++;
    if (templatePart === null) {
      const nextPart = parsedTemplate[i + 1];
      const isSign = nextPart !== null && typeof nextPart === 'object' && nextPart.of === 'zoneHours';
      if (
        textOffset < instantText.length &&
        (templateSeparator.test(instantText[textOffset]!) || (instantText[textOffset] === '-' && !isSign))
      )
        textOffset++;
      continue;
    }
    templatePart.form.lastIndex = textOffset;
    const match = templatePart.form.exec(instantText);
    if (match === null) return null;
    readFieldValues[templatePart.of] = templatePart.value(match[0]);
    textOffset = templatePart.form.lastIndex;
  }
  return readFieldValues;
}

/** Nanoseconds since 1970; in UTC where the text says no offset. REL_INVALID where the text does not fit the template. */
export function instantBy(template: string, instantText: string): bigint {
  const fieldValues = readTemplateFields(templateParts(template), instantText);
  if (fieldValues === null)
    throw new ServiceError(
      'REL_INVALID',
      `${JSON.stringify(instantText.slice(0, 100))} does not fit ${JSON.stringify(template)}`,
      {
        reason: 'instant-form',
      },
    );
  const {
    era: eraSign = 1,
    dayOfYear,
    julian,
    secondOfDay = 0,
    month: monthOfYear = 1,
    day = 1,
    minute = 0,
    second = 0,
    fraction: fractionNs = 0,
    noon: halfDayHours,
    zoneHours = 0,
    zoneMinutes = 0,
  } = fieldValues;
  const hour = halfDayHours === undefined ? (fieldValues.hour ?? 0) : ((fieldValues.hour ?? 12) % 12) + halfDayHours;
  // The year 0 is read as the first before Christ.
  const calendarYear = eraSign < 0 ? 1 - (fieldValues.year ?? 1) : (fieldValues.year ?? (dayOfYear === undefined ? 1 : 0));
  const instantDate = new Date(0);
  if (julian !== undefined) instantDate.setUTCDate(julian - 2_440_588 + 1);
  else if (dayOfYear === undefined) instantDate.setUTCFullYear(calendarYear, monthOfYear - 1, day);
  else instantDate.setUTCFullYear(calendarYear, 0, dayOfYear);
  const isMonthDate = julian === undefined && dayOfYear === undefined;
  const isCalendarDay =
    !isMonthDate ||
    (monthOfYear >= 1 && monthOfYear <= 12 && instantDate.getUTCMonth() === monthOfYear - 1 && instantDate.getUTCDate() === day);
  if (!isCalendarDay || hour > 24 || minute > 59 || second > 59 || zoneMinutes > 59)
    throw new ServiceError('REL_INVALID', `${JSON.stringify(instantText.slice(0, 100))} is no such instant`, {
      reason: 'no-such-instant',
    });
  const isWest = zoneHours < 0 || Object.is(zoneHours, -0);
  const utcMinutes = hour * 60 + minute - (zoneHours * 60 + (isWest ? -zoneMinutes : zoneMinutes));
  return (
    (BigInt(instantDate.getTime()) / 1_000n + BigInt(utcMinutes) * 60n + BigInt(second + secondOfDay)) * 1_000_000_000n +
    BigInt(fractionNs)
  );
}
