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
    const pairs = new Pairs(call);
    const ways = new ShortestWays(graph, call);
    for (let from = 0; from < graph.nodes; from++) {
      yield* ways.from(from);
      for (let i = 1; i < ways.count; i++) pairs.add(from, ways.reached[i]!, ways.distance[ways.reached[i]!]!);
      call.spend(ways.count);
      yield;
    }
    return pairs.rows();
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
    const pairs = new Pairs(call);
    const ways = new ShortestWays(graph, call);
    let best: { readonly from: number; readonly to: number; readonly far: number } | null = null;
    for (let from = 0; from < graph.nodes; from++) {
      yield* ways.from(from);
      for (let i = 1; i < ways.count; i++) {
        const to = ways.reached[i]!;
        const far = ways.distance[to]!;
        if (best === null || far > best.far || (far === best.far && from === best.from && to < best.to)) best = { from, to, far };
      }
      call.spend(ways.count);
      yield;
    }
    if (best !== null) pairs.add(best.from, best.to, best.far);
    return pairs.rows();
  },
};
