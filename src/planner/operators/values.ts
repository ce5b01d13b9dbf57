/** Rows that the statement spells out. */
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import type { ValuesNode } from '../logical-plan.ts';
import type { Batch, Execution, Operator } from './operator.ts';

export class ValuesOperator implements Operator {
  readonly #node: ValuesNode;
  readonly #execution: Execution;
  #at = 0;

  constructor(node: ValuesNode, execution: Execution) {
    this.#node = node;
    this.#execution = execution;
  }

  next(): Batch | null {
    const { rows, columns } = this.#node;
    const piece = rows.slice(this.#at, this.#at + rowsPerBatch);
    if (piece.length === 0) return null;
    this.#at += piece.length;
    const vectors = columns.map(({ type }, c) => {
      const builder = new VectorBuilder(type, piece.length);
      for (const row of piece) {
        const cell = this.#execution.kernels.constant(row[c]!);
        builder.append(type === 'number' && typeof cell === 'bigint' ? Number(cell) : cell);
      }
      return builder.build();
    });
    return { columns: vectors, selection: null, first: 0, count: piece.length };
  }

  close(): void {}
}

const rowsPerBatch = 4_096;
