/** Edges that were read become a graph: pure, in steps, here or in a worker. */
import type { SteppedJob } from '../../log/stepping-job.ts';
import { edgesAtOnce, inOrder, offsetsOf, roomFor, type Ends, turned } from './edge-order.ts';
import type { Adjacency, GraphParts } from './graph.ts';
import { floatsOf } from './instant-floats.ts';
import { shared } from './shared.ts';
import { sorted, type Steps } from './steps.ts';

/** Texts by code, as bytes. */
interface Names {
  readonly size: number;
  readonly offsets: Uint32Array;
  readonly heap: Uint8Array;
}

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
  /** By code: 1 of a visible node. */
  readonly visible: Uint8Array;
}

export interface MadeGraph {
  readonly parts: Omit<GraphParts, 'texts'>;
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
    const making = made(read);
    for (let done = 0; ; done++) {
      const step = making.next();
      if (step.done) return step.value;
      if (done % stepsAtOnce === stepsAtOnce - 1) yield { done, of: read.length };
    }
  },
};

/** Edges of which both ends are visible. */
export function* made(read: ReadEdges): Steps<MadeGraph> {
  const { length, links, weight, link } = read;
  const order = yield* visibleNodes(read);
  const nodes = order.length;
  const numberOf = new Int32Array(read.names.size).fill(-1);
  for (let node = 0; node < nodes; node++) numberOf[order[node]!] = node;
  const all = roomFor(length, true);
  let count = 0;
  for (let first = 0; first < length; first += edgesAtOnce) {
    count = numbered(read, numberOf, all, { first, end: Math.min(length, first + edgesAtOnce), count });
    yield;
  }
  // Edges came by link type and system_from: ordering them by target, then by source, leaves each order within the next.
  const { sources, targets, names, times } = yield* inOrder(firstOf(all, count), nodes);
  const neighbours = shared(Int32Array, count);
  const systemFrom = shared(BigInt64Array, count);
  const weights = weight === null ? null : shared(Float64Array, count);
  const linkOf = links.length > 1 ? shared(Uint16Array, count) : null;
  const instants = floatsOf(systemFrom);
  for (let first = 0; first < count; first += edgesAtOnce) {
    const end = Math.min(count, first + edgesAtOnce);
    neighbours.set(targets.subarray(first, end), first);
    instants.set(times!.subarray(first, end), first);
    const own = names.subarray(first, end);
    if (weights !== null) take(weight!, own, weights, first);
    if (linkOf !== null) take(link, own, linkOf, first);
    yield;
  }
  const out: Adjacency = { offsets: yield* offsetsOf(sources, nodes), neighbours, edges: null };
  const into = yield* turned(out.offsets, neighbours, nodes);
  return { parts: { out, in: into, systemFrom, linkOf, links, weights }, order, numberOf };
}

/** By the bytes of their texts. */
function* visibleNodes({ names: { size, offsets, heap }, visible }: ReadEdges): Steps<Int32Array> {
  const codes = new Int32Array(size);
  let count = 0;
  for (let code = 0; code < size; code++) if (visible[code] === 1) codes[count++] = code;
  return yield* sorted(codes.subarray(0, count), (a, b) => {
    let [atA, atB] = [offsets[a]!, offsets[b]!];
    const [sizeA, sizeB] = [offsets[a + 1]! - atA, offsets[b + 1]! - atB];
    for (const end = atA + Math.min(sizeA, sizeB); atA < end; atA++, atB++) {
      const difference = heap[atA]! - heap[atB]!;
      if (difference !== 0) return difference;
    }
    return sizeA - sizeB;
  });
}

interface Stretch {
  readonly first: number;
  readonly end: number;
}

// The loops below are functions of their own: in one that can be left in the middle they would be compiled worse.

/** How many edges there are by now. */
function numbered(
  { from, to, time }: ReadEdges,
  numberOf: Int32Array,
  { sources, targets, names, times }: Ends,
  { first, end, count: before }: Stretch & { readonly count: number },
): number {
  const instants = floatsOf(time);
  let count = before;
  for (let edge = first; edge < end; edge++) {
    const source = numberOf[from[edge]!]!;
    const target = numberOf[to[edge]!]!;
    if (source < 0 || target < 0) continue;
    names[count] = edge;
    times![count] = instants[edge]!;
    sources[count] = source;
    targets[count++] = target;
  }
  return count;
}

function firstOf({ sources, targets, names, times }: Ends, count: number): Ends {
  const [a, b, c] = [sources, targets, names].map((each) => each.subarray(0, count));
  return { sources: a!, targets: b!, names: c!, times: times!.subarray(0, count) };
}

function take<A extends Float64Array | Uint16Array>(from: A, places: Int32Array, to: A, first: number): void {
  for (let i = 0; i < places.length; i++) to[first + i] = from[places[i]!]!;
}
