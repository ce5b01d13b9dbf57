/**
 * Results of conditions on rows whose cells never change: a bit a row, computed a segment at a time when a scan first meets it,
 * and kept within bounds for every reader under an equal condition. A bit stays right whatever happens to the row later;
 * visibility of versions is decided elsewhere.
 */
import { LRUCache } from 'lru-cache';
import type { SettledCells } from '../../projections/access-paths.ts';
import type { RowCondition } from './grant.ts';

const bytesKept = 64 * 1024 * 1024;
/** A size: for a number of them the cache would take its room at once. */
const conditionsKept = 4096;
/** Maximum number of segments ever met; the number of a condition is counted above it. */
const segmentStride = 2 ** 28;

export class RowConditionBits {
  readonly #bits: LRUCache<number, Int32Array>;
  readonly #numbers = new LRUCache<string, number>({ maxSize: conditionsKept, sizeCalculation: () => 1 });
  readonly #conditions = new WeakMap<RowCondition, number>();
  readonly #segmentNumbers = new WeakMap<object, number>();
  #conditionsMet = 0;
  #stretchesMet = 0;

  constructor(bytesMax = bytesKept) {
    this.#bits = new LRUCache({ maxSize: bytesMax, sizeCalculation: ({ byteLength }) => byteLength });
  }

  find({ identity }: SettledCells, condition: RowCondition): Int32Array | undefined {
    return this.#bits.get(this.#key(identity, condition));
  }

  learn(cells: SettledCells, condition: RowCondition): Int32Array {
    const { identity, length } = cells;
    const passes = new Uint8Array(length);
    condition.test(cells.columns(condition.columns), null, 0, length, passes);
    const bits = bitsOf(passes, 0, length);
    this.#bits.set(this.#key(identity, condition), bits);
    return bits;
  }

  #key(identity: object, condition: RowCondition): number {
    let number = this.#conditions.get(condition);
    if (number === undefined) {
      number = this.#numbers.get(condition.key) ?? ++this.#conditionsMet;
      this.#numbers.set(condition.key, number);
      this.#conditions.set(condition, number);
    }
    let segmentNumber = this.#segmentNumbers.get(identity);
    if (segmentNumber === undefined) this.#segmentNumbers.set(identity, (segmentNumber = ++this.#stretchesMet));
    return number * segmentStride + segmentNumber;
  }
}

/** One bit a row of what is said of rows first .. first+count-1, in row numbers; rows below are 0. */
export function bitsOf(flags: Uint8Array, first: number, count: number): Int32Array {
  const bits = new Int32Array((first + count + 31) >>> 5);
  for (let k = 0; k < count; ) {
    const row = first + k;
    const end = Math.min(count, k + 32 - (row & 31));
    let word = 0;
    for (let bit = row & 31; k < end; k++, bit++) word |= flags[k]! << bit;
    bits[row >>> 5] = word;
  }
  return bits;
}

export function hasBit(bits: Int32Array, row: number): number {
  return (bits[row >>> 5]! >>> (row & 31)) & 1;
}

/** How many of rows first .. first+count-1 have their bit in both; null has all. */
export function countBits(bits: Int32Array, also: Int32Array | null, first: number, count: number): number {
  const end = first + count;
  let sum = 0;
  for (let word = first >>> 5; word << 5 < end; word++) {
    let left = bits[word]! & (word << 5 < first ? -1 << (first & 31) : -1);
    if (also !== null) left &= also[word]!;
    if (end - (word << 5) < 32) left &= (1 << (end & 31)) - 1;
    left -= (left >>> 1) & 0x5555_5555;
    left = (left & 0x3333_3333) + ((left >>> 2) & 0x3333_3333);
    sum += Math.imul((left + (left >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
  }
  return sum;
}
