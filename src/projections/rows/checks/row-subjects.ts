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

/** `property` holds the subject; null: rows have none, or the one that the command names. A text column is taken as it is. */
export function subjectsOf(cells: RowBatch, property: string | null, subject?: string): Pick<RowsBody, 'subjects'> {
  if (property === null && subject !== undefined) return { subjects: ofAll(subject, cells.length) };
  const column = property === null ? undefined : cells.columns.find(({ name }) => name === property);
  if (!column || column.vector.kind === 'null') return {};
  const { vector, type } = column;
  if (vector.kind === 'text') return { subjects: vector };
  const builder = new VectorBuilder('string', cells.length);
  for (let row = 0; row < cells.length; row++) {
    builder.append(subjectText(cellAt(vector, type, row)));
  }
  const subjects: Vector = builder.build();
  assert(subjects.kind === 'text' || subjects.kind === 'null', 'subjects are texts');
  return subjects.kind === 'null' ? {} : { subjects };
}

/** The subject that a cell names. */
export function subjectText(cell: Cell): string | null {
  return cell === null ? null : keyText(cell);
}

function ofAll(subject: string, rows: number): Vector {
  const builder = new VectorBuilder('string', rows);
  for (let row = 0; row < rows; row++) builder.append(subject);
  return builder.build();
}
