/**
 * Nodes by their distance in edges, layer after layer; of each the least node of the layer before that an edge leads from. A layer of few
 * edges goes along them; one of many is met by the nodes that are left, each of which looks back until it finds one of the layer.
 */
import { type Adjacency, type Graph, ways } from './graph.ts';
import type { GraphCall } from './graph-algorithm.ts';
import { type Steps, stepsAtOnce } from './stepped-sort.ts';

export interface Search {
  readonly source: number;
  /** Ends with the layer that has it; -1: with the last. */
  readonly to: number;
  /** By node; initially unreached for all nodes but the source: infinite, 0, -1. */
  readonly distance: Float64Array;
  readonly hop: Int32Array;
  readonly previous: Int32Array;
  /** Filled with the nodes that are reached. */
  readonly reached: Int32Array;
}

/** Search a layer backwards when it has more than this fraction (one in n) of the remaining edges. */
const manyOf = 8;
const nodesAtOnce = 1 << 14;

/** How many are reached. */
export function* breadthFirst(graph: Graph, call: GraphCall, search: Search): Steps<number> {
  const { nodes } = graph;
  const along = ways(graph, call.direction);
  const back = call.direction === 'both' ? along : ways(graph, call.direction === 'out' ? 'in' : 'out');
  const { reached, distance, to } = search;
  reached[0] = search.source;
  let first = 0;
  let count = 1;
  let left = along.length * graph.edges;
  for (let hops = 1; first < count; hops++) {
    const end = count;
    const edges = edgesOf(along, reached, first, end);
    left -= edges;
    if (edges * manyOf > left + nodes) {
      for (let node = 0; node < nodes; node += nodesAtOnce) {
        count = lookBack(back, search, { hops, count, first: node, end: Math.min(nodes, node + nodesAtOnce) });
        yield;
      }
    } else {
      for (let at = first; at < end; ) {
        const nodeCount = layerRangeEnd(along, reached, at, end);
        count = goAlong(along, search, { hops, count, first: at, end: nodeCount });
        at = nodeCount;
        if (edges >= stepsAtOnce) yield;
      }
    }
    call.spend(Math.max(1, edges));
    if (to >= 0 && distance[to]! !== Number.POSITIVE_INFINITY) return count;
    first = end;
  }
  return count;
}

function edgesOf(along: readonly Adjacency[], reached: Int32Array, first: number, end: number): number {
  let edges = 0;
  for (const { offsets } of along) {
    for (let i = first; i < end; i++) edges += offsets[reached[i]! + 1]! - offsets[reached[i]!]!;
  }
  return edges;
}

function layerRangeEnd(along: readonly Adjacency[], reached: Int32Array, first: number, last: number): number {
  let end = first;
  for (let edges = 0; end < last && edges < 2 * stepsAtOnce; end++) edges += 1 + edgesOf(along, reached, end, end + 1);
  return end;
}

interface LayerRange {
  readonly hops: number;
  readonly count: number;
  readonly first: number;
  readonly end: number;
}

function goAlong(along: readonly Adjacency[], search: Search, { hops, count: before, first, end: last }: LayerRange): number {
  const { distance, hop, previous, reached } = search;
  let count = before;
  for (const { offsets, neighbours } of along) {
    for (let i = first; i < last; i++) {
      const node = reached[i]!;
      const end = offsets[node + 1]!;
      for (let edgeSlot = offsets[node]!; edgeSlot < end; edgeSlot++) {
        const other = neighbours[edgeSlot]!;
        if (distance[other]! < hops) continue;
        if (distance[other] === hops) {
          if (node < previous[other]!) previous[other] = node;
          continue;
        }
        distance[other] = hops;
        hop[other] = hops;
        previous[other] = node;
        reached[count++] = other;
      }
    }
  }
  return count;
}

/** Neighbours ascend: the first of the layer that a node finds is the least. */
function lookBack(back: readonly Adjacency[], search: Search, { hops, count: before, first, end: last }: LayerRange): number {
  const { distance, hop, previous, reached } = search;
  let count = before;
  const nearest = hops - 1;
  for (let node = first; node < last; node++) {
    if (distance[node]! < hops) continue;
    let from = -1;
    for (const { offsets, neighbours } of back) {
      const end = offsets[node + 1]!;
      for (let edgeSlot = offsets[node]!; edgeSlot < end; edgeSlot++) {
        const other = neighbours[edgeSlot]!;
        if (distance[other] !== nearest) continue;
        if (from < 0 || other < from) from = other;
        break;
      }
    }
    if (from < 0) continue;
    distance[node] = hops;
    hop[node] = hops;
    previous[node] = from;
    reached[count++] = node;
  }
  return count;
}
