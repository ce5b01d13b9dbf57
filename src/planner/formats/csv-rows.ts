/**
 * Rows of an answer as CSV (RFC 4180, UTF-8, CRLF, a header). Texts stand in quotes, json, vectors and the names of columns among
 * them, and nothing else does: so `""` is the empty text and an empty field NULL, `"7"` a text and `7` an integer, and a tool
 * that guesses a file's dialect from its first rows meets a quote there. Integers and instants are their digits.
 */
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import type { Answer, OutputBatch, OutputColumn } from '../planner-contract.ts';
import { ByteWriter } from './byte-writer.ts';
import { putField, putI64, putInteger, putNumber } from './cell-text.ts';
import { copyWords, viewOf, wordSlack } from './short-copies.ts';
import { EncodedDictionary } from './encoded-dictionary.ts';

type Rows = Pick<Answer, 'columns' | 'batches'>;

/** Pieces of about `chunkBytes`, each made when it is asked for. */
export function* writeCsvChunks(rows: Rows, chunkBytes = 256 * 1024): Generator<Uint8Array, void> {
  const columns = rows.columns.map((column) => new CsvColumn(column));
  const piece = new CsvPiece(columns, chunkBytes);
  piece.header(rows.columns.map(({ name }) => name));
  for (const batch of rows.batches) {
    columns.forEach((column, i) => column.open(batch.columns[i]!, batch));
    for (let i = 0; i < batch.count; ) {
      i = piece.rows(batch, i);
      if (piece.length >= chunkBytes) yield piece.take();
    }
  }
  if (piece.length > 0) yield piece.take();
}

class CsvPiece {
  length = 0;
  readonly #columns: readonly CsvColumn[];
  readonly #chunkBytes: number;
  #bytes: Uint8Array;

  constructor(columns: readonly CsvColumn[], chunkBytes: number) {
    this.#columns = columns;
    this.#chunkBytes = chunkBytes;
    this.#bytes = Buffer.allocUnsafeSlow(chunkBytes + slackBytes);
  }

  take(): Uint8Array {
    const taken = this.#bytes.subarray(0, this.length);
    this.#bytes = Buffer.allocUnsafeSlow(this.#chunkBytes + slackBytes);
    this.length = 0;
    return taken;
  }

  header(names: readonly string[]): void {
    names.forEach((name, i) => {
      const source = encoder.encode(name);
      const bytes = this.#grow(this.#bytes, this.length, source.length * 2 + cellBytes);
      let at = this.length;
      if (i > 0) bytes[at++] = comma;
      this.length = putField(bytes, at, source, 0, source.length);
    });
    const bytes = this.#grow(this.#bytes, this.length, cellBytes);
    bytes[this.length++] = 0x0d;
    bytes[this.length++] = 0x0a;
  }

  /** Writes rows from `from` on until the piece is full; the row to go on with. */
  rows({ selection, first, count }: OutputBatch, from: number): number {
    const columns = this.#columns;
    const width = columns.length;
    let bytes = this.#bytes;
    let view = viewOf(bytes);
    let at = this.length;
    let i = from;
    for (; i < count && at < this.#chunkBytes; i++) {
      const row = selection === null ? first + i : selection[i]!;
      for (let c = 0; c < width; c++) {
        const column = columns[c]!;
        if (at + cellBytes > bytes.length) view = viewOf((bytes = this.#grow(bytes, at, cellBytes)));
        if (c > 0) bytes[at++] = comma;
        if (column.nulls !== null && column.nulls[row] === 1) continue;
        switch (column.layout) {
          case layout.null:
            break;
          case layout.i32:
            at = putInteger(bytes, at, column.integers[row]!);
            break;
          case layout.whole:
            // An integer column has no minus zero.
            at = putInteger(bytes, at, column.numbers[row]! + 0);
            break;
          case layout.number: {
            // No question gives infinities or NaN; CSV has no word for them.
            const value = column.numbers[row]!;
            if (Number.isFinite(value)) at = putNumber(bytes, at, value);
            break;
          }
          case layout.i64: {
            const { halves } = column;
            at = putI64(bytes, at, halves[row * 2 + 1]!, halves[row * 2]! >>> 0);
            break;
          }
          case layout.boolean: {
            const word = column.flags[row] === 1 ? trueText : falseText;
            for (let k = 0; k < word.length; k++) bytes[at++] = word[k]!;
            break;
          }
          case layout.text: {
            const start = column.offsets[row]!;
            const end = column.offsets[row + 1]!;
            const room = (end - start) * 2 + cellBytes;
            if (at + room > bytes.length) view = viewOf((bytes = this.#grow(bytes, at, room)));
            at = putField(bytes, at, column.heap, start, end);
            break;
          }
          case layout.plain: {
            const start = column.offsets[row]!;
            const size = column.offsets[row + 1]! - start;
            if (at + size + cellBytes > bytes.length) view = viewOf((bytes = this.#grow(bytes, at, size + cellBytes)));
            bytes[at++] = quote;
            copyWords(view, at, column.heapView, start, size);
            at += size;
            bytes[at++] = quote;
            break;
          }
          case layout.codes: {
            const entries = column.entries!;
            const code = column.codes[row]!;
            if (code >= entries.ends.length || entries.ends[code] === 0) entries.add(code);
            const start = entries.starts[code]!;
            const size = entries.ends[code]! - start;
            if (at + size + cellBytes > bytes.length) view = viewOf((bytes = this.#grow(bytes, at, size + cellBytes)));
            copyWords(view, at, entries.view, start, size);
            at += size;
            break;
          }
          case layout.floats: {
            const text = column.vectorText(row);
            if (at + text.length + cellBytes > bytes.length)
              view = viewOf((bytes = this.#grow(bytes, at, text.length + cellBytes)));
            bytes.set(text, at);
            at += text.length;
          }
        }
      }
      if (at + cellBytes > bytes.length) view = viewOf((bytes = this.#grow(bytes, at, cellBytes)));
      bytes[at++] = 0x0d;
      bytes[at++] = 0x0a;
    }
    this.length = at;
    return i;
  }

  /** Bytes with room for `size` more behind `used`. */
  #grow(bytes: Uint8Array, used: number, size: number): Uint8Array {
    if (used + size <= bytes.length) return bytes;
    const larger = new Uint8Array(Math.max(bytes.length * 2, used + size));
    larger.set(bytes.subarray(0, used));
    this.#bytes = larger;
    return larger;
  }
}

/** How the cells of a column lie in the batch at hand: a number, since every cell asks. */
const layout = { null: 0, i32: 1, whole: 2, number: 3, i64: 4, boolean: 5, text: 6, plain: 7, codes: 8, floats: 9 } as const;

/** Writes one column for all batches of an answer; `layout` tells which arrays are in use. */
class CsvColumn {
  layout: number = layout.null;
  nulls: Uint8Array | null = null;
  integers: Int32Array = new Int32Array(0);
  numbers: Float64Array = new Float64Array(0);
  /** 64-bit integers, low half before high: reading a bigint would make an object. */
  halves: Int32Array = new Int32Array(0);
  flags: Uint8Array = new Uint8Array(0);
  offsets: Uint32Array = new Uint32Array(0);
  heap: Uint8Array = new Uint8Array(0);
  heapView: DataView = viewOf(this.heap);
  codes: Int32Array = new Int32Array(0);
  entries: EncodedDictionary | null = null;
  readonly #column: OutputColumn;
  readonly #dictionaries = new Map<Dictionary, EncodedDictionary>();
  #floats: Extract<Vector, { kind: 'vec' }> | null = null;

  constructor(column: OutputColumn) {
    this.#column = column;
  }

  open(vector: Vector, batch: OutputBatch): void {
    this.nulls = vector.kind === 'null' ? null : vector.nulls;
    const number = this.#column.type === 'number';
    switch (vector.kind) {
      case 'null':
        this.layout = layout.null;
        return;
      case 'i32':
        this.layout = layout.i32;
        this.integers = vector.values;
        return;
      case 'f64':
        this.layout = number ? layout.number : layout.whole;
        this.numbers = vector.values;
        return;
      case 'i64':
        this.layout = number ? layout.number : layout.i64;
        if (number) this.numbers = Float64Array.from(vector.values, Number);
        else this.halves = new Int32Array(vector.values.buffer, vector.values.byteOffset, vector.values.length * 2);
        return;
      case 'bool':
        this.layout = layout.boolean;
        this.flags = vector.values;
        return;
      case 'text':
        ({ offsets: this.offsets, heap: this.heap } = vector);
        this.heapView = viewOf(this.heap);
        this.layout = isPlain(vector, batch) ? layout.plain : layout.text;
        return;
      case 'dict':
        this.layout = layout.codes;
        this.codes = vector.values;
        this.entries = this.#dictionaries.get(vector.dictionary) ?? new EncodedDictionary(vector.dictionary, encodeField);
        this.#dictionaries.set(vector.dictionary, this.entries);
        return;
      case 'vec':
        this.layout = layout.floats;
        this.#floats = vector;
    }
  }

  /** A vector as a quoted field. */
  vectorText(row: number): Uint8Array {
    const { values, dims } = this.#floats!;
    const writer = new ByteWriter(dims * 12 + 4);
    writer.byte(0x22);
    writer.byte(0x5b);
    for (let i = 0; i < dims; i++) {
      if (i > 0) writer.byte(comma);
      writer.float(values[row * dims + i]!);
    }
    writer.byte(0x5d);
    writer.byte(0x22);
    return writer.take();
  }
}

/** Whether the texts of the rows are one range of the heap that holds no quote, with room behind it. */
function isPlain({ offsets, heap }: Extract<Vector, { kind: 'text' }>, { selection, first, count }: OutputBatch): boolean {
  if (selection !== null) return false;
  const from = offsets[first]!;
  const to = offsets[first + count]!;
  return to + wordSlack <= heap.length && !Buffer.from(heap.buffer, heap.byteOffset + from, to - from).includes(quote);
}

function encodeField(text: string): Uint8Array {
  const source = encoder.encode(text);
  const bytes = new Uint8Array(source.length * 2 + 2);
  return bytes.subarray(0, putField(bytes, 0, source, 0, source.length));
}

/** Room for a comma, the longest number and the end of a line. */
const cellBytes = 40;
const slackBytes = 8_192;
const comma = 0x2c;
const quote = 0x22;
const encoder = new TextEncoder();
const trueText = encoder.encode('true');
const falseText = encoder.encode('false');
