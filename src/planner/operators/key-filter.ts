/**
 * Passes the keys of one side of a join to a scan of the other side, which drops rows without such a key: they would find no
 * partner. The filter is exact or wider, and depends on the keys alone, never on how rows lie in blocks.
 */
import type { Vector } from '../../log/values/columns.ts';
import { type Batch, emptyBatch, type Operator } from './operator.ts';
import { rowsPerStep } from './row-index.ts';

/** The largest range of keys for which a bit each is held; more where there are enough keys: 32 MiB at most. */
const bitsMin = 1 << 22;
const bitsPerKey = 64;
const bitsMax = 1 << 28;
/** Every whole number below it is a double. */
const wholeMax = 2 ** 52;
/** Where more of the values in between are keys, the filter would drop few rows. */
const densestShare = 0.9;
/** The most keys that are worth a look-up each, and the rows that are read to find out whether they are. */
const lookedUpMax = 1_024;
const rowsReadMax = 8_192;

type Numbers = Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>;

export class KeyFilter {
  #least = 0;
  #most = 0;
  /** A bit per value, less the least one; null: all values in between count as keys. */
  #bits: Int32Array | null = null;
  /** False until the keys are known, and where they are none that a filter tells. */
  isSet = false;
  #taken: { readonly key: Vector; readonly count: number } | null = null;

  get bytes(): number {
    return this.#bits?.byteLength ?? 0;
  }

  /** Takes the keys of rows 0 .. count-1, in steps; for keys that are no whole numbers it only serves lookups. */
  *take(key: Vector, count: number): Generator<undefined, void, void> {
    this.#taken = { key, count };
    if (key.kind !== 'i32' && key.kind !== 'f64' && key.kind !== 'i64') return;
    let least = Number.POSITIVE_INFINITY;
    let most = Number.NEGATIVE_INFINITY;
    for (let from = 0; from < count; from += rowsPerStep) {
      for (const value of wholeValues(key, from, Math.min(count, from + rowsPerStep))) {
        if (value < least) least = value;
        if (value > most) most = value;
        if (value !== Math.floor(value)) return;
      }
      yield;
    }
    if (least < -wholeMax || most > wholeMax) return;
    this.#least = least;
    this.#most = most;
    const keyRange = most - least + 1;
    if (keyRange > 0 && keyRange <= Math.min(bitsMax, Math.max(bitsMin, count * bitsPerKey))) {
      this.#bits = yield* bitsOf(key, count, least, keyRange);
    }
    this.isSet = true;
  }

  /** The keys as texts, for a scan whose key they are to look each up; null where they are not known yet, or more than a few. */
  lookUps(): readonly string[] | null {
    const taken = this.#taken;
    this.#taken = null;
    return taken !== null && taken.count <= rowsReadMax ? fewTexts(taken.key, taken.count) : null;
  }

  /** Writes the rows of a batch that have such a key; returns how many. `out` may be the batch's selection. */
  select({ columns, selection, first, count }: Batch, column: number, out: Int32Array): number {
    const key = columns[column]!;
    // A side without keys has no partners, and NULL equals nothing.
    if (key.kind === 'null' || this.#least > this.#most) return 0;
    if (key.kind === 'i32' && key.nulls === null && this.#fitsInts()) {
      return selectInts(key.values, this.#bits ?? everyBit, this.#least, this.#most, selection, first, count, out);
    }
    let passingCount = 0;
    for (let j = 0; j < count; j++) {
      const row = selection === null ? first + j : selection[j]!;
      out[passingCount] = row;
      if (this.#has(key as Numbers, row)) passingCount++;
    }
    return passingCount;
  }

  /** Whether it has anything to say of a column as it is laid out. */
  judges({ kind }: Vector): boolean {
    return this.isSet && (kind === 'i32' || kind === 'f64' || kind === 'i64' || kind === 'null');
  }

  #fitsInts(): boolean {
    return this.#least >= -(2 ** 31) && this.#most < 2 ** 31 && this.#most - this.#least < 2 ** 31;
  }

  #has({ values, nulls }: Numbers, row: number): boolean {
    if (nulls !== null && nulls[row] === 1) return false;
    const value = values[row]!;
    if (value < this.#least || value > this.#most) return false;
    if (this.#bits === null) return true;
    const keyBit = Number(value) - this.#least;
    return keyBit === Math.floor(keyBit) && (this.#bits[keyBit >>> 5]! & (1 << (keyBit & 31))) !== 0;
  }
}

/** Each key once, as `_pk` writes it; null where they are more than are looked up, or no keys of that kind. */
function fewTexts(key: Vector, count: number): string[] | null {
  if (key.kind === 'null') return [];
  if (key.kind !== 'dict' && key.kind !== 'text' && key.kind !== 'i32' && key.kind !== 'i64') return null;
  const texts = new Set<string>();
  const codes = new Set<number>();
  for (let row = 0; row < count; row++) {
    if (key.nulls?.[row] === 1) continue;
    if (key.kind === 'dict') {
      const code = key.values[row]!;
      if (codes.has(code)) continue;
      codes.add(code);
      texts.add(key.dictionary.text(code));
    } else if (key.kind === 'text') {
      texts.add(Buffer.from(key.heap.subarray(key.offsets[row], key.offsets[row + 1])).toString('utf8'));
    } else texts.add(String(key.values[row]!));
    if (texts.size > lookedUpMax) return null;
  }
  return [...texts];
}

/** Set where all values in between count as keys. */
const everyBit = new Int32Array([-1]);

/** The layout that most keys have. */
function selectInts(
  values: Int32Array,
  bits: Int32Array,
  least: number,
  most: number,
  selection: Int32Array | null,
  first: number,
  count: number,
  out: Int32Array,
): number {
  const range = (most - least) | 0;
  const mask = bits === everyBit ? 0 : -1;
  let passingCount = 0;
  // Each row is written, and the next one over it where it has no such key: nothing to guess for the processor.
  if (selection === null) {
    for (let row = first; row < first + count; row++) {
      const keyBit = (values[row]! - least) | 0;
      out[passingCount] = row;
      passingCount += keyBit >= 0 && keyBit <= range ? (bits[(keyBit >>> 5) & mask]! >>> (keyBit & 31)) & 1 : 0;
    }
    return passingCount;
  }
  for (let j = 0; j < count; j++) {
    const row = selection[j]!;
    const keyBit = (values[row]! - least) | 0;
    out[passingCount] = row;
    passingCount += keyBit >= 0 && keyBit <= range ? (bits[(keyBit >>> 5) & mask]! >>> (keyBit & 31)) & 1 : 0;
  }
  return passingCount;
}

/** A bit for each value from the least key on; null where so dense a set of keys would drop few rows. */
function* bitsOf(key: Numbers, count: number, least: number, keyRange: number): Generator<undefined, Int32Array | null, void> {
  const bits = new Int32Array(Math.ceil(keyRange / 32));
  let set = 0;
  for (let from = 0; from < count; from += rowsPerStep) {
    for (const value of wholeValues(key, from, Math.min(count, from + rowsPerStep))) {
      const keyBit = value - least;
      const bit = 1 << (keyBit & 31);
      if ((bits[keyBit >>> 5]! & bit) === 0) set++;
      bits[keyBit >>> 5]! |= bit;
    }
    yield;
  }
  return set <= keyRange * densestShare ? bits : null;
}

/** The values that there are, as doubles. */
function wholeValues({ kind, values, nulls }: Numbers, from: number, to: number): Int32Array | Float64Array {
  if (nulls === null && kind !== 'i64') return values.subarray(from, to);
  const doubles = new Float64Array(to - from);
  let there = 0;
  for (let row = from; row < to; row++) {
    if (nulls === null || nulls[row] !== 1) doubles[there++] = Number(values[row]);
  }
  return doubles.subarray(0, there);
}

/** A column of a node whose values have to be among keys. */
export interface Narrowing {
  readonly column: number;
  readonly filter: KeyFilter;
}

/** A narrowing made by a join, with the number of the key. */
export interface JoinNarrowing extends Narrowing {
  readonly key: number;
}

/** Leaves the rows that have all keys that are known by then. */
export class NarrowedOperator implements Operator {
  readonly #input: Operator;
  readonly #narrowings: readonly Narrowing[];
  #passing = new Int32Array(0);

  constructor(input: Operator, narrowings: readonly Narrowing[]) {
    this.#input = input;
    this.#narrowings = narrowings;
  }

  next(): Batch | null {
    const batch = this.#input.next();
    if (batch === null || batch.count === 0) return batch;
    let left = batch;
    for (const { column, filter } of this.#narrowings) {
      if (!filter.judges(batch.columns[column]!)) continue;
      if (this.#passing.length < batch.count) this.#passing = new Int32Array(batch.count);
      const count = filter.select(left, column, this.#passing);
      if (count === 0) return emptyBatch;
      // If all rows pass, the batch stays as it is: consecutive rows are copied at once.
      if (count < left.count) left = { columns: batch.columns, selection: this.#passing, first: 0, count };
    }
    return left;
  }

  close(): void {
    this.#input.close();
  }
}
