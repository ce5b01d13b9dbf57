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
  readonly #rowStorage: RowStorage;
  /** By tenant, then type. */
  readonly #tablesByTenant = new Map<string | null, Map<string, Table>>();
  /** By the inherited table that they change. */
  readonly #branchOverlays = new Map<Table, BranchOverlay>();

  /** `names` are those of the branch that it was forked from. */
  constructor(id: number, lower: readonly LowerLayer[], rowStorage: RowStorage, names = new ScopedNames()) {
    this.id = id;
    this.lower = lower;
    this.names = names.copy();
    this.#rowStorage = rowStorage;
  }

  table(tenant: string | null, type: string): Table | undefined {
    return this.#tablesByTenant.get(tenant)?.get(type);
  }

  overlay(table: Table): BranchOverlay | undefined {
    return this.#branchOverlays.get(table);
  }

  /** By type, in codepoint order. */
  tablesOf(tenant: string | null): readonly Table[] {
    return [...(this.#tablesByTenant.get(tenant)?.values() ?? [])].sort((a, b) => compareText(a.type, b.type));
  }

  /** In no order: there may be many thousands, and putting them in one takes milliseconds. */
  *everyTable(): Generator<Table, void> {
    for (const tables of this.#tablesByTenant.values()) yield* tables.values();
  }

  /** By tenant, rows without one first, then by type, in codepoint order. */
  tables(): Table[] {
    return [...this.everyTable()].sort((a, b) => compareText(a.tenant ?? '', b.tenant ?? '') || compareText(a.type, b.type));
  }

  /** Returns the tables that the tenant had here. */
  forget(tenant: string): readonly Table[] {
    const forgottenTables = this.tablesOf(tenant);
    this.#tablesByTenant.delete(tenant);
    for (const overlaidTable of this.#branchOverlays.keys())
      if (overlaidTable.tenant === tenant) this.#branchOverlays.delete(overlaidTable);
    this.names.forget(tenant);
    return forgottenTables;
  }

  /** The tables that a definition is about, as this branch reads them: its tenant's, or those of everybody who inherits it. */
  layersMeant(tenant: string | null, type: string, types: DeclaredTypes): TableLayer[] {
    if (tenant !== null) return this.layersOf(tenant, type, types);
    const tenantsWithTables = new Set([
      ...this.lower.flatMap(({ layer }) => [...layer.#tablesByTenant.keys()]),
      ...this.#tablesByTenant.keys(),
    ]);
    const inheritingTenants = [...tenantsWithTables].filter((inheritingTenant) => !this.names.isOwn(inheritingTenant, type));
    return inheritingTenants.flatMap((inheritingTenant) => this.layersOf(inheritingTenant, type, types));
  }

  /** Applies a definition to the tables that it covers; tables of other branches keep theirs. */
  define(tenant: string | null, definition: TypeDefinition, subject: string | null, keepFormer: boolean): void {
    const { name, properties } = definition;
    const layersDefined = this.layersMeant(tenant, name, () => undefined);
    // Existing rows keep their former subject property.
    const formerSubject = layersDefined.some(({ table }) => table.segments.length > 0)
      ? this.names.subjectOf(tenant, name)
      : null;
    const indexedColumns = Object.entries(properties).flatMap(([definedColumn, property]) =>
      property.indexed ? definedColumn : [],
    );
    const edgeEnds = endsOf(definition);
    this.names.define(tenant, name, {
      subject: subject ?? formerSubject,
      indexed: indexedColumns,
      ends: edgeEnds === null ? [] : [edgeEnds.from, edgeEnds.to],
    });
    for (const { table, inherited } of layersDefined) {
      if (inherited) continue;
      for (const [definedColumn, { type }] of Object.entries(properties)) table.setColumnType(definedColumn, type, keepFormer);
    }
  }

  /** In the order of the layers that they change, then by tenant and type. */
  overlays(): { readonly layer: BranchLayer; readonly table: Table; readonly overlay: BranchOverlay }[] {
    if (this.#branchOverlays.size === 0) return [];
    return this.lower.flatMap(({ layer }) =>
      layer.tables().flatMap((table) => {
        const branchOverlay = this.#branchOverlays.get(table);
        return branchOverlay ? [{ layer, table, overlay: branchOverlay }] : [];
      }),
    );
  }

  get bytes(): number {
    let layerBytes = 0;
    for (const table of this.everyTable()) layerBytes += table.bytes;
    for (const overlay of this.#branchOverlays.values()) layerBytes += overlay.bytes;
    return layerBytes;
  }

  #layerTableFor(tenant: string | null, type: string): Table {
    const knownTable = this.table(tenant, type);
    if (knownTable) return knownTable;
    const newTable = new Table(tenant, type, this.#rowStorage, this.id);
    this.adoptTable(newTable);
    return newTable;
  }

  /** Takes a table from a checkpoint. */
  adoptTable(adoptedTable: Table): void {
    const tenantTables = this.#tablesByTenant.get(adoptedTable.tenant) ?? new Map<string, Table>();
    this.#tablesByTenant.set(adoptedTable.tenant, tenantTables.set(adoptedTable.type, adoptedTable));
  }

  adoptOverlay(table: Table, overlay: BranchOverlay): void {
    this.#branchOverlays.set(table, overlay);
  }

  append(rowsEntry: CommittedEntry, rowsBody: RowsBody, path: number): void {
    const tenant = tenantOf(rowsEntry.context.path);
    this.#layerTableFor(tenant, rowsBody.type).append(rowsEntry, rowsBody, path);
    if (this.lower.length === 0) return;
    const { closes, closeOffsets } = rowsBody;
    for (let row = 0; row < rowsBody.ops.length; row++) {
      for (let i = closeOffsets[row]!; i < closeOffsets[row + 1]!; i++) {
        if (closes[i]! < this.id)
          this.#changeInherited(tenant, rowsBody.type, closes[i]!, (overlay, overlayRow) =>
            overlay.close(overlayRow, rowsEntry.position + row),
          );
      }
    }
  }

  /** Hard delete, on this branch and in what was forked from it. */
  remove(tenant: string | null, removalBody: RemovalBody): void {
    const removalTable = this.table(tenant, removalBody.type);
    assert(removalTable || this.id > 0, 'a removal follows the rows that it removes');
    removalTable?.remove(removalBody.positions);
    for (const position of removalBody.positions) {
      if (position < this.id)
        this.#changeInherited(tenant, removalBody.type, position, (overlay, overlayRow) => overlay.hide(overlayRow));
    }
  }

  /** The tables that a reader of this branch reads, oldest first. `types` are the branch's own declarations. */
  layersOf(tenant: string | null, type: string, types: DeclaredTypes): TableLayer[] {
    const tableLayers: TableLayer[] = [];
    this.lower.forEach(({ layer, end }, index) => {
      const lowerTable = layer.table(tenant, type);
      if (!lowerTable || lowerTable.segments.length === 0 || lowerTable.segments[0]!.base >= end) return;
      // Layers between that one and this may have changed its rows, up to where the next was forked.
      const upperLayers = [...this.lower.slice(index + 1), { layer: this as BranchLayer, end: Infinity }];
      const upperOverlays = upperLayers.flatMap((upperLayer) => {
        const overlay = upperLayer.layer.overlay(lowerTable);
        return overlay ? [{ overlay, end: upperLayer.end }] : [];
      });
      tableLayers.push({ table: lowerTable, inherited: new Inherited(end, upperOverlays, types) });
    });
    const ownTable = this.table(tenant, type);
    if (ownTable) tableLayers.push({ table: ownTable, inherited: null });
    return tableLayers;
  }

  #changeInherited(
    tenant: string | null,
    type: string,
    position: number,
    changeOverlay: (branchOverlay: BranchOverlay, inheritedRow: number) => void,
  ): void {
    const layerBelow = this.lower.findLast(({ layer }) => layer.id <= position);
    const inheritedTable = layerBelow?.layer.table(tenant, type);
    const inheritedRow = inheritedTable && position < layerBelow!.end ? inheritedTable.rowAt(position) : NO_ROW;
    assert(inheritedTable && inheritedRow !== NO_ROW, 'a branch changes rows that it inherited');
    let branchOverlay = this.#branchOverlays.get(inheritedTable);
    if (!branchOverlay) this.#branchOverlays.set(inheritedTable, (branchOverlay = new BranchOverlay()));
    changeOverlay(branchOverlay, inheritedRow);
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
  #subjectColumns: Map<string, string | null>;
  /** The same way, columns that are indexed from the first row on; a name without any has none here. */
  #indexedColumns: Map<string, readonly string[]>;
  /** The same way, columns that are ends of edges. */
  #edgeEndColumns: Map<string, readonly string[]>;
  /** With a copy, until either of the two changes: there are as many names as tenants have types. */
  #areNamesShared = false;

  constructor({ subjects, indexed, ends = [] }: SavedNames = { subjects: [], indexed: [] }) {
    this.#subjectColumns = new Map(subjects);
    this.#indexedColumns = new Map(indexed);
    this.#edgeEndColumns = new Map(ends);
  }

  define(tenant: string | null, type: string, { subject, indexed = [], ends = [] }: DefinedName): void {
    this.#unshareNames();
    const scopedName = scopedNameOf(tenant, type);
    this.#subjectColumns.set(scopedName, subject);
    for (const [columnsByName, scopedColumns] of [
      [this.#indexedColumns, indexed],
      [this.#edgeEndColumns, ends],
    ] as const) {
      if (scopedColumns.length > 0) columnsByName.set(scopedName, scopedColumns);
      else columnsByName.delete(scopedName);
    }
  }

  /** True for a name that the tenant defined itself: it inherits nothing of it. */
  isOwn(tenant: string | null, type: string): boolean {
    return tenant !== null && this.#subjectColumns.has(scopedNameOf(tenant, type));
  }

  forget(tenant: string): void {
    this.#unshareNames();
    for (const scopedName of this.#subjectColumns.keys()) {
      if (!scopedName.startsWith(`${tenant}\0`)) continue;
      this.#subjectColumns.delete(scopedName);
      this.#indexedColumns.delete(scopedName);
      this.#edgeEndColumns.delete(scopedName);
    }
  }

  /** Columns of a tenant's type that are indexed from the first row on. */
  indexedOf(tenant: string | null, type: string): readonly string[] {
    return this.#indexedColumns.get(scopedNameOf(this.isOwn(tenant, type) ? tenant : null, type)) ?? [];
  }

  /** Columns of a tenant's type that are ends of edges. */
  endsOf(tenant: string | null, type: string): readonly string[] {
    return this.#edgeEndColumns.get(scopedNameOf(this.isOwn(tenant, type) ? tenant : null, type)) ?? [];
  }

  /** The property that says whose rows of a tenant's type are. */
  subjectOf(tenant: string | null, type: string): string | null {
    const ownSubject = this.#subjectColumns.get(scopedNameOf(tenant, type));
    return ownSubject === undefined
      ? (this.#subjectColumns.get(scopedNameOf(null, type)) ?? builtinSubjects.get(type) ?? null)
      : ownSubject;
  }

  copy(): ScopedNames {
    const namesCopy = new ScopedNames();
    namesCopy.#subjectColumns = this.#subjectColumns;
    namesCopy.#indexedColumns = this.#indexedColumns;
    namesCopy.#edgeEndColumns = this.#edgeEndColumns;
    this.#areNamesShared = namesCopy.#areNamesShared = true;
    return namesCopy;
  }

  #unshareNames(): void {
    if (this.#areNamesShared) {
      this.#subjectColumns = new Map(this.#subjectColumns);
      this.#indexedColumns = new Map(this.#indexedColumns);
      this.#edgeEndColumns = new Map(this.#edgeEndColumns);
    }
    this.#areNamesShared = false;
  }

  savedState(): SavedNames {
    return { subjects: [...this.#subjectColumns], indexed: [...this.#indexedColumns], ends: [...this.#edgeEndColumns] };
  }
}

/** A control character can't occur in a path. */
const scopedNameOf = (tenant: string | null, type: string): string => `${tenant ?? ''}\0${type}`;

/** Types of columns as a catalog declares them for one type. */
export function declaredTypes(catalog: CatalogReader, type: string): DeclaredTypes {
  const properties = catalog.type(type)?.properties;
  return (column) => (properties && Object.hasOwn(properties, column) ? properties[column]!.type : undefined);
}
