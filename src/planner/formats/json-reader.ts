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

const INCOMPLETE_JSON = -1;
const MALFORMED_JSON = -2;

const jsonPowersOfTen = Float64Array.from({ length: 23 }, (_, i) => Number(`1e${i}`));
const jsonDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

export class JsonReader {
  /** Just after the row that was read; where reading failed otherwise. */
  position = 0;
  /** Why the syntax is broken. */
  reason = '';
  readonly #jsonColumns: ColumnNames;
  readonly #jsonTape: RowTape;
  /** Slot that followed slot s in the latest row that had s; entry 0 is for the start of a row. */
  readonly #followingSlots: number[] = [0];
  readonly #seenSlotStamps: number[] = [];
  #jsonRowStamp = 0;
  #jsonBytes: Uint8Array = new Uint8Array(0);
  #jsonEnd = 0;
  /** Bytes below this offset are known to be valid UTF-8. */
  #validUtf8Until = 0;
  /** A line feed ends a row (NDJSON) instead of being white space. */
  #isByLine = false;
  #isEscaped = false;
  #jsonNumber = 0;
  #jsonNumberKind: number = cellKind.integer;

  constructor(jsonColumns: ColumnNames, jsonTape: RowTape) {
    this.#jsonColumns = jsonColumns;
    this.#jsonTape = jsonTape;
  }

  /** Gives the bytes to read from. Must be called again whenever they move or grow. */
  open(jsonBytes: Uint8Array, jsonStart: number, jsonEnd: number, isByLine: boolean): void {
    this.#jsonBytes = jsonBytes;
    this.#jsonEnd = jsonEnd;
    this.#isByLine = isByLine;
    // Checked once for all strings in it; the cut may lie inside a character, so up to the last ASCII byte.
    let lastAscii = jsonEnd;
    while (lastAscii > jsonStart && jsonBytes[lastAscii - 1]! > 0x7f) lastAscii--;
    this.#validUtf8Until = isUtf8(jsonBytes.subarray(jsonStart, lastAscii)) ? lastAscii : 0;
  }

  /** Every string that lies within the bytes is valid UTF-8; false: some may not be. */
  get validText(): boolean {
    return this.#validUtf8Until > 0;
  }

  /** Like `open` for a few bytes: strings are checked one by one. */
  openField(fieldBytes: Uint8Array, fieldEnd: number): void {
    this.#jsonBytes = fieldBytes;
    this.#jsonEnd = fieldEnd;
    this.#isByLine = false;
    this.#validUtf8Until = 0;
  }

  /** Reads the value at `rowStart`, which must not be white space. The tape holds the row only when the status is `row`. */
  readRow(rowStart: number): RowStatus {
    const jsonTape = this.#jsonTape;
    jsonTape.reset(this.#jsonBytes);
    if (this.#jsonBytes[rowStart] !== 0x7b) {
      const rowEnd = this.skipValue(rowStart, 0);
      if (rowEnd < 0) return this.#rowStatusOf(rowEnd);
      jsonTape.refuse('REL_INVALID', 'a row must be a JSON object');
      this.position = rowEnd;
      return 'row';
    }
    const end = this.#readRowObject(rowStart + 1);
    if (end < 0) return this.#rowStatusOf(end);
    this.position = end;
    return 'row';
  }

  /** End of the value at `valueStart`, or negative. Checks syntax, depth and duplicate names below it. */
  skipValue(valueStart: number, jsonDepth: number): number {
    if (valueStart >= this.#jsonEnd) return INCOMPLETE_JSON;
    const jsonBytes = this.#jsonBytes;
    const firstValueByte = jsonBytes[valueStart]!;
    switch (firstValueByte) {
      case 0x22: {
        const closingQuote = this.skipString(valueStart + 1);
        return closingQuote < 0 ? closingQuote : closingQuote + 1;
      }
      case 0x7b:
        return this.#skipJsonObject(valueStart, jsonDepth + 1);
      case 0x5b:
        return this.#skipJsonArray(valueStart, jsonDepth + 1);
      case 0x74:
        return this.#skipLiteral(valueStart, 'true');
      case 0x66:
        return this.#skipLiteral(valueStart, 'false');
      case 0x6e:
        return this.#skipLiteral(valueStart, 'null');
      default:
        return this.readNumber(valueStart);
    }
  }

  /** Offset of the first byte at or after `spaceStart` that is not white space. */
  skipSpace(spaceStart: number): number {
    const jsonBytes = this.#jsonBytes;
    const jsonEnd = this.#jsonEnd;
    let i = spaceStart;
    while (i < jsonEnd) {
      const spaceByte = jsonBytes[i]!;
      if (spaceByte !== 0x20 && spaceByte !== 0x09 && spaceByte !== 0x0d && (spaceByte !== 0x0a || this.#isByLine)) break;
      i++;
    }
    return i;
  }

  /** Offset of the closing quote of the string that starts at `stringStart`, or negative. */
  skipString(stringStart: number): number {
    const jsonBytes = this.#jsonBytes;
    const jsonEnd = this.#jsonEnd;
    let i = stringStart;
    let stringBits = 0;
    this.#isEscaped = false;
    while (i < jsonEnd) {
      const stringByte = jsonBytes[i]!;
      if (stringByte === 0x22) {
        if (stringBits > 0x7f && i > this.#validUtf8Until && !isUtf8(jsonBytes.subarray(stringStart, i))) {
          this.#jsonTape.refuse('REL_INVALID', 'a string is not valid UTF-8');
        }
        return i;
      }
      if (stringByte === 0x5c) {
        this.#isEscaped = true;
        const escapeSize = this.#jsonEscapeSize(i);
        if (escapeSize < 0) return escapeSize;
        i += escapeSize;
        continue;
      }
      if (stringByte < 0x20) return this.#markJsonMalformed(i, 'a control character in a string');
      stringBits |= stringByte;
      i++;
    }
    return INCOMPLETE_JSON;
  }

  /** End of the number at `numberStart`, or negative. Its kind and value are in `numberKind` and `numberValue`. */
  readNumber(numberStart: number): number {
    const jsonBytes = this.#jsonBytes;
    const jsonEnd = this.#jsonEnd;
    let i = numberStart;
    const isNegative = jsonBytes[i] === 0x2d;
    if (isNegative) i++;
    const integerStart = i;
    let mantissa = 0;
    while (i < jsonEnd) {
      const numberDigit = jsonBytes[i]! - 0x30;
      if (numberDigit < 0 || numberDigit > 9) break;
      mantissa = mantissa * 10 + numberDigit;
      i++;
    }
    if (i === jsonEnd) return INCOMPLETE_JSON;
    const integerDigits = i - integerStart;
    if (integerDigits === 0) return this.#markJsonMalformed(i, 'a value expected');
    if (integerDigits > 1 && jsonBytes[integerStart] === 0x30)
      return this.#markJsonMalformed(integerStart, 'a number with a leading zero');
    const afterInteger = jsonBytes[i]!;
    if (afterInteger !== 0x2e && afterInteger !== 0x65 && afterInteger !== 0x45) {
      if (isNegative && mantissa === 0) {
        // An integer has no minus zero: as a number it keeps its sign.
        this.#jsonNumberKind = cellKind.number;
        this.#jsonNumber = -0;
      } else if (integerDigits <= 15) {
        this.#jsonNumberKind = cellKind.integer;
        this.#jsonNumber = isNegative ? -mantissa : mantissa;
      } else {
        this.#jsonNumberKind = cellKind.wide;
        if (integerDigits > 19) this.#jsonNumberKind = cellKind.huge;
        else if (integerDigits === 19) {
          const numberValue = integerAt(jsonBytes, numberStart, i);
          if (numberValue > I64_MAX || numberValue < I64_MIN) this.#jsonNumberKind = cellKind.huge;
        }
      }
      return i;
    }
    let fractionDigits = 0;
    if (afterInteger === 0x2e) {
      i++;
      const fractionStart = i;
      while (i < jsonEnd) {
        const numberDigit = jsonBytes[i]! - 0x30;
        if (numberDigit < 0 || numberDigit > 9) break;
        mantissa = mantissa * 10 + numberDigit;
        i++;
      }
      if (i === jsonEnd) return INCOMPLETE_JSON;
      fractionDigits = i - fractionStart;
      if (fractionDigits === 0) return this.#markJsonMalformed(i, 'a digit expected after the decimal point');
    }
    this.#jsonNumberKind = cellKind.number;
    const hasExponent = jsonBytes[i] === 0x65 || jsonBytes[i] === 0x45;
    if (hasExponent) {
      i++;
      if (i < jsonEnd && (jsonBytes[i] === 0x2b || jsonBytes[i] === 0x2d)) i++;
      const exponentStart = i;
      while (i < jsonEnd && jsonBytes[i]! >= 0x30 && jsonBytes[i]! <= 0x39) i++;
      if (i === jsonEnd) return INCOMPLETE_JSON;
      if (i === exponentStart) return this.#markJsonMalformed(i, 'a digit expected in the exponent');
    } else if (integerDigits + fractionDigits <= 15) {
      // Both operands are exact doubles, so the quotient is the correctly rounded value.
      const numberValue = mantissa / jsonPowersOfTen[fractionDigits]!;
      this.#jsonNumber = isNegative ? -numberValue : numberValue;
      return i;
    }
    this.#jsonNumber = Number(latin1(jsonBytes, numberStart, i));
    if (!Number.isFinite(this.#jsonNumber)) this.#jsonNumberKind = cellKind.huge;
    return i;
  }

  get numberKind(): number {
    return this.#jsonNumberKind;
  }

  get numberValue(): number {
    return this.#jsonNumber;
  }

  #readRowObject(objectStart: number): number {
    const jsonBytes = this.#jsonBytes;
    const jsonTape = this.#jsonTape;
    const rowStamp = ++this.#jsonRowStamp;
    let previousSlot = 0;
    let i = this.skipSpace(objectStart);
    if (i >= this.#jsonEnd) return INCOMPLETE_JSON;
    if (jsonBytes[i] === 0x7d) return i + 1;
    for (;;) {
      if (i >= this.#jsonEnd) return INCOMPLETE_JSON;
      if (jsonBytes[i] !== 0x22) return this.#markJsonMalformed(i, 'a property name expected');
      let nameSlot = this.#predictNameSlot(i + 1, previousSlot);
      if (nameSlot >= 0) i += this.#jsonColumns.names[nameSlot]!.length + 2;
      else {
        const closingQuote = this.skipString(i + 1);
        if (closingQuote < 0) return closingQuote;
        nameSlot = jsonTape.problem === null ? this.#jsonColumns.slotOf(this.#propertyNameAt(i + 1, closingQuote)) : -1;
        i = closingQuote + 1;
      }
      if (jsonBytes[i] !== 0x3a) {
        i = this.skipSpace(i);
        if (i >= this.#jsonEnd) return INCOMPLETE_JSON;
        if (jsonBytes[i] !== 0x3a) return this.#markJsonMalformed(i, 'a colon expected');
      }
      i++;
      if (jsonBytes[i]! <= 0x20) i = this.skipSpace(i);
      i = this.#readJsonCell(i, nameSlot);
      if (i < 0) return i;
      if (nameSlot >= 0) {
        if (this.#seenSlotStamps[nameSlot] === rowStamp) {
          jsonTape.refuse('REL_INVALID', `the property ${jsonNameText(this.#jsonColumns.names[nameSlot]!)} is given twice`);
        }
        this.#seenSlotStamps[nameSlot] = rowStamp;
        this.#followingSlots[previousSlot] = nameSlot;
        previousSlot = nameSlot + 1;
      }
      if (jsonBytes[i]! <= 0x20) i = this.skipSpace(i);
      if (i >= this.#jsonEnd) return INCOMPLETE_JSON;
      const afterCell = jsonBytes[i]!;
      if (afterCell === 0x7d) return i + 1;
      if (afterCell !== 0x2c) return this.#markJsonMalformed(i, 'a comma or } expected');
      i++;
      if (jsonBytes[i]! <= 0x20) i = this.skipSpace(i);
    }
  }

  /** Reads a value onto the tape (not when the slot is negative: the row is refused already). Its end, or negative. */
  #readJsonCell(valueStart: number, slot: number): number {
    if (valueStart >= this.#jsonEnd) return INCOMPLETE_JSON;
    const jsonBytes = this.#jsonBytes;
    const jsonTape = this.#jsonTape;
    let jsonCellKind: number;
    let cellStart = valueStart;
    let cellStop: number;
    let cellEnd: number;
    switch (jsonBytes[valueStart]!) {
      case 0x22:
        cellStart = valueStart + 1;
        cellStop = this.skipString(cellStart);
        if (cellStop < 0) return cellStop;
        jsonCellKind = this.#isEscaped ? cellKind.escaped : cellKind.text;
        cellEnd = cellStop + 1;
        break;
      case 0x7b:
      case 0x5b:
        jsonCellKind = cellKind.json;
        cellStop = cellEnd = this.skipValue(valueStart, 1);
        break;
      case 0x74:
        jsonCellKind = cellKind.true;
        cellStop = cellEnd = this.#skipLiteral(valueStart, 'true');
        break;
      case 0x66:
        jsonCellKind = cellKind.false;
        cellStop = cellEnd = this.#skipLiteral(valueStart, 'false');
        break;
      case 0x6e:
        jsonCellKind = cellKind.null;
        cellStop = cellEnd = this.#skipLiteral(valueStart, 'null');
        break;
      default:
        cellStop = cellEnd = this.readNumber(valueStart);
        jsonCellKind = this.#jsonNumberKind;
    }
    if (cellEnd < 0 || slot < 0 || jsonTape.problem !== null) return cellEnd;
    const tapeOrdinal = jsonTape.count++;
    jsonTape.slots[tapeOrdinal] = slot;
    jsonTape.kinds[tapeOrdinal] = jsonCellKind;
    jsonTape.starts[tapeOrdinal] = cellStart;
    jsonTape.ends[tapeOrdinal] = cellStop;
    jsonTape.numbers[tapeOrdinal] = this.#jsonNumber;
    return cellEnd;
  }

  /** The column that came here in the last row, or the one after it, if its name stands at `nameStart`. */
  #predictNameSlot(nameStart: number, previousSlot: number): number {
    const columnNames = this.#jsonColumns.names;
    const jsonBytes = this.#jsonBytes;
    let predictedSlot = this.#followingSlots[previousSlot];
    for (let attempt = 0; attempt < 2 && predictedSlot !== undefined; attempt++) {
      const predictedName = columnNames[predictedSlot];
      if (predictedName === undefined) return -1;
      const nameSize = predictedName.length;
      if (nameStart + nameSize < this.#jsonEnd && jsonBytes[nameStart + nameSize] === 0x22) {
        let i = 0;
        while (i < nameSize && jsonBytes[nameStart + i] === predictedName[i]) i++;
        if (i === nameSize) return predictedSlot;
      }
      predictedSlot = this.#followingSlots[predictedSlot + 1];
    }
    return -1;
  }

  #propertyNameAt(nameStart: number, nameEnd: number): string {
    if (!this.#isEscaped) return jsonDecoder.decode(this.#jsonBytes.subarray(nameStart, nameEnd));
    return JSON.parse(jsonDecoder.decode(this.#jsonBytes.subarray(nameStart - 1, nameEnd + 1))) as string;
  }

  #skipJsonObject(objectStart: number, jsonDepth: number): number {
    if (jsonDepth > limits.jsonDepth)
      return this.#markJsonMalformed(objectStart, `nested deeper than ${limits.jsonDepth} levels`);
    const jsonBytes = this.#jsonBytes;
    let objectNames: Set<string> | null = null;
    let i = this.skipSpace(objectStart + 1);
    if (i >= this.#jsonEnd) return INCOMPLETE_JSON;
    if (jsonBytes[i] === 0x7d) return i + 1;
    for (;;) {
      if (i >= this.#jsonEnd) return INCOMPLETE_JSON;
      if (jsonBytes[i] !== 0x22) return this.#markJsonMalformed(i, 'a property name expected');
      const closingQuote = this.skipString(i + 1);
      if (closingQuote < 0) return closingQuote;
      if (this.#jsonTape.problem === null) {
        const propertyName = this.#propertyNameAt(i + 1, closingQuote);
        objectNames ??= new Set();
        if (objectNames.has(propertyName))
          this.#jsonTape.refuse('REL_INVALID', `the property ${JSON.stringify(propertyName.slice(0, 64))} is given twice`);
        objectNames.add(propertyName);
      }
      i = this.skipSpace(closingQuote + 1);
      if (i >= this.#jsonEnd) return INCOMPLETE_JSON;
      if (jsonBytes[i] !== 0x3a) return this.#markJsonMalformed(i, 'a colon expected');
      i = this.skipValue(this.skipSpace(i + 1), jsonDepth);
      if (i < 0) return i;
      i = this.skipSpace(i);
      if (i >= this.#jsonEnd) return INCOMPLETE_JSON;
      if (jsonBytes[i] === 0x7d) return i + 1;
      if (jsonBytes[i] !== 0x2c) return this.#markJsonMalformed(i, 'a comma or } expected');
      i = this.skipSpace(i + 1);
    }
  }

  #skipJsonArray(arrayStart: number, jsonDepth: number): number {
    if (jsonDepth > limits.jsonDepth) return this.#markJsonMalformed(arrayStart, `nested deeper than ${limits.jsonDepth} levels`);
    const jsonBytes = this.#jsonBytes;
    let i = this.skipSpace(arrayStart + 1);
    if (i >= this.#jsonEnd) return INCOMPLETE_JSON;
    if (jsonBytes[i] === 0x5d) return i + 1;
    for (;;) {
      i = this.skipValue(i, jsonDepth);
      if (i < 0) return i;
      i = this.skipSpace(i);
      if (i >= this.#jsonEnd) return INCOMPLETE_JSON;
      if (jsonBytes[i] === 0x5d) return i + 1;
      if (jsonBytes[i] !== 0x2c) return this.#markJsonMalformed(i, 'a comma or ] expected');
      i = this.skipSpace(i + 1);
    }
  }

  #skipLiteral(literalStart: number, literalText: string): number {
    const jsonBytes = this.#jsonBytes;
    for (let i = 0; i < literalText.length; i++) {
      if (literalStart + i >= this.#jsonEnd) return INCOMPLETE_JSON;
      if (jsonBytes[literalStart + i] !== literalText.charCodeAt(i))
        return this.#markJsonMalformed(literalStart, 'a value expected');
    }
    return literalStart + literalText.length;
  }

  /** Length of the escape at `escapeStart`, both halves of a surrogate pair included; negative as elsewhere. */
  #jsonEscapeSize(escapeStart: number): number {
    const jsonBytes = this.#jsonBytes;
    if (escapeStart + 1 >= this.#jsonEnd) return INCOMPLETE_JSON;
    const escapeLetter = jsonBytes[escapeStart + 1]!;
    if (escapeLetter !== 0x75)
      return simpleEscapes[escapeLetter] === 0 ? this.#markJsonMalformed(escapeStart, 'an unknown escape') : 2;
    const utf16Unit = this.#hexUnitAt(escapeStart + 2);
    if (utf16Unit < 0) return utf16Unit;
    if (utf16Unit < 0xd800 || utf16Unit > 0xdfff) return 6;
    if (utf16Unit < 0xdc00) {
      if (escapeStart + 6 >= this.#jsonEnd) return INCOMPLETE_JSON;
      if (jsonBytes[escapeStart + 6] === 0x5c) {
        if (escapeStart + 7 >= this.#jsonEnd) return INCOMPLETE_JSON;
        if (jsonBytes[escapeStart + 7] === 0x75) {
          const lowSurrogate = this.#hexUnitAt(escapeStart + 8);
          if (lowSurrogate < 0) return lowSurrogate;
          if (lowSurrogate >= 0xdc00 && lowSurrogate <= 0xdfff) return 12;
        }
      }
    }
    this.#jsonTape.refuse('REL_INVALID', 'a string holds a lone surrogate');
    return 6;
  }

  #hexUnitAt(hexStart: number): number {
    let hexValue = 0;
    for (let i = hexStart; i < hexStart + 4; i++) {
      if (i >= this.#jsonEnd) return INCOMPLETE_JSON;
      const hexDigit = hexDigits[this.#jsonBytes[i]!]!;
      if (hexDigit > 15) return this.#markJsonMalformed(i, 'four hexadecimal digits expected');
      hexValue = hexValue * 16 + hexDigit;
    }
    return hexValue;
  }

  #markJsonMalformed(at: number, reason: string): number {
    this.position = at;
    this.reason = reason;
    return MALFORMED_JSON;
  }

  #rowStatusOf(status: number): RowStatus {
    if (status === MALFORMED_JSON) return 'malformed';
    this.position = this.#jsonEnd;
    this.reason = 'the text ends inside a value';
    return 'incomplete';
  }
}

function jsonNameText(jsonName: Uint8Array): string {
  return `"${jsonDecoder.decode(jsonName).slice(0, 64)}"`;
}
