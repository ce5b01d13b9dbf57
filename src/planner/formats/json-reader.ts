/**
 * Reads one JSON row at a time from UTF-8 bytes onto a `RowTape`, without an object per row. Invariants:
 *
 * - exactly RFC 8259, in valid UTF-8, without lone surrogates, duplicate names or more than 64 levels;
 * - integers are exact to i64 and numbers finite, or marked `huge`; nested values keep their text as given;
 * - a row whose bytes have not all arrived changes nothing: it is read again from its start;
 * - a sound row that breaks a rule is refused alone; only broken syntax is `malformed`.
 *
 * The next column is predicted from the last row's order of names and checked by comparing bytes.
 */
import { isUtf8 } from 'node:buffer';
import { I64_MAX, I64_MIN, limits } from '../../log/values/value.ts';
import { hexDigits, integerAt, latin1, simpleEscapes } from './json-tokens.ts';
import { cellKind, type RowTape } from './row-tape.ts';

/** Finds the column of a name. Negative: the name was refused, and the tape says why. */
export interface ColumnNames {
  /** Name of each slot as the inside of a JSON string. */
  readonly names: readonly Uint8Array[];
  slotOf(name: string): number;
}

export type RowStatus = 'row' | 'incomplete' | 'malformed';

const INCOMPLETE = -1;
const MALFORMED = -2;

const powersOfTen = Float64Array.from({ length: 23 }, (_, i) => Number(`1e${i}`));
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export class JsonReader {
  /** Just after the row that was read; where reading failed otherwise. */
  position = 0;
  /** Why the syntax is broken. */
  reason = '';
  readonly #columns: ColumnNames;
  readonly #tape: RowTape;
  /** Slot that followed slot s in the latest row that had s; entry 0 is for the start of a row. */
  readonly #following: number[] = [0];
  readonly #seenInRow: number[] = [];
  #rowStamp = 0;
  #bytes: Uint8Array = new Uint8Array(0);
  #end = 0;
  /** Bytes below this offset are known to be valid UTF-8. */
  #validUntil = 0;
  /** A line feed ends a row (NDJSON) instead of being white space. */
  #byLine = false;
  #escaped = false;
  #number = 0;
  #numberKind: number = cellKind.integer;

  constructor(columns: ColumnNames, tape: RowTape) {
    this.#columns = columns;
    this.#tape = tape;
  }

  /** Gives the bytes to read from. Must be called again whenever they move or grow. */
  open(bytes: Uint8Array, from: number, end: number, byLine: boolean): void {
    this.#bytes = bytes;
    this.#end = end;
    this.#byLine = byLine;
    // Checked once for all strings in it; the cut may lie inside a character, so up to the last ASCII byte.
    let last = end;
    while (last > from && bytes[last - 1]! > 0x7f) last--;
    this.#validUntil = isUtf8(bytes.subarray(from, last)) ? last : 0;
  }

  /** Every string that lies within the bytes is valid UTF-8; false: some may not be. */
  get validText(): boolean {
    return this.#validUntil > 0;
  }

  /** Like `open` for a few bytes: strings are checked one by one. */
  openField(bytes: Uint8Array, end: number): void {
    this.#bytes = bytes;
    this.#end = end;
    this.#byLine = false;
    this.#validUntil = 0;
  }

  /** Reads the value at `from`, which must not be white space. The tape holds the row only when the status is `row`. */
  readRow(from: number): RowStatus {
    const tape = this.#tape;
    tape.reset(this.#bytes);
    if (this.#bytes[from] !== 0x7b) {
      const end = this.skipValue(from, 0);
      if (end < 0) return this.#statusOf(end);
      tape.refuse('REL_INVALID', 'a row must be a JSON object');
      this.position = end;
      return 'row';
    }
    const end = this.#readObject(from + 1);
    if (end < 0) return this.#statusOf(end);
    this.position = end;
    return 'row';
  }

  /** End of the value at `from`, or negative. Checks syntax, depth and duplicate names below it. */
  skipValue(from: number, depth: number): number {
    if (from >= this.#end) return INCOMPLETE;
    const bytes = this.#bytes;
    const first = bytes[from]!;
    switch (first) {
      case 0x22: {
        const close = this.skipString(from + 1);
        return close < 0 ? close : close + 1;
      }
      case 0x7b:
        return this.#skipObject(from, depth + 1);
      case 0x5b:
        return this.#skipArray(from, depth + 1);
      case 0x74:
        return this.#literal(from, 'true');
      case 0x66:
        return this.#literal(from, 'false');
      case 0x6e:
        return this.#literal(from, 'null');
      default:
        return this.readNumber(from);
    }
  }

  /** Offset of the first byte at or after `from` that is not white space. */
  skipSpace(from: number): number {
    const bytes = this.#bytes;
    const end = this.#end;
    let i = from;
    while (i < end) {
      const byte = bytes[i]!;
      if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d && (byte !== 0x0a || this.#byLine)) break;
      i++;
    }
    return i;
  }

  /** Offset of the closing quote of the string that starts at `from`, or negative. */
  skipString(from: number): number {
    const bytes = this.#bytes;
    const end = this.#end;
    let i = from;
    let all = 0;
    this.#escaped = false;
    while (i < end) {
      const byte = bytes[i]!;
      if (byte === 0x22) {
        if (all > 0x7f && i > this.#validUntil && !isUtf8(bytes.subarray(from, i))) {
          this.#tape.refuse('REL_INVALID', 'a string is not valid UTF-8');
        }
        return i;
      }
      if (byte === 0x5c) {
        this.#escaped = true;
        const size = this.#escapeSize(i);
        if (size < 0) return size;
        i += size;
        continue;
      }
      if (byte < 0x20) return this.#markMalformed(i, 'a control character in a string');
      all |= byte;
      i++;
    }
    return INCOMPLETE;
  }

  /** End of the number at `from`, or negative. Its kind and value are in `numberKind` and `numberValue`. */
  readNumber(from: number): number {
    const bytes = this.#bytes;
    const end = this.#end;
    let i = from;
    const negative = bytes[i] === 0x2d;
    if (negative) i++;
    const digitsAt = i;
    let mantissa = 0;
    while (i < end) {
      const digit = bytes[i]! - 0x30;
      if (digit < 0 || digit > 9) break;
      mantissa = mantissa * 10 + digit;
      i++;
    }
    if (i === end) return INCOMPLETE;
    const digits = i - digitsAt;
    if (digits === 0) return this.#markMalformed(i, 'a value expected');
    if (digits > 1 && bytes[digitsAt] === 0x30) return this.#markMalformed(digitsAt, 'a number with a leading zero');
    const next = bytes[i]!;
    if (next !== 0x2e && next !== 0x65 && next !== 0x45) {
      if (negative && mantissa === 0) {
        // An integer has no minus zero: as a number it keeps its sign.
        this.#numberKind = cellKind.number;
        this.#number = -0;
      } else if (digits <= 15) {
        this.#numberKind = cellKind.integer;
        this.#number = negative ? -mantissa : mantissa;
      } else {
        this.#numberKind = cellKind.wide;
        if (digits > 19) this.#numberKind = cellKind.huge;
        else if (digits === 19) {
          const value = integerAt(bytes, from, i);
          if (value > I64_MAX || value < I64_MIN) this.#numberKind = cellKind.huge;
        }
      }
      return i;
    }
    let fractionDigits = 0;
    if (next === 0x2e) {
      i++;
      const fractionAt = i;
      while (i < end) {
        const digit = bytes[i]! - 0x30;
        if (digit < 0 || digit > 9) break;
        mantissa = mantissa * 10 + digit;
        i++;
      }
      if (i === end) return INCOMPLETE;
      fractionDigits = i - fractionAt;
      if (fractionDigits === 0) return this.#markMalformed(i, 'a digit expected after the decimal point');
    }
    this.#numberKind = cellKind.number;
    const exponent = bytes[i] === 0x65 || bytes[i] === 0x45;
    if (exponent) {
      i++;
      if (i < end && (bytes[i] === 0x2b || bytes[i] === 0x2d)) i++;
      const exponentAt = i;
      while (i < end && bytes[i]! >= 0x30 && bytes[i]! <= 0x39) i++;
      if (i === end) return INCOMPLETE;
      if (i === exponentAt) return this.#markMalformed(i, 'a digit expected in the exponent');
    } else if (digits + fractionDigits <= 15) {
      // Both operands are exact doubles, so the quotient is the correctly rounded value.
      const value = mantissa / powersOfTen[fractionDigits]!;
      this.#number = negative ? -value : value;
      return i;
    }
    this.#number = Number(latin1(bytes, from, i));
    if (!Number.isFinite(this.#number)) this.#numberKind = cellKind.huge;
    return i;
  }

  get numberKind(): number {
    return this.#numberKind;
  }

  get numberValue(): number {
    return this.#number;
  }

  #readObject(from: number): number {
    const bytes = this.#bytes;
    const tape = this.#tape;
    const stamp = ++this.#rowStamp;
    let previous = 0;
    let i = this.skipSpace(from);
    if (i >= this.#end) return INCOMPLETE;
    if (bytes[i] === 0x7d) return i + 1;
    for (;;) {
      if (i >= this.#end) return INCOMPLETE;
      if (bytes[i] !== 0x22) return this.#markMalformed(i, 'a property name expected');
      let slot = this.#predictSlot(i + 1, previous);
      if (slot >= 0) i += this.#columns.names[slot]!.length + 2;
      else {
        const close = this.skipString(i + 1);
        if (close < 0) return close;
        slot = tape.problem === null ? this.#columns.slotOf(this.#nameAt(i + 1, close)) : -1;
        i = close + 1;
      }
      if (bytes[i] !== 0x3a) {
        i = this.skipSpace(i);
        if (i >= this.#end) return INCOMPLETE;
        if (bytes[i] !== 0x3a) return this.#markMalformed(i, 'a colon expected');
      }
      i++;
      if (bytes[i]! <= 0x20) i = this.skipSpace(i);
      i = this.#readCell(i, slot);
      if (i < 0) return i;
      if (slot >= 0) {
        if (this.#seenInRow[slot] === stamp) {
          tape.refuse('REL_INVALID', `the property ${nameText(this.#columns.names[slot]!)} is given twice`);
        }
        this.#seenInRow[slot] = stamp;
        this.#following[previous] = slot;
        previous = slot + 1;
      }
      if (bytes[i]! <= 0x20) i = this.skipSpace(i);
      if (i >= this.#end) return INCOMPLETE;
      const after = bytes[i]!;
      if (after === 0x7d) return i + 1;
      if (after !== 0x2c) return this.#markMalformed(i, 'a comma or } expected');
      i++;
      if (bytes[i]! <= 0x20) i = this.skipSpace(i);
    }
  }

  /** Reads a value onto the tape (not when the slot is negative: the row is refused already). Its end, or negative. */
  #readCell(from: number, slot: number): number {
    if (from >= this.#end) return INCOMPLETE;
    const bytes = this.#bytes;
    const tape = this.#tape;
    let kind: number;
    let start = from;
    let stop: number;
    let end: number;
    switch (bytes[from]!) {
      case 0x22:
        start = from + 1;
        stop = this.skipString(start);
        if (stop < 0) return stop;
        kind = this.#escaped ? cellKind.escaped : cellKind.text;
        end = stop + 1;
        break;
      case 0x7b:
      case 0x5b:
        kind = cellKind.json;
        stop = end = this.skipValue(from, 1);
        break;
      case 0x74:
        kind = cellKind.true;
        stop = end = this.#literal(from, 'true');
        break;
      case 0x66:
        kind = cellKind.false;
        stop = end = this.#literal(from, 'false');
        break;
      case 0x6e:
        kind = cellKind.null;
        stop = end = this.#literal(from, 'null');
        break;
      default:
        stop = end = this.readNumber(from);
        kind = this.#numberKind;
    }
    if (end < 0 || slot < 0 || tape.problem !== null) return end;
    const at = tape.count++;
    tape.slots[at] = slot;
    tape.kinds[at] = kind;
    tape.starts[at] = start;
    tape.ends[at] = stop;
    tape.numbers[at] = this.#number;
    return end;
  }

  /** The column that came here in the last row, or the one after it, if its name stands at `from`. */
  #predictSlot(from: number, previous: number): number {
    const names = this.#columns.names;
    const bytes = this.#bytes;
    let slot = this.#following[previous];
    for (let attempt = 0; attempt < 2 && slot !== undefined; attempt++) {
      const name = names[slot];
      if (name === undefined) return -1;
      const size = name.length;
      if (from + size < this.#end && bytes[from + size] === 0x22) {
        let i = 0;
        while (i < size && bytes[from + i] === name[i]) i++;
        if (i === size) return slot;
      }
      slot = this.#following[slot + 1];
    }
    return -1;
  }

  #nameAt(from: number, to: number): string {
    if (!this.#escaped) return decoder.decode(this.#bytes.subarray(from, to));
    return JSON.parse(decoder.decode(this.#bytes.subarray(from - 1, to + 1))) as string;
  }

  #skipObject(from: number, depth: number): number {
    if (depth > limits.jsonDepth) return this.#markMalformed(from, `nested deeper than ${limits.jsonDepth} levels`);
    const bytes = this.#bytes;
    let names: Set<string> | null = null;
    let i = this.skipSpace(from + 1);
    if (i >= this.#end) return INCOMPLETE;
    if (bytes[i] === 0x7d) return i + 1;
    for (;;) {
      if (i >= this.#end) return INCOMPLETE;
      if (bytes[i] !== 0x22) return this.#markMalformed(i, 'a property name expected');
      const close = this.skipString(i + 1);
      if (close < 0) return close;
      if (this.#tape.problem === null) {
        const name = this.#nameAt(i + 1, close);
        names ??= new Set();
        if (names.has(name)) this.#tape.refuse('REL_INVALID', `the property ${JSON.stringify(name.slice(0, 64))} is given twice`);
        names.add(name);
      }
      i = this.skipSpace(close + 1);
      if (i >= this.#end) return INCOMPLETE;
      if (bytes[i] !== 0x3a) return this.#markMalformed(i, 'a colon expected');
      i = this.skipValue(this.skipSpace(i + 1), depth);
      if (i < 0) return i;
      i = this.skipSpace(i);
      if (i >= this.#end) return INCOMPLETE;
      if (bytes[i] === 0x7d) return i + 1;
      if (bytes[i] !== 0x2c) return this.#markMalformed(i, 'a comma or } expected');
      i = this.skipSpace(i + 1);
    }
  }

  #skipArray(from: number, depth: number): number {
    if (depth > limits.jsonDepth) return this.#markMalformed(from, `nested deeper than ${limits.jsonDepth} levels`);
    const bytes = this.#bytes;
    let i = this.skipSpace(from + 1);
    if (i >= this.#end) return INCOMPLETE;
    if (bytes[i] === 0x5d) return i + 1;
    for (;;) {
      i = this.skipValue(i, depth);
      if (i < 0) return i;
      i = this.skipSpace(i);
      if (i >= this.#end) return INCOMPLETE;
      if (bytes[i] === 0x5d) return i + 1;
      if (bytes[i] !== 0x2c) return this.#markMalformed(i, 'a comma or ] expected');
      i = this.skipSpace(i + 1);
    }
  }

  #literal(from: number, text: string): number {
    const bytes = this.#bytes;
    for (let i = 0; i < text.length; i++) {
      if (from + i >= this.#end) return INCOMPLETE;
      if (bytes[from + i] !== text.charCodeAt(i)) return this.#markMalformed(from, 'a value expected');
    }
    return from + text.length;
  }

  /** Length of the escape at `from`, both halves of a surrogate pair included; negative as elsewhere. */
  #escapeSize(from: number): number {
    const bytes = this.#bytes;
    if (from + 1 >= this.#end) return INCOMPLETE;
    const letter = bytes[from + 1]!;
    if (letter !== 0x75) return simpleEscapes[letter] === 0 ? this.#markMalformed(from, 'an unknown escape') : 2;
    const unit = this.#hexAt(from + 2);
    if (unit < 0) return unit;
    if (unit < 0xd800 || unit > 0xdfff) return 6;
    if (unit < 0xdc00) {
      if (from + 6 >= this.#end) return INCOMPLETE;
      if (bytes[from + 6] === 0x5c) {
        if (from + 7 >= this.#end) return INCOMPLETE;
        if (bytes[from + 7] === 0x75) {
          const low = this.#hexAt(from + 8);
          if (low < 0) return low;
          if (low >= 0xdc00 && low <= 0xdfff) return 12;
        }
      }
    }
    this.#tape.refuse('REL_INVALID', 'a string holds a lone surrogate');
    return 6;
  }

  #hexAt(from: number): number {
    let value = 0;
    for (let i = from; i < from + 4; i++) {
      if (i >= this.#end) return INCOMPLETE;
      const digit = hexDigits[this.#bytes[i]!]!;
      if (digit > 15) return this.#markMalformed(i, 'four hexadecimal digits expected');
      value = value * 16 + digit;
    }
    return value;
  }

  #markMalformed(at: number, reason: string): number {
    this.position = at;
    this.reason = reason;
    return MALFORMED;
  }

  #statusOf(status: number): RowStatus {
    if (status === MALFORMED) return 'malformed';
    this.position = this.#end;
    this.reason = 'the text ends inside a value';
    return 'incomplete';
  }
}

function nameText(name: Uint8Array): string {
  return `"${decoder.decode(name).slice(0, 64)}"`;
}
