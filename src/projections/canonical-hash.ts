/**
 * SHA-256 over a canonical dump: every value is written with its length or tag, so that two different states can't
 * give the same bytes. Buffered, because hashing a few bytes at a time costs more than the hash.
 */
import { createHash } from 'node:crypto';

const hashTextEncoder = new TextEncoder();

/** Text t is heap[offsets[t] .. offsets[t+1]]. */
export interface Texts {
  readonly offsets: Uint32Array;
  readonly heap: Uint8Array;
}

export class CanonicalHash {
  readonly #canonicalSha256 = createHash('sha256');
  readonly #hashBuffer: Uint8Array;
  readonly #hashView: DataView;
  #hashBufferUsed = 0;

  constructor(bufferBytes = 1 << 16) {
    this.#hashBuffer = new Uint8Array(bufferBytes);
    this.#hashView = new DataView(this.#hashBuffer.buffer);
  }

  byte(hashedByte: number): void {
    this.#reserveHashBytes(1);
    this.#hashBuffer[this.#hashBufferUsed++] = hashedByte;
  }

  /** Numbers by their bits; both zeros are one value. */
  number(hashedNumber: number): void {
    this.#reserveHashBytes(8);
    this.#hashView.setFloat64(this.#hashBufferUsed, hashedNumber === 0 ? 0 : hashedNumber);
    this.#hashBufferUsed += 8;
  }

  i64(hashedI64: bigint): void {
    this.#reserveHashBytes(8);
    this.#hashView.setBigInt64(this.#hashBufferUsed, hashedI64);
    this.#hashBufferUsed += 8;
  }

  /** values[start..end), each as `number` writes it. */
  numbers(hashedNumbers: Int32Array | Float32Array | Float64Array, start: number, end: number): void {
    for (let numberIndex = start; numberIndex < end; ) {
      this.#reserveHashBytes(8);
      const hashView = this.#hashView;
      const hashFillEnd = Math.min(end, numberIndex + ((this.#hashBuffer.length - this.#hashBufferUsed) >> 3));
      let hashOffset = this.#hashBufferUsed;
      for (; numberIndex < hashFillEnd; numberIndex++, hashOffset += 8) {
        const hashedNumber = hashedNumbers[numberIndex]!;
        hashView.setFloat64(hashOffset, hashedNumber === 0 ? 0 : hashedNumber);
      }
      this.#hashBufferUsed = hashOffset;
    }
  }

  /** first, first + 1, … */
  sequence(first: number, count: number): void {
    for (let numberIndex = 0; numberIndex < count; ) {
      this.#reserveHashBytes(8);
      const hashView = this.#hashView;
      const hashFillEnd = Math.min(count, numberIndex + ((this.#hashBuffer.length - this.#hashBufferUsed) >> 3));
      let hashOffset = this.#hashBufferUsed;
      for (; numberIndex < hashFillEnd; numberIndex++, hashOffset += 8) hashView.setFloat64(hashOffset, first + numberIndex);
      this.#hashBufferUsed = hashOffset;
    }
  }

  i64s(hashedI64s: BigInt64Array, start: number, end: number): void {
    for (let i64Index = start; i64Index < end; ) {
      this.#reserveHashBytes(8);
      const hashView = this.#hashView;
      const hashFillEnd = Math.min(end, i64Index + ((this.#hashBuffer.length - this.#hashBufferUsed) >> 3));
      let hashOffset = this.#hashBufferUsed;
      for (; i64Index < hashFillEnd; i64Index++, hashOffset += 8) hashView.setBigInt64(hashOffset, hashedI64s[i64Index]!);
      this.#hashBufferUsed = hashOffset;
    }
  }

  u32(hashedU32: number): void {
    this.#reserveHashBytes(4);
    this.#hashView.setUint32(this.#hashBufferUsed, hashedU32);
    this.#hashBufferUsed += 4;
  }

  /** Hashes source[start..end) as it is: its length must be hashed elsewhere. */
  raw(hashedBytes: Uint8Array, start: number, end: number): void {
    const hashedLength = end - start;
    if (hashedLength > this.#hashBuffer.length) {
      this.#flushHashBuffer();
      this.#canonicalSha256.update(hashedBytes.subarray(start, end));
      return;
    }
    this.#reserveHashBytes(hashedLength);
    if (hashedLength <= 64)
      for (let i = 0; i < hashedLength; i++) this.#hashBuffer[this.#hashBufferUsed + i] = hashedBytes[start + i]!;
    else this.#hashBuffer.set(hashedBytes.subarray(start, end), this.#hashBufferUsed);
    this.#hashBufferUsed += hashedLength;
  }

  text(hashedText: string): void {
    this.bytes(hashTextEncoder.encode(hashedText));
  }

  bytes(hashedBytes: Uint8Array): void {
    this.range(hashedBytes, 0, hashedBytes.length);
  }

  /** How long each of some texts is, as `u32` writes it: those with these codes, or the first `count`. */
  lengths({ offsets }: Texts, codes: Int32Array | null, count: number): void {
    for (let textIndex = 0; textIndex < count; ) {
      this.#reserveHashBytes(4);
      const hashView = this.#hashView;
      const hashFillEnd = Math.min(count, textIndex + ((this.#hashBuffer.length - this.#hashBufferUsed) >> 2));
      let hashOffset = this.#hashBufferUsed;
      for (; textIndex < hashFillEnd; textIndex++, hashOffset += 4) {
        const hashedTextId = codes === null ? textIndex : codes[textIndex]!;
        hashView.setUint32(hashOffset, offsets[hashedTextId + 1]! - offsets[hashedTextId]!);
      }
      this.#hashBufferUsed = hashOffset;
    }
  }

  /** The texts with the first `count` codes as they are, one after the other: their lengths must be hashed elsewhere. */
  textsOfCodes({ offsets, heap }: Texts, codes: Int32Array, count: number): void {
    const heapView = new DataView(heap.buffer, heap.byteOffset, heap.length);
    const hashView = this.#hashView;
    const hashBufferBytes = this.#hashBuffer.length;
    let hashOffset = this.#hashBufferUsed;
    for (let i = 0; i < count; i++) {
      const heapOffset = offsets[codes[i]!]!;
      const heapTextBytes = offsets[codes[i]! + 1]! - heapOffset;
      if (heapTextBytes > 64 || hashOffset + heapTextBytes > hashBufferBytes) {
        this.#hashBufferUsed = hashOffset;
        this.raw(heap, heapOffset, heapOffset + heapTextBytes);
        hashOffset = this.#hashBufferUsed;
        continue;
      }
      if (heapTextBytes < 4)
        for (let textByte = 0; textByte < heapTextBytes; textByte++)
          hashView.setUint8(hashOffset + textByte, heapView.getUint8(heapOffset + textByte));
      else {
        for (let at = 0; at < heapTextBytes - 4; at += 4) hashView.setInt32(hashOffset + at, heapView.getInt32(heapOffset + at));
        // The last four may overlap those before them.
        hashView.setInt32(hashOffset + heapTextBytes - 4, heapView.getInt32(heapOffset + heapTextBytes - 4));
      }
      hashOffset += heapTextBytes;
    }
    this.#hashBufferUsed = hashOffset;
  }

  /** How long it is, and source[start..end). */
  range(hashedBytes: Uint8Array, start: number, end: number): void {
    this.number(end - start);
    this.raw(hashedBytes, start, end);
  }

  /** A JSON-like value. Keys of objects in codepoint order; bigint, null and absent members hash differently. */
  value(hashedValue: unknown): void {
    if (hashedValue === null || hashedValue === undefined) this.byte(0);
    else if (typeof hashedValue === 'boolean') this.byte(hashedValue ? 2 : 1);
    else if (typeof hashedValue === 'number') {
      this.byte(3);
      this.number(hashedValue);
    } else if (typeof hashedValue === 'bigint') {
      this.byte(4);
      this.text(hashedValue.toString());
    } else if (typeof hashedValue === 'string') {
      this.byte(5);
      this.text(hashedValue);
    } else if (Array.isArray(hashedValue)) {
      this.byte(6);
      this.number(hashedValue.length);
      for (const hashedItem of hashedValue) this.value(hashedItem);
    } else {
      const hashedMembers = Object.entries(hashedValue).filter(([, hashedMember]) => hashedMember !== undefined);
      hashedMembers.sort(([a], [b]) => (a < b ? -1 : 1));
      this.byte(7);
      this.number(hashedMembers.length);
      for (const [memberName, member] of hashedMembers) {
        this.text(memberName);
        this.value(member);
      }
    }
  }

  /** Lower-case hex; the hash must not be used afterwards. */
  hex(): string {
    this.#flushHashBuffer();
    return this.#canonicalSha256.digest('hex');
  }

  #reserveHashBytes(neededHashBytes: number): void {
    if (this.#hashBufferUsed + neededHashBytes > this.#hashBuffer.length) this.#flushHashBuffer();
  }

  #flushHashBuffer(): void {
    this.#canonicalSha256.update(this.#hashBuffer.subarray(0, this.#hashBufferUsed));
    this.#hashBufferUsed = 0;
  }
}
