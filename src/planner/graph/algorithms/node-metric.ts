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
        return everyNode(yield* closeness(graph, call));
      case 'eigenvector':
        return everyNode(yield* eigenvector(graph, call));
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
        return everyNode(yield* betweenness(graph, call));
    }
  },
};

/** Shares of shortest ways between two others that lead over a node (Brandes); of a pair once, where edges are gone either way. */
function* betweenness(graph: Graph, call: GraphCall): Steps<Float64Array> {
  const { nodes } = graph;
  const { offsets, neighbours } = yield* simpleNeighbours(graph, call.direction, call.hold);
  call.hold(32 * nodes);
  const score = new Float64Array(nodes);
  const distance = new Int32Array(nodes).fill(-1);
  const routes = new Float64Array(nodes);
  const share = new Float64Array(nodes);
  const order = new Int32Array(nodes);
  let looks = 0;
  for (let start = 0; start < nodes; start++) {
    distance[start] = 0;
    routes[start] = 1;
    order[0] = start;
    let count = 1;
    for (let i = 0; i < count; i++) {
      const node = order[i]!;
      for (let edgeSlot = offsets[node]!; edgeSlot < offsets[node + 1]!; edgeSlot++) {
        const other = neighbours[edgeSlot]!;
        if (distance[other]! < 0) {
          distance[other] = distance[node]! + 1;
          order[count++] = other;
        }
        if (distance[other] === distance[node]! + 1) routes[other]! += routes[node]!;
        if (++looks % stepsAtOnce === 0) {
          call.spend(stepsAtOnce);
          yield;
        }
      }
    }
    for (let i = count - 1; i >= 0; i--) {
      const node = order[i]!;
      for (let edgeSlot = offsets[node]!; edgeSlot < offsets[node + 1]!; edgeSlot++) {
        const other = neighbours[edgeSlot]!;
        if (distance[other] === distance[node]! + 1) share[node]! += (routes[node]! / routes[other]!) * (1 + share[other]!);
        if (++looks % stepsAtOnce === 0) yield;
      }
      if (i > 0) score[node]! += share[node]!;
    }
    for (let i = 0; i < count; i++) {
      const node = order[i]!;
      distance[node] = -1;
      routes[node] = share[node] = 0;
    }
  }
  return call.direction === 'both' ? score.map((each) => each / 2) : score;
}

/** Nodes that are reached, less one, by how far they are in all, times the share of all nodes that these are. */
function* closeness(graph: Graph, call: GraphCall): Steps<Float64Array> {
  const score = new Float64Array(graph.nodes);
  const ways = new ShortestWays(graph, call);
  for (let node = 0; node < graph.nodes; node++) {
    yield* ways.from(node);
    let sum = 0;
    for (let i = 1; i < ways.count; i++) sum += ways.distance[ways.reached[i]!]!;
    const others = ways.count - 1;
    if (others > 0) score[node] = (others / sum) * (others / (graph.nodes - 1));
    call.spend(ways.count);
    yield;
  }
  return score;
}

const roundsMax = 1_000;
const tolerance = 1e-12;

/**
 * Eigenvector centrality: a node scores by the scores of the nodes that lead to it; the squares of all add up to 1. Each node
 * keeps its own score in a round, so that rounds converge.
 */
function* eigenvector(graph: Graph, call: GraphCall): Steps<Float64Array> {
  const { nodes } = graph;
  const { direction } = call;
  const givers = ways(graph, direction === 'both' ? 'both' : direction === 'out' ? 'in' : 'out');
  let score = new Float64Array(nodes).fill(1 / Math.sqrt(Math.max(1, nodes)));
  let next = new Float64Array(nodes);
  for (let round = 0; round < roundsMax; round++) {
    let looks = 0;
    let squares = 0;
    for (let node = 0; node < nodes; node++) {
      let sum = score[node]!;
      for (const { offsets, neighbours } of givers) {
        for (let edgeSlot = offsets[node]!; edgeSlot < offsets[node + 1]!; edgeSlot++) sum += score[neighbours[edgeSlot]!]!;
        looks += 1 + offsets[node + 1]! - offsets[node]!;
      }
      next[node] = sum;
      squares += sum * sum;
      if (looks >= stepsAtOnce) {
        looks = 0;
        yield;
      }
    }
    const norm = Math.sqrt(squares);
    let change = 0;
    for (let node = 0; node < nodes; node++) {
      next[node]! /= norm;
      change += Math.abs(next[node]! - score[node]!);
    }
    [score, next] = [next, score];
    yield;
    if (change < tolerance * nodes) break;
  }
  return score;
}
