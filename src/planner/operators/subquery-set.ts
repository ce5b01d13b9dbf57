/**
 * The rows of a subquery behind IN. A number of any layout is held once: as a double where that is exact, else as a bigint, so
 * that integers, numbers and instants compare exactly across layouts.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { Cell } from '../../log/values/value.ts';
import type { Batch } from './operator.ts';
import type { CellSet } from '../expressions/evaluate.ts';
import { TextInterner } from '../expressions/text-interner.ts';

const bytesPerSetValue = 40;
const smallIntegerMax = 1 << 26;
const smallIntegersMin = 1 << 18;
const smallSlotsPerValue = 64;

export class SubquerySet implements CellSet {
  isEmpty = true;
  hasNull = false;
  /** 1 by integer from 0 to its length; every other number is in `#otherNumbers`. */
  #smallIntegers = new Uint8Array(1_024);
  #smallIntegerCount = 0;
  readonly #otherNumbers = new Set<number>();
  readonly #largeIntegers = new Set<bigint>();
  readonly #subqueryTexts = new TextInterner();

  get bytes(): number {
    return (
      this.#smallIntegers.length +
      (this.#otherNumbers.size + this.#largeIntegers.size) * bytesPerSetValue +
      this.#subqueryTexts.bytes
    );
  }

  /** Adds the one column of a batch. */
  add(batch: Batch): void {
    if (batch.count === 0) return;
    this.isEmpty = false;
    const subqueryVector = batch.columns[0]!;
    if (subqueryVector.kind === 'i32' && subqueryVector.nulls === null) return this.#addInt32s(subqueryVector.values, batch);
    for (let j = 0; j < batch.count; j++) {
      const i = batch.selection ? batch.selection[j]! : batch.first + j;
      if (subqueryVector.kind === 'null' || subqueryVector.nulls?.[i] === 1) this.hasNull = true;
      else this.#addCell(subqueryVector, i);
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
    const nearestDouble = Number(value);
    return BigInt(nearestDouble) === value ? this.hasNumber(nearestDouble) : this.#largeIntegers.has(value);
  }

  hasNumber(value: number): boolean {
    if (value >= 0 && value < this.#smallIntegers.length && value === Math.trunc(value)) return this.#smallIntegers[value] === 1;
    return this.#otherNumbers.has(value);
  }

  hasText(text: string): boolean {
    return this.#subqueryTexts.has(text);
  }

  hasBytes(heap: Uint8Array, start: number, end: number): boolean {
    return this.#subqueryTexts.hasBytes(heap, start, end);
  }

  #addInt32s(subqueryIntegers: Int32Array, { selection, first, count }: Batch): void {
    let smallIntegers = this.#smallIntegers;
    for (let j = 0; j < count; j++) {
      const addedInteger = subqueryIntegers[selection === null ? first + j : selection[j]!]!;
      if (addedInteger >= 0 && addedInteger < smallIntegers.length && smallIntegers[addedInteger] === 1) continue;
      this.#addNumber(addedInteger);
      smallIntegers = this.#smallIntegers;
    }
  }

  #addNumber(addedNumber: number): void {
    if (
      addedNumber >= 0 &&
      addedNumber === Math.trunc(addedNumber) &&
      (addedNumber < this.#smallIntegers.length || this.#growsToReach(addedNumber))
    ) {
      this.#smallIntegerCount += 1 - this.#smallIntegers[addedNumber]!;
      this.#smallIntegers[addedNumber] = 1;
    } else this.#otherNumbers.add(addedNumber);
  }

  /** Grows the table where that is worth it: a bounded number of slots for each number met. */
  #growsToReach(reachedInteger: number): boolean {
    const valueCount = this.#smallIntegerCount + this.#otherNumbers.size;
    if (reachedInteger >= Math.min(smallIntegerMax, Math.max(smallIntegersMin, valueCount * smallSlotsPerValue))) return false;
    let smallLength = this.#smallIntegers.length;
    while (smallLength <= reachedInteger) smallLength *= 2;
    const largerSmall = new Uint8Array(smallLength);
    largerSmall.set(this.#smallIntegers);
    this.#smallIntegers = largerSmall;
    for (const smallNumber of this.#otherNumbers) {
      if (smallNumber < 0 || smallNumber >= smallLength || smallNumber !== Math.trunc(smallNumber)) continue;
      largerSmall[smallNumber] = 1;
      this.#smallIntegerCount++;
      this.#otherNumbers.delete(smallNumber);
    }
    return true;
  }

  #addCell(subqueryVector: Exclude<Vector, { kind: 'null' }>, i: number): void {
    switch (subqueryVector.kind) {
      case 'i32':
      case 'f64':
      case 'bool':
        this.#addNumber(subqueryVector.values[i]!);
        return;
      case 'i64': {
        const largeInteger = subqueryVector.values[i]!;
        const nearestDouble = Number(largeInteger);
        if (BigInt(nearestDouble) === largeInteger) this.#addNumber(nearestDouble);
        else this.#largeIntegers.add(largeInteger);
        return;
      }
      case 'dict':
        this.#subqueryTexts.ofText(subqueryVector.dictionary.text(subqueryVector.values[i]!));
        return;
      case 'text':
        this.#subqueryTexts.ofBytes(subqueryVector.heap, subqueryVector.offsets[i]!, subqueryVector.offsets[i + 1]!);
    }
  }
}
