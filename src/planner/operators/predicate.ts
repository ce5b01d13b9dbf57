/** A condition over the rows of batches, run by kernels that belong to the plan. */
import type { FilterKernel, KernelCache } from '../expressions/kernel-compiler.ts';
import { widen } from '../expressions/kernel-runtime.ts';
import { work } from '../expressions/expression-cost.ts';
import { type Batch, emptyBatch, type Execution, lastRows } from './operator.ts';

export class Predicate {
  readonly #kernels: KernelCache<FilterKernel>;
  readonly #execution: Execution;
  #wide = false;
  #rest = emptyBatch;
  /** The number of rows that passed. */
  #count = 0;
  /** Row numbers that `select` found, in the order of the batch; valid until its next call. */
  passing = new Int32Array(0);

  constructor(kernels: KernelCache<FilterKernel>, execution: Execution) {
    this.#kernels = kernels;
    this.#execution = execution;
  }

  /** How many rows of the batch the condition is true for: neither false nor NULL; -1 where `goOn` is to tell, after others had a turn. */
  select(batch: Batch): number {
    // One slot more than rows: the kernel writes before it knows whether the row stays.
    if (this.passing.length <= batch.count) this.passing = new Int32Array(batch.count + 1);
    this.#rest = batch;
    this.#count = 0;
    return this.goOn();
  }

  /** Continues with the remaining rows of that batch. */
  goOn(): number {
    const rest = this.#rest;
    work.done = work.left = 0;
    this.#count += this.#run(rest);
    if (work.left === 0) return this.#count;
    this.#rest = lastRows(rest, work.left);
    return -1;
  }

  /** Selects rows in turns, with other work in between. */
  *inTurns(batch: Batch): Generator<Batch, number> {
    let count = this.select(batch);
    for (; count < 0; count = this.goOn()) yield emptyBatch;
    return count;
  }

  /** Compiles what `select` will run. */
  prepare({ columns, selection }: Batch): FilterKernel {
    return this.#kernels.get({ columns, context: this.#execution.kernels, dense: selection === null, wide: this.#wide });
  }

  #run(batch: Batch): number {
    const { columns, selection, first, count } = batch;
    const context = this.#execution.kernels;
    try {
      const kernel = this.prepare(batch);
      return kernel(
        columns,
        context,
        selection,
        first,
        count,
        this.#count === 0 ? this.passing : this.passing.subarray(this.#count),
      );
    } catch (error) {
      if (error !== widen || this.#wide) throw error;
      this.#wide = true;
      return this.#run(batch);
    }
  }
}
