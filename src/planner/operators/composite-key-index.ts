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
  readonly #columns: readonly KeyColumn[];
  readonly #pairs: readonly PairNumbers[];
  readonly following: Int32Array;
  unique = true;
  /** First row + 1 by key number; null where each row has a key of its own, numbered in the order of rows. */
  #firsts: Int32Array | null = null;
  #values = new Int32Array(0);

  private constructor(columns: readonly KeyColumn[], rows: number) {
    this.#columns = columns;
    this.#pairs = columns.slice(1).map((_, at) => new PairNumbers(at === 0 ? { leftSize: columns[0]!.numbers.size + 1 } : {}));
    this.following = new Int32Array(rows);
  }

  static *build(types: readonly ColumnType[], keys: readonly Vector[], rows: number): Building {
    const columns: KeyColumn[] = [];
    for (const [key, type] of types.entries()) {
      const numbers = (yield* DenseIntegers.tryFrom(keys[key]!, rows)) ?? valueNumbers(type, { exact: true });
      columns.push({ key, numbers });
    }
    // The key of most values comes first: it tells most rows apart, and pairs find the first one of a left number without a hash.
    columns.sort((a, b) => b.numbers.size - a.numbers.size);
    const index = new NumberedRows(columns, rows);
    // Numbers stand in `following` until the chain takes their place, from the last row to the first.
    const { following } = index;
    for (let first = 0; first < rows; first += rowsPerStep) {
      const count = Math.min(rowsPerStep, rows - first);
      index.#number({ columns: keys, selection: null, first, count }, following.subarray(first, first + count), true);
      yield;
    }
    const last = index.#pairs.at(-1) ?? columns[0]?.numbers;
    const size = last?.size ?? 1;
    if (size === rows && !(last instanceof DenseIntegers)) {
      following.fill(0);
      return index;
    }
    const firsts = new Int32Array(size + 1);
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

  get bytes(): number {
    let bytes = this.following.byteLength + (this.#firsts?.byteLength ?? 0);
    for (const { numbers } of this.#columns) bytes += numbers.bytes;
    for (const each of this.#pairs) bytes += each.bytes;
    return bytes;
  }

  find(keys: readonly Vector[], batch: Batch, out: Int32Array): void {
    this.#number({ ...batch, columns: keys }, out, false);
    const firsts = this.#firsts;
    if (firsts !== null) for (let j = 0; j < batch.count; j++) out[j] = firsts[out[j]!]!;
  }

  /** Key numbers from 1 into `out`; 0 where some part is NULL or, unless `add`, never came. */
  #number(batch: Batch, out: Int32Array, add: boolean): void {
    const { count } = batch;
    if (this.#columns.length === 0) out.fill(1, 0, count);
    else this.#numberValues(0, batch, out, add);
    if (this.#pairs.length === 0) return;
    if (this.#values.length < count) this.#values = new Int32Array(Math.max(count, rowsPerStep));
    const values = this.#values;
    for (const [at, pairs] of this.#pairs.entries()) {
      this.#numberValues(at + 1, batch, values, add);
      if (add) addPairs(pairs, out, values, count);
      // No pair with a 0 was added, so none is found.
      else pairs.find(out, values, count);
    }
  }

  #numberValues(c: number, batch: Batch, out: Int32Array, add: boolean): void {
    const { key, numbers } = this.#columns[c]!;
    if (add) numbers.assign(batch.columns[key]!, batch, out);
    else numbers.find(batch.columns[key]!, batch, out);
  }
}

function addPairs(pairs: PairNumbers, out: Int32Array, values: Int32Array, count: number): void {
  for (let j = 0; j < count; j++) out[j] = out[j] === 0 || values[j] === 0 ? 0 : pairs.numberOf(out[j]!, values[j]!) + 1;
}
