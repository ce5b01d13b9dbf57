/** The contents of the catalogue: tables with their columns, made of the types and views that the caller may know of. */
import { splitTypeName, type ViewRecord } from '../../projections/access-paths.ts';
import type { BranchView } from '../../governance/gate-contract.ts';
import type { PropertyDefinition, TypeDefinition } from '../../log/entries/entry.ts';
import { type ColumnType, compareText } from '../../log/values/value.ts';
import { endsOf } from '../../projections/catalog/edge-columns.ts';
import { isNode } from '../graph/node-and-edge-types.ts';
import { readableColumns } from '../binding/source-binder.ts';
import type { OutputColumn } from '../planner-contract.ts';
import type { InstantStyle, ClientSession } from './client-session.ts';
import { type WireType, wireTypeOf } from './postgres-column-types.ts';

export interface TableColumn {
  readonly name: string;
  /** Number of the column, from 1. */
  readonly number: number;
  readonly type: WireType;
  /** Length of its vectors; -1 elsewhere. */
  readonly modifier: number;
  readonly notNull: boolean;
  /** The table whose key its values name, and the number of that constraint. */
  readonly references?: { readonly table: string; readonly oid: number };
}

export interface Table {
  readonly oid: number;
  readonly name: string;
  /** r: a type; v: a view; m: a materialized one. */
  readonly kind: 'r' | 'v' | 'm';
  /** Null: it is a view, whose columns follow from its query. */
  readonly columns: readonly TableColumn[] | null;
  /** The column that is its primary key. */
  readonly key: TableColumn | null;
  /** The columns of it that name keys of a table. */
  readonly references: readonly TableColumn[];
  /** Whether its rows are edges of the graph, and whether they are nodes of it. */
  readonly inGraph: { readonly edges: boolean; readonly nodes: boolean };
  /** The query of a view. */
  readonly sql: string | null;
}

export interface CatalogueContents {
  readonly session: ClientSession;
  readonly tables: CatalogueTables;
  readonly tableOf: (oid: number) => Table | undefined;
  readonly tableNamed: (name: string) => Table | undefined;
  readonly columnsOf: (table: Table) => readonly TableColumn[];
  /** Whether rows of it may be read at all. */
  readonly isReadable: (table: Table) => boolean;
  /** Branches, main by the names that it has as a database. */
  readonly databases: readonly { readonly oid: number; readonly name: string }[];
}

/** Beside a table stand its index and its constraint. */
export const indexOf = ({ oid }: Table): number => oid + 1;
/** Types have keys, views have none. */
export const isKeyed = ({ kind }: Table): boolean => kind === 'r';
export const keyName = ({ name }: Table): string => `${name}_pkey`;
/** Name of the table whose key has this one. */
export const keyedName = (key: string): string => key.replace(/_pkey$/, '');

/** A key of a table: its primary key, or a reference to a row of another table. */
export interface Constraint {
  readonly oid: number;
  readonly name: string;
  readonly table: Table;
  readonly column: TableColumn;
  /** Null: it is the primary key. */
  readonly target: Table | null;
}

export function constraintsOf(table: Table, { tables }: Pick<CatalogueContents, 'tables'>): readonly Constraint[] {
  return [...(table.key ? [primaryKeyConstraint(table, table.key)] : []), ...tables.referencesOf(table)];
}

/** The number of a table's primary key, beyond that of the table. */
const keyConstraintOffset = 2;

function primaryKeyConstraint(table: Table, column: TableColumn): Constraint {
  return { oid: table.oid + keyConstraintOffset, name: keyName(table), table, column, target: null };
}

/** One question's access to tables that are kept for more of the same view. */
export function factsOf({
  session,
  tables,
  branches,
  offers,
  viewColumns,
  check: checkCatalogue,
}: {
  readonly session: ClientSession;
  readonly tables: () => CatalogueTables;
  readonly branches: readonly BranchView[];
  readonly offers: (type: string) => boolean;
  readonly viewColumns: ViewColumns;
  /** Called before tables are listed: throws where the caller may see none. */
  readonly check: () => void;
}): CatalogueContents {
  const databaseNames = [...new Set(['annals', session.database, ...branches.map(({ name }) => name)])];
  let areTablesChecked = false;
  const checkTables = (): CatalogueTables => {
    if (!areTablesChecked) checkCatalogue();
    areTablesChecked = true;
    return tables();
  };
  const { instants: instantStyle } = session.variables;
  const viewColumnsByTable = new Map<Table, readonly TableColumn[]>();
  const tableColumnsOfView = (table: Table): readonly TableColumn[] => {
    let viewTableColumns = viewColumnsByTable.get(table);
    if (viewTableColumns === undefined) {
      viewTableColumns = viewColumns(table.name).map((column, i) => tableColumnOf(column, i + 1, instantStyle, undefined, false));
      viewColumnsByTable.set(table, viewTableColumns);
    }
    return viewTableColumns;
  };
  return {
    session,
    get tables() {
      return checkTables();
    },
    tableOf: (oid) => (oid < firstTableOid ? undefined : checkTables().tableOfOid(oid - (oid % 4))),
    tableNamed: (name) => checkTables().tableNamed(name),
    columnsOf: (table) => table.columns ?? tableColumnsOfView(table),
    isReadable: (table) => table.kind !== 'r' || checkTables().isReadable(table, offers),
    databases: databaseNames.reduce<{ oid: number; name: string }[]>((numberedDatabases, name) => {
      const databaseOid = freeOidOf(`\0${name}`, (taken) => numberedDatabases.some((each) => each.oid === taken));
      return [...numberedDatabases, { oid: databaseOid, name }];
    }, []),
  };
}

export type ViewColumns = (view: string) => readonly OutputColumn[];

/** The tables that one caller sees: they follow from definitions and views, and hold on to nothing of a question. */
export class CatalogueTables implements Iterable<Table> {
  readonly #typeDefinitions: readonly TypeDefinition[];
  readonly #viewRecords: readonly ViewRecord[];
  readonly #instantStyle: InstantStyle;
  /** Null once all tables are made. */
  #tablesBefore: CatalogueTables | null;
  readonly #tables: Table[] = [];
  #nextTypeOrdinal = 0;
  /** Number of the earlier table that comes next. */
  #nextBeforeOrdinal = 0;
  #nextViewOrdinal = 0;
  readonly #readableTables: WeakMap<Table, boolean>;
  readonly #tablesByOid = new Map<number, Table>();
  readonly #tablesByName = new Map<string, Table>();
  #areTablesWhole = false;
  #referenceConstraints: ReadonlyMap<number, Constraint> | null = null;

  /** `viewRecords` has one view for each name; `tablesBefore` has all the tables that were seen until a type or a view changed. */
  constructor(
    typeDefinitions: readonly TypeDefinition[],
    viewRecords: readonly ViewRecord[],
    instantStyle: InstantStyle,
    tablesBefore: CatalogueTables | null = null,
  ) {
    this.#typeDefinitions = typeDefinitions;
    this.#viewRecords = viewRecords;
    this.#instantStyle = instantStyle;
    this.#tablesBefore = tablesBefore;
    this.#readableTables = tablesBefore === null ? new WeakMap() : tablesBefore.#readableTables;
  }

  /** `offers` says so under the grant of the view, which is the same for all who ask. */
  isReadable(table: Table, offers: (type: string) => boolean): boolean {
    let isTableReadable = this.#readableTables.get(table);
    if (isTableReadable === undefined) this.#readableTables.set(table, (isTableReadable = offers(table.name)));
    return isTableReadable;
  }

  /** Whether all tables are made. */
  get isWhole(): boolean {
    return this.#areTablesWhole;
  }

  /** Memory that they may take, with their columns. */
  get bytes(): number {
    return this.#tables.length * catalogueTableBytes;
  }

  /** The nth table; undefined: there are no more. Made when it is first asked for: there may be 10,000. */
  tableAt(n: number): Table | undefined {
    while (this.#tables.length <= n && this.#makeTable());
    return this.#tables[n];
  }

  /** How many are made. */
  get count(): number {
    return this.#tables.length;
  }

  /** Makes more of them, as many as one step has time for; false: all are made. */
  makeSome(): boolean {
    for (let i = 0; i < catalogueTablesPerStep; i++) if (!this.#makeTable()) return false;
    return true;
  }

  *[Symbol.iterator](): Iterator<Table> {
    for (let n = 0; ; n++) {
      const table = this.tableAt(n);
      if (table === undefined) return;
      yield table;
    }
  }

  tableOfOid(oid: number): Table | undefined {
    while (!this.#tablesByOid.has(oid) && this.#makeTable());
    return this.#tablesByOid.get(oid);
  }

  tableNamed(name: string): Table | undefined {
    while (!this.#tablesByName.has(name) && this.#makeTable());
    return this.#tablesByName.get(name);
  }

  constraint(oid: number): Constraint | undefined {
    if (oid % 4 === keyConstraintOffset) {
      const table = this.tableOfOid(oid - keyConstraintOffset);
      return table?.key ? primaryKeyConstraint(table, table.key) : undefined;
    }
    this.#referenceConstraints ??= new Map(
      [...this].flatMap((table) => this.referencesOf(table).map((each) => [each.oid, each] as const)),
    );
    return this.#referenceConstraints.get(oid);
  }

  /** A reference to a table that the caller does not see is none. */
  referencesOf(table: Table): readonly Constraint[] {
    const constraints: Constraint[] = [];
    for (const referencingColumn of table.references) {
      const referencedTable = this.tableNamed(referencingColumn.references!.table);
      if (!referencedTable?.key) continue;
      constraints.push({
        oid: referencingColumn.references!.oid,
        name: `${table.name}_${referencingColumn.name}_fkey`,
        table,
        column: referencingColumn,
        target: referencedTable,
      });
    }
    return constraints;
  }

  /** False: there are no more. */
  #makeTable(): boolean {
    const madeTable = this.#areTablesWhole ? undefined : this.#nextTable();
    if (madeTable === undefined) {
      this.#areTablesWhole = true;
      this.#tablesBefore = null;
      return false;
    }
    this.#tables.push(madeTable);
    this.#tablesByOid.set(madeTable.oid, madeTable);
    this.#tablesByName.set(madeTable.name, madeTable);
    return true;
  }

  #nextTable(): Table | undefined {
    while (this.#nextTypeOrdinal < this.#typeDefinitions.length) {
      const typeDefinition = this.#typeDefinitions[this.#nextTypeOrdinal++]!;
      if (splitTypeName(typeDefinition.name) !== null) continue;
      const knownTable = this.#tablesBefore === null ? undefined : this.#typeTableBefore(typeDefinition, this.#tablesBefore);
      // An unchanged type keeps its table, with the columns that were made.
      if (knownTable?.hasFirstOid === true && !this.#tablesByOid.has(knownTable.oid)) return knownTable;
      const tableOid = this.#tableOidOf(typeDefinition.name);
      return knownTable?.oid === tableOid ? knownTable : new TypeAsTable(tableOid, typeDefinition, this.#instantStyle);
    }
    const viewRecord = this.#viewRecords[this.#nextViewOrdinal++];
    return viewRecord && viewAsTable(this.#tableOidOf(viewRecord.name), viewRecord);
  }

  /** The table of an unchanged definition: both lists are in the order of names. */
  #typeTableBefore(definition: TypeDefinition, tablesBefore: CatalogueTables): TypeAsTable | undefined {
    const tables = tablesBefore.#tables;
    for (; this.#nextBeforeOrdinal < tables.length; this.#nextBeforeOrdinal++) {
      const earlierTable = tables[this.#nextBeforeOrdinal]!;
      if (!(earlierTable instanceof TypeAsTable)) return undefined;
      if (earlierTable.definition === definition) return earlierTable;
      if (compareText(earlierTable.name, definition.name) >= 0) return undefined;
    }
    return undefined;
  }

  #tableOidOf(name: string): number {
    return freeOidOf(name, (oid) => this.#tablesByOid.has(oid));
  }
}

const catalogueTablesPerStep = 1_024;
/** A dozen columns and the maps that it is in. */
const catalogueTableBytes = 2_048;

function viewAsTable(oid: number, { name, sql, refreshSecs }: ViewRecord): Table {
  const viewKind = refreshSecs === 0 ? 'v' : 'm';
  return { oid, name, kind: viewKind, columns: null, key: null, references: [], inGraph: { edges: false, nodes: false }, sql };
}

/** Columns are made on first use: a tenant may have 10,000 types. */
class TypeAsTable implements Table {
  readonly kind = 'r';
  readonly sql = null;
  readonly oid: number;
  readonly name: string;
  readonly definition: TypeDefinition;
  readonly #instantStyle: InstantStyle;
  #typeColumns: readonly TableColumn[] | null = null;
  #keyColumn: TableColumn | null = null;
  #referencingColumns: readonly TableColumn[] | null = null;

  /** Whether no other name has the number that this one has by itself. */
  readonly hasFirstOid: boolean;

  constructor(oid: number, definition: TypeDefinition, instantStyle: InstantStyle) {
    this.oid = oid;
    this.hasFirstOid = oid === firstOidOf(definition.name);
    this.name = definition.name;
    this.definition = definition;
    this.#instantStyle = instantStyle;
  }

  get inGraph(): Table['inGraph'] {
    return { edges: endsOf(this.definition) !== null, nodes: isNode(this.definition) };
  }

  get references(): readonly TableColumn[] {
    return (this.#referencingColumns ??= Object.values(this.definition.properties).some(
      ({ references }) => references !== undefined,
    )
      ? this.columns.filter(({ references }) => references !== undefined)
      : []);
  }

  get columns(): readonly TableColumn[] {
    if (this.#typeColumns) return this.#typeColumns;
    const { properties, primaryKey } = this.definition;
    this.#typeColumns = readableColumns(this.definition).map((column, i) => {
      const columnProperty = Object.hasOwn(properties, column.name) ? properties[column.name] : undefined;
      const isNotNull = column.name === primaryKey || columnProperty?.required === true || neverNullColumns.has(column.name);
      return tableColumnOf(column, i + 1, this.#instantStyle, columnProperty, isNotNull, this.name);
    });
    return this.#typeColumns;
  }

  get key(): TableColumn {
    const keyColumnName = this.definition.primaryKey ?? '_pk';
    return (this.#keyColumn ??= this.columns.find((column) => column.name === keyColumnName)!);
  }
}

const neverNullColumns: ReadonlySet<string> = new Set(['_pk', 'valid_from', 'valid_to', 'system_from', 'system_to']);

function tableColumnOf(
  { name, type }: { readonly name: string; readonly type: ColumnType },
  columnNumber: number,
  instants: InstantStyle,
  property: PropertyDefinition | undefined,
  notNull: boolean,
  table = '',
): TableColumn {
  const typeModifier = type === 'vector' && property && property.dims > 0 ? property.dims : -1;
  const referencedTable = property?.references;
  return {
    name,
    number: columnNumber,
    type: wireTypeOf({ name, type }, instants),
    modifier: typeModifier,
    notNull,
    // Numbers of tables are four apart: this is the one behind another name's constraint.
    ...(referencedTable !== undefined && { references: { table: referencedTable, oid: firstOidOf(`${table}\0${name}`) + 3 } }),
  };
}

/** The number of a name, kept from one statement to the next, each four apart; those of Postgres' own things are smaller. */
function freeOidOf(name: string, isTaken: (candidateOid: number) => boolean): number {
  let candidateOid = firstOidOf(name);
  while (isTaken(candidateOid)) candidateOid = candidateOid === lastTableOid ? firstTableOid : candidateOid + 4;
  return candidateOid;
}

/** The number of a name, unless another name that came before has it. */
function firstOidOf(name: string): number {
  let nameHash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) nameHash = Math.imul(nameHash ^ name.charCodeAt(i), 0x01000193);
  return firstTableOid + ((nameHash >>> 0) % tableOidCount) * 4;
}

/** Numbers of a table and of its column, as the catalogue tells them; undefined: it tells of none. */
export function fieldOrigin(
  definition: TypeDefinition,
  column: string,
): { readonly table: number; readonly column: number } | undefined {
  const fieldOrdinal = readableColumns(definition).findIndex(({ name }) => name === column);
  return fieldOrdinal < 0 ? undefined : { table: firstOidOf(definition.name), column: fieldOrdinal + 1 };
}

const firstTableOid = 1 << 20;
/** Below 2^31: not every client takes the upper half of the numbers. */
const tableOidCount = ((1 << 30) - firstTableOid) / 4;
const lastTableOid = firstTableOid + (tableOidCount - 1) * 4;
