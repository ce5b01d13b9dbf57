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

type Over = Extract<Expression, { kind: 'over' }>;

export interface OverRequest {
  readonly level: Level;
  readonly environment: Environment;
  readonly bind: (expression: Expression) => Bound;
  readonly checkOrder: (bound: Bound, item: OrderItem) => void;
  /** Refuses what would tell masked cells apart. */
  readonly refuseMasked: (bound: Bound, location: Location) => void;
}

export function bindOver(over: Over, request: OverRequest): Bound {
  const { level, bind, refuseMasked } = request;
  const named = over.function.toUpperCase();
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
  const partition = over.partition.map(bindOperand);
  const order = over.orderBy.map((item) => {
    const each = bindOperand(item.expression);
    request.checkOrder(each, item);
    return each;
  });
  const computed: Output[] = [];
  const width = level.node.columns.length;
  const columnOf = (each: Bound): number =>
    each.kind === 'column' ? each.index : width + computed.push({ name: '#over', bound: each }) - 1;
  const whole = callOf(over, operands, columnOf, request);
  const call: OverCall = filter ? { ...whole.call, when: columnOf(filter) } : whole.call;
  const partitions = partition.map(columnOf);
  const keys = over.orderBy.map(
    ({ descending, collate, nullsFirst }, i): SortKey => ({ column: columnOf(order[i]!), descending, collate, nullsFirst }),
  );
  const input: PlanNode = computed.length > 0 ? project(level.node, [...throughColumns(level.node), ...computed]) : level.node;
  const column = { name: over.function, type: call.type, ...(whole.wire !== undefined && { wire: whole.wire }) };
  const index = input.columns.length;
  if (call.frame.unit === 'range' && over.frame && over.orderBy.length === 0 && over.frame.from.kind === 'current') {
    throw errorAt('REL_INVALID', `${named} needs ORDER BY for this frame`, over.frame.location);
  }
  level.node = { kind: 'over', input, partition: partitions, keys, calls: [call], columns: [...input.columns, column] };
  return { kind: 'column', index, ...column };
}

const isCount = ({ type }: Bound): boolean => type === 'integer' || type === 'null';

function callOf(
  over: Over,
  operands: readonly Bound[],
  columnOf: (bound: Bound) => number,
  { environment }: OverRequest,
): { readonly call: OverCall; readonly wire?: string } {
  const { function: name, location } = over;
  const named = name.toUpperCase();
  const frame: OverCall['frame'] = over.frame ?? {
    unit: 'range',
    from: { kind: 'unbounded' },
    to: { kind: 'current' },
  };
  const wrong = (usage: string): never => {
    throw errorAt('REL_INVALID', `${named} is written ${usage}`, location, 'no-such-function');
  };
  const none = { column: null, offset: null, otherwise: null } as const;
  switch (name) {
    case 'row_number':
    case 'rank':
    case 'dense_rank':
      if (operands.length > 0) wrong(`${named}()`);
      return { call: { ...none, function: name, type: 'integer', frame } };
    case 'percent_rank':
    case 'cume_dist':
      if (operands.length > 0) wrong(`${named}()`);
      return { call: { ...none, function: name, type: 'number', frame } };
    case 'ntile': {
      const [count, ...more] = operands;
      if (!count || more.length > 0 || !isCount(count)) return wrong(`${named}(n)`);
      return { call: { ...none, function: name, column: columnOf(count), type: 'integer', frame } };
    }
    case 'nth_value': {
      const [value, nth, ...more] = operands;
      if (!value || !nth || more.length > 0 || !isCount(nth)) return wrong(`${named}(x, n)`);
      const call: OverCall = {
        ...none,
        function: name,
        column: columnOf(value),
        second: columnOf(nth),
        type: columnType(value.type),
        frame,
      };
      return { call };
    }
    case 'lag':
    case 'lead': {
      const [value, , otherwise, ...more] = operands;
      if (!value || more.length > 0) return wrong(`${named}(x[, n[, otherwise]])`);
      const separator = over.arguments[1];
      const literal = separator?.kind === 'literal' ? environment.literals[separator.slot] : undefined;
      if (separator && (separator.kind !== 'literal' || typeof literal !== 'bigint' || literal < 0n)) {
        throw errorAt('REL_INVALID', `${named} goes so many rows, a whole number of at least 0`, separator.location);
      }
      const { type, fit } = commonResult(named, otherwise ? [value, otherwise] : [value], location);
      const call: OverCall = {
        function: name,
        column: columnOf(fit(value)),
        offset: separator?.kind === 'literal' ? { slot: separator.slot, location: separator.location } : null,
        otherwise: otherwise ? columnOf(fit(otherwise)) : null,
        type: columnType(type),
        frame,
      };
      return { call };
    }
    case 'first_value':
    case 'last_value': {
      const [value, ...more] = operands;
      if (!value || more.length > 0) return wrong(`${named}(x)`);
      return { call: { ...none, function: name, column: columnOf(value), type: columnType(value.type), frame } };
    }
    default: {
      const [value, second, ...more] = operands;
      // Clients of Postgres are given arrays as it has them.
      const call = name === 'array_agg' && environment.catalogue ? 'array' : name;
      const { usage, second: takes }: AggregateFunction = aggregateFunctions[call];
      if (more.length > 0 || (!value && name !== 'count') || (second !== undefined) !== (takes !== undefined))
        return wrong(usage);
      if (second) checkSecond(named, takes, second, over.arguments[1]!);
      if (value && isInterval(value) && ['sum', 'avg', 'min', 'max'].includes(name))
        throw errorAt('REL_NOT_IMPLEMENTED', `${named} of intervals has no OVER: take EXTRACT(EPOCH FROM x)`, over.location);
      const type: ColumnType = value ? aggregateType(name, value, over.arguments[0]!) : 'integer';
      if (type === 'string' && (name === 'sum' || name === 'avg'))
        throw errorAt('REL_NOT_IMPLEMENTED', `${named} of vectors has no OVER`, over.location);
      const wire = call === 'array' ? (environment.catalogue!.typeNamed(`${wireTypeOf(value!)}[]`) ?? '_text') : undefined;
      return {
        call: {
          ...none,
          function: call,
          column: value ? columnOf(value) : null,
          ...(second && { second: columnOf(second) }),
          type,
          frame,
        },
        ...(wire !== undefined && { wire }),
      };
    }
  }
}
