/** Builds nodes for languages other than SQL, with the defaults that SQL has for omitted clauses. */
import type { ColumnRef, Expression, Location, Query, QueryBody, Select, Slot } from '../syntax/statement.ts';

export function selectOf(selectParts: Pick<Select, 'projection' | 'from' | 'where' | 'location'>): Select {
  const emptyClauses = { distinct: false, groupBy: [], window: null, having: null, rankBy: [], compute: [] } as const;
  return { kind: 'select', ...emptyClauses, ...selectParts };
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
export function allOf(conjoinedConditions: readonly Expression[]): Expression | null {
  const [firstCondition] = conjoinedConditions;
  if (firstCondition === undefined || conjoinedConditions.length === 1) return firstCondition ?? null;
  const middleCondition = Math.ceil(conjoinedConditions.length / 2);
  const [leftConjunction, rightConjunction] = [
    allOf(conjoinedConditions.slice(0, middleCondition))!,
    allOf(conjoinedConditions.slice(middleCondition))!,
  ];
  return { kind: 'binary', op: 'and', left: leftConjunction, right: rightConjunction, location: leftConjunction.location };
}
