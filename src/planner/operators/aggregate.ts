/** Groups and their results. Takes a block a call; once the input has ended, delivers groups in order of first appearance. */
import type { AggregateNode } from '../logical-plan.ts';
import { type Accumulator, accumulator } from './accumulators.ts';
import { GroupTable } from './group-table.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';

const outputRows = 4_096;

export class AggregateOperator implements Operator {
  readonly #input: Operator;
  readonly #execution: Execution;
  readonly #groups: GroupTable;
  readonly #accumulators: readonly Accumulator[];
  #held = 0;
  #order: Int32Array | null = null;
  #at = 0;

  constructor(input: Operator, node: AggregateNode, execution: Execution) {
    this.#input = input;
    this.#execution = execution;
    const types = node.input.columns.map(({ type }) => type);
    this.#groups = new GroupTable(types.slice(0, node.groups));
    this.#accumulators = node.calls.map((call) =>
      accumulator(call, call.column === null ? null : types[call.column]!, node.groups === 0),
    );
  }

  next(): Batch | null {
    if (this.#order) return this.#deliver(this.#order);
    const batch = this.#input.next();
    if (batch === null) {
      this.#order = this.#groups.order();
      return emptyBatch;
    }
    if (batch.count === 0) return emptyBatch;
    const groups = this.#groups.assign(batch);
    const size = this.#groups.size;
    let bytes = this.#groups.bytes;
    for (const each of this.#accumulators) {
      each.update(batch, groups, size);
      bytes += each.bytes;
    }
    this.#held = this.#execution.memory.change(this.#held, bytes);
    return emptyBatch;
  }

  close(): void {
    this.#input.close();
  }

  #deliver(order: Int32Array): Batch | null {
    if (this.#at >= order.length) return null;
    const groups = order.subarray(this.#at, this.#at + outputRows);
    this.#at += groups.length;
    const results = this.#accumulators.map((each) => each.result(groups));
    return { columns: [...this.#groups.keys(groups), ...results], selection: null, first: 0, count: groups.length };
  }
}
