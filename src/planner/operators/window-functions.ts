/**
 * Window functions: each row gets results of the rows around it in its partition. Rows are collected, their numbers sorted by
 * partition and order, results worked out along that order, and the rows delivered as they came, with columns more. Each step
 * is bounded. Doubles are added one by one in the order of the window, for each frame anew unless it only grows.
 */
import type { Vector } from '../../log/values/columns.ts';
import { type Cell, type ColumnType, compareText, I64_MAX, I64_MIN } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import { integerOverflow, numberOverflow } from '../expressions/evaluate.ts';
import { type Cost, turnMost } from '../expressions/expression-cost.ts';
import type { OverCall, OverNode } from '../logical-plan.ts';
import type { WindowFunction } from '../syntax/statement.ts';
import { ServiceError } from '../../errors.ts';
import { aggregateFunctions, type AggregateName } from '../aggregate-functions.ts';
import { foldingOf } from './cell-accumulators.ts';
import { CollectedRows } from './collected-rows.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';
import { type Compare, comparator } from './row-order.ts';
import { sortedRows } from './row-sort.ts';

const outputRows = 4_096;
const stepsPerCall = 8_192;
const resultBytes = 16;
/** Bytes of texts that are made before the memory for them is asked for. */
const textsStep = 1 << 20;

/**
 * Nanoseconds of a row of each function, and of a character where it is of texts. A frame that moves is gone through again: each of
 * its rows is a row of the function.
 */
export const overFunctions: Readonly<Record<WindowFunction, Cost>> = {
  row_number: { call: 150, character: 0 },
  rank: { call: 150, character: 0 },
  dense_rank: { call: 150, character: 0 },
  lag: { call: 150, character: 2 },
  lead: { call: 150, character: 2 },
  first_value: { call: 200, character: 2 },
  last_value: { call: 200, character: 2 },
  nth_value: { call: 200, character: 2 },
  ntile: { call: 150, character: 0 },
  percent_rank: { call: 150, character: 0 },
  cume_dist: { call: 150, character: 0 },
  ...aggregateCosts(),
};

/** An aggregate over a frame costs more than over a group: its cells are read one by one. */
function aggregateCosts(): Record<AggregateName, Cost> {
  const costs = Object.entries(aggregateFunctions).map(([name, { cost }]) => [
    name,
    { call: cost.call + 150, character: cost.character + 1 },
  ]);
  return Object.fromEntries(costs) as Record<AggregateName, Cost>;
}

/** Counts the work of a function; true: the turn is full. */
class Spent {
  readonly #cost: Cost;
  #ns = 0;

  constructor({ function: name }: OverCall) {
    this.#cost = overFunctions[name];
  }

  addCost(cell: Cell): boolean {
    this.#ns += this.#cost.call + (typeof cell === 'string' ? cell.length * this.#cost.character : 0);
    if (this.#ns < turnMost) return false;
    this.#ns = 0;
    return true;
  }
}

export class OverOperator implements Operator {
  readonly #input: Operator;
  readonly #node: OverNode;
  readonly #execution: Execution;
  readonly #rows: CollectedRows;
  #heldBytes = 0;
  /** Bytes of the texts that frames yield, and of those that are accounted for. */
  #texts = 0;
  #textsHeld = 0;
  #work: Generator<undefined, void, void> | null = null;
  #columns: readonly Vector[] | null = null;
  #at = 0;

  constructor(input: Operator, node: OverNode, execution: Execution) {
    this.#input = input;
    this.#node = node;
    this.#execution = execution;
    this.#rows = new CollectedRows(node.input.columns.map(({ type }) => type));
  }

  next(): Batch | null {
    if (this.#columns) return this.#deliver(this.#columns);
    if (this.#work) {
      this.#work.next();
      return emptyBatch;
    }
    const batch = this.#input.next();
    if (batch === null) this.#work = this.#compute();
    else if (batch.count > 0) {
      this.#rows.append(batch);
      this.#hold(0);
    }
    return emptyBatch;
  }

  close(): void {
    this.#input.close();
  }

  #hold(more: number): void {
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, this.#rows.bytes + more);
  }

  #deliver(columns: readonly Vector[]): Batch | null {
    const count = Math.min(outputRows, this.#rows.length - this.#at);
    if (count <= 0) return null;
    const first = this.#at;
    this.#at += count;
    return { columns, selection: null, first, count };
  }

  *#compute(): Generator<undefined, void, void> {
    const { partition, keys, calls } = this.#node;
    const rows = this.#rows.length;
    const vectors = yield* this.#rows.vectors();
    this.#hold(rows * (4 + calls.length * resultBytes));
    const byPartition = partition.map((column) => ({ column, descending: false, collate: 'codepoint' }) as const);
    const order = yield* sortedRows(vectors, [...byPartition, ...keys], rows);
    const grow = (bytes: number): void => {
      this.#texts += bytes;
      if (this.#texts - this.#textsHeld < textsStep) return;
      this.#textsHeld = this.#texts;
      this.#hold(rows * (4 + calls.length * resultBytes) + this.#texts);
    };
    const samePartition = comparator(vectors, byPartition, rows);
    const peers = keys.length === 0 ? all : comparator(vectors, keys, rows);
    const types = this.#node.input.columns.map(({ type }) => type);
    const results: Cell[][] = [];
    for (const _ of calls) {
      results.push(Array<Cell>(rows));
      yield;
    }
    for (let start = 0; start < rows; ) {
      let end = start + 1;
      while (end < rows && samePartition(order[start]!, order[end]!) === 0) {
        end++;
        if ((end - start) % stepsPerCall === 0) yield;
      }
      const part: Part = { order, start, end, peers, vectors, types, execution: this.#execution, grow };
      for (const [c, call] of calls.entries()) yield* along(part, call, results[c]!);
      start = end;
      yield;
    }
    const columns: Vector[] = [...vectors];
    for (const [c, call] of calls.entries()) {
      const builder = new VectorBuilder(call.type, Math.max(1, rows));
      for (let row = 0; row < rows; row++) {
        builder.append(results[c]![row] ?? null);
        if (row % stepsPerCall === 0) yield;
      }
      columns.push(builder.build());
    }
    this.#columns = columns;
  }
}

/** Without an order all rows are peers. */
const all: Compare = () => 0;

/** Rows of a partition: order[start .. end). */
interface Part {
  readonly order: Int32Array;
  readonly start: number;
  readonly end: number;
  readonly peers: Compare;
  readonly vectors: readonly Vector[];
  readonly types: readonly ColumnType[];
  readonly execution: Execution;
  /** Accounts for the bytes of a text that a frame yields. */
  grow(bytes: number): void;
}

type Steps = Generator<undefined, void, void>;

function along(part: Part, call: OverCall, results: Cell[]): Steps {
  switch (call.function) {
    case 'row_number':
    case 'rank':
    case 'dense_rank':
      return rank(part, call, results);
    case 'percent_rank':
    case 'cume_dist':
      return share(part, call, results);
    case 'ntile':
      return tile(part, call, results);
    case 'first_value':
    case 'last_value':
    case 'nth_value':
      return pick(part, call, results);
    case 'lag':
    case 'lead':
      return shift(part, call, results);
    default:
      return aggregateFrames(part, call, results);
  }
}

function* rank({ order, start, end, peers }: Part, call: OverCall, results: Cell[]): Steps {
  const { function: how } = call;
  const spent = new Spent(call);
  let rank = 0;
  for (let at = start; at < end; at++) {
    const isNew = at === start || peers(order[at - 1]!, order[at]!) !== 0;
    if (how === 'row_number' || (how === 'rank' && isNew)) rank = at - start + 1;
    else if (isNew) rank++;
    results[order[at]!] = BigInt(rank);
    if (spent.addCost(null)) yield;
  }
}

/** The share of the rows before a row's peers among all others, or of those up to its last peer among all. */
function* share({ order, start, end, peers }: Part, call: OverCall, results: Cell[]): Steps {
  const isRank = call.function === 'percent_rank';
  const spent = new Spent(call);
  for (let from = start, to = start; from < end; from = to) {
    for (to = from + 1; to < end && peers(order[from]!, order[to]!) === 0; to++) if (spent.addCost(null)) yield;
    const result = isRank ? (from === start ? 0 : (from - start) / (end - start - 1)) : (to - start) / (end - start);
    for (let at = from; at < to; at++) {
      results[order[at]!] = result;
      if (spent.addCost(null)) yield;
    }
  }
}

/** So many parts of a partition whose sizes differ by one at most, the larger ones first. */
function* tile({ order, start, end, vectors, types }: Part, call: OverCall, results: Cell[]): Steps {
  const count = cellAt(vectors[call.column!]!, types[call.column!]!, order[start]!);
  if (count === null) return;
  if ((count as bigint) <= 0n) throw new ServiceError('REL_INVALID', 'NTILE takes a number above zero', { reason: 'tile-count' });
  const parts = Math.min(Number(count), end - start);
  const size = Math.floor((end - start) / parts);
  const larger = (end - start) % parts;
  const spent = new Spent(call);
  for (let at = start; at < end; at++) {
    const n = at - start - larger * (size + 1);
    const part = n < 0 ? Math.floor((at - start) / (size + 1)) : larger + Math.floor(n / size);
    results[order[at]!] = BigInt(part + 1);
    if (spent.addCost(null)) yield;
  }
}

function* shift(part: Part, call: OverCall, results: Cell[]): Steps {
  const { order, start, end, vectors, types, execution } = part;
  const offset = call.offset === null ? 1 : execution.rowLimit(call.offset);
  const step = call.function === 'lag' ? -offset : offset;
  const column = call.column!;
  const spent = new Spent(call);
  for (let at = start; at < end; at++) {
    const from = at + step;
    const isInside = from >= start && from < end;
    const result = isInside
      ? cellOf(vectors[column]!, types[column]!, order[from]!, call.type)
      : call.otherwise === null
        ? null
        : cellOf(vectors[call.otherwise]!, types[call.otherwise]!, order[at]!, call.type);
    results[order[at]!] = result;
    if (spent.addCost(result)) yield;
  }
}

function cellOf(vector: Vector, type: ColumnType, row: number, wanted: ColumnType): Cell {
  const cell = cellAt(vector, type, row);
  return wanted === 'number' && typeof cell === 'bigint' ? Number(cell) : cell;
}

/** An aggregate over a moving frame: `add` extends the frame at its end, `result` reads it. */
interface Running {
  add(cell: Cell, second: Cell): void;
  result(): Cell;
}

function* aggregateFrames(part: Part, call: OverCall, results: Cell[]): Steps {
  const { order, start, end, vectors, types, execution } = part;
  const { column, second, when } = call;
  const cell = (at: number): Cell => (column === null ? true : cellAt(vectors[column]!, types[column]!, order[at]!));
  const argument = (index: number | undefined, at: number): Cell =>
    index === undefined ? null : cellAt(vectors[index]!, types[index]!, order[at]!);
  const frames = new Frames(part, call, execution);
  let running = runningOf(call, types);
  let from = start;
  let to = start;
  const spent = new Spent(call);
  for (let at = start; at < end; at++) {
    while (!frames.findPeers(at)) yield;
    const frame = frames.frameAt(at);
    if (frame.from !== from || frame.to < to) {
      running = runningOf(call, types);
      from = frame.from;
      to = frame.from;
    }
    for (; to < frame.to; to++) {
      const next = cell(to);
      if (when === undefined || argument(when, to) === true) running.add(next, argument(second, to));
      if (spent.addCost(next)) yield;
    }
    const result = running.result();
    results[order[at]!] = result;
    if (typeof result === 'string') part.grow(2 * result.length);
    if (spent.addCost(result)) yield;
  }
}

/** A value of each row's frame, by its place. */
function* pick(part: Part, call: OverCall, results: Cell[]): Steps {
  const { order, start, end, vectors, types, execution } = part;
  const { function: name, column, second } = call;
  const frames = new Frames(part, call, execution);
  const spent = new Spent(call);
  for (let at = start; at < end; at++) {
    while (!frames.findPeers(at)) yield;
    const { from, to } = frames.frameAt(at);
    const nth = name === 'nth_value' ? rowInFrame(cellAt(vectors[second!]!, types[second!]!, order[at]!)) : 1;
    const frameRow = name === 'last_value' ? to - 1 : from + (nth ?? end) - 1;
    const isInside = frameRow >= from && frameRow < to;
    const result = isInside ? cellAt(vectors[column!]!, types[column!]!, order[frameRow]!) : null;
    results[order[at]!] = result;
    if (spent.addCost(result)) yield;
  }
}

/** Counted from 1; null where it is NULL. */
function rowInFrame(nth: Cell): number | null {
  if (nth === null) return null;
  if ((nth as bigint) <= 0n) throw new ServiceError('REL_INVALID', 'NTH_VALUE counts from 1', { reason: 'nth-row' });
  return Number(nth);
}

/** Places from .. to-1 of each row's frame. */
class Frames {
  readonly #part: Part;
  readonly #call: OverCall;
  readonly #before: number;
  readonly #after: number;
  /** Begin and end of the peers of the row asked for last. */
  #peersFrom: number;
  #peersTo: number;
  /** The row whose peers are sought, and those found. */
  #peersAt = -1;
  #seen = 0;

  constructor(part: Part, call: OverCall, { rowLimit }: Execution) {
    this.#part = part;
    this.#call = call;
    const { from, to } = call.frame;
    const rowsOf = (bound: OverCall['frame']['from']): number =>
      bound.kind === 'rows' ? rowLimit(bound.count) * (bound.following ? 1 : -1) : 0;
    this.#before = rowsOf(from);
    this.#after = rowsOf(to);
    this.#peersFrom = part.start;
    this.#peersTo = part.start;
  }

  /** Asked of rising places, once their peers are found. */
  frameAt(at: number): { readonly from: number; readonly to: number } {
    const { start, end } = this.#part;
    const { unit, from, to } = this.#call.frame;
    const first = from.kind === 'unbounded' ? start : unit === 'range' ? this.#peersFrom : at + this.#before;
    const last = to.kind === 'unbounded' ? end : unit === 'range' ? this.#peersTo : at + this.#after + 1;
    const begin = Math.min(end, Math.max(start, first));
    return { from: begin, to: Math.max(begin, Math.min(end, last)) };
  }

  /** False: it has to be asked again, since there are more than it looks at in one turn. */
  findPeers(at: number): boolean {
    const { order, end, peers } = this.#part;
    if (this.#call.frame.unit !== 'range' || at < this.#peersTo) return true;
    if (this.#peersAt !== at) {
      this.#peersAt = at;
      this.#seen = at + 1;
    }
    const most = Math.min(end, this.#seen + stepsPerCall);
    while (this.#seen < most && peers(order[at]!, order[this.#seen]!) === 0) this.#seen++;
    if (this.#seen === most && most < end) return false;
    this.#peersFrom = at;
    this.#peersTo = this.#seen;
    return true;
  }
}

function runningOf(call: OverCall, types: readonly ColumnType[]): Running {
  const { function: name, type } = call;
  let count = 0;
  switch (name) {
    case 'count':
      return {
        add: (cell) => {
          if (cell !== null) count++;
        },
        result: () => BigInt(count),
      };
    case 'sum':
    case 'avg': {
      let exact = 0n;
      let sum = 0;
      let isExact = true;
      return {
        add: (cell) => {
          if (cell === null) return;
          count++;
          if (typeof cell === 'bigint') exact += cell;
          else {
            isExact = false;
            sum += Number(cell);
          }
        },
        result: () => {
          if (count === 0) return null;
          if (name === 'sum' && type === 'integer') {
            if (exact > I64_MAX || exact < I64_MIN) throw integerOverflow();
            return exact;
          }
          const total = isExact ? Number(exact) : sum;
          if (!Number.isFinite(total)) throw numberOverflow();
          return name === 'avg' ? total / count : total;
        },
      };
    }
    case 'min':
    case 'max': {
      const sign = name === 'min' ? -1 : 1;
      let best: Cell = null;
      return {
        add: (cell) => {
          if (cell !== null && (best === null || compare(cell, best) * sign > 0)) best = cell;
        },
        result: () => best,
      };
    }
    default: {
      const of = { function: name as AggregateName };
      const folding = foldingOf(of, types[call.column!]!, call.second === undefined ? null : types[call.second]!);
      let state: unknown;
      return {
        add: (cell, second) => {
          if (cell !== null || folding.takesNull === true) folding.take((state ??= folding.start()), cell, second);
        },
        result: () => (state === undefined ? (folding.ofNothing ?? null) : folding.finish(state)),
      };
    }
  }
}

function compare(a: Cell, b: Cell): number {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  return a! < b! ? -1 : a! > b! ? 1 : 0;
}
