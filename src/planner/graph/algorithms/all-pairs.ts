/** How far every node is from every other, and the two that are furthest apart. */
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import { pairColumns, Pairs } from '../score-rows.ts';
import { ShortestWays } from '../shortest-paths.ts';

export const allPairs: GraphAlgorithm = {
  name: 'GRAPH_APSP',
  summary: 'Every two nodes of which one can be reached from the other; the score is how far apart they are.',
  about: 'typed',
  arguments: [],
  direction: 'out',
  weighted: true,
  columns: scoredWith(...pairColumns),
  *run(graph, call) {
    const nodePairs = new Pairs(call);
    const ways = new ShortestWays(graph, call);
    for (let sourceNode = 0; sourceNode < graph.nodes; sourceNode++) {
      yield* ways.from(sourceNode);
      for (let i = 1; i < ways.count; i++) nodePairs.add(sourceNode, ways.reached[i]!, ways.distance[ways.reached[i]!]!);
      call.spend(ways.count);
      yield;
    }
    return nodePairs.rows();
  },
};

export const diameter: GraphAlgorithm = {
  name: 'GRAPH_DIAMETER',
  summary: 'The two nodes whose shortest way is the longest of all; the score is how far apart they are.',
  about: 'typed',
  arguments: [],
  direction: 'out',
  weighted: true,
  columns: scoredWith(...pairColumns),
  *run(graph, call) {
    const nodePairs = new Pairs(call);
    const ways = new ShortestWays(graph, call);
    let farthestPair: { readonly from: number; readonly to: number; readonly far: number } | null = null;
    for (let sourceNode = 0; sourceNode < graph.nodes; sourceNode++) {
      yield* ways.from(sourceNode);
      for (let i = 1; i < ways.count; i++) {
        const reachedNode = ways.reached[i]!;
        const pathLength = ways.distance[reachedNode]!;
        if (
          farthestPair === null ||
          pathLength > farthestPair.far ||
          (pathLength === farthestPair.far && sourceNode === farthestPair.from && reachedNode < farthestPair.to)
        )
          farthestPair = { from: sourceNode, to: reachedNode, far: pathLength };
      }
      call.spend(ways.count);
      yield;
    }
    if (farthestPair !== null) nodePairs.add(farthestPair.from, farthestPair.to, farthestPair.far);
    return nodePairs.rows();
  },
};
