/**
 * Rows to group numbers. Each key column gives its values small numbers (0 is NULL), pairs of numbers get numbers again,
 * until one is left: a group. All on typed arrays; dictionary codes go through a table, text is compared where it lies.
 * Numbers are given in order of first appearance, so the order of groups follows the order of rows and nothing else.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import type { Batch } from './operator.ts';
import { fillOf, PairNumbers } from './pair-numbers.ts';
import { TextNumbers, type ValueNumbers, valueNumbers } from './value-numbers.ts';

export interface CodePairs {
  readonly leftCodes: Int32Array;
  readonly leftTable: Int32Array;
  readonly rightCodes: Int32Array;
  readonly rightTable: Int32Array;
  readonly groupOfPair: Int32Array;
  readonly bits: number;
}

/** The values of a key, and the table from them to numbers: 0, or beyond its end, where a value has not come yet. */
export interface KeyTable {
  readonly values: Int32Array;
  readonly table: Int32Array;
}

/** The number of an only key is the group; of two keys, the numbers side by side are a place where the group + 1 stands. */
export interface KeyTables {
  readonly keys: readonly KeyTable[];
  readonly groupOfPair: Int32Array | null;
  readonly bits: number;
}

const keysPerStep = 256;

export class GroupTable {
  readonly #columns: readonly ValueNumbers[];
  readonly #pairs: readonly PairNumbers[];
  #groups = new Int32Array(0);
  #values = new Int32Array(0);
  /** How many groups with a value came before the NULL group of a single key; -1 while there is none. */
  #nullAfter = -1;

  constructor(types: readonly ColumnType[]) {
    this.#columns = types.map((type, at) => valueNumbers(type, { fill: fillOf(types.length, at) }));
    this.#pairs = types.slice(1).map((_, at) => new PairNumbers({ tables: types.length - 1, at }));
  }

  get bytes(): number {
    let bytes = 0;
    for (const each of this.#columns) bytes += each.bytes;
    for (const each of this.#pairs) bytes += each.bytes;
    return bytes;
  }

  /** Group numbers are below this. */
  get size(): number {
    if (this.#columns.length === 0) return 1;
    return this.#pairs.length > 0 ? this.#pairs[this.#pairs.length - 1]!.size : this.#columns[0]!.size + 1;
  }

  /** Group numbers of the rows of a batch, by place in it; key columns are the first ones. Valid until the next call. */
  assign(batch: Batch): Int32Array {
    const steps = this.assigning(batch);
    for (;;) {
      const { done, value } = steps.next();
      if (done === true) return value;
    }
  }

  /** The same a few hundred keys at a time. */
  *assigning(batch: Batch): Generator<undefined, Int32Array, void> {
    if (this.#groups.length < batch.count) {
      this.#groups = new Int32Array(batch.count);
      this.#values = new Int32Array(batch.count);
    }
    const groups = this.#groups;
    const [first] = this.#columns;
    if (!first) return groups;
    const before = first.size;
    first.assign(batch.columns[0]!, batch, groups);
    if (this.#pairs.length === 0) {
      const vector = batch.columns[0]!;
      const mayBeNull = vector.kind === 'null' || vector.nulls !== null;
      if (mayBeNull && this.#nullAfter < 0) this.#findNull(groups, batch.count, before);
      return groups;
    }
    let size = first.size + 1;
    for (let c = 1; c < this.#columns.length; c++) {
      if (c % keysPerStep === 0) yield;
      const column = this.#columns[c]!;
      column.assign(batch.columns[c]!, batch, this.#values);
      this.#pairs[c - 1]!.assign(groups, this.#values, batch.count, size, column.size + 1);
      size = this.#pairs[c - 1]!.size;
    }
    return groups;
  }

  /**
   * Where the only key is dictionary codes without NULL: the table from codes to groups, complete for this batch, so that a loop
   * over the rows can look groups up on the way. null in any other case.
   */
  codes(batch: Batch): { readonly table: Int32Array; readonly codes: Int32Array } | null {
    const vector = batch.columns[0];
    if (this.#columns.length !== 1 || vector?.kind !== 'dict' || vector.nulls !== null) return null;
    const [column] = this.#columns;
    return column instanceof TextNumbers ? { table: column.complete(vector, batch), codes: vector.values } : null;
  }

  /** The same for two such keys: their numbers side by side are a place in `places`, where the group + 1 stands. */
  codePairs(batch: Batch): CodePairs | null {
    const [left, right] = batch.columns;
    const [first, second] = this.#columns;
    if (this.#columns.length !== 2 || !(first instanceof TextNumbers) || !(second instanceof TextNumbers)) return null;
    if (left?.kind !== 'dict' || right?.kind !== 'dict' || left.nulls !== null || right.nulls !== null) return null;
    for (let attempt = 0; ; attempt++) {
      const groupOfPair = this.#pairs[0]!.slotsFor(first.size + 1, second.size + 1);
      if (groupOfPair === null) return null;
      const pairs: CodePairs = {
        leftCodes: left.values,
        leftTable: first.tableOf(left)!,
        rightCodes: right.values,
        rightTable: second.tableOf(right)!,
        groupOfPair,
        bits: this.#pairs[0]!.bits,
      };
      if (attempt > 0 || isComplete(pairs, batch)) return pairs;
      this.assign(batch);
    }
  }

  /** Where one or two keys are small numbers without NULL: the tables that lead to their groups, as far as they have come. */
  keyTables({ columns }: Batch): KeyTables | null {
    const keys: KeyTable[] = [];
    for (const [at, column] of this.#columns.entries()) {
      const vector = columns[at]!;
      const table = column.tableOf(vector);
      if (table === null || (vector.kind !== 'dict' && vector.kind !== 'i32')) return null;
      keys.push({ values: vector.values, table });
    }
    if (keys.length === 1) return { keys, groupOfPair: null, bits: 0 };
    const [first, second] = this.#columns;
    if (keys.length !== 2 || !first || !second) return null;
    const [pairs] = this.#pairs;
    const groupOfPair = pairs!.slotsFor(first.size + 1, second.size + 1);
    return groupOfPair && { keys, groupOfPair, bits: pairs!.bits };
  }

  /** Every group, in order of first appearance. */
  order(): Int32Array {
    const size = this.size;
    if (this.#columns.length !== 1) {
      const every = new Int32Array(size);
      for (let group = 0; group < size; group++) every[group] = group;
      return every;
    }
    const order = new Int32Array(this.#nullAfter < 0 ? size - 1 : size);
    let at = 0;
    for (let value = 1; value < size; value++) {
      if (value - 1 === this.#nullAfter) order[at++] = 0;
      order[at++] = value;
    }
    if (this.#nullAfter === size - 1) order[at] = 0;
    return order;
  }

  /** Key columns of these groups. */
  keys(groups: Int32Array): Vector[] {
    const vectors: Vector[] = [];
    let numbers = groups;
    for (let c = this.#columns.length - 1; c >= 0; c--) {
      const pairs = c > 0 ? this.#pairs[c - 1]! : null;
      vectors.unshift(this.#columns[c]!.vector(pairs ? pairs.rights(numbers) : numbers));
      if (pairs) numbers = pairs.lefts(numbers);
    }
    return vectors;
  }

  /** Values of this batch that are new got rising numbers: those seen before the first NULL of it come before NULL. */
  #findNull(groups: Int32Array, count: number, before: number): void {
    let most = before;
    for (let j = 0; j < count; j++) {
      if (groups[j] === 0) {
        this.#nullAfter = most;
        return;
      }
      if (groups[j]! > most) most = groups[j]!;
    }
  }
}

/** Whether every row of the batch finds its group. Entries are above 0: only an absent one minus 1 is negative. */
function isComplete({ leftCodes, leftTable, rightCodes, rightTable, groupOfPair, bits }: CodePairs, batch: Batch): boolean {
  const { selection, first, count } = batch;
  let missing = 0;
  for (let j = 0; j < count; j++) {
    const i = selection === null ? first + j : selection[j]!;
    const left = leftTable[leftCodes[i]!]!;
    const right = rightTable[rightCodes[i]!]!;
    missing |= (left - 1) | (right - 1) | (groupOfPair[(left << bits) | right]! - 1);
  }
  return missing >= 0;
}
