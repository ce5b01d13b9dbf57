/** Casts between types. A value that can't be cast is an error whose text does not repeat the value. */
import {
  formatDay,
  formatInstant,
  formatZonedInstant,
  parseInstant,
  parseZonedDay,
  parseZonedInstant,
} from '../../../log/values/timestamp.ts';
import { type Cell, type ColumnType, I64_MAX, I64_MIN } from '../../../log/values/value.ts';
import { exact, halfAway } from './numbers.ts';
import {
  type Evaluator,
  finite,
  invalid,
  linear,
  outOfRange,
  type ScalarFunction,
  type Signature,
  text,
} from './scalar-function.ts';
import { work } from '../expression-cost.ts';

/** Types that hold less than the column type that they are values of: what does not fit is an error. */
export const sizedTypes = { int2: 'integer', int4: 'integer', float4: 'number', uuid: 'string' } as const satisfies Record<
  string,
  ColumnType
>;
export type CastTarget = ColumnType | 'date' | keyof typeof sizedTypes;

export function isSized(target: CastTarget): target is keyof typeof sizedTypes {
  return Object.hasOwn(sizedTypes, target);
}

/** Names of types as SQL has them. Doubles stand for decimals, instants for dates. */
export const typeNames: ReadonlyMap<string, CastTarget> = new Map<string, CastTarget>(
  (
    [
      ['integer', 'INTEGER INT BIGINT INT8 OID'],
      ['int4', 'INT4'],
      ['int2', 'SMALLINT INT2'],
      ['number', 'DOUBLE FLOAT FLOAT8 NUMBER NUMERIC DECIMAL'],
      ['float4', 'REAL FLOAT4'],
      ['string', 'TEXT STRING VARCHAR CHAR CHARACTER BPCHAR NAME'],
      ['uuid', 'UUID'],
      ['boolean', 'BOOLEAN BOOL'],
      ['timestamp', 'TIMESTAMP TIMESTAMPTZ DATETIME'],
      ['date', 'DATE'],
      ['json', 'JSON JSONB'],
      ['vector', 'VECTOR'],
    ] as const
  ).flatMap(([type, names]) => names.split(' ').map((sqlTypeName): [string, CastTarget] => [sqlTypeName, type])),
);

/** Nanoseconds that a character of JSON takes. */
const jsonParseCost = 8;

/** A cell of any type as text; an instant as ISO-8601. `type` separates instants from integers, since both are bigint cells. */
export function cellText(cell: Cell, type?: ColumnType): string {
  if (typeof cell === 'string') return cell;
  if (typeof cell === 'bigint' && type === 'timestamp') return formatInstant(cell);
  if (typeof cell === 'number') return Object.is(cell, -0) ? '0' : String(cell);
  return String(cell);
}

const dayLengthNs = 86_400_000_000_000n;

export function startOfDay(instant: bigint): bigint {
  const nsIntoDay = instant % dayLengthNs;
  return exact(instant - (nsIntoDay < 0n ? nsIntoDay + dayLengthNs : nsIntoDay));
}

/** The forms of rule 2, and a space where they have a T. */
export function instantOf(instantText: string): bigint {
  return parseInstant(instantText.trim().replace(/^(\d{4}-\d{2}-\d{2}) (?=\d)/, '$1T'));
}

function parseIntegerText(integerText: string): bigint {
  if (!/^\s*[+-]?\d{1,30}\s*$/.test(integerText)) throw invalid('the text is not an integer', 'text-form');
  const parsedInteger = BigInt(integerText.trim().replace(/^\+/, ''));
  if (parsedInteger > I64_MAX || parsedInteger < I64_MIN) throw outOfRange('the text is an integer beyond 64 bits');
  return parsedInteger;
}

function parseNumberText(numberText: string): number {
  if (!/^\s*[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})(e[+-]?\d{1,6})?\s*$/i.test(numberText))
    throw invalid('the text is not a number', 'text-form');
  return finite(Number(numberText));
}

function parseUuidText(uuidText: string): string {
  const uuidHex = uuidText
    .trim()
    .toLowerCase()
    .replace(/^\{(.*)\}$/, '$1')
    .replaceAll('-', '');
  if (!/^[0-9a-f]{32}$/.test(uuidHex)) throw invalid('the text is not a UUID', 'text-form');
  return [uuidHex.slice(0, 8), uuidHex.slice(8, 12), uuidHex.slice(12, 16), uuidHex.slice(16, 20), uuidHex.slice(20)].join('-');
}

function parseBooleanText(booleanText: string): boolean {
  const booleanWord = booleanText.trim().toLowerCase();
  if (['true', 't', 'yes', 'y', 'on', '1'].includes(booleanWord)) return true;
  if (['false', 'f', 'no', 'n', 'off', '0'].includes(booleanWord)) return false;
  throw invalid('the text is not a boolean', 'text-form');
}

function checkJsonText(jsonText: string): string {
  // One call reads it, however long it is.
  work.done += jsonText.length * jsonParseCost;
  try {
    JSON.parse(jsonText);
  } catch {
    throw invalid('the text is not JSON', 'text-form');
  }
  return jsonText;
}

/** A scalar of JSON as the text of a cell; null for its null. */
function scalarOfJson(json: string): string | null {
  if (/^\s*[[{]/.test(json)) throw invalid('an object or array of JSON is not a single value');
  const jsonScalar: unknown = JSON.parse(json);
  if (jsonScalar === null) return null;
  if (typeof jsonScalar === 'string') return jsonScalar;
  return json.trim();
}

function roundToInteger(value: number): bigint {
  const roundedNumber = halfAway(value);
  if (!(roundedNumber >= -9_223_372_036_854_775_808 && roundedNumber < 9_223_372_036_854_775_808))
    throw outOfRange('the number is not an integer of 64 bits');
  return BigInt(roundedNumber);
}

const unchangedCell: Evaluator = (cell) => cell!;
const castJsonScalar =
  (castScalar: (given: string) => Cell): Evaluator =>
  (json) => {
    const scalarText = scalarOfJson(text(json));
    return scalarText === null ? null : castScalar(scalarText);
  };

function castSignature(from: ColumnType, to: ColumnType, evaluate: Evaluator, raises = true): Signature {
  return { takes: [from], cost: linear, yields: to, evaluate, raises };
}

const instantCasts: readonly Signature[] = [
  castSignature('timestamp', 'timestamp', unchangedCell, false),
  castSignature('integer', 'timestamp', unchangedCell, false),
  castSignature('string', 'timestamp', (given) => instantOf(text(given))),
  castSignature('json', 'timestamp', castJsonScalar(instantOf)),
];

function dateCasts(signatures: readonly Signature[]): readonly Signature[] {
  return signatures.map((signature) => ({
    ...signature,
    raises: true,
    evaluate: (cell) => {
      const instant = signature.evaluate(cell!);
      return instant === null ? null : startOfDay(instant as bigint);
    },
  }));
}

const integerCasts: readonly Signature[] = [
  castSignature('integer', 'integer', unchangedCell, false),
  castSignature('timestamp', 'integer', unchangedCell, false),
  castSignature('boolean', 'integer', (value) => (value === true ? 1n : 0n), false),
  castSignature('number', 'integer', (value) => roundToInteger(Number(value))),
  castSignature('string', 'integer', (given) => parseIntegerText(text(given))),
  castSignature('json', 'integer', castJsonScalar(parseIntegerText)),
];

const numberCasts: readonly Signature[] = [
  castSignature('number', 'number', (value) => Number(value), false),
  castSignature('string', 'number', (given) => parseNumberText(text(given))),
  castSignature('json', 'number', castJsonScalar(parseNumberText)),
];

/** Restricts casts to values for which `fitsCastRange` holds. */
function rangeCheckedCasts(
  signatures: readonly Signature[],
  name: string,
  fitsCastRange: (cell: bigint | number) => boolean,
): readonly Signature[] {
  return signatures.map((signature) => ({
    ...signature,
    raises: true,
    evaluate: (given) => {
      const cell = signature.evaluate(given!);
      if (cell !== null && !fitsCastRange(cell as bigint | number)) throw outOfRange(`${name} out of range`);
      return cell;
    },
  }));
}

const floatMax = 3.4028234663852886e38;

const castSignatures: Readonly<Record<Exclude<CastTarget, 'vector'>, readonly Signature[]>> = {
  integer: integerCasts,
  int4: rangeCheckedCasts(integerCasts, 'integer', (value) => BigInt.asIntN(32, value as bigint) === value),
  int2: rangeCheckedCasts(integerCasts, 'smallint', (value) => BigInt.asIntN(16, value as bigint) === value),
  number: numberCasts,
  uuid: [castSignature('string', 'string', (given) => parseUuidText(text(given)))],
  float4: rangeCheckedCasts(numberCasts, 'real', (value) => Math.abs(Number(value)) <= floatMax),
  string: [
    castSignature('string', 'string', unchangedCell, false),
    castSignature('json', 'string', unchangedCell, false),
    castSignature('timestamp', 'string', (value) => cellText(value!, 'timestamp'), false),
    castSignature('integer', 'string', (value) => cellText(value!), false),
    castSignature('number', 'string', (value) => cellText(value!), false),
    castSignature('boolean', 'string', (value) => cellText(value!), false),
  ],
  boolean: [
    castSignature('boolean', 'boolean', unchangedCell, false),
    castSignature('integer', 'boolean', (value) => value !== 0n, false),
    castSignature('string', 'boolean', (given) => parseBooleanText(text(given))),
    castSignature('json', 'boolean', castJsonScalar(parseBooleanText)),
  ],
  timestamp: instantCasts,
  date: dateCasts(instantCasts),
  json: [
    castSignature('json', 'json', unchangedCell, false),
    castSignature('string', 'json', (given) => checkJsonText(text(given))),
    castSignature('timestamp', 'json', (value) => JSON.stringify(cellText(value!, 'timestamp')), false),
    castSignature('integer', 'json', (value) => cellText(value!), false),
    castSignature('number', 'json', (value) => cellText(value!), false),
    castSignature('boolean', 'json', (value) => cellText(value!), false),
  ],
};

const zonedTextCast = castSignature('timestamp', 'string', (value) => formatZonedInstant(value as bigint, 9), false);
const zonedInstantCasts: readonly Signature[] = [
  castSignature('timestamp', 'timestamp', unchangedCell, false),
  castSignature('string', 'timestamp', (given) => parseZonedInstant(text(given))),
  castSignature('json', 'timestamp', castJsonScalar(parseZonedInstant)),
];

/** The function that CAST(x AS type) calls, by the type. */
export const casts = castsOf(castSignatures);
/** The same in the wide dialect: a text is an instant in each form of Postgres, and an integer is none. */
export const wideCasts = castsOf({
  ...castSignatures,
  timestamp: zonedInstantCasts,
  date: [
    castSignature('string', 'timestamp', (given) => parseZonedDay(text(given))),
    castSignature('json', 'timestamp', castJsonScalar(parseZonedDay)),
    ...dateCasts(zonedInstantCasts),
  ],
  string: [zonedTextCast, ...castSignatures.string],
});
/** A day as text. */
export const dayText = {
  ...wideCasts.get('string')!,
  signatures: [castSignature('timestamp', 'string', (value) => formatDay(value as bigint), false)],
};

/** An instant without a zone as text. */
export const localText = {
  ...wideCasts.get('string')!,
  signatures: [castSignature('timestamp', 'string', (value) => formatZonedInstant(value as bigint, 9).replace('+00', ''), false)],
};

function castsOf(signatures: typeof castSignatures): ReadonlyMap<CastTarget, ScalarFunction> {
  return new Map(
    (Object.entries(signatures) as [CastTarget, readonly Signature[]][]).map(([type, targetSignatures]) => {
      const castName = `CAST AS ${type}`;
      return [
        type,
        { name: castName, group: 'types', usage: `CAST(x AS ${type})`, summary: '', examples: [], signatures: targetSignatures },
      ];
    }),
  );
}
