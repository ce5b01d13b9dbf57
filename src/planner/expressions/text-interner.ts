/**
 * Distinct texts by code, in order of first appearance: a dictionary that grows while rows go by. Bytes are hashed and
 * compared where they lie, so meeting a known text allocates nothing.
 */
import type { Dictionary } from '../../log/columns.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export class TextInterner implements Dictionary {
  size = 0;
  #heap = new Uint8Array(1024);
  #used = 0;
  #offsets = new Uint32Array(64);
  #hashes = new Int32Array(64);
  /** Open addressing: code + 1, 0 is empty. */
  #slots = new Int32Array(128);
  /** Codes of a foreign dictionary to codes of this one, + 1. */
  readonly #foreign = new Map<Dictionary, Int32Array>();
  readonly #texts: (string | undefined)[] = [];

  /** Memory held, for the query's ceiling. */
  get bytes(): number {
    return this.#heap.length + this.#offsets.byteLength + this.#hashes.byteLength + this.#slots.byteLength;
  }

  text(code: number): string {
    return (this.#texts[code] ??= decoder.decode(this.#heap.subarray(this.#offsets[code]!, this.#offsets[code + 1]!)));
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
    const bytes = encoder.encode(text);
    return this.ofBytes(bytes, 0, bytes.length);
  }

  /** Code of source[start..end). */
  ofBytes(source: Uint8Array, start: number, end: number): number {
    const hash = hashBytes(source, start, end);
    const slot = this.#find(source, start, end, hash);
    return this.#slots[slot] === 0 ? this.#add(source, start, end, hash, slot) : this.#slots[slot]! - 1;
  }

  /** Table from codes of `dictionary` to codes of this one, + 1; 0 where `ofForeign` was not asked yet. */
  foreign(dictionary: Dictionary): Int32Array {
    let table = this.#foreign.get(dictionary);
    if (!table || table.length < dictionary.size) {
      const grown = new Int32Array(Math.max(16, dictionary.size));
      if (table) grown.set(table);
      this.#foreign.set(dictionary, (table = grown));
    }
    return table;
  }

  ofForeign(dictionary: Dictionary, code: number): number {
    const own = this.ofText(dictionary.text(code));
    this.foreign(dictionary)[code] = own + 1;
    return own;
  }

  /** The entry of `foreign(dictionary)` for a code, made if need be. */
  numberOfForeign(dictionary: Dictionary, code: number): number {
    return this.foreign(dictionary)[code] || this.ofForeign(dictionary, code) + 1;
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

  #find(source: Uint8Array, start: number, end: number, hash: number): number {
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (;;) {
      const code = this.#slots[slot]! - 1;
      if (code < 0) return slot;
      if (this.#hashes[code] === hash && this.#holds(code, source, start, end)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #holds(code: number, source: Uint8Array, start: number, end: number): boolean {
    const own = this.#offsets[code]!;
    if (this.#offsets[code + 1]! - own !== end - start) return false;
    for (let i = start; i < end; i++) if (this.#heap[own + i - start] !== source[i]) return false;
    return true;
  }

  #add(source: Uint8Array, start: number, end: number, hash: number, slot: number): number {
    const code = this.size++;
    const used = this.#used + end - start;
    if (used > this.#heap.length) {
      const heap = new Uint8Array(Math.max(this.#heap.length * 2, used));
      heap.set(this.#heap.subarray(0, this.#used));
      this.#heap = heap;
    }
    this.#heap.set(source.subarray(start, end), this.#used);
    this.#used = used;
    if (code + 1 >= this.#offsets.length) {
      const offsets = new Uint32Array(this.#offsets.length * 2);
      offsets.set(this.#offsets);
      this.#offsets = offsets;
      const hashes = new Int32Array(offsets.length);
      hashes.set(this.#hashes);
      this.#hashes = hashes;
    }
    this.#offsets[code + 1] = used;
    this.#hashes[code] = hash;
    this.#slots[slot] = code + 1;
    if (this.size * 2 > this.#slots.length) this.#rehash();
    return code;
  }

  #rehash(): void {
    const slots = new Int32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let code = 0; code < this.size; code++) {
      let slot = this.#hashes[code]! & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = code + 1;
    }
    this.#slots = slots;
  }
}

/** FNV-1a with a final mix: short keys that differ in their last byte must not share low bits. */
export function hashBytes(source: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ source[i]!, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}
