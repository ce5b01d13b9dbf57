/**
 * Statement to plan: names become column numbers, `*` becomes columns, every expression gets a type. The plan that
 * leaves here is right and naive; the passes make it fast.
 */
import { type BindRequest, type BoundQuery, Environment } from './environment.ts';
import { type Output, project, throughColumns } from './output-columns.ts';
import { QueryBinder } from './query-binder.ts';
import { bindExpression, type ExpressionContext } from '../expressions/bind-expression.ts';
import { type AxisBound, type LogicalPlan, nodesOf, type PlanNode } from '../logical-plan.ts';
import { decorrelate, refuseOuter } from '../passes/decorrelate.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { AsOf, Literal, Location, Query } from '../syntax/statement.ts';

export function bindQuery(request: BindRequest): LogicalPlan {
  const environment = new Environment(request);
  const { withProvenance, query, literals } = request;
  const bound = new QueryBinder(environment).statement(query, withProvenance);
  const plan: LogicalPlan = {
    root: withNames(bound, environment),
    subqueries: environment.subqueries,
    facets: bound.facets,
    parameters: [],
    time: timeOf(query, literals, environment.wide),
    visible: bound.visible,
    systemFrom: bound.systemFrom,
    paged: bound.paged,
    withProvenance,
    objectTypes: [...environment.objectTypes],
    viewLiterals: environment.viewLiterals,
    caveats: environment.caveats,
    guards: environment.guards,
    ...(query.entities && {
      entities: query.entities.map((shape) => shape && { shape, types: environment.entityTypes.byType }),
    }),
  };
  return hasApply(plan) ? refuseOuter(decorrelate(plan)) : plan;
}

/** Replaces the numbers of catalogue objects by their names in the columns that leave. */
function withNames({ node, columns }: BoundQuery, { catalogue }: Environment): PlanNode {
  if (catalogue === undefined || columns.every(({ wire }) => wire === undefined || !catalogue.isReference(wire))) return node;
  const outputs = throughColumns(node).map(({ name, bound }, i): Output => {
    const { label } = node.columns[i]!;
    const wire = columns[i]?.wire;
    if (wire === undefined || !catalogue.isReference(wire)) return { name, label, bound };
    const { signature, type } = catalogue.cast(wire, 'text')!;
    return { name, label, bound: { kind: 'call', name: wire.toUpperCase(), function: signature, operands: [bound], type, wire } };
  });
  return project(node, outputs);
}

function hasApply(plan: LogicalPlan): boolean {
  return nodesOf(plan).some(({ kind }) => kind === 'apply');
}

/** The times of a statement's AS OF, on both axes. */
export function timeOf({ asOf, body, oneInstant }: Query, literals: readonly Literal[], wide: boolean): LogicalPlan['time'] {
  const stated = { asOf, literals, wide };
  if (oneInstant) return functionTime(stated);
  if (body.kind === 'select' && body.from.kind === 'function') return functionTime(stated);
  return { system: axis(stated, 'system', 'all'), valid: axis(stated, 'valid', 'all') };
}

/**
 * A table function reads the current and valid rows at an instant: now, unless AS OF names another. With AS OF SYSTEM TIME, valid
 * time is the same instant; with AS OF a valid time, system time is now.
 */
function functionTime(stated: StatedTime): LogicalPlan['time'] {
  const system = axis(stated, 'system', 'now');
  return { system, valid: stated.asOf?.axis === 'system' ? system : axis(stated, 'valid', 'now') };
}

interface StatedTime {
  readonly asOf: AsOf | null;
  readonly literals: readonly Literal[];
  /** A text may say an offset. */
  readonly wide: boolean;
}

/** An instant names no column. */
const nothing: Pick<ExpressionContext, 'leaf' | 'over' | 'subselect'> = {
  leaf: () => undefined,
  over: ({ location }) => refuseIn(location),
  subselect: ({ location }) => refuseIn(location),
};

function refuseIn(location: Location): never {
  throw errorAt('REL_INVALID', 'AS OF takes an instant, or now() and an interval', location);
}

function axis({ asOf, literals, wide }: StatedTime, which: 'system' | 'valid', otherwise: 'all' | 'now'): AxisBound {
  if (asOf?.axis === 'current') return 'now';
  if (asOf?.axis !== which) return otherwise;
  const { instant } = asOf;
  if (instant.kind !== 'literal') {
    const bound = bindExpression(instant, { ...nothing, environment: { literals, lookup: () => undefined } });
    if (bound.type !== 'timestamp') throw errorAt('REL_INVALID', `AS OF takes an instant, not ${bound.type}`, instant.location);
    return { instant: bound };
  }
  const { slot, location } = instant;
  const literal = literals[slot];
  if (typeof literal !== 'string' && typeof literal !== 'bigint') {
    throw errorAt('REL_INVALID', 'AS OF takes a timestamp in quotes or integer nanoseconds', location);
  }
  return { instant: { kind: 'literal', slot, as: 'basis', ...(wide && { zoned: true }), type: 'timestamp', location } };
}
