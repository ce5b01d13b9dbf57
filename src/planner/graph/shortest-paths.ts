/**
 * Shortest ways from one node to all others. Of ways that are as short the one of fewer hops counts, then the one over the least
 * node: the result for a node never depends on the order in which others were met.
 */
import type { Adjacency, Graph } from './graph.ts';
import { ways } from './graph.ts';
import type { GraphCall } from './graph-algorithm.ts';
import { breadthFirst } from './breadth-first.ts';
import { type Steps, stepsAtOnce } from './stepped-sort.ts';

export class ShortestWays {
  readonly distance: Float64Array;
  readonly hop: Int32Array;
  /** -1 of the node that ways begin at. */
  readonly previous: Int32Array;
  /** Nodes that are reached, the nearest first; the first is where ways begin. Without weights, alike ones in any order. */
  readonly reached: Int32Array;
  count = 0;
  readonly #wayGraph: Graph;
  readonly #shortestAlong: readonly Adjacency[];
  readonly #shortestCall: GraphCall;
  readonly #nearestHeap: NearestHeap;
  readonly #settledNodes: Uint8Array;
  #shortestLooks = 0;

  /** Throws REL_INVALID where an edge weighs less than nothing. */
  constructor(graph: Graph, call: GraphCall) {
    if (graph.weights?.some((weight) => weight < 0)) {
      throw call.invalid('WEIGHT', 'an edge has a negative weight: no way along it is the shortest');
    }
    const { nodes } = graph;
    call.hold(33 * nodes);
    this.#wayGraph = graph;
    this.#shortestCall = call;
    this.#shortestAlong = ways(graph, call.direction);
    this.distance = new Float64Array(nodes).fill(Number.POSITIVE_INFINITY);
    this.hop = new Int32Array(nodes);
    this.previous = new Int32Array(nodes).fill(-1);
    this.reached = new Int32Array(nodes);
    this.#settledNodes = new Uint8Array(nodes);
    this.#nearestHeap = new NearestHeap(this.distance, this.hop);
  }

  /** Forgets the results for another node. Ends early where `to` is reached. */
  *from(source: number, to = -1): Steps<void> {
    const { distance, hop: wayHops, previous: wayPrevious, reached: reachedNodes } = this;
    for (let i = 0; i < this.count; i++) this.#forgetNode(reachedNodes[i]!);
    this.#nearestHeap.clear((nearestNode) => this.#forgetNode(nearestNode));
    this.count = 0;
    distance[source] = 0;
    if (this.#wayGraph.weights === null) {
      this.count = yield* breadthFirst(this.#wayGraph, this.#shortestCall, {
        source,
        to,
        distance,
        hop: wayHops,
        previous: wayPrevious,
        reached: reachedNodes,
      });
      return;
    }
    this.#nearestHeap.add(source);
    for (let node = this.#nearestHeap.take(); node >= 0; node = this.#nearestHeap.take()) {
      if (this.#settledNodes[node] === 1) continue;
      this.#settledNodes[node] = 1;
      reachedNodes[this.count++] = node;
      if (node === to) return;
      for (const { offsets, neighbours, edges } of this.#shortestAlong) {
        const neighbourEnd = offsets[node + 1]!;
        for (let edgeSlot = offsets[node]!; edgeSlot < neighbourEnd; edgeSlot++) {
          if (++this.#shortestLooks % stepsAtOnce === 0) {
            this.#shortestCall.spend(stepsAtOnce);
            yield;
          }
          const unsettledNode = neighbours[edgeSlot]!;
          if (this.#settledNodes[unsettledNode] === 1) continue;
          const distanceOver = distance[node]! + this.#wayGraph.weight(edges === null ? edgeSlot : edges[edgeSlot]!);
          const hopsOver = wayHops[node]! + 1;
          if (distanceOver > distance[unsettledNode]!) continue;
          if (
            distanceOver === distance[unsettledNode]! &&
            (hopsOver > wayHops[unsettledNode]! || (hopsOver === wayHops[unsettledNode]! && node >= wayPrevious[unsettledNode]!))
          )
            continue;
          distance[unsettledNode] = distanceOver;
          wayHops[unsettledNode] = hopsOver;
          wayPrevious[unsettledNode] = node;
          this.#nearestHeap.add(unsettledNode);
        }
      }
    }
  }

  #forgetNode(node: number): void {
    this.distance[node] = Number.POSITIVE_INFINITY;
    this.hop[node] = 0;
    this.previous[node] = -1;
    this.#settledNodes[node] = 0;
  }
}

/** Nodes by distance, then by hops, then by number. A node whose distance fell stands in it twice. */
class NearestHeap {
  readonly #heapDistances: Float64Array;
  readonly #heapHops: Int32Array;
  readonly #heapNodes: number[] = [];
  readonly #heapedDistances: number[] = [];
  readonly #heapedHops: number[] = [];

  constructor(heapDistances: Float64Array, heapHops: Int32Array) {
    this.#heapDistances = heapDistances;
    this.#heapHops = heapHops;
  }

  clear(clearNode: (node: number) => void): void {
    this.#heapNodes.forEach(clearNode);
    this.#heapNodes.length = this.#heapedDistances.length = this.#heapedHops.length = 0;
  }

  add(node: number): void {
    let heapIndex = this.#heapNodes.push(node) - 1;
    this.#heapedDistances.push(this.#heapDistances[node]!);
    this.#heapedHops.push(this.#heapHops[node]!);
    while (heapIndex > 0) {
      const parentSlot = (heapIndex - 1) >> 1;
      if (!this.#isNearer(heapIndex, parentSlot)) break;
      this.#swapHeaped(heapIndex, parentSlot);
      heapIndex = parentSlot;
    }
  }

  /** -1 where it is empty. */
  take(): number {
    const heapNodes = this.#heapNodes;
    const nearestNode = heapNodes[0];
    if (nearestNode === undefined) return -1;
    this.#swapHeaped(0, heapNodes.length - 1);
    for (const heapArray of [heapNodes, this.#heapedDistances, this.#heapedHops]) heapArray.pop();
    for (let heapIndex = 0; ; ) {
      let nearestSlot = heapIndex;
      for (const childSlot of [2 * heapIndex + 1, 2 * heapIndex + 2])
        if (childSlot < heapNodes.length && this.#isNearer(childSlot, nearestSlot)) nearestSlot = childSlot;
      if (nearestSlot === heapIndex) return nearestNode;
      this.#swapHeaped(heapIndex, nearestSlot);
      heapIndex = nearestSlot;
    }
  }

  #isNearer(oneSlot: number, otherSlot: number): boolean {
    return (
      (this.#heapedDistances[oneSlot]! - this.#heapedDistances[otherSlot]! ||
        this.#heapedHops[oneSlot]! - this.#heapedHops[otherSlot]! ||
        this.#heapNodes[oneSlot]! - this.#heapNodes[otherSlot]!) < 0
    );
  }

  #swapHeaped(oneSlot: number, otherSlot: number): void {
    for (const heapArray of [this.#heapNodes, this.#heapedDistances, this.#heapedHops]) {
      const firstWay = heapArray[oneSlot]!;
      heapArray[oneSlot] = heapArray[otherSlot]!;
      heapArray[otherSlot] = firstWay;
    }
  }
}
