/**
 * Hubs and authorities (HITS): a hub leads to authorities, an authority is led to by hubs; the squares of either add up to 1. Without
 * edges nothing is either.
 */
import type { Adjacency, Graph } from '../graph.ts';
import type { GraphCall } from '../graph-algorithm.ts';
import { type Steps, stepsAtOnce } from '../stepped-sort.ts';

const hitsRoundsMax = 1_000;
const hitsTolerance = 1e-12;

export function* hits(graph: Graph, call: GraphCall, hubOrAuthority: 'hub' | 'authority'): Steps<Float64Array> {
  const { nodes } = graph;
  call.hold(24 * nodes);
  let hubScores = new Float64Array(nodes).fill(1 / Math.sqrt(Math.max(1, nodes)));
  const authorityScores = new Float64Array(nodes);
  let nextHubScores = new Float64Array(nodes);
  for (let hitsRound = 0; hitsRound < hitsRoundsMax; hitsRound++) {
    yield* sumNeighbourScores(graph.in, hubScores, authorityScores);
    yield* sumNeighbourScores(graph.out, authorityScores, nextHubScores);
    call.spend(2 * graph.edges);
    let hubChange = 0;
    for (let node = 0; node < nodes; node++) hubChange += Math.abs(nextHubScores[node]! - hubScores[node]!);
    [hubScores, nextHubScores] = [nextHubScores, hubScores];
    yield;
    if (hubChange < hitsTolerance * nodes) break;
  }
  return hubOrAuthority === 'hub' ? hubScores : authorityScores;
}

/** Sums the scores of each node's neighbours, then scales the sums. */
function* sumNeighbourScores(
  { offsets, neighbours }: Adjacency,
  neighbourScores: Float64Array,
  summedScores: Float64Array,
): Steps<void> {
  let squaredSum = 0;
  let neighbourLooks = 0;
  for (let node = 0; node < summedScores.length; node++) {
    let neighbourSum = 0;
    for (let edgeSlot = offsets[node]!; edgeSlot < offsets[node + 1]!; edgeSlot++)
      neighbourSum += neighbourScores[neighbours[edgeSlot]!]!;
    summedScores[node] = neighbourSum;
    squaredSum += neighbourSum * neighbourSum;
    neighbourLooks += 1 + offsets[node + 1]! - offsets[node]!;
    if (neighbourLooks >= stepsAtOnce) {
      neighbourLooks = 0;
      yield;
    }
  }
  const scoreNorm = Math.sqrt(squaredSum);
  if (scoreNorm > 0) for (let node = 0; node < summedScores.length; node++) summedScores[node]! /= scoreNorm;
}
