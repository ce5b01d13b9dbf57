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
  const cacheable = !somewhere(query, ({ kind, name }) => kind === 'call' && (name === 'LOOKUP' || isDrawing(name)));
  return { query, literals: parameters, maintenance: maintenanceOf(query), cacheable };
}

const isDrawing = (name: unknown): boolean => drawingFunctions.has(String(name));

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
  const names = new Set<string>();
  const common = new Set<string>();
  let functions = false;
  somewhere(query, (node) => {
    if (node.kind === 'table' && typeof node.name === 'string') names.add(node.name);
    else if (node.kind === 'function') functions = true;
    else if (Array.isArray(node.with)) for (const { name } of node.with as { name: string }[]) common.add(name);
    return false;
  });
  for (const name of common) names.delete(name);
  return functions ? null : names;
}

/** Expressions whose value changes without a change of the rows that FROM names. */
const asksAgain: ReadonlySet<string> = new Set(['now', 'in-query', 'scalar-query', 'exists', 'quantified', 'over']);

function maintenanceOf(query: Query): Maintenance {
  const again = { by: 'again' } as const;
  const { body } = query;
  if (body.kind !== 'select' || body.from.kind !== 'table' || query.with.length > 0) return again;
  if (query.orderBy.length > 0 || query.limit !== null || body.distinct || body.having !== null || body.window !== null)
    return again;
  if (body.rankBy.length > 0 || body.compute.length > 0 || body.groupingSets) return again;
  if (
    somewhere(
      body,
      ({ kind, name }) => asksAgain.has(String(kind)) || (kind === 'call' && (name === 'DEGREE' || isDrawing(name))),
    )
  )
    return again;
  const aggregates = somewhere(body.projection, ({ kind }) => kind === 'aggregate');
  if (body.groupBy.length === 0 && !aggregates) return { by: 'rows' };
  const columns = groupColumns(body);
  return columns === null ? again : { by: 'groups', columns };
}

function groupColumns({ projection, groupBy }: Select): readonly GroupColumn[] | null {
  const keys = new Set<string>();
  for (const key of groupBy) {
    if (key.kind !== 'column') return null;
    keys.add(key.name);
  }
  const shown = new Set<string>();
  const columns: GroupColumn[] = [];
  for (const item of projection) {
    const column = item.kind === 'expression' ? groupColumn(item.expression, keys) : null;
    if (column === null) return null;
    if (item.kind === 'expression' && item.expression.kind === 'column') shown.add(item.expression.name);
    columns.push(column);
  }
  // Rows of an answer can be matched by group only if every key is among the columns.
  return shown.size === keys.size ? columns : null;
}

function groupColumn(expression: Expression, keys: ReadonlySet<string>): GroupColumn | null {
  if (expression.kind === 'column') return keys.has(expression.name) ? 'key' : null;
  if (expression.kind !== 'aggregate' || expression.distinct || expression.filter) return null;
  switch (expression.function) {
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
function somewhere(tree: unknown, is: (node: { kind?: unknown; name?: unknown; with?: unknown }) => boolean): boolean {
  const open: unknown[] = [tree];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node !== 'object' || node === null) continue;
    if (is(node)) return true;
    for (const below of Object.values(node)) if (typeof below === 'object' && below !== null) open.push(below);
  }
  return false;
}
