/**
 * The versions of one type as deciding and lineage ask for them, by key. A version goes by a number that is the
 * source's own business: a row of a table, or of one of the tables that a branch reads.
 */
import type { Vector } from '../../../log/values/columns.ts';
import type { Cell, ColumnType } from '../../../log/values/value.ts';

export interface CellAddress {
  readonly vector: Vector;
  readonly type: ColumnType;
  readonly row: number;
}

export interface StoredVersions {
  columnTypes(): ReadonlyMap<string, { readonly type: ColumnType }>;
  /** Brings the index slots of many hashes into the cache. */
  touch(hashes: Int32Array, count: number): void;
  /** Newest version of a key, or -1. */
  newest(path: number, key: Uint8Array, start: number, end: number): number;
  newestOf(path: number, key: string): number;
  /** Codes of the organisation paths that there are rows in. */
  paths(): Iterable<number>;
  /** Appends the positions of the open versions of a key, newest first. `hash` is that of the key in its path. */
  openPositions(path: number, key: Uint8Array, start: number, end: number, hash: number, into: number[]): void;
  /** Open versions of a key, newest first, from its newest version. */
  openVersions(newest: number): number[];
  /** The version and every older one of its key, newest first. */
  allVersions(newest: number): number[];
  /** The version at a position, unless it was removed; -1: none. */
  versionAt(position: number): number;
  keyOf(version: number): string;
  /** Code of its organisation path. */
  pathOf(version: number): number;
  positionOf(version: number): number;
  /** Position that superseded the version; Infinity while none did. */
  closingOf(version: number): number;
  validFromOf(version: number): bigint;
  validToOf(version: number): bigint;
  opOf(version: number): number;
  cellOf(version: number, column: string): Cell;
  /** The column, and where the version's cell stands in it; undefined where there is none. */
  addressOf(version: number, column: string): CellAddress | undefined;
}
