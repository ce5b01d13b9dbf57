/** Gathers chosen rows of a vector into a new one, in the requested order; consecutive rows become a view that copies nothing. */
import { assert, unreachable } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';

export function gather(vector: Vector, rows: Int32Array): Vector {
  const count = rows.length;
  if (vector.kind === 'null') return vector;
  const nulls = gatherNulls(vector.nulls, rows);
  switch (vector.kind) {
    case 'i32':
      return { kind: 'i32', values: pick(vector.values, rows, new Int32Array(count)), nulls };
    case 'dict':
      return { kind: 'dict', values: pick(vector.values, rows, new Int32Array(count)), dictionary: vector.dictionary, nulls };
    case 'f64':
      return { kind: 'f64', values: pick(vector.values, rows, new Float64Array(count)), nulls };
    case 'bool':
      return { kind: 'bool', values: pick(vector.values, rows, new Uint8Array(count)), nulls };
    case 'i64': {
      const values = new BigInt64Array(count);
      for (let k = 0; k < count; k++) values[k] = vector.values[rows[k]!]!;
      return { kind: 'i64', values, nulls };
    }
    case 'text':
      return gatherText(vector, rows, nulls);
    case 'vec': {
      const { dims } = vector;
      const values = new Float32Array(count * dims);
      for (let k = 0; k < count; k++) values.set(vector.values.subarray(rows[k]! * dims, (rows[k]! + 1) * dims), k * dims);
      return { kind: 'vec', values, dims, nulls };
    }
    default:
      return unreachable(vector);
  }
}

/** Rows first .. first+count-1 under the numbers 0 .. count-1, where they lie. */
export function windowOf(vector: Vector, first: number, count: number): Vector {
  if (vector.kind === 'null') return vector;
  const end = first + count;
  const own = vector.nulls?.subarray(first, end) ?? null;
  const nulls = own?.includes(1) ? own : null;
  switch (vector.kind) {
    case 'i32':
      return { kind: 'i32', values: vector.values.subarray(first, end), nulls };
    case 'dict':
      return { kind: 'dict', values: vector.values.subarray(first, end), dictionary: vector.dictionary, nulls };
    case 'f64':
      return { kind: 'f64', values: vector.values.subarray(first, end), nulls };
    case 'bool':
      return { kind: 'bool', values: vector.values.subarray(first, end), nulls };
    case 'i64':
      return { kind: 'i64', values: vector.values.subarray(first, end), nulls };
    case 'text':
      return { kind: 'text', offsets: vector.offsets.subarray(first, end + 1), heap: vector.heap, nulls };
    case 'vec': {
      const { dims } = vector;
      return { kind: 'vec', values: vector.values.subarray(first * dims, end * dims), dims, nulls };
    }
    default:
      return unreachable(vector);
  }
}

function gatherText(vector: Extract<Vector, { kind: 'text' }>, rows: Int32Array, nulls: Uint8Array | null): Vector {
  const { offsets, heap } = vector;
  let size = 0;
  for (const row of rows) size += offsets[row + 1]! - offsets[row]!;
  assert(size < 2 ** 32, 'gathered text fits its offsets');
  const target = new Uint8Array(size);
  const targetOffsets = new Uint32Array(rows.length + 1);
  let used = 0;
  for (let k = 0; k < rows.length; k++) {
    const start = offsets[rows[k]!]!;
    const end = offsets[rows[k]! + 1]!;
    if (end - start <= 24) for (let i = start; i < end; i++) target[used + i - start] = heap[i]!;
    else target.set(heap.subarray(start, end), used);
    used += end - start;
    targetOffsets[k + 1] = used;
  }
  return { kind: 'text', offsets: targetOffsets, heap: target, nulls };
}

function gatherNulls(nulls: Uint8Array | null, rows: Int32Array): Uint8Array | null {
  if (!nulls) return null;
  const picked = pick(nulls, rows, new Uint8Array(rows.length));
  return picked.includes(1) ? picked : null;
}

function pick<T extends Int32Array | Float64Array | Uint8Array>(from: T, rows: Int32Array, to: T): T {
  for (let k = 0; k < rows.length; k++) to[k] = from[rows[k]!]!;
  return to;
}
