/**
 * Rows of an answer as blocks of ClickHouse's Native format, straight from columns:
 *
 *   columns · rows · for each column: name · type · cells
 *
 * Numbers and lengths are varints, cells little-endian. A nullable column has a byte a row before its cells, 1 for NULL; strings
 * have their length before them; arrays begin with 64-bit ends. A NULL cell is written as zeros: its slot in the answer's arrays
 * may hold the value of a row that the caller can't see.
 */
import { assert } from '../../errors.ts';
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import { slicesOf } from '../../planner/formats/batch-slices.ts';
import { copyWords, viewOf, wordSlack } from '../../planner/formats/short-copies.ts';
import { EncodedDictionary } from '../../planner/formats/encoded-dictionary.ts';
import { floats, integers, numbers } from '../../planner/formats/plain-cells.ts';
import type { Answer, OutputBatch, OutputColumn } from '../../planner/planner-contract.ts';
import { columnarTypeOf, type KnownTypes } from './column-types.ts';
import { textBytes, varintBytes, varintSize } from './varint.ts';

export const blockRowsMax = 65_536;
/** A column of so much takes a millisecond or two. */
const blockSliceLimits = { textBytes: 1 << 20, floats: 1 << 18 };

/** Rows of one block, in parts that follow each other. */
export type BlockRows = readonly OutputBatch[];

/** The rows of an answer in blocks of as many as may be; none is empty. */
export function* blocksOf(answerBatches: readonly OutputBatch[]): Generator<BlockRows, void> {
  let blockParts: OutputBatch[] = [];
  let blockRows = 0;
  for (const batchSlice of slicesOf(answerBatches, blockSliceLimits)) {
    for (let sliceRow = 0; sliceRow < batchSlice.count; ) {
      const partRows = Math.min(batchSlice.count - sliceRow, blockRowsMax - blockRows);
      const partSelection = batchSlice.selection?.subarray(sliceRow, sliceRow + partRows) ?? null;
      blockParts.push({
        columns: batchSlice.columns,
        selection: partSelection,
        first: batchSlice.first + sliceRow,
        count: partRows,
      });
      sliceRow += partRows;
      blockRows += partRows;
      if (blockRows < blockRowsMax) continue;
      yield blockParts;
      blockParts = [];
      blockRows = 0;
    }
  }
  if (blockRows > 0) yield blockParts;
}

/** `FORMAT Native`: all blocks, one after the other, in pieces. */
export function* writeNativePieces(
  nativeRows: Pick<Answer, 'columns' | 'batches'>,
  clientTypes: KnownTypes,
): Generator<Uint8Array, void> {
  const blockWriter = new BlockWriter(nativeRows.columns, clientTypes);
  for (const nativeBlock of blocksOf(nativeRows.batches)) yield* blockWriter.pieces(nativeBlock);
}

/** Writes blocks of one answer. */
export class BlockWriter {
  readonly #nativeColumns: readonly NativeColumn[];

  constructor(outputColumns: readonly OutputColumn[], clientTypes: KnownTypes) {
    this.#nativeColumns = outputColumns.map((outputColumn) => new NativeColumn(outputColumn, clientTypes));
  }

  /** A block in pieces, which may share memory with the answer. Without rows it tells names and types. */
  *pieces(blockParts: BlockRows): Generator<Uint8Array, void> {
    const blockRowCount = blockParts.reduce((rowSum, { count: partRows }) => rowSum + partRows, 0);
    yield Buffer.concat([varintBytes(this.#nativeColumns.length), varintBytes(blockRowCount)]);
    for (const [i, nativeColumn] of this.#nativeColumns.entries()) {
      yield nativeColumn.head;
      yield* nativeColumn.cells(blockParts, i);
    }
  }
}

/** Encodes one column for all blocks of an answer. */
class NativeColumn {
  /** Its name and its type. */
  readonly head: Buffer;
  readonly #outputColumn: OutputColumn;
  readonly #encodedDictionaries = new Map<Dictionary, EncodedDictionary>();

  constructor(outputColumn: OutputColumn, clientTypes: KnownTypes) {
    this.#outputColumn = outputColumn;
    this.head = Buffer.concat([textBytes(outputColumn.name), textBytes(columnarTypeOf(outputColumn, clientTypes))]);
  }

  *cells(blockParts: BlockRows, columnIndex: number): Generator<Uint8Array, void> {
    const { type: columnType } = this.#outputColumn;
    if (columnType === 'vector') return yield* arrayColumnPieces(blockParts, columnIndex);
    for (const blockPart of blockParts) yield nullMapOf(blockPart.columns[columnIndex]!, blockPart);
    for (const part of blockParts) yield this.#nativeCellsOf(part.columns[columnIndex]!, part);
  }

  #nativeCellsOf(columnVector: Vector, blockPart: OutputBatch): Uint8Array {
    switch (this.#outputColumn.type as Exclude<OutputColumn['type'], 'vector'>) {
      case 'string':
      case 'json':
        return this.#nativeTexts(columnVector, blockPart);
      case 'integer':
      case 'timestamp':
        return viewBytesOf(integers(columnVector, blockPart, hasNullCells(columnVector)));
      case 'number':
        return viewBytesOf(numbers(columnVector, blockPart, hasNullCells(columnVector)));
      case 'boolean':
        return booleanCells(columnVector, blockPart);
    }
  }

  #nativeTexts(textVector: Vector, blockPart: OutputBatch): Uint8Array {
    if (textVector.kind === 'null') return new Uint8Array(blockPart.count);
    if (textVector.kind === 'dict') return this.#dictionaryTexts(textVector, blockPart);
    assert(textVector.kind === 'text', 'texts are text or codes');
    const { offsets, heap: textHeap, nulls } = textVector;
    const { selection, first, count: partRows } = blockPart;
    const textLengthAt = (textRow: number): number =>
      nulls !== null && nulls[textRow] === 1 ? 0 : offsets[textRow + 1]! - offsets[textRow]!;
    let nativeTextBytes = 0;
    for (let i = 0; i < partRows; i++) {
      const textLength = textLengthAt(selection === null ? first + i : selection[i]!);
      nativeTextBytes += varintSize(textLength) + textLength;
    }
    const nativeTexts = new Uint8Array(nativeTextBytes + wordSlack);
    const nativeView = viewOf(nativeTexts);
    const heapView = viewOf(textHeap);
    const heapSafeEnd = textHeap.length - wordSlack;
    for (let i = 0, nativeOffset = 0; i < partRows; i++) {
      const textRow = selection === null ? first + i : selection[i]!;
      const textStart = offsets[textRow]!;
      const textLength = textLengthAt(textRow);
      nativeOffset = putCellVarint(nativeTexts, nativeOffset, textLength);
      if (textStart + textLength <= heapSafeEnd) copyWords(nativeView, nativeOffset, heapView, textStart, textLength);
      else nativeTexts.set(textHeap.subarray(textStart, textStart + textLength), nativeOffset);
      nativeOffset += textLength;
    }
    return nativeTexts.subarray(0, nativeTextBytes);
  }

  #dictionaryTexts(dictionaryVector: Extract<Vector, { kind: 'dict' }>, blockPart: OutputBatch): Uint8Array {
    const { selection, first, count: partRows } = blockPart;
    const { values, nulls, dictionary } = dictionaryVector;
    let encodedEntries = this.#encodedDictionaries.get(dictionary);
    if (encodedEntries === undefined) {
      encodedEntries = new EncodedDictionary(dictionary, textBytes);
      this.#encodedDictionaries.set(dictionary, encodedEntries);
    }
    let nativeTextBytes = 0;
    for (let i = 0; i < partRows; i++) {
      const codeRow = selection === null ? first + i : selection[i]!;
      if (nulls !== null && nulls[codeRow] === 1) {
        nativeTextBytes++;
        continue;
      }
      const dictionaryCode = values[codeRow]!;
      if (dictionaryCode >= encodedEntries.ends.length || encodedEntries.ends[dictionaryCode] === 0)
        encodedEntries.add(dictionaryCode);
      nativeTextBytes += encodedEntries.ends[dictionaryCode]! - encodedEntries.starts[dictionaryCode]!;
    }
    const nativeTexts = new Uint8Array(nativeTextBytes + wordSlack);
    const nativeView = viewOf(nativeTexts);
    const { view: entriesView, starts: entryStarts, ends: entryEnds } = encodedEntries;
    for (let i = 0, nativeOffset = 0; i < partRows; i++) {
      const codeRow = selection === null ? first + i : selection[i]!;
      if (nulls !== null && nulls[codeRow] === 1) {
        nativeTexts[nativeOffset++] = 0;
        continue;
      }
      const dictionaryCode = values[codeRow]!;
      const entryLength = entryEnds[dictionaryCode]! - entryStarts[dictionaryCode]!;
      copyWords(nativeView, nativeOffset, entriesView, entryStarts[dictionaryCode]!, entryLength);
      nativeOffset += entryLength;
    }
    return nativeTexts.subarray(0, nativeTextBytes);
  }
}

const viewBytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

const hasNullCells = (columnVector: Vector): boolean => columnVector.kind === 'null' || columnVector.nulls !== null;

function putCellVarint(cellBytes: Uint8Array, varintStart: number, varintValue: number): number {
  let varintOffset = varintStart;
  let varintRest = varintValue;
  for (; varintRest > 0x7f; varintRest >>>= 7) cellBytes[varintOffset++] = (varintRest & 0x7f) | 0x80;
  cellBytes[varintOffset++] = varintRest;
  return varintOffset;
}

function nullMapOf(columnVector: Vector, { selection, first, count: partRows }: OutputBatch): Uint8Array {
  if (columnVector.kind === 'null') return new Uint8Array(partRows).fill(1);
  const { nulls: vectorNulls } = columnVector;
  if (vectorNulls === null) return new Uint8Array(partRows);
  if (selection === null) return vectorNulls.subarray(first, first + partRows);
  const nativeNullMap = new Uint8Array(partRows);
  for (let i = 0; i < partRows; i++) nativeNullMap[i] = vectorNulls[selection[i]!]!;
  return nativeNullMap;
}

function booleanCells(booleanVector: Vector, { selection, first, count: partRows }: OutputBatch): Uint8Array {
  const booleanBytes = new Uint8Array(partRows);
  if (booleanVector.kind === 'null') return booleanBytes;
  assert(booleanVector.kind === 'bool', 'booleans are booleans');
  const { values, nulls } = booleanVector;
  for (let i = 0; i < partRows; i++) {
    const booleanRow = selection === null ? first + i : selection[i]!;
    if (nulls === null || nulls[booleanRow] === 0) booleanBytes[i] = values[booleanRow]!;
  }
  return booleanBytes;
}

/** Ends of the arrays of all parts, then their numbers: a NULL vector has none. */
function* arrayColumnPieces(blockParts: BlockRows, columnIndex: number): Generator<Uint8Array, void> {
  let arrayEnd = 0;
  for (const blockPart of blockParts) {
    const arrayVector = blockPart.columns[columnIndex]!;
    // A block holds fewer numbers than 32 bits count: the upper half of an end is zero.
    const arrayEnds = new Uint32Array(blockPart.count * 2);
    for (let i = 0; i < blockPart.count; i++)
      arrayEnds[i * 2] = arrayEnd += isVectorThere(arrayVector, blockRowAt(blockPart, i)) ? arrayVector.dims : 0;
    yield viewBytesOf(arrayEnds);
  }
  for (const part of blockParts) {
    const arrayVector = part.columns[columnIndex]!;
    if (arrayVector.kind !== 'vec') continue;
    const arrayRows = Int32Array.from({ length: part.count }, (_, i) => blockRowAt(part, i)).filter((arrayRow) =>
      isVectorThere(arrayVector, arrayRow),
    );
    yield viewBytesOf(floats(arrayVector, { ...part, selection: arrayRows, count: arrayRows.length }, arrayVector.dims));
  }
}

const blockRowAt = ({ selection, first }: OutputBatch, i: number): number => (selection === null ? first + i : selection[i]!);

function isVectorThere(arrayVector: Vector, arrayRow: number): arrayVector is Extract<Vector, { kind: 'vec' }> {
  return arrayVector.kind === 'vec' && (arrayVector.nulls === null || arrayVector.nulls[arrayRow] === 0);
}
