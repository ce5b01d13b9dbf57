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

export function readQuery(cursor: TokenCursor): Query {
  const { location } = cursor;
  const common = cursor.key() === 'WITH' ? readCommonTables(cursor) : [];
  return readQueryTail(cursor, common, readSetOperations(cursor), location);
}

/** The rest of a query whose SELECT and FROM were written as one keyword: `PATHS_BETWEEN('a', 'b') LIMIT 5`. */
export function readQueryOver(cursor: TokenCursor, from: Source): Query {
  const projection: ProjectionItem[] = [{ kind: 'star', table: null, location: from.location }];
  const select = readSelectTail(cursor, { distinct: false, projection, from, location: from.location });
  return readQueryTail(cursor, [], select, from.location);
}

function readQueryTail(cursor: TokenCursor, common: CommonTable[], body: QueryBody, location: Location): Query {
  cursor.aggregates = 'allowed';
  const orderBy = cursor.acceptPair('ORDER', 'BY') ? readOrder(cursor) : [];
  cursor.aggregates = 'refused';
  let limit = readLimit(cursor);
  let skipped: RowCount | null = null;
  if (limit && cursor.key() === ',') {
    cursor.wideOnly("LIMIT m, n (page with LIMIT n AFTER '<cursor>')");
    cursor.accept(',');
    skipped = limit;
    limit = readRowCount(cursor);
  }
  const ranked = body.kind === 'select' && body.rankBy.length > 0;
  const after = limit && cursor.key() === 'AFTER' ? readAfter(cursor, orderBy.length > 0 || ranked) : null;
  if (cursor.key() === 'OFFSET') cursor.wideOnly("OFFSET (page with LIMIT n AFTER '<cursor>')");
  if (skipped && cursor.key() === 'OFFSET') throw cursor.error('LIMIT m, n and OFFSET say the same: take one');
  const offset = skipped ?? (cursor.accept('OFFSET') ? readRowCount(cursor) : null);
  if (offset && !skipped && cursor.dialect === 'wide' && !cursor.accept('ROWS')) cursor.accept('ROW');
  if (offset && after) throw cursor.error('AFTER and OFFSET are two ways to page: take one', offset.location);
  if (offset && limit === null) limit = readLimit(cursor);
  if (cursor.key() === 'FETCH') {
    cursor.wideOnly('FETCH (use LIMIT)');
    if (limit) throw cursor.error('LIMIT and FETCH say the same: take one');
    limit = readFetch(cursor);
  }
  const facets: ColumnRef[] = [];
  if (cursor.accept('FACETS')) {
    do facets.push(readColumn(cursor));
    while (cursor.accept(','));
  }
  return { with: common, body, asOf: null, orderBy, limit, offset, after, facets, location };
}

/** LIMIT n; LIMIT ALL is none. */
function readLimit(cursor: TokenCursor): RowCount | null {
  if (!cursor.accept('LIMIT') || cursor.accept('ALL')) return null;
  return readRowCount(cursor);
}

const countOperators: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%', '::', '||']);

function readRowCount(cursor: TokenCursor): RowCount {
  const isWide = cursor.dialect === 'wide';
  if (cursor.isLiteral('i') && !(isWide && countOperators.has(cursor.key(1)))) return cursor.literal('i', 'a number of rows');
  if (isWide) return { location: cursor.location, expression: readExpression(cursor) };
  const { token } = cursor;
  const reason =
    token.kind !== 'literal'
      ? cursor.isName()
        ? 'no-such-column-here'
        : 'syntax'
      : token.text === 's'
        ? 'text-form'
        : 'types-differ';
  throw cursor.error(`expected a number of rows, found ${describeToken(token)}`, cursor.location, reason);
}

/** FETCH FIRST n ROWS ONLY. */
function readFetch(cursor: TokenCursor): RowCount {
  cursor.expect('FETCH');
  if (!cursor.accept('FIRST')) cursor.expect('NEXT');
  const { location } = cursor;
  const isOne = cursor.key() === 'ROW' || cursor.key() === 'ROWS';
  const limit: RowCount = isOne ? { expression: { kind: 'constant', cell: 1n, location }, location } : readRowCount(cursor);
  if (!cursor.accept('ROWS')) cursor.expect('ROW');
  if (cursor.key() === 'WITH') throw cursor.notImplemented('WITH TIES');
  cursor.expect('ONLY');
  return limit;
}

const writes: ReadonlySet<string> = new Set(['INSERT', 'UPDATE', 'DELETE']);

export function readCommonTables(cursor: TokenCursor): CommonTable[] {
  cursor.expect('WITH');
  const recursive = cursor.accept('RECURSIVE');
  const tables: CommonTable[] = [];
  do {
    const name = cursor.name('the name of a common table');
    const columns = readColumnNames(cursor);
    cursor.expect('AS');
    // Whether its rows are kept is decided by what reads them.
    const isKept = cursor.key() === 'MATERIALIZED' || (cursor.key() === 'NOT' && cursor.key(1) === 'MATERIALIZED');
    if (isKept) {
      cursor.wideOnly('AS [NOT] MATERIALIZED');
      cursor.accept('NOT');
      cursor.next();
    }
    cursor.expect('(');
    if (writes.has(cursor.key())) throw cursor.notImplemented(`${cursor.key()} in WITH`);
    tables.push({ name, columns, recursive, query: cursor.subquery() });
    cursor.expect(')');
  } while (cursor.accept(','));
  return tables;
}

/** UNION and EXCEPT from left to right; INTERSECT binds tighter. */
function readSetOperations(cursor: TokenCursor): QueryBody {
  let left = readIntersections(cursor);
  while (cursor.key() === 'UNION' || cursor.key() === 'EXCEPT') {
    const { location } = cursor;
    const union = cursor.next().key === 'UNION';
    const all = readWhetherAll(cursor);
    if (all && !union) cursor.wideOnly('EXCEPT ALL', location);
    const op = union ? (all ? 'union all' : 'union') : all ? 'except all' : 'except';
    left = setOperation(cursor, op, left, readIntersections(cursor), location);
  }
  return left;
}

function readIntersections(cursor: TokenCursor): QueryBody {
  let left = readArm(cursor);
  while (cursor.key() === 'INTERSECT') {
    const { location } = cursor;
    cursor.next();
    const all = readWhetherAll(cursor);
    if (all) cursor.wideOnly('INTERSECT ALL', location);
    left = setOperation(cursor, all ? 'intersect all' : 'intersect', left, readArm(cursor), location);
  }
  return left;
}

/** ALL, or DISTINCT, which says what holds without it. */
function readWhetherAll(cursor: TokenCursor): boolean {
  if (cursor.accept('ALL')) return true;
  if (cursor.dialect === 'wide') cursor.accept('DISTINCT');
  return false;
}

function setOperation(cursor: TokenCursor, op: SetOperation, left: QueryBody, right: QueryBody, location: Location): QueryBody {
  cursor.countLink();
  for (const arm of [left, right]) {
    if (arm.kind === 'select' && arm.from.kind === 'function') throw functionAlone(cursor, arm.from.location);
  }
  return { kind: 'set-operation', op, left, right, location };
}

function readArm(cursor: TokenCursor): QueryBody {
  if (cursor.key() === 'VALUES' && cursor.key(1) === '(') return readValues(cursor);
  if (cursor.key() !== '(') return readSelect(cursor);
  return cursor.nest(() => {
    cursor.next();
    const { location } = cursor;
    const common = cursor.key() === 'WITH' && cursor.dialect === 'wide' ? readCommonTables(cursor) : [];
    const body = readSetOperations(cursor);
    if (common.length === 0 && (cursor.dialect !== 'wide' || cursor.key() === ')')) {
      cursor.expect(')');
      return body;
    }
    // An arm with clauses of its own is a query that the arm reads.
    const query = readQueryTail(cursor, common, body, location);
    cursor.expect(')');
    const from: Source = { kind: 'subquery', query, alias: '#arm', columns: [], location };
    return { ...bareSelect, projection: [{ kind: 'star', table: null, location }], from, location };
  });
}

/** VALUES (1, 'a'), (2, 'b'): the same as SELECT * over these rows. */
function readValues(cursor: TokenCursor): Select {
  const { location } = cursor;
  cursor.expect('VALUES');
  const rows: Expression[][] = [];
  do {
    cursor.expect('(');
    const row: Expression[] = [];
    do row.push(readExpression(cursor));
    while (cursor.accept(','));
    cursor.expect(')');
    if (row.length !== (rows[0] ?? row).length) throw cursor.error('the rows of VALUES have one number of values');
    rows.push(row);
  } while (cursor.accept(','));
  const from: Source = { kind: 'values', rows, location };
  return { ...bareSelect, projection: [{ kind: 'star', table: null, location }], from, location };
}

const bareSelect = {
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
function acceptAll(cursor: TokenCursor): void {
  const next = cursor.peek(1);
  const isName = next.key === ',' || next.key === '.' || next.key === 'AS' || next.key === 'FROM' || next.kind === 'end';
  if (
    cursor.key() === 'ALL' &&
    !isName &&
    (!next.reserved || next.kind === 'literal' || /^[*(+-]|CASE|LEFT|RIGHT|NOT/.test(next.key))
  )
    cursor.next();
}

function readSelect(cursor: TokenCursor): Select {
  const { location } = cursor;
  cursor.expect('SELECT');
  cursor.windows = null;
  let distinct = cursor.accept('DISTINCT');
  const distinctOn = distinct && cursor.dialect === 'wide' && cursor.key() === 'ON' ? readDistinctOn(cursor) : null;
  if (distinctOn) distinct = false;
  else if (!distinct) acceptAll(cursor);
  cursor.aggregates = 'allowed';
  // EXISTS needs no column.
  const isBare = cursor.key() === 'FROM' && cursor.dialect === 'wide' && cursor.inSubquery;
  const projection = [isBare ? ({ kind: 'star', table: null, location } as const) : readProjectionItem(cursor)];
  while (cursor.accept(',')) projection.push(readProjectionItem(cursor));
  cursor.aggregates = 'refused';
  if (!cursor.accept('FROM')) {
    if (!endsSelect(cursor)) throw cursor.expectedError('FROM');
    return readSelectTail(cursor, { distinct, projection, from: { kind: 'values', rows: [[]], location }, location });
  }
  const from = readSources(cursor);
  if (from.kind === 'function') {
    const only = projection.length === 1 ? projection[0]! : null;
    const whole = only?.kind === 'star' && only.table === null && !distinct;
    if (!whole || cursor.inSubquery) throw functionAlone(cursor, from.location);
  }
  return readSelectTail(cursor, { distinct, ...(distinctOn && { distinctOn }), projection, from, location });
}

/** DISTINCT ON (a, b), behind its first word. */
function readDistinctOn(cursor: TokenCursor): readonly Expression[] {
  cursor.expect('ON');
  cursor.expect('(');
  const list = [readExpression(cursor)];
  while (cursor.accept(',')) list.push(readExpression(cursor));
  cursor.expect(')');
  return list;
}

function readSelectTail(cursor: TokenCursor, head: SelectHead): Select {
  if (isAsOf(cursor)) {
    readAsOf(cursor);
    if (isAsOf(cursor)) throw cursor.error('a statement has one AS OF; combine the axes with explicit predicates');
  }
  if (cursor.asOf !== null && /^(,|JOIN|INNER|LEFT|RIGHT|FULL|CROSS|NATURAL)$/.test(cursor.key())) throw cursor.error(oneInstant);
  const where = cursor.accept('WHERE') ? readExpression(cursor) : null;
  const groups = cursor.acceptPair('GROUP', 'BY') ? readGroups(cursor) : noGroups;
  cursor.aggregates = 'allowed';
  const having = cursor.accept('HAVING') ? readExpression(cursor) : null;
  if (cursor.dialect === 'wide' && cursor.key() === 'WINDOW' && cursor.accept('WINDOW'))
    cursor.windows = readWindows(cursor, { read: readExpression, order: cursor.readOrder });
  cursor.aggregates = 'functions';
  const rankBy: Expression[] = [];
  if (cursor.acceptPair('RANK', 'BY')) {
    do rankBy.push(readExpression(cursor));
    while (cursor.accept(','));
  }
  const compute: { label: string; expression: Expression }[] = [];
  if (cursor.accept('COMPUTE')) {
    do {
      const label = cursor.name('a label');
      cursor.expect('AS');
      compute.push({ label, expression: readExpression(cursor) });
    } while (cursor.accept(','));
  }
  cursor.aggregates = 'refused';
  return { kind: 'select', ...head, where, ...groups, having, rankBy, compute };
}

export function readProjectionItem(cursor: TokenCursor): ProjectionItem {
  const { location } = cursor;
  if (cursor.accept('*')) return { kind: 'star', table: null, location };
  if (cursor.isName() && cursor.key(1) === '.' && cursor.key(2) === '*') {
    const table = cursor.name('a table name');
    cursor.next();
    cursor.next();
    return { kind: 'star', table, location };
  }
  const expression = readExpression(cursor);
  const alias = cursor.accept('AS') ? readLabel(cursor) : cursor.isName() ? cursor.name('an alias') : null;
  return { kind: 'expression', expression, alias, location };
}

/** Behind AS any word is a name. */
function readLabel(cursor: TokenCursor): string {
  const { token } = cursor;
  return cursor.dialect === 'wide' && token.kind === 'word' && token.reserved ? cursor.next().text : cursor.name('an alias');
}

/** Whether the next token may follow a SELECT without FROM. */
function endsSelect(cursor: TokenCursor): boolean {
  const { kind, key } = cursor.token;
  if ((cursor.writes && (key === 'ON' || key === 'RETURNING')) || cursor.locks()) return true;
  return kind === 'end' || /^([);]|WHERE|GROUP|HAVING|ORDER|LIMIT|UNION|INTERSECT|EXCEPT)$/.test(key) || key === 'OFFSET';
}

/** Tables side by side, each with its joins. */
export function readSources(cursor: TokenCursor): Source {
  let left = readSource(cursor);
  while (cursor.key() === ',') {
    const { location } = cursor;
    cursor.next();
    cursor.countLink();
    const right = readSource(cursor);
    for (const side of [left, right]) if (side.kind === 'function') throw functionAlone(cursor, side.location);
    left = { kind: 'join', type: 'inner', left, right, on: null, using: null, location };
  }
  return left;
}

function readSource(cursor: TokenCursor): Source {
  let left = readTable(cursor);
  for (;;) {
    const { location } = cursor;
    const natural =
      cursor.key() === 'NATURAL' && /^(JOIN|INNER|LEFT|RIGHT|FULL)$/.test(cursor.key(1)) && cursor.accept('NATURAL');
    const isCross = !natural && cursor.acceptPair('CROSS', 'JOIN');
    const type = isCross ? 'inner' : joinType(cursor);
    if (type === null) break;
    cursor.countLink();
    const right = readTable(cursor);
    for (const side of [left, right]) if (side.kind === 'function') throw functionAlone(cursor, side.location);
    const using = natural ? 'natural' : isCross ? null : readUsing(cursor);
    const bare = isCross || using !== null;
    if (!bare && isAsOf(cursor)) throw cursor.error(oneInstant);
    if (!bare) cursor.expect('ON');
    left = { kind: 'join', type, left, right, on: bare ? null : readExpression(cursor), using, location };
  }
  if (cursor.key() === 'FOR' && !cursor.locks())
    throw cursor.notImplemented("FOR SYSTEM_TIME (write AS OF SYSTEM TIME '<timestamp>')");
  return left;
}

function readUsing(cursor: TokenCursor): readonly string[] | null {
  if (!cursor.accept('USING')) return null;
  cursor.expect('(');
  const names: string[] = [];
  do names.push(cursor.name('a column name'));
  while (cursor.accept(','));
  cursor.expect(')');
  return names;
}

function joinType(cursor: TokenCursor): 'inner' | 'left' | 'right' | 'full' | null {
  if (cursor.accept('JOIN')) return 'inner';
  if (cursor.accept('INNER')) {
    cursor.expect('JOIN');
    return 'inner';
  }
  const key = cursor.key();
  const type = key === 'LEFT' ? 'left' : key === 'RIGHT' ? 'right' : key === 'FULL' ? 'full' : null;
  if (type === null) return null;
  cursor.next();
  cursor.accept('OUTER');
  cursor.expect('JOIN');
  return type;
}

export function readTable(cursor: TokenCursor): Source {
  const { location } = cursor;
  if (cursor.key() === '(' && !opensQuery(cursor)) {
    return cursor.nest(() => {
      cursor.expect('(');
      const source = readSources(cursor);
      cursor.expect(')');
      return source;
    });
  }
  const isLateral =
    cursor.dialect === 'wide' && cursor.key() === 'LATERAL' && /^(\(|\w+)$/.test(cursor.key(1)) && cursor.accept('LATERAL');
  if (cursor.accept('(')) {
    const query = cursor.subquery();
    cursor.expect(')');
    const alias = readAlias(cursor);
    const lateral = isLateral ? { lateral: true as const } : {};
    return { kind: 'subquery', query, alias, columns: alias === null ? [] : readColumnNames(cursor), ...lateral, location };
  }
  const isOwn =
    (cursor.key() === 'PG_CATALOG' || cursor.key() === 'INFORMATION_SCHEMA') && cursor.key(1) === '.' && cursor.key(3) === '(';
  if (isOwn && cursor.dialect === 'wide') {
    cursor.next();
    cursor.next();
  }
  const name = cursor.name('a type, a function or a subquery');
  // Any other function is one row of its value, or the rows of its set.
  if (cursor.key() === '(' && cursor.dialect === 'wide' && !isTableFunction(name.toUpperCase())) {
    const relation = Object.hasOwn(relationFunctions, name.toUpperCase()) ? relationFunctions[name.toUpperCase()] : undefined;
    if (relation === undefined) return readSet(cursor, name.toUpperCase(), location);
    if (readArguments(cursor).length > 0) throw cursor.error(`${name} takes no arguments`, location);
    const alias = readAlias(cursor) ?? name;
    return { kind: 'table', name: tenantTypeName('pg_catalog', relation), alias, location };
  }
  if (cursor.key() === '(') {
    const list = readArguments(cursor);
    return { kind: 'function', name: name.toUpperCase(), arguments: list, alias: readAlias(cursor), location };
  }
  if (!cursor.accept('.')) return { kind: 'table', name, alias: readAlias(cursor), location };
  const type = cursor.name('a type of that tenant');
  return { kind: 'table', name: tenantTypeName(name, type), alias: readAlias(cursor), location };
}

/** Functions that yield the rows of a catalogue relation. */
const relationFunctions: Readonly<Record<string, string>> = {
  PG_SHOW_ALL_SETTINGS: 'pg_settings',
  PG_LOCK_STATUS: 'pg_locks',
  PG_TIMEZONE_NAMES: 'pg_timezone_names',
  PG_AVAILABLE_EXTENSIONS: 'pg_available_extensions',
  PG_CURSOR: 'pg_cursors',
  PG_PREPARED_STATEMENT: 'pg_prepared_statements',
  PG_PREPARED_XACT: 'pg_prepared_xacts',
};

/** Sets of records of two fields: the set of each of them. */
const setsOfPairs: Readonly<Record<string, readonly (readonly [set: string, column: string])[]>> = {
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
function readSet(cursor: TokenCursor, name: string, location: Location): Source {
  const list = readArguments(cursor);
  const call = (of: string): Expression => ({
    kind: 'call',
    name: of,
    arguments: of.endsWith('_ORDINALITY') ? list.slice(0, 1) : list,
    location,
  });
  const isNumbered = cursor.key() === 'WITH' && cursor.key(1) === 'ORDINALITY';
  const isOfElements = /^JSONB?_ARRAY_ELEMENTS(_TEXT)?$/.test(name);
  if (isNumbered) {
    if (name !== 'UNNEST' && !isOfElements) throw cursor.notImplemented(`${name} WITH ORDINALITY`);
    cursor.next();
    cursor.next();
  }
  const alias = readAlias(cursor);
  const columns = alias === null ? [] : readColumnNames(cursor);
  const item = (expression: Expression, column: string): ProjectionItem => ({
    kind: 'expression',
    expression,
    alias: column,
    location,
  });
  const numbers = isOfElements ? '_JSON_ORDINALITY' : '_ORDINALITY';
  const pair = Object.hasOwn(setsOfPairs, name) ? setsOfPairs[name] : undefined;
  const projection = pair
    ? pair.map(([of, column]) => item(call(of), column))
    : [
        item(call(name), isOfElements ? 'value' : (alias ?? name.toLowerCase())),
        ...(isNumbered ? [item(call(numbers), 'ordinality')] : []),
      ];
  const named = projection.map((each, i) =>
    each.kind === 'expression' && columns[i] !== undefined ? { ...each, alias: columns[i] } : each,
  );
  if (columns.length > named.length) throw cursor.error(`${name} has ${named.length} columns`, location);
  const body: Select = { ...bareSelect, projection: named, from: { kind: 'values', rows: [[]], location }, location };
  const query: Query = { with: [], body, asOf: null, orderBy: [], limit: null, offset: null, after: null, facets: [], location };
  const isValue = named.length === 1 ? { isValue: true as const } : {};
  return { kind: 'subquery', query, alias: alias ?? name.toLowerCase(), columns: [], lateral: true, ...isValue, location };
}

/** Whether the brackets hold a query; they may also hold joined tables. */
function opensQuery(cursor: TokenCursor): boolean {
  let ahead = 1;
  while (cursor.key(ahead) === '(') ahead++;
  const key = cursor.key(ahead);
  return key === 'SELECT' || key === 'WITH' || (key === 'VALUES' && cursor.key(ahead + 1) === '(') || cursor.peek(ahead).reserved;
}

/** (a, b) behind an alias. */
export function readColumnNames(cursor: TokenCursor): string[] {
  const names: string[] = [];
  if (!cursor.accept('(')) return names;
  do names.push(cursor.name('a column name'));
  while (cursor.accept(','));
  cursor.expect(')');
  return names;
}

/** Words that begin what may follow a source: names everywhere else, no aliases here unless AS says so. */
const notAliases: ReadonlySet<string> = new Set(
  'COMPUTE FACETS OFFSET FETCH FOR WINDOW REFRESH CROSS NATURAL USING AFTER'.split(' '),
);

export function readAlias(cursor: TokenCursor): string | null {
  if (cursor.key() === 'AS') {
    if (isAsOf(cursor)) return null;
    cursor.next();
    return cursor.name('an alias');
  }
  if (!cursor.isName() || notAliases.has(cursor.key())) return null;
  if (cursor.key() === 'RANK' && cursor.key(1) === 'BY') return null;
  return cursor.name('an alias');
}

const oneInstant =
  'AS OF holds for the whole statement, so that all of its tables are read at one instant: write it once, behind the last ' +
  'table of FROM; for another instant of one table, put conditions on its valid_from and valid_to (system_from and system_to)';

/** `AS OF '…'`, `AS OF SYSTEM TIME …`, `AS OF CURRENT`: before what may follow a table, AS gives an alias, `of` included. */
export function isAsOf(cursor: TokenCursor): boolean {
  if (cursor.key() !== 'AS' || cursor.key(1) !== 'OF') return false;
  const { key, kind, reserved } = cursor.peek(2);
  return kind === 'literal' || key === '-' || (!reserved && !notAliases.has(key));
}

export function readAsOf(cursor: TokenCursor): void {
  const { location } = cursor;
  if (cursor.asOf) throw cursor.error(oneInstant);
  cursor.expect('AS');
  cursor.expect('OF');
  if (cursor.accept('CURRENT')) {
    cursor.asOf = { axis: 'current', location };
    return;
  }
  const system = cursor.accept('SYSTEM');
  if (system) cursor.expect('TIME');
  cursor.asOf = { axis: system ? 'system' : 'valid', instant: readInstant(cursor), location };
}

/** `'2024-05-01'`, DATE or TIMESTAMP '…', nanoseconds, `now()`, `now() - INTERVAL '1 day'`. */
function readInstant(cursor: TokenCursor): Expression {
  const { location } = cursor;
  if (!cursor.accept('TIMESTAMP')) cursor.accept('DATE');
  const isStated = cursor.isLiteral('timestamp') || cursor.isLiteral('date');
  if (isStated || cursor.isLiteral('s') || cursor.isLiteral('i')) return { kind: 'literal', ...cursor.anyLiteral('an instant') };
  if (cursor.key() !== 'NOW' || cursor.key(1) !== '(') throw cursor.expectedError('a timestamp in quotes, nanoseconds or now()');
  cursor.next();
  cursor.expect('(');
  cursor.expect(')');
  const now: Expression = { kind: 'now', location };
  const op = cursor.key();
  if (op !== '-' && op !== '+') return now;
  cursor.next();
  if (cursor.key() !== 'INTERVAL') throw cursor.expectedError("INTERVAL 'n unit'");
  return { kind: 'binary', op, left: now, right: readIntervalExpression(cursor), location };
}

export function readOrder(cursor: TokenCursor): OrderItem[] {
  const items: OrderItem[] = [];
  do {
    const { location } = cursor;
    const expression = notConstant(cursor, readExpression(cursor), location);
    let collate = readCollation(cursor);
    const descending = cursor.accept('DESC');
    if (!descending) cursor.accept('ASC');
    if (collate === 'codepoint') collate = readCollation(cursor);
    let nullsFirst = false;
    if (cursor.accept('NULLS')) {
      nullsFirst = cursor.accept('FIRST');
      if (!nullsFirst) cursor.expect('LAST');
    }
    // Rows are ordered by their first values, then by the next ones.
    const keys = expression.kind === 'row' && cursor.dialect === 'wide' ? expression.items : [expression];
    for (const key of keys) items.push({ expression: key, descending, collate, nullsFirst });
    if (items.length > itemsMax) throw cursor.error(`ORDER BY has at most ${itemsMax} expressions`, location);
  } while (cursor.accept(','));
  return items;
}

function readCollation(cursor: TokenCursor): OrderItem['collate'] {
  if (!cursor.accept('COLLATE')) return 'codepoint';
  if (cursor.key() !== 'UNICODE') throw cursor.expectedError('UNICODE, the only collation');
  cursor.next();
  return 'unicode';
}

function readAfter(cursor: TokenCursor, ordered: boolean): Slot {
  if (ordered) throw cursor.error('AFTER pages in system_from order: it cannot combine with ORDER BY or RANK BY');
  cursor.expect('AFTER');
  return cursor.literal('s', 'a cursor in quotes');
}

function functionAlone(cursor: TokenCursor, location: Location): Error {
  return cursor.error(
    'a table function stands alone: SELECT * FROM name(...), without projection, join, subquery or set operation',
    location,
  );
}
