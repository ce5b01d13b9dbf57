/** JSON tokens into one growing buffer: the short ASCII text that rows are made of never becomes a string. */
import { putI64, putNumber } from './cell-text.ts';
import { viewOf } from './short-copies.ts';

/**
 * Texts that are written often, as doubles: eight bytes at a time, zeros behind each. Names of columns are a third of an
 * answer. A double keeps the bits of any UTF-8: a NaN begins with bytes of which none may follow the other there.
 */
export class FixedTexts {
  /** Text i is words[starts[i] .. starts[i + 1]], of which it takes sizes[i] bytes. */
  readonly words: Float64Array;
  readonly starts: Int32Array;
  readonly sizes: Int32Array;
  /** Room for these texts, each with the number behind it. */
  readonly bytes: number;

  constructor(texts: readonly string[]) {
    const encoded = texts.map((text) => Buffer.from(text));
    this.starts = new Int32Array(texts.length + 1);
    this.sizes = Int32Array.from(encoded, ({ length }) => length);
    encoded.forEach(({ length }, i) => {
      this.starts[i + 1] = this.starts[i]! + Math.ceil(length / 8);
    });
    this.words = new Float64Array(this.starts[texts.length]!);
    this.bytes = this.words.byteLength;
    const padded = new Uint8Array(8);
    const view = viewOf(padded);
    encoded.forEach((text, i) => {
      for (let at = 0; at < text.length; at += 8) {
        padded.fill(0).set(text.subarray(at, at + 8));
        this.words[this.starts[i]! + at / 8] = view.getFloat64(0, true);
      }
    });
  }
}

/** The number of fewest digits that is this one among floats of 32 bits. */
export function shortFloat(value: number): number {
  if ((Number.isInteger(value) && Math.abs(value) < 0x100_0000) || !Number.isFinite(value)) return value;
  for (let precision = 7; precision < 9; precision++) {
    const short = Number(value.toPrecision(precision));
    if (Math.fround(short) === value) return short;
  }
  return Number(value.toPrecision(9));
}

/**
 * A caller that writes to `bytes` itself must reserve the room first, read `bytes` and `view` again after that, and set `length`.
 */
export class ByteWriter {
  length = 0;
  bytes: Buffer;
  view: DataView;
  /** Text of the i64 that was written last. */
  readonly #last = new Uint8Array(lastBytes);
  readonly #lastWords = viewOf(this.#last);
  #lastSize = 1;
  #lastHigh = 0;
  #lastLow = 0;

  constructor(capacity: number) {
    this.bytes = Buffer.allocUnsafeSlow(Math.max(64, capacity));
    this.view = viewOf(this.bytes);
    this.#last[0] = 0x30;
  }

  /** Takes the bytes written since the last call; the writer starts anew. */
  take(): Buffer {
    const taken = this.bytes.subarray(0, this.length);
    this.bytes = Buffer.allocUnsafeSlow(this.bytes.length);
    this.view = viewOf(this.bytes);
    this.length = 0;
    return taken;
  }

  byte(value: number): void {
    if (this.length === this.bytes.length) this.#grow(1);
    this.bytes[this.length++] = value;
  }

  copy(source: Uint8Array, start: number, end: number): void {
    const size = end - start;
    this.reserve(size);
    const { bytes } = this;
    let at = this.length;
    if (size > 32) bytes.set(source.subarray(start, end), at);
    else for (let i = start; i < end; i++) bytes[at++] = source[i]!;
    this.length += size;
  }

  /** JSON text whose line breaks, white space wherever they stand bare, become spaces. */
  copyOnOneLine(source: Uint8Array, start: number, end: number): void {
    const from = this.length;
    this.copy(source, start, end);
    const { bytes } = this;
    for (let i = from; i < this.length; i++) if (bytes[i] === 0x0a || bytes[i] === 0x0d) bytes[i] = 0x20;
  }

  /** Any text, in UTF-8. */
  string(text: string): void {
    this.reserve(text.length * 3);
    const { bytes } = this;
    let at = this.length;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 127) {
        this.length += bytes.write(text, this.length, 'utf8');
        return;
      }
      bytes[at++] = code;
    }
    this.length = at;
  }

  /** Two's complement i64 as its two halves, in room for `lastBytes`; the place after it. */
  putI64(at: number, highHalf: number, lowHalf: number): number {
    const { view } = this;
    if (highHalf === foreverHigh && lowHalf === foreverLow) {
      for (let k = 0; k < foreverText.words.length; k++) view.setFloat64(at + k * 8, foreverText.words[k]!, true);
      return at + foreverText.sizes[0]!;
    }
    // An instant stands in a row twice more often than not: as that of the row and as that of the belief.
    if (highHalf !== this.#lastHigh || lowHalf !== this.#lastLow) {
      // Instants of neighbours follow each other by one nanosecond.
      const final = this.#last[this.#lastSize - 1]!;
      const next = highHalf === this.#lastHigh && lowHalf === this.#lastLow + 1 && highHalf >= 0 && final !== nine;
      if (next) this.#last[this.#lastSize - 1] = final + 1;
      else this.#lastSize = putI64(this.#last, 0, highHalf, lowHalf);
      this.#lastHigh = highHalf;
      this.#lastLow = lowHalf;
    }
    const last = this.#lastWords;
    for (let k = 0; k < lastBytes; k += 8) view.setFloat64(at + k, last.getFloat64(k, true), true);
    return at + this.#lastSize;
  }

  /** The shortest text of 7 to 9 digits that reads back as this 32-bit float; null for what JSON has no number for. */
  float(value: number): void {
    this.#number(shortFloat(value));
  }

  #number(value: number): void {
    if (!Number.isFinite(value)) return this.string('null');
    this.reserve(numberBytes);
    this.length = putNumber(this.bytes, this.length, value);
  }

  reserve(size: number): void {
    if (this.length + size > this.bytes.length) this.#grow(size);
  }

  #grow(size: number): void {
    const bytes = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.length + size));
    bytes.set(this.bytes.subarray(0, this.length));
    this.bytes = bytes;
    this.view = viewOf(bytes);
  }
}

/** A byte of a JSON string that does not stand there as it is; the place after it. Takes six bytes at most. */
export function putEscaped(bytes: Uint8Array, start: number, byte: number): number {
  const escape = escapeOf[byte]!;
  let at = start;
  bytes[at++] = 0x5c;
  bytes[at++] = escape;
  if (escape !== 0x75) return at;
  bytes[at++] = 0x30;
  bytes[at++] = 0x30;
  bytes[at++] = hexDigits.charCodeAt(byte >> 4);
  bytes[at++] = hexDigits.charCodeAt(byte & 15);
  return at;
}

const hexDigits = '0123456789abcdef';
const nine = 0x39;
/** The longest i64, in words. */
const lastBytes = 24;
/** The longest number: a sign, 17 digits, a point and an exponent. */
export const numberBytes = 32;
/** The greatest i64, the open end of most versions. */
const foreverHigh = 0x7fff_ffff;
const foreverLow = 0xffff_ffff;
const foreverText = new FixedTexts(['9223372036854775807']);

/**
 * The letter after the backslash of a byte that JSON escapes (`u`: four hexadecimal digits follow); 0: the byte is written as it
 * is.
 */
export const escapeOf = new Uint8Array(256);
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
