/** Cells as messages of `annals.proto`, and parameters out of them. Integers of 64 bits are texts on both ways: none is a JavaScript number. */
import { ServiceError } from '../../errors.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { Answer, OutputColumn, Parameters } from '../../planner/planner-contract.ts';
import { type Literal, TypedValue } from '../../planner/syntax/statement.ts';

/** A decoded message, with at most one member. */
export interface ValueMessage {
  readonly text?: string;
  readonly integer?: string;
  readonly number?: number;
  readonly boolean?: boolean;
  readonly timestamp?: string;
  readonly json?: string;
  readonly vector?: { readonly values: readonly number[] };
}

/** Rows of a message: about so many cells, and characters of texts. */
const cellsAtOnce = 4_096;
const charactersAtOnce = 65_536;

/** A message, and about how many bytes of it wait where its client does not read. */
export interface SentMessage {
  readonly message: object;
  readonly bytes: number;
}

/** Messages of rows, each made when it is asked for. */
export function* rowMessages({ columns, batches }: Pick<Answer, 'columns' | 'batches'>): Generator<SentMessage, void> {
  const rowsMax = Math.max(1, Math.floor(cellsAtOnce / Math.max(1, columns.length)));
  let rows: object[] = [];
  let characters = 0;
  for (const { columns: vectors, selection, first, count } of batches) {
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      const values = columns.map(({ type }, c) => {
        const cell = cellAt(vectors[c]!, type, row);
        if (typeof cell === 'string' || cell instanceof Float32Array) characters += cell.length;
        return valueOf(type, cell);
      });
      rows.push({ values });
      if (rows.length < rowsMax && characters < charactersAtOnce) continue;
      yield { message: { rows: { rows } }, bytes: characters };
      rows = [];
      characters = 0;
    }
  }
  if (rows.length > 0) yield { message: { rows: { rows } }, bytes: characters };
}

function valueOf(type: OutputColumn['type'], cell: ReturnType<typeof cellAt>): ValueMessage {
  if (cell === null) return {};
  switch (type) {
    case 'string':
      return { text: cell as string };
    case 'integer':
      return { integer: String(cell) };
    case 'number':
      return { number: Number(cell) };
    case 'boolean':
      return { boolean: cell as boolean };
    case 'timestamp':
      return { timestamp: String(cell) };
    case 'json':
      return { json: cell as string };
    case 'vector':
      return { vector: { values: Array.from(cell as Float32Array) } };
  }
}

export function parametersOf(
  named: Readonly<Record<string, ValueMessage>>,
  positional: readonly ValueMessage[],
): Parameters | undefined {
  const names = Object.entries(named);
  if (names.length > 0 && positional.length > 0)
    throw new ServiceError('REL_INVALID', 'give values by name or by position, not both');
  if (names.length > 0) return new Map(names.map(([name, value]) => [name, literalOf(value)]));
  return positional.length === 0 ? undefined : positional.map(literalOf);
}

function literalOf(value: ValueMessage): Literal | TypedValue {
  if (value.text !== undefined) return value.text;
  if (value.integer !== undefined) return BigInt(value.integer);
  if (value.number !== undefined) return value.number;
  if (value.boolean !== undefined) return value.boolean;
  if (value.timestamp !== undefined) return new TypedValue('timestamp', BigInt(value.timestamp));
  if (value.json !== undefined) return new TypedValue('json', value.json);
  if (value.vector !== undefined) return new TypedValue('vector', JSON.stringify(value.vector.values));
  return null;
}
