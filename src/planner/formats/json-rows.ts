/**
 * Rows of an answer as JSON text in UTF-8, written cell by cell into one buffer: no object and no string per row.
 * Integers and instants are bare exact tokens, numbers the shortest text that reads back as the same double, JSON
 * columns as they were given, vectors arrays. A number that JSON can't say (the result of an overflow) is null.
 */
import { AssertionError } from '../../errors.ts';
import type { Vector } from '../../log/columns.ts';
import type { ColumnType } from '../../log/value.ts';
import { ByteWriter } from './byte-writer.ts';
import type { Answer, OutputBatch } from '../planner-contract.ts';

type Rows = Pick<Answer, 'columns' | 'batches'>;

/** `[{…},{…}]` as one string, for answers that are sent in one piece. */
export function writeRows(rows: Rows): string {
  const [only, ...more] = writeRowChunks(rows, 'array', Number.MAX_SAFE_INTEGER);
  if (only === undefined || more.length > 0) throw new AssertionError('an array in chunks of any size is one chunk');
  return only.toString('utf8');
}

/** One object a line, in one buffer. */
export function writeNdjson(rows: Rows): Buffer {
  return Buffer.concat([...writeRowChunks(rows, 'lines', Number.MAX_SAFE_INTEGER)]);
}

/** The same rows in pieces of about `chunkBytes`, each made when it is asked for. */
export function* writeRowChunks(
  rows: Rows,
  shape: 'array' | 'lines' = 'array',
  chunkBytes = 256 * 1024,
): Generator<Buffer, void> {
  const writer = new ByteWriter(Math.min(chunkBytes, 4096));
  const array = shape === 'array';
  if (array) writer.byte(0x5b);
  const prefixes = prefixesOf(rows.columns);
  let first = true;
  for (const batch of rows.batches) {
    const cells = rows.columns.map((column, i) => cellWriter(batch.columns[i]!, column.type, array));
    for (let i = 0; i < batch.count; i++) {
      const row = rowAt(batch, i);
      if (array && !first) writer.byte(0x2c);
      first = false;
      if (cells.length === 0) writer.byte(0x7b);
      for (let c = 0; c < cells.length; c++) {
        writer.raw(prefixes[c]!);
        cells[c]!(writer, row);
      }
      writer.byte(0x7d);
      if (!array) writer.byte(0x0a);
      if (writer.length >= chunkBytes) yield writer.take();
    }
  }
  if (array) writer.byte(0x5d);
  if (writer.length > 0) yield writer.take();
}

const knownPrefixes = new WeakMap<Rows['columns'], readonly Uint8Array[]>();

/** What stands before each value of a row. Answers of one plan share their columns, and so these. */
function prefixesOf(columns: Rows['columns']): readonly Uint8Array[] {
  let prefixes = knownPrefixes.get(columns);
  if (prefixes === undefined) {
    prefixes = columns.map((column, i) => encoder.encode(`${i === 0 ? '{' : ','}${JSON.stringify(column.name)}:`));
    knownPrefixes.set(columns, prefixes);
  }
  return prefixes;
}

type CellWriter = (writer: ByteWriter, row: number) => void;

function rowAt(batch: OutputBatch, i: number): number {
  return batch.selection === null ? batch.first + i : batch.selection[i]!;
}

/** One per column and batch, never one per row. */
function cellWriter(vector: Vector, type: ColumnType, keepLines: boolean): CellWriter {
  if (vector.kind === 'null') return (writer) => writer.raw(nullText);
  const write = valueWriter(vector, type, keepLines);
  const { nulls } = vector;
  if (nulls === null) return write;
  return (writer, row) => {
    if (nulls[row] === 1) writer.raw(nullText);
    else write(writer, row);
  };
}

function valueWriter(vector: Exclude<Vector, { kind: 'null' }>, type: ColumnType, keepLines: boolean): CellWriter {
  switch (vector.kind) {
    case 'i32':
    case 'f64': {
      const { values } = vector;
      if (type === 'number') return (writer, row) => writer.number(values[row]!);
      // An integer column has no minus zero.
      return (writer, row) => writer.integer(values[row]! + 0);
    }
    case 'i64': {
      const { values } = vector;
      if (type === 'number') return (writer, row) => writer.number(Number(values[row]!));
      const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
      return (writer, row) => writer.i64(halves[row * 2 + 1]!, halves[row * 2]! >>> 0);
    }
    case 'bool': {
      const { values } = vector;
      return (writer, row) => writer.raw(values[row] === 1 ? trueText : falseText);
    }
    case 'text': {
      const { heap, offsets } = vector;
      if (type === 'json' && keepLines) return (writer, row) => writer.copy(heap, offsets[row]!, offsets[row + 1]!);
      if (type === 'json') return (writer, row) => writer.copyOnOneLine(heap, offsets[row]!, offsets[row + 1]!);
      return (writer, row) => writer.text(heap, offsets[row]!, offsets[row + 1]!);
    }
    case 'dict': {
      const { values, dictionary } = vector;
      if (type === 'json') {
        return (writer, row) => {
          const text = encoder.encode(dictionary.text(values[row]!));
          if (keepLines) writer.copy(text, 0, text.length);
          else writer.copyOnOneLine(text, 0, text.length);
        };
      }
      // What a code looks like is settled at its first row; the cache ends with the batch.
      const quoted: (Uint8Array | undefined)[] = [];
      return (writer, row) => {
        const code = values[row]!;
        const known = quoted[code];
        if (known !== undefined) return writer.raw(known);
        const start = writer.length;
        writer.string(dictionary.text(code));
        if (code < dictionaryCacheMax) quoted[code] = writer.copyFrom(start);
      };
    }
    case 'vec': {
      const { values, dims } = vector;
      return (writer, row) => {
        writer.byte(0x5b);
        for (let i = 0; i < dims; i++) {
          if (i > 0) writer.byte(0x2c);
          writer.float(values[row * dims + i]!);
        }
        writer.byte(0x5d);
      };
    }
  }
}

const dictionaryCacheMax = 4096;
const encoder = new TextEncoder();
const nullText = encoder.encode('null');
const trueText = encoder.encode('true');
const falseText = encoder.encode('false');
