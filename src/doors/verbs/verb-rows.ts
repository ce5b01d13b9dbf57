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
export function rowsOf({ columns, batches }: Pick<Answer, 'columns' | 'batches'>): VerbRow[] {
  const rows: VerbRow[] = [];
  for (const batch of batches) {
    for (let i = 0; i < batch.count; i++) {
      const at = batch.selection === null ? batch.first + i : batch.selection[i]!;
      const row: Record<string, Cell> = Object.create(null);
      for (const [column, { name, type }] of columns.entries()) row[name] = cellAt(batch.columns[column]!, type, at);
      rows.push(row);
    }
  }
  return rows;
}

export interface NewRows {
  readonly definition: TypeDefinition;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly provenance: Provenance;
  readonly createType?: boolean;
}

/** A command that puts plain values as rows of the type, read as an ingest of them would be. Throws what refuses the first row. */
export function putting({ definition, rows, provenance, createType = false }: NewRows): PutRows {
  const lines = rows.map((row) => exactJson(row)).join('\n');
  const batch = readSmallBody(Buffer.from(lines), closedType(definition)) ?? readWhole(definition, lines, rows.length);
  const [refused] = batch?.rejections ?? [];
  if (refused !== undefined) throw new ServiceError(refused.code as ErrorCode, refused.detail);
  if (batch === null || batch.rows.length !== rows.length)
    throw new ServiceError('REL_INTERNAL', 'rows are read as they were written');
  return { kind: 'put-rows', type: definition.name, rows: batch.rows, atomic: true, createType, provenance };
}

function readWhole(definition: TypeDefinition, lines: string, rows: number): IngestBatch | null {
  const reader = new BodyReader({ definition, batchRows: rows + 1, batchBytes: Infinity, predictBytesMin: Infinity });
  reader.push(Buffer.from(lines));
  return reader.read(true);
}

/** The type without further columns, which most rows don't have: the reader of a closed type is reused. */
function closedType(definition: TypeDefinition): TypeDefinition {
  if (!definition.open) return definition;
  let known = closedTypes.get(definition);
  if (known === undefined) closedTypes.set(definition, (known = { ...definition, open: false }));
  return known;
}

const closedTypes = new WeakMap<TypeDefinition, TypeDefinition>();

export function textOf(cell: Cell | undefined): string | null {
  return cell === null || cell === undefined ? null : String(cell);
}

/** Groups values in the order of first appearance. */
export function groupBy<T>(all: Iterable<T>, by: (each: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const each of all) {
    const group = groups.get(by(each));
    if (group === undefined) groups.set(by(each), [each]);
    else group.push(each);
  }
  return groups;
}

/** A name in a statement. */
export function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Members of a JSON column; an empty list where it holds none. */
export function listOf(cell: Cell | undefined): readonly string[] {
  if (typeof cell !== 'string') return [];
  try {
    const value = parseExactJson(cell);
    return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : [];
  } catch {
    return [];
  }
}
