/**
 * PackStream, version 1: values of Bolt as bytes. Integers are bigint, floats are number, so that both keep their kind. Source:
 * neo4j.com/docs/bolt/current/packstream.
 */
import { ServiceError } from '../../errors.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { utf8 } from '../shared/utf8.ts';

/** Lists, maps and structures stand in each other at most so deep. */
export const depthMax = 64;
const packedValuesInTurn = 4_096;

export class PackStreamStructure {
  readonly tag: number;
  readonly fields: readonly PackStreamValue[];

  constructor(tag: number, fields: readonly PackStreamValue[]) {
    this.tag = tag;
    this.fields = fields;
  }
}

export type PackStreamMap = ReadonlyMap<string, PackStreamValue>;
export type PackStreamValue =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | readonly PackStreamValue[]
  | PackStreamMap
  | PackStreamStructure;

export const isMap = (packedValue: PackStreamValue | undefined): packedValue is PackStreamMap => packedValue instanceof Map;

/** The one value that the bytes are. Throws REL_INVALID; yields where others may have a turn. */
export function* unpackSteps(packedBytes: Buffer): Steps<PackStreamValue> {
  const packReader = new PackReader(packedBytes);
  const packedValue = yield* packReader.value(0);
  if (packReader.at !== packedBytes.length) throw malformedPackStream('bytes follow the value');
  return packedValue;
}

class PackReader {
  at = 0;
  readonly #packedBytes: Buffer;
  #valueCount = 0;

  constructor(packedBytes: Buffer) {
    this.#packedBytes = packedBytes;
  }

  *value(nestingDepth: number): Steps<PackStreamValue> {
    if (nestingDepth > depthMax) throw new ServiceError('REL_INVALID', `values nest deeper than ${depthMax} levels`);
    if (++this.#valueCount % packedValuesInTurn === 0) yield;
    const packMarker = this.#packedBytes[this.#takePacked(1)]!;
    if (packMarker < 0x80) return BigInt(packMarker);
    if (packMarker >= 0xf0) return BigInt(packMarker - 0x100);
    if (packMarker < 0xc0) return yield* this.#readSized(packMarker & 0xf0, packMarker & 0x0f, nestingDepth);
    const sizedMarker = sizedMarkers.get(packMarker);
    if (sizedMarker !== undefined)
      return yield* this.#readSized(sizedMarker.like, this.#readSize(sizedMarker.width), nestingDepth);
    return this.#readScalar(packMarker);
  }

  #readScalar(packMarker: number): PackStreamValue {
    switch (packMarker) {
      case 0xc0:
        return null;
      case 0xc1:
        return this.#packedBytes.readDoubleBE(this.#takePacked(8));
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc8:
        return BigInt(this.#packedBytes.readInt8(this.#takePacked(1)));
      case 0xc9:
        return BigInt(this.#packedBytes.readInt16BE(this.#takePacked(2)));
      case 0xca:
        return BigInt(this.#packedBytes.readInt32BE(this.#takePacked(4)));
      case 0xcb:
        return this.#packedBytes.readBigInt64BE(this.#takePacked(8));
    }
    throw malformedPackStream(`no value begins with 0x${packMarker.toString(16)}`);
  }

  *#readSized(markerLike: number, memberCount: number, nestingDepth: number): Steps<PackStreamValue> {
    if (markerLike === bytesMarker || markerLike === 0x80) {
      const packedOffset = this.#takePacked(memberCount);
      const packedBytes = this.#packedBytes.subarray(packedOffset, packedOffset + memberCount);
      return markerLike === 0x80 ? utf8(packedBytes) : packedBytes;
    }
    const isMapMarker = markerLike === 0xa0;
    // Each value takes a byte at least: a count that can't be true costs nothing.
    if (this.#packedBytes.length - this.at < (isMapMarker ? 2 * memberCount : memberCount))
      throw malformedPackStream('it ends within a value');
    if (isMapMarker) return yield* this.#readMap(memberCount, nestingDepth);
    const structureTag = markerLike === 0xb0 ? this.#packedBytes[this.#takePacked(1)]! : null;
    const packedValues: PackStreamValue[] = [];
    for (let i = 0; i < memberCount; i++) packedValues.push(yield* this.value(nestingDepth + 1));
    return structureTag === null ? packedValues : new PackStreamStructure(structureTag, packedValues);
  }

  *#readMap(pairCount: number, nestingDepth: number): Steps<PackStreamMap> {
    const packedMap = new Map<string, PackStreamValue>();
    for (let i = 0; i < pairCount; i++) {
      const mapKey = yield* this.value(nestingDepth + 1);
      if (typeof mapKey !== 'string') throw malformedPackStream('a key of a map is not a text');
      if (packedMap.has(mapKey)) throw malformedPackStream(`a map has the key ${JSON.stringify(mapKey.slice(0, 100))} twice`);
      packedMap.set(mapKey, yield* this.value(nestingDepth + 1));
    }
    return packedMap;
  }

  #readSize(sizeWidth: number): number {
    return this.#packedBytes.readUIntBE(this.#takePacked(sizeWidth), sizeWidth);
  }

  #takePacked(takenLength: number): number {
    const packedOffset = this.at;
    if (this.#packedBytes.length - packedOffset < takenLength) throw malformedPackStream('it ends within a value');
    this.at = packedOffset + takenLength;
    return packedOffset;
  }
}

const bytesMarker = 0xcc;
const sizedMarkers: ReadonlyMap<number, { readonly like: number; readonly width: number }> = new Map(
  (
    [
      [bytesMarker, bytesMarker],
      [0xd0, 0x80],
      [0xd4, 0x90],
      [0xd8, 0xa0],
    ] as const
  ).flatMap(([firstMarker, markerLike]) =>
    [1, 2, 4].map((sizeWidth, i) => [firstMarker + i, { like: markerLike, width: sizeWidth }] as const),
  ),
);

const malformedPackStream = (packProblem: string): ServiceError =>
  new ServiceError('REL_INVALID', `malformed PackStream: ${packProblem}`);

/** Bytes of values, one behind the other. */
export class PackStreamWriter {
  #bytes = Buffer.allocUnsafe(512);
  #length = 0;

  /** Valid until the next `clear`. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
  }

  structure(structureTag: number, fieldCount: number): void {
    this.#bytes[this.#room(2)] = 0xb0 | fieldCount;
    this.#bytes[this.#length - 1] = structureTag;
  }

  list(listLength: number): void {
    this.#head(0x90, 0xd4, listLength);
  }

  value(packedValue: PackStreamValue): void {
    if (packedValue === null) this.#byte(0xc0);
    else if (typeof packedValue === 'string') this.#text(packedValue);
    else if (typeof packedValue === 'bigint') this.#integer(packedValue);
    else if (typeof packedValue === 'number') {
      this.#byte(0xc1);
      this.#bytes.writeDoubleBE(packedValue, this.#room(8));
    } else if (typeof packedValue === 'boolean') this.#byte(packedValue ? 0xc3 : 0xc2);
    else if (packedValue instanceof Uint8Array) {
      this.#writeSize(bytesMarker, packedValue.length);
      this.#bytes.set(packedValue, this.#room(packedValue.length));
    } else if (packedValue instanceof PackStreamStructure) {
      this.structure(packedValue.tag, packedValue.fields.length);
      for (const structureField of packedValue.fields) this.value(structureField);
    } else if (isMap(packedValue)) {
      this.#head(0xa0, 0xd8, packedValue.size);
      for (const [mapKey, mapMember] of packedValue) {
        this.#text(mapKey);
        this.value(mapMember);
      }
    } else {
      this.list(packedValue.length);
      for (const listMember of packedValue) this.value(listMember);
    }
  }

  #text(packedText: string): void {
    const textLength = Buffer.byteLength(packedText);
    this.#head(0x80, 0xd0, textLength);
    this.#bytes.write(packedText, this.#room(textLength));
  }

  #integer(packedInteger: bigint): void {
    if (packedInteger >= -16n && packedInteger < 128n) return this.#byte(Number(packedInteger) & 0xff);
    if (packedInteger >= -0x80n && packedInteger < 0x80n) {
      this.#byte(0xc8);
      this.#bytes.writeInt8(Number(packedInteger), this.#room(1));
    } else if (packedInteger >= -0x8000n && packedInteger < 0x8000n) {
      this.#byte(0xc9);
      this.#bytes.writeInt16BE(Number(packedInteger), this.#room(2));
    } else if (packedInteger >= -0x80000000n && packedInteger < 0x80000000n) {
      this.#byte(0xca);
      this.#bytes.writeInt32BE(Number(packedInteger), this.#room(4));
    } else {
      this.#byte(0xcb);
      this.#bytes.writeBigInt64BE(packedInteger, this.#room(8));
    }
  }

  #head(tinyMarker: number, sizedMarker: number, memberCount: number): void {
    if (memberCount < 16) this.#byte(tinyMarker | memberCount);
    else this.#writeSize(sizedMarker, memberCount);
  }

  #writeSize(firstMarker: number, memberCount: number): void {
    const [sizeMarker, sizeWidth] =
      memberCount < 0x100 ? ([0, 1] as const) : memberCount < 0x10000 ? ([1, 2] as const) : ([2, 4] as const);
    this.#byte(firstMarker + sizeMarker);
    this.#bytes.writeUIntBE(memberCount, this.#room(sizeWidth), sizeWidth);
  }

  #byte(packedByte: number): void {
    this.#bytes[this.#room(1)] = packedByte;
  }

  /** Makes room for so many bytes; returns their offset. */
  #room(neededLength: number): number {
    const packedOffset = this.#length;
    this.#length += neededLength;
    if (this.#length > this.#bytes.length) {
      const grownBuffer = Buffer.allocUnsafe(Math.max(this.#length, this.#bytes.length * 2));
      this.#bytes.copy(grownBuffer, 0, 0, packedOffset);
      this.#bytes = grownBuffer;
    }
    return packedOffset;
  }
}
