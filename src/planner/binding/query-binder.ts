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
  readonly #environment: Environment;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  statement(query: Query, withProvenance: boolean): BoundSelect {
    const names = this.#withNames(query, [], []);
    const { body, orderBy } = query;
    const counts = this.#countsOf(query, names);
    if (body.kind === 'select') {
      const statement = { query, withProvenance };
      return bindSelect({ ...this.#selectParts(names, []), select: body, orderBy, ...counts, statement });
    }
    const excluded = query.after ? 'AFTER' : withProvenance ? 'WITH PROVENANCE' : query.facets.length > 0 ? 'FACETS' : null;
    if (excluded)
      throw errorAt('REL_INVALID', `${excluded} is of the rows of one SELECT: it excludes set operations`, query.location);
    const bound = this.#orderAndLimit(this.#body(body, names, []), { orderBy, ...counts }, true);
    const visible = bound.columns.length;
    return { node: projectShown(bound), columns: bound.columns, visible, systemFrom: null, paged: false, facets: null };
  }

  #query(query: Query, outerNames: readonly CommonName[], outer: readonly OuterQuery[]): BoundQuery {
    if (query.after)
      throw errorAt('REL_INVALID', 'AFTER pages through the rows of a statement, not of a subquery', query.after.location);
    const [facet] = query.facets;
    if (facet) throw errorAt('REL_INVALID', 'FACETS belongs to a statement, not to a subquery', facet.location);
    const names = this.#withNames(query, outerNames, outer);
    const { body, orderBy } = query;
    const counts = this.#countsOf(query, names);
    if (body.kind !== 'select') return this.#orderAndLimit(this.#body(body, names, outer), { orderBy, ...counts }, false);
    return bindSelect({ ...this.#selectParts(names, outer), select: body, orderBy, ...counts, statement: null });
  }

  #body(body: QueryBody, names: readonly CommonName[], outer: readonly OuterQuery[]): BoundQuery {
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
    return combine(body.op, this.#body(body.left, names, outer), this.#body(body.right, names, outer), body.location);
  }

  #selectParts(names: readonly CommonName[], outer: readonly OuterQuery[]) {
    return {
      environment: this.#environment,
      names,
      outer,
      bindQuery: (query: Query, inner: readonly CommonName[], around: readonly OuterQuery[]) => this.#query(query, inner, around),
    };
  }

  /** ORDER BY and LIMIT of a set operation, by the names of its columns. */
  #orderAndLimit(bound: BoundQuery, { orderBy, limit, offset }: Counts & Pick<Query, 'orderBy'>, counted: boolean): BoundQuery {
    const names = uniqueNames(
      bound.columns.map(({ name }, index): Output => ({ name, bound: throughColumns(bound.node)[index]!.bound })),
    );
    const columns = bound.columns.map((column, i): OutputType => ({ ...column, name: names[i]!.name }));
    const shown = throughColumns(bound.node).slice(columns.length);
    const isRenamed = names.some(({ name }, i) => name !== bound.node.columns[i]!.name);
    let node = isRenamed ? project(bound.node, [...names, ...shown]) : bound.node;
    const width = node.columns.length;
    if (orderBy.length > 0) {
      const scope = new Scope([{ name: null, type: null, columns, first: 0 }], []);
      const context: ExpressionContext = {
        environment: this.#environment,
        leaf: (expression) => (expression.kind === 'column' ? scope.column(expression) : undefined),
        over: ({ location }) => {
          throw errorAt('REL_INVALID', 'ORDER BY of a set operation takes its columns, not a window', location);
        },
        subselect: ({ location }) => {
          throw errorAt('REL_INVALID', 'ORDER BY of a set operation takes its columns, not a subquery', location);
        },
      };
      const computed: Output[] = [];
      const keys = orderBy.map((item): SortKey => {
        const position = positionOf(item.expression, columns.length, this.#environment);
        const key = position === null ? bindExpression(item.expression, context) : throughColumns(node)[position]!.bound;
        checkSortKey(key, item);
        scope.refuseMasked(key, 'ORDER BY', item.expression.location);
        const column = key.kind === 'column' ? key.index : width + computed.push({ name: '#key', bound: key }) - 1;
        return { column, descending: item.descending, collate: item.collate, nullsFirst: item.nullsFirst };
      });
      const input = computed.length > 0 ? project(node, [...throughColumns(node), ...computed]) : node;
      node = { kind: 'sort', input, keys, limit, ...offsetOption(offset), counted, columns: input.columns };
    }
    if (limit)
      node = { kind: 'limit', input: node, limit, ...offsetOption(offset), counting: null, counted, columns: node.columns };
    if (offset) node = { kind: 'skip', input: node, offset, columns: node.columns };
    return { node: node.columns.length > width ? project(node, throughColumns(node).slice(0, width)) : node, columns };
  }

  #withNames(query: Query, names: readonly CommonName[], outer: readonly OuterQuery[]): readonly CommonName[] {
    let known = names;
    const own = new Set<string>();
    for (const table of query.with) {
      if (own.has(table.name))
        throw errorAt('REL_INVALID', `WITH names ${JSON.stringify(table.name)} twice`, table.query.location, 'alias-twice');
      own.add(table.name);
      const before = known;
      known = [...known, { name: table.name, bind: () => this.#common(table, before, outer), working: false }];
    }
    return known;
  }

  #common(table: CommonTable, names: readonly CommonName[], outer: readonly OuterQuery[]): BoundQuery {
    const recursive = table.recursive && table.query.body.kind === 'set-operation';
    const bound = recursive ? this.#recursive(table, names, outer) : this.#query(table.query, names, outer);
    return renameColumns(bound, table.name, table.columns, table.query.location);
  }

  /** The base gives names and types; a step of wider types widens the base, and is bound again over it. */
  #recursive(table: CommonTable, names: readonly CommonName[], outer: readonly OuterQuery[]): BoundQuery {
    const { query } = table;
    const { body } = query;
    if (body.kind !== 'set-operation') throw errorAt('REL_INTERNAL', 'a recursion is a union', query.location);
    const own = {
      name: table.name,
      working: false,
      bind: (location: Location) => refuseMisplaced(table.name, 'the left side of its UNION', location),
    };
    const inside = this.#withNames(query, names, outer);
    const start = this.#body(body.left, [...inside, own], outer);
    const base = renameColumns(start, table.name, table.columns, query.location);
    const name = this.#environment.recursionName(table.name);
    let columns: readonly OutputType[] = base.columns.map(withoutShown);
    for (;;) {
      let used = false;
      const workingColumns = asColumns(base, columns).columns;
      const working: CommonName = {
        name: table.name,
        working: true,
        bind: () => {
          used = true;
          return { node: { kind: 'working', table: name, columns: workingColumns }, columns };
        },
      };
      const step = this.#body(body.right, [...inside, working], outer);
      // No recursion after all: ORDER BY knows the columns by their own names, as in any other union.
      const tail = { orderBy: query.orderBy, ...this.#countsOf(query, inside) };
      if (!used) return this.#orderAndLimit(combine(body.op, start, step, body.location), tail, false);
      if (body.op !== 'union' && body.op !== 'union all') {
        throw errorAt(
          'REL_INVALID',
          `a recursive table is a UNION of its start and its step, not ${body.op.toUpperCase()}`,
          body.location,
        );
      }
      const common = unifyColumns(body.op, columns, step.columns, body.location);
      const settled = common.every(({ type, masked }, i) => type === columns[i]!.type && masked === columns[i]!.masked);
      columns = common;
      if (!settled) continue;
      const node: PlanNode = {
        kind: 'recursive',
        table: name,
        op: body.op,
        base: asColumns(base, columns),
        step: asColumns(step, columns),
        columns: workingColumns,
      };
      return this.#orderAndLimit({ node, columns }, tail, false);
    }
  }

  #countsOf({ limit, offset }: Query, names: readonly CommonName[]): Counts {
    return { limit: limit && this.#countOf(limit, 'LIMIT', names), offset: offset && this.#countOf(offset, 'OFFSET', names) };
  }

  #countOf(count: GivenCount, of: 'LIMIT' | 'OFFSET', names: readonly CommonName[]): RowCount {
    if ('slot' in count) {
      const literal = this.#environment.literals[count.slot];
      if (typeof literal === 'bigint' && literal >= 0n) return count;
      const reason = of === 'LIMIT' ? 'row-count' : 'skip-count';
      throw errorAt('REL_INVALID', `${of} takes a whole number of at least 0`, count.location, reason);
    }
    const { expression, location } = count;
    const bindQuery = (query: Query): BoundQuery => this.#query(query, names, []);
    const subselects = new Subselects({ environment: this.#environment, level: null, bindQuery });
    const context: ExpressionContext = {
      environment: this.#environment,
      leaf: (each) => {
        if (each.kind !== 'column') return undefined;
        throw errorAt('REL_INVALID', `${of} takes a number of rows, which no column says`, each.location, 'no-such-column-here');
      },
      subselect: (each, bind) => subselects.bind(each, bind),
      over: (each) => {
        throw errorAt('REL_INVALID', `${of} takes a number of rows, not a window`, each.location, 'window-misplaced');
      },
    };
    const bound = bindRowCount(expression, context, of);
    // Without a number there is no limit, and nothing is skipped.
    const otherwise: Bound = { kind: 'constant', cell: of === 'LIMIT' ? integerMax : 0n, type: 'integer' };
    return { value: { kind: 'coalesce', operands: [bound, otherwise], type: 'integer' }, of, location };
  }
}

const integerMax = 2n ** 63n - 1n;

interface Counts {
  readonly limit: RowCount | null;
  readonly offset: RowCount | null;
}
