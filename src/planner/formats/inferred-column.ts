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
export function numbersFrom(integerBuilder: VectorBuilder): VectorBuilder | undefined {
  const { length } = integerBuilder;
  const integerVector = integerBuilder.build();
  const numberBuilder = new VectorBuilder('number', Math.max(64, length));
  for (let integerRow = 0; integerRow < length; integerRow++) {
    if (isNullCell(integerVector, integerRow)) numberBuilder.appendNull();
    else if (integerVector.kind === 'i64') {
      if (!exactInDouble(integerVector.values[integerRow]!)) return undefined;
      numberBuilder.appendNumber(Number(integerVector.values[integerRow]!));
    } else if (integerVector.kind === 'i32' || integerVector.kind === 'f64')
      numberBuilder.appendNumber(integerVector.values[integerRow]!);
  }
  return numberBuilder;
}

/** Every cell of an inferred column of integers, numbers or booleans as text. */
export function textFrom(narrowBuilder: VectorBuilder): VectorBuilder {
  const { length } = narrowBuilder;
  const widenedVector = narrowBuilder.build();
  const textBuilder = new VectorBuilder('string', Math.max(64, length));
  for (let row = 0; row < length; row++) {
    if (isNullCell(widenedVector, row)) textBuilder.appendNull();
    else textBuilder.appendString(widenedCellJson(widenedVector, row));
  }
  return textBuilder;
}

/** JSON text of every cell of an inferred column. */
export function jsonFrom(narrowBuilder: VectorBuilder): VectorBuilder {
  const { length } = narrowBuilder;
  const widenedVector = narrowBuilder.build();
  const jsonBuilder = new VectorBuilder('json', Math.max(64, length));
  for (let row = 0; row < length; row++) {
    if (isNullCell(widenedVector, row)) jsonBuilder.appendNull();
    else jsonBuilder.appendString(widenedCellJson(widenedVector, row));
  }
  return jsonBuilder;
}

function widenedCellJson(widenedVector: Vector, row: number): string {
  switch (widenedVector.kind) {
    case 'text':
      return JSON.stringify(
        textCellDecoder.decode(widenedVector.heap.subarray(widenedVector.offsets[row]!, widenedVector.offsets[row + 1]!)),
      );
    case 'bool':
      return widenedVector.values[row] === 1 ? 'true' : 'false';
    case 'i32':
    case 'i64':
      return String(widenedVector.values[row]!);
    case 'f64':
      return Object.is(widenedVector.values[row], -0) ? '-0' : String(widenedVector.values[row]!);
    case 'vec':
    case 'dict':
    case 'null':
      throw new AssertionError(`a column of ${widenedVector.kind} is never widened`);
  }
}

function isNullCell(vector: Vector, row: number): boolean {
  return vector.kind === 'null' || vector.nulls?.[row] === 1;
}

/**
 * The texts of one batch's column in the narrowest type that holds all of them and agrees with `knownType`, the type that
 * the column had before (null: none). `kindsSeen` has one bit for each kind of token among them.
 */
export function typedFromText(texts: VectorBuilder, knownType: ColumnType | null, kindsSeen: number): VectorBuilder {
  const inferredType = inferredTypeOf(texts, kindsSeen);
  if (knownType === 'string') return texts;
  if (knownType === null || knownType === inferredType) return retypeTexts(texts, inferredType);
  if (knownType === 'number' && inferredType === 'integer' && areAllExact(texts)) return retypeTexts(texts, 'number');
  if (knownType === 'integer' && inferredType === 'number') return retypeTexts(texts, 'number');
  return knownType === 'json' ? retypeTexts(texts, 'json') : texts;
}

function inferredTypeOf(texts: VectorBuilder, kindsSeen: number): ColumnType {
  const booleanKinds = (1 << cellKind.true) | (1 << cellKind.false);
  const integerKinds = (1 << cellKind.integer) | (1 << cellKind.wide);
  const numberKinds = integerKinds | (1 << cellKind.number);
  if ((kindsSeen & ~booleanKinds) === 0) return 'boolean';
  if ((kindsSeen & ~integerKinds) === 0) return 'integer';
  if ((kindsSeen & ~numberKinds) === 0 && ((kindsSeen & (1 << cellKind.wide)) === 0 || areAllExact(texts))) return 'number';
  return 'string';
}

function areAllExact(texts: VectorBuilder): boolean {
  const textVector = texts.build();
  if (textVector.kind !== 'text') return true;
  for (let row = 0; row < texts.length; row++) {
    if (isNullCell(textVector, row)) continue;
    const numberText = latin1(textVector.heap, textVector.offsets[row]!, textVector.offsets[row + 1]!);
    if (integerTextToken.test(numberText) && !exactInDouble(BigInt(numberText))) return false;
  }
  return true;
}

function retypeTexts(texts: VectorBuilder, type: ColumnType): VectorBuilder {
  if (type === 'string') return texts;
  const textVector = texts.build();
  if (textVector.kind !== 'text') throw new AssertionError('texts lie in a text column');
  const { heap, offsets } = textVector;
  const typedBuilder = new VectorBuilder(type, Math.max(64, texts.length));
  for (let row = 0; row < texts.length; row++) {
    const textStart = offsets[row]!;
    const textEnd = offsets[row + 1]!;
    if (isNullCell(textVector, row)) typedBuilder.appendNull();
    else if (type === 'integer') typedBuilder.appendBigint(integerAt(heap, textStart, textEnd));
    else if (type === 'number') typedBuilder.appendNumber(Number(latin1(heap, textStart, textEnd)));
    else if (type === 'boolean') typedBuilder.appendBoolean(heap[textStart] === 0x74);
    else {
      const jsonText = textCellDecoder.decode(heap.subarray(textStart, textEnd));
      typedBuilder.appendString(scalarToken.test(jsonText) ? jsonText : JSON.stringify(jsonText));
    }
  }
  return typedBuilder;
}

const textCellDecoder = new TextDecoder('utf-8', { ignoreBOM: true });
const integerTextToken = /^-?\d+$/;
export const scalarToken = /^(true|false|-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?)$/;
