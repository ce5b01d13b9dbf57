/** Where values of an integer column change their class. */
import type { Rows } from './features.ts';
import { millisecondsOf, wordsOf } from './cells.ts';

/** Where many cuts are, a value's are found by its place between the first and the last. */
const buckets = 1024;

/** Cuts of a column of timestamps are milliseconds. */
export class Bounds {
  readonly #cuts: readonly bigint[];
  readonly #near: Float64Array;
  readonly #exact: Float64Array;
  readonly #labels: Int32Array;
  /** How many cuts lie in the buckets before one: where the search for a value begins. */
  readonly #starts: Int32Array | null;
  readonly #from: number;
  readonly #scale: number;

  constructor(cuts: readonly bigint[], labels: readonly number[]) {
    const distinctBounds: bigint[] = [];
    const keptLabels = [labels[0]!];
    cuts.forEach((cut, i) => {
      if (labels[i + 1] === keptLabels.at(-1)) return;
      distinctBounds.push(cut);
      keptLabels.push(labels[i + 1]!);
    });
    this.#cuts = distinctBounds;
    this.#labels = Int32Array.from(keptLabels);
    this.#near = Float64Array.from(distinctBounds, Number);
    // No double beyond 2^53 stands in a column, so a cut there is beyond all of them.
    this.#exact = Float64Array.from(distinctBounds, (cut) =>
      cut > 2n ** 53n ? Infinity : cut < -(2n ** 53n) ? -Infinity : Number(cut),
    );
    this.#from = this.#exact[0] ?? 0;
    const width = (this.#exact.at(-1) ?? 0) - this.#from;
    this.#scale = (buckets - 1) / width;
    if (distinctBounds.length > 4 && Number.isFinite(width)) {
      this.#starts = new Int32Array(buckets);
      for (const cut of this.#exact) {
        const bucket = Math.floor((cut - this.#from) * this.#scale);
        for (let after = bucket + 1; after < buckets; after++) this.#starts[after]!++;
      }
    } else this.#starts = null;
  }

  #labelOf(value: number): number {
    const cuts = this.#exact;
    const starts = this.#starts;
    if (starts !== null) {
      const bucket = Math.floor((value - this.#from) * this.#scale);
      // Multiplying and rounding keep order: cuts of lower buckets are below the value.
      let count = bucket < 0 ? 0 : bucket < buckets ? starts[bucket]! : cuts.length;
      while (count < cuts.length && cuts[count]! <= value) count++;
      return this.#labels[count]!;
    }
    return this.#labels[countUpTo(cuts, value)]!;
  }

  /** For integers that doubles hold exactly. */
  classify(
    values: Int32Array | Float64Array,
    nulls: Uint8Array | null,
    ofNull: number,
    rows: Rows,
    shift: number,
    out: Int32Array,
  ): void {
    const { selection, first, count } = rows;
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      out[k]! |= (nulls !== null && nulls[row] === 1 ? ofNull : this.#labelOf(values[row]!)) << shift;
    }
  }

  classifyInstants(
    values: BigInt64Array,
    nulls: Uint8Array | null,
    ofNull: number,
    rows: Rows,
    shift: number,
    out: Int32Array,
  ): void {
    const words = wordsOf(values);
    const { selection, first, count } = rows;
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      const isNull = nulls !== null && nulls[row] === 1;
      out[k]! |= (isNull ? ofNull : this.#labelOf(millisecondsOf(words[2 * row]!, words[2 * row + 1]!))) << shift;
    }
  }

  classifyWide(
    values: BigInt64Array,
    nulls: Uint8Array | null,
    ofNull: number,
    rows: Rows,
    shift: number,
    out: Int32Array,
  ): void {
    const words = wordsOf(values);
    const { selection, first, count } = rows;
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      const isNull = nulls !== null && nulls[row] === 1;
      out[k]! |= (isNull ? ofNull : this.#labelOfWide(words[2 * row]!, words[2 * row + 1]!, values, row)) << shift;
    }
  }

  /** For an i64 cell. Its nearest double separates it from every cut but one with the same nearest double. */
  #labelOfWide(low: number, high: number, values: BigInt64Array, row: number): number {
    const near = high * 4_294_967_296 + (low >>> 0);
    const count = countUpTo(this.#near, near);
    if (count === 0 || this.#near[count - 1] !== near) return this.#labels[count]!;
    const value = values[row]!;
    let exact = count;
    while (exact > 0 && this.#cuts[exact - 1]! > value) exact--;
    return this.#labels[exact]!;
  }
}

/** How many of these ascending numbers are at most `value`. */
function countUpTo(ascending: Float64Array, value: number): number {
  if (ascending.length <= 4) {
    let count = 0;
    while (count < ascending.length && ascending[count]! <= value) count++;
    return count;
  }
  let from = 0;
  let to = ascending.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (ascending[middle]! <= value) from = middle + 1;
    else to = middle;
  }
  return from;
}
