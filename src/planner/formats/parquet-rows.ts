/**
 * Rows of an answer as a Parquet file, a row group for each batch of the answer (several where cells are long), written
 * column after column so that others have their turn between two. Integers and instants are INT64, and `annals.types` in
 * the file's metadata tells them apart: as TIMESTAMP the open ends of `valid_to` and `system_to`, the largest i64, would be
 * no date that readers know. Texts are UTF8, json JSON as it was given, vectors lists of FLOAT.
 */
import type { DecodedArray, KeyValue, SchemaElement } from 'hyparquet';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { writeColumn } from 'hyparquet-writer/src/column.js';
import { snappyCompress } from 'hyparquet-writer/src/snappy.js';
import { assert, AssertionError } from '../../errors.ts';
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import type { Answer, OutputBatch, OutputColumn } from '../planner-contract.ts';
import { slicesOf } from './batch-slices.ts';

type Rows = Pick<Answer, 'columns' | 'batches'>;

/** The file in pieces, `facts` among its key-value metadata, each made when it is asked for; empty ones stand where only work was done. */
export function* writeParquetPieces(rows: Rows, facts: ReadonlyMap<string, string>): Generator<Uint8Array, void> {
  const columns = rows.columns.map((column) => new ParquetColumn(column));
  const sink = new PieceWriter();
  const root: SchemaElement = { name: 'schema', num_children: columns.length };
  const file = new ParquetWriter({
    writer: sink,
    schema: [root, ...columns.flatMap(({ schema }) => schema)],
    createdBy: 'annals',
    kvMetadata: keyValues(rows.columns, facts),
  });
  for (const batch of slicesOf(rows.batches, groupLimits)) {
    const start = sink.offset;
    const chunks = [];
    let uncompressed = 0n;
    for (let i = 0; i < columns.length; i++) {
      const column = columns[i]!;
      const writtenColumn = writeColumn({
        writer: sink,
        column: {
          columnName: column.schema.map(({ name }) => name).join('.'),
          element: column.encoded,
          schemaPath: [root, ...column.schema],
          codec: 'SNAPPY',
          compressors: { SNAPPY: snappyCompress },
          stats: true,
          pageSize: pageBytes,
          columnIndex: false,
          offsetIndex: true,
          ...(column.plain ? { encoding: 'PLAIN' } : {}),
        },
        pageData: column.page(batch.columns[i]!, batch),
      });
      chunks.push(writtenColumn.chunk);
      file.pendingIndexes.push(writtenColumn);
      uncompressed += writtenColumn.chunk.meta_data!.total_uncompressed_size;
      yield sink.take();
    }
    const count = BigInt(batch.count);
    file.num_rows += count;
    const total_compressed_size = BigInt(sink.offset - start);
    file.row_groups.push({ columns: chunks, total_byte_size: uncompressed, num_rows: count, total_compressed_size });
  }
  void file.finish();
  yield sink.take();
}

const pageBytes = 1 << 20;
/** A column of so much takes a few milliseconds. */
const groupLimits = { textBytes: 512 * 1024, floats: 32_768 };

function keyValues(columns: Rows['columns'], facts: ReadonlyMap<string, string>): KeyValue[] {
  const types = JSON.stringify(Object.fromEntries(columns.map(({ name, type }) => [name, type])));
  return [...facts, ['annals.types', types] as const].map(([key, value]) => ({ key, value }));
}

/** The buffer that the library writes to; its content is sent after every column. */
class PieceWriter extends ByteWriter {
  constructor() {
    super(1 << 16);
  }

  take(): Uint8Array {
    const piece = this.getBytes().slice();
    this.index = 0;
    return piece;
  }
}

/** Cells as the library wants them, with the levels that say where NULLs and lists are. */
interface Page {
  readonly values: DecodedArray;
  readonly definitionLevels: number[];
  readonly repetitionLevels: number[];
  readonly maxDefinitionLevel: number;
}

class ParquetColumn {
  /** From the column down to its leaf. */
  readonly schema: readonly SchemaElement[];
  /** The leaf in the form that the library gets for encoding: for a JSON column it would write its own spelling. */
  readonly encoded: SchemaElement;
  /** Dictionaries of the library are keyed by value, and so take 0 for -0. */
  readonly plain: boolean;
  readonly #column: OutputColumn;
  readonly #dictionaries = new Map<Dictionary, (Uint8Array | undefined)[]>();

  constructor(column: OutputColumn) {
    this.#column = column;
    this.schema = schemaOf(column);
    const leaf = this.schema.at(-1)!;
    this.encoded = column.type === 'json' ? { name: leaf.name, type: 'BYTE_ARRAY', repetition_type: 'OPTIONAL' } : leaf;
    this.plain = column.type === 'number' || column.type === 'vector';
  }

  page(vector: Vector, batch: OutputBatch): Page {
    const { count } = batch;
    if (this.#column.type === 'vector') return listPage(vector, batch);
    const definitionLevels: number[] = Array.from({ length: count }, () => 1);
    const page = { definitionLevels, repetitionLevels: [], maxDefinitionLevel: 1 };
    if (vector.kind === 'null') {
      definitionLevels.fill(0);
      return { ...page, values: Array.from({ length: count }, () => null) };
    }
    const { selection, first } = batch;
    const { nulls } = vector;
    if (selection === null && nulls === null && this.#column.type !== 'number') {
      if (vector.kind === 'i64') return { ...page, values: vector.values.subarray(first, first + count) };
    }
    if (selection === null && nulls === null && vector.kind === 'f64' && this.#column.type === 'number') {
      return { ...page, values: vector.values.subarray(first, first + count) };
    }
    const values: unknown[] = Array.from({ length: count });
    const cell = this.#cellOf(vector);
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      if (nulls !== null && nulls[row] === 1) {
        definitionLevels[i] = 0;
        values[i] = null;
      } else values[i] = cell(row);
    }
    return { ...page, values };
  }

  #cellOf(vector: Exclude<Vector, { kind: 'null' }>): (row: number) => unknown {
    switch (vector.kind) {
      case 'i32':
      case 'f64':
      case 'i64': {
        const { values } = vector;
        return this.#column.type === 'number' ? (row) => Number(values[row]!) : (row) => BigInt(values[row]!);
      }
      case 'bool':
        return (row) => vector.values[row] === 1;
      case 'text':
        return (row) => vector.heap.subarray(vector.offsets[row]!, vector.offsets[row + 1]!);
      case 'dict': {
        const { dictionary } = vector;
        const entries = this.#dictionaries.get(dictionary) ?? [];
        this.#dictionaries.set(dictionary, entries);
        return (row) => (entries[vector.values[row]!] ??= encoder.encode(dictionary.text(vector.values[row]!)));
      }
      case 'vec':
        throw new AssertionError('vectors are lists');
    }
  }
}

function schemaOf({ name, type }: OutputColumn): SchemaElement[] {
  const column = { name, repetition_type: 'OPTIONAL' } as const;
  switch (type) {
    case 'string':
      return [{ ...column, type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } }];
    case 'json':
      return [{ ...column, type: 'BYTE_ARRAY', converted_type: 'JSON', logical_type: { type: 'JSON' } }];
    case 'integer':
    case 'timestamp':
      return [{ ...column, type: 'INT64' }];
    case 'number':
      return [{ ...column, type: 'DOUBLE' }];
    case 'boolean':
      return [{ ...column, type: 'BOOLEAN' }];
    case 'vector':
      return [
        { ...column, num_children: 1, converted_type: 'LIST', logical_type: { type: 'LIST' } },
        { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
        { name: 'element', repetition_type: 'REQUIRED', type: 'FLOAT' },
      ];
  }
}

/** Definition levels of a list: 0 NULL, 2 a number; repetition levels: 0 the first of a row. */
function listPage(vector: Vector, { selection, first, count }: OutputBatch): Page {
  const values: (number | null)[] = [];
  const definitionLevels: number[] = [];
  const repetitionLevels: number[] = [];
  assert(vector.kind === 'vec' || vector.kind === 'null', 'vectors are vectors');
  for (let i = 0; i < count; i++) {
    const row = selection === null ? first + i : selection[i]!;
    if (vector.kind === 'null' || (vector.nulls !== null && vector.nulls[row] === 1)) {
      values.push(null);
      definitionLevels.push(0);
      repetitionLevels.push(0);
      continue;
    }
    for (let j = 0; j < vector.dims; j++) {
      values.push(vector.values[row * vector.dims + j]!);
      definitionLevels.push(2);
      repetitionLevels.push(j === 0 ? 0 : 1);
    }
  }
  return { values, definitionLevels, repetitionLevels, maxDefinitionLevel: 2 };
}

const encoder = new TextEncoder();
