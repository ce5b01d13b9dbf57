/**
 * Arrow IPC streams on any bytes. What must hold: the same batches come out however the stream is cut, every row is accepted or rejected
 * once, columns are as long as their batch, and what was accepted can be written as JSON again.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { tableFromArrays, tableToIPC } from 'apache-arrow';
import { assert, ServiceError } from '../../../src/errors.ts';
import type { IngestBatch } from '../../../src/planner/formats/ingest-batch.ts';
import { BodyReader } from '../../../src/planner/formats/ingest-reader.ts';
import { writeRowChunks } from '../../../src/planner/formats/json-rows.ts';

export const name = 'arrow-stream';

const folder = new URL('../../../fixtures/arrow/', import.meta.url);

export function seeds(): Uint8Array[] {
  const written = tableToIPC(tableFromArrays({ id: ['a', 'b', 'a'], n: Int32Array.of(1, 2, 3) }), 'stream');
  return [written, ...readdirSync(folder).map((file) => readFileSync(new URL(file, folder)))];
}

export function run(bytes: Uint8Array): void {
  const whole = read(bytes, bytes.length);
  assert(read(bytes, 97) === whole, 'the same batches, however the stream is cut');
}

function read(bytes: Uint8Array, chunkBytes: number): string {
  // No mutation makes it another form.
  const reader = new BodyReader({ definition: null, batchRows: 3, batchBytes: 1e6, limitBytes: 1 << 16 });
  const shown: string[] = [];
  let next = 0;
  const drain = (last: boolean): void => {
    for (;;) {
      const batch = reader.read(last);
      if (batch === null && !reader.isBusy) return;
      if (batch === null) continue;
      assert(batch.firstIndex === next, 'batches follow each other');
      next += batch.rows.length + batch.rejections.length;
      // A few hundred bytes may claim tens of thousands of empty rows: they are counted, not all written.
      shown.push(next < 3_000 ? textOf(batch) : String(next));
    }
  };
  try {
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      reader.push(bytes.subarray(at, at + chunkBytes));
      drain(false);
    }
    drain(true);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    shown.push(`${error.code}: ${error.message}`);
  }
  return shown.join('\n');
}

function textOf({ rows, rejections }: IngestBatch): string {
  for (const { vector } of rows.columns) {
    if (vector.kind === 'text') assert(vector.offsets.length === rows.length + 1, 'texts are as many as rows');
    else if (vector.kind === 'vec') assert(vector.values.length === rows.length * vector.dims, 'vectors are as many as rows');
    else if (vector.kind !== 'null') assert(vector.values.length === rows.length, 'cells are as many as rows');
  }
  const batch = { columns: rows.columns.map(({ vector }) => vector), selection: null, first: 0, count: rows.length };
  const text = Buffer.concat([...writeRowChunks({ columns: rows.columns, batches: [batch] })]).toString('utf8');
  JSON.parse(text);
  return `${rows.columns.map((column) => `${column.name}:${column.type}`).join()} ${text} ${JSON.stringify(rejections)}`;
}
