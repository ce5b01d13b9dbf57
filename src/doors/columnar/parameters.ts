/** Values of `{name:Type}`: a text as TabSeparated has it, and a type as ClickHouse names it. */
import { ServiceError } from '../../errors.ts';
import { parseInstant } from '../../log/values/timestamp.ts';
import { type Literal, TypedValue } from '../../planner/syntax/statement.ts';
import { refusedAs } from './errors.ts';

/** Smallest and largest value of each integer type. */
const integerRanges: Readonly<Record<string, readonly [bigint, bigint]>> = Object.fromEntries(
  [8n, 16n, 32n, 64n].flatMap((bits) => [
    [`Int${bits}`, [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]],
    [`UInt${bits}`, [0n, (1n << bits) - 1n]],
  ]),
);

/** REL_TYPE_MISMATCH for a value that does not fit its type, REL_NOT_IMPLEMENTED for a type that has no values here. */
export function parameterOf(parameterText: string, parameterType: string, parameterName: string): Literal | TypedValue {
  const nullableType = /^Nullable\((.*)\)$/s.exec(parameterType);
  if (nullableType !== null)
    return parameterText === '\\N' || parameterText === 'NULL'
      ? null
      : parameterOf(parameterText, nullableType[1]!, parameterName);
  const lowCardinalityType = /^LowCardinality\((.*)\)$/s.exec(parameterType);
  if (lowCardinalityType !== null) return parameterOf(parameterText, lowCardinalityType[1]!, parameterName);
  const unescapedValue = unescapeText(parameterText);
  const valueRefusal = (): ServiceError =>
    refusedAs(
      'parameter-value',
      new ServiceError(
        'REL_TYPE_MISMATCH',
        `the value of {${parameterName}:${parameterType.slice(0, 60)}} does not fit its type`,
      ),
    );
  const integerRange = integerRanges[parameterType];
  if (integerRange !== undefined) {
    if (!/^[+-]?\d{1,20}$/.test(unescapedValue)) throw valueRefusal();
    const integerValue = BigInt(unescapedValue);
    if (integerValue < integerRange[0] || integerValue > integerRange[1]) throw valueRefusal();
    if (integerValue > 9_223_372_036_854_775_807n)
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'integers must fit 64 bits with a sign');
    return integerValue;
  }
  if (/^Float(32|64)$/.test(parameterType)) {
    if (!/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(unescapedValue)) throw valueRefusal();
    return Number(unescapedValue);
  }
  if (parameterType === 'Bool') {
    if (!/^(true|false|1|0)$/i.test(unescapedValue)) throw valueRefusal();
    return /^(true|1)$/i.test(unescapedValue);
  }
  if (parameterType === 'String' || /^FixedString\(\d+\)$/.test(parameterType) || parameterType === 'UUID') return unescapedValue;
  if (/^(Date|Date32|DateTime|DateTime\('UTC'\)|DateTime64(\(.*\))?)$/.test(parameterType)) {
    return new TypedValue('timestamp', instantOf(unescapedValue) ?? throwRefusal(valueRefusal()));
  }
  if (/^Array\(Float(32|64)\)$/.test(parameterType)) return new TypedValue('vector', unescapedValue);
  throw new ServiceError('REL_NOT_IMPLEMENTED', `a parameter of the type ${parameterType.slice(0, 60)} is not supported`);
}

/** Nanoseconds of `2024-05-01 10:00:00.123456789`, or of seconds since 1970 with a fraction; null: it is none. */
export function instantOf(instantText: string): bigint | null {
  const secondsMatch = /^(-?\d{1,10})(?:\.(\d{1,9}))?$/.exec(instantText);
  if (secondsMatch !== null) {
    const wholeNs = BigInt(secondsMatch[1]!) * 1_000_000_000n;
    const fractionNs = BigInt((secondsMatch[2] ?? '').padEnd(9, '0'));
    return secondsMatch[1]!.startsWith('-') ? wholeNs - fractionNs : wholeNs + fractionNs;
  }
  try {
    return parseInstant(instantText.replace(/^(\d{4}-\d\d-\d\d) /, '$1T'));
  } catch {
    return null;
  }
}

const parameterEscapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', r: '\r', n: '\n', t: '\t', '0': '\0' };

export function unescapeText(escapedText: string): string {
  return escapedText.includes('\\')
    ? escapedText.replace(/\\(.)/gs, (_, escapedLetter: string) => parameterEscapes[escapedLetter] ?? escapedLetter)
    : escapedText;
}

function throwRefusal(thrownRefusal: ServiceError): never {
  throw thrownRefusal;
}
