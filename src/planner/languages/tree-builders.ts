/** Builds nodes for languages other than SQL, with the defaults that SQL has for omitted clauses. */
import type { ColumnRef, Expression, Location, Query, QueryBody, Select, Slot } from '../syntax/statement.ts';

export function selectOf(parts: Pick<Select, 'projection' | 'from' | 'where' | 'location'>): Select {
  const nothing = { distinct: false, groupBy: [], window: null, having: null, rankBy: [], compute: [] } as const;
  return { kind: 'select', ...nothing, ...parts };
}

export function queryOf(body: QueryBody, limit: Slot | null): Query {
  return { with: [], body, asOf: null, orderBy: [], limit, offset: null, after: null, facets: [], location: body.location };
}

export function columnOf(name: string, location: Location, table: string | null = null): ColumnRef {
  return { kind: 'column', table, name, location };
}

export function equal(left: Expression, right: Expression): Expression {
  return { kind: 'binary', op: '=', left, right, location: right.location };
}

/** Joins conditions by AND in a balanced tree, so that many don't nest deep; null without conditions. */
export function allOf(conditions: readonly Expression[]): Expression | null {
  const [first] = conditions;
  if (first === undefined || conditions.length === 1) return first ?? null;
  const half = Math.ceil(conditions.length / 2);
  const [left, right] = [allOf(conditions.slice(0, half))!, allOf(conditions.slice(half))!];
  return { kind: 'binary', op: 'and', left, right, location: left.location };
}
