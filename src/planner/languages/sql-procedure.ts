/**
 * Functions over the graph as procedures:
 *
 *   CALL traverse.<algorithm>[.<mode>](value, …, {option: value, …}) [YIELD column [AS name], …] [AS OF …] [WHERE …] …
 *
 * `CALL db.labels()` and the like are relations of the catalogue. The algorithm is the function's name in camelCase, with or without its `GRAPH_`; `gds` knows the names of five. It becomes the
 * query that it stands for: `stream` yields the function's rows, `stats` one row about them.
 */
import { didYouMean } from '../../errors.ts';
import { statsName } from '../graph/algorithms/stats.ts';
import { graphAlgorithms } from '../graph/algorithms/all.ts';
import { nodeMetrics } from '../graph/algorithms/node-metric.ts';
import type { FunctionArgument, Location, ProjectionItem, Query, Slot, Statement } from '../syntax/statement.ts';
import { readQueryOver } from './sql-query.ts';
import type { TokenCursor } from './token-cursor.ts';

const modes = ['stream', 'stats', 'write'] as const;

/** Names that other stores have for some of them. */
const aliases: ReadonlyMap<string, string> = new Map([
  ['pagerank', 'GRAPH_PAGERANK'],
  ['degreecentrality', 'DEGREE_CENTRALITY'],
  ['trianglecount', 'TRIANGLE_COUNT'],
  ['wcc', 'CONNECTED_COMPONENTS'],
  ['labelpropagation', 'LABEL_PROPAGATION'],
]);

/** Procedures of other stores, in lower case, and the function here that does the same. */
const elsewhere: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...Object.fromEntries(nodeMetrics.map((metric) => [metric, `GRAPH_NODE_METRIC with METRIC => '${metric}'`])),
    hits: "GRAPH_NODE_METRIC with METRIC => 'hub' or 'authority'",
    articlerank: 'GRAPH_PAGERANK',
    degree: 'DEGREE_CENTRALITY',
    louvain: 'GRAPH_COMMUNITY',
    leiden: 'GRAPH_COMMUNITY',
    localclusteringcoefficient: 'TRIANGLE_COUNT',
    shortestpath: 'GRAPH_DIJKSTRA',
    allshortestpaths: 'GRAPH_SSSP',
    bfs: 'NETWORK_EXPAND',
    dfs: 'NETWORK_EXPAND',
    knn: 'GRAPH_SIMILARITY',
    linkprediction: 'LINK_PREDICT',
    adamicadar: 'GRAPH_LINK_PREDICT',
    commonneighbors: 'GRAPH_LINK_PREDICT',
  }),
);

/** Options by other names than those of the arguments in camelCase. */
const options: ReadonlyMap<string, string> = new Map([
  ['MAX_ITERATIONS', 'MAX_ITER'],
  ['DAMPING_FACTOR', 'DAMPING'],
  ['SOURCE_NODE', 'SOURCE'],
  ['RELATIONSHIP_WEIGHT_PROPERTY', 'WEIGHT'],
]);

/** CALL as it is written. */
export interface ProcedureCall {
  readonly mode: 'stream' | 'stats' | 'write';
  /** The call of the function, or of the catalogue relation. */
  readonly query: Query;
  /** Column that the scores are written to, of the type that the call is about. */
  readonly property: Slot | null;
  readonly arguments: readonly FunctionArgument[];
  readonly verb: string;
  readonly location: Location;
}

/** The cursor is behind CALL; `read` gives the statement around the query. */
export function readProcedure(cursor: TokenCursor, read: (query: Query) => Statement): Statement {
  const { mode, query, verb, location } = readCall(cursor);
  return mode === 'write' ? { kind: 'write', verb, location } : read(query);
}

export function readCall(cursor: TokenCursor): ProcedureCall {
  const { location } = cursor;
  const space = cursor.key().toLowerCase();
  if (!spaces.has(space)) throw cursor.expectedError('traverse.<algorithm> or gds.<algorithm>');
  cursor.next();
  cursor.expect('.');
  if (space === 'db' || space === 'dbms') return catalogueCall(cursor, space, location);
  const named = cursor.location;
  const name = functionOf(space, cursor.name('an algorithm'), (text) => cursor.error(text, named));
  const mode = cursor.accept('.') ? modeOf(cursor) : 'stream';
  const { list, property } = readValues(cursor, name);
  const projection = cursor.accept('YIELD') ? readYield(cursor) : null;
  const called = mode === 'stats' ? statsName(name) : name;
  const read = readQueryOver(cursor, { kind: 'function', name: called, arguments: list, alias: null, location });
  const query = projection === null || read.body.kind !== 'select' ? read : { ...read, body: { ...read.body, projection } };
  return { mode, query, property, arguments: list, verb: `CALL ${space}.write`, location };
}

const spaces: ReadonlySet<string> = new Set(['traverse', 'gds', 'db', 'dbms']);
const catalogues: ReadonlySet<string> = new Set(['db.labels', 'db.relationshiptypes', 'db.propertykeys', 'dbms.components']);

/** Catalogue calls that graph tools make: virtual relations. */
function catalogueCall(cursor: TokenCursor, space: string, location: Location): ProcedureCall {
  const named = cursor.location;
  const procedureName = cursor.name('a procedure');
  const name = `${space}.${procedureName.toLowerCase()}`;
  if (!catalogues.has(name))
    throw cursor.error(
      `there is no procedure ${JSON.stringify(`${space}.${procedureName}`)}${didYouMean(name, catalogues)}`,
      named,
    );
  cursor.expect('(');
  cursor.expect(')');
  const relation = [space, procedureName.toLowerCase()].map((each) => JSON.stringify(each)).join('.');
  let projection = cursor.accept('YIELD') && !cursor.accept('*') ? readYield(cursor) : null;
  if (cursor.accept('RETURN') && !cursor.accept('*')) projection = renameYielded(readYield(cursor), projection ?? []);
  const read = readQueryOver(cursor, { kind: 'table', name: relation, alias: null, location });
  const query = projection === null || read.body.kind !== 'select' ? read : { ...read, body: { ...read.body, projection } };
  return { mode: 'stream', query, property: null, arguments: [], verb: 'CALL', location };
}

/** Resolves the columns of RETURN by the names that YIELD gives. */
function renameYielded(returned: readonly ProjectionItem[], yielded: readonly ProjectionItem[]): readonly ProjectionItem[] {
  return returned.map((item) => {
    if (item.kind !== 'expression' || item.expression.kind !== 'column') return item;
    const { name } = item.expression;
    const given = yielded.find((each) => each.kind === 'expression' && each.alias === name);
    return given?.kind === 'expression' ? { ...given, alias: item.alias ?? name } : item;
  });
}

function functionOf(space: string, procedureName: string, refusal: (text: string) => Error): string {
  const key = procedureName.toLowerCase();
  const names = graphAlgorithms.map((algorithm) => algorithm.name);
  const plain = (name: string): string => name.toLowerCase().replaceAll('_', '');
  const namedArgument =
    names.find((name) => plain(name) === key) ?? names.find((name) => plain(name) === `graph${key}`) ?? aliases.get(key);
  if (namedArgument !== undefined && (space === 'traverse' || aliases.get(key) === namedArgument)) return namedArgument;
  const known = namedArgument ?? elsewhere.get(key);
  const use = known === undefined ? didYouMean(procedureName, names.map(camelCase)) : `: use ${known}`;
  throw refusal(
    `${space} has no algorithm ${JSON.stringify(procedureName)}${use === '' ? ': docs/graph.md lists those there are' : use}`,
  );
}

function camelCase(name: string): string {
  return name.toLowerCase().replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

function modeOf(cursor: TokenCursor): ProcedureCall['mode'] {
  const mode = modes.find((each) => each.toUpperCase() === cursor.key());
  if (mode === undefined) throw cursor.expectedError('stream, stats or write');
  cursor.next();
  return mode;
}

interface Values {
  readonly list: FunctionArgument[];
  property: Slot | null;
}

function readValues(cursor: TokenCursor, called: string): Values {
  const values: Values = { list: [], property: null };
  cursor.expect('(');
  if (cursor.accept(')')) return values;
  do {
    if (cursor.accept('{')) readOptions(cursor, called, values);
    else values.list.push(argument(null, cursor.anyLiteral('a value or {option: value}')));
  } while (cursor.accept(','));
  cursor.expect(')');
  return values;
}

function readOptions(cursor: TokenCursor, called: string, values: Values): void {
  if (cursor.accept('}')) return;
  do {
    if (cursor.token.kind !== 'word') throw cursor.expectedError('the name of an option');
    const option = snakeCase(cursor.next().text);
    cursor.expect(':');
    const value = cursor.anyLiteral('a value');
    if (option === 'WRITE_PROPERTY') {
      values.property = value;
      continue;
    }
    const isOfPath = option === 'SOURCE_NODE' && called === 'GRAPH_DIJKSTRA';
    const name = isOfPath ? 'FROM' : option === 'TARGET_NODE' ? 'TO' : (options.get(option) ?? option);
    values.list.push(argument(name, value));
  } while (cursor.accept(','));
  cursor.expect('}');
}

function argument(name: string | null, { slot, location }: Slot): FunctionArgument {
  return { name, value: { kind: 'literal', slot, location } };
}

function snakeCase(name: string): string {
  return name.replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2').toUpperCase();
}

function readYield(cursor: TokenCursor): readonly ProjectionItem[] {
  const items: ProjectionItem[] = [];
  do {
    const { location } = cursor;
    const name = cursor.name('a column to yield');
    const isNamed = cursor.key() === 'AS' && cursor.key(1) !== 'OF';
    if (isNamed) cursor.next();
    const alias = isNamed ? cursor.name('a name') : null;
    items.push({ kind: 'expression', expression: { kind: 'column', table: null, name, location }, alias, location });
  } while (cursor.accept(','));
  return items;
}
