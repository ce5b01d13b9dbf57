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

type JsonAnswer = Pick<Answer, 'columns' | 'batches'>;

/** `array`: each row behind a comma, which stands for the bracket before the first. JSON columns of `lines` have no line break. */
type JsonRowsShape = 'array' | 'lines' | 'groups';

/** Writes one object per line, into one buffer. */
export function writeNdjson(rows: JsonAnswer): Buffer {
  return Buffer.concat([...writeRowChunks(rows, 'lines', Number.MAX_SAFE_INTEGER)]);
}

/** The same rows in pieces of about `chunkBytes`, each made when it is asked for. */
export function* writeRowChunks(
  jsonAnswer: JsonAnswer,
  shape: 'array' | 'lines' = 'array',
  chunkBytes = 256 * 1024,
): Generator<Buffer, void> {
  if (shape === 'array') return yield* moreRows(jsonAnswer, { after: 0, chunkBytes });
  yield* jsonChunks(new ByteWriter(Math.min(chunkBytes, jsonPieceBytes)), jsonAnswer, shape, chunkBytes);
}

/** The rest of an array of which `after` rows are written already, with its closing bracket. */
export function* moreRows(jsonAnswer: JsonAnswer, { after = 0, chunkBytes = 256 * 1024 }): Generator<Buffer, void> {
  const jsonWriter = new ByteWriter(Math.min(chunkBytes, jsonPieceBytes));
  const jsonPieces = jsonChunks(jsonWriter, jsonAnswer, 'array', chunkBytes);
  let hasOpenedArray = after > 0;
  for (const jsonPiece of jsonPieces) {
    // The comma before the first row of all is where the array begins.
    if (!hasOpenedArray) jsonPiece[0] = jsonOpeningBracket;
    hasOpenedArray = true;
    yield jsonPiece;
  }
  yield Buffer.from(hasOpenedArray ? ']' : '[]');
}

function* jsonChunks(
  jsonWriter: ByteWriter,
  jsonAnswer: JsonAnswer,
  shape: JsonRowsShape,
  chunkBytes: number,
): Generator<Buffer, void> {
  const jsonColumns = new JsonColumns(jsonAnswer.columns, shape);
  for (const jsonBatch of jsonAnswer.batches) {
    jsonColumns.open(jsonBatch);
    for (let i = 0; i < jsonBatch.count; ) {
      i = jsonColumns.write(jsonWriter, jsonBatch, i, jsonBatch.count, chunkBytes);
      if (jsonWriter.length >= chunkBytes) yield jsonWriter.take();
    }
  }
  if (jsonWriter.length > 0) yield jsonWriter.take();
}

/** Arrays of at most `groupRows` rows each, without a line break in any. */
export function* writeRowGroups(jsonAnswer: JsonAnswer, groupRows: number): Generator<Buffer, void> {
  const groupWriter = new ByteWriter(65_536);
  const jsonColumns = new JsonColumns(jsonAnswer.columns, 'groups');
  for (const groupedBatch of jsonAnswer.batches) {
    jsonColumns.open(groupedBatch);
    for (let firstGroupRow = 0; firstGroupRow < groupedBatch.count; firstGroupRow += groupRows) {
      jsonColumns.write(
        groupWriter,
        groupedBatch,
        firstGroupRow,
        Math.min(firstGroupRow + groupRows, groupedBatch.count),
        Number.MAX_SAFE_INTEGER,
      );
      groupWriter.byte(0x5d);
      const rowGroup = groupWriter.take();
      rowGroup[0] = jsonOpeningBracket;
      yield rowGroup;
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
  readonly #textLimits: RowsTextLimits;
  readonly #textStart: number;
  #isFull = false;

  constructor(writer: ByteWriter, textLimits: RowsTextLimits) {
    this.writer = writer;
    this.#textLimits = textLimits;
    this.#textStart = writer.length;
  }

  get bytes(): number {
    return this.writer.length - this.#textStart;
  }

  take(columns: readonly OutputColumn[], batch: OutputBatch): boolean {
    const { rowsMax, bytesMax } = this.#textLimits;
    if (this.#isFull || this.rows + batch.count > rowsMax) return !(this.#isFull = true);
    const { writer } = this;
    const lengthBefore = writer.length;
    const textEndMax = this.#textStart + bytesMax;
    const jsonColumns = jsonColumnsOf(columns);
    jsonColumns.open(batch);
    const writtenCells = jsonColumns.write(writer, batch, 0, batch.count, textEndMax);
    jsonColumns.close();
    // A batch is taken as a whole, or not at all.
    if (writtenCells < batch.count || writer.length > textEndMax) {
      writer.length = lengthBefore;
      return !(this.#isFull = true);
    }
    this.rows += batch.count;
    return true;
  }

  restart(): void {
    this.writer.length = this.#textStart;
    this.rows = 0;
    this.#isFull = false;
  }

  /** The array ends here. */
  close(): void {
    if (this.rows === 0) this.writer.byte(jsonOpeningBracket);
    else this.#openArray();
    this.writer.byte(0x5d);
  }

  /** Ends this part of the array without its bracket; `moreRows` writes the rest. */
  leaveOpen(): void {
    if (this.rows > 0) this.#openArray();
  }

  #openArray(): void {
    this.writer.bytes[this.#textStart] = jsonOpeningBracket;
  }
}

const jsonPieceBytes = 65_536;
const jsonOpeningBracket = 0x5b;

const knownJsonColumns = new WeakMap<readonly OutputColumn[], JsonColumns>();

/** Answers of one plan share their columns and these writers: each caller finishes within one turn. */
function jsonColumnsOf(columns: readonly OutputColumn[]): JsonColumns {
  let jsonColumns = knownJsonColumns.get(columns);
  if (jsonColumns === undefined) knownJsonColumns.set(columns, (jsonColumns = new JsonColumns(columns, 'array')));
  return jsonColumns;
}

/** The fixed texts around the cells of a row: text k precedes the k-th of `cells`, the last one follows all of them. */
interface JsonFrame {
  readonly cells: readonly JsonColumn[];
  readonly texts: FixedTexts;
  /** Bytes of a row without its texts, JSON and vectors. */
  readonly rowBytes: number;
}

/** How the cells of a column lie in the batch at hand: a number, since every cell asks. */
const jsonLayout = {
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
  layout = jsonLayout.null;
  nulls: Uint8Array | null = null;
  integers: Int32Array = noIntegerCells;
  numbers: Float64Array = noNumberCells;
  /** 64-bit integers, low half before high: reading a bigint would make an object. */
  halves: Int32Array = noIntegerCells;
  bytes: Uint8Array = noHeapBytes;
  /** A view of the same bytes. */
  view: DataView = noHeapView;
  offsets: Uint32Array = noHeapOffsets;
  dictionary: Dictionary | null = null;
  vector: Vector = jsonNullVector;
  readonly #outputColumn: OutputColumn;

  constructor(outputColumn: OutputColumn) {
    this.#outputColumn = outputColumn;
  }

  open(vector: Exclude<Vector, { kind: 'null' }>): void {
    const { type } = this.#outputColumn;
    this.vector = vector;
    this.nulls = vector.nulls;
    switch (vector.kind) {
      case 'i32':
        this.layout = jsonLayout.i32;
        this.integers = vector.values;
        return;
      case 'f64':
        this.layout = type === 'number' ? jsonLayout.number : jsonLayout.whole;
        this.numbers = vector.values;
        return;
      case 'i64':
        this.layout = type === 'number' ? jsonLayout.wide : jsonLayout.i64;
        this.halves = new Int32Array(vector.values.buffer, vector.values.byteOffset, vector.values.length * 2);
        return;
      case 'bool':
        this.layout = jsonLayout.boolean;
        this.bytes = vector.values;
        return;
      case 'text':
        this.layout = type === 'json' ? jsonLayout.json : jsonLayout.text;
        this.#holdHeap(vector.heap, vector.offsets);
        return;
      case 'dict': {
        const utf8 = type === 'json' ? undefined : vector.dictionary.utf8;
        this.layout = utf8 === undefined ? jsonLayout.words : jsonLayout.codes;
        this.integers = vector.values;
        this.dictionary = vector.dictionary;
        if (utf8 !== undefined) this.#holdHeap(utf8.heap, utf8.offsets);
        return;
      }
      case 'vec':
        this.layout = jsonLayout.floats;
    }
  }

  /** Lets go of arrays, but for those of columns at rest: their memory is there in any case. */
  close(): void {
    this.nulls = null;
    this.integers = this.halves = noIntegerCells;
    this.numbers = noNumberCells;
    this.offsets = noHeapOffsets;
    this.dictionary = null;
    this.vector = jsonNullVector;
    if (!(this.bytes.buffer instanceof SharedArrayBuffer)) this.#holdHeap(noHeapBytes, noHeapOffsets);
  }

  #holdHeap(heap: Uint8Array, offsets: Uint32Array): void {
    this.offsets = offsets;
    // Mostly that of the batch before.
    if (heap === this.bytes) return;
    this.bytes = heap;
    this.view = heap === noHeapBytes ? noHeapView : viewOf(heap);
  }

  /** The text of a code that has no bytes in place. */
  word(dictionaryCode: number): Uint8Array {
    const dictionaryText = this.dictionary!.text(dictionaryCode);
    return jsonEncoder.encode(this.#outputColumn.type === 'json' ? dictionaryText : JSON.stringify(dictionaryText));
  }
}

const noIntegerCells = new Int32Array(0);
const noNumberCells = new Float64Array(0);
const noHeapBytes = new Uint8Array(0);
const noHeapView = viewOf(noHeapBytes);
const noHeapOffsets = new Uint32Array(0);
const jsonNullVector: Vector = { kind: 'null' };

/** The columns of an answer through its batches. */
class JsonColumns {
  readonly #jsonColumns: readonly JsonColumn[];
  readonly #jsonNames: readonly string[];
  readonly #rowsShape: JsonRowsShape;
  /** Frames by the set of columns that hold only NULL, whose text is part of the frame. */
  readonly #jsonFrames = new Map<string, JsonFrame>();
  #jsonFrame: JsonFrame;

  constructor(columns: readonly OutputColumn[], rowsShape: JsonRowsShape) {
    const objectOpening = rowsShape === 'lines' ? '{' : ',{';
    this.#jsonColumns = columns.map((column) => new JsonColumn(column));
    this.#jsonNames = columns.map(({ name }, i) => `${i === 0 ? objectOpening : ','}${JSON.stringify(name)}:`);
    this.#rowsShape = rowsShape;
    this.#jsonFrame = this.#jsonFrameWithout('');
  }

  open({ columns }: OutputBatch): void {
    let absentColumns = '';
    for (let i = 0; i < this.#jsonColumns.length; i++) {
      const columnVector = columns[i]!;
      if (columnVector.kind === 'null') absentColumns += `${i} `;
      else this.#jsonColumns[i]!.open(columnVector);
    }
    this.#jsonFrame = this.#jsonFrames.get(absentColumns) ?? this.#jsonFrameWithout(absentColumns);
  }

  close(): void {
    for (const jsonColumn of this.#jsonColumns) jsonColumn.close();
  }

  /** Writes rows from `firstJsonRow` to `endJsonRow` - 1 while the writer holds less than `bytesMax`; the row to go on with. */
  write(
    jsonWriter: ByteWriter,
    { selection, first }: OutputBatch,
    firstJsonRow: number,
    endJsonRow: number,
    bytesMax: number,
  ): number {
    const { cells: frameColumns, texts: frameTexts, rowBytes } = this.#jsonFrame;
    const { words, starts, sizes } = frameTexts;
    const isOneLine = this.#rowsShape !== 'array';
    const frameWidth = frameColumns.length;
    let jsonOffset = jsonWriter.length;
    let jsonBytes = jsonWriter.bytes;
    let jsonView = jsonWriter.view;
    let i = firstJsonRow;
    for (; i < endJsonRow && jsonOffset < bytesMax; i++) {
      const jsonRow = selection === null ? first + i : selection[i]!;
      if (jsonOffset + rowBytes > jsonBytes.length) {
        jsonWriter.length = jsonOffset;
        jsonWriter.reserve(rowBytes);
        ({ bytes: jsonBytes, view: jsonView } = jsonWriter);
      }
      for (let columnOrdinal = 0; ; columnOrdinal++) {
        for (let k = starts[columnOrdinal]!, to = starts[columnOrdinal + 1]!, target = jsonOffset; k < to; k++, target += 8)
          jsonView.setFloat64(target, words[k]!, true);
        jsonOffset += sizes[columnOrdinal]!;
        if (columnOrdinal === frameWidth) break;
        const jsonColumn = frameColumns[columnOrdinal]!;
        if (jsonColumn.nulls !== null && jsonColumn.nulls[jsonRow] === 1) {
          jsonView.setInt32(jsonOffset, jsonNullWord, true);
          jsonOffset += 4;
          continue;
        }
        switch (jsonColumn.layout) {
          case jsonLayout.i32:
            jsonOffset = putInteger(jsonBytes, jsonOffset, jsonColumn.integers[jsonRow]!);
            break;
          case jsonLayout.whole:
            // An integer column has no minus zero.
            jsonOffset = putInteger(jsonBytes, jsonOffset, jsonColumn.numbers[jsonRow]! + 0);
            break;
          case jsonLayout.number: {
            const numberCell = jsonColumn.numbers[jsonRow]!;
            if (Number.isFinite(numberCell)) jsonOffset = putNumber(jsonBytes, jsonOffset, numberCell);
            else {
              jsonView.setInt32(jsonOffset, jsonNullWord, true);
              jsonOffset += 4;
            }
            break;
          }
          case jsonLayout.wide:
            jsonOffset = putNumber(
              jsonBytes,
              jsonOffset,
              Number((jsonColumn.vector as Extract<Vector, { kind: 'i64' }>).values[jsonRow]!),
            );
            break;
          case jsonLayout.i64: {
            const { halves } = jsonColumn;
            jsonOffset = jsonWriter.putI64(jsonOffset, halves[jsonRow * 2 + 1]!, halves[jsonRow * 2]! >>> 0);
            break;
          }
          case jsonLayout.boolean:
            if (jsonColumn.bytes[jsonRow] === 1) {
              jsonView.setInt32(jsonOffset, jsonTrueWord, true);
              jsonOffset += 4;
            } else {
              jsonView.setInt32(jsonOffset, jsonFalseWord, true);
              jsonBytes[jsonOffset + 4] = 0x65;
              jsonOffset += 5;
            }
            break;
          case jsonLayout.text:
          case jsonLayout.codes: {
            const textCell = jsonColumn.layout === jsonLayout.text ? jsonRow : jsonColumn.integers[jsonRow]!;
            const textStart = jsonColumn.offsets[textCell]!;
            const textStop = jsonColumn.offsets[textCell + 1]!;
            if (jsonOffset + (textStop - textStart) * 6 + rowBytes > jsonBytes.length) {
              jsonWriter.length = jsonOffset;
              jsonWriter.reserve((textStop - textStart) * 6 + rowBytes);
              ({ bytes: jsonBytes, view: jsonView } = jsonWriter);
            }
            jsonOffset = putJsonText(jsonBytes, jsonView, jsonOffset, jsonColumn, textStart, textStop);
            break;
          }
          default: {
            jsonWriter.length = jsonOffset;
            this.#writeLongCell(jsonWriter, jsonColumn, jsonRow, isOneLine);
            jsonWriter.reserve(rowBytes);
            jsonOffset = jsonWriter.length;
            ({ bytes: jsonBytes, view: jsonView } = jsonWriter);
          }
        }
      }
    }
    jsonWriter.length = jsonOffset;
    return i;
  }

  /** Writes rare kinds of cells, and those that are long anyway. */
  #writeLongCell(jsonWriter: ByteWriter, jsonColumn: JsonColumn, row: number, isOneLine: boolean): void {
    if (jsonColumn.layout === jsonLayout.json) {
      const jsonStart = jsonColumn.offsets[row]!;
      const jsonEnd = jsonColumn.offsets[row + 1]!;
      return isOneLine
        ? jsonWriter.copyOnOneLine(jsonColumn.bytes, jsonStart, jsonEnd)
        : jsonWriter.copy(jsonColumn.bytes, jsonStart, jsonEnd);
    }
    if (jsonColumn.layout === jsonLayout.words) {
      const wordText = jsonColumn.word(jsonColumn.integers[row]!);
      return isOneLine ? jsonWriter.copyOnOneLine(wordText, 0, wordText.length) : jsonWriter.copy(wordText, 0, wordText.length);
    }
    const { values, dims } = jsonColumn.vector as Extract<Vector, { kind: 'vec' }>;
    jsonWriter.byte(jsonOpeningBracket);
    for (let i = 0; i < dims; i++) {
      if (i > 0) jsonWriter.byte(0x2c);
      jsonWriter.float(values[row * dims + i]!);
    }
    jsonWriter.byte(0x5d);
  }

  #jsonFrameWithout(absentColumns: string): JsonFrame {
    const absentOrdinals = new Set(absentColumns.split(' '));
    const frameColumns: JsonColumn[] = [];
    const frameTexts: string[] = [];
    let fixedText = this.#jsonNames.length > 0 ? '' : this.#rowsShape === 'lines' ? '{' : ',{';
    for (const [i, name] of this.#jsonNames.entries()) {
      fixedText += name;
      if (absentOrdinals.has(String(i))) fixedText += 'null';
      else {
        frameColumns.push(this.#jsonColumns[i]!);
        frameTexts.push(fixedText);
        fixedText = '';
      }
    }
    frameTexts.push(`${fixedText}}${this.#rowsShape === 'lines' ? '\n' : ''}`);
    const fixedTexts = new FixedTexts(frameTexts);
    const jsonFrame = {
      cells: frameColumns,
      texts: fixedTexts,
      rowBytes: fixedTexts.bytes + (frameColumns.length + 1) * numberBytes,
    };
    if (this.#jsonFrames.size >= jsonFramesMax) this.#jsonFrames.clear();
    this.#jsonFrames.set(absentColumns, jsonFrame);
    return jsonFrame;
  }
}

/** UTF-8 as a JSON string, four bytes at a time as far as none of them wants an escape. */
function putJsonText(
  bytes: Uint8Array,
  view: DataView,
  start: number,
  { bytes: source, view: sourceView }: JsonColumn,
  textStart: number,
  textEnd: number,
): number {
  let jsonOffset = start;
  let textOffset = textStart;
  bytes[jsonOffset++] = 0x22;
  for (; textOffset < textEnd - 3; textOffset += 4, jsonOffset += 4) {
    const fourBytes = sourceView.getInt32(textOffset, true);
    const quoteBits = fourBytes ^ 0x2222_2222;
    const backslashBits = fourBytes ^ 0x5c5c_5c5c;
    // The highest bit is set in a byte that is below the subtrahend, and maybe in those above such a byte.
    const cellSize =
      ((fourBytes - 0x2020_2020) & ~fourBytes) |
      ((quoteBits - 0x0101_0101) & ~quoteBits) |
      ((backslashBits - 0x0101_0101) & ~backslashBits);
    if ((cellSize & 0x8080_8080) !== 0) break;
    view.setInt32(jsonOffset, fourBytes, true);
  }
  for (; textOffset < textEnd; textOffset++) {
    const textByte = source[textOffset]!;
    if (escapeOf[textByte] === 0) bytes[jsonOffset++] = textByte;
    else jsonOffset = putEscaped(bytes, jsonOffset, textByte);
  }
  bytes[jsonOffset++] = 0x22;
  return jsonOffset;
}

const jsonFramesMax = 64;
const jsonEncoder = new TextEncoder();
const jsonWordOf = (fourLetters: string): number => Buffer.from(fourLetters).readInt32LE(0);
const jsonNullWord = jsonWordOf('null');
const jsonTrueWord = jsonWordOf('true');
const jsonFalseWord = jsonWordOf('fals');
