/** The surroundings of a node: each other node once, at its least hop, with the first edge that leads to it. */
import { type Adjacency, ways } from '../graph.ts';
import { type GraphAlgorithm, type GraphRows, scoredWith } from '../graph-algorithm.ts';
import { tooMany } from '../graph-limits.ts';
import { stepsAtOnce } from '../stepped-sort.ts';
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
    if (seed < 0) return rowsOf([], [], [], []);
    call.hold(9 * graph.nodes);
    const reachedNodes: ReachedNodes = {
      seen: new Uint8Array(graph.nodes),
      from: new Int32Array(graph.nodes),
      edge: new Int32Array(graph.nodes),
      next: [],
    };
    reachedNodes.seen[seed] = 1;
    const nodes: number[] = [];
    const hop: number[] = [];
    let round = Int32Array.of(seed);
    for (let length = 1; length <= hops && round.length > 0; length++) {
      reachedNodes.next = [];
      for (let first = 0; first < round.length; ) {
        const step = expand(along, round, first, reachedNodes);
        first = step.end;
        if (nodes.length + reachedNodes.next.length > call.rowsMax) throw tooMany(call.rowsMax);
        call.spend(step.looks);
        yield;
      }
      // Sorted, because the edge reported for a node must not depend on the order in which the others were met.
      round = Int32Array.from(reachedNodes.next).sort();
      for (const node of round) {
        nodes.push(node);
        hop.push(length);
      }
    }
    call.hold(64 * nodes.length);
    return rowsOf(
      nodes,
      hop,
      nodes.map((node) => reachedNodes.from[node]!),
      nodes.map((node) => reachedNodes.edge[node]!),
    );
  },
};

interface ReachedNodes {
  readonly seen: Uint8Array;
  /** By node: the node from which it was reached first, and the edge. */
  readonly from: Int32Array;
  readonly edge: Int32Array;
  /** Nodes of the next round, as they are met. */
  next: number[];
}

/** Expands some nodes of a round, from one on; returns the next node, and the number of edges read. */
function expand(
  along: readonly Adjacency[],
  round: Int32Array,
  first: number,
  { seen, from, edge, next }: ReachedNodes,
): { readonly end: number; readonly looks: number } {
  let looks = 0;
  let i = first;
  for (; i < round.length && looks < 2 * stepsAtOnce; i++) {
    const node = round[i]!;
    for (const { offsets, neighbours, edges } of along) {
      const end = offsets[node + 1]!;
      looks += 1 + end - offsets[node]!;
      for (let edgeSlot = offsets[node]!; edgeSlot < end; edgeSlot++) {
        const neighbour = neighbours[edgeSlot]!;
        if (seen[neighbour] === 1) continue;
        seen[neighbour] = 1;
        from[neighbour] = node;
        edge[neighbour] = edges === null ? edgeSlot : edges[edgeSlot]!;
        next.push(neighbour);
      }
    }
  }
  return { end: i, looks };
}

/** The nearest first, and among them by their nodes: as they were met. */
function rowsOf(nodes: readonly number[], hop: readonly number[], from: readonly number[], edges: readonly number[]): GraphRows {
  const columns = new Map<string, Int32Array | Float64Array>([
    ['nodeId', Int32Array.from(nodes)],
    ['score', Float64Array.from(hop, (length) => 1 / length)],
    ['hop', Int32Array.from(hop)],
    ['from_id', Int32Array.from(from)],
  ]);
  return { count: nodes.length, columns, edges: Int32Array.from(edges), ordered: true };
}
