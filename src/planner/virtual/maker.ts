/** How rows of a relation are made: cells by the names of their columns. */
import type { Facts } from './facts.ts';
import type { Value } from './types.ts';

export type Row = readonly Value[];
/** Columns that are not said are NULL. */
export type Cells = Readonly<Record<string, Value>>;

export interface Maker {
  /** Cells that all of its rows have alike, unless they say otherwise: there may be as many rows as 10,000 types have columns. */
  readonly base?: Cells;
  all(facts: Facts): Iterable<Cells>;
  readonly by?: { readonly column: string; rows(facts: Facts, value: Value): Iterable<Cells> };
}
