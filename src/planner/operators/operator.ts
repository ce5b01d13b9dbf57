/**
 * The interface of operators, and the batches that they exchange. `next` does a bounded amount of work (about one block) and
 * returns, so that the driver can look at the clock between any two calls; a batch without rows means "call again", null means
 * "no more". A batch is valid until the next call: an operator that keeps rows longer copies them (`column-sink.ts`).
 */
import { ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import type { TimeBounds } from '../../projections/access-paths.ts';
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { LongWork } from './statement-job.ts';
import type { KernelContext } from '../expressions/kernel-context.ts';
import type { PlanNode, RowCount, VirtualRead } from '../logical-plan.ts';
import type { Consistency } from '../planner-contract.ts';
import type { Services } from '../run-services.ts';
import type { Literal } from '../syntax/statement.ts';

/** Row numbers in `selection[0..count)` index every vector; null means first .. first+count-1. */
export interface Batch {
  readonly columns: readonly Vector[];
  readonly selection: Int32Array | null;
  readonly first: number;
  readonly count: number;
}

export interface Operator {
  next(): Batch | null;
  /** Lets go of the store. Called once, also when the query ends early. */
  close(): void;
}

/** Looks on while operators run. */
export interface Watch {
  around(node: PlanNode, operator: Operator): Operator;
}

export const emptyBatch: Batch = { columns: [], selection: null, first: 0, count: 0 };

/** The last rows of a batch. */
export function lastRows({ columns, selection, first, count }: Batch, rows: number): Batch {
  const skippedRows = count - rows;
  return selection === null
    ? { columns, selection, first: first + skippedRows, count: rows }
    : { columns, selection: selection.subarray(skippedRows), first, count: rows };
}

/** Batches that are made one by one, as they are asked for. */
export type Pieces<T = void> = Generator<Batch, T, void>;

/** An operator that is written as a generator; it begins with the first `next`. */
export abstract class PiecesOperator implements Operator {
  #operatorPieces: Pieces | null = null;

  next(): Batch | null {
    const nextPiece = (this.#operatorPieces ??= this.pieces()).next();
    return nextPiece.done ? null : nextPiece.value;
  }

  abstract close(): void;
  protected abstract pieces(): Pieces;
}

/** The context that operators of one execution share. */
export interface Execution {
  readonly snapshot: GovernedSnapshot;
  readonly kernels: KernelContext;
  readonly time: TimeBounds;
  readonly after: bigint | null;
  /** Basis of an earlier page: versions written or closed after it are not visible. */
  readonly pinned: bigint | null;
  /** Literals of the statement and its views, by slot. */
  readonly literals: readonly Literal[];
  /** Number of rows that a LIMIT or an OFFSET says. */
  readonly rowLimit: (limit: RowCount) => number;
  /** Scans say which rows have the same text, where that is known. */
  readonly distinct?: true;
  /** Rows that the last round of a recursion added, by its name; there are some inside its step only. */
  readonly working: ReadonlyMap<string, WorkingRows>;
  /** Rows of virtual relations, which are not stored; undefined: call again. */
  readonly virtual: (read: VirtualRead) => Iterator<RowPiece | undefined>;
  /** Rows that a scan delivers, and no more; absent: all. */
  readonly rowsMax?: number;
  readonly limits: ExecutionLimits;
  readonly services: Services;
  readonly consistency: Consistency;
  /** Types whose texts are being indexed, and were not waited for. */
  readonly unbuilt: Set<string>;
  /** Where a question about a graph is listed once it takes long; null: nowhere. */
  readonly longWork: LongWork | null;
  /** An operator that gives an empty batch is called again once this settles; it never rejects. */
  readonly wait: { until: Promise<void> | null };
  /** Sentences about this answer, as they come up. */
  readonly notices: string[];
  /** The value that the statement's table function awaited. */
  readonly prepared?: unknown;
  readonly memory: MemoryMeter;
  readonly counters: Counters;
  /** null: the run is not measured. */
  readonly watch: Watch | null;
}

export interface ExecutionLimits {
  /** Rows that operators exchange at once. */
  readonly blockRows: number;
  /** Rows that an aggregate takes at once by kernels. */
  readonly kernelRows: number;
  readonly scannedRowsMax: number;
  /** Rows that a function that ranks may yield. */
  readonly vectorRowsMax: number;
  /** Visible rows from which on nearest vectors are found approximately. */
  readonly vectorExactRows: number;
  /** Rows that a function over the graph may yield. */
  readonly graphRowsMax: number;
}

/** Rows that stand in columns of their own. */
export interface RowPiece {
  readonly columns: readonly Vector[];
  readonly count: number;
}

/** Pieces that follow each other. */
export type WorkingRows = readonly RowPiece[];

export interface Counters {
  scanned: number;
  /** Looks at edges of a graph. */
  looks: number;
  /** Rows that matched before LIMIT, as far as they were counted. */
  hits: number;
  /** Graphs that said which rows are near. */
  byGraph: number;
  /** Stretches that were left out, as their texts are being indexed. */
  leftOut: number;
  /** Answers that went on from earlier ones. */
  warm: number;
}

/** Bytes that one query holds on to. */
export class MemoryMeter {
  readonly bytesMax: number;
  #meteredBytes: number;

  constructor(bytesMax: number, bytes = 0) {
    this.bytesMax = bytesMax;
    this.#meteredBytes = bytes;
  }

  get bytes(): number {
    return this.#meteredBytes;
  }

  /** Replaces the bytes that an owner held before by those that it holds now. */
  change(bytesBefore: number, bytesNow: number): number {
    this.#meteredBytes += bytesNow - bytesBefore;
    if (this.#meteredBytes > this.bytesMax) {
      throw new ServiceError('REL_MEMORY_CAP', `the query needs more than ${this.bytesMax} bytes of memory`);
    }
    return bytesNow;
  }
}

/** How many rows from the first on are wanted, those included that a skip above drops. */
export function firstRows(limit: RowCount, offset: RowCount | undefined, { rowLimit }: Pick<Execution, 'rowLimit'>): number {
  return rowLimit(limit) + (offset === undefined ? 0 : rowLimit(offset));
}
