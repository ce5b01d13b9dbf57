/**
 * Functions of the order of values: the middle, percentiles, the most frequent. Values are sorted in runs of bounded length as
 * they come, and the n-th of all is found among the runs, so that no step sorts everything.
 */
import { type Cell, type ColumnType, compareText } from '../../log/values/value.ts';
import { outOfRange } from '../expressions/functions/scalar-function.ts';
import type { Folding } from './aggregate-fold.ts';

const runLength = 4_096;
const valueBytes = 16;

type Run = ArrayLike<Exclude<Cell, null>>;

function compareCells(a: Cell, b: Cell): number {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  return a! < b! ? -1 : a! > b! ? 1 : 0;
}

class OrderedValues {
  readonly #runs: Run[] = [];
  #open: Cell[] = [];
  count = 0;
  /** The second argument of the first row. */
  fraction: Cell = null;

  add(cell: Cell): number {
    this.count++;
    this.#open.push(cell);
    if (this.#open.length === runLength) {
      this.#runs.push(sortedRun(this.#open));
      this.#open = [];
    }
    return valueBytes + (typeof cell === 'string' ? 2 * cell.length : 0);
  }

  /** The value at this rank: the number of values before it. */
  nth(rank: number): Cell {
    const runs = [...this.#runs, sortedRun(this.#open)];
    let from = runs.map(() => 0);
    let to = runs.map((run) => run.length);
    for (let left = rank; ; ) {
      let widest = 0;
      for (let i = 1; i < runs.length; i++) if (to[i]! - from[i]! > to[widest]! - from[widest]!) widest = i;
      const pivot = runs[widest]![(from[widest]! + to[widest]!) >> 1]!;
      const lows = runs.map((run, i) => boundOf(run, pivot, from[i]!, to[i]!, false));
      const highs = runs.map((run, i) => boundOf(run, pivot, lows[i]!, to[i]!, true));
      let below = 0;
      let upTo = 0;
      for (let i = 0; i < runs.length; i++) {
        below += lows[i]! - from[i]!;
        upTo += highs[i]! - from[i]!;
      }
      if (left < below) to = lows;
      else if (left < upTo) return pivot;
      else {
        left -= upTo;
        from = highs;
      }
    }
  }
}

/** Numbers and integers are sorted without a call for each comparison. */
function sortedRun(cells: readonly Cell[]): Run {
  const [first] = cells;
  if (typeof first === 'number') return Float64Array.from(cells as number[]).sort();
  if (typeof first === 'bigint') return BigInt64Array.from(cells as bigint[]).sort();
  return [...cells].sort(compareCells) as Exclude<Cell, null>[];
}

/** How many of from .. to are before a value, or before and equal to it. */
function boundOf(run: Run, value: Cell, from: number, to: number, inclusive: boolean): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >> 1;
    const order = compareCells(run[middle]!, value);
    if (order < 0 || (inclusive && order === 0)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function orderedFolding(yields: ColumnType, finish: (values: OrderedValues) => Cell): Folding<OrderedValues> {
  return {
    yields,
    start: () => new OrderedValues(),
    take: (values, cell, second) => {
      if (values.count === 0) values.fraction = second;
      return values.add(cell);
    },
    finish,
  };
}

const number = (cell: Cell): number => Number(cell) + 0;

export const median: Folding<OrderedValues> = orderedFolding('number', (values) => {
  const middle = values.count >> 1;
  const high = number(values.nth(middle));
  if (values.count % 2 === 1) return high;
  const low = number(values.nth(middle - 1));
  // Halves first where the sum would be too large.
  const mean = (low + high) / 2;
  return Number.isFinite(mean) ? mean + 0 : low / 2 + high / 2;
});

function fractionOf({ fraction }: OrderedValues): number | null {
  if (fraction === null) return null;
  const share = Number(fraction);
  if (!(share >= 0 && share <= 1)) throw outOfRange('a percentile is a number from 0 to 1');
  return share;
}

/** Between the two values at a share of the way from the first to the last. */
export function continuousPercentile(descending: boolean): Folding<OrderedValues> {
  return orderedFolding('number', (values) => {
    const share = fractionOf(values);
    if (share === null) return null;
    const at = share * (values.count - 1);
    const nth = (n: number): number => number(values.nth(descending ? values.count - 1 - n : n));
    const low = nth(Math.floor(at));
    if (Math.floor(at) === Math.ceil(at)) return low;
    return low + (at - Math.floor(at)) * (nth(Math.ceil(at)) - low);
  });
}

/** The first value up to which at least a share of all lie. */
export function discretePercentile(yields: ColumnType, descending: boolean): Folding<OrderedValues> {
  return orderedFolding(yields, (values) => {
    const share = fractionOf(values);
    if (share === null) return null;
    const n = Math.max(0, Math.ceil(share * values.count) - 1);
    return values.nth(descending ? values.count - 1 - n : n);
  });
}

interface Frequencies {
  readonly counts: Map<Cell, number>;
  best: Cell;
  most: number;
}

/** The most frequent value; of several the first in the order. */
export function mostFrequent(yields: ColumnType, descending: boolean): Folding<Frequencies> {
  return {
    yields,
    start: () => ({ counts: new Map(), best: null, most: 0 }),
    take: (state, cell) => {
      const before = state.counts.get(cell) ?? 0;
      const count = before + 1;
      state.counts.set(cell, count);
      const order = count === state.most ? compareCells(cell, state.best) : 0;
      if (count > state.most || (descending ? order > 0 : order < 0)) {
        state.best = cell;
        state.most = count;
      }
      return before > 0 ? 0 : 4 * valueBytes + (typeof cell === 'string' ? 2 * cell.length : 0);
    },
    finish: ({ best }) => best,
  };
}
