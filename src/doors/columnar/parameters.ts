/** Values of `{name:Type}`: a text as TabSeparated has it, and a type as ClickHouse names it. */
import { ServiceError } from '../../errors.ts';
import { parseInstant } from '../../log/values/timestamp.ts';
import { type Literal, TypedValue } from '../../planner/syntax/statement.ts';
import { refusedAs } from './errors.ts';

/** Smallest and largest value of each integer type. */
const ranges: Readonly<Record<string, readonly [bigint, bigint]>> = Object.fromEntries(
  [8n, 16n, 32n, 64n].flatMap((bits) => [
    [`Int${bits}`, [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]],
    [`UInt${bits}`, [0n, (1n << bits) - 1n]],
  ]),
);

/** REL_TYPE_MISMATCH for a value that does not fit its type, REL_NOT_IMPLEMENTED for a type that has no values here. */
export function parameterOf(text: string, type: string, name: string): Literal | TypedValue {
  const nullable = /^Nullable\((.*)\)$/s.exec(type);
  if (nullable !== null) return text === '\\N' || text === 'NULL' ? null : parameterOf(text, nullable[1]!, name);
  const low = /^LowCardinality\((.*)\)$/s.exec(type);
  if (low !== null) return parameterOf(text, low[1]!, name);
  const value = unescapeText(text);
  const wrong = (): ServiceError =>
    refusedAs(
      'parameter-value',
      new ServiceError('REL_TYPE_MISMATCH', `the value of {${name}:${type.slice(0, 60)}} does not fit its type`),
    );
  const range = ranges[type];
  if (range !== undefined) {
    if (!/^[+-]?\d{1,20}$/.test(value)) throw wrong();
    const number = BigInt(value);
    if (number < range[0] || number > range[1]) throw wrong();
    if (number > 9_223_372_036_854_775_807n)
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'integers must fit 64 bits with a sign');
    return number;
  }
  if (/^Float(32|64)$/.test(type)) {
    if (!/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(value)) throw wrong();
    return Number(value);
  }
  if (type === 'Bool') {
    if (!/^(true|false|1|0)$/i.test(value)) throw wrong();
    return /^(true|1)$/i.test(value);
  }
  if (type === 'String' || /^FixedString\(\d+\)$/.test(type) || type === 'UUID') return value;
  if (/^(Date|Date32|DateTime|DateTime\('UTC'\)|DateTime64(\(.*\))?)$/.test(type)) {
    return new TypedValue('timestamp', instantOf(value) ?? fail(wrong()));
  }
  if (/^Array\(Float(32|64)\)$/.test(type)) return new TypedValue('vector', value);
  throw new ServiceError('REL_NOT_IMPLEMENTED', `a parameter of the type ${type.slice(0, 60)} is not supported`);
}

/** Nanoseconds of `2024-05-01 10:00:00.123456789`, or of seconds since 1970 with a fraction; null: it is none. */
export function instantOf(text: string): bigint | null {
  const seconds = /^(-?\d{1,10})(?:\.(\d{1,9}))?$/.exec(text);
  if (seconds !== null) {
    const whole = BigInt(seconds[1]!) * 1_000_000_000n;
    const fraction = BigInt((seconds[2] ?? '').padEnd(9, '0'));
    return seconds[1]!.startsWith('-') ? whole - fraction : whole + fraction;
  }
  try {
    return parseInstant(text.replace(/^(\d{4}-\d\d-\d\d) /, '$1T'));
  } catch {
    return null;
  }
}

const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', r: '\r', n: '\n', t: '\t', '0': '\0' };

export function unescapeText(text: string): string {
  return text.includes('\\') ? text.replace(/\\(.)/gs, (_, letter: string) => escapes[letter] ?? letter) : text;
}

function fail(error: ServiceError): never {
  throw error;
}
