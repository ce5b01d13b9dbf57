/** Makes a graph of the edges that were read: pure, in steps, here or in a worker. */
import type { SteppedJob } from '../../log/threads/stepping-job.ts';
import { column, edgesAtOnce, inOrder, offsetsOf, type Records, roomFor, transpose } from './edge-order.ts';
import type { Adjacency, GraphData } from './graph.ts';
import { halvesOf } from './instant-floats.ts';
import { sharedArray } from './shared-array.ts';
import type { Steps } from './stepped-sort.ts';
import { inTextOrder, type Names } from './text-order.ts';

export interface ReadEdges {
  readonly length: number;
  /** Ends by code; by edge, those of one link type and instant after the other. */
  readonly from: Int32Array;
  readonly to: Int32Array;
  readonly time: BigInt64Array;
  readonly weight: Float64Array | null;
  readonly link: Uint16Array;
  readonly links: readonly string[];
  readonly names: Names;
  /** By code: 1 for a visible node. */
  readonly visible: Uint8Array;
}

export interface MadeGraph {
  readonly arrays: Omit<GraphData, 'texts'>;
  /** Codes of nodes, by number. */
  readonly order: Int32Array;
  /** Numbers of nodes, by code; -1 of none. */
  readonly numberOf: Int32Array;
}

/** Between two messages: some milliseconds. */
const stepsAtOnce = 96;

export const makingJob: SteppedJob<ReadEdges, MadeGraph> = {
  module: import.meta.url,
  name: 'makingJob',
  *steps(read) {
    const making = makeGraph(read);
    for (let done = 0; ; done++) {
      const step = making.next();
      if (step.done) return step.value;
      if (done % stepsAtOnce === stepsAtOnce - 1) yield { done, of: read.length };
    }
  },
};

/** Edges of which both ends are visible. */
export function* makeGraph(read: ReadEdges): Steps<MadeGraph> {
  const { length, links, weight, link } = read;
  const order = yield* visibleNodes(read);
  const nodes = order.length;
  const numberOf = new Int32Array(read.names.size).fill(-1);
  for (let node = 0; node < nodes; node++) numberOf[order[node]!] = node;
  // Source, target, both halves of the instant, and the edge's number where more is to be looked up by it.
  const isPlain = weight === null && links.length <= 1;
  const all = roomFor(length, isPlain ? 4 : 5);
  let count = 0;
  for (let first = 0; first < length; first += edgesAtOnce) {
    count = numberEdges(read, numberOf, all, { first, end: Math.min(length, first + edgesAtOnce), count });
    yield;
  }
  // Edges came by link type and system_from: ordering them by target, then by source, leaves each order within the next.
  const ordered = yield* inOrder(all, count, nodes);
  const neighbours = sharedArray(Int32Array, count);
  const systemFrom = sharedArray(BigInt64Array, count);
  const weights = weight === null ? null : sharedArray(Float64Array, count);
  const linkOf = links.length > 1 ? sharedArray(Uint16Array, count) : null;
  const instants = halvesOf(systemFrom);
  for (let first = 0; first < count; first += edgesAtOnce) {
    const end = Math.min(count, first + edgesAtOnce);
    column(ordered, 1, neighbours, first, end);
    takeInstants(ordered, instants, first, end);
    if (weights !== null) take(weight!, ordered, weights, first, end);
    if (linkOf !== null) take(link, ordered, linkOf, first, end);
    yield;
  }
  const out: Adjacency = { offsets: yield* offsetsOf(ordered, count, nodes), neighbours, edges: null };
  const into = yield* transpose(out.offsets, neighbours, nodes);
  return { arrays: { out, in: into, systemFrom, linkOf, links, weights }, order, numberOf };
}

/** Visible nodes in the order of their texts' bytes. */
function* visibleNodes({ names, visible }: ReadEdges): Steps<Int32Array> {
  const { size } = names;
  const codes = new Int32Array(size);
  let count = 0;
  for (let code = 0; code < size; code++) if (visible[code] === 1) codes[count++] = code;
  return yield* inTextOrder(codes.subarray(0, count), names);
}

interface NodeRange {
  readonly first: number;
  readonly end: number;
}

// The loops below are functions of their own: V8 compiles a loop worse inside a generator.

/** How many edges there are by now. */
function numberEdges(
  { from, to, time }: ReadEdges,
  numberOf: Int32Array,
  { words, width }: Records,
  { first, end, count: before }: NodeRange & { readonly count: number },
): number {
  const instants = halvesOf(time);
  let count = before;
  for (let edge = first; edge < end; edge++) {
    const source = numberOf[from[edge]!]!;
    const target = numberOf[to[edge]!]!;
    if (source < 0 || target < 0) continue;
    const at = count++ * width;
    words[at] = source;
    words[at + 1] = target;
    words[at + 2] = instants[2 * edge]!;
    words[at + 3] = instants[2 * edge + 1]!;
    if (width > 4) words[at + 4] = edge;
  }
  return count;
}

function takeInstants({ words, width }: Records, halves: Int32Array, first: number, end: number): void {
  for (let i = first, at = first * width; i < end; i++, at += width) {
    halves[2 * i] = words[at + 2]!;
    halves[2 * i + 1] = words[at + 3]!;
  }
}

function take<A extends Float64Array | Uint16Array>(from: A, { words, width }: Records, to: A, first: number, end: number): void {
  for (let i = first, at = first * width + 4; i < end; i++, at += width) to[i] = from[words[at]!]!;
}
