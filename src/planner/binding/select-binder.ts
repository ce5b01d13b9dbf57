/**
 * One SELECT to a plan: FROM and WHERE, then groups or rows, then order and limit of the query that it is the body of.
 */
import type { ColumnType } from '../../log/values/value.ts';
import { vectorAsText } from '../expressions/bind-call.ts';
import {
  bindExpression,
  bindPredicate,
  type ExpressionContext,
  intervalOrder,
  isInterval,
  type Leaf,
} from '../expressions/bind-expression.ts';
import { type Bound, sameExpression, some } from '../expressions/bound-expression.ts';
import { wireTypeOf } from '../expressions/postgres-types.ts';
import { type AggregateFunction, aggregateFunctions, type AggregateName } from '../aggregate-functions.ts';
import type { AggregateCall, FacetPlan, PlanColumn, PlanNode, RowCount, SortKey } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import { shownColumn, splitTypeName } from '../../projections/access-paths.ts';
import type { ColumnRef, Expression, OrderItem, Location, ProjectionItem, Query, Select } from '../syntax/statement.ts';
import { aggregateType, containsAggregate, checkSecond } from './aggregate-calls.ts';
import { type BoundQuery, type BoundSource, type CommonName, type Environment, outsideRecursion } from './environment.ts';
import {
  columnType,
  labelOf,
  nameOf,
  type Output,
  type OutputType,
  project,
  throughColumns,
  uniqueNames,
} from './output-columns.ts';
import { bindSimilarity, similarIn } from '../expressions/bind-similar.ts';
import { type BoundSearch, bindSearch, scoreName } from './match-columns.ts';
import { bindCompute, bindDefaultScore, bindScore, type RankingRule } from './ranking.ts';
import { positionOf, offsetOption } from './ordinal-numbers.ts';
import { bindEntity, isEntityCall } from './entity-cells.ts';
import { GroupingSets } from './grouping-sets.ts';
import { bindNodeName, isNodeName } from './graph-rows.ts';
import { bindOver } from './window-functions.ts';
import { type OuterQuery, Scope } from './scope.ts';
import { bindSource } from './source-binder.ts';
import { bindSpread } from './set-returning-calls.ts';
import { type Level, outerColumn, Subselects } from './subselects.ts';
import { filterSource, withoutSeed } from './table-functions.ts';
import { withWholeRows } from './whole-rows.ts';
import { bindWindow } from './time-windows.ts';

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

class SelectBinder {
  readonly #request: SelectRequest;
  readonly #environment: Environment;
  readonly #select: Select;
  readonly #source: BoundSource;
  readonly #scope: Scope;
  /** The rows of FROM, what WHERE leaves of them, and the columns that queries in expressions add. */
  readonly #level: Level;
  readonly #rows: ExpressionContext;
  readonly #search: BoundSearch | undefined;
  /** Rules that `_score` adds to the match score, where the statement has no RANK BY. */
  #rules: readonly RankingRule[] = [];
  #isRanking = false;
  /** The order in which aggregates take their rows; null without one. */
  #aggregateOrder: readonly SortKey[] | null = null;
  /** The expressions of GROUP BY, in their order. */
  readonly #groupedBy: Expression[] = [];

  constructor(request: SelectRequest) {
    const { environment } = request;
    const written = withoutSeed(request.select);
    this.#request = request;
    this.#environment = environment;
    environment.countSelect(written.location);
    this.#source = bindSource(written.from, {
      environment,
      names: request.names,
      outer: request.outer,
      after: request.statement?.query.after ?? null,
      bindQuery: request.bindQuery,
      contextOf: (scope, level) => ({ ...this.#contextOf(scope, level), over: refuseOver }),
    });
    this.#scope = new Scope(this.#source.tables, request.outer);
    const typeOf = (name: string) => environment.catalog.type(name);
    const select = environment.catalogue ? withWholeRows(written, { scope: this.#scope, typeOf }) : written;
    this.#select = select;
    this.#rules = this.#rulesOf(select);
    const scored = this.#rules.length > 0;
    this.#search = bindSearch({ select, orderBy: request.orderBy, scope: this.#scope, source: this.#source.node, scored });
    this.#level = this.#levelOf(this.#search?.node ?? this.#source.node);
    this.#rows = this.#contextOf(this.#scope, this.#level);
  }

  bind(): BoundSelect {
    const select = this.#select;
    const { orderBy, limit, statement } = this.#request;
    if (select.where) filterLevel(this.#level, bindPredicate(select.where, this.#rows));
    const source = this.#level.node;
    const grouped =
      select.groupBy.length > 0 || select.groupingSets !== undefined || select.window !== null || this.#aggregates();
    if (grouped && select.distinctOn)
      throw errorAt('REL_NOT_IMPLEMENTED', 'DISTINCT ON of groups is not implemented', select.location);
    const rowByRow = !grouped && !select.distinct;
    const ranked = select.rankBy.length > 0 || (rowByRow && this.#ranksByRules());
    if (!rowByRow && (ranked || select.compute.length > 0)) {
      throw errorAt('REL_INVALID', 'RANK BY and COMPUTE apply to rows: they exclude DISTINCT and aggregates', select.location);
    }
    const ofType = rowByRow && this.#scope.tables.length === 1 && this.#scope.tables[0]!.type !== null;
    if (statement) checkRowsOfType(statement, ofType, rowByRow);
    const facets = statement && statement.query.facets.length > 0 ? this.#facets(source, statement.query) : null;

    const { level, outputs, context } = grouped ? this.#bindGroups() : this.#plain();
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
    if (hidden) named.push({ name: 'system_from', bound: this.#systemColumn('system_from') });
    // Groups are made of nothing that is masked.
    const { columns, leaving } = grouped ? { columns: typesOf(named), leaving: named } : this.#leaving(named);
    const root = select.distinct
      ? this.#limit(this.#sortedOutputs(distinct(project(level.node, named)), named, context))
      : project(this.#limit(this.#sortedRows(level, named, context, grouped)), leaving);
    return { node: root, columns: columns.slice(0, visible), visible, systemFrom: hidden ? visible : null, paged, facets };
  }

  /**
   * A masked column that stands by itself in the output appears as its mask shows it. In the outermost SELECT the shown column
   * replaces it; in an inner one it stands behind the rows, for the outer query to pass on.
   */
  #leaving(named: readonly Output[]): { columns: readonly OutputType[]; leaving: readonly Output[] } {
    const behind: Output[] = [];
    const columns = named.map(({ name, bound }): OutputType => {
      const shown = this.#scope.shownAs(bound);
      const place = shown && named.length + behind.push({ name: shownColumn(name), bound: shown }) - 1;
      return { name, type: bound.type, wire: wireIn(bound), masked: this.#scope.maskedColumn(bound)?.masked, shown: place };
    });
    if (this.#request.statement === null) return { columns, leaving: [...named, ...behind] };
    return { columns, leaving: named.map((output) => ({ ...output, bound: this.#scope.shownAs(output.bound) ?? output.bound })) };
  }

  #levelOf(node: PlanNode): Level {
    return { id: this.#environment.nextLevel(), node, noteMasked: (index, column) => this.#scope.addMasked(index, column) };
  }

  /** Queries that read outer rows are refused where no column can be added to these (ON, VALUES). */
  #contextOf(scope: Scope, level: Level | null): ExpressionContext {
    const leaf: Leaf = (expression) =>
      this.#ruledScore(expression) ??
      this.#search?.column(expression) ??
      this.#similarity(expression, scope) ??
      bindNodeName(
        expression,
        scope,
        (type) => this.#environment.catalog.type(type)?.primaryKey ?? null,
        () => this.#contextOf(scope, level),
      ) ??
      bindEntity(expression, scope, this.#environment) ??
      (expression.kind === 'column' ? scope.column(expression) : undefined);
    return this.#withSubselects({ environment: this.#environment, leaf }, scope, level);
  }

  #withSubselects(
    context: Pick<ExpressionContext, 'environment' | 'leaf'>,
    scope: Scope,
    level: Level | null,
  ): ExpressionContext {
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

  /** The ranking rules of the type, without those on masked columns. */
  #rulesOf({ rankBy }: Select): readonly RankingRule[] {
    const [table] = this.#scope.tables;
    const type = table?.type ?? null;
    if (type === null || rankBy.length > 0) return [];
    const masked = this.#environment.masksOf(type);
    return (this.#environment.request.rankings?.(splitTypeName(type)?.type ?? type) ?? []).filter(
      ({ field }) => !masked.has(field),
    );
  }

  /** The order of a statement that searches and says no other. */
  #ranksByRules(): boolean {
    const { orderBy, statement } = this.#request;
    return this.#rules.length > 0 && this.#search !== undefined && orderBy.length === 0 && statement?.query.after === null;
  }

  #ruledScore(expression: Expression): Bound | undefined {
    const isScore = expression.kind === 'column' && expression.table === null && expression.name === scoreName;
    if (!isScore || this.#scope.has(scoreName)) return undefined;
    if (this.#select.rankBy.length > 0) return this.#isRanking ? undefined : this.#rank();
    return this.#rules.length > 0 && this.#search !== undefined
      ? bindDefaultScore(this.#rules, this.#select, this.#rows)
      : undefined;
  }

  /** The score of RANK BY. `_score` can't be used within RANK BY itself. */
  #rank(): Bound {
    this.#isRanking = true;
    const score = bindScore(this.#select, this.#rows);
    this.#isRanking = false;
    this.#scope.refuseMasked(score, 'RANK BY', this.#select.rankBy[0]!.location);
    return score;
  }

  /** `_score` beside a SIMILAR that the condition requires. */
  #similarity(expression: Expression, scope: Scope): Bound | undefined {
    const isScore = expression.kind === 'column' && expression.table === null && expression.name === scoreName;
    const call = isScore && !scope.has(scoreName) ? similarIn(this.#select.where) : null;
    return call ? bindSimilarity(call, (operand) => bindExpression(operand, this.#contextOf(scope, null))) : undefined;
  }

  #plain(): { level: Level; outputs: Output[]; context: ExpressionContext } {
    if (this.#select.distinctOn) this.#firstRows(this.#select.distinctOn);
    this.#level.spreads = true;
    const outputs = this.#outputs(this.#rows);
    this.#level.spreads = false;
    const { rankBy, compute } = this.#select;
    if (rankBy.length > 0 && !outputs.some(({ name }) => name === scoreName)) {
      outputs.push({ name: scoreName, bound: this.#rank() });
    } else if (this.#ranksByRules() && !outputs.some(({ name }) => name === scoreName)) {
      outputs.push({ name: scoreName, bound: bindDefaultScore(this.#rules, this.#select, this.#rows) });
    }
    for (const { label, expression } of compute) {
      const bound = bindCompute(expression, this.#select, this.#rows);
      this.#scope.refuseMasked(bound, 'COMPUTE', expression.location);
      outputs.push({ name: label, bound });
    }
    return { level: this.#level, outputs, context: this.#rows };
  }

  /** Keeps the first one of the rows that are alike in these, in the order of the query. */
  #firstRows(on: readonly Expression[]): void {
    const { location } = this.#select;
    const partition = on.map((each) => this.#itemOf(each, false));
    const orderBy = this.#request.orderBy.map((item) => ({ ...item, expression: this.#itemOf(item.expression, true) }));
    this.#checkFirst(partition, orderBy);
    const numbered = { function: 'row_number', arguments: [], partition, orderBy, frame: null } as const;
    const left = bindExpression({ kind: 'over', ...numbered, filter: null, location }, this.#rows);
    const right: Bound = { kind: 'constant', cell: 1n, type: 'integer' };
    filterLevel(this.#level, { kind: 'compare', op: '=', left, right, type: 'boolean' });
  }

  /** The projection item that an expression names by position or by name; otherwise the expression itself. */
  #itemOf(expression: Expression, byName: boolean): Expression {
    const { projection } = this.#select;
    const position = positionOf(expression, projection.length, this.#environment);
    if (position !== null && projection.some(({ kind }) => kind === 'star'))
      throw errorAt('REL_NOT_IMPLEMENTED', 'DISTINCT ON with * and column positions is not implemented', expression.location);
    const isNamed = (item: ProjectionItem): boolean =>
      byName &&
      item.kind === 'expression' &&
      expression.kind === 'column' &&
      expression.table === null &&
      item.alias === expression.name;
    const item = position === null ? projection.find(isNamed) : projection[position];
    return item?.kind === 'expression' ? item.expression : expression;
  }

  /** Checks that ORDER BY begins with the expressions of DISTINCT ON. */
  #checkFirst(partition: readonly Expression[], orderBy: readonly OrderItem[]): void {
    const { literals, guards } = this.#environment;
    const left = partition.map((each) => bindExpression(each, this.#rows));
    for (const { expression } of orderBy) {
      if (left.length === 0) return;
      const bound = bindExpression(expression, this.#rows);
      const found = left.findIndex((each) => sameExpression(each, bound, literals, guards));
      if (found < 0)
        throw errorAt(
          'REL_INVALID',
          'ORDER BY must begin with the expressions of DISTINCT ON',
          expression.location,
          'no-such-column-here',
        );
      left.splice(found, 1);
    }
  }

  /** Keys and arguments are computed below the aggregate; expressions above it see keys and results only. */
  #bindGroups(): { level: Level; outputs: Output[]; context: ExpressionContext } {
    const select = this.#select;
    const { environment } = this.#request;
    const expressions: Expression[] = [...select.groupBy];
    let rows = this.#rows;
    let keys: Bound[] = expressions.map((expression) => this.#groupKey(expression, rows));
    if (select.window) {
      const { column, type } = select.window;
      this.#scope.refuseMasked(this.#scope.column(column), type.toUpperCase(), column.location);
      const window = bindWindow(this.#level.node, keys, select.window, this.#rows);
      this.#level.node = window.node;
      const table = { name: null, type: null, columns: window.bounds, first: window.node.columns.length - 2 };
      const scope = new Scope([...this.#scope.tables, table], this.#request.outer);
      rows = this.#contextOf(scope, this.#level);
      keys = [...keys, ...window.keys];
      for (const { name } of window.bounds)
        expressions.push({ kind: 'column', table: null, name, location: select.window.location });
    }
    const arguments_: Bound[] = [];
    const calls: { call: AggregateCall; type: ColumnType }[] = [];
    const columnKeysOnly = keys.every(({ kind }) => kind === 'column');
    const same = (a: Bound, b: Bound): boolean => sameExpression(a, b, environment.literals, environment.guards);
    const sets = new GroupingSets(
      select.groupingSets,
      keys.map((key) => keys.findIndex((each) => same(each, key))),
    );
    const leaf: Leaf = (expression) => {
      if (expression.kind === 'aggregate') return this.#aggregate(expression, keys.length, arguments_, calls, rows);
      if (expression.kind === 'call' && expression.name === 'GROUPING' && environment.wide === true) {
        const of = expression.arguments.map(({ value }) => this.#groupedKey(value, keys, rows));
        return sets.grouping(of, keys.length + calls.length, expression.location);
      }
      if (expression.kind === 'literal' || containsAggregate(expression)) return undefined;
      const own = expression.kind === 'scalar-query' ? this.#groupedBy.indexOf(expression) : -1;
      if (own >= 0) return groupKey(own, expression, keys[own]!);
      if (select.window && expression.kind === 'call' && expression.name === select.window.type.toUpperCase()) {
        this.#checkWindow(expression, select.window);
        return { kind: 'column', index: keys.length - 2, name: 'window_start', type: 'timestamp' };
      }
      if (columnKeysOnly && expression.kind !== 'column' && !isNodeName(expression) && !isEntityCall(expression))
        return undefined;
      const bound = bindExpression(expression, rows);
      const index = keys.findIndex((key) => same(key, bound));
      if (index >= 0) return groupKey(index, expression, bound);
      if (expression.kind === 'column') {
        const text = `${JSON.stringify(expression.name)} must stand in GROUP BY or inside an aggregate`;
        throw errorAt('REL_INVALID', text, expression.location, 'not-grouped');
      }
      return undefined;
    };
    // All aggregates must be known before the node is made: those of HAVING and ORDER BY too. Queries wait for the node.
    const unknown: Bound = { kind: 'constant', cell: null, type: 'null' };
    const first: ExpressionContext = {
      ...rows,
      leaf,
      subselect: (expression, bind) => {
        if ('operand' in expression)
          (expression.operand.kind === 'row' ? expression.operand.items : [expression.operand]).forEach(bind);
        return unknown;
      },
      over: (expression, bind) => {
        const { arguments: operands, partition, orderBy, filter } = expression;
        [...operands, ...partition, ...orderBy.map((item) => item.expression), ...(filter ? [filter] : [])].forEach(bind);
        return unknown;
      },
    };
    const found = this.#outputs(first);
    if (select.having) bindPredicate(select.having, first);
    for (const { expression } of this.#request.orderBy) {
      if (!this.#ordering(expression, found)) bindExpression(expression, first);
    }

    const inner = [...keys, ...arguments_].map((bound, i): Output => ({ name: `#${i}`, bound }));
    const keyColumns = keys.map((key, i): PlanColumn => ({ name: nameOf(expressions[i]!, i), type: columnType(key.type) }));
    const level = this.#levelOf(
      sets.nodeOf(
        {
          kind: 'aggregate',
          input: this.#sortedInput(project(this.#level.node, inner)),
          groups: keys.length,
          calls: calls.map(({ call }) => call),
          columns: [...keyColumns, ...calls.map(({ call, type }): PlanColumn => ({ name: call.function, type }))],
        },
        select.location,
      ),
    );
    const context = this.#withSubselects({ environment, leaf }, this.#scope, level);
    if (select.having) filterLevel(level, bindPredicate(select.having, context));
    return { level, outputs: this.#outputs(context), context };
  }

  /** The place of the key that an argument of GROUPING is. */
  #groupedKey(expression: Expression, keys: readonly Bound[], rows: ExpressionContext): number {
    const { literals, guards } = this.#environment;
    const bound = bindExpression(expression, rows);
    const index = keys.findIndex((key) => sameExpression(key, bound, literals, guards));
    if (index >= 0) return index;
    throw errorAt('REL_INVALID', 'GROUPING takes expressions of GROUP BY', expression.location, 'not-grouped');
  }

  /** The window's own function stands for its start. */
  #checkWindow(call: Extract<Expression, { kind: 'call' }>, { column, intervals }: NonNullable<Select['window']>): void {
    const { literals } = this.#environment;
    const [of, ...others] = call.arguments.map(({ value }) => value);
    const isSame =
      of?.kind === 'column' &&
      sameExpression(this.#scope.column(of), this.#scope.column(column), literals, this.#environment.guards) &&
      others.length === intervals.length &&
      others.every(
        (each, i) => each.kind === 'interval' && literals[each.interval.slot.slot] === literals[intervals[i]!.slot.slot],
      );
    if (isSame) return;
    throw errorAt('REL_INVALID', `${call.name} must repeat the window of GROUP BY`, call.location, 'not-grouped');
  }

  /** A column, an alias of the projection where no column has that name, or any expression over columns. */
  #groupKey(expression: Expression, context: ExpressionContext): Bound {
    const { projection } = this.#select;
    const isAlias = expression.kind === 'column' && expression.table === null && !this.#scope.has(expression.name);
    const position = positionOf(expression, projection.length, this.#environment);
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
    const bound = bindExpression(target, context);
    if (bound.type === 'vector' || bound.type === 'interval') {
      throw errorAt('REL_TYPE_MISMATCH', `GROUP BY can't group ${bound.type}`, expression.location);
    }
    this.#scope.refuseMasked(bound, 'GROUP BY', expression.location);
    return bound;
  }

  #aggregate(
    expression: Extract<Expression, { kind: 'aggregate' }>,
    groups: number,
    arguments_: Bound[],
    calls: { call: AggregateCall; type: ColumnType }[],
    rows: ExpressionContext,
  ): Bound {
    const { operand, second, filter, distinct: isDistinct, location } = expression;
    const { literals, guards } = this.#environment;
    // Clients of Postgres are given arrays as it has them.
    const call = expression.function === 'array_agg' && this.#environment.catalogue ? 'array' : expression.function;
    const { name, second: takes, takesNull = false, isOrdered = false }: AggregateFunction = aggregateFunctions[call];
    if ((second !== null) !== (takes !== undefined)) {
      throw errorAt('REL_INVALID', `${name} is written ${aggregateFunctions[call].usage}`, location, 'no-such-function');
    }
    for (const part of [operand, second, filter]) {
      if (part && containsAggregate(part)) throw errorAt('REL_PARSE', "aggregates can't be nested", part.location, 'not-grouped');
    }
    const condition = filter && bindPredicate(filter, rows);
    if (condition) this.#scope.refuseMasked(condition, 'FILTER', filter.location);
    const read: Bound[] = condition ? [condition] : [];
    const argument = (bound: Bound): number => {
      const index = arguments_.findIndex((each) => sameExpression(each, bound, literals, guards));
      return groups + (index < 0 ? arguments_.push(bound) - 1 : index);
    };
    let column: number | null = null;
    let type: ColumnType = 'integer';
    let wire: string | undefined;
    let when: number | undefined;
    if (operand) {
      const bound = bindExpression(operand, rows);
      if (call === 'array') wire = this.#environment.catalogue!.typeNamed(`${wireTypeOf(bound)}[]`) ?? '_text';
      else if (yieldsItsValues.has(call)) wire = wireIn(bound);
      else if (isInterval(bound) && (call === 'sum' || call === 'avg')) wire = 'interval';
      if (wire === 'interval' && isDistinct && !yieldsItsValues.has(call))
        throw errorAt('REL_NOT_IMPLEMENTED', `${name} of DISTINCT intervals is not implemented`, location);
      read.push(bound);
      type = aggregateType(call, bound, operand);
      this.#scope.refuseMasked(bound, name, operand.location);
      const value = condition && bound.type === 'vector' ? vectorAsText(bound, operand.location) : bound;
      if (condition && takesNull) when = argument(condition);
      column = argument(condition && !takesNull ? whereTrue(condition, value) : value);
    } else if (call !== 'count') throw errorAt('REL_INVALID', `${name} needs a column`, location);
    else if (condition) column = argument(whereTrue(condition, { kind: 'constant', cell: true, type: 'boolean' }));
    const reads = (kind: Bound['kind']): boolean => read.some((bound) => some(bound, (each) => each.kind === kind));
    if (reads('outer') && !reads('column')) {
      // SQL has such an aggregate add up the rows of the query around.
      throw errorAt(
        'REL_NOT_IMPLEMENTED',
        `${name} of nothing but columns of a query around belongs to that query: write it there`,
        location,
      );
    }
    let between: number | undefined;
    if (second) {
      const bound = bindExpression(second, rows);
      checkSecond(name, takes, bound, second);
      if (isOrdered && some(bound, ({ kind }) => kind === 'column'))
        throw errorAt('REL_INVALID', `the share of ${name} is one for all rows`, second.location, 'not-grouped');
      // Values are told apart by the first one alone.
      if (isDistinct && some(bound, ({ kind }) => kind === 'column'))
        throw errorAt('REL_NOT_IMPLEMENTED', `${name} of DISTINCT pairs is not implemented`, second.location);
      this.#scope.refuseMasked(bound, name, second.location);
      between = argument(bound);
    }
    if (expression.orderBy) this.#orderAggregates(expression.orderBy, argument, rows);
    const wanted: AggregateCall = {
      function: call,
      column,
      distinct: isDistinct,
      ...(between === undefined ? {} : { second: between }),
      ...(when === undefined ? {} : { when }),
      ...(expression.descending === true && { descending: true }),
      ...(wire !== undefined && (call === 'array' || wire === 'interval') && { wire }),
    };
    let index = calls.findIndex(
      (each) =>
        each.call.function === call &&
        each.call.column === column &&
        each.call.second === between &&
        each.call.when === when &&
        (each.call.descending ?? false) === (expression.descending ?? false) &&
        each.call.distinct === isDistinct,
    );
    if (index < 0) index = calls.push({ call: wanted, type }) - 1;
    return { kind: 'column', index: groups + index, name: call, type, ...(wire !== undefined && { wire }) };
  }

  /** The order of rows in which lists are made is one for all of the aggregates. */
  #orderAggregates(orderBy: readonly OrderItem[], argument: (bound: Bound) => number, rows: ExpressionContext): void {
    const keys = orderBy.map((item): SortKey => {
      const bound = bindExpression(item.expression, rows);
      checkSortKey(bound, item);
      this.#scope.refuseMasked(bound, 'ORDER BY', item.expression.location);
      return { column: argument(bound), descending: item.descending, collate: item.collate, nullsFirst: item.nullsFirst };
    });
    const known = this.#aggregateOrder;
    if (known !== null && JSON.stringify(known) !== JSON.stringify(keys))
      throw errorAt('REL_NOT_IMPLEMENTED', 'aggregates in two orders are not implemented', orderBy[0]!.expression.location);
    this.#aggregateOrder = keys;
  }

  #sortedInput(input: PlanNode): PlanNode {
    const keys = this.#aggregateOrder;
    return keys === null ? input : { kind: 'sort', input, keys, limit: null, counted: false, columns: input.columns };
  }

  #outputs(context: ExpressionContext): Output[] {
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

  /** Sorts rows before they are projected, so that ORDER BY may use columns that are not in the output. */
  #sortedRows(level: Level, outputs: readonly Output[], context: ExpressionContext, grouped: boolean): PlanNode {
    const { orderBy, limit, offset, statement } = this.#request;
    const ranked = orderBy.length === 0 && !grouped && (this.#select.rankBy.length > 0 || this.#ranksByRules());
    if (orderBy.length === 0 && !ranked) return level.node;
    const computed: Output[] = [];
    // Queries in ORDER BY add columns: computed sort columns come behind them.
    const bounds = orderBy.map((item): Bound => {
      const found = this.#ordering(item.expression, outputs) ?? bindExpression(item.expression, context);
      const bound = isInterval(found) ? intervalOrder(found) : found;
      checkSortKey(bound, item);
      if (!grouped) this.#scope.refuseMasked(bound, 'ORDER BY', item.expression.location);
      return bound;
    });
    const { node } = level;
    const columnOf = (bound: Bound): number =>
      bound.kind === 'column' ? bound.index : node.columns.length + computed.push({ name: '#key', bound }) - 1;
    const keys = orderBy.map(
      ({ descending, collate, nullsFirst }, i): SortKey => ({ column: columnOf(bounds[i]!), descending, collate, nullsFirst }),
    );
    if (ranked) {
      const bound = this.#select.rankBy.length > 0 ? this.#rank() : outputs.find(({ name }) => name === scoreName)!.bound;
      keys.push({ column: columnOf(bound), descending: true, collate: 'codepoint' });
    }
    // Rows that the keys don't tell apart: `_pk` bytewise, then system_from, the order in which rows arrive. Of a join or
    // a subquery, they stay in the order in which it yields them.
    const [only, ...others] = this.#scope.tables;
    if (!grouped && others.length === 0 && only && only.type !== null) {
      const key = this.#systemColumn('_pk');
      keys.push({ column: columnOf(key), descending: false, collate: 'codepoint' });
    }
    const input = computed.length > 0 ? project(node, [...throughColumns(node), ...computed]) : node;
    return { kind: 'sort', input, keys, limit, ...offsetOption(offset), counted: statement !== null, columns: input.columns };
  }

  /** Above DISTINCT only output columns are left to sort by. */
  #sortedOutputs(node: PlanNode, outputs: readonly Output[], context: ExpressionContext): PlanNode {
    const { orderBy, limit, offset, statement } = this.#request;
    const { literals, guards } = this.#environment;
    if (orderBy.length === 0) return node;
    const keys = orderBy.map((item): SortKey => {
      const bound = this.#ordering(item.expression, outputs) ?? bindExpression(item.expression, context);
      checkSortKey(bound, item);
      const column = outputs.findIndex((output) => sameExpression(output.bound, bound, literals, guards));
      if (column < 0)
        throw errorAt(
          'REL_INVALID',
          'with DISTINCT, ORDER BY takes columns of the projection only',
          item.expression.location,
          'no-such-column-here',
        );
      return { column, descending: item.descending, collate: item.collate, nullsFirst: item.nullsFirst };
    });
    return {
      kind: 'sort',
      input: node,
      keys,
      limit,
      ...offsetOption(offset),
      counted: statement !== null,
      columns: node.columns,
    };
  }

  /** A column of the projection, by its place or its name. */
  #ordering(expression: Expression, outputs: readonly Output[]): Bound | undefined {
    const visible = outputs.filter(({ name }) => name !== '_score');
    const position = positionOf(expression, visible.length, this.#environment);
    return position === null ? this.#alias(expression, outputs) : visible[position]!.bound;
  }

  #alias(expression: Expression, outputs: readonly Output[]): Bound | undefined {
    if (expression.kind !== 'column' || expression.table !== null) return undefined;
    const { projection, rankBy, compute } = this.#select;
    const isNamed = (item: ProjectionItem): boolean => item.kind === 'expression' && shownName(item) === expression.name;
    const named =
      projection.filter(isNamed).length === 1 ||
      projection.some((item) => item.kind === 'expression' && item.alias === expression.name) ||
      (rankBy.length > 0 && expression.name === '_score') ||
      compute.some(({ label }) => label === expression.name);
    return named ? outputs.find((output) => output.name === expression.name)?.bound : undefined;
  }

  #limit(node: PlanNode): PlanNode {
    const { limit, offset, statement } = this.#request;
    const { columns } = node;
    const counted = statement !== null;
    const input = node.kind === 'function' && limit && 'slot' in limit && !offset ? { ...node, limit } : node;
    if (input.kind === 'function' && input.limit !== null && input.graph?.limitsGroups) return input;
    const first: PlanNode = limit
      ? { kind: 'limit', input, limit, ...offsetOption(offset), counting: null, counted, columns }
      : node;
    return offset ? { kind: 'skip', input: first, offset, columns } : first;
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

  #systemColumn(name: string): Bound {
    return this.#scope.column({ kind: 'column', table: null, name, location: this.#select.location });
  }

  #aggregates(): boolean {
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

/** A column of this query as one inside it has it. */
/** The value on the rows of FILTER, NULL on the others. */
function whereTrue(condition: Bound, value: Bound): Bound {
  return { kind: 'case', operand: null, branches: [{ when: condition, result: value }], otherwise: null, type: value.type };
}

/** How a column of the projection is called, where that is said or it is one of FROM. */
function shownName({ alias, expression }: Extract<ProjectionItem, { kind: 'expression' }>): string | null {
  return alias ?? (expression.kind === 'column' ? expression.name : null);
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

function groupKey(index: number, expression: Expression, bound: Bound): Bound {
  const { type } = bound;
  const wire = wireIn(bound);
  return { kind: 'column', index, name: nameOf(expression, index), type: columnType(type), ...(wire !== undefined && { wire }) };
}

/** Aggregates of which the result is one of their values. */
const yieldsItsValues: ReadonlySet<AggregateName> = new Set(['min', 'max', 'any_value', 'mode', 'percentile_disc']);

const wireIn = (bound: Bound): string | undefined => ('wire' in bound ? bound.wire : undefined);
