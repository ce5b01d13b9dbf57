/** Values that a client binds to `$1`, `$2` …: bytes in one of two formats and of a Postgres type, as the planner takes them. */
import { type ErrorReason, ServiceError } from '../../errors.ts';
import { FOREVER, INSTANT_MIN, parseZonedDay, parseZonedInstant } from '../../log/values/timestamp.ts';
import { type ColumnType, I64_MAX, I64_MIN } from '../../log/values/value.ts';
import { type Literal, type ParameterType, TypedValue } from '../../planner/syntax/statement.ts';
import { utf8 } from '../shared/utf8.ts';
import { microsecondsTo2000, parameterType } from '../../planner/system-catalogue/postgres-column-types.ts';
import { withoutTrailing } from '../../log/values/trim-end.ts';

/** Values of `$1`, `$2` … as they were bound. */
export interface BoundParameter {
  readonly values: readonly (Buffer | null)[];
  readonly formats: readonly number[];
  readonly oids: readonly number[];
  /** Once they are known. */
  readonly types: readonly ParameterType[] | null;
  /** Receives the types that are inferred on the way: the next values of the statement have them, too. */
  readonly onTypes?: (types: readonly ParameterType[]) => void;
}

const oid = {
  bool: 16,
  bytea: 17,
  name: 19,
  int8: 20,
  int2: 21,
  int4: 23,
  text: 25,
  oid: 26,
  json: 114,
  float4: 700,
  float8: 701,
  unknown: 705,
  bpchar: 1042,
  varchar: 1043,
  date: 1082,
  timestamp: 1114,
  timestamptz: 1184,
  numeric: 1700,
  uuid: 2950,
  jsonb: 3802,
  vector: 16_385,
} as const;

const parameterTypes: Readonly<Record<number, ParameterType>> = {
  [oid.bool]: 'boolean',
  [oid.int2]: 'integer',
  [oid.int4]: 'integer',
  [oid.int8]: 'integer',
  [oid.oid]: 'integer',
  [oid.float4]: 'number',
  [oid.float8]: 'number',
  [oid.numeric]: 'number',
  [oid.text]: 'string',
  [oid.name]: 'string',
  [oid.bpchar]: 'string',
  [oid.varchar]: 'string',
  [oid.uuid]: 'string',
  [oid.json]: 'json',
  [oid.jsonb]: 'json',
  [oid.date]: 'date',
  [oid.timestamp]: 'timestamp',
  [oid.timestamptz]: 'timestamp',
  [oid.vector]: 'vector',
};

/** null: the client leaves it open. Throws REL_NOT_IMPLEMENTED for a type that no column is of. */
export function statedType(stated: number): ParameterType | null {
  if (stated === 0 || stated === oid.unknown) return null;
  const parameterType = parameterTypes[stated];
  if (parameterType === undefined) {
    const what = stated === oid.bytea ? 'bytea' : `the type of number ${stated}`;
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      `parameters of ${what} are not implemented: send text, a number, a boolean, json or a timestamp`,
    );
  }
  return parameterType;
}

/**
 * The type in which a parameter has to be sent, once its meaning is known; `list`: a list, of the type that a cast states, or 0.
 */
export function describedOid(stated: number, inferredType: ParameterType, list?: number): number {
  if (stated !== 0 && stated !== oid.unknown) return stated;
  if (list === undefined) return parameterType(inferredType).oid;
  return list === 0 ? parameterType(inferredType).array : list;
}

/** The type of a binary value for a column, by its length: clients send integers and numbers in the width that they have. */
export function parameterOid(column: ColumnType, bytes: number): number {
  if (column === 'integer') return bytes === 2 ? oid.int2 : bytes === 4 ? oid.int4 : oid.int8;
  if (column === 'number') return bytes === 4 ? oid.float4 : oid.float8;
  return parameterType(column).oid;
}

/** The planner's value: of its stated type, or of the inferred one where the literal does not show it. */
export function parameterOf(...given: Parameters<typeof parameterValue>): Literal | TypedValue {
  const value = parameterValue(...given);
  const [, , stated, parameterType] = given;
  if (value === null) return new TypedValue(parameterType, null);
  const isStated = stated !== 0 && stated !== oid.unknown;
  const isInstant = parameterType === 'timestamp' || parameterType === 'date';
  return isInstant || (isStated && (parameterType === 'json' || parameterType === 'vector'))
    ? new TypedValue(parameterType, value)
    : value;
}

/** `number` counts from 1. */
export function parameterValue(
  bytes: Buffer | null,
  format: number,
  stated: number,
  inferredType: ParameterType,
  number: number,
): Literal {
  if (bytes === null) return null;
  try {
    const type = stated === 0 || stated === oid.unknown ? parameterType(inferredType).oid : stated;
    return format === 1 ? fromBinary(bytes, type) : fromText(utf8(bytes), type);
  } catch (error) {
    if (error instanceof Misfit)
      throw new ServiceError('REL_TYPE_MISMATCH', `$${number} ${error.message}`, {
        ...(error.reason && { reason: error.reason }),
      });
    if (error instanceof ServiceError && error.facts.reason !== undefined)
      throw new ServiceError('REL_TYPE_MISMATCH', `$${number} is ${error.message}`, error.facts);
    throw error;
  }
}

class Misfit extends Error {
  readonly reason: ErrorReason | undefined;

  constructor(message: string, reason?: ErrorReason) {
    super(message);
    this.reason = reason;
  }
}

function fromText(text: string, type: number): Literal {
  switch (type) {
    case oid.int2:
      return sizedInteger(text.trim(), 16);
    case oid.int4:
      return sizedInteger(text.trim(), 32);
    case oid.int8:
    case oid.oid:
      return sizedInteger(text.trim(), 64);
    case oid.float4:
    case oid.float8:
    case oid.numeric:
      return number(text.trim(), type === oid.numeric);
    case oid.bool:
      return boolean(text.trim().toLowerCase());
    case oid.date:
      return parseZonedDay(text);
    case oid.timestamp:
    case oid.timestamptz:
      return parseZonedInstant(text);
    default:
      return text;
  }
}

function fromBinary(bytes: Buffer, type: number): Literal {
  const requireLength = (length: number): Buffer => {
    if (bytes.length !== length) throw new Misfit(`has ${bytes.length} bytes: its type takes ${length}`, 'binary-form');
    return bytes;
  };
  switch (type) {
    case oid.bool:
      return requireLength(1)[0] !== 0;
    case oid.int2:
      return BigInt(requireLength(2).readInt16BE());
    case oid.int4:
      return BigInt(requireLength(4).readInt32BE());
    case oid.oid:
      return BigInt(requireLength(4).readUInt32BE());
    case oid.int8:
      return requireLength(8).readBigInt64BE();
    case oid.float4:
      return finite(requireLength(4).readFloatBE());
    case oid.float8:
      return finite(requireLength(8).readDoubleBE());
    case oid.timestamp:
    case oid.timestamptz: {
      const microseconds = requireLength(8).readBigInt64BE();
      if (microseconds === I64_MAX) return FOREVER;
      if (microseconds === I64_MIN) return INSTANT_MIN;
      return inRange((microseconds + microsecondsTo2000) * 1_000n);
    }
    case oid.date:
      return inRange((BigInt(requireLength(4).readInt32BE()) * 86_400_000_000n + microsecondsTo2000) * 1_000n);
    case oid.uuid: {
      const hex = requireLength(16).toString('hex');
      return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
    }
    case oid.jsonb:
      if (bytes[0] !== 1) throw new Misfit('is jsonb of another version', 'binary-form');
      return utf8(bytes.subarray(1));
    case oid.numeric:
      return number(numericText(bytes), true);
    case oid.vector:
      return vectorText(bytes);
    default:
      return utf8(bytes);
  }
}

function sizedInteger(text: string, bits: number): bigint {
  if (!/^[+-]?\d{1,30}$/.test(text)) throw new Misfit('is not a whole number');
  const value = BigInt(text.replace('+', ''));
  if (BigInt.asIntN(bits, value) !== value) throw new Misfit(`does not fit ${bits} bits`, 'out-of-range');
  return value;
}

/** A decimal is taken where a double holds it: its shortest text has the same digits. */
function number(text: string, exactly: boolean): number | bigint {
  if (!/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text)) throw new Misfit('is no number');
  const value = finite(Number(text));
  if (exactly && digitsOf(text) !== digitsOf(String(value)))
    throw new Misfit('has more digits than a number holds: send it as text', 'out-of-range');
  return value;
}

/** Digits and exponent, without what says nothing. */
function digitsOf(text: string): string {
  const [, sign, whole, fraction = '', exponent = '0'] = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i.exec(text)!;
  const digits = (whole! + fraction).replace(/^0+/, '');
  const trimmed = withoutTrailing(digits, '0');
  if (trimmed === '') return '0';
  return `${sign === '-' ? '-' : ''}${trimmed}e${Number(exponent) - fraction.length + (digits.length - trimmed.length)}`;
}

function finite(value: number): number {
  if (!Number.isFinite(value)) throw new Misfit('is not a finite number', 'out-of-range');
  return value;
}

function boolean(text: string): boolean {
  if (['t', 'true', 'y', 'yes', 'on', '1'].includes(text)) return true;
  if (['f', 'false', 'n', 'no', 'off', '0'].includes(text)) return false;
  throw new Misfit('is neither true nor false');
}

function inRange(ns: bigint): bigint {
  if (ns > I64_MAX || ns < I64_MIN) throw new Misfit('lies outside of the years 1677 to 2262', 'no-such-instant');
  return ns;
}

/** Groups of four decimal digits: count, weight of the first, sign, digits shown behind the point, groups. */
function numericText(bytes: Buffer): string {
  if (bytes.length < 8 || bytes.length !== 8 + bytes.readUInt16BE(0) * 2) throw new Misfit('is no numeric', 'binary-form');
  const [count, weight, sign] = [bytes.readUInt16BE(0), bytes.readInt16BE(2), bytes.readUInt16BE(4)];
  if (sign !== 0 && sign !== 0x4000) throw new Misfit('is not a finite number');
  let digits = '';
  for (let i = 0; i < count; i++) digits += String(bytes.readUInt16BE(8 + i * 2)).padStart(4, '0');
  return `${sign === 0 ? '' : '-'}${digits || '0'}e${count === 0 ? 0 : (weight - count + 1) * 4}`;
}

function vectorText(bytes: Buffer): string {
  const dims = bytes.length < 4 ? -1 : bytes.readUInt16BE(0);
  if (bytes.length !== 4 + dims * 4) throw new Misfit('is no vector', 'binary-form');
  return `[${Array.from({ length: dims }, (_, i) => String(bytes.readFloatBE(4 + i * 4))).join(',')}]`;
}
