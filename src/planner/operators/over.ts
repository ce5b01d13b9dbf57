/**
 * Window functions: each row gets results of the rows around it in its partition. Rows are collected, their numbers sorted by
 * partition and order, results worked out along that order, and the rows delivered as they came, with columns more. Each step
 * is bounded. Doubles are added one by one in the order of the window, for each frame anew unless it only grows.
 */
import type { Vector } from '../../log/values/columns.ts';
import { type Cell, type ColumnType, compareText, I64_MAX, I64_MIN } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import { integerOverflow, numberOverflow } from '../expressions/evaluate.ts';
import { type Cost, turnMost } from '../expressions/work.ts';
import type { OverCall, OverNode } from '../logical-plan.ts';
import type { WindowFunction } from '../statement.ts';
import { CollectedRows } from './collected-rows.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';
import { type Compare, comparator } from './row-order.ts';
import { sortedRows } from './row-sort.ts';

const outputRows = 4_096;
const stepsPerCall = 8_192;
const resultBytes = 16;

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
  count: { call: 150, character: 2 },
  sum: { call: 200, character: 0 },
  avg: { call: 200, character: 0 },
  min: { call: 150, character: 3 },
  max: { call: 150, character: 3 },
};

/** Counts the work of a function; true: the turn is full. */
class Spent {
  readonly #cost: Cost;
  #ns = 0;

  constructor({ function: name }: OverCall) {
    this.#cost = overFunctions[name];
  }

  on(cell: Cell): boolean {
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
  #held = 0;
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
    this.#held = this.#execution.memory.change(this.#held, this.#rows.bytes + more);
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
      const part: Part = { order, start, end, peers, vectors, types, execution: this.#execution };
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
}

type Steps = Generator<undefined, void, void>;

function along(part: Part, call: OverCall, results: Cell[]): Steps {
  switch (call.function) {
    case 'row_number':
    case 'rank':
    case 'dense_rank':
      return rank(part, call, results);
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
    if (spent.on(null)) yield;
  }
}

function* shift(part: Part, call: OverCall, results: Cell[]): Steps {
  const { order, start, end, vectors, types, execution } = part;
  const by = call.offset === null ? 1 : execution.rowLimit(call.offset);
  const step = call.function === 'lag' ? -by : by;
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
    if (spent.on(result)) yield;
  }
}

function cellOf(vector: Vector, type: ColumnType, row: number, wanted: ColumnType): Cell {
  const cell = cellAt(vector, type, row);
  return wanted === 'number' && typeof cell === 'bigint' ? Number(cell) : cell;
}

/** An aggregate over a moving frame: `add` extends the frame at its end, `result` reads it. */
interface Running {
  add(cell: Cell): void;
  result(): Cell;
}

function* aggregateFrames(part: Part, call: OverCall, results: Cell[]): Steps {
  const { order, start, end, vectors, types, execution } = part;
  const { column } = call;
  const cell = (at: number): Cell => (column === null ? true : cellAt(vectors[column]!, types[column]!, order[at]!));
  const frames = new Frames(part, call, execution);
  let running = runningOf(call);
  let from = start;
  let to = start;
  const spent = new Spent(call);
  for (let at = start; at < end; at++) {
    while (!frames.findPeers(at)) yield;
    const frame = frames.frameAt(at);
    if (call.function === 'first_value' || call.function === 'last_value') {
      const place = call.function === 'first_value' ? frame.from : frame.to - 1;
      const result = frame.from < frame.to ? cell(place) : null;
      results[order[at]!] = result;
      if (spent.on(result)) yield;
    } else {
      if (frame.from !== from || frame.to < to) {
        running = runningOf(call);
        from = frame.from;
        to = frame.from;
      }
      for (; to < frame.to; to++) {
        const next = cell(to);
        running.add(next);
        if (spent.on(next)) yield;
      }
      results[order[at]!] = running.result();
    }
    if (spent.on(null)) yield;
  }
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

function runningOf({ function: name, type }: OverCall): Running {
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
    default: {
      const sign = name === 'min' ? -1 : 1;
      let best: Cell = null;
      return {
        add: (cell) => {
          if (cell !== null && (best === null || compare(cell, best) * sign > 0)) best = cell;
        },
        result: () => best,
      };
    }
  }
}

function compare(a: Cell, b: Cell): number {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  return a! < b! ? -1 : a! > b! ? 1 : 0;
}
