/**
 * One type as a branch has it: the tables of the branches that it descends from, each up to where the next was forked,
 * and its own. Keys are looked up in each of them, the branch's own first.
 */
import type { Cell, ColumnType } from '../../../log/values/value.ts';
import { HIDDEN, type DeclaredTypes, type Inherited } from './branch-overlay.ts';
import { NO_ROW } from '../segments/segment.ts';
import type { CellAddress, StoredVersions } from '../cells/stored-versions.ts';
import { keyBytes } from '../cells/key-text.ts';
import type { Table } from './table.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import { hashBytes } from '../cells/byte-hash.ts';

/** A table that a branch reads; `inherited` is null for its own. */
export interface TableLayer {
  readonly table: Table;
  readonly inherited: Inherited | null;
}

/** Versions are numbered layer * LAYER + row. */
const LAYER = 2 ** 32;

export class LineageTable implements StoredVersions {
  readonly #layers: readonly TableLayer[];
  readonly #types: DeclaredTypes;
  readonly #names: readonly string[];

  /** `layers` oldest first; `names` are the columns that the branch declares. */
  constructor(layers: readonly TableLayer[], types: DeclaredTypes, names: readonly string[]) {
    this.#layers = layers;
    this.#types = types;
    this.#names = names;
  }

  columnTypes(): ReadonlyMap<string, { readonly type: ColumnType }> {
    const types = new Map<string, { readonly type: ColumnType }>();
    for (const name of this.#names) types.set(name, { type: this.#types(name)! });
    // An undeclared `id` is kept as it was sent.
    if (!types.has('id') && this.#layers.some(({ table }) => table.columnTypes().has('id'))) types.set('id', { type: 'string' });
    return types;
  }

  paths(): Iterable<number> {
    return new Set(this.#layers.flatMap(({ table }) => [...table.paths()]));
  }

  touch(hashes: Int32Array, count: number): void {
    for (const { table } of this.#layers) table.touch(hashes, count);
  }

  newest(path: number, key: Uint8Array, start: number, end: number): number {
    return this.#newestBelow(this.#layers.length, path, key, start, end);
  }

  newestOf(path: number, key: string): number {
    const bytes = keyBytes(key);
    return bytes === null ? NO_ROW : this.newest(path, bytes, 0, bytes.length);
  }

  openPositions(path: number, key: Uint8Array, start: number, end: number, _hash: number, into: number[]): void {
    const newest = this.newest(path, key, start, end);
    if (newest !== NO_ROW) for (const version of this.openVersions(newest)) into.push(this.positionOf(version));
  }

  openVersions(newest: number): number[] {
    return this.#versions(newest, true);
  }

  allVersions(newest: number): number[] {
    return this.#versions(newest, false);
  }

  keyOf(version: number): string {
    return this.#tableOf(version).keyOf(version % LAYER);
  }

  pathOf(version: number): number {
    return this.#tableOf(version).pathOf(version % LAYER);
  }

  positionOf(version: number): number {
    return this.#tableOf(version).positionOf(version % LAYER);
  }

  closingOf(version: number): number {
    const { table, inherited } = this.#layerOf(version);
    const own = table.closingOf(version % LAYER);
    if (!inherited || own < inherited.end) return own;
    return inherited.closingOf(version % LAYER);
  }

  validFromOf(version: number): bigint {
    return this.#tableOf(version).validFromOf(version % LAYER);
  }

  validToOf(version: number): bigint {
    return this.#tableOf(version).validToOf(version % LAYER);
  }

  opOf(version: number): number {
    return this.#tableOf(version).opOf(version % LAYER);
  }

  cellOf(version: number, name: string): Cell {
    const cellAddress = this.placeOf(version, name);
    return cellAddress === undefined ? null : cellAt(cellAddress.vector, cellAddress.type, cellAddress.row);
  }

  placeOf(version: number, name: string): CellAddress | undefined {
    const { table, inherited } = this.#layerOf(version);
    const row = version % LAYER;
    if (!inherited) return table.placeOf(row, name);
    const segment = table.segmentOf(row);
    const column = inherited.column(segment, name);
    return column && { vector: column.vector(segment.length), type: column.type, row: row & 0xffff };
  }

  /** The version at a position that this branch sees, or -1. */
  versionAt(position: number): number {
    for (let i = 0; i < this.#layers.length; i++) {
      const { table, inherited } = this.#layers[i]!;
      // From the fork on, positions of the source are not this branch's: those of a private one may be the same.
      const row = inherited && position >= inherited.end ? NO_ROW : table.rowAt(position);
      if (row !== NO_ROW) return this.#stands(i, row) ? i * LAYER + row : NO_ROW;
    }
    return NO_ROW;
  }

  #versions(newest: number, openOnly: boolean): number[] {
    const { table } = this.#layerOf(newest);
    const row = newest % LAYER;
    const segment = table.segmentOf(row);
    const { heap, offsets } = segment.keys;
    const [start, end] = [offsets[row & 0xffff]!, offsets[(row & 0xffff) + 1]!];
    const path = segment.paths.codeAt(row & 0xffff);
    const openRows: number[] = [];
    for (let version = newest; version !== NO_ROW; ) {
      const layer = Math.floor(version / LAYER);
      const { table: own, inherited } = this.#layers[layer]!;
      // A closing version is younger than the closed one: with none at or after the fork, the chain of open versions is the
      // answer.
      const chained =
        openOnly &&
        (!inherited || (own.lastGone < inherited.end && own.positionOf(own.newest(path, heap, start, end)) < inherited.end));
      for (let at = version % LAYER; at !== NO_ROW; at = chained ? own.nextOpen(at) : own.previousOf(at)) {
        const each = layer * LAYER + at;
        if (this.#stands(layer, at) && (!openOnly || this.closingOf(each) === Infinity)) openRows.push(each);
      }
      version = this.#newestBelow(layer, path, heap, start, end);
    }
    return openRows;
  }

  /** Newest version of a key in the layers before `layer`. */
  #newestBelow(layer: number, path: number, key: Uint8Array, start: number, end: number): number {
    const hash = hashBytes(key, start, end, path);
    for (let i = layer - 1; i >= 0; i--) {
      const { table } = this.#layers[i]!;
      let row = table.index.find(key, start, end - start, path, hash);
      while (row !== NO_ROW && !this.#stands(i, row)) row = table.previousOf(row);
      if (row !== NO_ROW) return i * LAYER + row;
    }
    return NO_ROW;
  }

  /** True when the row is one of this branch's, open or closed. */
  #stands(layer: number, row: number): boolean {
    const { table, inherited } = this.#layers[layer]!;
    if (table.segmentOf(row).isRemoved(row & 0xffff)) return false;
    return !inherited || (table.positionOf(row) < inherited.end && inherited.closingOf(row) !== HIDDEN);
  }

  #layerOf(version: number): TableLayer {
    return this.#layers[Math.floor(version / LAYER)]!;
  }

  #tableOf(version: number): Table {
    return this.#layerOf(version).table;
  }
}
