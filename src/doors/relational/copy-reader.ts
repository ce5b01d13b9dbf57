/** Splits the bytes of COPY FROM STDIN, cut anywhere, into rows and fields of text, CSV or binary. */
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../../errors.ts';
import type { RowBatch } from '../../log/values/columns.ts';
import { CopyBatch, type CopyColumn } from './copy-batch.ts';
import type { CopyFormat } from './copy-statement.ts';

const rowBytesMax = 16 << 20;
const signature = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');

export class CopyReader {
  readonly #format: CopyFormat;
  readonly #marks: Marks;
  /** The first `#length` bytes of it are data; the row that is being read begins at `#at`. */
  #window: Buffer = Buffer.alloc(0);
  #length = 0;
  #at = 0;
  #isEnded = false;
  #header: boolean;
  readonly #batch: CopyBatch;
  /** Start of each field of the current row; fields that need decoding have a form. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #forms: Form[] = [];
  #fields = 0;
  #scan: Scan = beginning;

  constructor(format: CopyFormat, columns: readonly CopyColumn[]) {
    this.#format = format;
    this.#batch = new CopyBatch(columns);
    this.#marks = marksOf(format);
    this.#header = format.header || format.format === 'binary';
  }

  /** The bytes are the caller's again once `batch` was null. */
  push(bytes: Buffer): void {
    const held = this.#length - this.#at;
    if (held === 0) {
      this.#window = bytes;
      this.#length = bytes.length;
      this.#at = 0;
      return;
    }
    // A row that grows is moved as often as its window doubles.
    if (this.#length + bytes.length > this.#window.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(held + bytes.length, this.#at === 0 ? 2 * held : 0));
      this.#window.copy(larger, 0, this.#at, this.#length);
      this.#window = larger;
      this.#length = held;
      this.#at = 0;
    }
    bytes.copy(this.#window, this.#length);
    this.#length += bytes.length;
  }

  /** The next full batch, and at the end the rest; null where more bytes are needed. Throws for a malformed row. */
  batch(isLast: boolean): RowBatch | null {
    if (isLast && !this.#isEnded && this.#format.format !== 'binary' && this.#at < this.#length) {
      if (this.#window[this.#length - 1] !== 0x0a) this.push(Buffer.from('\n'));
    }
    while (!this.#isEnded && this.#row()) if (this.#batch.isFull) return this.#batch.take();
    if (!isLast) {
      this.#checkSize(this.#length - this.#at);
      if (this.#at === 0 && this.#window.length > this.#length) return null;
      // The bytes may be the connection's, which goes on to use them.
      this.#window = Buffer.from(this.#window.subarray(this.#at, this.#length));
      this.#length = this.#window.length;
      this.#at = 0;
      return null;
    }
    if (this.#format.format === 'binary' && !this.#isEnded)
      throw new ServiceError('REL_INVALID', 'the binary data ends before its trailer', { reason: 'copy-form' });
    if (!this.#isEnded && this.#at < this.#length)
      throw new ServiceError('REL_INVALID', `${this.#batch.rowName}: the data ends within quotes`, { reason: 'copy-form' });
    return this.#batch.isEmpty ? null : this.#batch.take();
  }

  /** False: more bytes are needed. */
  #row(): boolean {
    if (this.#format.format === 'binary') return this.#header ? this.#binaryHeader() : this.#binaryRow();
    const from = this.#at;
    const window = this.#window;
    const end = this.#format.format === 'csv' ? this.#csvFields() : this.#textFields();
    if (end < 0) return false;
    const { high } = this.#scan;
    this.#scan = beginning;
    // The line that ends the data of clients that speak as files do.
    if (this.#fields === 1 && this.#ends[0] === 2 && window[from] === 0x5c && window[from + 1] === 0x2e) {
      this.#isEnded = true;
      this.#at = this.#length;
      return true;
    }
    if (this.#header) this.#header = false;
    else {
      this.#checkSize(end - from);
      if (high > 0x7f && !isUtf8(window.subarray(from, end)))
        throw new ServiceError('REL_INVALID', `${this.#batch.rowName} is not UTF-8`, { reason: 'not-utf8' });
      this.#checkCount(this.#fields);
      for (let i = 0; i < this.#batch.columnCount; i++) this.#appendText(i);
      this.#batch.endRow(end - from);
    }
    this.#at = end;
    this.#fields = this.#starts.length = this.#ends.length = this.#forms.length = 0;
    return true;
  }

  #checkSize(bytes: number): void {
    if (bytes > rowBytesMax)
      throw new ServiceError('REL_TOO_LARGE', `${this.#batch.rowName}: a row is over ${rowBytesMax} bytes`);
  }

  #checkCount(fields: number): void {
    if (fields === this.#batch.columnCount) return;
    throw new ServiceError('REL_INVALID', `${this.#batch.rowName} has ${fields} fields for ${this.#batch.columnCount} columns`, {
      reason: 'copy-form',
    });
  }

  /** Fields without a column are counted only. */
  #field(start: number, end: number, form: Form): void {
    if (this.#fields++ >= this.#batch.columnCount) return;
    this.#starts.push(start);
    this.#ends.push(end);
    this.#forms.push(form);
  }

  #isNull(start: number, end: number): boolean {
    const { nullText: text } = this.#marks;
    return end - start === text.length && this.#window.compare(text, 0, text.length, start, end) === 0;
  }

  /** Fields between delimiters, with escapes by backslashes. Where the line ends; below 0: it is not whole, and is gone on with. */
  #textFields(): number {
    const window = this.#window;
    const length = this.#length;
    const { delimiter } = this.#marks;
    const row = this.#at;
    let { form, high } = this.#scan;
    let start = row + this.#scan.start;
    let i = row + this.#scan.next;
    for (; i < length; i++) {
      const byte = window[i]!;
      high |= byte;
      if (byte === 0x5c) {
        if (i + 1 === length) break;
        form = forms.marked;
        high |= window[++i]!;
        continue;
      }
      if (byte !== delimiter && byte !== 0x0a) continue;
      const isEnd = byte === 0x0a;
      const hasReturn = isEnd && i > start && window[i - 1] === 0x0d && !(form === forms.marked && window[i - 2] === 0x5c);
      this.#field(start - row, (hasReturn ? i - 1 : i) - row, form);
      form = forms.plain;
      start = i + 1;
      if (isEnd) {
        this.#scan = { ...beginning, high };
        return start;
      }
    }
    this.#scan = { next: i - row, start: start - row, from: 0, form, isWithin: false, high };
    return -1;
  }

  /** Fields of RFC 4180, with marks of one's own. Where the record ends; below 0: it is not whole, and is gone on with. */
  #csvFields(): number {
    const window = this.#window;
    const length = this.#length;
    const { delimiter, quote, escape } = this.#marks;
    const row = this.#at;
    let { form, isWithin, high } = this.#scan;
    let start = row + this.#scan.start;
    /** Resumes behind the quotes of the field. */
    let from = row + this.#scan.from;
    let i = row + this.#scan.next;
    for (; i < length; i++) {
      const byte = window[i]!;
      high |= byte;
      if (isWithin) {
        if (byte === escape) {
          // The next byte decides what this one means.
          if (i + 1 === length) break;
          if (window[i + 1] === quote || window[i + 1] === escape) {
            form = forms.marked;
            i++;
            continue;
          }
        }
        if (byte === quote) {
          isWithin = false;
          from = i + 1;
        }
      } else if (byte === quote) {
        form = i === start ? forms.quoted : forms.marked;
        isWithin = true;
      } else if (byte === delimiter || byte === 0x0a) {
        const isEnd = byte === 0x0a;
        const end = isEnd && i > from && window[i - 1] === 0x0d ? i - 1 : i;
        this.#field(start - row, end - row, form === forms.quoted && from < end ? forms.marked : form);
        form = forms.plain;
        start = from = i + 1;
        if (isEnd) {
          this.#scan = { ...beginning, high };
          return start;
        }
      }
    }
    this.#scan = { next: i - row, start: start - row, from: from - row, form, isWithin, high };
    return -1;
  }

  #unescape(raw: Buffer): Buffer {
    const out = Buffer.allocUnsafe(raw.length);
    let to = 0;
    for (let i = 0; i < raw.length; i++) {
      if (raw[i] !== 0x5c || i + 1 === raw.length) {
        out[to++] = raw[i]!;
        continue;
      }
      const next = raw[++i]!;
      const isHex = next === 0x78;
      const base = isHex ? 16 : 8;
      let at = isHex ? i + 1 : i;
      let value = -1;
      for (const stop = Math.min(raw.length, at + (isHex ? 2 : 3)); at < stop && digits[raw[at]!]! < base; at++)
        value = Math.max(0, value) * base + digits[raw[at]!]!;
      if (value < 0) out[to++] = letters[next]!;
      else {
        out[to++] = value;
        i = at - 1;
      }
    }
    const text = out.subarray(0, to);
    if (!isUtf8(text)) throw new ServiceError('REL_INVALID', `${this.#batch.rowName} is not UTF-8`, { reason: 'not-utf8' });
    return text;
  }

  #unquote(raw: Buffer): Buffer {
    const out = Buffer.allocUnsafe(raw.length);
    const { quote, escape } = this.#marks;
    let to = 0;
    let isWithin = false;
    for (let i = 0; i < raw.length; i++) {
      const byte = raw[i]!;
      if (isWithin && byte === escape && (raw[i + 1] === quote || raw[i + 1] === escape)) out[to++] = raw[++i]!;
      else if (byte === quote) isWithin = !isWithin;
      else out[to++] = byte;
    }
    return out.subarray(0, to);
  }

  #binaryHeader(): boolean {
    const window = this.#window.subarray(this.#at, this.#length);
    if (window.length < 19) return false;
    if (!window.subarray(0, 11).equals(signature))
      throw new ServiceError('REL_INVALID', 'this is not binary COPY data', { reason: 'copy-form' });
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
    const length = this.#length;
    let at = this.#at;
    if (at + 2 > length) return false;
    const fields = window.readInt16BE(at);
    at += 2;
    if (fields === -1) {
      this.#isEnded = true;
      this.#at = length;
      return true;
    }
    this.#checkCount(fields);
    const starts: number[] = [];
    for (let i = 0; i < fields; i++) {
      if (at + 4 > length) return false;
      const size = window.readInt32BE(at);
      if (size < -1 || size > rowBytesMax)
        throw new ServiceError('REL_INVALID', `${this.#batch.rowName} has a field of ${size} bytes`, { reason: 'copy-form' });
      starts.push(at);
      at += 4 + Math.max(0, size);
    }
    if (at > length) return false;
    for (let i = 0; i < fields; i++) {
      const start = starts[i]!;
      const size = window.readInt32BE(start);
      const bytes = size < 0 ? null : window.subarray(start + 4, start + 4 + size);
      this.#batch.appendValue(i, bytes, 1);
    }
    this.#batch.endRow(at - this.#at);
    this.#at = at;
    return true;
  }

  #appendText(i: number): void {
    const form = this.#forms[i]!;
    const start = this.#at + this.#starts[i]!;
    const end = this.#at + this.#ends[i]!;
    if ((form === forms.plain || this.#marks.quote < 0) && this.#isNull(start, end)) return this.#batch.appendNull(i);
    if (form === forms.marked) {
      const raw = this.#window.subarray(start, end);
      const text = this.#marks.quote < 0 ? this.#unescape(raw) : this.#unquote(raw);
      this.#batch.appendText(i, text, 0, text.length);
    } else if (form === forms.quoted) this.#batch.appendText(i, this.#window, start + 1, end - 1);
    else this.#batch.appendText(i, this.#window, start, end);
  }
}

/** The bytes that a format gives a meaning. */
interface Marks {
  readonly nullText: Buffer;
  readonly delimiter: number;
  /** Below 0: the format has no quotes. */
  readonly quote: number;
  readonly escape: number;
}

function marksOf({ format, nullText, delimiter, quote, escape }: CopyFormat): Marks {
  return {
    nullText: Buffer.from(nullText),
    delimiter: delimiter.charCodeAt(0),
    quote: format === 'csv' ? quote.charCodeAt(0) : -1,
    escape: format === 'csv' ? escape.charCodeAt(0) : -1,
  };
}

/** A field as it is written: as it is, within quotes, or with marks that stand for something else. */
const forms = { plain: 0, quoted: 1, marked: 2 } as const;
type Form = (typeof forms)[keyof typeof forms];

/** How far a row has been looked at, from its begin. */
interface Scan {
  readonly next: number;
  /** Locates the incomplete field, and the bytes behind its quotes. */
  readonly start: number;
  readonly from: number;
  readonly form: Form;
  readonly isWithin: boolean;
  /** All bytes of the row, or'ed: most rows are pure ASCII. */
  readonly high: number;
}
const beginning: Scan = { next: 0, start: 0, from: 0, form: forms.plain, isWithin: false, high: 0 };

/** The byte that each letter behind a backslash stands for. */
const letters = Uint8Array.from({ length: 256 }, (_, byte) => byte);
for (const [i, letter] of Buffer.from('btnvfr').entries()) letters[letter] = 8 + i;

const digits = new Uint8Array(256).fill(255);
for (const text of ['0123456789abcdef', '0123456789ABCDEF'])
  for (const [i, digit] of Buffer.from(text).entries()) digits[digit] = i;
