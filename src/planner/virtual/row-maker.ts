/** How rows of a relation are made: cells by the names of their columns. */
import type { RelationColumns } from './columns.ts';
import type { CatalogueContents, Table } from './catalogue-contents.ts';
import type { Value } from './types.ts';

export type Row = readonly Value[];
/** Columns that are not said are NULL. */
export type Cells = Readonly<Record<string, Value>>;

/** A relation of the catalogue itself. */
export interface OwnRelation extends RelationColumns {
  readonly oid: number;
}

export interface Maker {
  /** Cells that all of its rows have alike, unless they say otherwise: there may be as many rows as 10,000 types have columns. */
  readonly base?: Cells;
  /** Rows that are about no table. */
  all?(facts: CatalogueContents): Iterable<Cells>;
  ofTable?(table: Table, facts: CatalogueContents): Iterable<Cells>;
  ofRelation?(relation: OwnRelation, facts: CatalogueContents): Iterable<Cells>;
  /** Columns that tell which table or relation a row describes, by its number or its name; dependent objects included. */
  readonly names?: Readonly<Record<string, 'oid' | 'name'>>;
}
