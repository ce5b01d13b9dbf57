/** Rows that FOR UPDATE reads: the statement reads them as usual, and they must be unchanged when the transaction commits. */
import type { GovernedSnapshot, Transaction } from '../../governance/gate-contract.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { OutputBatch, OutputColumn, RowTaker } from '../planner-contract.ts';
import type { Location, ProjectionItem, Query, Select, Source } from '../syntax/statement.ts';

interface LockedTable {
  /** Its name in the statement. */
  readonly name: string;
  readonly type: string;
}

/** Adds the columns that identify each locked row behind those of the statement, so that its order may still name its own. */
export function lockingQuery(
  query: Query,
  { catalog }: Pick<GovernedSnapshot, 'catalog'>,
): { readonly query: Query; readonly tables: readonly LockedTable[] } {
  const { lock, ...unlockedQuery } = query;
  const { location, tables: namedTables } = lock!;
  const lockedSelect = query.body as Select;
  const storedTables = storedTablesOf(lockedSelect.from).filter(({ type }) => catalog.type(type) !== undefined);
  const unknownTable = namedTables.find((name) => !storedTables.some((table) => table.name === name));
  if (unknownTable !== undefined)
    throw errorAt(
      'REL_UNKNOWN_TYPE',
      `FOR UPDATE names ${JSON.stringify(unknownTable)}, which is no table of the statement`,
      location,
      'no-such-table-here',
    );
  const lockedTables = storedTables.filter(({ name }) => namedTables.length === 0 || namedTables.includes(name));
  const lockKeys = lockedTables.flatMap(({ name }) => [
    lockColumnItem(name, '_pk', location),
    lockColumnItem(name, 'namespace_path', location),
  ]);
  return {
    query: { ...unlockedQuery, body: { ...lockedSelect, projection: [...lockedSelect.projection, ...lockKeys] } },
    tables: lockedTables,
  };
}

function lockColumnItem(table: string, name: string, location: Location): ProjectionItem {
  return {
    kind: 'expression',
    expression: { kind: 'column', table, name, location },
    alias: `\0lock ${table} ${name}`,
    location,
  };
}

function storedTablesOf(source: Source): readonly LockedTable[] {
  if (source.kind === 'join') return [...storedTablesOf(source.left), ...storedTablesOf(source.right)];
  return source.kind === 'table' ? [{ name: source.alias ?? source.name, type: source.name }] : [];
}

/** Takes the keys that stand behind the columns of each row. */
export class LockedRows implements RowTaker {
  readonly #lockedTables: readonly LockedTable[];
  readonly #lockingTransaction: Transaction;
  rows = 0;

  constructor(tables: readonly LockedTable[], transaction: Transaction) {
    this.#lockedTables = tables;
    this.#lockingTransaction = transaction;
  }

  /** The locked keys belong to the transaction. */
  get bytes(): number {
    return 0;
  }

  take(columns: readonly OutputColumn[], { columns: vectors, selection, first, count }: OutputBatch): boolean {
    this.rows += count;
    const firstLockColumn = columns.length - 2 * this.#lockedTables.length;
    for (const [t, { type }] of this.#lockedTables.entries()) {
      const lockColumn = firstLockColumn + 2 * t;
      for (let i = 0; i < count; i++) {
        const row = selection === null ? first + i : selection[i]!;
        const lockedKey = cellAt(vectors[lockColumn]!, 'string', row);
        const lockedPath = cellAt(vectors[lockColumn + 1]!, 'string', row);
        // The other side of an outer join may have none.
        if (lockedKey !== null)
          this.#lockingTransaction.lock(type, lockedPath === null ? null : String(lockedPath), [String(lockedKey)]);
      }
    }
    return true;
  }

  /** Rows locked for an abandoned answer stay locked: they were read. */
  restart(): void {
    this.rows = 0;
  }
}
