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

const radixDigitBits = 10;
const radixDigits = 1 << radixDigitBits;

export function roomFor(length: number, width: number): Records {
  return { words: new Int32Array(length * width), width };
}

/** Sorts the first `count` records by their first word, then by their second; stable. Consumes its input. */
export function* inOrder(edgeRecords: Records, count: number, nodes: number): Steps<Records> {
  return yield* byWords(edgeRecords, count, [1, 0], nodeBits(nodes));
}

/** Edges by target: within one by source, then by edge, as they lie. */
export function* transpose(outOffsets: Uint32Array, targets: Int32Array, nodes: number): Steps<Adjacency> {
  const { length } = targets;
  const edgeRecords = roomFor(length, 3);
  for (let firstNode = 0; firstNode < nodes; ) {
    let nodeEnd = firstNode + 1;
    while (nodeEnd < nodes && outOffsets[nodeEnd]! - outOffsets[firstNode]! < edgesAtOnce) nodeEnd++;
    writeEdgeRecords(outOffsets, targets, edgeRecords.words, firstNode, nodeEnd);
    firstNode = nodeEnd;
    yield;
  }
  const sortedEdges = yield* byWords(edgeRecords, length, [0], nodeBits(nodes));
  const sourceNeighbours = sharedArray(Int32Array, length);
  const edgeNumbers = sharedArray(Int32Array, length);
  for (let first = 0; first < length; first += edgesAtOnce) {
    const nodeEnd = Math.min(length, first + edgesAtOnce);
    column(sortedEdges, 1, sourceNeighbours, first, nodeEnd);
    column(sortedEdges, 2, edgeNumbers, first, nodeEnd);
    yield;
  }
  return { offsets: yield* offsetsOf(sortedEdges, length, nodes), neighbours: sourceNeighbours, edges: edgeNumbers };
}

/** The start of each first word's records; one more offset than words. */
export function* offsetsOf({ words, width }: Records, count: number, nodes: number): Steps<Uint32Array> {
  const edgeOffsets = sharedArray(Uint32Array, nodes + 1);
  for (let firstRecord = 0; firstRecord < count; firstRecord += edgesAtOnce) {
    countSourceEdges(words, width, edgeOffsets, firstRecord, Math.min(count, firstRecord + edgesAtOnce));
    yield;
  }
  for (let node = 0; node < nodes; node++) edgeOffsets[node + 1]! += edgeOffsets[node]!;
  yield;
  return edgeOffsets;
}

function nodeBits(nodes: number): number {
  return Math.ceil(Math.log2(Math.max(2, nodes)));
}

/** Radix sort by these words of each record, a few bits at a time, the least significant first. */
export function* byWords(edgeRecords: Records, count: number, keys: readonly number[], bits: number): Steps<Records> {
  const radixPasses = Math.ceil(bits / radixDigitBits);
  const { width } = edgeRecords;
  let [recordsFrom, recordsTo] = [edgeRecords, roomFor(count, width)];
  for (const recordKey of keys) {
    for (let radixPass = 0; radixPass < radixPasses; radixPass++) {
      const digitShift = radixPass * radixDigitBits;
      const digitStarts = new Uint32Array(radixDigits + 1);
      for (let firstRecord = 0; firstRecord < count; firstRecord += edgesAtOnce) {
        countRadixDigits(
          recordsFrom,
          recordKey,
          digitShift,
          digitStarts,
          firstRecord,
          Math.min(count, firstRecord + edgesAtOnce),
        );
        yield;
      }
      for (let radixDigit = 0; radixDigit < radixDigits; radixDigit++) digitStarts[radixDigit + 1]! += digitStarts[radixDigit]!;
      for (let first = 0; first < count; first += edgesAtOnce) {
        moveRecords(
          recordsFrom,
          recordsTo.words,
          recordKey,
          digitShift,
          digitStarts,
          first,
          Math.min(count, first + edgesAtOnce),
        );
        yield;
      }
      [recordsFrom, recordsTo] = [recordsTo, recordsFrom];
    }
  }
  return recordsFrom;
}

// The loops below are functions of their own: V8 compiles a loop worse inside a generator.

/** Copies one word of each edge of first .. end-1. */
export function column(
  { words, width }: Records,
  recordWord: number,
  recordColumn: Int32Array,
  first: number,
  end: number,
): void {
  for (let i = first, wordOffset = first * width + recordWord; i < end; i++, wordOffset += width)
    recordColumn[i] = words[wordOffset]!;
}

function countRadixDigits(
  { words, width }: Records,
  recordKey: number,
  digitShift: number,
  digitStarts: Uint32Array,
  first: number,
  end: number,
): void {
  const recordsEnd = end * width;
  for (let wordOffset = first * width + recordKey; wordOffset < recordsEnd; wordOffset += width)
    digitStarts[((words[wordOffset]! >>> digitShift) & (radixDigits - 1)) + 1]!++;
}

function moveRecords(
  { words, width }: Records,
  movedWords: Int32Array,
  recordKey: number,
  digitShift: number,
  digitStarts: Uint32Array,
  first: number,
  end: number,
): void {
  const recordsEnd = end * width;
  for (let recordOffset = first * width; recordOffset < recordsEnd; recordOffset += width) {
    const target = digitStarts[(words[recordOffset + recordKey]! >>> digitShift) & (radixDigits - 1)]!++ * width;
    movedWords[target] = words[recordOffset]!;
    movedWords[target + 1] = words[recordOffset + 1]!;
    movedWords[target + 2] = words[recordOffset + 2]!;
    if (width > 3) movedWords[target + 3] = words[recordOffset + 3]!;
    if (width > 4) movedWords[target + 4] = words[recordOffset + 4]!;
  }
}

function countSourceEdges(recordWords: Int32Array, width: number, edgeOffsets: Uint32Array, first: number, end: number): void {
  const recordsEnd = end * width;
  for (let recordOffset = first * width; recordOffset < recordsEnd; recordOffset += width)
    edgeOffsets[recordWords[recordOffset]! + 1]!++;
}

/** Edges that lie by source, by their targets: target, source, and the number of its place. */
function writeEdgeRecords(
  offsets: Uint32Array,
  edgeTargets: Int32Array,
  recordWords: Int32Array,
  first: number,
  last: number,
): void {
  for (let edgeSource = first; edgeSource < last; edgeSource++) {
    const sourceEdgesEnd = offsets[edgeSource + 1]!;
    for (let spelledEdge = offsets[edgeSource]!; spelledEdge < sourceEdgesEnd; spelledEdge++) {
      recordWords[3 * spelledEdge] = edgeTargets[spelledEdge]!;
      recordWords[3 * spelledEdge + 1] = edgeSource;
      recordWords[3 * spelledEdge + 2] = spelledEdge;
    }
  }
}
