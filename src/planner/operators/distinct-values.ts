/** Passes on the first row of each value in each group: a function over distinct values. NULLs are no values. */
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { accumulate, type Accumulator, type Fragment, RowByRow, RowCounts } from './aggregate-loop.ts';
import type { Batch } from './operator.ts';
import { PairNumbers } from './pair-numbers.ts';
import { type ValueNumbers, valueNumbers } from './value-numbers.ts';

/** An accumulator whose `prepare` always has a share of the common loop. */
interface SharedLoopAccumulator extends Accumulator {
  prepare(batch: Batch, groupsMax: number): Fragment;
}

export class OfDistinct extends RowByRow {
  readonly #distinctAccumulator: SharedLoopAccumulator;
  readonly #distinctColumn: number;
  readonly #distinctValues: ValueNumbers;
  readonly #groupValuePairs = new PairNumbers();
  readonly #distinctRowCounts = new RowCounts();
  #valueNumbers = new Int32Array(0);
  #firstRows = new Int32Array(0);
  /** Values that the only group has met, while there is one. */
  #singleGroupValues = 0;
  /** The last batch brought no new value. */
  #isSettled = false;

  constructor(inner: SharedLoopAccumulator, column: number, type: ColumnType) {
    super();
    this.#distinctAccumulator = inner;
    this.#distinctColumn = column;
    this.#distinctValues = valueNumbers(type);
  }

  get bytes(): number {
    return (
      this.#distinctValues.bytes +
      this.#groupValuePairs.bytes +
      this.#distinctRowCounts.counts.byteLength +
      this.#distinctAccumulator.bytes
    );
  }

  update(batch: Batch, groupNumbers: Int32Array, groupsMax: number): void {
    if (this.#valueNumbers.length < batch.count) {
      this.#valueNumbers = new Int32Array(batch.count);
      this.#firstRows = new Int32Array(batch.count);
    }
    const rowValueNumbers = this.#valueNumbers;
    const distinctVector = batch.columns[this.#distinctColumn]!;
    const knownValues = this.#distinctValues.size;
    if (groupsMax === 1 && this.#isSettled) {
      // One group has met what anybody has: values that all came before add nothing.
      this.#distinctValues.meet(distinctVector, batch, rowValueNumbers);
      if (this.#distinctValues.size === knownValues) return;
    }
    this.#distinctValues.assign(distinctVector, batch, rowValueNumbers);
    this.#isSettled = this.#distinctValues.size === knownValues;
    const firstRows = this.#firstRows;
    const admittedCount = this.#admitPairs(groupNumbers, rowValueNumbers, batch.count, groupsMax, knownValues);
    const admittedRows = new Int32Array(admittedCount);
    const admittedGroups = new Int32Array(admittedCount);
    let count = 0;
    for (let n = 0; n < admittedCount; n++) {
      const j = firstRows[n]!;
      if (rowValueNumbers[j] === 0) continue;
      admittedRows[count] = batch.selection === null ? batch.first + j : batch.selection[j]!;
      admittedGroups[count++] = groupNumbers[j]!;
    }
    const firstOccurrences: Batch = { columns: batch.columns, selection: admittedRows.subarray(0, count), first: 0, count };
    this.#distinctRowCounts.reserve(groupsMax);
    accumulate(
      firstOccurrences,
      { kind: 'groups', groups: admittedGroups },
      [this.#distinctAccumulator.prepare(firstOccurrences, groupsMax)],
      this.#distinctRowCounts,
    );
  }

  /** Places of the rows that bring their group a value for the first time; `knownValues` values came in batches before. */
  #admitPairs(
    groupNumbers: Int32Array,
    rowValueNumbers: Int32Array,
    count: number,
    groupsMax: number,
    knownValues: number,
  ): number {
    const firstRows = this.#firstRows;
    if (groupsMax === 1) {
      // Numbers of new values rise by one: with a single group they show which values are new.
      let admittedCount = 0;
      let seenValues = knownValues;
      for (let j = 0; j < count; j++) {
        if (rowValueNumbers[j]! <= seenValues) continue;
        seenValues = rowValueNumbers[j]!;
        firstRows[admittedCount++] = j;
      }
      this.#singleGroupValues = seenValues;
      return admittedCount;
    }
    // A second group came: values of the first one so far become pairs as well.
    for (; this.#singleGroupValues > 0; this.#singleGroupValues--) this.#groupValuePairs.numberOf(0, this.#singleGroupValues);
    return this.#groupValuePairs.admit(groupNumbers, rowValueNumbers, count, groupsMax, this.#distinctValues.size + 1, firstRows);
  }

  result(groups: Int32Array): Vector {
    return this.#distinctAccumulator.result(groups, this.#distinctRowCounts.counts);
  }
}
