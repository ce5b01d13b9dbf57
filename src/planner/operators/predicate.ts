/** A condition over the rows of batches, run by kernels that belong to the plan. */
import type { FilterKernel, KernelCache } from '../expressions/kernel-compiler.ts';
import { widen } from '../expressions/kernel-runtime.ts';
import type { Batch, Execution } from './operator.ts';

export class Predicate {
  readonly #kernels: KernelCache<FilterKernel>;
  readonly #execution: Execution;
  #wide = false;
  /** Row numbers that `select` found, in the order of the batch; valid until its next call. */
  kept = new Int32Array(0);

  constructor(kernels: KernelCache<FilterKernel>, execution: Execution) {
    this.#kernels = kernels;
    this.#execution = execution;
  }

  /** How many rows of the batch the condition is true for: neither false nor NULL. */
  select(batch: Batch): number {
    // One slot more than rows: the kernel writes before it knows whether the row stays.
    if (this.kept.length <= batch.count) this.kept = new Int32Array(batch.count + 1);
    return this.#run(batch);
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
      return kernel(columns, context, selection, first, count, this.kept);
    } catch (error) {
      if (error !== widen || this.#wide) throw error;
      this.#wide = true;
      return this.#run(batch);
    }
  }
}
