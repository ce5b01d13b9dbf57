/** Rows of a batch that are refused, each with its first reason. */
import type { ErrorCode } from '../../../errors.ts';
import type { RowRejection } from '../../command.ts';

export class RejectedRows {
  readonly #byRow = new Map<number, RowRejection>();

  get count(): number {
    return this.#byRow.size;
  }

  add(index: number, code: ErrorCode, detail: string, column?: string): void {
    if (!this.#byRow.has(index)) this.#byRow.set(index, { index, code, detail, ...(column !== undefined && { column }) });
  }

  has(index: number): boolean {
    return this.#byRow.size > 0 && this.#byRow.has(index);
  }

  /** In the order of the rows. */
  list(max: number): RowRejection[] {
    return [...this.#byRow.values()].sort((a, b) => a.index - b.index).slice(0, max);
  }

  first(): RowRejection | undefined {
    return this.list(1)[0];
  }
}
