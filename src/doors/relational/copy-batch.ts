/** The batch of columns that COPY FROM STDIN fills field by field, by the types of its target columns. */
import { ServiceError } from '../../errors.ts';
import type { RowBatch } from '../../log/values/columns.ts';
import { type ColumnType, limits } from '../../log/values/value.ts';
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import { parameterOid, parameterValue } from './parameters.ts';

export interface CopyColumn {
  readonly name: string;
  readonly type: ColumnType;
  /** Dimensions of a vector; 0: as the first one has. */
  readonly dims: number;
}

/** Rows of a batch, which is decided and applied in one turn of the event loop. */
const copyBatchRows = 3_072;
const copyBatchBytes = 3 << 18;

export class CopyBatch {
  readonly #copyColumns: readonly CopyColumn[];
  readonly #vectorDims: number[];
  #columnBuilders: VectorBuilder[] = [];
  #copiedRows = 0;
  #copiedBytes = 0;
  /** Rows of batches before. */
  #earlierRows = 0;

  constructor(copyColumns: readonly CopyColumn[]) {
    this.#copyColumns = copyColumns;
    this.#vectorDims = copyColumns.map(({ dims: vectorDims }) => vectorDims);
  }

  get columnCount(): number {
    return this.#copyColumns.length;
  }

  get isEmpty(): boolean {
    return this.#copiedRows === 0;
  }

  get isFull(): boolean {
    return this.#copiedRows >= copyBatchRows || this.#copiedBytes >= copyBatchBytes;
  }

  /** The row that is being read, as errors name it. */
  get rowName(): string {
    return `COPY, row ${this.#earlierRows + this.#copiedRows + 1}`;
  }

  endRow(rowBytes: number): void {
    this.#copiedRows++;
    this.#copiedBytes += rowBytes;
  }

  take(): RowBatch {
    const builtColumns = this.#copyColumns.map(({ name, type }, i) => ({ name, type, vector: this.#columnBuilders[i]!.build() }));
    const copyBatch = { length: this.#copiedRows, columns: builtColumns };
    this.#earlierRows += this.#copiedRows;
    this.#copiedRows = this.#copiedBytes = 0;
    this.#columnBuilders = [];
    return copyBatch;
  }

  #columnBuilder(i: number): VectorBuilder {
    return (this.#columnBuilders[i] ??= new VectorBuilder(this.#copyColumns[i]!.type, 256));
  }

  appendNull(i: number): void {
    this.#columnBuilder(i).appendNull();
  }

  /** The field is the bytes from `fieldStart` to `fieldEnd`, without quotes and escapes. */
  appendText(i: number, fieldSource: Buffer, fieldStart: number, fieldEnd: number): void {
    const { type: copyType } = this.#copyColumns[i]!;
    if (copyType === 'string') return this.#columnBuilder(i).appendText(fieldSource, fieldStart, fieldEnd);
    if (copyType === 'integer') {
      const fieldValue = shortCopyInteger(fieldSource, fieldStart, fieldEnd);
      if (fieldValue !== null) return this.#columnBuilder(i).appendInteger(fieldValue);
    } else if (copyType === 'number') {
      const fieldValue = shortCopyDecimal(fieldSource, fieldStart, fieldEnd);
      if (fieldValue !== null) return this.#columnBuilder(i).appendNumber(fieldValue);
    } else if (copyType === 'boolean') {
      const fieldValue = copyBoolean(fieldSource, fieldStart, fieldEnd);
      if (fieldValue !== null) return this.#columnBuilder(i).appendBoolean(fieldValue);
    }
    this.appendValue(i, fieldSource.subarray(fieldStart, fieldEnd), 0);
  }

  appendValue(i: number, fieldBytes: Buffer | null, fieldFormat: number): void {
    const { type: copyType, name: copyColumn } = this.#copyColumns[i]!;
    const columnBuilder = this.#columnBuilder(i);
    try {
      const fieldOid = fieldFormat === 1 && fieldBytes !== null ? parameterOid(copyType, fieldBytes.length) : 0;
      const fieldValue = parameterValue(fieldBytes, fieldFormat, fieldOid, copyType, i + 1);
      if (fieldValue === null) return columnBuilder.appendNull();
      if (copyType === 'vector') return columnBuilder.appendVector(this.#copyVector(i, String(fieldValue)));
      if (copyType === 'json') JSON.parse(String(fieldValue));
      columnBuilder.append(copyType === 'number' ? Number(fieldValue) : fieldValue);
    } catch (error) {
      if (error instanceof SyntaxError)
        throw new ServiceError(
          'REL_TYPE_MISMATCH',
          `${this.rowName}, column ${JSON.stringify(copyColumn)}: the text is not JSON`,
        );
      if (!(error instanceof ServiceError)) throw error;
      const fieldDetail = error.message.replace(/^\$\d+ /, '');
      throw new ServiceError(error.code, `${this.rowName}, column ${JSON.stringify(copyColumn)}: ${fieldDetail}`, error.facts);
    }
  }

  #copyVector(i: number, vectorText: string): Float32Array {
    const vectorItems: unknown = JSON.parse(vectorText);
    const vectorValues = Array.isArray(vectorItems) ? Float32Array.from(vectorItems as number[]) : new Float32Array(0);
    if (vectorValues.length === 0 || vectorValues.length > limits.vectorDims || !vectorValues.every(Number.isFinite))
      throw new ServiceError('REL_TYPE_MISMATCH', 'is no vector');
    this.#vectorDims[i] ||= vectorValues.length;
    if (this.#vectorDims[i] !== vectorValues.length)
      throw new ServiceError('REL_TYPE_MISMATCH', `has ${vectorValues.length} dimensions instead of ${this.#vectorDims[i]}`);
    return vectorValues;
  }
}

/** Parses a short integer; null where it is written otherwise, or longer. */
function shortCopyInteger(fieldBytes: Buffer, fieldStart: number, fieldEnd: number): number | null {
  const isNegative = fieldBytes[fieldStart] === 0x2d;
  const firstDigit = isNegative ? fieldStart + 1 : fieldStart;
  if (fieldEnd === firstDigit || fieldEnd - firstDigit > 15) return null;
  let integerValue = 0;
  for (let i = firstDigit; i < fieldEnd; i++) {
    const digit = fieldBytes[i]! - 0x30;
    if (digit < 0 || digit > 9) return null;
    integerValue = integerValue * 10 + digit;
  }
  return isNegative ? -integerValue : integerValue;
}

/** Digits and a point: a whole number below 2^53 over a power of ten is rounded once, as the text is. Null where it is written otherwise. */
function shortCopyDecimal(fieldBytes: Buffer, fieldStart: number, fieldEnd: number): number | null {
  const isNegative = fieldBytes[fieldStart] === 0x2d;
  const firstDigit = isNegative ? fieldStart + 1 : fieldStart;
  if (fieldEnd === firstDigit || fieldEnd - firstDigit > 16) return null;
  let decimalDigits = 0;
  let decimalPoint = -1;
  for (let i = firstDigit; i < fieldEnd; i++) {
    const fieldByte = fieldBytes[i]!;
    const digit = fieldByte - 0x30;
    if (digit >= 0 && digit <= 9) decimalDigits = decimalDigits * 10 + digit;
    else if (fieldByte === 0x2e && decimalPoint < 0) decimalPoint = i;
    else return null;
  }
  const digitCount = fieldEnd - firstDigit - (decimalPoint < 0 ? 0 : 1);
  if (digitCount === 0 || digitCount > 15) return null;
  const decimalValue = decimalPoint < 0 ? decimalDigits : decimalDigits / decimalPowers[fieldEnd - decimalPoint - 1]!;
  return isNegative ? -decimalValue : decimalValue;
}

const decimalPowers = Float64Array.from({ length: 16 }, (_, i) => Number(`1e${i}`));

function copyBoolean(fieldBytes: Buffer, fieldStart: number, fieldEnd: number): boolean | null {
  const fieldLength = fieldEnd - fieldStart;
  const firstLetter = fieldBytes[fieldStart];
  if (
    firstLetter === 0x74 &&
    (fieldLength === 1 || (fieldLength === 4 && fieldBytes.toString('latin1', fieldStart, fieldEnd) === 'true'))
  )
    return true;
  if (
    firstLetter === 0x66 &&
    (fieldLength === 1 || (fieldLength === 5 && fieldBytes.toString('latin1', fieldStart, fieldEnd) === 'false'))
  )
    return false;
  return null;
}
