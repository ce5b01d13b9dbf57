/**
 * ORDER BY, LIMIT and OFFSET of one SELECT. Rows are sorted below the projection, so that ORDER BY may use columns that are not
 * in the output; above DISTINCT only output columns are left.
 */
import { bindExpression, type ExpressionContext, intervalOrder, isInterval } from '../expressions/bind-expression.ts';
import { type Bound, sameExpression } from '../expressions/bound-expression.ts';
import type { PlanNode, RowCount, SortKey } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, OrderItem, ProjectionItem, Select } from '../syntax/statement.ts';
import type { Environment } from './environment.ts';
import { offsetOption, positionOf } from './ordinal-numbers.ts';
import { type Output, project, throughColumns } from './output-columns.ts';
import type { Scope } from './scope.ts';
import type { Level } from './subselects.ts';

export interface OrderRequest {
  readonly environment: Environment;
  readonly scope: Scope;
  readonly select: Select;
  readonly orderBy: readonly OrderItem[];
  readonly limit: RowCount | null;
  readonly offset: RowCount | null;
  /** Whether all matches are counted: those of the statement itself are. */
  readonly counted: boolean;
}

export class OrderBinder {
  readonly #orderRequest: OrderRequest;

  constructor(request: OrderRequest) {
    this.#orderRequest = request;
  }

  /** Sorts rows that are not grouped: by ORDER BY, else by their score where they have one. */
  sortRows(level: Level, outputs: readonly Output[], context: ExpressionContext, score: (() => Bound) | null): PlanNode {
    const { orderBy, scope, select } = this.#orderRequest;
    if (orderBy.length === 0 && score === null) return level.node;
    return this.#sortedNode(level, outputs, context, (columnOf) => {
      const tieKeys: SortKey[] = [];
      if (orderBy.length === 0) tieKeys.push({ column: columnOf(score!()), descending: true, collate: 'codepoint' });
      // Rows that the keys don't tell apart: `_pk` bytewise, then system_from, the order in which rows arrive. Of a join or
      // a subquery, they stay in the order in which it yields them.
      const [onlyTable, ...otherTables] = scope.tables;
      if (otherTables.length === 0 && onlyTable && onlyTable.type !== null)
        tieKeys.push({ column: columnOf(scope.systemColumn('_pk', select.location)), descending: false, collate: 'codepoint' });
      return tieKeys;
    });
  }

  sortGroups(level: Level, outputs: readonly Output[], context: ExpressionContext): PlanNode {
    return this.#orderRequest.orderBy.length === 0 ? level.node : this.#sortedNode(level, outputs, context, null);
  }

  #sortedNode(
    level: Level,
    outputs: readonly Output[],
    context: ExpressionContext,
    /** Keys behind those of ORDER BY; null for groups, whose columns hold nothing that is masked. */
    moreKeys: ((keyColumnOf: (bound: Bound) => number) => readonly SortKey[]) | null,
  ): PlanNode {
    const { orderBy, limit, offset, counted, scope } = this.#orderRequest;
    const computedKeys: Output[] = [];
    // Queries in ORDER BY add columns: computed sort columns come behind them.
    const orderBounds = orderBy.map((item): Bound => {
      const sortBound = this.outputNamed(item.expression, outputs) ?? bindExpression(item.expression, context);
      const bound = isInterval(sortBound) ? intervalOrder(sortBound) : sortBound;
      checkSortKey(bound, item);
      if (moreKeys) scope.refuseMasked(bound, 'ORDER BY', item.expression.location);
      return bound;
    });
    const { node } = level;
    const keyColumnOf = (bound: Bound): number =>
      bound.kind === 'column' ? bound.index : node.columns.length + computedKeys.push({ name: '#key', bound }) - 1;
    const orderKeys = orderBy.map(
      ({ descending, collate, nullsFirst }, i): SortKey => ({
        column: keyColumnOf(orderBounds[i]!),
        descending,
        collate,
        nullsFirst,
      }),
    );
    if (moreKeys) orderKeys.push(...moreKeys(keyColumnOf));
    const sortInput = computedKeys.length > 0 ? project(node, [...throughColumns(node), ...computedKeys]) : node;
    return {
      kind: 'sort',
      input: sortInput,
      keys: orderKeys,
      limit,
      ...offsetOption(offset),
      counted,
      columns: sortInput.columns,
    };
  }

  /** Sorts distinct rows, by columns of the projection. */
  sortOutputs(node: PlanNode, outputs: readonly Output[], context: ExpressionContext): PlanNode {
    const { orderBy, limit, offset, counted, environment } = this.#orderRequest;
    const { literals, guards } = environment;
    if (orderBy.length === 0) return node;
    const orderKeys = orderBy.map((item): SortKey => {
      const orderBound = this.outputNamed(item.expression, outputs) ?? bindExpression(item.expression, context);
      checkSortKey(orderBound, item);
      const column = outputs.findIndex((output) => sameExpression(output.bound, orderBound, literals, guards));
      if (column < 0)
        throw errorAt(
          'REL_INVALID',
          'with DISTINCT, ORDER BY takes columns of the projection only',
          item.expression.location,
          'no-such-column-here',
        );
      return { column, descending: item.descending, collate: item.collate, nullsFirst: item.nullsFirst };
    });
    return { kind: 'sort', input: node, keys: orderKeys, limit, ...offsetOption(offset), counted, columns: node.columns };
  }

  limitRows(node: PlanNode): PlanNode {
    const { limit, offset, counted } = this.#orderRequest;
    const { columns } = node;
    const limitInput = node.kind === 'function' && limit && 'slot' in limit && !offset ? { ...node, limit } : node;
    if (limitInput.kind === 'function' && limitInput.limit !== null && limitInput.graph?.limitsGroups) return limitInput;
    const limitedRows: PlanNode = limit
      ? { kind: 'limit', input: limitInput, limit, ...offsetOption(offset), counting: null, counted, columns }
      : node;
    return offset ? { kind: 'skip', input: limitedRows, offset, columns } : limitedRows;
  }

  /** The column of the projection that an item of ORDER BY names, by its position or its name. */
  outputNamed(expression: Expression, outputs: readonly Output[]): Bound | undefined {
    const visibleOutputs = outputs.filter(({ name }) => name !== '_score');
    const position = positionOf(expression, visibleOutputs.length, this.#orderRequest.environment);
    return position === null ? this.#aliasedOutput(expression, outputs) : visibleOutputs[position]!.bound;
  }

  #aliasedOutput(expression: Expression, outputs: readonly Output[]): Bound | undefined {
    if (expression.kind !== 'column' || expression.table !== null) return undefined;
    const { projection, rankBy, compute } = this.#orderRequest.select;
    const isNamed = (item: ProjectionItem): boolean => item.kind === 'expression' && projectedName(item) === expression.name;
    const isAliasKnown =
      projection.filter(isNamed).length === 1 ||
      projection.some((item) => item.kind === 'expression' && item.alias === expression.name) ||
      (rankBy.length > 0 && expression.name === '_score') ||
      compute.some(({ label }) => label === expression.name);
    return isAliasKnown ? outputs.find((output) => output.name === expression.name)?.bound : undefined;
  }
}

export function checkSortKey(bound: Bound, item: OrderItem): void {
  const location = item.expression.location;
  if (isInterval(bound))
    throw errorAt('REL_NOT_IMPLEMENTED', 'intervals have no order here: take EXTRACT(EPOCH FROM x)', location);
  if (bound.kind === 'literal') throw errorAt('REL_INVALID', 'ORDER BY takes columns and expressions, not a position', location);
  if (bound.type === 'vector' || bound.type === 'json' || bound.type === 'interval') {
    throw errorAt('REL_TYPE_MISMATCH', `${bound.type} has no order`, location, 'no-such-function');
  }
  if (item.collate === 'unicode' && bound.type !== 'string' && bound.type !== 'null') {
    throw errorAt('REL_TYPE_MISMATCH', `COLLATE UNICODE sorts text, not ${bound.type}`, location);
  }
}

/** The name of a column of the projection: its alias, else that of the column of FROM that it is. */
function projectedName({ alias, expression }: Extract<ProjectionItem, { kind: 'expression' }>): string | null {
  return alias ?? (expression.kind === 'column' ? expression.name : null);
}
