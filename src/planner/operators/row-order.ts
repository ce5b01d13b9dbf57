/**
 * Order of rows by keys: a comparator generated for the layout of the keys, a merge sort that can be interrupted, and a
 * test that tells early which rows can't be among the first n. NULL comes last, ascending and descending alike, unless a key says first.
 */
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import { compareText } from '../../log/values/value.ts';
import { generateFunction } from '../expressions/generate-function.ts';
import { TextInterner } from '../expressions/text-interner.ts';
import type { SortKey } from '../logical-plan.ts';
import type { Batch } from './operator.ts';

export type Compare = (a: number, b: number) => number;

/** Compares rows of these vectors by number; 0 where the keys don't tell them apart. */
export function comparator(vectors: readonly Vector[], keys: readonly SortKey[], rows: number): Compare {
  const comparatorBody: string[] = ['let x, y;'];
  const comparatorColumns: unknown[] = [];
  keys.forEach((sortKey, k) => {
    const sortVector = vectors[sortKey.column]!;
    if (sortVector.kind === 'null') return;
    const sortValues = sortKeyValues(sortVector, sortKey, rows);
    comparatorColumns[k] = { values: sortValues, nulls: sortVector.nulls };
    const [belowResult, aboveResult] = sortKey.descending ? ['1', '-1'] : ['-1', '1'];
    // Halves of 64 bits, the lower one unsigned, are compared far faster than bigints.
    const orderedCode =
      sortVector.kind === 'i64'
        ? `x = v${k}[2 * a + 1]; y = v${k}[2 * b + 1]; if (x === y) { x = v${k}[2 * a] >>> 0; y = v${k}[2 * b] >>> 0; } if (x < y) return ${belowResult}; if (x > y) return ${aboveResult};`
        : typeof sortValues === 'function'
          ? `x = v${k}(a, b); if (x < 0) return ${belowResult}; if (x > 0) return ${aboveResult};`
          : `x = v${k}[a]; y = v${k}[b]; if (x < y) return ${belowResult}; if (x > y) return ${aboveResult};`;
    comparatorBody.push(
      sortVector.nulls
        ? `if (n${k}[a] !== n${k}[b]) return ${sortKey.nullsFirst ? `n${k}[b] - n${k}[a]` : `n${k}[a] - n${k}[b]`}; if (n${k}[a] === 0) { ${orderedCode} }`
        : orderedCode,
    );
  });
  const comparatorPrologue = keys.map((_, k) =>
    comparatorColumns[k] ? `const v${k} = columns[${k}].values, n${k} = columns[${k}].nulls;` : '',
  );
  const comparatorSource = `"use strict"; ${comparatorPrologue.join('\n')} return function (a, b) { ${comparatorBody.join('\n')} return 0; };`;
  return generateFunction<(columns: readonly unknown[]) => Compare>(['columns'], comparatorSource)(comparatorColumns);
}

const insertionRunRows = 16;
const mergeStepsPerCall = 16_384;

/** Stable merge sort of 0 .. count-1, handing control back after every few thousand steps. */
export function* mergeSorted(count: number, compare: Compare): Generator<undefined, Int32Array, void> {
  let mergedOrder: Int32Array<ArrayBuffer> = new Int32Array(count);
  let mergeSteps = 0;
  for (let mergeStart = 0; mergeStart < count; mergeStart += insertionRunRows) {
    const mergeEnd = Math.min(mergeStart + insertionRunRows, count);
    for (let insertedRow = mergeStart; insertedRow < mergeEnd; insertedRow++) {
      let mergeIndex = insertedRow;
      while (mergeIndex > mergeStart && compare(mergedOrder[mergeIndex - 1]!, insertedRow) > 0) {
        mergedOrder[mergeIndex] = mergedOrder[mergeIndex - 1]!;
        mergeIndex--;
      }
      mergedOrder[mergeIndex] = insertedRow;
    }
    mergeSteps += insertionRunRows * 4;
    if (mergeSteps >= mergeStepsPerCall) {
      mergeSteps = 0;
      yield;
    }
  }
  let mergeTarget: Int32Array<ArrayBuffer> = new Int32Array(count);
  for (let mergeWidth = insertionRunRows; mergeWidth < count; mergeWidth *= 2) {
    for (let start = 0; start < count; start += 2 * mergeWidth) {
      const mergeMiddle = Math.min(start + mergeWidth, count);
      const mergeEnd = Math.min(start + 2 * mergeWidth, count);
      let leftIndex = start;
      let rightIndex = mergeMiddle;
      for (let mergeIndex = start; mergeIndex < mergeEnd; ) {
        const pauseIndex = Math.min(mergeEnd, mergeIndex + mergeStepsPerCall - mergeSteps);
        mergeSteps += pauseIndex - mergeIndex;
        for (; mergeIndex < pauseIndex; mergeIndex++) {
          const takesLeft =
            leftIndex < mergeMiddle &&
            (rightIndex >= mergeEnd || compare(mergedOrder[leftIndex]!, mergedOrder[rightIndex]!) <= 0);
          mergeTarget[mergeIndex] = takesLeft ? mergedOrder[leftIndex++]! : mergedOrder[rightIndex++]!;
        }
        if (mergeSteps >= mergeStepsPerCall) {
          mergeSteps = 0;
          yield;
        }
      }
    }
    [mergedOrder, mergeTarget] = [mergeTarget, mergedOrder];
  }
  return mergedOrder;
}

/**
 * Keeps the rows of a batch that may come before `worst`, judged by the first key alone, which is a row of `vector`.
 * A layout that this can't judge cheaply keeps every row.
 */
export class Threshold {
  readonly #thresholdKey: SortKey;
  readonly #worstKeptValue: number | bigint | string;
  readonly #worstKeptBytes: Uint8Array;
  readonly #verdictsByDictionary = new Map<Dictionary, Uint8Array>();
  #passing = new Int32Array(0);

  private constructor(key: SortKey, worst: number | bigint | string) {
    this.#thresholdKey = key;
    this.#worstKeptValue = worst;
    this.#worstKeptBytes = keyEncoder.encode(String(worst));
  }

  /** Null where the worst row is NULL or expensive to compare: then no row can be ruled out. */
  static from(key: SortKey, vector: Vector, worstRow: number): Threshold | null {
    if (vector.kind === 'null' || vector.nulls?.[worstRow] === 1 || key.collate === 'unicode' || key.nullsFirst) return null;
    switch (vector.kind) {
      case 'i32':
      case 'f64':
      case 'i64':
        return new Threshold(key, vector.values[worstRow]!);
      case 'dict':
        return new Threshold(key, vector.dictionary.text(vector.values[worstRow]!));
      case 'text':
        return new Threshold(
          key,
          keyDecoder.decode(vector.heap.subarray(vector.offsets[worstRow]!, vector.offsets[worstRow + 1]!)),
        );
      case 'bool':
      case 'vec':
        return null;
    }
  }

  keep(batch: Batch): Batch {
    const sortVector = batch.columns[this.#thresholdKey.column]!;
    if (sortVector.kind === 'bool' || sortVector.kind === 'vec') return batch;
    if (this.#passing.length < batch.count) this.#passing = new Int32Array(batch.count);
    const stayingCount = sortVector.kind === 'null' ? 0 : this.#selectStaying(sortVector, batch);
    return { columns: batch.columns, selection: this.#passing, first: 0, count: stayingCount };
  }

  #selectStaying(sortVector: Exclude<Vector, { kind: 'null' | 'bool' | 'vec' }>, { selection, first, count }: Batch): number {
    const passing = this.#passing;
    const nulls = sortVector.nulls;
    const worstKeptValue = this.#worstKeptValue;
    const isDescending = this.#thresholdKey.descending;
    const codeVerdicts = sortVector.kind === 'dict' ? this.#verdictsOf(sortVector.dictionary) : null;
    let stayingCount = 0;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (nulls !== null && nulls[i] === 1) continue;
      let stays: boolean;
      if (sortVector.kind === 'text') {
        const heapOrder = compareHeapRange(
          sortVector.heap,
          sortVector.offsets[i]!,
          sortVector.offsets[i + 1]!,
          this.#worstKeptBytes,
        );
        stays = isDescending ? heapOrder >= 0 : heapOrder <= 0;
      } else if (sortVector.kind === 'dict') {
        const sortCode = sortVector.values[i]!;
        stays = (codeVerdicts![sortCode] || this.#judgeCode(sortVector.dictionary, codeVerdicts!, sortCode)) === 1;
      } else {
        const sortValue = sortVector.values[i]!;
        stays = isDescending ? sortValue >= (worstKeptValue as number) : sortValue <= (worstKeptValue as number);
      }
      if (stays) passing[stayingCount++] = i;
    }
    return stayingCount;
  }

  #verdictsOf(dictionary: Dictionary): Uint8Array {
    let dictionaryVerdicts = this.#verdictsByDictionary.get(dictionary);
    if (!dictionaryVerdicts || dictionaryVerdicts.length < dictionary.size)
      this.#verdictsByDictionary.set(dictionary, (dictionaryVerdicts = new Uint8Array(dictionary.size)));
    return dictionaryVerdicts;
  }

  #judgeCode(dictionary: Dictionary, dictionaryVerdicts: Uint8Array, code: number): number {
    const codeOrder = compareText(dictionary.text(code), String(this.#worstKeptValue));
    return (dictionaryVerdicts[code] = (this.#thresholdKey.descending ? codeOrder >= 0 : codeOrder <= 0) ? 1 : 2);
  }
}

type SortKeyValues = ArrayLike<number> | Compare;

/** An array whose elements compare as the key does, or a function that compares two rows. */
function sortKeyValues(sortVector: Exclude<Vector, { kind: 'null' }>, key: SortKey, rows: number): SortKeyValues {
  switch (sortVector.kind) {
    case 'i32':
    case 'f64':
    case 'bool':
      return sortVector.values;
    case 'i64':
      return new Int32Array(sortVector.values.buffer, sortVector.values.byteOffset, rows * 2);
    case 'dict': {
      const { values, dictionary } = sortVector;
      const ranksByCode = dictionaryRanks(dictionary, key, rows);
      if (ranksByCode) return ranksOfRows(ranksByCode, values, rows);
      if (dictionary instanceof TextInterner && key.collate === 'codepoint')
        return (leftRow, rightRow) => dictionary.compare(values[leftRow]!, values[rightRow]!);
      const keyTextOrder = sortTextOrder(key);
      return (leftRow, rightRow) =>
        values[leftRow] === values[rightRow]
          ? 0
          : keyTextOrder(dictionary.text(values[leftRow]!), dictionary.text(values[rightRow]!));
    }
    case 'text': {
      const { offsets, heap } = sortVector;
      if (key.collate === 'codepoint')
        return (leftRow, rightRow) =>
          compareHeap(heap, offsets[leftRow]!, offsets[leftRow + 1]!, offsets[rightRow]!, offsets[rightRow + 1]!);
      // Made when first compared, a few thousand in a turn: all of them at once would be one long one. NULLs never are.
      const normalizedTexts: (string | undefined)[] = [];
      const normalizedText = (row: number): string =>
        (normalizedTexts[row] ??= keyDecoder.decode(heap.subarray(offsets[row]!, offsets[row + 1]!)).normalize('NFC'));
      return (leftRow, rightRow) => unicodeCollator.compare(normalizedText(leftRow), normalizedText(rightRow));
    }
    case 'vec':
      return () => 0;
  }
}

/** A code behind the dictionary's end is that of a NULL. */
function ranksOfRows(codeRanks: Int32Array, rowCodes: Int32Array, rows: number): Int32Array {
  const rowRanks = new Int32Array(rows);
  for (let row = 0; row < rows; row++) rowRanks[row] = rowCodes[row]! < codeRanks.length ? codeRanks[rowCodes[row]!]! : 0;
  return rowRanks;
}

/** Ranks of the codes where they are far fewer than rows: each text is then compared once, not per row. */
function dictionaryRanks(dictionary: Dictionary, key: SortKey, rows: number): Int32Array | null {
  if (dictionary.size > 4_096 || dictionary.size > rows) return null;
  const dictionaryOrder = sortTextOrder(key);
  const dictionaryTexts = Array.from({ length: dictionary.size }, (_, code) => dictionary.text(code));
  const sortedCodes = Int32Array.from(dictionaryTexts.keys()).sort(
    (a, b) => dictionaryOrder(dictionaryTexts[a]!, dictionaryTexts[b]!) || a - b,
  );
  const codeRanks = new Int32Array(dictionary.size);
  let nextRank = 0;
  sortedCodes.forEach((code, i) => {
    // Texts that the collation holds equal share a rank.
    if (i > 0 && dictionaryOrder(dictionaryTexts[sortedCodes[i - 1]!]!, dictionaryTexts[code]!) !== 0) nextRank++;
    codeRanks[code] = nextRank;
  });
  return codeRanks;
}

const keyEncoder = new TextEncoder();
const keyDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Root collation of the Unicode collation algorithm: the same order in every locale. */
const unicodeCollator = new Intl.Collator('und');

function sortTextOrder(key: SortKey): (a: string, b: string) => number {
  return key.collate === 'unicode' ? (a, b) => unicodeCollator.compare(a.normalize('NFC'), b.normalize('NFC')) : compareText;
}

function compareHeap(heap: Uint8Array, aStart: number, aEnd: number, bStart: number, bEnd: number): number {
  const sharedLength = Math.min(aEnd - aStart, bEnd - bStart);
  for (let i = 0; i < sharedLength; i++) {
    const byteDifference = heap[aStart + i]! - heap[bStart + i]!;
    if (byteDifference !== 0) return byteDifference;
  }
  return aEnd - aStart - (bEnd - bStart);
}

function compareHeapRange(heap: Uint8Array, start: number, end: number, thresholdBytes: Uint8Array): number {
  const sharedLength = Math.min(end - start, thresholdBytes.length);
  for (let k = 0; k < sharedLength; k++) {
    const byteDifference = heap[start + k]! - thresholdBytes[k]!;
    if (byteDifference !== 0) return byteDifference;
  }
  return end - start - thresholdBytes.length;
}
