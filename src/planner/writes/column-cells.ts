/** Values of a statement as cells of their columns, where SQL takes one for the other and a row of JSON would not. */
import { type ErrorDetails, ServiceError } from '../../errors.ts';
import type { NamedColumn } from '../../log/values/columns.ts';
import { parseZonedInstant } from '../../log/values/timestamp.ts';
import type { Cell, ColumnType } from '../../log/values/value.ts';
import { type RowsRead, vectorOf } from './rows-read.ts';

/** A text is read as the JSON, the instant or the vector that its column takes; all else is for the contract of the type to judge. */
export function cellsFor(
  rowsRead: RowsRead,
  column: number,
  from: ColumnType,
  { name, type: to }: { readonly name: string; readonly type: ColumnType | null },
  rows: readonly number[],
): NamedColumn {
  const read = from === 'string' ? readers[to ?? 'string'] : undefined;
  if (read === undefined) {
    // NULLs alone have the type of what takes them.
    if (to !== null && to !== from && rows.every((row) => rowsRead.cell(row, column) === null))
      return { name, type: to, vector: { kind: 'null' } };
    return { name, type: from, vector: rowsRead.vector(column, from, rows) };
  }
  const cells = rows.map((row) => {
    const cell = rowsRead.cell(row, column);
    return cell === null ? null : read(String(cell), name);
  });
  // A list of numbers is what rows of JSON bring as a vector.
  const type = to === 'vector' ? 'json' : to!;
  return { name, type, vector: vectorOf(cells, type) };
}

function jsonOf(text: string, name: string): Cell {
  try {
    JSON.parse(text);
    return text;
  } catch {
    throw mismatch(name, 'the text is not JSON');
  }
}

const readers: { readonly [T in ColumnType]?: (text: string, name: string) => Cell } = {
  json: jsonOf,
  vector: jsonOf,
  timestamp: (text, name) => {
    try {
      return parseZonedInstant(text);
    } catch (error) {
      throw error instanceof ServiceError ? mismatch(name, error.message, error.facts) : error;
    }
  },
};

function mismatch(name: string, why: string, facts: ErrorDetails = {}): ServiceError {
  return new ServiceError('REL_TYPE_MISMATCH', `column ${JSON.stringify(name)}: ${why}`, facts);
}
