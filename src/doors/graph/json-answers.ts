/** Answers as JSON of Neo4j's HTTP interfaces: integers of 64 bits are exact numbers, instants of properties texts in UTC. */
import type { Vector } from '../../log/values/columns.ts';
import { formatInstant } from '../../log/values/timestamp.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import { shortFloat } from '../../planner/formats/byte-writer.ts';
import type { Answer, OutputColumn } from '../../planner/planner-contract.ts';
import { isInstant } from './values.ts';

const pieceBytes = 65_536;

export type Rows = Pick<Answer, 'columns' | 'batches'>;

/** Rows as arrays between `open` and `close`, in pieces of some 64 KiB. */
export function* rowPieces({ columns, batches }: Rows, open: string, close: string): Generator<string, void> {
  let text = '';
  let isFirst = true;
  for (const { columns: vectors, selection, first, count } of batches)
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      text += `${isFirst ? '' : ','}${open}[${columns.map((column, c) => cellText(vectors[c]!, column, row)).join(',')}]${close}`;
      isFirst = false;
      if (text.length < pieceBytes) continue;
      yield text;
      text = '';
    }
  yield text;
}

function cellText(vector: Vector, column: OutputColumn, row: number): string {
  const cell = cellAt(vector, column.type, row);
  if (cell === null) return 'null';
  switch (typeof cell) {
    case 'bigint':
      return isInstant(column) ? JSON.stringify(formatInstant(cell)) : String(cell);
    case 'number':
      return Number.isFinite(cell) ? String(cell) : 'null';
    case 'boolean':
      return String(cell);
    case 'string':
      return column.type === 'json' ? cell : JSON.stringify(cell);
    default:
      return `[${Array.from(cell, (each) => String(shortFloat(each))).join(',')}]`;
  }
}

export const namesOf = ({ columns }: Rows): string => `[${columns.map(({ name }) => JSON.stringify(name)).join(',')}]`;
