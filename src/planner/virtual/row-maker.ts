/** How rows of a relation are made: cells by the names of their columns. */
import type { RelationColumns } from './columns.ts';
import type { CatalogueContents, Table } from './catalogue-contents.ts';
import type { Value } from './types.ts';

/** Columns that are not said are NULL. */
export type Cells = Readonly<Record<string, Value>>;

/** A relation of the catalogue itself. */
export interface OwnRelation extends RelationColumns {
  readonly oid: number;
}

export interface Maker {
  /** Cells that all of its rows have alike: there may be as many rows as 10,000 types have columns. */
  readonly base?: Cells;
  /** Cells that are made where they are read, of the others of their row: they take long, or bind the query of a view. */
  readonly late?: Readonly<Record<string, (cells: Cells, facts: CatalogueContents) => Value>>;
  /** Rows that are about no table. A relation that has no other rows is made anew for each question: it may tell of the session. */
  all?(facts: CatalogueContents): Iterable<Cells>;
  ofTable?(table: Table, facts: CatalogueContents): Iterable<Cells>;
  ofRelation?(relation: OwnRelation, facts: CatalogueContents): Iterable<Cells>;
  /** A column that tells rows apart: the first row with a value is the only one. */
  readonly distinct?: string;
  /** Columns that tell which table or relation a row describes, by its number or its name; dependent objects included. */
  readonly names?: Readonly<Record<string, 'oid' | 'name'>>;
}
