/** Similar nodes by their neighbours: the number in common divided by the number that either has (Jaccard). */
import type { Graph } from '../graph.ts';
import { type GraphAlgorithm, type GraphCall, scoredWith } from '../graph-algorithm.ts';
import { pairColumns, Pairs } from '../score-rows.ts';
import { type Neighbours, simpleNeighbours, sizeOf } from '../simple-neighbours.ts';
import { type Steps, stepsAtOnce } from '../stepped-sort.ts';

export const similarity: GraphAlgorithm = {
  name: 'GRAPH_SIMILARITY',
  summary: 'For each node those that are most like it: neighbours of both, of all neighbours that either has.',
  about: 'typed',
  arguments: [{ name: 'TOP_K', kind: 'integer', summary: 'how many for each node, from 1 to 1000; 10 by default' }],
  direction: 'both',
  columns: scoredWith(...pairColumns),
  *run(graph, call) {
    const similarNodesMax = call.integer('TOP_K', 10, 1, 1_000);
    const similarPairs = new Pairs(call);
    const sharedNeighbours = yield* SharedNeighbours.create(graph, call);
    for (let similarNode = 0; similarNode < graph.nodes; similarNode++) {
      const similarNodes = yield* sharedNeighbours.neighboursSharing(similarNode);
      similarNodes.sort((a, b) => b.score - a.score || a.other - b.other);
      for (const { other, score } of similarNodes.slice(0, similarNodesMax)) similarPairs.add(similarNode, other, score);
    }
    return similarPairs.rows();
  },
};

export const nodeSimilarity: GraphAlgorithm = {
  name: 'GRAPH_NODE_SIMILARITY',
  summary: 'How alike nodes are by their neighbours: those like one node, or every two that share a neighbour.',
  about: 'typed',
  arguments: [{ name: 'NODE', kind: 'key', summary: 'the node that others are compared with; every node by default' }],
  direction: 'both',
  columns: scoredWith(...pairColumns),
  *run(graph, call) {
    const comparedKey = call.text('NODE');
    const comparedNode = comparedKey === undefined ? null : graph.texts.numberOf(comparedKey);
    const similarPairs = new Pairs(call);
    const sharedNeighbours = yield* SharedNeighbours.create(graph, call);
    const [firstNode, lastNode] =
      comparedNode === null ? [0, graph.nodes] : comparedNode < 0 ? [0, 0] : [comparedNode, comparedNode + 1];
    for (let similarNode = firstNode; similarNode < lastNode; similarNode++) {
      for (const { other, score } of yield* sharedNeighbours.neighboursSharing(similarNode))
        if (comparedNode !== null || other > similarNode) similarPairs.add(similarNode, other, score);
    }
    return similarPairs.rows();
  },
};

class SharedNeighbours {
  readonly #joinedNeighbours: Neighbours;
  /** The neighbours against the direction of the edges, where only one direction is followed. */
  readonly #backNeighbours: Neighbours;
  readonly #similarityCall: GraphCall;
  readonly #sharedCounts: Int32Array;
  #similarityLooks = 0;

  private constructor(joinedNeighbours: Neighbours, backNeighbours: Neighbours, nodes: number, call: GraphCall) {
    this.#joinedNeighbours = joinedNeighbours;
    this.#backNeighbours = backNeighbours;
    this.#similarityCall = call;
    this.#sharedCounts = new Int32Array(nodes);
  }

  static *create(graph: Graph, call: GraphCall): Steps<SharedNeighbours> {
    const { direction } = call;
    const joinedNeighbours = yield* simpleNeighbours(graph, direction, call.hold);
    const backNeighbours =
      direction === 'both' ? joinedNeighbours : yield* simpleNeighbours(graph, direction === 'out' ? 'in' : 'out', call.hold);
    call.hold(4 * graph.nodes);
    return new SharedNeighbours(joinedNeighbours, backNeighbours, graph.nodes, call);
  }

  *neighboursSharing(node: number): Steps<{ readonly other: number; readonly score: number }[]> {
    const metNodes: number[] = [];
    const { offsets, neighbours } = this.#joinedNeighbours;
    for (let edgeSlot = offsets[node]!; edgeSlot < offsets[node + 1]!; edgeSlot++) {
      const throughNode = neighbours[edgeSlot]!;
      for (
        let backSlot = this.#backNeighbours.offsets[throughNode]!;
        backSlot < this.#backNeighbours.offsets[throughNode + 1]!;
        backSlot++
      ) {
        const sharingNode = this.#backNeighbours.neighbours[backSlot]!;
        if (++this.#similarityLooks % stepsAtOnce === 0) {
          this.#similarityCall.spend(stepsAtOnce);
          yield;
        }
        if (sharingNode !== node && this.#sharedCounts[sharingNode]!++ === 0) metNodes.push(sharingNode);
      }
    }
    const ownNeighbourCount = sizeOf(this.#joinedNeighbours, node);
    return metNodes.map((sharingNode) => {
      const sharedCount = this.#sharedCounts[sharingNode]!;
      this.#sharedCounts[sharingNode] = 0;
      return {
        other: sharingNode,
        score: sharedCount / (ownNeighbourCount + sizeOf(this.#joinedNeighbours, sharingNode) - sharedCount),
      };
    });
  }
}
