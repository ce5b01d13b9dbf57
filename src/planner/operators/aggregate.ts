/** Groups and their results. Takes a block a call; once the input has ended, delivers groups in order of first appearance. */
import type { AggregateNode } from '../logical-plan.ts';
import { GroupKernels } from '../kernels/group-kernels.ts';
import { accumulate, type Accumulator, type Fragment, type GroupSource, RowCounts } from './accumulate.ts';
import { accumulator } from './accumulators.ts';
import { GroupTable } from './group-table.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';
import { Turns } from './turns.ts';

const outputRows = 4_096;

export class AggregateOperator implements Operator {
  readonly #input: Operator;
  readonly #execution: Execution;
  readonly #groups: GroupTable;
  readonly #turns: Turns;
  readonly #accumulators: readonly Accumulator[];
  readonly #rows = new RowCounts();
  readonly #groupCount: number;
  readonly #byPlace: boolean;
  readonly #kernels: GroupKernels;
  #held = 0;
  #order: Int32Array | null = null;
  #at = 0;

  constructor(input: Operator, node: AggregateNode, execution: Execution) {
    this.#input = input;
    this.#execution = execution;
    const types = node.input.columns.map(({ type }) => type);
    this.#groups = new GroupTable(types.slice(0, node.groups));
    this.#groupCount = node.groups;
    this.#turns = new Turns(node.groups + node.calls.length);
    this.#accumulators = node.calls.map((call) => accumulator(call, types));
    this.#byPlace = this.#accumulators.some((each) => each.byPlace);
    this.#kernels = new GroupKernels(this.#groups, this.#accumulators, node.groups);
  }

  next(): Batch | null {
    if (this.#order) return this.#deliver(this.#order);
    const batch = this.#turns.next(() => this.#input.next());
    if (batch === null) {
      this.#order = this.#groups.order();
      return emptyBatch;
    }
    if (batch.count === 0) return emptyBatch;
    if (!this.#kernels.take(batch, this.#rows)) this.#take(batch);
    let bytes = this.#groups.bytes + this.#rows.counts.byteLength;
    for (const each of this.#accumulators) bytes += each.bytes;
    this.#held = this.#execution.memory.change(this.#held, bytes);
    return emptyBatch;
  }

  close(): void {
    this.#kernels.release();
    this.#input.close();
  }

  /** By generated code, which reads any layout. */
  #take(batch: Batch): void {
    const source = this.#source(batch);
    const size = this.#groups.size;
    this.#rows.reserve(size);
    const fragments: Fragment[] = [];
    for (const each of this.#accumulators) {
      const fragment = each.prepare(batch, size);
      if (fragment) fragments.push(fragment);
      else if (source.kind === 'groups') each.update(batch, source.groups, size);
    }
    // Without keys all rows are of one group, whoever wanted it by place.
    if (this.#groupCount > 0) accumulate(batch, source, fragments, this.#rows);
    else if (fragments.length > 0) accumulate(batch, { kind: 'single' }, fragments, this.#rows);
    else this.#rows.counts[0]! += batch.count;
  }

  /** Functions that go over the rows by themselves need the groups by place. */
  #source(batch: Batch): GroupSource {
    if (this.#byPlace) return { kind: 'groups', groups: this.#groups.assign(batch) };
    if (this.#groupCount === 0) return { kind: 'single' };
    const codes = this.#groups.codes(batch);
    if (codes) return { kind: 'codes', ...codes };
    const pairs = this.#groups.codePairs(batch);
    return pairs ? { kind: 'pairs', ...pairs } : { kind: 'groups', groups: this.#groups.assign(batch) };
  }

  #deliver(order: Int32Array): Batch | null {
    if (this.#at >= order.length) return null;
    const groups = order.subarray(this.#at, this.#at + outputRows);
    this.#at += groups.length;
    const results = this.#accumulators.map((each) => each.result(groups, this.#rows.counts));
    return { columns: [...this.#groups.keys(groups), ...results], selection: null, first: 0, count: groups.length };
  }
}
