/**
 * Hubs and authorities (HITS): a hub leads to authorities, an authority is led to by hubs; the squares of either add up to 1. Without
 * edges nothing is either.
 */
import type { Adjacency, Graph } from '../graph.ts';
import type { GraphCall } from '../graph-algorithm.ts';
import { type Steps, stepsAtOnce } from '../stepped-sort.ts';

const roundsMax = 1_000;
const tolerance = 1e-12;

export function* hits(graph: Graph, call: GraphCall, which: 'hub' | 'authority'): Steps<Float64Array> {
  const { nodes } = graph;
  call.hold(24 * nodes);
  let hub = new Float64Array(nodes).fill(1 / Math.sqrt(Math.max(1, nodes)));
  const authority = new Float64Array(nodes);
  let next = new Float64Array(nodes);
  for (let round = 0; round < roundsMax; round++) {
    yield* sumNeighbours(graph.in, hub, authority);
    yield* sumNeighbours(graph.out, authority, next);
    call.spend(2 * graph.edges);
    let change = 0;
    for (let node = 0; node < nodes; node++) change += Math.abs(next[node]! - hub[node]!);
    [hub, next] = [next, hub];
    yield;
    if (change < tolerance * nodes) break;
  }
  return which === 'hub' ? hub : authority;
}

/** Sums the scores of each node's neighbours, then scales the sums. */
function* sumNeighbours({ offsets, neighbours }: Adjacency, from: Float64Array, to: Float64Array): Steps<void> {
  let squares = 0;
  let looks = 0;
  for (let node = 0; node < to.length; node++) {
    let sum = 0;
    for (let edgeSlot = offsets[node]!; edgeSlot < offsets[node + 1]!; edgeSlot++) sum += from[neighbours[edgeSlot]!]!;
    to[node] = sum;
    squares += sum * sum;
    looks += 1 + offsets[node + 1]! - offsets[node]!;
    if (looks >= stepsAtOnce) {
      looks = 0;
      yield;
    }
  }
  const norm = Math.sqrt(squares);
  if (norm > 0) for (let node = 0; node < to.length; node++) to[node]! /= norm;
}
