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

const outputRows = 4_096;
/** Rows beyond twice the limit that are collected before the others are dropped. */
const slackRows = 4_096;

export class SortOperator implements Operator {
  readonly #input: Operator;
  readonly #node: SortNode;
  readonly #execution: Execution;
  readonly #limit: number;
  #sink: CollectedRows;
  #heldBytes = 0;
  #work: Generator<undefined, Int32Array, void> | null = null;
  #inputEnded = false;
  #order: Int32Array | null = null;
  #vectors: readonly Vector[] = [];
  #at = 0;
  #threshold: Threshold | null = null;

  constructor(input: Operator, node: SortNode, execution: Execution) {
    this.#input = input;
    this.#node = node;
    this.#execution = execution;
    this.#limit = node.limit ? firstRows(node.limit, node.offset, execution) : Number.POSITIVE_INFINITY;
    this.#sink = this.#newSink();
  }

  next(): Batch | null {
    if (this.#order) return this.#deliver(this.#order);
    if (this.#work) {
      const step = this.#work.next();
      if (step.done) this.#takeOrder(step.value);
      return emptyBatch;
    }
    const batch = this.#input.next();
    if (batch === null) {
      this.#inputEnded = true;
      this.#startSorting();
    } else if (batch.count > 0) {
      if (this.#node.counted) this.#execution.counters.hits += batch.count;
      const candidateRows = this.#threshold ? this.#threshold.keep(batch) : batch;
      if (candidateRows.count > 0) this.#sink.append(candidateRows);
      this.#heldBytes = this.#execution.memory.change(this.#heldBytes, this.#sink.bytes);
      if (this.#sink.length > this.#limit * 2 + slackRows) this.#startSorting();
    }
    return emptyBatch;
  }

  close(): void {
    this.#input.close();
  }

  #startSorting(): void {
    this.#work = this.#sortCollected();
  }

  *#sortCollected(): Generator<undefined, Int32Array, void> {
    this.#vectors = yield* this.#sink.vectors();
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, this.#sink.bytes);
    return yield* sortedRows(this.#vectors, this.#node.keys, this.#sink.length);
  }

  #takeOrder(order: Int32Array): void {
    this.#work = null;
    const limitedOrder = order.length > this.#limit ? order.subarray(0, this.#limit) : order;
    if (this.#inputEnded) {
      this.#order = limitedOrder;
      return;
    }
    // Kept rows go back in sorted order: stable against later rows, which come after all of them in the input.
    const sink = this.#newSink();
    sink.append({ columns: this.#vectors, selection: limitedOrder, first: 0, count: limitedOrder.length });
    this.#sink = sink;
    const [key] = this.#node.keys;
    if (key && limitedOrder.length > 0)
      this.#threshold = Threshold.from(key, this.#vectors[key.column]!, limitedOrder[limitedOrder.length - 1]!);
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, sink.bytes);
  }

  #deliver(order: Int32Array): Batch | null {
    if (this.#at >= order.length) return null;
    const selection = order.subarray(this.#at, this.#at + outputRows);
    this.#at += selection.length;
    return { columns: this.#vectors, selection, first: 0, count: selection.length };
  }

  #newSink(): CollectedRows {
    return new CollectedRows(this.#node.columns.map(({ type }) => type));
  }
}
