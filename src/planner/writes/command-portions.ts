/** Portions of a command, each decided within one turn. */
import type { NamedColumn } from '../../log/values/columns.ts';
import type { Cell } from '../../log/values/value.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import { type Batch, batchRowsMax, type DeleteRows, type PutRows } from '../../projections/command.ts';
import { vectorOf } from './rows-read.ts';

/** Splits a command into portions of at most a batch of rows. */
export function portionsOf(command: PutRows | DeleteRows | Batch): readonly (PutRows | DeleteRows | Batch)[] {
  const parts = command.kind === 'batch' ? command.steps : [command];
  const size = parts.reduce((sum, part) => sum + (part.kind === 'put-rows' ? part.rows.length : part.keys.length), 0);
  return size <= batchRowsMax ? [command] : parts.flatMap((part) => [...cut(part)]);
}

function* cut(part: PutRows | DeleteRows): Generator<PutRows | DeleteRows> {
  const length = part.kind === 'put-rows' ? part.rows.length : part.keys.length;
  for (let from = 0; from < length; from += batchRowsMax) {
    const to = Math.min(length, from + batchRowsMax);
    if (part.kind === 'delete-rows') {
      yield { ...part, keys: part.keys.slice(from, to) };
      continue;
    }
    const numbers = Array.from({ length: to - from }, (_, i) => from + i);
    const columns = part.rows.columns.map((column) => pickedRows(column, numbers));
    const { patch } = part;
    const sent = patch && new Map([...patch].map(([name, rows]) => [name, rows.slice(from, to)] as const));
    yield { ...part, rows: { length: to - from, columns }, ...(sent && { patch: sent }) };
  }
}

export function pickedRows({ name, type, vector }: NamedColumn, rows: readonly number[]): NamedColumn {
  const cells = rows.map((row): Cell => cellAt(vector, type, row));
  return { name, type, vector: vectorOf(cells, type) };
}
