/**
 * SHA-256 over a canonical dump: every value is written with its length or tag, so that two different states can't
 * give the same bytes. Buffered, because hashing a few bytes at a time costs more than the hash.
 */
import { createHash } from 'node:crypto';

const encoder = new TextEncoder();

/** Text t is heap[offsets[t] .. offsets[t+1]]. */
export interface Texts {
  readonly offsets: Uint32Array;
  readonly heap: Uint8Array;
}

export class CanonicalHash {
  readonly #hash = createHash('sha256');
  readonly #buffer: Uint8Array;
  readonly #view: DataView;
  #used = 0;

  constructor(bufferBytes = 1 << 16) {
    this.#buffer = new Uint8Array(bufferBytes);
    this.#view = new DataView(this.#buffer.buffer);
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#buffer[this.#used++] = value;
  }

  /** Numbers by their bits; both zeros are one value. */
  number(value: number): void {
    this.#reserve(8);
    this.#view.setFloat64(this.#used, value === 0 ? 0 : value);
    this.#used += 8;
  }

  i64(value: bigint): void {
    this.#reserve(8);
    this.#view.setBigInt64(this.#used, value);
    this.#used += 8;
  }

  /** values[start..end), each as `number` writes it. */
  numbers(values: Int32Array | Float32Array | Float64Array, start: number, end: number): void {
    for (let at = start; at < end; ) {
      this.#reserve(8);
      const view = this.#view;
      const stop = Math.min(end, at + ((this.#buffer.length - this.#used) >> 3));
      let to = this.#used;
      for (; at < stop; at++, to += 8) {
        const value = values[at]!;
        view.setFloat64(to, value === 0 ? 0 : value);
      }
      this.#used = to;
    }
  }

  /** first, first + 1, … */
  sequence(first: number, count: number): void {
    for (let at = 0; at < count; ) {
      this.#reserve(8);
      const view = this.#view;
      const stop = Math.min(count, at + ((this.#buffer.length - this.#used) >> 3));
      let to = this.#used;
      for (; at < stop; at++, to += 8) view.setFloat64(to, first + at);
      this.#used = to;
    }
  }

  i64s(values: BigInt64Array, start: number, end: number): void {
    for (let at = start; at < end; ) {
      this.#reserve(8);
      const view = this.#view;
      const stop = Math.min(end, at + ((this.#buffer.length - this.#used) >> 3));
      let to = this.#used;
      for (; at < stop; at++, to += 8) view.setBigInt64(to, values[at]!);
      this.#used = to;
    }
  }

  u32(value: number): void {
    this.#reserve(4);
    this.#view.setUint32(this.#used, value);
    this.#used += 4;
  }

  /** Hashes source[start..end) as it is: its length must be hashed elsewhere. */
  raw(source: Uint8Array, start: number, end: number): void {
    const size = end - start;
    if (size > this.#buffer.length) {
      this.#flush();
      this.#hash.update(source.subarray(start, end));
      return;
    }
    this.#reserve(size);
    if (size <= 64) for (let i = 0; i < size; i++) this.#buffer[this.#used + i] = source[start + i]!;
    else this.#buffer.set(source.subarray(start, end), this.#used);
    this.#used += size;
  }

  text(value: string): void {
    this.bytes(encoder.encode(value));
  }

  bytes(value: Uint8Array): void {
    this.range(value, 0, value.length);
  }

  /** How long each of some texts is, as `u32` writes it: those with these codes, or the first `count`. */
  lengths({ offsets }: Texts, codes: Int32Array | null, count: number): void {
    for (let at = 0; at < count; ) {
      this.#reserve(4);
      const view = this.#view;
      const stop = Math.min(count, at + ((this.#buffer.length - this.#used) >> 2));
      let to = this.#used;
      for (; at < stop; at++, to += 4) {
        const text = codes === null ? at : codes[at]!;
        view.setUint32(to, offsets[text + 1]! - offsets[text]!);
      }
      this.#used = to;
    }
  }

  /** The texts with the first `count` codes as they are, one after the other: their lengths must be hashed elsewhere. */
  textsOfCodes({ offsets, heap }: Texts, codes: Int32Array, count: number): void {
    const source = new DataView(heap.buffer, heap.byteOffset, heap.length);
    const view = this.#view;
    const room = this.#buffer.length;
    let to = this.#used;
    for (let i = 0; i < count; i++) {
      const from = offsets[codes[i]!]!;
      const size = offsets[codes[i]! + 1]! - from;
      if (size > 64 || to + size > room) {
        this.#used = to;
        this.raw(heap, from, from + size);
        to = this.#used;
        continue;
      }
      if (size < 4) for (let at = 0; at < size; at++) view.setUint8(to + at, source.getUint8(from + at));
      else {
        for (let at = 0; at < size - 4; at += 4) view.setInt32(to + at, source.getInt32(from + at));
        // The last four may overlap those before them.
        view.setInt32(to + size - 4, source.getInt32(from + size - 4));
      }
      to += size;
    }
    this.#used = to;
  }

  /** How long it is, and source[start..end). */
  range(source: Uint8Array, start: number, end: number): void {
    this.number(end - start);
    this.raw(source, start, end);
  }

  /** A JSON-like value. Keys of objects in codepoint order; bigint, null and absent members hash differently. */
  value(value: unknown): void {
    if (value === null || value === undefined) this.byte(0);
    else if (typeof value === 'boolean') this.byte(value ? 2 : 1);
    else if (typeof value === 'number') {
      this.byte(3);
      this.number(value);
    } else if (typeof value === 'bigint') {
      this.byte(4);
      this.text(value.toString());
    } else if (typeof value === 'string') {
      this.byte(5);
      this.text(value);
    } else if (Array.isArray(value)) {
      this.byte(6);
      this.number(value.length);
      for (const item of value) this.value(item);
    } else {
      const entries = Object.entries(value).filter(([, member]) => member !== undefined);
      entries.sort(([a], [b]) => (a < b ? -1 : 1));
      this.byte(7);
      this.number(entries.length);
      for (const [key, member] of entries) {
        this.text(key);
        this.value(member);
      }
    }
  }

  /** Lower-case hex; the hash must not be used afterwards. */
  hex(): string {
    this.#flush();
    return this.#hash.digest('hex');
  }

  #reserve(bytes: number): void {
    if (this.#used + bytes > this.#buffer.length) this.#flush();
  }

  #flush(): void {
    this.#hash.update(this.#buffer.subarray(0, this.#used));
    this.#used = 0;
  }
}
