/** Which rows of one batch share a key: open addressing over the batch's own key bytes, groups numbered by appearance. */
import type { Vector } from '../../../log/values/columns.ts';
import { sameBytes } from '../cells/byte-hash.ts';
import { hashKeys } from './key-hashes.ts';

type TextVector = Extract<Vector, { kind: 'text' }>;

export class BatchKeys {
  readonly hashes: Int32Array;
  readonly #batchKeyTexts: TextVector;
  /** Interleaved [row + 1, group]. */
  readonly #keyGroupSlots: Int32Array;
  readonly #keySlotMask: number;
  #keyGroupCount = 0;

  constructor(batchKeyTexts: TextVector, length: number, path: number) {
    this.#batchKeyTexts = batchKeyTexts;
    this.hashes = hashKeys(batchKeyTexts, length, path);
    let keySlotCount = 16;
    while (keySlotCount < length * 2) keySlotCount *= 2;
    this.#keyGroupSlots = new Int32Array(keySlotCount * 2);
    this.#keySlotMask = keySlotCount - 1;
  }

  get groups(): number {
    return this.#keyGroupCount;
  }

  /** Group of a row: the next new number when its key has not come yet. */
  groupOf(row: number): number {
    const { heap, offsets } = this.#batchKeyTexts;
    const keySlots = this.#keyGroupSlots;
    const keyHash = this.hashes[row]!;
    const keyStart = offsets[row]!;
    const keySize = offsets[row + 1]! - keyStart;
    let keySlot = keyHash & this.#keySlotMask;
    for (;;) {
      const otherRow = keySlots[keySlot * 2]! - 1;
      if (otherRow < 0) {
        keySlots[keySlot * 2] = row + 1;
        keySlots[keySlot * 2 + 1] = this.#keyGroupCount;
        return this.#keyGroupCount++;
      }
      if (this.hashes[otherRow] === keyHash) {
        const otherStart = offsets[otherRow]!;
        if (offsets[otherRow + 1]! - otherStart === keySize && sameBytes(heap, otherStart, heap, keyStart, keySize))
          return keySlots[keySlot * 2 + 1]!;
      }
      keySlot = (keySlot + 1) & this.#keySlotMask;
    }
  }
}
