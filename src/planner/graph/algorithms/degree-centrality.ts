/** How many edges a node has, or what they weigh together. A loop counts once for each direction in which it is gone. */
import { degreeOf, ways } from '../graph.ts';
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import { everyNode } from '../rows.ts';
import { stepsAtOnce } from '../steps.ts';

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
    let looks = 0;
    for (let node = 0; node < graph.nodes; node++) {
      if (weights === null) score[node] = degreeOf(graph, node, direction);
      else {
        for (const { offsets, edges } of ways(graph, direction)) {
          for (let place = offsets[node]!; place < offsets[node + 1]!; place++) {
            score[node]! += weights[edges === null ? place : edges[place]!]!;
            looks++;
          }
        }
      }
      if (++looks >= stepsAtOnce) {
        looks = 0;
        yield;
      }
    }
    return everyNode(score);
  },
};
