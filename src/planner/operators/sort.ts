/**
 * Rows in order of their keys. Rows are collected, row numbers are sorted: runs first, then merges, a bounded piece per
 * call. With a limit only the rows that can still come out are kept. NULL comes last,
 * ascending and descending alike. Equal rows keep the order of the input.
 */
import type { Vector } from '../../log/columns.ts';
import { compareText } from '../../log/value.ts';
import type { SortKey, SortNode } from '../logical-plan.ts';
import { RowSink } from './column-sink.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';

const runRows = 2_048;
const mergeRowsPerCall = 8_192;
const outputRows = 4_096;
/** Rows beyond the limit that are collected before those that can't come out are dropped. */
const slackRows = 65_536;

export class SortOperator implements Operator {
  readonly #input: Operator;
  readonly #node: SortNode;
  readonly #execution: Execution;
  readonly #limit: number;
  #sink: RowSink;
  #held = 0;
  #work: Generator<undefined, Int32Array, void> | null = null;
  #inputEnded = false;
  #order: Int32Array | null = null;
  #vectors: readonly Vector[] = [];
  #at = 0;

  constructor(input: Operator, node: SortNode, execution: Execution) {
    this.#input = input;
    this.#node = node;
    this.#execution = execution;
    this.#limit = node.limit ? execution.limit : Number.POSITIVE_INFINITY;
    this.#sink = this.#newSink();
  }

  next(): Batch | null {
    if (this.#order) return this.#deliver(this.#order);
    if (this.#work) {
      const step = this.#work.next();
      if (step.done) this.#sorted(step.value);
      return emptyBatch;
    }
    const batch = this.#input.next();
    if (batch === null) {
      this.#inputEnded = true;
      this.#startSorting();
    } else if (batch.count > 0) {
      this.#execution.counters.hits += batch.count;
      this.#sink.append(batch);
      this.#held = this.#execution.memory.change(this.#held, this.#sink.bytes);
      if (this.#sink.length > this.#limit * 2 + slackRows) this.#startSorting();
    }
    return emptyBatch;
  }

  close(): void {
    this.#input.close();
  }

  #startSorting(): void {
    this.#vectors = this.#sink.vectors();
    const compare = comparator(this.#vectors, this.#node.keys, this.#sink.length);
    this.#work = mergeSorted(this.#sink.length, compare);
  }

  #sorted(order: Int32Array): void {
    this.#work = null;
    const kept = order.length > this.#limit ? order.subarray(0, this.#limit) : order;
    if (this.#inputEnded) {
      this.#order = kept;
      return;
    }
    // Kept rows go back in sorted order: stable against later rows, which come after all of them in the input.
    const sink = this.#newSink();
    sink.append({ columns: this.#vectors, selection: kept, first: 0, count: kept.length });
    this.#sink = sink;
    this.#held = this.#execution.memory.change(this.#held, sink.bytes);
  }

  #deliver(order: Int32Array): Batch | null {
    if (this.#at >= order.length) return null;
    const selection = order.subarray(this.#at, this.#at + outputRows);
    this.#at += selection.length;
    return { columns: this.#vectors, selection, first: 0, count: selection.length };
  }

  #newSink(): RowSink {
    return new RowSink(this.#node.columns.map(({ type }) => type));
  }
}

type Compare = (a: number, b: number) => number;

/** Bottom-up merge sort of 0 .. count-1, stable, handing control back after every few thousand rows. */
export function* mergeSorted(count: number, compare: Compare): Generator<undefined, Int32Array, void> {
  let order: Int32Array<ArrayBuffer> = new Int32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  for (let start = 0; start < count; start += runRows) {
    // The row number decides between equals, so an unstable sort of a run is stable as well.
    order.subarray(start, start + runRows).sort((a, b) => compare(a, b) || a - b);
    yield;
  }
  let target: Int32Array<ArrayBuffer> = new Int32Array(count);
  for (let width = runRows; width < count; width *= 2) {
    let steps = 0;
    for (let start = 0; start < count; start += 2 * width) {
      const middle = Math.min(start + width, count);
      const end = Math.min(start + 2 * width, count);
      let left = start;
      let right = middle;
      for (let at = start; at < end; at++) {
        const takeLeft = left < middle && (right >= end || compare(order[left]!, order[right]!) <= 0);
        target[at] = takeLeft ? order[left++]! : order[right++]!;
        if (++steps >= mergeRowsPerCall) {
          steps = 0;
          yield;
        }
      }
    }
    [order, target] = [target, order];
  }
  return order;
}

function comparator(vectors: readonly Vector[], keys: readonly SortKey[], rows: number): Compare {
  const compares = keys.map((key) => keyCompare(vectors[key.column]!, key, rows));
  if (compares.length === 1) return compares[0]!;
  const [first, second] = compares;
  if (compares.length === 2) return (a, b) => first!(a, b) || second!(a, b);
  return (a, b) => {
    for (const compare of compares) {
      const order = compare(a, b);
      if (order !== 0) return order;
    }
    return 0;
  };
}

function keyCompare(vector: Vector, key: SortKey, rows: number): Compare {
  const sign = key.descending ? -1 : 1;
  if (vector.kind === 'null') return () => 0;
  const values = valueCompare(vector, key, rows);
  const nulls = vector.nulls;
  if (!nulls) return key.descending ? (a, b) => -values(a, b) : values;
  return (a, b) => {
    if (nulls[a] === 1 || nulls[b] === 1) return nulls[a]! - nulls[b]!;
    return sign * values(a, b);
  };
}

function valueCompare(vector: Exclude<Vector, { kind: 'null' }>, key: SortKey, rows: number): Compare {
  switch (vector.kind) {
    case 'i32':
    case 'f64': {
      const values = vector.values;
      return (a, b) => values[a]! - values[b]!;
    }
    case 'bool': {
      const values = vector.values;
      return (a, b) => values[a]! - values[b]!;
    }
    case 'i64': {
      const values = vector.values;
      return (a, b) => (values[a]! < values[b]! ? -1 : values[a]! > values[b]! ? 1 : 0);
    }
    case 'dict': {
      const { values, dictionary } = vector;
      const ranks = dictionaryRanks(vector, key, rows);
      if (ranks) return (a, b) => ranks[values[a]!]! - ranks[values[b]!]!;
      const order = textOrder(key);
      return (a, b) => (values[a] === values[b] ? 0 : order(dictionary.text(values[a]!), dictionary.text(values[b]!)));
    }
    case 'text': {
      const { offsets, heap } = vector;
      if (key.collate === 'unicode') {
        const order = textOrder(key);
        const text = (row: number): string => decoder.decode(heap.subarray(offsets[row]!, offsets[row + 1]!));
        const texts = Array.from({ length: rows }, (_, row) => (vector.nulls?.[row] === 1 ? '' : text(row)));
        return (a, b) => order(texts[a]!, texts[b]!);
      }
      return (a, b) => compareHeap(heap, offsets[a]!, offsets[a + 1]!, offsets[b]!, offsets[b + 1]!);
    }
    case 'vec':
      return () => 0;
  }
}

const decoder = new TextDecoder();

/** Ranks of the codes in use, where there are far fewer of them than rows: each text is then compared once, not per row. */
function dictionaryRanks(vector: Extract<Vector, { kind: 'dict' }>, key: SortKey, rows: number): Int32Array | null {
  const { dictionary } = vector;
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

/** Root collation of the Unicode collation algorithm: the same order whatever the machine's language. */
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
