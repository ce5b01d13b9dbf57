/** How much a node matters: by its edges, by the shortest ways that lead over it, by how near the others are, or by its neighbours. */
import { degreeOf, type Graph, ways } from '../graph.ts';
import { type GraphAlgorithm, type GraphCall, scoredWith } from '../graph-algorithm.ts';
import { everyNode } from '../score-rows.ts';
import { hits } from './hits.ts';
import { pageRanks } from './pagerank.ts';
import { ShortestWays } from '../shortest-paths.ts';
import { simpleNeighbours } from '../simple-neighbours.ts';
import { type Steps, stepsAtOnce } from '../stepped-sort.ts';

/** Betweenness is the one by default. */
export const nodeMetrics = ['betweenness', 'closeness', 'eigenvector', 'pagerank', 'degree', 'hub', 'authority'] as const;

export const nodeMetric: GraphAlgorithm = {
  name: 'GRAPH_NODE_METRIC',
  summary: 'How much each node matters: by shortest ways over it, by nearness, by its neighbours or by its edges.',
  about: 'typed',
  arguments: [
    {
      name: 'METRIC',
      kind: 'word',
      choices: nodeMetrics,
      summary: "'betweenness' (the default), 'closeness', 'eigenvector', 'pagerank', 'degree', 'hub' or 'authority'",
    },
  ],
  direction: 'both',
  columns: scoredWith(),
  *run(graph, call) {
    call.hold(12 * graph.nodes);
    switch (call.choice('METRIC')) {
      case 'closeness':
        return everyNode(yield* closenessScores(graph, call));
      case 'eigenvector':
        return everyNode(yield* eigenvectorScores(graph, call));
      case 'pagerank': {
        call.hold(36 * graph.nodes + 4 * graph.edges);
        return everyNode((yield* pageRanks(graph, call, { damping: 0.85, rounds: 20, direction: 'out' })).score);
      }
      case 'hub':
        return everyNode(yield* hits(graph, call, 'hub'));
      case 'authority':
        return everyNode(yield* hits(graph, call, 'authority'));
      case 'degree':
        return everyNode(Float64Array.from({ length: graph.nodes }, (_, node) => degreeOf(graph, node, call.direction)));
      default:
        return everyNode(yield* betweennessScores(graph, call));
    }
  },
};

/** Shares of shortest ways between two others that lead over a node (Brandes); of a pair once, where edges are gone either way. */
function* betweennessScores(graph: Graph, call: GraphCall): Steps<Float64Array> {
  const { nodes } = graph;
  const { offsets, neighbours } = yield* simpleNeighbours(graph, call.direction, call.hold);
  call.hold(32 * nodes);
  const routeScores = new Float64Array(nodes);
  const routeDistances = new Int32Array(nodes).fill(-1);
  const shortestRoutes = new Float64Array(nodes);
  const routeShares = new Float64Array(nodes);
  const visitOrder = new Int32Array(nodes);
  let routeLooks = 0;
  for (let routeStart = 0; routeStart < nodes; routeStart++) {
    routeDistances[routeStart] = 0;
    shortestRoutes[routeStart] = 1;
    visitOrder[0] = routeStart;
    let visitedCount = 1;
    for (let i = 0; i < visitedCount; i++) {
      const visitedNode = visitOrder[i]!;
      for (let edgeSlot = offsets[visitedNode]!; edgeSlot < offsets[visitedNode + 1]!; edgeSlot++) {
        const routeNeighbour = neighbours[edgeSlot]!;
        if (routeDistances[routeNeighbour]! < 0) {
          routeDistances[routeNeighbour] = routeDistances[visitedNode]! + 1;
          visitOrder[visitedCount++] = routeNeighbour;
        }
        if (routeDistances[routeNeighbour] === routeDistances[visitedNode]! + 1)
          shortestRoutes[routeNeighbour]! += shortestRoutes[visitedNode]!;
        if (++routeLooks % stepsAtOnce === 0) {
          call.spend(stepsAtOnce);
          yield;
        }
      }
    }
    for (let i = visitedCount - 1; i >= 0; i--) {
      const visitedNode = visitOrder[i]!;
      for (let edgeSlot = offsets[visitedNode]!; edgeSlot < offsets[visitedNode + 1]!; edgeSlot++) {
        const routeNeighbour = neighbours[edgeSlot]!;
        if (routeDistances[routeNeighbour] === routeDistances[visitedNode]! + 1)
          routeShares[visitedNode]! +=
            (shortestRoutes[visitedNode]! / shortestRoutes[routeNeighbour]!) * (1 + routeShares[routeNeighbour]!);
        if (++routeLooks % stepsAtOnce === 0) yield;
      }
      if (i > 0) routeScores[visitedNode]! += routeShares[visitedNode]!;
    }
    for (let i = 0; i < visitedCount; i++) {
      const visitedNode = visitOrder[i]!;
      routeDistances[visitedNode] = -1;
      shortestRoutes[visitedNode] = routeShares[visitedNode] = 0;
    }
  }
  return call.direction === 'both' ? routeScores.map((each) => each / 2) : routeScores;
}

/** Nodes that are reached, less one, by how far they are in all, times the share of all nodes that these are. */
function* closenessScores(graph: Graph, call: GraphCall): Steps<Float64Array> {
  const closenessByNode = new Float64Array(graph.nodes);
  const ways = new ShortestWays(graph, call);
  for (let node = 0; node < graph.nodes; node++) {
    yield* ways.from(node);
    let distanceSum = 0;
    for (let i = 1; i < ways.count; i++) distanceSum += ways.distance[ways.reached[i]!]!;
    const reachedOthers = ways.count - 1;
    if (reachedOthers > 0) closenessByNode[node] = (reachedOthers / distanceSum) * (reachedOthers / (graph.nodes - 1));
    call.spend(ways.count);
    yield;
  }
  return closenessByNode;
}

const eigenvectorRoundsMax = 1_000;
const eigenvectorTolerance = 1e-12;

/**
 * Eigenvector centrality: a node scores by the scores of the nodes that lead to it; the squares of all add up to 1. Each node
 * keeps its own score in a round, so that rounds converge.
 */
function* eigenvectorScores(graph: Graph, call: GraphCall): Steps<Float64Array> {
  const { nodes } = graph;
  const { direction } = call;
  const givingWays = ways(graph, direction === 'both' ? 'both' : direction === 'out' ? 'in' : 'out');
  let eigenvectorScore = new Float64Array(nodes).fill(1 / Math.sqrt(Math.max(1, nodes)));
  let nextEigenvector = new Float64Array(nodes);
  for (let eigenvectorRound = 0; eigenvectorRound < eigenvectorRoundsMax; eigenvectorRound++) {
    let giverLooks = 0;
    let squaredSum = 0;
    for (let node = 0; node < nodes; node++) {
      let giverSum = eigenvectorScore[node]!;
      for (const { offsets, neighbours } of givingWays) {
        for (let edgeSlot = offsets[node]!; edgeSlot < offsets[node + 1]!; edgeSlot++)
          giverSum += eigenvectorScore[neighbours[edgeSlot]!]!;
        giverLooks += 1 + offsets[node + 1]! - offsets[node]!;
      }
      nextEigenvector[node] = giverSum;
      squaredSum += giverSum * giverSum;
      if (giverLooks >= stepsAtOnce) {
        giverLooks = 0;
        yield;
      }
    }
    const eigenvectorNorm = Math.sqrt(squaredSum);
    let eigenvectorChange = 0;
    for (let node = 0; node < nodes; node++) {
      nextEigenvector[node]! /= eigenvectorNorm;
      eigenvectorChange += Math.abs(nextEigenvector[node]! - eigenvectorScore[node]!);
    }
    [eigenvectorScore, nextEigenvector] = [nextEigenvector, eigenvectorScore];
    yield;
    if (eigenvectorChange < eigenvectorTolerance * nodes) break;
  }
  return eigenvectorScore;
}
