/**
 * Edges in the order of their ends. A radix sort, lowest digit first, over records that hold all fields of an edge. Moves go to
 * few targets at once and stay in the cache, where a counting sort by node would miss it for each edge.
 */
import type { Adjacency } from './graph.ts';
import { sharedArray } from './shared-array.ts';
import type { Steps } from './stepped-sort.ts';

/** Edges one after the other, `width` words each. The first two words are node numbers. */
export interface Records {
  readonly words: Int32Array;
  /** 3 to 5. */
  readonly width: number;
}

/** Edges that are looked at between two looks at the clock. */
export const edgesAtOnce = 1 << 15;

const digitBits = 10;
const digits = 1 << digitBits;

export function roomFor(length: number, width: number): Records {
  return { words: new Int32Array(length * width), width };
}

/** Sorts the first `count` records by their first word, then by their second; stable. Consumes its input. */
export function* inOrder(records: Records, count: number, nodes: number): Steps<Records> {
  return yield* byWords(records, count, [1, 0], bitsOf(nodes));
}

/** Edges by target: within one by source, then by edge, as they lie. */
export function* transpose(outOffsets: Uint32Array, targets: Int32Array, nodes: number): Steps<Adjacency> {
  const { length } = targets;
  const records = roomFor(length, 3);
  for (let first = 0; first < nodes; ) {
    let end = first + 1;
    while (end < nodes && outOffsets[end]! - outOffsets[first]! < edgesAtOnce) end++;
    spell(outOffsets, targets, records.words, first, end);
    first = end;
    yield;
  }
  const sortedEdges = yield* byWords(records, length, [0], bitsOf(nodes));
  const neighbours = sharedArray(Int32Array, length);
  const edges = sharedArray(Int32Array, length);
  for (let first = 0; first < length; first += edgesAtOnce) {
    const end = Math.min(length, first + edgesAtOnce);
    column(sortedEdges, 1, neighbours, first, end);
    column(sortedEdges, 2, edges, first, end);
    yield;
  }
  return { offsets: yield* offsetsOf(sortedEdges, length, nodes), neighbours, edges };
}

/** The start of each first word's records; one more offset than words. */
export function* offsetsOf({ words, width }: Records, count: number, nodes: number): Steps<Uint32Array> {
  const offsets = sharedArray(Uint32Array, nodes + 1);
  for (let first = 0; first < count; first += edgesAtOnce) {
    countKeys(words, width, offsets, first, Math.min(count, first + edgesAtOnce));
    yield;
  }
  for (let node = 0; node < nodes; node++) offsets[node + 1]! += offsets[node]!;
  yield;
  return offsets;
}

function bitsOf(nodes: number): number {
  return Math.ceil(Math.log2(Math.max(2, nodes)));
}

/** Radix sort by these words of each record, a few bits at a time, the least significant first. */
export function* byWords(records: Records, count: number, keys: readonly number[], bits: number): Steps<Records> {
  const passes = Math.ceil(bits / digitBits);
  const { width } = records;
  let [from, to] = [records, roomFor(count, width)];
  for (const key of keys) {
    for (let pass = 0; pass < passes; pass++) {
      const shift = pass * digitBits;
      const digitStarts = new Uint32Array(digits + 1);
      for (let first = 0; first < count; first += edgesAtOnce) {
        countDigits(from, key, shift, digitStarts, first, Math.min(count, first + edgesAtOnce));
        yield;
      }
      for (let digit = 0; digit < digits; digit++) digitStarts[digit + 1]! += digitStarts[digit]!;
      for (let first = 0; first < count; first += edgesAtOnce) {
        move(from, to.words, key, shift, digitStarts, first, Math.min(count, first + edgesAtOnce));
        yield;
      }
      [from, to] = [to, from];
    }
  }
  return from;
}

// The loops below are functions of their own: V8 compiles a loop worse inside a generator.

/** Copies one word of each edge of first .. end-1. */
export function column({ words, width }: Records, word: number, into: Int32Array, first: number, end: number): void {
  for (let i = first, at = first * width + word; i < end; i++, at += width) into[i] = words[at]!;
}

function countDigits(
  { words, width }: Records,
  key: number,
  shift: number,
  digitStarts: Uint32Array,
  first: number,
  end: number,
): void {
  const last = end * width;
  for (let at = first * width + key; at < last; at += width) digitStarts[((words[at]! >>> shift) & (digits - 1)) + 1]!++;
}

function move(
  { words, width }: Records,
  to: Int32Array,
  key: number,
  shift: number,
  digitStarts: Uint32Array,
  first: number,
  end: number,
): void {
  const last = end * width;
  for (let at = first * width; at < last; at += width) {
    const target = digitStarts[(words[at + key]! >>> shift) & (digits - 1)]!++ * width;
    to[target] = words[at]!;
    to[target + 1] = words[at + 1]!;
    to[target + 2] = words[at + 2]!;
    if (width > 3) to[target + 3] = words[at + 3]!;
    if (width > 4) to[target + 4] = words[at + 4]!;
  }
}

function countKeys(words: Int32Array, width: number, offsets: Uint32Array, first: number, end: number): void {
  const last = end * width;
  for (let at = first * width; at < last; at += width) offsets[words[at]! + 1]!++;
}

/** Edges that lie by source, by their targets: target, source, and the number of its place. */
function spell(offsets: Uint32Array, targets: Int32Array, words: Int32Array, first: number, last: number): void {
  for (let source = first; source < last; source++) {
    const end = offsets[source + 1]!;
    for (let edge = offsets[source]!; edge < end; edge++) {
      words[3 * edge] = targets[edge]!;
      words[3 * edge + 1] = source;
      words[3 * edge + 2] = edge;
    }
  }
}
