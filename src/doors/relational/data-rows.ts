/** Sends rows of an answer as DataRow messages, and resumes a portal where it stopped. */
import type { Answer } from '../../planner/planner-contract.ts';
import type { Field, PostgresReplies } from './replies.ts';
import { WireColumn } from './wire-column.ts';

/** Bytes written in one turn, before other work and the socket get theirs. */
const dataRowBytesAtOnce = 64 * 1024;

export class DataRows {
  readonly answer: Answer;
  readonly fields: readonly Field[];
  readonly #columns: readonly WireColumn[];
  #batch = 0;
  #row = 0;

  /** `timestampDigits`: of a fraction of a second, in text. */
  constructor(answer: Answer, rowFields: readonly Field[], timestampDigits: number) {
    this.answer = answer;
    this.fields = rowFields;
    this.#columns = rowFields.map(
      ({ type: wireType, format: fieldFormat }) => new WireColumn(wireType, fieldFormat, timestampDigits),
    );
  }

  get ended(): boolean {
    return this.#batch === this.answer.batches.length;
  }

  /** Writes rows, so many at most, until there is enough to send; how many it wrote. */
  put(postgresReplies: PostgresReplies, rowsMax: number): number {
    const { batches: answerBatches } = this.answer;
    const wireColumns = this.#columns;
    let writtenRows = 0;
    for (; this.#batch < answerBatches.length; this.#batch++, this.#row = 0) {
      const { columns: vectors, selection: selectedRows, first, count: batchRowCount } = answerBatches[this.#batch]!;
      for (let i = 0; i < wireColumns.length; i++) wireColumns[i]!.open(vectors[i]!);
      for (; this.#row < batchRowCount; this.#row++, writtenRows++) {
        if (writtenRows >= rowsMax || postgresReplies.length >= dataRowBytesAtOnce) return writtenRows;
        const dataRow = selectedRows === null ? first + this.#row : selectedRows[this.#row]!;
        postgresReplies.begin('D');
        postgresReplies.int16(wireColumns.length);
        for (let i = 0; i < wireColumns.length; i++) wireColumns[i]!.put(postgresReplies, dataRow);
        postgresReplies.end();
      }
    }
    return writtenRows;
  }
}
