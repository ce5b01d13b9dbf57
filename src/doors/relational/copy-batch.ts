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
const batchRows = 3_072;
const batchBytes = 3 << 18;

export class CopyBatch {
  readonly #columns: readonly CopyColumn[];
  readonly #dims: number[];
  #builders: VectorBuilder[] = [];
  #rows = 0;
  #bytes = 0;
  /** Rows of batches before. */
  #rowsBefore = 0;

  constructor(columns: readonly CopyColumn[]) {
    this.#columns = columns;
    this.#dims = columns.map(({ dims }) => dims);
  }

  get columnCount(): number {
    return this.#columns.length;
  }

  get isEmpty(): boolean {
    return this.#rows === 0;
  }

  get isFull(): boolean {
    return this.#rows >= batchRows || this.#bytes >= batchBytes;
  }

  /** The row that is being read, as errors name it. */
  get rowName(): string {
    return `COPY, row ${this.#rowsBefore + this.#rows + 1}`;
  }

  endRow(bytes: number): void {
    this.#rows++;
    this.#bytes += bytes;
  }

  take(): RowBatch {
    const columns = this.#columns.map(({ name, type }, i) => ({ name, type, vector: this.#builders[i]!.build() }));
    const batch = { length: this.#rows, columns };
    this.#rowsBefore += this.#rows;
    this.#rows = this.#bytes = 0;
    this.#builders = [];
    return batch;
  }

  #builder(i: number): VectorBuilder {
    return (this.#builders[i] ??= new VectorBuilder(this.#columns[i]!.type, 256));
  }

  appendNull(i: number): void {
    this.#builder(i).appendNull();
  }

  /** The field is the bytes from `start` to `end`, without quotes and escapes. */
  appendText(i: number, source: Buffer, start: number, end: number): void {
    const { type } = this.#columns[i]!;
    if (type === 'string') return this.#builder(i).appendText(source, start, end);
    if (type === 'integer') {
      const value = shortInteger(source, start, end);
      if (value !== null) return this.#builder(i).appendInteger(value);
    } else if (type === 'number') {
      const value = shortDecimal(source, start, end);
      if (value !== null) return this.#builder(i).appendNumber(value);
    } else if (type === 'boolean') {
      const value = plainBoolean(source, start, end);
      if (value !== null) return this.#builder(i).appendBoolean(value);
    }
    this.appendValue(i, source.subarray(start, end), 0);
  }

  appendValue(i: number, bytes: Buffer | null, format: number): void {
    const { type, name } = this.#columns[i]!;
    const builder = this.#builder(i);
    try {
      const oid = format === 1 && bytes !== null ? parameterOid(type, bytes.length) : 0;
      const value = parameterValue(bytes, format, oid, type, i + 1);
      if (value === null) return builder.appendNull();
      if (type === 'vector') return builder.appendVector(this.#vector(i, String(value)));
      if (type === 'json') JSON.parse(String(value));
      builder.append(type === 'number' ? Number(value) : value);
    } catch (error) {
      if (error instanceof SyntaxError)
        throw new ServiceError('REL_TYPE_MISMATCH', `${this.rowName}, column ${JSON.stringify(name)}: the text is not JSON`);
      if (!(error instanceof ServiceError)) throw error;
      const detail = error.message.replace(/^\$\d+ /, '');
      throw new ServiceError(error.code, `${this.rowName}, column ${JSON.stringify(name)}: ${detail}`, error.facts);
    }
  }

  #vector(i: number, text: string): Float32Array {
    const items: unknown = JSON.parse(text);
    const values = Array.isArray(items) ? Float32Array.from(items as number[]) : new Float32Array(0);
    if (values.length === 0 || values.length > limits.vectorDims || !values.every(Number.isFinite))
      throw new ServiceError('REL_TYPE_MISMATCH', 'is no vector');
    this.#dims[i] ||= values.length;
    if (this.#dims[i] !== values.length)
      throw new ServiceError('REL_TYPE_MISMATCH', `has ${values.length} dimensions instead of ${this.#dims[i]}`);
    return values;
  }
}

/** Parses a short integer; null where it is written otherwise, or longer. */
function shortInteger(bytes: Buffer, start: number, end: number): number | null {
  const isNegative = bytes[start] === 0x2d;
  const from = isNegative ? start + 1 : start;
  if (end === from || end - from > 15) return null;
  let value = 0;
  for (let i = from; i < end; i++) {
    const digit = bytes[i]! - 0x30;
    if (digit < 0 || digit > 9) return null;
    value = value * 10 + digit;
  }
  return isNegative ? -value : value;
}

/** Digits and a point: a whole number below 2^53 over a power of ten is rounded once, as the text is. Null where it is written otherwise. */
function shortDecimal(bytes: Buffer, start: number, end: number): number | null {
  const isNegative = bytes[start] === 0x2d;
  const from = isNegative ? start + 1 : start;
  if (end === from || end - from > 16) return null;
  let value = 0;
  let point = -1;
  for (let i = from; i < end; i++) {
    const byte = bytes[i]!;
    const digit = byte - 0x30;
    if (digit >= 0 && digit <= 9) value = value * 10 + digit;
    else if (byte === 0x2e && point < 0) point = i;
    else return null;
  }
  const digits = end - from - (point < 0 ? 0 : 1);
  if (digits === 0 || digits > 15) return null;
  const whole = point < 0 ? value : value / powersOfTen[end - point - 1]!;
  return isNegative ? -whole : whole;
}

const powersOfTen = Float64Array.from({ length: 16 }, (_, i) => Number(`1e${i}`));

function plainBoolean(bytes: Buffer, start: number, end: number): boolean | null {
  const size = end - start;
  const first = bytes[start];
  if (first === 0x74 && (size === 1 || (size === 4 && bytes.toString('latin1', start, end) === 'true'))) return true;
  if (first === 0x66 && (size === 1 || (size === 5 && bytes.toString('latin1', start, end) === 'false'))) return false;
  return null;
}
