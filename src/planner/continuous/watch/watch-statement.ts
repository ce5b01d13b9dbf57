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
  const lexed = lexStatement(text);
  const { statement } = parseLexed(lexed);
  const isWatch = statement.kind === 'control' && statement.what === 'watch';
  if (!isWatch && (statement.kind !== 'query' || statement.withProvenance)) {
    throw new ServiceError('REL_INVALID', '1:1: a standing query is WATCH PURPOSE with a SELECT, or the SELECT alone');
  }
  const query = statement.query!;
  const { name, location } = watchedTable(query);
  return {
    type: name,
    typePlace: location,
    purpose: purposeOf(lexed, statement.purpose),
    template: lexed.template,
    literals: lexed.parameters.map(String),
    ...textsOf(lexed),
  };
}

function purposeOf(lexed: LexedStatement, slot: Slot | null): string | null {
  return slot === null ? null : String(lexed.parameters[slot.slot]);
}

function watchedTable(query: Query): { name: string; location: Location } {
  const refuse = (construct: string, location: Location): never => {
    throw errorAt('REL_INVALID', `WATCH follows the rows of one type under a condition: it excludes ${construct}`, location);
  };
  const { body } = query;
  if (query.with.length > 0) refuse('WITH', query.location);
  if (body.kind !== 'select') return refuse('set operations', body.location);
  if (body.from.kind !== 'table') return refuse('joins, subqueries and table functions', body.from.location);
  if (body.distinct) refuse('DISTINCT', body.location);
  if (body.groupBy.length > 0 || body.groupingSets || body.having !== null || body.window !== null)
    refuse('GROUP BY', body.location);
  if (body.rankBy.length > 0 || body.compute.length > 0) refuse('RANK BY and COMPUTE', body.location);
  if (query.orderBy.length > 0) refuse('ORDER BY', query.orderBy[0]!.expression.location);
  if (query.limit !== null) refuse('LIMIT', query.limit.location);
  if (query.facets.length > 0) refuse('FACETS', query.facets[0]!.location);
  if (query.asOf !== null && query.asOf.axis !== 'valid') {
    const rule = 'WATCH follows the current rows: AS OF takes an instant of valid time only';
    throw errorAt('REL_INVALID', rule, query.asOf.location);
  }
  refuseWithin([body.projection, body.where], refuse);
  return body.from;
}

const excluded: ReadonlyMap<string, string> = new Map([
  ['aggregate', 'aggregates'],
  ['now', 'now(), which changes without a commit'],
  ['in-query', 'subqueries'],
  ['scalar-query', 'subqueries'],
  ['exists', 'subqueries'],
  ['quantified', 'subqueries'],
  ['over', 'window functions'],
]);

const calls: ReadonlyMap<string, string> = new Map([
  ['LOOKUP', 'lookup tables, which change without a commit'],
  ['DEGREE', 'degrees, which change with rows of other types'],
  ...[...drawingFunctions].map((name) => [name, 'random values, which change without a commit'] as const),
]);

/** Looks at every node below: trees are plain data, and a kind that comes later is found wherever it stands. */
function refuseWithin(tree: unknown, refuse: (construct: string, location: Location) => never): void {
  const open: unknown[] = [tree];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node !== 'object' || node === null) continue;
    const { kind, name, location } = node as { kind?: string; name?: string; location?: Location };
    const construct = (kind === 'call' ? calls.get(name ?? '') : undefined) ?? excluded.get(kind ?? '');
    if (construct !== undefined && location !== undefined) refuse(construct, location);
    for (const below of Object.values(node)) if (typeof below === 'object' && below !== null) open.push(below);
  }
}

const systemFromName = '#system_from';

/** Everything before the query becomes blanks, so that errors point into the text as it was given. */
function textsOf({ text, tokens }: LexedStatement): Pick<WatchStatement, 'asked' | 'sql'> {
  let first = 0;
  while (tokens[first]!.key === 'WATCH' || tokens[first]!.key === 'PURPOSE' || tokens[first]!.kind === 'literal') first++;
  const select = tokens.findIndex(({ key }) => key === 'SELECT');
  const start = tokens[first]!.start;
  const end = tokens[select]!.start + 'SELECT'.length;
  const asked = blank(text.slice(0, start)) + text.slice(start);
  return { asked, sql: `${asked.slice(0, end)} system_from AS "${systemFromName}",${asked.slice(end)}` };
}

const blank = (text: string): string => text.replaceAll(/[^\n]/g, ' ');
