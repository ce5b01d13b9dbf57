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

const valuesPerStep = 2_048;

export class FacetCounter {
  readonly #attributes: readonly Attribute[];
  readonly #memory: MemoryMeter;
  #rows = 0;
  #heldBytes = 0;

  /** Attributes are the columns of the batches, in order. */
  constructor(columns: readonly PlanColumn[], memory: MemoryMeter) {
    this.#attributes = columns.map((column) => new Attribute(column));
    this.#memory = memory;
  }

  /** False once it has seen all the rows that it counts. */
  add(batch: Batch): boolean {
    const count = Math.min(batch.count, facetRowsMax - this.#rows);
    if (count > 0) {
      const counted = count === batch.count ? batch : { ...batch, count };
      let bytes = 0;
      this.#attributes.forEach((attribute, c) => {
        attribute.add(batch.columns[c]!, counted);
        bytes += attribute.bytes;
      });
      this.#rows += count;
      this.#heldBytes = this.#memory.change(this.#heldBytes, bytes);
    }
    return this.#rows < facetRowsMax;
  }

  /** The result, a bounded piece of it per step. */
  *finish(): Generator<undefined, Facets, void> {
    const counts = new Map<string, ReadonlyMap<string, number>>();
    const stats = new Map<string, FacetStats>();
    for (const attribute of this.#attributes) {
      counts.set(attribute.name, yield* attribute.counts());
      const figures = yield* attribute.stats();
      if (figures) stats.set(attribute.name, figures);
    }
    return { counts, stats };
  }
}

class Attribute {
  readonly name: string;
  readonly #type: ColumnType;
  readonly #values: ValueNumbers;
  #numbers = new Int32Array(0);
  /** Counts by value number; 0 is NULL. */
  #occurrences = new Float64Array(64);
  /** Sum of doubles, row by row. */
  #sum = 0;

  constructor({ name, type }: PlanColumn) {
    if (type === 'vector')
      throw new ServiceError('REL_TYPE_MISMATCH', `FACETS counts values, ${JSON.stringify(name)} holds vectors`);
    this.name = name;
    this.#type = type;
    this.#values = valueNumbers(type);
  }

  get bytes(): number {
    return this.#values.bytes + this.#occurrences.byteLength;
  }

  add(vector: Vector, batch: Batch): void {
    const { selection, first, count } = batch;
    if (this.#numbers.length < count) this.#numbers = new Int32Array(count);
    this.#values.assign(vector, batch, this.#numbers);
    const size = this.#values.size + 1;
    if (this.#occurrences.length < size) {
      const occurrences = new Float64Array(Math.max(this.#occurrences.length * 2, size));
      occurrences.set(this.#occurrences);
      this.#occurrences = occurrences;
    }
    for (let j = 0; j < count; j++) this.#occurrences[this.#numbers[j]!]!++;
    if (this.#type !== 'number' || vector.kind === 'null') return;
    assert(vector.kind === 'i32' || vector.kind === 'f64' || vector.kind === 'i64', 'numbers rest in numeric layouts');
    for (let j = 0; j < count; j++) {
      if (this.#numbers[j] === 0) continue;
      this.#sum += Number(vector.values[selection === null ? first + j : selection[j]!]!);
    }
  }

  /** Most frequent first, equals by codepoint; NULL is not counted. */
  *counts(): Generator<undefined, ReadonlyMap<string, number>, void> {
    const texts: string[] = [];
    for (const { cells, first } of this.#distinct()) {
      cells.forEach((cell, i) => (texts[first + i] = String(cell)));
      yield;
    }
    const occurrences = this.#occurrences;
    const compare = (a: number, b: number): number =>
      occurrences[b + 1]! - occurrences[a + 1]! || compareText(texts[a]!, texts[b]!);
    const order = yield* mergeSorted(texts.length, compare);
    const counts = new Map<string, number>();
    for (let at = 0; at < order.length; at++) {
      counts.set(texts[order[at]!]!, occurrences[order[at]! + 1]!);
      if (at % valuesPerStep === valuesPerStep - 1) yield;
    }
    return counts;
  }

  /** Figures of a numeric column with at least one value. A sum of integers is exact even beyond 64 bits. */
  *stats(): Generator<undefined, FacetStats | null, void> {
    if ((this.#type !== 'integer' && this.#type !== 'number') || this.#values.size === 0) return null;
    let min: bigint | number | null = null;
    let max: bigint | number | null = null;
    let exact = 0n;
    let count = 0;
    for (const { cells, first } of this.#distinct()) {
      cells.forEach((cell, i) => {
        assert(typeof cell === 'bigint' || typeof cell === 'number', 'a numeric column');
        if (min === null || cell < min) min = cell;
        if (max === null || cell > max) max = cell;
        const times = this.#occurrences[first + i + 1]!;
        if (typeof cell === 'bigint') exact += cell * BigInt(times);
        count += times;
      });
      yield;
    }
    assert(min !== null && max !== null, 'there is a value');
    const sum = this.#type === 'integer' ? exact : this.#sum;
    if (typeof sum === 'number' && !Number.isFinite(sum)) throw numberOverflow();
    return { min, max, sum, avg: Number(sum) / count, count };
  }

  /** Distinct values but NULL, in order of first appearance, some at a time. */
  *#distinct(): Generator<{ readonly cells: (string | bigint | number | boolean)[]; readonly first: number }, void, void> {
    for (let first = 0; first < this.#values.size; first += valuesPerStep) {
      const numbers = new Int32Array(Math.min(valuesPerStep, this.#values.size - first));
      for (let i = 0; i < numbers.length; i++) numbers[i] = first + i + 1;
      const vector = this.#values.vector(numbers);
      yield { cells: Array.from(numbers, (_, i) => cellOf(vector, this.#type, i)), first };
    }
  }
}

/** A cell as JSON rows show it, quotes aside. */
function cellOf(vector: Vector, type: ColumnType, row: number): string | bigint | number | boolean {
  assert(vector.kind !== 'null' && vector.kind !== 'vec' && vector.kind !== 'text', 'distinct values rest in codes or numbers');
  if (vector.kind === 'dict') return vector.dictionary.text(vector.values[row]!);
  if (vector.kind === 'bool') return vector.values[row] === 1;
  const value = vector.values[row]!;
  return type === 'number' ? value : BigInt(value);
}
