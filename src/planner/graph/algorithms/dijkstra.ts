/** The shortest way from one node to another, node by node, and the shortest ways from one to all others. */
import { type GraphAlgorithm, type GraphRows, scoredWith } from '../graph-algorithm.ts';
import { ShortestWays } from '../shortest-paths.ts';

const columns = scoredWith({ name: 'hop', holds: 'integer' }, { name: 'previous', holds: 'node' });

export const dijkstra: GraphAlgorithm = {
  name: 'GRAPH_DIJKSTRA',
  summary: 'The nodes of the shortest way from one node to another, the first one first; the score is how far each is from it.',
  about: 'typed',
  arguments: [
    { name: 'FROM', kind: 'key', required: true, summary: 'the node that the way begins at' },
    { name: 'TO', kind: 'key', required: true, summary: 'the node that it ends at' },
  ],
  direction: 'out',
  weighted: true,
  columns,
  *run(graph, call) {
    const [from, to] = [graph.texts.numberOf(call.text('FROM')!), graph.texts.numberOf(call.text('TO')!)];
    const ways = new ShortestWays(graph, call);
    if (from < 0 || to < 0) return rowsOf(ways, []);
    yield* ways.from(from, to);
    if (ways.distance[to] === Number.POSITIVE_INFINITY) return rowsOf(ways, []);
    const way: number[] = [];
    for (let node = to; node >= 0; node = ways.previous[node]!) way.push(node);
    return { ...rowsOf(ways, way.reverse()), ordered: true };
  },
};

export const shortestWays: GraphAlgorithm = {
  name: 'GRAPH_SSSP',
  summary: 'Every node that can be reached from one, the nearest first; the score is how far away it is.',
  about: 'typed',
  arguments: [{ name: 'SOURCE', kind: 'key', required: true, summary: 'the node that ways begin at' }],
  direction: 'out',
  weighted: true,
  nearestFirst: true,
  columns,
  *run(graph, call) {
    const source = graph.texts.numberOf(call.text('SOURCE')!);
    const ways = new ShortestWays(graph, call);
    if (source < 0) return rowsOf(ways, []);
    yield* ways.from(source);
    return rowsOf(ways, ways.reached.subarray(0, ways.count));
  },
};

function rowsOf({ distance, hop, previous }: ShortestWays, nodes: Int32Array | readonly number[]): GraphRows {
  const node = Int32Array.from(nodes);
  return {
    count: node.length,
    columns: new Map<string, Int32Array | Float64Array>([
      ['nodeId', node],
      ['score', Float64Array.from(node, (each) => distance[each]!)],
      ['hop', node.map((each) => hop[each]!)],
      ['previous', node.map((each) => previous[each]!)],
    ]),
  };
}
