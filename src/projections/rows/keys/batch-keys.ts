/** Which rows of one batch share a key: open addressing over the batch's own key bytes, groups numbered by appearance. */
import type { Vector } from '../../../log/values/columns.ts';
import { sameBytes } from '../cells/byte-hash.ts';
import { hashKeys } from './key-hashes.ts';

type TextVector = Extract<Vector, { kind: 'text' }>;

export class BatchKeys {
  readonly hashes: Int32Array;
  readonly #keys: TextVector;
  /** Interleaved [row + 1, group]. */
  readonly #slots: Int32Array;
  readonly #mask: number;
  #groups = 0;

  constructor(keys: TextVector, length: number, path: number) {
    this.#keys = keys;
    this.hashes = hashKeys(keys, length, path);
    let slots = 16;
    while (slots < length * 2) slots *= 2;
    this.#slots = new Int32Array(slots * 2);
    this.#mask = slots - 1;
  }

  get groups(): number {
    return this.#groups;
  }

  /** Group of a row: the next new number when its key has not come yet. */
  groupOf(row: number): number {
    const { heap, offsets } = this.#keys;
    const slots = this.#slots;
    const hash = this.hashes[row]!;
    const start = offsets[row]!;
    const size = offsets[row + 1]! - start;
    let slot = hash & this.#mask;
    for (;;) {
      const other = slots[slot * 2]! - 1;
      if (other < 0) {
        slots[slot * 2] = row + 1;
        slots[slot * 2 + 1] = this.#groups;
        return this.#groups++;
      }
      if (this.hashes[other] === hash) {
        const otherStart = offsets[other]!;
        if (offsets[other + 1]! - otherStart === size && sameBytes(heap, otherStart, heap, start, size))
          return slots[slot * 2 + 1]!;
      }
      slot = (slot + 1) & this.#mask;
    }
  }
}
