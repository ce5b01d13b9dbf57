/** Each node takes the label that most of its neighbours have, in the order of nodes, until none changes. */
import type { Graph } from '../graph.ts';
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import { communities } from '../score-rows.ts';
import { type Steps, stepsAtOnce } from '../stepped-sort.ts';

export const roundsArgument = {
  name: 'MAX_ITER',
  kind: 'integer',
  summary: 'rounds at most, from 1 to 1000; 20 by default',
} as const;

export const labelPropagation: GraphAlgorithm = {
  name: 'LABEL_PROPAGATION',
  summary:
    'The community of each node, by the least of its nodes, and as score the number of nodes in it: labels spread along edges.',
  about: 'typed',
  arguments: [roundsArgument],
  weighted: true,
  columns: scoredWith({ name: 'community', holds: 'node' }),
  warm: 'labels',
  *run(graph, call) {
    call.hold(28 * graph.nodes);
    return communities(yield* spread(graph, call.integer('MAX_ITER', 20, 1, 1_000), call.start as Int32Array | null));
  },
};

/** Where labels weigh the same, a node keeps its own, else takes the least. Loops say nothing. */
export function* spread(graph: Graph, labelRoundsMax: number, startLabels: Int32Array | null = null): Steps<Int32Array> {
  const { nodes } = graph;
  const nodeLabels = startLabels?.slice() ?? new Int32Array(nodes);
  if (startLabels === null) for (let node = 0; node < nodes; node++) nodeLabels[node] = node;
  const labelWeights = new Float64Array(nodes);
  const metLabels = new Int32Array(nodes);
  let labelLooks = 0;
  for (let labelRound = 0, hasLabelChanged = true; hasLabelChanged && labelRound < labelRoundsMax; labelRound++) {
    hasLabelChanged = false;
    for (let node = 0; node < nodes; node++) {
      let metLabelCount = 0;
      for (const { offsets, neighbours, edges } of [graph.out, graph.in]) {
        const neighbourEnd = offsets[node + 1]!;
        for (let edgeSlot = offsets[node]!; edgeSlot < neighbourEnd; edgeSlot++) {
          const neighbour = neighbours[edgeSlot]!;
          if (neighbour === node) continue;
          const neighbourLabel = nodeLabels[neighbour]!;
          if (labelWeights[neighbourLabel] === 0) metLabels[metLabelCount++] = neighbourLabel;
          labelWeights[neighbourLabel]! += graph.weight(edges === null ? edgeSlot : edges[edgeSlot]!);
          labelLooks++;
        }
      }
      const ownLabel = nodeLabels[node]!;
      let bestLabel = ownLabel;
      let mostLabelWeight = metLabelCount === 0 ? 0 : labelWeights[ownLabel]!;
      for (let i = 0; i < metLabelCount; i++) {
        const neighbourLabel = metLabels[i]!;
        const labelWeight = labelWeights[neighbourLabel]!;
        if (
          labelWeight > mostLabelWeight ||
          (labelWeight === mostLabelWeight && bestLabel !== ownLabel && neighbourLabel < bestLabel)
        )
          [bestLabel, mostLabelWeight] = [neighbourLabel, labelWeight];
      }
      for (let i = 0; i < metLabelCount; i++) labelWeights[metLabels[i]!] = 0;
      if (bestLabel !== ownLabel) {
        nodeLabels[node] = bestLabel;
        hasLabelChanged = true;
      }
      if (++labelLooks >= stepsAtOnce) {
        labelLooks = 0;
        yield;
      }
    }
  }
  return nodeLabels;
}
