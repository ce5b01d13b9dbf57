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

const verbs: ReadonlySet<string> = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

/** Parses a write; null where the statement is none. Throws REL_PARSE. */
export function parseWrite(lexed: LexedStatement, dialect: Dialect): WriteStatement | null {
  const cursor = new TokenCursor(lexed, { readQuery, readOrder }, dialect);
  cursor.writes = true;
  const purpose = cursor.accept('PURPOSE') ? cursor.literal('s', 'a purpose in quotes') : null;
  if (cursor.key() !== 'WITH') return verbs.has(cursor.key()) ? readWrite(cursor, purpose, []) : null;
  if (!lexed.tokens.some(({ key }) => verbs.has(key))) return null;
  const common = readCommonTables(cursor);
  return verbs.has(cursor.key()) ? readWrite(cursor, purpose, common) : null;
}

function readWrite(cursor: TokenCursor, purpose: Slot | null, common: readonly CommonTable[]): WriteStatement {
  const { location } = cursor;
  const parts = { purpose, with: common, nullSlot: cursor.lexed.parameters.length, location };
  const verb = cursor.next().key;
  const statement = readers[verb]!(cursor, parts);
  if (isAsOf(cursor)) throw cursor.error(asItStands);
  if (cursor.asOf !== null) throw cursor.error(asItStands, cursor.asOf.location);
  const ended = cursor.accept(';');
  if (cursor.token.kind === 'end') return statement;
  throw ended ? cursor.error('one statement at a time') : cursor.expectedError('the end of the statement');
}

const asItStands =
  'rows are written as they stand now: AS OF is for the query of INSERT … SELECT, and FOR PORTION OF VALID_TIME says which time is written';

type Head = Pick<WriteStatement, 'purpose' | 'with' | 'nullSlot' | 'location'>;

const readers: Readonly<Record<string, (cursor: TokenCursor, head: Head) => WriteStatement>> = {
  INSERT: readInsert,
  UPDATE: readUpdate,
  DELETE: readDelete,
  MERGE: readMerge,
};

function readInsert(cursor: TokenCursor, head: Head): InsertStatement {
  cursor.expect('INTO');
  const target = readTarget(cursor, () => (cursor.accept('AS') ? cursor.name('an alias') : null));
  const columns = cursor.key() === '(' && !opensQuery(cursor) ? readColumns(cursor) : null;
  const { location } = cursor;
  if (columns === null && cursor.acceptPair('DEFAULT', 'VALUES')) {
    const source = queryOf({ kind: 'values', rows: [[nullOf(head, location)]], location }, location);
    const key = [{ name: '_pk', location }];
    return { kind: 'insert', ...head, target, columns: key, source, conflict: null, returning: readReturning(cursor) };
  }
  const source = withDefaults(cursor.query(), head);
  // An instant that is named behind the query is none of its own.
  const read = { ...source, with: [...head.with, ...source.with], asOf: cursor.asOf };
  cursor.asOf = null;
  const conflict = cursor.key() === 'ON' ? readConflict(cursor, head) : null;
  return { kind: 'insert', ...head, target, columns, source: read, conflict, returning: readReturning(cursor) };
}

function readUpdate(cursor: TokenCursor, head: Head): UpdateStatement {
  cursor.accept('ONLY');
  let portion: Portion | null = null;
  const target = readTarget(cursor, () => {
    portion = readPortion(cursor);
    return cursor.accept('AS') || (cursor.isName() && cursor.key() !== 'SET') ? cursor.name('an alias') : null;
  });
  cursor.expect('SET');
  const set = readAssignments(cursor, head);
  const from = cursor.accept('FROM') ? readSources(cursor) : null;
  const where = readWhere(cursor);
  return { kind: 'update', ...head, target, set, from, where, portion, returning: readReturning(cursor) };
}

function readDelete(cursor: TokenCursor, head: Head): DeleteStatement {
  cursor.expect('FROM');
  cursor.accept('ONLY');
  let portion: Portion | null = null;
  const target = readTarget(cursor, () => {
    portion = readPortion(cursor);
    return readAlias(cursor);
  });
  const using = cursor.accept('USING') ? readSources(cursor) : null;
  const where = readWhere(cursor);
  return { kind: 'delete', ...head, target, using, where, portion, returning: readReturning(cursor) };
}

function readMerge(cursor: TokenCursor, head: Head): MergeStatement {
  cursor.expect('INTO');
  cursor.accept('ONLY');
  const target = readTarget(cursor, () => readAlias(cursor));
  cursor.expect('USING');
  const source = readTable(cursor);
  cursor.expect('ON');
  const on = readExpression(cursor);
  const clauses: MergeClause[] = [];
  do clauses.push(readMergeClause(cursor, head));
  while (cursor.key() === 'WHEN');
  for (const [i, { matched, when }] of clauses.entries()) {
    const later = clauses.slice(i + 1).find((each) => when === null && each.matched === matched);
    if (later !== undefined) throw cursor.error('no row comes to this WHEN: one before it takes them all', later.location);
  }
  return { kind: 'merge', ...head, target, source, on, clauses, returning: null };
}

/** WHEN [NOT] MATCHED [AND …] THEN … */
function readMergeClause(cursor: TokenCursor, head: Head): MergeClause {
  const { location } = cursor;
  cursor.expect('WHEN');
  const matched = !cursor.accept('NOT');
  cursor.expect('MATCHED');
  const when = cursor.accept('AND') ? readExpression(cursor) : null;
  cursor.expect('THEN');
  if (cursor.acceptPair('DO', 'NOTHING')) return { matched, when, do: 'nothing', location };
  if (matched) {
    if (cursor.accept('DELETE')) return { matched, when, do: 'delete', location };
    cursor.expect('UPDATE');
    cursor.expect('SET');
    return { matched, when, do: 'update', set: readAssignments(cursor, head), location };
  }
  cursor.expect('INSERT');
  if (cursor.acceptPair('DEFAULT', 'VALUES'))
    return { matched, when, do: 'insert', columns: [{ name: '_pk', location }], values: [nullOf(head, location)], location };
  const columns = cursor.key() === '(' ? readColumns(cursor) : null;
  cursor.expect('VALUES');
  cursor.expect('(');
  const values: Expression[] = [];
  do values.push(orDefault(readExpression(cursor), head));
  while (cursor.accept(','));
  cursor.expect(')');
  return { matched, when, do: 'insert', columns, values, location };
}

function readTarget(cursor: TokenCursor, alias: () => string | null): WriteTarget {
  const { location } = cursor;
  const type = cursor.name('a type');
  if (cursor.key() === '.') throw cursor.error('rows of another tenant are read-only: name a type of your own', location);
  return { type, name: alias() ?? type, location };
}

/** FOR PORTION OF VALID_TIME FROM '…' TO '…'; TO NULL has no end. */
function readPortion(cursor: TokenCursor): Portion | null {
  if (cursor.key() !== 'FOR') return null;
  const { location } = cursor;
  for (const word of ['FOR', 'PORTION', 'OF', 'VALID_TIME', 'FROM']) cursor.expect(word);
  const from = readInstant(cursor);
  cursor.expect('TO');
  const isOpen = cursor.token.kind === 'literal' && cursor.token.text === 'null';
  const to = readInstant(cursor);
  return { from, to: isOpen ? null : to, location };
}

function readInstant(cursor: TokenCursor): Slot {
  cursor.accept('TIMESTAMP');
  return cursor.anyLiteral('a timestamp in quotes');
}

function readWhere(cursor: TokenCursor): Expression | null {
  if (isAsOf(cursor)) throw cursor.error(asItStands);
  return cursor.accept('WHERE') ? readExpression(cursor) : null;
}

function readReturning(cursor: TokenCursor): ProjectionItem[] | null {
  if (!cursor.accept('RETURNING')) return null;
  const items: ProjectionItem[] = [];
  do items.push(readProjectionItem(cursor));
  while (cursor.accept(','));
  return items;
}

function readColumns(cursor: TokenCursor, listName = 'named'): NamedLocation[] {
  const columns: NamedLocation[] = [];
  cursor.expect('(');
  do columns.push(readColumn(cursor));
  while (cursor.accept(','));
  cursor.expect(')');
  checkOnce(cursor, columns, listName);
  return columns;
}

function checkOnce(cursor: TokenCursor, columns: readonly NamedLocation[], listName: string): void {
  const names = new Set<string>();
  for (const { name, location } of columns) {
    if (names.has(name))
      throw cursor.error(
        `column ${JSON.stringify(name)} is ${listName} twice`,
        location,
        listName === 'set' ? 'syntax' : 'named-twice',
      );
    names.add(name);
  }
}

function readColumn(cursor: TokenCursor): NamedLocation {
  const { location } = cursor;
  return { name: cursor.name('a column name'), location };
}

/** a = 1, (b, c) = (2, DEFAULT). */
function readAssignments(cursor: TokenCursor, head: Head): Assignment[] {
  const set: Assignment[] = [];
  do {
    const columns = cursor.key() === '(' ? readColumns(cursor, 'set') : [readColumn(cursor)];
    const isRowOf = columns.length > 1;
    cursor.expect('=');
    cursor.accept('ROW');
    const { location } = cursor;
    const value = readExpression(cursor);
    const values = isRowOf && isRow(value) ? value.items : [value];
    if (values.length !== columns.length) {
      throw cursor.error(`${columns.length} columns take a row of as many values: (a, b) = (1, 2)`, location);
    }
    columns.forEach((column, i) => set.push({ ...column, value: orDefault(values[i]!, head) }));
  } while (cursor.accept(','));
  checkOnce(cursor, set, 'set');
  return set;
}

/** ON CONFLICT [(key)] DO NOTHING, DO UPDATE SET … [WHERE …]. */
function readConflict(cursor: TokenCursor, head: Head): Conflict {
  const { location } = cursor;
  cursor.expect('ON');
  cursor.expect('CONFLICT');
  if (cursor.key() === 'ON') throw cursor.notImplemented('ON CONFLICT ON CONSTRAINT (name the key column: ON CONFLICT (id))');
  const columns = cursor.key() === '(' ? readColumns(cursor) : [];
  if (columns.length > 1) throw cursor.error('rows conflict by their key, which is one column', columns[1]!.location);
  const key = columns[0] ?? null;
  cursor.expect('DO');
  if (cursor.accept('NOTHING')) return { do: 'nothing', key };
  cursor.expect('UPDATE');
  cursor.expect('SET');
  return { do: 'update', key, set: readAssignments(cursor, head), where: readWhere(cursor), location };
}

/** Whether the brackets hold a query instead of a list of columns. */
function opensQuery(cursor: TokenCursor): boolean {
  let ahead = 1;
  while (cursor.key(ahead) === '(') ahead++;
  const key = cursor.key(ahead);
  return key === 'SELECT' || key === 'WITH' || (key === 'VALUES' && cursor.key(ahead + 1) === '(');
}

/** VALUES (DEFAULT, 1): no type has defaults, so the column is as good as left out. */
function withDefaults(query: Query, head: Head): Query {
  const { body } = query;
  if (body.kind !== 'select' || body.from.kind !== 'values') return query;
  const rows = body.from.rows.map((row) => row.map((value) => orDefault(value, head)));
  return { ...query, body: { ...body, from: { ...body.from, rows } } };
}

function orDefault(value: Expression, head: Head): Expression {
  const isDefault = value.kind === 'column' && value.table === null && !value.quoted && /^default$/i.test(value.name);
  return isDefault ? nullOf(head, value.location) : value;
}

function nullOf({ nullSlot }: Head, location: Location): Expression {
  return { kind: 'literal', slot: nullSlot, location };
}

/** SELECT * over rows. */
function queryOf(from: Source, location: Location): Query {
  const rest = { groupBy: [], window: null, having: null, rankBy: [], compute: [] };
  const projection: ProjectionItem[] = [{ kind: 'star', table: null, location }];
  const body = { kind: 'select', distinct: false, projection, from, where: null, ...rest, location } as const;
  return { with: [], body, asOf: null, orderBy: [], limit: null, offset: null, after: null, facets: [], location };
}
