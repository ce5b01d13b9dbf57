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

type Call = Extract<Expression, { kind: 'call' }>;

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
  readonly #request: GroupRequest;
  readonly #rows: ExpressionContext;
  /** The expressions of GROUP BY, then the bounds of a window; below, the same bound. */
  readonly #keyExpressions: readonly Expression[];
  readonly #keys: readonly Bound[];
  readonly #hasColumnKeysOnly: boolean;
  /** The expressions of GROUP BY, where it names items of the projection: these. */
  readonly #groupedBy: Expression[] = [];
  readonly #aggregates: AggregateBinder;
  readonly #sets: GroupingSets;

  constructor(request: GroupRequest) {
    const { environment, select, scope } = request;
    this.#request = request;
    const keys = select.groupBy.map((expression) => this.#bindKey(expression));
    const window = select.window ? this.#bindWindow(select.window, keys) : null;
    this.#rows = window?.rows ?? request.rows;
    this.#keyExpressions = [...select.groupBy, ...(window?.expressions ?? [])];
    this.#keys = [...keys, ...(window?.keys ?? [])];
    this.#hasColumnKeysOnly = this.#keys.every(({ kind }) => kind === 'column');
    this.#aggregates = new AggregateBinder({ environment, scope, rows: this.#rows, keyCount: this.#keys.length });
    this.#sets = new GroupingSets(
      select.groupingSets,
      this.#keys.map((key) => this.#keyIndex(key)),
    );
  }

  bind(): BoundRows {
    const { environment, select, scope, level: rows, projection, contexts } = this.#request;
    const leaf: Leaf = (expression) => this.#leaf(expression);
    this.#collectAggregates({ ...this.#rows, leaf });
    const keyColumns = this.#keys.map(
      (key, i): PlanColumn => ({ name: nameOf(this.#keyExpressions[i]!, i), type: columnType(key.type) }),
    );
    const inputs = [...this.#keys, ...this.#aggregates.arguments].map((bound, i): Output => ({ name: `#${i}`, bound }));
    const level = contexts.levelOf(
      this.#sets.nodeOf(
        {
          kind: 'aggregate',
          input: this.#aggregates.sortInput(project(rows.node, inputs)),
          groups: this.#keys.length,
          calls: this.#aggregates.calls,
          columns: [...keyColumns, ...this.#aggregates.columns],
        },
        select.location,
      ),
    );
    const context = contexts.withSubselects({ environment, leaf }, scope, level);
    if (select.having) {
      // Queries in HAVING add columns to the level before its rows are filtered.
      const predicate = bindPredicate(select.having, context);
      level.node = filterSource(level.node, predicate);
    }
    return { level, outputs: projection.bindOutputs(context), context };
  }

  /**
   * Binds everything above the groups once, for the sake of its aggregates: all must be known before the node is made, those of
   * HAVING and ORDER BY too. Queries wait for the node.
   */
  #collectAggregates(context: ExpressionContext): void {
    const { select, orderBy, projection } = this.#request;
    const first: ExpressionContext = {
      ...context,
      subselect: (expression, bind) => {
        if ('operand' in expression)
          (expression.operand.kind === 'row' ? expression.operand.items : [expression.operand]).forEach(bind);
        return unknownYet;
      },
      over: (expression, bind) => {
        const { arguments: operands, partition, orderBy: order, filter } = expression;
        [...operands, ...partition, ...order.map((item) => item.expression), ...(filter ? [filter] : [])].forEach(bind);
        return unknownYet;
      },
    };
    const outputs = projection.bindOutputs(first);
    if (select.having) bindPredicate(select.having, first);
    for (const { expression } of orderBy) {
      if (!projection.outputNamed(expression, outputs)) bindExpression(expression, first);
    }
  }

  /** An expression above the groups that is a key or an aggregate; undefined for one that is made of these. */
  #leaf(expression: Expression): Bound | undefined {
    const { environment, select } = this.#request;
    if (expression.kind === 'aggregate') return this.#aggregates.bind(expression);
    if (expression.kind === 'call' && expression.name === 'GROUPING' && environment.wide === true)
      return this.#grouping(expression);
    if (expression.kind === 'literal' || containsAggregate(expression)) return undefined;
    const own = expression.kind === 'scalar-query' ? this.#groupedBy.indexOf(expression) : -1;
    if (own >= 0) return keyColumn(own, expression, this.#keys[own]!);
    if (select.window && expression.kind === 'call' && expression.name === select.window.type.toUpperCase()) {
      this.#checkWindow(expression, select.window);
      return { kind: 'column', index: this.#keys.length - 2, name: 'window_start', type: 'timestamp' };
    }
    if (this.#hasColumnKeysOnly && expression.kind !== 'column' && !isNodeName(expression) && !isEntityCall(expression))
      return undefined;
    const bound = bindExpression(expression, this.#rows);
    const index = this.#keyIndex(bound);
    if (index >= 0) return keyColumn(index, expression, bound);
    if (expression.kind === 'column') {
      const text = `${JSON.stringify(expression.name)} must stand in GROUP BY or inside an aggregate`;
      throw errorAt('REL_INVALID', text, expression.location, 'not-grouped');
    }
    return undefined;
  }

  #keyIndex(bound: Bound): number {
    const { literals, guards } = this.#request.environment;
    return this.#keys.findIndex((key) => sameExpression(key, bound, literals, guards));
  }

  #grouping({ arguments: operands, location }: Call): Bound {
    const keys = operands.map(({ value }): number => {
      const index = this.#keyIndex(bindExpression(value, this.#rows));
      if (index >= 0) return index;
      throw errorAt('REL_INVALID', 'GROUPING takes expressions of GROUP BY', value.location, 'not-grouped');
    });
    return this.#sets.grouping(keys, this.#keys.length + this.#aggregates.calls.length, location);
  }

  /** A column, an alias of the projection where no column has that name, or any expression over columns. */
  #bindKey(expression: Expression): Bound {
    const { environment, scope, select, rows } = this.#request;
    const { projection } = select;
    const isAlias = expression.kind === 'column' && expression.table === null && !scope.has(expression.name);
    const position = positionOf(expression, projection.length, environment);
    if (position !== null && projection.some(({ kind }) => kind === 'star')) {
      throw errorAt('REL_INVALID', 'with SELECT *, GROUP BY takes column names, not positions', expression.location);
    }
    const item =
      position !== null
        ? projection[position]
        : isAlias
          ? projection.find((each) => each.kind === 'expression' && each.alias === expression.name)
          : undefined;
    const target = item?.kind === 'expression' ? item.expression : expression;
    this.#groupedBy.push(target);
    const bound = bindExpression(target, rows);
    if (bound.type === 'vector' || bound.type === 'interval') {
      throw errorAt('REL_TYPE_MISMATCH', `GROUP BY can't group ${bound.type}`, expression.location);
    }
    scope.refuseMasked(bound, 'GROUP BY', expression.location);
    return bound;
  }

  /** The bounds of a time window become two more keys, and two columns of the rows. */
  #bindWindow(
    window: NonNullable<Select['window']>,
    keys: readonly Bound[],
  ): { readonly rows: ExpressionContext; readonly keys: readonly Bound[]; readonly expressions: readonly Expression[] } {
    const { scope, level, outer, rows, contexts } = this.#request;
    const { column, type, location } = window;
    scope.refuseMasked(scope.column(column), type.toUpperCase(), column.location);
    const bound = bindWindow(level.node, keys, window, rows);
    level.node = bound.node;
    const table = { name: null, type: null, columns: bound.bounds, first: bound.node.columns.length - 2 };
    return {
      rows: contexts.contextOf(new Scope([...scope.tables, table], outer), level),
      keys: bound.keys,
      expressions: bound.bounds.map(({ name }) => ({ kind: 'column', table: null, name, location })),
    };
  }

  /** The window's own function stands for its start. */
  #checkWindow(call: Call, { column, intervals }: NonNullable<Select['window']>): void {
    const { environment, scope } = this.#request;
    const { literals, guards } = environment;
    const [operand, ...others] = call.arguments.map(({ value }) => value);
    const isSame =
      operand?.kind === 'column' &&
      sameExpression(scope.column(operand), scope.column(column), literals, guards) &&
      others.length === intervals.length &&
      others.every(
        (each, i) => each.kind === 'interval' && literals[each.interval.slot.slot] === literals[intervals[i]!.slot.slot],
      );
    if (isSame) return;
    throw errorAt('REL_INVALID', `${call.name} must repeat the window of GROUP BY`, call.location, 'not-grouped');
  }
}

/** Stands for a query or a window function until the node of the groups is there. */
const unknownYet: Bound = { kind: 'constant', cell: null, type: 'null' };

function keyColumn(index: number, expression: Expression, bound: Bound): Bound {
  const wire = wireIn(bound);
  const type = columnType(bound.type);
  return { kind: 'column', index, name: nameOf(expression, index), type, ...(wire !== undefined && { wire }) };
}
