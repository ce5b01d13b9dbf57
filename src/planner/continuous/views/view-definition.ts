/** The query of a view, and the way in which its cached answer can follow the log. */
import { ServiceError } from '../../../errors.ts';
import type { ViewDefinition } from '../../binding/environment.ts';
import { drawingFunctions } from '../../expressions/functions/catalogue.ts';
import { lexStatement } from '../../languages/sql-lexer.ts';
import { parseLexed } from '../../languages/sql-parser.ts';
import { errorAt } from '../../syntax/error-location.ts';
import type { Expression, Query, Select } from '../../syntax/statement.ts';

/**
 * Without AS OF a query is about every stored version, so versions that come later only add to its rows. By what they add:
 *
 *   rows     each version on its own: the new ones' rows follow the known ones
 *   groups   counts, whole sums, least and greatest of groups: those of the new versions are merged in
 *   again    anything else is asked again from the start
 */
export type Maintenance =
  | { readonly by: 'rows' }
  | { readonly by: 'again' }
  /** The kind of each output column. */
  | { readonly by: 'groups'; readonly columns: readonly GroupColumn[] };

export type GroupColumn = 'key' | 'add' | 'least' | 'greatest';

export interface ParsedView extends ViewDefinition {
  readonly maintenance: Maintenance;
  /** False where an answer depends on more than the log: then nothing is cached. */
  readonly cacheable: boolean;
}

export function parseView(sql: string): ParsedView {
  const { statement, parameters } = parseLexed(lexStatement(sql), 'wide');
  if (statement.kind !== 'query') throw new ServiceError('REL_INVALID', 'a view is a SELECT');
  const { query } = statement;
  const isCacheable = !isSomewhereIn(
    query,
    ({ kind, name }) => kind === 'call' && (name === 'LOOKUP' || isDrawingFunction(name)),
  );
  return { query, literals: parameters, maintenance: maintenanceOf(query), cacheable: isCacheable };
}

const isDrawingFunction = (name: unknown): boolean => drawingFunctions.has(String(name));

/** Throws where a query can't become a view: options of a single statement are no part of one. */
export function checkViewQuery(query: Query): void {
  if (query.asOf !== null) {
    throw errorAt('REL_INVALID', 'a view has no AS OF of its own: the question that names it has one', query.asOf.location);
  }
  if (query.after !== null) throw errorAt('REL_INVALID', 'AFTER continues an answer; a view has none', query.after.location);
  if (query.body.kind === 'select' && query.body.from.kind === 'function') {
    throw errorAt(
      'REL_INVALID',
      'a view is over types: a table function stands in the question itself',
      query.body.from.location,
    );
  }
  if (query.facets.length > 0)
    throw errorAt('REL_INVALID', 'FACETS belong to the question that names the view', query.facets[0]!.location);
}

/** Names behind FROM, wherever they stand, without those of common tables; null where a table function stands there too. */
export function tablesOf(query: Query): ReadonlySet<string> | null {
  const tableNames = new Set<string>();
  const withNames = new Set<string>();
  let hasFunctions = false;
  isSomewhereIn(query, (node) => {
    if (node.kind === 'table' && typeof node.name === 'string') tableNames.add(node.name);
    else if (node.kind === 'function') hasFunctions = true;
    else if (Array.isArray(node.with)) for (const { name } of node.with as { name: string }[]) withNames.add(name);
    return false;
  });
  for (const name of withNames) tableNames.delete(name);
  return hasFunctions ? null : tableNames;
}

/** Expressions whose value changes without a change of the rows that FROM names. */
const requeryingNodes: ReadonlySet<string> = new Set(['now', 'in-query', 'scalar-query', 'exists', 'quantified', 'over']);

function maintenanceOf(query: Query): Maintenance {
  const queryAgain = { by: 'again' } as const;
  const { body: viewBody } = query;
  if (viewBody.kind !== 'select' || viewBody.from.kind !== 'table' || query.with.length > 0) return queryAgain;
  if (
    query.orderBy.length > 0 ||
    query.limit !== null ||
    viewBody.distinct ||
    viewBody.having !== null ||
    viewBody.window !== null
  )
    return queryAgain;
  if (viewBody.rankBy.length > 0 || viewBody.compute.length > 0 || viewBody.groupingSets) return queryAgain;
  if (
    isSomewhereIn(
      viewBody,
      ({ kind, name }) =>
        requeryingNodes.has(String(kind)) || (kind === 'call' && (name === 'DEGREE' || isDrawingFunction(name))),
    )
  )
    return queryAgain;
  const hasAggregates = isSomewhereIn(viewBody.projection, ({ kind }) => kind === 'aggregate');
  if (viewBody.groupBy.length === 0 && !hasAggregates) return { by: 'rows' };
  const maintainedColumns = groupColumns(viewBody);
  return maintainedColumns === null ? queryAgain : { by: 'groups', columns: maintainedColumns };
}

function groupColumns({ projection, groupBy }: Select): readonly GroupColumn[] | null {
  const groupByKeys = new Set<string>();
  for (const groupByKey of groupBy) {
    if (groupByKey.kind !== 'column') return null;
    groupByKeys.add(groupByKey.name);
  }
  const shownKeys = new Set<string>();
  const columns: GroupColumn[] = [];
  for (const projectionItem of projection) {
    const maintainedColumn = projectionItem.kind === 'expression' ? groupColumn(projectionItem.expression, groupByKeys) : null;
    if (maintainedColumn === null) return null;
    if (projectionItem.kind === 'expression' && projectionItem.expression.kind === 'column')
      shownKeys.add(projectionItem.expression.name);
    columns.push(maintainedColumn);
  }
  // Rows of an answer can be matched by group only if every key is among the columns.
  return shownKeys.size === groupByKeys.size ? columns : null;
}

function groupColumn(projectedExpression: Expression, groupByKeys: ReadonlySet<string>): GroupColumn | null {
  if (projectedExpression.kind === 'column') return groupByKeys.has(projectedExpression.name) ? 'key' : null;
  if (projectedExpression.kind !== 'aggregate' || projectedExpression.distinct || projectedExpression.filter) return null;
  switch (projectedExpression.function) {
    case 'count':
    case 'sum':
      return 'add';
    case 'min':
      return 'least';
    case 'max':
      return 'greatest';
    default:
      return null;
  }
}

/** Trees are plain data: every node below is looked at, and a kind that comes later is found wherever it stands. */
function isSomewhereIn(
  syntaxTree: unknown,
  isSoughtNode: (syntaxNode: { kind?: unknown; name?: unknown; with?: unknown }) => boolean,
): boolean {
  const openNodes: unknown[] = [syntaxTree];
  for (let syntaxNode = openNodes.pop(); syntaxNode !== undefined; syntaxNode = openNodes.pop()) {
    if (typeof syntaxNode !== 'object' || syntaxNode === null) continue;
    if (isSoughtNode(syntaxNode)) return true;
    for (const childNode of Object.values(syntaxNode))
      if (typeof childNode === 'object' && childNode !== null) openNodes.push(childNode);
  }
  return false;
}
