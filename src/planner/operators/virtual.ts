/** Rows of a virtual relation, made in small pieces while they are read. */
import { ServiceError } from '../../errors.ts';
import type { Cell } from '../../log/values/value.ts';
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import type { VirtualNode, VirtualRead } from '../logical-plan.ts';
import type { Narrowing } from './key-filter.ts';
import type { Batch, Execution, Operator } from './operator.ts';

/** A piece is work for a fraction of a turn, however many columns are asked for. */
const cellsPerBatch = 4_096;

export class VirtualOperator implements Operator {
  readonly #node: VirtualNode;
  readonly #execution: Execution;
  readonly #narrowings: readonly Narrowing[];
  readonly #rowsPerBatch: number;
  #rows: Iterator<readonly Cell[]> | null = null;

  constructor(node: VirtualNode, execution: Execution, narrowings: readonly Narrowing[]) {
    this.#narrowings = narrowings;
    this.#node = node;
    this.#execution = execution;
    this.#rowsPerBatch = Math.max(64, Math.floor(cellsPerBatch / Math.max(1, node.columns.length)));
  }

  next(): Batch | null {
    const { columns } = this.#node;
    const rows = (this.#rows ??= this.#execution.virtual(this.#read())[Symbol.iterator]());
    const builders = columns.map(({ type }) => new VectorBuilder(type, this.#rowsPerBatch));
    let count = 0;
    for (; count < this.#rowsPerBatch; count++) {
      const { done, value } = rows.next();
      if (done === true) break;
      for (const [c, builder] of builders.entries()) builder.append(value[c]!);
    }
    if (count === 0) return null;
    const { counters } = this.#execution;
    const { scannedRowsMax } = this.#execution.limits;
    counters.scanned += count;
    if (counters.scanned > scannedRowsMax)
      throw new ServiceError('REL_SCAN_CAP', `the query scans more than ${scannedRowsMax} rows`);
    return { columns: builders.map((builder) => builder.build()), selection: null, first: 0, count };
  }

  /** Called before the first row: by then the keys of the other side of a join are known. */
  #read(): VirtualRead {
    const { relation, columns, among = [] } = this.#node;
    const { kernels } = this.#execution;
    const stated = among.map(({ column, values }) => ({ column, cells: values.map((value) => kernels.constant(value)) }));
    const told = this.#narrowings.flatMap(({ column, filter }) => {
      const texts = filter.lookUps();
      const { name, type } = columns[column]!;
      return texts === null ? [] : [{ column: name, cells: type === 'integer' ? texts.map(BigInt) : texts }];
    });
    return { relation, columns, among: [...stated, ...told] };
  }

  close(): void {
    this.#rows?.return?.();
  }
}
