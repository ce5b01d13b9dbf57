/** JSON tokens into one growing buffer: the short ASCII text that rows are made of never becomes a string. */
import { putI64, putInteger, putNumber } from './cell-text.ts';

export class ByteWriter {
  length = 0;
  #bytes: Buffer;

  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafeSlow(Math.max(64, capacity));
  }

  /** What was written since the last call; the writer starts anew. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.length);
    this.#bytes = Buffer.allocUnsafeSlow(this.#bytes.length);
    this.length = 0;
    return taken;
  }

  get capacity(): number {
    return this.#bytes.length;
  }

  latin1(): string {
    return this.#bytes.toString('latin1', 0, this.length);
  }

  /** A copy of what was written from `start` on. */
  copyFrom(start: number): Uint8Array {
    return new Uint8Array(this.#bytes.subarray(start, this.length));
  }

  byte(value: number): void {
    if (this.length === this.#bytes.length) this.#grow(1);
    this.#bytes[this.length++] = value;
  }

  raw(source: Uint8Array): void {
    this.copy(source, 0, source.length);
  }

  copy(source: Uint8Array, start: number, end: number): void {
    const size = end - start;
    this.#reserve(size);
    const bytes = this.#bytes;
    let at = this.length;
    if (size > 32) bytes.set(source.subarray(start, end), at);
    else for (let i = start; i < end; i++) bytes[at++] = source[i]!;
    this.length += size;
  }

  /** JSON text whose line breaks, white space wherever they stand bare, become spaces. */
  copyOnOneLine(source: Uint8Array, start: number, end: number): void {
    const from = this.length;
    this.copy(source, start, end);
    const bytes = this.#bytes;
    for (let i = from; i < this.length; i++) if (bytes[i] === 0x0a || bytes[i] === 0x0d) bytes[i] = 0x20;
  }

  /** UTF-8 bytes as a JSON string. */
  quoted(source: Uint8Array, start: number, end: number): void {
    this.#reserve((end - start) * 6 + 2);
    const bytes = this.#bytes;
    let at = this.length;
    bytes[at++] = 0x22;
    for (let i = start; i < end; i++) {
      const byte = source[i]!;
      const escape = escapeOf[byte]!;
      if (escape === 0) bytes[at++] = byte;
      else {
        bytes[at++] = 0x5c;
        bytes[at++] = escape;
        if (escape === 0x75) {
          bytes[at++] = 0x30;
          bytes[at++] = 0x30;
          bytes[at++] = hexDigits.charCodeAt(byte >> 4);
          bytes[at++] = hexDigits.charCodeAt(byte & 15);
        }
      }
    }
    bytes[at++] = 0x22;
    this.length = at;
  }

  string(value: string): void {
    for (let i = 0; i < value.length; i++) {
      if (value.charCodeAt(i) > 127 || escapeOf[value.charCodeAt(i)] !== 0) return this.#ascii(JSON.stringify(value));
    }
    this.byte(0x22);
    this.#ascii(value);
    this.byte(0x22);
  }

  /** A safe integer, in decimal. */
  integer(value: number): void {
    this.#reserve(numberBytes);
    this.length = putInteger(this.#bytes, this.length, value);
  }

  /** Two's complement i64 as its two halves. */
  i64(highHalf: number, lowHalf: number): void {
    this.#reserve(numberBytes);
    this.length = putI64(this.#bytes, this.length, highHalf, lowHalf);
  }

  /** The shortest text that reads back as this double; null for what JSON has no number for. */
  number(value: number): void {
    if (!Number.isFinite(value)) return this.#ascii('null');
    this.#reserve(numberBytes);
    this.length = putNumber(this.#bytes, this.length, value);
  }

  /** The shortest text of 7 to 9 digits that reads back as this 32-bit float. */
  float(value: number): void {
    if ((Number.isInteger(value) && Math.abs(value) < 0x100_0000) || !Number.isFinite(value)) return this.number(value);
    for (let precision = 7; precision < 9; precision++) {
      const short = Number(value.toPrecision(precision));
      if (Math.fround(short) === value) return this.number(short);
    }
    this.number(Number(value.toPrecision(9)));
  }

  #ascii(text: string): void {
    // JSON.stringify leaves characters above ASCII as they are.
    this.#reserve(text.length * 3);
    const bytes = this.#bytes;
    const start = this.length;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 127) {
        this.length = start + bytes.write(text, start, 'utf8');
        return;
      }
      bytes[start + i] = code;
    }
    this.length = start + text.length;
  }

  #reserve(size: number): void {
    if (this.length + size > this.#bytes.length) this.#grow(size);
  }

  #grow(size: number): void {
    const bytes = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.length + size));
    bytes.set(this.#bytes.subarray(0, this.length));
    this.#bytes = bytes;
  }
}

const hexDigits = '0123456789abcdef';
/** The longest number: a sign, 17 digits, a point and an exponent. */
const numberBytes = 32;

/** What follows the backslash for a byte that JSON wants escaped (`u`: four hexadecimal digits); 0: written as it is. */
const escapeOf = new Uint8Array(256);
escapeOf.fill(0x75, 0, 0x20);
for (const [byte, letter] of [
  ['"', '"'],
  ['\\', '\\'],
  ['\b', 'b'],
  ['\f', 'f'],
  ['\n', 'n'],
  ['\r', 'r'],
  ['\t', 't'],
] as const) {
  escapeOf[byte.charCodeAt(0)] = letter.charCodeAt(0);
}
