/**
 * Cells of a column as the plain arrays of binary formats. A NULL cell is zeros; its slot in the answer may hold another row's
 * value.
 */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import type { OutputBatch } from '../planner-contract.ts';

/** Integers and instants; `hasNulls`: there are NULLs among them. The result may share memory with the answer. */
export function integers(vector: Vector, batch: OutputBatch, hasNulls: boolean): BigInt64Array {
  const { selection, first, count } = batch;
  if (vector.kind === 'i64' && selection === null && !hasNulls) return vector.values.subarray(first, first + count);
  // 32-bit halves, low before high: going through bigints would make an object of every cell.
  const int64Halves = new Int32Array(count * 2);
  const integerCells = new BigInt64Array(int64Halves.buffer);
  if (vector.kind === 'null') return integerCells;
  assert(vector.kind === 'i64' || vector.kind === 'i32' || vector.kind === 'f64', 'integers are numbers');
  const { nulls } = vector;
  const integerSource =
    vector.kind === 'i64'
      ? new Int32Array(vector.values.buffer, vector.values.byteOffset, vector.values.length * 2)
      : vector.values;
  for (let i = 0; i < count; i++) {
    const integerRow = selection === null ? first + i : selection[i]!;
    if (hasNulls && nulls![integerRow] === 1) continue;
    if (vector.kind === 'i64') {
      int64Halves[i * 2] = integerSource[integerRow * 2]!;
      int64Halves[i * 2 + 1] = integerSource[integerRow * 2 + 1]!;
    } else {
      const integerValue = integerSource[integerRow]!;
      const highHalf = Math.floor(integerValue / 0x1_0000_0000);
      int64Halves[i * 2] = integerValue - highHalf * 0x1_0000_0000;
      int64Halves[i * 2 + 1] = highHalf;
    }
  }
  return integerCells;
}

/** Numbers as doubles; `hasNulls` as for integers. */
export function numbers(vector: Vector, batch: OutputBatch, hasNulls: boolean): Float64Array {
  const { selection, first, count } = batch;
  if (vector.kind === 'f64' && selection === null && !hasNulls) return vector.values.subarray(first, first + count);
  const numberCells = new Float64Array(count);
  if (vector.kind === 'null') return numberCells;
  assert(vector.kind === 'i64' || vector.kind === 'i32' || vector.kind === 'f64', 'numbers are numbers');
  for (let i = 0; i < count; i++) {
    const numberRow = selection === null ? first + i : selection[i]!;
    if (!hasNulls || vector.nulls![numberRow] === 0) numberCells[i] = Number(vector.values[numberRow]!);
  }
  return numberCells;
}

/** Vectors of `dims` dimensions, one after the other. */
export function floats(vector: Vector, batch: OutputBatch, dims: number): Float32Array {
  const { selection, first, count } = batch;
  const floatCells = new Float32Array(count * dims);
  if (vector.kind === 'null') return floatCells;
  assert(vector.kind === 'vec', 'vectors are vectors');
  for (let i = 0; i < count; i++) {
    const vectorRow = selection === null ? first + i : selection[i]!;
    if (vector.nulls === null || vector.nulls[vectorRow] === 0) {
      floatCells.set(vector.values.subarray(vectorRow * dims, (vectorRow + 1) * dims), i * dims);
    }
  }
  return floatCells;
}
