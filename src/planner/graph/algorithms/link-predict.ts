/** The likelihood of an edge between two unconnected nodes, by the neighbours that they share. */
import { type GraphAlgorithm, type GraphCall, scoredWith } from '../graph-algorithm.ts';
import { pairColumns, Pairs } from '../score-rows.ts';
import { common, type Neighbours, simpleNeighbours, sizeOf } from '../simple-neighbours.ts';
import { type Steps, stepsAtOnce } from '../stepped-sort.ts';

const predictionMethod = {
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
    predictionMethod,
  ],
  columns: scoredWith(...pairColumns),
  *run(graph, call) {
    const joinedNeighbours = yield* simpleNeighbours(graph, 'both', call.hold);
    const predictedPairs = new Pairs(call);
    const linkFrom = graph.texts.numberOf(call.text('FROM')!);
    const linkToText = call.text('TO');
    const linkTo = linkToText === undefined ? null : graph.texts.numberOf(linkToText);
    if (linkFrom < 0 || linkTo === -1) return predictedPairs.rows();
    const linkScore = linkScoreOf(joinedNeighbours, call);
    const linkCandidatesFound = linkTo === null ? yield* linkCandidates(joinedNeighbours, linkFrom, call) : [linkTo];
    for (const candidateNode of linkCandidatesFound) {
      const pairScore = linkScore(linkFrom, candidateNode);
      if (linkTo !== null || pairScore > 0) predictedPairs.add(linkFrom, candidateNode, pairScore);
      call.spend(sizeOf(joinedNeighbours, candidateNode));
      yield;
    }
    return predictedPairs.rows();
  },
};

export const linksPredicted: GraphAlgorithm = {
  name: 'LINK_PREDICT',
  summary: 'Every two nodes that share a neighbour and are not joined, by how likely they come to be.',
  about: 'typed',
  arguments: [predictionMethod],
  columns: scoredWith(...pairColumns),
  *run(graph, call) {
    const joinedNeighbours = yield* simpleNeighbours(graph, 'both', call.hold);
    const predictedPairs = new Pairs(call);
    const linkScore = linkScoreOf(joinedNeighbours, call);
    for (let predictedNode = 0; predictedNode < graph.nodes; predictedNode++) {
      for (const candidateNode of yield* linkCandidates(joinedNeighbours, predictedNode, call)) {
        if (candidateNode > predictedNode)
          predictedPairs.add(predictedNode, candidateNode, linkScore(predictedNode, candidateNode));
      }
      yield;
    }
    return predictedPairs.rows();
  },
};

/** Nodes two hops away. */
function* linkCandidates({ offsets, neighbours }: Neighbours, linkFrom: number, { spend }: GraphCall): Steps<readonly number[]> {
  const nearNodes = new Set<number>([linkFrom]);
  for (let edgeSlot = offsets[linkFrom]!; edgeSlot < offsets[linkFrom + 1]!; edgeSlot++) nearNodes.add(neighbours[edgeSlot]!);
  const candidates = new Set<number>();
  let candidateLooks = 0;
  for (let edgeSlot = offsets[linkFrom]!; edgeSlot < offsets[linkFrom + 1]!; edgeSlot++) {
    const sharedNeighbour = neighbours[edgeSlot]!;
    for (let neighbourSlot = offsets[sharedNeighbour]!; neighbourSlot < offsets[sharedNeighbour + 1]!; neighbourSlot++) {
      const candidateNode = neighbours[neighbourSlot]!;
      if (!nearNodes.has(candidateNode)) candidates.add(candidateNode);
      if (++candidateLooks % stepsAtOnce === 0) {
        spend(stepsAtOnce);
        yield;
      }
    }
  }
  return [...candidates].sort((a, b) => a - b);
}

function linkScoreOf(joinedNeighbours: Neighbours, call: GraphCall): (linkFrom: number, linkTo: number) => number {
  const neighbourCount = (node: number): number => sizeOf(joinedNeighbours, node);
  const sumOverCommon =
    (neighbourShare: (node: number) => number) =>
    (a: number, b: number): number => {
      let commonSum = 0;
      common(joinedNeighbours, a, b, (node) => (commonSum += neighbourShare(node)));
      return commonSum;
    };
  const sharedNeighbours = sumOverCommon(() => 1);
  switch (call.choice('METHOD')) {
    case 'jaccard':
      return (linkFrom, linkTo) => {
        const sharedCount = sharedNeighbours(linkFrom, linkTo);
        const eitherCount = neighbourCount(linkFrom) + neighbourCount(linkTo) - sharedCount;
        return eitherCount === 0 ? 0 : sharedCount / eitherCount;
      };
    case 'adamic_adar':
      // A common neighbour of two different nodes has at least two neighbours; the guard is for a node paired with itself.
      return sumOverCommon((node) => (neighbourCount(node) < 2 ? 0 : 1 / Math.log(neighbourCount(node))));
    case 'resource_allocation':
      return sumOverCommon((node) => 1 / neighbourCount(node));
    case 'preferential_attachment':
      return (linkFrom, linkTo) => neighbourCount(linkFrom) * neighbourCount(linkTo);
    default:
      return sharedNeighbours;
  }
}
