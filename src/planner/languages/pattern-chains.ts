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
  readonly #uses: PatternUses;
  /** A name that no other part of the query has. */
  readonly #newName: (prefix: string) => string;

  constructor(uses: PatternUses, newName: (prefix: string) => string) {
    this.#uses = uses;
    this.#newName = newName;
  }

  /** `isTyped`: the node of this name has to be read as a row of its type. */
  join(
    chains: readonly PatternChain[],
    rows: Rows,
    about: { readonly facts: ReadonlyMap<string, readonly Fact[]>; isTyped(name: string): boolean },
  ): Rows & { readonly some: Expression } {
    let { source } = rows;
    let some: Expression | null = null;
    const where = [...rows.where];
    const names = new Map(rows.names);
    const walks: string[] = [];
    const wanted: WantedEntity[] = [];
    const entities = this.#newName('entities');
    for (const chain of chains) {
      const first = this.#firstOf(chain, names, about.facts);
      const reached: ReachedNode[] = [];
      const steps: WantedEntity['steps'][number][] = [];
      const matching: Matching = { names, where, walks, facts: about.facts, isTyped: about.isTyped, wanted, entities };
      const begin = this.#begin(chain, first, source, matching);
      source = begin.source;
      reached[first] = begin;
      some = begin.id;
      const step = (i: number, from: number, to: number, direction: PatternEdge['direction']): void => {
        const edge = chain.edges[i]!;
        const reversed = from > to;
        const walked = this.#walk({ edge, direction, reversed, from: reached[from]!, node: chain.nodes[to]! }, source!, matching);
        source = walked.source;
        reached[to] = walked;
        steps[i] = { trail: walked.trail, reversed };
      };
      for (let i = first; i < chain.edges.length; i++) step(i, i, i + 1, chain.edges[i]!.direction);
      const back = { out: 'in', in: 'out', both: 'both' } as const;
      for (let i = first - 1; i >= 0; i--) step(i, i + 1, i, back[chain.edges[i]!.direction]);
      if (chain.name === null) continue;
      if (names.has(chain.name))
        throw errorAt('REL_PARSE', `${JSON.stringify(chain.name)} is bound already`, chain.nodes[0]!.location);
      names.set(chain.name, { kind: 'path', property: (_name, location) => column(entities, chain.name!, location) });
      if (!this.#uses.usesOf(chain.name).properties.has(rowColumns.entity)) continue;
      const types = chain.edges.some((each) => each.types.length === 0) ? [] : chain.edges.flatMap((each) => each.types);
      wanted.push({
        name: chain.name,
        as: 'path',
        edge: null,
        start: reached[0]!.id,
        steps,
        known: this.#rowsOf(reached, chain.nodes[0]!.location),
        types,
      });
    }
    const [first] = chains;
    if (wanted.length > 0)
      source = { kind: 'entities', input: source!, wanted, alias: entities, location: first!.nodes[0]!.location };
    return { source, where, names, some: some! };
  }

  /** The reached nodes that have a row. */
  #rowsOf(reached: readonly ReachedNode[], location: Location): WantedEntity['known'] {
    return reached.flatMap(({ variable }) => {
      if (variable === null) return [];
      const isRead = variable.table !== null || variable.hasEntity;
      return isRead ? [{ name: variable.id, entity: variable.property(rowColumns.entity, location) }] : [];
    });
  }

  /** The node at which a chain starts: one bound before, else the node with the most conditions. */
  #firstOf({ nodes }: PatternChain, names: Names, facts: ReadonlyMap<string, readonly Fact[]>): number {
    const constraintCounts = nodes.map(({ name, labels, properties }): number => {
      if (name !== null && names.has(name)) return 7;
      const elementColumns = [
        ...properties.map((each) => each.name),
        ...(name === null ? [] : (facts.get(name) ?? [])).map((fact) => fact.property),
      ];
      return (labels.length > 0 ? 2 : 0) + (elementColumns.length > 0 ? 1 : 0) + (elementColumns.includes('id') ? 3 : 0);
    });
    return constraintCounts.indexOf(Math.max(...constraintCounts));
  }

  /** The rows with a node that no edge leads to. */
  #begin(chain: PatternChain, first: number, before: Source | null, matching: Matching): ReachedNode & { source: Source } {
    const node = chain.nodes[first]!;
    const { names, where } = matching;
    const known = node.name === null ? undefined : names.get(node.name);
    if (known !== undefined) {
      const knownNode = this.#matchKnown(node, known, before!, matching);
      // A walk from nowhere has no rows; a node alone would have one.
      if (chain.edges.length === 0)
        where.push({ kind: 'is-null', operand: knownNode.id, negated: true, location: node.location });
      return knownNode;
    }
    const { location, labels } = node;
    const edge = chain.edges[first] ?? chain.edges[first - 1];
    // A walk of no edges begins at nodes that have none, too.
    const needsEdge = edge !== undefined && (edge.hops === null || edge.hops.least === null);
    const isAny = node.properties.length === 0 && !(node.name !== null && matching.facts.has(node.name));
    if (needsEdge && isAny && labels.length === 0 && !this.#asksRow(node, matching)) {
      const alias = node.name ?? this.#newName('node');
      const table: Source = { kind: 'function', name: degreeNames.function('both'), arguments: [], alias, location };
      const variable = this.#namedNode(node, alias, column(alias, degreeNames.node, location), matching);
      if (node.name !== null) names.set(node.name, variable);
      return { source: besides(before, table, null), id: variable.id, variable: null };
    }
    return this.#row(node, before, null, matching);
  }

  /** Joins the row of a node; with `id`, the one of that name. */
  #row(
    node: PatternNode,
    before: Source | null,
    id: Expression | null,
    matching: Matching,
  ): { source: Source; id: Expression; variable: NodeVariable } {
    const { location, labels } = node;
    const alias = node.name ?? this.#newName('node');
    const [either = [], ...more] = labels;
    const [label] = either;
    const isTable = either.length === 1 && !(node.name !== null && matching.isTyped(node.name));
    const properties = this.#propertiesOf(node);
    const right: Source = isTable
      ? { kind: 'table', name: label!, alias, location }
      : { kind: 'graph-rows', of: 'nodes', types: either, properties, alias, location };
    const hasEntity = properties.includes(rowColumns.entity);
    const variable = isTable ? tableNode(alias, label!, location) : { ...rowNode(alias, either, location), hasEntity };
    if (node.name !== null) matching.names.set(node.name, variable);
    this.#having(node, variable, matching);
    let source = besides(before, right, id && equal(variable.id, id, location));
    for (const others of more) source = this.#joinLabels(others, variable, source, location);
    return { source, id: variable.id, variable };
  }

  /** The rows whose node is of one of these types, too. */
  #joinLabels(labels: readonly string[], { id, type, labels: known }: NodeVariable, before: Source, location: Location): Source {
    const alias = this.#newName('label');
    const right: Source = { kind: 'graph-rows', of: 'nodes', types: labels, properties: [], alias, location };
    const same = equal(column(alias, rowColumns.name, location), id, location);
    if (type !== null)
      return besides(before, right, both([same, equal(column(alias, rowColumns.type, location), type, location)], location));
    if (known.length > 0 && known.every((label) => labels.includes(label))) return before;
    // A row is of one type.
    return besides(before, right, {
      kind: 'is-null',
      operand: column(alias, rowColumns.type, location),
      negated: false,
      location,
    });
  }

  /** Whether more is asked of a node than how edges name it. */
  #asksRow({ name, properties }: PatternNode, { isTyped }: Matching): boolean {
    if (properties.some((each) => each.name !== 'id')) return true;
    if (name === null) return false;
    const uses = this.#uses.usesOf(name);
    return isTyped(name) || uses.hasLabel || [...uses.properties].some((property) => !ofName.has(property));
  }

  #propertiesOf({
    name,
    properties,
  }: {
    readonly name: string | null;
    readonly properties: PatternNode['properties'];
  }): string[] {
    const read = new Set(properties.map((each) => each.name));
    if (name !== null) for (const property of this.#uses.usesOf(name).properties) read.add(property);
    return [...read];
  }

  #walk(
    step: {
      readonly edge: PatternEdge;
      readonly direction: PatternEdge['direction'];
      /** The edge runs against the direction in which the chain is written. */
      readonly reversed: boolean;
      readonly from: ReachedNode;
      readonly node: PatternNode;
    },
    before: Source,
    matching: Matching,
  ): ReachedNode & { source: Source; trail: Expression } {
    const { edge, direction, from, node } = step;
    const { names, where, walks } = matching;
    const { location, hops, types } = edge;
    if (edge.name !== null && names.has(edge.name)) {
      throw errorAt('REL_PARSE', `${JSON.stringify(edge.name)} is bound already: an edge has a name of its own`, location);
    }
    const uses = edge.name === null ? null : this.#uses.usesOf(edge.name);
    const isEntity = uses?.properties.has(rowColumns.entity) === true;
    const read = this.#propertiesOf(edge).filter((name) => hops === null || name !== rowColumns.entity);
    if (hops !== null && read.length > 0) throw errorAt('REL_PARSE', 'a path of several edges has no properties', location);
    const walk = this.#newName('walk');
    const walkColumn = (name: string): ColumnRef => column(walk, name, location);
    let source: Source = {
      kind: 'walk',
      input: before,
      from: from.id,
      types,
      direction,
      hops,
      avoids: walks.map((each) => column(each, walkColumns.trail, location)),
      alias: walk,
      location,
    };
    walks.push(walk);
    // A walk of no edges has an end, too.
    const mark = walkColumn(hops === null ? walkColumns.edge : walkColumns.end);
    const trail = walkColumn(walkColumns.trail);
    const isWhole = uses?.isWhole === true && hops === null;
    let row: WantedEntity['edge'] = null;
    let variable: EdgeVariable = { kind: 'edge', mark, key: null, table: null, isList: hops !== null, property: noRow };
    const [type] = types;
    const isTyped = types.length === 1 && !isEntity;
    const typed: Expression | null =
      types.length === 1 && hops === null
        ? {
            kind: 'case',
            operand: null,
            branches: [
              {
                when: { kind: 'is-null', operand: mark, negated: true, location },
                // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
                then: { kind: 'constant', cell: type!, location },
              },
            ],
            otherwise: null,
            location,
          }
        : null;
    if (read.some((name) => typed === null || name !== rowColumns.type) || isWhole) {
      const alias = this.#newName('edge');
      const ends = isEntity ? [rowColumns.from, rowColumns.to] : [];
      const properties = [...read.filter((name) => name !== rowColumns.type), ...ends];
      const right: Source = isTyped
        ? { kind: 'table', name: type!, alias, location }
        : { kind: 'graph-rows', of: 'edges', types, properties, alias, location };
      const systemFrom = column(alias, isTyped ? 'system_from' : rowColumns.name, location);
      source = besides(source, right, equal(walkColumn(walkColumns.edge), systemFrom, location));
      const key = column(alias, isTyped ? '_pk' : rowColumns.key, location);
      const edgeColumn = (name: string): Expression => column(alias, name, location);
      if (isEntity)
        row = { entity: edgeColumn(rowColumns.entity), from: edgeColumn(rowColumns.from), to: edgeColumn(rowColumns.to) };
      const table = isTyped ? alias : null;
      variable = { kind: 'edge', mark, key, table, isList: false, property: (name, where_) => column(alias, name, where_) };
    }
    if (typed !== null || isEntity) {
      const { property } = variable;
      const { entities } = matching;
      variable = {
        ...variable,
        property: (name, where_) => {
          if (name === rowColumns.entity) return column(entities, edge.name!, where_);
          return name === rowColumns.type && typed !== null ? typed : property(name, where_);
        },
      };
    }
    if (edge.name !== null) names.set(edge.name, variable);
    for (const { name, value } of edge.properties) {
      where.push(equal(variable.property(name, location), compileTerm(value, names), location));
    }
    const end = walkColumn(walkColumns.end);
    let reached: ReachedNode & { source: Source };
    const known = node.name === null ? undefined : names.get(node.name);
    if (known !== undefined) {
      const knownNode = this.#matchKnown(node, known, source, matching);
      where.push(equal(knownNode.id, end, node.location));
      reached = { ...knownNode, id: end };
    } else if (node.labels.length > 0 || this.#asksRow(node, matching)) reached = this.#row(node, source, end, matching);
    else {
      const variable_ = this.#namedNode(node, node.name ?? this.#newName('node'), end, matching);
      if (node.name !== null) names.set(node.name, variable_);
      this.#having(node, variable_, matching);
      reached = { source, id: end, variable: null };
    }
    if (isEntity)
      matching.wanted.push({
        name: edge.name!,
        as: hops === null ? 'relationship' : 'relationships',
        edge: row,
        start: hops === null ? null : from.id,
        steps: hops === null ? [] : [{ trail, reversed: step.reversed }],
        known: this.#rowsOf([from, reached], location),
        types,
      });
    return { ...reached, trail };
  }

  /** A node of which nothing is known but how edges name it. */
  #namedNode(node: PatternNode, name: string, id: Expression, { wanted, entities }: Matching): NodeVariable {
    const isEntity = node.name !== null && this.#uses.usesOf(node.name).properties.has(rowColumns.entity);
    if (isEntity) wanted.push({ name, as: 'node', edge: null, start: id, steps: [], known: [], types: [] });
    const property = (propertyName: string, location: Location): Expression => {
      if (propertyName === 'id') return id;
      if (propertyName === rowColumns.entity && isEntity) return column(entities, name, location);
      throw errorAt('REL_PARSE', `${JSON.stringify(name)} has no property ${JSON.stringify(propertyName)} here`, location);
    };
    return { kind: 'node', labels: [], id, type: null, table: null, hasEntity: false, property };
  }

  /** A node that an earlier part of the pattern has bound. */
  #matchKnown(node: PatternNode, known: Variable, before: Source, matching: Matching): ReachedNode & { source: Source } {
    if (known.kind !== 'node') throw errorAt('REL_PARSE', `${JSON.stringify(node.name)} is no node`, node.location);
    this.#having(node, known, matching);
    let source = before;
    for (const labels of node.labels) source = this.#joinLabels(labels, known, source, node.location);
    return { source, id: known.id, variable: known };
  }

  #having(node: PatternNode, variable: NodeVariable, { names, where }: Matching): void {
    for (const { name, value } of node.properties) {
      where.push(equal(variable.property(name, node.location), compileTerm(value, names), node.location));
    }
  }
}

/** The context in which a chain of one MATCH is matched. */
interface Matching {
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
const ofName: ReadonlySet<string> = new Set(['id', rowColumns.entity]);

export function tableNode(table: string, label: string, location: Location): NodeVariable {
  const given = [{ name: null, value: column(table, 'id', location) }];
  const id: Expression = { kind: 'call', name: nodeNameCall, arguments: given, location };
  const property = (name: string, where: Location): Expression =>
    name === rowColumns.entity ? call(entityCalls.nodes, [column(table, '_pk', where)], where) : column(table, name, where);
  return { kind: 'node', labels: [label], id, type: null, table, hasEntity: true, property };
}

function rowNode(alias: string, labels: readonly string[], location: Location): NodeVariable {
  const id = column(alias, rowColumns.name, location);
  const property = (name: string, where: Location): Expression => (name === 'id' ? id : column(alias, name, where));
  return { kind: 'node', labels, id, type: column(alias, rowColumns.type, location), table: null, hasEntity: false, property };
}

function noRow(_name: string, location: Location): never {
  throw errorAt('REL_PARSE', 'a path of several edges has no properties', location);
}

function besides(left: Source | null, right: Source, on: Expression | null): Source {
  if (left === null) return right;
  return { kind: 'join', type: 'inner', left, right, on, using: null, location: right.location };
}
