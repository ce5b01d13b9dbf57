/**
 * A `RowBatch` as bytes and back. Self-describing: every column says its name, type and layout.
 *
 *   batch   +-----------+--------------+----------------
 *           | rows u32  | columns u32  | column ...
 *           +-----------+--------------+----------------
 *   column  +-----------+---------+---------+---------+-----------+----------+------+--------
 *           | name text | type u8 | kind u8 | null u8 | nulls[n]  | pad to 8 | size | values
 *           +-----------+---------+---------+---------+-----------+----------+------+--------
 *
 * Values are raw little-endian arrays, aligned to 8 from the start of the body, so that decoding makes views where
 * memory is aligned too. `text` has offsets u32[n+1] and a heap; `dict` is written as `text`, because codes mean
 * nothing outside their process. Changing this needs a new body version and a fixture.
 */
import { isUtf8 } from 'node:buffer';
import { endianness } from 'node:os';
import { assert } from '../../errors.ts';
import { type ByteReader, type ByteWriter, malformedError } from '../bytes/byte-stream.ts';
import type { Dictionary, NamedColumn, RowBatch, Vector } from '../values/columns.ts';
import { type ColumnType, columnTypes } from '../values/value.ts';

assert(endianness() === 'LE', 'raw arrays in the log are little-endian');

/** Numbers of the layouts on disk; a `dict` is written as `text`. */
export const kinds = { null: 0, i32: 1, f64: 2, i64: 3, bool: 4, text: 5, vec: 6 } as const;
const cellEncoder = new TextEncoder();

export function encodeBatch(batch: RowBatch, batchWriter: ByteWriter): void {
  batchWriter.u32(batch.length);
  batchWriter.u32(batch.columns.length);
  for (const batchColumn of batch.columns) encodeColumn(batchColumn, batch.length, batchWriter);
}

/**
 * `batchRowsMax` bounds what a batch of NULL columns, which take no bytes a row, may claim. `isChecked`: the same bytes were
 * decoded before, and their cells are not looked at again.
 */
export function decodeBatch(batchReader: ByteReader, batchRowsMax: number, isChecked = false): RowBatch {
  const batchRows = batchReader.u32();
  if (batchRows > batchRowsMax) throw malformedError('more rows than the entry has');
  const batchColumns: NamedColumn[] = [];
  const columnCount = batchReader.count(7);
  const columnNames = new Set<string>();
  for (let i = 0; i < columnCount; i++) {
    const batchColumn = decodeColumn(batchReader, batchRows, isChecked);
    if (columnNames.has(batchColumn.name)) throw malformedError('a column twice');
    columnNames.add(batchColumn.name);
    batchColumns.push(batchColumn);
  }
  return { length: batchRows, columns: batchColumns };
}

/** A dict vector as the text vector with the same cells. */
export function textOfDict(
  dictCodes: Int32Array,
  dictionary: Dictionary,
  dictNulls: Uint8Array | null,
  dictRows: number,
): Vector {
  const encodedTexts: (Uint8Array | undefined)[] = [];
  let heapBytes = 0;
  for (let i = 0; i < dictRows; i++) {
    if (dictNulls?.[i] === 1) continue;
    const textCode = dictCodes[i]!;
    const encodedText = (encodedTexts[textCode] ??= cellEncoder.encode(dictionary.text(textCode)));
    heapBytes += encodedText.length;
  }
  const textOffsets = new Uint32Array(dictRows + 1);
  const textHeap = new Uint8Array(heapBytes);
  let heapOffset = 0;
  for (let i = 0; i < dictRows; i++) {
    if (dictNulls?.[i] !== 1) {
      const encodedText = encodedTexts[dictCodes[i]!]!;
      textHeap.set(encodedText, heapOffset);
      heapOffset += encodedText.length;
    }
    textOffsets[i + 1] = heapOffset;
  }
  return { kind: 'text', offsets: textOffsets, heap: textHeap, nulls: dictNulls };
}

function encodeColumn(namedColumn: NamedColumn, columnRows: number, columnWriter: ByteWriter): void {
  const columnVector = namedColumn.vector;
  const loggedVector =
    columnVector.kind === 'dict'
      ? textOfDict(columnVector.values, columnVector.dictionary, columnVector.nulls, columnRows)
      : columnVector;
  assert(loggedVector.kind !== 'dict', 'dict vectors travel as text');
  columnWriter.text(namedColumn.name);
  columnWriter.u8(columnTypes.indexOf(namedColumn.type));
  columnWriter.u8(kinds[loggedVector.kind]);
  if (loggedVector.kind === 'null') {
    columnWriter.u8(0);
    return;
  }
  const { nulls } = loggedVector;
  const hasNulls = nulls !== null && hasNullCell(nulls, columnRows);
  columnWriter.u8(hasNulls ? 1 : 0);
  if (hasNulls) columnWriter.part(nulls, 0, columnRows);
  columnWriter.align(8);
  // Few values are written one by one: a view over them would cost more.
  const isFewCells = columnRows <= FEW_CELLS;
  switch (loggedVector.kind) {
    case 'i32':
      if (!isFewCells) return columnWriter.raw(bytesOfCellArray(loggedVector.values, columnRows));
      for (let i = 0; i < columnRows; i++) columnWriter.i32(loggedVector.values[i]!);
      return;
    case 'f64':
      if (!isFewCells) return columnWriter.raw(bytesOfCellArray(loggedVector.values, columnRows));
      for (let i = 0; i < columnRows; i++) columnWriter.f64(loggedVector.values[i]!);
      return;
    case 'i64':
      if (!isFewCells) return columnWriter.raw(bytesOfCellArray(loggedVector.values, columnRows));
      for (let i = 0; i < columnRows; i++) columnWriter.i64(loggedVector.values[i]!);
      return;
    case 'bool':
      return columnWriter.part(loggedVector.values, 0, columnRows);
    case 'vec':
      columnWriter.u32(loggedVector.dims);
      return columnWriter.raw(bytesOfCellArray(loggedVector.values, columnRows * loggedVector.dims));
    case 'text': {
      const firstOffset = loggedVector.offsets[0]!;
      const endOffset = loggedVector.offsets[columnRows]!;
      columnWriter.u32(endOffset - firstOffset);
      columnWriter.u32(0);
      if (firstOffset === 0 && !isFewCells) columnWriter.raw(bytesOfCellArray(loggedVector.offsets, columnRows + 1));
      else for (let i = 0; i <= columnRows; i++) columnWriter.u32(loggedVector.offsets[i]! - firstOffset);
      return columnWriter.part(loggedVector.heap, firstOffset, endOffset);
    }
  }
}

const FEW_CELLS = 4;

function hasNullCell(nullMap: Uint8Array, nullRows: number): boolean {
  if (nullRows > FEW_CELLS) return nullMap.subarray(0, nullRows).includes(1);
  for (let i = 0; i < nullRows; i++) if (nullMap[i] === 1) return true;
  return false;
}

function decodeColumn(columnReader: ByteReader, columnRows: number, isChecked: boolean): NamedColumn {
  const columnName = columnReader.text();
  const columnType = columnTypes[columnReader.u8()];
  if (columnType === undefined) throw malformedError('an unknown column type');
  const columnLayout = columnReader.u8();
  const hasNullMap = columnReader.flag();
  if (columnLayout === kinds.null) {
    if (hasNullMap) throw malformedError('a NULL column with a null map');
    return { name: columnName, type: columnType, vector: { kind: 'null' } };
  }
  checkLayout(columnType, columnLayout);
  let nullMap: Uint8Array | null = null;
  if (hasNullMap) {
    nullMap = columnReader.raw(columnRows);
    if (!isChecked && checkBits(nullMap) === 0) throw malformedError('a null map without a NULL');
  }
  columnReader.align(8);
  return { name: columnName, type: columnType, vector: decodeCells(columnReader, columnLayout, columnRows, nullMap, isChecked) };
}

export function checkLayout(columnType: ColumnType, columnLayout: number): void {
  if (!layoutsOfType[columnType].includes(columnLayout)) throw malformedError('a layout that its column type cannot have');
}

/** Which layouts each column type may rest in. */
const layoutsOfType: Record<ColumnType, readonly number[]> = {
  string: [kinds.text],
  json: [kinds.text],
  integer: [kinds.i32, kinds.f64, kinds.i64],
  timestamp: [kinds.i64],
  number: [kinds.f64, kinds.i32],
  boolean: [kinds.bool],
  vector: [kinds.vec],
};

function decodeCells(
  cellReader: ByteReader,
  columnLayout: number,
  columnRows: number,
  nullMap: Uint8Array | null,
  isChecked: boolean,
): Vector {
  switch (columnLayout) {
    case kinds.i32:
      return { kind: 'i32', values: cellArrayOf(Int32Array, cellReader.raw(columnRows * 4)), nulls: nullMap };
    case kinds.f64:
      return { kind: 'f64', values: cellArrayOf(Float64Array, cellReader.raw(columnRows * 8)), nulls: nullMap };
    case kinds.i64:
      return { kind: 'i64', values: cellArrayOf(BigInt64Array, cellReader.raw(columnRows * 8)), nulls: nullMap };
    case kinds.bool: {
      const cellBits = cellReader.raw(columnRows);
      if (!isChecked) checkBits(cellBits);
      return { kind: 'bool', values: cellBits, nulls: nullMap };
    }
    case kinds.vec: {
      const vectorDims = cellReader.u32();
      if (vectorDims === 0) throw malformedError('vectors of no dimension');
      return {
        kind: 'vec',
        values: cellArrayOf(Float32Array, cellReader.raw(columnRows * vectorDims * 4)),
        dims: vectorDims,
        nulls: nullMap,
      };
    }
    case kinds.text: {
      const heapBytes = cellReader.u32();
      if (cellReader.u32() !== 0) throw malformedError('padding that is not zero');
      const textOffsets = cellArrayOf(Uint32Array, cellReader.raw((columnRows + 1) * 4));
      const textHeap = cellReader.raw(heapBytes);
      if (!isChecked) checkOffsets(textOffsets, textHeap);
      return { kind: 'text', offsets: textOffsets, heap: textHeap, nulls: nullMap };
    }
    default:
      throw malformedError('an unknown column layout');
  }
}

/** All of them or-ed together. */
export function checkBits(bitMap: Uint8Array): number {
  let seenBits = 0;
  for (let i = 0; i < bitMap.length; i++) seenBits |= bitMap[i]!;
  if (seenBits > 1) throw malformedError('a bit that is neither 0 nor 1');
  return seenBits;
}

/** Every cell is a range of the heap and whole UTF-8: no cell can read outside, or turn into another on the way out. */
export function checkOffsets(textOffsets: Uint32Array, textHeap: Uint8Array): void {
  let lastOffset = 0;
  if (textOffsets[0] !== 0 || textOffsets[textOffsets.length - 1] !== textHeap.length)
    throw malformedError('text offsets that miss the heap');
  for (let i = 1; i < textOffsets.length; i++) {
    const textOffset = textOffsets[i]!;
    if (textOffset < lastOffset || textOffset > textHeap.length) throw malformedError('text offsets that fall');
    if (textOffset < textHeap.length && (textHeap[textOffset]! & 0xc0) === 0x80)
      throw malformedError('a text cell that splits a character');
    lastOffset = textOffset;
  }
  if (!isUtf8(textHeap)) throw malformedError('text that is not UTF-8');
}

type CellArray = Int32Array | Uint32Array | Float32Array | Float64Array | BigInt64Array;

interface CellArrayMaker<T extends CellArray> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, offset: number, length: number): T;
}

function cellArrayOf<T extends CellArray>(CellArrayClass: CellArrayMaker<T>, cellBytes: Uint8Array): T {
  const cellWidth = CellArrayClass.BYTES_PER_ELEMENT;
  const alignedBytes = cellBytes.byteOffset % cellWidth === 0 ? cellBytes : new Uint8Array(cellBytes);
  return new CellArrayClass(alignedBytes.buffer, alignedBytes.byteOffset, alignedBytes.length / cellWidth);
}

function bytesOfCellArray(cellArray: CellArray, cellCount: number): Uint8Array {
  return new Uint8Array(cellArray.buffer, cellArray.byteOffset, cellCount * cellArray.BYTES_PER_ELEMENT);
}
