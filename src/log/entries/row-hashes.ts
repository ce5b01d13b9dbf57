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
const HASH_MEMORY_BYTES_MAX = 64 << 20;
const HASHED_ROW_BYTES_MAX = 1 << 20;
/** Longer rows are laid out here and hashed one by one: the processor's own SHA-256 then makes good for the call. */
const MEAN_HASHED_ROW_BYTES = 320;
const WASM_PAGE_BYTES = 65_536;
const TABLE_COLUMN_BYTES = 32;
/** The module reads and writes past an end by less than this. */
const HASH_MEMORY_SLACK = 16;
const STAGE_VIEWS_MAX = 4096;

interface RowHashExports {
  tableAt(): number;
  freeFrom(): number;
  hashRows(first: number, end: number): void;
  stage(row: number): number;
  reduce(count: number): void;
}

let rowHashModule: WebAssembly.Module | undefined;

export class RowHashes {
  #hashMemory: Uint8Array = new Uint8Array(0);
  #hashWords: Uint32Array = new Uint32Array(0);
  #hashModule: RowHashExports | null = null;
  #memoryOffset = 0;
  #hashesOffset = 0;
  #hashedRows = 0;
  #hasLongRows = false;
  /** Views of the stage, by length: making one costs as much as laying out a row. */
  #stageViews: Uint8Array[] = [];

  /** False, and nothing has happened, for a body that is too large. */
  begin(hashInput: HashInput): boolean {
    const { rows: rowCount, prefix, salts, ops, pk, validFrom, validTo, closeOffsets, closes, columns } = hashInput;
    const closesMax = mostClosesOfRow(closeOffsets, rowCount);
    const hashColumns: HashColumn[] = [];
    for (const hashColumn of [pk, validFrom, validTo]) if (hashColumn !== null) hashColumns.push(hashColumn);
    for (const column of columns) hashColumns.push(column);
    let rowBytes = prefix.length + 64 + closesMax * 8;
    let cellBytes = 0;
    let memoryBytes = 0;
    for (const column of hashColumns) {
      const columnBytes = hashColumnBytes(column, rowCount);
      rowBytes += column.head.length + column.cellBytesMax;
      cellBytes += column.head.length * rowCount + columnBytes;
      memoryBytes += columnBytes + column.head.length + TABLE_COLUMN_BYTES + HASH_MEMORY_SLACK * 5;
    }
    const stageStride = Math.ceil((rowBytes + 64 + 9 + HASH_MEMORY_SLACK) / 64) * 64;
    memoryBytes +=
      prefix.length + rowCount * (16 + 1 + HASH_BYTES) + (rowCount + 1) * 4 + closes.byteLength + stageStride * 4 + 512;
    if (rowBytes > HASHED_ROW_BYTES_MAX || memoryBytes > HASH_MEMORY_BYTES_MAX) return false;
    this.#reserveMemory(memoryBytes + WASM_PAGE_BYTES);
    this.#hashedRows = rowCount;
    this.#hasLongRows = cellBytes > MEAN_HASHED_ROW_BYTES * rowCount;
    this.#memoryOffset = this.#hashModule!.freeFrom();
    // First, so that it is at the same place for every body.
    const stageOffset = this.#takeMemory(stageStride * 4);
    const tableEntries = new Uint32Array(16);
    tableEntries[0] = this.#putBytes(prefix, prefix.length);
    tableEntries[1] = prefix.length;
    tableEntries[2] = this.#putBytes(salts, rowCount * 16);
    tableEntries[3] = this.#putBytes(ops, rowCount);
    if (closesMax > 0) {
      tableEntries[4] = this.#putBytes(closeOffsets, (rowCount + 1) * 4);
      tableEntries[5] = this.#putBytes(closes, closes.byteLength);
    }
    const columnTable = this.#takeMemory((columns.length + 3) * TABLE_COLUMN_BYTES);
    const keyTableOffset = columnTable + columns.length * TABLE_COLUMN_BYTES;
    for (let i = 0; i < columns.length; i++) this.#describeColumn(columns[i]!, rowCount, columnTable + i * TABLE_COLUMN_BYTES);
    const keyHashColumns = [pk, validFrom, validTo];
    for (let i = 0; i < 3; i++) this.#describeColumn(keyHashColumns[i]!, rowCount, keyTableOffset + i * TABLE_COLUMN_BYTES);
    // Lanes beyond those that are used, and nodes beyond the last, are read as well.
    this.#hashesOffset = this.#takeMemory(rowCount * HASH_BYTES + 256);
    tableEntries[6] = columnTable;
    tableEntries[7] = columns.length;
    tableEntries[8] = stageOffset;
    tableEntries[9] = stageStride;
    tableEntries[10] = this.#hashesOffset;
    tableEntries[11] = pk ? keyTableOffset : 0;
    for (let i = 0; i < 2; i++) {
      const keyTableWord = (keyTableOffset + (1 + i) * TABLE_COLUMN_BYTES) >>> 2;
      tableEntries[12 + i * 2] = this.#hashWords[keyTableWord + 3]!;
      tableEntries[13 + i * 2] = this.#hashWords[keyTableWord + 5]!;
    }
    this.#hashWords.set(tableEntries, this.#hashModule!.tableAt() >>> 2);
    assert(this.#memoryOffset <= this.#hashMemory.length, 'what a body takes was counted');
    return true;
  }

  hash(firstRow: number, endRow: number): void {
    if (!this.#hasLongRows) return this.#hashModule!.hashRows(firstRow, endRow);
    const { stage, freeFrom } = this.#hashModule!;
    const stageOffset = freeFrom();
    for (let row = firstRow; row < endRow; row++) {
      const stagedBytes = stage(row);
      const hashMemory = this.#hashMemory;
      const stagedRow =
        stagedBytes < STAGE_VIEWS_MAX
          ? (this.#stageViews[stagedBytes] ??= hashMemory.subarray(stageOffset, stageOffset + stagedBytes))
          : hashMemory.subarray(stageOffset, stageOffset + stagedBytes);
      const binaryRowHash = crypto.hash('sha256', stagedRow, 'binary');
      let hashWord = (this.#hashesOffset + row * HASH_BYTES) / 4;
      for (let i = 0; i < HASH_BYTES; i += 4) {
        this.#hashWords[hashWord++] =
          (binaryRowHash.charCodeAt(i) << 24) |
          (binaryRowHash.charCodeAt(i + 1) << 16) |
          (binaryRowHash.charCodeAt(i + 2) << 8) |
          binaryRowHash.charCodeAt(i + 3);
      }
    }
  }

  /** In place of the hash of a row that is not here. */
  put(hashedRow: number, rowHash: Uint8Array): void {
    const rowHashView = new DataView(rowHash.buffer, rowHash.byteOffset, HASH_BYTES);
    const firstHashWord = (this.#hashesOffset + hashedRow * HASH_BYTES) / 4;
    for (let i = 0; i < HASH_BYTES / 4; i++) this.#hashWords[firstHashWord + i] = rowHashView.getUint32(i * 4);
  }

  /** Copies out the hashes of rows first .. end-1, each to its place: before the root, which is computed over them. */
  take(firstRow: number, endRow: number, hashTarget: Uint8Array): void {
    const targetView = new DataView(hashTarget.buffer, hashTarget.byteOffset, hashTarget.byteLength);
    const firstHashWord = this.#hashesOffset / 4;
    for (let i = (firstRow * HASH_BYTES) / 4; i < (endRow * HASH_BYTES) / 4; i++)
      targetView.setUint32(i * 4, this.#hashWords[firstHashWord + i]!);
  }

  /** Root over all rows, once each was hashed. */
  root(): Uint8Array {
    assert(this.#hashedRows > 0, 'a tree of rows has a row');
    this.#hashModule!.reduce(this.#hashedRows);
    const rowTreeRoot = new Uint8Array(HASH_BYTES);
    const rootView = new DataView(rowTreeRoot.buffer);
    for (let i = 0; i < HASH_BYTES / 4; i++) rootView.setUint32(i * 4, this.#hashWords[this.#hashesOffset / 4 + i]!);
    return rowTreeRoot;
  }

  /** Where a column's arrays lie, into the table; zeros for one that is not there. */
  #describeColumn(hashColumn: HashColumn | null, rowCount: number, tableOffset: number): void {
    const columnFields = new Uint32Array(TABLE_COLUMN_BYTES / 4);
    if (hashColumn !== null) {
      const { form, head: cellHead, data: cellData, offsets, nulls: cellNulls, dims } = hashColumn;
      columnFields[0] = form;
      columnFields[1] = this.#putBytes(cellHead, cellHead.length);
      columnFields[2] = cellHead.length;
      if (offsets) {
        const firstTextOffset = offsets[0]!;
        // Offsets count from where cell 0 would begin if nothing were left out.
        columnFields[3] = this.#putBytes(cellData, offsets[rowCount]! - firstTextOffset, firstTextOffset) - firstTextOffset;
        columnFields[4] = this.#putBytes(offsets, (rowCount + 1) * 4);
      } else columnFields[3] = this.#putBytes(cellData, cellWidthOfForm[form]! * rowCount * (form === HashForm.vec ? dims : 1));
      if (cellNulls) columnFields[5] = this.#putBytes(cellNulls, rowCount);
      columnFields[6] = dims;
    }
    this.#hashWords.set(columnFields, tableOffset >>> 2);
  }

  /** So many bytes of an array of any kind, from byte `viewOffset` on. */
  #putBytes(rowHashView: ArrayBufferView, putBytes: number, viewOffset = 0): number {
    const memoryOffset = this.#takeMemory(putBytes);
    this.#hashMemory.set(new Uint8Array(rowHashView.buffer, rowHashView.byteOffset + viewOffset, putBytes), memoryOffset);
    return memoryOffset;
  }

  #takeMemory(takenBytes: number): number {
    const memoryOffset = this.#memoryOffset;
    this.#memoryOffset = (memoryOffset + takenBytes + HASH_MEMORY_SLACK + 7) & ~7;
    return memoryOffset;
  }

  #reserveMemory(neededBytes: number): void {
    if (neededBytes <= this.#hashMemory.length) return;
    rowHashModule ??= new WebAssembly.Module(Buffer.from(rowHashesCode, 'base64'));
    const memoryPages = Math.ceil(
      Math.min(Math.max(neededBytes * 1.25, 1 << 20), HASH_MEMORY_BYTES_MAX + 4 * WASM_PAGE_BYTES) / WASM_PAGE_BYTES,
    );
    const memory = new WebAssembly.Memory({ initial: memoryPages });
    this.#hashModule = new WebAssembly.Instance(rowHashModule, { env: { memory } }).exports as unknown as RowHashExports;
    this.#hashMemory = new Uint8Array(memory.buffer);
    this.#hashWords = new Uint32Array(memory.buffer);
    this.#stageViews = [];
  }
}

function mostClosesOfRow(closeOffsets: Uint32Array, rows: number): number {
  if (closeOffsets[rows] === 0) return 0;
  let mostRowCloses = 0;
  for (let row = 0; row < rows; row++) mostRowCloses = Math.max(mostRowCloses, closeOffsets[row + 1]! - closeOffsets[row]!);
  return mostRowCloses;
}

/** Bytes of a cell, by form; of `vec`, of one of its floats. */
const cellWidthOfForm = [1, 4, 8, 8, 4, 8, 1, 4];

function hashColumnBytes({ form, data, offsets, nulls, dims }: HashColumn, rowCount: number): number {
  if (offsets) return offsets[rowCount]! - offsets[0]! + (rowCount + 1) * 4 + (nulls ? rowCount : 0);
  assert(data.byteLength >= rowCount * cellWidthOfForm[form]!, 'a column has a cell for every row');
  return rowCount * cellWidthOfForm[form]! * (form === HashForm.vec ? dims : 1) + (nulls ? rowCount : 0);
}
