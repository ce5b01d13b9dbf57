/**
 * Graph patterns as they are written, to a tree:
 *
 *   MATCH (a:Type {key: value})-[r:LINK|OTHER*1..3]->(b), … [AS OF …] [WHERE …]
 *   OPTIONAL MATCH … WITH … RETURN [DISTINCT] a.key AS name, count(*), collect(b.key), sum(…) [ORDER BY …] [SKIP n] [LIMIT n]
 *
 *   [MATCH …] CREATE|MERGE (a:Type {key: value})-[r:LINK]->(b), … [CREATE|MERGE …] [RETURN a AS name, …]
 *
 * Whatever else patterns have elsewhere is REL_PARSE with its place: nothing is read over. Source: specification, "Doors".
 */
import type { Place, Slot } from '../statement.ts';
import { isAsOf, readAsOf } from './sql-query.ts';
import type { TokenCursor } from './token-cursor.ts';

export type Term =
  | { readonly kind: 'variable'; readonly name: string; readonly place: Place }
  | { readonly kind: 'property'; readonly of: string; readonly name: string; readonly place: Place }
  | { readonly kind: 'literal'; readonly slot: number; readonly place: Place }
  | {
      readonly kind: 'aggregate';
      readonly function: PatternAggregate;
      /** null: count(*). */
      readonly of: Term | null;
      readonly distinct: boolean;
      readonly place: Place;
    };

const aggregates = ['count', 'collect', 'sum', 'avg', 'min', 'max'] as const;
export type PatternAggregate = (typeof aggregates)[number];

export type Condition =
  | { readonly kind: 'and' | 'or'; readonly left: Condition; readonly right: Condition; readonly place: Place }
  | { readonly kind: 'not'; readonly operand: Condition; readonly place: Place }
  | { readonly kind: 'compare'; readonly op: CompareOp; readonly left: Term; readonly right: Term; readonly place: Place }
  | {
      readonly kind: 'text';
      readonly op: 'starts' | 'ends' | 'contains';
      readonly left: Term;
      readonly right: Term;
      readonly place: Place;
    }
  | { readonly kind: 'in'; readonly left: Term; readonly items: readonly Term[]; readonly place: Place }
  | { readonly kind: 'is-null'; readonly left: Term; readonly negated: boolean; readonly place: Place };

export type CompareOp = '=' | '!=' | '<' | '<=' | '>' | '>=';

export interface PatternNode {
  /** null: it has no name. */
  readonly name: string | null;
  /** It is of one type of each of these lists; none: of any. */
  readonly labels: readonly (readonly string[])[];
  readonly properties: readonly { readonly name: string; readonly value: Term }[];
  readonly place: Place;
}

export interface PatternEdge {
  readonly name: string | null;
  /** Empty: of any type. */
  readonly types: readonly string[];
  readonly direction: 'out' | 'in' | 'both';
  /** null: one edge. A bound that is not written is 1. */
  readonly hops: { readonly least: Slot | null; readonly most: Slot } | null;
  readonly properties: readonly { readonly name: string; readonly value: Term }[];
  readonly place: Place;
}

/** Nodes with edges between them: one more of the former. */
export interface PatternChain {
  /** null: the path has no name. */
  readonly name: string | null;
  readonly nodes: readonly PatternNode[];
  readonly edges: readonly PatternEdge[];
}

export interface Item {
  readonly term: Term;
  readonly name: string;
}

export type Clause =
  | {
      readonly kind: 'match';
      readonly optional: boolean;
      readonly chains: readonly PatternChain[];
      readonly where: Condition | null;
      readonly place: Place;
    }
  | {
      readonly kind: 'with' | 'return';
      readonly distinct: boolean;
      readonly items: readonly Item[];
      readonly orderBy: readonly { readonly term: Term; readonly descending: boolean }[];
      readonly skip: Slot | null;
      readonly limit: Slot | null;
      readonly where: Condition | null;
      readonly place: Place;
    };

/** What CREATE or MERGE makes: nodes that nothing has bound have a label, edges one type and a way. */
export interface MadeClause {
  readonly kind: 'create' | 'merge';
  readonly chains: readonly PatternChain[];
  readonly place: Place;
}

export interface PatternWrite {
  readonly matches: readonly Clause[];
  readonly made: readonly MadeClause[];
  /** Null where nothing is to be returned. */
  readonly returned: readonly { readonly of: string; readonly name: string; readonly place: Place }[] | null;
  readonly place: Place;
}

/** Recognised, and run by nobody. */
const changes: ReadonlySet<string> = new Set('SET DELETE DETACH REMOVE'.split(' '));
const unsupported: ReadonlySet<string> = new Set('UNWIND FOREACH UNION CALL LOAD USE'.split(' '));
const clausesMax = 32;
const edgesMax = 64;

export function startsPattern(cursor: TokenCursor): boolean {
  const [key, next] = [cursor.key(), cursor.key(1)];
  if (key === 'OPTIONAL') return next === 'MATCH';
  if (key === 'MATCH' && cursor.peek(1).kind === 'word' && cursor.key(2) === '=') return true;
  return (key === 'MATCH' || key === 'CREATE' || key === 'MERGE') && next === '(';
}

/** The clauses, RETURN last; or what of them writes, `pattern` null where nothing runs it. */
export function readPattern(
  cursor: TokenCursor,
): readonly Clause[] | { readonly verb: string; readonly place: Place; readonly pattern: PatternWrite | null } {
  const reader = new PatternReader(cursor);
  const clauses: Clause[] = [];
  for (;;) {
    const { place } = cursor;
    const verb = cursor.key();
    if (changes.has(verb)) return { verb, place, pattern: null };
    if (verb === 'CREATE' || verb === 'MERGE') return { verb, place, pattern: reader.write(clauses) };
    if (clauses.length === clausesMax) throw cursor.error(`a pattern has at most ${clausesMax} clauses`);
    const clause = reader.clause();
    clauses.push(clause);
    if (clause.kind === 'return') return clauses;
  }
}

class PatternReader {
  readonly #cursor: TokenCursor;
  #edges = 0;

  constructor(cursor: TokenCursor) {
    this.#cursor = cursor;
  }

  clause(): Clause {
    const cursor = this.#cursor;
    const { place } = cursor;
    const optional = cursor.accept('OPTIONAL');
    if (cursor.accept('MATCH')) return this.#match(optional, place);
    if (optional) throw cursor.expected('MATCH');
    if (cursor.accept('WITH')) return this.#projection('with', place);
    if (cursor.accept('RETURN')) return this.#projection('return', place);
    if (unsupported.has(cursor.key())) throw cursor.error(`${cursor.key()} is not supported in patterns`);
    throw cursor.expected('MATCH, OPTIONAL MATCH, WITH or RETURN');
  }

  write(matches: readonly Clause[]): PatternWrite {
    const cursor = this.#cursor;
    const { place } = cursor;
    const made: MadeClause[] = [];
    while (cursor.key() === 'CREATE' || cursor.key() === 'MERGE') {
      const begin = cursor.place;
      if (matches.length + made.length === clausesMax) throw cursor.error(`a pattern has at most ${clausesMax} clauses`);
      const kind = cursor.next().key === 'CREATE' ? 'create' : 'merge';
      const chains = [this.#chain(null)];
      while (kind === 'create' && cursor.accept(',')) chains.push(this.#chain(null));
      made.push({ kind, chains, place: begin });
    }
    const returned: { of: string; name: string; place: Place }[] = [];
    const returns = cursor.accept('RETURN');
    if (returns) {
      do {
        const at = cursor.place;
        const of = cursor.name('a name');
        returned.push({ of, name: cursor.accept('AS') ? cursor.name('a name') : of, place: at });
      } while (cursor.accept(','));
    }
    return { matches, made, returned: returns ? returned : null, place };
  }

  #match(optional: boolean, place: Place): Clause {
    const cursor = this.#cursor;
    const chains = [this.#path()];
    while (cursor.accept(',')) chains.push(this.#path());
    if (isAsOf(cursor)) readAsOf(cursor);
    const where = cursor.accept('WHERE') ? this.#condition() : null;
    return { kind: 'match', optional, chains, where, place };
  }

  #path(): PatternChain {
    const cursor = this.#cursor;
    const name = cursor.key(1) === '=' ? cursor.name('a name') : null;
    if (name !== null) cursor.expect('=');
    if (cursor.token.kind === 'word' && cursor.key(1) === '(')
      throw cursor.error(`${cursor.token.text}() is not supported in patterns: PATHS_BETWEEN and GRAPH_DIJKSTRA find ways`);
    return this.#chain(name);
  }

  #chain(name: string | null): PatternChain {
    const nodes = [this.#node()];
    const edges: PatternEdge[] = [];
    while (this.#cursor.key() === '-' || this.#cursor.key() === '<' || this.#cursor.key() === '->') {
      if (++this.#edges > edgesMax) throw this.#cursor.error(`a pattern has at most ${edgesMax} edges`);
      edges.push(this.#edge());
      nodes.push(this.#node());
    }
    return { name, nodes, edges };
  }

  #node(): PatternNode {
    const cursor = this.#cursor;
    const { place } = cursor;
    cursor.expect('(');
    const name = this.#optionalName();
    const labels: string[][] = [];
    while (cursor.accept(':')) {
      const either = [cursor.name('a type')];
      while (cursor.accept('|')) {
        cursor.accept(':');
        either.push(cursor.name('a type'));
      }
      labels.push(either);
    }
    const properties = this.#properties();
    cursor.expect(')');
    return { name, labels, properties, place };
  }

  #edge(): PatternEdge {
    const cursor = this.#cursor;
    const { place } = cursor;
    const isIn = cursor.accept('<');
    cursor.expect('-');
    const inner = cursor.accept('[') ? this.#brackets() : { name: null, types: [], hops: null, properties: [] };
    const isOut = cursor.accept('->');
    if (!isOut) cursor.expect('-');
    if (isIn && isOut) throw cursor.error('an edge leads one way, or either: -[r]-', place);
    return { ...inner, direction: isIn ? 'in' : isOut ? 'out' : 'both', place };
  }

  #brackets(): Omit<PatternEdge, 'direction' | 'place'> {
    const cursor = this.#cursor;
    const name = this.#optionalName();
    const types: string[] = [];
    if (cursor.accept(':')) {
      do {
        cursor.accept(':');
        types.push(cursor.name('a type of edges'));
      } while (cursor.accept('|'));
    }
    const hops = cursor.accept('*') ? this.#hops() : null;
    const properties = this.#properties();
    cursor.expect(']');
    return { name, types, hops, properties };
  }

  #hops(): PatternEdge['hops'] {
    const cursor = this.#cursor;
    const unbounded = 'a path has a bound: *1..5';
    const least = cursor.isLiteral('i') ? cursor.literal('i', 'a number of hops') : null;
    if (!cursor.accept('..')) {
      if (least === null) throw cursor.error(unbounded);
      return { least, most: least };
    }
    if (!cursor.isLiteral('i')) throw cursor.error(unbounded);
    return { least, most: cursor.literal('i', 'a number of hops') };
  }

  #optionalName(): string | null {
    return this.#cursor.isName() && this.#cursor.token.kind !== 'symbol' ? this.#cursor.name('a name') : null;
  }

  #properties(): PatternNode['properties'] {
    const cursor = this.#cursor;
    const properties: { name: string; value: Term }[] = [];
    if (!cursor.accept('{')) return properties;
    if (cursor.accept('}')) return properties;
    do {
      const name = this.#word('a property');
      cursor.expect(':');
      properties.push({ name, value: this.#value() });
    } while (cursor.accept(','));
    cursor.expect('}');
    return properties;
  }

  #projection(kind: 'with' | 'return', place: Place): Clause {
    const cursor = this.#cursor;
    const distinct = cursor.accept('DISTINCT');
    const items = [this.#item(kind)];
    while (cursor.accept(',')) items.push(this.#item(kind));
    const orderBy: { term: Term; descending: boolean }[] = [];
    if (cursor.acceptPair('ORDER', 'BY')) {
      do {
        const term = this.#term(true);
        const descending = cursor.accept('DESC') || cursor.accept('DESCENDING');
        if (!descending && !cursor.accept('ASC')) cursor.accept('ASCENDING');
        orderBy.push({ term, descending });
      } while (cursor.accept(','));
    }
    const skip = cursor.accept('SKIP') ? cursor.literal('i', 'a number of rows') : null;
    const limit = cursor.accept('LIMIT') ? cursor.literal('i', 'a number of rows') : null;
    const where = kind === 'with' && cursor.accept('WHERE') ? this.#condition() : null;
    return { kind, distinct, items, orderBy, skip, limit, where, place };
  }

  #item(kind: 'with' | 'return'): Item {
    const cursor = this.#cursor;
    const { place } = cursor;
    const term = this.#term(true);
    const named = cursor.key() === 'AS';
    if (named) cursor.next();
    if (!named && kind === 'with' && term.kind !== 'variable')
      throw cursor.error('WITH names what it passes on: … AS name', place);
    return { term, name: named ? cursor.name('a name') : nameOf(term) };
  }

  #condition(): Condition {
    const cursor = this.#cursor;
    let left = this.#conjunction();
    while (cursor.key() === 'OR') {
      const { place } = cursor;
      cursor.next();
      cursor.linked();
      left = { kind: 'or', left, right: this.#conjunction(), place };
    }
    return left;
  }

  #conjunction(): Condition {
    const cursor = this.#cursor;
    let left = this.#negation();
    while (cursor.key() === 'AND') {
      const { place } = cursor;
      cursor.next();
      cursor.linked();
      left = { kind: 'and', left, right: this.#negation(), place };
    }
    return left;
  }

  #negation(): Condition {
    const cursor = this.#cursor;
    const { place } = cursor;
    if (cursor.accept('NOT')) return cursor.nested(() => ({ kind: 'not', operand: this.#negation(), place }));
    if (cursor.key() === '(') {
      if (this.#isNode()) {
        throw cursor.error('a pattern in WHERE is not supported: OPTIONAL MATCH it, and ask whether a node of it IS NULL');
      }
      cursor.next();
      const inner = cursor.nested(() => this.#condition());
      cursor.expect(')');
      return inner;
    }
    return this.#predicate();
  }

  /** Not a condition in brackets. */
  #isNode(): boolean {
    const cursor = this.#cursor;
    const behind = cursor.key(1) === ':' || cursor.key(1) === ')' ? 1 : 2;
    if (cursor.key(behind) === ':') return true;
    return cursor.key(behind) === ')' && /^(-|<|->)$/.test(cursor.key(behind + 1)) && cursor.key(behind + 2) !== '=';
  }

  #predicate(): Condition {
    const cursor = this.#cursor;
    const left = this.#term(false);
    const { place } = cursor;
    const key = cursor.key();
    if (isComparison(key)) {
      cursor.next();
      return { kind: 'compare', op: key, left, right: this.#term(false), place };
    }
    if (cursor.accept('IN')) {
      cursor.expect('[');
      const items = [this.#value()];
      while (cursor.accept(',')) items.push(this.#value());
      cursor.expect(']');
      return { kind: 'in', left, items, place };
    }
    if (cursor.accept('IS')) {
      const negated = cursor.accept('NOT');
      cursor.expect('NULL');
      return { kind: 'is-null', left, negated, place };
    }
    for (const [word, op] of [
      ['STARTS', 'starts'],
      ['ENDS', 'ends'],
    ] as const) {
      if (!cursor.accept(word)) continue;
      cursor.expect('WITH');
      return { kind: 'text', op, left, right: this.#term(false), place };
    }
    if (cursor.accept('CONTAINS')) return { kind: 'text', op: 'contains', left, right: this.#term(false), place };
    throw cursor.expected('=, <>, <, <=, >, >=, IN, IS NULL, STARTS WITH, ENDS WITH or CONTAINS');
  }

  #term(aggregated: boolean): Term {
    const cursor = this.#cursor;
    const { place } = cursor;
    const key = cursor.key();
    if (cursor.key(1) === '(' && cursor.token.kind === 'word') {
      const called = aggregates.find((each) => each.toUpperCase() === key);
      if (called === undefined || !aggregated) {
        const why = called === undefined ? 'is not supported in patterns' : 'stands in RETURN and WITH, and not in another';
        throw cursor.error(`${cursor.token.text}() ${why}: ${aggregates.join(', ')} are there`);
      }
      cursor.next();
      cursor.next();
      if (called === 'count' && cursor.accept('*')) {
        cursor.expect(')');
        return { kind: 'aggregate', function: called, of: null, distinct: false, place };
      }
      const distinct = cursor.accept('DISTINCT');
      const of = this.#term(false);
      cursor.expect(')');
      return { kind: 'aggregate', function: called, of, distinct, place };
    }
    if (cursor.token.kind === 'literal') return this.#value();
    const name = cursor.name('a name or a value');
    if (!cursor.accept('.')) return { kind: 'variable', name, place };
    return { kind: 'property', of: name, name: this.#word('a property'), place };
  }

  #value(): Term {
    return { kind: 'literal', ...this.#cursor.anyLiteral('a value (a text stands in single quotes)') };
  }

  /** Behind a dot or before a colon any word is a name. */
  #word(what: string): string {
    const cursor = this.#cursor;
    return cursor.token.kind === 'word' ? cursor.next().text : cursor.name(what);
  }
}

function isComparison(key: string): key is CompareOp {
  return key === '=' || key === '!=' || key === '<' || key === '<=' || key === '>' || key === '>=';
}

function nameOf(term: Term): string {
  switch (term.kind) {
    case 'variable':
      return term.name;
    case 'property':
      return `${term.of}.${term.name}`;
    case 'aggregate':
      return `${term.function}(${term.distinct ? 'DISTINCT ' : ''}${term.of === null ? '*' : nameOf(term.of)})`;
    default:
      return 'value';
  }
}
