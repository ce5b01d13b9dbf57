/** The functions over the graph: each is one algorithm. */
import type { TableFunction } from '../calls/table-function.ts';
import { graphAlgorithms, innerAlgorithms } from './algorithms/all.ts';
import { graphFunction } from './algorithm-function.ts';

export const innerFunctions: readonly TableFunction[] = innerAlgorithms.map(graphFunction);

export const graphFunctions: readonly TableFunction[] = graphAlgorithms.map(graphFunction);
