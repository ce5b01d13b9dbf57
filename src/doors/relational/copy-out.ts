/** COPY TO STDOUT: rows of an answer as text, CSV or binary, from where they were left. */
import type { Answer } from '../../planner/planner-contract.ts';
import type { CopyFormat } from './copy-statement.ts';
import { type Field, PostgresReplies } from './replies.ts';
import { WireColumn } from './wire-column.ts';
import { wireTypes } from '../../planner/system-catalogue/postgres-column-types.ts';

/** Bytes written in one turn, before other work and the socket get theirs. */
const copyReplyBytes = 64 * 1024;
const copySignature = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');

export class CopyOut {
  readonly answer: Answer;
  readonly #copyFormat: CopyFormat;
  readonly #copyFields: readonly Field[];
  readonly #wireColumns: readonly WireColumn[];
  /** Whether the text of each column may need escapes. */
  readonly #textColumns: readonly boolean[];
  readonly #escapedBytes: Uint8Array;
  readonly #cellReplies = new PostgresReplies();
  readonly #copyNullText: Buffer;
  #answerBatch = 0;
  #batchRow = 0;
  #isCopyBegun = false;
  #isCopyEnded = false;

  constructor(answer: Answer, copyFormat: CopyFormat, copyFields: readonly Field[], timestampDigits: number) {
    this.answer = answer;
    this.#copyFormat = copyFormat;
    this.#copyFields = copyFields;
    const isBinaryCopy = copyFormat.format === 'binary';
    this.#wireColumns = copyFields.map(({ type }) => new WireColumn(type, isBinaryCopy ? 1 : 0, timestampDigits));
    const { text, jsonb, vector, timestamptz } = wireTypes;
    this.#textColumns = copyFields.map(({ type }) => type === text || type === jsonb || type === vector || type === timestamptz);
    this.#escapedBytes = new Uint8Array(256);
    const escapedLetters =
      copyFormat.format === 'csv' ? `${copyFormat.delimiter}${copyFormat.quote}\r\n` : `${copyFormat.delimiter}\\\b\f\n\r\t\v`;
    for (const escapedLetter of escapedLetters) this.#escapedBytes[escapedLetter.charCodeAt(0)] = 1;
    this.#copyNullText = Buffer.from(copyFormat.nullText);
  }

  get ended(): boolean {
    return this.#isCopyEnded;
  }

  /** Writes rows until there is enough to send. */
  put(copyReplies: PostgresReplies): void {
    if (!this.#isCopyBegun) this.#putCopyHead(copyReplies);
    this.#isCopyBegun = true;
    const { batches: answerBatches } = this.answer;
    const wireColumns = this.#wireColumns;
    for (; this.#answerBatch < answerBatches.length; this.#answerBatch++, this.#batchRow = 0) {
      const { columns: vectors, selection, first, count: batchRowCount } = answerBatches[this.#answerBatch]!;
      for (let i = 0; i < wireColumns.length; i++) wireColumns[i]!.open(vectors[i]!);
      for (; this.#batchRow < batchRowCount; this.#batchRow++) {
        if (copyReplies.length >= copyReplyBytes) return;
        const copiedRow = selection === null ? first + this.#batchRow : selection[this.#batchRow]!;
        copyReplies.begin('d');
        if (this.#copyFormat.format === 'binary') {
          copyReplies.int16(wireColumns.length);
          for (let i = 0; i < wireColumns.length; i++) wireColumns[i]!.put(copyReplies, copiedRow);
        } else this.#putTextRow(copyReplies, copiedRow);
        copyReplies.end();
      }
    }
    if (this.#copyFormat.format === 'binary') {
      copyReplies.begin('d');
      copyReplies.int16(-1);
      copyReplies.end();
    }
    copyReplies.bare('c');
    this.#isCopyEnded = true;
  }

  #putCopyHead(copyReplies: PostgresReplies): void {
    copyReplies.copyBegins('H', this.#copyFormat.format === 'binary', this.#copyFields.length);
    if (this.#copyFormat.format === 'binary') {
      copyReplies.begin('d');
      copyReplies.writer.copy(copySignature, 0, copySignature.length);
      copyReplies.int32(0);
      copyReplies.int32(0);
      copyReplies.end();
    }
    if (!this.#copyFormat.header) return;
    copyReplies.begin('d');
    this.#copyFields.forEach(({ name: fieldName }, i) => {
      if (i > 0) copyReplies.writer.string(this.#copyFormat.delimiter);
      const headerName = Buffer.from(fieldName);
      this.#putEscaped(copyReplies, headerName, 0, headerName.length, false);
    });
    copyReplies.writer.byte(0x0a);
    copyReplies.end();
  }

  #putTextRow(copyReplies: PostgresReplies, copiedRow: number): void {
    const { writer } = copyReplies;
    const delimiterByte = this.#copyFormat.delimiter.charCodeAt(0);
    const cellReplies = this.#cellReplies;
    for (let i = 0; i < this.#wireColumns.length; i++) {
      if (i > 0) writer.byte(delimiterByte);
      cellReplies.writer.length = 0;
      this.#wireColumns[i]!.put(cellReplies, copiedRow);
      const { bytes: cellBytes, view: cellView, length: cellLength } = cellReplies.writer;
      if (cellView.getInt32(0) < 0) writer.copy(this.#copyNullText, 0, this.#copyNullText.length);
      else if (this.#textColumns[i]) this.#putEscaped(copyReplies, cellBytes, 4, cellLength, true);
      else writer.copy(cellBytes, 4, cellLength);
    }
    writer.byte(0x0a);
  }

  #putEscaped({ writer }: PostgresReplies, cellBytes: Uint8Array, cellStart: number, cellEnd: number, isCell: boolean): void {
    const escapedBytes = this.#escapedBytes;
    let firstEscaped = cellStart;
    while (firstEscaped < cellEnd && escapedBytes[cellBytes[firstEscaped]!] === 0) firstEscaped++;
    if (this.#copyFormat.format === 'csv') {
      const isNullText =
        isCell &&
        cellEnd - cellStart === this.#copyNullText.length &&
        this.#copyNullText.compare(cellBytes, cellStart, cellEnd) === 0;
      const isEndMarker =
        isCell && cellEnd - cellStart === 2 && cellBytes[cellStart] === 0x5c && cellBytes[cellStart + 1] === 0x2e;
      if (firstEscaped === cellEnd && !isNullText && !isEndMarker) return writer.copy(cellBytes, cellStart, cellEnd);
      const quoteByte = this.#copyFormat.quote.charCodeAt(0);
      const escapeByte = this.#copyFormat.escape.charCodeAt(0);
      writer.byte(quoteByte);
      for (let i = cellStart; i < cellEnd; i++) {
        if (cellBytes[i] === quoteByte || cellBytes[i] === escapeByte) writer.byte(escapeByte);
        writer.byte(cellBytes[i]!);
      }
      return writer.byte(quoteByte);
    }
    if (firstEscaped === cellEnd) return writer.copy(cellBytes, cellStart, cellEnd);
    for (let i = cellStart; i < cellEnd; i++) {
      const cellByte = cellBytes[i]!;
      if (escapedBytes[cellByte] === 1) {
        writer.byte(0x5c);
        writer.byte(escapeLetters.get(cellByte) ?? cellByte);
      } else writer.byte(cellByte);
    }
  }
}

/** The letter behind a backslash for each of these bytes. */
const escapeLetters: ReadonlyMap<number, number> = new Map([
  [8, 0x62],
  [12, 0x66],
  [10, 0x6e],
  [13, 0x72],
  [9, 0x74],
  [11, 0x76],
]);
