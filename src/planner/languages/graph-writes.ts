/**
 * Parses the writes of the graph doors: CREATE and MERGE of patterns, and CALL … .write. The rows that a preceding MATCH finds
 * are a query of its own. Readers without the right to write see the statement refused.
 */
import type { Dialect, Location, Query, Slot } from '../syntax/statement.ts';
import type { GraphWrite, CreatedCell, CreatedEdge, CreatedNode, CreatedElement } from '../syntax/write-statement.ts';
import { readPattern, startsPattern } from './graph-pattern.ts';
import type { Clause, CreateClause, PatternEdge, PatternNode, Projection, Term } from '../syntax/pattern-tree.ts';
import { patternQuery, valueName } from './pattern-query.ts';
import { isAggregate, nameFunction, namesIn } from './pattern-terms.ts';
import type { LexedStatement } from './sql-lexer.ts';
import { parseError } from './sql-lexer.ts';
import { readCall } from './sql-procedure.ts';
import { readOrder, readQuery } from './sql-query.ts';
import { TokenCursor } from './token-cursor.ts';

/** Parses a graph write; null where the statement is none. Throws REL_PARSE. */
export function parseGraphWrite(lexed: LexedStatement, dialect: Dialect): GraphWrite | null {
  const cursor = new TokenCursor(lexed, { readQuery, readOrder }, dialect);
  const purpose = cursor.accept('PURPOSE') ? cursor.literal('s', 'a purpose in quotes') : null;
  const write = startsPattern(cursor)
    ? patternWrite(cursor, purpose)
    : cursor.accept('CALL')
      ? scoreWrite(cursor, purpose)
      : null;
  if (write === null) return null;
  if (cursor.asOf !== null) throw cursor.error('writes apply to the current graph: leave out AS OF', cursor.asOf.location);
  const ended = cursor.accept(';');
  if (cursor.token.kind === 'end') return write;
  throw ended ? cursor.error('one statement at a time') : cursor.expectedError('the end of the statement');
}

function patternWrite(cursor: TokenCursor, purpose: Slot | null): GraphWrite | null {
  const read = readPattern(cursor);
  if (!('verb' in read) || read.pattern === null) return null;
  const { matches, created, returned, location } = read.pattern;
  const things = new Things(matches);
  const all = things.list(created);
  const known = new Set(all.map(({ name }) => name));
  const clause = returned && things.withValues(returned, known);
  const ends = all.flatMap((element) => (element.kind === 'edge' ? [element.from, element.to] : []));
  const used = [...new Set(ends)].filter((name) => !known.has(name));
  const matched = matchedQuery(matches, used, things.values, location);
  const shapes = things.values.map((_, i) => matched?.query.entities?.[used.length + i] ?? null);
  return {
    kind: 'pattern',
    purpose,
    matched: matched && { query: matched.query, names: used, values: things.values.length },
    method: created.every(({ kind }) => kind === 'merge') ? 'merge' : 'create',
    things: all,
    returned: clause && { clause, shapes },
    nullSlot: cursor.lexed.parameters.length,
    location,
  };
}

/** A query for the keys of the matched nodes, in the order of their names, and then the values. */
function matchedQuery(
  matches: readonly Clause[],
  used: readonly string[],
  values: readonly Term[],
  location: Location,
): { readonly query: Query } | null {
  if (matches.length === 0) {
    if (used.length > 0) throw parseError(location, `there is no variable ${JSON.stringify(used[0])} here`);
    if (values.length === 0) return null;
  }
  const nodeKey = (name: string): Term => ({
    kind: 'function',
    name: nameFunction,
    arguments: [{ kind: 'variable', name, location }],
    location,
  });
  const items = [...used.map(nodeKey), ...values].map((term, i) => ({ term, name: `#${i}` }));
  // A row counts even without a value.
  const some: Term = { kind: 'list', items: [], location };
  const nothing = { orderBy: [], skip: null, limit: null, where: null, distinct: false, isAll: false } as const;
  const shown = items.length > 0 ? items : [{ term: some, name: '#0' }];
  return { query: patternQuery([...matches, { kind: 'return', items: shown, ...nothing, location }], true) };
}

function nodeNames(matches: readonly Clause[]): readonly string[] {
  return matches.flatMap((clause) => {
    if (clause.kind === 'unwind') return [clause.name];
    if (clause.kind !== 'match') return clause.items.map(({ name }) => name);
    return clause.chains.flatMap(({ nodes }) => nodes.flatMap(({ name }) => name ?? []));
  });
}

/** The things that CREATE and MERGE make, each before those that name it. */
class Things {
  readonly #taken: Set<string>;
  /** Terms of cells and RETURN that read matched rows. */
  readonly values: Term[] = [];
  #numbers = 0;

  constructor(matches: readonly Clause[]) {
    this.#taken = new Set(nodeNames(matches));
  }

  /** Replaces terms that name nothing made by values of the matched row. */
  withValues(clause: Projection, createdNames: ReadonlySet<string>): Projection {
    if (clause.isAll) throw parseError(clause.location, 'RETURN * is not supported behind CREATE and MERGE: name the values');
    const replaceTerm = (term: Term): Term => {
      const names = namesIn(term);
      if (term.kind === 'aggregate' && term.of !== null) return { ...term, of: replaceTerm(term.of) };
      if (names.length === 0 || isAggregate(term)) return term;
      if (names.every((name) => !createdNames.has(name))) {
        const value = this.values.push(term) - 1;
        return { kind: 'variable', name: valueName(value), location: term.location };
      }
      if (names.every((name) => createdNames.has(name))) return term;
      throw parseError(term.location, 'a value in RETURN cannot combine what was matched with what was created');
    };
    return {
      ...clause,
      items: clause.items.map((item) => ({ ...item, term: replaceTerm(item.term) })),
      orderBy: clause.orderBy.map((each) => {
        const isItem =
          each.term.kind === 'variable' && clause.items.some(({ name }) => name === (each.term as { name: string }).name);
        return isItem ? each : { ...each, term: replaceTerm(each.term) };
      }),
    };
  }

  list(created: readonly CreateClause[]): readonly CreatedElement[] {
    return created.flatMap(({ kind, chains }) =>
      chains.flatMap(({ nodes, edges }) => {
        const elements: CreatedElement[] = [];
        const names = nodes.map((node) => this.#node(node, kind, elements));
        edges.forEach((edge, i) => elements.push(this.#edge(edge, kind, names[i]!, names[i + 1]!)));
        if (elements.length === 0) throw parseError(nodes[0]!.location, 'nothing is created here: a new node needs a type');
        return elements;
      }),
    );
  }

  /** Its name: it is put to the things where it is made here. */
  #node({ name, labels, properties, location }: PatternNode, kind: CreatedNode['how'], elements: CreatedElement[]): string {
    const [label, ...others] = labels.flat();
    if (others.length > 0) throw parseError(location, 'a new node has one type');
    if (label === undefined) {
      if (name !== null && properties.length === 0) return name;
      throw parseError(location, 'a new node needs a type, (n:Type {key: value}); a bound one stands by its name alone');
    }
    const own = this.#name(name, location);
    elements.push({ kind: 'node', how: kind, name: own, type: label, cells: this.#cells(properties), location });
    return own;
  }

  #edge(edge: PatternEdge, kind: CreatedEdge['how'], left: string, right: string): CreatedEdge {
    const { location, types, direction, hops, properties } = edge;
    const [type] = types;
    if (type === undefined || types.length > 1 || hops !== null || direction === 'both') {
      throw parseError(location, 'a new edge has one type and one direction: -[r:TYPE]->');
    }
    const [from, to] = direction === 'out' ? [left, right] : [right, left];
    return {
      kind: 'edge',
      how: kind,
      name: this.#name(edge.name, location),
      type,
      from,
      to,
      cells: this.#cells(properties),
      location,
    };
  }

  #cells(properties: PatternNode['properties']): readonly CreatedCell[] {
    return properties.map(({ name, value }): CreatedCell => {
      const { location } = value;
      if (value.kind !== 'literal') return { name, location, value: this.values.push(value) - 1 };
      return { name, location, slot: value.slot, ...(value.typed && { typed: value.typed }) };
    });
  }

  #name(name: string | null, location: Location): string {
    if (name === null) return `#${++this.#numbers}`;
    if (this.#taken.has(name))
      throw parseError(location, `${JSON.stringify(name)} is bound already: a new element needs a name of its own`);
    this.#taken.add(name);
    return name;
  }
}

function scoreWrite(cursor: TokenCursor, purpose: Slot | null): GraphWrite | null {
  const call = readCall(cursor);
  if (call.mode !== 'write') return null;
  const { query, property, location } = call;
  if (property === null) throw parseError(location, "mode write says where to: {writeProperty: 'column'}");
  const type = call.arguments.find(({ name }) => name === 'TYPE') ?? call.arguments.find(({ name }) => name === null);
  if (type?.value.kind !== 'literal') throw parseError(location, 'mode write needs a function over the rows of a type');
  const slot = { slot: type.value.slot, location: type.value.location };
  return { kind: 'scores', purpose, query, type: slot, property, nullSlot: cursor.lexed.parameters.length, location };
}
