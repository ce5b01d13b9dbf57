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
const modularityGainMin = 1e-12;
const louvainLevelsMax = 100;
const louvainRoundsMax = 100;

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
interface LouvainLevel {
  readonly nodes: number;
  readonly offsets: Uint32Array;
  readonly neighbours: Int32Array;
  readonly weights: Float64Array;
  /** By node: the weight of its edges to others, plus twice that of its loops. */
  readonly total: Float64Array;
}

function* louvain(graph: Graph): Steps<Int32Array> {
  const communityLabels = new Int32Array(graph.nodes);
  for (let node = 0; node < communityLabels.length; node++) communityLabels[node] = node;
  let louvainLevel = yield* firstLouvainLevel(graph);
  for (let louvainDepth = 0; louvainDepth < louvainLevelsMax; louvainDepth++) {
    const movedLabels = yield* moveNodes(louvainLevel);
    if (movedLabels === null) break;
    const { of, count } = numberCommunities(movedLabels);
    for (let node = 0; node < communityLabels.length; node++) communityLabels[node] = of[communityLabels[node]!]!;
    yield;
    louvainLevel = yield* nextLouvainLevel(louvainLevel, of, count);
  }
  return communityLabels;
}

function* firstLouvainLevel(graph: Graph): Steps<LouvainLevel> {
  const { nodes } = graph;
  const offsets = new Uint32Array(nodes + 1);
  const neighbours = new Int32Array(2 * graph.edges);
  const weights = new Float64Array(2 * graph.edges);
  const nodeWeights = new Float64Array(nodes);
  let neighbourCount = 0;
  for (let node = 0; node < nodes; node++) {
    for (const { offsets: waySlots, neighbours: wayNeighbours, edges } of [graph.out, graph.in]) {
      for (let edgeSlot = waySlots[node]!; edgeSlot < waySlots[node + 1]!; edgeSlot++) {
        const edgeWeight = graph.weight(edges === null ? edgeSlot : edges[edgeSlot]!);
        nodeWeights[node]! += edgeWeight;
        if (wayNeighbours[edgeSlot] === node) continue;
        neighbours[neighbourCount] = wayNeighbours[edgeSlot]!;
        weights[neighbourCount++] = edgeWeight;
        if (neighbourCount % stepsAtOnce === 0) yield;
      }
    }
    offsets[node + 1] = neighbourCount;
  }
  return { nodes, offsets, neighbours, weights, total: nodeWeights };
}

/** The community of each node, as some number; null where none goes anywhere. */
function* moveNodes({ nodes, offsets, neighbours, weights, total: nodeWeights }: LouvainLevel): Steps<Int32Array | null> {
  const communityLabels = new Int32Array(nodes);
  for (let node = 0; node < nodes; node++) communityLabels[node] = node;
  const communityWeights = nodeWeights.slice();
  let totalWeight = 0;
  for (let node = 0; node < nodes; node++) totalWeight += nodeWeights[node]!;
  if (totalWeight === 0) return null;
  const weightToCommunity = new Float64Array(nodes);
  const isCommunityMet = new Uint8Array(nodes);
  let hasMoved = false;
  let edgeLooks = 0;
  for (let louvainRound = 0, hasRoundMoved = true; hasRoundMoved && louvainRound < louvainRoundsMax; louvainRound++) {
    hasRoundMoved = false;
    for (let node = 0; node < nodes; node++) {
      const ownCommunity = communityLabels[node]!;
      const metCommunities: number[] = [];
      for (let edgeSlot = offsets[node]!; edgeSlot < offsets[node + 1]!; edgeSlot++) {
        const metCommunity = communityLabels[neighbours[edgeSlot]!]!;
        if (isCommunityMet[metCommunity] === 0) {
          isCommunityMet[metCommunity] = 1;
          metCommunities.push(metCommunity);
        }
        weightToCommunity[metCommunity]! += weights[edgeSlot]!;
        edgeLooks++;
      }
      communityWeights[ownCommunity]! -= nodeWeights[node]!;
      const modularityGain = (of: number): number =>
        weightToCommunity[of]! - (communityWeights[of]! * nodeWeights[node]!) / totalWeight;
      let bestCommunity = ownCommunity;
      let mostGain = modularityGain(ownCommunity);
      for (const of of metCommunities.sort((a, b) => a - b)) {
        const communityGain = modularityGain(of);
        if (communityGain > mostGain + modularityGainMin) [bestCommunity, mostGain] = [of, communityGain];
      }
      for (const of of metCommunities) weightToCommunity[of] = isCommunityMet[of] = 0;
      communityWeights[bestCommunity]! += nodeWeights[node]!;
      if (bestCommunity !== ownCommunity) {
        communityLabels[node] = bestCommunity;
        hasRoundMoved = hasMoved = true;
      }
      if (++edgeLooks >= stepsAtOnce) {
        edgeLooks = 0;
        yield;
      }
    }
  }
  return hasMoved ? communityLabels : null;
}

/** Numbers from 0 in the order of the first node of each. */
function numberCommunities(communityLabels: Int32Array): { readonly of: Int32Array; readonly count: number } {
  const communityNumbers = new Map<number, number>();
  const numberedLabels = communityLabels.map((communityLabel) => {
    let communityNumber = communityNumbers.get(communityLabel);
    if (communityNumber === undefined) communityNumbers.set(communityLabel, (communityNumber = communityNumbers.size));
    return communityNumber;
  });
  return { of: numberedLabels, count: communityNumbers.size };
}

function* nextLouvainLevel(
  { nodes, offsets, neighbours, weights, total }: LouvainLevel,
  communityOf: Int32Array,
  communityCount: number,
): Steps<LouvainLevel> {
  const communityWeights = new Float64Array(communityCount);
  const communityJoins: Map<number, number>[] = Array.from({ length: communityCount }, () => new Map());
  for (let node = 0; node < nodes; node++) {
    const ownCommunity = communityOf[node]!;
    communityWeights[ownCommunity]! += total[node]!;
    for (let edgeSlot = offsets[node]!; edgeSlot < offsets[node + 1]!; edgeSlot++) {
      const otherCommunity = communityOf[neighbours[edgeSlot]!]!;
      if (otherCommunity !== ownCommunity)
        communityJoins[ownCommunity]!.set(
          otherCommunity,
          (communityJoins[ownCommunity]!.get(otherCommunity) ?? 0) + weights[edgeSlot]!,
        );
    }
    if (node % 1_024 === 1_023) yield;
  }
  const nextOffsets = new Uint32Array(communityCount + 1);
  communityJoins.forEach((joinedWeights, node) => (nextOffsets[node + 1] = nextOffsets[node]! + joinedWeights.size));
  return {
    nodes: communityCount,
    offsets: nextOffsets,
    neighbours: Int32Array.from(communityJoins.flatMap((joinedWeights) => [...joinedWeights.keys()])),
    weights: Float64Array.from(communityJoins.flatMap((joinedWeights) => [...joinedWeights.values()])),
    total: communityWeights,
  };
}
