/**
 * Typed columns: how many cells travel and rest. A door parses bytes into a `RowBatch`, an entry's body is a
 * `RowBatch`, a segment keeps its columns as `Vector`s, and operators exchange `Vector`s. No object per row anywhere.
 */
import type { ColumnType } from './value.ts';

/**
 * A column of cells in one of a few layouts. `nulls[i] === 1` marks NULL; `nulls` is null when there is none.
 * Arrays may be longer than what is in use: the holder knows the length.
 *
 * - `i32`, `f64`, `i64` carry integer, number and timestamp columns: the narrowest that holds every value exactly.
 *   An `integer` in `f64` is an exact integer of at most 2^53; a `timestamp` is `i64`.
 * - `bool` is 0 or 1.
 * - `dict` holds codes into a `Dictionary` that outlives the vector; only dictionaries of one identity compare by code.
 * - `text` is UTF-8 (strings, and JSON text as given): cell i = heap[offsets[i] .. offsets[i+1]].
 * - `vec` is `dims` floats a cell.
 * - `null` is NULL throughout (a column that a segment has never seen).
 */
export type Vector =
  | { readonly kind: 'i32'; readonly values: Int32Array; readonly nulls: Uint8Array | null }
  | { readonly kind: 'f64'; readonly values: Float64Array; readonly nulls: Uint8Array | null }
  | { readonly kind: 'i64'; readonly values: BigInt64Array; readonly nulls: Uint8Array | null }
  | { readonly kind: 'bool'; readonly values: Uint8Array; readonly nulls: Uint8Array | null }
  | { readonly kind: 'dict'; readonly values: Int32Array; readonly dictionary: Dictionary; readonly nulls: Uint8Array | null }
  | {
      readonly kind: 'text';
      readonly offsets: Uint32Array;
      readonly heap: Uint8Array;
      readonly nulls: Uint8Array | null;
      readonly distinct?: DistinctColumn;
    }
  | {
      readonly kind: 'vec';
      readonly values: Float32Array;
      readonly dims: number;
      readonly nulls: Uint8Array | null;
      readonly coarse?: CoarseColumn;
    }
  | { readonly kind: 'null' };

/** Vectors as bytes, by the same row numbers; null where there are none so far, which asking sets about. */
export interface CoarseColumn {
  cells(): CoarseCells | null;
}

/** Offsets are in the buffer of `bytes`. A turn later it may hold something else. */
export interface CoarseCells {
  readonly rows: number;
  readonly bytes: Uint8Array;
  /** Scales and bounds: a 32-bit float a row each. */
  readonly scales: number;
  readonly bounds: number;
  /** So many signed bytes a row. */
  readonly components: number;
  readonly width: number;
}

/** Which rows have the same cell; null before the first reader asked, which starts the count. */
export interface DistinctColumn {
  cells(): DistinctCells | null;
}

/** A turn later there may be others: an object of this is of the same cells for as long as it is the one that is given. */
export interface DistinctCells {
  /** By row: the number of its cell, where it has one. */
  readonly codes: Uint16Array;
  /** By cell: a row that has it. */
  readonly firsts: Uint16Array;
}

/** Distinct strings of a column, in order of first appearance. Append-only: a code never changes its meaning. */
export interface Dictionary {
  readonly size: number;
  text(code: number): string;
  /** One of its codes: a text that was made of others, such as a mask, may have several. -1 when absent. */
  codeOf(text: string): number;
  /** UTF-8 of a code where it lies, for readers that need no string: never to be written to, and valid until a text is added. */
  bytesOf?(code: number): Uint8Array;
  /** UTF-8 of all codes, one after the other: code c is heap[offsets[c] .. offsets[c+1]]. */
  readonly utf8?: { readonly offsets: Uint32Array; readonly heap: Uint8Array };
}

export interface NamedColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly vector: Vector;
}

/** Rows as columns, on their way in or in an entry's body. Column names are unique; a missing column is NULL. */
export interface RowBatch {
  readonly length: number;
  readonly columns: readonly NamedColumn[];
}

/** Memory of so many of its cells. */
export function bytesOfCells(columnVector: Vector, cellCount: number): number {
  switch (columnVector.kind) {
    case 'null':
      return 0;
    case 'bool':
      return cellCount;
    case 'i32':
    case 'dict':
      return cellCount * 4;
    case 'f64':
    case 'i64':
      return cellCount * 8;
    case 'vec':
      return cellCount * columnVector.dims * 4;
    case 'text':
      return cellCount * 4 + (columnVector.offsets[cellCount] ?? 0) - (columnVector.offsets[0] ?? 0);
  }
}
