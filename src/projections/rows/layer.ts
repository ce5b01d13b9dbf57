/**
 * The rows of one branch: tables of what was written on it, and what it changed about rows that it inherited. It holds
 * on to the layers below it, so that what a deleted branch wrote lives as long as somebody reads it.
 */
import { assert } from '../../errors.ts';
import { type CommittedEntry, type RemovalBody, type RowsBody, tenantOf, type TypeDefinition } from '../../log/entry.ts';
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
  readonly names: ScopedNames;
  readonly #storage: RowStorage;
  /** By tenant, then type. */
  readonly #tables = new Map<string | null, Map<string, Table>>();
  /** By the inherited table that they change. */
  readonly #overlays = new Map<Table, Overlay>();

  /** `names` are those of the branch that it was forked from. */
  constructor(id: number, lower: readonly LowerLayer[], storage: RowStorage, names = new ScopedNames()) {
    this.id = id;
    this.lower = lower;
    this.names = names.copy();
    this.#storage = storage;
  }

  table(tenant: string | null, type: string): Table | undefined {
    return this.#tables.get(tenant)?.get(type);
  }

  overlay(table: Table): Overlay | undefined {
    return this.#overlays.get(table);
  }

  /** By tenant, rows without one first, then by type, in codepoint order. */
  tables(): Table[] {
    const all = [...this.#tables.values()].flatMap((tables) => [...tables.values()]);
    return all.sort((a, b) => compareText(a.tenant ?? '', b.tenant ?? '') || compareText(a.type, b.type));
  }

  /** Returns the tables that the tenant had here. */
  forget(tenant: string): readonly Table[] {
    const tables = [...(this.#tables.get(tenant)?.values() ?? [])];
    this.#tables.delete(tenant);
    for (const table of this.#overlays.keys()) if (table.tenant === tenant) this.#overlays.delete(table);
    this.names.forget(tenant);
    return tables;
  }

  /** Whoever has rows that this branch reads. */
  tenants(): readonly (string | null)[] {
    return [...new Set([...this.lower.flatMap(({ layer }) => [...layer.#tables.keys()]), ...this.#tables.keys()])];
  }

  /** A definition: what it declares is declared of the tables of its tenant, or of everybody who inherits it. */
  define(tenant: string | null, { name, properties }: TypeDefinition, subject: string | null, keepFormer: boolean): void {
    this.names.define(tenant, name, subject);
    const tenants = tenant === null ? [...this.#tables.keys()].filter((each) => !this.names.isOwn(each, name)) : [tenant];
    for (const table of tenants.flatMap((each) => this.table(each, name) ?? [])) {
      for (const [column, { type }] of Object.entries(properties)) table.setColumnType(column, type, keepFormer);
    }
  }

  /** In the order of the layers that they change, then by tenant and type. */
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
    for (const tables of this.#tables.values()) for (const table of tables.values()) total += table.bytes;
    for (const overlay of this.#overlays.values()) total += overlay.bytes;
    return total;
  }

  #tableFor(tenant: string | null, type: string): Table {
    const known = this.table(tenant, type);
    if (known) return known;
    const table = new Table(tenant, type, this.#storage, this.id);
    this.adoptTable(table);
    return table;
  }

  /** Of a checkpoint. */
  adoptTable(table: Table): void {
    const tables = this.#tables.get(table.tenant) ?? new Map<string, Table>();
    this.#tables.set(table.tenant, tables.set(table.type, table));
  }

  adoptOverlay(table: Table, overlay: Overlay): void {
    this.#overlays.set(table, overlay);
  }

  append(entry: CommittedEntry, body: RowsBody, path: number): void {
    const tenant = tenantOf(entry.context.path);
    this.#tableFor(tenant, body.type).append(entry, body, path);
    if (this.lower.length === 0) return;
    const { closes, closeOffsets } = body;
    for (let row = 0; row < body.ops.length; row++) {
      for (let i = closeOffsets[row]!; i < closeOffsets[row + 1]!; i++) {
        if (closes[i]! < this.id)
          this.#inheritedAt(tenant, body.type, closes[i]!, (overlay, at) => overlay.close(at, entry.position + row));
      }
    }
  }

  /** Hard delete, on this branch and in what was forked from it. */
  remove(tenant: string | null, body: RemovalBody): void {
    const table = this.table(tenant, body.type);
    assert(table || this.id > 0, 'a removal follows the rows that it removes');
    table?.remove(body.positions);
    for (const position of body.positions) {
      if (position < this.id) this.#inheritedAt(tenant, body.type, position, (overlay, at) => overlay.hide(at));
    }
  }

  /** The tables that a reader of this branch reads, oldest first. `types` are the branch's own declarations. */
  layersOf(tenant: string | null, type: string, types: DeclaredTypes): TableLayer[] {
    const layers: TableLayer[] = [];
    this.lower.forEach(({ layer, end }, index) => {
      const table = layer.table(tenant, type);
      if (!table || table.segments.length === 0 || table.segments[0]!.base >= end) return;
      // Whoever stands between that layer and this one may have changed its rows, up to where the next was forked.
      const between = [...this.lower.slice(index + 1), { layer: this as Layer, end: Infinity }];
      const overlays = between.flatMap((upper) => {
        const overlay = upper.layer.overlay(table);
        return overlay ? [{ overlay, end: upper.end }] : [];
      });
      layers.push({ table, inherited: new Inherited(end, overlays, types) });
    });
    const own = this.table(tenant, type);
    if (own) layers.push({ table: own, inherited: null });
    return layers;
  }

  #inheritedAt(tenant: string | null, type: string, position: number, change: (overlay: Overlay, row: number) => void): void {
    const below = this.lower.findLast(({ layer }) => layer.id <= position);
    const table = below?.layer.table(tenant, type);
    const row = table && position < below!.end ? table.rowAt(position) : NO_ROW;
    assert(table && row !== NO_ROW, 'a branch changes rows that it inherited');
    let overlay = this.#overlays.get(table);
    if (!overlay) this.#overlays.set(table, (overlay = new Overlay()));
    change(overlay, row);
  }
}

/** What a branch's `type` entries said of names, as far as tables need it. */
export class ScopedNames {
  /** Names that a tenant defined itself: it inherits no columns of them. */
  readonly #own: Set<string>;
  /** By scope and name the property that says whose rows of the type are. */
  readonly #subjects: Map<string, string>;

  constructor(own: Iterable<string> = [], subjects: Iterable<readonly [string, string]> = []) {
    this.#own = new Set(own);
    this.#subjects = new Map(subjects);
  }

  define(tenant: string | null, type: string, subject: string | null): void {
    const key = keyOf(tenant, type);
    if (tenant !== null) this.#own.add(key);
    if (subject !== null) this.#subjects.set(key, subject);
  }

  isOwn(tenant: string | null, type: string): boolean {
    return tenant !== null && this.#own.has(keyOf(tenant, type));
  }

  forget(tenant: string): void {
    const isOf = (key: string): boolean => key.startsWith(`${tenant}\0`);
    for (const key of this.#own) if (isOf(key)) this.#own.delete(key);
    for (const key of this.#subjects.keys()) if (isOf(key)) this.#subjects.delete(key);
  }

  /** Every property that ever said whose rows of a tenant's type are. */
  subjectsOf(tenant: string | null, type: string): readonly string[] {
    const found = [this.#subjects.get(keyOf(tenant, type)), this.#subjects.get(keyOf(null, type))];
    return [...new Set(found.filter((property) => property !== undefined))];
  }

  copy(): ScopedNames {
    return new ScopedNames(this.#own, this.#subjects);
  }

  saved(): { readonly own: readonly string[]; readonly subjects: readonly (readonly [string, string])[] } {
    return { own: [...this.#own], subjects: [...this.#subjects] };
  }
}

/** A control character can't occur in a path. */
const keyOf = (tenant: string | null, type: string): string => `${tenant ?? ''}\0${type}`;

/** Types of columns as a catalog declares them for one type. */
export function declaredTypes(catalog: CatalogReader, type: string): DeclaredTypes {
  const properties = catalog.type(type)?.properties;
  return (column) => (properties && Object.hasOwn(properties, column) ? properties[column]!.type : undefined);
}
