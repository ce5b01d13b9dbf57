/** Pairs of small numbers to numbers again, in order of first appearance: open addressing over typed arrays. */

/** Pairs of numbers to numbers from 0. Also counts distinct values per group. */
export class PairNumbers {
  #slots = new Int32Array(256);
  #left = new Int32Array(128);
  #right = new Int32Array(128);
  size = 0;

  get bytes(): number {
    return this.#slots.byteLength + this.#left.byteLength + this.#right.byteLength;
  }

  /** Replaces left[j] by the number of (left[j], right[j]). */
  assign(left: Int32Array, right: Int32Array, count: number): void {
    for (let j = 0; j < count; j++) left[j] = this.numberOf(left[j]!, right[j]!);
  }

  numberOf(left: number, right: number): number {
    const mask = this.#slots.length - 1;
    let slot = hashWords(left, right) & mask;
    for (;;) {
      const index = this.#slots[slot]! - 1;
      if (index < 0) break;
      if (this.#left[index] === left && this.#right[index] === right) return index;
      slot = (slot + 1) & mask;
    }
    const index = this.size++;
    if (index === this.#left.length) {
      this.#left = doubled(this.#left);
      this.#right = doubled(this.#right);
    }
    this.#left[index] = left;
    this.#right[index] = right;
    this.#slots[slot] = index + 1;
    if (this.size * 2 > this.#slots.length) this.#slots = rehashed(this.#slots.length * 2, this.size, this.#left, this.#right);
    return index;
  }

  /** -1 where the pair never came. */
  find(left: number, right: number): number {
    const mask = this.#slots.length - 1;
    let slot = hashWords(left, right) & mask;
    for (;;) {
      const index = this.#slots[slot]! - 1;
      if (index < 0 || (this.#left[index] === left && this.#right[index] === right)) return index;
      slot = (slot + 1) & mask;
    }
  }

  lefts(numbers: Int32Array): Int32Array {
    return numbers.map((number) => this.#left[number]!);
  }

  rights(numbers: Int32Array): Int32Array {
    return numbers.map((number) => this.#right[number]!);
  }
}

export function hashWords(a: number, b: number): number {
  let hash = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b, 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d);
  return hash ^ (hash >>> 15);
}

export function doubled(values: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(values.length * 2);
  larger.set(values);
  return larger;
}

export function rehashed(length: number, size: number, left: Int32Array, right: Int32Array): Int32Array<ArrayBuffer> {
  const slots = new Int32Array(length);
  const mask = length - 1;
  for (let index = 0; index < size; index++) {
    let slot = hashWords(left[index]!, right[index]!) & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = index + 1;
  }
  return slots;
}
