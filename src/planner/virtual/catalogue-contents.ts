/** The contents of the catalogue: tables with their columns, made of the types and views that the caller may know of. */
import { splitTypeName } from '../../projections/access-paths.ts';
import type { BranchView, GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { PropertyDefinition, TypeDefinition } from '../../log/entries/entry.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { endsOf } from '../../projections/catalog/edge-columns.ts';
import { isNode } from '../graph/graph-types.ts';
import { readableColumns } from '../binding/source-binder.ts';
import { namedViews } from '../languages/views.ts';
import type { OutputColumn } from '../planner-contract.ts';
import type { InstantStyle, Session } from './session.ts';
import { type WireType, wireTypeOf } from './wire-types.ts';

export interface TableColumn {
  readonly name: string;
  /** Number of the column, from 1. */
  readonly number: number;
  readonly type: WireType;
  /** Length of its vectors; -1 elsewhere. */
  readonly modifier: number;
  readonly notNull: boolean;
  /** The table whose key its values name. */
  readonly references?: string;
}

export interface Table {
  readonly oid: number;
  readonly name: string;
  /** r: a type; v: a view; m: a materialized one. */
  readonly kind: 'r' | 'v' | 'm';
  /** Null: columns of views were not requested. */
  readonly columns: readonly TableColumn[] | null;
  /** How many columns it has. */
  readonly width: number | null;
  /** The column that is its primary key. */
  readonly key: TableColumn | null;
  /** Whether rows of it may be read at all. */
  readonly isReadable: boolean;
  /** Whether its rows are edges of the graph, and whether they are nodes of it. */
  readonly inGraph: { readonly edges: boolean; readonly nodes: boolean };
  /** The query of a view. */
  readonly sql: string | null;
}

export interface CatalogueContents {
  readonly session: Session;
  readonly tables: Iterable<Table>;
  readonly tableOf: (oid: number) => Table | undefined;
  readonly tableNamed: (name: string) => Table | undefined;
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

/** A reference to a table that the caller does not see is none. */
export function constraintsOf(table: Table, { tableNamed }: Pick<CatalogueContents, 'tableNamed'>): readonly Constraint[] {
  const found: Constraint[] = [];
  if (table.key) found.push({ oid: table.oid + 2, name: keyName(table), table, column: table.key, target: null });
  for (const column of table.columns ?? []) {
    const target = column.references === undefined ? undefined : tableNamed(column.references);
    if (!target?.key) continue;
    // Numbers of tables are four apart: this is the one behind another name's constraint.
    const oid = firstNumberOf(`${table.name}\0${column.name}`) + 3;
    found.push({ oid, name: `${table.name}_${column.name}_fkey`, table, column, target });
  }
  return found;
}

export function factsOf(
  session: Session,
  snapshot: GovernedSnapshot,
  branches: readonly BranchView[],
  /** Columns of views, where they are wanted. */
  viewColumns: ViewColumns | null,
  /** Before it tells of tables: throws where the caller may know of none. */
  check: () => void = () => undefined,
): CatalogueContents {
  let made: Made<Table> | null = null;
  const tables = (): Made<Table> => {
    if (made === null) check();
    return (made ??= new Made(knownTables(session, snapshot, viewColumns)));
  };
  let known: Known | null = null;
  const all = (): Known => (known ??= knownBy([...tables()]));
  const names = [...new Set(['annals', session.database, ...branches.map(({ name }) => name)])];
  const numbers = new Numbers();
  return {
    session,
    get tables() {
      return tables();
    },
    tableOf: (oid) => (oid < firstOid ? undefined : all().byOid.get(oid - (oid % 4))),
    tableNamed: (name) => all().byName.get(name),
    databases: names.map((name) => ({ oid: numbers.assign(`\0${name}`), name })),
  };
}

export type ViewColumns = (view: string) => readonly OutputColumn[];

/** Made one by one, while they are read for the first time: there may be 10,000. */
class Made<T> implements Iterable<T> {
  readonly #made: T[] = [];
  readonly #rest: Iterator<T>;

  constructor(rest: Iterable<T>) {
    this.#rest = rest[Symbol.iterator]();
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = 0; ; i++) {
      if (i === this.#made.length) {
        const { done, value } = this.#rest.next();
        if (done === true) return;
        this.#made.push(value);
      }
      yield this.#made[i]!;
    }
  }
}

interface Known {
  readonly byOid: ReadonlyMap<number, Table>;
  readonly byName: ReadonlyMap<string, Table>;
}

/** Made for questions that are about tables: many of what psql asks are not. */
function* knownTables(session: Session, snapshot: GovernedSnapshot, viewColumns: ViewColumns | null): Iterable<Table> {
  const { catalog, offers } = snapshot;
  const oids = new Numbers();
  const instants = session.variables.instants;
  for (const definition of catalog.types())
    if (splitTypeName(definition.name) === null) yield new TypeTable(oids.assign(definition.name), definition, offers, instants);
  for (const { name, sql, refreshSecs } of namedViews(snapshot)) {
    let columns: readonly TableColumn[] | null = null;
    yield {
      oid: oids.assign(name),
      name,
      kind: refreshSecs === 0 ? 'v' : 'm',
      get columns() {
        if (viewColumns === null) return null;
        return (columns ??= viewColumns(name).map((column, i) => columnOf(column, i + 1, instants, undefined, false)));
      },
      get width() {
        return this.columns?.length ?? null;
      },
      key: null,
      isReadable: true,
      inGraph: { edges: false, nodes: false },
      sql,
    };
  }
}

function knownBy(tables: readonly Table[]): Known {
  return {
    byOid: new Map(tables.map((table) => [table.oid, table])),
    byName: new Map(tables.map((table) => [table.name, table])),
  };
}

/** Columns are made on first use: a tenant may have 10,000 types. */
class TypeTable implements Table {
  readonly kind = 'r';
  readonly sql = null;
  readonly oid: number;
  readonly name: string;
  readonly #definition: TypeDefinition;
  readonly #offers: (name: string) => boolean;
  readonly #instants: InstantStyle;
  #columns: readonly TableColumn[] | null = null;

  constructor(oid: number, definition: TypeDefinition, offers: (name: string) => boolean, instants: InstantStyle) {
    this.oid = oid;
    this.name = definition.name;
    this.#definition = definition;
    this.#offers = offers;
    this.#instants = instants;
  }

  get inGraph(): Table['inGraph'] {
    return { edges: endsOf(this.#definition) !== null, nodes: isNode(this.#definition) };
  }

  get isReadable(): boolean {
    return this.#offers(this.name);
  }

  get columns(): readonly TableColumn[] {
    if (this.#columns) return this.#columns;
    const { properties, primaryKey } = this.#definition;
    this.#columns = readableColumns(this.#definition).map((column, i) => {
      const property = Object.hasOwn(properties, column.name) ? properties[column.name] : undefined;
      const notNull = column.name === primaryKey || property?.required === true || alwaysThere.has(column.name);
      return columnOf(column, i + 1, this.#instants, property, notNull);
    });
    return this.#columns;
  }

  get width(): number {
    return readableColumns(this.#definition).length;
  }

  get key(): TableColumn {
    const name = this.#definition.primaryKey ?? '_pk';
    return this.columns.find((column) => column.name === name)!;
  }
}

const alwaysThere: ReadonlySet<string> = new Set(['_pk', 'valid_from', 'valid_to', 'system_from', 'system_to']);

function columnOf(
  { name, type }: { readonly name: string; readonly type: ColumnType },
  number: number,
  instants: InstantStyle,
  property: PropertyDefinition | undefined,
  notNull: boolean,
): TableColumn {
  const modifier = type === 'vector' && property && property.dims > 0 ? property.dims : -1;
  const references = property?.references;
  return {
    name,
    number,
    type: wireTypeOf({ name, type }, instants),
    modifier,
    notNull,
    ...(references !== undefined && { references }),
  };
}

/** Numbers that names keep from one statement to the next, each four apart; those of Postgres' own things are smaller. */
class Numbers {
  readonly #taken = new Set<number>();

  assign(name: string): number {
    let oid = firstNumberOf(name);
    while (this.#taken.has(oid)) oid = oid === lastOid ? firstOid : oid + 4;
    this.#taken.add(oid);
    return oid;
  }
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
