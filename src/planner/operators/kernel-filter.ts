/**
 * A scan and the conditions on its rows as one operator: kernels find the rows of a block that are visible and pass the
 * conditions that kernels can judge, generated code tests the rest on the remaining rows. Blocks that kernels can't read go
 * through generated code alone.
 */
import type { Sift } from '../../projections/access-paths.ts';
import { type Bound } from '../expressions/bound-expression.ts';
import { compileFilter, type FilterKernel, KernelCache } from '../expressions/kernel-compiler.ts';
import { type ColumnTest, splitPredicate } from '../kernels/column-tests.ts';
import { RowMask } from '../kernels/row-mask.ts';
import type { FilterNode } from '../logical-plan.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';
import { Predicate } from './predicate.ts';
import type { ScanBatch, ScanOperator } from './scan.ts';

/** Kept with the plan. */
export interface KernelFilterKernels {
  readonly tests: readonly ColumnTest[];
  /** The condition that kernels can't judge; null: none. */
  readonly rest: KernelCache<FilterKernel> | null;
  readonly whole: KernelCache<FilterKernel> | null;
}

/** Below this a block is not worth the calls. */
const rowsMin = 512;

/** Without a condition all visible rows pass. */
export const noConditions: KernelFilterKernels = { tests: [], rest: null, whole: null };

export function kernelFilterKernels({ predicate }: FilterNode): KernelFilterKernels {
  const { tests, rest } = splitPredicate(predicate);
  const cache = (bound: Bound): KernelCache<FilterKernel> => new KernelCache(bound, compileFilter);
  return { tests, rest: rest && cache(rest), whole: cache(predicate) };
}

export class KernelFilterOperator implements Operator {
  readonly #scan: ScanOperator;
  readonly #mask: RowMask;
  readonly #testing: boolean;
  readonly #rest: Predicate | null;
  readonly #whole: Predicate | null;
  /** A batch of which a part is tested. */
  #held: { readonly predicate: Predicate; readonly batch: Batch } | null = null;

  constructor(scan: ScanOperator, { tests, rest, whole }: KernelFilterKernels, execution: Execution) {
    this.#scan = scan;
    this.#mask = new RowMask(tests, execution.kernels);
    this.#testing = tests.length > 0;
    this.#rest = rest && new Predicate(rest, execution);
    this.#whole = whole && new Predicate(whole, execution);
  }

  next(): Batch | null {
    if (this.#held) return this.#passing(this.#held.predicate, this.#held.batch, this.#held.predicate.goOn());
    const block = this.#scan.next();
    if (block === null) return null;
    if (block.count === 0) return emptyBatch;
    const judged = block.sift !== undefined || (this.#testing && block.selection === null && block.count >= rowsMin);
    const passingCount = judged ? this.#mask.select(block, true) : -1;
    if (passingCount >= 0) return this.#pass(this.#rest, this.#batchOf(block, passingCount));
    return this.#pass(this.#whole, block.sift ? this.#siftVisible(block, block.sift) : block);
  }

  #pass(predicate: Predicate | null, batch: Batch): Batch {
    if (batch.count === 0) return emptyBatch;
    return predicate ? this.#passing(predicate, batch, predicate.select(batch)) : batch;
  }

  #passing(predicate: Predicate, batch: Batch, count: number): Batch {
    this.#held = count < 0 ? { predicate, batch } : null;
    if (count < 0) return emptyBatch;
    // If all rows pass, the batch stays as it is: consecutive rows are copied at once.
    return count === batch.count ? batch : { columns: batch.columns, selection: predicate.passing, first: 0, count };
  }

  close(): void {
    this.#mask.release();
    this.#scan.close();
  }

  /** Visible rows of a block whose conditions are not for kernels. */
  #siftVisible(block: ScanBatch, sift: Sift): Batch {
    const passingCount = this.#mask.select(block, false);
    return passingCount >= 0 ? this.#batchOf(block, passingCount) : siftedHere(block, sift);
  }

  #batchOf({ columns, first, count }: ScanBatch, passingCount: number): Batch {
    if (passingCount === count) return { columns, selection: null, first, count };
    return { columns, selection: this.#mask.selection, first: 0, count: passingCount };
  }
}

/** Sifts rows in JavaScript, where the memory has no workspace. */
function siftedHere({ columns, first, count }: ScanBatch, { live, closings, closing, visible }: Sift): Batch {
  const rows = new Int32Array(count);
  let passingCount = 0;
  for (let row = first; row < first + count; row++) {
    if (live !== null && ((live[row >>> 5]! >>> (row & 31)) & 1) === 0) continue;
    if (closings !== null && closings[row]! < closing) continue;
    if (visible && ((visible[row >>> 5]! >>> (row & 31)) & 1) === 0) continue;
    rows[passingCount++] = row;
  }
  return { columns, selection: rows, first: 0, count: passingCount };
}
