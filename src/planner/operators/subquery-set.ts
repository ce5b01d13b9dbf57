/**
 * The rows of a subquery behind IN. A number of any layout is held once: as a double where that is exact, else as a bigint, so
 * that integers, numbers and instants compare exactly across layouts.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { Cell } from '../../log/values/value.ts';
import type { Batch } from './operator.ts';
import type { CellSet } from '../expressions/evaluate.ts';
import { TextInterner } from '../expressions/text-interner.ts';

const bytesPerValue = 40;
const smallMax = 1 << 26;
const smallInAnyCase = 1 << 18;
const smallPerValue = 64;

export class SubquerySet implements CellSet {
  isEmpty = true;
  hasNull = false;
  /** 1 by integer from 0 to its length; every other number is in `#numbers`. */
  #small = new Uint8Array(1_024);
  #smallCount = 0;
  readonly #numbers = new Set<number>();
  readonly #integers = new Set<bigint>();
  readonly #texts = new TextInterner();

  get bytes(): number {
    return this.#small.length + (this.#numbers.size + this.#integers.size) * bytesPerValue + this.#texts.bytes;
  }

  /** Adds the one column of a batch. */
  add(batch: Batch): void {
    if (batch.count === 0) return;
    this.isEmpty = false;
    const vector = batch.columns[0]!;
    if (vector.kind === 'i32' && vector.nulls === null) return this.#addInts(vector.values, batch);
    for (let j = 0; j < batch.count; j++) {
      const i = batch.selection ? batch.selection[j]! : batch.first + j;
      if (vector.kind === 'null' || vector.nulls?.[i] === 1) this.hasNull = true;
      else this.#addCell(vector, i);
    }
  }

  has(cell: Cell): boolean {
    switch (typeof cell) {
      case 'bigint':
        return this.hasInteger(cell);
      case 'number':
        return this.hasNumber(cell);
      case 'boolean':
        return this.hasNumber(cell ? 1 : 0);
      default:
        return typeof cell === 'string' && this.hasText(cell);
    }
  }

  hasInteger(value: bigint): boolean {
    const double = Number(value);
    return BigInt(double) === value ? this.hasNumber(double) : this.#integers.has(value);
  }

  hasNumber(value: number): boolean {
    if (value >= 0 && value < this.#small.length && value === Math.trunc(value)) return this.#small[value] === 1;
    return this.#numbers.has(value);
  }

  hasText(text: string): boolean {
    return this.#texts.has(text);
  }

  hasBytes(heap: Uint8Array, start: number, end: number): boolean {
    return this.#texts.hasBytes(heap, start, end);
  }

  #addInts(values: Int32Array, { selection, first, count }: Batch): void {
    let small = this.#small;
    for (let j = 0; j < count; j++) {
      const value = values[selection === null ? first + j : selection[j]!]!;
      if (value >= 0 && value < small.length && small[value] === 1) continue;
      this.#addNumber(value);
      small = this.#small;
    }
  }

  #addNumber(value: number): void {
    if (value >= 0 && value === Math.trunc(value) && (value < this.#small.length || this.#reaches(value))) {
      this.#smallCount += 1 - this.#small[value]!;
      this.#small[value] = 1;
    } else this.#numbers.add(value);
  }

  /** Grows the table where that is worth it: a bounded number of slots for each number met. */
  #reaches(value: number): boolean {
    const count = this.#smallCount + this.#numbers.size;
    if (value >= Math.min(smallMax, Math.max(smallInAnyCase, count * smallPerValue))) return false;
    let length = this.#small.length;
    while (length <= value) length *= 2;
    const small = new Uint8Array(length);
    small.set(this.#small);
    this.#small = small;
    for (const number of this.#numbers) {
      if (number < 0 || number >= length || number !== Math.trunc(number)) continue;
      small[number] = 1;
      this.#smallCount++;
      this.#numbers.delete(number);
    }
    return true;
  }

  #addCell(vector: Exclude<Vector, { kind: 'null' }>, i: number): void {
    switch (vector.kind) {
      case 'i32':
      case 'f64':
      case 'bool':
        this.#addNumber(vector.values[i]!);
        return;
      case 'i64': {
        const value = vector.values[i]!;
        const double = Number(value);
        if (BigInt(double) === value) this.#addNumber(double);
        else this.#integers.add(value);
        return;
      }
      case 'dict':
        this.#texts.ofText(vector.dictionary.text(vector.values[i]!));
        return;
      case 'text':
        this.#texts.ofBytes(vector.heap, vector.offsets[i]!, vector.offsets[i + 1]!);
    }
  }
}
