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
const LONG_BYTES = 1 << 20;

const SAFE = 9_007_199_254_740_991n;
const I32_MAX = 2_147_483_647;
const I32_MIN = -2_147_483_648;

const encoder = new TextEncoder();

export class SegmentColumn {
  #type: ColumnType;
  readonly #cells = new ColumnCells();
  #length = 0;
  #capacity = 0;
  #nulls: Uint8Array | null = null;
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
    this.#heapExpected = like ? like.#cells.heapUsed + (like.#cells.heapUsed >>> 4) : 0;
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
    column.#capacity = length;
    column.#nulls = vector.nulls;
    column.#cells.adopt(vector);
    return column;
  }

  /** Copies of the arrays, as long as the column; the dictionary is saved once, by the table. */
  savedVector(length: number): SavedVector {
    return this.#cells.savedCopy(this.vector(length), length);
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
    return this.#cells.heapUsed;
  }

  /** UTF-8 heap of a column without dictionary. */
  get heap(): Uint8Array {
    return this.#cells.heap;
  }

  get offsets(): Uint32Array {
    return this.#cells.offsets;
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
        this.#cells.bool.set(source.values.subarray(from, to), at);
        break;
      case 'vec':
        if (this.#cells.layout === 'none') this.#cells.dims = source.dims;
        assert(this.#cells.dims === source.dims, 'vectors of one column have one length');
        this.#become('vec');
        this.#cells.floats.set(source.values.subarray(from * source.dims, to * source.dims), at * source.dims);
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
    if (this.#cells.layout !== 'none') {
      this.#reserve(length);
      this.#cells.blank(at, length);
      this.#ownNulls().fill(1, at, length);
    }
    this.#length = length;
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
    if (this.#cells.layout === 'none') return;
    this.#vector = null;
    const nulls = this.#cells.layout === 'dict' ? this.#ownNulls() : this.#nulls;
    for (const row of rows) {
      if (row >= this.#length) continue;
      if (this.#cells.layout === 'dict' && nulls![row] !== 1) this.#dictionary!.release(this.#cells.i32[row]!);
      if (nulls) nulls[row] = 1;
      if (this.#cells.layout === 'text') this.#cells.heap.fill(0, this.#cells.offsets[row]!, this.#cells.offsets[row + 1]!);
      else this.#cells.blank(row, row + 1);
    }
  }

  /** Holds the cells as UTF-8 from here on: a dictionary of mostly distinct strings costs more than it saves. */
  spellOut(): void {
    const dictionary = this.#dictionary;
    const codes = this.#cells.layout === 'dict' ? this.#cells.i32.slice(0, this.#length) : null;
    this.#spell();
    if (codes) dictionary!.releaseCells(codes, this.#nulls);
  }

  #spell(): void {
    if (this.#cells.layout === 'dict') this.#spellCodes();
    this.#dictionary = null;
  }

  /** Cells under a wider type: integers become numbers, scalars become text, anything becomes JSON text. */
  widen(type: ColumnType): void {
    if (type === this.#type) return;
    const before = this.#type;
    if (type === 'json' || (type === 'string' && becomesText(before))) {
      if (this.#cells.layout === 'none') this.#type = type;
      else this.#rebuild(type, (cell) => jsonText(cell, before));
      this.#dictionary = null;
      return;
    }
    assert(type === 'number' && before === 'integer', `${before} widens to ${type}`);
    this.#type = type;
    this.#vector = null;
    if (this.#cells.layout === 'i32' || this.#cells.layout === 'i64') this.#become('f64');
  }

  /** True when every integer, or each of the first `rows`, has an exact double. */
  integersFitNumber(rows = this.#length): boolean {
    if (this.#cells.layout !== 'i64') return true;
    for (let row = 0; row < Math.min(rows, this.#length); row++) {
      const value = this.#cells.i64[row]!;
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
    this.#cells.settle(length, (array, settled) => this.#settle(array, settled));
  }

  /** Gives back every array. The column must not be read afterwards. */
  release(): void {
    if (this.#nulls) this.#extents?.giveBack(this.#nulls);
    for (const array of this.#cells.arrays()) this.#extents?.giveBack(array);
    this.#vector = null;
    this.#nulls = null;
    this.#cells.clear();
  }

  get bytes(): number {
    return (this.#nulls?.length ?? 0) + this.#cells.bytes;
  }

  #appendNumeric(source: Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>, from: number, to: number, at: number): void {
    const cells = this.#cells;
    const need = this.#type === 'timestamp' ? 'i64' : this.#type === 'number' ? 'f64' : integerLayout(source, from, to);
    this.#become(need);
    // `become` only ever widens, so the layout may be wider than what was asked for.
    if (cells.layout === 'i32') copyNumbers(source, from, to, cells.i32, at);
    else if (cells.layout === 'f64') copyNumbers(source, from, to, cells.f64, at);
    else if (source.kind === 'i64') cells.i64.set(source.values.subarray(from, to), at);
    else for (let i = from; i < to; i++) cells.i64[at + i - from] = BigInt(source.values[i]!);
  }

  #appendCodes(source: Extract<Vector, { kind: 'dict' }>, from: number, to: number, at: number): void {
    const { values, nulls, dictionary } = source;
    const bytesOf = (code: number): Uint8Array =>
      dictionary instanceof ByteDictionary ? dictionary.bytesOf(code) : encoder.encode(dictionary.text(code));
    if (this.#dictionary) {
      this.#become('dict');
      const target = this.#cells.i32;
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
    const cells = this.#cells;
    for (let i = from; i < to; i++) {
      if (nulls?.[i] !== 1) {
        const bytes = bytesOf(values[i]!);
        this.#reserveHeap(bytes.length);
        cells.heap.set(bytes, cells.heapUsed);
        cells.heapUsed += bytes.length;
      }
      cells.offsets[at + i - from + 1] = cells.heapUsed;
    }
  }

  #encodeText(source: Extract<Vector, { kind: 'text' }>, from: number, to: number, at: number, dictionary: ByteDictionary): void {
    this.#become('dict');
    dictionary.encodeCells(source, from, to, this.#cells.i32, at);
  }

  #appendText(source: Extract<Vector, { kind: 'text' }>, from: number, to: number, at: number): void {
    const cells = this.#cells;
    this.#become('text');
    const start = source.offsets[from]!;
    const size = source.offsets[to]! - start;
    this.#reserveHeap(size);
    cells.heap.set(source.heap.subarray(start, start + size), cells.heapUsed);
    const shift = cells.heapUsed - start;
    const target = cells.offsets;
    for (let i = from + 1; i <= to; i++) target[at + i - from] = source.offsets[i]! + shift;
    cells.heapUsed += size;
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
  #become(layout: ColumnLayout): void {
    const cells = this.#cells;
    if (
      cells.layout === layout ||
      (cells.layout === 'i64' && this.#type !== 'number') ||
      (cells.layout === 'f64' && layout === 'i32')
    ) {
      return;
    }
    this.#vector = null;
    const before = cells.layout;
    const [i32, f64, i64] = [cells.i32, cells.f64, cells.i64];
    cells.layout = layout;
    switch (layout) {
      case 'i32':
      case 'dict':
        cells.i32 = this.#array(Int32Array, this.#capacity).fill(0, 0, this.#length);
        break;
      case 'f64':
        cells.f64 = this.#array(Float64Array, this.#capacity).fill(0, 0, this.#length);
        if (before === 'i32') cells.f64.set(cells.i32.subarray(0, this.#length));
        if (before === 'i64') for (let i = 0; i < this.#length; i++) cells.f64[i] = Number(cells.i64[i]!);
        break;
      case 'i64': {
        cells.i64 = this.#array(BigInt64Array, this.#capacity).fill(0n, 0, this.#length);
        const narrow = before === 'i32' ? cells.i32 : cells.f64;
        if (before !== 'none') for (let i = 0; i < this.#length; i++) cells.i64[i] = BigInt(narrow[i]!);
        break;
      }
      case 'bool':
        cells.bool = this.#array(Uint8Array, this.#capacity).fill(0, 0, this.#length);
        break;
      case 'vec':
        cells.floats = this.#array(Float32Array, this.#capacity * cells.dims).fill(0, 0, this.#length * cells.dims);
        break;
      case 'text':
        cells.offsets = this.#array(Uint32Array, this.#capacity + 1).fill(0, 0, this.#length + 1);
        cells.heap = this.#array(Uint8Array, Math.max(64, this.#heapExpected || this.#capacity * 8));
        break;
      case 'none':
        break;
      default:
        unreachable(layout);
    }
    if (before === 'i32') cells.i32 = no.i32;
    if (before === 'f64') cells.f64 = no.f64;
    if (before === 'i64') cells.i64 = no.i64;
    for (const [then, now] of [
      [i32, cells.i32],
      [f64, cells.f64],
      [i64, cells.i64],
    ])
      if (then !== now) this.#extents?.giveBack(then!);
    if (before === 'none' && this.#length > 0) this.#ownNulls().fill(1, 0, this.#length);
  }

  /** From bytes to bytes: a turn that others wait for has no time to make a string of each cell. */
  #spellCodes(): void {
    const cells = this.#cells;
    const dictionary = this.#dictionary!;
    const [codes, length] = [cells.i32, this.#length];
    const offsets = this.#array(Uint32Array, this.#capacity + 1);
    const used = dictionary.measure(codes, this.#nulls, length, offsets);
    const heap = new Uint8Array(Math.max(64, this.#heapExpected, used));
    dictionary.spell(codes, length, offsets, heap);
    this.#vector = null;
    cells.layout = 'text';
    cells.i32 = no.i32;
    this.#extents?.giveBack(codes);
    cells.offsets = offsets;
    cells.heap = heap;
    cells.heapUsed = used;
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
    const texts = replacement.#cells;
    for (let row = 0; row < length; row++) {
      const cell = cellAt(vector, before, row);
      if (cell === null) replacement.#ownNulls()[row] = 1;
      else {
        const bytes = encoder.encode(textOf(cell));
        replacement.#reserveHeap(bytes.length);
        texts.heap.set(bytes, texts.heapUsed);
        texts.heapUsed += bytes.length;
      }
      texts.offsets[row + 1] = texts.heapUsed;
    }
    this.release();
    this.#type = type;
    this.#cells.layout = 'text';
    this.#nulls = replacement.#nulls;
    this.#capacity = replacement.#capacity;
    this.#cells.offsets = texts.offsets;
    this.#cells.heap = texts.heap;
    this.#cells.heapUsed = texts.heapUsed;
    if (this.#sealed) this.seal(length);
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
    return this.#cells.vector(this.#nulls, this.#dictionary);
  }

  #ownNulls(): Uint8Array {
    if (!this.#nulls) {
      this.#nulls = zeroFill(this.#array(Uint8Array, this.#capacity));
      this.#vector = null;
    }
    return this.#nulls;
  }

  #reserveHeap(bytes: number): void {
    if (this.#cells.heapUsed + bytes <= this.#cells.heap.length) return;
    this.#cells.heap = this.#grow(
      this.#cells.heap,
      Uint8Array,
      Math.max(this.#cells.heap.length * 2, this.#cells.heapUsed + bytes),
    );
  }

  #reserve(rows: number): void {
    if (rows <= this.#capacity) return;
    let capacity = Math.max(64, this.#capacity * 2);
    while (capacity < rows) capacity *= 2;
    this.#capacity = capacity;
    if (this.#nulls) this.#nulls = this.#grow(this.#nulls, Uint8Array, capacity).fill(0, this.#length);
    if (this.#cells.layout === 'i32' || this.#cells.layout === 'dict')
      this.#cells.i32 = this.#grow(this.#cells.i32, Int32Array, capacity);
    else if (this.#cells.layout === 'f64') this.#cells.f64 = this.#grow(this.#cells.f64, Float64Array, capacity);
    else if (this.#cells.layout === 'i64') this.#cells.i64 = this.#grow(this.#cells.i64, BigInt64Array, capacity);
    else if (this.#cells.layout === 'bool') this.#cells.bool = this.#grow(this.#cells.bool, Uint8Array, capacity);
    else if (this.#cells.layout === 'vec')
      this.#cells.floats = this.#grow(this.#cells.floats, Float32Array, capacity * this.#cells.dims);
    else if (this.#cells.layout === 'text') this.#cells.offsets = this.#grow(this.#cells.offsets, Uint32Array, capacity + 1);
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
