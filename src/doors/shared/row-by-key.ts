/** One row of any type by its key, as a JSON object of the columns that the caller may see. */
import type { Invocation } from '../../governance/gate-contract.ts';
import { writeNdjson } from '../../planner/formats/json-rows.ts';
import type { Answer, PlannerDoor } from '../../planner/planner-contract.ts';
import type { DefaultTime } from '../../planner/syntax/statement.ts';
import { cellAt } from '../../log/values/vector-builder.ts';

export interface RowRequest {
  readonly type: string;
  readonly key: string;
  readonly time?: DefaultTime;
}

/** Prefers the caller's own row where several organisations have the key, else takes the one written last; `text` null: no visible row. */
export function rowAsJson(
  planner: Pick<PlannerDoor, 'lookUp'>,
  invocation: Invocation,
  { type: rowType, key: rowKey, time = 'current' }: RowRequest,
): { readonly text: Buffer | null; readonly answer: Answer } {
  const rowAnswer = planner.lookUp(invocation, { type: rowType, keys: [rowKey], columns: null, time });
  const pathColumn = rowAnswer.columns.findIndex(({ name: columnName }) => columnName === 'namespace_path');
  let chosenBatch: Answer['batches'][number] | null = null;
  for (const rowBatch of rowAnswer.batches) {
    for (let batchRow = 0; batchRow < rowBatch.count; batchRow++) {
      chosenBatch = { ...rowBatch, first: batchRow, count: 1 };
      if (cellAt(rowBatch.columns[pathColumn]!, 'string', batchRow) === invocation.caller.path)
        return { text: rowTextOf(rowAnswer, chosenBatch), answer: rowAnswer };
    }
  }
  return { text: chosenBatch && rowTextOf(rowAnswer, chosenBatch), answer: rowAnswer };
}

function rowTextOf({ columns: rowColumns }: Answer, rowBatch: Answer['batches'][number]): Buffer {
  return writeNdjson({ columns: rowColumns, batches: [rowBatch] }).subarray(0, -1);
}
