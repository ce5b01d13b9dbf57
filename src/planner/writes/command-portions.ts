/** Portions of a command, each decided within one turn. */
import type { NamedColumn } from '../../log/values/columns.ts';
import type { Cell } from '../../log/values/value.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import { type Batch, batchRowsMax, type DeleteRows, type PutRows } from '../../projections/command.ts';
import { vectorOf } from './rows-read.ts';

/** Splits a command into portions of at most a batch of rows. */
export function portionsOf(command: PutRows | DeleteRows | Batch): readonly (PutRows | DeleteRows | Batch)[] {
  const commandSteps = command.kind === 'batch' ? command.steps : [command];
  const writtenRowCount = commandSteps.reduce(
    (sum, part) => sum + (part.kind === 'put-rows' ? part.rows.length : part.keys.length),
    0,
  );
  return writtenRowCount <= batchRowsMax ? [command] : commandSteps.flatMap((part) => [...cutIntoPortions(part)]);
}

function* cutIntoPortions(cutStep: PutRows | DeleteRows): Generator<PutRows | DeleteRows> {
  const length = cutStep.kind === 'put-rows' ? cutStep.rows.length : cutStep.keys.length;
  for (let portionStart = 0; portionStart < length; portionStart += batchRowsMax) {
    const portionEnd = Math.min(length, portionStart + batchRowsMax);
    if (cutStep.kind === 'delete-rows') {
      yield { ...cutStep, keys: cutStep.keys.slice(portionStart, portionEnd) };
      continue;
    }
    const portionRows = Array.from({ length: portionEnd - portionStart }, (_, i) => portionStart + i);
    const columns = cutStep.rows.columns.map((column) => pickedRows(column, portionRows));
    const { patch } = cutStep;
    const sentCells = patch && new Map([...patch].map(([name, rows]) => [name, rows.slice(portionStart, portionEnd)] as const));
    yield { ...cutStep, rows: { length: portionEnd - portionStart, columns }, ...(sentCells && { patch: sentCells }) };
  }
}

export function pickedRows({ name, type, vector }: NamedColumn, rows: readonly number[]): NamedColumn {
  const cells = rows.map((row): Cell => cellAt(vector, type, row));
  return { name, type, vector: vectorOf(cells, type) };
}
