/**
 * Distinct strings as UTF-8 in one heap, found by their bytes: coding a column makes no JavaScript string. It counts the cells
 * that hold each of them, so that a string is wiped with its last cell, without a look at the other ones.
 */
import type { Dictionary } from '../../../log/values/columns.ts';
import { alone, no } from './column-extents.ts';

/** Longer texts are looked up by a sample of their bytes, and compared whole. */
const hugeBytes = 64 << 10;
const hugeSteps = 4_096;

/** A call that compares, or copies, all of them is worth it from here on. */
const longBytes = 256;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export interface SavedDictionary {
  readonly offsets: Uint32Array;
  readonly heap: Uint8Array;
  /** Cells of each code. */
  readonly cells: Int32Array;
}

/** A text column's cells. */
export interface Cells {
  readonly heap: Uint8Array;
  readonly offsets: Uint32Array;
  readonly nulls: Uint8Array | null;
}

export class ByteDictionary implements Dictionary {
  #size = 0;
  #offsets: Uint32Array = new Uint32Array(17);
  #cells: Int32Array = new Int32Array(16);
  #heap: Uint8Array = new Uint8Array(256);
  #view = viewOf(this.#heap);
  /** Open addressing, interleaved: [code + 1, hash]. A restored dictionary fills it on the first search for a string. */
  #slots: Int32Array = new Int32Array(64);
  #mask = 31;
  /** Decoded on first use. */
  #texts: (string | undefined)[] = [];

  get size(): number {
    return this.#size;
  }

  text(code: number): string {
    return (this.#texts[code] ??= decoder.decode(this.#heap.subarray(this.#offsets[code]!, this.#offsets[code + 1]!)));
  }

  codeOf(text: string): number {
    const bytes = encoder.encode(text);
    const view = viewOf(bytes);
    this.#enter();
    const slot = this.#find(view, 0, bytes.length, hashOf(view, 0, bytes.length));
    return this.#slots[slot * 2]! - 1;
  }

  /** Code of source[start..end), added when new. Cells that come to hold it are to be counted. */
  encode(source: Uint8Array, start: number, end: number): number {
    this.#enter();
    return this.#codeOf(source, viewOf(source), start, end);
  }

  /** One more cell holds the code. */
  count(code: number): void {
    this.#cells[code]!++;
  }

  /** Codes of cells from .. to - 1 of a text column, counted, into target[at ...]; 0 for NULL. */
  encodeCells(cells: Cells, from: number, to: number, target: Int32Array, at: number): void {
    const { heap, offsets, nulls } = cells;
    const view = viewOf(heap);
    this.#enter();
    for (let i = from; i < to; i++) {
      if (nulls !== null && nulls[i] === 1) {
        target[at + i - from] = 0;
        continue;
      }
      const code = this.#codeOf(heap, view, offsets[i]!, offsets[i + 1]!);
      target[at + i - from] = code;
      this.#cells[code]!++;
    }
  }

  /** A cell no longer holds the code. With its last one the string is wiped; the code is not given again. */
  release(code: number): void {
    if (--this.#cells[code]! > 0) return;
    this.#heap.fill(0, this.#offsets[code]!, this.#offsets[code + 1]!);
    this.#texts[code] = undefined;
  }

  /** UTF-8 of a code, in place: never to be written to. */
  bytesOf(code: number): Uint8Array {
    return this.#heap.subarray(this.#offsets[code]!, this.#offsets[code + 1]!);
  }

  get utf8(): { readonly offsets: Uint32Array; readonly heap: Uint8Array } {
    return { offsets: this.#offsets, heap: this.#heap };
  }

  /** The same as copies of their own, just as long. */
  copy(): { readonly offsets: Uint32Array; readonly heap: Uint8Array } {
    return { offsets: this.#offsets.slice(0, this.#size + 1), heap: this.#heap.slice(0, this.byteLength) };
  }

  /** Offsets of the first `length` cells in a heap that holds them one after the other; a cell of NULL holds nothing. Its bytes. */
  measure(codes: Int32Array, nulls: Uint8Array | null, length: number, offsets: Uint32Array): number {
    const own = this.#offsets;
    let used = 0;
    offsets[0] = 0;
    for (let row = 0; row < length; row++) {
      if (nulls === null || nulls[row] !== 1) {
        const code = codes[row]!;
        used += own[code + 1]! - own[code]!;
      }
      offsets[row + 1] = used;
    }
    return used;
  }

  /** Fills such a heap. */
  spell(codes: Int32Array, length: number, offsets: Uint32Array, heap: Uint8Array): void {
    const source = this.#heap;
    for (let row = 0; row < length; row++) {
      const end = offsets[row + 1]!;
      let from = this.#offsets[codes[row]!]!;
      for (let at = offsets[row]!; at < end; at++) heap[at] = source[from++]!;
    }
  }

  get byteLength(): number {
    return this.#offsets[this.#size]!;
  }

  savedState(): SavedDictionary {
    return { ...this.copy(), cells: this.#cells.slice(0, this.#size) };
  }

  static fromSaved({ offsets, heap, cells }: SavedDictionary): ByteDictionary {
    const dictionary = new ByteDictionary();
    dictionary.#size = offsets.length - 1;
    [dictionary.#offsets, dictionary.#heap, dictionary.#cells] = [alone(offsets), alone(heap), alone(cells)];
    dictionary.#view = viewOf(dictionary.#heap);
    dictionary.#slots = no.i32;
    return dictionary;
  }

  /** Strings of a restored one can be found from here on. */
  #enter(): void {
    if (this.#slots.length > 0) return;
    this.#mask = 31;
    while (this.#size * 2 > this.#mask) this.#mask = this.#mask * 2 + 1;
    const slots = (this.#slots = new Int32Array((this.#mask + 1) * 2));
    for (let code = 0; code < this.#size; code++) {
      // Entered even when it looks known: forgotten strings are alike, and each keeps its code.
      const hash = hashOf(this.#view, this.#offsets[code]!, this.#offsets[code + 1]!);
      let slot = hash & this.#mask;
      while (slots[slot * 2] !== 0) slot = (slot + 1) & this.#mask;
      slots[slot * 2] = code + 1;
      slots[slot * 2 + 1] = hash;
    }
  }

  /** For cells that are stored as texts from here on. */
  releaseCells(codes: Int32Array, nulls: Uint8Array | null): void {
    for (let row = 0; row < codes.length; row++) if (nulls?.[row] !== 1) this.release(codes[row]!);
  }

  #codeOf(source: Uint8Array, view: DataView, start: number, end: number): number {
    const hash = hashOf(view, start, end);
    const slot = this.#find(view, start, end, hash);
    const storedCode = this.#slots[slot * 2]!;
    return storedCode !== 0 ? storedCode - 1 : this.#add(source, start, end, hash, slot);
  }

  /** The slot that holds these bytes, or the free one where they belong. */
  #find(source: DataView, start: number, end: number, hash: number): number {
    const slots = this.#slots;
    const offsets = this.#offsets;
    const size = end - start;
    let slot = hash & this.#mask;
    for (;;) {
      const code = slots[slot * 2]! - 1;
      if (code < 0) return slot;
      if (slots[slot * 2 + 1] === hash) {
        const at = offsets[code]!;
        if (offsets[code + 1]! - at === size && isSame(this.#view, at, source, start, size)) return slot;
      }
      slot = (slot + 1) & this.#mask;
    }
  }

  #add(source: Uint8Array, start: number, end: number, hash: number, slot: number): number {
    const code = this.#size;
    const at = this.#offsets[code]!;
    const size = end - start;
    if (code + 2 > this.#offsets.length) {
      const offsets = new Uint32Array(this.#offsets.length * 2);
      offsets.set(this.#offsets);
      this.#offsets = offsets;
      const cells = new Int32Array(offsets.length);
      cells.set(this.#cells);
      this.#cells = cells;
    }
    if (at + size > this.#heap.length) {
      const heap = new Uint8Array(Math.max(this.#heap.length * 2, at + size));
      heap.set(this.#heap);
      this.#heap = heap;
      this.#view = viewOf(heap);
    }
    if (size <= longBytes) for (let i = 0; i < size; i++) this.#heap[at + i] = source[start + i]!;
    else this.#heap.set(source.subarray(start, end), at);
    this.#offsets[code + 1] = at + size;
    this.#size++;
    this.#slots[slot * 2] = code + 1;
    this.#slots[slot * 2 + 1] = hash;
    if (this.#size * 2 > this.#mask) this.#rehash();
    return code;
  }

  #rehash(): void {
    const old = this.#slots;
    const mask = this.#mask * 2 + 1;
    const slots = new Int32Array((mask + 1) * 2);
    for (let i = 0; i < old.length; i += 2) {
      if (old[i] === 0) continue;
      let slot = old[i + 1]! & mask;
      while (slots[slot * 2] !== 0) slot = (slot + 1) & mask;
      slots[slot * 2] = old[i]!;
      slots[slot * 2 + 1] = old[i + 1]!;
    }
    this.#slots = slots;
    this.#mask = mask;
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function bytesIn(view: DataView, start: number, size: number): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset + start, size);
}

/**
 * Four bytes a step, each step mixed down to the low bits; the last four may overlap those before them. Of a huge text only so many
 * steps, from its beginning to its end. For this process only.
 */
function hashOf(source: DataView, start: number, end: number): number {
  let hash = start - end;
  if (end - start > hugeBytes) {
    const step = Math.floor((end - start) / hugeSteps);
    for (let at = start; at < end - 4; at += step) hash = mix(hash ^ source.getInt32(at, true));
    hash ^= source.getInt32(end - 4, true);
  } else if (end - start < 4) {
    for (let at = start; at < end; at++) hash = Math.imul(hash, 31) + source.getUint8(at);
  } else {
    for (let at = start; at < end - 4; at += 4) hash = mix(hash ^ source.getInt32(at, true));
    hash ^= source.getInt32(end - 4, true);
  }
  return mix(mix(hash));
}

function mix(word: number): number {
  const product = Math.imul(word, 0x9e3779b1);
  return product ^ (product >>> 15);
}

function isSame(a: DataView, aStart: number, b: DataView, bStart: number, size: number): boolean {
  if (size < 4) {
    for (let i = 0; i < size; i++) if (a.getUint8(aStart + i) !== b.getUint8(bStart + i)) return false;
    return true;
  }
  if (size > longBytes) return Buffer.compare(bytesIn(a, aStart, size), bytesIn(b, bStart, size)) === 0;
  for (let i = 0; i < size - 4; i += 4) if (a.getInt32(aStart + i, true) !== b.getInt32(bStart + i, true)) return false;
  return a.getInt32(aStart + size - 4, true) === b.getInt32(bStart + size - 4, true);
}
