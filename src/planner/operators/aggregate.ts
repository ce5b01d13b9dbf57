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

const outputRowsMax = 4_096;
const outputRowsMin = 32;
const outputCellsPerTurn = 65_536;
/** Least cost of a function call in ns, for small numbers of rows. */
const aggregateCallCost = 2_000;

export class AggregateOperator implements Operator {
  readonly #aggregateInput: Operator;
  readonly #execution: Execution;
  readonly #groupTable: GroupTable;
  readonly #inputTurns: Turns;
  /** Nanoseconds of a row, by function. */
  readonly #callCosts: readonly number[];
  readonly #outputBatchRows: number;
  /** A share that is being taken up, one function after the other. */
  #takingBatch: Generator<undefined, void, void> | null = null;
  readonly #accumulators: readonly Accumulator[];
  readonly #rowCounts = new RowCounts();
  readonly #groupColumnCount: number;
  readonly #needsGroupNumbers: boolean;
  readonly #groupKernels: GroupKernels;
  #heldBytes = 0;
  #groupOrder: Int32Array | null = null;
  #deliveredGroups = 0;

  constructor(input: Operator, node: AggregateNode, execution: Execution) {
    this.#aggregateInput = input;
    this.#execution = execution;
    const inputTypes = node.input.columns.map(({ type }) => type);
    this.#groupTable = new GroupTable(inputTypes.slice(0, node.groups));
    this.#groupColumnCount = node.groups;
    this.#inputTurns = new Turns(aggregateWork(node));
    this.#callCosts = node.calls.map((call) => aggregateCost(call).call);
    this.#outputBatchRows = Math.min(
      outputRowsMax,
      Math.max(outputRowsMin, Math.floor(outputCellsPerTurn / (node.groups + node.calls.length))),
    );
    this.#accumulators = node.calls.map((call) => accumulator(call, inputTypes));
    this.#needsGroupNumbers = this.#accumulators.some((columnAccumulator) => columnAccumulator.byPlace);
    this.#groupKernels = new GroupKernels(this.#groupTable, this.#accumulators, node.groups);
  }

  next(): Batch | null {
    if (this.#groupOrder) return this.#deliverGroups(this.#groupOrder);
    if (this.#takingBatch === null) {
      const batch = this.#inputTurns.next(() => this.#aggregateInput.next());
      if (batch === null) {
        this.#groupOrder = this.#groupTable.order();
        return emptyBatch;
      }
      if (batch.count === 0) return emptyBatch;
      if (!this.#groupKernels.take(batch, this.#rowCounts)) this.#takingBatch = this.#takeBatch(batch);
    }
    if (this.#takingBatch?.next().done === false) return emptyBatch;
    this.#takingBatch = null;
    let aggregateBytes = this.#groupTable.bytes + this.#rowCounts.counts.byteLength;
    for (const columnAccumulator of this.#accumulators) aggregateBytes += columnAccumulator.bytes;
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, aggregateBytes);
    return emptyBatch;
  }

  close(): void {
    this.#groupKernels.release();
    this.#aggregateInput.close();
  }

  /** Takes a batch by generated code, which reads any layout. */
  *#takeBatch(batch: Batch): Generator<undefined, void, void> {
    const groupSource = yield* this.#groupSource(batch);
    const groupTableSize = this.#groupTable.size;
    this.#rowCounts.reserve(groupTableSize);
    const loopFragments: Fragment[] = [];
    let turnCost = 0;
    for (const [i, columnAccumulator] of this.#accumulators.entries()) {
      const loopFragment = columnAccumulator.prepare(batch, groupTableSize);
      if (loopFragment) loopFragments.push(loopFragment);
      else if (groupSource.kind === 'groups') {
        columnAccumulator.update(batch, groupSource.groups, groupTableSize);
        turnCost += aggregateCallCost + batch.count * this.#callCosts[i]!;
        if (turnCost < turnMost) continue;
        turnCost = 0;
        yield;
      }
    }
    // Without keys all rows are of one group; no function needs to look rows up by place.
    if (this.#groupColumnCount > 0) accumulate(batch, groupSource, loopFragments, this.#rowCounts);
    else if (loopFragments.length > 0) accumulate(batch, { kind: 'single' }, loopFragments, this.#rowCounts);
    else this.#rowCounts.counts[0]! += batch.count;
  }

  /** Functions that go over the rows by themselves need the groups by place. */
  *#groupSource(batch: Batch): Generator<undefined, GroupSource, void> {
    if (this.#needsGroupNumbers) return { kind: 'groups', groups: yield* this.#groupTable.assigning(batch) };
    if (this.#groupColumnCount === 0) return { kind: 'single' };
    const groupCodes = this.#groupTable.codes(batch);
    if (groupCodes) return { kind: 'codes', ...groupCodes };
    const groupPairs = this.#groupTable.codePairs(batch);
    return groupPairs ? { kind: 'pairs', ...groupPairs } : { kind: 'groups', groups: yield* this.#groupTable.assigning(batch) };
  }

  #deliverGroups(groupOrder: Int32Array): Batch | null {
    if (this.#deliveredGroups >= groupOrder.length) return null;
    const deliveredGroups = groupOrder.subarray(this.#deliveredGroups, this.#deliveredGroups + this.#outputBatchRows);
    this.#deliveredGroups += deliveredGroups.length;
    const groupResults = this.#accumulators.map((columnAccumulator) =>
      columnAccumulator.result(deliveredGroups, this.#rowCounts.counts),
    );
    return {
      columns: [...this.#groupTable.keys(deliveredGroups), ...groupResults],
      selection: null,
      first: 0,
      count: deliveredGroups.length,
    };
  }
}

function aggregateCost({ function: name, distinct }: AggregateCall): Cost {
  const { call, character } = aggregateFunctions[name].cost;
  return distinct ? { call: call + distinctCost.call, character: character + distinctCost.character } : { call, character };
}

function aggregateWork({ groups, calls }: AggregateNode): ColumnWork[] {
  const groupKeyWork = Array.from({ length: groups }, (_, column) => ({ column, cost: keyCost }));
  return [...groupKeyWork, ...calls.map((call) => ({ column: call.column, cost: aggregateCost(call) }))];
}
