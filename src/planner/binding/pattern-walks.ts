/** Walks of a graph pattern: the rows that they begin at become the input of a function over the graph. */
import { bindExpression } from '../expressions/bind-expression.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import { graphTypes } from '../graph/node-and-edge-types.ts';
import { walkColumns, walkName } from '../graph/pattern-columns.ts';
import type { FunctionNode, FunctionValue, PlanColumn } from '../logical-plan.ts';
import type { Slot, Source } from '../syntax/statement.ts';
import type { BoundSource } from './environment.ts';
import { edgeScans } from './graph-edges.ts';
import { project, throughColumns } from './output-columns.ts';
import { Scope } from './scope.ts';
import type { FunctionRequest } from './table-functions.ts';

type Walk = Extract<Source, { kind: 'walk' }>;

const walkOwnColumns: readonly PlanColumn[] = [
  { name: walkColumns.end, type: 'string' },
  { name: walkColumns.edge, type: 'timestamp' },
  { name: walkColumns.trail, type: 'string' },
];

export function bindWalk(walk: Walk, input: BoundSource, { environment, scan, contextOf }: FunctionRequest): BoundSource {
  const { types, direction, hops, from, avoids, alias, location } = walk;
  const walkWords = {
    word: (name: string): string | undefined => (name === 'LINK_TYPES' && types.length > 0 ? types.join(',') : undefined),
    locationOf: () => location,
    given: new Set<string>(),
  };
  const walkTypes = graphTypes(environment.catalog, walkWords);
  for (const { name } of [...walkTypes.nodes, ...walkTypes.links]) environment.objectTypes.add(name);
  if (types.length > 0) environment.noteTypedEdges();
  const walkContext = contextOf(new Scope(input.tables, []));
  const walkBeginnings = [from, ...avoids].map((each, i) => ({ name: `#begin ${i}`, bound: bindExpression(each, walkContext) }));
  const walkInput = project(input.node, [...throughColumns(input.node), ...walkBeginnings]);
  const walkWidth = walkInput.columns.length;
  const hopValues = new Map<string, FunctionValue>();
  const addHops = (name: string, slot: Slot | null): void => {
    if (slot === null) return;
    const hopsLiteral: Bound = { kind: 'literal', slot: slot.slot, as: 'value', type: 'integer', location: slot.location };
    hopValues.set(name, { location: slot.location, isVector: false, bound: hopsLiteral });
  };
  addHops('LEAST', hops && hops.least);
  addHops('MOST', hops && hops.most);
  const walkCall = { kind: 'function', name: walkName, arguments: [], alias, location } as const;
  const walkEdges = edgeScans({ types: walkTypes, weight: null }, walkCall, scan, contextOf);
  const walkChoices = new Map([
    ['DIRECTION', direction],
    ['BEGINS', String(walkBeginnings.length)],
  ]);
  const walkNode: FunctionNode = {
    kind: 'function',
    name: walkName,
    words: [direction, ...types],
    values: hopValues,
    type: null,
    input: walkInput,
    reads: [...walkInput.columns.keys()],
    carries: 'input',
    limit: null,
    columns: [...walkInput.columns, ...walkOwnColumns],
    own: [...[...walkInput.columns.keys()].map(() => -1), ...walkOwnColumns.keys()],
    graph: {
      types: walkTypes,
      edges: walkEdges,
      weight: null,
      choices: walkChoices,
      isWhole: true,
      limitsGroups: false,
      location,
    },
  };
  const walkTable = { name: alias, type: null, columns: walkOwnColumns, first: walkWidth };
  return { node: walkNode, tables: [...input.tables, walkTable] };
}
