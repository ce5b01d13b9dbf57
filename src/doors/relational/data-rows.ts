/** Sends rows of an answer as DataRow messages, and resumes a portal where it stopped. */
import type { Answer } from '../../planner/planner-contract.ts';
import type { Field, PostgresReplies } from './replies.ts';
import { WireColumn } from './wire-column.ts';

/** Bytes written in one turn, before other work and the socket get theirs. */
const bytesAtOnce = 64 * 1024;

export class DataRows {
  readonly answer: Answer;
  readonly fields: readonly Field[];
  readonly #columns: readonly WireColumn[];
  #batch = 0;
  #row = 0;

  /** `digits`: of a fraction of a second, in text. */
  constructor(answer: Answer, fields: readonly Field[], digits: number) {
    this.answer = answer;
    this.fields = fields;
    this.#columns = fields.map(({ type, format }) => new WireColumn(type, format, digits));
  }

  get ended(): boolean {
    return this.#batch === this.answer.batches.length;
  }

  /** Writes rows, so many at most, until there is enough to send; how many it wrote. */
  put(replies: PostgresReplies, most: number): number {
    const { batches } = this.answer;
    const columns = this.#columns;
    let written = 0;
    for (; this.#batch < batches.length; this.#batch++, this.#row = 0) {
      const { columns: vectors, selection, first, count } = batches[this.#batch]!;
      for (let i = 0; i < columns.length; i++) columns[i]!.open(vectors[i]!);
      for (; this.#row < count; this.#row++, written++) {
        if (written >= most || replies.length >= bytesAtOnce) return written;
        const row = selection === null ? first + this.#row : selection[this.#row]!;
        replies.begin('D');
        replies.int16(columns.length);
        for (let i = 0; i < columns.length; i++) columns[i]!.put(replies, row);
        replies.end();
      }
    }
    return written;
  }
}
