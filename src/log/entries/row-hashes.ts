/**
 * Leaf hashes of many rows and the tree over them, by the module of `kernels/row-hashes.ts`: four rows at a time, in two
 * thirds of the time that one `crypto.hash` a row and a node takes. Long rows are only laid out there. It lays out the module's
 * memory, which holds a copy of everything that a row is made of; what a row's bytes are is said in `row-leaf.ts`, which also
 * hashes rows one by one, to the same hashes.
 *
 * A memory grows with the largest body and is used by one body at a time, from `begin` to `root`.
 */
import * as crypto from 'node:crypto';
import { assert } from '../../errors.ts';
import { rowHashesCode } from './row-hashes-code.ts';
import { HASH_BYTES } from '../bytes/sha256.ts';

/** How cells of a column become bytes; the same numbers stand in the module. */
export const HashForm = {
  text: 0,
  integerOfI32: 1,
  integerOfF64: 2,
  numberOfF64: 3,
  numberOfI32: 4,
  wide: 5,
  bool: 6,
  vec: 7,
} as const;
export type HashForm = (typeof HashForm)[keyof typeof HashForm];

export interface HashColumn {
  readonly form: HashForm;
  /** Bytes that begin every cell. */
  readonly head: Uint8Array;
  readonly data: ArrayBufferView;
  /** Offsets into `text`. */
  readonly offsets: Uint32Array | null;
  readonly nulls: Uint8Array | null;
  readonly dims: number;
  /** No cell takes more, its head left out. */
  readonly cellBytesMax: number;
}

export interface HashInput {
  readonly rows: number;
  /** 0x00, room for a salt, and the bytes with which all rows begin. */
  readonly prefix: Uint8Array;
  readonly salts: Uint8Array;
  readonly ops: Uint8Array;
  /** Null where every key is NULL; the same for the bounds. */
  readonly pk: HashColumn | null;
  readonly validFrom: HashColumn | null;
  readonly validTo: HashColumn | null;
  readonly closeOffsets: Uint32Array;
  readonly closes: Float64Array;
  /** In order. */
  readonly columns: readonly HashColumn[];
}

/** Larger bodies are hashed row by row: their memory would never be given back. */
const MEMORY_BYTES_MAX = 64 << 20;
const ROW_BYTES_MAX = 1 << 20;
/** Longer rows are laid out here and hashed one by one: the processor's own SHA-256 then makes good for the call. */
const MEAN_ROW_BYTES_MAX = 320;
const PAGE_BYTES = 65_536;
const TABLE_COLUMN_BYTES = 32;
/** The module reads and writes past an end by less than this. */
const SLACK = 16;
const VIEWS_MAX = 4096;

interface Exports {
  tableAt(): number;
  freeFrom(): number;
  hashRows(first: number, end: number): void;
  stage(row: number): number;
  reduce(count: number): void;
}

let compiled: WebAssembly.Module | undefined;

export class RowHashes {
  #bytes: Uint8Array = new Uint8Array(0);
  #words: Uint32Array = new Uint32Array(0);
  #module: Exports | null = null;
  #at = 0;
  #hashes = 0;
  #rows = 0;
  #long = false;
  /** Views of the stage, by length: making one costs as much as laying out a row. */
  #views: Uint8Array[] = [];

  /** False, and nothing has happened, for a body that is too large. */
  begin(input: HashInput): boolean {
    const { rows, prefix, salts, ops, pk, validFrom, validTo, closeOffsets, closes, columns } = input;
    const closesMax = mostCloses(closeOffsets, rows);
    const all: HashColumn[] = [];
    for (const column of [pk, validFrom, validTo]) if (column !== null) all.push(column);
    for (const column of columns) all.push(column);
    let rowBytes = prefix.length + 64 + closesMax * 8;
    let cellBytes = 0;
    let size = 0;
    for (const column of all) {
      const bytes = sizeOf(column, rows);
      rowBytes += column.head.length + column.cellBytesMax;
      cellBytes += column.head.length * rows + bytes;
      size += bytes + column.head.length + TABLE_COLUMN_BYTES + SLACK * 5;
    }
    const stride = Math.ceil((rowBytes + 64 + 9 + SLACK) / 64) * 64;
    size += prefix.length + rows * (16 + 1 + HASH_BYTES) + (rows + 1) * 4 + closes.byteLength + stride * 4 + 512;
    if (rowBytes > ROW_BYTES_MAX || size > MEMORY_BYTES_MAX) return false;
    this.#reserve(size + PAGE_BYTES);
    this.#rows = rows;
    this.#long = cellBytes > MEAN_ROW_BYTES_MAX * rows;
    this.#at = this.#module!.freeFrom();
    // First, so that it is at the same place for every body.
    const stage = this.#take(stride * 4);
    const entries = new Uint32Array(16);
    entries[0] = this.#put(prefix, prefix.length);
    entries[1] = prefix.length;
    entries[2] = this.#put(salts, rows * 16);
    entries[3] = this.#put(ops, rows);
    if (closesMax > 0) {
      entries[4] = this.#put(closeOffsets, (rows + 1) * 4);
      entries[5] = this.#put(closes, closes.byteLength);
    }
    const table = this.#take((columns.length + 3) * TABLE_COLUMN_BYTES);
    const keysAt = table + columns.length * TABLE_COLUMN_BYTES;
    for (let i = 0; i < columns.length; i++) this.#describe(columns[i]!, rows, table + i * TABLE_COLUMN_BYTES);
    const keys = [pk, validFrom, validTo];
    for (let i = 0; i < 3; i++) this.#describe(keys[i]!, rows, keysAt + i * TABLE_COLUMN_BYTES);
    // Lanes beyond those that are used, and nodes beyond the last, are read as well.
    this.#hashes = this.#take(rows * HASH_BYTES + 256);
    entries[6] = table;
    entries[7] = columns.length;
    entries[8] = stage;
    entries[9] = stride;
    entries[10] = this.#hashes;
    entries[11] = pk ? keysAt : 0;
    for (let i = 0; i < 2; i++) {
      const word = (keysAt + (1 + i) * TABLE_COLUMN_BYTES) >>> 2;
      entries[12 + i * 2] = this.#words[word + 3]!;
      entries[13 + i * 2] = this.#words[word + 5]!;
    }
    this.#words.set(entries, this.#module!.tableAt() >>> 2);
    assert(this.#at <= this.#bytes.length, 'what a body takes was counted');
    return true;
  }

  hash(first: number, end: number): void {
    if (!this.#long) return this.#module!.hashRows(first, end);
    const { stage, freeFrom } = this.#module!;
    const from = freeFrom();
    for (let row = first; row < end; row++) {
      const size = stage(row);
      const bytes = this.#bytes;
      const view =
        size < VIEWS_MAX ? (this.#views[size] ??= bytes.subarray(from, from + size)) : bytes.subarray(from, from + size);
      const hash = crypto.hash('sha256', view, 'binary');
      let word = (this.#hashes + row * HASH_BYTES) / 4;
      for (let i = 0; i < HASH_BYTES; i += 4) {
        this.#words[word++] =
          (hash.charCodeAt(i) << 24) | (hash.charCodeAt(i + 1) << 16) | (hash.charCodeAt(i + 2) << 8) | hash.charCodeAt(i + 3);
      }
    }
  }

  /** In place of the hash of a row that is not here. */
  put(row: number, hash: Uint8Array): void {
    const view = new DataView(hash.buffer, hash.byteOffset, HASH_BYTES);
    const first = (this.#hashes + row * HASH_BYTES) / 4;
    for (let i = 0; i < HASH_BYTES / 4; i++) this.#words[first + i] = view.getUint32(i * 4);
  }

  /** Copies out the hashes of rows first .. end-1, each to its place: before the root, which is computed over them. */
  take(first: number, end: number, target: Uint8Array): void {
    const view = new DataView(target.buffer, target.byteOffset, target.byteLength);
    const from = this.#hashes / 4;
    for (let i = (first * HASH_BYTES) / 4; i < (end * HASH_BYTES) / 4; i++) view.setUint32(i * 4, this.#words[from + i]!);
  }

  /** Root over all rows, once each was hashed. */
  root(): Uint8Array {
    assert(this.#rows > 0, 'a tree of rows has a row');
    this.#module!.reduce(this.#rows);
    const root = new Uint8Array(HASH_BYTES);
    const view = new DataView(root.buffer);
    for (let i = 0; i < HASH_BYTES / 4; i++) view.setUint32(i * 4, this.#words[this.#hashes / 4 + i]!);
    return root;
  }

  /** Where a column's arrays lie, into the table; zeros for one that is not there. */
  #describe(column: HashColumn | null, rows: number, at: number): void {
    const fields = new Uint32Array(TABLE_COLUMN_BYTES / 4);
    if (column !== null) {
      const { form, head, data, offsets, nulls, dims } = column;
      fields[0] = form;
      fields[1] = this.#put(head, head.length);
      fields[2] = head.length;
      if (offsets) {
        const first = offsets[0]!;
        // Offsets count from where cell 0 would begin if nothing were left out.
        fields[3] = this.#put(data, offsets[rows]! - first, first) - first;
        fields[4] = this.#put(offsets, (rows + 1) * 4);
      } else fields[3] = this.#put(data, widths[form]! * rows * (form === HashForm.vec ? dims : 1));
      if (nulls) fields[5] = this.#put(nulls, rows);
      fields[6] = dims;
    }
    this.#words.set(fields, at >>> 2);
  }

  /** So many bytes of an array of any kind, from byte `from` on. */
  #put(view: ArrayBufferView, size: number, from = 0): number {
    const at = this.#take(size);
    this.#bytes.set(new Uint8Array(view.buffer, view.byteOffset + from, size), at);
    return at;
  }

  #take(bytes: number): number {
    const at = this.#at;
    this.#at = (at + bytes + SLACK + 7) & ~7;
    return at;
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#bytes.length) return;
    compiled ??= new WebAssembly.Module(Buffer.from(rowHashesCode, 'base64'));
    const pages = Math.ceil(Math.min(Math.max(bytes * 1.25, 1 << 20), MEMORY_BYTES_MAX + 4 * PAGE_BYTES) / PAGE_BYTES);
    const memory = new WebAssembly.Memory({ initial: pages });
    this.#module = new WebAssembly.Instance(compiled, { env: { memory } }).exports as unknown as Exports;
    this.#bytes = new Uint8Array(memory.buffer);
    this.#words = new Uint32Array(memory.buffer);
    this.#views = [];
  }
}

function mostCloses(offsets: Uint32Array, rows: number): number {
  if (offsets[rows] === 0) return 0;
  let most = 0;
  for (let row = 0; row < rows; row++) most = Math.max(most, offsets[row + 1]! - offsets[row]!);
  return most;
}

/** Bytes of a cell, by form; of `vec`, of one of its floats. */
const widths = [1, 4, 8, 8, 4, 8, 1, 4];

function sizeOf({ form, data, offsets, nulls, dims }: HashColumn, rows: number): number {
  if (offsets) return offsets[rows]! - offsets[0]! + (rows + 1) * 4 + (nulls ? rows : 0);
  assert(data.byteLength >= rows * widths[form]!, 'a column has a cell for every row');
  return rows * widths[form]! * (form === HashForm.vec ? dims : 1) + (nulls ? rows : 0);
}
