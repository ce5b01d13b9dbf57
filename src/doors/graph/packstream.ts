/**
 * PackStream, version 1: values of Bolt as bytes. Integers are bigint, floats are number, so that both keep their kind. Source:
 * neo4j.com/docs/bolt/current/packstream.
 */
import { ServiceError } from '../../errors.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { utf8 } from '../shared/utf8.ts';

/** Lists, maps and structures stand in each other at most so deep. */
export const depthMax = 64;
const valuesInTurn = 4_096;

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

export const isMap = (value: PackStreamValue | undefined): value is PackStreamMap => value instanceof Map;

/** The one value that the bytes are. Throws REL_INVALID; yields where others may have a turn. */
export function* unpackSteps(bytes: Buffer): Steps<PackStreamValue> {
  const reader = new Reader(bytes);
  const value = yield* reader.value(0);
  if (reader.at !== bytes.length) throw malformedError('bytes follow the value');
  return value;
}

class Reader {
  at = 0;
  readonly #bytes: Buffer;
  #values = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  *value(depth: number): Steps<PackStreamValue> {
    if (depth > depthMax) throw new ServiceError('REL_INVALID', `values nest deeper than ${depthMax} levels`);
    if (++this.#values % valuesInTurn === 0) yield;
    const marker = this.#bytes[this.#take(1)]!;
    if (marker < 0x80) return BigInt(marker);
    if (marker >= 0xf0) return BigInt(marker - 0x100);
    if (marker < 0xc0) return yield* this.#ofSize(marker & 0xf0, marker & 0x0f, depth);
    const counted = countedMarkers.get(marker);
    if (counted !== undefined) return yield* this.#ofSize(counted.like, this.#count(counted.width), depth);
    return this.#scalar(marker);
  }

  #scalar(marker: number): PackStreamValue {
    switch (marker) {
      case 0xc0:
        return null;
      case 0xc1:
        return this.#bytes.readDoubleBE(this.#take(8));
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc8:
        return BigInt(this.#bytes.readInt8(this.#take(1)));
      case 0xc9:
        return BigInt(this.#bytes.readInt16BE(this.#take(2)));
      case 0xca:
        return BigInt(this.#bytes.readInt32BE(this.#take(4)));
      case 0xcb:
        return this.#bytes.readBigInt64BE(this.#take(8));
    }
    throw malformedError(`no value begins with 0x${marker.toString(16)}`);
  }

  *#ofSize(like: number, count: number, depth: number): Steps<PackStreamValue> {
    if (like === bytesLike || like === 0x80) {
      const from = this.#take(count);
      const packedBytes = this.#bytes.subarray(from, from + count);
      return like === 0x80 ? utf8(packedBytes) : packedBytes;
    }
    const isOfPairs = like === 0xa0;
    // Each value takes a byte at least: a count that can't be true costs nothing.
    if (this.#bytes.length - this.at < (isOfPairs ? 2 * count : count)) throw malformedError('it ends within a value');
    if (isOfPairs) return yield* this.#map(count, depth);
    const tag = like === 0xb0 ? this.#bytes[this.#take(1)]! : null;
    const values: PackStreamValue[] = [];
    for (let i = 0; i < count; i++) values.push(yield* this.value(depth + 1));
    return tag === null ? values : new PackStreamStructure(tag, values);
  }

  *#map(count: number, depth: number): Steps<PackStreamMap> {
    const map = new Map<string, PackStreamValue>();
    for (let i = 0; i < count; i++) {
      const key = yield* this.value(depth + 1);
      if (typeof key !== 'string') throw malformedError('a key of a map is not a text');
      if (map.has(key)) throw malformedError(`a map has the key ${JSON.stringify(key.slice(0, 100))} twice`);
      map.set(key, yield* this.value(depth + 1));
    }
    return map;
  }

  #count(width: number): number {
    return this.#bytes.readUIntBE(this.#take(width), width);
  }

  #take(length: number): number {
    const from = this.at;
    if (this.#bytes.length - from < length) throw malformedError('it ends within a value');
    this.at = from + length;
    return from;
  }
}

const bytesLike = 0xcc;
const countedMarkers: ReadonlyMap<number, { readonly like: number; readonly width: number }> = new Map(
  (
    [
      [bytesLike, bytesLike],
      [0xd0, 0x80],
      [0xd4, 0x90],
      [0xd8, 0xa0],
    ] as const
  ).flatMap(([first, like]) => [1, 2, 4].map((width, i) => [first + i, { like, width }] as const)),
);

const malformedError = (what: string): ServiceError => new ServiceError('REL_INVALID', `malformed PackStream: ${what}`);

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

  structure(tag: number, fields: number): void {
    this.#bytes[this.#room(2)] = 0xb0 | fields;
    this.#bytes[this.#length - 1] = tag;
  }

  list(count: number): void {
    this.#head(0x90, 0xd4, count);
  }

  value(value: PackStreamValue): void {
    if (value === null) this.#byte(0xc0);
    else if (typeof value === 'string') this.#text(value);
    else if (typeof value === 'bigint') this.#integer(value);
    else if (typeof value === 'number') {
      this.#byte(0xc1);
      this.#bytes.writeDoubleBE(value, this.#room(8));
    } else if (typeof value === 'boolean') this.#byte(value ? 0xc3 : 0xc2);
    else if (value instanceof Uint8Array) {
      this.#writeSize(bytesLike, value.length);
      this.#bytes.set(value, this.#room(value.length));
    } else if (value instanceof PackStreamStructure) {
      this.structure(value.tag, value.fields.length);
      for (const field of value.fields) this.value(field);
    } else if (isMap(value)) {
      this.#head(0xa0, 0xd8, value.size);
      for (const [key, member] of value) {
        this.#text(key);
        this.value(member);
      }
    } else {
      this.list(value.length);
      for (const each of value) this.value(each);
    }
  }

  #text(text: string): void {
    const length = Buffer.byteLength(text);
    this.#head(0x80, 0xd0, length);
    this.#bytes.write(text, this.#room(length));
  }

  #integer(value: bigint): void {
    if (value >= -16n && value < 128n) return this.#byte(Number(value) & 0xff);
    if (value >= -0x80n && value < 0x80n) {
      this.#byte(0xc8);
      this.#bytes.writeInt8(Number(value), this.#room(1));
    } else if (value >= -0x8000n && value < 0x8000n) {
      this.#byte(0xc9);
      this.#bytes.writeInt16BE(Number(value), this.#room(2));
    } else if (value >= -0x80000000n && value < 0x80000000n) {
      this.#byte(0xca);
      this.#bytes.writeInt32BE(Number(value), this.#room(4));
    } else {
      this.#byte(0xcb);
      this.#bytes.writeBigInt64BE(value, this.#room(8));
    }
  }

  #head(tiny: number, counted: number, count: number): void {
    if (count < 16) this.#byte(tiny | count);
    else this.#writeSize(counted, count);
  }

  #writeSize(first: number, count: number): void {
    const [sizeMarker, width] = count < 0x100 ? ([0, 1] as const) : count < 0x10000 ? ([1, 2] as const) : ([2, 4] as const);
    this.#byte(first + sizeMarker);
    this.#bytes.writeUIntBE(count, this.#room(width), width);
  }

  #byte(byte: number): void {
    this.#bytes[this.#room(1)] = byte;
  }

  /** Makes room for so many bytes; returns their offset. */
  #room(length: number): number {
    const from = this.#length;
    this.#length += length;
    if (this.#length > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(this.#length, this.#bytes.length * 2));
      this.#bytes.copy(grown, 0, 0, from);
      this.#bytes = grown;
    }
    return from;
  }
}
