/**
 * Rows of an answer as an Arrow IPC stream, a record batch for each batch of the answer (several where cells are long).
 * Invariants:
 *
 * - The schema follows from the columns of the question, never from how the store keeps them, which a compaction changes.
 *   So strings are plain utf8, also where the store has codes; its dictionaries hold texts of others' rows besides.
 * - An instant is an int64 of nanoseconds with `annals.type: timestamp` on its field. As timestamp(ns) the open ends of
 *   `valid_to` and `system_to`, the largest i64, would be infinity or an overflow to readers.
 * - A NULL cell is written as zeros: its slot in the answer's arrays may hold the value of a row that the caller can't see.
 */
import {
  AsyncByteQueue,
  Bool,
  type Data,
  type DataType,
  Field,
  FixedSizeList,
  Float32,
  Float64,
  Int64,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  Utf8,
} from 'apache-arrow';
import { assert, ServiceError } from '../../errors.ts';
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import type { Answer, OutputBatch, OutputColumn } from '../planner-contract.ts';
import { type SliceLimits, slicesOf } from './batch-slices.ts';
import { copyWords, wordSlack } from './short-copies.ts';
import { EncodedDictionary } from './encoded-dictionary.ts';
import { floats, integers, numbers } from './plain-cells.ts';

type ArrowAnswer = Pick<Answer, 'columns' | 'batches'>;
type VectorKind<Kind extends Vector['kind']> = Extract<Vector, { kind: Kind }>;

/** Smaller pieces leave in company: a write to a socket costs more than copying them. */
const pieceAloneBytes = 32 * 1024;
/** A column of so much takes a few milliseconds. */
const arrowSliceLimits: SliceLimits = { textBytes: 8 << 20, floats: 4 << 20 };

export interface ArrowOptions {
  /** A `file` has its marks around the stream; `stream` where this is absent. */
  readonly shape?: 'stream' | 'file';
  /** Bounds of a record batch. */
  readonly limits?: SliceLimits;
  /** By column: the declared length of its vectors, for answers without any; 1 where absent. */
  readonly dims?: readonly number[];
}

/**
 * The stream in pieces, each made when it is asked for; empty ones stand where only work was done. Pieces may share
 * memory with the answer. `schemaFacts` go into the schema's metadata. Throws REL_TYPE_MISMATCH for vectors of several lengths.
 */
export function writeArrowPieces(
  arrowAnswer: ArrowAnswer,
  schemaFacts: ReadonlyMap<string, string>,
  { shape = 'stream', limits = arrowSliceLimits, dims = [] }: ArrowOptions = {},
): Generator<Uint8Array, void> {
  const arrowColumns = arrowAnswer.columns.map(
    (column, i) => new WrittenColumn(column, column.type === 'vector' ? answerVectorDims(arrowAnswer, i) || dims[i] || 1 : 0),
  );
  const arrowSchema = new Schema(
    arrowColumns.map(({ field }) => field),
    new Map(schemaFacts),
  );
  return arrowPieces(arrowAnswer, arrowColumns, arrowSchema, shape, limits);
}

function* arrowPieces(
  arrowAnswer: ArrowAnswer,
  arrowColumns: readonly WrittenColumn[],
  arrowSchema: Schema,
  shape: 'stream' | 'file',
  limits: SliceLimits,
): Generator<Uint8Array, void> {
  const rowStruct = new Struct(arrowSchema.fields);
  const writerOptions = { autoDestroy: false };
  const arrowWriter = shape === 'file' ? new RecordBatchFileWriter(writerOptions) : new RecordBatchStreamWriter(writerOptions);
  const pieceQueue = new ArrowPieceQueue();
  arrowWriter.reset(pieceQueue, arrowSchema);
  for (const answerSlice of slicesOf(arrowAnswer.batches, limits)) {
    const columnData: Data[] = [];
    for (let i = 0; i < arrowColumns.length; i++) {
      columnData.push(arrowColumns[i]!.data(answerSlice.columns[i]!, answerSlice));
      yield yieldedNothing;
    }
    arrowWriter.write(
      new RecordBatch(arrowSchema, makeData({ type: rowStruct, length: answerSlice.count, nullCount: 0, children: columnData })),
    );
    yield* pieceQueue.take();
  }
  arrowWriter.finish();
  yield* pieceQueue.take();
}

/** Receives the pieces of the library's writer. */
class ArrowPieceQueue extends AsyncByteQueue {
  #queuedPieces: Uint8Array[] = [];

  override write(arrowPiece: Uint8Array): void {
    this.#queuedPieces.push(arrowPiece);
  }

  /** Takes the bytes written since the last call, with small pieces joined. */
  *take(): Generator<Uint8Array, void> {
    const queuedPieces = this.#queuedPieces;
    this.#queuedPieces = [];
    let smallPieces: Uint8Array[] = [];
    for (const arrowPiece of queuedPieces) {
      if (arrowPiece.length < pieceAloneBytes) {
        smallPieces.push(arrowPiece);
        continue;
      }
      if (smallPieces.length > 0) yield Buffer.concat(smallPieces);
      smallPieces = [];
      yield arrowPiece;
    }
    if (smallPieces.length > 0) yield Buffer.concat(smallPieces);
  }
}

/** Writes one column for all batches of an answer. */
class WrittenColumn {
  readonly field: Field;
  readonly #outputColumn: OutputColumn;
  readonly #arrowType: DataType;
  readonly #encodedDictionaries = new Map<Dictionary, EncodedDictionary>();

  constructor(outputColumn: OutputColumn, dims: number) {
    this.#outputColumn = outputColumn;
    this.#arrowType = arrowTypeOf(outputColumn, dims);
    const fieldMetadata = new Map<string, string>([['annals.type', outputColumn.type]]);
    // The canonical extension for JSON in text: readers that know it give JSON, others text.
    if (outputColumn.type === 'json') fieldMetadata.set('ARROW:extension:name', 'arrow.json').set('ARROW:extension:metadata', '');
    this.field = new Field(outputColumn.name, this.#arrowType, true, fieldMetadata);
  }

  data(vector: Vector, answerSlice: OutputBatch): Data {
    const arrowType = this.#arrowType;
    const { count } = answerSlice;
    const { nullBitmap, nullCount } = arrowValidity(vector, answerSlice);
    const dataShape = { length: count, nullCount, nullBitmap };
    const { type: columnType } = this.#outputColumn;
    switch (columnType) {
      case 'string':
      case 'json':
        return makeData({ type: arrowType as Utf8, ...dataShape, ...this.#textData(vector, answerSlice, nullCount > 0) });
      case 'integer':
      case 'timestamp':
        return makeData({ type: arrowType as Int64, ...dataShape, data: integers(vector, answerSlice, nullCount > 0) });
      case 'number':
        return makeData({ type: arrowType as Float64, ...dataShape, data: numbers(vector, answerSlice, nullCount > 0) });
      case 'boolean':
        return makeData({ type: arrowType as Bool, ...dataShape, data: arrowBits(vector, answerSlice) });
      case 'vector': {
        const { listSize } = arrowType as FixedSizeList<Float32>;
        const floatData = makeData({
          type: new Float32(),
          length: count * listSize,
          nullCount: 0,
          data: floats(vector, answerSlice, listSize),
        });
        return makeData({ type: arrowType as FixedSizeList<Float32>, ...dataShape, child: floatData });
      }
    }
  }

  #textData(vector: Vector, answerSlice: OutputBatch, hasNulls: boolean): { valueOffsets: Int32Array; data: Uint8Array } {
    const { selection, first, count } = answerSlice;
    if (vector.kind === 'null') return { valueOffsets: new Int32Array(count + 1), data: noTextBytes };
    if (vector.kind === 'dict') return this.#dictionaryTexts(vector, answerSlice, hasNulls);
    assert(vector.kind === 'text', 'texts are text or codes');
    const { offsets, heap, nulls } = vector;
    if (selection === null && !hasNulls) {
      // The library takes the offsets from the first one on, and only the bytes between.
      return { valueOffsets: new Int32Array(offsets.buffer, offsets.byteOffset + first * 4, count + 1), data: heap };
    }
    const valueOffsets = new Int32Array(count + 1);
    let textSize = 0;
    for (let i = 0; i < count; i++) {
      const textRow = selection === null ? first + i : selection[i]!;
      if (nulls === null || nulls[textRow] === 0) textSize += offsets[textRow + 1]! - offsets[textRow]!;
      valueOffsets[i + 1] = textSize;
    }
    const textData = new Uint8Array(textSize);
    for (let i = 0; i < count; i++) {
      const textStart = offsets[selection === null ? first + i : selection[i]!]!;
      copyTextCell(textData, valueOffsets[i]!, heap, textStart, valueOffsets[i + 1]! - valueOffsets[i]!);
    }
    return { valueOffsets, data: textData };
  }

  #dictionaryTexts(
    vector: VectorKind<'dict'>,
    answerSlice: OutputBatch,
    hasNulls: boolean,
  ): { valueOffsets: Int32Array; data: Uint8Array } {
    const { selection, first, count } = answerSlice;
    const { values, nulls, dictionary } = vector;
    let encodedEntries = this.#encodedDictionaries.get(dictionary);
    if (encodedEntries === undefined) {
      encodedEntries = new EncodedDictionary(dictionary, (text) => arrowTextEncoder.encode(text));
      this.#encodedDictionaries.set(dictionary, encodedEntries);
    }
    const valueOffsets = new Int32Array(count + 1);
    let entriesSize = 0;
    for (let i = 0; i < count; i++) {
      const codeRow = selection === null ? first + i : selection[i]!;
      if (!hasNulls || nulls![codeRow] === 0) {
        const dictionaryCode = values[codeRow]!;
        if (dictionaryCode >= encodedEntries.ends.length || encodedEntries.ends[dictionaryCode] === 0)
          encodedEntries.add(dictionaryCode);
        entriesSize += encodedEntries.ends[dictionaryCode]! - encodedEntries.starts[dictionaryCode]!;
      }
      valueOffsets[i + 1] = entriesSize;
    }
    const textTarget = new DataView(new ArrayBuffer(entriesSize + wordSlack));
    const { view, starts } = encodedEntries;
    for (let i = 0; i < count; i++) {
      const entryStart = starts[values[selection === null ? first + i : selection[i]!]!]!;
      copyWords(textTarget, valueOffsets[i]!, view, entryStart, valueOffsets[i + 1]! - valueOffsets[i]!);
    }
    return { valueOffsets, data: new Uint8Array(textTarget.buffer, 0, entriesSize) };
  }
}

/** Length of the column's vectors, 0 where it has none. */
function answerVectorDims({ columns, batches }: ArrowAnswer, columnIndex: number): number {
  let arrowDims = 0;
  for (const batch of batches) {
    const vectorColumn = batch.columns[columnIndex]!;
    if (vectorColumn.kind !== 'vec' || vectorColumn.dims === arrowDims) continue;
    if (arrowDims !== 0) {
      const { name } = columns[columnIndex]!;
      throw new ServiceError(
        'REL_TYPE_MISMATCH',
        `${JSON.stringify(name)} holds vectors of ${arrowDims} and of ${vectorColumn.dims} dimensions`,
      );
    }
    ({ dims: arrowDims } = vectorColumn);
  }
  return arrowDims;
}

function arrowTypeOf({ type }: OutputColumn, dims: number): DataType {
  switch (type) {
    case 'string':
    case 'json':
      return new Utf8();
    case 'integer':
    case 'timestamp':
      return new Int64();
    case 'number':
      return new Float64();
    case 'boolean':
      return new Bool();
    case 'vector':
      return new FixedSizeList(dims, new Field('item', new Float32(), false));
  }
}

/** The validity bitmap, one bit a row; none where every row has a value. */
function arrowValidity(vector: Vector, batch: OutputBatch): { nullBitmap: Uint8Array | null; nullCount: number } {
  const { selection, first, count } = batch;
  if (vector.kind === 'null') return { nullBitmap: new Uint8Array((count + 7) >> 3), nullCount: count };
  const { nulls } = vector;
  if (nulls === null) return { nullBitmap: null, nullCount: 0 };
  const nullBitmap = new Uint8Array((count + 7) >> 3);
  let nullCount = 0;
  for (let i = 0; i < count; i++) {
    const isNullBit = nulls[selection === null ? first + i : selection[i]!]!;
    nullCount += isNullBit;
    nullBitmap[i >> 3]! |= (1 - isNullBit) << (i & 7);
  }
  return nullCount === 0 ? { nullBitmap: null, nullCount } : { nullBitmap, nullCount };
}

function arrowBits(vector: Vector, batch: OutputBatch): Uint8Array {
  const { selection, first, count } = batch;
  const booleanBits = new Uint8Array((count + 7) >> 3);
  if (vector.kind === 'null') return booleanBits;
  assert(vector.kind === 'bool', 'booleans are booleans');
  const { values, nulls } = vector;
  for (let i = 0; i < count; i++) {
    const booleanRow = selection === null ? first + i : selection[i]!;
    if (values[booleanRow] === 1 && (nulls === null || nulls[booleanRow] === 0)) booleanBits[i >> 3]! |= 1 << (i & 7);
  }
  return booleanBits;
}

function copyTextCell(
  textTarget: Uint8Array,
  targetStart: number,
  textSource: Uint8Array,
  sourceStart: number,
  textSize: number,
): void {
  if (textSize > 32) textTarget.set(textSource.subarray(sourceStart, sourceStart + textSize), targetStart);
  else for (let k = 0; k < textSize; k++) textTarget[targetStart + k] = textSource[sourceStart + k]!;
}

const yieldedNothing = new Uint8Array(0);
const noTextBytes = new Uint8Array(0);
const arrowTextEncoder = new TextEncoder();
