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
    const degreeScores = new Float64Array(graph.nodes);
    const { weights } = graph;
    for (let firstNode = 0; firstNode < graph.nodes; firstNode += centralityNodesAtOnce) {
      const nodeRangeEnd = Math.min(graph.nodes, firstNode + centralityNodesAtOnce);
      for (const degreeWay of ways(graph, direction)) {
        if (weights === null) countNodeEdges(degreeWay, degreeScores, firstNode, nodeRangeEnd);
        else weighNodeEdges(degreeWay, weights, degreeScores, firstNode, nodeRangeEnd);
      }
      yield;
    }
    return everyNode(degreeScores);
  },
};

const centralityNodesAtOnce = 1 << 14;

function countNodeEdges({ offsets }: Adjacency, degreeScores: Float64Array, firstNode: number, lastNode: number): void {
  for (let node = firstNode; node < lastNode; node++) degreeScores[node]! += offsets[node + 1]! - offsets[node]!;
}

function weighNodeEdges(
  { offsets, edges }: Adjacency,
  weights: Float64Array,
  degreeScores: Float64Array,
  firstNode: number,
  lastNode: number,
): void {
  for (let node = firstNode; node < lastNode; node++) {
    const nodeEdgesEnd = offsets[node + 1]!;
    for (let edgeSlot = offsets[node]!; edgeSlot < nodeEdgesEnd; edgeSlot++)
      degreeScores[node]! += weights[edges === null ? edgeSlot : edges[edgeSlot]!]!;
  }
}
