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

const parameterOids = {
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

const typesByOid: Readonly<Record<number, ParameterType>> = {
  [parameterOids.bool]: 'boolean',
  [parameterOids.int2]: 'integer',
  [parameterOids.int4]: 'integer',
  [parameterOids.int8]: 'integer',
  [parameterOids.oid]: 'integer',
  [parameterOids.float4]: 'number',
  [parameterOids.float8]: 'number',
  [parameterOids.numeric]: 'number',
  [parameterOids.text]: 'string',
  [parameterOids.name]: 'string',
  [parameterOids.bpchar]: 'string',
  [parameterOids.varchar]: 'string',
  [parameterOids.uuid]: 'string',
  [parameterOids.json]: 'json',
  [parameterOids.jsonb]: 'json',
  [parameterOids.date]: 'date',
  [parameterOids.timestamp]: 'timestamp',
  [parameterOids.timestamptz]: 'timestamp',
  [parameterOids.vector]: 'vector',
};

/** null: the client leaves it open. Throws REL_NOT_IMPLEMENTED for a type that no column is of. */
export function statedType(statedOid: number): ParameterType | null {
  if (statedOid === 0 || statedOid === parameterOids.unknown) return null;
  const parameterType = typesByOid[statedOid];
  if (parameterType === undefined) {
    const refusedTypeName = statedOid === parameterOids.bytea ? 'bytea' : `the type of number ${statedOid}`;
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      `parameters of ${refusedTypeName} are not implemented: send text, a number, a boolean, json or a timestamp`,
    );
  }
  return parameterType;
}

/**
 * The type in which a parameter has to be sent, once its meaning is known; `list`: a list, of the type that a cast states, or 0.
 */
export function describedOid(stated: number, inferredType: ParameterType, list?: number): number {
  if (stated !== 0 && stated !== parameterOids.unknown) return stated;
  if (list === undefined) return parameterType(inferredType).oid;
  return list === 0 ? parameterType(inferredType).array : list;
}

/** The type of a binary value for a column, by its length: clients send integers and numbers in the width that they have. */
export function parameterOid(columnType: ColumnType, parameterBytes: number): number {
  if (columnType === 'integer')
    return parameterBytes === 2 ? parameterOids.int2 : parameterBytes === 4 ? parameterOids.int4 : parameterOids.int8;
  if (columnType === 'number') return parameterBytes === 4 ? parameterOids.float4 : parameterOids.float8;
  return parameterType(columnType).oid;
}

/** The planner's value: of its stated type, or of the inferred one where the literal does not show it. */
export function parameterOf(...parameterArguments: Parameters<typeof parameterValue>): Literal | TypedValue {
  const parsedValue = parameterValue(...parameterArguments);
  const [, , statedOid, parameterType] = parameterArguments;
  if (parsedValue === null) return new TypedValue(parameterType, null);
  const isStated = statedOid !== 0 && statedOid !== parameterOids.unknown;
  const isInstant = parameterType === 'timestamp' || parameterType === 'date';
  return isInstant || (isStated && (parameterType === 'json' || parameterType === 'vector'))
    ? new TypedValue(parameterType, parsedValue)
    : parsedValue;
}

/** `parameterOrdinal` counts from 1. */
export function parameterValue(
  parameterBytes: Buffer | null,
  parameterFormat: number,
  statedOid: number,
  inferredType: ParameterType,
  parameterOrdinal: number,
): Literal {
  if (parameterBytes === null) return null;
  try {
    const valueOid = statedOid === 0 || statedOid === parameterOids.unknown ? parameterType(inferredType).oid : statedOid;
    return parameterFormat === 1
      ? parameterFromBinary(parameterBytes, valueOid)
      : parameterFromText(utf8(parameterBytes), valueOid);
  } catch (error) {
    if (error instanceof ParameterMisfit)
      throw new ServiceError('REL_TYPE_MISMATCH', `$${parameterOrdinal} ${error.message}`, {
        ...(error.reason && { reason: error.reason }),
      });
    if (error instanceof ServiceError && error.facts.reason !== undefined)
      throw new ServiceError('REL_TYPE_MISMATCH', `$${parameterOrdinal} is ${error.message}`, error.facts);
    throw error;
  }
}

class ParameterMisfit extends Error {
  readonly reason: ErrorReason | undefined;

  constructor(misfitMessage: string, misfitReason?: ErrorReason) {
    super(misfitMessage);
    this.reason = misfitReason;
  }
}

function parameterFromText(parameterText: string, textOid: number): Literal {
  switch (textOid) {
    case parameterOids.int2:
      return sizedInteger(parameterText.trim(), 16);
    case parameterOids.int4:
      return sizedInteger(parameterText.trim(), 32);
    case parameterOids.int8:
    case parameterOids.oid:
      return sizedInteger(parameterText.trim(), 64);
    case parameterOids.float4:
    case parameterOids.float8:
    case parameterOids.numeric:
      return parameterNumber(parameterText.trim(), textOid === parameterOids.numeric);
    case parameterOids.bool:
      return parameterBoolean(parameterText.trim().toLowerCase());
    case parameterOids.date:
      return parseZonedDay(parameterText);
    case parameterOids.timestamp:
    case parameterOids.timestamptz:
      return parseZonedInstant(parameterText);
    default:
      return parameterText;
  }
}

function parameterFromBinary(parameterBytes: Buffer, binaryOid: number): Literal {
  const requireLength = (requiredLength: number): Buffer => {
    if (parameterBytes.length !== requiredLength)
      throw new ParameterMisfit(`has ${parameterBytes.length} bytes: its type takes ${requiredLength}`, 'binary-form');
    return parameterBytes;
  };
  switch (binaryOid) {
    case parameterOids.bool:
      return requireLength(1)[0] !== 0;
    case parameterOids.int2:
      return BigInt(requireLength(2).readInt16BE());
    case parameterOids.int4:
      return BigInt(requireLength(4).readInt32BE());
    case parameterOids.oid:
      return BigInt(requireLength(4).readUInt32BE());
    case parameterOids.int8:
      return requireLength(8).readBigInt64BE();
    case parameterOids.float4:
      return finiteNumber(requireLength(4).readFloatBE());
    case parameterOids.float8:
      return finiteNumber(requireLength(8).readDoubleBE());
    case parameterOids.timestamp:
    case parameterOids.timestamptz: {
      const postgresMicros = requireLength(8).readBigInt64BE();
      if (postgresMicros === I64_MAX) return FOREVER;
      if (postgresMicros === I64_MIN) return INSTANT_MIN;
      return instantInRange((postgresMicros + microsecondsTo2000) * 1_000n);
    }
    case parameterOids.date:
      return instantInRange((BigInt(requireLength(4).readInt32BE()) * 86_400_000_000n + microsecondsTo2000) * 1_000n);
    case parameterOids.uuid: {
      const uuidHex = requireLength(16).toString('hex');
      return [uuidHex.slice(0, 8), uuidHex.slice(8, 12), uuidHex.slice(12, 16), uuidHex.slice(16, 20), uuidHex.slice(20)].join(
        '-',
      );
    }
    case parameterOids.jsonb:
      if (parameterBytes[0] !== 1) throw new ParameterMisfit('is jsonb of another version', 'binary-form');
      return utf8(parameterBytes.subarray(1));
    case parameterOids.numeric:
      return parameterNumber(binaryNumericText(parameterBytes), true);
    case parameterOids.vector:
      return binaryVectorText(parameterBytes);
    default:
      return utf8(parameterBytes);
  }
}

function sizedInteger(integerText: string, integerBits: number): bigint {
  if (!/^[+-]?\d{1,30}$/.test(integerText)) throw new ParameterMisfit('is not a whole number');
  const integerValue = BigInt(integerText.replace('+', ''));
  if (BigInt.asIntN(integerBits, integerValue) !== integerValue)
    throw new ParameterMisfit(`does not fit ${integerBits} bits`, 'out-of-range');
  return integerValue;
}

/** A decimal is taken where a double holds it: its shortest text has the same digits. */
function parameterNumber(numberText: string, isExact: boolean): number | bigint {
  if (!/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(numberText)) throw new ParameterMisfit('is no number');
  const numberValue = finiteNumber(Number(numberText));
  if (isExact && significantDigits(numberText) !== significantDigits(String(numberValue)))
    throw new ParameterMisfit('has more digits than a number holds: send it as text', 'out-of-range');
  return numberValue;
}

/** Digits and exponent, without what says nothing. */
function significantDigits(numberText: string): string {
  const [, numberSign, wholeDigits, fractionDigits = '', numberExponent = '0'] =
    /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i.exec(numberText)!;
  const allDigits = (wholeDigits! + fractionDigits).replace(/^0+/, '');
  const trimmedDigits = withoutTrailing(allDigits, '0');
  if (trimmedDigits === '') return '0';
  return `${numberSign === '-' ? '-' : ''}${trimmedDigits}e${Number(numberExponent) - fractionDigits.length + (allDigits.length - trimmedDigits.length)}`;
}

function finiteNumber(finiteValue: number): number {
  if (!Number.isFinite(finiteValue)) throw new ParameterMisfit('is not a finite number', 'out-of-range');
  return finiteValue;
}

function parameterBoolean(booleanText: string): boolean {
  if (['t', 'true', 'y', 'yes', 'on', '1'].includes(booleanText)) return true;
  if (['f', 'false', 'n', 'no', 'off', '0'].includes(booleanText)) return false;
  throw new ParameterMisfit('is neither true nor false');
}

function instantInRange(instantNs: bigint): bigint {
  if (instantNs > I64_MAX || instantNs < I64_MIN)
    throw new ParameterMisfit('lies outside of the years 1677 to 2262', 'no-such-instant');
  return instantNs;
}

/** Groups of four decimal digits: count, weight of the first, sign, digits shown behind the point, groups. */
function binaryNumericText(numericBytes: Buffer): string {
  if (numericBytes.length < 8 || numericBytes.length !== 8 + numericBytes.readUInt16BE(0) * 2)
    throw new ParameterMisfit('is no numeric', 'binary-form');
  const [digitGroupCount, numericWeight, numericSign] = [
    numericBytes.readUInt16BE(0),
    numericBytes.readInt16BE(2),
    numericBytes.readUInt16BE(4),
  ];
  if (numericSign !== 0 && numericSign !== 0x4000) throw new ParameterMisfit('is not a finite number');
  let numericDigits = '';
  for (let i = 0; i < digitGroupCount; i++) numericDigits += String(numericBytes.readUInt16BE(8 + i * 2)).padStart(4, '0');
  return `${numericSign === 0 ? '' : '-'}${numericDigits || '0'}e${digitGroupCount === 0 ? 0 : (numericWeight - digitGroupCount + 1) * 4}`;
}

function binaryVectorText(vectorBytes: Buffer): string {
  const vectorDims = vectorBytes.length < 4 ? -1 : vectorBytes.readUInt16BE(0);
  if (vectorBytes.length !== 4 + vectorDims * 4) throw new ParameterMisfit('is no vector', 'binary-form');
  return `[${Array.from({ length: vectorDims }, (_, i) => String(vectorBytes.readFloatBE(4 + i * 4))).join(',')}]`;
}
