/**
 * Resolves names in one SELECT: the tables of its FROM, each with the indexes of its columns in the input. A name that stands in
 * two tables is ambiguous; a name of an outer query is distinguished from an unknown one.
 */
import { didYouMean } from '../../errors.ts';
import { systemColumns } from '../../log/values/value.ts';
import { shownColumn } from '../../projections/access-paths.ts';
import { type Bound, columnsIn } from '../expressions/bound-expression.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { ColumnRef, Location } from '../syntax/statement.ts';
import { columnType, type Output, type OutputType } from './output-columns.ts';

export interface ScopeTable {
  /** Alias, else name of the type; null for a subquery without alias: its columns have no other name. */
  readonly name: string | null;
  /** The registered type whose rows these are; null for the rows of a query. */
  readonly type: string | null;
  readonly columns: readonly OutputType[];
  /** Number of its first column in the input. */
  readonly first: number;
  /** Positions that USING has merged with another table's: they are reached by the table's name only. */
  readonly hidden?: ReadonlySet<number>;
  /** The number of a relation of the catalogue: its `tableoid`, which `*` leaves out. */
  readonly oid?: number;
  /** Its rows are single values of a function: its name by itself is the value. */
  readonly isValue?: true | undefined;
  /** Whether errors may suggest its names. Absent: they may. */
  readonly isOffered?: () => boolean;
}

interface Candidate {
  readonly table: ScopeTable;
  readonly position: number;
}

/** The query around a subquery, whose names the subquery may use. */
export interface OuterQuery {
  knows(reference: ColumnRef): boolean;
  column(reference: ColumnRef): Bound;
}

export class Scope {
  readonly tables: readonly ScopeTable[];
  readonly #outer: readonly OuterQuery[];
  readonly #columnsByName = new Map<string, { readonly table: ScopeTable; readonly position: number }[]>();
  /** Masked columns, by number in the input. */
  readonly #masked = new Map<number, { readonly table: ScopeTable; readonly column: OutputType }>();

  constructor(tables: readonly ScopeTable[], outer: readonly OuterQuery[]) {
    this.tables = tables;
    this.#outer = outer;
    for (const table of tables) {
      table.columns.forEach((column, position) => {
        const { name } = column;
        if (column.masked !== undefined) this.#masked.set(table.first + position, { table, column });
        if (table.hidden?.has(position)) return;
        const sameNamed = this.#columnsByName.get(name);
        if (sameNamed) sameNamed.push({ table, position });
        else this.#columnsByName.set(name, [{ table, position }]);
      });
    }
  }

  /** Marks a column behind those of the tables as masked, or as computed from a masked one. */
  addMasked(index: number, { name, type, masked }: OutputType): void {
    // How the mask shows it stays behind in the query that it comes from: here it is NULL.
    this.#masked.set(index, { table: { name: null, type: null, columns: [], first: index }, column: { name, type, masked } });
  }

  has(name: string): boolean {
    return this.#columnsByName.has(name);
  }

  column(reference: ColumnRef): Bound {
    const { name, location } = reference;
    const candidates = this.#candidates(reference);
    const [match, another] = candidates;
    if (match && another) {
      const where = candidates.map(({ table }) => JSON.stringify(table.name ?? 'a subquery')).join(' and ');
      throw errorAt('REL_INVALID', `column ${JSON.stringify(name)} is ambiguous: ${where} have one`, location, 'ambiguous-name');
    }
    if (!match) {
      const outer = this.#outer.findLast((each) => each.knows(reference));
      if (outer) return outer.column(reference);
      const value = reference.table === null ? this.tables.find((table) => table.isValue && table.name === name) : undefined;
      if (value) return columnOf(value, 0);
      const oid = this.#tableOid(reference);
      if (oid !== undefined) return { kind: 'constant', cell: BigInt(oid), type: 'integer' };
      throw this.#unknown(reference);
    }
    return columnOf(match.table, match.position);
  }

  #tableOid({ table: qualifier, name }: ColumnRef): number | undefined {
    if (name !== 'tableoid') return undefined;
    const tables = this.tables.filter((table) => table.oid !== undefined && (qualifier === null || table.name === qualifier));
    return tables.length === 1 ? tables[0]!.oid : undefined;
  }

  /** `_pk`, `system_from` and the like, of the only table. */
  systemColumn(name: string, location: Location): Bound {
    return this.column({ kind: 'column', table: null, name, location });
  }

  /** `*` or `t.*`. */
  star(qualifier: string | null, location: Location): Output[] {
    const tables = qualifier === null ? this.tables : this.tables.filter(({ name }) => name === qualifier);
    if (qualifier !== null && tables.length === 0) throw this.#noTable(qualifier, location);
    return tables.flatMap((table) =>
      table.columns.flatMap(({ name }, position): Output[] =>
        qualifier === null && table.hidden?.has(position) ? [] : [{ name, bound: columnOf(table, position) }],
      ),
    );
  }

  /** Finds the first masked column that an expression over these tables reads. */
  maskedColumn(bound: Bound): OutputType | undefined {
    if (this.#masked.size === 0) return undefined;
    for (const index of columnsIn(bound)) {
      const maskedEntry = this.#masked.get(index);
      if (maskedEntry) return maskedEntry.column;
    }
    return undefined;
  }

  /** Refuses uses that would distinguish cells which the caller may not see. */
  refuseMasked(bound: Bound, use: string, location: Location): void {
    const column = this.maskedColumn(bound);
    if (column)
      throw errorAt('REL_MASKED_COLUMN', `column ${JSON.stringify(column.name)} is masked: ${use} can't take it`, location);
  }

  /** The column that shows a masked column, for use by itself in the output; undefined for any other expression. */
  shownAs(bound: Bound): Bound | undefined {
    const maskedEntry = bound.kind === 'column' ? this.#masked.get(bound.index) : undefined;
    if (bound.kind !== 'column' || maskedEntry?.column.shown === undefined) return undefined;
    return { ...bound, index: maskedEntry.table.first + maskedEntry.column.shown, name: shownColumn(bound.name) };
  }

  knows(reference: ColumnRef): boolean {
    return this.#candidates(reference).length > 0;
  }

  #candidates(reference: ColumnRef): readonly Candidate[] {
    const { table: qualifier, name, quoted } = reference;
    if (qualifier === null) {
      const candidates = this.#columnsByName.get(name);
      return candidates ?? (quoted ? [] : this.#candidatesInEitherCase(this.tables, name));
    }
    const exact = this.tables.filter((table) => table.name === qualifier);
    const named = exact.length > 0 || quoted ? exact : this.tables.filter((table) => isLike(table.name, qualifier));
    const tableMatches = named.flatMap((table) => {
      const position = table.columns.findIndex((column) => column.name === name);
      return position < 0 ? [] : [{ table, position }];
    });
    return tableMatches.length > 0 || quoted ? tableMatches : this.#candidatesInEitherCase(named, name);
  }

  /** Without quotes a name that the statement itself gives, or the catalogue, may be written in letters of either case; columns of types may not. */
  #candidatesInEitherCase(tables: readonly ScopeTable[], name: string): readonly Candidate[] {
    return tables.flatMap((table) =>
      table.type !== null
        ? []
        : table.columns.flatMap((column, position) =>
            isLike(column.name, name) && table.hidden?.has(position) !== true ? [{ table, position }] : [],
          ),
    );
  }

  #noTable(name: string, location: Location): Error {
    const guess = didYouMean(
      name,
      this.tables.flatMap((table) => table.name ?? []),
    );
    return errorAt(
      'REL_UNKNOWN_COLUMN',
      `there is no table ${JSON.stringify(name)} in FROM${guess}`,
      location,
      'no-such-table-here',
    );
  }

  #unknown(reference: ColumnRef): Error {
    const { table: qualifier, name, quoted, location } = reference;
    if (qualifier !== null && !this.tables.some((table) => table.name === qualifier)) return this.#noTable(qualifier, location);
    const tables = qualifier === null ? this.tables : this.tables.filter((table) => table.name === qualifier);
    const [only, ...others] = tables;
    const owner =
      others.length > 0 || !only
        ? 'no table in FROM has a column'
        : only.type !== null
          ? `type ${JSON.stringify(only.type)} has no column`
          : only.name === null
            ? 'there is no column'
            : `${JSON.stringify(only.name)} has no column`;
    const offered = tables.filter(({ isOffered }) => isOffered?.() !== false);
    const guess = didYouMean(name, new Set(offered.flatMap((table) => table.columns.map((column) => column.name))));
    const hint = (guess !== '' ? guess : quoted ? '; texts stand in single quotes' : '') + listColumns(offered);
    return errorAt('REL_UNKNOWN_COLUMN', `${owner} ${JSON.stringify(name)}${hint}`, location);
  }
}

const isLike = (name: string | null, other: string): boolean => name !== null && name.toLowerCase() === other.toLowerCase();

function columnOf(table: ScopeTable, position: number): Bound {
  const { name, type, wire } = table.columns[position]!;
  return { kind: 'column', index: table.first + position, name, type: columnType(type), ...(wire !== undefined && { wire }) };
}

/** Names of columns that an error lists, at most. */
const listedMax = 40;

/** Lists the column names of the tables for an error; system columns, which every type has, are left out. */
function listColumns(tables: readonly ScopeTable[]): string {
  let left = listedMax;
  const lists = tables.flatMap(({ name, type, columns }) => {
    const own = columns.flatMap((column) => (type !== null && Object.hasOwn(systemColumns, column.name) ? [] : column.name));
    if (own.length === 0 || left === 0) return [];
    const shown = own.slice(0, left);
    left -= shown.length;
    const more = own.length > shown.length ? ` and ${own.length - shown.length} more` : '';
    return `${tables.length === 1 || name === null ? 'it' : JSON.stringify(name)} has ${shown.join(', ')}${more}`;
  });
  return lists.map((list) => `; ${list}`).join('');
}
