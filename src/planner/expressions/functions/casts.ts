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
  ).flatMap(([type, names]) => names.split(' ').map((name): [string, CastTarget] => [name, type])),
);

/** Nanoseconds that a character of JSON takes. */
const parseCost = 8;

/** A cell of any type as text; an instant as ISO-8601. `type` separates instants from integers, since both are bigint cells. */
export function cellText(cell: Cell, type?: ColumnType): string {
  if (typeof cell === 'string') return cell;
  if (typeof cell === 'bigint' && type === 'timestamp') return formatInstant(cell);
  if (typeof cell === 'number') return Object.is(cell, -0) ? '0' : String(cell);
  return String(cell);
}

const day = 86_400_000_000_000n;

export function startOfDay(instant: bigint): bigint {
  const rest = instant % day;
  return exact(instant - (rest < 0n ? rest + day : rest));
}

/** The forms of rule 2, and a space where they have a T. */
export function instantOf(written_: string): bigint {
  return parseInstant(written_.trim().replace(/^(\d{4}-\d{2}-\d{2}) (?=\d)/, '$1T'));
}

function integerOf(given: string): bigint {
  if (!/^\s*[+-]?\d{1,30}\s*$/.test(given)) throw invalid('the text is not an integer', 'text-form');
  const value = BigInt(given.trim().replace(/^\+/, ''));
  if (value > I64_MAX || value < I64_MIN) throw outOfRange('the text is an integer beyond 64 bits');
  return value;
}

function numberOf(given: string): number {
  if (!/^\s*[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})(e[+-]?\d{1,6})?\s*$/i.test(given))
    throw invalid('the text is not a number', 'text-form');
  return finite(Number(given));
}

function uuidOf(given: string): string {
  const hex = given
    .trim()
    .toLowerCase()
    .replace(/^\{(.*)\}$/, '$1')
    .replaceAll('-', '');
  if (!/^[0-9a-f]{32}$/.test(hex)) throw invalid('the text is not a UUID', 'text-form');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

function booleanOf(given: string): boolean {
  const word = given.trim().toLowerCase();
  if (['true', 't', 'yes', 'y', 'on', '1'].includes(word)) return true;
  if (['false', 'f', 'no', 'n', 'off', '0'].includes(word)) return false;
  throw invalid('the text is not a boolean', 'text-form');
}

function jsonOf(given: string): string {
  // One call reads it, however long it is.
  work.done += given.length * parseCost;
  try {
    JSON.parse(given);
  } catch {
    throw invalid('the text is not JSON', 'text-form');
  }
  return given;
}

/** A scalar of JSON as the text of a cell; null for its null. */
function scalarOf(json: string): string | null {
  if (/^\s*[[{]/.test(json)) throw invalid('an object or array of JSON is not a single value');
  const value: unknown = JSON.parse(json);
  if (value === null) return null;
  if (typeof value === 'string') return value;
  return json.trim();
}

function wholeOf(value: number): bigint {
  const whole = halfAway(value);
  if (!(whole >= -9_223_372_036_854_775_808 && whole < 9_223_372_036_854_775_808))
    throw outOfRange('the number is not an integer of 64 bits');
  return BigInt(whole);
}

const same: Evaluator = (cell) => cell!;
const ofJson =
  (convert: (given: string) => Cell): Evaluator =>
  (json) => {
    const scalar = scalarOf(text(json));
    return scalar === null ? null : convert(scalar);
  };

function cast(from: ColumnType, to: ColumnType, evaluate: Evaluator, raises = true): Signature {
  return { takes: [from], cost: linear, yields: to, evaluate, raises };
}

const toInstant: readonly Signature[] = [
  cast('timestamp', 'timestamp', same, false),
  cast('integer', 'timestamp', same, false),
  cast('string', 'timestamp', (given) => instantOf(text(given))),
  cast('json', 'timestamp', ofJson(instantOf)),
];

function daysBegun(signatures: readonly Signature[]): readonly Signature[] {
  return signatures.map((signature) => ({
    ...signature,
    raises: true,
    evaluate: (cell) => {
      const instant = signature.evaluate(cell!);
      return instant === null ? null : startOfDay(instant as bigint);
    },
  }));
}

const toInteger: readonly Signature[] = [
  cast('integer', 'integer', same, false),
  cast('timestamp', 'integer', same, false),
  cast('boolean', 'integer', (value) => (value === true ? 1n : 0n), false),
  cast('number', 'integer', (value) => wholeOf(Number(value))),
  cast('string', 'integer', (given) => integerOf(text(given))),
  cast('json', 'integer', ofJson(integerOf)),
];

const toNumber: readonly Signature[] = [
  cast('number', 'number', (value) => Number(value), false),
  cast('string', 'number', (given) => numberOf(text(given))),
  cast('json', 'number', ofJson(numberOf)),
];

/** Restricts casts to values for which `fits` holds. */
function fitting(signatures: readonly Signature[], name: string, fits: (cell: bigint | number) => boolean): readonly Signature[] {
  return signatures.map((signature) => ({
    ...signature,
    raises: true,
    evaluate: (given) => {
      const cell = signature.evaluate(given!);
      if (cell !== null && !fits(cell as bigint | number)) throw outOfRange(`${name} out of range`);
      return cell;
    },
  }));
}

const floatMax = 3.4028234663852886e38;

const signaturesTo: Readonly<Record<Exclude<CastTarget, 'vector'>, readonly Signature[]>> = {
  integer: toInteger,
  int4: fitting(toInteger, 'integer', (value) => BigInt.asIntN(32, value as bigint) === value),
  int2: fitting(toInteger, 'smallint', (value) => BigInt.asIntN(16, value as bigint) === value),
  number: toNumber,
  uuid: [cast('string', 'string', (given) => uuidOf(text(given)))],
  float4: fitting(toNumber, 'real', (value) => Math.abs(Number(value)) <= floatMax),
  string: [
    cast('string', 'string', same, false),
    cast('json', 'string', same, false),
    cast('timestamp', 'string', (value) => cellText(value!, 'timestamp'), false),
    cast('integer', 'string', (value) => cellText(value!), false),
    cast('number', 'string', (value) => cellText(value!), false),
    cast('boolean', 'string', (value) => cellText(value!), false),
  ],
  boolean: [
    cast('boolean', 'boolean', same, false),
    cast('integer', 'boolean', (value) => value !== 0n, false),
    cast('string', 'boolean', (given) => booleanOf(text(given))),
    cast('json', 'boolean', ofJson(booleanOf)),
  ],
  timestamp: toInstant,
  date: daysBegun(toInstant),
  json: [
    cast('json', 'json', same, false),
    cast('string', 'json', (given) => jsonOf(text(given))),
    cast('timestamp', 'json', (value) => JSON.stringify(cellText(value!, 'timestamp')), false),
    cast('integer', 'json', (value) => cellText(value!), false),
    cast('number', 'json', (value) => cellText(value!), false),
    cast('boolean', 'json', (value) => cellText(value!), false),
  ],
};

const zonedText = cast('timestamp', 'string', (value) => formatZonedInstant(value as bigint, 9), false);
const zonedInstants: readonly Signature[] = [
  cast('timestamp', 'timestamp', same, false),
  cast('string', 'timestamp', (given) => parseZonedInstant(text(given))),
  cast('json', 'timestamp', ofJson(parseZonedInstant)),
];

/** The function that CAST(x AS type) calls, by the type. */
export const casts = castsOf(signaturesTo);
/** The same in the wide dialect: a text is an instant in each form of Postgres, and an integer is none. */
export const wideCasts = castsOf({
  ...signaturesTo,
  timestamp: zonedInstants,
  date: [
    cast('string', 'timestamp', (given) => parseZonedDay(text(given))),
    cast('json', 'timestamp', ofJson(parseZonedDay)),
    ...daysBegun(zonedInstants),
  ],
  string: [zonedText, ...signaturesTo.string],
});
/** A day as text. */
export const dayText = {
  ...wideCasts.get('string')!,
  signatures: [cast('timestamp', 'string', (value) => formatDay(value as bigint), false)],
};

/** An instant without a zone as text. */
export const localText = {
  ...wideCasts.get('string')!,
  signatures: [cast('timestamp', 'string', (value) => formatZonedInstant(value as bigint, 9).replace('+00', ''), false)],
};

function castsOf(signatures: typeof signaturesTo): ReadonlyMap<CastTarget, ScalarFunction> {
  return new Map(
    (Object.entries(signatures) as [CastTarget, readonly Signature[]][]).map(([type, each]) => {
      const name = `CAST AS ${type}`;
      return [type, { name, group: 'types', usage: `CAST(x AS ${type})`, summary: '', examples: [], signatures: each }];
    }),
  );
}
