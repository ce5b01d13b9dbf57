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
const messageCellsMax = 4_096;
const messageCharactersMax = 65_536;

/** A message, and about how many bytes of it wait where its client does not read. */
export interface SentMessage {
  readonly message: object;
  readonly bytes: number;
}

/** Messages of rows, each made when it is asked for. */
export function* rowMessages({
  columns: answerColumns,
  batches: answerBatches,
}: Pick<Answer, 'columns' | 'batches'>): Generator<SentMessage, void> {
  const messageRowsMax = Math.max(1, Math.floor(messageCellsMax / Math.max(1, answerColumns.length)));
  let pendingRows: object[] = [];
  let characterCount = 0;
  for (const { columns: answerVectors, selection, first, count: batchRowCount } of answerBatches) {
    for (let i = 0; i < batchRowCount; i++) {
      const answerRow = selection === null ? first + i : selection[i]!;
      const valueMessages = answerColumns.map(({ type: columnType }, c) => {
        const answerCell = cellAt(answerVectors[c]!, columnType, answerRow);
        if (typeof answerCell === 'string' || answerCell instanceof Float32Array) characterCount += answerCell.length;
        return valueMessageOf(columnType, answerCell);
      });
      pendingRows.push({ values: valueMessages });
      if (pendingRows.length < messageRowsMax && characterCount < messageCharactersMax) continue;
      yield { message: { rows: { rows: pendingRows } }, bytes: characterCount };
      pendingRows = [];
      characterCount = 0;
    }
  }
  if (pendingRows.length > 0) yield { message: { rows: { rows: pendingRows } }, bytes: characterCount };
}

function valueMessageOf(columnType: OutputColumn['type'], answerCell: ReturnType<typeof cellAt>): ValueMessage {
  if (answerCell === null) return {};
  switch (columnType) {
    case 'string':
      return { text: answerCell as string };
    case 'integer':
      return { integer: String(answerCell) };
    case 'number':
      return { number: Number(answerCell) };
    case 'boolean':
      return { boolean: answerCell as boolean };
    case 'timestamp':
      return { timestamp: String(answerCell) };
    case 'json':
      return { json: answerCell as string };
    case 'vector':
      return { vector: { values: Array.from(answerCell as Float32Array) } };
  }
}

export function parametersOf(
  namedValues: Readonly<Record<string, ValueMessage>>,
  positionalValues: readonly ValueMessage[],
): Parameters | undefined {
  const namedEntries = Object.entries(namedValues);
  if (namedEntries.length > 0 && positionalValues.length > 0)
    throw new ServiceError('REL_INVALID', 'give values by name or by position, not both');
  if (namedEntries.length > 0)
    return new Map(namedEntries.map(([parameterName, valueMessage]) => [parameterName, valueLiteralOf(valueMessage)]));
  return positionalValues.length === 0 ? undefined : positionalValues.map(valueLiteralOf);
}

function valueLiteralOf(valueMessage: ValueMessage): Literal | TypedValue {
  if (valueMessage.text !== undefined) return valueMessage.text;
  if (valueMessage.integer !== undefined) return BigInt(valueMessage.integer);
  if (valueMessage.number !== undefined) return valueMessage.number;
  if (valueMessage.boolean !== undefined) return valueMessage.boolean;
  if (valueMessage.timestamp !== undefined) return new TypedValue('timestamp', BigInt(valueMessage.timestamp));
  if (valueMessage.json !== undefined) return new TypedValue('json', valueMessage.json);
  if (valueMessage.vector !== undefined) return new TypedValue('vector', JSON.stringify(valueMessage.vector.values));
  return null;
}
