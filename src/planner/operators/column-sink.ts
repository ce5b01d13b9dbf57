/**
 * A growing copy of one column, which outlives the batches that its cells came in. The layout widens as cells need it (i32, f64,
 * i64; one dictionary, then text), so a sink has one layout even if the segments had several.
 */
import { assert } from '../../errors.ts';
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { generateFunction } from '../expressions/generate-function.ts';
import type { Batch } from './operator.ts';

type Values = Int32Array | Float64Array | BigInt64Array | Uint8Array | Float32Array;

const encoder = new TextEncoder();
const noBytes = new Uint8Array(0);

/**
 * Copies of the columns of the batches given to it: all of them, or the wanted ones. A sink that is made `like` the one
 * before it has that one's room from the start, and does not grow into it again.
 */
export class RowSink {
  readonly #sinks: readonly (ColumnSink | null)[];
  length = 0;

  constructor(types: readonly ColumnType[], wanted: ReadonlySet<number> | null = null, like: RowSink | null = null) {
    this.#sinks = types.map((type, i) =>
      wanted === null || wanted.has(i) ? new ColumnSink(type, like === null ? null : like.#sinks[i]!) : null,
    );
  }

  get bytes(): number {
    let bytes = 0;
    for (const sink of this.#sinks) bytes += sink?.bytes ?? 0;
    return bytes;
  }

  append(batch: Batch): void {
    for (let i = 0; i < this.#sinks.length; i++)
      this.#sinks[i]?.append(batch.columns[i]!, batch.selection, batch.first, batch.count);
    this.length += batch.count;
  }

  vectors(): Vector[] {
    return this.#sinks.map((sink) => sink?.vector() ?? { kind: 'null' });
  }
}

export class ColumnSink {
  readonly #type: ColumnType;
  #length = 0;
  #nulls: Uint8Array | null = null;
  #values: Values | null = null;
  #dictionary: Dictionary | null = null;
  #offsets: Uint32Array | null = null;
  #heap = noBytes;
  #heapUsed = 0;
  #dims = 1;
  readonly #rowsExpected: number;
  readonly #heapExpected: number;

  constructor(type: ColumnType, like: ColumnSink | null = null, rowsExpected = 0, heapExpected = 0) {
    this.#type = type;
    this.#rowsExpected = like === null ? rowsExpected : like.#length;
    // Texts of as many rows are rarely as long: a little more, or every other heap would double for its last few.
    this.#heapExpected = like === null ? heapExpected : like.#heapUsed + (like.#heapUsed >> 4);
  }

  /** Creates a sink with room for this many rows and bytes of text, where these are known. */
  static withRoom(type: ColumnType, rows: number, heapBytes: number): ColumnSink {
    return new ColumnSink(type, null, rows, heapBytes);
  }

  get bytes(): number {
    return (this.#nulls?.length ?? 0) + (this.#values?.byteLength ?? 0) + (this.#offsets?.byteLength ?? 0) + this.#heap.length;
  }

  append(vector: Vector, selection: Int32Array | null, first: number, count: number): void {
    const start = this.#length;
    this.#length = start + count;
    if (vector.kind === 'null') {
      this.#growNulls();
      this.#nulls!.fill(1, start, this.#length);
      if (this.#offsets) this.#growOffsets().fill(this.#heapUsed, start + 1, this.#length + 1);
      return;
    }
    if (vector.nulls) {
      this.#growNulls();
      gather(vector.nulls, selection, first, count, this.#nulls!, start);
    } else if (this.#nulls) this.#growNulls();
    switch (vector.kind) {
      case 'text':
        return this.#appendText(vector, selection, first, count, start);
      case 'dict':
        return this.#appendCodes(vector, selection, first, count, start);
      case 'vec':
        return this.#appendFloats(vector, selection, first, count, start);
      case 'bool': {
        const values = this.#values instanceof Uint8Array ? grow(this.#values, this.#length) : new Uint8Array(this.#room());
        this.#values = values;
        return gather(vector.values, selection, first, count, values, start);
      }
      case 'i32':
      case 'f64':
      case 'i64':
        return this.#appendNumbers(vector, selection, first, count, start);
    }
  }

  /** The copy so far. Arrays may be longer than the rows in them, and go on being written to by later appends. */
  vector(): Vector {
    const nulls = this.#nulls;
    if (nulls && nulls.length < this.#length) this.#growNulls();
    if (this.#offsets) {
      this.#growOffsets();
      return { kind: 'text', offsets: this.#offsets, heap: this.#heap, nulls: this.#nulls };
    }
    if (this.#values === null) return { kind: 'null' };
    // NULLs at the end have taken no room yet, but random access reads the cells below them too.
    const values = grow(this.#values, this.#length * (this.#values instanceof Float32Array ? this.#dims : 1));
    this.#values = values;
    if (values instanceof BigInt64Array) return { kind: 'i64', values, nulls: this.#nulls };
    if (values instanceof Float64Array) return { kind: 'f64', values, nulls: this.#nulls };
    if (values instanceof Uint8Array) return { kind: 'bool', values, nulls: this.#nulls };
    if (values instanceof Float32Array) return { kind: 'vec', values, dims: this.#dims, nulls: this.#nulls };
    if (this.#dictionary) return { kind: 'dict', values, dictionary: this.#dictionary, nulls: this.#nulls };
    return { kind: 'i32', values, nulls: this.#nulls };
  }

  #appendNumbers(
    vector: Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>,
    selection: Int32Array | null,
    first: number,
    count: number,
    start: number,
  ): void {
    // A number column is doubles throughout; integers take the widest layout met so far.
    const oldValues = this.#values;
    const wantsBig = this.#type !== 'number' && (vector.kind === 'i64' || oldValues instanceof BigInt64Array);
    if (wantsBig) {
      const values = oldValues instanceof BigInt64Array ? grow(oldValues, this.#length) : bigsOf(oldValues, this.#room(), start);
      this.#values = values;
      if (vector.kind === 'i64') return gather(vector.values, selection, first, count, values, start);
      for (let j = 0; j < count; j++) values[start + j] = BigInt(vector.values[selection ? selection[j]! : first + j]!);
      return;
    }
    if (this.#type !== 'number' && vector.kind === 'i32' && !(oldValues instanceof Float64Array)) {
      const values = oldValues instanceof Int32Array ? grow(oldValues, this.#length) : new Int32Array(this.#room());
      this.#values = values;
      return gather(vector.values, selection, first, count, values, start);
    }
    const values = oldValues instanceof Float64Array ? grow(oldValues, this.#length) : doublesOf(oldValues, this.#room(), start);
    this.#values = values;
    if (vector.kind !== 'i64') return gather(vector.values, selection, first, count, values, start);
    for (let j = 0; j < count; j++) values[start + j] = Number(vector.values[selection ? selection[j]! : first + j]!);
  }

  #appendCodes(
    vector: Extract<Vector, { kind: 'dict' }>,
    selection: Int32Array | null,
    first: number,
    count: number,
    start: number,
  ): void {
    const fits = this.#offsets === null && (this.#dictionary === null || this.#dictionary === vector.dictionary);
    if (fits) {
      this.#dictionary = vector.dictionary;
      const values = this.#values instanceof Int32Array ? grow(this.#values, this.#length) : new Int32Array(this.#room());
      this.#values = values;
      return gather(vector.values, selection, first, count, values, start);
    }
    this.#toText(start);
    const offsets = this.#growOffsets();
    for (let j = 0; j < count; j++) {
      if (this.#nulls?.[start + j] !== 1)
        this.#write(vector.dictionary.text(vector.values[selection ? selection[j]! : first + j]!));
      offsets[start + j + 1] = this.#heapUsed;
    }
  }

  #appendText(
    vector: Extract<Vector, { kind: 'text' }>,
    selection: Int32Array | null,
    first: number,
    count: number,
    start: number,
  ): void {
    this.#toText(start);
    const target = this.#growOffsets();
    const { offsets, heap } = vector;
    if (selection === null && vector.nulls === null && count > 16) {
      const from = offsets[first]!;
      const size = offsets[first + count]! - from;
      this.#reserveHeap(size);
      const moved = this.#heapUsed - from;
      this.#heap.set(heap.subarray(from, from + size), this.#heapUsed);
      for (let j = 1; j <= count; j++) target[start + j] = offsets[first + j]! + moved;
      this.#heapUsed += size;
      return;
    }
    const nulls = this.#nulls;
    let total = 0;
    for (let j = 0; j < count; j++) {
      const i = selection ? selection[j]! : first + j;
      if (nulls === null || nulls[start + j] !== 1) total += offsets[i + 1]! - offsets[i]!;
    }
    this.#reserveHeap(total);
    const own = this.#heap;
    let used = this.#heapUsed;
    for (let j = 0; j < count; j++) {
      const i = selection ? selection[j]! : first + j;
      const from = offsets[i]!;
      const size = nulls !== null && nulls[start + j] === 1 ? 0 : offsets[i + 1]! - from;
      if (size <= 32) for (let k = 0; k < size; k++) own[used + k] = heap[from + k]!;
      else own.set(heap.subarray(from, from + size), used);
      target[start + j + 1] = used += size;
    }
    this.#heapUsed = used;
  }

  #appendFloats(
    vector: Extract<Vector, { kind: 'vec' }>,
    selection: Int32Array | null,
    first: number,
    count: number,
    start: number,
  ): void {
    const dims = vector.dims;
    assert(!(this.#values instanceof Float32Array) || this.#dims === dims, 'vectors of one column have one length');
    this.#dims = dims;
    const values =
      this.#values instanceof Float32Array ? grow(this.#values, this.#length * dims) : new Float32Array(this.#room() * dims);
    this.#values = values;
    for (let j = 0; j < count; j++) {
      const i = selection ? selection[j]! : first + j;
      values.set(vector.values.subarray(i * dims, (i + 1) * dims), (start + j) * dims);
    }
  }

  /** Leaves codes behind: another dictionary or plain text came. `used` rows are here so far. */
  #toText(used: number): void {
    if (this.#offsets) return;
    const codes = this.#values;
    const dictionary = this.#dictionary;
    this.#offsets = new Uint32Array(this.#room() + 1);
    this.#values = null;
    this.#dictionary = null;
    for (let i = 0; i < used; i++) {
      if (dictionary && codes && this.#nulls?.[i] !== 1) this.#write(dictionary.text(Number(codes[i]!)));
      this.#offsets[i + 1] = this.#heapUsed;
    }
  }

  #write(text: string): void {
    this.#reserveHeap(text.length * 3);
    this.#heapUsed += encoder.encodeInto(text, this.#heap.subarray(this.#heapUsed)).written;
  }

  #reserveHeap(size: number): void {
    if (this.#heapUsed + size <= this.#heap.length) return;
    const expected = this.#heap.length === 0 ? this.#heapExpected : this.#heap.length * 2;
    const heap = new Uint8Array(Math.max(64, expected, this.#heapUsed + size));
    heap.set(this.#heap.subarray(0, this.#heapUsed));
    this.#heap = heap;
  }

  #room(): number {
    return Math.max(16, this.#length, this.#rowsExpected);
  }

  #growNulls(): void {
    this.#nulls = this.#nulls ? grow(this.#nulls, this.#length) : new Uint8Array(this.#room());
  }

  #growOffsets(): Uint32Array {
    const offsets = this.#offsets!;
    if (offsets.length > this.#length) return offsets;
    const larger = new Uint32Array(Math.max(offsets.length * 2, this.#room() + 1));
    larger.set(offsets);
    return (this.#offsets = larger);
  }
}

/** The array itself when it is long enough, else a copy of at least twice its length. */
function grow<T extends Values>(values: T, length: number): T {
  if (values.length >= length) return values;
  const larger = new (values.constructor as new (length: number) => T)(Math.max(values.length * 2, length));
  larger.set(values as never);
  return larger;
}

/** The numbers so far as bigints. NULLs of a column that a segment has never seen take no room: an array may end early. */
function bigsOf(oldValues: Values | null, length: number, used: number): BigInt64Array {
  const values = new BigInt64Array(length);
  const filled = Math.min(used, oldValues?.length ?? 0);
  for (let i = 0; i < filled; i++) values[i] = BigInt(oldValues![i]!);
  return values;
}

function doublesOf(oldValues: Values | null, length: number, used: number): Float64Array {
  const values = new Float64Array(length);
  const filled = Math.min(used, oldValues?.length ?? 0);
  for (let i = 0; i < filled; i++) values[i] = Number(oldValues![i]!);
  return values;
}

function gather<T extends Int32Array | Float64Array | BigInt64Array | Uint8Array>(
  source: T | Int32Array,
  selection: Int32Array | null,
  first: number,
  count: number,
  target: T,
  start: number,
): void {
  // A view costs more than a few cells: point reads come here one row at a time.
  if (selection === null && count > 16) target.set(source.subarray(first, first + count) as never, start);
  else if (selection === null) for (let j = 0; j < count; j++) target[start + j] = source[first + j]!;
  else if (count <= 16) for (let j = 0; j < count; j++) target[start + j] = source[selection[j]!]!;
  else if (target instanceof BigInt64Array) pick('l', wordsOf(source as BigInt64Array), selection, count, wordsOf(target), start);
  else {
    const letters =
      (source instanceof Int32Array ? 'i' : '') +
      (target instanceof Float64Array ? 'f' : target instanceof Int32Array ? 'i' : 'b');
    pick(letters, source as Int32Array, selection, count, target as Int32Array, start);
  }
}

type Pick = (source: Int32Array, selection: Int32Array, count: number, target: Int32Array, start: number) => void;

const picks = new Map<string, Pick>();

/** One loop per pair of array kinds, which the letters name: one for all of them would be slow for each. */
function pick(
  letters: string,
  source: Int32Array,
  selection: Int32Array,
  count: number,
  target: Int32Array,
  start: number,
): void {
  let loop = picks.get(letters);
  if (!loop) {
    const body =
      letters === 'l'
        ? 'const r = 2 * selection[j], p = 2 * (start + j); target[p] = source[r]; target[p + 1] = source[r + 1];'
        : 'target[start + j] = source[selection[j]];';
    const text = `"use strict"; /* ${letters} */ for (let j = 0; j < count; j++) { ${body} }`;
    picks.set(letters, (loop = generateFunction<Pick>(['source', 'selection', 'count', 'target', 'start'], text)));
  }
  loop(source, selection, count, target, start);
}

function wordsOf(values: BigInt64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length * 2);
}
