/** JSON tokens and CSV fields into one growing buffer: the short ASCII text that rows are made of never becomes a string. */

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

  /** UTF-8 bytes as a CSV field, quoted where it would end early or be taken for NULL, a number or a boolean. */
  field(source: Uint8Array, start: number, end: number): void {
    const size = end - start;
    this.#reserve(size);
    const bytes = this.#bytes;
    let at = this.length;
    if (size === 0 || numberStart[source[start]!] === 1) return this.quotedField(source, start, end);
    for (let i = start; i < end; i++) {
      const byte = source[i]!;
      if (fieldEnd[byte] === 1) return this.quotedField(source, start, end);
      bytes[at++] = byte;
    }
    if ((size === 4 || size === 5) && isBoolean(source, start, end)) return this.quotedField(source, start, end);
    this.length = at;
  }

  /** UTF-8 bytes as a CSV field in quotes, quotes within doubled. */
  quotedField(source: Uint8Array, start: number, end: number): void {
    this.#reserve((end - start) * 2 + 2);
    const bytes = this.#bytes;
    let at = this.length;
    bytes[at++] = 0x22;
    for (let i = start; i < end; i++) {
      const byte = source[i]!;
      bytes[at++] = byte;
      if (byte === 0x22) bytes[at++] = byte;
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
    this.#reserve(20);
    let rest = value;
    if (rest < 0) {
      this.#bytes[this.length++] = 0x2d;
      rest = -rest;
    }
    this.#digits(rest, 1);
  }

  /** Two's complement i64 as its two halves: a double does not hold it and a bigint would be an object. */
  i64(highHalf: number, lowHalf: number): void {
    this.#reserve(21);
    let upper = highHalf >>> 0;
    let lower = lowHalf;
    if (highHalf < 0) {
      this.#bytes[this.length++] = 0x2d;
      lower = (~lower + 1) >>> 0;
      upper = (~upper + (lower === 0 ? 1 : 0)) >>> 0;
    }
    if (upper < 0x20_0000) return this.#digits(upper * 0x1_0000_0000 + lower, 1);
    // Long division by 10^9 in limbs of 16 bits: every step is exact in a double.
    const high = Math.floor(upper / 1e9);
    const part = (upper - high * 1e9) * 0x1_0000 + (lower >>> 16);
    const middle = Math.floor(part / 1e9);
    const last = (part - middle * 1e9) * 0x1_0000 + (lower & 0xffff);
    const digit = Math.floor(last / 1e9);
    this.#digits((high * 0x1_0000 + middle) * 0x1_0000 + digit, 1);
    this.#digits(last - digit * 1e9, 9);
  }

  /** The shortest text that reads back as this double. */
  number(value: number): void {
    if (Number.isInteger(value) && value < 1e15 && value > -1e15) {
      if (value === 0 && Object.is(value, -0)) return this.#ascii('-0');
      return this.integer(value);
    }
    // Prices and the like: a decimal of at most 15 digits that gives the double back is its shortest text.
    const hundredths = Math.round(value * 100);
    if (hundredths / 100 === value && hundredths < 1e15 && hundredths > -1e15) return this.#hundredths(hundredths);
    // Beyond 2^53 the shortest digits need not be those of the double: bare, a reader would take them for an integer's.
    const wide = Math.abs(value) > Number.MAX_SAFE_INTEGER;
    this.#ascii(Number.isFinite(value) ? (wide ? value.toExponential() : String(value)) : 'null');
  }

  #hundredths(value: number): void {
    this.#reserve(20);
    let rest = value;
    if (rest < 0) {
      this.#bytes[this.length++] = 0x2d;
      rest = -rest;
    }
    const units = Math.floor(rest / 100);
    this.#digits(units, 1);
    const fraction = rest - units * 100;
    this.#bytes[this.length++] = 0x2e;
    if (fraction % 10 === 0) this.#digits(fraction / 10, 1);
    else this.#digits(fraction, 2);
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

  /** A safe integer that is not negative, two digits at a time, zeros in front up to `atLeast` digits. */
  #digits(value: number, atLeast: number): void {
    let count = atLeast;
    while (count < 16 && value >= powersOfTen[count]!) count++;
    const bytes = this.#bytes;
    const stop = this.length;
    let at = stop + count;
    this.length = at;
    let rest = value;
    if (rest >= 1e8) {
      const high = Math.floor(rest / 1e8);
      let low = (rest - high * 1e8) | 0;
      rest = high;
      for (let pair = 0; pair < 4; pair++) {
        const next = (low / 100) | 0;
        const digits = (low - next * 100) << 1;
        bytes[--at] = digitPairs[digits + 1]!;
        bytes[--at] = digitPairs[digits]!;
        low = next;
      }
    }
    let small = rest | 0;
    while (at - stop > 1) {
      const next = (small / 100) | 0;
      const digits = (small - next * 100) << 1;
      bytes[--at] = digitPairs[digits + 1]!;
      bytes[--at] = digitPairs[digits]!;
      small = next;
    }
    if (at > stop) bytes[--at] = 0x30 + small;
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
const powersOfTen = Float64Array.from({ length: 17 }, (_, i) => 10 ** i);

/** 00, 01 … 99. */
const digitPairs = Uint8Array.from({ length: 200 }, (_, i) => 0x30 + ((i & 1) === 0 ? Math.floor(i / 20) : (i >> 1) % 10));

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

/** Bytes that a bare CSV field can't hold, and those that start what a reader may take for a number. */
const fieldEnd = new Uint8Array(256);
for (const byte of [0x0a, 0x0d, 0x22, 0x2c]) fieldEnd[byte] = 1;
const numberStart = new Uint8Array(256);
numberStart.fill(1, 0x30, 0x3a);
for (const sign of '+-.') numberStart[sign.charCodeAt(0)] = 1;

/** `true` or `false`, in letters of any case. */
function isBoolean(source: Uint8Array, start: number, end: number): boolean {
  const word = end - start === 4 ? 'true' : 'false';
  for (let i = start; i < end; i++) if ((source[i]! | 0x20) !== word.charCodeAt(i - start)) return false;
  return true;
}
