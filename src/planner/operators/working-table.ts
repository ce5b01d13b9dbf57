/** The rows that the last round of a recursion added, as input of its step. */
import { ServiceError } from '../../errors.ts';
import type { WorkingNode } from '../logical-plan.ts';
import { emptyBatch, type Batch, type Execution, type Operator, type RowPiece } from './operator.ts';

/** Reads pieces one after the other, in batches of bounded size. */
export function piecesReader(workingPieces: readonly RowPiece[], blockRows: number): Operator {
  let pieceIndex = 0;
  let pieceRow = 0;
  return {
    next(): Batch | null {
      const workingPiece = workingPieces[pieceIndex];
      if (workingPiece === undefined) return null;
      const pieceCount = Math.min(blockRows, workingPiece.count - pieceRow);
      const workingBatch =
        pieceCount === 0 ? emptyBatch : { columns: workingPiece.columns, selection: null, first: pieceRow, count: pieceCount };
      pieceRow += pieceCount;
      if (pieceRow === workingPiece.count) {
        pieceIndex++;
        pieceRow = 0;
      }
      return workingBatch;
    },
    close() {
      pieceIndex = workingPieces.length;
    },
  };
}

export class WorkingOperator implements Operator {
  readonly #execution: Execution;
  readonly #workingRows: Operator;

  constructor(node: WorkingNode, execution: Execution) {
    this.#execution = execution;
    this.#workingRows = piecesReader(execution.working.get(node.table)!, execution.limits.blockRows);
  }

  next(): Batch | null {
    const workingBatch = this.#workingRows.next();
    // A recursion reads nothing new from storage: its rows count as scanned all the same.
    const {
      counters,
      limits: { scannedRowsMax },
    } = this.#execution;
    counters.scanned += workingBatch?.count ?? 0;
    if (counters.scanned > scannedRowsMax) {
      throw new ServiceError('REL_SCAN_CAP', `the query scans more than ${scannedRowsMax} rows`);
    }
    return workingBatch;
  }

  close(): void {
    this.#workingRows.close();
  }
}
