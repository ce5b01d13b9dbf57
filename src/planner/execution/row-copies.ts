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
  const rowAt = (place: number): number => (selection === null ? first + place : selection[place]!);
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
        for (let place = 0; place < count; place++) values[place] = vector.values[rowAt(place)]!;
        return { kind: 'i64', values, nulls };
      }
      const values = new Float64Array(count);
      for (let place = 0; place < count; place++) values[place] = Number(vector.values[rowAt(place)]!);
      return { kind: 'f64', values, nulls };
    }
    case 'vec': {
      const { dims } = vector;
      const values = new Float32Array(count * dims);
      for (let place = 0; place < count; place++)
        values.set(vector.values.subarray(rowAt(place) * dims, (rowAt(place) + 1) * dims), place * dims);
      return { kind: 'vec', values, dims, nulls };
    }
    case 'text':
      return texts(vector, count, rowAt, nulls);
  }
}

const nothing: Vector = { kind: 'null' };

function take<T extends Uint8Array | Int32Array | Float64Array>(from: T, to: T, at: (place: number) => number): T {
  for (let place = 0; place < to.length; place++) to[place] = from[at(place)]!;
  return to;
}

function texts(
  { offsets, heap }: Extract<Vector, { kind: 'text' }>,
  count: number,
  at: (place: number) => number,
  nulls: Uint8Array | null,
): Vector {
  const places = new Uint32Array(count + 1);
  for (let place = 0; place < count; place++) {
    const size = nulls?.[place] === 1 ? 0 : offsets[at(place) + 1]! - offsets[at(place)]!;
    places[place + 1] = places[place]! + size;
  }
  const own = new Uint8Array(places[count]!);
  for (let place = 0; place < count; place++) {
    const from = offsets[at(place)]!;
    const [start, end] = [places[place]!, places[place + 1]!];
    // A short text is copied faster than a view of it is made.
    if (end - start <= 48) for (let i = start; i < end; i++) own[i] = heap[from + i - start]!;
    else own.set(heap.subarray(from, from + end - start), start);
  }
  return { kind: 'text', offsets: places, heap: own, nulls };
}
