/**
 * Rows of several types, one type after the other. A type that the statement did not name and the caller may not read yields no
 * rows.
 */
import type { Opening } from '../calls/table-function.ts';
import type { Batch, Operator } from '../operators/operator.ts';
import { isClosed } from './node-and-edge-types.ts';
import { rowsName } from './pattern-columns.ts';
import { patternFunction } from './inner-pattern-function.ts';

export const graphRows = patternFunction(rowsName, 'rows of several types', (opening) => new GraphRowsOperator(opening));

class GraphRowsOperator implements Operator {
  readonly #opening: Opening;
  #type = 0;
  #open: Operator | null = null;

  constructor(opening: Opening) {
    this.#opening = opening;
  }

  next(): Batch | null {
    const { edges } = this.#opening;
    while (this.#type < edges.length) {
      this.#open ??= this.#begin(this.#type);
      const batch = this.#open?.next() ?? null;
      if (batch !== null) return batch;
      this.close();
      this.#type++;
    }
    return null;
  }

  close(): void {
    this.#open?.close();
    this.#open = null;
  }

  #begin(type: number): Operator | null {
    const { edges, node } = this.#opening;
    try {
      return edges[type]!();
    } catch (error) {
      if (!node.graph!.types.nodes[type]!.named && isClosed(error)) return null;
      throw error;
    }
  }
}
