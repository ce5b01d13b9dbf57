/**
 * Rows of an answer as JSON text in UTF-8, written cell by cell into one buffer: no object and no string per row.
 * Integers and instants are bare exact tokens, numbers the shortest text that reads back as the same double, JSON
 * columns as they were given, vectors arrays. A number that JSON can't say (the result of an overflow) is null.
 */
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import { ByteWriter, escapeOf, FixedTexts, numberBytes, putEscaped } from './byte-writer.ts';
import { putInteger, putNumber } from './cell-text.ts';
import { viewOf } from './short-copies.ts';
import type { Answer, OutputBatch, OutputColumn, RowTaker } from '../planner-contract.ts';

type Rows = Pick<Answer, 'columns' | 'batches'>;

/** `array`: each row behind a comma, which stands for the bracket before the first. JSON columns of `lines` have no line break. */
type Shape = 'array' | 'lines' | 'groups';

/** Writes one object per line, into one buffer. */
export function writeNdjson(rows: Rows): Buffer {
  return Buffer.concat([...writeRowChunks(rows, 'lines', Number.MAX_SAFE_INTEGER)]);
}

/** The same rows in pieces of about `chunkBytes`, each made when it is asked for. */
export function* writeRowChunks(
  rows: Rows,
  shape: 'array' | 'lines' = 'array',
  chunkBytes = 256 * 1024,
): Generator<Buffer, void> {
  if (shape === 'array') return yield* moreRows(rows, { after: 0, chunkBytes });
  yield* chunks(new ByteWriter(Math.min(chunkBytes, pieceBytes)), rows, shape, chunkBytes);
}

/** The rest of an array of which `after` rows are written already, with its closing bracket. */
export function* moreRows(rows: Rows, { after = 0, chunkBytes = 256 * 1024 }): Generator<Buffer, void> {
  const writer = new ByteWriter(Math.min(chunkBytes, pieceBytes));
  const pieces = chunks(writer, rows, 'array', chunkBytes);
  let opened = after > 0;
  for (const piece of pieces) {
    // The comma before the first row of all is where the array begins.
    if (!opened) piece[0] = openingBracket;
    opened = true;
    yield piece;
  }
  yield Buffer.from(opened ? ']' : '[]');
}

function* chunks(writer: ByteWriter, rows: Rows, shape: Shape, chunkBytes: number): Generator<Buffer, void> {
  const columns = new JsonColumns(rows.columns, shape);
  for (const batch of rows.batches) {
    columns.open(batch);
    for (let i = 0; i < batch.count; ) {
      i = columns.write(writer, batch, i, batch.count, chunkBytes);
      if (writer.length >= chunkBytes) yield writer.take();
    }
  }
  if (writer.length > 0) yield writer.take();
}

/** Arrays of at most `groupRows` rows each, without a line break in any. */
export function* writeRowGroups(rows: Rows, groupRows: number): Generator<Buffer, void> {
  const writer = new ByteWriter(65_536);
  const columns = new JsonColumns(rows.columns, 'groups');
  for (const batch of rows.batches) {
    columns.open(batch);
    for (let first = 0; first < batch.count; first += groupRows) {
      columns.write(writer, batch, first, Math.min(first + groupRows, batch.count), Number.MAX_SAFE_INTEGER);
      writer.byte(0x5d);
      const group = writer.take();
      group[0] = openingBracket;
      yield group;
    }
  }
}

export interface RowsTextLimits {
  readonly rowsMax: number;
  readonly bytesMax: number;
}

/** Writes rows as text while they are read, up to limits of rows and bytes, behind the writer's content. */
export class RowsText implements RowTaker {
  rows = 0;
  readonly writer: ByteWriter;
  readonly #limits: RowsTextLimits;
  readonly #start: number;
  #full = false;

  constructor(writer: ByteWriter, limits: RowsTextLimits) {
    this.writer = writer;
    this.#limits = limits;
    this.#start = writer.length;
  }

  get bytes(): number {
    return this.writer.length - this.#start;
  }

  take(columns: readonly OutputColumn[], batch: OutputBatch): boolean {
    const { rowsMax, bytesMax } = this.#limits;
    if (this.#full || this.rows + batch.count > rowsMax) return !(this.#full = true);
    const { writer } = this;
    const before = writer.length;
    const most = this.#start + bytesMax;
    const cells = columnsOf(columns);
    cells.open(batch);
    const writtenCells = cells.write(writer, batch, 0, batch.count, most);
    cells.close();
    // A batch is taken as a whole, or not at all.
    if (writtenCells < batch.count || writer.length > most) {
      writer.length = before;
      return !(this.#full = true);
    }
    this.rows += batch.count;
    return true;
  }

  restart(): void {
    this.writer.length = this.#start;
    this.rows = 0;
    this.#full = false;
  }

  /** The array ends here. */
  close(): void {
    if (this.rows === 0) this.writer.byte(openingBracket);
    else this.#open();
    this.writer.byte(0x5d);
  }

  /** Ends this part of the array without its bracket; `moreRows` writes the rest. */
  leaveOpen(): void {
    if (this.rows > 0) this.#open();
  }

  #open(): void {
    this.writer.bytes[this.#start] = openingBracket;
  }
}

const pieceBytes = 65_536;
const openingBracket = 0x5b;

const known = new WeakMap<readonly OutputColumn[], JsonColumns>();

/** Answers of one plan share their columns and these writers: each caller finishes within one turn. */
function columnsOf(columns: readonly OutputColumn[]): JsonColumns {
  let jsonColumns = known.get(columns);
  if (jsonColumns === undefined) known.set(columns, (jsonColumns = new JsonColumns(columns, 'array')));
  return jsonColumns;
}

/** The fixed texts around the cells of a row: text k precedes the k-th of `cells`, the last one follows all of them. */
interface Frame {
  readonly cells: readonly JsonColumn[];
  readonly texts: FixedTexts;
  /** Bytes of a row without its texts, JSON and vectors. */
  readonly rowBytes: number;
}

/** How the cells of a column lie in the batch at hand: a number, since every cell asks. */
const layout = {
  null: 0,
  i32: 1,
  whole: 2,
  number: 3,
  i64: 4,
  wide: 5,
  boolean: 6,
  text: 7,
  json: 8,
  codes: 9,
  words: 10,
  floats: 11,
};

class JsonColumn {
  layout = layout.null;
  nulls: Uint8Array | null = null;
  integers: Int32Array = noIntegers;
  numbers: Float64Array = noNumbers;
  /** 64-bit integers, low half before high: reading a bigint would make an object. */
  halves: Int32Array = noIntegers;
  bytes: Uint8Array = noBytes;
  /** A view of the same bytes. */
  view: DataView = noView;
  offsets: Uint32Array = noOffsets;
  dictionary: Dictionary | null = null;
  vector: Vector = nullVector;
  readonly #column: OutputColumn;

  constructor(column: OutputColumn) {
    this.#column = column;
  }

  open(vector: Exclude<Vector, { kind: 'null' }>): void {
    const { type } = this.#column;
    this.vector = vector;
    this.nulls = vector.nulls;
    switch (vector.kind) {
      case 'i32':
        this.layout = layout.i32;
        this.integers = vector.values;
        return;
      case 'f64':
        this.layout = type === 'number' ? layout.number : layout.whole;
        this.numbers = vector.values;
        return;
      case 'i64':
        this.layout = type === 'number' ? layout.wide : layout.i64;
        this.halves = new Int32Array(vector.values.buffer, vector.values.byteOffset, vector.values.length * 2);
        return;
      case 'bool':
        this.layout = layout.boolean;
        this.bytes = vector.values;
        return;
      case 'text':
        this.layout = type === 'json' ? layout.json : layout.text;
        this.#hold(vector.heap, vector.offsets);
        return;
      case 'dict': {
        const utf8 = type === 'json' ? undefined : vector.dictionary.utf8;
        this.layout = utf8 === undefined ? layout.words : layout.codes;
        this.integers = vector.values;
        this.dictionary = vector.dictionary;
        if (utf8 !== undefined) this.#hold(utf8.heap, utf8.offsets);
        return;
      }
      case 'vec':
        this.layout = layout.floats;
    }
  }

  /** Lets go of arrays, but for those of columns at rest: their memory is there in any case. */
  close(): void {
    this.nulls = null;
    this.integers = this.halves = noIntegers;
    this.numbers = noNumbers;
    this.offsets = noOffsets;
    this.dictionary = null;
    this.vector = nullVector;
    if (!(this.bytes.buffer instanceof SharedArrayBuffer)) this.#hold(noBytes, noOffsets);
  }

  #hold(heap: Uint8Array, offsets: Uint32Array): void {
    this.offsets = offsets;
    // Mostly that of the batch before.
    if (heap === this.bytes) return;
    this.bytes = heap;
    this.view = heap === noBytes ? noView : viewOf(heap);
  }

  /** The text of a code that has no bytes in place. */
  word(code: number): Uint8Array {
    const text = this.dictionary!.text(code);
    return encoder.encode(this.#column.type === 'json' ? text : JSON.stringify(text));
  }
}

const noIntegers = new Int32Array(0);
const noNumbers = new Float64Array(0);
const noBytes = new Uint8Array(0);
const noView = viewOf(noBytes);
const noOffsets = new Uint32Array(0);
const nullVector: Vector = { kind: 'null' };

/** The columns of an answer through its batches. */
class JsonColumns {
  readonly #columns: readonly JsonColumn[];
  readonly #names: readonly string[];
  readonly #shape: Shape;
  /** Frames by the set of columns that hold only NULL, whose text is part of the frame. */
  readonly #frames = new Map<string, Frame>();
  #frame: Frame;

  constructor(columns: readonly OutputColumn[], shape: Shape) {
    const opening = shape === 'lines' ? '{' : ',{';
    this.#columns = columns.map((column) => new JsonColumn(column));
    this.#names = columns.map(({ name }, i) => `${i === 0 ? opening : ','}${JSON.stringify(name)}:`);
    this.#shape = shape;
    this.#frame = this.#frameWithout('');
  }

  open({ columns }: OutputBatch): void {
    let absent = '';
    for (let i = 0; i < this.#columns.length; i++) {
      const vector = columns[i]!;
      if (vector.kind === 'null') absent += `${i} `;
      else this.#columns[i]!.open(vector);
    }
    this.#frame = this.#frames.get(absent) ?? this.#frameWithout(absent);
  }

  close(): void {
    for (const column of this.#columns) column.close();
  }

  /** Writes rows from `from` to `end` - 1 while the writer holds less than `bytesMax`; the row to go on with. */
  write(writer: ByteWriter, { selection, first }: OutputBatch, from: number, end: number, bytesMax: number): number {
    const { cells, texts, rowBytes } = this.#frame;
    const { words, starts, sizes } = texts;
    const oneLine = this.#shape !== 'array';
    const width = cells.length;
    let at = writer.length;
    let bytes = writer.bytes;
    let view = writer.view;
    let i = from;
    for (; i < end && at < bytesMax; i++) {
      const row = selection === null ? first + i : selection[i]!;
      if (at + rowBytes > bytes.length) {
        writer.length = at;
        writer.reserve(rowBytes);
        ({ bytes, view } = writer);
      }
      for (let c = 0; ; c++) {
        for (let k = starts[c]!, to = starts[c + 1]!, target = at; k < to; k++, target += 8)
          view.setFloat64(target, words[k]!, true);
        at += sizes[c]!;
        if (c === width) break;
        const column = cells[c]!;
        if (column.nulls !== null && column.nulls[row] === 1) {
          view.setInt32(at, nullWord, true);
          at += 4;
          continue;
        }
        switch (column.layout) {
          case layout.i32:
            at = putInteger(bytes, at, column.integers[row]!);
            break;
          case layout.whole:
            // An integer column has no minus zero.
            at = putInteger(bytes, at, column.numbers[row]! + 0);
            break;
          case layout.number: {
            const value = column.numbers[row]!;
            if (Number.isFinite(value)) at = putNumber(bytes, at, value);
            else {
              view.setInt32(at, nullWord, true);
              at += 4;
            }
            break;
          }
          case layout.wide:
            at = putNumber(bytes, at, Number((column.vector as Extract<Vector, { kind: 'i64' }>).values[row]!));
            break;
          case layout.i64: {
            const { halves } = column;
            at = writer.putI64(at, halves[row * 2 + 1]!, halves[row * 2]! >>> 0);
            break;
          }
          case layout.boolean:
            if (column.bytes[row] === 1) {
              view.setInt32(at, trueWord, true);
              at += 4;
            } else {
              view.setInt32(at, falseWord, true);
              bytes[at + 4] = 0x65;
              at += 5;
            }
            break;
          case layout.text:
          case layout.codes: {
            const cell = column.layout === layout.text ? row : column.integers[row]!;
            const start = column.offsets[cell]!;
            const stop = column.offsets[cell + 1]!;
            if (at + (stop - start) * 6 + rowBytes > bytes.length) {
              writer.length = at;
              writer.reserve((stop - start) * 6 + rowBytes);
              ({ bytes, view } = writer);
            }
            at = putText(bytes, view, at, column, start, stop);
            break;
          }
          default: {
            writer.length = at;
            this.#writeLong(writer, column, row, oneLine);
            writer.reserve(rowBytes);
            at = writer.length;
            ({ bytes, view } = writer);
          }
        }
      }
    }
    writer.length = at;
    return i;
  }

  /** Writes rare kinds of cells, and those that are long anyway. */
  #writeLong(writer: ByteWriter, column: JsonColumn, row: number, oneLine: boolean): void {
    if (column.layout === layout.json) {
      const start = column.offsets[row]!;
      const end = column.offsets[row + 1]!;
      return oneLine ? writer.copyOnOneLine(column.bytes, start, end) : writer.copy(column.bytes, start, end);
    }
    if (column.layout === layout.words) {
      const text = column.word(column.integers[row]!);
      return oneLine ? writer.copyOnOneLine(text, 0, text.length) : writer.copy(text, 0, text.length);
    }
    const { values, dims } = column.vector as Extract<Vector, { kind: 'vec' }>;
    writer.byte(openingBracket);
    for (let i = 0; i < dims; i++) {
      if (i > 0) writer.byte(0x2c);
      writer.float(values[row * dims + i]!);
    }
    writer.byte(0x5d);
  }

  #frameWithout(absent: string): Frame {
    const without = new Set(absent.split(' '));
    const cells: JsonColumn[] = [];
    const texts: string[] = [];
    let text = this.#names.length > 0 ? '' : this.#shape === 'lines' ? '{' : ',{';
    for (const [i, name] of this.#names.entries()) {
      text += name;
      if (without.has(String(i))) text += 'null';
      else {
        cells.push(this.#columns[i]!);
        texts.push(text);
        text = '';
      }
    }
    texts.push(`${text}}${this.#shape === 'lines' ? '\n' : ''}`);
    const fixed = new FixedTexts(texts);
    const frame = { cells, texts: fixed, rowBytes: fixed.bytes + (cells.length + 1) * numberBytes };
    if (this.#frames.size >= framesMax) this.#frames.clear();
    this.#frames.set(absent, frame);
    return frame;
  }
}

/** UTF-8 as a JSON string, four bytes at a time as far as none of them wants an escape. */
function putText(
  bytes: Uint8Array,
  view: DataView,
  start: number,
  { bytes: source, view: sourceView }: JsonColumn,
  from: number,
  to: number,
): number {
  let at = start;
  let k = from;
  bytes[at++] = 0x22;
  for (; k < to - 3; k += 4, at += 4) {
    const word = sourceView.getInt32(k, true);
    const quotes = word ^ 0x2222_2222;
    const backslashes = word ^ 0x5c5c_5c5c;
    // The highest bit is set in a byte that is below the subtrahend, and maybe in those above such a byte.
    const cellSize =
      ((word - 0x2020_2020) & ~word) | ((quotes - 0x0101_0101) & ~quotes) | ((backslashes - 0x0101_0101) & ~backslashes);
    if ((cellSize & 0x8080_8080) !== 0) break;
    view.setInt32(at, word, true);
  }
  for (; k < to; k++) {
    const byte = source[k]!;
    if (escapeOf[byte] === 0) bytes[at++] = byte;
    else at = putEscaped(bytes, at, byte);
  }
  bytes[at++] = 0x22;
  return at;
}

const framesMax = 64;
const encoder = new TextEncoder();
const wordOf = (text: string): number => Buffer.from(text).readInt32LE(0);
const nullWord = wordOf('null');
const trueWord = wordOf('true');
const falseWord = wordOf('fals');
