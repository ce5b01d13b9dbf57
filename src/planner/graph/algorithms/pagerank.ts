/** PageRank by power iteration: scores add up to 1, and what a node without edges has goes to all nodes alike. */
import type { Graph } from '../graph.ts';
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import { everyNode } from '../rows.ts';
import { type Steps, stepsAtOnce } from '../steps.ts';

/** Scores that change by less in all, added up, are taken for settled. */
const tolerance = 1e-9;

export const pagerank: GraphAlgorithm = {
  name: 'GRAPH_PAGERANK',
  summary: 'How much of a walk along edges each node has: scores of all nodes add up to 1.',
  about: 'typed',
  arguments: [
    { name: 'DAMPING', kind: 'number', summary: 'how likely the walk goes on at each node, from 0 to 1; 0.85 by default' },
    { name: 'MAX_ITER', kind: 'integer', summary: 'rounds at most, from 1 to 1000; 20 by default' },
  ],
  direction: 'out',
  weighted: true,
  columns: scoredWith(),
  *run(graph, call) {
    const damping = call.number('DAMPING', 0.85, 0, 1);
    const rounds = call.integer('MAX_ITER', 20, 1, 1_000);
    if (graph.weights?.some((weight) => weight < 0)) throw call.invalid('WEIGHT', 'PageRank takes no negative weight');
    call.hold(24 * graph.nodes);
    const found = yield* scores(graph, { damping, rounds, direction: call.direction });
    return { ...everyNode(found.score), rounds: found.rounds };
  },
};

interface Walk {
  readonly damping: number;
  readonly rounds: number;
  readonly direction: 'out' | 'in' | 'both';
}

function* scores(
  graph: Graph,
  { damping, rounds, direction }: Walk,
): Steps<{ readonly score: Float64Array; readonly rounds: number }> {
  const { nodes, weights } = graph;
  // Who gives to a node: those that edges come from.
  const givers = direction === 'out' ? [graph.in] : direction === 'in' ? [graph.out] : [graph.in, graph.out];
  const takers = direction === 'out' ? [graph.out] : direction === 'in' ? [graph.in] : [graph.out, graph.in];
  const given = new Float64Array(nodes);
  for (let node = 0; node < nodes; node++) {
    for (const { offsets, edges } of takers) {
      if (weights === null) given[node]! += offsets[node + 1]! - offsets[node]!;
      else
        for (let place = offsets[node]!; place < offsets[node + 1]!; place++)
          given[node]! += weights[edges === null ? place : edges[place]!]!;
    }
    if (node % stepsAtOnce === stepsAtOnce - 1) yield;
  }
  let score = new Float64Array(nodes).fill(1 / nodes);
  let next = new Float64Array(nodes);
  const share = new Float64Array(nodes);
  let made = 0;
  while (made < rounds) {
    made++;
    let idle = 0;
    for (let node = 0; node < nodes; node++) {
      if (given[node]! > 0) share[node] = score[node]! / given[node]!;
      else {
        share[node] = 0;
        idle += score[node]!;
      }
    }
    yield;
    const base = (1 - damping + damping * idle) / nodes;
    let change = 0;
    let looks = 0;
    for (let node = 0; node < nodes; node++) {
      let sum = 0;
      for (const { offsets, neighbours, edges } of givers) {
        const end = offsets[node + 1]!;
        looks += end - offsets[node]!;
        if (weights === null) for (let place = offsets[node]!; place < end; place++) sum += share[neighbours[place]!]!;
        else {
          for (let place = offsets[node]!; place < end; place++) {
            sum += share[neighbours[place]!]! * weights[edges === null ? place : edges[place]!]!;
          }
        }
      }
      const own = base + damping * sum;
      change += Math.abs(own - score[node]!);
      next[node] = own;
      if (++looks >= stepsAtOnce) {
        looks = 0;
        yield;
      }
    }
    [score, next] = [next, score];
    if (change < tolerance) break;
  }
  return { score, rounds: made };
}
