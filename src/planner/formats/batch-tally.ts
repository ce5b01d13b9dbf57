/** Counts the rows of a body: which of them are in the batch that is being made, and which were refused. */
import type { ErrorCode } from '../../errors.ts';
import type { RowRejection } from '../../projections/command.ts';
import type { IngestBatch } from './ingest-batch.ts';

export class BatchTally {
  /** Index in the body of the next row, and of the first one since the last batch. */
  index = 0;
  firstIndex = 0;
  /** Bytes of the body that the batch was made of. */
  bytes = 0;
  #rejections: RowRejection[] = [];
  /** Indexes of the rows of the batch; null while none was refused, since they are consecutive then. */
  #indexes: number[] | null = null;

  accept(rows: number): void {
    for (let i = 0; this.#indexes !== null && i < rows; i++) this.#indexes.push(this.index + i);
    this.index += rows;
  }

  reject(code: ErrorCode, detail: string): void {
    if (this.#indexes === null) {
      this.#indexes = [];
      for (let i = this.firstIndex; i < this.index; i++) this.#indexes.push(i);
    }
    this.#rejections.push({ index: this.index, code, detail });
    this.index++;
  }

  take(batch: Omit<IngestBatch, 'firstIndex' | 'indexes' | 'rejections'>): IngestBatch {
    const { firstIndex } = this;
    const indexes = this.#indexes === null ? null : Float64Array.from(this.#indexes);
    const rejections = this.#rejections;
    this.firstIndex = this.index;
    this.bytes = 0;
    this.#rejections = [];
    this.#indexes = null;
    return { ...batch, firstIndex, indexes, rejections };
  }
}
