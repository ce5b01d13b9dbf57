/** Long work in bounded steps: at every yield the caller checks the clock and lets other requests run. */
export type Steps<T> = Generator<undefined, T, void>;

/** Steps of a loop between two yields, where one of them is a few nanoseconds. */
export const stepsAtOnce = 1 << 14;

const sortedRunLength = 1_024;

/** Calls `workOnNumber` for each number below `count`, `atOnce` of them in one step. */
export function* forEachInSteps(count: number, workOnNumber: (number: number) => void, atOnce = stepsAtOnce): Steps<void> {
  for (let stepFirst = 0; stepFirst < count; stepFirst += atOnce) {
    const stepEnd = Math.min(count, stepFirst + atOnce);
    for (let i = stepFirst; i < stepEnd; i++) workOnNumber(i);
    yield;
  }
}

/** The results of `mapItem` on each item, `atOnce` items in one step. */
export function* mapInSteps<T, U>(items: readonly T[], mapItem: (item: T, i: number) => U, atOnce = 1_024): Steps<U[]> {
  const results: U[] = [];
  yield* forEachInSteps(items.length, (i) => void results.push(mapItem(items[i]!, i)), atOnce);
  return results;
}

/** 0, 1, 2 … */
export function numbersBelow(count: number): Int32Array {
  const ascendingNumbers = new Int32Array(count);
  for (let i = 0; i < count; i++) ascendingNumbers[i] = i;
  return ascendingNumbers;
}

/** Sorts numbers in steps. Stable; may reuse the given array. */
export function* sortInSteps(numbers: Int32Array, compare: (a: number, b: number) => number): Steps<Int32Array> {
  const sortedCount = numbers.length;
  for (let runFirst = 0; runFirst < sortedCount; runFirst += sortedRunLength) {
    numbers.subarray(runFirst, runFirst + sortedRunLength).sort(compare);
    yield;
  }
  let runsFrom = numbers;
  let runsTo: Int32Array = new Int32Array(sortedCount);
  for (let runWidth = sortedRunLength; runWidth < sortedCount; runWidth *= 2) {
    for (let first = 0; first < sortedCount; first += 2 * runWidth) {
      yield* mergeRuns(runsFrom, runsTo, {
        first,
        middle: Math.min(first + runWidth, sortedCount),
        end: Math.min(first + 2 * runWidth, sortedCount),
        compare,
      });
    }
    [runsFrom, runsTo] = [runsTo, runsFrom];
  }
  return runsFrom;
}

/** Sorts any items in steps. Stable; leaves the given list as it is. */
export function* sortItemsInSteps<T>(items: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  const itemOrder = yield* sortInSteps(numbersBelow(items.length), (a, b) => compare(items[a]!, items[b]!));
  return yield* mapInSteps(items, (_, i) => items[itemOrder[i]!]!, stepsAtOnce);
}

interface SortedRuns {
  readonly first: number;
  readonly middle: number;
  readonly end: number;
  readonly compare: (a: number, b: number) => number;
}

/** Two sorted runs of `runsFrom` to one of `runsTo`. */
function* mergeRuns(runsFrom: Int32Array, runsTo: Int32Array, { first, middle, end, compare }: SortedRuns): Steps<void> {
  let leftRun = first;
  let rightRun = middle;
  for (let target = first; target < end; target++) {
    const takesLeftRun = rightRun >= end || (leftRun < middle && compare(runsFrom[leftRun]!, runsFrom[rightRun]!) <= 0);
    runsTo[target] = takesLeftRun ? runsFrom[leftRun++]! : runsFrom[rightRun++]!;
    if (target % 8_192 === 8_191) yield;
  }
}
