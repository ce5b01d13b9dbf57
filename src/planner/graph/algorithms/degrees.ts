/** The lookup behind DEGREE(column, direction): the number of edges of each node that has any. Not callable by name. */
import { degreeNames } from '../../expressions/degree-query.ts';
import type { Direction } from '../graph.ts';
import { degreeOf } from '../graph.ts';
import type { GraphAlgorithm } from '../graph-algorithm.ts';
import { stepsAtOnce } from '../stepped-sort.ts';

export function degrees(direction: Direction): GraphAlgorithm {
  return {
    name: degreeNames.function(direction),
    summary: 'nodes that have edges, and how many',
    about: 'open',
    arguments: [],
    direction,
    columns: [
      { name: degreeNames.node, holds: 'node' },
      { name: degreeNames.degree, holds: 'integer' },
    ],
    *run(graph, { hold }) {
      const degreeNodes = new Int32Array(graph.nodes);
      const nodeDegrees = new Int32Array(graph.nodes);
      hold(8 * graph.nodes);
      let count = 0;
      for (let node = 0; node < graph.nodes; node++) {
        const nodeEdgeCount = degreeOf(graph, node, direction);
        if (nodeEdgeCount > 0) {
          degreeNodes[count] = node;
          nodeDegrees[count++] = nodeEdgeCount;
        }
        if (node % stepsAtOnce === stepsAtOnce - 1) yield;
      }
      const columns = new Map([
        [degreeNames.node, degreeNodes],
        [degreeNames.degree, nodeDegrees],
      ]);
      return { count, columns, ordered: true };
    },
  };
}
