/**
 * The subjects of a body's rows. Every version repeats the subject cell: a put brings it, and an end or a remainder continues it.
 * So a key or a bound of a subject's row is written under the subject's seal, whichever command writes it. Pure.
 */
import { assert } from '../../../errors.ts';
import type { RowBatch, Vector } from '../../../log/values/columns.ts';
import type { RowsBody } from '../../../log/entries/entry.ts';
import type { Cell } from '../../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../log/values/vector-builder.ts';
import { keyText } from './fit-column.ts';

/** `subjectName` holds the subject; null: rows have none, or the one that the command names. A text column is taken as it is. */
export function subjectsOf(cells: RowBatch, subjectName: string | null, subject?: string): Pick<RowsBody, 'subjects'> {
  if (subjectName === null && subject !== undefined) return { subjects: subjectOfAllRows(subject, cells.length) };
  const subjectColumn = subjectName === null ? undefined : cells.columns.find(({ name }) => name === subjectName);
  if (!subjectColumn || subjectColumn.vector.kind === 'null') return {};
  const { vector, type } = subjectColumn;
  if (vector.kind === 'text') return { subjects: vector };
  const subjectBuilder = new VectorBuilder('string', cells.length);
  for (let row = 0; row < cells.length; row++) {
    subjectBuilder.append(subjectText(cellAt(vector, type, row)));
  }
  const subjects: Vector = subjectBuilder.build();
  assert(subjects.kind === 'text' || subjects.kind === 'null', 'subjects are texts');
  return subjects.kind === 'null' ? {} : { subjects };
}

/** The subject that a cell names. */
export function subjectText(subjectCell: Cell): string | null {
  return subjectCell === null ? null : keyText(subjectCell);
}

function subjectOfAllRows(subject: string, rowCount: number): Vector {
  const subjectBuilder = new VectorBuilder('string', rowCount);
  for (let row = 0; row < rowCount; row++) subjectBuilder.append(subject);
  return subjectBuilder.build();
}
