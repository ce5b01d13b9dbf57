/**
 * The common part of functions over the graph: the arguments that choose the graph, WHERE over edges, and rows of scores. Each
 * function is a `GraphAlgorithm`; `graphFunction` makes a table function of it.
 */
import { errorAt } from '../syntax/error-location.ts';
import type { ArgumentSpec } from '../calls/argument-spec.ts';
import type { TableFunction } from '../calls/table-function.ts';
import type { PlanColumn } from '../logical-plan.ts';
import { withoutEdges } from './edge-conditions.ts';
import type { GraphAlgorithm } from './graph-algorithm.ts';
import { GraphOperator } from './algorithm-operator.ts';
import { graphTypes } from './node-and-edge-types.ts';

export const edgeColumns: readonly PlanColumn[] = [
  { name: 'link_type', type: 'string' },
  { name: 'valid_from', type: 'timestamp' },
  { name: 'valid_to', type: 'timestamp' },
  { name: 'system_from', type: 'timestamp' },
  { name: 'system_to', type: 'timestamp' },
];

const graphColumnTypes = { node: 'string', integer: 'integer', number: 'number', boolean: 'boolean', text: 'string' } as const;

export function graphFunction(algorithm: GraphAlgorithm): TableFunction {
  const { name, summary, about, direction, weighted, columns, tellsEdges } = algorithm;
  const directionArgument: ArgumentSpec = {
    name: 'DIRECTION',
    kind: 'word',
    choices: ['out', 'in', 'both'],
    summary: `which way edges are gone: 'out', 'in' or 'both'; '${direction}' by default`,
  };
  const graphArguments: readonly ArgumentSpec[] = [
    ...(about === 'typed' ? typedGraphArguments : []),
    ...algorithm.arguments,
    ...(about === 'open' ? [linkTypesArgument] : []),
    ...(weighted ? [weightArgument] : []),
    ...(direction === undefined ? [] : [directionArgument]),
  ];
  const graphColumns: readonly PlanColumn[] = [
    ...columns.map((column): PlanColumn => ({ name: column.name, type: graphColumnTypes[column.holds] })),
    ...(tellsEdges ? edgeColumns : []),
  ];
  // Functions that report edges take conditions on the edge columns as conditions on edges.
  const nonEdgeColumns = new Set(
    graphColumns.map((column) => column.name).filter((column) => !tellsEdges || !edgeColumnNames.has(column)),
  );
  return {
    name,
    summary,
    arguments: graphArguments,
    action: 'query',
    units: 1,
    deterministic: true,
    arrange: (call) => withoutEdges(call, nonEdgeColumns),
    types: ({ words, catalog }) => {
      if (catalog === null) return ['TYPE', 'LINK'].flatMap((argument) => words.word(argument) ?? []);
      const { links: edgeTypes, nodes: nodeTypes } = graphTypes(catalog, words);
      return [...new Set([...nodeTypes, ...edgeTypes].map((type) => type.name))];
    },
    columns: () => graphColumns,
    graph: ({ words, catalog }) => {
      const graphTypesFound = graphTypes(catalog, words);
      const weightColumn = words.word('WEIGHT') ?? null;
      for (const edgeType of graphTypesFound.links) {
        const weightColumnType = weightColumn === null ? 'number' : catalog.type(edgeType.name)!.properties[weightColumn]?.type;
        if (weightColumnType === 'number' || weightColumnType === 'integer') continue;
        const problem = `${JSON.stringify(edgeType.name)} has no column ${JSON.stringify(weightColumn)} of numbers`;
        throw errorAt('REL_UNKNOWN_COLUMN', `${problem}: LINK says whose edges are weighed`, words.locationOf('WEIGHT'));
      }
      const graphChoices = new Map(
        graphArguments.flatMap((spec) => (words.word(spec.name) === undefined ? [] : [[spec.name, words.word(spec.name)!]])),
      );
      return {
        types: graphTypesFound,
        weight: weightColumn,
        choices: graphChoices,
        limitsGroups: algorithm.limitsGroups === true,
      };
    },
    open: (opening) => new GraphOperator(algorithm, opening),
  };
}

/** Columns of an edge's row that answers have as well. */
const edgeColumnNames: ReadonlySet<string> = new Set(['from_id', 'to_id', ...edgeColumns.map(({ name }) => name)]);

const typedGraphArguments: readonly ArgumentSpec[] = [
  { name: 'TYPE', kind: 'type', required: true, summary: 'the type whose rows are the nodes, or a type of edges' },
  { name: 'LINK', kind: 'type', summary: 'the type of the edges; every type of edges by default' },
];

const linkTypesArgument: ArgumentSpec = {
  name: 'LINK_TYPES',
  kind: 'word',
  summary: "types of the edges, as 'a,b'; every type of edges by default",
};

const weightArgument: ArgumentSpec = {
  name: 'WEIGHT',
  kind: 'column',
  summary: 'the column with the weight of an edge; 1 by default',
};
