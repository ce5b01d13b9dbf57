/**
 * Cells of a column as the plain arrays of binary formats. A NULL cell is zeros; its slot in the answer may hold another row's
 * value.
 */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import type { OutputBatch } from '../planner-contract.ts';

/** Integers and instants; `holes`: there are NULLs among them. The result may share memory with the answer. */
export function integers(vector: Vector, batch: OutputBatch, holes: boolean): BigInt64Array {
  const { selection, first, count } = batch;
  if (vector.kind === 'i64' && selection === null && !holes) return vector.values.subarray(first, first + count);
  // 32-bit halves, low before high: going through bigints would make an object of every cell.
  const halves = new Int32Array(count * 2);
  const cells = new BigInt64Array(halves.buffer);
  if (vector.kind === 'null') return cells;
  assert(vector.kind === 'i64' || vector.kind === 'i32' || vector.kind === 'f64', 'integers are numbers');
  const { nulls } = vector;
  const source =
    vector.kind === 'i64'
      ? new Int32Array(vector.values.buffer, vector.values.byteOffset, vector.values.length * 2)
      : vector.values;
  for (let i = 0; i < count; i++) {
    const row = selection === null ? first + i : selection[i]!;
    if (holes && nulls![row] === 1) continue;
    if (vector.kind === 'i64') {
      halves[i * 2] = source[row * 2]!;
      halves[i * 2 + 1] = source[row * 2 + 1]!;
    } else {
      const value = source[row]!;
      const high = Math.floor(value / 0x1_0000_0000);
      halves[i * 2] = value - high * 0x1_0000_0000;
      halves[i * 2 + 1] = high;
    }
  }
  return cells;
}

/** Numbers as doubles; `holes` as for integers. */
export function numbers(vector: Vector, batch: OutputBatch, holes: boolean): Float64Array {
  const { selection, first, count } = batch;
  if (vector.kind === 'f64' && selection === null && !holes) return vector.values.subarray(first, first + count);
  const cells = new Float64Array(count);
  if (vector.kind === 'null') return cells;
  assert(vector.kind === 'i64' || vector.kind === 'i32' || vector.kind === 'f64', 'numbers are numbers');
  for (let i = 0; i < count; i++) {
    const row = selection === null ? first + i : selection[i]!;
    if (!holes || vector.nulls![row] === 0) cells[i] = Number(vector.values[row]!);
  }
  return cells;
}

/** Vectors of `dims` dimensions, one after the other. */
export function floats(vector: Vector, batch: OutputBatch, dims: number): Float32Array {
  const { selection, first, count } = batch;
  const cells = new Float32Array(count * dims);
  if (vector.kind === 'null') return cells;
  assert(vector.kind === 'vec', 'vectors are vectors');
  for (let i = 0; i < count; i++) {
    const row = selection === null ? first + i : selection[i]!;
    if (vector.nulls === null || vector.nulls[row] === 0) {
      cells.set(vector.values.subarray(row * dims, (row + 1) * dims), i * dims);
    }
  }
  return cells;
}
