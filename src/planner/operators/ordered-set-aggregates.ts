/**
 * Functions of the order of values: the middle, percentiles, the most frequent. Values are sorted in runs of bounded length as
 * they come, and the n-th of all is found among the runs, so that no step sorts everything.
 */
import { type Cell, type ColumnType, compareText } from '../../log/values/value.ts';
import { outOfRange } from '../expressions/functions/scalar-function.ts';
import type { Folding } from './aggregate-fold.ts';

const sortedRunLength = 4_096;
const orderedValueBytes = 16;

type SortedRun = ArrayLike<Exclude<Cell, null>>;

function compareCells(leftCell: Cell, rightCell: Cell): number {
  if (typeof leftCell === 'string' && typeof rightCell === 'string') return compareText(leftCell, rightCell);
  return leftCell! < rightCell! ? -1 : leftCell! > rightCell! ? 1 : 0;
}

class OrderedValues {
  readonly #sortedRuns: SortedRun[] = [];
  #openRun: Cell[] = [];
  count = 0;
  /** The second argument of the first row. */
  fraction: Cell = null;

  add(cell: Cell): number {
    this.count++;
    this.#openRun.push(cell);
    if (this.#openRun.length === sortedRunLength) {
      this.#sortedRuns.push(sortedRun(this.#openRun));
      this.#openRun = [];
    }
    return orderedValueBytes + (typeof cell === 'string' ? 2 * cell.length : 0);
  }

  /** The value at this rank: the number of values before it. */
  nth(rank: number): Cell {
    const sortedRuns = [...this.#sortedRuns, sortedRun(this.#openRun)];
    let rangeStarts = sortedRuns.map(() => 0);
    let rangeEnds = sortedRuns.map((rankedRun) => rankedRun.length);
    for (let ranksLeft = rank; ; ) {
      let widestRun = 0;
      for (let i = 1; i < sortedRuns.length; i++)
        if (rangeEnds[i]! - rangeStarts[i]! > rangeEnds[widestRun]! - rangeStarts[widestRun]!) widestRun = i;
      const pivotCell = sortedRuns[widestRun]![(rangeStarts[widestRun]! + rangeEnds[widestRun]!) >> 1]!;
      const pivotLows = sortedRuns.map((rankedRun, i) => runBound(rankedRun, pivotCell, rangeStarts[i]!, rangeEnds[i]!, false));
      const pivotHighs = sortedRuns.map((rankedRun, i) => runBound(rankedRun, pivotCell, pivotLows[i]!, rangeEnds[i]!, true));
      let belowPivot = 0;
      let upToPivot = 0;
      for (let i = 0; i < sortedRuns.length; i++) {
        belowPivot += pivotLows[i]! - rangeStarts[i]!;
        upToPivot += pivotHighs[i]! - rangeStarts[i]!;
      }
      if (ranksLeft < belowPivot) rangeEnds = pivotLows;
      else if (ranksLeft < upToPivot) return pivotCell;
      else {
        ranksLeft -= upToPivot;
        rangeStarts = pivotHighs;
      }
    }
  }
}

/** Numbers and integers are sorted without a call for each comparison. */
function sortedRun(openCells: readonly Cell[]): SortedRun {
  const [firstCell] = openCells;
  if (typeof firstCell === 'number') return Float64Array.from(openCells as number[]).sort();
  if (typeof firstCell === 'bigint') return BigInt64Array.from(openCells as bigint[]).sort();
  return [...openCells].sort(compareCells) as Exclude<Cell, null>[];
}

/** How many of from .. to are before a value, or before and equal to it. */
function runBound(rankedRun: SortedRun, pivotCell: Cell, rangeStart: number, rangeEnd: number, isInclusive: boolean): number {
  let [lowIndex, highIndex] = [rangeStart, rangeEnd];
  while (lowIndex < highIndex) {
    const middleIndex = (lowIndex + highIndex) >> 1;
    const cellOrder = compareCells(rankedRun[middleIndex]!, pivotCell);
    if (cellOrder < 0 || (isInclusive && cellOrder === 0)) lowIndex = middleIndex + 1;
    else highIndex = middleIndex;
  }
  return lowIndex;
}

function orderedSetFolding(yields: ColumnType, finish: (values: OrderedValues) => Cell): Folding<OrderedValues> {
  return {
    yields,
    start: () => new OrderedValues(),
    take: (orderedValues, aggregatedCell, fractionCell) => {
      if (orderedValues.count === 0) orderedValues.fraction = fractionCell;
      return orderedValues.add(aggregatedCell);
    },
    finish,
  };
}

const cellNumber = (cell: Cell): number => Number(cell) + 0;

export const median: Folding<OrderedValues> = orderedSetFolding('number', (values) => {
  const middle = values.count >> 1;
  const high = cellNumber(values.nth(middle));
  if (values.count % 2 === 1) return high;
  const low = cellNumber(values.nth(middle - 1));
  // Halves first where the sum would be too large.
  const mean = (low + high) / 2;
  return Number.isFinite(mean) ? mean + 0 : low / 2 + high / 2;
});

function percentileFraction({ fraction }: OrderedValues): number | null {
  if (fraction === null) return null;
  const percentileShare = Number(fraction);
  if (!(percentileShare >= 0 && percentileShare <= 1)) throw outOfRange('a percentile is a number from 0 to 1');
  return percentileShare;
}

/** Between the two values at a share of the way from the first to the last. */
export function continuousPercentile(isDescending: boolean): Folding<OrderedValues> {
  return orderedSetFolding('number', (orderedValues) => {
    const percentileShare = percentileFraction(orderedValues);
    if (percentileShare === null) return null;
    const exactRank = percentileShare * (orderedValues.count - 1);
    const nth = (n: number): number => cellNumber(orderedValues.nth(isDescending ? orderedValues.count - 1 - n : n));
    const lowerCell = nth(Math.floor(exactRank));
    if (Math.floor(exactRank) === Math.ceil(exactRank)) return lowerCell;
    return lowerCell + (exactRank - Math.floor(exactRank)) * (nth(Math.ceil(exactRank)) - lowerCell);
  });
}

/** The first value up to which at least a share of all lie. */
export function discretePercentile(yields: ColumnType, isDescending: boolean): Folding<OrderedValues> {
  return orderedSetFolding(yields, (orderedValues) => {
    const percentileShare = percentileFraction(orderedValues);
    if (percentileShare === null) return null;
    const discreteRank = Math.max(0, Math.ceil(percentileShare * orderedValues.count) - 1);
    return orderedValues.nth(isDescending ? orderedValues.count - 1 - discreteRank : discreteRank);
  });
}

interface CellFrequencies {
  readonly counts: Map<Cell, number>;
  best: Cell;
  most: number;
}

/** The most frequent value; of several the first in the order. */
export function mostFrequent(yields: ColumnType, isDescending: boolean): Folding<CellFrequencies> {
  return {
    yields,
    start: () => ({ counts: new Map(), best: null, most: 0 }),
    take: (frequencies, aggregatedCell) => {
      const earlierCount = frequencies.counts.get(aggregatedCell) ?? 0;
      const cellCount = earlierCount + 1;
      frequencies.counts.set(aggregatedCell, cellCount);
      const cellOrder = cellCount === frequencies.most ? compareCells(aggregatedCell, frequencies.best) : 0;
      if (cellCount > frequencies.most || (isDescending ? cellOrder > 0 : cellOrder < 0)) {
        frequencies.best = aggregatedCell;
        frequencies.most = cellCount;
      }
      return earlierCount > 0 ? 0 : 4 * orderedValueBytes + (typeof aggregatedCell === 'string' ? 2 * aggregatedCell.length : 0);
    },
    finish: ({ best }) => best,
  };
}
