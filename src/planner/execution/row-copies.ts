/** Copies of a few rows: the vectors of a block belong to the store until the next turn, an answer outlives it. */
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import type { RowBlock } from '../../projections/access-paths.ts';
import type { OutputBatch, OutputColumn } from '../planner-contract.ts';

/** Columns of the block by number, in the order and with the types of the named ones. */
export function fewRows(
  { columns, selection, first, count }: Pick<RowBlock, 'columns' | 'selection' | 'first' | 'count'>,
  numbers: readonly number[] | null,
  named: readonly Pick<OutputColumn, 'type'>[],
): OutputBatch {
  const vectors: Vector[] = [];
  for (let i = 0; i < named.length; i++)
    vectors.push(copyVector(columns[numbers === null ? i : numbers[i]!]!, named[i]!.type, selection, first, count));
  return { columns: vectors, selection: null, first: 0, count };
}

function copyVector(vector: Vector, type: ColumnType, selection: Int32Array | null, first: number, count: number): Vector {
  if (vector.kind === 'null') return vector;
  const rowAt = (position: number): number => (selection === null ? first + position : selection[position]!);
  if (count === 1 && vector.nulls?.[rowAt(0)] === 1) return nothing;
  const nulls = vector.nulls === null || count === 1 ? null : take(vector.nulls, new Uint8Array(count), rowAt);
  switch (vector.kind) {
    case 'i32':
      return { kind: 'i32', values: take(vector.values, new Int32Array(count), rowAt), nulls };
    case 'f64':
      return { kind: 'f64', values: take(vector.values, new Float64Array(count), rowAt), nulls };
    case 'bool':
      return { kind: 'bool', values: take(vector.values, new Uint8Array(count), rowAt), nulls };
    case 'dict':
      return { kind: 'dict', values: take(vector.values, new Int32Array(count), rowAt), dictionary: vector.dictionary, nulls };
    case 'i64': {
      if (type !== 'number') {
        const values = new BigInt64Array(count);
        for (let k = 0; k < count; k++) values[k] = vector.values[rowAt(k)]!;
        return { kind: 'i64', values, nulls };
      }
      const values = new Float64Array(count);
      for (let k = 0; k < count; k++) values[k] = Number(vector.values[rowAt(k)]!);
      return { kind: 'f64', values, nulls };
    }
    case 'vec': {
      const { dims } = vector;
      const values = new Float32Array(count * dims);
      for (let k = 0; k < count; k++) values.set(vector.values.subarray(rowAt(k) * dims, (rowAt(k) + 1) * dims), k * dims);
      return { kind: 'vec', values, dims, nulls };
    }
    case 'text':
      return texts(vector, count, rowAt, nulls);
  }
}

const nothing: Vector = { kind: 'null' };

function take<T extends Uint8Array | Int32Array | Float64Array>(from: T, to: T, at: (k: number) => number): T {
  for (let k = 0; k < to.length; k++) to[k] = from[at(k)]!;
  return to;
}

function texts(
  { offsets, heap }: Extract<Vector, { kind: 'text' }>,
  count: number,
  at: (k: number) => number,
  nulls: Uint8Array | null,
): Vector {
  const newOffsets = new Uint32Array(count + 1);
  for (let k = 0; k < count; k++) {
    const size = nulls?.[k] === 1 ? 0 : offsets[at(k) + 1]! - offsets[at(k)]!;
    newOffsets[k + 1] = newOffsets[k]! + size;
  }
  const own = new Uint8Array(newOffsets[count]!);
  for (let k = 0; k < count; k++) {
    const from = offsets[at(k)]!;
    const [start, end] = [newOffsets[k]!, newOffsets[k + 1]!];
    // A short text is copied faster than a view of it is made.
    if (end - start <= 48) for (let i = start; i < end; i++) own[i] = heap[from + i - start]!;
    else own.set(heap.subarray(from, from + end - start), start);
  }
  return { kind: 'text', offsets: newOffsets, heap: own, nulls };
}
