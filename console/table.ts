/** Rows of an answer as the grid reads them: cells by row and column, integers exact. */
import { tableFromIPC, type Table } from 'apache-arrow';

export interface Column {
  readonly name: string;
  readonly type: string;
}

export interface Rows {
  readonly columns: readonly Column[];
  readonly length: number;
  cell(row: number, column: number): unknown;
  /** Members of the reply beside its rows. */
  readonly envelope: Readonly<Record<string, unknown>>;
}

/** `own`: columns of the type stand before those that every row has. */
export function readArrow(bytes: Uint8Array, parse: (text: string) => unknown, own: boolean): Rows {
  const table: Table = tableFromIPC(bytes);
  const { schema } = table;
  const columns = schema.fields.map((field) => ({
    name: field.name,
    type: field.metadata.get('annals.type') ?? String(field.type).toLowerCase(),
  }));
  const order = columns.map((_, i) => i);
  if (own) order.sort((a, b) => Number(everyRow.has(columns[a]!.name)) - Number(everyRow.has(columns[b]!.name)));
  const vectors = order.map((i) => table.getChildAt(i)!);
  return {
    columns: order.map((i) => columns[i]!),
    length: table.numRows,
    cell: (row, column) => plain(vectors[column]!.get(row)),
    envelope: parse(schema.metadata.get('annals.envelope') ?? '{}') as Record<string, unknown>,
  };
}

const everyRow = new Set(['_pk', 'tenant_id', 'namespace_path', 'valid_from', 'valid_to', 'system_from', 'system_to']);

function plain(value: unknown): unknown {
  return typeof value === 'object' && value !== null && Symbol.iterator in value ? [...(value as Iterable<unknown>)] : value;
}

/** Rows of a JSON reply. */
export function rowsOf(list: readonly Readonly<Record<string, unknown>>[], names?: readonly string[]): Rows {
  const columns = (names ?? Object.keys(list[0] ?? {})).map((name) => ({ name, type: '' }));
  return { columns, length: list.length, cell: (row, column) => list[row]![columns[column]!.name], envelope: {} };
}
