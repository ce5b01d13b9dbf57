/**
 * SHA-256 over a canonical dump: every value is written with its length or tag, so that two different states can't
 * give the same bytes. Buffered, because hashing a few bytes at a time costs more than the hash.
 */
import { createHash } from 'node:crypto';

const encoder = new TextEncoder();

export class CanonicalHash {
  readonly #hash = createHash('sha256');
  readonly #buffer = new Uint8Array(1 << 16);
  readonly #view = new DataView(this.#buffer.buffer);
  #used = 0;

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

  text(value: string): void {
    this.bytes(encoder.encode(value));
  }

  bytes(value: Uint8Array): void {
    this.range(value, 0, value.length);
  }

  /** source[start..end), without a view of its own where it is short. */
  range(source: Uint8Array, start: number, end: number): void {
    const size = end - start;
    this.number(size);
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

  /** A JSON-like value. Keys of objects in codepoint order; bigint, null and absent members told apart. */
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
