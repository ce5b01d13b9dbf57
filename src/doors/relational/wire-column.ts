/** Cells of a column as clients of Postgres read them, in text and in binary. */
import type { Vector } from '../../log/values/columns.ts';
import { putI64, putInteger, putNumber } from '../../planner/formats/cell-text.ts';
import { formatDay, formatZonedInstant } from '../../log/values/timestamp.ts';
import type { PostgresReplies } from './replies.ts';
import { binaryText, isFloat, putBinaryNumber } from './wire-binary.ts';
import {
  dateNumber,
  instantMicroseconds,
  type WireType,
  wireTypes,
} from '../../planner/system-catalogue/postgres-column-types.ts';

/** Cells of one column, batch after batch: each with its length before it, -1 for NULL. */
export class WireColumn {
  readonly #type: WireType;
  readonly #binary: boolean;
  readonly #digits: number;
  #vector: Vector = { kind: 'null' };
  #nulls: Uint8Array | null = null;
  /** The column's longs, low half before high; made for the first that is written by them. */
  #halves: Int32Array | null = null;
  /** Null: texts are sent as they are. */
  #encode: ((replies: PostgresReplies, text: string) => void) | null = null;

  /** `digits`: of a fraction of a second, in text. */
  constructor(of: WireType, format: number, digits: number) {
    this.#type = of;
    this.#digits = digits;
    this.#binary = format === 1;
  }

  open(vector: Vector): void {
    if (this.#binary && (vector.kind === 'text' || vector.kind === 'dict')) this.#encode = binaryText(this.#type);
    this.#vector = vector;
    this.#nulls = vector.kind === 'null' ? null : vector.nulls;
    this.#halves = null;
  }

  put(replies: PostgresReplies, row: number): void {
    const vector = this.#vector;
    if (vector.kind === 'null' || this.#nulls?.[row] === 1) return replies.int32(-1);
    switch (vector.kind) {
      case 'text':
        return this.#bytes(replies, vector.heap, vector.offsets[row]!, vector.offsets[row + 1]!);
      case 'dict': {
        const code = vector.values[row]!;
        const bytes = vector.dictionary.bytesOf?.(code) ?? Buffer.from(vector.dictionary.text(code));
        return this.#bytes(replies, bytes, 0, bytes.length);
      }
      case 'bool':
        replies.int32(1);
        return replies.writer.byte(this.#binary ? vector.values[row]! : vector.values[row] === 1 ? lowerT : lowerF);
      case 'vec':
        return this.#floats(replies, vector.values.subarray(row * vector.dims, (row + 1) * vector.dims));
      case 'i32':
      case 'f64':
        return this.#number(replies, vector.values[row]!);
      case 'i64':
        return this.#long(replies, row);
    }
  }

  #bytes(replies: PostgresReplies, bytes: Uint8Array, from: number, to: number): void {
    if (this.#encode) return this.#encode(replies, Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString());
    replies.int32(to - from);
    replies.writer.copy(bytes, from, to);
  }

  #number(replies: PostgresReplies, value: number): void {
    if (this.#isInstant) return this.#instant(replies, BigInt(value));
    const { writer } = replies;
    if (this.#binary) return putBinaryNumber(replies, this.#type, value);
    if (!Number.isFinite(value)) return this.#text(replies, String(value));
    writer.reserve(cellBytes);
    const from = writer.length + 4;
    // An integer column has no minus zero.
    const to = isFloat(this.#type) ? putNumber(writer.bytes, from, value) : putInteger(writer.bytes, from, value + 0);
    writer.view.setInt32(writer.length, to - from);
    writer.length = to;
  }

  #long(replies: PostgresReplies, row: number): void {
    const vector = this.#vector as Extract<Vector, { kind: 'i64' }>;
    if (this.#isInstant) return this.#instant(replies, vector.values[row]!);
    if (this.#type === wireTypes.float8) return this.#number(replies, Number(vector.values[row]!));
    const { writer } = replies;
    const { buffer, byteOffset, length } = vector.values;
    this.#halves ??= new Int32Array(buffer, byteOffset, length * 2);
    const low = this.#halves[row * 2]!;
    const high = this.#halves[row * 2 + 1]!;
    writer.reserve(cellBytes);
    if (this.#binary) {
      replies.int32(8);
      writer.view.setInt32(writer.length, high);
      writer.view.setInt32(writer.length + 4, low);
      writer.length += 8;
      return;
    }
    const from = writer.length + 4;
    const to = putI64(writer.bytes, from, high, low >>> 0);
    writer.view.setInt32(writer.length, to - from);
    writer.length = to;
  }

  /** Without a zone. */
  get #isLocal(): boolean {
    return this.#type.name === 'timestamp';
  }

  get #isInstant(): boolean {
    return this.#type === wireTypes.timestamptz || this.#type === wireTypes.date || this.#isLocal;
  }

  #instant(replies: PostgresReplies, ns: bigint): void {
    const isDate = this.#type === wireTypes.date;
    if (!this.#binary) {
      const text = isDate ? formatDay(ns) : formatZonedInstant(ns, this.#digits);
      return this.#text(replies, this.#isLocal ? text.replace('+00', '') : text);
    }
    if (isDate) return putBinaryNumber(replies, this.#type, dateNumber(ns));
    const { writer } = replies;
    replies.int32(8);
    writer.reserve(8);
    writer.view.setBigInt64(writer.length, instantMicroseconds(ns));
    writer.length += 8;
  }

  #floats(replies: PostgresReplies, values: Float32Array): void {
    const { writer } = replies;
    const at = writer.length;
    replies.int32(0);
    if (this.#binary) {
      replies.int16(values.length);
      replies.int16(0);
      writer.reserve(values.length * 4);
      for (const value of values) {
        writer.view.setFloat32(writer.length, value);
        writer.length += 4;
      }
    } else {
      writer.byte(0x5b);
      for (let i = 0; i < values.length; i++) {
        if (i > 0) writer.byte(0x2c);
        writer.float(values[i]!);
      }
      writer.byte(0x5d);
    }
    writer.view.setInt32(at, writer.length - at - 4);
  }

  #text(replies: PostgresReplies, text: string): void {
    replies.int32(Buffer.byteLength(text));
    replies.writer.string(text);
  }
}

/** Room for a length and the longest number. */
const cellBytes = 40;
const lowerT = 0x74;
const lowerF = 0x66;
