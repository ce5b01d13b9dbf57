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
const buildStepsAtOnce = 96;

export const makingJob: SteppedJob<ReadEdges, MadeGraph> = {
  module: import.meta.url,
  name: 'makingJob',
  *steps(edgesRead) {
    const graphBuild = makeGraph(edgesRead);
    for (let buildStepCount = 0; ; buildStepCount++) {
      const buildStep = graphBuild.next();
      if (buildStep.done) return buildStep.value;
      if (buildStepCount % buildStepsAtOnce === buildStepsAtOnce - 1) yield { done: buildStepCount, of: edgesRead.length };
    }
  },
};

/** Edges of which both ends are visible. */
export function* makeGraph(edgesRead: ReadEdges): Steps<MadeGraph> {
  const { length, links, weight, link } = edgesRead;
  const nodeOrder = yield* visibleNodesInOrder(edgesRead);
  const nodeCount = nodeOrder.length;
  const numberOf = new Int32Array(edgesRead.names.size).fill(-1);
  for (let node = 0; node < nodeCount; node++) numberOf[nodeOrder[node]!] = node;
  // Source, target, both halves of the instant, and the edge's number where more is to be looked up by it.
  const isPlainGraph = weight === null && links.length <= 1;
  const edgeRecords = roomFor(length, isPlainGraph ? 4 : 5);
  let edgeCount = 0;
  for (let firstEdge = 0; firstEdge < length; firstEdge += edgesAtOnce) {
    edgeCount = numberEdgeEnds(edgesRead, numberOf, edgeRecords, {
      first: firstEdge,
      end: Math.min(length, firstEdge + edgesAtOnce),
      count: edgeCount,
    });
    yield;
  }
  // Edges came by link type and system_from: ordering them by target, then by source, leaves each order within the next.
  const orderedEdges = yield* inOrder(edgeRecords, edgeCount, nodeCount);
  const outNeighbours = sharedArray(Int32Array, edgeCount);
  const systemFrom = sharedArray(BigInt64Array, edgeCount);
  const weights = weight === null ? null : sharedArray(Float64Array, edgeCount);
  const linkOf = links.length > 1 ? sharedArray(Uint16Array, edgeCount) : null;
  const instantHalves = halvesOf(systemFrom);
  for (let first = 0; first < edgeCount; first += edgesAtOnce) {
    const edgeEnd = Math.min(edgeCount, first + edgesAtOnce);
    column(orderedEdges, 1, outNeighbours, first, edgeEnd);
    takeEdgeInstants(orderedEdges, instantHalves, first, edgeEnd);
    if (weights !== null) takeEdgeValues(weight!, orderedEdges, weights, first, edgeEnd);
    if (linkOf !== null) takeEdgeValues(link, orderedEdges, linkOf, first, edgeEnd);
    yield;
  }
  const outAdjacency: Adjacency = {
    offsets: yield* offsetsOf(orderedEdges, edgeCount, nodeCount),
    neighbours: outNeighbours,
    edges: null,
  };
  const inAdjacency = yield* transpose(outAdjacency.offsets, outNeighbours, nodeCount);
  return { arrays: { out: outAdjacency, in: inAdjacency, systemFrom, linkOf, links, weights }, order: nodeOrder, numberOf };
}

/** Visible nodes in the order of their texts' bytes. */
function* visibleNodesInOrder({ names, visible }: ReadEdges): Steps<Int32Array> {
  const { size: nameCount } = names;
  const visibleCodes = new Int32Array(nameCount);
  let visibleCount = 0;
  for (let nodeCode = 0; nodeCode < nameCount; nodeCode++) if (visible[nodeCode] === 1) visibleCodes[visibleCount++] = nodeCode;
  return yield* inTextOrder(visibleCodes.subarray(0, visibleCount), names);
}

interface NodeRange {
  readonly first: number;
  readonly end: number;
}

// The loops below are functions of their own: V8 compiles a loop worse inside a generator.

/** How many edges there are by now. */
function numberEdgeEnds(
  { from, to, time }: ReadEdges,
  numberOf: Int32Array,
  { words, width }: Records,
  { first, end, count: before }: NodeRange & { readonly count: number },
): number {
  const instantHalves = halvesOf(time);
  let numberedEdges = before;
  for (let readEdge = first; readEdge < end; readEdge++) {
    const sourceNode = numberOf[from[readEdge]!]!;
    const targetNode = numberOf[to[readEdge]!]!;
    if (sourceNode < 0 || targetNode < 0) continue;
    const recordOffset = numberedEdges++ * width;
    words[recordOffset] = sourceNode;
    words[recordOffset + 1] = targetNode;
    words[recordOffset + 2] = instantHalves[2 * readEdge]!;
    words[recordOffset + 3] = instantHalves[2 * readEdge + 1]!;
    if (width > 4) words[recordOffset + 4] = readEdge;
  }
  return numberedEdges;
}

function takeEdgeInstants({ words, width }: Records, instantHalves: Int32Array, first: number, end: number): void {
  for (let i = first, recordOffset = first * width; i < end; i++, recordOffset += width) {
    instantHalves[2 * i] = words[recordOffset + 2]!;
    instantHalves[2 * i + 1] = words[recordOffset + 3]!;
  }
}

function takeEdgeValues<A extends Float64Array | Uint16Array>(
  readValues: A,
  { words, width }: Records,
  orderedValues: A,
  first: number,
  end: number,
): void {
  for (let i = first, recordOffset = first * width + 4; i < end; i++, recordOffset += width)
    orderedValues[i] = readValues[words[recordOffset]!]!;
}
