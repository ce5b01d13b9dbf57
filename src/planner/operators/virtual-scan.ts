/** Rows of a virtual relation, in pieces that are made while they are first read. */
import { ServiceError } from '../../errors.ts';
import type { VirtualNode, VirtualRead } from '../logical-plan.ts';
import type { Narrowing } from './key-filter.ts';
import { type Batch, emptyBatch, type Execution, type Operator, type RowPiece } from './operator.ts';

export class VirtualOperator implements Operator {
  readonly #virtualNode: VirtualNode;
  readonly #execution: Execution;
  readonly #keyNarrowings: readonly Narrowing[];
  #virtualPieces: Iterator<RowPiece | undefined> | null = null;

  constructor(node: VirtualNode, execution: Execution, narrowings: readonly Narrowing[]) {
    this.#keyNarrowings = narrowings;
    this.#virtualNode = node;
    this.#execution = execution;
  }

  next(): Batch | null {
    const { done: isDone, value: virtualPiece } = (this.#virtualPieces ??= this.#execution.virtual(this.#virtualRead())).next();
    if (isDone === true) return null;
    if (virtualPiece === undefined) return emptyBatch;
    const { counters } = this.#execution;
    const { scannedRowsMax } = this.#execution.limits;
    counters.scanned += virtualPiece.count;
    if (counters.scanned > scannedRowsMax)
      throw new ServiceError('REL_SCAN_CAP', `the query scans more than ${scannedRowsMax} rows`);
    return { columns: virtualPiece.columns, selection: null, first: 0, count: virtualPiece.count };
  }

  /** Called before the first row: by then the keys of the other side of a join are known. */
  #virtualRead(): VirtualRead {
    const { relation, columns, among = [] } = this.#virtualNode;
    const { kernels } = this.#execution;
    const statedCells = among.map(({ column, values }) => ({ column, cells: values.map((value) => kernels.constant(value)) }));
    const columnKeys = this.#keyNarrowings.flatMap(({ column, filter }) => {
      const keyTexts = filter.lookUps();
      const { name, type } = columns[column]!;
      return keyTexts === null ? [] : [{ column: name, cells: type === 'integer' ? keyTexts.map(BigInt) : keyTexts }];
    });
    return { relation, columns, among: [...statedCells, ...columnKeys] };
  }

  close(): void {
    this.#virtualPieces?.return?.();
  }
}
