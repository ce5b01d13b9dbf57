/**
 * FACETS: how often each value of an attribute occurs among the first 100,000 rows given, and the figures of numeric ones.
 * Values are counted by number, so a row costs a look-up and no object; texts are made once, at the end. Every distinct
 * value is listed: there are no more of them than rows counted.
 */
import { assert, ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import { type ColumnType, compareText } from '../../log/values/value.ts';
import { numberOverflow } from '../expressions/evaluate.ts';
import type { PlanColumn } from '../logical-plan.ts';
import type { Facets, FacetStats } from '../planner-contract.ts';
import type { Batch, MemoryMeter } from './operator.ts';
import { mergeSorted } from './row-order.ts';
import { type ValueNumbers, valueNumbers } from './value-numbers.ts';

/** Source: specification, "Limits": facet computation. */
export const facetRowsMax = 100_000;

const facetValuesPerStep = 2_048;

export class FacetCounter {
  readonly #facetAttributes: readonly FacetAttribute[];
  readonly #facetMemory: MemoryMeter;
  #countedRows = 0;
  #heldBytes = 0;

  /** Attributes are the columns of the batches, in order. */
  constructor(columns: readonly PlanColumn[], memory: MemoryMeter) {
    this.#facetAttributes = columns.map((column) => new FacetAttribute(column));
    this.#facetMemory = memory;
  }

  /** False once it has seen all the rows that it counts. */
  add(batch: Batch): boolean {
    const countedNow = Math.min(batch.count, facetRowsMax - this.#countedRows);
    if (countedNow > 0) {
      const countedBatch = countedNow === batch.count ? batch : { ...batch, count: countedNow };
      let facetBytes = 0;
      this.#facetAttributes.forEach((facetAttribute, c) => {
        facetAttribute.add(batch.columns[c]!, countedBatch);
        facetBytes += facetAttribute.bytes;
      });
      this.#countedRows += countedNow;
      this.#heldBytes = this.#facetMemory.change(this.#heldBytes, facetBytes);
    }
    return this.#countedRows < facetRowsMax;
  }

  /** The result, a bounded piece of it per step. */
  *finish(): Generator<undefined, Facets, void> {
    const counts = new Map<string, ReadonlyMap<string, number>>();
    const stats = new Map<string, FacetStats>();
    for (const facetAttribute of this.#facetAttributes) {
      counts.set(facetAttribute.name, yield* facetAttribute.counts());
      const facetStats = yield* facetAttribute.stats();
      if (facetStats) stats.set(facetAttribute.name, facetStats);
    }
    return { counts, stats };
  }
}

class FacetAttribute {
  readonly name: string;
  readonly #facetType: ColumnType;
  readonly #facetValues: ValueNumbers;
  #rowValueNumbers = new Int32Array(0);
  /** Counts by value number; 0 is NULL. */
  #valueOccurrences = new Float64Array(64);
  /** Sum of doubles, row by row. */
  #doubleSum = 0;

  constructor({ name, type }: PlanColumn) {
    if (type === 'vector')
      throw new ServiceError('REL_TYPE_MISMATCH', `FACETS counts values, ${JSON.stringify(name)} holds vectors`);
    this.name = name;
    this.#facetType = type;
    this.#facetValues = valueNumbers(type);
  }

  get bytes(): number {
    return this.#facetValues.bytes + this.#valueOccurrences.byteLength;
  }

  add(facetVector: Vector, batch: Batch): void {
    const { selection, first, count } = batch;
    if (this.#rowValueNumbers.length < count) this.#rowValueNumbers = new Int32Array(count);
    this.#facetValues.assign(facetVector, batch, this.#rowValueNumbers);
    const occurrenceSlots = this.#facetValues.size + 1;
    if (this.#valueOccurrences.length < occurrenceSlots) {
      const largerOccurrences = new Float64Array(Math.max(this.#valueOccurrences.length * 2, occurrenceSlots));
      largerOccurrences.set(this.#valueOccurrences);
      this.#valueOccurrences = largerOccurrences;
    }
    for (let j = 0; j < count; j++) this.#valueOccurrences[this.#rowValueNumbers[j]!]!++;
    if (this.#facetType !== 'number' || facetVector.kind === 'null') return;
    assert(
      facetVector.kind === 'i32' || facetVector.kind === 'f64' || facetVector.kind === 'i64',
      'numbers rest in numeric layouts',
    );
    for (let j = 0; j < count; j++) {
      if (this.#rowValueNumbers[j] === 0) continue;
      this.#doubleSum += Number(facetVector.values[selection === null ? first + j : selection[j]!]!);
    }
  }

  /** Most frequent first, equals by codepoint; NULL is not counted. */
  *counts(): Generator<undefined, ReadonlyMap<string, number>, void> {
    const facetTexts: string[] = [];
    for (const { cells: facetCells, first } of this.#distinctCells()) {
      facetCells.forEach((cell, i) => (facetTexts[first + i] = String(cell)));
      yield;
    }
    const valueOccurrences = this.#valueOccurrences;
    const compareFacetCounts = (leftFacet: number, rightFacet: number): number =>
      valueOccurrences[rightFacet + 1]! - valueOccurrences[leftFacet + 1]! ||
      compareText(facetTexts[leftFacet]!, facetTexts[rightFacet]!);
    const facetOrder = yield* mergeSorted(facetTexts.length, compareFacetCounts);
    const facetCounts = new Map<string, number>();
    for (let facetRank = 0; facetRank < facetOrder.length; facetRank++) {
      facetCounts.set(facetTexts[facetOrder[facetRank]!]!, valueOccurrences[facetOrder[facetRank]! + 1]!);
      if (facetRank % facetValuesPerStep === facetValuesPerStep - 1) yield;
    }
    return facetCounts;
  }

  /** Figures of a numeric column with at least one value. A sum of integers is exact even beyond 64 bits. */
  *stats(): Generator<undefined, FacetStats | null, void> {
    if ((this.#facetType !== 'integer' && this.#facetType !== 'number') || this.#facetValues.size === 0) return null;
    let min: bigint | number | null = null;
    let max: bigint | number | null = null;
    let exactSum = 0n;
    let count = 0;
    for (const { cells: facetCells, first } of this.#distinctCells()) {
      facetCells.forEach((distinctCell, i) => {
        assert(typeof distinctCell === 'bigint' || typeof distinctCell === 'number', 'a numeric column');
        if (min === null || distinctCell < min) min = distinctCell;
        if (max === null || distinctCell > max) max = distinctCell;
        const cellOccurrences = this.#valueOccurrences[first + i + 1]!;
        if (typeof distinctCell === 'bigint') exactSum += distinctCell * BigInt(cellOccurrences);
        count += cellOccurrences;
      });
      yield;
    }
    assert(min !== null && max !== null, 'there is a value');
    const facetSum = this.#facetType === 'integer' ? exactSum : this.#doubleSum;
    if (typeof facetSum === 'number' && !Number.isFinite(facetSum)) throw numberOverflow();
    return { min, max, sum: facetSum, avg: Number(facetSum) / count, count };
  }

  /** Distinct values but NULL, in order of first appearance, some at a time. */
  *#distinctCells(): Generator<{ readonly cells: (string | bigint | number | boolean)[]; readonly first: number }, void, void> {
    for (let first = 0; first < this.#facetValues.size; first += facetValuesPerStep) {
      const stepNumbers = new Int32Array(Math.min(facetValuesPerStep, this.#facetValues.size - first));
      for (let i = 0; i < stepNumbers.length; i++) stepNumbers[i] = first + i + 1;
      const stepVector = this.#facetValues.vector(stepNumbers);
      yield { cells: Array.from(stepNumbers, (_, i) => facetCell(stepVector, this.#facetType, i)), first };
    }
  }
}

/** A cell as JSON rows show it, quotes aside. */
function facetCell(facetVector: Vector, type: ColumnType, row: number): string | bigint | number | boolean {
  assert(
    facetVector.kind !== 'null' && facetVector.kind !== 'vec' && facetVector.kind !== 'text',
    'distinct values rest in codes or numbers',
  );
  if (facetVector.kind === 'dict') return facetVector.dictionary.text(facetVector.values[row]!);
  if (facetVector.kind === 'bool') return facetVector.values[row] === 1;
  const facetValue = facetVector.values[row]!;
  return type === 'number' ? facetValue : BigInt(facetValue);
}
