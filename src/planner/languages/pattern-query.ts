/**
 * A graph pattern as the query that it stands for. A node with a label is a table, one without the rows of every type that is no
 * edge, an edge a walk from the rows before it, OPTIONAL MATCH a left join, WITH a subquery. Within one MATCH no edge is gone along
 * twice. Pure.
 *
 * A node without a label that an edge leads to is its name alone, and joined to no row, as long as nothing is asked of its row.
 */
import { degreeNames } from '../graph/algorithms/degrees.ts';
import { nodeNameCall, rowColumns, walkColumns } from '../graph/pattern-columns.ts';
import { at } from '../places.ts';
import type { ColumnRef, Expression, OrderItem, Place, ProjectionItem, Query, Select, Source } from '../statement.ts';
import type { Clause, Condition, Item, PatternChain, PatternEdge, PatternNode, Term } from './graph-pattern.ts';
import { allOf } from './trees.ts';

type Match = Extract<Clause, { kind: 'match' }>;
type Projection = Extract<Clause, { kind: 'with' | 'return' }>;

interface NodeVariable {
  readonly kind: 'node';
  /** Types that its row may be of; none: any. */
  readonly labels: readonly string[];
  /** The text by which edges name it. */
  readonly id: Expression;
  /** Where rows of several types may be it: the type of its row. */
  readonly type: Expression | null;
  /** Alias of the table whose row it is, where it is one. */
  readonly table: string | null;
  property(name: string, place: Place): Expression;
}

interface EdgeVariable {
  readonly kind: 'edge';
  /** Is there wherever the edge is. */
  readonly mark: Expression;
  /** null: nothing returns it, or it is a path of several edges. */
  readonly key: Expression | null;
  readonly table: string | null;
  property(name: string, place: Place): Expression;
}

/** What a name stands for at some clause. */
type Variable = NodeVariable | EdgeVariable | { readonly kind: 'value'; readonly value: Expression } | { readonly kind: 'path' };

type Names = ReadonlyMap<string, Variable>;

interface Rows {
  readonly source: Source | null;
  readonly where: readonly Expression[];
  readonly names: Names;
}

/** What the clauses ask of a name, wherever it stands in them. */
interface Uses {
  readonly properties: Set<string>;
  /** It is returned, passed on or compared as a whole. */
  isWhole: boolean;
  hasLabel: boolean;
}

/** A property that is a value, in every row that is matched. */
interface Fact {
  readonly property: string;
  readonly value: Term;
  readonly place: Place;
}

export function patternQuery(clauses: readonly Clause[]): Query {
  return new PatternCompiler(clauses).query(clauses);
}

class PatternCompiler {
  readonly #uses = new Map<string, Uses>();
  /** Facts about nodes that are bound: they hold of the same nodes in an OPTIONAL MATCH. */
  #facts = new Map<string, readonly Fact[]>();
  #numbers = 0;
  #isNarrowed = false;

  constructor(clauses: readonly Clause[]) {
    for (const clause of clauses) this.#readUses(clause);
    // What is asked of a name that WITH gives is asked of what it passes on.
    for (const clause of clauses.toReversed()) {
      if (clause.kind !== 'with') continue;
      for (const { term, name } of clause.items) {
        if (term.kind !== 'variable' || term.name === name) continue;
        const [given, passed] = [this.#usesOf(name), this.#usesOf(term.name)];
        for (const property of given.properties) passed.properties.add(property);
        passed.hasLabel ||= given.hasLabel;
      }
    }
  }

  #readUses(clause: Clause): void {
    const open: unknown[] = [clause];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (typeof node !== 'object' || node === null) continue;
      const { kind, of, name } = node as { kind?: unknown; of?: unknown; name?: unknown };
      if (kind === 'property') this.#usesOf(String(of)).properties.add(String(name));
      if (kind === 'variable') this.#usesOf(String(name)).isWhole = true;
      if ('labels' in node && typeof name === 'string') {
        const { labels, properties } = node as PatternNode;
        const uses = this.#usesOf(name);
        uses.hasLabel ||= labels.length > 0;
        for (const property of properties) uses.properties.add(property.name);
      }
      // How many edges there are needs none of their rows.
      const isCount = kind === 'aggregate' && (node as { function: unknown }).function === 'count';
      if (!isCount || (of as Term | null)?.kind !== 'variable') open.push(...Object.values(node));
    }
  }

  query(clauses: readonly Clause[]): Query {
    let rows: Rows = { source: null, where: [], names: new Map() };
    for (const clause of clauses) {
      if (clause.kind === 'match') {
        rows = clause.optional ? this.#optional(clause, rows) : this.#match(clause, rows);
      } else if (clause.kind === 'with') rows = this.#with(clause, rows);
      else return this.#returned(clause, rows);
    }
    throw at('REL_PARSE', 'a pattern ends in RETURN', clauses[0]!.place);
  }

  #usesOf(name: string): Uses {
    let uses = this.#uses.get(name);
    if (uses === undefined) this.#uses.set(name, (uses = { properties: new Set(), isWhole: false, hasLabel: false }));
    return uses;
  }

  #name(what: string): string {
    return `#${what}${++this.#numbers}`;
  }

  #match(clause: Match, rows: Rows): Rows {
    const facts = factsOf(clause);
    const matched = this.#chains(clause.chains, rows, { facts, isTyped: () => false });
    for (const [name, more] of facts) this.#facts.set(name, [...(this.#facts.get(name) ?? []), ...more]);
    if (clause.where === null) return matched;
    return { ...matched, where: [...matched.where, this.#condition(clause.where, matched.names)] };
  }

  /** `isTyped`: a node of this name is a row, with its type, whatever is asked of it. */
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
    for (const chain of chains) {
      const first = this.#firstOf(chain, names, about.facts);
      const ids: (Expression | undefined)[] = chain.nodes.map(() => undefined);
      const matching: Matching = { names, where, walks, facts: about.facts, isTyped: about.isTyped };
      const begin = this.#begin(chain, first, source, matching);
      source = begin.source;
      ids[first] = some = begin.id;
      const step = (edge: PatternEdge, from: number, to: number, direction: PatternEdge['direction']): void => {
        const walked = this.#walk({ edge, direction, from: ids[from]!, node: chain.nodes[to]! }, source!, matching);
        source = walked.source;
        ids[to] = walked.id;
      };
      for (let i = first; i < chain.edges.length; i++) step(chain.edges[i]!, i, i + 1, chain.edges[i]!.direction);
      const back = { out: 'in', in: 'out', both: 'both' } as const;
      for (let i = first - 1; i >= 0; i--) step(chain.edges[i]!, i + 1, i, back[chain.edges[i]!.direction]);
      if (chain.name === null) continue;
      if (names.has(chain.name)) throw at('REL_PARSE', `${JSON.stringify(chain.name)} is bound already`, chain.nodes[0]!.place);
      names.set(chain.name, { kind: 'path' });
    }
    return { source, where, names, some: some! };
  }

  /** A chain is begun where it is bound to what was matched before, else at the node of which most is said. */
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
  #begin(chain: PatternChain, first: number, before: Source | null, matching: Matching): { source: Source; id: Expression } {
    const node = chain.nodes[first]!;
    const { names, where } = matching;
    const known = node.name === null ? undefined : names.get(node.name);
    if (known !== undefined) {
      const { source, id } = this.#known(node, known, before!, matching);
      // A walk from nowhere has no rows; a node alone would have one.
      if (chain.edges.length === 0) where.push({ kind: 'is-null', operand: id, negated: true, place: node.place });
      return { source, id };
    }
    const { place, labels } = node;
    const edge = chain.edges[first] ?? chain.edges[first - 1];
    // A walk of no edges begins at nodes that have none, too.
    const needsEdge = edge !== undefined && (edge.hops === null || edge.hops.least === null);
    const isAny = node.properties.length === 0 && !(node.name !== null && matching.facts.has(node.name));
    if (needsEdge && isAny && labels.length === 0 && !this.#asksRow(node, matching)) {
      const alias = node.name ?? this.#name('node');
      const table: Source = { kind: 'function', name: degreeNames.function('both'), arguments: [], alias, place };
      const variable = namedNode(alias, column(alias, degreeNames.node, place));
      if (node.name !== null) names.set(node.name, variable);
      return { source: besides(before, table, null), id: variable.id };
    }
    return this.#row(node, before, null, matching);
  }

  /** The rows beside that of a node; with `id`, the one that is called so. */
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
    const right: Source = isTable
      ? { kind: 'table', name: label!, alias, place }
      : { kind: 'graph-rows', of: 'nodes', types: either, properties: this.#propertiesOf(node), alias, place };
    const variable = isTable ? tableNode(alias, label!, place) : rowNode(alias, either, place);
    if (node.name !== null) matching.names.set(node.name, variable);
    this.#having(node, variable, matching);
    let source = besides(before, right, id && equal(variable.id, id, place));
    for (const others of more) source = this.#labelled(others, variable, source, place);
    return { source, id: variable.id, variable };
  }

  /** The rows whose node is of one of these types, too. */
  #labelled(labels: readonly string[], { id, type, labels: known }: NodeVariable, before: Source, place: Place): Source {
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
    const uses = this.#usesOf(name);
    return isTyped(name) || uses.hasLabel || [...uses.properties].some((property) => property !== 'id');
  }

  #propertiesOf({
    name,
    properties,
  }: {
    readonly name: string | null;
    readonly properties: PatternNode['properties'];
  }): string[] {
    const read = new Set(properties.map((each) => each.name));
    if (name !== null) for (const property of this.#usesOf(name).properties) read.add(property);
    return [...read];
  }

  #walk(
    step: {
      readonly edge: PatternEdge;
      readonly direction: PatternEdge['direction'];
      readonly from: Expression;
      readonly node: PatternNode;
    },
    before: Source,
    matching: Matching,
  ): { source: Source; id: Expression } {
    const { edge, direction, from, node } = step;
    const { names, where, walks } = matching;
    const { place, hops, types } = edge;
    if (edge.name !== null && names.has(edge.name)) {
      throw at('REL_PARSE', `${JSON.stringify(edge.name)} is bound already: an edge has a name of its own`, place);
    }
    const read = this.#propertiesOf(edge);
    if (hops !== null && read.length > 0) throw at('REL_PARSE', 'a path of several edges has no properties', place);
    const walk = this.#name('walk');
    const of = (name: string): ColumnRef => column(walk, name, place);
    let source: Source = {
      kind: 'walk',
      input: before,
      from,
      types,
      direction,
      hops,
      avoids: walks.map((each) => column(each, walkColumns.trail, place)),
      alias: walk,
      place,
    };
    walks.push(walk);
    // A walk of no edges has an end, too.
    const mark = of(hops === null ? walkColumns.edge : walkColumns.end);
    const isWhole = edge.name !== null && this.#usesOf(edge.name).isWhole && hops === null;
    let variable: EdgeVariable = { kind: 'edge', mark, key: null, table: null, property: noRow };
    if (read.length > 0 || isWhole) {
      const alias = this.#name('edge');
      const [type] = types;
      const isTable = types.length === 1;
      const right: Source = isTable
        ? { kind: 'table', name: type!, alias, place }
        : { kind: 'graph-rows', of: 'edges', types, properties: read, alias, place };
      const systemFrom = column(alias, isTable ? 'system_from' : rowColumns.name, place);
      source = besides(source, right, equal(of(walkColumns.edge), systemFrom, place));
      const key = column(alias, isTable ? '_pk' : rowColumns.key, place);
      const table = isTable ? alias : null;
      variable = { kind: 'edge', mark, key, table, property: (name, where_) => column(alias, name, where_) };
    }
    if (edge.name !== null) names.set(edge.name, variable);
    for (const { name, value } of edge.properties) {
      where.push(equal(variable.property(name, place), this.#term(value, names), place));
    }
    const end = of(walkColumns.end);
    const known = node.name === null ? undefined : names.get(node.name);
    if (known !== undefined) {
      const { source: with_, id } = this.#known(node, known, source, matching);
      where.push(equal(id, end, node.place));
      return { source: with_, id: end };
    }
    if (node.labels.length > 0 || this.#asksRow(node, matching)) return this.#row(node, source, end, matching);
    const variable_ = namedNode(node.name ?? this.#name('node'), end);
    if (node.name !== null) names.set(node.name, variable_);
    this.#having(node, variable_, matching);
    return { source, id: end };
  }

  /** A node that an earlier part of the pattern has bound. */
  #known(node: PatternNode, known: Variable, before: Source, matching: Matching): { source: Source; id: Expression } {
    if (known.kind !== 'node') throw at('REL_PARSE', `${JSON.stringify(node.name)} is no node`, node.place);
    this.#having(node, known, matching);
    let source = before;
    for (const labels of node.labels) source = this.#labelled(labels, known, source, node.place);
    return { source, id: known.id };
  }

  #having(node: PatternNode, variable: NodeVariable, { names, where }: Matching): void {
    for (const { name, value } of node.properties) {
      where.push(equal(variable.property(name, node.place), this.#term(value, names), node.place));
    }
  }

  /** The pattern by itself, joined by the nodes that it shares with what is there; the condition decides before it is missing. */
  #optional(clause: Match, rows: Rows): Rows {
    const { place } = clause;
    const bound = (name: string | null): NodeVariable | undefined => {
      const known = name === null ? undefined : rows.names.get(name);
      if (known === undefined || known.kind === 'node') return known;
      throw at('REL_PARSE', `${JSON.stringify(name)} is bound already, and is no node`, place);
    };
    const chains = clause.chains.map((chain) => ({
      ...chain,
      nodes: chain.nodes.map((node) => asBound(node, bound(node.name))),
    }));
    // What is known of a node that is shared narrows down where the pattern is looked for.
    const shared = new Set(chains.flatMap(({ nodes }) => nodes.flatMap(({ name }) => (bound(name) ? [name!] : []))));
    const facts = new Map([...this.#facts].filter(([name]) => shared.has(name)));
    const isTyped = (name: string): boolean => (bound(name)?.type ?? null) !== null;
    for (const [name, list] of facts) for (const { property } of list) this.#usesOf(name).properties.add(property);
    const own = new Map([...facts, ...factsOf(clause)]);
    const alone = this.#chains(chains, { source: null, where: [], names: new Map() }, { facts: own, isTyped });
    const known = [...facts].flatMap(([name, list]) =>
      list.map(({ property, value, place: where }) => {
        const node = alone.names.get(name) as NodeVariable;
        return equal(node.property(property, where), this.#term(value, alone.names), where);
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
      const before = bound(name);
      if (before === undefined) names.set(name, variable);
      else if (variable.kind === 'node') on.push(...sameNode(before, variable, place));
    }
    if (clause.where !== null) on.push(this.#condition(clause.where, names));
    const left: Source = rows.source ?? { kind: 'values', rows: [[]], place };
    const source: Source = { kind: 'join', type: 'left', left, right, on: allOf(on), using: null, place };
    return { source, where: rows.where, names };
  }

  /** Whether it is worth while to work out first which nodes there are. It is done once: each time doubles the work before it. */
  #narrows({ source, where }: Rows, facts: readonly Fact[] = []): boolean {
    if (this.#isNarrowed || facts.some(({ property }) => property === 'id')) return false;
    this.#isNarrowed = where.length > 0 || source?.kind === 'join' || source?.kind === 'walk' || source?.kind === 'subquery';
    return this.#isNarrowed;
  }

  /** One of the nodes that are there. */
  #among(name: string, names: Names, rows: Rows, place: Place): Expression {
    const [inner, outer] = [names.get(name) as NodeVariable, rows.names.get(name) as NodeVariable];
    const item: ProjectionItem = { kind: 'expression', expression: outer.id, alias: '#id', place };
    return { kind: 'in-query', operand: inner.id, query: query(select([item], rows, place), place), negated: false, place };
  }

  #with(clause: Projection, rows: Rows): Rows {
    const { place } = clause;
    const alias = this.#name('with');
    const grouped = clause.items.some(({ term }) => isAggregate(term));
    const carried = clause.items.map((item) => ({
      item,
      variable: item.term.kind === 'variable' ? rows.names.get(item.term.name) : undefined,
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
      if (names.has(item.name)) throw at('REL_PARSE', `${JSON.stringify(item.name)} is given twice`, item.term.place);
      values.push({ kind: 'expression', expression: this.#term(item.term, rows.names), alias: item.name, place });
      names.set(item.name, { kind: 'value', value: column(alias, item.name, place) });
    }
    const projection = [...passed.projection, ...values];
    const keys = grouped ? [...passed.projection, ...values.filter((_, i) => !isAggregate(valuesOf(carried)[i]!.term))] : [];
    const made = { ...select(projection, rows, place), distinct: clause.distinct, groupBy: keys.flatMap(expressionOf) };
    const inner: Query = { ...query(made, place), ...this.#ordered(clause, rows.names) };
    const after: Rows = { source: { kind: 'subquery', query: inner, alias, columns: [], place }, where: [], names };
    return clause.where === null ? after : { ...after, where: [this.#condition(clause.where, names)] };
  }

  /** Nodes and edges as columns: what they are called, and what is read of them. */
  #passedOn(
    variables: readonly { readonly name: string; readonly variable: Variable }[],
    alias: string,
    place: Place,
  ): { projection: ProjectionItem[]; names: Names } {
    const projection: ProjectionItem[] = [];
    const names = new Map<string, Variable>();
    for (const { name, variable } of variables) {
      if (variable.kind === 'value') continue;
      if (names.has(name)) throw at('REL_PARSE', `${JSON.stringify(name)} is given twice`, place);
      if (variable.kind === 'path') {
        names.set(name, variable);
        continue;
      }
      const inner = (property: string): string => `${name}.${property}`;
      const add = (expression: Expression, as: string): ColumnRef => {
        projection.push({ kind: 'expression', expression, alias: inner(as), place });
        return column(alias, inner(as), place);
      };
      for (const property of this.#usesOf(name).properties) add(variable.property(property, place), property);
      const property = (wanted: string, where: Place): Expression => column(alias, inner(wanted), where);
      if (variable.kind === 'edge') {
        const { mark, key } = variable;
        names.set(name, { kind: 'edge', mark: add(mark, '#edge'), key: key && add(key, '#key'), table: null, property });
        continue;
      }
      const { labels, id, type } = variable;
      names.set(name, { kind: 'node', labels, id: add(id, '#id'), type: type && add(type, '#type'), table: null, property });
    }
    return { projection, names };
  }

  #returned(clause: Projection, rows: Rows): Query {
    const { place } = clause;
    if (rows.source === null) throw at('REL_PARSE', 'RETURN stands behind MATCH', place);
    const grouped = clause.items.some(({ term }) => isAggregate(term));
    const plain = !grouped && !clause.distinct && clause.items.length === 1;
    const [only] = clause.items;
    const whole = plain && only!.term.kind === 'variable' ? rows.names.get(only!.term.name) : undefined;
    if ((whole?.kind === 'node' || whole?.kind === 'edge') && whole.table !== null) {
      const star: ProjectionItem = { kind: 'star', table: whole.table, place };
      return { ...query(select([star], rows, place), place), ...this.#ordered(clause, rows.names), oneInstant: true };
    }
    const items = clause.items.map(
      (item): ProjectionItem => ({
        kind: 'expression',
        expression: this.#term(item.term, rows.names),
        alias: item.name,
        place: item.term.place,
      }),
    );
    // Rows of two types may be called alike.
    const groupBy = items.flatMap((item, i) => {
      const { term } = clause.items[i]!;
      if (!grouped || isAggregate(term)) return [];
      const variable = term.kind === 'variable' ? rows.names.get(term.name) : undefined;
      return variable?.kind === 'node' && variable.type !== null ? [...expressionOf(item), variable.type] : expressionOf(item);
    });
    const made = { ...select(items, rows, place), distinct: clause.distinct, groupBy };
    return { ...query(made, place), ...this.#ordered(clause, rows.names), oneInstant: true };
  }

  #ordered({ orderBy, skip, limit, items }: Projection, names: Names): Pick<Query, 'orderBy' | 'limit' | 'offset'> {
    const named = (term: Term): Expression => {
      const item = items.find((each) => term.kind === 'variable' && each.name === term.name);
      if (item === undefined) return this.#term(term, names);
      return item.term.kind === 'variable' ? this.#term(item.term, names) : column(null, item.name, term.place);
    };
    return {
      orderBy: orderBy.map(
        ({ term, descending }): OrderItem => ({ expression: named(term), descending, collate: 'codepoint', nullsFirst: false }),
      ),
      limit,
      offset: skip,
    };
  }

  #term(term: Term, names: Names): Expression {
    const { place } = term;
    switch (term.kind) {
      case 'literal':
        return { kind: 'literal', slot: term.slot, place };
      case 'variable': {
        const variable = this.#variable(term.name, names, place);
        if (variable.kind === 'node') return variable.id;
        if (variable.kind === 'value') return variable.value;
        if (variable.kind === 'edge' && variable.key !== null) return variable.key;
        const text = variable.kind === 'path' ? 'a path: its nodes and edges' : 'a path of several edges: its nodes';
        throw at('REL_PARSE', `${JSON.stringify(term.name)} is ${text} can be returned`, place);
      }
      case 'property': {
        const variable = this.#variable(term.of, names, place);
        if (variable.kind === 'value' || variable.kind === 'path')
          throw at('REL_PARSE', `${JSON.stringify(term.of)} is a ${variable.kind}: it has no properties`, place);
        return variable.property(term.name, place);
      }
      case 'aggregate': {
        const { of, distinct } = term;
        const called = (name: typeof term.function): Expression => {
          const operand = of === null ? null : name === 'count' ? this.#counted(of, names) : this.#term(of, names);
          return { kind: 'aggregate', function: name, operand, second: null, distinct, filter: null, place };
        };
        if (term.function !== 'sum') return called(term.function);
        // The sum of nothing is 0, and so is how many there were.
        const either = [called('sum'), called('count')].map((value) => ({ name: null, value }));
        return { kind: 'call', name: 'COALESCE', arguments: either, place };
      }
    }
  }

  /** An edge is counted by itself, without its row. */
  #counted(of: Term, names: Names): Expression {
    const variable = of.kind === 'variable' ? this.#variable(of.name, names, of.place) : undefined;
    return variable?.kind === 'edge' ? variable.mark : this.#term(of, names);
  }

  #variable(name: string, names: Names, place: Place): Variable {
    const variable = names.get(name);
    if (variable === undefined) throw at('REL_PARSE', `nothing is called ${JSON.stringify(name)} here`, place);
    return variable;
  }

  #condition(condition: Condition, names: Names): Expression {
    const { place } = condition;
    const term = (each: Term): Expression => this.#term(each, names);
    switch (condition.kind) {
      case 'and':
      case 'or':
        return {
          kind: 'binary',
          op: condition.kind,
          left: this.#condition(condition.left, names),
          right: this.#condition(condition.right, names),
          place,
        };
      case 'not':
        return { kind: 'not', operand: this.#condition(condition.operand, names), place };
      case 'compare':
        return { kind: 'binary', op: condition.op, left: term(condition.left), right: term(condition.right), place };
      case 'in':
        return { kind: 'in-list', operand: term(condition.left), items: condition.items.map(term), negated: false, place };
      case 'is-null':
        return { kind: 'is-null', operand: term(condition.left), negated: condition.negated, place };
      case 'text':
        return {
          kind: 'call',
          name: textTests[condition.op],
          arguments: [condition.left, condition.right].map((each) => ({ name: null, value: term(each) })),
          place,
        };
    }
  }
}

const textTests = { starts: 'STARTS_WITH', ends: 'ENDS_WITH', contains: 'CONTAINS' } as const;

function isAggregate({ kind }: Term): boolean {
  return kind === 'aggregate';
}

function valuesOf(carried: readonly { readonly item: Item; readonly variable: Variable | undefined }[]): readonly Item[] {
  return carried.flatMap(({ item, variable }) => (variable === undefined || variable.kind === 'value' ? [item] : []));
}

function expressionOf(item: ProjectionItem): readonly Expression[] {
  return item.kind === 'expression' ? [item.expression] : [];
}

function column(table: string | null, name: string, place: Place): ColumnRef {
  return { kind: 'column', table, name, place };
}

function equal(left: Expression, right: Expression, place: Place): Expression {
  return { kind: 'binary', op: '=', left, right, place };
}

function both(conditions: readonly Expression[], place: Place): Expression {
  return conditions.reduce((left, right): Expression => ({ kind: 'binary', op: 'and', left, right, place }));
}

/** What a chain of one MATCH is matched with. */
interface Matching {
  readonly names: Map<string, Variable>;
  readonly where: Expression[];
  /** Aliases of the walks of the clause. */
  readonly walks: string[];
  readonly facts: ReadonlyMap<string, readonly Fact[]>;
  isTyped(name: string): boolean;
}

function tableNode(table: string, label: string, place: Place): NodeVariable {
  const given = [{ name: null, value: column(table, 'id', place) }];
  const id: Expression = { kind: 'call', name: nodeNameCall, arguments: given, place };
  return { kind: 'node', labels: [label], id, type: null, table, property: (name, where) => column(table, name, where) };
}

function rowNode(alias: string, labels: readonly string[], place: Place): NodeVariable {
  const id = column(alias, rowColumns.name, place);
  const property = (name: string, where: Place): Expression => (name === 'id' ? id : column(alias, name, where));
  return { kind: 'node', labels, id, type: column(alias, rowColumns.type, place), table: null, property };
}

/** A node of which nothing is known but how edges name it. */
function namedNode(name: string, id: Expression): NodeVariable {
  const property = (wanted: string, place: Place): Expression => {
    if (wanted === 'id') return id;
    throw at('REL_PARSE', `${JSON.stringify(name)} has no property ${JSON.stringify(wanted)} here`, place);
  };
  return { kind: 'node', labels: [], id, type: null, table: null, property };
}

function noRow(_name: string, place: Place): never {
  throw at('REL_PARSE', 'a path of several edges has no properties', place);
}

/** A node of an OPTIONAL MATCH that is bound has the types that it was bound with. */
function asBound(node: PatternNode, known: NodeVariable | undefined): PatternNode {
  if (known === undefined || known.labels.length === 0) return node;
  return { ...node, labels: [known.labels, ...node.labels] };
}

function sameNode(one: NodeVariable, other: NodeVariable, place: Place): Expression[] {
  const same = [equal(one.id, other.id, place)];
  if (one.type !== null && other.type !== null) same.push(equal(one.type, other.type, place));
  return same;
}

/** What a clause asks of single nodes by `=`: in braces, or in its condition, joined by AND. */
function factsOf({ chains, where }: Match): ReadonlyMap<string, readonly Fact[]> {
  const facts = new Map<string, Fact[]>();
  const add = (name: string, fact: Fact): void => void facts.set(name, [...(facts.get(name) ?? []), fact]);
  for (const { name, properties, place } of chains.flatMap(({ nodes }) => nodes)) {
    if (name !== null) for (const each of properties) add(name, { property: each.name, value: each.value, place });
  }
  const read = (condition: Condition): void => {
    if (condition.kind === 'and') return [condition.left, condition.right].forEach(read);
    if (condition.kind !== 'compare' || condition.op !== '=') return;
    const { left, right, place } = condition;
    const [property, value] = left.kind === 'property' ? [left, right] : [right, left];
    if (property.kind === 'property' && value.kind === 'literal') add(property.of, { property: property.name, value, place });
  };
  if (where !== null) read(where);
  return facts;
}

function besides(left: Source | null, right: Source, on: Expression | null): Source {
  if (left === null) return right;
  return { kind: 'join', type: 'inner', left, right, on, using: null, place: right.place };
}

function select(projection: readonly ProjectionItem[], { source, where }: Rows, place: Place): Select {
  return {
    kind: 'select',
    distinct: false,
    projection,
    from: source!,
    where: where.length === 0 ? null : both(where, place),
    groupBy: [],
    window: null,
    having: null,
    rankBy: [],
    compute: [],
    place,
  };
}

function query(body: Select, place: Place): Query {
  return { with: [], body, asOf: null, orderBy: [], limit: null, offset: null, after: null, facets: [], place };
}
