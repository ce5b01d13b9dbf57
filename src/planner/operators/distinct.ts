/** Rows that differ in some column from all rows before them. */
import type { DistinctNode } from '../logical-plan.ts';
import { GroupTable } from './group-table.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';
import { keyCost, Turns } from './block-slicer.ts';

export class DistinctOperator implements Operator {
  readonly #distinctInput: Operator;
  readonly #execution: Execution;
  readonly #distinctGroups: GroupTable;
  readonly #distinctTurns: Turns;
  #seenGroups = new Uint8Array(64);
  #firstRows = new Int32Array(0);
  #heldBytes = 0;

  constructor(input: Operator, node: DistinctNode, execution: Execution) {
    this.#distinctInput = input;
    this.#execution = execution;
    this.#distinctGroups = new GroupTable(node.columns.map(({ type }) => type));
    this.#distinctTurns = new Turns(node.columns.map((_, column) => ({ column, cost: keyCost })));
  }

  next(): Batch | null {
    const batch = this.#distinctTurns.next(() => this.#distinctInput.next());
    if (batch === null) return null;
    if (batch.count === 0) return emptyBatch;
    const rowGroups = this.#distinctGroups.assign(batch);
    const groupTableSize = this.#distinctGroups.size;
    if (this.#seenGroups.length < groupTableSize) {
      const largerSeen = new Uint8Array(Math.max(this.#seenGroups.length * 2, groupTableSize));
      largerSeen.set(this.#seenGroups);
      this.#seenGroups = largerSeen;
    }
    if (this.#firstRows.length < batch.count) this.#firstRows = new Int32Array(batch.count);
    let distinctCount = 0;
    for (let j = 0; j < batch.count; j++) {
      const rowGroup = rowGroups[j]!;
      if (this.#seenGroups[rowGroup] === 1) continue;
      this.#seenGroups[rowGroup] = 1;
      this.#firstRows[distinctCount++] = batch.selection ? batch.selection[j]! : batch.first + j;
    }
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, this.#distinctGroups.bytes + this.#seenGroups.length);
    return { columns: batch.columns, selection: this.#firstRows, first: 0, count: distinctCount };
  }

  close(): void {
    this.#distinctInput.close();
  }
}
