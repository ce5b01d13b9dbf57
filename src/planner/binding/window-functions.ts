/** Binds window functions: their arguments, and the node that adds their results as a column. */
import type { ColumnType } from '../../log/values/value.ts';
import { commonResult } from '../expressions/bind-call.ts';
import { isInterval } from '../expressions/bind-expression.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import type { OverCall, PlanNode, SortKey } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, OrderItem, Location } from '../syntax/statement.ts';
import { type AggregateFunction, aggregateFunctions } from '../aggregate-functions.ts';
import { wireTypeOf } from '../expressions/postgres-types.ts';
import { aggregateType, checkSecond } from './aggregate-calls.ts';
import type { Environment } from './environment.ts';
import { columnType, type Output, project, throughColumns } from './output-columns.ts';
import type { Level } from './subselects.ts';

type OverExpression = Extract<Expression, { kind: 'over' }>;

export interface OverRequest {
  readonly level: Level;
  readonly environment: Environment;
  readonly bind: (expression: Expression) => Bound;
  readonly checkOrder: (bound: Bound, item: OrderItem) => void;
  /** Refuses what would tell masked cells apart. */
  readonly refuseMasked: (bound: Bound, location: Location) => void;
}

export function bindOver(over: OverExpression, request: OverRequest): Bound {
  const { level, bind, refuseMasked } = request;
  const windowName = over.function.toUpperCase();
  const bindOperand = (expression: Expression): Bound => {
    const each = bind(expression);
    if (each.type === 'vector' || each.type === 'interval')
      throw errorAt('REL_TYPE_MISMATCH', `a window can't take ${each.type}`, expression.location);
    refuseMasked(each, expression.location);
    return each;
  };
  // All operands are bound before any becomes a column: a query among them adds columns of its own.
  const operands = over.arguments.map(bindOperand);
  const filter = over.filter && bindOperand(over.filter);
  if (filter && filter.type !== 'boolean' && filter.type !== 'null')
    throw errorAt('REL_TYPE_MISMATCH', `FILTER takes a condition, not ${filter.type}`, over.filter!.location);
  const partitionOperands = over.partition.map(bindOperand);
  const orderOperands = over.orderBy.map((item) => {
    const overOperand = bindOperand(item.expression);
    request.checkOrder(overOperand, item);
    return overOperand;
  });
  const computedOperands: Output[] = [];
  const width = level.node.columns.length;
  const overColumnOf = (each: Bound): number =>
    each.kind === 'column' ? each.index : width + computedOperands.push({ name: '#over', bound: each }) - 1;
  const overCall = overCallOf(over, operands, overColumnOf, request);
  const filteredCall: OverCall = filter ? { ...overCall.call, when: overColumnOf(filter) } : overCall.call;
  const partitions = partitionOperands.map(overColumnOf);
  const overKeys = over.orderBy.map(
    ({ descending, collate, nullsFirst }, i): SortKey => ({
      column: overColumnOf(orderOperands[i]!),
      descending,
      collate,
      nullsFirst,
    }),
  );
  const overInput: PlanNode =
    computedOperands.length > 0 ? project(level.node, [...throughColumns(level.node), ...computedOperands]) : level.node;
  const overColumn = {
    name: over.function,
    type: filteredCall.type,
    ...(overCall.wire !== undefined && { wire: overCall.wire }),
  };
  const index = overInput.columns.length;
  if (filteredCall.frame.unit === 'range' && over.frame && over.orderBy.length === 0 && over.frame.from.kind === 'current') {
    throw errorAt('REL_INVALID', `${windowName} needs ORDER BY for this frame`, over.frame.location);
  }
  level.node = {
    kind: 'over',
    input: overInput,
    partition: partitions,
    keys: overKeys,
    calls: [filteredCall],
    columns: [...overInput.columns, overColumn],
  };
  return { kind: 'column', index, ...overColumn };
}

const isCountBound = ({ type }: Bound): boolean => type === 'integer' || type === 'null';

function overCallOf(
  over: OverExpression,
  operands: readonly Bound[],
  columnOf: (bound: Bound) => number,
  { environment }: OverRequest,
): { readonly call: OverCall; readonly wire?: string } {
  const { function: name, location } = over;
  const windowName = name.toUpperCase();
  const overFrame: OverCall['frame'] = over.frame ?? {
    unit: 'range',
    from: { kind: 'unbounded' },
    to: { kind: 'current' },
  };
  const refuseUsage = (usage: string): never => {
    throw errorAt('REL_INVALID', `${windowName} is written ${usage}`, location, 'no-such-function');
  };
  const noOperands = { column: null, offset: null, otherwise: null } as const;
  switch (name) {
    case 'row_number':
    case 'rank':
    case 'dense_rank':
      if (operands.length > 0) refuseUsage(`${windowName}()`);
      return { call: { ...noOperands, function: name, type: 'integer', frame: overFrame } };
    case 'percent_rank':
    case 'cume_dist':
      if (operands.length > 0) refuseUsage(`${windowName}()`);
      return { call: { ...noOperands, function: name, type: 'number', frame: overFrame } };
    case 'ntile': {
      const [countOperand, ...moreOperands] = operands;
      if (!countOperand || moreOperands.length > 0 || !isCountBound(countOperand)) return refuseUsage(`${windowName}(n)`);
      return { call: { ...noOperands, function: name, column: columnOf(countOperand), type: 'integer', frame: overFrame } };
    }
    case 'nth_value': {
      const [valueOperand, nthOperand, ...moreOperands] = operands;
      if (!valueOperand || !nthOperand || moreOperands.length > 0 || !isCountBound(nthOperand))
        return refuseUsage(`${windowName}(x, n)`);
      const call: OverCall = {
        ...noOperands,
        function: name,
        column: columnOf(valueOperand),
        second: columnOf(nthOperand),
        type: columnType(valueOperand.type),
        frame: overFrame,
      };
      return { call };
    }
    case 'lag':
    case 'lead': {
      const [valueOperand, , defaultOperand, ...moreOperands] = operands;
      if (!valueOperand || moreOperands.length > 0) return refuseUsage(`${windowName}(x[, n[, otherwise]])`);
      const separator = over.arguments[1];
      const offsetLiteral = separator?.kind === 'literal' ? environment.literals[separator.slot] : undefined;
      if (separator && (separator.kind !== 'literal' || typeof offsetLiteral !== 'bigint' || offsetLiteral < 0n)) {
        throw errorAt('REL_INVALID', `${windowName} goes so many rows, a whole number of at least 0`, separator.location);
      }
      const { type, fit } = commonResult(windowName, defaultOperand ? [valueOperand, defaultOperand] : [valueOperand], location);
      const call: OverCall = {
        function: name,
        column: columnOf(fit(valueOperand)),
        offset: separator?.kind === 'literal' ? { slot: separator.slot, location: separator.location } : null,
        otherwise: defaultOperand ? columnOf(fit(defaultOperand)) : null,
        type: columnType(type),
        frame: overFrame,
      };
      return { call };
    }
    case 'first_value':
    case 'last_value': {
      const [valueOperand, ...moreOperands] = operands;
      if (!valueOperand || moreOperands.length > 0) return refuseUsage(`${windowName}(x)`);
      return {
        call: {
          ...noOperands,
          function: name,
          column: columnOf(valueOperand),
          type: columnType(valueOperand.type),
          frame: overFrame,
        },
      };
    }
    default: {
      const [valueOperand, second, ...moreOperands] = operands;
      // Clients of Postgres are given arrays as it has them.
      const call = name === 'array_agg' && environment.catalogue ? 'array' : name;
      const { usage, second: takes }: AggregateFunction = aggregateFunctions[call];
      if (moreOperands.length > 0 || (!valueOperand && name !== 'count') || (second !== undefined) !== (takes !== undefined))
        return refuseUsage(usage);
      if (second) checkSecond(windowName, takes, second, over.arguments[1]!);
      if (valueOperand && isInterval(valueOperand) && ['sum', 'avg', 'min', 'max'].includes(name))
        throw errorAt('REL_NOT_IMPLEMENTED', `${windowName} of intervals has no OVER: take EXTRACT(EPOCH FROM x)`, over.location);
      const type: ColumnType = valueOperand ? aggregateType(name, valueOperand, over.arguments[0]!) : 'integer';
      if (type === 'string' && (name === 'sum' || name === 'avg'))
        throw errorAt('REL_NOT_IMPLEMENTED', `${windowName} of vectors has no OVER`, over.location);
      const wire = call === 'array' ? (environment.catalogue!.typeNamed(`${wireTypeOf(valueOperand!)}[]`) ?? '_text') : undefined;
      return {
        call: {
          ...noOperands,
          function: call,
          column: valueOperand ? columnOf(valueOperand) : null,
          ...(second && { second: columnOf(second) }),
          type,
          frame: overFrame,
        },
        ...(wire !== undefined && { wire }),
      };
    }
  }
}
