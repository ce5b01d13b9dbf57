/** PageRank by power iteration: scores add up to 1, and what a node without edges has goes to all nodes alike. */
import type { Adjacency, Graph } from '../graph.ts';
import { type GraphAlgorithm, type GraphCall, scoredWith } from '../graph-algorithm.ts';
import { everyNode } from '../rows.ts';
import { type Steps, stepsAtOnce } from '../steps.ts';

/** Scores that change by less in all, added up, are taken for settled. */
const tolerance = 1e-9;
/** Edges that are looked at between two looks at the clock. */
const edgesAtOnce = 1 << 18;

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
    const found = yield* scores(graph, call, { damping, rounds, direction: call.direction });
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
  call: GraphCall,
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
    next.fill(0);
    for (let first = 0; first < nodes; ) {
      const end = stretchEnd(givers, first, nodes);
      for (const { offsets } of givers) call.spend(offsets[end]! - offsets[first]!);
      for (const each of givers) gather(each, weights, share, next, first, end);
      change += settle(score, next, { base, damping, first, end });
      first = end;
      yield;
    }
    [score, next] = [next, score];
    if (change < tolerance) break;
  }
  return { score, rounds: made };
}

/** Nodes that a step goes over: as many as have about so many edges. */
function stretchEnd(givers: readonly Adjacency[], first: number, nodes: number): number {
  let end = first;
  let edges = 0;
  while (end < nodes && edges < edgesAtOnce) {
    for (const { offsets } of givers) edges += offsets[end + 1]! - offsets[end]!;
    end++;
    edges++;
  }
  return end;
}

/** A loop of its own: what can be left in the middle is compiled worse. */
function gather(
  { offsets, neighbours, edges }: Adjacency,
  weights: Float64Array | null,
  share: Float64Array,
  sums: Float64Array,
  first: number,
  last: number,
): void {
  let place = offsets[first]!;
  for (let node = first; node < last; node++) {
    const end = offsets[node + 1]!;
    let sum = sums[node]!;
    if (weights === null) for (; place < end; place++) sum += share[neighbours[place]!]!;
    else for (; place < end; place++) sum += share[neighbours[place]!]! * weights[edges === null ? place : edges[place]!]!;
    sums[node] = sum;
  }
}

interface Stretch {
  readonly base: number;
  readonly damping: number;
  readonly first: number;
  readonly end: number;
}

/** Sums become scores. How much these change, added up. */
function settle(score: Float64Array, sums: Float64Array, { base, damping, first, end }: Stretch): number {
  let change = 0;
  for (let node = first; node < end; node++) {
    const own = base + damping * sums[node]!;
    change += Math.abs(own - score[node]!);
    sums[node] = own;
  }
  return change;
}
