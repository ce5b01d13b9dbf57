/** The number of a node's edges, or their total weight. A loop counts once for each direction. */
import { type Adjacency, ways } from '../graph.ts';
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import { everyNode } from '../score-rows.ts';

export const degreeCentrality: GraphAlgorithm = {
  name: 'DEGREE_CENTRALITY',
  summary: 'The number of edges of each node, or with WEIGHT what they weigh together.',
  about: 'typed',
  arguments: [],
  direction: 'both',
  weighted: true,
  columns: scoredWith(),
  *run(graph, { direction, hold }) {
    hold(12 * graph.nodes);
    const score = new Float64Array(graph.nodes);
    const { weights } = graph;
    for (let first = 0; first < graph.nodes; first += nodesAtOnce) {
      const end = Math.min(graph.nodes, first + nodesAtOnce);
      for (const each of ways(graph, direction)) {
        if (weights === null) countEdges(each, score, first, end);
        else weighEdges(each, weights, score, first, end);
      }
      yield;
    }
    return everyNode(score);
  },
};

const nodesAtOnce = 1 << 14;

function countEdges({ offsets }: Adjacency, score: Float64Array, first: number, end: number): void {
  for (let node = first; node < end; node++) score[node]! += offsets[node + 1]! - offsets[node]!;
}

function weighEdges(
  { offsets, edges }: Adjacency,
  weights: Float64Array,
  score: Float64Array,
  first: number,
  last: number,
): void {
  for (let node = first; node < last; node++) {
    const end = offsets[node + 1]!;
    for (let edgeSlot = offsets[node]!; edgeSlot < end; edgeSlot++)
      score[node]! += weights[edges === null ? edgeSlot : edges[edgeSlot]!]!;
  }
}
