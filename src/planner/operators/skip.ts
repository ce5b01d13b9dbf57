/** All rows but the first. */
import type { SkipNode } from '../logical-plan.ts';
import { type Batch, emptyBatch, type Execution, lastRows, type Operator } from './operator.ts';

export class SkipOperator implements Operator {
  readonly #skippedInput: Operator;
  #rowsToSkip: number;

  constructor(input: Operator, node: SkipNode, execution: Execution) {
    this.#skippedInput = input;
    this.#rowsToSkip = execution.rowLimit(node.offset);
  }

  next(): Batch | null {
    const batch = this.#skippedInput.next();
    if (batch === null || this.#rowsToSkip === 0) return batch;
    const skippedRows = Math.min(this.#rowsToSkip, batch.count);
    this.#rowsToSkip -= skippedRows;
    const remainingRows = batch.count - skippedRows;
    if (remainingRows === 0) return emptyBatch;
    return lastRows(batch, remainingRows);
  }

  close(): void {
    this.#skippedInput.close();
  }
}
