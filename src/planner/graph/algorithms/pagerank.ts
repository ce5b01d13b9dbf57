/** PageRank by power iteration: scores add up to 1, and the score of nodes without edges is spread over all nodes evenly. */
import type { Adjacency, Graph } from '../graph.ts';
import { type GraphAlgorithm, type GraphCall, scoredWith } from '../graph-algorithm.ts';
import { everyNode } from '../score-rows.ts';
import type { Steps } from '../stepped-sort.ts';

/** Scores that change by less in all, added up, are taken for settled. */
const pagerankTolerance = 1e-9;
/** Edges that are looked at between two looks at the clock. */
const pagerankEdgesAtOnce = 1 << 18;

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
    const rankRoundsMax = call.integer('MAX_ITER', 20, 1, 1_000);
    if (graph.weights?.some((weight) => weight < 0)) throw call.invalid('WEIGHT', 'PageRank takes no negative weight');
    call.hold(36 * graph.nodes + (graph.weights === null ? 4 : 12) * graph.edges);
    const ranks = yield* pageRanks(graph, call, { damping, rounds: rankRoundsMax, direction: call.direction });
    return { ...everyNode(ranks.score), rounds: ranks.rounds, state: ranks.score };
  },
};

interface PagerankWalk {
  readonly damping: number;
  readonly rounds: number;
  readonly direction: 'out' | 'in' | 'both';
}

export function* pageRanks(
  graph: Graph,
  call: GraphCall,
  { damping, rounds, direction }: PagerankWalk,
): Steps<{ readonly score: Float64Array; readonly rounds: number }> {
  const { nodes, weights } = graph;
  // A node receives score along its incoming edges.
  const givingWays = direction === 'out' ? [graph.in] : direction === 'in' ? [graph.out] : [graph.in, graph.out];
  const takingWays = direction === 'out' ? [graph.out] : direction === 'in' ? [graph.in] : [graph.out, graph.in];
  const nodeRanges = nodeRangesOf(givingWays, nodes);
  /** 1 / the total weight that a node gives; 0 for one without an edge to follow. */
  const sharePerWeight = new Float64Array(nodes);
  for (const { first, end } of nodeRanges) {
    for (const rankGiver of takingWays) addGivenWeight(rankGiver, weights, sharePerWeight, first, end);
    for (let node = first; node < end; node++) sharePerWeight[node] = sharePerWeight[node]! > 0 ? 1 / sharePerWeight[node]! : 0;
    yield;
  }
  const nodeRanks = nodeRanksOf(takingWays, nodes);
  const rankGivers: RankGivers[] = [];
  for (const each of givingWays) rankGivers.push(yield* rankGiversOf(each, nodeRanks, weights, nodeRanges));
  const startScores = call.start as Float64Array | null;
  const rankScores = startScores?.slice() ?? new Float64Array(nodes).fill(1 / nodes);
  const rankSums = new Float64Array(nodes);
  let rankShares = new Float64Array(nodes);
  let nextRankShares = new Float64Array(nodes);
  let idleRank = beginShares(rankScores, sharePerWeight, nodeRanks, rankShares, startScores === null);
  let rangesDone = 0;
  while (rangesDone < rounds) {
    rangesDone++;
    const baseRank = (1 - damping + damping * idleRank) / nodes;
    const rankSettling: RankSettling = { base: baseRank, damping, per: sharePerWeight, rank: nodeRanks, change: 0, idle: 0 };
    for (const nodeRange of nodeRanges) {
      for (const [i, rankGiver] of rankGivers.entries()) {
        call.spend(rankGiver.offsets[nodeRange.end]! - rankGiver.offsets[nodeRange.first]!);
        gatherShares(rankGiver, rankShares, rankSums, nodeRange, i > 0);
      }
      settleRanks(rankSettling, rankScores, rankSums, nextRankShares, nodeRange);
      yield;
    }
    [rankShares, nextRankShares] = [nextRankShares, rankShares];
    idleRank = rankSettling.idle;
    if (rankSettling.change < pagerankTolerance) break;
  }
  return { score: rankScores, rounds: rangesDone };
}

/** The nodes that give score to each node, by rank, with the weights of the edges. */
interface RankGivers {
  readonly offsets: Uint32Array;
  readonly ranks: Int32Array;
  /** Weights of the edges, by place; null: each weighs 1. */
  readonly weights: Float64Array | null;
}

/**
 * Nodes by the number of edges along which they give, most first: data that is read repeatedly lies together, and stays in the
 * cache.
 */
function nodeRanksOf(takingWays: readonly Adjacency[], nodes: number): Int32Array {
  const rankDegrees = new Int32Array(nodes).fill(rankedDegreeMax);
  for (const { offsets } of takingWays) lessenByDegree(rankDegrees, offsets);
  const rankStarts = new Int32Array(rankedDegreeMax + 2);
  for (let node = 0; node < nodes; node++) rankStarts[rankDegrees[node]! + 1]!++;
  for (let i = 0; i <= rankedDegreeMax; i++) rankStarts[i + 1]! += rankStarts[i]!;
  for (let node = 0; node < nodes; node++) rankDegrees[node] = rankStarts[rankDegrees[node]!]!++;
  return rankDegrees;
}

const rankedDegreeMax = 1_023;

function lessenByDegree(rankDegrees: Int32Array, offsets: Uint32Array): void {
  for (let node = 0; node < rankDegrees.length; node++)
    rankDegrees[node] = Math.max(0, rankDegrees[node]! - (offsets[node + 1]! - offsets[node]!));
}

function* rankGiversOf(
  { offsets, neighbours, edges }: Adjacency,
  nodeRanks: Int32Array,
  weights: Float64Array | null,
  nodeRanges: readonly NodeRange[],
): Steps<RankGivers> {
  const giverRanks = new Int32Array(neighbours.length);
  const giverWeights = weights === null || edges === null ? weights : new Float64Array(neighbours.length);
  for (const { first, end } of nodeRanges) {
    const [firstGiver, lastGiver] = [offsets[first]!, offsets[end]!];
    takeByRank(neighbours, nodeRanks, giverRanks, firstGiver, lastGiver);
    if (giverWeights !== null && edges !== null) takeByRank(edges, weights!, giverWeights, firstGiver, lastGiver);
    yield;
  }
  return { offsets, ranks: giverRanks, weights: giverWeights };
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
      if (edgesTo(middle) < pagerankEdgesAtOnce) low = middle + 1;
      else high = middle;
    }
    nodeRanges.push({ first, end: low });
    first = low;
  }
  return nodeRanges;
}

// The loops are functions of their own: V8 compiles a loop worse inside a generator.

function addGivenWeight(
  { offsets, edges }: Adjacency,
  weights: Float64Array | null,
  givenWeights: Float64Array,
  first: number,
  last: number,
): void {
  for (let node = first; node < last; node++) {
    const [edgesBegin, edgesEnd] = [offsets[node]!, offsets[node + 1]!];
    if (weights === null) givenWeights[node]! += edgesEnd - edgesBegin;
    else
      for (let edgeSlot = edgesBegin; edgeSlot < edgesEnd; edgeSlot++)
        givenWeights[node]! += weights[edges === null ? edgeSlot : edges[edgeSlot]!]!;
  }
}

/** Fills in what each node gives in the first round; returns the score held by nodes that give to no other. */
function beginShares(
  rankScores: Float64Array,
  sharePerWeight: Float64Array,
  nodeRanks: Int32Array,
  rankShares: Float64Array,
  isEqualStart: boolean,
): number {
  const nodes = rankScores.length;
  let idleRank = 0;
  for (let node = 0; node < nodes; node++) {
    const nodeShare = sharePerWeight[node]!;
    rankShares[nodeRanks[node]!] = isEqualStart ? nodeShare / nodes : nodeShare * rankScores[node]!;
    if (nodeShare === 0) idleRank += rankScores[node]!;
  }
  return idleRank;
}

function takeByRank(
  rankStarts: Int32Array,
  lookedUpIn: Int32Array | Float64Array,
  lookedUpInto: Int32Array | Float64Array,
  first: number,
  end: number,
): void {
  for (let i = first; i < end; i++) lookedUpInto[i] = lookedUpIn[rankStarts[i]!]!;
}

/** Four sums at once: none of them waits for the other. */
function gatherShares(
  { offsets, ranks, weights }: RankGivers,
  rankShares: Float64Array,
  rankSums: Float64Array,
  { first, end: lastRankNode }: NodeRange,
  addsToSum: boolean,
): void {
  let edgeSlot = offsets[first]!;
  for (let node = first; node < lastRankNode; node++) {
    const giverEnd = offsets[node + 1]!;
    let firstShareSum = 0;
    let secondShareSum = 0;
    let thirdShareSum = 0;
    let fourthShareSum = 0;
    for (; edgeSlot + 3 < giverEnd; edgeSlot += 4) {
      let firstShare = rankShares[ranks[edgeSlot]!]!;
      let secondShare = rankShares[ranks[edgeSlot + 1]!]!;
      let thirdShare = rankShares[ranks[edgeSlot + 2]!]!;
      let fourthShare = rankShares[ranks[edgeSlot + 3]!]!;
      if (weights !== null) {
        firstShare *= weights[edgeSlot]!;
        secondShare *= weights[edgeSlot + 1]!;
        thirdShare *= weights[edgeSlot + 2]!;
        fourthShare *= weights[edgeSlot + 3]!;
      }
      firstShareSum += firstShare;
      secondShareSum += secondShare;
      thirdShareSum += thirdShare;
      fourthShareSum += fourthShare;
    }
    for (; edgeSlot < giverEnd; edgeSlot++)
      firstShareSum += rankShares[ranks[edgeSlot]!]! * (weights === null ? 1 : weights[edgeSlot]!);
    const nodeRankSum = firstShareSum + secondShareSum + (thirdShareSum + fourthShareSum);
    rankSums[node] = addsToSum ? rankSums[node]! + nodeRankSum : nodeRankSum;
  }
}

interface RankSettling {
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
function settleRanks(
  rankSettling: RankSettling,
  rankScores: Float64Array,
  rankSums: Float64Array,
  rankShares: Float64Array,
  { first, end }: NodeRange,
): void {
  const { base, damping, per, rank } = rankSettling;
  let { change: rankChange, idle: idleRank } = rankSettling;
  for (let node = first; node < end; node++) {
    const nodeRank = base + damping * rankSums[node]!;
    const nodeShare = per[node]!;
    rankChange += Math.abs(nodeRank - rankScores[node]!);
    rankScores[node] = nodeRank;
    rankShares[rank[node]!] = nodeRank * nodeShare;
    if (nodeShare === 0) idleRank += nodeRank;
  }
  rankSettling.change = rankChange;
  rankSettling.idle = idleRank;
}
