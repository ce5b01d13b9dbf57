/**
 * Rows of an Arrow IPC stream as batches of columns: the same batches as `ingest-reader.ts` makes of JSON and CSV, under the same
 * rules. A row whose cell its column does not take is refused alone; a schema that the type can't hold, and a message that is
 * malformed, end the stream. Invariants: work is done in turns of some thousand rows, and the limits count rows at their decoded
 * size, however few bytes encode them. Source: Arrow columnar format, "IPC Streaming Format".
 */
import { assert, type ErrorCode, ServiceError } from '../../errors.ts';
import type { NamedColumn } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import type { RowRejection } from '../../projections/command.ts';
import { BatchBuffers } from './arrow-buffers.ts';
import { type ArrowCells, ArrowDictionary, type CellForm } from './arrow-cells.ts';
import { type ArrowField, parseArrowMessage, parseMessageSize } from './arrow-messages.ts';
import { ColumnSet } from './column-set.ts';
import { malformedError } from './flat-table.ts';
import type { IngestBatch, IngestOptions } from './ingest-batch.ts';
import type { Column } from './ingest-column.ts';
import { RowTape } from './row-tape.ts';

const metadataBytesMax = 4 << 20;
const bodyBytesMax = 64 << 20;
/** Most bytes of all dictionaries of a stream. */
const dictionaryBytesMax = 64 << 20;
/** Most rows of a message: columns of type null may claim any number of rows without any bytes. */
const messageRowsMax = 1 << 24;
/** The work of one turn: rows, or bytes of their cells. */
const [turnRows, turnBytes] = [4_096, 1 << 20];
/** Least bytes counted for a row, whatever its cells: its key and its position. */
const rowBytes = 8;
const defaultRowBytesMax = 16 << 20;

interface ArrowColumn extends CellForm {
  /** Null until the first cell. */
  builder: VectorBuilder | null;
}

/** Rows of a record batch, or values of a dictionary, that are being taken. */
interface Hand {
  readonly cells: readonly ArrowCells[];
  readonly rows: number;
  at: number;
  readonly dictionary: { readonly id: bigint; readonly isDelta: boolean; readonly column: ArrowColumn } | null;
}

/** Messages in, batches out, nothing awaited. */
export class ArrowRows {
  readonly #options: IngestOptions;
  readonly #positional: boolean;
  readonly #rowBytesMax: number;
  /** Null until the schema has come. */
  #columns: readonly ArrowColumn[] | null = null;
  readonly #dictionaries = new Map<bigint, ArrowDictionary>();
  #dictionaryBytes = 0;
  #hand: Hand | null = null;
  #endOffset = 0;

  #index = 0;
  #batchIndex = 0;
  #rows = 0;
  #batchBytes = 0;
  #allBytes = 0;
  #rejections: RowRejection[] = [];
  #indexes: number[] | null = null;

  /** `positional`: columns are matched by position instead of name: `p0`, `p1` … */
  constructor(options: IngestOptions, positional = false) {
    this.#options = options;
    this.#positional = positional;
    this.#rowBytesMax = options.rowBytesMax ?? defaultRowBytesMax;
  }

  /** Rows that were read, accepted or not. */
  get index(): number {
    return this.#index;
  }

  get hasSchema(): boolean {
    return this.#columns !== null;
  }

  /** There are rows in hand: the next message is not taken before `read` has worked them off. */
  get isBusy(): boolean {
    return this.#hand !== null;
  }

  /** One message; `body` begins at a multiple of eight in its memory. `endOffset`: bytes of the stream up to its end. */
  accept(metadata: Uint8Array, body: Uint8Array, endOffset: number): void {
    assert(this.#hand === null, 'a message is taken once the last one is worked off');
    this.#endOffset = endOffset;
    const message = parseArrowMessage(metadata);
    if (message.kind === 'schema') {
      if (this.#columns !== null) throw malformedError('a stream has one schema');
      const fields = this.#positional ? message.fields.map((field, i) => ({ ...field, name: `p${i}` })) : message.fields;
      this.#columns = columnsOf(fields, this.#options.definition);
      return;
    }
    if (this.#columns === null) throw malformedError('the schema comes first');
    const { batch } = message;
    const rows = Number(batch.length);
    if (!(rows >= 0)) throw malformedError('its length is negative');
    if (rows > messageRowsMax) throw new ServiceError('REL_TOO_LARGE', `a record batch has at most ${messageRowsMax} rows`);
    const buffers = new BatchBuffers(batch, body);
    if (message.kind === 'batch') this.#hand = { cells: this.#cellsOf(buffers, rows), rows, at: 0, dictionary: null };
    else this.#takeDictionary(message.id, message.isDelta, buffers, rows);
  }

  #cellsOf(buffers: BatchBuffers, rows: number): ArrowCells[] {
    return this.#columns!.map((column) => {
      const id = column.field.dictionary?.id;
      return buffers.cells(column, rows, (id === undefined ? undefined : this.#dictionaries.get(id)) ?? null);
    });
  }

  #takeDictionary(id: bigint, isDelta: boolean, buffers: BatchBuffers, rows: number): void {
    const column = this.#columns!.find((each) => each.field.dictionary?.id === id);
    if (!column) throw malformedError(`no column has the dictionary ${id}`);
    const values: ArrowColumn = { field: column.field, type: column.type, dims: 0, builder: null };
    this.#hand = { cells: [buffers.values(values, rows)], rows, at: 0, dictionary: { id, isDelta, column: values } };
  }

  /**
   * The next full batch; null where a message is missing, or (`isBusy`) where the turn is over. With `last`, the remaining rows.
   */
  read(last: boolean): IngestBatch | null {
    const hand = this.#hand;
    if (hand !== null) {
      if (hand.at < hand.rows) this.#takeTurn(hand);
      if (hand.at === hand.rows) this.#finish(hand);
      if (this.#isFull()) return this.#take();
      if (this.#hand !== null) return null;
    }
    return last && this.#index > this.#batchIndex ? this.#take() : null;
  }

  /** The rows that were read before an error; null where there are none. */
  takeRest(): IngestBatch | null {
    return this.#index > this.#batchIndex ? this.#take() : null;
  }

  #finish({ dictionary, rows }: Hand): void {
    this.#hand = null;
    if (dictionary === null) return;
    const { id, isDelta, column } = dictionary;
    const known = isDelta ? this.#dictionaries.get(id) : undefined;
    const grown = known ?? new ArrowDictionary(column.type);
    if (column.builder !== null) grown.add(column.builder.build(), rows);
    this.#dictionaries.set(id, grown);
  }

  #takeTurn(hand: Hand): void {
    const { cells, dictionary } = hand;
    let count = Math.min(turnRows, hand.rows - hand.at, dictionary === null ? Math.max(1, this.#roomRows()) : Infinity);
    let bytes = bytesOf(cells, hand.at, count);
    while (count > 1 && bytes > turnBytes) {
      count >>= 1;
      bytes = bytesOf(cells, hand.at, count);
    }
    const columns = dictionary === null ? this.#columns! : [dictionary.column];
    const refused = this.#check(cells, columns, hand.at, count, bytes);
    if (dictionary !== null) {
      const [first] = refused.values();
      if (first !== undefined) throw new ServiceError('REL_TYPE_MISMATCH', `a value of a dictionary ${first}`);
      this.#dictionaryBytes += bytes;
      if (this.#dictionaryBytes > dictionaryBytesMax)
        throw new ServiceError('REL_TOO_LARGE', `dictionaries have at most ${dictionaryBytesMax} bytes`);
    } else this.#count(bytes);
    for (let at = hand.at; at < hand.at + count; ) {
      const problem = refused.get(at);
      if (problem !== undefined) {
        this.#reject(problem);
        at++;
        continue;
      }
      let end = at + 1;
      while (end < hand.at + count && !refused.has(end)) end++;
      append(columns, cells, at, end - at, dictionary === null ? this.#rows : at);
      if (dictionary === null) this.#accept(end - at);
      at = end;
    }
    hand.at += count;
  }

  /** Finds the reason why each refused row is refused. */
  #check(
    cells: readonly ArrowCells[],
    columns: readonly ArrowColumn[],
    from: number,
    count: number,
    bytes: number,
  ): Map<number, string> {
    const refused = new Map<number, string>();
    if (bytes > this.#rowBytesMax && count === 1) refused.set(from, `is over ${this.#rowBytesMax} bytes`);
    cells.forEach((each, i) => {
      const { name } = columns[i]!.field;
      each.check(from, count, (row, detail) => refused.has(row) || refused.set(row, `${name} ${detail}`));
    });
    return refused;
  }

  /** Limits the bytes of the whole stream: a caller that wants it as one batch holds all of it in memory. */
  #count(bytes: number): void {
    const { limitBytes } = this.#options;
    this.#batchBytes += bytes;
    this.#allBytes += bytes;
    if (limitBytes !== undefined && this.#allBytes > limitBytes)
      throw new ServiceError('REL_TOO_LARGE', `the rows come to over ${limitBytes} bytes; ${this.#index} rows were read`);
  }

  #accept(count: number): void {
    for (let i = 0; this.#indexes !== null && i < count; i++) this.#indexes.push(this.#index + i);
    this.#index += count;
    this.#rows += count;
  }

  #reject(detail: string): void {
    this.#indexes ??= Array.from({ length: this.#index - this.#batchIndex }, (_, i) => this.#batchIndex + i);
    const code: ErrorCode = detail.startsWith('is over') ? 'REL_TOO_LARGE' : 'REL_TYPE_MISMATCH';
    this.#rejections.push({ index: this.#index, code, detail });
    this.#index++;
  }

  #roomRows(): number {
    const { batchRows } = this.#options;
    return (typeof batchRows === 'number' ? batchRows : batchRows()) - (this.#index - this.#batchIndex);
  }

  #isFull(): boolean {
    return this.#index > this.#batchIndex && (this.#roomRows() <= 0 || this.#batchBytes >= this.#options.batchBytes);
  }

  #take(): IngestBatch {
    const length = this.#rows;
    const columns: NamedColumn[] = [];
    const sent = new Map<string, Uint8Array>();
    for (const column of this.#columns ?? []) {
      const { field, builder, type } = column;
      sent.set(field.name, new Uint8Array(length).fill(1));
      if (builder === null) continue;
      columns.push({ name: field.name, type, vector: builder.build() });
      column.builder = null;
    }
    const batch: IngestBatch = {
      ...(this.#options.tracksSent === true && { sent }),
      rows: { length, columns },
      firstIndex: this.#batchIndex,
      indexes: this.#indexes === null ? null : Float64Array.from(this.#indexes),
      rejections: this.#rejections,
      endOffset: this.#endOffset,
      mixed: [],
    };
    this.#batchIndex = this.#index;
    this.#rows = 0;
    this.#batchBytes = 0;
    this.#rejections = [];
    this.#indexes = null;
    return batch;
  }
}

function bytesOf(cells: readonly ArrowCells[], from: number, count: number): number {
  let bytes = count * rowBytes;
  for (const each of cells) bytes += each.bytes(from, count);
  return bytes;
}

/** `length`: cells that the columns hold. */
function append(
  columns: readonly ArrowColumn[],
  cells: readonly ArrowCells[],
  from: number,
  count: number,
  length: number,
): void {
  columns.forEach((column, i) => {
    if (column.field.type.kind === 'null') return;
    column.builder ??= new VectorBuilder(column.type, Math.max(64, count));
    assert(column.builder.length === length, 'columns grow together');
    cells[i]!.append(column.builder, from, count);
  });
}

/**
 * The columns that a type needs in order to take such rows: those that hold more than NULL. `dims` is 0 where lists differ in
 * length.
 */
export function arrowColumns(
  metadata: Uint8Array,
): { readonly name: string; readonly type: ColumnType; readonly dims: number }[] {
  const message = parseArrowMessage(metadata);
  if (message.kind !== 'schema') throw malformedError('the schema comes first');
  return columnsOf(message.fields, null).flatMap(({ field, type, dims }) =>
    field.type.kind === 'null' ? [] : { name: field.name, type, dims },
  );
}

/** Columns of the schema as the type takes them. */
function columnsOf(fields: readonly ArrowField[], definition: IngestOptions['definition']): ArrowColumn[] {
  const tape = new RowTape();
  const set = new ColumnSet(definition, tape, false);
  const forms = new Map<bigint, ColumnType>();
  return fields.map((field, i) => {
    tape.reset(new Uint8Array(0));
    const slot = set.slotOf(field.name);
    if (slot < 0) {
      const { code, detail } = tape.problem!;
      throw new ServiceError(code, detail);
    }
    if (slot < i) throw new ServiceError('REL_INVALID', `the column ${JSON.stringify(field.name)} is given twice`);
    if (field.type.kind === 'null') return { field, type: 'json', dims: 0, builder: null };
    const type = wantedType(field, set.columns[slot]!);
    const id = field.dictionary?.id;
    if (id !== undefined && (forms.get(id) ?? type) !== type)
      throw new ServiceError(
        'REL_TYPE_MISMATCH',
        `column ${JSON.stringify(field.name)}: its dictionary is another column’s of ${forms.get(id)}`,
      );
    if (id !== undefined) forms.set(id, type);
    const { dims } = set.columns[slot]!;
    if (field.type.kind === 'list' && field.type.size !== 0 && dims !== 0 && field.type.size !== dims)
      throw new ServiceError(
        'REL_TYPE_MISMATCH',
        `column ${JSON.stringify(field.name)} has ${field.type.size} dimensions instead of ${dims}`,
      );
    return { field, type, dims: dims || (field.type.kind === 'list' ? field.type.size : 0), builder: null };
  });
}

/** The type to which cells are decoded; a later check of the rows decides whether each fits its column exactly. */
function wantedType({ name, type, meaning }: ArrowField, { type: fixed, declared, integersAsText }: Column): ColumnType {
  const wanted = fixed ?? declared;
  const own = ownType(type, meaning);
  if (wanted === null || wanted === own) return own;
  const isNumeric = wanted === 'integer' || wanted === 'number';
  if (type.kind === 'text' && (wanted === 'string' || wanted === 'json')) return wanted;
  if (type.kind === 'text' && wanted === 'timestamp') return 'string';
  if (type.kind === 'int' && (isNumeric || wanted === 'timestamp')) return 'integer';
  if (type.kind === 'int' && wanted === 'string' && integersAsText) return wanted;
  if (isNumeric && (own === 'integer' || own === 'number')) return own;
  throw new ServiceError('REL_TYPE_MISMATCH', `column ${JSON.stringify(name)} is of type ${wanted}; ${own} is given`);
}

function ownType(type: ArrowField['type'], meaning: ArrowField['meaning']): ColumnType {
  switch (type.kind) {
    case 'null':
      return 'json';
    case 'bool':
      return 'boolean';
    case 'int':
      return meaning === 'timestamp' && type.bits === 64 && type.isSigned ? 'timestamp' : 'integer';
    case 'float':
      return 'number';
    case 'decimal':
      return type.scale > 0 ? 'number' : 'integer';
    case 'instant':
      return 'timestamp';
    case 'text':
      return meaning === 'json' ? 'json' : 'string';
    case 'list':
      return 'vector';
  }
}

/** Messages that come one by one, each behind the other's batches. */
export async function* readArrowMessages(
  source: AsyncIterable<{ readonly header: Uint8Array; readonly body: Uint8Array }>,
  options: IngestOptions,
  positional = false,
): AsyncGenerator<IngestBatch, void> {
  const rows = new ArrowRows(options, positional);
  let failure: ServiceError | null = null;
  try {
    for await (const { header, body } of source) {
      rows.accept(header, body, 0);
      while (rows.isBusy) {
        const batch = rows.read(false);
        if (batch !== null) yield batch;
        else await options.yieldTurn?.();
      }
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    failure = error;
  }
  const rest = rows.takeRest();
  if (rest !== null) yield rest;
  if (failure !== null) throw failure;
}

/** A stream in pieces: each message as it is there. */
export class ArrowStream {
  readonly #rows: ArrowRows;
  /** The part of the stream that is being gathered; `#size` bytes of it are there. */
  #part: 'mark' | 'metadata' | 'body' | 'end' = 'mark';
  #gathered: Uint8Array = new Uint8Array(8);
  #size = 0;
  #metadata: Uint8Array = this.#gathered;
  #pieces: Uint8Array[] = [];
  #offset: number;

  /** `offset`: bytes that stand before it. */
  constructor(options: IngestOptions, offset: number) {
    this.#rows = new ArrowRows(options);
    this.#offset = offset;
  }

  /** Rows are in hand, and others have their turn before they are gone on with. */
  get isBusy(): boolean {
    return this.#rows.isBusy;
  }

  get index(): number {
    return this.#rows.index;
  }

  /** The rows that were read before an error; null where there are none. */
  takeRest(): IngestBatch | null {
    return this.#rows.takeRest();
  }

  /** The bytes are not changed before they are read. */
  push(bytes: Uint8Array): void {
    this.#pieces.push(bytes);
  }

  read(last: boolean): IngestBatch | null {
    for (;;) {
      if (this.#rows.isBusy) {
        const batch = this.#rows.read(false);
        if (batch !== null || this.#rows.isBusy) return batch;
      }
      if (!this.#gather()) break;
      this.#step();
    }
    if (!last) return null;
    if (this.#part !== 'end' && (this.#part !== 'mark' || this.#size > 0 || !this.#rows.hasSchema))
      throw malformedError(`the stream ends inside of it, after ${this.#rows.index} rows`);
    return this.#rows.read(true);
  }

  /** True: the part is there as a whole. */
  #gather(): boolean {
    while (this.#size < this.#gathered.length) {
      const piece = this.#pieces[0];
      if (piece === undefined) return false;
      const taken = Math.min(piece.length, this.#gathered.length - this.#size);
      this.#gathered.set(piece.subarray(0, taken), this.#size);
      this.#size += taken;
      this.#offset += taken;
      if (taken === piece.length) this.#pieces.shift();
      else this.#pieces[0] = piece.subarray(taken);
    }
    if (this.#part !== 'end') return true;
    if (this.#pieces.length > 0) throw new ServiceError('REL_PARSE', 'there are bytes behind the end of the Arrow stream');
    return false;
  }

  #step(): void {
    const gathered = this.#gathered;
    if (this.#part === 'mark') {
      const view = new DataView(gathered.buffer);
      if (view.getUint32(0, true) !== 0xffff_ffff) throw malformedError('it does not begin with its mark');
      const size = view.getUint32(4, true);
      if (size > metadataBytesMax)
        throw new ServiceError('REL_TOO_LARGE', `metadata of a message has at most ${metadataBytesMax} bytes`);
      this.#begin(size === 0 ? 'end' : 'metadata', size);
      return;
    }
    if (this.#part === 'metadata') {
      this.#metadata = gathered;
      const size = parseMessageSize(gathered);
      if (size > bodyBytesMax)
        throw new ServiceError(
          'REL_TOO_LARGE',
          `a record batch has at most ${bodyBytesMax} bytes, not ${size}: write smaller ones`,
        );
      this.#begin('body', size);
      return;
    }
    this.#begin('mark', 8);
    this.#rows.accept(this.#metadata, gathered, this.#offset);
  }

  /** Memory that nothing was written to yet is none. */
  #begin(part: 'mark' | 'metadata' | 'body' | 'end', bytes: number): void {
    this.#part = part;
    this.#gathered = new Uint8Array(bytes);
    this.#size = 0;
  }
}
