/** A condition over the rows of batches, run by kernels that belong to the plan. */
import type { FilterKernel, KernelCache } from '../expressions/kernel-compiler.ts';
import { widen } from '../expressions/kernel-runtime.ts';
import { work } from '../expressions/expression-cost.ts';
import { type Batch, emptyBatch, type Execution, lastRows } from './operator.ts';

export class Predicate {
  readonly #filterKernels: KernelCache<FilterKernel>;
  readonly #execution: Execution;
  #isWide = false;
  #unfilteredRows = emptyBatch;
  /** The number of rows that passed. */
  #keptCount = 0;
  /** Row numbers that `select` found, in the order of the batch; valid until its next call. */
  passing = new Int32Array(0);

  constructor(kernels: KernelCache<FilterKernel>, execution: Execution) {
    this.#filterKernels = kernels;
    this.#execution = execution;
  }

  /** How many rows of the batch the condition is true for: neither false nor NULL; -1 where `goOn` is to tell, after others had a turn. */
  select(batch: Batch): number {
    // One slot more than rows: the kernel writes before it knows whether the row stays.
    if (this.passing.length <= batch.count) this.passing = new Int32Array(batch.count + 1);
    this.#unfilteredRows = batch;
    this.#keptCount = 0;
    return this.goOn();
  }

  /** Continues with the remaining rows of that batch. */
  goOn(): number {
    const unfilteredRows = this.#unfilteredRows;
    work.done = work.left = 0;
    this.#keptCount += this.#runFilter(unfilteredRows);
    if (work.left === 0) return this.#keptCount;
    this.#unfilteredRows = lastRows(unfilteredRows, work.left);
    return -1;
  }

  /** Selects rows in turns, with other work in between. */
  *inTurns(batch: Batch): Generator<Batch, number> {
    let keptCount = this.select(batch);
    for (; keptCount < 0; keptCount = this.goOn()) yield emptyBatch;
    return keptCount;
  }

  /** Compiles what `select` will run. */
  prepare({ columns, selection }: Batch): FilterKernel {
    return this.#filterKernels.get({ columns, context: this.#execution.kernels, dense: selection === null, wide: this.#isWide });
  }

  #runFilter(batch: Batch): number {
    const { columns, selection, first, count } = batch;
    const kernelContext = this.#execution.kernels;
    try {
      const filterKernel = this.prepare(batch);
      return filterKernel(
        columns,
        kernelContext,
        selection,
        first,
        count,
        this.#keptCount === 0 ? this.passing : this.passing.subarray(this.#keptCount),
      );
    } catch (error) {
      if (error !== widen || this.#isWide) throw error;
      this.#isWide = true;
      return this.#runFilter(batch);
    }
  }
}
