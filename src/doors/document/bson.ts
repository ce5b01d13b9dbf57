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

const malformedBson = (malformation = 'malformed BSON'): DocumentRefusal => new DocumentRefusal(22, malformation);
const bsonTooDeep = (): DocumentRefusal => new DocumentRefusal(15, `a document is at most ${depthMax} levels deep`);

/** The bytes of an empty document. */
export const documentBytesMin = 5;
/** Most bytes of a document, leaving room for its command, or for its place in a reply. */
export const documentBytesMax = 16_000_000;

interface OpenBsonValue {
  readonly values: Stored[] | Map<string, Stored>;
  readonly end: number;
  /** The name under which its parent has it. */
  readonly name: string;
  /** The code whose scope this is. */
  readonly code: string | null;
}

class BsonReader {
  readonly #bsonBytes: Buffer;
  at: number;

  constructor(bsonBytes: Buffer, bsonOffset: number) {
    this.#bsonBytes = bsonBytes;
    this.at = bsonOffset;
  }

  /** The end of the document that begins here; consumes its length. */
  open(outerEnd: number): number {
    const { at: documentStart } = this;
    if (documentStart + documentBytesMin > outerEnd) throw malformedBson();
    const documentLength = this.#bsonBytes.readInt32LE(documentStart);
    if (
      documentLength < documentBytesMin ||
      documentStart + documentLength > outerEnd ||
      this.#bsonBytes[documentStart + documentLength - 1] !== 0
    )
      throw malformedBson();
    this.at = documentStart + 4;
    return documentStart + documentLength;
  }

  byte(outerEnd: number): number {
    return this.#bsonBytes[this.#takeBsonBytes(1, outerEnd)]!;
  }

  long(outerEnd: number): bigint {
    return this.#bsonBytes.readBigInt64LE(this.#takeBsonBytes(8, outerEnd));
  }

  /** By `toString`, because a strict TextDecoder allocates two bytes per character for any text. */
  #readBsonText(textStart: number, textEnd: number): string {
    if (!isUtf8(this.#bsonBytes.subarray(textStart, textEnd))) throw malformedBson('a text is not UTF-8');
    return this.#bsonBytes.toString('utf8', textStart, textEnd);
  }

  cString(outerEnd: number): string {
    const terminatorOffset = this.#bsonBytes.indexOf(0, this.at);
    if (terminatorOffset < 0 || terminatorOffset >= outerEnd) throw malformedBson();
    const cStringText = this.#readBsonText(this.at, terminatorOffset);
    this.at = terminatorOffset + 1;
    return cStringText;
  }

  /** Takes so many bytes, none of them beyond the document. */
  #takeBsonBytes(byteCount: number, outerEnd: number): number {
    const { at: takenOffset } = this;
    if (byteCount < 0 || takenOffset + byteCount > outerEnd) throw malformedBson();
    this.at = takenOffset + byteCount;
    return takenOffset;
  }

  string(outerEnd: number): string {
    const stringLength = this.#bsonBytes.readInt32LE(this.#takeBsonBytes(4, outerEnd));
    if (stringLength < 1) throw malformedBson();
    const stringOffset = this.#takeBsonBytes(stringLength, outerEnd);
    if (this.#bsonBytes[stringOffset + stringLength - 1] !== 0) throw malformedBson();
    return this.#readBsonText(stringOffset, stringOffset + stringLength - 1);
  }

  #readObjectIdHex(outerEnd: number): string {
    const objectIdOffset = this.#takeBsonBytes(12, outerEnd);
    return this.#bsonBytes.toString('hex', objectIdOffset, objectIdOffset + 12);
  }

  /** A value that holds no others. */
  scalar(bsonType: number, outerEnd: number): Stored {
    const bsonBytes = this.#bsonBytes;
    switch (bsonType) {
      case 0x01:
        return doubleValue(bsonBytes.readDoubleLE(this.#takeBsonBytes(8, outerEnd)));
      case 0x02:
        return this.string(outerEnd);
      case 0x05: {
        const binaryLength = bsonBytes.readInt32LE(this.#takeBsonBytes(4, outerEnd));
        const binarySubtype = this.byte(outerEnd);
        const payloadOffset = this.#takeBsonBytes(binaryLength, outerEnd);
        return new Special('$binary', {
          bytes: Buffer.from(bsonBytes.subarray(payloadOffset, payloadOffset + binaryLength)),
          type: binarySubtype,
        });
      }
      case 0x06:
        return new Special('$undefined', true);
      case 0x07:
        return new Special('$oid', this.#readObjectIdHex(outerEnd));
      case 0x08: {
        const booleanByte = this.byte(outerEnd);
        if (booleanByte > 1) throw malformedBson(`a boolean is 0 or 1, not ${booleanByte}`);
        return booleanByte === 1;
      }
      case 0x09:
        return new Special('$date', this.long(outerEnd));
      case 0x0a:
        return null;
      case 0x0b:
        return new Special('$regularExpression', { pattern: this.cString(outerEnd), options: this.cString(outerEnd) });
      case 0x0c:
        return new Special('$dbPointer', { ref: this.string(outerEnd), oid: this.#readObjectIdHex(outerEnd) });
      case 0x0d:
        return new Special('$code', this.string(outerEnd));
      case 0x0e:
        return new Special('$symbol', this.string(outerEnd));
      case 0x10:
        return bsonBytes.readInt32LE(this.#takeBsonBytes(4, outerEnd));
      case 0x11:
        return new Special('$timestamp', BigInt.asUintN(64, this.long(outerEnd)));
      case 0x12:
        return this.long(outerEnd);
      case 0x13: {
        const payloadOffset = this.#takeBsonBytes(16, outerEnd);
        return Decimal.parse(new Decimal128(Uint8Array.from(bsonBytes.subarray(payloadOffset, payloadOffset + 16))).toString())!;
      }
      case 0xff:
        return new Special('$minKey', 1);
      case 0x7f:
        return new Special('$maxKey', 1);
    }
    throw malformedBson(`Unrecognized BSON type 0x${bsonType.toString(16).padStart(2, '0')}`);
  }
}

/** The end of the document that begins at an offset. */
export function documentEnd(bsonBytes: Buffer, documentStart: number, bsonEnd = bsonBytes.length): number {
  return new BsonReader(bsonBytes, documentStart).open(bsonEnd);
}

/** The document that begins there. */
export function* readSteps(bsonBytes: Buffer, documentStart = 0): Steps<StoredObject> {
  const bsonReader = new BsonReader(bsonBytes, documentStart);
  const readPace = new Pace();
  const openBsonValues: OpenBsonValue[] = [{ values: new Map(), end: bsonReader.open(bsonBytes.length), name: '', code: null }];
  for (;;) {
    if (readPace.spend()) yield;
    const openBsonValue = openBsonValues.at(-1)!;
    const bsonValueEnd = openBsonValue.end - 1;
    if (bsonReader.at < bsonValueEnd) {
      const bsonType = bsonReader.byte(bsonValueEnd);
      const bsonFieldName = bsonReader.cString(bsonValueEnd);
      if (bsonType === 0x03 || bsonType === 0x04 || bsonType === 0x0f) {
        if (openBsonValues.length > depthMax) throw bsonTooDeep();
        if (bsonType === 0x0f) openBsonValues.push(openBsonScopedCode(bsonReader, bsonFieldName, bsonValueEnd));
        else
          openBsonValues.push({
            values: bsonType === 0x03 ? new Map() : [],
            end: bsonReader.open(bsonValueEnd),
            name: bsonFieldName,
            code: null,
          });
      } else putBsonMember(openBsonValue, bsonFieldName, bsonReader.scalar(bsonType, bsonValueEnd));
      continue;
    }
    if (bsonReader.at !== bsonValueEnd) throw malformedBson();
    bsonReader.at = openBsonValue.end;
    openBsonValues.pop();
    const { values: bsonMembers, name, code: scopedCode } = openBsonValue;
    const outerBsonValue = openBsonValues.at(-1);
    if (outerBsonValue === undefined) return bsonMembers as StoredObject;
    putBsonMember(
      outerBsonValue,
      name,
      scopedCode === null ? bsonMembers : new Special('$scope', { code: scopedCode, scope: bsonMembers as StoredObject }),
    );
  }
}

function openBsonScopedCode(bsonReader: BsonReader, bsonFieldName: string, outerEnd: number): OpenBsonValue {
  const { at: scopedCodeStart } = bsonReader;
  // The least of it: its length, an empty text, an empty document.
  const scopedCodeEnd = bsonReader.open(outerEnd);
  const scopedCode = bsonReader.string(scopedCodeEnd);
  const scopeEnd = bsonReader.open(scopedCodeEnd);
  if (scopeEnd !== scopedCodeEnd || scopedCodeEnd - scopedCodeStart < 14) throw malformedBson();
  return { values: new Map(), end: scopedCodeEnd, name: bsonFieldName, code: scopedCode };
}

function putBsonMember({ values: bsonMembers }: OpenBsonValue, bsonFieldName: string, bsonValue: Stored): void {
  if (bsonMembers instanceof Map) bsonMembers.set(bsonFieldName, bsonValue);
  else bsonMembers.push(bsonValue);
}

export function readDocument(bsonBytes: Buffer, documentStart = 0): { readonly document: StoredObject; readonly end: number } {
  return { document: allAtOnce(readSteps(bsonBytes, documentStart)), end: documentEnd(bsonBytes, documentStart) };
}

/** A document, or a list, that is BSON already. */
export class Encoded {
  readonly bytes: Buffer;
  readonly type: 0x03 | 0x04;

  constructor(bsonBytes: Buffer, bsonType: Encoded['type'] = 0x03) {
    this.bytes = bsonBytes;
    this.type = bsonType;
  }
}

/** A document, or members that are named in the code. */
export type Writable = Stored | Encoded | readonly Writable[] | WritableObject;
export interface Members {
  readonly [name: string]: Writable;
}
export type WritableObject = StoredObject | Members;

function isWritableList(bsonValue: Writable): bsonValue is readonly Writable[] {
  return isList(bsonValue);
}

/** `wireHeadBytes` are left free in front of the document, for the caller's header. */
export const writeDocument = (bsonDocument: WritableObject, wireHeadBytes = 0): Buffer =>
  allAtOnce(writeSteps(bsonDocument, wireHeadBytes));

export function* listSteps(listValues: readonly Stored[]): Steps<Encoded> {
  return new Encoded(yield* writeSteps(listValues), 0x04);
}

export function* writeSteps(bsonDocument: WritableObject | readonly Writable[], wireHeadBytes = 0): Steps<Buffer> {
  const bsonWriter = new BsonWriter(wireHeadBytes);
  const writePace = new Pace();
  const openBsonWrites = [bsonWriter.open(bsonDocument)];
  for (;;) {
    if (writePace.spend()) yield;
    const openBsonWrite = openBsonWrites.at(-1)!;
    const nextBsonMember = openBsonWrite.members.next();
    if (nextBsonMember.done === true) {
      bsonWriter.close(openBsonWrite.starts);
      openBsonWrites.pop();
      if (openBsonWrites.length === 0) return bsonWriter.take();
      continue;
    }
    const innerBsonWrite = bsonWriter.member(nextBsonMember.value[0], nextBsonMember.value[1]);
    if (innerBsonWrite !== null) openBsonWrites.push(innerBsonWrite);
  }
}

interface OpenBsonWrite {
  readonly members: Iterator<readonly [string, Writable]>;
  /** Offsets of the lengths to fill in at the end of each document. */
  readonly starts: readonly number[];
}

function bsonMembersOf(bsonContainer: WritableObject | readonly Writable[]): Iterator<readonly [string, Writable]> {
  if (isWritableList(bsonContainer)) return bsonElements(bsonContainer);
  return bsonContainer instanceof Map ? bsonContainer.entries() : Object.entries(bsonContainer).values();
}

function* bsonElements(bsonListValues: readonly Writable[]): Generator<readonly [string, Writable], undefined, undefined> {
  for (let i = 0; i < bsonListValues.length; i++) yield [String(i), bsonListValues[i]!];
  return undefined;
}

class BsonWriter {
  #bsonBuffer = Buffer.allocUnsafe(512);
  #bsonOffset: number;

  constructor(wireHeadBytes: number) {
    this.#bsonOffset = wireHeadBytes;
  }

  take(): Buffer {
    return this.#bsonBuffer.subarray(0, this.#bsonOffset);
  }

  open(bsonContainer: WritableObject | readonly Writable[]): OpenBsonWrite {
    return { members: bsonMembersOf(bsonContainer), starts: [this.#reserveLength()] };
  }

  close(lengthOffsets: readonly number[]): void {
    this.#writeBsonByte(0);
    for (const lengthOffset of lengthOffsets) this.#bsonBuffer.writeInt32LE(this.#bsonOffset - lengthOffset, lengthOffset);
  }

  #reserveLength(): number {
    this.#ensureBsonRoom(4);
    this.#bsonOffset += 4;
    return this.#bsonOffset - 4;
  }

  /** Writes a member; returns the rest to write within it, or null. */
  member(bsonFieldName: string, bsonValue: Writable): OpenBsonWrite | null {
    const typeOffset = this.#bsonOffset;
    this.#writeBsonByte(0);
    this.#writeCString(bsonFieldName);
    const bsonType = this.#writeBsonValue(bsonValue);
    if (typeof bsonType === 'number') {
      this.#bsonBuffer[typeOffset] = bsonType;
      return null;
    }
    this.#bsonBuffer[typeOffset] = bsonType.type;
    return bsonType;
  }

  /** Writes it, and tells its type; of what holds others, only its beginning. */
  #writeBsonValue(bsonValue: Writable): number | (OpenBsonWrite & { readonly type: number }) {
    if (bsonValue === null) return 0x0a;
    if (typeof bsonValue === 'string') return this.#writeBsonString(bsonValue, 0x02);
    if (typeof bsonValue === 'boolean') return this.#writeBsonByte(bsonValue ? 1 : 0, 0x08);
    if (typeof bsonValue === 'number') return isInt32(bsonValue) ? this.#writeInt32(bsonValue) : this.#writeDouble(bsonValue);
    if (typeof bsonValue === 'bigint') return this.#writeInt64(bsonValue, 0x12);
    if (bsonValue instanceof Encoded) return this.#writeRawBson(bsonValue.bytes, bsonValue.type);
    if (bsonValue instanceof Double) return this.#writeDouble(bsonValue.value);
    if (bsonValue instanceof Decimal) return this.#writeRawBson(Decimal128.fromString(bsonValue.text).bytes, 0x13);
    if (isWritableList(bsonValue)) return { type: 0x04, ...this.open(bsonValue) };
    if (!(bsonValue instanceof Special)) return { type: 0x03, ...this.open(bsonValue) };
    const scopedCode = asSpecial(bsonValue, '$scope');
    if (scopedCode === null) return this.#writeSpecialValue(bsonValue);
    const scopedCodeOffset = this.#reserveLength();
    this.#writeBsonString(scopedCode.code, 0);
    const { members, starts } = this.open(scopedCode.scope);
    return { type: 0x0f, members, starts: [...starts, scopedCodeOffset] };
  }

  #writeSpecialValue(specialValue: Special): number {
    if (specialValue.is('$oid')) return this.#writeRawBson(Buffer.from(specialValue.inner, 'hex'), 0x07);
    if (specialValue.is('$date')) return this.#writeInt64(specialValue.inner, 0x09);
    if (specialValue.is('$timestamp')) return this.#writeInt64(specialValue.inner, 0x11);
    if (specialValue.is('$code')) return this.#writeBsonString(specialValue.inner, 0x0d);
    if (specialValue.is('$symbol')) return this.#writeBsonString(specialValue.inner, 0x0e);
    if (specialValue.is('$undefined')) return 0x06;
    if (specialValue.is('$minKey')) return 0xff;
    if (specialValue.is('$binary')) {
      const { bytes: binaryBytes, type: binarySubtype } = specialValue.inner;
      this.#writeInt32(binaryBytes.length);
      this.#writeBsonByte(binarySubtype);
      return this.#writeRawBson(binaryBytes, 0x05);
    }
    if (specialValue.is('$regularExpression')) {
      this.#writeCString(specialValue.inner.pattern);
      this.#writeCString(specialValue.inner.options);
      return 0x0b;
    }
    if (specialValue.is('$dbPointer')) {
      this.#writeBsonString(specialValue.inner.ref, 0);
      return this.#writeRawBson(Buffer.from(specialValue.inner.oid, 'hex'), 0x0c);
    }
    return 0x7f;
  }

  #writeInt32(int32Value: number): number {
    this.#ensureBsonRoom(4);
    this.#bsonOffset = this.#bsonBuffer.writeInt32LE(int32Value, this.#bsonOffset);
    return 0x10;
  }

  #writeDouble(doubleNumber: number): number {
    this.#ensureBsonRoom(8);
    // One NaN: bits that a number does not tell apart are lost where a document is stored, and equal documents are equal bytes.
    this.#bsonOffset = this.#bsonBuffer.writeDoubleLE(Number.isNaN(doubleNumber) ? Number.NaN : doubleNumber, this.#bsonOffset);
    return 0x01;
  }

  #writeInt64(int64Value: bigint, bsonType: number): number {
    this.#ensureBsonRoom(8);
    this.#bsonOffset = this.#bsonBuffer.writeBigInt64LE(BigInt.asIntN(64, int64Value), this.#bsonOffset);
    return bsonType;
  }

  #writeRawBson(rawBytes: Uint8Array, bsonType: number): number {
    this.#ensureBsonRoom(rawBytes.length);
    this.#bsonBuffer.set(rawBytes, this.#bsonOffset);
    this.#bsonOffset += rawBytes.length;
    return bsonType;
  }

  #writeBsonString(bsonText: string, bsonType: number): number {
    const bsonTextLength = Buffer.byteLength(bsonText);
    this.#ensureBsonRoom(bsonTextLength + 5);
    this.#bsonOffset = this.#bsonBuffer.writeInt32LE(bsonTextLength + 1, this.#bsonOffset);
    this.#bsonOffset += this.#bsonBuffer.write(bsonText, this.#bsonOffset);
    this.#bsonBuffer[this.#bsonOffset++] = 0;
    return bsonType;
  }

  /** A NUL would end it: what another door wrote is cut there. */
  #writeCString(cStringText: string): void {
    const nulOffset = cStringText.indexOf('\0');
    const cStringKept = nulOffset < 0 ? cStringText : cStringText.slice(0, nulOffset);
    this.#ensureBsonRoom(cStringKept.length * 3 + 1);
    this.#bsonOffset += this.#bsonBuffer.write(cStringKept, this.#bsonOffset);
    this.#bsonBuffer[this.#bsonOffset++] = 0;
  }

  #writeBsonByte(bsonByte: number, bsonType = 0): number {
    this.#ensureBsonRoom(1);
    this.#bsonBuffer[this.#bsonOffset++] = bsonByte;
    return bsonType;
  }

  #ensureBsonRoom(neededBytes: number): void {
    if (this.#bsonOffset + neededBytes <= this.#bsonBuffer.length) return;
    // A large piece is mostly the last one: doubling the buffer would copy more for nothing.
    const largerBuffer = Buffer.allocUnsafe(Math.max(this.#bsonBuffer.length * 2, this.#bsonOffset + neededBytes + 512));
    this.#bsonBuffer.copy(largerBuffer, 0, 0, this.#bsonOffset);
    this.#bsonBuffer = largerBuffer;
  }
}
