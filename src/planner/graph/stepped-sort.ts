/** Long work in bounded steps: at every yield the caller checks the clock and lets other requests run. */
export type Steps<T> = Generator<undefined, T, void>;

/** Steps of a loop between two yields, where one of them is a few nanoseconds. */
export const stepsAtOnce = 1 << 14;

const runLength = 1_024;

/** Calls `work` for each number below `count`, `atOnce` of them in one step. */
export function* forEachInSteps(count: number, work: (number: number) => void, atOnce = stepsAtOnce): Steps<void> {
  for (let first = 0; first < count; first += atOnce) {
    const end = Math.min(count, first + atOnce);
    for (let i = first; i < end; i++) work(i);
    yield;
  }
}

/** The results of `work` on each item, `atOnce` items in one step. */
export function* mapInSteps<T, U>(items: readonly T[], work: (item: T, i: number) => U, atOnce = 1_024): Steps<U[]> {
  const results: U[] = [];
  yield* forEachInSteps(items.length, (i) => void results.push(work(items[i]!, i)), atOnce);
  return results;
}

/** 0, 1, 2 … */
export function numbersBelow(count: number): Int32Array {
  const numbers = new Int32Array(count);
  for (let i = 0; i < count; i++) numbers[i] = i;
  return numbers;
}

/** Sorts numbers in steps. Stable; may reuse the given array. */
export function* sortInSteps(numbers: Int32Array, compare: (a: number, b: number) => number): Steps<Int32Array> {
  const count = numbers.length;
  for (let first = 0; first < count; first += runLength) {
    numbers.subarray(first, first + runLength).sort(compare);
    yield;
  }
  let from = numbers;
  let to: Int32Array = new Int32Array(count);
  for (let width = runLength; width < count; width *= 2) {
    for (let first = 0; first < count; first += 2 * width) {
      yield* merge(from, to, { first, middle: Math.min(first + width, count), end: Math.min(first + 2 * width, count), compare });
    }
    [from, to] = [to, from];
  }
  return from;
}

/** Sorts any items in steps. Stable; leaves the given list as it is. */
export function* sortItemsInSteps<T>(items: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  const order = yield* sortInSteps(numbersBelow(items.length), (a, b) => compare(items[a]!, items[b]!));
  return yield* mapInSteps(items, (_, i) => items[order[i]!]!, stepsAtOnce);
}

interface Runs {
  readonly first: number;
  readonly middle: number;
  readonly end: number;
  readonly compare: (a: number, b: number) => number;
}

/** Two sorted runs of `from` to one of `to`. */
function* merge(from: Int32Array, to: Int32Array, { first, middle, end, compare }: Runs): Steps<void> {
  let left = first;
  let right = middle;
  for (let target = first; target < end; target++) {
    const takesLeft = right >= end || (left < middle && compare(from[left]!, from[right]!) <= 0);
    to[target] = takesLeft ? from[left++]! : from[right++]!;
    if (target % 8_192 === 8_191) yield;
  }
}
