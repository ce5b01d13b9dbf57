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
  ).flatMap(([names, least, most]) =>
    names.split(' ').map((call) => [patternFunctionName(call), { call, least, most }] as const),
  ),
);

function patternFunctionName(call: string): string {
  const patternNames: Readonly<Record<string, string>> = { LOWER: 'tolower', UPPER: 'toupper', LN: 'log' };
  return patternNames[call] ?? call.replace('#', '').toLowerCase();
}

/** Recognised, but not executable. */
const changeVerbs: ReadonlySet<string> = new Set('SET DELETE DETACH REMOVE'.split(' '));
const unsupportedClauses: ReadonlySet<string> = new Set('FOREACH UNION CALL LOAD USE'.split(' '));
const patternClausesMax = 32;
const patternEdgesMax = 64;

export function startsPattern(patternCursor: TokenCursor): boolean {
  const [firstKey, secondKey] = [patternCursor.key(), patternCursor.key(1)];
  if (firstKey === 'OPTIONAL') return secondKey === 'MATCH';
  if (firstKey === 'UNWIND' || firstKey === 'RETURN') return true;
  if (firstKey === 'MATCH' && patternCursor.peek(1).kind === 'word' && patternCursor.key(2) === '=') return true;
  return (firstKey === 'MATCH' || firstKey === 'CREATE' || firstKey === 'MERGE') && secondKey === '(';
}

/** The clauses, RETURN last; or what of them writes, `pattern` null where nothing runs it. */
export function readPattern(
  patternCursor: TokenCursor,
): readonly Clause[] | { readonly verb: string; readonly location: Location; readonly pattern: PatternWrite | null } {
  const patternReader = new PatternReader(patternCursor);
  const patternClauses: Clause[] = [];
  for (;;) {
    const { location } = patternCursor;
    const verb = patternCursor.key();
    if (changeVerbs.has(verb)) return { verb, location, pattern: null };
    if (verb === 'CREATE' || verb === 'MERGE') return { verb, location, pattern: patternReader.write(patternClauses) };
    if (patternClauses.length === patternClausesMax)
      throw patternCursor.error(`a pattern has at most ${patternClausesMax} clauses`);
    const patternClause = patternReader.clause();
    patternClauses.push(patternClause);
    if (patternClause.kind === 'return') return patternClauses;
  }
}

class PatternReader {
  readonly #patternCursor: TokenCursor;
  /** Comparisons that share an operand with the one before them. */
  #comparisonLinks = 0;
  #edgeCount = 0;
  /** RETURN or WITH is read, and no aggregate within it. */
  #isAggregateAllowed = false;

  constructor(patternCursor: TokenCursor) {
    this.#patternCursor = patternCursor;
  }

  clause(): Clause {
    const patternCursor = this.#patternCursor;
    const { location } = patternCursor;
    const isOptional = patternCursor.accept('OPTIONAL');
    if (patternCursor.accept('MATCH')) return this.#readMatch(isOptional, location);
    if (isOptional) throw patternCursor.expectedError('MATCH');
    if (patternCursor.accept('UNWIND')) return this.#readUnwind(location);
    if (patternCursor.accept('WITH')) return this.#readProjection('with', location);
    if (patternCursor.accept('RETURN')) return this.#readProjection('return', location);
    if (unsupportedClauses.has(patternCursor.key()))
      throw patternCursor.error(`${patternCursor.key()} is not supported in patterns`);
    throw patternCursor.expectedError('MATCH, OPTIONAL MATCH, UNWIND, WITH or RETURN');
  }

  write(matchClauses: readonly Clause[]): PatternWrite {
    const patternCursor = this.#patternCursor;
    const { location } = patternCursor;
    const createdClauses: CreateClause[] = [];
    while (patternCursor.key() === 'CREATE' || patternCursor.key() === 'MERGE') {
      const clauseStart = patternCursor.location;
      if (matchClauses.length + createdClauses.length === patternClausesMax)
        throw patternCursor.error(`a pattern has at most ${patternClausesMax} clauses`);
      const createOrMerge = patternCursor.next().key === 'CREATE' ? 'create' : 'merge';
      const createdChains = [this.#readEdgeChain(null)];
      while (createOrMerge === 'create' && patternCursor.accept(',')) createdChains.push(this.#readEdgeChain(null));
      createdClauses.push({ kind: createOrMerge, chains: createdChains, location: clauseStart });
    }
    const returnStart = patternCursor.location;
    const returnClause = patternCursor.accept('RETURN') ? this.#readProjection('return', returnStart) : null;
    return { matches: matchClauses, created: createdClauses, returned: returnClause, location };
  }

  #readUnwind(location: Location): Clause {
    const unwoundList = this.#readTerm();
    this.#patternCursor.expect('AS');
    return { kind: 'unwind', list: unwoundList, name: this.#patternCursor.name('a name'), location };
  }

  #readMatch(optional: boolean, location: Location): Clause {
    const patternCursor = this.#patternCursor;
    const matchedChains = [this.#readPath()];
    while (patternCursor.accept(',')) matchedChains.push(this.#readPath());
    if (isAsOf(patternCursor)) readAsOf(patternCursor);
    const matchCondition = patternCursor.accept('WHERE') ? this.#readTerm() : null;
    return { kind: 'match', optional, chains: matchedChains, where: matchCondition, location };
  }

  #readPath(): PatternChain {
    const patternCursor = this.#patternCursor;
    const pathName = patternCursor.key(1) === '=' ? patternCursor.name('a name') : null;
    if (pathName !== null) patternCursor.expect('=');
    if (patternCursor.token.kind === 'word' && patternCursor.key(1) === '(')
      throw patternCursor.error(
        `${patternCursor.token.text}() is not supported in patterns: PATHS_BETWEEN and GRAPH_DIJKSTRA find ways`,
      );
    return this.#readEdgeChain(pathName);
  }

  #readEdgeChain(name: string | null): PatternChain {
    const chainNodes = [this.#readNode()];
    const chainEdges: PatternEdge[] = [];
    while (this.#patternCursor.key() === '-' || this.#patternCursor.key() === '<' || this.#patternCursor.key() === '->') {
      if (++this.#edgeCount > patternEdgesMax) throw this.#patternCursor.error(`a pattern has at most ${patternEdgesMax} edges`);
      chainEdges.push(this.#readEdge());
      chainNodes.push(this.#readNode());
    }
    return { name, nodes: chainNodes, edges: chainEdges };
  }

  #readNode(): PatternNode {
    const patternCursor = this.#patternCursor;
    const { location } = patternCursor;
    patternCursor.expect('(');
    const name = this.#optionalName();
    const labels: string[][] = [];
    while (patternCursor.accept(':')) {
      const eitherLabel = [patternCursor.name('a type')];
      while (patternCursor.accept('|')) {
        patternCursor.accept(':');
        eitherLabel.push(patternCursor.name('a type'));
      }
      labels.push(eitherLabel);
    }
    const properties = this.#readProperties();
    patternCursor.expect(')');
    return { name, labels, properties, location };
  }

  #readEdge(): PatternEdge {
    const patternCursor = this.#patternCursor;
    const { location } = patternCursor;
    const leadsIn = patternCursor.accept('<');
    patternCursor.expect('-');
    const edgeBrackets = patternCursor.accept('[')
      ? this.#readEdgeBrackets()
      : { name: null, types: [], hops: null, properties: [] };
    const leadsOut = patternCursor.accept('->');
    if (!leadsOut) patternCursor.expect('-');
    if (leadsIn && leadsOut) throw patternCursor.error('an edge leads one way, or either: -[r]-', location);
    return { ...edgeBrackets, direction: leadsIn ? 'in' : leadsOut ? 'out' : 'both', location };
  }

  #readEdgeBrackets(): Omit<PatternEdge, 'direction' | 'location'> {
    const patternCursor = this.#patternCursor;
    const name = this.#optionalName();
    const edgeTypes: string[] = [];
    if (patternCursor.accept(':')) {
      do {
        patternCursor.accept(':');
        edgeTypes.push(patternCursor.name('a type of edges'));
      } while (patternCursor.accept('|'));
    }
    const hops = patternCursor.accept('*') ? this.#readHops() : null;
    const properties = this.#readProperties();
    patternCursor.expect(']');
    return { name, types: edgeTypes, hops, properties };
  }

  #readHops(): PatternEdge['hops'] {
    const patternCursor = this.#patternCursor;
    const unboundedPath = 'a path has a bound: *1..5';
    const leastHops = patternCursor.isLiteral('i') ? patternCursor.literal('i', 'a number of hops') : null;
    if (!patternCursor.accept('..')) {
      if (leastHops === null) throw patternCursor.error(unboundedPath);
      return { least: leastHops, most: leastHops };
    }
    if (!patternCursor.isLiteral('i')) throw patternCursor.error(unboundedPath);
    return { least: leastHops, most: patternCursor.literal('i', 'a number of hops') };
  }

  #optionalName(): string | null {
    return this.#patternCursor.isName() && this.#patternCursor.token.kind !== 'symbol'
      ? this.#patternCursor.name('a name')
      : null;
  }

  #readProperties(): PatternNode['properties'] {
    const patternCursor = this.#patternCursor;
    if (patternCursor.token.kind === 'literal')
      throw patternCursor.error('properties are named one by one, {name: $map.name}: a map as a whole is not supported here');
    return patternCursor.key() === '{' ? this.#readEntries('a property') : [];
  }

  #readEntries(expected: string): { name: string; value: Term }[] {
    const patternCursor = this.#patternCursor;
    patternCursor.expect('{');
    const propertyEntries: { name: string; value: Term }[] = [];
    if (patternCursor.accept('}')) return propertyEntries;
    do {
      const name = this.#readWord(expected);
      patternCursor.expect(':');
      propertyEntries.push({ name, value: patternCursor.nest(() => this.#readTerm()) });
    } while (patternCursor.accept(','));
    patternCursor.expect('}');
    return propertyEntries;
  }

  #readProjection(projectionKind: 'with' | 'return', location: Location): Projection {
    const patternCursor = this.#patternCursor;
    this.#isAggregateAllowed = true;
    const distinct = patternCursor.accept('DISTINCT');
    const isAll = patternCursor.accept('*');
    const projectedItems = isAll ? [] : [this.#readItem(projectionKind)];
    while (patternCursor.accept(',')) projectedItems.push(this.#readItem(projectionKind));
    const orderBy: { term: Term; descending: boolean }[] = [];
    if (patternCursor.acceptPair('ORDER', 'BY')) {
      do {
        const orderTerm = this.#readTerm();
        const descending = patternCursor.accept('DESC') || patternCursor.accept('DESCENDING');
        if (!descending && !patternCursor.accept('ASC')) patternCursor.accept('ASCENDING');
        orderBy.push({ term: orderTerm, descending });
      } while (patternCursor.accept(','));
    }
    this.#isAggregateAllowed = false;
    const skip = patternCursor.accept('SKIP') ? patternCursor.literal('i', 'a number of rows') : null;
    const limit = patternCursor.accept('LIMIT') ? patternCursor.literal('i', 'a number of rows') : null;
    const where = projectionKind === 'with' && patternCursor.accept('WHERE') ? this.#readTerm() : null;
    return { kind: projectionKind, distinct, isAll, items: projectedItems, orderBy, skip, limit, where, location };
  }

  #readItem(kind: 'with' | 'return'): Item {
    const patternCursor = this.#patternCursor;
    const { location } = patternCursor;
    const itemTerm = this.#readTerm();
    const isNamed = patternCursor.key() === 'AS';
    if (isNamed) patternCursor.next();
    if (!isNamed && kind === 'with' && itemTerm.kind !== 'variable')
      throw patternCursor.error('WITH names what it passes on: … AS name', location);
    return { term: itemTerm, name: isNamed ? patternCursor.name('a name') : termName(itemTerm) };
  }

  #readTerm(): Term {
    return this.#readChain(
      () => this.#readChain(() => this.#readChain(() => this.#readNegation(), 'AND', 'and'), 'XOR', 'xor'),
      'OR',
      'or',
    );
  }

  #readChain(readOperand: () => Term, chainWord: string, kind: 'and' | 'or' | 'xor'): Term {
    const patternCursor = this.#patternCursor;
    let leftTerm = readOperand();
    while (patternCursor.key() === chainWord) {
      const { location } = patternCursor;
      patternCursor.next();
      patternCursor.countLink();
      leftTerm = { kind, left: leftTerm, right: readOperand(), location };
    }
    return leftTerm;
  }

  #readNegation(): Term {
    const patternCursor = this.#patternCursor;
    const { location } = patternCursor;
    if (!patternCursor.accept('NOT')) return this.#readComparison();
    return patternCursor.nest(() => ({ kind: 'not', operand: this.#readNegation(), location }));
  }

  #readComparison(): Term {
    const patternCursor = this.#patternCursor;
    let leftTerm = this.#readTest();
    let comparisonChain: Term | null = null;
    let linksBefore = this.#comparisonLinks;
    for (let comparisonKey = patternCursor.key(); isComparisonKey(comparisonKey); comparisonKey = patternCursor.key()) {
      const { location } = patternCursor;
      patternCursor.next();
      if (comparisonChain !== null) {
        // It stands in both comparisons: with chains in chains, 2 to the power of their depth times.
        if (this.#comparisonLinks > linksBefore)
          throw patternCursor.error('a chain of comparisons within one: name it by WITH', leftTerm.location);
        this.#comparisonLinks++;
      }
      linksBefore = this.#comparisonLinks;
      const rightTerm = this.#readTest();
      const comparedTerm: Term = { kind: 'compare', op: comparisonKey, left: leftTerm, right: rightTerm, location };
      // a < b < c says both.
      comparisonChain =
        comparisonChain === null ? comparedTerm : { kind: 'and', left: comparisonChain, right: comparedTerm, location };
      leftTerm = rightTerm;
      patternCursor.countLink();
    }
    return comparisonChain ?? leftTerm;
  }

  /** A sum with the tests behind it. */
  #readTest(): Term {
    const patternCursor = this.#patternCursor;
    let testedTerm = this.#readSum();
    for (;;) {
      const { location } = patternCursor;
      if (patternCursor.accept('IN')) {
        testedTerm = { kind: 'in', left: testedTerm, list: this.#readSum(), location };
      } else if (patternCursor.key() === 'IS') {
        patternCursor.next();
        const isNegated = patternCursor.accept('NOT');
        patternCursor.expect('NULL');
        testedTerm = { kind: 'is-null', left: testedTerm, negated: isNegated, location };
      } else if (patternCursor.acceptPair('STARTS', 'WITH'))
        testedTerm = { kind: 'text', op: 'starts', left: testedTerm, right: this.#readSum(), location };
      else if (patternCursor.acceptPair('ENDS', 'WITH'))
        testedTerm = { kind: 'text', op: 'ends', left: testedTerm, right: this.#readSum(), location };
      else if (patternCursor.accept('CONTAINS'))
        testedTerm = { kind: 'text', op: 'contains', left: testedTerm, right: this.#readSum(), location };
      else return testedTerm;
      patternCursor.countLink();
    }
  }

  #readSum(): Term {
    return this.#readOperators(['+', '-'], () => this.#readOperators(['*', '/', '%'], () => this.#readSigned()));
  }

  #readOperators(arithmeticOps: readonly ArithmeticOp[], readOperand: () => Term): Term {
    const patternCursor = this.#patternCursor;
    let leftTerm = readOperand();
    for (
      let op = arithmeticOps.find((arithmeticOp) => arithmeticOp === patternCursor.key());
      op !== undefined;
      op = arithmeticOps.find((arithmeticOp) => arithmeticOp === patternCursor.key())
    ) {
      const { location } = patternCursor;
      patternCursor.next();
      patternCursor.countLink();
      leftTerm = { kind: 'arithmetic', op, left: leftTerm, right: readOperand(), location };
    }
    return leftTerm;
  }

  #readSigned(): Term {
    const patternCursor = this.#patternCursor;
    const { location } = patternCursor;
    if (patternCursor.accept('-')) return patternCursor.nest(() => ({ kind: 'negate', operand: this.#readSigned(), location }));
    let signedTerm = this.#readAtom();
    for (;;) {
      const suffixLocation = patternCursor.location;
      if (patternCursor.accept('.'))
        signedTerm = { kind: 'property', of: signedTerm, name: this.#readWord('a property'), location: suffixLocation };
      else if (patternCursor.key() === '[') signedTerm = this.#readElement(signedTerm, suffixLocation);
      else if (patternCursor.key() === ':' && signedTerm.kind === 'variable')
        signedTerm = this.#readLabels(signedTerm.name, suffixLocation);
      else return signedTerm;
      patternCursor.countLink();
    }
  }

  #readElement(listTerm: Term, location: Location): Term {
    const patternCursor = this.#patternCursor;
    patternCursor.expect('[');
    const elementIndex = patternCursor.nest(() => this.#readTerm());
    if (patternCursor.key() === '..') throw patternCursor.error('a part of a list, [a..b], is not supported');
    patternCursor.expect(']');
    return { kind: 'element', of: listTerm, at: elementIndex, location };
  }

  #readLabels(labelledName: string, location: Location): Term {
    const patternCursor = this.#patternCursor;
    const labelTypes: string[] = [];
    while (patternCursor.accept(':')) labelTypes.push(patternCursor.name('a type'));
    return { kind: 'labelled', of: labelledName, types: labelTypes, location };
  }

  #readAtom(): Term {
    const patternCursor = this.#patternCursor;
    const { location } = patternCursor;
    if (patternCursor.token.kind === 'literal') {
      const { typed } = patternCursor.token;
      return { kind: 'literal', ...patternCursor.anyLiteral('a value'), ...(typed && { typed }) };
    }
    switch (patternCursor.key()) {
      case '(': {
        if (this.#isPattern())
          throw patternCursor.error(
            'a pattern in a condition is not supported: OPTIONAL MATCH it, and ask whether a node of it IS NULL',
          );
        patternCursor.next();
        const bracketedTerm = patternCursor.nest(() => this.#readTerm());
        patternCursor.expect(')');
        return bracketedTerm;
      }
      case '[':
        return this.#readList(location);
      case '{':
        return { kind: 'map', entries: patternCursor.nest(() => this.#readEntries('a name')), location };
      case 'CASE':
        return this.#readCase(location);
    }
    if (patternCursor.key(1) === '(' && patternCursor.token.kind === 'word') return this.#readCall(location);
    if (patternCursor.key(1) === '{' && patternCursor.token.kind === 'word')
      throw patternCursor.error(`${patternCursor.token.text} {…} is not supported in patterns`);
    return { kind: 'variable', name: patternCursor.name('a name or a value'), location };
  }

  /** Whether the brackets here begin a pattern: an edge follows them. */
  #isPattern(): boolean {
    const patternCursor = this.#patternCursor;
    let bracketDepth = 0;
    let lexemeOffset = 0;
    do {
      const lexemeKey = patternCursor.key(lexemeOffset);
      if (patternCursor.peek(lexemeOffset).kind === 'end') return false;
      if (lexemeKey === '(') bracketDepth++;
      else if (lexemeKey === ')') bracketDepth--;
      lexemeOffset++;
    } while (bracketDepth > 0);
    const [keyBehind, secondKeyBehind] = [patternCursor.key(lexemeOffset), patternCursor.key(lexemeOffset + 1)];
    return (
      (keyBehind === '<' && secondKeyBehind === '-') ||
      (keyBehind === '-' && (secondKeyBehind === '[' || secondKeyBehind === '-' || secondKeyBehind === '->'))
    );
  }

  #readList(location: Location): Term {
    const patternCursor = this.#patternCursor;
    patternCursor.expect('[');
    const listTerms: Term[] = [];
    if (patternCursor.accept(']')) return { kind: 'list', items: listTerms, location };
    if (patternCursor.key(1) === 'IN' && patternCursor.token.kind === 'word')
      throw patternCursor.error('a comprehension, [x IN list …], is not supported');
    do listTerms.push(patternCursor.nest(() => this.#readTerm()));
    while (patternCursor.accept(','));
    patternCursor.expect(']');
    return { kind: 'list', items: listTerms, location };
  }

  #readCase(location: Location): Term {
    const patternCursor = this.#patternCursor;
    return patternCursor.nest(() => {
      patternCursor.expect('CASE');
      const caseOperand = patternCursor.key() === 'WHEN' ? null : this.#readTerm();
      const caseBranches: { when: Term; result: Term }[] = [];
      while (patternCursor.accept('WHEN')) {
        const whenTerm = this.#readTerm();
        patternCursor.expect('THEN');
        caseBranches.push({ when: whenTerm, result: this.#readTerm() });
      }
      if (caseBranches.length === 0) throw patternCursor.expectedError('WHEN');
      const elseTerm = patternCursor.accept('ELSE') ? this.#readTerm() : null;
      patternCursor.expect('END');
      return { kind: 'case', operand: caseOperand, branches: caseBranches, otherwise: elseTerm, location };
    });
  }

  #readCall(location: Location): Term {
    const patternCursor = this.#patternCursor;
    const { text } = patternCursor.token;
    const name = text.toLowerCase();
    const aggregate = aggregates.find((aggregateName) => aggregateName === name);
    const knownFunction = functions.get(name);
    if (aggregate === undefined && knownFunction === undefined) {
      const supportedNames = [...aggregates, ...functions.keys()].join(', ');
      throw patternCursor.error(`${text}() is not supported in patterns: ${supportedNames} are there`);
    }
    if (aggregate !== undefined && !this.#isAggregateAllowed)
      throw patternCursor.error(`${text}() stands in RETURN and WITH, and not in another`);
    patternCursor.next();
    patternCursor.next();
    if (aggregate !== undefined) {
      if (aggregate === 'count' && patternCursor.accept('*')) {
        patternCursor.expect(')');
        return { kind: 'aggregate', function: aggregate, of: null, distinct: false, location };
      }
      const distinct = patternCursor.accept('DISTINCT');
      this.#isAggregateAllowed = false;
      const aggregatedTerm = patternCursor.nest(() => this.#readTerm());
      this.#isAggregateAllowed = true;
      patternCursor.expect(')');
      return { kind: 'aggregate', function: aggregate, of: aggregatedTerm, distinct, location };
    }
    const callTerms: Term[] = [];
    if (patternCursor.key() !== ')') {
      do callTerms.push(patternCursor.nest(() => this.#readTerm()));
      while (patternCursor.accept(','));
    }
    patternCursor.expect(')');
    const { least, most } = knownFunction!;
    if (callTerms.length < least || callTerms.length > most)
      throw patternCursor.error(
        `${text}() takes ${least === most ? least : `${least} to ${most}`} ${most === 1 ? 'value' : 'values'}`,
        location,
      );
    return { kind: 'function', name, arguments: callTerms, location };
  }

  /** A name behind a dot or before a colon, where any word is one. */
  #readWord(expected: string): string {
    const patternCursor = this.#patternCursor;
    return patternCursor.token.kind === 'word' ? patternCursor.next().text : patternCursor.name(expected);
  }
}

function isComparisonKey(key: string): key is CompareOp {
  return key === '=' || key === '!=' || key === '<' || key === '<=' || key === '>' || key === '>=';
}

/** As an item without a name is called. It shows no value: statements that differ in these alone share a plan. */
function termName(term: Term): string {
  switch (term.kind) {
    case 'variable':
      return term.name;
    case 'property':
      return `${termName(term.of)}.${term.name}`;
    case 'aggregate':
      return `${term.function}(${term.distinct ? 'DISTINCT ' : ''}${term.of === null ? '*' : termName(term.of)})`;
    case 'function':
      return `${term.name}(${term.arguments.map(termName).join(', ')})`;
    case 'arithmetic':
      return `${termName(term.left)} ${term.op} ${termName(term.right)}`;
    case 'labelled':
      return [term.of, ...term.types].join(':');
    default:
      return 'value';
  }
}
