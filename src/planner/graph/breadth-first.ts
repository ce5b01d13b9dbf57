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
const frontierShareMin = 8;
const breadthNodesAtOnce = 1 << 14;

/** How many are reached. */
export function* breadthFirst(graph: Graph, call: GraphCall, breadthSearch: Search): Steps<number> {
  const { nodes } = graph;
  const frontierWays = ways(graph, call.direction);
  const backWays = call.direction === 'both' ? frontierWays : ways(graph, call.direction === 'out' ? 'in' : 'out');
  const { reached, distance, to } = breadthSearch;
  reached[0] = breadthSearch.source;
  let frontierStart = 0;
  let reachedCount = 1;
  let edgesLeft = frontierWays.length * graph.edges;
  for (let frontierHops = 1; frontierStart < reachedCount; frontierHops++) {
    const frontierEnd = reachedCount;
    const frontierEdges = frontierEdgeCount(frontierWays, reached, frontierStart, frontierEnd);
    edgesLeft -= frontierEdges;
    if (frontierEdges * frontierShareMin > edgesLeft + nodes) {
      for (let node = 0; node < nodes; node += breadthNodesAtOnce) {
        reachedCount = walkFromUnreached(backWays, breadthSearch, {
          hops: frontierHops,
          count: reachedCount,
          first: node,
          end: Math.min(nodes, node + breadthNodesAtOnce),
        });
        yield;
      }
    } else {
      for (let frontierOrdinal = frontierStart; frontierOrdinal < frontierEnd; ) {
        const nodeCount = layerRangeEnd(frontierWays, reached, frontierOrdinal, frontierEnd);
        reachedCount = walkFrontier(frontierWays, breadthSearch, {
          hops: frontierHops,
          count: reachedCount,
          first: frontierOrdinal,
          end: nodeCount,
        });
        frontierOrdinal = nodeCount;
        if (frontierEdges >= stepsAtOnce) yield;
      }
    }
    call.spend(Math.max(1, frontierEdges));
    if (to >= 0 && distance[to]! !== Number.POSITIVE_INFINITY) return reachedCount;
    frontierStart = frontierEnd;
  }
  return reachedCount;
}

function frontierEdgeCount(frontierWays: readonly Adjacency[], reached: Int32Array, first: number, end: number): number {
  let frontierEdges = 0;
  for (const { offsets } of frontierWays) {
    for (let i = first; i < end; i++) frontierEdges += offsets[reached[i]! + 1]! - offsets[reached[i]!]!;
  }
  return frontierEdges;
}

function layerRangeEnd(along: readonly Adjacency[], reached: Int32Array, first: number, last: number): number {
  let end = first;
  for (let edges = 0; end < last && edges < 2 * stepsAtOnce; end++) edges += 1 + frontierEdgeCount(along, reached, end, end + 1);
  return end;
}

interface LayerRange {
  readonly hops: number;
  readonly count: number;
  readonly first: number;
  readonly end: number;
}

function walkFrontier(
  frontierWays: readonly Adjacency[],
  breadthSearch: Search,
  { hops, count: before, first, end: last }: LayerRange,
): number {
  const { distance, hop: hopCounts, previous: previousNodes, reached } = breadthSearch;
  let reachedCount = before;
  for (const { offsets, neighbours } of frontierWays) {
    for (let i = first; i < last; i++) {
      const frontierNode = reached[i]!;
      const neighbourEnd = offsets[frontierNode + 1]!;
      for (let edgeSlot = offsets[frontierNode]!; edgeSlot < neighbourEnd; edgeSlot++) {
        const frontierNeighbour = neighbours[edgeSlot]!;
        if (distance[frontierNeighbour]! < hops) continue;
        if (distance[frontierNeighbour] === hops) {
          if (frontierNode < previousNodes[frontierNeighbour]!) previousNodes[frontierNeighbour] = frontierNode;
          continue;
        }
        distance[frontierNeighbour] = hops;
        hopCounts[frontierNeighbour] = hops;
        previousNodes[frontierNeighbour] = frontierNode;
        reached[reachedCount++] = frontierNeighbour;
      }
    }
  }
  return reachedCount;
}

/** Neighbours ascend: the first of the layer that a node finds is the least. */
function walkFromUnreached(
  backWays: readonly Adjacency[],
  breadthSearch: Search,
  { hops, count: before, first, end: last }: LayerRange,
): number {
  const { distance, hop: hopCounts, previous: previousNodes, reached } = breadthSearch;
  let reachedCount = before;
  const nearestHops = hops - 1;
  for (let unreachedNode = first; unreachedNode < last; unreachedNode++) {
    if (distance[unreachedNode]! < hops) continue;
    let nearestNode = -1;
    for (const { offsets, neighbours } of backWays) {
      const neighbourEnd = offsets[unreachedNode + 1]!;
      for (let edgeSlot = offsets[unreachedNode]!; edgeSlot < neighbourEnd; edgeSlot++) {
        const reachedNeighbour = neighbours[edgeSlot]!;
        if (distance[reachedNeighbour] !== nearestHops) continue;
        if (nearestNode < 0 || reachedNeighbour < nearestNode) nearestNode = reachedNeighbour;
        break;
      }
    }
    if (nearestNode < 0) continue;
    distance[unreachedNode] = hops;
    hopCounts[unreachedNode] = hops;
    previousNodes[unreachedNode] = nearestNode;
    reached[reachedCount++] = unreachedNode;
  }
  return reachedCount;
}
