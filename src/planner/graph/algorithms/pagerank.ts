/** PageRank by power iteration: scores add up to 1, and the score of nodes without edges is spread over all nodes evenly. */
import type { Adjacency, Graph } from '../graph.ts';
import { type GraphAlgorithm, type GraphCall, scoredWith } from '../graph-algorithm.ts';
import { everyNode } from '../score-rows.ts';
import type { Steps } from '../stepped-sort.ts';

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
  warm: 'pagerank',
  columns: scoredWith(),
  *run(graph, call) {
    const damping = call.number('DAMPING', 0.85, 0, 1);
    const rounds = call.integer('MAX_ITER', 20, 1, 1_000);
    if (graph.weights?.some((weight) => weight < 0)) throw call.invalid('WEIGHT', 'PageRank takes no negative weight');
    call.hold(36 * graph.nodes + (graph.weights === null ? 4 : 12) * graph.edges);
    const ranks = yield* pageRanks(graph, call, { damping, rounds, direction: call.direction });
    return { ...everyNode(ranks.score), rounds: ranks.rounds, state: ranks.score };
  },
};

interface Walk {
  readonly damping: number;
  readonly rounds: number;
  readonly direction: 'out' | 'in' | 'both';
}

export function* pageRanks(
  graph: Graph,
  call: GraphCall,
  { damping, rounds, direction }: Walk,
): Steps<{ readonly score: Float64Array; readonly rounds: number }> {
  const { nodes, weights } = graph;
  // A node receives score along its incoming edges.
  const giving = direction === 'out' ? [graph.in] : direction === 'in' ? [graph.out] : [graph.in, graph.out];
  const takers = direction === 'out' ? [graph.out] : direction === 'in' ? [graph.in] : [graph.out, graph.in];
  const nodeRanges = nodeRangesOf(giving, nodes);
  /** 1 / the total weight that a node gives; 0 for one without an edge to follow. */
  const per = new Float64Array(nodes);
  for (const { first, end } of nodeRanges) {
    for (const each of takers) addGiven(each, weights, per, first, end);
    for (let node = first; node < end; node++) per[node] = per[node]! > 0 ? 1 / per[node]! : 0;
    yield;
  }
  const rank = ranksOf(takers, nodes);
  const givers: Givers[] = [];
  for (const each of giving) givers.push(yield* giversOf(each, rank, weights, nodeRanges));
  const start = call.start as Float64Array | null;
  const score = start?.slice() ?? new Float64Array(nodes).fill(1 / nodes);
  const sums = new Float64Array(nodes);
  let share = new Float64Array(nodes);
  let next = new Float64Array(nodes);
  let idle = begin(score, per, rank, share, start === null);
  let rangesDone = 0;
  while (rangesDone < rounds) {
    rangesDone++;
    const base = (1 - damping + damping * idle) / nodes;
    const settling: Settling = { base, damping, per, rank, change: 0, idle: 0 };
    for (const nodeRange of nodeRanges) {
      for (const [i, each] of givers.entries()) {
        call.spend(each.offsets[nodeRange.end]! - each.offsets[nodeRange.first]!);
        gather(each, share, sums, nodeRange, i > 0);
      }
      settle(settling, score, sums, next, nodeRange);
      yield;
    }
    [share, next] = [next, share];
    idle = settling.idle;
    if (settling.change < tolerance) break;
  }
  return { score, rounds: rangesDone };
}

/** The nodes that give score to each node, by rank, with the weights of the edges. */
interface Givers {
  readonly offsets: Uint32Array;
  readonly ranks: Int32Array;
  /** Weights of the edges, by place; null: each weighs 1. */
  readonly weights: Float64Array | null;
}

/**
 * Nodes by the number of edges along which they give, most first: data that is read repeatedly lies together, and stays in the
 * cache.
 */
function ranksOf(takers: readonly Adjacency[], nodes: number): Int32Array {
  const less = new Int32Array(nodes).fill(mostRanked);
  for (const { offsets } of takers) lessen(less, offsets);
  const rankStarts = new Int32Array(mostRanked + 2);
  for (let node = 0; node < nodes; node++) rankStarts[less[node]! + 1]!++;
  for (let i = 0; i <= mostRanked; i++) rankStarts[i + 1]! += rankStarts[i]!;
  for (let node = 0; node < nodes; node++) less[node] = rankStarts[less[node]!]!++;
  return less;
}

const mostRanked = 1_023;

function lessen(less: Int32Array, offsets: Uint32Array): void {
  for (let node = 0; node < less.length; node++) less[node] = Math.max(0, less[node]! - (offsets[node + 1]! - offsets[node]!));
}

function* giversOf(
  { offsets, neighbours, edges }: Adjacency,
  rank: Int32Array,
  weights: Float64Array | null,
  nodeRanges: readonly NodeRange[],
): Steps<Givers> {
  const ranks = new Int32Array(neighbours.length);
  const own = weights === null || edges === null ? weights : new Float64Array(neighbours.length);
  for (const { first, end } of nodeRanges) {
    const [begin, last] = [offsets[first]!, offsets[end]!];
    look(neighbours, rank, ranks, begin, last);
    if (own !== null && edges !== null) look(edges, weights!, own, begin, last);
    yield;
  }
  return { offsets, ranks, weights: own };
}

interface NodeRange {
  readonly first: number;
  readonly end: number;
}

/** A range of nodes for one step: together they have about this many edges. */
function nodeRangesOf(givers: readonly Adjacency[], nodes: number): readonly NodeRange[] {
  const nodeRanges: NodeRange[] = [];
  for (let first = 0; first < nodes; ) {
    let [low, high] = [first + 1, nodes];
    const edgesTo = (end: number): number =>
      end - first + givers.reduce((sum, { offsets }) => sum + offsets[end]! - offsets[first]!, 0);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (edgesTo(middle) < edgesAtOnce) low = middle + 1;
      else high = middle;
    }
    nodeRanges.push({ first, end: low });
    first = low;
  }
  return nodeRanges;
}

// The loops are functions of their own: V8 compiles a loop worse inside a generator.

function addGiven(
  { offsets, edges }: Adjacency,
  weights: Float64Array | null,
  given: Float64Array,
  first: number,
  last: number,
): void {
  for (let node = first; node < last; node++) {
    const [begin, end] = [offsets[node]!, offsets[node + 1]!];
    if (weights === null) given[node]! += end - begin;
    else
      for (let edgeSlot = begin; edgeSlot < end; edgeSlot++)
        given[node]! += weights[edges === null ? edgeSlot : edges[edgeSlot]!]!;
  }
}

/** Fills in what each node gives in the first round; returns the score held by nodes that give to no other. */
function begin(score: Float64Array, per: Float64Array, rank: Int32Array, share: Float64Array, alike: boolean): number {
  const nodes = score.length;
  let idle = 0;
  for (let node = 0; node < nodes; node++) {
    const each = per[node]!;
    share[rank[node]!] = alike ? each / nodes : each * score[node]!;
    if (each === 0) idle += score[node]!;
  }
  return idle;
}

function look(
  rankStarts: Int32Array,
  from: Int32Array | Float64Array,
  to: Int32Array | Float64Array,
  first: number,
  end: number,
): void {
  for (let i = first; i < end; i++) to[i] = from[rankStarts[i]!]!;
}

/** Four sums at once: none of them waits for the other. */
function gather(
  { offsets, ranks, weights }: Givers,
  share: Float64Array,
  sums: Float64Array,
  { first, end: last }: NodeRange,
  adds: boolean,
): void {
  let edgeSlot = offsets[first]!;
  for (let node = first; node < last; node++) {
    const end = offsets[node + 1]!;
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    for (; edgeSlot + 3 < end; edgeSlot += 4) {
      let w = share[ranks[edgeSlot]!]!;
      let x = share[ranks[edgeSlot + 1]!]!;
      let y = share[ranks[edgeSlot + 2]!]!;
      let z = share[ranks[edgeSlot + 3]!]!;
      if (weights !== null) {
        w *= weights[edgeSlot]!;
        x *= weights[edgeSlot + 1]!;
        y *= weights[edgeSlot + 2]!;
        z *= weights[edgeSlot + 3]!;
      }
      a += w;
      b += x;
      c += y;
      d += z;
    }
    for (; edgeSlot < end; edgeSlot++) a += share[ranks[edgeSlot]!]! * (weights === null ? 1 : weights[edgeSlot]!);
    const sum = a + b + (c + d);
    sums[node] = adds ? sums[node]! + sum : sum;
  }
}

interface Settling {
  readonly base: number;
  readonly damping: number;
  readonly per: Float64Array;
  readonly rank: Int32Array;
  /** How much scores change, added up. */
  change: number;
  /** The score held by nodes that give to no other. */
  idle: number;
}

/** Turns sums into scores and into the shares of the next round. */
function settle(
  settling: Settling,
  score: Float64Array,
  sums: Float64Array,
  share: Float64Array,
  { first, end }: NodeRange,
): void {
  const { base, damping, per, rank } = settling;
  let { change, idle } = settling;
  for (let node = first; node < end; node++) {
    const own = base + damping * sums[node]!;
    const each = per[node]!;
    change += Math.abs(own - score[node]!);
    score[node] = own;
    share[rank[node]!] = own * each;
    if (each === 0) idle += own;
  }
  settling.change = change;
  settling.idle = idle;
}
