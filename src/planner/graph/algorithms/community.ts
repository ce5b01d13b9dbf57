/**
 * Communities by modularity (Louvain): nodes go where they add most to it, in their order, then communities become the nodes of
 * the next level, until nothing goes anywhere. Edges are gone either way; a loop counts as twice its weight.
 */
import type { Graph } from '../graph.ts';
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import { communities } from '../score-rows.ts';
import { type Steps, stepsAtOnce } from '../stepped-sort.ts';
import { spread } from './label-propagation.ts';

/** Least gain of modularity for a move, so that rounding errors don't move nodes to and fro. */
const least = 1e-12;
const levelsMax = 100;
const roundsMax = 100;

export const community: GraphAlgorithm = {
  name: 'GRAPH_COMMUNITY',
  summary: 'The community of each node, by the least of its nodes, and as score the number of nodes in it.',
  about: 'typed',
  arguments: [
    {
      name: 'ALGO',
      kind: 'word',
      choices: ['louvain', 'label_propagation'],
      summary: "'louvain' (the default) or 'label_propagation'",
    },
  ],
  weighted: true,
  columns: scoredWith({ name: 'community', holds: 'node' }),
  *run(graph, call) {
    call.hold(28 * graph.nodes);
    if (call.choice('ALGO') === 'label_propagation') return communities(yield* spread(graph, 20));
    if (graph.weights?.some((weight) => weight < 0)) throw call.invalid('WEIGHT', 'communities take no negative weight');
    call.hold(48 * graph.edges);
    return communities(yield* louvain(graph));
  },
};

/** One level of the graph: neighbours with the weights of their edges, in both directions, and each node's loops. */
interface Level {
  readonly nodes: number;
  readonly offsets: Uint32Array;
  readonly neighbours: Int32Array;
  readonly weights: Float64Array;
  /** By node: the weight of its edges to others, plus twice that of its loops. */
  readonly total: Float64Array;
}

function* louvain(graph: Graph): Steps<Int32Array> {
  const label = new Int32Array(graph.nodes);
  for (let node = 0; node < label.length; node++) label[node] = node;
  let level = yield* firstLevel(graph);
  for (let depth = 0; depth < levelsMax; depth++) {
    const moved = yield* moves(level);
    if (moved === null) break;
    const { of, count } = numberLabels(moved);
    for (let node = 0; node < label.length; node++) label[node] = of[label[node]!]!;
    yield;
    level = yield* nextLevel(level, of, count);
  }
  return label;
}

function* firstLevel(graph: Graph): Steps<Level> {
  const { nodes } = graph;
  const offsets = new Uint32Array(nodes + 1);
  const neighbours = new Int32Array(2 * graph.edges);
  const weights = new Float64Array(2 * graph.edges);
  const total = new Float64Array(nodes);
  let count = 0;
  for (let node = 0; node < nodes; node++) {
    for (const { offsets: begin, neighbours: others, edges } of [graph.out, graph.in]) {
      for (let edgeSlot = begin[node]!; edgeSlot < begin[node + 1]!; edgeSlot++) {
        const weight = graph.weight(edges === null ? edgeSlot : edges[edgeSlot]!);
        total[node]! += weight;
        if (others[edgeSlot] === node) continue;
        neighbours[count] = others[edgeSlot]!;
        weights[count++] = weight;
        if (count % stepsAtOnce === 0) yield;
      }
    }
    offsets[node + 1] = count;
  }
  return { nodes, offsets, neighbours, weights, total };
}

/** The community of each node, as some number; null where none goes anywhere. */
function* moves({ nodes, offsets, neighbours, weights, total }: Level): Steps<Int32Array | null> {
  const label = new Int32Array(nodes);
  for (let node = 0; node < nodes; node++) label[node] = node;
  const within = total.slice();
  let all = 0;
  for (let node = 0; node < nodes; node++) all += total[node]!;
  if (all === 0) return null;
  const joins = new Float64Array(nodes);
  const isMet = new Uint8Array(nodes);
  let hasMoved = false;
  let looks = 0;
  for (let round = 0, changed = true; changed && round < roundsMax; round++) {
    changed = false;
    for (let node = 0; node < nodes; node++) {
      const own = label[node]!;
      const met: number[] = [];
      for (let edgeSlot = offsets[node]!; edgeSlot < offsets[node + 1]!; edgeSlot++) {
        const of = label[neighbours[edgeSlot]!]!;
        if (isMet[of] === 0) {
          isMet[of] = 1;
          met.push(of);
        }
        joins[of]! += weights[edgeSlot]!;
        looks++;
      }
      within[own]! -= total[node]!;
      const gain = (of: number): number => joins[of]! - (within[of]! * total[node]!) / all;
      let best = own;
      let most = gain(own);
      for (const of of met.sort((a, b) => a - b)) {
        const gained = gain(of);
        if (gained > most + least) [best, most] = [of, gained];
      }
      for (const of of met) joins[of] = isMet[of] = 0;
      within[best]! += total[node]!;
      if (best !== own) {
        label[node] = best;
        changed = hasMoved = true;
      }
      if (++looks >= stepsAtOnce) {
        looks = 0;
        yield;
      }
    }
  }
  return hasMoved ? label : null;
}

/** Numbers from 0 in the order of the first node of each. */
function numberLabels(label: Int32Array): { readonly of: Int32Array; readonly count: number } {
  const numbers = new Map<number, number>();
  const of = label.map((each) => {
    let number = numbers.get(each);
    if (number === undefined) numbers.set(each, (number = numbers.size));
    return number;
  });
  return { of, count: numbers.size };
}

function* nextLevel({ nodes, offsets, neighbours, weights, total }: Level, of: Int32Array, count: number): Steps<Level> {
  const sums = new Float64Array(count);
  const joins: Map<number, number>[] = Array.from({ length: count }, () => new Map());
  for (let node = 0; node < nodes; node++) {
    const own = of[node]!;
    sums[own]! += total[node]!;
    for (let edgeSlot = offsets[node]!; edgeSlot < offsets[node + 1]!; edgeSlot++) {
      const other = of[neighbours[edgeSlot]!]!;
      if (other !== own) joins[own]!.set(other, (joins[own]!.get(other) ?? 0) + weights[edgeSlot]!);
    }
    if (node % 1_024 === 1_023) yield;
  }
  const begin = new Uint32Array(count + 1);
  joins.forEach((each, node) => (begin[node + 1] = begin[node]! + each.size));
  return {
    nodes: count,
    offsets: begin,
    neighbours: Int32Array.from(joins.flatMap((each) => [...each.keys()])),
    weights: Float64Array.from(joins.flatMap((each) => [...each.values()])),
    total: sums,
  };
}
