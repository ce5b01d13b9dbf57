/**
 * The chains of one MATCH, `(a)-[b]->(c)…`, as a join: nodes become tables or rows of any type, edges walks from the rows before
 * them, and no edge is gone along twice.
 */
import { degreeNames } from '../expressions/degree-query.ts';
import { entityCalls, nodeNameCall, rowColumns, walkColumns } from '../graph/pattern-columns.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { ColumnRef, Expression, Location, Source, WantedEntity } from '../syntax/statement.ts';
import type { PatternChain, PatternEdge, PatternNode, Term } from '../syntax/pattern-tree.ts';
import type { PatternUses } from './pattern-uses.ts';
import {
  both,
  call,
  column,
  compileTerm,
  equal,
  type Names,
  type NodeVariable,
  type EdgeVariable,
  type Variable,
} from './pattern-values.ts';

/** The node at the end of the walked part of a chain; without a variable where it has no row. */
interface ReachedNode {
  readonly id: Expression;
  readonly variable: NodeVariable | null;
}

export interface Rows {
  readonly source: Source | null;
  readonly where: readonly Expression[];
  readonly names: Names;
}

/** A property that is a value, in every row that is matched. */
export interface Fact {
  readonly property: string;
  readonly value: Term;
  readonly location: Location;
}

export class PatternChains {
  readonly #patternUses: PatternUses;
  /** A name that no other part of the query has. */
  readonly #newAlias: (prefix: string) => string;

  constructor(uses: PatternUses, newName: (prefix: string) => string) {
    this.#patternUses = uses;
    this.#newAlias = newName;
  }

  /** `isTyped`: the node of this name has to be read as a row of its type. */
  join(
    chains: readonly PatternChain[],
    patternRows: Rows,
    chainFacts: { readonly facts: ReadonlyMap<string, readonly Fact[]>; isTyped(name: string): boolean },
  ): Rows & { readonly some: Expression } {
    let { source } = patternRows;
    let someNodeId: Expression | null = null;
    const where = [...patternRows.where];
    const chainVariables = new Map(patternRows.names);
    const walkAliases: string[] = [];
    const wanted: WantedEntity[] = [];
    const entities = this.#newAlias('entities');
    for (const patternChain of chains) {
      const firstNode = this.#firstNodeOf(patternChain, chainVariables, chainFacts.facts);
      const reachedNodes: ReachedNode[] = [];
      const pathSteps: WantedEntity['steps'][number][] = [];
      const matching: ChainMatching = {
        names: chainVariables,
        where,
        walks: walkAliases,
        facts: chainFacts.facts,
        isTyped: chainFacts.isTyped,
        wanted,
        entities,
      };
      const chainStart = this.#beginChain(patternChain, firstNode, source, matching);
      source = chainStart.source;
      reachedNodes[firstNode] = chainStart;
      someNodeId = chainStart.id;
      const takeStep = (i: number, fromNode: number, toNode: number, direction: PatternEdge['direction']): void => {
        const chainEdge = patternChain.edges[i]!;
        const reversed = fromNode > toNode;
        const walkedEdge = this.#walkEdge(
          { edge: chainEdge, direction, reversed, from: reachedNodes[fromNode]!, node: patternChain.nodes[toNode]! },
          source!,
          matching,
        );
        source = walkedEdge.source;
        reachedNodes[toNode] = walkedEdge;
        pathSteps[i] = { trail: walkedEdge.trail, reversed };
      };
      for (let i = firstNode; i < patternChain.edges.length; i++) takeStep(i, i, i + 1, patternChain.edges[i]!.direction);
      const reverseDirections = { out: 'in', in: 'out', both: 'both' } as const;
      for (let i = firstNode - 1; i >= 0; i--) takeStep(i, i + 1, i, reverseDirections[patternChain.edges[i]!.direction]);
      if (patternChain.name === null) continue;
      if (chainVariables.has(patternChain.name))
        throw errorAt('REL_PARSE', `${JSON.stringify(patternChain.name)} is bound already`, patternChain.nodes[0]!.location);
      chainVariables.set(patternChain.name, {
        kind: 'path',
        property: (_name, location) => column(entities, patternChain.name!, location),
      });
      if (!this.#patternUses.usesOf(patternChain.name).properties.has(rowColumns.entity)) continue;
      const pathTypes = patternChain.edges.some((pathEdge) => pathEdge.types.length === 0)
        ? []
        : patternChain.edges.flatMap((pathEdge) => pathEdge.types);
      wanted.push({
        name: patternChain.name,
        as: 'path',
        edge: null,
        start: reachedNodes[0]!.id,
        steps: pathSteps,
        known: this.#readRows(reachedNodes, patternChain.nodes[0]!.location),
        types: pathTypes,
      });
    }
    const [first] = chains;
    if (wanted.length > 0)
      source = { kind: 'entities', input: source!, wanted, alias: entities, location: first!.nodes[0]!.location };
    return { source, where, names: chainVariables, some: someNodeId! };
  }

  /** The reached nodes that have a row. */
  #readRows(reachedNodes: readonly ReachedNode[], location: Location): WantedEntity['known'] {
    return reachedNodes.flatMap(({ variable }) => {
      if (variable === null) return [];
      const isRowRead = variable.table !== null || variable.hasEntity;
      return isRowRead ? [{ name: variable.id, entity: variable.property(rowColumns.entity, location) }] : [];
    });
  }

  /** The node at which a chain starts: one bound before, else the node with the most conditions. */
  #firstNodeOf({ nodes }: PatternChain, names: Names, facts: ReadonlyMap<string, readonly Fact[]>): number {
    const constraintCounts = nodes.map(({ name, labels, properties }): number => {
      if (name !== null && names.has(name)) return 7;
      const elementColumns = [
        ...properties.map((nodeProperty) => nodeProperty.name),
        ...(name === null ? [] : (facts.get(name) ?? [])).map((fact) => fact.property),
      ];
      return (labels.length > 0 ? 2 : 0) + (elementColumns.length > 0 ? 1 : 0) + (elementColumns.includes('id') ? 3 : 0);
    });
    return constraintCounts.indexOf(Math.max(...constraintCounts));
  }

  /** The rows with a node that no edge leads to. */
  #beginChain(
    patternChain: PatternChain,
    firstNodeIndex: number,
    sourceBefore: Source | null,
    chainMatching: ChainMatching,
  ): ReachedNode & { source: Source } {
    const firstNode = patternChain.nodes[firstNodeIndex]!;
    const { names, where } = chainMatching;
    const knownVariable = firstNode.name === null ? undefined : names.get(firstNode.name);
    if (knownVariable !== undefined) {
      const knownNode = this.#matchKnown(firstNode, knownVariable, sourceBefore!, chainMatching);
      // A walk from nowhere has no rows; a node alone would have one.
      if (patternChain.edges.length === 0)
        where.push({ kind: 'is-null', operand: knownNode.id, negated: true, location: firstNode.location });
      return knownNode;
    }
    const { location, labels } = firstNode;
    const adjacentEdge = patternChain.edges[firstNodeIndex] ?? patternChain.edges[firstNodeIndex - 1];
    // A walk of no edges begins at nodes that have none, too.
    const needsEdge = adjacentEdge !== undefined && (adjacentEdge.hops === null || adjacentEdge.hops.least === null);
    const isAnyNode = firstNode.properties.length === 0 && !(firstNode.name !== null && chainMatching.facts.has(firstNode.name));
    if (needsEdge && isAnyNode && labels.length === 0 && !this.#needsNodeRow(firstNode, chainMatching)) {
      const nodeAlias = firstNode.name ?? this.#newAlias('node');
      const degreeTable: Source = {
        kind: 'function',
        name: degreeNames.function('both'),
        arguments: [],
        alias: nodeAlias,
        location,
      };
      const variable = this.#namedNode(firstNode, nodeAlias, column(nodeAlias, degreeNames.node, location), chainMatching);
      if (firstNode.name !== null) names.set(firstNode.name, variable);
      return { source: joinBeside(sourceBefore, degreeTable, null), id: variable.id, variable: null };
    }
    return this.#readNodeRow(firstNode, sourceBefore, null, chainMatching);
  }

  /** Joins the row of a node; with `id`, the one of that name. */
  #readNodeRow(
    patternNode: PatternNode,
    sourceBefore: Source | null,
    id: Expression | null,
    chainMatching: ChainMatching,
  ): { source: Source; id: Expression; variable: NodeVariable } {
    const { location, labels } = patternNode;
    const nodeAlias = patternNode.name ?? this.#newAlias('node');
    const [firstLabels = [], ...otherLabels] = labels;
    const [label] = firstLabels;
    const isOneTable = firstLabels.length === 1 && !(patternNode.name !== null && chainMatching.isTyped(patternNode.name));
    const properties = this.#propertiesOf(patternNode);
    const nodeSource: Source = isOneTable
      ? { kind: 'table', name: label!, alias: nodeAlias, location }
      : { kind: 'graph-rows', of: 'nodes', types: firstLabels, properties, alias: nodeAlias, location };
    const hasEntity = properties.includes(rowColumns.entity);
    const variable = isOneTable
      ? tableNode(nodeAlias, label!, location)
      : { ...graphRowNode(nodeAlias, firstLabels, location), hasEntity };
    if (patternNode.name !== null) chainMatching.names.set(patternNode.name, variable);
    this.#addPropertyTests(patternNode, variable, chainMatching);
    let source = joinBeside(sourceBefore, nodeSource, id && equal(variable.id, id, location));
    for (const alternativeLabels of otherLabels) source = this.#joinLabels(alternativeLabels, variable, source, location);
    return { source, id: variable.id, variable };
  }

  /** The rows whose node is of one of these types, too. */
  #joinLabels(
    labels: readonly string[],
    { id, type, labels: knownLabels }: NodeVariable,
    sourceBefore: Source,
    location: Location,
  ): Source {
    const labelAlias = this.#newAlias('label');
    const labelSource: Source = { kind: 'graph-rows', of: 'nodes', types: labels, properties: [], alias: labelAlias, location };
    const sameNodeName = equal(column(labelAlias, rowColumns.name, location), id, location);
    if (type !== null)
      return joinBeside(
        sourceBefore,
        labelSource,
        both([sameNodeName, equal(column(labelAlias, rowColumns.type, location), type, location)], location),
      );
    if (knownLabels.length > 0 && knownLabels.every((label) => labels.includes(label))) return sourceBefore;
    // A row is of one type.
    return joinBeside(sourceBefore, labelSource, {
      kind: 'is-null',
      operand: column(labelAlias, rowColumns.type, location),
      negated: false,
      location,
    });
  }

  /** Whether more is asked of a node than how edges name it. */
  #needsNodeRow({ name, properties }: PatternNode, { isTyped }: ChainMatching): boolean {
    if (properties.some((nodeProperty) => nodeProperty.name !== 'id')) return true;
    if (name === null) return false;
    const nodeUses = this.#patternUses.usesOf(name);
    return isTyped(name) || nodeUses.hasLabel || [...nodeUses.properties].some((property) => !nodeNameProperties.has(property));
  }

  #propertiesOf({
    name,
    properties,
  }: {
    readonly name: string | null;
    readonly properties: PatternNode['properties'];
  }): string[] {
    const readProperties = new Set(properties.map((patternProperty) => patternProperty.name));
    if (name !== null) for (const property of this.#patternUses.usesOf(name).properties) readProperties.add(property);
    return [...readProperties];
  }

  #walkEdge(
    walkStep: {
      readonly edge: PatternEdge;
      readonly direction: PatternEdge['direction'];
      /** The edge runs against the direction in which the chain is written. */
      readonly reversed: boolean;
      readonly from: ReachedNode;
      readonly node: PatternNode;
    },
    sourceBefore: Source,
    chainMatching: ChainMatching,
  ): ReachedNode & { source: Source; trail: Expression } {
    const { edge, direction, from: fromNode, node } = walkStep;
    const { names, where, walks } = chainMatching;
    const { location, hops, types } = edge;
    if (edge.name !== null && names.has(edge.name)) {
      throw errorAt('REL_PARSE', `${JSON.stringify(edge.name)} is bound already: an edge has a name of its own`, location);
    }
    const edgeUses = edge.name === null ? null : this.#patternUses.usesOf(edge.name);
    const isEntity = edgeUses?.properties.has(rowColumns.entity) === true;
    const edgeProperties = this.#propertiesOf(edge).filter((name) => hops === null || name !== rowColumns.entity);
    if (hops !== null && edgeProperties.length > 0)
      throw errorAt('REL_PARSE', 'a path of several edges has no properties', location);
    const walkAlias = this.#newAlias('walk');
    const walkColumn = (name: string): ColumnRef => column(walkAlias, name, location);
    let source: Source = {
      kind: 'walk',
      input: sourceBefore,
      from: fromNode.id,
      types,
      direction,
      hops,
      avoids: walks.map((earlierWalk) => column(earlierWalk, walkColumns.trail, location)),
      alias: walkAlias,
      location,
    };
    walks.push(walkAlias);
    // A walk of no edges has an end, too.
    const edgeMark = walkColumn(hops === null ? walkColumns.edge : walkColumns.end);
    const trail = walkColumn(walkColumns.trail);
    const isWholeEdge = edgeUses?.isWhole === true && hops === null;
    let wantedEdgeRow: WantedEntity['edge'] = null;
    let edgeVariable: EdgeVariable = {
      kind: 'edge',
      mark: edgeMark,
      key: null,
      table: null,
      isList: hops !== null,
      property: refuseEdgeProperty,
    };
    const [edgeType] = types;
    const isOneType = types.length === 1 && !isEntity;
    const constantType: Expression | null =
      types.length === 1 && hops === null
        ? {
            kind: 'case',
            operand: null,
            branches: [
              {
                when: { kind: 'is-null', operand: edgeMark, negated: true, location },
                // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
                then: { kind: 'constant', cell: edgeType!, location },
              },
            ],
            otherwise: null,
            location,
          }
        : null;
    if (edgeProperties.some((name) => constantType === null || name !== rowColumns.type) || isWholeEdge) {
      const edgeAlias = this.#newAlias('edge');
      const edgeEndColumns = isEntity ? [rowColumns.from, rowColumns.to] : [];
      const properties = [...edgeProperties.filter((name) => name !== rowColumns.type), ...edgeEndColumns];
      const edgeSource: Source = isOneType
        ? { kind: 'table', name: edgeType!, alias: edgeAlias, location }
        : { kind: 'graph-rows', of: 'edges', types, properties, alias: edgeAlias, location };
      const systemFrom = column(edgeAlias, isOneType ? 'system_from' : rowColumns.name, location);
      source = joinBeside(source, edgeSource, equal(walkColumn(walkColumns.edge), systemFrom, location));
      const edgeKey = column(edgeAlias, isOneType ? '_pk' : rowColumns.key, location);
      const edgeColumn = (name: string): Expression => column(edgeAlias, name, location);
      if (isEntity)
        wantedEdgeRow = {
          entity: edgeColumn(rowColumns.entity),
          from: edgeColumn(rowColumns.from),
          to: edgeColumn(rowColumns.to),
        };
      const edgeTable = isOneType ? edgeAlias : null;
      edgeVariable = {
        kind: 'edge',
        mark: edgeMark,
        key: edgeKey,
        table: edgeTable,
        isList: false,
        property: (name, where_) => column(edgeAlias, name, where_),
      };
    }
    if (constantType !== null || isEntity) {
      const { property } = edgeVariable;
      const { entities } = chainMatching;
      edgeVariable = {
        ...edgeVariable,
        property: (name, where_) => {
          if (name === rowColumns.entity) return column(entities, edge.name!, where_);
          return name === rowColumns.type && constantType !== null ? constantType : property(name, where_);
        },
      };
    }
    if (edge.name !== null) names.set(edge.name, edgeVariable);
    for (const { name, value } of edge.properties) {
      where.push(equal(edgeVariable.property(name, location), compileTerm(value, names), location));
    }
    const walkEnd = walkColumn(walkColumns.end);
    let reachedNode: ReachedNode & { source: Source };
    const knownVariable = node.name === null ? undefined : names.get(node.name);
    if (knownVariable !== undefined) {
      const knownNode = this.#matchKnown(node, knownVariable, source, chainMatching);
      where.push(equal(knownNode.id, walkEnd, node.location));
      reachedNode = { ...knownNode, id: walkEnd };
    } else if (node.labels.length > 0 || this.#needsNodeRow(node, chainMatching))
      reachedNode = this.#readNodeRow(node, source, walkEnd, chainMatching);
    else {
      const variable_ = this.#namedNode(node, node.name ?? this.#newAlias('node'), walkEnd, chainMatching);
      if (node.name !== null) names.set(node.name, variable_);
      this.#addPropertyTests(node, variable_, chainMatching);
      reachedNode = { source, id: walkEnd, variable: null };
    }
    if (isEntity)
      chainMatching.wanted.push({
        name: edge.name!,
        as: hops === null ? 'relationship' : 'relationships',
        edge: wantedEdgeRow,
        start: hops === null ? null : fromNode.id,
        steps: hops === null ? [] : [{ trail, reversed: walkStep.reversed }],
        known: this.#readRows([fromNode, reachedNode], location),
        types,
      });
    return { ...reachedNode, trail };
  }

  /** A node of which nothing is known but how edges name it. */
  #namedNode(node: PatternNode, name: string, id: Expression, { wanted, entities }: ChainMatching): NodeVariable {
    const isEntity = node.name !== null && this.#patternUses.usesOf(node.name).properties.has(rowColumns.entity);
    if (isEntity) wanted.push({ name, as: 'node', edge: null, start: id, steps: [], known: [], types: [] });
    const property = (propertyName: string, location: Location): Expression => {
      if (propertyName === 'id') return id;
      if (propertyName === rowColumns.entity && isEntity) return column(entities, name, location);
      throw errorAt('REL_PARSE', `${JSON.stringify(name)} has no property ${JSON.stringify(propertyName)} here`, location);
    };
    return { kind: 'node', labels: [], id, type: null, table: null, hasEntity: false, property };
  }

  /** A node that an earlier part of the pattern has bound. */
  #matchKnown(
    node: PatternNode,
    knownVariable: Variable,
    sourceBefore: Source,
    chainMatching: ChainMatching,
  ): ReachedNode & { source: Source } {
    if (knownVariable.kind !== 'node') throw errorAt('REL_PARSE', `${JSON.stringify(node.name)} is no node`, node.location);
    this.#addPropertyTests(node, knownVariable, chainMatching);
    let source = sourceBefore;
    for (const labels of node.labels) source = this.#joinLabels(labels, knownVariable, source, node.location);
    return { source, id: knownVariable.id, variable: knownVariable };
  }

  #addPropertyTests(patternNode: PatternNode, variable: NodeVariable, { names, where }: ChainMatching): void {
    for (const { name, value } of patternNode.properties) {
      where.push(equal(variable.property(name, patternNode.location), compileTerm(value, names), patternNode.location));
    }
  }
}

/** The context in which a chain of one MATCH is matched. */
interface ChainMatching {
  readonly names: Map<string, Variable>;
  readonly where: Expression[];
  /** Aliases of the walks of the clause. */
  readonly walks: string[];
  readonly facts: ReadonlyMap<string, readonly Fact[]>;
  isTyped(name: string): boolean;
  /** Entities made from the match, under this alias. */
  readonly wanted: WantedEntity[];
  readonly entities: string;
}

/** Properties that a node without a row has. */
const nodeNameProperties: ReadonlySet<string> = new Set(['id', rowColumns.entity]);

export function tableNode(table: string, label: string, location: Location): NodeVariable {
  const nodeNameArguments = [{ name: null, value: column(table, 'id', location) }];
  const id: Expression = { kind: 'call', name: nodeNameCall, arguments: nodeNameArguments, location };
  const property = (name: string, where: Location): Expression =>
    name === rowColumns.entity ? call(entityCalls.nodes, [column(table, '_pk', where)], where) : column(table, name, where);
  return { kind: 'node', labels: [label], id, type: null, table, hasEntity: true, property };
}

function graphRowNode(alias: string, labels: readonly string[], location: Location): NodeVariable {
  const id = column(alias, rowColumns.name, location);
  const property = (name: string, where: Location): Expression => (name === 'id' ? id : column(alias, name, where));
  return { kind: 'node', labels, id, type: column(alias, rowColumns.type, location), table: null, hasEntity: false, property };
}

function refuseEdgeProperty(_name: string, location: Location): never {
  throw errorAt('REL_PARSE', 'a path of several edges has no properties', location);
}

function joinBeside(sourceBefore: Source | null, addedSource: Source, on: Expression | null): Source {
  if (sourceBefore === null) return addedSource;
  return { kind: 'join', type: 'inner', left: sourceBefore, right: addedSource, on, using: null, location: addedSource.location };
}
