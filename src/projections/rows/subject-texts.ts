/** What keys and texts of versions say, whatever branch they were written on: for what has to be known of them before they go. */
import type { ErasedVersions } from '../../log/entry.ts';
import { cellAt } from '../../log/vector-builder.ts';
import type { Layer } from './layer.ts';
import { NO_ROW } from './segment.ts';
import type { Table } from './table.ts';

export interface ToldTexts {
  key(text: string): void;
  /** Of a string, or JSON. */
  cell(text: string): void;
}

/** A step is one column of one segment, and the time of reading it where it rests. */
export function* textsOf(
  versions: readonly ErasedVersions[],
  layers: readonly Layer[],
  told: ToldTexts,
): Generator<undefined, void> {
  for (const { type, positions } of versions) {
    for (const layer of layers) {
      const table = layer.table(type);
      if (table) for (const rows of bySegment(positions, table)) yield* textsOfRows(rows, table, told);
    }
  }
}

function* textsOfRows(rows: readonly number[], table: Table, told: ToldTexts): Generator<undefined, void> {
  const segment = table.segmentOf(rows[0]!);
  table.ahead(rows[0]! >>> 16, ['_pk', ...segment.columnNames()]);
  for (const row of rows) told.key(table.keyOf(row));
  yield;
  for (const name of segment.columnNames()) {
    const { type } = table.columnTypes().get(name)!;
    if (type !== 'string' && type !== 'json') continue;
    const vector = segment.column(name)!.vector(segment.length);
    for (const row of rows) {
      const cell = cellAt(vector, type, row & 0xffff);
      if (typeof cell === 'string') told.cell(cell);
    }
    yield;
  }
}

/** Rows of versions at these positions, ascending, that stand. */
function* bySegment(positions: readonly number[], table: Table): Generator<number[], void> {
  let rows: number[] = [];
  for (const position of positions) {
    const row = table.at(position);
    if (row === NO_ROW) continue;
    if (rows.length > 0 && rows[0]! >>> 16 !== row >>> 16) {
      yield rows;
      rows = [];
    }
    rows.push(row);
  }
  if (rows.length > 0) yield rows;
}
