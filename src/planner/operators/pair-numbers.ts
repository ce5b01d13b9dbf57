/**
 * Pairs of small numbers to numbers again, in order of first appearance: open addressing over typed arrays. A large table
 * grows into one of twice its length a few pairs at a time, while others come: moved all at once, a million of them would keep
 * everybody waiting for tens of milliseconds.
 */

/** Places of the tables that pairs of small numbers need no hashing for. */
const placesInAll = 1 << 20;
/** A table that is shorter moves at once. */
const movesFrom = 1 << 16;
/** So many move for every few that come: they are through long before there are so many again. */
const movesAtOnce = 64;
const comeBetween = 8;

/**
 * The share of its full load at which the table `at` grows. Otherwise tables side by side that take the same rows would all grow
 * at one row, in one turn.
 */
export function fillOf(tables: number, at: number): number {
  return 1 - at / tables / 2;
}

/** Pairs of numbers to numbers from 0. Also counts distinct values per group. */
export class PairNumbers {
  #slots = new Int32Array(256);
  /** The table that pairs move from: it has all below `#movesEnd`, of which those below `#moved` are in `#slots` too. */
  #before: Int32Array | null = null;
  #moved = 0;
  #movesEnd = 0;
  #left: Int32Array<ArrayBuffer>;
  #right: Int32Array<ArrayBuffer>;
  /** Numbers + 1 by left and right side by side, `bits` for the right one; null once there would be too many places. */
  #places: Int32Array<ArrayBuffer> | null = new Int32Array(0);
  bits = 0;
  size = 0;
  readonly #placesMax: number;
  readonly #fill: number;

  /** One of `tables` that are held side by side and share the room for places: the one at `at`. */
  constructor(tables = 1, at = 0) {
    this.#placesMax = Math.floor(placesInAll / tables);
    this.#fill = fillOf(tables, at);
    this.#left = new Int32Array(Math.ceil(128 * this.#fill));
    this.#right = new Int32Array(Math.ceil(128 * this.#fill));
  }

  get bytes(): number {
    const tables = this.#slots.byteLength + (this.#before?.byteLength ?? 0) + (this.#places?.byteLength ?? 0);
    return tables + this.#left.byteLength + this.#right.byteLength;
  }

  /** Replaces left[j] by the number of (left[j], right[j]); lefts are below leftSize, rights below rightSize. */
  assign(left: Int32Array, right: Int32Array, count: number, leftSize: number, rightSize: number): void {
    const places = this.placesFor(leftSize, rightSize);
    if (places === null) {
      for (let j = 0; j < count; j++) left[j] = this.numberOf(left[j]!, right[j]!);
      return;
    }
    const bits = this.bits;
    for (let j = 0; j < count; j++) {
      const place = (left[j]! << bits) | right[j]!;
      const known = places[place]!;
      if (known !== 0) left[j] = known - 1;
      else {
        places[place] = this.#append(left[j]!, right[j]!) + 1;
        left[j] = this.size - 1;
      }
    }
  }

  /** Gives each pair that has not come before a number, and writes its place in the batch to `out`; returns how many there were. */
  admit(left: Int32Array, right: Int32Array, count: number, leftSize: number, rightSize: number, out: Int32Array): number {
    const places = this.placesFor(leftSize, rightSize);
    let admitted = 0;
    if (places === null) {
      for (let j = 0; j < count; j++) {
        const known = this.size;
        if (this.numberOf(left[j]!, right[j]!) === known) out[admitted++] = j;
      }
      return admitted;
    }
    const bits = this.bits;
    for (let j = 0; j < count; j++) {
      const place = (left[j]! << bits) | right[j]!;
      if (places[place] !== 0) continue;
      places[place] = this.#append(left[j]!, right[j]!) + 1;
      out[admitted++] = j;
    }
    return admitted;
  }

  numberOf(left: number, right: number): number {
    if (this.#places !== null) this.#hash();
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = hashWords(left, right) & mask;
    for (;;) {
      const index = slots[slot]! - 1;
      if (index < 0) break;
      if (this.#left[index] === left && this.#right[index] === right) return index;
      slot = (slot + 1) & mask;
    }
    if (this.#before !== null) {
      const index = this.#findIn(this.#before, left, right);
      if (index >= 0) return index;
    }
    const index = this.#append(left, right);
    slots[slot] = index + 1;
    if (this.#before !== null) {
      if (index % comeBetween === 0) this.#move();
    } else if (this.size * 2 > slots.length * this.#fill) this.#grow();
    return index;
  }

  /** -1 where the pair never came. */
  find(left: number, right: number): number {
    const index = this.#findIn(this.#slots, left, right);
    return index >= 0 || this.#before === null ? index : this.#findIn(this.#before, left, right);
  }

  #findIn(slots: Int32Array, left: number, right: number): number {
    const mask = slots.length - 1;
    let slot = hashWords(left, right) & mask;
    for (;;) {
      const index = slots[slot]! - 1;
      if (index < 0 || (this.#left[index] === left && this.#right[index] === right)) return index;
      slot = (slot + 1) & mask;
    }
  }

  #grow(): void {
    const { length } = this.#slots;
    if (length < movesFrom) {
      this.#slots = rehash(length * 2, this.size, this.#left, this.#right);
      return;
    }
    this.#before = this.#slots;
    this.#slots = new Int32Array(length * 2);
    this.#moved = 0;
    this.#movesEnd = this.size;
  }

  #move(): void {
    const slots = this.#slots;
    const lefts = this.#left;
    const rights = this.#right;
    const mask = slots.length - 1;
    const end = Math.min(this.#movesEnd, this.#moved + movesAtOnce);
    for (let index = this.#moved; index < end; index++) {
      let slot = hashWords(lefts[index]!, rights[index]!) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = index + 1;
    }
    this.#moved = end;
    if (end === this.#movesEnd) this.#before = null;
  }

  lefts(numbers: Int32Array): Int32Array {
    return pick(this.#left, numbers);
  }

  rights(numbers: Int32Array): Int32Array {
    return pick(this.#right, numbers);
  }

  #append(left: number, right: number): number {
    const index = this.size++;
    if (index === this.#left.length) {
      this.#left = doubleLength(this.#left);
      this.#right = doubleLength(this.#right);
    }
    this.#left[index] = left;
    this.#right[index] = right;
    return index;
  }

  /** The table with room for these, grown if need be; null where hashing takes over. */
  placesFor(leftSize: number, rightSize: number): Int32Array | null {
    if (this.#places === null) return null;
    const bits = Math.max(this.bits, 32 - Math.clz32(rightSize - 1));
    const length = leftSize * 2 ** bits;
    if (length > this.#placesMax) {
      this.#hash();
      return null;
    }
    if (bits > this.bits || length > this.#places.length) {
      const places = new Int32Array(Math.min(this.#placesMax, length * 2));
      for (let index = 0; index < this.size; index++) places[(this.#left[index]! << bits) | this.#right[index]!] = index + 1;
      this.#places = places;
      this.bits = bits;
    }
    return this.#places;
  }

  #hash(): void {
    this.#places = null;
    let length = this.#slots.length;
    while (length < this.size * 2) length *= 2;
    this.#slots = rehash(length, this.size, this.#left, this.#right);
  }
}

export function hashWords(a: number, b: number): number {
  let hash = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b, 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d);
  return hash ^ (hash >>> 15);
}

export function doubleLength(values: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(values.length * 2);
  larger.set(values);
  return larger;
}

export function rehash(length: number, size: number, left: Int32Array, right: Int32Array): Int32Array<ArrayBuffer> {
  const slots = new Int32Array(length);
  const mask = length - 1;
  for (let index = 0; index < size; index++) {
    let slot = hashWords(left[index]!, right[index]!) & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = index + 1;
  }
  return slots;
}

function pick(values: Int32Array, numbers: Int32Array): Int32Array {
  const out = new Int32Array(numbers.length);
  for (let j = 0; j < numbers.length; j++) out[j] = values[numbers[j]!]!;
  return out;
}
