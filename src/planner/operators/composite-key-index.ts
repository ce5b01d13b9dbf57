/**
 * Rows by keys of any number and types. Each key gives its values small numbers, pairs of numbers get numbers again, until one
 * is left. Without keys every row has the same number.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { DenseIntegers } from './dense-integers.ts';
import type { Batch } from './operator.ts';
import { PairNumbers } from './pair-numbers.ts';
import { type Building, type RowIndex, rowsPerStep } from './row-index.ts';
import { type KeyNumbers, valueNumbers } from './value-numbers.ts';

interface KeyColumn {
  /** Which of the keys. */
  readonly key: number;
  readonly numbers: KeyNumbers;
}

export class NumberedRows implements RowIndex {
  readonly #keyColumns: readonly KeyColumn[];
  readonly #keyPairs: readonly PairNumbers[];
  readonly following: Int32Array;
  unique = true;
  /** First row + 1 by key number; null where each row has a key of its own, numbered in the order of rows. */
  #firstRows: Int32Array | null = null;
  #keyValues = new Int32Array(0);

  private constructor(columns: readonly KeyColumn[], rows: number) {
    this.#keyColumns = columns;
    this.#keyPairs = columns.slice(1).map((_, at) => new PairNumbers(at === 0 ? { leftSize: columns[0]!.numbers.size + 1 } : {}));
    this.following = new Int32Array(rows);
  }

  static *build(keyTypes: readonly ColumnType[], keys: readonly Vector[], rows: number): Building {
    const keyColumns: KeyColumn[] = [];
    for (const [keyIndex, type] of keyTypes.entries()) {
      const keyNumbers = (yield* DenseIntegers.tryFrom(keys[keyIndex]!, rows)) ?? valueNumbers(type, { exact: true });
      keyColumns.push({ key: keyIndex, numbers: keyNumbers });
    }
    // The key of most values comes first: it tells most rows apart, and pairs find the first one of a left number without a hash.
    keyColumns.sort((leftColumn, rightColumn) => rightColumn.numbers.size - leftColumn.numbers.size);
    const rowIndex = new NumberedRows(keyColumns, rows);
    // Numbers stand in `following` until the chain takes their place, from the last row to the first.
    const { following } = rowIndex;
    for (let firstOfStep = 0; firstOfStep < rows; firstOfStep += rowsPerStep) {
      const count = Math.min(rowsPerStep, rows - firstOfStep);
      rowIndex.#numberRows(
        { columns: keys, selection: null, first: firstOfStep, count },
        following.subarray(firstOfStep, firstOfStep + count),
        true,
      );
      yield;
    }
    const lastNumbering = rowIndex.#keyPairs.at(-1) ?? keyColumns[0]?.numbers;
    const keyCount = lastNumbering?.size ?? 1;
    if (keyCount === rows && !(lastNumbering instanceof DenseIntegers)) {
      following.fill(0);
      return rowIndex;
    }
    const firstRows = new Int32Array(keyCount + 1);
    let sharedKeys = 0;
    for (let row = rows - 1; row >= 0; row--) {
      const keyNumber = following[row]!;
      const nextRow = keyNumber === 0 ? 0 : firstRows[keyNumber]!;
      sharedKeys |= nextRow;
      following[row] = nextRow;
      firstRows[keyNumber] = row + 1;
      if (row % rowsPerStep === 0) yield;
    }
    firstRows[0] = 0;
    rowIndex.#firstRows = firstRows;
    rowIndex.unique = sharedKeys === 0;
    return rowIndex;
  }

  get bytes(): number {
    let indexBytes = this.following.byteLength + (this.#firstRows?.byteLength ?? 0);
    for (const { numbers } of this.#keyColumns) indexBytes += numbers.bytes;
    for (const keyPair of this.#keyPairs) indexBytes += keyPair.bytes;
    return indexBytes;
  }

  find(keys: readonly Vector[], batch: Batch, foundRows: Int32Array): void {
    this.#numberRows({ ...batch, columns: keys }, foundRows, false);
    const firstRows = this.#firstRows;
    if (firstRows !== null) for (let j = 0; j < batch.count; j++) foundRows[j] = firstRows[foundRows[j]!]!;
  }

  /** Key numbers from 1 into `keyNumbers`; 0 where some part is NULL or, unless `addsKeys`, never came. */
  #numberRows(batch: Batch, keyNumbers: Int32Array, addsKeys: boolean): void {
    const { count } = batch;
    if (this.#keyColumns.length === 0) keyNumbers.fill(1, 0, count);
    else this.#numberKeyValues(0, batch, keyNumbers, addsKeys);
    if (this.#keyPairs.length === 0) return;
    if (this.#keyValues.length < count) this.#keyValues = new Int32Array(Math.max(count, rowsPerStep));
    const keyValues = this.#keyValues;
    for (const [pairIndex, keyPairs] of this.#keyPairs.entries()) {
      this.#numberKeyValues(pairIndex + 1, batch, keyValues, addsKeys);
      if (addsKeys) numberPairs(keyPairs, keyNumbers, keyValues, count);
      // No pair with a 0 was added, so none is found.
      else keyPairs.find(keyNumbers, keyValues, count);
    }
  }

  #numberKeyValues(keyColumnIndex: number, batch: Batch, keyNumbers: Int32Array, addsKeys: boolean): void {
    const { key, numbers } = this.#keyColumns[keyColumnIndex]!;
    if (addsKeys) numbers.assign(batch.columns[key]!, batch, keyNumbers);
    else numbers.find(batch.columns[key]!, batch, keyNumbers);
  }
}

function numberPairs(keyPairs: PairNumbers, pairNumbers: Int32Array, keyValues: Int32Array, count: number): void {
  for (let j = 0; j < count; j++)
    pairNumbers[j] = pairNumbers[j] === 0 || keyValues[j] === 0 ? 0 : keyPairs.numberOf(pairNumbers[j]!, keyValues[j]!) + 1;
}
