/** Numbers integers that lie close together by their distance from the least one: nothing is hashed, nothing looked up. */
import type { Vector } from '../../log/values/columns.ts';
import type { Batch } from './operator.ts';
import { rowsPerStep } from './row-index.ts';
import type { KeyNumbers } from './value-numbers.ts';

/** The most numbers per row, and the most in any case: pages of a table that are never touched cost nothing. */
const numbersPerRow = 16;
const numbersMin = 1 << 20;
const numbersMax = 1 << 25;
/** Differences of larger whole numbers are not exact. */
const wholeMax = 2 ** 52;

type Integers = Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>;

export class DenseIntegers implements KeyNumbers {
  /** The least value less one, so that the least value has the number 1. */
  readonly #base: number;
  readonly size: number;
  readonly bytes = 0;

  private constructor(base: number, size: number) {
    this.#base = base;
    this.size = size;
  }

  /** Null where the column does not hold integers, or they lie too far apart. */
  static *tryFrom(key: Vector, rows: number): Generator<undefined, DenseIntegers | null, void> {
    if (!isNumbers(key)) return null;
    const range: Range = { least: Number.POSITIVE_INFINITY, most: Number.NEGATIVE_INFINITY };
    for (let first = 0; first < rows; first += rowsPerStep) {
      if (!widen(range, key, first, Math.min(rows, first + rowsPerStep))) return null;
      yield;
    }
    // Without any value the range is empty.
    if (range.least > range.most || range.least < -wholeMax || range.most > wholeMax) return null;
    const size = range.most - range.least + 1;
    if (size > Math.min(numbersMax, Math.max(numbersMin, rows * numbersPerRow))) return null;
    return new DenseIntegers(range.least - 1, size);
  }

  assign(vector: Vector, batch: Batch, out: Int32Array): void {
    this.find(vector, batch, out);
  }

  find(vector: Vector, batch: Batch, out: Int32Array): void {
    const { selection, first, count } = batch;
    if (!isNumbers(vector)) {
      out.fill(0, 0, count);
      return;
    }
    const { size } = this;
    const base = this.#base;
    if (vector.kind === 'i64') ofWords(wordsOf(vector.values), batch, base, size, out);
    else if (vector.kind === 'i32') ofInts(vector.values, batch, base, size, out);
    else ofDoubles(vector.values, batch, base, size, out);
    const { nulls } = vector;
    if (nulls === null) return;
    for (let j = 0; j < count; j++) if (nulls[selection === null ? first + j : selection[j]!] === 1) out[j] = 0;
  }
}

const word = 4_294_967_296;

/** One function per kind of array: a shared one would be slow for each. */
function ofInts(values: Int32Array, { selection, first, count }: Batch, base: number, size: number, out: Int32Array): void {
  if (selection === null) {
    for (let j = 0; j < count; j++) {
      const number = values[first + j]! - base;
      out[j] = number > 0 && number <= size ? number : 0;
    }
  } else {
    for (let j = 0; j < count; j++) {
      const number = values[selection[j]!]! - base;
      out[j] = number > 0 && number <= size ? number : 0;
    }
  }
}

/** A number between two integers equals none. */
function ofDoubles(values: Float64Array, { selection, first, count }: Batch, base: number, size: number, out: Int32Array): void {
  for (let j = 0; j < count; j++) {
    const value = values[selection === null ? first + j : selection[j]!]!;
    const number = value - base;
    out[j] = number > 0 && number <= size && Math.floor(value) === value ? number : 0;
  }
}

/** The base is within 2^53, so a key that is not yields a difference that is far off even when it is rounded. */
function ofWords(words: Int32Array, { selection, first, count }: Batch, base: number, size: number, out: Int32Array): void {
  for (let j = 0; j < count; j++) {
    const i = selection === null ? first + j : selection[j]!;
    const number = words[2 * i + 1]! * word + (words[2 * i]! >>> 0) - base;
    out[j] = number > 0 && number <= size ? number : 0;
  }
}

interface Range {
  least: number;
  most: number;
}

/** False where a value is not whole. */
function widen(range: Range, key: Integers, from: number, to: number): boolean {
  const { nulls } = key;
  const words = key.kind === 'i64' ? wordsOf(key.values) : null;
  for (let row = from; row < to; row++) {
    if (nulls !== null && nulls[row] === 1) continue;
    const value = words === null ? (key.values[row] as number) : words[2 * row + 1]! * word + (words[2 * row]! >>> 0);
    if (Math.floor(value) !== value) return false;
    if (value < range.least) range.least = value;
    if (value > range.most) range.most = value;
  }
  return true;
}

function isNumbers(vector: Vector): vector is Integers {
  return vector.kind === 'i32' || vector.kind === 'f64' || vector.kind === 'i64';
}

function wordsOf(values: BigInt64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length * 2);
}
