/**
 * BSON and documents as they are stored, both ways. Lengths and depth are checked before anything is made of what they say; where a
 * document has a name twice, the last one counts. Pure.
 */
import { isUtf8 } from 'node:buffer';
import { Decimal128 } from 'bson';
import { ServiceError } from '../../errors.ts';
import {
  bytesOf,
  milliseconds,
  type Stored,
  type StoredObject,
  timestampOf,
  wrapperNames,
  wrapperOf,
} from '../../planner/documents/values.ts';
import { depthMax } from '../../planner/documents/filter.ts';
import { DocumentRefusal } from './errors.ts';

const malformed = (what = 'malformed BSON'): ServiceError => new ServiceError('REL_INVALID', what);

/** What is well-formed and nested further is refused by its command: the connection goes on. */
const tooDeep = (): DocumentRefusal => new DocumentRefusal(15, `a document is at most ${depthMax} levels deep`);

/** So many bytes at least has a document. */
export const documentBytesMin = 5;
/** What a document and its command, or its place in a reply, may be at most. */
export const documentBytesMax = 16_000_000;

/** The document that begins there; its length says where it ends. */
export function readDocument(bytes: Buffer, at = 0): { readonly document: StoredObject; readonly end: number } {
  const end = endOf(bytes, at, bytes.length);
  const reader = { bytes, at: at + 4 };
  const document = members(reader, end, 0) as StoredObject;
  return { document, end };
}

interface Reader {
  readonly bytes: Buffer;
  at: number;
}

function endOf(bytes: Buffer, at: number, limit: number): number {
  if (at + documentBytesMin > limit) throw malformed();
  const length = bytes.readInt32LE(at);
  if (length < documentBytesMin || at + length > limit || bytes[at + length - 1] !== 0) throw malformed();
  return at + length;
}

function members(reader: Reader, end: number, depth: number): Record<string, Stored> {
  if (depth > depthMax) throw tooDeep();
  const object: Record<string, Stored> = {};
  while (reader.at < end - 1) {
    const type = reader.bytes[reader.at++]!;
    const name = cString(reader, end);
    if (wrapperNames.has(name)) throw malformed(`${name} is no name of a field, and no operator`);
    const value = valueOf(reader, type, end, depth);
    // A plain assignment would take `__proto__` for something else.
    if (name === '__proto__')
      Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
    else object[name] = value;
  }
  if (reader.at !== end - 1) throw malformed();
  reader.at = end;
  return object;
}

function list(reader: Reader, end: number, depth: number): Stored[] {
  if (depth > depthMax) throw tooDeep();
  const values: Stored[] = [];
  while (reader.at < end - 1) {
    const type = reader.bytes[reader.at++]!;
    cString(reader, end);
    values.push(valueOf(reader, type, end, depth));
  }
  if (reader.at !== end - 1) throw malformed();
  reader.at = end;
  return values;
}

/** By `toString`, since a strict TextDecoder makes two bytes a character of whatever it reads. */
function textIn(bytes: Buffer, from: number, to: number): string {
  if (!isUtf8(bytes.subarray(from, to))) throw malformed('a text is not UTF-8');
  return bytes.toString('utf8', from, to);
}

function cString(reader: Reader, limit: number): string {
  const end = reader.bytes.indexOf(0, reader.at);
  if (end < 0 || end >= limit) throw malformed();
  const text = textIn(reader.bytes, reader.at, end);
  reader.at = end + 1;
  return text;
}

/** So many bytes, none of them beyond the document. */
function taken(reader: Reader, bytes: number, limit: number): number {
  const at = reader.at;
  if (bytes < 0 || at + bytes > limit) throw malformed();
  reader.at = at + bytes;
  return at;
}

function string(reader: Reader, limit: number): string {
  const length = reader.bytes.readInt32LE(taken(reader, 4, limit));
  if (length < 1) throw malformed();
  const at = taken(reader, length, limit);
  if (reader.bytes[at + length - 1] !== 0) throw malformed();
  return textIn(reader.bytes, at, at + length - 1);
}

function valueOf(reader: Reader, type: number, end: number, depth: number): Stored {
  const { bytes } = reader;
  const limit = end - 1;
  switch (type) {
    case 0x01:
      return doubleValue(bytes.readDoubleLE(taken(reader, 8, limit)));
    case 0x02:
      return string(reader, limit);
    case 0x03:
    case 0x04: {
      const innerEnd = endOf(bytes, reader.at, limit);
      reader.at += 4;
      return type === 0x03 ? members(reader, innerEnd, depth + 1) : list(reader, innerEnd, depth + 1);
    }
    case 0x05: {
      const length = bytes.readInt32LE(taken(reader, 4, limit));
      const subType = bytes[taken(reader, 1, limit)]!;
      const at = taken(reader, length, limit);
      return { $binary: { base64: bytes.toString('base64', at, at + length), subType: hex(subType) } };
    }
    case 0x06:
      return { $undefined: true };
    case 0x07: {
      const at = taken(reader, 12, limit);
      return { $oid: bytes.toString('hex', at, at + 12) };
    }
    case 0x08: {
      const byte = bytes[taken(reader, 1, limit)]!;
      if (byte > 1) throw malformed();
      return byte === 1;
    }
    case 0x09:
      return { $date: { $numberLong: String(bytes.readBigInt64LE(taken(reader, 8, limit))) } };
    case 0x0a:
      return null;
    case 0x0b: {
      const pattern = cString(reader, limit);
      return { $regularExpression: { pattern, options: cString(reader, limit) } };
    }
    case 0x0d:
      return { $code: string(reader, limit) };
    case 0x0e:
      return { $symbol: string(reader, limit) };
    case 0x10:
      return bytes.readInt32LE(taken(reader, 4, limit));
    case 0x11: {
      const at = taken(reader, 8, limit);
      return { $timestamp: { t: bytes.readUInt32LE(at + 4), i: bytes.readUInt32LE(at) } };
    }
    case 0x12:
      return { $numberLong: String(bytes.readBigInt64LE(taken(reader, 8, limit))) };
    case 0x13: {
      const at = taken(reader, 16, limit);
      return { $numberDecimal: new Decimal128(Uint8Array.from(bytes.subarray(at, at + 16))).toString() };
    }
    case 0xff:
      return { $minKey: 1 };
    case 0x7f:
      return { $maxKey: 1 };
  }
  throw malformed(`a value of BSON type 0x${hex(type)} is not taken`);
}

const hex = (byte: number): string => byte.toString(16).padStart(2, '0');

/** A double stands bare where JSON does not take it for a whole number of 32 bits. */
export function doubleValue(value: number): Stored {
  if (Number.isFinite(value) && !Number.isInteger(value)) return value;
  return { $numberDouble: Object.is(value, -0) ? '-0.0' : Number.isInteger(value) ? wholeText(value) : String(value) };
}

const wholeText = (value: number): string => (/e/.test(String(value)) ? String(value) : `${value}.0`);

/** A document that is BSON already. */
export class Encoded {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }
}

export type Writable = Stored | Encoded | readonly Writable[] | WritableObject;
export interface WritableObject {
  readonly [name: string]: Writable;
}

export function writeDocument(document: WritableObject): Buffer {
  const writer = new Writer();
  writer.document(document);
  return writer.take();
}

function isWritableList(value: Writable): value is readonly Writable[] {
  return Array.isArray(value);
}

class Writer {
  #bytes = Buffer.allocUnsafe(512);
  #at = 0;

  take(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  document(value: WritableObject | readonly Writable[]): void {
    const start = this.#at;
    this.#room(4);
    this.#at += 4;
    if (isWritableList(value)) for (const [i, each] of value.entries()) this.#member(String(i), each);
    else for (const name of Object.keys(value)) this.#member(name, value[name]!);
    this.#byte(0);
    this.#bytes.writeInt32LE(this.#at - start, start);
  }

  #member(name: string, value: Writable): void {
    const start = this.#at;
    this.#byte(0);
    this.#cString(name);
    const type = this.#value(value);
    this.#bytes[start] = type;
  }

  /** Writes it, and tells its type. */
  #value(value: Writable): number {
    if (value === null) return 0x0a;
    if (value instanceof Encoded) {
      this.#room(value.bytes.length);
      this.#bytes.set(value.bytes, this.#at);
      this.#at += value.bytes.length;
      return 0x03;
    }
    if (typeof value === 'string') return this.#string(value, 0x02);
    if (typeof value === 'boolean') return this.#byte(value ? 1 : 0, 0x08);
    if (typeof value === 'number') return this.#number(value);
    if (isWritableList(value)) {
      this.document(value);
      return 0x04;
    }
    // What is no value of JSON holds a document, and is in no disguise.
    const wrapper = wrapperOf(value as StoredObject);
    if (wrapper === null) {
      this.document(value);
      return 0x03;
    }
    return this.#wrapped(wrapper, value[wrapper] as Stored, value as StoredObject);
  }

  #wrapped(wrapper: string, inner: Stored, value: StoredObject): number {
    switch (wrapper) {
      case '$numberInt':
        return this.#number(Number(inner));
      case '$numberLong':
        return this.#long(BigInt.asIntN(64, BigInt(inner as string)), 0x12);
      case '$numberDouble':
        return this.#double(Number(inner));
      case '$numberDecimal':
        return this.#decimal(inner as string);
      case '$oid':
        this.#room(12);
        this.#at += this.#bytes.write(inner as string, this.#at, 'hex');
        return 0x07;
      case '$date':
        return this.#long(BigInt.asIntN(64, milliseconds(value)), 0x09);
      case '$timestamp':
        return this.#long(BigInt.asIntN(64, timestampOf(value)), 0x11);
      case '$binary': {
        const { bytes, type } = bytesOf(value);
        this.#room(5 + bytes.length);
        this.#at = this.#bytes.writeInt32LE(bytes.length, this.#at);
        this.#bytes[this.#at++] = type;
        this.#bytes.set(bytes, this.#at);
        this.#at += bytes.length;
        return 0x05;
      }
      case '$regularExpression': {
        const { pattern, options } = inner as { pattern: string; options: string };
        this.#cString(pattern);
        this.#cString(options);
        return 0x0b;
      }
      case '$code':
        return this.#string(inner as string, 0x0d);
      case '$symbol':
        return this.#string(inner as string, 0x0e);
      case '$undefined':
        return 0x06;
      case '$minKey':
        return 0xff;
      default:
        return 0x7f;
    }
  }

  #number(value: number): number {
    if (!Number.isInteger(value) || value !== (value | 0) || Object.is(value, -0)) return this.#double(value);
    this.#room(4);
    this.#at = this.#bytes.writeInt32LE(value, this.#at);
    return 0x10;
  }

  #double(value: number): number {
    this.#room(8);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
    return 0x01;
  }

  #long(value: bigint, type: number): number {
    this.#room(8);
    this.#at = this.#bytes.writeBigInt64LE(value, this.#at);
    return type;
  }

  /** What another door wrote may say that it is one, and be none. */
  #decimal(text: string): number {
    let bytes: Uint8Array;
    try {
      ({ bytes } = Decimal128.fromString(text));
    } catch {
      return this.#string(text, 0x02);
    }
    this.#room(16);
    this.#bytes.set(bytes, this.#at);
    this.#at += 16;
    return 0x13;
  }

  #string(text: string, type: number): number {
    const length = Buffer.byteLength(text);
    this.#room(length + 5);
    this.#at = this.#bytes.writeInt32LE(length + 1, this.#at);
    this.#at += this.#bytes.write(text, this.#at);
    this.#bytes[this.#at++] = 0;
    return type;
  }

  /** A NUL would end it: what another door wrote is cut there. */
  #cString(text: string): void {
    const end = text.indexOf('\0');
    const kept = end < 0 ? text : text.slice(0, end);
    this.#room(kept.length * 3 + 1);
    this.#at += this.#bytes.write(kept, this.#at);
    this.#bytes[this.#at++] = 0;
  }

  #byte(byte: number, type = 0): number {
    this.#room(1);
    this.#bytes[this.#at++] = byte;
    return type;
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#at + bytes));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}
