/**
 * Canonical little-endian bytes, written and read field by field. One value has one encoding: no padding that a
 * reader ignores, no varints, no JSON. The reader checks every length against what is left before it allocates.
 */
import { ServiceError } from '../../errors.ts';
import { checkText } from '../values/value.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The error of a reader: no writer of this format makes these bytes. */
export function malformedError(what: string): ServiceError {
  return new ServiceError('REL_STORAGE', `malformed bytes: ${what}`);
}

/** Growable and reusable: `take` copies out, `view` shows what was written until the next `reset`. */
export class ByteWriter {
  #bytes: Uint8Array;
  #view: DataView;
  #at = 0;

  /** The initial size in bytes, or memory to begin in; larger content moves to memory of its own. */
  constructor(start: number | Uint8Array = 1024) {
    this.#bytes = typeof start === 'number' ? new Uint8Array(start) : start;
    this.#view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength);
  }

  get length(): number {
    return this.#at;
  }

  reset(): void {
    // One huge body must not pin its memory for ever.
    if (this.#bytes.length > 8 << 20) {
      this.#bytes = new Uint8Array(1 << 16);
      this.#view = new DataView(this.#bytes.buffer);
    }
    this.#at = 0;
  }

  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  take(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#at) as Uint8Array<ArrayBuffer>;
  }

  u8(value: number): void {
    const at = this.#reserve(1);
    this.#bytes[at] = value;
  }

  u16(value: number): void {
    this.#view.setUint16(this.#reserve(2), value, true);
  }

  u32(value: number): void {
    const at = this.#reserve(4);
    this.#view.setUint32(at, value, true);
  }

  /** A safe integer from 0 to 2^53 - 1, in eight bytes. */
  u64(value: number): void {
    const at = this.#reserve(8);
    this.#view.setUint32(at, value >>> 0, true);
    this.#view.setUint32(at + 4, Math.floor(value / 4_294_967_296), true);
  }

  i64(value: bigint): void {
    const at = this.#reserve(8);
    this.#view.setBigInt64(at, value, true);
  }

  f64(value: number): void {
    const at = this.#reserve(8);
    this.#view.setFloat64(at, value, true);
  }

  raw(bytes: Uint8Array): void {
    const at = this.#reserve(bytes.length);
    this.#bytes.set(bytes, at);
  }

  i32(value: number): void {
    const at = this.#reserve(4);
    this.#view.setInt32(at, value, true);
  }

  /** Bytes from .. to-1 of `source`: for a few, a view of them would cost more than the copy. */
  part(source: Uint8Array, from: number, to: number): void {
    const at = this.#reserve(to - from);
    const bytes = this.#bytes;
    if (to - from > 48) bytes.set(source.subarray(from, to), at);
    else for (let i = from; i < to; i++) bytes[at + i - from] = source[i]!;
  }

  /** u32 length, UTF-8. Throws REL_INVALID on a lone surrogate. */
  text(value: string): void {
    const at = this.#reserve(4 + value.length * 3);
    const written = this.#utf8(value, at + 4);
    this.#view.setUint32(at, written, true);
    this.#at = at + 4 + written;
  }

  /** u8 presence, then the text. */
  optionalText(value: string | null): void {
    this.u8(value === null ? 0 : 1);
    if (value !== null) this.text(value);
  }

  /** Zeros up to a multiple of `size`. */
  align(size: number): void {
    const padding = this.#at % size;
    if (padding === 0) return;
    const at = this.#reserve(size - padding);
    this.#bytes.fill(0, at, at + size - padding);
  }

  #utf8(value: string, at: number): number {
    const bytes = this.#bytes;
    if (value.length <= 64) {
      let i = 0;
      for (; i < value.length; i++) {
        const code = value.charCodeAt(i);
        if (code > 127) break;
        bytes[at + i] = code;
      }
      if (i === value.length) return i;
    }
    checkText(value, 'a text');
    return encoder.encodeInto(value, bytes.subarray(at)).written;
  }

  #reserve(size: number): number {
    const at = this.#at;
    this.#at = at + size;
    if (this.#at > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#at));
      grown.set(this.#bytes.subarray(0, at));
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
    return at;
  }
}

/** Reads what `ByteWriter` wrote. Every failure is REL_STORAGE: the bytes are not ours, or not whole. */
export class ByteReader {
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    // A Buffer's own subarray and slice are slower and mean other things than a plain array's.
    this.bytes = bytes.constructor === Uint8Array ? bytes : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get at(): number {
    return this.#at;
  }

  get left(): number {
    return this.bytes.length - this.#at;
  }

  u8(): number {
    return this.bytes[this.#advance(1)]!;
  }

  u16(): number {
    return this.#view.getUint16(this.#advance(2), true);
  }

  u32(): number {
    return this.#view.getUint32(this.#advance(4), true);
  }

  u64(): number {
    const at = this.#advance(8);
    const high = this.#view.getUint32(at + 4, true);
    if (high > 0x1f_ffff) throw malformedError('an integer above 2^53');
    return high * 4_294_967_296 + this.#view.getUint32(at, true);
  }

  i64(): bigint {
    return this.#view.getBigInt64(this.#advance(8), true);
  }

  f64(): number {
    return this.#view.getFloat64(this.#advance(8), true);
  }

  /** A view of the next bytes: not a copy. */
  raw(size: number): Uint8Array {
    const at = this.#advance(size);
    return this.bytes.subarray(at, at + size);
  }

  text(): string {
    const size = this.u32();
    const at = this.#advance(size);
    if (size <= 24) {
      let text = '';
      let i = 0;
      for (; i < size; i++) {
        const byte = this.bytes[at + i]!;
        if (byte > 127) break;
        text += String.fromCharCode(byte);
      }
      if (i === size) return text;
    }
    try {
      return decoder.decode(this.bytes.subarray(at, at + size));
    } catch {
      throw malformedError('text that is not UTF-8');
    }
  }

  optionalText(): string | null {
    return this.flag() ? this.text() : null;
  }

  /** A byte that may only be 0 or 1. */
  flag(): boolean {
    const value = this.u8();
    if (value > 1) throw malformedError('a flag that is neither 0 nor 1');
    return value === 1;
  }

  /** A count of items that take at least `itemBytes` each: never more than what is left can hold. */
  count(itemBytes: number): number {
    const count = this.u32();
    if (count * itemBytes > this.left) throw malformedError('a count beyond the end');
    return count;
  }

  align(size: number): void {
    const padding = this.#at % size;
    if (padding === 0) return;
    const at = this.#advance(size - padding);
    for (let i = at; i < this.#at; i++) if (this.bytes[i] !== 0) throw malformedError('padding that is not zero');
  }

  end(): void {
    if (this.left !== 0) throw malformedError('bytes after the end');
  }

  #advance(size: number): number {
    const at = this.#at;
    if (size > this.bytes.length - at) throw malformedError('the end came early');
    this.#at = at + size;
    return at;
  }
}
