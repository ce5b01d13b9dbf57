/** Rows that differ in some column from all rows before them. */
import type { DistinctNode } from '../logical-plan.ts';
import { GroupTable } from './group-table.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';
import { keyCost, Turns } from './block-slicer.ts';

export class DistinctOperator implements Operator {
  readonly #input: Operator;
  readonly #execution: Execution;
  readonly #groups: GroupTable;
  readonly #turns: Turns;
  #seen = new Uint8Array(64);
  #firstRows = new Int32Array(0);
  #heldBytes = 0;

  constructor(input: Operator, node: DistinctNode, execution: Execution) {
    this.#input = input;
    this.#execution = execution;
    this.#groups = new GroupTable(node.columns.map(({ type }) => type));
    this.#turns = new Turns(node.columns.map((_, column) => ({ column, cost: keyCost })));
  }

  next(): Batch | null {
    const batch = this.#turns.next(() => this.#input.next());
    if (batch === null) return null;
    if (batch.count === 0) return emptyBatch;
    const groups = this.#groups.assign(batch);
    const size = this.#groups.size;
    if (this.#seen.length < size) {
      const seen = new Uint8Array(Math.max(this.#seen.length * 2, size));
      seen.set(this.#seen);
      this.#seen = seen;
    }
    if (this.#firstRows.length < batch.count) this.#firstRows = new Int32Array(batch.count);
    let count = 0;
    for (let j = 0; j < batch.count; j++) {
      const group = groups[j]!;
      if (this.#seen[group] === 1) continue;
      this.#seen[group] = 1;
      this.#firstRows[count++] = batch.selection ? batch.selection[j]! : batch.first + j;
    }
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, this.#groups.bytes + this.#seen.length);
    return { columns: batch.columns, selection: this.#firstRows, first: 0, count };
  }

  close(): void {
    this.#input.close();
  }
}
