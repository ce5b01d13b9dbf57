/** Each node takes the label that most of its neighbours have, in the order of nodes, until none changes. */
import type { Graph } from '../graph.ts';
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import { communities } from '../score-rows.ts';
import { type Steps, stepsAtOnce } from '../stepped-sort.ts';

export const roundsArgument = {
  name: 'MAX_ITER',
  kind: 'integer',
  summary: 'rounds at most, from 1 to 1000; 20 by default',
} as const;

export const labelPropagation: GraphAlgorithm = {
  name: 'LABEL_PROPAGATION',
  summary:
    'The community of each node, by the least of its nodes, and as score the number of nodes in it: labels spread along edges.',
  about: 'typed',
  arguments: [roundsArgument],
  weighted: true,
  columns: scoredWith({ name: 'community', holds: 'node' }),
  warm: 'labels',
  *run(graph, call) {
    call.hold(28 * graph.nodes);
    return communities(yield* spread(graph, call.integer('MAX_ITER', 20, 1, 1_000), call.start as Int32Array | null));
  },
};

/** Where labels weigh the same, a node keeps its own, else takes the least. Loops say nothing. */
export function* spread(graph: Graph, rounds: number, start: Int32Array | null = null): Steps<Int32Array> {
  const { nodes } = graph;
  const label = start?.slice() ?? new Int32Array(nodes);
  if (start === null) for (let node = 0; node < nodes; node++) label[node] = node;
  const weighs = new Float64Array(nodes);
  const met = new Int32Array(nodes);
  let looks = 0;
  for (let round = 0, changed = true; changed && round < rounds; round++) {
    changed = false;
    for (let node = 0; node < nodes; node++) {
      let count = 0;
      for (const { offsets, neighbours, edges } of [graph.out, graph.in]) {
        const end = offsets[node + 1]!;
        for (let edgeSlot = offsets[node]!; edgeSlot < end; edgeSlot++) {
          const neighbour = neighbours[edgeSlot]!;
          if (neighbour === node) continue;
          const of = label[neighbour]!;
          if (weighs[of] === 0) met[count++] = of;
          weighs[of]! += graph.weight(edges === null ? edgeSlot : edges[edgeSlot]!);
          looks++;
        }
      }
      const own = label[node]!;
      let best = own;
      let most = count === 0 ? 0 : weighs[own]!;
      for (let i = 0; i < count; i++) {
        const of = met[i]!;
        const weight = weighs[of]!;
        if (weight > most || (weight === most && best !== own && of < best)) [best, most] = [of, weight];
      }
      for (let i = 0; i < count; i++) weighs[met[i]!] = 0;
      if (best !== own) {
        label[node] = best;
        changed = true;
      }
      if (++looks >= stepsAtOnce) {
        looks = 0;
        yield;
      }
    }
  }
  return label;
}
