/** Binary cells of the types that only the catalogue has: small numbers, "char", arrays. */
import { ServiceError } from '../../errors.ts';
import { parseInterval } from '../../planner/expressions/functions/intervals.ts';
import { vectorIn } from '../../planner/expressions/functions/vectors.ts';
import { elementOf, elementsOf } from '../../planner/system-catalogue/catalogue-types.ts';
import type { PostgresReplies } from './replies.ts';
import { catalogueTypes, type WireType, wireTypes } from '../../planner/system-catalogue/postgres-column-types.ts';

export function isFloat({ name }: WireType): boolean {
  return name === 'float8' || name === 'float4';
}

/** Writes the length of the type, then the number in so many bytes. */
export function putBinaryNumber(replies: PostgresReplies, type: WireType, value: number): void {
  const { writer } = replies;
  const { size } = type;
  replies.int32(size);
  writer.reserve(8);
  const { view, length } = writer;
  if (type === wireTypes.float8) view.setFloat64(length, value);
  else if (size === 8) view.setBigInt64(length, BigInt(value));
  else if (isFloat(type)) view.setFloat32(length, value);
  // Numbers of things have no sign: they fill all 32 bits.
  else if (size === 4) view.setInt32(length, value | 0);
  else view.setInt16(length, value);
  writer.length += size;
}

const plain: ReadonlySet<string> = new Set(['text', 'name', 'varchar', 'bpchar', 'json', 'unknown', 'pg_node_tree', 'void']);

/**
 * Writes a cell that is kept as text in binary; null: the bytes are those of the text. REL_NOT_IMPLEMENTED for types that are
 * text only.
 */
export function binaryText(type: WireType): ((replies: PostgresReplies, text: string) => void) | null {
  if (plain.has(type.name)) return null;
  if (type.name === 'char') return putCharacter;
  if (type === wireTypes.jsonb) return putJsonb;
  if (type === wireTypes.vector) return putVector;
  if (type.name === 'interval') return putInterval;
  const element = elementOf(type.name);
  const each = element === null ? undefined : catalogueTypes.get(element);
  if (!each || !(plain.has(each.name) || each.name === 'char' || isWhole(each)))
    throw new ServiceError('REL_NOT_IMPLEMENTED', `${type.name} is not implemented in the binary format: ask for text`);
  return (replies, text) => putArray(replies, type, each, text);
}

const isWhole = ({ name }: WireType): boolean => ['int2', 'int4', 'int8', 'oid'].includes(name);

function putCharacter(replies: PostgresReplies, text: string): void {
  replies.int32(1);
  replies.writer.byte(Buffer.from(text)[0] ?? 0);
}

/** The number of its form, which is 1 in every version of Postgres; its text. */
function putJsonb(replies: PostgresReplies, text: string): void {
  replies.int32(1 + Buffer.byteLength(text));
  replies.writer.byte(1);
  replies.writer.string(text);
}

/** Microseconds, days, months. */
function putInterval(replies: PostgresReplies, text: string): void {
  const { microseconds, days, months } = parseInterval(text);
  replies.int32(16);
  const { writer } = replies;
  writer.reserve(16);
  writer.view.setBigInt64(writer.length, microseconds);
  writer.view.setInt32(writer.length + 8, days);
  writer.view.setInt32(writer.length + 12, months);
  writer.length += 16;
}

/** Number of components, nothing, components. */
function putVector(replies: PostgresReplies, text: string): void {
  const values = vectorIn(text)!;
  replies.int32(4 + values.length * 4);
  replies.int16(values.length);
  replies.int16(0);
  const { writer } = replies;
  writer.reserve(values.length * 4);
  for (const value of values) {
    writer.view.setFloat32(writer.length, value);
    writer.length += 4;
  }
}

/** Dimensions, whether there are NULLs, type of the elements; length and first subscript; elements. */
function putArray(replies: PostgresReplies, type: WireType, element: WireType, text: string): void {
  const isVector = type.name.endsWith('vector');
  const elements = isVector ? text.split(' ').filter(Boolean) : elementsOf(text, type.name);
  const { writer } = replies;
  const at = writer.length;
  replies.int32(0);
  replies.int32(elements.length === 0 && !isVector ? 0 : 1);
  replies.int32(elements.includes(null) ? 1 : 0);
  replies.int32(element.oid);
  if (elements.length > 0 || isVector) {
    replies.int32(elements.length);
    replies.int32(isVector ? 0 : 1);
  }
  for (const each of elements) {
    if (each === null) replies.int32(-1);
    else if (isWhole(element)) putBinaryNumber(replies, element, Number(each));
    else if (element.name === 'char') putCharacter(replies, each);
    else {
      replies.int32(Buffer.byteLength(each));
      writer.string(each);
    }
  }
  writer.view.setInt32(at, writer.length - at - 4);
}
