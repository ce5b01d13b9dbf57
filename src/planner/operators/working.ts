/** The rows that the last round of a recursion added, as input of its step. */
import { ServiceError } from '../../errors.ts';
import type { WorkingNode } from '../logical-plan.ts';
import type { Batch, Execution, Operator, WorkingRows } from './operator.ts';

export class WorkingOperator implements Operator {
  readonly #execution: Execution;
  readonly #rows: WorkingRows;
  #at = 0;

  constructor(node: WorkingNode, execution: Execution) {
    this.#execution = execution;
    this.#rows = execution.working.get(node.table)!;
  }

  next(): Batch | null {
    const { columns, count } = this.#rows;
    const first = this.#at;
    const taken = Math.min(this.#execution.limits.blockRows, count - first);
    if (taken === 0) return null;
    this.#at += taken;
    // A recursion reads nothing new from storage: its rows count as scanned all the same.
    const { counters } = this.#execution;
    const { scannedRowsMax } = this.#execution.limits;
    counters.scanned += taken;
    if (counters.scanned > scannedRowsMax) {
      throw new ServiceError('REL_SCAN_CAP', `the query scans more than ${scannedRowsMax} rows`);
    }
    return { columns, selection: null, first, count: taken };
  }

  close(): void {
    this.#at = this.#rows.count;
  }
}
