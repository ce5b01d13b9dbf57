/**
 * Pairs of small numbers to numbers again, in order of first appearance. The first pair of each left number is found by that
 * number alone: where one key tells rows apart, as a primary key among the keys of a group does, nothing is hashed. Other pairs
 * rest in an open-addressed table. A large one grows into one of twice its length a few slots at a time, while others come:
 * moved all at once, a million of them would keep everybody waiting for tens of milliseconds.
 */

/** Places of the tables that pairs of small numbers need no hashing for. */
const slotsInAll = 1 << 20;
/** A table that is shorter moves at once. */
const movesFrom = 1 << 16;
/** Slots that move for every few new pairs: the move ends long before the table has to grow again. */
const slotsAtOnce = 256;
const comeBetween = 8;
const rowsAtOnce = 1_024;
const met = new Int32Array(rowsAtOnce);

/**
 * The share of its full load at which the table `at` grows. Otherwise tables side by side that take the same rows would all grow
 * at one row, in one turn.
 */
export function fillOf(tables: number, at: number): number {
  return 1 - at / tables / 2;
}

/** Pairs of numbers to numbers from 0. Also counts distinct values per group. */
export class PairNumbers {
  /** By left number, two words: the number + 1 of its first pair, and the right number of that. */
  #firsts: Int32Array<ArrayBuffer>;
  /** Numbers + 1 of the other pairs, by hash. */
  #slots = new Int32Array(256);
  #hashed = 0;
  /** The table that pairs move from, and how far they have. */
  #before: Int32Array | null = null;
  #moved = 0;
  /** Left and right of each pair, one beside the other: both come in one line of the cache. */
  #pairs: Int32Array<ArrayBuffer>;
  /** Numbers + 1 by left and right side by side, `bits` for the right one; null once there would be too many places. */
  #numberOfPair: Int32Array<ArrayBuffer> | null = new Int32Array(0);
  bits = 0;
  size = 0;
  readonly #placesMax: number;
  readonly #fill: number;

  /** One of `tables` that are held side by side and share the room for places: the one at `at`. Most left numbers are below `leftSize`. */
  constructor({ tables = 1, at = 0, leftSize = 128 } = {}) {
    this.#placesMax = Math.floor(slotsInAll / tables);
    this.#fill = fillOf(tables, at);
    this.#firsts = new Int32Array(2 * Math.ceil(leftSize * this.#fill));
    this.#pairs = new Int32Array(2 * Math.ceil(128 * this.#fill));
  }

  get bytes(): number {
    const tables =
      this.#firsts.byteLength + this.#slots.byteLength + (this.#before?.byteLength ?? 0) + (this.#numberOfPair?.byteLength ?? 0);
    return tables + this.#pairs.byteLength;
  }

  /** Replaces left[j] by the number of (left[j], right[j]); lefts are below leftSize, rights below rightSize. */
  assign(left: Int32Array, right: Int32Array, count: number, leftSize: number, rightSize: number): void {
    const numberOfPair = this.slotsFor(leftSize, rightSize);
    if (numberOfPair === null) {
      for (let j = 0; j < count; j++) left[j] = this.numberOf(left[j]!, right[j]!);
      return;
    }
    const bits = this.bits;
    for (let j = 0; j < count; j++) {
      const pairIndex = (left[j]! << bits) | right[j]!;
      const known = numberOfPair[pairIndex]!;
      if (known !== 0) left[j] = known - 1;
      else {
        numberOfPair[pairIndex] = this.#append(left[j]!, right[j]!) + 1;
        left[j] = this.size - 1;
      }
    }
  }

  /** Gives each pair that has not come before a number, and writes its place in the batch to `out`; returns how many there were. */
  admit(left: Int32Array, right: Int32Array, count: number, leftSize: number, rightSize: number, out: Int32Array): number {
    const numberOfPair = this.slotsFor(leftSize, rightSize);
    let admitted = 0;
    if (numberOfPair === null) {
      for (let j = 0; j < count; j++) {
        const known = this.size;
        if (this.numberOf(left[j]!, right[j]!) === known) out[admitted++] = j;
      }
      return admitted;
    }
    const bits = this.bits;
    for (let j = 0; j < count; j++) {
      const pairIndex = (left[j]! << bits) | right[j]!;
      if (numberOfPair[pairIndex] !== 0) continue;
      numberOfPair[pairIndex] = this.#append(left[j]!, right[j]!) + 1;
      out[admitted++] = j;
    }
    return admitted;
  }

  numberOf(left: number, right: number): number {
    if (this.#numberOfPair !== null) this.#hash();
    const first = 2 * left < this.#firsts.length ? this.#firsts[2 * left]! : 0;
    if (first === 0) {
      const index = this.#append(left, right);
      this.#setFirst(index);
      return index;
    }
    if (this.#firsts[2 * left + 1] === right) return first - 1;
    const slots = this.#slots;
    const pairs = this.#pairs;
    const mask = slots.length - 1;
    let slot = hashWords(left, right) & mask;
    for (;;) {
      const number = slots[slot]!;
      if (number === 0) break;
      if (pairs[2 * number - 2] === left && pairs[2 * number - 1] === right) return number - 1;
      slot = (slot + 1) & mask;
    }
    if (this.#before !== null) {
      const number = this.#findBefore(left, right);
      if (number !== 0) return number - 1;
    }
    const index = this.#append(left, right);
    slots[slot] = index + 1;
    this.#hashed++;
    if (this.#before !== null) {
      if (this.#hashed % comeBetween === 0) this.#move(this.#before, slotsAtOnce);
    } else if (this.#hashed * 2 > slots.length * this.#fill) this.#grow();
    return index;
  }

  /** Replaces left[j] by the number of (left[j], right[j]), + 1; 0 where the pair never came. */
  find(left: Int32Array, right: Int32Array, count: number): void {
    if (this.#numberOfPair !== null) this.#hash();
    const firsts = this.#firsts;
    const pairs = this.#pairs;
    const slots = this.#slots;
    const mask = slots.length - 1;
    const isAllFirst = this.#hashed === 0;
    const isMoving = this.#before !== null;
    for (let from = 0; from < count; from += rowsAtOnce) {
      const end = Math.min(count, from + rowsAtOnce);
      // Loads that don't wait for each other: comparisons hit the cache.
      if (!isAllFirst) for (let j = from; j < end; j++) met[j - from] = slots[hashWords(left[j]!, right[j]!) & mask]!;
      for (let j = from; j < end; j++) {
        const a = left[j]!;
        const b = right[j]!;
        let number = 2 * a < firsts.length ? firsts[2 * a]! : 0;
        if (number !== 0 && firsts[2 * a + 1] !== b) {
          number = isAllFirst ? 0 : met[j - from]!;
          if (number !== 0 && (pairs[2 * number - 2] !== a || pairs[2 * number - 1] !== b)) {
            let slot = hashWords(a, b) & mask;
            do {
              slot = (slot + 1) & mask;
              number = slots[slot]!;
            } while (number !== 0 && (pairs[2 * number - 2] !== a || pairs[2 * number - 1] !== b));
          }
          if (isMoving && number === 0) number = this.#findBefore(a, b);
        }
        left[j] = number;
      }
    }
  }

  /** Number + 1 of a pair that has not moved yet; 0 where there is none. */
  #findBefore(left: number, right: number): number {
    const slots = this.#before;
    if (slots === null) return 0;
    const pairs = this.#pairs;
    const mask = slots.length - 1;
    let slot = hashWords(left, right) & mask;
    for (;;) {
      const number = slots[slot]!;
      if (number === 0 || (pairs[2 * number - 2] === left && pairs[2 * number - 1] === right)) return number;
      slot = (slot + 1) & mask;
    }
  }

  #setFirst(index: number): void {
    const left = this.#pairs[2 * index]!;
    while (2 * left >= this.#firsts.length) this.#firsts = doubleLength(this.#firsts);
    this.#firsts[2 * left] = index + 1;
    this.#firsts[2 * left + 1] = this.#pairs[2 * index + 1]!;
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new Int32Array(before.length * 2);
    this.#before = before;
    this.#moved = 0;
    if (before.length < movesFrom) this.#move(before, before.length);
  }

  #move(before: Int32Array, count: number): void {
    const slots = this.#slots;
    const pairs = this.#pairs;
    const mask = slots.length - 1;
    const end = Math.min(before.length, this.#moved + count);
    for (let at = this.#moved; at < end; at++) {
      const number = before[at]!;
      if (number === 0) continue;
      let slot = hashWords(pairs[2 * number - 2]!, pairs[2 * number - 1]!) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = number;
    }
    this.#moved = end;
    if (end === before.length) this.#before = null;
  }

  lefts(numbers: Int32Array): Int32Array {
    return numbers.map((number) => this.#pairs[2 * number]!);
  }

  rights(numbers: Int32Array): Int32Array {
    return numbers.map((number) => this.#pairs[2 * number + 1]!);
  }

  #append(left: number, right: number): number {
    const index = this.size++;
    if (2 * index === this.#pairs.length) this.#pairs = doubleLength(this.#pairs);
    this.#pairs[2 * index] = left;
    this.#pairs[2 * index + 1] = right;
    return index;
  }

  /** The table with room for these, grown if need be; null where hashing takes over. */
  slotsFor(leftSize: number, rightSize: number): Int32Array | null {
    if (this.#numberOfPair === null) return null;
    const bits = Math.max(this.bits, 32 - Math.clz32(rightSize - 1));
    const length = leftSize * 2 ** bits;
    if (length > this.#placesMax) {
      this.#hash();
      return null;
    }
    if (bits > this.bits || length > this.#numberOfPair.length) {
      const widened = new Int32Array(Math.min(this.#placesMax, length * 2));
      for (let index = 0; index < this.size; index++)
        widened[(this.#pairs[2 * index]! << bits) | this.#pairs[2 * index + 1]!] = index + 1;
      this.#numberOfPair = widened;
      this.bits = bits;
    }
    return this.#numberOfPair;
  }

  #hash(): void {
    this.#numberOfPair = null;
    for (let index = this.size - 1; index >= 0; index--) this.#setFirst(index);
    const others = new Int32Array(this.size);
    for (let index = 0; index < this.size; index++) if (!this.#isFirst(index)) others[this.#hashed++] = index + 1;
    let { length } = this.#slots;
    while (length < this.#hashed * 2) length *= 2;
    this.#slots = new Int32Array(length);
    this.#moved = 0;
    this.#move(others, this.#hashed);
  }

  #isFirst(index: number): boolean {
    return this.#firsts[2 * this.#pairs[2 * index]!] === index + 1;
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
