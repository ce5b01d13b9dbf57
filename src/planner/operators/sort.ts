/**
 * Rows in order of their keys. Rows are collected, then row numbers are sorted, a bounded piece per call. With a limit only the
 * rows that can still come out are kept, and rows beyond the last of them are not collected at all. Rows with equal keys keep the
 * order of the input.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { SortNode } from '../logical-plan.ts';
import { CollectedRows } from './collected-rows.ts';
import { type Batch, emptyBatch, type Execution, firstRows, type Operator } from './operator.ts';
import { Threshold } from './row-order.ts';
import { sortedRows } from './row-sort.ts';

const sortOutputRows = 4_096;
/** Rows beyond twice the limit that are collected before the others are dropped. */
const sortSlackRows = 4_096;

export class SortOperator implements Operator {
  readonly #sortInput: Operator;
  readonly #sortNode: SortNode;
  readonly #execution: Execution;
  readonly #sortLimit: number;
  #collectedRows: CollectedRows;
  #heldBytes = 0;
  #sortWork: Generator<undefined, Int32Array, void> | null = null;
  #isInputEnded = false;
  #sortedOrder: Int32Array | null = null;
  #sortedVectors: readonly Vector[] = [];
  #deliveredRows = 0;
  #keepThreshold: Threshold | null = null;

  constructor(input: Operator, node: SortNode, execution: Execution) {
    this.#sortInput = input;
    this.#sortNode = node;
    this.#execution = execution;
    this.#sortLimit = node.limit ? firstRows(node.limit, node.offset, execution) : Number.POSITIVE_INFINITY;
    this.#collectedRows = this.#newCollectedRows();
  }

  next(): Batch | null {
    if (this.#sortedOrder) return this.#deliverSorted(this.#sortedOrder);
    if (this.#sortWork) {
      const sortStep = this.#sortWork.next();
      if (sortStep.done) this.#takeOrder(sortStep.value);
      return emptyBatch;
    }
    const batch = this.#sortInput.next();
    if (batch === null) {
      this.#isInputEnded = true;
      this.#startSorting();
    } else if (batch.count > 0) {
      if (this.#sortNode.counted) this.#execution.counters.hits += batch.count;
      const candidateRows = this.#keepThreshold ? this.#keepThreshold.keep(batch) : batch;
      if (candidateRows.count > 0) this.#collectedRows.append(candidateRows);
      this.#heldBytes = this.#execution.memory.change(this.#heldBytes, this.#collectedRows.bytes);
      if (this.#collectedRows.length > this.#sortLimit * 2 + sortSlackRows) this.#startSorting();
    }
    return emptyBatch;
  }

  close(): void {
    this.#sortInput.close();
  }

  #startSorting(): void {
    this.#sortWork = this.#sortCollected();
  }

  *#sortCollected(): Generator<undefined, Int32Array, void> {
    this.#sortedVectors = yield* this.#collectedRows.vectors();
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, this.#collectedRows.bytes);
    return yield* sortedRows(this.#sortedVectors, this.#sortNode.keys, this.#collectedRows.length);
  }

  #takeOrder(sortedOrder: Int32Array): void {
    this.#sortWork = null;
    const limitedOrder = sortedOrder.length > this.#sortLimit ? sortedOrder.subarray(0, this.#sortLimit) : sortedOrder;
    if (this.#isInputEnded) {
      this.#sortedOrder = limitedOrder;
      return;
    }
    // Kept rows go back in sorted order: stable against later rows, which come after all of them in the input.
    const keptRows = this.#newCollectedRows();
    keptRows.append({ columns: this.#sortedVectors, selection: limitedOrder, first: 0, count: limitedOrder.length });
    this.#collectedRows = keptRows;
    const [firstSortKey] = this.#sortNode.keys;
    if (firstSortKey && limitedOrder.length > 0)
      this.#keepThreshold = Threshold.from(
        firstSortKey,
        this.#sortedVectors[firstSortKey.column]!,
        limitedOrder[limitedOrder.length - 1]!,
      );
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, keptRows.bytes);
  }

  #deliverSorted(sortedOrder: Int32Array): Batch | null {
    if (this.#deliveredRows >= sortedOrder.length) return null;
    const selection = sortedOrder.subarray(this.#deliveredRows, this.#deliveredRows + sortOutputRows);
    this.#deliveredRows += selection.length;
    return { columns: this.#sortedVectors, selection, first: 0, count: selection.length };
  }

  #newCollectedRows(): CollectedRows {
    return new CollectedRows(this.#sortNode.columns.map(({ type }) => type));
  }
}
