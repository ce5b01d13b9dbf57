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
    const hopsWanted = call.integer('MAX_HOPS', 2, 1, hopsMax);
    const seedNode = graph.texts.numberOf(call.text('SEED')!);
    const expandedWays = ways(graph, call.direction);
    if (seedNode < 0) return expansionRows([], [], [], []);
    call.hold(9 * graph.nodes);
    const reachedNodes: ReachedNodes = {
      seen: new Uint8Array(graph.nodes),
      from: new Int32Array(graph.nodes),
      edge: new Int32Array(graph.nodes),
      next: [],
    };
    reachedNodes.seen[seedNode] = 1;
    const foundNodes: number[] = [];
    const nodeHops: number[] = [];
    let roundNodes = Int32Array.of(seedNode);
    for (let hopDistance = 1; hopDistance <= hopsWanted && roundNodes.length > 0; hopDistance++) {
      reachedNodes.next = [];
      for (let firstOfRound = 0; firstOfRound < roundNodes.length; ) {
        const expansionStep = expandNodes(expandedWays, roundNodes, firstOfRound, reachedNodes);
        firstOfRound = expansionStep.end;
        if (foundNodes.length + reachedNodes.next.length > call.rowsMax) throw tooMany(call.rowsMax);
        call.spend(expansionStep.looks);
        yield;
      }
      // Sorted, because the edge reported for a node must not depend on the order in which the others were met.
      roundNodes = Int32Array.from(reachedNodes.next).sort();
      for (const node of roundNodes) {
        foundNodes.push(node);
        nodeHops.push(hopDistance);
      }
    }
    call.hold(64 * foundNodes.length);
    return expansionRows(
      foundNodes,
      nodeHops,
      foundNodes.map((node) => reachedNodes.from[node]!),
      foundNodes.map((node) => reachedNodes.edge[node]!),
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
function expandNodes(
  expandedWays: readonly Adjacency[],
  roundNodes: Int32Array,
  firstOfRound: number,
  { seen, from, edge, next }: ReachedNodes,
): { readonly end: number; readonly looks: number } {
  let edgeLooks = 0;
  let i = firstOfRound;
  for (; i < roundNodes.length && edgeLooks < 2 * stepsAtOnce; i++) {
    const roundNode = roundNodes[i]!;
    for (const { offsets, neighbours, edges } of expandedWays) {
      const neighbourEnd = offsets[roundNode + 1]!;
      edgeLooks += 1 + neighbourEnd - offsets[roundNode]!;
      for (let edgeSlot = offsets[roundNode]!; edgeSlot < neighbourEnd; edgeSlot++) {
        const neighbour = neighbours[edgeSlot]!;
        if (seen[neighbour] === 1) continue;
        seen[neighbour] = 1;
        from[neighbour] = roundNode;
        edge[neighbour] = edges === null ? edgeSlot : edges[edgeSlot]!;
        next.push(neighbour);
      }
    }
  }
  return { end: i, looks: edgeLooks };
}

/** The nearest first, and among them by their nodes: as they were met. */
function expansionRows(
  nodes: readonly number[],
  nodeHops: readonly number[],
  cameFromNodes: readonly number[],
  foundEdges: readonly number[],
): GraphRows {
  const expansionColumns = new Map<string, Int32Array | Float64Array>([
    ['nodeId', Int32Array.from(nodes)],
    ['score', Float64Array.from(nodeHops, (length) => 1 / length)],
    ['hop', Int32Array.from(nodeHops)],
    ['from_id', Int32Array.from(cameFromNodes)],
  ]);
  return { count: nodes.length, columns: expansionColumns, edges: Int32Array.from(foundEdges), ordered: true };
}
