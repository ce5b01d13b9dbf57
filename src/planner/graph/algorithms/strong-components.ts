/** Which nodes reach each other both ways: Tarjan's algorithm, its stack an array. */
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import { communities } from '../score-rows.ts';
import { stepsAtOnce } from '../stepped-sort.ts';

export const strongComponents: GraphAlgorithm = {
  name: 'GRAPH_SCC',
  summary: 'The strongly connected component of each node, by the least of its nodes, and as score the number of nodes in it.',
  about: 'typed',
  arguments: [],
  columns: scoredWith({ name: 'community', holds: 'node' }),
  *run({ nodes, out: { offsets, neighbours } }, { hold }) {
    hold(44 * nodes);
    const componentLabels = new Int32Array(nodes).fill(-1);
    const visitNumbers = new Int32Array(nodes).fill(-1);
    const lowLinks = new Int32Array(nodes);
    const stackIndex = new Uint32Array(nodes);
    const componentStack = new Int32Array(nodes);
    const visitTrail = new Int32Array(nodes);
    let [stackedCount, visitCount, componentLooks] = [0, 0, 0];
    for (let startNode = 0; startNode < nodes; startNode++) {
      if (visitNumbers[startNode]! >= 0) continue;
      let trailDepth = 0;
      visitTrail[0] = startNode;
      while (trailDepth >= 0) {
        const trailNode = visitTrail[trailDepth]!;
        if (visitNumbers[trailNode]! < 0) {
          visitNumbers[trailNode] = lowLinks[trailNode] = visitCount++;
          stackIndex[trailNode] = offsets[trailNode]!;
          componentStack[stackedCount++] = trailNode;
        }
        let hasEntered = false;
        while (!hasEntered && stackIndex[trailNode]! < offsets[trailNode + 1]!) {
          const trailNeighbour = neighbours[stackIndex[trailNode]!]!;
          if (visitNumbers[trailNeighbour]! < 0) {
            visitTrail[++trailDepth] = trailNeighbour;
            hasEntered = true;
          } else {
            if (componentLabels[trailNeighbour]! < 0)
              lowLinks[trailNode] = Math.min(lowLinks[trailNode]!, lowLinks[trailNeighbour]!);
            stackIndex[trailNode]!++;
          }
          if (++componentLooks % stepsAtOnce === 0) yield;
        }
        if (hasEntered) continue;
        if (lowLinks[trailNode] === visitNumbers[trailNode]) {
          let poppedNode: number;
          do componentLabels[(poppedNode = componentStack[--stackedCount]!)] = trailNode;
          while (poppedNode !== trailNode);
        }
        trailDepth--;
      }
    }
    return communities(componentLabels);
  },
};
