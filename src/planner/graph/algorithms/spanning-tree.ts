/** Edges that join all that hangs together and weigh least in all: Kruskal's algorithm. */
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import { pairColumns, Pairs } from '../score-rows.ts';
import { sortInSteps, stepsAtOnce } from '../stepped-sort.ts';

export const spanningTree: GraphAlgorithm = {
  name: 'GRAPH_SPANNING_TREE',
  summary: 'Edges that join all nodes that hang together and weigh least in all; the score is the weight of each.',
  about: 'typed',
  arguments: [],
  weighted: true,
  columns: scoredWith(...pairColumns),
  *run(graph, call) {
    const { weights } = graph;
    call.hold(8 * graph.edges + 8 * graph.nodes);
    const edges = new Int32Array(graph.edges);
    for (let edge = 0; edge < graph.edges; edge++) edges[edge] = edge;
    const order = weights === null ? edges : yield* sortInSteps(edges, (a, b) => weights[a]! - weights[b]! || a - b);
    const parent = new Int32Array(graph.nodes);
    for (let node = 0; node < graph.nodes; node++) parent[node] = node;
    const root = (node: number): number => {
      let of = node;
      while (parent[of] !== of) of = parent[of] = parent[parent[of]!]!;
      return of;
    };
    const pairs = new Pairs(call);
    for (let i = 0; i < order.length; i++) {
      const edge = order[i]!;
      const [from, to] = [graph.source(edge), graph.target(edge)];
      const [a, b] = [root(from), root(to)];
      if (a !== b) {
        parent[Math.max(a, b)] = Math.min(a, b);
        pairs.add(from, to, graph.weight(edge));
      }
      if (i % stepsAtOnce === stepsAtOnce - 1) yield;
    }
    return pairs.rows();
  },
};
