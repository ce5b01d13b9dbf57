/**
 * UNION, INTERSECT and EXCEPT, with ALL and without. Rows are the same when every column is, NULLs included. Rows come in order of
 * first appearance, those of left before those of right; intersect and except read right first and keep its rows' groups, with ALL
 * how many each has: so many rows of left come out, or are left out.
 */
import type { SetOperationNode } from '../logical-plan.ts';
import { GroupTable } from './group-table.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';

export class SetOperationOperator implements Operator {
  readonly #left: Operator;
  readonly #right: Operator;
  readonly #op: SetOperationNode['op'];
  readonly #execution: Execution;
  readonly #groups: GroupTable;
  readonly #all: boolean;
  /** By group: `inRight`, and `taken` once it came out; with ALL, how many rows of right are not met yet. */
  #marks: Int32Array = new Int32Array(1024);
  #passing = new Int32Array(0);
  #heldBytes = 0;
  /** The block that another such operation has just given. */
  #waiting: Batch | null = null;
  #stage: 'left' | 'right' | 'ended';

  constructor(left: Operator, right: Operator, node: SetOperationNode, execution: Execution) {
    this.#left = left;
    this.#right = right;
    this.#op = node.op;
    this.#all = node.op.endsWith(' all');
    this.#execution = execution;
    this.#groups = new GroupTable(node.columns.map(({ type }) => type));
    this.#stage = this.#readsRightFirst ? 'right' : 'left';
  }

  next(): Batch | null {
    if (this.#stage === 'ended') return null;
    const input = this.#stage === 'left' ? this.#left : this.#right;
    const batch = this.#waiting ?? input.next();
    if (batch === null) {
      this.#stage =
        this.#stage === (this.#readsRightFirst ? 'left' : 'right') ? 'ended' : this.#stage === 'left' ? 'right' : 'left';
      return emptyBatch;
    }
    if (batch.count === 0) return emptyBatch;
    if (this.#op === 'union all') return batch;
    // There may be hundreds of them, one on top of the other: a block goes up by one in a call.
    if (this.#waiting === null && input instanceof SetOperationOperator) {
      this.#waiting = batch;
      return emptyBatch;
    }
    this.#waiting = null;
    if (this.#stage === 'right' && this.#readsRightFirst) {
      this.#mark(batch);
      return emptyBatch;
    }
    return this.#keep(batch);
  }

  close(): void {
    this.#left.close();
    this.#right.close();
  }

  get #readsRightFirst(): boolean {
    return this.#op.startsWith('intersect') || this.#op.startsWith('except');
  }

  #mark(batch: Batch): void {
    const groups = this.#assign(batch);
    for (let j = 0; j < batch.count; j++) {
      const group = groups[j]!;
      this.#marks[group] = this.#all ? this.#marks[group]! + 1 : inRight;
    }
  }

  /** Rows of groups that come out and did not yet. */
  #keep(batch: Batch): Batch {
    const { columns, selection, first, count } = batch;
    const groups = this.#assign(batch);
    const wanted = this.#op === 'intersect' ? inRight : 0;
    if (this.#passing.length < count) this.#passing = new Int32Array(count);
    let n = 0;
    for (let j = 0; j < count; j++) {
      const group = groups[j]!;
      if (this.#all) {
        const isMet = this.#marks[group]! > 0;
        if (isMet) this.#marks[group]!--;
        if (isMet === this.#op.startsWith('except')) continue;
      } else {
        if (this.#marks[group] !== wanted) continue;
        this.#marks[group] = wanted | taken;
      }
      this.#passing[n++] = selection === null ? first + j : selection[j]!;
    }
    return { columns, selection: this.#passing, first: 0, count: n };
  }

  #assign(batch: Batch): Int32Array {
    const groups = this.#groups.assign(batch);
    const size = this.#groups.size;
    if (this.#marks.length < size) {
      const marks = new Int32Array(Math.max(this.#marks.length * 2, size));
      marks.set(this.#marks);
      this.#marks = marks;
    }
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, this.#groups.bytes + this.#marks.byteLength);
    return groups;
  }
}

const inRight = 1;
const taken = 2;
