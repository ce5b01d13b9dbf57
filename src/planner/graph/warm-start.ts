/**
 * The state from which an eventual answer starts: that of an earlier answer under the same caller's scope, branch and arguments.
 * Strong answers begin anew, so that one basis has one answer. State by node name is carried over to a graph of other nodes.
 */
import type { Graph, NodeTexts } from './graph.ts';
import type { GraphAlgorithm, State } from './graph-algorithm.ts';
import type { Steps } from './stepped-sort.ts';

export interface Warm {
  readonly state: State;
  readonly texts: NodeTexts;
  readonly lineage: object;
  readonly edges: number;
  /** The instant of the snapshot that it was made through. */
  readonly instant: bigint;
  readonly isErased: () => boolean;
}

/** The state to start from; null where the earlier state does not apply to this graph. */
export function* startingState(algorithm: GraphAlgorithm, warmState: Warm, graph: Graph): Steps<State | null> {
  const hasOnlyGrown = warmState.lineage === graph.lineage && warmState.edges <= graph.edges;
  if (algorithm.warm === 'components') return hasOnlyGrown ? warmState.state : null;
  const nodesBefore = warmState.texts === graph.texts ? null : yield* nodeNumbersBefore(warmState.texts, graph.texts);
  if (nodesBefore === null) return warmState.state;
  return warmState.state instanceof Float64Array
    ? warmScores(warmState.state, nodesBefore)
    : warmLabels(warmState.state, nodesBefore);
}

/** Scales the scores to add up to 1 again. */
function warmScores(earlierScores: Float64Array, nodesBefore: Int32Array): Float64Array {
  const startScores = Float64Array.from(nodesBefore, (node) => (node < 0 ? 1 / nodesBefore.length : earlierScores[node]!));
  const scoreSum = startScores.reduce((summedScores, nodeScore) => summedScores + nodeScore, 0);
  return startScores.map((nodeScore) => nodeScore / scoreSum);
}

function warmLabels(earlierLabels: Int32Array, nodesBefore: Int32Array): Int32Array {
  const labelNodesNow = new Int32Array(earlierLabels.length).fill(-1);
  for (let node = 0; node < nodesBefore.length; node++) if (nodesBefore[node]! >= 0) labelNodesNow[nodesBefore[node]!] = node;
  return nodesBefore.map((nodeBefore, node) => {
    const labelNow = nodeBefore < 0 ? -1 : labelNodesNow[earlierLabels[nodeBefore]!]!;
    return labelNow < 0 ? node : labelNow;
  });
}

/** By node: its former number, -1 for a new one. Both graphs are in byte order. */
function* nodeNumbersBefore(textsBefore: NodeTexts, textsAfter: NodeTexts): Steps<Int32Array> {
  const earlierNumbers = new Int32Array(textsAfter.size).fill(-1);
  let earlierNode = 0;
  for (let node = 0; node < textsAfter.size; node++) {
    const nodeText = textsAfter.bytesOf(node);
    let textOrder = -1;
    while (earlierNode < textsBefore.size && (textOrder = Buffer.compare(textsBefore.bytesOf(earlierNode), nodeText)) < 0)
      earlierNode++;
    if (earlierNode < textsBefore.size && textOrder === 0) earlierNumbers[node] = earlierNode;
    if (node % 1_024 === 1_023) yield;
  }
  return earlierNumbers;
}
