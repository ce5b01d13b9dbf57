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

const columnsMax = 4_096;

export function bindSelect(request: SelectRequest): BoundSelect {
  return new SelectBinder(request).bind();
}

class SelectBinder implements ContextMaker, ProjectionBinder {
  readonly #request: SelectRequest;
  readonly #environment: Environment;
  readonly #select: Select;
  readonly #scope: Scope;
  /** The rows of FROM, what WHERE leaves of them, and the columns that queries in expressions add. */
  readonly #level: Level;
  readonly #rows: ExpressionContext;
  readonly #search: BoundSearch | undefined;
  /** Null while FROM is bound: conditions of ON know no score. */
  readonly #score: SelectScore | null = null;
  readonly #order: OrderBinder;

  constructor(request: SelectRequest) {
    const { environment } = request;
    const written = withoutSeed(request.select);
    this.#request = request;
    this.#environment = environment;
    environment.countSelect(written.location);
    const source = bindSource(written.from, {
      environment,
      names: request.names,
      outer: request.outer,
      after: request.statement?.query.after ?? null,
      bindQuery: request.bindQuery,
      contextOf: (scope, level) => ({ ...this.contextOf(scope, level), over: refuseOver }),
    });
    const scope = new Scope(source.tables, request.outer);
    this.#scope = scope;
    const typeOf = (name: string) => environment.catalog.type(name);
    const select = environment.catalogue ? withWholeRows(written, { scope, typeOf }) : written;
    this.#select = select;
    const { orderBy, limit, offset, statement } = request;
    const rules = rankingRules(select, scope, environment);
    const search = bindSearch({ select, orderBy, scope, source: source.node, scored: rules.length > 0 });
    this.#search = search;
    this.#score = new SelectScore({
      scope,
      select,
      search,
      rules,
      ordersByRules: orderBy.length === 0 && statement?.query.after === null,
      rows: () => this.#rows,
      contextWithout: (tables) => this.contextOf(tables, null),
    });
    this.#order = new OrderBinder({ environment, scope, select, orderBy, limit, offset, counted: statement !== null });
    this.#level = this.levelOf(search?.node ?? source.node);
    this.#rows = this.contextOf(scope, this.#level);
  }

  bind(): BoundSelect {
    const select = this.#select;
    const { orderBy, limit, statement } = this.#request;
    if (select.where) filterLevel(this.#level, bindPredicate(select.where, this.#rows));
    const source = this.#level.node;
    const grouped =
      select.groupBy.length > 0 || select.groupingSets !== undefined || select.window !== null || this.#hasAggregates();
    if (grouped && select.distinctOn)
      throw errorAt('REL_NOT_IMPLEMENTED', 'DISTINCT ON of groups is not implemented', select.location);
    const rowByRow = !grouped && !select.distinct;
    const ranked = select.rankBy.length > 0 || (rowByRow && this.#score!.ordersRows);
    if (!rowByRow && (ranked || select.compute.length > 0)) {
      throw errorAt('REL_INVALID', 'RANK BY and COMPUTE apply to rows: they exclude DISTINCT and aggregates', select.location);
    }
    const ofType = rowByRow && this.#scope.tables.length === 1 && this.#scope.tables[0]!.type !== null;
    if (statement) checkRowsOfType(statement, ofType, rowByRow);
    const facets = statement && statement.query.facets.length > 0 ? this.#facets(source, statement.query) : null;

    const { level, outputs, context } = grouped ? this.#bindGroups() : this.#bindRows();
    if (outputs.length > columnsMax) throw errorAt('REL_PARSE', `a SELECT yields at most ${columnsMax} columns`, select.location);
    if (select.distinct && outputs.some(({ bound }) => bound.type === 'vector')) {
      throw errorAt('REL_TYPE_MISMATCH', "DISTINCT can't compare vectors", select.location);
    }
    const named = uniqueNames(outputs);
    const visible = named.length;
    const paged =
      statement !== null &&
      ofType &&
      orderBy.length === 0 &&
      !ranked &&
      limit !== null &&
      'slot' in limit &&
      this.#request.offset === null;
    const hidden = paged || statement?.withProvenance === true;
    if (hidden) named.push({ name: 'system_from', bound: this.#scope.systemColumn('system_from', select.location) });
    // Groups are made of nothing that is masked.
    const { columns, leaving } = grouped ? { columns: typesOf(named), leaving: named } : this.#leavingColumns(named);
    const root = select.distinct
      ? this.#order.limitRows(this.#order.sortOutputs(distinct(project(level.node, named)), named, context))
      : project(this.#order.limitRows(this.#sort({ level, outputs: named, context }, grouped)), leaving);
    return { node: root, columns: columns.slice(0, visible), visible, systemFrom: hidden ? visible : null, paged, facets };
  }

  /**
   * A masked column that stands by itself in the output appears as its mask shows it. In the outermost SELECT the shown column
   * replaces it; in an inner one it stands behind the rows, for the outer query to pass on.
   */
  #leavingColumns(named: readonly Output[]): { columns: readonly OutputType[]; leaving: readonly Output[] } {
    const behind: Output[] = [];
    const columns = named.map(({ name, bound }): OutputType => {
      const shown = this.#scope.shownAs(bound);
      const shownIndex = shown && named.length + behind.push({ name: shownColumn(name), bound: shown }) - 1;
      return { name, type: bound.type, wire: wireIn(bound), masked: this.#scope.maskedColumn(bound)?.masked, shown: shownIndex };
    });
    if (this.#request.statement === null) return { columns, leaving: [...named, ...behind] };
    return { columns, leaving: named.map((output) => ({ ...output, bound: this.#scope.shownAs(output.bound) ?? output.bound })) };
  }

  levelOf(node: PlanNode): Level {
    return { id: this.#environment.nextLevel(), node, noteMasked: (index, column) => this.#scope.addMasked(index, column) };
  }

  /** Queries that read outer rows are refused where no column can be added to these (ON, VALUES). */
  contextOf(scope: Scope, level: Level | null): ExpressionContext {
    const leaf: Leaf = (expression) =>
      this.#score?.column(expression) ??
      this.#search?.column(expression) ??
      this.#score?.similarity(expression, scope) ??
      bindNodeName(
        expression,
        scope,
        (type) => this.#environment.catalog.type(type)?.primaryKey ?? null,
        () => this.contextOf(scope, level),
      ) ??
      bindEntity(expression, scope, this.#environment) ??
      (expression.kind === 'column' ? scope.column(expression) : undefined);
    return this.withSubselects({ environment: this.#environment, leaf }, scope, level);
  }

  withSubselects(context: Pick<ExpressionContext, 'environment' | 'leaf'>, scope: Scope, level: Level | null): ExpressionContext {
    const names = this.#request.names.map(outsideRecursion);
    const own = {
      knows: (reference: ColumnRef) => scope.knows(reference),
      column: (reference: ColumnRef) => outerColumn(context.leaf(reference), level, reference.location),
    };
    const subselects = new Subselects({
      environment: this.#environment,
      level,
      bindQuery: (query) => this.#request.bindQuery(query, names, [...this.#request.outer, own]),
    });
    const overs = new Map<Expression, Bound>();
    return {
      ...context,
      subselect: (expression, bind) => subselects.bind(expression, bind),
      spread: (expression, bind) => {
        let bound = overs.get(expression);
        if (!bound) overs.set(expression, (bound = bindSpread(expression, bind, level, this.#environment.catalogue!)));
        return bound;
      },
      over: (expression, bind) => {
        if (level === null) return refuseOver(expression);
        let bound = overs.get(expression);
        if (!bound) {
          const refuseMasked = (each: Bound, location: Location): void => {
            if (level === this.#level) this.#scope.refuseMasked(each, 'OVER', location);
          };
          bound = bindOver(expression, { level, environment: this.#environment, bind, checkOrder: checkSortKey, refuseMasked });
          overs.set(expression, bound);
        }
        return bound;
      },
    };
  }

  #bindGroups(): BoundRows {
    const { orderBy, outer } = this.#request;
    return bindGroups({
      environment: this.#environment,
      select: this.#select,
      orderBy,
      outer,
      scope: this.#scope,
      level: this.#level,
      rows: this.#rows,
      projection: this,
      contexts: this,
    });
  }

  #bindRows(): BoundRows {
    const { orderBy } = this.#request;
    const [environment, select, rows] = [this.#environment, this.#select, this.#rows];
    if (select.distinctOn) filterLevel(this.#level, bindDistinctOn(select.distinctOn, { environment, select, orderBy, rows }));
    this.#level.spreads = true;
    const outputs = this.bindOutputs(rows);
    this.#level.spreads = false;
    if (!outputs.some(({ name }) => name === scoreName)) {
      const score = this.#score!.bindOrder();
      if (score) outputs.push({ name: scoreName, bound: score });
    }
    for (const { label, expression } of select.compute) {
      const bound = bindCompute(expression, select, rows);
      this.#scope.refuseMasked(bound, 'COMPUTE', expression.location);
      outputs.push({ name: label, bound });
    }
    return { level: this.#level, outputs, context: rows };
  }

  #sort({ level, outputs, context }: BoundRows, grouped: boolean): PlanNode {
    if (grouped) return this.#order.sortGroups(level, outputs, context);
    const score = (): Bound =>
      this.#select.rankBy.length > 0 ? this.#score!.bindOrder()! : outputs.find(({ name }) => name === scoreName)!.bound;
    const isRanked = this.#request.orderBy.length === 0 && this.#score!.ordersRows;
    return this.#order.sortRows(level, outputs, context, isRanked ? score : null);
  }

  outputNamed(expression: Expression, outputs: readonly Output[]): Bound | undefined {
    return this.#order.outputNamed(expression, outputs);
  }

  bindOutputs(context: ExpressionContext): Output[] {
    const outputs: Output[] = [];
    this.#select.projection.forEach((item, i) => {
      if (outputs.length <= columnsMax) outputs.push(...this.#output(item, i, context));
    });
    return outputs;
  }

  #output(item: ProjectionItem, position: number, context: ExpressionContext): Output[] {
    if (item.kind === 'expression') {
      const bound = bindExpression(item.expression, context);
      if (bound.type === 'interval') throw errorAt('REL_TYPE_MISMATCH', 'an INTERVAL is no column', item.location);
      if (context === this.#rows) this.#checkDistinct(bound, item);
      const { catalogue } = this.#environment;
      const label = catalogue && { label: item.alias ?? labelOf(item.expression, catalogue) };
      return [{ name: item.alias ?? nameOf(item.expression, position), bound, ...label }];
    }
    const columns = this.#scope
      .star(item.table, item.location)
      .filter(({ name }) => item.without?.includes(name) !== true)
      .map((each) => ({ ...each, label: each.name }));
    if (context !== this.#rows)
      throw errorAt('REL_INVALID', "* can't stand beside GROUP BY or an aggregate", item.location, 'not-grouped');
    for (const { bound } of columns) this.#checkDistinct(bound, item);
    return columns;
  }

  #checkDistinct(bound: Bound, { location }: ProjectionItem): void {
    if (this.#select.distinct) this.#scope.refuseMasked(bound, 'DISTINCT', location);
  }

  #facets(source: PlanNode, query: Query): FacetPlan {
    const outputs = query.facets.map((reference): Output => {
      const bound = this.#scope.column(reference);
      if (bound.type === 'vector' || bound.type === 'json') {
        throw errorAt('REL_TYPE_MISMATCH', `FACETS can't count ${bound.type}`, reference.location);
      }
      this.#scope.refuseMasked(bound, 'FACETS', reference.location);
      return { name: reference.name, bound };
    });
    return { root: project(source, uniqueNames(outputs)) };
  }

  #hasAggregates(): boolean {
    const { projection, having } = this.#select;
    return (
      having !== null ||
      projection.some((item) => item.kind === 'expression' && containsAggregate(item.expression)) ||
      this.#request.orderBy.some((item) => containsAggregate(item.expression))
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
  ofType: boolean,
  rowByRow: boolean,
): void {
  const { query, withProvenance } = statement;
  if (query.after && (!ofType || query.orderBy.length > 0)) {
    const why = rowByRow && query.orderBy.length === 0 ? 'joins and subqueries' : 'ORDER BY, DISTINCT and aggregates';
    throw errorAt('REL_INVALID', `AFTER pages through rows of a type: it excludes ${why}`, query.after.location);
  }
  if (withProvenance && !ofType) {
    const why = rowByRow ? 'joins and subqueries' : 'DISTINCT and aggregates';
    throw errorAt('REL_INVALID', `WITH PROVENANCE needs rows of a type: it excludes ${why}`, query.location);
  }
}

function typesOf(outputs: readonly Output[]): OutputType[] {
  return outputs.map(({ name, bound }) => ({ name, type: bound.type, wire: wireIn(bound) }));
}

function distinct(input: PlanNode): PlanNode {
  return { kind: 'distinct', input, columns: input.columns };
}
