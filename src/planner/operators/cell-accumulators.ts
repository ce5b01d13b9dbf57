/**
 * Aggregate functions that go over cells one by one, each with a state of its own kind by group: moments, the middle, all
 * and any, lists. Doubles are added in the order of rows.
 */
import { AssertionError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import { formatInstant } from '../../log/values/timestamp.ts';
import type { Cell, ColumnType } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import { numberOverflow } from '../expressions/evaluate.ts';
import { checkLength } from '../expressions/functions/scalar-function.ts';
import { differentDimensions, vectorIn, vectorText } from '../expressions/functions/vectors.ts';
import { quotedElement } from '../virtual/types.ts';
import type { AggregateCall } from '../logical-plan.ts';
import { type Accumulator, RowByRow } from './accumulate.ts';
import type { Batch } from './operator.ts';

/** One function for all groups. `S` is the state of a group with at least one value. */
interface Folding<S> {
  readonly yields: ColumnType;
  readonly takesNull?: boolean;
  /** NULL where this is absent. */
  readonly ofNothing?: Cell;
  start(): S;
  /** Returns how many bytes more it holds. */
  take(state: S, cell: Cell, second: Cell): number;
  finish(state: S): Cell;
}

export function cellAccumulator(call: AggregateCall, column: number, types: readonly ColumnType[]): Accumulator {
  const make = <S>(folding: Folding<S>): Accumulator => new CellAccumulator(folding, call, column, types);
  switch (call.function) {
    case 'count':
      return make(counted);
    case 'sum':
      return make(vectors('sum'));
    case 'avg':
      return make(vectors('avg'));
    case 'stddev':
      return make(moments((m2, n) => (n < 2 ? null : Math.sqrt(m2 / (n - 1)))));
    case 'stddev_pop':
      return make(moments((m2, n) => Math.sqrt(m2 / n)));
    case 'variance':
      return make(moments((m2, n) => (n < 2 ? null : m2 / (n - 1))));
    case 'var_pop':
      return make(moments((m2, n) => m2 / n));
    case 'median':
      return make(median);
    case 'bool_and':
      return make(boolean((all, each) => all && each));
    case 'bool_or':
      return make(boolean((any, each) => any || each));
    case 'string_agg':
      return make(joined);
    case 'array_agg':
      return make(listFolding(types[column]!));
    case 'array':
      return make(elements(types[column]!));
    case 'collect':
      return make({ ...listFolding(types[column]!), takesNull: false, ofNothing: '[]' });
    default:
      throw new AssertionError(`${call.function} adds up in columns`);
  }
}

const stateBytes = 64;

class CellAccumulator<S> extends RowByRow {
  readonly #folding: Folding<S>;
  readonly #column: number;
  readonly #second: number | null;
  readonly #types: readonly ColumnType[];
  readonly #states: (S | undefined)[] = [];
  readonly #met: Set<Cell>[] | null;
  bytes = 0;

  constructor(folding: Folding<S>, call: AggregateCall, column: number, types: readonly ColumnType[]) {
    super();
    this.#folding = folding;
    this.#column = column;
    this.#second = call.second ?? null;
    this.#types = types;
    this.#met = call.distinct ? [] : null;
  }

  update(batch: Batch, groups: Int32Array): void {
    const vector = batch.columns[this.#column]!;
    const type = this.#types[this.#column]!;
    const second = this.#second === null ? null : batch.columns[this.#second]!;
    const { selection, first, count } = batch;
    const takesNull = this.#folding.takesNull === true;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      const cell = cellAt(vector, type, i);
      if (cell === null && !takesNull) continue;
      const group = groups[j]!;
      if (this.#met !== null && !this.#isNew(group, cell)) continue;
      let state = this.#states[group];
      if (state === undefined) {
        this.#states[group] = state = this.#folding.start();
        this.bytes += stateBytes;
      }
      this.bytes += this.#folding.take(state, cell, second === null ? null : cellAt(second, this.#types[this.#second!]!, i));
    }
  }

  result(groups: Int32Array): Vector {
    const builder = new VectorBuilder(this.#folding.yields, Math.max(1, groups.length));
    for (const group of groups) {
      const state = this.#states[group];
      builder.append(state === undefined ? (this.#folding.ofNothing ?? null) : this.#folding.finish(state));
    }
    return builder.build();
  }

  #isNew(group: number, cell: Cell): boolean {
    const met = (this.#met![group] ??= new Set());
    const value = cell instanceof Float32Array ? vectorText(cell) : cell;
    if (met.has(value)) return false;
    met.add(value);
    this.bytes += stateBytes + (typeof value === 'string' ? 2 * value.length : 0);
    return true;
  }
}

/** Vectors that differ: in columns, all other values are counted. */
const counted: Folding<{ count: bigint }> = {
  yields: 'integer',
  ofNothing: 0n,
  start: () => ({ count: 0n }),
  take: (state) => {
    state.count++;
    return 0;
  },
  finish: ({ count }) => count,
};

/** Component by component, as pgvector adds: sums in 32 bits, means in 64. */
function vectors(name: 'sum' | 'avg'): Folding<{ sums: Float32Array | Float64Array; count: number }> {
  const Sums = name === 'sum' ? Float32Array : Float64Array;
  return {
    yields: 'string',
    start: () => ({ sums: new Sums(0), count: 0 }),
    take: (state, cell) => {
      const vector = vectorIn(cell)!;
      const isFirst = state.count++ === 0;
      if (isFirst) state.sums = new Sums(vector.length);
      const { sums } = state;
      if (vector.length !== sums.length) throw differentDimensions(sums.length, vector.length);
      for (let i = 0; i < sums.length; i++) sums[i]! += vector[i]!;
      return isFirst ? sums.byteLength : 0;
    },
    finish: ({ sums, count }) => {
      const result = name === 'sum' ? (sums as Float32Array) : Float32Array.from(sums, (sum) => sum / count);
      if (!result.every(Number.isFinite)) throw numberOverflow();
      return vectorText(result);
    },
  };
}

interface Moments {
  count: number;
  mean: number;
  /** Sum of squared distances from the mean. */
  squares: number;
}

/** Each value moves the mean, so that large values that differ little lose nothing (Welford). */
function moments(finish: (squares: number, count: number) => number | null): Folding<Moments> {
  return {
    yields: 'number',
    start: () => ({ count: 0, mean: 0, squares: 0 }),
    take: (state, cell) => {
      const value = Number(cell);
      const before = value - state.mean;
      state.count++;
      state.mean += before / state.count;
      state.squares += before * (value - state.mean);
      return 0;
    },
    finish: ({ squares, count }) => {
      const result = finish(squares, count);
      if (result !== null && !Number.isFinite(result)) throw numberOverflow();
      return result;
    },
  };
}

const median: Folding<number[]> = {
  yields: 'number',
  start: () => [],
  take: (values, cell) => {
    values.push(Number(cell));
    return 8;
  },
  finish: (values) => {
    const sorted = Float64Array.from(values).sort();
    const middle = sorted.length >> 1;
    if (sorted.length % 2 === 1) return sorted[middle]! + 0;
    const [low, high] = [sorted[middle - 1]!, sorted[middle]!];
    // Halves first where the sum would be too large.
    const mean = (low + high) / 2;
    return Number.isFinite(mean) ? mean + 0 : low / 2 + high / 2;
  },
};

function boolean(combine: (before: boolean, each: boolean) => boolean): Folding<{ value: boolean | null }> {
  return {
    yields: 'boolean',
    start: () => ({ value: null }),
    take: (state, cell) => {
      state.value = state.value === null ? cell === true : combine(state.value, cell === true);
      return 0;
    },
    finish: ({ value }) => value,
  };
}

const joined: Folding<{ text: string; size: number }> = {
  yields: 'string',
  start: () => ({ text: '', size: -1 }),
  take: (state, cell, between) => {
    const added = (state.size < 0 || between === null ? '' : String(between)) + String(cell);
    state.text += added;
    state.size = Math.max(0, state.size) + added.length;
    checkLength(state.text);
    return 2 * added.length;
  },
  finish: ({ text }) => text,
};

function listFolding(type: ColumnType): Folding<{ text: string }> {
  return {
    yields: 'json',
    takesNull: true,
    start: () => ({ text: '' }),
    take: (state, cell) => {
      const item = jsonText(cell, type);
      state.text += `${state.text === '' ? '' : ','}${item}`;
      checkLength(state.text);
      return 2 * item.length;
    },
    finish: ({ text }) => `[${text}]`,
  };
}

/** An array as Postgres writes it. */
function elements(type: ColumnType): Folding<{ text: string }> {
  return {
    ...listFolding(type),
    yields: 'string',
    take: (state, cell) => {
      const item = cell === null ? 'NULL' : quotedElement(type === 'timestamp' ? formatInstant(cell as bigint) : shortText(cell));
      state.text += `${state.text === '' ? '' : ','}${item}`;
      checkLength(state.text);
      return 2 * item.length;
    },
    finish: ({ text }) => `{${text}}`,
  };
}

const shortText = (cell: Cell): string => (typeof cell === 'boolean' ? (cell ? 't' : 'f') : String(cell));

function jsonText(cell: Cell, type: ColumnType): string {
  if (cell === null) return 'null';
  if (type === 'json') return String(cell);
  if (type === 'timestamp') return JSON.stringify(formatInstant(cell as bigint));
  return typeof cell === 'string' ? JSON.stringify(cell) : String(cell);
}
