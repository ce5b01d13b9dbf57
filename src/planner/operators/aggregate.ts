/** Groups and their results. Takes a block a call; once the input has ended, delivers groups in order of first appearance. */
import type { AggregateCall, AggregateNode } from '../logical-plan.ts';
import { GroupKernels } from './group-kernels.ts';
import { accumulate, type Accumulator, type Fragment, type GroupSource, RowCounts } from './aggregate-loop.ts';
import { accumulator } from './accumulators.ts';
import { GroupTable } from './group-table.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';
import { type ColumnWork, keyCost, Turns } from './block-slicer.ts';
import { aggregateFunctions, distinctCost } from '../aggregate-functions.ts';
import { type Cost, turnMost } from '../expressions/expression-cost.ts';

const outputRows = 4_096;
const outputRowsMin = 32;
const cellsPerTurn = 65_536;
/** Least cost of a function call in ns, for small numbers of rows. */
const callCost = 2_000;

export class AggregateOperator implements Operator {
  readonly #input: Operator;
  readonly #execution: Execution;
  readonly #groups: GroupTable;
  readonly #turns: Turns;
  /** Nanoseconds of a row, by function. */
  readonly #costs: readonly number[];
  readonly #outputRows: number;
  /** A share that is being taken up, one function after the other. */
  #taking: Generator<undefined, void, void> | null = null;
  readonly #accumulators: readonly Accumulator[];
  readonly #rows = new RowCounts();
  readonly #groupCount: number;
  readonly #byPlace: boolean;
  readonly #kernels: GroupKernels;
  #heldBytes = 0;
  #order: Int32Array | null = null;
  #at = 0;

  constructor(input: Operator, node: AggregateNode, execution: Execution) {
    this.#input = input;
    this.#execution = execution;
    const types = node.input.columns.map(({ type }) => type);
    this.#groups = new GroupTable(types.slice(0, node.groups));
    this.#groupCount = node.groups;
    this.#turns = new Turns(worksOf(node));
    this.#costs = node.calls.map((call) => costOf(call).call);
    this.#outputRows = Math.min(
      outputRows,
      Math.max(outputRowsMin, Math.floor(cellsPerTurn / (node.groups + node.calls.length))),
    );
    this.#accumulators = node.calls.map((call) => accumulator(call, types));
    this.#byPlace = this.#accumulators.some((each) => each.byPlace);
    this.#kernels = new GroupKernels(this.#groups, this.#accumulators, node.groups);
  }

  next(): Batch | null {
    if (this.#order) return this.#deliver(this.#order);
    if (this.#taking === null) {
      const batch = this.#turns.next(() => this.#input.next());
      if (batch === null) {
        this.#order = this.#groups.order();
        return emptyBatch;
      }
      if (batch.count === 0) return emptyBatch;
      if (!this.#kernels.take(batch, this.#rows)) this.#taking = this.#take(batch);
    }
    if (this.#taking?.next().done === false) return emptyBatch;
    this.#taking = null;
    let bytes = this.#groups.bytes + this.#rows.counts.byteLength;
    for (const each of this.#accumulators) bytes += each.bytes;
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, bytes);
    return emptyBatch;
  }

  close(): void {
    this.#kernels.release();
    this.#input.close();
  }

  /** Takes a batch by generated code, which reads any layout. */
  *#take(batch: Batch): Generator<undefined, void, void> {
    const source = yield* this.#source(batch);
    const size = this.#groups.size;
    this.#rows.reserve(size);
    const fragments: Fragment[] = [];
    let spent = 0;
    for (const [i, each] of this.#accumulators.entries()) {
      const fragment = each.prepare(batch, size);
      if (fragment) fragments.push(fragment);
      else if (source.kind === 'groups') {
        each.update(batch, source.groups, size);
        spent += callCost + batch.count * this.#costs[i]!;
        if (spent < turnMost) continue;
        spent = 0;
        yield;
      }
    }
    // Without keys all rows are of one group; no function needs to look rows up by place.
    if (this.#groupCount > 0) accumulate(batch, source, fragments, this.#rows);
    else if (fragments.length > 0) accumulate(batch, { kind: 'single' }, fragments, this.#rows);
    else this.#rows.counts[0]! += batch.count;
  }

  /** Functions that go over the rows by themselves need the groups by place. */
  *#source(batch: Batch): Generator<undefined, GroupSource, void> {
    if (this.#byPlace) return { kind: 'groups', groups: yield* this.#groups.assigning(batch) };
    if (this.#groupCount === 0) return { kind: 'single' };
    const codes = this.#groups.codes(batch);
    if (codes) return { kind: 'codes', ...codes };
    const pairs = this.#groups.codePairs(batch);
    return pairs ? { kind: 'pairs', ...pairs } : { kind: 'groups', groups: yield* this.#groups.assigning(batch) };
  }

  #deliver(order: Int32Array): Batch | null {
    if (this.#at >= order.length) return null;
    const groups = order.subarray(this.#at, this.#at + this.#outputRows);
    this.#at += groups.length;
    const results = this.#accumulators.map((each) => each.result(groups, this.#rows.counts));
    return { columns: [...this.#groups.keys(groups), ...results], selection: null, first: 0, count: groups.length };
  }
}

function costOf({ function: name, distinct }: AggregateCall): Cost {
  const { call, character } = aggregateFunctions[name].cost;
  return distinct ? { call: call + distinctCost.call, character: character + distinctCost.character } : { call, character };
}

function worksOf({ groups, calls }: AggregateNode): ColumnWork[] {
  const keys = Array.from({ length: groups }, (_, column) => ({ column, cost: keyCost }));
  return [...keys, ...calls.map((call) => ({ column: call.column, cost: costOf(call) }))];
}
