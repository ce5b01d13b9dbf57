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
    const label = new Int32Array(nodes).fill(-1);
    const met = new Int32Array(nodes).fill(-1);
    const low = new Int32Array(nodes);
    const stackIndex = new Uint32Array(nodes);
    const stack = new Int32Array(nodes);
    const trail = new Int32Array(nodes);
    let [stacked, count, looks] = [0, 0, 0];
    for (let start = 0; start < nodes; start++) {
      if (met[start]! >= 0) continue;
      let depth = 0;
      trail[0] = start;
      while (depth >= 0) {
        const node = trail[depth]!;
        if (met[node]! < 0) {
          met[node] = low[node] = count++;
          stackIndex[node] = offsets[node]!;
          stack[stacked++] = node;
        }
        let entered = false;
        while (!entered && stackIndex[node]! < offsets[node + 1]!) {
          const other = neighbours[stackIndex[node]!]!;
          if (met[other]! < 0) {
            trail[++depth] = other;
            entered = true;
          } else {
            if (label[other]! < 0) low[node] = Math.min(low[node]!, low[other]!);
            stackIndex[node]!++;
          }
          if (++looks % stepsAtOnce === 0) yield;
        }
        if (entered) continue;
        if (low[node] === met[node]) {
          let popped: number;
          do label[(popped = stack[--stacked]!)] = node;
          while (popped !== node);
        }
        depth--;
      }
    }
    return communities(label);
  },
};
