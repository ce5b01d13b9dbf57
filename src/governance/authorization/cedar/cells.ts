/** Cells of columns as Cedar's values. NULL is undefined: an absent attribute. */
import type { Vector } from '../../../log/values/columns.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import { instantOf } from './entities.ts';
import type { Value } from './values.ts';

export function isNull(vector: Vector, row: number): boolean {
  return vector.kind === 'null' || (vector.nulls !== null && vector.nulls[row] === 1);
}

export function cellAt(vector: Vector, row: number, type: ColumnType): Value | undefined {
  if (isNull(vector, row)) return undefined;
  switch (vector.kind) {
    case 'i32':
    case 'f64':
    case 'i64': {
      const cellInteger = BigInt(vector.values[row]!);
      return type === 'timestamp' ? instantOf(cellInteger) : cellInteger;
    }
    case 'bool':
      return vector.values[row] === 1;
    case 'dict':
      return vector.dictionary.text(vector.values[row]!);
    case 'text':
      return textAt(vector, row);
    case 'vec':
    case 'null':
      return undefined;
  }
}

const cellTextDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

export function textAt({ heap, offsets }: Extract<Vector, { kind: 'text' }>, row: number): string {
  // A decoder takes no shared memory.
  return cellTextDecoder.decode(heap.slice(offsets[row]!, offsets[row + 1]!));
}

/** Milliseconds of the i64 nanoseconds whose words are (low, high), rounded down: exact, without a bigint. */
export function millisecondsOf(low: number, high: number): number {
  // 2^32 = 4294 * 10^6 + 967296, and the remainder stays below 2^52.
  return high * 4294 + Math.floor((high * 967_296 + (low >>> 0)) / 1_000_000);
}

/** Pairs of low and high words. */
export function wordsOf(values: BigInt64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length * 2);
}
