/** All rows but the first. */
import type { SkipNode } from '../logical-plan.ts';
import { type Batch, emptyBatch, type Execution, lastRows, type Operator } from './operator.ts';

export class SkipOperator implements Operator {
  readonly #input: Operator;
  #left: number;

  constructor(input: Operator, node: SkipNode, execution: Execution) {
    this.#input = input;
    this.#left = execution.rowLimit(node.offset);
  }

  next(): Batch | null {
    const batch = this.#input.next();
    if (batch === null || this.#left === 0) return batch;
    const skipped = Math.min(this.#left, batch.count);
    this.#left -= skipped;
    const count = batch.count - skipped;
    if (count === 0) return emptyBatch;
    return lastRows(batch, count);
  }

  close(): void {
    this.#input.close();
  }
}
