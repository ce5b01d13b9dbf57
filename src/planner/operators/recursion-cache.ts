/** Rows that every round of a recursion asks for and that no round changes: read from the store once, then from memory. */
import type { PlanColumn } from '../logical-plan.ts';
import { CollectedRows } from './collected-rows.ts';
import { emptyBatch, type Execution, type Operator, type RowPiece } from './operator.ts';
import { piecesReader } from './working-table.ts';

export class RecursionCache {
  readonly #columns: readonly PlanColumn[];
  readonly #execution: Execution;
  #whole: readonly RowPiece[] | null = null;

  constructor(columns: readonly PlanColumn[], execution: Execution) {
    this.#columns = columns;
    this.#execution = execution;
  }

  /** `input` is what yields the rows; a reader that stops early keeps nothing, and the next one begins again. */
  reader(input: () => Operator): Operator {
    return this.#whole ? piecesReader(this.#whole, this.#execution.limits.blockRows) : this.#first(input());
  }

  #first(input: Operator): Operator {
    const { memory } = this.#execution;
    const rows = new CollectedRows(this.#columns.map(({ type }) => type));
    let heldBytes = 0;
    return {
      next: () => {
        const batch = input.next();
        if (batch === null) {
          this.#whole ??= rows.pieces();
          return null;
        }
        if (batch.count === 0) return emptyBatch;
        rows.append(batch);
        heldBytes = memory.change(heldBytes, rows.bytes);
        return batch;
      },
      close: () => {
        if (!this.#whole) memory.change(heldBytes, 0);
        input.close();
      },
    };
  }
}
