/** Rows that the statement spells out. */
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import type { ValuesNode } from '../logical-plan.ts';
import type { Batch, Execution, Operator } from './operator.ts';

export class ValuesOperator implements Operator {
  readonly #valuesNode: ValuesNode;
  readonly #execution: Execution;
  #deliveredRows = 0;

  constructor(node: ValuesNode, execution: Execution) {
    this.#valuesNode = node;
    this.#execution = execution;
  }

  next(): Batch | null {
    const { rows, columns } = this.#valuesNode;
    const valueRows = rows.slice(this.#deliveredRows, this.#deliveredRows + valuesRowsPerBatch);
    if (valueRows.length === 0) return null;
    this.#deliveredRows += valueRows.length;
    const valueVectors = columns.map(({ type }, c) => {
      const columnBuilder = new VectorBuilder(type, valueRows.length);
      for (const valueRow of valueRows) {
        const valueCell = this.#execution.kernels.constant(valueRow[c]!);
        columnBuilder.append(type === 'number' && typeof valueCell === 'bigint' ? Number(valueCell) : valueCell);
      }
      return columnBuilder.build();
    });
    return { columns: valueVectors, selection: null, first: 0, count: valueRows.length };
  }

  close(): void {}
}

const valuesRowsPerBatch = 4_096;
