/** Details of a refused row for protocols that can carry them: its missing property, or its duplicate key. */
import type { RefusedRow } from '../../errors.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { DeleteRows, PutRows, RowRejection } from '../../projections/command.ts';

export function refusedRow(
  step: PutRows | DeleteRows,
  primaryKey: string | null,
  { index, code, column }: Omit<RowRejection, 'detail'>,
): RefusedRow {
  const { type } = step;
  if (column !== undefined) return { type, index, column };
  if (code !== 'REL_CONFLICT' || step.kind !== 'put-rows') return { type, index };
  const keyNames = primaryKey === null ? ['_pk', 'id'] : [primaryKey, '_pk'];
  const keyColumn = keyNames.flatMap((name) => step.rows.columns.filter((each) => each.name === name))[0];
  const keyText = keyColumn === undefined ? null : cellAt(keyColumn.vector, keyColumn.type, index);
  return { type, index, ...(keyText !== null && { key: { name: primaryKey ?? '_pk', text: String(keyText) } }) };
}
