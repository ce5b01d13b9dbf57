/**
 * A graph pattern as the query that it stands for. A labelled node is a table, an edge a walk from the rows before it, OPTIONAL
 * MATCH a left join, WITH a subquery. Within one MATCH no edge is gone along twice. Pure.
 */
import { degreeNames } from '../graph/algorithms/degrees.ts';
import { at } from '../places.ts';
import type { ColumnRef, Expression, OrderItem, Place, ProjectionItem, Query, Select, Source } from '../statement.ts';
import { walkColumns } from '../graph/walk-columns.ts';
import type { Clause, Condition, Item, PatternChain, PatternEdge, PatternNode, Term } from './graph-pattern.ts';

type Match = Extract<Clause, { kind: 'match' }>;
type Projection = Extract<Clause, { kind: 'with' | 'return' }>;

/** What a name stands for at some clause. */
type Variable =
  | {
      readonly kind: 'node';
      readonly label: string | null;
      readonly id: Expression;
      property(name: string, place: Place): Expression;
    }
  | { readonly kind: 'edge'; property(name: string, place: Place): Expression }
  | { readonly kind: 'value'; readonly value: Expression };

type Names = ReadonlyMap<string, Variable>;

interface Rows {
  readonly source: Source | null;
  readonly where: readonly Expression[];
  readonly names: Names;
}

export function patternQuery(clauses: readonly Clause[]): Query {
  return new PatternCompiler(clauses).query(clauses);
}

class PatternCompiler {
  /** Properties that anything reads of a name. */
  readonly #read = new Map<string, Set<string>>();
  #numbers = 0;

  constructor(clauses: readonly Clause[]) {
    const open: unknown[] = [clauses];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (typeof node !== 'object' || node === null) continue;
      const { kind, of, name } = node as { kind?: unknown; of?: unknown; name?: unknown };
      if (kind === 'property') this.#readOf(String(of)).add(String(name));
      open.push(...Object.values(node));
    }
  }

  query(clauses: readonly Clause[]): Query {
    let rows: Rows = { source: null, where: [], names: new Map() };
    for (const clause of clauses) {
      if (clause.kind === 'match') rows = clause.optional ? this.#optional(clause, rows) : this.#match(clause, rows);
      else if (clause.kind === 'with') rows = this.#with(clause, rows);
      else return this.#returned(clause, rows);
    }
    throw at('REL_PARSE', 'a pattern ends in RETURN', clauses[0]!.place);
  }

  #readOf(name: string): Set<string> {
    let read = this.#read.get(name);
    if (read === undefined) this.#read.set(name, (read = new Set()));
    return read;
  }

  #name(what: string): string {
    return `#${what}${++this.#numbers}`;
  }

  #match(clause: Match, rows: Rows): Rows {
    const matched = this.#chains(clause.chains, rows);
    if (clause.where === null) return matched;
    return { ...matched, where: [...matched.where, this.#condition(clause.where, matched.names)] };
  }

  #chains(chains: readonly PatternChain[], rows: Rows): Rows {
    let { source } = rows;
    const where = [...rows.where];
    const names = new Map(rows.names);
    const walks: string[] = [];
    for (const chain of chains) {
      // A chain is begun where it is bound to what was matched before, else at a node with a label.
      const bound = chain.nodes.findIndex(({ name }) => name !== null && names.has(name));
      const first =
        bound >= 0
          ? bound
          : Math.max(
              0,
              chain.nodes.findIndex(({ label }) => label !== null),
            );
      const ids: (Expression | undefined)[] = chain.nodes.map(() => undefined);
      const begin = this.#begin(chain.nodes[first]!, source, names, where);
      source = begin.source;
      ids[first] = begin.id;
      const step = (edge: PatternEdge, from: number, to: number, direction: PatternEdge['direction']): void => {
        const walked = this.#walk({ edge, direction, from: ids[from]!, node: chain.nodes[to]!, walks }, source!, names, where);
        source = walked.source;
        ids[to] = walked.id;
      };
      for (let i = first; i < chain.edges.length; i++) step(chain.edges[i]!, i, i + 1, chain.edges[i]!.direction);
      const back = { out: 'in', in: 'out', both: 'both' } as const;
      for (let i = first - 1; i >= 0; i--) step(chain.edges[i]!, i + 1, i, back[chain.edges[i]!.direction]);
    }
    return { source, where, names };
  }

  /** The rows with a node that no edge leads to. */
  #begin(
    node: PatternNode,
    before: Source | null,
    names: Map<string, Variable>,
    where: Expression[],
  ): { source: Source; id: Expression } {
    const known = node.name === null ? undefined : names.get(node.name);
    if (known !== undefined) {
      const id = this.#known(node, known, names, where);
      return { source: before!, id };
    }
    const alias = node.name ?? this.#name('node');
    const { place, label } = node;
    const table: Source =
      label === null
        ? { kind: 'function', name: degreeNames.function('both'), arguments: [], alias, place }
        : { kind: 'table', name: label, alias, place };
    const variable = tableNode(alias, label, place);
    names.set(alias, variable);
    this.#having(node, variable, names, where);
    const source: Source =
      before === null ? table : { kind: 'join', type: 'inner', left: before, right: table, on: null, using: null, place };
    return { source, id: variable.id };
  }

  #walk(
    step: {
      readonly edge: PatternEdge;
      readonly direction: PatternEdge['direction'];
      readonly from: Expression;
      readonly node: PatternNode;
      readonly walks: string[];
    },
    before: Source,
    names: Map<string, Variable>,
    where: Expression[],
  ): { source: Source; id: Expression } {
    const { edge, direction, from, node, walks } = step;
    const { place, hops, types } = edge;
    if (edge.name !== null && names.has(edge.name)) {
      throw at('REL_PARSE', `${JSON.stringify(edge.name)} is bound already: an edge has a name of its own`, place);
    }
    if (hops !== null && (edge.properties.length > 0 || (edge.name !== null && this.#readOf(edge.name).size > 0))) {
      throw at('REL_PARSE', 'a path of several edges has no properties', place);
    }
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
    if (edge.name !== null || edge.properties.length > 0) {
      const read = new Set([...(edge.name === null ? [] : this.#readOf(edge.name)), ...edge.properties.map(({ name }) => name)]);
      let property = (name: string, where_: Place): Expression => {
        throw at('REL_PARSE', `an edge of several types has no property ${JSON.stringify(name)}: name one type`, where_);
      };
      if (types.length === 1 && read.size > 0) {
        const alias = this.#name('edge');
        const on: Expression = {
          kind: 'binary',
          op: '=',
          left: of(walkColumns.edge),
          right: column(alias, 'system_from', place),
          place,
        };
        const right: Source = { kind: 'table', name: types[0]!, alias, place };
        source = { kind: 'join', type: 'inner', left: source, right, on, using: null, place };
        property = (name, where_) => column(alias, name, where_);
      }
      const variable: Variable = { kind: 'edge', property };
      if (edge.name !== null) names.set(edge.name, variable);
      for (const { name, value } of edge.properties) where.push(equal(property(name, place), this.#term(value, names), place));
    }
    const end = of(walkColumns.end);
    const known = node.name === null ? undefined : names.get(node.name);
    if (known !== undefined) {
      where.push(equal(this.#known(node, known, names, where), end, node.place));
      return { source, id: end };
    }
    const alias = node.name ?? this.#name('node');
    if (node.label === null) {
      const variable: Variable = { kind: 'node', label: null, id: end, property: noProperty(alias, end) };
      names.set(alias, variable);
      this.#having(node, variable, names, where);
      return { source, id: end };
    }
    const variable = tableNode(alias, node.label, node.place);
    names.set(alias, variable);
    const right: Source = { kind: 'table', name: node.label, alias, place: node.place };
    source = {
      kind: 'join',
      type: 'inner',
      left: source,
      right,
      on: equal(variable.id, end, node.place),
      using: null,
      place: node.place,
    };
    this.#having(node, variable, names, where);
    return { source, id: end };
  }

  /** A node that an earlier part of the pattern has bound. */
  #known(node: PatternNode, known: Variable, names: Names, where: Expression[]): Expression {
    if (known.kind !== 'node') throw at('REL_PARSE', `${JSON.stringify(node.name)} is no node`, node.place);
    if (node.label !== null && node.label !== known.label) {
      throw at('REL_PARSE', `${JSON.stringify(node.name)} has a type where it is first named, and there alone`, node.place);
    }
    this.#having(node, known, names, where);
    return known.id;
  }

  #having(node: PatternNode, variable: Extract<Variable, { kind: 'node' }>, names: Names, where: Expression[]): void {
    for (const { name, value } of node.properties) {
      where.push(equal(variable.property(name, node.place), this.#term(value, names), node.place));
    }
  }

  /** The pattern by itself, joined by the nodes that it shares with what is there; the condition decides before it is missing. */
  #optional(clause: Match, rows: Rows): Rows {
    if (rows.source === null) throw at('REL_PARSE', 'OPTIONAL MATCH stands behind MATCH', clause.place);
    const { place } = clause;
    const labelled = clause.chains.map(({ nodes, edges }) => ({
      edges,
      nodes: nodes.map((node): PatternNode => {
        const known = node.name === null ? undefined : rows.names.get(node.name);
        if (known === undefined || node.label !== null) return node;
        return known.kind === 'node' ? { ...node, label: known.label } : node;
      }),
    }));
    const matched = this.#chains(labelled, { source: null, where: [], names: new Map() });
    const alias = this.#name('optional');
    const { projection, names: inner } = this.#passedOn(
      [...matched.names].map(([name]) => ({ name, variable: matched.names.get(name)! })),
      alias,
      place,
    );
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
      const before = rows.names.get(name);
      if (before === undefined) names.set(name, variable);
      else if (before.kind === 'node' && variable.kind === 'node') on.push(equal(before.id, variable.id, place));
      else throw at('REL_PARSE', `${JSON.stringify(name)} is bound already, and is no node`, place);
    }
    if (on.length === 0) throw at('REL_PARSE', 'OPTIONAL MATCH begins at a node that was matched before', place);
    if (clause.where !== null) on.push(this.#condition(clause.where, names));
    const source: Source = { kind: 'join', type: 'left', left: rows.source, right, on: both(on, place), using: null, place };
    return { source, where: rows.where, names };
  }

  #with(clause: Projection, rows: Rows): Rows {
    const { place } = clause;
    const alias = this.#name('with');
    const grouped = clause.items.some(({ term }) => isAggregate(term));
    const carried = clause.items.map((item) => ({
      item,
      variable: item.term.kind === 'variable' ? rows.names.get(item.term.name) : undefined,
    }));
    const nodes = carried.filter(({ variable }) => variable !== undefined && variable.kind !== 'value');
    const passed = this.#passedOn(
      nodes.map(({ item, variable }) => ({ name: item.name, variable: variable! })),
      alias,
      place,
    );
    const names = new Map(passed.names);
    const values: ProjectionItem[] = [];
    for (const { item, variable } of carried) {
      if (variable !== undefined && variable.kind !== 'value') continue;
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
      const inner = (property: string): string => `${name}.${property}`;
      const add = (expression: Expression, as: string): void =>
        void projection.push({ kind: 'expression', expression, alias: as, place });
      const read = this.#readOf(name);
      for (const property of read) add(variable.property(property, place), inner(property));
      const property = (wanted: string, where: Place): Expression => column(alias, inner(wanted), where);
      if (variable.kind === 'edge') {
        names.set(name, { kind: 'edge', property });
        continue;
      }
      add(variable.id, inner('#id'));
      names.set(name, { kind: 'node', label: variable.label, id: column(alias, inner('#id'), place), property });
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
    if (whole?.kind === 'node' && whole.label !== null && this.#isTable(rows, (only!.term as { name: string }).name)) {
      const star: ProjectionItem = { kind: 'star', table: (only!.term as { name: string }).name, place };
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
    const groupBy = grouped ? items.flatMap((item, i) => (isAggregate(clause.items[i]!.term) ? [] : expressionOf(item))) : [];
    const made = { ...select(items, rows, place), distinct: clause.distinct, groupBy };
    return { ...query(made, place), ...this.#ordered(clause, rows.names), oneInstant: true };
  }

  #isTable({ source }: Rows, alias: string): boolean {
    const open: (Source | null)[] = [source];
    for (let each = open.pop(); each !== undefined; each = open.pop()) {
      if (each?.kind === 'table' && each.alias === alias) return true;
      if (each?.kind === 'join') open.push(each.left, each.right);
      if (each?.kind === 'walk') open.push(each.input);
    }
    return false;
  }

  #ordered({ orderBy, skip, limit, items }: Projection, names: Names): Pick<Query, 'orderBy' | 'limit' | 'offset'> {
    const named = (term: Term): Expression => {
      const item = items.find((each) => term.kind === 'variable' && each.name === term.name && each.term.kind !== 'variable');
      if (item !== undefined) return column(null, item.name, term.place);
      return this.#term(term, names);
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
        if (variable.kind === 'edge')
          throw at('REL_PARSE', `${JSON.stringify(term.name)} is an edge: name a property of it`, place);
        return variable.kind === 'node' ? variable.id : variable.value;
      }
      case 'property': {
        const variable = this.#variable(term.of, names, place);
        if (variable.kind === 'value')
          throw at('REL_PARSE', `${JSON.stringify(term.of)} is a value: it has no properties`, place);
        return variable.property(term.name, place);
      }
      case 'count':
      case 'collect':
        return {
          kind: 'aggregate',
          function: term.kind,
          operand: term.of === null ? null : this.#term(term.of, names),
          second: null,
          distinct: term.distinct,
          filter: null,
          place,
        };
    }
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
  return kind === 'count' || kind === 'collect';
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

/** A node is called by its id, else by its key. */
function tableNode(alias: string, label: string | null, place: Place): Extract<Variable, { kind: 'node' }> {
  if (label === null) {
    const id = column(alias, degreeNames.node, place);
    return { kind: 'node', label, id, property: noProperty(alias, id) };
  }
  const text: Expression = {
    kind: 'call',
    name: 'CAST',
    arguments: [
      { name: null, value: column(alias, 'id', place) },
      { name: 'TYPE', value: column(null, 'TEXT', place) },
    ],
    place,
  };
  const id: Expression = {
    kind: 'call',
    name: 'COALESCE',
    arguments: [text, column(alias, '_pk', place)].map((value) => ({ name: null, value })),
    place,
  };
  return { kind: 'node', label, id, property: (name, where) => column(alias, name, where) };
}

function noProperty(name: string, id: Expression): (property: string, place: Place) => Expression {
  return (property, place) => {
    if (property === 'id') return id;
    throw at('REL_PARSE', `${JSON.stringify(name)} has no type: (${name}:Type) has properties`, place);
  };
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
