/**
 * Parses INSERT, UPDATE, DELETE and MERGE, as PostgreSQL writes them. Only doors that may run them parse them: for others
 * `sql-control.ts` knows their names.
 */
import type { CommonTable, Dialect, Expression, Location, ProjectionItem, Query, Slot, Source } from '../syntax/statement.ts';
import type {
  Assignment,
  Conflict,
  DeleteStatement,
  InsertStatement,
  MergeClause,
  MergeStatement,
  NamedLocation,
  Portion,
  UpdateStatement,
  WriteStatement,
  WriteTarget,
} from '../syntax/write-statement.ts';
import { readExpression } from './sql-expressions.ts';
import type { LexedStatement } from './sql-lexer.ts';
import {
  isAsOf,
  readAlias,
  readCommonTables,
  readOrder,
  readProjectionItem,
  readQuery,
  readSources,
  readTable,
} from './sql-query.ts';
import { isRow } from './sql-row-values.ts';
import { TokenCursor } from './token-cursor.ts';

const writeVerbs: ReadonlySet<string> = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

/** Parses a write; null where the statement is none. Throws REL_PARSE. */
export function parseWrite(lexed: LexedStatement, dialect: Dialect): WriteStatement | null {
  const sqlCursor = new TokenCursor(lexed, { readQuery, readOrder }, dialect);
  sqlCursor.writes = true;
  const purposeSlot = sqlCursor.accept('PURPOSE') ? sqlCursor.literal('s', 'a purpose in quotes') : null;
  if (sqlCursor.key() !== 'WITH') return writeVerbs.has(sqlCursor.key()) ? readWrite(sqlCursor, purposeSlot, []) : null;
  if (!lexed.tokens.some(({ key }) => writeVerbs.has(key))) return null;
  const commonTables = readCommonTables(sqlCursor);
  return writeVerbs.has(sqlCursor.key()) ? readWrite(sqlCursor, purposeSlot, commonTables) : null;
}

function readWrite(sqlCursor: TokenCursor, purpose: Slot | null, commonTables: readonly CommonTable[]): WriteStatement {
  const { location } = sqlCursor;
  const writeHead = { purpose, with: commonTables, nullSlot: sqlCursor.lexed.parameters.length, location };
  const writeVerb = sqlCursor.next().key;
  const writeStatement = writeReaders[writeVerb]!(sqlCursor, writeHead);
  if (isAsOf(sqlCursor)) throw sqlCursor.error(asItStandsError);
  if (sqlCursor.asOf !== null) throw sqlCursor.error(asItStandsError, sqlCursor.asOf.location);
  const hasSemicolon = sqlCursor.accept(';');
  if (sqlCursor.token.kind === 'end') return writeStatement;
  throw hasSemicolon ? sqlCursor.error('one statement at a time') : sqlCursor.expectedError('the end of the statement');
}

const asItStandsError =
  'rows are written as they stand now: AS OF is for the query of INSERT … SELECT, and FOR PORTION OF VALID_TIME says which time is written';

type WriteHead = Pick<WriteStatement, 'purpose' | 'with' | 'nullSlot' | 'location'>;

const writeReaders: Readonly<Record<string, (cursor: TokenCursor, head: WriteHead) => WriteStatement>> = {
  INSERT: readInsert,
  UPDATE: readUpdate,
  DELETE: readDelete,
  MERGE: readMerge,
};

function readInsert(sqlCursor: TokenCursor, writeHead: WriteHead): InsertStatement {
  sqlCursor.expect('INTO');
  const insertTarget = readWriteTarget(sqlCursor, () => (sqlCursor.accept('AS') ? sqlCursor.name('an alias') : null));
  const insertColumns = sqlCursor.key() === '(' && !opensSubquery(sqlCursor) ? readWrittenColumns(sqlCursor) : null;
  const { location } = sqlCursor;
  if (insertColumns === null && sqlCursor.acceptPair('DEFAULT', 'VALUES')) {
    const insertSource = defaultsQuery({ kind: 'values', rows: [[nullLiteral(writeHead, location)]], location }, location);
    const keyColumns = [{ name: '_pk', location }];
    return {
      kind: 'insert',
      ...writeHead,
      target: insertTarget,
      columns: keyColumns,
      source: insertSource,
      conflict: null,
      returning: readReturning(sqlCursor),
    };
  }
  const source = withDefaults(sqlCursor.query(), writeHead);
  // An instant that is named behind the query is none of its own.
  const insertQuery = { ...source, with: [...writeHead.with, ...source.with], asOf: sqlCursor.asOf };
  sqlCursor.asOf = null;
  const conflictClause = sqlCursor.key() === 'ON' ? readConflict(sqlCursor, writeHead) : null;
  return {
    kind: 'insert',
    ...writeHead,
    target: insertTarget,
    columns: insertColumns,
    source: insertQuery,
    conflict: conflictClause,
    returning: readReturning(sqlCursor),
  };
}

function readUpdate(sqlCursor: TokenCursor, writeHead: WriteHead): UpdateStatement {
  sqlCursor.accept('ONLY');
  let timePortion: Portion | null = null;
  const updateTarget = readWriteTarget(sqlCursor, () => {
    timePortion = readPortion(sqlCursor);
    return sqlCursor.accept('AS') || (sqlCursor.isName() && sqlCursor.key() !== 'SET') ? sqlCursor.name('an alias') : null;
  });
  sqlCursor.expect('SET');
  const assignments = readAssignments(sqlCursor, writeHead);
  const updateSources = sqlCursor.accept('FROM') ? readSources(sqlCursor) : null;
  const updateCondition = readWriteCondition(sqlCursor);
  return {
    kind: 'update',
    ...writeHead,
    target: updateTarget,
    set: assignments,
    from: updateSources,
    where: updateCondition,
    portion: timePortion,
    returning: readReturning(sqlCursor),
  };
}

function readDelete(sqlCursor: TokenCursor, writeHead: WriteHead): DeleteStatement {
  sqlCursor.expect('FROM');
  sqlCursor.accept('ONLY');
  let timePortion: Portion | null = null;
  const deleteTarget = readWriteTarget(sqlCursor, () => {
    timePortion = readPortion(sqlCursor);
    return readAlias(sqlCursor);
  });
  const deleteSources = sqlCursor.accept('USING') ? readSources(sqlCursor) : null;
  const deleteCondition = readWriteCondition(sqlCursor);
  return {
    kind: 'delete',
    ...writeHead,
    target: deleteTarget,
    using: deleteSources,
    where: deleteCondition,
    portion: timePortion,
    returning: readReturning(sqlCursor),
  };
}

function readMerge(sqlCursor: TokenCursor, writeHead: WriteHead): MergeStatement {
  sqlCursor.expect('INTO');
  sqlCursor.accept('ONLY');
  const mergeTarget = readWriteTarget(sqlCursor, () => readAlias(sqlCursor));
  sqlCursor.expect('USING');
  const mergeSource = readTable(sqlCursor);
  sqlCursor.expect('ON');
  const mergeCondition = readExpression(sqlCursor);
  const mergeClauses: MergeClause[] = [];
  do mergeClauses.push(readMergeClause(sqlCursor, writeHead));
  while (sqlCursor.key() === 'WHEN');
  for (const [i, { matched, when }] of mergeClauses.entries()) {
    const unreachableClause = mergeClauses.slice(i + 1).find((laterClause) => when === null && laterClause.matched === matched);
    if (unreachableClause !== undefined)
      throw sqlCursor.error('no row comes to this WHEN: one before it takes them all', unreachableClause.location);
  }
  return {
    kind: 'merge',
    ...writeHead,
    target: mergeTarget,
    source: mergeSource,
    on: mergeCondition,
    clauses: mergeClauses,
    returning: null,
  };
}

/** WHEN [NOT] MATCHED [AND …] THEN … */
function readMergeClause(sqlCursor: TokenCursor, writeHead: WriteHead): MergeClause {
  const { location } = sqlCursor;
  sqlCursor.expect('WHEN');
  const isMatched = !sqlCursor.accept('NOT');
  sqlCursor.expect('MATCHED');
  const clauseCondition = sqlCursor.accept('AND') ? readExpression(sqlCursor) : null;
  sqlCursor.expect('THEN');
  if (sqlCursor.acceptPair('DO', 'NOTHING')) return { matched: isMatched, when: clauseCondition, do: 'nothing', location };
  if (isMatched) {
    if (sqlCursor.accept('DELETE')) return { matched: isMatched, when: clauseCondition, do: 'delete', location };
    sqlCursor.expect('UPDATE');
    sqlCursor.expect('SET');
    return { matched: isMatched, when: clauseCondition, do: 'update', set: readAssignments(sqlCursor, writeHead), location };
  }
  sqlCursor.expect('INSERT');
  if (sqlCursor.acceptPair('DEFAULT', 'VALUES'))
    return {
      matched: isMatched,
      when: clauseCondition,
      do: 'insert',
      columns: [{ name: '_pk', location }],
      values: [nullLiteral(writeHead, location)],
      location,
    };
  const mergeColumns = sqlCursor.key() === '(' ? readWrittenColumns(sqlCursor) : null;
  sqlCursor.expect('VALUES');
  sqlCursor.expect('(');
  const mergeValues: Expression[] = [];
  do mergeValues.push(nullForDefault(readExpression(sqlCursor), writeHead));
  while (sqlCursor.accept(','));
  sqlCursor.expect(')');
  return { matched: isMatched, when: clauseCondition, do: 'insert', columns: mergeColumns, values: mergeValues, location };
}

function readWriteTarget(sqlCursor: TokenCursor, readTargetAlias: () => string | null): WriteTarget {
  const { location } = sqlCursor;
  const targetType = sqlCursor.name('a type');
  if (sqlCursor.key() === '.') throw sqlCursor.error('rows of another tenant are read-only: name a type of your own', location);
  return { type: targetType, name: readTargetAlias() ?? targetType, location };
}

/** FOR PORTION OF VALID_TIME FROM '…' TO '…'; TO NULL has no end. */
function readPortion(sqlCursor: TokenCursor): Portion | null {
  if (sqlCursor.key() !== 'FOR') return null;
  const { location } = sqlCursor;
  for (const portionWord of ['FOR', 'PORTION', 'OF', 'VALID_TIME', 'FROM']) sqlCursor.expect(portionWord);
  const portionFrom = readInstant(sqlCursor);
  sqlCursor.expect('TO');
  const isOpenPortion = sqlCursor.token.kind === 'literal' && sqlCursor.token.text === 'null';
  const portionTo = readInstant(sqlCursor);
  return { from: portionFrom, to: isOpenPortion ? null : portionTo, location };
}

function readInstant(sqlCursor: TokenCursor): Slot {
  sqlCursor.accept('TIMESTAMP');
  return sqlCursor.anyLiteral('a timestamp in quotes');
}

function readWriteCondition(sqlCursor: TokenCursor): Expression | null {
  if (isAsOf(sqlCursor)) throw sqlCursor.error(asItStandsError);
  return sqlCursor.accept('WHERE') ? readExpression(sqlCursor) : null;
}

function readReturning(sqlCursor: TokenCursor): ProjectionItem[] | null {
  if (!sqlCursor.accept('RETURNING')) return null;
  const returnedItems: ProjectionItem[] = [];
  do returnedItems.push(readProjectionItem(sqlCursor));
  while (sqlCursor.accept(','));
  return returnedItems;
}

function readWrittenColumns(sqlCursor: TokenCursor, listName = 'named'): NamedLocation[] {
  const writtenColumns: NamedLocation[] = [];
  sqlCursor.expect('(');
  do writtenColumns.push(readWrittenColumn(sqlCursor));
  while (sqlCursor.accept(','));
  sqlCursor.expect(')');
  checkColumnsOnce(sqlCursor, writtenColumns, listName);
  return writtenColumns;
}

function checkColumnsOnce(sqlCursor: TokenCursor, writtenColumns: readonly NamedLocation[], listName: string): void {
  const columnNames = new Set<string>();
  for (const { name, location } of writtenColumns) {
    if (columnNames.has(name))
      throw sqlCursor.error(
        `column ${JSON.stringify(name)} is ${listName} twice`,
        location,
        listName === 'set' ? 'syntax' : 'named-twice',
      );
    columnNames.add(name);
  }
}

function readWrittenColumn(sqlCursor: TokenCursor): NamedLocation {
  const { location } = sqlCursor;
  return { name: sqlCursor.name('a column name'), location };
}

/** a = 1, (b, c) = (2, DEFAULT). */
function readAssignments(sqlCursor: TokenCursor, writeHead: WriteHead): Assignment[] {
  const assignments: Assignment[] = [];
  do {
    const assignedColumns = sqlCursor.key() === '(' ? readWrittenColumns(sqlCursor, 'set') : [readWrittenColumn(sqlCursor)];
    const isRowAssignment = assignedColumns.length > 1;
    sqlCursor.expect('=');
    sqlCursor.accept('ROW');
    const { location } = sqlCursor;
    const assignedValue = readExpression(sqlCursor);
    const assignedValues = isRowAssignment && isRow(assignedValue) ? assignedValue.items : [assignedValue];
    if (assignedValues.length !== assignedColumns.length) {
      throw sqlCursor.error(`${assignedColumns.length} columns take a row of as many values: (a, b) = (1, 2)`, location);
    }
    assignedColumns.forEach((assignedColumn, i) =>
      assignments.push({ ...assignedColumn, value: nullForDefault(assignedValues[i]!, writeHead) }),
    );
  } while (sqlCursor.accept(','));
  checkColumnsOnce(sqlCursor, assignments, 'set');
  return assignments;
}

/** ON CONFLICT [(key)] DO NOTHING, DO UPDATE SET … [WHERE …]. */
function readConflict(sqlCursor: TokenCursor, writeHead: WriteHead): Conflict {
  const { location } = sqlCursor;
  sqlCursor.expect('ON');
  sqlCursor.expect('CONFLICT');
  if (sqlCursor.key() === 'ON')
    throw sqlCursor.notImplemented('ON CONFLICT ON CONSTRAINT (name the key column: ON CONFLICT (id))');
  const conflictColumns = sqlCursor.key() === '(' ? readWrittenColumns(sqlCursor) : [];
  if (conflictColumns.length > 1)
    throw sqlCursor.error('rows conflict by their key, which is one column', conflictColumns[1]!.location);
  const conflictKey = conflictColumns[0] ?? null;
  sqlCursor.expect('DO');
  if (sqlCursor.accept('NOTHING')) return { do: 'nothing', key: conflictKey };
  sqlCursor.expect('UPDATE');
  sqlCursor.expect('SET');
  return {
    do: 'update',
    key: conflictKey,
    set: readAssignments(sqlCursor, writeHead),
    where: readWriteCondition(sqlCursor),
    location,
  };
}

/** Whether the brackets hold a query instead of a list of columns. */
function opensSubquery(sqlCursor: TokenCursor): boolean {
  let lexemesAhead = 1;
  while (sqlCursor.key(lexemesAhead) === '(') lexemesAhead++;
  const keyBehindBrackets = sqlCursor.key(lexemesAhead);
  return (
    keyBehindBrackets === 'SELECT' ||
    keyBehindBrackets === 'WITH' ||
    (keyBehindBrackets === 'VALUES' && sqlCursor.key(lexemesAhead + 1) === '(')
  );
}

/** VALUES (DEFAULT, 1): no type has defaults, so the column is as good as left out. */
function withDefaults(query: Query, writeHead: WriteHead): Query {
  const { body } = query;
  if (body.kind !== 'select' || body.from.kind !== 'values') return query;
  const valueRows = body.from.rows.map((valueRow) => valueRow.map((insertedValue) => nullForDefault(insertedValue, writeHead)));
  return { ...query, body: { ...body, from: { ...body.from, rows: valueRows } } };
}

function nullForDefault(writtenValue: Expression, writeHead: WriteHead): Expression {
  const isDefault =
    writtenValue.kind === 'column' && writtenValue.table === null && !writtenValue.quoted && /^default$/i.test(writtenValue.name);
  return isDefault ? nullLiteral(writeHead, writtenValue.location) : writtenValue;
}

function nullLiteral({ nullSlot }: WriteHead, location: Location): Expression {
  return { kind: 'literal', slot: nullSlot, location };
}

/** SELECT * over rows. */
function defaultsQuery(defaultsSource: Source, location: Location): Query {
  const emptyClauses = { groupBy: [], window: null, having: null, rankBy: [], compute: [] };
  const starProjection: ProjectionItem[] = [{ kind: 'star', table: null, location }];
  const defaultsSelect = {
    kind: 'select',
    distinct: false,
    projection: starProjection,
    from: defaultsSource,
    where: null,
    ...emptyClauses,
    location,
  } as const;
  return {
    with: [],
    body: defaultsSelect,
    asOf: null,
    orderBy: [],
    limit: null,
    offset: null,
    after: null,
    facets: [],
    location,
  };
}
