/** Rows by an integer key whose values lie close together: the key itself is the place in the table, nothing is hashed. */
import type { Vector } from '../../log/values/columns.ts';
import type { Batch } from './operator.ts';
import { type RowIndex, rowsPerStep } from './row-index.ts';

/** A table may have so many places per row, and so many in any case: pages that are never touched cost nothing. */
const placesPerRow = 16;
const placesMin = 1 << 20;
const placesMax = 1 << 25;

type Integers = Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>;

export class DenseIntegers implements RowIndex {
  readonly #least: number;
  /** First row + 1 by key minus the least one; the last place is for keys that are not here. */
  readonly #firsts: Int32Array;
  readonly following: Int32Array;
  unique = true;

  private constructor(rows: number, least: number, places: number) {
    this.#least = least;
    this.#firsts = new Int32Array(places + 1);
    this.following = new Int32Array(rows);
  }

  /** Null where the column does not hold integers, or they lie too far apart. */
  static *build(key: Vector, rows: number): Generator<undefined, DenseIntegers | null, void> {
    if (key.kind !== 'i32' && key.kind !== 'f64' && key.kind !== 'i64') return null;
    const range: Range = { least: Number.POSITIVE_INFINITY, most: Number.NEGATIVE_INFINITY };
    for (let first = 0; first < rows; first += rowsPerStep) {
      widen(range, key, first, Math.min(rows, first + rowsPerStep));
      yield;
    }
    // Beyond 2^52 differences are no longer exact. Without any value the range is empty.
    if (range.least > range.most || range.least < -(2 ** 52) || range.most > 2 ** 52) return null;
    const places = range.most - range.least + 1;
    if (places > Math.min(placesMax, Math.max(placesMin, rows * placesPerRow))) return null;
    const index = new DenseIntegers(rows, range.least, places);
    for (let last = rows; last > 0; last -= rowsPerStep) {
      const first = Math.max(0, last - rowsPerStep);
      // Places stand in `following` until the chain takes their place, from the last row to the first.
      const own = index.following.subarray(first, last);
      index.#places(key, { columns: [], selection: null, first, count: last - first }, own);
      if (index.#chain(own, first)) index.unique = false;
      yield;
    }
    index.#firsts[places] = 0;
    return index;
  }

  get bytes(): number {
    return this.#firsts.byteLength + this.following.byteLength;
  }

  find(keys: readonly Vector[], batch: Batch, out: Int32Array): void {
    const key = keys[0]!;
    if (key.kind !== 'i32' && key.kind !== 'f64' && key.kind !== 'i64') {
      out.fill(0, 0, batch.count);
      return;
    }
    if (key.kind === 'i32' && key.nulls === null) return findInts(key.values, batch, this.#least, this.#firsts, out);
    this.#places(key, batch, out);
    const firsts = this.#firsts;
    for (let j = 0; j < batch.count; j++) out[j] = firsts[out[j]!]!;
  }

  /** Whether two rows share a key. */
  #chain(places: Int32Array, first: number): boolean {
    const firsts = this.#firsts;
    const nowhere = firsts.length - 1;
    let shared = 0;
    for (let j = places.length - 1; j >= 0; j--) {
      const place = places[j]!;
      const next = place === nowhere ? 0 : firsts[place]!;
      shared |= next;
      places[j] = next;
      firsts[place] = first + j + 1;
    }
    return shared !== 0;
  }

  #places(key: Integers, batch: Batch, out: Int32Array): void {
    const nowhere = this.#firsts.length - 1;
    if (key.kind === 'i64') placesOfWords(wordsOf(key.values), batch, this.#least, nowhere, out);
    else if (key.kind === 'i32') placesOfInts(key.values, batch, this.#least, nowhere, out);
    else placesOfDoubles(key.values, batch, this.#least, nowhere, out);
    const { nulls } = key;
    if (nulls === null) return;
    const { selection, first, count } = batch;
    for (let j = 0; j < count; j++) if (nulls[selection === null ? first + j : selection[j]!] === 1) out[j] = nowhere;
  }
}

const word = 4_294_967_296;

/** Place and row in one go, for the layout that most keys have. */
function findInts(values: Int32Array, batch: Batch, least: number, firsts: Int32Array, out: Int32Array): void {
  const { selection, first, count } = batch;
  const nowhere = firsts.length - 1;
  if (selection === null) {
    for (let j = 0; j < count; j++) {
      const place = values[first + j]! - least;
      out[j] = place >= 0 && place < nowhere ? firsts[place]! : 0;
    }
  } else {
    for (let j = 0; j < count; j++) {
      const place = values[selection[j]!]! - least;
      out[j] = place >= 0 && place < nowhere ? firsts[place]! : 0;
    }
  }
}

/** One function per kind of array: a shared one would be slow for each. */
function placesOfInts(values: Int32Array, batch: Batch, least: number, nowhere: number, out: Int32Array): void {
  const { selection, first, count } = batch;
  for (let j = 0; j < count; j++) {
    const place = values[selection === null ? first + j : selection[j]!]! - least;
    out[j] = place >= 0 && place < nowhere ? place : nowhere;
  }
}

function placesOfDoubles(values: Float64Array, batch: Batch, least: number, nowhere: number, out: Int32Array): void {
  const { selection, first, count } = batch;
  for (let j = 0; j < count; j++) {
    const place = values[selection === null ? first + j : selection[j]!]! - least;
    out[j] = place >= 0 && place < nowhere ? place : nowhere;
  }
}

/** The least key is within 2^53, so a key that is not yields a difference that is far off even when it is rounded. */
function placesOfWords(words: Int32Array, batch: Batch, least: number, nowhere: number, out: Int32Array): void {
  const { selection, first, count } = batch;
  for (let j = 0; j < count; j++) {
    const i = selection === null ? first + j : selection[j]!;
    const place = words[2 * i + 1]! * word + (words[2 * i]! >>> 0) - least;
    out[j] = place >= 0 && place < nowhere ? place : nowhere;
  }
}

interface Range {
  least: number;
  most: number;
}

function widen(range: Range, key: Integers, from: number, to: number): void {
  const { nulls } = key;
  const words = key.kind === 'i64' ? wordsOf(key.values) : null;
  for (let row = from; row < to; row++) {
    if (nulls !== null && nulls[row] === 1) continue;
    const value = words === null ? (key.values[row] as number) : words[2 * row + 1]! * word + (words[2 * row]! >>> 0);
    if (value < range.least) range.least = value;
    if (value > range.most) range.most = value;
  }
}

function wordsOf(values: BigInt64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length * 2);
}
