/** Converts between rows as verbs hold them, a few at a time, and rows as columns. */
import { type ErrorCode, ServiceError } from '../../errors.ts';
import type { Provenance, TypeDefinition } from '../../log/entries/entry.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { Cell } from '../../log/values/value.ts';
import type { IngestBatch } from '../../planner/formats/ingest-batch.ts';
import { BodyReader } from '../../planner/formats/ingest-reader.ts';
import { readSmallBody } from '../../planner/formats/small-body.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import type { PutRows } from '../../projections/command.ts';
import { exactJson } from '../shared/write-exact-json.ts';
import { parseExactJson } from '../shared/read-exact-json.ts';

export type VerbRow = Readonly<Record<string, Cell>>;

/** Rows of an answer as objects. JSON columns are texts, instants and integers bigints. */
export function rowsOf({ columns: answerColumns, batches: answerBatches }: Pick<Answer, 'columns' | 'batches'>): VerbRow[] {
  const verbRows: VerbRow[] = [];
  for (const answerBatch of answerBatches) {
    for (let i = 0; i < answerBatch.count; i++) {
      const batchRowId = answerBatch.selection === null ? answerBatch.first + i : answerBatch.selection[i]!;
      const verbRow: Record<string, Cell> = Object.create(null);
      for (const [columnIndex, { name: columnName, type: columnType }] of answerColumns.entries())
        verbRow[columnName] = cellAt(answerBatch.columns[columnIndex]!, columnType, batchRowId);
      verbRows.push(verbRow);
    }
  }
  return verbRows;
}

export interface NewRows {
  readonly definition: TypeDefinition;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly provenance: Provenance;
  readonly createType?: boolean;
}

/** A command that puts plain values as rows of the type, read as an ingest of them would be. Throws what refuses the first row. */
export function putting({ definition: typeDefinition, rows: newRows, provenance, createType = false }: NewRows): PutRows {
  const rowLines = newRows.map((row) => exactJson(row)).join('\n');
  const ingestBatch =
    readSmallBody(Buffer.from(rowLines), closedTypeOf(typeDefinition)) ?? readRowLines(typeDefinition, rowLines, newRows.length);
  const [refusedRow] = ingestBatch?.rejections ?? [];
  if (refusedRow !== undefined) throw new ServiceError(refusedRow.code as ErrorCode, refusedRow.detail);
  if (ingestBatch === null || ingestBatch.rows.length !== newRows.length)
    throw new ServiceError('REL_INTERNAL', 'rows are read as they were written');
  return { kind: 'put-rows', type: typeDefinition.name, rows: ingestBatch.rows, atomic: true, createType, provenance };
}

function readRowLines(typeDefinition: TypeDefinition, rowLines: string, rowCount: number): IngestBatch | null {
  const bodyReader = new BodyReader({
    definition: typeDefinition,
    batchRows: rowCount + 1,
    batchBytes: Infinity,
    predictBytesMin: Infinity,
  });
  bodyReader.push(Buffer.from(rowLines));
  return bodyReader.read(true);
}

/** The type without further columns, which most rows don't have: the reader of a closed type is reused. */
function closedTypeOf(typeDefinition: TypeDefinition): TypeDefinition {
  if (!typeDefinition.open) return typeDefinition;
  let closedDefinition = closedTypeByDefinition.get(typeDefinition);
  if (closedDefinition === undefined)
    closedTypeByDefinition.set(typeDefinition, (closedDefinition = { ...typeDefinition, open: false }));
  return closedDefinition;
}

const closedTypeByDefinition = new WeakMap<TypeDefinition, TypeDefinition>();

export function textOf(verbCell: Cell | undefined): string | null {
  return verbCell === null || verbCell === undefined ? null : String(verbCell);
}

/** Groups values in the order of first appearance. */
export function groupBy<T>(groupedItems: Iterable<T>, groupOf: (groupedItem: T) => string): ReadonlyMap<string, readonly T[]> {
  const itemsByGroup = new Map<string, T[]>();
  for (const groupedItem of groupedItems) {
    const itemGroup = itemsByGroup.get(groupOf(groupedItem));
    if (itemGroup === undefined) itemsByGroup.set(groupOf(groupedItem), [groupedItem]);
    else itemGroup.push(groupedItem);
  }
  return itemsByGroup;
}

/** A name in a statement. */
export function quote(sqlName: string): string {
  return `"${sqlName.replaceAll('"', '""')}"`;
}

/** Members of a JSON column; an empty list where it holds none. */
export function listOf(listCell: Cell | undefined): readonly string[] {
  if (typeof listCell !== 'string') return [];
  try {
    const listValue = parseExactJson(listCell);
    return Array.isArray(listValue) ? listValue.filter((listedText): listedText is string => typeof listedText === 'string') : [];
  } catch {
    return [];
  }
}
