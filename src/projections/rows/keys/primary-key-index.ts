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

const EMPTY_SLOT = 0;
/** A removed key: probes go on past it. */
const GONE_SLOT = -1;
const FIRST_KEY_SLOTS = 128;
/** Slots of an index in one part; a larger one is cut into PARTS. */
const WHOLE_KEY_SLOTS = 16_384;
const KEY_PARTS = 256;
const emptyKeySlots = new Int32Array(8192).fill(EMPTY_SLOT);
const slotStarts = new Int32Array(1024);

export class PrimaryKeyIndex {
  readonly #storedKeys: StoredKeys;
  readonly #keySlotExtents: Extents;
  /** The memories that parts lie in, whole. */
  readonly #slotMemories: Int32Array[];
  /** Number of the memory that each part lies in, ... */
  #memoryOfPart = new Uint8Array(1);
  /** ... and at which word of it. */
  #partBases = new Int32Array(1);
  /** The memory of each part. */
  #keyParts: Int32Array[];
  /** Slots of each part. */
  #partSlotCounts = new Int32Array([FIRST_KEY_SLOTS]);
  /** Slots of each part that are not EMPTY. */
  #partUsedSlots = new Int32Array(1);
  /** Slots of each part that are GONE. */
  #partGoneSlots = new Int32Array(1);
  /** Selects the top eight bits of a hash, which choose its part. */
  #keyPartMask = 0;
  #keyCount = 0;

  constructor(storedKeys: StoredKeys, extents: Extents) {
    this.#storedKeys = storedKeys;
    this.#keySlotExtents = extents;
    this.#keyParts = [new Int32Array(FIRST_KEY_SLOTS * 2)];
    this.#slotMemories = [...this.#keyParts];
  }

  get size(): number {
    return this.#keyCount;
  }

  get bytes(): number {
    return this.#keyParts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** Row number of the newest version, or -1. */
  find(keyHeap: Uint8Array, start: number, size: number, path: number, keyHash: number): number {
    const keyPart = (keyHash >>> 24) & this.#keyPartMask;
    const keySlots = this.#slotMemories[this.#memoryOfPart[keyPart]!]!;
    const partBase = this.#partBases[keyPart]!;
    const partSlots = this.#partSlotCounts[keyPart]!;
    for (let keySlot = slotIndexOf(keyHash, partSlots); ; ) {
      const keyedRow = keySlots[partBase + keySlot * 2]! - 1;
      if (keyedRow === EMPTY_SLOT - 1) return -1;
      if (
        keyedRow >= 0 &&
        keySlots[partBase + keySlot * 2 + 1] === keyHash &&
        this.#storedKeys.matches(keyedRow, keyHeap, start, size, path)
      )
        return keyedRow;
      if (++keySlot === partSlots) keySlot = 0;
    }
  }

  /** Makes `keyedRow` the newest version of its key; returns the one before, or -1. */
  put(keyHeap: Uint8Array, start: number, size: number, path: number, keyHash: number, keyedRow: number): number {
    const keyPart = (keyHash >>> 24) & this.#keyPartMask;
    const keySlots = this.#slotMemories[this.#memoryOfPart[keyPart]!]!;
    const partBase = this.#partBases[keyPart]!;
    const partSlots = this.#partSlotCounts[keyPart]!;
    for (let keySlot = slotIndexOf(keyHash, partSlots); ; ) {
      const storedRow = keySlots[partBase + keySlot * 2]! - 1;
      if (storedRow === EMPTY_SLOT - 1) {
        keySlots[partBase + keySlot * 2] = keyedRow + 1;
        keySlots[partBase + keySlot * 2 + 1] = keyHash;
        this.#countAddedKey(keyPart);
        return -1;
      }
      if (
        storedRow >= 0 &&
        keySlots[partBase + keySlot * 2 + 1] === keyHash &&
        this.#storedKeys.matches(storedRow, keyHeap, start, size, path)
      ) {
        keySlots[partBase + keySlot * 2] = keyedRow + 1;
        return storedRow;
      }
      if (++keySlot === partSlots) keySlot = 0;
    }
  }

  /** Puts a key that is known not to be there. */
  enter(keyHash: number, keyedRow: number): void {
    const keyPart = (keyHash >>> 24) & this.#keyPartMask;
    enterKeySlot(this.#keyParts[keyPart]!, this.#partSlotCounts[keyPart]!, keyHash, keyedRow + 1);
    this.#countAddedKey(keyPart);
  }

  /** Gives the slot of a row to an older version of its key, or empties it (-1). A row without a key is passed over. */
  pass(keyHash: number, row: number, heirRow: number): void {
    const keyPart = (keyHash >>> 24) & this.#keyPartMask;
    const keySlots = this.#slotMemories[this.#memoryOfPart[keyPart]!]!;
    const partBase = this.#partBases[keyPart]!;
    const partSlots = this.#partSlotCounts[keyPart]!;
    for (let keySlot = slotIndexOf(keyHash, partSlots); keySlots[partBase + keySlot * 2] !== EMPTY_SLOT; ) {
      if (keySlots[partBase + keySlot * 2] === row + 1) {
        keySlots[partBase + keySlot * 2] = heirRow < 0 ? GONE_SLOT : heirRow + 1;
        if (heirRow >= 0) return;
        this.#partGoneSlots[keyPart]!++;
        this.#keyCount--;
        return;
      }
      if (++keySlot === partSlots) keySlot = 0;
    }
  }

  /** Brings the slots of many hashes into the cache; the sum keeps the loads from being optimised away. */
  touch(keyHashes: Int32Array, count: number): number {
    let touchedSum = 0;
    for (let touchedFrom = 0; touchedFrom < count; touchedFrom += slotStarts.length) {
      const touchedEnd = Math.min(count, touchedFrom + slotStarts.length);
      for (const [memoryNumber, memorySlots] of this.#slotMemories.entries()) {
        const slotCount = this.#slotStartsIn(memoryNumber, keyHashes, touchedFrom, touchedEnd);
        // As little as can be between two loads that miss: the fewer instructions, the more of them are under way.
        for (let i = 0; i < slotCount; i++) touchedSum ^= memorySlots[slotStarts[i]!]!;
      }
    }
    return touchedSum;
  }

  /** Words of one memory at which probes for hashes[from..end) begin. */
  #slotStartsIn(memory: number, hashes: Int32Array, from: number, end: number): number {
    const bases = this.#partBases;
    const sizes = this.#partSlotCounts;
    const memoryOf = this.#memoryOfPart;
    const mask = this.#keyPartMask;
    if (this.#slotMemories.length === 1) {
      for (let i = from; i < end; i++) {
        const part = (hashes[i]! >>> 24) & mask;
        slotStarts[i - from] = bases[part]! + slotIndexOf(hashes[i]!, sizes[part]!) * 2;
      }
      return end - from;
    }
    let slotCount = 0;
    for (let i = from; i < end; i++) {
      const hash = hashes[i]!;
      const part = (hash >>> 24) & mask;
      if (memoryOf[part] === memory) slotStarts[slotCount++] = bases[part]! + slotIndexOf(hash, sizes[part]!) * 2;
    }
    return slotCount;
  }

  #countAddedKey(keyPart: number): void {
    this.#keyCount++;
    if (++this.#partUsedSlots[keyPart]! * 4 <= this.#partSlotCounts[keyPart]! * 3) return;
    if (this.#keyPartMask === 0 && this.#partSlotCounts[0] === WHOLE_KEY_SLOTS) this.#cutIntoKeyParts();
    else this.#growKeyPart(keyPart);
  }

  #growKeyPart(keyPart: number): void {
    const smallerPart = this.#keyParts[keyPart]!;
    const keysLeft = this.#partUsedSlots[keyPart]! - this.#partGoneSlots[keyPart]!;
    // Where many keys were removed there is room enough without them.
    const grownPartSize = this.#partSlotCounts[keyPart]! * (keysLeft * 8 > this.#partSlotCounts[keyPart]! * 3 ? 2 : 1);
    const grownSlots = this.#allocateKeySlots(grownPartSize);
    for (let i = 0; i < smallerPart.length; i += 2)
      if (smallerPart[i]! > EMPTY_SLOT) enterKeySlot(grownSlots, grownPartSize, smallerPart[i + 1]!, smallerPart[i]!);
    this.#keySlotExtents.giveBack(smallerPart);
    this.#settleKeyPart(keyPart, grownSlots);
    this.#partUsedSlots[keyPart] = keysLeft;
    this.#partGoneSlots[keyPart] = 0;
  }

  /** Makes room for so many keys, before the first of them, a part a step: until the last step the index is not used. */
  *expect(expectedKeys: number): Generator<undefined, void> {
    if (this.#keyCount > 0 || this.#keyPartMask > 0) return;
    if (expectedKeys * 4 > WHOLE_KEY_SLOTS * 3) return yield* this.#cutKeyPartsInSteps(expectedKeys / KEY_PARTS);
    let expectedSlots = this.#partSlotCounts[0]!;
    while (expectedKeys * 4 > expectedSlots * 3) expectedSlots *= 2;
    if (expectedSlots > this.#partSlotCounts[0]!) this.#settleKeyPart(0, this.#allocateKeySlots(expectedSlots));
  }

  #cutIntoKeyParts(): void {
    const wholeSlots = this.#keyParts[0]!;
    for (const _ of this.#cutKeyPartsInSteps(0));
    for (let i = 0; i < wholeSlots.length; i += 2)
      if (wholeSlots[i]! > EMPTY_SLOT) this.enter(wholeSlots[i + 1]!, wholeSlots[i]! - 1);
  }

  /** Into parts that have room for `expectedPerPart` keys each, and none. */
  *#cutKeyPartsInSteps(expectedPerPart: number): Generator<undefined, void> {
    this.#partSlotCounts = Int32Array.from({ length: KEY_PARTS }, (_, keyPart) => {
      let partSize = Math.floor(((2 * WHOLE_KEY_SLOTS) / KEY_PARTS) * 2 ** (keyPart / KEY_PARTS));
      while (expectedPerPart * 4 > partSize * 3) partSize *= 2;
      return partSize;
    });
    this.#slotMemories.length = 0;
    this.#memoryOfPart = new Uint8Array(KEY_PARTS);
    this.#partBases = new Int32Array(KEY_PARTS);
    this.#partUsedSlots = new Int32Array(KEY_PARTS);
    this.#partGoneSlots = new Int32Array(KEY_PARTS);
    this.#keyPartMask = KEY_PARTS - 1;
    this.#keyCount = 0;
    for (const [part, size] of this.#partSlotCounts.entries()) {
      this.#settleKeyPart(part, this.#allocateKeySlots(size));
      yield;
    }
  }

  #settleKeyPart(keyPart: number, partSlots: Int32Array): void {
    let slotMemory = this.#slotMemories.findIndex(({ buffer }) => buffer === partSlots.buffer);
    if (slotMemory < 0) {
      if (this.#keyPartMask === 0) this.#slotMemories.length = 0;
      slotMemory = this.#slotMemories.push(new Int32Array(partSlots.buffer)) - 1;
    }
    assert(slotMemory < 256, 'an index lies in few memories');
    this.#keyParts[keyPart] = partSlots;
    this.#memoryOfPart[keyPart] = slotMemory;
    this.#partBases[keyPart] = partSlots.byteOffset / 4;
    this.#partSlotCounts[keyPart] = partSlots.length / 2;
  }

  /** In column memory once there are parts: arrays of their own would be a memory each. */
  #allocateKeySlots(partSize: number): Int32Array {
    if (this.#keyPartMask === 0) return new Int32Array(partSize * 2);
    const emptySlots = this.#keySlotExtents.allocate(Int32Array, partSize * 2);
    // Shared memory is filled word by word, but copied in one go.
    for (let clearedSlots = 0; clearedSlots < emptySlots.length; clearedSlots += emptyKeySlots.length)
      emptySlots.set(emptyKeySlots.subarray(0, emptySlots.length - clearedSlots), clearedSlots);
    return emptySlots;
  }
}

/** In order of the low bits, whatever the size; a whole number on either way, which keeps the arithmetic on words. */
function slotIndexOf(hash: number, size: number): number {
  return (size <= 65_536 ? ((hash & 0xffff) * size) >>> 16 : (hash & 0xffffff) * (size / 16_777_216)) | 0;
}

function enterKeySlot(keySlots: Int32Array, size: number, hash: number, slotWord: number): void {
  let keySlot = slotIndexOf(hash, size);
  while (keySlots[keySlot * 2] !== EMPTY_SLOT) if (++keySlot === size) keySlot = 0;
  keySlots[keySlot * 2] = slotWord;
  keySlots[keySlot * 2 + 1] = hash;
}
