/**
 * One column of one segment: grows by ranges of vectors, in the narrowest layout that holds every value so far. Rows that an
 * entry did not mention are padded with NULL on the next read.
 */
import { assert, unreachable } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import { becomesText, type ColumnType } from '../../../log/values/value.ts';
import { ByteDictionary } from '../cells/byte-dictionary.ts';
import { type Extents, type FixedArray, type FixedKind, no, zeroFill } from '../cells/column-extents.ts';
import { jsonText } from '../cells/json-text.ts';
import { ColumnCells, type ColumnLayout, type SavedVector } from './column-cells.ts';

/** A segment's most rows; row numbers of a table are `segment << 16 | row`. */
export const SEGMENT_ROWS = 65_536;
/** Copying an array of so many bytes is felt in a turn. */
const LONG_COLUMN_BYTES = 1 << 20;

const SAFE_INTEGER = 9_007_199_254_740_991n;
const I32_MAX = 2_147_483_647;
const I32_MIN = -2_147_483_648;

const cellEncoder = new TextEncoder();

export class SegmentColumn {
  #columnType: ColumnType;
  readonly #columnCells = new ColumnCells();
  #columnLength = 0;
  #columnCapacity = 0;
  #columnNulls: Uint8Array | null = null;
  #columnDictionary: ByteDictionary | null;
  #cachedVector: Vector | null = null;
  /** Null for a copy, which is never sealed. */
  readonly #columnExtents: Extents | null;
  #isColumnSealed = false;
  readonly #expectedHeapBytes: number;
  /** The column was read since the hand last passed: others leave memory first. */
  recent = false;

  /**
   * A string column codes its cells into `dictionary` while it is given one. `columnBefore` is the same column of the segment
   * before: what that needed is set aside at once, where it can stay, because growing to it costs more than filling it.
   */
  constructor(type: ColumnType, dictionary: ByteDictionary | null, extents: Extents | null, columnBefore?: SegmentColumn) {
    this.#columnType = type;
    this.#columnDictionary = type === 'string' ? dictionary : null;
    this.#columnExtents = extents;
    this.#columnCapacity = columnBefore ? columnBefore.#columnLength : 0;
    this.#expectedHeapBytes = columnBefore ? columnBefore.#columnCells.heapUsed + (columnBefore.#columnCells.heapUsed >>> 4) : 0;
  }

  /** A column of `length` cells over the arrays of a saved vector: as they are, until it is sealed. */
  static fromSaved(
    type: ColumnType,
    savedCells: SavedVector,
    length: number,
    dictionary: ByteDictionary | null,
    extents: Extents | null,
  ): SegmentColumn {
    const savedColumn = new SegmentColumn(type, dictionary, extents);
    savedColumn.#columnLength = length;
    if (savedCells.kind === 'null') return savedColumn;
    savedColumn.#columnCapacity = length;
    savedColumn.#columnNulls = savedCells.nulls;
    savedColumn.#columnCells.adopt(savedCells);
    return savedColumn;
  }

  /** Copies of the arrays, as long as the column; the dictionary is saved once, by the table. */
  savedVector(length: number): SavedVector {
    return this.#columnCells.savedCopy(this.vector(length), length);
  }

  /** Its first `length` cells in arrays of their own, strings spelled out. */
  copy(length: number): SegmentColumn {
    const columnCopy = SegmentColumn.fromSaved(this.#columnType, this.savedVector(length), length, this.#columnDictionary, null);
    columnCopy.#spellAsText();
    return columnCopy;
  }

  get type(): ColumnType {
    return this.#columnType;
  }

  get length(): number {
    return this.#columnLength;
  }

  get heapBytes(): number {
    return this.#columnCells.heapUsed;
  }

  /** UTF-8 heap of a column without dictionary. */
  get heap(): Uint8Array {
    return this.#columnCells.heap;
  }

  get offsets(): Uint32Array {
    return this.#columnCells.offsets;
  }

  /** Appends source[from..to), where the source holds cells of this column's type. */
  append(appendedVector: Vector, firstAppended: number, appendedEnd: number): void {
    const appendedCount = appendedEnd - firstAppended;
    if (appendedCount === 0) return;
    if (appendedVector.kind === 'null') return this.pad(this.#columnLength + appendedCount);
    this.#cachedVector = null;
    const appendedAt = this.#columnLength;
    this.#reserveCells(appendedAt + appendedCount);
    switch (appendedVector.kind) {
      case 'i32':
      case 'f64':
      case 'i64':
        this.#appendNumeric(appendedVector, firstAppended, appendedEnd, appendedAt);
        break;
      case 'bool':
        this.#changeLayout('bool');
        this.#columnCells.bool.set(appendedVector.values.subarray(firstAppended, appendedEnd), appendedAt);
        break;
      case 'vec':
        if (this.#columnCells.layout === 'none') this.#columnCells.dims = appendedVector.dims;
        assert(this.#columnCells.dims === appendedVector.dims, 'vectors of one column have one length');
        this.#changeLayout('vec');
        this.#columnCells.floats.set(
          appendedVector.values.subarray(firstAppended * appendedVector.dims, appendedEnd * appendedVector.dims),
          appendedAt * appendedVector.dims,
        );
        break;
      case 'dict':
        this.#appendCodes(appendedVector, firstAppended, appendedEnd, appendedAt);
        break;
      case 'text':
        if (this.#columnDictionary)
          this.#encodeText(appendedVector, firstAppended, appendedEnd, appendedAt, this.#columnDictionary);
        else this.#appendText(appendedVector, firstAppended, appendedEnd, appendedAt);
        break;
      default:
        unreachable(appendedVector);
    }
    this.#columnLength = appendedAt + appendedCount;
    if (appendedVector.nulls) this.#copyNulls(appendedVector.nulls, firstAppended, appendedEnd, appendedAt);
  }

  /** NULL up to `length` rows. */
  pad(length: number): void {
    const paddedFrom = this.#columnLength;
    if (length <= paddedFrom) return;
    this.#cachedVector = null;
    if (this.#columnCells.layout !== 'none') {
      this.#reserveCells(length);
      this.#columnCells.blank(paddedFrom, length);
      this.#writableNulls().fill(1, paddedFrom, length);
    }
    this.#columnLength = length;
  }

  /** The column as it stands, `length` rows long; shares its arrays. */
  vector(length: number): Vector {
    this.pad(length);
    return (this.#cachedVector ??= this.#makeVector());
  }

  /**
   * Wipes the cells of rows that are removed, in place. They become NULL where that costs nothing, and where another value
   * would be some other cell's: code 0 has a meaning.
   */
  clear(clearedRows: readonly number[]): void {
    if (this.#columnCells.layout === 'none') return;
    this.#cachedVector = null;
    const clearedNulls = this.#columnCells.layout === 'dict' ? this.#writableNulls() : this.#columnNulls;
    for (const clearedRow of clearedRows) {
      if (clearedRow >= this.#columnLength) continue;
      if (this.#columnCells.layout === 'dict' && clearedNulls![clearedRow] !== 1)
        this.#columnDictionary!.release(this.#columnCells.i32[clearedRow]!);
      if (clearedNulls) clearedNulls[clearedRow] = 1;
      if (this.#columnCells.layout === 'text')
        this.#columnCells.heap.fill(0, this.#columnCells.offsets[clearedRow]!, this.#columnCells.offsets[clearedRow + 1]!);
      else this.#columnCells.blank(clearedRow, clearedRow + 1);
    }
  }

  /** Holds the cells as UTF-8 from here on: a dictionary of mostly distinct strings costs more than it saves. */
  spellOut(): void {
    const spelledDictionary = this.#columnDictionary;
    const spelledCodes = this.#columnCells.layout === 'dict' ? this.#columnCells.i32.slice(0, this.#columnLength) : null;
    this.#spellAsText();
    if (spelledCodes) spelledDictionary!.releaseCells(spelledCodes, this.#columnNulls);
  }

  #spellAsText(): void {
    if (this.#columnCells.layout === 'dict') this.#spellCodes();
    this.#columnDictionary = null;
  }

  /** Cells under a wider type: integers become numbers, scalars become text, anything becomes JSON text. */
  widen(widerType: ColumnType): void {
    if (widerType === this.#columnType) return;
    const typeBefore = this.#columnType;
    if (widerType === 'json' || (widerType === 'string' && becomesText(typeBefore))) {
      if (this.#columnCells.layout === 'none') this.#columnType = widerType;
      else this.#rebuildAsText(widerType, (widenedCell) => jsonText(widenedCell, typeBefore));
      this.#columnDictionary = null;
      return;
    }
    assert(widerType === 'number' && typeBefore === 'integer', `${typeBefore} widens to ${widerType}`);
    this.#columnType = widerType;
    this.#cachedVector = null;
    if (this.#columnCells.layout === 'i32' || this.#columnCells.layout === 'i64') this.#changeLayout('f64');
  }

  /** True when every integer, or each of the first `rows`, has an exact double. */
  integersFitNumber(rows = this.#columnLength): boolean {
    if (this.#columnCells.layout !== 'i64') return true;
    for (let row = 0; row < Math.min(rows, this.#columnLength); row++) {
      const storedInteger = this.#columnCells.i64[row]!;
      if ((storedInteger > 9_007_199_254_740_992n || storedInteger < -9_007_199_254_740_992n) && this.#columnNulls?.[row] !== 1)
        return false;
    }
    return true;
  }

  /** No row follows: every array moves to an extent of just its length, numbers and text alike. */
  seal(length: number): void {
    this.pad(length);
    this.#isColumnSealed = true;
    this.#columnCapacity = length;
    this.#cachedVector = null;
    if (this.#columnNulls) this.#columnNulls = this.#settleColumnArray(this.#columnNulls, length);
    this.#columnCells.settle(length, (columnArray, settledLength) => this.#settleColumnArray(columnArray, settledLength));
  }

  /** Gives back every array. The column must not be read afterwards. */
  release(): void {
    if (this.#columnNulls) this.#columnExtents?.giveBack(this.#columnNulls);
    for (const columnArray of this.#columnCells.arrays()) this.#columnExtents?.giveBack(columnArray);
    this.#cachedVector = null;
    this.#columnNulls = null;
    this.#columnCells.clear();
  }

  get bytes(): number {
    return (this.#columnNulls?.length ?? 0) + this.#columnCells.bytes;
  }

  #appendNumeric(
    numericVector: Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>,
    from: number,
    to: number,
    appendedAt: number,
  ): void {
    const columnCells = this.#columnCells;
    const neededLayout =
      this.#columnType === 'timestamp' ? 'i64' : this.#columnType === 'number' ? 'f64' : integerLayout(numericVector, from, to);
    this.#changeLayout(neededLayout);
    // `become` only ever widens, so the layout may be wider than what was asked for.
    if (columnCells.layout === 'i32') copyNumbers(numericVector, from, to, columnCells.i32, appendedAt);
    else if (columnCells.layout === 'f64') copyNumbers(numericVector, from, to, columnCells.f64, appendedAt);
    else if (numericVector.kind === 'i64') columnCells.i64.set(numericVector.values.subarray(from, to), appendedAt);
    else for (let i = from; i < to; i++) columnCells.i64[appendedAt + i - from] = BigInt(numericVector.values[i]!);
  }

  #appendCodes(codedVector: Extract<Vector, { kind: 'dict' }>, from: number, to: number, appendedAt: number): void {
    const { values, nulls, dictionary } = codedVector;
    const bytesOfCode = (code: number): Uint8Array =>
      dictionary instanceof ByteDictionary ? dictionary.bytesOf(code) : cellEncoder.encode(dictionary.text(code));
    if (this.#columnDictionary) {
      this.#changeLayout('dict');
      const columnCodes = this.#columnCells.i32;
      // The source's codes mean nothing here: each is looked up once, on first use.
      const codesOfSource = new Int32Array(dictionary.size).fill(-1);
      for (let i = from; i < to; i++) {
        if (nulls?.[i] === 1) {
          columnCodes[appendedAt + i - from] = 0;
          continue;
        }
        const sourceCode = values[i]!;
        let columnCode = codesOfSource[sourceCode]!;
        if (columnCode < 0) {
          const codeBytes = bytesOfCode(sourceCode);
          columnCode = codesOfSource[sourceCode] = this.#columnDictionary.encode(codeBytes, 0, codeBytes.length);
        }
        this.#columnDictionary.count(columnCode);
        columnCodes[appendedAt + i - from] = columnCode;
      }
      return;
    }
    this.#changeLayout('text');
    const columnCells = this.#columnCells;
    for (let i = from; i < to; i++) {
      if (nulls?.[i] !== 1) {
        const codeBytes = bytesOfCode(values[i]!);
        this.#reserveTextHeap(codeBytes.length);
        columnCells.heap.set(codeBytes, columnCells.heapUsed);
        columnCells.heapUsed += codeBytes.length;
      }
      columnCells.offsets[appendedAt + i - from + 1] = columnCells.heapUsed;
    }
  }

  #encodeText(
    textVector: Extract<Vector, { kind: 'text' }>,
    from: number,
    to: number,
    appendedAt: number,
    dictionary: ByteDictionary,
  ): void {
    this.#changeLayout('dict');
    dictionary.encodeCells(textVector, from, to, this.#columnCells.i32, appendedAt);
  }

  #appendText(textVector: Extract<Vector, { kind: 'text' }>, from: number, to: number, appendedAt: number): void {
    const columnCells = this.#columnCells;
    this.#changeLayout('text');
    const appendedHeapStart = textVector.offsets[from]!;
    const appendedHeapBytes = textVector.offsets[to]! - appendedHeapStart;
    this.#reserveTextHeap(appendedHeapBytes);
    columnCells.heap.set(
      textVector.heap.subarray(appendedHeapStart, appendedHeapStart + appendedHeapBytes),
      columnCells.heapUsed,
    );
    const offsetShift = columnCells.heapUsed - appendedHeapStart;
    const columnOffsets = columnCells.offsets;
    for (let i = from + 1; i <= to; i++) columnOffsets[appendedAt + i - from] = textVector.offsets[i]! + offsetShift;
    columnCells.heapUsed += appendedHeapBytes;
  }

  #copyNulls(sourceNulls: Uint8Array, from: number, to: number, appendedAt: number): void {
    if (!this.#columnNulls) {
      let i = from;
      while (i < to && sourceNulls[i] !== 1) i++;
      if (i === to) return;
    }
    this.#writableNulls().set(sourceNulls.subarray(from, to), appendedAt);
  }

  /** Moves to a layout, or stays in a wider one. */
  #changeLayout(columnLayout: ColumnLayout): void {
    const columnCells = this.#columnCells;
    if (
      columnCells.layout === columnLayout ||
      (columnCells.layout === 'i64' && this.#columnType !== 'number') ||
      (columnCells.layout === 'f64' && columnLayout === 'i32')
    ) {
      return;
    }
    this.#cachedVector = null;
    const layoutBefore = columnCells.layout;
    const [i32, f64, i64] = [columnCells.i32, columnCells.f64, columnCells.i64];
    columnCells.layout = columnLayout;
    switch (columnLayout) {
      case 'i32':
      case 'dict':
        columnCells.i32 = this.#allocateColumnArray(Int32Array, this.#columnCapacity).fill(0, 0, this.#columnLength);
        break;
      case 'f64':
        columnCells.f64 = this.#allocateColumnArray(Float64Array, this.#columnCapacity).fill(0, 0, this.#columnLength);
        if (layoutBefore === 'i32') columnCells.f64.set(columnCells.i32.subarray(0, this.#columnLength));
        if (layoutBefore === 'i64') for (let i = 0; i < this.#columnLength; i++) columnCells.f64[i] = Number(columnCells.i64[i]!);
        break;
      case 'i64': {
        columnCells.i64 = this.#allocateColumnArray(BigInt64Array, this.#columnCapacity).fill(0n, 0, this.#columnLength);
        const narrowNumbers = layoutBefore === 'i32' ? columnCells.i32 : columnCells.f64;
        if (layoutBefore !== 'none') for (let i = 0; i < this.#columnLength; i++) columnCells.i64[i] = BigInt(narrowNumbers[i]!);
        break;
      }
      case 'bool':
        columnCells.bool = this.#allocateColumnArray(Uint8Array, this.#columnCapacity).fill(0, 0, this.#columnLength);
        break;
      case 'vec':
        columnCells.floats = this.#allocateColumnArray(Float32Array, this.#columnCapacity * columnCells.dims).fill(
          0,
          0,
          this.#columnLength * columnCells.dims,
        );
        break;
      case 'text':
        columnCells.offsets = this.#allocateColumnArray(Uint32Array, this.#columnCapacity + 1).fill(0, 0, this.#columnLength + 1);
        columnCells.heap = this.#allocateColumnArray(
          Uint8Array,
          Math.max(64, this.#expectedHeapBytes || this.#columnCapacity * 8),
        );
        break;
      case 'none':
        break;
      default:
        unreachable(columnLayout);
    }
    if (layoutBefore === 'i32') columnCells.i32 = no.i32;
    if (layoutBefore === 'f64') columnCells.f64 = no.f64;
    if (layoutBefore === 'i64') columnCells.i64 = no.i64;
    for (const [arrayBefore, arrayNow] of [
      [i32, columnCells.i32],
      [f64, columnCells.f64],
      [i64, columnCells.i64],
    ])
      if (arrayBefore !== arrayNow) this.#columnExtents?.giveBack(arrayBefore!);
    if (layoutBefore === 'none' && this.#columnLength > 0) this.#writableNulls().fill(1, 0, this.#columnLength);
  }

  /** From bytes to bytes: a turn that others wait for has no time to make a string of each cell. */
  #spellCodes(): void {
    const columnCells = this.#columnCells;
    const spelledDictionary = this.#columnDictionary!;
    const [spelledCodes, length] = [columnCells.i32, this.#columnLength];
    const spelledOffsets = this.#allocateColumnArray(Uint32Array, this.#columnCapacity + 1);
    const spelledBytes = spelledDictionary.measure(spelledCodes, this.#columnNulls, length, spelledOffsets);
    const spelledHeap = new Uint8Array(Math.max(64, this.#expectedHeapBytes, spelledBytes));
    spelledDictionary.spell(spelledCodes, length, spelledOffsets, spelledHeap);
    this.#cachedVector = null;
    columnCells.layout = 'text';
    columnCells.i32 = no.i32;
    this.#columnExtents?.giveBack(spelledCodes);
    columnCells.offsets = spelledOffsets;
    columnCells.heap = spelledHeap;
    columnCells.heapUsed = spelledBytes;
    if (this.#isColumnSealed) this.seal(length);
  }

  /** Every cell as text under `type`. */
  #rebuildAsText(type: ColumnType, textOf: (cellBefore: Exclude<ReturnType<typeof cellAt>, null>) => string): void {
    const vectorBefore = this.#makeVector();
    const typeBefore = this.#columnType;
    const length = this.#columnLength;
    const rebuiltColumn = new SegmentColumn(type, null, null);
    rebuiltColumn.#reserveCells(length);
    rebuiltColumn.#changeLayout('text');
    const textCells = rebuiltColumn.#columnCells;
    for (let row = 0; row < length; row++) {
      const cellBefore = cellAt(vectorBefore, typeBefore, row);
      if (cellBefore === null) rebuiltColumn.#writableNulls()[row] = 1;
      else {
        const cellBytes = cellEncoder.encode(textOf(cellBefore));
        rebuiltColumn.#reserveTextHeap(cellBytes.length);
        textCells.heap.set(cellBytes, textCells.heapUsed);
        textCells.heapUsed += cellBytes.length;
      }
      textCells.offsets[row + 1] = textCells.heapUsed;
    }
    this.release();
    this.#columnType = type;
    this.#columnCells.layout = 'text';
    this.#columnNulls = rebuiltColumn.#columnNulls;
    this.#columnCapacity = rebuiltColumn.#columnCapacity;
    this.#columnCells.offsets = textCells.offsets;
    this.#columnCells.heap = textCells.heap;
    this.#columnCells.heapUsed = textCells.heapUsed;
    if (this.#isColumnSealed) this.seal(length);
  }

  /**
   * Allocates long arrays, and arrays of segments expected to fill up, where they will rest, so that sealing copies nothing.
   * Contents are undefined.
   */
  #allocateColumnArray<T extends FixedArray>(arrayKind: FixedKind<T>, length: number): T {
    const isLong = length * arrayKind.BYTES_PER_ELEMENT >= LONG_COLUMN_BYTES;
    return this.#columnExtents && (this.#isColumnSealed || isLong || this.#columnCapacity >= SEGMENT_ROWS)
      ? this.#columnExtents.allocate(arrayKind, length)
      : new arrayKind(length);
  }

  #settleColumnArray<T extends FixedArray>(columnArray: T, length: number): T {
    return this.#columnExtents ? this.#columnExtents.settle(columnArray, length) : columnArray;
  }

  #growColumnArray<T extends FixedArray>(fullArray: T, arrayKind: FixedKind<T>, length: number): T {
    const largerArray = this.#allocateColumnArray(arrayKind, length);
    (largerArray as Uint8Array).set(fullArray as Uint8Array);
    this.#columnExtents?.giveBack(fullArray);
    return largerArray;
  }

  #makeVector(): Vector {
    return this.#columnCells.vector(this.#columnNulls, this.#columnDictionary);
  }

  #writableNulls(): Uint8Array {
    if (!this.#columnNulls) {
      this.#columnNulls = zeroFill(this.#allocateColumnArray(Uint8Array, this.#columnCapacity));
      this.#cachedVector = null;
    }
    return this.#columnNulls;
  }

  #reserveTextHeap(addedHeapBytes: number): void {
    if (this.#columnCells.heapUsed + addedHeapBytes <= this.#columnCells.heap.length) return;
    this.#columnCells.heap = this.#growColumnArray(
      this.#columnCells.heap,
      Uint8Array,
      Math.max(this.#columnCells.heap.length * 2, this.#columnCells.heapUsed + addedHeapBytes),
    );
  }

  #reserveCells(rows: number): void {
    if (rows <= this.#columnCapacity) return;
    let columnCapacity = Math.max(64, this.#columnCapacity * 2);
    while (columnCapacity < rows) columnCapacity *= 2;
    this.#columnCapacity = columnCapacity;
    if (this.#columnNulls)
      this.#columnNulls = this.#growColumnArray(this.#columnNulls, Uint8Array, columnCapacity).fill(0, this.#columnLength);
    if (this.#columnCells.layout === 'i32' || this.#columnCells.layout === 'dict')
      this.#columnCells.i32 = this.#growColumnArray(this.#columnCells.i32, Int32Array, columnCapacity);
    else if (this.#columnCells.layout === 'f64')
      this.#columnCells.f64 = this.#growColumnArray(this.#columnCells.f64, Float64Array, columnCapacity);
    else if (this.#columnCells.layout === 'i64')
      this.#columnCells.i64 = this.#growColumnArray(this.#columnCells.i64, BigInt64Array, columnCapacity);
    else if (this.#columnCells.layout === 'bool')
      this.#columnCells.bool = this.#growColumnArray(this.#columnCells.bool, Uint8Array, columnCapacity);
    else if (this.#columnCells.layout === 'vec')
      this.#columnCells.floats = this.#growColumnArray(
        this.#columnCells.floats,
        Float32Array,
        columnCapacity * this.#columnCells.dims,
      );
    else if (this.#columnCells.layout === 'text')
      this.#columnCells.offsets = this.#growColumnArray(this.#columnCells.offsets, Uint32Array, columnCapacity + 1);
  }
}

/** The narrowest layout that holds every integer of a range. */
function integerLayout(
  numericVector: Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>,
  from: number,
  to: number,
): 'i32' | 'f64' | 'i64' {
  if (numericVector.kind === 'i32') return 'i32';
  if (numericVector.kind === 'f64') {
    for (let i = from; i < to; i++) if (numericVector.values[i]! > I32_MAX || numericVector.values[i]! < I32_MIN) return 'f64';
    return 'i32';
  }
  for (let i = from; i < to; i++)
    if (numericVector.values[i]! > SAFE_INTEGER || numericVector.values[i]! < -SAFE_INTEGER) return 'i64';
  return 'f64';
}

function copyNumbers(
  numericVector: Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>,
  from: number,
  to: number,
  numberTarget: Int32Array | Float64Array,
  copiedAt: number,
): void {
  if (numericVector.kind === 'i64')
    for (let i = from; i < to; i++) numberTarget[copiedAt + i - from] = Number(numericVector.values[i]!);
  else numberTarget.set(numericVector.values.subarray(from, to), copiedAt);
}
