/**
 * Graph patterns as they are written, to a tree:
 *
 *   MATCH (a:Type {key: value})-[r:LINK|OTHER*1..3]->(b), … [AS OF …] [WHERE …]
 *   OPTIONAL MATCH … UNWIND list AS name WITH … RETURN [DISTINCT] a.key AS name, count(*), collect(b) [ORDER BY …] [SKIP n] [LIMIT n]
 *
 *   [MATCH … | UNWIND … | WITH …] CREATE|MERGE (a:Type {key: value})-[r:LINK]->(b), … [CREATE|MERGE …] [RETURN a AS name, …]
 *
 * Every other clause of pattern languages is REL_PARSE with its location: nothing is ignored. Source: specification, "Doors".
 */
import type { Location } from '../syntax/statement.ts';
import {
  aggregates,
  type ArithmeticOp,
  type Clause,
  type CompareOp,
  type Item,
  type CreateClause,
  type PatternChain,
  type PatternEdge,
  type PatternNode,
  type PatternWrite,
  type Projection,
  type Term,
} from '../syntax/pattern-tree.ts';
import { isAsOf, readAsOf } from './sql-query.ts';
import type { TokenCursor } from './token-cursor.ts';

/** Functions, in lower case: their names here, and the least and most number of their arguments. */
export const functions: ReadonlyMap<string, { readonly call: string; readonly least: number; readonly most: number }> = new Map(
  (
    [
      ['#LABELS #TYPE #ID #ELEMENTID #PROPERTIES #KEYS #NODES #RELATIONSHIPS #LENGTH #SIZE #HEAD #LAST', 1, 1],
      ['#TOSTRING #TOINTEGER #TOFLOAT #TOBOOLEAN', 1, 1],
      ['#RANGE', 2, 3],
      ['LOWER UPPER TRIM ABS CEIL FLOOR SIGN SQRT EXP LN REVERSE', 1, 1],
      ['ROUND', 1, 2],
      ['LEFT RIGHT', 2, 2],
      ['REPLACE', 3, 3],
      ['COALESCE', 1, 64],
    ] as const
  ).flatMap(([names, least, most]) => names.split(' ').map((call) => [nameOfCall(call), { call, least, most }] as const)),
);

function nameOfCall(call: string): string {
  const names: Readonly<Record<string, string>> = { LOWER: 'tolower', UPPER: 'toupper', LN: 'log' };
  return names[call] ?? call.replace('#', '').toLowerCase();
}

/** Recognised, but not executable. */
const changes: ReadonlySet<string> = new Set('SET DELETE DETACH REMOVE'.split(' '));
const unsupported: ReadonlySet<string> = new Set('FOREACH UNION CALL LOAD USE'.split(' '));
const clausesMax = 32;
const edgesMax = 64;

export function startsPattern(cursor: TokenCursor): boolean {
  const [key, next] = [cursor.key(), cursor.key(1)];
  if (key === 'OPTIONAL') return next === 'MATCH';
  if (key === 'UNWIND' || key === 'RETURN') return true;
  if (key === 'MATCH' && cursor.peek(1).kind === 'word' && cursor.key(2) === '=') return true;
  return (key === 'MATCH' || key === 'CREATE' || key === 'MERGE') && next === '(';
}

/** The clauses, RETURN last; or what of them writes, `pattern` null where nothing runs it. */
export function readPattern(
  cursor: TokenCursor,
): readonly Clause[] | { readonly verb: string; readonly location: Location; readonly pattern: PatternWrite | null } {
  const reader = new PatternReader(cursor);
  const clauses: Clause[] = [];
  for (;;) {
    const { location } = cursor;
    const verb = cursor.key();
    if (changes.has(verb)) return { verb, location, pattern: null };
    if (verb === 'CREATE' || verb === 'MERGE') return { verb, location, pattern: reader.write(clauses) };
    if (clauses.length === clausesMax) throw cursor.error(`a pattern has at most ${clausesMax} clauses`);
    const clause = reader.clause();
    clauses.push(clause);
    if (clause.kind === 'return') return clauses;
  }
}

class PatternReader {
  readonly #cursor: TokenCursor;
  /** Comparisons that share an operand with the one before them. */
  #chainedSoFar = 0;
  #edges = 0;
  /** RETURN or WITH is read, and no aggregate within it. */
  #takesAggregates = false;

  constructor(cursor: TokenCursor) {
    this.#cursor = cursor;
  }

  clause(): Clause {
    const cursor = this.#cursor;
    const { location } = cursor;
    const optional = cursor.accept('OPTIONAL');
    if (cursor.accept('MATCH')) return this.#match(optional, location);
    if (optional) throw cursor.expectedError('MATCH');
    if (cursor.accept('UNWIND')) return this.#unwind(location);
    if (cursor.accept('WITH')) return this.#projection('with', location);
    if (cursor.accept('RETURN')) return this.#projection('return', location);
    if (unsupported.has(cursor.key())) throw cursor.error(`${cursor.key()} is not supported in patterns`);
    throw cursor.expectedError('MATCH, OPTIONAL MATCH, UNWIND, WITH or RETURN');
  }

  write(matches: readonly Clause[]): PatternWrite {
    const cursor = this.#cursor;
    const { location } = cursor;
    const createdClauses: CreateClause[] = [];
    while (cursor.key() === 'CREATE' || cursor.key() === 'MERGE') {
      const begin = cursor.location;
      if (matches.length + createdClauses.length === clausesMax)
        throw cursor.error(`a pattern has at most ${clausesMax} clauses`);
      const kind = cursor.next().key === 'CREATE' ? 'create' : 'merge';
      const chains = [this.#chain(null)];
      while (kind === 'create' && cursor.accept(',')) chains.push(this.#chain(null));
      createdClauses.push({ kind, chains, location: begin });
    }
    const end = cursor.location;
    const returned = cursor.accept('RETURN') ? this.#projection('return', end) : null;
    return { matches, created: createdClauses, returned, location };
  }

  #unwind(location: Location): Clause {
    const list = this.#term();
    this.#cursor.expect('AS');
    return { kind: 'unwind', list, name: this.#cursor.name('a name'), location };
  }

  #match(optional: boolean, location: Location): Clause {
    const cursor = this.#cursor;
    const chains = [this.#path()];
    while (cursor.accept(',')) chains.push(this.#path());
    if (isAsOf(cursor)) readAsOf(cursor);
    const where = cursor.accept('WHERE') ? this.#term() : null;
    return { kind: 'match', optional, chains, where, location };
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
    const { location } = cursor;
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
    return { name, labels, properties, location };
  }

  #edge(): PatternEdge {
    const cursor = this.#cursor;
    const { location } = cursor;
    const isIn = cursor.accept('<');
    cursor.expect('-');
    const inner = cursor.accept('[') ? this.#brackets() : { name: null, types: [], hops: null, properties: [] };
    const isOut = cursor.accept('->');
    if (!isOut) cursor.expect('-');
    if (isIn && isOut) throw cursor.error('an edge leads one way, or either: -[r]-', location);
    return { ...inner, direction: isIn ? 'in' : isOut ? 'out' : 'both', location };
  }

  #brackets(): Omit<PatternEdge, 'direction' | 'location'> {
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
    if (cursor.token.kind === 'literal')
      throw cursor.error('properties are named one by one, {name: $map.name}: a map as a whole is not supported here');
    return cursor.key() === '{' ? this.#entries('a property') : [];
  }

  #entries(expected: string): { name: string; value: Term }[] {
    const cursor = this.#cursor;
    cursor.expect('{');
    const entries: { name: string; value: Term }[] = [];
    if (cursor.accept('}')) return entries;
    do {
      const name = this.#word(expected);
      cursor.expect(':');
      entries.push({ name, value: cursor.nest(() => this.#term()) });
    } while (cursor.accept(','));
    cursor.expect('}');
    return entries;
  }

  #projection(kind: 'with' | 'return', location: Location): Projection {
    const cursor = this.#cursor;
    this.#takesAggregates = true;
    const distinct = cursor.accept('DISTINCT');
    const isAll = cursor.accept('*');
    const items = isAll ? [] : [this.#item(kind)];
    while (cursor.accept(',')) items.push(this.#item(kind));
    const orderBy: { term: Term; descending: boolean }[] = [];
    if (cursor.acceptPair('ORDER', 'BY')) {
      do {
        const term = this.#term();
        const descending = cursor.accept('DESC') || cursor.accept('DESCENDING');
        if (!descending && !cursor.accept('ASC')) cursor.accept('ASCENDING');
        orderBy.push({ term, descending });
      } while (cursor.accept(','));
    }
    this.#takesAggregates = false;
    const skip = cursor.accept('SKIP') ? cursor.literal('i', 'a number of rows') : null;
    const limit = cursor.accept('LIMIT') ? cursor.literal('i', 'a number of rows') : null;
    const where = kind === 'with' && cursor.accept('WHERE') ? this.#term() : null;
    return { kind, distinct, isAll, items, orderBy, skip, limit, where, location };
  }

  #item(kind: 'with' | 'return'): Item {
    const cursor = this.#cursor;
    const { location } = cursor;
    const term = this.#term();
    const named = cursor.key() === 'AS';
    if (named) cursor.next();
    if (!named && kind === 'with' && term.kind !== 'variable')
      throw cursor.error('WITH names what it passes on: … AS name', location);
    return { term, name: named ? cursor.name('a name') : nameOf(term) };
  }

  #term(): Term {
    return this.#readChain(
      () => this.#readChain(() => this.#readChain(() => this.#negation(), 'AND', 'and'), 'XOR', 'xor'),
      'OR',
      'or',
    );
  }

  #readChain(operand: () => Term, word: string, kind: 'and' | 'or' | 'xor'): Term {
    const cursor = this.#cursor;
    let left = operand();
    while (cursor.key() === word) {
      const { location } = cursor;
      cursor.next();
      cursor.countLink();
      left = { kind, left, right: operand(), location };
    }
    return left;
  }

  #negation(): Term {
    const cursor = this.#cursor;
    const { location } = cursor;
    if (!cursor.accept('NOT')) return this.#comparison();
    return cursor.nest(() => ({ kind: 'not', operand: this.#negation(), location }));
  }

  #comparison(): Term {
    const cursor = this.#cursor;
    let left = this.#readTest();
    let chain: Term | null = null;
    let chained = this.#chainedSoFar;
    for (let op = cursor.key(); isComparison(op); op = cursor.key()) {
      const { location } = cursor;
      cursor.next();
      if (chain !== null) {
        // It stands in both comparisons: with chains in chains, 2 to the power of their depth times.
        if (this.#chainedSoFar > chained) throw cursor.error('a chain of comparisons within one: name it by WITH', left.location);
        this.#chainedSoFar++;
      }
      chained = this.#chainedSoFar;
      const right = this.#readTest();
      const compared: Term = { kind: 'compare', op, left, right, location };
      // a < b < c says both.
      chain = chain === null ? compared : { kind: 'and', left: chain, right: compared, location };
      left = right;
      cursor.countLink();
    }
    return chain ?? left;
  }

  /** A sum with the tests behind it. */
  #readTest(): Term {
    const cursor = this.#cursor;
    let left = this.#sum();
    for (;;) {
      const { location } = cursor;
      if (cursor.accept('IN')) {
        left = { kind: 'in', left, list: this.#sum(), location };
      } else if (cursor.key() === 'IS') {
        cursor.next();
        const negated = cursor.accept('NOT');
        cursor.expect('NULL');
        left = { kind: 'is-null', left, negated, location };
      } else if (cursor.acceptPair('STARTS', 'WITH')) left = { kind: 'text', op: 'starts', left, right: this.#sum(), location };
      else if (cursor.acceptPair('ENDS', 'WITH')) left = { kind: 'text', op: 'ends', left, right: this.#sum(), location };
      else if (cursor.accept('CONTAINS')) left = { kind: 'text', op: 'contains', left, right: this.#sum(), location };
      else return left;
      cursor.countLink();
    }
  }

  #sum(): Term {
    return this.#operators(['+', '-'], () => this.#operators(['*', '/', '%'], () => this.#readSigned()));
  }

  #operators(ops: readonly ArithmeticOp[], operand: () => Term): Term {
    const cursor = this.#cursor;
    let left = operand();
    for (let op = ops.find((each) => each === cursor.key()); op !== undefined; op = ops.find((each) => each === cursor.key())) {
      const { location } = cursor;
      cursor.next();
      cursor.countLink();
      left = { kind: 'arithmetic', op, left, right: operand(), location };
    }
    return left;
  }

  #readSigned(): Term {
    const cursor = this.#cursor;
    const { location } = cursor;
    if (cursor.accept('-')) return cursor.nest(() => ({ kind: 'negate', operand: this.#readSigned(), location }));
    let of = this.#atom();
    for (;;) {
      const at = cursor.location;
      if (cursor.accept('.')) of = { kind: 'property', of, name: this.#word('a property'), location: at };
      else if (cursor.key() === '[') of = this.#element(of, at);
      else if (cursor.key() === ':' && of.kind === 'variable') of = this.#readLabels(of.name, at);
      else return of;
      cursor.countLink();
    }
  }

  #element(of: Term, location: Location): Term {
    const cursor = this.#cursor;
    cursor.expect('[');
    const at = cursor.nest(() => this.#term());
    if (cursor.key() === '..') throw cursor.error('a part of a list, [a..b], is not supported');
    cursor.expect(']');
    return { kind: 'element', of, at, location };
  }

  #readLabels(of: string, location: Location): Term {
    const cursor = this.#cursor;
    const types: string[] = [];
    while (cursor.accept(':')) types.push(cursor.name('a type'));
    return { kind: 'labelled', of, types, location };
  }

  #atom(): Term {
    const cursor = this.#cursor;
    const { location } = cursor;
    if (cursor.token.kind === 'literal') {
      const { typed } = cursor.token;
      return { kind: 'literal', ...cursor.anyLiteral('a value'), ...(typed && { typed }) };
    }
    switch (cursor.key()) {
      case '(': {
        if (this.#isPattern())
          throw cursor.error(
            'a pattern in a condition is not supported: OPTIONAL MATCH it, and ask whether a node of it IS NULL',
          );
        cursor.next();
        const inner = cursor.nest(() => this.#term());
        cursor.expect(')');
        return inner;
      }
      case '[':
        return this.#list(location);
      case '{':
        return { kind: 'map', entries: cursor.nest(() => this.#entries('a name')), location };
      case 'CASE':
        return this.#case(location);
    }
    if (cursor.key(1) === '(' && cursor.token.kind === 'word') return this.#readCall(location);
    if (cursor.key(1) === '{' && cursor.token.kind === 'word')
      throw cursor.error(`${cursor.token.text} {…} is not supported in patterns`);
    return { kind: 'variable', name: cursor.name('a name or a value'), location };
  }

  /** Whether the brackets here begin a pattern: an edge follows them. */
  #isPattern(): boolean {
    const cursor = this.#cursor;
    let depth = 0;
    let at = 0;
    do {
      const key = cursor.key(at);
      if (cursor.peek(at).kind === 'end') return false;
      if (key === '(') depth++;
      else if (key === ')') depth--;
      at++;
    } while (depth > 0);
    const [next, then] = [cursor.key(at), cursor.key(at + 1)];
    return (next === '<' && then === '-') || (next === '-' && (then === '[' || then === '-' || then === '->'));
  }

  #list(location: Location): Term {
    const cursor = this.#cursor;
    cursor.expect('[');
    const items: Term[] = [];
    if (cursor.accept(']')) return { kind: 'list', items, location };
    if (cursor.key(1) === 'IN' && cursor.token.kind === 'word')
      throw cursor.error('a comprehension, [x IN list …], is not supported');
    do items.push(cursor.nest(() => this.#term()));
    while (cursor.accept(','));
    cursor.expect(']');
    return { kind: 'list', items, location };
  }

  #case(location: Location): Term {
    const cursor = this.#cursor;
    return cursor.nest(() => {
      cursor.expect('CASE');
      const operand = cursor.key() === 'WHEN' ? null : this.#term();
      const branches: { when: Term; result: Term }[] = [];
      while (cursor.accept('WHEN')) {
        const when = this.#term();
        cursor.expect('THEN');
        branches.push({ when, result: this.#term() });
      }
      if (branches.length === 0) throw cursor.expectedError('WHEN');
      const otherwise = cursor.accept('ELSE') ? this.#term() : null;
      cursor.expect('END');
      return { kind: 'case', operand, branches, otherwise, location };
    });
  }

  #readCall(location: Location): Term {
    const cursor = this.#cursor;
    const { text } = cursor.token;
    const name = text.toLowerCase();
    const aggregate = aggregates.find((each) => each === name);
    const known = functions.get(name);
    if (aggregate === undefined && known === undefined) {
      const there = [...aggregates, ...functions.keys()].join(', ');
      throw cursor.error(`${text}() is not supported in patterns: ${there} are there`);
    }
    if (aggregate !== undefined && !this.#takesAggregates)
      throw cursor.error(`${text}() stands in RETURN and WITH, and not in another`);
    cursor.next();
    cursor.next();
    if (aggregate !== undefined) {
      if (aggregate === 'count' && cursor.accept('*')) {
        cursor.expect(')');
        return { kind: 'aggregate', function: aggregate, of: null, distinct: false, location };
      }
      const distinct = cursor.accept('DISTINCT');
      this.#takesAggregates = false;
      const of = cursor.nest(() => this.#term());
      this.#takesAggregates = true;
      cursor.expect(')');
      return { kind: 'aggregate', function: aggregate, of, distinct, location };
    }
    const given: Term[] = [];
    if (cursor.key() !== ')') {
      do given.push(cursor.nest(() => this.#term()));
      while (cursor.accept(','));
    }
    cursor.expect(')');
    const { least, most } = known!;
    if (given.length < least || given.length > most)
      throw cursor.error(
        `${text}() takes ${least === most ? least : `${least} to ${most}`} ${most === 1 ? 'value' : 'values'}`,
        location,
      );
    return { kind: 'function', name, arguments: given, location };
  }

  /** A name behind a dot or before a colon, where any word is one. */
  #word(expected: string): string {
    const cursor = this.#cursor;
    return cursor.token.kind === 'word' ? cursor.next().text : cursor.name(expected);
  }
}

function isComparison(key: string): key is CompareOp {
  return key === '=' || key === '!=' || key === '<' || key === '<=' || key === '>' || key === '>=';
}

/** As an item without a name is called. It shows no value: statements that differ in these alone share a plan. */
function nameOf(term: Term): string {
  switch (term.kind) {
    case 'variable':
      return term.name;
    case 'property':
      return `${nameOf(term.of)}.${term.name}`;
    case 'aggregate':
      return `${term.function}(${term.distinct ? 'DISTINCT ' : ''}${term.of === null ? '*' : nameOf(term.of)})`;
    case 'function':
      return `${term.name}(${term.arguments.map(nameOf).join(', ')})`;
    case 'arithmetic':
      return `${nameOf(term.left)} ${term.op} ${nameOf(term.right)}`;
    case 'labelled':
      return [term.of, ...term.types].join(':');
    default:
      return 'value';
  }
}
