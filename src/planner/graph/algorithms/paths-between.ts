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
    const pathHopsMax = call.integer('MAX_HOPS', 5, 1, hopsMax);
    const [pathStart, pathEnd] = [graph.texts.numberOf(call.text('FROM')!), graph.texts.numberOf(call.text('TO')!)];
    const paths = new CollectedPaths(graph, call);
    if (pathStart >= 0 && pathEnd >= 0 && pathStart !== pathEnd && call.limit > 0)
      yield* searchPaths(graph, call, { from: pathStart, to: pathEnd, hops: pathHopsMax, paths });
    return paths.rows();
  },
};

interface PathSearch {
  readonly from: number;
  readonly to: number;
  readonly hops: number;
  readonly paths: CollectedPaths;
}

const unreachedHops = 255;
/** Paths that are taken down between two looks at the clock. */
const pathRowsAtOnce = 64;

function* searchPaths(graph: Graph, call: GraphCall, { from, to, hops, paths }: PathSearch): Steps<void> {
  const pathWays = ways(graph, call.direction);
  const backWays = call.direction === 'both' ? pathWays : ways(graph, call.direction === 'out' ? 'in' : 'out');
  const hopLayers = new HopLayers(graph.nodes, backWays, to);
  call.hold(6 * graph.nodes);
  const { left: hopsToEnd } = hopLayers;
  const pathNodes = new Int32Array(hops + 1);
  const isOnPath = new Uint8Array(graph.nodes);
  const pathSteps = Array.from({ length: hops }, () => new PathStep(pathWays));
  let pathLooks = 0;
  for (let pathLength = 1; pathLength <= hops; pathLength++) {
    // Paths that are found before the longest are looked for never need to know of nodes far away.
    yield* hopLayers.upTo(pathLength - 1, call);
    pathNodes[0] = from;
    isOnPath[from] = 1;
    pathSteps[0]!.begin(from);
    let pathDepth = 0;
    while (pathDepth >= 0) {
      if (++pathLooks % stepsAtOnce === 0) {
        call.spend(stepsAtOnce);
        yield;
      }
      const pathStep = pathSteps[pathDepth]!;
      if (!pathStep.next()) {
        isOnPath[pathNodes[pathDepth]!] = 0;
        pathDepth--;
        continue;
      }
      const { node: nextPathNode } = pathStep;
      const hopsLeft = pathLength - pathDepth - 1;
      if (hopsToEnd[nextPathNode]! > hopsLeft || isOnPath[nextPathNode] === 1) continue;
      // The end ends a path, and never lies within one.
      if (hopsLeft > 0 === (nextPathNode === to)) continue;
      pathNodes[pathDepth + 1] = nextPathNode;
      if (hopsLeft === 0) {
        yield* paths.add(pathNodes, pathWays, pathLength);
        if (paths.paths >= call.limit) return;
        continue;
      }
      isOnPath[nextPathNode] = 1;
      pathSteps[++pathDepth]!.begin(nextPathNode);
    }
  }
  call.spend(pathLooks % stepsAtOnce);
}

/** Hops from each node to one, as far as needed; `unreachedHops` for nodes further away. */
class HopLayers {
  readonly left: Uint8Array;
  readonly #layerWays: readonly Adjacency[];
  /** Nodes of all layers, the nearest first. */
  readonly #layerNodes: Int32Array;
  #firstOfLayer = 0;
  #layerNodeCount = 1;
  #layerHops = 0;

  constructor(nodes: number, layerWays: readonly Adjacency[], layersEnd: number) {
    this.left = new Uint8Array(nodes).fill(unreachedHops);
    this.left[layersEnd] = 0;
    this.#layerNodes = new Int32Array(nodes);
    this.#layerNodes[0] = layersEnd;
    this.#layerWays = layerWays;
  }

  *upTo(hops: number, call: GraphCall): Steps<void> {
    while (this.#layerHops < hops) {
      const layerEnd = this.#layerNodeCount;
      this.#layerHops++;
      while (this.#firstOfLayer < layerEnd) {
        call.spend(this.#extendLayer(layerEnd));
        yield;
      }
    }
  }

  /** Continues from some nodes of the last layer; returns the number of edges read. */
  #extendLayer(layerEnd: number): number {
    const { left: hopsLeft } = this;
    const layerNodes = this.#layerNodes;
    const layerHops = this.#layerHops;
    let metCount = this.#layerNodeCount;
    let layerLooks = 0;
    let i = this.#firstOfLayer;
    for (; i < layerEnd && layerLooks < 2 * stepsAtOnce; i++) {
      const node = layerNodes[i]!;
      for (const { offsets, neighbours } of this.#layerWays) {
        const neighbourEnd = offsets[node + 1]!;
        layerLooks += neighbourEnd - offsets[node]!;
        for (let edgeSlot = offsets[node]!; edgeSlot < neighbourEnd; edgeSlot++) {
          const neighbour = neighbours[edgeSlot]!;
          if (hopsLeft[neighbour] !== unreachedHops) continue;
          hopsLeft[neighbour] = layerHops;
          layerNodes[metCount++] = neighbour;
        }
      }
    }
    this.#firstOfLayer = i;
    this.#layerNodeCount = metCount;
    return layerLooks;
  }
}

/** Goes over the neighbours of a node, of both adjacencies as if they were one: each once, ascending. */
class PathStep {
  node = -1;
  readonly #firstWay: Adjacency;
  readonly #secondWay: Adjacency | null;
  #stepSource = -1;
  #firstWaySlot = 0;
  #firstWayEnd = 0;
  #secondWaySlot = 0;
  #secondWayEnd = 0;

  constructor([firstWay, secondWay]: readonly Adjacency[]) {
    this.#firstWay = firstWay!;
    this.#secondWay = secondWay ?? null;
  }

  begin(node: number): void {
    const [firstWay, secondWay] = [this.#firstWay, this.#secondWay];
    this.#stepSource = node;
    this.#firstWaySlot = firstWay.offsets[node]!;
    this.#firstWayEnd = firstWay.offsets[node + 1]!;
    this.#secondWaySlot = secondWay === null ? 0 : secondWay.offsets[node]!;
    this.#secondWayEnd = secondWay === null ? 0 : secondWay.offsets[node + 1]!;
  }

  next(): boolean {
    const [firstNeighbours, secondNeighbours] = [this.#firstWay.neighbours, (this.#secondWay ?? this.#firstWay).neighbours];
    const [stepSource, firstWayEnd, secondWayEnd] = [this.#stepSource, this.#firstWayEnd, this.#secondWayEnd];
    let [firstSlot, secondSlot] = [this.#firstWaySlot, this.#secondWaySlot];
    let steppedNode = stepSource;
    // A loop leads nowhere.
    while (steppedNode === stepSource && (firstSlot < firstWayEnd || secondSlot < secondWayEnd)) {
      const takesFirstWay =
        secondSlot >= secondWayEnd || (firstSlot < firstWayEnd && firstNeighbours[firstSlot]! <= secondNeighbours[secondSlot]!);
      steppedNode = takesFirstWay ? firstNeighbours[firstSlot]! : secondNeighbours[secondSlot]!;
      while (firstSlot < firstWayEnd && firstNeighbours[firstSlot] === steppedNode) firstSlot++;
      while (secondSlot < secondWayEnd && secondNeighbours[secondSlot] === steppedNode) secondSlot++;
    }
    this.#firstWaySlot = firstSlot;
    this.#secondWaySlot = secondSlot;
    this.node = steppedNode;
    return steppedNode !== stepSource;
  }
}

/** Edges that lead from a node to its neighbour, ascending. */
function edgesBetween(pathWays: readonly Adjacency[], edgeSource: number, edgeTarget: number): number[] {
  const parallelEdges: number[] = [];
  for (const { offsets, neighbours, edges } of pathWays) {
    let lowSlot = offsets[edgeSource]!;
    const neighbourEnd = offsets[edgeSource + 1]!;
    let highSlot = neighbourEnd;
    while (lowSlot < highSlot) {
      const middleSlot = (lowSlot + highSlot) >>> 1;
      if (neighbours[middleSlot]! < edgeTarget) lowSlot = middleSlot + 1;
      else highSlot = middleSlot;
    }
    for (let edgeSlot = lowSlot; edgeSlot < neighbourEnd && neighbours[edgeSlot] === edgeTarget; edgeSlot++)
      parallelEdges.push(edges === null ? edgeSlot : edges[edgeSlot]!);
  }
  return pathWays.length > 1 && parallelEdges.length > 1 ? parallelEdges.sort((a, b) => a - b) : parallelEdges;
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
    const hopEdges = Array.from({ length }, (_, hop) => edgesBetween(along, nodes[hop]!, nodes[hop + 1]!));
    const edgeChoices = new Int32Array(length);
    for (let changedHop = 0; changedHop >= 0 && this.paths < this.#call.limit; ) {
      this.#addOne(nodes, length, (hop) => hopEdges[hop]![edgeChoices[hop]!]!);
      if (this.paths % pathRowsAtOnce === 0) yield;
      changedHop = length - 1;
      while (changedHop >= 0 && ++edgeChoices[changedHop]! === hopEdges[changedHop]!.length) edgeChoices[changedHop--] = 0;
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
    const pathEdges = Int32Array.from(this.#edges);
    const pathRowColumns = new Map<string, Int32Array | Float64Array>([
      ['nodeId', Int32Array.from(node)],
      ['score', Float64Array.from(score)],
      ['path', Int32Array.from(path)],
      ['hop', Int32Array.from(hop)],
      ['from_id', pathEdges.map((edge) => this.#graph.source(edge))],
      ['to_id', pathEdges.map((edge) => this.#graph.target(edge))],
    ]);
    return { count: pathEdges.length, columns: pathRowColumns, edges: pathEdges, ordered: true };
  }
}
