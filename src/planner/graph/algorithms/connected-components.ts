/** Which nodes hang together, whichever way edges lead. */
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import type { Adjacency, Graph } from '../graph.ts';
import { communities } from '../score-rows.ts';
import { type Steps, stepsAtOnce } from '../stepped-sort.ts';

export const connectedComponents: GraphAlgorithm = {
  name: 'CONNECTED_COMPONENTS',
  summary: 'The component of each node, by the least of its nodes, and as score the number of nodes in it.',
  about: 'typed',
  arguments: [],
  columns: scoredWith({ name: 'community', holds: 'node' }),
  warm: 'components',
  *run(graph, { hold, start }) {
    hold(28 * graph.nodes);
    return communities(yield* joinComponents(graph, start as Int32Array | null));
  },
};

/** Edges of each node that are looked at before the largest component is guessed. */
const sampledEdges = 2;
const componentNodesAtOnce = 1 << 14;

/**
 * The least node of each node's component: every node points to one that is not greater, until it is the same. Few edges of each
 * node join most of them; of nodes that are in what looks like the largest component by then, no further edge has to be looked at, as
 * one that leads out of it is looked at from its other end (Afforest: Sutton, Ben-Nun and Barak, IPDPS 2018).
 */
function* joinComponents({ nodes, out, in: into }: Graph, componentStart: Int32Array | null): Steps<Int32Array> {
  const componentParents = componentStart?.slice() ?? new Int32Array(nodes);
  if (componentStart === null) for (let node = 0; node < nodes; node++) componentParents[node] = node;
  for (const componentWay of [out, into]) {
    for (let firstNode = 0; firstNode < nodes; firstNode += componentNodesAtOnce) {
      uniteComponents(componentParents, componentWay, {
        first: firstNode,
        end: Math.min(nodes, firstNode + componentNodesAtOnce),
        edgesMax: sampledEdges,
        except: -1,
      });
      yield;
    }
  }
  const largestRoot = largestComponent(componentParents);
  for (const each of [out, into]) {
    for (let firstNode = 0; firstNode < nodes; firstNode += componentNodesAtOnce) {
      uniteComponents(componentParents, each, {
        first: firstNode,
        end: Math.min(nodes, firstNode + componentNodesAtOnce),
        edgesMax: Infinity,
        except: largestRoot,
      });
      yield;
    }
  }
  for (let node = 0; node < nodes; node++) {
    componentParents[node] = componentRoot(componentParents, node);
    if (node % stepsAtOnce === stepsAtOnce - 1) yield;
  }
  return componentParents;
}

interface EdgeRange {
  readonly first: number;
  readonly end: number;
  readonly edgesMax: number;
  /** Nodes under it are passed over; -1: none are. */
  readonly except: number;
}

function uniteComponents(
  componentParents: Int32Array,
  { offsets, neighbours }: Adjacency,
  { first, end: lastNode, edgesMax, except: exceptRoot }: EdgeRange,
): void {
  for (let node = first; node < lastNode; node++) {
    let ownRoot = componentRoot(componentParents, node);
    if (ownRoot === exceptRoot) continue;
    const neighbourBegin = offsets[node]!;
    const end = Math.min(offsets[node + 1]!, neighbourBegin + edgesMax);
    for (let edgeSlot = neighbourBegin; edgeSlot < end; edgeSlot++) {
      const otherRoot = componentRoot(componentParents, neighbours[edgeSlot]!);
      if (otherRoot === ownRoot) continue;
      if (otherRoot < ownRoot) ownRoot = componentParents[ownRoot] = otherRoot;
      else componentParents[otherRoot] = ownRoot;
    }
  }
}

function componentRoot(componentParents: Int32Array, node: number): number {
  let componentNode = node;
  let parentNode = componentParents[componentNode]!;
  while (parentNode !== componentNode) {
    const grandparentNode = componentParents[parentNode]!;
    componentParents[componentNode] = grandparentNode;
    componentNode = grandparentNode;
    parentNode = componentParents[componentNode]!;
  }
  return componentNode;
}

/** The root that most of some nodes have: a guess, which costs time where it is wrong, and nothing else. */
function largestComponent(componentParents: Int32Array): number {
  const componentCounts = new Map<number, number>();
  let largestRoot = -1;
  const sampleStep = Math.max(1, Math.floor(componentParents.length / sampledNodeCount));
  for (let node = 0; node < componentParents.length; node += sampleStep) {
    const sampledRoot = componentRoot(componentParents, node);
    const sampledCount = (componentCounts.get(sampledRoot) ?? 0) + 1;
    componentCounts.set(sampledRoot, sampledCount);
    if (sampledCount > (componentCounts.get(largestRoot) ?? 0)) largestRoot = sampledRoot;
  }
  return largestRoot;
}

const sampledNodeCount = 1_024;
