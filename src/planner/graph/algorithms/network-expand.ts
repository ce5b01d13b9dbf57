/** What lies around a node: each other node once, at its least hop, with the first edge that leads to it. */
import { ways } from '../graph.ts';
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import { tooMany } from '../limits.ts';
import { stepsAtOnce } from '../steps.ts';
import { hopsMax } from './paths-between.ts';

export const networkExpand: GraphAlgorithm = {
  name: 'NETWORK_EXPAND',
  summary: 'Every node around one, once, with its distance in hops and an edge that leads to it, the nearest first.',
  about: 'open',
  arguments: [
    { name: 'SEED', kind: 'key', required: true, summary: 'the node in the middle' },
    { name: 'MAX_HOPS', kind: 'integer', summary: `how many edges away a node may be, from 1 to ${hopsMax}; 2 by default` },
  ],
  direction: 'both',
  columns: scoredWith({ name: 'hop', holds: 'integer' }, { name: 'from_id', holds: 'node' }),
  tellsEdges: true,
  *run(graph, call) {
    const hops = call.integer('MAX_HOPS', 2, 1, hopsMax);
    const seed = graph.texts.numberOf(call.text('SEED')!);
    const along = ways(graph, call.direction);
    const nodes: number[] = [];
    const from: number[] = [];
    const edges: number[] = [];
    const hop: number[] = [];
    const seen = new Set<number>([seed]);
    let round = seed < 0 ? [] : [seed];
    let looks = 0;
    for (let length = 1; length <= hops && round.length > 0; length++) {
      const next: number[] = [];
      for (const node of round) {
        for (const { offsets, neighbours, edges: numbers } of along) {
          const end = offsets[node + 1]!;
          for (let place = offsets[node]!; place < end; place++) {
            const neighbour = neighbours[place]!;
            if (++looks % stepsAtOnce === 0) {
              call.spend(stepsAtOnce);
              yield;
            }
            if (seen.has(neighbour)) continue;
            seen.add(neighbour);
            next.push(neighbour);
            nodes.push(neighbour);
            from.push(node);
            hop.push(length);
            edges.push(numbers === null ? place : numbers[place]!);
            if (nodes.length > call.rowsMax) throw tooMany(call.rowsMax);
          }
        }
      }
      // The edge that a node is told with must not rest on the order in which others were met.
      round = next.sort((a, b) => a - b);
    }
    call.hold(64 * nodes.length);
    const columns = new Map<string, Int32Array | Float64Array>([
      ['nodeId', Int32Array.from(nodes)],
      ['score', Float64Array.from(hop, (length) => 1 / length)],
      ['hop', Int32Array.from(hop)],
      ['from_id', Int32Array.from(from)],
    ]);
    return { count: nodes.length, columns, edges: Int32Array.from(edges) };
  },
};
