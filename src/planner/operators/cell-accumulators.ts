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
  cellType: ColumnType,
  secondType: ColumnType | null,
  // oxlint-disable-next-line typescript/no-explicit-any -- states go from a folding to itself
): Folding<any> {
  switch (name) {
    case 'count':
      return countFolding;
    case 'sum':
    case 'avg':
      return wire === 'interval' ? intervalSumFolding(name) : vectorFolding(name);
    case 'min':
      return intervalExtremeFolding(-1);
    case 'max':
      return intervalExtremeFolding(1);
    case 'median':
      return median;
    case 'percentile_cont':
      return continuousPercentile(descending);
    case 'percentile_disc':
      return discretePercentile(cellType, descending);
    case 'mode':
      return mostFrequent(cellType, descending);
    case 'any_value':
      return anyValueFolding(cellType);
    case 'bit_and':
      return bitFolding((a, b) => a & b);
    case 'bit_or':
      return bitFolding((a, b) => a | b);
    case 'bit_xor':
      return bitFolding((a, b) => a ^ b);
    case 'bool_and':
      return booleanFolding((all, each) => all && each);
    case 'bool_or':
      return booleanFolding((any, each) => any || each);
    case 'string_agg':
      return stringAggFolding;
    case 'array_agg':
      return listFolding(cellType);
    case 'json_agg':
      return listFolding(cellType, ', ');
    case 'json_object_agg':
      return objectFolding(secondType!);
    case 'jsonb_object_agg':
      return jsonbObjectFolding(secondType!);
    case 'array':
      return arrayFolding(cellType);
    case 'collect':
      return { ...listFolding(cellType), takesNull: false, ofNothing: '[]' };
    default: {
      const momentFolding = momentFoldings[name];
      if (momentFolding === undefined) throw new AssertionError(`${name} adds up in columns`);
      return momentFolding;
    }
  }
}

const foldStateBytes = 64;

class CellAccumulator<S> extends RowByRow {
  readonly #cellFolding: Folding<S>;
  readonly #foldedColumn: number;
  readonly #secondColumn: number | null;
  readonly #filterColumn: number | null;
  readonly #columnTypes: readonly ColumnType[];
  readonly #foldStates: (S | undefined)[] = [];
  readonly #distinctCells: Set<Cell>[] | null;
  bytes = 0;

  constructor(folding: Folding<S>, call: AggregateCall, column: number, types: readonly ColumnType[]) {
    super();
    this.#cellFolding = folding;
    this.#foldedColumn = column;
    this.#secondColumn = call.second ?? null;
    this.#filterColumn = call.when ?? null;
    this.#columnTypes = types;
    this.#distinctCells = call.distinct ? [] : null;
  }

  update(batch: Batch, groupNumbers: Int32Array): void {
    const foldedVector = batch.columns[this.#foldedColumn]!;
    const foldedType = this.#columnTypes[this.#foldedColumn]!;
    const secondVector = this.#secondColumn === null ? null : batch.columns[this.#secondColumn]!;
    const { selection, first, count } = batch;
    const filterVector = this.#filterColumn === null ? null : batch.columns[this.#filterColumn]!;
    const takesNull = this.#cellFolding.takesNull === true;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      const foldedCell = cellAt(foldedVector, foldedType, i);
      if (foldedCell === null && !takesNull) continue;
      if (filterVector !== null && cellAt(filterVector, 'boolean', i) !== true) continue;
      const group = groupNumbers[j]!;
      if (this.#distinctCells !== null && !this.#isNewCell(group, foldedCell)) continue;
      let foldState = this.#foldStates[group];
      if (foldState === undefined) {
        this.#foldStates[group] = foldState = this.#cellFolding.start();
        this.bytes += foldStateBytes;
      }
      this.bytes += this.#cellFolding.take(
        foldState,
        foldedCell,
        secondVector === null ? null : cellAt(secondVector, this.#columnTypes[this.#secondColumn!]!, i),
      );
    }
  }

  result(groupNumbers: Int32Array): Vector {
    const resultBuilder = new VectorBuilder(this.#cellFolding.yields, Math.max(1, groupNumbers.length));
    for (const group of groupNumbers) {
      const foldState = this.#foldStates[group];
      resultBuilder.append(foldState === undefined ? (this.#cellFolding.ofNothing ?? null) : this.#cellFolding.finish(foldState));
    }
    return resultBuilder.build();
  }

  #isNewCell(group: number, cell: Cell): boolean {
    const groupCells = (this.#distinctCells![group] ??= new Set());
    const cellIdentity = cell instanceof Float32Array ? vectorText(cell) : cell;
    if (groupCells.has(cellIdentity)) return false;
    groupCells.add(cellIdentity);
    this.bytes += foldStateBytes + (typeof cellIdentity === 'string' ? 2 * cellIdentity.length : 0);
    return true;
  }
}

/** Vectors that differ: in columns, all other values are counted. */
const countFolding: Folding<{ count: bigint }> = {
  yields: 'integer',
  ofNothing: 0n,
  start: () => ({ count: 0n }),
  take: (foldState) => {
    foldState.count++;
    return 0;
  },
  finish: ({ count }) => count,
};

/** Component by component, as pgvector adds: sums in 32 bits, means in 64. */
function vectorFolding(name: 'sum' | 'avg'): Folding<{ sums: Float32Array | Float64Array; count: number }> {
  const SumArray = name === 'sum' ? Float32Array : Float64Array;
  return {
    yields: 'string',
    start: () => ({ sums: new SumArray(0), count: 0 }),
    take: (state, cell) => {
      const foldedVector = vectorIn(cell)!;
      const isFirstVector = state.count++ === 0;
      if (isFirstVector) state.sums = new SumArray(foldedVector.length);
      const { sums } = state;
      if (foldedVector.length !== sums.length) throw differentDimensions(sums.length, foldedVector.length);
      for (let i = 0; i < sums.length; i++) sums[i]! += foldedVector[i]!;
      return isFirstVector ? sums.byteLength : 0;
    },
    finish: ({ sums, count }) => {
      const vectorResult = name === 'sum' ? (sums as Float32Array) : Float32Array.from(sums, (sum) => sum / count);
      if (!vectorResult.every(Number.isFinite)) throw numberOverflow();
      return vectorText(vectorResult);
    },
  };
}

/** A mean is the sum divided as PostgreSQL divides an interval. */
function intervalSumFolding(name: 'sum' | 'avg'): Folding<{ sum: Interval; count: number }> {
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
function intervalExtremeFolding(extremeSign: 1 | -1): Folding<{ cell: Cell; length: bigint }> {
  return {
    yields: 'string',
    start: () => ({ cell: null, length: 0n }),
    take: (state, cell) => {
      const intervalLength = lengthOf(parseInterval(cell as string));
      const isNewExtreme = extremeSign > 0 ? intervalLength > state.length : intervalLength < state.length;
      if (state.cell !== null && !isNewExtreme) return 0;
      state.cell = cell;
      state.length = intervalLength;
      return 0;
    },
    finish: ({ cell }) => cell,
  };
}

function booleanFolding(combineBooleans: (before: boolean, each: boolean) => boolean): Folding<{ value: boolean | null }> {
  return {
    yields: 'boolean',
    start: () => ({ value: null }),
    take: (state, cell) => {
      state.value = state.value === null ? cell === true : combineBooleans(state.value, cell === true);
      return 0;
    },
    finish: ({ value }) => value,
  };
}

const stringAggFolding: Folding<{ text: string; size: number }> = {
  yields: 'string',
  start: () => ({ text: '', size: -1 }),
  take: (foldState, foldedCell, separator) => {
    const addedText = (foldState.size < 0 || separator === null ? '' : String(separator)) + String(foldedCell);
    foldState.text += addedText;
    foldState.size = Math.max(0, foldState.size) + addedText.length;
    checkLength(foldState.text);
    return 2 * addedText.length;
  },
  finish: ({ text }) => text,
};

/** The first value that there is. */
function anyValueFolding(type: ColumnType): Folding<{ value: Cell }> {
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

function bitFolding(combineBits: (before: bigint, each: bigint) => bigint): Folding<{ value: bigint | null }> {
  return {
    yields: 'integer',
    start: () => ({ value: null }),
    take: (state, cell) => {
      state.value = state.value === null ? (cell as bigint) : combineBits(state.value, cell as bigint);
      return 0;
    },
    finish: ({ value }) => value,
  };
}

/** Names with values, as PostgreSQL writes them. */
function objectFolding(valueType: ColumnType): Folding<{ text: string }> {
  return {
    yields: 'json',
    takesNull: true,
    start: () => ({ text: '' }),
    take: (state, memberNameCell, memberValue) => {
      const memberText = `${objectMemberName(memberNameCell)} : ${jsonCellText(memberValue, valueType)}`;
      state.text += `${state.text === '' ? '' : ', '}${memberText}`;
      checkLength(state.text);
      return 2 * memberText.length;
    },
    finish: ({ text }) => `{ ${text} }`,
  };
}

/** As jsonb has it: of members by one name the last, in the order of the lengths of their names. */
function jsonbObjectFolding(valueType: ColumnType): Folding<{ readonly members: Map<string, string>; size: number }> {
  return {
    yields: 'json',
    takesNull: true,
    start: () => ({ members: new Map(), size: 0 }),
    take: (state, memberNameCell, memberValue) => {
      const [memberKey, memberText] = [objectMemberName(memberNameCell), jsonCellText(memberValue, valueType)];
      const knownMember = state.members.get(memberKey);
      const added = memberText.length - (knownMember === undefined ? -memberKey.length - 4 : knownMember.length);
      state.size += added;
      if (state.size > textMax) throw tooLong();
      state.members.set(memberKey, memberText);
      return 2 * added;
    },
    finish: ({ members }) => {
      const sortedMembers = [...members].sort(([a], [b]) => Buffer.byteLength(a) - Buffer.byteLength(b) || compareText(a, b));
      return `{${sortedMembers.map(([key, item]) => `${key}: ${item}`).join(', ')}}`;
    },
  };
}

function objectMemberName(name: Cell): string {
  if (name === null) throw invalid('a name of JSON_OBJECT_AGG is not NULL');
  return JSON.stringify(String(name));
}

function listFolding(elementType: ColumnType, listSeparator = ','): Folding<{ text: string }> {
  return {
    yields: 'json',
    takesNull: true,
    start: () => ({ text: '' }),
    take: (state, cell) => {
      const memberText = jsonCellText(cell, elementType);
      state.text += `${state.text === '' ? '' : listSeparator}${memberText}`;
      checkLength(state.text);
      return 2 * memberText.length;
    },
    finish: ({ text }) => `[${text}]`,
  };
}

/** An array as Postgres writes it. */
function arrayFolding(elementType: ColumnType): Folding<{ text: string }> {
  return {
    ...listFolding(elementType),
    yields: 'string',
    take: (state, cell) => {
      const memberText =
        cell === null ? 'NULL' : quotedElement(elementType === 'timestamp' ? formatInstant(cell as bigint) : shortCellText(cell));
      state.text += `${state.text === '' ? '' : ','}${memberText}`;
      checkLength(state.text);
      return 2 * memberText.length;
    },
    finish: ({ text }) => `{${text}}`,
  };
}

const shortCellText = (cell: Cell): string => (typeof cell === 'boolean' ? (cell ? 't' : 'f') : String(cell));

function jsonCellText(cell: Cell, type: ColumnType): string {
  if (cell === null) return 'null';
  if (type === 'json') return String(cell);
  if (type === 'timestamp') return JSON.stringify(formatInstant(cell as bigint));
  return typeof cell === 'string' ? JSON.stringify(cell) : String(cell);
}
