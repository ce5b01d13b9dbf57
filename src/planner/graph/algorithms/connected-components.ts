/** Which nodes hang together, whichever way edges lead. */
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import type { Adjacency, Graph } from '../graph.ts';
import { communities } from '../score-rows.ts';
import { type Steps, stepsAtOnce } from '../stepped-sort.ts';

export const connectedComponents: GraphAlgorithm = {
  name: 'CONNECTED_COMPONENTS',
  summary: 'The component of each node, by the least of its nodes, and as score the number of nodes in it.',
  about: 'typed',
  arguments: [],
  columns: scoredWith({ name: 'community', holds: 'node' }),
  warm: 'components',
  *run(graph, { hold, start }) {
    hold(28 * graph.nodes);
    return communities(yield* components(graph, start as Int32Array | null));
  },
};

/** Edges of each node that are looked at before the largest component is guessed. */
const sampled = 2;
const nodesAtOnce = 1 << 14;

/**
 * The least node of each node's component: every node points to one that is not greater, until it is the same. Few edges of each
 * node join most of them; of nodes that are in what looks like the largest component by then, no further edge has to be looked at, as
 * one that leads out of it is looked at from its other end (Afforest: Sutton, Ben-Nun and Barak, IPDPS 2018).
 */
function* components({ nodes, out, in: into }: Graph, start: Int32Array | null): Steps<Int32Array> {
  const parent = start?.slice() ?? new Int32Array(nodes);
  if (start === null) for (let node = 0; node < nodes; node++) parent[node] = node;
  for (const each of [out, into]) {
    for (let first = 0; first < nodes; first += nodesAtOnce) {
      unite(parent, each, { first, end: Math.min(nodes, first + nodesAtOnce), edgesMax: sampled, except: -1 });
      yield;
    }
  }
  const largest = mostCommon(parent);
  for (const each of [out, into]) {
    for (let first = 0; first < nodes; first += nodesAtOnce) {
      unite(parent, each, { first, end: Math.min(nodes, first + nodesAtOnce), edgesMax: Infinity, except: largest });
      yield;
    }
  }
  for (let node = 0; node < nodes; node++) {
    parent[node] = root(parent, node);
    if (node % stepsAtOnce === stepsAtOnce - 1) yield;
  }
  return parent;
}

interface EdgeRange {
  readonly first: number;
  readonly end: number;
  readonly edgesMax: number;
  /** Nodes under it are passed over; -1: none are. */
  readonly except: number;
}

function unite(parent: Int32Array, { offsets, neighbours }: Adjacency, { first, end: last, edgesMax, except }: EdgeRange): void {
  for (let node = first; node < last; node++) {
    let own = root(parent, node);
    if (own === except) continue;
    const begin = offsets[node]!;
    const end = Math.min(offsets[node + 1]!, begin + edgesMax);
    for (let edgeSlot = begin; edgeSlot < end; edgeSlot++) {
      const other = root(parent, neighbours[edgeSlot]!);
      if (other === own) continue;
      if (other < own) own = parent[own] = other;
      else parent[other] = own;
    }
  }
}

function root(parent: Int32Array, node: number): number {
  let of = node;
  let above = parent[of]!;
  while (above !== of) {
    const next = parent[above]!;
    parent[of] = next;
    of = next;
    above = parent[of]!;
  }
  return of;
}

/** The root that most of some nodes have: a guess, which costs time where it is wrong, and nothing else. */
function mostCommon(parent: Int32Array): number {
  const counts = new Map<number, number>();
  let best = -1;
  const step = Math.max(1, Math.floor(parent.length / looked));
  for (let node = 0; node < parent.length; node += step) {
    const of = root(parent, node);
    const count = (counts.get(of) ?? 0) + 1;
    counts.set(of, count);
    if (count > (counts.get(best) ?? 0)) best = of;
  }
  return best;
}

const looked = 1_024;
