/**
 * Columns of a table hashed beside the event loop, while it hashes what every row has: the same streams as in
 * `table-digest.ts`, by the same code. Columns are read where they lie, so nothing may change, or be given back, before the
 * worker has answered. Codes mean something only where their dictionary is: columns of codes are left to the caller.
 */
import type { Vector } from '../../log/columns.ts';
import type { ColumnType } from '../../log/value.ts';
import type { Job } from '../../log/workers.ts';
import { type CellHashes, CellStream, keptRows } from './table-digest.ts';
import type { Table } from './table.ts';

/** Cells of one segment. */
interface Stretch {
  readonly vector: Vector;
  readonly type: ColumnType;
  readonly kept: Int32Array | null;
  readonly length: number;
  readonly firstRow: number;
}

/** Stretches of one column after the other. */
export type ColumnsRequest = readonly (readonly Stretch[])[];

export const columnDigestJob: Job<null, ColumnsRequest, CellHashes[]> = {
  module: import.meta.url,
  name: 'columnDigestJob',
  begin: () => (columns) =>
    columns.map((stretches) => {
      const stream = new CellStream();
      for (const { vector, type, kept, length, firstRow } of stretches) stream.add(vector, type, kept, length, firstRow);
      return stream.hashes();
    }),
};

/** Columns that need no dictionary. */
export function columnsWithoutCodes(table: Table): ReadonlyMap<string, readonly Stretch[]> {
  const columns = new Map<string, Stretch[]>([...table.columnTypes().keys()].map((name) => [name, []]));
  let firstRow = 0;
  for (const segment of table.segments) {
    const { kept, length } = keptRows(segment);
    for (const [name, stretches] of columns) {
      const column = segment.column(name);
      if (!column) continue;
      const vector = column.vector(segment.length);
      if (vector.kind === 'dict') columns.delete(name);
      else stretches.push({ vector, type: column.type, kept, length, firstRow });
    }
    firstRow += length;
  }
  return columns;
}
