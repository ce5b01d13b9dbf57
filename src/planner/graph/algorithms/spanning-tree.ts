/** Edges that join all that hangs together and weigh least in all: Kruskal's algorithm. */
import { type GraphAlgorithm, scoredWith } from '../graph-algorithm.ts';
import { pairColumns, Pairs } from '../score-rows.ts';
import { sortInSteps, stepsAtOnce } from '../stepped-sort.ts';

export const spanningTree: GraphAlgorithm = {
  name: 'GRAPH_SPANNING_TREE',
  summary: 'Edges that join all nodes that hang together and weigh least in all; the score is the weight of each.',
  about: 'typed',
  arguments: [],
  weighted: true,
  columns: scoredWith(...pairColumns),
  *run(graph, call) {
    const { weights } = graph;
    call.hold(8 * graph.edges + 8 * graph.nodes);
    const treeEdges = new Int32Array(graph.edges);
    for (let treeEdge = 0; treeEdge < graph.edges; treeEdge++) treeEdges[treeEdge] = treeEdge;
    const edgesByWeight =
      weights === null
        ? treeEdges
        : yield* sortInSteps(
            treeEdges,
            (sourceRoot, targetRoot) => weights[sourceRoot]! - weights[targetRoot]! || sourceRoot - targetRoot,
          );
    const treeParents = new Int32Array(graph.nodes);
    for (let node = 0; node < graph.nodes; node++) treeParents[node] = node;
    const treeRoot = (node: number): number => {
      let rootNode = node;
      while (treeParents[rootNode] !== rootNode) rootNode = treeParents[rootNode] = treeParents[treeParents[rootNode]!]!;
      return rootNode;
    };
    const treePairs = new Pairs(call);
    for (let i = 0; i < edgesByWeight.length; i++) {
      const edge = edgesByWeight[i]!;
      const [treeSource, treeTarget] = [graph.source(edge), graph.target(edge)];
      const [sourceRoot, targetRoot] = [treeRoot(treeSource), treeRoot(treeTarget)];
      if (sourceRoot !== targetRoot) {
        treeParents[Math.max(sourceRoot, targetRoot)] = Math.min(sourceRoot, targetRoot);
        treePairs.add(treeSource, treeTarget, graph.weight(edge));
      }
      if (i % stepsAtOnce === stepsAtOnce - 1) yield;
    }
    return treePairs.rows();
  },
};
