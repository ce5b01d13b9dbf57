/** The functions over the graph: each is one algorithm. */
import type { TableFunction } from '../functions/table-function.ts';
import { allPairs, diameter } from './algorithms/all-pairs.ts';
import { community } from './algorithms/community.ts';
import { connectedComponents } from './algorithms/connected-components.ts';
import { cycles } from './algorithms/cycles.ts';
import { degreeCentrality } from './algorithms/degree-centrality.ts';
import { degreeDirections, degrees } from './algorithms/degrees.ts';
import { dijkstra, shortestWays } from './algorithms/dijkstra.ts';
import { explainPath } from './algorithms/explain-path.ts';
import { labelPropagation } from './algorithms/label-propagation.ts';
import { linkPredict, linksPredicted } from './algorithms/link-predict.ts';
import { networkExpand } from './algorithms/network-expand.ts';
import { nodeMetric } from './algorithms/node-metric.ts';
import { pagerank } from './algorithms/pagerank.ts';
import { pathsBetween } from './algorithms/paths-between.ts';
import { nodeSimilarity, similarity } from './algorithms/similarity.ts';
import { spanningTree } from './algorithms/spanning-tree.ts';
import { statsOf } from './algorithms/stats.ts';
import { strongComponents } from './algorithms/strong-components.ts';
import { triangleCount } from './algorithms/triangle-count.ts';
import type { GraphAlgorithm } from './graph-algorithm.ts';
import { graphFunction } from './graph-function.ts';

export const graphAlgorithms: readonly GraphAlgorithm[] = [
  pathsBetween,
  networkExpand,
  explainPath,
  pagerank,
  degreeCentrality,
  triangleCount,
  connectedComponents,
  labelPropagation,
  dijkstra,
  strongComponents,
  cycles,
  shortestWays,
  spanningTree,
  allPairs,
  diameter,
  similarity,
  nodeMetric,
  nodeSimilarity,
  linkPredict,
  linksPredicted,
  community,
];

/** Parts of expressions: they have no name of their own. */
export const innerFunctions: readonly TableFunction[] = [...degreeDirections.map(degrees), ...graphAlgorithms.map(statsOf)].map(
  graphFunction,
);

export const graphFunctions: readonly TableFunction[] = graphAlgorithms.map(graphFunction);
