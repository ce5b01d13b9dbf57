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
  const bindEnvironment = new Environment(request);
  const { withProvenance, query, literals } = request;
  const boundQuery = new QueryBinder(bindEnvironment).statement(query, withProvenance);
  const plan: LogicalPlan = {
    root: withReferenceNames(boundQuery, bindEnvironment),
    subqueries: bindEnvironment.subqueries,
    facets: boundQuery.facets,
    parameters: [],
    time: timeOf(query, literals, bindEnvironment.wide),
    visible: boundQuery.visible,
    systemFrom: boundQuery.systemFrom,
    paged: boundQuery.paged,
    withProvenance,
    objectTypes: [...bindEnvironment.objectTypes],
    viewLiterals: bindEnvironment.viewLiterals,
    caveats: bindEnvironment.caveats,
    guards: bindEnvironment.guards,
    ...(query.entities && {
      entities: query.entities.map(
        (entityShape) => entityShape && { shape: entityShape, types: bindEnvironment.entityTypes.byType },
      ),
    }),
  };
  return hasApply(plan) ? refuseOuter(decorrelate(plan)) : plan;
}

/** Replaces the numbers of catalogue objects by their names in the columns that leave. */
function withReferenceNames({ node, columns }: BoundQuery, { catalogue }: Environment): PlanNode {
  if (
    catalogue === undefined ||
    columns.every(({ wire: outputWire }) => outputWire === undefined || !catalogue.isReference(outputWire))
  )
    return node;
  const namedOutputs = throughColumns(node).map(({ name, bound }, i): Output => {
    const { label } = node.columns[i]!;
    const outputWire = columns[i]?.wire;
    if (outputWire === undefined || !catalogue.isReference(outputWire)) return { name, label, bound };
    const { signature, type } = catalogue.cast(outputWire, 'text')!;
    return {
      name,
      label,
      bound: { kind: 'call', name: outputWire.toUpperCase(), function: signature, operands: [bound], type, wire: outputWire },
    };
  });
  return project(node, namedOutputs);
}

function hasApply(plan: LogicalPlan): boolean {
  return nodesOf(plan).some(({ kind }) => kind === 'apply');
}

/** The times of a statement's AS OF, on both axes. */
export function timeOf({ asOf, body, oneInstant }: Query, literals: readonly Literal[], wide: boolean): LogicalPlan['time'] {
  const statedTime = { asOf, literals, wide };
  if (oneInstant) return functionTime(statedTime);
  if (body.kind === 'select' && body.from.kind === 'function') return functionTime(statedTime);
  return { system: axisBoundOf(statedTime, 'system', 'all'), valid: axisBoundOf(statedTime, 'valid', 'all') };
}

/**
 * A table function reads the current and valid rows at an instant: now, unless AS OF names another. With AS OF SYSTEM TIME, valid
 * time is the same instant; with AS OF a valid time, system time is now.
 */
function functionTime(statedTime: StatedTime): LogicalPlan['time'] {
  const systemAxis = axisBoundOf(statedTime, 'system', 'now');
  return { system: systemAxis, valid: statedTime.asOf?.axis === 'system' ? systemAxis : axisBoundOf(statedTime, 'valid', 'now') };
}

interface StatedTime {
  readonly asOf: AsOf | null;
  readonly literals: readonly Literal[];
  /** A text may say an offset. */
  readonly wide: boolean;
}

/** An instant names no column. */
const instantContext: Pick<ExpressionContext, 'leaf' | 'over' | 'subselect'> = {
  leaf: () => undefined,
  over: ({ location }) => refuseInAsOf(location),
  subselect: ({ location }) => refuseInAsOf(location),
};

function refuseInAsOf(location: Location): never {
  throw errorAt('REL_INVALID', 'AS OF takes an instant, or now() and an interval', location);
}

function axisBoundOf(
  { asOf, literals, wide }: StatedTime,
  timeAxis: 'system' | 'valid',
  unstatedBound: 'all' | 'now',
): AxisBound {
  if (asOf?.axis === 'current') return 'now';
  if (asOf?.axis !== timeAxis) return unstatedBound;
  const { instant } = asOf;
  if (instant.kind !== 'literal') {
    const boundInstant = bindExpression(instant, { ...instantContext, environment: { literals, lookup: () => undefined } });
    if (boundInstant.type !== 'timestamp')
      throw errorAt('REL_INVALID', `AS OF takes an instant, not ${boundInstant.type}`, instant.location);
    return { instant: boundInstant };
  }
  const { slot: instantSlot, location } = instant;
  const instantLiteral = literals[instantSlot];
  if (typeof instantLiteral !== 'string' && typeof instantLiteral !== 'bigint') {
    throw errorAt('REL_INVALID', 'AS OF takes a timestamp in quotes or integer nanoseconds', location);
  }
  return {
    instant: { kind: 'literal', slot: instantSlot, as: 'basis', ...(wide && { zoned: true }), type: 'timestamp', location },
  };
}
