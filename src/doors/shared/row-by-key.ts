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
  { type, key, time = 'current' }: RowRequest,
): { readonly text: Buffer | null; readonly answer: Answer } {
  const answer = planner.lookUp(invocation, { type, keys: [key], columns: null, time });
  const path = answer.columns.findIndex(({ name }) => name === 'namespace_path');
  let chosen: Answer['batches'][number] | null = null;
  for (const batch of answer.batches) {
    for (let row = 0; row < batch.count; row++) {
      chosen = { ...batch, first: row, count: 1 };
      if (cellAt(batch.columns[path]!, 'string', row) === invocation.caller.path) return { text: textOf(answer, chosen), answer };
    }
  }
  return { text: chosen && textOf(answer, chosen), answer };
}

function textOf({ columns }: Answer, batch: Answer['batches'][number]): Buffer {
  return writeNdjson({ columns, batches: [batch] }).subarray(0, -1);
}
