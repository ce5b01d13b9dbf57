/** Builds one column cell by cell, narrow first: i32, then f64 or i64 when a value asks for it; text as UTF-8 in one heap. */
import { AssertionError, assert } from '../../errors.ts';
import type { Vector } from './columns.ts';
import { type Cell, type ColumnType, checkText, I64_MAX, I64_MIN } from './value.ts';

const I32_MAX = 2_147_483_647;
const I32_MIN = -2_147_483_648;
const encoder = new TextEncoder();

export class VectorBuilder {
  readonly type: ColumnType;
  #length = 0;
  #capacity: number;
  readonly #heapBytes: number;
  #nulls: Uint8Array | null = null;
  #i32: Int32Array | null = null;
  #f64: Float64Array | null = null;
  #i64: BigInt64Array | null = null;
  #bool: Uint8Array | null = null;
  #offsets: Uint32Array | null = null;
  #heap: Uint8Array | null = null;
  #heapUsed = 0;
  #floats: Float32Array | null = null;
  #dims = 0;
  #sawValue = false;

  /** Room for `capacity` cells and `heapBytes` of text: more is made when it is needed. */
  constructor(type: ColumnType, capacity = 64, heapBytes = capacity * 16) {
    this.type = type;
    this.#capacity = capacity;
    this.#heapBytes = heapBytes;
  }

  get length(): number {
    return this.#length;
  }

  appendNull(): void {
    this.#reserve();
    this.#nulls ??= new Uint8Array(this.#capacity);
    this.#nulls[this.#length] = 1;
    if (this.#offsets) this.#offsets[this.#length + 1] = this.#heapUsed;
    this.#length++;
  }

  /** A safe integer (|value| at most 2^53 - 1) of an integer or timestamp column. */
  appendInteger(value: number): void {
    if (this.type === 'timestamp') return this.appendBigint(BigInt(value));
    this.#reserve();
    this.#sawValue = true;
    if (this.#i64) this.#i64[this.#length] = BigInt(value);
    else if (this.#f64) this.#f64[this.#length] = value === 0 ? 0 : value;
    else if (value >= I32_MIN && value <= I32_MAX) (this.#i32 ??= new Int32Array(this.#capacity))[this.#length] = value;
    else this.#widenToF64()[this.#length] = value;
    this.#length++;
  }

  /** Any i64 of an integer or timestamp column. */
  appendBigint(value: bigint): void {
    assert(value <= I64_MAX && value >= I64_MIN, 'integer out of i64 range');
    if (this.type !== 'timestamp' && value <= 9_007_199_254_740_991n && value >= -9_007_199_254_740_991n && !this.#i64) {
      return this.appendInteger(Number(value));
    }
    this.#reserve();
    this.#sawValue = true;
    this.#widenToI64()[this.#length] = value;
    this.#length++;
  }

  /** A finite double of a number column. */
  appendNumber(value: number): void {
    this.#reserve();
    this.#sawValue = true;
    (this.#f64 ??= new Float64Array(this.#capacity))[this.#length] = value;
    this.#length++;
  }

  appendBoolean(value: boolean): void {
    this.#reserve();
    this.#sawValue = true;
    (this.#bool ??= new Uint8Array(this.#capacity))[this.#length] = value ? 1 : 0;
    this.#length++;
  }

  /** UTF-8 bytes source[start..end) of a string or json column. The caller has checked that they are valid UTF-8. */
  appendText(source: Uint8Array, start: number, end: number): void {
    const size = end - start;
    this.#reserveText(size);
    const heap = this.#heap!;
    const used = this.#heapUsed;
    if (size <= 24) for (let i = 0; i < size; i++) heap[used + i] = source[start + i]!;
    else heap.set(source.subarray(start, end), used);
    this.#finishText(size);
  }

  /** A string or json column's text. Throws REL_INVALID on a lone surrogate. */
  appendString(value: string): void {
    // Counts the bytes of long texts: reserving the worst case would zero and keep three times as much.
    this.#reserveText(value.length > 4_096 ? Buffer.byteLength(value) : value.length * 3);
    const heap = this.#heap!;
    const at = this.#heapUsed;
    // Short ASCII is the common case, and a byte loop beats a call into the encoder there.
    if (value.length <= 32) {
      let i = 0;
      for (; i < value.length; i++) {
        const code = value.charCodeAt(i);
        if (code > 127) break;
        heap[at + i] = code;
      }
      if (i === value.length) return this.#finishText(i);
    }
    checkText(value, 'a string');
    this.#finishText(encoder.encodeInto(value, heap.subarray(at)).written);
  }

  /** `dims` floats of a vector column; the first one appended fixes `dims`. */
  appendVector(values: ArrayLike<number>): void {
    this.#reserve();
    this.#sawValue = true;
    if (this.#dims === 0) {
      this.#dims = values.length;
      this.#floats = new Float32Array(this.#capacity * this.#dims);
    }
    assert(values.length === this.#dims, 'vectors of one column have one length');
    this.#floats!.set(values, this.#length * this.#dims);
    this.#length++;
  }

  /**
   * `count` cells of a string or json column: cell i is heap[offsets[i]..offsets[i + 1]], and nothing where nulls[i] is 1.
   * Not all of them are NULL, here and in the other methods that take many cells.
   */
  appendTexts(heap: Uint8Array, offsets: Uint32Array, nulls: Uint8Array | null, count: number): void {
    const first = offsets[0]!;
    const size = offsets[count]! - first;
    this.#reserveText(size, count);
    const shift = this.#heapUsed - first;
    const from = this.#length + 1;
    const target = this.#offsets!;
    for (let i = 1; i <= count; i++) target[from + i - 1] = offsets[i]! + shift;
    this.#heap!.set(heap.subarray(first, first + size), this.#heapUsed);
    this.#heapUsed += size;
    this.#finishCells(nulls, count);
  }

  /** `count` cells of an integer or timestamp column in the narrowest layout that holds them; 0 where NULL. */
  appendIntegers(values: Int32Array | Float64Array | BigInt64Array, nulls: Uint8Array | null, count: number): void {
    this.#reserve(count);
    const from = this.#length;
    if (values instanceof BigInt64Array) this.#widenToI64().set(values.subarray(0, count), from);
    else if (this.#i64) for (let i = 0; i < count; i++) this.#i64[from + i] = BigInt(values[i]!);
    else if (this.#f64) this.#f64.set(values.subarray(0, count), from);
    else if (values instanceof Float64Array) this.#widenToF64().set(values.subarray(0, count), from);
    else (this.#i32 ??= new Int32Array(this.#capacity)).set(values.subarray(0, count), from);
    this.#finishCells(nulls, count);
  }

  /** `count` finite doubles of a number column; 0 where NULL. */
  appendNumbers(values: Float64Array, nulls: Uint8Array | null, count: number): void {
    this.#reserve(count);
    (this.#f64 ??= new Float64Array(this.#capacity)).set(values.subarray(0, count), this.#length);
    this.#finishCells(nulls, count);
  }

  /** `count` cells of a boolean column: 0 or 1, and 0 where NULL. */
  appendBooleans(values: Uint8Array, nulls: Uint8Array | null, count: number): void {
    this.#reserve(count);
    (this.#bool ??= new Uint8Array(this.#capacity)).set(values.subarray(0, count), this.#length);
    this.#finishCells(nulls, count);
  }

  /** For single cells: tests, literals, remainders. Bulk paths call the typed methods. */
  append(cell: Cell): void {
    if (cell === null) return this.appendNull();
    switch (this.type) {
      case 'string':
      case 'json':
        assert(typeof cell === 'string', 'text expected');
        return this.appendString(cell);
      case 'integer':
      case 'timestamp':
        assert(typeof cell === 'bigint', 'bigint expected');
        return this.appendBigint(cell);
      case 'number':
        assert(typeof cell === 'number', 'number expected');
        return this.appendNumber(cell);
      case 'boolean':
        assert(typeof cell === 'boolean', 'boolean expected');
        return this.appendBoolean(cell);
      case 'vector':
        assert(cell instanceof Float32Array, 'vector expected');
        return this.appendVector(cell);
    }
  }

  /** The column; the builder must not be used afterwards. Arrays are as long as the column. */
  build(): Vector {
    const n = this.#length;
    const nulls = this.#nulls ? first(this.#nulls, n) : null;
    if (!this.#sawValue) return { kind: 'null' };
    if (this.#offsets)
      return { kind: 'text', offsets: first(this.#offsets, n + 1), heap: first(this.#heap!, this.#heapUsed), nulls };
    if (this.#bool) return { kind: 'bool', values: first(this.#bool, n), nulls };
    if (this.#floats) return { kind: 'vec', values: first(this.#floats, n * this.#dims), dims: this.#dims, nulls };
    if (this.#i64) return { kind: 'i64', values: first(this.#i64, n), nulls };
    if (this.#f64) return { kind: 'f64', values: first(this.#f64, n), nulls };
    if (this.#i32) return { kind: 'i32', values: first(this.#i32, n), nulls };
    throw new AssertionError('a column with values has a layout');
  }

  #finishCells(nulls: Uint8Array | null, count: number): void {
    if (nulls !== null) (this.#nulls ??= new Uint8Array(this.#capacity)).set(nulls.subarray(0, count), this.#length);
    this.#sawValue = true;
    this.#length += count;
  }

  #reserveText(bytes: number, cells = 1): void {
    this.#reserve(cells);
    if (!this.#offsets) {
      this.#offsets = new Uint32Array(this.#capacity + 1);
      this.#heap = new Uint8Array(this.#capacity === 1 ? bytes : Math.max(256, bytes, this.#heapBytes));
    }
    if (this.#heapUsed + bytes > this.#heap!.length) {
      const heap = new Uint8Array(Math.max(this.#heap!.length * 2, this.#heapUsed + bytes));
      heap.set(this.#heap!.subarray(0, this.#heapUsed));
      this.#heap = heap;
    }
  }

  #finishText(bytes: number): void {
    this.#sawValue = true;
    this.#heapUsed += bytes;
    this.#length++;
    this.#offsets![this.#length] = this.#heapUsed;
  }

  #widenToF64(): Float64Array {
    const wide = new Float64Array(this.#capacity);
    if (this.#i32) wide.set(this.#i32);
    this.#i32 = null;
    return (this.#f64 = wide);
  }

  #widenToI64(): BigInt64Array {
    if (this.#i64) return this.#i64;
    const wide = new BigInt64Array(this.#capacity);
    const narrow = this.#f64 ?? this.#i32;
    if (narrow) for (let i = 0; i < this.#length; i++) wide[i] = BigInt(narrow[i]!);
    this.#f64 = null;
    this.#i32 = null;
    return (this.#i64 = wide);
  }

  #reserve(cells = 1): void {
    if (this.#length + cells <= this.#capacity) return;
    const capacity = (this.#capacity = Math.max(16, this.#length + cells, this.#capacity * 2));
    if (this.#nulls) this.#nulls = copyInto(this.#nulls, new Uint8Array(capacity));
    if (this.#i32) this.#i32 = copyInto(this.#i32, new Int32Array(capacity));
    if (this.#f64) this.#f64 = copyInto(this.#f64, new Float64Array(capacity));
    if (this.#i64) {
      const wide = new BigInt64Array(capacity);
      wide.set(this.#i64);
      this.#i64 = wide;
    }
    if (this.#bool) this.#bool = copyInto(this.#bool, new Uint8Array(capacity));
    if (this.#offsets) this.#offsets = copyInto(this.#offsets, new Uint32Array(capacity + 1));
    if (this.#floats) this.#floats = copyInto(this.#floats, new Float32Array(capacity * this.#dims));
  }
}

/** A view of the first `length`; where that is all, the array itself: a column of one cell is smaller than its views. */
function first<T extends Uint8Array | Int32Array | Uint32Array | Float32Array | Float64Array | BigInt64Array>(
  from: T,
  length: number,
): T {
  return from.length === length ? from : (from.subarray(0, length) as T);
}

function copyInto<T extends Uint8Array | Int32Array | Uint32Array | Float32Array | Float64Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** One cell of a vector as a value: for single cells, never in a loop over rows. */
export function cellAt(vector: Vector, type: ColumnType, row: number): Cell {
  if (vector.kind === 'null' || vector.nulls?.[row] === 1) return null;
  switch (vector.kind) {
    case 'text':
      return decoder.decode(vector.heap.subarray(vector.offsets[row]!, vector.offsets[row + 1]!));
    case 'dict':
      return vector.dictionary.text(vector.values[row]!);
    case 'bool':
      return vector.values[row] === 1;
    case 'vec':
      return vector.values.slice(row * vector.dims, (row + 1) * vector.dims);
    case 'i64':
      return type === 'number' ? Number(vector.values[row]!) : vector.values[row]!;
    case 'i32':
    case 'f64':
      return type === 'number' ? vector.values[row]! : BigInt(vector.values[row]!);
  }
}
