/**
 * The rows of one branch: tables of what was written on it, and what it changed about rows that it inherited. It holds
 * on to the layers below it, so that what a deleted branch wrote lives as long as somebody reads it.
 */
import { assert } from '../../errors.ts';
import type { CommittedEntry, RemovalBody, RowsBody } from '../../log/entry.ts';
import { compareText } from '../../log/value.ts';
import type { CatalogReader } from '../access-paths.ts';
import type { TableLayer } from './branch-table.ts';
import { type DeclaredTypes, Inherited, Overlay } from './overlay.ts';
import type { RowStorage } from './row-storage.ts';
import { NO_ROW } from './segment.ts';
import { Table } from './table.ts';

/** A layer that a branch reads: its positions below `end`, where the next one was forked from it. */
export interface LowerLayer {
  readonly layer: Layer;
  readonly end: number;
}

export class Layer {
  /** Position of the fork; 0 for main. */
  readonly id: number;
  /** Oldest first. Empty on main and where only types were forked. */
  readonly lower: readonly LowerLayer[];
  /** By type the property that says whose its rows are, as the branch declares it. */
  readonly subjects: Map<string, string>;
  readonly #storage: RowStorage;
  readonly #tables = new Map<string, Table>();
  /** By the inherited table that they change. */
  readonly #overlays = new Map<Table, Overlay>();

  /** `subjects` are those of the branch that it was forked from. */
  constructor(
    id: number,
    lower: readonly LowerLayer[],
    storage: RowStorage,
    subjects: Iterable<readonly [type: string, property: string]> = [],
  ) {
    this.id = id;
    this.lower = lower;
    this.subjects = new Map(subjects);
    this.#storage = storage;
  }

  table(type: string): Table | undefined {
    return this.#tables.get(type);
  }

  overlay(table: Table): Overlay | undefined {
    return this.#overlays.get(table);
  }

  /** By type, in codepoint order. */
  tables(): Table[] {
    return [...this.#tables.values()].sort((a, b) => compareText(a.type, b.type));
  }

  /** In the order of the layers that they change, then by type. */
  overlays(): { readonly layer: Layer; readonly table: Table; readonly overlay: Overlay }[] {
    return this.lower.flatMap(({ layer }) =>
      layer.tables().flatMap((table) => {
        const overlay = this.#overlays.get(table);
        return overlay ? [{ layer, table, overlay }] : [];
      }),
    );
  }

  get bytes(): number {
    let total = 0;
    for (const table of this.#tables.values()) total += table.bytes;
    for (const overlay of this.#overlays.values()) total += overlay.bytes;
    return total;
  }

  tableFor(type: string): Table {
    let table = this.#tables.get(type);
    if (!table) this.#tables.set(type, (table = new Table(type, this.#storage, this.id)));
    return table;
  }

  /** Of a checkpoint. */
  adoptTable(table: Table): void {
    this.#tables.set(table.type, table);
  }

  adoptOverlay(table: Table, overlay: Overlay): void {
    this.#overlays.set(table, overlay);
  }

  append(entry: CommittedEntry, body: RowsBody, path: number): void {
    this.tableFor(body.type).append(entry, body, path);
    if (this.lower.length === 0) return;
    const { closes, closeOffsets } = body;
    for (let row = 0; row < body.ops.length; row++) {
      for (let i = closeOffsets[row]!; i < closeOffsets[row + 1]!; i++) {
        if (closes[i]! < this.id)
          this.#inheritedAt(body.type, closes[i]!, (overlay, at) => overlay.close(at, entry.position + row));
      }
    }
  }

  /** Hard delete, on this branch and in what was forked from it. */
  remove(body: RemovalBody): void {
    const table = this.#tables.get(body.type);
    assert(table || this.id > 0, 'a removal follows the rows that it removes');
    table?.remove(body.positions);
    for (const position of body.positions) {
      if (position < this.id) this.#inheritedAt(body.type, position, (overlay, at) => overlay.hide(at));
    }
  }

  /** The tables that a reader of this branch reads, oldest first. `types` are the branch's own declarations. */
  layersOf(type: string, types: DeclaredTypes): TableLayer[] {
    const layers: TableLayer[] = [];
    this.lower.forEach(({ layer, end }, index) => {
      const table = layer.table(type);
      if (!table || table.segments.length === 0 || table.segments[0]!.base >= end) return;
      // Whoever stands between that layer and this one may have changed its rows, up to where the next was forked.
      const between = [...this.lower.slice(index + 1), { layer: this as Layer, end: Infinity }];
      const overlays = between.flatMap((upper) => {
        const overlay = upper.layer.overlay(table);
        return overlay ? [{ overlay, end: upper.end }] : [];
      });
      layers.push({ table, inherited: new Inherited(end, overlays, types) });
    });
    const own = this.#tables.get(type);
    if (own) layers.push({ table: own, inherited: null });
    return layers;
  }

  #inheritedAt(type: string, position: number, change: (overlay: Overlay, row: number) => void): void {
    const below = this.lower.findLast(({ layer }) => layer.id <= position);
    const table = below?.layer.table(type);
    const row = table && position < below!.end ? table.rowAt(position) : NO_ROW;
    assert(table && row !== NO_ROW, 'a branch changes rows that it inherited');
    let overlay = this.#overlays.get(table);
    if (!overlay) this.#overlays.set(table, (overlay = new Overlay()));
    change(overlay, row);
  }
}

/** Types of columns as a catalog declares them for one type. */
export function declaredTypes(catalog: CatalogReader, type: string): DeclaredTypes {
  const properties = catalog.type(type)?.properties;
  return (column) => (properties && Object.hasOwn(properties, column) ? properties[column]!.type : undefined);
}
