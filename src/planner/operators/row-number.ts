/** The number of each row, as one more column. */
import { type Batch, emptyBatch, type Operator } from './operator.ts';

export class NumberOperator implements Operator {
  readonly #numberedInput: Operator;
  #nextRowNumber = 0;
  #rowNumbers = new Int32Array(0);

  constructor(input: Operator) {
    this.#numberedInput = input;
  }

  next(): Batch | null {
    const batch = this.#numberedInput.next();
    if (batch === null) return null;
    const { columns, selection, first, count } = batch;
    if (count === 0) return emptyBatch;
    let numberedLength = first + count;
    if (selection !== null)
      for (let j = 0; j < count; j++) if (selection[j]! >= numberedLength) numberedLength = selection[j]! + 1;
    if (this.#rowNumbers.length < numberedLength) this.#rowNumbers = new Int32Array(numberedLength + (numberedLength >> 1));
    const rowNumbers = this.#rowNumbers;
    let nextRowNumber = this.#nextRowNumber;
    if (selection === null)
      for (let numberedRow = first; numberedRow < first + count; numberedRow++) rowNumbers[numberedRow] = nextRowNumber++;
    else for (let j = 0; j < count; j++) rowNumbers[selection[j]!] = nextRowNumber++;
    this.#nextRowNumber = nextRowNumber;
    return { columns: [...columns, { kind: 'i32', values: rowNumbers, nulls: null }], selection, first, count };
  }

  close(): void {
    this.#numberedInput.close();
  }
}
