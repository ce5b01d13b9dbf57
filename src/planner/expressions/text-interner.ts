/**
 * Distinct texts by code, in order of first appearance: a dictionary that grows while rows go by. Bytes are hashed and
 * compared where they lie, so meeting a known text allocates nothing.
 */
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import { work } from './expression-cost.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Rows of a block, as batches have them. */
export interface RowRange {
  readonly selection: Int32Array | null;
  readonly first: number;
  readonly count: number;
}

/** Nanoseconds in which a byte of a new text is hashed and copied. */
const byteCost = 3;
/** A heap of the first size grows to the second at once: unwritten pages take no memory. */
const largeHeapBytes = 1 << 20;
const hugeHeapBytes = 256 << 20;
/** A longer heap moves to its next one while texts go on coming: moved at once, it would exceed the turn. */
const movesFrom = 8 << 20;
/** The bytes that move for each that comes: all have moved when the heap is full, if moving begins when it is half full. */
const movedForOne = 2;
/** Texts of more characters are encoded into memory of their own. */
const scratchCharacters = 2 << 20;
let scratch = new Uint8Array(0);

/** So many slots of a larger table move for each new text, instead of all in one turn; a fourth of this would do. */
const movesSlotsFrom = 4 * 32_768;
const slotsForOne = 8;

const rowsAtOnce = 1_024;
const hashed = new Int32Array(rowsAtOnce);
/** Means nothing: an outcome keeps the loads of `#touch` from being dropped. */
export let touched = 0;

export class TextInterner implements Dictionary {
  size = 0;
  #heap = new Uint8Array(1024);
  #words = new DataView(this.#heap.buffer);
  /** The heap to come, and how much of it is there; null while the heap has room enough. */
  #next: Uint8Array<ArrayBuffer> | null = null;
  #moved = 0;
  #used = 0;
  #offsets = new Uint32Array(64);
  /** Open addressing, four words a slot: code + 1 (0 is empty), hash, start and size in the heap: one line of the cache. */
  #slots = new Int32Array(4 * 128);
  /** The slots before the last growth, of which those from `#rehashed` on may hold texts that the others have not yet. */
  #earlier: Int32Array | null = null;
  #rehashed = 0;
  /** Codes of a foreign dictionary to codes of this one, + 1. */
  readonly #foreign = new Map<Dictionary, Int32Array>();
  readonly #texts: (string | undefined)[] = [];
  readonly #fill: number;
  readonly #largeBytes: number;

  /** `fill` is how much of its full load the table takes before it grows; `largeBytes` the length of a heap that is no longer small. */
  constructor(fill = 1, largeBytes = hugeHeapBytes) {
    this.#fill = fill;
    this.#largeBytes = largeBytes;
  }

  /** Memory held, for the query's ceiling. */
  get bytes(): number {
    return (
      Math.min(this.#heap.length, 2 * this.#used + 1024) +
      this.#moved +
      this.#offsets.byteLength +
      this.#slots.byteLength +
      (this.#earlier?.byteLength ?? 0)
    );
  }

  text(code: number): string {
    return (this.#texts[code] ??= decoder.decode(this.bytesOf(code)));
  }

  bytesOf(code: number): Uint8Array {
    return this.#heap.subarray(this.#offsets[code]!, this.#offsets[code + 1]!);
  }

  get utf8(): { readonly offsets: Uint32Array; readonly heap: Uint8Array } {
    return { offsets: this.#offsets, heap: this.#heap };
  }

  codeOf(text: string): number {
    const bytes = encoder.encode(text);
    return this.#slots[this.#find(bytes, 0, bytes.length, hashBytes(bytes, 0, bytes.length))]! - 1;
  }

  /** Whether source[start..end) is known. */
  hasBytes(source: Uint8Array, start: number, end: number): boolean {
    return this.#slots[this.#find(source, start, end, hashBytes(source, start, end))] !== 0;
  }

  /** Code of source[start..end), -1 when absent. */
  codeOfBytes(source: Uint8Array, start: number, end: number): number {
    return this.#slots[this.#find(source, start, end, hashBytes(source, start, end))]! - 1;
  }

  has(text: string): boolean {
    return this.codeOf(text) >= 0;
  }

  ofText(text: string): number {
    if (text.length > scratchCharacters) {
      const bytes = encoder.encode(text);
      return this.ofBytes(bytes, 0, bytes.length);
    }
    // New memory for each long text costs more than its bytes do.
    if (scratch.length < 3 * text.length) scratch = new Uint8Array(Math.max(4096, 3 * text.length));
    return this.ofBytes(scratch, 0, encoder.encodeInto(text, scratch).written);
  }

  /** Code of source[start..end). */
  ofBytes(source: Uint8Array, start: number, end: number): number {
    work.done += end - start;
    const hash = hashBytes(source, start, end);
    const slot = this.#find(source, start, end, hash);
    if (this.#slots[slot] !== 0) return this.#slots[slot]! - 1;
    work.done += (end - start) * byteCost;
    return this.#add(source, start, end, hash, slot);
  }

  /**
   * Numbers (code + 1) of the texts of a block into `out`; 0 for NULL, and, unless it `adds` them, for those that are not known.
   * Hashes come first, then the slot of each is loaded once: those loads don't wait for each other, and the comparisons
   * afterwards hit the cache.
   */
  numbersOf(text: Extract<Vector, { kind: 'text' }>, rows: RowRange, out: Int32Array, adds = true): void {
    for (let from = 0; from < rows.count; from += rowsAtOnce)
      this.#numbersOf(text, rows, from, Math.min(rows.count, from + rowsAtOnce), out, adds);
  }

  #numbersOf(
    text: Extract<Vector, { kind: 'text' }>,
    { selection, first }: RowRange,
    from: number,
    to: number,
    out: Int32Array,
    adds: boolean,
  ): void {
    const { offsets, heap, nulls } = text;
    const words = new DataView(heap.buffer, heap.byteOffset, heap.byteLength);
    for (let j = from; j < to; j++) {
      const i = selection === null ? first + j : selection[j]!;
      const start = offsets[i]!;
      const end = offsets[i + 1]!;
      hashed[j - from] = end - start < 4 ? hashBytes(heap, start, end) : hashWords(words, start, end);
    }
    this.#touch(to - from);
    for (let j = from; j < to; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (nulls !== null && nulls[i] === 1) {
        out[j] = 0;
        continue;
      }
      const start = offsets[i]!;
      const end = offsets[i + 1]!;
      const hash = hashed[j - from]!;
      const slots = this.#slots;
      const home = (hash << 2) & (slots.length - 1);
      const known = slots[home]!;
      if (known !== 0 && slots[home + 1] === hash && slots[home + 3] === end - start && end - start >= 4) {
        if (sameWords(this.#words, slots[home + 2]!, words, start, end)) {
          out[j] = known;
          continue;
        }
      }
      const slot = this.#find(heap, start, end, hash);
      out[j] = this.#slots[slot] || (adds ? this.#add(heap, start, end, hash, slot) + 1 : 0);
    }
  }

  #touch(count: number): void {
    const slots = this.#slots;
    const heap = this.#heap;
    const mask = slots.length - 1;
    let met = 0;
    for (let j = 0; j < count; j++) met ^= heap[slots[((hashed[j]! << 2) & mask) + 2]!]!;
    touched = met;
  }

  /** Table from codes of `dictionary` to codes of this one, + 1; 0 where `ofForeign` was not asked yet. */
  foreign(dictionary: Dictionary): Int32Array {
    let table = this.#foreign.get(dictionary);
    if (!table || table.length < dictionary.size) {
      const larger = new Int32Array(Math.max(16, dictionary.size));
      if (table) larger.set(table);
      this.#foreign.set(dictionary, (table = larger));
    }
    return table;
  }

  ofForeign(dictionary: Dictionary, code: number): number {
    const bytes = dictionary.bytesOf?.(code) ?? encoder.encode(dictionary.text(code));
    const own = this.ofBytes(bytes, 0, bytes.length);
    this.foreign(dictionary)[code] = own + 1;
    return own;
  }

  /** The entry of `foreign(dictionary)` for a code, made if need be. */
  numberOfForeign(dictionary: Dictionary, code: number): number {
    return this.foreign(dictionary)[code] || this.ofForeign(dictionary, code) + 1;
  }

  /** Codepoint order of two texts by code: that of their bytes, so nothing is decoded. */
  compare(a: number, b: number): number {
    if (a === b) return 0;
    const heap = this.#heap;
    const aStart = this.#offsets[a]!;
    const bStart = this.#offsets[b]!;
    const aSize = this.#offsets[a + 1]! - aStart;
    const bSize = this.#offsets[b + 1]! - bStart;
    const shared = Math.min(aSize, bSize);
    for (let i = 0; i < shared; i++) {
      const difference = heap[aStart + i]! - heap[bStart + i]!;
      if (difference !== 0) return difference;
    }
    return aSize - bSize;
  }

  startOf(code: number): number {
    return this.#offsets[code]!;
  }

  endOf(code: number): number {
    return this.#offsets[code + 1]!;
  }

  get heap(): Uint8Array {
    return this.#heap;
  }

  /** Place in `#slots` of the text, or of where it belongs. */
  #find(source: Uint8Array, start: number, end: number, hash: number): number {
    const slots = this.#slots;
    const code = this.#findIn(slots, source, start, end, hash);
    const earlier = this.#earlier;
    if (slots[code] !== 0 || earlier === null) return code;
    const before = this.#findIn(earlier, source, start, end, hash);
    if (earlier[before] !== 0) for (let word = 0; word < 4; word++) slots[code + word] = earlier[before + word]!;
    return code;
  }

  #findIn(slots: Int32Array, source: Uint8Array, start: number, end: number, hash: number): number {
    const heap = this.#heap;
    const mask = slots.length - 1;
    const size = end - start;
    let slot = (hash << 2) & mask;
    for (;;) {
      if (slots[slot] === 0) return slot;
      if (slots[slot + 1] === hash && slots[slot + 3] === size) {
        const own = slots[slot + 2]!;
        let same = 0;
        while (same < size && heap[own + same] === source[start + same]) same++;
        if (same === size) return slot;
      }
      slot = (slot + 4) & mask;
    }
  }

  #add(source: Uint8Array, start: number, end: number, hash: number, slot: number): number {
    const code = this.size++;
    const used = this.#used + end - start;
    if (this.#next !== null || used > this.#heap.length / 2) this.#move(used, end - start);
    this.#heap.set(source.subarray(start, end), this.#used);
    this.#used = used;
    if (code + 1 >= this.#offsets.length) {
      const offsets = new Uint32Array(this.#offsets.length * 2);
      offsets.set(this.#offsets);
      this.#offsets = offsets;
    }
    this.#offsets[code + 1] = used;
    this.#slots[slot] = code + 1;
    this.#slots[slot + 1] = hash;
    this.#slots[slot + 2] = used - (end - start);
    this.#slots[slot + 3] = end - start;
    if (this.#earlier !== null) this.#rehash(4 * slotsForOne);
    if (this.size * 8 > this.#slots.length * this.#fill) this.#enlarge();
    return code;
  }

  /** Makes room for `used` bytes, `size` of which are new. */
  #move(used: number, size: number): void {
    const { length } = this.#heap;
    if (length < movesFrom && used <= length) return;
    this.#next ??= new Uint8Array(Math.max(used > largeHeapBytes ? this.#largeBytes : 0, length * 2, used * 2));
    const isFull = used > length;
    const to = isFull ? this.#used : Math.min(this.#used, this.#moved + movedForOne * size);
    this.#next.set(this.#heap.subarray(this.#moved, to), this.#moved);
    this.#moved = to;
    if (!isFull) return;
    this.#heap = this.#next.length < used ? enlarge(this.#next, used * 2) : this.#next;
    this.#words = new DataView(this.#heap.buffer);
    this.#next = null;
    this.#moved = 0;
  }

  #enlarge(): void {
    if (this.#earlier !== null) this.#rehash(this.#earlier.length);
    this.#earlier = this.#slots;
    this.#rehashed = 0;
    this.#slots = new Int32Array(this.#slots.length * 2);
    if (this.#earlier.length < movesSlotsFrom) this.#rehash(this.#earlier.length);
  }

  /** Moves the entries of the next few words of the earlier slots. */
  #rehash(words: number): void {
    const earlier = this.#earlier!;
    const slots = this.#slots;
    const mask = slots.length - 1;
    const end = Math.min(earlier.length, this.#rehashed + words);
    for (let from = this.#rehashed; from < end; from += 4) {
      const number = earlier[from]!;
      if (number === 0) continue;
      let slot = (earlier[from + 1]! << 2) & mask;
      // One that was looked for meanwhile is there already.
      while (slots[slot] !== 0 && slots[slot] !== number) slot = (slot + 4) & mask;
      slots[slot] = number;
      slots[slot + 1] = earlier[from + 1]!;
      slots[slot + 2] = earlier[from + 2]!;
      slots[slot + 3] = earlier[from + 3]!;
    }
    this.#rehashed = end;
    if (end === earlier.length) this.#earlier = null;
  }
}

function enlarge(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length);
  larger.set(bytes);
  return larger;
}

/**
 * Four bytes a step, the last four over again where they don't come out even, with a final mix: short keys that differ in
 * their last byte must not share low bits.
 */
export function hashBytes(source: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  if (hash < 4) {
    let rest = 0;
    for (let i = start; i < end; i++) rest = (rest << 8) | source[i]!;
    return mixHash(hash, rest);
  }
  for (let i = start; i < end - 4; i += 4) hash = stepHash(hash, wordAt(source, i));
  return mixHash(hash, wordAt(source, end - 4));
}

/** The hash of at least four bytes, read as words through a view. */
function hashWords(source: DataView, start: number, end: number): number {
  let hash = end - start;
  for (let i = start; i < end - 4; i += 4) hash = stepHash(hash, source.getInt32(i, true));
  return mixHash(hash, source.getInt32(end - 4, true));
}

function wordAt(source: Uint8Array, i: number): number {
  return source[i]! | (source[i + 1]! << 8) | (source[i + 2]! << 16) | (source[i + 3]! << 24);
}

function stepHash(hash: number, word: number): number {
  const next = Math.imul(hash ^ word, 0x9e3779b1);
  return next ^ (next >>> 15);
}

function mixHash(hash: number, last: number): number {
  let mix = Math.imul(hash ^ last, 0x85ebca6b);
  mix = Math.imul(mix ^ (mix >>> 13), 0x2c1b3c6d);
  return mix ^ (mix >>> 15);
}

/** Whether source[start..end), at least four bytes, lies from `own` on. */
function sameWords(heap: DataView, own: number, source: DataView, start: number, end: number): boolean {
  const last = end - 4;
  const moved = own - start;
  for (let i = start; i < last; i += 4) if (heap.getInt32(i + moved, true) !== source.getInt32(i, true)) return false;
  return heap.getInt32(last + moved, true) === source.getInt32(last, true);
}
