/** Rows of COPY FROM STDIN: bytes in, however they were cut, and batches of columns out. */
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../../errors.ts';
import type { RowBatch } from '../../log/columns.ts';
import { type ColumnType, limits } from '../../log/value.ts';
import { VectorBuilder } from '../../log/vector-builder.ts';
import { parameterOid, parameterValue } from './parameters.ts';
import type { CopyFormat } from './copy-statement.ts';

export interface CopyColumn {
  readonly name: string;
  readonly type: ColumnType;
  /** Dimensions of a vector; 0: as the first one has. */
  readonly dims: number;
}

/** One batch is decided and applied in one turn of the event loop. */
const batchRows = 3_072;
const batchBytes = 3 << 18;
const rowBytesMax = 16 << 20;
const signature = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');

export class CopyReader {
  readonly #format: CopyFormat;
  readonly #columns: readonly CopyColumn[];
  readonly #nullText: Buffer;
  readonly #delimiter: number;
  readonly #quote: number;
  readonly #escape: number;
  #window: Buffer = Buffer.alloc(0);
  #at = 0;
  #isEnded = false;
  #header: boolean;
  #builders: VectorBuilder[] = [];
  #dims: number[];
  #rows = 0;
  #bytes = 0;
  /** Rows of batches before. */
  #before = 0;
  /** Fields of the row that is being read; -1 as their end: NULL. Those with escapes lie in `#scratch`. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #sources: Buffer[] = [];
  /** All bytes of the row, or'ed: most rows are ASCII throughout. */
  #high = 0;

  constructor(format: CopyFormat, columns: readonly CopyColumn[]) {
    this.#format = format;
    this.#columns = columns;
    this.#nullText = Buffer.from(format.nullText);
    this.#delimiter = format.delimiter.charCodeAt(0);
    this.#quote = format.format === 'csv' ? format.quote.charCodeAt(0) : -1;
    this.#escape = format.format === 'csv' ? format.escape.charCodeAt(0) : -1;
    this.#header = format.header || format.format === 'binary';
    this.#dims = columns.map(({ dims }) => dims);
  }

  push(bytes: Buffer): void {
    this.#window = this.#at === this.#window.length ? bytes : Buffer.concat([this.#window.subarray(this.#at), bytes]);
    this.#at = 0;
  }

  /** The next full batch, and at the end what is left of it; null where more bytes are needed. Throws for what is no row. */
  batch(isLast: boolean): RowBatch | null {
    if (isLast && !this.#isEnded && this.#format.format !== 'binary' && this.#at < this.#window.length) {
      if (this.#window.at(-1) !== 0x0a) this.push(Buffer.from('\n'));
    }
    while (!this.#isEnded && this.#row()) if (this.#rows >= batchRows || this.#bytes >= batchBytes) return this.#take();
    if (!isLast) {
      if (this.#window.length - this.#at > rowBytesMax)
        throw new ServiceError('REL_TOO_LARGE', `${this.#place}: a row is over ${rowBytesMax} bytes`);
      // The bytes are the connection's, which goes on to use them.
      this.#window = Buffer.from(this.#window.subarray(this.#at));
      this.#at = 0;
      return null;
    }
    if (this.#format.format === 'binary' && !this.#isEnded)
      throw new ServiceError('REL_INVALID', 'the binary data ends before its trailer', { reason: 'copy-form' });
    if (!this.#isEnded && this.#at < this.#window.length)
      throw new ServiceError('REL_INVALID', `${this.#place}: the data ends within quotes`, { reason: 'copy-form' });
    return this.#rows > 0 ? this.#take() : null;
  }

  get #place(): string {
    return `COPY, row ${this.#before + this.#rows + 1}`;
  }

  #take(): RowBatch {
    const columns = this.#columns.map(({ name, type }, i) => ({ name, type, vector: this.#builders[i]!.build() }));
    const batch = { length: this.#rows, columns };
    this.#before += this.#rows;
    this.#rows = this.#bytes = 0;
    this.#builders = [];
    return batch;
  }

  /** False: more bytes are needed. */
  #row(): boolean {
    const from = this.#at;
    if (this.#format.format === 'binary') return this.#header ? this.#binaryHeader() : this.#binaryRow();
    const fields = this.#format.format === 'csv' ? this.#csvFields() : this.#textFields();
    if (!fields) return false;
    if (this.#isEnded) return true;
    if (this.#header) {
      this.#header = false;
      return true;
    }
    const window = this.#window;
    if (this.#high > 0x7f && !isUtf8(window.subarray(from, this.#at)))
      throw new ServiceError('REL_INVALID', `${this.#place} is not UTF-8`, { reason: 'not-utf8' });
    this.#checkCount(this.#starts.length);
    for (let i = 0; i < this.#columns.length; i++) this.#appendText(i);
    this.#rows++;
    this.#bytes += this.#at - from;
    return true;
  }

  #checkCount(fields: number): void {
    if (fields === this.#columns.length) return;
    throw new ServiceError('REL_INVALID', `${this.#place} has ${fields} fields for ${this.#columns.length} columns`, {
      reason: 'copy-form',
    });
  }

  #field(source: Buffer, start: number, end: number): void {
    this.#sources.push(source);
    this.#starts.push(start);
    this.#ends.push(end);
  }

  #begin(): void {
    this.#high = 0;
    this.#starts.length = this.#ends.length = this.#sources.length = 0;
  }

  #isNull(start: number, end: number): boolean {
    const text = this.#nullText;
    return end - start === text.length && this.#window.compare(text, 0, text.length, start, end) === 0;
  }

  /** Fields between delimiters, with escapes by backslashes. False: the line is not whole. */
  #textFields(): boolean {
    const window = this.#window;
    const length = window.length;
    const delimiter = this.#delimiter;
    this.#begin();
    let start = this.#at;
    let isEscaped = false;
    let high = 0;
    for (let i = start; i < length; i++) {
      const byte = window[i]!;
      high |= byte;
      if (byte === 0x5c) {
        isEscaped = true;
        // Beyond the window there is nothing, and no row either.
        high |= window[++i] ?? 0;
        continue;
      }
      if (byte !== delimiter && byte !== 0x0a) continue;
      const end = byte === 0x0a && i > start && window[i - 1] === 0x0d && !(isEscaped && window[i - 2] === 0x5c) ? i - 1 : i;
      if (this.#isNull(start, end)) this.#field(window, start, -1);
      else if (!isEscaped) this.#field(window, start, end);
      else {
        // The line that ends the data of clients that speak as files do.
        if (end - start === 2 && window[start] === 0x5c && window[start + 1] === 0x2e && start === this.#at && byte === 0x0a) {
          this.#isEnded = true;
          this.#at = length;
          return true;
        }
        const text = this.#unescaped(window.subarray(start, end));
        this.#field(text, 0, text.length);
      }
      isEscaped = false;
      start = i + 1;
      if (byte === 0x0a) {
        this.#at = start;
        this.#high = high;
        return true;
      }
    }
    return false;
  }

  #unescaped(raw: Buffer): Buffer {
    const out = Buffer.alloc(raw.length);
    let to = 0;
    for (let i = 0; i < raw.length; i++) {
      if (raw[i] !== 0x5c || i + 1 === raw.length) {
        out[to++] = raw[i]!;
        continue;
      }
      const next = raw[++i]!;
      const octal = /^[0-7]{1,3}/.exec(raw.toString('latin1', i, i + 3))?.[0];
      const hex = next === 0x78 ? /^[0-9a-f]{1,2}/i.exec(raw.toString('latin1', i + 1, i + 3))?.[0] : undefined;
      if (octal !== undefined) {
        out[to++] = Number.parseInt(octal, 8);
        i += octal.length - 1;
      } else if (hex !== undefined) {
        out[to++] = Number.parseInt(hex, 16);
        i += hex.length;
      } else out[to++] = letters.get(next) ?? next;
    }
    const text = out.subarray(0, to);
    if (!isUtf8(text)) throw new ServiceError('REL_INVALID', `${this.#place} is not UTF-8`, { reason: 'not-utf8' });
    return text;
  }

  /** Fields of RFC 4180, with marks of one's own. False: the record is not whole. */
  #csvFields(): boolean {
    const window = this.#window;
    const length = window.length;
    const delimiter = this.#delimiter;
    const quote = this.#quote;
    this.#begin();
    let start = this.#at;
    let high = 0;
    for (;;) {
      // The parts of a field that lie within quotes and without, joined.
      let parts: Buffer[] | null = null;
      let from = start;
      let i = start;
      let isQuoted = false;
      for (; i < length; i++) {
        const byte = window[i]!;
        if (byte === delimiter || byte === 0x0a) break;
        high |= byte;
        if (byte !== quote) continue;
        (parts ??= []).push(window.subarray(from, i));
        isQuoted = true;
        from = ++i;
        for (; ; i++) {
          if (i >= length) return false;
          high |= window[i]!;
          if (window[i] === this.#escape && (window[i + 1] === this.#quote || window[i + 1] === this.#escape) && i + 1 < length) {
            parts.push(window.subarray(from, i));
            from = ++i;
          } else if (window[i] === this.#quote) {
            // What follows tells whether it is doubled.
            if (this.#escape === this.#quote && i + 1 >= length) return false;
            break;
          }
        }
        parts.push(window.subarray(from, i));
        from = i + 1;
      }
      if (i >= length) return false;
      const isEnd = window[i] === 0x0a;
      const end = isEnd && i > from && window[i - 1] === 0x0d ? i - 1 : i;
      if (parts !== null) {
        parts.push(window.subarray(from, Math.max(from, end)));
        const text = parts.length === 3 && parts[0]!.length === 0 && parts[2]!.length === 0 ? parts[1]! : Buffer.concat(parts);
        this.#field(text, 0, text.length);
      } else this.#field(window, start, !isQuoted && this.#isNull(start, end) ? -1 : end);
      start = i + 1;
      if (isEnd) {
        if (
          this.#starts.length === 1 &&
          this.#ends[0] === this.#starts[0]! + 2 &&
          window[this.#at] === 0x5c &&
          window[this.#at + 1] === 0x2e
        ) {
          this.#isEnded = true;
          start = length;
        }
        this.#at = start;
        this.#high = high;
        return true;
      }
    }
  }

  #binaryHeader(): boolean {
    const window = this.#window.subarray(this.#at);
    if (window.length < 19) return false;
    if (!window.subarray(0, 11).equals(signature))
      throw new ServiceError('REL_INVALID', 'this is no binary COPY data', { reason: 'copy-form' });
    const taken = 19 + window.readInt32BE(15);
    if (window.readInt32BE(11) !== 0 || taken < 19 || taken > 4_096)
      throw new ServiceError('REL_INVALID', 'binary COPY data has flags that are not known here', { reason: 'copy-form' });
    if (window.length < taken) return false;
    this.#at += taken;
    this.#header = false;
    return true;
  }

  #binaryRow(): boolean {
    const window = this.#window;
    let at = this.#at;
    if (at + 2 > window.length) return false;
    const fields = window.readInt16BE(at);
    at += 2;
    if (fields === -1) {
      this.#isEnded = true;
      this.#at = window.length;
      return true;
    }
    this.#checkCount(fields);
    const starts: number[] = [];
    for (let i = 0; i < fields; i++) {
      if (at + 4 > window.length) return false;
      const size = window.readInt32BE(at);
      if (size < -1 || size > rowBytesMax)
        throw new ServiceError('REL_INVALID', `${this.#place} has a field of ${size} bytes`, { reason: 'copy-form' });
      starts.push(at);
      at += 4 + Math.max(0, size);
    }
    if (at > window.length) return false;
    for (let i = 0; i < fields; i++) {
      const start = starts[i]!;
      const size = window.readInt32BE(start);
      const bytes = size < 0 ? null : window.subarray(start + 4, start + 4 + size);
      this.#appendValue(i, bytes, 1);
    }
    this.#rows++;
    this.#bytes += at - this.#at;
    this.#at = at;
    return true;
  }

  #builder(i: number): VectorBuilder {
    return (this.#builders[i] ??= new VectorBuilder(this.#columns[i]!.type, 256));
  }

  #appendText(i: number): void {
    const end = this.#ends[i]!;
    if (end < 0) return this.#builder(i).appendNull();
    const source = this.#sources[i]!;
    const start = this.#starts[i]!;
    const { type } = this.#columns[i]!;
    if (type === 'string') return this.#builder(i).appendText(source, start, end);
    if (type === 'integer') {
      const value = shortInteger(source, start, end);
      if (value !== null) return this.#builder(i).appendInteger(value);
    } else if (type === 'number') {
      const value = shortDecimal(source, start, end);
      if (value !== null) return this.#builder(i).appendNumber(value);
    } else if (type === 'boolean') {
      const value = plainBoolean(source, start, end);
      if (value !== null) return this.#builder(i).appendBoolean(value);
    }
    this.#appendValue(i, source.subarray(start, end), 0);
  }

  #appendValue(i: number, bytes: Buffer | null, format: number): void {
    const { type, name } = this.#columns[i]!;
    const builder = this.#builder(i);
    try {
      const oid = format === 1 && bytes !== null ? parameterOid(type, bytes.length) : 0;
      const value = parameterValue(bytes, format, oid, type, i + 1);
      if (value === null) return builder.appendNull();
      if (type === 'vector') return builder.appendVector(this.#vector(i, String(value)));
      if (type === 'json') JSON.parse(String(value));
      builder.append(type === 'number' ? Number(value) : value);
    } catch (error) {
      if (error instanceof SyntaxError)
        throw new ServiceError('REL_TYPE_MISMATCH', `${this.#place}, column ${JSON.stringify(name)}: the text is no JSON`);
      if (!(error instanceof ServiceError)) throw error;
      const detail = error.message.replace(/^\$\d+ /, '');
      throw new ServiceError(error.code, `${this.#place}, column ${JSON.stringify(name)}: ${detail}`, error.facts);
    }
  }

  #vector(i: number, text: string): Float32Array {
    const items: unknown = JSON.parse(text);
    const values = Array.isArray(items) ? Float32Array.from(items as number[]) : new Float32Array(0);
    if (values.length === 0 || values.length > limits.vectorDims || !values.every(Number.isFinite))
      throw new ServiceError('REL_TYPE_MISMATCH', 'is no vector');
    this.#dims[i] ||= values.length;
    if (this.#dims[i] !== values.length)
      throw new ServiceError('REL_TYPE_MISMATCH', `has ${values.length} dimensions instead of ${this.#dims[i]}`);
    return values;
  }
}

/** Behind a backslash, the bytes that a letter stands for. */
const letters: ReadonlyMap<number, number> = new Map([
  [0x62, 8],
  [0x66, 12],
  [0x6e, 10],
  [0x72, 13],
  [0x74, 9],
  [0x76, 11],
]);

/** Null where it is written in another way, or longer. */
function shortInteger(bytes: Buffer, start: number, end: number): number | null {
  const isNegative = bytes[start] === 0x2d;
  const from = isNegative ? start + 1 : start;
  if (end === from || end - from > 15) return null;
  let value = 0;
  for (let i = from; i < end; i++) {
    const digit = bytes[i]! - 0x30;
    if (digit < 0 || digit > 9) return null;
    value = value * 10 + digit;
  }
  return isNegative ? -value : value;
}

/** Digits and a point: a whole number below 2^53 over a power of ten is rounded once, as the text is. Null where it is written otherwise. */
function shortDecimal(bytes: Buffer, start: number, end: number): number | null {
  const isNegative = bytes[start] === 0x2d;
  const from = isNegative ? start + 1 : start;
  if (end === from || end - from > 16) return null;
  let value = 0;
  let point = -1;
  for (let i = from; i < end; i++) {
    const byte = bytes[i]!;
    const digit = byte - 0x30;
    if (digit >= 0 && digit <= 9) value = value * 10 + digit;
    else if (byte === 0x2e && point < 0) point = i;
    else return null;
  }
  const digits = end - from - (point < 0 ? 0 : 1);
  if (digits === 0 || digits > 15) return null;
  const whole = point < 0 ? value : value / powersOfTen[end - point - 1]!;
  return isNegative ? -whole : whole;
}

const powersOfTen = Float64Array.from({ length: 16 }, (_, i) => Number(`1e${i}`));

function plainBoolean(bytes: Buffer, start: number, end: number): boolean | null {
  const size = end - start;
  const first = bytes[start];
  if (first === 0x74 && (size === 1 || (size === 4 && bytes.toString('latin1', start, end) === 'true'))) return true;
  if (first === 0x66 && (size === 1 || (size === 5 && bytes.toString('latin1', start, end) === 'false'))) return false;
  return null;
}
