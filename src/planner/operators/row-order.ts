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
  const body: string[] = ['let x, y;'];
  const columns: unknown[] = [];
  keys.forEach((key, k) => {
    const vector = vectors[key.column]!;
    if (vector.kind === 'null') return;
    const values = keyValues(vector, key, rows);
    columns[k] = { values, nulls: vector.nulls };
    const [below, above] = key.descending ? ['1', '-1'] : ['-1', '1'];
    // Halves of 64 bits, the lower one unsigned, are compared far faster than bigints.
    const ordered =
      vector.kind === 'i64'
        ? `x = v${k}[2 * a + 1]; y = v${k}[2 * b + 1]; if (x === y) { x = v${k}[2 * a] >>> 0; y = v${k}[2 * b] >>> 0; } if (x < y) return ${below}; if (x > y) return ${above};`
        : typeof values === 'function'
          ? `x = v${k}(a, b); if (x < 0) return ${below}; if (x > 0) return ${above};`
          : `x = v${k}[a]; y = v${k}[b]; if (x < y) return ${below}; if (x > y) return ${above};`;
    body.push(
      vector.nulls
        ? `if (n${k}[a] !== n${k}[b]) return ${key.nullsFirst ? `n${k}[b] - n${k}[a]` : `n${k}[a] - n${k}[b]`}; if (n${k}[a] === 0) { ${ordered} }`
        : ordered,
    );
  });
  const prologue = keys.map((_, k) => (columns[k] ? `const v${k} = columns[${k}].values, n${k} = columns[${k}].nulls;` : ''));
  const source = `"use strict"; ${prologue.join('\n')} return function (a, b) { ${body.join('\n')} return 0; };`;
  return generateFunction<(columns: readonly unknown[]) => Compare>(['columns'], source)(columns);
}

const runRows = 16;
const stepsPerCall = 16_384;

/** Stable merge sort of 0 .. count-1, handing control back after every few thousand steps. */
export function* mergeSorted(count: number, compare: Compare): Generator<undefined, Int32Array, void> {
  let order: Int32Array<ArrayBuffer> = new Int32Array(count);
  let steps = 0;
  for (let start = 0; start < count; start += runRows) {
    const end = Math.min(start + runRows, count);
    for (let row = start; row < end; row++) {
      let at = row;
      while (at > start && compare(order[at - 1]!, row) > 0) {
        order[at] = order[at - 1]!;
        at--;
      }
      order[at] = row;
    }
    steps += runRows * 4;
    if (steps >= stepsPerCall) {
      steps = 0;
      yield;
    }
  }
  let target: Int32Array<ArrayBuffer> = new Int32Array(count);
  for (let width = runRows; width < count; width *= 2) {
    for (let start = 0; start < count; start += 2 * width) {
      const middle = Math.min(start + width, count);
      const end = Math.min(start + 2 * width, count);
      let left = start;
      let right = middle;
      for (let at = start; at < end; ) {
        const pause = Math.min(end, at + stepsPerCall - steps);
        steps += pause - at;
        for (; at < pause; at++) {
          const takeLeft = left < middle && (right >= end || compare(order[left]!, order[right]!) <= 0);
          target[at] = takeLeft ? order[left++]! : order[right++]!;
        }
        if (steps >= stepsPerCall) {
          steps = 0;
          yield;
        }
      }
    }
    [order, target] = [target, order];
  }
  return order;
}

/**
 * Keeps the rows of a batch that may come before `worst`, judged by the first key alone, which is a row of `vector`.
 * A layout that this can't judge cheaply keeps every row.
 */
export class Threshold {
  readonly #key: SortKey;
  readonly #worst: number | bigint | string;
  readonly #worstBytes: Uint8Array;
  readonly #verdicts = new Map<Dictionary, Uint8Array>();
  #passing = new Int32Array(0);

  private constructor(key: SortKey, worst: number | bigint | string) {
    this.#key = key;
    this.#worst = worst;
    this.#worstBytes = encoder.encode(String(worst));
  }

  /** Null where the worst row is NULL or expensive to compare: then no row can be ruled out. */
  static from(key: SortKey, vector: Vector, row: number): Threshold | null {
    if (vector.kind === 'null' || vector.nulls?.[row] === 1 || key.collate === 'unicode' || key.nullsFirst) return null;
    switch (vector.kind) {
      case 'i32':
      case 'f64':
      case 'i64':
        return new Threshold(key, vector.values[row]!);
      case 'dict':
        return new Threshold(key, vector.dictionary.text(vector.values[row]!));
      case 'text':
        return new Threshold(key, decoder.decode(vector.heap.subarray(vector.offsets[row]!, vector.offsets[row + 1]!)));
      case 'bool':
      case 'vec':
        return null;
    }
  }

  keep(batch: Batch): Batch {
    const vector = batch.columns[this.#key.column]!;
    if (vector.kind === 'bool' || vector.kind === 'vec') return batch;
    if (this.#passing.length < batch.count) this.#passing = new Int32Array(batch.count);
    const count = vector.kind === 'null' ? 0 : this.#select(vector, batch);
    return { columns: batch.columns, selection: this.#passing, first: 0, count };
  }

  #select(vector: Exclude<Vector, { kind: 'null' | 'bool' | 'vec' }>, { selection, first, count }: Batch): number {
    const passing = this.#passing;
    const nulls = vector.nulls;
    const worst = this.#worst;
    const descending = this.#key.descending;
    const verdicts = vector.kind === 'dict' ? this.#verdictsOf(vector.dictionary) : null;
    let n = 0;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (nulls !== null && nulls[i] === 1) continue;
      let stays: boolean;
      if (vector.kind === 'text') {
        const order = compareRange(vector.heap, vector.offsets[i]!, vector.offsets[i + 1]!, this.#worstBytes);
        stays = descending ? order >= 0 : order <= 0;
      } else if (vector.kind === 'dict') {
        const code = vector.values[i]!;
        stays = (verdicts![code] || this.#judge(vector.dictionary, verdicts!, code)) === 1;
      } else {
        const value = vector.values[i]!;
        stays = descending ? value >= (worst as number) : value <= (worst as number);
      }
      if (stays) passing[n++] = i;
    }
    return n;
  }

  #verdictsOf(dictionary: Dictionary): Uint8Array {
    let verdicts = this.#verdicts.get(dictionary);
    if (!verdicts || verdicts.length < dictionary.size)
      this.#verdicts.set(dictionary, (verdicts = new Uint8Array(dictionary.size)));
    return verdicts;
  }

  #judge(dictionary: Dictionary, verdicts: Uint8Array, code: number): number {
    const order = compareText(dictionary.text(code), String(this.#worst));
    return (verdicts[code] = (this.#key.descending ? order >= 0 : order <= 0) ? 1 : 2);
  }
}

type KeyValues = ArrayLike<number> | Compare;

/** An array whose elements compare as the key does, or a function that compares two rows. */
function keyValues(vector: Exclude<Vector, { kind: 'null' }>, key: SortKey, rows: number): KeyValues {
  switch (vector.kind) {
    case 'i32':
    case 'f64':
    case 'bool':
      return vector.values;
    case 'i64':
      return new Int32Array(vector.values.buffer, vector.values.byteOffset, rows * 2);
    case 'dict': {
      const { values, dictionary } = vector;
      const ranks = dictionaryRanks(dictionary, key, rows);
      if (ranks) return ranksOfRows(ranks, values, rows);
      if (dictionary instanceof TextInterner && key.collate === 'codepoint')
        return (a, b) => dictionary.compare(values[a]!, values[b]!);
      const order = textOrder(key);
      return (a, b) => (values[a] === values[b] ? 0 : order(dictionary.text(values[a]!), dictionary.text(values[b]!)));
    }
    case 'text': {
      const { offsets, heap } = vector;
      if (key.collate === 'codepoint')
        return (a, b) => compareHeap(heap, offsets[a]!, offsets[a + 1]!, offsets[b]!, offsets[b + 1]!);
      // Made when first compared, a few thousand in a turn: all of them at once would be one long one. NULLs never are.
      const texts: (string | undefined)[] = [];
      const text = (row: number): string =>
        (texts[row] ??= decoder.decode(heap.subarray(offsets[row]!, offsets[row + 1]!)).normalize('NFC'));
      return (a, b) => collator.compare(text(a), text(b));
    }
    case 'vec':
      return () => 0;
  }
}

/** A code behind the dictionary's end is that of a NULL. */
function ranksOfRows(ranks: Int32Array, codes: Int32Array, rows: number): Int32Array {
  const ranked = new Int32Array(rows);
  for (let row = 0; row < rows; row++) ranked[row] = codes[row]! < ranks.length ? ranks[codes[row]!]! : 0;
  return ranked;
}

/** Ranks of the codes where they are far fewer than rows: each text is then compared once, not per row. */
function dictionaryRanks(dictionary: Dictionary, key: SortKey, rows: number): Int32Array | null {
  if (dictionary.size > 4_096 || dictionary.size > rows) return null;
  const order = textOrder(key);
  const texts = Array.from({ length: dictionary.size }, (_, code) => dictionary.text(code));
  const codes = Int32Array.from(texts.keys()).sort((a, b) => order(texts[a]!, texts[b]!) || a - b);
  const ranks = new Int32Array(dictionary.size);
  let rank = 0;
  codes.forEach((code, i) => {
    // Texts that the collation holds equal share a rank.
    if (i > 0 && order(texts[codes[i - 1]!]!, texts[code]!) !== 0) rank++;
    ranks[code] = rank;
  });
  return ranks;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Root collation of the Unicode collation algorithm: the same order in every locale. */
const collator = new Intl.Collator('und');

function textOrder(key: SortKey): (a: string, b: string) => number {
  return key.collate === 'unicode' ? (a, b) => collator.compare(a.normalize('NFC'), b.normalize('NFC')) : compareText;
}

function compareHeap(heap: Uint8Array, aStart: number, aEnd: number, bStart: number, bEnd: number): number {
  const shared = Math.min(aEnd - aStart, bEnd - bStart);
  for (let i = 0; i < shared; i++) {
    const difference = heap[aStart + i]! - heap[bStart + i]!;
    if (difference !== 0) return difference;
  }
  return aEnd - aStart - (bEnd - bStart);
}

function compareRange(heap: Uint8Array, start: number, end: number, bytes: Uint8Array): number {
  const shared = Math.min(end - start, bytes.length);
  for (let k = 0; k < shared; k++) {
    const difference = heap[start + k]! - bytes[k]!;
    if (difference !== 0) return difference;
  }
  return end - start - bytes.length;
}
