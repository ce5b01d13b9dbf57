/**
 * All simple paths between two nodes, shortest first; those of one length by their nodes, then by their edges. Nodes that can't
 * reach the end in the hops that are left are never entered.
 */
import type { Adjacency, Graph } from '../graph.ts';
import { ways } from '../graph.ts';
import { type GraphAlgorithm, type GraphCall, type GraphRows, scoredWith } from '../graph-algorithm.ts';
import { tooMany } from '../graph-limits.ts';
import { type Steps, stepsAtOnce } from '../stepped-sort.ts';

export const hopsMax = 10;

export const pathsBetween: GraphAlgorithm = {
  name: 'PATHS_BETWEEN',
  summary: 'Every simple path between two nodes, one row for each of its edges, the shortest paths first; LIMIT counts paths.',
  about: 'open',
  arguments: [
    { name: 'FROM', kind: 'key', required: true, summary: 'the node that paths begin at' },
    { name: 'TO', kind: 'key', required: true, summary: 'the node that they end at' },
    { name: 'MAX_HOPS', kind: 'integer', summary: `the most edges of a path, from 1 to ${hopsMax}; 5 by default` },
  ],
  direction: 'both',
  columns: scoredWith(
    { name: 'path', holds: 'integer' },
    { name: 'hop', holds: 'integer' },
    { name: 'from_id', holds: 'node' },
    { name: 'to_id', holds: 'node' },
  ),
  tellsEdges: true,
  limitsGroups: true,
  *run(graph, call) {
    const hops = call.integer('MAX_HOPS', 5, 1, hopsMax);
    const [from, to] = [graph.texts.numberOf(call.text('FROM')!), graph.texts.numberOf(call.text('TO')!)];
    const paths = new CollectedPaths(graph, call);
    if (from >= 0 && to >= 0 && from !== to && call.limit > 0) yield* search(graph, call, { from, to, hops, paths });
    return paths.rows();
  },
};

interface Search {
  readonly from: number;
  readonly to: number;
  readonly hops: number;
  readonly paths: CollectedPaths;
}

const far = 255;
/** Paths that are taken down between two looks at the clock. */
const pathsAtOnce = 64;

function* search(graph: Graph, call: GraphCall, { from, to, hops, paths }: Search): Steps<void> {
  const along = ways(graph, call.direction);
  const back = call.direction === 'both' ? along : ways(graph, call.direction === 'out' ? 'in' : 'out');
  const layers = new Layers(graph.nodes, back, to);
  call.hold(6 * graph.nodes);
  const { left } = layers;
  const nodes = new Int32Array(hops + 1);
  const onPath = new Uint8Array(graph.nodes);
  const steps = Array.from({ length: hops }, () => new Step(along));
  let looks = 0;
  for (let length = 1; length <= hops; length++) {
    // Paths that are found before the longest are looked for never need to know of nodes far away.
    yield* layers.upTo(length - 1, call);
    nodes[0] = from;
    onPath[from] = 1;
    steps[0]!.begin(from);
    let depth = 0;
    while (depth >= 0) {
      if (++looks % stepsAtOnce === 0) {
        call.spend(stepsAtOnce);
        yield;
      }
      const step = steps[depth]!;
      if (!step.next()) {
        onPath[nodes[depth]!] = 0;
        depth--;
        continue;
      }
      const { node } = step;
      const rest = length - depth - 1;
      if (left[node]! > rest || onPath[node] === 1) continue;
      // The end ends a path, and never lies within one.
      if (rest > 0 === (node === to)) continue;
      nodes[depth + 1] = node;
      if (rest === 0) {
        yield* paths.add(nodes, along, length);
        if (paths.paths >= call.limit) return;
        continue;
      }
      onPath[node] = 1;
      steps[++depth]!.begin(node);
    }
  }
  call.spend(looks % stepsAtOnce);
}

/** Hops from each node to one, as far as needed; `far` for nodes further away. */
class Layers {
  readonly left: Uint8Array;
  readonly #ways: readonly Adjacency[];
  /** Nodes of all layers, the nearest first. */
  readonly #met: Int32Array;
  #first = 0;
  #count = 1;
  #hops = 0;

  constructor(nodes: number, ways: readonly Adjacency[], to: number) {
    this.left = new Uint8Array(nodes).fill(far);
    this.left[to] = 0;
    this.#met = new Int32Array(nodes);
    this.#met[0] = to;
    this.#ways = ways;
  }

  *upTo(hops: number, call: GraphCall): Steps<void> {
    while (this.#hops < hops) {
      const last = this.#count;
      this.#hops++;
      while (this.#first < last) {
        call.spend(this.#goOn(last));
        yield;
      }
    }
  }

  /** Continues from some nodes of the last layer; returns the number of edges read. */
  #goOn(last: number): number {
    const { left } = this;
    const met = this.#met;
    const hops = this.#hops;
    let count = this.#count;
    let looks = 0;
    let i = this.#first;
    for (; i < last && looks < 2 * stepsAtOnce; i++) {
      const node = met[i]!;
      for (const { offsets, neighbours } of this.#ways) {
        const end = offsets[node + 1]!;
        looks += end - offsets[node]!;
        for (let edgeSlot = offsets[node]!; edgeSlot < end; edgeSlot++) {
          const neighbour = neighbours[edgeSlot]!;
          if (left[neighbour] !== far) continue;
          left[neighbour] = hops;
          met[count++] = neighbour;
        }
      }
    }
    this.#first = i;
    this.#count = count;
    return looks;
  }
}

/** Goes over the neighbours of a node, of both adjacencies as if they were one: each once, ascending. */
class Step {
  node = -1;
  readonly #first: Adjacency;
  readonly #second: Adjacency | null;
  #of = -1;
  #left = 0;
  #leftEnd = 0;
  #right = 0;
  #rightEnd = 0;

  constructor([first, second]: readonly Adjacency[]) {
    this.#first = first!;
    this.#second = second ?? null;
  }

  begin(node: number): void {
    const [first, second] = [this.#first, this.#second];
    this.#of = node;
    this.#left = first.offsets[node]!;
    this.#leftEnd = first.offsets[node + 1]!;
    this.#right = second === null ? 0 : second.offsets[node]!;
    this.#rightEnd = second === null ? 0 : second.offsets[node + 1]!;
  }

  next(): boolean {
    const [lefts, rights] = [this.#first.neighbours, (this.#second ?? this.#first).neighbours];
    const [of, leftEnd, rightEnd] = [this.#of, this.#leftEnd, this.#rightEnd];
    let [left, right] = [this.#left, this.#right];
    let node = of;
    // A loop leads nowhere.
    while (node === of && (left < leftEnd || right < rightEnd)) {
      const takesLeft = right >= rightEnd || (left < leftEnd && lefts[left]! <= rights[right]!);
      node = takesLeft ? lefts[left]! : rights[right]!;
      while (left < leftEnd && lefts[left] === node) left++;
      while (right < rightEnd && rights[right] === node) right++;
    }
    this.#left = left;
    this.#right = right;
    this.node = node;
    return node !== of;
  }
}

/** Edges that lead from a node to its neighbour, ascending. */
function edgesTo(along: readonly Adjacency[], from: number, to: number): number[] {
  const parallelEdges: number[] = [];
  for (const { offsets, neighbours, edges } of along) {
    let low = offsets[from]!;
    const end = offsets[from + 1]!;
    let high = end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (neighbours[middle]! < to) low = middle + 1;
      else high = middle;
    }
    for (let edgeSlot = low; edgeSlot < end && neighbours[edgeSlot] === to; edgeSlot++)
      parallelEdges.push(edges === null ? edgeSlot : edges[edgeSlot]!);
  }
  return along.length > 1 && parallelEdges.length > 1 ? parallelEdges.sort((a, b) => a - b) : parallelEdges;
}

class CollectedPaths {
  paths = 0;
  readonly #graph: Graph;
  readonly #call: GraphCall;
  readonly #columns = { node: [] as number[], score: [] as number[], path: [] as number[], hop: [] as number[] };
  readonly #edges: number[] = [];

  constructor(graph: Graph, call: GraphCall) {
    this.#graph = graph;
    this.#call = call;
  }

  /** Paths over the same nodes differ in the edges that they take: each choice of them is one. */
  *add(nodes: Int32Array, along: readonly Adjacency[], length: number): Steps<void> {
    const edges = Array.from({ length }, (_, hop) => edgesTo(along, nodes[hop]!, nodes[hop + 1]!));
    const choice = new Int32Array(length);
    for (let changed = 0; changed >= 0 && this.paths < this.#call.limit; ) {
      this.#addOne(nodes, length, (hop) => edges[hop]![choice[hop]!]!);
      if (this.paths % pathsAtOnce === 0) yield;
      changed = length - 1;
      while (changed >= 0 && ++choice[changed]! === edges[changed]!.length) choice[changed--] = 0;
    }
  }

  #addOne(nodes: Int32Array, length: number, edgeOf: (hop: number) => number): void {
    this.paths++;
    if (this.#edges.length + length > this.#call.rowsMax) throw tooMany(this.#call.rowsMax);
    this.#call.hold(48 * length);
    const { node, score, path, hop } = this.#columns;
    for (let i = 0; i < length; i++) {
      node.push(nodes[i + 1]!);
      score.push(1 / length);
      path.push(this.paths);
      hop.push(i + 1);
      this.#edges.push(edgeOf(i));
    }
  }

  rows(): GraphRows {
    const { node, score, path, hop } = this.#columns;
    const edges = Int32Array.from(this.#edges);
    const columns = new Map<string, Int32Array | Float64Array>([
      ['nodeId', Int32Array.from(node)],
      ['score', Float64Array.from(score)],
      ['path', Int32Array.from(path)],
      ['hop', Int32Array.from(hop)],
      ['from_id', edges.map((edge) => this.#graph.source(edge))],
      ['to_id', edges.map((edge) => this.#graph.target(edge))],
    ]);
    return { count: edges.length, columns, edges, ordered: true };
  }
}
