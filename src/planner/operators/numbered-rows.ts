/** Rows by keys of any types, which are reduced to the numbers that their values and pairs of values get. */
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import type { Batch } from './operator.ts';
import { PairNumbers } from './pair-numbers.ts';
import { type Building, type RowIndex, rowsPerStep } from './row-index.ts';
import { type ValueNumbers, valueNumbers } from './value-numbers.ts';

export class NumberedRows implements RowIndex {
  readonly #columns: readonly ValueNumbers[];
  readonly #pairs: readonly PairNumbers[];
  readonly following: Int32Array;
  unique = true;
  /** First row + 1 by key number. */
  #firsts = new Int32Array(0);
  #values = new Int32Array(0);

  private constructor(types: readonly ColumnType[], rows: number) {
    this.#columns = types.map((type) => valueNumbers(type, { exact: true }));
    this.#pairs = types.slice(1).map(() => new PairNumbers());
    this.following = new Int32Array(rows);
  }

  get bytes(): number {
    let bytes = this.following.byteLength + this.#firsts.byteLength;
    for (const each of this.#columns) bytes += each.bytes;
    for (const each of this.#pairs) bytes += each.bytes;
    return bytes;
  }

  static *build(types: readonly ColumnType[], keys: readonly Vector[], rows: number): Building {
    const index = new NumberedRows(types, rows);
    // Numbers stand in `following` until the chain takes their place, from the last row to the first.
    const { following } = index;
    for (let first = 0; first < rows; first += rowsPerStep) {
      const count = Math.min(rowsPerStep, rows - first);
      index.#number({ columns: keys, selection: null, first, count }, following.subarray(first, first + count), true);
      yield;
    }
    const last = index.#pairs[index.#pairs.length - 1];
    const firsts = new Int32Array((last ? last.size : index.#columns[0]!.size) + 1);
    let shared = 0;
    for (let row = rows - 1; row >= 0; row--) {
      const number = following[row]!;
      const next = number === 0 ? 0 : firsts[number]!;
      shared |= next;
      following[row] = next;
      firsts[number] = row + 1;
      if (row % rowsPerStep === 0) yield;
    }
    firsts[0] = 0;
    index.#firsts = firsts;
    index.unique = shared === 0;
    return index;
  }

  find(keys: readonly Vector[], batch: Batch, out: Int32Array): void {
    this.#number({ ...batch, columns: keys }, out, false);
    const firsts = this.#firsts;
    for (let j = 0; j < batch.count; j++) out[j] = firsts[out[j]!]!;
  }

  /** Key numbers from 1 into `out`; 0 where some part is NULL or, unless `add`, never came. */
  #number(batch: Batch, out: Int32Array, add: boolean): void {
    this.#numberValues(0, batch, out, add);
    if (this.#pairs.length === 0) return;
    if (this.#values.length < batch.count) this.#values = new Int32Array(Math.max(batch.count, rowsPerStep));
    const values = this.#values;
    for (let c = 1; c < this.#columns.length; c++) {
      const pairs = this.#pairs[c - 1]!;
      this.#numberValues(c, batch, values, add);
      for (let j = 0; j < batch.count; j++) {
        if (out[j] === 0 || values[j] === 0) out[j] = 0;
        else out[j] = (add ? pairs.numberOf(out[j]!, values[j]!) : pairs.find(out[j]!, values[j]!)) + 1;
      }
    }
  }

  #numberValues(c: number, batch: Batch, out: Int32Array, add: boolean): void {
    const column = this.#columns[c]!;
    if (add) column.assign(batch.columns[c]!, batch, out);
    else column.find(batch.columns[c]!, batch, out);
  }
}
