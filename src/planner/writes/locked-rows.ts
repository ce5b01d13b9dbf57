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
  const { lock, ...rest } = query;
  const { location, tables: named } = lock!;
  const select = query.body as Select;
  const known = tablesOf(select.from).filter(({ type }) => catalog.type(type) !== undefined);
  const wrong = named.find((name) => !known.some((table) => table.name === name));
  if (wrong !== undefined)
    throw errorAt(
      'REL_UNKNOWN_TYPE',
      `FOR UPDATE names ${JSON.stringify(wrong)}, which is no table of the statement`,
      location,
      'no-such-table-here',
    );
  const tables = known.filter(({ name }) => named.length === 0 || named.includes(name));
  const keys = tables.flatMap(({ name }) => [column(name, '_pk', location), column(name, 'namespace_path', location)]);
  return { query: { ...rest, body: { ...select, projection: [...select.projection, ...keys] } }, tables };
}

function column(table: string, name: string, location: Location): ProjectionItem {
  return {
    kind: 'expression',
    expression: { kind: 'column', table, name, location },
    alias: `\0lock ${table} ${name}`,
    location,
  };
}

function tablesOf(source: Source): readonly LockedTable[] {
  if (source.kind === 'join') return [...tablesOf(source.left), ...tablesOf(source.right)];
  return source.kind === 'table' ? [{ name: source.alias ?? source.name, type: source.name }] : [];
}

/** Takes the keys that stand behind the columns of each row. */
export class LockedRows implements RowTaker {
  readonly #tables: readonly LockedTable[];
  readonly #transaction: Transaction;
  rows = 0;

  constructor(tables: readonly LockedTable[], transaction: Transaction) {
    this.#tables = tables;
    this.#transaction = transaction;
  }

  /** The locked keys belong to the transaction. */
  get bytes(): number {
    return 0;
  }

  take(columns: readonly OutputColumn[], { columns: vectors, selection, first, count }: OutputBatch): boolean {
    this.rows += count;
    const from = columns.length - 2 * this.#tables.length;
    for (const [t, { type }] of this.#tables.entries()) {
      const at = from + 2 * t;
      for (let i = 0; i < count; i++) {
        const row = selection === null ? first + i : selection[i]!;
        const key = cellAt(vectors[at]!, 'string', row);
        const path = cellAt(vectors[at + 1]!, 'string', row);
        // The other side of an outer join may have none.
        if (key !== null) this.#transaction.lock(type, path === null ? null : String(path), [String(key)]);
      }
    }
    return true;
  }

  /** Rows locked for an abandoned answer stay locked: they were read. */
  restart(): void {
    this.rows = 0;
  }
}
