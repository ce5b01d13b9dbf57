/** Encodes and decodes messages of protocol buffers field by field, without a description. Source: protobuf, "Encoding". */
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../../errors.ts';

/** Fields of one message. */
export type Fields = readonly Uint8Array[];

export function protobufMessage(...fields: Fields): Buffer {
  return Buffer.concat(fields);
}

export const textField = (fieldNumber: number, fieldText: string): Buffer => bytesField(fieldNumber, Buffer.from(fieldText));

/** Bytes, or a message, behind their length. */
export function bytesField(fieldNumber: number, fieldBytes: Uint8Array): Buffer {
  return Buffer.concat([lengthPrefix(fieldNumber, fieldBytes.length), fieldBytes]);
}

/** The tag and length in front of a field of so many bytes. */
export function lengthPrefix(fieldNumber: number, fieldLength: number): Buffer {
  return Buffer.concat([encodeVarint((BigInt(fieldNumber) << 3n) | 2n), encodeVarint(BigInt(fieldLength))]);
}

/** A negative number takes ten bytes. */
export function varintField(fieldNumber: number, fieldValue: bigint | number): Buffer {
  return Buffer.concat([encodeVarint(BigInt(fieldNumber) << 3n), encodeVarint(BigInt.asUintN(64, BigInt(fieldValue)))]);
}

function encodeVarint(varintValue: bigint): Buffer {
  const encodedBytes: number[] = [];
  let varintRest = varintValue;
  for (; varintRest > 127n; varintRest >>= 7n) encodedBytes.push(Number(varintRest & 127n) | 128);
  encodedBytes.push(Number(varintRest));
  return Buffer.from(encodedBytes);
}

/** A received message: its fields by number, with bytes as views of it. Throws REL_INVALID for a malformed one. */
export class ProtobufMessage {
  readonly #fields = new Map<number, (bigint | Uint8Array)[]>();

  constructor(messageBytes: Uint8Array) {
    const messageView = new DataView(messageBytes.buffer, messageBytes.byteOffset, messageBytes.byteLength);
    let messageOffset = 0;
    const nextVarint = (): bigint => {
      let varintValue = 0n;
      for (let varintShift = 0n; varintShift < 70n; varintShift += 7n) {
        const varintByte = messageBytes[messageOffset++];
        if (varintByte === undefined) throw malformedMessage();
        varintValue |= BigInt(varintByte & 127) << varintShift;
        if (varintByte < 128) return BigInt.asUintN(64, varintValue);
      }
      throw malformedMessage();
    };
    const skipField = (skippedBytes: bigint): number => {
      const skippedFrom = messageOffset;
      if (skippedBytes > BigInt(messageBytes.length - messageOffset)) throw malformedMessage();
      messageOffset += Number(skippedBytes);
      return skippedFrom;
    };
    while (messageOffset < messageBytes.length) {
      const fieldTag = nextVarint();
      const fieldNumber = Number(fieldTag >> 3n);
      const fieldValues = this.#fields.get(fieldNumber) ?? [];
      this.#fields.set(fieldNumber, fieldValues);
      switch (fieldTag & 7n) {
        case 0n:
          fieldValues.push(nextVarint());
          break;
        case 1n:
          fieldValues.push(messageView.getBigUint64(skipField(8n), true));
          break;
        case 2n: {
          const fieldBytes = nextVarint();
          const fieldStart = skipField(fieldBytes);
          fieldValues.push(messageBytes.subarray(fieldStart, messageOffset));
          break;
        }
        case 5n:
          fieldValues.push(BigInt(messageView.getUint32(skipField(4n), true)));
          break;
        default:
          throw malformedMessage();
      }
    }
  }

  /** Values by their number, in the order in which they came. */
  get fields(): ReadonlyMap<number, readonly (bigint | Uint8Array)[]> {
    return this.#fields;
  }

  /** Fields of bytes, or messages, with this number. */
  all(fieldNumber: number): Uint8Array[] {
    return (this.#fields.get(fieldNumber) ?? []).filter((fieldValue) => fieldValue instanceof Uint8Array);
  }

  bytes(fieldNumber: number): Uint8Array | null {
    const lastValue = this.#fields.get(fieldNumber)?.at(-1);
    return lastValue instanceof Uint8Array ? lastValue : null;
  }

  /** The text of a field; null where it is absent. */
  text(fieldNumber: number): string | null {
    const textBytes = this.bytes(fieldNumber);
    return textBytes === null ? null : protobufTextOf(textBytes);
  }

  texts(fieldNumber: number): string[] {
    return this.all(fieldNumber).map(protobufTextOf);
  }

  number(fieldNumber: number): bigint {
    const lastValue = this.#fields.get(fieldNumber)?.at(-1);
    return typeof lastValue === 'bigint' ? lastValue : 0n;
  }

  /** The numbers of a repeated field, packed or not. */
  numbers(fieldNumber: number): bigint[] {
    return (this.#fields.get(fieldNumber) ?? []).flatMap((fieldValue) =>
      typeof fieldValue === 'bigint' ? fieldValue : unpackVarints(fieldValue),
    );
  }
}

function unpackVarints(packedBytes: Uint8Array): bigint[] {
  const packedVarints: bigint[] = [];
  let varintValue = 0n;
  let varintShift = 0n;
  for (const varintByte of packedBytes) {
    varintValue |= BigInt(varintByte & 127) << varintShift;
    varintShift += 7n;
    if (varintShift > 70n) throw malformedMessage();
    if (varintByte > 127) continue;
    packedVarints.push(BigInt.asUintN(64, varintValue));
    [varintValue, varintShift] = [0n, 0n];
  }
  return packedVarints;
}

function protobufTextOf(textBytes: Uint8Array): string {
  if (!isUtf8(textBytes)) throw new ServiceError('REL_INVALID', 'a text of the message is no UTF-8');
  return Buffer.from(textBytes.buffer, textBytes.byteOffset, textBytes.byteLength).toString('utf8');
}

function malformedMessage(): ServiceError {
  return new ServiceError('REL_INVALID', 'the message is malformed');
}
