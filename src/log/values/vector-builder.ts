/** Builds one column cell by cell, narrow first: i32, then f64 or i64 when a value asks for it; text as UTF-8 in one heap. */
import { AssertionError, assert } from '../../errors.ts';
import type { Vector } from './columns.ts';
import { type Cell, type ColumnType, checkText, I64_MAX, I64_MIN } from './value.ts';

const I32_MAX = 2_147_483_647;
const I32_MIN = -2_147_483_648;
const cellTextEncoder = new TextEncoder();

export class VectorBuilder {
  readonly type: ColumnType;
  #cellCount = 0;
  #cellCapacity: number;
  readonly #heapBytesHint: number;
  #cellNulls: Uint8Array | null = null;
  #i32Cells: Int32Array | null = null;
  #f64Cells: Float64Array | null = null;
  #i64Cells: BigInt64Array | null = null;
  #boolCells: Uint8Array | null = null;
  #textOffsets: Uint32Array | null = null;
  #textHeap: Uint8Array | null = null;
  #textHeapUsed = 0;
  #vectorFloats: Float32Array | null = null;
  #vectorDims = 0;
  #hasCellValue = false;

  /** Room for `cellCapacity` cells and `heapBytesHint` of text: more is made when it is needed. */
  constructor(columnType: ColumnType, cellCapacity = 64, heapBytesHint = cellCapacity * 16) {
    this.type = columnType;
    this.#cellCapacity = cellCapacity;
    this.#heapBytesHint = heapBytesHint;
  }

  get length(): number {
    return this.#cellCount;
  }

  appendNull(): void {
    this.#reserveCells();
    this.#cellNulls ??= new Uint8Array(this.#cellCapacity);
    this.#cellNulls[this.#cellCount] = 1;
    if (this.#textOffsets) this.#textOffsets[this.#cellCount + 1] = this.#textHeapUsed;
    this.#cellCount++;
  }

  /** A safe integer (|value| at most 2^53 - 1) of an integer or timestamp column. */
  appendInteger(integerCell: number): void {
    if (this.type === 'timestamp') return this.appendBigint(BigInt(integerCell));
    this.#reserveCells();
    this.#hasCellValue = true;
    if (this.#i64Cells) this.#i64Cells[this.#cellCount] = BigInt(integerCell);
    else if (this.#f64Cells) this.#f64Cells[this.#cellCount] = integerCell === 0 ? 0 : integerCell;
    else if (integerCell >= I32_MIN && integerCell <= I32_MAX)
      (this.#i32Cells ??= new Int32Array(this.#cellCapacity))[this.#cellCount] = integerCell;
    else this.#widenCellsToF64()[this.#cellCount] = integerCell;
    this.#cellCount++;
  }

  /** Any i64 of an integer or timestamp column. */
  appendBigint(integerCell: bigint): void {
    assert(integerCell <= I64_MAX && integerCell >= I64_MIN, 'integer out of i64 range');
    if (
      this.type !== 'timestamp' &&
      integerCell <= 9_007_199_254_740_991n &&
      integerCell >= -9_007_199_254_740_991n &&
      !this.#i64Cells
    ) {
      return this.appendInteger(Number(integerCell));
    }
    this.#reserveCells();
    this.#hasCellValue = true;
    this.#widenCellsToI64()[this.#cellCount] = integerCell;
    this.#cellCount++;
  }

  /** A finite double of a number column. */
  appendNumber(numberCell: number): void {
    this.#reserveCells();
    this.#hasCellValue = true;
    (this.#f64Cells ??= new Float64Array(this.#cellCapacity))[this.#cellCount] = numberCell;
    this.#cellCount++;
  }

  appendBoolean(booleanCell: boolean): void {
    this.#reserveCells();
    this.#hasCellValue = true;
    (this.#boolCells ??= new Uint8Array(this.#cellCapacity))[this.#cellCount] = booleanCell ? 1 : 0;
    this.#cellCount++;
  }

  /** UTF-8 bytes source[start..end) of a string or json column. The caller has checked that they are valid UTF-8. */
  appendText(textBytes: Uint8Array, textStart: number, textEnd: number): void {
    const textSize = textEnd - textStart;
    this.#reserveTextHeap(textSize);
    const textHeap = this.#textHeap!;
    const heapUsed = this.#textHeapUsed;
    if (textSize <= 24) for (let i = 0; i < textSize; i++) textHeap[heapUsed + i] = textBytes[textStart + i]!;
    else textHeap.set(textBytes.subarray(textStart, textEnd), heapUsed);
    this.#finishTextCell(textSize);
  }

  /** A string or json column's text. Throws REL_INVALID on a lone surrogate. */
  appendString(cellText: string): void {
    // Counts the bytes of long texts: reserving the worst case would zero and keep three times as much.
    this.#reserveTextHeap(cellText.length > 4_096 ? Buffer.byteLength(cellText) : cellText.length * 3);
    const textHeap = this.#textHeap!;
    const heapOffset = this.#textHeapUsed;
    // Short ASCII is the common case, and a byte loop beats a call into the encoder there.
    if (cellText.length <= 32) {
      let i = 0;
      for (; i < cellText.length; i++) {
        const charCode = cellText.charCodeAt(i);
        if (charCode > 127) break;
        textHeap[heapOffset + i] = charCode;
      }
      if (i === cellText.length) return this.#finishTextCell(i);
    }
    checkText(cellText, 'a string');
    this.#finishTextCell(cellTextEncoder.encodeInto(cellText, textHeap.subarray(heapOffset)).written);
  }

  /** `dims` floats of a vector column; the first one appended fixes `dims`. */
  appendVector(vectorCell: ArrayLike<number>): void {
    this.#reserveCells();
    this.#hasCellValue = true;
    if (this.#vectorDims === 0) {
      this.#vectorDims = vectorCell.length;
      this.#vectorFloats = new Float32Array(this.#cellCapacity * this.#vectorDims);
    }
    assert(vectorCell.length === this.#vectorDims, 'vectors of one column have one length');
    this.#vectorFloats!.set(vectorCell, this.#cellCount * this.#vectorDims);
    this.#cellCount++;
  }

  /**
   * `textCount` cells of a string or json column: cell i is heap[offsets[i]..offsets[i + 1]], and nothing where nulls[i] is 1.
   * Not all of them are NULL, here and in the other methods that take many cells.
   */
  appendTexts(sourceHeap: Uint8Array, sourceOffsets: Uint32Array, textNulls: Uint8Array | null, textCount: number): void {
    const firstOffset = sourceOffsets[0]!;
    const textBytes = sourceOffsets[textCount]! - firstOffset;
    this.#reserveTextHeap(textBytes, textCount);
    const offsetShift = this.#textHeapUsed - firstOffset;
    const firstNewOffset = this.#cellCount + 1;
    const textOffsets = this.#textOffsets!;
    for (let i = 1; i <= textCount; i++) textOffsets[firstNewOffset + i - 1] = sourceOffsets[i]! + offsetShift;
    this.#textHeap!.set(sourceHeap.subarray(firstOffset, firstOffset + textBytes), this.#textHeapUsed);
    this.#textHeapUsed += textBytes;
    this.#finishAppendedCells(textNulls, textCount);
  }

  /** `integerCount` cells of an integer or timestamp column in the narrowest layout that holds them; 0 where NULL. */
  appendIntegers(
    integerCells: Int32Array | Float64Array | BigInt64Array,
    integerNulls: Uint8Array | null,
    integerCount: number,
  ): void {
    this.#reserveCells(integerCount);
    const firstNewCell = this.#cellCount;
    if (integerCells instanceof BigInt64Array) this.#widenCellsToI64().set(integerCells.subarray(0, integerCount), firstNewCell);
    else if (this.#i64Cells) for (let i = 0; i < integerCount; i++) this.#i64Cells[firstNewCell + i] = BigInt(integerCells[i]!);
    else if (this.#f64Cells) this.#f64Cells.set(integerCells.subarray(0, integerCount), firstNewCell);
    else if (integerCells instanceof Float64Array)
      this.#widenCellsToF64().set(integerCells.subarray(0, integerCount), firstNewCell);
    else (this.#i32Cells ??= new Int32Array(this.#cellCapacity)).set(integerCells.subarray(0, integerCount), firstNewCell);
    this.#finishAppendedCells(integerNulls, integerCount);
  }

  /** `numberCount` finite doubles of a number column; 0 where NULL. */
  appendNumbers(numberCells: Float64Array, numberNulls: Uint8Array | null, numberCount: number): void {
    this.#reserveCells(numberCount);
    (this.#f64Cells ??= new Float64Array(this.#cellCapacity)).set(numberCells.subarray(0, numberCount), this.#cellCount);
    this.#finishAppendedCells(numberNulls, numberCount);
  }

  /** `booleanCount` cells of a boolean column: 0 or 1, and 0 where NULL. */
  appendBooleans(booleanCells: Uint8Array, booleanNulls: Uint8Array | null, booleanCount: number): void {
    this.#reserveCells(booleanCount);
    (this.#boolCells ??= new Uint8Array(this.#cellCapacity)).set(booleanCells.subarray(0, booleanCount), this.#cellCount);
    this.#finishAppendedCells(booleanNulls, booleanCount);
  }

  /** For single cells: tests, literals, remainders. Bulk paths call the typed methods. */
  append(appendedCell: Cell): void {
    if (appendedCell === null) return this.appendNull();
    switch (this.type) {
      case 'string':
      case 'json':
        assert(typeof appendedCell === 'string', 'text expected');
        return this.appendString(appendedCell);
      case 'integer':
      case 'timestamp':
        assert(typeof appendedCell === 'bigint', 'bigint expected');
        return this.appendBigint(appendedCell);
      case 'number':
        assert(typeof appendedCell === 'number', 'number expected');
        return this.appendNumber(appendedCell);
      case 'boolean':
        assert(typeof appendedCell === 'boolean', 'boolean expected');
        return this.appendBoolean(appendedCell);
      case 'vector':
        assert(appendedCell instanceof Float32Array, 'vector expected');
        return this.appendVector(appendedCell);
    }
  }

  /** The column; the builder must not be used afterwards. Arrays are as long as the column. */
  build(): Vector {
    const builtCells = this.#cellCount;
    const builtNulls = this.#cellNulls ? firstCells(this.#cellNulls, builtCells) : null;
    if (!this.#hasCellValue) return { kind: 'null' };
    if (this.#textOffsets)
      return {
        kind: 'text',
        offsets: firstCells(this.#textOffsets, builtCells + 1),
        heap: firstCells(this.#textHeap!, this.#textHeapUsed),
        nulls: builtNulls,
      };
    if (this.#boolCells) return { kind: 'bool', values: firstCells(this.#boolCells, builtCells), nulls: builtNulls };
    if (this.#vectorFloats)
      return {
        kind: 'vec',
        values: firstCells(this.#vectorFloats, builtCells * this.#vectorDims),
        dims: this.#vectorDims,
        nulls: builtNulls,
      };
    if (this.#i64Cells) return { kind: 'i64', values: firstCells(this.#i64Cells, builtCells), nulls: builtNulls };
    if (this.#f64Cells) return { kind: 'f64', values: firstCells(this.#f64Cells, builtCells), nulls: builtNulls };
    if (this.#i32Cells) return { kind: 'i32', values: firstCells(this.#i32Cells, builtCells), nulls: builtNulls };
    throw new AssertionError('a column with values has a layout');
  }

  #finishAppendedCells(appendedNulls: Uint8Array | null, appendedCells: number): void {
    if (appendedNulls !== null)
      (this.#cellNulls ??= new Uint8Array(this.#cellCapacity)).set(appendedNulls.subarray(0, appendedCells), this.#cellCount);
    this.#hasCellValue = true;
    this.#cellCount += appendedCells;
  }

  #reserveTextHeap(textBytes: number, cells = 1): void {
    this.#reserveCells(cells);
    if (!this.#textOffsets) {
      this.#textOffsets = new Uint32Array(this.#cellCapacity + 1);
      this.#textHeap = new Uint8Array(this.#cellCapacity === 1 ? textBytes : Math.max(256, textBytes, this.#heapBytesHint));
    }
    if (this.#textHeapUsed + textBytes > this.#textHeap!.length) {
      const grownHeap = new Uint8Array(Math.max(this.#textHeap!.length * 2, this.#textHeapUsed + textBytes));
      grownHeap.set(this.#textHeap!.subarray(0, this.#textHeapUsed));
      this.#textHeap = grownHeap;
    }
  }

  #finishTextCell(textBytes: number): void {
    this.#hasCellValue = true;
    this.#textHeapUsed += textBytes;
    this.#cellCount++;
    this.#textOffsets![this.#cellCount] = this.#textHeapUsed;
  }

  #widenCellsToF64(): Float64Array {
    const f64Cells = new Float64Array(this.#cellCapacity);
    if (this.#i32Cells) f64Cells.set(this.#i32Cells);
    this.#i32Cells = null;
    return (this.#f64Cells = f64Cells);
  }

  #widenCellsToI64(): BigInt64Array {
    if (this.#i64Cells) return this.#i64Cells;
    const i64Cells = new BigInt64Array(this.#cellCapacity);
    const narrowCells = this.#f64Cells ?? this.#i32Cells;
    if (narrowCells) for (let i = 0; i < this.#cellCount; i++) i64Cells[i] = BigInt(narrowCells[i]!);
    this.#f64Cells = null;
    this.#i32Cells = null;
    return (this.#i64Cells = i64Cells);
  }

  #reserveCells(cells = 1): void {
    if (this.#cellCount + cells <= this.#cellCapacity) return;
    const grownCapacity = (this.#cellCapacity = Math.max(16, this.#cellCount + cells, this.#cellCapacity * 2));
    if (this.#cellNulls) this.#cellNulls = copyCellsInto(this.#cellNulls, new Uint8Array(grownCapacity));
    if (this.#i32Cells) this.#i32Cells = copyCellsInto(this.#i32Cells, new Int32Array(grownCapacity));
    if (this.#f64Cells) this.#f64Cells = copyCellsInto(this.#f64Cells, new Float64Array(grownCapacity));
    if (this.#i64Cells) {
      const grownI64Cells = new BigInt64Array(grownCapacity);
      grownI64Cells.set(this.#i64Cells);
      this.#i64Cells = grownI64Cells;
    }
    if (this.#boolCells) this.#boolCells = copyCellsInto(this.#boolCells, new Uint8Array(grownCapacity));
    if (this.#textOffsets) this.#textOffsets = copyCellsInto(this.#textOffsets, new Uint32Array(grownCapacity + 1));
    if (this.#vectorFloats)
      this.#vectorFloats = copyCellsInto(this.#vectorFloats, new Float32Array(grownCapacity * this.#vectorDims));
  }
}

/** A view of the first `cellCount`; where that is all, the array itself: a column of one cell is smaller than its views. */
function firstCells<T extends Uint8Array | Int32Array | Uint32Array | Float32Array | Float64Array | BigInt64Array>(
  cellArray: T,
  cellCount: number,
): T {
  return cellArray.length === cellCount ? cellArray : (cellArray.subarray(0, cellCount) as T);
}

function copyCellsInto<T extends Uint8Array | Int32Array | Uint32Array | Float32Array | Float64Array>(
  oldCells: T,
  grownCells: T,
): T {
  grownCells.set(oldCells);
  return grownCells;
}

const cellTextDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** One cell of a vector as a value: for single cells, never in a loop over rows. */
export function cellAt(cellVector: Vector, columnType: ColumnType, cellRow: number): Cell {
  if (cellVector.kind === 'null' || cellVector.nulls?.[cellRow] === 1) return null;
  switch (cellVector.kind) {
    case 'text':
      return cellTextDecoder.decode(cellVector.heap.subarray(cellVector.offsets[cellRow]!, cellVector.offsets[cellRow + 1]!));
    case 'dict':
      return cellVector.dictionary.text(cellVector.values[cellRow]!);
    case 'bool':
      return cellVector.values[cellRow] === 1;
    case 'vec':
      return cellVector.values.slice(cellRow * cellVector.dims, (cellRow + 1) * cellVector.dims);
    case 'i64':
      return columnType === 'number' ? Number(cellVector.values[cellRow]!) : cellVector.values[cellRow]!;
    case 'i32':
    case 'f64':
      return columnType === 'number' ? cellVector.values[cellRow]! : BigInt(cellVector.values[cellRow]!);
  }
}
