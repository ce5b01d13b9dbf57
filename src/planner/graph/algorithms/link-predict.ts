/** The likelihood of an edge between two unconnected nodes, by the neighbours that they share. */
import { type GraphAlgorithm, type GraphCall, scoredWith } from '../graph-algorithm.ts';
import { pairColumns, Pairs } from '../score-rows.ts';
import { common, type Neighbours, simpleNeighbours, sizeOf } from '../simple-neighbours.ts';
import { type Steps, stepsAtOnce } from '../stepped-sort.ts';

const method = {
  name: 'METHOD',
  kind: 'word',
  choices: ['common_neighbours', 'jaccard', 'adamic_adar', 'resource_allocation', 'preferential_attachment'],
  summary: "'common_neighbours' (the default), 'jaccard', 'adamic_adar', 'resource_allocation' or 'preferential_attachment'",
} as const;

export const linkPredict: GraphAlgorithm = {
  name: 'GRAPH_LINK_PREDICT',
  summary: 'How likely two nodes come to be joined: one pair, or all that a node might be joined to.',
  about: 'typed',
  arguments: [
    { name: 'FROM', kind: 'key', required: true, summary: 'the one node' },
    { name: 'TO', kind: 'key', summary: 'the other; every node that shares a neighbour and is not joined yet by default' },
    method,
  ],
  columns: scoredWith(...pairColumns),
  *run(graph, call) {
    const joined = yield* simpleNeighbours(graph, 'both', call.hold);
    const pairs = new Pairs(call);
    const from = graph.texts.numberOf(call.text('FROM')!);
    const given = call.text('TO');
    const to = given === undefined ? null : graph.texts.numberOf(given);
    if (from < 0 || to === -1) return pairs.rows();
    const score = scoreOf(joined, call);
    const others = to === null ? yield* candidates(joined, from, call) : [to];
    for (const other of others) {
      const pairScore = score(from, other);
      if (to !== null || pairScore > 0) pairs.add(from, other, pairScore);
      call.spend(sizeOf(joined, other));
      yield;
    }
    return pairs.rows();
  },
};

export const linksPredicted: GraphAlgorithm = {
  name: 'LINK_PREDICT',
  summary: 'Every two nodes that share a neighbour and are not joined, by how likely they come to be.',
  about: 'typed',
  arguments: [method],
  columns: scoredWith(...pairColumns),
  *run(graph, call) {
    const joined = yield* simpleNeighbours(graph, 'both', call.hold);
    const pairs = new Pairs(call);
    const score = scoreOf(joined, call);
    for (let node = 0; node < graph.nodes; node++) {
      for (const other of yield* candidates(joined, node, call)) {
        if (other > node) pairs.add(node, other, score(node, other));
      }
      yield;
    }
    return pairs.rows();
  },
};

/** Nodes two hops away. */
function* candidates({ offsets, neighbours }: Neighbours, of: number, { spend }: GraphCall): Steps<readonly number[]> {
  const near = new Set<number>([of]);
  for (let edgeSlot = offsets[of]!; edgeSlot < offsets[of + 1]!; edgeSlot++) near.add(neighbours[edgeSlot]!);
  const candidates = new Set<number>();
  let looks = 0;
  for (let edgeSlot = offsets[of]!; edgeSlot < offsets[of + 1]!; edgeSlot++) {
    const through = neighbours[edgeSlot]!;
    for (let next = offsets[through]!; next < offsets[through + 1]!; next++) {
      const other = neighbours[next]!;
      if (!near.has(other)) candidates.add(other);
      if (++looks % stepsAtOnce === 0) {
        spend(stepsAtOnce);
        yield;
      }
    }
  }
  return [...candidates].sort((a, b) => a - b);
}

function scoreOf(joined: Neighbours, call: GraphCall): (a: number, b: number) => number {
  const size = (node: number): number => sizeOf(joined, node);
  const sumOverCommon =
    (of: (node: number) => number) =>
    (a: number, b: number): number => {
      let sum = 0;
      common(joined, a, b, (node) => (sum += of(node)));
      return sum;
    };
  const shared = sumOverCommon(() => 1);
  switch (call.choice('METHOD')) {
    case 'jaccard':
      return (a, b) => {
        const both = shared(a, b);
        const either = size(a) + size(b) - both;
        return either === 0 ? 0 : both / either;
      };
    case 'adamic_adar':
      // A common neighbour of two different nodes has at least two neighbours; the guard is for a node paired with itself.
      return sumOverCommon((node) => (size(node) < 2 ? 0 : 1 / Math.log(size(node))));
    case 'resource_allocation':
      return sumOverCommon((node) => 1 / size(node));
    case 'preferential_attachment':
      return (a, b) => size(a) * size(b);
    default:
      return shared;
  }
}
