/** The search for paths between two nodes, and the number of nodes that it covers: those with a visible edge. */
import { degreeOf } from '../graph.ts';
import type { GraphAlgorithm } from '../graph-algorithm.ts';
import { stepsAtOnce } from '../stepped-sort.ts';

export const explainPath: GraphAlgorithm = {
  name: 'EXPLAIN_PATH',
  summary: 'How paths between two nodes are looked for, and how many nodes the graph has for whoever asks.',
  about: 'open',
  arguments: [
    { name: 'FROM', kind: 'key', required: true, summary: 'the node that paths begin at' },
    { name: 'TO', kind: 'key', required: true, summary: 'the node that they end at' },
  ],
  columns: [
    { name: 'strategy', holds: 'text' },
    { name: 'graph_node_count', holds: 'integer' },
    { name: 'pll_warm', holds: 'boolean' },
  ],
  *run(graph) {
    let joinedNodeCount = 0;
    for (let node = 0; node < graph.nodes; node++) {
      if (degreeOf(graph, node, 'both') > 0) joinedNodeCount++;
      if (node % stepsAtOnce === stepsAtOnce - 1) yield;
    }
    return {
      count: 1,
      columns: new Map<string, Int32Array | readonly string[]>([
        ['strategy', ['breadth-first']],
        ['graph_node_count', Int32Array.of(joinedNodeCount)],
        ['pll_warm', Int32Array.of(0)],
      ]),
      ordered: true,
    };
  },
};
