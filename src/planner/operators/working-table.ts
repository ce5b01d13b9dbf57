/** The rows that the last round of a recursion added, as input of its step. */
import { ServiceError } from '../../errors.ts';
import type { WorkingNode } from '../logical-plan.ts';
import { emptyBatch, type Batch, type Execution, type Operator, type RowPiece } from './operator.ts';

/** Reads pieces one after the other, in batches of bounded size. */
export function piecesReader(pieces: readonly RowPiece[], blockRows: number): Operator {
  let at = 0;
  let first = 0;
  return {
    next(): Batch | null {
      const piece = pieces[at];
      if (piece === undefined) return null;
      const count = Math.min(blockRows, piece.count - first);
      const batch = count === 0 ? emptyBatch : { columns: piece.columns, selection: null, first, count };
      first += count;
      if (first === piece.count) {
        at++;
        first = 0;
      }
      return batch;
    },
    close() {
      at = pieces.length;
    },
  };
}

export class WorkingOperator implements Operator {
  readonly #execution: Execution;
  readonly #rows: Operator;

  constructor(node: WorkingNode, execution: Execution) {
    this.#execution = execution;
    this.#rows = piecesReader(execution.working.get(node.table)!, execution.limits.blockRows);
  }

  next(): Batch | null {
    const batch = this.#rows.next();
    // A recursion reads nothing new from storage: its rows count as scanned all the same.
    const {
      counters,
      limits: { scannedRowsMax },
    } = this.#execution;
    counters.scanned += batch?.count ?? 0;
    if (counters.scanned > scannedRowsMax) {
      throw new ServiceError('REL_SCAN_CAP', `the query scans more than ${scannedRowsMax} rows`);
    }
    return batch;
  }

  close(): void {
    this.#rows.close();
  }
}
