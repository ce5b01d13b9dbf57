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
  return [...(table.key ? [primaryKeyOf(table, table.key)] : []), ...tables.referencesOf(table)];
}

/** The number of a table's primary key, beyond that of the table. */
const keyConstraint = 2;

function primaryKeyOf(table: Table, column: TableColumn): Constraint {
  return { oid: table.oid + keyConstraint, name: keyName(table), table, column, target: null };
}

/** One question's access to tables that are kept for more of the same view. */
export function factsOf({
  session,
  tables,
  branches,
  offers,
  viewColumns,
  check,
}: {
  readonly session: ClientSession;
  readonly tables: () => CatalogueTables;
  readonly branches: readonly BranchView[];
  readonly offers: (type: string) => boolean;
  readonly viewColumns: ViewColumns;
  /** Called before tables are listed: throws where the caller may see none. */
  readonly check: () => void;
}): CatalogueContents {
  const names = [...new Set(['annals', session.database, ...branches.map(({ name }) => name)])];
  let isChecked = false;
  const checkTables = (): CatalogueTables => {
    if (!isChecked) check();
    isChecked = true;
    return tables();
  };
  const { instants } = session.variables;
  const shown = new Map<Table, readonly TableColumn[]>();
  const columnsOfView = (table: Table): readonly TableColumn[] => {
    let columns = shown.get(table);
    if (columns === undefined) {
      columns = viewColumns(table.name).map((column, i) => columnOf(column, i + 1, instants, undefined, false));
      shown.set(table, columns);
    }
    return columns;
  };
  return {
    session,
    get tables() {
      return checkTables();
    },
    tableOf: (oid) => (oid < firstOid ? undefined : checkTables().tableOfOid(oid - (oid % 4))),
    tableNamed: (name) => checkTables().tableNamed(name),
    columnsOf: (table) => table.columns ?? columnsOfView(table),
    isReadable: (table) => table.kind !== 'r' || checkTables().isReadable(table, offers),
    databases: names.reduce<{ oid: number; name: string }[]>((all, name) => {
      const oid = numberOf(`\0${name}`, (taken) => all.some((each) => each.oid === taken));
      return [...all, { oid, name }];
    }, []),
  };
}

export type ViewColumns = (view: string) => readonly OutputColumn[];

/** The tables that one caller sees: they follow from definitions and views, and hold on to nothing of a question. */
export class CatalogueTables implements Iterable<Table> {
  readonly #types: readonly TypeDefinition[];
  readonly #views: readonly ViewRecord[];
  readonly #instants: InstantStyle;
  /** Null once all tables are made. */
  #before: CatalogueTables | null;
  readonly #tables: Table[] = [];
  #nextType = 0;
  /** Number of the earlier table that comes next. */
  #nextBefore = 0;
  #nextView = 0;
  readonly #readable: WeakMap<Table, boolean>;
  readonly #byOid = new Map<number, Table>();
  readonly #byName = new Map<string, Table>();
  #isWhole = false;
  #references: ReadonlyMap<number, Constraint> | null = null;

  /** `views` has one view for each name; `before` has all the tables that were seen until a type or a view changed. */
  constructor(
    types: readonly TypeDefinition[],
    views: readonly ViewRecord[],
    instants: InstantStyle,
    before: CatalogueTables | null = null,
  ) {
    this.#types = types;
    this.#views = views;
    this.#instants = instants;
    this.#before = before;
    this.#readable = before === null ? new WeakMap() : before.#readable;
  }

  /** `offers` says so under the grant of the view, which is the same for all who ask. */
  isReadable(table: Table, offers: (type: string) => boolean): boolean {
    let isReadable = this.#readable.get(table);
    if (isReadable === undefined) this.#readable.set(table, (isReadable = offers(table.name)));
    return isReadable;
  }

  /** Whether all tables are made. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Memory that they may take, with their columns. */
  get bytes(): number {
    return this.#tables.length * bytesPerTable;
  }

  /** The nth table; undefined: there are no more. Made when it is first asked for: there may be 10,000. */
  tableAt(n: number): Table | undefined {
    while (this.#tables.length <= n && this.#make());
    return this.#tables[n];
  }

  /** How many are made. */
  get count(): number {
    return this.#tables.length;
  }

  /** Makes more of them, as many as one step has time for; false: all are made. */
  makeSome(): boolean {
    for (let i = 0; i < tablesPerStep; i++) if (!this.#make()) return false;
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
    while (!this.#byOid.has(oid) && this.#make());
    return this.#byOid.get(oid);
  }

  tableNamed(name: string): Table | undefined {
    while (!this.#byName.has(name) && this.#make());
    return this.#byName.get(name);
  }

  constraint(oid: number): Constraint | undefined {
    if (oid % 4 === keyConstraint) {
      const table = this.tableOfOid(oid - keyConstraint);
      return table?.key ? primaryKeyOf(table, table.key) : undefined;
    }
    this.#references ??= new Map([...this].flatMap((table) => this.referencesOf(table).map((each) => [each.oid, each] as const)));
    return this.#references.get(oid);
  }

  /** A reference to a table that the caller does not see is none. */
  referencesOf(table: Table): readonly Constraint[] {
    const constraints: Constraint[] = [];
    for (const column of table.references) {
      const target = this.tableNamed(column.references!.table);
      if (!target?.key) continue;
      constraints.push({ oid: column.references!.oid, name: `${table.name}_${column.name}_fkey`, table, column, target });
    }
    return constraints;
  }

  /** False: there are no more. */
  #make(): boolean {
    const table = this.#isWhole ? undefined : this.#next();
    if (table === undefined) {
      this.#isWhole = true;
      this.#before = null;
      return false;
    }
    this.#tables.push(table);
    this.#byOid.set(table.oid, table);
    this.#byName.set(table.name, table);
    return true;
  }

  #next(): Table | undefined {
    while (this.#nextType < this.#types.length) {
      const definition = this.#types[this.#nextType++]!;
      if (splitTypeName(definition.name) !== null) continue;
      const known = this.#before === null ? undefined : this.#tableBefore(definition, this.#before);
      // An unchanged type keeps its table, with the columns that were made.
      if (known?.hasFirstOid === true && !this.#byOid.has(known.oid)) return known;
      const oid = this.#numberOf(definition.name);
      return known?.oid === oid ? known : new TypeTable(oid, definition, this.#instants);
    }
    const view = this.#views[this.#nextView++];
    return view && viewTable(this.#numberOf(view.name), view);
  }

  /** The table of an unchanged definition: both lists are in the order of names. */
  #tableBefore(definition: TypeDefinition, before: CatalogueTables): TypeTable | undefined {
    const tables = before.#tables;
    for (; this.#nextBefore < tables.length; this.#nextBefore++) {
      const table = tables[this.#nextBefore]!;
      if (!(table instanceof TypeTable)) return undefined;
      if (table.definition === definition) return table;
      if (compareText(table.name, definition.name) >= 0) return undefined;
    }
    return undefined;
  }

  #numberOf(name: string): number {
    return numberOf(name, (oid) => this.#byOid.has(oid));
  }
}

const tablesPerStep = 1_024;
/** A dozen columns and the maps that it is in. */
const bytesPerTable = 2_048;

function viewTable(oid: number, { name, sql, refreshSecs }: ViewRecord): Table {
  const kind = refreshSecs === 0 ? 'v' : 'm';
  return { oid, name, kind, columns: null, key: null, references: [], inGraph: { edges: false, nodes: false }, sql };
}

/** Columns are made on first use: a tenant may have 10,000 types. */
class TypeTable implements Table {
  readonly kind = 'r';
  readonly sql = null;
  readonly oid: number;
  readonly name: string;
  readonly definition: TypeDefinition;
  readonly #instants: InstantStyle;
  #columns: readonly TableColumn[] | null = null;
  #key: TableColumn | null = null;
  #references: readonly TableColumn[] | null = null;

  /** Whether no other name has the number that this one has by itself. */
  readonly hasFirstOid: boolean;

  constructor(oid: number, definition: TypeDefinition, instants: InstantStyle) {
    this.oid = oid;
    this.hasFirstOid = oid === firstNumberOf(definition.name);
    this.name = definition.name;
    this.definition = definition;
    this.#instants = instants;
  }

  get inGraph(): Table['inGraph'] {
    return { edges: endsOf(this.definition) !== null, nodes: isNode(this.definition) };
  }

  get references(): readonly TableColumn[] {
    return (this.#references ??= Object.values(this.definition.properties).some(({ references }) => references !== undefined)
      ? this.columns.filter(({ references }) => references !== undefined)
      : []);
  }

  get columns(): readonly TableColumn[] {
    if (this.#columns) return this.#columns;
    const { properties, primaryKey } = this.definition;
    this.#columns = readableColumns(this.definition).map((column, i) => {
      const property = Object.hasOwn(properties, column.name) ? properties[column.name] : undefined;
      const notNull = column.name === primaryKey || property?.required === true || alwaysThere.has(column.name);
      return columnOf(column, i + 1, this.#instants, property, notNull, this.name);
    });
    return this.#columns;
  }

  get key(): TableColumn {
    const name = this.definition.primaryKey ?? '_pk';
    return (this.#key ??= this.columns.find((column) => column.name === name)!);
  }
}

const alwaysThere: ReadonlySet<string> = new Set(['_pk', 'valid_from', 'valid_to', 'system_from', 'system_to']);

function columnOf(
  { name, type }: { readonly name: string; readonly type: ColumnType },
  number: number,
  instants: InstantStyle,
  property: PropertyDefinition | undefined,
  notNull: boolean,
  table = '',
): TableColumn {
  const modifier = type === 'vector' && property && property.dims > 0 ? property.dims : -1;
  const references = property?.references;
  return {
    name,
    number,
    type: wireTypeOf({ name, type }, instants),
    modifier,
    notNull,
    // Numbers of tables are four apart: this is the one behind another name's constraint.
    ...(references !== undefined && { references: { table: references, oid: firstNumberOf(`${table}\0${name}`) + 3 } }),
  };
}

/** The number of a name, kept from one statement to the next, each four apart; those of Postgres' own things are smaller. */
function numberOf(name: string, isTaken: (oid: number) => boolean): number {
  let oid = firstNumberOf(name);
  while (isTaken(oid)) oid = oid === lastOid ? firstOid : oid + 4;
  return oid;
}

/** The number of a name, unless another name that came before has it. */
function firstNumberOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return firstOid + ((hash >>> 0) % room) * 4;
}

/** Numbers of a table and of its column, as the catalogue tells them; undefined: it tells of none. */
export function fieldOrigin(
  definition: TypeDefinition,
  column: string,
): { readonly table: number; readonly column: number } | undefined {
  const index = readableColumns(definition).findIndex(({ name }) => name === column);
  return index < 0 ? undefined : { table: firstNumberOf(definition.name), column: index + 1 };
}

const firstOid = 1 << 20;
/** Below 2^31: not every client takes the upper half of the numbers. */
const room = ((1 << 30) - firstOid) / 4;
const lastOid = firstOid + (room - 1) * 4;
