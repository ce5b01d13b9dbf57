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
  readonly #rowsOpening: Opening;
  #scannedType = 0;
  #openTypeScan: Operator | null = null;

  constructor(rowsOpening: Opening) {
    this.#rowsOpening = rowsOpening;
  }

  next(): Batch | null {
    const { edges: typeScans } = this.#rowsOpening;
    while (this.#scannedType < typeScans.length) {
      this.#openTypeScan ??= this.#beginTypeScan(this.#scannedType);
      const typeBatch = this.#openTypeScan?.next() ?? null;
      if (typeBatch !== null) return typeBatch;
      this.close();
      this.#scannedType++;
    }
    return null;
  }

  close(): void {
    this.#openTypeScan?.close();
    this.#openTypeScan = null;
  }

  #beginTypeScan(scannedType: number): Operator | null {
    const { edges: typeScans, node } = this.#rowsOpening;
    try {
      return typeScans[scannedType]!();
    } catch (error) {
      if (!node.graph!.types.nodes[scannedType]!.named && isClosed(error)) return null;
      throw error;
    }
  }
}
