/** Values that a client binds to `$1`, `$2` …: bytes in one of two formats and of a Postgres type, as the planner takes them. */
import { ServiceError } from '../../errors.ts';
import { FOREVER, INSTANT_MIN, parseInstant } from '../../log/timestamp.ts';
import { type ColumnType, I64_MAX, I64_MIN } from '../../log/value.ts';
import type { Literal } from '../../planner/statement.ts';
import { utf8 } from './codec.ts';
import { microsecondsTo2000, parameterType } from './wire-types.ts';

/** Values of `$1`, `$2` … as they were bound. */
export interface Bound {
  readonly values: readonly (Buffer | null)[];
  readonly formats: readonly number[];
  readonly oids: readonly number[];
  /** Once they are known. */
  readonly types: readonly ColumnType[] | null;
  /** Told when they are found out on the way: the next values of the statement are of them, too. */
  readonly found?: (types: readonly ColumnType[]) => void;
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

const columnTypes: Readonly<Record<number, ColumnType>> = {
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
  [oid.date]: 'timestamp',
  [oid.timestamp]: 'timestamp',
  [oid.timestamptz]: 'timestamp',
  [oid.vector]: 'string',
};

/** null: the client leaves it open. Throws REL_NOT_IMPLEMENTED for a type that no column is of. */
export function statedType(stated: number): ColumnType | null {
  if (stated === 0 || stated === oid.unknown) return null;
  const found = columnTypes[stated];
  if (found === undefined) {
    const what = stated === oid.bytea ? 'bytea' : `the type of number ${stated}`;
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      `parameters of ${what} are not implemented: send text, a number, a boolean, json or a timestamp`,
    );
  }
  return found;
}

/** What a parameter is to be sent as, once it is known what it stands for. */
export function toldOid(stated: number, found: ColumnType, isList = false): number {
  if (stated !== 0 && stated !== oid.unknown) return stated;
  return isList ? parameterType(found).array : parameterType(found).oid;
}

/** What a binary value of a column is, by its length: integers and numbers come in the width that the client has them in. */
export function parameterOid(column: ColumnType, bytes: number): number {
  if (column === 'integer') return bytes === 2 ? oid.int2 : bytes === 4 ? oid.int4 : oid.int8;
  if (column === 'number') return bytes === 4 ? oid.float4 : oid.float8;
  return parameterType(column).oid;
}

/** `number` counts from 1. */
export function parameterValue(bytes: Buffer | null, format: number, stated: number, found: ColumnType, number: number): Literal {
  if (bytes === null) return null;
  try {
    const type = stated === 0 || stated === oid.unknown ? parameterType(found).oid : stated;
    return format === 1 ? fromBinary(bytes, type) : fromText(utf8(bytes), type);
  } catch (error) {
    if (error instanceof Misfit) throw new ServiceError('REL_TYPE_MISMATCH', `$${number} ${error.message}`);
    throw error;
  }
}

class Misfit extends Error {}

function fromText(text: string, type: number): Literal {
  switch (type) {
    case oid.int2:
    case oid.int4:
    case oid.int8:
    case oid.oid:
      return integer(text.trim());
    case oid.float4:
    case oid.float8:
    case oid.numeric:
      return number(text.trim(), type === oid.numeric);
    case oid.bool:
      return boolean(text.trim().toLowerCase());
    case oid.date:
    case oid.timestamp:
    case oid.timestamptz:
      return instant(text.trim());
    default:
      return text;
  }
}

function fromBinary(bytes: Buffer, type: number): Literal {
  const sized = (length: number): Buffer => {
    if (bytes.length !== length) throw new Misfit(`has ${bytes.length} bytes: its type takes ${length}`);
    return bytes;
  };
  switch (type) {
    case oid.bool:
      return sized(1)[0] !== 0;
    case oid.int2:
      return BigInt(sized(2).readInt16BE());
    case oid.int4:
      return BigInt(sized(4).readInt32BE());
    case oid.oid:
      return BigInt(sized(4).readUInt32BE());
    case oid.int8:
      return sized(8).readBigInt64BE();
    case oid.float4:
      return finite(sized(4).readFloatBE());
    case oid.float8:
      return finite(sized(8).readDoubleBE());
    case oid.timestamp:
    case oid.timestamptz: {
      const microseconds = sized(8).readBigInt64BE();
      if (microseconds === I64_MAX) return FOREVER;
      if (microseconds === I64_MIN) return INSTANT_MIN;
      return inRange((microseconds + microsecondsTo2000) * 1_000n);
    }
    case oid.date:
      return inRange((BigInt(sized(4).readInt32BE()) * 86_400_000_000n + microsecondsTo2000) * 1_000n);
    case oid.uuid: {
      const hex = sized(16).toString('hex');
      return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
    }
    case oid.jsonb:
      if (bytes[0] !== 1) throw new Misfit('is jsonb of another version');
      return utf8(bytes.subarray(1));
    case oid.numeric:
      return number(numericText(bytes), true);
    case oid.vector:
      return vectorText(bytes);
    default:
      return utf8(bytes);
  }
}

function integer(text: string): bigint {
  if (!/^[+-]?\d{1,30}$/.test(text)) throw new Misfit('is no whole number');
  const value = BigInt(text.replace('+', ''));
  if (value > I64_MAX || value < I64_MIN) throw new Misfit('does not fit 64 bits');
  return value;
}

/** A decimal is taken where a double holds it: its shortest text has the same digits. */
function number(text: string, exactly: boolean): number | bigint {
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) throw new Misfit('is no number');
  const value = finite(Number(text));
  if (exactly && digitsOf(text) !== digitsOf(String(value)))
    throw new ServiceError('REL_UNPROCESSABLE', 'a numeric has more digits than a number holds: send it as text');
  return value;
}

/** Digits and exponent, without what says nothing. */
function digitsOf(text: string): string {
  const [, sign, whole, fraction = '', exponent = '0'] = /^([+-]?)(\d*)\.?(\d*)?(?:e([+-]?\d+))?$/i.exec(text)!;
  const digits = (whole! + fraction).replace(/^0+/, '');
  const trimmed = digits.replace(/0+$/, '');
  if (trimmed === '') return '0';
  return `${sign === '-' ? '-' : ''}${trimmed}e${Number(exponent) - fraction.length + (digits.length - trimmed.length)}`;
}

function finite(value: number): number {
  if (!Number.isFinite(value)) throw new Misfit('is no finite number');
  return value;
}

function boolean(text: string): boolean {
  if (['t', 'true', 'y', 'yes', 'on', '1'].includes(text)) return true;
  if (['f', 'false', 'n', 'no', 'off', '0'].includes(text)) return false;
  throw new Misfit('is neither true nor false');
}

const written = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(\.\d{1,9})?)?\s?(Z|[+-]\d\d(?::?\d\d)?)?$/i;

/** As Postgres clients write one: with an offset of their own, or none for UTC; or nanoseconds. */
function instant(text: string): bigint {
  if (text === 'infinity') return FOREVER;
  if (text === '-infinity') return INSTANT_MIN;
  if (/^-?\d{5,19}$/.test(text)) return integer(text);
  const match = written.exec(text);
  if (!match) throw new Misfit('is no timestamp: write one like 2024-05-01 10:00:00+00');
  const [, day, time = '00:00', seconds = ':00', fraction = '', zone = 'Z'] = match;
  try {
    return inRange(parseInstant(`${day!}T${time}${seconds}${fraction}Z`) - offsetOf(zone));
  } catch (error) {
    if (error instanceof ServiceError) throw new Misfit('is no timestamp that there is');
    throw error;
  }
}

function offsetOf(zone: string): bigint {
  if (zone === 'Z' || zone === 'z') return 0n;
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(3).replace(':', '') || 0);
  return BigInt(zone.startsWith('-') ? -minutes : minutes) * 60_000_000_000n;
}

function inRange(ns: bigint): bigint {
  if (ns > I64_MAX || ns < I64_MIN) throw new Misfit('lies outside of the years 1677 to 2262');
  return ns;
}

/** Groups of four decimal digits: count, weight of the first, sign, digits shown behind the point, groups. */
function numericText(bytes: Buffer): string {
  if (bytes.length < 8 || bytes.length !== 8 + bytes.readUInt16BE(0) * 2) throw new Misfit('is no numeric');
  const [count, weight, sign] = [bytes.readUInt16BE(0), bytes.readInt16BE(2), bytes.readUInt16BE(4)];
  if (sign !== 0 && sign !== 0x4000) throw new Misfit('is no finite number');
  let digits = '';
  for (let i = 0; i < count; i++) digits += String(bytes.readUInt16BE(8 + i * 2)).padStart(4, '0');
  return `${sign === 0 ? '' : '-'}${digits || '0'}e${count === 0 ? 0 : (weight - count + 1) * 4}`;
}

function vectorText(bytes: Buffer): string {
  const dims = bytes.length < 4 ? -1 : bytes.readUInt16BE(0);
  if (bytes.length !== 4 + dims * 4) throw new Misfit('is no vector');
  return `[${Array.from({ length: dims }, (_, i) => String(bytes.readFloatBE(4 + i * 4))).join(',')}]`;
}
