/** Rows of a virtual relation, in pieces that are made while they are first read. */
import { ServiceError } from '../../errors.ts';
import type { VirtualNode, VirtualRead } from '../logical-plan.ts';
import type { Narrowing } from './key-filter.ts';
import { type Batch, emptyBatch, type Execution, type Operator, type RowPiece } from './operator.ts';

export class VirtualOperator implements Operator {
  readonly #node: VirtualNode;
  readonly #execution: Execution;
  readonly #narrowings: readonly Narrowing[];
  #pieces: Iterator<RowPiece | undefined> | null = null;

  constructor(node: VirtualNode, execution: Execution, narrowings: readonly Narrowing[]) {
    this.#narrowings = narrowings;
    this.#node = node;
    this.#execution = execution;
  }

  next(): Batch | null {
    const { done, value: piece } = (this.#pieces ??= this.#execution.virtual(this.#read())).next();
    if (done === true) return null;
    if (piece === undefined) return emptyBatch;
    const { counters } = this.#execution;
    const { scannedRowsMax } = this.#execution.limits;
    counters.scanned += piece.count;
    if (counters.scanned > scannedRowsMax)
      throw new ServiceError('REL_SCAN_CAP', `the query scans more than ${scannedRowsMax} rows`);
    return { columns: piece.columns, selection: null, first: 0, count: piece.count };
  }

  /** Called before the first row: by then the keys of the other side of a join are known. */
  #read(): VirtualRead {
    const { relation, columns, among = [] } = this.#node;
    const { kernels } = this.#execution;
    const stated = among.map(({ column, values }) => ({ column, cells: values.map((value) => kernels.constant(value)) }));
    const columnKeys = this.#narrowings.flatMap(({ column, filter }) => {
      const texts = filter.lookUps();
      const { name, type } = columns[column]!;
      return texts === null ? [] : [{ column: name, cells: type === 'integer' ? texts.map(BigInt) : texts }];
    });
    return { relation, columns, among: [...stated, ...columnKeys] };
  }

  close(): void {
    this.#pieces?.return?.();
  }
}
