/** How rows of a relation are made: cells by the names of their columns. */
import type { RelationColumns } from './relation-columns.ts';
import type { CatalogueContents, Table, TableColumn } from './catalogue-contents.ts';
import { type Value, wireOf } from './catalogue-types.ts';

/** Columns that are not said are NULL. */
export type Cells = Readonly<Record<string, Value>>;

/** A relation of the catalogue itself. */
export interface OwnRelation extends RelationColumns {
  readonly oid: number;
}

/** Anything with columns: a table, an index, a relation of the catalogue itself. */
export interface ColumnOwner {
  readonly oid: number;
  readonly name: string;
  /** Absent of tables, which are in `public`. */
  readonly schema?: string;
}

export type OwnedColumns = readonly [owner: ColumnOwner, columns: readonly TableColumn[]];

/** A row for each column: no object for each row, only a function for each of its cells. */
export interface ColumnRows {
  ofTable(table: Table, facts: CatalogueContents): readonly OwnedColumns[];
  /** Whether columns of the catalogue's own relations are among the rows. */
  readonly hasOwn: boolean;
  readonly cells: Readonly<Record<string, (column: TableColumn, owner: ColumnOwner, facts: CatalogueContents) => Value>>;
}

export interface Maker {
  /** Cells that all of its rows have alike: there may be as many rows as 10,000 types have columns. */
  readonly base?: Cells;
  /** Cells that are made where they are read, of the others of their row: they take long, or bind the query of a view. */
  readonly late?: Readonly<Record<string, (cells: Cells, facts: CatalogueContents) => Value>>;
  /** Rows that are about no table. A relation that has no other rows is made anew for each question: it may tell of the session. */
  all?(facts: CatalogueContents): Iterable<Cells>;
  ofTable?(table: Table, facts: CatalogueContents): Iterable<Cells>;
  /** Rows about a table tell of those that it refers to. */
  readonly refers?: true;
  ofRelation?(relation: OwnRelation, facts: CatalogueContents): Iterable<Cells>;
  /** Rows about columns, behind those of `all`: there may be very many. */
  readonly ofColumns?: ColumnRows;
  /** A column that tells rows apart: the first row with a value is the only one. */
  readonly distinct?: string;
  /** Columns that tell which table or relation a row describes, by its number or its name; dependent objects included. */
  readonly names?: Readonly<Record<string, 'oid' | 'name'>>;
}

const knownOwnColumns = new WeakMap<OwnRelation, readonly TableColumn[]>();

/** Columns of a relation of the catalogue itself. */
export function ownColumns(ownRelation: OwnRelation): readonly TableColumn[] {
  let ownTableColumns = knownOwnColumns.get(ownRelation);
  if (ownTableColumns === undefined) {
    ownTableColumns = ownRelation.columns.map(({ name, type }, i) => ({
      name,
      number: i + 1,
      type: wireOf(type),
      modifier: -1,
      notNull: false,
    }));
    knownOwnColumns.set(ownRelation, ownTableColumns);
  }
  return ownTableColumns;
}

/** Rows about columns as others are made: where there are few of them. */
export function* cellsOfColumns(
  { cells }: ColumnRows,
  ownedColumns: readonly OwnedColumns[],
  facts: CatalogueContents,
): Iterable<Cells> {
  const cellMakers = Object.entries(cells);
  for (const [owner, columns] of ownedColumns)
    for (const column of columns) {
      const cells: Record<string, Value> = {};
      for (const [name, makeCell] of cellMakers) cells[name] = makeCell(column, owner, facts);
      yield cells;
    }
}
