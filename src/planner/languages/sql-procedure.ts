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

const procedureModes = ['stream', 'stats', 'write'] as const;

/** Names that other stores have for some of them. */
const algorithmAliases: ReadonlyMap<string, string> = new Map([
  ['pagerank', 'GRAPH_PAGERANK'],
  ['degreecentrality', 'DEGREE_CENTRALITY'],
  ['trianglecount', 'TRIANGLE_COUNT'],
  ['wcc', 'CONNECTED_COMPONENTS'],
  ['labelpropagation', 'LABEL_PROPAGATION'],
]);

/** Procedures of other stores, in lower case, and the function here that does the same. */
const algorithmsElsewhere: ReadonlyMap<string, string> = new Map(
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
const optionAliases: ReadonlyMap<string, string> = new Map([
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

/** The cursor is behind CALL; `readProcedureQuery` gives the statement around the query. */
export function readProcedure(sqlCursor: TokenCursor, readProcedureQuery: (query: Query) => Statement): Statement {
  const { mode, query, verb, location } = readCall(sqlCursor);
  return mode === 'write' ? { kind: 'write', verb, location } : readProcedureQuery(query);
}

export function readCall(sqlCursor: TokenCursor): ProcedureCall {
  const { location } = sqlCursor;
  const procedureSpace = sqlCursor.key().toLowerCase();
  if (!procedureSpaces.has(procedureSpace)) throw sqlCursor.expectedError('traverse.<algorithm> or gds.<algorithm>');
  sqlCursor.next();
  sqlCursor.expect('.');
  if (procedureSpace === 'db' || procedureSpace === 'dbms') return readCatalogueCall(sqlCursor, procedureSpace, location);
  const algorithmLocation = sqlCursor.location;
  const algorithmName = algorithmFunction(procedureSpace, sqlCursor.name('an algorithm'), (text) =>
    sqlCursor.error(text, algorithmLocation),
  );
  const procedureMode = sqlCursor.accept('.') ? readProcedureMode(sqlCursor) : 'stream';
  const { list: procedureArguments, property } = readProcedureValues(sqlCursor, algorithmName);
  const yieldProjection = sqlCursor.accept('YIELD') ? readYield(sqlCursor) : null;
  const calledFunction = procedureMode === 'stats' ? statsName(algorithmName) : algorithmName;
  const procedureQuery = readQueryOver(sqlCursor, {
    kind: 'function',
    name: calledFunction,
    arguments: procedureArguments,
    alias: null,
    location,
  });
  const yieldedQuery =
    yieldProjection === null || procedureQuery.body.kind !== 'select'
      ? procedureQuery
      : { ...procedureQuery, body: { ...procedureQuery.body, projection: yieldProjection } };
  return {
    mode: procedureMode,
    query: yieldedQuery,
    property,
    arguments: procedureArguments,
    verb: `CALL ${procedureSpace}.write`,
    location,
  };
}

const procedureSpaces: ReadonlySet<string> = new Set(['traverse', 'gds', 'db', 'dbms']);
const catalogueProcedures: ReadonlySet<string> = new Set([
  'db.labels',
  'db.relationshiptypes',
  'db.propertykeys',
  'dbms.components',
]);

/** Catalogue calls that graph tools make: virtual relations. */
function readCatalogueCall(sqlCursor: TokenCursor, procedureSpace: string, location: Location): ProcedureCall {
  const procedureLocation = sqlCursor.location;
  const procedureName = sqlCursor.name('a procedure');
  const name = `${procedureSpace}.${procedureName.toLowerCase()}`;
  if (!catalogueProcedures.has(name))
    throw sqlCursor.error(
      `there is no procedure ${JSON.stringify(`${procedureSpace}.${procedureName}`)}${didYouMean(name, catalogueProcedures)}`,
      procedureLocation,
    );
  sqlCursor.expect('(');
  sqlCursor.expect(')');
  const catalogueRelation = [procedureSpace, procedureName.toLowerCase()]
    .map((relationPart) => JSON.stringify(relationPart))
    .join('.');
  let yieldProjection = sqlCursor.accept('YIELD') && !sqlCursor.accept('*') ? readYield(sqlCursor) : null;
  if (sqlCursor.accept('RETURN') && !sqlCursor.accept('*'))
    yieldProjection = renameYielded(readYield(sqlCursor), yieldProjection ?? []);
  const catalogueQuery = readQueryOver(sqlCursor, { kind: 'table', name: catalogueRelation, alias: null, location });
  const yieldedQuery =
    yieldProjection === null || catalogueQuery.body.kind !== 'select'
      ? catalogueQuery
      : { ...catalogueQuery, body: { ...catalogueQuery.body, projection: yieldProjection } };
  return { mode: 'stream', query: yieldedQuery, property: null, arguments: [], verb: 'CALL', location };
}

/** Resolves the columns of RETURN by the names that YIELD gives. */
function renameYielded(returned: readonly ProjectionItem[], yielded: readonly ProjectionItem[]): readonly ProjectionItem[] {
  return returned.map((returnedItem) => {
    if (returnedItem.kind !== 'expression' || returnedItem.expression.kind !== 'column') return returnedItem;
    const { name } = returnedItem.expression;
    const yieldedItem = yielded.find((yieldedColumn) => yieldedColumn.kind === 'expression' && yieldedColumn.alias === name);
    return yieldedItem?.kind === 'expression' ? { ...yieldedItem, alias: returnedItem.alias ?? name } : returnedItem;
  });
}

function algorithmFunction(procedureSpace: string, procedureName: string, refusal: (text: string) => Error): string {
  const algorithmKey = procedureName.toLowerCase();
  const algorithmNames = graphAlgorithms.map((algorithm) => algorithm.name);
  const plainAlgorithm = (name: string): string => name.toLowerCase().replaceAll('_', '');
  const namedArgument =
    algorithmNames.find((name) => plainAlgorithm(name) === algorithmKey) ??
    algorithmNames.find((name) => plainAlgorithm(name) === `graph${algorithmKey}`) ??
    algorithmAliases.get(algorithmKey);
  if (namedArgument !== undefined && (procedureSpace === 'traverse' || algorithmAliases.get(algorithmKey) === namedArgument))
    return namedArgument;
  const knownAlgorithm = namedArgument ?? algorithmsElsewhere.get(algorithmKey);
  const algorithmHint =
    knownAlgorithm === undefined ? didYouMean(procedureName, algorithmNames.map(camelCase)) : `: use ${knownAlgorithm}`;
  throw refusal(
    `${procedureSpace} has no algorithm ${JSON.stringify(procedureName)}${algorithmHint === '' ? ': docs/graph.md lists those there are' : algorithmHint}`,
  );
}

function camelCase(name: string): string {
  return name.toLowerCase().replaceAll(/_(.)/g, (_, underscoredLetter: string) => underscoredLetter.toUpperCase());
}

function readProcedureMode(sqlCursor: TokenCursor): ProcedureCall['mode'] {
  const procedureMode = procedureModes.find((knownMode) => knownMode.toUpperCase() === sqlCursor.key());
  if (procedureMode === undefined) throw sqlCursor.expectedError('stream, stats or write');
  sqlCursor.next();
  return procedureMode;
}

interface ProcedureValues {
  readonly list: FunctionArgument[];
  property: Slot | null;
}

function readProcedureValues(sqlCursor: TokenCursor, calledFunction: string): ProcedureValues {
  const procedureValues: ProcedureValues = { list: [], property: null };
  sqlCursor.expect('(');
  if (sqlCursor.accept(')')) return procedureValues;
  do {
    if (sqlCursor.accept('{')) readProcedureOptions(sqlCursor, calledFunction, procedureValues);
    else procedureValues.list.push(literalArgument(null, sqlCursor.anyLiteral('a value or {option: value}')));
  } while (sqlCursor.accept(','));
  sqlCursor.expect(')');
  return procedureValues;
}

function readProcedureOptions(sqlCursor: TokenCursor, calledFunction: string, procedureValues: ProcedureValues): void {
  if (sqlCursor.accept('}')) return;
  do {
    if (sqlCursor.token.kind !== 'word') throw sqlCursor.expectedError('the name of an option');
    const procedureOption = snakeCase(sqlCursor.next().text);
    sqlCursor.expect(':');
    const optionValue = sqlCursor.anyLiteral('a value');
    if (procedureOption === 'WRITE_PROPERTY') {
      procedureValues.property = optionValue;
      continue;
    }
    const isOfPath = procedureOption === 'SOURCE_NODE' && calledFunction === 'GRAPH_DIJKSTRA';
    const optionName = isOfPath
      ? 'FROM'
      : procedureOption === 'TARGET_NODE'
        ? 'TO'
        : (optionAliases.get(procedureOption) ?? procedureOption);
    procedureValues.list.push(literalArgument(optionName, optionValue));
  } while (sqlCursor.accept(','));
  sqlCursor.expect('}');
}

function literalArgument(name: string | null, { slot, location }: Slot): FunctionArgument {
  return { name, value: { kind: 'literal', slot, location } };
}

function snakeCase(name: string): string {
  return name.replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2').toUpperCase();
}

function readYield(sqlCursor: TokenCursor): readonly ProjectionItem[] {
  const yieldedItems: ProjectionItem[] = [];
  do {
    const { location } = sqlCursor;
    const yieldedColumn = sqlCursor.name('a column to yield');
    const isNamed = sqlCursor.key() === 'AS' && sqlCursor.key(1) !== 'OF';
    if (isNamed) sqlCursor.next();
    const yieldAlias = isNamed ? sqlCursor.name('a name') : null;
    yieldedItems.push({
      kind: 'expression',
      expression: { kind: 'column', table: null, name: yieldedColumn, location },
      alias: yieldAlias,
      location,
    });
  } while (sqlCursor.accept(','));
  return yieldedItems;
}
