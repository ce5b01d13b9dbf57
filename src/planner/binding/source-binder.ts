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
const fromTablesMax = 64;

export function bindSource(source: Source, request: SourceRequest): BoundSource {
  const boundFrom = new FromBinder(request).bind(source);
  const aliasesSeen = new Set<string>();
  for (const { name } of boundFrom.tables) {
    if (name !== null && aliasesSeen.has(name)) {
      throw errorAt(
        'REL_INVALID',
        `${JSON.stringify(name)} stands in FROM twice: give each an alias of its own`,
        source.location,
        'alias-twice',
      );
    }
    if (name !== null) aliasesSeen.add(name);
  }
  return boundFrom;
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

class FromBinder {
  readonly #sourceRequest: SourceRequest;
  #tableCount = 0;

  constructor(request: SourceRequest) {
    this.#sourceRequest = request;
  }

  bind(source: Source): BoundSource {
    switch (source.kind) {
      case 'table':
        this.#countTable(source);
        return this.#bindTable(source);
      case 'subquery': {
        this.#countTable(source);
        return this.#bindFromQuery(source, this.#sourceRequest.outer);
      }
      case 'values':
        return this.#bindValues(source);
      case 'given':
        return bindGivenRows(source);
      case 'join':
        return this.#bindJoin(source);
      case 'function':
        return this.#bindCall(source);
      case 'walk':
        return bindWalk(source, this.bind(source.input), this.#functionRequest(source.location));
      case 'entities':
        return bindEntities(source, this.bind(source.input), this.#functionRequest(source.location));
      case 'unwind':
        return bindUnwind(source, this.bind(source.input), this.#functionRequest(source.location));
      case 'graph-rows':
        this.#countTable(source);
        return bindGraphRows(source, this.#functionRequest(source.location));
    }
  }

  #bindCall(source: FunctionSource): BoundSource {
    return bindFunction(source, this.#functionRequest(source.location));
  }

  #functionRequest(location: Location): FunctionRequest {
    const { environment, contextOf } = this.#sourceRequest;
    return { environment, scan: (type) => this.#rankedScan(type, location), contextOf: (scope) => contextOf(scope, null) };
  }

  #bindTable(source: Extract<Source, { kind: 'table' }>): BoundSource {
    const { environment, names, outer } = this.#sourceRequest;
    const name = source.alias ?? splitTypeName(source.name)?.type ?? source.name;
    const commonTable = names.findLast((each) => each.name === source.name);
    if (commonTable) return this.#derivedTable(commonTable.bind(source.location), name);
    const typeDefinition = environment.catalog.type(source.name);
    if (typeDefinition) return this.#scanNode(source.name, typeDefinition, name);
    const servedColumns = environment.request.servedView?.(source.name);
    if (servedColumns) return this.#servedView(source.name, servedColumns, name);
    const viewDefinition = environment.request.views?.(source.name);
    // A view stands for itself: it sees no common table of the statement that names it.
    if (viewDefinition)
      return this.#derivedTable(this.#sourceRequest.bindQuery(environment.adopt(viewDefinition), [], outer), name);
    const virtualTable = environment.wide ? environment.request.virtual?.(source.name) : undefined;
    if (virtualTable) {
      const { node, tables } = this.#derivedTable({ node: virtualTable, columns: virtualTable.columns }, name);
      return { node, tables: tables.map((table) => ({ ...table, oid: virtualTable.oid })) };
    }
    const tableFunction = functionOfTable(source.name);
    if (tableFunction)
      return this.#bindCall({
        kind: 'function',
        name: tableFunction.name,
        arguments: [],
        alias: name,
        location: source.location,
      });
    throw this.#unknownTypeError(source.name, source.location);
  }

  #unknownTypeError(name: string, location: Location): Error {
    const { environment, names } = this.#sourceRequest;
    const offeredTypes = environment.catalog.types().flatMap((type) => (environment.offers(type.name) ? type.name : []));
    const typeGuess = didYouMean(name, [
      ...names.map((each) => each.name),
      ...(environment.request.viewNames?.() ?? []),
      ...offeredTypes,
    ]);
    return errorAt('REL_UNKNOWN_TYPE', `type ${JSON.stringify(name)} is not registered${typeGuess}`, location);
  }

  #servedView(view: string, columns: readonly PlanColumn[], name: string): BoundSource {
    const scanFacts = { type: view, primaryKey: null, masked: noMasks };
    const node: PlanNode = { kind: 'scan', ...scanFacts, columns, keys: null, zones: [], after: null };
    return this.#derivedTable({ node, columns }, name);
  }

  #rankedScan(name: string, location: Location): BoundSource {
    const definition = this.#sourceRequest.environment.catalog.type(name);
    if (!definition) throw this.#unknownTypeError(name, location);
    return this.#scanNode(name, definition, name);
  }

  /** `type` is the name that the statement gives it: another tenant's stands for that tenant's rows alone. */
  #scanNode(type: string, definition: TypeDefinition, name: string): BoundSource {
    this.#sourceRequest.environment.objectTypes.add(type);
    const maskedColumns = this.#sourceRequest.environment.masksOf(type);
    const columns = readableColumns(definition).map(
      ({ name: column, type: readableType }): PlanColumn => ({ name: column, type: readableType }),
    );
    const shownColumns: PlanColumn[] = [];
    const scanOutputs = columns.map((column): OutputType => {
      const maskKind = maskedColumns.get(column.name);
      if (maskKind === undefined) return column;
      return {
        ...column,
        masked: maskKind,
        shown: columns.length + shownColumns.push({ ...column, name: shownColumn(column.name) }) - 1,
      };
    });
    const node: PlanNode = {
      kind: 'scan',
      type,
      primaryKey: definition.primaryKey,
      masked: maskedColumns,
      columns: [...columns, ...shownColumns],
      keys: null,
      zones: [],
      after: this.#sourceRequest.after,
    };
    const isOffered = (): boolean => this.#sourceRequest.environment.offers(type);
    return { node, tables: [{ name, type, columns: scanOutputs, first: 0, isOffered }] };
  }

  #bindFromQuery({ query, alias, columns, isValue, location }: SubquerySource, outer: readonly OuterQuery[]): BoundSource {
    const boundFromQuery = this.#sourceRequest.bindQuery(query, this.#sourceRequest.names, outer);
    const { node, tables } = this.#derivedTable(renameColumns(boundFromQuery, alias ?? '', columns, location), alias);
    return { node, tables: tables.map((table) => ({ ...table, isValue })) };
  }

  /** The whole condition is the join's residual: the passes take it apart. */
  #bindJoin(joinSource: JoinSource): BoundSource {
    const source = pullLateralUp(joinSource);
    const leftSource = this.bind(source.left);
    const lateralQuery = source.right.kind === 'subquery' && source.right.lateral === true ? source.right : null;
    if (lateralQuery && isRowByRow(source, lateralQuery)) return this.#bindColumnsBeside(source, lateralQuery, leftSource);
    const aroundLevel = lateralQuery
      ? this.#sourceLevel(leftSource.node, new Scope(leftSource.tables, this.#sourceRequest.outer))
      : null;
    const rightSource =
      lateralQuery && aroundLevel
        ? this.#bindLateral(source.type, lateralQuery, leftSource, aroundLevel)
        : this.bind(source.right);
    if (aroundLevel && namesOuter(rightSource.node, aroundLevel.id))
      return this.#dependentJoin(source, leftSource, rightSource, aroundLevel);
    const leftWidth = leftSource.node.columns.length;
    const joinedTables = [
      ...leftSource.tables,
      ...rightSource.tables.map((table) => ({ ...table, first: table.first + leftWidth })),
    ];
    if (source.using !== null) return this.#joinUsing(source, source.using, leftSource, rightSource, null);
    const joinScope = new Scope(joinedTables, this.#sourceRequest.outer);
    const join: JoinNode = {
      kind: 'join',
      type: source.type,
      left: leftSource.node,
      right: rightSource.node,
      leftKeys: [],
      rightKeys: [],
      residual: null,
      build: 'right',
      columns: [...leftSource.node.columns, ...rightSource.node.columns],
    };
    if (source.on === null) return { node: join, tables: joinedTables };
    if (source.type !== 'inner')
      return { node: this.#outerJoin(source.on, { ...join, type: source.type }, leftSource, rightSource), tables: joinedTables };
    const joinLevel = this.#sourceLevel(join, joinScope);
    const joinCondition = bindPredicate(source.on, this.#sourceRequest.contextOf(joinScope, joinLevel));
    if (joinLevel.node === join) return { node: { ...join, residual: joinCondition }, tables: joinedTables };
    return {
      node: { kind: 'filter', input: joinLevel.node, predicate: joinCondition, columns: joinLevel.node.columns },
      tables: joinedTables,
    };
  }

  /**
   * Queries in ON may read both sides, and the pairs that ON keeps must be known before unmatched rows can be. So the rows of
   * both sides are numbered, the pairs that ON keeps are found by an inner join, and both sides are joined by the numbers of
   * those pairs.
   */
  #outerJoin(on: Expression, join: JoinNode, left: BoundSource, right: BoundSource): PlanNode {
    const [numberedLeft, numberedRight] = [numberRows(left.node), numberRows(right.node)];
    const [leftRowColumn, pairLeftWidth] = [left.node.columns.length, numberedLeft.columns.length];
    const pairColumns = [...numberedLeft.columns, ...numberedRight.columns];
    const pairsJoin: JoinNode = { ...join, type: 'inner', left: numberedLeft, right: numberedRight, columns: pairColumns };
    const pairTables = [...left.tables, ...right.tables.map((table) => ({ ...table, first: table.first + pairLeftWidth }))];
    const pairScope = new Scope(pairTables, this.#sourceRequest.outer);
    const pairLevel = this.#sourceLevel(pairsJoin, pairScope);
    const onCondition = bindPredicate(on, this.#sourceRequest.contextOf(pairScope, pairLevel));
    if (pairLevel.node === pairsJoin) {
      const asWritten = (column: BoundColumn): Bound => ({
        ...column,
        index: column.index - (column.index < pairLeftWidth ? 0 : 1),
      });
      return { ...join, residual: replaceColumns(onCondition, asWritten) };
    }
    const filtered: PlanNode = { kind: 'filter', input: pairLevel.node, predicate: onCondition, columns: pairLevel.node.columns };
    const pairNumbers = project(filtered, [
      outputOfColumn(filtered, leftRowColumn),
      outputOfColumn(filtered, pairColumns.length - 1),
    ]);
    const leftJoined = joinByRowNumbers(join.type === 'right' ? 'inner' : 'left', numberedLeft, pairNumbers, [
      leftRowColumn,
      pairLeftWidth,
    ]);
    const bothJoined = joinByRowNumbers(join.type, leftJoined, numberedRight, [
      pairLeftWidth + 1,
      leftJoined.columns.length + right.node.columns.length,
    ]);
    const outerOutputs = join.columns.map((_, i) =>
      outputOfColumn(bothJoined, i < leftRowColumn ? i : leftJoined.columns.length + i - leftRowColumn),
    );
    return project(bothJoined, outerOutputs);
  }

  /** A query that may name columns of the tables before it. */
  #bindLateral(type: JoinNode['type'], query: SubquerySource, left: BoundSource, aroundLevel: Level): BoundSource {
    this.#countTable(query);
    const { outer } = this.#sourceRequest;
    // The rows before it need not have a partner: there is nothing that they could be asked for.
    if (type !== 'inner' && type !== 'left') return this.#bindFromQuery(query, outer);
    const scope = new Scope(left.tables, outer);
    const lateralQuery: OuterQuery = {
      knows: (reference) => scope.knows(reference),
      column: (reference) => outerColumn(scope.column(reference), aroundLevel, reference.location),
    };
    return this.#bindFromQuery(query, [...outer, lateralQuery]);
  }

  /** Joins each row with those that a query yields for it. */
  #dependentJoin(source: JoinSource, left: BoundSource, right: BoundSource, aroundLevel: Level): BoundSource {
    const { type, on, using } = source;
    if (using !== null) return this.#joinUsing(source, using, left, right, aroundLevel);
    const leftWidth = left.node.columns.length;
    const dependentTables = [...left.tables, ...right.tables.map((table) => ({ ...table, first: table.first + leftWidth }))];
    const applyNode = applyNodeOf(type, left.node, right.node, aroundLevel.id);
    if (on === null) return { node: applyNode, tables: dependentTables };
    const scope = new Scope(dependentTables, this.#sourceRequest.outer);
    if (type === 'left') {
      const condition = bindPredicate(on, this.#sourceRequest.contextOf(scope, null));
      const isAlwaysTrue = condition.kind === 'constant' && condition.cell === true;
      return { node: isAlwaysTrue ? applyNode : { ...applyNode, condition }, tables: dependentTables };
    }
    const applyLevel = this.#sourceLevel(applyNode, scope);
    const predicate = bindPredicate(on, this.#sourceRequest.contextOf(scope, applyLevel));
    return {
      node: { kind: 'filter', input: applyLevel.node, predicate, columns: applyLevel.node.columns },
      tables: dependentTables,
    };
  }

  /** Adds the columns of a query without FROM, computed from each row before it. */
  #bindColumnsBeside(
    { on }: JoinSource,
    { query: { body }, alias, columns: names, isValue, location }: SubquerySource,
    left: BoundSource,
  ): BoundSource {
    this.#countTable({ location });
    if (body.kind !== 'select') throw errorAt('REL_INTERNAL', 'a query row by row is a SELECT', location);
    const { outer, contextOf } = this.#sourceRequest;
    const scope = new Scope(left.tables, outer);
    const level = this.#sourceLevel(left.node, scope);
    level.spreads = true;
    const context = contextOf(scope, level);
    const outputs = body.projection.map((item, i): Output => {
      if (item.kind === 'star') throw errorAt('REL_INVALID', '* needs a FROM', item.location);
      return { name: names[i] ?? item.alias ?? nameOf(item.expression, i), bound: bindExpression(item.expression, context) };
    });
    const leftWidth = left.node.columns.length;
    const node = project(level.node, [...throughColumns(level.node).slice(0, leftWidth), ...outputs]);
    const columns = outputs.map(({ name, bound }): OutputType => {
      const maskKind = scope.maskedColumn(bound)?.masked;
      return {
        name,
        type: bound.type,
        wire: 'wire' in bound ? bound.wire : undefined,
        ...(maskKind === undefined ? {} : { masked: maskKind }),
      };
    });
    const besideTables = [...left.tables, { name: alias, type: null, columns, first: leftWidth, isValue }];
    if (on === null) return { node, tables: besideTables };
    const besideScope = new Scope(besideTables, outer);
    const besideLevel = this.#sourceLevel(node, besideScope);
    const predicate = bindPredicate(on, contextOf(besideScope, besideLevel));
    return {
      node: { kind: 'filter', input: besideLevel.node, predicate, columns: besideLevel.node.columns },
      tables: besideTables,
    };
  }

  #sourceLevel(node: PlanNode, scope: Scope): Level {
    const noteMasked = (index: number, column: BoundQuery['columns'][number]): void => scope.addMasked(index, column);
    return { id: this.#sourceRequest.environment.nextLevel(), node, noteMasked };
  }

  /** Columns of one name become one, in front of the others; an outer join takes it from the side that has a row. */
  #joinUsing(
    { type, location }: Extract<Source, { kind: 'join' }>,
    using: readonly string[] | 'natural',
    left: BoundSource,
    right: BoundSource,
    around: Level | null,
  ): BoundSource {
    const leftWidth = left.node.columns.length;
    const shiftedRight = right.tables.map((table) => ({ ...table, first: table.first + leftWidth }));
    const [leftScope, rightScope] = [new Scope(left.tables, []), new Scope(shiftedRight, [])];
    const usingNames = using === 'natural' ? naturalJoinNames(left.tables, right.tables) : using;
    const usingPairs = usingNames.map((name) => {
      const reference: ColumnRef = { kind: 'column', table: null, name, location };
      return { name, left: leftScope.column(reference), right: rightScope.column(reference) };
    });
    const usingComparisons = usingPairs.map((usingPair): Bound => {
      const [l, r] = matchOperands(usingPair.left, usingPair.right, '=', location);
      return { kind: 'compare', op: '=', left: l, right: r, type: 'boolean' };
    });
    const usingCondition: Bound | null =
      usingComparisons.length === 0
        ? null
        : usingComparisons.length === 1
          ? usingComparisons[0]!
          : { kind: 'and', operands: usingComparisons, type: 'boolean' };
    const usingJoin: PlanNode = around
      ? { ...applyNodeOf(type, left.node, right.node, around.id), condition: usingCondition }
      : {
          kind: 'join',
          type,
          left: left.node,
          right: right.node,
          leftKeys: [],
          rightKeys: [],
          residual: usingCondition,
          build: 'right',
          columns: [...left.node.columns, ...right.node.columns],
        };
    const mergedOutputs = usingPairs.map((usingPair): Output => {
      if (type !== 'full') return { name: usingPair.name, bound: type === 'right' ? usingPair.right : usingPair.left };
      const { type: mergedType, fit } = commonResult('USING', [usingPair.left, usingPair.right], location);
      return {
        name: usingPair.name,
        bound: { kind: 'coalesce', operands: [fit(usingPair.left), fit(usingPair.right)], type: mergedType },
      };
    });
    const node = project(usingJoin, [...throughColumns(usingJoin), ...mergedOutputs]);
    const columns = usingPairs.map(({ name, left: l, right: r }, i): OutputType => {
      const usingMask = leftScope.maskedColumn(l)?.masked ?? rightScope.maskedColumn(r)?.masked;
      return { name, type: mergedOutputs[i]!.bound.type, ...(usingMask === undefined ? {} : { masked: usingMask }) };
    });
    const mergedTable: ScopeTable = { name: null, type: null, columns, first: usingJoin.columns.length };
    const hideJoined = (table: ScopeTable): ScopeTable => ({
      ...table,
      hidden: new Set([
        ...(table.hidden ?? []),
        ...table.columns.flatMap(({ name }, position) => (usingNames.includes(name) ? [position] : [])),
      ]),
    });
    return { node, tables: [mergedTable, ...left.tables.map(hideJoined), ...shiftedRight.map(hideJoined)] };
  }

  /**
   * Each column has the type that holds the values of all rows. A row with a query about rows around it is the one row of
   * a level of its own, which that query grows; such rows and those between them are put together as UNION ALL does.
   */
  #bindValues({ rows, location }: Extract<Source, { kind: 'values' }>): BoundSource {
    const { environment, contextOf, outer } = this.#sourceRequest;
    const valuesWidth = rows[0]!.length;
    if (rows.length > 1 || valuesWidth > 0) this.#countTable({ location });
    const valuesMasks: OutputType['masked'][] = [];
    const rowInputs: PlanNode[] = [];
    const beginRow = (): { readonly scope: Scope; readonly level: Level; readonly context: ExpressionContext } => {
      const scope = new Scope([], outer);
      const level: Level = {
        id: environment.nextLevel(),
        node: oneEmptyRow,
        noteMasked: (index, column) => scope.addMasked(index, column),
      };
      return { scope, level, context: contextOf(scope, level) };
    };
    let rowBinding = beginRow();
    const boundRows = rows.map((row) => {
      const rowCells = row.map((each) => bindExpression(each, rowBinding.context));
      rowInputs.push(rowBinding.level.node);
      if (rowBinding.level.node !== oneEmptyRow) {
        for (const [c, cell] of rowCells.entries()) valuesMasks[c] ??= rowBinding.scope.maskedColumn(cell)?.masked;
        rowBinding = beginRow();
      }
      return rowCells;
    });
    const columns: OutputType[] = [];
    for (let c = 0; c < valuesWidth; c++) {
      const rowCells = asIntervals(
        boundRows.map((row) => row[c]!),
        environment.catalogue,
      );
      const { type, fit } = commonResult('a column of VALUES', rowCells, location);
      const wire = commonWire(rowCells, environment.catalogue);
      for (const [r, row] of boundRows.entries()) row[c] = fit(rowCells[r]!);
      columns.push({ name: `column${c + 1}`, type, wire, ...(valuesMasks[c] === undefined ? {} : { masked: valuesMasks[c] }) });
    }
    const tables: ScopeTable[] = valuesWidth === 0 ? [] : [{ name: null, type: null, columns, first: 0 }];
    const valuesColumns = columns.map(({ name, type }) => ({ name, type: columnType(type) }));
    const valuesParts: PlanNode[] = [];
    let plainRows: Bound[][] = [];
    const closePlain = (): void => {
      if (plainRows.length > 0) valuesParts.push({ kind: 'values', rows: plainRows, columns: valuesColumns });
      plainRows = [];
    };
    for (const [r, input] of rowInputs.entries()) {
      if (input === oneEmptyRow) plainRows.push(boundRows[r]!);
      else {
        closePlain();
        valuesParts.push({ kind: 'project', input, expressions: boundRows[r]!, columns: valuesColumns });
      }
    }
    closePlain();
    if (valuesParts.length > fromTablesMax)
      throw errorAt(
        'REL_PARSE',
        `VALUES is in more than ${fromTablesMax} parts: each query about rows around it parts its rows`,
        location,
      );
    const node = valuesParts.reduce(
      (left, right): PlanNode => ({ kind: 'set-operation', op: 'union all', left, right, columns: valuesColumns }),
    );
    return { node, tables };
  }

  /** A column of bare NULLs keeps the type `null`, whatever type the query gives out. */
  #derivedTable({ node, columns }: BoundQuery, name: string | null): BoundSource {
    const { environment } = this.#sourceRequest;
    return { node, tables: [{ name, type: null, columns, first: 0, isOffered: () => isSourceOffered(node, environment) }] };
  }

  #countTable(source: { readonly location: Location }): void {
    if (++this.#tableCount > fromTablesMax)
      throw errorAt('REL_PARSE', `FROM joins more than ${fromTablesMax} tables`, source.location);
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
function pullLateralUp(besideJoin: JoinSource): JoinSource {
  const { type, left, right, on, using } = besideJoin;
  if (type !== 'inner' || on !== null || using !== null || right.kind !== 'join') return besideJoin;
  if ((right.type !== 'inner' && right.type !== 'left') || right.using !== null || !hasLateral(right)) return besideJoin;
  return { ...right, left: pullLateralUp({ ...besideJoin, left, right: right.left }) };
}

function applyNodeOf(type: JoinNode['type'], input: PlanNode, query: PlanNode, level: number): ApplyNode {
  const columns = [...input.columns, ...query.columns];
  return { kind: 'apply', type: type === 'left' ? 'left' : 'inner', input, query, level, condition: null, columns };
}

function hasLateral(source: Source): boolean {
  if (source.kind === 'join') return hasLateral(source.left) || hasLateral(source.right);
  return source.kind === 'subquery' && source.lateral === true;
}

const oneEmptyRow: PlanNode = { kind: 'values', rows: [[]], columns: [] };

function numberRows(input: PlanNode): PlanNode {
  return { kind: 'number', input, whole: true, columns: [...input.columns, { name: '#row', type: 'integer' }] };
}

function outputOfColumn({ columns }: PlanNode, index: number): Output {
  const { name, type } = columns[index]!;
  return { name, bound: { kind: 'column', index, name, type } };
}

/** Rows of both sides that have one value in the columns of these numbers, the second counted behind the left side. */
function joinByRowNumbers(
  type: JoinNode['type'],
  left: PlanNode,
  right: PlanNode,
  [ofLeft, ofRight]: readonly [number, number],
): JoinNode {
  const columns = [...left.columns, ...right.columns];
  const columnAt = (index: number): Bound => ({ kind: 'column', index, ...columns[index]! });
  const rowNumberMatch: Bound = { kind: 'compare', op: '=', left: columnAt(ofLeft), right: columnAt(ofRight), type: 'boolean' };
  return { kind: 'join', type, left, right, leftKeys: [], rightKeys: [], residual: rowNumberMatch, build: 'right', columns };
}

/** Names that both sides have, in the order of the left; system columns don't count. */
function naturalJoinNames(left: readonly ScopeTable[], right: readonly ScopeTable[]): readonly string[] {
  const namesOf = (tables: readonly ScopeTable[]): string[] =>
    tables.flatMap(({ columns, hidden, type }) =>
      columns.flatMap(({ name }, i) =>
        hidden?.has(i) || (type !== null && name !== 'id' && Object.hasOwn(systemColumns, name)) ? [] : [name],
      ),
    );
  const rightNames = new Set(namesOf(right));
  return [...new Set(namesOf(left))].filter((name) => rightNames.has(name));
}

/** Whether errors may name all types that a query reads. A served view was checked when it was bound. */
function isSourceOffered(node: PlanNode, environment: Environment): boolean {
  if (node.kind === 'scan' && environment.catalog.type(node.type) && !environment.offers(node.type)) return false;
  return inputsOf(node).every((input) => isSourceOffered(input, environment));
}

function bindGivenRows({ rows, tables }: Extract<Source, { kind: 'given' }>): BoundSource {
  const columns = tables.flatMap((table) => table.columns);
  let firstColumn = 0;
  const scopedTables = tables.map((table): ScopeTable => {
    const givenTable = { name: table.name, type: null, columns: table.columns, first: firstColumn };
    firstColumn += table.columns.length;
    return table.apart ? { ...givenTable, hidden: new Set(table.columns.keys()) } : givenTable;
  });
  return { node: { kind: 'working', table: rows, columns }, tables: scopedTables };
}
