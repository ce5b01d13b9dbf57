/**
 * Reads the rows of a request body or file, in any of the forms, as batches of columns: NDJSON, a JSON array, a wrapper object
 * with a `rows` array, CSV, or an Arrow IPC stream. Memory stays flat: the reader holds one batch, and the bytes of one
 * unfinished row (of Arrow: one record batch).
 *
 * A row that breaks a rule is refused alone, with its index. Broken syntax costs an NDJSON or CSV body that one line;
 * an array can't be read past it, so the stream ends there with an error that says how far it got, after the rows
 * before it were handed out.
 */
import { type ErrorCode, ServiceError } from '../../errors.ts';
import { ArrowStream } from './arrow-reader.ts';
import { BatchTally } from './batch-tally.ts';
import { ByteWindow } from './byte-window.ts';
import { ColumnSet } from './column-set.ts';
import { CsvReader } from './csv-reader.ts';
import type { IngestBatch, IngestOptions } from './ingest-batch.ts';
import { JsonReader, type RowStatus } from './json-reader.ts';
import { PredictedRows } from './predicted-rows.ts';
import { RowTape } from './row-tape.ts';

export async function* readIngest(source: AsyncIterable<Uint8Array>, options: IngestOptions): AsyncGenerator<IngestBatch, void> {
  const bodyReader = new BodyReader(options);
  for await (const bodyChunk of source) {
    bodyReader.push(bodyChunk);
    yield* readBodyBatches(bodyReader, false, options);
  }
  yield* readBodyBatches(bodyReader, true, options);
}

async function* readBodyBatches(
  bodyReader: BodyReader,
  isLastRead: boolean,
  { yieldTurn }: IngestOptions,
): AsyncGenerator<IngestBatch, void> {
  for (;;) {
    const ingestBatch = bodyReader.read(isLastRead);
    if (ingestBatch !== null) yield ingestBatch;
    else if (!bodyReader.isBusy) return;
    else await yieldTurn?.();
  }
}

type BodyForm =
  | 'unknown'
  | 'ndjson'
  | 'csv-header'
  | 'csv'
  /** In an array, before its first row or its end. */
  | 'array-start'
  /** In an array, where another row must follow. */
  | 'array-row'
  /** In an array, after a row. */
  | 'array-next'
  /** In a wrapper, after its array or another property. */
  | 'wrapper-next'
  | 'done';

const ingestRowBytesMax = 16 * 1024 * 1024;
/** Names of columns are short; what begins like none of the forms is taken for a header, too. */
const csvHeaderBytesMax = 1 << 20;
/** A few rows are read before a run of them would have begun. */
const predictedBodyMin = 2_048;
/** White space and a byte-order mark may come first; a body that shows no form within this many bytes is refused. */
const formDetectBytesMax = 65_536;

/** Reads without a stream: bytes in, batches out, no awaiting. */
export class BodyReader {
  readonly #ingestOptions: IngestOptions;
  readonly #rowBytesMax: number;
  readonly #rowTape = new RowTape();
  #ingestColumns: ColumnSet;
  #jsonReader: JsonReader;
  #csvReader: CsvReader | null = null;
  readonly #predictedRows: PredictedRows;
  #bodyForm: BodyForm = 'unknown';
  #isWrapped = false;
  /** The body is Arrow: this reads all of it. */
  #arrowStream: ArrowStream | null = null;

  readonly #bodyWindow = new ByteWindow();
  /** An unfinished row is not tried again before the window holds this many bytes from its start. */
  #retryBytes = 0;
  /** In a line that was refused before its end had arrived. */
  #isSkippingLine = false;
  readonly #tally = new BatchTally();
  #bodyFailure: ServiceError | null = null;

  constructor(ingestOptions: IngestOptions) {
    this.#ingestOptions = ingestOptions;
    this.#rowBytesMax = ingestOptions.rowBytesMax ?? ingestRowBytesMax;
    const tracksSent = ingestOptions.tracksSent === true;
    this.#ingestColumns = new ColumnSet(ingestOptions.definition, this.#rowTape, false, undefined, tracksSent);
    this.#jsonReader = new JsonReader(this.#ingestColumns, this.#rowTape);
    this.#predictedRows = new PredictedRows(
      this.#ingestColumns,
      // A run of rows knows no cell that was not sent.
      tracksSent ? Infinity : (ingestOptions.predictBytesMin ?? predictedBodyMin),
    );
  }

  push(bodyChunk: Uint8Array): void {
    this.#bodyWindow.received += bodyChunk.length;
    if (this.#ingestOptions.limitBytes !== undefined && this.#bodyWindow.received > this.#ingestOptions.limitBytes) {
      this.#bodyFailure = new ServiceError(
        'REL_TOO_LARGE',
        `the body is over ${this.#ingestOptions.limitBytes} bytes; ${this.#arrowStream?.index ?? this.#tally.index} rows were read`,
      );
      return;
    }
    if (this.#arrowStream !== null) this.#arrowStream.push(bodyChunk);
    else this.#bodyWindow.push(bodyChunk);
  }

  /** There is more to read before more bytes are needed: `read` gave null so that others have their turn. */
  get isBusy(): boolean {
    return this.#bodyFailure === null && this.#arrowStream?.isBusy === true;
  }

  /**
   * The next full batch; null when more bytes are needed, or (`isBusy`) a turn is over. With `isLastRead`, the remaining rows, and then
   * null.
   */
  read(isLastRead: boolean): IngestBatch | null {
    if (this.#bodyFailure !== null) return this.#failBody(this.#bodyFailure);
    try {
      if (isLastRead && this.#arrowStream === null) this.#finishLine();
      while (this.#arrowStream === null && this.#stepForm(isLastRead)) if (this.#isBatchFull()) return this.#takeBatch();
      if (this.#arrowStream !== null) return this.#arrowStream.read(isLastRead);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return this.#failBody(error);
    }
    return isLastRead && this.#tally.index > this.#tally.firstIndex ? this.#takeBatch() : null;
  }

  /** Rows before the failure leave first. */
  #failBody(bodyError: ServiceError): IngestBatch {
    this.#bodyFailure = bodyError;
    const lastBatch =
      this.#arrowStream === null
        ? this.#tally.index === this.#tally.firstIndex
          ? null
          : this.#takeBatch()
        : this.#arrowStream.takeRest();
    if (lastBatch === null) throw bodyError;
    return lastBatch;
  }

  #isBatchFull(): boolean {
    return this.#batchRowsLeft() <= 0 || this.#tally.bytes >= this.#ingestOptions.batchBytes;
  }

  /** Rows that the batch may still take. */
  #batchRowsLeft(): number {
    const { batchRows } = this.#ingestOptions;
    return (typeof batchRows === 'number' ? batchRows : batchRows()) - (this.#tally.index - this.#tally.firstIndex);
  }

  #takeBatch(): IngestBatch {
    return this.#tally.take({
      ...(this.#ingestOptions.tracksSent && { sent: this.#ingestColumns.takeSent() }),
      rows: this.#ingestColumns.take(),
      endOffset: this.#bodyWindow.offset + this.#bodyWindow.at,
      mixed: this.#ingestColumns.mixedColumns(),
    });
  }

  /** Reads one row or one piece of punctuation; false when it needs more bytes or nothing is left. */
  #stepForm(isLastRead: boolean): boolean {
    switch (this.#bodyForm) {
      case 'unknown':
        return this.#detectForm(isLastRead);
      case 'ndjson':
        return this.#stepLine(isLastRead);
      case 'csv-header':
      case 'csv':
        return this.#stepRecord(isLastRead);
      case 'array-start':
      case 'array-row':
      case 'array-next':
        return this.#stepArray(isLastRead);
      case 'wrapper-next':
        return this.#stepWrapper(isLastRead);
      case 'done':
        return this.#stepDone();
    }
  }

  #detectForm(isLastRead: boolean): boolean {
    this.#openJsonWindow(false);
    const bodyWindow = this.#bodyWindow.bytes;
    if (this.#bodyWindow.offset + this.#bodyWindow.at === 0 && bodyWindow[0] === 0xef) {
      if (this.#bodyWindow.end < 3 && !isLastRead) return false;
      if (bodyWindow[1] === 0xbb && bodyWindow[2] === 0xbf && this.#bodyWindow.end >= 3) this.#bodyWindow.at = 3;
    }
    const bodyStart = this.#jsonReader.skipSpace(this.#bodyWindow.at);
    if (bodyStart >= this.#bodyWindow.end) {
      if (this.#bodyWindow.end - this.#bodyWindow.at > formDetectBytesMax)
        throw new ServiceError('REL_PARSE', 'the body starts with nothing but white space');
      return false;
    }
    const firstByte = bodyWindow[bodyStart]!;
    if (this.#ingestOptions.columns || (firstByte !== 0x7b && firstByte !== 0x5b)) {
      const detectedArrow = detectArrowForm(bodyWindow.subarray(this.#bodyWindow.at, this.#bodyWindow.end));
      if (detectedArrow === 'unclear' && !isLastRead) return false;
      if (detectedArrow === 'file')
        throw new ServiceError(
          'REL_PARSE',
          'the body is an Arrow file: send it as a stream (application/vnd.apache.arrow.stream)',
        );
      if (detectedArrow === 'stream') {
        this.#arrowStream = new ArrowStream(this.#ingestOptions, this.#bodyWindow.offset + this.#bodyWindow.at);
        this.#arrowStream.push(bodyWindow.slice(this.#bodyWindow.at, this.#bodyWindow.end));
      } else this.#startCsv();
      return true;
    }
    if (firstByte === 0x5b) {
      this.#bodyWindow.at = bodyStart + 1;
      this.#bodyForm = 'array-start';
      return true;
    }
    const wrappedArray = this.#wrapperArray(bodyStart, isLastRead);
    if (wrappedArray === 'unclear') return false;
    if (wrappedArray === null) this.#bodyForm = 'ndjson';
    else {
      this.#bodyWindow.at = wrappedArray;
      this.#isWrapped = true;
      this.#bodyForm = 'array-start';
    }
    this.#bodyWindow.isDirty = true;
    return true;
  }

  /** Offset after the `[` of a body that starts with `{"rows": [`; null when it does not. */
  #wrapperArray(wrapperStart: number, isLastRead: boolean): number | null | 'unclear' {
    let i = wrapperStart + 1;
    for (const wrapperToken of ['"rows"', ':', '[']) {
      i = this.#jsonReader.skipSpace(i);
      for (let j = 0; j < wrapperToken.length; j++, i++) {
        if (i >= this.#bodyWindow.end) return isLastRead || i - wrapperStart > formDetectBytesMax ? null : 'unclear';
        if (this.#bodyWindow.bytes[i] !== wrapperToken.charCodeAt(j)) return null;
      }
    }
    return i;
  }

  #startCsv(): void {
    this.#ingestColumns = new ColumnSet(
      this.#ingestOptions.definition,
      this.#rowTape,
      true,
      undefined,
      this.#ingestOptions.tracksSent === true,
    );
    this.#csvReader = new CsvReader(this.#ingestColumns, this.#rowTape, this.#ingestOptions.nullText ?? null);
    this.#bodyForm = 'csv-header';
    if (this.#ingestOptions.columns) {
      this.#csvReader.useHeader(this.#ingestOptions.columns);
      this.#bodyForm = 'csv';
    }
  }

  #stepLine(isLastRead: boolean): boolean {
    if (this.#mustWaitForRow(isLastRead)) return false;
    this.#openJsonWindow(true);
    const bodyWindow = this.#bodyWindow.bytes;
    if (this.#isSkippingLine) return this.#skipLine(isLastRead);
    for (;;) {
      this.#bodyWindow.at = this.#jsonReader.skipSpace(this.#bodyWindow.at);
      if (this.#bodyWindow.at >= this.#bodyWindow.end) return false;
      if (bodyWindow[this.#bodyWindow.at] !== 0x0a) break;
      this.#bodyWindow.at++;
    }
    if (this.#readPredictedRun(true)) return true;
    const lineStart = this.#bodyWindow.at;
    let lineStatus = this.#jsonReader.readRow(lineStart);
    if (lineStatus === 'row') {
      const lineRest = this.#jsonReader.skipSpace(this.#jsonReader.position);
      if (lineRest >= this.#bodyWindow.end) lineStatus = 'incomplete';
      else if (bodyWindow[lineRest] === 0x0a) {
        this.#advanceWindow(lineRest + 1);
        this.#commitRow();
        return true;
      } else {
        this.#jsonReader.reason = 'text after the end of the object';
        this.#jsonReader.position = lineRest;
        lineStatus = 'malformed';
      }
    }
    if (lineStatus === 'incomplete' && !isLastRead) return this.#waitForRow('ndjson');
    this.#ingestColumns.abandon();
    this.#rejectRow('REL_PARSE', `${this.#jsonReader.reason}, at byte ${this.#jsonReader.position - lineStart} of the line`);
    return this.#skipLine(isLastRead);
  }

  #stepRecord(isLastRead: boolean): boolean {
    const csvReader = this.#csvReader!;
    const bodyWindow = this.#bodyWindow.bytes;
    if (this.#isSkippingLine) return this.#skipLine(isLastRead);
    csvReader.open(bodyWindow, this.#bodyWindow.end);
    while (
      this.#bodyWindow.at < this.#bodyWindow.end &&
      (bodyWindow[this.#bodyWindow.at] === 0x0a ||
        (this.#bodyWindow.at + 1 < this.#bodyWindow.end &&
          bodyWindow[this.#bodyWindow.at] === 0x0d &&
          bodyWindow[this.#bodyWindow.at + 1] === 0x0a))
    ) {
      this.#bodyWindow.at += bodyWindow[this.#bodyWindow.at] === 0x0a ? 1 : 2;
    }
    if (this.#bodyWindow.at >= this.#bodyWindow.end || this.#mustWaitForRow(isLastRead)) return false;
    const recordStart = this.#bodyWindow.at;
    const isHeader = this.#bodyForm === 'csv-header';
    const recordStatus: RowStatus = isHeader ? csvReader.readHeader(recordStart) : csvReader.readRow(recordStart);
    if (recordStatus === 'incomplete' && !isLastRead) return this.#waitForRow('CSV');
    if (recordStatus !== 'row') {
      const recordProblem = `${csvReader.reason}, at byte ${csvReader.position - recordStart} of the record`;
      if (isHeader) throw new ServiceError('REL_PARSE', `the CSV header is malformed: ${recordProblem}`);
      this.#rejectRow('REL_PARSE', recordProblem);
      // Reading continues at the next line: after a stray quote the ends of fields can't be known.
      return this.#skipLine(isLastRead);
    }
    this.#advanceWindow(csvReader.position);
    if (isHeader) this.#bodyForm = 'csv';
    else this.#commitRow();
    return true;
  }

  #stepArray(isLastRead: boolean): boolean {
    if (this.#mustWaitForRow(isLastRead)) return false;
    this.#openJsonWindow(false);
    this.#bodyWindow.at = this.#jsonReader.skipSpace(this.#bodyWindow.at);
    if (this.#bodyWindow.at >= this.#bodyWindow.end)
      return isLastRead ? this.#throwParseError('the text ends inside the array', this.#bodyWindow.at) : false;
    const arrayByte = this.#bodyWindow.bytes[this.#bodyWindow.at]!;
    if (this.#bodyForm === 'array-next' || (this.#bodyForm === 'array-start' && arrayByte === 0x5d)) {
      if (arrayByte === 0x5d) this.#bodyForm = this.#isWrapped ? 'wrapper-next' : 'done';
      else if (arrayByte === 0x2c) this.#bodyForm = 'array-row';
      else return this.#throwParseError('a comma or ] expected', this.#bodyWindow.at);
      this.#advanceWindow(this.#bodyWindow.at + 1);
      return true;
    }
    if (this.#readPredictedRun(false)) return true;
    const arrayRowStatus = this.#jsonReader.readRow(this.#bodyWindow.at);
    if (arrayRowStatus === 'incomplete' && !isLastRead) return this.#waitForRow('array');
    if (arrayRowStatus !== 'row') {
      this.#ingestColumns.abandon();
      return this.#throwParseError(this.#jsonReader.reason, this.#jsonReader.position);
    }
    this.#advanceWindow(this.#jsonReader.position);
    this.#bodyForm = 'array-next';
    this.#commitRow();
    return true;
  }

  /** As many rows as look like those before them; false when there are none, and the next one is read on its own. */
  #readPredictedRun(isByLine: boolean): boolean {
    const runLimits = {
      byLine: isByLine,
      // The room may have shrunk since it was checked.
      rows: Math.max(1, this.#batchRowsLeft()),
      bytes: this.#ingestOptions.batchBytes - this.#tally.bytes,
    };
    const predictedEnd = this.#predictedRows.read(
      this.#bodyWindow.bytes,
      this.#bodyWindow.at,
      this.#bodyWindow.end,
      this.#jsonReader.validText,
      runLimits,
    );
    if (predictedEnd === null) return false;
    this.#tally.accept(predictedEnd.rows);
    this.#bodyWindow.at = predictedEnd.at;
    this.#tally.bytes += predictedEnd.bytes;
    this.#retryBytes = 0;
    if (!isByLine) this.#bodyForm = predictedEnd.afterRow ? 'array-next' : 'array-row';
    return true;
  }

  /** Other properties of a wrapper are read over. */
  #stepWrapper(isLastRead: boolean): boolean {
    if (this.#mustWaitForRow(isLastRead)) return false;
    this.#openJsonWindow(false);
    const jsonReader = this.#jsonReader;
    let i = jsonReader.skipSpace(this.#bodyWindow.at);
    if (i < this.#bodyWindow.end && this.#bodyWindow.bytes[i] === 0x7d) {
      this.#advanceWindow(i + 1);
      this.#bodyForm = 'done';
      return true;
    }
    if (i < this.#bodyWindow.end && this.#bodyWindow.bytes[i] !== 0x2c) return this.#throwParseError('a comma or } expected', i);
    i = jsonReader.skipSpace(i + 1);
    if (i < this.#bodyWindow.end && this.#bodyWindow.bytes[i] !== 0x22)
      return this.#throwParseError('a property name expected', i);
    this.#rowTape.reset(this.#bodyWindow.bytes);
    i = jsonReader.skipValue(i, 1);
    if (i >= 0) {
      i = jsonReader.skipSpace(i);
      if (i < this.#bodyWindow.end && this.#bodyWindow.bytes[i] !== 0x3a) return this.#throwParseError('a colon expected', i);
      i = jsonReader.skipValue(jsonReader.skipSpace(i + 1), 1);
    }
    if (i < -1) return this.#throwParseError(jsonReader.reason, jsonReader.position);
    if (i < 0 || i >= this.#bodyWindow.end)
      return isLastRead
        ? this.#throwParseError('the text ends inside the wrapper', this.#bodyWindow.end)
        : this.#waitForRow('wrapper');
    this.#advanceWindow(i);
    return true;
  }

  #stepDone(): boolean {
    this.#openJsonWindow(false);
    this.#bodyWindow.at = this.#jsonReader.skipSpace(this.#bodyWindow.at);
    if (this.#bodyWindow.at < this.#bodyWindow.end)
      return this.#throwParseError('text after the end of the rows', this.#bodyWindow.at);
    return false;
  }

  #openJsonWindow(byLine: boolean): void {
    if (!this.#bodyWindow.isDirty) return;
    this.#jsonReader.open(this.#bodyWindow.bytes, this.#bodyWindow.at, this.#bodyWindow.end, byLine);
    this.#predictedRows.invalidate();
    this.#bodyWindow.isDirty = false;
  }

  /** The last line may lack its line feed. */
  #finishLine(): void {
    if (this.#bodyWindow.at >= this.#bodyWindow.end || this.#bodyWindow.bytes[this.#bodyWindow.end - 1] === 0x0a) return;
    if (
      this.#bodyForm !== 'ndjson' &&
      this.#bodyForm !== 'csv' &&
      this.#bodyForm !== 'csv-header' &&
      this.#bodyForm !== 'unknown'
    )
      return;
    this.#bodyWindow.bytes[this.#bodyWindow.end++] = 0x0a;
    this.#bodyWindow.isDirty = true;
  }

  #commitRow(): void {
    if (this.#rowTape.problem === null && this.#ingestColumns.commit()) {
      this.#tally.accept(1);
      this.#predictedRows.learn(this.#rowTape);
      return;
    }
    this.#ingestColumns.abandon();
    const { code, detail } = this.#rowTape.problem!;
    this.#rejectRow(code, detail);
  }

  #rejectRow(code: ErrorCode, detail: string): void {
    this.#tally.reject(code, detail);
    this.#predictedRows.pass();
  }

  #advanceWindow(nextOffset: number): void {
    this.#tally.bytes += nextOffset - this.#bodyWindow.at;
    this.#bodyWindow.at = nextOffset;
    this.#retryBytes = 0;
  }

  #skipLine(isLastRead: boolean): boolean {
    // Searches only the bytes read so far: the window may be far larger.
    const lineFeed = this.#bodyWindow.bytes.subarray(this.#bodyWindow.at, this.#bodyWindow.end).indexOf(0x0a);
    const hasFeed = lineFeed >= 0;
    this.#isSkippingLine = !hasFeed && !isLastRead;
    this.#advanceWindow(hasFeed ? this.#bodyWindow.at + lineFeed + 1 : this.#bodyWindow.end);
    return hasFeed || isLastRead;
  }

  #mustWaitForRow(last: boolean): boolean {
    return !last && this.#bodyWindow.end - this.#bodyWindow.at < this.#retryBytes;
  }

  /** Each further attempt at a long row waits for twice the bytes, so that the work stays linear in them. */
  #waitForRow(waitingForm: 'ndjson' | 'CSV' | 'array' | 'wrapper'): false {
    this.#ingestColumns.abandon();
    const heldBytes = this.#bodyWindow.end - this.#bodyWindow.at;
    const isHeader = this.#bodyForm === 'csv-header';
    const bytesMax = isHeader ? Math.min(csvHeaderBytesMax, this.#rowBytesMax) : this.#rowBytesMax;
    if (heldBytes > bytesMax) {
      const oversizeProblem = `${isHeader ? 'the CSV header' : `row ${this.#tally.index}`} is over ${bytesMax} bytes`;
      if (waitingForm !== 'ndjson') throw new ServiceError('REL_TOO_LARGE', `${oversizeProblem}; the rows before it were read`);
      this.#rejectRow('REL_TOO_LARGE', oversizeProblem);
      this.#skipLine(false);
      return false;
    }
    this.#retryBytes = heldBytes * 2;
    return false;
  }

  #throwParseError(reason: string, at: number): never {
    throw new ServiceError(
      'REL_PARSE',
      `${reason}, at byte ${this.#bodyWindow.offset + at} of the body, after ${this.#tally.index} rows`,
    );
  }
}

/** How a file and a stream of Arrow IPC begin: none is the text of a CSV header. */
const arrowBeginnings = { file: Buffer.from('ARROW1\0'), stream: Buffer.from([0xff, 0xff, 0xff, 0xff]) } as const;

/** Null: neither an Arrow file nor a stream. */
function detectArrowForm(bodyBytes: Uint8Array): 'file' | 'stream' | 'unclear' | null {
  for (const arrowShape of ['file', 'stream'] as const) {
    const arrowBeginning = arrowBeginnings[arrowShape];
    const comparedBytes = Math.min(bodyBytes.length, arrowBeginning.length);
    if (arrowBeginning.subarray(0, comparedBytes).equals(bodyBytes.subarray(0, comparedBytes)))
      return comparedBytes === arrowBeginning.length ? arrowShape : 'unclear';
  }
  return null;
}
