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
    const most = call.integer('TOP_K', 10, 1, 1_000);
    const pairs = new Pairs(call);
    const sharing = yield* Sharing.create(graph, call);
    for (let node = 0; node < graph.nodes; node++) {
      const alike = yield* sharing.neighboursSharing(node);
      alike.sort((a, b) => b.score - a.score || a.other - b.other);
      for (const { other, score } of alike.slice(0, most)) pairs.add(node, other, score);
    }
    return pairs.rows();
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
    const given = call.text('NODE');
    const only = given === undefined ? null : graph.texts.numberOf(given);
    const pairs = new Pairs(call);
    const sharing = yield* Sharing.create(graph, call);
    const [first, end] = only === null ? [0, graph.nodes] : only < 0 ? [0, 0] : [only, only + 1];
    for (let node = first; node < end; node++) {
      for (const { other, score } of yield* sharing.neighboursSharing(node))
        if (only !== null || other > node) pairs.add(node, other, score);
    }
    return pairs.rows();
  },
};

class Sharing {
  readonly #joined: Neighbours;
  /** The neighbours against the direction of the edges, where only one direction is followed. */
  readonly #back: Neighbours;
  readonly #call: GraphCall;
  readonly #shared: Int32Array;
  #looks = 0;

  private constructor(joined: Neighbours, back: Neighbours, nodes: number, call: GraphCall) {
    this.#joined = joined;
    this.#back = back;
    this.#call = call;
    this.#shared = new Int32Array(nodes);
  }

  static *create(graph: Graph, call: GraphCall): Steps<Sharing> {
    const { direction } = call;
    const joined = yield* simpleNeighbours(graph, direction, call.hold);
    const back = direction === 'both' ? joined : yield* simpleNeighbours(graph, direction === 'out' ? 'in' : 'out', call.hold);
    call.hold(4 * graph.nodes);
    return new Sharing(joined, back, graph.nodes, call);
  }

  *neighboursSharing(node: number): Steps<{ readonly other: number; readonly score: number }[]> {
    const met: number[] = [];
    const { offsets, neighbours } = this.#joined;
    for (let edgeSlot = offsets[node]!; edgeSlot < offsets[node + 1]!; edgeSlot++) {
      const through = neighbours[edgeSlot]!;
      for (let back = this.#back.offsets[through]!; back < this.#back.offsets[through + 1]!; back++) {
        const other = this.#back.neighbours[back]!;
        if (++this.#looks % stepsAtOnce === 0) {
          this.#call.spend(stepsAtOnce);
          yield;
        }
        if (other !== node && this.#shared[other]!++ === 0) met.push(other);
      }
    }
    const own = sizeOf(this.#joined, node);
    return met.map((other) => {
      const both = this.#shared[other]!;
      this.#shared[other] = 0;
      return { other, score: both / (own + sizeOf(this.#joined, other) - both) };
    });
  }
}
