/** COPY TO STDOUT: rows of an answer as text, CSV or binary, from where they were left. */
import type { Answer } from '../../planner/planner-contract.ts';
import type { CopyFormat } from './copy-statement.ts';
import { type Field, PostgresReplies } from './replies.ts';
import { WireColumn } from './wire-column.ts';
import { wireTypes } from '../../planner/system-catalogue/postgres-column-types.ts';

/** Bytes written in one turn, before other work and the socket get theirs. */
const bytesAtOnce = 64 * 1024;
const signature = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');

export class CopyOut {
  readonly answer: Answer;
  readonly #format: CopyFormat;
  readonly #fields: readonly Field[];
  readonly #columns: readonly WireColumn[];
  /** Whether the text of each column may need escapes. */
  readonly #isText: readonly boolean[];
  readonly #special: Uint8Array;
  readonly #cell = new PostgresReplies();
  readonly #nullText: Buffer;
  #batch = 0;
  #row = 0;
  #isBegun = false;
  #isEnded = false;

  constructor(answer: Answer, format: CopyFormat, fields: readonly Field[], digits: number) {
    this.answer = answer;
    this.#format = format;
    this.#fields = fields;
    const isBinary = format.format === 'binary';
    this.#columns = fields.map(({ type }) => new WireColumn(type, isBinary ? 1 : 0, digits));
    const { text, jsonb, vector, timestamptz } = wireTypes;
    this.#isText = fields.map(({ type }) => type === text || type === jsonb || type === vector || type === timestamptz);
    this.#special = new Uint8Array(256);
    const special = format.format === 'csv' ? `${format.delimiter}${format.quote}\r\n` : `${format.delimiter}\\\b\f\n\r\t\v`;
    for (const letter of special) this.#special[letter.charCodeAt(0)] = 1;
    this.#nullText = Buffer.from(format.nullText);
  }

  get ended(): boolean {
    return this.#isEnded;
  }

  /** Writes rows until there is enough to send. */
  put(replies: PostgresReplies): void {
    if (!this.#isBegun) this.#head(replies);
    this.#isBegun = true;
    const { batches } = this.answer;
    const columns = this.#columns;
    for (; this.#batch < batches.length; this.#batch++, this.#row = 0) {
      const { columns: vectors, selection, first, count } = batches[this.#batch]!;
      for (let i = 0; i < columns.length; i++) columns[i]!.open(vectors[i]!);
      for (; this.#row < count; this.#row++) {
        if (replies.length >= bytesAtOnce) return;
        const row = selection === null ? first + this.#row : selection[this.#row]!;
        replies.begin('d');
        if (this.#format.format === 'binary') {
          replies.int16(columns.length);
          for (let i = 0; i < columns.length; i++) columns[i]!.put(replies, row);
        } else this.#textRow(replies, row);
        replies.end();
      }
    }
    if (this.#format.format === 'binary') {
      replies.begin('d');
      replies.int16(-1);
      replies.end();
    }
    replies.bare('c');
    this.#isEnded = true;
  }

  #head(replies: PostgresReplies): void {
    replies.copyBegins('H', this.#format.format === 'binary', this.#fields.length);
    if (this.#format.format === 'binary') {
      replies.begin('d');
      replies.writer.copy(signature, 0, signature.length);
      replies.int32(0);
      replies.int32(0);
      replies.end();
    }
    if (!this.#format.header) return;
    replies.begin('d');
    this.#fields.forEach(({ name }, i) => {
      if (i > 0) replies.writer.string(this.#format.delimiter);
      const bytes = Buffer.from(name);
      this.#escape(replies, bytes, 0, bytes.length, false);
    });
    replies.writer.byte(0x0a);
    replies.end();
  }

  #textRow(replies: PostgresReplies, row: number): void {
    const { writer } = replies;
    const delimiter = this.#format.delimiter.charCodeAt(0);
    const cell = this.#cell;
    for (let i = 0; i < this.#columns.length; i++) {
      if (i > 0) writer.byte(delimiter);
      cell.writer.length = 0;
      this.#columns[i]!.put(cell, row);
      const { bytes, view, length } = cell.writer;
      if (view.getInt32(0) < 0) writer.copy(this.#nullText, 0, this.#nullText.length);
      else if (this.#isText[i]) this.#escape(replies, bytes, 4, length, true);
      else writer.copy(bytes, 4, length);
    }
    writer.byte(0x0a);
  }

  #escape({ writer }: PostgresReplies, bytes: Uint8Array, from: number, to: number, isCell: boolean): void {
    const special = this.#special;
    let at = from;
    while (at < to && special[bytes[at]!] === 0) at++;
    if (this.#format.format === 'csv') {
      const isNull = isCell && to - from === this.#nullText.length && this.#nullText.compare(bytes, from, to) === 0;
      const isEnd = isCell && to - from === 2 && bytes[from] === 0x5c && bytes[from + 1] === 0x2e;
      if (at === to && !isNull && !isEnd) return writer.copy(bytes, from, to);
      const quote = this.#format.quote.charCodeAt(0);
      const escape = this.#format.escape.charCodeAt(0);
      writer.byte(quote);
      for (let i = from; i < to; i++) {
        if (bytes[i] === quote || bytes[i] === escape) writer.byte(escape);
        writer.byte(bytes[i]!);
      }
      return writer.byte(quote);
    }
    if (at === to) return writer.copy(bytes, from, to);
    for (let i = from; i < to; i++) {
      const byte = bytes[i]!;
      if (special[byte] === 1) {
        writer.byte(0x5c);
        writer.byte(letters.get(byte) ?? byte);
      } else writer.byte(byte);
    }
  }
}

/** The letter behind a backslash for each of these bytes. */
const letters: ReadonlyMap<number, number> = new Map([
  [8, 0x62],
  [12, 0x66],
  [10, 0x6e],
  [13, 0x72],
  [9, 0x74],
  [11, 0x76],
]);
