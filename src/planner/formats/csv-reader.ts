/**
 * Reads one CSV record at a time onto a `RowTape` (RFC 4180: commas, quoted fields with doubled quotes, CRLF or LF). An empty
 * unquoted field is NULL, a quoted one is a text. A field is never changed by guessing. Only unquoted fields in JSON's own
 * spelling count as integer, number or boolean, so leading zeros and digits that no integer or double would give back stay text.
 */
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../../errors.ts';
import { checkIdentifier, limits } from '../../log/values/value.ts';
import type { ColumnSet } from './column-set.ts';
import { JsonReader, type RowStatus } from './json-reader.ts';
import { cellKind, RowTape } from './row-tape.ts';

/** Digits that a double always gives back. */
const csvDigitsMax = 17;

/** More fields than any type has columns: a longer record is not read to its end. */
const csvFieldsMax = limits.columnsPerType * 4;

export class CsvReader {
  /** Just after the record that was read; where reading failed otherwise. */
  position = 0;
  reason = '';
  readonly #csvColumns: ColumnSet;
  readonly #csvTape: RowTape;
  readonly #csvNullText: Uint8Array | null;
  /** Column of each field. */
  #headerSlots: number[] = [];
  readonly #fieldStarts: number[] = [];
  readonly #fieldEnds: number[] = [];
  readonly #quotedFields: boolean[] = [];
  #csvBytes: Uint8Array = new Uint8Array(0);
  #csvEnd = 0;
  readonly #fieldTape = new RowTape();
  readonly #fieldTokens: JsonReader;

  constructor(csvColumns: ColumnSet, csvTape: RowTape, nullText: string | null) {
    this.#csvColumns = csvColumns;
    this.#csvTape = csvTape;
    this.#csvNullText = nullText === null ? null : csvNullEncoder.encode(nullText);
    this.#fieldTokens = new JsonReader({ names: [], slotOf: () => -1 }, this.#fieldTape);
  }

  /** Gives the bytes to read from; the last record must end in a line feed. Doubled quotes are undone in place. */
  open(bytes: Uint8Array, end: number): void {
    this.#csvBytes = bytes;
    this.#csvEnd = end;
  }

  /** Reads the record at `headerStart` as the header. */
  readHeader(headerStart: number): RowStatus {
    const headerStatus = this.#readRecordFields(headerStart);
    if (headerStatus !== 'row') return headerStatus;
    const headerNames = this.#fieldStarts.map((start, field) => this.#fieldTextOf(start, this.#fieldEnds[field]!));
    if (headerNames.length === 1 && !this.#quotedFields[0] && headerNames[0]!.includes(';')) {
      const headerName = JSON.stringify(headerNames[0]!.slice(0, 128));
      throw new ServiceError(
        'REL_INVALID',
        `the CSV header is one column, ${headerName}: fields are separated by commas, not semicolons`,
      );
    }
    this.useHeader(headerNames);
    return 'row';
  }

  useHeader(headerNames: readonly string[]): void {
    const seenNames = new Set<string>();
    for (const headerName of headerNames) {
      checkIdentifier(headerName, 'a CSV column name');
      if (seenNames.has(headerName))
        throw new ServiceError('REL_INVALID', `the CSV header names ${JSON.stringify(headerName)} twice`);
      seenNames.add(headerName);
    }
    this.#csvTape.reset(this.#csvBytes);
    this.#headerSlots = headerNames.map((name) => {
      const headerSlot = this.#csvColumns.slotOf(name);
      const slotProblem = this.#csvTape.problem;
      if (slotProblem !== null) throw new ServiceError(slotProblem.code, slotProblem.detail);
      return headerSlot;
    });
    this.#csvColumns.settle();
  }

  readRow(recordStart: number): RowStatus {
    const csvTape = this.#csvTape;
    csvTape.reset(this.#csvBytes);
    const recordStatus = this.#readRecordFields(recordStart);
    if (recordStatus !== 'row') return recordStatus;
    const fieldCount = this.#fieldStarts.length;
    if (fieldCount !== this.#headerSlots.length) {
      csvTape.refuse('REL_INVALID', `${fieldCount} fields where the header has ${this.#headerSlots.length}`);
      return 'row';
    }
    for (let field = 0; field < fieldCount; field++) {
      const fieldStart = this.#fieldStarts[field]!;
      const fieldEnd = this.#fieldEnds[field]!;
      const cellOrdinal = csvTape.count++;
      csvTape.slots[cellOrdinal] = this.#headerSlots[field]!;
      csvTape.starts[cellOrdinal] = fieldStart;
      csvTape.ends[cellOrdinal] = fieldEnd;
      csvTape.kinds[cellOrdinal] = this.#fieldKindOf(cellOrdinal, fieldStart, fieldEnd, this.#quotedFields[field]!);
    }
    return 'row';
  }

  #readRecordFields(recordStart: number): RowStatus {
    const csvBytes = this.#csvBytes;
    const csvEnd = this.#csvEnd;
    const fieldStarts = this.#fieldStarts;
    const fieldEnds = this.#fieldEnds;
    fieldStarts.length = fieldEnds.length = this.#quotedFields.length = 0;
    let fieldBits = 0;
    let hasDoubledQuotes = false;
    let i = recordStart;
    for (;;) {
      if (i >= csvEnd) return this.#incompleteRecord('the text ends inside a record');
      const isQuoted = csvBytes[i] === 0x22;
      const fieldStart = isQuoted ? i + 1 : i;
      let fieldStop: number;
      if (isQuoted) {
        for (i = fieldStart; ; i++) {
          if (i >= csvEnd) return this.#incompleteRecord('the text ends inside a quoted field');
          const fieldByte = csvBytes[i]!;
          fieldBits |= fieldByte;
          if (fieldByte !== 0x22) continue;
          if (i + 1 >= csvEnd) return this.#incompleteRecord('the text ends inside a quoted field');
          if (csvBytes[i + 1] !== 0x22) break;
          hasDoubledQuotes = true;
          i++;
        }
        fieldStop = i++;
        if (csvBytes[i] === 0x0d && i + 1 < csvEnd && csvBytes[i + 1] === 0x0a) i++;
        if (csvBytes[i] !== 0x2c && csvBytes[i] !== 0x0a) {
          if (csvBytes[i] === 0x0d && i + 1 >= csvEnd) return this.#incompleteRecord('the text ends inside a record');
          this.position = i;
          this.reason = 'text after the closing quote of a field';
          return 'malformed';
        }
      } else {
        while (i < csvEnd && csvBytes[i] !== 0x2c && csvBytes[i] !== 0x0a) fieldBits |= csvBytes[i++]!;
        if (i >= csvEnd) return this.#incompleteRecord('the text ends inside a record');
        fieldStop = csvBytes[i] === 0x0a && i > fieldStart && csvBytes[i - 1] === 0x0d ? i - 1 : i;
      }
      if (fieldStarts.length === csvFieldsMax) {
        this.position = fieldStart;
        this.reason = `more than ${csvFieldsMax} fields`;
        return 'malformed';
      }
      fieldStarts.push(fieldStart);
      fieldEnds.push(fieldStop);
      this.#quotedFields.push(isQuoted);
      const fieldSeparator = csvBytes[i++]!;
      if (fieldSeparator === 0x0a) break;
    }
    if (fieldBits > 0x7f && !isUtf8(csvBytes.subarray(recordStart, i)))
      this.#csvTape.refuse('REL_INVALID', 'a field is not valid UTF-8');
    if (hasDoubledQuotes) this.#undoubleQuotes();
    this.position = i;
    return 'row';
  }

  #undoubleQuotes(): void {
    const csvBytes = this.#csvBytes;
    for (let field = 0; field < this.#fieldStarts.length; field++) {
      if (!this.#quotedFields[field]) continue;
      const quotedEnd = this.#fieldEnds[field]!;
      let undoubledAt = this.#fieldStarts[field]!;
      for (let i = undoubledAt; i < quotedEnd; i++) {
        csvBytes[undoubledAt++] = csvBytes[i]!;
        if (csvBytes[i] === 0x22) i++;
      }
      // Ends the shortened field here; a later reader must not go on into the leftover bytes.
      csvBytes[undoubledAt] = 0x22;
      this.#fieldEnds[field] = undoubledAt;
    }
  }

  #fieldKindOf(cell: number, fieldStart: number, fieldEnd: number, isQuoted: boolean): number {
    if (!isQuoted && (fieldStart === fieldEnd || this.#isCsvNull(fieldStart, fieldEnd))) return cellKind.null;
    const fieldColumn = this.#csvColumns.columns[this.#csvTape.slots[cell]!]!;
    if (fieldColumn.fixed ? fieldColumn.type === 'string' : isQuoted) return cellKind.text;
    const fieldKind = this.#fieldTokenKind(fieldStart, fieldEnd);
    if (fieldKind === cellKind.json || fieldKind === cellKind.text || fieldKind === cellKind.huge) {
      return fieldColumn.fixed && (fieldColumn.type === 'json' || fieldColumn.type === 'vector') ? fieldKind : cellKind.text;
    }
    this.#csvTape.numbers[cell] = this.#fieldTokens.numberValue;
    return fieldKind;
  }

  /** Kind of the JSON value that the field is, or `text`. */
  #fieldTokenKind(fieldStart: number, fieldEnd: number): number {
    if (fieldStart === fieldEnd || startsCsvToken[this.#csvBytes[fieldStart]!] === 0) return cellKind.text;
    const fieldTokens = this.#fieldTokens;
    this.#fieldTape.reset(this.#csvBytes);
    fieldTokens.openField(this.#csvBytes, fieldEnd + 1);
    if (fieldTokens.skipValue(fieldStart, 0) !== fieldEnd || this.#fieldTape.problem !== null) return cellKind.text;
    switch (this.#csvBytes[fieldStart]!) {
      case 0x74:
        return cellKind.true;
      case 0x66:
        return cellKind.false;
      case 0x22:
      case 0x5b:
      case 0x7b:
      case 0x6e:
        return cellKind.json;
      default:
        return fieldTokens.numberKind === cellKind.number && this.#significantDigits(fieldStart, fieldEnd) > csvDigitsMax
          ? cellKind.text
          : fieldTokens.numberKind;
    }
  }

  /** Zeros in front say nothing of how exact a number is. */
  #significantDigits(start: number, end: number): number {
    let digitCount = 0;
    for (let i = start; i < end && this.#csvBytes[i] !== 0x65 && this.#csvBytes[i] !== 0x45; i++) {
      const digitByte = this.#csvBytes[i]!;
      if (digitByte > 0x30 && digitByte <= 0x39) digitCount++;
      else if (digitByte === 0x30 && digitCount > 0) digitCount++;
    }
    return digitCount;
  }

  #isCsvNull(start: number, end: number): boolean {
    const csvNullText = this.#csvNullText;
    if (csvNullText === null || end - start !== csvNullText.length) return false;
    for (let i = 0; i < csvNullText.length; i++) if (this.#csvBytes[start + i] !== csvNullText[i]) return false;
    return true;
  }

  #fieldTextOf(start: number, end: number): string {
    return csvDecoder.decode(this.#csvBytes.subarray(start, end));
  }

  #incompleteRecord(reason: string): RowStatus {
    this.position = this.#csvEnd;
    this.reason = reason;
    return 'incomplete';
  }
}

const csvNullEncoder = new TextEncoder();
const csvDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

const startsCsvToken = new Uint8Array(256);
for (const byte of csvNullEncoder.encode('-0123456789tfn"[{')) startsCsvToken[byte] = 1;
