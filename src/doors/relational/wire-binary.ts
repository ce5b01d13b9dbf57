/** Binary cells of the types that only the catalogue has: small numbers, "char", arrays. */
import { ServiceError } from '../../errors.ts';
import { parseInterval } from '../../planner/expressions/functions/intervals.ts';
import { vectorIn } from '../../planner/expressions/functions/vectors.ts';
import { elementOf, elementsOf } from '../../planner/system-catalogue/catalogue-types.ts';
import type { PostgresReplies } from './replies.ts';
import { catalogueTypes, type WireType, wireTypes } from '../../planner/system-catalogue/postgres-column-types.ts';

export function isFloat({ name: wireTypeName }: WireType): boolean {
  return wireTypeName === 'float8' || wireTypeName === 'float4';
}

/** Writes the length of the type, then the number in so many bytes. */
export function putBinaryNumber(postgresReplies: PostgresReplies, numberType: WireType, numberValue: number): void {
  const { writer } = postgresReplies;
  const { size: wireSize } = numberType;
  postgresReplies.int32(wireSize);
  writer.reserve(8);
  const { view: replyView, length: replyLength } = writer;
  if (numberType === wireTypes.float8) replyView.setFloat64(replyLength, numberValue);
  else if (wireSize === 8) replyView.setBigInt64(replyLength, BigInt(numberValue));
  else if (isFloat(numberType)) replyView.setFloat32(replyLength, numberValue);
  // Numbers of things have no sign: they fill all 32 bits.
  else if (wireSize === 4) replyView.setInt32(replyLength, numberValue | 0);
  else replyView.setInt16(replyLength, numberValue);
  writer.length += wireSize;
}

const plainTextTypes: ReadonlySet<string> = new Set([
  'text',
  'name',
  'varchar',
  'bpchar',
  'json',
  'unknown',
  'pg_node_tree',
  'void',
]);

/**
 * Writes a cell that is kept as text in binary; null: the bytes are those of the text. REL_NOT_IMPLEMENTED for types that are
 * text only.
 */
export function binaryText(wireType: WireType): ((postgresReplies: PostgresReplies, arrayText: string) => void) | null {
  if (plainTextTypes.has(wireType.name)) return null;
  if (wireType.name === 'char') return putCharType;
  if (wireType === wireTypes.jsonb) return putJsonb;
  if (wireType === wireTypes.vector) return putVector;
  if (wireType.name === 'interval') return putInterval;
  const elementTypeName = elementOf(wireType.name);
  const elementType = elementTypeName === null ? undefined : catalogueTypes.get(elementTypeName);
  if (!elementType || !(plainTextTypes.has(elementType.name) || elementType.name === 'char' || isWholeNumberType(elementType)))
    throw new ServiceError('REL_NOT_IMPLEMENTED', `${wireType.name} is not implemented in the binary format: ask for text`);
  return (postgresReplies, arrayText) => putArray(postgresReplies, wireType, elementType, arrayText);
}

const isWholeNumberType = ({ name: wireTypeName }: WireType): boolean => ['int2', 'int4', 'int8', 'oid'].includes(wireTypeName);

function putCharType(postgresReplies: PostgresReplies, charText: string): void {
  postgresReplies.int32(1);
  postgresReplies.writer.byte(Buffer.from(charText)[0] ?? 0);
}

/** The number of its form, which is 1 in every version of Postgres; its text. */
function putJsonb(postgresReplies: PostgresReplies, jsonbText: string): void {
  postgresReplies.int32(1 + Buffer.byteLength(jsonbText));
  postgresReplies.writer.byte(1);
  postgresReplies.writer.string(jsonbText);
}

/** Microseconds, days, months. */
function putInterval(postgresReplies: PostgresReplies, intervalText: string): void {
  const { microseconds: intervalMicros, days: intervalDays, months: intervalMonths } = parseInterval(intervalText);
  postgresReplies.int32(16);
  const { writer } = postgresReplies;
  writer.reserve(16);
  writer.view.setBigInt64(writer.length, intervalMicros);
  writer.view.setInt32(writer.length + 8, intervalDays);
  writer.view.setInt32(writer.length + 12, intervalMonths);
  writer.length += 16;
}

/** Number of components, nothing, components. */
function putVector(postgresReplies: PostgresReplies, vectorText: string): void {
  const vectorFloats = vectorIn(vectorText)!;
  postgresReplies.int32(4 + vectorFloats.length * 4);
  postgresReplies.int16(vectorFloats.length);
  postgresReplies.int16(0);
  const { writer } = postgresReplies;
  writer.reserve(vectorFloats.length * 4);
  for (const vectorFloat of vectorFloats) {
    writer.view.setFloat32(writer.length, vectorFloat);
    writer.length += 4;
  }
}

/** Dimensions, whether there are NULLs, type of the elements; length and first subscript; elements. */
function putArray(postgresReplies: PostgresReplies, arrayType: WireType, elementType: WireType, arrayText: string): void {
  const isVectorArray = arrayType.name.endsWith('vector');
  const arrayElements = isVectorArray ? arrayText.split(' ').filter(Boolean) : elementsOf(arrayText, arrayType.name);
  const { writer } = postgresReplies;
  const arrayLengthOffset = writer.length;
  postgresReplies.int32(0);
  postgresReplies.int32(arrayElements.length === 0 && !isVectorArray ? 0 : 1);
  postgresReplies.int32(arrayElements.includes(null) ? 1 : 0);
  postgresReplies.int32(elementType.oid);
  if (arrayElements.length > 0 || isVectorArray) {
    postgresReplies.int32(arrayElements.length);
    postgresReplies.int32(isVectorArray ? 0 : 1);
  }
  for (const arrayElement of arrayElements) {
    if (arrayElement === null) postgresReplies.int32(-1);
    else if (isWholeNumberType(elementType)) putBinaryNumber(postgresReplies, elementType, Number(arrayElement));
    else if (elementType.name === 'char') putCharType(postgresReplies, arrayElement);
    else {
      postgresReplies.int32(Buffer.byteLength(arrayElement));
      writer.string(arrayElement);
    }
  }
  writer.view.setInt32(arrayLengthOffset, writer.length - arrayLengthOffset - 4);
}
