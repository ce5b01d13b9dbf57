/**
 * Window functions: each row gets results of the rows around it in its partition. Rows are collected, their numbers sorted by
 * partition and order, results worked out along that order, and the rows delivered as they came, with columns more. Each step
 * is bounded. Doubles are added one by one in the order of the window, for each frame anew unless it only grows.
 */
import type { Vector } from '../../log/values/columns.ts';
import { type Cell, type ColumnType, compareText, I64_MAX, I64_MIN } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import { integerOverflow, numberOverflow } from '../expressions/evaluate.ts';
import type { OverCall, OverNode } from '../logical-plan.ts';
import { CollectedRows } from './collected-rows.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';
import { type Compare, comparator } from './row-order.ts';
import { sortedRows } from './row-sort.ts';

const outputRows = 4_096;
const stepsPerCall = 8_192;
const resultBytes = 16;

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
    const results = calls.map(() => Array.from<Cell>({ length: rows }));
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
      return ranked(part, call.function, results);
    case 'lag':
    case 'lead':
      return shifted(part, call, results);
    default:
      return framed(part, call, results);
  }
}

function* ranked({ order, start, end, peers }: Part, how: 'row_number' | 'rank' | 'dense_rank', results: Cell[]): Steps {
  let rank = 0;
  for (let at = start; at < end; at++) {
    const isNew = at === start || peers(order[at - 1]!, order[at]!) !== 0;
    if (how === 'row_number' || (how === 'rank' && isNew)) rank = at - start + 1;
    else if (isNew) rank++;
    results[order[at]!] = BigInt(rank);
    if ((at - start) % stepsPerCall === stepsPerCall - 1) yield;
  }
}

function* shifted(part: Part, call: OverCall, results: Cell[]): Steps {
  const { order, start, end, vectors, types, execution } = part;
  const by = call.offset === null ? 1 : execution.rowLimit(call.offset);
  const step = call.function === 'lag' ? -by : by;
  const column = call.column!;
  for (let at = start; at < end; at++) {
    const from = at + step;
    const isInside = from >= start && from < end;
    results[order[at]!] = isInside
      ? cellOf(vectors[column]!, types[column]!, order[from]!, call.type)
      : call.otherwise === null
        ? null
        : cellOf(vectors[call.otherwise]!, types[call.otherwise]!, order[at]!, call.type);
    if ((at - start) % stepsPerCall === stepsPerCall - 1) yield;
  }
}

function cellOf(vector: Vector, type: ColumnType, row: number, wanted: ColumnType): Cell {
  const cell = cellAt(vector, type, row);
  return wanted === 'number' && typeof cell === 'bigint' ? Number(cell) : cell;
}

/** What adds up over a frame: `add` while it grows at its end, `result` as it is. */
interface Running {
  add(cell: Cell): void;
  result(): Cell;
}

function* framed(part: Part, call: OverCall, results: Cell[]): Steps {
  const { order, start, end, vectors, types, execution } = part;
  const { column } = call;
  const cell = (at: number): Cell => (column === null ? true : cellAt(vectors[column]!, types[column]!, order[at]!));
  const frames = new Frames(part, call, execution);
  let running = runningOf(call);
  let from = start;
  let to = start;
  let steps = 0;
  for (let at = start; at < end; at++) {
    const frame = frames.of(at);
    if (call.function === 'first_value' || call.function === 'last_value') {
      const place = call.function === 'first_value' ? frame.from : frame.to - 1;
      results[order[at]!] = frame.from < frame.to ? cell(place) : null;
    } else {
      if (frame.from !== from || frame.to < to) {
        running = runningOf(call);
        from = frame.from;
        to = frame.from;
      }
      for (; to < frame.to; to++) {
        running.add(cell(to));
        if (++steps % stepsPerCall === 0) yield;
      }
      results[order[at]!] = running.result();
    }
    if (++steps % stepsPerCall === 0) yield;
  }
}

/** Places from .. to-1 of each row's frame. */
class Frames {
  readonly #part: Part;
  readonly #call: OverCall;
  readonly #before: number;
  readonly #after: number;
  /** Where the peers of the row asked for last begin and end. */
  #peersFrom: number;
  #peersTo: number;

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

  /** Asked of rising places. */
  of(at: number): { readonly from: number; readonly to: number } {
    const { start, end } = this.#part;
    const { unit, from, to } = this.#call.frame;
    if (unit === 'range') this.#findPeers(at);
    const first = from.kind === 'unbounded' ? start : unit === 'range' ? this.#peersFrom : at + this.#before;
    const last = to.kind === 'unbounded' ? end : unit === 'range' ? this.#peersTo : at + this.#after + 1;
    const begin = Math.min(end, Math.max(start, first));
    return { from: begin, to: Math.max(begin, Math.min(end, last)) };
  }

  #findPeers(at: number): void {
    const { order, end, peers } = this.#part;
    if (at < this.#peersTo) return;
    this.#peersFrom = at;
    let to = at + 1;
    while (to < end && peers(order[at]!, order[to]!) === 0) to++;
    this.#peersTo = to;
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
          if (cell !== null && (best === null || compared(cell, best) * sign > 0)) best = cell;
        },
        result: () => best,
      };
    }
  }
}

function compared(a: Cell, b: Cell): number {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  return a! < b! ? -1 : a! > b! ? 1 : 0;
}
