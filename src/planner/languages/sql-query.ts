/**
 * Tokens to queries: SELECT with its clauses, set operations, common tables, ordering and paging. Source: specification,
 * "SQL dialect" statement shape and rules 2, 4, 5, 8, 9, 10, 11 and 13. Clauses stand in one order: FROM, AS OF, WHERE,
 * GROUP BY, HAVING, RANK BY, COMPUTE, ORDER BY, LIMIT, FACETS.
 */
import type {
  ColumnRef,
  CommonTable,
  Expression,
  OrderItem,
  Location,
  ProjectionItem,
  Query,
  QueryBody,
  RowCount,
  SetOperation,
  Select,
  Slot,
  Source,
} from '../syntax/statement.ts';
import { tenantTypeName } from '../../projections/access-paths.ts';
import { isTableFunction } from '../table-functions/all.ts';
import { readWindows } from './sql-window-clause.ts';
import { readArguments, readColumn, readExpression, readIntervalExpression } from './sql-expressions.ts';
import { noGroups, notConstant, readGroups } from './sql-groups.ts';
import { describeToken, itemsMax, type TokenCursor } from './token-cursor.ts';

export type SelectHead = Pick<Select, 'distinct' | 'projection' | 'from' | 'location'>;

export function readQuery(sqlCursor: TokenCursor): Query {
  const { location } = sqlCursor;
  const commonTables = sqlCursor.key() === 'WITH' ? readCommonTables(sqlCursor) : [];
  return readQueryTail(sqlCursor, commonTables, readSetOperations(sqlCursor), location);
}

/** The rest of a query whose SELECT and FROM were written as one keyword: `PATHS_BETWEEN('a', 'b') LIMIT 5`. */
export function readQueryOver(sqlCursor: TokenCursor, sourceOver: Source): Query {
  const starProjection: ProjectionItem[] = [{ kind: 'star', table: null, location: sourceOver.location }];
  const selectOver = readSelectTail(sqlCursor, {
    distinct: false,
    projection: starProjection,
    from: sourceOver,
    location: sourceOver.location,
  });
  return readQueryTail(sqlCursor, [], selectOver, sourceOver.location);
}

function readQueryTail(sqlCursor: TokenCursor, commonTables: CommonTable[], queryBody: QueryBody, location: Location): Query {
  sqlCursor.aggregates = 'allowed';
  const orderItems = sqlCursor.acceptPair('ORDER', 'BY') ? readOrder(sqlCursor) : [];
  sqlCursor.aggregates = 'refused';
  let rowLimit = readLimit(sqlCursor);
  let skippedRows: RowCount | null = null;
  if (rowLimit && sqlCursor.key() === ',') {
    sqlCursor.wideOnly("LIMIT m, n (page with LIMIT n AFTER '<cursor>')");
    sqlCursor.accept(',');
    skippedRows = rowLimit;
    rowLimit = readRowCount(sqlCursor);
  }
  const isRanked = queryBody.kind === 'select' && queryBody.rankBy.length > 0;
  const afterCursor =
    rowLimit && sqlCursor.key() === 'AFTER' ? readAfterCursor(sqlCursor, orderItems.length > 0 || isRanked) : null;
  if (sqlCursor.key() === 'OFFSET') sqlCursor.wideOnly("OFFSET (page with LIMIT n AFTER '<cursor>')");
  if (skippedRows && sqlCursor.key() === 'OFFSET') throw sqlCursor.error('LIMIT m, n and OFFSET say the same: take one');
  const rowOffset = skippedRows ?? (sqlCursor.accept('OFFSET') ? readRowCount(sqlCursor) : null);
  if (rowOffset && !skippedRows && sqlCursor.dialect === 'wide' && !sqlCursor.accept('ROWS')) sqlCursor.accept('ROW');
  if (rowOffset && afterCursor) throw sqlCursor.error('AFTER and OFFSET are two ways to page: take one', rowOffset.location);
  if (rowOffset && rowLimit === null) rowLimit = readLimit(sqlCursor);
  if (sqlCursor.key() === 'FETCH') {
    sqlCursor.wideOnly('FETCH (use LIMIT)');
    if (rowLimit) throw sqlCursor.error('LIMIT and FETCH say the same: take one');
    rowLimit = readFetch(sqlCursor);
  }
  const facetColumns: ColumnRef[] = [];
  if (sqlCursor.accept('FACETS')) {
    do facetColumns.push(readColumn(sqlCursor));
    while (sqlCursor.accept(','));
  }
  return {
    with: commonTables,
    body: queryBody,
    asOf: null,
    orderBy: orderItems,
    limit: rowLimit,
    offset: rowOffset,
    after: afterCursor,
    facets: facetColumns,
    location,
  };
}

/** LIMIT n; LIMIT ALL is none. */
function readLimit(sqlCursor: TokenCursor): RowCount | null {
  if (!sqlCursor.accept('LIMIT') || sqlCursor.accept('ALL')) return null;
  return readRowCount(sqlCursor);
}

const rowCountOperators: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%', '::', '||']);

function readRowCount(sqlCursor: TokenCursor): RowCount {
  const isWide = sqlCursor.dialect === 'wide';
  if (sqlCursor.isLiteral('i') && !(isWide && rowCountOperators.has(sqlCursor.key(1))))
    return sqlCursor.literal('i', 'a number of rows');
  if (isWide) return { location: sqlCursor.location, expression: readExpression(sqlCursor) };
  const { token: rowCountToken } = sqlCursor;
  const rowCountReason =
    rowCountToken.kind !== 'literal'
      ? sqlCursor.isName()
        ? 'no-such-column-here'
        : 'syntax'
      : rowCountToken.text === 's'
        ? 'text-form'
        : 'types-differ';
  throw sqlCursor.error(`expected a number of rows, found ${describeToken(rowCountToken)}`, sqlCursor.location, rowCountReason);
}

/** FETCH FIRST n ROWS ONLY. */
function readFetch(sqlCursor: TokenCursor): RowCount {
  sqlCursor.expect('FETCH');
  if (!sqlCursor.accept('FIRST')) sqlCursor.expect('NEXT');
  const { location } = sqlCursor;
  const isOneRow = sqlCursor.key() === 'ROW' || sqlCursor.key() === 'ROWS';
  const fetchLimit: RowCount = isOneRow
    ? { expression: { kind: 'constant', cell: 1n, location }, location }
    : readRowCount(sqlCursor);
  if (!sqlCursor.accept('ROWS')) sqlCursor.expect('ROW');
  if (sqlCursor.key() === 'WITH') throw sqlCursor.notImplemented('WITH TIES');
  sqlCursor.expect('ONLY');
  return fetchLimit;
}

const writeKeywords: ReadonlySet<string> = new Set(['INSERT', 'UPDATE', 'DELETE']);

export function readCommonTables(sqlCursor: TokenCursor): CommonTable[] {
  sqlCursor.expect('WITH');
  const isRecursive = sqlCursor.accept('RECURSIVE');
  const commonTables: CommonTable[] = [];
  do {
    const commonTableName = sqlCursor.name('the name of a common table');
    const commonColumns = readColumnNames(sqlCursor);
    sqlCursor.expect('AS');
    // Whether its rows are kept is decided by what reads them.
    const isMaterialized =
      sqlCursor.key() === 'MATERIALIZED' || (sqlCursor.key() === 'NOT' && sqlCursor.key(1) === 'MATERIALIZED');
    if (isMaterialized) {
      sqlCursor.wideOnly('AS [NOT] MATERIALIZED');
      sqlCursor.accept('NOT');
      sqlCursor.next();
    }
    sqlCursor.expect('(');
    if (writeKeywords.has(sqlCursor.key())) throw sqlCursor.notImplemented(`${sqlCursor.key()} in WITH`);
    commonTables.push({ name: commonTableName, columns: commonColumns, recursive: isRecursive, query: sqlCursor.subquery() });
    sqlCursor.expect(')');
  } while (sqlCursor.accept(','));
  return commonTables;
}

/** UNION and EXCEPT from left to right; INTERSECT binds tighter. */
function readSetOperations(sqlCursor: TokenCursor): QueryBody {
  let leftArm = readIntersections(sqlCursor);
  while (sqlCursor.key() === 'UNION' || sqlCursor.key() === 'EXCEPT') {
    const { location } = sqlCursor;
    const isUnion = sqlCursor.next().key === 'UNION';
    const keepsDuplicates = readWhetherAll(sqlCursor);
    if (keepsDuplicates && !isUnion) sqlCursor.wideOnly('EXCEPT ALL', location);
    const setOp = isUnion ? (keepsDuplicates ? 'union all' : 'union') : keepsDuplicates ? 'except all' : 'except';
    leftArm = combineArms(sqlCursor, setOp, leftArm, readIntersections(sqlCursor), location);
  }
  return leftArm;
}

function readIntersections(sqlCursor: TokenCursor): QueryBody {
  let leftArm = readSetArm(sqlCursor);
  while (sqlCursor.key() === 'INTERSECT') {
    const { location } = sqlCursor;
    sqlCursor.next();
    const keepsDuplicates = readWhetherAll(sqlCursor);
    if (keepsDuplicates) sqlCursor.wideOnly('INTERSECT ALL', location);
    leftArm = combineArms(sqlCursor, keepsDuplicates ? 'intersect all' : 'intersect', leftArm, readSetArm(sqlCursor), location);
  }
  return leftArm;
}

/** ALL, or DISTINCT, which says what holds without it. */
function readWhetherAll(sqlCursor: TokenCursor): boolean {
  if (sqlCursor.accept('ALL')) return true;
  if (sqlCursor.dialect === 'wide') sqlCursor.accept('DISTINCT');
  return false;
}

function combineArms(
  sqlCursor: TokenCursor,
  op: SetOperation,
  leftArm: QueryBody,
  rightArm: QueryBody,
  location: Location,
): QueryBody {
  sqlCursor.countLink();
  for (const setArm of [leftArm, rightArm]) {
    if (setArm.kind === 'select' && setArm.from.kind === 'function') throw functionStandsAlone(sqlCursor, setArm.from.location);
  }
  return { kind: 'set-operation', op, left: leftArm, right: rightArm, location };
}

function readSetArm(sqlCursor: TokenCursor): QueryBody {
  if (sqlCursor.key() === 'VALUES' && sqlCursor.key(1) === '(') return readValues(sqlCursor);
  if (sqlCursor.key() !== '(') return readSelect(sqlCursor);
  return sqlCursor.nest(() => {
    sqlCursor.next();
    const { location } = sqlCursor;
    const commonTables = sqlCursor.key() === 'WITH' && sqlCursor.dialect === 'wide' ? readCommonTables(sqlCursor) : [];
    const armBody = readSetOperations(sqlCursor);
    if (commonTables.length === 0 && (sqlCursor.dialect !== 'wide' || sqlCursor.key() === ')')) {
      sqlCursor.expect(')');
      return armBody;
    }
    // An arm with clauses of its own is a query that the arm reads.
    const armQuery = readQueryTail(sqlCursor, commonTables, armBody, location);
    sqlCursor.expect(')');
    const armSource: Source = { kind: 'subquery', query: armQuery, alias: '#arm', columns: [], location };
    return { ...emptySelect, projection: [{ kind: 'star', table: null, location }], from: armSource, location };
  });
}

/** VALUES (1, 'a'), (2, 'b'): the same as SELECT * over these rows. */
function readValues(sqlCursor: TokenCursor): Select {
  const { location } = sqlCursor;
  sqlCursor.expect('VALUES');
  const valueRows: Expression[][] = [];
  do {
    sqlCursor.expect('(');
    const valueRow: Expression[] = [];
    do valueRow.push(readExpression(sqlCursor));
    while (sqlCursor.accept(','));
    sqlCursor.expect(')');
    if (valueRow.length !== (valueRows[0] ?? valueRow).length)
      throw sqlCursor.error('the rows of VALUES have one number of values');
    valueRows.push(valueRow);
  } while (sqlCursor.accept(','));
  const valuesSource: Source = { kind: 'values', rows: valueRows, location };
  return { ...emptySelect, projection: [{ kind: 'star', table: null, location }], from: valuesSource, location };
}

const emptySelect = {
  kind: 'select',
  distinct: false,
  where: null,
  groupBy: [],
  window: null,
  having: null,
  rankBy: [],
  compute: [],
} as const;

/** Consumes ALL behind SELECT, unless it is a column of that name. */
function skipAll(sqlCursor: TokenCursor): void {
  const lexemeBehindAll = sqlCursor.peek(1);
  const isColumnAll =
    lexemeBehindAll.key === ',' ||
    lexemeBehindAll.key === '.' ||
    lexemeBehindAll.key === 'AS' ||
    lexemeBehindAll.key === 'FROM' ||
    lexemeBehindAll.kind === 'end';
  if (
    sqlCursor.key() === 'ALL' &&
    !isColumnAll &&
    (!lexemeBehindAll.reserved || lexemeBehindAll.kind === 'literal' || /^[*(+-]|CASE|LEFT|RIGHT|NOT/.test(lexemeBehindAll.key))
  )
    sqlCursor.next();
}

function readSelect(sqlCursor: TokenCursor): Select {
  const { location } = sqlCursor;
  sqlCursor.expect('SELECT');
  sqlCursor.windows = null;
  let isDistinct = sqlCursor.accept('DISTINCT');
  const distinctOn = isDistinct && sqlCursor.dialect === 'wide' && sqlCursor.key() === 'ON' ? readDistinctOn(sqlCursor) : null;
  if (distinctOn) isDistinct = false;
  else if (!isDistinct) skipAll(sqlCursor);
  sqlCursor.aggregates = 'allowed';
  // EXISTS needs no column.
  const isBareFrom = sqlCursor.key() === 'FROM' && sqlCursor.dialect === 'wide' && sqlCursor.inSubquery;
  const selectProjection = [isBareFrom ? ({ kind: 'star', table: null, location } as const) : readProjectionItem(sqlCursor)];
  while (sqlCursor.accept(',')) selectProjection.push(readProjectionItem(sqlCursor));
  sqlCursor.aggregates = 'refused';
  if (!sqlCursor.accept('FROM')) {
    if (!isSelectEnd(sqlCursor)) throw sqlCursor.expectedError('FROM');
    return readSelectTail(sqlCursor, {
      distinct: isDistinct,
      projection: selectProjection,
      from: { kind: 'values', rows: [[]], location },
      location,
    });
  }
  const selectSource = readSources(sqlCursor);
  if (selectSource.kind === 'function') {
    const onlyItem = selectProjection.length === 1 ? selectProjection[0]! : null;
    const isWholeStar = onlyItem?.kind === 'star' && onlyItem.table === null && !isDistinct;
    if (!isWholeStar || sqlCursor.inSubquery) throw functionStandsAlone(sqlCursor, selectSource.location);
  }
  return readSelectTail(sqlCursor, {
    distinct: isDistinct,
    ...(distinctOn && { distinctOn }),
    projection: selectProjection,
    from: selectSource,
    location,
  });
}

/** DISTINCT ON (a, b), behind its first word. */
function readDistinctOn(sqlCursor: TokenCursor): readonly Expression[] {
  sqlCursor.expect('ON');
  sqlCursor.expect('(');
  const distinctExpressions = [readExpression(sqlCursor)];
  while (sqlCursor.accept(',')) distinctExpressions.push(readExpression(sqlCursor));
  sqlCursor.expect(')');
  return distinctExpressions;
}

function readSelectTail(sqlCursor: TokenCursor, selectHead: SelectHead): Select {
  if (isAsOf(sqlCursor)) {
    readAsOf(sqlCursor);
    if (isAsOf(sqlCursor)) throw sqlCursor.error('a statement has one AS OF; combine the axes with explicit predicates');
  }
  if (sqlCursor.asOf !== null && /^(,|JOIN|INNER|LEFT|RIGHT|FULL|CROSS|NATURAL)$/.test(sqlCursor.key()))
    throw sqlCursor.error(oneInstantError);
  const whereCondition = sqlCursor.accept('WHERE') ? readExpression(sqlCursor) : null;
  const groupClause = sqlCursor.acceptPair('GROUP', 'BY') ? readGroups(sqlCursor) : noGroups;
  sqlCursor.aggregates = 'allowed';
  const havingCondition = sqlCursor.accept('HAVING') ? readExpression(sqlCursor) : null;
  if (sqlCursor.dialect === 'wide' && sqlCursor.key() === 'WINDOW' && sqlCursor.accept('WINDOW'))
    sqlCursor.windows = readWindows(sqlCursor, { read: readExpression, order: sqlCursor.readOrder });
  sqlCursor.aggregates = 'functions';
  const rankExpressions: Expression[] = [];
  if (sqlCursor.acceptPair('RANK', 'BY')) {
    do rankExpressions.push(readExpression(sqlCursor));
    while (sqlCursor.accept(','));
  }
  const computedLabels: { label: string; expression: Expression }[] = [];
  if (sqlCursor.accept('COMPUTE')) {
    do {
      const computeLabel = sqlCursor.name('a label');
      sqlCursor.expect('AS');
      computedLabels.push({ label: computeLabel, expression: readExpression(sqlCursor) });
    } while (sqlCursor.accept(','));
  }
  sqlCursor.aggregates = 'refused';
  return {
    kind: 'select',
    ...selectHead,
    where: whereCondition,
    ...groupClause,
    having: havingCondition,
    rankBy: rankExpressions,
    compute: computedLabels,
  };
}

export function readProjectionItem(sqlCursor: TokenCursor): ProjectionItem {
  const { location } = sqlCursor;
  if (sqlCursor.accept('*')) return { kind: 'star', table: null, location };
  if (sqlCursor.isName() && sqlCursor.key(1) === '.' && sqlCursor.key(2) === '*') {
    const starTable = sqlCursor.name('a table name');
    sqlCursor.next();
    sqlCursor.next();
    return { kind: 'star', table: starTable, location };
  }
  const projectedExpression = readExpression(sqlCursor);
  const itemAlias = sqlCursor.accept('AS') ? readLabel(sqlCursor) : sqlCursor.isName() ? sqlCursor.name('an alias') : null;
  return { kind: 'expression', expression: projectedExpression, alias: itemAlias, location };
}

/** Behind AS any word is a name. */
function readLabel(sqlCursor: TokenCursor): string {
  const { token: labelToken } = sqlCursor;
  return sqlCursor.dialect === 'wide' && labelToken.kind === 'word' && labelToken.reserved
    ? sqlCursor.next().text
    : sqlCursor.name('an alias');
}

/** Whether the next token may follow a SELECT without FROM. */
function isSelectEnd(sqlCursor: TokenCursor): boolean {
  const { kind, key } = sqlCursor.token;
  if ((sqlCursor.writes && (key === 'ON' || key === 'RETURNING')) || sqlCursor.locks()) return true;
  return kind === 'end' || /^([);]|WHERE|GROUP|HAVING|ORDER|LIMIT|UNION|INTERSECT|EXCEPT)$/.test(key) || key === 'OFFSET';
}

/** Tables side by side, each with its joins. */
export function readSources(sqlCursor: TokenCursor): Source {
  let joinedSource = readSource(sqlCursor);
  while (sqlCursor.key() === ',') {
    const { location } = sqlCursor;
    sqlCursor.next();
    sqlCursor.countLink();
    const nextSource = readSource(sqlCursor);
    for (const joinSide of [joinedSource, nextSource])
      if (joinSide.kind === 'function') throw functionStandsAlone(sqlCursor, joinSide.location);
    joinedSource = { kind: 'join', type: 'inner', left: joinedSource, right: nextSource, on: null, using: null, location };
  }
  return joinedSource;
}

function readSource(sqlCursor: TokenCursor): Source {
  let joinedSource = readTable(sqlCursor);
  for (;;) {
    const { location } = sqlCursor;
    const isNatural =
      sqlCursor.key() === 'NATURAL' && /^(JOIN|INNER|LEFT|RIGHT|FULL)$/.test(sqlCursor.key(1)) && sqlCursor.accept('NATURAL');
    const isCross = !isNatural && sqlCursor.acceptPair('CROSS', 'JOIN');
    const sourceJoinType = isCross ? 'inner' : readJoinType(sqlCursor);
    if (sourceJoinType === null) break;
    sqlCursor.countLink();
    const joinedTable = readTable(sqlCursor);
    for (const joinSide of [joinedSource, joinedTable])
      if (joinSide.kind === 'function') throw functionStandsAlone(sqlCursor, joinSide.location);
    const usingColumns = isNatural ? 'natural' : isCross ? null : readUsingColumns(sqlCursor);
    const isUnconditional = isCross || usingColumns !== null;
    if (!isUnconditional && isAsOf(sqlCursor)) throw sqlCursor.error(oneInstantError);
    if (!isUnconditional) sqlCursor.expect('ON');
    joinedSource = {
      kind: 'join',
      type: sourceJoinType,
      left: joinedSource,
      right: joinedTable,
      on: isUnconditional ? null : readExpression(sqlCursor),
      using: usingColumns,
      location,
    };
  }
  if (sqlCursor.key() === 'FOR' && !sqlCursor.locks())
    throw sqlCursor.notImplemented("FOR SYSTEM_TIME (write AS OF SYSTEM TIME '<timestamp>')");
  return joinedSource;
}

function readUsingColumns(sqlCursor: TokenCursor): readonly string[] | null {
  if (!sqlCursor.accept('USING')) return null;
  sqlCursor.expect('(');
  const usingNames: string[] = [];
  do usingNames.push(sqlCursor.name('a column name'));
  while (sqlCursor.accept(','));
  sqlCursor.expect(')');
  return usingNames;
}

function readJoinType(sqlCursor: TokenCursor): 'inner' | 'left' | 'right' | 'full' | null {
  if (sqlCursor.accept('JOIN')) return 'inner';
  if (sqlCursor.accept('INNER')) {
    sqlCursor.expect('JOIN');
    return 'inner';
  }
  const joinKey = sqlCursor.key();
  const outerJoinType = joinKey === 'LEFT' ? 'left' : joinKey === 'RIGHT' ? 'right' : joinKey === 'FULL' ? 'full' : null;
  if (outerJoinType === null) return null;
  sqlCursor.next();
  sqlCursor.accept('OUTER');
  sqlCursor.expect('JOIN');
  return outerJoinType;
}

export function readTable(sqlCursor: TokenCursor): Source {
  const { location } = sqlCursor;
  if (sqlCursor.key() === '(' && !opensSubquery(sqlCursor)) {
    return sqlCursor.nest(() => {
      sqlCursor.expect('(');
      const bracketedSource = readSources(sqlCursor);
      sqlCursor.expect(')');
      return bracketedSource;
    });
  }
  const isLateral =
    sqlCursor.dialect === 'wide' &&
    sqlCursor.key() === 'LATERAL' &&
    /^(\(|\w+)$/.test(sqlCursor.key(1)) &&
    sqlCursor.accept('LATERAL');
  if (sqlCursor.accept('(')) {
    const tableSubquery = sqlCursor.subquery();
    sqlCursor.expect(')');
    const tableAlias = readAlias(sqlCursor);
    const lateralFlag = isLateral ? { lateral: true as const } : {};
    return {
      kind: 'subquery',
      query: tableSubquery,
      alias: tableAlias,
      columns: tableAlias === null ? [] : readColumnNames(sqlCursor),
      ...lateralFlag,
      location,
    };
  }
  const isCatalogueSchema =
    (sqlCursor.key() === 'PG_CATALOG' || sqlCursor.key() === 'INFORMATION_SCHEMA') &&
    sqlCursor.key(1) === '.' &&
    sqlCursor.key(3) === '(';
  if (isCatalogueSchema && sqlCursor.dialect === 'wide') {
    sqlCursor.next();
    sqlCursor.next();
  }
  const tableName = sqlCursor.name('a type, a function or a subquery');
  // Any other function is one row of its value, or the rows of its set.
  if (sqlCursor.key() === '(' && sqlCursor.dialect === 'wide' && !isTableFunction(tableName.toUpperCase())) {
    const catalogueRelation = Object.hasOwn(relationsByFunction, tableName.toUpperCase())
      ? relationsByFunction[tableName.toUpperCase()]
      : undefined;
    if (catalogueRelation === undefined) return readSetFunction(sqlCursor, tableName.toUpperCase(), location);
    if (readArguments(sqlCursor).length > 0) throw sqlCursor.error(`${tableName} takes no arguments`, location);
    const tableAlias = readAlias(sqlCursor) ?? tableName;
    return { kind: 'table', name: tenantTypeName('pg_catalog', catalogueRelation), alias: tableAlias, location };
  }
  if (sqlCursor.key() === '(') {
    const tableArguments = readArguments(sqlCursor);
    return { kind: 'function', name: tableName.toUpperCase(), arguments: tableArguments, alias: readAlias(sqlCursor), location };
  }
  if (!sqlCursor.accept('.')) return { kind: 'table', name: tableName, alias: readAlias(sqlCursor), location };
  const tenantType = sqlCursor.name('a type of that tenant');
  return { kind: 'table', name: tenantTypeName(tableName, tenantType), alias: readAlias(sqlCursor), location };
}

/** Functions that yield the rows of a catalogue relation. */
const relationsByFunction: Readonly<Record<string, string>> = {
  PG_SHOW_ALL_SETTINGS: 'pg_settings',
  PG_LOCK_STATUS: 'pg_locks',
  PG_TIMEZONE_NAMES: 'pg_timezone_names',
  PG_AVAILABLE_EXTENSIONS: 'pg_available_extensions',
  PG_CURSOR: 'pg_cursors',
  PG_PREPARED_STATEMENT: 'pg_prepared_statements',
  PG_PREPARED_XACT: 'pg_prepared_xacts',
};

/** Sets of records of two fields: the set of each of them. */
const columnSetFunctions: Readonly<Record<string, readonly (readonly [set: string, column: string])[]>> = {
  _PG_EXPANDARRAY: [
    ['UNNEST', 'x'],
    ['_ORDINALITY', 'n'],
  ],
  PG_PARTITION_TREE: [
    ['_NO_OIDS', 'relid'],
    ['_NO_OIDS', 'parentrelid'],
    ['_NO_FLAGS', 'isleaf'],
    ['_NO_OIDS', 'level'],
  ],
  JSON_EACH: [
    ['JSON_OBJECT_KEYS', 'key'],
    ['_JSON_VALUES', 'value'],
  ],
  JSONB_EACH: [
    ['JSON_OBJECT_KEYS', 'key'],
    ['_JSON_VALUES', 'value'],
  ],
  JSON_EACH_TEXT: [
    ['JSON_OBJECT_KEYS', 'key'],
    ['_JSON_TEXTS', 'value'],
  ],
  JSONB_EACH_TEXT: [
    ['JSON_OBJECT_KEYS', 'key'],
    ['_JSON_TEXTS', 'value'],
  ],
};

/** `unnest(x) WITH ORDINALITY AS t(a, n)`: the rows of a query that yields them, which may name the sources before it. */
function readSetFunction(sqlCursor: TokenCursor, name: string, location: Location): Source {
  const setArguments = readArguments(sqlCursor);
  const setCall = (of: string): Expression => ({
    kind: 'call',
    name: of,
    arguments: of.endsWith('_ORDINALITY') ? setArguments.slice(0, 1) : setArguments,
    location,
  });
  const isNumbered = sqlCursor.key() === 'WITH' && sqlCursor.key(1) === 'ORDINALITY';
  const isOfElements = /^JSONB?_ARRAY_ELEMENTS(_TEXT)?$/.test(name);
  if (isNumbered) {
    if (name !== 'UNNEST' && !isOfElements) throw sqlCursor.notImplemented(`${name} WITH ORDINALITY`);
    sqlCursor.next();
    sqlCursor.next();
  }
  const setAlias = readAlias(sqlCursor);
  const setColumns = setAlias === null ? [] : readColumnNames(sqlCursor);
  const setItem = (expression: Expression, column: string): ProjectionItem => ({
    kind: 'expression',
    expression,
    alias: column,
    location,
  });
  const ordinalityFunction = isOfElements ? '_JSON_ORDINALITY' : '_ORDINALITY';
  const columnSets = Object.hasOwn(columnSetFunctions, name) ? columnSetFunctions[name] : undefined;
  const setProjection = columnSets
    ? columnSets.map(([of, column]) => setItem(setCall(of), column))
    : [
        setItem(setCall(name), isOfElements ? 'value' : (setAlias ?? name.toLowerCase())),
        ...(isNumbered ? [setItem(setCall(ordinalityFunction), 'ordinality')] : []),
      ];
  const namedProjection = setProjection.map((projectedSet, i) =>
    projectedSet.kind === 'expression' && setColumns[i] !== undefined ? { ...projectedSet, alias: setColumns[i] } : projectedSet,
  );
  if (setColumns.length > namedProjection.length)
    throw sqlCursor.error(`${name} has ${namedProjection.length} columns`, location);
  const setSelect: Select = {
    ...emptySelect,
    projection: namedProjection,
    from: { kind: 'values', rows: [[]], location },
    location,
  };
  const setQuery: Query = {
    with: [],
    body: setSelect,
    asOf: null,
    orderBy: [],
    limit: null,
    offset: null,
    after: null,
    facets: [],
    location,
  };
  const singleValueFlag = namedProjection.length === 1 ? { isValue: true as const } : {};
  return {
    kind: 'subquery',
    query: setQuery,
    alias: setAlias ?? name.toLowerCase(),
    columns: [],
    lateral: true,
    ...singleValueFlag,
    location,
  };
}

/** Whether the brackets hold a query; they may also hold joined tables. */
function opensSubquery(sqlCursor: TokenCursor): boolean {
  let lexemesAhead = 1;
  while (sqlCursor.key(lexemesAhead) === '(') lexemesAhead++;
  const keyBehindBrackets = sqlCursor.key(lexemesAhead);
  return (
    keyBehindBrackets === 'SELECT' ||
    keyBehindBrackets === 'WITH' ||
    (keyBehindBrackets === 'VALUES' && sqlCursor.key(lexemesAhead + 1) === '(') ||
    sqlCursor.peek(lexemesAhead).reserved
  );
}

/** (a, b) behind an alias. */
export function readColumnNames(sqlCursor: TokenCursor): string[] {
  const columnNames: string[] = [];
  if (!sqlCursor.accept('(')) return columnNames;
  do columnNames.push(sqlCursor.name('a column name'));
  while (sqlCursor.accept(','));
  sqlCursor.expect(')');
  return columnNames;
}

/** Words that begin what may follow a source: names everywhere else, no aliases here unless AS says so. */
const nonAliasWords: ReadonlySet<string> = new Set(
  'COMPUTE FACETS OFFSET FETCH FOR WINDOW REFRESH CROSS NATURAL USING AFTER'.split(' '),
);

export function readAlias(sqlCursor: TokenCursor): string | null {
  if (sqlCursor.key() === 'AS') {
    if (isAsOf(sqlCursor)) return null;
    sqlCursor.next();
    return sqlCursor.name('an alias');
  }
  if (!sqlCursor.isName() || nonAliasWords.has(sqlCursor.key())) return null;
  if (sqlCursor.key() === 'RANK' && sqlCursor.key(1) === 'BY') return null;
  return sqlCursor.name('an alias');
}

const oneInstantError =
  'AS OF holds for the whole statement, so that all of its tables are read at one instant: write it once, behind the last ' +
  'table of FROM; for another instant of one table, put conditions on its valid_from and valid_to (system_from and system_to)';

/** `AS OF '…'`, `AS OF SYSTEM TIME …`, `AS OF CURRENT`: before what may follow a table, AS gives an alias, `of` included. */
export function isAsOf(sqlCursor: TokenCursor): boolean {
  if (sqlCursor.key() !== 'AS' || sqlCursor.key(1) !== 'OF') return false;
  const { key, kind, reserved } = sqlCursor.peek(2);
  return kind === 'literal' || key === '-' || (!reserved && !nonAliasWords.has(key));
}

export function readAsOf(sqlCursor: TokenCursor): void {
  const { location } = sqlCursor;
  if (sqlCursor.asOf) throw sqlCursor.error(oneInstantError);
  sqlCursor.expect('AS');
  sqlCursor.expect('OF');
  if (sqlCursor.accept('CURRENT')) {
    sqlCursor.asOf = { axis: 'current', location };
    return;
  }
  const isSystemTime = sqlCursor.accept('SYSTEM');
  if (isSystemTime) sqlCursor.expect('TIME');
  sqlCursor.asOf = { axis: isSystemTime ? 'system' : 'valid', instant: readInstant(sqlCursor), location };
}

/** `'2024-05-01'`, DATE or TIMESTAMP '…', nanoseconds, `now()`, `now() - INTERVAL '1 day'`. */
function readInstant(sqlCursor: TokenCursor): Expression {
  const { location } = sqlCursor;
  if (!sqlCursor.accept('TIMESTAMP')) sqlCursor.accept('DATE');
  const isStatedInstant = sqlCursor.isLiteral('timestamp') || sqlCursor.isLiteral('date');
  if (isStatedInstant || sqlCursor.isLiteral('s') || sqlCursor.isLiteral('i'))
    return { kind: 'literal', ...sqlCursor.anyLiteral('an instant') };
  if (sqlCursor.key() !== 'NOW' || sqlCursor.key(1) !== '(')
    throw sqlCursor.expectedError('a timestamp in quotes, nanoseconds or now()');
  sqlCursor.next();
  sqlCursor.expect('(');
  sqlCursor.expect(')');
  const currentInstant: Expression = { kind: 'now', location };
  const intervalSign = sqlCursor.key();
  if (intervalSign !== '-' && intervalSign !== '+') return currentInstant;
  sqlCursor.next();
  if (sqlCursor.key() !== 'INTERVAL') throw sqlCursor.expectedError("INTERVAL 'n unit'");
  return { kind: 'binary', op: intervalSign, left: currentInstant, right: readIntervalExpression(sqlCursor), location };
}

export function readOrder(sqlCursor: TokenCursor): OrderItem[] {
  const orderItems: OrderItem[] = [];
  do {
    const { location } = sqlCursor;
    const orderExpression = notConstant(sqlCursor, readExpression(sqlCursor), location);
    let collation = readCollation(sqlCursor);
    const isDescending = sqlCursor.accept('DESC');
    if (!isDescending) sqlCursor.accept('ASC');
    if (collation === 'codepoint') collation = readCollation(sqlCursor);
    let putsNullsFirst = false;
    if (sqlCursor.accept('NULLS')) {
      putsNullsFirst = sqlCursor.accept('FIRST');
      if (!putsNullsFirst) sqlCursor.expect('LAST');
    }
    // Rows are ordered by their first values, then by the next ones.
    const orderKeys = orderExpression.kind === 'row' && sqlCursor.dialect === 'wide' ? orderExpression.items : [orderExpression];
    for (const orderKey of orderKeys)
      orderItems.push({ expression: orderKey, descending: isDescending, collate: collation, nullsFirst: putsNullsFirst });
    if (orderItems.length > itemsMax) throw sqlCursor.error(`ORDER BY has at most ${itemsMax} expressions`, location);
  } while (sqlCursor.accept(','));
  return orderItems;
}

function readCollation(sqlCursor: TokenCursor): OrderItem['collate'] {
  if (!sqlCursor.accept('COLLATE')) return 'codepoint';
  if (sqlCursor.key() !== 'UNICODE') throw sqlCursor.expectedError('UNICODE, the only collation');
  sqlCursor.next();
  return 'unicode';
}

function readAfterCursor(sqlCursor: TokenCursor, isOrdered: boolean): Slot {
  if (isOrdered) throw sqlCursor.error('AFTER pages in system_from order: it cannot combine with ORDER BY or RANK BY');
  sqlCursor.expect('AFTER');
  return sqlCursor.literal('s', 'a cursor in quotes');
}

function functionStandsAlone(sqlCursor: TokenCursor, location: Location): Error {
  return sqlCursor.error(
    'a table function stands alone: SELECT * FROM name(...), without projection, join, subquery or set operation',
    location,
  );
}
