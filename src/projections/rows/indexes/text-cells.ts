/** Cells of a column as an index of texts takes them. */
import type { Vector } from '../../../log/values/columns.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import type { Segment } from '../segments/segment.ts';
import { distinct, noTexts } from './text/chosen-cells.ts';
import type { TextCells } from './text/text-builder.ts';

/** Cells of rows first .. first+rows-1 of a segment. They are not copied: valid as long as the column is. */
export function* cellsOf(
  segment: Segment,
  vector: Vector,
  type: ColumnType | undefined,
  first: number,
  rows: number,
): Generator<undefined, TextCells> {
  const isJson = type === 'json';
  const absent = absentOf(segment, vector, first, rows);
  if (vector.kind === 'text') {
    return { rows, offsets: vector.offsets.subarray(first, first + rows + 1), heap: vector.heap, codes: null, absent, isJson };
  }
  if (vector.kind !== 'dict') {
    return noTexts(rows);
  }
  return { rows, absent, isJson, ...(yield* distinct(vector, rows, (row) => first + row, absent)) };
}

/** 1 where one of these rows has no cell; null where each has one. */
export function absentOf(segment: Segment, vector: Vector, first: number, rows: number): Uint8Array | null {
  const nulls = vector.kind === 'null' ? null : vector.nulls;
  if (segment.removedCount === 0) return nulls && nulls.subarray(first, first + rows);
  const absent = new Uint8Array(rows);
  for (let row = 0; row < rows; row++) absent[row] = segment.isRemoved(first + row) ? 1 : (nulls?.[first + row] ?? 0);
  return absent;
}
