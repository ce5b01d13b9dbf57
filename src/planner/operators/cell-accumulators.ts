/**
 * Aggregate functions that go over cells one by one, each with a state of its own kind by group: all and any,
 * lists, and those of `variance-aggregates.ts` and `ordered-set-aggregates.ts`. Doubles are added in the order of rows.
 */
import { AssertionError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import { formatInstant } from '../../log/values/timestamp.ts';
import { type Cell, type ColumnType, compareText } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import { numberOverflow } from '../expressions/evaluate.ts';
import {
  formatInterval,
  type Interval,
  lengthOf,
  parseInterval,
  scaleInterval,
  sumOf,
} from '../expressions/functions/intervals.ts';
import { checkLength, invalid, textMax, tooLong } from '../expressions/functions/scalar-function.ts';
import { differentDimensions, vectorIn, vectorText } from '../expressions/functions/vectors.ts';
import { quotedElement } from '../system-catalogue/catalogue-types.ts';
import type { AggregateCall } from '../logical-plan.ts';
import { type Accumulator, RowByRow } from './aggregate-loop.ts';
import type { Folding } from './aggregate-fold.ts';
import { momentFoldings } from './variance-aggregates.ts';
import { continuousPercentile, discretePercentile, median, mostFrequent } from './ordered-set-aggregates.ts';
import type { Batch } from './operator.ts';

export function cellAccumulator(call: AggregateCall, column: number, types: readonly ColumnType[]): Accumulator {
  return new CellAccumulator(
    foldingOf(call, types[column]!, call.second === undefined ? null : types[call.second]!),
    call,
    column,
    types,
  );
}

/** The function as a fold over cells of a type, and of the type of its second argument. */
export function foldingOf(
  { function: name, descending = false, wire }: Pick<AggregateCall, 'function' | 'descending' | 'wire'>,
  type: ColumnType,
  second: ColumnType | null,
  // oxlint-disable-next-line typescript/no-explicit-any -- states go from a folding to itself
): Folding<any> {
  switch (name) {
    case 'count':
      return counted;
    case 'sum':
    case 'avg':
      return wire === 'interval' ? intervalSum(name) : vectors(name);
    case 'min':
      return intervalExtreme(-1);
    case 'max':
      return intervalExtreme(1);
    case 'median':
      return median;
    case 'percentile_cont':
      return continuousPercentile(descending);
    case 'percentile_disc':
      return discretePercentile(type, descending);
    case 'mode':
      return mostFrequent(type, descending);
    case 'any_value':
      return firstValue(type);
    case 'bit_and':
      return bits((a, b) => a & b);
    case 'bit_or':
      return bits((a, b) => a | b);
    case 'bit_xor':
      return bits((a, b) => a ^ b);
    case 'bool_and':
      return boolean((all, each) => all && each);
    case 'bool_or':
      return boolean((any, each) => any || each);
    case 'string_agg':
      return joined;
    case 'array_agg':
      return listFolding(type);
    case 'json_agg':
      return listFolding(type, ', ');
    case 'json_object_agg':
      return objectFolding(second!);
    case 'jsonb_object_agg':
      return binaryObject(second!);
    case 'array':
      return elements(type);
    case 'collect':
      return { ...listFolding(type), takesNull: false, ofNothing: '[]' };
    default: {
      const folding = momentFoldings[name];
      if (folding === undefined) throw new AssertionError(`${name} adds up in columns`);
      return folding;
    }
  }
}

const stateBytes = 64;

class CellAccumulator<S> extends RowByRow {
  readonly #folding: Folding<S>;
  readonly #column: number;
  readonly #second: number | null;
  readonly #when: number | null;
  readonly #types: readonly ColumnType[];
  readonly #states: (S | undefined)[] = [];
  readonly #met: Set<Cell>[] | null;
  bytes = 0;

  constructor(folding: Folding<S>, call: AggregateCall, column: number, types: readonly ColumnType[]) {
    super();
    this.#folding = folding;
    this.#column = column;
    this.#second = call.second ?? null;
    this.#when = call.when ?? null;
    this.#types = types;
    this.#met = call.distinct ? [] : null;
  }

  update(batch: Batch, groups: Int32Array): void {
    const vector = batch.columns[this.#column]!;
    const type = this.#types[this.#column]!;
    const second = this.#second === null ? null : batch.columns[this.#second]!;
    const { selection, first, count } = batch;
    const when = this.#when === null ? null : batch.columns[this.#when]!;
    const takesNull = this.#folding.takesNull === true;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      const cell = cellAt(vector, type, i);
      if (cell === null && !takesNull) continue;
      if (when !== null && cellAt(when, 'boolean', i) !== true) continue;
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

/** A mean is the sum divided as PostgreSQL divides an interval. */
function intervalSum(name: 'sum' | 'avg'): Folding<{ sum: Interval; count: number }> {
  return {
    yields: 'string',
    start: () => ({ sum: parseInterval('0'), count: 0 }),
    take: (state, cell) => {
      state.sum = sumOf(state.sum, parseInterval(cell as string));
      state.count++;
      return 0;
    },
    finish: ({ sum, count }) => formatInterval(name === 'sum' ? sum : scaleInterval(sum, (n) => n / count)),
  };
}

/** By length; of intervals of one length the first. */
function intervalExtreme(sign: 1 | -1): Folding<{ cell: Cell; length: bigint }> {
  return {
    yields: 'string',
    start: () => ({ cell: null, length: 0n }),
    take: (state, cell) => {
      const length = lengthOf(parseInterval(cell as string));
      const isBetter = sign > 0 ? length > state.length : length < state.length;
      if (state.cell !== null && !isBetter) return 0;
      state.cell = cell;
      state.length = length;
      return 0;
    },
    finish: ({ cell }) => cell,
  };
}

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

/** The first value that there is. */
function firstValue(type: ColumnType): Folding<{ value: Cell }> {
  return {
    yields: type,
    start: () => ({ value: null }),
    take: (state, cell) => {
      if (state.value !== null) return 0;
      state.value = cell;
      return typeof cell === 'string' ? 2 * cell.length : 0;
    },
    finish: ({ value }) => value,
  };
}

function bits(combine: (before: bigint, each: bigint) => bigint): Folding<{ value: bigint | null }> {
  return {
    yields: 'integer',
    start: () => ({ value: null }),
    take: (state, cell) => {
      state.value = state.value === null ? (cell as bigint) : combine(state.value, cell as bigint);
      return 0;
    },
    finish: ({ value }) => value,
  };
}

/** Names with values, as PostgreSQL writes them. */
function objectFolding(type: ColumnType): Folding<{ text: string }> {
  return {
    yields: 'json',
    takesNull: true,
    start: () => ({ text: '' }),
    take: (state, name, value) => {
      const item = `${memberName(name)} : ${jsonText(value, type)}`;
      state.text += `${state.text === '' ? '' : ', '}${item}`;
      checkLength(state.text);
      return 2 * item.length;
    },
    finish: ({ text }) => `{ ${text} }`,
  };
}

/** As jsonb has it: of members by one name the last, in the order of the lengths of their names. */
function binaryObject(type: ColumnType): Folding<{ readonly members: Map<string, string>; size: number }> {
  return {
    yields: 'json',
    takesNull: true,
    start: () => ({ members: new Map(), size: 0 }),
    take: (state, name, value) => {
      const [key, item] = [memberName(name), jsonText(value, type)];
      const known = state.members.get(key);
      const added = item.length - (known === undefined ? -key.length - 4 : known.length);
      state.size += added;
      if (state.size > textMax) throw tooLong();
      state.members.set(key, item);
      return 2 * added;
    },
    finish: ({ members }) => {
      const sorted = [...members].sort(([a], [b]) => Buffer.byteLength(a) - Buffer.byteLength(b) || compareText(a, b));
      return `{${sorted.map(([key, item]) => `${key}: ${item}`).join(', ')}}`;
    },
  };
}

function memberName(name: Cell): string {
  if (name === null) throw invalid('a name of JSON_OBJECT_AGG is not NULL');
  return JSON.stringify(String(name));
}

function listFolding(type: ColumnType, between = ','): Folding<{ text: string }> {
  return {
    yields: 'json',
    takesNull: true,
    start: () => ({ text: '' }),
    take: (state, cell) => {
      const item = jsonText(cell, type);
      state.text += `${state.text === '' ? '' : between}${item}`;
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
