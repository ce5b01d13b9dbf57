/**
 * Values of one column to small numbers, in order of first appearance: 0 is NULL, the first value is 1. Equal values have one
 * number in all layouts and dictionaries. Open addressing over typed arrays, no object per value.
 */
import { assert } from '../../errors.ts';
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { TextInterner } from '../expressions/text-interner.ts';
import type { Batch } from './operator.ts';
import { doubleLength, hashWords } from './pair-numbers.ts';

/** Numbers of one column. `exact` is for integers and numbers side by side under the type number; `fill` is as in `fillOf`. */
export function valueNumbers(type: ColumnType, { exact = false, fill = 1 } = {}): ValueNumbers {
  return type === 'string' || type === 'json' ? new TextNumbers(fill) : new ScalarNumbers(type, exact, fill);
}

/** The numbers by which a key finds rows. */
export interface KeyNumbers {
  /** The largest number. */
  readonly size: number;
  readonly bytes: number;
  /** Numbers of the rows of a batch into `out`: 0 for NULL, else from 1. */
  assign(vector: Vector, batch: Batch, out: Int32Array): void;
  /** Numbers as `assign` gives them without taking in new values: 0 for NULL and for what never came. */
  find(vector: Vector, batch: Batch, out: Int32Array): void;
}

/** Its size counts distinct values but NULL. */
export interface ValueNumbers extends KeyNumbers {
  /** Takes in new values, and no more; `scratch` has room for the rows. */
  meet(vector: Vector, batch: Batch, scratch: Int32Array): void;
  /** For a column of small numbers without NULL, numbers by value: 0, or beyond the end, where a value has none yet. */
  tableOf(vector: Vector): Int32Array | null;
  vector(numbers: Int32Array): Vector;
}

export class TextNumbers implements ValueNumbers {
  readonly #interner: TextInterner;
  /** Results of `find` for foreign codes: a number, -1 for a text that never came, 0 not asked yet. */
  readonly #foundBy = new Map<Dictionary, Int32Array>();

  constructor(fill: number) {
    this.#interner = new TextInterner(fill);
  }

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
      if (nulls === null) {
        const table = this.complete(vector, { columns: [], selection, first, count });
        if (selection === null) for (let j = 0; j < count; j++) out[j] = table[values[first + j]!]!;
        else for (let j = 0; j < count; j++) out[j] = table[values[selection[j]!]!]!;
        return;
      }
      const table = interner.foreign(dictionary);
      for (let j = 0; j < count; j++) {
        const i = selection === null ? first + j : selection[j]!;
        if (nulls[i] === 1) out[j] = 0;
        else out[j] = table[values[i]!] || interner.numberOfForeign(dictionary, values[i]!);
      }
      return;
    }
    assert(vector.kind === 'text', 'text rests in text or dict');
    interner.numbersOf(vector, { selection, first, count }, out);
  }

  meet(vector: Vector, batch: Batch, scratch: Int32Array): void {
    if (vector.kind === 'dict' && vector.nulls === null) this.complete(vector, batch);
    else this.assign(vector, batch, scratch);
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
      const table = this.#numberTable(dictionary);
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

  tableOf(vector: Vector): Int32Array | null {
    return vector.kind === 'dict' && vector.nulls === null ? this.#interner.foreign(vector.dictionary) : null;
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

  #numberTable(dictionary: Dictionary): Int32Array {
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

/** The most slots of the table of small integers, and the most for each value met. */
const smallMax = 1 << 24;
const smallPerValue = 16;
const smallInAnyCase = 65_536;
/** A table of values that is shorter moves at once, … */
const movesFrom = 1 << 16;
/** … a longer one takes a few slots for every few new values. */
const slotsAtOnce = 256;
const comeBetween = 8;

/** One number per value in all layouts: integers, instants and booleans by their 64 bits, doubles by theirs. */
class ScalarNumbers implements ValueNumbers {
  readonly #doubles: boolean;
  readonly #type: ColumnType;
  readonly #exact: boolean;
  readonly #fill: number;
  /** Numbers of the integers from 0 to its length, which most keys are. All others are found by their hash. */
  #small = new Int32Array(1_024);
  /** Numbers of doubles by hundredths, as amounts mostly are: 0 where the hash table has to be asked. */
  #hundredths = new Int32Array(1_024);
  #slots = new Int32Array(256);
  /** The table that values move from, and how far they have: a large one grows a few values at a time, as pairs do. */
  #before: Int32Array | null = null;
  #moved = 0;
  #hashed = 0;
  #high: Int32Array<ArrayBuffer>;
  #low: Int32Array<ArrayBuffer>;
  size = 0;

  /** `exact`: an integer that no double equals has no number among doubles; it is then 0, as NULL is. */
  constructor(type: ColumnType, exact: boolean, fill: number) {
    this.#type = type;
    this.#fill = fill;
    this.#high = new Int32Array(Math.ceil(128 * fill));
    this.#low = new Int32Array(Math.ceil(128 * fill));
    this.#doubles = type === 'number';
    this.#exact = exact;
  }

  get bytes(): number {
    return (
      this.#small.byteLength +
      this.#hundredths.byteLength +
      this.#slots.byteLength +
      (this.#before?.byteLength ?? 0) +
      this.#high.byteLength +
      this.#low.byteLength
    );
  }

  assign(vector: Vector, batch: Batch, out: Int32Array): void {
    this.#each(vector, batch, out, true);
  }

  meet(vector: Vector, batch: Batch, scratch: Int32Array): void {
    this.#each(vector, batch, scratch, true);
  }

  find(vector: Vector, batch: Batch, out: Int32Array): void {
    this.#each(vector, batch, out, false);
  }

  tableOf(vector: Vector): Int32Array | null {
    return vector.kind === 'i32' && vector.nulls === null ? this.#small : null;
  }

  #each(vector: Vector, batch: Batch, out: Int32Array, add: boolean): void {
    switch (vector.kind) {
      case 'null':
        out.fill(0, 0, batch.count);
        return;
      case 'i32':
        return this.#ofInts(vector.values, vector.nulls, batch, out, add);
      case 'f64':
        return this.#ofDoubles(vector.values, vector.nulls, batch, out, add);
      case 'i64':
        return this.#ofBigs(vector.values, vector.nulls, batch, out, add);
      case 'bool':
        return this.#ofBytes(vector.values, vector.nulls, batch, out, add);
      default:
        assert(false, 'a scalar key');
    }
  }

  // One function per kind of array: a shared one would be slow for each.

  #ofInts(values: Int32Array, nulls: Uint8Array | null, { selection, first, count }: Batch, out: Int32Array, add: boolean): void {
    let small = this.#small;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (nulls !== null && nulls[i] === 1) {
        out[j] = 0;
        continue;
      }
      const value = values[i]!;
      const known = value >= 0 && value < small.length ? small[value]! : 0;
      if (known !== 0) out[j] = known;
      else {
        out[j] = this.#ofInteger(value, add);
        small = this.#small;
      }
    }
  }

  #ofDoubles(
    values: Float64Array,
    nulls: Uint8Array | null,
    { selection, first, count }: Batch,
    out: Int32Array,
    add: boolean,
  ): void {
    let small = this.#small;
    let hundredths = this.#hundredths;
    let { size } = this;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (nulls !== null && nulls[i] === 1) {
        out[j] = 0;
        continue;
      }
      const value = values[i]!;
      const known = value >= 0 && value < small.length && value === (value | 0) ? small[value | 0]! : 0;
      if (known !== 0) {
        out[j] = known;
        continue;
      }
      const near = value * 100 + 0.5;
      // No other double has the same quotient, so the entry belongs to this value.
      const met = near >= 0 && near < hundredths.length && (near | 0) / 100 === value ? hundredths[near | 0]! : 0;
      if (met !== 0) {
        out[j] = met;
        continue;
      }
      out[j] = Number.isInteger(value) ? this.#ofInteger(value, add) : this.#ofDouble(value, add);
      if (this.size === size) continue;
      size = this.size;
      this.#remember(value);
      small = this.#small;
      hundredths = this.#hundredths;
    }
  }

  #ofBigs(
    values: BigInt64Array,
    nulls: Uint8Array | null,
    { selection, first, count }: Batch,
    out: Int32Array,
    add: boolean,
  ): void {
    const words = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (nulls !== null && nulls[i] === 1) out[j] = 0;
      else if (words[2 * i + 1] === 0 && words[2 * i]! >= 0) out[j] = this.#ofInteger(words[2 * i]!, add);
      else if (this.#doubles) out[j] = this.#ofBig(values[i]!, add);
      else out[j] = this.#ofWords(words[2 * i + 1]!, words[2 * i]!, add);
    }
  }

  #ofBytes(
    values: Uint8Array,
    nulls: Uint8Array | null,
    { selection, first, count }: Batch,
    out: Int32Array,
    add: boolean,
  ): void {
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      out[j] = nulls !== null && nulls[i] === 1 ? 0 : this.#ofInteger(values[i]!, add);
    }
  }

  vector(numbers: Int32Array): Vector {
    const nulls = nullsOf(numbers);
    const n = numbers.length;
    if (this.#type === 'boolean')
      return { kind: 'bool', values: Uint8Array.from(numbers, (number) => (number === 0 ? 0 : this.#low[number - 1]!)), nulls };
    const integers = this.#type === 'integer' ? this.#narrow(numbers) : null;
    if (integers) return { kind: 'i32', values: integers, nulls };
    const words = new Int32Array(n * 2);
    for (let j = 0; j < n; j++) {
      if (numbers[j] === 0) continue;
      words[2 * j] = this.#low[numbers[j]! - 1]!;
      words[2 * j + 1] = this.#high[numbers[j]! - 1]!;
    }
    if (this.#doubles) return { kind: 'f64', values: new Float64Array(words.buffer), nulls };
    return { kind: 'i64', values: new BigInt64Array(words.buffer), nulls };
  }

  /** The values in 32 bits; null where one needs more. */
  #narrow(numbers: Int32Array): Int32Array | null {
    const values = new Int32Array(numbers.length);
    for (let j = 0; j < numbers.length; j++) {
      if (numbers[j] === 0) continue;
      const low = this.#low[numbers[j]! - 1]!;
      if (this.#high[numbers[j]! - 1] !== low >> 31) return null;
      values[j] = low;
    }
    return values;
  }

  /** An integer within 2^53. */
  #ofInteger(value: number, add: boolean): number {
    if (value >= 0 && value < smallMax && (value < this.#small.length || this.#reaches(value))) {
      const known = this.#small[value]!;
      if (known !== 0 || !add) return known;
      if (this.#doubles) {
        scratchDouble[0] = value + 0;
        return (this.#small[value] = this.#append(scratchWords[1]!, scratchWords[0]!));
      }
      return (this.#small[value] = this.#append(0, value));
    }
    return this.#doubles ? this.#ofDouble(value, add) : this.#ofWords(Math.floor(value / word), value | 0, add);
  }

  /** Called for a value that was just met. */
  #remember(value: number): void {
    const hundredths = Math.floor(value * 100 + 0.5);
    if (!(hundredths >= 0 && hundredths < smallMax && hundredths / 100 === value)) return;
    if (hundredths < this.#hundredths.length) {
      this.#hundredths[hundredths] = this.size;
      return;
    }
    if (hundredths >= Math.max(smallInAnyCase, this.size * smallPerValue)) return;
    let length = this.#hundredths.length;
    while (length <= hundredths) length *= 2;
    this.#hundredths = new Int32Array(length);
    for (let index = 0; index < this.size; index++) {
      const met = this.#valueOf(index);
      const at = Math.floor(met * 100 + 0.5);
      if (at >= 0 && at < length && at / 100 === met) this.#hundredths[at] = index + 1;
    }
  }

  /** Makes the table of small integers longer where that is worth it. */
  #reaches(value: number): boolean {
    if (value >= Math.max(smallInAnyCase, this.size * smallPerValue)) return false;
    let length = this.#small.length;
    while (length <= value) length *= 2;
    const small = new Int32Array(length);
    small.set(this.#small);
    // Moves values from the hash table to the direct table, which now has room for them.
    for (let index = 0; index < this.size; index++) {
      const met = this.#valueOf(index);
      if (met >= this.#small.length && met < length && Number.isInteger(met)) small[met] = index + 1;
    }
    this.#small = small;
    return true;
  }

  #valueOf(index: number): number {
    if (!this.#doubles) return this.#high[index]! * word + (this.#low[index]! >>> 0);
    scratchWords[0] = this.#low[index]!;
    scratchWords[1] = this.#high[index]!;
    return scratchDouble[0]!;
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
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = hashWords(high, low) & mask;
    for (;;) {
      const number = slots[slot]!;
      if (number === 0) break;
      if (this.#low[number - 1] === low && this.#high[number - 1] === high) return number;
      slot = (slot + 1) & mask;
    }
    if (this.#before !== null) {
      const number = this.#findBefore(this.#before, high, low);
      if (number !== 0) return number;
    }
    if (!add) return 0;
    slots[slot] = this.#append(high, low);
    this.#hashed++;
    if (this.#before !== null) {
      if (this.#hashed % comeBetween === 0) this.#move(this.#before, slotsAtOnce);
    } else if (this.#hashed * 2 > slots.length * this.#fill) this.#grow();
    return this.size;
  }

  #findBefore(slots: Int32Array, high: number, low: number): number {
    const mask = slots.length - 1;
    for (let slot = hashWords(high, low) & mask; ; slot = (slot + 1) & mask) {
      const number = slots[slot]!;
      if (number === 0 || (this.#low[number - 1] === low && this.#high[number - 1] === high)) return number;
    }
  }

  #append(high: number, low: number): number {
    const index = this.size++;
    if (index === this.#low.length) {
      this.#low = doubleLength(this.#low);
      this.#high = doubleLength(this.#high);
    }
    this.#low[index] = low;
    this.#high[index] = high;
    return index + 1;
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new Int32Array(before.length * 2);
    this.#before = before;
    this.#moved = 0;
    if (before.length < movesFrom) this.#move(before, before.length);
  }

  #move(before: Int32Array, count: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    const end = Math.min(before.length, this.#moved + count);
    for (let at = this.#moved; at < end; at++) {
      const number = before[at]!;
      if (number === 0) continue;
      let slot = hashWords(this.#high[number - 1]!, this.#low[number - 1]!) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = number;
    }
    this.#moved = end;
    if (end === before.length) this.#before = null;
  }
}

const word = 4_294_967_296;
const scratchDouble = new Float64Array(1);
const scratchWords = new Int32Array(scratchDouble.buffer);

function nullsOf(numbers: Int32Array): Uint8Array | null {
  if (!numbers.includes(0)) return null;
  return Uint8Array.from(numbers, (number) => (number === 0 ? 1 : 0));
}
