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
const significantDigitsMax = 17;

/** More fields than any type has columns: a longer record is not read to its end. */
const fieldsMax = limits.columnsPerType * 4;

export class CsvReader {
  /** Just after the record that was read; where reading failed otherwise. */
  position = 0;
  reason = '';
  readonly #columns: ColumnSet;
  readonly #tape: RowTape;
  readonly #nullText: Uint8Array | null;
  /** Column of each field. */
  #slots: number[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #quoted: boolean[] = [];
  #bytes: Uint8Array = new Uint8Array(0);
  #end = 0;
  readonly #tokenTape = new RowTape();
  readonly #tokens: JsonReader;

  constructor(columns: ColumnSet, tape: RowTape, nullText: string | null) {
    this.#columns = columns;
    this.#tape = tape;
    this.#nullText = nullText === null ? null : encoder.encode(nullText);
    this.#tokens = new JsonReader({ names: [], slotOf: () => -1 }, this.#tokenTape);
  }

  /** Gives the bytes to read from; the last record must end in a line feed. Doubled quotes are undone in place. */
  open(bytes: Uint8Array, end: number): void {
    this.#bytes = bytes;
    this.#end = end;
  }

  /** Reads the record at `from` as the header. */
  readHeader(from: number): RowStatus {
    const status = this.#readFields(from);
    if (status !== 'row') return status;
    const names = this.#starts.map((start, field) => this.#textOf(start, this.#ends[field]!));
    if (names.length === 1 && !this.#quoted[0] && names[0]!.includes(';')) {
      const name = JSON.stringify(names[0]!.slice(0, 128));
      throw new ServiceError(
        'REL_INVALID',
        `the CSV header is one column, ${name}: fields are separated by commas, not semicolons`,
      );
    }
    this.useHeader(names);
    return 'row';
  }

  useHeader(names: readonly string[]): void {
    const seen = new Set<string>();
    for (const name of names) {
      checkIdentifier(name, 'a CSV column name');
      if (seen.has(name)) throw new ServiceError('REL_INVALID', `the CSV header names ${JSON.stringify(name)} twice`);
      seen.add(name);
    }
    this.#tape.reset(this.#bytes);
    this.#slots = names.map((name) => {
      const slot = this.#columns.slotOf(name);
      const problem = this.#tape.problem;
      if (problem !== null) throw new ServiceError(problem.code, problem.detail);
      return slot;
    });
    this.#columns.settle();
  }

  readRow(from: number): RowStatus {
    const tape = this.#tape;
    tape.reset(this.#bytes);
    const status = this.#readFields(from);
    if (status !== 'row') return status;
    const fields = this.#starts.length;
    if (fields !== this.#slots.length) {
      tape.refuse('REL_INVALID', `${fields} fields where the header has ${this.#slots.length}`);
      return 'row';
    }
    for (let field = 0; field < fields; field++) {
      const start = this.#starts[field]!;
      const end = this.#ends[field]!;
      const at = tape.count++;
      tape.slots[at] = this.#slots[field]!;
      tape.starts[at] = start;
      tape.ends[at] = end;
      tape.kinds[at] = this.#kindOf(at, start, end, this.#quoted[field]!);
    }
    return 'row';
  }

  #readFields(from: number): RowStatus {
    const bytes = this.#bytes;
    const end = this.#end;
    const starts = this.#starts;
    const ends = this.#ends;
    starts.length = ends.length = this.#quoted.length = 0;
    let all = 0;
    let doubled = false;
    let i = from;
    for (;;) {
      if (i >= end) return this.#incomplete('the text ends inside a record');
      const quoted = bytes[i] === 0x22;
      const start = quoted ? i + 1 : i;
      let stop: number;
      if (quoted) {
        for (i = start; ; i++) {
          if (i >= end) return this.#incomplete('the text ends inside a quoted field');
          const byte = bytes[i]!;
          all |= byte;
          if (byte !== 0x22) continue;
          if (i + 1 >= end) return this.#incomplete('the text ends inside a quoted field');
          if (bytes[i + 1] !== 0x22) break;
          doubled = true;
          i++;
        }
        stop = i++;
        if (bytes[i] === 0x0d && i + 1 < end && bytes[i + 1] === 0x0a) i++;
        if (bytes[i] !== 0x2c && bytes[i] !== 0x0a) {
          if (bytes[i] === 0x0d && i + 1 >= end) return this.#incomplete('the text ends inside a record');
          this.position = i;
          this.reason = 'text after the closing quote of a field';
          return 'malformed';
        }
      } else {
        while (i < end && bytes[i] !== 0x2c && bytes[i] !== 0x0a) all |= bytes[i++]!;
        if (i >= end) return this.#incomplete('the text ends inside a record');
        stop = bytes[i] === 0x0a && i > start && bytes[i - 1] === 0x0d ? i - 1 : i;
      }
      if (starts.length === fieldsMax) {
        this.position = start;
        this.reason = `more than ${fieldsMax} fields`;
        return 'malformed';
      }
      starts.push(start);
      ends.push(stop);
      this.#quoted.push(quoted);
      const separator = bytes[i++]!;
      if (separator === 0x0a) break;
    }
    if (all > 0x7f && !isUtf8(bytes.subarray(from, i))) this.#tape.refuse('REL_INVALID', 'a field is not valid UTF-8');
    if (doubled) this.#undouble();
    this.position = i;
    return 'row';
  }

  #undouble(): void {
    const bytes = this.#bytes;
    for (let field = 0; field < this.#starts.length; field++) {
      if (!this.#quoted[field]) continue;
      const end = this.#ends[field]!;
      let at = this.#starts[field]!;
      for (let i = at; i < end; i++) {
        bytes[at++] = bytes[i]!;
        if (bytes[i] === 0x22) i++;
      }
      // Ends the shortened field here; a later reader must not go on into the leftover bytes.
      bytes[at] = 0x22;
      this.#ends[field] = at;
    }
  }

  #kindOf(cell: number, start: number, end: number, quoted: boolean): number {
    if (!quoted && (start === end || this.#isNullText(start, end))) return cellKind.null;
    const column = this.#columns.columns[this.#tape.slots[cell]!]!;
    if (column.fixed ? column.type === 'string' : quoted) return cellKind.text;
    const kind = this.#tokenKind(start, end);
    if (kind === cellKind.json || kind === cellKind.text || kind === cellKind.huge) {
      return column.fixed && (column.type === 'json' || column.type === 'vector') ? kind : cellKind.text;
    }
    this.#tape.numbers[cell] = this.#tokens.numberValue;
    return kind;
  }

  /** Kind of the JSON value that the field is, or `text`. */
  #tokenKind(start: number, end: number): number {
    if (start === end || startsToken[this.#bytes[start]!] === 0) return cellKind.text;
    const tokens = this.#tokens;
    this.#tokenTape.reset(this.#bytes);
    tokens.openField(this.#bytes, end + 1);
    if (tokens.skipValue(start, 0) !== end || this.#tokenTape.problem !== null) return cellKind.text;
    switch (this.#bytes[start]!) {
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
        return tokens.numberKind === cellKind.number && this.#digitsIn(start, end) > significantDigitsMax
          ? cellKind.text
          : tokens.numberKind;
    }
  }

  /** Zeros in front say nothing of how exact a number is. */
  #digitsIn(start: number, end: number): number {
    let digits = 0;
    for (let i = start; i < end && this.#bytes[i] !== 0x65 && this.#bytes[i] !== 0x45; i++) {
      const byte = this.#bytes[i]!;
      if (byte > 0x30 && byte <= 0x39) digits++;
      else if (byte === 0x30 && digits > 0) digits++;
    }
    return digits;
  }

  #isNullText(start: number, end: number): boolean {
    const nullText = this.#nullText;
    if (nullText === null || end - start !== nullText.length) return false;
    for (let i = 0; i < nullText.length; i++) if (this.#bytes[start + i] !== nullText[i]) return false;
    return true;
  }

  #textOf(start: number, end: number): string {
    return decoder.decode(this.#bytes.subarray(start, end));
  }

  #incomplete(reason: string): RowStatus {
    this.position = this.#end;
    this.reason = reason;
    return 'incomplete';
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

const startsToken = new Uint8Array(256);
for (const byte of encoder.encode('-0123456789tfn"[{')) startsToken[byte] = 1;
