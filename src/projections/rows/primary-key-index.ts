/**
 * Key -> row number of its newest version, in interleaved words [row + 1, hash]; the key bytes stay in the columns. The
 * top bits of a hash choose a bucket, its low bits a place in the bucket, by open addressing. Buckets grow and split one
 * by one, so that no key waits for all of them to move, and at any time they are about half to three fifths full. Paths of many
 * rows hash first, touch the slots, then probe: the cache misses overlap.
 */
import { assert } from '../../errors.ts';
import type { Extents } from './extents.ts';

/** Compares the key of a stored row with key bytes in a path. */
export interface StoredKeys {
  matches(row: number, heap: Uint8Array, start: number, size: number, path: number): boolean;
}

const EMPTY = 0;
/** A removed key: probes go on past it. */
const GONE = -1;
const FIRST_SLOTS = 128;
/** Up to here buckets double. From here on they rest in column memory and grow by steps, which waste less. */
const STEPPED_SLOTS = 16_384;
const STEP = 4096;
/** A bucket that outgrows this splits: moving its keys takes some 100 µs. */
const MOST_SLOTS = 24_576;
/** Far beyond what hashes of 32 bits that fell out by chance need: keys that were made to collide share a bucket. */
const MOST_DEPTH = 16;

interface Bucket {
  readonly slots: Int32Array;
  readonly size: number;
  /** How many top bits of the hash all its keys share. */
  readonly depth: number;
  /** Slots that are not EMPTY. */
  used: number;
}

export class PrimaryKeyIndex {
  readonly #keys: StoredKeys;
  readonly #extents: Extents;
  /** 2^(32 - shift) entries by top bits; a bucket of fewer bits stands under several. */
  #buckets: Bucket[];
  #shift = 31;
  #size = 0;

  constructor(keys: StoredKeys, extents: Extents) {
    this.#keys = keys;
    this.#extents = extents;
    const bucket = this.#newBucket(FIRST_SLOTS, 0);
    this.#buckets = [bucket, bucket];
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    let total = 0;
    for (const { slots } of new Set(this.#buckets)) total += slots.byteLength;
    return total;
  }

  /** Row number of the newest version, or -1. */
  find(heap: Uint8Array, start: number, size: number, path: number, hash: number): number {
    const bucket = this.#buckets[hash >>> this.#shift]!;
    const { slots } = bucket;
    let slot = placeOf(hash, bucket.size);
    for (;;) {
      const row = slots[slot * 2]! - 1;
      if (row === EMPTY - 1) return -1;
      if (row >= 0 && slots[slot * 2 + 1] === hash && this.#keys.matches(row, heap, start, size, path)) return row;
      if (++slot === bucket.size) slot = 0;
    }
  }

  /** Makes `row` the newest version of its key; returns the one before, or -1. */
  put(heap: Uint8Array, start: number, size: number, path: number, hash: number, row: number): number {
    const bucket = this.#buckets[hash >>> this.#shift]!;
    const { slots } = bucket;
    let slot = placeOf(hash, bucket.size);
    for (;;) {
      const found = slots[slot * 2]! - 1;
      if (found === EMPTY - 1) {
        slots[slot * 2] = row + 1;
        slots[slot * 2 + 1] = hash;
        bucket.used++;
        this.#added(bucket, hash);
        return -1;
      }
      if (found >= 0 && slots[slot * 2 + 1] === hash && this.#keys.matches(found, heap, start, size, path)) {
        slots[slot * 2] = row + 1;
        return found;
      }
      if (++slot === bucket.size) slot = 0;
    }
  }

  /** Puts a key that is known not to be there. */
  enter(hash: number, row: number): void {
    const bucket = this.#buckets[hash >>> this.#shift]!;
    enterSlot(bucket, hash, row + 1);
    this.#added(bucket, hash);
  }

  /** Forgets a key. */
  remove(heap: Uint8Array, start: number, size: number, path: number, hash: number): void {
    const bucket = this.#buckets[hash >>> this.#shift]!;
    const { slots } = bucket;
    let slot = placeOf(hash, bucket.size);
    for (;;) {
      const found = slots[slot * 2]! - 1;
      assert(found !== EMPTY - 1, 'a removed key was indexed');
      if (found >= 0 && slots[slot * 2 + 1] === hash && this.#keys.matches(found, heap, start, size, path)) {
        slots[slot * 2] = GONE;
        this.#size--;
        return;
      }
      if (++slot === bucket.size) slot = 0;
    }
  }

  /** Brings the slots of many hashes into the cache; the sum keeps the loads from being optimised away. */
  touch(hashes: Int32Array, count: number): number {
    const buckets = this.#buckets;
    const shift = this.#shift;
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const hash = hashes[i]!;
      const bucket = buckets[hash >>> shift]!;
      sum ^= bucket.slots[placeOf(hash, bucket.size) * 2]!;
    }
    return sum;
  }

  #added(bucket: Bucket, hash: number): void {
    this.#size++;
    if (bucket.used * 5 <= bucket.size * 3) return;
    if (bucket.size < STEPPED_SLOTS) this.#move(bucket, hash, bucket.size * 2);
    else if (bucket.size < MOST_SLOTS) this.#move(bucket, hash, bucket.size + STEP);
    else if (bucket.depth === MOST_DEPTH) this.#move(bucket, hash, bucket.size * 2);
    else this.#split(bucket, hash);
  }

  #move(bucket: Bucket, hash: number, slots: number): void {
    const wider = this.#newBucket(slots, bucket.depth);
    for (let i = 0; i < bucket.slots.length; i += 2) {
      if (bucket.slots[i]! > EMPTY) enterSlot(wider, bucket.slots[i + 1]!, bucket.slots[i]!);
    }
    this.#replace(bucket, hash, wider, wider);
  }

  #split(bucket: Bucket, hash: number): void {
    const depth = bucket.depth + 1;
    if (depth > 32 - this.#shift) {
      this.#buckets = this.#buckets.flatMap((each) => [each, each]);
      this.#shift--;
    }
    const bit = 32 - depth;
    // Should all of them fall on one side, they still fit.
    const low = this.#newBucket(STEPPED_SLOTS, depth);
    const high = this.#newBucket(STEPPED_SLOTS, depth);
    for (let i = 0; i < bucket.slots.length; i += 2) {
      if (bucket.slots[i]! <= EMPTY) continue;
      const own = bucket.slots[i + 1]!;
      enterSlot(((own >>> bit) & 1) === 0 ? low : high, own, bucket.slots[i]!);
    }
    this.#replace(bucket, hash, low, high);
  }

  /** Both halves of the entries that a bucket stands under. */
  #replace(bucket: Bucket, hash: number, low: Bucket, high: Bucket): void {
    const count = 2 ** (32 - this.#shift - bucket.depth);
    const first = Math.floor((hash >>> this.#shift) / count) * count;
    for (let i = 0; i < count; i++) this.#buckets[first + i] = i < count / 2 ? low : high;
    this.#extents.giveBack(bucket.slots);
  }

  #newBucket(size: number, depth: number): Bucket {
    const slots = size < STEPPED_SLOTS ? new Int32Array(size * 2) : this.#extents.allocate(Int32Array, size * 2).fill(EMPTY);
    return { slots, size, depth, used: 0 };
  }
}

/** In order of the low 16 bits, whatever the size. */
function placeOf(hash: number, size: number): number {
  return size <= 65_536 ? ((hash & 0xffff) * size) >>> 16 : Math.floor(((hash & 0xffff) * size) / 65_536);
}

function enterSlot(bucket: Bucket, hash: number, word: number): void {
  const { slots } = bucket;
  let slot = placeOf(hash, bucket.size);
  while (slots[slot * 2] !== EMPTY) if (++slot === bucket.size) slot = 0;
  slots[slot * 2] = word;
  slots[slot * 2 + 1] = hash;
  bucket.used++;
}
