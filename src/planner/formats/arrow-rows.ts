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

type Rows = Pick<Answer, 'columns' | 'batches'>;
type VectorKind<Kind extends Vector['kind']> = Extract<Vector, { kind: Kind }>;

/** Smaller pieces leave in company: a write to a socket costs more than copying them. */
const aloneBytes = 32 * 1024;
/** A column of so much takes a few milliseconds. */
const batchLimits: SliceLimits = { textBytes: 8 << 20, floats: 4 << 20 };

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
 * memory with the answer. `facts` go into the schema's metadata. Throws REL_TYPE_MISMATCH for vectors of several lengths.
 */
export function writeArrowPieces(
  rows: Rows,
  facts: ReadonlyMap<string, string>,
  { shape = 'stream', limits = batchLimits, dims = [] }: ArrowOptions = {},
): Generator<Uint8Array, void> {
  const columns = rows.columns.map(
    (column, i) => new ArrowColumn(column, column.type === 'vector' ? vectorDims(rows, i) || dims[i] || 1 : 0),
  );
  const schema = new Schema(
    columns.map(({ field }) => field),
    new Map(facts),
  );
  return pieces(rows, columns, schema, shape, limits);
}

function* pieces(
  rows: Rows,
  columns: readonly ArrowColumn[],
  schema: Schema,
  shape: 'stream' | 'file',
  limits: SliceLimits,
): Generator<Uint8Array, void> {
  const struct = new Struct(schema.fields);
  const options = { autoDestroy: false };
  const writer = shape === 'file' ? new RecordBatchFileWriter(options) : new RecordBatchStreamWriter(options);
  const queue = new PieceQueue();
  writer.reset(queue, schema);
  for (const batch of slicesOf(rows.batches, limits)) {
    const children: Data[] = [];
    for (let i = 0; i < columns.length; i++) {
      children.push(columns[i]!.data(batch.columns[i]!, batch));
      yield nothing;
    }
    writer.write(new RecordBatch(schema, makeData({ type: struct, length: batch.count, nullCount: 0, children })));
    yield* queue.take();
  }
  writer.finish();
  yield* queue.take();
}

/** Receives the pieces of the library's writer. */
class PieceQueue extends AsyncByteQueue {
  #pieces: Uint8Array[] = [];

  override write(piece: Uint8Array): void {
    this.#pieces.push(piece);
  }

  /** Takes the bytes written since the last call, with small pieces joined. */
  *take(): Generator<Uint8Array, void> {
    const pieces = this.#pieces;
    this.#pieces = [];
    let small: Uint8Array[] = [];
    for (const piece of pieces) {
      if (piece.length < aloneBytes) {
        small.push(piece);
        continue;
      }
      if (small.length > 0) yield Buffer.concat(small);
      small = [];
      yield piece;
    }
    if (small.length > 0) yield Buffer.concat(small);
  }
}

/** Writes one column for all batches of an answer. */
class ArrowColumn {
  readonly field: Field;
  readonly #column: OutputColumn;
  readonly #type: DataType;
  readonly #dictionaries = new Map<Dictionary, EncodedDictionary>();

  constructor(column: OutputColumn, dims: number) {
    this.#column = column;
    this.#type = typeOf(column, dims);
    const metadata = new Map<string, string>([['annals.type', column.type]]);
    // The canonical extension for JSON in text: readers that know it give JSON, others text.
    if (column.type === 'json') metadata.set('ARROW:extension:name', 'arrow.json').set('ARROW:extension:metadata', '');
    this.field = new Field(column.name, this.#type, true, metadata);
  }

  data(vector: Vector, batch: OutputBatch): Data {
    const type = this.#type;
    const { count } = batch;
    const { nullBitmap, nullCount } = validity(vector, batch);
    const shape = { length: count, nullCount, nullBitmap };
    const { type: columnType } = this.#column;
    switch (columnType) {
      case 'string':
      case 'json':
        return makeData({ type: type as Utf8, ...shape, ...this.#texts(vector, batch, nullCount > 0) });
      case 'integer':
      case 'timestamp':
        return makeData({ type: type as Int64, ...shape, data: integers(vector, batch, nullCount > 0) });
      case 'number':
        return makeData({ type: type as Float64, ...shape, data: numbers(vector, batch, nullCount > 0) });
      case 'boolean':
        return makeData({ type: type as Bool, ...shape, data: bits(vector, batch) });
      case 'vector': {
        const { listSize } = type as FixedSizeList<Float32>;
        const child = makeData({
          type: new Float32(),
          length: count * listSize,
          nullCount: 0,
          data: floats(vector, batch, listSize),
        });
        return makeData({ type: type as FixedSizeList<Float32>, ...shape, child });
      }
    }
  }

  #texts(vector: Vector, batch: OutputBatch, holes: boolean): { valueOffsets: Int32Array; data: Uint8Array } {
    const { selection, first, count } = batch;
    if (vector.kind === 'null') return { valueOffsets: new Int32Array(count + 1), data: noBytes };
    if (vector.kind === 'dict') return this.#entries(vector, batch, holes);
    assert(vector.kind === 'text', 'texts are text or codes');
    const { offsets, heap, nulls } = vector;
    if (selection === null && !holes) {
      // The library takes the offsets from the first one on, and only the bytes between.
      return { valueOffsets: new Int32Array(offsets.buffer, offsets.byteOffset + first * 4, count + 1), data: heap };
    }
    const valueOffsets = new Int32Array(count + 1);
    let size = 0;
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      if (nulls === null || nulls[row] === 0) size += offsets[row + 1]! - offsets[row]!;
      valueOffsets[i + 1] = size;
    }
    const data = new Uint8Array(size);
    for (let i = 0; i < count; i++) {
      const from = offsets[selection === null ? first + i : selection[i]!]!;
      copyCell(data, valueOffsets[i]!, heap, from, valueOffsets[i + 1]! - valueOffsets[i]!);
    }
    return { valueOffsets, data };
  }

  #entries(vector: VectorKind<'dict'>, batch: OutputBatch, holes: boolean): { valueOffsets: Int32Array; data: Uint8Array } {
    const { selection, first, count } = batch;
    const { values, nulls, dictionary } = vector;
    let entries = this.#dictionaries.get(dictionary);
    if (entries === undefined) {
      entries = new EncodedDictionary(dictionary, (text) => encoder.encode(text));
      this.#dictionaries.set(dictionary, entries);
    }
    const valueOffsets = new Int32Array(count + 1);
    let size = 0;
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      if (!holes || nulls![row] === 0) {
        const code = values[row]!;
        if (code >= entries.ends.length || entries.ends[code] === 0) entries.add(code);
        size += entries.ends[code]! - entries.starts[code]!;
      }
      valueOffsets[i + 1] = size;
    }
    const target = new DataView(new ArrayBuffer(size + wordSlack));
    const { view, starts } = entries;
    for (let i = 0; i < count; i++) {
      const from = starts[values[selection === null ? first + i : selection[i]!]!]!;
      copyWords(target, valueOffsets[i]!, view, from, valueOffsets[i + 1]! - valueOffsets[i]!);
    }
    return { valueOffsets, data: new Uint8Array(target.buffer, 0, size) };
  }
}

/** Length of the column's vectors, 0 where it has none. */
function vectorDims({ columns, batches }: Rows, index: number): number {
  let dims = 0;
  for (const batch of batches) {
    const vector = batch.columns[index]!;
    if (vector.kind !== 'vec' || vector.dims === dims) continue;
    if (dims !== 0) {
      const { name } = columns[index]!;
      throw new ServiceError(
        'REL_TYPE_MISMATCH',
        `${JSON.stringify(name)} holds vectors of ${dims} and of ${vector.dims} dimensions`,
      );
    }
    ({ dims } = vector);
  }
  return dims;
}

function typeOf({ type }: OutputColumn, dims: number): DataType {
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
function validity(vector: Vector, batch: OutputBatch): { nullBitmap: Uint8Array | null; nullCount: number } {
  const { selection, first, count } = batch;
  if (vector.kind === 'null') return { nullBitmap: new Uint8Array((count + 7) >> 3), nullCount: count };
  const { nulls } = vector;
  if (nulls === null) return { nullBitmap: null, nullCount: 0 };
  const nullBitmap = new Uint8Array((count + 7) >> 3);
  let nullCount = 0;
  for (let i = 0; i < count; i++) {
    const hole = nulls[selection === null ? first + i : selection[i]!]!;
    nullCount += hole;
    nullBitmap[i >> 3]! |= (1 - hole) << (i & 7);
  }
  return nullCount === 0 ? { nullBitmap: null, nullCount } : { nullBitmap, nullCount };
}

function bits(vector: Vector, batch: OutputBatch): Uint8Array {
  const { selection, first, count } = batch;
  const cells = new Uint8Array((count + 7) >> 3);
  if (vector.kind === 'null') return cells;
  assert(vector.kind === 'bool', 'booleans are booleans');
  const { values, nulls } = vector;
  for (let i = 0; i < count; i++) {
    const row = selection === null ? first + i : selection[i]!;
    if (values[row] === 1 && (nulls === null || nulls[row] === 0)) cells[i >> 3]! |= 1 << (i & 7);
  }
  return cells;
}

function copyCell(target: Uint8Array, at: number, source: Uint8Array, from: number, size: number): void {
  if (size > 32) target.set(source.subarray(from, from + size), at);
  else for (let k = 0; k < size; k++) target[at + k] = source[from + k]!;
}

const nothing = new Uint8Array(0);
const noBytes = new Uint8Array(0);
const encoder = new TextEncoder();
