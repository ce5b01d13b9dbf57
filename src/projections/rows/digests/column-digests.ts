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
import { type CellHashes, type Cells, CellStream, cellsOf, keptRows } from './table-digest.ts';
import type { Table } from '../tables/table.ts';

/** Cells of one segment. */
interface Stretch {
  readonly cells: Cells;
  readonly type: ColumnType;
  readonly remainingRows: Int32Array | null;
  readonly length: number;
  readonly firstRow: number;
}

/** Stretches of one column after the other. */
export type ColumnsRequest = readonly (readonly Stretch[])[];

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
  #here = 0;
  #beside = 0;

  /** Names of the columns that the worker hashes; the caller hashes the fields that every row has. */
  columnsBeside(table: Table): readonly string[] {
    const columns = [...table.columnTypes().keys()].map((name) => ({ name, bytes: 0 }));
    for (const segment of table.segments) {
      this.#here += segment.length * 16 + bytesOf(segment.keys, segment.length);
      for (const column of columns) {
        const cells = segment.column(column.name);
        if (cells) column.bytes += bytesOf(cells, segment.length);
      }
    }
    const beside: string[] = [];
    for (const { name, bytes } of columns.sort((a, b) => b.bytes - a.bytes)) {
      if (this.#here <= this.#beside) this.#here += bytes;
      else {
        this.#beside += bytes;
        beside.push(name);
      }
    }
    return beside;
  }
}

/** Columns of a table as a worker is asked for them. */
export function stretchesOf(table: Table, names: readonly string[]): ColumnsRequest {
  const copies = new Map<ByteDictionary, Texts>();
  const copyTexts = (dictionary: ByteDictionary): Texts => {
    let texts = copies.get(dictionary);
    if (!texts) copies.set(dictionary, (texts = dictionary.copy()));
    return texts;
  };
  const columns = names.map((name) => ({ name, parts: [] as Stretch[] }));
  let firstRow = 0;
  for (const segment of table.segments) {
    const { remainingRows, length } = keptRows(segment);
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
function bytesOf(column: SegmentColumn, rows: number): number {
  const vector = column.vector(rows);
  switch (vector.kind) {
    case 'null':
      return 0;
    case 'bool':
      return rows;
    case 'text':
      return rows * 4 + column.heapBytes;
    case 'dict': {
      const { offsets } = vector.dictionary.utf8!;
      const { size } = vector.dictionary;
      return rows * (16 + (2 * offsets[size]!) / Math.max(1, size));
    }
    case 'vec':
      return rows * vector.dims * 8;
    default:
      return rows * 8;
  }
}
