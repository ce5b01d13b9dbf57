/**
 * Canonical little-endian bytes, written and read field by field. One value has one encoding: no padding that a
 * reader ignores, no varints, no JSON. The reader checks every length against what is left before it allocates.
 */
import { ServiceError } from '../../errors.ts';
import { checkText } from '../values/value.ts';

const utf8Encoder = new TextEncoder();
const utf8Decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The error of a reader: no writer of this format makes these bytes. */
export function malformedError(malformedPart: string): ServiceError {
  return new ServiceError('REL_STORAGE', `malformed bytes: ${malformedPart}`);
}

/** Growable and reusable: `take` copies out, `view` shows what was written until the next `reset`. */
export class ByteWriter {
  #writtenBytes: Uint8Array;
  #writtenView: DataView;
  #writeOffset = 0;

  /** The initial size in bytes, or memory to begin in; larger content moves to memory of its own. */
  constructor(initialBytes: number | Uint8Array = 1024) {
    this.#writtenBytes = typeof initialBytes === 'number' ? new Uint8Array(initialBytes) : initialBytes;
    this.#writtenView = new DataView(this.#writtenBytes.buffer, this.#writtenBytes.byteOffset, this.#writtenBytes.byteLength);
  }

  get length(): number {
    return this.#writeOffset;
  }

  reset(): void {
    // One huge body must not pin its memory for ever.
    if (this.#writtenBytes.length > 8 << 20) {
      this.#writtenBytes = new Uint8Array(1 << 16);
      this.#writtenView = new DataView(this.#writtenBytes.buffer);
    }
    this.#writeOffset = 0;
  }

  view(): Uint8Array {
    return this.#writtenBytes.subarray(0, this.#writeOffset);
  }

  take(): Uint8Array<ArrayBuffer> {
    return this.#writtenBytes.slice(0, this.#writeOffset) as Uint8Array<ArrayBuffer>;
  }

  u8(u8Value: number): void {
    const u8Offset = this.#reserveBytes(1);
    this.#writtenBytes[u8Offset] = u8Value;
  }

  u16(u16Value: number): void {
    this.#writtenView.setUint16(this.#reserveBytes(2), u16Value, true);
  }

  u32(u32Value: number): void {
    const u32Offset = this.#reserveBytes(4);
    this.#writtenView.setUint32(u32Offset, u32Value, true);
  }

  /** A safe integer from 0 to 2^53 - 1, in eight bytes. */
  u64(u64Value: number): void {
    const u64Offset = this.#reserveBytes(8);
    this.#writtenView.setUint32(u64Offset, u64Value >>> 0, true);
    this.#writtenView.setUint32(u64Offset + 4, Math.floor(u64Value / 4_294_967_296), true);
  }

  i64(i64Value: bigint): void {
    const i64Offset = this.#reserveBytes(8);
    this.#writtenView.setBigInt64(i64Offset, i64Value, true);
  }

  f64(f64Value: number): void {
    const f64Offset = this.#reserveBytes(8);
    this.#writtenView.setFloat64(f64Offset, f64Value, true);
  }

  raw(rawBytes: Uint8Array): void {
    const rawOffset = this.#reserveBytes(rawBytes.length);
    this.#writtenBytes.set(rawBytes, rawOffset);
  }

  i32(i32Value: number): void {
    const i32Offset = this.#reserveBytes(4);
    this.#writtenView.setInt32(i32Offset, i32Value, true);
  }

  /** Bytes from .. to-1 of `partSource`: for a few, a view of them would cost more than the copy. */
  part(partSource: Uint8Array, partStart: number, partEnd: number): void {
    const partOffset = this.#reserveBytes(partEnd - partStart);
    const writtenBytes = this.#writtenBytes;
    if (partEnd - partStart > 48) writtenBytes.set(partSource.subarray(partStart, partEnd), partOffset);
    else for (let i = partStart; i < partEnd; i++) writtenBytes[partOffset + i - partStart] = partSource[i]!;
  }

  /** u32 length, UTF-8. Throws REL_INVALID on a lone surrogate. */
  text(textValue: string): void {
    const lengthOffset = this.#reserveBytes(4 + textValue.length * 3);
    const utf8Length = this.#writeUtf8(textValue, lengthOffset + 4);
    this.#writtenView.setUint32(lengthOffset, utf8Length, true);
    this.#writeOffset = lengthOffset + 4 + utf8Length;
  }

  /** u8 presence, then the text. */
  optionalText(textValue: string | null): void {
    this.u8(textValue === null ? 0 : 1);
    if (textValue !== null) this.text(textValue);
  }

  /** Zeros up to a multiple of `alignment`. */
  align(alignment: number): void {
    const padding = this.#writeOffset % alignment;
    if (padding === 0) return;
    const paddingOffset = this.#reserveBytes(alignment - padding);
    this.#writtenBytes.fill(0, paddingOffset, paddingOffset + alignment - padding);
  }

  #writeUtf8(utf8Text: string, utf8Offset: number): number {
    const writtenBytes = this.#writtenBytes;
    if (utf8Text.length <= 64) {
      let i = 0;
      for (; i < utf8Text.length; i++) {
        const charCode = utf8Text.charCodeAt(i);
        if (charCode > 127) break;
        writtenBytes[utf8Offset + i] = charCode;
      }
      if (i === utf8Text.length) return i;
    }
    checkText(utf8Text, 'a text');
    return utf8Encoder.encodeInto(utf8Text, writtenBytes.subarray(utf8Offset)).written;
  }

  #reserveBytes(reservedBytes: number): number {
    const reservedOffset = this.#writeOffset;
    this.#writeOffset = reservedOffset + reservedBytes;
    if (this.#writeOffset > this.#writtenBytes.length) {
      const grownBytes = new Uint8Array(Math.max(this.#writtenBytes.length * 2, this.#writeOffset));
      grownBytes.set(this.#writtenBytes.subarray(0, reservedOffset));
      this.#writtenBytes = grownBytes;
      this.#writtenView = new DataView(grownBytes.buffer);
    }
    return reservedOffset;
  }
}

/** Reads what `ByteWriter` wrote. Every failure is REL_STORAGE: the bytes are not ours, or not whole. */
export class ByteReader {
  readonly bytes: Uint8Array;
  readonly #readView: DataView;
  #readOffset = 0;

  constructor(sourceBytes: Uint8Array) {
    // A Buffer's own subarray and slice are slower and mean other things than a plain array's.
    this.bytes =
      sourceBytes.constructor === Uint8Array
        ? sourceBytes
        : new Uint8Array(sourceBytes.buffer, sourceBytes.byteOffset, sourceBytes.byteLength);
    this.#readView = new DataView(sourceBytes.buffer, sourceBytes.byteOffset, sourceBytes.byteLength);
  }

  get at(): number {
    return this.#readOffset;
  }

  get left(): number {
    return this.bytes.length - this.#readOffset;
  }

  u8(): number {
    return this.bytes[this.#advanceRead(1)]!;
  }

  u16(): number {
    return this.#readView.getUint16(this.#advanceRead(2), true);
  }

  u32(): number {
    return this.#readView.getUint32(this.#advanceRead(4), true);
  }

  u64(): number {
    const u64Offset = this.#advanceRead(8);
    const u64High = this.#readView.getUint32(u64Offset + 4, true);
    if (u64High > 0x1f_ffff) throw malformedError('an integer above 2^53');
    return u64High * 4_294_967_296 + this.#readView.getUint32(u64Offset, true);
  }

  i64(): bigint {
    return this.#readView.getBigInt64(this.#advanceRead(8), true);
  }

  f64(): number {
    return this.#readView.getFloat64(this.#advanceRead(8), true);
  }

  /** A view of the next bytes: not a copy. */
  raw(rawSize: number): Uint8Array {
    const rawOffset = this.#advanceRead(rawSize);
    return this.bytes.subarray(rawOffset, rawOffset + rawSize);
  }

  text(): string {
    const utf8Length = this.u32();
    const utf8Offset = this.#advanceRead(utf8Length);
    if (utf8Length <= 24) {
      let asciiText = '';
      let i = 0;
      for (; i < utf8Length; i++) {
        const asciiByte = this.bytes[utf8Offset + i]!;
        if (asciiByte > 127) break;
        asciiText += String.fromCharCode(asciiByte);
      }
      if (i === utf8Length) return asciiText;
    }
    try {
      return utf8Decoder.decode(this.bytes.subarray(utf8Offset, utf8Offset + utf8Length));
    } catch {
      throw malformedError('text that is not UTF-8');
    }
  }

  optionalText(): string | null {
    return this.flag() ? this.text() : null;
  }

  /** A byte that may only be 0 or 1. */
  flag(): boolean {
    const flagByte = this.u8();
    if (flagByte > 1) throw malformedError('a flag that is neither 0 nor 1');
    return flagByte === 1;
  }

  /** A count of items that take at least `itemBytes` each: never more than what is left can hold. */
  count(itemBytes: number): number {
    const itemCount = this.u32();
    if (itemCount * itemBytes > this.left) throw malformedError('a count beyond the end');
    return itemCount;
  }

  align(alignment: number): void {
    const padding = this.#readOffset % alignment;
    if (padding === 0) return;
    const paddingOffset = this.#advanceRead(alignment - padding);
    for (let i = paddingOffset; i < this.#readOffset; i++)
      if (this.bytes[i] !== 0) throw malformedError('padding that is not zero');
  }

  end(): void {
    if (this.left !== 0) throw malformedError('bytes after the end');
  }

  #advanceRead(advancedBytes: number): number {
    const readOffset = this.#readOffset;
    if (advancedBytes > this.bytes.length - readOffset) throw malformedError('the end came early');
    this.#readOffset = readOffset + advancedBytes;
    return readOffset;
  }
}
