/**
 * Pairs of small numbers to numbers again, in order of first appearance. The first pair of each left number is found by that
 * number alone: where one key tells rows apart, as a primary key among the keys of a group does, nothing is hashed. Other pairs
 * rest in an open-addressed table. A large one grows into one of twice its length a few slots at a time, while others come:
 * moved all at once, a million of them would keep everybody waiting for tens of milliseconds.
 */

/** Places of the tables that pairs of small numbers need no hashing for. */
const slotsInAll = 1 << 20;
/** A table that is shorter moves at once. */
const gradualMoveSlots = 1 << 16;
/** Slots that move for every few new pairs: the move ends long before the table has to grow again. */
const movedSlotsPerStep = 256;
const pairsBetweenMoves = 8;
const pairRowsPerStep = 1_024;
const probedSlots = new Int32Array(pairRowsPerStep);

/**
 * The share of its full load at which the table `tableIndex` grows. Otherwise tables side by side that take the same rows would all grow
 * at one row, in one turn.
 */
export function fillOf(tableCount: number, tableIndex: number): number {
  return 1 - tableIndex / tableCount / 2;
}

/** Pairs of numbers to numbers from 0. Also counts distinct values per group. */
export class PairNumbers {
  /** By left number, two words: the number + 1 of its first pair, and the right number of that. */
  #firstRights: Int32Array<ArrayBuffer>;
  /** Numbers + 1 of the other pairs, by hash. */
  #pairSlots = new Int32Array(256);
  #hashedPairs = 0;
  /** The table that pairs move from, and how far they have. */
  #smallerSlots: Int32Array | null = null;
  #movedSlots = 0;
  /** Left and right of each pair, one beside the other: both come in one line of the cache. */
  #pairsByNumber: Int32Array<ArrayBuffer>;
  /** Numbers + 1 by left and right side by side, `bits` for the right one; null once there would be too many places. */
  #numberOfPair: Int32Array<ArrayBuffer> | null = new Int32Array(0);
  bits = 0;
  size = 0;
  readonly #pairPlacesMax: number;
  readonly #fillFactor: number;

  /** One of `tables` that are held side by side and share the room for places: the one at `tableIndex`. Most left numbers are below `leftSize`. */
  constructor({ tables = 1, at: tableIndex = 0, leftSize = 128 } = {}) {
    this.#pairPlacesMax = Math.floor(slotsInAll / tables);
    this.#fillFactor = fillOf(tables, tableIndex);
    this.#firstRights = new Int32Array(2 * Math.ceil(leftSize * this.#fillFactor));
    this.#pairsByNumber = new Int32Array(2 * Math.ceil(128 * this.#fillFactor));
  }

  get bytes(): number {
    const tableBytes =
      this.#firstRights.byteLength +
      this.#pairSlots.byteLength +
      (this.#smallerSlots?.byteLength ?? 0) +
      (this.#numberOfPair?.byteLength ?? 0);
    return tableBytes + this.#pairsByNumber.byteLength;
  }

  /** Replaces left[j] by the number of (left[j], right[j]); lefts are below leftSize, rights below rightSize. */
  assign(leftNumbers: Int32Array, rightNumbers: Int32Array, count: number, leftSize: number, rightSize: number): void {
    const numberOfPair = this.slotsFor(leftSize, rightSize);
    if (numberOfPair === null) {
      for (let j = 0; j < count; j++) leftNumbers[j] = this.numberOf(leftNumbers[j]!, rightNumbers[j]!);
      return;
    }
    const rightBits = this.bits;
    for (let j = 0; j < count; j++) {
      const pairIndex = (leftNumbers[j]! << rightBits) | rightNumbers[j]!;
      const pairNumber = numberOfPair[pairIndex]!;
      if (pairNumber !== 0) leftNumbers[j] = pairNumber - 1;
      else {
        numberOfPair[pairIndex] = this.#appendPair(leftNumbers[j]!, rightNumbers[j]!) + 1;
        leftNumbers[j] = this.size - 1;
      }
    }
  }

  /** Gives each pair that has not come before a number, and writes its place in the batch to `admittedRows`; returns how many there were. */
  admit(
    leftNumbers: Int32Array,
    rightNumbers: Int32Array,
    count: number,
    leftSize: number,
    rightSize: number,
    admittedRows: Int32Array,
  ): number {
    const numberOfPair = this.slotsFor(leftSize, rightSize);
    let admittedCount = 0;
    if (numberOfPair === null) {
      for (let j = 0; j < count; j++) {
        const pairCount = this.size;
        if (this.numberOf(leftNumbers[j]!, rightNumbers[j]!) === pairCount) admittedRows[admittedCount++] = j;
      }
      return admittedCount;
    }
    const rightBits = this.bits;
    for (let j = 0; j < count; j++) {
      const pairIndex = (leftNumbers[j]! << rightBits) | rightNumbers[j]!;
      if (numberOfPair[pairIndex] !== 0) continue;
      numberOfPair[pairIndex] = this.#appendPair(leftNumbers[j]!, rightNumbers[j]!) + 1;
      admittedRows[admittedCount++] = j;
    }
    return admittedCount;
  }

  numberOf(leftNumber: number, rightNumber: number): number {
    if (this.#numberOfPair !== null) this.#hashPairs();
    const firstNumber = 2 * leftNumber < this.#firstRights.length ? this.#firstRights[2 * leftNumber]! : 0;
    if (firstNumber === 0) {
      const newPairIndex = this.#appendPair(leftNumber, rightNumber);
      this.#setFirstRight(newPairIndex);
      return newPairIndex;
    }
    if (this.#firstRights[2 * leftNumber + 1] === rightNumber) return firstNumber - 1;
    const pairSlots = this.#pairSlots;
    const pairsByNumber = this.#pairsByNumber;
    const slotMask = pairSlots.length - 1;
    let probedSlot = hashWords(leftNumber, rightNumber) & slotMask;
    for (;;) {
      const pairNumber = pairSlots[probedSlot]!;
      if (pairNumber === 0) break;
      if (pairsByNumber[2 * pairNumber - 2] === leftNumber && pairsByNumber[2 * pairNumber - 1] === rightNumber)
        return pairNumber - 1;
      probedSlot = (probedSlot + 1) & slotMask;
    }
    if (this.#smallerSlots !== null) {
      const pairNumber = this.#findInSmaller(leftNumber, rightNumber);
      if (pairNumber !== 0) return pairNumber - 1;
    }
    const index = this.#appendPair(leftNumber, rightNumber);
    pairSlots[probedSlot] = index + 1;
    this.#hashedPairs++;
    if (this.#smallerSlots !== null) {
      if (this.#hashedPairs % pairsBetweenMoves === 0) this.#moveSlots(this.#smallerSlots, movedSlotsPerStep);
    } else if (this.#hashedPairs * 2 > pairSlots.length * this.#fillFactor) this.#growSlots();
    return index;
  }

  /** Replaces left[j] by the number of (left[j], right[j]), + 1; 0 where the pair never came. */
  find(leftNumbers: Int32Array, rightNumbers: Int32Array, count: number): void {
    if (this.#numberOfPair !== null) this.#hashPairs();
    const firstRights = this.#firstRights;
    const pairsByNumber = this.#pairsByNumber;
    const pairSlots = this.#pairSlots;
    const slotMask = pairSlots.length - 1;
    const isAllFirst = this.#hashedPairs === 0;
    const isMoving = this.#smallerSlots !== null;
    for (let firstOfStep = 0; firstOfStep < count; firstOfStep += pairRowsPerStep) {
      const endOfStep = Math.min(count, firstOfStep + pairRowsPerStep);
      // Loads that don't wait for each other: comparisons hit the cache.
      if (!isAllFirst)
        for (let j = firstOfStep; j < endOfStep; j++)
          probedSlots[j - firstOfStep] = pairSlots[hashWords(leftNumbers[j]!, rightNumbers[j]!) & slotMask]!;
      for (let j = firstOfStep; j < endOfStep; j++) {
        const leftNumber = leftNumbers[j]!;
        const rightNumber = rightNumbers[j]!;
        let pairNumber = 2 * leftNumber < firstRights.length ? firstRights[2 * leftNumber]! : 0;
        if (pairNumber !== 0 && firstRights[2 * leftNumber + 1] !== rightNumber) {
          pairNumber = isAllFirst ? 0 : probedSlots[j - firstOfStep]!;
          if (
            pairNumber !== 0 &&
            (pairsByNumber[2 * pairNumber - 2] !== leftNumber || pairsByNumber[2 * pairNumber - 1] !== rightNumber)
          ) {
            let probedSlot = hashWords(leftNumber, rightNumber) & slotMask;
            do {
              probedSlot = (probedSlot + 1) & slotMask;
              pairNumber = pairSlots[probedSlot]!;
            } while (
              pairNumber !== 0 &&
              (pairsByNumber[2 * pairNumber - 2] !== leftNumber || pairsByNumber[2 * pairNumber - 1] !== rightNumber)
            );
          }
          if (isMoving && pairNumber === 0) pairNumber = this.#findInSmaller(leftNumber, rightNumber);
        }
        leftNumbers[j] = pairNumber;
      }
    }
  }

  /** Number + 1 of a pair that has not moved yet; 0 where there is none. */
  #findInSmaller(leftNumber: number, rightNumber: number): number {
    const smallerSlots = this.#smallerSlots;
    if (smallerSlots === null) return 0;
    const pairsByNumber = this.#pairsByNumber;
    const slotMask = smallerSlots.length - 1;
    let probedSlot = hashWords(leftNumber, rightNumber) & slotMask;
    for (;;) {
      const pairNumber = smallerSlots[probedSlot]!;
      if (
        pairNumber === 0 ||
        (pairsByNumber[2 * pairNumber - 2] === leftNumber && pairsByNumber[2 * pairNumber - 1] === rightNumber)
      )
        return pairNumber;
      probedSlot = (probedSlot + 1) & slotMask;
    }
  }

  #setFirstRight(pairIndex: number): void {
    const leftNumber = this.#pairsByNumber[2 * pairIndex]!;
    while (2 * leftNumber >= this.#firstRights.length) this.#firstRights = doubleLength(this.#firstRights);
    this.#firstRights[2 * leftNumber] = pairIndex + 1;
    this.#firstRights[2 * leftNumber + 1] = this.#pairsByNumber[2 * pairIndex + 1]!;
  }

  #growSlots(): void {
    const smallerSlots = this.#pairSlots;
    this.#pairSlots = new Int32Array(smallerSlots.length * 2);
    this.#smallerSlots = smallerSlots;
    this.#movedSlots = 0;
    if (smallerSlots.length < gradualMoveSlots) this.#moveSlots(smallerSlots, smallerSlots.length);
  }

  #moveSlots(smallerSlots: Int32Array, count: number): void {
    const pairSlots = this.#pairSlots;
    const pairsByNumber = this.#pairsByNumber;
    const slotMask = pairSlots.length - 1;
    const moveEnd = Math.min(smallerSlots.length, this.#movedSlots + count);
    for (let movedSlot = this.#movedSlots; movedSlot < moveEnd; movedSlot++) {
      const pairNumber = smallerSlots[movedSlot]!;
      if (pairNumber === 0) continue;
      let targetSlot = hashWords(pairsByNumber[2 * pairNumber - 2]!, pairsByNumber[2 * pairNumber - 1]!) & slotMask;
      while (pairSlots[targetSlot] !== 0) targetSlot = (targetSlot + 1) & slotMask;
      pairSlots[targetSlot] = pairNumber;
    }
    this.#movedSlots = moveEnd;
    if (moveEnd === smallerSlots.length) this.#smallerSlots = null;
  }

  lefts(pairNumbers: Int32Array): Int32Array {
    return pairNumbers.map((pairNumber) => this.#pairsByNumber[2 * pairNumber]!);
  }

  rights(pairNumbers: Int32Array): Int32Array {
    return pairNumbers.map((pairNumber) => this.#pairsByNumber[2 * pairNumber + 1]!);
  }

  #appendPair(leftNumber: number, rightNumber: number): number {
    const pairIndex = this.size++;
    if (2 * pairIndex === this.#pairsByNumber.length) this.#pairsByNumber = doubleLength(this.#pairsByNumber);
    this.#pairsByNumber[2 * pairIndex] = leftNumber;
    this.#pairsByNumber[2 * pairIndex + 1] = rightNumber;
    return pairIndex;
  }

  /** The table with room for these, grown if need be; null where hashing takes over. */
  slotsFor(leftSize: number, rightSize: number): Int32Array | null {
    if (this.#numberOfPair === null) return null;
    const bits = Math.max(this.bits, 32 - Math.clz32(rightSize - 1));
    const length = leftSize * 2 ** bits;
    if (length > this.#pairPlacesMax) {
      this.#hashPairs();
      return null;
    }
    if (bits > this.bits || length > this.#numberOfPair.length) {
      const widened = new Int32Array(Math.min(this.#pairPlacesMax, length * 2));
      for (let index = 0; index < this.size; index++)
        widened[(this.#pairsByNumber[2 * index]! << bits) | this.#pairsByNumber[2 * index + 1]!] = index + 1;
      this.#numberOfPair = widened;
      this.bits = bits;
    }
    return this.#numberOfPair;
  }

  #hashPairs(): void {
    this.#numberOfPair = null;
    for (let pairIndex = this.size - 1; pairIndex >= 0; pairIndex--) this.#setFirstRight(pairIndex);
    const notFirstPairs = new Int32Array(this.size);
    for (let index = 0; index < this.size; index++)
      if (!this.#isFirstRight(index)) notFirstPairs[this.#hashedPairs++] = index + 1;
    let { length } = this.#pairSlots;
    while (length < this.#hashedPairs * 2) length *= 2;
    this.#pairSlots = new Int32Array(length);
    this.#movedSlots = 0;
    this.#moveSlots(notFirstPairs, this.#hashedPairs);
  }

  #isFirstRight(pairIndex: number): boolean {
    return this.#firstRights[2 * this.#pairsByNumber[2 * pairIndex]!] === pairIndex + 1;
  }
}

export function hashWords(leftWord: number, rightWord: number): number {
  let pairHash = Math.imul(leftWord ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(rightWord, 0xc2b2ae35);
  pairHash = Math.imul(pairHash ^ (pairHash >>> 16), 0x7feb352d);
  return pairHash ^ (pairHash >>> 15);
}

export function doubleLength(values: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const doubledArray = new Int32Array(values.length * 2);
  doubledArray.set(values);
  return doubledArray;
}
