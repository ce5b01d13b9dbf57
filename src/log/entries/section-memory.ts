/**
 * Memory in which sections of rows are sealed and opened in place, by ChaCha20 (RFC 8439) of `kernels/chacha20.ts`: a section may
 * be of one row, and the objects of `node:crypto` for a cipher cost twenty times as much as sealing 250 bytes.
 */
import { chacha20Code } from './chacha20-code.ts';

export const SECRET_BYTES = 32;
export const SECTION_NONCE_BYTES = 12;

const PAGE_BYTES = 65_536;
const KEY_AT = 0;
const NONCE_AT = 32;
const FIRST = 64;
/** The module reads and writes so far behind an end. */
const SLACK = 16;
/** Memories that are kept for the next body, and how large one of them may be. */
const KEPT_MAX = 2;
const KEPT_BYTES_MAX = 16 << 20;

interface Exports {
  freeFrom(): number;
  xor(key: number, nonce: number, block: number, data: number, size: number): void;
}

let compiled: WebAssembly.Module | undefined;
const spareMemories: SectionMemory[] = [];

export class SectionMemory {
  /** The bytes that callers may write. */
  readonly bytes: Buffer;
  readonly view: DataView;
  readonly #module: Exports;
  readonly #base: number;
  readonly #head: Uint8Array;

  private constructor(size: number) {
    compiled ??= new WebAssembly.Module(Buffer.from(chacha20Code, 'base64'));
    const pages = Math.ceil((size + FIRST + SLACK) / PAGE_BYTES) + 1;
    const memory = new WebAssembly.Memory({ initial: pages });
    this.#module = new WebAssembly.Instance(compiled, { env: { memory } }).exports as unknown as Exports;
    this.#base = this.#module.freeFrom();
    const first = this.#base + FIRST;
    this.#head = new Uint8Array(memory.buffer, this.#base, FIRST);
    this.bytes = Buffer.from(memory.buffer, first, memory.buffer.byteLength - first - SLACK);
    this.view = new DataView(memory.buffer, first, this.bytes.length);
  }

  /** Holds anything. To be given back, or to be forgotten. */
  static acquire(size: number): SectionMemory {
    const spareIndex = spareMemories.findIndex(({ bytes }) => bytes.length >= size);
    if (spareIndex >= 0) return spareMemories.splice(spareIndex, 1)[0]!;
    return new SectionMemory(size <= KEPT_BYTES_MAX / 2 ? size * 2 : size);
  }

  /** Returns the memory; it must not be used any more. */
  giveBack(): void {
    this.#head.fill(0);
    if (this.bytes.length > KEPT_BYTES_MAX) return;
    if (spareMemories.length === KEPT_MAX) spareMemories.shift();
    spareMemories.push(this);
  }

  setNonce(nonce: Uint8Array): void {
    this.#head.set(nonce, NONCE_AT);
  }

  /** Where the key goes. */
  get key(): Uint8Array {
    return this.#head;
  }

  /** Bytes from .. to-1, which begin with this block of the stream, and up to fifteen behind them. */
  xor(from: number, to: number, block = 0): void {
    const base = this.#base;
    this.#module.xor(base + KEY_AT, base + NONCE_AT, block, base + FIRST + from, to - from);
  }
}
