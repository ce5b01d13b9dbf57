/**
 * Columns of a table hashed beside the event loop, while it hashes the others and what every row has: the same streams as in
 * `table-digest.ts`, by the same code. Columns are read where they lie, so nothing may change, or be given back, before the
 * worker has answered. Codes travel with a copy of the texts that they stand for.
 */
import type { ColumnType } from '../../../log/values/value.ts';
import type { Job } from '../../../log/threads/workers.ts';
import type { Texts } from '../../canonical-hash.ts';
import type { ByteDictionary } from '../cells/byte-dictionary.ts';
import type { SegmentColumn } from '../segments/segment-column.ts';
import { type CellHashes, type Cells, CellStream, cellsOf, remainingRowsOf } from './table-digest.ts';
import type { Table } from '../tables/table.ts';

/** Cells of one segment. */
interface ColumnPart {
  readonly cells: Cells;
  readonly type: ColumnType;
  readonly remainingRows: Int32Array | null;
  readonly length: number;
  readonly firstRow: number;
}

/** Stretches of one column after the other. */
export type ColumnsRequest = readonly (readonly ColumnPart[])[];

export const columnDigestJob: Job<null, ColumnsRequest, CellHashes[]> = {
  module: import.meta.url,
  name: 'columnDigestJob',
  begin: () => (columns) =>
    columns.map((columnParts) => {
      const stream = new CellStream();
      for (const { cells, type, remainingRows, length, firstRow } of columnParts)
        stream.add(cells, type, remainingRows, length, firstRow);
      return stream.hashes();
    }),
};

/** Tables, one after the other, shared out so that both sides have about as much to do. */
export class DigestShares {
  /** About how many bytes each side hashes. */
  #digestedHereBytes = 0;
  #digestedBesideBytes = 0;

  /** Names of the columns that the worker hashes; the caller hashes the fields that every row has. */
  columnsBeside(table: Table): readonly string[] {
    const columnsBySize = [...table.columnTypes().keys()].map((name) => ({ name, bytes: 0 }));
    for (const segment of table.segments) {
      this.#digestedHereBytes += segment.length * 16 + digestedBytesOf(segment.keys, segment.length);
      for (const column of columnsBySize) {
        const segmentColumn = segment.column(column.name);
        if (segmentColumn) column.bytes += digestedBytesOf(segmentColumn, segment.length);
      }
    }
    const besideColumns: string[] = [];
    for (const { name, bytes } of columnsBySize.sort((a, b) => b.bytes - a.bytes)) {
      if (this.#digestedHereBytes <= this.#digestedBesideBytes) this.#digestedHereBytes += bytes;
      else {
        this.#digestedBesideBytes += bytes;
        besideColumns.push(name);
      }
    }
    return besideColumns;
  }
}

/** Columns of a table as a worker is asked for them. */
export function columnPartsOf(table: Table, names: readonly string[]): ColumnsRequest {
  const copies = new Map<ByteDictionary, Texts>();
  const copyTexts = (dictionary: ByteDictionary): Texts => {
    let copiedHeap = copies.get(dictionary);
    if (!copiedHeap) copies.set(dictionary, (copiedHeap = dictionary.copy()));
    return copiedHeap;
  };
  const columns = names.map((name) => ({ name, parts: [] as ColumnPart[] }));
  let firstRow = 0;
  for (const segment of table.segments) {
    const { remainingRows, length } = remainingRowsOf(segment);
    for (const { name, parts } of columns) {
      const column = segment.column(name);
      if (!column) continue;
      const cells = cellsOf(column.vector(segment.length), copyTexts);
      parts.push({ cells, type: column.type, remainingRows, length, firstRow });
    }
    firstRow += length;
  }
  return columns.map(({ parts }) => parts);
}

/** About how many bytes are hashed; texts that are looked up one by one count for more. */
function digestedBytesOf(segmentColumn: SegmentColumn, rows: number): number {
  const digestedVector = segmentColumn.vector(rows);
  switch (digestedVector.kind) {
    case 'null':
      return 0;
    case 'bool':
      return rows;
    case 'text':
      return rows * 4 + segmentColumn.heapBytes;
    case 'dict': {
      const { offsets } = digestedVector.dictionary.utf8!;
      const { size } = digestedVector.dictionary;
      return rows * (16 + (2 * offsets[size]!) / Math.max(1, size));
    }
    case 'vec':
      return rows * digestedVector.dims * 8;
    default:
      return rows * 8;
  }
}
