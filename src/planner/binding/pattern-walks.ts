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

const own: readonly PlanColumn[] = [
  { name: walkColumns.end, type: 'string' },
  { name: walkColumns.edge, type: 'timestamp' },
  { name: walkColumns.trail, type: 'string' },
];

export function bindWalk(walk: Walk, input: BoundSource, { environment, scan, contextOf }: FunctionRequest): BoundSource {
  const { types, direction, hops, from, avoids, alias, location } = walk;
  const words = {
    word: (name: string): string | undefined => (name === 'LINK_TYPES' && types.length > 0 ? types.join(',') : undefined),
    locationOf: () => location,
    given: new Set<string>(),
  };
  const read = graphTypes(environment.catalog, words);
  for (const { name } of [...read.nodes, ...read.links]) environment.objectTypes.add(name);
  if (types.length > 0) environment.noteTypedEdges();
  const context = contextOf(new Scope(input.tables, []));
  const begun = [from, ...avoids].map((each, i) => ({ name: `#begin ${i}`, bound: bindExpression(each, context) }));
  const node = project(input.node, [...throughColumns(input.node), ...begun]);
  const width = node.columns.length;
  const values = new Map<string, FunctionValue>();
  const add = (name: string, slot: Slot | null): void => {
    if (slot === null) return;
    const bound: Bound = { kind: 'literal', slot: slot.slot, as: 'value', type: 'integer', location: slot.location };
    values.set(name, { location: slot.location, isVector: false, bound });
  };
  add('LEAST', hops && hops.least);
  add('MOST', hops && hops.most);
  const call = { kind: 'function', name: walkName, arguments: [], alias, location } as const;
  const edges = edgeScans({ types: read, weight: null }, call, scan, contextOf);
  const choices = new Map([
    ['DIRECTION', direction],
    ['BEGINS', String(begun.length)],
  ]);
  const walked: FunctionNode = {
    kind: 'function',
    name: walkName,
    words: [direction, ...types],
    values,
    type: null,
    input: node,
    reads: [...node.columns.keys()],
    carries: 'input',
    limit: null,
    columns: [...node.columns, ...own],
    own: [...[...node.columns.keys()].map(() => -1), ...own.keys()],
    graph: { types: read, edges, weight: null, choices, isWhole: true, limitsGroups: false, location },
  };
  const table = { name: alias, type: null, columns: own, first: width };
  return { node: walked, tables: [...input.tables, table] };
}
