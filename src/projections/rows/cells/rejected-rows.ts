/** Rows of a batch that are refused, each with its first reason. */
import type { ErrorCode } from '../../../errors.ts';
import type { RowRejection } from '../../command.ts';

export class RejectedRows {
  readonly #rejectionsByRow = new Map<number, RowRejection>();

  get count(): number {
    return this.#rejectionsByRow.size;
  }

  add(rejectedRow: number, code: ErrorCode, detail: string, column?: string): void {
    if (!this.#rejectionsByRow.has(rejectedRow))
      this.#rejectionsByRow.set(rejectedRow, { index: rejectedRow, code, detail, ...(column !== undefined && { column }) });
  }

  has(rejectedRow: number): boolean {
    return this.#rejectionsByRow.size > 0 && this.#rejectionsByRow.has(rejectedRow);
  }

  /** In the order of the rows. */
  list(rejectionsMax: number): RowRejection[] {
    return [...this.#rejectionsByRow.values()].sort((a, b) => a.index - b.index).slice(0, rejectionsMax);
  }

  first(): RowRejection | undefined {
    return this.list(1)[0];
  }
}
