/** A query with its common tables and set operations. Every SELECT in it is bound by `select-binder.ts`. */
import { bindExpression, bindRowCount, type ExpressionContext } from '../expressions/bind-expression.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import type { PlanNode, RowCount, SortKey } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { CommonTable, Location, Query, QueryBody, RowCount as GivenCount } from '../syntax/statement.ts';
import { type BoundQuery, type CommonName, type Environment, refuseMisplaced } from './environment.ts';
import {
  projectShown,
  type Output,
  type OutputType,
  project,
  renameColumns,
  throughColumns,
  uniqueNames,
  withoutShown,
} from './output-columns.ts';
import { positionOf, offsetOption } from './ordinal-numbers.ts';
import { type OuterQuery, Scope } from './scope.ts';
import { type BoundSelect, bindSelect } from './select-binder.ts';
import { checkSortKey } from './sort-order.ts';
import { asColumns, combine, unifyColumns } from './set-operations.ts';
import { Subselects } from './subselects.ts';

export class QueryBinder {
  readonly #queryEnvironment: Environment;

  constructor(environment: Environment) {
    this.#queryEnvironment = environment;
  }

  statement(query: Query, withProvenance: boolean): BoundSelect {
    const commonNames = this.#withNames(query, [], []);
    const { body, orderBy } = query;
    const rowCounts = this.#boundCountsOf(query, commonNames);
    if (body.kind === 'select') {
      const statement = { query, withProvenance };
      return bindSelect({ ...this.#selectParts(commonNames, []), select: body, orderBy, ...rowCounts, statement });
    }
    const excludedClause = query.after ? 'AFTER' : withProvenance ? 'WITH PROVENANCE' : query.facets.length > 0 ? 'FACETS' : null;
    if (excludedClause)
      throw errorAt('REL_INVALID', `${excludedClause} is of the rows of one SELECT: it excludes set operations`, query.location);
    const boundStatement = this.#orderAndLimit(this.#bindBody(body, commonNames, []), { orderBy, ...rowCounts }, true);
    const visibleWidth = boundStatement.columns.length;
    return {
      node: projectShown(boundStatement),
      columns: boundStatement.columns,
      visible: visibleWidth,
      systemFrom: null,
      paged: false,
      facets: null,
    };
  }

  #bindSubquery(query: Query, outerNames: readonly CommonName[], outer: readonly OuterQuery[]): BoundQuery {
    if (query.after)
      throw errorAt('REL_INVALID', 'AFTER pages through the rows of a statement, not of a subquery', query.after.location);
    const [facet] = query.facets;
    if (facet) throw errorAt('REL_INVALID', 'FACETS belongs to a statement, not to a subquery', facet.location);
    const commonNames = this.#withNames(query, outerNames, outer);
    const { body, orderBy } = query;
    const rowCounts = this.#boundCountsOf(query, commonNames);
    if (body.kind !== 'select')
      return this.#orderAndLimit(this.#bindBody(body, commonNames, outer), { orderBy, ...rowCounts }, false);
    return bindSelect({ ...this.#selectParts(commonNames, outer), select: body, orderBy, ...rowCounts, statement: null });
  }

  #bindBody(body: QueryBody, names: readonly CommonName[], outer: readonly OuterQuery[]): BoundQuery {
    if (body.kind === 'select') {
      return bindSelect({
        ...this.#selectParts(names, outer),
        select: body,
        orderBy: [],
        limit: null,
        offset: null,
        statement: null,
      });
    }
    return combine(body.op, this.#bindBody(body.left, names, outer), this.#bindBody(body.right, names, outer), body.location);
  }

  #selectParts(names: readonly CommonName[], outer: readonly OuterQuery[]) {
    return {
      environment: this.#queryEnvironment,
      names,
      outer,
      bindQuery: (query: Query, inner: readonly CommonName[], around: readonly OuterQuery[]) =>
        this.#bindSubquery(query, inner, around),
    };
  }

  /** ORDER BY and LIMIT of a set operation, by the names of its columns. */
  #orderAndLimit(
    boundQuery: BoundQuery,
    { orderBy, limit, offset }: BoundRowCounts & Pick<Query, 'orderBy'>,
    counted: boolean,
  ): BoundQuery {
    const uniqueOutputs = uniqueNames(
      boundQuery.columns.map(({ name }, index): Output => ({ name, bound: throughColumns(boundQuery.node)[index]!.bound })),
    );
    const columns = boundQuery.columns.map((column, i): OutputType => ({ ...column, name: uniqueOutputs[i]!.name }));
    const maskedOutputs = throughColumns(boundQuery.node).slice(columns.length);
    const isRenamed = uniqueOutputs.some(({ name }, i) => name !== boundQuery.node.columns[i]!.name);
    let node = isRenamed ? project(boundQuery.node, [...uniqueOutputs, ...maskedOutputs]) : boundQuery.node;
    const shownWidth = node.columns.length;
    if (orderBy.length > 0) {
      const outputScope = new Scope([{ name: null, type: null, columns, first: 0 }], []);
      const orderContext: ExpressionContext = {
        environment: this.#queryEnvironment,
        leaf: (expression) => (expression.kind === 'column' ? outputScope.column(expression) : undefined),
        over: ({ location }) => {
          throw errorAt('REL_INVALID', 'ORDER BY of a set operation takes its columns, not a window', location);
        },
        subselect: ({ location }) => {
          throw errorAt('REL_INVALID', 'ORDER BY of a set operation takes its columns, not a subquery', location);
        },
      };
      const computedKeys: Output[] = [];
      const orderKeys = orderBy.map((item): SortKey => {
        const position = positionOf(item.expression, columns.length, this.#queryEnvironment);
        const key = position === null ? bindExpression(item.expression, orderContext) : throughColumns(node)[position]!.bound;
        checkSortKey(key, item);
        outputScope.refuseMasked(key, 'ORDER BY', item.expression.location);
        const column = key.kind === 'column' ? key.index : shownWidth + computedKeys.push({ name: '#key', bound: key }) - 1;
        return { column, descending: item.descending, collate: item.collate, nullsFirst: item.nullsFirst };
      });
      const sortInput = computedKeys.length > 0 ? project(node, [...throughColumns(node), ...computedKeys]) : node;
      node = {
        kind: 'sort',
        input: sortInput,
        keys: orderKeys,
        limit,
        ...offsetOption(offset),
        counted,
        columns: sortInput.columns,
      };
    }
    if (limit)
      node = { kind: 'limit', input: node, limit, ...offsetOption(offset), counting: null, counted, columns: node.columns };
    if (offset) node = { kind: 'skip', input: node, offset, columns: node.columns };
    return { node: node.columns.length > shownWidth ? project(node, throughColumns(node).slice(0, shownWidth)) : node, columns };
  }

  #withNames(query: Query, names: readonly CommonName[], outer: readonly OuterQuery[]): readonly CommonName[] {
    let knownNames = names;
    const ownNames = new Set<string>();
    for (const table of query.with) {
      if (ownNames.has(table.name))
        throw errorAt('REL_INVALID', `WITH names ${JSON.stringify(table.name)} twice`, table.query.location, 'alias-twice');
      ownNames.add(table.name);
      const earlierNames = knownNames;
      knownNames = [
        ...knownNames,
        { name: table.name, bind: () => this.#bindCommonTable(table, earlierNames, outer), working: false },
      ];
    }
    return knownNames;
  }

  #bindCommonTable(table: CommonTable, names: readonly CommonName[], outer: readonly OuterQuery[]): BoundQuery {
    const isRecursive = table.recursive && table.query.body.kind === 'set-operation';
    const boundCommon = isRecursive ? this.#bindRecursive(table, names, outer) : this.#bindSubquery(table.query, names, outer);
    return renameColumns(boundCommon, table.name, table.columns, table.query.location);
  }

  /** The base gives names and types; a step of wider types widens the base, and is bound again over it. */
  #bindRecursive(table: CommonTable, names: readonly CommonName[], outer: readonly OuterQuery[]): BoundQuery {
    const { query } = table;
    const { body } = query;
    if (body.kind !== 'set-operation') throw errorAt('REL_INTERNAL', 'a recursion is a union', query.location);
    const refusedName = {
      name: table.name,
      working: false,
      bind: (location: Location) => refuseMisplaced(table.name, 'the left side of its UNION', location),
    };
    const insideNames = this.#withNames(query, names, outer);
    const boundStart = this.#bindBody(body.left, [...insideNames, refusedName], outer);
    const recursionBase = renameColumns(boundStart, table.name, table.columns, query.location);
    const recursionName = this.#queryEnvironment.recursionName(table.name);
    let columns: readonly OutputType[] = recursionBase.columns.map(withoutShown);
    for (;;) {
      let isWorkingUsed = false;
      const workingColumns = asColumns(recursionBase, columns).columns;
      const workingTable: CommonName = {
        name: table.name,
        working: true,
        bind: () => {
          isWorkingUsed = true;
          return { node: { kind: 'working', table: recursionName, columns: workingColumns }, columns };
        },
      };
      const recursionStep = this.#bindBody(body.right, [...insideNames, workingTable], outer);
      // No recursion after all: ORDER BY knows the columns by their own names, as in any other union.
      const recursionTail = { orderBy: query.orderBy, ...this.#boundCountsOf(query, insideNames) };
      if (!isWorkingUsed)
        return this.#orderAndLimit(combine(body.op, boundStart, recursionStep, body.location), recursionTail, false);
      if (body.op !== 'union' && body.op !== 'union all') {
        throw errorAt(
          'REL_INVALID',
          `a recursive table is a UNION of its start and its step, not ${body.op.toUpperCase()}`,
          body.location,
        );
      }
      const unifiedColumns = unifyColumns(body.op, columns, recursionStep.columns, body.location);
      const areTypesSettled = unifiedColumns.every(
        ({ type, masked }, i) => type === columns[i]!.type && masked === columns[i]!.masked,
      );
      columns = unifiedColumns;
      if (!areTypesSettled) continue;
      const recursiveNode: PlanNode = {
        kind: 'recursive',
        table: recursionName,
        op: body.op,
        base: asColumns(recursionBase, columns),
        step: asColumns(recursionStep, columns),
        columns: workingColumns,
      };
      return this.#orderAndLimit({ node: recursiveNode, columns }, recursionTail, false);
    }
  }

  #boundCountsOf({ limit, offset }: Query, names: readonly CommonName[]): BoundRowCounts {
    return {
      limit: limit && this.#boundCountOf(limit, 'LIMIT', names),
      offset: offset && this.#boundCountOf(offset, 'OFFSET', names),
    };
  }

  #boundCountOf(count: GivenCount, countClause: 'LIMIT' | 'OFFSET', names: readonly CommonName[]): RowCount {
    if ('slot' in count) {
      const countLiteral = this.#queryEnvironment.literals[count.slot];
      if (typeof countLiteral === 'bigint' && countLiteral >= 0n) return count;
      const countReason = countClause === 'LIMIT' ? 'row-count' : 'skip-count';
      throw errorAt('REL_INVALID', `${countClause} takes a whole number of at least 0`, count.location, countReason);
    }
    const { expression, location } = count;
    const bindQuery = (query: Query): BoundQuery => this.#bindSubquery(query, names, []);
    const countSubselects = new Subselects({ environment: this.#queryEnvironment, level: null, bindQuery });
    const countContext: ExpressionContext = {
      environment: this.#queryEnvironment,
      leaf: (each) => {
        if (each.kind !== 'column') return undefined;
        throw errorAt(
          'REL_INVALID',
          `${countClause} takes a number of rows, which no column says`,
          each.location,
          'no-such-column-here',
        );
      },
      subselect: (each, bind) => countSubselects.bind(each, bind),
      over: (each) => {
        throw errorAt('REL_INVALID', `${countClause} takes a number of rows, not a window`, each.location, 'window-misplaced');
      },
    };
    const boundCount = bindRowCount(expression, countContext, countClause);
    // Without a number there is no limit, and nothing is skipped.
    const unlimitedCount: Bound = { kind: 'constant', cell: countClause === 'LIMIT' ? rowCountMax : 0n, type: 'integer' };
    return { value: { kind: 'coalesce', operands: [boundCount, unlimitedCount], type: 'integer' }, of: countClause, location };
  }
}

const rowCountMax = 2n ** 63n - 1n;

interface BoundRowCounts {
  readonly limit: RowCount | null;
  readonly offset: RowCount | null;
}
