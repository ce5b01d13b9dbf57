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
  const body = new BodyReader(options);
  for await (const chunk of source) {
    body.push(chunk);
    yield* batchesOf(body, false, options);
  }
  yield* batchesOf(body, true, options);
}

async function* batchesOf(body: BodyReader, last: boolean, { yieldTurn }: IngestOptions): AsyncGenerator<IngestBatch, void> {
  for (;;) {
    const batch = body.read(last);
    if (batch !== null) yield batch;
    else if (!body.isBusy) return;
    else await yieldTurn?.();
  }
}

type Form =
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

const defaultRowBytesMax = 16 * 1024 * 1024;
/** Names of columns are short; what begins like none of the forms is taken for a header, too. */
const headerBytesMax = 1 << 20;
/** A few rows are read before a run of them would have begun. */
const defaultPredictBytesMin = 2_048;
/** White space and a byte-order mark may come first; a body that shows no form within this many bytes is refused. */
const detectBytesMax = 65_536;

/** Reads without a stream: bytes in, batches out, no awaiting. */
export class BodyReader {
  readonly #options: IngestOptions;
  readonly #rowBytesMax: number;
  readonly #tape = new RowTape();
  #columns: ColumnSet;
  #json: JsonReader;
  #csv: CsvReader | null = null;
  readonly #predicted: PredictedRows;
  #form: Form = 'unknown';
  #wrapped = false;
  /** The body is Arrow: this reads all of it. */
  #arrow: ArrowStream | null = null;

  readonly #window = new ByteWindow();
  /** An unfinished row is not tried again before the window holds this many bytes from its start. */
  #retryAt = 0;
  /** In a line that was refused before its end had arrived. */
  #skippingLine = false;
  readonly #tally = new BatchTally();
  #failure: ServiceError | null = null;

  constructor(options: IngestOptions) {
    this.#options = options;
    this.#rowBytesMax = options.rowBytesMax ?? defaultRowBytesMax;
    const tracksSent = options.tracksSent === true;
    this.#columns = new ColumnSet(options.definition, this.#tape, false, undefined, tracksSent);
    this.#json = new JsonReader(this.#columns, this.#tape);
    this.#predicted = new PredictedRows(
      this.#columns,
      // A run of rows knows no cell that was not sent.
      tracksSent ? Infinity : (options.predictBytesMin ?? defaultPredictBytesMin),
    );
  }

  push(chunk: Uint8Array): void {
    this.#window.received += chunk.length;
    if (this.#options.limitBytes !== undefined && this.#window.received > this.#options.limitBytes) {
      this.#failure = new ServiceError(
        'REL_TOO_LARGE',
        `the body is over ${this.#options.limitBytes} bytes; ${this.#arrow?.index ?? this.#tally.index} rows were read`,
      );
      return;
    }
    if (this.#arrow !== null) this.#arrow.push(chunk);
    else this.#window.push(chunk);
  }

  /** There is more to read before more bytes are needed: `read` gave null so that others have their turn. */
  get isBusy(): boolean {
    return this.#failure === null && this.#arrow?.isBusy === true;
  }

  /**
   * The next full batch; null when more bytes are needed, or (`isBusy`) a turn is over. With `last`, the remaining rows, and then
   * null.
   */
  read(last: boolean): IngestBatch | null {
    if (this.#failure !== null) return this.#fail(this.#failure);
    try {
      if (last && this.#arrow === null) this.#finishLine();
      while (this.#arrow === null && this.#step(last)) if (this.#isFull()) return this.#take();
      if (this.#arrow !== null) return this.#arrow.read(last);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return this.#fail(error);
    }
    return last && this.#tally.index > this.#tally.firstIndex ? this.#take() : null;
  }

  /** Rows before the failure leave first. */
  #fail(error: ServiceError): IngestBatch {
    this.#failure = error;
    const rest =
      this.#arrow === null ? (this.#tally.index === this.#tally.firstIndex ? null : this.#take()) : this.#arrow.takeRest();
    if (rest === null) throw error;
    return rest;
  }

  #isFull(): boolean {
    return this.#roomRows() <= 0 || this.#tally.bytes >= this.#options.batchBytes;
  }

  /** Rows that the batch may still take. */
  #roomRows(): number {
    const { batchRows } = this.#options;
    return (typeof batchRows === 'number' ? batchRows : batchRows()) - (this.#tally.index - this.#tally.firstIndex);
  }

  #take(): IngestBatch {
    return this.#tally.take({
      ...(this.#options.tracksSent && { sent: this.#columns.takeSent() }),
      rows: this.#columns.take(),
      endOffset: this.#window.offset + this.#window.at,
      mixed: this.#columns.mixedColumns(),
    });
  }

  /** Reads one row or one piece of punctuation; false when it needs more bytes or nothing is left. */
  #step(last: boolean): boolean {
    switch (this.#form) {
      case 'unknown':
        return this.#detect(last);
      case 'ndjson':
        return this.#stepLine(last);
      case 'csv-header':
      case 'csv':
        return this.#stepRecord(last);
      case 'array-start':
      case 'array-row':
      case 'array-next':
        return this.#stepArray(last);
      case 'wrapper-next':
        return this.#stepWrapper(last);
      case 'done':
        return this.#stepDone();
    }
  }

  #detect(last: boolean): boolean {
    this.#openJson(false);
    const window = this.#window.bytes;
    if (this.#window.offset + this.#window.at === 0 && window[0] === 0xef) {
      if (this.#window.end < 3 && !last) return false;
      if (window[1] === 0xbb && window[2] === 0xbf && this.#window.end >= 3) this.#window.at = 3;
    }
    const start = this.#json.skipSpace(this.#window.at);
    if (start >= this.#window.end) {
      if (this.#window.end - this.#window.at > detectBytesMax)
        throw new ServiceError('REL_PARSE', 'the body starts with nothing but white space');
      return false;
    }
    const first = window[start]!;
    if (this.#options.columns || (first !== 0x7b && first !== 0x5b)) {
      const arrow = arrowForm(window.subarray(this.#window.at, this.#window.end));
      if (arrow === 'unclear' && !last) return false;
      if (arrow === 'file')
        throw new ServiceError(
          'REL_PARSE',
          'the body is an Arrow file: send it as a stream (application/vnd.apache.arrow.stream)',
        );
      if (arrow === 'stream') {
        this.#arrow = new ArrowStream(this.#options, this.#window.offset + this.#window.at);
        this.#arrow.push(window.slice(this.#window.at, this.#window.end));
      } else this.#startCsv();
      return true;
    }
    if (first === 0x5b) {
      this.#window.at = start + 1;
      this.#form = 'array-start';
      return true;
    }
    const array = this.#wrapperArray(start, last);
    if (array === 'unclear') return false;
    if (array === null) this.#form = 'ndjson';
    else {
      this.#window.at = array;
      this.#wrapped = true;
      this.#form = 'array-start';
    }
    this.#window.isDirty = true;
    return true;
  }

  /** Offset after the `[` of a body that starts with `{"rows": [`; null when it does not. */
  #wrapperArray(start: number, last: boolean): number | null | 'unclear' {
    let i = start + 1;
    for (const token of ['"rows"', ':', '[']) {
      i = this.#json.skipSpace(i);
      for (let j = 0; j < token.length; j++, i++) {
        if (i >= this.#window.end) return last || i - start > detectBytesMax ? null : 'unclear';
        if (this.#window.bytes[i] !== token.charCodeAt(j)) return null;
      }
    }
    return i;
  }

  #startCsv(): void {
    this.#columns = new ColumnSet(this.#options.definition, this.#tape, true, undefined, this.#options.tracksSent === true);
    this.#csv = new CsvReader(this.#columns, this.#tape, this.#options.nullText ?? null);
    this.#form = 'csv-header';
    if (this.#options.columns) {
      this.#csv.useHeader(this.#options.columns);
      this.#form = 'csv';
    }
  }

  #stepLine(last: boolean): boolean {
    if (this.#mustWait(last)) return false;
    this.#openJson(true);
    const window = this.#window.bytes;
    if (this.#skippingLine) return this.#skipLine(last);
    for (;;) {
      this.#window.at = this.#json.skipSpace(this.#window.at);
      if (this.#window.at >= this.#window.end) return false;
      if (window[this.#window.at] !== 0x0a) break;
      this.#window.at++;
    }
    if (this.#readRun(true)) return true;
    const from = this.#window.at;
    let status = this.#json.readRow(from);
    if (status === 'row') {
      const after = this.#json.skipSpace(this.#json.position);
      if (after >= this.#window.end) status = 'incomplete';
      else if (window[after] === 0x0a) {
        this.#advance(after + 1);
        this.#commit();
        return true;
      } else {
        this.#json.reason = 'text after the end of the object';
        this.#json.position = after;
        status = 'malformed';
      }
    }
    if (status === 'incomplete' && !last) return this.#wait('ndjson');
    this.#columns.abandon();
    this.#reject('REL_PARSE', `${this.#json.reason}, at byte ${this.#json.position - from} of the line`);
    return this.#skipLine(last);
  }

  #stepRecord(last: boolean): boolean {
    const csv = this.#csv!;
    const window = this.#window.bytes;
    if (this.#skippingLine) return this.#skipLine(last);
    csv.open(window, this.#window.end);
    while (
      this.#window.at < this.#window.end &&
      (window[this.#window.at] === 0x0a ||
        (this.#window.at + 1 < this.#window.end && window[this.#window.at] === 0x0d && window[this.#window.at + 1] === 0x0a))
    ) {
      this.#window.at += window[this.#window.at] === 0x0a ? 1 : 2;
    }
    if (this.#window.at >= this.#window.end || this.#mustWait(last)) return false;
    const from = this.#window.at;
    const header = this.#form === 'csv-header';
    const status: RowStatus = header ? csv.readHeader(from) : csv.readRow(from);
    if (status === 'incomplete' && !last) return this.#wait('CSV');
    if (status !== 'row') {
      const detail = `${csv.reason}, at byte ${csv.position - from} of the record`;
      if (header) throw new ServiceError('REL_PARSE', `the CSV header is malformed: ${detail}`);
      this.#reject('REL_PARSE', detail);
      // Reading continues at the next line: after a stray quote the ends of fields can't be known.
      return this.#skipLine(last);
    }
    this.#advance(csv.position);
    if (header) this.#form = 'csv';
    else this.#commit();
    return true;
  }

  #stepArray(last: boolean): boolean {
    if (this.#mustWait(last)) return false;
    this.#openJson(false);
    this.#window.at = this.#json.skipSpace(this.#window.at);
    if (this.#window.at >= this.#window.end)
      return last ? this.#throwParseError('the text ends inside the array', this.#window.at) : false;
    const byte = this.#window.bytes[this.#window.at]!;
    if (this.#form === 'array-next' || (this.#form === 'array-start' && byte === 0x5d)) {
      if (byte === 0x5d) this.#form = this.#wrapped ? 'wrapper-next' : 'done';
      else if (byte === 0x2c) this.#form = 'array-row';
      else return this.#throwParseError('a comma or ] expected', this.#window.at);
      this.#advance(this.#window.at + 1);
      return true;
    }
    if (this.#readRun(false)) return true;
    const status = this.#json.readRow(this.#window.at);
    if (status === 'incomplete' && !last) return this.#wait('array');
    if (status !== 'row') {
      this.#columns.abandon();
      return this.#throwParseError(this.#json.reason, this.#json.position);
    }
    this.#advance(this.#json.position);
    this.#form = 'array-next';
    this.#commit();
    return true;
  }

  /** As many rows as look like those before them; false when there are none, and the next one is read on its own. */
  #readRun(byLine: boolean): boolean {
    const limits = {
      byLine,
      // The room may have shrunk since it was checked.
      rows: Math.max(1, this.#roomRows()),
      bytes: this.#options.batchBytes - this.#tally.bytes,
    };
    const end = this.#predicted.read(this.#window.bytes, this.#window.at, this.#window.end, this.#json.validText, limits);
    if (end === null) return false;
    this.#tally.accept(end.rows);
    this.#window.at = end.at;
    this.#tally.bytes += end.bytes;
    this.#retryAt = 0;
    if (!byLine) this.#form = end.afterRow ? 'array-next' : 'array-row';
    return true;
  }

  /** Other properties of a wrapper are read over. */
  #stepWrapper(last: boolean): boolean {
    if (this.#mustWait(last)) return false;
    this.#openJson(false);
    const json = this.#json;
    let i = json.skipSpace(this.#window.at);
    if (i < this.#window.end && this.#window.bytes[i] === 0x7d) {
      this.#advance(i + 1);
      this.#form = 'done';
      return true;
    }
    if (i < this.#window.end && this.#window.bytes[i] !== 0x2c) return this.#throwParseError('a comma or } expected', i);
    i = json.skipSpace(i + 1);
    if (i < this.#window.end && this.#window.bytes[i] !== 0x22) return this.#throwParseError('a property name expected', i);
    this.#tape.reset(this.#window.bytes);
    i = json.skipValue(i, 1);
    if (i >= 0) {
      i = json.skipSpace(i);
      if (i < this.#window.end && this.#window.bytes[i] !== 0x3a) return this.#throwParseError('a colon expected', i);
      i = json.skipValue(json.skipSpace(i + 1), 1);
    }
    if (i < -1) return this.#throwParseError(json.reason, json.position);
    if (i < 0 || i >= this.#window.end)
      return last ? this.#throwParseError('the text ends inside the wrapper', this.#window.end) : this.#wait('wrapper');
    this.#advance(i);
    return true;
  }

  #stepDone(): boolean {
    this.#openJson(false);
    this.#window.at = this.#json.skipSpace(this.#window.at);
    if (this.#window.at < this.#window.end) return this.#throwParseError('text after the end of the rows', this.#window.at);
    return false;
  }

  #openJson(byLine: boolean): void {
    if (!this.#window.isDirty) return;
    this.#json.open(this.#window.bytes, this.#window.at, this.#window.end, byLine);
    this.#predicted.invalidate();
    this.#window.isDirty = false;
  }

  /** The last line may lack its line feed. */
  #finishLine(): void {
    if (this.#window.at >= this.#window.end || this.#window.bytes[this.#window.end - 1] === 0x0a) return;
    if (this.#form !== 'ndjson' && this.#form !== 'csv' && this.#form !== 'csv-header' && this.#form !== 'unknown') return;
    this.#window.bytes[this.#window.end++] = 0x0a;
    this.#window.isDirty = true;
  }

  #commit(): void {
    if (this.#tape.problem === null && this.#columns.commit()) {
      this.#tally.accept(1);
      this.#predicted.learn(this.#tape);
      return;
    }
    this.#columns.abandon();
    const { code, detail } = this.#tape.problem!;
    this.#reject(code, detail);
  }

  #reject(code: ErrorCode, detail: string): void {
    this.#tally.reject(code, detail);
    this.#predicted.pass();
  }

  #advance(to: number): void {
    this.#tally.bytes += to - this.#window.at;
    this.#window.at = to;
    this.#retryAt = 0;
  }

  #skipLine(last: boolean): boolean {
    // Searches only the bytes read so far: the window may be far larger.
    const feed = this.#window.bytes.subarray(this.#window.at, this.#window.end).indexOf(0x0a);
    const hasFeed = feed >= 0;
    this.#skippingLine = !hasFeed && !last;
    this.#advance(hasFeed ? this.#window.at + feed + 1 : this.#window.end);
    return hasFeed || last;
  }

  #mustWait(last: boolean): boolean {
    return !last && this.#window.end - this.#window.at < this.#retryAt;
  }

  /** Each further attempt at a long row waits for twice the bytes, so that the work stays linear in them. */
  #wait(form: 'ndjson' | 'CSV' | 'array' | 'wrapper'): false {
    this.#columns.abandon();
    const held = this.#window.end - this.#window.at;
    const isHeader = this.#form === 'csv-header';
    const bytesMax = isHeader ? Math.min(headerBytesMax, this.#rowBytesMax) : this.#rowBytesMax;
    if (held > bytesMax) {
      const detail = `${isHeader ? 'the CSV header' : `row ${this.#tally.index}`} is over ${bytesMax} bytes`;
      if (form !== 'ndjson') throw new ServiceError('REL_TOO_LARGE', `${detail}; the rows before it were read`);
      this.#reject('REL_TOO_LARGE', detail);
      this.#skipLine(false);
      return false;
    }
    this.#retryAt = held * 2;
    return false;
  }

  #throwParseError(reason: string, at: number): never {
    throw new ServiceError(
      'REL_PARSE',
      `${reason}, at byte ${this.#window.offset + at} of the body, after ${this.#tally.index} rows`,
    );
  }
}

/** How a file and a stream of Arrow IPC begin: none is the text of a CSV header. */
const arrowBeginnings = { file: Buffer.from('ARROW1\0'), stream: Buffer.from([0xff, 0xff, 0xff, 0xff]) } as const;

/** Null: neither an Arrow file nor a stream. */
function arrowForm(bytes: Uint8Array): 'file' | 'stream' | 'unclear' | null {
  for (const form of ['file', 'stream'] as const) {
    const beginning = arrowBeginnings[form];
    const size = Math.min(bytes.length, beginning.length);
    if (beginning.subarray(0, size).equals(bytes.subarray(0, size))) return size === beginning.length ? form : 'unclear';
  }
  return null;
}
