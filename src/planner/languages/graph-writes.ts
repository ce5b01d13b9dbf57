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
  const graphCursor = new TokenCursor(lexed, { readQuery, readOrder }, dialect);
  const purpose = graphCursor.accept('PURPOSE') ? graphCursor.literal('s', 'a purpose in quotes') : null;
  const graphWrite = startsPattern(graphCursor)
    ? readPatternWrite(graphCursor, purpose)
    : graphCursor.accept('CALL')
      ? readScoreWrite(graphCursor, purpose)
      : null;
  if (graphWrite === null) return null;
  if (graphCursor.asOf !== null)
    throw graphCursor.error('writes apply to the current graph: leave out AS OF', graphCursor.asOf.location);
  const hasSemicolon = graphCursor.accept(';');
  if (graphCursor.token.kind === 'end') return graphWrite;
  throw hasSemicolon ? graphCursor.error('one statement at a time') : graphCursor.expectedError('the end of the statement');
}

function readPatternWrite(graphCursor: TokenCursor, purpose: Slot | null): GraphWrite | null {
  const readStatement = readPattern(graphCursor);
  if (!('verb' in readStatement) || readStatement.pattern === null) return null;
  const { matches, created, returned, location } = readStatement.pattern;
  const createdThings = new CreatedThings(matches);
  const allThings = createdThings.list(created);
  const createdNames = new Set(allThings.map(({ name }) => name));
  const returnClause = returned && createdThings.withValues(returned, createdNames);
  const edgeEnds = allThings.flatMap((element) => (element.kind === 'edge' ? [element.from, element.to] : []));
  const usedNames = [...new Set(edgeEnds)].filter((name) => !createdNames.has(name));
  const matchedNodes = matchedQuery(matches, usedNames, createdThings.values, location);
  const valueShapes = createdThings.values.map((_, i) => matchedNodes?.query.entities?.[usedNames.length + i] ?? null);
  return {
    kind: 'pattern',
    purpose,
    matched: matchedNodes && { query: matchedNodes.query, names: usedNames, values: createdThings.values.length },
    method: created.every(({ kind }) => kind === 'merge') ? 'merge' : 'create',
    things: allThings,
    returned: returnClause && { clause: returnClause, shapes: valueShapes },
    nullSlot: graphCursor.lexed.parameters.length,
    location,
  };
}

/** A query for the keys of the matched nodes, in the order of their names, and then the values. */
function matchedQuery(
  matchClauses: readonly Clause[],
  usedNames: readonly string[],
  matchedTerms: readonly Term[],
  location: Location,
): { readonly query: Query } | null {
  if (matchClauses.length === 0) {
    if (usedNames.length > 0) throw parseError(location, `there is no variable ${JSON.stringify(usedNames[0])} here`);
    if (matchedTerms.length === 0) return null;
  }
  const nodeKeyTerm = (name: string): Term => ({
    kind: 'function',
    name: nameFunction,
    arguments: [{ kind: 'variable', name, location }],
    location,
  });
  const returnedItems = [...usedNames.map(nodeKeyTerm), ...matchedTerms].map((term, i) => ({ term, name: `#${i}` }));
  // A row counts even without a value.
  const emptyListTerm: Term = { kind: 'list', items: [], location };
  const bareProjection = { orderBy: [], skip: null, limit: null, where: null, distinct: false, isAll: false } as const;
  const shownItems = returnedItems.length > 0 ? returnedItems : [{ term: emptyListTerm, name: '#0' }];
  return { query: patternQuery([...matchClauses, { kind: 'return', items: shownItems, ...bareProjection, location }], true) };
}

function matchedNames(matches: readonly Clause[]): readonly string[] {
  return matches.flatMap((clause) => {
    if (clause.kind === 'unwind') return [clause.name];
    if (clause.kind !== 'match') return clause.items.map(({ name }) => name);
    return clause.chains.flatMap(({ nodes }) => nodes.flatMap(({ name }) => name ?? []));
  });
}

/** The things that CREATE and MERGE make, each before those that name it. */
class CreatedThings {
  readonly #takenNames: Set<string>;
  /** Terms of cells and RETURN that read matched rows. */
  readonly values: Term[] = [];
  #unnamedCount = 0;

  constructor(matches: readonly Clause[]) {
    this.#takenNames = new Set(matchedNames(matches));
  }

  /** Replaces terms that name nothing made by values of the matched row. */
  withValues(returnClause: Projection, createdNames: ReadonlySet<string>): Projection {
    if (returnClause.isAll)
      throw parseError(returnClause.location, 'RETURN * is not supported behind CREATE and MERGE: name the values');
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
      ...returnClause,
      items: returnClause.items.map((item) => ({ ...item, term: replaceTerm(item.term) })),
      orderBy: returnClause.orderBy.map((orderItem) => {
        const isReturnedItem =
          orderItem.term.kind === 'variable' &&
          returnClause.items.some(({ name }) => name === (orderItem.term as { name: string }).name);
        return isReturnedItem ? orderItem : { ...orderItem, term: replaceTerm(orderItem.term) };
      }),
    };
  }

  list(created: readonly CreateClause[]): readonly CreatedElement[] {
    return created.flatMap(({ kind, chains }) =>
      chains.flatMap(({ nodes, edges }) => {
        const elements: CreatedElement[] = [];
        const chainNodeNames = nodes.map((node) => this.#createNode(node, kind, elements));
        edges.forEach((edge, i) => elements.push(this.#createEdge(edge, kind, chainNodeNames[i]!, chainNodeNames[i + 1]!)));
        if (elements.length === 0) throw parseError(nodes[0]!.location, 'nothing is created here: a new node needs a type');
        return elements;
      }),
    );
  }

  /** Its name: it is put to the things where it is made here. */
  #createNode({ name, labels, properties, location }: PatternNode, kind: CreatedNode['how'], elements: CreatedElement[]): string {
    const [nodeLabel, ...otherLabels] = labels.flat();
    if (otherLabels.length > 0) throw parseError(location, 'a new node has one type');
    if (nodeLabel === undefined) {
      if (name !== null && properties.length === 0) return name;
      throw parseError(location, 'a new node needs a type, (n:Type {key: value}); a bound one stands by its name alone');
    }
    const ownName = this.#uniqueName(name, location);
    elements.push({ kind: 'node', how: kind, name: ownName, type: nodeLabel, cells: this.#createCells(properties), location });
    return ownName;
  }

  #createEdge(edge: PatternEdge, kind: CreatedEdge['how'], left: string, right: string): CreatedEdge {
    const { location, types, direction, hops, properties } = edge;
    const [edgeType] = types;
    if (edgeType === undefined || types.length > 1 || hops !== null || direction === 'both') {
      throw parseError(location, 'a new edge has one type and one direction: -[r:TYPE]->');
    }
    const [edgeFrom, edgeTo] = direction === 'out' ? [left, right] : [right, left];
    return {
      kind: 'edge',
      how: kind,
      name: this.#uniqueName(edge.name, location),
      type: edgeType,
      from: edgeFrom,
      to: edgeTo,
      cells: this.#createCells(properties),
      location,
    };
  }

  #createCells(properties: PatternNode['properties']): readonly CreatedCell[] {
    return properties.map(({ name, value }): CreatedCell => {
      const { location } = value;
      if (value.kind !== 'literal') return { name, location, value: this.values.push(value) - 1 };
      return { name, location, slot: value.slot, ...(value.typed && { typed: value.typed }) };
    });
  }

  #uniqueName(name: string | null, location: Location): string {
    if (name === null) return `#${++this.#unnamedCount}`;
    if (this.#takenNames.has(name))
      throw parseError(location, `${JSON.stringify(name)} is bound already: a new element needs a name of its own`);
    this.#takenNames.add(name);
    return name;
  }
}

function readScoreWrite(graphCursor: TokenCursor, purpose: Slot | null): GraphWrite | null {
  const scoreCall = readCall(graphCursor);
  if (scoreCall.mode !== 'write') return null;
  const { query, property, location } = scoreCall;
  if (property === null) throw parseError(location, "mode write says where to: {writeProperty: 'column'}");
  const scoredType =
    scoreCall.arguments.find(({ name }) => name === 'TYPE') ?? scoreCall.arguments.find(({ name }) => name === null);
  if (scoredType?.value.kind !== 'literal') throw parseError(location, 'mode write needs a function over the rows of a type');
  const typeSlot = { slot: scoredType.value.slot, location: scoredType.value.location };
  return { kind: 'scores', purpose, query, type: typeSlot, property, nullSlot: graphCursor.lexed.parameters.length, location };
}
