/**
 * Results of conditions on rows whose cells never change: a bit a row, computed a segment at a time when a scan first meets it,
 * and kept within bounds for every reader under an equal condition. A bit stays right whatever happens to the row later;
 * visibility of versions is decided elsewhere.
 */
import { LRUCache } from 'lru-cache';
import type { SettledCells } from '../../projections/access-paths.ts';
import type { RowCondition } from './grant.ts';

const conditionBitsMax = 64 * 1024 * 1024;
/** A size: for a number of them the cache would take its room at once. */
const conditionNumbersMax = 4096;
/** Maximum number of segments ever met; the number of a condition is counted above it. */
const segmentStride = 2 ** 28;

export class RowConditionBits {
  readonly #passBits: LRUCache<number, Int32Array>;
  readonly #conditionNumbers = new LRUCache<string, number>({ maxSize: conditionNumbersMax, sizeCalculation: () => 1 });
  readonly #numbersByCondition = new WeakMap<RowCondition, number>();
  readonly #segmentNumbers = new WeakMap<object, number>();
  #conditionCount = 0;
  #segmentsMet = 0;

  constructor(bytesMax = conditionBitsMax) {
    this.#passBits = new LRUCache({ maxSize: bytesMax, sizeCalculation: ({ byteLength }) => byteLength });
  }

  find({ identity }: SettledCells, condition: RowCondition): Int32Array | undefined {
    return this.#passBits.get(this.#passBitsKey(identity, condition));
  }

  learn(cells: SettledCells, condition: RowCondition): Int32Array {
    const { identity, length } = cells;
    const passFlags = new Uint8Array(length);
    condition.test(cells.columns(condition.columns), null, 0, length, passFlags);
    const passBits = bitsOf(passFlags, 0, length);
    this.#passBits.set(this.#passBitsKey(identity, condition), passBits);
    return passBits;
  }

  #passBitsKey(cellsIdentity: object, condition: RowCondition): number {
    let conditionNumber = this.#numbersByCondition.get(condition);
    if (conditionNumber === undefined) {
      conditionNumber = this.#conditionNumbers.get(condition.key) ?? ++this.#conditionCount;
      this.#conditionNumbers.set(condition.key, conditionNumber);
      this.#numbersByCondition.set(condition, conditionNumber);
    }
    let segmentNumber = this.#segmentNumbers.get(cellsIdentity);
    if (segmentNumber === undefined) this.#segmentNumbers.set(cellsIdentity, (segmentNumber = ++this.#segmentsMet));
    return conditionNumber * segmentStride + segmentNumber;
  }
}

/** One bit a row of what is said of rows first .. first+count-1, in row numbers; rows below are 0. */
export function bitsOf(passFlags: Uint8Array, first: number, count: number): Int32Array {
  const bits = new Int32Array((first + count + 31) >>> 5);
  for (let k = 0; k < count; ) {
    const row = first + k;
    const end = Math.min(count, k + 32 - (row & 31));
    let bitWord = 0;
    for (let bit = row & 31; k < end; k++, bit++) bitWord |= passFlags[k]! << bit;
    bits[row >>> 5] = bitWord;
  }
  return bits;
}

export function hasBit(bits: Int32Array, row: number): number {
  return (bits[row >>> 5]! >>> (row & 31)) & 1;
}

/** How many of rows first .. first+count-1 have their bit in both; null has all. */
export function countBits(bits: Int32Array, otherBits: Int32Array | null, first: number, count: number): number {
  const endRow = first + count;
  let bitCount = 0;
  for (let word = first >>> 5; word << 5 < endRow; word++) {
    let wordBits = bits[word]! & (word << 5 < first ? -1 << (first & 31) : -1);
    if (otherBits !== null) wordBits &= otherBits[word]!;
    if (endRow - (word << 5) < 32) wordBits &= (1 << (endRow & 31)) - 1;
    wordBits -= (wordBits >>> 1) & 0x5555_5555;
    wordBits = (wordBits & 0x3333_3333) + ((wordBits >>> 2) & 0x3333_3333);
    bitCount += Math.imul((wordBits + (wordBits >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
  }
  return bitCount;
}
