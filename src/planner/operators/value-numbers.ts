/**
 * Values of one column to small numbers, in order of first appearance: 0 is NULL, the first value is 1. The same value has
 * the same number whatever layout or dictionary it comes in. Open addressing over typed arrays, no object per value.
 */
import { assert } from '../../errors.ts';
import type { Dictionary, Vector } from '../../log/columns.ts';
import type { ColumnType } from '../../log/value.ts';
import { TextInterner } from '../expressions/text-interner.ts';
import type { Batch } from './operator.ts';
import { doubled, hashWords, rehashed } from './pair-numbers.ts';

/** Numbers of one column. `exact` is for integers and numbers side by side under the type number. */
export function valueNumbers(type: ColumnType, exact = false): ValueNumbers {
  return type === 'string' || type === 'json' ? new TextNumbers() : new ScalarNumbers(type, exact);
}

export interface ValueNumbers {
  /** Distinct values but NULL. */
  readonly size: number;
  readonly bytes: number;
  /** Numbers of the rows of a batch into `out`: 0 for NULL, else from 1. */
  assign(vector: Vector, batch: Batch, out: Int32Array): void;
  /** The same without taking in new values: 0 for NULL and for what never came. */
  find(vector: Vector, batch: Batch, out: Int32Array): void;
  vector(numbers: Int32Array): Vector;
}

export class TextNumbers implements ValueNumbers {
  readonly #interner = new TextInterner();
  /** What `find` knows of foreign codes: a number, -1 for a text that never came, 0 not asked yet. */
  readonly #foundBy = new Map<Dictionary, Int32Array>();

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

  find(vector: Vector, { selection, first, count }: Batch, out: Int32Array): void {
    const interner = this.#interner;
    if (vector.kind === 'null') {
      out.fill(0, 0, count);
      return;
    }
    const nulls = vector.nulls;
    if (vector.kind === 'dict') {
      const { values, dictionary } = vector;
      const table = this.#found(dictionary);
      for (let j = 0; j < count; j++) {
        const i = selection === null ? first + j : selection[j]!;
        if (nulls !== null && nulls[i] === 1) out[j] = 0;
        else {
          const known = table[values[i]!]! || this.#look(dictionary, table, values[i]!);
          out[j] = known < 0 ? 0 : known;
        }
      }
      return;
    }
    assert(vector.kind === 'text', 'text rests in text or dict');
    const { offsets, heap } = vector;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      out[j] = nulls !== null && nulls[i] === 1 ? 0 : interner.codeOfBytes(heap, offsets[i]!, offsets[i + 1]!) + 1;
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

  #found(dictionary: Dictionary): Int32Array {
    let table = this.#foundBy.get(dictionary);
    if (!table || table.length < dictionary.size) this.#foundBy.set(dictionary, (table = new Int32Array(dictionary.size)));
    return table;
  }

  #look(dictionary: Dictionary, table: Int32Array, code: number): number {
    return (table[code] = this.#interner.codeOf(dictionary.text(code)) + 1 || -1);
  }

  vector(numbers: Int32Array): Vector {
    return { kind: 'dict', values: numbers.map((number) => number - 1), dictionary: this.#interner, nulls: nullsOf(numbers) };
  }
}

const smallValues = 65_536;

/** Integers, instants and booleans by their 64 bits, doubles by theirs: one number per value whatever the layout. */
class ScalarNumbers implements ValueNumbers {
  readonly #type: ColumnType;
  readonly #exact: boolean;
  /** Numbers of the integers 0 .. 65,535, which most keys are. */
  readonly #small = new Int32Array(smallValues);
  #slots = new Int32Array(256);
  #high = new Int32Array(128);
  #low = new Int32Array(128);
  size = 0;

  /** `exact`: an integer that no double equals has no number among doubles; it is then 0, as NULL is. */
  constructor(type: ColumnType, exact: boolean) {
    this.#type = type;
    this.#exact = exact;
  }

  get bytes(): number {
    return this.#small.byteLength + this.#slots.byteLength + this.#high.byteLength + this.#low.byteLength;
  }

  assign(vector: Vector, batch: Batch, out: Int32Array): void {
    this.#each(vector, batch, out, true);
  }

  find(vector: Vector, batch: Batch, out: Int32Array): void {
    this.#each(vector, batch, out, false);
  }

  #each(vector: Vector, { selection, first, count }: Batch, out: Int32Array, add: boolean): void {
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
        else if (doubles) out[j] = this.#ofBig(vector.values[i]!, add);
        else out[j] = this.#ofWords(words[2 * i + 1]!, words[2 * i]!, add);
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
        out[j] = small[value] || (small[value] = doubles ? this.#ofDouble(value, add) : this.#ofWords(0, value, add));
      } else if (doubles) out[j] = this.#ofDouble(value, add);
      else out[j] = this.#ofWords(Math.floor(value / 4_294_967_296), value | 0, add);
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

  #ofBig(value: bigint, add: boolean): number {
    const double = Number(value);
    return this.#exact && BigInt(double) !== value ? 0 : this.#ofDouble(double, add);
  }

  #ofDouble(value: number, add: boolean): number {
    // Adding 0 makes -0, which equals 0, the same 64 bits.
    scratchDouble[0] = value + 0;
    return this.#ofWords(scratchWords[1]!, scratchWords[0]!, add);
  }

  #ofWords(high: number, low: number, add: boolean): number {
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
    if (!add) return 0;
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

const scratchDouble = new Float64Array(1);
const scratchWords = new Int32Array(scratchDouble.buffer);

function nullsOf(numbers: Int32Array): Uint8Array | null {
  if (!numbers.includes(0)) return null;
  return Uint8Array.from(numbers, (number) => (number === 0 ? 1 : 0));
}
