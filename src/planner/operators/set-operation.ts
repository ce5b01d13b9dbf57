/**
 * UNION, INTERSECT and EXCEPT, with ALL and without. Rows are the same when every column is, NULLs included. Rows come in order of
 * first appearance, those of left before those of right; intersect and except read right first and keep its rows' groups, with ALL
 * how many each has: so many rows of left come out, or are left out.
 */
import type { SetOperationNode } from '../logical-plan.ts';
import { GroupTable } from './group-table.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';

export class SetOperationOperator implements Operator {
  readonly #leftArm: Operator;
  readonly #rightArm: Operator;
  readonly #setOp: SetOperationNode['op'];
  readonly #execution: Execution;
  readonly #rowGroups: GroupTable;
  readonly #keepsDuplicates: boolean;
  /** By group: `inRightMark`, and `takenMark` once it came out; with ALL, how many rows of right are not met yet. */
  #groupMarks: Int32Array = new Int32Array(1024);
  #passing = new Int32Array(0);
  #heldBytes = 0;
  /** The block that another such operation has just given. */
  #waitingBatch: Batch | null = null;
  #readingStage: 'left' | 'right' | 'ended';

  constructor(left: Operator, right: Operator, node: SetOperationNode, execution: Execution) {
    this.#leftArm = left;
    this.#rightArm = right;
    this.#setOp = node.op;
    this.#keepsDuplicates = node.op.endsWith(' all');
    this.#execution = execution;
    this.#rowGroups = new GroupTable(node.columns.map(({ type }) => type));
    this.#readingStage = this.#readsRightFirst ? 'right' : 'left';
  }

  next(): Batch | null {
    if (this.#readingStage === 'ended') return null;
    const currentArm = this.#readingStage === 'left' ? this.#leftArm : this.#rightArm;
    const armBatch = this.#waitingBatch ?? currentArm.next();
    if (armBatch === null) {
      this.#readingStage =
        this.#readingStage === (this.#readsRightFirst ? 'left' : 'right')
          ? 'ended'
          : this.#readingStage === 'left'
            ? 'right'
            : 'left';
      return emptyBatch;
    }
    if (armBatch.count === 0) return emptyBatch;
    if (this.#setOp === 'union all') return armBatch;
    // There may be hundreds of them, one on top of the other: a block goes up by one in a call.
    if (this.#waitingBatch === null && currentArm instanceof SetOperationOperator) {
      this.#waitingBatch = armBatch;
      return emptyBatch;
    }
    this.#waitingBatch = null;
    if (this.#readingStage === 'right' && this.#readsRightFirst) {
      this.#markRightRows(armBatch);
      return emptyBatch;
    }
    return this.#keepRows(armBatch);
  }

  close(): void {
    this.#leftArm.close();
    this.#rightArm.close();
  }

  get #readsRightFirst(): boolean {
    return this.#setOp.startsWith('intersect') || this.#setOp.startsWith('except');
  }

  #markRightRows(batch: Batch): void {
    const rowGroups = this.#assignGroups(batch);
    for (let j = 0; j < batch.count; j++) {
      const rowGroup = rowGroups[j]!;
      this.#groupMarks[rowGroup] = this.#keepsDuplicates ? this.#groupMarks[rowGroup]! + 1 : inRightMark;
    }
  }

  /** Rows of groups that come out and did not yet. */
  #keepRows(batch: Batch): Batch {
    const { columns, selection, first, count } = batch;
    const rowGroups = this.#assignGroups(batch);
    const wantedMark = this.#setOp === 'intersect' ? inRightMark : 0;
    if (this.#passing.length < count) this.#passing = new Int32Array(count);
    let keptCount = 0;
    for (let j = 0; j < count; j++) {
      const rowGroup = rowGroups[j]!;
      if (this.#keepsDuplicates) {
        const isInRight = this.#groupMarks[rowGroup]! > 0;
        if (isInRight) this.#groupMarks[rowGroup]!--;
        if (isInRight === this.#setOp.startsWith('except')) continue;
      } else {
        if (this.#groupMarks[rowGroup] !== wantedMark) continue;
        this.#groupMarks[rowGroup] = wantedMark | takenMark;
      }
      this.#passing[keptCount++] = selection === null ? first + j : selection[j]!;
    }
    return { columns, selection: this.#passing, first: 0, count: keptCount };
  }

  #assignGroups(batch: Batch): Int32Array {
    const rowGroups = this.#rowGroups.assign(batch);
    const groupCount = this.#rowGroups.size;
    if (this.#groupMarks.length < groupCount) {
      const largerMarks = new Int32Array(Math.max(this.#groupMarks.length * 2, groupCount));
      largerMarks.set(this.#groupMarks);
      this.#groupMarks = largerMarks;
    }
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, this.#rowGroups.bytes + this.#groupMarks.byteLength);
    return rowGroups;
  }
}

const inRightMark = 1;
const takenMark = 2;
