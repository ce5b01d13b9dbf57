/**
 * WATCH takes the rows of one type under a condition that the row alone decides. Then every version matches or does not, once and
 * for all, and each commit holds all changes. A join or an aggregate has no rows of its own that could come and go, ORDER BY and
 * LIMIT make a row's place depend on others, and `now()` or a lookup table changes the answer without a commit: all of these are
 * refused by name.
 */
import { ServiceError } from '../../../errors.ts';
import { drawingFunctions } from '../../expressions/functions/catalogue.ts';
import { type LexedStatement, lexStatement } from '../../languages/sql-lexer.ts';
import { parseLexed } from '../../languages/sql-parser.ts';
import { errorAt } from '../../syntax/error-location.ts';
import type { Location, Query, Slot } from '../../syntax/statement.ts';

export interface WatchStatement {
  readonly type: string;
  /** Location of the type's name in the query. */
  readonly typePlace: Location;
  /** As stated in the text; null where it states none. */
  readonly purpose: string | null;
  readonly template: string;
  readonly literals: readonly string[];
  /** The query as it was given; places in it are those of the text. */
  readonly asked: string;
  /** The query with each version's system_from as its first column. */
  readonly sql: string;
}

/** Takes `WATCH [PURPOSE 'id'] SELECT …` and a bare `[PURPOSE 'id'] SELECT …`. */
export function readWatchStatement(text: string): WatchStatement {
  const lexedWatch = lexStatement(text);
  const { statement: parsedWatch } = parseLexed(lexedWatch);
  const isWatch = parsedWatch.kind === 'control' && parsedWatch.what === 'watch';
  if (!isWatch && (parsedWatch.kind !== 'query' || parsedWatch.withProvenance)) {
    throw new ServiceError('REL_INVALID', '1:1: a standing query is WATCH PURPOSE with a SELECT, or the SELECT alone');
  }
  const watchedQuery = parsedWatch.query!;
  const { name, location } = watchedTable(watchedQuery);
  return {
    type: name,
    typePlace: location,
    purpose: watchPurpose(lexedWatch, parsedWatch.purpose),
    template: lexedWatch.template,
    literals: lexedWatch.parameters.map(String),
    ...watchedSql(lexedWatch),
  };
}

function watchPurpose(lexedWatch: LexedStatement, purposeSlot: Slot | null): string | null {
  return purposeSlot === null ? null : String(lexedWatch.parameters[purposeSlot.slot]);
}

function watchedTable(watchedQuery: Query): { name: string; location: Location } {
  const refuseClause = (construct: string, location: Location): never => {
    throw errorAt('REL_INVALID', `WATCH follows the rows of one type under a condition: it excludes ${construct}`, location);
  };
  const { body: watchedBody } = watchedQuery;
  if (watchedQuery.with.length > 0) refuseClause('WITH', watchedQuery.location);
  if (watchedBody.kind !== 'select') return refuseClause('set operations', watchedBody.location);
  if (watchedBody.from.kind !== 'table') return refuseClause('joins, subqueries and table functions', watchedBody.from.location);
  if (watchedBody.distinct) refuseClause('DISTINCT', watchedBody.location);
  if (watchedBody.groupBy.length > 0 || watchedBody.groupingSets || watchedBody.having !== null || watchedBody.window !== null)
    refuseClause('GROUP BY', watchedBody.location);
  if (watchedBody.rankBy.length > 0 || watchedBody.compute.length > 0) refuseClause('RANK BY and COMPUTE', watchedBody.location);
  if (watchedQuery.orderBy.length > 0) refuseClause('ORDER BY', watchedQuery.orderBy[0]!.expression.location);
  if (watchedQuery.limit !== null) refuseClause('LIMIT', watchedQuery.limit.location);
  if (watchedQuery.facets.length > 0) refuseClause('FACETS', watchedQuery.facets[0]!.location);
  if (watchedQuery.asOf !== null && watchedQuery.asOf.axis !== 'valid') {
    const watchRule = 'WATCH follows the current rows: AS OF takes an instant of valid time only';
    throw errorAt('REL_INVALID', watchRule, watchedQuery.asOf.location);
  }
  refuseExcluded([watchedBody.projection, watchedBody.where], refuseClause);
  return watchedBody.from;
}

const excludedFromWatch: ReadonlyMap<string, string> = new Map([
  ['aggregate', 'aggregates'],
  ['now', 'now(), which changes without a commit'],
  ['in-query', 'subqueries'],
  ['scalar-query', 'subqueries'],
  ['exists', 'subqueries'],
  ['quantified', 'subqueries'],
  ['over', 'window functions'],
]);

const excludedCalls: ReadonlyMap<string, string> = new Map([
  ['LOOKUP', 'lookup tables, which change without a commit'],
  ['DEGREE', 'degrees, which change with rows of other types'],
  ...[...drawingFunctions].map((name) => [name, 'random values, which change without a commit'] as const),
]);

/** Looks at every node below: trees are plain data, and a kind that comes later is found wherever it stands. */
function refuseExcluded(watchedTree: unknown, refuseNode: (construct: string, location: Location) => never): void {
  const openNodes: unknown[] = [watchedTree];
  for (let syntaxNode = openNodes.pop(); syntaxNode !== undefined; syntaxNode = openNodes.pop()) {
    if (typeof syntaxNode !== 'object' || syntaxNode === null) continue;
    const { kind, name, location } = syntaxNode as { kind?: string; name?: string; location?: Location };
    const construct = (kind === 'call' ? excludedCalls.get(name ?? '') : undefined) ?? excludedFromWatch.get(kind ?? '');
    if (construct !== undefined && location !== undefined) refuseNode(construct, location);
    for (const childNode of Object.values(syntaxNode))
      if (typeof childNode === 'object' && childNode !== null) openNodes.push(childNode);
  }
}

const systemFromName = '#system_from';

/** Everything before the query becomes blanks, so that errors point into the text as it was given. */
function watchedSql({ text, tokens }: LexedStatement): Pick<WatchStatement, 'asked' | 'sql'> {
  let firstQueryToken = 0;
  while (
    tokens[firstQueryToken]!.key === 'WATCH' ||
    tokens[firstQueryToken]!.key === 'PURPOSE' ||
    tokens[firstQueryToken]!.kind === 'literal'
  )
    firstQueryToken++;
  const selectToken = tokens.findIndex(({ key }) => key === 'SELECT');
  const queryStart = tokens[firstQueryToken]!.start;
  const selectEnd = tokens[selectToken]!.start + 'SELECT'.length;
  const askedQuery = blankText(text.slice(0, queryStart)) + text.slice(queryStart);
  return {
    asked: askedQuery,
    sql: `${askedQuery.slice(0, selectEnd)} system_from AS "${systemFromName}",${askedQuery.slice(selectEnd)}`,
  };
}

const blankText = (text: string): string => text.replaceAll(/[^\n]/g, ' ');
