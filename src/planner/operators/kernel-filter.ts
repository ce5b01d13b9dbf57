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
const maskedRowsMin = 512;

/** Without a condition all visible rows pass. */
export const noConditions: KernelFilterKernels = { tests: [], rest: null, whole: null };

export function kernelFilterKernels({ predicate }: FilterNode): KernelFilterKernels {
  const { tests, rest } = splitPredicate(predicate);
  const kernelCache = (bound: Bound): KernelCache<FilterKernel> => new KernelCache(bound, compileFilter);
  return { tests, rest: rest && kernelCache(rest), whole: kernelCache(predicate) };
}

export class KernelFilterOperator implements Operator {
  readonly #filteredScan: ScanOperator;
  readonly #rowMask: RowMask;
  readonly #hasColumnTests: boolean;
  readonly #restPredicate: Predicate | null;
  readonly #wholePredicate: Predicate | null;
  /** A batch of which a part is tested. */
  #unfinishedFilter: { readonly predicate: Predicate; readonly batch: Batch } | null = null;

  constructor(scan: ScanOperator, { tests, rest, whole }: KernelFilterKernels, execution: Execution) {
    this.#filteredScan = scan;
    this.#rowMask = new RowMask(tests, execution.kernels);
    this.#hasColumnTests = tests.length > 0;
    this.#restPredicate = rest && new Predicate(rest, execution);
    this.#wholePredicate = whole && new Predicate(whole, execution);
  }

  next(): Batch | null {
    if (this.#unfinishedFilter)
      return this.#passingBatch(
        this.#unfinishedFilter.predicate,
        this.#unfinishedFilter.batch,
        this.#unfinishedFilter.predicate.goOn(),
      );
    const scanBlock = this.#filteredScan.next();
    if (scanBlock === null) return null;
    if (scanBlock.count === 0) return emptyBatch;
    const isMasked =
      scanBlock.sift !== undefined || (this.#hasColumnTests && scanBlock.selection === null && scanBlock.count >= maskedRowsMin);
    const passingCount = isMasked ? this.#rowMask.select(scanBlock, true) : -1;
    if (passingCount >= 0) return this.#passThrough(this.#restPredicate, this.#maskedBatch(scanBlock, passingCount));
    return this.#passThrough(this.#wholePredicate, scanBlock.sift ? this.#siftVisible(scanBlock, scanBlock.sift) : scanBlock);
  }

  #passThrough(predicate: Predicate | null, batch: Batch): Batch {
    if (batch.count === 0) return emptyBatch;
    return predicate ? this.#passingBatch(predicate, batch, predicate.select(batch)) : batch;
  }

  #passingBatch(predicate: Predicate, batch: Batch, count: number): Batch {
    this.#unfinishedFilter = count < 0 ? { predicate, batch } : null;
    if (count < 0) return emptyBatch;
    // If all rows pass, the batch stays as it is: consecutive rows are copied at once.
    return count === batch.count ? batch : { columns: batch.columns, selection: predicate.passing, first: 0, count };
  }

  close(): void {
    this.#rowMask.release();
    this.#filteredScan.close();
  }

  /** Visible rows of a block whose conditions are not for kernels. */
  #siftVisible(scanBlock: ScanBatch, sift: Sift): Batch {
    const passingCount = this.#rowMask.select(scanBlock, false);
    return passingCount >= 0 ? this.#maskedBatch(scanBlock, passingCount) : siftRows(scanBlock, sift);
  }

  #maskedBatch({ columns, first, count }: ScanBatch, passingCount: number): Batch {
    if (passingCount === count) return { columns, selection: null, first, count };
    return { columns, selection: this.#rowMask.selection, first: 0, count: passingCount };
  }
}

/** Sifts rows in JavaScript, where the memory has no workspace. */
function siftRows({ columns, first, count }: ScanBatch, { live, closings, closing, visible }: Sift): Batch {
  const siftedRows = new Int32Array(count);
  let passingCount = 0;
  for (let blockRow = first; blockRow < first + count; blockRow++) {
    if (live !== null && ((live[blockRow >>> 5]! >>> (blockRow & 31)) & 1) === 0) continue;
    if (closings !== null && closings[blockRow]! < closing) continue;
    if (visible && ((visible[blockRow >>> 5]! >>> (blockRow & 31)) & 1) === 0) continue;
    siftedRows[passingCount++] = blockRow;
  }
  return { columns, selection: siftedRows, first: 0, count: passingCount };
}
