/**
 * GROUP BY and HAVING of one SELECT. Keys and arguments of aggregates are computed below the aggregate node; expressions above it
 * see keys and results only.
 */
import { bindExpression, bindPredicate, type ExpressionContext, type Leaf } from '../expressions/bind-expression.ts';
import { type Bound, sameExpression } from '../expressions/bound-expression.ts';
import type { PlanColumn, PlanNode } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, OrderItem, Select } from '../syntax/statement.ts';
import { AggregateBinder } from './aggregate-binder.ts';
import { containsAggregate } from './aggregate-calls.ts';
import { isEntityCall } from './entity-cells.ts';
import type { Environment } from './environment.ts';
import { isNodeName } from './graph-rows.ts';
import { GroupingSets } from './grouping-sets.ts';
import { positionOf } from './ordinal-numbers.ts';
import { columnType, nameOf, type Output, project, wireIn } from './output-columns.ts';
import { type OuterQuery, Scope } from './scope.ts';
import type { Level } from './subselects.ts';
import { filterSource } from './table-functions.ts';
import { bindWindow } from './time-windows.ts';

type GroupCall = Extract<Expression, { kind: 'call' }>;

export interface GroupRequest {
  readonly environment: Environment;
  readonly select: Select;
  readonly orderBy: readonly OrderItem[];
  readonly outer: readonly OuterQuery[];
  readonly scope: Scope;
  /** The rows that are grouped, and the context of expressions over them. */
  readonly level: Level;
  readonly rows: ExpressionContext;
  readonly projection: ProjectionBinder;
  readonly contexts: ContextMaker;
}

/** The outputs of the SELECT, in a context. */
export interface ProjectionBinder {
  bindOutputs(context: ExpressionContext): Output[];
  /** The output that an item of ORDER BY names, if it names one. */
  outputNamed(expression: Expression, outputs: readonly Output[]): Bound | undefined;
}

export interface ContextMaker {
  levelOf(node: PlanNode): Level;
  contextOf(scope: Scope, level: Level): ExpressionContext;
  withSubselects(context: Pick<ExpressionContext, 'environment' | 'leaf'>, scope: Scope, level: Level): ExpressionContext;
}

/** Rows that the projection is over, its outputs, and the context of further expressions. */
export interface BoundRows {
  readonly level: Level;
  readonly outputs: Output[];
  readonly context: ExpressionContext;
}

export function bindGroups(request: GroupRequest): BoundRows {
  return new GroupBinder(request).bind();
}

class GroupBinder {
  readonly #groupRequest: GroupRequest;
  readonly #groupedRows: ExpressionContext;
  /** The expressions of GROUP BY, then the bounds of a window; below, the same bound. */
  readonly #keyExpressions: readonly Expression[];
  readonly #groupKeys: readonly Bound[];
  readonly #hasColumnKeysOnly: boolean;
  /** The expressions of GROUP BY, where it names items of the projection: these. */
  readonly #groupedExpressions: Expression[] = [];
  readonly #aggregateBinder: AggregateBinder;
  readonly #groupingSets: GroupingSets;

  constructor(request: GroupRequest) {
    const { environment, select, scope } = request;
    this.#groupRequest = request;
    const writtenKeys = select.groupBy.map((expression) => this.#bindGroupKey(expression));
    const groupWindow = select.window ? this.#bindGroupWindow(select.window, writtenKeys) : null;
    this.#groupedRows = groupWindow?.rows ?? request.rows;
    this.#keyExpressions = [...select.groupBy, ...(groupWindow?.expressions ?? [])];
    this.#groupKeys = [...writtenKeys, ...(groupWindow?.keys ?? [])];
    this.#hasColumnKeysOnly = this.#groupKeys.every(({ kind }) => kind === 'column');
    this.#aggregateBinder = new AggregateBinder({
      environment,
      scope,
      rows: this.#groupedRows,
      keyCount: this.#groupKeys.length,
    });
    this.#groupingSets = new GroupingSets(
      select.groupingSets,
      this.#groupKeys.map((key) => this.#groupKeyIndex(key)),
    );
  }

  bind(): BoundRows {
    const { environment, select, scope, level: rowLevel, projection, contexts } = this.#groupRequest;
    const groupLeaf: Leaf = (expression) => this.#groupLeaf(expression);
    this.#collectAggregates({ ...this.#groupedRows, leaf: groupLeaf });
    const keyColumns = this.#groupKeys.map(
      (key, i): PlanColumn => ({ name: nameOf(this.#keyExpressions[i]!, i), type: columnType(key.type) }),
    );
    const aggregateInputs = [...this.#groupKeys, ...this.#aggregateBinder.arguments].map(
      (bound, i): Output => ({ name: `#${i}`, bound }),
    );
    const groupLevel = contexts.levelOf(
      this.#groupingSets.nodeOf(
        {
          kind: 'aggregate',
          input: this.#aggregateBinder.sortInput(project(rowLevel.node, aggregateInputs)),
          groups: this.#groupKeys.length,
          calls: this.#aggregateBinder.calls,
          columns: [...keyColumns, ...this.#aggregateBinder.columns],
        },
        select.location,
      ),
    );
    const groupContext = contexts.withSubselects({ environment, leaf: groupLeaf }, scope, groupLevel);
    if (select.having) {
      // Queries in HAVING add columns to the level before its rows are filtered.
      const predicate = bindPredicate(select.having, groupContext);
      groupLevel.node = filterSource(groupLevel.node, predicate);
    }
    return { level: groupLevel, outputs: projection.bindOutputs(groupContext), context: groupContext };
  }

  /**
   * Binds everything above the groups once, for the sake of its aggregates: all must be known before the node is made, those of
   * HAVING and ORDER BY too. Queries wait for the node.
   */
  #collectAggregates(context: ExpressionContext): void {
    const { select, orderBy, projection } = this.#groupRequest;
    const firstPassContext: ExpressionContext = {
      ...context,
      subselect: (expression, bind) => {
        if ('operand' in expression)
          (expression.operand.kind === 'row' ? expression.operand.items : [expression.operand]).forEach(bind);
        return unknownAggregate;
      },
      over: (expression, bind) => {
        const { arguments: operands, partition, orderBy: order, filter } = expression;
        [...operands, ...partition, ...order.map((item) => item.expression), ...(filter ? [filter] : [])].forEach(bind);
        return unknownAggregate;
      },
    };
    const firstPassOutputs = projection.bindOutputs(firstPassContext);
    if (select.having) bindPredicate(select.having, firstPassContext);
    for (const { expression } of orderBy) {
      if (!projection.outputNamed(expression, firstPassOutputs)) bindExpression(expression, firstPassContext);
    }
  }

  /** An expression above the groups that is a key or an aggregate; undefined for one that is made of these. */
  #groupLeaf(expression: Expression): Bound | undefined {
    const { environment, select } = this.#groupRequest;
    if (expression.kind === 'aggregate') return this.#aggregateBinder.bind(expression);
    if (expression.kind === 'call' && expression.name === 'GROUPING' && environment.wide === true)
      return this.#bindGrouping(expression);
    if (expression.kind === 'literal' || containsAggregate(expression)) return undefined;
    const groupedOrdinal = expression.kind === 'scalar-query' ? this.#groupedExpressions.indexOf(expression) : -1;
    if (groupedOrdinal >= 0) return groupKeyColumn(groupedOrdinal, expression, this.#groupKeys[groupedOrdinal]!);
    if (select.window && expression.kind === 'call' && expression.name === select.window.type.toUpperCase()) {
      this.#checkGroupWindow(expression, select.window);
      return { kind: 'column', index: this.#groupKeys.length - 2, name: 'window_start', type: 'timestamp' };
    }
    if (this.#hasColumnKeysOnly && expression.kind !== 'column' && !isNodeName(expression) && !isEntityCall(expression))
      return undefined;
    const keyOrColumn = bindExpression(expression, this.#groupedRows);
    const groupKeyIndex = this.#groupKeyIndex(keyOrColumn);
    if (groupKeyIndex >= 0) return groupKeyColumn(groupKeyIndex, expression, keyOrColumn);
    if (expression.kind === 'column') {
      const notGroupedText = `${JSON.stringify(expression.name)} must stand in GROUP BY or inside an aggregate`;
      throw errorAt('REL_INVALID', notGroupedText, expression.location, 'not-grouped');
    }
    return undefined;
  }

  #groupKeyIndex(bound: Bound): number {
    const { literals, guards } = this.#groupRequest.environment;
    return this.#groupKeys.findIndex((key) => sameExpression(key, bound, literals, guards));
  }

  #bindGrouping({ arguments: operands, location }: GroupCall): Bound {
    const groupingKeys = operands.map(({ value }): number => {
      const groupingKeyIndex = this.#groupKeyIndex(bindExpression(value, this.#groupedRows));
      if (groupingKeyIndex >= 0) return groupingKeyIndex;
      throw errorAt('REL_INVALID', 'GROUPING takes expressions of GROUP BY', value.location, 'not-grouped');
    });
    return this.#groupingSets.grouping(groupingKeys, this.#groupKeys.length + this.#aggregateBinder.calls.length, location);
  }

  /** A column, an alias of the projection where no column has that name, or any expression over columns. */
  #bindGroupKey(expression: Expression): Bound {
    const { environment, scope, select, rows } = this.#groupRequest;
    const { projection } = select;
    const isAlias = expression.kind === 'column' && expression.table === null && !scope.has(expression.name);
    const position = positionOf(expression, projection.length, environment);
    if (position !== null && projection.some(({ kind }) => kind === 'star')) {
      throw errorAt('REL_INVALID', 'with SELECT *, GROUP BY takes column names, not positions', expression.location);
    }
    const groupItem =
      position !== null
        ? projection[position]
        : isAlias
          ? projection.find((each) => each.kind === 'expression' && each.alias === expression.name)
          : undefined;
    const groupTarget = groupItem?.kind === 'expression' ? groupItem.expression : expression;
    this.#groupedExpressions.push(groupTarget);
    const groupBound = bindExpression(groupTarget, rows);
    if (groupBound.type === 'vector' || groupBound.type === 'interval') {
      throw errorAt('REL_TYPE_MISMATCH', `GROUP BY can't group ${groupBound.type}`, expression.location);
    }
    scope.refuseMasked(groupBound, 'GROUP BY', expression.location);
    return groupBound;
  }

  /** The bounds of a time window become two more keys, and two columns of the rows. */
  #bindGroupWindow(
    window: NonNullable<Select['window']>,
    keys: readonly Bound[],
  ): { readonly rows: ExpressionContext; readonly keys: readonly Bound[]; readonly expressions: readonly Expression[] } {
    const { scope, level, outer, rows, contexts } = this.#groupRequest;
    const { column, type, location } = window;
    scope.refuseMasked(scope.column(column), type.toUpperCase(), column.location);
    const boundWindow = bindWindow(level.node, keys, window, rows);
    level.node = boundWindow.node;
    const windowTable = { name: null, type: null, columns: boundWindow.bounds, first: boundWindow.node.columns.length - 2 };
    return {
      rows: contexts.contextOf(new Scope([...scope.tables, windowTable], outer), level),
      keys: boundWindow.keys,
      expressions: boundWindow.bounds.map(({ name }) => ({ kind: 'column', table: null, name, location })),
    };
  }

  /** The window's own function stands for its start. */
  #checkGroupWindow(call: GroupCall, { column, intervals }: NonNullable<Select['window']>): void {
    const { environment, scope } = this.#groupRequest;
    const { literals, guards } = environment;
    const [windowOperand, ...windowIntervals] = call.arguments.map(({ value }) => value);
    const isSame =
      windowOperand?.kind === 'column' &&
      sameExpression(scope.column(windowOperand), scope.column(column), literals, guards) &&
      windowIntervals.length === intervals.length &&
      windowIntervals.every(
        (each, i) => each.kind === 'interval' && literals[each.interval.slot.slot] === literals[intervals[i]!.slot.slot],
      );
    if (isSame) return;
    throw errorAt('REL_INVALID', `${call.name} must repeat the window of GROUP BY`, call.location, 'not-grouped');
  }
}

/** Stands for a query or a window function until the node of the groups is there. */
const unknownAggregate: Bound = { kind: 'constant', cell: null, type: 'null' };

function groupKeyColumn(index: number, expression: Expression, bound: Bound): Bound {
  const keyWire = wireIn(bound);
  const keyType = columnType(bound.type);
  return {
    kind: 'column',
    index,
    name: nameOf(expression, index),
    type: keyType,
    ...(keyWire !== undefined && { wire: keyWire }),
  };
}
