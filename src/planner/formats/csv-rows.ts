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

type CsvAnswer = Pick<Answer, 'columns' | 'batches'>;

/** Pieces of about `chunkBytes`, each made when it is asked for. */
export function* writeCsvChunks(csvAnswer: CsvAnswer, chunkBytes = 256 * 1024): Generator<Uint8Array, void> {
  const csvColumns = csvAnswer.columns.map((column) => new CsvColumn(column));
  const csvChunk = new CsvChunkWriter(csvColumns, chunkBytes);
  csvChunk.header(csvAnswer.columns.map(({ name }) => name));
  for (const batch of csvAnswer.batches) {
    csvColumns.forEach((column, i) => column.open(batch.columns[i]!, batch));
    for (let i = 0; i < batch.count; ) {
      i = csvChunk.rows(batch, i);
      if (csvChunk.length >= chunkBytes) yield csvChunk.take();
    }
  }
  if (csvChunk.length > 0) yield csvChunk.take();
}

class CsvChunkWriter {
  length = 0;
  readonly #csvColumns: readonly CsvColumn[];
  readonly #csvChunkBytes: number;
  #csvBytes: Uint8Array;

  constructor(csvColumns: readonly CsvColumn[], chunkBytes: number) {
    this.#csvColumns = csvColumns;
    this.#csvChunkBytes = chunkBytes;
    this.#csvBytes = Buffer.allocUnsafeSlow(chunkBytes + csvSlackBytes);
  }

  take(): Uint8Array {
    const takenChunk = this.#csvBytes.subarray(0, this.length);
    this.#csvBytes = Buffer.allocUnsafeSlow(this.#csvChunkBytes + csvSlackBytes);
    this.length = 0;
    return takenChunk;
  }

  header(names: readonly string[]): void {
    names.forEach((name, i) => {
      const headerName = csvEncoder.encode(name);
      const headerBytes = this.#growChunk(this.#csvBytes, this.length, headerName.length * 2 + csvCellBytes);
      let headerOffset = this.length;
      if (i > 0) headerBytes[headerOffset++] = csvComma;
      this.length = putField(headerBytes, headerOffset, headerName, 0, headerName.length);
    });
    const bytes = this.#growChunk(this.#csvBytes, this.length, csvCellBytes);
    bytes[this.length++] = 0x0d;
    bytes[this.length++] = 0x0a;
  }

  /** Writes rows from `firstCsvRow` on until the piece is full; the row to go on with. */
  rows({ selection, first, count }: OutputBatch, firstCsvRow: number): number {
    const csvColumns = this.#csvColumns;
    const columnCount = csvColumns.length;
    let csvBytes = this.#csvBytes;
    let csvView = viewOf(csvBytes);
    let csvOffset = this.length;
    let i = firstCsvRow;
    for (; i < count && csvOffset < this.#csvChunkBytes; i++) {
      const csvRow = selection === null ? first + i : selection[i]!;
      for (let columnOrdinal = 0; columnOrdinal < columnCount; columnOrdinal++) {
        const csvColumn = csvColumns[columnOrdinal]!;
        if (csvOffset + csvCellBytes > csvBytes.length)
          csvView = viewOf((csvBytes = this.#growChunk(csvBytes, csvOffset, csvCellBytes)));
        if (columnOrdinal > 0) csvBytes[csvOffset++] = csvComma;
        if (csvColumn.nulls !== null && csvColumn.nulls[csvRow] === 1) continue;
        switch (csvColumn.layout) {
          case csvLayout.null:
            break;
          case csvLayout.i32:
            csvOffset = putInteger(csvBytes, csvOffset, csvColumn.integers[csvRow]!);
            break;
          case csvLayout.whole:
            // An integer column has no minus zero.
            csvOffset = putInteger(csvBytes, csvOffset, csvColumn.numbers[csvRow]! + 0);
            break;
          case csvLayout.number: {
            // No question gives infinities or NaN; CSV has no word for them.
            const numberCell = csvColumn.numbers[csvRow]!;
            if (Number.isFinite(numberCell)) csvOffset = putNumber(csvBytes, csvOffset, numberCell);
            break;
          }
          case csvLayout.i64: {
            const { halves } = csvColumn;
            csvOffset = putI64(csvBytes, csvOffset, halves[csvRow * 2 + 1]!, halves[csvRow * 2]! >>> 0);
            break;
          }
          case csvLayout.boolean: {
            const booleanText = csvColumn.flags[csvRow] === 1 ? csvTrue : csvFalse;
            for (let k = 0; k < booleanText.length; k++) csvBytes[csvOffset++] = booleanText[k]!;
            break;
          }
          case csvLayout.text: {
            const cellStart = csvColumn.offsets[csvRow]!;
            const cellEnd = csvColumn.offsets[csvRow + 1]!;
            const cellRoom = (cellEnd - cellStart) * 2 + csvCellBytes;
            if (csvOffset + cellRoom > csvBytes.length)
              csvView = viewOf((csvBytes = this.#growChunk(csvBytes, csvOffset, cellRoom)));
            csvOffset = putField(csvBytes, csvOffset, csvColumn.heap, cellStart, cellEnd);
            break;
          }
          case csvLayout.plain: {
            const cellStart = csvColumn.offsets[csvRow]!;
            const cellSize = csvColumn.offsets[csvRow + 1]! - cellStart;
            if (csvOffset + cellSize + csvCellBytes > csvBytes.length)
              csvView = viewOf((csvBytes = this.#growChunk(csvBytes, csvOffset, cellSize + csvCellBytes)));
            csvBytes[csvOffset++] = csvQuote;
            copyWords(csvView, csvOffset, csvColumn.heapView, cellStart, cellSize);
            csvOffset += cellSize;
            csvBytes[csvOffset++] = csvQuote;
            break;
          }
          case csvLayout.codes: {
            const entries = csvColumn.entries!;
            const dictionaryCode = csvColumn.codes[csvRow]!;
            if (dictionaryCode >= entries.ends.length || entries.ends[dictionaryCode] === 0) entries.add(dictionaryCode);
            const cellStart = entries.starts[dictionaryCode]!;
            const cellSize = entries.ends[dictionaryCode]! - cellStart;
            if (csvOffset + cellSize + csvCellBytes > csvBytes.length)
              csvView = viewOf((csvBytes = this.#growChunk(csvBytes, csvOffset, cellSize + csvCellBytes)));
            copyWords(csvView, csvOffset, entries.view, cellStart, cellSize);
            csvOffset += cellSize;
            break;
          }
          case csvLayout.floats: {
            const floatsText = csvColumn.vectorText(csvRow);
            if (csvOffset + floatsText.length + csvCellBytes > csvBytes.length)
              csvView = viewOf((csvBytes = this.#growChunk(csvBytes, csvOffset, floatsText.length + csvCellBytes)));
            csvBytes.set(floatsText, csvOffset);
            csvOffset += floatsText.length;
          }
        }
      }
      if (csvOffset + csvCellBytes > csvBytes.length)
        csvView = viewOf((csvBytes = this.#growChunk(csvBytes, csvOffset, csvCellBytes)));
      csvBytes[csvOffset++] = 0x0d;
      csvBytes[csvOffset++] = 0x0a;
    }
    this.length = csvOffset;
    return i;
  }

  /** Bytes with room for `neededBytes` more behind `usedBytes`. */
  #growChunk(bytes: Uint8Array, usedBytes: number, neededBytes: number): Uint8Array {
    if (usedBytes + neededBytes <= bytes.length) return bytes;
    const largerChunk = new Uint8Array(Math.max(bytes.length * 2, usedBytes + neededBytes));
    largerChunk.set(bytes.subarray(0, usedBytes));
    this.#csvBytes = largerChunk;
    return largerChunk;
  }
}

/** How the cells of a column lie in the batch at hand: a number, since every cell asks. */
const csvLayout = { null: 0, i32: 1, whole: 2, number: 3, i64: 4, boolean: 5, text: 6, plain: 7, codes: 8, floats: 9 } as const;

/** Writes one column for all batches of an answer; `csvLayout` tells which arrays are in use. */
class CsvColumn {
  layout: number = csvLayout.null;
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
  readonly #outputColumn: OutputColumn;
  readonly #encodedDictionaries = new Map<Dictionary, EncodedDictionary>();
  #vectorCells: Extract<Vector, { kind: 'vec' }> | null = null;

  constructor(outputColumn: OutputColumn) {
    this.#outputColumn = outputColumn;
  }

  open(vector: Vector, batch: OutputBatch): void {
    this.nulls = vector.kind === 'null' ? null : vector.nulls;
    const isNumberColumn = this.#outputColumn.type === 'number';
    switch (vector.kind) {
      case 'null':
        this.layout = csvLayout.null;
        return;
      case 'i32':
        this.layout = csvLayout.i32;
        this.integers = vector.values;
        return;
      case 'f64':
        this.layout = isNumberColumn ? csvLayout.number : csvLayout.whole;
        this.numbers = vector.values;
        return;
      case 'i64':
        this.layout = isNumberColumn ? csvLayout.number : csvLayout.i64;
        if (isNumberColumn) this.numbers = Float64Array.from(vector.values, Number);
        else this.halves = new Int32Array(vector.values.buffer, vector.values.byteOffset, vector.values.length * 2);
        return;
      case 'bool':
        this.layout = csvLayout.boolean;
        this.flags = vector.values;
        return;
      case 'text':
        ({ offsets: this.offsets, heap: this.heap } = vector);
        this.heapView = viewOf(this.heap);
        this.layout = isPlainCsvText(vector, batch) ? csvLayout.plain : csvLayout.text;
        return;
      case 'dict':
        this.layout = csvLayout.codes;
        this.codes = vector.values;
        this.entries =
          this.#encodedDictionaries.get(vector.dictionary) ?? new EncodedDictionary(vector.dictionary, encodeCsvField);
        this.#encodedDictionaries.set(vector.dictionary, this.entries);
        return;
      case 'vec':
        this.layout = csvLayout.floats;
        this.#vectorCells = vector;
    }
  }

  /** A vector as a quoted field. */
  vectorText(row: number): Uint8Array {
    const { values, dims } = this.#vectorCells!;
    const vectorWriter = new ByteWriter(dims * 12 + 4);
    vectorWriter.byte(0x22);
    vectorWriter.byte(0x5b);
    for (let i = 0; i < dims; i++) {
      if (i > 0) vectorWriter.byte(csvComma);
      vectorWriter.float(values[row * dims + i]!);
    }
    vectorWriter.byte(0x5d);
    vectorWriter.byte(0x22);
    return vectorWriter.take();
  }
}

/** Whether the texts of the rows are one range of the heap that holds no quote, with room behind it. */
function isPlainCsvText({ offsets, heap }: Extract<Vector, { kind: 'text' }>, { selection, first, count }: OutputBatch): boolean {
  if (selection !== null) return false;
  const textStart = offsets[first]!;
  const textEnd = offsets[first + count]!;
  return (
    textEnd + wordSlack <= heap.length &&
    !Buffer.from(heap.buffer, heap.byteOffset + textStart, textEnd - textStart).includes(csvQuote)
  );
}

function encodeCsvField(text: string): Uint8Array {
  const fieldText = csvEncoder.encode(text);
  const fieldBytes = new Uint8Array(fieldText.length * 2 + 2);
  return fieldBytes.subarray(0, putField(fieldBytes, 0, fieldText, 0, fieldText.length));
}

/** Room for a comma, the longest number and the end of a line. */
const csvCellBytes = 40;
const csvSlackBytes = 8_192;
const csvComma = 0x2c;
const csvQuote = 0x22;
const csvEncoder = new TextEncoder();
const csvTrue = csvEncoder.encode('true');
const csvFalse = csvEncoder.encode('false');
