/**
 * Many rows in the order of keys: by digits where the first key is numbers or instants, and only rows that it does not tell
 * apart by the keys behind it. Stable, NULLs where the key says, and interruptible as `mergeSorted` is.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { SortKey } from '../logical-plan.ts';
import { type Compare, comparator, mergeSorted } from './row-order.ts';

/** Fewer are merged as fast. */
const rowsMin = 2_048;
const digitBits = 11;
const digits = 1 << digitBits;
const digitsOfWord = 3;
const stepsPerCall = 16_384;
/** With more passes than this, rows with equal first keys are compared instead. */
const passesMax = 16;
const signBit = -2_147_483_648;

type Work<T> = Generator<undefined, T, void>;

/** Rows 0 .. count-1. */
export function* sortedRows(vectors: readonly Vector[], keys: readonly SortKey[], count: number): Work<Int32Array> {
  if (count < rowsMin) return yield* mergeSorted(count, comparator(vectors, keys, count));
  const words: Words[] = [];
  // Keys up to the first one that is no number, or that rises from row to row: later keys decide nothing.
  let isAll = true;
  let passes = 0;
  for (const key of keys) {
    const own = yield* wordsOf(vectors[key.column]!, key, count);
    if (!own) isAll = false;
    if (!own || own.rises) break;
    words.push(own);
    passes += own.passes;
    if (passes > passesMax) {
      isAll &&= words.length === keys.length;
      break;
    }
  }
  if (words.length === 0 && !isAll) return yield* mergeSorted(count, comparator(vectors, keys, count));
  let order: Int32Array<ArrayBuffer> = new Int32Array(count);
  for (let row = 0; row < count; row++) order[row] = row;
  const inFull = isAll ? words.length : 1;
  for (const own of words.slice(0, inFull).reverse()) order = yield* byDigits(own, order);
  if (!isAll) yield* sortRuns(order, words[0]!, comparator(vectors, keys.slice(1), count));
  return order;
}

/** Unsigned 64-bit numbers that order like the key, in two halves; `high` is null where all of it is in `low`. */
interface Words {
  readonly high: Int32Array | null;
  readonly low: Int32Array;
  /** Each row's is larger than that of the row before. */
  readonly rises: boolean;
  /** Digits that differ among the rows. */
  readonly passes: number;
}

/** Null for a vector without such numbers, or with NULLs among them. */
function* wordsOf(vector: Vector, { descending }: SortKey, count: number): Work<Words | null> {
  if (vector.kind !== 'i32' && vector.kind !== 'i64' && vector.kind !== 'f64') return null;
  const { kind, values, nulls } = vector;
  if (nulls !== null && nulls.subarray(0, count).includes(1)) return null;
  const low = new Int32Array(count);
  const turned = descending ? -1 : 0;
  if (kind === 'i32') {
    for (let row = 0; row < count; row++) {
      low[row] = values[row]! ^ signBit ^ turned;
      if (row % stepsPerCall === stepsPerCall - 1) yield;
    }
    return yield* measure(null, low);
  }
  const high = new Int32Array(count);
  const halves = new Int32Array(values.buffer, values.byteOffset, count * 2);
  for (let row = 0; row < count; row++) {
    let above = halves[2 * row + 1]!;
    let below = halves[2 * row]!;
    if (kind === 'i64' || above >= 0) above ^= signBit;
    // Doubles below zero order by their bits the other way round; minus zero is zero.
    else if (above !== signBit || below !== 0) {
      above = ~above;
      below = ~below;
    }
    high[row] = above ^ turned;
    low[row] = below ^ turned;
    if (row % stepsPerCall === stepsPerCall - 1) yield;
  }
  return yield* measure(high, low);
}

function* measure(high: Int32Array | null, low: Int32Array): Work<Words> {
  let rises = true;
  let lows = 0;
  let highs = 0;
  for (let row = 1; row < low.length; row++) {
    const apart = high === null ? 0 : (high[row]! >>> 0) - (high[row - 1]! >>> 0);
    if (apart < 0 || (apart === 0 && low[row]! >>> 0 <= low[row - 1]! >>> 0)) rises = false;
    lows |= low[row]! ^ low[0]!;
    if (high !== null) highs |= high[row]! ^ high[0]!;
    if (row % stepsPerCall === 0) yield;
  }
  return { high, low, rises, passes: digitsIn(lows) + digitsIn(highs) };
}

function digitsIn(bits: number): number {
  let count = 0;
  for (let digit = 0; digit < digitsOfWord; digit++) if (((bits >>> (digit * digitBits)) & (digits - 1)) !== 0) count++;
  return count;
}

/** Sorts rows by a key, from its last digit to the first; skips digits that all rows share. */
function* byDigits({ high, low }: Words, rows: Int32Array<ArrayBuffer>): Work<Int32Array<ArrayBuffer>> {
  const count = rows.length;
  let order = rows;
  let target: Int32Array<ArrayBuffer> = new Int32Array(count);
  for (const word of high ? [low, high] : [low]) {
    const counts = new Int32Array(digits * digitsOfWord);
    for (let row = 0; row < count; row++) {
      const value = word[row]!;
      counts[value & (digits - 1)]!++;
      counts[digits + ((value >>> digitBits) & (digits - 1))]!++;
      counts[2 * digits + (value >>> (2 * digitBits))]!++;
      if (row % stepsPerCall === stepsPerCall - 1) yield;
    }
    for (let digit = 0; digit < digitsOfWord; digit++) {
      const digitStarts = counts.subarray(digit * digits, (digit + 1) * digits);
      const shift = digit * digitBits;
      if (digitStarts[(word[0]! >>> shift) & (digits - 1)] === count) continue;
      let sum = 0;
      for (let value = 0; value < digits; value++) {
        const own = digitStarts[value]!;
        digitStarts[value] = sum;
        sum += own;
      }
      for (let at = 0; at < count; at++) {
        const row = order[at]!;
        target[digitStarts[(word[row]! >>> shift) & (digits - 1)]!++] = row;
        if (at % stepsPerCall === stepsPerCall - 1) yield;
      }
      [order, target] = [target, order];
    }
  }
  return order;
}

/** Orders runs of rows that are equal so far. */
function* sortRuns(order: Int32Array, { high, low }: Words, compare: Compare): Work<void> {
  const count = order.length;
  const room = new Int32Array(count);
  let steps = 0;
  for (let start = 0; start < count; ) {
    const row = order[start]!;
    let end = start + 1;
    while (end < count && low[order[end]!] === low[row] && (high === null || high[order[end]!] === high[row])) end++;
    if (end - start > stepsPerCall) {
      const rows = order.slice(start, end);
      const sorted = yield* mergeSorted(rows.length, (a, b) => compare(rows[a]!, rows[b]!));
      for (let at = 0; at < rows.length; at++) order[start + at] = rows[sorted[at]!]!;
    } else if (end - start > 1) merge(order, room, start, end, compare);
    steps += (end - start) * 4;
    if (steps >= stepsPerCall) {
      steps = 0;
      yield;
    }
    start = end;
  }
}

const runRows = 8;

/** Sorts order[start .. end) where it stands. */
function merge(order: Int32Array, room: Int32Array, start: number, end: number, compare: Compare): void {
  for (let from = start; from < end; from += runRows) {
    const to = Math.min(from + runRows, end);
    for (let next = from + 1; next < to; next++) {
      const row = order[next]!;
      let at = next;
      for (; at > from && compare(order[at - 1]!, row) > 0; at--) order[at] = order[at - 1]!;
      order[at] = row;
    }
  }
  for (let width = runRows; width < end - start; width *= 2) {
    for (let from = start; from + width < end; from += 2 * width) {
      const middle = from + width;
      const to = Math.min(middle + width, end);
      // Rows that stand in order already, as they often do, stay.
      if (compare(order[middle - 1]!, order[middle]!) <= 0) continue;
      for (let at = from; at < middle; at++) room[at] = order[at]!;
      let left = from;
      let right = middle;
      for (let at = from; left < middle; at++) {
        const takesLeft = right >= to || compare(room[left]!, order[right]!) <= 0;
        order[at] = takesLeft ? room[left++]! : order[right++]!;
      }
    }
  }
}
