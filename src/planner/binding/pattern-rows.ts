/** Rows of a graph pattern with more behind each: the paths and relationships that it went along, or the elements of a list. */
import { bindExpression } from '../expressions/bind-expression.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import { edgeTypes } from '../graph/node-and-edge-types.ts';
import { entitiesName, type EntityLayout, rowColumns, unwindName, unwoundColumn } from '../graph/pattern-columns.ts';
import type { FunctionNode, GraphInput, PlanColumn, PlanNode } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, Location, Source } from '../syntax/statement.ts';
import type { BoundSource } from './environment.ts';
import { bindGraphRows } from './graph-rows.ts';
import { project, throughColumns } from './output-columns.ts';
import { Scope } from './scope.ts';
import type { FunctionRequest } from './table-functions.ts';

type Entities = Extract<Source, { kind: 'entities' }>;
type Unwind = Extract<Source, { kind: 'unwind' }>;

export function bindEntities(source: Entities, input: BoundSource, request: FunctionRequest): BoundSource {
  const { wanted, alias, location } = source;
  const behind = new Behind(input, request);
  const layouts = wanted.map(
    (each): EntityLayout => ({
      as: each.as,
      edge: each.edge && {
        entity: behind.add(each.edge.entity),
        from: behind.add(each.edge.from),
        to: behind.add(each.edge.to),
      },
      start: each.start && behind.add(each.start),
      steps: each.steps.map(({ trail, reversed }) => ({ trail: behind.add(trail), reversed })),
      known: each.known.map(({ name, entity }) => ({ name: behind.add(name), entity: behind.add(entity) })),
    }),
  );
  const rowsOf = (of: 'nodes' | 'edges', types: readonly string[], properties: readonly string[]): PlanNode =>
    bindGraphRows({ kind: 'graph-rows', of, types, properties, alias: `#${of}`, location }, request).node;
  // Where both ends of each relationship are bound, no other nodes have to be read.
  const namesNodes = wanted.some(({ as, known }) => as !== 'relationship' || known.length < 2);
  const nodes = namesNodes ? [rowsOf('nodes', [], [rowColumns.entity])] : [];
  const walked = wanted.filter(({ steps }) => steps.length > 0);
  const types = walked.some((each) => each.types.length === 0) ? [] : [...new Set(walked.flatMap((each) => each.types))];
  const noEdges = walked.length === 0 || (types.length === 0 && edgeTypes(request.environment.catalog).length === 0);
  const edges = noEdges ? [] : [rowsOf('edges', types, [rowColumns.entity, rowColumns.from, rowColumns.to])];
  const arms = [...nodes, ...edges];
  const read = arms.flatMap((node) => (node as FunctionNode).graph!.types.nodes);
  for (const { name } of read) request.environment.objectTypes.add(name);
  const own = wanted.map(({ name }): PlanColumn => ({ name, type: 'json' }));
  return behind.function({
    name: entitiesName,
    alias,
    location,
    own,
    words: [JSON.stringify(layouts)],
    choices: new Map([
      ['LAYOUT', JSON.stringify(layouts)],
      ['NODES', String(nodes.length)],
    ]),
    edges: arms,
  });
}

export function bindUnwind({ list, alias, location }: Unwind, input: BoundSource, request: FunctionRequest): BoundSource {
  const behind = new Behind(input, request);
  behind.add(list);
  if (behind.typeOf(0) !== 'json' && behind.typeOf(0) !== 'null')
    throw errorAt('REL_TYPE_MISMATCH', `UNWIND takes a list, not ${behind.typeOf(0)}`, list.location);
  return behind.function({
    name: unwindName,
    alias,
    location,
    own: [{ name: unwoundColumn, type: 'json' }],
    words: [],
    choices: new Map(),
    edges: [],
  });
}

/** Columns that a function reads behind those of its rows. */
class Behind {
  readonly #input: BoundSource;
  readonly #bind: (expression: Expression) => Bound;
  readonly #bound: Bound[] = [];

  constructor(input: BoundSource, { contextOf }: FunctionRequest) {
    const context = contextOf(new Scope(input.tables, []));
    this.#input = input;
    this.#bind = (expression) => bindExpression(expression, context);
  }

  /** Its number. */
  add(expression: Expression): number {
    return this.#bound.push(this.#bind(expression)) - 1;
  }

  typeOf(number: number): Bound['type'] {
    return this.#bound[number]!.type;
  }

  function(element: {
    readonly name: string;
    readonly alias: string;
    readonly location: Location;
    readonly own: readonly PlanColumn[];
    readonly words: readonly string[];
    readonly choices: GraphInput['choices'];
    readonly edges: readonly PlanNode[];
  }): BoundSource {
    const { name, alias, location, own, words, choices, edges } = element;
    const given = this.#bound.map((bound, i) => ({ name: `#behind ${i}`, bound }));
    const node = project(this.#input.node, [...throughColumns(this.#input.node), ...given]);
    const width = node.columns.length;
    const begins = new Map([...choices, ['BEGINS', String(given.length)]]);
    const types = { links: [], nodes: edges.flatMap((each) => (each as FunctionNode).graph!.types.nodes), isolated: true };
    const rows: FunctionNode = {
      kind: 'function',
      name,
      words,
      values: new Map(),
      type: null,
      input: node,
      reads: [...node.columns.keys()],
      carries: 'input',
      limit: null,
      columns: [...node.columns, ...own],
      own: [...[...node.columns.keys()].map(() => -1), ...own.keys()],
      graph: { types, edges, weight: null, choices: begins, isWhole: true, limitsGroups: false, location },
    };
    return { node: rows, tables: [...this.#input.tables, { name: alias, type: null, columns: own, first: width }] };
  }
}
