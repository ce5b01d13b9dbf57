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
  readonly #scope: Scope;
  readonly #rows: ExpressionContext;
  readonly #keyCount: number;
  readonly #arguments: Bound[] = [];
  readonly #calls: { readonly call: AggregateCall; readonly type: ColumnType }[] = [];
  /** The order in which aggregates take their rows; null without one. */
  #order: readonly SortKey[] | null = null;

  constructor({ environment, scope, rows, keyCount }: AggregateRequest) {
    this.#environment = environment;
    this.#scope = scope;
    this.#rows = rows;
    this.#keyCount = keyCount;
  }

  /** Columns that the aggregate node reads behind its keys. */
  get arguments(): readonly Bound[] {
    return this.#arguments;
  }

  get calls(): readonly AggregateCall[] {
    return this.#calls.map(({ call }) => call);
  }

  /** The columns that the calls yield. */
  get columns(): readonly PlanColumn[] {
    return this.#calls.map(({ call, type }): PlanColumn => ({ name: call.function, type }));
  }

  bind(expression: AggregateExpression): Bound {
    // Clients of Postgres are given arrays as it has them.
    const isArray = expression.function === 'array_agg' && this.#environment.catalogue;
    const call = isArray ? 'array' : expression.function;
    checkForm(expression, aggregateFunctions[call]);
    const condition = this.#condition(expression);
    const operand = this.#operand(expression, call);
    const columns = this.#columnsOf(expression, call, condition, operand);
    refuseOuterOnly(expression, call, [condition, operand.bound]);
    const second = this.#second(expression, call);
    if (expression.orderBy) this.#orderRows(expression.orderBy);
    const { type, wire } = operand;
    const index = this.#callIndex(
      {
        function: call,
        ...columns,
        distinct: expression.distinct,
        ...(second === undefined ? {} : { second }),
        ...(expression.descending === true && { descending: true }),
        ...(wire !== undefined && (call === 'array' || wire === 'interval') && { wire }),
      },
      type,
    );
    return { kind: 'column', index: this.#keyCount + index, name: call, type, ...(wire !== undefined && { wire }) };
  }

  /** The input of the aggregate node, in the order that ORDER BY inside of a call asks for. */
  sortInput(input: PlanNode): PlanNode {
    const keys = this.#order;
    return keys === null ? input : { kind: 'sort', input, keys, limit: null, counted: false, columns: input.columns };
  }

  #condition({ filter }: AggregateExpression): Bound | null {
    const condition = filter && bindPredicate(filter, this.#rows);
    if (condition) this.#scope.refuseMasked(condition, 'FILTER', filter.location);
    return condition;
  }

  #operand({ operand, distinct, location }: AggregateExpression, call: AggregateName): AggregateOperand {
    if (!operand) return { bound: null, type: 'integer', wire: undefined };
    const { name } = aggregateFunctions[call];
    const bound = bindExpression(operand, this.#rows);
    const wire = this.#wireType(bound, call);
    if (wire === 'interval' && distinct && !yieldsItsValues.has(call))
      throw errorAt('REL_NOT_IMPLEMENTED', `${name} of DISTINCT intervals is not implemented`, location);
    const type = aggregateType(call, bound, operand);
    this.#scope.refuseMasked(bound, name, operand.location);
    return { bound, type, wire };
  }

  #wireType(bound: Bound, call: AggregateName): string | undefined {
    if (call === 'array') return this.#environment.catalogue!.typeNamed(`${wireTypeOf(bound)}[]`) ?? '_text';
    if (yieldsItsValues.has(call)) return wireIn(bound);
    return isInterval(bound) && (call === 'sum' || call === 'avg') ? 'interval' : undefined;
  }

  #columnsOf(
    { operand, location }: AggregateExpression,
    call: AggregateName,
    condition: Bound | null,
    { bound }: AggregateOperand,
  ): CallColumns {
    const { name, takesNull = false }: AggregateFunction = aggregateFunctions[call];
    if (bound === null) {
      if (call !== 'count') throw errorAt('REL_INVALID', `${name} needs a column`, location);
      const every: Bound = { kind: 'constant', cell: true, type: 'boolean' };
      return { column: condition && this.#argument(valueWhere(condition, every)) };
    }
    const value = condition && bound.type === 'vector' ? vectorAsText(bound, operand!.location) : bound;
    if (!condition) return { column: this.#argument(value) };
    if (!takesNull) return { column: this.#argument(valueWhere(condition, value)) };
    const when = this.#argument(condition);
    return { column: this.#argument(value), when };
  }

  /** The column of the second argument: a separator, a share, the x of a pair. */
  #second({ second, distinct }: AggregateExpression, call: AggregateName): number | undefined {
    if (!second) return undefined;
    const { name, second: takes, isOrdered = false }: AggregateFunction = aggregateFunctions[call];
    const bound = bindExpression(second, this.#rows);
    checkSecond(name, takes, bound, second);
    const readsColumn = some(bound, ({ kind }) => kind === 'column');
    if (isOrdered && readsColumn)
      throw errorAt('REL_INVALID', `the share of ${name} is one for all rows`, second.location, 'not-grouped');
    // DISTINCT compares the first value of a pair alone.
    if (distinct && readsColumn)
      throw errorAt('REL_NOT_IMPLEMENTED', `${name} of DISTINCT pairs is not implemented`, second.location);
    this.#scope.refuseMasked(bound, name, second.location);
    return this.#argument(bound);
  }

  /** All aggregates take their rows in one order. */
  #orderRows(orderBy: readonly OrderItem[]): void {
    const keys = orderBy.map((item): SortKey => {
      const bound = bindExpression(item.expression, this.#rows);
      checkSortKey(bound, item);
      this.#scope.refuseMasked(bound, 'ORDER BY', item.expression.location);
      const { descending, collate, nullsFirst } = item;
      return { column: this.#argument(bound), descending, collate, nullsFirst };
    });
    if (this.#order !== null && JSON.stringify(this.#order) !== JSON.stringify(keys))
      throw errorAt('REL_NOT_IMPLEMENTED', 'aggregates in two orders are not implemented', orderBy[0]!.expression.location);
    this.#order = keys;
  }

  /** The column of the node's input that holds an argument. */
  #argument(bound: Bound): number {
    const { literals, guards } = this.#environment;
    const index = this.#arguments.findIndex((each) => sameExpression(each, bound, literals, guards));
    return this.#keyCount + (index < 0 ? this.#arguments.push(bound) - 1 : index);
  }

  #callIndex(call: AggregateCall, type: ColumnType): number {
    const index = this.#calls.findIndex(({ call: known }) => isSameCall(known, call));
    return index < 0 ? this.#calls.push({ call, type }) - 1 : index;
  }
}

/** Functions whose result is one of the values that they are given. */
const yieldsItsValues: ReadonlySet<AggregateName> = new Set(['min', 'max', 'any_value', 'mode', 'percentile_disc']);

function checkForm(
  { operand, second, filter, location }: AggregateExpression,
  { name, usage, second: takes }: AggregateFunction,
): void {
  if ((second !== null) !== (takes !== undefined))
    throw errorAt('REL_INVALID', `${name} is written ${usage}`, location, 'no-such-function');
  for (const part of [operand, second, filter]) {
    if (part && containsAggregate(part)) throw errorAt('REL_PARSE', "aggregates can't be nested", part.location, 'not-grouped');
  }
}

/** SQL has an aggregate over nothing but outer columns add up the rows of the outer query. */
function refuseOuterOnly({ location }: AggregateExpression, call: AggregateName, read: readonly (Bound | null)[]): void {
  const reads = (kind: Bound['kind']): boolean =>
    read.some((bound) => bound !== null && some(bound, (each) => each.kind === kind));
  if (!reads('outer') || reads('column')) return;
  throw errorAt(
    'REL_NOT_IMPLEMENTED',
    `${aggregateFunctions[call].name} of nothing but columns of a query around belongs to that query: write it there`,
    location,
  );
}

function isSameCall(a: AggregateCall, b: AggregateCall): boolean {
  return (
    a.function === b.function &&
    a.column === b.column &&
    a.second === b.second &&
    a.when === b.when &&
    (a.descending ?? false) === (b.descending ?? false) &&
    a.distinct === b.distinct
  );
}

/** The value on the rows of FILTER, NULL on the others. */
function valueWhere(condition: Bound, value: Bound): Bound {
  return { kind: 'case', operand: null, branches: [{ when: condition, result: value }], otherwise: null, type: value.type };
}
