/** The shortest way from one node to another, node by node, and the shortest ways from one to all others. */
import { type GraphAlgorithm, type GraphRows, scoredWith } from '../graph-algorithm.ts';
import { ShortestWays } from '../shortest-paths.ts';

const shortestWayColumns = scoredWith({ name: 'hop', holds: 'integer' }, { name: 'previous', holds: 'node' });

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
  columns: shortestWayColumns,
  *run(graph, call) {
    const [wayStart, wayEnd] = [graph.texts.numberOf(call.text('FROM')!), graph.texts.numberOf(call.text('TO')!)];
    const ways = new ShortestWays(graph, call);
    if (wayStart < 0 || wayEnd < 0) return shortestWayRows(ways, []);
    yield* ways.from(wayStart, wayEnd);
    if (ways.distance[wayEnd] === Number.POSITIVE_INFINITY) return shortestWayRows(ways, []);
    const shortestWay: number[] = [];
    for (let node = wayEnd; node >= 0; node = ways.previous[node]!) shortestWay.push(node);
    return { ...shortestWayRows(ways, shortestWay.reverse()), ordered: true };
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
  columns: shortestWayColumns,
  *run(graph, call) {
    const sourceNode = graph.texts.numberOf(call.text('SOURCE')!);
    const ways = new ShortestWays(graph, call);
    if (sourceNode < 0) return shortestWayRows(ways, []);
    yield* ways.from(sourceNode);
    return shortestWayRows(ways, ways.reached.subarray(0, ways.count));
  },
};

function shortestWayRows({ distance, hop, previous }: ShortestWays, reachedNodes: Int32Array | readonly number[]): GraphRows {
  const wayNodes = Int32Array.from(reachedNodes);
  return {
    count: wayNodes.length,
    columns: new Map<string, Int32Array | Float64Array>([
      ['nodeId', wayNodes],
      ['score', Float64Array.from(wayNodes, (wayNode) => distance[wayNode]!)],
      ['hop', wayNodes.map((wayNode) => hop[wayNode]!)],
      ['previous', wayNodes.map((wayNode) => previous[wayNode]!)],
    ]),
  };
}
