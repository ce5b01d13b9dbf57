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
  const entityInput = new ColumnsBehind(input, request);
  const entityLayouts = wanted.map(
    (wantedEntity): EntityLayout => ({
      as: wantedEntity.as,
      edge: wantedEntity.edge && {
        entity: entityInput.add(wantedEntity.edge.entity),
        from: entityInput.add(wantedEntity.edge.from),
        to: entityInput.add(wantedEntity.edge.to),
      },
      start: wantedEntity.start && entityInput.add(wantedEntity.start),
      steps: wantedEntity.steps.map(({ trail, reversed }) => ({ trail: entityInput.add(trail), reversed })),
      known: wantedEntity.known.map(({ name, entity }) => ({ name: entityInput.add(name), entity: entityInput.add(entity) })),
    }),
  );
  const graphRowsOf = (of: 'nodes' | 'edges', types: readonly string[], properties: readonly string[]): PlanNode =>
    bindGraphRows({ kind: 'graph-rows', of, types, properties, alias: `#${of}`, location }, request).node;
  // Where both ends of each relationship are bound, no other nodes have to be read.
  const namesNodes = wanted.some(({ as, known }) => as !== 'relationship' || known.length < 2);
  const nodeRows = namesNodes ? [graphRowsOf('nodes', [], [rowColumns.entity])] : [];
  const walkedEntities = wanted.filter(({ steps }) => steps.length > 0);
  const walkedTypes = walkedEntities.some((wantedEntity) => wantedEntity.types.length === 0)
    ? []
    : [...new Set(walkedEntities.flatMap((wantedEntity) => wantedEntity.types))];
  const noEdges =
    walkedEntities.length === 0 || (walkedTypes.length === 0 && edgeTypes(request.environment.catalog).length === 0);
  const edgeRows = noEdges ? [] : [graphRowsOf('edges', walkedTypes, [rowColumns.entity, rowColumns.from, rowColumns.to])];
  const entityArms = [...nodeRows, ...edgeRows];
  const nodeTypesRead = entityArms.flatMap((node) => (node as FunctionNode).graph!.types.nodes);
  for (const { name } of nodeTypesRead) request.environment.objectTypes.add(name);
  const entityColumns = wanted.map(({ name }): PlanColumn => ({ name, type: 'json' }));
  return entityInput.function({
    name: entitiesName,
    alias,
    location,
    own: entityColumns,
    words: [JSON.stringify(entityLayouts)],
    choices: new Map([
      ['LAYOUT', JSON.stringify(entityLayouts)],
      ['NODES', String(nodeRows.length)],
    ]),
    edges: entityArms,
  });
}

export function bindUnwind({ list, alias, location }: Unwind, input: BoundSource, request: FunctionRequest): BoundSource {
  const unwindInput = new ColumnsBehind(input, request);
  unwindInput.add(list);
  if (unwindInput.typeOf(0) !== 'json' && unwindInput.typeOf(0) !== 'null')
    throw errorAt('REL_TYPE_MISMATCH', `UNWIND takes a list, not ${unwindInput.typeOf(0)}`, list.location);
  return unwindInput.function({
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
class ColumnsBehind {
  readonly #sourceInput: BoundSource;
  readonly #bindInSource: (expression: Expression) => Bound;
  readonly #boundBehind: Bound[] = [];

  constructor(input: BoundSource, { contextOf }: FunctionRequest) {
    const sourceContext = contextOf(new Scope(input.tables, []));
    this.#sourceInput = input;
    this.#bindInSource = (expression) => bindExpression(expression, sourceContext);
  }

  /** Its number. */
  add(expression: Expression): number {
    return this.#boundBehind.push(this.#bindInSource(expression)) - 1;
  }

  typeOf(number: number): Bound['type'] {
    return this.#boundBehind[number]!.type;
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
    const behindOutputs = this.#boundBehind.map((bound, i) => ({ name: `#behind ${i}`, bound }));
    const behindNode = project(this.#sourceInput.node, [...throughColumns(this.#sourceInput.node), ...behindOutputs]);
    const behindWidth = behindNode.columns.length;
    const choicesWithBegins = new Map([...choices, ['BEGINS', String(behindOutputs.length)]]);
    const functionTypes = {
      links: [],
      nodes: edges.flatMap((each) => (each as FunctionNode).graph!.types.nodes),
      isolated: true,
    };
    const functionNode: FunctionNode = {
      kind: 'function',
      name,
      words,
      values: new Map(),
      type: null,
      input: behindNode,
      reads: [...behindNode.columns.keys()],
      carries: 'input',
      limit: null,
      columns: [...behindNode.columns, ...own],
      own: [...[...behindNode.columns.keys()].map(() => -1), ...own.keys()],
      graph: {
        types: functionTypes,
        edges,
        weight: null,
        choices: choicesWithBegins,
        isWhole: true,
        limitsGroups: false,
        location,
      },
    };
    return {
      node: functionNode,
      tables: [...this.#sourceInput.tables, { name: alias, type: null, columns: own, first: behindWidth }],
    };
  }
}
