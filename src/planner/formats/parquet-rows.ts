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

type ParquetAnswer = Pick<Answer, 'columns' | 'batches'>;

/** The file in pieces, `parquetFacts` among its key-value metadata, each made when it is asked for; empty ones stand where only work was done. */
export function* writeParquetPieces(
  parquetAnswer: ParquetAnswer,
  parquetFacts: ReadonlyMap<string, string>,
): Generator<Uint8Array, void> {
  const parquetColumns = parquetAnswer.columns.map((parquetColumn) => new ParquetColumn(parquetColumn));
  const parquetSink = new ParquetPieceWriter();
  const rootElement: SchemaElement = { name: 'schema', num_children: parquetColumns.length };
  const parquetFile = new ParquetWriter({
    writer: parquetSink,
    schema: [rootElement, ...parquetColumns.flatMap(({ schema }) => schema)],
    createdBy: 'annals',
    kvMetadata: parquetKeyValues(parquetAnswer.columns, parquetFacts),
  });
  for (const groupBatch of slicesOf(parquetAnswer.batches, parquetGroupLimits)) {
    const groupStart = parquetSink.offset;
    const columnChunks = [];
    let uncompressedBytes = 0n;
    for (let i = 0; i < parquetColumns.length; i++) {
      const parquetColumn = parquetColumns[i]!;
      const writtenColumn = writeColumn({
        writer: parquetSink,
        column: {
          columnName: parquetColumn.schema.map(({ name }) => name).join('.'),
          element: parquetColumn.encoded,
          schemaPath: [rootElement, ...parquetColumn.schema],
          codec: 'SNAPPY',
          compressors: { SNAPPY: snappyCompress },
          stats: true,
          pageSize: parquetPageBytes,
          columnIndex: false,
          offsetIndex: true,
          ...(parquetColumn.plain ? { encoding: 'PLAIN' } : {}),
        },
        pageData: parquetColumn.page(groupBatch.columns[i]!, groupBatch),
      });
      columnChunks.push(writtenColumn.chunk);
      parquetFile.pendingIndexes.push(writtenColumn);
      uncompressedBytes += writtenColumn.chunk.meta_data!.total_uncompressed_size;
      yield parquetSink.take();
    }
    const groupRowCount = BigInt(groupBatch.count);
    parquetFile.num_rows += groupRowCount;
    const total_compressed_size = BigInt(parquetSink.offset - groupStart);
    parquetFile.row_groups.push({
      columns: columnChunks,
      total_byte_size: uncompressedBytes,
      num_rows: groupRowCount,
      total_compressed_size,
    });
  }
  void parquetFile.finish();
  yield parquetSink.take();
}

const parquetPageBytes = 1 << 20;
/** A column of so much takes a few milliseconds. */
const parquetGroupLimits = { textBytes: 512 * 1024, floats: 32_768 };

function parquetKeyValues(columns: ParquetAnswer['columns'], parquetFacts: ReadonlyMap<string, string>): KeyValue[] {
  const columnTypes = JSON.stringify(Object.fromEntries(columns.map(({ name, type }) => [name, type])));
  return [...parquetFacts, ['annals.types', columnTypes] as const].map(([key, value]) => ({ key, value }));
}

/** The buffer that the library writes to; its content is sent after every column. */
class ParquetPieceWriter extends ByteWriter {
  constructor() {
    super(1 << 16);
  }

  take(): Uint8Array {
    const parquetPiece = this.getBytes().slice();
    this.index = 0;
    return parquetPiece;
  }
}

/** Cells as the library wants them, with the levels that say where NULLs and lists are. */
interface ParquetPage {
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
  readonly #outputColumn: OutputColumn;
  readonly #encodedEntries = new Map<Dictionary, (Uint8Array | undefined)[]>();

  constructor(outputColumn: OutputColumn) {
    this.#outputColumn = outputColumn;
    this.schema = parquetSchemaOf(outputColumn);
    const leafElement = this.schema.at(-1)!;
    this.encoded =
      outputColumn.type === 'json' ? { name: leafElement.name, type: 'BYTE_ARRAY', repetition_type: 'OPTIONAL' } : leafElement;
    this.plain = outputColumn.type === 'number' || outputColumn.type === 'vector';
  }

  page(vector: Vector, groupBatch: OutputBatch): ParquetPage {
    const { count } = groupBatch;
    if (this.#outputColumn.type === 'vector') return parquetListPage(vector, groupBatch);
    const definitionLevels: number[] = Array.from({ length: count }, () => 1);
    const columnPage = { definitionLevels, repetitionLevels: [], maxDefinitionLevel: 1 };
    if (vector.kind === 'null') {
      definitionLevels.fill(0);
      return { ...columnPage, values: Array.from({ length: count }, () => null) };
    }
    const { selection, first } = groupBatch;
    const { nulls } = vector;
    if (selection === null && nulls === null && this.#outputColumn.type !== 'number') {
      if (vector.kind === 'i64') return { ...columnPage, values: vector.values.subarray(first, first + count) };
    }
    if (selection === null && nulls === null && vector.kind === 'f64' && this.#outputColumn.type === 'number') {
      return { ...columnPage, values: vector.values.subarray(first, first + count) };
    }
    const values: unknown[] = Array.from({ length: count });
    const parquetCell = this.#parquetCellOf(vector);
    for (let i = 0; i < count; i++) {
      const pageRow = selection === null ? first + i : selection[i]!;
      if (nulls !== null && nulls[pageRow] === 1) {
        definitionLevels[i] = 0;
        values[i] = null;
      } else values[i] = parquetCell(pageRow);
    }
    return { ...columnPage, values };
  }

  #parquetCellOf(vector: Exclude<Vector, { kind: 'null' }>): (row: number) => unknown {
    switch (vector.kind) {
      case 'i32':
      case 'f64':
      case 'i64': {
        const { values } = vector;
        return this.#outputColumn.type === 'number' ? (row) => Number(values[row]!) : (row) => BigInt(values[row]!);
      }
      case 'bool':
        return (row) => vector.values[row] === 1;
      case 'text':
        return (row) => vector.heap.subarray(vector.offsets[row]!, vector.offsets[row + 1]!);
      case 'dict': {
        const { dictionary } = vector;
        const encodedEntries = this.#encodedEntries.get(dictionary) ?? [];
        this.#encodedEntries.set(dictionary, encodedEntries);
        return (row) => (encodedEntries[vector.values[row]!] ??= parquetEncoder.encode(dictionary.text(vector.values[row]!)));
      }
      case 'vec':
        throw new AssertionError('vectors are lists');
    }
  }
}

function parquetSchemaOf({ name, type }: OutputColumn): SchemaElement[] {
  const columnElement = { name, repetition_type: 'OPTIONAL' } as const;
  switch (type) {
    case 'string':
      return [{ ...columnElement, type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } }];
    case 'json':
      return [{ ...columnElement, type: 'BYTE_ARRAY', converted_type: 'JSON', logical_type: { type: 'JSON' } }];
    case 'integer':
    case 'timestamp':
      return [{ ...columnElement, type: 'INT64' }];
    case 'number':
      return [{ ...columnElement, type: 'DOUBLE' }];
    case 'boolean':
      return [{ ...columnElement, type: 'BOOLEAN' }];
    case 'vector':
      return [
        { ...columnElement, num_children: 1, converted_type: 'LIST', logical_type: { type: 'LIST' } },
        { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
        { name: 'element', repetition_type: 'REQUIRED', type: 'FLOAT' },
      ];
  }
}

/** Definition levels of a list: 0 NULL, 2 a number; repetition levels: 0 the first of a row. */
function parquetListPage(vector: Vector, { selection, first, count }: OutputBatch): ParquetPage {
  const values: (number | null)[] = [];
  const definitionLevels: number[] = [];
  const repetitionLevels: number[] = [];
  assert(vector.kind === 'vec' || vector.kind === 'null', 'vectors are vectors');
  for (let i = 0; i < count; i++) {
    const listRow = selection === null ? first + i : selection[i]!;
    if (vector.kind === 'null' || (vector.nulls !== null && vector.nulls[listRow] === 1)) {
      values.push(null);
      definitionLevels.push(0);
      repetitionLevels.push(0);
      continue;
    }
    for (let j = 0; j < vector.dims; j++) {
      values.push(vector.values[listRow * vector.dims + j]!);
      definitionLevels.push(2);
      repetitionLevels.push(j === 0 ? 0 : 1);
    }
  }
  return { values, definitionLevels, repetitionLevels, maxDefinitionLevel: 2 };
}

const parquetEncoder = new TextEncoder();
