/** Gathers chosen rows of a vector into a new one, in the requested order; consecutive rows become a view that copies nothing. */
import { assert, unreachable } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';

export function gather(sourceVector: Vector, gatheredRows: Int32Array): Vector {
  const gatheredCount = gatheredRows.length;
  if (sourceVector.kind === 'null') return sourceVector;
  const nulls = gatherNulls(sourceVector.nulls, gatheredRows);
  switch (sourceVector.kind) {
    case 'i32':
      return { kind: 'i32', values: gatherCells(sourceVector.values, gatheredRows, new Int32Array(gatheredCount)), nulls };
    case 'dict':
      return {
        kind: 'dict',
        values: gatherCells(sourceVector.values, gatheredRows, new Int32Array(gatheredCount)),
        dictionary: sourceVector.dictionary,
        nulls,
      };
    case 'f64':
      return { kind: 'f64', values: gatherCells(sourceVector.values, gatheredRows, new Float64Array(gatheredCount)), nulls };
    case 'bool':
      return { kind: 'bool', values: gatherCells(sourceVector.values, gatheredRows, new Uint8Array(gatheredCount)), nulls };
    case 'i64': {
      const values = new BigInt64Array(gatheredCount);
      for (let k = 0; k < gatheredCount; k++) values[k] = sourceVector.values[gatheredRows[k]!]!;
      return { kind: 'i64', values, nulls };
    }
    case 'text':
      return gatherText(sourceVector, gatheredRows, nulls);
    case 'vec': {
      const { dims } = sourceVector;
      const values = new Float32Array(gatheredCount * dims);
      for (let k = 0; k < gatheredCount; k++)
        values.set(sourceVector.values.subarray(gatheredRows[k]! * dims, (gatheredRows[k]! + 1) * dims), k * dims);
      return { kind: 'vec', values, dims, nulls };
    }
    default:
      return unreachable(sourceVector);
  }
}

/** Rows first .. first+count-1 under the numbers 0 .. count-1, where they lie. */
export function windowOf(sourceVector: Vector, first: number, count: number): Vector {
  if (sourceVector.kind === 'null') return sourceVector;
  const windowEnd = first + count;
  const windowNulls = sourceVector.nulls?.subarray(first, windowEnd) ?? null;
  const nulls = windowNulls?.includes(1) ? windowNulls : null;
  switch (sourceVector.kind) {
    case 'i32':
      return { kind: 'i32', values: sourceVector.values.subarray(first, windowEnd), nulls };
    case 'dict':
      return { kind: 'dict', values: sourceVector.values.subarray(first, windowEnd), dictionary: sourceVector.dictionary, nulls };
    case 'f64':
      return { kind: 'f64', values: sourceVector.values.subarray(first, windowEnd), nulls };
    case 'bool':
      return { kind: 'bool', values: sourceVector.values.subarray(first, windowEnd), nulls };
    case 'i64':
      return { kind: 'i64', values: sourceVector.values.subarray(first, windowEnd), nulls };
    case 'text':
      return { kind: 'text', offsets: sourceVector.offsets.subarray(first, windowEnd + 1), heap: sourceVector.heap, nulls };
    case 'vec': {
      const { dims } = sourceVector;
      return { kind: 'vec', values: sourceVector.values.subarray(first * dims, windowEnd * dims), dims, nulls };
    }
    default:
      return unreachable(sourceVector);
  }
}

function gatherText(vector: Extract<Vector, { kind: 'text' }>, gatheredRows: Int32Array, nulls: Uint8Array | null): Vector {
  const { offsets, heap } = vector;
  let gatheredBytes = 0;
  for (const row of gatheredRows) gatheredBytes += offsets[row + 1]! - offsets[row]!;
  assert(gatheredBytes < 2 ** 32, 'gathered text fits its offsets');
  const gatheredHeap = new Uint8Array(gatheredBytes);
  const gatheredOffsets = new Uint32Array(gatheredRows.length + 1);
  let gatheredUsed = 0;
  for (let k = 0; k < gatheredRows.length; k++) {
    const start = offsets[gatheredRows[k]!]!;
    const end = offsets[gatheredRows[k]! + 1]!;
    if (end - start <= 24) for (let i = start; i < end; i++) gatheredHeap[gatheredUsed + i - start] = heap[i]!;
    else gatheredHeap.set(heap.subarray(start, end), gatheredUsed);
    gatheredUsed += end - start;
    gatheredOffsets[k + 1] = gatheredUsed;
  }
  return { kind: 'text', offsets: gatheredOffsets, heap: gatheredHeap, nulls };
}

function gatherNulls(nulls: Uint8Array | null, gatheredRows: Int32Array): Uint8Array | null {
  if (!nulls) return null;
  const gatheredNulls = gatherCells(nulls, gatheredRows, new Uint8Array(gatheredRows.length));
  return gatheredNulls.includes(1) ? gatheredNulls : null;
}

function gatherCells<T extends Int32Array | Float64Array | Uint8Array>(
  sourceCells: T,
  gatheredRows: Int32Array,
  gatheredCells: T,
): T {
  for (let k = 0; k < gatheredRows.length; k++) gatheredCells[k] = sourceCells[gatheredRows[k]!]!;
  return gatheredCells;
}
