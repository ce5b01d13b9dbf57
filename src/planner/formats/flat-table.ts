/**
 * Tables of a flatbuffer from an untrusted sender. Invariants: every offset and length is checked against the available bytes
 * before it is followed, and a few bytes to which many offsets lead cost no more work than as many distinct bytes. Source:
 * flatbuffers, "Internals".
 */
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../../errors.ts';

/** Tables and texts of one message: a schema of some thousand columns has a few of each. */
const metadataVisitsMax = 65_536;

/** Bytes of one flatbuffer, and how much of it was visited. */
class FlatbufferBytes {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  #metadataVisits = 0;

  constructor(bytes: Uint8Array) {
    // A buffer of Node gives a view where an array gives a copy.
    this.bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  visit(): void {
    if (++this.#metadataVisits > metadataVisitsMax) throw malformedError(`its metadata has over ${metadataVisitsMax} parts`);
  }

  /** Throws where [at, at + size) does not lie within the bytes. */
  check(metadataOffset: number, metadataSize: number): void {
    if (!(metadataOffset >= 0 && metadataSize >= 0 && metadataOffset + metadataSize <= this.bytes.length))
      throw malformedError('an offset leads outside of its metadata');
  }

  /** The target of the offset at `pointerOffset`. */
  follow(pointerOffset: number): number {
    this.check(pointerOffset, 4);
    const targetOffset = pointerOffset + this.view.getUint32(pointerOffset, true);
    this.check(targetOffset, 4);
    return targetOffset;
  }
}

export function malformedError(problem: string): ServiceError {
  return new ServiceError('REL_PARSE', `a message of Arrow IPC is malformed: ${problem}`);
}

/** Fields are numbered as in the schema language; one that is absent has its default. */
export class FlatTable {
  readonly #flatBytes: FlatbufferBytes;
  readonly #tableOffset: number;
  readonly #vtableOffset: number;
  readonly #vtableBytes: number;

  private constructor(flatBytes: FlatbufferBytes, tableOffset: number) {
    flatBytes.visit();
    flatBytes.check(tableOffset, 4);
    this.#flatBytes = flatBytes;
    this.#tableOffset = tableOffset;
    this.#vtableOffset = tableOffset - flatBytes.view.getInt32(tableOffset, true);
    flatBytes.check(this.#vtableOffset, 4);
    this.#vtableBytes = flatBytes.view.getUint16(this.#vtableOffset, true);
    flatBytes.check(this.#vtableOffset, this.#vtableBytes);
  }

  static root(bytes: Uint8Array): FlatTable {
    const flatBytes = new FlatbufferBytes(bytes);
    return new FlatTable(flatBytes, flatBytes.follow(0));
  }

  byte(field: number, absentByte = 0): number {
    const byteOffset = this.#fieldOffset(field, 1);
    return byteOffset < 0 ? absentByte : this.#flatBytes.view.getUint8(byteOffset);
  }

  short(field: number, absentShort = 0): number {
    const shortOffset = this.#fieldOffset(field, 2);
    return shortOffset < 0 ? absentShort : this.#flatBytes.view.getInt16(shortOffset, true);
  }

  int(field: number, absentInt = 0): number {
    const intOffset = this.#fieldOffset(field, 4);
    return intOffset < 0 ? absentInt : this.#flatBytes.view.getInt32(intOffset, true);
  }

  long(field: number): bigint {
    const longOffset = this.#fieldOffset(field, 8);
    return longOffset < 0 ? 0n : this.#flatBytes.view.getBigInt64(longOffset, true);
  }

  text(field: number): string | null {
    const textOffset = this.#fieldOffset(field, 4);
    if (textOffset < 0) return null;
    this.#flatBytes.visit();
    const [textStart, length] = this.#vectorAt(textOffset, 1);
    const textBytes = this.#flatBytes.bytes.subarray(textStart, textStart + length);
    if (!isUtf8(textBytes)) throw malformedError('a text of its metadata is no UTF-8');
    return flatbufferDecoder.decode(textBytes);
  }

  table(field: number): FlatTable | null {
    const subtableOffset = this.#fieldOffset(field, 4);
    return subtableOffset < 0 ? null : new FlatTable(this.#flatBytes, this.#flatBytes.follow(subtableOffset));
  }

  tables(field: number): FlatTable[] {
    const tablesOffset = this.#fieldOffset(field, 4);
    if (tablesOffset < 0) return [];
    const [tablesStart, length] = this.#vectorAt(tablesOffset, 4);
    return Array.from({ length }, (_, i) => new FlatTable(this.#flatBytes, this.#flatBytes.follow(tablesStart + i * 4)));
  }

  /** A vector of 64-bit integers, or of structures of two of them, one after the other. */
  longs(field: number, longsPerItem: 1 | 2 = 1): BigInt64Array {
    const longsOffset = this.#fieldOffset(field, 4);
    if (longsOffset < 0) return new BigInt64Array(0);
    const [longsStart, length] = this.#vectorAt(longsOffset, longsPerItem * 8);
    return new BigInt64Array(this.#flatBytes.bytes.slice(longsStart, longsStart + length * longsPerItem * 8).buffer);
  }

  /** Start and length of the vector that the offset at `at` leads to. */
  #vectorAt(at: number, vectorItemBytes: number): readonly [start: number, length: number] {
    const vectorOffset = this.#flatBytes.follow(at);
    const vectorLength = this.#flatBytes.view.getUint32(vectorOffset, true);
    this.#flatBytes.check(vectorOffset + 4, vectorLength * vectorItemBytes);
    return [vectorOffset + 4, vectorLength];
  }

  /** The offset of a field's `fieldBytes` bytes; negative: it is absent. */
  #fieldOffset(field: number, fieldBytes: number): number {
    const vtableEntry = 4 + field * 2;
    if (vtableEntry + 2 > this.#vtableBytes) return -1;
    const fieldOffset = this.#flatBytes.view.getUint16(this.#vtableOffset + vtableEntry, true);
    if (fieldOffset === 0) return -1;
    this.#flatBytes.check(this.#tableOffset + fieldOffset, fieldBytes);
    return this.#tableOffset + fieldOffset;
  }
}

const flatbufferDecoder = new TextDecoder('utf-8', { ignoreBOM: true });
