/**
 * Many rows in the order of keys: by digits where the first key is numbers or instants, and only rows that it does not tell
 * apart by the keys behind it. Stable, NULLs where the key says, and interruptible as `mergeSorted` is.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { SortKey } from '../logical-plan.ts';
import { type Compare, comparator, mergeSorted } from './row-order.ts';

/** Fewer are merged as fast. */
const radixSortRowsMin = 2_048;
const digitBits = 11;
const digitValues = 1 << digitBits;
const digitsPerWord = 3;
const sortStepsPerCall = 16_384;
/** With more passes than this, rows with equal first keys are compared instead. */
const radixPassesMax = 16;
const signBit = -2_147_483_648;

type SortWork<T> = Generator<undefined, T, void>;

/** Rows 0 .. count-1. */
export function* sortedRows(vectors: readonly Vector[], keys: readonly SortKey[], count: number): SortWork<Int32Array> {
  if (count < radixSortRowsMin) return yield* mergeSorted(count, comparator(vectors, keys, count));
  const keyWords: SortWords[] = [];
  // Keys up to the first one that is no number, or that rises from row to row: later keys decide nothing.
  let areAllKeysWords = true;
  let radixPasses = 0;
  for (const sortKey of keys) {
    const ownWords = yield* sortWordsOf(vectors[sortKey.column]!, sortKey, count);
    if (!ownWords) areAllKeysWords = false;
    if (!ownWords || ownWords.rises) break;
    keyWords.push(ownWords);
    radixPasses += ownWords.passes;
    if (radixPasses > radixPassesMax) {
      areAllKeysWords &&= keyWords.length === keys.length;
      break;
    }
  }
  if (keyWords.length === 0 && !areAllKeysWords) return yield* mergeSorted(count, comparator(vectors, keys, count));
  let rowOrder: Int32Array<ArrayBuffer> = new Int32Array(count);
  for (let row = 0; row < count; row++) rowOrder[row] = row;
  const fullySortedKeys = areAllKeysWords ? keyWords.length : 1;
  for (const own of keyWords.slice(0, fullySortedKeys).reverse()) rowOrder = yield* sortByDigits(own, rowOrder);
  if (!areAllKeysWords) yield* sortRuns(rowOrder, keyWords[0]!, comparator(vectors, keys.slice(1), count));
  return rowOrder;
}

/** Unsigned 64-bit numbers that order like the key, in two halves; `high` is null where all of it is in `low`. */
interface SortWords {
  readonly high: Int32Array | null;
  readonly low: Int32Array;
  /** Each row's is larger than that of the row before. */
  readonly rises: boolean;
  /** Digits that differ among the rows. */
  readonly passes: number;
}

/** Null for a vector without such numbers, or with NULLs among them. */
function* sortWordsOf(vector: Vector, { descending }: SortKey, count: number): SortWork<SortWords | null> {
  if (vector.kind !== 'i32' && vector.kind !== 'i64' && vector.kind !== 'f64') return null;
  const { kind, values, nulls } = vector;
  if (nulls !== null && nulls.subarray(0, count).includes(1)) return null;
  const lowWords = new Int32Array(count);
  const turnMask = descending ? -1 : 0;
  if (kind === 'i32') {
    for (let sortedRow = 0; sortedRow < count; sortedRow++) {
      lowWords[sortedRow] = values[sortedRow]! ^ signBit ^ turnMask;
      if (sortedRow % sortStepsPerCall === sortStepsPerCall - 1) yield;
    }
    return yield* measureWords(null, lowWords);
  }
  const highWords = new Int32Array(count);
  const int64Halves = new Int32Array(values.buffer, values.byteOffset, count * 2);
  for (let row = 0; row < count; row++) {
    let highHalf = int64Halves[2 * row + 1]!;
    let lowHalf = int64Halves[2 * row]!;
    if (kind === 'i64' || highHalf >= 0) highHalf ^= signBit;
    // Doubles below zero order by their bits the other way round; minus zero is zero.
    else if (highHalf !== signBit || lowHalf !== 0) {
      highHalf = ~highHalf;
      lowHalf = ~lowHalf;
    }
    highWords[row] = highHalf ^ turnMask;
    lowWords[row] = lowHalf ^ turnMask;
    if (row % sortStepsPerCall === sortStepsPerCall - 1) yield;
  }
  return yield* measureWords(highWords, lowWords);
}

function* measureWords(high: Int32Array | null, low: Int32Array): SortWork<SortWords> {
  let isRising = true;
  let changedLowBits = 0;
  let changedHighBits = 0;
  for (let sortedRow = 1; sortedRow < low.length; sortedRow++) {
    const highDifference = high === null ? 0 : (high[sortedRow]! >>> 0) - (high[sortedRow - 1]! >>> 0);
    if (highDifference < 0 || (highDifference === 0 && low[sortedRow]! >>> 0 <= low[sortedRow - 1]! >>> 0)) isRising = false;
    changedLowBits |= low[sortedRow]! ^ low[0]!;
    if (high !== null) changedHighBits |= high[sortedRow]! ^ high[0]!;
    if (sortedRow % sortStepsPerCall === 0) yield;
  }
  return { high, low, rises: isRising, passes: usedDigits(changedLowBits) + usedDigits(changedHighBits) };
}

function usedDigits(changedBits: number): number {
  let usedDigitCount = 0;
  for (let digit = 0; digit < digitsPerWord; digit++)
    if (((changedBits >>> (digit * digitBits)) & (digitValues - 1)) !== 0) usedDigitCount++;
  return usedDigitCount;
}

/** Sorts rows by a key, from its last digit to the first; skips digits that all rows share. */
function* sortByDigits({ high, low }: SortWords, unsortedRows: Int32Array<ArrayBuffer>): SortWork<Int32Array<ArrayBuffer>> {
  const count = unsortedRows.length;
  let digitOrder = unsortedRows;
  let digitTarget: Int32Array<ArrayBuffer> = new Int32Array(count);
  for (const sortWord of high ? [low, high] : [low]) {
    const digitCounts = new Int32Array(digitValues * digitsPerWord);
    for (let row = 0; row < count; row++) {
      const wordValue = sortWord[row]!;
      digitCounts[wordValue & (digitValues - 1)]!++;
      digitCounts[digitValues + ((wordValue >>> digitBits) & (digitValues - 1))]!++;
      digitCounts[2 * digitValues + (wordValue >>> (2 * digitBits))]!++;
      if (row % sortStepsPerCall === sortStepsPerCall - 1) yield;
    }
    for (let wordDigit = 0; wordDigit < digitsPerWord; wordDigit++) {
      const digitStarts = digitCounts.subarray(wordDigit * digitValues, (wordDigit + 1) * digitValues);
      const digitShift = wordDigit * digitBits;
      if (digitStarts[(sortWord[0]! >>> digitShift) & (digitValues - 1)] === count) continue;
      let placeSum = 0;
      for (let wordValue = 0; wordValue < digitValues; wordValue++) {
        const digitCount = digitStarts[wordValue]!;
        digitStarts[wordValue] = placeSum;
        placeSum += digitCount;
      }
      for (let orderIndex = 0; orderIndex < count; orderIndex++) {
        const row = digitOrder[orderIndex]!;
        digitTarget[digitStarts[(sortWord[row]! >>> digitShift) & (digitValues - 1)]!++] = row;
        if (orderIndex % sortStepsPerCall === sortStepsPerCall - 1) yield;
      }
      [digitOrder, digitTarget] = [digitTarget, digitOrder];
    }
  }
  return digitOrder;
}

/** Orders runs of rows that are equal so far. */
function* sortRuns(order: Int32Array, { high, low }: SortWords, compare: Compare): SortWork<void> {
  const count = order.length;
  const room = new Int32Array(count);
  let steps = 0;
  for (let start = 0; start < count; ) {
    const row = order[start]!;
    let end = start + 1;
    while (end < count && low[order[end]!] === low[row] && (high === null || high[order[end]!] === high[row])) end++;
    if (end - start > sortStepsPerCall) {
      const rows = order.slice(start, end);
      const sorted = yield* mergeSorted(rows.length, (a, b) => compare(rows[a]!, rows[b]!));
      for (let at = 0; at < rows.length; at++) order[start + at] = rows[sorted[at]!]!;
    } else if (end - start > 1) mergeRange(order, room, start, end, compare);
    steps += (end - start) * 4;
    if (steps >= sortStepsPerCall) {
      steps = 0;
      yield;
    }
    start = end;
  }
}

const sortRunRows = 8;

/** Sorts order[start .. end) where it stands. */
function mergeRange(rowOrder: Int32Array, mergeRoom: Int32Array, start: number, end: number, compare: Compare): void {
  for (let runStart = start; runStart < end; runStart += sortRunRows) {
    const runEnd = Math.min(runStart + sortRunRows, end);
    for (let insertedIndex = runStart + 1; insertedIndex < runEnd; insertedIndex++) {
      const row = rowOrder[insertedIndex]!;
      let mergeIndex = insertedIndex;
      for (; mergeIndex > runStart && compare(rowOrder[mergeIndex - 1]!, row) > 0; mergeIndex--)
        rowOrder[mergeIndex] = rowOrder[mergeIndex - 1]!;
      rowOrder[mergeIndex] = row;
    }
  }
  for (let mergeWidth = sortRunRows; mergeWidth < end - start; mergeWidth *= 2) {
    for (let from = start; from + mergeWidth < end; from += 2 * mergeWidth) {
      const mergeMiddle = from + mergeWidth;
      const runEnd = Math.min(mergeMiddle + mergeWidth, end);
      // Rows that stand in order already, as they often do, stay.
      if (compare(rowOrder[mergeMiddle - 1]!, rowOrder[mergeMiddle]!) <= 0) continue;
      for (let mergeIndex = from; mergeIndex < mergeMiddle; mergeIndex++) mergeRoom[mergeIndex] = rowOrder[mergeIndex]!;
      let leftIndex = from;
      let rightIndex = mergeMiddle;
      for (let at = from; leftIndex < mergeMiddle; at++) {
        const takesLeft = rightIndex >= runEnd || compare(mergeRoom[leftIndex]!, rowOrder[rightIndex]!) <= 0;
        rowOrder[at] = takesLeft ? mergeRoom[leftIndex++]! : rowOrder[rightIndex++]!;
      }
    }
  }
}
