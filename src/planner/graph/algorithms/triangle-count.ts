/** Triangles that a node is a corner of, whichever way edges lead and however many join two nodes. */
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import { everyNode } from '../score-rows.ts';
import { common, simpleNeighbours } from '../simple-neighbours.ts';
import { stepsAtOnce } from '../stepped-sort.ts';

export const triangleCount: GraphAlgorithm = {
  name: 'TRIANGLE_COUNT',
  summary: 'How many triangles each node is a corner of.',
  about: 'typed',
  arguments: [],
  columns: scoredWith(),
  *run(graph, { hold, spend }) {
    const joined = yield* simpleNeighbours(graph, 'both', hold);
    const { offsets, neighbours } = joined;
    hold(12 * graph.nodes);
    const score = new Float64Array(graph.nodes);
    let looks = 0;
    for (let a = 0; a < graph.nodes; a++) {
      for (let edgeSlot = offsets[a]!; edgeSlot < offsets[a + 1]!; edgeSlot++) {
        const b = neighbours[edgeSlot]!;
        if (b < a) continue;
        looks +=
          1 +
          common(joined, a, b, (c) => {
            if (c <= b) return;
            score[a]!++;
            score[b]!++;
            score[c]!++;
          });
        if (looks >= stepsAtOnce) {
          spend(looks);
          looks = 0;
          yield;
        }
      }
    }
    return everyNode(score);
  },
};
