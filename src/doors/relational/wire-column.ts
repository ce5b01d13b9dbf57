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
  readonly #wireType: WireType;
  readonly #isBinaryFormat: boolean;
  readonly #timestampDigits: number;
  #cellVector: Vector = { kind: 'null' };
  #cellNulls: Uint8Array | null = null;
  /** The column's longs, low half before high; made for the first that is written by them. */
  #int64Halves: Int32Array | null = null;
  /** Null: texts are sent as they are. */
  #encodeBinaryText: ((replies: PostgresReplies, text: string) => void) | null = null;

  /** `timestampDigits`: of a fraction of a second, in text. */
  constructor(wireType: WireType, fieldFormat: number, timestampDigits: number) {
    this.#wireType = wireType;
    this.#timestampDigits = timestampDigits;
    this.#isBinaryFormat = fieldFormat === 1;
  }

  open(cellVector: Vector): void {
    if (this.#isBinaryFormat && (cellVector.kind === 'text' || cellVector.kind === 'dict'))
      this.#encodeBinaryText = binaryText(this.#wireType);
    this.#cellVector = cellVector;
    this.#cellNulls = cellVector.kind === 'null' ? null : cellVector.nulls;
    this.#int64Halves = null;
  }

  put(postgresReplies: PostgresReplies, cellRow: number): void {
    const cellVector = this.#cellVector;
    if (cellVector.kind === 'null' || this.#cellNulls?.[cellRow] === 1) return postgresReplies.int32(-1);
    switch (cellVector.kind) {
      case 'text':
        return this.#putTextCell(
          postgresReplies,
          cellVector.heap,
          cellVector.offsets[cellRow]!,
          cellVector.offsets[cellRow + 1]!,
        );
      case 'dict': {
        const dictionaryCode = cellVector.values[cellRow]!;
        const dictionaryBytes =
          cellVector.dictionary.bytesOf?.(dictionaryCode) ?? Buffer.from(cellVector.dictionary.text(dictionaryCode));
        return this.#putTextCell(postgresReplies, dictionaryBytes, 0, dictionaryBytes.length);
      }
      case 'bool':
        postgresReplies.int32(1);
        return postgresReplies.writer.byte(
          this.#isBinaryFormat ? cellVector.values[cellRow]! : cellVector.values[cellRow] === 1 ? trueLetter : falseLetter,
        );
      case 'vec':
        return this.#putVectorCell(
          postgresReplies,
          cellVector.values.subarray(cellRow * cellVector.dims, (cellRow + 1) * cellVector.dims),
        );
      case 'i32':
      case 'f64':
        return this.#putNumberCell(postgresReplies, cellVector.values[cellRow]!);
      case 'i64':
        return this.#putInt64Cell(postgresReplies, cellRow);
    }
  }

  #putTextCell(postgresReplies: PostgresReplies, cellText: Uint8Array, cellStart: number, cellEnd: number): void {
    if (this.#encodeBinaryText)
      return this.#encodeBinaryText(
        postgresReplies,
        Buffer.from(cellText.buffer, cellText.byteOffset + cellStart, cellEnd - cellStart).toString(),
      );
    postgresReplies.int32(cellEnd - cellStart);
    postgresReplies.writer.copy(cellText, cellStart, cellEnd);
  }

  #putNumberCell(postgresReplies: PostgresReplies, cellNumber: number): void {
    if (this.#isInstantType) return this.#putInstantCell(postgresReplies, BigInt(cellNumber));
    const { writer } = postgresReplies;
    if (this.#isBinaryFormat) return putBinaryNumber(postgresReplies, this.#wireType, cellNumber);
    if (!Number.isFinite(cellNumber)) return this.#putTextReply(postgresReplies, String(cellNumber));
    writer.reserve(wireCellBytes);
    const digitsStart = writer.length + 4;
    // An integer column has no minus zero.
    const digitsEnd = isFloat(this.#wireType)
      ? putNumber(writer.bytes, digitsStart, cellNumber)
      : putInteger(writer.bytes, digitsStart, cellNumber + 0);
    writer.view.setInt32(writer.length, digitsEnd - digitsStart);
    writer.length = digitsEnd;
  }

  #putInt64Cell(postgresReplies: PostgresReplies, cellRow: number): void {
    const int64Vector = this.#cellVector as Extract<Vector, { kind: 'i64' }>;
    if (this.#isInstantType) return this.#putInstantCell(postgresReplies, int64Vector.values[cellRow]!);
    if (this.#wireType === wireTypes.float8) return this.#putNumberCell(postgresReplies, Number(int64Vector.values[cellRow]!));
    const { writer } = postgresReplies;
    const { buffer, byteOffset, length } = int64Vector.values;
    this.#int64Halves ??= new Int32Array(buffer, byteOffset, length * 2);
    const lowHalf = this.#int64Halves[cellRow * 2]!;
    const highHalf = this.#int64Halves[cellRow * 2 + 1]!;
    writer.reserve(wireCellBytes);
    if (this.#isBinaryFormat) {
      postgresReplies.int32(8);
      writer.view.setInt32(writer.length, highHalf);
      writer.view.setInt32(writer.length + 4, lowHalf);
      writer.length += 8;
      return;
    }
    const digitsStart = writer.length + 4;
    const digitsEnd = putI64(writer.bytes, digitsStart, highHalf, lowHalf >>> 0);
    writer.view.setInt32(writer.length, digitsEnd - digitsStart);
    writer.length = digitsEnd;
  }

  /** Without a zone. */
  get #isLocalTimestamp(): boolean {
    return this.#wireType.name === 'timestamp';
  }

  get #isInstantType(): boolean {
    return this.#wireType === wireTypes.timestamptz || this.#wireType === wireTypes.date || this.#isLocalTimestamp;
  }

  #putInstantCell(postgresReplies: PostgresReplies, instantNs: bigint): void {
    const isDateType = this.#wireType === wireTypes.date;
    if (!this.#isBinaryFormat) {
      const instantText = isDateType ? formatDay(instantNs) : formatZonedInstant(instantNs, this.#timestampDigits);
      return this.#putTextReply(postgresReplies, this.#isLocalTimestamp ? instantText.replace('+00', '') : instantText);
    }
    if (isDateType) return putBinaryNumber(postgresReplies, this.#wireType, dateNumber(instantNs));
    const { writer } = postgresReplies;
    postgresReplies.int32(8);
    writer.reserve(8);
    writer.view.setBigInt64(writer.length, instantMicroseconds(instantNs));
    writer.length += 8;
  }

  #putVectorCell(postgresReplies: PostgresReplies, vectorFloats: Float32Array): void {
    const { writer } = postgresReplies;
    const vectorLengthOffset = writer.length;
    postgresReplies.int32(0);
    if (this.#isBinaryFormat) {
      postgresReplies.int16(vectorFloats.length);
      postgresReplies.int16(0);
      writer.reserve(vectorFloats.length * 4);
      for (const vectorFloat of vectorFloats) {
        writer.view.setFloat32(writer.length, vectorFloat);
        writer.length += 4;
      }
    } else {
      writer.byte(0x5b);
      for (let i = 0; i < vectorFloats.length; i++) {
        if (i > 0) writer.byte(0x2c);
        writer.float(vectorFloats[i]!);
      }
      writer.byte(0x5d);
    }
    writer.view.setInt32(vectorLengthOffset, writer.length - vectorLengthOffset - 4);
  }

  #putTextReply(postgresReplies: PostgresReplies, cellText: string): void {
    postgresReplies.int32(Buffer.byteLength(cellText));
    postgresReplies.writer.string(cellText);
  }
}

/** Room for a length and the longest number. */
const wireCellBytes = 40;
const trueLetter = 0x74;
const falseLetter = 0x66;
