/**
 * Cells of one column fetched by row number into buffers that are used again and again: how a join puts the columns of its
 * other side beside a row only once it is known to come out. Loops are generated per layout, so that each stays a plain
 * loop over one kind of array.
 */
import type { Vector } from '../../log/values/columns.ts';
import { generateFunction } from '../expressions/generate-function.ts';

/** Which cells, and where they go. */
export interface Fetch {
  /** Row of the source per output; -1 is NULL. */
  readonly rows: Int32Array;
  readonly count: number;
  /** Row numbers of the outputs; null is 0 .. count-1. Text can't be put in places: it lies one after the other. */
  readonly targetRows: Int32Array | null;
  /** Above every place. */
  readonly length: number;
  /** Whether some row is -1. */
  readonly absent: boolean;
}

type Words = Int32Array | Float64Array | Uint8Array;
type Move = (
  source: Words,
  nulls: Uint8Array | null,
  rows: Int32Array,
  targetRows: Int32Array | null,
  count: number,
  target: Words,
  targetNulls: Uint8Array,
) => void;

/** The vector that `fetch` returns is valid until the next call. */
export class Gatherer {
  #nulls = new Uint8Array(0);
  #i32 = new Int32Array(0);
  #f64 = new Float64Array(0);
  #i64 = new BigInt64Array(0);
  #bytes = new Uint8Array(0);
  #floats = new Float32Array(0);
  #offsets = new Uint32Array(1);

  fetch(source: Vector, wanted: Fetch): Vector {
    const { length } = wanted;
    if (source.kind === 'null') return source;
    const nullable = source.nulls !== null || wanted.absent;
    if (nullable && this.#nulls.length < length) this.#nulls = new Uint8Array(room(length));
    const nulls = nullable ? this.#nulls : null;
    switch (source.kind) {
      case 'i32':
      case 'dict': {
        if (this.#i32.length < length) this.#i32 = new Int32Array(room(length));
        this.#move('i', source.values, source.nulls, wanted, this.#i32);
        if (source.kind === 'i32') return { kind: 'i32', values: this.#i32, nulls };
        return { kind: 'dict', values: this.#i32, dictionary: source.dictionary, nulls };
      }
      case 'f64':
        if (this.#f64.length < length) this.#f64 = new Float64Array(room(length));
        this.#move('f', source.values, source.nulls, wanted, this.#f64);
        return { kind: 'f64', values: this.#f64, nulls };
      case 'i64':
        if (this.#i64.length < length) this.#i64 = new BigInt64Array(room(length));
        this.#move('l', wordsOf(source.values), source.nulls, wanted, wordsOf(this.#i64));
        return { kind: 'i64', values: this.#i64, nulls };
      case 'bool':
        if (this.#bytes.length < length) this.#bytes = new Uint8Array(room(length));
        this.#move('b', source.values, source.nulls, wanted, this.#bytes);
        return { kind: 'bool', values: this.#bytes, nulls };
      case 'vec':
        return this.#floatsOf(source, wanted, nulls);
      case 'text':
        return this.#textOf(source, wanted, nulls);
    }
  }

  #move(letter: 'i' | 'f' | 'l' | 'b', source: Words, nulls: Uint8Array | null, wanted: Fetch, target: Words): void {
    const { rows, targetRows, count, absent } = wanted;
    move(letter, nulls !== null, absent, targetRows !== null)(source, nulls, rows, targetRows, count, target, this.#nulls);
  }

  #floatsOf(source: Extract<Vector, { kind: 'vec' }>, wanted: Fetch, nulls: Uint8Array | null): Vector {
    const { rows, targetRows, count, length } = wanted;
    const { values, dims } = source;
    if (this.#floats.length < length * dims) this.#floats = new Float32Array(room(length) * dims);
    for (let j = 0; j < count; j++) {
      const row = rows[j]!;
      const targetRow = targetRows ? targetRows[j]! : j;
      if (nulls) nulls[targetRow] = row < 0 || source.nulls?.[row] === 1 ? 1 : 0;
      if (row >= 0) this.#floats.set(values.subarray(row * dims, (row + 1) * dims), targetRow * dims);
    }
    return { kind: 'vec', values: this.#floats, dims, nulls };
  }

  #textOf(source: Extract<Vector, { kind: 'text' }>, wanted: Fetch, nulls: Uint8Array | null): Vector {
    const { rows, count } = wanted;
    const { offsets, heap } = source;
    let size = 0;
    for (let j = 0; j < count; j++) {
      const row = rows[j]!;
      const isNull = row < 0 || (source.nulls !== null && source.nulls[row] === 1);
      if (nulls !== null) nulls[j] = isNull ? 1 : 0;
      if (!isNull) size += offsets[row + 1]! - offsets[row]!;
    }
    if (this.#offsets.length <= count) this.#offsets = new Uint32Array(room(count) + 1);
    if (this.#bytes.length < size) this.#bytes = new Uint8Array(room(size));
    const bytes = this.#bytes;
    let at = 0;
    for (let j = 0; j < count; j++) {
      if (nulls === null || nulls[j] === 0) {
        const from = offsets[rows[j]!]!;
        const cellSize = offsets[rows[j]! + 1]! - from;
        if (cellSize <= 32) for (let k = 0; k < cellSize; k++) bytes[at + k] = heap[from + k]!;
        else bytes.set(heap.subarray(from, from + cellSize), at);
        at += cellSize;
      }
      this.#offsets[j + 1] = at;
    }
    return { kind: 'text', offsets: this.#offsets, heap: bytes, nulls };
  }
}

const moves: (Move | undefined)[] = [];

/** One loop per layout; the letter is in its text, so that no two layouts share V8's type feedback. */
function move(letter: 'i' | 'f' | 'l' | 'b', nulls: boolean, absent: boolean, hasTargets: boolean): Move {
  const key = 'iflb'.indexOf(letter) * 8 + (nulls ? 4 : 0) + (absent ? 2 : 0) + (hasTargets ? 1 : 0);
  return (moves[key] ??= generateFunction<Move>(
    ['source', 'nulls', 'rows', 'places', 'count', 'target', 'targetNulls'],
    [
      `"use strict"; /* ${letter} */`,
      'for (let j = 0; j < count; j++) {',
      hasTargets ? 'const r = rows[j], p = places[j];' : 'const r = rows[j], p = j;',
      absent ? `if (r < 0) { targetNulls[p] = 1; ${moveOf(letter, '0')} continue; }` : '',
      nulls ? 'targetNulls[p] = nulls[r];' : absent ? 'targetNulls[p] = 0;' : '',
      moveOf(letter, 'source[#]'),
      '}',
    ].join('\n'),
  ));
}

/** `#` in the value is the row it comes from. */
function moveOf(letter: string, value: string): string {
  if (letter !== 'l') return `target[p] = ${value.replace('#', 'r')};`;
  return `target[2 * p] = ${value.replace('#', '2 * r')}; target[2 * p + 1] = ${value.replace('#', '2 * r + 1')};`;
}

function wordsOf(values: BigInt64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length * 2);
}

function room(length: number): number {
  return Math.max(1024, length + (length >> 1));
}
