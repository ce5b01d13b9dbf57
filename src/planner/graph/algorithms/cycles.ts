/** Simple cycles along edges, each once, begun at the least of its nodes: the shortest first, those of one length by their nodes. */
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import { tooMany } from '../graph-limits.ts';
import { stepsAtOnce } from '../stepped-sort.ts';
import { hopsMax } from './paths-between.ts';

export const cycles: GraphAlgorithm = {
  name: 'GRAPH_CYCLES',
  summary: 'Every simple cycle, one row for each of its nodes, the shortest first; the score is how many nodes it has.',
  about: 'typed',
  arguments: [{ name: 'MAX_LENGTH', kind: 'integer', summary: `the most edges of a cycle, from 1 to ${hopsMax}; 5 by default` }],
  columns: scoredWith({ name: 'cycle', holds: 'integer' }, { name: 'hop', holds: 'integer' }),
  *run(graph, call) {
    const cycleLengthMax = call.integer('MAX_LENGTH', 5, 1, hopsMax);
    const { offsets, neighbours } = graph.out;
    call.hold(graph.nodes);
    const cycles: number[][] = [];
    let cycleRowCount = 0;
    const isOnCycle = new Uint8Array(graph.nodes);
    const cyclePath = new Int32Array(cycleLengthMax);
    const pathIndex = new Uint32Array(cycleLengthMax);
    let edgeLooks = 0;
    for (let cycleStart = 0; cycleStart < graph.nodes; cycleStart++) {
      let cycleDepth = 0;
      cyclePath[0] = cycleStart;
      pathIndex[0] = offsets[cycleStart]!;
      isOnCycle[cycleStart] = 1;
      while (cycleDepth >= 0) {
        const cycleNode = cyclePath[cycleDepth]!;
        if (pathIndex[cycleDepth]! >= offsets[cycleNode + 1]!) {
          isOnCycle[cycleNode] = 0;
          cycleDepth--;
          continue;
        }
        const neighbourSlot = pathIndex[cycleDepth]!++;
        const nextNode = neighbours[neighbourSlot]!;
        if (++edgeLooks % stepsAtOnce === 0) {
          call.spend(stepsAtOnce);
          yield;
        }
        // Edges side by side make no other cycle.
        if (nextNode < cycleStart || (neighbourSlot > offsets[cycleNode]! && neighbours[neighbourSlot - 1] === nextNode))
          continue;
        if (nextNode === cycleStart) {
          cycles.push([...cyclePath.subarray(0, cycleDepth + 1)]);
          cycleRowCount += cycleDepth + 1;
          if (cycleRowCount > call.rowsMax) throw tooMany(call.rowsMax);
          call.hold(48 * (cycleDepth + 1));
        } else if (isOnCycle[nextNode] === 0 && cycleDepth + 1 < cycleLengthMax) {
          cyclePath[++cycleDepth] = nextNode;
          pathIndex[cycleDepth] = offsets[nextNode]!;
          isOnCycle[nextNode] = 1;
        }
      }
    }
    // Stable: of one length they were found in the order of their nodes.
    cycles.sort((a, b) => a.length - b.length);
    const cycleNodes = cycles.flat();
    return {
      count: cycleNodes.length,
      columns: new Map<string, Int32Array | Float64Array>([
        ['nodeId', Int32Array.from(cycleNodes)],
        ['score', Float64Array.from(cycles.flatMap((cycle) => cycle.map(() => cycle.length)))],
        ['cycle', Int32Array.from(cycles.flatMap((cycle, i) => cycle.map(() => i + 1)))],
        ['hop', Int32Array.from(cycles.flatMap((cycle) => cycle.map((_, i) => i + 1)))],
      ]),
      ordered: true,
    };
  },
};
