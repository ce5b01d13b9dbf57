/**
 * Nodes and edges of one statement, as numbers. Invariants:
 *
 * - nodes are numbered in the byte order of their texts, edges by source, target, link type and system_from: an algorithm
 *   that follows this order gives the same answer however the graph was made;
 * - an edge is there once for each row that says it, so parallel edges and loops are kept;
 * - nothing in here changes once it is built: questions of one grant and basis share it.
 */
import { assert } from '../../errors.ts';
import { halvesOf } from './instant-floats.ts';
import { type Steps, stepsAtOnce } from './stepped-sort.ts';

/** Neighbours of node n: places offsets[n] .. offsets[n + 1] - 1 of both arrays, in the order of neighbour, then of edge. */
export interface Adjacency {
  readonly offsets: Uint32Array;
  readonly neighbours: Int32Array;
  /** Their numbers; null where an edge has the number of its place. */
  readonly edges: Int32Array | null;
}

export interface GraphData {
  /** Texts of the nodes, by number. */
  readonly texts: NodeTexts;
  readonly out: Adjacency;
  readonly in: Adjacency;
  /** The system_from of each edge. */
  readonly systemFrom: BigInt64Array;
  /** The number in `links` of each edge's type; null where there is one type. */
  readonly linkOf: Uint16Array | null;
  readonly links: readonly string[];
  /** The weight of each edge; null: each weighs 1. */
  readonly weights: Float64Array | null;
  /** Identifies graphs that differ by added edges only: such a graph inherits it. */
  readonly lineage?: object;
}

export interface NodeTexts {
  readonly size: number;
  text(node: number): string;
  /** -1 where no node is called so. */
  numberOf(text: string): number;
  /** UTF-8, never to be written to. */
  bytesOf(node: number): Uint8Array;
  readonly bytes: number;
}

export class Graph {
  readonly nodes: number;
  readonly edges: number;
  readonly out: Adjacency;
  readonly in: Adjacency;
  readonly texts: NodeTexts;
  readonly links: readonly string[];
  readonly systemFrom: BigInt64Array;
  readonly weights: Float64Array | null;
  readonly linkOf: Uint16Array | null;
  readonly lineage: object;

  constructor({ texts, out, in: into, systemFrom, linkOf, links, weights, lineage = {} }: GraphData) {
    this.nodes = texts.size;
    this.edges = systemFrom.length;
    this.texts = texts;
    this.out = out;
    this.in = into;
    this.systemFrom = systemFrom;
    this.weights = weights;
    this.links = links;
    this.linkOf = linkOf;
    this.lineage = lineage;
    assert(out.offsets.length === this.nodes + 1, 'every node has its place');
  }

  link(edge: number): string {
    return this.links[this.linkOf === null ? 0 : this.linkOf[edge]!]!;
  }

  weight(edge: number): number {
    return this.weights === null ? 1 : this.weights[edge]!;
  }

  /** Node that an edge leaves. */
  source(edge: number): number {
    const { offsets } = this.out;
    let lowNode = 0;
    let highNode = this.nodes;
    while (highNode - lowNode > 1) {
      const middleNode = (lowNode + highNode) >>> 1;
      if (offsets[middleNode]! <= edge) lowNode = middleNode;
      else highNode = middleNode;
    }
    return lowNode;
  }

  target(edge: number): number {
    return this.out.neighbours[edge]!;
  }

  /** Whether another graph has the same nodes and the same edges, each with the same weight. */
  *equals(other: Graph): Steps<boolean> {
    if (this === other) return true;
    if (this.nodes !== other.nodes || this.edges !== other.edges || this.links.join('\0') !== other.links.join('\0'))
      return false;
    const arrayPairs = [
      [halvesOf(this.systemFrom), halvesOf(other.systemFrom)],
      [this.out.neighbours, other.out.neighbours],
      [this.out.offsets, other.out.offsets],
      [this.weights, other.weights],
      [this.linkOf, other.linkOf],
    ] as const;
    for (const [ownArray, otherArray] of arrayPairs) {
      if (ownArray === null && otherArray === null) continue;
      if (ownArray === null || otherArray === null) return false;
      for (let i = 0; i < ownArray.length; i++) {
        if (ownArray[i] !== otherArray[i]) return false;
        if (i % stepsAtOnce === stepsAtOnce - 1) yield;
      }
    }
    for (let node = 0; node < this.nodes; node++) {
      const [own, theirs] = [this.texts.bytesOf(node), other.texts.bytesOf(node)];
      if (own.length !== theirs.length || !own.every((byte, i) => byte === theirs[i])) return false;
      if (node % 1_024 === 1_023) yield;
    }
    return true;
  }

  get bytes(): number {
    const adjacencyArrays = [this.out, this.in].flatMap(({ offsets, neighbours, edges }) => [offsets, neighbours, edges]);
    const graphArrays = [...adjacencyArrays, this.systemFrom, this.weights, this.linkOf];
    return this.texts.bytes + graphArrays.reduce((sum, array) => sum + (array?.byteLength ?? 0), 0);
  }
}

/** Which way edges are gone. */
export type Direction = 'out' | 'in' | 'both';

/** The adjacencies that a direction follows: one, or both. */
export function ways(graph: Graph, direction: Direction): readonly Adjacency[] {
  return direction === 'out' ? [graph.out] : direction === 'in' ? [graph.in] : [graph.out, graph.in];
}

/** Edges that begin or end at a node, by direction; a loop is gone in either direction. */
export function degreeOf(graph: Graph, node: number, direction: Direction): number {
  let nodeDegree = 0;
  for (const { offsets } of ways(graph, direction)) nodeDegree += offsets[node + 1]! - offsets[node]!;
  return nodeDegree;
}
