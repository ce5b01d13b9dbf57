/** Values of one type as values of another. What has no value in the other type is an error that does not repeat it. */
import { formatInstant, parseInstant } from '../../../log/timestamp.ts';
import { type Cell, type ColumnType, I64_MAX, I64_MIN } from '../../../log/value.ts';
import { exact, halfAway } from './numbers.ts';
import { type Evaluator, finite, invalid, type ScalarFunction, type Signature, text } from './scalar-function.ts';

/** Names of types as SQL has them. Doubles stand for decimals, instants for dates. */
export const typeNames: ReadonlyMap<string, ColumnType | 'date'> = new Map<string, ColumnType | 'date'>(
  (
    [
      ['integer', 'INTEGER INT BIGINT SMALLINT INT2 INT4 INT8'],
      ['number', 'DOUBLE FLOAT FLOAT4 FLOAT8 REAL NUMBER NUMERIC DECIMAL'],
      ['string', 'TEXT STRING VARCHAR CHAR CHARACTER'],
      ['boolean', 'BOOLEAN BOOL'],
      ['timestamp', 'TIMESTAMP TIMESTAMPTZ DATETIME'],
      ['date', 'DATE'],
      ['json', 'JSON JSONB'],
    ] as const
  ).flatMap(([type, names]) => names.split(' ').map((name): [string, ColumnType | 'date'] => [name, type])),
);

/** A cell of any type as text; an instant as ISO-8601. Types of bigint cells are told by the signature that asks. */
export function written(cell: Cell, type?: ColumnType): string {
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
  if (!/^\s*[+-]?\d{1,30}\s*$/.test(given)) throw invalid('the text is no integer');
  const value = BigInt(given.trim().replace(/^\+/, ''));
  if (value > I64_MAX || value < I64_MIN) throw invalid('the text is an integer beyond 64 bits');
  return value;
}

function numberOf(given: string): number {
  if (!/^\s*[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})(e[+-]?\d{1,6})?\s*$/i.test(given)) throw invalid('the text is no number');
  return finite(Number(given));
}

function booleanOf(given: string): boolean {
  const word = given.trim().toLowerCase();
  if (['true', 't', 'yes', 'y', 'on', '1'].includes(word)) return true;
  if (['false', 'f', 'no', 'n', 'off', '0'].includes(word)) return false;
  throw invalid('the text is no boolean');
}

function jsonOf(given: string): string {
  try {
    JSON.parse(given);
  } catch {
    throw invalid('the text is no JSON');
  }
  return given;
}

/** A scalar of JSON as the text of a cell; null for its null. */
function scalarOf(json: string): string | null {
  const value: unknown = JSON.parse(json);
  if (value === null) return null;
  if (typeof value === 'string') return value;
  if (typeof value === 'object') throw invalid('an object or array of JSON is no single value');
  return json.trim();
}

function wholeOf(value: number): bigint {
  const whole = halfAway(value);
  if (!(whole >= -9_223_372_036_854_775_808 && whole < 9_223_372_036_854_775_808))
    throw invalid('the number is no integer of 64 bits');
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
  return { takes: [from], yields: to, evaluate, raises };
}

const toInstant: readonly Signature[] = [
  cast('timestamp', 'timestamp', same, false),
  cast('integer', 'timestamp', same, false),
  cast('string', 'timestamp', (given) => instantOf(text(given))),
  cast('json', 'timestamp', ofJson(instantOf)),
];

const signaturesTo: Readonly<Record<Exclude<ColumnType, 'vector'> | 'date', readonly Signature[]>> = {
  integer: [
    cast('integer', 'integer', same, false),
    cast('timestamp', 'integer', same, false),
    cast('boolean', 'integer', (value) => (value === true ? 1n : 0n), false),
    cast('number', 'integer', (value) => wholeOf(Number(value))),
    cast('string', 'integer', (given) => integerOf(text(given))),
    cast('json', 'integer', ofJson(integerOf)),
  ],
  number: [
    cast('number', 'number', (value) => Number(value), false),
    cast('string', 'number', (given) => numberOf(text(given))),
    cast('json', 'number', ofJson(numberOf)),
  ],
  string: [
    cast('string', 'string', same, false),
    cast('json', 'string', same, false),
    cast('timestamp', 'string', (value) => written(value!, 'timestamp'), false),
    cast('integer', 'string', (value) => written(value!), false),
    cast('number', 'string', (value) => written(value!), false),
    cast('boolean', 'string', (value) => written(value!), false),
  ],
  boolean: [
    cast('boolean', 'boolean', same, false),
    cast('integer', 'boolean', (value) => value !== 0n, false),
    cast('string', 'boolean', (given) => booleanOf(text(given))),
    cast('json', 'boolean', ofJson(booleanOf)),
  ],
  timestamp: toInstant,
  date: toInstant.map((signature) => ({
    ...signature,
    raises: true,
    evaluate: (cell) => {
      const instant = signature.evaluate(cell!);
      return instant === null ? null : startOfDay(instant as bigint);
    },
  })),
  json: [
    cast('json', 'json', same, false),
    cast('string', 'json', (given) => jsonOf(text(given))),
    cast('timestamp', 'json', (value) => JSON.stringify(written(value!, 'timestamp')), false),
    cast('integer', 'json', (value) => written(value!), false),
    cast('number', 'json', (value) => written(value!), false),
    cast('boolean', 'json', (value) => written(value!), false),
  ],
};

/** What CAST(x AS type) calls, by the type. */
export const casts: ReadonlyMap<ColumnType | 'date', ScalarFunction> = new Map(
  (Object.entries(signaturesTo) as [ColumnType | 'date', readonly Signature[]][]).map(([type, signatures]) => [
    type,
    {
      name: `CAST AS ${type}`,
      group: 'types',
      usage: `CAST(x AS ${type})`,
      summary: '',
      examples: [],
      signatures,
    },
  ]),
);
