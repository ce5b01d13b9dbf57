/** Keeps the rows for which a condition is true: neither false nor NULL. */
import { compileFilter, type FilterKernel, KernelCache } from '../expressions/kernel-compiler.ts';
import type { FilterNode } from '../logical-plan.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';
import { Predicate } from './predicate.ts';

/** Kernels of one filter node; kept with the plan. */
export function filterKernels(node: FilterNode): KernelCache<FilterKernel> {
  return new KernelCache(node.predicate, compileFilter);
}

export class FilterOperator implements Operator {
  readonly #input: Operator;
  readonly #predicate: Predicate;

  constructor(input: Operator, kernels: KernelCache<FilterKernel>, execution: Execution) {
    this.#input = input;
    this.#predicate = new Predicate(kernels, execution);
  }

  next(): Batch | null {
    const batch = this.#input.next();
    if (batch === null) return null;
    if (batch.count === 0) return emptyBatch;
    const count = this.#predicate.select(batch);
    return { columns: batch.columns, selection: this.#predicate.kept, first: 0, count };
  }

  close(): void {
    this.#input.close();
  }
}
