/** JSON tokens into one growing buffer: the short ASCII text that rows are made of never becomes a string. */
import { putI64, putInteger, putNumber } from './cell-text.ts';

/** A text that is written often. */
export class FixedText {
  readonly bytes: Uint8Array;
  /** The bytes as doubles, zeros behind them; none where a byte is not ASCII: those could be a NaN, which keeps no bits. */
  readonly words: Float64Array;

  constructor(text: string) {
    this.bytes = Buffer.from(text);
    const padded = new Uint8Array(this.bytes.every((byte) => byte < 0x80) ? Math.ceil(this.bytes.length / 8) * 8 : 0);
    if (padded.length > 0) padded.set(this.bytes);
    const view = viewOf(padded);
    this.words = Float64Array.from({ length: padded.length / 8 }, (_, i) => view.getFloat64(i * 8, true));
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

export class ByteWriter {
  length = 0;
  #bytes: Buffer;
  #view: DataView;
  /** Text of the i64 that was written last. */
  readonly #last = new Uint8Array(numberBytes);
  #lastSize = 1;
  #lastHigh = 0;
  #lastLow = 0;

  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafeSlow(Math.max(64, capacity));
    this.#view = viewOf(this.#bytes);
    this.#last[0] = 0x30;
  }

  /** What was written since the last call; the writer starts anew. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.length);
    this.#bytes = Buffer.allocUnsafeSlow(this.#bytes.length);
    this.#view = viewOf(this.#bytes);
    this.length = 0;
    return taken;
  }

  get capacity(): number {
    return this.#bytes.length;
  }

  latin1(): string {
    return this.#bytes.toString('latin1', 0, this.length);
  }

  byte(value: number): void {
    if (this.length === this.#bytes.length) this.#grow(1);
    this.#bytes[this.length++] = value;
  }

  /** Eight bytes at a time: names of columns are a third of an answer. */
  fixed(text: FixedText): void {
    const { words, bytes } = text;
    this.#reserve(words.length * 8);
    const at = this.length;
    for (let i = 0; i < words.length; i++) this.#view.setFloat64(at + i * 8, words[i]!, true);
    // What does not come in words of ASCII follows byte by byte.
    if (words.length === 0) this.raw(bytes);
    else this.length = at + bytes.length;
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
    if (highHalf === foreverHigh && lowHalf === foreverLow) return this.raw(foreverText);
    this.#reserve(numberBytes);
    const at = this.length;
    // An instant stands in a row twice more often than not: as that of the row and as that of the belief.
    if (highHalf !== this.#lastHigh || lowHalf !== this.#lastLow) {
      this.#lastSize = putI64(this.#last, 0, highHalf, lowHalf);
      this.#lastHigh = highHalf;
      this.#lastLow = lowHalf;
    }
    const size = this.#lastSize;
    const bytes = this.#bytes;
    const last = this.#last;
    for (let i = 0; i < size; i++) bytes[at + i] = last[i]!;
    this.length = at + size;
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
    this.#view = viewOf(bytes);
  }
}

const hexDigits = '0123456789abcdef';
/** The longest number: a sign, 17 digits, a point and an exponent. */
const numberBytes = 32;
/** The greatest i64: what has no end, as most versions have none. */
const foreverHigh = 0x7fff_ffff;
const foreverLow = 0xffff_ffff;
const foreverText = Buffer.from('9223372036854775807');

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
