/**
 * Binds the aggregate calls of one SELECT. Each becomes a column of the aggregate node, behind the group keys; equal calls share
 * one column, and equal arguments are computed once.
 */
import type { ColumnType } from '../../log/values/value.ts';
import { type AggregateFunction, aggregateFunctions, type AggregateName } from '../aggregate-functions.ts';
import { vectorAsText } from '../expressions/bind-call.ts';
import { bindExpression, bindPredicate, type ExpressionContext, isInterval } from '../expressions/bind-expression.ts';
import { type Bound, sameExpression, some } from '../expressions/bound-expression.ts';
import { wireTypeOf } from '../expressions/postgres-types.ts';
import type { AggregateCall, PlanColumn, PlanNode, SortKey } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, OrderItem } from '../syntax/statement.ts';
import { aggregateType, checkSecond, containsAggregate } from './aggregate-calls.ts';
import type { Environment } from './environment.ts';
import { wireIn } from './output-columns.ts';
import type { Scope } from './scope.ts';
import { checkSortKey } from './sort-order.ts';

type AggregateExpression = Extract<Expression, { kind: 'aggregate' }>;

/** The value that an aggregate reads, and what it yields. */
interface AggregateOperand {
  /** Null for `count(*)`. */
  readonly bound: Bound | null;
  readonly type: ColumnType;
  readonly wire: string | undefined;
}

/** Columns of the node's input that a call reads. */
interface CallColumns {
  readonly column: number | null;
  /** The rows of FILTER, for a function to which NULLs are values. */
  readonly when?: number;
}

export interface AggregateRequest {
  readonly environment: Environment;
  readonly scope: Scope;
  /** The rows that are grouped. */
  readonly rows: ExpressionContext;
  readonly keyCount: number;
}

export class AggregateBinder {
  readonly #environment: Environment;
  readonly #aggregateScope: Scope;
  readonly #rowContext: ExpressionContext;
  readonly #groupKeyCount: number;
  readonly #argumentBounds: Bound[] = [];
  readonly #aggregateCalls: { readonly call: AggregateCall; readonly type: ColumnType }[] = [];
  /** The order in which aggregates take their rows; null without one. */
  #aggregateOrder: readonly SortKey[] | null = null;

  constructor({ environment, scope, rows, keyCount }: AggregateRequest) {
    this.#environment = environment;
    this.#aggregateScope = scope;
    this.#rowContext = rows;
    this.#groupKeyCount = keyCount;
  }

  /** Columns that the aggregate node reads behind its keys. */
  get arguments(): readonly Bound[] {
    return this.#argumentBounds;
  }

  get calls(): readonly AggregateCall[] {
    return this.#aggregateCalls.map(({ call }) => call);
  }

  /** The columns that the calls yield. */
  get columns(): readonly PlanColumn[] {
    return this.#aggregateCalls.map(({ call, type }): PlanColumn => ({ name: call.function, type }));
  }

  bind(expression: AggregateExpression): Bound {
    // Clients of Postgres are given arrays as it has them.
    const isArray = expression.function === 'array_agg' && this.#environment.catalogue;
    const aggregateName = isArray ? 'array' : expression.function;
    checkAggregateForm(expression, aggregateFunctions[aggregateName]);
    const filterCondition = this.#bindFilterCondition(expression);
    const boundOperand = this.#bindOperand(expression, aggregateName);
    const callColumns = this.#callColumnsOf(expression, aggregateName, filterCondition, boundOperand);
    refuseOuterAggregate(expression, aggregateName, [filterCondition, boundOperand.bound]);
    const secondColumn = this.#bindSecond(expression, aggregateName);
    if (expression.orderBy) this.#orderRows(expression.orderBy);
    const { type, wire } = boundOperand;
    const aggregateIndex = this.#callIndex(
      {
        function: aggregateName,
        ...callColumns,
        distinct: expression.distinct,
        ...(secondColumn === undefined ? {} : { second: secondColumn }),
        ...(expression.descending === true && { descending: true }),
        ...(wire !== undefined && (aggregateName === 'array' || wire === 'interval') && { wire }),
      },
      type,
    );
    return {
      kind: 'column',
      index: this.#groupKeyCount + aggregateIndex,
      name: aggregateName,
      type,
      ...(wire !== undefined && { wire }),
    };
  }

  /** The input of the aggregate node, in the order that ORDER BY inside of a call asks for. */
  sortInput(input: PlanNode): PlanNode {
    const aggregateKeys = this.#aggregateOrder;
    return aggregateKeys === null
      ? input
      : { kind: 'sort', input, keys: aggregateKeys, limit: null, counted: false, columns: input.columns };
  }

  #bindFilterCondition({ filter }: AggregateExpression): Bound | null {
    const filterCondition = filter && bindPredicate(filter, this.#rowContext);
    if (filterCondition) this.#aggregateScope.refuseMasked(filterCondition, 'FILTER', filter.location);
    return filterCondition;
  }

  #bindOperand({ operand, distinct, location }: AggregateExpression, call: AggregateName): AggregateOperand {
    if (!operand) return { bound: null, type: 'integer', wire: undefined };
    const { name } = aggregateFunctions[call];
    const operandBound = bindExpression(operand, this.#rowContext);
    const operandWire = this.#wireType(operandBound, call);
    if (operandWire === 'interval' && distinct && !aggregatesKeepingWire.has(call))
      throw errorAt('REL_NOT_IMPLEMENTED', `${name} of DISTINCT intervals is not implemented`, location);
    const type = aggregateType(call, operandBound, operand);
    this.#aggregateScope.refuseMasked(operandBound, name, operand.location);
    return { bound: operandBound, type, wire: operandWire };
  }

  #wireType(bound: Bound, call: AggregateName): string | undefined {
    if (call === 'array') return this.#environment.catalogue!.typeNamed(`${wireTypeOf(bound)}[]`) ?? '_text';
    if (aggregatesKeepingWire.has(call)) return wireIn(bound);
    return isInterval(bound) && (call === 'sum' || call === 'avg') ? 'interval' : undefined;
  }

  #callColumnsOf(
    { operand, location }: AggregateExpression,
    call: AggregateName,
    condition: Bound | null,
    { bound }: AggregateOperand,
  ): CallColumns {
    const { name, takesNull = false }: AggregateFunction = aggregateFunctions[call];
    if (bound === null) {
      if (call !== 'count') throw errorAt('REL_INVALID', `${name} needs a column`, location);
      const trueConstant: Bound = { kind: 'constant', cell: true, type: 'boolean' };
      return { column: condition && this.#argumentColumn(valueWhereTrue(condition, trueConstant)) };
    }
    const aggregatedBound = condition && bound.type === 'vector' ? vectorAsText(bound, operand!.location) : bound;
    if (!condition) return { column: this.#argumentColumn(aggregatedBound) };
    if (!takesNull) return { column: this.#argumentColumn(valueWhereTrue(condition, aggregatedBound)) };
    const filterColumn = this.#argumentColumn(condition);
    return { column: this.#argumentColumn(aggregatedBound), when: filterColumn };
  }

  /** The column of the second argument: a separator, a share, the x of a pair. */
  #bindSecond({ second, distinct }: AggregateExpression, call: AggregateName): number | undefined {
    if (!second) return undefined;
    const { name, second: secondTaken, isOrdered = false }: AggregateFunction = aggregateFunctions[call];
    const secondBound = bindExpression(second, this.#rowContext);
    checkSecond(name, secondTaken, secondBound, second);
    const readsColumn = some(secondBound, ({ kind }) => kind === 'column');
    if (isOrdered && readsColumn)
      throw errorAt('REL_INVALID', `the share of ${name} is one for all rows`, second.location, 'not-grouped');
    // DISTINCT compares the first value of a pair alone.
    if (distinct && readsColumn)
      throw errorAt('REL_NOT_IMPLEMENTED', `${name} of DISTINCT pairs is not implemented`, second.location);
    this.#aggregateScope.refuseMasked(secondBound, name, second.location);
    return this.#argumentColumn(secondBound);
  }

  /** All aggregates take their rows in one order. */
  #orderRows(orderBy: readonly OrderItem[]): void {
    const aggregateKeys = orderBy.map((item): SortKey => {
      const orderBound = bindExpression(item.expression, this.#rowContext);
      checkSortKey(orderBound, item);
      this.#aggregateScope.refuseMasked(orderBound, 'ORDER BY', item.expression.location);
      const { descending, collate, nullsFirst } = item;
      return { column: this.#argumentColumn(orderBound), descending, collate, nullsFirst };
    });
    if (this.#aggregateOrder !== null && JSON.stringify(this.#aggregateOrder) !== JSON.stringify(aggregateKeys))
      throw errorAt('REL_NOT_IMPLEMENTED', 'aggregates in two orders are not implemented', orderBy[0]!.expression.location);
    this.#aggregateOrder = aggregateKeys;
  }

  /** The column of the node's input that holds an argument. */
  #argumentColumn(bound: Bound): number {
    const { literals, guards } = this.#environment;
    const argumentIndex = this.#argumentBounds.findIndex((each) => sameExpression(each, bound, literals, guards));
    return this.#groupKeyCount + (argumentIndex < 0 ? this.#argumentBounds.push(bound) - 1 : argumentIndex);
  }

  #callIndex(call: AggregateCall, type: ColumnType): number {
    const knownCallIndex = this.#aggregateCalls.findIndex(({ call: knownCall }) => isSameAggregate(knownCall, call));
    return knownCallIndex < 0 ? this.#aggregateCalls.push({ call, type }) - 1 : knownCallIndex;
  }
}

/** Functions whose result is one of the values that they are given. */
const aggregatesKeepingWire: ReadonlySet<AggregateName> = new Set(['min', 'max', 'any_value', 'mode', 'percentile_disc']);

function checkAggregateForm(
  { operand, second, filter, location }: AggregateExpression,
  { name, usage, second: secondTaken }: AggregateFunction,
): void {
  if ((second !== null) !== (secondTaken !== undefined))
    throw errorAt('REL_INVALID', `${name} is written ${usage}`, location, 'no-such-function');
  for (const aggregatePart of [operand, second, filter]) {
    if (aggregatePart && containsAggregate(aggregatePart))
      throw errorAt('REL_PARSE', "aggregates can't be nested", aggregatePart.location, 'not-grouped');
  }
}

/** SQL has an aggregate over nothing but outer columns add up the rows of the outer query. */
function refuseOuterAggregate(
  { location }: AggregateExpression,
  call: AggregateName,
  boundsRead: readonly (Bound | null)[],
): void {
  const readsKind = (kind: Bound['kind']): boolean =>
    boundsRead.some((bound) => bound !== null && some(bound, (each) => each.kind === kind));
  if (!readsKind('outer') || readsKind('column')) return;
  throw errorAt(
    'REL_NOT_IMPLEMENTED',
    `${aggregateFunctions[call].name} of nothing but columns of a query around belongs to that query: write it there`,
    location,
  );
}

function isSameAggregate(oneCall: AggregateCall, otherCall: AggregateCall): boolean {
  return (
    oneCall.function === otherCall.function &&
    oneCall.column === otherCall.column &&
    oneCall.second === otherCall.second &&
    oneCall.when === otherCall.when &&
    (oneCall.descending ?? false) === (otherCall.descending ?? false) &&
    oneCall.distinct === otherCall.distinct
  );
}

/** The value on the rows of FILTER, NULL on the others. */
function valueWhereTrue(condition: Bound, value: Bound): Bound {
  return { kind: 'case', operand: null, branches: [{ when: condition, result: value }], otherwise: null, type: value.type };
}
