/** The number of each row, as one more column. */
import { type Batch, emptyBatch, type Operator } from './operator.ts';

export class NumberOperator implements Operator {
  readonly #input: Operator;
  #next = 0;
  #values = new Int32Array(0);

  constructor(input: Operator) {
    this.#input = input;
  }

  next(): Batch | null {
    const batch = this.#input.next();
    if (batch === null) return null;
    const { columns, selection, first, count } = batch;
    if (count === 0) return emptyBatch;
    let length = first + count;
    if (selection !== null) for (let j = 0; j < count; j++) if (selection[j]! >= length) length = selection[j]! + 1;
    if (this.#values.length < length) this.#values = new Int32Array(length + (length >> 1));
    const values = this.#values;
    let next = this.#next;
    if (selection === null) for (let row = first; row < first + count; row++) values[row] = next++;
    else for (let j = 0; j < count; j++) values[selection[j]!] = next++;
    this.#next = next;
    return { columns: [...columns, { kind: 'i32', values, nulls: null }], selection, first, count };
  }

  close(): void {
    this.#input.close();
  }
}
