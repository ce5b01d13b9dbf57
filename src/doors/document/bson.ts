/**
 * BSON and documents, both ways. Lengths and depth are checked before anything is made of what they say; where a document has a name
 * twice, the last one counts. Reading and writing are steps, since a document may be long. Pure.
 */
import { isUtf8 } from 'node:buffer';
import { Decimal128 } from 'bson';
import { allAtOnce, type Steps } from '../../planner/expressions/resumable-steps.ts';
import { Pace } from '../../planner/expressions/documents/document-json.ts';
import { doubleValue, isInt32 } from '../../planner/expressions/documents/document-numbers.ts';
import {
  asSpecial,
  Decimal,
  depthMax,
  Double,
  isList,
  Special,
  type Stored,
  type StoredObject,
} from '../../planner/expressions/documents/document-values.ts';
import { DocumentRefusal } from './errors.ts';

const malformedError = (what = 'malformed BSON'): DocumentRefusal => new DocumentRefusal(22, what);
const tooDeep = (): DocumentRefusal => new DocumentRefusal(15, `a document is at most ${depthMax} levels deep`);

/** The bytes of an empty document. */
export const documentBytesMin = 5;
/** Most bytes of a document, leaving room for its command, or for its place in a reply. */
export const documentBytesMax = 16_000_000;

interface Open {
  readonly values: Stored[] | Map<string, Stored>;
  readonly end: number;
  /** The name under which its parent has it. */
  readonly name: string;
  /** The code whose scope this is. */
  readonly code: string | null;
}

class Reader {
  readonly #bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  /** The end of the document that begins here; consumes its length. */
  open(limit: number): number {
    const { at } = this;
    if (at + documentBytesMin > limit) throw malformedError();
    const length = this.#bytes.readInt32LE(at);
    if (length < documentBytesMin || at + length > limit || this.#bytes[at + length - 1] !== 0) throw malformedError();
    this.at = at + 4;
    return at + length;
  }

  byte(limit: number): number {
    return this.#bytes[this.#take(1, limit)]!;
  }

  long(limit: number): bigint {
    return this.#bytes.readBigInt64LE(this.#take(8, limit));
  }

  /** By `toString`, because a strict TextDecoder allocates two bytes per character for any text. */
  #text(from: number, to: number): string {
    if (!isUtf8(this.#bytes.subarray(from, to))) throw malformedError('a text is not UTF-8');
    return this.#bytes.toString('utf8', from, to);
  }

  cString(limit: number): string {
    const end = this.#bytes.indexOf(0, this.at);
    if (end < 0 || end >= limit) throw malformedError();
    const text = this.#text(this.at, end);
    this.at = end + 1;
    return text;
  }

  /** Takes so many bytes, none of them beyond the document. */
  #take(bytes: number, limit: number): number {
    const { at } = this;
    if (bytes < 0 || at + bytes > limit) throw malformedError();
    this.at = at + bytes;
    return at;
  }

  string(limit: number): string {
    const length = this.#bytes.readInt32LE(this.#take(4, limit));
    if (length < 1) throw malformedError();
    const at = this.#take(length, limit);
    if (this.#bytes[at + length - 1] !== 0) throw malformedError();
    return this.#text(at, at + length - 1);
  }

  #hex(limit: number): string {
    const at = this.#take(12, limit);
    return this.#bytes.toString('hex', at, at + 12);
  }

  /** A value that holds no others. */
  scalar(type: number, limit: number): Stored {
    const bytes = this.#bytes;
    switch (type) {
      case 0x01:
        return doubleValue(bytes.readDoubleLE(this.#take(8, limit)));
      case 0x02:
        return this.string(limit);
      case 0x05: {
        const length = bytes.readInt32LE(this.#take(4, limit));
        const kind = this.byte(limit);
        const at = this.#take(length, limit);
        return new Special('$binary', { bytes: Buffer.from(bytes.subarray(at, at + length)), type: kind });
      }
      case 0x06:
        return new Special('$undefined', true);
      case 0x07:
        return new Special('$oid', this.#hex(limit));
      case 0x08: {
        const byte = this.byte(limit);
        if (byte > 1) throw malformedError(`a boolean is 0 or 1, not ${byte}`);
        return byte === 1;
      }
      case 0x09:
        return new Special('$date', this.long(limit));
      case 0x0a:
        return null;
      case 0x0b:
        return new Special('$regularExpression', { pattern: this.cString(limit), options: this.cString(limit) });
      case 0x0c:
        return new Special('$dbPointer', { ref: this.string(limit), oid: this.#hex(limit) });
      case 0x0d:
        return new Special('$code', this.string(limit));
      case 0x0e:
        return new Special('$symbol', this.string(limit));
      case 0x10:
        return bytes.readInt32LE(this.#take(4, limit));
      case 0x11:
        return new Special('$timestamp', BigInt.asUintN(64, this.long(limit)));
      case 0x12:
        return this.long(limit);
      case 0x13: {
        const at = this.#take(16, limit);
        return Decimal.parse(new Decimal128(Uint8Array.from(bytes.subarray(at, at + 16))).toString())!;
      }
      case 0xff:
        return new Special('$minKey', 1);
      case 0x7f:
        return new Special('$maxKey', 1);
    }
    throw malformedError(`Unrecognized BSON type 0x${type.toString(16).padStart(2, '0')}`);
  }
}

/** The end of the document that begins at an offset. */
export function documentEnd(bytes: Buffer, at: number, limit = bytes.length): number {
  return new Reader(bytes, at).open(limit);
}

/** The document that begins there. */
export function* readSteps(bytes: Buffer, from = 0): Steps<StoredObject> {
  const reader = new Reader(bytes, from);
  const pace = new Pace();
  const open: Open[] = [{ values: new Map(), end: reader.open(bytes.length), name: '', code: null }];
  for (;;) {
    if (pace.spend()) yield;
    const around = open.at(-1)!;
    const limit = around.end - 1;
    if (reader.at < limit) {
      const type = reader.byte(limit);
      const name = reader.cString(limit);
      if (type === 0x03 || type === 0x04 || type === 0x0f) {
        if (open.length > depthMax) throw tooDeep();
        if (type === 0x0f) open.push(openScopedCode(reader, name, limit));
        else open.push({ values: type === 0x03 ? new Map() : [], end: reader.open(limit), name, code: null });
      } else put(around, name, reader.scalar(type, limit));
      continue;
    }
    if (reader.at !== limit) throw malformedError();
    reader.at = around.end;
    open.pop();
    const { values, name, code } = around;
    const outer = open.at(-1);
    if (outer === undefined) return values as StoredObject;
    put(outer, name, code === null ? values : new Special('$scope', { code, scope: values as StoredObject }));
  }
}

function openScopedCode(reader: Reader, name: string, limit: number): Open {
  const { at } = reader;
  // The least of it: its length, an empty text, an empty document.
  const end = reader.open(limit);
  const code = reader.string(end);
  const scopeEnd = reader.open(end);
  if (scopeEnd !== end || end - at < 14) throw malformedError();
  return { values: new Map(), end, name, code };
}

function put({ values }: Open, name: string, bsonValue: Stored): void {
  if (values instanceof Map) values.set(name, bsonValue);
  else values.push(bsonValue);
}

export function readDocument(bytes: Buffer, at = 0): { readonly document: StoredObject; readonly end: number } {
  return { document: allAtOnce(readSteps(bytes, at)), end: documentEnd(bytes, at) };
}

/** A document, or a list, that is BSON already. */
export class Encoded {
  readonly bytes: Buffer;
  readonly type: 0x03 | 0x04;

  constructor(bytes: Buffer, type: Encoded['type'] = 0x03) {
    this.bytes = bytes;
    this.type = type;
  }
}

/** A document, or members that are named in the code. */
export type Writable = Stored | Encoded | readonly Writable[] | WritableObject;
export interface Members {
  readonly [name: string]: Writable;
}
export type WritableObject = StoredObject | Members;

function isWritableList(value: Writable): value is readonly Writable[] {
  return isList(value);
}

/** `headBytes` are left free in front of the document, for the caller's header. */
export const writeDocument = (document: WritableObject, headBytes = 0): Buffer => allAtOnce(writeSteps(document, headBytes));

export function* listSteps(values: readonly Stored[]): Steps<Encoded> {
  return new Encoded(yield* writeSteps(values), 0x04);
}

export function* writeSteps(document: WritableObject | readonly Writable[], headBytes = 0): Steps<Buffer> {
  const writer = new Writer(headBytes);
  const pace = new Pace();
  const open = [writer.open(document)];
  for (;;) {
    if (pace.spend()) yield;
    const around = open.at(-1)!;
    const next = around.members.next();
    if (next.done === true) {
      writer.close(around.starts);
      open.pop();
      if (open.length === 0) return writer.take();
      continue;
    }
    const inner = writer.member(next.value[0], next.value[1]);
    if (inner !== null) open.push(inner);
  }
}

interface Writing {
  readonly members: Iterator<readonly [string, Writable]>;
  /** Offsets of the lengths to fill in at the end of each document. */
  readonly starts: readonly number[];
}

function membersOf(value: WritableObject | readonly Writable[]): Iterator<readonly [string, Writable]> {
  if (isWritableList(value)) return elements(value);
  return value instanceof Map ? value.entries() : Object.entries(value).values();
}

function* elements(values: readonly Writable[]): Generator<readonly [string, Writable], undefined, undefined> {
  for (let i = 0; i < values.length; i++) yield [String(i), values[i]!];
  return undefined;
}

class Writer {
  #bytes = Buffer.allocUnsafe(512);
  #at: number;

  constructor(headBytes: number) {
    this.#at = headBytes;
  }

  take(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  open(value: WritableObject | readonly Writable[]): Writing {
    return { members: membersOf(value), starts: [this.#start()] };
  }

  close(starts: readonly number[]): void {
    this.#byte(0);
    for (const start of starts) this.#bytes.writeInt32LE(this.#at - start, start);
  }

  #start(): number {
    this.#room(4);
    this.#at += 4;
    return this.#at - 4;
  }

  /** Writes a member; returns the rest to write within it, or null. */
  member(name: string, value: Writable): Writing | null {
    const start = this.#at;
    this.#byte(0);
    this.#cString(name);
    const type = this.#value(value);
    if (typeof type === 'number') {
      this.#bytes[start] = type;
      return null;
    }
    this.#bytes[start] = type.type;
    return type;
  }

  /** Writes it, and tells its type; of what holds others, only its beginning. */
  #value(value: Writable): number | (Writing & { readonly type: number }) {
    if (value === null) return 0x0a;
    if (typeof value === 'string') return this.#string(value, 0x02);
    if (typeof value === 'boolean') return this.#byte(value ? 1 : 0, 0x08);
    if (typeof value === 'number') return isInt32(value) ? this.#int(value) : this.#double(value);
    if (typeof value === 'bigint') return this.#long(value, 0x12);
    if (value instanceof Encoded) return this.#raw(value.bytes, value.type);
    if (value instanceof Double) return this.#double(value.value);
    if (value instanceof Decimal) return this.#raw(Decimal128.fromString(value.text).bytes, 0x13);
    if (isWritableList(value)) return { type: 0x04, ...this.open(value) };
    if (!(value instanceof Special)) return { type: 0x03, ...this.open(value) };
    const scoped = asSpecial(value, '$scope');
    if (scoped === null) return this.#special(value);
    const whole = this.#start();
    this.#string(scoped.code, 0);
    const { members, starts } = this.open(scoped.scope);
    return { type: 0x0f, members, starts: [...starts, whole] };
  }

  #special(value: Special): number {
    if (value.is('$oid')) return this.#raw(Buffer.from(value.inner, 'hex'), 0x07);
    if (value.is('$date')) return this.#long(value.inner, 0x09);
    if (value.is('$timestamp')) return this.#long(value.inner, 0x11);
    if (value.is('$code')) return this.#string(value.inner, 0x0d);
    if (value.is('$symbol')) return this.#string(value.inner, 0x0e);
    if (value.is('$undefined')) return 0x06;
    if (value.is('$minKey')) return 0xff;
    if (value.is('$binary')) {
      const { bytes, type } = value.inner;
      this.#int(bytes.length);
      this.#byte(type);
      return this.#raw(bytes, 0x05);
    }
    if (value.is('$regularExpression')) {
      this.#cString(value.inner.pattern);
      this.#cString(value.inner.options);
      return 0x0b;
    }
    if (value.is('$dbPointer')) {
      this.#string(value.inner.ref, 0);
      return this.#raw(Buffer.from(value.inner.oid, 'hex'), 0x0c);
    }
    return 0x7f;
  }

  #int(value: number): number {
    this.#room(4);
    this.#at = this.#bytes.writeInt32LE(value, this.#at);
    return 0x10;
  }

  #double(value: number): number {
    this.#room(8);
    // One NaN: bits that a number does not tell apart are lost where a document is stored, and equal documents are equal bytes.
    this.#at = this.#bytes.writeDoubleLE(Number.isNaN(value) ? Number.NaN : value, this.#at);
    return 0x01;
  }

  #long(value: bigint, type: number): number {
    this.#room(8);
    this.#at = this.#bytes.writeBigInt64LE(BigInt.asIntN(64, value), this.#at);
    return type;
  }

  #raw(bytes: Uint8Array, type: number): number {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
    return type;
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
    // A large piece is mostly the last one: doubling the buffer would copy more for nothing.
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#at + bytes + 512));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}
