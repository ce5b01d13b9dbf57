/** Keeps the rows for which a condition is true: neither false nor NULL. */
import { compileFilter, type FilterKernel, KernelCache } from '../expressions/kernel-compiler.ts';
import { widen } from '../expressions/kernel-runtime.ts';
import type { FilterNode } from '../logical-plan.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';

/** Kernels of one filter node; kept with the plan. */
export function filterKernels(node: FilterNode): KernelCache<FilterKernel> {
  return new KernelCache(node.predicate, compileFilter);
}

export class FilterOperator implements Operator {
  readonly #input: Operator;
  readonly #kernels: KernelCache<FilterKernel>;
  readonly #execution: Execution;
  #kept = new Int32Array(0);
  #wide = false;

  constructor(input: Operator, kernels: KernelCache<FilterKernel>, execution: Execution) {
    this.#input = input;
    this.#kernels = kernels;
    this.#execution = execution;
  }

  next(): Batch | null {
    const batch = this.#input.next();
    if (batch === null) return null;
    if (batch.count === 0) return emptyBatch;
    // One slot more than rows: the kernel writes before it knows whether the row stays.
    if (this.#kept.length <= batch.count) this.#kept = new Int32Array(batch.count + 1);
    const count = this.#run(batch);
    return { columns: batch.columns, selection: this.#kept, first: 0, count };
  }

  close(): void {
    this.#input.close();
  }

  #run(batch: Batch): number {
    const { columns, selection, first, count } = batch;
    const context = this.#execution.kernels;
    try {
      const kernel = this.#kernels.get({ columns, context, dense: selection === null, wide: this.#wide });
      return kernel(columns, context, selection, first, count, this.#kept);
    } catch (error) {
      if (error !== widen || this.#wide) throw error;
      this.#wide = true;
      return this.#run(batch);
    }
  }
}
