/**
 * Distinct texts by code, in order of first appearance: a dictionary that grows while rows go by. Bytes are hashed and
 * compared where they lie, so meeting a known text allocates nothing.
 */
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import { work } from './expression-cost.ts';

const internerEncoder = new TextEncoder();
const internerDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Rows of a block, as batches have them. */
export interface RowRange {
  readonly selection: Int32Array | null;
  readonly first: number;
  readonly count: number;
}

/** Nanoseconds in which a byte of a new text is hashed and copied. */
const internedByteCost = 3;
/** A heap of the first size grows to the second at once: unwritten pages take no memory. */
const largeHeapBytes = 1 << 20;
const hugeHeapBytes = 256 << 20;
/** A longer heap moves to its next one while texts go on coming: moved at once, it would exceed the turn. */
const gradualMoveBytes = 8 << 20;
/** The bytes that move for each that comes: all have moved when the heap is full, if moving begins when it is half full. */
const movedBytesPerByte = 2;
/** Texts of more characters are encoded into memory of their own. */
const scratchCharacters = 2 << 20;
let scratchBytes = new Uint8Array(0);

/** So many slots of a larger table move for each new text, instead of all in one turn; a fourth of this would do. */
const gradualRehashSlots = 4 * 32_768;
const rehashedPerText = 8;

const hashedRowsPerStep = 1_024;
const rowHashes = new Int32Array(hashedRowsPerStep);
/** Means nothing: an outcome keeps the loads of `#touch` from being dropped. */
export let touched = 0;

export class TextInterner implements Dictionary {
  size = 0;
  #textHeap = new Uint8Array(1024);
  #heapWords = new DataView(this.#textHeap.buffer);
  /** The heap to come, and how much of it is there; null while the heap has room enough. */
  #largerHeap: Uint8Array<ArrayBuffer> | null = null;
  #movedBytes = 0;
  #usedBytes = 0;
  #textOffsets = new Uint32Array(64);
  /** Open addressing, four words a slot: code + 1 (0 is empty), hash, start and size in the heap: one line of the cache. */
  #hashSlots = new Int32Array(4 * 128);
  /** The slots before the last growth, of which those from `#rehashedWords` on may hold texts that the others have not yet. */
  #smallerSlots: Int32Array | null = null;
  #rehashedWords = 0;
  /** Codes of a foreign dictionary to codes of this one, + 1. */
  readonly #foreignCodes = new Map<Dictionary, Int32Array>();
  readonly #decodedTexts: (string | undefined)[] = [];
  readonly #fillFactor: number;
  readonly #largeHeapBytes: number;

  /** `fill` is how much of its full load the table takes before it grows; `largeBytes` the length of a heap that is no longer small. */
  constructor(fill = 1, largeBytes = hugeHeapBytes) {
    this.#fillFactor = fill;
    this.#largeHeapBytes = largeBytes;
  }

  /** Memory held, for the query's ceiling. */
  get bytes(): number {
    return (
      Math.min(this.#textHeap.length, 2 * this.#usedBytes + 1024) +
      this.#movedBytes +
      this.#textOffsets.byteLength +
      this.#hashSlots.byteLength +
      (this.#smallerSlots?.byteLength ?? 0)
    );
  }

  text(code: number): string {
    return (this.#decodedTexts[code] ??= internerDecoder.decode(this.bytesOf(code)));
  }

  bytesOf(code: number): Uint8Array {
    return this.#textHeap.subarray(this.#textOffsets[code]!, this.#textOffsets[code + 1]!);
  }

  get utf8(): { readonly offsets: Uint32Array; readonly heap: Uint8Array } {
    return { offsets: this.#textOffsets, heap: this.#textHeap };
  }

  codeOf(text: string): number {
    const textBytes = internerEncoder.encode(text);
    return this.#hashSlots[this.#findTextSlot(textBytes, 0, textBytes.length, hashBytes(textBytes, 0, textBytes.length))]! - 1;
  }

  /** Whether source[start..end) is known. */
  hasBytes(textHeap: Uint8Array, start: number, end: number): boolean {
    return this.#hashSlots[this.#findTextSlot(textHeap, start, end, hashBytes(textHeap, start, end))] !== 0;
  }

  /** Code of source[start..end), -1 when absent. */
  codeOfBytes(textHeap: Uint8Array, start: number, end: number): number {
    return this.#hashSlots[this.#findTextSlot(textHeap, start, end, hashBytes(textHeap, start, end))]! - 1;
  }

  has(text: string): boolean {
    return this.codeOf(text) >= 0;
  }

  ofText(text: string): number {
    if (text.length > scratchCharacters) {
      const longTextBytes = internerEncoder.encode(text);
      return this.ofBytes(longTextBytes, 0, longTextBytes.length);
    }
    // New memory for each long text costs more than its bytes do.
    if (scratchBytes.length < 3 * text.length) scratchBytes = new Uint8Array(Math.max(4096, 3 * text.length));
    return this.ofBytes(scratchBytes, 0, internerEncoder.encodeInto(text, scratchBytes).written);
  }

  /** Code of source[start..end). */
  ofBytes(textHeap: Uint8Array, textStart: number, textEnd: number): number {
    work.done += textEnd - textStart;
    const textHash = hashBytes(textHeap, textStart, textEnd);
    const textSlot = this.#findTextSlot(textHeap, textStart, textEnd, textHash);
    if (this.#hashSlots[textSlot] !== 0) return this.#hashSlots[textSlot]! - 1;
    work.done += (textEnd - textStart) * internedByteCost;
    return this.#addText(textHeap, textStart, textEnd, textHash, textSlot);
  }

  /**
   * Numbers (code + 1) of the texts of a block into `textNumbers`; 0 for NULL, and, unless it `addsTexts` them, for those that are not known.
   * Hashes come first, then the slot of each is loaded once: those loads don't wait for each other, and the comparisons
   * afterwards hit the cache.
   */
  numbersOf(textVector: Extract<Vector, { kind: 'text' }>, rowRange: RowRange, textNumbers: Int32Array, addsTexts = true): void {
    for (let firstOfStep = 0; firstOfStep < rowRange.count; firstOfStep += hashedRowsPerStep)
      this.#internRows(
        textVector,
        rowRange,
        firstOfStep,
        Math.min(rowRange.count, firstOfStep + hashedRowsPerStep),
        textNumbers,
        addsTexts,
      );
  }

  #internRows(
    textVector: Extract<Vector, { kind: 'text' }>,
    { selection, first }: RowRange,
    firstOfStep: number,
    endRow: number,
    textNumbers: Int32Array,
    addsTexts: boolean,
  ): void {
    const { offsets, heap: vectorHeap, nulls } = textVector;
    const vectorWords = new DataView(vectorHeap.buffer, vectorHeap.byteOffset, vectorHeap.byteLength);
    for (let j = firstOfStep; j < endRow; j++) {
      const i = selection === null ? first + j : selection[j]!;
      const textStart = offsets[i]!;
      const textEnd = offsets[i + 1]!;
      rowHashes[j - firstOfStep] =
        textEnd - textStart < 4 ? hashBytes(vectorHeap, textStart, textEnd) : hashWords(vectorWords, textStart, textEnd);
    }
    this.#prefetchSlots(endRow - firstOfStep);
    for (let j = firstOfStep; j < endRow; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (nulls !== null && nulls[i] === 1) {
        textNumbers[j] = 0;
        continue;
      }
      const textStart = offsets[i]!;
      const textEnd = offsets[i + 1]!;
      const textHash = rowHashes[j - firstOfStep]!;
      const hashSlots = this.#hashSlots;
      const homeSlot = (textHash << 2) & (hashSlots.length - 1);
      const knownNumber = hashSlots[homeSlot]!;
      if (
        knownNumber !== 0 &&
        hashSlots[homeSlot + 1] === textHash &&
        hashSlots[homeSlot + 3] === textEnd - textStart &&
        textEnd - textStart >= 4
      ) {
        if (hasSameWords(this.#heapWords, hashSlots[homeSlot + 2]!, vectorWords, textStart, textEnd)) {
          textNumbers[j] = knownNumber;
          continue;
        }
      }
      const textSlot = this.#findTextSlot(vectorHeap, textStart, textEnd, textHash);
      textNumbers[j] =
        this.#hashSlots[textSlot] || (addsTexts ? this.#addText(vectorHeap, textStart, textEnd, textHash, textSlot) + 1 : 0);
    }
  }

  #prefetchSlots(count: number): void {
    const hashSlots = this.#hashSlots;
    const textHeap = this.#textHeap;
    const slotMask = hashSlots.length - 1;
    let touchedBytes = 0;
    for (let j = 0; j < count; j++) touchedBytes ^= textHeap[hashSlots[((rowHashes[j]! << 2) & slotMask) + 2]!]!;
    touched = touchedBytes;
  }

  /** Table from codes of `dictionary` to codes of this one, + 1; 0 where `ofForeign` was not asked yet. */
  foreign(dictionary: Dictionary): Int32Array {
    let foreignTable = this.#foreignCodes.get(dictionary);
    if (!foreignTable || foreignTable.length < dictionary.size) {
      const largerTable = new Int32Array(Math.max(16, dictionary.size));
      if (foreignTable) largerTable.set(foreignTable);
      this.#foreignCodes.set(dictionary, (foreignTable = largerTable));
    }
    return foreignTable;
  }

  ofForeign(dictionary: Dictionary, foreignCode: number): number {
    const foreignBytes = dictionary.bytesOf?.(foreignCode) ?? internerEncoder.encode(dictionary.text(foreignCode));
    const ownCode = this.ofBytes(foreignBytes, 0, foreignBytes.length);
    this.foreign(dictionary)[foreignCode] = ownCode + 1;
    return ownCode;
  }

  /** The entry of `foreign(dictionary)` for a code, made if need be. */
  numberOfForeign(dictionary: Dictionary, code: number): number {
    return this.foreign(dictionary)[code] || this.ofForeign(dictionary, code) + 1;
  }

  /** Codepoint order of two texts by code: that of their bytes, so nothing is decoded. */
  compare(leftCode: number, rightCode: number): number {
    if (leftCode === rightCode) return 0;
    const textHeap = this.#textHeap;
    const aStart = this.#textOffsets[leftCode]!;
    const bStart = this.#textOffsets[rightCode]!;
    const aSize = this.#textOffsets[leftCode + 1]! - aStart;
    const bSize = this.#textOffsets[rightCode + 1]! - bStart;
    const sharedLength = Math.min(aSize, bSize);
    for (let i = 0; i < sharedLength; i++) {
      const byteDifference = textHeap[aStart + i]! - textHeap[bStart + i]!;
      if (byteDifference !== 0) return byteDifference;
    }
    return aSize - bSize;
  }

  startOf(code: number): number {
    return this.#textOffsets[code]!;
  }

  endOf(code: number): number {
    return this.#textOffsets[code + 1]!;
  }

  get heap(): Uint8Array {
    return this.#textHeap;
  }

  /** Place in `#hashSlots` of the text, or of where it belongs. */
  #findTextSlot(source: Uint8Array, start: number, end: number, hash: number): number {
    const hashSlots = this.#hashSlots;
    const code = this.#findSlotIn(hashSlots, source, start, end, hash);
    const smallerSlots = this.#smallerSlots;
    if (hashSlots[code] !== 0 || smallerSlots === null) return code;
    const earlierSlot = this.#findSlotIn(smallerSlots, source, start, end, hash);
    if (smallerSlots[earlierSlot] !== 0)
      for (let slotWord = 0; slotWord < 4; slotWord++) hashSlots[code + slotWord] = smallerSlots[earlierSlot + slotWord]!;
    return code;
  }

  #findSlotIn(hashSlots: Int32Array, soughtHeap: Uint8Array, soughtStart: number, soughtEnd: number, hash: number): number {
    const textHeap = this.#textHeap;
    const slotMask = hashSlots.length - 1;
    const textSize = soughtEnd - soughtStart;
    let probedSlot = (hash << 2) & slotMask;
    for (;;) {
      if (hashSlots[probedSlot] === 0) return probedSlot;
      if (hashSlots[probedSlot + 1] === hash && hashSlots[probedSlot + 3] === textSize) {
        const heapOffset = hashSlots[probedSlot + 2]!;
        let sameByteCount = 0;
        while (sameByteCount < textSize && textHeap[heapOffset + sameByteCount] === soughtHeap[soughtStart + sameByteCount])
          sameByteCount++;
        if (sameByteCount === textSize) return probedSlot;
      }
      probedSlot = (probedSlot + 4) & slotMask;
    }
  }

  #addText(addedHeap: Uint8Array, addedStart: number, addedEnd: number, textHash: number, emptySlot: number): number {
    const newCode = this.size++;
    const usedAfter = this.#usedBytes + addedEnd - addedStart;
    if (this.#largerHeap !== null || usedAfter > this.#textHeap.length / 2) this.#moveHeap(usedAfter, addedEnd - addedStart);
    this.#textHeap.set(addedHeap.subarray(addedStart, addedEnd), this.#usedBytes);
    this.#usedBytes = usedAfter;
    if (newCode + 1 >= this.#textOffsets.length) {
      const largerOffsets = new Uint32Array(this.#textOffsets.length * 2);
      largerOffsets.set(this.#textOffsets);
      this.#textOffsets = largerOffsets;
    }
    this.#textOffsets[newCode + 1] = usedAfter;
    this.#hashSlots[emptySlot] = newCode + 1;
    this.#hashSlots[emptySlot + 1] = textHash;
    this.#hashSlots[emptySlot + 2] = usedAfter - (addedEnd - addedStart);
    this.#hashSlots[emptySlot + 3] = addedEnd - addedStart;
    if (this.#smallerSlots !== null) this.#rehashSlots(4 * rehashedPerText);
    if (this.size * 8 > this.#hashSlots.length * this.#fillFactor) this.#enlargeSlots();
    return newCode;
  }

  /** Makes room for `usedAfter` bytes, `addedBytes` of which are new. */
  #moveHeap(usedAfter: number, addedBytes: number): void {
    const { length } = this.#textHeap;
    if (length < gradualMoveBytes && usedAfter <= length) return;
    this.#largerHeap ??= new Uint8Array(
      Math.max(usedAfter > largeHeapBytes ? this.#largeHeapBytes : 0, length * 2, usedAfter * 2),
    );
    const isHeapFull = usedAfter > length;
    const movedEnd = isHeapFull ? this.#usedBytes : Math.min(this.#usedBytes, this.#movedBytes + movedBytesPerByte * addedBytes);
    this.#largerHeap.set(this.#textHeap.subarray(this.#movedBytes, movedEnd), this.#movedBytes);
    this.#movedBytes = movedEnd;
    if (!isHeapFull) return;
    this.#textHeap = this.#largerHeap.length < usedAfter ? enlargedHeap(this.#largerHeap, usedAfter * 2) : this.#largerHeap;
    this.#heapWords = new DataView(this.#textHeap.buffer);
    this.#largerHeap = null;
    this.#movedBytes = 0;
  }

  #enlargeSlots(): void {
    if (this.#smallerSlots !== null) this.#rehashSlots(this.#smallerSlots.length);
    this.#smallerSlots = this.#hashSlots;
    this.#rehashedWords = 0;
    this.#hashSlots = new Int32Array(this.#hashSlots.length * 2);
    if (this.#smallerSlots.length < gradualRehashSlots) this.#rehashSlots(this.#smallerSlots.length);
  }

  /** Moves the entries of the next few words of the earlier slots. */
  #rehashSlots(words: number): void {
    const smallerSlots = this.#smallerSlots!;
    const hashSlots = this.#hashSlots;
    const slotMask = hashSlots.length - 1;
    const rehashEnd = Math.min(smallerSlots.length, this.#rehashedWords + words);
    for (let movedSlot = this.#rehashedWords; movedSlot < rehashEnd; movedSlot += 4) {
      const textNumber = smallerSlots[movedSlot]!;
      if (textNumber === 0) continue;
      let targetSlot = (smallerSlots[movedSlot + 1]! << 2) & slotMask;
      // One that was looked for meanwhile is there already.
      while (hashSlots[targetSlot] !== 0 && hashSlots[targetSlot] !== textNumber) targetSlot = (targetSlot + 4) & slotMask;
      hashSlots[targetSlot] = textNumber;
      hashSlots[targetSlot + 1] = smallerSlots[movedSlot + 1]!;
      hashSlots[targetSlot + 2] = smallerSlots[movedSlot + 2]!;
      hashSlots[targetSlot + 3] = smallerSlots[movedSlot + 3]!;
    }
    this.#rehashedWords = rehashEnd;
    if (rehashEnd === smallerSlots.length) this.#smallerSlots = null;
  }
}

function enlargedHeap(smallerHeap: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const largerHeap = new Uint8Array(length);
  largerHeap.set(smallerHeap);
  return largerHeap;
}

/**
 * Four bytes a step, the last four over again where they don't come out even, with a final mix: short keys that differ in
 * their last byte must not share low bits.
 */
export function hashBytes(source: Uint8Array, start: number, end: number): number {
  let textHash = end - start;
  if (textHash < 4) {
    let shortWord = 0;
    for (let i = start; i < end; i++) shortWord = (shortWord << 8) | source[i]!;
    return mixHash(textHash, shortWord);
  }
  for (let i = start; i < end - 4; i += 4) textHash = stepHash(textHash, hashWordAt(source, i));
  return mixHash(textHash, hashWordAt(source, end - 4));
}

/** The hash of at least four bytes, read as words through a view. */
function hashWords(source: DataView, start: number, end: number): number {
  let textHash = end - start;
  for (let i = start; i < end - 4; i += 4) textHash = stepHash(textHash, source.getInt32(i, true));
  return mixHash(textHash, source.getInt32(end - 4, true));
}

function hashWordAt(source: Uint8Array, i: number): number {
  return source[i]! | (source[i + 1]! << 8) | (source[i + 2]! << 16) | (source[i + 3]! << 24);
}

function stepHash(hash: number, hashWord: number): number {
  const mixedHash = Math.imul(hash ^ hashWord, 0x9e3779b1);
  return mixedHash ^ (mixedHash >>> 15);
}

function mixHash(hash: number, lastWord: number): number {
  let mixedHash = Math.imul(hash ^ lastWord, 0x85ebca6b);
  mixedHash = Math.imul(mixedHash ^ (mixedHash >>> 13), 0x2c1b3c6d);
  return mixedHash ^ (mixedHash >>> 15);
}

/** Whether source[start..end), at least four bytes, lies from `heapOffset` on. */
function hasSameWords(heap: DataView, heapOffset: number, source: DataView, start: number, end: number): boolean {
  const lastWordOffset = end - 4;
  const heapShift = heapOffset - start;
  for (let i = start; i < lastWordOffset; i += 4)
    if (heap.getInt32(i + heapShift, true) !== source.getInt32(i, true)) return false;
  return heap.getInt32(lastWordOffset + heapShift, true) === source.getInt32(lastWordOffset, true);
}
