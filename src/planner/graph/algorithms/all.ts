/** Every algorithm over a graph, by name: the planner makes table functions of them, a worker runs them. */
import { allPairs, diameter } from './all-pairs.ts';
import { community } from './community.ts';
import { connectedComponents } from './connected-components.ts';
import { cycles } from './cycles.ts';
import { degreeCentrality } from './degree-centrality.ts';
import { degreeDirections } from '../../expressions/degree-query.ts';
import { degrees } from './degrees.ts';
import { dijkstra, shortestWays } from './dijkstra.ts';
import { explainPath } from './explain-path.ts';
import { labelPropagation } from './label-propagation.ts';
import { linkPredict, linksPredicted } from './link-predict.ts';
import { networkExpand } from './network-expand.ts';
import { nodeMetric } from './node-metric.ts';
import { pagerank } from './pagerank.ts';
import { pathsBetween } from './paths-between.ts';
import { nodeSimilarity, similarity } from './similarity.ts';
import { spanningTree } from './spanning-tree.ts';
import { statsOf } from './stats.ts';
import { strongComponents } from './strong-components.ts';
import { triangleCount } from './triangle-count.ts';
import type { GraphAlgorithm } from '../graph-algorithm.ts';

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
export const innerAlgorithms: readonly GraphAlgorithm[] = [...degreeDirections.map(degrees), ...graphAlgorithms.map(statsOf)];

const algorithmsByName = new Map([...graphAlgorithms, ...innerAlgorithms].map((algorithm) => [algorithm.name, algorithm]));

export function algorithmOf(name: string): GraphAlgorithm {
  return algorithmsByName.get(name)!;
}
