/**
 * Reads the cells of one column of an Arrow record batch from their buffers. Invariants: no cell is read from a buffer that is
 * shorter than its column, every offset inside a buffer is checked against the buffer's length before it is followed, and the
 * slot of a NULL cell is never read.
 */
import { isUtf8 } from 'node:buffer';
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import { type ColumnType, I64_MAX, I64_MIN, limits } from '../../log/values/value.ts';
import { cellAt, type VectorBuilder } from '../../log/values/vector-builder.ts';
import type { ArrowField } from './arrow-messages.ts';
import { malformedError } from './flat-table.ts';
import { JsonReader } from './json-reader.ts';
import { RowTape } from './row-tape.ts';
import { withoutTrailing } from '../../log/values/trim-end.ts';

/** Called for each row with a cell that its column does not take. */
export type Refuse = (row: number, detail: string) => void;

/** Cells of one column; rows are numbered within their batch. */
export abstract class ArrowCells {
  readonly #validity: Uint8Array | null;

  constructor(validity: Uint8Array | null) {
    this.#validity = validity;
  }

  isNull(row: number): boolean {
    const bits = this.#validity;
    return bits !== null && ((bits[row >> 3]! >> (row & 7)) & 1) === 0;
  }

  /** Decoded size of these cells in bytes. */
  abstract bytes(from: number, count: number): number;

  /** Looks at cells before they are appended: throws where the batch is malformed. */
  check(from: number, count: number, refuse: Refuse): void {
    for (let row = from; row < from + count; row++) {
      if (this.isNull(row)) continue;
      const problem = this.problemOf(row);
      if (problem !== null) refuse(row, problem);
    }
  }

  append(builder: VectorBuilder, from: number, count: number): void {
    let nulls: Uint8Array | null = null;
    let holes = 0;
    if (this.#validity !== null) {
      nulls = new Uint8Array(count);
      for (let i = 0; i < count; i++) if (this.isNull(from + i)) holes += nulls[i] = 1;
    }
    if (holes === count) for (let i = 0; i < count; i++) builder.appendNull();
    else this.fill(builder, from, count, holes === 0 ? null : nulls);
  }

  /** Why the column does not take the cell, which is not NULL; null: it does. */
  protected abstract problemOf(row: number): string | null;

  /** Not all of the cells are NULL. */
  protected abstract fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void;
}

export class NoCells extends ArrowCells {
  bytes(): number {
    return 0;
  }

  override append(builder: VectorBuilder, _: number, count: number): void {
    for (let i = 0; i < count; i++) builder.appendNull();
  }

  protected problemOf(): null {
    return null;
  }

  protected fill(): void {}
}

export type Integers =
  | Int8Array
  | Int16Array
  | Int32Array
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

export class IntegerCells extends ArrowCells {
  readonly #values: Integers;
  /** Halves of 64-bit integers, the lower ones first. */
  readonly #halves: Int32Array | null;
  readonly #type: ColumnType;

  constructor(validity: Uint8Array | null, values: Integers, type: ColumnType) {
    super(validity);
    this.#values = values;
    const isWide = values instanceof BigInt64Array || values instanceof BigUint64Array;
    this.#halves = isWide ? new Int32Array(values.buffer, values.byteOffset, values.length * 2) : null;
    this.#type = type;
  }

  bytes(_: number, count: number): number {
    return count * this.#values.BYTES_PER_ELEMENT;
  }

  override check(from: number, count: number, refuse: Refuse): void {
    if (this.#values instanceof BigUint64Array) super.check(from, count, refuse);
  }

  protected problemOf(row: number): string | null {
    return this.#values[row]! > I64_MAX ? 'is beyond a 64-bit integer' : null;
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    if (this.#type === 'string') this.#fillTexts(builder, from, count, nulls);
    else if (this.#type === 'timestamp') builder.appendIntegers(this.#wide(from, count, nulls), nulls, count);
    else builder.appendIntegers(this.#narrowest(from, count, nulls), nulls, count);
  }

  #fillTexts(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    for (let i = 0; i < count; i++) {
      if (nulls?.[i] === 1) builder.appendNull();
      else builder.appendString(String(this.#values[from + i]!));
    }
  }

  #wide(from: number, count: number, nulls: Uint8Array | null): BigInt64Array {
    const wide = new BigInt64Array(count);
    for (let i = 0; i < count; i++) if (nulls?.[i] !== 1) wide[i] = BigInt(this.#values[from + i]!);
    return wide;
  }

  #narrowest(from: number, count: number, nulls: Uint8Array | null): Int32Array | Float64Array | BigInt64Array {
    const halves = this.#halves;
    let [isSmall, isSafe] = [true, true];
    const numbers = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      if (nulls?.[i] === 1) continue;
      if (halves === null) numbers[i] = this.#values[from + i] as number;
      else {
        const high = halves[(from + i) * 2 + 1]!;
        // 2^53 - 1 is the largest integer that a double holds together with its neighbours.
        isSafe &&= high < 0x20_0000 && high > -0x20_0000;
        numbers[i] = high * 4_294_967_296 + (halves[(from + i) * 2]! >>> 0);
      }
      isSmall &&= numbers[i] === (numbers[i]! | 0);
    }
    if (!isSafe) return this.#wide(from, count, nulls);
    return isSmall ? Int32Array.from(numbers) : numbers;
  }
}

/** Instants in units of more or fewer nanoseconds. */
export class InstantCells extends ArrowCells {
  readonly #values: BigInt64Array | Int32Array;
  readonly #unitNs: bigint;

  constructor(validity: Uint8Array | null, values: BigInt64Array | Int32Array, unitNs: bigint) {
    super(validity);
    this.#values = values;
    this.#unitNs = unitNs;
  }

  bytes(_: number, count: number): number {
    return count * 8;
  }

  protected problemOf(row: number): string | null {
    return isLong(this.#valueAt(row)) ? null : 'lies outside of the years 1677 to 2262';
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    const instants = new BigInt64Array(count);
    for (let i = 0; i < count; i++) if (nulls?.[i] !== 1) instants[i] = this.#valueAt(from + i);
    builder.appendIntegers(instants, nulls, count);
  }

  #valueAt(row: number): bigint {
    return BigInt(this.#values[row]!) * this.#unitNs;
  }
}

export class NumberCells extends ArrowCells {
  readonly #values: Float64Array | Float32Array | Uint16Array;

  /** 16-bit numbers come as their bits. */
  constructor(validity: Uint8Array | null, values: Float64Array | Float32Array | Uint16Array) {
    super(validity);
    this.#values = values;
  }

  bytes(_: number, count: number): number {
    return count * 8;
  }

  numberAt(row: number): number {
    const value = this.#values[row]!;
    return this.#values instanceof Uint16Array ? halfFloat(value) : value;
  }

  protected problemOf(row: number): string | null {
    return Number.isFinite(this.numberAt(row)) ? null : 'is not a finite number';
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    const numbers = new Float64Array(count);
    for (let i = 0; i < count; i++) if (nulls?.[i] !== 1) numbers[i] = this.numberAt(from + i);
    builder.appendNumbers(numbers, nulls, count);
  }
}

function halfFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const [exponent, fraction] = [(bits >> 10) & 0x1f, bits & 0x3ff];
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return exponent === 31 ? (fraction === 0 ? sign * Infinity : Number.NaN) : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Decimals without a fraction are integers, others numbers: where a double holds them, so that its shortest text has the same digits. */
export class DecimalCells extends ArrowCells {
  readonly #words: BigInt64Array | Int32Array;
  readonly #wordsEach: number;
  readonly #scale: number;

  constructor(validity: Uint8Array | null, words: BigInt64Array | Int32Array, wordsEach: number, scale: number) {
    super(validity);
    this.#words = words;
    this.#wordsEach = wordsEach;
    this.#scale = scale;
  }

  bytes(_: number, count: number): number {
    return count * 8;
  }

  protected problemOf(row: number): string | null {
    const unscaled = this.#valueAt(row);
    if (this.#scale <= 0) return isLong(unscaled * 10n ** BigInt(-this.#scale)) ? null : 'is beyond a 64-bit integer';
    return sameDigits(unscaled, this.#scale) ? null : 'has more digits than a number holds: send it as text';
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    for (let i = 0; i < count; i++) {
      if (nulls?.[i] === 1) builder.appendNull();
      else if (this.#scale <= 0) builder.appendBigint(this.#valueAt(from + i) * 10n ** BigInt(-this.#scale));
      else builder.appendNumber(Number(`${this.#valueAt(from + i)}e${-this.#scale}`));
    }
  }

  #valueAt(row: number): bigint {
    const each = this.#wordsEach;
    // Two's complement: the last word has the sign.
    let value = BigInt(this.#words[row * each + each - 1]!);
    for (let i = each - 2; i >= 0; i--) value = (value << 64n) | BigInt.asUintN(64, BigInt(this.#words[row * each + i]!));
    return value;
  }
}

function sameDigits(unscaled: bigint, scale: number): boolean {
  if (unscaled === 0n) return true;
  const [digits, exponent] = Number(`${unscaled}e${-scale}`).toExponential().replace('.', '').split('e') as [string, string];
  const given = String(unscaled);
  const trimmed = withoutTrailing(given, '0');
  const fractionDigits = digits.replace('-', '').length - 1;
  return digits === trimmed && Number(exponent) - fractionDigits === given.length - trimmed.length - scale;
}

const isLong = (value: bigint): boolean => value >= I64_MIN && value <= I64_MAX;

export class BooleanCells extends ArrowCells {
  readonly #bits: Uint8Array;

  constructor(validity: Uint8Array | null, bits: Uint8Array) {
    super(validity);
    this.#bits = bits;
  }

  bytes(_: number, count: number): number {
    return count;
  }

  override check(): void {}

  protected problemOf(): null {
    return null;
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    const values = new Uint8Array(count);
    for (let i = 0; i < count; i++) if (nulls?.[i] !== 1) values[i] = (this.#bits[(from + i) >> 3]! >> ((from + i) & 7)) & 1;
    builder.appendBooleans(values, nulls, count);
  }
}

/** Where texts lie: start and size within the bytes of a buffer. Offsets of a text are compared by `check`, once for all of its uses. */
export interface Texts {
  bytes(from: number, count: number): number;
  /** Throws REL_PARSE where the cell does not lie within its buffer. */
  check(row: number): void;
  source(row: number): Uint8Array;
  start(row: number): number;
  end(row: number): number;
  /** Many cells at once, where they lie one behind the other. */
  readonly plain: { readonly offsets: Uint32Array; readonly heap: Uint8Array } | null;
}

export function offsetTexts(offsets: Int32Array | BigInt64Array, heap: Uint8Array): Texts {
  const offsetAt = (i: number): number => Number(offsets[i]!);
  return {
    bytes: (from, count) => Math.max(0, offsetAt(from + count) - offsetAt(from)),
    check: (row) => {
      if (!(offsetAt(row) >= 0 && offsetAt(row) <= offsetAt(row + 1) && offsetAt(row + 1) <= heap.length))
        throw malformedError('a text lies outside of its buffer');
    },
    source: () => heap,
    start: offsetAt,
    end: (row) => offsetAt(row + 1),
    plain:
      offsets instanceof Int32Array
        ? { offsets: new Uint32Array(offsets.buffer, offsets.byteOffset, offsets.length), heap }
        : null,
  };
}

/** 16 bytes a cell: its length, and up to 12 bytes of text or the number of a buffer and an offset in it. */
export function viewTexts(views: Int32Array, buffers: readonly Uint8Array[]): Texts {
  const own = new Uint8Array(views.buffer, views.byteOffset, views.byteLength);
  const size = (row: number): number => views[row * 4]!;
  const isInline = (row: number): boolean => size(row) <= 12;
  const start = (row: number): number => (isInline(row) ? row * 16 + 4 : views[row * 4 + 3]!);
  return {
    bytes: (from, count) => {
      let bytes = 0;
      for (let row = from; row < from + count; row++) bytes += Math.max(0, size(row));
      return bytes;
    },
    check: (row) => {
      const buffer = isInline(row) ? own : buffers[views[row * 4 + 2]!];
      const isWithin = buffer !== undefined && size(row) >= 0 && start(row) >= 0 && start(row) + size(row) <= buffer.length;
      if (!isWithin) throw malformedError('a text lies outside of its buffer');
    },
    source: (row) => (isInline(row) ? own : buffers[views[row * 4 + 2]!]!),
    start,
    end: (row) => start(row) + size(row),
    plain: null,
  };
}

export class TextCells extends ArrowCells {
  readonly #texts: Texts;
  readonly #json: JsonText | null;

  constructor(validity: Uint8Array | null, texts: Texts, type: ColumnType) {
    super(validity);
    this.#texts = texts;
    this.#json = type === 'json' ? new JsonText() : null;
  }

  bytes(from: number, count: number): number {
    return this.#texts.bytes(from, count);
  }

  override check(from: number, count: number, refuse: Refuse): void {
    for (let row = from; row < from + count; row++) if (!this.isNull(row)) this.#texts.check(row);
    if (this.#json !== null || !this.#isAllUtf8(from, count)) super.check(from, count, refuse);
  }

  protected problemOf(row: number): string | null {
    const bytes = this.#texts.source(row).subarray(this.#texts.start(row), this.#texts.end(row));
    if (!isUtf8(bytes)) return 'is no UTF-8';
    return this.#json?.problemOf(bytes) ?? null;
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    const { plain } = this.#texts;
    if (plain !== null && nulls === null) {
      builder.appendTexts(plain.heap, plain.offsets.subarray(from, from + count + 1), null, count);
      return;
    }
    for (let i = 0; i < count; i++) {
      const row = from + i;
      if (nulls?.[i] === 1) builder.appendNull();
      else builder.appendText(this.#texts.source(row), this.#texts.start(row), this.#texts.end(row));
    }
  }

  /** One look at all of them: they are if their bytes are, and none begins inside of a character. */
  #isAllUtf8(from: number, count: number): boolean {
    const { plain } = this.#texts;
    if (plain === null) return false;
    const { offsets, heap } = plain;
    const [start, end] = [offsets[from]!, offsets[from + count]!];
    if (!(start <= end && end <= heap.length) || !isUtf8(heap.subarray(start, end))) return false;
    for (let row = from; row < from + count; row++) {
      const first = offsets[row]!;
      if (first < offsets[row + 1]! && (heap[first]! & 0xc0) === 0x80) return false;
    }
    return true;
  }
}

/** JSON as it is taken out of a row of JSON: the same depth, names once. */
class JsonText {
  readonly #tape = new RowTape();
  readonly #reader = new JsonReader({ names: [], slotOf: () => -1 }, this.#tape);

  problemOf(text: Uint8Array): string | null {
    // A number ends where something else begins.
    const bytes = new Uint8Array(text.length + 1);
    bytes.set(text);
    bytes[text.length] = 0x20;
    this.#tape.reset(bytes);
    this.#reader.openField(bytes, bytes.length);
    const end = this.#reader.skipValue(this.#reader.skipSpace(0), 0);
    if (end >= 0 && this.#reader.skipSpace(end) < text.length) return 'is JSON with text behind it';
    return end >= 0 ? (this.#tape.problem?.detail ?? null) : 'is not JSON';
  }
}

export class ListCells extends ArrowCells {
  readonly #offsets: Int32Array | BigInt64Array | number;
  readonly #items: NumberCells;
  readonly #itemCount: number;
  readonly #form: CellForm;

  /** `offsets`: a number where all lists have that many items. */
  constructor(
    validity: Uint8Array | null,
    offsets: Int32Array | BigInt64Array | number,
    items: NumberCells,
    itemCount: number,
    form: CellForm,
  ) {
    super(validity);
    this.#offsets = offsets;
    this.#items = items;
    this.#itemCount = itemCount;
    this.#form = form;
  }

  bytes(from: number, count: number): number {
    return Math.max(0, this.#start(from + count) - this.#start(from)) * 4;
  }

  protected problemOf(row: number): string | null {
    const [start, end] = [this.#start(row), this.#start(row + 1)];
    if (!(start >= 0 && start <= end && end <= this.#itemCount)) throw malformedError('a list lies outside of its items');
    const size = end - start;
    if (size < 1 || size > limits.vectorDims) return `has ${size} dimensions, not 1 to ${limits.vectorDims}`;
    const { dims } = this.#form;
    if (dims !== 0 && size !== dims) return `has ${size} dimensions instead of ${dims}`;
    for (let i = start; i < end; i++) {
      if (this.#items.isNull(i) || !Number.isFinite(Math.fround(this.#items.numberAt(i))))
        return 'holds what is not a finite 32-bit number';
    }
    this.#form.dims = size;
    return null;
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    const vector = new Float32Array(this.#form.dims);
    for (let i = 0; i < count; i++) {
      if (nulls?.[i] === 1) {
        builder.appendNull();
        continue;
      }
      const start = this.#start(from + i);
      for (let j = 0; j < vector.length; j++) vector[j] = this.#items.numberAt(start + j);
      builder.appendVector(vector);
    }
  }

  #start(row: number): number {
    return typeof this.#offsets === 'number' ? row * this.#offsets : Number(this.#offsets[row]!);
  }
}

/** Values of a dictionary: the first ones, and those that later messages added. */
export class ArrowDictionary {
  readonly type: ColumnType;
  readonly #parts: { readonly first: number; readonly vector: Vector }[] = [];
  #size = 0;

  constructor(type: ColumnType) {
    this.type = type;
  }

  get size(): number {
    return this.#size;
  }

  add(vector: Vector, count: number): void {
    if (count === 0) return;
    this.#parts.push({ first: this.#size, vector });
    this.#size += count;
  }

  /** The part that a value lies in, and its row there. */
  find(code: number): { readonly vector: Vector; readonly row: number } {
    let [low, high] = [0, this.#parts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#parts[middle]!.first <= code) low = middle;
      else high = middle - 1;
    }
    const part = this.#parts[low];
    assert(part, 'a code is checked before its value is looked for');
    return { vector: part.vector, row: code - part.first };
  }
}

export class CodedCells extends ArrowCells {
  readonly #codes: Integers;
  readonly #dictionary: ArrowDictionary;

  constructor(validity: Uint8Array | null, codes: Integers, dictionary: ArrowDictionary) {
    super(validity);
    this.#codes = codes;
    this.#dictionary = dictionary;
  }

  bytes(from: number, count: number): number {
    let bytes = 0;
    for (let row = from; row < from + count; row++) {
      const code = Number(this.#codes[row]!);
      if (this.isNull(row) || !(code >= 0 && code < this.#dictionary.size)) continue;
      const { vector, row: at } = this.#dictionary.find(code);
      bytes += vector.kind === 'text' ? vector.offsets[at + 1]! - vector.offsets[at]! : 8;
    }
    return bytes;
  }

  protected problemOf(row: number): null {
    const code = Number(this.#codes[row]!);
    if (!(code >= 0 && code < this.#dictionary.size))
      throw malformedError('a cell names a value that its dictionary does not have');
    return null;
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    for (let i = 0; i < count; i++) {
      if (nulls?.[i] === 1) {
        builder.appendNull();
        continue;
      }
      const { vector, row } = this.#dictionary.find(Number(this.#codes[from + i]!));
      if (vector.kind === 'text' && vector.nulls?.[row] !== 1)
        builder.appendText(vector.heap, vector.offsets[row]!, vector.offsets[row + 1]!);
      else builder.append(cellAt(vector, this.#dictionary.type, row));
    }
  }
}

/** The type to which a column's cells are decoded. */
export interface CellForm {
  readonly field: ArrowField;
  readonly type: ColumnType;
  /** Length of its vectors; 0: that of the first one. */
  dims: number;
}
