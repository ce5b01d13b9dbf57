/** FROM to a plan: scans, subqueries, views and common tables, and the joins between them. */
import { didYouMean } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { systemColumns } from '../../log/values/value.ts';
import { type ReadableColumn, shownColumn, splitTypeName } from '../../projections/access-paths.ts';
import { commonWire } from '../expressions/postgres-types.ts';
import { asIntervals, commonResult } from '../expressions/bind-call.ts';
import { bindExpression, bindPredicate, type ExpressionContext, matchOperands } from '../expressions/bind-expression.ts';
import { type Bound, type BoundColumn, replaceColumns } from '../expressions/bound-expression.ts';
import { functionOfTable } from '../table-functions/all.ts';
import type { FunctionSource } from '../table-functions/statement-call.ts';
import { type ApplyNode, inputsOf, type JoinNode, type PlanColumn, type PlanNode } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { ColumnRef, Expression, Location, Query, Slot, Source } from '../syntax/statement.ts';
import { type BoundQuery, type BoundSource, type CommonName, type Environment, noMasks } from './environment.ts';
import { bindGraphRows } from './graph-rows.ts';
import { bindEntities, bindUnwind } from './pattern-rows.ts';
import { columnType, nameOf, type Output, type OutputType, project, renameColumns, throughColumns } from './output-columns.ts';
import { type OuterQuery, Scope, type ScopeTable } from './scope.ts';
import { type Level, namesOuter, outerColumn } from './subselects.ts';
import { bindFunction, type FunctionRequest } from './table-functions.ts';
import { bindWalk } from './pattern-walks.ts';

export interface SourceRequest {
  readonly environment: Environment;
  readonly names: readonly CommonName[];
  readonly outer: readonly OuterQuery[];
  /** The cursor of AFTER, behind which a page of a type's rows starts. */
  readonly after: Slot | null;
  readonly bindQuery: (query: Query, names: readonly CommonName[], outer: readonly OuterQuery[]) => BoundQuery;
  /** Creates the context in which expressions over these tables are bound. */
  readonly contextOf: (scope: Scope, level: Level | null) => ExpressionContext;
}

type JoinSource = Extract<Source, { kind: 'join' }>;
type SubquerySource = Extract<Source, { kind: 'subquery' }>;

/** Most tables that one FROM may join, and most parts that one VALUES may have. */
const tablesMax = 64;

export function bindSource(source: Source, request: SourceRequest): BoundSource {
  const bound = new SourceBinder(request).bind(source);
  const seen = new Set<string>();
  for (const { name } of bound.tables) {
    if (name !== null && seen.has(name)) {
      throw errorAt(
        'REL_INVALID',
        `${JSON.stringify(name)} stands in FROM twice: give each an alias of its own`,
        source.location,
        'alias-twice',
      );
    }
    if (name !== null) seen.add(name);
  }
  return bound;
}

/** System columns first, then properties in order; a declared `id` keeps its declared type. */
export function readableColumns(definition: TypeDefinition): ReadableColumn[] {
  const columns: ReadableColumn[] = Object.entries(systemColumns).map(([name, type]) => ({
    name,
    type: (Object.hasOwn(definition.properties, name) && definition.properties[name]?.type) || type,
    system: true,
  }));
  for (const [name, property] of Object.entries(definition.properties)) {
    if (!Object.hasOwn(systemColumns, name)) columns.push({ name, type: property.type, system: false });
  }
  return columns;
}

class SourceBinder {
  readonly #request: SourceRequest;
  #tables = 0;

  constructor(request: SourceRequest) {
    this.#request = request;
  }

  bind(source: Source): BoundSource {
    switch (source.kind) {
      case 'table':
        this.#count(source);
        return this.#table(source);
      case 'subquery': {
        this.#count(source);
        return this.#subquery(source, this.#request.outer);
      }
      case 'values':
        return this.#values(source);
      case 'given':
        return bindGiven(source);
      case 'join':
        return this.#join(source);
      case 'function':
        return this.#bindCall(source);
      case 'walk':
        return bindWalk(source, this.bind(source.input), this.#functions(source.location));
      case 'entities':
        return bindEntities(source, this.bind(source.input), this.#functions(source.location));
      case 'unwind':
        return bindUnwind(source, this.bind(source.input), this.#functions(source.location));
      case 'graph-rows':
        this.#count(source);
        return bindGraphRows(source, this.#functions(source.location));
    }
  }

  #bindCall(source: FunctionSource): BoundSource {
    return bindFunction(source, this.#functions(source.location));
  }

  #functions(location: Location): FunctionRequest {
    const { environment, contextOf } = this.#request;
    return { environment, scan: (type) => this.#rankedScan(type, location), contextOf: (scope) => contextOf(scope, null) };
  }

  #table(source: Extract<Source, { kind: 'table' }>): BoundSource {
    const { environment, names, outer } = this.#request;
    const name = source.alias ?? splitTypeName(source.name)?.type ?? source.name;
    const common = names.findLast((each) => each.name === source.name);
    if (common) return this.#derivedTable(common.bind(source.location), name);
    const definition = environment.catalog.type(source.name);
    if (definition) return this.#scan(source.name, definition, name);
    const served = environment.request.servedView?.(source.name);
    if (served) return this.#servedView(source.name, served, name);
    const view = environment.request.views?.(source.name);
    // A view stands for itself: it sees no common table of the statement that names it.
    if (view) return this.#derivedTable(this.#request.bindQuery(environment.adopt(view), [], outer), name);
    const virtual = environment.wide ? environment.request.virtual?.(source.name) : undefined;
    if (virtual) {
      const { node, tables } = this.#derivedTable({ node: virtual, columns: virtual.columns }, name);
      return { node, tables: tables.map((table) => ({ ...table, oid: virtual.oid })) };
    }
    const named = functionOfTable(source.name);
    if (named)
      return this.#bindCall({ kind: 'function', name: named.name, arguments: [], alias: name, location: source.location });
    throw this.#unknownType(source.name, source.location);
  }

  #unknownType(name: string, location: Location): Error {
    const { environment, names } = this.#request;
    const types = environment.catalog.types().flatMap((type) => (environment.offers(type.name) ? type.name : []));
    const guess = didYouMean(name, [...names.map((each) => each.name), ...(environment.request.viewNames?.() ?? []), ...types]);
    return errorAt('REL_UNKNOWN_TYPE', `type ${JSON.stringify(name)} is not registered${guess}`, location);
  }

  #servedView(view: string, columns: readonly PlanColumn[], name: string): BoundSource {
    const about = { type: view, primaryKey: null, masked: noMasks };
    const node: PlanNode = { kind: 'scan', ...about, columns, keys: null, zones: [], after: null };
    return this.#derivedTable({ node, columns }, name);
  }

  #rankedScan(name: string, location: Location): BoundSource {
    const definition = this.#request.environment.catalog.type(name);
    if (!definition) throw this.#unknownType(name, location);
    return this.#scan(name, definition, name);
  }

  /** `type` is the name that the statement gives it: another tenant's stands for that tenant's rows alone. */
  #scan(type: string, definition: TypeDefinition, name: string): BoundSource {
    this.#request.environment.objectTypes.add(type);
    const masked = this.#request.environment.masksOf(type);
    const columns = readableColumns(definition).map(({ name: column, type: of }): PlanColumn => ({ name: column, type: of }));
    const shown: PlanColumn[] = [];
    const named = columns.map((column): OutputType => {
      const kind = masked.get(column.name);
      if (kind === undefined) return column;
      return { ...column, masked: kind, shown: columns.length + shown.push({ ...column, name: shownColumn(column.name) }) - 1 };
    });
    const node: PlanNode = {
      kind: 'scan',
      type,
      primaryKey: definition.primaryKey,
      masked,
      columns: [...columns, ...shown],
      keys: null,
      zones: [],
      after: this.#request.after,
    };
    const isOffered = (): boolean => this.#request.environment.offers(type);
    return { node, tables: [{ name, type, columns: named, first: 0, isOffered }] };
  }

  #subquery({ query, alias, columns, isValue, location }: SubquerySource, outer: readonly OuterQuery[]): BoundSource {
    const bound = this.#request.bindQuery(query, this.#request.names, outer);
    const { node, tables } = this.#derivedTable(renameColumns(bound, alias ?? '', columns, location), alias);
    return { node, tables: tables.map((table) => ({ ...table, isValue })) };
  }

  /** The whole condition is the join's residual: the passes take it apart. */
  #join(joinSource: JoinSource): BoundSource {
    const source = besideAll(joinSource);
    const left = this.bind(source.left);
    const lateral = source.right.kind === 'subquery' && source.right.lateral === true ? source.right : null;
    if (lateral && isRowByRow(source, lateral)) return this.#columnsBeside(source, lateral, left);
    const around = lateral ? this.#level(left.node, new Scope(left.tables, this.#request.outer)) : null;
    const right = lateral && around ? this.#lateral(source.type, lateral, left, around) : this.bind(source.right);
    if (around && namesOuter(right.node, around.id)) return this.#dependentJoin(source, left, right, around);
    const width = left.node.columns.length;
    const tables = [...left.tables, ...right.tables.map((table) => ({ ...table, first: table.first + width }))];
    if (source.using !== null) return this.#joinUsing(source, source.using, left, right, null);
    const scope = new Scope(tables, this.#request.outer);
    const join: JoinNode = {
      kind: 'join',
      type: source.type,
      left: left.node,
      right: right.node,
      leftKeys: [],
      rightKeys: [],
      residual: null,
      build: 'right',
      columns: [...left.node.columns, ...right.node.columns],
    };
    if (source.on === null) return { node: join, tables };
    if (source.type !== 'inner') return { node: this.#outerJoin(source.on, { ...join, type: source.type }, left, right), tables };
    const level = this.#level(join, scope);
    const condition = bindPredicate(source.on, this.#request.contextOf(scope, level));
    if (level.node === join) return { node: { ...join, residual: condition }, tables };
    return { node: { kind: 'filter', input: level.node, predicate: condition, columns: level.node.columns }, tables };
  }

  /**
   * Queries in ON may read both sides, and the pairs that ON keeps must be known before unmatched rows can be. So the rows of
   * both sides are numbered, the pairs that ON keeps are found by an inner join, and both sides are joined by the numbers of
   * those pairs.
   */
  #outerJoin(on: Expression, join: JoinNode, left: BoundSource, right: BoundSource): PlanNode {
    const [numberedLeft, numberedRight] = [numberRows(left.node), numberRows(right.node)];
    const [number, width] = [left.node.columns.length, numberedLeft.columns.length];
    const both = [...numberedLeft.columns, ...numberedRight.columns];
    const pairs: JoinNode = { ...join, type: 'inner', left: numberedLeft, right: numberedRight, columns: both };
    const tables = [...left.tables, ...right.tables.map((table) => ({ ...table, first: table.first + width }))];
    const scope = new Scope(tables, this.#request.outer);
    const level = this.#level(pairs, scope);
    const condition = bindPredicate(on, this.#request.contextOf(scope, level));
    if (level.node === pairs) {
      const asWritten = (column: BoundColumn): Bound => ({ ...column, index: column.index - (column.index < width ? 0 : 1) });
      return { ...join, residual: replaceColumns(condition, asWritten) };
    }
    const filtered: PlanNode = { kind: 'filter', input: level.node, predicate: condition, columns: level.node.columns };
    const met = project(filtered, [outputOf(filtered, number), outputOf(filtered, both.length - 1)]);
    const ofLeft = joinedBy(join.type === 'right' ? 'inner' : 'left', numberedLeft, met, [number, width]);
    const ofBoth = joinedBy(join.type, ofLeft, numberedRight, [width + 1, ofLeft.columns.length + right.node.columns.length]);
    const own = join.columns.map((_, i) => outputOf(ofBoth, i < number ? i : ofLeft.columns.length + i - number));
    return project(ofBoth, own);
  }

  /** A query that may name columns of the tables before it. */
  #lateral(type: JoinNode['type'], query: SubquerySource, left: BoundSource, around: Level): BoundSource {
    this.#count(query);
    const { outer } = this.#request;
    // The rows before it need not have a partner: there is nothing that they could be asked for.
    if (type !== 'inner' && type !== 'left') return this.#subquery(query, outer);
    const scope = new Scope(left.tables, outer);
    const own: OuterQuery = {
      knows: (reference) => scope.knows(reference),
      column: (reference) => outerColumn(scope.column(reference), around, reference.location),
    };
    return this.#subquery(query, [...outer, own]);
  }

  /** Joins each row with those that a query yields for it. */
  #dependentJoin(source: JoinSource, left: BoundSource, right: BoundSource, around: Level): BoundSource {
    const { type, on, using } = source;
    if (using !== null) return this.#joinUsing(source, using, left, right, around);
    const width = left.node.columns.length;
    const tables = [...left.tables, ...right.tables.map((table) => ({ ...table, first: table.first + width }))];
    const apply = applyOf(type, left.node, right.node, around.id);
    if (on === null) return { node: apply, tables };
    const scope = new Scope(tables, this.#request.outer);
    if (type === 'left') {
      const condition = bindPredicate(on, this.#request.contextOf(scope, null));
      const holds = condition.kind === 'constant' && condition.cell === true;
      return { node: holds ? apply : { ...apply, condition }, tables };
    }
    const level = this.#level(apply, scope);
    const predicate = bindPredicate(on, this.#request.contextOf(scope, level));
    return { node: { kind: 'filter', input: level.node, predicate, columns: level.node.columns }, tables };
  }

  /** Adds the columns of a query without FROM, computed from each row before it. */
  #columnsBeside(
    { on }: JoinSource,
    { query: { body }, alias, columns: names, isValue, location }: SubquerySource,
    left: BoundSource,
  ): BoundSource {
    this.#count({ location });
    if (body.kind !== 'select') throw errorAt('REL_INTERNAL', 'a query row by row is a SELECT', location);
    const { outer, contextOf } = this.#request;
    const scope = new Scope(left.tables, outer);
    const level = this.#level(left.node, scope);
    level.spreads = true;
    const context = contextOf(scope, level);
    const outputs = body.projection.map((item, i): Output => {
      if (item.kind === 'star') throw errorAt('REL_INVALID', '* needs a FROM', item.location);
      return { name: names[i] ?? item.alias ?? nameOf(item.expression, i), bound: bindExpression(item.expression, context) };
    });
    const width = left.node.columns.length;
    const node = project(level.node, [...throughColumns(level.node).slice(0, width), ...outputs]);
    const columns = outputs.map(({ name, bound }): OutputType => {
      const masked = scope.maskedColumn(bound)?.masked;
      return {
        name,
        type: bound.type,
        wire: 'wire' in bound ? bound.wire : undefined,
        ...(masked === undefined ? {} : { masked }),
      };
    });
    const tables = [...left.tables, { name: alias, type: null, columns, first: width, isValue }];
    if (on === null) return { node, tables };
    const joined = new Scope(tables, outer);
    const above = this.#level(node, joined);
    const predicate = bindPredicate(on, contextOf(joined, above));
    return { node: { kind: 'filter', input: above.node, predicate, columns: above.node.columns }, tables };
  }

  #level(node: PlanNode, scope: Scope): Level {
    const noteMasked = (index: number, column: BoundQuery['columns'][number]): void => scope.addMasked(index, column);
    return { id: this.#request.environment.nextLevel(), node, noteMasked };
  }

  /** Columns of one name become one, in front of the others; an outer join takes it from the side that has a row. */
  #joinUsing(
    { type, location }: Extract<Source, { kind: 'join' }>,
    using: readonly string[] | 'natural',
    left: BoundSource,
    right: BoundSource,
    around: Level | null,
  ): BoundSource {
    const width = left.node.columns.length;
    const shifted = right.tables.map((table) => ({ ...table, first: table.first + width }));
    const [leftScope, rightScope] = [new Scope(left.tables, []), new Scope(shifted, [])];
    const names = using === 'natural' ? sharedNames(left.tables, right.tables) : using;
    const pairs = names.map((name) => {
      const reference: ColumnRef = { kind: 'column', table: null, name, location };
      return { name, left: leftScope.column(reference), right: rightScope.column(reference) };
    });
    const equal = pairs.map((pair): Bound => {
      const [l, r] = matchOperands(pair.left, pair.right, '=', location);
      return { kind: 'compare', op: '=', left: l, right: r, type: 'boolean' };
    });
    const condition: Bound | null =
      equal.length === 0 ? null : equal.length === 1 ? equal[0]! : { kind: 'and', operands: equal, type: 'boolean' };
    const join: PlanNode = around
      ? { ...applyOf(type, left.node, right.node, around.id), condition }
      : {
          kind: 'join',
          type,
          left: left.node,
          right: right.node,
          leftKeys: [],
          rightKeys: [],
          residual: condition,
          build: 'right',
          columns: [...left.node.columns, ...right.node.columns],
        };
    const merged = pairs.map((pair): Output => {
      if (type !== 'full') return { name: pair.name, bound: type === 'right' ? pair.right : pair.left };
      const { type: of, fit } = commonResult('USING', [pair.left, pair.right], location);
      return { name: pair.name, bound: { kind: 'coalesce', operands: [fit(pair.left), fit(pair.right)], type: of } };
    });
    const node = project(join, [...throughColumns(join), ...merged]);
    const columns = pairs.map(({ name, left: l, right: r }, i): OutputType => {
      const masked = leftScope.maskedColumn(l)?.masked ?? rightScope.maskedColumn(r)?.masked;
      return { name, type: merged[i]!.bound.type, ...(masked === undefined ? {} : { masked }) };
    });
    const own: ScopeTable = { name: null, type: null, columns, first: join.columns.length };
    const hideJoined = (table: ScopeTable): ScopeTable => ({
      ...table,
      hidden: new Set([
        ...(table.hidden ?? []),
        ...table.columns.flatMap(({ name }, position) => (names.includes(name) ? [position] : [])),
      ]),
    });
    return { node, tables: [own, ...left.tables.map(hideJoined), ...shifted.map(hideJoined)] };
  }

  /**
   * Each column has the type that holds the values of all rows. A row with a query about rows around it is the one row of
   * a level of its own, which that query grows; such rows and those between them are put together as UNION ALL does.
   */
  #values({ rows, location }: Extract<Source, { kind: 'values' }>): BoundSource {
    const { environment, contextOf, outer } = this.#request;
    const width = rows[0]!.length;
    if (rows.length > 1 || width > 0) this.#count({ location });
    const masks: OutputType['masked'][] = [];
    const inputs: PlanNode[] = [];
    const begin = (): { readonly scope: Scope; readonly level: Level; readonly context: ExpressionContext } => {
      const scope = new Scope([], outer);
      const level: Level = {
        id: environment.nextLevel(),
        node: oneRow,
        noteMasked: (index, column) => scope.addMasked(index, column),
      };
      return { scope, level, context: contextOf(scope, level) };
    };
    let own = begin();
    const bound = rows.map((row) => {
      const cells = row.map((each) => bindExpression(each, own.context));
      inputs.push(own.level.node);
      if (own.level.node !== oneRow) {
        for (const [c, cell] of cells.entries()) masks[c] ??= own.scope.maskedColumn(cell)?.masked;
        own = begin();
      }
      return cells;
    });
    const columns: OutputType[] = [];
    for (let c = 0; c < width; c++) {
      const cells = asIntervals(
        bound.map((row) => row[c]!),
        environment.catalogue,
      );
      const { type, fit } = commonResult('a column of VALUES', cells, location);
      const wire = commonWire(cells, environment.catalogue);
      for (const [r, row] of bound.entries()) row[c] = fit(cells[r]!);
      columns.push({ name: `column${c + 1}`, type, wire, ...(masks[c] === undefined ? {} : { masked: masks[c] }) });
    }
    const tables: ScopeTable[] = width === 0 ? [] : [{ name: null, type: null, columns, first: 0 }];
    const types = columns.map(({ name, type }) => ({ name, type: columnType(type) }));
    const parts: PlanNode[] = [];
    let plain: Bound[][] = [];
    const closePlain = (): void => {
      if (plain.length > 0) parts.push({ kind: 'values', rows: plain, columns: types });
      plain = [];
    };
    for (const [r, input] of inputs.entries()) {
      if (input === oneRow) plain.push(bound[r]!);
      else {
        closePlain();
        parts.push({ kind: 'project', input, expressions: bound[r]!, columns: types });
      }
    }
    closePlain();
    if (parts.length > tablesMax)
      throw errorAt(
        'REL_PARSE',
        `VALUES is in more than ${tablesMax} parts: each query about rows around it parts its rows`,
        location,
      );
    const node = parts.reduce(
      (left, right): PlanNode => ({ kind: 'set-operation', op: 'union all', left, right, columns: types }),
    );
    return { node, tables };
  }

  /** A column of bare NULLs keeps the type `null`, whatever type the query gives out. */
  #derivedTable({ node, columns }: BoundQuery, name: string | null): BoundSource {
    const { environment } = this.#request;
    return { node, tables: [{ name, type: null, columns, first: 0, isOffered: () => isOffered(node, environment) }] };
  }

  #count(source: { readonly location: Location }): void {
    if (++this.#tables > tablesMax) throw errorAt('REL_PARSE', `FROM joins more than ${tablesMax} tables`, source.location);
  }
}

/** Whether a query yields one row for each row before it, made of that row alone. */
function isRowByRow({ type, using }: JoinSource, { query }: SubquerySource): boolean {
  const { body } = query;
  return (
    type === 'inner' &&
    using === null &&
    body.kind === 'select' &&
    body.from.kind === 'values' &&
    body.from.rows.length === 1 &&
    body.from.rows[0]!.length === 0 &&
    body.where === null &&
    body.groupBy.length === 0 &&
    body.groupingSets === undefined &&
    body.having === null &&
    !body.distinct &&
    query.with.length === 0 &&
    query.limit === null &&
    query.offset === null &&
    query.orderBy.length === 0
  );
}

/** `a, b JOIN LATERAL (...) ON ...` as `(a, b) JOIN LATERAL (...) ON ...`, for the query may name columns of a, too. */
function besideAll(source: JoinSource): JoinSource {
  const { type, left, right, on, using } = source;
  if (type !== 'inner' || on !== null || using !== null || right.kind !== 'join') return source;
  if ((right.type !== 'inner' && right.type !== 'left') || right.using !== null || !hasLateral(right)) return source;
  return { ...right, left: besideAll({ ...source, left, right: right.left }) };
}

function applyOf(type: JoinNode['type'], input: PlanNode, query: PlanNode, level: number): ApplyNode {
  const columns = [...input.columns, ...query.columns];
  return { kind: 'apply', type: type === 'left' ? 'left' : 'inner', input, query, level, condition: null, columns };
}

function hasLateral(source: Source): boolean {
  if (source.kind === 'join') return hasLateral(source.left) || hasLateral(source.right);
  return source.kind === 'subquery' && source.lateral === true;
}

const oneRow: PlanNode = { kind: 'values', rows: [[]], columns: [] };

function numberRows(input: PlanNode): PlanNode {
  return { kind: 'number', input, whole: true, columns: [...input.columns, { name: '#row', type: 'integer' }] };
}

function outputOf({ columns }: PlanNode, index: number): Output {
  const { name, type } = columns[index]!;
  return { name, bound: { kind: 'column', index, name, type } };
}

/** Rows of both sides that have one value in the columns of these numbers, the second counted behind the left side. */
function joinedBy(
  type: JoinNode['type'],
  left: PlanNode,
  right: PlanNode,
  [ofLeft, ofRight]: readonly [number, number],
): JoinNode {
  const columns = [...left.columns, ...right.columns];
  const columnAt = (index: number): Bound => ({ kind: 'column', index, ...columns[index]! });
  const residual: Bound = { kind: 'compare', op: '=', left: columnAt(ofLeft), right: columnAt(ofRight), type: 'boolean' };
  return { kind: 'join', type, left, right, leftKeys: [], rightKeys: [], residual, build: 'right', columns };
}

/** Names that both sides have, in the order of the left; system columns don't count. */
function sharedNames(left: readonly ScopeTable[], right: readonly ScopeTable[]): readonly string[] {
  const namesOf = (tables: readonly ScopeTable[]): string[] =>
    tables.flatMap(({ columns, hidden, type }) =>
      columns.flatMap(({ name }, i) =>
        hidden?.has(i) || (type !== null && name !== 'id' && Object.hasOwn(systemColumns, name)) ? [] : [name],
      ),
    );
  const others = new Set(namesOf(right));
  return [...new Set(namesOf(left))].filter((name) => others.has(name));
}

/** Whether errors may name all types that a query reads. A served view was checked when it was bound. */
function isOffered(node: PlanNode, environment: Environment): boolean {
  if (node.kind === 'scan' && environment.catalog.type(node.type) && !environment.offers(node.type)) return false;
  return inputsOf(node).every((input) => isOffered(input, environment));
}

function bindGiven({ rows, tables }: Extract<Source, { kind: 'given' }>): BoundSource {
  const columns = tables.flatMap((table) => table.columns);
  let first = 0;
  const scoped = tables.map((table): ScopeTable => {
    const placed = { name: table.name, type: null, columns: table.columns, first };
    first += table.columns.length;
    return table.apart ? { ...placed, hidden: new Set(table.columns.keys()) } : placed;
  });
  return { node: { kind: 'working', table: rows, columns }, tables: scoped };
}
