/**
 * What the graph doors write, from its text: CREATE and MERGE of patterns, and CALL … .write. The rows that a MATCH in front finds
 * are a query of its own. Everybody else sees them refused, read as they are.
 */
import type { Dialect, Place, Slot } from '../statement.ts';
import type { GraphWrite, MadeEdge, MadeNode, MadeThing } from '../write-statement.ts';
import type { Clause, MadeClause, PatternEdge, PatternNode, PatternWrite } from './graph-pattern.ts';
import { readPattern, startsPattern } from './graph-pattern.ts';
import { patternQuery } from './pattern-query.ts';
import type { LexedStatement } from './sql-lexer.ts';
import { parseError } from './sql-lexer.ts';
import { readCall } from './sql-procedure.ts';
import { readOrder, readQuery } from './sql-query.ts';
import { TokenCursor } from './token-cursor.ts';

/** Null where the statement writes nothing of a graph. Throws REL_PARSE. */
export function parseGraphWrite(lexed: LexedStatement, dialect: Dialect): GraphWrite | null {
  const cursor = new TokenCursor(lexed, { readQuery, readOrder }, dialect);
  const purpose = cursor.accept('PURPOSE') ? cursor.literal('s', 'a purpose in quotes') : null;
  const write = startsPattern(cursor)
    ? patternWrite(cursor, purpose)
    : cursor.accept('CALL')
      ? scoreWrite(cursor, purpose)
      : null;
  if (write === null) return null;
  if (cursor.asOf !== null)
    throw cursor.error('what is written is written as the graph stands now: without AS OF', cursor.asOf.place);
  const ended = cursor.accept(';');
  if (cursor.token.kind === 'end') return write;
  throw ended ? cursor.error('one statement at a time') : cursor.expected('the end of the statement');
}

function patternWrite(cursor: TokenCursor, purpose: Slot | null): GraphWrite | null {
  const read = readPattern(cursor);
  if (!('verb' in read) || read.pattern === null) return null;
  const { matches, made, returned, place } = read.pattern;
  const things = new Things(matches).of(made);
  const known = new Set(things.map(({ name }) => name));
  const used = namesUsed(read.pattern).filter((name) => !known.has(name));
  const matched = matchedQuery(matches, used, place);
  const method = made.every(({ kind }) => kind === 'merge') ? 'merge' : 'create';
  return { kind: 'pattern', purpose, matched, method, things, returned, nullSlot: cursor.lexed.parameters.length, place };
}

/** Ids of the nodes that were matched, as columns in the order of their names. */
function matchedQuery(
  matches: readonly Clause[],
  used: readonly string[],
  place: Place,
): Extract<GraphWrite, { kind: 'pattern' }>['matched'] {
  if (matches.length === 0) {
    if (used.length > 0) throw parseError(place, `nothing is called ${JSON.stringify(used[0])} here`);
    return null;
  }
  const named = used.length > 0 ? used : nodeNames(matches).slice(0, 1);
  const [first] = named;
  if (first === undefined) throw parseError(place, 'a MATCH in front of what is written names a node');
  // One more than there are: a node alone would come with all of its columns.
  const items = [...named, first].map((name, i) => ({ term: { kind: 'variable', name, place } as const, name: `#${i}` }));
  const last: Clause = { kind: 'return', distinct: false, items, orderBy: [], skip: null, limit: null, where: null, place };
  return { query: patternQuery([...matches, last]), names: named };
}

function nodeNames(matches: readonly Clause[]): readonly string[] {
  const chains = matches.flatMap((clause) => (clause.kind === 'match' ? clause.chains : []));
  return chains.flatMap(({ nodes }) => nodes.flatMap(({ name }) => name ?? []));
}

/** Names that stand for what something else has bound. */
function namesUsed({ made, returned }: PatternWrite): readonly string[] {
  const chains = made.flatMap((clause) => clause.chains);
  const ofNodes = chains.flatMap(({ nodes }) =>
    nodes.flatMap(({ name, labels }) => (labels.length === 0 && name !== null ? [name] : [])),
  );
  return [...new Set([...ofNodes, ...(returned ?? []).map(({ of }) => of)])];
}

/** What is made, each thing before what names it. */
class Things {
  readonly #taken: Set<string>;
  #numbers = 0;

  constructor(matches: readonly Clause[]) {
    this.#taken = new Set(nodeNames(matches));
  }

  of(made: readonly MadeClause[]): readonly MadeThing[] {
    return made.flatMap(({ kind, chains }) =>
      chains.flatMap(({ nodes, edges }) => {
        const things: MadeThing[] = [];
        const names = nodes.map((node) => this.#node(node, kind, things));
        edges.forEach((edge, i) => things.push(this.#edge(edge, kind, names[i]!, names[i + 1]!)));
        if (things.length === 0) throw parseError(nodes[0]!.place, 'nothing is made here: a node that is made has a type');
        return things;
      }),
    );
  }

  /** Its name: it is put to the things where it is made here. */
  #node({ name, labels, properties, place }: PatternNode, kind: MadeNode['how'], things: MadeThing[]): string {
    const [label, ...others] = labels.flat();
    if (others.length > 0) throw parseError(place, 'a node that is made has one type');
    if (label === undefined) {
      if (name !== null && properties.length === 0) return name;
      throw parseError(place, 'a node that is made has a type, (n:Type {key: value}); one that is there has its name alone');
    }
    const own = this.#name(name, place);
    things.push({ kind: 'node', how: kind, name: own, type: label, cells: cellsOf(properties), place });
    return own;
  }

  #edge(edge: PatternEdge, kind: MadeEdge['how'], left: string, right: string): MadeEdge {
    const { place, types, direction, hops, properties } = edge;
    const [type] = types;
    if (type === undefined || types.length > 1 || hops !== null || direction === 'both') {
      throw parseError(place, 'an edge that is made has one type and leads one way: -[r:TYPE]->');
    }
    const [from, to] = direction === 'out' ? [left, right] : [right, left];
    return { kind: 'edge', how: kind, name: this.#name(edge.name, place), type, from, to, cells: cellsOf(properties), place };
  }

  #name(name: string | null, place: Place): string {
    if (name === null) return `#${++this.#numbers}`;
    if (this.#taken.has(name))
      throw parseError(place, `${JSON.stringify(name)} is bound already: what is made has a name of its own`);
    this.#taken.add(name);
    return name;
  }
}

function cellsOf(properties: PatternNode['properties']): MadeNode['cells'] {
  return properties.map(({ name, value }) => {
    if (value.kind !== 'literal') throw parseError(value.place, 'a property that is written is a value');
    return { name, slot: value.slot, place: value.place };
  });
}

function scoreWrite(cursor: TokenCursor, purpose: Slot | null): GraphWrite | null {
  const call = readCall(cursor);
  if (call.mode !== 'write') return null;
  const { query, property, place } = call;
  if (property === null) throw parseError(place, "mode write says where to: {writeProperty: 'column'}");
  const type = call.arguments.find(({ name }) => name === 'TYPE') ?? call.arguments.find(({ name }) => name === null);
  if (type?.value.kind !== 'literal') throw parseError(place, 'mode write is of functions about the rows of a type');
  const slot = { slot: type.value.slot, place: type.value.place };
  return { kind: 'scores', purpose, query, type: slot, property, nullSlot: cursor.lexed.parameters.length, place };
}
