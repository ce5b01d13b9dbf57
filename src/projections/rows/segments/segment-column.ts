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

/** A segment's most rows; row numbers of a table are `segment << 16 | row`. */
export const SEGMENT_ROWS = 65_536;
/** Copying an array of so many bytes is felt in a turn. */
const LONG_BYTES = 1 << 20;

type Layout = 'none' | 'i32' | 'f64' | 'i64' | 'bool' | 'dict' | 'text' | 'vec';

const SAFE = 9_007_199_254_740_991n;
const I32_MAX = 2_147_483_647;
const I32_MIN = -2_147_483_648;

const encoder = new TextEncoder();

/** A vector whose dictionary, if it has one, is kept elsewhere. */
export type SavedVector =
  | Exclude<Vector, { kind: 'dict' }>
  | { readonly kind: 'dict'; readonly values: Int32Array; readonly nulls: Uint8Array | null };

export class SegmentColumn {
  #type: ColumnType;
  #layout: Layout = 'none';
  #length = 0;
  #capacity = 0;
  #nulls: Uint8Array | null = null;
  #i32: Int32Array = no.i32;
  #f64: Float64Array = no.f64;
  #i64: BigInt64Array = no.i64;
  #bool: Uint8Array = no.bytes;
  #floats: Float32Array = no.floats;
  #dims = 0;
  #offsets: Uint32Array = no.offsets;
  #heap: Uint8Array = no.bytes;
  #heapUsed = 0;
  #dictionary: ByteDictionary | null;
  #vector: Vector | null = null;
  /** Null for a copy, which is never sealed. */
  readonly #extents: Extents | null;
  #sealed = false;
  readonly #heapExpected: number;
  /** The column was read since the hand last passed: others leave memory first. */
  recent = false;

  /**
   * A string column codes its cells into `dictionary` while it is given one. `like` is the same column of the segment
   * before: what that needed is set aside at once, where it can stay, because growing to it costs more than filling it.
   */
  constructor(type: ColumnType, dictionary: ByteDictionary | null, extents: Extents | null, like?: SegmentColumn) {
    this.#type = type;
    this.#dictionary = type === 'string' ? dictionary : null;
    this.#extents = extents;
    this.#capacity = like ? like.#length : 0;
    this.#heapExpected = like ? like.#heapUsed + (like.#heapUsed >>> 4) : 0;
  }

  /** A column of `length` cells over the arrays of a saved vector: as they are, until it is sealed. */
  static fromSaved(
    type: ColumnType,
    vector: SavedVector,
    length: number,
    dictionary: ByteDictionary | null,
    extents: Extents | null,
  ): SegmentColumn {
    const column = new SegmentColumn(type, dictionary, extents);
    column.#length = length;
    if (vector.kind === 'null') return column;
    column.#layout = vector.kind;
    column.#capacity = length;
    column.#nulls = vector.nulls;
    if (vector.kind === 'i32' || vector.kind === 'dict') column.#i32 = vector.values;
    else if (vector.kind === 'f64') column.#f64 = vector.values;
    else if (vector.kind === 'i64') column.#i64 = vector.values;
    else if (vector.kind === 'bool') column.#bool = vector.values;
    else if (vector.kind === 'vec') {
      column.#floats = vector.values;
      column.#dims = vector.dims;
    } else {
      column.#offsets = vector.offsets;
      column.#heap = vector.heap;
      column.#heapUsed = vector.heap.length;
    }
    return column;
  }

  /** Copies of the arrays, as long as the column; the dictionary is saved once, by the table. */
  savedVector(length: number): SavedVector {
    const vector = this.vector(length);
    if (vector.kind === 'null') return vector;
    const nulls = vector.nulls ? vector.nulls.slice(0, length) : null;
    switch (vector.kind) {
      case 'dict':
        return { kind: 'dict', values: vector.values.slice(0, length), nulls };
      case 'text':
        return { kind: 'text', offsets: vector.offsets.slice(0, length + 1), heap: vector.heap.slice(0, this.#heapUsed), nulls };
      case 'vec':
        return { kind: 'vec', values: vector.values.slice(0, length * vector.dims), dims: vector.dims, nulls };
      case 'i32':
        return { kind: 'i32', values: vector.values.slice(0, length), nulls };
      case 'f64':
        return { kind: 'f64', values: vector.values.slice(0, length), nulls };
      case 'i64':
        return { kind: 'i64', values: vector.values.slice(0, length), nulls };
      case 'bool':
        return { kind: 'bool', values: vector.values.slice(0, length), nulls };
      default:
        return unreachable(vector);
    }
  }

  /** Its first `length` cells in arrays of their own, strings spelled out. */
  copy(length: number): SegmentColumn {
    const copy = SegmentColumn.fromSaved(this.#type, this.savedVector(length), length, this.#dictionary, null);
    copy.#spell();
    return copy;
  }

  get type(): ColumnType {
    return this.#type;
  }

  get length(): number {
    return this.#length;
  }

  get heapBytes(): number {
    return this.#heapUsed;
  }

  /** UTF-8 heap of a column without dictionary. */
  get heap(): Uint8Array {
    return this.#heap;
  }

  get offsets(): Uint32Array {
    return this.#offsets;
  }

  /** Appends source[from..to), where the source holds cells of this column's type. */
  append(source: Vector, from: number, to: number): void {
    const count = to - from;
    if (count === 0) return;
    if (source.kind === 'null') return this.pad(this.#length + count);
    this.#vector = null;
    const at = this.#length;
    this.#reserve(at + count);
    switch (source.kind) {
      case 'i32':
      case 'f64':
      case 'i64':
        this.#appendNumeric(source, from, to, at);
        break;
      case 'bool':
        this.#become('bool');
        this.#bool.set(source.values.subarray(from, to), at);
        break;
      case 'vec':
        if (this.#layout === 'none') this.#dims = source.dims;
        assert(this.#dims === source.dims, 'vectors of one column have one length');
        this.#become('vec');
        this.#floats.set(source.values.subarray(from * source.dims, to * source.dims), at * source.dims);
        break;
      case 'dict':
        this.#appendCodes(source, from, to, at);
        break;
      case 'text':
        if (this.#dictionary) this.#encodeText(source, from, to, at, this.#dictionary);
        else this.#appendText(source, from, to, at);
        break;
      default:
        unreachable(source);
    }
    this.#length = at + count;
    if (source.nulls) this.#copyNulls(source.nulls, from, to, at);
  }

  /** NULL up to `length` rows. */
  pad(length: number): void {
    const at = this.#length;
    if (length <= at) return;
    this.#vector = null;
    if (this.#layout !== 'none') {
      this.#reserve(length);
      this.#blank(at, length);
      this.#ownNulls().fill(1, at, length);
    }
    this.#length = length;
  }

  /** Fills the cells of NULLs: no reader takes them for values, but codes must be codes. */
  #blank(from: number, to: number): void {
    switch (this.#layout) {
      case 'i32':
      case 'dict':
        this.#i32.fill(0, from, to);
        break;
      case 'f64':
        this.#f64.fill(0, from, to);
        break;
      case 'i64':
        this.#i64.fill(0n, from, to);
        break;
      case 'bool':
        this.#bool.fill(0, from, to);
        break;
      case 'vec':
        this.#floats.fill(0, from * this.#dims, to * this.#dims);
        break;
      case 'text':
        this.#offsets.fill(this.#heapUsed, from + 1, to + 1);
        break;
      case 'none':
        break;
      default:
        unreachable(this.#layout);
    }
  }

  /** The column as it stands, `length` rows long; shares its arrays. */
  vector(length: number): Vector {
    this.pad(length);
    return (this.#vector ??= this.#makeVector());
  }

  /**
   * Wipes the cells of rows that are removed, in place. They become NULL where that costs nothing, and where another value
   * would be some other cell's: code 0 has a meaning.
   */
  clear(rows: readonly number[]): void {
    if (this.#layout === 'none') return;
    this.#vector = null;
    const nulls = this.#layout === 'dict' ? this.#ownNulls() : this.#nulls;
    for (const row of rows) {
      if (row >= this.#length) continue;
      if (this.#layout === 'dict' && nulls![row] !== 1) this.#dictionary!.release(this.#i32[row]!);
      if (nulls) nulls[row] = 1;
      if (this.#layout === 'text') this.#heap.fill(0, this.#offsets[row]!, this.#offsets[row + 1]!);
      else this.#blank(row, row + 1);
    }
  }

  /** Holds the cells as UTF-8 from here on: a dictionary of mostly distinct strings costs more than it saves. */
  spellOut(): void {
    const dictionary = this.#dictionary;
    const codes = this.#layout === 'dict' ? this.#i32.slice(0, this.#length) : null;
    this.#spell();
    if (codes) dictionary!.releaseCells(codes, this.#nulls);
  }

  #spell(): void {
    if (this.#layout === 'dict') this.#spellCodes();
    this.#dictionary = null;
  }

  /** Cells under a wider type: integers become numbers, scalars become text, anything becomes JSON text. */
  widen(type: ColumnType): void {
    if (type === this.#type) return;
    const before = this.#type;
    if (type === 'json' || (type === 'string' && becomesText(before))) {
      if (this.#layout === 'none') this.#type = type;
      else this.#rebuild(type, (cell) => jsonText(cell, before));
      this.#dictionary = null;
      return;
    }
    assert(type === 'number' && before === 'integer', `${before} widens to ${type}`);
    this.#type = type;
    this.#vector = null;
    if (this.#layout === 'i32' || this.#layout === 'i64') this.#become('f64');
  }

  /** True when every integer, or each of the first `rows`, has an exact double. */
  integersFitNumber(rows = this.#length): boolean {
    if (this.#layout !== 'i64') return true;
    for (let row = 0; row < Math.min(rows, this.#length); row++) {
      const value = this.#i64[row]!;
      if ((value > 9_007_199_254_740_992n || value < -9_007_199_254_740_992n) && this.#nulls?.[row] !== 1) return false;
    }
    return true;
  }

  /** No row follows: every array moves to an extent of just its length, numbers and text alike. */
  seal(length: number): void {
    this.pad(length);
    this.#sealed = true;
    this.#capacity = length;
    this.#vector = null;
    if (this.#nulls) this.#nulls = this.#settle(this.#nulls, length);
    switch (this.#layout) {
      case 'i32':
      case 'dict':
        this.#i32 = this.#settle(this.#i32, length);
        break;
      case 'f64':
        this.#f64 = this.#settle(this.#f64, length);
        break;
      case 'i64':
        this.#i64 = this.#settle(this.#i64, length);
        break;
      case 'bool':
        this.#bool = this.#settle(this.#bool, length);
        break;
      case 'vec':
        this.#floats = this.#settle(this.#floats, length * this.#dims);
        break;
      case 'text':
        this.#offsets = this.#settle(this.#offsets, length + 1);
        this.#heap = this.#settle(this.#heap, this.#heapUsed);
        break;
      case 'none':
        break;
      default:
        unreachable(this.#layout);
    }
  }

  /** Gives back every array. The column must not be read afterwards. */
  release(): void {
    const arrays = [this.#nulls, this.#i32, this.#f64, this.#i64, this.#bool, this.#floats, this.#offsets, this.#heap];
    for (const array of arrays) if (array) this.#extents?.giveBack(array);
    this.#vector = null;
    this.#layout = 'none';
    this.#nulls = null;
    this.#clearArrays();
  }

  get bytes(): number {
    return (
      (this.#nulls?.length ?? 0) +
      this.#i32.byteLength +
      this.#f64.byteLength +
      this.#i64.byteLength +
      this.#bool.byteLength +
      this.#floats.byteLength +
      this.#offsets.byteLength +
      this.#heap.byteLength
    );
  }

  #appendNumeric(source: Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>, from: number, to: number, at: number): void {
    const need = this.#type === 'timestamp' ? 'i64' : this.#type === 'number' ? 'f64' : integerLayout(source, from, to);
    this.#become(need);
    // `become` only ever widens, so the layout may be wider than what was asked for.
    if (this.#layout === 'i32') copyNumbers(source, from, to, this.#i32, at);
    else if (this.#layout === 'f64') copyNumbers(source, from, to, this.#f64, at);
    else if (source.kind === 'i64') this.#i64.set(source.values.subarray(from, to), at);
    else for (let i = from; i < to; i++) this.#i64[at + i - from] = BigInt(source.values[i]!);
  }

  #appendCodes(source: Extract<Vector, { kind: 'dict' }>, from: number, to: number, at: number): void {
    const { values, nulls, dictionary } = source;
    const bytesOf = (code: number): Uint8Array =>
      dictionary instanceof ByteDictionary ? dictionary.bytesOf(code) : encoder.encode(dictionary.text(code));
    if (this.#dictionary) {
      this.#become('dict');
      const target = this.#i32;
      // The source's codes mean nothing here: each is looked up once, on first use.
      const codes = new Int32Array(dictionary.size).fill(-1);
      for (let i = from; i < to; i++) {
        if (nulls?.[i] === 1) {
          target[at + i - from] = 0;
          continue;
        }
        const code = values[i]!;
        let own = codes[code]!;
        if (own < 0) {
          const bytes = bytesOf(code);
          own = codes[code] = this.#dictionary.encode(bytes, 0, bytes.length);
        }
        this.#dictionary.count(own);
        target[at + i - from] = own;
      }
      return;
    }
    this.#become('text');
    for (let i = from; i < to; i++) {
      if (nulls?.[i] !== 1) {
        const bytes = bytesOf(values[i]!);
        this.#reserveHeap(bytes.length);
        this.#heap.set(bytes, this.#heapUsed);
        this.#heapUsed += bytes.length;
      }
      this.#offsets[at + i - from + 1] = this.#heapUsed;
    }
  }

  #encodeText(source: Extract<Vector, { kind: 'text' }>, from: number, to: number, at: number, dictionary: ByteDictionary): void {
    this.#become('dict');
    dictionary.encodeCells(source, from, to, this.#i32, at);
  }

  #appendText(source: Extract<Vector, { kind: 'text' }>, from: number, to: number, at: number): void {
    this.#become('text');
    const start = source.offsets[from]!;
    const size = source.offsets[to]! - start;
    this.#reserveHeap(size);
    this.#heap.set(source.heap.subarray(start, start + size), this.#heapUsed);
    const shift = this.#heapUsed - start;
    const target = this.#offsets;
    for (let i = from + 1; i <= to; i++) target[at + i - from] = source.offsets[i]! + shift;
    this.#heapUsed += size;
  }

  #copyNulls(source: Uint8Array, from: number, to: number, at: number): void {
    if (!this.#nulls) {
      let i = from;
      while (i < to && source[i] !== 1) i++;
      if (i === to) return;
    }
    this.#ownNulls().set(source.subarray(from, to), at);
  }

  /** Moves to a layout, or stays in a wider one. */
  #become(layout: Layout): void {
    if (
      this.#layout === layout ||
      (this.#layout === 'i64' && this.#type !== 'number') ||
      (this.#layout === 'f64' && layout === 'i32')
    ) {
      return;
    }
    this.#vector = null;
    const before = this.#layout;
    const [i32, f64, i64] = [this.#i32, this.#f64, this.#i64];
    this.#layout = layout;
    switch (layout) {
      case 'i32':
      case 'dict':
        this.#i32 = this.#array(Int32Array, this.#capacity).fill(0, 0, this.#length);
        break;
      case 'f64':
        this.#f64 = this.#array(Float64Array, this.#capacity).fill(0, 0, this.#length);
        if (before === 'i32') this.#f64.set(this.#i32.subarray(0, this.#length));
        if (before === 'i64') for (let i = 0; i < this.#length; i++) this.#f64[i] = Number(this.#i64[i]!);
        break;
      case 'i64': {
        this.#i64 = this.#array(BigInt64Array, this.#capacity).fill(0n, 0, this.#length);
        const narrow = before === 'i32' ? this.#i32 : this.#f64;
        if (before !== 'none') for (let i = 0; i < this.#length; i++) this.#i64[i] = BigInt(narrow[i]!);
        break;
      }
      case 'bool':
        this.#bool = this.#array(Uint8Array, this.#capacity).fill(0, 0, this.#length);
        break;
      case 'vec':
        this.#floats = this.#array(Float32Array, this.#capacity * this.#dims).fill(0, 0, this.#length * this.#dims);
        break;
      case 'text':
        this.#offsets = this.#array(Uint32Array, this.#capacity + 1).fill(0, 0, this.#length + 1);
        this.#heap = this.#array(Uint8Array, Math.max(64, this.#heapExpected || this.#capacity * 8));
        break;
      case 'none':
        break;
      default:
        unreachable(layout);
    }
    if (before === 'i32') this.#i32 = no.i32;
    if (before === 'f64') this.#f64 = no.f64;
    if (before === 'i64') this.#i64 = no.i64;
    for (const [then, now] of [
      [i32, this.#i32],
      [f64, this.#f64],
      [i64, this.#i64],
    ])
      if (then !== now) this.#extents?.giveBack(then!);
    if (before === 'none' && this.#length > 0) this.#ownNulls().fill(1, 0, this.#length);
  }

  /** From bytes to bytes: a turn that others wait for has no time to make a string of each cell. */
  #spellCodes(): void {
    const dictionary = this.#dictionary!;
    const [codes, length] = [this.#i32, this.#length];
    const offsets = this.#array(Uint32Array, this.#capacity + 1);
    const used = dictionary.measure(codes, this.#nulls, length, offsets);
    const heap = new Uint8Array(Math.max(64, this.#heapExpected, used));
    dictionary.spell(codes, length, offsets, heap);
    [this.#vector, this.#layout] = [null, 'text'];
    this.#i32 = no.i32;
    this.#extents?.giveBack(codes);
    this.#offsets = offsets;
    this.#heap = heap;
    this.#heapUsed = used;
    if (this.#sealed) this.seal(length);
  }

  /** Every cell as text under `type`. */
  #rebuild(type: ColumnType, textOf: (cell: Exclude<ReturnType<typeof cellAt>, null>) => string): void {
    const vector = this.#makeVector();
    const before = this.#type;
    const length = this.#length;
    const replacement = new SegmentColumn(type, null, null);
    replacement.#reserve(length);
    replacement.#become('text');
    for (let row = 0; row < length; row++) {
      const cell = cellAt(vector, before, row);
      if (cell === null) replacement.#ownNulls()[row] = 1;
      else {
        const bytes = encoder.encode(textOf(cell));
        replacement.#reserveHeap(bytes.length);
        replacement.#heap.set(bytes, replacement.#heapUsed);
        replacement.#heapUsed += bytes.length;
      }
      replacement.#offsets[row + 1] = replacement.#heapUsed;
    }
    this.release();
    this.#type = type;
    this.#layout = 'text';
    this.#nulls = replacement.#nulls;
    this.#capacity = replacement.#capacity;
    this.#offsets = replacement.#offsets;
    this.#heap = replacement.#heap;
    this.#heapUsed = replacement.#heapUsed;
    if (this.#sealed) this.seal(length);
  }

  #clearArrays(): void {
    this.#i32 = no.i32;
    this.#f64 = no.f64;
    this.#i64 = no.i64;
    this.#bool = no.bytes;
    this.#floats = no.floats;
    this.#offsets = no.offsets;
    this.#heap = no.bytes;
  }

  /**
   * Allocates long arrays, and arrays of segments expected to fill up, where they will rest, so that sealing copies nothing.
   * Contents are undefined.
   */
  #array<T extends FixedArray>(kind: FixedKind<T>, length: number): T {
    const isLong = length * kind.BYTES_PER_ELEMENT >= LONG_BYTES;
    return this.#extents && (this.#sealed || isLong || this.#capacity >= SEGMENT_ROWS)
      ? this.#extents.allocate(kind, length)
      : new kind(length);
  }

  #settle<T extends FixedArray>(array: T, length: number): T {
    return this.#extents ? this.#extents.settle(array, length) : array;
  }

  #grow<T extends FixedArray>(from: T, kind: FixedKind<T>, length: number): T {
    const to = this.#array(kind, length);
    (to as Uint8Array).set(from as Uint8Array);
    this.#extents?.giveBack(from);
    return to;
  }

  #makeVector(): Vector {
    const nulls = this.#nulls;
    switch (this.#layout) {
      case 'none':
        return { kind: 'null' };
      case 'i32':
        return { kind: 'i32', values: this.#i32, nulls };
      case 'f64':
        return { kind: 'f64', values: this.#f64, nulls };
      case 'i64':
        return { kind: 'i64', values: this.#i64, nulls };
      case 'bool':
        return { kind: 'bool', values: this.#bool, nulls };
      case 'dict':
        assert(this.#dictionary, 'codes have a dictionary');
        return { kind: 'dict', values: this.#i32, dictionary: this.#dictionary, nulls };
      case 'text':
        return { kind: 'text', offsets: this.#offsets, heap: this.#heap, nulls };
      case 'vec':
        return { kind: 'vec', values: this.#floats, dims: this.#dims, nulls };
      default:
        return unreachable(this.#layout);
    }
  }

  #ownNulls(): Uint8Array {
    if (!this.#nulls) {
      this.#nulls = zeroFill(this.#array(Uint8Array, this.#capacity));
      this.#vector = null;
    }
    return this.#nulls;
  }

  #reserveHeap(bytes: number): void {
    if (this.#heapUsed + bytes <= this.#heap.length) return;
    this.#heap = this.#grow(this.#heap, Uint8Array, Math.max(this.#heap.length * 2, this.#heapUsed + bytes));
  }

  #reserve(rows: number): void {
    if (rows <= this.#capacity) return;
    let capacity = Math.max(64, this.#capacity * 2);
    while (capacity < rows) capacity *= 2;
    this.#capacity = capacity;
    if (this.#nulls) this.#nulls = this.#grow(this.#nulls, Uint8Array, capacity).fill(0, this.#length);
    if (this.#layout === 'i32' || this.#layout === 'dict') this.#i32 = this.#grow(this.#i32, Int32Array, capacity);
    else if (this.#layout === 'f64') this.#f64 = this.#grow(this.#f64, Float64Array, capacity);
    else if (this.#layout === 'i64') this.#i64 = this.#grow(this.#i64, BigInt64Array, capacity);
    else if (this.#layout === 'bool') this.#bool = this.#grow(this.#bool, Uint8Array, capacity);
    else if (this.#layout === 'vec') this.#floats = this.#grow(this.#floats, Float32Array, capacity * this.#dims);
    else if (this.#layout === 'text') this.#offsets = this.#grow(this.#offsets, Uint32Array, capacity + 1);
  }
}

/** The narrowest layout that holds every integer of a range. */
function integerLayout(
  source: Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>,
  from: number,
  to: number,
): 'i32' | 'f64' | 'i64' {
  if (source.kind === 'i32') return 'i32';
  if (source.kind === 'f64') {
    for (let i = from; i < to; i++) if (source.values[i]! > I32_MAX || source.values[i]! < I32_MIN) return 'f64';
    return 'i32';
  }
  for (let i = from; i < to; i++) if (source.values[i]! > SAFE || source.values[i]! < -SAFE) return 'i64';
  return 'f64';
}

function copyNumbers(
  source: Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>,
  from: number,
  to: number,
  target: Int32Array | Float64Array,
  at: number,
): void {
  if (source.kind === 'i64') for (let i = from; i < to; i++) target[at + i - from] = Number(source.values[i]!);
  else target.set(source.values.subarray(from, to), at);
}
