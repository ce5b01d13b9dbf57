/**
 * Key -> row number of its newest version. Open addressing over interleaved words [row + 1, hash]; the key bytes stay in the
 * columns. A large index is 256 parts by the top bits of the hash: they double one by one, and their sizes differ so that
 * they do so at different times. No key waits for all of them to move, and at any size the whole is about half full. Paths
 * of many rows hash first, touch the slots, then probe: the cache misses overlap, which is why all parts are reached through
 * a view or two of the memory that they lie in and not through one each.
 */
import { assert } from '../../../errors.ts';
import type { Extents } from '../cells/column-extents.ts';

/** Compares the key of a stored row with key bytes in a path. */
export interface StoredKeys {
  matches(row: number, heap: Uint8Array, start: number, size: number, path: number): boolean;
}

const EMPTY = 0;
/** A removed key: probes go on past it. */
const GONE = -1;
const FIRST_SLOTS = 128;
/** Slots of an index in one part; a larger one is cut into PARTS. */
const WHOLE_SLOTS = 16_384;
const PARTS = 256;
const empty = new Int32Array(8192).fill(EMPTY);
const slotStarts = new Int32Array(1024);

export class PrimaryKeyIndex {
  readonly #keys: StoredKeys;
  readonly #extents: Extents;
  /** The memories that parts lie in, whole. */
  readonly #memories: Int32Array[];
  /** Number of the memory that each part lies in, ... */
  #memoryOf = new Uint8Array(1);
  /** ... and at which word of it. */
  #bases = new Int32Array(1);
  /** The memory of each part. */
  #parts: Int32Array[];
  /** Slots of each part. */
  #sizes = new Int32Array([FIRST_SLOTS]);
  /** Slots of each part that are not EMPTY. */
  #used = new Int32Array(1);
  /** Slots of each part that are GONE. */
  #gone = new Int32Array(1);
  /** Selects the top eight bits of a hash, which choose its part. */
  #mask = 0;
  #size = 0;

  constructor(keys: StoredKeys, extents: Extents) {
    this.#keys = keys;
    this.#extents = extents;
    this.#parts = [new Int32Array(FIRST_SLOTS * 2)];
    this.#memories = [...this.#parts];
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** Row number of the newest version, or -1. */
  find(heap: Uint8Array, start: number, size: number, path: number, hash: number): number {
    const part = (hash >>> 24) & this.#mask;
    const slots = this.#memories[this.#memoryOf[part]!]!;
    const base = this.#bases[part]!;
    const end = this.#sizes[part]!;
    for (let slot = placeOf(hash, end); ; ) {
      const row = slots[base + slot * 2]! - 1;
      if (row === EMPTY - 1) return -1;
      if (row >= 0 && slots[base + slot * 2 + 1] === hash && this.#keys.matches(row, heap, start, size, path)) return row;
      if (++slot === end) slot = 0;
    }
  }

  /** Makes `row` the newest version of its key; returns the one before, or -1. */
  put(heap: Uint8Array, start: number, size: number, path: number, hash: number, row: number): number {
    const part = (hash >>> 24) & this.#mask;
    const slots = this.#memories[this.#memoryOf[part]!]!;
    const base = this.#bases[part]!;
    const end = this.#sizes[part]!;
    for (let slot = placeOf(hash, end); ; ) {
      const storedRow = slots[base + slot * 2]! - 1;
      if (storedRow === EMPTY - 1) {
        slots[base + slot * 2] = row + 1;
        slots[base + slot * 2 + 1] = hash;
        this.#countAdded(part);
        return -1;
      }
      if (storedRow >= 0 && slots[base + slot * 2 + 1] === hash && this.#keys.matches(storedRow, heap, start, size, path)) {
        slots[base + slot * 2] = row + 1;
        return storedRow;
      }
      if (++slot === end) slot = 0;
    }
  }

  /** Puts a key that is known not to be there. */
  enter(hash: number, row: number): void {
    const part = (hash >>> 24) & this.#mask;
    enterSlot(this.#parts[part]!, this.#sizes[part]!, hash, row + 1);
    this.#countAdded(part);
  }

  /** Gives the slot of a row to an older version of its key, or empties it (-1). A row without a key is passed over. */
  pass(hash: number, row: number, heir: number): void {
    const part = (hash >>> 24) & this.#mask;
    const slots = this.#memories[this.#memoryOf[part]!]!;
    const base = this.#bases[part]!;
    const end = this.#sizes[part]!;
    for (let slot = placeOf(hash, end); slots[base + slot * 2] !== EMPTY; ) {
      if (slots[base + slot * 2] === row + 1) {
        slots[base + slot * 2] = heir < 0 ? GONE : heir + 1;
        if (heir >= 0) return;
        this.#gone[part]!++;
        this.#size--;
        return;
      }
      if (++slot === end) slot = 0;
    }
  }

  /** Brings the slots of many hashes into the cache; the sum keeps the loads from being optimised away. */
  touch(hashes: Int32Array, count: number): number {
    let sum = 0;
    for (let from = 0; from < count; from += slotStarts.length) {
      const end = Math.min(count, from + slotStarts.length);
      for (const [number, slots] of this.#memories.entries()) {
        const slotCount = this.#placesIn(number, hashes, from, end);
        // As little as can be between two loads that miss: the fewer instructions, the more of them are under way.
        for (let i = 0; i < slotCount; i++) sum ^= slots[slotStarts[i]!]!;
      }
    }
    return sum;
  }

  /** Words of one memory at which probes for hashes[from..end) begin. */
  #placesIn(memory: number, hashes: Int32Array, from: number, end: number): number {
    const bases = this.#bases;
    const sizes = this.#sizes;
    const memoryOf = this.#memoryOf;
    const mask = this.#mask;
    if (this.#memories.length === 1) {
      for (let i = from; i < end; i++) {
        const part = (hashes[i]! >>> 24) & mask;
        slotStarts[i - from] = bases[part]! + placeOf(hashes[i]!, sizes[part]!) * 2;
      }
      return end - from;
    }
    let slotCount = 0;
    for (let i = from; i < end; i++) {
      const hash = hashes[i]!;
      const part = (hash >>> 24) & mask;
      if (memoryOf[part] === memory) slotStarts[slotCount++] = bases[part]! + placeOf(hash, sizes[part]!) * 2;
    }
    return slotCount;
  }

  #countAdded(part: number): void {
    this.#size++;
    if (++this.#used[part]! * 4 <= this.#sizes[part]! * 3) return;
    if (this.#mask === 0 && this.#sizes[0] === WHOLE_SLOTS) this.#cut();
    else this.#grow(part);
  }

  #grow(part: number): void {
    const before = this.#parts[part]!;
    const keysLeft = this.#used[part]! - this.#gone[part]!;
    // Where many keys were removed there is room enough without them.
    const size = this.#sizes[part]! * (keysLeft * 8 > this.#sizes[part]! * 3 ? 2 : 1);
    const slots = this.#slots(size);
    for (let i = 0; i < before.length; i += 2) if (before[i]! > EMPTY) enterSlot(slots, size, before[i + 1]!, before[i]!);
    this.#extents.giveBack(before);
    this.#settle(part, slots);
    this.#used[part] = keysLeft;
    this.#gone[part] = 0;
  }

  /** Makes room for so many keys, before the first of them, a part a step: until the last step the index is not used. */
  *expect(count: number): Generator<undefined, void> {
    if (this.#size > 0 || this.#mask > 0) return;
    if (count * 4 > WHOLE_SLOTS * 3) return yield* this.#cutting(count / PARTS);
    let size = this.#sizes[0]!;
    while (count * 4 > size * 3) size *= 2;
    if (size > this.#sizes[0]!) this.#settle(0, this.#slots(size));
  }

  #cut(): void {
    const before = this.#parts[0]!;
    for (const _ of this.#cutting(0));
    for (let i = 0; i < before.length; i += 2) if (before[i]! > EMPTY) this.enter(before[i + 1]!, before[i]! - 1);
  }

  /** Into parts that have room for `expected` keys each, and none. */
  *#cutting(expected: number): Generator<undefined, void> {
    this.#sizes = Int32Array.from({ length: PARTS }, (_, part) => {
      let size = Math.floor(((2 * WHOLE_SLOTS) / PARTS) * 2 ** (part / PARTS));
      while (expected * 4 > size * 3) size *= 2;
      return size;
    });
    this.#memories.length = 0;
    this.#memoryOf = new Uint8Array(PARTS);
    this.#bases = new Int32Array(PARTS);
    this.#used = new Int32Array(PARTS);
    this.#gone = new Int32Array(PARTS);
    this.#mask = PARTS - 1;
    this.#size = 0;
    for (const [part, size] of this.#sizes.entries()) {
      this.#settle(part, this.#slots(size));
      yield;
    }
  }

  #settle(part: number, slots: Int32Array): void {
    let memory = this.#memories.findIndex(({ buffer }) => buffer === slots.buffer);
    if (memory < 0) {
      if (this.#mask === 0) this.#memories.length = 0;
      memory = this.#memories.push(new Int32Array(slots.buffer)) - 1;
    }
    assert(memory < 256, 'an index lies in few memories');
    this.#parts[part] = slots;
    this.#memoryOf[part] = memory;
    this.#bases[part] = slots.byteOffset / 4;
    this.#sizes[part] = slots.length / 2;
  }

  /** In column memory once there are parts: arrays of their own would be a memory each. */
  #slots(size: number): Int32Array {
    if (this.#mask === 0) return new Int32Array(size * 2);
    const slots = this.#extents.allocate(Int32Array, size * 2);
    // Shared memory is filled word by word, but copied in one go.
    for (let at = 0; at < slots.length; at += empty.length) slots.set(empty.subarray(0, slots.length - at), at);
    return slots;
  }
}

/** In order of the low bits, whatever the size; a whole number on either way, which keeps the arithmetic on words. */
function placeOf(hash: number, size: number): number {
  return (size <= 65_536 ? ((hash & 0xffff) * size) >>> 16 : (hash & 0xffffff) * (size / 16_777_216)) | 0;
}

function enterSlot(slots: Int32Array, size: number, hash: number, word: number): void {
  let slot = placeOf(hash, size);
  while (slots[slot * 2] !== EMPTY) if (++slot === size) slot = 0;
  slots[slot * 2] = word;
  slots[slot * 2 + 1] = hash;
}
