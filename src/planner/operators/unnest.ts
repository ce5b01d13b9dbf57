/** The elements of arrays as rows: each row once for each of them, beside its own columns. A shorter array ends in NULLs. */
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import type { Cell, ColumnType } from '../../log/values/value.ts';
import type { SpreadNode } from '../logical-plan.ts';
import { elementsOf } from '../system-catalogue/catalogue-types.ts';
import type { Batch, Execution, Operator } from './operator.ts';

const rowsPerBatch = 1_024;

export class SpreadOperator implements Operator {
  readonly #input: Operator;
  readonly #node: SpreadNode;
  readonly #execution: Execution;
  #batch: Batch | null = null;
  /** The row at hand, and the element of it that comes next. */
  #at = 0;
  #element = 0;
  #arrays: readonly (readonly Cell[])[] | null = null;

  constructor(input: Operator, node: SpreadNode, execution: Execution) {
    this.#input = input;
    this.#node = node;
    this.#execution = execution;
  }

  next(): Batch | null {
    if (this.#batch === null || this.#at >= this.#batch.count) {
      this.#batch = this.#input.next();
      this.#at = 0;
      if (this.#batch === null || this.#batch.count === 0) return this.#batch;
    }
    const { columns, width } = this.#node;
    const batch = this.#batch;
    const builders = columns.map(({ type }) => new VectorBuilder(type, rowsPerBatch));
    let count = 0;
    for (; this.#at < batch.count && count < rowsPerBatch; this.#at++, this.#element = 0, this.#arrays = null) {
      const row = batch.selection === null ? batch.first + this.#at : batch.selection[this.#at]!;
      const arrays = (this.#arrays ??= this.#arraysOf(batch, row));
      const most = Math.max(...arrays.map(({ length }) => length));
      for (; this.#element < most && count < rowsPerBatch; this.#element++, count++) {
        for (let c = 0; c < width; c++) builders[c]!.append(cellAt(batch.columns[c]!, columns[c]!.type, row));
        for (const [i, array] of arrays.entries()) builders[width + i]!.append(array[this.#element] ?? null);
      }
      if (this.#element < most) break;
    }
    const { counters } = this.#execution;
    counters.scanned += count;
    return { columns: builders.map((builder) => builder.build()), selection: null, first: 0, count };
  }

  close(): void {
    this.#input.close();
  }

  #arraysOf({ columns }: Batch, row: number): readonly (readonly Cell[])[] {
    const { width, columns: own } = this.#node;
    return own.slice(width).map(({ type }, i) => {
      const text = cellAt(columns[width + i]!, 'string', row);
      return text === null ? [] : elementsOf(text as string, '_text').map((each) => elementCell(each, type));
    });
  }
}

function elementCell(text: string | null, type: ColumnType): Cell {
  if (text === null) return null;
  switch (type) {
    case 'integer':
    case 'timestamp':
      return BigInt(text);
    case 'number':
      return Number(text);
    case 'boolean':
      return text === 't';
    default:
      return text;
  }
}
