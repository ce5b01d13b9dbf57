/**
 * The rows of one branch: tables of its own writes, and its changes to inherited rows. It holds on to the layers below it, so
 * that rows of a deleted branch live as long as a branch reads them.
 */
import { builtinSubjects } from '../../catalog/builtin-types.ts';
import { assert } from '../../../errors.ts';
import type { CommittedEntry, RemovalBody, RowsBody, TypeDefinition } from '../../../log/entries/entry.ts';
import { compareText, tenantOf } from '../../../log/values/value.ts';
import type { CatalogReader } from '../../access-paths.ts';
import { endsOf } from '../../catalog/edge-columns.ts';
import type { TableLayer } from './lineage-table.ts';
import { type DeclaredTypes, Inherited, BranchOverlay } from './branch-overlay.ts';
import type { RowStorage } from './row-storage.ts';
import { NO_ROW } from '../segments/segment.ts';
import { Table } from './table.ts';

/** A layer that a branch reads: its positions below `end`, where the next one was forked from it. */
export interface LowerLayer {
  readonly layer: BranchLayer;
  readonly end: number;
}

export class BranchLayer {
  /** Position of the fork; 0 for main. */
  readonly id: number;
  /** Oldest first. Empty on main and where only types were forked. */
  readonly lower: readonly LowerLayer[];
  readonly names: ScopedNames;
  readonly #storage: RowStorage;
  /** By tenant, then type. */
  readonly #tables = new Map<string | null, Map<string, Table>>();
  /** By the inherited table that they change. */
  readonly #overlays = new Map<Table, BranchOverlay>();

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

  overlay(table: Table): BranchOverlay | undefined {
    return this.#overlays.get(table);
  }

  /** By type, in codepoint order. */
  tablesOf(tenant: string | null): readonly Table[] {
    return [...(this.#tables.get(tenant)?.values() ?? [])].sort((a, b) => compareText(a.type, b.type));
  }

  /** In no order: there may be many thousands, and putting them in one takes milliseconds. */
  *everyTable(): Generator<Table, void> {
    for (const tables of this.#tables.values()) yield* tables.values();
  }

  /** By tenant, rows without one first, then by type, in codepoint order. */
  tables(): Table[] {
    return [...this.everyTable()].sort((a, b) => compareText(a.tenant ?? '', b.tenant ?? '') || compareText(a.type, b.type));
  }

  /** Returns the tables that the tenant had here. */
  forget(tenant: string): readonly Table[] {
    const tables = this.tablesOf(tenant);
    this.#tables.delete(tenant);
    for (const table of this.#overlays.keys()) if (table.tenant === tenant) this.#overlays.delete(table);
    this.names.forget(tenant);
    return tables;
  }

  /** The tables that a definition is about, as this branch reads them: its tenant's, or those of everybody who inherits it. */
  layersMeant(tenant: string | null, type: string, types: DeclaredTypes): TableLayer[] {
    if (tenant !== null) return this.layersOf(tenant, type, types);
    const everybody = new Set([...this.lower.flatMap(({ layer }) => [...layer.#tables.keys()]), ...this.#tables.keys()]);
    const heirs = [...everybody].filter((each) => !this.names.isOwn(each, type));
    return heirs.flatMap((each) => this.layersOf(each, type, types));
  }

  /** Applies a definition to the tables that it covers; tables of other branches keep theirs. */
  define(tenant: string | null, definition: TypeDefinition, subject: string | null, keepFormer: boolean): void {
    const { name, properties } = definition;
    const meant = this.layersMeant(tenant, name, () => undefined);
    // Existing rows keep their former subject property.
    const former = meant.some(({ table }) => table.segments.length > 0) ? this.names.subjectOf(tenant, name) : null;
    const indexed = Object.entries(properties).flatMap(([column, property]) => (property.indexed ? column : []));
    const ends = endsOf(definition);
    this.names.define(tenant, name, { subject: subject ?? former, indexed, ends: ends === null ? [] : [ends.from, ends.to] });
    for (const { table, inherited } of meant) {
      if (inherited) continue;
      for (const [column, { type }] of Object.entries(properties)) table.setColumnType(column, type, keepFormer);
    }
  }

  /** In the order of the layers that they change, then by tenant and type. */
  overlays(): { readonly layer: BranchLayer; readonly table: Table; readonly overlay: BranchOverlay }[] {
    if (this.#overlays.size === 0) return [];
    return this.lower.flatMap(({ layer }) =>
      layer.tables().flatMap((table) => {
        const overlay = this.#overlays.get(table);
        return overlay ? [{ layer, table, overlay }] : [];
      }),
    );
  }

  get bytes(): number {
    let total = 0;
    for (const table of this.everyTable()) total += table.bytes;
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

  /** Takes a table from a checkpoint. */
  adoptTable(table: Table): void {
    const tables = this.#tables.get(table.tenant) ?? new Map<string, Table>();
    this.#tables.set(table.tenant, tables.set(table.type, table));
  }

  adoptOverlay(table: Table, overlay: BranchOverlay): void {
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
      // Layers between that one and this may have changed its rows, up to where the next was forked.
      const between = [...this.lower.slice(index + 1), { layer: this as BranchLayer, end: Infinity }];
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

  #inheritedAt(
    tenant: string | null,
    type: string,
    position: number,
    change: (overlay: BranchOverlay, row: number) => void,
  ): void {
    const below = this.lower.findLast(({ layer }) => layer.id <= position);
    const table = below?.layer.table(tenant, type);
    const row = table && position < below!.end ? table.rowAt(position) : NO_ROW;
    assert(table && row !== NO_ROW, 'a branch changes rows that it inherited');
    let overlay = this.#overlays.get(table);
    if (!overlay) this.#overlays.set(table, (overlay = new BranchOverlay()));
    change(overlay, row);
  }
}

export interface SavedNames {
  readonly subjects: readonly (readonly [string, string | null])[];
  readonly indexed: readonly (readonly [string, readonly string[]])[];
  /** Absent in what earlier releases saved. */
  readonly ends?: readonly (readonly [string, readonly string[]])[];
}

interface DefinedName {
  readonly subject: string | null;
  readonly indexed?: readonly string[];
  readonly ends?: readonly string[];
}

/** Declarations from a branch's `type` entries, as far as tables need them. */
export class ScopedNames {
  /** By scope and name the property that says whose rows of the type are; null: none does. */
  #subjects: Map<string, string | null>;
  /** The same way, columns that are indexed from the first row on; a name without any has none here. */
  #indexed: Map<string, readonly string[]>;
  /** The same way, columns that are ends of edges. */
  #ends: Map<string, readonly string[]>;
  /** With a copy, until either of the two changes: there are as many names as tenants have types. */
  #shared = false;

  constructor({ subjects, indexed, ends = [] }: SavedNames = { subjects: [], indexed: [] }) {
    this.#subjects = new Map(subjects);
    this.#indexed = new Map(indexed);
    this.#ends = new Map(ends);
  }

  define(tenant: string | null, type: string, { subject, indexed = [], ends = [] }: DefinedName): void {
    this.#takeOwn();
    const key = keyOf(tenant, type);
    this.#subjects.set(key, subject);
    for (const [all, columns] of [
      [this.#indexed, indexed],
      [this.#ends, ends],
    ] as const) {
      if (columns.length > 0) all.set(key, columns);
      else all.delete(key);
    }
  }

  /** True for a name that the tenant defined itself: it inherits nothing of it. */
  isOwn(tenant: string | null, type: string): boolean {
    return tenant !== null && this.#subjects.has(keyOf(tenant, type));
  }

  forget(tenant: string): void {
    this.#takeOwn();
    for (const key of this.#subjects.keys()) {
      if (!key.startsWith(`${tenant}\0`)) continue;
      this.#subjects.delete(key);
      this.#indexed.delete(key);
      this.#ends.delete(key);
    }
  }

  /** Columns of a tenant's type that are indexed from the first row on. */
  indexedOf(tenant: string | null, type: string): readonly string[] {
    return this.#indexed.get(keyOf(this.isOwn(tenant, type) ? tenant : null, type)) ?? [];
  }

  /** Columns of a tenant's type that are ends of edges. */
  endsOf(tenant: string | null, type: string): readonly string[] {
    return this.#ends.get(keyOf(this.isOwn(tenant, type) ? tenant : null, type)) ?? [];
  }

  /** The property that says whose rows of a tenant's type are. */
  subjectOf(tenant: string | null, type: string): string | null {
    const own = this.#subjects.get(keyOf(tenant, type));
    return own === undefined ? (this.#subjects.get(keyOf(null, type)) ?? builtinSubjects.get(type) ?? null) : own;
  }

  copy(): ScopedNames {
    const copy = new ScopedNames();
    copy.#subjects = this.#subjects;
    copy.#indexed = this.#indexed;
    copy.#ends = this.#ends;
    this.#shared = copy.#shared = true;
    return copy;
  }

  #takeOwn(): void {
    if (this.#shared) {
      this.#subjects = new Map(this.#subjects);
      this.#indexed = new Map(this.#indexed);
      this.#ends = new Map(this.#ends);
    }
    this.#shared = false;
  }

  savedState(): SavedNames {
    return { subjects: [...this.#subjects], indexed: [...this.#indexed], ends: [...this.#ends] };
  }
}

/** A control character can't occur in a path. */
const keyOf = (tenant: string | null, type: string): string => `${tenant ?? ''}\0${type}`;

/** Types of columns as a catalog declares them for one type. */
export function declaredTypes(catalog: CatalogReader, type: string): DeclaredTypes {
  const properties = catalog.type(type)?.properties;
  return (column) => (properties && Object.hasOwn(properties, column) ? properties[column]!.type : undefined);
}
