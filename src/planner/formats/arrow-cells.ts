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
  readonly #validityBits: Uint8Array | null;

  constructor(validityBits: Uint8Array | null) {
    this.#validityBits = validityBits;
  }

  isNull(row: number): boolean {
    const validityBits = this.#validityBits;
    return validityBits !== null && ((validityBits[row >> 3]! >> (row & 7)) & 1) === 0;
  }

  /** Decoded size of these cells in bytes. */
  abstract bytes(from: number, count: number): number;

  /** Looks at cells before they are appended: throws where the batch is malformed. */
  check(firstRow: number, count: number, refuseCell: Refuse): void {
    for (let row = firstRow; row < firstRow + count; row++) {
      if (this.isNull(row)) continue;
      const cellProblem = this.problemOf(row);
      if (cellProblem !== null) refuseCell(row, cellProblem);
    }
  }

  append(builder: VectorBuilder, firstRow: number, count: number): void {
    let arrowNulls: Uint8Array | null = null;
    let nullCount = 0;
    if (this.#validityBits !== null) {
      arrowNulls = new Uint8Array(count);
      for (let i = 0; i < count; i++) if (this.isNull(firstRow + i)) nullCount += arrowNulls[i] = 1;
    }
    if (nullCount === count) for (let i = 0; i < count; i++) builder.appendNull();
    else this.fill(builder, firstRow, count, nullCount === 0 ? null : arrowNulls);
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
  readonly #arrowIntegers: Integers;
  /** Halves of 64-bit integers, the lower ones first. */
  readonly #int64Halves: Int32Array | null;
  readonly #integerType: ColumnType;

  constructor(validity: Uint8Array | null, arrowIntegers: Integers, type: ColumnType) {
    super(validity);
    this.#arrowIntegers = arrowIntegers;
    const is64Bit = arrowIntegers instanceof BigInt64Array || arrowIntegers instanceof BigUint64Array;
    this.#int64Halves = is64Bit ? new Int32Array(arrowIntegers.buffer, arrowIntegers.byteOffset, arrowIntegers.length * 2) : null;
    this.#integerType = type;
  }

  bytes(_: number, count: number): number {
    return count * this.#arrowIntegers.BYTES_PER_ELEMENT;
  }

  override check(from: number, count: number, refuse: Refuse): void {
    if (this.#arrowIntegers instanceof BigUint64Array) super.check(from, count, refuse);
  }

  protected problemOf(row: number): string | null {
    return this.#arrowIntegers[row]! > I64_MAX ? 'is beyond a 64-bit integer' : null;
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    if (this.#integerType === 'string') this.#fillIntegerTexts(builder, from, count, nulls);
    else if (this.#integerType === 'timestamp') builder.appendIntegers(this.#wideIntegers(from, count, nulls), nulls, count);
    else builder.appendIntegers(this.#narrowestIntegers(from, count, nulls), nulls, count);
  }

  #fillIntegerTexts(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    for (let i = 0; i < count; i++) {
      if (nulls?.[i] === 1) builder.appendNull();
      else builder.appendString(String(this.#arrowIntegers[from + i]!));
    }
  }

  #wideIntegers(from: number, count: number, nulls: Uint8Array | null): BigInt64Array {
    const wideIntegers = new BigInt64Array(count);
    for (let i = 0; i < count; i++) if (nulls?.[i] !== 1) wideIntegers[i] = BigInt(this.#arrowIntegers[from + i]!);
    return wideIntegers;
  }

  #narrowestIntegers(from: number, count: number, nulls: Uint8Array | null): Int32Array | Float64Array | BigInt64Array {
    const int64Halves = this.#int64Halves;
    let [isInt32, isSafeInteger] = [true, true];
    const narrowNumbers = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      if (nulls?.[i] === 1) continue;
      if (int64Halves === null) narrowNumbers[i] = this.#arrowIntegers[from + i] as number;
      else {
        const highHalf = int64Halves[(from + i) * 2 + 1]!;
        // 2^53 - 1 is the largest integer that a double holds together with its neighbours.
        isSafeInteger &&= highHalf < 0x20_0000 && highHalf > -0x20_0000;
        narrowNumbers[i] = highHalf * 4_294_967_296 + (int64Halves[(from + i) * 2]! >>> 0);
      }
      isInt32 &&= narrowNumbers[i] === (narrowNumbers[i]! | 0);
    }
    if (!isSafeInteger) return this.#wideIntegers(from, count, nulls);
    return isInt32 ? Int32Array.from(narrowNumbers) : narrowNumbers;
  }
}

/** Instants in units of more or fewer nanoseconds. */
export class InstantCells extends ArrowCells {
  readonly #instantUnits: BigInt64Array | Int32Array;
  readonly #instantUnitNs: bigint;

  constructor(validity: Uint8Array | null, instantUnits: BigInt64Array | Int32Array, unitNs: bigint) {
    super(validity);
    this.#instantUnits = instantUnits;
    this.#instantUnitNs = unitNs;
  }

  bytes(_: number, count: number): number {
    return count * 8;
  }

  protected problemOf(row: number): string | null {
    return isInt64(this.#instantAt(row)) ? null : 'lies outside of the years 1677 to 2262';
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    const arrowInstants = new BigInt64Array(count);
    for (let i = 0; i < count; i++) if (nulls?.[i] !== 1) arrowInstants[i] = this.#instantAt(from + i);
    builder.appendIntegers(arrowInstants, nulls, count);
  }

  #instantAt(row: number): bigint {
    return BigInt(this.#instantUnits[row]!) * this.#instantUnitNs;
  }
}

export class NumberCells extends ArrowCells {
  readonly #arrowNumbers: Float64Array | Float32Array | Uint16Array;

  /** 16-bit numbers come as their bits. */
  constructor(validity: Uint8Array | null, arrowNumbers: Float64Array | Float32Array | Uint16Array) {
    super(validity);
    this.#arrowNumbers = arrowNumbers;
  }

  bytes(_: number, count: number): number {
    return count * 8;
  }

  numberAt(row: number): number {
    const floatValue = this.#arrowNumbers[row]!;
    return this.#arrowNumbers instanceof Uint16Array ? halfFloatNumber(floatValue) : floatValue;
  }

  protected problemOf(row: number): string | null {
    return Number.isFinite(this.numberAt(row)) ? null : 'is not a finite number';
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    const filledNumbers = new Float64Array(count);
    for (let i = 0; i < count; i++) if (nulls?.[i] !== 1) filledNumbers[i] = this.numberAt(from + i);
    builder.appendNumbers(filledNumbers, nulls, count);
  }
}

function halfFloatNumber(halfBits: number): number {
  const halfSign = halfBits & 0x8000 ? -1 : 1;
  const [halfExponent, halfFraction] = [(halfBits >> 10) & 0x1f, halfBits & 0x3ff];
  if (halfExponent === 0) return halfSign * halfFraction * 2 ** -24;
  return halfExponent === 31
    ? halfFraction === 0
      ? halfSign * Infinity
      : Number.NaN
    : halfSign * (1 + halfFraction / 1024) * 2 ** (halfExponent - 15);
}

/** Decimals without a fraction are integers, others numbers: where a double holds them, so that its shortest text has the same digits. */
export class DecimalCells extends ArrowCells {
  readonly #decimalWords: BigInt64Array | Int32Array;
  readonly #wordsPerDecimal: number;
  readonly #decimalScale: number;

  constructor(
    validity: Uint8Array | null,
    decimalWords: BigInt64Array | Int32Array,
    wordsPerDecimal: number,
    decimalScale: number,
  ) {
    super(validity);
    this.#decimalWords = decimalWords;
    this.#wordsPerDecimal = wordsPerDecimal;
    this.#decimalScale = decimalScale;
  }

  bytes(_: number, count: number): number {
    return count * 8;
  }

  protected problemOf(row: number): string | null {
    const unscaledDecimal = this.#unscaledAt(row);
    if (this.#decimalScale <= 0)
      return isInt64(unscaledDecimal * 10n ** BigInt(-this.#decimalScale)) ? null : 'is beyond a 64-bit integer';
    return hasSameDigits(unscaledDecimal, this.#decimalScale) ? null : 'has more digits than a number holds: send it as text';
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    for (let i = 0; i < count; i++) {
      if (nulls?.[i] === 1) builder.appendNull();
      else if (this.#decimalScale <= 0) builder.appendBigint(this.#unscaledAt(from + i) * 10n ** BigInt(-this.#decimalScale));
      else builder.appendNumber(Number(`${this.#unscaledAt(from + i)}e${-this.#decimalScale}`));
    }
  }

  #unscaledAt(row: number): bigint {
    const wordsPerDecimal = this.#wordsPerDecimal;
    // Two's complement: the last word has the sign.
    let unscaledDecimal = BigInt(this.#decimalWords[row * wordsPerDecimal + wordsPerDecimal - 1]!);
    for (let i = wordsPerDecimal - 2; i >= 0; i--)
      unscaledDecimal = (unscaledDecimal << 64n) | BigInt.asUintN(64, BigInt(this.#decimalWords[row * wordsPerDecimal + i]!));
    return unscaledDecimal;
  }
}

function hasSameDigits(unscaledDecimal: bigint, decimalScale: number): boolean {
  if (unscaledDecimal === 0n) return true;
  const [doubleDigits, doubleExponent] = Number(`${unscaledDecimal}e${-decimalScale}`)
    .toExponential()
    .replace('.', '')
    .split('e') as [string, string];
  const givenDigits = String(unscaledDecimal);
  const trimmedDigits = withoutTrailing(givenDigits, '0');
  const fractionDigits = doubleDigits.replace('-', '').length - 1;
  return (
    doubleDigits === trimmedDigits &&
    Number(doubleExponent) - fractionDigits === givenDigits.length - trimmedDigits.length - decimalScale
  );
}

const isInt64 = (unscaledInteger: bigint): boolean => unscaledInteger >= I64_MIN && unscaledInteger <= I64_MAX;

export class BooleanCells extends ArrowCells {
  readonly #booleanBits: Uint8Array;

  constructor(validity: Uint8Array | null, booleanBits: Uint8Array) {
    super(validity);
    this.#booleanBits = booleanBits;
  }

  bytes(_: number, count: number): number {
    return count;
  }

  override check(): void {}

  protected problemOf(): null {
    return null;
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    const filledBooleans = new Uint8Array(count);
    for (let i = 0; i < count; i++)
      if (nulls?.[i] !== 1) filledBooleans[i] = (this.#booleanBits[(from + i) >> 3]! >> ((from + i) & 7)) & 1;
    builder.appendBooleans(filledBooleans, nulls, count);
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

export function offsetTexts(textOffsets: Int32Array | BigInt64Array, textHeap: Uint8Array): Texts {
  const textOffsetAt = (i: number): number => Number(textOffsets[i]!);
  return {
    bytes: (from, count) => Math.max(0, textOffsetAt(from + count) - textOffsetAt(from)),
    check: (row) => {
      if (!(textOffsetAt(row) >= 0 && textOffsetAt(row) <= textOffsetAt(row + 1) && textOffsetAt(row + 1) <= textHeap.length))
        throw malformedError('a text lies outside of its buffer');
    },
    source: () => textHeap,
    start: textOffsetAt,
    end: (row) => textOffsetAt(row + 1),
    plain:
      textOffsets instanceof Int32Array
        ? { offsets: new Uint32Array(textOffsets.buffer, textOffsets.byteOffset, textOffsets.length), heap: textHeap }
        : null,
  };
}

/** 16 bytes a cell: its length, and up to 12 bytes of text or the number of a buffer and an offset in it. */
export function viewTexts(textViews: Int32Array, viewBuffers: readonly Uint8Array[]): Texts {
  const inlineViews = new Uint8Array(textViews.buffer, textViews.byteOffset, textViews.byteLength);
  const viewSize = (row: number): number => textViews[row * 4]!;
  const isInline = (row: number): boolean => viewSize(row) <= 12;
  const viewStart = (row: number): number => (isInline(row) ? row * 16 + 4 : textViews[row * 4 + 3]!);
  return {
    bytes: (from, count) => {
      let bytes = 0;
      for (let row = from; row < from + count; row++) bytes += Math.max(0, viewSize(row));
      return bytes;
    },
    check: (row) => {
      const buffer = isInline(row) ? inlineViews : viewBuffers[textViews[row * 4 + 2]!];
      const isWithin =
        buffer !== undefined && viewSize(row) >= 0 && viewStart(row) >= 0 && viewStart(row) + viewSize(row) <= buffer.length;
      if (!isWithin) throw malformedError('a text lies outside of its buffer');
    },
    source: (row) => (isInline(row) ? inlineViews : viewBuffers[textViews[row * 4 + 2]!]!),
    start: viewStart,
    end: (row) => viewStart(row) + viewSize(row),
    plain: null,
  };
}

export class TextCells extends ArrowCells {
  readonly #arrowTexts: Texts;
  readonly #jsonText: ArrowJsonText | null;

  constructor(validity: Uint8Array | null, arrowTexts: Texts, type: ColumnType) {
    super(validity);
    this.#arrowTexts = arrowTexts;
    this.#jsonText = type === 'json' ? new ArrowJsonText() : null;
  }

  bytes(from: number, count: number): number {
    return this.#arrowTexts.bytes(from, count);
  }

  override check(from: number, count: number, refuse: Refuse): void {
    for (let row = from; row < from + count; row++) if (!this.isNull(row)) this.#arrowTexts.check(row);
    if (this.#jsonText !== null || !this.#isAllUtf8(from, count)) super.check(from, count, refuse);
  }

  protected problemOf(row: number): string | null {
    const cellBytes = this.#arrowTexts.source(row).subarray(this.#arrowTexts.start(row), this.#arrowTexts.end(row));
    if (!isUtf8(cellBytes)) return 'is no UTF-8';
    return this.#jsonText?.problemOf(cellBytes) ?? null;
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    const { plain: plainTexts } = this.#arrowTexts;
    if (plainTexts !== null && nulls === null) {
      builder.appendTexts(plainTexts.heap, plainTexts.offsets.subarray(from, from + count + 1), null, count);
      return;
    }
    for (let i = 0; i < count; i++) {
      const textRow = from + i;
      if (nulls?.[i] === 1) builder.appendNull();
      else builder.appendText(this.#arrowTexts.source(textRow), this.#arrowTexts.start(textRow), this.#arrowTexts.end(textRow));
    }
  }

  /** One look at all of them: they are if their bytes are, and none begins inside of a character. */
  #isAllUtf8(from: number, count: number): boolean {
    const { plain: plainTexts } = this.#arrowTexts;
    if (plainTexts === null) return false;
    const { offsets, heap } = plainTexts;
    const [textStart, textEnd] = [offsets[from]!, offsets[from + count]!];
    if (!(textStart <= textEnd && textEnd <= heap.length) || !isUtf8(heap.subarray(textStart, textEnd))) return false;
    for (let row = from; row < from + count; row++) {
      const firstByte = offsets[row]!;
      if (firstByte < offsets[row + 1]! && (heap[firstByte]! & 0xc0) === 0x80) return false;
    }
    return true;
  }
}

/** JSON as it is taken out of a row of JSON: the same depth, names once. */
class ArrowJsonText {
  readonly #jsonTape = new RowTape();
  readonly #jsonReader = new JsonReader({ names: [], slotOf: () => -1 }, this.#jsonTape);

  problemOf(jsonCell: Uint8Array): string | null {
    // A number ends where something else begins.
    const paddedJson = new Uint8Array(jsonCell.length + 1);
    paddedJson.set(jsonCell);
    paddedJson[jsonCell.length] = 0x20;
    this.#jsonTape.reset(paddedJson);
    this.#jsonReader.openField(paddedJson, paddedJson.length);
    const jsonEnd = this.#jsonReader.skipValue(this.#jsonReader.skipSpace(0), 0);
    if (jsonEnd >= 0 && this.#jsonReader.skipSpace(jsonEnd) < jsonCell.length) return 'is JSON with text behind it';
    return jsonEnd >= 0 ? (this.#jsonTape.problem?.detail ?? null) : 'is not JSON';
  }
}

export class ListCells extends ArrowCells {
  readonly #listOffsets: Int32Array | BigInt64Array | number;
  readonly #listItems: NumberCells;
  readonly #listItemCount: number;
  readonly #listForm: CellForm;

  /** `listOffsets`: a number where all lists have that many items. */
  constructor(
    validity: Uint8Array | null,
    listOffsets: Int32Array | BigInt64Array | number,
    listItems: NumberCells,
    listItemCount: number,
    listForm: CellForm,
  ) {
    super(validity);
    this.#listOffsets = listOffsets;
    this.#listItems = listItems;
    this.#listItemCount = listItemCount;
    this.#listForm = listForm;
  }

  bytes(from: number, count: number): number {
    return Math.max(0, this.#listStart(from + count) - this.#listStart(from)) * 4;
  }

  protected problemOf(row: number): string | null {
    const [listStart, listEnd] = [this.#listStart(row), this.#listStart(row + 1)];
    if (!(listStart >= 0 && listStart <= listEnd && listEnd <= this.#listItemCount))
      throw malformedError('a list lies outside of its items');
    const listSize = listEnd - listStart;
    if (listSize < 1 || listSize > limits.vectorDims) return `has ${listSize} dimensions, not 1 to ${limits.vectorDims}`;
    const { dims: listDims } = this.#listForm;
    if (listDims !== 0 && listSize !== listDims) return `has ${listSize} dimensions instead of ${listDims}`;
    for (let i = listStart; i < listEnd; i++) {
      if (this.#listItems.isNull(i) || !Number.isFinite(Math.fround(this.#listItems.numberAt(i))))
        return 'holds what is not a finite 32-bit number';
    }
    this.#listForm.dims = listSize;
    return null;
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    const listVector = new Float32Array(this.#listForm.dims);
    for (let i = 0; i < count; i++) {
      if (nulls?.[i] === 1) {
        builder.appendNull();
        continue;
      }
      const listStart = this.#listStart(from + i);
      for (let j = 0; j < listVector.length; j++) listVector[j] = this.#listItems.numberAt(listStart + j);
      builder.appendVector(listVector);
    }
  }

  #listStart(row: number): number {
    return typeof this.#listOffsets === 'number' ? row * this.#listOffsets : Number(this.#listOffsets[row]!);
  }
}

/** Values of a dictionary: the first ones, and those that later messages added. */
export class ArrowDictionary {
  readonly type: ColumnType;
  readonly #dictionaryParts: { readonly first: number; readonly vector: Vector }[] = [];
  #dictionarySize = 0;

  constructor(type: ColumnType) {
    this.type = type;
  }

  get size(): number {
    return this.#dictionarySize;
  }

  add(dictionaryVector: Vector, count: number): void {
    if (count === 0) return;
    this.#dictionaryParts.push({ first: this.#dictionarySize, vector: dictionaryVector });
    this.#dictionarySize += count;
  }

  /** The part that a value lies in, and its row there. */
  find(dictionaryCode: number): { readonly vector: Vector; readonly row: number } {
    let [lowPart, highPart] = [0, this.#dictionaryParts.length - 1];
    while (lowPart < highPart) {
      const middlePart = (lowPart + highPart + 1) >> 1;
      if (this.#dictionaryParts[middlePart]!.first <= dictionaryCode) lowPart = middlePart;
      else highPart = middlePart - 1;
    }
    const dictionaryPart = this.#dictionaryParts[lowPart];
    assert(dictionaryPart, 'a code is checked before its value is looked for');
    return { vector: dictionaryPart.vector, row: dictionaryCode - dictionaryPart.first };
  }
}

export class CodedCells extends ArrowCells {
  readonly #dictionaryCodes: Integers;
  readonly #arrowDictionary: ArrowDictionary;

  constructor(validity: Uint8Array | null, dictionaryCodes: Integers, arrowDictionary: ArrowDictionary) {
    super(validity);
    this.#dictionaryCodes = dictionaryCodes;
    this.#arrowDictionary = arrowDictionary;
  }

  bytes(from: number, count: number): number {
    let codedBytes = 0;
    for (let row = from; row < from + count; row++) {
      const dictionaryCode = Number(this.#dictionaryCodes[row]!);
      if (this.isNull(row) || !(dictionaryCode >= 0 && dictionaryCode < this.#arrowDictionary.size)) continue;
      const { vector, row: dictionaryRow } = this.#arrowDictionary.find(dictionaryCode);
      codedBytes += vector.kind === 'text' ? vector.offsets[dictionaryRow + 1]! - vector.offsets[dictionaryRow]! : 8;
    }
    return codedBytes;
  }

  protected problemOf(row: number): null {
    const dictionaryCode = Number(this.#dictionaryCodes[row]!);
    if (!(dictionaryCode >= 0 && dictionaryCode < this.#arrowDictionary.size))
      throw malformedError('a cell names a value that its dictionary does not have');
    return null;
  }

  protected fill(builder: VectorBuilder, from: number, count: number, nulls: Uint8Array | null): void {
    for (let i = 0; i < count; i++) {
      if (nulls?.[i] === 1) {
        builder.appendNull();
        continue;
      }
      const { vector: dictionaryVector, row: dictionaryRow } = this.#arrowDictionary.find(
        Number(this.#dictionaryCodes[from + i]!),
      );
      if (dictionaryVector.kind === 'text' && dictionaryVector.nulls?.[dictionaryRow] !== 1)
        builder.appendText(
          dictionaryVector.heap,
          dictionaryVector.offsets[dictionaryRow]!,
          dictionaryVector.offsets[dictionaryRow + 1]!,
        );
      else builder.append(cellAt(dictionaryVector, this.#arrowDictionary.type, dictionaryRow));
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
