/** Rows that functions over the graph have in common. */
import type { GraphCall, GraphRows } from './graph-algorithm.ts';
import { tooMany } from './graph-limits.ts';

type ScoreColumns = Readonly<Record<string, Int32Array | Float64Array>>;

function scoreRowsOf(count: number, columns: ScoreColumns): GraphRows {
  return { count, columns: new Map(Object.entries(columns)) };
}

/** Rows with one per node. */
export function everyNode(score: Float64Array, moreColumns: ScoreColumns = {}): GraphRows {
  const scoredNodes = new Int32Array(score.length);
  for (let node = 0; node < scoredNodes.length; node++) scoredNodes[node] = node;
  return scoreRowsOf(scoredNodes.length, { nodeId: scoredNodes, score, ...moreColumns });
}

/** One row for each node: the community that it is of, by the least of its nodes, and how many that has. */
export function communities(communityLabels: Int32Array): GraphRows {
  const nodeCount = communityLabels.length;
  const leastNodes = new Int32Array(nodeCount).fill(-1);
  const communitySizes = new Int32Array(nodeCount);
  for (let node = 0; node < nodeCount; node++) {
    const communityLabel = communityLabels[node]!;
    if (leastNodes[communityLabel]! < 0) leastNodes[communityLabel] = node;
    communitySizes[communityLabel]!++;
  }
  const score = new Float64Array(nodeCount);
  const community = new Int32Array(nodeCount);
  for (let node = 0; node < nodeCount; node++) {
    score[node] = communitySizes[communityLabels[node]!]!;
    community[node] = leastNodes[communityLabels[node]!]!;
  }
  return { ...everyNode(score, { community }), state: community };
}

/** Pairs of nodes with a score, as they are found. */
export class Pairs {
  readonly #pairsCall: GraphCall;
  readonly #pairSources: number[] = [];
  readonly #pairTargets: number[] = [];
  readonly #pairScores: number[] = [];

  constructor(pairsCall: GraphCall) {
    this.#pairsCall = pairsCall;
  }

  get length(): number {
    return this.#pairSources.length;
  }

  add(pairSource: number, pairTarget: number, pairScore: number): void {
    if (this.#pairSources.length >= this.#pairsCall.rowsMax) throw tooMany(this.#pairsCall.rowsMax);
    if (this.#pairSources.length % 1_024 === 0) this.#pairsCall.hold(24 * 1_024);
    this.#pairSources.push(pairSource);
    this.#pairTargets.push(pairTarget);
    this.#pairScores.push(pairScore);
  }

  rows(): GraphRows {
    const pairTargets = Int32Array.from(this.#pairTargets);
    return scoreRowsOf(pairTargets.length, {
      nodeId: pairTargets,
      score: Float64Array.from(this.#pairScores),
      from_id: Int32Array.from(this.#pairSources),
      to_id: pairTargets,
    });
  }
}

export const pairColumns = [
  { name: 'from_id', holds: 'node' },
  { name: 'to_id', holds: 'node' },
] as const;
