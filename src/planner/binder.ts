/**
 * Statement to plan: names become column numbers, `*` becomes columns, every expression gets a type. The plan that
 * leaves here is right and naive; the passes make it fast.
 */
import { type BindRequest, Environment } from './binding/environment.ts';
import { QueryBinder } from './binding/query-binder.ts';
import type { AxisBound, LogicalPlan } from './logical-plan.ts';
import { at } from './places.ts';
import type { AsOf, Literal, Query } from './statement.ts';

export function bindQuery(request: BindRequest): LogicalPlan {
  const environment = new Environment(request);
  const { withProvenance, query, literals } = request;
  const bound = new QueryBinder(environment).statement(query, withProvenance);
  return {
    root: bound.node,
    subqueries: environment.subqueries,
    facets: bound.facets,
    parameters: [],
    time: timeOf(query, literals),
    visible: bound.visible,
    systemFrom: bound.systemFrom,
    paged: bound.paged,
    withProvenance,
    objectTypes: [...environment.objectTypes],
    viewLiterals: environment.viewLiterals,
    guards: environment.guards,
  };
}

/** What the AS OF of a statement says, on both axes. */
export function timeOf({ asOf }: Query, literals: readonly Literal[]): LogicalPlan['time'] {
  return { system: axis(asOf, 'system', literals), valid: axis(asOf, 'valid', literals) };
}

function axis(asOf: AsOf | null, which: 'system' | 'valid', literals: readonly Literal[]): AxisBound {
  if (asOf?.axis === 'current') return 'now';
  if (asOf?.axis !== which) return 'all';
  const { slot, place } = asOf.instant;
  const literal = literals[slot];
  if (typeof literal !== 'string' && typeof literal !== 'bigint') {
    throw at('REL_INVALID', 'AS OF takes a timestamp in quotes or integer nanoseconds', place);
  }
  return { instant: { kind: 'literal', slot, as: 'basis', type: 'timestamp', place } };
}
