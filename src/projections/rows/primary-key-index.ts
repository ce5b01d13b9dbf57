/**
 * Key -> row number of its newest version. Open addressing over interleaved words [row + 1, hash]; the key bytes stay
 * in the columns. Paths of many rows hash first, touch the slots, then probe: the cache misses overlap.
 */
import { assert } from '../../errors.ts';

/** Compares the key of a stored row with key bytes in a path. */
export interface StoredKeys {
  matches(row: number, heap: Uint8Array, start: number, size: number, path: number): boolean;
}

const EMPTY = 0;
/** A removed key: probes go on past it. */
const GONE = -1;

export class PrimaryKeyIndex {
  readonly #keys: StoredKeys;
  #slots = new Int32Array(256);
  #mask = 127;
  /** Slots that are not EMPTY. */
  #used = 0;
  #size = 0;

  constructor(keys: StoredKeys) {
    this.#keys = keys;
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#slots.byteLength;
  }

  /** Row number of the newest version, or -1. */
  find(heap: Uint8Array, start: number, size: number, path: number, hash: number): number {
    const slots = this.#slots;
    let slot = hash & this.#mask;
    for (;;) {
      const row = slots[slot * 2]! - 1;
      if (row === EMPTY - 1) return -1;
      if (row >= 0 && slots[slot * 2 + 1] === hash && this.#keys.matches(row, heap, start, size, path)) return row;
      slot = (slot + 1) & this.#mask;
    }
  }

  /** Makes `row` the newest version of its key; returns the one before, or -1. `reserve` must have been called. */
  put(heap: Uint8Array, start: number, size: number, path: number, hash: number, row: number): number {
    const slots = this.#slots;
    let slot = hash & this.#mask;
    for (;;) {
      const found = slots[slot * 2]! - 1;
      if (found === EMPTY - 1) {
        slots[slot * 2] = row + 1;
        slots[slot * 2 + 1] = hash;
        this.#used++;
        this.#size++;
        return -1;
      }
      if (found >= 0 && slots[slot * 2 + 1] === hash && this.#keys.matches(found, heap, start, size, path)) {
        slots[slot * 2] = row + 1;
        return found;
      }
      slot = (slot + 1) & this.#mask;
    }
  }

  /** Forgets a key. */
  remove(heap: Uint8Array, start: number, size: number, path: number, hash: number): void {
    const slots = this.#slots;
    let slot = hash & this.#mask;
    for (;;) {
      const found = slots[slot * 2]! - 1;
      assert(found !== EMPTY - 1, 'a removed key was indexed');
      if (found >= 0 && slots[slot * 2 + 1] === hash && this.#keys.matches(found, heap, start, size, path)) {
        slots[slot * 2] = GONE;
        this.#size--;
        return;
      }
      slot = (slot + 1) & this.#mask;
    }
  }

  /** Room for `count` more keys below 60 % load. */
  reserve(count: number): void {
    const need = this.#used + count;
    if (need * 5 <= (this.#mask + 1) * 3) return;
    let slots = this.#mask + 1;
    while ((this.#size + count) * 5 > slots * 3) slots *= 2;
    this.#rehash(slots);
  }

  /** Brings the slots of many hashes into the cache; the sum keeps the loads from being optimised away. */
  touch(hashes: Int32Array, count: number): number {
    const slots = this.#slots;
    const mask = this.#mask;
    let sum = 0;
    for (let i = 0; i < count; i++) sum ^= slots[(hashes[i]! & mask) * 2]!;
    return sum;
  }

  #rehash(count: number): void {
    const old = this.#slots;
    const slots = new Int32Array(count * 2);
    const mask = count - 1;
    for (let i = 0; i < old.length; i += 2) {
      if (old[i]! <= EMPTY) continue;
      let slot = old[i + 1]! & mask;
      while (slots[slot * 2] !== EMPTY) slot = (slot + 1) & mask;
      slots[slot * 2] = old[i]!;
      slots[slot * 2 + 1] = old[i + 1]!;
    }
    this.#slots = slots;
    this.#mask = mask;
    this.#used = this.#size;
  }
}
