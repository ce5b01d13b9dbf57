/**
 * The rows of a subquery behind IN. A number of any layout is held once: as a double where that is exact, else as a bigint,
 * so that integers, numbers and instants meet exactly whatever form either side has.
 */
import type { Vector } from '../../log/columns.ts';
import type { Cell } from '../../log/value.ts';
import type { Batch } from '../operators/operator.ts';
import type { CellSet } from './evaluate.ts';
import { TextInterner } from './text-interner.ts';

const bytesPerValue = 40;

export class SubquerySet implements CellSet {
  isEmpty = true;
  hasNull = false;
  readonly #numbers = new Set<number>();
  readonly #integers = new Set<bigint>();
  readonly #texts = new TextInterner();

  get bytes(): number {
    return (this.#numbers.size + this.#integers.size) * bytesPerValue + this.#texts.bytes;
  }

  /** Adds the one column of a batch. */
  add(batch: Batch): void {
    if (batch.count === 0) return;
    this.isEmpty = false;
    const vector = batch.columns[0]!;
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
    return BigInt(double) === value ? this.#numbers.has(double) : this.#integers.has(value);
  }

  hasNumber(value: number): boolean {
    return this.#numbers.has(value);
  }

  hasText(text: string): boolean {
    return this.#texts.has(text);
  }

  hasBytes(heap: Uint8Array, start: number, end: number): boolean {
    return this.#texts.hasBytes(heap, start, end);
  }

  #addCell(vector: Exclude<Vector, { kind: 'null' }>, i: number): void {
    switch (vector.kind) {
      case 'i32':
      case 'f64':
      case 'bool':
        this.#numbers.add(vector.values[i]!);
        return;
      case 'i64': {
        const value = vector.values[i]!;
        const double = Number(value);
        if (BigInt(double) === value) this.#numbers.add(double);
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
