/** Which nodes hang together, whichever way edges lead. */
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import type { Graph } from '../graph.ts';
import { communities } from '../rows.ts';
import { type Steps, stepsAtOnce } from '../steps.ts';

export const connectedComponents: GraphAlgorithm = {
  name: 'CONNECTED_COMPONENTS',
  summary: 'The component of each node, by the least of its nodes, and as score the number of nodes in it.',
  about: 'typed',
  arguments: [],
  columns: scoredWith({ name: 'community', holds: 'node' }),
  *run(graph, { hold }) {
    hold(28 * graph.nodes);
    return communities(yield* components(graph));
  },
};

/** The least node of each node's component: every node points to one that is not greater, until it is the same. */
function* components({ nodes, out: { offsets, neighbours } }: Graph): Steps<Int32Array> {
  const parent = new Int32Array(nodes);
  for (let node = 0; node < nodes; node++) parent[node] = node;
  const root = (node: number): number => {
    let of = node;
    while (parent[of] !== of) of = parent[of] = parent[parent[of]!]!;
    return of;
  };
  let looks = 0;
  for (let node = 0; node < nodes; node++) {
    let own = root(node);
    const end = offsets[node + 1]!;
    for (let place = offsets[node]!; place < end; place++) {
      const other = root(neighbours[place]!);
      if (other < own) own = parent[own] = other;
      else parent[other] = own;
      if (++looks % stepsAtOnce === 0) yield;
    }
  }
  for (let node = 0; node < nodes; node++) {
    parent[node] = root(node);
    if (node % stepsAtOnce === stepsAtOnce - 1) yield;
  }
  return parent;
}
