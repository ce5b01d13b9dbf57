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

const columnTypes = { node: 'string', integer: 'integer', number: 'number', boolean: 'boolean', text: 'string' } as const;

export function graphFunction(algorithm: GraphAlgorithm): TableFunction {
  const { name, summary, about, direction, weighted, columns, tellsEdges } = algorithm;
  const directions: ArgumentSpec = {
    name: 'DIRECTION',
    kind: 'word',
    choices: ['out', 'in', 'both'],
    summary: `which way edges are gone: 'out', 'in' or 'both'; '${direction}' by default`,
  };
  const specs: readonly ArgumentSpec[] = [
    ...(about === 'typed' ? typedArguments : []),
    ...algorithm.arguments,
    ...(about === 'open' ? [linkTypes] : []),
    ...(weighted ? [weight] : []),
    ...(direction === undefined ? [] : [directions]),
  ];
  const own: readonly PlanColumn[] = [
    ...columns.map((column): PlanColumn => ({ name: column.name, type: columnTypes[column.holds] })),
    ...(tellsEdges ? edgeColumns : []),
  ];
  // Functions that report edges take conditions on the edge columns as conditions on edges.
  const above = new Set(own.map((column) => column.name).filter((column) => !tellsEdges || !ofEdges.has(column)));
  return {
    name,
    summary,
    arguments: specs,
    action: 'query',
    units: 1,
    deterministic: true,
    arrange: (call) => withoutEdges(call, above),
    types: ({ words, catalog }) => {
      if (catalog === null) return ['TYPE', 'LINK'].flatMap((argument) => words.word(argument) ?? []);
      const { links, nodes } = graphTypes(catalog, words);
      return [...new Set([...nodes, ...links].map((type) => type.name))];
    },
    columns: () => own,
    graph: ({ words, catalog }) => {
      const types = graphTypes(catalog, words);
      const column = words.word('WEIGHT') ?? null;
      for (const link of types.links) {
        const type = column === null ? 'number' : catalog.type(link.name)!.properties[column]?.type;
        if (type === 'number' || type === 'integer') continue;
        const problem = `${JSON.stringify(link.name)} has no column ${JSON.stringify(column)} of numbers`;
        throw errorAt('REL_UNKNOWN_COLUMN', `${problem}: LINK says whose edges are weighed`, words.locationOf('WEIGHT'));
      }
      const choices = new Map(
        specs.flatMap((spec) => (words.word(spec.name) === undefined ? [] : [[spec.name, words.word(spec.name)!]])),
      );
      return { types, weight: column, choices, limitsGroups: algorithm.limitsGroups === true };
    },
    open: (opening) => new GraphOperator(algorithm, opening),
  };
}

/** Columns of an edge's row that answers have as well. */
const ofEdges: ReadonlySet<string> = new Set(['from_id', 'to_id', ...edgeColumns.map(({ name }) => name)]);

const typedArguments: readonly ArgumentSpec[] = [
  { name: 'TYPE', kind: 'type', required: true, summary: 'the type whose rows are the nodes, or a type of edges' },
  { name: 'LINK', kind: 'type', summary: 'the type of the edges; every type of edges by default' },
];

const linkTypes: ArgumentSpec = {
  name: 'LINK_TYPES',
  kind: 'word',
  summary: "types of the edges, as 'a,b'; every type of edges by default",
};

const weight: ArgumentSpec = { name: 'WEIGHT', kind: 'column', summary: 'the column with the weight of an edge; 1 by default' };
