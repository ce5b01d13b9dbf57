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

const arrowMetadataMax = 4 << 20;
const arrowBodyMax = 64 << 20;
/** Most bytes of all dictionaries of a stream. */
const dictionaryBytesMax = 64 << 20;
/** Most rows of a message: columns of type null may claim any number of rows without any bytes. */
const messageRowsMax = 1 << 24;
/** The work of one turn: rows, or bytes of their cells. */
const [arrowTurnRows, arrowTurnBytes] = [4_096, 1 << 20];
/** Least bytes counted for a row, whatever its cells: its key and its position. */
const arrowRowBytes = 8;
const defaultRowBytesMax = 16 << 20;

interface IngestedColumn extends CellForm {
  /** Null until the first cell. */
  builder: VectorBuilder | null;
}

/** Rows of a record batch, or values of a dictionary, that are being taken. */
interface MessageInHand {
  readonly cells: readonly ArrowCells[];
  readonly rows: number;
  at: number;
  readonly dictionary: { readonly id: bigint; readonly isDelta: boolean; readonly column: IngestedColumn } | null;
}

/** Messages in, batches out, nothing awaited. */
export class ArrowRows {
  readonly #ingestOptions: IngestOptions;
  readonly #isPositional: boolean;
  readonly #rowBytesMax: number;
  /** Null until the schema has come. */
  #arrowColumns: readonly IngestedColumn[] | null = null;
  readonly #arrowDictionaries = new Map<bigint, ArrowDictionary>();
  #dictionaryBytes = 0;
  #messageInHand: MessageInHand | null = null;
  #messageEndOffset = 0;

  #rowIndex = 0;
  #batchFirstIndex = 0;
  #batchRowCount = 0;
  #arrowBatchBytes = 0;
  #arrowBytesRead = 0;
  #rowRejections: RowRejection[] = [];
  #acceptedIndexes: number[] | null = null;

  /** `isPositional`: columns are matched by position instead of name: `p0`, `p1` … */
  constructor(ingestOptions: IngestOptions, isPositional = false) {
    this.#ingestOptions = ingestOptions;
    this.#isPositional = isPositional;
    this.#rowBytesMax = ingestOptions.rowBytesMax ?? defaultRowBytesMax;
  }

  /** Rows that were read, accepted or not. */
  get index(): number {
    return this.#rowIndex;
  }

  get hasSchema(): boolean {
    return this.#arrowColumns !== null;
  }

  /** There are rows in hand: the next message is not taken before `read` has worked them off. */
  get isBusy(): boolean {
    return this.#messageInHand !== null;
  }

  /** One message; `body` begins at a multiple of eight in its memory. `endOffset`: bytes of the stream up to its end. */
  accept(metadata: Uint8Array, body: Uint8Array, endOffset: number): void {
    assert(this.#messageInHand === null, 'a message is taken once the last one is worked off');
    this.#messageEndOffset = endOffset;
    const arrowMessage = parseArrowMessage(metadata);
    if (arrowMessage.kind === 'schema') {
      if (this.#arrowColumns !== null) throw malformedError('a stream has one schema');
      const schemaFields = this.#isPositional
        ? arrowMessage.fields.map((field, i) => ({ ...field, name: `p${i}` }))
        : arrowMessage.fields;
      this.#arrowColumns = ingestColumnsOf(schemaFields, this.#ingestOptions.definition);
      return;
    }
    if (this.#arrowColumns === null) throw malformedError('the schema comes first');
    const { batch: arrowBatch } = arrowMessage;
    const messageRows = Number(arrowBatch.length);
    if (!(messageRows >= 0)) throw malformedError('its length is negative');
    if (messageRows > messageRowsMax)
      throw new ServiceError('REL_TOO_LARGE', `a record batch has at most ${messageRowsMax} rows`);
    const batchBuffers = new BatchBuffers(arrowBatch, body);
    if (arrowMessage.kind === 'batch')
      this.#messageInHand = { cells: this.#batchCells(batchBuffers, messageRows), rows: messageRows, at: 0, dictionary: null };
    else this.#takeDictionary(arrowMessage.id, arrowMessage.isDelta, batchBuffers, messageRows);
  }

  #batchCells(batchBuffers: BatchBuffers, rows: number): ArrowCells[] {
    return this.#arrowColumns!.map((arrowColumn) => {
      const dictionaryId = arrowColumn.field.dictionary?.id;
      return batchBuffers.cells(
        arrowColumn,
        rows,
        (dictionaryId === undefined ? undefined : this.#arrowDictionaries.get(dictionaryId)) ?? null,
      );
    });
  }

  #takeDictionary(id: bigint, isDelta: boolean, batchBuffers: BatchBuffers, rows: number): void {
    const codedColumn = this.#arrowColumns!.find((each) => each.field.dictionary?.id === id);
    if (!codedColumn) throw malformedError(`no column has the dictionary ${id}`);
    const dictionaryColumn: IngestedColumn = { field: codedColumn.field, type: codedColumn.type, dims: 0, builder: null };
    this.#messageInHand = {
      cells: [batchBuffers.values(dictionaryColumn, rows)],
      rows,
      at: 0,
      dictionary: { id, isDelta, column: dictionaryColumn },
    };
  }

  /**
   * The next full batch; null where a message is missing, or (`isBusy`) where the turn is over. With `isLastRead`, the remaining rows.
   */
  read(isLastRead: boolean): IngestBatch | null {
    const messageInHand = this.#messageInHand;
    if (messageInHand !== null) {
      if (messageInHand.at < messageInHand.rows) this.#readTurn(messageInHand);
      if (messageInHand.at === messageInHand.rows) this.#finishMessage(messageInHand);
      if (this.#isBatchFull()) return this.#takeBatch();
      if (this.#messageInHand !== null) return null;
    }
    return isLastRead && this.#rowIndex > this.#batchFirstIndex ? this.#takeBatch() : null;
  }

  /** The rows that were read before an error; null where there are none. */
  takeRest(): IngestBatch | null {
    return this.#rowIndex > this.#batchFirstIndex ? this.#takeBatch() : null;
  }

  #finishMessage({ dictionary, rows }: MessageInHand): void {
    this.#messageInHand = null;
    if (dictionary === null) return;
    const { id, isDelta, column: dictionaryColumn } = dictionary;
    const knownDictionary = isDelta ? this.#arrowDictionaries.get(id) : undefined;
    const grownDictionary = knownDictionary ?? new ArrowDictionary(dictionaryColumn.type);
    if (dictionaryColumn.builder !== null) grownDictionary.add(dictionaryColumn.builder.build(), rows);
    this.#arrowDictionaries.set(id, grownDictionary);
  }

  #readTurn(messageInHand: MessageInHand): void {
    const { cells, dictionary } = messageInHand;
    let turnCount = Math.min(
      arrowTurnRows,
      messageInHand.rows - messageInHand.at,
      dictionary === null ? Math.max(1, this.#batchRowsLeft()) : Infinity,
    );
    let turnBytesRead = arrowBytesOf(cells, messageInHand.at, turnCount);
    while (turnCount > 1 && turnBytesRead > arrowTurnBytes) {
      turnCount >>= 1;
      turnBytesRead = arrowBytesOf(cells, messageInHand.at, turnCount);
    }
    const turnColumns = dictionary === null ? this.#arrowColumns! : [dictionary.column];
    const refusedRows = this.#checkCells(cells, turnColumns, messageInHand.at, turnCount, turnBytesRead);
    if (dictionary !== null) {
      const [firstRefusal] = refusedRows.values();
      if (firstRefusal !== undefined) throw new ServiceError('REL_TYPE_MISMATCH', `a value of a dictionary ${firstRefusal}`);
      this.#dictionaryBytes += turnBytesRead;
      if (this.#dictionaryBytes > dictionaryBytesMax)
        throw new ServiceError('REL_TOO_LARGE', `dictionaries have at most ${dictionaryBytesMax} bytes`);
    } else this.#countBytes(turnBytesRead);
    for (let turnRow = messageInHand.at; turnRow < messageInHand.at + turnCount; ) {
      const rowProblem = refusedRows.get(turnRow);
      if (rowProblem !== undefined) {
        this.#rejectRow(rowProblem);
        turnRow++;
        continue;
      }
      let acceptedEnd = turnRow + 1;
      while (acceptedEnd < messageInHand.at + turnCount && !refusedRows.has(acceptedEnd)) acceptedEnd++;
      appendArrowCells(turnColumns, cells, turnRow, acceptedEnd - turnRow, dictionary === null ? this.#batchRowCount : turnRow);
      if (dictionary === null) this.#acceptRows(acceptedEnd - turnRow);
      turnRow = acceptedEnd;
    }
    messageInHand.at += turnCount;
  }

  /** Finds the reason why each refused row is refused. */
  #checkCells(
    cells: readonly ArrowCells[],
    columns: readonly IngestedColumn[],
    from: number,
    count: number,
    bytes: number,
  ): Map<number, string> {
    const refusedRows = new Map<number, string>();
    if (bytes > this.#rowBytesMax && count === 1) refusedRows.set(from, `is over ${this.#rowBytesMax} bytes`);
    cells.forEach((columnCells, i) => {
      const { name } = columns[i]!.field;
      columnCells.check(from, count, (row, detail) => refusedRows.has(row) || refusedRows.set(row, `${name} ${detail}`));
    });
    return refusedRows;
  }

  /** Limits the bytes of the whole stream: a caller that wants it as one batch holds all of it in memory. */
  #countBytes(bytes: number): void {
    const { limitBytes } = this.#ingestOptions;
    this.#arrowBatchBytes += bytes;
    this.#arrowBytesRead += bytes;
    if (limitBytes !== undefined && this.#arrowBytesRead > limitBytes)
      throw new ServiceError('REL_TOO_LARGE', `the rows come to over ${limitBytes} bytes; ${this.#rowIndex} rows were read`);
  }

  #acceptRows(count: number): void {
    for (let i = 0; this.#acceptedIndexes !== null && i < count; i++) this.#acceptedIndexes.push(this.#rowIndex + i);
    this.#rowIndex += count;
    this.#batchRowCount += count;
  }

  #rejectRow(detail: string): void {
    this.#acceptedIndexes ??= Array.from({ length: this.#rowIndex - this.#batchFirstIndex }, (_, i) => this.#batchFirstIndex + i);
    const rejectionCode: ErrorCode = detail.startsWith('is over') ? 'REL_TOO_LARGE' : 'REL_TYPE_MISMATCH';
    this.#rowRejections.push({ index: this.#rowIndex, code: rejectionCode, detail });
    this.#rowIndex++;
  }

  #batchRowsLeft(): number {
    const { batchRows } = this.#ingestOptions;
    return (typeof batchRows === 'number' ? batchRows : batchRows()) - (this.#rowIndex - this.#batchFirstIndex);
  }

  #isBatchFull(): boolean {
    return (
      this.#rowIndex > this.#batchFirstIndex &&
      (this.#batchRowsLeft() <= 0 || this.#arrowBatchBytes >= this.#ingestOptions.batchBytes)
    );
  }

  #takeBatch(): IngestBatch {
    const batchLength = this.#batchRowCount;
    const ingestedColumns: NamedColumn[] = [];
    const sentCells = new Map<string, Uint8Array>();
    for (const column of this.#arrowColumns ?? []) {
      const { field, builder, type } = column;
      sentCells.set(field.name, new Uint8Array(batchLength).fill(1));
      if (builder === null) continue;
      ingestedColumns.push({ name: field.name, type, vector: builder.build() });
      column.builder = null;
    }
    const ingestBatch: IngestBatch = {
      ...(this.#ingestOptions.tracksSent === true && { sent: sentCells }),
      rows: { length: batchLength, columns: ingestedColumns },
      firstIndex: this.#batchFirstIndex,
      indexes: this.#acceptedIndexes === null ? null : Float64Array.from(this.#acceptedIndexes),
      rejections: this.#rowRejections,
      endOffset: this.#messageEndOffset,
      mixed: [],
    };
    this.#batchFirstIndex = this.#rowIndex;
    this.#batchRowCount = 0;
    this.#arrowBatchBytes = 0;
    this.#rowRejections = [];
    this.#acceptedIndexes = null;
    return ingestBatch;
  }
}

function arrowBytesOf(cells: readonly ArrowCells[], from: number, count: number): number {
  let arrowBytes = count * arrowRowBytes;
  for (const columnCells of cells) arrowBytes += columnCells.bytes(from, count);
  return arrowBytes;
}

/** `length`: cells that the columns hold. */
function appendArrowCells(
  columns: readonly IngestedColumn[],
  cells: readonly ArrowCells[],
  from: number,
  count: number,
  length: number,
): void {
  columns.forEach((arrowColumn, i) => {
    if (arrowColumn.field.type.kind === 'null') return;
    arrowColumn.builder ??= new VectorBuilder(arrowColumn.type, Math.max(64, count));
    assert(arrowColumn.builder.length === length, 'columns grow together');
    cells[i]!.append(arrowColumn.builder, from, count);
  });
}

/**
 * The columns that a type needs in order to take such rows: those that hold more than NULL. `dims` is 0 where lists differ in
 * length.
 */
export function arrowColumns(
  metadata: Uint8Array,
): { readonly name: string; readonly type: ColumnType; readonly dims: number }[] {
  const schemaMessage = parseArrowMessage(metadata);
  if (schemaMessage.kind !== 'schema') throw malformedError('the schema comes first');
  return ingestColumnsOf(schemaMessage.fields, null).flatMap(({ field, type, dims }) =>
    field.type.kind === 'null' ? [] : { name: field.name, type, dims },
  );
}

/** Columns of the schema as the type takes them. */
function ingestColumnsOf(fields: readonly ArrowField[], definition: IngestOptions['definition']): IngestedColumn[] {
  const columnTape = new RowTape();
  const columnSet = new ColumnSet(definition, columnTape, false);
  const dictionaryTypes = new Map<bigint, ColumnType>();
  return fields.map((arrowField, i) => {
    columnTape.reset(new Uint8Array(0));
    const columnSlot = columnSet.slotOf(arrowField.name);
    if (columnSlot < 0) {
      const { code, detail } = columnTape.problem!;
      throw new ServiceError(code, detail);
    }
    if (columnSlot < i) throw new ServiceError('REL_INVALID', `the column ${JSON.stringify(arrowField.name)} is given twice`);
    if (arrowField.type.kind === 'null') return { field: arrowField, type: 'json', dims: 0, builder: null };
    const columnType = ingestedType(arrowField, columnSet.columns[columnSlot]!);
    const dictionaryId = arrowField.dictionary?.id;
    if (dictionaryId !== undefined && (dictionaryTypes.get(dictionaryId) ?? columnType) !== columnType)
      throw new ServiceError(
        'REL_TYPE_MISMATCH',
        `column ${JSON.stringify(arrowField.name)}: its dictionary is another column’s of ${dictionaryTypes.get(dictionaryId)}`,
      );
    if (dictionaryId !== undefined) dictionaryTypes.set(dictionaryId, columnType);
    const { dims } = columnSet.columns[columnSlot]!;
    if (arrowField.type.kind === 'list' && arrowField.type.size !== 0 && dims !== 0 && arrowField.type.size !== dims)
      throw new ServiceError(
        'REL_TYPE_MISMATCH',
        `column ${JSON.stringify(arrowField.name)} has ${arrowField.type.size} dimensions instead of ${dims}`,
      );
    return {
      field: arrowField,
      type: columnType,
      dims: dims || (arrowField.type.kind === 'list' ? arrowField.type.size : 0),
      builder: null,
    };
  });
}

/** The type to which cells are decoded; a later check of the rows decides whether each fits its column exactly. */
function ingestedType({ name, type, meaning }: ArrowField, { type: fixed, declared, integersAsText }: Column): ColumnType {
  const declaredType = fixed ?? declared;
  const arrowType = arrowColumnType(type, meaning);
  if (declaredType === null || declaredType === arrowType) return arrowType;
  const isNumericColumn = declaredType === 'integer' || declaredType === 'number';
  if (type.kind === 'text' && (declaredType === 'string' || declaredType === 'json')) return declaredType;
  if (type.kind === 'text' && declaredType === 'timestamp') return 'string';
  if (type.kind === 'int' && (isNumericColumn || declaredType === 'timestamp')) return 'integer';
  if (type.kind === 'int' && declaredType === 'string' && integersAsText) return declaredType;
  if (isNumericColumn && (arrowType === 'integer' || arrowType === 'number')) return arrowType;
  throw new ServiceError('REL_TYPE_MISMATCH', `column ${JSON.stringify(name)} is of type ${declaredType}; ${arrowType} is given`);
}

function arrowColumnType(type: ArrowField['type'], meaning: ArrowField['meaning']): ColumnType {
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
  arrowMessages: AsyncIterable<{ readonly header: Uint8Array; readonly body: Uint8Array }>,
  options: IngestOptions,
  positional = false,
): AsyncGenerator<IngestBatch, void> {
  const arrowRows = new ArrowRows(options, positional);
  let arrowFailure: ServiceError | null = null;
  try {
    for await (const { header, body } of arrowMessages) {
      arrowRows.accept(header, body, 0);
      while (arrowRows.isBusy) {
        const ingestBatch = arrowRows.read(false);
        if (ingestBatch !== null) yield ingestBatch;
        else await options.yieldTurn?.();
      }
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    arrowFailure = error;
  }
  const lastBatch = arrowRows.takeRest();
  if (lastBatch !== null) yield lastBatch;
  if (arrowFailure !== null) throw arrowFailure;
}

/** A stream in pieces: each message as it is there. */
export class ArrowStream {
  readonly #streamRows: ArrowRows;
  /** The part of the stream that is being gathered; `#gatheredSize` bytes of it are there. */
  #messagePart: 'mark' | 'metadata' | 'body' | 'end' = 'mark';
  #gatheredBytes: Uint8Array = new Uint8Array(8);
  #gatheredSize = 0;
  #messageMetadata: Uint8Array = this.#gatheredBytes;
  #arrowPieces: Uint8Array[] = [];
  #streamOffset: number;

  /** `offset`: bytes that stand before it. */
  constructor(options: IngestOptions, offset: number) {
    this.#streamRows = new ArrowRows(options);
    this.#streamOffset = offset;
  }

  /** Rows are in hand, and others have their turn before they are gone on with. */
  get isBusy(): boolean {
    return this.#streamRows.isBusy;
  }

  get index(): number {
    return this.#streamRows.index;
  }

  /** The rows that were read before an error; null where there are none. */
  takeRest(): IngestBatch | null {
    return this.#streamRows.takeRest();
  }

  /** The bytes are not changed before they are read. */
  push(pushedBytes: Uint8Array): void {
    this.#arrowPieces.push(pushedBytes);
  }

  read(isLastRead: boolean): IngestBatch | null {
    for (;;) {
      if (this.#streamRows.isBusy) {
        const ingestBatch = this.#streamRows.read(false);
        if (ingestBatch !== null || this.#streamRows.isBusy) return ingestBatch;
      }
      if (!this.#gatherPart()) break;
      this.#readPart();
    }
    if (!isLastRead) return null;
    if (this.#messagePart !== 'end' && (this.#messagePart !== 'mark' || this.#gatheredSize > 0 || !this.#streamRows.hasSchema))
      throw malformedError(`the stream ends inside of it, after ${this.#streamRows.index} rows`);
    return this.#streamRows.read(true);
  }

  /** True: the part is there as a whole. */
  #gatherPart(): boolean {
    while (this.#gatheredSize < this.#gatheredBytes.length) {
      const arrowPiece = this.#arrowPieces[0];
      if (arrowPiece === undefined) return false;
      const takenBytes = Math.min(arrowPiece.length, this.#gatheredBytes.length - this.#gatheredSize);
      this.#gatheredBytes.set(arrowPiece.subarray(0, takenBytes), this.#gatheredSize);
      this.#gatheredSize += takenBytes;
      this.#streamOffset += takenBytes;
      if (takenBytes === arrowPiece.length) this.#arrowPieces.shift();
      else this.#arrowPieces[0] = arrowPiece.subarray(takenBytes);
    }
    if (this.#messagePart !== 'end') return true;
    if (this.#arrowPieces.length > 0) throw new ServiceError('REL_PARSE', 'there are bytes behind the end of the Arrow stream');
    return false;
  }

  #readPart(): void {
    const gatheredPart = this.#gatheredBytes;
    if (this.#messagePart === 'mark') {
      const markView = new DataView(gatheredPart.buffer);
      if (markView.getUint32(0, true) !== 0xffff_ffff) throw malformedError('it does not begin with its mark');
      const partSize = markView.getUint32(4, true);
      if (partSize > arrowMetadataMax)
        throw new ServiceError('REL_TOO_LARGE', `metadata of a message has at most ${arrowMetadataMax} bytes`);
      this.#beginPart(partSize === 0 ? 'end' : 'metadata', partSize);
      return;
    }
    if (this.#messagePart === 'metadata') {
      this.#messageMetadata = gatheredPart;
      const partSize = parseMessageSize(gatheredPart);
      if (partSize > arrowBodyMax)
        throw new ServiceError(
          'REL_TOO_LARGE',
          `a record batch has at most ${arrowBodyMax} bytes, not ${partSize}: write smaller ones`,
        );
      this.#beginPart('body', partSize);
      return;
    }
    this.#beginPart('mark', 8);
    this.#streamRows.accept(this.#messageMetadata, gatheredPart, this.#streamOffset);
  }

  /** Memory that nothing was written to yet is none. */
  #beginPart(messagePart: 'mark' | 'metadata' | 'body' | 'end', partBytes: number): void {
    this.#messagePart = messagePart;
    this.#gatheredBytes = new Uint8Array(partBytes);
    this.#gatheredSize = 0;
  }
}
