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
const sliceLimits = { textBytes: 1 << 20, floats: 1 << 18 };

/** Rows of one block, in parts that follow each other. */
export type BlockRows = readonly OutputBatch[];

/** The rows of an answer in blocks of as many as may be; none is empty. */
export function* blocksOf(batches: readonly OutputBatch[]): Generator<BlockRows, void> {
  let parts: OutputBatch[] = [];
  let rows = 0;
  for (const slice of slicesOf(batches, sliceLimits)) {
    for (let from = 0; from < slice.count; ) {
      const count = Math.min(slice.count - from, blockRowsMax - rows);
      const selection = slice.selection?.subarray(from, from + count) ?? null;
      parts.push({ columns: slice.columns, selection, first: slice.first + from, count });
      from += count;
      rows += count;
      if (rows < blockRowsMax) continue;
      yield parts;
      parts = [];
      rows = 0;
    }
  }
  if (rows > 0) yield parts;
}

/** `FORMAT Native`: all blocks, one after the other, in pieces. */
export function* writeNativePieces(rows: Pick<Answer, 'columns' | 'batches'>, client: KnownTypes): Generator<Uint8Array, void> {
  const writer = new BlockWriter(rows.columns, client);
  for (const block of blocksOf(rows.batches)) yield* writer.pieces(block);
}

/** Writes blocks of one answer. */
export class BlockWriter {
  readonly #columns: readonly NativeColumn[];

  constructor(columns: readonly OutputColumn[], client: KnownTypes) {
    this.#columns = columns.map((column) => new NativeColumn(column, client));
  }

  /** A block in pieces, which may share memory with the answer. Without rows it tells names and types. */
  *pieces(parts: BlockRows): Generator<Uint8Array, void> {
    const rows = parts.reduce((sum, { count }) => sum + count, 0);
    yield Buffer.concat([varintBytes(this.#columns.length), varintBytes(rows)]);
    for (const [i, column] of this.#columns.entries()) {
      yield column.head;
      yield* column.cells(parts, i);
    }
  }
}

/** Encodes one column for all blocks of an answer. */
class NativeColumn {
  /** Its name and its type. */
  readonly head: Buffer;
  readonly #column: OutputColumn;
  readonly #dictionaries = new Map<Dictionary, EncodedDictionary>();

  constructor(column: OutputColumn, client: KnownTypes) {
    this.#column = column;
    this.head = Buffer.concat([textBytes(column.name), textBytes(columnarTypeOf(column, client))]);
  }

  *cells(parts: BlockRows, index: number): Generator<Uint8Array, void> {
    const { type } = this.#column;
    if (type === 'vector') return yield* vectorPieces(parts, index);
    for (const part of parts) yield nullMap(part.columns[index]!, part);
    for (const part of parts) yield this.#cellsOf(part.columns[index]!, part);
  }

  #cellsOf(vector: Vector, part: OutputBatch): Uint8Array {
    switch (this.#column.type as Exclude<OutputColumn['type'], 'vector'>) {
      case 'string':
      case 'json':
        return this.#texts(vector, part);
      case 'integer':
      case 'timestamp':
        return bytesOf(integers(vector, part, hasNulls(vector)));
      case 'number':
        return bytesOf(numbers(vector, part, hasNulls(vector)));
      case 'boolean':
        return flags(vector, part);
    }
  }

  #texts(vector: Vector, part: OutputBatch): Uint8Array {
    if (vector.kind === 'null') return new Uint8Array(part.count);
    if (vector.kind === 'dict') return this.#entries(vector, part);
    assert(vector.kind === 'text', 'texts are text or codes');
    const { offsets, heap, nulls } = vector;
    const { selection, first, count } = part;
    const lengthAt = (row: number): number => (nulls !== null && nulls[row] === 1 ? 0 : offsets[row + 1]! - offsets[row]!);
    let size = 0;
    for (let i = 0; i < count; i++) {
      const length = lengthAt(selection === null ? first + i : selection[i]!);
      size += varintSize(length) + length;
    }
    const bytes = new Uint8Array(size + wordSlack);
    const target = viewOf(bytes);
    const source = viewOf(heap);
    const safeEnd = heap.length - wordSlack;
    for (let i = 0, at = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      const from = offsets[row]!;
      const length = lengthAt(row);
      at = putVarint(bytes, at, length);
      if (from + length <= safeEnd) copyWords(target, at, source, from, length);
      else bytes.set(heap.subarray(from, from + length), at);
      at += length;
    }
    return bytes.subarray(0, size);
  }

  #entries(vector: Extract<Vector, { kind: 'dict' }>, part: OutputBatch): Uint8Array {
    const { selection, first, count } = part;
    const { values, nulls, dictionary } = vector;
    let entries = this.#dictionaries.get(dictionary);
    if (entries === undefined) {
      entries = new EncodedDictionary(dictionary, textBytes);
      this.#dictionaries.set(dictionary, entries);
    }
    let size = 0;
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      if (nulls !== null && nulls[row] === 1) {
        size++;
        continue;
      }
      const code = values[row]!;
      if (code >= entries.ends.length || entries.ends[code] === 0) entries.add(code);
      size += entries.ends[code]! - entries.starts[code]!;
    }
    const bytes = new Uint8Array(size + wordSlack);
    const target = viewOf(bytes);
    const { view, starts, ends } = entries;
    for (let i = 0, at = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      if (nulls !== null && nulls[row] === 1) {
        bytes[at++] = 0;
        continue;
      }
      const code = values[row]!;
      const length = ends[code]! - starts[code]!;
      copyWords(target, at, view, starts[code]!, length);
      at += length;
    }
    return bytes.subarray(0, size);
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

const hasNulls = (vector: Vector): boolean => vector.kind === 'null' || vector.nulls !== null;

function putVarint(bytes: Uint8Array, start: number, value: number): number {
  let at = start;
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes[at++] = (rest & 0x7f) | 0x80;
  bytes[at++] = rest;
  return at;
}

function nullMap(vector: Vector, { selection, first, count }: OutputBatch): Uint8Array {
  if (vector.kind === 'null') return new Uint8Array(count).fill(1);
  const { nulls } = vector;
  if (nulls === null) return new Uint8Array(count);
  if (selection === null) return nulls.subarray(first, first + count);
  const map = new Uint8Array(count);
  for (let i = 0; i < count; i++) map[i] = nulls[selection[i]!]!;
  return map;
}

function flags(vector: Vector, { selection, first, count }: OutputBatch): Uint8Array {
  const cells = new Uint8Array(count);
  if (vector.kind === 'null') return cells;
  assert(vector.kind === 'bool', 'booleans are booleans');
  const { values, nulls } = vector;
  for (let i = 0; i < count; i++) {
    const row = selection === null ? first + i : selection[i]!;
    if (nulls === null || nulls[row] === 0) cells[i] = values[row]!;
  }
  return cells;
}

/** Ends of the arrays of all parts, then their numbers: a NULL vector has none. */
function* vectorPieces(parts: BlockRows, index: number): Generator<Uint8Array, void> {
  let end = 0;
  for (const part of parts) {
    const vector = part.columns[index]!;
    // A block holds fewer numbers than 32 bits count: the upper half of an end is zero.
    const ends = new Uint32Array(part.count * 2);
    for (let i = 0; i < part.count; i++) ends[i * 2] = end += isThere(vector, rowAt(part, i)) ? vector.dims : 0;
    yield bytesOf(ends);
  }
  for (const part of parts) {
    const vector = part.columns[index]!;
    if (vector.kind !== 'vec') continue;
    const rows = Int32Array.from({ length: part.count }, (_, i) => rowAt(part, i)).filter((row) => isThere(vector, row));
    yield bytesOf(floats(vector, { ...part, selection: rows, count: rows.length }, vector.dims));
  }
}

const rowAt = ({ selection, first }: OutputBatch, i: number): number => (selection === null ? first + i : selection[i]!);

function isThere(vector: Vector, row: number): vector is Extract<Vector, { kind: 'vec' }> {
  return vector.kind === 'vec' && (vector.nulls === null || vector.nulls[row] === 0);
}
