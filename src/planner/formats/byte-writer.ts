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

  constructor(fixedTexts: readonly string[]) {
    const encodedTexts = fixedTexts.map((text) => Buffer.from(text));
    this.starts = new Int32Array(fixedTexts.length + 1);
    this.sizes = Int32Array.from(encodedTexts, ({ length }) => length);
    encodedTexts.forEach(({ length }, i) => {
      this.starts[i + 1] = this.starts[i]! + Math.ceil(length / 8);
    });
    this.words = new Float64Array(this.starts[fixedTexts.length]!);
    this.bytes = this.words.byteLength;
    const paddedWord = new Uint8Array(8);
    const paddedView = viewOf(paddedWord);
    encodedTexts.forEach((text, i) => {
      for (let textOffset = 0; textOffset < text.length; textOffset += 8) {
        paddedWord.fill(0).set(text.subarray(textOffset, textOffset + 8));
        this.words[this.starts[i]! + textOffset / 8] = paddedView.getFloat64(0, true);
      }
    });
  }
}

/** The number of fewest digits that is this one among floats of 32 bits. */
export function shortFloat(floatValue: number): number {
  if ((Number.isInteger(floatValue) && Math.abs(floatValue) < 0x100_0000) || !Number.isFinite(floatValue)) return floatValue;
  for (let floatPrecision = 7; floatPrecision < 9; floatPrecision++) {
    const shortenedFloat = Number(floatValue.toPrecision(floatPrecision));
    if (Math.fround(shortenedFloat) === floatValue) return shortenedFloat;
  }
  return Number(floatValue.toPrecision(9));
}

/**
 * A caller that writes to `bytes` itself must reserve the room first, read `bytes` and `view` again after that, and set `length`.
 */
export class ByteWriter {
  length = 0;
  bytes: Buffer;
  view: DataView;
  /** Text of the i64 that was written last. */
  readonly #lastInt64Text = new Uint8Array(lastInt64Bytes);
  readonly #lastInt64Words = viewOf(this.#lastInt64Text);
  #lastInt64Size = 1;
  #lastHighHalf = 0;
  #lastLowHalf = 0;

  constructor(capacity: number) {
    this.bytes = Buffer.allocUnsafeSlow(Math.max(64, capacity));
    this.view = viewOf(this.bytes);
    this.#lastInt64Text[0] = 0x30;
  }

  /** Takes the bytes written since the last call; the writer starts anew. */
  take(): Buffer {
    const takenBytes = this.bytes.subarray(0, this.length);
    this.bytes = Buffer.allocUnsafeSlow(this.bytes.length);
    this.view = viewOf(this.bytes);
    this.length = 0;
    return takenBytes;
  }

  byte(value: number): void {
    if (this.length === this.bytes.length) this.#growBuffer(1);
    this.bytes[this.length++] = value;
  }

  copy(source: Uint8Array, start: number, end: number): void {
    const copySize = end - start;
    this.reserve(copySize);
    const { bytes } = this;
    let writeOffset = this.length;
    if (copySize > 32) bytes.set(source.subarray(start, end), writeOffset);
    else for (let i = start; i < end; i++) bytes[writeOffset++] = source[i]!;
    this.length += copySize;
  }

  /** JSON text whose line breaks, white space wherever they stand bare, become spaces. */
  copyOnOneLine(source: Uint8Array, start: number, end: number): void {
    const copyStart = this.length;
    this.copy(source, start, end);
    const { bytes } = this;
    for (let i = copyStart; i < this.length; i++) if (bytes[i] === 0x0a || bytes[i] === 0x0d) bytes[i] = 0x20;
  }

  /** Any text, in UTF-8. */
  string(text: string): void {
    this.reserve(text.length * 3);
    const { bytes } = this;
    let writeOffset = this.length;
    for (let i = 0; i < text.length; i++) {
      const characterCode = text.charCodeAt(i);
      if (characterCode > 127) {
        this.length += bytes.write(text, this.length, 'utf8');
        return;
      }
      bytes[writeOffset++] = characterCode;
    }
    this.length = writeOffset;
  }

  /** Two's complement i64 as its two halves, in room for `lastInt64Bytes`; the place after it. */
  putI64(writeOffset: number, highHalf: number, lowHalf: number): number {
    const { view } = this;
    if (highHalf === foreverHighHalf && lowHalf === foreverLowHalf) {
      for (let k = 0; k < foreverText.words.length; k++) view.setFloat64(writeOffset + k * 8, foreverText.words[k]!, true);
      return writeOffset + foreverText.sizes[0]!;
    }
    // An instant stands in a row twice more often than not: as that of the row and as that of the belief.
    if (highHalf !== this.#lastHighHalf || lowHalf !== this.#lastLowHalf) {
      // Instants of neighbours follow each other by one nanosecond.
      const finalDigit = this.#lastInt64Text[this.#lastInt64Size - 1]!;
      const isNextInteger =
        highHalf === this.#lastHighHalf && lowHalf === this.#lastLowHalf + 1 && highHalf >= 0 && finalDigit !== digitNine;
      if (isNextInteger) this.#lastInt64Text[this.#lastInt64Size - 1] = finalDigit + 1;
      else this.#lastInt64Size = putI64(this.#lastInt64Text, 0, highHalf, lowHalf);
      this.#lastHighHalf = highHalf;
      this.#lastLowHalf = lowHalf;
    }
    const lastWords = this.#lastInt64Words;
    for (let k = 0; k < lastInt64Bytes; k += 8) view.setFloat64(writeOffset + k, lastWords.getFloat64(k, true), true);
    return writeOffset + this.#lastInt64Size;
  }

  /** The shortest text of 7 to 9 digits that reads back as this 32-bit float; null for what JSON has no number for. */
  float(value: number): void {
    this.#writeNumber(shortFloat(value));
  }

  #writeNumber(value: number): void {
    if (!Number.isFinite(value)) return this.string('null');
    this.reserve(numberBytes);
    this.length = putNumber(this.bytes, this.length, value);
  }

  reserve(size: number): void {
    if (this.length + size > this.bytes.length) this.#growBuffer(size);
  }

  #growBuffer(size: number): void {
    const grownBuffer = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.length + size));
    grownBuffer.set(this.bytes.subarray(0, this.length));
    this.bytes = grownBuffer;
    this.view = viewOf(grownBuffer);
  }
}

/** A byte of a JSON string that does not stand there as it is; the place after it. Takes six bytes at most. */
export function putEscaped(bytes: Uint8Array, start: number, byte: number): number {
  const escapeLetter = escapeOf[byte]!;
  let escapeOffset = start;
  bytes[escapeOffset++] = 0x5c;
  bytes[escapeOffset++] = escapeLetter;
  if (escapeLetter !== 0x75) return escapeOffset;
  bytes[escapeOffset++] = 0x30;
  bytes[escapeOffset++] = 0x30;
  bytes[escapeOffset++] = escapeHexDigits.charCodeAt(byte >> 4);
  bytes[escapeOffset++] = escapeHexDigits.charCodeAt(byte & 15);
  return escapeOffset;
}

const escapeHexDigits = '0123456789abcdef';
const digitNine = 0x39;
/** The longest i64, in words. */
const lastInt64Bytes = 24;
/** The longest number: a sign, 17 digits, a point and an exponent. */
export const numberBytes = 32;
/** The greatest i64, the open end of most versions. */
const foreverHighHalf = 0x7fff_ffff;
const foreverLowHalf = 0xffff_ffff;
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
