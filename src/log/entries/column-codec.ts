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
const encoder = new TextEncoder();

export function encodeBatch(batch: RowBatch, target: ByteWriter): void {
  target.u32(batch.length);
  target.u32(batch.columns.length);
  for (const column of batch.columns) encodeColumn(column, batch.length, target);
}

/**
 * `rowsMax` bounds what a batch of NULL columns, which take no bytes a row, may claim. `checked`: the same bytes were
 * decoded before, and their cells are not looked at again.
 */
export function decodeBatch(source: ByteReader, rowsMax: number, checked = false): RowBatch {
  const length = source.u32();
  if (length > rowsMax) throw malformedError('more rows than the entry has');
  const columns: NamedColumn[] = [];
  const count = source.count(7);
  const names = new Set<string>();
  for (let i = 0; i < count; i++) {
    const column = decodeColumn(source, length, checked);
    if (names.has(column.name)) throw malformedError('a column twice');
    names.add(column.name);
    columns.push(column);
  }
  return { length, columns };
}

/** A dict vector as the text vector with the same cells. */
export function textOfDict(values: Int32Array, dictionary: Dictionary, nulls: Uint8Array | null, length: number): Vector {
  const cache: (Uint8Array | undefined)[] = [];
  let size = 0;
  for (let i = 0; i < length; i++) {
    if (nulls?.[i] === 1) continue;
    const code = values[i]!;
    const bytes = (cache[code] ??= encoder.encode(dictionary.text(code)));
    size += bytes.length;
  }
  const offsets = new Uint32Array(length + 1);
  const heap = new Uint8Array(size);
  let at = 0;
  for (let i = 0; i < length; i++) {
    if (nulls?.[i] !== 1) {
      const bytes = cache[values[i]!]!;
      heap.set(bytes, at);
      at += bytes.length;
    }
    offsets[i + 1] = at;
  }
  return { kind: 'text', offsets, heap, nulls };
}

function encodeColumn(column: NamedColumn, length: number, target: ByteWriter): void {
  const given = column.vector;
  const vector = given.kind === 'dict' ? textOfDict(given.values, given.dictionary, given.nulls, length) : given;
  assert(vector.kind !== 'dict', 'dict vectors travel as text');
  target.text(column.name);
  target.u8(columnTypes.indexOf(column.type));
  target.u8(kinds[vector.kind]);
  if (vector.kind === 'null') {
    target.u8(0);
    return;
  }
  const { nulls } = vector;
  const hasNulls = nulls !== null && hasOne(nulls, length);
  target.u8(hasNulls ? 1 : 0);
  if (hasNulls) target.part(nulls, 0, length);
  target.align(8);
  // Few values are written one by one: a view over them would cost more.
  const few = length <= FEW;
  switch (vector.kind) {
    case 'i32':
      if (!few) return target.raw(bytesOf(vector.values, length));
      for (let i = 0; i < length; i++) target.i32(vector.values[i]!);
      return;
    case 'f64':
      if (!few) return target.raw(bytesOf(vector.values, length));
      for (let i = 0; i < length; i++) target.f64(vector.values[i]!);
      return;
    case 'i64':
      if (!few) return target.raw(bytesOf(vector.values, length));
      for (let i = 0; i < length; i++) target.i64(vector.values[i]!);
      return;
    case 'bool':
      return target.part(vector.values, 0, length);
    case 'vec':
      target.u32(vector.dims);
      return target.raw(bytesOf(vector.values, length * vector.dims));
    case 'text': {
      const first = vector.offsets[0]!;
      const end = vector.offsets[length]!;
      target.u32(end - first);
      target.u32(0);
      if (first === 0 && !few) target.raw(bytesOf(vector.offsets, length + 1));
      else for (let i = 0; i <= length; i++) target.u32(vector.offsets[i]! - first);
      return target.part(vector.heap, first, end);
    }
  }
}

const FEW = 4;

function hasOne(nulls: Uint8Array, length: number): boolean {
  if (length > FEW) return nulls.subarray(0, length).includes(1);
  for (let i = 0; i < length; i++) if (nulls[i] === 1) return true;
  return false;
}

function decodeColumn(source: ByteReader, length: number, checked: boolean): NamedColumn {
  const name = source.text();
  const type = columnTypes[source.u8()];
  if (type === undefined) throw malformedError('an unknown column type');
  const kind = source.u8();
  const hasNulls = source.flag();
  if (kind === kinds.null) {
    if (hasNulls) throw malformedError('a NULL column with a null map');
    return { name, type, vector: { kind: 'null' } };
  }
  checkLayout(type, kind);
  let nulls: Uint8Array | null = null;
  if (hasNulls) {
    nulls = source.raw(length);
    if (!checked && checkBits(nulls) === 0) throw malformedError('a null map without a NULL');
  }
  source.align(8);
  return { name, type, vector: decodeVector(source, kind, length, nulls, checked) };
}

export function checkLayout(type: ColumnType, kind: number): void {
  if (!layouts[type].includes(kind)) throw malformedError('a layout that its column type cannot have');
}

/** Which layouts each column type may rest in. */
const layouts: Record<ColumnType, readonly number[]> = {
  string: [kinds.text],
  json: [kinds.text],
  integer: [kinds.i32, kinds.f64, kinds.i64],
  timestamp: [kinds.i64],
  number: [kinds.f64, kinds.i32],
  boolean: [kinds.bool],
  vector: [kinds.vec],
};

function decodeVector(source: ByteReader, kind: number, length: number, nulls: Uint8Array | null, checked: boolean): Vector {
  switch (kind) {
    case kinds.i32:
      return { kind: 'i32', values: arrayOf(Int32Array, source.raw(length * 4)), nulls };
    case kinds.f64:
      return { kind: 'f64', values: arrayOf(Float64Array, source.raw(length * 8)), nulls };
    case kinds.i64:
      return { kind: 'i64', values: arrayOf(BigInt64Array, source.raw(length * 8)), nulls };
    case kinds.bool: {
      const values = source.raw(length);
      if (!checked) checkBits(values);
      return { kind: 'bool', values, nulls };
    }
    case kinds.vec: {
      const dims = source.u32();
      if (dims === 0) throw malformedError('vectors of no dimension');
      return { kind: 'vec', values: arrayOf(Float32Array, source.raw(length * dims * 4)), dims, nulls };
    }
    case kinds.text: {
      const size = source.u32();
      if (source.u32() !== 0) throw malformedError('padding that is not zero');
      const offsets = arrayOf(Uint32Array, source.raw((length + 1) * 4));
      const heap = source.raw(size);
      if (!checked) checkOffsets(offsets, heap);
      return { kind: 'text', offsets, heap, nulls };
    }
    default:
      throw malformedError('an unknown column layout');
  }
}

/** All of them or-ed together. */
export function checkBits(bytes: Uint8Array): number {
  let seen = 0;
  for (let i = 0; i < bytes.length; i++) seen |= bytes[i]!;
  if (seen > 1) throw malformedError('a bit that is neither 0 nor 1');
  return seen;
}

/** Every cell is a range of the heap and whole UTF-8: no cell can read outside, or turn into another on the way out. */
export function checkOffsets(offsets: Uint32Array, heap: Uint8Array): void {
  let last = 0;
  if (offsets[0] !== 0 || offsets[offsets.length - 1] !== heap.length) throw malformedError('text offsets that miss the heap');
  for (let i = 1; i < offsets.length; i++) {
    const offset = offsets[i]!;
    if (offset < last || offset > heap.length) throw malformedError('text offsets that fall');
    if (offset < heap.length && (heap[offset]! & 0xc0) === 0x80) throw malformedError('a text cell that splits a character');
    last = offset;
  }
  if (!isUtf8(heap)) throw malformedError('text that is not UTF-8');
}

type NumberArray = Int32Array | Uint32Array | Float32Array | Float64Array | BigInt64Array;

interface ArrayMaker<T extends NumberArray> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, offset: number, length: number): T;
}

function arrayOf<T extends NumberArray>(Maker: ArrayMaker<T>, bytes: Uint8Array): T {
  const width = Maker.BYTES_PER_ELEMENT;
  const aligned = bytes.byteOffset % width === 0 ? bytes : new Uint8Array(bytes);
  return new Maker(aligned.buffer, aligned.byteOffset, aligned.length / width);
}

function bytesOf(values: NumberArray, length: number): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, length * values.BYTES_PER_ELEMENT);
}
