/** Copies of a few rows: the vectors of a block belong to the store until the next turn, an answer outlives it. */
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import type { RowBlock } from '../../projections/access-paths.ts';
import type { OutputBatch, OutputColumn } from '../planner-contract.ts';

/** Columns of the block by number, in the order and with the types of the named ones. */
export function fewRows(
  { columns, selection, first, count }: Pick<RowBlock, 'columns' | 'selection' | 'first' | 'count'>,
  columnNumbers: readonly number[] | null,
  outputColumns: readonly Pick<OutputColumn, 'type'>[],
): OutputBatch {
  const copiedVectors: Vector[] = [];
  for (let i = 0; i < outputColumns.length; i++)
    copiedVectors.push(
      copyVector(columns[columnNumbers === null ? i : columnNumbers[i]!]!, outputColumns[i]!.type, selection, first, count),
    );
  return { columns: copiedVectors, selection: null, first: 0, count };
}

function copyVector(vector: Vector, type: ColumnType, selection: Int32Array | null, first: number, count: number): Vector {
  if (vector.kind === 'null') return vector;
  const rowAt = (position: number): number => (selection === null ? first + position : selection[position]!);
  if (count === 1 && vector.nulls?.[rowAt(0)] === 1) return nullVector;
  const copiedNulls = vector.nulls === null || count === 1 ? null : takeCells(vector.nulls, new Uint8Array(count), rowAt);
  switch (vector.kind) {
    case 'i32':
      return { kind: 'i32', values: takeCells(vector.values, new Int32Array(count), rowAt), nulls: copiedNulls };
    case 'f64':
      return { kind: 'f64', values: takeCells(vector.values, new Float64Array(count), rowAt), nulls: copiedNulls };
    case 'bool':
      return { kind: 'bool', values: takeCells(vector.values, new Uint8Array(count), rowAt), nulls: copiedNulls };
    case 'dict':
      return {
        kind: 'dict',
        values: takeCells(vector.values, new Int32Array(count), rowAt),
        dictionary: vector.dictionary,
        nulls: copiedNulls,
      };
    case 'i64': {
      if (type !== 'number') {
        const copiedValues = new BigInt64Array(count);
        for (let k = 0; k < count; k++) copiedValues[k] = vector.values[rowAt(k)]!;
        return { kind: 'i64', values: copiedValues, nulls: copiedNulls };
      }
      const values = new Float64Array(count);
      for (let k = 0; k < count; k++) values[k] = Number(vector.values[rowAt(k)]!);
      return { kind: 'f64', values, nulls: copiedNulls };
    }
    case 'vec': {
      const { dims } = vector;
      const copiedValues = new Float32Array(count * dims);
      for (let k = 0; k < count; k++) copiedValues.set(vector.values.subarray(rowAt(k) * dims, (rowAt(k) + 1) * dims), k * dims);
      return { kind: 'vec', values: copiedValues, dims, nulls: copiedNulls };
    }
    case 'text':
      return copyTexts(vector, count, rowAt, copiedNulls);
  }
}

const nullVector: Vector = { kind: 'null' };

function takeCells<T extends Uint8Array | Int32Array | Float64Array>(
  sourceCells: T,
  copiedCells: T,
  sourceRowAt: (k: number) => number,
): T {
  for (let k = 0; k < copiedCells.length; k++) copiedCells[k] = sourceCells[sourceRowAt(k)]!;
  return copiedCells;
}

function copyTexts(
  { offsets, heap }: Extract<Vector, { kind: 'text' }>,
  count: number,
  sourceRowAt: (k: number) => number,
  nulls: Uint8Array | null,
): Vector {
  const newOffsets = new Uint32Array(count + 1);
  for (let k = 0; k < count; k++) {
    const textBytes = nulls?.[k] === 1 ? 0 : offsets[sourceRowAt(k) + 1]! - offsets[sourceRowAt(k)]!;
    newOffsets[k + 1] = newOffsets[k]! + textBytes;
  }
  const copiedHeap = new Uint8Array(newOffsets[count]!);
  for (let k = 0; k < count; k++) {
    const sourceStart = offsets[sourceRowAt(k)]!;
    const [copiedStart, copiedEnd] = [newOffsets[k]!, newOffsets[k + 1]!];
    // A short text is copied faster than a view of it is made.
    if (copiedEnd - copiedStart <= 48)
      for (let i = copiedStart; i < copiedEnd; i++) copiedHeap[i] = heap[sourceStart + i - copiedStart]!;
    else copiedHeap.set(heap.subarray(sourceStart, sourceStart + copiedEnd - copiedStart), copiedStart);
  }
  return { kind: 'text', offsets: newOffsets, heap: copiedHeap, nulls };
}
