/** Distinct strings as UTF-8 in one heap, found by their bytes: coding a column makes no JavaScript string. */
import type { Dictionary } from '../../log/columns.ts';
import { hashBytes, sameBytes } from './byte-hash.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export interface SavedDictionary {
  readonly offsets: Uint32Array;
  readonly heap: Uint8Array;
}

export class ByteDictionary implements Dictionary {
  #size = 0;
  #offsets = new Uint32Array(17);
  #heap = new Uint8Array(256);
  /** Open addressing, interleaved: [code + 1, hash]. */
  #slots = new Int32Array(64);
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
    const slot = this.#find(bytes, 0, bytes.length, hashBytes(bytes, 0, bytes.length, 0));
    return this.#slots[slot * 2]! - 1;
  }

  /** Code of source[start..end), added when new. */
  encode(source: Uint8Array, start: number, end: number): number {
    const hash = hashBytes(source, start, end, 0);
    const slot = this.#find(source, start, end, hash);
    const found = this.#slots[slot * 2]!;
    if (found !== 0) return found - 1;
    return this.#add(source, start, end, hash, slot);
  }

  /** UTF-8 of a code, in place: never to be written to. */
  bytesOf(code: number): Uint8Array {
    return this.#heap.subarray(this.#offsets[code]!, this.#offsets[code + 1]!);
  }

  get utf8(): { readonly offsets: Uint32Array; readonly heap: Uint8Array } {
    return { offsets: this.#offsets, heap: this.#heap };
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

  saved(): SavedDictionary {
    return { offsets: this.#offsets.slice(0, this.#size + 1), heap: this.#heap.slice(0, this.byteLength) };
  }

  static restored(state: SavedDictionary): ByteDictionary {
    const dictionary = new ByteDictionary();
    for (let code = 0; code + 1 < state.offsets.length; code++) {
      // Added even when it looks known: forgotten strings are alike, and each keeps its code.
      const start = state.offsets[code]!;
      const end = state.offsets[code + 1]!;
      const hash = hashBytes(state.heap, start, end, 0);
      let slot = hash & dictionary.#mask;
      while (dictionary.#slots[slot * 2] !== 0) slot = (slot + 1) & dictionary.#mask;
      dictionary.#add(state.heap, start, end, hash, slot);
    }
    return dictionary;
  }

  /** Wipes a string that no cell holds any more. Its code is not given again, and its slot no longer matches it. */
  forget(code: number): void {
    this.#heap.fill(0, this.#offsets[code]!, this.#offsets[code + 1]!);
    this.#texts[code] = undefined;
  }

  /** The slot that holds these bytes, or the free one where they belong. */
  #find(source: Uint8Array, start: number, end: number, hash: number): number {
    const slots = this.#slots;
    const offsets = this.#offsets;
    const size = end - start;
    let slot = hash & this.#mask;
    for (;;) {
      const code = slots[slot * 2]! - 1;
      if (code < 0) return slot;
      if (slots[slot * 2 + 1] === hash) {
        const at = offsets[code]!;
        if (offsets[code + 1]! - at === size && sameBytes(this.#heap, at, source, start, size)) return slot;
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
    }
    if (at + size > this.#heap.length) {
      const heap = new Uint8Array(Math.max(this.#heap.length * 2, at + size));
      heap.set(this.#heap);
      this.#heap = heap;
    }
    for (let i = 0; i < size; i++) this.#heap[at + i] = source[start + i]!;
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
