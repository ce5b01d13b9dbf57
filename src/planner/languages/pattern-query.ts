/**
 * A graph pattern as the query that it stands for. A node with a label is a table, one without the rows of every type that is no
 * edge, an edge a walk from the rows before it, OPTIONAL MATCH a left join, WITH a subquery. Within one MATCH no edge is gone along
 * twice. Pure.
 *
 * A node without a label that an edge leads to is its name alone, and joined to no row, as long as nothing is asked of its row.
 */
import { degreeNames } from '../expressions/degree.ts';
import { entityCalls, nodeNameCall, rowColumns, unwoundColumn, walkColumns } from '../graph/pattern-columns.ts';
import { type ColumnType, compareText } from '../../log/values/value.ts';
import { errorAt } from '../error-location.ts';
import type {
  ColumnRef,
  EntityShape,
  Expression,
  OrderItem,
  Location,
  ProjectionItem,
  Query,
  Select,
  Source,
  WantedEntity,
} from '../statement.ts';
import type { Clause, Item, PatternChain, PatternEdge, PatternNode, Projection, Term } from '../pattern-tree.ts';
import { isAggregate, itemNamed, namesIn } from './pattern-terms.ts';
import { PatternUses } from './pattern-uses.ts';
import {
  both,
  call,
  column,
  compileCompared,
  compileCondition,
  compileTerm,
  equal,
  findShape,
  findVariable,
  isOfAnyType,
  type Names,
  type NodeVariable,
  type EdgeVariable,
  type Variable,
} from './pattern-values.ts';
import { allOf } from './tree-builders.ts';

type Match = Extract<Clause, { kind: 'match' }>;

/** The node at the end of the walked part of a chain; without a variable where it has no row. */
interface Reached {
  readonly id: Expression;
  readonly variable: NodeVariable | null;
}

interface Rows {
  readonly source: Source | null;
  readonly where: readonly Expression[];
  readonly names: Names;
}

/** A property that is a value, in every row that is matched. */
interface Fact {
  readonly property: string;
  readonly value: Term;
  readonly place: Location;
}

/** `isAlone`: an entity that is returned alone is one value, too, and not the columns of its row. */
export function patternQuery(clauses: readonly Clause[], isAlone: boolean): Query {
  return new PatternCompiler(clauses, isAlone ? null : rowReturned(clauses)).query(clauses);
}

/** Name of the rows that a write has made, and of a value that it has matched, by its number. */
export const madeRows = '#made';
export const valueName = (number: number): string => `#value ${number}`;

/** The RETURN of rows that were made: their nodes and edges have keys under their names, and the values follow. */
export function returnedQuery(
  clause: Projection,
  made: readonly { readonly name: string; readonly kind: 'node' | 'edge'; readonly type: string }[],
  values: readonly { readonly type: ColumnType; readonly shape: EntityShape | null }[],
): Query {
  return new PatternCompiler([clause], null).overMade(clause, made, values);
}

/** The name that RETURN shows as the columns of its row: alone, and of one type. */
function rowReturned(clauses: readonly Clause[]): string | null {
  const last = clauses.at(-1);
  if (last?.kind !== 'return' || last.distinct || last.isAll || last.items.length !== 1) return null;
  const [{ term }] = last.items as [Item];
  if (term.kind !== 'variable' || clauses.some(({ kind }) => kind === 'with')) return null;
  for (const clause of clauses) {
    if (clause.kind !== 'match') continue;
    for (const { nodes, edges } of clause.chains) {
      const node = nodes.find(({ name }) => name === term.name);
      if (node) return !clause.optional && node.labels[0]?.length === 1 ? term.name : null;
      const edge = edges.find(({ name }) => name === term.name);
      if (edge) return !clause.optional && edge.hops === null && edge.types.length === 1 ? term.name : null;
    }
  }
  return null;
}

class PatternCompiler {
  /** Facts about nodes that are bound: they hold of the same nodes in an OPTIONAL MATCH. */
  #facts = new Map<string, readonly Fact[]>();
  readonly #asRow: string | null;
  readonly #uses: PatternUses;
  #numbers = 0;
  #isNarrowed = false;

  constructor(clauses: readonly Clause[], asRow: string | null) {
    this.#asRow = asRow;
    this.#uses = new PatternUses(clauses, asRow);
  }

  query(clauses: readonly Clause[]): Query {
    let rows: Rows = { source: null, where: [], names: new Map() };
    for (const clause of clauses) {
      if (clause.kind === 'match') {
        rows = clause.optional ? this.#optional(clause, rows) : this.#match(clause, rows);
      } else if (clause.kind === 'unwind') rows = this.#unwind(clause, rows);
      else if (clause.kind === 'with') rows = this.#with(clause, rows);
      else return this.#returnQuery(clause, rows);
    }
    throw errorAt('REL_PARSE', 'a pattern ends in RETURN', clauses[0]!.place);
  }

  overMade(clause: Projection, made: Parameters<typeof returnedQuery>[1], values: Parameters<typeof returnedQuery>[2]): Query {
    const { place } = clause;
    const columns = [
      ...made.map(({ name }) => ({ name, type: 'string' as const })),
      ...values.map(({ type }, i) => ({ name: valueName(i), type })),
    ];
    let source: Source = { kind: 'given', rows: madeRows, tables: [{ name: madeRows, columns }], place };
    const names = new Map<string, Variable>();
    const wanted: WantedEntity[] = [];
    const entities = this.#name('entities');
    const used = new Set([...clause.items, ...clause.orderBy].flatMap(({ term }) => namesIn(term)));
    for (const { name, kind, type } of made) {
      if (!clause.isAll && !used.has(name)) continue;
      const { properties } = this.#uses.usesOf(name);
      if (clause.isAll) properties.add(rowColumns.entity);
      const key = column(madeRows, name, place);
      if (kind === 'node') {
        source = leftJoin(
          source,
          { kind: 'table', name: type, alias: name, place },
          equal(key, column(name, '_pk', place), place),
        );
        names.set(name, tableNode(name, type, place));
        continue;
      }
      const isEntity = properties.has(rowColumns.entity);
      const own = [...properties].filter((property) => property !== rowColumns.type);
      const read = [...own, ...(isEntity ? [rowColumns.from, rowColumns.to] : [])];
      const right: Source = { kind: 'graph-rows', of: 'edges', types: [type], properties: read, alias: name, place };
      source = leftJoin(source, right, equal(key, column(name, rowColumns.key, place), place));
      const columnOf = (asked: string, where: Location = place): Expression =>
        column(isEntity && asked === rowColumns.entity ? entities : name, asked === rowColumns.entity ? name : asked, where);
      names.set(name, {
        kind: 'edge',
        mark: columnOf(rowColumns.key),
        key: columnOf(rowColumns.key),
        table: null,
        isList: false,
        property: columnOf,
      });
      if (!isEntity) continue;
      const edge = {
        entity: column(name, rowColumns.entity, place),
        from: column(name, rowColumns.from, place),
        to: column(name, rowColumns.to, place),
      };
      wanted.push({ name, as: 'relationship', edge, start: null, steps: [], known: [], types: [] });
    }
    for (const [i, { shape }] of values.entries())
      names.set(valueName(i), { kind: 'value', value: column(madeRows, valueName(i), place), shape, isAny: false });
    if (wanted.length > 0) source = { kind: 'entities', input: source, wanted, alias: entities, place };
    return this.#returnQuery(clause, { source, where: [], names });
  }

  #name(what: string): string {
    return `#${what}${++this.#numbers}`;
  }

  #match(clause: Match, rows: Rows): Rows {
    const facts = factsOf(clause);
    const matched = this.#chains(clause.chains, rows, { facts, isTyped: () => false });
    for (const [name, more] of facts) this.#facts.set(name, [...(this.#facts.get(name) ?? []), ...more]);
    if (clause.where === null) return matched;
    return { ...matched, where: [...matched.where, compileCondition(clause.where, matched.names)] };
  }

  #unwind({ list, name, place }: Extract<Clause, { kind: 'unwind' }>, rows: Rows): Rows {
    if (rows.names.has(name)) throw errorAt('REL_PARSE', `${JSON.stringify(name)} is bound already`, place);
    const alias = this.#name('unwind');
    const value: Expression = call('#ANY', [column(alias, unwoundColumn, place)], place);
    const shape = findShape(list, rows.names);
    const of = shape?.kind === 'list' ? shape.of : null;
    const names = new Map(rows.names).set(name, { kind: 'value', value, shape: of, isAny: true });
    const input = rows.source ?? { kind: 'values', rows: [[]], place };
    return { source: { kind: 'unwind', input, list: compileTerm(list, rows.names), alias, place }, where: rows.where, names };
  }

  /** `isTyped`: the node of this name has to be read as a row of its type. */
  #chains(
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
    const entities = this.#name('entities');
    for (const chain of chains) {
      const first = this.#firstOf(chain, names, about.facts);
      const reached: Reached[] = [];
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
        throw errorAt('REL_PARSE', `${JSON.stringify(chain.name)} is bound already`, chain.nodes[0]!.place);
      names.set(chain.name, { kind: 'path', property: (_name, place) => column(entities, chain.name!, place) });
      if (!this.#uses.usesOf(chain.name).properties.has(rowColumns.entity)) continue;
      const types = chain.edges.some((each) => each.types.length === 0) ? [] : chain.edges.flatMap((each) => each.types);
      wanted.push({
        name: chain.name,
        as: 'path',
        edge: null,
        start: reached[0]!.id,
        steps,
        known: this.#rowsOf(reached, chain.nodes[0]!.place),
        types,
      });
    }
    const [first] = chains;
    if (wanted.length > 0) source = { kind: 'entities', input: source!, wanted, alias: entities, place: first!.nodes[0]!.place };
    return { source, where, names, some: some! };
  }

  /** The reached nodes that have a row. */
  #rowsOf(reached: readonly Reached[], place: Location): WantedEntity['known'] {
    return reached.flatMap(({ variable }) => {
      if (variable === null) return [];
      const isRead = variable.table !== null || variable.hasEntity;
      return isRead ? [{ name: variable.id, entity: variable.property(rowColumns.entity, place) }] : [];
    });
  }

  /** The node at which a chain starts: one bound before, else the node with the most conditions. */
  #firstOf({ nodes }: PatternChain, names: Names, facts: ReadonlyMap<string, readonly Fact[]>): number {
    const said = nodes.map(({ name, labels, properties }): number => {
      if (name !== null && names.has(name)) return 7;
      const asked = [
        ...properties.map((each) => each.name),
        ...(name === null ? [] : (facts.get(name) ?? [])).map((fact) => fact.property),
      ];
      return (labels.length > 0 ? 2 : 0) + (asked.length > 0 ? 1 : 0) + (asked.includes('id') ? 3 : 0);
    });
    return said.indexOf(Math.max(...said));
  }

  /** The rows with a node that no edge leads to. */
  #begin(chain: PatternChain, first: number, before: Source | null, matching: Matching): Reached & { source: Source } {
    const node = chain.nodes[first]!;
    const { names, where } = matching;
    const known = node.name === null ? undefined : names.get(node.name);
    if (known !== undefined) {
      const found = this.#matchKnown(node, known, before!, matching);
      // A walk from nowhere has no rows; a node alone would have one.
      if (chain.edges.length === 0) where.push({ kind: 'is-null', operand: found.id, negated: true, place: node.place });
      return found;
    }
    const { place, labels } = node;
    const edge = chain.edges[first] ?? chain.edges[first - 1];
    // A walk of no edges begins at nodes that have none, too.
    const needsEdge = edge !== undefined && (edge.hops === null || edge.hops.least === null);
    const isAny = node.properties.length === 0 && !(node.name !== null && matching.facts.has(node.name));
    if (needsEdge && isAny && labels.length === 0 && !this.#asksRow(node, matching)) {
      const alias = node.name ?? this.#name('node');
      const table: Source = { kind: 'function', name: degreeNames.function('both'), arguments: [], alias, place };
      const variable = this.#namedNode(node, alias, column(alias, degreeNames.node, place), matching);
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
    const { place, labels } = node;
    const alias = node.name ?? this.#name('node');
    const [either = [], ...more] = labels;
    const [label] = either;
    const isTable = either.length === 1 && !(node.name !== null && matching.isTyped(node.name));
    const properties = this.#propertiesOf(node);
    const right: Source = isTable
      ? { kind: 'table', name: label!, alias, place }
      : { kind: 'graph-rows', of: 'nodes', types: either, properties, alias, place };
    const hasEntity = properties.includes(rowColumns.entity);
    const variable = isTable ? tableNode(alias, label!, place) : { ...rowNode(alias, either, place), hasEntity };
    if (node.name !== null) matching.names.set(node.name, variable);
    this.#having(node, variable, matching);
    let source = besides(before, right, id && equal(variable.id, id, place));
    for (const others of more) source = this.#joinLabels(others, variable, source, place);
    return { source, id: variable.id, variable };
  }

  /** The rows whose node is of one of these types, too. */
  #joinLabels(labels: readonly string[], { id, type, labels: known }: NodeVariable, before: Source, place: Location): Source {
    const alias = this.#name('label');
    const right: Source = { kind: 'graph-rows', of: 'nodes', types: labels, properties: [], alias, place };
    const same = equal(column(alias, rowColumns.name, place), id, place);
    if (type !== null)
      return besides(before, right, both([same, equal(column(alias, rowColumns.type, place), type, place)], place));
    if (known.length > 0 && known.every((label) => labels.includes(label))) return before;
    // A row is of one type.
    return besides(before, right, { kind: 'is-null', operand: column(alias, rowColumns.type, place), negated: false, place });
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
      readonly from: Reached;
      readonly node: PatternNode;
    },
    before: Source,
    matching: Matching,
  ): Reached & { source: Source; trail: Expression } {
    const { edge, direction, from, node } = step;
    const { names, where, walks } = matching;
    const { place, hops, types } = edge;
    if (edge.name !== null && names.has(edge.name)) {
      throw errorAt('REL_PARSE', `${JSON.stringify(edge.name)} is bound already: an edge has a name of its own`, place);
    }
    const uses = edge.name === null ? null : this.#uses.usesOf(edge.name);
    const isEntity = uses?.properties.has(rowColumns.entity) === true;
    const read = this.#propertiesOf(edge).filter((name) => hops === null || name !== rowColumns.entity);
    if (hops !== null && read.length > 0) throw errorAt('REL_PARSE', 'a path of several edges has no properties', place);
    const walk = this.#name('walk');
    const walkColumn = (name: string): ColumnRef => column(walk, name, place);
    let source: Source = {
      kind: 'walk',
      input: before,
      from: from.id,
      types,
      direction,
      hops,
      avoids: walks.map((each) => column(each, walkColumns.trail, place)),
      alias: walk,
      place,
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
              // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
              { when: { kind: 'is-null', operand: mark, negated: true, place }, then: { kind: 'constant', cell: type!, place } },
            ],
            otherwise: null,
            place,
          }
        : null;
    if (read.some((name) => typed === null || name !== rowColumns.type) || isWhole) {
      const alias = this.#name('edge');
      const ends = isEntity ? [rowColumns.from, rowColumns.to] : [];
      const properties = [...read.filter((name) => name !== rowColumns.type), ...ends];
      const right: Source = isTyped
        ? { kind: 'table', name: type!, alias, place }
        : { kind: 'graph-rows', of: 'edges', types, properties, alias, place };
      const systemFrom = column(alias, isTyped ? 'system_from' : rowColumns.name, place);
      source = besides(source, right, equal(walkColumn(walkColumns.edge), systemFrom, place));
      const key = column(alias, isTyped ? '_pk' : rowColumns.key, place);
      const edgeColumn = (name: string): Expression => column(alias, name, place);
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
      where.push(equal(variable.property(name, place), compileTerm(value, names), place));
    }
    const end = walkColumn(walkColumns.end);
    let reached: Reached & { source: Source };
    const known = node.name === null ? undefined : names.get(node.name);
    if (known !== undefined) {
      const found = this.#matchKnown(node, known, source, matching);
      where.push(equal(found.id, end, node.place));
      reached = { ...found, id: end };
    } else if (node.labels.length > 0 || this.#asksRow(node, matching)) reached = this.#row(node, source, end, matching);
    else {
      const variable_ = this.#namedNode(node, node.name ?? this.#name('node'), end, matching);
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
        known: this.#rowsOf([from, reached], place),
        types,
      });
    return { ...reached, trail };
  }

  /** A node of which nothing is known but how edges name it. */
  #namedNode(node: PatternNode, name: string, id: Expression, { wanted, entities }: Matching): NodeVariable {
    const isEntity = node.name !== null && this.#uses.usesOf(node.name).properties.has(rowColumns.entity);
    if (isEntity) wanted.push({ name, as: 'node', edge: null, start: id, steps: [], known: [], types: [] });
    const property = (asked: string, place: Location): Expression => {
      if (asked === 'id') return id;
      if (asked === rowColumns.entity && isEntity) return column(entities, name, place);
      throw errorAt('REL_PARSE', `${JSON.stringify(name)} has no property ${JSON.stringify(asked)} here`, place);
    };
    return { kind: 'node', labels: [], id, type: null, table: null, hasEntity: false, property };
  }

  /** A node that an earlier part of the pattern has bound. */
  #matchKnown(node: PatternNode, known: Variable, before: Source, matching: Matching): Reached & { source: Source } {
    if (known.kind !== 'node') throw errorAt('REL_PARSE', `${JSON.stringify(node.name)} is no node`, node.place);
    this.#having(node, known, matching);
    let source = before;
    for (const labels of node.labels) source = this.#joinLabels(labels, known, source, node.place);
    return { source, id: known.id, variable: known };
  }

  #having(node: PatternNode, variable: NodeVariable, { names, where }: Matching): void {
    for (const { name, value } of node.properties) {
      where.push(equal(variable.property(name, node.place), compileTerm(value, names), node.place));
    }
  }

  /** The pattern by itself, joined by the shared nodes; conditions apply before a match counts as missing. */
  #optional(clause: Match, rows: Rows): Rows {
    const { place } = clause;
    const boundNode = (name: string | null): NodeVariable | undefined => {
      const known = name === null ? undefined : rows.names.get(name);
      if (known === undefined || known.kind === 'node') return known;
      throw errorAt('REL_PARSE', `${JSON.stringify(name)} is bound already, and is no node`, place);
    };
    // Conditions on values from before are checked where both sides are available.
    const outer: Term[] = [];
    const inside = <T extends PatternNode | PatternEdge>(part: T): T => this.#inside(part, rows.names, outer);
    const chains = clause.chains.map((chain) => ({
      ...chain,
      nodes: chain.nodes.map((node) => inside(asBound(node, boundNode(node.name)))),
      edges: chain.edges.map(inside),
    }));
    // Known facts about a shared node narrow the search for the pattern.
    const shared = new Set(chains.flatMap(({ nodes }) => nodes.flatMap(({ name }) => (boundNode(name) ? [name!] : []))));
    const facts = new Map([...this.#facts].filter(([name]) => shared.has(name)));
    const isTyped = (name: string): boolean => (boundNode(name)?.type ?? null) !== null;
    for (const [name, list] of facts) for (const { property } of list) this.#uses.usesOf(name).properties.add(property);
    const own = new Map([...facts, ...factsOf(clause)]);
    const alone = this.#chains(chains, { source: null, where: [], names: new Map() }, { facts: own, isTyped });
    const known = [...facts].flatMap(([name, list]) =>
      list.map(({ property, value, place: where }) => {
        const node = alone.names.get(name) as NodeVariable;
        return equal(node.property(property, where), compileTerm(value, alone.names), where);
      }),
    );
    const [first] = shared;
    const among =
      first !== undefined && this.#narrows(rows, facts.get(first)) ? [this.#among(first, alone.names, rows, place)] : [];
    const matched = { ...alone, where: [...alone.where, ...known, ...among] };
    const alias = this.#name('optional');
    const { projection, names: inner } = this.#passedOn(
      [...matched.names].map(([name, variable]) => ({ name, variable })),
      alias,
      place,
    );
    // Rows without a column are rows, too.
    if (projection.length === 0) projection.push({ kind: 'expression', expression: alone.some, alias: '#some', place });
    const right: Source = {
      kind: 'subquery',
      query: query(select(projection, matched, place), place),
      alias,
      columns: [],
      place,
    };
    const names = new Map(rows.names);
    const on: Expression[] = [];
    for (const [name, variable] of inner) {
      const before = boundNode(name);
      if (before === undefined) names.set(name, variable);
      else if (variable.kind === 'node') on.push(...sameNode(before, variable, place));
    }
    for (const each of [...outer, ...(clause.where === null ? [] : [clause.where])]) on.push(compileCondition(each, names));
    const left: Source = rows.source ?? { kind: 'values', rows: [[]], place };
    const source: Source = { kind: 'join', type: 'left', left, right, on: allOf(on), using: null, place };
    return { source, where: rows.where, names };
  }

  /** Moves properties whose values name earlier variables into conditions. */
  #inside<T extends PatternNode | PatternEdge>(part: T, before: Names, conditions: Term[]): T {
    const isOuter = (value: Term): boolean => namesIn(value).some((name) => before.has(name));
    const outer = part.properties.filter(({ value }) => isOuter(value));
    if (outer.length === 0) return part;
    const named = part.name ?? this.#name('part');
    for (const { name, value } of outer) {
      const { place } = value;
      this.#uses.usesOf(named).properties.add(name);
      const left: Term = { kind: 'property', of: { kind: 'variable', name: named, place }, name, place };
      conditions.push({ kind: 'compare', op: '=', left, right: value, place });
    }
    return { ...part, name: named, properties: part.properties.filter(({ value }) => !isOuter(value)) };
  }

  /** Whether it is worth while to work out first which nodes there are. It is done once: each time doubles the work before it. */
  #narrows({ source, where }: Rows, facts: readonly Fact[] = []): boolean {
    if (this.#isNarrowed || facts.some(({ property }) => property === 'id')) return false;
    this.#isNarrowed = where.length > 0 || source?.kind === 'join' || source?.kind === 'walk' || source?.kind === 'subquery';
    return this.#isNarrowed;
  }

  /** A condition that the node is one of the bound ones. */
  #among(name: string, names: Names, rows: Rows, place: Location): Expression {
    const [inner, outer] = [names.get(name) as NodeVariable, rows.names.get(name) as NodeVariable];
    const item: ProjectionItem = { kind: 'expression', expression: outer.id, alias: '#id', place };
    return { kind: 'in-query', operand: inner.id, query: query(select([item], rows, place), place), negated: false, place };
  }

  #with(written: Projection, rows: Rows): Rows {
    const clause = withAll(written, rows.names);
    const { place } = clause;
    const alias = this.#name('with');
    const grouped = clause.items.some(({ term }) => isAggregate(term));
    const carried = clause.items.map((item) => ({
      item,
      variable: item.term.kind === 'variable' ? findVariable(item.term.name, rows.names, item.term.place) : undefined,
    }));
    const passed = this.#passedOn(
      carried.flatMap(({ item: { name }, variable }) => (variable === undefined ? [] : [{ name, variable }])),
      alias,
      place,
    );
    const facts = clause.items.map(
      ({ name, term }) => [name, term.kind === 'variable' ? this.#facts.get(term.name) : null] as const,
    );
    this.#facts = new Map(facts.flatMap(([name, list]) => (list ? [[name, list]] : [])));
    const names = new Map(passed.names);
    const values: ProjectionItem[] = [];
    for (const { item, variable } of carried) {
      if (variable !== undefined && variable.kind !== 'value') continue;
      if (names.has(item.name)) throw errorAt('REL_PARSE', `${JSON.stringify(item.name)} is given twice`, item.term.place);
      values.push({ kind: 'expression', expression: compileTerm(item.term, rows.names), alias: item.name, place });
      const isAny = isOfAnyType(item.term, rows.names);
      const value = column(alias, item.name, place);
      const shape = findShape(item.term, rows.names);
      names.set(item.name, { kind: 'value', value: isAny ? call('#ANY', [value], place) : value, shape, isAny });
    }
    const projection = [...passed.projection, ...values];
    const groups = grouped || (clause.distinct && passed.projection.length > 0);
    const keys = groups ? [...passed.projection, ...values.filter((_, i) => !isAggregate(valuesOf(carried)[i]!.term))] : [];
    const made = {
      ...select(projection, rows, place),
      distinct: clause.distinct && !groups,
      groupBy: keys.flatMap(expressionOf),
    };
    const inner: Query = { ...query(made, place), ...this.#orderAndPage(clause, rows.names) };
    const after: Rows = { source: { kind: 'subquery', query: inner, alias, columns: [], place }, where: [], names };
    return clause.where === null ? after : { ...after, where: [compileCondition(clause.where, names)] };
  }

  /** Nodes and edges as columns: their keys, and the properties read. */
  #passedOn(
    variables: readonly { readonly name: string; readonly variable: Variable }[],
    alias: string,
    place: Location,
  ): { projection: ProjectionItem[]; names: Names } {
    const projection: ProjectionItem[] = [];
    const names = new Map<string, Variable>();
    for (const { name, variable } of variables) {
      if (variable.kind === 'value') continue;
      if (names.has(name)) throw errorAt('REL_PARSE', `${JSON.stringify(name)} is given twice`, place);
      const inner = (property: string): string => `${name}.${property}`;
      const add = (expression: Expression, as: string): ColumnRef => {
        projection.push({ kind: 'expression', expression, alias: inner(as), place });
        return column(alias, inner(as), place);
      };
      const { properties } = this.#uses.usesOf(name);
      const isOf = (property: string): boolean => variable.kind !== 'path' || property === rowColumns.entity;
      for (const property of properties) if (isOf(property)) add(variable.property(property, place), property);
      const property = (wanted: string, where: Location): Expression => column(alias, inner(wanted), where);
      if (variable.kind === 'path') {
        names.set(name, { kind: 'path', property });
        continue;
      }
      if (variable.kind === 'edge') {
        const { mark, key, isList } = variable;
        names.set(name, { kind: 'edge', mark: add(mark, '#edge'), key: key && add(key, '#key'), table: null, isList, property });
        continue;
      }
      const { labels, id, type } = variable;
      const hasEntity = properties.has(rowColumns.entity);
      const kept = { id: add(id, '#id'), type: type && add(type, '#type of row') };
      names.set(name, { kind: 'node', labels, ...kept, table: null, hasEntity, property });
    }
    return { projection, names };
  }

  #returnQuery(written: Projection, rows: Rows): Query {
    const clause = withAll(written, rows.names);
    const { place } = clause;
    const grouped = clause.items.some(({ term }) => isAggregate(term));
    const [only] = clause.items;
    const whole = only?.term.kind === 'variable' && only.term.name === this.#asRow ? rows.names.get(only.term.name) : undefined;
    if ((whole?.kind === 'node' || whole?.kind === 'edge') && whole.table !== null) {
      const star: ProjectionItem = { kind: 'star', table: whole.table, place };
      return { ...query(select([star], rows, place), place), ...this.#orderAndPage(clause, rows.names), oneInstant: true };
    }
    const items = clause.items.map(
      (item): ProjectionItem => ({
        kind: 'expression',
        expression: compileTerm(item.term, rows.names),
        alias: item.name,
        place: item.term.place,
      }),
    );
    const entities = clause.items.map(({ term }) => findShape(term, rows.names));
    // Groups are made by what entities are ordered by, too: json has no order.
    const groups = grouped || (clause.distinct && entities.some((shape) => shape !== null));
    const groupBy = items.flatMap((item, i) => {
      const { term } = clause.items[i]!;
      if (!groups || isAggregate(term)) return [];
      return term.kind === 'variable' ? [...expressionOf(item), compileCompared(term, rows.names)] : expressionOf(item);
    });
    const made = { ...select(items, rows, place), distinct: clause.distinct && !groups, groupBy };
    const shapes = entities.some((shape) => shape !== null) ? { entities } : {};
    return { ...query(made, place), ...this.#orderAndPage(clause, rows.names), ...shapes, oneInstant: true };
  }

  #orderAndPage({ orderBy, skip, limit, items }: Projection, names: Names): Pick<Query, 'orderBy' | 'limit' | 'offset'> {
    const orderKey = (term: Term): Expression => {
      const item = itemNamed(term, items);
      if (item === undefined) return compileCompared(term, names);
      return item.term.kind === 'variable' ? compileCompared(item.term, names) : column(null, item.name, term.place);
    };
    const orderItems = ({ term, descending }: Projection['orderBy'][number]): OrderItem[] => {
      const itemBy = (expression: Expression): OrderItem => ({ expression, descending, collate: 'codepoint', nullsFirst: false });
      const of = itemNamed(term, items)?.term ?? term;
      if (!isOfAnyType(of, names)) return [itemBy(orderKey(term))];
      // Numbers by their size, and then texts: no plan knows which of them they are.
      const value = compileTerm(of, names);
      return ['#NUMBER', '#TOSTRING'].map((key) => itemBy(call(key, [value], term.place)));
    };
    return {
      orderBy: orderBy.flatMap(orderItems),
      limit,
      offset: skip,
    };
  }
}

/** Replaces `*` by the names that it stands for, in their order, before the items. */
function withAll(clause: Projection, names: Names): Projection {
  if (!clause.isAll) return clause;
  const { place } = clause;
  const all = [...names.keys()].sort(compareText).map((name): Item => ({ name, term: { kind: 'variable', name, place } }));
  if (all.length === 0) throw errorAt('REL_PARSE', 'there are no variables here for *', place);
  return { ...clause, isAll: false, items: [...all, ...clause.items] };
}

function valuesOf(carried: readonly { readonly item: Item; readonly variable: Variable | undefined }[]): readonly Item[] {
  return carried.flatMap(({ item, variable }) => (variable === undefined || variable.kind === 'value' ? [item] : []));
}

function expressionOf(item: ProjectionItem): readonly Expression[] {
  return item.kind === 'expression' ? [item.expression] : [];
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
function tableNode(table: string, label: string, place: Location): NodeVariable {
  const given = [{ name: null, value: column(table, 'id', place) }];
  const id: Expression = { kind: 'call', name: nodeNameCall, arguments: given, place };
  const property = (name: string, where: Location): Expression =>
    name === rowColumns.entity ? call(entityCalls.nodes, [column(table, '_pk', where)], where) : column(table, name, where);
  return { kind: 'node', labels: [label], id, type: null, table, hasEntity: true, property };
}

function rowNode(alias: string, labels: readonly string[], place: Location): NodeVariable {
  const id = column(alias, rowColumns.name, place);
  const property = (name: string, where: Location): Expression => (name === 'id' ? id : column(alias, name, where));
  return { kind: 'node', labels, id, type: column(alias, rowColumns.type, place), table: null, hasEntity: false, property };
}

function noRow(_name: string, place: Location): never {
  throw errorAt('REL_PARSE', 'a path of several edges has no properties', place);
}

/** A node of an OPTIONAL MATCH that is bound has the types that it was bound with. */
function asBound(node: PatternNode, known: NodeVariable | undefined): PatternNode {
  if (known === undefined || known.labels.length === 0) return node;
  return { ...node, labels: [known.labels, ...node.labels] };
}

function sameNode(one: NodeVariable, other: NodeVariable, place: Location): Expression[] {
  const same = [equal(one.id, other.id, place)];
  if (one.type !== null && other.type !== null) same.push(equal(one.type, other.type, place));
  return same;
}

/** Facts by `=` that a clause states about single nodes: in braces, or in its condition, joined by AND. */
function factsOf({ chains, where }: Match): ReadonlyMap<string, readonly Fact[]> {
  const facts = new Map<string, Fact[]>();
  const add = (name: string, fact: Fact): void => void facts.set(name, [...(facts.get(name) ?? []), fact]);
  for (const { name, properties, place } of chains.flatMap(({ nodes }) => nodes)) {
    if (name === null) continue;
    for (const { name: property, value } of properties) if (value.kind === 'literal') add(name, { property, value, place });
  }
  const read = (condition: Term): void => {
    if (condition.kind === 'and') return [condition.left, condition.right].forEach(read);
    if (condition.kind !== 'compare' || condition.op !== '=') return;
    const { left, right, place } = condition;
    const [property, value] = left.kind === 'property' ? [left, right] : [right, left];
    if (property.kind === 'property' && property.of.kind === 'variable' && value.kind === 'literal')
      add(property.of.name, { property: property.name, value, place });
  };
  if (where !== null) read(where);
  return facts;
}

/** A row that is not there, or not to be seen, is NULL. */
function leftJoin(left: Source, right: Source, on: Expression): Source {
  return { kind: 'join', type: 'left', left, right, on, using: null, place: right.place };
}

function besides(left: Source | null, right: Source, on: Expression | null): Source {
  if (left === null) return right;
  return { kind: 'join', type: 'inner', left, right, on, using: null, place: right.place };
}

function select(projection: readonly ProjectionItem[], { source, where }: Rows, place: Location): Select {
  return {
    kind: 'select',
    distinct: false,
    projection,
    from: source ?? { kind: 'values', rows: [[]], place },
    where: where.length === 0 ? null : both(where, place),
    groupBy: [],
    window: null,
    having: null,
    rankBy: [],
    compute: [],
    place,
  };
}

function query(body: Select, place: Location): Query {
  return { with: [], body, asOf: null, orderBy: [], limit: null, offset: null, after: null, facets: [], place };
}
