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
    const joinedNeighbours = yield* simpleNeighbours(graph, 'both', hold);
    const { offsets, neighbours } = joinedNeighbours;
    hold(12 * graph.nodes);
    const triangleScores = new Float64Array(graph.nodes);
    let triangleLooks = 0;
    for (let firstCorner = 0; firstCorner < graph.nodes; firstCorner++) {
      for (let edgeSlot = offsets[firstCorner]!; edgeSlot < offsets[firstCorner + 1]!; edgeSlot++) {
        const secondCorner = neighbours[edgeSlot]!;
        if (secondCorner < firstCorner) continue;
        triangleLooks +=
          1 +
          common(joinedNeighbours, firstCorner, secondCorner, (thirdCorner) => {
            if (thirdCorner <= secondCorner) return;
            triangleScores[firstCorner]!++;
            triangleScores[secondCorner]!++;
            triangleScores[thirdCorner]!++;
          });
        if (triangleLooks >= stepsAtOnce) {
          spend(triangleLooks);
          triangleLooks = 0;
          yield;
        }
      }
    }
    return everyNode(triangleScores);
  },
};
