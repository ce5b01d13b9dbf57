/** Encodes and decodes messages of protocol buffers field by field, without a description. Source: protobuf, "Encoding". */
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../../errors.ts';

/** Fields of one message. */
export type Fields = readonly Uint8Array[];

export function protobufMessage(...fields: Fields): Buffer {
  return Buffer.concat(fields);
}

export const textField = (number: number, value: string): Buffer => bytesField(number, Buffer.from(value));

/** Bytes, or a message, behind their length. */
export function bytesField(number: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([lengthPrefix(number, bytes.length), bytes]);
}

/** The tag and length in front of a field of so many bytes. */
export function lengthPrefix(number: number, length: number): Buffer {
  return Buffer.concat([varint((BigInt(number) << 3n) | 2n), varint(BigInt(length))]);
}

/** A negative number takes ten bytes. */
export function varintField(number: number, value: bigint | number): Buffer {
  return Buffer.concat([varint(BigInt(number) << 3n), varint(BigInt.asUintN(64, BigInt(value)))]);
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

/** A received message: its fields by number, with bytes as views of it. Throws REL_INVALID for a malformed one. */
export class ProtobufMessage {
  readonly #fields = new Map<number, (bigint | Uint8Array)[]>();

  constructor(bytes: Uint8Array) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    const next = (): bigint => {
      let value = 0n;
      for (let shift = 0n; shift < 70n; shift += 7n) {
        const byte = bytes[at++];
        if (byte === undefined) throw malformedError();
        value |= BigInt(byte & 127) << shift;
        if (byte < 128) return BigInt.asUintN(64, value);
      }
      throw malformedError();
    };
    const skip = (size: bigint): number => {
      const start = at;
      if (size > BigInt(bytes.length - at)) throw malformedError();
      at += Number(size);
      return start;
    };
    while (at < bytes.length) {
      const tag = next();
      const number = Number(tag >> 3n);
      const values = this.#fields.get(number) ?? [];
      this.#fields.set(number, values);
      switch (tag & 7n) {
        case 0n:
          values.push(next());
          break;
        case 1n:
          values.push(view.getBigUint64(skip(8n), true));
          break;
        case 2n: {
          const size = next();
          const start = skip(size);
          values.push(bytes.subarray(start, at));
          break;
        }
        case 5n:
          values.push(BigInt(view.getUint32(skip(4n), true)));
          break;
        default:
          throw malformedError();
      }
    }
  }

  /** Values by their number, in the order in which they came. */
  get fields(): ReadonlyMap<number, readonly (bigint | Uint8Array)[]> {
    return this.#fields;
  }

  /** Fields of bytes, or messages, with this number. */
  all(number: number): Uint8Array[] {
    return (this.#fields.get(number) ?? []).filter((value) => value instanceof Uint8Array);
  }

  bytes(number: number): Uint8Array | null {
    const value = this.#fields.get(number)?.at(-1);
    return value instanceof Uint8Array ? value : null;
  }

  /** The text of a field; null where it is absent. */
  text(number: number): string | null {
    const bytes = this.bytes(number);
    return bytes === null ? null : textOf(bytes);
  }

  texts(number: number): string[] {
    return this.all(number).map(textOf);
  }

  number(number: number): bigint {
    const value = this.#fields.get(number)?.at(-1);
    return typeof value === 'bigint' ? value : 0n;
  }

  /** The numbers of a repeated field, packed or not. */
  numbers(number: number): bigint[] {
    return (this.#fields.get(number) ?? []).flatMap((value) => (typeof value === 'bigint' ? value : unpack(value)));
  }
}

function unpack(bytes: Uint8Array): bigint[] {
  const values: bigint[] = [];
  let value = 0n;
  let shift = 0n;
  for (const byte of bytes) {
    value |= BigInt(byte & 127) << shift;
    shift += 7n;
    if (shift > 70n) throw malformedError();
    if (byte > 127) continue;
    values.push(BigInt.asUintN(64, value));
    [value, shift] = [0n, 0n];
  }
  return values;
}

function textOf(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new ServiceError('REL_INVALID', 'a text of the message is no UTF-8');
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

function malformedError(): ServiceError {
  return new ServiceError('REL_INVALID', 'the message is malformed');
}
