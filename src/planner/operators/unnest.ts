/** The elements of arrays as rows: each row once for each of them, beside its own columns. A shorter array ends in NULLs. */
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import type { Cell, ColumnType } from '../../log/values/value.ts';
import type { SpreadNode } from '../logical-plan.ts';
import { elementsOf } from '../system-catalogue/catalogue-types.ts';
import type { Batch, Execution, Operator } from './operator.ts';

const unnestRowsPerBatch = 1_024;

export class SpreadOperator implements Operator {
  readonly #spreadInput: Operator;
  readonly #spreadNode: SpreadNode;
  readonly #execution: Execution;
  #spreadBatch: Batch | null = null;
  /** The row at hand, and the element of it that comes next. */
  #spreadRowIndex = 0;
  #elementIndex = 0;
  #rowArrays: readonly (readonly Cell[])[] | null = null;

  constructor(input: Operator, node: SpreadNode, execution: Execution) {
    this.#spreadInput = input;
    this.#spreadNode = node;
    this.#execution = execution;
  }

  next(): Batch | null {
    if (this.#spreadBatch === null || this.#spreadRowIndex >= this.#spreadBatch.count) {
      this.#spreadBatch = this.#spreadInput.next();
      this.#spreadRowIndex = 0;
      if (this.#spreadBatch === null || this.#spreadBatch.count === 0) return this.#spreadBatch;
    }
    const { columns, width } = this.#spreadNode;
    const spreadBatch = this.#spreadBatch;
    const elementBuilders = columns.map(({ type }) => new VectorBuilder(type, unnestRowsPerBatch));
    let elementCount = 0;
    for (
      ;
      this.#spreadRowIndex < spreadBatch.count && elementCount < unnestRowsPerBatch;
      this.#spreadRowIndex++, this.#elementIndex = 0, this.#rowArrays = null
    ) {
      const spreadRow =
        spreadBatch.selection === null ? spreadBatch.first + this.#spreadRowIndex : spreadBatch.selection[this.#spreadRowIndex]!;
      const rowArrays = (this.#rowArrays ??= this.#arraysOfRow(spreadBatch, spreadRow));
      const longestArray = Math.max(...rowArrays.map(({ length }) => length));
      for (; this.#elementIndex < longestArray && elementCount < unnestRowsPerBatch; this.#elementIndex++, elementCount++) {
        for (let c = 0; c < width; c++) elementBuilders[c]!.append(cellAt(spreadBatch.columns[c]!, columns[c]!.type, spreadRow));
        for (const [i, elementArray] of rowArrays.entries())
          elementBuilders[width + i]!.append(elementArray[this.#elementIndex] ?? null);
      }
      if (this.#elementIndex < longestArray) break;
    }
    const { counters } = this.#execution;
    counters.scanned += elementCount;
    return { columns: elementBuilders.map((builder) => builder.build()), selection: null, first: 0, count: elementCount };
  }

  close(): void {
    this.#spreadInput.close();
  }

  #arraysOfRow({ columns }: Batch, spreadRow: number): readonly (readonly Cell[])[] {
    const { width, columns: spreadColumns } = this.#spreadNode;
    return spreadColumns.slice(width).map(({ type }, i) => {
      const arrayText = cellAt(columns[width + i]!, 'string', spreadRow);
      return arrayText === null
        ? []
        : elementsOf(arrayText as string, '_text').map((elementText) => arrayElementCell(elementText, type));
    });
  }
}

function arrayElementCell(elementText: string | null, type: ColumnType): Cell {
  if (elementText === null) return null;
  switch (type) {
    case 'integer':
    case 'timestamp':
      return BigInt(elementText);
    case 'number':
      return Number(elementText);
    case 'boolean':
      return elementText === 't';
    default:
      return elementText;
  }
}
