/**
 * Rows of an answer as JSON text in UTF-8, written cell by cell into one buffer: no object and no string per row.
 * Integers and instants are bare exact tokens, numbers the shortest text that reads back as the same double, JSON
 * columns as they were given, vectors arrays. A number that JSON can't say (the result of an overflow) is null.
 */
import type { Vector } from '../../log/columns.ts';
import { ByteWriter, FixedText } from './byte-writer.ts';
import type { Answer, OutputBatch } from '../planner-contract.ts';

type Rows = Pick<Answer, 'columns' | 'batches'>;

/**
 * `[{…},{…}]` in one piece, each byte of its UTF-8 as one character: so it joins a reply's header in one write, and the
 * second write that a buffer would take is an eighth of a point read. null where it would be longer than `bytesMax`: few
 * rows may still be a lot of text.
 */
export function writeRowsLatin1(rows: Rows, bytesMax: number): string | null {
  // A large answer must not keep its memory for ever.
  if (shared.capacity > sharedBytesMax) shared = new ByteWriter(16_384);
  const writer = shared;
  writer.length = 0;
  writer.byte(0x5b);
  for (const batch of rows.batches) {
    const columns = new BatchWriter(rows.columns, batch, true);
    for (let i = 0; i < batch.count; i++) {
      if (writer.length > 1) writer.byte(0x2c);
      columns.writeRow(writer, i);
      if (writer.length > bytesMax) return null;
    }
  }
  writer.byte(0x5d);
  return writer.latin1();
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
  const writer = new ByteWriter(Math.min(chunkBytes, 65_536));
  const array = shape === 'array';
  if (array) writer.byte(0x5b);
  let first = true;
  for (const batch of rows.batches) {
    const columns = new BatchWriter(rows.columns, batch, array);
    for (let i = 0; i < batch.count; i++) {
      if (array && !first) writer.byte(0x2c);
      first = false;
      columns.writeRow(writer, i);
      if (!array) writer.byte(0x0a);
      if (writer.length >= chunkBytes) yield writer.take();
    }
  }
  if (array) writer.byte(0x5d);
  if (writer.length > 0) yield writer.take();
}

/** Arrays of at most `groupRows` rows each, without a line break in any. */
export function* writeRowGroups(rows: Rows, groupRows: number): Generator<Buffer, void> {
  const writer = new ByteWriter(65_536);
  for (const batch of rows.batches) {
    const columns = new BatchWriter(rows.columns, batch, false);
    for (let i = 0; i < batch.count; i++) {
      writer.byte(i % groupRows === 0 ? 0x5b : 0x2c);
      columns.writeRow(writer, i);
      if (i % groupRows !== groupRows - 1 && i !== batch.count - 1) continue;
      writer.byte(0x5d);
      yield writer.take();
    }
  }
}

/** What was written is read off before anybody else writes. */
let shared = new ByteWriter(16_384);
const sharedBytesMax = 1 << 20;

/** What stands around the cells of a row: the name of each of `cells` before it, `end` after the last one. */
interface RowFrame {
  readonly cells: readonly number[];
  readonly before: readonly FixedText[];
  readonly end: FixedText;
}

const knownNames = new WeakMap<Rows['columns'], readonly string[]>();
const knownFrames = new WeakMap<Rows['columns'], RowFrame>();

/** Answers of one plan share their columns, and so what was made of them. */
function namesOf(columns: Rows['columns']): readonly string[] {
  let names = knownNames.get(columns);
  if (names === undefined) {
    names = columns.map((column, i) => `${i === 0 ? '{' : ','}${JSON.stringify(column.name)}:`);
    knownNames.set(columns, names);
  }
  return names;
}

function frameOf(columns: Rows['columns'], { columns: vectors, count }: OutputBatch): RowFrame {
  // Columns without a value are part of what stands around the others; for a few rows that is not worth its making.
  if (count >= framedRows && vectors.some((vector, i) => vector.kind === 'null' && i < columns.length)) {
    return makeFrame(columns, vectors);
  }
  let frame = knownFrames.get(columns);
  if (frame === undefined) knownFrames.set(columns, (frame = makeFrame(columns, null)));
  return frame;
}

function makeFrame(columns: Rows['columns'], vectors: readonly Vector[] | null): RowFrame {
  const cells: number[] = [];
  const before: FixedText[] = [];
  let text = columns.length === 0 ? '{' : '';
  for (const [i, name] of namesOf(columns).entries()) {
    text += name;
    if (vectors !== null && vectors[i]!.kind === 'null') text += 'null';
    else {
      cells.push(i);
      before.push(new FixedText(text));
      text = '';
    }
  }
  return { cells, before, end: new FixedText(`${text}}`) };
}

const framedRows = 16;

class BatchWriter {
  readonly #columns: Rows['columns'];
  readonly #vectors: readonly Vector[];
  readonly #frame: RowFrame;
  readonly #selection: Int32Array | null;
  readonly #first: number;
  /** JSON columns keep their line breaks. */
  readonly #keepLines: boolean;
  readonly #halves: (Int32Array | undefined)[] = [];

  constructor(columns: Rows['columns'], batch: OutputBatch, keepLines: boolean) {
    this.#columns = columns;
    this.#vectors = batch.columns;
    this.#frame = frameOf(columns, batch);
    this.#selection = batch.selection;
    this.#first = batch.first;
    this.#keepLines = keepLines;
  }

  writeRow(writer: ByteWriter, i: number): void {
    const row = this.#selection === null ? this.#first + i : this.#selection[i]!;
    const { cells, before, end } = this.#frame;
    for (let k = 0; k < cells.length; k++) {
      writer.fixed(before[k]!);
      this.#writeCell(writer, cells[k]!, row);
    }
    writer.fixed(end);
  }

  #writeCell(writer: ByteWriter, column: number, row: number): void {
    const vector = this.#vectors[column]!;
    if (vector.kind === 'null' || (vector.nulls !== null && vector.nulls[row] === 1)) return writer.raw(nullText);
    const { type } = this.#columns[column]!;
    switch (vector.kind) {
      case 'i32':
        return writer.integer(vector.values[row]!);
      case 'f64': {
        const value = vector.values[row]!;
        // An integer column has no minus zero.
        return type === 'number' ? writer.number(value) : writer.integer(value + 0);
      }
      case 'i64': {
        if (type === 'number') return writer.number(Number(vector.values[row]!));
        // 32-bit halves, low before high: reading a bigint would make an object.
        const { buffer, byteOffset, length } = vector.values;
        const halves = (this.#halves[column] ??= new Int32Array(buffer, byteOffset, length * 2));
        return writer.i64(halves[row * 2 + 1]!, halves[row * 2]! >>> 0);
      }
      case 'bool':
        return writer.raw(vector.values[row] === 1 ? trueText : falseText);
      case 'text': {
        const start = vector.offsets[row]!;
        const end = vector.offsets[row + 1]!;
        if (type !== 'json') return writer.quoted(vector.heap, start, end);
        return this.#keepLines ? writer.copy(vector.heap, start, end) : writer.copyOnOneLine(vector.heap, start, end);
      }
      case 'dict': {
        const code = vector.values[row]!;
        if (type === 'json') {
          const text = encoder.encode(vector.dictionary.text(code));
          return this.#keepLines ? writer.copy(text, 0, text.length) : writer.copyOnOneLine(text, 0, text.length);
        }
        const { dictionary } = vector;
        const bytes = dictionary.bytesOf?.(code);
        return bytes === undefined ? writer.string(dictionary.text(code)) : writer.quoted(bytes, 0, bytes.length);
      }
      case 'vec': {
        const { values, dims } = vector;
        writer.byte(0x5b);
        for (let i = 0; i < dims; i++) {
          if (i > 0) writer.byte(0x2c);
          writer.float(values[row * dims + i]!);
        }
        return writer.byte(0x5d);
      }
    }
  }
}

const encoder = new TextEncoder();
const nullText = encoder.encode('null');
const trueText = encoder.encode('true');
const falseText = encoder.encode('false');
