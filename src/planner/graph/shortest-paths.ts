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
  readonly #graph: Graph;
  readonly #along: readonly Adjacency[];
  readonly #call: GraphCall;
  readonly #heap: Heap;
  readonly #settled: Uint8Array;
  #looks = 0;

  /** Throws REL_INVALID where an edge weighs less than nothing. */
  constructor(graph: Graph, call: GraphCall) {
    if (graph.weights?.some((weight) => weight < 0)) {
      throw call.invalid('WEIGHT', 'an edge has a negative weight: no way along it is the shortest');
    }
    const { nodes } = graph;
    call.hold(33 * nodes);
    this.#graph = graph;
    this.#call = call;
    this.#along = ways(graph, call.direction);
    this.distance = new Float64Array(nodes).fill(Number.POSITIVE_INFINITY);
    this.hop = new Int32Array(nodes);
    this.previous = new Int32Array(nodes).fill(-1);
    this.reached = new Int32Array(nodes);
    this.#settled = new Uint8Array(nodes);
    this.#heap = new Heap(this.distance, this.hop);
  }

  /** Forgets the results for another node. Ends early where `to` is reached. */
  *from(source: number, to = -1): Steps<void> {
    const { distance, hop, previous, reached } = this;
    for (let i = 0; i < this.count; i++) this.#forget(reached[i]!);
    this.#heap.clear((node) => this.#forget(node));
    this.count = 0;
    distance[source] = 0;
    if (this.#graph.weights === null) {
      this.count = yield* breadthFirst(this.#graph, this.#call, { source, to, distance, hop, previous, reached });
      return;
    }
    this.#heap.add(source);
    for (let node = this.#heap.take(); node >= 0; node = this.#heap.take()) {
      if (this.#settled[node] === 1) continue;
      this.#settled[node] = 1;
      reached[this.count++] = node;
      if (node === to) return;
      for (const { offsets, neighbours, edges } of this.#along) {
        const end = offsets[node + 1]!;
        for (let edgeSlot = offsets[node]!; edgeSlot < end; edgeSlot++) {
          if (++this.#looks % stepsAtOnce === 0) {
            this.#call.spend(stepsAtOnce);
            yield;
          }
          const other = neighbours[edgeSlot]!;
          if (this.#settled[other] === 1) continue;
          const far = distance[node]! + this.#graph.weight(edges === null ? edgeSlot : edges[edgeSlot]!);
          const hops = hop[node]! + 1;
          if (far > distance[other]!) continue;
          if (far === distance[other]! && (hops > hop[other]! || (hops === hop[other]! && node >= previous[other]!))) continue;
          distance[other] = far;
          hop[other] = hops;
          previous[other] = node;
          this.#heap.add(other);
        }
      }
    }
  }

  #forget(node: number): void {
    this.distance[node] = Number.POSITIVE_INFINITY;
    this.hop[node] = 0;
    this.previous[node] = -1;
    this.#settled[node] = 0;
  }
}

/** Nodes by distance, then by hops, then by number. A node whose distance fell stands in it twice. */
class Heap {
  readonly #distance: Float64Array;
  readonly #hop: Int32Array;
  readonly #nodes: number[] = [];
  readonly #far: number[] = [];
  readonly #hops: number[] = [];

  constructor(distance: Float64Array, hop: Int32Array) {
    this.#distance = distance;
    this.#hop = hop;
  }

  clear(each: (node: number) => void): void {
    this.#nodes.forEach(each);
    this.#nodes.length = this.#far.length = this.#hops.length = 0;
  }

  add(node: number): void {
    let heapIndex = this.#nodes.push(node) - 1;
    this.#far.push(this.#distance[node]!);
    this.#hops.push(this.#hop[node]!);
    while (heapIndex > 0) {
      const above = (heapIndex - 1) >> 1;
      if (!this.#isBefore(heapIndex, above)) break;
      this.#swap(heapIndex, above);
      heapIndex = above;
    }
  }

  /** -1 where it is empty. */
  take(): number {
    const nodes = this.#nodes;
    const first = nodes[0];
    if (first === undefined) return -1;
    this.#swap(0, nodes.length - 1);
    for (const each of [nodes, this.#far, this.#hops]) each.pop();
    for (let heapIndex = 0; ; ) {
      let least = heapIndex;
      for (const below of [2 * heapIndex + 1, 2 * heapIndex + 2])
        if (below < nodes.length && this.#isBefore(below, least)) least = below;
      if (least === heapIndex) return first;
      this.#swap(heapIndex, least);
      heapIndex = least;
    }
  }

  #isBefore(a: number, b: number): boolean {
    return (this.#far[a]! - this.#far[b]! || this.#hops[a]! - this.#hops[b]! || this.#nodes[a]! - this.#nodes[b]!) < 0;
  }

  #swap(a: number, b: number): void {
    for (const each of [this.#nodes, this.#far, this.#hops]) {
      const firstWay = each[a]!;
      each[a] = each[b]!;
      each[b] = firstWay;
    }
  }
}
