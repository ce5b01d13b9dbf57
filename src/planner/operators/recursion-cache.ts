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

  #first(recursiveInput: Operator): Operator {
    const { memory } = this.#execution;
    const collectedRows = new CollectedRows(this.#columns.map(({ type }) => type));
    let heldBytes = 0;
    return {
      next: () => {
        const keptBatch = recursiveInput.next();
        if (keptBatch === null) {
          this.#whole ??= collectedRows.pieces();
          return null;
        }
        if (keptBatch.count === 0) return emptyBatch;
        collectedRows.append(keptBatch);
        heldBytes = memory.change(heldBytes, collectedRows.bytes);
        return keptBatch;
      },
      close: () => {
        if (!this.#whole) memory.change(heldBytes, 0);
        recursiveInput.close();
      },
    };
  }
}
