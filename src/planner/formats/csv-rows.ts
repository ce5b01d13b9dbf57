/**
 * Rows of an answer as CSV (RFC 4180, UTF-8, CRLF, a header). NULL is an empty field and the empty text is `""`. A text is
 * quoted where it has to be, and where it reads like a number or a boolean, so that a reader who takes unquoted fields
 * for what they look like gets every cell back. Integers and instants are their digits; json and vectors are JSON.
 */
import type { Dictionary, Vector } from '../../log/columns.ts';
import type { ColumnType } from '../../log/value.ts';
import type { Answer, OutputBatch } from '../planner-contract.ts';
import { ByteWriter } from './byte-writer.ts';
import { EncodedDictionary } from './encoded-dictionary.ts';

type Rows = Pick<Answer, 'columns' | 'batches'>;

/** Pieces of about `chunkBytes`, each made when it is asked for. */
export function* writeCsvChunks(rows: Rows, chunkBytes = 128 * 1024): Generator<Buffer, void> {
  const writer = new ByteWriter(chunkBytes + 16_384);
  rows.columns.forEach(({ name }, i) => {
    if (i > 0) writer.byte(comma);
    // Bare at the start of a file it would be taken for a byte order mark.
    const bytes = encoder.encode(name);
    if (name.startsWith('\ufeff')) writer.quotedField(bytes, 0, bytes.length);
    else writer.field(bytes, 0, bytes.length);
  });
  writer.raw(lineEnd);
  const columns = rows.columns.map(({ type }) => new CsvColumn(type));
  for (const batch of rows.batches) {
    columns.forEach((column, i) => column.open(batch.columns[i]!));
    for (let i = 0; i < batch.count; ) {
      i = writeRows(writer, columns, batch, i, chunkBytes);
      if (writer.length >= chunkBytes) yield writer.take();
    }
  }
  if (writer.length > 0) yield writer.take();
}

/** Writes rows from `from` on until the piece is full; the row to go on with. */
function writeRows(
  writer: ByteWriter,
  columns: readonly CsvColumn[],
  batch: OutputBatch,
  from: number,
  chunkBytes: number,
): number {
  const { selection, first, count } = batch;
  let i = from;
  for (; i < count && writer.length < chunkBytes; i++) {
    const row = selection === null ? first + i : selection[i]!;
    for (let c = 0; c < columns.length; c++) {
      if (c > 0) writer.byte(comma);
      columns[c]!.write(writer, row);
    }
    writer.raw(lineEnd);
  }
  return i;
}

/** One column through the batches of an answer. */
class CsvColumn {
  readonly #type: ColumnType;
  readonly #dictionaries = new Map<Dictionary, EncodedDictionary>();
  #vector: Vector = { kind: 'null' };
  #entries: EncodedDictionary | null = null;
  #halves: Int32Array = new Int32Array(0);

  constructor(type: ColumnType) {
    this.#type = type;
  }

  open(vector: Vector): void {
    this.#vector = vector;
    if (vector.kind === 'dict') {
      this.#entries = this.#dictionaries.get(vector.dictionary) ?? new EncodedDictionary(vector.dictionary, encodeField);
      this.#dictionaries.set(vector.dictionary, this.#entries);
    } else if (vector.kind === 'i64') {
      const { buffer, byteOffset, length } = vector.values;
      this.#halves = new Int32Array(buffer, byteOffset, length * 2);
    }
  }

  write(writer: ByteWriter, row: number): void {
    const vector = this.#vector;
    if (vector.kind === 'null' || (vector.nulls !== null && vector.nulls[row] === 1)) return;
    switch (vector.kind) {
      case 'i32':
        return writer.integer(vector.values[row]!);
      case 'f64': {
        const value = vector.values[row]!;
        // An integer column has no minus zero.
        if (this.#type !== 'number') return writer.integer(value + 0);
        return writeNumber(writer, value);
      }
      case 'i64':
        // 32-bit halves, low before high: reading a bigint would make an object.
        if (this.#type === 'number') return writeNumber(writer, Number(vector.values[row]!));
        return writer.i64(this.#halves[row * 2 + 1]!, this.#halves[row * 2]! >>> 0);
      case 'bool':
        return writer.raw(vector.values[row] === 1 ? trueText : falseText);
      case 'text':
        return writer.field(vector.heap, vector.offsets[row]!, vector.offsets[row + 1]!);
      case 'dict': {
        const entries = this.#entries!;
        const code = vector.values[row]!;
        if (code >= entries.ends.length || entries.ends[code] === 0) entries.add(code);
        return writer.copy(entries.heap, entries.starts[code]!, entries.ends[code]!);
      }
      case 'vec': {
        const { values, dims } = vector;
        writer.raw(vectorStart);
        for (let i = 0; i < dims; i++) {
          if (i > 0) writer.byte(comma);
          writer.float(values[row * dims + i]!);
        }
        return writer.raw(vectorEnd);
      }
    }
  }
}

/** No question gives infinities or NaN; JSON and CSV have no word for them. */
function writeNumber(writer: ByteWriter, value: number): void {
  if (Number.isFinite(value)) writer.number(value);
}

function encodeField(text: string): Uint8Array {
  const bytes = encoder.encode(text);
  const writer = new ByteWriter(bytes.length * 2 + 2);
  writer.field(bytes, 0, bytes.length);
  return writer.take();
}

const comma = 0x2c;
const encoder = new TextEncoder();
const lineEnd = encoder.encode('\r\n');
const trueText = encoder.encode('true');
const falseText = encoder.encode('false');
const vectorStart = encoder.encode('"[');
const vectorEnd = encoder.encode(']"');
