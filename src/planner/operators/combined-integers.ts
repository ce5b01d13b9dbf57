/**
 * Rows by two or more integer keys whose values lie close enough together for one number to say them all: that number is
 * hashed, once for a row, and no key by itself.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { Batch } from './operator.ts';
import { type RowIndex, rowsPerStep } from './row-index.ts';

type Integers = Extract<Vector, { kind: 'i32' | 'f64' }>;

interface Part {
  readonly least: number;
  readonly most: number;
  /** The factor of this key in the combined number. */
  readonly weight: number;
}

/** Every whole number below it is a double. */
const wholeMax = 2 ** 52;

export class CombinedIntegers implements RowIndex {
  readonly #parts: readonly Part[];
  readonly following: Int32Array;
  unique = true;
  /** By slot: the number, and the first row + 1 that has it; 0 where the slot is free. */
  readonly #numbers: Float64Array;
  readonly #firsts: Int32Array;
  #asked = new Float64Array(0);

  private constructor(parts: readonly Part[], rows: number) {
    this.#parts = parts;
    this.following = new Int32Array(rows);
    const slots = 2 ** Math.ceil(Math.log2(Math.max(16, rows * 2)));
    this.#numbers = new Float64Array(slots);
    this.#firsts = new Int32Array(slots);
  }

  /** Null where a key does not hold small integers, or they lie too far apart. */
  static *build(keys: readonly Vector[], rows: number): Generator<undefined, CombinedIntegers | null, void> {
    const parts: Part[] = [];
    let weight = 1;
    for (const key of keys) {
      const range = isIntegers(key) ? yield* rangeOf(key, rows) : null;
      if (range === null) return null;
      parts.push({ ...range, weight });
      weight *= range.most - range.least + 1;
      if (weight > wholeMax) return null;
    }
    const index = new CombinedIntegers(parts, rows);
    const numbers = new Float64Array(rowsPerStep);
    for (let last = rows; last > 0; last -= rowsPerStep) {
      const first = Math.max(0, last - rowsPerStep);
      index.#combine(keys, { columns: [], selection: null, first, count: last - first }, numbers);
      // From the last row to the first, so that chains stand in the order of rows.
      for (let j = last - first - 1; j >= 0; j--) {
        if (numbers[j]! < 0) continue;
        const slot = index.#slotOf(numbers[j]!);
        const next = index.#firsts[slot]!;
        index.#numbers[slot] = numbers[j]!;
        index.#firsts[slot] = first + j + 1;
        index.following[first + j] = next;
        if (next !== 0) index.unique = false;
      }
      yield;
    }
    return index;
  }

  get bytes(): number {
    return this.#numbers.byteLength + this.#firsts.byteLength + this.following.byteLength;
  }

  find(keys: readonly Vector[], batch: Batch, out: Int32Array): void {
    const { count } = batch;
    if (this.#asked.length < count) this.#asked = new Float64Array(count);
    const asked = this.#asked;
    this.#combine(keys, batch, asked);
    const firsts = this.#firsts;
    for (let j = 0; j < count; j++) out[j] = asked[j]! < 0 ? 0 : firsts[this.#slotOf(asked[j]!)]!;
  }

  /** The slot of a number, or the free one where it belongs. */
  #slotOf(number: number): number {
    const numbers = this.#numbers;
    const firsts = this.#firsts;
    const mask = firsts.length - 1;
    const low = number | 0;
    let slot = Math.imul(low ^ Math.imul((number / 4_294_967_296) | 0, 0x85eb_ca6b), 0x9e37_79b1);
    slot = (slot ^ (slot >>> 15)) & mask;
    while (firsts[slot] !== 0 && numbers[slot] !== number) slot = (slot + 1) & mask;
    return slot;
  }

  /** Numbers of rows; -1 where a key is NULL, or none that is held here. */
  #combine(keys: readonly Vector[], batch: Batch, out: Float64Array): void {
    const { count } = batch;
    out.fill(0, 0, count);
    for (const [k, part] of this.#parts.entries()) {
      const key = keys[k]!;
      if (key.kind === 'i32' && key.nulls === null) addInts(key.values, part, batch, out);
      else if (isNumbers(key)) addNumbers(key, part, batch, out);
      else out.fill(-1, 0, count);
    }
  }
}

function addInts(values: Int32Array, { least, most, weight }: Part, { selection, first, count }: Batch, out: Float64Array): void {
  for (let j = 0; j < count; j++) {
    const value = values[selection === null ? first + j : selection[j]!]!;
    if (value < least || value > most || out[j]! < 0) out[j] = -1;
    else out[j]! += (value - least) * weight;
  }
}

function addNumbers(
  { values, nulls }: Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>,
  { least, most, weight }: Part,
  { selection, first, count }: Batch,
  out: Float64Array,
): void {
  for (let j = 0; j < count; j++) {
    const row = selection === null ? first + j : selection[j]!;
    const cell = values[row]!;
    const isIn = (nulls === null || nulls[row] !== 1) && cell >= least && cell <= most && out[j]! >= 0;
    const value = isIn ? Number(cell) : 0;
    // A number between two integers equals none.
    if (isIn && Number.isInteger(value)) out[j]! += (value - least) * weight;
    else out[j] = -1;
  }
}

function isIntegers(key: Vector): key is Integers {
  return key.kind === 'i32' || key.kind === 'f64';
}

function isNumbers(key: Vector): key is Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }> {
  return isIntegers(key) || key.kind === 'i64';
}

function* rangeOf(
  { values, nulls }: Integers,
  rows: number,
): Generator<undefined, { readonly least: number; readonly most: number } | null, void> {
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (let row = 0; row < rows; row++) {
    if (row % rowsPerStep === rowsPerStep - 1) yield;
    if (nulls !== null && nulls[row] === 1) continue;
    const value = values[row]!;
    if (!Number.isInteger(value)) return null;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return least > most || least < -wholeMax || most > wholeMax ? null : { least, most };
}
