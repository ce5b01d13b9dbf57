/**
 * Tables of a flatbuffer from an untrusted sender. Invariants: every offset and length is checked against the available bytes
 * before it is followed, and a few bytes to which many offsets lead cost no more work than as many distinct bytes. Source:
 * flatbuffers, "Internals".
 */
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../../errors.ts';

/** Tables and texts of one message: a schema of some thousand columns has a few of each. */
const visitsMax = 65_536;

/** Bytes of one flatbuffer, and how much of it was visited. */
class FlatBytes {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  #visits = 0;

  constructor(bytes: Uint8Array) {
    // A buffer of Node gives a view where an array gives a copy.
    this.bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  visit(): void {
    if (++this.#visits > visitsMax) throw malformedError(`its metadata has over ${visitsMax} parts`);
  }

  /** Throws where [at, at + size) does not lie within the bytes. */
  check(at: number, size: number): void {
    if (!(at >= 0 && size >= 0 && at + size <= this.bytes.length))
      throw malformedError('an offset leads outside of its metadata');
  }

  /** The target of the offset at `at`. */
  follow(at: number): number {
    this.check(at, 4);
    const to = at + this.view.getUint32(at, true);
    this.check(to, 4);
    return to;
  }
}

export function malformedError(problem: string): ServiceError {
  return new ServiceError('REL_PARSE', `a message of Arrow IPC is malformed: ${problem}`);
}

/** Fields are numbered as in the schema language; one that is absent has its default. */
export class FlatTable {
  readonly #from: FlatBytes;
  readonly #at: number;
  readonly #vtable: number;
  readonly #vtableBytes: number;

  private constructor(from: FlatBytes, at: number) {
    from.visit();
    from.check(at, 4);
    this.#from = from;
    this.#at = at;
    this.#vtable = at - from.view.getInt32(at, true);
    from.check(this.#vtable, 4);
    this.#vtableBytes = from.view.getUint16(this.#vtable, true);
    from.check(this.#vtable, this.#vtableBytes);
  }

  static root(bytes: Uint8Array): FlatTable {
    const from = new FlatBytes(bytes);
    return new FlatTable(from, from.follow(0));
  }

  byte(field: number, absent = 0): number {
    const at = this.#field(field, 1);
    return at < 0 ? absent : this.#from.view.getUint8(at);
  }

  short(field: number, absent = 0): number {
    const at = this.#field(field, 2);
    return at < 0 ? absent : this.#from.view.getInt16(at, true);
  }

  int(field: number, absent = 0): number {
    const at = this.#field(field, 4);
    return at < 0 ? absent : this.#from.view.getInt32(at, true);
  }

  long(field: number): bigint {
    const at = this.#field(field, 8);
    return at < 0 ? 0n : this.#from.view.getBigInt64(at, true);
  }

  text(field: number): string | null {
    const at = this.#field(field, 4);
    if (at < 0) return null;
    this.#from.visit();
    const [start, length] = this.#vector(at, 1);
    const bytes = this.#from.bytes.subarray(start, start + length);
    if (!isUtf8(bytes)) throw malformedError('a text of its metadata is no UTF-8');
    return decoder.decode(bytes);
  }

  table(field: number): FlatTable | null {
    const at = this.#field(field, 4);
    return at < 0 ? null : new FlatTable(this.#from, this.#from.follow(at));
  }

  tables(field: number): FlatTable[] {
    const at = this.#field(field, 4);
    if (at < 0) return [];
    const [start, length] = this.#vector(at, 4);
    return Array.from({ length }, (_, i) => new FlatTable(this.#from, this.#from.follow(start + i * 4)));
  }

  /** A vector of 64-bit integers, or of structures of two of them, one after the other. */
  longs(field: number, each: 1 | 2 = 1): BigInt64Array {
    const at = this.#field(field, 4);
    if (at < 0) return new BigInt64Array(0);
    const [start, length] = this.#vector(at, each * 8);
    return new BigInt64Array(this.#from.bytes.slice(start, start + length * each * 8).buffer);
  }

  /** Start and length of the vector that the offset at `at` leads to. */
  #vector(at: number, size: number): readonly [start: number, length: number] {
    const to = this.#from.follow(at);
    const length = this.#from.view.getUint32(to, true);
    this.#from.check(to + 4, length * size);
    return [to + 4, length];
  }

  /** The offset of a field's `size` bytes; negative: it is absent. */
  #field(field: number, size: number): number {
    const entry = 4 + field * 2;
    if (entry + 2 > this.#vtableBytes) return -1;
    const offset = this.#from.view.getUint16(this.#vtable + entry, true);
    if (offset === 0) return -1;
    this.#from.check(this.#at + offset, size);
    return this.#at + offset;
  }
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
