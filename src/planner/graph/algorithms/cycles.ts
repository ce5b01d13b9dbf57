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
    const most = call.integer('MAX_LENGTH', 5, 1, hopsMax);
    const { offsets, neighbours } = graph.out;
    call.hold(graph.nodes);
    const cycles: number[][] = [];
    let rows = 0;
    const onPath = new Uint8Array(graph.nodes);
    const path = new Int32Array(most);
    const pathIndex = new Uint32Array(most);
    let looks = 0;
    for (let start = 0; start < graph.nodes; start++) {
      let depth = 0;
      path[0] = start;
      pathIndex[0] = offsets[start]!;
      onPath[start] = 1;
      while (depth >= 0) {
        const node = path[depth]!;
        if (pathIndex[depth]! >= offsets[node + 1]!) {
          onPath[node] = 0;
          depth--;
          continue;
        }
        const at = pathIndex[depth]!++;
        const other = neighbours[at]!;
        if (++looks % stepsAtOnce === 0) {
          call.spend(stepsAtOnce);
          yield;
        }
        // Edges side by side make no other cycle.
        if (other < start || (at > offsets[node]! && neighbours[at - 1] === other)) continue;
        if (other === start) {
          cycles.push([...path.subarray(0, depth + 1)]);
          rows += depth + 1;
          if (rows > call.rowsMax) throw tooMany(call.rowsMax);
          call.hold(48 * (depth + 1));
        } else if (onPath[other] === 0 && depth + 1 < most) {
          path[++depth] = other;
          pathIndex[depth] = offsets[other]!;
          onPath[other] = 1;
        }
      }
    }
    // Stable: of one length they were found in the order of their nodes.
    cycles.sort((a, b) => a.length - b.length);
    const flat = cycles.flat();
    return {
      count: flat.length,
      columns: new Map<string, Int32Array | Float64Array>([
        ['nodeId', Int32Array.from(flat)],
        ['score', Float64Array.from(cycles.flatMap((cycle) => cycle.map(() => cycle.length)))],
        ['cycle', Int32Array.from(cycles.flatMap((cycle, i) => cycle.map(() => i + 1)))],
        ['hop', Int32Array.from(cycles.flatMap((cycle) => cycle.map((_, i) => i + 1)))],
      ]),
      ordered: true,
    };
  },
};
