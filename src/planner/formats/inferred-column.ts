/**
 * Infers the types of undeclared columns, and widens them in lossless steps. Every step keeps the values as sent: integers become
 * numbers only while each one is exact in a double, scalars of different kinds become text, and what holds an object or array
 * becomes JSON text.
 */
import { AssertionError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import { integerAt, latin1 } from './json-tokens.ts';
import { cellKind } from './row-tape.ts';

/** The type of a column by the kind of its first cell. */
export const typeOfKind: readonly (ColumnType | null)[] = [
  null,
  'boolean',
  'boolean',
  'integer',
  'integer',
  'number',
  'string',
  'string',
  'json',
  'json',
];

export function exactInDouble(value: bigint): boolean {
  return BigInt(Number(value)) === value;
}

/** Number column with the integers of another; undefined when one of them would change. */
export function numbersFrom(integers: VectorBuilder): VectorBuilder | undefined {
  const { length } = integers;
  const vector = integers.build();
  const target = new VectorBuilder('number', Math.max(64, length));
  for (let row = 0; row < length; row++) {
    if (isNull(vector, row)) target.appendNull();
    else if (vector.kind === 'i64') {
      if (!exactInDouble(vector.values[row]!)) return undefined;
      target.appendNumber(Number(vector.values[row]!));
    } else if (vector.kind === 'i32' || vector.kind === 'f64') target.appendNumber(vector.values[row]!);
  }
  return target;
}

/** Every cell of an inferred column of integers, numbers or booleans as text. */
export function textFrom(source: VectorBuilder): VectorBuilder {
  const { length } = source;
  const vector = source.build();
  const target = new VectorBuilder('string', Math.max(64, length));
  for (let row = 0; row < length; row++) {
    if (isNull(vector, row)) target.appendNull();
    else target.appendString(jsonOfCell(vector, row));
  }
  return target;
}

/** JSON text of every cell of an inferred column. */
export function jsonFrom(source: VectorBuilder): VectorBuilder {
  const { length } = source;
  const vector = source.build();
  const target = new VectorBuilder('json', Math.max(64, length));
  for (let row = 0; row < length; row++) {
    if (isNull(vector, row)) target.appendNull();
    else target.appendString(jsonOfCell(vector, row));
  }
  return target;
}

function jsonOfCell(vector: Vector, row: number): string {
  switch (vector.kind) {
    case 'text':
      return JSON.stringify(decoder.decode(vector.heap.subarray(vector.offsets[row]!, vector.offsets[row + 1]!)));
    case 'bool':
      return vector.values[row] === 1 ? 'true' : 'false';
    case 'i32':
    case 'i64':
      return String(vector.values[row]!);
    case 'f64':
      return Object.is(vector.values[row], -0) ? '-0' : String(vector.values[row]!);
    case 'vec':
    case 'dict':
    case 'null':
      throw new AssertionError(`a column of ${vector.kind} is never widened`);
  }
}

function isNull(vector: Vector, row: number): boolean {
  return vector.kind === 'null' || vector.nulls?.[row] === 1;
}

/**
 * The texts of one batch's column in the narrowest type that holds all of them and agrees with `known`, the type that
 * the column had before (null: none). `kindsSeen` has one bit for each kind of token among them.
 */
export function typedFromText(texts: VectorBuilder, known: ColumnType | null, kindsSeen: number): VectorBuilder {
  const inferredType = typeOfTexts(texts, kindsSeen);
  if (known === 'string') return texts;
  if (known === null || known === inferredType) return retype(texts, inferredType);
  if (known === 'number' && inferredType === 'integer' && allExact(texts)) return retype(texts, 'number');
  if (known === 'integer' && inferredType === 'number') return retype(texts, 'number');
  return known === 'json' ? retype(texts, 'json') : texts;
}

function typeOfTexts(texts: VectorBuilder, kindsSeen: number): ColumnType {
  const booleans = (1 << cellKind.true) | (1 << cellKind.false);
  const integers = (1 << cellKind.integer) | (1 << cellKind.wide);
  const numbers = integers | (1 << cellKind.number);
  if ((kindsSeen & ~booleans) === 0) return 'boolean';
  if ((kindsSeen & ~integers) === 0) return 'integer';
  if ((kindsSeen & ~numbers) === 0 && ((kindsSeen & (1 << cellKind.wide)) === 0 || allExact(texts))) return 'number';
  return 'string';
}

function allExact(texts: VectorBuilder): boolean {
  const vector = texts.build();
  if (vector.kind !== 'text') return true;
  for (let row = 0; row < texts.length; row++) {
    if (isNull(vector, row)) continue;
    const token = latin1(vector.heap, vector.offsets[row]!, vector.offsets[row + 1]!);
    if (integerToken.test(token) && !exactInDouble(BigInt(token))) return false;
  }
  return true;
}

function retype(texts: VectorBuilder, type: ColumnType): VectorBuilder {
  if (type === 'string') return texts;
  const vector = texts.build();
  if (vector.kind !== 'text') throw new AssertionError('texts lie in a text column');
  const { heap, offsets } = vector;
  const target = new VectorBuilder(type, Math.max(64, texts.length));
  for (let row = 0; row < texts.length; row++) {
    const start = offsets[row]!;
    const end = offsets[row + 1]!;
    if (isNull(vector, row)) target.appendNull();
    else if (type === 'integer') target.appendBigint(integerAt(heap, start, end));
    else if (type === 'number') target.appendNumber(Number(latin1(heap, start, end)));
    else if (type === 'boolean') target.appendBoolean(heap[start] === 0x74);
    else {
      const text = decoder.decode(heap.subarray(start, end));
      target.appendString(scalarToken.test(text) ? text : JSON.stringify(text));
    }
  }
  return target;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const integerToken = /^-?\d+$/;
export const scalarToken = /^(true|false|-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?)$/;
