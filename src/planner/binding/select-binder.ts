/**
 * One SELECT to a plan: FROM and WHERE, then groups or rows, then order and limit of the query that it is the body of.
 */
import { bindExpression, bindPredicate, type ExpressionContext, type Leaf } from '../expressions/bind-expression.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import type { FacetPlan, PlanNode, RowCount } from '../logical-plan.ts';
import { shownColumn } from '../../projections/access-paths.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { ColumnRef, Expression, Location, OrderItem, ProjectionItem, Query, Select } from '../syntax/statement.ts';
import { containsAggregate } from './aggregate-calls.ts';
import { bindDistinctOn } from './distinct-on.ts';
import { bindEntity } from './entity-cells.ts';
import { type BoundQuery, type CommonName, type Environment, outsideRecursion } from './environment.ts';
import { bindNodeName } from './graph-rows.ts';
import { bindGroups, type BoundRows, type ContextMaker, type ProjectionBinder } from './group-binder.ts';
import { type BoundSearch, bindSearch, scoreName } from './match-columns.ts';
import { labelOf, nameOf, type Output, type OutputType, project, uniqueNames, wireIn } from './output-columns.ts';
import { bindCompute } from './ranking.ts';
import { type OuterQuery, Scope } from './scope.ts';
import { rankingRules, SelectScore } from './select-score.ts';
import { bindSpread } from './set-returning-calls.ts';
import { checkSortKey, OrderBinder } from './sort-order.ts';
import { bindSource } from './source-binder.ts';
import { type Level, outerColumn, Subselects } from './subselects.ts';
import { filterSource, withoutSeed } from './table-functions.ts';
import { withWholeRows } from './whole-rows.ts';
import { bindOver } from './window-functions.ts';

export interface SelectRequest {
  readonly environment: Environment;
  readonly names: readonly CommonName[];
  readonly outer: readonly OuterQuery[];
  readonly select: Select;
  readonly orderBy: readonly OrderItem[];
  readonly limit: RowCount | null;
  readonly offset: RowCount | null;
  /** The statement itself: pages, provenance and facets are its own. */
  readonly statement: { readonly query: Query; readonly withProvenance: boolean } | null;
  readonly bindQuery: (query: Query, names: readonly CommonName[], outer: readonly OuterQuery[]) => BoundQuery;
}

export interface BoundSelect extends BoundQuery {
  /** Columns that were asked for; behind them come those for cursor and provenance. */
  readonly visible: number;
  readonly systemFrom: number | null;
  readonly paged: boolean;
  readonly facets: FacetPlan | null;
}

const selectColumnsMax = 4_096;

export function bindSelect(request: SelectRequest): BoundSelect {
  return new SelectBinder(request).bind();
}

class SelectBinder implements ContextMaker, ProjectionBinder {
  readonly #selectRequest: SelectRequest;
  readonly #selectEnvironment: Environment;
  readonly #wholeRowSelect: Select;
  readonly #fromScope: Scope;
  /** The rows of FROM, what WHERE leaves of them, and the columns that queries in expressions add. */
  readonly #fromLevel: Level;
  readonly #rowContext: ExpressionContext;
  readonly #boundSearch: BoundSearch | undefined;
  /** Null while FROM is bound: conditions of ON know no score. */
  readonly #selectScore: SelectScore | null = null;
  readonly #orderBinder: OrderBinder;

  constructor(request: SelectRequest) {
    const { environment } = request;
    const unseededSelect = withoutSeed(request.select);
    this.#selectRequest = request;
    this.#selectEnvironment = environment;
    environment.countSelect(unseededSelect.location);
    const fromSource = bindSource(unseededSelect.from, {
      environment,
      names: request.names,
      outer: request.outer,
      after: request.statement?.query.after ?? null,
      bindQuery: request.bindQuery,
      contextOf: (scope, level) => ({ ...this.contextOf(scope, level), over: refuseOver }),
    });
    const scope = new Scope(fromSource.tables, request.outer);
    this.#fromScope = scope;
    const typeDefinitionOf = (name: string) => environment.catalog.type(name);
    const select = environment.catalogue ? withWholeRows(unseededSelect, { scope, typeOf: typeDefinitionOf }) : unseededSelect;
    this.#wholeRowSelect = select;
    const { orderBy, limit, offset, statement } = request;
    const scoreRules = rankingRules(select, scope, environment);
    const search = bindSearch({ select, orderBy, scope, source: fromSource.node, scored: scoreRules.length > 0 });
    this.#boundSearch = search;
    this.#selectScore = new SelectScore({
      scope,
      select,
      search,
      rules: scoreRules,
      ordersByRules: orderBy.length === 0 && statement?.query.after === null,
      rows: () => this.#rowContext,
      contextWithout: (tables) => this.contextOf(tables, null),
    });
    this.#orderBinder = new OrderBinder({ environment, scope, select, orderBy, limit, offset, counted: statement !== null });
    this.#fromLevel = this.levelOf(search?.node ?? fromSource.node);
    this.#rowContext = this.contextOf(scope, this.#fromLevel);
  }

  bind(): BoundSelect {
    const select = this.#wholeRowSelect;
    const { orderBy, limit, statement } = this.#selectRequest;
    if (select.where) filterLevel(this.#fromLevel, bindPredicate(select.where, this.#rowContext));
    const filteredSource = this.#fromLevel.node;
    const isGrouped =
      select.groupBy.length > 0 || select.groupingSets !== undefined || select.window !== null || this.#hasAggregates();
    if (isGrouped && select.distinctOn)
      throw errorAt('REL_NOT_IMPLEMENTED', 'DISTINCT ON of groups is not implemented', select.location);
    const rowByRow = !isGrouped && !select.distinct;
    const isRanked = select.rankBy.length > 0 || (rowByRow && this.#selectScore!.ordersRows);
    if (!rowByRow && (isRanked || select.compute.length > 0)) {
      throw errorAt('REL_INVALID', 'RANK BY and COMPUTE apply to rows: they exclude DISTINCT and aggregates', select.location);
    }
    const isOfOneType = rowByRow && this.#fromScope.tables.length === 1 && this.#fromScope.tables[0]!.type !== null;
    if (statement) checkRowsOfType(statement, isOfOneType, rowByRow);
    const facets = statement && statement.query.facets.length > 0 ? this.#facetPlan(filteredSource, statement.query) : null;

    const { level, outputs, context } = isGrouped ? this.#bindGroups() : this.#bindUngrouped();
    if (outputs.length > selectColumnsMax)
      throw errorAt('REL_PARSE', `a SELECT yields at most ${selectColumnsMax} columns`, select.location);
    if (select.distinct && outputs.some(({ bound }) => bound.type === 'vector')) {
      throw errorAt('REL_TYPE_MISMATCH', "DISTINCT can't compare vectors", select.location);
    }
    const namedOutputs = uniqueNames(outputs);
    const visibleWidth = namedOutputs.length;
    const isPaged =
      statement !== null &&
      isOfOneType &&
      orderBy.length === 0 &&
      !isRanked &&
      limit !== null &&
      'slot' in limit &&
      this.#selectRequest.offset === null;
    const hasHiddenTime = isPaged || statement?.withProvenance === true;
    if (hasHiddenTime)
      namedOutputs.push({ name: 'system_from', bound: this.#fromScope.systemColumn('system_from', select.location) });
    // Groups are made of nothing that is masked.
    const { columns, leaving } = isGrouped
      ? { columns: outputTypesOf(namedOutputs), leaving: namedOutputs }
      : this.#leavingColumns(namedOutputs);
    const selectRoot = select.distinct
      ? this.#orderBinder.limitRows(
          this.#orderBinder.sortOutputs(distinctNode(project(level.node, namedOutputs)), namedOutputs, context),
        )
      : project(this.#orderBinder.limitRows(this.#sortedRows({ level, outputs: namedOutputs, context }, isGrouped)), leaving);
    return {
      node: selectRoot,
      columns: columns.slice(0, visibleWidth),
      visible: visibleWidth,
      systemFrom: hasHiddenTime ? visibleWidth : null,
      paged: isPaged,
      facets,
    };
  }

  /**
   * A masked column that stands by itself in the output appears as its mask shows it. In the outermost SELECT the shown column
   * replaces it; in an inner one it stands behind the rows, for the outer query to pass on.
   */
  #leavingColumns(named: readonly Output[]): { columns: readonly OutputType[]; leaving: readonly Output[] } {
    const shownBehind: Output[] = [];
    const columns = named.map(({ name, bound }): OutputType => {
      const shownBound = this.#fromScope.shownAs(bound);
      const shownIndex = shownBound && named.length + shownBehind.push({ name: shownColumn(name), bound: shownBound }) - 1;
      return {
        name,
        type: bound.type,
        wire: wireIn(bound),
        masked: this.#fromScope.maskedColumn(bound)?.masked,
        shown: shownIndex,
      };
    });
    if (this.#selectRequest.statement === null) return { columns, leaving: [...named, ...shownBehind] };
    return {
      columns,
      leaving: named.map((output) => ({ ...output, bound: this.#fromScope.shownAs(output.bound) ?? output.bound })),
    };
  }

  levelOf(node: PlanNode): Level {
    return {
      id: this.#selectEnvironment.nextLevel(),
      node,
      noteMasked: (index, column) => this.#fromScope.addMasked(index, column),
    };
  }

  /** Queries that read outer rows are refused where no column can be added to these (ON, VALUES). */
  contextOf(scope: Scope, level: Level | null): ExpressionContext {
    const leaf: Leaf = (expression) =>
      this.#selectScore?.column(expression) ??
      this.#boundSearch?.column(expression) ??
      this.#selectScore?.similarity(expression, scope) ??
      bindNodeName(
        expression,
        scope,
        (type) => this.#selectEnvironment.catalog.type(type)?.primaryKey ?? null,
        () => this.contextOf(scope, level),
      ) ??
      bindEntity(expression, scope, this.#selectEnvironment) ??
      (expression.kind === 'column' ? scope.column(expression) : undefined);
    return this.withSubselects({ environment: this.#selectEnvironment, leaf }, scope, level);
  }

  withSubselects(context: Pick<ExpressionContext, 'environment' | 'leaf'>, scope: Scope, level: Level | null): ExpressionContext {
    const outsideNames = this.#selectRequest.names.map(outsideRecursion);
    const ownQuery = {
      knows: (reference: ColumnRef) => scope.knows(reference),
      column: (reference: ColumnRef) => outerColumn(context.leaf(reference), level, reference.location),
    };
    const subselects = new Subselects({
      environment: this.#selectEnvironment,
      level,
      bindQuery: (query) => this.#selectRequest.bindQuery(query, outsideNames, [...this.#selectRequest.outer, ownQuery]),
    });
    const boundOvers = new Map<Expression, Bound>();
    return {
      ...context,
      subselect: (expression, bind) => subselects.bind(expression, bind),
      spread: (expression, bind) => {
        let bound = boundOvers.get(expression);
        if (!bound) boundOvers.set(expression, (bound = bindSpread(expression, bind, level, this.#selectEnvironment.catalogue!)));
        return bound;
      },
      over: (expression, bind) => {
        if (level === null) return refuseOver(expression);
        let bound = boundOvers.get(expression);
        if (!bound) {
          const refuseMasked = (each: Bound, location: Location): void => {
            if (level === this.#fromLevel) this.#fromScope.refuseMasked(each, 'OVER', location);
          };
          bound = bindOver(expression, {
            level,
            environment: this.#selectEnvironment,
            bind,
            checkOrder: checkSortKey,
            refuseMasked,
          });
          boundOvers.set(expression, bound);
        }
        return bound;
      },
    };
  }

  #bindGroups(): BoundRows {
    const { orderBy, outer } = this.#selectRequest;
    return bindGroups({
      environment: this.#selectEnvironment,
      select: this.#wholeRowSelect,
      orderBy,
      outer,
      scope: this.#fromScope,
      level: this.#fromLevel,
      rows: this.#rowContext,
      projection: this,
      contexts: this,
    });
  }

  #bindUngrouped(): BoundRows {
    const { orderBy } = this.#selectRequest;
    const [environment, select, rows] = [this.#selectEnvironment, this.#wholeRowSelect, this.#rowContext];
    if (select.distinctOn)
      filterLevel(this.#fromLevel, bindDistinctOn(select.distinctOn, { environment, select, orderBy, rows }));
    this.#fromLevel.spreads = true;
    const outputs = this.bindOutputs(rows);
    this.#fromLevel.spreads = false;
    if (!outputs.some(({ name }) => name === scoreName)) {
      const orderScore = this.#selectScore!.bindOrder();
      if (orderScore) outputs.push({ name: scoreName, bound: orderScore });
    }
    for (const { label, expression } of select.compute) {
      const computedBound = bindCompute(expression, select, rows);
      this.#fromScope.refuseMasked(computedBound, 'COMPUTE', expression.location);
      outputs.push({ name: label, bound: computedBound });
    }
    return { level: this.#fromLevel, outputs, context: rows };
  }

  #sortedRows({ level, outputs, context }: BoundRows, isGrouped: boolean): PlanNode {
    if (isGrouped) return this.#orderBinder.sortGroups(level, outputs, context);
    const scoreBound = (): Bound =>
      this.#wholeRowSelect.rankBy.length > 0
        ? this.#selectScore!.bindOrder()!
        : outputs.find(({ name }) => name === scoreName)!.bound;
    const isRanked = this.#selectRequest.orderBy.length === 0 && this.#selectScore!.ordersRows;
    return this.#orderBinder.sortRows(level, outputs, context, isRanked ? scoreBound : null);
  }

  outputNamed(expression: Expression, outputs: readonly Output[]): Bound | undefined {
    return this.#orderBinder.outputNamed(expression, outputs);
  }

  bindOutputs(context: ExpressionContext): Output[] {
    const outputs: Output[] = [];
    this.#wholeRowSelect.projection.forEach((item, i) => {
      if (outputs.length <= selectColumnsMax) outputs.push(...this.#itemOutputs(item, i, context));
    });
    return outputs;
  }

  #itemOutputs(item: ProjectionItem, position: number, context: ExpressionContext): Output[] {
    if (item.kind === 'expression') {
      const bound = bindExpression(item.expression, context);
      if (bound.type === 'interval') throw errorAt('REL_TYPE_MISMATCH', 'an INTERVAL is no column', item.location);
      if (context === this.#rowContext) this.#checkDistinctMask(bound, item);
      const { catalogue } = this.#selectEnvironment;
      const outputLabel = catalogue && { label: item.alias ?? labelOf(item.expression, catalogue) };
      return [{ name: item.alias ?? nameOf(item.expression, position), bound, ...outputLabel }];
    }
    const starOutputs = this.#fromScope
      .star(item.table, item.location)
      .filter(({ name }) => item.without?.includes(name) !== true)
      .map((each) => ({ ...each, label: each.name }));
    if (context !== this.#rowContext)
      throw errorAt('REL_INVALID', "* can't stand beside GROUP BY or an aggregate", item.location, 'not-grouped');
    for (const { bound } of starOutputs) this.#checkDistinctMask(bound, item);
    return starOutputs;
  }

  #checkDistinctMask(bound: Bound, { location }: ProjectionItem): void {
    if (this.#wholeRowSelect.distinct) this.#fromScope.refuseMasked(bound, 'DISTINCT', location);
  }

  #facetPlan(source: PlanNode, query: Query): FacetPlan {
    const facetOutputs = query.facets.map((reference): Output => {
      const facetBound = this.#fromScope.column(reference);
      if (facetBound.type === 'vector' || facetBound.type === 'json') {
        throw errorAt('REL_TYPE_MISMATCH', `FACETS can't count ${facetBound.type}`, reference.location);
      }
      this.#fromScope.refuseMasked(facetBound, 'FACETS', reference.location);
      return { name: reference.name, bound: facetBound };
    });
    return { root: project(source, uniqueNames(facetOutputs)) };
  }

  #hasAggregates(): boolean {
    const { projection, having } = this.#wholeRowSelect;
    return (
      having !== null ||
      projection.some((item) => item.kind === 'expression' && containsAggregate(item.expression)) ||
      this.#selectRequest.orderBy.some((item) => containsAggregate(item.expression))
    );
  }
}

function refuseOver({ location }: { readonly location: Location }): never {
  throw errorAt('REL_INVALID', 'a window function stands in the projection or in ORDER BY', location, 'window-misplaced');
}

function filterLevel(level: Level, predicate: Bound): void {
  level.node = filterSource(level.node, predicate);
}

/** Pages and lineage are of stored rows: one type, row by row. */
function checkRowsOfType(
  statement: { readonly query: Query; readonly withProvenance: boolean },
  isOfOneType: boolean,
  isRowByRow: boolean,
): void {
  const { query, withProvenance } = statement;
  if (query.after && (!isOfOneType || query.orderBy.length > 0)) {
    const excludedText = isRowByRow && query.orderBy.length === 0 ? 'joins and subqueries' : 'ORDER BY, DISTINCT and aggregates';
    throw errorAt('REL_INVALID', `AFTER pages through rows of a type: it excludes ${excludedText}`, query.after.location);
  }
  if (withProvenance && !isOfOneType) {
    const excludedText = isRowByRow ? 'joins and subqueries' : 'DISTINCT and aggregates';
    throw errorAt('REL_INVALID', `WITH PROVENANCE needs rows of a type: it excludes ${excludedText}`, query.location);
  }
}

function outputTypesOf(outputs: readonly Output[]): OutputType[] {
  return outputs.map(({ name, bound }) => ({ name, type: bound.type, wire: wireIn(bound) }));
}

function distinctNode(input: PlanNode): PlanNode {
  return { kind: 'distinct', input, columns: input.columns };
}
