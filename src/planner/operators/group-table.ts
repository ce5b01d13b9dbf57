/**
 * Rows to group numbers. Each key column gives its values small numbers (0 is NULL), pairs of numbers get numbers again,
 * until one is left: a group. All on typed arrays; dictionary codes go through a table, text is compared where it lies.
 * Numbers are given in order of first appearance, so the order of groups follows the order of rows and nothing else.
 */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/columns.ts';
import type { ColumnType } from '../../log/value.ts';
import { TextInterner } from '../expressions/text-interner.ts';
import type { Batch } from './operator.ts';

export class GroupTable {
  readonly #columns: readonly ValueNumbers[];
  readonly #pairs: readonly PairNumbers[];
  #groups = new Int32Array(0);
  #values = new Int32Array(0);
  /** How many groups with a value came before the NULL group of a single key; -1 while there is none. */
  #nullAfter = -1;

  constructor(types: readonly ColumnType[]) {
    this.#columns = types.map((type) => (type === 'string' || type === 'json' ? new TextNumbers() : new ScalarNumbers(type)));
    this.#pairs = types.slice(1).map(() => new PairNumbers());
  }

  get bytes(): number {
    let bytes = 0;
    for (const each of this.#columns) bytes += each.bytes;
    for (const each of this.#pairs) bytes += each.bytes;
    return bytes;
  }

  /** Group numbers are below this. */
  get size(): number {
    if (this.#columns.length === 0) return 1;
    return this.#pairs.length > 0 ? this.#pairs[this.#pairs.length - 1]!.size : this.#columns[0]!.size + 1;
  }

  /** Group numbers of the rows of a batch, by place in it; key columns are the first ones. Valid until the next call. */
  assign(batch: Batch): Int32Array {
    if (this.#groups.length < batch.count) {
      this.#groups = new Int32Array(batch.count);
      this.#values = new Int32Array(batch.count);
    }
    const groups = this.#groups;
    const [first] = this.#columns;
    if (!first) return groups;
    const before = first.size;
    first.assign(batch.columns[0]!, batch, groups);
    if (this.#pairs.length === 0) {
      const vector = batch.columns[0]!;
      const mayBeNull = vector.kind === 'null' || vector.nulls !== null;
      if (mayBeNull && this.#nullAfter < 0) this.#findNull(groups, batch.count, before);
      return groups;
    }
    for (let c = 1; c < this.#columns.length; c++) {
      this.#columns[c]!.assign(batch.columns[c]!, batch, this.#values);
      this.#pairs[c - 1]!.assign(groups, this.#values, batch.count);
    }
    return groups;
  }

  /**
   * Where the only key is dictionary codes without NULL: the table from codes to groups, complete for this batch, so that
   * whoever goes over the rows can look groups up on the way. null in any other case.
   */
  codes(batch: Batch): { readonly table: Int32Array; readonly codes: Int32Array } | null {
    const vector = batch.columns[0];
    if (this.#columns.length !== 1 || vector?.kind !== 'dict' || vector.nulls !== null) return null;
    const [column] = this.#columns;
    return column instanceof TextNumbers ? { table: column.complete(vector, batch), codes: vector.values } : null;
  }

  /** Every group, in order of first appearance. */
  order(): Int32Array {
    const size = this.size;
    if (this.#columns.length !== 1) return Int32Array.from({ length: size }, (_, i) => i);
    const order = new Int32Array(this.#nullAfter < 0 ? size - 1 : size);
    let at = 0;
    for (let value = 1; value < size; value++) {
      if (value - 1 === this.#nullAfter) order[at++] = 0;
      order[at++] = value;
    }
    if (this.#nullAfter === size - 1) order[at] = 0;
    return order;
  }

  /** Key columns of these groups. */
  keys(groups: Int32Array): Vector[] {
    const vectors: Vector[] = [];
    let numbers = groups;
    for (let c = this.#columns.length - 1; c >= 0; c--) {
      const pairs = c > 0 ? this.#pairs[c - 1]! : null;
      vectors.unshift(this.#columns[c]!.vector(pairs ? pairs.rights(numbers) : numbers));
      if (pairs) numbers = pairs.lefts(numbers);
    }
    return vectors;
  }

  /** Values of this batch that are new got rising numbers: those seen before the first NULL of it come before NULL. */
  #findNull(groups: Int32Array, count: number, before: number): void {
    let most = before;
    for (let j = 0; j < count; j++) {
      if (groups[j] === 0) {
        this.#nullAfter = most;
        return;
      }
      if (groups[j]! > most) most = groups[j]!;
    }
  }
}

interface ValueNumbers {
  /** Distinct values but NULL. */
  readonly size: number;
  readonly bytes: number;
  /** Numbers of the rows of a batch into `out`: 0 for NULL, else from 1. */
  assign(vector: Vector, batch: Batch, out: Int32Array): void;
  vector(numbers: Int32Array): Vector;
}

class TextNumbers implements ValueNumbers {
  readonly #interner = new TextInterner();

  get size(): number {
    return this.#interner.size;
  }

  get bytes(): number {
    return this.#interner.bytes;
  }

  assign(vector: Vector, { selection, first, count }: Batch, out: Int32Array): void {
    const interner = this.#interner;
    if (vector.kind === 'null') {
      out.fill(0, 0, count);
      return;
    }
    const nulls = vector.nulls;
    if (vector.kind === 'dict') {
      const { values, dictionary } = vector;
      const table = interner.foreign(dictionary);
      for (let j = 0; j < count; j++) {
        const i = selection === null ? first + j : selection[j]!;
        if (nulls !== null && nulls[i] === 1) out[j] = 0;
        else out[j] = table[values[i]!] || interner.numberOfForeign(dictionary, values[i]!);
      }
      return;
    }
    assert(vector.kind === 'text', 'text rests in text or dict');
    const { offsets, heap } = vector;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      out[j] = nulls !== null && nulls[i] === 1 ? 0 : interner.ofBytes(heap, offsets[i]!, offsets[i + 1]!) + 1;
    }
  }

  /** The table from codes to numbers, with an entry for every code of the batch. */
  complete({ values, dictionary }: Extract<Vector, { kind: 'dict' }>, { selection, first, count }: Batch): Int32Array {
    const table = this.#interner.foreign(dictionary);
    let missing = 0;
    if (selection === null) for (let i = first; i < first + count; i++) missing |= table[values[i]!]! - 1;
    else for (let j = 0; j < count; j++) missing |= table[values[selection[j]!]!]! - 1;
    // Entries are above 0: only an absent one minus 1 is negative.
    if (missing >= 0) return table;
    for (let j = 0; j < count; j++) {
      const code = values[selection === null ? first + j : selection[j]!]!;
      if (table[code] === 0) this.#interner.ofForeign(dictionary, code);
    }
    return table;
  }

  vector(numbers: Int32Array): Vector {
    return { kind: 'dict', values: numbers.map((number) => number - 1), dictionary: this.#interner, nulls: nullsOf(numbers) };
  }
}

const smallValues = 65_536;

/** Integers, instants and booleans by their 64 bits, doubles by theirs: one number per value whatever the layout. */
class ScalarNumbers implements ValueNumbers {
  readonly #type: ColumnType;
  /** Numbers of the integers 0 .. 65,535, which most keys are. */
  readonly #small = new Int32Array(smallValues);
  #slots = new Int32Array(256);
  #high = new Int32Array(128);
  #low = new Int32Array(128);
  size = 0;

  constructor(type: ColumnType) {
    this.#type = type;
  }

  get bytes(): number {
    return this.#small.byteLength + this.#slots.byteLength + this.#high.byteLength + this.#low.byteLength;
  }

  assign(vector: Vector, { selection, first, count }: Batch, out: Int32Array): void {
    if (vector.kind === 'null') {
      out.fill(0, 0, count);
      return;
    }
    const nulls = vector.nulls;
    const doubles = this.#type === 'number';
    if (vector.kind === 'i64') {
      const words = new Int32Array(vector.values.buffer, vector.values.byteOffset, vector.values.length * 2);
      for (let j = 0; j < count; j++) {
        const i = selection === null ? first + j : selection[j]!;
        if (nulls !== null && nulls[i] === 1) out[j] = 0;
        else if (doubles) out[j] = this.#ofDouble(Number(vector.values[i]!));
        else out[j] = this.#ofWords(words[2 * i + 1]!, words[2 * i]!);
      }
      return;
    }
    assert(vector.kind === 'i32' || vector.kind === 'f64' || vector.kind === 'bool', 'a scalar key');
    const values = vector.values;
    const small = this.#small;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      const value = values[i]!;
      if (nulls !== null && nulls[i] === 1) out[j] = 0;
      else if (value >= 0 && value < smallValues && value === (value | 0)) {
        out[j] = small[value] || (small[value] = doubles ? this.#ofDouble(value) : this.#ofWords(0, value));
      } else if (doubles) out[j] = this.#ofDouble(value);
      else out[j] = this.#ofWords(Math.floor(value / 4_294_967_296), value | 0);
    }
  }

  vector(numbers: Int32Array): Vector {
    const nulls = nullsOf(numbers);
    const n = numbers.length;
    if (this.#type === 'boolean')
      return { kind: 'bool', values: Uint8Array.from(numbers, (number) => (number === 0 ? 0 : this.#low[number - 1]!)), nulls };
    const words = new Int32Array(n * 2);
    for (let j = 0; j < n; j++) {
      if (numbers[j] === 0) continue;
      words[2 * j] = this.#low[numbers[j]! - 1]!;
      words[2 * j + 1] = this.#high[numbers[j]! - 1]!;
    }
    if (this.#type === 'number') return { kind: 'f64', values: new Float64Array(words.buffer), nulls };
    return { kind: 'i64', values: new BigInt64Array(words.buffer), nulls };
  }

  #ofDouble(value: number): number {
    // Adding 0 makes -0, which equals 0, the same 64 bits.
    scratchDouble[0] = value + 0;
    return this.#ofWords(scratchWords[1]!, scratchWords[0]!);
  }

  #ofWords(high: number, low: number): number {
    high |= 0;
    low |= 0;
    const mask = this.#slots.length - 1;
    let slot = hashWords(high, low) & mask;
    for (;;) {
      const number = this.#slots[slot]!;
      if (number === 0) break;
      if (this.#low[number - 1] === low && this.#high[number - 1] === high) return number;
      slot = (slot + 1) & mask;
    }
    const index = this.size++;
    if (index === this.#low.length) {
      this.#low = doubled(this.#low);
      this.#high = doubled(this.#high);
    }
    this.#low[index] = low;
    this.#high[index] = high;
    this.#slots[slot] = index + 1;
    if (this.size * 2 > this.#slots.length) this.#slots = rehashed(this.#slots.length * 2, this.size, this.#high, this.#low);
    return index + 1;
  }
}

/** Pairs of numbers to numbers from 0. Also counts distinct values per group. */
export class PairNumbers {
  #slots = new Int32Array(256);
  #left = new Int32Array(128);
  #right = new Int32Array(128);
  size = 0;

  get bytes(): number {
    return this.#slots.byteLength + this.#left.byteLength + this.#right.byteLength;
  }

  /** Replaces left[j] by the number of (left[j], right[j]). */
  assign(left: Int32Array, right: Int32Array, count: number): void {
    for (let j = 0; j < count; j++) left[j] = this.numberOf(left[j]!, right[j]!);
  }

  numberOf(left: number, right: number): number {
    const mask = this.#slots.length - 1;
    let slot = hashWords(left, right) & mask;
    for (;;) {
      const index = this.#slots[slot]! - 1;
      if (index < 0) break;
      if (this.#left[index] === left && this.#right[index] === right) return index;
      slot = (slot + 1) & mask;
    }
    const index = this.size++;
    if (index === this.#left.length) {
      this.#left = doubled(this.#left);
      this.#right = doubled(this.#right);
    }
    this.#left[index] = left;
    this.#right[index] = right;
    this.#slots[slot] = index + 1;
    if (this.size * 2 > this.#slots.length) this.#slots = rehashed(this.#slots.length * 2, this.size, this.#left, this.#right);
    return index;
  }

  lefts(numbers: Int32Array): Int32Array {
    return numbers.map((number) => this.#left[number]!);
  }

  rights(numbers: Int32Array): Int32Array {
    return numbers.map((number) => this.#right[number]!);
  }
}

/** Numbers of one column alone, for counting distinct values. */
export function valueNumbers(type: ColumnType): ValueNumbers {
  return type === 'string' || type === 'json' ? new TextNumbers() : new ScalarNumbers(type);
}

export type { ValueNumbers };

const scratchDouble = new Float64Array(1);
const scratchWords = new Int32Array(scratchDouble.buffer);

function nullsOf(numbers: Int32Array): Uint8Array | null {
  if (!numbers.includes(0)) return null;
  return Uint8Array.from(numbers, (number) => (number === 0 ? 1 : 0));
}

function hashWords(a: number, b: number): number {
  let hash = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b, 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d);
  return hash ^ (hash >>> 15);
}

function doubled(values: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(values.length * 2);
  larger.set(values);
  return larger;
}

function rehashed(length: number, size: number, left: Int32Array, right: Int32Array): Int32Array<ArrayBuffer> {
  const slots = new Int32Array(length);
  const mask = length - 1;
  for (let index = 0; index < size; index++) {
    let slot = hashWords(left[index]!, right[index]!) & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = index + 1;
  }
  return slots;
}
