/** A segment at rest: its saved form, and what its columns need from their keeper. */
import type { ColumnType } from '../../../log/values/value.ts';
import type { ByteDictionary } from '../cells/byte-dictionary.ts';
import type { SavedCodes } from '../cells/code-column.ts';
import type { SavedVector } from './column-cells.ts';

export interface SavedColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly vector: SavedVector;
}

/** A segment whole, its live bitmap and counts left out: closings say them. */
export interface SegmentState {
  readonly firstRow: number;
  readonly base: number;
  readonly length: number;
  readonly deltas: Int32Array | null;
  readonly closings: Int32Array | Float64Array | null;
  readonly validFrom: BigInt64Array | null;
  readonly validTo: BigInt64Array | null;
  readonly paths: SavedCodes;
  readonly ops: SavedCodes;
  readonly provenances: SavedCodes;
  readonly previous: SavedCodes;
  readonly nextLive: SavedCodes;
  readonly keys: SavedVector;
  readonly columns: readonly SavedColumn[];
  /** Earlier forms of widened columns, for branches that read them so; oldest first. */
  readonly formers: readonly (SavedColumn & { readonly rows: number })[];
}

/** The part of a sealed segment that only a hard delete or a wider type changes; arrays are the segment's own. */
export type FixedSegmentState = Omit<SegmentState, 'closings' | 'nextLive'>;

/** The part that keeps changing. Read it once and soon: until then the segment keeps the captured state. */
export interface SegmentChanges {
  closings: Int32Array | Float64Array | null;
  nextLive: SavedCodes;
  /** Types that columns were widened to since they were written to the segment's file, in order. */
  readonly widened: Widened;
}

export type Widened = readonly (readonly [name: string, types: readonly ColumnType[]])[];

/** Where the columns of a sealed segment rest while they are out of memory. Each answer has arrays of its own. */
export interface RestingColumns {
  readonly names: readonly string[];
  keys(): SavedVector;
  column(name: string): Pick<SavedColumn, 'type' | 'vector'>;
  /** Null: the column is not there. */
  typeOf(name: string): ColumnType | null;
  isCoded(name: string): boolean;
  /** How texts of the keys (`null`) or of a column begin; null where that is not known. */
  beginnings(name: string | null): Uint8Array | null;
  /** Keys (`null`) or a column in memory that `bytes` gives, from the beginning of a buffer. */
  glance(name: string | null, bytes: BytesFor): SavedVector;
}

/** Memory for so many bytes. */
export type BytesFor = (length: number) => Uint8Array<ArrayBuffer>;

/** Reuses the last buffer for the next column: touching fresh memory costs more than reading a column. */
export function sameBytes(): BytesFor {
  let reusedBytes = new Uint8Array(0);
  return (length) => {
    if (reusedBytes.length < length) reusedBytes = new Uint8Array(length + (length >>> 2));
    return reusedBytes.subarray(0, length);
  };
}

export type DictionaryOf = (column: string) => ByteDictionary | null;
