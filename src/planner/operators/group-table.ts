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

const groupKeysPerStep = 256;

export class GroupTable {
  readonly #keyColumns: readonly ValueNumbers[];
  readonly #keyPairs: readonly PairNumbers[];
  #rowGroups = new Int32Array(0);
  #rowKeyNumbers = new Int32Array(0);
  /** How many groups with a value came before the NULL group of a single key; -1 while there is none. */
  #nullGroupAfter = -1;

  constructor(keyTypes: readonly ColumnType[]) {
    this.#keyColumns = keyTypes.map((type, keyIndex) => valueNumbers(type, { fill: fillOf(keyTypes.length, keyIndex) }));
    this.#keyPairs = keyTypes.slice(1).map((_, keyIndex) => new PairNumbers({ tables: keyTypes.length - 1, at: keyIndex }));
  }

  get bytes(): number {
    let tableBytes = 0;
    for (const numbering of this.#keyColumns) tableBytes += numbering.bytes;
    for (const each of this.#keyPairs) tableBytes += each.bytes;
    return tableBytes;
  }

  /** Group numbers are below this. */
  get size(): number {
    if (this.#keyColumns.length === 0) return 1;
    return this.#keyPairs.length > 0 ? this.#keyPairs[this.#keyPairs.length - 1]!.size : this.#keyColumns[0]!.size + 1;
  }

  /** Group numbers of the rows of a batch, by place in it; key columns are the first ones. Valid until the next call. */
  assign(batch: Batch): Int32Array {
    const assigningSteps = this.assigning(batch);
    for (;;) {
      const { done: isDone, value: assignedGroups } = assigningSteps.next();
      if (isDone === true) return assignedGroups;
    }
  }

  /** The same a few hundred keys at a time. */
  *assigning(batch: Batch): Generator<undefined, Int32Array, void> {
    if (this.#rowGroups.length < batch.count) {
      this.#rowGroups = new Int32Array(batch.count);
      this.#rowKeyNumbers = new Int32Array(batch.count);
    }
    const rowGroups = this.#rowGroups;
    const [firstKey] = this.#keyColumns;
    if (!firstKey) return rowGroups;
    const groupsBefore = firstKey.size;
    firstKey.assign(batch.columns[0]!, batch, rowGroups);
    if (this.#keyPairs.length === 0) {
      const keyVector = batch.columns[0]!;
      const mayBeNull = keyVector.kind === 'null' || keyVector.nulls !== null;
      if (mayBeNull && this.#nullGroupAfter < 0) this.#findNullGroup(rowGroups, batch.count, groupsBefore);
      return rowGroups;
    }
    let groupCount = firstKey.size + 1;
    for (let keyColumnIndex = 1; keyColumnIndex < this.#keyColumns.length; keyColumnIndex++) {
      if (keyColumnIndex % groupKeysPerStep === 0) yield;
      const keyColumn = this.#keyColumns[keyColumnIndex]!;
      keyColumn.assign(batch.columns[keyColumnIndex]!, batch, this.#rowKeyNumbers);
      this.#keyPairs[keyColumnIndex - 1]!.assign(rowGroups, this.#rowKeyNumbers, batch.count, groupCount, keyColumn.size + 1);
      groupCount = this.#keyPairs[keyColumnIndex - 1]!.size;
    }
    return rowGroups;
  }

  /**
   * Where the only key is dictionary codes without NULL: the table from codes to groups, complete for this batch, so that a loop
   * over the rows can look groups up on the way. null in any other case.
   */
  codes(batch: Batch): { readonly table: Int32Array; readonly codes: Int32Array } | null {
    const keyVector = batch.columns[0];
    if (this.#keyColumns.length !== 1 || keyVector?.kind !== 'dict' || keyVector.nulls !== null) return null;
    const [textNumbers] = this.#keyColumns;
    return textNumbers instanceof TextNumbers ? { table: textNumbers.complete(keyVector, batch), codes: keyVector.values } : null;
  }

  /** The same for two such keys: their numbers side by side are a place in `places`, where the group + 1 stands. */
  codePairs(batch: Batch): CodePairs | null {
    const [leftVector, rightVector] = batch.columns;
    const [firstKey, secondKey] = this.#keyColumns;
    if (this.#keyColumns.length !== 2 || !(firstKey instanceof TextNumbers) || !(secondKey instanceof TextNumbers)) return null;
    if (leftVector?.kind !== 'dict' || rightVector?.kind !== 'dict' || leftVector.nulls !== null || rightVector.nulls !== null)
      return null;
    for (let attempt = 0; ; attempt++) {
      const groupOfPair = this.#keyPairs[0]!.slotsFor(firstKey.size + 1, secondKey.size + 1);
      if (groupOfPair === null) return null;
      const batchPairs: CodePairs = {
        leftCodes: leftVector.values,
        leftTable: firstKey.tableOf(leftVector)!,
        rightCodes: rightVector.values,
        rightTable: secondKey.tableOf(rightVector)!,
        groupOfPair,
        bits: this.#keyPairs[0]!.bits,
      };
      if (attempt > 0 || areAllPairsKnown(batchPairs, batch)) return batchPairs;
      this.assign(batch);
    }
  }

  /** Where one or two keys are small numbers without NULL: the tables that lead to their groups, as far as they have come. */
  keyTables({ columns }: Batch): KeyTables | null {
    const tableKeys: KeyTable[] = [];
    for (const [keyIndex, keyColumn] of this.#keyColumns.entries()) {
      const keyVector = columns[keyIndex]!;
      const numberTable = keyColumn.tableOf(keyVector);
      if (numberTable === null || (keyVector.kind !== 'dict' && keyVector.kind !== 'i32')) return null;
      tableKeys.push({ values: keyVector.values, table: numberTable });
    }
    if (tableKeys.length === 1) return { keys: tableKeys, groupOfPair: null, bits: 0 };
    const [firstKey, secondKey] = this.#keyColumns;
    if (tableKeys.length !== 2 || !firstKey || !secondKey) return null;
    const [keyPairs] = this.#keyPairs;
    const groupOfPair = keyPairs!.slotsFor(firstKey.size + 1, secondKey.size + 1);
    return groupOfPair && { keys: tableKeys, groupOfPair, bits: keyPairs!.bits };
  }

  /** Every group, in order of first appearance. */
  order(): Int32Array {
    const groupCount = this.size;
    if (this.#keyColumns.length !== 1) {
      const everyGroup = new Int32Array(groupCount);
      for (let group = 0; group < groupCount; group++) everyGroup[group] = group;
      return everyGroup;
    }
    const groupOrder = new Int32Array(this.#nullGroupAfter < 0 ? groupCount - 1 : groupCount);
    let orderIndex = 0;
    for (let groupNumber = 1; groupNumber < groupCount; groupNumber++) {
      if (groupNumber - 1 === this.#nullGroupAfter) groupOrder[orderIndex++] = 0;
      groupOrder[orderIndex++] = groupNumber;
    }
    if (this.#nullGroupAfter === groupCount - 1) groupOrder[orderIndex] = 0;
    return groupOrder;
  }

  /** Key columns of these groups. */
  keys(orderedGroups: Int32Array): Vector[] {
    const keyVectors: Vector[] = [];
    let pairNumbers = orderedGroups;
    for (let keyColumnIndex = this.#keyColumns.length - 1; keyColumnIndex >= 0; keyColumnIndex--) {
      const keyPairs = keyColumnIndex > 0 ? this.#keyPairs[keyColumnIndex - 1]! : null;
      keyVectors.unshift(this.#keyColumns[keyColumnIndex]!.vector(keyPairs ? keyPairs.rights(pairNumbers) : pairNumbers));
      if (keyPairs) pairNumbers = keyPairs.lefts(pairNumbers);
    }
    return keyVectors;
  }

  /** Values of this batch that are new got rising numbers: those seen before the first NULL of it come before NULL. */
  #findNullGroup(rowGroups: Int32Array, count: number, groupsBefore: number): void {
    let groupsSoFar = groupsBefore;
    for (let j = 0; j < count; j++) {
      if (rowGroups[j] === 0) {
        this.#nullGroupAfter = groupsSoFar;
        return;
      }
      if (rowGroups[j]! > groupsSoFar) groupsSoFar = rowGroups[j]!;
    }
  }
}

/** Whether every row of the batch finds its group. Entries are above 0: only an absent one minus 1 is negative. */
function areAllPairsKnown({ leftCodes, leftTable, rightCodes, rightTable, groupOfPair, bits }: CodePairs, batch: Batch): boolean {
  const { selection, first, count } = batch;
  let missingSign = 0;
  for (let j = 0; j < count; j++) {
    const i = selection === null ? first + j : selection[j]!;
    const leftNumber = leftTable[leftCodes[i]!]!;
    const rightNumber = rightTable[rightCodes[i]!]!;
    missingSign |= (leftNumber - 1) | (rightNumber - 1) | (groupOfPair[(leftNumber << bits) | rightNumber]! - 1);
  }
  return missingSign >= 0;
}
