/**
 * The rows of one type on a branch: the tables of the branches that it descends from, each up to where the next was forked,
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
const VERSIONS_A_LAYER = 2 ** 32;

export class LineageTable implements StoredVersions {
  readonly #tableLayers: readonly TableLayer[];
  readonly #declaredTypes: DeclaredTypes;
  readonly #declaredNames: readonly string[];

  /** `tableLayers` oldest first; `declaredNames` are the columns that the branch declares. */
  constructor(tableLayers: readonly TableLayer[], types: DeclaredTypes, declaredNames: readonly string[]) {
    this.#tableLayers = tableLayers;
    this.#declaredTypes = types;
    this.#declaredNames = declaredNames;
  }

  columnTypes(): ReadonlyMap<string, { readonly type: ColumnType }> {
    const lineageTypes = new Map<string, { readonly type: ColumnType }>();
    for (const name of this.#declaredNames) lineageTypes.set(name, { type: this.#declaredTypes(name)! });
    // An undeclared `id` is kept as it was sent.
    if (!lineageTypes.has('id') && this.#tableLayers.some(({ table }) => table.columnTypes().has('id')))
      lineageTypes.set('id', { type: 'string' });
    return lineageTypes;
  }

  paths(): Iterable<number> {
    return new Set(this.#tableLayers.flatMap(({ table }) => [...table.paths()]));
  }

  touch(hashes: Int32Array, count: number): void {
    for (const { table } of this.#tableLayers) table.touch(hashes, count);
  }

  newest(path: number, key: Uint8Array, start: number, end: number): number {
    return this.#newestBelowLayer(this.#tableLayers.length, path, key, start, end);
  }

  newestOf(path: number, key: string): number {
    const encodedKey = keyBytes(key);
    return encodedKey === null ? NO_ROW : this.newest(path, encodedKey, 0, encodedKey.length);
  }

  openPositions(path: number, key: Uint8Array, start: number, end: number, _hash: number, into: number[]): void {
    const newestVersion = this.newest(path, key, start, end);
    if (newestVersion !== NO_ROW) for (const version of this.openVersions(newestVersion)) into.push(this.positionOf(version));
  }

  openVersions(newest: number): number[] {
    return this.#lineageVersions(newest, true);
  }

  allVersions(newest: number): number[] {
    return this.#lineageVersions(newest, false);
  }

  keyOf(version: number): string {
    return this.#layerTableOf(version).keyOf(version % VERSIONS_A_LAYER);
  }

  pathOf(version: number): number {
    return this.#layerTableOf(version).pathOf(version % VERSIONS_A_LAYER);
  }

  positionOf(version: number): number {
    return this.#layerTableOf(version).positionOf(version % VERSIONS_A_LAYER);
  }

  closingOf(version: number): number {
    const { table, inherited } = this.#tableLayerOf(version);
    const ownClosing = table.closingOf(version % VERSIONS_A_LAYER);
    if (!inherited || ownClosing < inherited.end) return ownClosing;
    return inherited.closingOf(version % VERSIONS_A_LAYER);
  }

  validFromOf(version: number): bigint {
    return this.#layerTableOf(version).validFromOf(version % VERSIONS_A_LAYER);
  }

  validToOf(version: number): bigint {
    return this.#layerTableOf(version).validToOf(version % VERSIONS_A_LAYER);
  }

  opOf(version: number): number {
    return this.#layerTableOf(version).opOf(version % VERSIONS_A_LAYER);
  }

  cellOf(version: number, name: string): Cell {
    const cellAddress = this.addressOf(version, name);
    return cellAddress === undefined ? null : cellAt(cellAddress.vector, cellAddress.type, cellAddress.row);
  }

  addressOf(version: number, name: string): CellAddress | undefined {
    const { table, inherited } = this.#tableLayerOf(version);
    const row = version % VERSIONS_A_LAYER;
    if (!inherited) return table.addressOf(row, name);
    const segment = table.segmentOf(row);
    const column = inherited.column(segment, name);
    return column && { vector: column.vector(segment.length), type: column.type, row: row & 0xffff };
  }

  /** The version at a position that this branch sees, or -1. */
  versionAt(position: number): number {
    for (let i = 0; i < this.#tableLayers.length; i++) {
      const { table, inherited } = this.#tableLayers[i]!;
      // From the fork on, positions of the source are not this branch's: those of a private one may be the same.
      const layerRow = inherited && position >= inherited.end ? NO_ROW : table.rowAt(position);
      if (layerRow !== NO_ROW) return this.#isVersionInherited(i, layerRow) ? i * VERSIONS_A_LAYER + layerRow : NO_ROW;
    }
    return NO_ROW;
  }

  #lineageVersions(newest: number, openOnly: boolean): number[] {
    const { table } = this.#tableLayerOf(newest);
    const newestRow = newest % VERSIONS_A_LAYER;
    const segment = table.segmentOf(newestRow);
    const { heap, offsets } = segment.keys;
    const [keyStart, keyEnd] = [offsets[newestRow & 0xffff]!, offsets[(newestRow & 0xffff) + 1]!];
    const path = segment.paths.codeAt(newestRow & 0xffff);
    const openRows: number[] = [];
    for (let version = newest; version !== NO_ROW; ) {
      const layerNumber = Math.floor(version / VERSIONS_A_LAYER);
      const { table: layerTable, inherited } = this.#tableLayers[layerNumber]!;
      // A closing version is younger than the closed one: with none at or after the fork, the chain of open versions is the
      // answer.
      const canFollowOpen =
        openOnly &&
        (!inherited ||
          (layerTable.lastGone < inherited.end &&
            layerTable.positionOf(layerTable.newest(path, heap, keyStart, keyEnd)) < inherited.end));
      for (
        let layerRow = version % VERSIONS_A_LAYER;
        layerRow !== NO_ROW;
        layerRow = canFollowOpen ? layerTable.nextOpen(layerRow) : layerTable.previousOf(layerRow)
      ) {
        const lineageVersion = layerNumber * VERSIONS_A_LAYER + layerRow;
        if (this.#isVersionInherited(layerNumber, layerRow) && (!openOnly || this.closingOf(lineageVersion) === Infinity))
          openRows.push(lineageVersion);
      }
      version = this.#newestBelowLayer(layerNumber, path, heap, keyStart, keyEnd);
    }
    return openRows;
  }

  /** Newest version of a key in the layers before `layerNumber`. */
  #newestBelowLayer(layerNumber: number, path: number, key: Uint8Array, start: number, end: number): number {
    const keyHash = hashBytes(key, start, end, path);
    for (let i = layerNumber - 1; i >= 0; i--) {
      const { table } = this.#tableLayers[i]!;
      let newestRow = table.index.find(key, start, end - start, path, keyHash);
      while (newestRow !== NO_ROW && !this.#isVersionInherited(i, newestRow)) newestRow = table.previousOf(newestRow);
      if (newestRow !== NO_ROW) return i * VERSIONS_A_LAYER + newestRow;
    }
    return NO_ROW;
  }

  /** True when the row is one of this branch's, open or closed. */
  #isVersionInherited(layerNumber: number, row: number): boolean {
    const { table, inherited } = this.#tableLayers[layerNumber]!;
    if (table.segmentOf(row).isRemoved(row & 0xffff)) return false;
    return !inherited || (table.positionOf(row) < inherited.end && inherited.closingOf(row) !== HIDDEN);
  }

  #tableLayerOf(version: number): TableLayer {
    return this.#tableLayers[Math.floor(version / VERSIONS_A_LAYER)]!;
  }

  #layerTableOf(version: number): Table {
    return this.#tableLayerOf(version).table;
  }
}
