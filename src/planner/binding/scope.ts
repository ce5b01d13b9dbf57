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

interface ColumnCandidate {
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
  readonly #outerQueries: readonly OuterQuery[];
  readonly #columnsByName = new Map<string, { readonly table: ScopeTable; readonly position: number }[]>();
  /** Masked columns, by number in the input. */
  readonly #maskedByIndex = new Map<number, { readonly table: ScopeTable; readonly column: OutputType }>();

  constructor(tables: readonly ScopeTable[], outer: readonly OuterQuery[]) {
    this.tables = tables;
    this.#outerQueries = outer;
    for (const table of tables) {
      table.columns.forEach((column, position) => {
        const { name } = column;
        if (column.masked !== undefined) this.#maskedByIndex.set(table.first + position, { table, column });
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
    this.#maskedByIndex.set(index, {
      table: { name: null, type: null, columns: [], first: index },
      column: { name, type, masked },
    });
  }

  has(name: string): boolean {
    return this.#columnsByName.has(name);
  }

  column(reference: ColumnRef): Bound {
    const { name, location } = reference;
    const candidates = this.#candidates(reference);
    const [match, ambiguousColumn] = candidates;
    if (match && ambiguousColumn) {
      const ambiguousTables = candidates.map(({ table }) => JSON.stringify(table.name ?? 'a subquery')).join(' and ');
      throw errorAt(
        'REL_INVALID',
        `column ${JSON.stringify(name)} is ambiguous: ${ambiguousTables} have one`,
        location,
        'ambiguous-name',
      );
    }
    if (!match) {
      const outerQuery = this.#outerQueries.findLast((each) => each.knows(reference));
      if (outerQuery) return outerQuery.column(reference);
      const valueTable = reference.table === null ? this.tables.find((table) => table.isValue && table.name === name) : undefined;
      if (valueTable) return scopeColumn(valueTable, 0);
      const tableOid = this.#tableOid(reference);
      if (tableOid !== undefined) return { kind: 'constant', cell: BigInt(tableOid), type: 'integer' };
      throw this.#unknownColumnError(reference);
    }
    return scopeColumn(match.table, match.position);
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
    if (qualifier !== null && tables.length === 0) throw this.#noTableError(qualifier, location);
    return tables.flatMap((table) =>
      table.columns.flatMap(({ name }, position): Output[] =>
        qualifier === null && table.hidden?.has(position) ? [] : [{ name, bound: scopeColumn(table, position) }],
      ),
    );
  }

  /** Finds the first masked column that an expression over these tables reads. */
  maskedColumn(bound: Bound): OutputType | undefined {
    if (this.#maskedByIndex.size === 0) return undefined;
    for (const index of columnsIn(bound)) {
      const maskedEntry = this.#maskedByIndex.get(index);
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
    const maskedEntry = bound.kind === 'column' ? this.#maskedByIndex.get(bound.index) : undefined;
    if (bound.kind !== 'column' || maskedEntry?.column.shown === undefined) return undefined;
    return { ...bound, index: maskedEntry.table.first + maskedEntry.column.shown, name: shownColumn(bound.name) };
  }

  knows(reference: ColumnRef): boolean {
    return this.#candidates(reference).length > 0;
  }

  #candidates(reference: ColumnRef): readonly ColumnCandidate[] {
    const { table: qualifier, name, quoted } = reference;
    if (qualifier === null) {
      const candidates = this.#columnsByName.get(name);
      return candidates ?? (quoted ? [] : this.#candidatesInEitherCase(this.tables, name));
    }
    const exactTables = this.tables.filter((table) => table.name === qualifier);
    const namedTables =
      exactTables.length > 0 || quoted ? exactTables : this.tables.filter((table) => isLikeName(table.name, qualifier));
    const tableMatches = namedTables.flatMap((table) => {
      const position = table.columns.findIndex((column) => column.name === name);
      return position < 0 ? [] : [{ table, position }];
    });
    return tableMatches.length > 0 || quoted ? tableMatches : this.#candidatesInEitherCase(namedTables, name);
  }

  /** Without quotes a name that the statement itself gives, or the catalogue, may be written in letters of either case; columns of types may not. */
  #candidatesInEitherCase(tables: readonly ScopeTable[], name: string): readonly ColumnCandidate[] {
    return tables.flatMap((table) =>
      table.type !== null
        ? []
        : table.columns.flatMap((column, position) =>
            isLikeName(column.name, name) && table.hidden?.has(position) !== true ? [{ table, position }] : [],
          ),
    );
  }

  #noTableError(name: string, location: Location): Error {
    const tableGuess = didYouMean(
      name,
      this.tables.flatMap((table) => table.name ?? []),
    );
    return errorAt(
      'REL_UNKNOWN_COLUMN',
      `there is no table ${JSON.stringify(name)} in FROM${tableGuess}`,
      location,
      'no-such-table-here',
    );
  }

  #unknownColumnError(reference: ColumnRef): Error {
    const { table: qualifier, name, quoted, location } = reference;
    if (qualifier !== null && !this.tables.some((table) => table.name === qualifier))
      return this.#noTableError(qualifier, location);
    const tables = qualifier === null ? this.tables : this.tables.filter((table) => table.name === qualifier);
    const [onlyTable, ...otherTables] = tables;
    const ownerText =
      otherTables.length > 0 || !onlyTable
        ? 'no table in FROM has a column'
        : onlyTable.type !== null
          ? `type ${JSON.stringify(onlyTable.type)} has no column`
          : onlyTable.name === null
            ? 'there is no column'
            : `${JSON.stringify(onlyTable.name)} has no column`;
    const offeredTables = tables.filter(({ isOffered }) => isOffered?.() !== false);
    const columnGuess = didYouMean(name, new Set(offeredTables.flatMap((table) => table.columns.map((column) => column.name))));
    const columnHint =
      (columnGuess !== '' ? columnGuess : quoted ? '; texts stand in single quotes' : '') + listColumns(offeredTables);
    return errorAt('REL_UNKNOWN_COLUMN', `${ownerText} ${JSON.stringify(name)}${columnHint}`, location);
  }
}

const isLikeName = (name: string | null, other: string): boolean => name !== null && name.toLowerCase() === other.toLowerCase();

function scopeColumn(table: ScopeTable, position: number): Bound {
  const { name, type, wire } = table.columns[position]!;
  return { kind: 'column', index: table.first + position, name, type: columnType(type), ...(wire !== undefined && { wire }) };
}

/** Names of columns that an error lists, at most. */
const listedColumnsMax = 40;

/** Lists the column names of the tables for an error; system columns, which every type has, are left out. */
function listColumns(tables: readonly ScopeTable[]): string {
  let remainingColumns = listedColumnsMax;
  const columnLists = tables.flatMap(({ name, type, columns }) => {
    const tableColumns = columns.flatMap((column) =>
      type !== null && Object.hasOwn(systemColumns, column.name) ? [] : column.name,
    );
    if (tableColumns.length === 0 || remainingColumns === 0) return [];
    const listedColumns = tableColumns.slice(0, remainingColumns);
    remainingColumns -= listedColumns.length;
    const moreColumnsText =
      tableColumns.length > listedColumns.length ? ` and ${tableColumns.length - listedColumns.length} more` : '';
    return `${tables.length === 1 || name === null ? 'it' : JSON.stringify(name)} has ${listedColumns.join(', ')}${moreColumnsText}`;
  });
  return columnLists.map((list) => `; ${list}`).join('');
}
