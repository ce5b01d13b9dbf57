/**
 * A graph pattern as the query that it stands for. A node with a label is a table, one without the rows of every type that is no
 * edge, an edge a walk from the rows before it, OPTIONAL MATCH a left join, WITH a subquery. Within one MATCH no edge is gone along
 * twice. Pure.
 *
 * A node without a label that an edge leads to is its name alone, and joined to no row, as long as nothing is asked of its row.
 */
import { rowColumns, unwoundColumn } from '../graph/pattern-columns.ts';
import { type ColumnType, compareText } from '../../log/values/value.ts';
import { errorAt } from '../syntax/error-location.ts';
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
} from '../syntax/statement.ts';
import type { Clause, Item, PatternEdge, PatternNode, Projection, Term } from '../syntax/pattern-tree.ts';
import { type Fact, PatternChains, type Rows, tableNode } from './pattern-chains.ts';
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
  type Variable,
} from './pattern-values.ts';
import { allOf } from './tree-builders.ts';

type Match = Extract<Clause, { kind: 'match' }>;

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
  createdElements: readonly { readonly name: string; readonly kind: 'node' | 'edge'; readonly type: string }[],
  values: readonly { readonly type: ColumnType; readonly shape: EntityShape | null }[],
): Query {
  return new PatternCompiler([clause], null).overMade(clause, createdElements, values);
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
  readonly #chains: PatternChains;
  #numbers = 0;
  #isNarrowed = false;

  constructor(clauses: readonly Clause[], asRow: string | null) {
    this.#asRow = asRow;
    this.#uses = new PatternUses(clauses, asRow);
    this.#chains = new PatternChains(this.#uses, (prefix) => this.#name(prefix));
  }

  query(clauses: readonly Clause[]): Query {
    let rows: Rows = { source: null, where: [], names: new Map() };
    for (const clause of clauses) {
      if (clause.kind === 'match') {
        rows = clause.optional ? this.#optional(clause, rows) : this.#match(clause, rows);
      } else if (clause.kind === 'unwind') rows = this.#unwind(clause, rows);
      else if (clause.kind === 'with') rows = this.#withClause(clause, rows);
      else return this.#returnQuery(clause, rows);
    }
    throw errorAt('REL_PARSE', 'a pattern ends in RETURN', clauses[0]!.location);
  }

  overMade(
    clause: Projection,
    createdElements: Parameters<typeof returnedQuery>[1],
    values: Parameters<typeof returnedQuery>[2],
  ): Query {
    const { location } = clause;
    const columns = [
      ...createdElements.map(({ name }) => ({ name, type: 'string' as const })),
      ...values.map(({ type }, i) => ({ name: valueName(i), type })),
    ];
    let source: Source = { kind: 'given', rows: madeRows, tables: [{ name: madeRows, columns }], location };
    const names = new Map<string, Variable>();
    const wanted: WantedEntity[] = [];
    const entities = this.#name('entities');
    const used = new Set([...clause.items, ...clause.orderBy].flatMap(({ term }) => namesIn(term)));
    for (const { name, kind, type } of createdElements) {
      if (!clause.isAll && !used.has(name)) continue;
      const { properties } = this.#uses.usesOf(name);
      if (clause.isAll) properties.add(rowColumns.entity);
      const key = column(madeRows, name, location);
      if (kind === 'node') {
        source = leftJoin(
          source,
          { kind: 'table', name: type, alias: name, location },
          equal(key, column(name, '_pk', location), location),
        );
        names.set(name, tableNode(name, type, location));
        continue;
      }
      const isEntity = properties.has(rowColumns.entity);
      const own = [...properties].filter((property) => property !== rowColumns.type);
      const read = [...own, ...(isEntity ? [rowColumns.from, rowColumns.to] : [])];
      const right: Source = { kind: 'graph-rows', of: 'edges', types: [type], properties: read, alias: name, location };
      source = leftJoin(source, right, equal(key, column(name, rowColumns.key, location), location));
      const columnOf = (columnName: string, where: Location = location): Expression =>
        column(
          isEntity && columnName === rowColumns.entity ? entities : name,
          columnName === rowColumns.entity ? name : columnName,
          where,
        );
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
        entity: column(name, rowColumns.entity, location),
        from: column(name, rowColumns.from, location),
        to: column(name, rowColumns.to, location),
      };
      wanted.push({ name, as: 'relationship', edge, start: null, steps: [], known: [], types: [] });
    }
    for (const [i, { shape }] of values.entries())
      names.set(valueName(i), { kind: 'value', value: column(madeRows, valueName(i), location), shape, isAny: false });
    if (wanted.length > 0) source = { kind: 'entities', input: source, wanted, alias: entities, location };
    return this.#returnQuery(clause, { source, where: [], names });
  }

  #name(prefix: string): string {
    return `#${prefix}${++this.#numbers}`;
  }

  #match(clause: Match, rows: Rows): Rows {
    const facts = factsOf(clause);
    const matched = this.#chains.join(clause.chains, rows, { facts, isTyped: () => false });
    for (const [name, more] of facts) this.#facts.set(name, [...(this.#facts.get(name) ?? []), ...more]);
    if (clause.where === null) return matched;
    return { ...matched, where: [...matched.where, compileCondition(clause.where, matched.names)] };
  }

  #unwind({ list, name, location }: Extract<Clause, { kind: 'unwind' }>, rows: Rows): Rows {
    if (rows.names.has(name)) throw errorAt('REL_PARSE', `${JSON.stringify(name)} is bound already`, location);
    const alias = this.#name('unwind');
    const value: Expression = call('#ANY', [column(alias, unwoundColumn, location)], location);
    const shape = findShape(list, rows.names);
    const of = shape?.kind === 'list' ? shape.of : null;
    const names = new Map(rows.names).set(name, { kind: 'value', value, shape: of, isAny: true });
    const input = rows.source ?? { kind: 'values', rows: [[]], location };
    return { source: { kind: 'unwind', input, list: compileTerm(list, rows.names), alias, location }, where: rows.where, names };
  }

  /** The pattern by itself, joined by the shared nodes; conditions apply before a match counts as missing. */
  #optional(clause: Match, rows: Rows): Rows {
    const { location } = clause;
    const boundNode = (name: string | null): NodeVariable | undefined => {
      const known = name === null ? undefined : rows.names.get(name);
      if (known === undefined || known.kind === 'node') return known;
      throw errorAt('REL_PARSE', `${JSON.stringify(name)} is bound already, and is no node`, location);
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
    const alone = this.#chains.join(chains, { source: null, where: [], names: new Map() }, { facts: own, isTyped });
    const known = [...facts].flatMap(([name, list]) =>
      list.map(({ property, value, location: where }) => {
        const node = alone.names.get(name) as NodeVariable;
        return equal(node.property(property, where), compileTerm(value, alone.names), where);
      }),
    );
    const [first] = shared;
    const among =
      first !== undefined && this.#narrows(rows, facts.get(first)) ? [this.#among(first, alone.names, rows, location)] : [];
    const matched = { ...alone, where: [...alone.where, ...known, ...among] };
    const alias = this.#name('optional');
    const { projection, names: inner } = this.#passedOn(
      [...matched.names].map(([name, variable]) => ({ name, variable })),
      alias,
      location,
    );
    // Rows without a column are rows, too.
    if (projection.length === 0) projection.push({ kind: 'expression', expression: alone.some, alias: '#some', location });
    const right: Source = {
      kind: 'subquery',
      query: query(select(projection, matched, location), location),
      alias,
      columns: [],
      location,
    };
    const names = new Map(rows.names);
    const on: Expression[] = [];
    for (const [name, variable] of inner) {
      const before = boundNode(name);
      if (before === undefined) names.set(name, variable);
      else if (variable.kind === 'node') on.push(...sameNode(before, variable, location));
    }
    for (const each of [...outer, ...(clause.where === null ? [] : [clause.where])]) on.push(compileCondition(each, names));
    const left: Source = rows.source ?? { kind: 'values', rows: [[]], location };
    const source: Source = { kind: 'join', type: 'left', left, right, on: allOf(on), using: null, location };
    return { source, where: rows.where, names };
  }

  /** Moves properties whose values name earlier variables into conditions. */
  #inside<T extends PatternNode | PatternEdge>(part: T, before: Names, conditions: Term[]): T {
    const isOuter = (value: Term): boolean => namesIn(value).some((name) => before.has(name));
    const outer = part.properties.filter(({ value }) => isOuter(value));
    if (outer.length === 0) return part;
    const named = part.name ?? this.#name('part');
    for (const { name, value } of outer) {
      const { location } = value;
      this.#uses.usesOf(named).properties.add(name);
      const left: Term = { kind: 'property', of: { kind: 'variable', name: named, location }, name, location };
      conditions.push({ kind: 'compare', op: '=', left, right: value, location });
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
  #among(name: string, names: Names, rows: Rows, location: Location): Expression {
    const [inner, outer] = [names.get(name) as NodeVariable, rows.names.get(name) as NodeVariable];
    const item: ProjectionItem = { kind: 'expression', expression: outer.id, alias: '#id', location };
    return {
      kind: 'in-query',
      operand: inner.id,
      query: query(select([item], rows, location), location),
      negated: false,
      location,
    };
  }

  #withClause(written: Projection, rows: Rows): Rows {
    const clause = withAll(written, rows.names);
    const { location } = clause;
    const alias = this.#name('with');
    const grouped = clause.items.some(({ term }) => isAggregate(term));
    const carried = clause.items.map((item) => ({
      item,
      variable: item.term.kind === 'variable' ? findVariable(item.term.name, rows.names, item.term.location) : undefined,
    }));
    const passed = this.#passedOn(
      carried.flatMap(({ item: { name }, variable }) => (variable === undefined ? [] : [{ name, variable }])),
      alias,
      location,
    );
    const facts = clause.items.map(
      ({ name, term }) => [name, term.kind === 'variable' ? this.#facts.get(term.name) : null] as const,
    );
    this.#facts = new Map(facts.flatMap(([name, list]) => (list ? [[name, list]] : [])));
    const names = new Map(passed.names);
    const values: ProjectionItem[] = [];
    for (const { item, variable } of carried) {
      if (variable !== undefined && variable.kind !== 'value') continue;
      if (names.has(item.name)) throw errorAt('REL_PARSE', `${JSON.stringify(item.name)} is given twice`, item.term.location);
      values.push({ kind: 'expression', expression: compileTerm(item.term, rows.names), alias: item.name, location });
      const isAny = isOfAnyType(item.term, rows.names);
      const value = column(alias, item.name, location);
      const shape = findShape(item.term, rows.names);
      names.set(item.name, { kind: 'value', value: isAny ? call('#ANY', [value], location) : value, shape, isAny });
    }
    const projection = [...passed.projection, ...values];
    const groups = grouped || (clause.distinct && passed.projection.length > 0);
    const keys = groups ? [...passed.projection, ...values.filter((_, i) => !isAggregate(valuesOf(carried)[i]!.term))] : [];
    const selectTail = {
      ...select(projection, rows, location),
      distinct: clause.distinct && !groups,
      groupBy: keys.flatMap(expressionOf),
    };
    const inner: Query = { ...query(selectTail, location), ...this.#orderAndPage(clause, rows.names) };
    const after: Rows = { source: { kind: 'subquery', query: inner, alias, columns: [], location }, where: [], names };
    return clause.where === null ? after : { ...after, where: [compileCondition(clause.where, names)] };
  }

  /** Nodes and edges as columns: their keys, and the properties read. */
  #passedOn(
    variables: readonly { readonly name: string; readonly variable: Variable }[],
    alias: string,
    location: Location,
  ): { projection: ProjectionItem[]; names: Names } {
    const projection: ProjectionItem[] = [];
    const names = new Map<string, Variable>();
    for (const { name, variable } of variables) {
      if (variable.kind === 'value') continue;
      if (names.has(name)) throw errorAt('REL_PARSE', `${JSON.stringify(name)} is given twice`, location);
      const inner = (property: string): string => `${name}.${property}`;
      const add = (expression: Expression, as: string): ColumnRef => {
        projection.push({ kind: 'expression', expression, alias: inner(as), location });
        return column(alias, inner(as), location);
      };
      const { properties } = this.#uses.usesOf(name);
      const isOf = (property: string): boolean => variable.kind !== 'path' || property === rowColumns.entity;
      for (const property of properties) if (isOf(property)) add(variable.property(property, location), property);
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
      const rowIdentity = { id: add(id, '#id'), type: type && add(type, '#type of row') };
      names.set(name, { kind: 'node', labels, ...rowIdentity, table: null, hasEntity, property });
    }
    return { projection, names };
  }

  #returnQuery(projection: Projection, rows: Rows): Query {
    const clause = withAll(projection, rows.names);
    const { location } = clause;
    const grouped = clause.items.some(({ term }) => isAggregate(term));
    const [only] = clause.items;
    const whole = only?.term.kind === 'variable' && only.term.name === this.#asRow ? rows.names.get(only.term.name) : undefined;
    if ((whole?.kind === 'node' || whole?.kind === 'edge') && whole.table !== null) {
      const star: ProjectionItem = { kind: 'star', table: whole.table, location };
      return { ...query(select([star], rows, location), location), ...this.#orderAndPage(clause, rows.names), oneInstant: true };
    }
    const items = clause.items.map(
      (item): ProjectionItem => ({
        kind: 'expression',
        expression: compileTerm(item.term, rows.names),
        alias: item.name,
        location: item.term.location,
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
    const selectTail = { ...select(items, rows, location), distinct: clause.distinct && !groups, groupBy };
    const shapes = entities.some((shape) => shape !== null) ? { entities } : {};
    return { ...query(selectTail, location), ...this.#orderAndPage(clause, rows.names), ...shapes, oneInstant: true };
  }

  #orderAndPage({ orderBy, skip, limit, items }: Projection, names: Names): Pick<Query, 'orderBy' | 'limit' | 'offset'> {
    const orderKey = (term: Term): Expression => {
      const item = itemNamed(term, items);
      if (item === undefined) return compileCompared(term, names);
      return item.term.kind === 'variable' ? compileCompared(item.term, names) : column(null, item.name, term.location);
    };
    const orderItems = ({ term, descending }: Projection['orderBy'][number]): OrderItem[] => {
      const itemBy = (expression: Expression): OrderItem => ({ expression, descending, collate: 'codepoint', nullsFirst: false });
      const of = itemNamed(term, items)?.term ?? term;
      if (!isOfAnyType(of, names)) return [itemBy(orderKey(term))];
      // Numbers by their size, and then texts: no plan knows which of them they are.
      const value = compileTerm(of, names);
      return ['#NUMBER', '#TOSTRING'].map((key) => itemBy(call(key, [value], term.location)));
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
  const { location } = clause;
  const all = [...names.keys()].sort(compareText).map((name): Item => ({ name, term: { kind: 'variable', name, location } }));
  if (all.length === 0) throw errorAt('REL_PARSE', 'there are no variables here for *', location);
  return { ...clause, isAll: false, items: [...all, ...clause.items] };
}

function valuesOf(carried: readonly { readonly item: Item; readonly variable: Variable | undefined }[]): readonly Item[] {
  return carried.flatMap(({ item, variable }) => (variable === undefined || variable.kind === 'value' ? [item] : []));
}

function expressionOf(item: ProjectionItem): readonly Expression[] {
  return item.kind === 'expression' ? [item.expression] : [];
}

/** A node of an OPTIONAL MATCH that is bound has the types that it was bound with. */
function asBound(node: PatternNode, known: NodeVariable | undefined): PatternNode {
  if (known === undefined || known.labels.length === 0) return node;
  return { ...node, labels: [known.labels, ...node.labels] };
}

function sameNode(one: NodeVariable, other: NodeVariable, location: Location): Expression[] {
  const same = [equal(one.id, other.id, location)];
  if (one.type !== null && other.type !== null) same.push(equal(one.type, other.type, location));
  return same;
}

/** Facts by `=` that a clause states about single nodes: in braces, or in its condition, joined by AND. */
function factsOf({ chains, where }: Match): ReadonlyMap<string, readonly Fact[]> {
  const facts = new Map<string, Fact[]>();
  const add = (name: string, fact: Fact): void => void facts.set(name, [...(facts.get(name) ?? []), fact]);
  for (const { name, properties, location } of chains.flatMap(({ nodes }) => nodes)) {
    if (name === null) continue;
    for (const { name: property, value } of properties) if (value.kind === 'literal') add(name, { property, value, location });
  }
  const read = (condition: Term): void => {
    if (condition.kind === 'and') return [condition.left, condition.right].forEach(read);
    if (condition.kind !== 'compare' || condition.op !== '=') return;
    const { left, right, location } = condition;
    const [property, value] = left.kind === 'property' ? [left, right] : [right, left];
    if (property.kind === 'property' && property.of.kind === 'variable' && value.kind === 'literal')
      add(property.of.name, { property: property.name, value, location });
  };
  if (where !== null) read(where);
  return facts;
}

/** A row that is not there, or not to be seen, is NULL. */
function leftJoin(left: Source, right: Source, on: Expression): Source {
  return { kind: 'join', type: 'left', left, right, on, using: null, location: right.location };
}

function select(projection: readonly ProjectionItem[], { source, where }: Rows, location: Location): Select {
  return {
    kind: 'select',
    distinct: false,
    projection,
    from: source ?? { kind: 'values', rows: [[]], location },
    where: where.length === 0 ? null : both(where, location),
    groupBy: [],
    window: null,
    having: null,
    rankBy: [],
    compute: [],
    location,
  };
}

function query(body: Select, location: Location): Query {
  return { with: [], body, asOf: null, orderBy: [], limit: null, offset: null, after: null, facets: [], location };
}
