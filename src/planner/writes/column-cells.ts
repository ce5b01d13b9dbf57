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
  readType: ColumnType,
  { name, type: writtenType }: { readonly name: string; readonly type: ColumnType | null },
  rows: readonly number[],
): NamedColumn {
  const readCell = readType === 'string' ? cellReaders[writtenType ?? 'string'] : undefined;
  if (readCell === undefined) {
    // NULLs alone have the type of what takes them.
    if (writtenType !== null && writtenType !== readType && rows.every((row) => rowsRead.cell(row, column) === null))
      return { name, type: writtenType, vector: { kind: 'null' } };
    return { name, type: readType, vector: rowsRead.vector(column, readType, rows) };
  }
  const writtenCells = rows.map((row) => {
    const cell = rowsRead.cell(row, column);
    return cell === null ? null : readCell(String(cell), name);
  });
  // A list of numbers is what rows of JSON bring as a vector.
  const type = writtenType === 'vector' ? 'json' : writtenType!;
  return { name, type, vector: vectorOf(writtenCells, type) };
}

function checkedJson(text: string, name: string): Cell {
  try {
    JSON.parse(text);
    return text;
  } catch {
    throw columnMismatch(name, 'the text is not JSON');
  }
}

const cellReaders: { readonly [T in ColumnType]?: (text: string, name: string) => Cell } = {
  json: checkedJson,
  vector: checkedJson,
  timestamp: (text, name) => {
    try {
      return parseZonedInstant(text);
    } catch (error) {
      throw error instanceof ServiceError ? columnMismatch(name, error.message, error.facts) : error;
    }
  },
};

function columnMismatch(name: string, why: string, facts: ErrorDetails = {}): ServiceError {
  return new ServiceError('REL_TYPE_MISMATCH', `column ${JSON.stringify(name)}: ${why}`, facts);
}
