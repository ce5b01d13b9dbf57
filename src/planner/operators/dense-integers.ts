/** Numbers integers that lie close together by their distance from the least one: nothing is hashed, nothing looked up. */
import type { Vector } from '../../log/values/columns.ts';
import type { Batch } from './operator.ts';
import { rowsPerStep } from './row-index.ts';
import type { KeyNumbers } from './value-numbers.ts';

/** The most numbers per row, and the most in any case: pages of a table that are never touched cost nothing. */
const denseNumbersPerRow = 16;
const denseNumbersMin = 1 << 20;
const denseNumbersMax = 1 << 25;
/** Differences of larger whole numbers are not exact. */
const denseIntegerMax = 2 ** 52;

type IntegerVector = Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>;

export class DenseIntegers implements KeyNumbers {
  /** The least value less one, so that the least value has the number 1. */
  readonly #denseBase: number;
  readonly size: number;
  readonly bytes = 0;

  private constructor(base: number, size: number) {
    this.#denseBase = base;
    this.size = size;
  }

  /** Null where the column does not hold integers, or they lie too far apart. */
  static *tryFrom(key: Vector, rows: number): Generator<undefined, DenseIntegers | null, void> {
    if (!isIntegerVector(key)) return null;
    const range: IntegerRange = { least: Number.POSITIVE_INFINITY, most: Number.NEGATIVE_INFINITY };
    for (let first = 0; first < rows; first += rowsPerStep) {
      if (!widenRange(range, key, first, Math.min(rows, first + rowsPerStep))) return null;
      yield;
    }
    // Without any value the range is empty.
    if (range.least > range.most || range.least < -denseIntegerMax || range.most > denseIntegerMax) return null;
    const size = range.most - range.least + 1;
    if (size > Math.min(denseNumbersMax, Math.max(denseNumbersMin, rows * denseNumbersPerRow))) return null;
    return new DenseIntegers(range.least - 1, size);
  }

  assign(keyVector: Vector, batch: Batch, denseNumbers: Int32Array): void {
    this.find(keyVector, batch, denseNumbers);
  }

  find(keyVector: Vector, batch: Batch, denseNumbers: Int32Array): void {
    const { selection, first, count } = batch;
    if (!isIntegerVector(keyVector)) {
      denseNumbers.fill(0, 0, count);
      return;
    }
    const { size } = this;
    const denseBase = this.#denseBase;
    if (keyVector.kind === 'i64') numberInt64Words(int32WordsOf(keyVector.values), batch, denseBase, size, denseNumbers);
    else if (keyVector.kind === 'i32') numberInt32s(keyVector.values, batch, denseBase, size, denseNumbers);
    else numberDoubles(keyVector.values, batch, denseBase, size, denseNumbers);
    const { nulls } = keyVector;
    if (nulls === null) return;
    for (let j = 0; j < count; j++) if (nulls[selection === null ? first + j : selection[j]!] === 1) denseNumbers[j] = 0;
  }
}

const wordSize = 4_294_967_296;

/** One function per kind of array: a shared one would be slow for each. */
function numberInt32s(
  keyInt32s: Int32Array,
  { selection, first, count }: Batch,
  denseBase: number,
  size: number,
  denseNumbers: Int32Array,
): void {
  if (selection === null) {
    for (let j = 0; j < count; j++) {
      const denseNumber = keyInt32s[first + j]! - denseBase;
      denseNumbers[j] = denseNumber > 0 && denseNumber <= size ? denseNumber : 0;
    }
  } else {
    for (let j = 0; j < count; j++) {
      const denseNumber = keyInt32s[selection[j]!]! - denseBase;
      denseNumbers[j] = denseNumber > 0 && denseNumber <= size ? denseNumber : 0;
    }
  }
}

/** A number between two integers equals none. */
function numberDoubles(
  keyDoubles: Float64Array,
  { selection, first, count }: Batch,
  denseBase: number,
  size: number,
  denseNumbers: Int32Array,
): void {
  for (let j = 0; j < count; j++) {
    const keyDouble = keyDoubles[selection === null ? first + j : selection[j]!]!;
    const denseNumber = keyDouble - denseBase;
    denseNumbers[j] = denseNumber > 0 && denseNumber <= size && Math.floor(keyDouble) === keyDouble ? denseNumber : 0;
  }
}

/** The base is within 2^53, so a key that is not yields a difference that is far off even when it is rounded. */
function numberInt64Words(
  keyWords: Int32Array,
  { selection, first, count }: Batch,
  denseBase: number,
  size: number,
  denseNumbers: Int32Array,
): void {
  for (let j = 0; j < count; j++) {
    const i = selection === null ? first + j : selection[j]!;
    const denseNumber = keyWords[2 * i + 1]! * wordSize + (keyWords[2 * i]! >>> 0) - denseBase;
    denseNumbers[j] = denseNumber > 0 && denseNumber <= size ? denseNumber : 0;
  }
}

interface IntegerRange {
  least: number;
  most: number;
}

/** False where a value is not whole. */
function widenRange(integerRange: IntegerRange, keyVector: IntegerVector, from: number, to: number): boolean {
  const { nulls } = keyVector;
  const keyWords = keyVector.kind === 'i64' ? int32WordsOf(keyVector.values) : null;
  for (let row = from; row < to; row++) {
    if (nulls !== null && nulls[row] === 1) continue;
    const keyValue =
      keyWords === null ? (keyVector.values[row] as number) : keyWords[2 * row + 1]! * wordSize + (keyWords[2 * row]! >>> 0);
    if (Math.floor(keyValue) !== keyValue) return false;
    if (keyValue < integerRange.least) integerRange.least = keyValue;
    if (keyValue > integerRange.most) integerRange.most = keyValue;
  }
  return true;
}

function isIntegerVector(vector: Vector): vector is IntegerVector {
  return vector.kind === 'i32' || vector.kind === 'f64' || vector.kind === 'i64';
}

function int32WordsOf(values: BigInt64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length * 2);
}
