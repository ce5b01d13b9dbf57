/**
 * Memory in which sections of rows are sealed and opened in place, by ChaCha20 (RFC 8439) of `kernels/chacha20.ts`: a section may
 * be of one row, and the objects of `node:crypto` for a cipher cost twenty times as much as sealing 250 bytes.
 */
import { chacha20Code } from './chacha20-code.ts';

export const SECRET_BYTES = 32;
export const SECTION_NONCE_BYTES = 12;

const SECTION_PAGE_BYTES = 65_536;
const CHACHA_KEY_AT = 0;
const CHACHA_NONCE_AT = 32;
const SECTION_DATA_AT = 64;
/** The module reads and writes so far behind an end. */
const SECTION_MEMORY_SLACK = 16;
/** Memories that are kept for the next body, and how large one of them may be. */
const IDLE_MEMORIES_MAX = 2;
const IDLE_MEMORY_BYTES_MAX = 16 << 20;

interface ChachaExports {
  freeFrom(): number;
  xor(key: number, nonce: number, block: number, data: number, size: number): void;
}

let chachaModule: WebAssembly.Module | undefined;
const spareMemories: SectionMemory[] = [];

export class SectionMemory {
  /** The bytes that callers may write. */
  readonly bytes: Buffer;
  readonly view: DataView;
  readonly #chachaExports: ChachaExports;
  readonly #chachaBase: number;
  readonly #keyAndNonce: Uint8Array;

  private constructor(size: number) {
    chachaModule ??= new WebAssembly.Module(Buffer.from(chacha20Code, 'base64'));
    const memoryPages = Math.ceil((size + SECTION_DATA_AT + SECTION_MEMORY_SLACK) / SECTION_PAGE_BYTES) + 1;
    const memory = new WebAssembly.Memory({ initial: memoryPages });
    this.#chachaExports = new WebAssembly.Instance(chachaModule, { env: { memory } }).exports as unknown as ChachaExports;
    this.#chachaBase = this.#chachaExports.freeFrom();
    const sectionDataOffset = this.#chachaBase + SECTION_DATA_AT;
    this.#keyAndNonce = new Uint8Array(memory.buffer, this.#chachaBase, SECTION_DATA_AT);
    this.bytes = Buffer.from(
      memory.buffer,
      sectionDataOffset,
      memory.buffer.byteLength - sectionDataOffset - SECTION_MEMORY_SLACK,
    );
    this.view = new DataView(memory.buffer, sectionDataOffset, this.bytes.length);
  }

  /** Holds anything. To be given back, or to be forgotten. */
  static acquire(size: number): SectionMemory {
    const spareIndex = spareMemories.findIndex(({ bytes }) => bytes.length >= size);
    if (spareIndex >= 0) return spareMemories.splice(spareIndex, 1)[0]!;
    return new SectionMemory(size <= IDLE_MEMORY_BYTES_MAX / 2 ? size * 2 : size);
  }

  /** Returns the memory; it must not be used any more. */
  giveBack(): void {
    this.#keyAndNonce.fill(0);
    if (this.bytes.length > IDLE_MEMORY_BYTES_MAX) return;
    if (spareMemories.length === IDLE_MEMORIES_MAX) spareMemories.shift();
    spareMemories.push(this);
  }

  setNonce(nonce: Uint8Array): void {
    this.#keyAndNonce.set(nonce, CHACHA_NONCE_AT);
  }

  /** Where the key goes. */
  get key(): Uint8Array {
    return this.#keyAndNonce;
  }

  /** Bytes from .. to-1, which begin with this block of the stream, and up to fifteen behind them. */
  xor(from: number, to: number, block = 0): void {
    const chachaBase = this.#chachaBase;
    this.#chachaExports.xor(
      chachaBase + CHACHA_KEY_AT,
      chachaBase + CHACHA_NONCE_AT,
      block,
      chachaBase + SECTION_DATA_AT + from,
      to - from,
    );
  }
}
