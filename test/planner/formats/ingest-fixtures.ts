/** Shared by the format tests: bodies in any chunks, and what came of them. */
import type { PropertyDefinition, TypeDefinition } from '../../../src/log/entries/entry.ts';
import type { ColumnType } from '../../../src/log/values/value.ts';
import { cellAt } from '../../../src/log/values/vector-builder.ts';
import type { IngestBatch, IngestOptions } from '../../../src/planner/formats/ingest-batch.ts';
import { readIngest } from '../../../src/planner/formats/ingest-reader.ts';
import { ByteWriter } from '../../../src/planner/formats/byte-writer.ts';
import { RowsText } from '../../../src/planner/formats/json-rows.ts';
import type { Answer } from '../../../src/planner/planner-contract.ts';
import type { RowBatch } from '../../../src/log/values/columns.ts';
import { type Exact, exactParse } from './exact-parse.ts';

export const open: Omit<IngestOptions, 'definition'> & { definition: TypeDefinition | null } = {
  definition: null,
  batchRows: 1000,
  batchBytes: 1 << 20,
};

export async function* chunksOf(body: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < body.length; i += size) yield body.slice(i, i + size);
}

export async function read(
  body: string | Uint8Array,
  options: Partial<IngestOptions> = {},
  chunkSize = 1 << 20,
): Promise<{ batches: IngestBatch[]; error: unknown }> {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const batches: IngestBatch[] = [];
  try {
    for await (const batch of readIngest(chunksOf(bytes, chunkSize), { ...open, ...options })) batches.push(batch);
  } catch (error) {
    return { batches, error };
  }
  return { batches, error: null };
}

/** The accepted rows as objects without their nulls, straight from the vectors. */
export function cells(batches: readonly IngestBatch[]): Record<string, unknown>[] {
  return batches.flatMap(({ rows }) =>
    Array.from({ length: rows.length }, (_, row) => {
      const entries = rows.columns.map(({ name, type, vector }) => [name, cellAt(vector, type, row)] as const);
      return Object.fromEntries(entries.filter(([, cell]) => cell !== null)) as Record<string, unknown>;
    }),
  );
}

/** The accepted rows as a reader of our own JSON would see them. */
export function written(rows: RowBatch): Exact {
  return exactParse(
    rowsText({
      columns: rows.columns.map(({ name, type }) => ({ name, type })),
      batches: [{ columns: rows.columns.map(({ vector }) => vector), selection: null, first: 0, count: rows.length }],
    }),
  );
}

export function typesOf(batch: IngestBatch): Record<string, ColumnType> {
  return Object.fromEntries(batch.rows.columns.map(({ name, type }) => [name, type]));
}

export function property(type: ColumnType, dims = 0): PropertyDefinition {
  return { type, required: false, masked: false, indexed: false, subject: false, dims };
}

export function definition(properties: Record<string, PropertyDefinition>, isOpen = false): TypeDefinition {
  return { name: 'Thing', properties, open: isOpen, primaryKey: null, graphTriggers: [], ontologyVersion: 1 };
}

/** The rows' JSON as the text that a client decodes. */
export function rowsText({ columns, batches }: Pick<Answer, 'columns' | 'batches'>): string {
  const writer = new ByteWriter(64);
  const text = new RowsText(writer, { rowsMax: Infinity, bytesMax: Infinity });
  for (const batch of batches) if (!text.take(columns, batch)) throw new Error('rows without a bound are taken');
  text.close();
  return writer.take().toString('utf8');
}
