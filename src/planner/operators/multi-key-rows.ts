/**
 * Rows by keys of which one alone, integers that lie close together, tells them apart: that one finds the row, the others
 * only have to agree with it. Values of the others are compared by the small numbers that they get.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { DenseIntegers } from './dense-integers.ts';
import type { Batch } from './operator.ts';
import { type RowIndex, rowsPerStep } from './row-index.ts';
import { type ValueNumbers, valueNumbers } from './value-numbers.ts';

interface Check {
  /** Which of the keys. */
  readonly key: number;
  readonly values: ValueNumbers;
  /** Number of the value of each held row; 0 for NULL. */
  readonly numbers: Int32Array;
}

export class CheckedRows implements RowIndex {
  readonly #finding: number;
  readonly #rows: DenseIntegers;
  readonly #checks: readonly Check[];
  readonly unique = true;
  /** Places of the batch's rows that the finding key found, and the numbers of their other keys. */
  #places = new Int32Array(0);
  #selection = new Int32Array(0);
  #found = new Int32Array(0);

  private constructor(finding: number, rows: DenseIntegers, checks: readonly Check[]) {
    this.#finding = finding;
    this.#rows = rows;
    this.#checks = checks;
  }

  /** Null where no single key distinguishes the rows, or none of those that do consists of close integers. */
  static *build(types: readonly ColumnType[], keys: readonly Vector[], rows: number): Generator<undefined, CheckedRows | null> {
    for (let finding = 0; finding < keys.length; finding++) {
      const dense = types[finding] === 'number' ? null : yield* DenseIntegers.build(keys[finding]!, rows);
      if (!dense?.unique) continue;
      const checks: Check[] = [];
      for (let key = 0; key < keys.length; key++) {
        if (key === finding) continue;
        const values = valueNumbers(types[key]!, { exact: true });
        const numbers = new Int32Array(rows);
        for (let first = 0; first < rows; first += rowsPerStep) {
          const count = Math.min(rowsPerStep, rows - first);
          const batch = { columns: keys, selection: null, first, count };
          values.assign(keys[key]!, batch, numbers.subarray(first, first + count));
          yield;
        }
        checks.push({ key, values, numbers });
      }
      return new CheckedRows(finding, dense, checks);
    }
    return null;
  }

  get following(): Int32Array {
    return this.#rows.following;
  }

  get bytes(): number {
    let bytes = this.#rows.bytes;
    for (const { values, numbers } of this.#checks) bytes += values.bytes + numbers.byteLength;
    return bytes;
  }

  find(keys: readonly Vector[], batch: Batch, out: Int32Array): void {
    this.#rows.find([keys[this.#finding]!], batch, out);
    for (const check of this.#checks) this.#agree(check, keys[check.key]!, batch, out);
  }

  /** Drops matches of rows whose value under this key differs, or is NULL. */
  #agree({ values, numbers }: Check, key: Vector, batch: Batch, out: Int32Array): void {
    const { columns, selection, first, count } = batch;
    if (this.#places.length <= count) {
      // One place more than rows: each row is written, and the next one over it where nothing was found.
      this.#places = new Int32Array(count + 1);
      this.#selection = new Int32Array(count + 1);
      this.#found = new Int32Array(count + 1);
    }
    const places = this.#places;
    const rows = this.#selection;
    let n = 0;
    for (let j = 0; j < count; j++) {
      places[n] = j;
      rows[n] = selection === null ? first + j : selection[j]!;
      n = (n + (out[j] === 0 ? 0 : 1)) | 0;
    }
    const found = this.#found;
    values.find(key, { columns, selection: rows, first: 0, count: n }, found);
    for (let k = 0; k < n; k++) {
      const place = places[k]!;
      if (found[k] === 0 || found[k] !== numbers[out[place]! - 1]) out[place] = 0;
    }
  }
}
