/** Passes on the first row of each value in each group: a function over distinct values. NULLs are no values. */
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { accumulate, type Accumulator, type Fragment, RowByRow, RowCounts } from './aggregate-loop.ts';
import type { Batch } from './operator.ts';
import { PairNumbers } from './pair-numbers.ts';
import { type ValueNumbers, valueNumbers } from './value-numbers.ts';

/** An accumulator whose `prepare` always has a share of the common loop. */
interface SharesLoop extends Accumulator {
  prepare(batch: Batch, groupsMax: number): Fragment;
}

export class OfDistinct extends RowByRow {
  readonly #inner: SharesLoop;
  readonly #column: number;
  readonly #values: ValueNumbers;
  readonly #pairs = new PairNumbers();
  readonly #rows = new RowCounts();
  #numbers = new Int32Array(0);
  #firstRows = new Int32Array(0);
  /** Values that the only group has met, while there is one. */
  #ofOne = 0;
  /** The last batch brought no new value. */
  #settled = false;

  constructor(inner: SharesLoop, column: number, type: ColumnType) {
    super();
    this.#inner = inner;
    this.#column = column;
    this.#values = valueNumbers(type);
  }

  get bytes(): number {
    return this.#values.bytes + this.#pairs.bytes + this.#rows.counts.byteLength + this.#inner.bytes;
  }

  update(batch: Batch, groups: Int32Array, groupsMax: number): void {
    if (this.#numbers.length < batch.count) {
      this.#numbers = new Int32Array(batch.count);
      this.#firstRows = new Int32Array(batch.count);
    }
    const numbers = this.#numbers;
    const vector = batch.columns[this.#column]!;
    const known = this.#values.size;
    if (groupsMax === 1 && this.#settled) {
      // One group has met what anybody has: values that all came before add nothing.
      this.#values.meet(vector, batch, numbers);
      if (this.#values.size === known) return;
    }
    this.#values.assign(vector, batch, numbers);
    this.#settled = this.#values.size === known;
    const firstRows = this.#firstRows;
    const admitted = this.#admit(groups, numbers, batch.count, groupsMax, known);
    const rows = new Int32Array(admitted);
    const groupOf = new Int32Array(admitted);
    let count = 0;
    for (let n = 0; n < admitted; n++) {
      const j = firstRows[n]!;
      if (numbers[j] === 0) continue;
      rows[count] = batch.selection === null ? batch.first + j : batch.selection[j]!;
      groupOf[count++] = groups[j]!;
    }
    const firsts: Batch = { columns: batch.columns, selection: rows.subarray(0, count), first: 0, count };
    this.#rows.reserve(groupsMax);
    accumulate(firsts, { kind: 'groups', groups: groupOf }, [this.#inner.prepare(firsts, groupsMax)], this.#rows);
  }

  /** Places of the rows that bring their group a value for the first time; `known` values came in batches before. */
  #admit(groups: Int32Array, numbers: Int32Array, count: number, groupsMax: number, known: number): number {
    const firstRows = this.#firstRows;
    if (groupsMax === 1) {
      // Numbers of new values rise by one: with a single group they show which values are new.
      let admitted = 0;
      let seen = known;
      for (let j = 0; j < count; j++) {
        if (numbers[j]! <= seen) continue;
        seen = numbers[j]!;
        firstRows[admitted++] = j;
      }
      this.#ofOne = seen;
      return admitted;
    }
    // A second group came: values of the first one so far become pairs as well.
    for (; this.#ofOne > 0; this.#ofOne--) this.#pairs.numberOf(0, this.#ofOne);
    return this.#pairs.admit(groups, numbers, count, groupsMax, this.#values.size + 1, firstRows);
  }

  result(groups: Int32Array): Vector {
    return this.#inner.result(groups, this.#rows.counts);
  }
}
